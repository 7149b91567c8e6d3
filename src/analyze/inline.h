/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program without calls: every fn is put where it is called.
 *
 * The result means the same. Evaluation order is kept: what would be evaluated
 * before a call, and could tell the difference, goes to a `let` in front of it.
 * Returns from the middle of a fn become if/else where that is simple, else a
 * `for` that runs once and is left by `break`. A `while` whose condition has calls
 * tests it at the top of its body. Both are marked (ir/ir.h), so that who counts
 * rounds counts those of the source; `ref` does not look, and counts one more
 * for each. Nodes keep the places of the source. */
#ifndef VYRE_ANALYZE_INLINE_H
#define VYRE_ANALYZE_INLINE_H

#include "vyre/status.h"

#include "ir/ir.h"

/* How a function is put into its caller. */
typedef struct vyre__inline_shape {
  bool is_straight;   /* its only return is its last statement */
  bool is_nested;     /* all returns become if/else */
  bool has_loop_exit; /* it returns from inside of a loop */
  uint32_t depth;     /* nesting that is added around its statements */
} vyre__inline_shape;

vyre__inline_shape vyre__inline_shape_of(const vyre_program *program,
                                         const vyre__function *function);

/* *out is a new program (vyre_program_release); for one without calls, too.
 * Errors: VYRE_INVALID_PROGRAM if the result is too large or nested too deep:
 * vyre_program_validate tells that before; VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__inline(const vyre_program *program,
                                      vyre_allocator allocator,
                                      vyre_program **out, vyre_status *st);

#endif
