/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/frontier.h
 *  Frontier planner: sorts waves into groups that stay within a memory budget.
 */
#ifndef VYRE_FRONTIER_H
#define VYRE_FRONTIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/barrier.h"
#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/placement.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Memory of one wave. In a fused group, where all waves run between two
 *  barriers, a wave takes frontier + 4 * scratch + output bytes. */
typedef struct vyre_frontier_wave {
  uint64_t frontier_bytes; /* items that the wave processes */
  uint64_t scratch_bytes;  /* temporary memory */
  uint64_t output_bytes;   /* results */
} vyre_frontier_wave;

/** Copies of its scratch memory that a wave holds in a fused group. */
#define VYRE_FUSED_SCRATCH_FACTOR 4

/** Kinds of memory of a wave, in the order of its intervals: X(enumerator,
 *  name). */
#define VYRE_WAVE_PART_MAP(X)       \
  X(VYRE_PART_FRONTIER, "frontier") \
  X(VYRE_PART_SCRATCH, "scratch")   \
  X(VYRE_PART_OUTPUT, "output")

/** Kind of memory of a wave. */
typedef enum vyre_wave_part {
#define VYRE_X2(name, text) name,
  VYRE_WAVE_PART_MAP(VYRE_X2) VYRE_PART_COUNT
#undef VYRE_X2
} vyre_wave_part;

/** Input of the frontier planner. */
typedef struct vyre_frontier_desc {
  const vyre_frontier_wave *waves;          /* waves */
  size_t wave_count;                        /* entries of `waves` */
  const vyre_wave_dependency *dependencies; /* dependencies between waves */
  size_t dependency_count;                  /* entries of `dependencies` */
  /* Memory in use from the first to the last group. */
  uint64_t resident_graph_bytes;
  uint64_t budget_bytes;   /* memory limit */
  uint64_t readback_bytes; /* readback pressure measured at run time */
  uint64_t reserved[4];    /* must be zero */
} vyre_frontier_desc;

/** Result of the frontier planner. */
typedef struct vyre_frontier_plan {
  vyre_barrier_plan barriers;   /* groups, after splitting to the budget */
  uint64_t peak_frontier_bytes; /* maximum frontier bytes of a group */
  uint64_t peak_scratch_bytes;  /* maximum scratch bytes of a group */
  uint64_t peak_output_bytes;   /* maximum output bytes of a group */
  uint64_t peak_group_bytes;    /* maximum fused bytes of a group */
  /* max(readback_bytes, peak_output_bytes). */
  uint64_t amortized_readback_bytes;
  size_t max_group_width; /* maximum number of waves in a group */
  /* Lower bound of the number of groups; see vyre_frontier_plan_build. */
  size_t minimum_groups;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_frontier_plan;

VYRE_BEGIN

/** Computes the fused bytes of one wave: frontier + 4 * scratch + output.
 *  Ownership: fills *out.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_PLAN_REJECTED: byte_count_overflow (fused wave scratch
 *             bytes, fused wave bytes). */
VYRE_API VYRE_NODISCARD vyre_code vyre_frontier_wave_bytes(
    const vyre_frontier_wave *wave, uint64_t *out, vyre_status *st);

/** Plans groups like vyre_barrier_plan_build, then splits each group so that
 *  its fused bytes stay within budget_bytes - resident_graph_bytes.
 *
 *  minimum_groups is a lower bound for every grouping that respects the
 *  dependencies and the budget B, not only for this planner's. For each depth
 *  d, the waves at depth d or more cannot run before group d. They need at
 *  least as many groups as their bytes fill, and as many as there are waves
 *  above B/2 among them. If minimum_groups equals group_count, the plan is
 *  proven to have the fewest groups.
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is unchanged.
 *  Lifetime:  @p desc and its arrays are borrowed for the call.
 *  Threads:   safe; arena and scratch are compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    those of vyre_barrier_plan_build; then VYRE_PLAN_REJECTED:
 *             group_over_budget (resident graph bytes, single fused frontier
 *             wave bytes) with required_bytes, budget_bytes and
 *             smallest_budget_bytes, the smallest budget that works (left out
 *             if sums come close to 64 bits); byte_count_overflow. */
VYRE_API VYRE_NODISCARD vyre_code vyre_frontier_plan_build(
    const vyre_frontier_desc *desc, vyre_barrier_scratch *scratch,
    vyre_arena *arena, vyre_frontier_plan *out, vyre_status *st);

/** Computes the memory intervals of the waves of a plan, for
 *  vyre_placement_plan_build. Part p of wave w is at index w * VYRE_PART_COUNT
 *  + p. Scratch counts four times and lives in its group only. Frontier and
 *  output live from their group to the last group that depends on the wave, or
 *  to the last group of all if none does, where they are read back. The
 *  placement can therefore be larger than the largest group.
 *  Ownership: *out (wave_count * VYRE_PART_COUNT entries) lives in @p arena;
 *             NULL on failure.
 *  Lifetime:  @p desc must be the input that @p plan was built from.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_ARGUMENT if the groups of the plan are
 *             inconsistent, or @p desc has another number of waves or a
 *             dependency inside a group; VYRE_PLAN_REJECTED:
 *             byte_count_overflow; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_frontier_intervals(
    const vyre_frontier_plan *plan, const vyre_frontier_desc *desc,
    uint64_t alignment, vyre_arena *arena, const vyre_interval **out,
    vyre_status *st);

/** Prints the figures of a plan, and its groups with their bytes and the
 *  budget. Returns false if @p writer fails or @p plan is NULL.
 *  Lifetime:  @p desc must be the input that @p plan was built from.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_frontier_plan_print(const vyre_frontier_plan *plan,
                                       const vyre_frontier_desc *desc,
                                       vyre_writer writer);

/** Returns the name of a part ("frontier"), or "?" for an unknown value.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_wave_part_name(vyre_wave_part part);

VYRE_END

#endif
