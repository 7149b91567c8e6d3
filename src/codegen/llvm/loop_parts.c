/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Long loops poll `stop`. Counting iterations for that takes a register and a
 * branch in each of them. If its bound is the only exit, a loop runs in parts of
 * ROUNDS iterations instead, and polls before each part:
 *
 *     do {
 *         limit = i < bound ? i + min(bound - i, 4096 steps) : i;
 *         rounds -= limit - i; if (rounds < 0) poll;
 *         while (i < limit) ..
 *     } while (i < bound); */
#include "codegen/llvm/internal.h"

enum { ROUNDS = 4096, MAX_STEP = 65536 };

static const vyre__lir_loop *loop_of(const ll *e, uint32_t at) {
  return &e->kernel->loops[ll_inst(e, at)->aux];
}

/* Returns true if only the step of the loop sets the counter, once. */
static bool only_step_counts(const ll *e, uint32_t var, uint32_t loop,
                             uint32_t end) {
  uint32_t step = ll_role(e, loop)->mate, count = 0;
  for (uint32_t at = loop; at < end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (inst->op != VYRE__LIR_SET || inst->aux != var) continue;
    if (at < step || count++) return false;
  }
  return count == 1;
}

/* Returns the IF around the only BREAK of the loop, if it is at the top level of
 * the body; or 0. */
static uint32_t only_exit(const ll *e, uint32_t loop, uint32_t end) {
  uint32_t found = 0;
  for (uint32_t at = loop + 1; at < end; at++) {
    if (ll_inst(e, at)->op != VYRE__LIR_BREAK) continue;
    uint32_t parent = ll_role(e, at)->parent, open = parent;
    while (ll_inst(e, open)->op != VYRE__LIR_LOOP)
      open = ll_role(e, open)->parent;
    if (open != loop) continue;
    if (found || ll_inst(e, parent)->op != VYRE__LIR_IF ||
        ll_role(e, parent)->parent != loop) {
      return 0;
    }
    found = parent;
  }
  return found;
}

/* Returns true if the counter is one scalar for all lanes. */
static bool has_counter(const ll *e, const vyre__lir_loop *of) {
  const vyre__sched_var *var = &e->s->vars[of->var];
  return of->is_counted && of->kind == VYRE__LOOP_LT && !of->high_var &&
         of->step && of->step <= MAX_STEP && var->form == VYRE__AS_SCALAR &&
         !var->is_array && !var->has_shadow &&
         e->kernel->vars[of->var].type == VYRE_TYPE_U32 &&
         e->s->r.var_storage[of->var] != VYRE__STORAGE_UNIFORM;
}

/* Returns the test `i < bound` that ends the loop, or 0. */
static vyre__val test_of(const ll *e, const vyre__sched_node *node) {
  uint32_t at = node->begin, end = node->end - 1;
  const vyre__lir_loop *of = loop_of(e, at);
  if (!e->subregion || e->jam || node->mode != VYRE__MODE_UNIFORM ||
      node->group || !has_counter(e, of) ||
      !only_step_counts(e, of->var, at, end)) {
    return 0;
  }
  uint32_t exit = only_exit(e, at, end);
  if (!exit || ll_inst(e, ll_inst(e, exit)->a)->op != VYRE__LIR_NOT) return 0;
  vyre__val test = ll_inst(e, ll_inst(e, exit)->a)->a;
  const vyre__lir_inst *inst = ll_inst(e, test);
  const vyre__lir_inst *counter = ll_inst(e, inst->a);
  bool is_test =
      test > at && test < exit && inst->a > at &&
      inst->op == (of->is_signed ? VYRE__LIR_LT_S : VYRE__LIR_LT_U) &&
      inst->b == of->bound && counter->op == VYRE__LIR_GET &&
      counter->aux == of->var;
  return is_test ? test : 0;
}

static ll_op is_below(ll *e, uint32_t loop, ll_op now, ll_op bound) {
  return ll_def(e, "icmp %s i32 %v, %v",
                loop_of(e, loop)->is_signed ? "slt" : "ult", LL_I32, now,
                LL_I32, bound);
}

bool ll_open_parts(ll *e, const vyre__sched_node *node, ll_parts *parts) {
  const vyre__lir_loop *of = loop_of(e, node->begin);
  vyre__val test = test_of(e, node);
  if (!test || !ll_is_scalar(e, of->bound)) return false;
  uint32_t look = ll_label(e), head = ll_label(e);
  *parts = (ll_parts){.test = e->parts_test,
                      .limit = e->parts_limit,
                      .outer = ll_label(e),
                      .bound = ll_scalar(e, of->bound)};
  ll_open_rounds(e);
  e->parts_test = test;
  e->parts_limit = ll_alloca(e, LL_I32, 1, 4);
  ll_place(e, parts->outer);
  ll_op now = ll_scalar_var(e, of->var), bound = parts->bound;
  ll_op count = ll_def(e, "sub i32 %v, %v", LL_I32, bound, LL_I32, now);
  count = ll_def(e, "call i32 @llvm.umin.i32(i32 %v, i32 %u)", LL_I32, count,
                 (unsigned)(ROUNDS * of->step));
  count = ll_def(e, "select i1 %v, i32 %v, i32 0", LL_I1,
                 is_below(e, node->begin, now, bound), LL_I32, count);
  ll_do(e, "store i32 %v, ptr %v", LL_I32,
        ll_def(e, "add i32 %v, %v", LL_I32, now, LL_I32, count), LL_PTR,
        e->parts_limit);
  ll_op left = ll_def(e, "load i32, ptr %v", LL_PTR, e->rounds);
  left = ll_def(e, "sub i32 %v, %v", LL_I32, left, LL_I32, count);
  ll_do(e, "store i32 %v, ptr %v", LL_I32, left, LL_PTR, e->rounds);
  ll_cond(e, ll_def(e, "icmp slt i32 %v, 0", LL_I32, left), look, head);
  ll_place(e, look);
  ll_poll(e, head);
  ll_place(e, head);
  return true;
}

void ll_test_part(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  ll_op limit = ll_def(e, "load i32, ptr %v", LL_PTR, e->parts_limit);
  ll_give(e, at, LL_SCALAR,
          ll_def(e, "icmp %s i32 %v, %v",
                 inst->op == VYRE__LIR_LT_S ? "slt" : "ult", LL_I32,
                 ll_scalar(e, inst->a), LL_I32, limit));
}

void ll_close_parts(ll *e, const vyre__sched_node *node,
                    const ll_parts *parts) {
  e->parts_test = parts->test;
  e->parts_limit = parts->limit;
  if (!e->is_open) return;
  uint32_t end = ll_label(e);
  ll_op now = ll_scalar_var(e, loop_of(e, node->begin)->var);
  ll_cond(e, is_below(e, node->begin, now, parts->bound), parts->outer, end);
  ll_place(e, end);
}
