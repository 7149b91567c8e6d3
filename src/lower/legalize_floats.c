/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/legalize_floats.h"

#include <stdio.h>

#include "base/status.h"
#include "ir/scalar.h"
#include "lang/builtins.h"
#include "lower/build.h"

/* Appends a native operation of the target. */
static vyre__val emit_native(vyre__lir_writer *lir, vyre__lir_op op,
                             vyre_type type, vyre__val a, vyre__val b,
                             vyre__val c) {
  return vyre__lir_simplify(
      lir, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, c, 0}});
}

static vyre__val select(vyre__lir_writer *lir, vyre__val condition,
                        vyre__val yes, vyre__val no) {
  return emit_native(lir, VYRE__LIR_SELECT, vyre__lir_type_of(lir, yes),
                     condition, yes, no);
}

static vyre__val test(vyre__lir_writer *lir, vyre__lir_op op, vyre__val a,
                      vyre__val b) {
  return lir->emit(
      lir, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_BOOL, .v = {a, b, 0, 0}});
}

/* --- library calls -------------------------------------------------------- */

static vyre__val call(vyre__lir_writer *lir, vyre__builtins_kind kind,
                      const char *name, const vyre__val *arguments,
                      uint32_t count) {
  const vyre_program *library = NULL;
  if (lir->no_memory || lir->code_failed != VYRE_OK) return 0;
  vyre_code code = vyre__builtins_get(kind, &library, lir->st);
  if (code != VYRE_OK) {
    lir->code_failed = code;
    return 0;
  }
  const vyre__function *function = vyre__builtins_find(library, name);
  if (!function) {
    lir->code_failed =
        VYRE_FAIL(lir->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NOT_SUPPORTED,
                  VYRE__LIR_DEFECT, "library function '%s' is missing", name);
    return 0;
  }
  return vyre__build_call(lir, library, function, arguments, count);
}

vyre__val vyre__soft_call(vyre__lir_writer *lir, const char *name, vyre__val a,
                          vyre__val b, vyre__val c, vyre__val d) {
  return call(lir, VYRE__BUILTINS_SOFT, name, (const vyre__val[]){a, b, c, d},
              4);
}

/* Convert f32 values to the u32 representation of softlib, and back. */
static vyre__val to_bits(vyre__lir_writer *lir, vyre__val a) {
  if (!a || vyre__lir_type_of(lir, a) != VYRE_TYPE_F32) return a;
  return emit_native(lir, VYRE__LIR_BITCAST, VYRE_TYPE_U32, a, 0, 0);
}

static vyre__val from_bits(vyre__lir_writer *lir, vyre__val a) {
  if (lir->target->f32_as_bits) return a;
  return emit_native(lir, VYRE__LIR_BITCAST, VYRE_TYPE_F32, a, 0, 0);
}

/* Converts a value to f32, as F_EXTEND expects. */
static vyre__val as_float(vyre__lir_writer *lir, vyre__val a) {
  if (vyre__lir_type_of(lir, a) == VYRE_TYPE_F32) return a;
  return emit_native(lir, VYRE__LIR_BITCAST, VYRE_TYPE_F32, a, 0, 0);
}

/* --- integers ------------------------------------------------------------- */

static uint64_t ones(vyre_type type) {
  return type == VYRE_TYPE_U32 ? UINT32_MAX : UINT64_MAX;
}

/* Expands a total division: x / 0 is all ones, x % 0 is 0, MIN / -1 is MIN, MIN
 * % -1 is 0. */
static vyre__val divide(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  bool is_signed =
      inst->op == VYRE__LIR_TOTAL_DIV_S || inst->op == VYRE__LIR_TOTAL_REM_S;
  bool is_rem =
      inst->op == VYRE__LIR_TOTAL_REM_U || inst->op == VYRE__LIR_TOTAL_REM_S;
  vyre__lir_op op =
      (vyre__lir_op)(is_rem ? (is_signed ? VYRE__LIR_REM_S : VYRE__LIR_REM_U)
                            : (is_signed ? VYRE__LIR_DIV_S : VYRE__LIR_DIV_U));
  uint64_t known;
  bool is_known = vyre__lir_is_constant(lir, inst->b, &known);
  if (is_known && known != 0 && (!is_signed || known != ones(type))) {
    return emit_native(lir, op, type, inst->a, inst->b, 0);
  }
  vyre__val zero = vyre__lir_bits(lir, type, 0);
  vyre__val one = vyre__lir_bits(lir, type, 1);
  vyre__val all = vyre__lir_bits(lir, type, ones(type));
  vyre__val is_zero = test(lir, VYRE__LIR_EQ, inst->b, zero);
  vyre__val is_bad = is_zero, is_minus = 0;
  if (is_signed) {
    is_minus = test(lir, VYRE__LIR_EQ, inst->b, all);
    is_bad =
        emit_native(lir, VYRE__LIR_OR, VYRE_TYPE_BOOL, is_zero, is_minus, 0);
  }
  vyre__val divisor = select(lir, is_bad, one, inst->b);
  vyre__val out = emit_native(lir, op, type, inst->a, divisor, 0);
  /* Division by 1 already gives remainder 0. */
  if (is_rem) return out;
  if (is_signed) {
    vyre__val negated = emit_native(lir, VYRE__LIR_SUB, type, zero, inst->a, 0);
    out = select(lir, is_minus, negated, out);
  }
  return select(lir, is_zero, all, out);
}

