/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "commands/embed/internal.h"

/* Keywords of C and C++, and lower-case macros of their libraries and of
 * POSIX. No parameter may have such a name. */
static const char *const words[] = {"I",
                                    "NULL",
                                    "alignas",
                                    "alignof",
                                    "and",
                                    "and_eq",
                                    "asm",
                                    "auto",
                                    "bitand",
                                    "bitor",
                                    "bool",
                                    "break",
                                    "case",
                                    "catch",
                                    "char",
                                    "char16_t",
                                    "char32_t",
                                    "char8_t",
                                    "class",
                                    "co_await",
                                    "co_return",
                                    "co_yield",
                                    "compl",
                                    "complex",
                                    "concept",
                                    "const",
                                    "const_cast",
                                    "consteval",
                                    "constexpr",
                                    "constinit",
                                    "continue",
                                    "d_fileno",
                                    "decltype",
                                    "default",
                                    "delete",
                                    "do",
                                    "double",
                                    "dynamic_cast",
                                    "else",
                                    "enum",
                                    "errno",
                                    "explicit",
                                    "export",
                                    "extern",
                                    "false",
                                    "float",
                                    "for",
                                    "friend",
                                    "goto",
                                    "h_addr",
                                    "h_errno",
                                    "i386",
                                    "if",
                                    "imaginary",
                                    "inline",
                                    "int",
                                    "int16_t",
                                    "int32_t",
                                    "int64_t",
                                    "int8_t",
                                    "linux",
                                    "long",
                                    "main",
                                    "math_errhandling",
                                    "mutable",
                                    "namespace",
                                    "new",
                                    "noexcept",
                                    "noreturn",
                                    "not",
                                    "not_eq",
                                    "nullptr",
                                    "operator",
                                    "or",
                                    "or_eq",
                                    "private",
                                    "protected",
                                    "ptrdiff_t",
                                    "public",
                                    "register",
                                    "reinterpret_cast",
                                    "requires",
                                    "restrict",
                                    "return",
                                    "s6_addr",
                                    "s6_addr16",
                                    "s6_addr32",
                                    "sa_handler",
                                    "sa_sigaction",
                                    "short",
                                    "si_addr",
                                    "si_addr_lsb",
                                    "si_arch",
                                    "si_band",
                                    "si_call_addr",
                                    "si_fd",
                                    "si_int",
                                    "si_lower",
                                    "si_overrun",
                                    "si_pid",
                                    "si_pkey",
                                    "si_ptr",
                                    "si_status",
                                    "si_stime",
                                    "si_syscall",
                                    "si_timerid",
                                    "si_uid",
                                    "si_upper",
                                    "si_utime",
                                    "si_value",
                                    "sigev_notify_attributes",
                                    "sigev_notify_function",
                                    "signed",
                                    "size_t",
                                    "sizeof",
                                    "st_atime",
                                    "st_ctime",
                                    "st_mtime",
                                    "static",
                                    "static_assert",
                                    "static_cast",
                                    "stderr",
                                    "stdin",
                                    "stdout",
                                    "struct",
                                    "switch",
                                    "template",
                                    "this",
                                    "thread_local",
                                    "throw",
                                    "true",
                                    "try",
                                    "typedef",
                                    "typeid",
                                    "typename",
                                    "typeof",
                                    "uint16_t",
                                    "uint32_t",
                                    "uint64_t",
                                    "uint8_t",
                                    "uintptr_t",
                                    "union",
                                    "unix",
                                    "unsigned",
                                    "using",
                                    "virtual",
                                    "void",
                                    "volatile",
                                    "wchar_t",
                                    "while",
                                    "xor",
                                    "xor_eq"};

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
  return false;
}

/* Returns true if the start of the name is reserved, so that no suffix
 * helps: for compilers, for the library and, for a parameter, for macros. */
static bool is_others(const char *name, bool is_parameter) {
  bool is_capital = name[0] >= 'A' && name[0] <= 'Z';
  return !is_letter(name[0]) || name[0] == '_' ||
         strncmp(name, "vyre_", 5) == 0 || strncmp(name, "VYRE_", 5) == 0 ||
         (is_parameter && is_capital && name[1]);
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
  const char **space =
      (const char **)list_add(&set->list, sizeof(char *), set->arena);
  if (space && name) *space = name;
  return space && name;
}

static bool is_free(const name_set *own, const name_set *other,
                    const char *name, bool is_parameter,
                    const char *const *endings) {
  char longer[MAX_NAME + 64];
  if ((is_parameter && is_word(name)) || is_taken(own, name) ||
      is_taken(other, name)) {
    return false;
  }
  for (; *endings; endings++) {
    (void)snprintf(longer, sizeof longer, "%s%s", name, *endings);
    if (is_taken(own, longer) || is_taken(other, longer)) return false;
  }
  return true;
}

const char *unique_name(name_set *own, const name_set *other,
                        const char *prefix, const char *name, bool is_parameter,
                        const char *const *endings) {
  char made[MAX_NAME];
  const char *begin =
      is_others(*prefix ? prefix : name, is_parameter) ? "k_" : "";
  int length = snprintf(made, sizeof made - 24, "%s%s%s", begin, prefix, name);
  if (length < 0) return NULL;
  for (char *at = made; *at; at++) {
    if (!is_plain(*at)) *at = '_';
  }
  size_t end = strlen(made);
  for (unsigned n = 1; !is_free(own, other, made, is_parameter, endings); n++) {
    (void)snprintf(made + end, sizeof made - end, n == 1 ? "_" : "_%u", n);
  }
  const char *kept = join(own->arena, made, "");
  bool fine = kept && take(own, kept);
  for (; fine && *endings; endings++) {
    fine = take(own, join(own->arena, kept, *endings));
  }
  return fine ? kept : NULL;
}
