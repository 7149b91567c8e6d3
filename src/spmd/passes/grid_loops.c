/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stride loops of any first value and distance,
 *
 *     i = global_id.x;
 *     while (i < n) { ..; i += 64 * grid_size.x; }
 *
 * become loops of the workgroup like those of stride_loops.c. Their counter may
 * wrap at 2^32, so the original loop remains for numbers that are too large:
 *
 *     if (n, the distance and the first value are below 2^31, and the distance
 *         is not below the size of the workgroup) {
 *         for (base = first value of local_id.x 0; base < n; base += distance) {
 *             if (base + local_id.x < n) ..
 *             barrier
 *         }
 *     } else { the original loop }
 *
 * An invocation that stops then stays behind: the next base is at least as large
 * as its last number, and not below n. */
#include "base/memory.h"
#include "base/status.h"
#include "spmd/lir_edit.h"
#include "spmd/passes/loop_interchange.h"
#include "spmd/schedule.h"

enum {
  MAX_DEPTH = 16,
  MAX_LENGTH = 400, /* instructions of the loop, which is copied */
  MAX_KEPT = 5,     /* additional values that live across iterations */
  LARGEST = 0x7FFF0000,
};

typedef struct grid_loop {
  uint32_t at, step, end; /* LOOP, STEP, END */
  uint32_t body;          /* first instruction after the tests at its top */
  uint32_t var;           /* counter */
  uint32_t advance;       /* SET that adds the distance */
  vyre__val first;        /* its first value */
  vyre__val bound, distance;
} grid_loop;

typedef struct rewriter {
  const vyre__lir_kernel *kernel;
  const vyre__regions *r;
  grid_loop loop;
  vyre__lir_edit e;
} rewriter;

static const vyre__lir_inst *at_of(const rewriter *t, uint32_t at) {
  return &t->kernel->code[at];
}

static bool is_op(const rewriter *t, uint32_t at, vyre__lir_op op) {
  return at_of(t, at)->op == op;
}

static bool is_uniform(const rewriter *t, vyre__val v) {
  return vyre__inst_info_of(t->r, v)->is_uniform;
}

static bool is_counter(const rewriter *t, uint32_t at) {
  return is_op(t, at, VYRE__LIR_GET) && at_of(t, at)->aux == t->loop.var;
}

static bool is_pure(const rewriter *t, uint32_t at) {
  return vyre__lir_ops[at_of(t, at)->op].flags & VYRE__LIRF_PURE;
}

/* Returns true if @p at loads from a uniform, which nothing changes. */
static bool loads_uniform(const rewriter *t, uint32_t at) {
  const vyre__lir_inst *inst = at_of(t, at);
  return inst->op == VYRE__LIR_LOAD && inst->b == 0 &&
         t->kernel->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM;
}

/* --- which loops ---------------------------------------------------------*/

/* Returns true if @p v can be computed before the loop. */
static bool can_hoist(const rewriter *t, vyre__val v, unsigned depth) {
  if (v < t->loop.at) return true;
  if (depth == MAX_DEPTH || !(is_pure(t, v) || loads_uniform(t, v))) {
    return false;
  }
  for (unsigned i = 0; i < vyre__lir_ops[at_of(t, v)->op].operands; i++) {
    if (!can_hoist(t, at_of(t, v)->v[i], depth + 1)) return false;
  }
  return true;
}

/* Returns true if @p v, computed before the loop, is local_id.x and uniform
 * values. */
static bool has_id(const rewriter *t, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = at_of(t, v);
  if (inst->op == VYRE__LIR_LOCAL_ID) return inst->aux == 0;
  if (inst->op != VYRE__LIR_ADD || depth == MAX_DEPTH) return false;
  return (is_uniform(t, inst->a) && has_id(t, inst->b, depth + 1)) ||
         (is_uniform(t, inst->b) && has_id(t, inst->a, depth + 1));
}

