/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Range analysis: the possible values of integers, and accesses that are
 * always in bounds.
 *
 * Results exist for nodes of the kernel; values inside functions are unknown
 * (see analyze/inline/inline.h). Guards count: inside `if (i < len(y))`, and after
 * `if (i >= len(y)) return;`, y[i] is in bounds. Results hold for one
 * workgroup size; another size needs another analysis. */
#ifndef VYRE_ANALYZE_RANGES_H
#define VYRE_ANALYZE_RANGES_H

#include "vyre/status.h"

#include "analyze/interval.h"
#include "ir/ir.h"

enum {
  VYRE__RANGE_INSIDE = 1,  /* LOAD, STORE, atomics: the index is in bounds */
  VYRE__RANGE_OUTSIDE = 2, /* ... is out of bounds, always */
  VYRE__RANGE_BOUNDED = 4, /* FOR: the interval is its trip count */
  VYRE__RANGE_ANOTHER = 8, /* LOAD, ...: below the length of another buffer */
  VYRE__RANGE_POWER = 16,  /* integers: 0 or a power of two */
};

/* Bit patterns in the type of the node. */
typedef struct vyre__range {
  uint64_t lo, hi;
} vyre__range;

typedef struct vyre__ranges {
  const vyre_program *program;
  const vyre__range
      *nodes;           /* expressions; FOR: min and max number of iterations */
  const uint8_t *flags; /* VYRE__RANGE_* */
  /* racy guards, which prove nothing (analyze/racy_guards.h), or NULL */
  const uint8_t *unsteady;
} vyre__ranges;

/* Runs the analysis. @p workgroup has the sizes of its axes; NULL for those
 * of the program. *out lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__ranges_build(const vyre_program *program,
                             const uint32_t workgroup[3], vyre_arena *arena,
                             vyre__ranges *out, vyre_status *st);

/* Like vyre__ranges_build, but cheaper: for nodes up to the statement with
 * node @p last only. It also leaves out slow analyses: guards that compare
 * two values (analyze/symbolic.h), and bounds of variables that a `while`
 * assigns. */
vyre_code vyre__ranges_build_to(const vyre_program *program,
                                const uint32_t workgroup[3], vyre__id last,
                                vyre_arena *arena, vyre__ranges *out,
                                vyre_status *st);

/* Returns the possible values of an expression; the full range of its type if
 * nothing is known. */
static inline vyre__interval vyre__range_of(const vyre__ranges *ranges,
                                            vyre__id id) {
  vyre_type type = (vyre_type)ranges->program->nodes[id].type;
  const vyre__range *range = &ranges->nodes[id];
  return (vyre__interval){vyre__interval_value(type, range->lo),
                          vyre__interval_value(type, range->hi)};
}

#endif
