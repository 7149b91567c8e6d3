/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/capture.h
 *  The capture plan: how large the tables of a recording must be, and whether
 *  it may be replayed without uploading its inputs again. */
#ifndef VYRE_CAPTURE_H
#define VYRE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "vyre/binding.h"
#include "vyre/export.h"
#include "vyre/status.h"
#include "vyre/writer.h"

typedef struct vyre_capture_plan {
  size_t input_device_capacity;    /* device buffers that take an input */
  size_t output_device_capacity;   /* device buffers that take none */
  size_t output_readback_capacity; /* host buffers for observed bindings */
  size_t kernel_pointer_capacity;  /* all bindings but the shared ones */
  size_t kernel_argument_capacity; /* those, and the launch block */
  bool resident_input_replay_safe; /* no binding is both input and output */
} vyre_capture_plan;

VYRE_BEGIN

/** Plans the capture of one dispatch. Allocates nothing.
 *  Ownership: fills *out; zeroed on failure.  Lifetime: borrows @p bindings.
 *  Threads: safe.  Blocks: never.
 *  Errors: VYRE_INVALID_PROGRAM if a table would not fit the address space. */
VYRE_API VYRE_NODISCARD vyre_code vyre_capture_plan_build(
    const vyre_binding_plan *bindings, vyre_capture_plan *out, vyre_status *st);

/** Prints the plan as an aligned table. Returns false if @p writer refused or
 *  @p plan is NULL.
 *  Threads: safe.  Blocks: on the writer.  Errors: none. */
VYRE_API bool vyre_capture_plan_print(const vyre_capture_plan *plan,
                                      vyre_writer writer);

VYRE_END

#endif
