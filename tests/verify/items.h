/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The items to verify: math functions (math.vyre) and operations (ops.vyre),
 * with their inputs and, for operations, the expected results of the host.
 *
 * Inputs come in blocks of 1024 and are numbered. Input n is always the
 * same: every bit pattern (2^32 or 2^16) if there is one argument of that
 * size, otherwise random vectors with a seed per block. */
#ifndef VYRE_TESTS_VERIFY_ITEMS_H
#define VYRE_TESTS_VERIFY_ITEMS_H

#include <math.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "support/float_vectors.h"

enum { BLOCK = 1024, VARIANTS = 3 };

typedef enum input_kind {
  INPUT_ALL,     /* every bit pattern */
  INPUT_VECTORS, /* pairs and triples of f32 */
  INPUT_U64,     /* 64-bit integers */
  INPUT_F64,
} input_kind;

typedef struct block {
  alignas(64) unsigned char in[3][BLOCK * 8];
  alignas(64) unsigned char want[BLOCK * 8];
  alignas(64) unsigned char got[VARIANTS][BLOCK * 8];
} block;

typedef struct item {
  const char *name; /* the kernel has _all behind it */
  input_kind inputs;
  uint8_t arguments;
  uint8_t in_bytes, out_bytes; /* of an element */
  /* The host's answers; NULL for functions of mathematics. */
  void (*want)(block *k);
  /* Pairs that suit a function; NULL: any pairs. */
  void (*pair)(float_vectors *v, uint32_t out[2]);
} item;

static inline uint64_t item_inputs(const item *it) {
  if (it->inputs != INPUT_ALL) return UINT64_C(1) << 30;
  return UINT64_C(1) << 8 * it->in_bytes;
}

/* --- inputs ----------------------------------------------------------------- */

/* Any magnitude; integers that an f32 just holds, or just not. */
static inline uint64_t input_u64(float_vectors *v) {
  uint64_t r = float_vectors_next(v), u = float_vectors_next(v);
  uint64_t near = (r >> 16) % 5 - 2;
  switch (r & 7) {
    case 0:
      return near; /* around 0 */
    case 1:
      return (UINT64_C(1) << (r >> 8 & 63)) + near;
    case 2:
    case 3: /* 24 bits, or half a unit more, and neighbours */
      return ((u & 0x1FFFFFF) << (r >> 8) % 40) + near;
    case 4:
      return 0 - (((u & 0x1FFFFFF) << (r >> 8) % 40) + near);
    default:
      return u >> (r >> 8 & 63);
  }
}

/* Special values and their neighbours. */
static const uint32_t special_bits[64] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00000002, 0x007FFFFF,
    0x807FFFFF, 0x00800000, 0x80800000, 0x00800001, 0x00FFFFFF, 0x01000000,
    0x33000000, 0x33800000, 0x34000000, 0xB3800000, 0x3E800000, 0xBE800000,
    0x3EAAAAAB, 0xBEAAAAAB, 0x3EFFFFFF, 0x3F000000, 0xBF000000, 0x3F000001,
    0x3F7FFFFE, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0xBF7FFFFF, 0xBF800000,
    0xBF800001, 0x3FC00000, 0xBFC00000, 0x40000000, 0xC0000000, 0x40400000,
    0xC0400000, 0x40490FDB, 0x40800000, 0xC0800000, 0x41200000, 0xC1200000,
    0x42FE0000, 0xC2FC0000, 0x43000000, 0xC3160000, 0x4B000001, 0xCB000001,
    0x4B7FFFFF, 0xCB7FFFFF, 0x4B800000, 0xCB800001, 0x4F000000, 0x4F7FFFFF,
    0x5F000000, 0x7E800000, 0x7F000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
    0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345};

static inline void pair_any(float_vectors *v, uint32_t out[2]) {
  float_vectors_pair(v, out);
}

/* For pow: mostly numbers whose power is neither 0 nor infinity; whole and half
 * exponents; bases near 1. */
static inline void pair_pow(float_vectors *v, uint32_t out[2]) {
  uint64_t r = float_vectors_next(v);
  uint32_t x = (uint32_t)(r >> 32), y = (uint32_t)float_vectors_next(v);
  double target = (double)(y >> 8) * (284.0 / 0x1p24) - 153.0;
  int small = (int)(r >> 8 & 255) - 128;
  switch (r & 7) {
    case 0:
      pair_any(v, out);
      return;
    case 1: /* near 1 */
      x >>= 9 + (r >> 8 & 15);
      x = (r & 8) != 0 ? 0x3F800000 + x : 0x3F800000 - x;
      break;
    case 2: /* whole and half exponents of anything */
      out[0] = x;
      out[1] = float_vectors_bits((float)small * ((x & 1) != 0 ? 1.0f : 0.5f));
      return;
    case 3: /* larger whole exponents, also below 0 */
      x = (x & 0x80FFFFFF) + 0x3F000000;
      out[0] = x;
      out[1] = float_vectors_bits(
          rintf((float)(target / log2(fabs((double)float_vectors_f32(x))))));
      return;
    default:
      x &= 0x7FFFFFFF;
      break;
  }
  float exponent = (float)(target / log2((double)float_vectors_f32(x)));
  out[0] = x;
  out[1] = float_vectors_bits(exponent);
}

