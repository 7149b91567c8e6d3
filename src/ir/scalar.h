/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exact semantics of every pure operation on one value. Constant folding and
 * the reference interpreter both use it.
 *
 * Files that compute with the floats below are compiled with
 * -ffp-contract=off (CMakeLists.txt lists them), so that a product and a sum
 * round twice. They also require rounding to nearest-even and subnormals.
 * vyre__scalar_eval sets that mode itself; other callers use
 * vyre__float_begin. */
#ifndef VYRE_IR_SCALAR_H
#define VYRE_IR_SCALAR_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ir/ir.h"

/* Evaluates @p op for @p args, one per operand, as values of ir.h. @p
 * operand_type is the type of the first operand, @p result_type that of the
 * node. A NaN result is canonical. LAND and LOR take both sides; UNIFORM
 * returns its operand. Returns false and leaves *out unchanged if @p op is
 * not a pure operation or does not accept the types. */
bool vyre__scalar_eval(vyre__op op, vyre_type operand_type,
                       vyre_type result_type, const uint64_t args[3],
                       uint64_t *out);

/* Like vyre__scalar_eval, but does not set the floating-point environment,
 * and does not make NaNs canonical: for loops between vyre__float_begin and
 * _end. */
bool vyre__scalar_apply(vyre__op op, vyre_type operand_type,
                        vyre_type result_type, const uint64_t args[3],
                        uint64_t *out);

/* Convert an element in memory to its register type and back: widening,
 * narrowing, rounding, canonical NaN. @p memory needs no alignment. `bytes`
 * is treated as u8. */
uint64_t vyre__element_load(vyre_element element, const void *memory);
void vyre__element_store(vyre_element element, void *memory, uint64_t value);

/* Save the caller's floating-point environment and set the default one
 * (nearest-even, subnormals); restore it. Code in between must be behind a
 * call that the compiler cannot inline. */
void vyre__float_begin(fenv_t *saved);
void vyre__float_end(const fenv_t *saved);

/* --- values and their C types ----------------------------------------------*/

