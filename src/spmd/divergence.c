/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Divergence analysis: finds where lanes diverge, before any code is
 * emitted. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

enum {
  SMALL = 24, /* instructions of an IF that is executed without a branch */
  MAX_ACCESSES = 64, /* accesses of a variable that are analysed */
  LONG = 1 << 12,    /* iterations after which a loop polls `stop` */
  COVERED = 1 << 8,  /* the same for loops inside such a loop */
};

/* Returns the IF or LOOP of an opener. */
static uint32_t owner(const vyre__schedule *s, uint32_t open) {
  return info_at(s, vyre__end_of(&s->r, open))->mate;
}

static bool is_varying(const vyre__schedule *s, uint32_t at) {
  return s->width > 1 &&
         shape_at(s, inst_at(s, at)->a).kind >= VYRE__LANE_SHAPE_LINEAR;
}

/* --- small ifs ----------------------------------------------------------------------*/

bool vyre__fits_small(const vyre__schedule *s, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  if (info_at(s, at)->storage == VYRE__STORAGE_UNIFORM)
    return true; /* not here */
  switch (inst->op) {
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_U:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_LOOP_VALUE:
      return false;
    case VYRE__LIR_GET:
      return s->r.var_storage[inst->aux] != VYRE__STORAGE_UNIFORM;
    case VYRE__LIR_SET:
      return s->vars[inst->aux].form == VYRE__AS_VECTOR &&
             !s->vars[inst->aux].has_shadow &&
             s->r.var_storage[inst->aux] != VYRE__STORAGE_UNIFORM;
    case VYRE__LIR_ELSE:
    case VYRE__LIR_END:
      return true;
    case VYRE__LIR_IF:
      return note_at(s, at)->is_small;
    default:
      return vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE &&
             info_at(s, at)->storage != VYRE__STORAGE_BROADCAST;
  }
}

/* From the inside out. */
static void find_small(vyre__schedule *s) {
  for (uint32_t at = s->r.end; at-- > s->r.begin;) {
    if (!is_op(s, at, VYRE__LIR_IF) || !is_varying(s, at)) continue;
    uint32_t end = vyre__end_of(&s->r, at);
    bool jumps =
        vyre__lir_ops[inst_at(s, end - 1)->op].flags & VYRE__LIRF_JUMPS;
    bool has_else = info_at(s, at)->mate != end;
    bool small = end - at <= SMALL && !(jumps && has_else);
    for (uint32_t i = at + 1; small && i < end - jumps; i++) {
      small = vyre__fits_small(s, i);
    }
    note_at(s, at)->is_small = small && !jumps;
    note_at(s, at)->is_leap = small && jumps;
  }
}

/* --- long loops ----------------------------------------------------------------------*/

/* Returns true if LOOP @p at has to poll `stop`. Short loops inside a
 * polling loop need not. *trips: trip count of the loop times those around
 * it. */
static bool is_long(const vyre__schedule *s, uint32_t at, uint64_t *trips) {
  bool is_covered = false;
  *trips = 1;
  for (uint32_t open = at; open; open = info_at(s, open)->parent) {
    if (!is_op(s, open, VYRE__LIR_LOOP)) continue;
    const vyre__lir_loop *loop = &s->kernel->loops[inst_at(s, open)->aux];
    uint64_t most = loop->max_trips;
    if (open == at && most > LONG) return true;
    is_covered |= note_at(s, open)->is_long && *trips <= COVERED;
    *trips = most && *trips > UINT64_MAX / most ? UINT64_MAX : *trips * most;
  }
  if (is_covered) *trips = 0;
  return *trips > LONG;
}

