/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "embed.h"

/* Words of C and C++, and names that every program has. */
static const char *const words[] = {
    "NULL",        "alignas",      "alignof",
    "and",         "and_eq",       "asm",
    "auto",        "bitand",       "bitor",
    "bool",        "break",        "case",
    "catch",       "char",         "char16_t",
    "char32_t",    "char8_t",      "class",
    "co_await",    "co_return",    "co_yield",
    "compl",       "concept",      "const",
    "const_cast",  "consteval",    "constexpr",
    "constinit",   "continue",     "decltype",
    "default",     "delete",       "do",
    "double",      "dynamic_cast", "else",
    "enum",        "errno",        "explicit",
    "export",      "extern",       "false",
    "float",       "for",          "friend",
    "goto",        "if",           "inline",
    "int",         "int16_t",      "int32_t",
    "int64_t",     "int8_t",       "linux",
    "long",        "main",         "mutable",
    "namespace",   "new",          "noexcept",
    "not",         "not_eq",       "nullptr",
    "operator",    "or",           "or_eq",
    "private",     "protected",    "ptrdiff_t",
    "public",      "register",     "reinterpret_cast",
    "requires",    "restrict",     "return",
    "short",       "signed",       "size_t",
    "sizeof",      "static",       "static_assert",
    "static_cast", "struct",       "switch",
    "template",    "this",         "thread_local",
    "throw",       "true",         "try",
    "typedef",     "typeid",       "typename",
    "typeof",      "uint16_t",     "uint32_t",
    "uint64_t",    "uint8_t",      "uintptr_t",
    "union",       "unix",         "unsigned",
    "using",       "virtual",      "void",
    "volatile",    "wchar_t",      "while",
    "xor",         "xor_eq"};

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_plain(char c) {
  return is_letter(c) || (c >= '0' && c <= '9');
}

bool is_identifier(const char *text) {
  if (!is_letter(text[0]) || text[0] == '_') return false;
  while (*text && is_plain(*text)) text++;
  return *text == '\0';
}

static bool is_word(const char *name) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(words[i], name) == 0) return true;
  }
  /* Names of the library, and those that belong to compilers. */
  return strncmp(name, "vyre_", 5) == 0 || strncmp(name, "VYRE_", 5) == 0;
}

static bool is_taken(const name_set *set, const char *name) {
  const char *const *names = set ? set->list.items : NULL;
  for (size_t i = 0; set && i < set->list.count; i++) {
    if (strcmp(names[i], name) == 0) return true;
  }
  return false;
}

static const char *join(vyre_arena *arena, const char *a, const char *b) {
  size_t size = strlen(a) + strlen(b) + 1;
  char *made = vyre_arena_alloc(arena, size, 1);
  if (made) (void)snprintf(made, size, "%s%s", a, b);
  return made;
}

static bool take(name_set *set, const char *name) {
  const char **room =
      (const char **)list_add(&set->list, sizeof(char *), set->arena);
  if (room && name) *room = name;
  return room && name;
}

static bool is_free(const name_set *own, const name_set *other,
                    const char *name, const char *const *endings) {
  char longer[MOST_NAME + 64];
  if (is_word(name) || is_taken(own, name) || is_taken(other, name)) {
    return false;
  }
  for (; *endings; endings++) {
    (void)snprintf(longer, sizeof longer, "%s%s", name, *endings);
    if (is_taken(own, longer) || is_taken(other, longer)) return false;
  }
  return true;
}

const char *unique_name(name_set *own, const name_set *other,
                        const char *prefix, const char *name,
                        const char *const *endings) {
  char made[MOST_NAME];
  /* A name that begins as compilers' own do gets a letter before it. */
  const char *begin = !prefix[0] && !is_identifier(name) &&
                              (!is_letter(name[0]) || name[0] == '_')
                          ? "k"
                          : "";
  int length = snprintf(made, sizeof made - 24, "%s%s%s", begin, prefix, name);
  if (length < 0) return NULL;
  for (char *at = made; *at; at++) {
    if (!is_plain(*at)) *at = '_';
  }
  size_t end = strlen(made);
  for (unsigned n = 1; !is_free(own, other, made, endings); n++) {
    (void)snprintf(made + end, sizeof made - end, n == 1 ? "_" : "_%u", n);
  }
  const char *kept = join(own->arena, made, "");
  bool fine = kept && take(own, kept);
  for (; fine && *endings; endings++) {
    fine = take(own, join(own->arena, kept, *endings));
  }
  return fine ? kept : NULL;
}
