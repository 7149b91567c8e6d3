/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/validate.h
 *  The rules that need more than names and types: barriers in divergent code,
 *  indices that can never be right, limits. */
#ifndef VYRE_VALIDATE_H
#define VYRE_VALIDATE_H

#include "vyre/diagnostic.h"
#include "vyre/export.h"
#include "vyre/program.h"
#include "vyre/status.h"

/** The most that any device is asked to run. A smaller device says so itself. */
enum {
  VYRE_MAX_INVOCATIONS = 1024,      /* of a workgroup: x * y * z */
  VYRE_MAX_SHARED_BYTES = 262144,   /* of all shared buffers together */
  VYRE_MAX_INLINED_NODES = 1 << 22, /* after all calls are inlined */
  VYRE_MAX_INLINED_DEPTH = 200      /* nesting, the same way */
};

VYRE_BEGIN

/** Checks @p program against the rules V100 and up (vyre_rules lists them). One
 *  that passes does not fail later for a fault of its own. A program without a
 *  body is checked as far as its buffers go.
 *  Ownership: findings are added to @p diagnostics, which may be NULL.
 *  Lifetime:  @p program is borrowed for the call; nothing of it is kept.
 *  Threads:   safe; @p diagnostics is compatible.
 *  Blocks:    on the program's allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM: @p diagnostics has all findings, the status
 *             the first; VYRE_INVALID_ARGUMENT; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_program_validate(const vyre_program *program,
                      vyre_diagnostics *diagnostics, vyre_status *st);

VYRE_END

#endif
