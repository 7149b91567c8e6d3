/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The key of a log line: a hash of the emitted C that determines results.
 *
 * It covers preprocessor lines, helpers, workgroup memory and phases. It
 * leaves out comments, warning options, the launch block, prototypes and the
 * function that runs all phases, which do not affect results. Anything
 * unknown is covered. */
#ifndef VYRE_TESTS_VERIFY_KEY_H
#define VYRE_TESTS_VERIFY_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text without comments; free() it. */
static inline char *key_strip(const char *text) {
  char *out = calloc(strlen(text) + 1, 1), *to = out;
  while (out && *text) {
    const char *end =
        text[0] == '/' && text[1] == '*' ? strstr(text + 2, "*/") : NULL;
    if (end) {
      text = end + 2;
    } else {
      *to++ = *text++;
    }
  }
  if (out) *to = '\0';
  return out;
}

static inline size_t key_line(const char *text) {
  const char *end = strchr(text, '\n');
  return end ? (size_t)(end - text) + 1 : strlen(text);
}

/* The first thing of a file: a line for the preprocessor, or a declaration or
 * definition, all of its lines. */
static inline size_t key_thing(const char *text) {
  size_t length = key_line(text);
  if (text[0] == '#') {
    while (length > 1 && text[length - 2] == '\\' && text[length]) {
      length += key_line(text + length);
    }
    return length;
  }
  bool is_open = memchr(text, '{', length) != NULL;
  size_t line = 0;
  while (text[length]) {
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): a text */
    bool is_over = length > 1 ? text[length - 2] == ';' : true;
    if (is_open ? line > 0 && text[line] == '}' : is_over) {
      break;
    }
    line = length;
    length += key_line(text + length);
    is_open |= memchr(text + line, '{', length - line) != NULL;
  }
  return length;
}

static inline bool key_begins(const char *text, const char *first,
                              const char *name, const char *then) {
  char all[256];
  snprintf(all, sizeof all, "%s%s%s", first, name, then);
  return strncmp(text, all, strlen(all)) == 0;
}

/* Returns true if the line cannot change a bit of a result. */
static inline bool key_skips(const char *thing, size_t length,
                             const char *kernel) {
  char end[256];
  int size = snprintf(end, sizeof end, "} %s_launch;\n", kernel);
  bool is_body = memchr(thing, '{', length) != NULL;
  if (thing[0] == '\n') return true;
  if (key_begins(thing, "#pragma GCC diagnostic ignored ", "", "")) return true;
  if (key_begins(thing, "typedef struct {\n", "", "")) {
    return length > (size_t)size && size > 0 &&
           strncmp(thing + length - (size_t)size, end, (size_t)size) == 0;
  }
  if (key_begins(thing, "extern const uint64_t ", kernel, "_scratch[")) {
    return true;
  }
  if (key_begins(thing, "const uint64_t ", kernel, "_scratch[")) return true;
  if (key_begins(thing, "int ", kernel, "(const ")) return true;
  return !is_body && key_begins(thing, "int ", kernel, "_phase");
}

/* FNV-1a, on from @p hash. */
static inline uint64_t key_add(uint64_t hash, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001B3);
  }
  return hash;
}

/* The same over the C of kernel @p kernel. 0 without memory. */
static inline uint64_t key_hash(uint64_t hash, const char *text,
                                const char *kernel) {
  char *code = key_strip(text);
  if (!code) return 0;
  size_t length = 0;
  for (const char *thing = code; *thing; thing += length) {
    length = key_thing(thing);
    if (!key_skips(thing, length, kernel)) {
      hash = key_add(hash, thing, length);
    }
  }
  free(code);
  return hash;
}

#endif
