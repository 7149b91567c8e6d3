/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cts/harness/test_values.h"

#include <string.h>

static const uint64_t bools[] = {0, 1};

static const uint64_t words[] = {
    0,          1,          2,          3,          7,          31,
    32,         33,         63,         64,         255,        256,
    65535,      65536,      0x55555555, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000,
    0x80000001, 0xAAAAAAAA, 0xFFFFFFFE, 0xFFFFFFFF};

static const uint64_t longs[] = {0,
                                 1,
                                 2,
                                 3,
                                 31,
                                 63,
                                 64,
                                 65,
                                 0xFFFFFFFF,
                                 UINT64_C(0x100000000),
                                 UINT64_C(0x100000001),
                                 UINT64_C(0x5555555555555555),
                                 UINT64_C(0x7FFFFFFFFFFFFFFE),
                                 INT64_MAX,
                                 UINT64_C(0x8000000000000000),
                                 UINT64_C(0x8000000000000001),
                                 UINT64_C(0xFFFFFFFF80000000),
                                 UINT64_MAX - 1,
                                 UINT64_MAX};

/* Zeros, subnormals, halves, limits of integers, infinities, NaNs. */
static const uint64_t floats[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000,
    0x80800000, 0x33800000, 0x3EFFFFFF, 0x3F000000, 0xBF000000, 0x3F000001,
    0x3F7FFFFF, 0x3F800000, 0xBF800000, 0x3F800001, 0x3FC00000, 0xBFC00000,
    0x40000000, 0x40200000, 0x4B000001, 0x4B7FFFFF, 0x4B800000, 0x4EFFFFFF,
    0x4F000000, 0xCF000000, 0x4F800000, 0x5F000000, 0xDF000000, 0x5F800000,
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
    0x7F800001};

static const uint64_t doubles[] = {0,
                                   UINT64_C(0x8000000000000000),
                                   1,
                                   UINT64_C(0x8000000000000001),
                                   UINT64_C(0x000FFFFFFFFFFFFF),
                                   UINT64_C(0x0010000000000000),
                                   UINT64_C(0x3FDFFFFFFFFFFFFF),
                                   UINT64_C(0x3FE0000000000000),
                                   UINT64_C(0xBFE0000000000000),
                                   UINT64_C(0x3FEFFFFFFFFFFFFF),
                                   UINT64_C(0x3FF0000000000000),
                                   UINT64_C(0xBFF0000000000000),
                                   UINT64_C(0x3FF0000000000001),
                                   UINT64_C(0x3FF8000000000000),
                                   UINT64_C(0xC004000000000000),
                                   UINT64_C(0x36A0000000000000),
                                   UINT64_C(0x380FFFFFFFFFFFFF),
                                   UINT64_C(0x41DFFFFFFFC00000),
                                   UINT64_C(0x41E0000000000000),
                                   UINT64_C(0xC1E0000000000000),
                                   UINT64_C(0x41EFFFFFFFF00000),
                                   UINT64_C(0x4340000000000001),
                                   UINT64_C(0x43E0000000000000),
                                   UINT64_C(0xC3E0000000000000),
                                   UINT64_C(0x43F0000000000000),
                                   UINT64_C(0x47EFFFFFE0000000),
                                   UINT64_C(0x47EFFFFFF0000000),
                                   UINT64_C(0x7FEFFFFFFFFFFFFF),
                                   UINT64_C(0x7FF0000000000000),
                                   UINT64_C(0xFFF0000000000000),
                                   UINT64_C(0x7FF8000000000000),
                                   UINT64_C(0xFFF8000000000001),
                                   UINT64_C(0x7FF0000000000001)};

#define LIST(values) (*count = sizeof(values) / sizeof *(values), (values))

const uint64_t *cts_edges(vyre_type type, size_t *count) {
  switch (type) {
    case VYRE_TYPE_U32:
    case VYRE_TYPE_I32:
      return LIST(words);
    case VYRE_TYPE_U64:
    case VYRE_TYPE_I64:
      return LIST(longs);
    case VYRE_TYPE_F32:
      return LIST(floats);
    case VYRE_TYPE_F64:
      return LIST(doubles);
    default:
      return LIST(bools);
  }
}

uint64_t cts_random_value(uint64_t *state, vyre_type type) {
  uint64_t bits = cts_random(state), how = cts_random(state);
  switch (type) {
    case VYRE_TYPE_U32:
    case VYRE_TYPE_I32: /* all bit lengths are equally likely */
      return (uint32_t)bits >> how % 32;
    case VYRE_TYPE_U64:
    case VYRE_TYPE_I64:
      return bits >> how % 64;
    /* Half of them near 1, so that sums and products round. */
    case VYRE_TYPE_F32:
      if (how % 2) return (uint32_t)bits;
      return (bits & 0x807FFFFF) | (120 + how / 2 % 16) << 23;
    case VYRE_TYPE_F64:
      if (how % 2) return bits;
      return (bits & UINT64_C(0x800FFFFFFFFFFFFF)) | (1015 + how / 2 % 16)
                                                         << 52;
    default:
      return bits & 1;
  }
}

size_t cts_type_size(vyre_type type) {
  if (type == VYRE_TYPE_BOOL) return 1;
  return cts_is_wide(type) || type == VYRE_TYPE_F64 ? 8 : 4;
}

/* Kernel memory is little endian. */
void cts_put(void *to, size_t index, vyre_type type, uint64_t bits) {
  size_t size = cts_type_size(type);
  unsigned char *at = (unsigned char *)to + index * size;
  for (size_t i = 0; i < size; i++) at[i] = (unsigned char)(bits >> 8 * i);
}

uint64_t cts_get(const void *from, size_t index, vyre_type type) {
  size_t size = cts_type_size(type);
  const unsigned char *at = (const unsigned char *)from + index * size;
  uint64_t bits = 0;
  for (size_t i = 0; i < size; i++) bits |= (uint64_t)at[i] << 8 * i;
  return bits;
}
