/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Division of vectors of 32-bit integers. Processors divide integers one at a
 * time, but doubles in vectors, and a quotient of doubles is exact enough:
 *
 *   - a / b is an integer, which is exact, or at least 1 / b away from the next
 *     one above. Rounding moves it by at most a / b * 2^-53, which is less.
 *   - (a + 0.5) * (1 / b) is at least 0.5 / b away from every integer. Two
 *     roundings move it by at most (a + 0.5) / b * 2^-52, which is less.
 *
 * The second form needs one division per row if b is uniform. */
#include "codegen/llvm/internal.h"

enum { INTS = LL_I32 | LL_VEC, DOUBLES = LL_F64 | LL_VEC };

static ll_op to_doubles(ll *e, ll_op op, bool is_signed) {
  return ll_def(e, "%s %o to %t", is_signed ? "sitofp" : "uitofp", INTS, op,
                DOUBLES);
}

/* Returns the quotient by the uniform number @p by. */
static ll_op times_reciprocal(ll *e, ll_op a, ll_op by) {
  enum { HALF = 0x3fe, ONE = 0x3ff, EXPONENT = 52 };
  ll_op half = ll_const((uint64_t)HALF << EXPONENT);
  ll_op one = ll_const((uint64_t)ONE << EXPONENT);
  ll_op divisor = ll_def(e, "uitofp i32 %v to double", LL_I32, by);
  ll_op part = ll_def(e, "fdiv double %v, %v", LL_F64, one, LL_F64, divisor);
  ll_op sum =
      ll_def(e, "fadd %o, %v", DOUBLES, to_doubles(e, a, false), DOUBLES, half);
  return ll_def(e, "fmul %o, %v", DOUBLES, sum, DOUBLES,
                ll_splat(e, LL_F64, part));
}

ll_op ll_divide(ll *e, uint8_t op, ll_op a, ll_op b, ll_op uniform) {
  bool is_signed = op == VYRE__LIR_DIV_S || op == VYRE__LIR_REM_S;
  bool has_rest = op == VYRE__LIR_REM_U || op == VYRE__LIR_REM_S;
  ll_op quotient;
  if (uniform.kind != LL_NONE && !is_signed) {
    quotient = times_reciprocal(e, a, uniform);
  } else {
    quotient = ll_def(e, "fdiv %o, %v", DOUBLES, to_doubles(e, a, is_signed),
                      DOUBLES, to_doubles(e, b, is_signed));
  }
  quotient = ll_def(e, "%s %o to %t", is_signed ? "fptosi" : "fptoui", DOUBLES,
                    quotient, INTS);
  if (!has_rest) return quotient;
  ll_op whole = ll_def(e, "mul %o, %v", INTS, quotient, INTS, b);
  return ll_def(e, "sub %o, %v", INTS, a, INTS, whole);
}
