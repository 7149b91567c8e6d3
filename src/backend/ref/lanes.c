/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pure operations, one loop over the lanes each. ir/scalar.h defines their
 * results. */
#include "backend/ref/ref.h"
#include "ir/scalar.h"

/* Lanes are independent, even where the result overwrites an operand, so the
 * compiler may vectorise the loops. */
#if defined(__GNUC__) && !defined(__clang__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#define EACH(expression)               \
  do {                                 \
    INDEPENDENT                        \
    for (uint32_t i = 0; i < n; i++) { \
      out[i] = (expression);           \
    }                                  \
    return;                            \
  } while (0)

#define A32 ((uint32_t)a[i])
#define B32 ((uint32_t)b[i])

static void lanes_bool(vyre__op op, uint32_t n, const uint64_t *a,
                       const uint64_t *b, uint64_t *out) {
  switch (op) {
    case VYRE__OP_NOT:
      EACH(a[i] ^ 1);
    case VYRE__OP_AND:
      EACH(a[i] & b[i]);
    case VYRE__OP_OR:
      EACH(a[i] | b[i]);
    case VYRE__OP_XOR:
    case VYRE__OP_NE:
      EACH(a[i] ^ b[i]);
    default: /* EQ */
      EACH(a[i] ^ b[i] ^ 1);
  }
}

/* Returns true for operations whose bits do not depend on the sign of 32-bit
 * integers. */
static bool is_sign_agnostic(vyre__op op) {
  return op == VYRE__OP_ADD || op == VYRE__OP_SUB || op == VYRE__OP_MUL ||
         op == VYRE__OP_AND || op == VYRE__OP_OR || op == VYRE__OP_XOR ||
         op == VYRE__OP_BIT_NOT || op == VYRE__OP_SHL || op == VYRE__OP_CLZ ||
         op == VYRE__OP_CTZ || op == VYRE__OP_POPCOUNT || op == VYRE__OP_EQ ||
         op == VYRE__OP_NE || op == VYRE__OP_NEG;
}

static void lanes_bits_32(vyre__op op, uint32_t n, const uint64_t *a,
                          const uint64_t *b, uint64_t *out) {
  switch (op) {
    case VYRE__OP_ADD:
      EACH((uint32_t)(a[i] + b[i]));
    case VYRE__OP_SUB:
      EACH((uint32_t)(a[i] - b[i]));
    case VYRE__OP_MUL:
      EACH((uint32_t)(A32 * B32));
    case VYRE__OP_AND:
      EACH(a[i] & b[i]);
    case VYRE__OP_OR:
      EACH(a[i] | b[i]);
    case VYRE__OP_XOR:
      EACH(a[i] ^ b[i]);
    case VYRE__OP_BIT_NOT:
      EACH((uint32_t)~A32);
    case VYRE__OP_NEG:
      EACH((uint32_t)(0 - A32));
    case VYRE__OP_SHL:
      EACH(vyre__shl_u32(A32, B32));
    case VYRE__OP_CLZ:
      EACH(vyre__clz_u32(A32));
    case VYRE__OP_CTZ:
      EACH(vyre__ctz_u32(A32));
    case VYRE__OP_POPCOUNT:
      EACH(vyre__popcount_u32(A32));
    case VYRE__OP_EQ:
      EACH(A32 == B32);
    default: /* NE */
      EACH(A32 != B32);
  }
}

static void lanes_u32(vyre__op op, uint32_t n, const uint64_t *a,
                      const uint64_t *b, uint64_t *out) {
  switch (op) {
    case VYRE__OP_DIV:
      EACH(vyre__div_u32(A32, B32));
    case VYRE__OP_REM:
      EACH(vyre__rem_u32(A32, B32));
    case VYRE__OP_SHR:
      EACH(vyre__shr_u32(A32, B32));
    case VYRE__OP_LT:
      EACH(A32 < B32);
    case VYRE__OP_LE:
      EACH(A32 <= B32);
    case VYRE__OP_GT:
      EACH(A32 > B32);
    case VYRE__OP_GE:
      EACH(A32 >= B32);
    case VYRE__OP_MIN:
      EACH(A32 < B32 ? A32 : B32);
    default: /* MAX */
      EACH(A32 > B32 ? A32 : B32);
  }
}

