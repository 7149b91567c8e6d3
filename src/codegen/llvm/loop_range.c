/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ranges of indices in loops.
 *
 * The bounds check of a[y * n + k] in a loop over k asks the same question
 * in every iteration. If the loop bounds are uniform in the row, and the
 * index consists of the counter, x and uniform values by sums and one
 * product, the index has a minimum and a maximum. One test per row replaces
 * all checks.
 *
 * The computation uses i64, which does not wrap. Sums and products agree
 * with 32-bit arithmetic modulo 2^32, so that the index is exact wherever it
 * lies in [0, 2^32). Eight terms are below 2^35; times less than 2^27 they
 * fit. */
#include "codegen/llvm/internal.h"

enum { MAX_DEPTH = 16, MAX_TERMS = 8, MAX_FACTOR = 1 << 27 };

/* --- what it is made of --------------------------------------------------------------*/

typedef struct form {
  uint32_t terms, products;
  bool has_x;
} form;

static bool is_inside(uint32_t at, uint32_t begin, uint32_t end) {
  return at > begin && at < end;
}

/* Finds the loop whose counter @p get reads in its body, where it is below
 * the bound; 0: none. */
static uint32_t loop_of(const ll *e, uint32_t get) {
  uint32_t open = ll_role(e, get)->parent;
  for (; open; open = ll_role(e, open)->parent) {
    const vyre__lir_inst *inst = ll_inst(e, open);
    if (inst->op == VYRE__LIR_STEP) return 0;
    if (inst->op != VYRE__LIR_LOOP) continue;
    const vyre__lir_loop *loop = &e->kernel->loops[inst->aux];
    if (loop->is_counted && loop->var == ll_inst(e, get)->aux) return open;
  }
  return 0;
}

/* Returns true if jump @p at leaves an iteration of @p loop, or the loop. */
static bool leaves(const ll *e, uint32_t at, uint32_t loop) {
  uint32_t open = ll_role(e, at)->parent;
  if (ll_inst(e, at)->op == VYRE__LIR_EXIT) return true;
  while (ll_inst(e, open)->op != VYRE__LIR_LOOP) {
    open = ll_role(e, open)->parent;
  }
  return open == loop;
}

/* Returns true if every iteration executes the whole body and only the step
 * changes the counter. */
static bool is_plain(const ll *e, uint32_t at) {
  const vyre__lir_loop *loop = &e->kernel->loops[ll_inst(e, at)->aux];
  uint32_t step = ll_role(e, at)->mate, jumps = 0;
  bool goes_up = loop->kind == VYRE__LOOP_LT || loop->kind == VYRE__LOOP_LE;
  if (!goes_up || !loop->step || loop->step > INT32_MAX) return false;
  if (ll_type(e->kernel->vars[loop->var].type) != LL_I32) return false;
  for (uint32_t i = at + 1; i < step; i++) {
    const vyre__lir_inst *inst = ll_inst(e, i);
    bool jumps_here = vyre__lir_ops[inst->op].flags & VYRE__LIRF_JUMPS;
    jumps += jumps_here && leaves(e, i, at);
    if (inst->op == VYRE__LIR_SET && inst->aux == loop->var) return false;
  }
  return jumps == 1;
}

/* Returns true if @p at comes after the test of loop @p loop. */
static bool is_tested(const ll *e, uint32_t loop, uint32_t at) {
  uint32_t i = loop + 1;
  while (i < at && ll_inst(e, i)->op != VYRE__LIR_BREAK) i++;
  return i < at && is_inside(at, loop, ll_role(e, loop)->mate);
}

static bool is_counter(ll *e, ll_row *row, vyre__val v, uint32_t use) {
  if (ll_inst(e, v)->op != VYRE__LIR_GET) return false;
  uint32_t at = loop_of(e, v);
  if (!at || !is_tested(e, at, use) || !is_plain(e, at)) return false;
  const vyre__lir_loop *loop = &e->kernel->loops[ll_inst(e, at)->aux];
  return ll_row_same(e, row, loop->first) && ll_row_same(e, row, loop->bound);
}

