/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre devices` */
#include <string.h>

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "commands/device_text.h"
#include "plan/plan_json.h"

static void put_bytes(const char *what, uint64_t bytes, sink *out) {
  if (bytes >= UINT64_MAX / 4) { /* Kernels index elements with 32 bits. */
    sink_format(out, "fewer than 2^32 elements %s", what);
  } else {
    sink_format(out, "%llu bytes %s", (unsigned long long)bytes, what);
  }
}

/* Writes "what: text" with the text in the common column. */
static void put_details(const char *text, sink *out) {
  while (text && text[0]) {
    size_t length = strcspn(text, "\n"), head = strcspn(text, ":");
    if (head >= length) break;
    sink_format(out, "  %-10.*s %.*s\n", (int)head, text,
                (int)(length - head - 2), text + head + 2);
    text += length + (text[length] == '\n');
  }
}

/* Prints values as "a|b|c". */
static void put_values(const char *values, char separator, sink *out) {
  for (; *values; values++) {
    sink_format(out, "%c", *values == ' ' ? separator : *values);
  }
}

static void put_options(vyre_context *context, const char *backend, sink *out) {
  vyre_device_option o;
  for (size_t i = 0; vyre_context_device_option_at(context, backend, i, &o);
       i++) {
    sink_format(out, "  option     %s.%s=", backend, o.name);
    if (o.type == VYRE_OPTION_NUMBER && !o.values) {
      sink_format(out, "%llu..%llu", (unsigned long long)o.min,
                  (unsigned long long)o.max);
    } else {
      put_values(o.values ? o.values : "FILE",
                 o.type == VYRE_OPTION_SET ? '+' : '|', out);
    }
    sink_format(out, " (%s)\n", o.help);
  }
}

static void put_capabilities(const vyre_device_caps *caps, sink *out) {
  const struct {
    bool has;
    const char *name;
  } features[] = {{caps->has_f64, "f64"},
                  {caps->has_u64, "u64"},
                  {caps->has_atomics64, "atomics64"},
                  {caps->has_print, "print"},
                  {caps->has_checks, "checks"},
                  {caps->has_device_time, "device-time"},
                  {caps->borrows_host_memory, "host-memory"}};
  sink_format(out, "  workgroup  %u x %u x %u, at most %u invocations\n",
              caps->max_workgroup[0], caps->max_workgroup[1],
              caps->max_workgroup[2], caps->max_workgroup_invocations);
  sink_text(out, "  memory     ");
  put_bytes("of a buffer", caps->max_buffer_bytes, out);
  sink_text(out, ", ");
  put_bytes("shared by a workgroup", caps->max_shared_bytes, out);
  sink_text(out, "\n  has       ");
  for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
    if (features[i].has) sink_format(out, " %s", features[i].name);
  }
  sink_text(out, "\n");
  put_details(caps->details, out);
  sink_text(out, "  floats     ");
  put_number_summary(caps->float_ops, caps->float_op_count, out);
  sink_text(out, "\n");
  for (size_t i = 0; i < caps->float_op_count; i++) {
    const vyre_float_op_info *c = &caps->float_ops[i];
    if (c->mode == VYRE_FLOAT_MODE_NATIVE) continue;
    sink_format(out, "    %-12s %s: %llu of %llu results are wrong\n",
                c->operation, number_form_name(c->mode),
                (unsigned long long)c->wrong, (unsigned long long)c->tested);
  }
}

static void put_device(const device_entry *entry, sink *out) {
  const vyre_device_info *info = &entry->info;
  sink_format(out, "%s: ", info->name);
  if (info->is_available) {
    put_device_title(info, out);
  } else {
    sink_text(out, "not available");
  }
  sink_text(out, "\n");
  if (info->note[0]) sink_format(out, "  %.500s\n", info->note);
  put_device_origin(entry, "  ", out);
  put_device_fix(info, out);
  if (entry->device) {
    put_capabilities(vyre_device_get_caps(entry->device), out);
    put_options(entry->context, info->backend, out);
  } else if (info->is_available) {
    sink_format(out, "  does not open: %s\n  Fix: %s\n", entry->st.message,
                entry->st.fix);
  }
}

int cmd_devices(int count, char **words, bool json) {
  problem wrong = {0};
  sink out = {0};
  arguments spec = {.command = "devices"};
  if (!args_read(&spec, count, words, &wrong)) {
    return problem_report(&wrong, json);
  }
  json_out answer = {.out = &out};
  if (json) {
    json_open(&answer, NULL, '{');
    json_open(&answer, "devices", '[');
  }
  device_entry entry;
  bool opens = false;
  vyre_context *context;
  (void)!vyre_context_create(NULL, &context, NULL); /* NULL: devices say why */
  for (size_t i = 0; device_entry_open(context, i, &entry); i++) {
    opens = opens || entry.device;
    if (json) {
      json_device(&answer, NULL, &entry);
    } else {
      put_device(&entry, &out);
    }
    device_entry_deinit(&entry);
  }
  if (json) {
    json_close(&answer, ']');
    json_backends(&answer, context);
    json_bool(&answer, "ok", opens);
    json_end(&answer);
  } else {
    put_refused_backends(context, "", &out);
  }
  vyre_context_release(context);
  int code = publish(&out, NULL, NULL, json);
  return code == EXIT_FINE && !opens ? EXIT_DEVICE : code;
}
