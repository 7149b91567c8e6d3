/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/forms.h
 *  The forms of dispatch, each a thin wrapper of vyre_submit: it sets what the
 *  form promises and leaves the rest to the descriptor.
 *
 *      vyre_host_buffer y = {0};
 *      vyre_output outputs[] = {vyre_output_host_buffer(&y, 0)};
 *      vyre_code code = vyre_dispatch_borrowed_into(pipeline, inputs, 3, outputs,
 *                                                   1, NULL, &st);
 *
 *  They differ in what becomes of memory, never in the bits: each gives those of
 *  vyre_device_run_program.
 *
 *  What holds for all of them:
 *    config    everything but the bindings (grid, variant, timeout, label ...);
 *              NULL: zeroed. Its inputs and outputs are not looked at.
 *    inputs    in input order of the binding plan; outputs in output order.
 *    fresh     forms without `into` give the slots of their outputs memory that
 *              nobody had before; what the slots had is freed, and no input may
 *              be there. If they fail, slots are emptied: there is then no
 *              output. Outputs in the caller's own memory are unspecified then.
 *    into      slots keep their allocations: a warm dispatch allocates nothing.
 *    Ownership, lifetime, errors: as vyre_submit without a fence; memory may be
 *              changed or freed when the call returns.
 *    Threads:  safe; slots are compatible.
 *    Blocks:   until it is over.
 *  To be told later, use vyre_submit with a fence. */
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

/* --- what they are made of ---------------------------------------------------*/

/** The descriptor of @p config with these bindings.
 *  Ownership: borrows everything.  Threads: safe.  Blocks: never.
 *  Errors: none. */
static inline vyre_dispatch_desc vyre_detail_form_desc(
    const vyre_input *inputs, size_t input_count, const vyre_output *outputs,
    size_t output_count, const vyre_dispatch_desc *config) {
  vyre_dispatch_desc made;
  if (config) {
    made = *config;
  } else {
    memset(&made, 0, sizeof made);
  }
  made.inputs = inputs;
  made.input_count = input_count;
  made.outputs = outputs;
  made.output_count = output_count;
  return made;
}

/** Frees the memory of all slots among @p outputs.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
static inline void vyre_detail_form_empty(const vyre_output *outputs,
                                          size_t count) {
  for (size_t i = 0; outputs && i < count; i++) {
    vyre_host_buffer_deinit(outputs[i].host_buffer);
  }
}

/** Submits a batch whose outputs are fresh: sets has_fresh_outputs in all @p
 *  items. All else as vyre_submit without a fence. */
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

/* --- owned and borrowed ------------------------------------------------------*/

/** Owned inputs, fresh outputs. (The seed's dispatch; vyre_dispatch is the same
 *  by a descriptor, and keeps the allocations of slots.) */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_owned(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  vyre_dispatch_desc desc =
      vyre_detail_form_desc(inputs, input_count, outputs, output_count, config);
  desc.is_borrowed = false;
  return vyre_detail_form_fresh(pipeline, &desc, 1, st);
}

/** Borrowed inputs: bound where they are if the device can, else copied, as
 *  config->copies tells. Fresh outputs. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  vyre_dispatch_desc desc =
      vyre_detail_form_desc(inputs, input_count, outputs, output_count, config);
  desc.is_borrowed = true;
  return vyre_detail_form_fresh(pipeline, &desc, 1, st);
}

/** As vyre_dispatch_borrowed, and how long it took; what is not measured is
 *  absent, never 0. */
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

/** Borrowed inputs, outputs into the caller's slots. */
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

/** A batch of borrowed inputs, all of it before the one wait; fresh outputs. An
 *  item that fails is told by the number `item`, what became of the others by
 *  their `result`. Sets is_borrowed and has_fresh_outputs in all @p items. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed_batched(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  for (size_t i = 0; items && i < item_count; i++) items[i].is_borrowed = true;
  return vyre_detail_form_fresh(pipeline, items, item_count, st);
}

/** As vyre_dispatch_borrowed_batched, into the caller's slots. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_borrowed_batched_into(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  for (size_t i = 0; items && i < item_count; i++) {
    items[i].is_borrowed = true;
    items[i].has_fresh_outputs = false;
  }
  return vyre_submit(pipeline, items, item_count, NULL, st);
}

/* --- resident ----------------------------------------------------------------*/

