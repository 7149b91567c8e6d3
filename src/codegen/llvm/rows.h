/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows: invocations that are adjacent in x (spmd/passes/range_split.c). */
#ifndef VYRE_CODEGEN_LLVM_ROWS_H
#define VYRE_CODEGEN_LLVM_ROWS_H

#include "codegen/llvm/internal.h"

static inline bool ll_is_op(const ll *e, uint32_t at, vyre__lir_op op) {
  return ll_inst(e, at)->op == op;
}

/* --- range_bounds.c: i64 arithmetic on the bounds of ranges -------------------*/

bool ll_are_known(ll_op a, ll_op b);
ll_op ll_plus(ll *e, ll_op a, ll_op b);
ll_op ll_minus(ll *e, ll_op a, ll_op b);
ll_op ll_min(ll *e, ll_op a, ll_op b);
ll_op ll_masked(ll *e, ll_op a, uint64_t bits);
ll_op ll_pick(ll *e, ll_op c, ll_op yes, ll_op no);
void ll_narrow(ll *e, ll_interval *s, ll_op from, ll_op to);
/* Restricts *s to the part in which @p condition has its expected value; @p all:
 * as far as that is known. */
void ll_narrow_by_condition(ll *e, vyre__row_split *row,
                            const vyre__row_condition *condition,
                            ll_interval *s, bool all);
/* Computes the range in which all conditions hold (@p exact), its full
 * vectors (@p middle) and the part to visit at all, counted from the start
 * of the row. */
void ll_find_middle(ll *e, vyre__row_split *row, ll_op count, ll_interval *clip,
                    ll_interval *middle, ll_interval *exact);

#endif
