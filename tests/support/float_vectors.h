/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Operands for tests of float operations: edges, subnormals, ties, cancellation,
 * infinities and NaN far more often than chance would give them, and the same for
 * the same seed. All as bits. A few of them are aimed with a product of the host, which
 * only has to be roughly right. */
#ifndef VYRE_TESTS_FLOAT_VECTORS_H
#define VYRE_TESTS_FLOAT_VECTORS_H

#include <stdint.h>
#include <string.h>

typedef struct float_vectors {
  uint64_t state;
} float_vectors;

/* splitmix64 */
static inline uint64_t float_vectors_next(float_vectors *v) {
  uint64_t z = v->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

/* The state is a random number of its own: seeds that follow each other must not
 * give the same sequence shifted by one. */
static inline float_vectors float_vectors_make(uint64_t seed) {
  float_vectors v = {seed};
  v.state = float_vectors_next(&v);
  return v;
}

static inline float float_vectors_f32(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint32_t float_vectors_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* -3 .. 3, to add to the bits of a float. */
static inline uint32_t float_vectors_near(float_vectors *v) {
  return (uint32_t)(float_vectors_next(v) % 7) - 3;
}

/* The same fraction and sign with this exponent, kept to finite ones. */
static inline uint32_t float_vectors_scale(uint32_t bits, int exponent) {
  exponent = exponent < 0 ? 0 : exponent > 254 ? 254 : exponent;
  return (bits & 0x807FFFFF) | (uint32_t)exponent << 23;
}

/* One operand. */
static inline uint32_t float_vectors_one(float_vectors *v) {
  static const uint32_t edges[] = {
      0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF,
      0x00800000, 0x80800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x3F800000,
      0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x3F000000, 0xBF000000, 0x3EFFFFFF,
      0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
      0xFFC12345, 0xFFFFFFFF, 0x34000000, 0x33800000, 0x33000000, 0x4B000000,
      0x4B800000, 0x4B7FFFFF, 0x4F000000, 0x4F800000, 0x5F000000, 0x5F800000};
  uint64_t r = float_vectors_next(v);
  uint32_t u = (uint32_t)(r >> 32);
  int small = (int)(r >> 8 & 63);
  switch (r & 15) {
    case 0:
      return edges[u % (sizeof edges / sizeof edges[0])];
    case 1: /* subnormal, of any length */
      return (u & 0x80000000) | (u & 0x7FFFFF) >> small % 23;
    case 2: /* around the smallest normal number */
      return (u & 0x800000FF) | 0x00800000u * (u >> 8 & 3);
    case 3: /* the largest exponents */
      return float_vectors_scale(u, 251 + small % 4);
    case 4: /* fraction nearly all zeros or all ones */
      return (u & 0xFF800000) | (((u & 8) != 0 ? 0x7FFFFF : 0) ^ (u & 7));
    case 5: /* one bit of fraction */
      return (u & 0xFF800000) | 1u << small % 23;
    case 6: /* few bits of fraction */
      return u & 0xFFFFF000;
    case 7: /* a run of ones */
      return (u & 0xFF800000) | (0x7FFFFFu << small % 23 & 0x7FFFFF);
    case 8:
    case 9: /* around 1 */
      return float_vectors_scale(u, 123 + small % 8);
    case 10: /* around the last bit before the point */
      return float_vectors_scale(u, 146 + small % 8);
    case 11:
    case 12: /* anything */
      return u;
    default: /* not far from 1 */
      return float_vectors_scale(u, 96 + small);
  }
}

/* Two operands: independent; nearly equal or opposite; a quotient near a tie; a product
 * or quotient near the subnormal or the largest numbers. */
static inline void float_vectors_pair(float_vectors *v, uint32_t out[2]) {
  uint32_t a = float_vectors_one(v), b = float_vectors_one(v);
  uint64_t r = float_vectors_next(v);
  int exponent = (int)(b >> 23 & 255);
  switch (r & 15) {
    case 0: /* cancellation */
      b = a + float_vectors_near(v);
      b ^= (uint32_t)(r >> 32) & 0x80000000;
      break;
    case 1: /* the same exponent, or the next ones, with the other sign */
      b = float_vectors_scale(b, (int)(a >> 23 & 255) - (int)(r >> 8 & 3));
      b = (b & 0x7FFFFFFF) | (~a & 0x80000000);
      break;
    case 2: /* a sum near a tie: b at half a unit of a */
      b = float_vectors_scale(b, (int)(a >> 23 & 255) - 22 - (int)(r >> 8 & 3));
      break;
    case 3:
    case 4: { /* a quotient near q, q with 24 or 25 bits */
      uint32_t q = (r >> 8 & 0x7FFFFF) | 0x3F800000;
      double p = (double)float_vectors_f32(b);
      p *= (double)float_vectors_f32(q) + ((r & 1) != 0 ? 0x1p-24 : 0.0);
      a = float_vectors_bits((float)p) + float_vectors_near(v);
      break;
    }
    case 5: /* the exponent of the product is near the lowest */
      a = float_vectors_scale(a, 127 - exponent + (int)(r >> 8 & 31) - 26);
      break;
    case 6: /* the exponent of the product is near the highest */
      a = float_vectors_scale(a, 381 - exponent + (int)(r >> 8 & 3) - 2);
      break;
    case 7: /* the exponent of the quotient is near the lowest */
      a = float_vectors_scale(a, exponent - 127 + (int)(r >> 8 & 31) - 26);
      break;
    case 8: /* the exponent of the quotient is near the highest */
      a = float_vectors_scale(a, exponent + 127 + (int)(r >> 8 & 3) - 2);
      break;
    default:
      break;
  }
  out[0] = a;
  out[1] = b;
}

/* Three operands: c independent; near -a * b, also scaled; around half a unit of
 * the product or the product around half a unit of c. The first two are a pair. */
static inline void float_vectors_triple(float_vectors *v, uint32_t out[3]) {
  float_vectors_pair(v, out);
  uint32_t c = float_vectors_one(v);
  uint64_t r = float_vectors_next(v);
  uint32_t p =
      float_vectors_bits(float_vectors_f32(out[0]) * float_vectors_f32(out[1]));
  int exponent = (int)(p >> 23 & 255);
  if ((p & 0x7FFFFFFF) < 0x7F800000) {
    switch (r & 15) {
      case 0:
      case 1:
      case 2: /* cancellation */
        c = (p + float_vectors_near(v)) ^ 0x80000000;
        break;
      case 3: /* the same with the same sign */
        c = p + float_vectors_near(v);
        break;
      case 4: /* cancellation that leaves some bits */
        c = (p ^ 0x80000000) + ((uint32_t)(r >> 8) & 0xFFFF);
        break;
      case 5: /* the product is around half a unit of c */
        c = float_vectors_scale(c, exponent + 22 + (int)(r >> 8 & 3));
        break;
      case 6: /* c is around half a unit of the product, or of its lower half */
        c = float_vectors_scale(c, exponent - 22 - (int)(r >> 8 & 3));
        break;
      case 7:
        c = float_vectors_scale(c, exponent - 45 - (int)(r >> 8 & 7));
        break;
      case 8: /* close to the product */
        c = float_vectors_scale(c, exponent + (int)(r >> 8 & 63) - 32);
        break;
      default:
        break;
    }
  }
  out[2] = c;
}

/* Two f64 operands of the same kinds. */
static inline uint64_t float_vectors_one_f64(float_vectors *v) {
  static const uint64_t edges[] = {0,
                                   1,
                                   UINT64_C(0x000FFFFFFFFFFFFF),
                                   UINT64_C(0x0010000000000000),
                                   UINT64_C(0x0010000000000001),
                                   UINT64_C(0x3FF0000000000000),
                                   UINT64_C(0x3FF0000000000001),
                                   UINT64_C(0x3FEFFFFFFFFFFFFF),
                                   UINT64_C(0x7FEFFFFFFFFFFFFF),
                                   UINT64_C(0x7FF0000000000000),
                                   UINT64_C(0x7FF0000000000001),
                                   UINT64_C(0x7FF8000000000000),
                                   UINT64_C(0x7FFFFFFFFFFFFFFF),
                                   UINT64_C(0x47EFFFFFE0000000),
                                   UINT64_C(0x47EFFFFFF0000000),
                                   UINT64_C(0x47F0000000000000),
                                   UINT64_C(0x36A0000000000000),
                                   UINT64_C(0x3690000000000000),
                                   UINT64_C(0x3690000000000001),
                                   UINT64_C(0x3810000000000000),
                                   UINT64_C(0x380FFFFFFFFFFFFF)};
  const uint64_t fraction = UINT64_C(0x000FFFFFFFFFFFFF);
  uint64_t r = float_vectors_next(v), u = float_vectors_next(v);
  uint64_t sign = u & UINT64_C(0x8000000000000000);
  unsigned small = (unsigned)(r >> 8 & 63);
  switch (r & 15) {
    case 0:
      return sign | edges[u % (sizeof edges / sizeof edges[0])];
    case 1: /* subnormal, of any length */
      return sign | (u & fraction) >> small % 52;
    case 2: /* the smallest exponents */
      return sign | (u & fraction) | (uint64_t)(small & 3) << 52;
    case 3: /* the largest exponents */
      return sign | (u & fraction) | (uint64_t)(2043 + (small & 3)) << 52;
    case 4: /* fraction nearly all zeros or all ones */
      return (u & ~fraction) | (((u & 8) != 0 ? fraction : 0) ^ (u & 7));
    case 5: /* one bit of fraction */
      return (u & ~fraction) | UINT64_C(1) << small % 52;
    case 6: /* a run of ones */
      return (u & ~fraction) | (fraction << small % 52 & fraction);
    case 7: /* halves of units of f32, and their neighbours */
      return ((sign | (u & fraction) | (uint64_t)(870 + 5 * small) << 52) &
              ~UINT64_C(0xFFFFFFF)) +
             (r >> 16) % 3 - 1;
    case 8: /* what an f32 is or becomes, subnormals too */
      return sign | (u & fraction) | (uint64_t)(865 + (small & 31)) << 52;
    case 9: /* an f32 */
      return (sign | (u & fraction) | (uint64_t)(992 + small) << 52) &
             ~UINT64_C(0x1FFFFFFF);
    case 10:
    case 11: /* anything */
      return u;
    default: /* around 1 */
      return sign | (u & fraction) | (uint64_t)(992 + small) << 52;
  }
}

static inline void float_vectors_pair_f64(float_vectors *v, uint64_t out[2]) {
  const uint64_t fraction = UINT64_C(0x000FFFFFFFFFFFFF);
  const uint64_t sign = UINT64_C(0x8000000000000000);
  uint64_t a = float_vectors_one_f64(v), b = float_vectors_one_f64(v);
  uint64_t r = float_vectors_next(v);
  int ea = (int)(a >> 52 & 2047), eb = (int)(b >> 52 & 2047), e = -1;
  switch (r & 15) {
    case 0: /* cancellation */
      b = (a + (r >> 8) % 7 - 3) ^ (r & sign);
      break;
    case 1: /* near exponents, other sign */
      b = (b & fraction) | (~a & sign) |
          (uint64_t)(ea > 3 ? ea - (int)(r >> 8 & 3) : ea) << 52;
      break;
    case 2: /* b at half a unit of a */
      if (ea > 56)
        b = (b & ~(fraction ^ ~sign)) | (b & fraction) |
            (uint64_t)(ea - 51 - (int)(r >> 8 & 3)) << 52;
      break;
    case 3: { /* a quotient near q */
      uint64_t q = (r >> 8 & fraction) | UINT64_C(0x3FF0000000000000);
      double x, y;
      memcpy(&x, &b, sizeof x);
      memcpy(&y, &q, sizeof y);
      x *= y;
      memcpy(&a, &x, sizeof a);
      a += (r >> 61) - 3;
      break;
    }
    case 4: /* the exponent of the product is near the lowest */
      e = 1023 - eb + (int)(r >> 8 & 63) - 56;
      break;
    case 5: /* the exponent of the product is near the highest */
      e = 3069 - eb + (int)(r >> 8 & 3) - 2;
      break;
    case 6: /* the exponent of the quotient is near the lowest */
      e = eb - 1023 + (int)(r >> 8 & 63) - 56;
      break;
    case 7: /* the exponent of the quotient is near the highest */
      e = eb + 1023 + (int)(r >> 8 & 3) - 2;
      break;
    default:
      break;
  }
  if (e >= 0 && e < 2047) a = (a & (fraction | sign)) | (uint64_t)e << 52;
  out[0] = a;
  out[1] = b;
}

#endif
