/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Identifiers: names of the source where they can be C names. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "emit/c_internal.h"

enum { NAME_TEXT = 64 };

/* Words of C, of the headers that the file includes, and of its own. A variable
 * may have the name of a library function that the file does not call. */
static const char taken_anywhere[] =
    " alignas alignof asm auto bool break case char complex const continue "
    "default do double else enum extern false float for fortran goto i386 if "
    "imaginary inline int linux long noreturn register restrict return short "
    "signed sizeof static static_assert struct switch thread_local true "
    "typedef "
    "typeof union unix unsigned void volatile while "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t "
    "NULL INFINITY NAN HUGE_VAL HUGE_VALF HUGE_VALL INT32_MAX UINT32_MAX "
    "INT64_MAX UINT64_MAX memset memcpy "
    "fabsf fabs sqrtf sqrt fmaf fma floorf floor ceilf ceil truncf trunc rintf "
    "rint roundf round fmin fmax "
    "launch here scratch memory first_group group_count group next_group strip "
    "strip_end done status fuel local_x local_y local_z group_x group_y "
    "group_z "
    "grid_x grid_y grid_z first_x first_y first_z global_x global_y global_z ";

/* A function may not: compilers know these, and what they are. */
static const char taken_functions[] =
    " main abort abs acos acosf acosh asin asinf asinh atan atan2 atan2f atanf "
    "atanh calloc cbrt cbrtf clog cos cosf cosh coshf erf erfc exit exp exp10 "
    "exp10f exp2 exp2f expf expm1 expm1f fputc fputs fprintf free frexp fscanf "
    "fwrite gamma hypot hypotf index isalnum isalpha iscntrl isdigit isgraph "
    "islower isprint ispunct isspace isupper isxdigit j0 j1 jn labs ldexp "
    "lgamma "
    "llabs llrint llround log log10 log10f log1p log1pf log2 log2f logb logf "
    "lrint lround malloc memchr memcmp memmove modf nan nearbyint nextafter "
    "pow "
    "powf printf putc putchar puts realloc remainder remquo rindex scalb scanf "
    "signbit significand sin sincos sinf sinh sinhf snprintf sprintf sscanf "
    "stpcpy strcasecmp strcat strchr strcmp strcpy strcspn strdup strlen "
    "strncat "
    "strncmp strncpy strpbrk strrchr strspn strstr tan tanf tanh tanhf tgamma "
    "tolower toupper vprintf y0 y1 yn ";

static bool has_word(const char *words, const char *name) {
  size_t length = strlen(name);
  for (const char *at = words; (at = strstr(at, name)) != NULL; at += length) {
    if (at > words && at[-1] == ' ' && at[length] == ' ') return true;
  }
  return false;
}

/* v12 and len_x are names that the emitter makes. */
static bool looks_made(const char *name) {
  static const char *const prefixes[] = {"len_",  "rare_", "step_",
                                         "next_", "loop_", "vyre_"};
  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
  }
  return (name[0] == 'v' || name[0] == 't') && isdigit((unsigned char)name[1]);
}

/* @p from as a C name of at most 48 characters: other signs become '_'. */
static void spell(const char *from, char out[NAME_TEXT]) {
  size_t length = 0;
  if (!from || !from[0]) from = "unnamed";
  if (isdigit((unsigned char)from[0])) out[length++] = '_';
  for (; *from && length < 48; from++) {
    char c = *from;
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '_';
    out[length++] = '_';
    if (plain) out[length - 1] = c;
  }
  out[length] = '\0';
  if (out[0] == '_') { /* such names belong to compilers */
    memmove(out + 1, out, length + 1);
    out[0] = 'x';
  }
}

static bool is_among(const char *const *names, uint32_t count,
                     const char *name) {
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) return true;
  }
  return false;
}

static const char *copy_name(c_emitter *e, const char *name) {
  size_t length = strlen(name) + 1;
  char *copy = vyre_arena_alloc(e->arena, length, 1);
  return copy ? memcpy(copy, name, length) : NULL;
}

/* The C name of @p from, other than those before it in either list. */
static const char *unique_name(c_emitter *e, const char *from, uint32_t buffers,
                               uint32_t vars) {
  char base[NAME_TEXT], name[NAME_TEXT + 16];
  spell(from, base);
  snprintf(name, sizeof name, "%s", base);
  if (has_word(taken_anywhere, name) || looks_made(name) ||
      strcmp(name, e->name) == 0) {
    snprintf(name, sizeof name, "%s_", base);
  }
  for (unsigned i = 2; is_among(e->buffer_names, buffers, name) ||
                       is_among(e->var_names, vars, name);
       i++) {
    snprintf(name, sizeof name, "%s_%u", base, i);
  }
  return copy_name(e, name);
}

vyre_code c_make_names(c_emitter *e) {
  const vyre__low_kernel *kernel = e->kernel;
  char name[NAME_TEXT], kernel_name[NAME_TEXT + 8];
  spell(e->options->name ? e->options->name : kernel->name, name);
  bool taken =
      has_word(taken_anywhere, name) || has_word(taken_functions, name);
  snprintf(kernel_name, sizeof kernel_name, "%s%s", name,
           taken ? "_kernel" : "");
  e->name = copy_name(e, kernel_name);
  e->buffer_names = vyre__arena_array(e->arena, kernel->buffer_count,
                                      sizeof *e->buffer_names);
  e->slots =
      vyre__arena_array(e->arena, kernel->buffer_count, sizeof *e->slots);
  e->var_names =
      vyre__arena_array(e->arena, kernel->var_count, sizeof *e->var_names);
  if (!e->name || !e->buffer_names || !e->slots || !e->var_names) {
    return vyre__no_memory(e->st, "emit/c", "names", kernel->var_count);
  }
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    bool shared = kernel->buffers[i].kind == VYRE_MEMORY_SHARED;
    e->slots[i] = shared ? VYRE_NO_INDEX : e->slot_count++;
    e->buffer_names[i] = unique_name(e, kernel->buffers[i].name, i, 0);
    if (!e->buffer_names[i]) {
      return vyre__no_memory(e->st, "emit/c", "names", kernel->buffer_count);
    }
  }
  for (uint32_t i = 0; i < kernel->var_count; i++) {
    e->var_names[i] =
        unique_name(e, kernel->vars[i].name, kernel->buffer_count, i);
    if (!e->var_names[i]) {
      return vyre__no_memory(e->st, "emit/c", "names", kernel->var_count);
    }
  }
  return VYRE_OK;
}

const char *c_type(vyre_type type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return "bool";
    case VYRE_TYPE_U64:
    case VYRE_TYPE_I64:
      return "uint64_t";
    case VYRE_TYPE_F32:
      return "float";
    case VYRE_TYPE_F64:
      return "double";
    default:
      return "uint32_t";
  }
}

const char *c_zero(vyre_type type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return "false";
    case VYRE_TYPE_F32:
      return "0.0f";
    case VYRE_TYPE_F64:
      return "0.0";
    default:
      return "0";
  }
}
