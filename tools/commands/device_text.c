/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "commands/device_text.h"

#include <stdio.h>
#include <string.h>

#include "cli/text.h"

bool device_entry_open(vyre_context *context, size_t index, device_entry *out) {
  memset(out, 0, sizeof *out);
  out->context = context;
  if (!(context ? vyre_context_device_info_at(context, index, &out->info)
                : vyre_device_info_at(index, &out->info))) {
    return false;
  }
  if (out->info.is_available &&
      vyre_device_open(context, out->info.name, &out->device, &out->st) !=
          VYRE_OK) {
    out->device = NULL;
  }
  return true;
}

void device_entry_deinit(device_entry *entry) {
  vyre_device_release(entry->device);
  entry->device = NULL;
}

void put_device_title(const vyre_device_info *info, sink *out) {
  sink_format(out, "%.200s%s%.200s", info->description,
              info->description[0] && info->driver[0] ? ", " : "",
              info->driver);
}

void put_device_among(vyre_context *context, const vyre_device *device,
                      sink *out) {
  vyre_device_info info;
  const char *first =
      strstr(vyre_device_selection_reason(device), "the first of ");
  if (!first) return; /* Listing devices must not load drivers. */
  for (size_t i = 0; vyre_context_device_info_at(context, i, &info); i++) {
    if (!info.is_available ||
        strcmp(info.name, vyre_device_name(device)) != 0) {
      continue;
    }
    sink_format(out, " (%.200s, %s)", info.description, first);
  }
}

/* --- backends --------------------------------------------------------------*/

/* Returns the file of a backend that is not built in, or NULL. */
static const char *origin_of(vyre_context *context, const char *backend) {
  vyre_backend_info info;
  for (size_t i = 0; context && vyre_backend_info_at(context, i, &info); i++) {
    if (!info.is_loaded || strcmp(info.name, backend) != 0) continue;
    return strcmp(info.origin, "built in") == 0 ? NULL : info.origin;
  }
  return NULL;
}

void put_device_origin(const device_entry *entry, const char *indent,
                       sink *out) {
  const char *origin = origin_of(entry->context, entry->info.backend);
  if (!origin) return;
  sink_format(out, "%sfrom: ", indent);
  show_bytes(out, origin, strlen(origin));
  sink_text(out, "\n");
}

void put_refused_backends(vyre_context *context, const char *indent,
                          sink *out) {
  vyre_backend_info info;
  for (size_t i = 0; context && vyre_backend_info_at(context, i, &info); i++) {
    if (info.is_loaded) continue;
    sink_format(out, "%srefused: ", indent);
    show_bytes(out, info.origin, strlen(info.origin));
    sink_format(out, "\n%s  %s\n%s  Fix: %s\n", indent, info.message, indent,
                info.fix);
  }
}

void json_backends(json_out *json, vyre_context *context) {
  vyre_backend_info info;
  json_open(json, "backends", '[');
  for (size_t i = 0; context && vyre_backend_info_at(context, i, &info); i++) {
    json_open(json, NULL, '{');
    json_text(json, "name", info.name);
    json_text(json, "origin", info.origin);
    json_bool(json, "loaded", info.is_loaded);
    if (info.is_loaded) {
      json_u64(json, "precedence", info.precedence);
    } else {
      json_text(json, "code", vyre_code_name(info.code));
      json_text(json, "kind", vyre_kind_name(info.kind));
      json_text(json, "error", info.message);
      json_text(json, "fix", info.fix);
    }
    json_close(json, '}');
  }
  json_close(json, ']');
}

void put_device_fix(const vyre_device_info *info, sink *out) {
  if (info->fix[0]) sink_format(out, "    Fix: %.300s\n", info->fix);
}

const char *number_form_name(vyre_float_mode form) {
#define VYRE_X2(name, text) [name] = (text),
  static const char *const names[] = {VYRE_FLOAT_MODE_MAP(VYRE_X2)};
#undef VYRE_X2
  return (unsigned)form < VYRE_FLOAT_MODE_COUNT ? names[form] : "?";
}