static void find_long(vyre__schedule *s) {
  s->unpolled = 1;
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    uint64_t trips;
    if (!is_op(s, at, VYRE__LIR_LOOP)) continue;
    note_at(s, at)->is_long = is_long(s, at, &trips);
    if (!note_at(s, at)->is_long) s->unpolled += trips;
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
static bool is_fresh(const vyre__schedule *s, accesses a, uint32_t open) {
  return !a.all[0].is_get && info_at(s, a.all[0].at)->parent == open;
}

/* Returns the first access in [begin, end); there is one. */
static const access *first_in(accesses a, uint32_t begin, uint32_t end) {
  const access *at = a.all;
  while (at->at < begin || at->at >= end) at++;
  return at;
}

/* Checks that no GET before @p loop sees a value that a SET in the loop leaves, in a
 * later iteration of a loop around it: each such iteration begins with another SET. */
static bool is_reset(const vyre__schedule *s, accesses a, uint32_t loop) {
  uint32_t open = info_at(s, loop)->parent;
  for (; open; open = info_at(s, open)->parent) {
    uint32_t own = owner(s, open), end = vyre__end_of(&s->r, open);
    if (info_at(s, own)->subregion == 0) return true;
    bool is_if = is_op(s, own, VYRE__LIR_IF);
    uint32_t last = is_if ? info_at(s, open)->mate : end;
    if (all_inside(a, open, last) && is_fresh(s, a, open)) return true;
    if (is_if) continue;
    const access *first = first_in(a, own, end);
    if (first->is_get || info_at(s, first->at)->parent != own) return false;
  }
  return true;
}

static bool needs_no_blend(const vyre__schedule *s, uint32_t at, accesses a) {
  for (uint32_t open = info_at(s, at)->parent; open;
       open = info_at(s, open)->parent) {
    uint32_t own = owner(s, open), end = vyre__end_of(&s->r, open);
    if (info_at(s, own)->subregion == 0) return true;
    if (is_op(s, own, VYRE__LIR_IF)) {
      if (!is_varying(s, own)) continue;
      return all_inside(a, open, info_at(s, open)->mate) &&
             is_fresh(s, a, open);
    }
    if (is_op(s, open, VYRE__LIR_STEP)) continue;
    const vyre__sched_note *note = note_at(s, own);
    uint32_t step = info_at(s, own)->mate;
    if (note->continues && (at > note->split || gets_in(a, step, end))) {
      return false;
    }
    if (all_inside(a, own, end) && is_fresh(s, a, own)) return true;
    if (!note->parts) continue;
    if (gets_in(a, end, s->r.end) || !is_reset(s, a, own)) return false;
  }
  return true;
}

static vyre_code find_blends(vyre__schedule *s) {
  const vyre__lir_kernel *kernel = s->kernel;
  uint32_t count = s->r.end - s->r.begin, vars = kernel->var_count;
  vyre__arena_mark mark = vyre__arena_here(s->arena);
  access *all = vyre__arena_array(s->arena, count, sizeof *all);
  uint32_t *first = vyre__arena_array(s->arena, vars + 2, sizeof *first);
  if (!all || !first) {
    return vyre__no_memory(s->st, "spmd/schedule", "instructions", count);
  }
  memset(first, 0, (vars + 2) * sizeof *first);
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t at = s->r.begin; at < s->r.end; at++) {
      const vyre__lir_inst *inst = inst_at(s, at);
      bool is_get = inst->op == VYRE__LIR_GET;
      if (!is_get && inst->op != VYRE__LIR_SET) continue;
      if (!info_at(s, at)->is_needed) continue;
      if (pass) {
        all[first[inst->aux + 1]++] = (access){at, is_get};
      } else {
        first[inst->aux + 2]++;
      }
    }
    for (uint32_t i = 2; !pass && i < vars + 2; i++) first[i] += first[i - 1];
  }
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    const vyre__lir_inst *inst = inst_at(s, at);
    if (inst->op != VYRE__LIR_SET || !info_at(s, at)->is_needed) continue;
    accesses a = {all + first[inst->aux],
                  first[inst->aux + 1] - first[inst->aux]};
    note_at(s, at)->no_blend = a.count <= MAX_ACCESSES &&
                               !s->vars[inst->aux].is_array &&
                               needs_no_blend(s, at, a);
  }
  vyre__arena_rewind(s->arena, mark);
  return VYRE_OK;
}

/* --- && and || -------------------------------------------------------------------------------*/

/* Finds what a GET of @p var at @p get stands for if the variable is set at
 * @p first and again in an IF at @p last:  v = a; if (a) { v = b; } */
static void match_logic(vyre__schedule *s, uint32_t get, uint32_t first,
                        uint32_t last) {
  uint32_t inner = info_at(s, last)->parent, outer = info_at(s, first)->parent;
  if (!inner || !is_op(s, inner, VYRE__LIR_IF) || first > inner) return;
  uint32_t end = info_at(s, inner)->mate;
  if (!is_op(s, end, VYRE__LIR_END) || info_at(s, inner)->parent != outer)
    return;
  if (get < end || info_at(s, get)->subregion != info_at(s, first)->subregion)
    return;
  for (uint32_t at = inner + 1; at < end; at++) {
    uint16_t flags = vyre__lir_ops[inst_at(s, at)->op].flags;
    if (flags & (VYRE__LIRF_JUMPS | VYRE__LIRF_CONTROL)) return;
  }
  uint32_t open = info_at(s, get)->parent;
  while (open && open != outer) open = info_at(s, open)->parent;
  if (open != outer) return;
  vyre__val a = inst_at(s, first)->a, c = inst_at(s, inner)->a;
  bool is_or = is_op(s, c, VYRE__LIR_NOT) && inst_at(s, c)->a == a;
  if (c != a && !is_or) return;
  vyre__sched_note *note = note_at(s, get);
  note->logic_a = a;
  note->logic_b = inst_at(s, last)->a;
  note->logic_or = is_or;
}

