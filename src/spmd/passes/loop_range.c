/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `loop-range`: ranges of indices in loops.
 *
 * The bounds check of a[y * n + k] in a loop over k asks the same question
 * in every iteration. If the loop bounds are uniform in the row, and the
 * index consists of the counter, x and uniform values by sums and one
 * product, the index has a minimum and a maximum. One test per row replaces
 * all checks, and all guards such as `x + k >= 0 && x + k < n`.
 *
 * The computation uses i64, which does not wrap. Sums and products agree
 * with 32-bit arithmetic modulo 2^32, so that the index is exact wherever it
 * lies in [0, 2^32), or in [-2^31, 2^31) for signed comparisons. Eight terms are
 * below 2^35; times less than 2^27 they fit.
 *
 * x may be a factor of the product, as in a[3 * x + 1] or a[x * n + k]: the start
 * of a row that spans workgroups then divides once. */
#include "spmd/schedule_internal.h"

enum { MAX_DEPTH = 16, MAX_TERMS = 8, MAX_SCALE = 16 };

/* --- what it is made of --------------------------------------------------------------*/

typedef struct form {
  uint32_t terms, products;
  bool has_x;
  bool is_scaled; /* x is a factor */
} form;

/* Returns true if x times @p v counts as a term, not as a product. */
static bool is_small_factor(const vyre__schedule *s, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  return inst->op == VYRE__LIR_CONST &&
         (uint32_t)vyre__lir_const(inst) <= MAX_SCALE;
}

static bool is_inside(uint32_t at, uint32_t begin, uint32_t end) {
  return at > begin && at < end;
}

/* Finds the loop whose counter @p get reads in its body, where it is below
 * the bound; 0: none. */
uint32_t vyre__counter_loop(const vyre__schedule *s, uint32_t get) {
  uint32_t open = info_at(s, get)->parent;
  for (; open; open = info_at(s, open)->parent) {
    const vyre__lir_inst *inst = inst_at(s, open);
    if (inst->op == VYRE__LIR_STEP) return 0;
    if (inst->op != VYRE__LIR_LOOP) continue;
    const vyre__lir_loop *loop = &s->kernel->loops[inst->aux];
    if (loop->is_counted && loop->var == inst_at(s, get)->aux) return open;
  }
  return 0;
}

/* Returns true if jump @p at leaves an iteration of @p loop, or the loop. */
static bool leaves(const vyre__schedule *s, uint32_t at, uint32_t loop) {
  uint32_t open = info_at(s, at)->parent;
  if (inst_at(s, at)->op == VYRE__LIR_EXIT) return true;
  while (inst_at(s, open)->op != VYRE__LIR_LOOP) {
    open = info_at(s, open)->parent;
  }
  return open == loop;
}

/* Returns true if every iteration executes the whole body and only the step
 * changes the counter. */
static bool is_plain(const vyre__schedule *s, uint32_t at) {
  const vyre__lir_loop *loop = &s->kernel->loops[inst_at(s, at)->aux];
  uint32_t step = info_at(s, at)->mate, jumps = 0;
  bool goes_up = loop->kind == VYRE__LOOP_LT || loop->kind == VYRE__LOOP_LE;
  if (!goes_up || !loop->step || loop->step > INT32_MAX) return false;
  if (s->kernel->vars[loop->var].type != VYRE_TYPE_U32) return false;
  for (uint32_t i = at + 1; i < step; i++) {
    const vyre__lir_inst *inst = inst_at(s, i);
    bool jumps_here = vyre__lir_ops[inst->op].flags & VYRE__LIRF_JUMPS;
    jumps += jumps_here && leaves(s, i, at);
    if (inst->op == VYRE__LIR_SET && inst->aux == loop->var) return false;
  }
  return jumps == 1;
}