static vyre__val shift(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  vyre__lir_op op = VYRE__LIR_SHL;
  if (inst->op == VYRE__LIR_TOTAL_SHR_U) op = VYRE__LIR_SHR_U;
  if (inst->op == VYRE__LIR_TOTAL_SHR_S) op = VYRE__LIR_SHR_S;
  uint64_t mask = inst->type == VYRE_TYPE_U32 ? 31 : 63;
  vyre__val count = emit_native(lir, VYRE__LIR_AND, VYRE_TYPE_U32, inst->b,
                                vyre__lir_bits(lir, VYRE_TYPE_U32, mask), 0);
  return emit_native(lir, op, (vyre_type)inst->type, inst->a, count, 0);
}

/* --- floats --------------------------------------------------------------- */

/* Returns a float constant of the type. */
static vyre__val number(vyre__lir_writer *lir, vyre_type type, double value) {
  return vyre__lir_bits(
      lir, type,
      type == VYRE_TYPE_F32 ? vyre__of_f32((float)value) : vyre__of_f64(value));
}

static bool is_soft(const vyre__lir_writer *lir, vyre__lir_op op) {
  return lir->target->f32_as_bits ||
         (lir->target->f32[op] == VYRE__FLOAT_MODE_SOFT && !lir->expanding[op]);
}

/* Returns the bits of a float, with NaN made canonical. */
static vyre__val canonical_bits(vyre__lir_writer *lir, vyre__val a, bool wide) {
  vyre_type bits_type = wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  vyre__val bits = a;
  if (vyre__is_float(vyre__lir_type_of(lir, a))) {
    bits = emit_native(lir, VYRE__LIR_BITCAST, bits_type, a, 0, 0);
    if (vyre__lir_float_range(lir, a).nan != VYRE__NAN_ANY) return bits;
  }
  vyre__val nan =
      vyre__lir_bits(lir, bits_type, wide ? VYRE__NAN_F64 : VYRE__NAN_F32);
  vyre__val is_nan;
  if (!wide && is_soft(lir, VYRE__LIR_FNE)) {
    vyre__val size = emit_native(lir, VYRE__LIR_AND, bits_type, bits,
                                 vyre__lir_bits(lir, bits_type, INT32_MAX), 0);
    is_nan = emit_native(lir, VYRE__LIR_LT_U, VYRE_TYPE_BOOL,
                         vyre__lir_bits(lir, bits_type, 0x7F800000), size, 0);
  } else {
    is_nan = emit_native(lir, VYRE__LIR_FNE, VYRE_TYPE_BOOL, a, a, 0);
  }
  return select(lir, is_nan, nan, bits);
}

/* Converts a float to an integer: truncates, saturates, and maps NaN to 0. The
 * operand of the native conversion always fits. */
