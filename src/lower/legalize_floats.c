/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/legalize_floats.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "ir/scalar.h"
#include "lang/builtins.h"
#include "lower/build.h"

/* Appends as the target's own operation. */
static vyre__val own(vyre__lir_writer *low, vyre__lir_op op, vyre_type type,
                     vyre__val a, vyre__val b, vyre__val c) {
  return vyre__lir_simplify(
      low, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, c, 0}});
}

static vyre__val select(vyre__lir_writer *low, vyre__val condition,
                        vyre__val yes, vyre__val no) {
  return own(low, VYRE__LIR_SELECT, vyre__lir_type_of(low, yes), condition, yes,
             no);
}

static vyre__val test(vyre__lir_writer *low, vyre__lir_op op, vyre__val a,
                      vyre__val b) {
  return low->emit(
      low, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_BOOL, .v = {a, b, 0, 0}});
}

static bool is_float(unsigned type) {
  return type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64;
}

/* --- library calls ----------------------------------------------------------- */

static vyre__val call(vyre__lir_writer *low, vyre__builtins_kind kind,
                      const char *name, const vyre__val *arguments,
                      uint32_t count) {
  const vyre_program *library = NULL;
  if (low->no_memory || low->code_failed != VYRE_OK) return 0;
  vyre_code code = vyre__builtins_get(kind, &library, low->st);
  if (code != VYRE_OK) {
    low->code_failed = code;
    return 0;
  }
  const vyre__function *function = vyre__builtins_find(library, name);
  if (!function) {
    low->code_failed =
        VYRE_FAIL(low->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NOT_SUPPORTED,
                  "choose another form for it",
                  "there is no library function '%s'", name);
    return 0;
  }
  return vyre__build_call(low, library, function, arguments, count);
}

vyre__val vyre__soft_call(vyre__lir_writer *low, const char *name, vyre__val a,
                          vyre__val b, vyre__val c, vyre__val d) {
  return call(low, VYRE__BUILTINS_SOFT, name, (const vyre__val[]){a, b, c, d},
              4);
}

/* f32 values as the soft forms carry them, and back. */
static vyre__val to_bits(vyre__lir_writer *low, vyre__val a) {
  if (!a || vyre__lir_type_of(low, a) != VYRE_TYPE_F32) return a;
  return own(low, VYRE__LIR_BITCAST, VYRE_TYPE_U32, a, 0, 0);
}

static vyre__val from_bits(vyre__lir_writer *low, vyre__val a) {
  if (low->target->f32_as_bits) return a;
  return own(low, VYRE__LIR_BITCAST, VYRE_TYPE_F32, a, 0, 0);
}

/* ... and as the conversions to f64 take them. */
static vyre__val as_float(vyre__lir_writer *low, vyre__val a) {
  if (vyre__lir_type_of(low, a) == VYRE_TYPE_F32) return a;
  return own(low, VYRE__LIR_BITCAST, VYRE_TYPE_F32, a, 0, 0);
}

/* --- integers ---------------------------------------------------------------- */

static uint64_t ones(vyre_type type) {
  return type == VYRE_TYPE_U32 ? UINT32_MAX : UINT64_MAX;
}

/* x / 0 is all ones, x % 0 is 0, MIN / -1 is MIN, MIN % -1 is 0. */
static vyre__val divide(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  bool is_signed =
      inst->op == VYRE__LIR_TOTAL_DIV_S || inst->op == VYRE__LIR_TOTAL_REM_S;
  bool is_rem =
      inst->op == VYRE__LIR_TOTAL_REM_U || inst->op == VYRE__LIR_TOTAL_REM_S;
  vyre__lir_op op =
      (vyre__lir_op)(is_rem ? (is_signed ? VYRE__LIR_REM_S : VYRE__LIR_REM_U)
                            : (is_signed ? VYRE__LIR_DIV_S : VYRE__LIR_DIV_U));
  uint64_t known;
  bool is_known = vyre__lir_is_constant(low, inst->b, &known);
  if (is_known && known != 0 && (!is_signed || known != ones(type))) {
    return own(low, op, type, inst->a, inst->b, 0);
  }
  vyre__val zero = vyre__lir_bits(low, type, 0);
  vyre__val one = vyre__lir_bits(low, type, 1);
  vyre__val all = vyre__lir_bits(low, type, ones(type));
  vyre__val is_zero = test(low, VYRE__LIR_EQ, inst->b, zero);
  vyre__val is_bad = is_zero, is_minus = 0;
  if (is_signed) {
    is_minus = test(low, VYRE__LIR_EQ, inst->b, all);
    is_bad = own(low, VYRE__LIR_OR, VYRE_TYPE_BOOL, is_zero, is_minus, 0);
  }
  vyre__val divisor = select(low, is_bad, one, inst->b);
  vyre__val out = own(low, op, type, inst->a, divisor, 0);
  /* By 1 the remainder is 0 already, and the quotient the dividend. */
  if (is_rem) return out;
  if (is_signed) {
    vyre__val negated = own(low, VYRE__LIR_SUB, type, zero, inst->a, 0);
    out = select(low, is_minus, negated, out);
  }
  return select(low, is_zero, all, out);
}

