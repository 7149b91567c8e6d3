/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parses backend options such as "cpu.threads=2,cpu.width=8". A context stores
 * the text if every option is valid; a device reads those of its backend. The
 * value "auto" selects the default. */
#include "runtime/core/options.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "hal/backend.h"
#include "runtime/core/context.h"
#include "runtime/core/registry.h"

/* One "NAME.KEY=VALUE"; the fields point into the text. */
typedef struct option_text {
  const char *from; /* environment variable; NULL: passed by the program */
  const char *name, *key, *value;
  size_t name_size, key_size, value_size;
} option_text;

static bool parse_number(const char *text, size_t size, uint64_t *out) {
  *out = 0;
  for (size_t i = 0; i < size; i++) {
    if (text[i] < '0' || text[i] > '9' || *out > UINT32_MAX) return false;
    *out = *out * 10 + (uint64_t)(text[i] - '0');
  }
  return size > 0;
}

static bool text_equals(const char *text, size_t size, const char *word) {
  return strlen(word) == size && memcmp(text, word, size) == 0;
}

static bool is_auto(const option_text *o) {
  return text_equals(o->value, o->value_size, "auto");
}

/* Arguments for "%s%s" at the start of a message: the environment variable, if
 * the option came from one. */
#define FROM(from) (from) ? (from) : "", (from) ? ": " : ""

static const char *field_of(const char *from) {
  return from ? from : VYRE__FIELD_OPTIONS;
}

/* Parses the next option and moves *at behind it. Returns false at the end of
 * the text or before a syntax error. Does not check the value. */
static bool parse_next(const char **at, option_text *out) {
  if (!**at) return false;
  const char *end = *at + strcspn(*at, ",");
  const char *dot = memchr(*at, '.', (size_t)(end - *at));
  const char *equals = memchr(*at, '=', (size_t)(end - *at));
  if (!dot || !equals || dot == *at || equals <= dot + 1) return false;
  *out = (option_text){.name = *at,
                       .key = dot + 1,
                       .value = equals + 1,
                       .name_size = (size_t)(dot - *at),
                       .key_size = (size_t)(equals - dot - 1),
                       .value_size = (size_t)(end - equals - 1)};
  *at = end + (*end == ',');
  return true;
}

/* Returns the backend of that name in @p context, or NULL. */
static const vyre__backend *find_backend(const vyre_context *context,
                                         const char *name, size_t size) {
  vyre__backend_list storage;
  return vyre__backend_find(vyre__context_backends(context, &storage), name,
                            size);
}

static const vyre__option *option_of(const vyre__backend *backend,
                                     const option_text *o) {
  const vyre__option *known = backend->options;
  for (; known && known->name; known++) {
    if (text_equals(o->key, o->key_size, known->name)) return known;
  }
  return NULL;
}

/* Limits the length of a field in a message. */
static int shown(size_t size) {
  return size < 40 ? (int)size : 40;
}

static vyre_code unknown(const vyre__backend *backend, const option_text *o,
                         vyre_status *st) {
  char known[120] = "";
  int used = 0, size = (int)sizeof known;
  for (const vyre__option *k = backend->options; k && k->name; k++) {
    if (used >= size) break;
    used += snprintf(known + used, (size_t)(size - used), "%s%s",
                     used > 0 ? ", " : "", k->name);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field_of(o->from),
      NULL, "remove it, or use an option that the backend has",
      "%s%sbackend '%s' has no option '%.*s'%s%s", FROM(o->from), backend->name,
      shown(o->key_size), o->key, used ? "; it has " : "", known);
}

/* Finds the value among the names of the option, or among their numbers. */
static bool parse_enum(const vyre__option *known, const option_text *o,
                       uint64_t *out) {
  const char *at = known->values;
  for (*out = known->min; *at; ++*out) {
    size_t size = strcspn(at, " ");
    if (size == o->value_size && memcmp(at, o->value, size) == 0) return true;
    at += size + (at[size] == ' ');
  }
  return parse_number(o->value, o->value_size, out) && *out >= known->min &&
         *out <= known->max;
}

