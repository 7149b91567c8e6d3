/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes statements for all lanes at once. A statement gets the lanes that
 * run it, and removes those that do not continue after it because of a break,
 * continue or return. */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/clock.h"
#include "base/status.h"
#include "hal/host_plan.h"

void ref_fail(ref_machine *m, vyre_code code) {
  if (m->code == VYRE_OK) m->code = code;
}

uint32_t ref_mask_count(const ref_machine *m, const uint64_t *mask) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->lanes; i++) count += (uint32_t)(mask[i] & 1);
  return count;
}

static void assign(const ref_machine *m, uint64_t *to, const uint64_t *value,
                   const ref_mask *mask) {
  if (to == value) return;
  if (mask->count == m->lanes) {
    memcpy(to, value, m->lanes * sizeof *to);
    return;
  }
  for (uint32_t i = 0; i < m->lanes; i++) {
    to[i] = (value[i] & mask->lane[i]) | (to[i] & ~mask->lane[i]);
  }
}

/* Moves all lanes of @p mask to @p set. */
static void leave(const ref_machine *m, ref_mask *mask, uint64_t *set) {
  for (uint32_t i = 0; i < m->lanes; i++) {
    if (set) set[i] |= mask->lane[i];
    mask->lane[i] = 0;
  }
  mask->count = 0;
}

static void exec_block(ref_machine *m, const vyre__node *node, ref_mask *mask) {
  const uint32_t *list = m->program->lists + node->a;
  for (uint32_t i = 0; i < node->b; i++) {
    if (mask->count == 0 || m->code != VYRE_OK) return;
    ref_exec(m, list[i], mask);
  }
}

static void exec_if(ref_machine *m, const vyre__node *node, ref_mask *mask) {
  uint32_t base = m->top;
  const uint64_t *condition = ref_eval(m, node->a, mask);
  m->top = base;
  ref_mask yes = {ref_push(m), 0}, no = {ref_push(m), 0};
  for (uint32_t i = 0; i < m->lanes; i++) {
    uint64_t wanted = 0 - condition[i]; /* condition may alias yes.lane */
    yes.lane[i] = mask->lane[i] & wanted;
    no.lane[i] = mask->lane[i] & ~wanted;
    yes.count += (uint32_t)(yes.lane[i] & 1);
  }
  no.count = mask->count - yes.count;
  if (yes.count > 0) ref_exec(m, node->b, &yes);
  if (no.count > 0 && node->c) ref_exec(m, node->c, &no);
  mask->count = yes.count + no.count;
  for (uint32_t i = 0; i < m->lanes; i++) {
    mask->lane[i] = yes.lane[i] | no.lane[i];
  }
  m->top = base;
}

/* --- loops -----------------------------------------------------------------*/

enum { CLOCK_EVERY = 64 };

static void fail_fuel(ref_machine *m, vyre__id id) {
  vyre__source_loc loc = vyre__source_loc_of(m->program, id);
  unsigned long long max = m->launch->max_loop_iterations;
  ref_fail(m,
           VYRE_FAIL_WITH(
               m->st, VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL, NULL,
               VYRE_NUMBERS({"line", loc.line}, {"max_iterations", max}),
               "let the loop end, or raise max_loop_iterations of the dispatch",
               "kernel '%.60s': the loop at line %u:%u went past %llu "
               "iterations of one invocation",
               m->program->name, loc.line, loc.column, max));
}

bool ref_in_time(ref_machine *m) {
  if (!m->launch->deadline_ns || ++m->ticks % CLOCK_EVERY != 0) return true;
  if (vyre__clock_ns() <= m->launch->deadline_ns) return true;
  ref_fail(m, vyre__timed_out(&m->pipeline->base, m->launch, m->st));
  return false;
}

bool ref_loop_tick(ref_machine *m, vyre__id id, const uint64_t *active) {
  for (uint32_t i = 0; i < m->lanes; i++) m->fuel[i] += active[i] & 1;
  /* No lane has more iterations than all lanes together. */
  if (++m->iterations > m->launch->max_loop_iterations) {
    for (uint32_t i = 0; i < m->lanes; i++) {
      if (m->fuel[i] <= m->launch->max_loop_iterations) continue;
      fail_fuel(m, id);
      return false;
    }
  }
  return ref_in_time(m);
}