static bool has_form(ll *e, ll_row *row, vyre__val v, uint32_t use,
                     unsigned depth, form *f) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (ll_type(inst->type) != LL_I32 || depth > MAX_DEPTH) return false;
  if (++f->terms > MAX_TERMS) return false;
  if (ll_row_same(e, row, v)) return true;
  if (ll_row_counts(e, row, v)) {
    bool is_new = !f->has_x;
    f->has_x = true;
    return is_new;
  }
  bool left, right;
  form part = {.terms = f->terms};
  switch (inst->op) {
    case VYRE__LIR_GET:
      return is_counter(e, row, v, use);
    case VYRE__LIR_ADD:
      return has_form(e, row, inst->a, use, depth + 1, f) &&
             has_form(e, row, inst->b, use, depth + 1, f);
    case VYRE__LIR_SUB:
      return has_form(e, row, inst->a, use, depth + 1, f) &&
             ll_row_same(e, row, inst->b);
    case VYRE__LIR_MUL:
      left = ll_row_same(e, row, inst->a);
      right = ll_row_same(e, row, inst->b);
      if (!left && !right) return false;
      if (!has_form(e, row, left ? inst->b : inst->a, use, depth + 1, &part)) {
        return false;
      }
      f->terms = part.terms;
      return !part.has_x && !part.products && !f->products++;
    default:
      return false;
  }
}

bool ll_reaches(ll *e, ll_row *row, vyre__val check, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, check);
  form f = {0};
  return inst->op == VYRE__LIR_LT_U && ll_row_same(e, row, inst->b) &&
         has_form(e, row, inst->a, at, 0, &f);
}

/* --- asking ------------------------------------------------------------------------------*/

typedef struct reach {
  ll_op low, top; /* i64, of lane 0 at the start of the row */
  ll_op ok;       /* i1; LL_NONE: always true */
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
  ll_make_ahead(e, v);
  return extend(e, ll_scalar(e, v), is_signed);
}

/* From the first iteration to the last. */
static reach counter(ll *e, vyre__val v) {
  const vyre__lir_loop *loop =
      &e->kernel->loops[ll_inst(e, loop_of(e, v))->aux];
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

static reach reach_of(ll *e, ll_row *row, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  bool counts = ll_row_counts(e, row, v);
  if (counts || ll_row_same(e, row, v)) {
    ll_op op = scalar_of(e, v, true);
    return (reach){.low = op, .top = op, .has_x = counts};
  }
  if (inst->op == VYRE__LIR_GET) return counter(e, v);
  bool is_left = ll_row_same(e, row, inst->a) && inst->op == VYRE__LIR_MUL;
  reach a = reach_of(e, row, is_left ? inst->b : inst->a);
  if (inst->op == VYRE__LIR_MUL) {
    ll_op by = scalar_of(e, is_left ? inst->a : inst->b, true);
    a.ok =
        both(e, a.ok, ll_def(e, "icmp ult i64 %v, %u", LL_I64, by, MAX_FACTOR));
    a.low = ll_def(e, "mul i64 %v, %v", LL_I64, a.low, LL_I64, by);
    a.top = ll_def(e, "mul i64 %v, %v", LL_I64, a.top, LL_I64, by);
    return a;
  }
  reach b = reach_of(e, row, inst->b);
  const char *op = inst->op == VYRE__LIR_SUB ? "sub" : "add";
  a.low = ll_def(e, "%s i64 %v, %v", op, LL_I64, a.low, LL_I64, b.low);
  a.top = ll_def(e, "%s i64 %v, %v", op, LL_I64, a.top, LL_I64, b.top);
  a.ok = both(e, a.ok, b.ok);
  a.has_x |= b.has_x;
  return a;
}

ll_stretch ll_reach(ll *e, ll_row *row, vyre__val check, ll_op count) {
  const vyre__lir_inst *inst = ll_inst(e, check);
  reach r = reach_of(e, row, inst->a);
  ll_op limit = scalar_of(e, inst->b, false);
  ll_stretch s = {ll_const(0), count};
  ll_op room = ll_def(e, "sub i64 %v, %v", LL_I64, limit, LL_I64, r.top);
  if (r.has_x) {
    ll_op before = ll_def(e, "sub i64 0, %v", LL_I64, r.low);
    s.from = ll_def(e, "call i64 @llvm.smax.i64(%o, %o)", LL_I64, before,
                    LL_I64, ll_const(0));
    s.to = ll_def(e, "call i64 @llvm.smax.i64(%o, %o)", LL_I64, room, LL_I64,
                  ll_const(0));
  } else {
    r.ok = both(e, r.ok, ll_def(e, "icmp sge i64 %v, 0", LL_I64, r.low));
    r.ok = both(e, r.ok, ll_def(e, "icmp sgt i64 %v, 0", LL_I64, room));
  }
  if (r.ok.kind != LL_NONE) {
    s.to = ll_def(e, "select %o, %o, %o", LL_I1, r.ok, LL_I64, s.to, LL_I64,
                  ll_const(0));
  }
  return s;
}
