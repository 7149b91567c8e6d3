/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decides where values live that are used in several subregions. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/regions_internal.h"

enum {
  NEVER = 255, /* cost of a value that is never rematerialised */
  CHEAP = 6,   /* operations; about the cost of a store and a load */
};

typedef struct storage_pass {
  vyre__regions *r;
  vyre_allocator allocator;
  uint32_t *stack; /* work list: values whose operands are needed too */
  uint32_t stack_count;
  uint32_t *first_set, *next_set; /* list of the SETs of a variable */
  bool *var_uniform;
  bool *is_disturbed; /* some invocations may have ended before */
  bool *can_hoist;
  uint8_t *cost;
  uint32_t *stamp;      /* subregion that rematerialised the value last */
  uint32_t *wrote_last; /* per buffer: the region that wrote it last, so far */
  size_t remat_capacity;
  bool no_memory;
} storage_pass;

static vyre__inst_info *info_of(const storage_pass *k, vyre__val v) {
  return vyre__inst_info_of(k->r, v);
}

static uint32_t offset_of(const storage_pass *k, vyre__val v) {
  return v - k->r->begin;
}

static uint16_t flags_at(const storage_pass *k, uint32_t at) {
  return vyre__lir_ops[inst_at(k->r, at)->op].flags;
}

/* Returns true if the instruction is directly in a block of the workgroup, so
 * that every invocation reaches it. */
static bool is_top(const storage_pass *k, uint32_t at) {
  uint32_t open = info_of(k, at)->parent;
  return !open || info_of(k, open)->subregion == 0;
}

/* --- needed values -------------------------------------------------------- */

static void need_value(storage_pass *k, vyre__val v) {
  vyre__inst_info *info = info_of(k, v);
  if (info->is_needed) return;
  info->is_needed = true;
  k->stack[k->stack_count++] = v;
}

static void need_var(storage_pass *k, uint32_t var) {
  if (k->r->var_needed[var]) return;
  k->r->var_needed[var] = true;
  for (uint32_t at = k->first_set[var]; at;
       at = k->next_set[offset_of(k, at)]) {
    need_value(k, at);
  }
}

static bool is_shared(const storage_pass *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  return inst->op != VYRE__LIR_OUT_OF_FUEL && (flags_at(k, at) & memory) &&
         k->r->kernel->buffers[inst->aux].kind == VYRE_MEMORY_SHARED;
}

/* Marks writes to a shared buffer as needed. Only the workgroup sees shared
 * memory, so writes matter only if something is read. */
static void need_shared(storage_pass *k, uint32_t buffer) {
  const vyre__regions *r = k->r;
  if (k->wrote_last[buffer])
    return; /* wrote_last is otherwise unused at this point */
  k->wrote_last[buffer] = 1;
  for (uint32_t at = r->begin; at < r->end; at++) {
    if (info_of(k, at)->is_reached && is_shared(k, at) &&
        inst_at(r, at)->aux == buffer && !inst_is(r, at, VYRE__LIR_LOAD)) {
      need_value(k, at);
    }
  }
}

/* Returns true if the phase computes the bounds of this grid loop for the host
 * schedule. */
static bool wants_bounds(const vyre__regions *r, const vyre__lir_step *step) {
  return step->kind == VYRE__STEP_FOR && step->first >= r->begin &&
         step->first < r->end && step->bound >= r->begin &&
         step->bound < r->end;
}

static void need_bounds(storage_pass *k) {
  const vyre__lir_kernel *kernel = k->r->kernel;
  for (uint32_t i = 0; i < kernel->step_count; i++) {
    if (!wants_bounds(k->r, &kernel->steps[i])) continue;
    need_value(k, kernel->steps[i].first);
    need_value(k, kernel->steps[i].bound);
  }
}

