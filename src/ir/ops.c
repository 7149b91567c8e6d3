/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tables generated from ops.def. */
#include "base/enum_name.h"
#include "ir/ir.h"

const vyre__op_info vyre__ops[VYRE__OP_COUNT] = {
#define OP(name, text, form, rule, flags)                                 \
  [VYRE__OP_##name] = {#name, text, VYRE__FORM_##form, VYRE__RULE_##rule, \
                       VYRE__OPF_##flags},
#include "ir/ops.def"
#undef OP
};

vyre_type vyre__element_type(vyre_element element) {
  static const uint8_t types[VYRE_ELEMENT_COUNT] = {
      [VYRE_ELEMENT_BOOL] = VYRE_TYPE_BOOL,
      [VYRE_ELEMENT_U8] = VYRE_TYPE_U32,
      [VYRE_ELEMENT_I8] = VYRE_TYPE_I32,
      [VYRE_ELEMENT_U16] = VYRE_TYPE_U32,
      [VYRE_ELEMENT_I16] = VYRE_TYPE_I32,
      [VYRE_ELEMENT_U32] = VYRE_TYPE_U32,
      [VYRE_ELEMENT_I32] = VYRE_TYPE_I32,
      [VYRE_ELEMENT_U64] = VYRE_TYPE_U64,
      [VYRE_ELEMENT_I64] = VYRE_TYPE_I64,
      [VYRE_ELEMENT_F16] = VYRE_TYPE_F32,
      [VYRE_ELEMENT_BF16] = VYRE_TYPE_F32,
      [VYRE_ELEMENT_F32] = VYRE_TYPE_F32,
      [VYRE_ELEMENT_F64] = VYRE_TYPE_F64,
      [VYRE_ELEMENT_BYTES] = VYRE_TYPE_U32,
      [VYRE_ELEMENT_SUM_F32] = VYRE_TYPE_F32,
      [VYRE_ELEMENT_SUM_F64] = VYRE_TYPE_F64,
  };
  return (unsigned)element < VYRE_ELEMENT_COUNT ? (vyre_type)types[element]
                                                : VYRE_TYPE_VOID;
}

VYRE__ENUM_NAME(vyre_type_name, vyre_type, VYRE_TYPE_MAP)
