/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Describes devices for `vyre devices` and `vyre doctor`. */
#ifndef VYRE_TOOLS_COMMANDS_DEVICE_TEXT_H
#define VYRE_TOOLS_COMMANDS_DEVICE_TEXT_H

#include "vyre/backend.h"
#include "vyre/device.h"

#include "io/json_out.h"

/* A device, or a backend without one. */
typedef struct device_entry {
  vyre_context *context; /* of the device */
  vyre_device_info info;
  vyre_device *device; /* NULL: missing, or failed to open */
  vyre_status st;      /* why it failed to open */
} device_entry;

/* Describes and opens device @p index in @p context. NULL: a context could not
 * be created; only the devices of the library are then listed. Returns false after the last device. device_entry_finish releases the
 * entry. */
bool device_entry_open(vyre_context *context, size_t index, device_entry *out);
void device_entry_deinit(device_entry *entry);

/* Writes "interpreter, vyre 0.1.0". */
void put_device_title(const vyre_device_info *info, sink *out);

/* Writes " (llvmpipe, the first of 2; 'vulkan:1' is the next)" for a device
 * that was opened by the name of a backend with several devices; otherwise
 * nothing. */
void put_device_among(vyre_context *context, const vyre_device *device,
                      sink *out);

/* Writes "<indent>from: FILE" for a device whose backend is not built in. */
void put_device_origin(const device_entry *entry, const char *indent,
                       sink *out);

/* Writes the backends that @p context has refused, with the reasons; or
 * nothing. */
void put_refused_backends(vyre_context *context, const char *indent, sink *out);

/* Writes "backends":[...]: where each backend is from, or why it was refused. */
void json_backends(json_out *json, vyre_context *context);

/* Writes "    Fix: ..." if there is a fix. */
void put_device_fix(const vyre_device_info *info, sink *out);

/* Writes how many float operations have which mode: "39 operations, all
 * native". */
void put_number_summary(const vyre_float_op_info *classes, size_t count,
                        sink *out);

/* Writes {"name":...} with everything known about the device. */
void json_device(json_out *json, const char *key, const device_entry *entry);

/* Writes "float_ops":[...]. */
void json_numbers(json_out *json, const char *key,
                  const vyre_float_op_info *classes, size_t count);

/* Returns "native", ... */
const char *number_form_name(vyre_float_mode form);

#endif
