/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits operations on values, one LIR operation at a time. */
#include "base/status.h"
#include "codegen/spirv/internal.h"

/* Returns the instruction for an operation that maps to exactly one. */
static uint32_t plain_op(unsigned op) {
  static const uint16_t ops[VYRE__LIR_COUNT] = {
      [VYRE__LIR_ADD] = SPV_OpIAdd,
      [VYRE__LIR_SUB] = SPV_OpISub,
      [VYRE__LIR_MUL] = SPV_OpIMul,
      [VYRE__LIR_DIV_U] = SPV_OpUDiv,
      [VYRE__LIR_DIV_S] = SPV_OpSDiv,
      [VYRE__LIR_REM_U] = SPV_OpUMod,
      [VYRE__LIR_AND] = SPV_OpBitwiseAnd,
      [VYRE__LIR_OR] = SPV_OpBitwiseOr,
      [VYRE__LIR_XOR] = SPV_OpBitwiseXor,
      [VYRE__LIR_NOT] = SPV_OpNot,
      [VYRE__LIR_SHL] = SPV_OpShiftLeftLogical,
      [VYRE__LIR_SHR_U] = SPV_OpShiftRightLogical,
      [VYRE__LIR_SHR_S] = SPV_OpShiftRightArithmetic,
      [VYRE__LIR_EQ] = SPV_OpIEqual,
      [VYRE__LIR_NE] = SPV_OpINotEqual,
      [VYRE__LIR_LT_U] = SPV_OpULessThan,
      [VYRE__LIR_LT_S] = SPV_OpSLessThan,
      [VYRE__LIR_LE_U] = SPV_OpULessThanEqual,
      [VYRE__LIR_LE_S] = SPV_OpSLessThanEqual,
      [VYRE__LIR_SELECT] = SPV_OpSelect,
      [VYRE__LIR_FADD] = SPV_OpFAdd,
      [VYRE__LIR_FSUB] = SPV_OpFSub,
      [VYRE__LIR_FMUL] = SPV_OpFMul,
      [VYRE__LIR_FDIV] = SPV_OpFDiv,
      [VYRE__LIR_FNEG] = SPV_OpFNegate,
      [VYRE__LIR_FEQ] = SPV_OpFOrdEqual,
      [VYRE__LIR_FNE] = SPV_OpFUnordNotEqual,
      [VYRE__LIR_FLT] = SPV_OpFOrdLessThan,
      [VYRE__LIR_FLE] = SPV_OpFOrdLessThanEqual,
      [VYRE__LIR_TRUNC] = SPV_OpUConvert,
      [VYRE__LIR_U_TO_F] = SPV_OpConvertUToF,
      [VYRE__LIR_S_TO_F] = SPV_OpConvertSToF,
      [VYRE__LIR_F_TO_U] = SPV_OpConvertFToU,
      [VYRE__LIR_F_TO_S] = SPV_OpConvertFToS,
      [VYRE__LIR_F_EXTEND] = SPV_OpFConvert,
      [VYRE__LIR_F_ROUND] = SPV_OpFConvert,
  };
  return ops[op];
}

/* Returns the instruction for bool operands if it differs. */
static uint32_t logical_op(unsigned op) {
  switch (op) {
    case VYRE__LIR_AND:
      return SPV_OpLogicalAnd;
    case VYRE__LIR_OR:
      return SPV_OpLogicalOr;
    case VYRE__LIR_XOR:
    case VYRE__LIR_NE:
      return SPV_OpLogicalNotEqual;
    case VYRE__LIR_EQ:
      return SPV_OpLogicalEqual;
    case VYRE__LIR_NOT:
      return SPV_OpLogicalNot;
    default:
      return 0;
  }
}

static uint32_t glsl_function(unsigned op) {
  static const uint8_t functions[VYRE__LIR_COUNT] = {
      [VYRE__LIR_MIN_U] = SPV_GLSL_UMin,
      [VYRE__LIR_MIN_S] = SPV_GLSL_SMin,
      [VYRE__LIR_MAX_U] = SPV_GLSL_UMax,
      [VYRE__LIR_MAX_S] = SPV_GLSL_SMax,
      [VYRE__LIR_FSQRT] = SPV_GLSL_Sqrt,
      [VYRE__LIR_FMA] = SPV_GLSL_Fma,
      [VYRE__LIR_FABS] = SPV_GLSL_FAbs,
      [VYRE__LIR_FFLOOR] = SPV_GLSL_Floor,
      [VYRE__LIR_FCEIL] = SPV_GLSL_Ceil,
      [VYRE__LIR_FTRUNC] = SPV_GLSL_Trunc,
      [VYRE__LIR_FRINT] = SPV_GLSL_RoundEven,
  };
  return functions[op];
}