static inline float vyre__f32(uint64_t value) {
  uint32_t bits = (uint32_t)value;
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

static inline double vyre__f64(uint64_t value) {
  double out;
  memcpy(&out, &value, sizeof out);
  return out;
}

static inline uint64_t vyre__of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline uint64_t vyre__of_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline uint32_t vyre__u32(uint64_t value) {
  return (uint32_t)value;
}

static inline uint64_t vyre__u64(uint64_t value) {
  return value;
}

/* C leaves some integer conversions to the compiler; they are modulo 2^n in
 * both supported compilers. */
static inline int32_t vyre__i32(uint64_t value) {
  return (int32_t)(uint32_t)value;
}

static inline int64_t vyre__i64(uint64_t value) {
  return (int64_t)value;
}

static inline uint64_t vyre__of_i32(int32_t value) {
  return (uint32_t)value;
}

static inline uint64_t vyre__of_i64(int64_t value) {
  return (uint64_t)value;
}

/* --- integers --------------------------------------------------------------*/

/* One set per width: U unsigned, I signed. Signed sums and products use
 * unsigned arithmetic, which wraps. >> of a signed value is arithmetic in
 * both supported compilers. */
#define VYRE__INTEGERS(U, I, u, i, width)                       \
  static inline U vyre__div_##u(U a, U b) {                     \
    return b == 0 ? (U) ~(U)0 : a / b;                          \
  }                                                             \
  static inline U vyre__rem_##u(U a, U b) {                     \
    return b == 0 ? 0 : a % b;                                  \
  }                                                             \
  static inline I vyre__div_##i(I a, I b) {                     \
    if (b == 0) return -1;                                      \
    if (b == -1) return (I)(0 - (U)a);                          \
    return a / b;                                               \
  }                                                             \
  static inline I vyre__rem_##i(I a, I b) {                     \
    return b == 0 || b == -1 ? 0 : a % b;                       \
  }                                                             \
  static inline U vyre__shl_##u(U a, uint32_t count) {          \
    return a << (count % (width));                              \
  }                                                             \
  static inline U vyre__shr_##u(U a, uint32_t count) {          \
    return a >> (count % (width));                              \
  }                                                             \
  static inline I vyre__shr_##i(I a, uint32_t count) {          \
    return a >> (count % (width));                              \
  }                                                             \
  static inline I vyre__abs_##i(I a) {                          \
    return a < 0 ? (I)(0 - (U)a) : a;                           \
  }                                                             \
  static inline I vyre__sign_##i(I a) {                         \
    return (I)((a > 0) - (a < 0));                              \
  }                                                             \
  static inline U vyre__clz_##u(U a) {                          \
    if (a == 0) return (width);                                 \
    return (U)(__builtin_clzll(a) - (64 - (width)));            \
  }                                                             \
  static inline U vyre__ctz_##u(U a) {                          \
    return a == 0 ? (width) : (U)__builtin_ctzll(a);            \
  }                                                             \
  static inline U vyre__popcount_##u(U a) {                     \
    return (U)__builtin_popcountll(a);                          \
  }                                                             \
  static inline U vyre__reverse_##u(U a) {                      \
    U out = 0;                                                  \
    for (int bit = 0; bit < (width); bit++) {                   \
      out = (U)(out << 1 | (a >> bit & 1));                     \
    }                                                           \
    return out;                                                 \
  }                                                             \
  static inline U vyre__rotate_##u(U a, U count) {              \
    unsigned n = (unsigned)(count % (width));                   \
    return n ? (U)(a << n | a >> ((width) - n)) : a;            \
  }                                                             \
  /* Bits of a range that the width has. */                     \
  static inline unsigned vyre__bits_in_##u(U from, U count) {   \
    if (from >= (width)) return 0;                              \
    return count < (width) - from ? (unsigned)count             \
                                  : (unsigned)((width) - from); \
  }                                                             \
  static inline U vyre__extract_##u(U a, U from, U count) {     \
    unsigned n = vyre__bits_in_##u(from, count);                \
    if (n == 0) return 0;                                       \
    return (U)(a << ((width) - n - from)) >> ((width) - n);     \
  }                                                             \
  static inline I vyre__extract_##i(I a, U from, U count) {     \
    unsigned n = vyre__bits_in_##u(from, count);                \
    if (n == 0) return 0;                                       \
    return (I)((U)a << ((width) - n - from)) >> ((width) - n);  \
  }                                                             \
  static inline U vyre__insert_##u(U a, U b, U range) {         \
    U from = range & 255;                                       \
    unsigned n = vyre__bits_in_##u(from, range >> 8 & 255);     \
    if (n == 0) return a;                                       \
    U mask = (U)((U) ~(U)0 >> ((width) - n) << from);           \
    return (a & ~mask) | (b << from & mask);                    \
  }                                                             \
  static inline U vyre__mul_high_##u(U a, U b) {                \
    return (U)((unsigned __int128)a * b >> (width));            \
  }                                                             \
  static inline I vyre__mul_high_##i(I a, I b) {                \
    return (I)((__int128)a * b >> (width));                     \
  }                                                             \
  static inline U vyre__add_sat_##u(U a, U b) {                 \
    return (U)(a + b) < a ? (U) ~(U)0 : (U)(a + b);             \
  }                                                             \
  static inline U vyre__sub_sat_##u(U a, U b) {                 \
    return a < b ? 0 : (U)(a - b);                              \
  }                                                             \
  static inline I vyre__add_sat_##i(I a, I b) {                 \
    I out;                                                      \
    if (!__builtin_add_overflow(a, b, &out)) return out;        \
    return (I)((U) ~(U)0 >> 1) ^ (I) - (I)(a < 0);              \
  }                                                             \
  static inline I vyre__sub_sat_##i(I a, I b) {                 \
    I out;                                                      \
    if (!__builtin_sub_overflow(a, b, &out)) return out;        \
    return (I)((U) ~(U)0 >> 1) ^ (I) - (I)(a < 0);              \
  }

VYRE__INTEGERS(uint32_t, int32_t, u32, i32, 32)
VYRE__INTEGERS(uint64_t, int64_t, u64, i64, 64)
#undef VYRE__INTEGERS

/* First bit and number of bits of a range, for vyre__insert_. */
static inline uint32_t vyre__bit_range(uint32_t from, uint32_t count) {
  return (from < 64 ? from : 64) | (count < 64 ? count : 64) << 8;
}

static inline uint32_t vyre__dot4_u8(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (int i = 0; i < 32; i += 8) sum += (a >> i & 255) * (b >> i & 255);
  return sum;
}

static inline int32_t vyre__dot4_i8(uint32_t a, uint32_t b) {
  int32_t sum = 0;
  for (int i = 0; i < 32; i += 8) sum += (int8_t)(a >> i) * (int8_t)(b >> i);
  return sum;
}

/* --- floats ----------------------------------------------------------------*/

#define VYRE__NAN_F32  UINT32_C(0x7FC00000)
#define VYRE__NAN_F64  UINT64_C(0x7FF8000000000000)
#define VYRE__NAN_F16  UINT16_C(0x7E00)
#define VYRE__NAN_BF16 UINT16_C(0x7FC0)

/* Makes a NaN canonical, for a float that reaches memory or a bitcast. */
static inline uint64_t vyre__canonical_f32(uint64_t value) {
  return (value & 0x7FFFFFFF) > 0x7F800000 ? VYRE__NAN_F32 : value;
}

