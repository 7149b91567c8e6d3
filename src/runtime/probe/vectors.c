/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generates operands for the float probe. */
#include "runtime/probe/vectors.h"

static uint64_t next(vyre__vectors *v) { /* splitmix64 */
  uint64_t z = v->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

/* Maps the low half of @p r to 0 .. count - 1, without a slow division. */
static unsigned below(uint64_t r, unsigned count) {
  return (unsigned)((uint64_t)(uint32_t)r * count >> 32);
}

vyre__vectors vyre__vectors_make(vyre_type type, uint64_t seed) {
  bool is_f64 = type == VYRE_TYPE_F64;
  vyre__vectors v = {.state = seed ^ (uint64_t)type << 56,
                     .type = type,
                     .fraction = is_f64 ? 52 : 23,
                     .exponents = is_f64 ? 11 : 8};
  v.state = next(&v); /* decorrelates consecutive seeds */
  return v;
}

/* --- floats --------------------------------------------------------------- */

static uint64_t fraction_mask(const vyre__vectors *v) {
  return (UINT64_C(1) << v->fraction) - 1;
}

static int max_exponent(const vyre__vectors *v) {
  return (1 << v->exponents) - 1;
}

static int exponent_of(const vyre__vectors *v, uint64_t bits) {
  return (int)(bits >> v->fraction) & max_exponent(v);
}

/* Combines sign and fraction of @p bits with an exponent, clamped to finite
 * numbers. */
static uint64_t scale(const vyre__vectors *v, uint64_t bits, int exponent) {
  int max = max_exponent(v) - 1;
  exponent = exponent < 0 ? 0 : exponent > max ? max : exponent;
  uint64_t sign = bits >> (v->fraction + v->exponents) & 1;
  return sign << (v->fraction + v->exponents) |
         (uint64_t)exponent << v->fraction | (bits & fraction_mask(v));
}

/* Generates powers of two, the limits of integer ranges, and their
 * neighbours. */
static uint64_t edge(const vyre__vectors *v, uint64_t r, uint64_t u) {
  enum { TOP = 1000, COUNT = 19 }; /* exponents relative to 1, or to a limit */
  static const int from_one[COUNT] = {-TOP, -TOP, -TOP, -25, -24, -2, -1,
                                      0,    1,    23,   24,  30,  31, 32,
                                      62,   63,   64,   TOP, TOP};
  static const int from_end[COUNT] = {[1] = 1, [2] = 2, [17] = -1};
  unsigned which = below(r >> 32, COUNT);
  int top = max_exponent(v), exponent = top / 2 + from_one[which];
  if (from_one[which] == -TOP) exponent = from_end[which];
  if (from_one[which] == TOP) exponent = top + from_end[which];
  uint64_t bits = (uint64_t)exponent << v->fraction;
  if (u & 2) bits += below(u, 5) - UINT64_C(2); /* -2 .. 2 */
  bits ^= (u & 1) << (v->fraction + v->exponents);
  uint64_t all = v->fraction == 52 ? UINT64_MAX : UINT32_MAX;
  return bits & all;
}

static uint64_t one_float(vyre__vectors *v) {
  uint64_t r = next(v), u = next(v);
  uint64_t all = v->fraction == 52 ? UINT64_MAX : UINT32_MAX;
  uint64_t sign = UINT64_C(1) << (v->fraction + v->exponents);
  uint64_t mask = fraction_mask(v);
  int bias = max_exponent(v) / 2;
  unsigned shift = below(r >> 8, v->fraction);
  u &= all;
  switch (r & 15) {
    case 0:
    case 1:
      return edge(v, r, u);
    case 2: /* subnormal, of any length */
      return (u & sign) | (u & mask) >> shift;
    case 3: /* around the smallest normal number */
      return (u & (sign | 0xFF)) | (u >> 9 & 3) << v->fraction;
    case 4: /* the largest exponents */
      return scale(v, u, max_exponent(v) - 1 - (int)(r >> 16 & 3));
    case 5: /* a fraction of nearly all zeros or ones */
      return (u & ~mask) | (((r >> 16 & 1) != 0 ? mask : 0) ^ (u & 7));
    case 6: /* one bit of fraction */
      return (u & ~mask) | UINT64_C(1) << shift;
    case 7: /* few bits of fraction, so that products are exact */
      return u & ~(mask >> v->fraction / 2);
    case 8: /* an integer plus a half, a quarter, ... */
      return scale(v, u & ~(mask >> below(r >> 16, v->fraction)),
                   bias + (int)below(r >> 32, v->fraction));
    case 9: /* anything */
      return u;
    case 10: /* around the last bit before the point */
      return scale(v, u, bias + (int)v->fraction - 4 + (int)(r >> 16 & 7));
    default: /* not far from 1 */
      return scale(v, u, bias - 16 + (int)(r >> 16 & 31));
  }
}

/* Approximates a product; the last bits do not matter. */
static uint64_t product(const vyre__vectors *v, uint64_t a, uint64_t b) {
  uint64_t one = UINT64_C(1) << v->fraction, mask = fraction_mask(v);
  uint64_t x = (a & mask) | one, y = (b & mask) | one;
  uint64_t high = (uint64_t)((unsigned __int128)x * y >> v->fraction);
  int exponent = exponent_of(v, a) + exponent_of(v, b) - max_exponent(v) / 2;
  if (high >= 2 * one) {
    high >>= 1;
    exponent++;
  }
  return scale(v,
               ((a ^ b) & ~(mask | (uint64_t)max_exponent(v) << v->fraction)) |
                   (high & mask),
               exponent);
}

/* Returns -3 .. 3, to be added to bits. */
static uint64_t near(vyre__vectors *v) {
  return below(next(v), 7) - UINT64_C(3);
}

static void next_floats(vyre__vectors *v, uint64_t out[3]) {
  uint64_t a = one_float(v), b = one_float(v), c = one_float(v), r = next(v);
  uint64_t sign = UINT64_C(1) << (v->fraction + v->exponents);
  int bias = max_exponent(v) / 2, width = (int)v->fraction;
  int eb = exponent_of(v, b), small = (int)(r >> 16 & 31);
  switch (r & 15) {
    case 0: /* nearly the same, or its negative */
      b = (a + near(v)) ^ (r >> 40 & 1 ? sign : 0);
      break;
    case 1: /* a sum at half a unit of a */
      b = scale(v, b, exponent_of(v, a) - width - 1 + small % 4);
      break;
    case 2: /* a quotient near c: ties, if c has a bit too many */
    case 3:
      c = scale(v, c, bias);
      a = product(v, b, c) + near(v);
      break;
    case 4: /* a product near the subnormal numbers */
      a = scale(v, a, bias - eb + small - width - 3);
      break;
    case 5: /* a product near the largest numbers */
      a = scale(v, a, max_exponent(v) + bias - eb + small % 4 - 2);
      break;
    case 6: /* a quotient near the subnormal numbers */
      a = scale(v, a, eb - bias + small - width - 3);
      break;
    case 7: /* a quotient near the largest */
      a = scale(v, a, eb + bias + small % 4 - 2);
      break;
    case 8: /* the product cancels against c */
    case 9:
      c = (product(v, a, b) ^ sign) + near(v);
      break;
    case 10: /* c at half a unit of the product */
      c = scale(v, c, exponent_of(v, product(v, a, b)) - width - 1 + small % 3);
      break;
    case 11: /* the product at half a unit of c */
      c = scale(v, c, exponent_of(v, product(v, a, b)) + width + small % 3);
      break;
    default:
      break;
  }
  uint64_t all = width == 52 ? UINT64_MAX : UINT32_MAX;
  out[0] = a & all;
  out[1] = b & all;
  out[2] = c & all;
}

/* --- integers ------------------------------------------------------------- */

/* Generates integers of any length, near powers of two, and with one or two
 * bits more than an f32 holds. */
static uint64_t one_integer(vyre__vectors *v) {
  bool is_wide = v->type == VYRE_TYPE_U64 || v->type == VYRE_TYPE_I64;
  unsigned width = is_wide ? 64 : 32;
  uint64_t r = next(v), u = next(v), value;
  unsigned shift = (unsigned)(r >> 8) & (width - 1);
  switch (r & 3) {
    case 0:
      value = (UINT64_C(1) << shift) + (below(u, 5) - UINT64_C(2));
      break;
    case 1:
      value = (u >> 38 | UINT64_C(1) << 25) << shift;
      value += (u & 3) - 1;
      break;
    default:
      value = u >> (64 - width) >> shift;
      break;
  }
  if (r >> 32 & 1) value = 0 - value;
  return is_wide ? value : (uint32_t)value;
}

void vyre__vectors_next(vyre__vectors *v, uint64_t out[3]) {
  if (v->type == VYRE_TYPE_F32 || v->type == VYRE_TYPE_F64) {
    next_floats(v, out);
    return;
  }
  out[0] = one_integer(v);
  out[1] = out[2] = 0;
}
