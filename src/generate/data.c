/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values at the edges of arithmetic. All are made from bit patterns, so that
 * nothing here depends on the float arithmetic of the machine. */
#include <string.h>

#include "generate/internal.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const uint32_t edges_f32[] = {
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000,
    0x3FC00000, 0xBFC00000, 0x40200000, 0xC0200000, 0x40000000, 0x00000001,
    0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF,
    0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001,
    0x7FFFFFFF, 0x4B000000, 0x4B000001, 0x4AFFFFFF, 0xCAFFFFFF, 0x4B7FFFFF,
    0x4B800000, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF,
    0x4F800000, 0x5EFFFFFF, 0x5F000000, 0xDF000000, 0x5F800000, 0x3EFFFFFF,
    0x3F7FFFFF, 0x3F800001, 0x33800000, 0x34000000, 0x477FE000, 0x477FF000,
    0x387FC000, 0x33000000, 0x33000001, 0x1E3CE508, 0x40490FDB};

static const uint64_t edges_f64[] = {
    0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000,
    0xBFF0000000000000, 0x3FE0000000000000, 0xBFE0000000000000,
    0x3FF8000000000000, 0xC004000000000000, 0x0000000000000001,
    0x8000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000,
    0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000,
    0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000001,
    0x7FF0000000000001, 0x41DFFFFFFFC00000, 0x41E0000000000000,
    0xC1E0000000000000, 0xC1E0000000200000, 0x41EFFFFFFFE00000,
    0x41F0000000000000, 0x43E0000000000000, 0xC3E0000000000000,
    0x43DFFFFFFFFFFFFF, 0x43F0000000000000, 0x4330000000000000,
    0x432FFFFFFFFFFFFF, 0x3FDFFFFFFFFFFFFF, 0x47EFFFFFE0000000,
    0x47EFFFFFF0000000, 0x36A0000000000000, 0x3690000000000000,
    0x380FFFFFC0000000, 0x3FF0000010000000, 0x3FF0000030000000};

static const uint16_t edges_f16[] = {
    0x0000, 0x8000, 0x3C00, 0xBC00, 0x3800, 0x3E00, 0xC100, 0x0001, 0x8001,
    0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01};

static const uint16_t edges_bf16[] = {
    0x0000, 0x8000, 0x3F80, 0xBF80, 0x3F00, 0x3FC0, 0xC020, 0x0001, 0x8001,
    0x007F, 0x0080, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81};

static const uint64_t edges_integer[] = {0,
                                         1,
                                         2,
                                         3,
                                         7,
                                         31,
                                         32,
                                         63,
                                         64,
                                         0x7F,
                                         0x80,
                                         0xFF,
                                         0x7FFF,
                                         0x8000,
                                         0xFFFF,
                                         0xFFFFFF,
                                         0x1000000,
                                         0x1000001,
                                         0x7FFFFFFF,
                                         0x80000000,
                                         0x80000001,
                                         0xFFFFFFFF,
                                         0xFFFFFFFE,
                                         0x100000000,
                                         0x20000000000001,
                                         0x7FFFFFFFFFFFFFFF,
                                         0x8000000000000000,
                                         0x8000000000000001,
                                         0xFFFFFFFFFFFFFFFF,
                                         0xFFFFFFFFFFFFFFFE,
                                         0xFFFFFFFF80000000,
                                         0xFFFFFFFF00000000};

static uint64_t integer_bits(gen *g) {
  switch (gen_below(g, 6)) {
    case 0:
    case 1:
      return edges_integer[gen_below(g, COUNT(edges_integer))];
    case 2:
      return gen_below(g, 20);
    case 3:
      return 0 - (uint64_t)gen_below(g, 20);
    case 4:
      return (uint64_t)1 << gen_below(g, 64);
    default: {
      uint64_t bits = gen_next(g);
      return bits >> gen_below(g, 64);
    }
  }
}

/* Returns a float with a random sign and fraction and an exponent near that
 * of 1. */
static uint64_t usual_float(gen *g, unsigned exponent_bits,
                            unsigned fraction_bits, unsigned spread) {
  uint64_t bias = ((uint64_t)1 << (exponent_bits - 1)) - 1;
  uint64_t exponent = bias - spread + gen_below(g, 2 * spread + 1);
  uint64_t fraction = gen_next(g) & (((uint64_t)1 << fraction_bits) - 1);
  /* few bits make results exact and cause ties */
  if (gen_chance(g, 50)) {
    fraction &= ~((uint64_t)0) << (fraction_bits - gen_below(g, 5));
  }
  uint64_t sign = gen_below(g, 2);
  return sign << (exponent_bits + fraction_bits) | exponent << fraction_bits |
         fraction;
}

static uint64_t f32_bits(gen *g) {
  uint32_t pick = gen_below(g, 10);
  if (pick < 3) return edges_f32[gen_below(g, COUNT(edges_f32))];
  if (pick < 9) return usual_float(g, 8, 23, pick < 7 ? 4 : 32);
  return gen_next(g) & UINT32_MAX;
}

static uint64_t f64_bits(gen *g) {
  uint32_t pick = gen_below(g, 10);
  if (pick < 3) return edges_f64[gen_below(g, COUNT(edges_f64))];
  if (pick < 9) return usual_float(g, 11, 52, pick < 7 ? 4 : 70);
  return gen_next(g);
}

/* f16 and bf16. */
static uint64_t half_bits(gen *g, const uint16_t *edges, size_t edge_count,
                          unsigned exponent_bits) {
  uint32_t pick = gen_below(g, 10);
  if (pick < 3) return edges[gen_below(g, (uint32_t)edge_count)];
  if (pick < 8) return usual_float(g, exponent_bits, 15 - exponent_bits, 5);
  return gen_next(g) & UINT16_MAX;
}

uint64_t gen_bits(gen *g, vyre_type type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return gen_below(g, 2);
    case VYRE_TYPE_F32:
      return f32_bits(g);
    case VYRE_TYPE_F64:
      return f64_bits(g);
    case VYRE_TYPE_U32:
    case VYRE_TYPE_I32:
      return integer_bits(g) & UINT32_MAX;
    default:
      return integer_bits(g);
  }
}

static uint64_t element_bits(gen *g, vyre_element element) {
  switch (element) {
    case VYRE_ELEMENT_BOOL: /* everything but 0 is true */
      return gen_chance(g, 80) ? gen_below(g, 2) : gen_next(g);
    case VYRE_ELEMENT_F16:
      return half_bits(g, edges_f16, COUNT(edges_f16), 5);
    case VYRE_ELEMENT_BF16:
      return half_bits(g, edges_bf16, COUNT(edges_bf16), 8);
    case VYRE_ELEMENT_F32:
      return f32_bits(g);
    case VYRE_ELEMENT_F64:
      return f64_bits(g);
    default:
      return integer_bits(g);
  }
}

void gen_fill(gen *g, vyre_element element, unsigned char *bytes,
              uint32_t count) {
  uint32_t size = vyre_element_size(element);
  if (size == 0) size = 1;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = element_bits(g, element);
    for (uint32_t k = 0; k < size; k++) {
      bytes[(size_t)i * size + k] = (unsigned char)(bits >> 8 * k);
    }
  }
}