/* Returns the bit that @p name stands for in the set; 0: none. */
static uint64_t bit_of(const vyre__option *known, const char *name,
                       size_t length) {
  uint64_t bit = 1;
  for (const char *at = known->values; *at; bit <<= 1) {
    size_t size = strcspn(at, " ");
    if (text_equals(name, length, "all")) return known->max;
    if (size == length && memcmp(at, name, size) == 0) return bit;
    at += size + (at[size] == ' ');
  }
  return 0;
}

/* Finds the bits of names such as "a+b", or of their number. */
static bool parse_set(const vyre__option *known, const option_text *o,
                      uint64_t *out) {
  if (parse_number(o->value, o->value_size, out)) return *out <= known->max;
  const char *at = o->value, *end = o->value + o->value_size;
  *out = 0;
  for (;;) {
    const char *plus = memchr(at, '+', (size_t)(end - at));
    uint64_t bit = bit_of(known, at, (size_t)((plus ? plus : end) - at));
    if (!bit) return false;
    *out |= bit;
    if (!plus) return true;
    at = plus + 1;
  }
}

/* Finds the value of an option that has names. */
static bool parse_named(const vyre__option *known, const option_text *o,
                        uint64_t *out) {
  return known->type == VYRE_OPTION_SET ? parse_set(known, o, out)
                                        : parse_enum(known, o, out);
}

static bool has_names(const vyre__option *known) {
  return known->type == VYRE_OPTION_ENUM || known->type == VYRE_OPTION_SET;
}

/* Returns true if an option that is a number may have this value. */
static bool is_listed(const vyre__option *known, uint64_t value) {
  uint64_t one;
  for (const char *at = known->values; at && *at;) {
    size_t size = strcspn(at, " ");
    if (parse_number(at, size, &one) && one == value) return true;
    at += size + (at[size] == ' ');
  }
  return !known->values;
}

static vyre_code not_in(const vyre__backend *backend, const vyre__option *known,
                        const option_text *o, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field_of(o->from),
      VYRE_NUMBERS({"min", known->min}, {"max", known->max}),
      "use one of these values, or auto",
      "%s%soption '%s' of backend '%s' is '%.*s'; expected one of: %s",
      FROM(o->from), known->name, backend->name, shown(o->value_size), o->value,
      known->values);
}

static vyre_code not_names(const vyre__backend *backend,
                           const vyre__option *known, const option_text *o,
                           vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field_of(o->from),
      VYRE_NUMBERS({"max", known->max}),
      "join names from this list with '+', or use all or auto",
      "%s%soption '%s' of backend '%s' is '%.*s'; expected names from: %s",
      FROM(o->from), known->name, backend->name, shown(o->value_size), o->value,
      known->values);
}

static vyre_code check_path(const vyre__backend *backend, const option_text *o,
                            vyre_status *st) {
  if (o->value_size > 0 && o->value_size < VYRE__PATH_BYTES) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field_of(o->from),
      VYRE_NUMBERS({"bytes", o->value_size},
                   {"max_bytes", VYRE__PATH_BYTES - 1}),
      "use a path of that length, or auto",
      "%s%soption '%.*s' of backend '%s' is a path of %zu bytes; expected 1 to "
      "%d",
      FROM(o->from), shown(o->key_size), o->key, backend->name, o->value_size,
      VYRE__PATH_BYTES - 1);
}