static void find_needed(storage_pass *k) {
  const vyre__regions *r = k->r;
  need_bounds(k);
  uint16_t roots = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS | VYRE__LIRF_CONTROL |
                   VYRE__LIRF_JUMPS | VYRE__LIRF_BARRIER;
  for (uint32_t at = r->end; at-- > r->begin;) {
    const vyre__lir_inst *inst = inst_at(r, at);
    if (!info_of(k, at)->is_reached || inst->op != VYRE__LIR_SET) continue;
    k->next_set[offset_of(k, at)] = k->first_set[inst->aux];
    k->first_set[inst->aux] = at;
  }
  for (uint32_t at = r->begin; at < r->end; at++) {
    if (info_of(k, at)->is_reached && (flags_at(k, at) & roots) &&
        !is_shared(k, at)) {
      need_value(k, at);
    }
    while (k->stack_count) {
      uint32_t v = k->stack[--k->stack_count];
      vyre__val operands[4];
      uint32_t count = vyre__lir_operands(inst_at(r, v), operands);
      for (uint32_t i = 0; i < count; i++) need_value(k, operands[i]);
      if (inst_is(r, v, VYRE__LIR_GET)) need_var(k, inst_at(r, v)->aux);
      if (is_shared(k, v)) need_shared(k, inst_at(r, v)->aux);
    }
  }
}

/* --- uniform values ------------------------------------------------------- */

/* Finds code after an EXIT in a subregion, or between a CONTINUE and the step.
 * Workgroup code must not be hoisted from there, since some invocations skip
 * it. */
static void find_disturbed(storage_pass *k) {
  const vyre__regions *r = k->r;
  uint32_t until = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__inst_info *info = info_of(k, at);
    k->is_disturbed[offset_of(k, at)] = at < until;
    uint8_t op = inst_at(r, at)->op;
    if (!info->subregion || !info->is_reached) continue;
    uint32_t stop = 0;
    if (op == VYRE__LIR_EXIT) stop = r->end;
    if (op == VYRE__LIR_CONTINUE) {
      uint32_t loop = info->parent;
      while (!inst_is(r, loop, VYRE__LIR_LOOP)) loop = info_of(k, loop)->parent;
      if (info_of(k, loop)->subregion == 0) stop = info_of(k, loop)->mate;
    }
    if (stop > until) until = stop;
  }
}

static bool is_leaf(uint8_t op) {
  switch (op) {
    case VYRE__LIR_CONST:
    case VYRE__LIR_LOCAL_ID:
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_GRID_SIZE:
    case VYRE__LIR_LEN:
    case VYRE__LIR_LOOP_VALUE:
    case VYRE__LIR_FUEL:
      return true;
    default:
      return false;
  }
}

static bool all_operands(const storage_pass *k, uint32_t at,
                         bool (*holds)(const storage_pass *, vyre__val)) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(k->r, at), operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!holds(k, operands[i])) return false;
  }
  return true;
}

static bool value_uniform(const storage_pass *k, vyre__val v) {
  return info_of(k, v)->is_uniform;
}

static bool value_hoists(const storage_pass *k, vyre__val v) {
  const vyre__inst_info *info = info_of(k, v);
  return k->can_hoist[offset_of(k, v)] || (info->is_leaf && info->is_uniform);
}

/* Returns true if a load is uniform: the buffer is not written, or not since
 * the last barrier. */
static bool load_uniform(const storage_pass *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (!all_operands(k, at, value_uniform)) return false;
  if (!k->r->kernel->buffers[inst->aux].is_written) return true;
  return is_top(k, at) &&
         k->wrote_last[inst->aux] !=
             k->r->subregions[info_of(k, at)->subregion].region;
}

static bool inst_uniform(const storage_pass *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (inst->op == VYRE__LIR_LOCAL_ID) {
    return k->r->kernel->workgroup[inst->aux] == 1;
  }
  if (inst->op == VYRE__LIR_GET) return k->var_uniform[inst->aux];
  if (inst->op == VYRE__LIR_LOAD) return load_uniform(k, at);
  return (flags_at(k, at) & VYRE__LIRF_PURE) &&
         all_operands(k, at, value_uniform);
}

/* Returns true if a SET keeps the variable uniform. */
static bool set_uniform(const storage_pass *k, uint32_t at) {
  return is_top(k, at) && !k->is_disturbed[offset_of(k, at)] &&
         info_of(k, inst_at(k->r, at)->a)->is_uniform;
}