/** Host bytes and resident buffers mixed; fresh outputs. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  return vyre_dispatch_borrowed(pipeline, inputs, input_count, outputs,
                                output_count, config, st);
}

/** As vyre_dispatch_resident, and how long it took. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_timed(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_timing *timing, vyre_status *st) {
  return vyre_dispatch_borrowed_timed(pipeline, inputs, input_count, outputs,
                                      output_count, config, timing, st);
}

/** As vyre_dispatch_resident, into the caller's slots. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_into(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  return vyre_dispatch_borrowed_into(pipeline, inputs, input_count, outputs,
                                     output_count, config, st);
}

/** Outputs stay on the device: @p handles[i] is where output i is. An output that
 *  names a resident buffer goes there; every other is a new buffer, of `size`
 *  bytes where the kernel does not say how many, which the caller frees
 *  (vyre_buffer_destroy). Changes @p outputs. On failure handles are zeroed, and
 *  no buffer was made. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_outputs(
    vyre_pipeline *pipeline, const vyre_input *inputs, size_t input_count,
    vyre_output *outputs, vyre_buffer *handles, size_t output_count,
    const vyre_dispatch_desc *config, vyre_status *st) {
  vyre_dispatch_desc desc;
  vyre_code code;
  for (size_t i = 0; outputs && handles && i < output_count; i++) {
    bool is_there = outputs[i].buffer.owner != 0 || outputs[i].buffer.id != 0;
    handles[i].owner = handles[i].id = 0;
    outputs[i].data = NULL;
    outputs[i].host_buffer = NULL;
    outputs[i].new_buffer = is_there ? NULL : &handles[i];
  }
  desc = vyre_detail_form_desc(inputs, input_count, handles ? outputs : NULL,
                               output_count, config);
  desc.is_borrowed = true;
  code = vyre_submit(pipeline, &desc, 1, NULL, st);
  for (size_t i = 0; outputs && handles && i < output_count; i++) {
    if (code == VYRE_OK && !outputs[i].new_buffer)
      handles[i] = outputs[i].buffer;
  }
  return code;
}

/** A batch of mixed resources as one submission; fresh outputs. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_batched(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  return vyre_dispatch_borrowed_batched(pipeline, items, item_count, st);
}

/** As vyre_dispatch_resident_batched, into the caller's slots. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_batched_into(
    vyre_pipeline *pipeline, vyre_dispatch_desc *items, size_t item_count,
    vyre_status *st) {
  return vyre_dispatch_borrowed_batched_into(pipeline, items, item_count, st);
}

/** The four resources of a megakernel, in the order of its bindings. */
enum {
  VYRE_ROW_CONTROL,
  VYRE_ROW_RING,
  VYRE_ROW_DEBUG_LOG,
  VYRE_ROW_IO_QUEUE,
  VYRE_ROW_RESOURCES
};

typedef struct vyre_buffer_row {
  vyre_input resources[VYRE_ROW_RESOURCES];
} vyre_buffer_row;

/** A batch of rows: row i is the inputs of item i, bound where it stands, and its
 *  outputs are the @p output_count from outputs[i * output_count] on. @p items is
 *  room for @p row_count descriptors, which is written: kept from batch to batch,
 *  nothing is built anew around the rows. */
static inline VYRE_NODISCARD vyre_code vyre_dispatch_resident_rows_into(
    vyre_pipeline *pipeline, const vyre_buffer_row *rows, size_t row_count,
    const vyre_output *outputs, size_t output_count,
    const vyre_dispatch_desc *config, vyre_dispatch_desc *items,
    vyre_status *st) {
  for (size_t i = 0; items && rows && i < row_count; i++) {
    items[i] = vyre_detail_form_desc(
        rows[i].resources, VYRE_ROW_RESOURCES,
        outputs ? outputs + i * output_count : NULL, output_count, config);
    items[i].is_borrowed = true;
    items[i].has_fresh_outputs = false;
  }
  return vyre_submit(pipeline, rows ? items : NULL, row_count, NULL, st);
}

VYRE_END

#endif
