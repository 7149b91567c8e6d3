/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of the pure operations, as lists of X(type, OPERATION, bits of the
 * result). The expressions use the operands x, y and z, which have the type
 * u32, u64, f32 or f64. scalar.c makes a case of each row, the reference
 * interpreter a loop. */
#ifndef VYRE_IR_SCALAR_OPS_H
#define VYRE_IR_SCALAR_OPS_H

#include "ir/scalar.h"

#define VYRE__BOOL_OPS(X) \
  X(u64, NOT, x ^ 1)      \
  X(u64, AND, (x) & (y))  \
  X(u64, OR, x | y)       \
  X(u64, XOR, x ^ y)      \
  X(u64, NE, x ^ y)       \
  X(u64, EQ, x ^ y ^ 1)   \
  X(u64, LAND, (x) & (y)) \
  X(u64, LOR, x | y)

/* U is the unsigned type of the width and u its name; G is the type itself and
 * g its name. */
#define VYRE__INTEGER_OPS(X, U, u, G, g)            \
  X(u, ADD, (U)(x + y))                             \
  X(u, SUB, (U)(x - y))                             \
  X(u, MUL, (U)(x * y))                             \
  X(u, DIV, (U)vyre__div_##g((G)x, (G)y))           \
  X(u, REM, (U)vyre__rem_##g((G)x, (G)y))           \
  X(u, AND, (x) & (y))                              \
  X(u, OR, x | y)                                   \
  X(u, XOR, x ^ y)                                  \
  X(u, BIT_NOT, (U)~x)                              \
  X(u, SHL, vyre__shl_##u(x, (uint32_t)y))          \
  X(u, SHR, (U)vyre__shr_##g((G)x, (uint32_t)y))    \
  X(u, CLZ, vyre__clz_##u(x))                       \
  X(u, CTZ, vyre__ctz_##u(x))                       \
  X(u, POPCOUNT, vyre__popcount_##u(x))             \
  X(u, EQ, x == y)                                  \
  X(u, NE, x != y)                                  \
  X(u, LT, (G)x < (G)y)                             \
  X(u, LE, (G)x <= (G)y)                            \
  X(u, GT, (G)x > (G)y)                             \
  X(u, GE, (G)x >= (G)y)                            \
  X(u, MIN, (G)x < (G)y ? x : y)                    \
  X(u, MAX, (G)x > (G)y ? x : y)                    \
  X(u, REVERSE, vyre__reverse_##u(x))               \
  X(u, ROTATE, vyre__rotate_##u(x, y))              \
  X(u, EXTRACT, (U)vyre__extract_##g((G)x, y, z))   \
  X(u, INSERT, vyre__insert_##u(x, y, z))           \
  X(u, MUL_HIGH, (U)vyre__mul_high_##g((G)x, (G)y)) \
  X(u, ADD_SAT, (U)vyre__add_sat_##g((G)x, (G)y))   \
  X(u, SUB_SAT, (U)vyre__sub_sat_##g((G)x, (G)y))

#define VYRE__SIGNED_OPS(X, U, u, G, g) \
  X(u, NEG, (U)(0 - x))                 \
  X(u, ABS, (U)vyre__abs_##g((G)x))     \
  X(u, SIGN, (U)vyre__sign_##g((G)x))

#define VYRE__FLOAT_OPS(X, f, sign_bit)                         \
  X(f, NEG, vyre__of_##f(x) ^ (sign_bit))                       \
  X(f, ABS, vyre__of_##f(x) & ~(sign_bit))                      \
  X(f, SIGN, vyre__of_##f(vyre__sign_##f(x)))                   \
  X(f, FLOOR, vyre__of_##f(vyre__floor_##f(x)))                 \
  X(f, CEIL, vyre__of_##f(vyre__ceil_##f(x)))                   \
  X(f, TRUNC, vyre__of_##f(vyre__trunc_##f(x)))                 \
  X(f, ROUND, vyre__of_##f(vyre__round_##f(x)))                 \
  X(f, RINT, vyre__of_##f(vyre__rint_##f(x)))                   \
  X(f, SQRT, vyre__of_##f(vyre__sqrt_##f(x)))                   \
  X(f, ADD, vyre__of_##f(x + y))                                \
  X(f, SUB, vyre__of_##f(x - y))                                \
  X(f, MUL, vyre__of_##f((x) * (y)))                            \
  X(f, DIV, vyre__of_##f(x / y))                                \
  X(f, MIN, vyre__of_##f(vyre__min_##f(x, y)))                  \
  X(f, MAX, vyre__of_##f(vyre__max_##f(x, y)))                  \
  X(f, FMA, vyre__of_##f(vyre__fma_##f(x, y, z)))               \
  X(f, MIX, vyre__of_##f(vyre__mix_##f(x, y, z)))               \
  X(f, SMOOTHSTEP, vyre__of_##f(vyre__smoothstep_##f(x, y, z))) \
  X(f, FRACT, vyre__of_##f(x - vyre__floor_##f(x)))             \
  X(f, EQ, x == y)                                              \
  X(f, NE, x != y)                                              \
  X(f, LT, x < y)                                               \
  X(f, LE, x <= y)                                              \
  X(f, GT, x > y)                                               \
  X(f, GE, x >= y)

#define VYRE__U32_OPS(X)                             \
  VYRE__INTEGER_OPS(X, uint32_t, u32, uint32_t, u32) \
  X(u32, BIT_RANGE, vyre__bit_range(x, y))           \
  X(u32, DOT4_U8, vyre__dot4_u8(x, y))               \
  X(u32, DOT4_I8, (uint32_t)vyre__dot4_i8(x, y))
#define VYRE__U64_OPS(X) VYRE__INTEGER_OPS(X, uint64_t, u64, uint64_t, u64)
#define VYRE__I32_OPS(X)                            \
  VYRE__INTEGER_OPS(X, uint32_t, u32, int32_t, i32) \
  VYRE__SIGNED_OPS(X, uint32_t, u32, int32_t, i32)
#define VYRE__I64_OPS(X)                            \
  VYRE__INTEGER_OPS(X, uint64_t, u64, int64_t, i64) \
  VYRE__SIGNED_OPS(X, uint64_t, u64, int64_t, i64)
#define VYRE__F32_OPS(X) VYRE__FLOAT_OPS(X, f32, UINT64_C(1) << 31)
#define VYRE__F64_OPS(X) VYRE__FLOAT_OPS(X, f64, UINT64_C(1) << 63)

/* Lists T(NAME of the type, C type of its operands, type in scalar.h). */
#define VYRE__SCALAR_TYPES(T) \
  T(BOOL, uint64_t, u64)      \
  T(U32, uint32_t, u32)       \
  T(I32, uint32_t, u32)       \
  T(U64, uint64_t, u64)       \
  T(I64, uint64_t, u64)       \
  T(F32, float, f32)          \
  T(F64, double, f64)

#endif
