/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the barrier and the frontier planner share. */
#ifndef VYRE_PLAN_BARRIER_H
#define VYRE_PLAN_BARRIER_H

#include <stdbool.h>

#include "vyre/barrier.h"

/* Sorts waves into layers. @p waves has room for wave_count entries and @p
 * offsets for wave_count + 1; offsets[0 .. *layer_count] are set. */
vyre_code vyre__barrier_layers(size_t wave_count,
                               const vyre_wave_dependency *dependencies,
                               size_t dependency_count,
                               vyre_barrier_scratch *scratch, uint32_t *waves,
                               uint32_t *offsets, size_t *layer_count,
                               vyre_status *st);

/* What can be refused before anything is reserved: sizes that 32-bit indices
 * cannot count, and dependencies among no waves at all. */
vyre_code vyre__barrier_check_sizes(size_t wave_count,
                                    const vyre_wave_dependency *dependencies,
                                    size_t dependency_count, vyre_status *st);

/* The fast way for graphs whose dependencies come in order: false if they do
 * not, or are wrong in any way. Takes scratch with wave_count + 1 row_ends,
 * wave_count indegrees and 2 * wave_count targets. */
bool vyre__barrier_layers_in_order(size_t wave_count,
                                   const vyre_wave_dependency *dependencies,
                                   size_t dependency_count,
                                   const vyre_barrier_scratch *scratch,
                                   uint32_t *waves, uint32_t *offsets,
                                   size_t *layer_count);

#endif
