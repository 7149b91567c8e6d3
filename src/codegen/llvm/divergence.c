/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Divergence analysis: finds where lanes diverge, before any code is
 * emitted. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/llvm/internal.h"

enum {
  SMALL = 24, /* instructions of an IF that is executed without a branch */
  MAX_ACCESSES = 64, /* accesses of a variable that are analysed */
  LONG = 1 << 12,    /* iterations after which a loop polls `stop` */
  COVERED = 1 << 8,  /* the same for loops inside such a loop */
};

static bool is_op(const ll *e, uint32_t at, vyre__lir_op op) {
  return ll_inst(e, at)->op == op;
}

/* Returns the IF or LOOP of an opener. */
static uint32_t owner(const ll *e, uint32_t open) {
  return ll_role(e, vyre__end_of(&e->r, open))->mate;
}

static bool is_varying(const ll *e, uint32_t at) {
  return e->width > 1 &&
         ll_shape(e, ll_inst(e, at)->a).kind >= VYRE__LANE_SHAPE_LINEAR;
}

/* --- small ifs ----------------------------------------------------------------------*/

static bool fits_small(const ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  if (ll_role(e, at)->storage == VYRE__STORAGE_UNIFORM)
    return true; /* not here */
  switch (inst->op) {
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_U:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_LOOP_VALUE:
      return false;
    case VYRE__LIR_GET:
      return e->r.var_storage[inst->aux] != VYRE__STORAGE_UNIFORM;
    case VYRE__LIR_SET:
      return e->vars[inst->aux].form == LL_VECTOR &&
             !e->vars[inst->aux].has_shadow &&
             e->r.var_storage[inst->aux] != VYRE__STORAGE_UNIFORM;
    case VYRE__LIR_ELSE:
    case VYRE__LIR_END:
      return true;
    case VYRE__LIR_IF:
      return ll_note_of(e, at)->is_small;
    default:
      return vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE &&
             ll_role(e, at)->storage != VYRE__STORAGE_BROADCAST;
  }
}

/* From the inside out. */
static void find_small(ll *e) {
  for (uint32_t at = e->r.end; at-- > e->r.begin;) {
    if (!is_op(e, at, VYRE__LIR_IF) || !is_varying(e, at)) continue;
    uint32_t end = vyre__end_of(&e->r, at);
    bool jumps =
        vyre__lir_ops[ll_inst(e, end - 1)->op].flags & VYRE__LIRF_JUMPS;
    bool has_else = ll_role(e, at)->mate != end;
    bool small = end - at <= SMALL && !(jumps && has_else);
    for (uint32_t i = at + 1; small && i < end - jumps; i++) {
      small = fits_small(e, i);
    }
    ll_note_of(e, at)->is_small = small && !jumps;
    ll_note_of(e, at)->is_leap = small && jumps;
  }
}

/* --- long loops ----------------------------------------------------------------------*/

/* Returns true if LOOP @p at has to poll `stop`. Short loops inside a
 * polling loop need not. *rounds: trip count of the loop times those around
 * it. */
static bool is_long(const ll *e, uint32_t at, uint64_t *rounds) {
  bool is_covered = false;
  *rounds = 1;
  for (uint32_t open = at; open; open = ll_role(e, open)->parent) {
    if (!is_op(e, open, VYRE__LIR_LOOP)) continue;
    const vyre__lir_loop *loop = &e->kernel->loops[ll_inst(e, open)->aux];
    uint64_t most = loop->max_trips;
    if (open == at && most > LONG) return true;
    is_covered |= ll_note_of(e, open)->is_long && *rounds <= COVERED;
    *rounds = most && *rounds > UINT64_MAX / most ? UINT64_MAX : *rounds * most;
  }
  if (is_covered) *rounds = 0;
  return *rounds > LONG;
}

static void find_long(ll *e) {
  e->unseen = 1;
  for (uint32_t at = e->r.begin; at < e->r.end; at++) {
    uint64_t rounds;
    if (!is_op(e, at, VYRE__LIR_LOOP)) continue;
    ll_note_of(e, at)->is_long = is_long(e, at, &rounds);
    if (!ll_note_of(e, at)->is_long) e->unseen += rounds;
  }
}

/* --- what lanes that are off had --------------------------------------------------------*/

typedef struct access {
  uint32_t at;
  bool is_get;
} access;

typedef struct accesses {
  const access *all;
  uint32_t count;
} accesses;

