/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For passes that move a loop out of the loop over invocations: interchange.c,
 * stride_loops.c. */
#ifndef VYRE_SPMD_TURNED_LOOPS_H
#define VYRE_SPMD_TURNED_LOOPS_H

#include "spmd/regions.h"

/* Returns true if all invocations reach the LOOP at @p at, and each step of it,
 * together, as far as the jumps around and inside it tell: a barrier may be
 * inserted at the step. */
bool vyre__loop_can_turn(const vyre__regions *r, uint32_t at);

/* Returns the innermost LOOP around @p at; 0: none. */
uint32_t vyre__loop_of(const vyre__regions *r, uint32_t at);

/* Returns true if all invocations leave the loop in the same round, whatever
 * happens to memory: conditions are computed once for the workgroup. One that
 * each invocation computes, and of which one result counts, was a guard of the
 * others before the loop was turned (analyze/racy_guards.h). */
bool vyre__leaves_together(const vyre__regions *r, uint32_t loop);

/* Returns the number of values and variables that live across subregions. */
uint32_t vyre__count_kept(const vyre__regions *r);

#endif