/* Returns true if the instruction may be executed speculatively. */
static bool is_harmless(const vyre__schedule *s, uint32_t at) {
  const vyre__inst_info *role = info_at(s, at);
  uint8_t op = inst_at(s, at)->op;
  if (!role->is_needed || role->storage == VYRE__STORAGE_UNIFORM) return true;
  if (role->storage != VYRE__STORAGE_LOCAL &&
      role->storage != VYRE__STORAGE_REMATERIALIZE) {
    return false;
  }
  bool divides = op >= VYRE__LIR_DIV_U && op <= VYRE__LIR_REM_S;
  return vyre__lir_ops[op].flags & VYRE__LIRF_PURE && !divides;
}

/* v = a; if (a) { v = b; } where b reads no memory: no branch, v = a & b. */
static void straighten(vyre__schedule *s, const uint32_t *sets, uint32_t gets) {
  if (gets == 0) return; /* and then it may have no SET either */
  uint32_t inner = info_at(s, sets[2])->parent, end = sets[2];
  if (!info_at(s, inner)->subregion || sets[2] - inner > SMALL) return;
  while (!is_op(s, end, VYRE__LIR_END)) end++;
  for (uint32_t at = inner + 1; at < end; at++) {
    if (at != sets[2] && !is_harmless(s, at)) return;
  }
  note_at(s, inner)->is_straight = true;
  uint32_t var = inst_at(s, sets[2])->aux;
  for (uint32_t at = end; at < s->r.end; at++) {
    const vyre__lir_inst *inst = inst_at(s, at);
    if (inst->op == VYRE__LIR_GET && inst->aux == var) {
      note_at(s, at)->is_straight = true;
    }
  }
  note_at(s, sets[1])->is_dead = note_at(s, sets[2])->is_dead = true;
}

static vyre_code find_logic(vyre__schedule *s) {
  size_t vars = s->kernel->var_count;
  vyre__arena_mark mark = vyre__arena_here(s->arena);
  uint32_t *sets = vyre__arena_array(s->arena, 4 * vars, sizeof *sets);
  if (!sets) return vyre__no_memory(s->st, "spmd/schedule", "variables", vars);
  memset(sets, 0, 4 * vars * sizeof *sets);
  uint32_t *gets = sets + 3 * vars;
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    if (!is_op(s, at, VYRE__LIR_SET) || !info_at(s, at)->is_needed) continue;
    uint32_t *own = &sets[3 * (size_t)inst_at(s, at)->aux];
    if (own[0] < 2) own[1 + own[0]] = at;
    own[0]++;
  }
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    if (!is_op(s, at, VYRE__LIR_GET) || !info_at(s, at)->is_needed) continue;
    uint32_t *own = &sets[3 * (size_t)inst_at(s, at)->aux];
    if (own[0] < 2 || inst_at(s, at)->type != VYRE_TYPE_BOOL) continue;
    uint32_t var = inst_at(s, at)->aux;
    if (own[0] == 2 && s->r.var_storage[var] != VYRE__STORAGE_UNIFORM) {
      match_logic(s, at, own[1], own[2]);
    }
    /* Every GET must qualify. */
    gets[var] = note_at(s, at)->logic_a && gets[var] != UINT32_MAX
                    ? gets[var] + 1
                    : UINT32_MAX;
  }
  for (uint32_t i = 0; i < vars; i++) {
    if (gets[i] != UINT32_MAX) straighten(s, &sets[3 * (size_t)i], gets[i]);
  }
  vyre__arena_rewind(s->arena, mark);
  return VYRE_OK;
}

bool vyre__sched_logic(const vyre__schedule *s, vyre__val v, vyre__val *a,
                       vyre__val *b, bool *is_or) {
  const vyre__lir_inst *inst = inst_at(s, v);
  const vyre__sched_note *note = note_at(s, v);
  bool is_op_itself = inst->op == VYRE__LIR_AND || inst->op == VYRE__LIR_OR;
  *a = is_op_itself ? inst->a : note->logic_a;
  *b = is_op_itself ? inst->b : note->logic_b;
  *is_or = is_op_itself ? inst->op == VYRE__LIR_OR : note->logic_or;
  return is_op_itself || note->logic_a;
}

bool vyre__sched_operation(const vyre__schedule *s, vyre__val v, vyre__val *a,
                           vyre__val *b, bool *is_or) {
  bool is_get = inst_at(s, v)->op == VYRE__LIR_GET;
  return (!is_get || note_at(s, v)->is_straight) &&
         vyre__sched_logic(s, v, a, b, is_or);
}