/* For atan2 and hypot: comparable numbers; ratios near 1 and near tan(pi/8). */
static inline void pair_plane(float_vectors *v, uint32_t out[2]) {
  uint64_t r = float_vectors_next(v);
  uint32_t x = (uint32_t)(r >> 32), y = (uint32_t)float_vectors_next(v);
  int exponent = (int)(x >> 23 & 255), small = (int)(r >> 8 & 63);
  switch (r & 7) {
    case 0:
      pair_any(v, out);
      return;
    case 1:
      break; /* anything */
    case 2:  /* nearly the same size */
      y = (x ^ (y & 0x80000000)) + ((y & 0x7FFFFF) >> small % 23) - 1;
      break;
    case 3: { /* the place where the way of computing changes */
      float ratio = (small & 1) != 0 ? 0.41421356f : 2.41421356f;
      uint32_t p = float_vectors_bits(float_vectors_f32(x) * ratio);
      y = (p ^ (y & 0x80000000)) + ((y & 0x7FFFFF) >> small % 23) - 1;
      break;
    }
    default: /* not far from each other */
      y = float_vectors_scale(y, exponent + small % 54 - 27);
      break;
  }
  bool swap = (r >> 14 & 1) != 0;
  out[swap] = x;
  out[!swap] = y;
}

static inline void fill_vectors(const item *it, uint64_t first, block *k) {
  uint32_t *in[3] = {(uint32_t *)k->in[0], (uint32_t *)k->in[1],
                     (uint32_t *)k->in[2]};
  float_vectors v = float_vectors_make(first / BLOCK);
  for (unsigned i = 0; i < BLOCK; i++) {
    uint32_t n[3] = {0};
    uint64_t at = first + i;
    if (it->arguments == 3) {
      float_vectors_triple(&v, n);
    } else if (at < 4096) { /* all pairs of special values come first */
      n[0] = special_bits[at / 64];
      n[1] = special_bits[at % 64];
    } else if (it->pair) {
      it->pair(&v, n);
    } else {
      float_vectors_pair(&v, n);
    }
    for (unsigned a = 0; a < 3; a++) in[a][i] = n[a];
  }
}

/* Inputs first, first + stride, ... ; of vectors those from first on, which is a
 * multiple of BLOCK: there a stride leaves out whole blocks. */
static inline void fill_block(const item *it, uint64_t first, uint64_t stride,
                              block *k) {
  if (it->inputs == INPUT_VECTORS) {
    fill_vectors(it, first, k);
  } else if (it->inputs == INPUT_ALL && it->in_bytes == 4) {
    uint32_t *x = (uint32_t *)k->in[0];
    for (unsigned i = 0; i < BLOCK; i++) x[i] = (uint32_t)(first + i * stride);
  } else if (it->inputs == INPUT_ALL) {
    uint16_t *x = (uint16_t *)k->in[0];
    for (unsigned i = 0; i < BLOCK; i++) x[i] = (uint16_t)(first + i * stride);
  } else {
    uint64_t *x = (uint64_t *)k->in[0];
    float_vectors v = float_vectors_make(first / BLOCK);
    for (unsigned i = 0; i < BLOCK; i++) {
      x[i] =
          it->inputs == INPUT_F64 ? float_vectors_one_f64(&v) : input_u64(&v);
    }
  }
}

/* Element @p i, widened. */
static inline uint64_t element(const unsigned char *data, uint8_t bytes,
                               unsigned i) {
  uint64_t value = 0;
  memcpy(&value, data + (size_t)i * bytes, bytes); /* little endian */
  return value;
}

/* --- what the host says ------------------------------------------------------ */

static inline uint32_t host_bits(float f) {
  return f != f ? 0x7FC00000 : float_vectors_bits(f);
}

static inline uint64_t host_bits64(double d) {
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  return d != d ? UINT64_C(0x7FF8000000000000) : bits;
}