static void lanes_i32(vyre__op op, uint32_t n, const uint64_t *a,
                      const uint64_t *b, uint64_t *out) {
  switch (op) {
    case VYRE__OP_DIV:
      EACH(vyre__of_i32(vyre__div_i32(vyre__i32(a[i]), vyre__i32(b[i]))));
    case VYRE__OP_REM:
      EACH(vyre__of_i32(vyre__rem_i32(vyre__i32(a[i]), vyre__i32(b[i]))));
    case VYRE__OP_SHR:
      EACH(vyre__of_i32(vyre__shr_i32(vyre__i32(a[i]), B32)));
    case VYRE__OP_ABS:
      EACH(vyre__of_i32(vyre__abs_i32(vyre__i32(a[i]))));
    case VYRE__OP_SIGN:
      EACH(vyre__of_i32(vyre__sign_i32(vyre__i32(a[i]))));
    case VYRE__OP_LT:
      EACH(vyre__i32(a[i]) < vyre__i32(b[i]));
    case VYRE__OP_LE:
      EACH(vyre__i32(a[i]) <= vyre__i32(b[i]));
    case VYRE__OP_GT:
      EACH(vyre__i32(a[i]) > vyre__i32(b[i]));
    case VYRE__OP_GE:
      EACH(vyre__i32(a[i]) >= vyre__i32(b[i]));
    case VYRE__OP_MIN:
      EACH(vyre__i32(a[i]) < vyre__i32(b[i]) ? A32 : B32);
    default: /* MAX */
      EACH(vyre__i32(a[i]) > vyre__i32(b[i]) ? A32 : B32);
  }
}

static void lanes_f32(vyre__op op, uint32_t n, const uint64_t *const args[3],
                      uint64_t *out) {
  const uint64_t *a = args[0], *b = args[1];
  switch (op) {
    case VYRE__OP_NEG:
      EACH(a[i] ^ UINT64_C(0x80000000));
    case VYRE__OP_ABS:
      EACH(a[i] & UINT64_C(0x7FFFFFFF));
    case VYRE__OP_SQRT:
      EACH(vyre__of_f32(vyre__sqrt_f32(vyre__f32(a[i]))));
    case VYRE__OP_ADD:
      EACH(vyre__of_f32(vyre__f32(a[i]) + vyre__f32(b[i])));
    case VYRE__OP_SUB:
      EACH(vyre__of_f32(vyre__f32(a[i]) - vyre__f32(b[i])));
    case VYRE__OP_MUL:
      EACH(vyre__of_f32(vyre__f32(a[i]) * vyre__f32(b[i])));
    case VYRE__OP_DIV:
      EACH(vyre__of_f32(vyre__f32(a[i]) / vyre__f32(b[i])));
    case VYRE__OP_FMA:
      EACH(vyre__of_f32(vyre__fma_f32(vyre__f32(a[i]), vyre__f32(b[i]),
                                      vyre__f32(args[2][i]))));
    case VYRE__OP_MIN:
      EACH(vyre__of_f32(vyre__min_f32(vyre__f32(a[i]), vyre__f32(b[i]))));
    case VYRE__OP_MAX:
      EACH(vyre__of_f32(vyre__max_f32(vyre__f32(a[i]), vyre__f32(b[i]))));
    case VYRE__OP_EQ:
      EACH(vyre__f32(a[i]) == vyre__f32(b[i]));
    case VYRE__OP_NE:
      EACH(vyre__f32(a[i]) != vyre__f32(b[i]));
    case VYRE__OP_LT:
      EACH(vyre__f32(a[i]) < vyre__f32(b[i]));
    case VYRE__OP_LE:
      EACH(vyre__f32(a[i]) <= vyre__f32(b[i]));
    case VYRE__OP_GT:
      EACH(vyre__f32(a[i]) > vyre__f32(b[i]));
    default: /* GE */
      EACH(vyre__f32(a[i]) >= vyre__f32(b[i]));
  }
}

static void lanes_rounded(vyre__op op, uint32_t n, const uint64_t *a,
                          uint64_t *out) {
  switch (op) {
    case VYRE__OP_SIGN:
      EACH(vyre__of_f32(vyre__sign_f32(vyre__f32(a[i]))));
    case VYRE__OP_FLOOR:
      EACH(vyre__of_f32(vyre__floor_f32(vyre__f32(a[i]))));
    case VYRE__OP_CEIL:
      EACH(vyre__of_f32(vyre__ceil_f32(vyre__f32(a[i]))));
    case VYRE__OP_TRUNC:
      EACH(vyre__of_f32(vyre__trunc_f32(vyre__f32(a[i]))));
    case VYRE__OP_ROUND:
      EACH(vyre__of_f32(vyre__round_f32(vyre__f32(a[i]))));
    default: /* RINT */
      EACH(vyre__of_f32(vyre__rint_f32(vyre__f32(a[i]))));
  }
}

