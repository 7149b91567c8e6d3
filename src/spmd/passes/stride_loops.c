/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stride loops: `for (i = local_id.x; i < n; i += 128)` becomes a loop of the
 * workgroup,
 *
 *     for (base = 0; base < n; base += 128) {
 *         i = base + local_id.x;
 *         if (i < n) ..
 *         barrier
 *     }
 *
 * so that the workgroup walks through memory once, from front to back. Lane by
 * lane, each vector of invocations would walk through all of it, with gaps. The
 * guard is a condition of the row (range_split.c): no lane is masked except at
 * the end of the last round.
 *
 * Sums that live through the loop are then kept in an array with one element
 * per invocation, or in registers if the row is unrolled. */
#include "base/status.h"
#include "spmd/lir_edit.h"
#include "spmd/passes/loop_interchange.h"
#include "spmd/schedule.h"

enum {
  MAX_INTERCHANGES = 8,
  MAX_GRID_LOOPS = 2, /* each is copied */
  MAX_DEPTH = 16,
  MAX_KEPT = 4, /* additional values that live across iterations */
};

/* A loop that can be turned. */
typedef struct stride_loop {
  uint32_t at, step, end;   /* LOOP, STEP, END */
  uint32_t body;            /* first instruction after the tests at its top */
  const vyre__lir_loop *of; /* its entry in the kernel */
  vyre__val id;             /* local_id.x */
  uint32_t offset;          /* constant in `first`: local_id.x + offset */
} stride_loop;

typedef struct rewriter {
  const vyre__lir_kernel *kernel;
  const vyre__regions *r;
  stride_loop loop;
  vyre__lir_edit e;
  vyre__val base; /* value of the new variable `base` in the current
                   iteration of the workgroup's loop */
  bool failed;
} rewriter;

static const vyre__lir_inst *at_of(const rewriter *t, uint32_t at) {
  return &t->kernel->code[at];
}

static bool is_op(const rewriter *t, uint32_t at, vyre__lir_op op) {
  return at_of(t, at)->op == op;
}

static bool is_counter(const rewriter *t, uint32_t at) {
  return is_op(t, at, VYRE__LIR_GET) && at_of(t, at)->aux == t->loop.of->var;
}

/* --- which loops ---------------------------------------------------------*/

/* Finds local_id.x in the first value of the counter. */
static bool find_id(rewriter *t) {
  const vyre__lir_inst *first = at_of(t, t->loop.of->first);
  uint32_t limit = (uint32_t)INT32_MAX - t->kernel->workgroup[0];
  t->loop.id = t->loop.of->first;
  t->loop.offset = 0;
  if (first->op == VYRE__LIR_ADD && is_op(t, first->b, VYRE__LIR_CONST)) {
    t->loop.id = first->a;
    t->loop.offset = at_of(t, first->b)->c;
  }
  const vyre__lir_inst *id = at_of(t, t->loop.id);
  return id->op == VYRE__LIR_LOCAL_ID && id->aux == 0 && t->loop.offset < limit;
}