/* --- floats in shared memory ------------------------------------------------------------------*/

/* Returns the float before its NaN was canonicalised; 0 if @p v is something
 * else. */
static vyre__val plain_bits(const vyre__schedule *s, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (inst->op != VYRE__LIR_SELECT || inst->type != VYRE_TYPE_U32) return 0;
  const vyre__lir_inst *test = inst_at(s, inst->a);
  if (test->op != VYRE__LIR_FNE || test->a != test->b) return 0;
  if (!is_op(s, inst->b, VYRE__LIR_CONST)) return 0;
  if (vyre__lir_const(inst_at(s, inst->b)) != 0x7FC00000u) return 0;
  const vyre__lir_inst *bits = inst_at(s, inst->c), *f = inst_at(s, test->a);
  bool same = (bits->op == VYRE__LIR_BITCAST && bits->a == test->a) ||
              (f->op == VYRE__LIR_BITCAST && f->a == inst->c);
  return same ? inst->c : 0;
}

/* Returns true if instruction @p at can observe the NaN payload of its
 * operand @p v. */
static bool sees_bits(const vyre__schedule *s, uint32_t at, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, at);
  if (inst->op == VYRE__LIR_BITCAST) return inst->type != VYRE_TYPE_F32;
  return plain_bits(s, at) != v;
}

/* Shared memory that is only read as floats may hold any NaN; loads
 * canonicalise it where the payload would be observed. */
static void find_floats(vyre__schedule *s) {
  for (uint32_t i = 0; i < s->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &s->kernel->buffers[i];
    s->any_nan[i] = buffer->kind == VYRE_MEMORY_SHARED && buffer->width == 4 &&
                    !buffer->is_atomic;
  }
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    vyre__val operands[4];
    if (!info_at(s, at)->is_needed) continue;
    uint32_t count = vyre__lir_operands(inst_at(s, at), operands);
    for (uint32_t i = 0; i < count; i++) {
      const vyre__lir_inst *from = inst_at(s, operands[i]);
      if (from->op == VYRE__LIR_LOAD && sees_bits(s, at, operands[i])) {
        s->any_nan[from->aux] = false;
      }
    }
  }
}

vyre__val vyre__sched_stored(const vyre__schedule *s, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  vyre__val plain = s->any_nan[inst->aux] ? plain_bits(s, inst->b) : 0;
  return plain && info_at(s, plain)->subregion == info_at(s, at)->subregion
             ? plain
             : inst->b;
}

/* --- variables -----------------------------------------------------------------------------*/

static void plan_variables(vyre__schedule *s) {
  for (uint32_t i = 0; i < s->kernel->var_count; i++) {
    const vyre__lane_shape_var *shape = &s->shapes.vars[i];
    vyre__sched_var *var = &s->vars[i];
    *var = (vyre__sched_var){.form = VYRE__AS_VECTOR,
                             .stride = shape->shape.stride};
    var->is_array = s->r.var_storage[i] >= VYRE__STORAGE_ARRAY;
    if (s->width == 1 || shape->shape.kind < VYRE__LANE_SHAPE_LINEAR) {
      var->form = VYRE__AS_SCALAR;
    } else if (shape->shape.kind == VYRE__LANE_SHAPE_LINEAR) {
      var->form = VYRE__AS_LINEAR;
    }
    if (s->width > 1 && shape->is_lockstep) {
      var->form = VYRE__AS_VECTOR;
      var->has_shadow = true;
    }
  }
}

vyre_code vyre__schedule_divergence(vyre__schedule *s) {
  size_t count = (size_t)(s->r.end - s->r.begin) + 1;
  size_t vars = s->kernel->var_count, buffers = s->kernel->buffer_count;
  s->notes = vyre__arena_array(s->arena, count, sizeof *s->notes);
  s->vars = vyre__arena_array(s->arena, vars, sizeof *s->vars);
  s->any_nan = vyre__arena_array(s->arena, buffers, sizeof *s->any_nan);
  s->lanes_leave =
      vyre__arena_array(s->arena, s->r.subregion_count, sizeof *s->lanes_leave);
  if (!s->notes || !s->vars || !s->any_nan || !s->lanes_leave) {
    return vyre__schedule_no_memory(s, count);
  }
  memset(s->notes, 0, count * sizeof *s->notes);
  memset(s->lanes_leave, 0, s->r.subregion_count * sizeof *s->lanes_leave);
  plan_variables(s);
  VYRE_TRY(find_logic(s));
  vyre__find_exits(s);
  find_small(s);
  find_long(s);
  find_floats(s);
  return find_blends(s);
}
