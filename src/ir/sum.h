/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exact sums in memory: elements of sum_f32 and sum_f64.
 *
 * A sum has bins of 64 bits. Bin k counts units of 2^(32k) times the smallest
 * subnormal number. A u64 with flags follows: infinities and NaNs that were
 * added. In normal form all bins except the last are in [0, 2^32), so that equal
 * sums have equal bytes.
 *
 * An addition adds less than 2^32 to each of two or three adjacent bins and
 * carries nothing. Additions therefore commute and may be atomic, bin by bin.
 * Settling carries and restores the normal form. */
#ifndef VYRE_IR_SUM_H
#define VYRE_IR_SUM_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"

enum {
  VYRE__SUM_F32_BINS = 11,
  VYRE__SUM_F64_BINS = 71,
  VYRE__SUM_PLUS_INF = 1, /* flags */
  VYRE__SUM_MINUS_INF = 2,
  VYRE__SUM_NAN = 4,
};

static inline uint32_t vyre__sum_bins(unsigned element) {
  return element == VYRE_ELEMENT_SUM_F64 ? VYRE__SUM_F64_BINS
                                         : VYRE__SUM_F32_BINS;
}

/* Returns the number of 64-bit words of an element, with the flags. */
static inline uint32_t vyre__sum_words(unsigned element) {
  return vyre__sum_bins(element) + 1;
}

/* A finite number as a signed count of units. @p digits are added to the bins
 * from @p bin on; the third is 0 for f32. @p flags is 0 for a finite number. */
typedef struct vyre__sum_parts {
  uint32_t bin;
  int64_t digits[3];
  uint32_t flags;
} vyre__sum_parts;

/* Returns true if the kernel may change sums of a buffer that outlives it. */
bool vyre__changes_sums(const vyre_program *program, uint32_t buffer);

/* Splits a number, given by its bits, for an addition to a sum of @p
 * element. */
vyre__sum_parts vyre__sum_split(unsigned element, uint64_t bits);

/* Adds a number, given by its bits, and settles. */
void vyre__sum_add(unsigned element, void *sum, uint64_t bits);
/* Restores the normal form. Bins must be below 2^62 in magnitude. */
void vyre__sum_settle(unsigned element, void *sum);
/* Sets a sum to one number. */
void vyre__sum_set(unsigned element, void *sum, uint64_t bits);
/* Adds the sum @p from to @p to, and settles. */
void vyre__sum_merge(unsigned element, void *to, const void *from);
/* Returns the bits of the sum, rounded once to nearest even. */
uint64_t vyre__sum_round(unsigned element, const void *sum);

#endif