static bool is_rounding(vyre__op op) {
  return op == VYRE__OP_SIGN || (op >= VYRE__OP_FLOOR && op <= VYRE__OP_RINT);
}

/* Common casts. Returns false for others. */
static bool lanes_cast(vyre_type from, vyre_type to, uint32_t n,
                       const uint64_t *a, uint64_t *out) {
  bool narrow = to == VYRE_TYPE_U32 || to == VYRE_TYPE_I32;
  if (narrow && from != VYRE_TYPE_F32 && from != VYRE_TYPE_F64) {
    for (uint32_t i = 0; i < n; i++) out[i] = (uint32_t)a[i];
    return true;
  }
  if (from == VYRE_TYPE_F32 && to == VYRE_TYPE_U32) {
    for (uint32_t i = 0; i < n; i++) {
      out[i] = vyre__f32_to_u32(vyre__f32(a[i]));
    }
    return true;
  }
  if (from == VYRE_TYPE_F32 && to == VYRE_TYPE_I32) {
    for (uint32_t i = 0; i < n; i++) {
      out[i] = vyre__of_i32(vyre__f32_to_i32(vyre__f32(a[i])));
    }
    return true;
  }
  if (to == VYRE_TYPE_F32 && from == VYRE_TYPE_U32) {
    for (uint32_t i = 0; i < n; i++) out[i] = vyre__of_f32((float)A32);
    return true;
  }
  if (to == VYRE_TYPE_F32 && from == VYRE_TYPE_I32) {
    for (uint32_t i = 0; i < n; i++) {
      out[i] = vyre__of_f32((float)vyre__i32(a[i]));
    }
    return true;
  }
  return false;
}

/* Operations without a loop of their own: 64-bit types and rare casts. */
static void lanes_scalar(vyre__op op, vyre_type operand, vyre_type result,
                         uint32_t n, const uint64_t *const args[3],
                         uint64_t *out) {
  bool wide_integers = (operand == VYRE_TYPE_U64 || operand == VYRE_TYPE_I64) &&
                       result != VYRE_TYPE_F32 && result != VYRE_TYPE_F64;
  const uint64_t *a = args[0], *b = args[1];
  if (wide_integers) {
    if (op == VYRE__OP_ADD) EACH(a[i] + b[i]);
    if (op == VYRE__OP_MUL) EACH(a[i] * b[i]);
    if (op == VYRE__OP_XOR) EACH(a[i] ^ b[i]);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint64_t each[3] = {args[0][i], args[1] ? args[1][i] : 0,
                        args[2] ? args[2][i] : 0};
    bool is_ok = vyre__scalar_apply(op, operand, result, each, &out[i]);
    assert(is_ok);
    (void)is_ok;
  }
}

void ref_lanes(vyre__op op, vyre_type operand, vyre_type result, uint32_t n,
               const uint64_t *const args[3], uint64_t *out) {
  const uint64_t *a = args[0], *b = args[1], *c = args[2];
  if (op == VYRE__OP_SELECT) EACH(a[i] ? b[i] : c[i]);
  if (op == VYRE__OP_CAST && lanes_cast(operand, result, n, a, out)) return;
  bool converts = op == VYRE__OP_CAST || op == VYRE__OP_BITCAST;
  bool narrow = operand == VYRE_TYPE_U32 || operand == VYRE_TYPE_I32;
  bool wide = operand == VYRE_TYPE_U64 || operand == VYRE_TYPE_I64 ||
              operand == VYRE_TYPE_F64;
  if (converts || wide) {
    lanes_scalar(op, operand, result, n, args, out);
  } else if (operand == VYRE_TYPE_BOOL) {
    lanes_bool(op, n, a, b, out);
  } else if (narrow && is_sign_agnostic(op)) {
    lanes_bits_32(op, n, a, b, out);
  } else if (operand == VYRE_TYPE_U32) {
    lanes_u32(op, n, a, b, out);
  } else if (operand == VYRE_TYPE_I32) {
    lanes_i32(op, n, a, b, out);
  } else if (operand == VYRE_TYPE_F32 && is_rounding(op)) {
    lanes_rounded(op, n, a, out);
  } else {
    lanes_f32(op, n, args, out);
  }
}
