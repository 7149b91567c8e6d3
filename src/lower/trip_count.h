/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decides which loops of a kernel count their iterations, and when.
 *
 * An invocation may run `max_loop_iterations` iterations of all its loops
 * together. Every device runs out of this fuel in exactly the same dispatches
 * as `ref`. Compiled code achieves that without counting each iteration one by
 * one:
 *
 *   - If an invocation is proven to run at most VYRE__UNCOUNTED_ITERATIONS
 *     iterations in sum, the code counts none of them. It serves every dispatch
 *     whose limit is not below the proven bound. For a lower limit, the runtime
 *     compiles the kernel again with vyre__target.counts_iterations.
 *   - Any other kernel, and one with counts_iterations, counts every iteration
 *     of every loop. It may run out at another point than `ref`, because known
 *     trip counts are charged at once. A `for` without an early exit is charged
 *     at its entry, and so is a `while` that halves a number until it is 0. If
 *     every iteration runs the same number of inner iterations, both are
 *     charged together.
 *
 * A loop without an early exit thus costs nothing per iteration and vectorises
 * as before. Other counted loops cost a compare and a subtraction per
 * iteration. */
#ifndef VYRE_LOWER_TRIP_COUNT_H
#define VYRE_LOWER_TRIP_COUNT_H

#include "vyre/status.h"

#include "analyze/ranges.h"

enum { VYRE__UNCOUNTED_ITERATIONS = 1 << 20 };

/* Trip count of a FOR or WHILE. */
typedef struct vyre__trip_count {
  uint64_t inside; /* inner iterations per iteration if that number is constant,
                    * or VYRE__TRIP_COUNT_VARIES */
  uint64_t max;    /* WHILE: maximum trip count; UINT64_MAX: unknown */
  bool exits_early; /* may exit early, by break or return */
  uint8_t shift; /* WHILE: the condition is that the u32 local `halved` is not
                  * 0, and each iteration shifts it right by this amount; 0:
                  * another form */
  uint32_t halved;
} vyre__trip_count;

#define VYRE__TRIP_COUNT_VARIES UINT64_MAX

/* Examines the kernel of a program without calls. *out has an entry for each
 * node, filled in for loops, and lives in @p arena; NULL without loops. *max is
 * the proven bound of an invocation's iterations, or UINT64_MAX. Returns false
 * without memory. */
bool vyre__trip_count_find(const vyre_program *program,
                           const vyre__ranges *ranges, vyre_arena *arena,
                           vyre__trip_count **out, uint64_t *max);

/* Computes the same bound for a valid program with calls, for a workgroup of
 * the given size. Code that was lowered without counts_iterations counts
 * iterations if and only if *max is above VYRE__UNCOUNTED_ITERATIONS.
 * Errors: VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__trip_count_bound(const vyre_program *program,
                                                const uint32_t workgroup[3],
                                                uint64_t *max, vyre_status *st);

#endif
