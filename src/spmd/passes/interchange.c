/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loop interchange: moves a loop that all invocations of a workgroup iterate
 * in step out of the loop over invocations, so that each iteration runs for
 * all of them.
 *
 * A barrier at the end of the iteration achieves it; a barrier is legal
 * wherever all invocations arrive. It pays if the loop has atomics: lanes
 * execute them one by one at any width, and their addresses are mostly
 * contiguous over invocations, not over the iterations of one. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/passes/loop_interchange.h"
#include "spmd/schedule.h"

enum { MAX_INTERCHANGES = 4, MAX_DEPTH = 16 };

typedef struct interchange {
  const vyre__lir_kernel *kernel;
  vyre_arena *arena;
  vyre_status *st;
} interchange;

static bool is_op(const vyre__lir_kernel *kernel, uint32_t at,
                  vyre__lir_op op) {
  return kernel->code[at].op == op;
}

/* Returns the IF or LOOP of an opener. */
static uint32_t owner(const vyre__regions *r, uint32_t open) {
  return vyre__inst_info_of(r, vyre__end_of(r, open))->mate;
}

static bool is_group(const vyre__regions *r, uint32_t open) {
  return vyre__inst_info_of(r, owner(r, open))->subregion == 0;
}

/* --- what lies side by side ---------------------------------------------------------*/

/* Returns by how much @p v grows if variable @p var grows by one or, for
 * VYRE_NO_INDEX, if local_id.x does. Returns false if that is unknown. */
static bool slope(const vyre__lir_kernel *kernel, vyre__val v, uint32_t var,
                  unsigned depth, uint32_t *out) {
  const vyre__lir_inst *inst = &kernel->code[v];
  uint32_t a, b;
  *out = 0;
  if (depth == MAX_DEPTH) return false;
  switch (inst->op) {
    case VYRE__LIR_CONST:
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_GRID_SIZE:
    case VYRE__LIR_LEN:
      return true;
    case VYRE__LIR_LOCAL_ID:
      *out = var == VYRE_NO_INDEX && inst->aux == 0;
      return true;
    case VYRE__LIR_GET:
      *out = inst->aux == var;
      return inst->aux == var || var == VYRE_NO_INDEX;
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB:
    case VYRE__LIR_MUL:
    case VYRE__LIR_SHL:
      break;
    default:
      return false;
  }
  if (!slope(kernel, inst->a, var, depth + 1, &a) ||
      !slope(kernel, inst->b, var, depth + 1, &b)) {
    return false;
  }
  *out = inst->op == VYRE__LIR_SUB ? a - b : a + b;
  if (inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB) return true;
  /* a product of a growing value and a constant */
  const vyre__lir_inst *left = &kernel->code[inst->a],
                       *right = &kernel->code[inst->b];
  if (!a && !b) return true;
  if (inst->op == VYRE__LIR_SHL && right->op == VYRE__LIR_CONST) {
    *out = a << (right->c & 31);
    return true;
  }
  if (inst->op != VYRE__LIR_MUL) return false;
  if (right->op == VYRE__LIR_CONST) *out = a * right->c;
  if (left->op == VYRE__LIR_CONST) *out = b * left->c;
  return left->op == VYRE__LIR_CONST || right->op == VYRE__LIR_CONST;
}

bool vyre__loop_is_contiguous(const vyre__lir_kernel *kernel, uint32_t loop) {
  const vyre__lir_loop *l = &kernel->loops[kernel->code[loop].aux];
  uint32_t depth = 1, per_iteration, lanes;
  if (!l->is_counted || l->step != 1) return false;
  for (uint32_t at = loop + 1; depth; at++) {
    const vyre__lir_inst *inst = &kernel->code[at];
    depth += inst->op == VYRE__LIR_IF || inst->op == VYRE__LIR_LOOP;
    depth -= inst->op == VYRE__LIR_END;
    if (inst->op == VYRE__LIR_LOAD &&
        slope(kernel, inst->a, l->var, 0, &per_iteration) &&
        slope(kernel, inst->a, VYRE_NO_INDEX, 0, &lanes) &&
        per_iteration == 1 && lanes > 1) {
      return true;
    }
  }
  return false;
}

/* --- what may be turned ----------------------------------------------------------*/