/* Returns true if [at, at + 3) is `if (c) break;`. */
static bool only_breaks(const rewriter *t, uint32_t at) {
  return is_op(t, at, VYRE__LIR_IF) && is_op(t, at + 1, VYRE__LIR_BREAK) &&
         is_op(t, at + 2, VYRE__LIR_END);
}

static bool ends_dispatch(const rewriter *t, uint32_t at) {
  return is_op(t, at, VYRE__LIR_IF) &&
         is_op(t, at + 1, VYRE__LIR_OUT_OF_FUEL) &&
         is_op(t, at + 2, VYRE__LIR_EXIT) && is_op(t, at + 3, VYRE__LIR_END);
}

/* Finds n in `if (!(i < n)) break;`. */
static bool find_bound(rewriter *t, uint32_t at) {
  vyre__val c = at_of(t, at)->a, test = c;
  bool is_not = is_op(t, c, VYRE__LIR_NOT);
  if (is_not) test = at_of(t, c)->a;
  const vyre__lir_inst *inst = at_of(t, test);
  bool is_below = is_not && inst->op == VYRE__LIR_LT_U;
  bool is_above = !is_not && inst->op == VYRE__LIR_LE_U;
  if (!is_below && !is_above) return false;
  vyre__val counter = is_below ? inst->a : inst->b;
  t->loop.bound = is_below ? inst->b : inst->a;
  return counter > t->loop.at && is_counter(t, counter) &&
         is_uniform(t, t->loop.bound) && can_hoist(t, t->loop.bound, 0);
}

/* Returns true if variable @p var is the fuel, and only the loop counts it
 * down: it is the same for all invocations then. */
static bool owns_fuel(const rewriter *t, uint32_t var) {
  if (var == t->loop.var) return false;
  for (uint32_t at = t->r->begin; at < t->r->end; at++) {
    bool is_inside = at > t->loop.at && at < t->loop.end;
    const vyre__lir_inst *inst = at_of(t, at);
    if (inst->aux != var || is_inside) continue;
    if (inst->op == VYRE__LIR_GET) return false;
    if (inst->op == VYRE__LIR_SET && !is_uniform(t, inst->a)) return false;
  }
  return true;
}

/* Finds the end of the tests at the top: one that breaks, and that of fuel. */
static bool find_body(rewriter *t) {
  bool has_test = false, has_fuel = false, counts_down = true;
  const vyre__lir_inst *fuel = NULL;
  t->loop.body = t->loop.at + 1;
  for (uint32_t at = t->loop.at + 1; at < t->loop.step; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    if (only_breaks(t, at)) {
      if (has_test || !find_bound(t, at)) return false;
      has_test = true;
      at += 2;
      t->loop.body = at + 1;
    } else if (ends_dispatch(t, at)) {
      fuel = at_of(t, at_of(t, inst->a)->a);
      if (has_fuel || fuel->op != VYRE__LIR_GET) return false;
      has_fuel = true;
      counts_down = false;
      at += 3;
      t->loop.body = at + 1;
    } else if (has_fuel && !counts_down && inst->op == VYRE__LIR_SET) {
      if (inst->aux != fuel->aux || !owns_fuel(t, fuel->aux)) return false;
      counts_down = true;
      t->loop.body = at + 1;
    } else if (inst->op != VYRE__LIR_GET && !is_pure(t, at) &&
               !loads_uniform(t, at)) {
      break;
    }
  }
  return has_test && counts_down;
}

