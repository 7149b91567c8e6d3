/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Test values for operations: edge cases first, then random values. A value is
 * the bits of its type, in the low end of 64 bits. */
#ifndef VYRE_CTS_HARNESS_TEST_VALUES_H
#define VYRE_CTS_HARNESS_TEST_VALUES_H

#include "cts/harness/cts.h"

/* Returns the edge cases of @p type and stores their number in *count. */
const uint64_t *cts_edges(vyre_type type, size_t *count);

/* Returns a random value: floats of all exponents, integers of all lengths. */
uint64_t cts_random_value(uint64_t *state, vyre_type type);

/* Element size of a type, and storing and loading of values. */
size_t cts_type_size(vyre_type type);
void cts_put(void *to, size_t index, vyre_type type, uint64_t bits);
uint64_t cts_get(const void *from, size_t index, vyre_type type);

static inline bool cts_is_float(vyre_type type) {
  return type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64;
}
static inline bool cts_is_wide(vyre_type type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64;
}

/* Returns the CTS_NEEDS_* flag of a type, or 0. */
static inline unsigned cts_needs_of(vyre_type type) {
  return cts_is_wide(type)       ? CTS_NEEDS_U64
         : type == VYRE_TYPE_F64 ? CTS_NEEDS_F64
                                 : 0;
}

/* --- Expected results, computed in plain C
 * ------------------------------------ */

/* Returns the bits as a kernel stores them: every NaN becomes the canonical
 * NaN. */
uint64_t cts_seen(vyre_type type, uint64_t bits);

/* Stands for insert(a, b, c % 67, c / 67 % 67), which has four operands. The
 * operands of extract() are a, b % 67 and c % 67. */
#define CTS_INSERT VYRE_OP_COUNT

/* Compute the expected result. Return false if only the reference device can
 * compute it: mathematical functions. */
bool cts_expect_op(vyre_op op, vyre_type type, const uint64_t args[3],
                   uint64_t *out);
bool cts_expect_cast(vyre_type from, vyre_type to, uint64_t value,
                     uint64_t *out);

#endif