static vyre__val shift(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  vyre__lir_op op = VYRE__LIR_SHL;
  if (inst->op == VYRE__LIR_TOTAL_SHR_U) op = VYRE__LIR_SHR_U;
  if (inst->op == VYRE__LIR_TOTAL_SHR_S) op = VYRE__LIR_SHR_S;
  uint64_t mask = inst->type == VYRE_TYPE_U32 ? 31 : 63;
  vyre__val count = own(low, VYRE__LIR_AND, VYRE_TYPE_U32, inst->b,
                        vyre__lir_bits(low, VYRE_TYPE_U32, mask), 0);
  return own(low, op, (vyre_type)inst->type, inst->a, count, 0);
}

/* --- floats ------------------------------------------------------------------ */

/* A float constant of the type. */
static vyre__val number(vyre__lir_writer *low, vyre_type type, double value) {
  return vyre__lir_bits(
      low, type,
      type == VYRE_TYPE_F32 ? vyre__of_f32((float)value) : vyre__of_f64(value));
}

static bool is_soft(const vyre__lir_writer *low, vyre__lir_op op) {
  return low->target->f32_as_bits ||
         (low->target->f32[op] == VYRE__FLOAT_MODE_SOFT && !low->expanding[op]);
}

/* Bits of a float, all NaNs one. */
static vyre__val canonical_bits(vyre__lir_writer *low, vyre__val a, bool wide) {
  vyre_type bits_type = wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  vyre__val bits = a;
  if (is_float(vyre__lir_type_of(low, a))) {
    bits = own(low, VYRE__LIR_BITCAST, bits_type, a, 0, 0);
    if (vyre__lir_float_range(low, a).nan != VYRE__NAN_ANY) return bits;
  }
  vyre__val nan =
      vyre__lir_bits(low, bits_type, wide ? VYRE__NAN_F64 : VYRE__NAN_F32);
  vyre__val is_nan;
  if (!wide && is_soft(low, VYRE__LIR_FNE)) {
    vyre__val size = own(low, VYRE__LIR_AND, bits_type, bits,
                         vyre__lir_bits(low, bits_type, INT32_MAX), 0);
    is_nan = own(low, VYRE__LIR_LT_U, VYRE_TYPE_BOOL,
                 vyre__lir_bits(low, bits_type, 0x7F800000), size, 0);
  } else {
    is_nan = own(low, VYRE__LIR_FNE, VYRE_TYPE_BOOL, a, a, 0);
  }
  return select(low, is_nan, nan, bits);
}

/* Truncates, saturates; NaN gives 0. What is converted fits. */
static vyre__val saturate(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  vyre_type from = vyre__lir_type_of(low, inst->a);
  bool is_signed = inst->op == VYRE__LIR_SATURATE_S;
  bool wide = type == VYRE_TYPE_U64;
  if (from != VYRE_TYPE_F64 && is_soft(low, VYRE__LIR_F_TO_U)) {
    static const char *const names[] = {"soft_to_u32", "soft_to_u64",
                                        "soft_to_i32", "soft_to_i64"};
    return vyre__soft_call(low, names[2 * is_signed + wide],
                           to_bits(low, inst->a), 0, 0, 0);
  }
  double limit = wide ? 0x1p63 : 0x1p31, top = is_signed ? limit : 2 * limit;
  vyre__lir_op op = is_signed ? VYRE__LIR_F_TO_S : VYRE__LIR_F_TO_U;
  vyre__float_range fact = vyre__lir_float_range(low, inst->a);
  double least = is_signed ? -limit : 0;
  if (fact.nan == VYRE__NAN_NEVER && fact.lo >= least && fact.hi < top) {
    return own(low, op, type, inst->a, 0, 0);
  }
  vyre__val zero = number(low, from, 0), high = number(low, from, top);
  vyre__val x = inst->a;
  if (is_signed) {
    vyre__val is_number = test(low, VYRE__LIR_FEQ, x, x);
    x = select(low, is_number, x, zero);
  } else {
    x = select(low, test(low, VYRE__LIR_FLT, zero, x), x, zero);
  }
  vyre__val too_high = test(low, VYRE__LIR_FLE, high, x), outside = too_high;
  vyre__val too_low = 0;
  if (is_signed) {
    too_low = test(low, VYRE__LIR_FLT, x, number(low, from, -limit));
    outside = own(low, VYRE__LIR_OR, VYRE_TYPE_BOOL, too_high, too_low, 0);
  }
  vyre__val out = own(low, op, type, select(low, outside, zero, x), 0, 0);
  uint64_t most = is_signed ? ones(type) >> 1 : ones(type);
  if (is_signed) {
    out = select(low, too_low, vyre__lir_bits(low, type, most + 1), out);
  }
  return select(low, too_high, vyre__lir_bits(low, type, most), out);
}