static bool all_inside(accesses a, uint32_t begin, uint32_t end) {
  return a.count && a.all[0].at > begin && a.all[a.count - 1].at < end;
}

static bool gets_in(accesses a, uint32_t begin, uint32_t end) {
  for (uint32_t i = 0; i < a.count; i++) {
    if (a.all[i].is_get && a.all[i].at > begin && a.all[i].at < end)
      return true;
  }
  return false;
}

/* Returns true if the block of @p open sets the variable before any other
 * access. */
static bool is_fresh(const ll *e, accesses a, uint32_t open) {
  return !a.all[0].is_get && ll_role(e, a.all[0].at)->parent == open;
}

/* Returns the first access in [begin, end); there is one. */
static const access *first_in(accesses a, uint32_t begin, uint32_t end) {
  const access *at = a.all;
  while (at->at < begin || at->at >= end) at++;
  return at;
}

/* Checks that no GET before @p loop sees a value that a SET in the loop leaves, in a
 * later iteration of a loop around it: each such iteration begins with another SET. */
static bool is_reset(const ll *e, accesses a, uint32_t loop) {
  uint32_t open = ll_role(e, loop)->parent;
  for (; open; open = ll_role(e, open)->parent) {
    uint32_t own = owner(e, open), end = vyre__end_of(&e->r, open);
    if (ll_role(e, own)->subregion == 0) return true;
    bool is_if = is_op(e, own, VYRE__LIR_IF);
    uint32_t last = is_if ? ll_role(e, open)->mate : end;
    if (all_inside(a, open, last) && is_fresh(e, a, open)) return true;
    if (is_if) continue;
    const access *first = first_in(a, own, end);
    if (first->is_get || ll_role(e, first->at)->parent != own) return false;
  }
  return true;
}

static bool needs_no_blend(const ll *e, uint32_t at, accesses a) {
  for (uint32_t open = ll_role(e, at)->parent; open;
       open = ll_role(e, open)->parent) {
    uint32_t own = owner(e, open), end = vyre__end_of(&e->r, open);
    if (ll_role(e, own)->subregion == 0) return true;
    if (is_op(e, own, VYRE__LIR_IF)) {
      if (!is_varying(e, own)) continue;
      return all_inside(a, open, ll_role(e, open)->mate) &&
             is_fresh(e, a, open);
    }
    if (is_op(e, open, VYRE__LIR_STEP)) continue;
    const ll_note *note = ll_note_of(e, own);
    uint32_t step = ll_role(e, own)->mate;
    if (note->continues && (at > note->split || gets_in(a, step, end))) {
      return false;
    }
    if (all_inside(a, own, end) && is_fresh(e, a, own)) return true;
    if (!note->parts) continue;
    if (gets_in(a, end, e->r.end) || !is_reset(e, a, own)) return false;
  }
  return true;
}

static vyre_code find_blends(ll *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  uint32_t count = e->r.end - e->r.begin, vars = kernel->var_count;
  vyre__arena_mark mark = vyre__arena_here(e->arena);
  access *all = vyre__arena_array(e->arena, count, sizeof *all);
  uint32_t *first = vyre__arena_array(e->arena, vars + 2, sizeof *first);
  if (!all || !first) {
    return vyre__no_memory(e->st, "emit/llvm", "instructions", count);
  }
  memset(first, 0, (vars + 2) * sizeof *first);
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t at = e->r.begin; at < e->r.end; at++) {
      const vyre__lir_inst *inst = ll_inst(e, at);
      bool is_get = inst->op == VYRE__LIR_GET;
      if (!is_get && inst->op != VYRE__LIR_SET) continue;
      if (!ll_role(e, at)->is_needed) continue;
      if (pass) {
        all[first[inst->aux + 1]++] = (access){at, is_get};
      } else {
        first[inst->aux + 2]++;
      }
    }
    for (uint32_t i = 2; !pass && i < vars + 2; i++) first[i] += first[i - 1];
  }
  for (uint32_t at = e->r.begin; at < e->r.end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (inst->op != VYRE__LIR_SET || !ll_role(e, at)->is_needed) continue;
    accesses a = {all + first[inst->aux],
                  first[inst->aux + 1] - first[inst->aux]};
    ll_note_of(e, at)->no_blend = a.count <= MAX_ACCESSES &&
                                  !e->vars[inst->aux].is_array &&
                                  needs_no_blend(e, at, a);
  }
  vyre__arena_rewind(e->arena, mark);
  return VYRE_OK;
}

