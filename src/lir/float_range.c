/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lir/float_range.h"

#include "ir/scalar.h"

static vyre__float_range make(double lo, double hi, vyre__nan nan) {
  return (vyre__float_range){lo, hi, (uint8_t)nan};
}

/* Widens bounds that were computed in double by more than the rounding error of
 * the result type. A bound that overflows the type becomes infinite. */
static vyre__float_range widen(vyre_type type, double lo, double hi,
                               vyre__nan nan) {
  bool narrow = type == VYRE_TYPE_F32;
  double relative = narrow ? 0x1p-22 : 0x1p-50;
  double tiny = narrow ? 0x1p-149 : 0x1p-1074;
  double limit = narrow ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
  if (lo != lo || hi != hi) return vyre__float_range_any();
  if (isfinite(lo)) lo -= fabs(lo) * relative + tiny;
  if (isfinite(hi)) hi += fabs(hi) * relative + tiny;
  if (lo < -limit) lo = -INFINITY;
  if (hi > limit) hi = INFINITY;
  return make(lo, hi, nan);
}

static double min_of(double a, double b) {
  return a < b ? a : b;
}

static double max_of(double a, double b) {
  return a > b ? a : b;
}

static vyre__nan max_nan(vyre__nan a, vyre__nan b) {
  return a > b ? a : b;
}

static vyre__float_range join(vyre__float_range a, vyre__float_range b) {
  return make(min_of(a.lo, b.lo), max_of(a.hi, b.hi),
              max_nan((vyre__nan)a.nan, (vyre__nan)b.nan));
}

static bool has_zero(vyre__float_range f) {
  return f.lo <= 0 && f.hi >= 0;
}

static vyre__float_range add(vyre_type type, vyre__float_range a,
                             vyre__float_range b) {
  bool fine = vyre__float_range_is_finite(a) && b.nan == VYRE__NAN_NEVER;
  fine = fine || (vyre__float_range_is_finite(b) && a.nan == VYRE__NAN_NEVER);
  return widen(type, a.lo + b.lo, a.hi + b.hi,
               fine ? VYRE__NAN_NEVER : VYRE__NAN_ANY);
}

static vyre__float_range negate(vyre__float_range a) {
  return make(-a.hi, -a.lo, (vyre__nan)a.nan);
}

static vyre__float_range multiply(vyre_type type, vyre__float_range a,
                                  vyre__float_range b) {
  if (!vyre__float_range_is_finite(a) || !vyre__float_range_is_finite(b)) {
    return vyre__float_range_any();
  }
  double p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
  return widen(type, min_of(min_of(p, q), min_of(r, s)),
               max_of(max_of(p, q), max_of(r, s)), VYRE__NAN_NEVER);
}

static vyre__float_range divide(vyre_type type, vyre__float_range a,
                                vyre__float_range b) {
  if (!vyre__float_range_is_finite(a) || b.nan != VYRE__NAN_NEVER ||
      has_zero(b)) {
    return vyre__float_range_any();
  }
  double p = a.lo / b.lo, q = a.lo / b.hi, r = a.hi / b.lo, s = a.hi / b.hi;
  return widen(type, min_of(min_of(p, q), min_of(r, s)),
               max_of(max_of(p, q), max_of(r, s)), VYRE__NAN_NEVER);
}

vyre__float_range vyre__float_range_min(vyre__float_range a,
                                        vyre__float_range b) {
  bool never = a.nan == VYRE__NAN_NEVER || b.nan == VYRE__NAN_NEVER;
  vyre__nan nan = never ? VYRE__NAN_NEVER : VYRE__NAN_ANY;
  /* If one operand can be NaN, the result can be the other operand. */
  double hi = min_of(a.hi, b.hi);
  if (a.nan != VYRE__NAN_NEVER) hi = b.hi;
  if (b.nan != VYRE__NAN_NEVER) hi = a.nan ? max_of(a.hi, b.hi) : a.hi;
  return make(min_of(a.lo, b.lo), hi, nan);
}

