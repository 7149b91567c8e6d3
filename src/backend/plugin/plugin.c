/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the table of a backend, and opens its devices. */
#include "backend/plugin/plugin.h"

#include <string.h>

#include "vyre/validate.h"

#include "base/enum_name.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/utf8.h"
#include "hal/plugin.h"
#include "ir/ir.h"

VYRE__ENUM_NAME(vyre_backend_form_name, vyre_backend_form,
                VYRE_BACKEND_FORM_MAP)

/* --- failures --------------------------------------------------------------*/

vyre_code plugin_report(const vyre_backend *table, vyre_device *device,
                        const char *function, vyre_code code,
                        const vyre_status *own, vyre_code fallback,
                        vyre_status *st) {
  if (code == VYRE_OK) return VYRE_OK;
  if (vyre_code_name(code)[0] == '?') code = fallback;
  if (code == VYRE_DEVICE_LOST && device) vyre__device_lose(device);
  vyre_status_number numbers[VYRE__CAUSE_NUMBERS + 1] = {{0}};
  for (uint32_t i = 0; i < own->number_count && i < VYRE__CAUSE_NUMBERS; i++) {
    numbers[i] = own->numbers[i];
  }
  char fix[sizeof own->fix];
  (void)snprintf(fix, sizeof fix, "%.*s", (int)sizeof own->fix - 1, own->fix);
  bool has_kind = vyre_kind_name(own->kind)[0] != '?';
  const vyre__failure failure = {
      .code = code,
      .kind = has_kind ? own->kind : VYRE_KIND_NONE,
      .numbers = numbers,
      .fix = fix[0] ? fix : "report this to the author of the backend",
      .file = __FILE__,
      .line = __LINE__};
  vyre_status *open = vyre__status_open(st);
  if (own->message[0]) {
    vyre__fail(st, &failure, "backend '%.31s': %.*s", table->name,
               (int)sizeof own->message - 48, own->message);
  } else {
    vyre__fail(st, &failure,
               "backend '%.31s': %s failed with code %d and no message",
               table->name, function, (int)code);
  }
  if (open) open->native_code = own->native_code;
  return code;
}

/* --- the table -------------------------------------------------------------*/

static bool is_name(const char *name, size_t max) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return name[0] >= 'a' && name[0] <= 'z' && name[length] == '\0' &&
         length <= max;
}

static vyre_code check_version(const vyre_backend *table, vyre_status *st) {
  if (table->abi == VYRE_BACKEND_ABI &&
      table->struct_size == sizeof(vyre_backend)) {
    return VYRE_OK;
  }
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "abi",
      VYRE_NUMBERS({"abi", table->abi}, {"expected_abi", VYRE_BACKEND_ABI},
                   {"table_bytes", table->struct_size},
                   {"expected_bytes", sizeof(vyre_backend)}),
      "build the backend with the headers of this version of vyre",
      "the table of the backend has version %u with %u bytes; expected version "
      "%d with %zu bytes",
      table->abi, table->struct_size, VYRE_BACKEND_ABI, sizeof(vyre_backend));
}

static vyre_code check_name(const vyre_backend *table, vyre_status *st) {
  const char *name = table->name;
  if (name && is_name(name, VYRE_BACKEND_NAME - 1) &&
      strcmp(name, "auto") != 0 && strcmp(name, "all") != 0) {
    return VYRE_OK;
  }
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "name", NULL,
      "use 1 to 31 lower-case letters, digits and '_', with a letter first, "
      "and not auto or all",
      "invalid name of a backend: '%s'",
      name ? vyre__name(name, shown) : "(NULL)");
}

/* Returns the name of a function that the table lacks, or NULL. */
static const char *missing_function(const vyre_backend *table) {
  bool has_buffers = table->buffer_create || table->buffer_destroy ||
                     table->buffer_write || table->buffer_read;
  const struct {
    bool exists;
    const char *name;
  } functions[] = {{table->describe, "describe"},
                   {table->device_open, "device_open"},
                   {table->kernel_load, "kernel_load"},
                   {table->launch, "launch"},
                   {!has_buffers || table->buffer_create, "buffer_create"},
                   {!has_buffers || table->buffer_destroy, "buffer_destroy"},
                   {!has_buffers || table->buffer_write, "buffer_write"},
                   {!has_buffers || table->buffer_read, "buffer_read"}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (!functions[i].exists) return functions[i].name;
  }
  return NULL;
}

