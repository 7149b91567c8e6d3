/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tables of the LIR operations from ops.def, and their evaluation on
 * constants. */
#include "lir/lir.h"

#include "ir/scalar.h"

const vyre__lir_info vyre__lir_ops[VYRE__LIR_COUNT] = {
#define LIR(name, text, operands, flags, types, value) \
  [VYRE__LIR_##name] = {#name, text, operands, VYRE__LIRF_##flags},
#include "lir/ops.def"
#undef LIR
};

uint32_t vyre__lir_max_elements(const vyre__lir_buffer *buffer) {
  unsigned places =
      buffer->unit > buffer->width ? buffer->unit / buffer->width : 1;
  return UINT32_MAX / places;
}

bool vyre__lir_buffer_fits(const vyre__lir_buffer *buffer, uint64_t elements) {
  return elements >= buffer->count &&
         elements <= vyre__lir_max_elements(buffer);
}

uint32_t vyre__lir_max_groups(const vyre__lir_kernel *kernel, unsigned axis) {
  uint32_t size = kernel->workgroup[axis];
  if (size < 2) return UINT32_MAX;
  for (uint32_t i = 1; i < kernel->count; i++) {
    const vyre__lir_inst *inst = &kernel->code[i];
    if (inst->op != VYRE__LIR_GROUP_ID || inst->aux != axis) continue;
    return (uint32_t)(((uint64_t)1 << 32) / size);
  }
  return UINT32_MAX;
}

/* The operation of ir/ops.def with the same result; NONE: not evaluated. */
typedef struct meaning {
  uint8_t op; /* vyre__op */
  bool is_signed;
} meaning;

#define NONE         {VYRE__OP_NONE, false}
#define OP(name)     {VYRE__OP_##name, false}
#define SIGNED(name) {VYRE__OP_##name, true}

static const meaning meanings[VYRE__LIR_COUNT] = {
/* `value` is an initializer. NOLINTBEGIN(bugprone-macro-parentheses) */
#define LIR(name, text, operands, flags, types, value) \
  [VYRE__LIR_##name] = value,
#include "lir/ops.def"
#undef LIR
    /* NOLINTEND(bugprone-macro-parentheses) */
};

static vyre_type as_signed(vyre_type type) {
  if (type == VYRE_TYPE_U32) return VYRE_TYPE_I32;
  return type == VYRE_TYPE_U64 ? VYRE_TYPE_I64 : type;
}

bool vyre__lir_eval(vyre__lir_op op, vyre_type from, vyre_type type,
                    const uint64_t args[3], uint64_t *out) {
  const meaning *m = &meanings[op];
  vyre__op scalar = (vyre__op)m->op;
  if (scalar == VYRE__OP_NONE) return false;
  if (op == VYRE__LIR_NOT && from != VYRE_TYPE_BOOL) scalar = VYRE__OP_BIT_NOT;
  if (m->is_signed) from = as_signed(from);
  if (op == VYRE__LIR_F_TO_S) type = as_signed(type);
  return vyre__scalar_apply(scalar, from, type, args, out);
}
