/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hides float constants from device compilers that mishandle zeros. Mesa's
 * llvmpipe does not evaluate operations with the constant 0.0: it takes a
 * product as 0 and a sum as the other operand, whatever that is, and quotients
 * are wrong. No decoration prevents this. So it must not see such floats.
 * Zeros, and constants that reach an operation through variables or select, are
 * emitted as constants plus an integer 0 that the compiler cannot know. The
 * same applies to floats converted from integers, which it may evaluate in an
 * unrolled loop. A nonzero constant operand stays plain if another operand is
 * not constant. */
#include "codegen/spirv/internal.h"

static bool is_arithmetic(unsigned op) {
  return (op >= VYRE__LIR_FADD && op <= VYRE__LIR_FDIV) || op == VYRE__LIR_FMA;
}

static bool is_compare(unsigned op) {
  return op >= VYRE__LIR_FEQ && op <= VYRE__LIR_FLE;
}

/* Returns true if all operands are constants: 0.5 - 0.5 is a zero too. */
static bool has_constants_only(const vyre__lir_kernel *k,
                               const vyre__lir_inst *inst) {
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    if (k->code[inst->v[i]].op != VYRE__LIR_CONST) return false;
  }
  return true;
}

/* Returns true if the constant operand @p v of @p inst must be hidden. */
static bool must_be_opaque(const vyre__lir_kernel *k,
                           const vyre__lir_inst *inst, uint32_t v) {
  const vyre__lir_inst *of = &k->code[v];
  if (of->op != VYRE__LIR_CONST || !vyre__is_float(of->type)) return false;
  if (is_arithmetic(inst->op)) {
    return vyre__lir_const(of) == 0 || has_constants_only(k, inst);
  }
  return !is_compare(inst->op) && inst->op != VYRE__LIR_BITCAST;
}

/* Returns true if a compiler cannot prove the condition false: it compares an
 * index only with a length that comes from the launch. A 64-bit or constant
 * index could exceed all lengths. */
static bool may_hold(const spv_emitter *e, uint32_t condition) {
  const vyre__lir_inst *code = e->k->code, *test = &code[condition];
  if (test->op != VYRE__LIR_LT_U || code[test->a].op == VYRE__LIR_CONST) {
    return false;
  }
  const vyre__lir_inst *length = &code[test->b];
  return length->op == VYRE__LIR_LEN &&
         spv_is_bound(&e->k->buffers[length->aux]) &&
         e->k->buffers[length->aux].count == 0;
}

/* Returns true for integers that no compiler can know. A load gives 0 out of
 * bounds, and a compiler may know that it is out of bounds. */
static bool is_unknown(const spv_emitter *e, uint32_t v) {
  const vyre__lir_inst *inst = &e->k->code[v];
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_GRID_SIZE:
      return true;
    case VYRE__LIR_LOAD:
      return !inst->b || may_hold(e, inst->b);
    default:
      return false;
  }
}

/* Returns true if @p inst converts an integer that may be known to a float. */
static bool is_made_known(const spv_emitter *e, const vyre__lir_inst *inst) {
  bool converts = inst->op == VYRE__LIR_U_TO_F ||
                  inst->op == VYRE__LIR_S_TO_F || inst->op == VYRE__LIR_BITCAST;
  return converts && vyre__is_float(inst->type) &&
         !vyre__is_float(e->k->code[inst->a].type) && !is_unknown(e, inst->a);
}

bool spv_find_opaque(spv_emitter *e) {
  const vyre__lir_kernel *k = e->k;
  bool any = false;
  if (!e->target->hides_floats) return false;
  for (uint32_t p = 0; p < k->phase_count; p++) {
    for (uint32_t at = k->phases[p].begin; at < k->phases[p].end; at++) {
      const vyre__lir_inst *inst = &k->code[at];
      unsigned count = vyre__lir_ops[inst->op].operands;
      if (inst->op == VYRE__LIR_CONST) continue;
      any |= is_made_known(e, inst);
      for (unsigned i = 0; i < count; i++) {
        if (!must_be_opaque(k, inst, inst->v[i])) continue;
        e->is_opaque[inst->v[i]] = any = true;
      }
    }
  }
  return any;
}

/* Returns the float with these bits, an integer of the same width. */
static uint32_t as_opaque(spv_emitter *e, unsigned type, uint32_t bits) {
  uint32_t none = e->none, integer = spv_uint(e, 32);
  if (type == VYRE_TYPE_F64) {
    integer = spv_uint(e, 64);
    none = SPV_DO(e, SPV_OpUConvert, integer, none);
  }
  bits = SPV_DO(e, SPV_OpBitwiseXor, integer, bits, none);
  return SPV_DO(e, SPV_OpBitcast, spv_type_of(e, type), bits);
}

static bool can_make_opaque(const spv_emitter *e, unsigned type) {
  return type != VYRE_TYPE_F64 || e->target->int64;
}

void spv_make_constants_opaque(spv_emitter *e, vyre__lir_phase range) {
  uint32_t one = spv_u32(e, 1);
  e->none = SPV_DO(e, SPV_OpBitwiseXor, spv_uint(e, 32), e->one, one);
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &e->k->code[at];
    if (!e->is_opaque[at] || !can_make_opaque(e, inst->type)) continue;
    unsigned integer =
        inst->type == VYRE_TYPE_F64 ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
    e->ids[at] =
        as_opaque(e, inst->type, spv_const(e, integer, vyre__lir_const(inst)));
  }
}

uint32_t spv_make_opaque(spv_emitter *e, const vyre__lir_inst *inst,
                         uint32_t id) {
  if (!e->none || !is_made_known(e, inst) || !can_make_opaque(e, inst->type)) {
    return id;
  }
  bool is_wide = inst->type == VYRE_TYPE_F64;
  uint32_t bits = SPV_DO(e, SPV_OpBitcast, spv_uint(e, is_wide ? 64 : 32), id);
  return as_opaque(e, inst->type, bits);
}