static void find_uniform(storage_pass *k) {
  const vyre__regions *r = k->r;
  for (uint32_t i = 0; i < r->kernel->var_count; i++) k->var_uniform[i] = true;
  for (bool changed = true; changed;) {
    changed = false;
    memset(k->wrote_last, 0, r->kernel->buffer_count * sizeof *k->wrote_last);
    for (uint32_t at = r->begin; at < r->end; at++) {
      vyre__inst_info *info = info_of(k, at);
      const vyre__lir_inst *inst = inst_at(r, at);
      if (!info->is_needed) continue;
      info->is_uniform = inst_uniform(k, at);
      bool writes = flags_at(k, at) & (VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS);
      if (writes && inst->op != VYRE__LIR_OUT_OF_FUEL) {
        k->wrote_last[inst->aux] = r->subregions[info->subregion].region;
      }
      if (inst->op == VYRE__LIR_SET && k->var_uniform[inst->aux] &&
          !set_uniform(k, at)) {
        k->var_uniform[inst->aux] = false;
        changed = true;
      }
    }
  }
}

/* Returns true for a load from a uniform at a valid constant index, which never
 * fails. */
static bool is_safe_load(const storage_pass *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  const vyre__lir_buffer *buffer = &k->r->kernel->buffers[inst->aux];
  const vyre__lir_inst *index = inst_at(k->r, inst->a);
  return buffer->kind == VYRE_MEMORY_UNIFORM && !buffer->is_written &&
         !inst->b && index->op == VYRE__LIR_CONST &&
         vyre__lir_const(index) < buffer->count &&
         buffer->unit == buffer->width;
}

/* Returns true if the workgroup may execute the instruction once, before its
 * region. Operations that are undefined for some operands may be guarded by an
 * IF and are not hoisted out of it. */
static bool find_hoist(const storage_pass *k, uint32_t at) {
  const vyre__inst_info *info = info_of(k, at);
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (!info->is_uniform || info->is_leaf || !info->subregion) return false;
  bool is_sure = is_top(k, at) && !k->is_disturbed[offset_of(k, at)];
  switch (inst->op) {
    case VYRE__LIR_GET:
      return k->r->var_storage[inst->aux] == VYRE__STORAGE_UNIFORM;
    case VYRE__LIR_LOAD:
      if (is_safe_load(k, at)) return true;
      break;
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_U:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      break;
    default:
      is_sure = true;
  }
  return is_sure && all_operands(k, at, value_hoists);
}

/* Returns true for operations that cost less than storing their result. */
static bool is_cheap(uint8_t op) {
  switch (op) {
    case VYRE__LIR_MUL:
    case VYRE__LIR_SELECT:
    case VYRE__LIR_ZEXT:
    case VYRE__LIR_TRUNC:
    case VYRE__LIR_BITCAST:
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB:
      return true;
    default:
      return (op >= VYRE__LIR_AND && op <= VYRE__LIR_SHR_S) ||
             (op >= VYRE__LIR_EQ && op <= VYRE__LIR_LE_S);
  }
}

static uint8_t find_cost(const storage_pass *k, uint32_t at) {
  const vyre__inst_info *info = info_of(k, at);
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (info->is_leaf || k->can_hoist[offset_of(k, at)]) return 0;
  if (!is_cheap(inst->op)) return NEVER;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands), sum = 1;
  for (uint32_t i = 0; i < count; i++)
    sum += k->cost[offset_of(k, operands[i])];
  return sum <= CHEAP ? (uint8_t)sum : NEVER;
}

static void find_costs(storage_pass *k) {
  for (uint32_t at = k->r->begin; at < k->r->end; at++) {
    vyre__inst_info *info = info_of(k, at);
    if (!info->is_needed) continue;
    info->is_leaf = is_leaf(inst_at(k->r, at)->op);
    k->can_hoist[offset_of(k, at)] = find_hoist(k, at);
    k->cost[offset_of(k, at)] = find_cost(k, at);
  }
}

/* --- variables ------------------------------------------------------------ */

static bool in_group_loop(const storage_pass *k, uint32_t at) {
  for (uint32_t open = info_of(k, at)->parent; open;
       open = info_of(k, open)->parent) {
    if (opens_loop(k->r, open) && info_of(k, open)->subregion == 0) return true;
  }
  return false;
}

/* Subregion and region in which a variable was seen first, and its storage. */
typedef struct sighting {
  uint32_t subregion, region;
  uint8_t storage;
} sighting;

