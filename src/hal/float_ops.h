/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Float operations whose results a device may get wrong. The probe finds a
 * float mode for each, and a backend compiles the operation in that mode. */
#ifndef VYRE_HAL_FLOAT_OPS_H
#define VYRE_HAL_FLOAT_OPS_H

#include "vyre/device.h"

/* X(enumerator, name, operation, of, to, operands, expression): `of` is the
 * type of the operands and `to` that of the result. The probe compiles
 * `expression`, and stores a bool result as u32. */
#define VYRE__FLOAT_OP_MAP(X)                               \
  X(F32_COPY, "f32 copy", CAST, F32, F32, 1, "f32(x)")      \
  X(F32_NEG, "f32 negate", NEG, F32, F32, 1, "-x")          \
  X(F32_ABS, "f32 abs", ABS, F32, F32, 1, "abs(x)")         \
  X(F32_SIGN, "f32 sign", SIGN, F32, F32, 1, "sign(x)")     \
  X(F32_ADD, "f32 +", ADD, F32, F32, 2, "x + y")            \
  X(F32_SUB, "f32 -", SUB, F32, F32, 2, "x - y")            \
  X(F32_MUL, "f32 *", MUL, F32, F32, 2, "x * y")            \
  X(F32_DIV, "f32 /", DIV, F32, F32, 2, "x / y")            \
  X(F32_SQRT, "f32 sqrt", SQRT, F32, F32, 1, "sqrt(x)")     \
  X(F32_FMA, "f32 fma", FMA, F32, F32, 3, "fma(x, y, z)")   \
  X(F32_MIN, "f32 min", MIN, F32, F32, 2, "min(x, y)")      \
  X(F32_MAX, "f32 max", MAX, F32, F32, 2, "max(x, y)")      \
  X(F32_FLOOR, "f32 floor", FLOOR, F32, F32, 1, "floor(x)") \
  X(F32_CEIL, "f32 ceil", CEIL, F32, F32, 1, "ceil(x)")     \
  X(F32_TRUNC, "f32 trunc", TRUNC, F32, F32, 1, "trunc(x)") \
  X(F32_ROUND, "f32 round", ROUND, F32, F32, 1, "round(x)") \
  X(F32_RINT, "f32 rint", RINT, F32, F32, 1, "rint(x)")     \
  X(F32_EQ, "f32 ==", EQ, F32, BOOL, 2, "x == y")           \
  X(F32_NE, "f32 !=", NE, F32, BOOL, 2, "x != y")           \
  X(F32_LT, "f32 <", LT, F32, BOOL, 2, "x < y")             \
  X(F32_LE, "f32 <=", LE, F32, BOOL, 2, "x <= y")           \
  X(F32_TO_U32, "f32 to u32", CAST, F32, U32, 1, "u32(x)")  \
  X(F32_TO_I32, "f32 to i32", CAST, F32, I32, 1, "i32(x)")  \
  X(F32_TO_U64, "f32 to u64", CAST, F32, U64, 1, "u64(x)")  \
  X(F32_TO_I64, "f32 to i64", CAST, F32, I64, 1, "i64(x)")  \
  X(U32_TO_F32, "u32 to f32", CAST, U32, F32, 1, "f32(x)")  \
  X(I32_TO_F32, "i32 to f32", CAST, I32, F32, 1, "f32(x)")  \
  X(U64_TO_F32, "u64 to f32", CAST, U64, F32, 1, "f32(x)")  \
  X(I64_TO_F32, "i64 to f32", CAST, I64, F32, 1, "f32(x)")  \
  X(F64_ADD, "f64 +", ADD, F64, F64, 2, "x + y")            \
  X(F64_SUB, "f64 -", SUB, F64, F64, 2, "x - y")            \
  X(F64_MUL, "f64 *", MUL, F64, F64, 2, "x * y")            \
  X(F64_DIV, "f64 /", DIV, F64, F64, 2, "x / y")            \
  X(F64_SQRT, "f64 sqrt", SQRT, F64, F64, 1, "sqrt(x)")     \
  X(F64_FMA, "f64 fma", FMA, F64, F64, 3, "fma(x, y, z)")   \
  X(F64_RINT, "f64 rint", RINT, F64, F64, 1, "rint(x)")     \
  X(F64_LT, "f64 <", LT, F64, BOOL, 2, "x < y")             \
  X(F64_TO_F32, "f64 to f32", CAST, F64, F32, 1, "f32(x)")  \
  X(F32_TO_F64, "f32 to f64", CAST, F32, F64, 1, "f64(x)")

/* Index into the float_ops of a pipeline and of a device's capabilities. */
typedef enum vyre__float_op {
#define VYRE__X7(name, text, op, of, to, operands, expression) \
  VYRE__FLOAT_OP_##name,
  VYRE__FLOAT_OP_MAP(VYRE__X7) VYRE__FLOAT_OP_COUNT
#undef VYRE__X7
} vyre__float_op;

/* Every operation native and untested: float_ops of a backend that is exact by
 * definition. */
extern const vyre_float_op_info vyre__float_op_is_exact[VYRE__FLOAT_OP_COUNT];

#endif
