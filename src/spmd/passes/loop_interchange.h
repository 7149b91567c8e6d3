/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Legality checks of the passes that move a loop of the kernel outside the loop
 * over the invocations of a workgroup: interchange.c,
 * stride_loops.c and grid_loops.c. */
#ifndef VYRE_SPMD_LOOP_INTERCHANGE_H
#define VYRE_SPMD_LOOP_INTERCHANGE_H

#include "spmd/regions.h"

/* Returns true if a barrier may be inserted at the step of the LOOP at @p at: no
 * jump around or inside the loop lets an invocation miss the loop or a step.
 * Conditions of the loop itself are not checked. */
bool vyre__loop_can_interchange(const vyre__regions *r, uint32_t at);

/* Returns the innermost LOOP around @p at; 0: none. */
uint32_t vyre__loop_of(const vyre__regions *r, uint32_t at);

/* Returns true if all invocations leave the loop in the same iteration, even if
 * memory changes while they run, because its conditions are computed once for
 * the workgroup. Guards that each invocation loads from memory do not qualify
 * (analyze/racy_guards.h). */
bool vyre__leaves_together(const vyre__regions *r, uint32_t loop);

/* Returns the number of values and variables that live across subregions. */
uint32_t vyre__count_live_across(const vyre__regions *r);

/* Turns one stride loop of @p phase whose first value or distance is no
 * constant (grid_loops.c). *turned: it found one; then *kernel is a copy in
 * @p arena. Errors: VYRE_OUT_OF_MEMORY; those of vyre__regions_build. */
vyre_code vyre__interchange_grid_loop(const vyre__lir_kernel **kernel,
                                      uint32_t phase, vyre_arena *arena,
                                      bool *turned, vyre_status *st);

#endif
