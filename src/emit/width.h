/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How many invocations of a kernel a vector should hold.
 *
 * More of them hide the latency of operations behind each other and spread what is
 * done once a vector (loop conditions, uniform values, masks); but what differs
 * between lanes must fit the registers. Where each lane goes its own way through
 * memory, vectors only cost. */
#ifndef VYRE_EMIT_WIDTH_H
#define VYRE_EMIT_WIDTH_H

#include "emit/shape.h"

/* What a phase does, by its instructions that somebody needs. IFs that are hardly
 * ever taken do not count. */
typedef struct vyre__width_facts {
  uint32_t
      live_bytes; /* of a lane: the most that varying values take at one time,
                          masks of divergent control flow included */
  uint32_t live_32, live_64; /* the most values of that many bits at one time;
                                bool and masks count as 32 */
  uint32_t arithmetic;       /* on varying values */
  uint32_t
      aligned; /* accesses of one run of elements at an aligned begin ... */
  uint32_t contiguous;      /* ... or at any */
  uint32_t gathers;         /* other loads that each lane does for itself */
  uint32_t scatters;        /* stores */
  uint32_t atomics;         /* with or without the same index */
  uint32_t loops;           /* of invocations: without a barrier */
  uint32_t irregular_loops; /* lanes leave them in different rounds, write for
                               themselves in there, and compute next to nothing */
  bool has_barrier;
} vyre__width_facts;

/* Measures one phase by its shapes. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__width_measure(const vyre__regions *regions,
                              const vyre__shapes *shapes, vyre_arena *arena,
                              vyre__width_facts *out, vyre_status *st);

/* Chooses for all phases of @p kernel, lowered all the way, on a machine whose
 * registers have @p lanes lanes of 32 bits (4, 8 or 16): 1, 4, 8, 16 or 32.
 * @p arena is left as it was. Errors: VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT
 * if markers do not match. */
vyre_code vyre__width_choose(const vyre__low_kernel *kernel, uint32_t lanes,
                             vyre_arena *arena, uint32_t *out, vyre_status *st);

#endif
