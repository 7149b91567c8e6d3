/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which values integers can have, and which accesses are inside their buffer
 * whatever happens.
 *
 * Facts are about the nodes of the kernel itself; inside functions everything is
 * possible (analyze/inline.h). Guards count: below `if (i < len(y))`, and after
 * `if (i >= len(y)) return;`, y[i] is inside. They hold for one size of
 * workgroup: compiled for another, a program needs facts of its own. */
#ifndef VYRE_ANALYZE_RANGES_H
#define VYRE_ANALYZE_RANGES_H

#include "vyre/status.h"

#include "analyze/interval.h"
#include "ir/ir.h"

enum {
  VYRE__RANGE_INSIDE = 1,  /* LOAD, STORE, atomics: the index is in bounds */
  VYRE__RANGE_OUTSIDE = 2, /* ... is out of bounds, always */
  VYRE__RANGE_BOUNDED = 4, /* FOR: the interval is that of its trips */
  VYRE__RANGE_ANOTHER = 8, /* LOAD, ...: below the length of another buffer */
};

/* Bits as the type of the node has them. */
typedef struct vyre__range {
  uint64_t lo, hi;
} vyre__range;

typedef struct vyre__ranges {
  const vyre_program *program;
  const vyre__range *nodes; /* expressions; FOR: least and most trips that
                               are begun */
  const uint8_t *flags;     /* VYRE__RANGE_* */
  const uint8_t
      *unsteady; /* guards that prove nothing (analyze/racy_guards.h), or
                               NULL: there are none */
} vyre__ranges;

/* @p workgroup: sizes of its axes, NULL for those that the program declares. *out
 * lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__ranges_build(const vyre_program *program,
                             const uint32_t workgroup[3], vyre_arena *arena,
                             vyre__ranges *out, vyre_status *st);

/* The same for who wants facts of the kernel's nodes up to @p last only, at less
 * cost: behind the statement that it is in, there are none. Nor is there what
 * takes time: guards that say of two values which is less (analyze/symbolic.h),
 * and bounds of what a `while` assigns. */
vyre_code vyre__ranges_build_to(const vyre_program *program,
                                const uint32_t workgroup[3], vyre__id last,
                                vyre_arena *arena, vyre__ranges *out,
                                vyre_status *st);

/* The values of an expression: all of its type if nothing better is known. */
static inline vyre__interval vyre__range_of(const vyre__ranges *ranges,
                                            vyre__id id) {
  vyre_type type = (vyre_type)ranges->program->nodes[id].type;
  const vyre__range *range = &ranges->nodes[id];
  return (vyre__interval){vyre__interval_value(type, range->lo),
                          vyre__interval_value(type, range->hi)};
}

#endif
