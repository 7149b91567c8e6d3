/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exits: what continue, break, return and running out of fuel do to masks.
 *
 * A vector of invocations runs a subregion under three kinds of masks:
 *
 *   e->mask       lanes that run the current instruction
 *   scope->act    lanes still in the current iteration of a loop; in the scope of
 *                 the subregion: lanes still in the subregion
 *   scope->live   lanes still in a loop
 *
 * An exit that the lanes M take, M being e->mask, removes them from these masks:
 *
 *   exit       loops it crosses   the loop it is for   the subregion
 *   continue   -                  act                  -
 *   break      -                  act, live            -
 *   return     act, live          -                    act; later subregions: done
 *   fuel       ends the dispatch: no mask is read after it
 *
 * A break or continue of a loop of the workgroup leaves the subregion and counts as a
 * return here.
 *
 * No lane of M runs what follows. Execution resumes where lanes wait; scopes are
 * asked from the inside out:
 *
 *   divergent if   always: its other arm, or its end
 *   loop           at its step, if M or other lanes left this iteration by continue;
 *                  at its end, if M left by break, or if the loop has `live`;
 *                  otherwise no lane waits here: all lanes of the loop returned
 *   subregion      at its end
 *
 * A loop with `live` is resumed at its end even if no lane may wait there. Its end
 * removes the lanes that returned, and resumes further out if none is left;
 * spmd/exits.c therefore notes `drops` for each such loop that a return crosses.
 *
 * These rules hold for uniform and divergent exits. The difference only decides which
 * masks exist: a loop that all lanes leave together has no `live`, and a loop
 * without divergent exits has neither mask. That a loop has a mask does not mean that
 * lanes wait: the mask may be there for an exit that comes later in the iteration. */
#include "codegen/llvm/internal.h"

enum { MASK = LL_I32 | LL_VEC };

/* The table above. Fuel has no row, because it needs no mask. */
static const struct exit_rule {
  bool
      clears_live; /* in addition to `act`: the lanes start no further iteration */
  bool
      crosses_loops; /* up to the subregion; otherwise it targets the innermost loop */
  bool resumes_at_step; /* M itself continues there */
  bool resumes_at_end;
} exit_rules[] = {
    [VYRE__EXIT_CONTINUE] = {.resumes_at_step = true},
    [VYRE__EXIT_BREAK] = {.clears_live = true, .resumes_at_end = true},
    [VYRE__EXIT_RETURN] = {.clears_live = true, .crosses_loops = true},
};

/* --- removing lanes ---------------------------------------------------------------*/

ll_scope *ll_iteration(const ll *e) {
  ll_scope *scope = e->scope;
  while (scope->kind == LL_SCOPE_IF) scope = scope->up;
  return scope;
}

ll_op ll_load_mask(ll *e, ll_op at) {
  return ll_def(e, "load %t, ptr %v", MASK, LL_PTR, at);
}

void ll_store_mask(ll *e, ll_op mask, ll_op at) {
  ll_do(e, "store %o, ptr %v", MASK, mask, LL_PTR, at);
}

static void clear_lanes(ll *e, ll_op at, ll_op mask) {
  if (mask.kind == LL_CONST) {
    ll_store_mask(e, ll_const(0), at);
  } else {
    ll_store_mask(e, ll_and_not(e, ll_load_mask(e, at), mask), at);
  }
}

static void mark_done(ll *e) {
  ll_op at = ll_element(e, e->done, MASK);
  if (e->width == 1 || ll_is_all_on(e)) {
    ll_store_mask(e, ll_const(UINT32_MAX), at);
    return;
  }
  ll_op all =
      ll_def(e, "or %o, %v", MASK, ll_load_mask(e, at), MASK, e->mask.lanes);
  ll_store_mask(e, all, at);
}

static void remove_lanes(ll *e, uint32_t at, vyre__exit_kind exit) {
  const struct exit_rule *rule = &exit_rules[exit];
  ll_op mask = ll_mask_vector(e);
  if (rule->crosses_loops && ll_role(e, at)->sets_done) mark_done(e);
  for (ll_scope *scope = ll_iteration(e);; scope = scope->up) {
    if (scope->kind == LL_SCOPE_IF) continue;
    if (scope->has_act) clear_lanes(e, scope->act, mask);
    if (scope->has_live && rule->clears_live) {
      clear_lanes(e, scope->live, mask);
    }
    if (!rule->crosses_loops || scope->kind == LL_SCOPE_REGION) return;
  }
}

/* --- where execution resumes ------------------------------------------------------*/

static uint32_t use(uint32_t label, bool *is_used) {
  *is_used = true;
  return label;
}

/* Returns the label where execution resumes after @p exit of all lanes that are
 * on. VYRE__EXIT_RETURN also stands for lanes that left by different exits, as it asks
 * every scope. */
static uint32_t resume_after(ll_scope *scope, vyre__exit_kind exit) {
  const struct exit_rule *rule = &exit_rules[exit];
  for (; scope->kind == LL_SCOPE_LOOP; scope = scope->up) {
    bool all_at_step = scope->lanes_at_step && !scope->has_live;
    if (rule->resumes_at_step || all_at_step) {
      return use(scope->step, &scope->step_used);
    }
    if (scope->lanes_at_step) return use(scope->check, &scope->check_used);
    if (rule->resumes_at_end || scope->has_live) break;
  }
  return use(scope->end, &scope->end_used);
}

uint32_t ll_resume(ll *e) {
  return resume_after(e->scope, VYRE__EXIT_RETURN);
}

void ll_exit_some(ll *e, uint32_t at) {
  vyre__exit_kind exit = vyre__exit_kind_of(e->s, at);
  remove_lanes(e, at, exit);
  if (exit == VYRE__EXIT_CONTINUE) ll_iteration(e)->lanes_at_step = true;
}

void ll_exit_all(ll *e, uint32_t at) {
  vyre__exit_kind exit = vyre__exit_kind_of(e->s, at);
  if (e->scope->kind == LL_SCOPE_IF) { /* other lanes wait at its end */
    ll_exit_some(e, at);
  } else {
    remove_lanes(e, at, exit);
  }
  ll_br(e, resume_after(e->scope, exit));
}