/* Returns true for float operations that need NoContraction. Comparisons need
 * it too: without it drivers assume that NaNs do not occur. */
static bool is_of_floats(unsigned op) {
  return (op >= VYRE__LIR_FADD && op <= VYRE__LIR_FLE) ||
         (op >= VYRE__LIR_U_TO_F && op <= VYRE__LIR_F_ROUND);
}

/* --- bits ----------------------------------------------------------------- */

/* Counts bits of one word; the GLSL functions return all ones for 0. */
static uint32_t count_word(spv_emitter *e, unsigned op, uint32_t a) {
  uint32_t u32 = spv_uint(e, 32);
  if (op == VYRE__LIR_POPCOUNT) return SPV_DO(e, SPV_OpBitCount, u32, a);
  if (op == VYRE__LIR_CLZ) {
    uint32_t top = SPV_GLSL(e, u32, SPV_GLSL_FindUMsb, a);
    return SPV_DO(e, SPV_OpISub, u32, spv_u32(e, 31), top);
  }
  uint32_t first = SPV_GLSL(e, u32, SPV_GLSL_FindILsb, a);
  return SPV_GLSL(e, u32, SPV_GLSL_UMin, first, spv_u32(e, 32));
}

/* Counts bits of 64-bit values. The instructions take words; the word that
 * comes first decides. */
static uint32_t count_bits(spv_emitter *e, unsigned op, bool is_wide,
                           uint32_t a) {
  if (!is_wide) return count_word(e, op, a);
  uint32_t u32 = spv_uint(e, 32), u64 = spv_uint(e, 64), out;
  uint32_t low = SPV_DO(e, SPV_OpUConvert, u32, a);
  uint32_t top = SPV_DO(e, SPV_OpShiftRightLogical, u64, a, spv_u32(e, 32));
  uint32_t high = SPV_DO(e, SPV_OpUConvert, u32, top);
  uint32_t of_low = count_word(e, op, low), of_high = count_word(e, op, high);
  if (op == VYRE__LIR_POPCOUNT) {
    out = SPV_DO(e, SPV_OpIAdd, u32, of_low, of_high);
  } else {
    bool leading = op == VYRE__LIR_CLZ;
    uint32_t first = leading ? high : low, near = leading ? of_high : of_low;
    uint32_t far =
        SPV_DO(e, SPV_OpIAdd, u32, leading ? of_low : of_high, spv_u32(e, 32));
    uint32_t none = SPV_DO(e, SPV_OpIEqual, spv_bool(e), first, spv_u32(e, 0));
    out = SPV_DO(e, SPV_OpSelect, u32, none, far, near);
  }
  return SPV_DO(e, SPV_OpUConvert, u64, out);
}

/* OpSRem of negative operands is undefined in Vulkan, but OpSDiv is not. */
static uint32_t remainder_signed(spv_emitter *e, uint32_t type, uint32_t a,
                                 uint32_t b) {
  uint32_t quotient = SPV_DO(e, SPV_OpSDiv, type, a, b);
  uint32_t integer = SPV_DO(e, SPV_OpIMul, type, quotient, b);
  return SPV_DO(e, SPV_OpISub, type, a, integer);
}

static uint32_t extend(spv_emitter *e, const vyre__lir_inst *inst,
                       unsigned from, uint32_t a) {
  uint32_t type = spv_type_of(e, inst->type);
  if (from != VYRE_TYPE_BOOL) return SPV_DO(e, SPV_OpUConvert, type, a);
  uint32_t one = spv_const(e, inst->type, 1),
           zero = spv_const(e, inst->type, 0);
  return SPV_DO(e, SPV_OpSelect, type, a, one, zero);
}

/* Sign-extends. Mesa 22.3 compares the result of OpSConvert with a constant as
 * unsigned; it does not misoptimise this form. */
static uint32_t extend_signed(spv_emitter *e, const vyre__lir_inst *inst,
                              uint32_t a) {
  uint32_t type = spv_type_of(e, inst->type);
  uint32_t sign = spv_const(e, inst->type, UINT64_C(1) << 31);
  a = SPV_DO(e, SPV_OpUConvert, type, a);
  a = SPV_DO(e, SPV_OpBitwiseXor, type, a, sign);
  return SPV_DO(e, SPV_OpISub, type, a, sign);
}

/* Returns true and the bits if @p v is a constant. */
static bool is_constant(const spv_emitter *e, vyre__val v, uint64_t *bits) {
  const vyre__lir_inst *inst = &e->k->code[v];
  if (inst->op != VYRE__LIR_CONST) return false;
  *bits = vyre__lir_const(inst);
  return true;
}

