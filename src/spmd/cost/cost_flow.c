/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data flow for the cost model: chains of operations through the iterations of
 * a loop, and registers in use. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/cost/cost_internal.h"
#include "spmd/schedule_internal.h"

enum {
  MAX_TRACE = 12, /* operations through which a condition is traced */
  MAX_BODY = 512, /* instructions of a loop whose chains are followed */
  MAX_VARIABLES = 64,
  MAX_CHAINS = 12, /* variables of a loop that are followed */
  WINDOW = 200,    /* instructions that a processor has in flight */
};

bool vyre__cost_is_data(const estimate *e, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = inst_at(e->s, v);
  if (inst->op == VYRE__LIR_LOAD) {
    return e->s->kernel->buffers[inst->aux].kind != VYRE_MEMORY_UNIFORM;
  }
  if (inst->op == VYRE__LIR_GET || depth == MAX_TRACE) return true;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (vyre__cost_is_data(e, operands[i], depth + 1)) return true;
  }
  return false;
}

static float registers_of(const estimate *e, unsigned bytes) {
  float lanes = (float)e->s->lanes * 4;
  float count = (float)(e->s->width * bytes) / lanes;
  return count < 1 ? 1 : count;
}

/* Returns true if @p var counts the iterations of a loop. */
static bool is_counter(const estimate *e, uint32_t var) {
  for (uint32_t i = 0; i < e->s->kernel->loop_count; i++) {
    const vyre__lir_loop *loop = &e->s->kernel->loops[i];
    if (loop->is_counted && loop->var == var) return true;
  }
  return false;
}

bool vyre__cost_is_loaded(const estimate *e, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = inst_at(e->s, v);
  if (inst->op == VYRE__LIR_LOAD) {
    return e->s->kernel->buffers[inst->aux].kind != VYRE_MEMORY_UNIFORM;
  }
  if (inst->op == VYRE__LIR_GET) return !is_counter(e, inst->aux);
  if (depth == MAX_TRACE) return true;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) {
    if (vyre__cost_is_loaded(e, operands[i], depth + 1)) return true;
  }
  return false;
}

/* --- chains -----------------------------------------------------------------*/

static double latency_of_op(const estimate *e, uint32_t at) {
  const vyre__cost_machine *m = e->machine;
  const vyre__lir_inst *inst = inst_at(e->s, at);
  bool is_vector = vyre__cost_is_vector(e, at);
  switch (vyre__cost_class_of(e, inst)) {
    case VYRE__CLASS_FLOAT:
      return m->float_latency;
    case VYRE__CLASS_PRODUCT:
    case VYRE__CLASS_WIDE:
      return is_vector ? m->product_latency : 3;
    case VYRE__CLASS_CONVERT:
      return 3;
    case VYRE__CLASS_QUOTIENT:
    case VYRE__CLASS_ROOT:
      return 3 * m->float_latency;
    case VYRE__CLASS_DIVIDE:
      return is_vector ? 24 : 10;
    case VYRE__CLASS_DIVIDE_CONST:
    case VYRE__CLASS_DIVIDE_WIDE:
      return 8;
    default:
      return is_vector ? m->simple_latency : 1;
  }
}

static double latency_of(const estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  if (inst->op == VYRE__LIR_SET || inst->op == VYRE__LIR_GET) return 0;
  if (inst->op == VYRE__LIR_BITCAST || inst->op == VYRE__LIR_AGREE) return 0;
  if (!is_access(e->s, at)) return latency_of_op(e, at);
  return vyre__access_kind_of(e->s, at) == VYRE__ACCESS_GATHER
             ? e->machine->gather_latency
             : e->machine->load_latency;
}

/* Cycles after the start of the iteration at which values are known, for those
 * that depend on the followed variable; negative: they do not. */
typedef struct chain {
  float values[MAX_BODY];
  float vars[MAX_VARIABLES];
} chain;

/* Returns the depth of the conditions around SET @p at, inside @p begin: where
 * lanes diverge, the SET chooses between two values. */
static float depth_of_choice(const estimate *e, uint32_t at, uint32_t begin,
                             const float *depths) {
  float deepest = -1;
  for (uint32_t open = info_at(e->s, at)->parent; open > begin;
       open = info_at(e->s, open)->parent) {
    uint32_t owner = info_at(e->s, vyre__end_of(&e->s->r, open))->mate;
    vyre__val condition = inst_at(e->s, owner)->a;
    if (!is_op(e->s, owner, VYRE__LIR_IF) || condition <= begin) continue;
    if (!vyre__sched_is_divergent(e->s, condition)) continue;
    float one = depths[condition - begin];
    if (one > deepest) deepest = one;
  }
  return deepest;
}