static void note_access(const storage_pass *k, uint32_t at, sighting *seen) {
  uint32_t subregion = info_of(k, at)->subregion,
           region = k->r->subregions[subregion].region;
  bool sets = inst_is(k->r, at, VYRE__LIR_SET);
  if (!seen->subregion) {
    seen->subregion = subregion;
    seen->region = region;
    /* An iteration of a workgroup loop may read what the previous one wrote. */
    bool fresh = sets && is_top(k, at) && !k->is_disturbed[offset_of(k, at)];
    seen->storage = !fresh && in_group_loop(k, at) ? VYRE__STORAGE_GROUP
                                                   : VYRE__STORAGE_LOCAL;
  } else if (seen->region != region) {
    seen->storage = VYRE__STORAGE_GROUP;
  } else if (seen->subregion != subregion &&
             seen->storage == VYRE__STORAGE_LOCAL) {
    seen->storage = VYRE__STORAGE_ARRAY;
  }
}

static bool assign_variables(storage_pass *k, vyre_arena *arena) {
  vyre__regions *r = k->r;
  uint32_t count = r->kernel->var_count;
  sighting *seen = vyre__arena_array(arena, count, sizeof *seen);
  if (!seen) return false;
  memset(seen, 0, count * sizeof *seen);
  for (uint32_t at = r->begin; at < r->end; at++) {
    uint8_t op = inst_at(r, at)->op;
    if (op != VYRE__LIR_GET && op != VYRE__LIR_SET) continue;
    if (info_of(k, at)->is_needed)
      note_access(k, at, &seen[inst_at(r, at)->aux]);
  }
  for (uint32_t i = 0; i < count; i++) {
    r->var_storage[i] = seen[i].storage;
    if (seen[i].storage != VYRE__STORAGE_LOCAL && k->var_uniform[i]) {
      r->var_storage[i] = VYRE__STORAGE_UNIFORM;
    }
  }
  return true;
}

/* --- values --------------------------------------------------------------- */

static void hoist(storage_pass *k, vyre__val v);

static void rematerialize(storage_pass *k, vyre__val v, uint32_t subregion);

/* Records a use of value @p v in @p subregion (0: by the workgroup). */
static void use_in(storage_pass *k, vyre__val v, uint32_t subregion) {
  vyre__inst_info *info = info_of(k, v);
  if (info->is_leaf && (subregion || info->is_uniform)) return;
  if (info->subregion == subregion || info->storage == VYRE__STORAGE_BROADCAST)
    return;
  if (k->can_hoist[offset_of(k, v)]) {
    hoist(k, v);
  } else if (!subregion) {
    info->storage = VYRE__STORAGE_BROADCAST;
  } else if (k->cost[offset_of(k, v)] <= CHEAP &&
             info->storage < VYRE__STORAGE_ARRAY) {
    info->storage = VYRE__STORAGE_REMATERIALIZE;
    rematerialize(k, v, subregion);
  } else {
    uint8_t storage = k->r->subregions[subregion].region ==
                              k->r->subregions[info->subregion].region
                          ? VYRE__STORAGE_ARRAY
                          : VYRE__STORAGE_GROUP;
    if (info->storage < storage) info->storage = storage;
  }
}

static void hoist(storage_pass *k, vyre__val v) {
  vyre__inst_info *info = info_of(k, v);
  if (info->storage == VYRE__STORAGE_UNIFORM) return;
  info->storage = VYRE__STORAGE_UNIFORM;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(k->r, v), operands);
  for (uint32_t i = 0; i < count; i++) use_in(k, operands[i], 0);
}

static void rematerialize(storage_pass *k, vyre__val v, uint32_t subregion) {
  vyre__regions *r = k->r;
  if (k->stamp[offset_of(k, v)] == subregion) return;
  k->stamp[offset_of(k, v)] = subregion;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(r, v), operands);
  for (uint32_t i = 0; i < count; i++) use_in(k, operands[i], subregion);
  if (!vyre__reserve(k->allocator, &r->remats, &k->remat_capacity,
                     r->remat_count + 1, sizeof *r->remats, false)) {
    k->no_memory = true;
    return;
  }
  r->remats[r->remat_count++] = v;
  r->subregions[subregion].remat_count++;
}