/* Checks that @p backend has the option, and that the value is valid. */
static vyre_code check(const vyre__backend *backend, const option_text *o,
                       vyre_status *st) {
  const vyre__option *known = option_of(backend, o);
  uint64_t value;
  if (!known) return unknown(backend, o, st);
  if (is_auto(o)) return VYRE_OK;
  if (known->type == VYRE_OPTION_PATH) return check_path(backend, o, st);
  if (has_names(known) && parse_named(known, o, &value)) return VYRE_OK;
  if (known->type == VYRE_OPTION_SET) return not_names(backend, known, o, st);
  if (known->type == VYRE_OPTION_ENUM) return not_in(backend, known, o, st);
  if (!parse_number(o->value, o->value_size, &value)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        field_of(o->from),
        VYRE_NUMBERS({"min", known->min}, {"max", known->max}),
        "use a decimal number in that range, or auto",
        "%s%soption '%s' of backend '%s' is '%.*s'; expected a number from "
        "%llu to %llu, or auto",
        FROM(o->from), known->name, backend->name, shown(o->value_size),
        o->value, (unsigned long long)known->min,
        (unsigned long long)known->max);
  }
  if (value >= known->min && value <= known->max) {
    return is_listed(known, value) ? VYRE_OK : not_in(backend, known, o, st);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field_of(o->from),
      VYRE_NUMBERS({"value", value}, {"min", known->min}, {"max", known->max}),
      "use a number in that range",
      "%s%soption '%s' of backend '%s' is %llu; expected %llu to %llu",
      FROM(o->from), known->name, backend->name, (unsigned long long)value,
      (unsigned long long)known->min, (unsigned long long)known->max);
}

vyre_code vyre__options_add(vyre_context *context, const char *from,
                            const char *text, vyre_status *st) {
  if (!text || !text[0]) return VYRE_OK;
  size_t used = strlen(context->options);
  if (used > 0) used++; /* a comma */
  size_t length = strlen(text);
  const char *at = text;
  option_text o;
  if (length >= sizeof context->options - used) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field_of(from),
        VYRE_NUMBERS({"bytes", used + length},
                     {"max_bytes", sizeof context->options - 1}),
        "pass fewer options",
        "%s%sbackend options have %zu bytes; at most %zu are allowed",
        FROM(from), used + length, sizeof context->options - 1);
  }
  while (parse_next(&at, &o)) {
    const vyre__backend *backend = find_backend(context, o.name, o.name_size);
    o.from = from;
    if (backend) {
      VYRE_TRY(check(backend, &o, st));
      continue;
    }
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field_of(from),
        NULL, "start it with the name of a backend; `vyre devices` lists them",
        "%s%soption '%.*s': unknown backend '%.*s'", FROM(from),
        shown((size_t)(o.value + o.value_size - o.name)), o.name,
        shown(o.name_size), o.name);
  }
  if (*at) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          field_of(from), NULL,
                          "write BACKEND.KEY=VALUE, separated by commas; "
                          "VYRE_LLVM can name a file whose path has a comma",
                          "%s%sinvalid backend option '%.80s'", FROM(from), at);
  }
  if (text[length - 1] == ',') length--; /* the next text adds its own */
  if (used > 0) context->options[used - 1] = ',';
  memcpy(context->options + used, text, length);
  context->options[used + length] = '\0';
  return VYRE_OK;
}

/* Finds the last value of an option; false if it is not set, or set to auto. */
static bool find_option(const vyre_context *context, const char *backend,
                        const char *key, option_text *out) {
  const char *at = context->options;
  bool is_set = false;
  *out = (option_text){0};
  option_text o;
  while (parse_next(&at, &o)) {
    if (!text_equals(o.name, o.name_size, backend)) continue;
    if (!text_equals(o.key, o.key_size, key)) continue;
    is_set = !is_auto(&o);
    *out = o;
  }
  return is_set;
}