static vyre__val saturate(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  vyre_type from = vyre__lir_type_of(lir, inst->a);
  bool is_signed = inst->op == VYRE__LIR_SATURATE_S;
  bool wide = type == VYRE_TYPE_U64;
  if (from != VYRE_TYPE_F64 && is_soft(lir, VYRE__LIR_F_TO_U)) {
    static const char *const names[] = {"soft_to_u32", "soft_to_u64",
                                        "soft_to_i32", "soft_to_i64"};
    return vyre__soft_call(lir, names[2 * is_signed + wide],
                           to_bits(lir, inst->a), 0, 0, 0);
  }
  double limit = wide ? 0x1p63 : 0x1p31, top = is_signed ? limit : 2 * limit;
  vyre__lir_op op = is_signed ? VYRE__LIR_F_TO_S : VYRE__LIR_F_TO_U;
  vyre__float_range range = vyre__lir_float_range(lir, inst->a);
  double bottom = is_signed ? -limit : 0;
  if (range.nan == VYRE__NAN_NEVER && range.lo >= bottom && range.hi < top) {
    return emit_native(lir, op, type, inst->a, 0, 0);
  }
  vyre__val zero = number(lir, from, 0), upper = number(lir, from, top);
  vyre__val x = inst->a;
  if (is_signed) {
    vyre__val is_number = test(lir, VYRE__LIR_FEQ, x, x);
    x = select(lir, is_number, x, zero);
  } else {
    x = select(lir, test(lir, VYRE__LIR_FLT, zero, x), x, zero);
  }
  vyre__val too_high = test(lir, VYRE__LIR_FLE, upper, x), outside = too_high;
  vyre__val too_low = 0;
  if (is_signed) {
    too_low = test(lir, VYRE__LIR_FLT, x, number(lir, from, -limit));
    outside =
        emit_native(lir, VYRE__LIR_OR, VYRE_TYPE_BOOL, too_high, too_low, 0);
  }
  vyre__val out =
      emit_native(lir, op, type, select(lir, outside, zero, x), 0, 0);
  uint64_t max = is_signed ? ones(type) >> 1 : ones(type);
  if (is_signed) {
    out = select(lir, too_low, vyre__lir_bits(lir, type, max + 1), out);
  }
  return select(lir, too_high, vyre__lir_bits(lir, type, max), out);
}

static vyre__val sign(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  if (type == VYRE_TYPE_F32 && is_soft(lir, VYRE__LIR_FLT)) {
    return from_bits(
        lir, vyre__soft_call(lir, "soft_sign", to_bits(lir, inst->a), 0, 0, 0));
  }
  vyre__val zero = number(lir, type, 0), x = inst->a;
  vyre__val up = test(lir, VYRE__LIR_FLT, zero, x);
  vyre__val down = test(lir, VYRE__LIR_FLT, x, zero);
  vyre__val out = select(lir, down, number(lir, type, -1), zero);
  out = select(lir, up, number(lir, type, 1), out);
  return select(lir, test(lir, VYRE__LIR_FNE, x, x), x, out);
}

/* Expands FMIN and FMAX: a NaN operand loses, -0 < +0. If one side is known to
 * be neither NaN nor zero, one comparison suffices: it fails for a NaN on the
 * other side. */
static vyre__val min_or_max(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  bool is_min = inst->op == VYRE__LIR_FMIN;
  vyre__val a = inst->a, b = inst->b;
  vyre__float_range fa = vyre__lir_float_range(lir, a),
                    fb = vyre__lir_float_range(lir, b);
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
      is_min ? test(lir, VYRE__LIR_FLT, a, b) : test(lir, VYRE__LIR_FLT, b, a);
  r = select(lir, first, a, b);
  if (!a_plain && !b_plain) {
    vyre_type bits = type == VYRE_TYPE_F32 ? VYRE_TYPE_U32 : VYRE_TYPE_U64;
    vyre__val x = emit_native(lir, VYRE__LIR_BITCAST, bits, a, 0, 0);
    vyre__val y = emit_native(lir, VYRE__LIR_BITCAST, bits, b, 0, 0);
    x = emit_native(lir, is_min ? VYRE__LIR_OR : VYRE__LIR_AND, bits, x, y, 0);
    x = emit_native(lir, VYRE__LIR_BITCAST, type, x, 0, 0);
    r = select(lir, test(lir, VYRE__LIR_FEQ, a, b), x, r);
    r = select(lir, test(lir, VYRE__LIR_FNE, b, b), a, r);
  }
  vyre__lir_set_float_range(lir, r, out);
  return r;
}

/* Rounds half away from zero. x - trunc(x) is exact. */
static vyre__val round_away(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  vyre_type type = (vyre_type)inst->type;
  vyre__val x = inst->a;
  vyre__val truncated = vyre__lir_do(lir, VYRE__LIR_FTRUNC, type, x, 0, 0);
  vyre__val fraction = vyre__lir_do(lir, VYRE__LIR_FSUB, type, x, truncated, 0);
  fraction = vyre__lir_do(lir, VYRE__LIR_FABS, type, fraction, 0, 0);
  vyre__val up = test(lir, VYRE__LIR_FLE, number(lir, type, 0.5), fraction);
  vyre__val below = test(lir, VYRE__LIR_FLT, x, number(lir, type, 0));
  vyre__val down = number(lir, type, -1), one = number(lir, type, 1);
  one = select(lir, below, down, one);
  vyre__val next = vyre__lir_do(lir, VYRE__LIR_FADD, type, truncated, one, 0);
  return select(lir, up, next, truncated);
}