/* Finds the values of the counter: SETs before and in the loop, no others. */
static bool find_counter(rewriter *t) {
  uint32_t before = 0;
  t->loop.advance = 0;
  for (uint32_t at = t->r->begin; at < t->r->end; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    bool is_inside = at > t->loop.at && at < t->loop.end;
    if (is_counter(t, at) && !is_inside) return false;
    if (inst->op != VYRE__LIR_SET || inst->aux != t->loop.var) continue;
    if (is_inside && t->loop.advance) return false;
    if (is_inside) t->loop.advance = at;
    if (!is_inside && at > t->loop.at) return false;
    if (!is_inside) before = at;
  }
  if (!before || !t->loop.advance) return false;
  /* Both SETs run once per iteration and per loop. */
  if (vyre__inst_info_of(t->r, before)->parent !=
      vyre__inst_info_of(t->r, t->loop.at)->parent) {
    return false;
  }
  t->loop.first = at_of(t, before)->a;
  uint32_t parent = vyre__inst_info_of(t->r, t->loop.advance)->parent;
  if (parent != t->loop.at && parent != t->loop.step) return false;
  const vyre__lir_inst *sum = at_of(t, at_of(t, t->loop.advance)->a);
  if (sum->op != VYRE__LIR_ADD) return false;
  bool is_left = sum->a > t->loop.at && is_counter(t, sum->a);
  vyre__val counter = is_left ? sum->a : sum->b;
  t->loop.distance = is_left ? sum->b : sum->a;
  return counter > t->loop.at && is_counter(t, counter) &&
         is_uniform(t, t->loop.distance) && can_hoist(t, t->loop.distance, 0);
}

/* Returns true if @p v, in the tests at the top, depends on the counter. */
static bool depends(const rewriter *t, vyre__val v, unsigned depth) {
  if (v <= t->loop.at || v >= t->loop.body) return false;
  if (is_counter(t, v) || depth == MAX_DEPTH) return true;
  for (unsigned i = 0; i < vyre__lir_ops[at_of(t, v)->op].operands; i++) {
    if (depends(t, at_of(t, v)->v[i], depth + 1)) return true;
  }
  return false;
}

/* Returns true if an index grows with the counter. */
static bool follows(const rewriter *t, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = at_of(t, v);
  if (v < t->loop.at || depth == MAX_DEPTH) return false;
  if (is_counter(t, v)) return true;
  if (inst->op != VYRE__LIR_ADD) return false;
  return follows(t, inst->a, depth + 1) || follows(t, inst->b, depth + 1);
}

/* Checks the body: straight or with IFs, at least one access that is contiguous
 * over invocations, no jump and no atomic. */
static bool has_simple_body(const rewriter *t) {
  bool walks = false;
  for (uint32_t at = t->loop.body; at < t->loop.step; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    const vyre__inst_info *role = vyre__inst_info_of(t->r, at);
    if (!role->is_reached || inst->op == VYRE__LIR_BARRIER) return false;
    if (inst->op == VYRE__LIR_LOOP || flags & VYRE__LIRF_JUMPS) return false;
    if (flags & VYRE__LIRF_ATOMICS) return false;
    if (at > t->loop.advance && is_counter(t, at)) return false;
    for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
      vyre__val v = inst->v[i];
      bool is_plain = v > t->loop.at && is_counter(t, v);
      if (!is_plain && depends(t, v, 0)) return false;
    }
    if (inst->op == VYRE__LIR_LOAD || inst->op == VYRE__LIR_STORE) {
      walks |= follows(t, inst->a, 0);
    }
  }
  return walks;
}

/* Finds the variable that the test at the top compares. */
static bool find_variable(rewriter *t) {
  for (uint32_t at = t->loop.at + 1; at < t->loop.step; at++) {
    if (!only_breaks(t, at)) continue;
    vyre__val c = at_of(t, at)->a;
    if (is_op(t, c, VYRE__LIR_NOT)) c = at_of(t, c)->a;
    const vyre__lir_inst *test = at_of(t, c);
    bool is_below = test->op == VYRE__LIR_LT_U;
    if (!is_below && test->op != VYRE__LIR_LE_U) return false;
    const vyre__lir_inst *get = at_of(t, is_below ? test->a : test->b);
    t->loop.var = get->aux;
    return get->op == VYRE__LIR_GET &&
           t->kernel->vars[get->aux].type == VYRE_TYPE_U32;
  }
  return false;
}