static size_t count_words(const char *text) {
  size_t count = 0;
  for (; *text; text++) count += *text != ' ' && (text[1] == ' ' || !text[1]);
  return count;
}

static bool is_option(const vyre_device_option *o) {
  if (!o->name || !is_name(o->name, VYRE_BACKEND_NAME - 1) || !o->help ||
      o->min > o->max || o->max > UINT32_MAX) {
    return false;
  }
  for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++) {
    if (o->reserved[i]) return false;
  }
  if (o->type == VYRE_OPTION_ENUM) {
    return o->values && count_words(o->values) == o->max - o->min + 1;
  }
  return o->type == VYRE_OPTION_NUMBER ||
         (o->type == VYRE_OPTION_PATH && !o->values);
}

static vyre_code check_options(const vyre_backend *table, vyre_status *st) {
  enum { MAX_OPTIONS = 64 };
  if (table->option_count > MAX_OPTIONS ||
      (table->option_count > 0 && !table->options)) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          "options",
                          VYRE_NUMBERS({"options", table->option_count},
                                       {"max_options", MAX_OPTIONS}),
                          "set `options` to an array of `option_count` options",
                          "backend '%s' has an invalid list of %zu options",
                          table->name, table->option_count);
  }
  for (size_t i = 0; i < table->option_count; i++) {
    const char *name = table->options[i].name;
    for (size_t k = 0; k < i && name; k++) {
      const char *other = table->options[k].name;
      if (!other || strcmp(name, other) != 0) continue;
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "options",
          VYRE_NUMBERS({"index", i}, {"other_index", k}),
          "give each option a name of its own",
          "options %zu and %zu of backend '%s' have the same name", k, i,
          table->name);
    }
    if (is_option(&table->options[i])) continue;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "options",
        VYRE_NUMBERS({"index", i}),
        "set its name, its help, a range up to 2^32-1, and one value for each "
        "number of an enum",
        "option %zu of backend '%s' is not valid", i, table->name);
  }
  return VYRE_OK;
}

static vyre_code check_table(const vyre_backend *table, vyre_status *st) {
  VYRE_TRY(check_version(table, st));
  VYRE_CHECK_RESERVED(st, "vyre_backend_register", table);
  VYRE_TRY(check_name(table, st));
  const char *missing = missing_function(table);
  if (missing) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, missing, NULL,
        "set describe, device_open, kernel_load and launch, and all four "
        "functions of buffers or none",
        "the table of backend '%s' has no function %s", table->name, missing);
  }
  bool has_form = (unsigned)table->form < VYRE_BACKEND_FORM_COUNT;
  bool is_binary = table->form == VYRE_BACKEND_FORM_BINARY;
  if (!has_form || (is_binary && !table->is_exact)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        has_form ? "is_exact" : "form",
        VYRE_NUMBERS({"form", (unsigned)table->form}),
        "use a form of vyre/backend.h, and set is_exact for the binary form",
        "backend '%s' takes kernels of form %u, %s", table->name,
        (unsigned)table->form,
        has_form ? "but is not exact" : "which does not exist");
  }
  return check_options(table, st);
}

/* --- devices ---------------------------------------------------------------*/

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  const vyre_backend *table = ((const plugin_backend *)self)->table;
  vyre_device_info info = {
      .description = "", .driver = "", .note = "", .fix = ""};
  bool exists = table->describe(table, index, &info);
  out->description = info.description ? info.description : "";
  out->driver = info.driver ? info.driver : "";
  out->note = info.note ? info.note : "";
  out->fix = info.fix ? info.fix : "";
  return exists;
}

