/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bounds checks of scalar code.
 *
 * A signed index needs two comparisons, i < len and i >= 0. Both together are one
 * with the smaller one of len and 2^31, which the workgroup computes once.
 *
 * A loop over the edges of a node checks each index in each iteration. If the
 * index grows with the counter, its first value and the number of iterations
 * decide for the whole loop:
 *
 *     if (first < last && x[first], and the elements up to x[last - 1], exist) {
 *         for (j = first; j < last; j++) .. x[j], without a check
 *     } else { the original loop }
 *
 * Vectors do without it: their lanes would take both arms. */
#include "base/memory.h"
#include "base/status.h"
#include "spmd/lir_edit.h"
#include "spmd/schedule.h"

enum {
  MAX_DEPTH = 16,
  MAX_LENGTH = 250,  /* instructions of a loop, which is copied */
  MAX_GROWTH = 1000, /* instructions of all copies of a phase */
  MAX_FACTOR = 1 << 16,
  MAX_CHECKS = 8,
};

typedef struct check {
  uint32_t access;
  vyre__val index, bound;
  uint32_t factor; /* growth of the index per step of the counter by one */
} check;

typedef struct hoister {
  const vyre__lir_kernel *kernel;
  const vyre__regions *r;
  uint32_t at, step, end; /* LOOP, STEP, END */
  const vyre__lir_loop *of;
  check checks[MAX_CHECKS];
  uint32_t count;
  vyre__lir_edit e;
  bool *is_made; /* per instruction of the loop: computed before it */
} hoister;

static const vyre__lir_inst *at_of(const hoister *h, uint32_t at) {
  return &h->kernel->code[at];
}

static bool is_const(const vyre__lir_kernel *kernel, vyre__val v,
                     uint32_t number) {
  const vyre__lir_inst *inst = &kernel->code[v];
  return inst->op == VYRE__LIR_CONST && inst->type == VYRE_TYPE_U32 &&
         inst->c == number;
}

/* --- signed indices ------------------------------------------------------*/

/* Returns the comparison with the length if @p at is `i < len && -1 < i`; 0: it
 * is something else. */
static vyre__val signed_check(const vyre__lir_kernel *kernel, uint32_t at) {
  const vyre__lir_inst *inst = &kernel->code[at];
  if (inst->op != VYRE__LIR_AND || inst->type != VYRE_TYPE_BOOL) return 0;
  for (unsigned i = 0; i < 2; i++) {
    vyre__val v = inst->v[i];
    const vyre__lir_inst *top = &kernel->code[v];
    const vyre__lir_inst *low = &kernel->code[inst->v[1 - i]];
    if (top->op != VYRE__LIR_LT_U || low->op != VYRE__LIR_LT_S) continue;
    if (kernel->code[top->b].op != VYRE__LIR_LEN || low->b != top->a) continue;
    if (is_const(kernel, low->a, UINT32_MAX)) return v;
  }
  return 0;
}

static vyre_code join_signed_checks(const vyre__lir_kernel *kernel,
                                    vyre_arena *arena,
                                    const vyre__lir_kernel **out,
                                    vyre_status *st) {
  uint32_t count = 0;
  vyre__lir_edit e;
  *out = kernel;
  for (uint32_t at = 1; at < kernel->count; at++) {
    count += signed_check(kernel, at) != 0;
  }
  if (!count) return VYRE_OK;
  vyre__edit_begin(&e, kernel, 0, arena);
  for (uint32_t at = 1; at < kernel->count; at++) {
    vyre__val top = signed_check(kernel, at);
    if (!top) {
      vyre__edit_copy(&e, at, at + 1, false);
      continue;
    }
    const vyre__lir_inst *inst = &kernel->code[top];
    vyre__val most = vyre__edit_const(&e, at, VYRE_TYPE_U32, UINT32_C(1) << 31);
    vyre__lir_inst bound = {.op = VYRE__LIR_MIN_U,
                            .type = VYRE_TYPE_U32,
                            .v = {e.map[inst->b], most, 0, 0}};
    vyre__lir_inst below = {
        .op = VYRE__LIR_LT_U,
        .type = VYRE_TYPE_BOOL,
        .v = {e.map[inst->a], vyre__edit_push(&e, at, bound), 0, 0}};
    e.map[at] = vyre__edit_push(&e, at, below);
    vyre__edit_reach(&e, at + 1);
  }
  *out = vyre__edit_end(&e);
  return *out ? VYRE_OK
              : vyre__no_memory(st, "spmd/loop_checks", "instructions",
                                kernel->count);
}

