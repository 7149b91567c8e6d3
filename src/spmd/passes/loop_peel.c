/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `loop-peel`: a masked loop that lanes leave at its top when a linear
 * value reaches a bound,
 *
 *   for (let k = local_id.x; k < n; k += 64) ..
 *
 * diverges in its last iteration only. All earlier iterations run in a
 * separate loop without masks, as long as lane 0 proves that no lane reaches
 * the bound. That test precedes all side effects of an iteration, so that
 * the first iteration that fails it can start over in the masked loop. */
#include "spmd/schedule_internal.h"

/* if (c) break; */
static bool only_breaks(const vyre__schedule *s, uint32_t at) {
  return is_op(s, at, VYRE__LIR_IF) && is_op(s, at + 1, VYRE__LIR_BREAK) &&
         is_op(s, at + 2, VYRE__LIR_END);
}

static bool ends_dispatch(const vyre__schedule *s, uint32_t at) {
  return is_op(s, at, VYRE__LIR_IF) &&
         is_op(s, at + 1, VYRE__LIR_OUT_OF_FUEL) &&
         info_at(s, at)->mate == vyre__end_of(&s->r, at);
}

static bool counts(const vyre__schedule *s, vyre__val v) {
  vyre__lane_shape shape = shape_at(s, v);
  return shape.kind == VYRE__LANE_SHAPE_LINEAR && shape.stride == 1;
}

/* Returns true if a test of lane 0 can evaluate @p c. */
static bool is_end(const vyre__schedule *s, uint32_t subregion, vyre__val c) {
  while (is_op(s, c, VYRE__LIR_NOT) && info_at(s, c)->subregion == subregion) {
    c = inst_at(s, c)->a;
  }
  const vyre__lir_inst *inst = inst_at(s, c);
  if (inst->op < VYRE__LIR_LT_U || inst->op > VYRE__LIR_LE_S) return false;
  if (info_at(s, c)->subregion != subregion ||
      inst_at(s, inst->a)->type != VYRE_TYPE_U32) {
    return false;
  }
  return (counts(s, inst->a) &&
          vyre__lane_shape_is_uniform(shape_at(s, inst->b))) ||
         (counts(s, inst->b) &&
          vyre__lane_shape_is_uniform(shape_at(s, inst->a)));
}

/* Returns the SET of variable @p var in [begin, end) if there is one only, or
 * 0. */
static uint32_t only_set(const vyre__schedule *s, uint32_t var, uint32_t begin,
                         uint32_t end) {
  uint32_t found = 0;
  for (uint32_t at = begin; at < end; at++) {
    if (!is_op(s, at, VYRE__LIR_SET) || inst_at(s, at)->aux != var) continue;
    if (found) return 0;
    found = at;
  }
  return found;
}

/* Returns true if variable @p var is set to true right before @p loop. */
static bool starts_true(const vyre__schedule *s, uint32_t var, uint32_t loop) {
  for (uint32_t at = loop - 1; at > s->r.begin; at--) {
    const vyre__lir_inst *inst = inst_at(s, at);
    if (inst->op != VYRE__LIR_SET) {
      if (!(flags_at(s, at) & VYRE__LIRF_PURE)) return false;
      continue;
    }
    if (inst->aux != var) continue;
    const vyre__lir_inst *from = inst_at(s, inst->a);
    return from->op == VYRE__LIR_CONST && from->c;
  }
  return false;
}

/* Returns the SET of the flag `more` if @p c tests that flag at the top of @p
 * loop, and the flag only detects that the counter would wrap:
 *
 *     more = i <= MAX - step; i += step;
 *
 * Returns 0 for any other test. If the bound of the loop is at most
 * MAX - step + 1, the flag stays true; a test before the loop checks that. */
static uint32_t wrap_test(const vyre__schedule *s, uint32_t loop, vyre__val c) {
  const vyre__lir_loop *of = &s->kernel->loops[inst_at(s, loop)->aux];
  uint32_t end = vyre__end_of(&s->r, loop), step = info_at(s, loop)->mate;
  while (is_op(s, c, VYRE__LIR_NOT)) c = inst_at(s, c)->a;
  if (!is_op(s, c, VYRE__LIR_GET) || !of->is_counted || of->high_var ||
      of->kind != VYRE__LOOP_LT) {
    return 0;
  }
  uint32_t var = inst_at(s, c)->aux, set = only_set(s, var, loop, end);
  if (set < step || !starts_true(s, var, loop)) return 0;
  const vyre__lir_inst *test = inst_at(s, inst_at(s, set)->a);
  const vyre__lir_inst *counter = inst_at(s, test->a);
  bool is_limit = test->op == (of->is_signed ? VYRE__LIR_LE_S : VYRE__LIR_LE_U);
  if (!is_limit || inst_at(s, test->b)->op != VYRE__LIR_CONST) return 0;
  uint32_t next = only_set(s, of->var, loop, end);
  bool counts_up = counter->op == VYRE__LIR_GET && counter->aux == of->var &&
                   counter->type == VYRE_TYPE_U32 && next >= step &&
                   test->a < next;
  bool is_same = vyre__lane_shape_is_uniform(shape_at(s, of->bound));
  return counts_up && is_same ? set : 0;
}

/* Returns the position after the last test at the top of the body, or 0. */
static uint32_t body_of(const vyre__schedule *s, uint32_t loop,
                        uint32_t *wrap) {
  uint32_t subregion = info_at(s, loop)->subregion;
  uint32_t at = loop + 1, step = info_at(s, loop)->mate, body = 0;
  uint16_t harmless = VYRE__LIRF_PURE | VYRE__LIRF_READS;
  bool has_end = false;
  while (at < step) {
    const vyre__lir_inst *inst = inst_at(s, at);
    if (only_breaks(s, at)) {
      bool is_varying = shape_at(s, inst->a).kind >= VYRE__LANE_SHAPE_LINEAR;
      uint32_t set = is_varying ? wrap_test(s, loop, inst->a) : 0;
      if (set) {
        *wrap = set;
        is_varying = false;
      }
      if (is_varying && !is_end(s, subregion, inst->a)) break;
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
static bool is_left(const vyre__schedule *s, uint32_t loop, uint32_t begin,
                    uint32_t end) {
  for (uint32_t at = begin; at < end; at++) {
    if (ends_dispatch(s, at)) {
      at = vyre__end_of(&s->r, at);
      continue;
    }
    if (!(vyre__lir_ops[inst_at(s, at)->op].flags & VYRE__LIRF_JUMPS)) continue;
    if (is_op(s, at, VYRE__LIR_EXIT)) return true;
    uint32_t open = info_at(s, at)->parent;
    while (!is_op(s, open, VYRE__LIR_LOOP)) open = info_at(s, open)->parent;
    if (open == loop) return true;
  }
  return false;
}

static void peel_all(vyre__schedule *s, vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    peel_all(s, node->body);
    peel_all(s, node->other);
    if (node->kind != VYRE__SCHED_LOOP) continue;
    uint32_t loop = node->begin;
    const vyre__sched_note *note = note_at(s, loop);
    if (!note->parts || note->continues) continue;
    uint32_t wrap = 0, body = body_of(s, loop, &wrap);
    if (!body || is_left(s, loop, body, node->end - 1)) continue;
    node->peel = body;
    node->wrap = wrap;
  }
}

vyre_code vyre__schedule_loop_peel(vyre__schedule *s) {
  if (s->width > 1) peel_all(s, s->root);
  return VYRE_OK;
}
