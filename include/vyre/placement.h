/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/placement.h
 *  Placement planner: assigns offsets in one allocation to memory intervals,
 *  so that intervals that live at the same time do not overlap and the
 *  allocation is as small as possible. */
#ifndef VYRE_PLACEMENT_H
#define VYRE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Memory that lives from first_group to last_group, both included. */
typedef struct vyre_interval {
  uint64_t size; /* bytes, rounded up to the alignment; 0: takes no memory */
  uint64_t alignment;   /* of the offset; any number; 0 means 1 */
  uint64_t first_group; /* first group that uses the memory */
  uint64_t last_group;  /* last group that uses it; at least first_group */
} vyre_interval;

/** Effort limits. Zeroed: the defaults. The limits count steps, not time, so
 *  that equal input gives equal plans on every machine. The first best-fit
 *  order is not limited; it is left out if very many intervals live at once.
 *  The search leaves out sets of more than 2000 intervals that no point in
 *  time separates. */
typedef struct vyre_placement_options {
  /* Step limit of the best-fit orders; 0: the default. */
  uint64_t heuristic_steps;
  uint64_t search_nodes; /* node limit of the exact search; 0: the default */
  bool no_search;        /* stop after the best-fit orders */
  uint64_t reserved[4];  /* must be zero */
} vyre_placement_options;

/** Placement methods, cheapest first: X(enumerator, name). The first two
 *  always run, and are the only ones for very many intervals. */
#define VYRE_PLACEMENT_METHOD_MAP(X)     \
  X(VYRE_PLACED_BY_SKYLINE, "skyline")   \
  X(VYRE_PLACED_BY_SWEEP, "sweep")       \
  X(VYRE_PLACED_BY_BEST_FIT, "best_fit") \
  X(VYRE_PLACED_BY_SEARCH, "search")

/** Placement method. */
typedef enum vyre_placement_method {
#define VYRE_X2(name, text) name,
  VYRE_PLACEMENT_METHOD_MAP(VYRE_X2) VYRE_PLACEMENT_METHOD_COUNT
#undef VYRE_X2
} vyre_placement_method;

/** Result of the placement planner. */
typedef struct vyre_placement_plan {
  const uint64_t *offsets;    /* offset of every interval, in input order */
  size_t interval_count;      /* entries of `offsets` */
  uint64_t placed_bytes;      /* size of the allocation */
  uint64_t lower_bound_bytes; /* maximum (rounded) bytes alive at once */
  uint64_t gap_bytes;         /* placed_bytes - lower_bound_bytes */
  bool
      is_optimal; /* proven minimal: the gap is 0, or the search was complete */
  vyre_placement_method method; /* most expensive method that was needed */
  uint64_t search_nodes;        /* nodes that the exact search visited */
  uint64_t reserved[4];         /* zero; for future fields */
} vyre_placement_plan;

/** Working memory of the planner. Keep it between calls. Zeroed scratch is
 *  ready for use and allocates from the C heap. The fields are private.
 *  Threads:   compatible. */
typedef struct vyre_placement_scratch {
  vyre_arena arena;     /* all working memory */
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_placement_scratch;

/** Maximum number of intervals in one plan. The planner indexes interval ends
 *  with 32 bits. */
#define VYRE_MAX_INTERVALS (UINT32_C(1) << 30)

VYRE_BEGIN

/** Initialises empty scratch that allocates from @p allocator. Allocates
 *  nothing.
 *  Ownership: free the memory with vyre_placement_scratch_deinit.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_placement_scratch_init(vyre_placement_scratch *scratch,
                                          vyre_allocator allocator);

/** Frees the memory of @p scratch. Accepts NULL and zeroed scratch.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_placement_scratch_deinit(vyre_placement_scratch *scratch);

/** Places @p intervals: first with best-fit orders; then, while a gap to the
 *  lower bound remains, with an exact search of limited size. Deterministic. A
 *  second plan of the same input allocates nothing if the arena was reset.
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is unchanged.
 *  Lifetime:  @p intervals and @p options are borrowed for the call. @p
 *             options may be NULL.
 *  Threads:   safe; arena and scratch are compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_PLAN_REJECTED: invalid_interval if last_group is before
 *             first_group; byte_count_overflow (aligned interval bytes, live
 *             interval bytes, placed bytes, interval count).
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_placement_plan_build(
    const vyre_interval *intervals, size_t interval_count,
    const vyre_placement_options *options, vyre_placement_scratch *scratch,
    vyre_arena *arena, vyre_placement_plan *out, vyre_status *st);

/** Prints the figures of a plan and the offset of each interval. Returns false
 *  if @p writer fails or @p plan is NULL.
 *  Lifetime:  @p intervals must be the input that @p plan was built from.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_placement_plan_print(const vyre_placement_plan *plan,
                                        const vyre_interval *intervals,
                                        vyre_writer writer);

/** Returns the name of a method ("best_fit"), or "?" for an unknown value.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_placement_method_name(vyre_placement_method method);

VYRE_END

#endif
