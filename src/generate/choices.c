/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists the operations that produce each type. The list is derived from the
 * public operation lists and from ops.def, so that new operations appear in
 * random programs without a change here. */
#include "generate/internal.h"
#include "ir/ir.h"

typedef struct op_row {
  uint8_t op, internal_op, arity;
} op_row;

static const op_row rows[] = {
#define ROW1(name) {VYRE_OP_##name, VYRE__OP_##name, 1},
#define ROW2(name) {VYRE_OP_##name, VYRE__OP_##name, 2},
#define ROW3(name) {VYRE_OP_##name, VYRE__OP_##name, 3},
    VYRE_OP_UNARY_MAP(ROW1) VYRE_OP_BINARY_MAP(ROW2) VYRE_OP_TERNARY_MAP(ROW3)
#undef ROW1
#undef ROW2
#undef ROW3
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Sums of floats need 64-bit integers, and those of f64 much code. */
static bool is_large_sum(const gen *g, vyre__op op, vyre_type type) {
  const bool is_sum = op == VYRE__OP_SUBGROUP_ADD ||
                      op == VYRE__OP_SUBGROUP_SCAN_ADD ||
                      op == VYRE__OP_SUBGROUP_SCAN_ADD_BEFORE;
  return is_sum && (type == VYRE_TYPE_F64 ||
                    (type == VYRE_TYPE_F32 && g->options.no_int64));
}

static bool is_usable(const gen *g, const op_row *row, vyre_type type) {
  if (vyre__op_is_subgroup(row->internal_op) &&
      (!g->has_subgroups ||
       is_large_sum(g, (vyre__op)row->internal_op, type))) {
    return false;
  }
  if (vyre__op_is_math(row->internal_op) && !g->options.has_math) return false;
  return vyre_op_accepts((vyre_op)row->op, type);
}

static vyre_type result_type(vyre__op op, vyre_type type) {
  vyre__rule rule = (vyre__rule)vyre__ops[op].rule;
  bool compares =
      rule == VYRE__RULE_COMPARE_ANY || rule == VYRE__RULE_COMPARE_NUMBER;
  if (op == VYRE__OP_DOT4_I8) return VYRE_TYPE_I32;
  if (op == VYRE__OP_BALLOT) return VYRE_TYPE_U32;
  return compares ? VYRE_TYPE_BOOL : type;
}

void gen_list_choices(gen *g) {
  for (int i = 0; i < ROWS; i++) {
    vyre__op op = (vyre__op)rows[i].internal_op;
    if (op == VYRE__OP_UNIFORM && g->options.no_barriers) continue;
    if (vyre__op_is_workgroup(op)) continue;
    for (uint32_t t = 0; t < g->type_count; t++) {
      vyre_type type = g->types[t], result = result_type(op, type);
      uint32_t *count = &g->choice_count[result];
      if (!is_usable(g, &rows[i], type) || *count == GEN_CHOICES) continue;
      g->choices[result][(*count)++] =
          (gen_choice){(vyre_op)rows[i].op, rows[i].arity, type};
    }
  }
}
