/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/barrier.h
 *  The barrier plan: waves into groups, so that every wave comes in a later
 *  group than all it depends on, with a barrier between groups. */
#ifndef VYRE_BARRIER_H
#define VYRE_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Wave @p after needs what wave @p before leaves. */
typedef struct vyre_wave_dependency {
  uint64_t before;
  uint64_t after;
} vyre_wave_dependency;

/** Groups as two flat arrays: group g is
 *  waves[group_offsets[g]] .. waves[group_offsets[g + 1] - 1].
 *  The first group is in ascending order; later groups are in the order in
 *  which the last dependency of each wave was met. */
typedef struct vyre_barrier_plan {
  const uint32_t *group_offsets; /* group_count + 1 entries */
  const uint32_t *waves;         /* wave_count entries, each wave once */
  size_t group_count;
  size_t wave_count;
  size_t global_barriers; /* group_count - 1, or 0 */
} vyre_barrier_plan;

/** Working memory of the barrier and frontier planners: the caller's, kept
 *  between calls, so that a second plan of the same shape allocates nothing.
 *  Zeroed, it is ready for use and takes the C library's heap.
 *  Threads: compatible. Fields are the planner's own. */
typedef struct vyre_barrier_scratch {
  vyre_allocator allocator;
  uint32_t *row_ends; /* per wave: where its successors end in targets */
  size_t row_capacity;
  uint32_t *indegree; /* per wave: dependencies not met yet */
  size_t indegree_capacity;
  uint32_t *targets; /* successors of all waves, row by row */
  size_t target_capacity;
} vyre_barrier_scratch;

/** Most waves and dependencies of a plan: indices inside are 32 bits wide. */
#define VYRE_MAX_WAVES        (UINT32_MAX - 1)
#define VYRE_MAX_DEPENDENCIES UINT32_MAX

VYRE_BEGIN

/** Makes empty scratch over @p allocator. Allocates nothing yet.
 *  Ownership: end it with vyre_barrier_scratch_deinit.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_barrier_scratch_init(vyre_barrier_scratch *scratch,
                                        vyre_allocator allocator);

/** Frees the scratch. NULL or zeroed is fine.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_barrier_scratch_deinit(vyre_barrier_scratch *scratch);

/** Waves and dependencies that fit without allocating.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API size_t
vyre_barrier_scratch_wave_capacity(const vyre_barrier_scratch *scratch);
VYRE_API size_t
vyre_barrier_scratch_dependency_capacity(const vyre_barrier_scratch *scratch);

/** Groups @p wave_count waves by their dependencies, as early as each can be.
 *  O(waves + dependencies). A dependency given twice counts once.
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is as before.
 *  Lifetime:  @p dependencies is borrowed for the call.
 *  Threads:   safe; arena and scratch are compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_PLAN_REJECTED: invalid_wave, self_dependency (the first bad
 *             dependency wins), cycle (names a wave on it),
 *             byte_count_overflow above VYRE_MAX_WAVES or
 *             VYRE_MAX_DEPENDENCIES; VYRE_OUT_OF_MEMORY:
 *             storage_reserve_failed. */
VYRE_API VYRE_NODISCARD vyre_code vyre_barrier_plan_build(
    size_t wave_count, const vyre_wave_dependency *dependencies,
    size_t dependency_count, vyre_barrier_scratch *scratch, vyre_arena *arena,
    vyre_barrier_plan *out, vyre_status *st);

/** Prints the groups, one a line. Long ones are cut with a count of the rest.
 *  Returns false if @p writer refused or @p plan is NULL.  Threads: safe.
 *  Blocks: on the writer.  Errors: none. */
VYRE_API bool vyre_barrier_plan_print(const vyre_barrier_plan *plan,
                                      vyre_writer writer);

VYRE_END

#endif
