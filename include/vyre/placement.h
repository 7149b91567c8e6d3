/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/placement.h
 *  The placement plan: lifetimes and sizes into offsets of one allocation, so
 *  that nothing that lives at the same time overlaps, in as few bytes as can be
 *  found. */
#ifndef VYRE_PLACEMENT_H
#define VYRE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Bytes that live from first_group to last_group, both included. */
typedef struct vyre_interval {
  uint64_t size;      /* rounded up to the alignment first; 0 needs no place */
  uint64_t alignment; /* of the offset; any number, 0 means 1 */
  uint64_t first_group;
  uint64_t last_group; /* at least first_group */
} vyre_interval;

/** How hard to try. Zeroed: the defaults. The limits count steps, never time,
 *  so that equal input gives equal plans everywhere. The first best-fit order
 *  is not limited: it runs whole, or (with very many intervals that live at
 *  once) not at all. The search leaves out what has more than 2000 intervals
 *  that no moment separates. */
typedef struct vyre_placement_options {
  uint64_t heuristic_steps; /* for best-fit orders; 0: the default */
  uint64_t search_nodes;    /* for the exact search; 0: the default */
  bool no_search;           /* stop after the best-fit orders */
} vyre_placement_options;

/** What found the offsets: the costliest method that was needed somewhere. The
 *  first two always run and are all that very many intervals get. */
#define VYRE_PLACEMENT_METHOD_MAP(X)     \
  X(VYRE_PLACED_BY_SKYLINE, "skyline")   \
  X(VYRE_PLACED_BY_SWEEP, "sweep")       \
  X(VYRE_PLACED_BY_BEST_FIT, "best_fit") \
  X(VYRE_PLACED_BY_SEARCH, "search")

typedef enum vyre_placement_method {
#define VYRE_X2(name, text) name,
  VYRE_PLACEMENT_METHOD_MAP(VYRE_X2) VYRE_PLACEMENT_METHOD_COUNT
#undef VYRE_X2
} vyre_placement_method;

typedef struct vyre_placement_plan {
  const uint64_t *offsets; /* one an interval, in input order */
  size_t interval_count;
  uint64_t placed_bytes;      /* the allocation that holds all of them */
  uint64_t lower_bound_bytes; /* most (rounded) bytes live at once */
  uint64_t gap_bytes;         /* placed - lower bound */
  bool optimal; /* no placement is smaller: the gap is 0, or the search ended */
  vyre_placement_method method;
  uint64_t search_nodes; /* nodes that the exact search visited */
} vyre_placement_plan;

/** Working memory of the planner: the caller's, kept between calls. Zeroed, it
 *  is ready for use and takes the C library's heap.
 *  Threads: compatible. Fields are the planner's own. */
typedef struct vyre_placement_scratch {
  vyre_arena arena;
} vyre_placement_scratch;

/** Most intervals of a plan: indices inside are 32 bits wide, and some count
 *  both ends of an interval. */
#define VYRE_MAX_INTERVALS (UINT32_C(1) << 30)

VYRE_BEGIN

/** Makes empty scratch over @p allocator. Allocates nothing yet.
 *  Ownership: end it with vyre_placement_scratch_deinit.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_placement_scratch_init(vyre_placement_scratch *scratch,
                                          vyre_allocator allocator);

/** Frees the scratch. NULL or zeroed is fine.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_placement_scratch_deinit(vyre_placement_scratch *scratch);

/** Places @p intervals. Best-fit orders first; while they leave a gap to the
 *  lower bound, a node-limited exact search. Deterministic. A second plan of
 *  the same input allocates nothing, if the arena was reset.
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is as before.
 *  Lifetime:  @p intervals and @p options are borrowed for the call; options
 *             may be NULL, and so may intervals if there are none.
 *  Threads:   safe; arena and scratch are compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_PLAN_REJECTED: invalid_interval (last before first),
 *             byte_count_overflow (aligned interval bytes, live interval
 *             bytes, placed bytes, interval count); VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_placement_plan_build(
    const vyre_interval *intervals, size_t interval_count,
    const vyre_placement_options *options, vyre_placement_scratch *scratch,
    vyre_arena *arena, vyre_placement_plan *out, vyre_status *st);

/** Prints the figures of a plan and the place of each interval.
 *  Returns false if @p writer refused or @p plan is NULL.
 *  Lifetime: @p intervals must be what @p plan was built from.
 *  Threads: safe.  Blocks: on the writer.  Errors: none. */
VYRE_API bool vyre_placement_plan_print(const vyre_placement_plan *plan,
                                        const vyre_interval *intervals,
                                        vyre_writer writer);

/** "best_fit" and so on; "?" for a number that is none.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_placement_method_name(vyre_placement_method method);

VYRE_END

#endif