/* Finds the end of the tests at the top, `if (..) break;`. */
static void find_body(rewriter *t) {
  uint32_t at = t->loop.at + 1;
  t->loop.body = at;
  for (; at < t->loop.step; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    if (inst->op == VYRE__LIR_IF && is_op(t, at + 1, VYRE__LIR_BREAK) &&
        is_op(t, at + 2, VYRE__LIR_END)) {
      at += 2;
      t->loop.body = at + 1;
    } else if (inst->op != VYRE__LIR_GET &&
               !(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) {
      return;
    }
  }
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
 * over invocations, and no jump. */
static bool has_simple_body(const rewriter *t) {
  bool walks = false;
  for (uint32_t at = t->loop.body; at < t->loop.step; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    const vyre__inst_info *role = vyre__inst_info_of(t->r, at);
    if (!role->is_reached) continue;
    if (inst->op == VYRE__LIR_LOOP || flags & VYRE__LIRF_JUMPS) return false;
    if (flags & VYRE__LIRF_ATOMICS && role->uses) return false;
    if (inst->op == VYRE__LIR_SET && inst->aux == t->loop.of->var) return false;
    if (inst->op == VYRE__LIR_LOAD || inst->op == VYRE__LIR_STORE) {
      walks |= follows(t, inst->a, 0);
    }
  }
  return walks;
}

/* Returns true if no instruction outside the loop reads its counter. */
static bool owns_counter(const rewriter *t) {
  for (uint32_t at = t->r->begin; at < t->r->end; at++) {
    bool is_inside = at > t->loop.at && at < t->loop.end;
    if (!is_inside && is_counter(t, at)) return false;
  }
  return true;
}

static bool is_stride_loop(rewriter *t, uint32_t at) {
  if (!is_op(t, at, VYRE__LIR_LOOP)) return false;
  const vyre__lir_loop *of = &t->kernel->loops[at_of(t, at)->aux];
  const vyre__inst_info *role = vyre__inst_info_of(t->r, at);
  t->loop = (stride_loop){
      .at = at, .step = role->mate, .end = vyre__end_of(t->r, at), .of = of};
  if (!of->is_counted || of->kind != VYRE__LOOP_LT || of->high_var) {
    return false;
  }
  if (t->kernel->vars[of->var].type != VYRE_TYPE_U32) return false;
  if (!vyre__inst_info_of(t->r, of->bound)->is_uniform) return false;
  if (!find_id(t) || !owns_counter(t) ||
      !vyre__loop_can_interchange(t->r, at)) {
    return false;
  }
  find_body(t);
  return has_simple_body(t);
}

/* --- rewriting -----------------------------------------------------------*/

static vyre__val push(rewriter *t, vyre__lir_op op, vyre_type type, vyre__val a,
                      vyre__val b) {
  return vyre__edit_push(
      &t->e, t->loop.at,
      (vyre__lir_inst){
          .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, 0, 0}});
}

static vyre__val base_of_iteration(rewriter *t, uint32_t var) {
  return vyre__edit_push(
      &t->e, t->loop.at,
      (vyre__lir_inst){.op = VYRE__LIR_GET, .type = VYRE_TYPE_U32, .aux = var});
}

/* Copies instructions that the workgroup runs: the counter is the base. */
static void copy_for_group(rewriter *t, uint32_t begin, uint32_t end,
                           uint32_t var) {
  for (uint32_t at = begin; at < end; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    if (is_counter(t, at)) {
      t->e.map[at] = t->base;
    } else if (inst->op == VYRE__LIR_SET && inst->aux == t->loop.of->var) {
      vyre__edit_push(
          &t->e, at,
          (vyre__lir_inst){
              .op = VYRE__LIR_SET, .aux = var, .a = t->e.map[inst->a]});
    } else {
      vyre__edit_copy(&t->e, at, at + 1, false);
    }
  }
}

/* Computes a value of the body again, for the step: the body is in an IF now. */
static void make_for_group(rewriter *t, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = at_of(t, v);
  if (v < t->loop.body || v >= t->loop.step) return;
  if (is_counter(t, v)) {
    t->e.map[v] = t->base;
    return;
  }
  if (depth == MAX_DEPTH ||
      !(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) {
    t->failed = true;
    return;
  }
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    make_for_group(t, inst->v[i], depth + 1);
  }
  vyre__edit_copy(&t->e, v, v + 1, false);
}

/* Copies the body, with the counter of the invocation. */
static void copy_body(rewriter *t, vyre__val counter) {
  for (uint32_t at = t->loop.at; at < t->loop.body; at++) {
    if (is_counter(t, at)) t->e.map[at] = counter;
  }
  for (uint32_t at = t->loop.body; at < t->loop.step; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
      /* Other values of the tests are those of the base. */
      vyre__val v = inst->v[i];
      bool is_test = v > t->loop.at && v < t->loop.body && !is_counter(t, v) &&
                     !is_op(t, v, VYRE__LIR_CONST);
      t->failed |= is_test;
    }
    if (is_counter(t, at)) {
      t->e.map[at] = counter;
    } else {
      vyre__edit_copy(&t->e, at, at + 1, false);
    }
  }
}

/* Emits `if (i < n)`. The base is below n, and i wraps only if it is less than
 * the base. */
static void open_guard(rewriter *t, vyre__val counter, vyre__val bound) {
  const vyre__lir_loop *of = t->loop.of;
  bool never_wraps = t->loop.offset == 0 && of->step < UINT32_MAX &&
                     (of->step & (of->step - 1)) == 0 &&
                     of->step >= t->kernel->workgroup[0];
  vyre__val in = push(t, of->is_signed ? VYRE__LIR_LT_S : VYRE__LIR_LT_U,
                      VYRE_TYPE_BOOL, counter, bound);
  if (!never_wraps) {
    vyre__val above = push(t, of->is_signed ? VYRE__LIR_LE_S : VYRE__LIR_LE_U,
                           VYRE_TYPE_BOOL, t->base, counter);
    in = push(t, VYRE__LIR_AND, VYRE_TYPE_BOOL, above, in);
  }
  push(t, VYRE__LIR_IF, VYRE_TYPE_VOID, in, 0);
}

