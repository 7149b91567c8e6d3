/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits jammed rows (spmd/passes/unroll_jam.c): values that rows share once, all
 * others once per row. */
#include <string.h>

#include "base/memory.h"
#include "codegen/llvm/internal.h"

/* One of the jammed rows. */
typedef struct row_state {
  ll_rep *reps;
  ll_var *vars;
  ll_op y, vector_index;
} row_state;

struct ll_jam {
  const vyre__jam *plan;
  row_state states[VYRE__MAX_JAMMED_ROWS];
  ll_rep *reps; /* the emitter's, saved */
  ll_var *vars;
  ll_op y;
};

ll_jam *ll_make_jam(ll *e, const vyre__jam *plan) {
  size_t count = (size_t)(e->s->r.end - e->s->r.begin) + 1;
  size_t vars = e->kernel->var_count;
  ll_jam *jam = vyre__arena_array(e->arena, 1, sizeof *jam);
  e->no_memory |= !jam;
  if (!jam) return NULL;
  *jam = (ll_jam){.plan = plan};
  for (uint32_t i = 0; i < plan->rows; i++) {
    row_state *state = &jam->states[i];
    state->reps = vyre__arena_array(e->arena, count, sizeof *state->reps);
    state->vars = vyre__arena_array(e->arena, vars, sizeof *state->vars);
    e->no_memory |= !state->reps || (vars && !state->vars);
  }
  return e->no_memory ? NULL : jam;
}

static void enter_row(ll *e, uint32_t i) {
  const row_state *state = &e->jam->states[i];
  e->reps = state->reps;
  e->vars = state->vars;
  e->local[1] = state->y;
  e->vector_index = state->vector_index;
}

/* Arrays belong to the workgroup, whichever row uses them first. */
static void place_arrays(ll *e) {
  const vyre__subregion *subregion =
      &e->s->r.subregions[e->jam->plan->subregion];
  for (uint32_t at = subregion->begin; at < subregion->end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (inst->op != VYRE__LIR_GET && inst->op != VYRE__LIR_SET) continue;
    if (!ll_role(e, at)->is_needed) continue;
    if (e->s->vars[inst->aux].is_array) ll_place_var(e, inst->aux);
  }
}

void ll_begin_jam(ll *e) {
  ll_jam *jam = e->jam;
  size_t count = (size_t)(e->s->r.end - e->s->r.begin) + 1;
  uint32_t vars = e->kernel->var_count;
  uint32_t each = (e->kernel->workgroup[0] + e->width - 1) / e->width;
  place_arrays(e);
  jam->reps = e->reps;
  jam->vars = e->vars;
  jam->y = e->local[1];
  for (uint32_t i = 0; i < jam->plan->rows; i++) {
    row_state *state = &jam->states[i];
    state->y = jam->y;
    state->vector_index = e->vector_index;
    if (i) {
      state->y = ll_def(e, "add nuw i32 %v, %u", LL_I32, jam->y, i);
    }
    if (i && !e->s->is_fused) {
      state->vector_index =
          ll_def(e, "add nuw i32 %v, %u", LL_I32, e->vector_index, i * each);
    }
    memcpy(state->reps, e->reps, count * sizeof *e->reps);
    if (vars) memcpy(state->vars, e->vars, vars * sizeof *e->vars);
    for (uint32_t k = 0; k < vars; k++) {
      bool is_own = !e->s->vars[k].is_array &&
                    e->s->r.var_storage[k] != VYRE__STORAGE_UNIFORM;
      if (is_own) state->vars[k].at = state->vars[k].shadow = (ll_op){0};
    }
  }
  enter_row(e, 0);
}

void ll_end_jam(ll *e) {
  e->reps = e->jam->reps;
  e->vars = e->jam->vars;
  e->local[1] = e->jam->y;
  e->jam = NULL;
}

void ll_each_row(ll *e, uint32_t at, void (*make)(ll *e, uint32_t at)) {
  if (!e->jam) {
    make(e, at);
    return;
  }
  uint32_t slot = at - e->s->r.begin;
  if (e->jam->plan->is_common[slot]) {
    make(e, at);
    for (uint32_t i = 1; i < e->jam->plan->rows; i++) {
      e->jam->states[i].reps[slot] = e->reps[slot];
    }
    return;
  }
  for (uint32_t i = 0; i < e->jam->plan->rows; i++) {
    enter_row(e, i);
    make(e, at);
  }
  enter_row(e, 0);
}

void ll_forget_rows(ll *e, vyre__val v) {
  for (uint32_t i = 0; e->jam && i < e->jam->plan->rows; i++) {
    ll_rep *rep = &e->jam->states[i].reps[v - e->s->r.begin];
    if (rep->is_derived) rep->form = LL_ABSENT;
    if (rep->form != LL_VECTOR || rep->n.kind != LL_NONE) rep->v = (ll_op){0};
  }
}
