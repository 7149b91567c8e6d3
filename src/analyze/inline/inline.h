/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining: a program without calls.
 *
 * The result has the same meaning and the same evaluation order. Values that
 * are computed before a call and could observe its effects move to a `let`
 * before it. A return in the middle of a fn becomes if/else where that is
 * simple, otherwise a `for` that runs once and is left by `break`. A `while`
 * whose condition contains calls tests it at the top of its body. Both loops
 * are marked (ir/ir.h), so that iterations are counted as in the source.
 * `ref` ignores the marks and counts one more iteration for each. Nodes keep
 * their source locations.
 *
 * Arrays and tables become hidden buffers at the end of the list of buffers
 * (ir/ir.h). Memory parameters become what the call passes. */
#ifndef VYRE_ANALYZE_INLINE_H
#define VYRE_ANALYZE_INLINE_H

#include "vyre/status.h"

#include "ir/ir.h"

/* The way in which a function is inlined. */
typedef struct vyre__inline_shape {
  bool is_straight;   /* its only return is its last statement */
  bool is_nested;     /* all returns become if/else */
  bool has_loop_exit; /* returns from inside a loop */
  uint32_t depth;     /* nesting added around its statements */
} vyre__inline_shape;

vyre__inline_shape vyre__inline_shape_of(const vyre_program *program,
                                         const vyre__function *function);

/* Inlines all calls. *out is a new program (vyre_program_release), also if
 * it has no calls. Errors: VYRE_INVALID_PROGRAM if the result is too large
 * or nested too deep, which vyre_program_validate reports before;
 * VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__inline(const vyre_program *program,
                                      vyre_allocator allocator,
                                      vyre_program **out, vyre_status *st);

/* Does the same for code generation. An array whose indices are all known
 * becomes variables; for that, loops over arrays with at most 64 iterations are
 * unrolled. With @p settles, statements at the end settle the exact sums that
 * the kernel changes (ir/sum.h), after a grid barrier. */
VYRE_NODISCARD vyre_code vyre__inline_for_code(const vyre_program *program,
                                               bool settles,
                                               vyre_allocator allocator,
                                               vyre_program **out,
                                               vyre_status *st);

/* Returns a program that analyses and backends accept: @p program itself, or if
 * it has values that are not scalars (is_rich), the inlined program. *out is a
 * reference of the caller. Errors: as vyre__inline. */
VYRE_NODISCARD vyre_code vyre__plain(const vyre_program *program,
                                     vyre_allocator allocator,
                                     vyre_program **out, vyre_status *st);

#endif
