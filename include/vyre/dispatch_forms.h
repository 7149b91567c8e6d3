/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/dispatch_forms.h
 *  Dispatch forms: inline wrappers of vyre_submit. Each form sets the fields
 *  that it stands for and takes the rest from a descriptor.
 *
 *      vyre_host_buffer y = {0};
 *      vyre_output outputs[] = {vyre_output_host_buffer(&y, 0)};
 *      vyre_code code = vyre_dispatch_borrowed_into(pipeline, inputs, 3,
 *                                                   outputs, 1, NULL, &st);
 *
 *  Forms differ in how they handle memory. All give the bits of
 *  vyre_device_run_program. Common to all forms:
 *  - config: every field except the bindings (grid, variant, timeout, label
 *    and so on). NULL: zeroed. Its inputs, outputs and resources are ignored.
 *  - inputs, outputs: in input and output order of the binding plan.
 *  - Forms without `into` give host buffers new memory and free the old. No
 *    input may use the old memory. On failure the host buffers are empty, and
 *    outputs in memory of the caller are unspecified.
 *  - Forms with `into` reuse the memory of host buffers: a repeated dispatch
 *    allocates nothing.
 *  Ownership: borrows all arguments.
 *  Lifetime:  the memory can be changed or freed when the call returns.
 *  Threads:   safe; host buffers are compatible.
 *  Blocks:    until the dispatch has finished. Use vyre_submit with a fence to
 *             return earlier.
 *  Errors:    those of vyre_submit. */
#ifndef VYRE_DISPATCH_FORMS_H
#define VYRE_DISPATCH_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "vyre/buffer.h"
#include "vyre/dispatch.h"
#include "vyre/export.h"
#include "vyre/pipeline.h"
#include "vyre/status.h"

VYRE_BEGIN

/* --- Helpers ----------------------------------------------------------------*/

/** Private: returns @p config with these bindings.
 *  Threads: safe.  Blocks: never.  Errors: none. */
static inline vyre_dispatch_desc vyre_detail_form_desc(
    const vyre_input *inputs, size_t input_count, const vyre_output *outputs,
    size_t output_count, const vyre_dispatch_desc *config) {
  vyre_dispatch_desc result;
  if (config) {
    result = *config;
  } else {
    memset(&result, 0, sizeof result);
  }
  result.inputs = inputs;
  result.input_count = input_count;
  result.outputs = outputs;
  result.output_count = output_count;
  result.resources = NULL;
  result.resource_count = 0;
  return result;
}

/** Private: frees the memory of all host buffers in @p outputs.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
static inline void vyre_detail_form_empty(const vyre_output *outputs,
                                          size_t count) {
  for (size_t i = 0; outputs && i < count; i++) {
    vyre_host_buffer_deinit(outputs[i].host_buffer);
  }
}

/** Private: submits a batch with has_fresh_outputs set in all @p items. */
static inline VYRE_NODISCARD vyre_code
vyre_detail_form_fresh(vyre_pipeline *pipeline, vyre_dispatch_desc *items,
                       size_t count, vyre_status *st) {
  vyre_code code;
  for (size_t i = 0; items && i < count; i++) {
    items[i].has_fresh_outputs = true;
  }
  code = vyre_submit(pipeline, items, count, NULL, st);
  for (size_t i = 0; items && i < count && code != VYRE_OK; i++) {
    vyre_detail_form_empty(items[i].outputs, items[i].output_count);
  }
  return code;
}

/* --- Owned and borrowed inputs ----------------------------------------------*/

/** Dispatches with owned inputs and fresh outputs. vyre_dispatch does the
 *  same, but reuses the memory of host buffers. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_owned(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  vyre_dispatch_desc desc =
      vyre_detail_form_desc(inputs, input_count, outputs, output_count, config);
  desc.is_borrowed = false;
  return vyre_detail_form_fresh(pipeline, &desc, 1, st);
}

/** Dispatches with borrowed inputs and fresh outputs. The device uses the
 *  inputs directly if it can; otherwise they are copied, which config->copies
 *  reports. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  vyre_dispatch_desc desc =
      vyre_detail_form_desc(inputs, input_count, outputs, output_count, config);
  desc.is_borrowed = true;
  return vyre_detail_form_fresh(pipeline, &desc, 1, st);
}

/** Dispatches like vyre_dispatch_borrowed and measures the time. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed_timed(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_timing *timing, vyre_status *st) {
  vyre_dispatch_desc desc =
      vyre_detail_form_desc(inputs, input_count, outputs, output_count, config);
  desc.is_borrowed = true;
  desc.timing = timing;
  return vyre_detail_form_fresh(pipeline, &desc, 1, st);
}

/** Dispatches with borrowed inputs into existing host buffers. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed_into(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  vyre_dispatch_desc desc =
      vyre_detail_form_desc(inputs, input_count, outputs, output_count, config);
  desc.is_borrowed = true;
  desc.has_fresh_outputs = false;
  return vyre_submit(pipeline, &desc, 1, NULL, st);
}

/** Dispatches a batch with borrowed inputs and fresh outputs, and waits once.
 *  On failure the status number `item` is the index of the item that failed,
 *  and each item has its `result`. Sets is_borrowed and has_fresh_outputs in
 *  all @p items. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed_batched(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  for (size_t i = 0; items && i < item_count; i++) items[i].is_borrowed = true;
  return vyre_detail_form_fresh(pipeline, items, item_count, st);
}

/** Dispatches like vyre_dispatch_borrowed_batched, into existing host buffers.
 */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed_batched_into(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  for (size_t i = 0; items && i < item_count; i++) {
    items[i].is_borrowed = true;
    items[i].has_fresh_outputs = false;
  }
  return vyre_submit(pipeline, items, item_count, NULL, st);
}

