/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "spmd/lir_edit.h"

#include <string.h>

#include "base/memory.h"

void vyre__edit_begin(vyre__lir_edit *e, const vyre__lir_kernel *from,
                      uint32_t more, vyre_arena *arena) {
  *e = (vyre__lir_edit){.from = from, .arena = arena, .to = *from};
  e->capacity = from->count + from->count / 2 + 64;
  size_t vars = (size_t)from->var_count + more;
  size_t loops = (size_t)from->loop_count + more;
  e->to.code = vyre__arena_array(arena, e->capacity, sizeof *e->to.code);
  e->to.source_locs =
      vyre__arena_array(arena, e->capacity, sizeof *e->to.source_locs);
  e->to.vars = vyre__arena_array(arena, vars, sizeof *e->to.vars);
  e->to.loops = vyre__arena_array(arena, loops, sizeof *e->to.loops);
  e->map = vyre__arena_filled(arena, from->count, sizeof *e->map, 0);
  e->place = vyre__arena_filled(arena, from->count, sizeof *e->place, 0);
  e->no_memory = !e->to.code || !e->to.source_locs || !e->to.vars ||
                 !e->to.loops || !e->map || !e->place;
  if (e->no_memory) return;
  if (from->var_count) {
    memcpy(e->to.vars, from->vars, from->var_count * sizeof *from->vars);
  }
  if (from->loop_count) {
    memcpy(e->to.loops, from->loops, from->loop_count * sizeof *from->loops);
  }
  e->to.code[0] = from->code[0];
  e->to.source_locs[0] = from->source_locs[0];
  e->to.count = 1;
}

/* Makes room for one more instruction. */
static bool grow(vyre__lir_edit *e) {
  if (e->no_memory || e->to.count < e->capacity) return !e->no_memory;
  size_t more = (size_t)e->capacity * 2;
  vyre__lir_inst *code = vyre__arena_array(e->arena, more, sizeof *code);
  vyre__source_loc *locs = vyre__arena_array(e->arena, more, sizeof *locs);
  if (!code || !locs || more > UINT32_MAX) {
    e->no_memory = true;
    return false;
  }
  memcpy(code, e->to.code, e->to.count * sizeof *code);
  memcpy(locs, e->to.source_locs, e->to.count * sizeof *locs);
  e->to.code = code;
  e->to.source_locs = locs;
  e->capacity = (uint32_t)more;
  return true;
}

vyre__val vyre__edit_push(vyre__lir_edit *e, uint32_t like,
                          vyre__lir_inst inst) {
  if (!grow(e)) return 0;
  e->to.code[e->to.count] = inst;
  e->to.source_locs[e->to.count] = e->from->source_locs[like];
  if (inst.op == VYRE__LIR_BARRIER) e->to.has_barrier = true;
  return e->to.count++;
}

vyre__val vyre__edit_const(vyre__lir_edit *e, uint32_t like, vyre_type type,
                           uint64_t bits) {
  return vyre__edit_push(e, like,
                         (vyre__lir_inst){.op = VYRE__LIR_CONST,
                                          .type = (uint8_t)type,
                                          .c = (uint32_t)bits,
                                          .d = (uint32_t)(bits >> 32)});
}

uint32_t vyre__edit_var(vyre__lir_edit *e, const char *name, vyre_type type) {
  if (e->no_memory) return 0;
  e->to.vars[e->to.var_count] = (vyre__lir_var){name, (uint8_t)type};
  return e->to.var_count++;
}

uint32_t vyre__edit_loop(vyre__lir_edit *e, const vyre__lir_loop *loop) {
  if (e->no_memory) return 0;
  e->to.loops[e->to.loop_count] = *loop;
  return e->to.loop_count++;
}

static void map_loop(vyre__lir_edit *e, vyre__lir_loop *loop) {
  loop->first = e->map[loop->first];
  loop->bound = e->map[loop->bound];
  loop->first_high = e->map[loop->first_high];
  loop->bound_high = e->map[loop->bound_high];
}

void vyre__edit_copy(vyre__lir_edit *e, uint32_t begin, uint32_t end,
                     bool again) {
  for (uint32_t at = begin; at < end && !e->no_memory; at++) {
    vyre__lir_inst inst = e->from->code[at];
    for (unsigned i = 0; i < vyre__lir_ops[inst.op].operands; i++) {
      inst.v[i] = e->map[inst.v[i]];
    }
    if (inst.op == VYRE__LIR_LOOP) {
      vyre__lir_loop loop = e->from->loops[inst.aux];
      map_loop(e, &loop);
      if (again) {
        inst.aux = vyre__edit_loop(e, &loop);
      } else {
        e->to.loops[inst.aux] = loop;
      }
    }
    e->map[at] = vyre__edit_push(e, at, inst);
    if (!e->no_memory) e->place[at] = e->to.count - 1;
  }
}

/* Maps the loops that the host runs: no instruction begins them. */
static void map_host_loops(vyre__lir_edit *e) {
  const vyre__lir_kernel *from = e->from;
  for (uint32_t i = 0; i < from->loop_count; i++) {
    bool is_copied = false;
    for (uint32_t at = 1; at < from->count && !is_copied; at++) {
      is_copied =
          from->code[at].op == VYRE__LIR_LOOP && from->code[at].aux == i;
    }
    if (!is_copied) map_loop(e, &e->to.loops[i]);
  }
}

const vyre__lir_kernel *vyre__edit_end(vyre__lir_edit *e) {
  if (e->no_memory) return NULL;
  map_host_loops(e);
  const vyre__lir_kernel *from = e->from;
  vyre__lir_kernel *to = vyre__arena_array(e->arena, 1, sizeof *to);
  vyre__lir_phase *phases =
      vyre__arena_array(e->arena, from->phase_count, sizeof *phases);
  vyre__lir_step *steps =
      vyre__arena_array(e->arena, from->step_count, sizeof *steps);
  if (!to || !phases || !steps) return NULL;
  for (uint32_t i = 0; i < from->phase_count; i++) {
    phases[i].begin = e->place[from->phases[i].begin - 1] + 1;
    phases[i].end = e->place[from->phases[i].end - 1] + 1;
  }
  for (uint32_t i = 0; i < from->step_count; i++) {
    steps[i] = from->steps[i];
    steps[i].first = e->map[steps[i].first];
    steps[i].bound = e->map[steps[i].bound];
  }
  e->to.phases = phases;
  e->to.steps = steps;
  if (from->host.end > from->host.begin) {
    e->to.host.begin = e->place[from->host.begin - 1] + 1;
    e->to.host.end = e->place[from->host.end - 1] + 1;
  }
  *to = e->to;
  return to;
}