vyre__float_range vyre__float_range_max(vyre__float_range a,
                                        vyre__float_range b) {
  return negate(vyre__float_range_min(negate(a), negate(b)));
}

static vyre__float_range of_constant(const vyre__lir_inst *inst) {
  uint64_t bits = vyre__lir_const(inst);
  if (inst->type != VYRE_TYPE_F32 && inst->type != VYRE_TYPE_F64) {
    return vyre__float_range_any();
  }
  bool narrow = inst->type == VYRE_TYPE_F32;
  double value = narrow ? (double)vyre__f32(bits) : vyre__f64(bits);
  if (value != value) {
    bool canonical = bits == (narrow ? VYRE__NAN_F32 : VYRE__NAN_F64);
    return make(INFINITY, -INFINITY,
                canonical ? VYRE__NAN_CANONICAL : VYRE__NAN_ANY);
  }
  return make(value, value, VYRE__NAN_NEVER);
}

static vyre__float_range of_unary(vyre__lir_op op, vyre_type type,
                                  vyre__float_range a) {
  vyre__nan nan = a.nan ? VYRE__NAN_ANY : VYRE__NAN_NEVER;
  switch (op) {
    case VYRE__LIR_FNEG:
      return make(-a.hi, -a.lo, nan);
    case VYRE__LIR_FABS:
      return make(has_zero(a) ? 0 : min_of(fabs(a.lo), fabs(a.hi)),
                  max_of(fabs(a.lo), fabs(a.hi)), nan);
    case VYRE__LIR_FSQRT:
      if (nan || a.lo < 0) return vyre__float_range_any();
      return widen(type, 0, sqrt(a.hi), VYRE__NAN_NEVER);
    case VYRE__LIR_FFLOOR:
    case VYRE__LIR_FCEIL:
    case VYRE__LIR_FTRUNC:
    case VYRE__LIR_FRINT:
    case VYRE__LIR_FROUND:
      return widen(type, a.lo - 1, a.hi + 1, nan);
    case VYRE__LIR_F_EXTEND:
      return make(a.lo, a.hi, nan);
    case VYRE__LIR_F_ROUND:
      return widen(type, a.lo, a.hi, nan);
    default:
      return vyre__float_range_any();
  }
}

vyre__float_range vyre__float_range_of(const vyre__lir_inst *inst,
                                       vyre_type from,
                                       const vyre__float_range operands[3]) {
  vyre_type type = (vyre_type)inst->type;
  bool wide = from == VYRE_TYPE_U64;
  const vyre__float_range *of = operands;
  if (type != VYRE_TYPE_F32 && type != VYRE_TYPE_F64)
    return vyre__float_range_any();
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_CONST:
      return of_constant(inst);
    case VYRE__LIR_FADD:
      return add(type, of[0], of[1]);
    case VYRE__LIR_FSUB:
      return add(type, of[0], negate(of[1]));
    case VYRE__LIR_FMUL:
      return multiply(type, of[0], of[1]);
    case VYRE__LIR_FDIV:
      return divide(type, of[0], of[1]);
    case VYRE__LIR_FMA:
      return add(type, multiply(VYRE_TYPE_F64, of[0], of[1]), of[2]);
    case VYRE__LIR_FMIN:
      return vyre__float_range_min(of[0], of[1]);
    case VYRE__LIR_FMAX:
      return vyre__float_range_max(of[0], of[1]);
    case VYRE__LIR_SELECT:
      return join(of[1], of[2]);
    case VYRE__LIR_U_TO_F:
      return make(0, wide ? 0x1p64 : 0x1p32, VYRE__NAN_NEVER);
    case VYRE__LIR_S_TO_F:
      return make(wide ? -0x1p63 : -0x1p31, wide ? 0x1p63 : 0x1p31,
                  VYRE__NAN_NEVER);
    default:
      if (vyre__lir_ops[inst->op].operands != 1) return vyre__float_range_any();
      return of_unary((vyre__lir_op)inst->op, type, of[0]);
  }
}
