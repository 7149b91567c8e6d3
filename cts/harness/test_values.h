/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values to try operations with: those where they go wrong, then random ones. A
 * value is the bits of its type, in the low end of 64. */
#ifndef VYRE_CTS_HARNESS_TEST_VALUES_H
#define VYRE_CTS_HARNESS_TEST_VALUES_H

#include "cts/harness/cts.h"

/* Values of @p type where something happens; *count is their number. */
const uint64_t *cts_edges(vyre_type type, size_t *count);

/* A random value: floats over all exponents, integers of all lengths. */
uint64_t cts_random_value(uint64_t *state, vyre_type type);

/* Bytes of an element of that type, and putting values there and back. */
size_t cts_type_size(vyre_type type);
void cts_put(void *to, size_t index, vyre_type type, uint64_t bits);
uint64_t cts_get(const void *from, size_t index, vyre_type type);

static inline bool cts_is_float(vyre_type type) {
  return type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64;
}
static inline bool cts_is_wide(vyre_type type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64;
}

/* CTS_NEEDS_* of values of that type. */
static inline unsigned cts_needs_of(vyre_type type) {
  return cts_is_wide(type)       ? CTS_NEEDS_U64
         : type == VYRE_TYPE_F64 ? CTS_NEEDS_F64
                                 : 0;
}

/* --- what an operation must give, in plain C ---------------------------------------- */

/* A value as it is seen, in memory or by as_u32: there is one NaN. */
uint64_t cts_seen(vyre_type type, uint64_t bits);

/* False if there is no oracle but ref: functions of mathematics. */
bool cts_expect_op(vyre_op op, vyre_type type, const uint64_t args[3],
                   uint64_t *out);
bool cts_expect_cast(vyre_type from, vyre_type to, uint64_t value,
                     uint64_t *out);

#endif