/* --- which loops ---------------------------------------------------------*/

/* Returns true if the loop sets variable @p var. */
static bool is_set_inside(const hoister *h, uint32_t var) {
  for (uint32_t at = h->at; at < h->end; at++) {
    const vyre__lir_inst *inst = at_of(h, at);
    if (inst->op == VYRE__LIR_SET && inst->aux == var) return true;
  }
  return false;
}

/* Finds by how much @p v grows if the counter grows by one. Returns false if
 * that is unknown, or @p v cannot be computed before the loop. */
static bool find_factor(const hoister *h, vyre__val v, unsigned depth,
                        uint32_t *out) {
  const vyre__lir_inst *inst = at_of(h, v);
  uint32_t a = 0, b = 0;
  *out = 0;
  if (v < h->at || inst->op == VYRE__LIR_CONST) return true;
  if (depth == MAX_DEPTH || inst->type != VYRE_TYPE_U32) return false;
  if (inst->op == VYRE__LIR_GET) {
    *out = inst->aux == h->of->var;
    return *out || !is_set_inside(h, inst->aux);
  }
  unsigned count = vyre__lir_ops[inst->op].operands;
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE) || count > 2) {
    return false;
  }
  if (count == 0) return true;
  if (!find_factor(h, inst->a, depth + 1, &a)) return false;
  if (count == 2 && !find_factor(h, inst->b, depth + 1, &b)) return false;
  if (!a && !b) return true;
  switch (inst->op) {
    case VYRE__LIR_ADD:
      *out = a + b;
      break;
    case VYRE__LIR_SUB:
      if (b) return false;
      *out = a;
      break;
    case VYRE__LIR_SHL:
      if (b || at_of(h, inst->b)->op != VYRE__LIR_CONST ||
          at_of(h, inst->b)->c > 8) {
        return false;
      }
      *out = a << at_of(h, inst->b)->c;
      break;
    case VYRE__LIR_MUL: {
      const vyre__lir_inst *other = at_of(h, a ? inst->b : inst->a);
      if ((a && b) || other->op != VYRE__LIR_CONST || other->c > 256) {
        return false;
      }
      *out = (a ? a : b) * other->c;
      break;
    }
    default:
      return false;
  }
  return *out <= MAX_FACTOR;
}

static vyre__val check_of(const vyre__lir_inst *inst) {
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  if (!(vyre__lir_ops[inst->op].flags & memory)) return 0;
  if (inst->op == VYRE__LIR_OUT_OF_FUEL) return 0;
  return inst->v[vyre__lir_ops[inst->op].operands - 1];
}

/* Adds the check of the access at @p at if it can be made before the loop. */
static void add_check(hoister *h, uint32_t at) {
  vyre__val v = check_of(at_of(h, at));
  check c = {.access = at};
  uint32_t growth;
  if (v <= h->at || h->count == MAX_CHECKS) return;
  if (at_of(h, v)->op != VYRE__LIR_LT_U) return;
  c.index = at_of(h, v)->a;
  c.bound = at_of(h, v)->b;
  if (c.index != at_of(h, at)->a) return;
  if (!find_factor(h, c.index, 0, &c.factor)) return;
  if (!find_factor(h, c.bound, 0, &growth) || growth) return;
  h->checks[h->count++] = c;
}

