/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the barrier and the frontier planner. */
#ifndef VYRE_PLAN_BARRIER_H
#define VYRE_PLAN_BARRIER_H

#include <stdbool.h>

#include "vyre/barrier.h"

/* Sorts waves into layers. @p waves has space for wave_count entries and @p
 * offsets for wave_count + 1; sets offsets[0 .. *layer_count]. */
vyre_code vyre__barrier_layers(size_t wave_count,
                               const vyre_wave_dependency *dependencies,
                               size_t dependency_count,
                               vyre_barrier_scratch *scratch, uint32_t *waves,
                               uint32_t *offsets, size_t *layer_count,
                               vyre_status *st);

/* Checks what needs no memory: sizes that 32-bit indices can count, and no
 * dependencies without waves. */
vyre_code vyre__barrier_check_sizes(size_t wave_count,
                                    const vyre_wave_dependency *dependencies,
                                    size_t dependency_count, vyre_status *st);

/* Fast path for graphs whose dependencies are in order. Returns false if they
 * are not, or contain any error. Uses scratch with wave_count + 1 row_ends,
 * wave_count indegrees and 2 * wave_count targets. */
bool vyre__barrier_layers_in_order(size_t wave_count,
                                   const vyre_wave_dependency *dependencies,
                                   size_t dependency_count,
                                   const vyre_barrier_scratch *scratch,
                                   uint32_t *waves, uint32_t *offsets,
                                   size_t *layer_count);

#endif