static vyre__val sign(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  if (type == VYRE_TYPE_F32 && is_soft(low, VYRE__LIR_FLT)) {
    return from_bits(
        low, vyre__soft_call(low, "soft_sign", to_bits(low, inst->a), 0, 0, 0));
  }
  vyre__val zero = number(low, type, 0), x = inst->a;
  vyre__val up = test(low, VYRE__LIR_FLT, zero, x);
  vyre__val down = test(low, VYRE__LIR_FLT, x, zero);
  vyre__val out = select(low, down, number(low, type, -1), zero);
  out = select(low, up, number(low, type, 1), out);
  return select(low, test(low, VYRE__LIR_FNE, x, x), x, out);
}

/* A NaN loses, -0 < +0. Where one side is known to be a number that is not zero,
 * one comparison is enough: it fails for a NaN on the other side. */
static vyre__val least_or_most(vyre__lir_writer *low,
                               const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  bool is_min = inst->op == VYRE__LIR_FMIN;
  vyre__val a = inst->a, b = inst->b;
  vyre__float_range fa = vyre__lir_float_range(low, a),
                    fb = vyre__lir_float_range(low, b);
  vyre__float_range out =
      is_min ? vyre__float_range_min(fa, fb) : vyre__float_range_max(fa, fb);
  bool a_plain = fa.nan == VYRE__NAN_NEVER && (fa.lo > 0 || fa.hi < 0);
  bool b_plain = fb.nan == VYRE__NAN_NEVER && (fb.lo > 0 || fb.hi < 0);
  vyre__val r;
  if (!b_plain && a_plain) {
    vyre__val swap = a;
    a = b;
    b = swap;
  }
  vyre__val first =
      is_min ? test(low, VYRE__LIR_FLT, a, b) : test(low, VYRE__LIR_FLT, b, a);
  r = select(low, first, a, b);
  if (!a_plain && !b_plain) {
    vyre_type bits = type == VYRE_TYPE_F32 ? VYRE_TYPE_U32 : VYRE_TYPE_U64;
    vyre__val x = own(low, VYRE__LIR_BITCAST, bits, a, 0, 0);
    vyre__val y = own(low, VYRE__LIR_BITCAST, bits, b, 0, 0);
    x = own(low, is_min ? VYRE__LIR_OR : VYRE__LIR_AND, bits, x, y, 0);
    x = own(low, VYRE__LIR_BITCAST, type, x, 0, 0);
    r = select(low, test(low, VYRE__LIR_FEQ, a, b), x, r);
    r = select(low, test(low, VYRE__LIR_FNE, b, b), a, r);
  }
  vyre__lir_set_float_range(low, r, out);
  return r;
}

/* Half away from zero: x - trunc(x) is exact. */
static vyre__val round_away(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  vyre__val x = inst->a;
  vyre__val whole = vyre__lir_do(low, VYRE__LIR_FTRUNC, type, x, 0, 0);
  vyre__val part = vyre__lir_do(low, VYRE__LIR_FSUB, type, x, whole, 0);
  part = vyre__lir_do(low, VYRE__LIR_FABS, type, part, 0, 0);
  vyre__val up = test(low, VYRE__LIR_FLE, number(low, type, 0.5), part);
  vyre__val below = test(low, VYRE__LIR_FLT, x, number(low, type, 0));
  vyre__val down = number(low, type, -1), one = number(low, type, 1);
  one = select(low, below, down, one);
  vyre__val next = vyre__lir_do(low, VYRE__LIR_FADD, type, whole, one, 0);
  return select(low, up, next, whole);
}