/* Stores the condition of a rare IF. It is tested for a full strip and must not
 * be rematerialised. */
static void use_rare(storage_pass *k, uint32_t at) {
  vyre__val condition = inst_at(k->r, at)->a;
  vyre__inst_info *info = info_of(k, condition);
  if (info->is_leaf || k->can_hoist[offset_of(k, condition)]) return;
  if (info->subregion != info_of(k, at)->subregion &&
      info->storage < VYRE__STORAGE_ARRAY &&
      info->storage != VYRE__STORAGE_BROADCAST) {
    info->storage = VYRE__STORAGE_ARRAY;
  }
}

static void use_operands(storage_pass *k, uint32_t at) {
  const vyre__regions *r = k->r;
  const vyre__lir_inst *inst = inst_at(r, at);
  vyre__inst_info *info = info_of(k, at);
  uint32_t subregion = info->subregion;
  if (inst->op == VYRE__LIR_SET &&
      r->var_storage[inst->aux] == VYRE__STORAGE_UNIFORM) {
    subregion = 0;
    info->storage = VYRE__STORAGE_UNIFORM;
  }
  if (inst->op == VYRE__LIR_GET &&
      r->var_storage[inst->aux] == VYRE__STORAGE_UNIFORM) {
    hoist(k, at);
  }
  if (inst->op == VYRE__LIR_LOAD && is_safe_load(k, at)) hoist(k, at);
  if (subregion && r->subregions[subregion].is_rare &&
      r->subregions[subregion].begin == at) {
    use_rare(k, at);
  }
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) use_in(k, operands[i], subregion);
}

/* Records uses of the conditions of IFs that a subregion reopens. */
static void use_reopened(storage_pass *k, uint32_t subregion) {
  uint32_t open = info_of(k, k->r->subregions[subregion].begin)->parent;
  while (open && info_of(k, open)->subregion) {
    uint32_t begin = info_of(k, vyre__end_of(k->r, open))->mate;
    use_in(k, inst_at(k->r, begin)->a, subregion);
    open = info_of(k, open)->parent;
  }
}

static void assign_values(storage_pass *k) {
  vyre__regions *r = k->r;
  uint32_t subregion = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__inst_info *info = info_of(k, at);
    if (info->subregion > subregion) {
      subregion = info->subregion;
      r->subregions[subregion].first_remat = r->remat_count;
      use_reopened(k, subregion);
    }
    if (info->is_needed) use_operands(k, at);
  }
  for (uint32_t i = 0; i < r->kernel->step_count; i++) {
    const vyre__lir_step *step = &r->kernel->steps[i];
    if (!wants_bounds(r, step)) continue;
    use_in(k, step->first, 0);
    use_in(k, step->bound, 0);
  }
}

/* Removes values from the lists that turned out to be stored, and sorts the
 * rest by definition. */
static void compact_remats(storage_pass *k) {
  vyre__regions *r = k->r;
  for (uint32_t i = 1; i < r->subregion_count; i++) {
    vyre__subregion *subregion = &r->subregions[i];
    if (subregion->remat_count == 0) continue; /* the list may not exist */
    vyre__val *list = r->remats + subregion->first_remat;
    uint32_t count = 0;
    for (uint32_t j = 0; j < subregion->remat_count; j++) {
      vyre__val v = list[j];
      if (info_of(k, v)->storage != VYRE__STORAGE_REMATERIALIZE) continue;
      uint32_t to = count++;
      for (; to > 0 && list[to - 1] > v; to--) list[to] = list[to - 1];
      list[to] = v;
    }
    subregion->remat_count = count;
  }
}

/* --- work left for the loops ---------------------------------------------- */

static bool is_stored(uint8_t storage) {
  return storage == VYRE__STORAGE_BROADCAST || storage == VYRE__STORAGE_ARRAY ||
         storage == VYRE__STORAGE_GROUP;
}

/* Returns true if an instruction has work to do in the loop of its
 * subregion. */
static bool has_work(const storage_pass *k, uint32_t at) {
  const vyre__inst_info *info = info_of(k, at);
  uint16_t effects = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  if (info->storage == VYRE__STORAGE_UNIFORM) return false;
  return (flags_at(k, at) & effects) || inst_is(k->r, at, VYRE__LIR_SET) ||
         is_stored(info->storage) || info->sets_done;
}