/* Reads the values of the options of the table for @p device. */
static vyre_code read_options(const vyre_device *device, vyre_arena *arena,
                              const vyre_backend_option_value **out,
                              vyre_status *st) {
  const vyre_backend *table = plugin_table(device);
  vyre_backend_option_value *values =
      vyre__arena_filled(arena, table->option_count + 1, sizeof *values, 0);
  if (!values) return vyre__no_memory(st, table->name, "options", 1);
  *out = values;
  for (size_t i = 0; i < table->option_count; i++) {
    const vyre_device_option *o = &table->options[i];
    size_t size;
    const char *text = vyre__device_option_text(device, o->name, &size);
    if (!text) continue;
    values[i].is_set = true;
    if (o->type != VYRE_OPTION_PATH) {
      values[i].number = vyre__device_option(device, o->name, 0);
      continue;
    }
    char *copy = vyre_arena_alloc(arena, size + 1, 1);
    if (!copy) return vyre__no_memory(st, table->name, "options", 1);
    memcpy(copy, text, size);
    copy[size] = '\0';
    values[i].text = copy;
  }
  return VYRE_OK;
}

static bool is_power_of_two(uint64_t n) {
  return n > 0 && (n & (n - 1)) == 0;
}

/* Returns the name of a field of an opened device that is not valid, or
 * NULL. */
static const char *invalid_field(const vyre_backend *table,
                                 const vyre_backend_device *d) {
  const vyre_device_caps *caps = &d->caps;
  uint64_t reserved = 0;
  for (size_t i = 0; i < 4; i++) {
    reserved |= caps->reserved[i] | d->reserved[i] | d->spirv.reserved[i];
  }
  if (reserved) return "reserved";
  for (int axis = 0; axis < 3; axis++) {
    if (caps->max_workgroup[axis] == 0) return "caps.max_workgroup";
  }
  if (caps->max_workgroup_invocations == 0) {
    return "caps.max_workgroup_invocations";
  }
  if (caps->max_buffer_bytes == 0) return "caps.max_buffer_bytes";
  if (!is_power_of_two(caps->host_alignment) ||
      caps->host_alignment > (1 << 20)) {
    return "caps.host_alignment";
  }
  if (!is_power_of_two(d->offset_alignment) ||
      d->offset_alignment > (1 << 20)) {
    return "offset_alignment";
  }
  if (!table->buffer_create && !caps->borrows_host_memory) {
    return "caps.borrows_host_memory";
  }
  /* Generated C uses all types. */
  bool has_all = caps->has_f64 && caps->has_u64 && caps->has_atomics64;
  bool is_c = table->form == VYRE_BACKEND_FORM_C;
  return is_c && !has_all ? "caps.has_f64" : NULL;
}

static void close_device(const plugin_device *own) {
  const vyre_backend *table = plugin_table(&own->base);
  if (table->device_close) table->device_close(own->opened.device);
}

/* Fills in what a zeroed field stands for, and checks the rest. */
static vyre_code take_device(plugin_device *own, vyre_status *st) {
  const vyre_backend *table = plugin_table(&own->base);
  vyre_backend_device *d = &own->opened;
  if (d->caps.host_alignment == 0) d->caps.host_alignment = 1;
  if (d->offset_alignment == 0) d->offset_alignment = 1;
  for (int axis = 0; axis < 3; axis++) {
    if (d->max_groups[axis] == 0) d->max_groups[axis] = UINT32_MAX;
  }
  const char *field = invalid_field(table, d);
  if (field) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, field, NULL,
        "correct device_open of the backend; vyre/backend.h states what is "
        "valid",
        "backend '%s' opened a device with an invalid value of %s", table->name,
        field);
  }
  vyre_device_caps *caps = &own->base.caps;
  *caps = d->caps;
  if (caps->max_workgroup_invocations > VYRE_MAX_INVOCATIONS) {
    caps->max_workgroup_invocations = VYRE_MAX_INVOCATIONS;
  }
  caps->has_print = caps->has_checks = caps->imports_host_memory = false;
  return VYRE_OK;
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  plugin_device *own = (plugin_device *)device;
  const vyre_backend *table = plugin_table(device);
  const vyre_backend_option_value *options;
  vyre_arena arena;
  vyre_arena_init(&arena, device->allocator);
  vyre_code code = read_options(device, &arena, &options, st);
  if (code == VYRE_OK) {
    vyre_status inner = {0};
    code =
        table->device_open(table, device->index, options, &own->opened, &inner);
    code = plugin_report(table, NULL, "device_open", code, &inner,
                         VYRE_UNSUPPORTED_FEATURE, st);
  }
  vyre_arena_deinit(&arena);
  VYRE_TRY(code);
  code = take_device(own, st);
  if (code != VYRE_OK) {
    close_device(own);
    return code;
  }
  pthread_mutex_init(&own->lock, NULL);
  return VYRE_OK;
}

