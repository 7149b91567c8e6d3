/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of invocations side by side in x.
 *
 * Conditions that compare something that counts with x to something that is the
 * same for the row hold in one stretch of it, or in two where it wraps at 2^32,
 * of which one is taken. Most kernels have some: the guard
 * `i < len(y)`, and the checks of accesses. They are found, the stretch where all
 * of them are as hoped is computed once a row, and gets code of its own, without
 * any of them. What is left at both ends goes the long way. Where everything that
 * a row does is behind such a guard, the rest is not visited at all. */
#ifndef VYRE_CODEGEN_LLVM_ROWS_H
#define VYRE_CODEGEN_LLVM_ROWS_H

#include "codegen/llvm/internal.h"

enum { LL_MOST_ATOMS = 32 };

/* One comparison, or something that is the same for the row. */
typedef struct ll_atom {
  vyre__val v;   /* the bool */
  bool want;     /* what it is hoped to be */
  bool is_same;  /* of the row: no stretch, all or nothing */
  bool clips;    /* where it is not so, nothing is to be done */
  bool is_reach; /* a check in a loop, of all rounds */
  bool
      is_told; /* can be told where the workgroup begins: see full_workgroups.c */
} ll_atom;

struct ll_row {
  uint32_t piece;
  uint32_t effects_from; /* top level: before it, nothing happens */
  uint8_t *ways;         /* of values: range_split.c */
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
/* Leaves of *s what is as @p atom hopes; @p all: as far as that is known. */
void ll_narrow_by_atom(ll *e, ll_row *row, const ll_atom *atom, ll_stretch *s,
                       bool all);
/* The stretch where all is as hoped (@p exact), its whole vectors (@p middle), and
 * what is to be visited at all, counted from the begin. */
void ll_find_middle(ll *e, ll_row *row, ll_op count, ll_stretch *clip,
                    ll_stretch *middle, ll_stretch *exact);

#endif