/* --- Device buffers ---------------------------------------------------------*/

/** Dispatches with any mix of host memory and device buffers, and fresh
 *  outputs. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  return vyre_dispatch_borrowed(pipeline, inputs, input_count, outputs,
                                output_count, config, st);
}

/** Dispatches like vyre_dispatch_resident and measures the time. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_timed(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_timing *timing, vyre_status *st) {
  return vyre_dispatch_borrowed_timed(pipeline, inputs, input_count, outputs,
                                      output_count, config, timing, st);
}

/** Dispatches like vyre_dispatch_resident, into existing host buffers. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_into(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  return vyre_dispatch_borrowed_into(pipeline, inputs, input_count, outputs,
                                     output_count, config, st);
}

/** Dispatches and leaves the outputs on the device. @p resources has the memory
 *  of every buffer that is not shared, in order of the binding numbers.
 *  @p buffers[i] receives the device buffer of output i: its resource, or else
 *  a new one, which the caller destroys (vyre_buffer_destroy). A new buffer is
 *  made for an output whose resource is zeroed, and for an input_output whose
 *  resource is host memory. On failure all @p buffers are zeroed and no new
 *  buffer exists. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_to_buffers(
    vyre_pipeline *pipeline, const vyre_input *resources, size_t resource_count,
    vyre_buffer *buffers, size_t output_count, const vyre_dispatch_desc *config,
    vyre_status *st) {
  vyre_dispatch_desc desc = vyre_detail_form_desc(NULL, 0, NULL, 0, config);
  desc.resources = resources;
  desc.resource_count = resource_count;
  desc.output_buffers = buffers;
  desc.output_buffer_count = output_count;
  desc.is_borrowed = true;
  return vyre_submit(pipeline, &desc, 1, NULL, st);
}

/** Dispatches a batch with any mix of host memory and device buffers in one
 *  submission, with fresh outputs. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_batched(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  return vyre_dispatch_borrowed_batched(pipeline, items, item_count, st);
}

/** Dispatches like vyre_dispatch_resident_batched, into existing host buffers.
 */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_batched_into(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  return vyre_dispatch_borrowed_batched_into(pipeline, items, item_count, st);
}

/** Buffers of a megakernel (one kernel that processes a queue of requests on
 *  the device), in the order of its binding numbers. */
enum {
  VYRE_ROW_CONTROL,
  VYRE_ROW_RING,
  VYRE_ROW_DEBUG_LOG,
  VYRE_ROW_IO_QUEUE,
  VYRE_ROW_RESOURCES
};

/** Buffers of one megakernel dispatch, indexed by VYRE_ROW_*: the `resources`
 *  of a descriptor. */
typedef struct vyre_buffer_row {
  vyre_input resources[VYRE_ROW_RESOURCES];
} vyre_buffer_row;

/** Dispatches a batch of rows, in order. The kernel has four buffers that are
 *  not shared, of any roles: a debug log that is only written has no input. Row
 *  i has the memory of item i. The host memory for its outputs are the @p
 *  output_count entries from outputs[i * output_count] on; a zeroed entry is
 *  not read back, and with an @p output_count of 0 none is. @p items is working
 *  memory for @p row_count descriptors. Keep it between batches, so that a
 *  repeated batch allocates nothing. */
static inline VYRE_NODISCARD vyre_code
vyre_dispatch_rows_into(vyre_pipeline *pipeline, const vyre_buffer_row *rows,
                        size_t row_count, const vyre_output *outputs,
                        size_t output_count, const vyre_dispatch_desc *config,
                        vyre_dispatch_desc *items, vyre_status *st) {
  for (size_t i = 0; items && rows && i < row_count; i++) {
    items[i] = vyre_detail_form_desc(
        NULL, 0, outputs ? outputs + i * output_count : NULL, output_count,
        config);
    items[i].resources = rows[i].resources;
    items[i].resource_count = VYRE_ROW_RESOURCES;
    items[i].is_borrowed = true;
    items[i].has_fresh_outputs = false;
  }
  return vyre_submit(pipeline, rows ? items : NULL, row_count, NULL, st);
}

VYRE_END

#endif