static inline uint64_t vyre__canonical_f64(uint64_t value) {
  return (value & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000 ? VYRE__NAN_F64
                                                           : value;
}

static inline uint64_t vyre__canonical(vyre_type type, uint64_t value) {
  if (type == VYRE_TYPE_F32) return vyre__canonical_f32(value);
  if (type == VYRE_TYPE_F64) return vyre__canonical_f64(value);
  return value;
}

/* min and max ignore a NaN operand. Of two operands that compare equal, only
 * zeros differ in bits: the sign bit decides, so -0 is the smaller one. */
#define VYRE__FLOATS(F, f, suffix)                                      \
  static inline F vyre__min_##f(F a, F b) {                             \
    if (a != a) return b;                                               \
    if (b != b || a < b) return a;                                      \
    if (b < a) return b;                                                \
    return vyre__##f(vyre__of_##f(a) | vyre__of_##f(b));                \
  }                                                                     \
  static inline F vyre__max_##f(F a, F b) {                             \
    if (a != a) return b;                                               \
    if (b != b || a > b) return a;                                      \
    if (b > a) return b;                                                \
    return vyre__##f(vyre__of_##f(a) & vyre__of_##f(b));                \
  }                                                                     \
  static inline F vyre__sign_##f(F a) {                                 \
    if (a != a) return a;                                               \
    return (F)((a > 0) - (a < 0));                                      \
  }                                                                     \
  static inline F vyre__floor_##f(F a) {                                \
    return floor##suffix(a);                                            \
  }                                                                     \
  static inline F vyre__ceil_##f(F a) {                                 \
    return ceil##suffix(a);                                             \
  }                                                                     \
  static inline F vyre__trunc_##f(F a) {                                \
    return trunc##suffix(a);                                            \
  }                                                                     \
  static inline F vyre__round_##f(F a) {                                \
    return round##suffix(a);                                            \
  }                                                                     \
  static inline F vyre__rint_##f(F a) {                                 \
    return rint##suffix(a);                                             \
  }                                                                     \
  static inline F vyre__sqrt_##f(F a) {                                 \
    return sqrt##suffix(a);                                             \
  }                                                                     \
  /* Correctly rounded: the C library uses software if the processor \
   * lacks the instruction. */  \
  static inline F vyre__fma_##f(F a, F b, F c) {                        \
    return fma##suffix(a, b, c);                                        \
  }                                                                     \
  static inline F vyre__mix_##f(F a, F b, F t) {                        \
    return vyre__fma_##f(t, b, vyre__fma_##f(-t, a, a));                \
  }                                                                     \
  static inline F vyre__smoothstep_##f(F e, F g, F x) {                 \
    F t = vyre__min_##f(vyre__max_##f((x - e) / (g - e), 0), 1);        \
    F u = 2 * t;                                                        \
    F v = 3 - u;                                                        \
    F w = t * t;                                                        \
    return w * v;                                                       \
  }                                                                     \
  /* Truncates and saturates; NaN becomes 0. The bounds are powers of \
   * two and therefore exact; values below fit after truncation. */ \
  static inline uint32_t vyre__##f##_to_u32(F a) {                      \
    if (!(a > 0)) return 0;                                             \
    return a >= (F)4294967296.0 ? UINT32_MAX : (uint32_t)a;             \
  }                                                                     \
  static inline int32_t vyre__##f##_to_i32(F a) {                       \
    if (a != a) return 0;                                               \
    if (a <= (F) - 2147483648.0) return INT32_MIN;                      \
    return a >= (F)2147483648.0 ? INT32_MAX : (int32_t)a;               \
  }                                                                     \
  static inline uint64_t vyre__##f##_to_u64(F a) {                      \
    if (!(a > 0)) return 0;                                             \
    return a >= (F)18446744073709551616.0 ? UINT64_MAX : (uint64_t)a;   \
  }                                                                     \
  static inline int64_t vyre__##f##_to_i64(F a) {                       \
    if (a != a) return 0;                                               \
    if (a <= (F) - 9223372036854775808.0) return INT64_MIN;             \
    return a >= (F)9223372036854775808.0 ? INT64_MAX : (int64_t)a;      \
  }

VYRE__FLOATS(float, f32, f)
VYRE__FLOATS(double, f64, )
#undef VYRE__FLOATS

/* Convert a 16-bit float to f32, and an f32 to the nearest 16-bit float (ties
 * to even). */
uint32_t vyre__f16_to_f32(uint16_t bits);
uint16_t vyre__f32_to_f16(uint32_t bits);

static inline uint32_t vyre__bf16_to_f32(uint16_t bits) {
  return (uint32_t)bits << 16;
}

static inline uint16_t vyre__f32_to_bf16(uint32_t bits) {
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return VYRE__NAN_BF16;
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

#endif