static const char *soft_name(vyre__lir_op op, bool wide, bool fixed) {
  switch (op) {
    case VYRE__LIR_FADD:
      return fixed ? "fixed_add" : "soft_add";
    case VYRE__LIR_FSUB:
      return fixed ? "fixed_sub" : "soft_sub";
    case VYRE__LIR_FMUL:
      return fixed ? "fixed_mul" : "soft_mul";
    case VYRE__LIR_FDIV:
      return fixed ? "fixed_div" : "soft_div";
    case VYRE__LIR_FSQRT:
      return fixed ? "fixed_sqrt" : "soft_sqrt";
    case VYRE__LIR_FMA:
      return fixed ? "fixed_fma" : "soft_fma";
    case VYRE__LIR_FFLOOR:
      return fixed ? "fixed_floor" : "soft_floor";
    case VYRE__LIR_FCEIL:
      return fixed ? "fixed_ceil" : "soft_ceil";
    case VYRE__LIR_FTRUNC:
      return fixed ? "fixed_trunc" : "soft_trunc";
    case VYRE__LIR_FRINT:
      return fixed ? "fixed_rint" : "soft_rint";
    case VYRE__LIR_FROUND:
      return fixed ? "fixed_round" : "soft_round";
    case VYRE__LIR_FMIN:
      return fixed ? "fixed_min" : "soft_min";
    case VYRE__LIR_FMAX:
      return fixed ? "fixed_max" : "soft_max";
    case VYRE__LIR_FEQ:
      return fixed ? NULL : "soft_eq";
    case VYRE__LIR_FNE:
      return fixed ? NULL : "soft_ne";
    case VYRE__LIR_FLT:
      return fixed ? NULL : "soft_lt";
    case VYRE__LIR_FLE:
      return fixed ? NULL : "soft_le";
    case VYRE__LIR_U_TO_F:
      if (fixed) return NULL;
      return wide ? "soft_from_u64" : "soft_from_u32";
    case VYRE__LIR_S_TO_F:
      if (fixed) return NULL;
      return wide ? "soft_from_i64" : "soft_from_i32";
    default:
      return NULL;
  }
}

/* Whether the fixed form computes in f64: without that, it is the soft one. */
static bool goes_by_f64(vyre__lir_op op) {
  return op == VYRE__LIR_FADD || op == VYRE__LIR_FSUB || op == VYRE__LIR_FMUL ||
         op == VYRE__LIR_FMA;
}

/* An operation on f32 that the target does not do right by itself. */
static vyre__val formed(vyre__lir_writer *low, const vyre__lir_inst *inst,
                        bool fixed) {
  vyre__lir_op op = (vyre__lir_op)inst->op;
  bool wide = vyre__lir_type_of(low, inst->a) == VYRE_TYPE_U64;
  const char *name = soft_name(op, wide, fixed);
  if (!name) return 0;
  if (fixed) {
    /* Inside of its own sequence an operation is the device's. */
    low->expanding[op]++;
    vyre__val out = vyre__soft_call(low, name, inst->a, inst->b, inst->c, 0);
    low->expanding[op]--;
    return out;
  }
  vyre__val a = to_bits(low, inst->a), b = to_bits(low, inst->b);
  vyre__val c = to_bits(low, inst->c);
  vyre__val out = vyre__soft_call(low, name, a, b, c, 0);
  return inst->type == VYRE_TYPE_BOOL ? out : from_bits(low, out);
}

/* Sign operations, by bits where floats are not to be trusted. */
static vyre__val flip(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  bool is_neg = inst->op == VYRE__LIR_FNEG;
  vyre__val bits = to_bits(low, inst->a);
  vyre__val mask = vyre__lir_bits(low, VYRE_TYPE_U32,
                                  is_neg ? UINT64_C(1) << 31 : INT32_MAX);
  bits = own(low, is_neg ? VYRE__LIR_XOR : VYRE__LIR_AND, VYRE_TYPE_U32, bits,
             mask, 0);
  return from_bits(low, bits);
}

static vyre__val math(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  char name[32];
  bool integers = low->target->math == VYRE__MATH_U32;
  snprintf(name, sizeof name, "%s_%s", vyre__ops[inst->aux].text,
           integers ? "u32" : "f64");
  vyre__builtins_kind kind = low->target->math == VYRE__MATH_F64_NOFMA
                                 ? VYRE__BUILTINS_MATH_NOFMA
                                 : VYRE__BUILTINS_MATH;
  return call(low, kind, name, (const vyre__val[]){inst->a, inst->b}, 2);
}

static vyre__val half(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_FROM_F16:
      return from_bits(low,
                       vyre__soft_call(low, "soft_from_f16", inst->a, 0, 0, 0));
    case VYRE__LIR_FROM_BF16:
      return from_bits(
          low, vyre__soft_call(low, "soft_from_bf16", inst->a, 0, 0, 0));
    case VYRE__LIR_TO_F16:
      return vyre__soft_call(low, "soft_to_f16", to_bits(low, inst->a), 0, 0,
                             0);
    default:
      return vyre__soft_call(low, "soft_to_bf16", to_bits(low, inst->a), 0, 0,
                             0);
  }
}

