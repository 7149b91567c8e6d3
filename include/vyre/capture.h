/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/capture.h
 *  Capture planner: table sizes of a recorded dispatch, and whether a replay
 *  may skip its uploads. */
#ifndef VYRE_CAPTURE_H
#define VYRE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/binding.h"
#include "vyre/export.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Table sizes of one recorded dispatch, or their sums over a recording. */
typedef struct vyre_capture_plan {
  size_t input_device_capacity;    /* device buffers that take an input */
  size_t output_device_capacity;   /* device buffers that take no input */
  size_t output_readback_capacity; /* host buffers for outputs */
  size_t kernel_pointer_capacity;  /* all bindings except shared buffers */
  size_t kernel_argument_capacity; /* these bindings and the launch block */
  /* Uploads can be skipped on replay: no binding is both input and output. */
  bool resident_input_replay_safe;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_capture_plan;

VYRE_BEGIN

/** Plans the capture of one dispatch. Allocates nothing.
 *  Ownership: fills *out; zeroed on failure.
 *  Lifetime:  borrows @p bindings.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_PROGRAM if a table does not fit into the address
 *             space. */
VYRE_API VYRE_NODISCARD vyre_code vyre_capture_plan_build(
    const vyre_binding_plan *bindings, vyre_capture_plan *out, vyre_status *st);

/** Prints the plan as a table. Returns false if @p writer fails or @p plan is
 *  NULL.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_capture_plan_print(const vyre_capture_plan *plan,
                                      vyre_writer writer);

VYRE_END

#endif