static inline double host_f64(uint64_t bits) {
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

static inline float host_sign(float x) {
  if (x != x) return x;
  return (float)((x > 0) - (x < 0));
}

static inline float host_min(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}

static inline float host_max(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}

static inline uint32_t host_compare(float a, float b) {
  return (uint32_t)(a < b) | (uint32_t)(a <= b) << 1 | (uint32_t)(a == b) << 2 |
         (uint32_t)(a != b) << 3 | (uint32_t)(a > b) << 4 |
         (uint32_t)(a >= b) << 5;
}

static inline uint32_t host_u32(float x) {
  if (!(x > 0)) return 0;
  return x >= 0x1p32f ? UINT32_MAX : (uint32_t)x;
}

static inline int32_t host_i32(float x) {
  if (x != x) return 0;
  if (x < -0x1p31f) return INT32_MIN;
  return x >= 0x1p31f ? INT32_MAX : (int32_t)x;
}

static inline uint64_t host_u64(float x) {
  if (!(x > 0)) return 0;
  return x >= 0x1p64f ? UINT64_MAX : (uint64_t)x;
}

static inline int64_t host_i64(float x) {
  if (x != x) return 0;
  if (x < -0x1p63f) return INT64_MIN;
  return x >= 0x1p63f ? INT64_MAX : (int64_t)x;
}

/* Rounded as a whole number of units, in f64, where all of it is exact. */
static inline uint16_t host_f16(float x) {
  uint32_t bits = float_vectors_bits(x);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  if (x != x) return 0x7E00;
  int e = (int)(bits >> 23 & 255) - 127;
  if (e > 15) return sign | 0x7C00;
  if (e < -14) e = -14;
  double unit = host_f64((uint64_t)(1023 + 10 - e) << 52);
  uint32_t units = (uint32_t)rint(fabs((double)x) * unit);
  return sign | (uint16_t)((uint32_t)(e + 14) * 1024 + units);
}

static inline uint16_t host_bf16(float x) {
  uint32_t bits = float_vectors_bits(x);
  if (x != x) return 0x7FC0;
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float host_from_f16(uint16_t h) {
  uint32_t e = h >> 10 & 31, f = h & 1023;
  float size = e == 31  ? (f ? NAN : INFINITY)
               : e == 0 ? (float)f * 0x1p-24f
                        : float_vectors_f32((e + 112) << 23 | f << 13);
  return (h & 0x8000) != 0 ? -size : size;
}

#define WANT(name, in_type, out_type, expression)         \
  static inline void want_##name(block *k) {              \
    for (unsigned i = 0; i < BLOCK; i++) {                \
      in_type x;                                          \
      memcpy(&x, k->in[0] + i * sizeof x, sizeof x);      \
      const out_type out = (expression);                  \
      memcpy(k->want + i * sizeof out, &out, sizeof out); \
    }                                                     \
  }
#define X_F32 float_vectors_f32(x)
#define WANT_ONE(name, function) \
  WANT(name, uint32_t, uint32_t, host_bits(function(X_F32)))
WANT_ONE(abs, fabsf)
WANT_ONE(sign, host_sign)
WANT_ONE(sqrt, sqrtf)
WANT_ONE(floor, floorf)
WANT_ONE(ceil, ceilf)
WANT_ONE(trunc, truncf)
WANT_ONE(round, roundf)
WANT_ONE(rint, rintf)
WANT_ONE(neg, -)
WANT_ONE(copy, +)
WANT(f32_to_u32, uint32_t, uint32_t, host_u32(X_F32))
WANT(f32_to_i32, uint32_t, int32_t, host_i32(X_F32))
WANT(f32_to_u64, uint32_t, uint64_t, host_u64(X_F32))
WANT(f32_to_i64, uint32_t, int64_t, host_i64(X_F32))
WANT(f32_to_f64, uint32_t, uint64_t, host_bits64((double)X_F32))
WANT(f32_to_f16, uint32_t, uint16_t, host_f16(X_F32))
WANT(f32_to_bf16, uint32_t, uint16_t, host_bf16(X_F32))
WANT(u32_to_f32, uint32_t, uint32_t, host_bits((float)x))
WANT(i32_to_f32, int32_t, uint32_t, host_bits((float)x))
WANT(u64_to_f32, uint64_t, uint32_t, host_bits((float)x))
WANT(i64_to_f32, int64_t, uint32_t, host_bits((float)x))
WANT(f64_to_f32, uint64_t, uint32_t, host_bits((float)host_f64(x)))
WANT(f16_to_f32, uint16_t, uint32_t, host_bits(host_from_f16(x)))
WANT(bf16_to_f32, uint16_t, uint32_t,
     host_bits(float_vectors_f32((uint32_t)x << 16)))

#define WANT_TWO(name, expression)                                          \
  static inline void want_##name(block *k) {                                \
    const uint32_t *x = (const uint32_t *)k->in[0];                         \
    const uint32_t *y = (const uint32_t *)k->in[1];                         \
    uint32_t *out = (uint32_t *)k->want;                                    \
    for (unsigned i = 0; i < BLOCK; i++) {                                  \
      const float a = float_vectors_f32(x[i]), b = float_vectors_f32(y[i]); \
      out[i] = expression;                                                  \
    }                                                                       \
  }