/* Emits a select between -1.0 and 0.0. Mesa 22.3 replaces it by the negation of
 * 1 or 0, which gives -0. Building the sign and the rest separately avoids
 * this. Returns 0 for other operands. */
static uint32_t select_minus_one(spv_emitter *e, const vyre__lir_inst *inst) {
  bool is_wide = inst->type == VYRE_TYPE_U64 || inst->type == VYRE_TYPE_F64;
  bool is_float = inst->type == VYRE_TYPE_F32 || inst->type == VYRE_TYPE_F64;
  uint64_t one = is_wide ? UINT64_C(0x3FF0000000000000) : 0x3F800000;
  uint64_t sign = is_wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31, b, c;
  if (!is_constant(e, inst->b, &b) || !is_constant(e, inst->c, &c) ||
      !((b == (one | sign) && c == 0) || (b == 0 && c == (one | sign))) ||
      (is_wide && !e->target->int64)) {
    return 0;
  }
  unsigned plain = is_wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  uint32_t type = spv_type_of(e, plain), which = e->ids[inst->a];
  uint32_t zero = spv_const(e, plain, 0);
  uint32_t size = spv_const(e, plain, one), minus = spv_const(e, plain, sign);
  size = SPV_DO(e, SPV_OpSelect, type, which, b ? size : zero, b ? zero : size);
  minus =
      SPV_DO(e, SPV_OpSelect, type, which, b ? minus : zero, b ? zero : minus);
  uint32_t bits = SPV_DO(e, SPV_OpBitwiseOr, type, size, minus);
  if (!is_float) return bits;
  return SPV_DO(e, SPV_OpBitcast, spv_type_of(e, inst->type), bits);
}

static uint32_t exactly(spv_emitter *e, uint32_t op, uint32_t type, uint32_t a,
                        uint32_t b) {
  uint32_t id = SPV_DO(e, op, type, a, b);
  spv_decorate(e, id, SPV_DECORATION_NoContraction);
  return id;
}

/* Rounds an f64 to an integer, for drivers that get this wrong. |x| + 2^52 has
 * no fraction bits, so the addition rounds to nearest even and the subtraction
 * gives the integer. Zeros, infinities, NaNs and magnitudes of 2^52 or more
 * stay unchanged. Also rounds towards zero, which Mesa 22.3 gets wrong as
 * well. */
static uint32_t round_to_integer64(spv_emitter *e, uint32_t x,
                                   bool towards_zero) {
  uint32_t f64 = spv_type_of(e, VYRE_TYPE_F64), of_bool = spv_bool(e);
  uint32_t zero = spv_const(e, VYRE_TYPE_F64, 0);
  uint32_t integer =
      spv_const(e, VYRE_TYPE_F64, UINT64_C(0x4330000000000000)); /* 2^52 */
  uint32_t size = SPV_GLSL(e, f64, SPV_GLSL_FAbs, x);
  uint32_t sum = exactly(e, SPV_OpFAdd, f64, size, integer);
  uint32_t rounded = exactly(e, SPV_OpFSub, f64, sum, integer);
  if (towards_zero) {
    uint32_t one =
        spv_const(e, VYRE_TYPE_F64, UINT64_C(0x3FF0000000000000)); /* 1 */
    uint32_t less = exactly(e, SPV_OpFSub, f64, rounded, one);
    uint32_t over = exactly(e, SPV_OpFOrdLessThan, of_bool, size, rounded);
    rounded = SPV_DO(e, SPV_OpSelect, f64, over, less, rounded);
  }
  uint32_t negative = SPV_DO(e, SPV_OpFNegate, f64, rounded);
  uint32_t below = exactly(e, SPV_OpFOrdLessThan, of_bool, x, zero);
  uint32_t small = exactly(e, SPV_OpFOrdLessThan, of_bool, size, integer);
  uint32_t some = exactly(e, SPV_OpFOrdLessThan, of_bool, zero, size);
  uint32_t out = SPV_DO(e, SPV_OpSelect, f64, below, negative, rounded);
  uint32_t changes = SPV_DO(e, SPV_OpLogicalAnd, of_bool, small, some);
  return SPV_DO(e, SPV_OpSelect, f64, changes, out, x);
}

/* --- entry point ---------------------------------------------------------- */

/* Returns true for max(a, 0 - a). */
static bool is_magnitude(const spv_emitter *e, const vyre__lir_inst *inst) {
  const vyre__lir_inst *minus = &e->k->code[inst->b];
  uint64_t zero;
  return inst->op == VYRE__LIR_MAX_S && minus->op == VYRE__LIR_SUB &&
         minus->b == inst->a && is_constant(e, minus->a, &zero) && zero == 0;
}