enum { SOFT_NAME = 32 };

/* Writes the name of the softlib function for an f32 operation: "soft_" or
 * "corrected_", and the operation, as in "soft_add" for FADD. Returns false
 * for operations without such a function. */
static bool soft_name(vyre__lir_op op, bool wide, bool corrected,
                      char name[SOFT_NAME]) {
  bool from_integer = op == VYRE__LIR_U_TO_F || op == VYRE__LIR_S_TO_F;
  bool compares = op >= VYRE__LIR_FEQ && op <= VYRE__LIR_FLE;
  if (corrected && (from_integer || compares)) return false;
  if (from_integer) {
    snprintf(name, SOFT_NAME, "soft_from_%c%d",
             op == VYRE__LIR_U_TO_F ? 'u' : 'i', wide ? 64 : 32);
    return true;
  }
  if (op < VYRE__LIR_FADD || op > VYRE__LIR_FLE || op == VYRE__LIR_FNEG ||
      op == VYRE__LIR_FABS) {
    return false;
  }
  const char *text = op == VYRE__LIR_FMA ? "fma" : vyre__lir_ops[op].text + 1;
  snprintf(name, SOFT_NAME, "%s_%s", corrected ? "corrected" : "soft", text);
  return true;
}

/* Returns true if the corrected mode computes in f64. Without f64 the soft mode
 * is used. */
static bool needs_f64(vyre__lir_op op) {
  return op == VYRE__LIR_FADD || op == VYRE__LIR_FSUB || op == VYRE__LIR_FMUL ||
         op == VYRE__LIR_FMA;
}

/* Expands an f32 operation that the target does not compute exactly. */
static vyre__val expand(vyre__lir_writer *lir, const vyre__lir_inst *inst,
                        bool corrected) {
  vyre__lir_op op = (vyre__lir_op)inst->op;
  bool wide = vyre__lir_type_of(lir, inst->a) == VYRE_TYPE_U64;
  char name[SOFT_NAME];
  if (!soft_name(op, wide, corrected, name)) return 0;
  if (corrected) {
    /* Inside its own expansion the operation is native. */
    lir->expanding[op]++;
    vyre__val out = vyre__soft_call(lir, name, inst->a, inst->b, inst->c, 0);
    lir->expanding[op]--;
    return out;
  }
  vyre__val a = to_bits(lir, inst->a), b = to_bits(lir, inst->b);
  vyre__val c = to_bits(lir, inst->c);
  vyre__val out = vyre__soft_call(lir, name, a, b, c, 0);
  return inst->type == VYRE_TYPE_BOOL ? out : from_bits(lir, out);
}

/* Changes the sign bit with integer operations. */
static vyre__val change_sign(vyre__lir_writer *lir,
                             const vyre__lir_inst *inst) {
  bool is_neg = inst->op == VYRE__LIR_FNEG;
  vyre__val bits = to_bits(lir, inst->a);
  vyre__val mask = vyre__lir_bits(lir, VYRE_TYPE_U32,
                                  is_neg ? UINT64_C(1) << 31 : INT32_MAX);
  bits = emit_native(lir, is_neg ? VYRE__LIR_XOR : VYRE__LIR_AND, VYRE_TYPE_U32,
                     bits, mask, 0);
  return from_bits(lir, bits);
}

static vyre__val math(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  char name[32];
  bool integers = lir->target->math == VYRE__MATH_U32;
  snprintf(name, sizeof name, "%s_%s", vyre__ops[inst->aux].text,
           integers ? "u32" : "f64");
  vyre__builtins_kind kind = lir->target->math == VYRE__MATH_F64_NOFMA
                                 ? VYRE__BUILTINS_MATH_NOFMA
                                 : VYRE__BUILTINS_MATH;
  return call(lir, kind, name, (const vyre__val[]){inst->a, inst->b}, 2);
}

static vyre__val convert_half(vyre__lir_writer *lir,
                              const vyre__lir_inst *inst) {
  bool from_half =
      inst->op == VYRE__LIR_FROM_F16 || inst->op == VYRE__LIR_FROM_BF16;
  char name[SOFT_NAME];
  snprintf(name, sizeof name, "soft_%s", vyre__lir_ops[inst->op].text);
  vyre__val a = from_half ? inst->a : to_bits(lir, inst->a);
  a = vyre__soft_call(lir, name, a, 0, 0, 0);
  return from_half ? from_bits(lir, a) : a;
}