static void count_uses(storage_pass *k) {
  vyre__regions *r = k->r;
  for (uint32_t i = 1; i < r->subregion_count; i++)
    r->subregions[i].is_empty = true;
  for (uint32_t at = r->end; at-- > r->begin;) {
    vyre__inst_info *info = info_of(k, at);
    if (!info->is_needed || !info->subregion) continue;
    if (has_work(k, at)) r->subregions[info->subregion].is_empty = false;
    uint16_t flags = flags_at(k, at);
    bool stays = has_work(k, at) || info->uses ||
                 (flags & (VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS));
    if (!stays || info->storage == VYRE__STORAGE_UNIFORM) continue;
    vyre__val operands[4];
    uint32_t count = vyre__lir_operands(inst_at(r, at), operands);
    for (uint32_t i = 0; i < count; i++) {
      vyre__inst_info *operand = info_of(k, operands[i]);
      operand->uses += operand->subregion == info->subregion;
    }
  }
  for (uint32_t i = 1; i < r->region_count; i++) {
    vyre__region *region = &r->regions[i];
    region->is_empty = true;
    for (uint32_t j = 0; j < region->subregion_count; j++) {
      region->is_empty &= r->subregions[region->first_subregion + j].is_empty;
    }
  }
}

static bool allocate(storage_pass *k, vyre_arena *arena) {
  const vyre__lir_kernel *kernel = k->r->kernel;
  size_t count = (size_t)(k->r->end - k->r->begin) + 1;
  uint32_t **lists[] = {&k->stack, &k->next_set, &k->stamp};
  bool **marks[] = {&k->is_disturbed, &k->can_hoist};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    *lists[i] = vyre__arena_array(arena, count, sizeof **lists[i]);
    if (!*lists[i]) return false;
    memset(*lists[i], 0, count * sizeof **lists[i]);
  }
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    *marks[i] = vyre__arena_array(arena, count, sizeof **marks[i]);
    if (!*marks[i]) return false;
    memset(*marks[i], 0, count * sizeof **marks[i]);
  }
  k->cost = vyre__arena_array(arena, count, sizeof *k->cost);
  k->first_set =
      vyre__arena_array(arena, kernel->var_count, sizeof *k->first_set);
  k->var_uniform =
      vyre__arena_array(arena, kernel->var_count, sizeof *k->var_uniform);
  k->wrote_last =
      vyre__arena_array(arena, kernel->buffer_count, sizeof *k->wrote_last);
  if (!k->cost || !k->first_set || !k->var_uniform || !k->wrote_last) {
    return false;
  }
  memset(k->cost, NEVER, count);
  memset(k->wrote_last, 0, kernel->buffer_count * sizeof *k->wrote_last);
  memset(k->first_set, 0, kernel->var_count * sizeof *k->first_set);
  return true;
}

vyre_code vyre__regions_assign_storage(vyre__regions *r, vyre_arena *arena,
                                       vyre_status *st) {
  storage_pass k = {.r = r, .allocator = arena->allocator};
  size_t count = (size_t)(r->end - r->begin) + 1;
  if (!allocate(&k, arena)) {
    return vyre__no_memory(st, "regions", "instructions", count);
  }
  find_needed(&k);
  find_disturbed(&k);
  find_uniform(&k);
  if (!assign_variables(&k, arena)) {
    return vyre__no_memory(st, "regions", "variables", r->kernel->var_count);
  }
  find_costs(&k);
  assign_values(&k);
  compact_remats(&k);
  count_uses(&k);
  /* The list grew outside the arena; move it there. */
  vyre__val *grown = r->remats;
  r->remats = vyre__arena_array(arena, r->remat_count, sizeof *r->remats);
  bool ok = r->remats && !k.no_memory;
  if (ok && grown) {
    memcpy(r->remats, grown, r->remat_count * sizeof *grown);
  }
  vyre__reserve_free(k.allocator, &grown, &k.remat_capacity, sizeof *grown);
  if (ok) return VYRE_OK;
  return vyre__no_memory(st, "regions", "rematerialised values",
                         r->remat_count);
}