/* Finds the checks of a counted loop without loops and barriers in it. */
static bool find_checks(hoister *h, uint32_t at) {
  if (at_of(h, at)->op != VYRE__LIR_LOOP) return false;
  h->at = at;
  h->step = vyre__inst_info_of(h->r, at)->mate;
  h->end = vyre__end_of(h->r, at);
  h->of = &h->kernel->loops[at_of(h, at)->aux];
  h->count = 0;
  bool is_plain = h->of->is_counted && h->of->kind == VYRE__LOOP_LT &&
                  !h->of->high_var && h->of->step > 0 &&
                  h->of->step <= INT32_MAX &&
                  h->kernel->vars[h->of->var].type == VYRE_TYPE_U32;
  if (!is_plain || h->end - at > MAX_LENGTH) return false;
  /* Other passes know rows of loops that all invocations run alike. */
  if (vyre__inst_info_of(h->r, h->of->first)->is_uniform &&
      vyre__inst_info_of(h->r, h->of->bound)->is_uniform) {
    return false;
  }
  for (uint32_t i = at + 1; i < h->end; i++) {
    uint8_t op = at_of(h, i)->op;
    bool is_counter = op == VYRE__LIR_SET && at_of(h, i)->aux == h->of->var;
    if (op == VYRE__LIR_LOOP || op == VYRE__LIR_BARRIER) return false;
    if (is_counter && i < h->step) return false;
  }
  for (uint32_t i = at + 1; i < h->step; i++) add_check(h, i);
  return h->count > 0;
}

/* --- rewriting -----------------------------------------------------------*/

static vyre__val push(hoister *h, vyre__lir_op op, vyre_type type, vyre__val a,
                      vyre__val b) {
  return vyre__edit_push(
      &h->e, h->at,
      (vyre__lir_inst){
          .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, 0, 0}});
}

static vyre__val number(hoister *h, uint32_t value) {
  return vyre__edit_const(&h->e, h->at, VYRE_TYPE_U32, value);
}

/* Computes a value of the first iteration. */
static vyre__val make_first(hoister *h, vyre__val v) {
  const vyre__lir_inst *inst = at_of(h, v);
  if (v < h->at || h->is_made[v - h->at]) return h->e.map[v];
  h->is_made[v - h->at] = true;
  if (inst->op == VYRE__LIR_GET && inst->aux == h->of->var) {
    h->e.map[v] = h->e.map[h->of->first];
    return h->e.map[v];
  }
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    (void)make_first(h, inst->v[i]);
  }
  vyre__edit_copy(&h->e, v, v + 1, true);
  return h->e.map[v];
}

/* Emits the condition under which all checks hold in all iterations. */
static vyre__val all_hold(hoister *h) {
  vyre__val first = h->e.map[h->of->first], last = h->e.map[h->of->bound];
  bool is_signed = h->of->is_signed;
  vyre__val ok = push(h, is_signed ? VYRE__LIR_LT_S : VYRE__LIR_LT_U,
                      VYRE_TYPE_BOOL, first, last);
  vyre__val one = number(h, 1);
  vyre__val steps = push(h, VYRE__LIR_SUB, VYRE_TYPE_U32, last, first);
  steps = push(h, VYRE__LIR_SUB, VYRE_TYPE_U32, steps, one);
  for (uint32_t i = 0; i < h->count; i++) {
    const check *c = &h->checks[i];
    vyre__val index = make_first(h, c->index), bound = make_first(h, c->bound);
    vyre__val in = push(h, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, index, bound);
    ok = push(h, VYRE__LIR_AND, VYRE_TYPE_BOOL, ok, in);
    if (!c->factor) continue;
    vyre__val room = push(h, VYRE__LIR_SUB, VYRE_TYPE_U32, bound, index);
    room = push(h, VYRE__LIR_SUB, VYRE_TYPE_U32, room, one);
    if (c->factor > 1) {
      room =
          push(h, VYRE__LIR_DIV_U, VYRE_TYPE_U32, room, number(h, c->factor));
    }
    vyre__val rest = push(h, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, steps, room);
    ok = push(h, VYRE__LIR_AND, VYRE_TYPE_BOOL, ok, rest);
  }
  return ok;
}

/* Returns true if index @p v is a little above another one that is checked. No
 * buffer is so long that the sum could wrap. */
