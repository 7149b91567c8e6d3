/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Proves accesses that need relations between values, not only intervals:
 * text[place + k] under `n <= len(text) - place` and `k < n`, or heat[y *
 * width + x] under `x < width` and `y < len(heat) / width`. */
#ifndef VYRE_ANALYZE_SYMBOLIC_H
#define VYRE_ANALYZE_SYMBOLIC_H

#include "vyre/status.h"

#include "analyze/ranges.h"

/* Sets VYRE__RANGE_INSIDE in @p flags, one per node, for accesses of the
 * kernel that are proven. @p ranges is the interval analysis of the same
 * program. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__symbolic_prove(const vyre__ranges *ranges,
                               vyre_allocator allocator, uint8_t *flags,
                               vyre_status *st);

#endif
