/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/ops.h
 *  Value types of kernels and the operations on them. */
#ifndef VYRE_OPS_H
#define VYRE_OPS_H

#include <stdbool.h>

#include "vyre/export.h"

/** Value types: X(enumerator, name, bits). Narrower buffer elements are
 *  widened to one of these types when loaded. */
#define VYRE_TYPE_MAP(X)       \
  X(VYRE_TYPE_VOID, "void", 0) \
  X(VYRE_TYPE_BOOL, "bool", 1) \
  X(VYRE_TYPE_U32, "u32", 32)  \
  X(VYRE_TYPE_I32, "i32", 32)  \
  X(VYRE_TYPE_U64, "u64", 64)  \
  X(VYRE_TYPE_I64, "i64", 64)  \
  X(VYRE_TYPE_F32, "f32", 32)  \
  X(VYRE_TYPE_F64, "f64", 64)

/** Type of a value. */
typedef enum vyre_type {
#define VYRE_X3(name, text, bits) name,
  VYRE_TYPE_MAP(VYRE_X3) VYRE_TYPE_COUNT
#undef VYRE_X3
} vyre_type;

/** Unary operations: X(name). docs/reference/language.md defines all operations, under
 *  their spelling in the text form (vyre_op_text). */
#define VYRE_OP_UNARY_MAP(X) \
  X(NEG)                     \
  X(NOT)                     \
  X(BIT_NOT)                 \
  X(ABS)                     \
  X(SIGN)                    \
  X(FLOOR)                   \
  X(CEIL)                    \
  X(TRUNC)                   \
  X(ROUND)                   \
  X(RINT)                    \
  X(SQRT)                    \
  X(CLZ)                     \
  X(CTZ)                     \
  X(POPCOUNT)                \
  X(UNIFORM)                 \
  X(EXP)                     \
  X(EXP2)                    \
  X(EXP10)                   \
  X(EXPM1)                   \
  X(LOG)                     \
  X(LOG2)                    \
  X(LOG10)                   \
  X(LOG1P)                   \
  X(SIN)                     \
  X(COS)                     \
  X(TAN)                     \
  X(ASIN)                    \
  X(ACOS)                    \
  X(ATAN)                    \
  X(SINH)                    \
  X(COSH)                    \
  X(TANH)                    \
  X(RSQRT)                   \
  X(CBRT)                    \
  X(SATURATE)                \
  X(REVERSE)                 \
  X(FRACT)                   \
  X(REDUCE_ADD)              \
  X(REDUCE_MIN)              \
  X(REDUCE_MAX)              \
  X(REDUCE_AND)              \
  X(REDUCE_OR)               \
  X(REDUCE_XOR)              \
  X(SCAN_ADD)                \
  X(SCAN_ADD_BEFORE)         \
  X(BALLOT)                  \
  X(SUBGROUP_ANY)            \
  X(SUBGROUP_ALL)            \
  X(SUBGROUP_ADD)            \
  X(SUBGROUP_MIN)            \
  X(SUBGROUP_MAX)            \
  X(SUBGROUP_AND)            \
  X(SUBGROUP_OR)             \
  X(SUBGROUP_XOR)            \
  X(SUBGROUP_SCAN_ADD)       \
  X(SUBGROUP_SCAN_ADD_BEFORE)

/** Binary operations: X(name). */
#define VYRE_OP_BINARY_MAP(X) \
  X(ADD)                      \
  X(SUB)                      \
  X(MUL)                      \
  X(DIV)                      \
  X(REM)                      \
  X(AND)                      \
  X(OR)                       \
  X(XOR)                      \
  X(SHL)                      \
  X(SHR)                      \
  X(EQ)                       \
  X(NE)                       \
  X(LT)                       \
  X(LE)                       \
  X(GT)                       \
  X(GE)                       \
  X(LAND)                     \
  X(LOR)                      \
  X(MIN)                      \
  X(MAX)                      \
  X(POW)                      \
  X(ATAN2)                    \
  X(HYPOT)                    \
  X(STEP)                     \
  X(ROTATE)                   \
  X(MUL_HIGH)                 \
  X(ADD_SAT)                  \
  X(SUB_SAT)                  \
  X(DOT4_U8)                  \
  X(DOT4_I8)                  \
  X(SHUFFLE)                  \
  X(SHUFFLE_XOR)              \
  X(SHUFFLE_UP)               \
  X(SHUFFLE_DOWN)

/** Ternary operations: X(name). The second and third operand of EXTRACT are
 *  u32. */
#define VYRE_OP_TERNARY_MAP(X) \
  X(FMA)                       \
  X(SELECT)                    \
  X(COND)                      \
  X(CLAMP)                     \
  X(EXTRACT)                   \
  X(MIX)                       \
  X(SMOOTHSTEP)

/** Atomic operations: X(name). All return the old value. Compare-exchange is
 *  vyre_build_compare_exchange. */
#define VYRE_OP_ATOMIC_MAP(X) \
  X(ATOMIC_ADD)               \
  X(ATOMIC_MIN)               \
  X(ATOMIC_MAX)               \
  X(ATOMIC_AND)               \
  X(ATOMIC_OR)                \
  X(ATOMIC_XOR)               \
  X(ATOMIC_EXCHANGE)

/** Invocation ids and sizes, with an axis: X(name). */
#define VYRE_OP_ID_MAP(X) \
  X(GLOBAL_ID)            \
  X(LOCAL_ID)             \
  X(WORKGROUP_ID)         \
  X(WORKGROUP_SIZE)       \
  X(GRID_SIZE)

/** Operation. */
typedef enum vyre_op {
#define VYRE_X1(name) VYRE_OP_##name,
  VYRE_OP_UNARY_MAP(VYRE_X1)   /**/
  VYRE_OP_BINARY_MAP(VYRE_X1)  /**/
  VYRE_OP_TERNARY_MAP(VYRE_X1) /**/
  VYRE_OP_ATOMIC_MAP(VYRE_X1)  /**/
  VYRE_OP_ID_MAP(VYRE_X1)      /**/
  VYRE_OP_COUNT
#undef VYRE_X1
} vyre_op;

VYRE_BEGIN

/** Returns the name of a type ("u32"), or "?" for an unknown value. Static
 *  storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_type_name(vyre_type type);

/** Returns the spelling of an operation in the text form ("+", "abs",
 *  "atomic_add", "global_id"), or "?" for an unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_op_text(vyre_op op);

/** Returns true when @p op accepts operands of @p type: for a shift, the
 *  shifted operand; for select, the operands to choose from. Returns false for
 *  ids, void and unknown values.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_op_accepts(vyre_op op, vyre_type type);

VYRE_END

#endif