static bool is_next(const hoister *h, vyre__val v) {
  enum { NEAR = 16 };
  const vyre__lir_inst *inst = at_of(h, v);
  if (v <= h->at || inst->op != VYRE__LIR_ADD) return false;
  const vyre__lir_inst *by = at_of(h, inst->b);
  if (by->op != VYRE__LIR_CONST || by->c > NEAR) return false;
  for (uint32_t i = 0; i < h->count; i++) {
    const vyre__lir_inst *bound = at_of(h, h->checks[i].bound);
    if (bound->op == VYRE__LIR_MIN_U) bound = at_of(h, bound->a);
    bool is_length = bound->op == VYRE__LIR_LEN;
    if (h->checks[i].index == inst->a && is_length) return true;
  }
  return false;
}

/* Copies the loop without the checks. */
static void copy_unchecked(hoister *h) {
  vyre__lir_edit *e = &h->e;
  uint32_t from = h->at;
  for (uint32_t i = 0; i < h->count; i++) {
    uint32_t access = h->checks[i].access;
    vyre__edit_copy(e, from, access + 1, true);
    if (e->no_memory) return;
    vyre__lir_inst *inst = &e->to.code[e->to.count - 1];
    inst->v[vyre__lir_ops[inst->op].operands - 1] = 0;
    from = access + 1;
  }
  vyre__edit_copy(e, from, h->end + 1, true);
  for (uint32_t i = 0; i < h->count && !e->no_memory; i++) {
    vyre__val sum = h->checks[i].index;
    if (!is_next(h, sum)) continue;
    e->to.code[e->map[sum]].hints |= VYRE__HINT_NO_WRAP;
  }
}

static const vyre__lir_kernel *rewrite(hoister *h, vyre_arena *arena) {
  vyre__lir_edit *e = &h->e;
  h->is_made = vyre__arena_filled(arena, h->end - h->at, sizeof *h->is_made, 0);
  if (!h->is_made) return NULL;
  vyre__edit_begin(e, h->kernel, 1, arena);
  vyre__edit_copy(e, 1, h->at, false);
  vyre__val ok = all_hold(h);
  vyre__edit_push(
      e, h->at,
      (vyre__lir_inst){
          .op = VYRE__LIR_IF, .hints = VYRE__HINT_VERSION, .v = {ok, 0, 0, 0}});
  copy_unchecked(h);
  push(h, VYRE__LIR_ELSE, VYRE_TYPE_VOID, 0, 0);
  vyre__edit_copy(e, h->at, h->end + 1, false);
  push(h, VYRE__LIR_END, VYRE_TYPE_VOID, 0, 0);
  vyre__edit_reach(e, h->end + 1);
  vyre__edit_copy(e, h->end + 1, h->kernel->count, false);
  return vyre__edit_end(e);
}

/* Hoists the checks of loops of a phase, from the last one to the first:
 * positions before a loop do not change with it. */
static vyre_code hoist_checks(const vyre__lir_kernel **kernel, uint32_t phase,
                              vyre_arena *arena, vyre_status *st) {
  uint32_t growth = 0, end = UINT32_MAX;
  for (;;) {
    vyre__regions r;
    VYRE_TRY(vyre__regions_build(*kernel, (*kernel)->phases[phase], false,
                                 arena, &r, st));
    hoister h = {.kernel = *kernel, .r = &r};
    uint32_t at = end < r.end ? end : r.end;
    while (at-- > r.begin && !find_checks(&h, at)) {
    }
    if (at < r.begin || !h.count) return VYRE_OK;
    growth += h.end - h.at;
    if (growth > MAX_GROWTH) return VYRE_OK;
    const vyre__lir_kernel *to = rewrite(&h, arena);
    if (!to) {
      return vyre__no_memory(st, "spmd/loop_checks", "instructions",
                             (*kernel)->count);
    }
    *kernel = to;
    end = at;
  }
}

vyre_code vyre__simplify_checks(const vyre__lir_kernel *kernel, uint32_t width,
                                vyre_arena *arena, const vyre__lir_kernel **out,
                                vyre_status *st) {
  VYRE_TRY(join_signed_checks(kernel, arena, &kernel, st));
  for (uint32_t i = 0; width == 1 && i < kernel->phase_count; i++) {
    VYRE_TRY(hoist_checks(&kernel, i, arena, st));
  }
  *out = kernel;
  return VYRE_OK;
}
