/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/barrier.h
 *  Barrier planner: sorts waves into groups with a barrier between groups.
 *
 *  A wave is a set of launches that can run together. Every wave lands in a
 *  later group than all waves that it depends on. */
#ifndef VYRE_BARRIER_H
#define VYRE_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Dependency between two waves: `after` reads what `before` writes. */
typedef struct vyre_wave_dependency {
  uint64_t before; /* index of the wave that runs first */
  uint64_t after;  /* index of the wave that depends on it */
} vyre_wave_dependency;

/** Groups of waves, stored as two flat arrays. Group g holds
 *  waves[group_offsets[g]] to waves[group_offsets[g + 1] - 1].
 *
 *  The first group lists its waves in ascending order. Later groups list them
 *  in the order in which their last dependency was met. */
typedef struct vyre_barrier_plan {
  const uint32_t *group_offsets; /* group_count + 1 entries */
  const uint32_t *waves;  /* wave_count entries; every wave appears once */
  size_t group_count;     /* number of groups */
  size_t wave_count;      /* number of waves */
  size_t global_barriers; /* barriers between groups: group_count - 1, or 0 */
  uint64_t reserved[2];   /* zero; for future fields */
} vyre_barrier_plan;

/** Working memory of the barrier and frontier planners. Keep it between calls:
 *  a second plan of the same shape then allocates nothing.
 *
 *  Zeroed scratch is ready for use and allocates from the C heap. The fields
 *  are private to the planner.
 *  Threads:   compatible. */
typedef struct vyre_barrier_scratch {
  vyre_allocator allocator; /* source of the arrays */
  uint32_t *row_ends;       /* per wave: end of its successors in `targets` */
  size_t row_capacity;      /* entries of `row_ends` */
  uint32_t *indegree;       /* per wave: dependencies that are not met yet */
  size_t indegree_capacity; /* entries of `indegree` */
  uint32_t *targets;        /* successors of all waves, row by row */
  size_t target_capacity;   /* entries of `targets` */
  uint64_t reserved[4];     /* zero; for future fields */
} vyre_barrier_scratch;

/** Maximum number of waves and of dependencies in one plan. The planner
 *  indexes both with 32 bits. */
#define VYRE_MAX_WAVES        (UINT32_MAX - 1)
#define VYRE_MAX_DEPENDENCIES UINT32_MAX

VYRE_BEGIN

/** Initialises empty scratch that allocates from @p allocator. Allocates
 *  nothing.
 *  Ownership: free the memory with vyre_barrier_scratch_deinit.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_barrier_scratch_init(vyre_barrier_scratch *scratch,
                                        vyre_allocator allocator);

/** Frees the memory of @p scratch. Accepts NULL and zeroed scratch.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_barrier_scratch_deinit(vyre_barrier_scratch *scratch);

/** Returns the number of waves that fit into @p scratch without an allocation.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API size_t
vyre_barrier_scratch_wave_capacity(const vyre_barrier_scratch *scratch);

/** Returns the number of dependencies that fit into @p scratch without an
 *  allocation.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API size_t
vyre_barrier_scratch_dependency_capacity(const vyre_barrier_scratch *scratch);

/** Groups @p wave_count waves by their dependencies. Every wave lands in the
 *  earliest possible group. Takes O(waves + dependencies) time. A duplicate
 *  dependency counts once.
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is unchanged.
 *  Lifetime:  @p dependencies is borrowed for the call.
 *  Threads:   safe; arena and scratch are compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_PLAN_REJECTED: invalid_wave or self_dependency for the
 *             first bad dependency; cycle, which names a wave on the cycle;
 *             byte_count_overflow above VYRE_MAX_WAVES or
 *             VYRE_MAX_DEPENDENCIES. VYRE_OUT_OF_MEMORY:
 *             storage_reserve_failed. */
VYRE_API VYRE_NODISCARD vyre_code vyre_barrier_plan_build(
    size_t wave_count, const vyre_wave_dependency *dependencies,
    size_t dependency_count, vyre_barrier_scratch *scratch, vyre_arena *arena,
    vyre_barrier_plan *out, vyre_status *st);

/** Prints one line per group. Long lines end with the number of waves left
 *  out. Returns false if @p writer fails or @p plan is NULL.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_barrier_plan_print(const vyre_barrier_plan *plan,
                                      vyre_writer writer);

VYRE_END

#endif
