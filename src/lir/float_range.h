/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Range of a float value: bounds, and if it can be NaN. */
#ifndef VYRE_LIR_FLOAT_RANGE_H
#define VYRE_LIR_FLOAT_RANGE_H

#include <math.h>

#include "lir/lir.h"

typedef enum vyre__nan {
  VYRE__NAN_NEVER,
  VYRE__NAN_CANONICAL, /* if NaN, then the canonical one */
  VYRE__NAN_ANY,
} vyre__nan;

/* The bounds apply to values that are not NaN. They may be infinite. */
typedef struct vyre__float_range {
  double lo, hi;
  uint8_t nan; /* vyre__nan */
} vyre__float_range;

static inline vyre__float_range vyre__float_range_any(void) {
  return (vyre__float_range){-INFINITY, INFINITY, VYRE__NAN_ANY};
}

static inline bool vyre__float_range_is_any(vyre__float_range f) {
  return f.nan == VYRE__NAN_ANY && f.lo == -INFINITY && f.hi == INFINITY;
}

/* Returns the range of an operation's result from the ranges of its operands;
 * @p from is the type of the first. The result is sound: it contains every
 * value that operands within their ranges can produce. */
vyre__float_range vyre__float_range_of(const vyre__lir_inst *inst,
                                       vyre_type from,
                                       const vyre__float_range operands[3]);

vyre__float_range vyre__float_range_min(vyre__float_range a,
                                        vyre__float_range b);
vyre__float_range vyre__float_range_max(vyre__float_range a,
                                        vyre__float_range b);

static inline bool vyre__float_range_is_finite(vyre__float_range f) {
  return f.nan == VYRE__NAN_NEVER && f.lo >= -0x1.fffffffffffffp1023 &&
         f.hi <= 0x1.fffffffffffffp1023;
}

#endif
