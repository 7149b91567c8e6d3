/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/validate.h
 *  Validation: rules that need program analysis, such as barriers in divergent
 *  code, constant indices outside their buffer, and limits. */
#ifndef VYRE_VALIDATE_H
#define VYRE_VALIDATE_H

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

VYRE_END

#endif
