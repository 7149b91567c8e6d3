/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hal/float_target.h"

#include <stddef.h>

/* Float operations of LIR, and the probe results that choose their mode. */
static const struct {
  uint8_t number, op;
} float_ops[] = {
    {VYRE__FLOAT_OP_F32_NEG, VYRE__LIR_FNEG},
    {VYRE__FLOAT_OP_F32_ABS, VYRE__LIR_FABS},
    {VYRE__FLOAT_OP_F32_ADD, VYRE__LIR_FADD},
    {VYRE__FLOAT_OP_F32_SUB, VYRE__LIR_FSUB},
    {VYRE__FLOAT_OP_F32_MUL, VYRE__LIR_FMUL},
    {VYRE__FLOAT_OP_F32_DIV, VYRE__LIR_FDIV},
    {VYRE__FLOAT_OP_F32_SQRT, VYRE__LIR_FSQRT},
    {VYRE__FLOAT_OP_F32_FMA, VYRE__LIR_FMA},
    {VYRE__FLOAT_OP_F32_MIN, VYRE__LIR_FMIN},
    {VYRE__FLOAT_OP_F32_MAX, VYRE__LIR_FMAX},
    {VYRE__FLOAT_OP_F32_FLOOR, VYRE__LIR_FFLOOR},
    {VYRE__FLOAT_OP_F32_CEIL, VYRE__LIR_FCEIL},
    {VYRE__FLOAT_OP_F32_TRUNC, VYRE__LIR_FTRUNC},
    {VYRE__FLOAT_OP_F32_ROUND, VYRE__LIR_FROUND},
    {VYRE__FLOAT_OP_F32_RINT, VYRE__LIR_FRINT},
    {VYRE__FLOAT_OP_F32_EQ, VYRE__LIR_FEQ},
    {VYRE__FLOAT_OP_F32_NE, VYRE__LIR_FNE},
    {VYRE__FLOAT_OP_F32_LT, VYRE__LIR_FLT},
    {VYRE__FLOAT_OP_F32_LE, VYRE__LIR_FLE},
    {VYRE__FLOAT_OP_F32_TO_U32, VYRE__LIR_F_TO_U},
    {VYRE__FLOAT_OP_F32_TO_U64, VYRE__LIR_F_TO_U},
    {VYRE__FLOAT_OP_F32_TO_I32, VYRE__LIR_F_TO_S},
    {VYRE__FLOAT_OP_F32_TO_I64, VYRE__LIR_F_TO_S},
    {VYRE__FLOAT_OP_U32_TO_F32, VYRE__LIR_U_TO_F},
    {VYRE__FLOAT_OP_U64_TO_F32, VYRE__LIR_U_TO_F},
    {VYRE__FLOAT_OP_I32_TO_F32, VYRE__LIR_S_TO_F},
    {VYRE__FLOAT_OP_I64_TO_F32, VYRE__LIR_S_TO_F},
};

uint64_t vyre__float_ops_of(vyre__lir_op op) {
  uint64_t all = 0;
  for (size_t i = 0; i < sizeof float_ops / sizeof float_ops[0]; i++) {
    if (float_ops[i].op == op) all |= (uint64_t)1 << float_ops[i].number;
  }
  return all;
}

/* Chooses the arithmetic of math functions: f64 only if the probe found all f64
 * operations exact. */
static vyre__math_variant choose_math(const vyre_float_op_info *probed,
                                      bool has_f64) {
  static const uint8_t required[] = {
      VYRE__FLOAT_OP_F64_ADD,    VYRE__FLOAT_OP_F64_SUB,
      VYRE__FLOAT_OP_F64_MUL,    VYRE__FLOAT_OP_F64_DIV,
      VYRE__FLOAT_OP_F64_SQRT,   VYRE__FLOAT_OP_F64_TO_F32,
      VYRE__FLOAT_OP_F32_TO_F64, VYRE__FLOAT_OP_F64_LT};
  if (!has_f64) return VYRE__MATH_U32;
  for (size_t i = 0; i < sizeof required; i++) {
    if (probed[required[i]].mode != VYRE_FLOAT_MODE_NATIVE)
      return VYRE__MATH_U32;
  }
  return probed[VYRE__FLOAT_OP_F64_FMA].mode == VYRE_FLOAT_MODE_NATIVE
             ? VYRE__MATH_F64
             : VYRE__MATH_F64_NOFMA;
}

void vyre__target_set_floats(const vyre_float_op_info *probed,
                             vyre__target *out) {
  out->math = (uint8_t)choose_math(probed, !out->no_f64);
  for (size_t i = 0; i < sizeof float_ops / sizeof float_ops[0]; i++) {
    uint8_t mode = (uint8_t)probed[float_ops[i].number].mode;
    uint8_t *to = &out->f32[float_ops[i].op];
    if (mode > *to) *to = mode;
  }
}