/* Runs the body once for all active lanes. They stay active unless they break
 * or return. */
static void run_body(ref_machine *m, vyre__id body, ref_mask *active,
                     ref_mask *inside, uint64_t *continued) {
  size_t bytes = m->lanes * sizeof(uint64_t);
  memcpy(inside->lane, active->lane, bytes);
  inside->count = active->count;
  memset(continued, 0, bytes);
  ref_loop outer = m->loop;
  m->loop.continued = continued;
  ref_exec(m, body, inside);
  m->loop = outer;
  active->count = 0;
  for (uint32_t i = 0; i < m->lanes; i++) {
    active->lane[i] = inside->lane[i] | continued[i];
    active->count += (uint32_t)(active->lane[i] & 1);
  }
}

/* After a loop, all lanes that entered it continue, except those that
 * returned. */
static void after_loop(const ref_machine *m, ref_mask *mask) {
  mask->count = 0;
  for (uint32_t i = 0; i < m->lanes; i++) {
    mask->lane[i] &= ~m->activation.returned[i];
    mask->count += (uint32_t)(mask->lane[i] & 1);
  }
}

static void exec_while(ref_machine *m, vyre__id id, ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  uint32_t base = m->top;
  ref_mask active = {ref_push(m), mask->count};
  ref_mask inside = {ref_push(m), 0};
  uint64_t *continued = ref_push(m);
  memcpy(active.lane, mask->lane, m->lanes * sizeof(uint64_t));
  while (active.count > 0 && m->code == VYRE_OK) {
    uint32_t top = m->top;
    const uint64_t *condition = ref_eval(m, node->a, &active);
    m->top = top;
    active.count = 0;
    for (uint32_t i = 0; i < m->lanes; i++) {
      active.lane[i] &= 0 - condition[i];
      active.count += (uint32_t)(active.lane[i] & 1);
    }
    if (active.count == 0 || !ref_loop_tick(m, id, active.lane)) break;
    run_body(m, node->b, &active, &inside, continued);
  }
  after_loop(m, mask);
  m->top = base;
}

vyre__op ref_loop_test(vyre__loop loop) {
  static const uint8_t tests[] = {[VYRE__LOOP_LT] = VYRE__OP_LT,
                                  [VYRE__LOOP_LE] = VYRE__OP_LE,
                                  [VYRE__LOOP_GT] = VYRE__OP_GT,
                                  [VYRE__LOOP_GE] = VYRE__OP_GE};
  return tests[loop];
}

/* Removes the lanes whose variable is past the bound. @p scratch: a free
 * vector. */
static void test_bound(const ref_machine *m, const vyre__node *node,
                       const uint64_t *bound, ref_mask *active,
                       uint64_t *scratch) {
  vyre_type type = m->nodes[m->program->lists[node->b]].type;
  const uint64_t *args[3] = {ref_local(m, node->a), bound, NULL};
  ref_lanes(ref_loop_test(node->aux), type, VYRE_TYPE_BOOL, m->lanes, args,
            scratch);
  active->count = 0;
  for (uint32_t i = 0; i < m->lanes; i++) {
    active->lane[i] &= 0 - scratch[i];
    active->count += (uint32_t)(active->lane[i] & 1);
  }
}

/* Steps the variable of each active lane. A lane whose variable would overflow
 * becomes inactive. */
#define STEP_LANES(T, U)                                             \
  for (uint32_t i = 0; i < lanes; i++) {                             \
    T now = (T)variable[i], next;                                    \
    bool fits = down ? !__builtin_sub_overflow(now, (T)step, &next)  \
                     : !__builtin_add_overflow(now, (T)step, &next); \
    active[i] &= 0 - (uint64_t)fits;                                 \
    variable[i] = active[i] ? (U)next : variable[i];                 \
  }                                                                  \
  return

void ref_loop_step(vyre_type type, vyre__loop loop, uint64_t step,
                   uint32_t lanes, uint64_t *variable, uint64_t *active) {
  bool down = loop == VYRE__LOOP_GT || loop == VYRE__LOOP_GE;
  switch (type) {
    case VYRE_TYPE_U32:
      STEP_LANES(uint32_t, uint32_t);
    case VYRE_TYPE_I32:
      STEP_LANES(int32_t, uint32_t);
    case VYRE_TYPE_U64:
      STEP_LANES(uint64_t, uint64_t);
    default:
      STEP_LANES(int64_t, uint64_t);
  }
}

