/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `vyre devices` and `vyre doctor` tell of devices. */
#ifndef VYRE_TOOLS_COMMANDS_DEVICE_TEXT_H
#define VYRE_TOOLS_COMMANDS_DEVICE_TEXT_H

#include "vyre/device.h"

#include "io/json_out.h"

/* One that is there, or a backend without any. */
typedef struct device_entry {
  vyre_device_info info;
  vyre_device *device; /* NULL: it is not there, or does not open */
  vyre_status st;      /* why it does not */
} device_entry;

/* Describes and opens device @p index of all, in @p context (NULL: the process's
 * own); false beyond the last. Ended by
 * device_entry_finish. */
bool device_entry_open(vyre_context *context, size_t index, device_entry *out);
void device_entry_finish(device_entry *entry);

/* "interpreter, vyre 0.1.0" */
void put_device_title(const vyre_device_info *info, sink *out);

/* " (llvmpipe, the first of 2; 'vulkan:1' is the next)" for a device that was opened
 * by the name of a backend with several, else nothing. */
void put_device_among(const vyre_device *device, sink *out);

/* "    Fix: ...", where there is something to do about it. */
void put_device_fix(const vyre_device_info *info, sink *out);

/* How many operations have which form, in words: "39 operations, all native". */
void put_number_summary(const vyre_float_op_info *classes, size_t count,
                        sink *out);

/* {"name":...}: all that is known. */
void json_device(json_out *json, const char *key, const device_entry *entry);

/* "float_ops":[...] */
void json_numbers(json_out *json, const char *key,
                  const vyre_float_op_info *classes, size_t count);

/* "native", ... */
const char *number_form_name(vyre_float_mode form);

#endif
