/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits the range of an index in all iterations of loops (spmd/passes/loop_range.c):
 * its minimum and maximum, in i64. */
#include "codegen/llvm/rows.h"

enum { MAX_FACTOR = 1 << 27 };

typedef struct reach {
  ll_op low, top; /* i64, of lane 0 at the start of the row */
  ll_op ok;       /* i1; LL_NONE: always true */
  ll_op stride;   /* i64, growth from lane to lane; LL_NONE: 1 */
  bool has_x;
} reach;

static ll_op extend(ll *e, ll_op op, bool is_signed) {
  if (op.kind == LL_CONST) {
    uint32_t bits = (uint32_t)op.bits;
    return ll_const(is_signed ? (uint64_t)(int64_t)(int32_t)bits : bits);
  }
  return ll_def(e, "%s i32 %v to i64", is_signed ? "sext" : "zext", LL_I32, op);
}

static ll_op both(ll *e, ll_op a, ll_op b) {
  if (a.kind == LL_NONE) return b;
  if (b.kind == LL_NONE) return a;
  return ll_def(e, "and i1 %v, %v", LL_I1, a, LL_I1, b);
}

static ll_op scalar_of(ll *e, vyre__val v, bool is_signed) {
  ll_emit_at_row_start(e, v);
  return extend(e, ll_scalar(e, v), is_signed);
}

/* From the first iteration to the last. */
static reach counter(ll *e, vyre__val v) {
  const vyre__lir_loop *loop =
      &e->kernel->loops[ll_inst(e, vyre__counter_loop(e->s, v))->aux];
  reach r = {.low = scalar_of(e, loop->first, loop->is_signed)};
  ll_op bound = scalar_of(e, loop->bound, loop->is_signed);
  ll_op span = ll_def(e, "sub i64 %v, %v", LL_I64, bound, LL_I64, r.low);
  if (loop->kind == VYRE__LOOP_LT) {
    span = ll_def(e, "sub i64 %v, 1", LL_I64, span);
  }
  span = ll_def(e, "call i64 @llvm.smax.i64(%o, %o)", LL_I64, span, LL_I64,
                ll_const(0));
  if (loop->step > 1) {
    ll_op rest = ll_def(e, "urem i64 %v, %l", LL_I64, span, loop->step);
    span = ll_def(e, "sub i64 %v, %v", LL_I64, span, LL_I64, rest);
  }
  r.top = ll_def(e, "add i64 %v, %v", LL_I64, r.low, LL_I64, span);
  return r;
}

static reach reach_of(ll *e, vyre__row_split *row, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  bool counts = vyre__row_is_linear(e->s, row, v);
  if (counts || vyre__row_is_uniform(e->s, row, v)) {
    ll_op op = scalar_of(e, v, true);
    return (reach){.low = op, .top = op, .has_x = counts};
  }
  if (inst->op == VYRE__LIR_GET) return counter(e, v);
  bool is_left =
      vyre__row_is_uniform(e->s, row, inst->a) && inst->op == VYRE__LIR_MUL;
  reach a = reach_of(e, row, is_left ? inst->b : inst->a);
  if (inst->op == VYRE__LIR_MUL) {
    ll_op by = scalar_of(e, is_left ? inst->a : inst->b, true);
    ll_op less = ll_def(e, "sub i64 %v, 1", LL_I64, by);
    ll_op fits =
        a.has_x ? ll_def(e, "icmp ult i64 %v, %u", LL_I64, less, MAX_FACTOR - 1)
                : ll_def(e, "icmp ult i64 %v, %u", LL_I64, by, MAX_FACTOR);
    a.ok = both(e, a.ok, fits);
    if (a.has_x) a.stride = by;
    a.low = ll_def(e, "mul i64 %v, %v", LL_I64, a.low, LL_I64, by);
    a.top = ll_def(e, "mul i64 %v, %v", LL_I64, a.top, LL_I64, by);
    return a;
  }
  reach b = reach_of(e, row, inst->b);
  const char *op = inst->op == VYRE__LIR_SUB ? "sub" : "add";
  a.low = ll_def(e, "%s i64 %v, %v", op, LL_I64, a.low, LL_I64, b.low);
  a.top = ll_def(e, "%s i64 %v, %v", op, LL_I64, a.top, LL_I64, b.top);
  a.ok = both(e, a.ok, b.ok);
  if (b.has_x) a.stride = b.stride;
  a.has_x |= b.has_x;
  return a;
}

/* Returns the first index that a comparison allows, or the one after the
 * last. */
static ll_op end_of(ll *e, const vyre__index_limit *limit, bool is_top) {
  enum { BITS = 32 };
  int64_t half = INT64_C(1) << (BITS - 1);
  if (limit->is_top == is_top) {
    ll_op bound = scalar_of(e, limit->bound, limit->is_signed);
    return limit->one_more ? ll_plus(e, bound, ll_const(1)) : bound;
  }
  if (is_top) return ll_const((uint64_t)(limit->is_signed ? half : 2 * half));
  return ll_const(limit->is_signed ? (uint64_t)-half : 0);
}

/* Returns the number of positions that @p distance spans, rounded up, if they
 * are @p stride apart. */
static ll_op positions(ll *e, ll_op distance, ll_op stride) {
  ll_op one = ll_const(1);
  if (stride.kind != LL_CONST) {
    stride = ll_def(e, "call i64 @llvm.umax.i64(%o, %o)", LL_I64, stride,
                    LL_I64, one);
  }
  ll_op most = ll_def(e, "call i64 @llvm.smax.i64(%o, %o)", LL_I64, distance,
                      LL_I64, ll_const(0));
  most = ll_plus(e, most, ll_minus(e, stride, one));
  return ll_def(e, "udiv i64 %v, %v", LL_I64, most, LL_I64, stride);
}

ll_interval ll_loop_condition_range(ll *e, vyre__row_split *row,
                                    const vyre__row_condition *condition,
                                    ll_op count) {
  vyre__index_limit limit =
      vyre__index_limit_of(e->s, row, condition->v, condition->want);
  reach r = reach_of(e, row, limit.index);
  ll_op low = end_of(e, &limit, false), top = end_of(e, &limit, true);
  ll_interval s = {ll_const(0), count};
  ll_op before = ll_def(e, "sub i64 %v, %v", LL_I64, low, LL_I64, r.low);
  ll_op room = ll_def(e, "sub i64 %v, %v", LL_I64, top, LL_I64, r.top);
  if (r.has_x && r.stride.kind != LL_NONE) {
    s.from = positions(e, before, r.stride);
    s.to = positions(e, room, r.stride);
  } else if (r.has_x) {
    s.from = ll_def(e, "call i64 @llvm.smax.i64(%o, %o)", LL_I64, before,
                    LL_I64, ll_const(0));
    s.to = ll_def(e, "call i64 @llvm.smax.i64(%o, %o)", LL_I64, room, LL_I64,
                  ll_const(0));
  } else {
    r.ok = both(e, r.ok, ll_def(e, "icmp sle i64 %v, 0", LL_I64, before));
    r.ok = both(e, r.ok, ll_def(e, "icmp sgt i64 %v, 0", LL_I64, room));
  }
  if (r.ok.kind != LL_NONE) {
    s.to = ll_def(e, "select %o, %o, %o", LL_I1, r.ok, LL_I64, s.to, LL_I64,
                  ll_const(0));
  }
  return s;
}
