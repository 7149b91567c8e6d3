/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzzes the parser with arbitrary bytes. An accepted file is printed, and
 * the text must parse to an equal program. It is also formatted: the programs
 * stay equal, and formatting again changes nothing. A rejected file must have
 * a diagnostic with a fix and a location inside the text. */
#include <stdlib.h>
#include <string.h>

#include "vyre/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)        \
  do {                         \
    if (!(condition)) abort(); \
  } while (0)

typedef struct printed {
  char *text;
  size_t length;
} printed;

static bool append(void *self, const char *text, size_t length) {
  printed *out = self;
  char *grown = realloc(out->text, out->length + length + 1);
  if (!grown) return false;
  memcpy(grown + out->length, text, length);
  out->text = grown;
  out->length += length;
  return true;
}

static vyre_module *parse_again(const char *text, size_t length) {
  vyre_module *module;
  vyre_status st = {0};
  MUST(vyre_module_parse(text, length, "again", (vyre_allocator){0}, &module,
                         NULL, &st) == VYRE_OK);
  return module;
}

static void check_print(const vyre_program *program) {
  printed out = {NULL, 0};
  MUST(vyre_program_print(program, (vyre_writer){append, &out}));
  vyre_module *again = parse_again(out.text, out.length);
  MUST(vyre_module_kernel_count(again) == 1);
  const vyre_program *other = vyre_module_kernel(again, 0);
  MUST(vyre_program_equal(program, other));
  vyre_hash128 a = vyre_program_fingerprint(program);
  vyre_hash128 b = vyre_program_fingerprint(other);
  MUST(a.high == b.high && a.low == b.low);
  vyre_module_release(again);
  free(out.text);
}

static void check_format(const vyre_module *module, const char *text,
                         size_t length) {
  vyre_arena arena = {0};
  vyre_status st = {0};
  const char *once, *twice;
  size_t once_length, twice_length;
  MUST(vyre_source_format(text, length, "text", &arena, &once, &once_length,
                          NULL, &st) == VYRE_OK);
  vyre_module *again = parse_again(once, once_length);
  size_t count = vyre_module_kernel_count(module);
  MUST(vyre_module_kernel_count(again) == count);
  for (size_t i = 0; i < count; i++) {
    MUST(vyre_program_equal(vyre_module_kernel(module, i),
                            vyre_module_kernel(again, i)));
  }
  vyre_module_release(again);
  MUST(vyre_source_format(once, once_length, "once", &arena, &twice,
                          &twice_length, NULL, &st) == VYRE_OK);
  MUST(once_length == twice_length && memcmp(once, twice, once_length) == 0);
  vyre_arena_deinit(&arena);
}

/* Returns the length of a line, or SIZE_MAX if the text has fewer lines. */
static size_t line_length(const char *text, size_t length, uint32_t line) {
  const char *at = text, *end = text + length;
  for (; line > 1; line--) {
    at = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (!at) return SIZE_MAX;
    at++;
  }
  const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
  return (size_t)((stop ? stop : end) - at);
}

static bool swallow(void *self, const char *text, size_t length) {
  (void)text;
  *(size_t *)self += length;
  return true;
}

static void check_findings(const vyre_diagnostics *found, const char *text,
                           size_t length) {
  MUST(found->count > 0 && found->count <= 20);
  for (size_t i = 0; i < found->count; i++) {
    const vyre_diagnostic *it = &found->items[i];
    MUST(it->rule[0] == 'V' && vyre_rule_find(it->rule));
    MUST(it->message[0] && it->fix[0] && it->length > 0);
    size_t bytes = line_length(text, length, it->line);
    MUST(it->line > 0 && it->column > 0 && bytes != SIZE_MAX);
    MUST(it->column <= bytes + 1);
    MUST(!it->note || (it->note_line > 0 && it->note_column > 0));
    if (i == 0) continue;
    const vyre_diagnostic *before = it - 1;
    MUST(before->line < it->line ||
         (before->line == it->line && before->column <= it->column));
  }
  size_t printed_bytes = 0;
  MUST(vyre_diagnostics_print(found, "text", text, length,
                              (vyre_writer){swallow, &printed_bytes}));
  MUST(printed_bytes > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  /* An exact copy, so that the sanitizer detects reads past the end. */
  char *text = malloc(size ? size : 1);
  if (!text) return 0;
  if (size > 0) memcpy(text, data, size);
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  vyre_module *module;
  vyre_code code = vyre_module_parse(text, size, "text", (vyre_allocator){0},
                                     &module, &found, &st);
  if (code == VYRE_OK) {
    MUST(module && found.count == 0);
    for (size_t i = 0; i < vyre_module_kernel_count(module); i++) {
      check_print(vyre_module_kernel(module, i));
    }
    check_format(module, text, size);
    vyre_module_release(module);
  } else {
    MUST(code == VYRE_INVALID_PROGRAM && !module);
    MUST(st.code == code && st.message[0] && st.fix[0]);
    check_findings(&found, text, size);
  }
  vyre_diagnostics_deinit(&found);
  free(text);
  return 0;
}
