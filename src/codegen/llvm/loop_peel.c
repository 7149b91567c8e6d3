/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits peeled loops (spmd/passes/loop_peel.c): iterations that no lane leaves, without
 * masks, before the masked loop. */
#include "codegen/llvm/internal.h"

enum { MAX_COPIES = 3000 }; /* instructions */

/* Returns true if IF @p at tests the flag of e->unused_set, which is true in
 * all peeled iterations. */
static bool is_unused(const ll *e, uint32_t at) {
  vyre__val c = ll_inst(e, at)->a;
  if (!e->unused_set) return false;
  while (ll_inst(e, c)->op == VYRE__LIR_NOT) c = ll_inst(e, c)->a;
  return ll_inst(e, c)->op == VYRE__LIR_GET &&
         ll_inst(e, c)->aux == ll_inst(e, e->unused_set)->aux;
}

/* Branches to @p others if the counter may wrap before it reaches the bound.
 * Otherwise the flag for that is not needed in peeled iterations. */
static void ask_wrap(ll *e, const vyre__sched_node *node, uint32_t others) {
  const vyre__lir_loop *of = &e->kernel->loops[ll_inst(e, node->begin)->aux];
  if (!node->wrap || !ll_is_scalar(e, of->bound)) return;
  const vyre__lir_inst *test = ll_inst(e, ll_inst(e, node->wrap)->a);
  uint32_t peeled = ll_label(e);
  e->unused_set = node->wrap;
  ll_cond(e,
          ll_def(e, "icmp %s i32 %v, %v", of->is_signed ? "sgt" : "ugt", LL_I32,
                 ll_scalar(e, of->bound), LL_I32,
                 ll_const((ll_inst(e, test->b)->c + 1) & UINT32_MAX)),
          others, peeled);
  ll_place(e, peeled);
}

/* Emits the nodes of @p first that end at @p end, with a branch to @p others
 * instead of each break. Returns the next node. */
static const vyre__sched_node *ask_top(ll *e, const vyre__sched_node *first,
                                       uint32_t end, uint32_t others) {
  const vyre__sched_node *node = first;
  for (; node && node->begin < end; node = node->next) {
    if (node->kind != VYRE__SCHED_IF) {
      ll_code(e, node->begin, node->end);
      continue;
    }
    if (is_unused(e, node->begin)) continue;
    uint32_t stay = ll_label(e);
    vyre__val condition = ll_inst(e, node->begin)->a;
    ll_op test = ll_test(e, condition, false);
    if (test.kind == LL_NONE) test = ll_all(e, ll_mask_of(e, condition, true));
    ll_cond(e, test, stay, others);
    ll_place(e, stay);
  }
  return node;
}

void ll_peeled_iterations(ll *e, const vyre__sched_node *node) {
  uint32_t loop = node->begin, end = node->end - 1;
  const vyre__sched_note *note = ll_note_of(e, loop);
  if (!node->peel || !ll_is_all_on(e) ||
      (end - loop) * e->copies >= MAX_COPIES) {
    return;
  }
  uint32_t head = ll_label(e), others = ll_label(e), outer = 0;
  uint32_t unused_before = e->unused_set;
  ll_op counter = {0};
  ll_scope scope = {.up = e->scope, .kind = LL_SCOPE_LOOP, .at = loop};
  e->scope = &scope;
  e->copies *= 2;
  e->unused_set = 0;
  ask_wrap(e, node, others);
  if (note->is_long) ll_open_long(e, &counter, &outer);
  ll_place(e, head);
  uint32_t mark = ll_enter(e);
  ll_nodes(e, ask_top(e, node->body, node->peel, others));
  ll_nodes(e, node->other);
  if (note->is_long && e->is_open) ll_close_long(e, counter, head, outer);
  ll_br(e, head);
  ll_leave(e, mark);
  e->copies /= 2;
  e->unused_set = unused_before;
  e->scope = scope.up;
  ll_place(e, others);
}