/* --- && and || -------------------------------------------------------------------------------*/

/* Finds what a GET of @p var at @p get stands for if the variable is set at
 * @p first and again in an IF at @p last:  v = a; if (a) { v = b; } */
static void match_logic(ll *e, uint32_t get, uint32_t first, uint32_t last) {
  uint32_t inner = ll_role(e, last)->parent, outer = ll_role(e, first)->parent;
  if (!inner || !is_op(e, inner, VYRE__LIR_IF) || first > inner) return;
  uint32_t end = ll_role(e, inner)->mate;
  if (!is_op(e, end, VYRE__LIR_END) || ll_role(e, inner)->parent != outer)
    return;
  if (get < end || ll_role(e, get)->subregion != ll_role(e, first)->subregion)
    return;
  for (uint32_t at = inner + 1; at < end; at++) {
    uint16_t flags = vyre__lir_ops[ll_inst(e, at)->op].flags;
    if (flags & (VYRE__LIRF_JUMPS | VYRE__LIRF_CONTROL)) return;
  }
  uint32_t open = ll_role(e, get)->parent;
  while (open && open != outer) open = ll_role(e, open)->parent;
  if (open != outer) return;
  vyre__val a = ll_inst(e, first)->a, c = ll_inst(e, inner)->a;
  bool is_or = is_op(e, c, VYRE__LIR_NOT) && ll_inst(e, c)->a == a;
  if (c != a && !is_or) return;
  ll_note *note = ll_note_of(e, get);
  note->logic_a = a;
  note->logic_b = ll_inst(e, last)->a;
  note->logic_or = is_or;
}

/* Returns true if the instruction may be executed speculatively. */
static bool is_harmless(const ll *e, uint32_t at) {
  const vyre__inst_info *role = ll_role(e, at);
  uint8_t op = ll_inst(e, at)->op;
  if (!role->is_needed || role->storage == VYRE__STORAGE_UNIFORM) return true;
  if (role->storage != VYRE__STORAGE_LOCAL &&
      role->storage != VYRE__STORAGE_REMATERIALIZE) {
    return false;
  }
  bool divides = op >= VYRE__LIR_DIV_U && op <= VYRE__LIR_REM_S;
  return vyre__lir_ops[op].flags & VYRE__LIRF_PURE && !divides;
}

/* v = a; if (a) { v = b; } where b reads no memory: no branch, v = a & b. */
static void straighten(ll *e, const uint32_t *sets, uint32_t gets) {
  if (gets == 0) return; /* and then it may have no SET either */
  uint32_t inner = ll_role(e, sets[2])->parent, end = sets[2];
  if (!ll_role(e, inner)->subregion || sets[2] - inner > SMALL) return;
  while (!is_op(e, end, VYRE__LIR_END)) end++;
  for (uint32_t at = inner + 1; at < end; at++) {
    if (at != sets[2] && !is_harmless(e, at)) return;
  }
  ll_note_of(e, inner)->is_straight = true;
  uint32_t var = ll_inst(e, sets[2])->aux;
  for (uint32_t at = end; at < e->r.end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (inst->op == VYRE__LIR_GET && inst->aux == var) {
      ll_note_of(e, at)->is_straight = true;
    }
  }
  ll_note_of(e, sets[1])->is_dead = ll_note_of(e, sets[2])->is_dead = true;
}

static vyre_code find_logic(ll *e) {
  size_t vars = e->kernel->var_count;
  vyre__arena_mark mark = vyre__arena_here(e->arena);
  uint32_t *sets = vyre__arena_array(e->arena, 4 * vars, sizeof *sets);
  if (!sets) return vyre__no_memory(e->st, "emit/llvm", "variables", vars);
  memset(sets, 0, 4 * vars * sizeof *sets);
  uint32_t *gets = sets + 3 * vars;
  for (uint32_t at = e->r.begin; at < e->r.end; at++) {
    if (!is_op(e, at, VYRE__LIR_SET) || !ll_role(e, at)->is_needed) continue;
    uint32_t *own = &sets[3 * (size_t)ll_inst(e, at)->aux];
    if (own[0] < 2) own[1 + own[0]] = at;
    own[0]++;
  }
  for (uint32_t at = e->r.begin; at < e->r.end; at++) {
    if (!is_op(e, at, VYRE__LIR_GET) || !ll_role(e, at)->is_needed) continue;
    uint32_t *own = &sets[3 * (size_t)ll_inst(e, at)->aux];
    if (own[0] < 2 || ll_inst(e, at)->type != VYRE_TYPE_BOOL) continue;
    uint32_t var = ll_inst(e, at)->aux;
    if (own[0] == 2 && e->r.var_storage[var] != VYRE__STORAGE_UNIFORM) {
      match_logic(e, at, own[1], own[2]);
    }
    /* Every GET must qualify. */
    gets[var] = ll_note_of(e, at)->logic_a && gets[var] != UINT32_MAX
                    ? gets[var] + 1
                    : UINT32_MAX;
  }
  for (uint32_t i = 0; i < vars; i++) {
    if (gets[i] != UINT32_MAX) straighten(e, &sets[3 * (size_t)i], gets[i]);
  }
  vyre__arena_rewind(e->arena, mark);
  return VYRE_OK;
}