/* Returns the length of the chain that goes through variable @p var. */
static float follow(const estimate *e, const vyre__sched_node *loop,
                    uint32_t var, chain *c) {
  for (unsigned i = 0; i < MAX_VARIABLES; i++) c->vars[i] = -1;
  c->vars[var] = 0;
  for (uint32_t at = loop->begin + 1; at < loop->end; at++) {
    const vyre__lir_inst *inst = inst_at(e->s, at);
    float *own = &c->values[at - loop->begin], from = -1;
    vyre__val operands[4];
    uint32_t count = vyre__lir_operands(inst, operands);
    *own = -1;
    if (!info_at(e->s, at)->is_needed) continue;
    if (inst->op == VYRE__LIR_GET) {
      *own = inst->aux < MAX_VARIABLES ? c->vars[inst->aux] : -1;
      continue;
    }
    if (flags_at(e->s, at) & (VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS)) continue;
    for (uint32_t i = 0; i < count; i++) {
      if (operands[i] <= loop->begin) continue;
      float one = c->values[operands[i] - loop->begin];
      if (one > from) from = one;
    }
    if (from >= 0) *own = from + (float)latency_of(e, at);
    if (inst->op != VYRE__LIR_SET || inst->aux >= MAX_VARIABLES) continue;
    float choice = depth_of_choice(e, at, loop->begin, c->values);
    if (choice >= 0 && choice + 1 > *own) *own = choice + 1;
    /* Arms of an IF: the longer one. */
    bool is_first = c->vars[inst->aux] < 0 || inst->aux != var ||
                    info_at(e->s, at)->parent == loop->begin;
    if (is_first || *own > c->vars[inst->aux]) c->vars[inst->aux] = *own;
  }
  return c->vars[var];
}

static bool has_inner_loop(const vyre__sched_node *first) {
  for (const vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind == VYRE__SCHED_LOOP || has_inner_loop(node->body) ||
        has_inner_loop(node->other)) {
      return true;
    }
  }
  return false;
}

double vyre__cost_chain(const estimate *e, const vyre__sched_node *loop) {
  chain c;
  bool seen[MAX_VARIABLES] = {false};
  double longest = 0;
  unsigned followed = 0;
  if (loop->end - loop->begin >= MAX_BODY || has_inner_loop(loop->body)) {
    return 0;
  }
  for (uint32_t at = loop->begin; at < loop->end; at++) {
    const vyre__lir_inst *inst = inst_at(e->s, at);
    if (inst->op != VYRE__LIR_SET || inst->aux >= MAX_VARIABLES) continue;
    if (seen[inst->aux] || !info_at(e->s, at)->is_needed) continue;
    const uint8_t groups = note_at(e->s, at)->groups;
    if (e->group && groups && !(groups & e->group)) continue;
    if (followed++ == MAX_CHAINS) break;
    seen[inst->aux] = true;
    double one = follow(e, loop, inst->aux, &c);
    if (one > longest) longest = one;
  }
  return longest;
}

/* Returns the position after the LOOP at @p at. */
static uint32_t skip_loop(const estimate *e, uint32_t at) {
  return vyre__end_of(&e->s->r, at) + 1;
}

/* Returns the depth of instruction @p at: that of its deepest operand. */
static float depth_of_operands(const estimate *e, uint32_t at, uint32_t begin) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(e->s, at), operands);
  float deepest = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (operands[i] < begin) continue;
    float one = e->depths[operands[i] - e->s->r.begin];
    if (one > deepest) deepest = one;
  }
  return deepest;
}

double vyre__cost_path(const estimate *e, uint32_t begin, uint32_t end) {
  float longest = 0, count = 0;
  size_t size = (size_t)(end - begin) * sizeof *e->depths;
  if (e->s->width == 1) return 0;
  memset(e->depths + (begin - e->s->r.begin), 0, size);
  memset(e->var_depths, 0, e->s->kernel->var_count * sizeof *e->var_depths);
  for (uint32_t at = begin; at < end; at++) {
    const vyre__lir_inst *inst = inst_at(e->s, at);
    float *own = &e->depths[at - e->s->r.begin];
    if (inst->op == VYRE__LIR_LOOP) {
      at = skip_loop(e, at) - 1;
      continue;
    }
    const vyre__inst_info *info = info_at(e->s, at);
    if (!info->is_needed || !info->is_reached || info->is_leaf ||
        info->storage == VYRE__STORAGE_UNIFORM) {
      continue;
    }
    if (inst->op == VYRE__LIR_GET) {
      *own = e->var_depths[inst->aux];
      continue;
    }
    *own = depth_of_operands(e, at, begin);
    if (inst->op == VYRE__LIR_SET) {
      const float *depths = e->depths + (begin - e->s->r.begin);
      float choice = depth_of_choice(e, at, begin, depths);
      if (choice + 1 > *own) *own = choice + 1;
      e->var_depths[inst->aux] = *own;
      continue;
    }
    *own += (float)latency_of(e, at);
    if (*own > longest) longest = *own;
    if (inst->op == VYRE__LIR_BITCAST) continue;
    count += vyre__cost_is_vector(e, at)
                 ? registers_of(e, vyre__cost_bytes(inst->type))
                 : 0.5f;
  }
  if (e->jam) count *= (float)e->jam->rows;
  return count >= WINDOW ? longest : longest * count / WINDOW;
}