static vyre__val high(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_TOTAL_DIV_U:
    case VYRE__LIR_TOTAL_DIV_S:
    case VYRE__LIR_TOTAL_REM_U:
    case VYRE__LIR_TOTAL_REM_S:
      return divide(low, inst);
    case VYRE__LIR_TOTAL_SHL:
    case VYRE__LIR_TOTAL_SHR_U:
    case VYRE__LIR_TOTAL_SHR_S:
      return shift(low, inst);
    case VYRE__LIR_SATURATE_U:
    case VYRE__LIR_SATURATE_S:
      return saturate(low, inst);
    case VYRE__LIR_FSIGN:
      return sign(low, inst);
    case VYRE__LIR_FBITS:
      return canonical_bits(low, inst->a, inst->type == VYRE_TYPE_U64);
    case VYRE__LIR_MATH:
      return math(low, inst);
    default:
      return half(low, inst);
  }
}

/* Whether the operation works on f32 or makes one. */
static bool touches_f32(const vyre__lir_writer *low,
                        const vyre__lir_inst *inst) {
  if (inst->type == VYRE_TYPE_F32) return true;
  return vyre__lir_ops[inst->op].operands > 0 && inst->op >= VYRE__LIR_FADD &&
         inst->op <= VYRE__LIR_FLE && inst->type == VYRE_TYPE_BOOL &&
         vyre__lir_type_of(low, inst->a) != VYRE_TYPE_F64;
}

static vyre__val refuse_f64(vyre__lir_writer *low) {
  if (low->code_failed == VYRE_OK) {
    low->code_failed =
        VYRE_FAIL(low->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                  "use f32, or a device that has f64",
                  "line %u: the target has no f64", low->here.line);
  }
  return 0;
}

vyre__val vyre__legalize_float_op(vyre__lir_writer *low,
                                  const vyre__lir_inst *given) {
  vyre__lir_inst inst = *given;
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  if (low->no_memory || low->code_failed != VYRE_OK) return 0;
  if (info->flags & VYRE__LIRF_HIGH) return high(low, &inst);
  if (inst.type == VYRE_TYPE_F64 && low->target->no_f64) return refuse_f64(low);
  vyre__lir_op op = (vyre__lir_op)inst.op;
  if (op < VYRE__LIR_FADD || op > VYRE__LIR_F_ROUND) {
    inst.type = (uint8_t)vyre__legalized_float_type(low, (vyre_type)inst.type);
    return vyre__lir_simplify(low, &inst);
  }
  bool narrow = touches_f32(low, &inst);
  uint8_t form = narrow && !low->expanding[op] ? low->target->f32[op]
                                               : VYRE__FLOAT_MODE_NATIVE;
  if (narrow && low->target->f32_as_bits) form = VYRE__FLOAT_MODE_SOFT;
  if (form == VYRE__FLOAT_MODE_SOFT && op == VYRE__LIR_BITCAST) {
    return inst.a; /* only where f32 is bits everywhere */
  }
  if (form == VYRE__FLOAT_MODE_CORRECTED && low->target->no_f64 &&
      goes_by_f64(op)) {
    form = VYRE__FLOAT_MODE_SOFT;
  }
  if (form != VYRE__FLOAT_MODE_NATIVE) {
    if (op == VYRE__LIR_FNEG || op == VYRE__LIR_FABS) return flip(low, &inst);
    vyre__val out = formed(low, &inst, form == VYRE__FLOAT_MODE_CORRECTED);
    if (out || low->no_memory || low->code_failed != VYRE_OK) return out;
  }
  if (op == VYRE__LIR_F_EXTEND) {
    inst.a = as_float(low, inst.a);
  }
  if (op == VYRE__LIR_F_ROUND) {
    vyre__val rounded = vyre__lir_simplify(low, &inst);
    return low->target->f32_as_bits ? to_bits(low, rounded) : rounded;
  }
  if (op == VYRE__LIR_FMIN || op == VYRE__LIR_FMAX) {
    return least_or_most(low, &inst);
  }
  if (op == VYRE__LIR_FROUND) return round_away(low, &inst);
  return vyre__lir_simplify(low, &inst);
}

void vyre__legalize_floats_begin(vyre__lir_writer *low) {
  low->emit = vyre__legalize_float_op;
  low->f32_is_bits = low->target->f32_as_bits;
  vyre__lir_want_float_ranges(low);
}