static vyre__val expand_high(vyre__lir_writer *lir,
                             const vyre__lir_inst *inst) {
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_TOTAL_DIV_U:
    case VYRE__LIR_TOTAL_DIV_S:
    case VYRE__LIR_TOTAL_REM_U:
    case VYRE__LIR_TOTAL_REM_S:
      return divide(lir, inst);
    case VYRE__LIR_TOTAL_SHL:
    case VYRE__LIR_TOTAL_SHR_U:
    case VYRE__LIR_TOTAL_SHR_S:
      return shift(lir, inst);
    case VYRE__LIR_SATURATE_U:
    case VYRE__LIR_SATURATE_S:
      return saturate(lir, inst);
    case VYRE__LIR_FSIGN:
      return sign(lir, inst);
    case VYRE__LIR_FBITS:
      return canonical_bits(lir, inst->a, inst->type == VYRE_TYPE_U64);
    case VYRE__LIR_MATH:
      return math(lir, inst);
    default:
      return convert_half(lir, inst);
  }
}

/* Returns true if the operation has an f32 operand or result. */
static bool touches_f32(const vyre__lir_writer *lir,
                        const vyre__lir_inst *inst) {
  if (inst->type == VYRE_TYPE_F32) return true;
  return vyre__lir_ops[inst->op].operands > 0 && inst->op >= VYRE__LIR_FADD &&
         inst->op <= VYRE__LIR_FLE && inst->type == VYRE_TYPE_BOOL &&
         vyre__lir_type_of(lir, inst->a) != VYRE_TYPE_F64;
}

vyre_code vyre__no_f64(uint32_t line, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "use f32, or a device with f64",
                   "line %u: the target has no f64", line);
}

static vyre__val reject_f64(vyre__lir_writer *lir) {
  if (lir->code_failed == VYRE_OK) {
    lir->code_failed = vyre__no_f64(lir->here.line, lir->st);
  }
  return 0;
}

vyre__val vyre__legalize_float_op(vyre__lir_writer *lir,
                                  const vyre__lir_inst *given) {
  vyre__lir_inst inst = *given;
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  if (lir->no_memory || lir->code_failed != VYRE_OK) return 0;
  if (info->flags & VYRE__LIRF_HIGH) return expand_high(lir, &inst);
  if (inst.type == VYRE_TYPE_F64 && lir->target->no_f64) return reject_f64(lir);
  vyre__lir_op op = (vyre__lir_op)inst.op;
  if (op < VYRE__LIR_FADD || op > VYRE__LIR_F_ROUND) {
    inst.type = (uint8_t)vyre__legalized_float_type(lir, (vyre_type)inst.type);
    return vyre__lir_simplify(lir, &inst);
  }
  bool narrow = touches_f32(lir, &inst);
  uint8_t form = narrow && !lir->expanding[op] ? lir->target->f32[op]
                                               : VYRE__FLOAT_MODE_NATIVE;
  if (narrow && lir->target->f32_as_bits) form = VYRE__FLOAT_MODE_SOFT;
  if (form == VYRE__FLOAT_MODE_SOFT && op == VYRE__LIR_BITCAST) {
    return inst.a; /* only if f32 values are bits everywhere */
  }
  if (form == VYRE__FLOAT_MODE_CORRECTED && lir->target->no_f64 &&
      needs_f64(op)) {
    form = VYRE__FLOAT_MODE_SOFT;
  }
  if (form != VYRE__FLOAT_MODE_NATIVE) {
    if (op == VYRE__LIR_FNEG || op == VYRE__LIR_FABS)
      return change_sign(lir, &inst);
    vyre__val out = expand(lir, &inst, form == VYRE__FLOAT_MODE_CORRECTED);
    if (out || lir->no_memory || lir->code_failed != VYRE_OK) return out;
  }
  if (op == VYRE__LIR_F_EXTEND) {
    inst.a = as_float(lir, inst.a);
  }
  if (op == VYRE__LIR_F_ROUND) {
    vyre__val rounded = vyre__lir_simplify(lir, &inst);
    return lir->target->f32_as_bits ? to_bits(lir, rounded) : rounded;
  }
  if (op == VYRE__LIR_FMIN || op == VYRE__LIR_FMAX) {
    return min_or_max(lir, &inst);
  }
  if (op == VYRE__LIR_FROUND) return round_away(lir, &inst);
  return vyre__lir_simplify(lir, &inst);
}

void vyre__legalize_floats_begin(vyre__lir_writer *lir) {
  lir->emit = vyre__legalize_float_op;
  lir->f32_is_bits = lir->target->f32_as_bits;
  vyre__lir_track_float_ranges(lir);
}
