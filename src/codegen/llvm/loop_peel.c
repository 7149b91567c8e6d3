/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loop peeling: a masked loop that lanes leave at its top when a linear
 * value reaches a bound,
 *
 *   for (let k = local_id.x; k < n; k += 64) ..
 *
 * diverges in its last iteration only. All earlier iterations run in a
 * separate loop without masks, as long as lane 0 proves that no lane reaches
 * the bound. That test precedes all side effects of an iteration, so that
 * the first iteration that fails it can start over in the masked loop. */
#include "codegen/llvm/internal.h"

enum { MAX_COPIES = 3000 }; /* instructions */

static bool is_op(const ll *e, uint32_t at, vyre__lir_op op) {
  return ll_inst(e, at)->op == op;
}

/* if (c) break; */
static bool only_breaks(const ll *e, uint32_t at) {
  return is_op(e, at, VYRE__LIR_IF) && is_op(e, at + 1, VYRE__LIR_BREAK) &&
         is_op(e, at + 2, VYRE__LIR_END);
}

static bool ends_dispatch(const ll *e, uint32_t at) {
  return is_op(e, at, VYRE__LIR_IF) &&
         is_op(e, at + 1, VYRE__LIR_OUT_OF_FUEL) &&
         ll_role(e, at)->mate == vyre__end_of(&e->r, at);
}

static bool counts(const ll *e, vyre__val v) {
  vyre__lane_shape shape = ll_shape(e, v);
  return shape.kind == VYRE__LANE_SHAPE_LINEAR && shape.stride == 1;
}

/* Returns true if ll_test() can evaluate @p c. */
static bool is_end(const ll *e, vyre__val c) {
  while (is_op(e, c, VYRE__LIR_NOT) && ll_role(e, c)->subregion == e->piece) {
    c = ll_inst(e, c)->a;
  }
  const vyre__lir_inst *inst = ll_inst(e, c);
  if (inst->op < VYRE__LIR_LT_U || inst->op > VYRE__LIR_LE_S) return false;
  if (ll_role(e, c)->subregion != e->piece ||
      ll_inst(e, inst->a)->type != VYRE_TYPE_U32) {
    return false;
  }
  return (counts(e, inst->a) &&
          vyre__lane_shape_is_uniform(ll_shape(e, inst->b))) ||
         (counts(e, inst->b) &&
          vyre__lane_shape_is_uniform(ll_shape(e, inst->a)));
}

/* Returns the position after the last test at the top of the body, or 0. */
static uint32_t body_of(const ll *e, uint32_t loop) {
  uint32_t at = loop + 1, step = ll_role(e, loop)->mate, body = 0;
  uint16_t harmless = VYRE__LIRF_PURE | VYRE__LIRF_READS;
  bool has_end = false;
  while (at < step) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (only_breaks(e, at)) {
      bool is_varying = ll_shape(e, inst->a).kind >= VYRE__LANE_SHAPE_LINEAR;
      if (is_varying && !is_end(e, inst->a)) break;
      has_end |= is_varying;
      at += 3;
      body = at;
      continue;
    }
    if (inst->op != VYRE__LIR_GET &&
        (!(vyre__lir_ops[inst->op].flags & harmless) ||
         vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS)) {
      break;
    }
    at++;
  }
  return has_end ? body : 0;
}

/* Returns true if a lane may leave the iteration of @p loop in [begin, end). */
static bool is_left(const ll *e, uint32_t loop, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end; at++) {
    if (ends_dispatch(e, at)) {
      at = vyre__end_of(&e->r, at);
      continue;
    }
    if (!(vyre__lir_ops[ll_inst(e, at)->op].flags & VYRE__LIRF_JUMPS)) continue;
    if (is_op(e, at, VYRE__LIR_EXIT)) return true;
    uint32_t open = ll_role(e, at)->parent;
    while (!is_op(e, open, VYRE__LIR_LOOP)) open = ll_role(e, open)->parent;
    if (open == loop) return true;
  }
  return false;
}

static void ask_top(ll *e, uint32_t begin, uint32_t end, uint32_t others) {
  for (uint32_t at = begin; at < end; at++) {
    if (!is_op(e, at, VYRE__LIR_IF)) {
      ll_block(e, at, at + 1);
      continue;
    }
    uint32_t stay = ll_label(e);
    vyre__val condition = ll_inst(e, at)->a;
    ll_op test = ll_test(e, condition, false);
    if (test.kind == LL_NONE) test = ll_all(e, ll_mask_of(e, condition, true));
    ll_cond(e, test, stay, others);
    ll_place(e, stay);
    at += 2;
  }
}

void ll_steady_rounds(ll *e, uint32_t loop) {
  const ll_note *note = ll_note_of(e, loop);
  uint32_t step = ll_role(e, loop)->mate, end = vyre__end_of(&e->r, loop);
  if (e->width == 1 || !ll_is_all_on(e) || !note->parts || note->continues ||
      (end - loop) * e->copies >= MAX_COPIES) {
    return;
  }
  uint32_t body = body_of(e, loop);
  if (!body || is_left(e, loop, body, end)) return;
  uint32_t head = ll_label(e), others = ll_label(e), outer = 0;
  ll_op counter = {0};
  ll_scope scope = {.up = e->scope, .kind = LL_SCOPE_LOOP, .at = loop};
  e->scope = &scope;
  e->copies *= 2;
  if (note->is_long) ll_open_long(e, &counter, &outer);
  ll_place(e, head);
  uint32_t mark = ll_enter(e);
  ask_top(e, loop + 1, body, others);
  ll_block(e, body, step);
  ll_block(e, step + 1, end);
  if (note->is_long && e->is_open) ll_close_long(e, counter, head, outer);
  ll_br(e, head);
  ll_leave(e, mark);
  e->copies /= 2;
  e->scope = scope.up;
  ll_place(e, others);
}
