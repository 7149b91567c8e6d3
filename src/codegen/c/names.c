/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates C identifiers from the names in the source. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/c/internal.h"

enum { NAME_TEXT = C_NAME_SIZE };

static bool is_number(const char *text) {
  return text[0] && text[strspn(text, "0123456789")] == '\0';
}

/* Returns the rest of @p name after @p prefix, or NULL. */
static const char *after(const char *name, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

/* Returns true for names that the generator itself creates: v12, len_x,
 * saxpy_launch. None of them ends in '_', except lengths, which are registered
 * like other names. So an appended '_' avoids a clash. @p kernel may be
 * NULL. */
static bool is_generated(const char *name, const char *kernel) {
  static const char *const numbered[] = {"v",           "t",        "rare_",
                                         "loop_",       "step_",    "next_",
                                         "loop_bound_", "loop_at_", "uniform_"};
  for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
    const char *rest = after(name, numbered[i]);
    if (rest && is_number(rest)) return true;
  }
  const char *of = after(name, "len_");
  if (!of) of = after(name, "vyre_");
  if (of && isalpha((unsigned char)of[0])) return true;
  of = kernel ? after(name, kernel) : NULL;
  if (!of) return false;
  if (!of[0] || !strcmp(of, "_launch") || !strcmp(of, "_scratch")) return true;
  const char *rest = after(of, "_phase");
  if (!rest) rest = after(of, "_memory");
  return rest && is_number(rest);
}

/* Converts @p from to a C name of at most 48 characters. Other characters
 * become '_'. */
static void sanitize(const char *from, char out[NAME_TEXT]) {
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
  if (out[0] == '_') { /* reserved for compilers */
    memmove(out + 1, out, length + 1);
    out[0] = 'x';
  }
}

/* --- registered names ----------------------------------------------------- */

typedef struct name_entry {
  const char *name;
  uint32_t next; /* suffix to try at the next clash */
} name_entry;

typedef struct name_set {
  name_entry *all; /* open addressing; a power of two, at most half full */
  size_t mask;
} name_set;

static bool make_set(c_emitter *e, size_t count, name_set *out) {
  size_t capacity = 8;
  while (capacity / 2 < count) capacity *= 2;
  out->all = vyre__arena_array(e->arena, capacity, sizeof *out->all);
  out->mask = capacity - 1;
  if (!out->all) return false;
  memset(out->all, 0, capacity * sizeof *out->all);
  return true;
}

/* Returns the entry of a name, or the empty entry for it. */
static name_entry *find_name(const name_set *set, const char *name) {
  uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
  for (const char *at = name; *at; at++) {
    hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
  }
  size_t i = (size_t)(hash ^ hash >> 32) & set->mask;
  while (set->all[i].name && strcmp(set->all[i].name, name) != 0) {
    i = (i + 1) & set->mask;
  }
  return &set->all[i];
}

static bool is_free(const c_emitter *e, const char *name) {
  return !c_is_reserved(name) && !is_generated(name, e->name);
}

/* Returns true if the name is unused, and for a buffer also the name of its
 * length. */
static bool is_unused(const name_set *set, const char *name, bool has_length) {
  char length[NAME_TEXT + 24];
  snprintf(length, sizeof length, "len_%s", name);
  return !find_name(set, name)->name &&
         !(has_length && find_name(set, length)->name);
}

static const char *register_name(c_emitter *e, name_set *set,
                                 const char *name) {
  const char *copy = vyre__arena_text(e->arena, name);
  find_name(set, name)->name = copy;
  return copy;
}

/* Registers and returns a C name for @p from that differs from all registered
 * names. */
static const char *unique_name(c_emitter *e, const char *from, bool has_length,
                               name_set *set) {
  char base[NAME_TEXT] = "", name[NAME_TEXT + 16], length[NAME_TEXT + 24];
  sanitize(from, base);
  if (!is_free(e, base)) memcpy(base + strlen(base), "_", 2);
  snprintf(name, sizeof name, "%s", base);
  name_entry *first = find_name(set, base);
  for (uint32_t i = first->next ? first->next : 2;
       !is_unused(set, name, has_length); i++) {
    snprintf(name, sizeof name, "%s_%u", base, (unsigned)i);
    if (!is_free(e, name)) { /* "rare" is free, "rare_2" is not */
      snprintf(name, sizeof name, "%s__%u", base, (unsigned)i);
    }
    /* If only the length is taken, the name itself has no entry. */
    if (first->name) first->next = i + 1;
  }
  snprintf(length, sizeof length, "len_%s", name);
  if (has_length && !register_name(e, set, length)) return NULL;
  return register_name(e, set, name);
}

vyre_code c_make_names(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  char name[NAME_TEXT] = "", kernel_name[NAME_TEXT + 8];
  sanitize(e->options->name ? e->options->name : kernel->name, name);
  bool taken = c_is_reserved(name) || c_is_reserved_function(name) ||
               is_generated(name, NULL);
  snprintf(kernel_name, sizeof kernel_name, "%s%s", name,
           taken ? "_kernel" : "");
  e->name = vyre__arena_text(e->arena, kernel_name);
  e->buffer_names = vyre__arena_array(e->arena, kernel->buffer_count,
                                      sizeof *e->buffer_names);
  e->data_index =
      vyre__arena_array(e->arena, kernel->buffer_count, sizeof *e->data_index);
  e->var_names =
      vyre__arena_array(e->arena, kernel->var_count, sizeof *e->var_names);
  name_set set;
  if (!e->name || !e->buffer_names || !e->data_index || !e->var_names ||
      !make_set(e, 2 * (size_t)kernel->buffer_count + kernel->var_count,
                &set)) {
    return vyre__no_memory(e->st, "codegen/c", "names", kernel->var_count);
  }
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    bool shared = kernel->buffers[i].kind == VYRE_MEMORY_SHARED;
    e->data_index[i] = shared ? VYRE_NO_INDEX : e->data_count++;
    e->buffer_names[i] = unique_name(e, kernel->buffers[i].name, true, &set);
    if (!e->buffer_names[i]) {
      return vyre__no_memory(e->st, "codegen/c", "names", kernel->buffer_count);
    }
  }
  for (uint32_t i = 0; i < kernel->var_count; i++) {
    e->var_names[i] = unique_name(e, kernel->vars[i].name, false, &set);
    if (!e->var_names[i]) {
      return vyre__no_memory(e->st, "codegen/c", "names", kernel->var_count);
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
