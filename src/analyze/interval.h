/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What integer operations make of intervals. Sound: whatever the operands are
 * inside theirs, the result is inside the result's. */
#ifndef VYRE_ANALYZE_INTERVAL_H
#define VYRE_ANALYZE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"

/* Room for every value of every integer type, and for sums of them. */
__extension__ typedef __int128 vyre__wide;

typedef struct vyre__interval {
  vyre__wide lo, hi; /* lo <= hi */
} vyre__interval;

/* Whether values of the type have intervals: integers and bool. */
static inline bool vyre__has_interval(unsigned type) {
  return type >= VYRE_TYPE_BOOL && type <= VYRE_TYPE_I64;
}

/* All values of a type; 0 alone for types that have no intervals. */
vyre__interval vyre__interval_full(vyre_type type);

/* The value of a literal of that type. */
static inline vyre__wide vyre__interval_value(vyre_type type, uint64_t bits) {
  if (type == VYRE_TYPE_I32) return (int32_t)(uint32_t)bits;
  if (type == VYRE_TYPE_I64) return (int64_t)bits;
  return vyre__has_interval(type) ? bits : 0;
}

static inline bool vyre__interval_inside(vyre__interval a, vyre__interval b) {
  return a.lo >= b.lo && a.hi <= b.hi;
}

vyre__interval vyre__interval_join(vyre__interval a, vyre__interval b);

/* @p op with one operand of type @p from, giving @p type. Operations that are
 * not known give everything. */
vyre__interval vyre__interval_unary(vyre__op op, vyre_type from, vyre_type type,
                                    vyre__interval a);

/* @p op with two operands of type @p from (a shift's count is u32). */
vyre__interval vyre__interval_binary(vyre__op op, vyre_type from,
                                     vyre_type type, vyre__interval a,
                                     vyre__interval b);

#endif