static bool has_atomic(const vyre__regions *r, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end; at++) {
    const vyre__inst_info *role = vyre__inst_info_of(r, at);
    if (!(vyre__lir_ops[r->kernel->code[at].op].flags & VYRE__LIRF_ATOMICS)) {
      continue;
    }
    if (role->is_needed && role->is_reached && !role->uses) return true;
  }
  return false;
}

uint32_t vyre__loop_of(const vyre__regions *r, uint32_t at) {
  uint32_t open = vyre__inst_info_of(r, at)->parent;
  while (open && !is_op(r->kernel, open, VYRE__LIR_LOOP)) {
    open = vyre__inst_info_of(r, open)->parent;
  }
  return open;
}

/* Returns true if the jump at @p at may keep some invocations from reaching
 * @p loop: it stands before the loop, leaves an iteration around it, and is not taken
 * by the whole workgroup together. */
static bool jumps_past(const vyre__regions *r, uint32_t at, uint32_t loop) {
  bool jumps = is_op(r->kernel, at, VYRE__LIR_CONTINUE) ||
               is_op(r->kernel, at, VYRE__LIR_BREAK);
  if (!jumps || at > loop || vyre__inst_info_of(r, at)->subregion == 0)
    return false;
  return vyre__end_of(r, vyre__loop_of(r, at)) > loop;
}

/* Checks that all invocations reach LOOP @p loop and each step of it together, as far
 * as the jumps around and inside it tell: a barrier may be inserted at the step. */
static bool stays_together(const vyre__regions *r, uint32_t loop) {
  uint32_t end = vyre__end_of(r, loop);
  for (uint32_t at = r->begin; at < end; at++) {
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    if (is_op(r->kernel, at, VYRE__LIR_EXIT) || jumps_past(r, at, loop)) {
      return false;
    }
    if (at > loop && is_op(r->kernel, at, VYRE__LIR_CONTINUE) &&
        vyre__loop_of(r, at) == loop) {
      return false;
    }
  }
  return true;
}

bool vyre__loop_can_interchange(const vyre__regions *r, uint32_t at) {
  const vyre__inst_info *role = vyre__inst_info_of(r, at);
  if (!is_op(r->kernel, at, VYRE__LIR_LOOP)) return false;
  if (!role->is_reached || role->subregion == 0) return false;
  for (uint32_t open = role->parent; open;
       open = vyre__inst_info_of(r, open)->parent) {
    if (!is_group(r, open)) return false;
  }
  return stays_together(r, at);
}

static bool is_candidate(const vyre__regions *r, uint32_t at) {
  if (!vyre__loop_can_interchange(r, at)) return false;
  uint32_t step = vyre__inst_info_of(r, at)->mate;
  return has_atomic(r, at, step) && !vyre__loop_is_contiguous(r->kernel, at);
}

/* --- another barrier -------------------------------------------------------------*/

static void shift(uint32_t *value, uint32_t at) {
  if (*value >= at) ++*value;
}

/* Copies @p from with a barrier inserted before instruction @p at. */
static vyre_code insert(interchange *e, const vyre__lir_kernel *from,
                        uint32_t at, vyre__lir_kernel **out) {
  size_t count = (size_t)from->count + 1;
  vyre__lir_kernel *to = vyre__arena_array(e->arena, 1, sizeof *to);
  vyre__lir_inst *code = vyre__arena_array(e->arena, count, sizeof *code);
  vyre__source_loc *places = vyre__arena_array(e->arena, count, sizeof *places);
  vyre__lir_loop *loops =
      vyre__arena_array(e->arena, from->loop_count, sizeof *loops);
  vyre__lir_phase *phases =
      vyre__arena_array(e->arena, from->phase_count, sizeof *phases);
  vyre__lir_step *steps =
      vyre__arena_array(e->arena, from->step_count, sizeof *steps);
  if (!to || !code || !places || !loops || !phases || !steps) {
    return vyre__no_memory(e->st, "spmd/interchange", "instructions", count);
  }
  *to = *from;
  to->code = code;
  to->source_locs = places;
  to->loops = loops;
  to->phases = phases;
  to->steps = steps;
  to->count++;
  to->has_barrier = true;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t old = i > at ? i - 1 : i;
    places[i] = from->source_locs[old];
    code[i] = from->code[old];
    if (i == at) code[i] = (vyre__lir_inst){.op = VYRE__LIR_BARRIER};
    for (unsigned k = 0; k < vyre__lir_ops[code[i].op].operands; k++) {
      shift(&code[i].v[k], at);
    }
  }
  for (uint32_t i = 0; i < from->loop_count; i++) {
    loops[i] = from->loops[i];
    shift(&loops[i].first, at);
    shift(&loops[i].bound, at);
  }
  /* A range that ends at the new barrier excludes it. */
  for (uint32_t i = 0; i < from->phase_count; i++) {
    phases[i] = from->phases[i];
    shift(&phases[i].begin, at);
    if (phases[i].end > at) phases[i].end++;
  }
  shift(&to->host.begin, at);
  if (to->host.end > at) to->host.end++;
  for (uint32_t i = 0; i < from->step_count; i++) {
    steps[i] = from->steps[i];
    shift(&steps[i].first, at);
    shift(&steps[i].bound, at);
  }
  *out = to;
  return VYRE_OK;
}

