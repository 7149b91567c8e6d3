/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Accesses that intervals do not prove, but what is known of values in terms of
 * each other does: text[place + k] below `n <= len(text) - place` and `k < n`,
 * or heat[y * width + x] below `x < width` and `y < len(heat) / width`. */
#ifndef VYRE_ANALYZE_SYMBOLIC_H
#define VYRE_ANALYZE_SYMBOLIC_H

#include "vyre/status.h"

#include "analyze/ranges.h"

/* Sets VYRE__RANGE_INSIDE in @p flags, one a node, of the kernel's accesses that
 * can be proven. @p ranges is what intervals say of the same program. Errors:
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__symbolic_prove(const vyre__ranges *ranges,
                               vyre_allocator allocator, uint8_t *flags,
                               vyre_status *st);

#endif