/* Emits the loop of the workgroup. */
static void rewrite_loop(rewriter *t) {
  vyre__lir_edit *e = &t->e;
  const stride_loop *l = &t->loop;
  vyre__lir_loop loop = *l->of;
  uint32_t var = vyre__edit_var(e, "base", VYRE_TYPE_U32);
  vyre__edit_copy(e, 1, l->at, false);
  loop.var = var;
  loop.first = vyre__edit_const(e, l->at, VYRE_TYPE_U32, l->offset);
  loop.bound = e->map[loop.bound];
  vyre__edit_push(
      e, l->at,
      (vyre__lir_inst){.op = VYRE__LIR_SET, .aux = var, .a = loop.first});
  vyre__edit_copy(e, l->at, l->at + 1, false);
  if (!e->no_memory) e->to.loops[at_of(t, l->at)->aux] = loop;
  t->base = base_of_iteration(t, var);
  copy_for_group(t, l->at + 1, l->body, var);
  vyre__val id = e->map[l->id];
  vyre__val counter = push(t, VYRE__LIR_ADD, VYRE_TYPE_U32, t->base, id);
  open_guard(t, counter, loop.bound);
  copy_body(t, counter);
  push(t, VYRE__LIR_END, VYRE_TYPE_VOID, 0, 0);
  for (uint32_t at = l->at; at < l->body; at++) {
    if (is_counter(t, at)) e->map[at] = t->base;
  }
  for (uint32_t at = l->step; at < l->end; at++) {
    const vyre__lir_inst *inst = at_of(t, at);
    for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
      make_for_group(t, inst->v[i], 0);
    }
  }
  push(t, VYRE__LIR_BARRIER, VYRE_TYPE_VOID, 0, 0);
  copy_for_group(t, l->step, l->end, var);
  vyre__edit_copy(e, l->end, t->kernel->count, false);
}

/* --- checks of the result ----------------------------------------------*/

/* Returns the copy of the loop, by its new variable. */
static uint32_t find_copy(const vyre__lir_kernel *k, vyre__lir_phase phase) {
  for (uint32_t at = phase.begin; at < phase.end; at++) {
    if (k->code[at].op == VYRE__LIR_LOOP &&
        k->loops[k->code[at].aux].var == k->var_count - 1) {
      return at;
    }
  }
  return 0;
}

static vyre_code interchange_one(const vyre__lir_kernel **kernel,
                                 uint32_t phase, vyre_arena *arena,
                                 bool *turned, vyre_status *st) {
  vyre__regions before, after;
  *turned = false;
  VYRE_TRY(vyre__regions_build(*kernel, (*kernel)->phases[phase], false, arena,
                               &before, st));
  for (uint32_t at = before.begin; at < before.end; at++) {
    rewriter t = {.kernel = *kernel, .r = &before};
    if (!is_stride_loop(&t, at)) continue;
    vyre__edit_begin(&t.e, *kernel, 1, arena);
    rewrite_loop(&t);
    const vyre__lir_kernel *to = vyre__edit_end(&t.e);
    if (!to) {
      return vyre__no_memory(st, "spmd/stride_loops", "instructions",
                             (*kernel)->count);
    }
    if (t.failed) continue;
    VYRE_TRY(
        vyre__regions_build(to, to->phases[phase], false, arena, &after, st));
    uint32_t loop = find_copy(to, to->phases[phase]);
    if (!loop || !vyre__leaves_together(&after, loop) ||
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

vyre_code vyre__interchange_stride_loops(const vyre__lir_kernel *kernel,
                                         vyre_arena *arena,
                                         const vyre__lir_kernel **out,
                                         vyre_status *st) {
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    bool turned = true;
    for (unsigned n = 0; n < MAX_INTERCHANGES && turned; n++) {
      VYRE_TRY(interchange_one(&kernel, i, arena, &turned, st));
    }
    turned = true;
    for (unsigned n = 0; n < MAX_GRID_LOOPS && turned; n++) {
      VYRE_TRY(vyre__interchange_grid_loop(&kernel, i, arena, &turned, st));
    }
  }
  *out = kernel;
  return VYRE_OK;
}
