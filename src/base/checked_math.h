/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checked arithmetic. A function with @p out returns false if the result does
 * not fit, and does not change *out then. */
#ifndef VYRE_BASE_CHECKED_MATH_H
#define VYRE_BASE_CHECKED_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool vyre__add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

static inline bool vyre__mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

static inline bool vyre__add(size_t a, size_t b, size_t *out) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

static inline bool vyre__mul(size_t a, size_t b, size_t *out) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

/* Return the sum and the product, or UINT64_MAX if it does not fit. */
static inline uint64_t vyre__add_saturated(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t vyre__mul_saturated(uint64_t a, uint64_t b) {
  return b > 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* Rounds value / divisor up. Returns false if @p divisor is 0. */
static inline bool vyre__ceil_div_u64(uint64_t value, uint64_t divisor,
                                      uint64_t *out) {
  if (divisor == 0) return false;
  *out = value / divisor + (value % divisor != 0);
  return true;
}

/* Rounds @p value up to a multiple of @p alignment, which need not be a power
 * of two. Returns false if @p alignment is 0. */
static inline bool vyre__align_up_u64(uint64_t value, uint64_t alignment,
                                      uint64_t *out) {
  if (alignment == 0) return false;
  uint64_t remainder = value % alignment;
  if (remainder == 0) {
    *out = value;
    return true;
  }
  return vyre__add_u64(value, alignment - remainder, out);
}

static inline bool vyre__is_power_of_two(uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

#endif
