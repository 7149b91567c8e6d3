/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows (rows.h): computes the range of a row in which all conditions hold. */
#include "codegen/llvm/rows.h"

/* --- a row -----------------------------------------------------------------------------*/

/* Emits @p v and its operands at the start of the row. */
void ll_emit_at_row_start(ll *e, vyre__val v) {
  const ll_rep *rep = &e->reps[v - e->s->r.begin];
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (rep->form && (rep->stamp == 0 || rep->stamp == e->stamp)) return;
  if (ll_is_x(e, v)) {
    ll_give_x(e, v);
    return;
  }
  if (ll_role(e, v)->is_leaf) return;
  if (e->row && vyre__row_operand(e->s, e->row, v)) {
    ll_emit_at_row_start(e, vyre__row_operand(e->s, e->row, v));
    ll_give_operand(e, v, vyre__row_operand(e->s, e->row, v));
    return;
  }
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    ll_emit_at_row_start(e, inst->v[i]);
  }
  ll_pure(e, v);
}

static ll_op wide(ll *e, ll_op op) {
  if (op.kind == LL_CONST) return op;
  return ll_def(e, "zext i32 %v to i64", LL_I32, op);
}

ll_op ll_pick(ll *e, ll_op c, ll_op yes, ll_op no) {
  if (c.kind == LL_CONST) return c.bits ? yes : no;
  return ll_def(e, "select %o, %o, %o", LL_I1, c, LL_I64, yes, LL_I64, no);
}

bool ll_are_known(ll_op a, ll_op b) {
  return a.kind == LL_CONST && b.kind == LL_CONST;
}

ll_op ll_minus(ll *e, ll_op a, ll_op b) {
  if (ll_are_known(a, b)) return ll_const(a.bits - b.bits);
  return ll_def(e, "sub i64 %v, %v", LL_I64, a, LL_I64, b);
}

ll_op ll_plus(ll *e, ll_op a, ll_op b) {
  if (ll_are_known(a, b)) return ll_const(a.bits + b.bits);
  return ll_def(e, "add i64 %v, %v", LL_I64, a, LL_I64, b);
}

ll_op ll_min(ll *e, ll_op a, ll_op b) {
  if (ll_are_known(a, b)) return a.bits < b.bits ? a : b;
  return ll_def(e, "call i64 @llvm.umin.i64(%o, %o)", LL_I64, a, LL_I64, b);
}

static ll_op max_of(ll *e, ll_op a, ll_op b) {
  if (ll_are_known(a, b)) return a.bits > b.bits ? a : b;
  if (ll_is(a, 0) || ll_is(b, 0)) return ll_is(a, 0) ? b : a;
  return ll_def(e, "call i64 @llvm.umax.i64(%o, %o)", LL_I64, a, LL_I64, b);
}

ll_op ll_masked(ll *e, ll_op a, uint64_t bits) {
  if (a.kind == LL_CONST) return ll_const(a.bits & bits);
  return ll_def(e, "and i64 %v, %l", LL_I64, a, bits);
}

void ll_narrow(ll *e, ll_interval *s, ll_op from, ll_op to) {
  s->from = max_of(e, s->from, from);
  s->to = ll_min(e, s->to, to);
}

/* Restricts *s to positions d at which the 32-bit value @p first + d is below
 * @p limit or, if @p below is false, is not below it. The value wraps at 2^32, so
 * that two separate ranges of positions can qualify. Keeps the first one; with
 * @p all, everything from the first one to the end if a second one begins in *s. */
static void narrow_by(ll *e, ll_interval *s, ll_op first, ll_op limit,
                      bool below, bool all) {
  ll_op wraps_at = ll_const(UINT64_C(1) << 32);
  ll_op is_below = ll_const(first.bits < limit.bits);
  if (!ll_are_known(first, limit)) {
    is_below = ll_def(e, "icmp ult i64 %v, %v", LL_I64, first, LL_I64, limit);
  }
  ll_op rest = ll_minus(e, limit, first);
  ll_op wrap = ll_minus(e, wraps_at, first);
  ll_op again = ll_plus(e, wrap, limit);
  ll_op from = ll_pick(e, is_below, rest, ll_const(0)), to = wrap, next = again;
  if (below) {
    from = ll_pick(e, is_below, ll_const(0), wrap);
    to = ll_pick(e, is_below, rest, again);
    next = ll_pick(e, is_below, wrap, ll_plus(e, wrap, wraps_at));
  }
  if (all) {
    ll_op has_next = ll_const(next.bits < s->to.bits);
    if (!ll_are_known(next, s->to)) {
      has_next = ll_def(e, "icmp ult i64 %v, %v", LL_I64, next, LL_I64, s->to);
    }
    to = ll_pick(e, has_next, s->to, to);
  }
  ll_narrow(e, s, from, to);
}

