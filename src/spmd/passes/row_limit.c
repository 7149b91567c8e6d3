/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `row-limit`: numbers the invocations of a workgroup row by row,
 *
 *   t = local_id.y * 16 + local_id.x;
 *   if (t < active) part[t] += part[t + active];
 *
 * and a guard of that number holds in the first rows only. The loop over rows
 * ends there. Reductions as trees have such guards: most of their steps need
 * one row or two. */
#include "spmd/schedule_internal.h"

/* Returns true if @p v is local_id.y * workgroup.x + local_id.x. */
static bool is_number(const vyre__schedule *s, vyre__val v) {
  const vyre__lir_inst *sum = inst_at(s, v);
  if (sum->op != VYRE__LIR_ADD) return false;
  bool is_left = is_op(s, sum->a, VYRE__LIR_LOCAL_ID);
  const vyre__lir_inst *x = inst_at(s, is_left ? sum->a : sum->b);
  const vyre__lir_inst *rows = inst_at(s, is_left ? sum->b : sum->a);
  if (x->op != VYRE__LIR_LOCAL_ID || x->aux != 0) return false;
  if (rows->op != VYRE__LIR_MUL && rows->op != VYRE__LIR_SHL) return false;
  bool is_product = rows->op == VYRE__LIR_MUL;
  bool swaps = is_product && is_op(s, rows->a, VYRE__LIR_CONST);
  const vyre__lir_inst *y = inst_at(s, swaps ? rows->b : rows->a);
  const vyre__lir_inst *by = inst_at(s, swaps ? rows->a : rows->b);
  if (y->op != VYRE__LIR_LOCAL_ID || y->aux != 1) return false;
  if (by->op != VYRE__LIR_CONST) return false;
  uint64_t width = vyre__lir_const(by);
  if (!is_product) width = width < 32 ? UINT64_C(1) << width : 0;
  return width == s->kernel->workgroup[0];
}

/* Returns true if the workgroup has the value of @p v before its rows. */
static bool is_known_before(const vyre__schedule *s, vyre__val v) {
  if (is_op(s, v, VYRE__LIR_LOCAL_ID)) return false;
  return is_op(s, v, VYRE__LIR_CONST) || info_at(s, v)->is_leaf ||
         info_at(s, v)->storage == VYRE__STORAGE_UNIFORM;
}

/* Returns the value that the number has to be below, or equal to, where
 * invocations have something to do; 0: not such a condition. */
static vyre__val limit_of(const vyre__schedule *s,
                          const vyre__row_condition *condition,
                          bool *is_point) {
  const vyre__lir_inst *inst = inst_at(s, condition->v);
  if (!condition->clips || condition->in_loops || condition->is_clamp) return 0;
  vyre__val number = inst->a, limit = inst->b;
  *is_point = inst->op == VYRE__LIR_EQ;
  if (inst->op == VYRE__LIR_LE_U && !condition->want) { /* limit <= number */
    number = inst->b;
    limit = inst->a;
  } else if ((inst->op != VYRE__LIR_LT_U && !*is_point) || !condition->want) {
    return 0;
  }
  return is_number(s, number) && is_known_before(s, limit) ? limit : 0;
}

static bool tests_fuel(const vyre__schedule *s, const vyre__row_split *row) {
  const vyre__subregion *of = &s->r.subregions[row->subregion];
  for (uint32_t at = of->begin; at < of->end; at++) {
    if (note_at(s, at)->is_hoisted) return true;
  }
  return false;
}

vyre_code vyre__schedule_row_limit(vyre__schedule *s) {
  const uint32_t *size = s->kernel->workgroup;
  if (!s->has_rows || s->is_fused || size[1] == 1 || size[2] > 1) {
    return VYRE_OK;
  }
  for (uint32_t i = 1; i < s->r.subregion_count; i++) {
    vyre__row_split *row = s->splits[i];
    if (!row || row->is_jammed || tests_fuel(s, row)) continue;
    for (uint32_t k = 0; k < row->count && !row->limit; k++) {
      row->limit = limit_of(s, &row->conditions[k], &row->limit_is_point);
    }
  }
  return VYRE_OK;
}

void vyre__row_limits(const vyre__schedule *s, const vyre__row_split *row,
                      uint64_t limit, uint32_t *first, uint32_t *end) {
  const uint32_t *size = s->kernel->workgroup;
  uint64_t of = limit / size[0];
  uint64_t rows = of + (row->limit_is_point || limit % size[0] != 0);
  *end = rows < size[1] ? (uint32_t)rows : size[1];
  *first = row->limit_is_point && of < size[1] ? (uint32_t)of : 0;
  if (row->limit_is_point && of >= size[1]) *end = 0;
}