bool ll_logic(const ll *e, vyre__val v, vyre__val *a, vyre__val *b,
              bool *is_or) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const ll_note *note = ll_note_of(e, v);
  bool is_op_itself = inst->op == VYRE__LIR_AND || inst->op == VYRE__LIR_OR;
  *a = is_op_itself ? inst->a : note->logic_a;
  *b = is_op_itself ? inst->b : note->logic_b;
  *is_or = is_op_itself ? inst->op == VYRE__LIR_OR : note->logic_or;
  return is_op_itself || note->logic_a;
}

bool ll_operation(const ll *e, vyre__val v, vyre__val *a, vyre__val *b,
                  bool *is_or) {
  bool is_get = ll_inst(e, v)->op == VYRE__LIR_GET;
  return (!is_get || ll_note_of(e, v)->is_straight) &&
         ll_logic(e, v, a, b, is_or);
}

/* --- floats in shared memory ------------------------------------------------------------------*/

/* Returns the float before its NaN was canonicalised; 0 if @p v is something
 * else. */
static vyre__val plain_bits(const ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (inst->op != VYRE__LIR_SELECT || inst->type != VYRE_TYPE_U32) return 0;
  const vyre__lir_inst *test = ll_inst(e, inst->a);
  if (test->op != VYRE__LIR_FNE || test->a != test->b) return 0;
  if (!is_op(e, inst->b, VYRE__LIR_CONST)) return 0;
  if (vyre__lir_const(ll_inst(e, inst->b)) != 0x7FC00000u) return 0;
  const vyre__lir_inst *bits = ll_inst(e, inst->c), *f = ll_inst(e, test->a);
  bool same = (bits->op == VYRE__LIR_BITCAST && bits->a == test->a) ||
              (f->op == VYRE__LIR_BITCAST && f->a == inst->c);
  return same ? inst->c : 0;
}

/* Returns true if instruction @p at can observe the NaN payload of its
 * operand @p v. */
static bool sees_bits(const ll *e, uint32_t at, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  if (inst->op == VYRE__LIR_BITCAST) return inst->type != VYRE_TYPE_F32;
  return plain_bits(e, at) != v;
}

/* Shared memory that is only read as floats may hold any NaN; loads
 * canonicalise it where the payload would be observed. */
static void find_floats(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    e->any_nan[i] = buffer->kind == VYRE_MEMORY_SHARED && buffer->width == 4 &&
                    !buffer->is_atomic;
  }
  for (uint32_t at = e->r.begin; at < e->r.end; at++) {
    vyre__val operands[4];
    if (!ll_role(e, at)->is_needed) continue;
    uint32_t count = vyre__lir_operands(ll_inst(e, at), operands);
    for (uint32_t i = 0; i < count; i++) {
      const vyre__lir_inst *from = ll_inst(e, operands[i]);
      if (from->op == VYRE__LIR_LOAD && sees_bits(e, at, operands[i])) {
        e->any_nan[from->aux] = false;
      }
    }
  }
}

vyre__val ll_stored(const ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  vyre__val plain = e->any_nan[inst->aux] ? plain_bits(e, inst->b) : 0;
  return plain && ll_role(e, plain)->subregion == ll_role(e, at)->subregion
             ? plain
             : inst->b;
}

/* --- variables -----------------------------------------------------------------------------*/