void put_number_summary(const vyre_float_op_info *classes, size_t count,
                        sink *out) {
  size_t forms[VYRE_FLOAT_MODE_COUNT] = {0}, tested = 0;
  for (size_t i = 0; i < count; i++) {
    if ((unsigned)classes[i].mode < VYRE_FLOAT_MODE_COUNT) {
      forms[classes[i].mode]++;
    }
    tested += classes[i].tested > 0;
  }
  sink_format(out, "%zu operations", count);
  if (forms[VYRE_FLOAT_MODE_NATIVE] == count) {
    sink_text(out, ", all native");
  } else {
    for (int i = 0; i < VYRE_FLOAT_MODE_COUNT; i++) {
      sink_format(out, "%s%zu %s", i ? ", " : ": ", forms[i],
                  number_form_name((vyre_float_mode)i));
    }
  }
  if (tested == 0) sink_text(out, " by definition");
}

void json_numbers(json_out *json, const char *key,
                  const vyre_float_op_info *classes, size_t count) {
  json_open(json, key, '[');
  for (size_t i = 0; i < count; i++) {
    json_open(json, NULL, '{');
    json_text(json, "operation", classes[i].operation);
    json_text(json, "form", number_form_name(classes[i].mode));
    json_u64(json, "tested", classes[i].tested);
    json_u64(json, "wrong", classes[i].wrong);
    json_close(json, '}');
  }
  json_close(json, ']');
}

static void json_capabilities(json_out *json, const vyre_device_caps *caps) {
  json_open(json, "capabilities", '{');
  json_open(json, "max_workgroup", '[');
  for (int axis = 0; axis < 3; axis++) {
    json_u64(json, NULL, caps->max_workgroup[axis]);
  }
  json_close(json, ']');
  json_u64(json, "max_workgroup_invocations", caps->max_workgroup_invocations);
  json_u64(json, "max_shared_bytes", caps->max_shared_bytes);
  json_u64(json, "max_buffer_bytes", caps->max_buffer_bytes);
  json_u64(json, "host_alignment", caps->host_alignment);
  json_bool(json, "borrows_host_memory", caps->borrows_host_memory);
  json_bool(json, "imports_host_memory", caps->imports_host_memory);
  json_bool(json, "has_device_time", caps->has_device_time);
  json_bool(json, "has_checks", caps->has_checks);
  json_bool(json, "has_print", caps->has_print);
  json_bool(json, "has_f64", caps->has_f64);
  json_bool(json, "has_u64", caps->has_u64);
  json_bool(json, "has_atomics64", caps->has_atomics64);
  json_bool(json, "is_stub", caps->is_stub);
  json_bool(json, "has_disk_cache", caps->has_disk_cache);
  if (caps->details) json_text(json, "details", caps->details);
  json_close(json, '}');
}

static const char *const option_types[] = {
#define VYRE_X(enumerator, name) [enumerator] = (name),
    VYRE_OPTION_TYPE_MAP(VYRE_X)
#undef VYRE_X
};

static bool option_at(vyre_context *context, const char *backend, size_t index,
                      vyre_device_option *out) {
  return context ? vyre_context_device_option_at(context, backend, index, out)
                 : vyre_device_option_at(backend, index, out);
}

static void json_options(json_out *json, vyre_context *context,
                         const char *backend) {
  vyre_device_option o;
  json_open(json, "options", '[');
  for (size_t i = 0; option_at(context, backend, i, &o); i++) {
    json_open(json, NULL, '{');
    json_text(json, "name", o.name);
    json_text(json, "type", option_types[o.type]);
    if (o.type != VYRE_OPTION_PATH) {
      json_u64(json, "min", o.min);
      json_u64(json, "max", o.max);
    }
    if (o.values) json_text(json, "values", o.values);
    json_text(json, "help", o.help);
    json_close(json, '}');
  }
  json_close(json, ']');
}

void json_device(json_out *json, const char *key, const device_entry *entry) {
  json_open(json, key, '{');
  json_text(json, "name", entry->info.name);
  json_text(json, "backend", entry->info.backend);
  json_u64(json, "index", entry->info.index);
  json_bool(json, "available", entry->info.is_available);
  json_bool(json, "opens", entry->device != NULL);
  json_text(json, "description", entry->info.description);
  json_text(json, "driver", entry->info.driver);
  json_text(json, "note", entry->info.note);
  if (entry->info.fix[0]) json_text(json, "remedy", entry->info.fix);
  if (entry->device) {
    const vyre_device_caps *caps = vyre_device_get_caps(entry->device);
    json_capabilities(json, caps);
    json_numbers(json, "float_ops", caps->float_ops, caps->float_op_count);
    json_options(json, entry->context, entry->info.backend);
  } else if (entry->info.is_available) {
    json_text(json, "error", entry->st.message);
    json_text(json, "fix", entry->st.fix);
  }
  json_close(json, '}');
}
