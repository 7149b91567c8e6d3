/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the barrier and the frontier planner. */
#ifndef VYRE_PLAN_BARRIER_H
#define VYRE_PLAN_BARRIER_H

#include <stdbool.h>

#include "vyre/barrier.h"

typedef struct vyre__wave_graph {
  size_t wave_count;
  const vyre_wave_dependency *dependencies;
  size_t dependency_count;
} vyre__wave_graph;

/* Layer i is waves[offsets[i]] to before waves[offsets[i + 1]]. */
typedef struct vyre__wave_layers {
  uint32_t *waves;   /* space for wave_count */
  uint32_t *offsets; /* space for wave_count + 1 */
  size_t count;
} vyre__wave_layers;

/* Sorts waves into layers. The caller sets the arrays of @p out. */
vyre_code vyre__barrier_layers(const vyre__wave_graph *graph,
                               vyre_barrier_scratch *scratch,
                               vyre__wave_layers *out, vyre_status *st);

/* Checks what needs no memory: sizes that 32-bit indices can count, and no
 * dependencies without waves. */
vyre_code vyre__barrier_check_sizes(const vyre__wave_graph *graph,
                                    vyre_status *st);

/* Fast path for graphs whose dependencies are in order. Returns false if they
 * are not, or contain any error. Uses scratch with wave_count + 1 row_ends,
 * wave_count indegrees and 2 * wave_count targets. */
bool vyre__barrier_layers_in_order(const vyre__wave_graph *graph,
                                   const vyre_barrier_scratch *scratch,
                                   vyre__wave_layers *out);

#endif
