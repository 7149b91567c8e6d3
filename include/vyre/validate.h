/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/validate.h
 *  Validation: rules that need program analysis, such as barriers in divergent
 *  code, constant indices outside their buffer, and limits. */
#ifndef VYRE_VALIDATE_H
#define VYRE_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/diagnostic.h"
#include "vyre/export.h"
#include "vyre/program.h"
#include "vyre/status.h"

/** Limits of the language. A device may have lower ones (vyre_device_caps). */
enum {
  VYRE_MAX_INVOCATIONS = 1024,      /* invocations of a workgroup */
  VYRE_MAX_SHARED_BYTES = 262144,   /* bytes of all shared buffers together */
  VYRE_MAX_INLINED_NODES = 1 << 22, /* nodes after inlining */
  VYRE_MAX_INLINED_DEPTH = 200      /* nesting depth after inlining */
};

/** Result of vyre_program_prove_order. */
typedef struct vyre_order_proof {
  bool is_queue;        /* the program is a queue kernel */
  bool is_proven;       /* its order is proven to decide nothing */
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_order_proof;

VYRE_BEGIN

/** Checks @p program against the rules V100 and up (vyre_rules lists them). A
 *  program that passes does not fail later for an error of its own. Of a
 *  program without a body, only the buffers are checked.
 *  Ownership: adds errors to @p diagnostics, which may be NULL.
 *  Lifetime:  @p program is borrowed for the call.
 *  Threads:   safe; @p diagnostics is compatible.
 *  Blocks:    on the allocator of the program only.
 *  Errors:    VYRE_INVALID_PROGRAM: @p diagnostics receives all errors, the
 *             status the first one; VYRE_INVALID_ARGUMENT; VYRE_OUT_OF_MEMORY.
 */
VYRE_API VYRE_NODISCARD vyre_code
vyre_program_validate(const vyre_program *program,
                      vyre_diagnostics *diagnostics, vyre_status *st);

/** Tries to prove that a queue kernel is deterministic: that all of its outputs
 *  and windows are the same in any order of the items of a window. A kernel
 *  without a proof may still have one result; a checked run tries orders.
 *  Ownership: fills *out. Adds what stands against a proof to @p diagnostics
 *             (rule order_unproven), which may be NULL.
 *  Lifetime:  @p program is borrowed for the call.
 *  Threads:   safe; @p diagnostics is compatible.
 *  Blocks:    on the allocator of the program only.
 *  Errors:    VYRE_INVALID_PROGRAM for a program that vyre_program_validate
 *             rejects; VYRE_INVALID_ARGUMENT; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_program_prove_order(const vyre_program *program, vyre_order_proof *out,
                         vyre_diagnostics *diagnostics, vyre_status *st);

VYRE_END

#endif