/* --- registers in use -------------------------------------------------------*/

/* Returns the end of the range in which a value of @p from is needed for a use
 * at @p use: a loop that does not contain @p from runs as a whole. */
static uint32_t needed_until(const estimate *e, uint32_t from, uint32_t use) {
  uint32_t until = use;
  for (uint32_t open = info_at(e->s, use)->parent; open > from;
       open = info_at(e->s, open)->parent) {
    uint32_t owner = info_at(e->s, vyre__end_of(&e->s->r, open))->mate;
    if (owner > from && is_op(e->s, owner, VYRE__LIR_LOOP)) {
      until = vyre__end_of(&e->s->r, owner);
    }
  }
  return until;
}

static bool takes_register(const estimate *e, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(e->s, at);
  const vyre__inst_info *info = info_at(e->s, at);
  return info->is_needed && !info->is_leaf && inst->type != VYRE_TYPE_VOID &&
         inst->type != VYRE_TYPE_BOOL && inst->op != VYRE__LIR_CONST &&
         inst->op != VYRE__LIR_GET && vyre__cost_is_vector(e, at);
}

/* Finds where values are needed last. */
static void find_last(const estimate *e, uint32_t *last) {
  for (uint32_t at = e->s->r.begin; at < e->s->r.end; at++) {
    vyre__val operands[4];
    if (!info_at(e->s, at)->is_needed) continue;
    uint32_t count = vyre__lir_operands(inst_at(e->s, at), operands);
    for (uint32_t i = 0; i < count; i++) {
      if (operands[i] < e->s->r.begin) continue;
      uint32_t until = needed_until(e, operands[i], at);
      uint32_t *own = &last[operands[i] - e->s->r.begin];
      if (until > *own) *own = until;
    }
  }
}

static bool takes_registers(const estimate *e, uint32_t var) {
  return e->s->vars[var].form == VYRE__AS_VECTOR && !e->s->vars[var].is_array &&
         e->s->r.var_needed[var] &&
         e->s->kernel->vars[var].type != VYRE_TYPE_BOOL;
}

/* Adds the variables. @p first and @p until: zeroed, one per variable. */
static void add_variables(const estimate *e, float *change, uint32_t *first,
                          uint32_t *until) {
  for (uint32_t at = e->s->r.begin; at < e->s->r.end; at++) {
    const vyre__lir_inst *inst = inst_at(e->s, at);
    bool is_get = inst->op == VYRE__LIR_GET;
    if (!is_get && inst->op != VYRE__LIR_SET) continue;
    if (!info_at(e->s, at)->is_needed || !takes_registers(e, inst->aux)) {
      continue;
    }
    if (!first[inst->aux]) first[inst->aux] = at;
    uint32_t end = needed_until(e, first[inst->aux], at);
    if (end > until[inst->aux]) until[inst->aux] = end;
  }
  for (uint32_t var = 0; var < e->s->kernel->var_count; var++) {
    if (!first[var]) continue;
    unsigned bytes = vyre__cost_bytes(e->s->kernel->vars[var].type);
    change[first[var] - e->s->r.begin] += registers_of(e, bytes);
    change[until[var] - e->s->r.begin] -= registers_of(e, bytes);
  }
}

vyre_code vyre__cost_find_live(estimate *e, vyre_arena *arena) {
  size_t count = (size_t)(e->s->r.end - e->s->r.begin) + 1;
  float *live = vyre__arena_filled(arena, count, sizeof *live, 0);
  uint32_t *last = vyre__arena_filled(arena, count, sizeof *last, 0);
  size_t vars = e->s->kernel->var_count;
  uint32_t *ends = vyre__arena_filled(arena, 2 * vars + 1, sizeof *ends, 0);
  e->depths = vyre__arena_array(arena, count, sizeof *e->depths);
  e->var_depths = vyre__arena_array(arena, vars, sizeof *e->var_depths);
  if (!live || !last || !ends || !e->depths || !e->var_depths)
    return vyre__schedule_no_memory(e->s, count);
  e->live = NULL;
  if (e->s->width == 1) return VYRE_OK;
  find_last(e, last);
  for (uint32_t at = e->s->r.begin; at < e->s->r.end; at++) {
    uint32_t until = last[at - e->s->r.begin];
    if (!until || !takes_register(e, at)) continue;
    float own = registers_of(e, vyre__cost_bytes(inst_at(e->s, at)->type));
    live[at - e->s->r.begin] += own;
    live[until - e->s->r.begin] -= own;
  }
  add_variables(e, live, ends, ends + vars);
  for (size_t i = 1; i < count; i++) live[i] += live[i - 1];
  e->live = live;
  return VYRE_OK;
}