static void plan_variables(ll *e) {
  for (uint32_t i = 0; i < e->kernel->var_count; i++) {
    const vyre__lane_shape_var *shape = &e->shapes.vars[i];
    ll_var *var = &e->vars[i];
    *var = (ll_var){.form = LL_VECTOR, .stride = shape->shape.stride};
    var->is_array = e->r.var_storage[i] >= VYRE__STORAGE_ARRAY;
    if (e->width == 1 || shape->shape.kind < VYRE__LANE_SHAPE_LINEAR) {
      var->form = LL_SCALAR;
    } else if (shape->shape.kind == VYRE__LANE_SHAPE_LINEAR) {
      var->form = LL_LINEAR;
    }
    if (e->width > 1 && shape->is_lockstep) {
      var->form = LL_VECTOR;
      var->has_shadow = true;
    }
  }
}

/* --- rows that go on --------------------------------------------------------------------------*/

static bool is_axis(const ll *e, vyre__val v, vyre__lir_op op) {
  return v && ll_inst(e, v)->op == op && ll_inst(e, v)->aux == 0;
}

/* group_id.x * size */
static bool is_first_x(const ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (inst->op != VYRE__LIR_MUL) return false;
  bool is_left = is_axis(e, inst->a, VYRE__LIR_GROUP_ID);
  vyre__val size = is_left ? inst->b : inst->a;
  if (!is_left && !is_axis(e, inst->b, VYRE__LIR_GROUP_ID)) return false;
  return ll_inst(e, size)->op == VYRE__LIR_CONST &&
         vyre__lir_const(ll_inst(e, size)) == e->kernel->workgroup[0];
}

static bool is_global_x(const ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (inst->op != VYRE__LIR_ADD) return false;
  return (is_axis(e, inst->a, VYRE__LIR_LOCAL_ID) && is_first_x(e, inst->b)) ||
         (is_axis(e, inst->b, VYRE__LIR_LOCAL_ID) && is_first_x(e, inst->a));
}

/* Adjacent workgroups form one long row if the kernel cannot distinguish
 * them: it has no barrier and no shared memory, and uses x as global_id.x
 * only. */
bool ll_find_fusion(ll *e) {
  const vyre__region *run = &e->r.regions[e->r.first];
  if (run->kind != VYRE__REGION_PARALLEL || run->next || run->is_empty)
    return false;
  if (run->subregion_count != 1 || e->kernel->workgroup[0] == 1) return false;
  e->fused_x = 0;
  for (uint32_t at = e->r.begin; at < e->r.end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    vyre__val operands[4];
    if (!ll_role(e, at)->is_needed) continue;
    uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
    if (vyre__lir_ops[inst->op].flags & memory &&
        inst->op != VYRE__LIR_OUT_OF_FUEL &&
        e->kernel->buffers[inst->aux].kind == VYRE_MEMORY_SHARED) {
      return false;
    }
    if (is_global_x(e, at)) {
      if (e->fused_x) return false;
      e->fused_x = at;
      continue;
    }
    uint32_t count = vyre__lir_operands(inst, operands);
    for (uint32_t i = 0; i < count; i++) {
      if (is_axis(e, operands[i], VYRE__LIR_LOCAL_ID)) return false;
      if (is_axis(e, operands[i], VYRE__LIR_GROUP_ID) && !is_first_x(e, at)) {
        return false;
      }
      if (is_first_x(e, operands[i])) return false;
    }
  }
  return e->fused_x != 0;
}

static vyre_code plan_rows(ll *e) {
  memset(e->rows, 0, e->r.subregion_count * sizeof(ll_row *));
  memset(e->jams, 0, e->r.subregion_count * sizeof(ll_jam *));
  for (uint32_t i = 1; i < e->r.subregion_count && e->has_rows; i++) {
    VYRE_TRY(ll_plan_row(e, i, &e->rows[i]));
    VYRE_TRY(ll_plan_jam(e, i, &e->jams[i]));
  }
  return VYRE_OK;
}

vyre_code ll_plan(ll *e) {
  size_t count = (size_t)(e->r.end - e->r.begin) + 1;
  memset(e->notes, 0, count * sizeof *e->notes);
  memset(e->piece_acts, 0, e->r.subregion_count * sizeof *e->piece_acts);
  plan_variables(e);
  VYRE_TRY(find_logic(e));
  ll_find_exits(e);
  find_small(e);
  find_long(e);
  find_floats(e);
  VYRE_TRY(find_blends(e));
  ll_plan_splits(e);
  return plan_rows(e);
}