/* Returns true if @p at comes after the test of loop @p loop. */
static bool is_tested(const vyre__schedule *s, uint32_t loop, uint32_t at) {
  uint32_t i = loop + 1;
  while (i < at && inst_at(s, i)->op != VYRE__LIR_BREAK) i++;
  return i < at && is_inside(at, loop, info_at(s, loop)->mate);
}

static bool is_counter(const vyre__schedule *s, vyre__row_split *row,
                       vyre__val v, uint32_t use) {
  if (inst_at(s, v)->op != VYRE__LIR_GET) return false;
  uint32_t at = vyre__counter_loop(s, v);
  if (!at || !is_tested(s, at, use) || !is_plain(s, at)) return false;
  const vyre__lir_loop *loop = &s->kernel->loops[inst_at(s, at)->aux];
  return vyre__row_is_uniform(s, row, loop->first) &&
         vyre__row_is_uniform(s, row, loop->bound);
}

static bool has_form(const vyre__schedule *s, vyre__row_split *row, vyre__val v,
                     uint32_t use, unsigned depth, form *f) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (inst->type != VYRE_TYPE_U32 || depth > MAX_DEPTH) return false;
  if (++f->terms > MAX_TERMS) return false;
  if (vyre__row_is_uniform(s, row, v)) return true;
  if (vyre__row_is_linear(s, row, v)) {
    bool is_new = !f->has_x;
    f->has_x = true;
    return is_new;
  }
  bool left, right;
  form part = {.terms = f->terms};
  switch (inst->op) {
    case VYRE__LIR_GET:
      return is_counter(s, row, v, use);
    case VYRE__LIR_ADD:
      return has_form(s, row, inst->a, use, depth + 1, f) &&
             has_form(s, row, inst->b, use, depth + 1, f);
    case VYRE__LIR_SUB:
      return has_form(s, row, inst->a, use, depth + 1, f) &&
             vyre__row_is_uniform(s, row, inst->b);
    case VYRE__LIR_MUL:
      left = vyre__row_is_uniform(s, row, inst->a);
      right = vyre__row_is_uniform(s, row, inst->b);
      if (!left && !right) return false;
      if (!has_form(s, row, left ? inst->b : inst->a, use, depth + 1, &part)) {
        return false;
      }
      f->terms = part.terms;
      if (part.is_scaled || part.products) return false;
      if (!part.has_x) return !f->products++;
      if (f->has_x || !s->is_fused) return false;
      f->has_x = f->is_scaled = true;
      return is_small_factor(s, left ? inst->a : inst->b) || !f->products++;
    default:
      return false;
  }
}

vyre__index_limit vyre__index_limit_of(const vyre__schedule *s,
                                       vyre__row_split *row, vyre__val v,
                                       bool want) {
  const vyre__lir_inst *inst = inst_at(s, v);
  vyre__index_limit none = {0};
  if (inst->op < VYRE__LIR_LT_U || inst->op > VYRE__LIR_LE_S) return none;
  bool equals = inst->op == VYRE__LIR_LE_U || inst->op == VYRE__LIR_LE_S;
  /* not (a < b): b <= a */
  vyre__val left = want ? inst->a : inst->b, right = want ? inst->b : inst->a;
  if (!want) equals = !equals;
  bool is_top = vyre__row_is_uniform(s, row, right);
  if (!is_top && !vyre__row_is_uniform(s, row, left)) return none;
  return (vyre__index_limit){
      .index = is_top ? left : right,
      .bound = is_top ? right : left,
      .is_top = is_top,
      .one_more = is_top == equals,
      .is_signed = inst->op == VYRE__LIR_LT_S || inst->op == VYRE__LIR_LE_S};
}

bool vyre__comparison_has_range(const vyre__schedule *s, vyre__row_split *row,
                                vyre__val v, bool want, uint32_t at,
                                bool is_check) {
  vyre__index_limit limit = vyre__index_limit_of(s, row, v, want);
  form f = {0};
  return limit.index && has_form(s, row, limit.index, at, 0, &f) &&
         (is_check || !f.is_scaled);
}
