/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits the code for full workgroups (spmd/passes/full_workgroups.c) before the code
 * for all others. */
#include <string.h>

#include "base/memory.h"
#include "codegen/llvm/internal.h"

/* Both copies have their own arrays. */
static void run_full(ll *e, const vyre__sched_node *node) {
  size_t vars = e->kernel->var_count, insts = e->s->r.end - e->s->r.begin + 1;
  ll_var *old_vars = vyre__arena_array(e->arena, vars, sizeof *old_vars);
  ll_op *old_kept = vyre__arena_array(e->arena, insts, sizeof *old_kept);
  if (!old_vars || !old_kept) {
    e->no_memory = true;
    return;
  }
  memcpy(old_vars, e->vars, vars * sizeof *old_vars);
  memcpy(old_kept, e->kept, insts * sizeof *old_kept);
  uint32_t mark = ll_enter(e);
  e->is_full_group = true;
  ll_clear_arrays(e);
  ll_group_nodes(e, node->body);
  ll_br(e, e->next_group);
  e->is_full_group = false;
  ll_leave(e, mark);
  memcpy(e->vars, old_vars, vars * sizeof *old_vars);
  memcpy(e->kept, old_kept, insts * sizeof *old_kept);
}

/* Emits the test whether a workgroup is full. */
static ll_op test_full(ll *e) {
  ll_op test = {0};
  for (uint32_t i = 1; i < e->s->r.subregion_count; i++) {
    if (!e->s->splits[i] || !vyre__row_by_group(e->s, e->s->splits[i])) {
      continue;
    }
    ll_op one = ll_row_is_full(e, e->s->splits[i]);
    test = test.kind == LL_NONE
               ? one
               : ll_def(e, "and i1 %v, %v", LL_I1, test, LL_I1, one);
  }
  return test;
}

void ll_run_group(ll *e) {
  const vyre__sched_node *node = vyre__sched_groups(e->s)->body;
  if (node && node->kind == VYRE__SCHED_FULL_GROUPS) {
    uint32_t full = ll_label(e), rest = ll_label(e);
    ll_branch_likely(e, test_full(e), full, rest);
    ll_place(e, full);
    run_full(e, node);
    ll_place(e, rest);
    node = node->other;
  }
  ll_clear_arrays(e);
  ll_group_nodes(e, node);
}