static bool is_grid_loop(rewriter *t, uint32_t at) {
  if (!is_op(t, at, VYRE__LIR_LOOP)) return false;
  t->loop = (grid_loop){.at = at,
                        .step = vyre__inst_info_of(t->r, at)->mate,
                        .end = vyre__end_of(t->r, at)};
  if (t->loop.end - at > MAX_LENGTH) return false;
  return vyre__loop_can_interchange(t->r, at) && find_variable(t) &&
         find_counter(t) && has_id(t, t->loop.first, 0) && find_body(t) &&
         has_simple_body(t);
}

/* --- rewriting -----------------------------------------------------------*/

static vyre__val push(rewriter *t, vyre__lir_op op, vyre_type type, vyre__val a,
                      vyre__val b) {
  return vyre__edit_push(
      &t->e, t->loop.at,
      (vyre__lir_inst){
          .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, 0, 0}});
}

static vyre__val number(rewriter *t, uint32_t value) {
  return vyre__edit_const(&t->e, t->loop.at, VYRE_TYPE_U32, value);
}

/* Computes a value of the loop before it. */
static vyre__val hoist(rewriter *t, vyre__val v) {
  if (v < t->loop.at) return t->e.map[v];
  for (unsigned i = 0; i < vyre__lir_ops[at_of(t, v)->op].operands; i++) {
    (void)hoist(t, at_of(t, v)->v[i]);
  }
  vyre__edit_copy(&t->e, v, v + 1, false);
  return t->e.map[v];
}

/* Computes the first value without local_id.x. */
static vyre__val first_base(rewriter *t, vyre__val v) {
  const vyre__lir_inst *inst = at_of(t, v);
  if (inst->op == VYRE__LIR_LOCAL_ID) return number(t, 0);
  bool is_left = is_uniform(t, inst->a);
  vyre__val rest = first_base(t, is_left ? inst->b : inst->a);
  return push(t, VYRE__LIR_ADD, VYRE_TYPE_U32, rest,
              t->e.map[is_left ? inst->a : inst->b]);
}

/* Emits the condition under which nothing wraps. */
static vyre__val fits(rewriter *t, vyre__val first, vyre__val bound,
                      vyre__val distance) {
  vyre__val most = number(t, LARGEST),
            size = number(t, t->kernel->workgroup[0]);
  vyre__val ok = push(t, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, size, distance);
  vyre__val parts[3] = {first, bound, distance};
  for (unsigned i = 0; i < 3; i++) {
    vyre__val one = push(t, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, parts[i], most);
    ok = push(t, VYRE__LIR_AND, VYRE_TYPE_BOOL, ok, one);
  }
  return ok;
}

static void set_base(rewriter *t, uint32_t var, vyre__val value) {
  vyre__edit_push(
      &t->e, t->loop.at,
      (vyre__lir_inst){.op = VYRE__LIR_SET, .aux = var, .a = value});
}

/* Copies instructions that the workgroup runs: the counter is the base. */
static void copy_for_group(rewriter *t, uint32_t begin, uint32_t end,
                           vyre__val base) {
  for (uint32_t at = begin; at < end; at++) {
    if (is_counter(t, at)) {
      t->e.map[at] = base;
    } else if (at != t->loop.advance) {
      vyre__edit_copy(&t->e, at, at + 1, false);
    }
  }
}