/* --- whether it was right -----------------------------------------------------------*/

bool vyre__leaves_together(const vyre__regions *r, uint32_t loop) {
  uint32_t end = vyre__end_of(r, loop);
  for (uint32_t at = loop + 1; at < end; at++) {
    if (!vyre__inst_info_of(r, at)->is_reached) continue;
    if (!is_op(r->kernel, at, VYRE__LIR_BREAK) ||
        vyre__loop_of(r, at) != loop) {
      continue;
    }
    for (uint32_t open = vyre__inst_info_of(r, at)->parent; open != loop;
         open = vyre__inst_info_of(r, open)->parent) {
      if (is_op(r->kernel, open, VYRE__LIR_STEP)) continue;
      vyre__val condition = r->kernel->code[owner(r, open)].a;
      const vyre__inst_info *role = vyre__inst_info_of(r, condition);
      if (!role->is_uniform || role->storage == VYRE__STORAGE_BROADCAST)
        return false;
    }
  }
  return true;
}

uint32_t vyre__count_live_across(const vyre__regions *r) {
  uint32_t count = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__inst_info *role = vyre__inst_info_of(r, at);
    count += role->is_needed && role->storage >= VYRE__STORAGE_BROADCAST;
  }
  for (uint32_t i = 0; i < r->kernel->var_count; i++) {
    count += r->var_needed[i] && r->var_storage[i] >= VYRE__STORAGE_BROADCAST;
  }
  return count;
}

static vyre_code interchange_one(interchange *e, uint32_t phase, bool *turned) {
  vyre__regions before, after;
  *turned = false;
  VYRE_TRY(vyre__regions_build(e->kernel, e->kernel->phases[phase], false,
                               e->arena, &before, e->st));
  for (uint32_t at = before.begin; at < before.end; at++) {
    vyre__lir_kernel *other;
    if (!is_candidate(&before, at)) continue;
    VYRE_TRY(
        insert(e, e->kernel, vyre__inst_info_of(&before, at)->mate, &other));
    VYRE_TRY(vyre__regions_build(other, other->phases[phase], false, e->arena,
                                 &after, e->st));
    if (!vyre__leaves_together(&after, at) ||
        vyre__count_live_across(&after) > vyre__count_live_across(&before)) {
      continue;
    }
    e->kernel = other;
    *turned = true;
    return VYRE_OK;
  }
  return VYRE_OK;
}

static vyre_code interchange_phase(interchange *e, uint32_t phase) {
  bool has_loop = false, has_atomics = false, turned = true;
  vyre__lir_phase range = e->kernel->phases[phase];
  for (uint32_t at = range.begin; at < range.end; at++) {
    uint8_t op = e->kernel->code[at].op;
    has_loop |= op == VYRE__LIR_LOOP;
    has_atomics |= (vyre__lir_ops[op].flags & VYRE__LIRF_ATOMICS) != 0;
  }
  if (!has_loop || !has_atomics) return VYRE_OK;
  for (unsigned i = 0; i < MAX_INTERCHANGES && turned; i++) {
    VYRE_TRY(interchange_one(e, phase, &turned));
  }
  return VYRE_OK;
}

vyre_code vyre__interchange_loops(const vyre__lir_kernel *kernel,
                                  vyre_arena *arena,
                                  const vyre__lir_kernel **out,
                                  vyre_status *st) {
  interchange e = {.kernel = kernel, .arena = arena, .st = st};
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    VYRE_TRY(interchange_phase(&e, i));
  }
  *out = e.kernel;
  return VYRE_OK;
}