WANT_TWO(add, host_bits(a + b))
WANT_TWO(sub, host_bits(a - b))
WANT_TWO(mul, host_bits(a *b))
WANT_TWO(div, host_bits(a / b))
WANT_TWO(min, host_bits(host_min(a, b)))
WANT_TWO(max, host_bits(host_max(a, b)))
WANT_TWO(compare, host_compare(a, b))
WANT_TWO(fma,
         host_bits(fmaf(a, b,
                        float_vectors_f32(((const uint32_t *)k->in[2])[i]))))
#undef WANT
#undef WANT_ONE
#undef WANT_TWO
#undef X_F32

/* --- the lists --------------------------------------------------------------- */

#define ITEM_FUNCTION(text) {text, INPUT_ALL, 1, 4, 4, NULL, NULL}
/* Those most in doubt first. */
static const item math_items[] = {
    ITEM_FUNCTION("log"),
    ITEM_FUNCTION("log2"),
    ITEM_FUNCTION("log10"),
    ITEM_FUNCTION("log1p"),
    {"pow", INPUT_VECTORS, 2, 4, 4, NULL, pair_pow},
    {"atan2", INPUT_VECTORS, 2, 4, 4, NULL, pair_plane},
    {"hypot", INPUT_VECTORS, 2, 4, 4, NULL, pair_plane},
    ITEM_FUNCTION("sin"),
    ITEM_FUNCTION("cos"),
    ITEM_FUNCTION("tan"),
    ITEM_FUNCTION("asin"),
    ITEM_FUNCTION("acos"),
    ITEM_FUNCTION("atan"),
    ITEM_FUNCTION("cbrt"),
    ITEM_FUNCTION("rsqrt"),
    ITEM_FUNCTION("sinh"),
    ITEM_FUNCTION("cosh"),
    ITEM_FUNCTION("tanh"),
    ITEM_FUNCTION("expm1"),
    ITEM_FUNCTION("exp"),
    ITEM_FUNCTION("exp2"),
    ITEM_FUNCTION("exp10"),
};
#undef ITEM_FUNCTION

#define ITEM_ONE(name, in, out) \
  {#name, INPUT_ALL, 1, in, out, want_##name, NULL}
#define ITEM_TWO(name) {#name, INPUT_VECTORS, 2, 4, 4, want_##name, NULL}
static const item ops_items[] = {
    {"fma", INPUT_VECTORS, 3, 4, 4, want_fma, NULL},
    ITEM_TWO(div),
    ITEM_TWO(add),
    ITEM_TWO(sub),
    ITEM_TWO(mul),
    ITEM_TWO(min),
    ITEM_TWO(max),
    ITEM_TWO(compare),
    ITEM_ONE(sqrt, 4, 4),
    ITEM_ONE(abs, 4, 4),
    ITEM_ONE(neg, 4, 4),
    ITEM_ONE(sign, 4, 4),
    ITEM_ONE(copy, 4, 4),
    ITEM_ONE(floor, 4, 4),
    ITEM_ONE(ceil, 4, 4),
    ITEM_ONE(trunc, 4, 4),
    ITEM_ONE(round, 4, 4),
    ITEM_ONE(rint, 4, 4),
    ITEM_ONE(f32_to_u32, 4, 4),
    ITEM_ONE(f32_to_i32, 4, 4),
    ITEM_ONE(f32_to_u64, 4, 8),
    ITEM_ONE(f32_to_i64, 4, 8),
    ITEM_ONE(f32_to_f64, 4, 8),
    ITEM_ONE(f32_to_f16, 4, 2),
    ITEM_ONE(f32_to_bf16, 4, 2),
    ITEM_ONE(u32_to_f32, 4, 4),
    ITEM_ONE(i32_to_f32, 4, 4),
    {"u64_to_f32", INPUT_U64, 1, 8, 4, want_u64_to_f32, NULL},
    {"i64_to_f32", INPUT_U64, 1, 8, 4, want_i64_to_f32, NULL},
    {"f64_to_f32", INPUT_F64, 1, 8, 4, want_f64_to_f32, NULL},
    ITEM_ONE(f16_to_f32, 2, 4),
    ITEM_ONE(bf16_to_f32, 2, 4),
};
#undef ITEM_ONE
#undef ITEM_TWO

enum {
  MATH_ITEMS = sizeof math_items / sizeof math_items[0],
  OPS_ITEMS = sizeof ops_items / sizeof ops_items[0],
};

/* The variants of functions, and the forms of operations. */
static const char *const math_names[VARIANTS] = {"f64", "f64-nofma", "u32"};
static const char *const form_names[VARIANTS] = {"native", "corrected", "soft"};

#endif