static void device_deinit(vyre_device *device) {
  plugin_device *own = (plugin_device *)device;
  plugin_blocks_deinit(own);
  pthread_mutex_destroy(&own->lock);
  close_device(own);
}

/* --- making a backend ------------------------------------------------------*/

static const vyre__option float_mode = {
    .name = "float_mode",
    .max = 2,
    .help = "minimum float mode; native: as the probe found",
    .type = VYRE_OPTION_ENUM,
    .values = "native corrected soft"};

static void fill_options(plugin_backend *backend) {
  const vyre_backend *table = backend->table;
  for (size_t i = 0; i < table->option_count; i++) {
    const vyre_device_option *o = &table->options[i];
    backend->options[i] =
        (vyre__option){o->name, o->min, o->max, o->help, o->type, o->values};
  }
  if (!table->is_exact) backend->options[table->option_count] = float_mode;
}

static vyre__backend make_base(const plugin_backend *backend) {
  const vyre_backend *table = backend->table;
  bool has_buffers = table->buffer_create != NULL;
  bool is_lowered = table->form != VYRE_BACKEND_FORM_BINARY;
  return (vyre__backend){
      .abi = VYRE__BACKEND_ABI,
      .struct_size = sizeof(vyre__backend),
      .name = table->name,
      .precedence = table->precedence,
      .is_exact = table->is_exact,
      .counts_iterations = !is_lowered,
      .device_size = sizeof(plugin_device),
      .pipeline_size = sizeof(plugin_pipeline),
      .buffer_size = has_buffers ? sizeof(plugin_buffer) : 0,
      .describe = describe,
      .device_init = device_init,
      .device_deinit = device_deinit,
      .target = is_lowered ? plugin_target : NULL,
      .load = plugin_load,
      .pipeline_deinit = plugin_pipeline_deinit,
      .buffer_init = has_buffers ? plugin_buffer_init : NULL,
      .buffer_deinit = has_buffers ? plugin_buffer_deinit : NULL,
      .buffer_write = has_buffers ? plugin_buffer_write : NULL,
      .buffer_read = has_buffers ? plugin_buffer_read : NULL,
      .execute = plugin_execute,
      .options = backend->options};
}

vyre_code vyre__plugin_create(vyre_allocator allocator,
                              const vyre_backend *table, vyre__backend **out,
                              vyre_status *st) {
  VYRE_TRY(check_table(table, st));
  plugin_backend *backend = vyre__alloc_zeroed(allocator, sizeof *backend);
  if (!backend) return vyre__no_memory(st, table->name, "backends", 1);
  backend->table = table;
  backend->option_count = table->option_count + 2;
  backend->options = vyre__alloc_zeroed(
      allocator, backend->option_count * sizeof *backend->options);
  if (!backend->options) {
    vyre__resize(allocator, backend, sizeof *backend, 0);
    return vyre__no_memory(st, table->name, "options", backend->option_count);
  }
  fill_options(backend);
  backend->base = make_base(backend);
  *out = &backend->base;
  return VYRE_OK;
}

void vyre__plugin_destroy(vyre_allocator allocator, vyre__backend *backend) {
  plugin_backend *own = (plugin_backend *)backend;
  vyre__resize(allocator, own->options,
               own->option_count * sizeof *own->options, 0);
  vyre__resize(allocator, own, sizeof *own, 0);
}