vyre_code vyre__llvm_set(vyre_context *context, const char *name,
                         vyre_status *st) {
  size_t length = name ? strlen(name) : 0;
  option_text o;
  bool is_set = find_option(context, "cpu", "llvm", &o);
  if (o.value) { /* "auto" overrides the variable, too */
    name = is_set ? o.value : NULL;
    length = is_set ? o.value_size : 0;
    context->is_llvm_option = is_set;
  }
  if (length >= sizeof context->llvm) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "VYRE_LLVM",
        VYRE_NUMBERS({"bytes", length},
                     {"max_bytes", sizeof context->llvm - 1}),
        "use a shorter path",
        "VYRE_LLVM: the path of the LLVM library has %zu bytes; at most %zu "
        "are allowed",
        length, sizeof context->llvm - 1);
  }
  if (name) memcpy(context->llvm, name, length);
  context->llvm[length] = '\0';
  return VYRE_OK;
}

const char *vyre__context_llvm(const vyre_context *context) {
  return context->llvm[0] ? context->llvm : NULL;
}

const char *vyre__context_llvm_source(const vyre_context *context) {
  return context->is_llvm_option ? "the option cpu.llvm" : "VYRE_LLVM";
}

static bool option_at(vyre__backends of, const char *backend, size_t index,
                      vyre_device_option *out) {
  const vyre__backend *found = vyre__backend_find(of, backend, strlen(backend));
  const vyre__option *o = found ? found->options : NULL;
  for (size_t i = 0; o && o->name && i < index; i++) o++;
  if (!o || !o->name) return false;
  *out = (vyre_device_option){o->name, o->min,  o->max,
                              o->help, o->type, o->values};
  return true;
}

bool vyre_device_option_at(const char *backend, size_t index,
                           vyre_device_option *out) {
  return backend && out &&
         option_at(vyre__built_in_backends(), backend, index, out);
}

bool vyre_context_device_option_at(vyre_context *context, const char *backend,
                                   size_t index, vyre_device_option *out) {
  vyre__backend_list storage;
  if (!backend || !out || vyre__context_acquire(&context, NULL) != VYRE_OK) {
    return false;
  }
  bool exists =
      option_at(vyre__context_backends(context, &storage), backend, index, out);
  vyre_context_release(context);
  return exists;
}

const char *vyre__device_option_text(const vyre_device *device, const char *key,
                                     size_t *size) {
  option_text o;
  if (!find_option(device->context, device->backend->name, key, &o)) {
    return NULL;
  }
  *size = o.value_size;
  return o.value;
}

vyre_code vyre__options_check(const vyre_device *device, vyre_status *st) {
  const char *at = device->context->options;
  option_text o;
  while (parse_next(&at, &o)) {
    if (!text_equals(o.name, o.name_size, device->backend->name)) continue;
    VYRE_TRY(check(device->backend, &o, st));
  }
  return VYRE_OK;
}

/* Returns the value of an option; the table of @p backend has its type. */
static uint64_t read_option(const vyre_context *context,
                            const vyre__backend *backend, const char *key,
                            uint64_t otherwise) {
  uint64_t value = otherwise;
  option_text o;
  if (!find_option(context, backend->name, key, &o)) return otherwise;
  const vyre__option *option = option_of(backend, &o);
  bool is_known = option && has_names(option)
                      ? parse_named(option, &o, &value)
                      : parse_number(o.value, o.value_size, &value);
  return is_known ? value : otherwise;
}

uint64_t vyre__context_option(const vyre_context *context, const char *backend,
                              const char *key, uint64_t otherwise) {
  const vyre__backend *known = find_backend(context, backend, strlen(backend));
  return known ? read_option(context, known, key, otherwise) : otherwise;
}

uint64_t vyre__device_option(const vyre_device *device, const char *key,
                             uint64_t otherwise) {
  return read_option(device->context, device->backend, key, otherwise);
}

uint64_t vyre_context_option(vyre_context *context, const char *backend,
                             const char *name, uint64_t otherwise) {
  if (!backend || !name) return otherwise;
  if (vyre__context_acquire(&context, NULL) != VYRE_OK) return otherwise;
  uint64_t value = vyre__context_option(context, backend, name, otherwise);
  vyre_context_release(context);
  return value;
}