/* Restricts *s to the position @p at, or to the longer side of it. @p all: to
 * everything from the first such position on. */
static void narrow_by_equal(ll *e, ll_interval *s, ll_op at, bool is_equal,
                            bool all) {
  ll_op next = ll_plus(e, at, ll_const(1));
  if (is_equal) {
    ll_narrow(e, s, at, next);
    return;
  }
  if (all) return;
  ll_op twice = ll_plus(e, at, at);
  ll_op is_low = ll_const(twice.bits < s->to.bits);
  if (!ll_are_known(twice, s->to)) {
    is_low = ll_def(e, "icmp ult i64 %v, %v", LL_I64, twice, LL_I64, s->to);
  }
  ll_narrow(e, s, ll_pick(e, is_low, next, ll_const(0)),
            ll_pick(e, is_low, s->to, at));
}

void ll_narrow_by_condition(ll *e, vyre__row_split *row,
                            const vyre__row_condition *a, ll_interval *s,
                            bool all) {
  const vyre__lir_inst *inst = ll_inst(e, a->v);
  if (a->is_same) {
    ll_emit_at_row_start(e, a->v);
    ll_op none = ll_pick(e, ll_scalar(e, a->v), a->want ? s->to : ll_const(0),
                         a->want ? ll_const(0) : s->to);
    s->to = none;
    return;
  }
  if (a->in_loops) {
    ll_interval own = ll_loop_condition_range(e, row, a, s->to);
    ll_narrow(e, s, own.from, own.to);
    return;
  }
  ll_emit_at_row_start(e, inst->a);
  ll_emit_at_row_start(e, inst->b);
  bool counts_first = vyre__row_is_linear(e->s, row, inst->a) ||
                      vyre__row_is_clamped(e->s, row, inst->a);
  ll_op first = ll_scalar(e, counts_first ? inst->a : inst->b);
  ll_op other = ll_scalar(e, counts_first ? inst->b : inst->a);
  bool is_signed = inst->op == VYRE__LIR_LT_S || inst->op == VYRE__LIR_LE_S ||
                   inst->op == VYRE__LIR_MIN_S || inst->op == VYRE__LIR_MAX_S;
  bool equals =
      inst->op == VYRE__LIR_LE_U || inst->op == VYRE__LIR_LE_S || a->is_clamp;
  if (inst->op == VYRE__LIR_EQ || inst->op == VYRE__LIR_NE) {
    ll_op at = ll_const((other.bits - first.bits) & UINT32_MAX);
    if (!ll_are_known(other, first)) {
      at = ll_def(e, "sub i32 %v, %v", LL_I32, other, LL_I32, first);
      at = wide(e, at);
    }
    narrow_by_equal(e, s, at, (inst->op == VYRE__LIR_EQ) == a->want, all);
    return;
  }
  if (is_signed) {
    first = ll_def(e, "xor i32 %v, %u", LL_I32, first, 0x80000000u);
    other = ll_def(e, "xor i32 %v, %u", LL_I32, other, 0x80000000u);
  }
  first = wide(e, first);
  other = wide(e, other);
  if (a->is_clamp) {
    /* min(x, u): x <= u. max(x, u): u <= x. */
    counts_first = inst->op == VYRE__LIR_MIN_U || inst->op == VYRE__LIR_MIN_S;
  }
  /* x < u, x <= u: below u, u + 1. u < x, u <= x: not below u + 1, u. */
  bool one_more = counts_first == equals;
  if (one_more) other = ll_plus(e, other, ll_const(1));
  narrow_by(e, s, first, other, counts_first == a->want, all);
}

/* Computes the range in which all conditions hold, and its full vectors,
 * counted from the start of the row. */
void ll_find_middle(ll *e, vyre__row_split *row, ll_op count, ll_interval *clip,
                    ll_interval *middle, ll_interval *exact) {
  ll_interval full = {ll_const(0), count};
  *clip = full;
  for (uint32_t i = 0; i < row->count; i++) {
    if (row->conditions[i].is_proven) continue;
    ll_narrow_by_condition(e, row, &row->conditions[i], &full, false);
    if (row->conditions[i].clips) {
      /* The rest of the row is skipped. */
      ll_narrow_by_condition(e, row, &row->conditions[i], clip, true);
    }
  }
  *exact = full;
  uint64_t ones = ~(uint64_t)(e->width - 1);
  if (e->s->overlaps && !row->is_jammed) {
    *middle = full;
    return;
  }
  full.from = ll_masked(e, ll_plus(e, full.from, ll_const(e->width - 1)), ones);
  clip->from = ll_masked(e, clip->from, ones);
  full.to = ll_masked(e, full.to, ones);
  if (ll_are_known(full.from, full.to) && full.from.bits >= full.to.bits) {
    full.from = full.to = ll_const(0);
  }
  *middle = full;
}
