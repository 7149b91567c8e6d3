/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/frontier.h
 *  The frontier memory plan: waves into groups that keep a byte budget. */
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

/** The bytes of one wave. In a fused group, where all waves run between two
 *  barriers, it counts frontier + 4 * scratch + output bytes. */
typedef struct vyre_frontier_wave {
  uint64_t frontier_bytes;
  uint64_t scratch_bytes;
  uint64_t output_bytes;
} vyre_frontier_wave;

/** How many times its scratch bytes a wave holds in a fused group. */
#define VYRE_FUSED_SCRATCH_FACTOR 4

/** The parts of a wave, in the order of its intervals: X(enumerator, name). */
#define VYRE_WAVE_PART_MAP(X)       \
  X(VYRE_PART_FRONTIER, "frontier") \
  X(VYRE_PART_SCRATCH, "scratch")   \
  X(VYRE_PART_OUTPUT, "output")

typedef enum vyre_wave_part {
#define VYRE_X2(name, text) name,
  VYRE_WAVE_PART_MAP(VYRE_X2) VYRE_PART_COUNT
#undef VYRE_X2
} vyre_wave_part;

typedef struct vyre_frontier_desc {
  const vyre_frontier_wave *waves;
  size_t wave_count;
  const vyre_wave_dependency *dependencies;
  size_t dependency_count;
  uint64_t resident_graph_bytes; /* in the budget from first to last group */
  uint64_t budget_bytes;
  uint64_t readback_bytes; /* readback pressure seen at run time */
} vyre_frontier_desc;

typedef struct vyre_frontier_plan {
  vyre_barrier_plan barriers;   /* groups after splitting to the budget */
  uint64_t peak_frontier_bytes; /* largest sum of frontier bytes of a group */
  uint64_t peak_scratch_bytes;
  uint64_t peak_output_bytes;
  uint64_t peak_group_bytes;         /* largest sum of fused wave bytes */
  uint64_t amortized_readback_bytes; /* max(readback, peak output) */
  size_t max_group_width;            /* most waves in a group */
  size_t minimum_groups; /* no valid grouping has fewer; see below */
} vyre_frontier_plan;

VYRE_BEGIN

/** Fused bytes of one wave: frontier + 4 * scratch + output.
 *  Ownership: fills *out.  Threads: safe.  Blocks: never.
 *  Errors: VYRE_PLAN_REJECTED: byte_count_overflow (fused wave scratch bytes,
 *          fused wave bytes). */
VYRE_API VYRE_NODISCARD vyre_code vyre_frontier_wave_bytes(
    const vyre_frontier_wave *wave, uint64_t *out, vyre_status *st);

/** Plans groups as vyre_barrier_plan_build does, then splits each so that the
 *  fused bytes of a group stay within budget - resident graph bytes.
 *
 *  minimum_groups is a lower bound for every grouping that keeps the
 *  dependencies and the budget B, not only for this planner's: for each depth
 *  d, the waves at depth d or more come no earlier than group d, and need at
 *  least as many groups as their bytes fill, and as many as there are waves
 *  above B/2 among them. If it equals group_count, the plan is proven to have
 *  the fewest groups.
 *
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is as before.
 *  Lifetime:  @p desc and its arrays are borrowed for the call.
 *  Threads:   safe; arena and scratch are compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    those of vyre_barrier_plan_build, then VYRE_PLAN_REJECTED:
 *             group_over_budget (resident graph bytes; single fused frontier
 *             wave bytes) with required_bytes, budget_bytes and, where it is
 *             known, smallest_budget_bytes: the least budget_bytes that would
 *             do (unknown only if sums come close to 64 bits);
 *             byte_count_overflow. */
VYRE_API VYRE_NODISCARD vyre_code vyre_frontier_plan_build(
    const vyre_frontier_desc *desc, vyre_barrier_scratch *scratch,
    vyre_arena *arena, vyre_frontier_plan *out, vyre_status *st);

/** The intervals that the waves of a plan occupy, for
 *  vyre_placement_plan_build: part p of wave w is at w * VYRE_PART_COUNT + p;
 *  scratch counts four times, as in its group. Scratch lives in its group;
 *  frontier and output live from their group to the last group that depends on
 *  the wave, or, if none does, to the last group, where they are read back. So
 *  what is placed can be more than the largest group: lifetimes overlap.
 *  Ownership: *out (wave_count * VYRE_PART_COUNT entries) lives in @p arena;
 *             NULL on failure.
 *  Lifetime:  @p desc must be what @p plan was built from.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_ARGUMENT if the plan's groups are broken, or it is
 *             seen that @p desc is another (number of waves, an edge inside a
 *             group); VYRE_PLAN_REJECTED: byte_count_overflow;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_frontier_intervals(
    const vyre_frontier_plan *plan, const vyre_frontier_desc *desc,
    uint64_t alignment, vyre_arena *arena, const vyre_interval **out,
    vyre_status *st);

/** Prints the figures of a plan and draws its groups with their bytes against
 *  the budget. Returns false if @p writer refused or @p plan is NULL.
 *  Lifetime: @p desc must be what @p plan was built from. Threads: safe.
 *  Blocks: on the writer.  Errors: none. */
VYRE_API bool vyre_frontier_plan_print(const vyre_frontier_plan *plan,
                                       const vyre_frontier_desc *desc,
                                       vyre_writer writer);

/** "frontier" and so on; "?" for a number that is none.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_wave_part_name(vyre_wave_part part);

VYRE_END

#endif
