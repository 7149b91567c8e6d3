/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/sum.h
 *  Exact sums: elements of `sum_f32` and `sum_f64`.
 *
 *  A sum is exact and rounded once, when it is read. It does not depend on the
 *  order in which numbers were added, so sums of parts can be merged. In memory
 *  it has little-endian bins of 64 bits: 11 for sum_f32 (96 bytes), 71 for
 *  sum_f64 (576 bytes). Bin k counts units of 2^(32k - 149), for sum_f64 of
 *  2^(32k - 1074). A u32 with flags follows, for infinities and NaN, and a u32
 *  of 0. All bins except the last are in [0, 2^32). Equal sums therefore have
 *  equal bytes. Zeroed memory is the empty sum.
 *
 *  No alignment is needed. */
#ifndef VYRE_SUM_H
#define VYRE_SUM_H

#include <stddef.h>

#include "vyre/export.h"
#include "vyre/program.h"
#include "vyre/status.h"

VYRE_BEGIN

/** Returns the number nearest to a sum; ties go to the even one. A sum of 0 is
 *  +0. A sum beyond the largest finite number is an infinity. @p sum points to
 *  one element of sum_f32, or of sum_f64.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API float vyre_sum_round_f32(const void *sum);
VYRE_API double vyre_sum_round_f64(const void *sum);

/** Adds @p count numbers to a sum_f32, or to a sum_f64. A NaN, or infinities of
 *  both signs, make the sum NaN.
 *  Threads: safe, for different sums.  Blocks: never.  Errors: none. */
VYRE_API void vyre_sum_add_f32(void *sum, const float *numbers, size_t count);
VYRE_API void vyre_sum_add_f64(void *sum, const double *numbers, size_t count);

/** Adds @p count sums to as many others: from[i] to to[i]. @p element is
 *  VYRE_ELEMENT_SUM_F32 or VYRE_ELEMENT_SUM_F64. The result has the bytes that
 *  one sum of all numbers has.
 *  Threads:   safe, for different sums.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT for NULL, or another element type. */
VYRE_API VYRE_NODISCARD vyre_code vyre_sum_merge(vyre_element element, void *to,
                                                 const void *from, size_t count,
                                                 vyre_status *st);

VYRE_END

#endif