/* Emits the loop of the workgroup. @p base: its variable. */
static void emit_group_loop(rewriter *t, uint32_t var, vyre__val id,
                            vyre__val bound, vyre__val distance) {
  const grid_loop *l = &t->loop;
  vyre__lir_edit *e = &t->e;
  vyre__edit_copy(e, l->at, l->at + 1, true);
  if (!e->no_memory) e->to.loops[e->to.loop_count - 1].is_counted = false;
  vyre__val base = vyre__edit_push(
      e, l->at,
      (vyre__lir_inst){.op = VYRE__LIR_GET, .type = VYRE_TYPE_U32, .aux = var});
  copy_for_group(t, l->at + 1, l->body, base);
  vyre__val counter = push(t, VYRE__LIR_ADD, VYRE_TYPE_U32, base, id);
  vyre__val in = push(t, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, counter, bound);
  push(t, VYRE__LIR_IF, VYRE_TYPE_VOID, in, 0);
  for (uint32_t at = l->at; at < l->body; at++) {
    if (is_counter(t, at)) e->map[at] = counter;
  }
  copy_for_group(t, l->body, l->step, counter);
  push(t, VYRE__LIR_END, VYRE_TYPE_VOID, 0, 0);
  push(t, VYRE__LIR_BARRIER, VYRE_TYPE_VOID, 0, 0);
  set_base(t, var, push(t, VYRE__LIR_ADD, VYRE_TYPE_U32, base, distance));
  copy_for_group(t, l->step, l->end + 1, base);
}

/* Returns the LOOP of the copy. */
static uint32_t rewrite_loop(rewriter *t) {
  const grid_loop *l = &t->loop;
  vyre__lir_edit *e = &t->e;
  vyre__edit_copy(e, 1, l->at, false);
  vyre__val bound = hoist(t, l->bound), distance = hoist(t, l->distance);
  vyre__val first = first_base(t, l->first);
  vyre__val id = vyre__edit_push(
      e, l->at,
      (vyre__lir_inst){
          .op = VYRE__LIR_LOCAL_ID, .type = VYRE_TYPE_U32, .aux = 0});
  vyre__val ok = fits(t, first, bound, distance);
  vyre__edit_push(
      e, l->at,
      (vyre__lir_inst){
          .op = VYRE__LIR_IF, .hints = VYRE__HINT_VERSION, .v = {ok, 0, 0, 0}});
  uint32_t var = vyre__edit_var(e, "base", VYRE_TYPE_U32);
  set_base(t, var, first);
  uint32_t loop = e->to.count;
  emit_group_loop(t, var, id, bound, distance);
  push(t, VYRE__LIR_ELSE, VYRE_TYPE_VOID, 0, 0);
  vyre__edit_copy(e, l->at, l->end + 1, false);
  push(t, VYRE__LIR_END, VYRE_TYPE_VOID, 0, 0);
  vyre__edit_reach(e, l->end + 1);
  vyre__edit_copy(e, l->end + 1, t->kernel->count, false);
  return loop;
}

vyre_code vyre__interchange_grid_loop(const vyre__lir_kernel **kernel,
                                      uint32_t phase, vyre_arena *arena,
                                      bool *turned, vyre_status *st) {
  vyre__regions before, after;
  *turned = false;
  VYRE_TRY(vyre__regions_build(*kernel, (*kernel)->phases[phase], false, arena,
                               &before, st));
  for (uint32_t at = before.begin; at < before.end; at++) {
    rewriter t = {.kernel = *kernel, .r = &before};
    if (!is_grid_loop(&t, at)) continue;
    vyre__edit_begin(&t.e, *kernel, 2, arena);
    uint32_t loop = rewrite_loop(&t);
    const vyre__lir_kernel *to = vyre__edit_end(&t.e);
    if (!to) {
      return vyre__no_memory(st, "spmd/grid_loops", "instructions",
                             (*kernel)->count);
    }
    VYRE_TRY(
        vyre__regions_build(to, to->phases[phase], false, arena, &after, st));
    if (vyre__inst_info_of(&after, loop)->subregion != 0 ||
        !vyre__leaves_together(&after, loop) ||
        vyre__count_live_across(&after) >
            vyre__count_live_across(&before) + MAX_KEPT) {
      continue;
    }
    *kernel = to;
    *turned = true;
    return VYRE_OK;
  }
  return VYRE_OK;
}