static void advance(const ref_machine *m, const vyre__node *node,
                    ref_mask *active) {
  const uint32_t *list = m->program->lists + node->b;
  ref_loop_step(m->nodes[list[0]].type, node->aux,
                vyre__literal(&m->nodes[list[2]]), m->lanes,
                ref_local(m, node->a), active->lane);
}

static void exec_for(ref_machine *m, vyre__id id, ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  const uint32_t *list = m->program->lists + node->b;
  size_t bytes = m->lanes * sizeof(uint64_t);
  uint32_t base = m->top;
  /* The first value is stored only after the bound is evaluated: the bound must
   * not see it. */
  const uint64_t *first = ref_eval(m, list[0], mask);
  m->top = base + 1;
  const uint64_t *value = ref_eval(m, list[1], mask);
  assign(m, ref_local(m, node->a), first, mask);
  m->top = base;
  uint64_t *bound = ref_push(m);
  memmove(bound, value, bytes);
  ref_mask active = {ref_push(m), mask->count};
  ref_mask inside = {ref_push(m), 0};
  uint64_t *continued = ref_push(m);
  memcpy(active.lane, mask->lane, bytes);
  test_bound(m, node, bound, &active, continued);
  while (active.count > 0 && m->code == VYRE_OK) {
    if (!ref_loop_tick(m, id, active.lane)) break;
    run_body(m, list[3], &active, &inside, continued);
    advance(m, node, &active);
    test_bound(m, node, bound, &active, continued);
  }
  after_loop(m, mask);
  m->top = base;
}

/* --- other statements ------------------------------------------------------*/

static void exec_return(ref_machine *m, const vyre__node *node,
                        ref_mask *mask) {
  uint32_t base = m->top;
  if (node->a) {
    const uint64_t *value = ref_eval(m, node->a, mask);
    assign(m, m->activation.result, value, mask);
  }
  m->top = base;
  leave(m, mask, m->activation.returned);
}

static void exec_store(ref_machine *m, vyre__id id, const ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  uint32_t base = m->top;
  const uint64_t *index = ref_eval(m, node->b, mask);
  m->top = base + 1;
  const uint64_t *value = ref_eval(m, node->c, mask);
  ref_store(m, id, index, value, mask);
  m->top = base;
}

static void exec_set(ref_machine *m, const vyre__node *node,
                     const ref_mask *mask) {
  uint32_t base = m->top;
  const uint64_t *value = ref_eval(m, node->b, mask);
  assign(m, ref_local(m, node->a), value, mask);
  m->top = base;
}

static void exec_eval(ref_machine *m, const vyre__node *node,
                      const ref_mask *mask) {
  uint32_t base = m->top;
  (void)ref_eval(m, node->a, mask);
  m->top = base;
}

void ref_exec(ref_machine *m, vyre__id id, ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  switch (node->op) {
    case VYRE__OP_BLOCK:
      exec_block(m, node, mask);
      return;
    case VYRE__OP_LET:
    case VYRE__OP_ASSIGN:
      exec_set(m, node, mask);
      return;
    case VYRE__OP_STORE:
      exec_store(m, id, mask);
      return;
    case VYRE__OP_IF:
      exec_if(m, node, mask);
      return;
    case VYRE__OP_FOR:
      exec_for(m, id, mask);
      return;
    case VYRE__OP_WHILE:
      exec_while(m, id, mask);
      return;
    case VYRE__OP_BREAK:
      leave(m, mask, NULL);
      return;
    case VYRE__OP_CONTINUE:
      leave(m, mask, m->loop.continued);
      return;
    case VYRE__OP_RETURN:
      exec_return(m, node, mask);
      return;
    case VYRE__OP_BARRIER: /* in lockstep, all lanes are here already */
      m->frame->epoch++;
      return;
    case VYRE__OP_PRINT:
      ref_print(m, id, mask);
      return;
    default: /* EVAL; grid barriers are handled in grid.c */
      exec_eval(m, node, mask);
      return;
  }
}