/* Emits |a|. Mesa 22.3 assumes that max(a, -a) is not negative, which is wrong
 * for the minimum integer; it does not misoptimise this form. */
static uint32_t magnitude(spv_emitter *e, unsigned type, uint32_t a) {
  uint32_t integer = spv_type_of(e, type);
  uint32_t last = spv_u32(e, type == VYRE_TYPE_U64 ? 63 : 31);
  uint32_t sign = SPV_DO(e, SPV_OpShiftRightArithmetic, integer, a, last);
  a = SPV_DO(e, SPV_OpBitwiseXor, integer, a, sign);
  return SPV_DO(e, SPV_OpISub, integer, a, sign);
}

static uint32_t fail_not_lowered(spv_emitter *e, uint32_t at) {
  if (e->failed == VYRE_OK && !e->no_memory) {
    e->failed =
        VYRE_FAIL_WITH(e->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                       NULL, VYRE_NUMBERS({"instruction", at}),
                       "run all lowering passes before emitting SPIR-V",
                       "instruction %u, %s, has no SPIR-V equivalent",
                       (unsigned)at, vyre__lir_ops[e->k->code[at].op].text);
  }
  return 0;
}

static bool has_types(spv_emitter *e, uint32_t at, unsigned type) {
  if (type == VYRE_TYPE_U64 && !e->target->int64) {
    spv_reject(e, at, "64-bit integers");
    return false;
  }
  if (type == VYRE_TYPE_F64 && !e->target->float64) {
    spv_reject(e, at, "f64");
    return false;
  }
  return true;
}

/* Emits operations that take several instructions or depend on their types. */
static uint32_t special(spv_emitter *e, uint32_t at, unsigned from, uint32_t a,
                        uint32_t b) {
  const vyre__lir_inst *inst = &e->k->code[at];
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_CONST:
      return spv_const(e, inst->type, vyre__lir_const(inst));
    case VYRE__LIR_CLZ:
    case VYRE__LIR_CTZ:
    case VYRE__LIR_POPCOUNT:
      return count_bits(e, inst->op, from == VYRE_TYPE_U64, a);
    case VYRE__LIR_REM_S:
      return remainder_signed(e, spv_type_of(e, inst->type), a, b);
    case VYRE__LIR_ZEXT:
      return extend(e, inst, from, a);
    case VYRE__LIR_SEXT:
      return extend_signed(e, inst, a);
    case VYRE__LIR_AGREE:
      return a;
    case VYRE__LIR_BITCAST:
      if (from == inst->type) return a;
      return spv_make_opaque(
          e, inst, SPV_DO(e, SPV_OpBitcast, spv_type_of(e, inst->type), a));
    default:
      return fail_not_lowered(e, at);
  }
}

uint32_t spv_pure(spv_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->k->code[at];
  unsigned count = vyre__lir_ops[inst->op].operands;
  unsigned from = e->k->code[inst->a].type;
  uint32_t operands[3] = {0};
  if (!has_types(e, at, inst->type)) return 0;
  bool by_integers =
      inst->op == VYRE__LIR_FMA && from == VYRE_TYPE_F64 && !e->target->fma64;
  if (by_integers && !e->target->int64) {
    spv_reject(e, at, "fma of f64 that rounds once");
    return 0;
  }
  for (unsigned i = 0; i < count && i < 3; i++) {
    operands[i] = e->ids[inst->v[i]];
  }
  if (by_integers) return spv_fma64(e, operands);
  bool truncates = inst->op == VYRE__LIR_FTRUNC;
  if (from == VYRE_TYPE_F64 && !e->target->whole64 &&
      (truncates || inst->op == VYRE__LIR_FRINT)) {
    return round_to_integer64(e, operands[0], truncates);
  }
  uint32_t op = plain_op(inst->op), function = glsl_function(inst->op), id;
  if (inst->op == VYRE__LIR_SELECT) {
    id = select_minus_one(e, inst);
    if (id) return id;
  }
  if (is_magnitude(e, inst)) return magnitude(e, inst->type, operands[0]);
  if (from == VYRE_TYPE_BOOL && logical_op(inst->op)) {
    op = logical_op(inst->op);
  }
  if (op) {
    id = spv_do_all(e, op, spv_type_of(e, inst->type), operands, count);
  } else if (function) {
    id = spv_glsl(e, spv_type_of(e, inst->type), function, operands, count);
  } else {
    return special(e, at, from, operands[0], operands[1]);
  }
  if (is_of_floats(inst->op)) spv_decorate(e, id, SPV_DECORATION_NoContraction);
  return spv_make_opaque(e, inst, id);
}
