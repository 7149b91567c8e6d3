/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows: invocations that are adjacent in x.
 *
 * Most kernels compare a value that is linear in x with one that is uniform
 * in the row: the guard `i < len(y)`, and bounds checks. Such a condition
 * holds in one range of the row, or in two if it wraps at 2^32, of which one
 * is used. The range in which all conditions have their expected value is
 * computed once per row. Its code contains none of the conditions. The two
 * ends of the row run general code. If a guard encloses everything that the
 * row does, invocations outside the range are skipped. */
#ifndef VYRE_CODEGEN_LLVM_ROWS_H
#define VYRE_CODEGEN_LLVM_ROWS_H

#include "codegen/llvm/internal.h"

enum { LL_MOST_ATOMS = 32 };

/* A comparison, or a condition that is uniform in the row. */
typedef struct ll_atom {
  vyre__val v;   /* the bool */
  bool want;     /* its expected value */
  bool is_same;  /* uniform in the row: holds everywhere or nowhere */
  bool clips;    /* invocations for which it fails have nothing to do */
  bool is_reach; /* a bounds check in a loop, for all iterations */
  bool is_told; /* known at the start of the workgroup: see full_workgroups.c */
} ll_atom;

struct ll_row {
  uint32_t piece;
  uint32_t effects_from; /* at top level: no side effect precedes it */
  uint8_t *ways;         /* per value: range_split.c */
  ll_atom atoms[LL_MOST_ATOMS];
  uint32_t count;
};

static inline bool ll_is_op(const ll *e, uint32_t at, vyre__lir_op op) {
  return ll_inst(e, at)->op == op;
}

/* --- range_bounds.c: numbers of 64 bits, and what is between two -------------------*/

bool ll_are_known(ll_op a, ll_op b);
ll_op ll_plus(ll *e, ll_op a, ll_op b);
ll_op ll_minus(ll *e, ll_op a, ll_op b);
ll_op ll_least(ll *e, ll_op a, ll_op b);
ll_op ll_masked(ll *e, ll_op a, uint64_t bits);
ll_op ll_pick(ll *e, ll_op c, ll_op yes, ll_op no);
void ll_narrow(ll *e, ll_stretch *s, ll_op from, ll_op to);
/* Restricts *s to the part in which @p atom has its expected value; @p all:
 * as far as that is known. */
void ll_narrow_by_atom(ll *e, ll_row *row, const ll_atom *atom, ll_stretch *s,
                       bool all);
/* Computes the range in which all conditions hold (@p exact), its full
 * vectors (@p middle) and the part to visit at all, counted from the start
 * of the row. */
void ll_find_middle(ll *e, ll_row *row, ll_op count, ll_stretch *clip,
                    ll_stretch *middle, ll_stretch *exact);

#endif
