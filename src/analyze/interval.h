/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interval arithmetic for integer operations. Sound: if each operand is in
 * its interval, the result is in the result's interval. */
#ifndef VYRE_ANALYZE_INTERVAL_H
#define VYRE_ANALYZE_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"

/* Holds every value of every integer type, and sums of them. */
__extension__ typedef __int128 vyre__wide;

typedef struct vyre__interval {
  vyre__wide lo, hi; /* lo <= hi */
} vyre__interval;

/* Returns true for types with intervals: integers and bool. */
static inline bool vyre__has_interval(unsigned type) {
  return type >= VYRE_TYPE_BOOL && type <= VYRE_TYPE_I64;
}

/* Returns all values of a type; [0, 0] for types without intervals. */
vyre__interval vyre__interval_full(vyre_type type);

/* Returns the value of a literal of that type. */
static inline vyre__wide vyre__interval_value(vyre_type type, uint64_t bits) {
  if (type == VYRE_TYPE_I32) return (int32_t)(uint32_t)bits;
  if (type == VYRE_TYPE_I64) return (int64_t)bits;
  return vyre__has_interval(type) ? bits : 0;
}

static inline bool vyre__interval_inside(vyre__interval a, vyre__interval b) {
  return a.lo >= b.lo && a.hi <= b.hi;
}

vyre__interval vyre__interval_join(vyre__interval a, vyre__interval b);

/* Evaluates @p op for one operand of type @p from; the result has @p type.
 * Unsupported operations return the full interval. */
vyre__interval vyre__interval_unary(vyre__op op, vyre_type from, vyre_type type,
                                    vyre__interval a);

/* Evaluates @p op for two operands of type @p from (the count of a shift is
 * u32). */
vyre__interval vyre__interval_binary(vyre__op op, vyre_type from,
                                     vyre_type type, vyre__interval a,
                                     vyre__interval b);

/* Returns the range of extract(): @p count is that of its third operand. */
vyre__interval vyre__interval_extract(vyre_type type, vyre__interval a,
                                      vyre__interval count);

#endif
