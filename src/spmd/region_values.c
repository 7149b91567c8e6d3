/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What lives from one piece of a workgroup's work to the next, and how. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/regions_internal.h"

enum {
  NEVER = 255, /* cost of a value that is not made again */
  CHEAP = 6,   /* operations; below a store and a load, about */
};

typedef struct keeper {
  vyre__regions *r;
  vyre_allocator allocator;
  uint32_t *stack; /* values whose operands are needed too */
  uint32_t stack_count;
  uint32_t *first_set, *next_set; /* SETs of a variable, a list */
  bool *var_uniform;
  bool *is_disturbed; /* some invocations may have left before */
  bool *can_hoist;
  uint8_t *cost;
  uint32_t *stamp;      /* the piece that it was last remade in */
  uint32_t *wrote_last; /* per buffer: the run that wrote it last, so far */
  size_t remake_capacity;
  bool no_memory;
} keeper;

static vyre__inst_info *role_of(const keeper *k, vyre__val v) {
  return vyre__inst_info_of(k->r, v);
}

static uint32_t slot(const keeper *k, vyre__val v) {
  return v - k->r->begin;
}

static uint16_t flags_at(const keeper *k, uint32_t at) {
  return vyre__lir_ops[inst_at(k->r, at)->op].flags;
}

/* Directly in a block of the workgroup: every invocation gets there. */
static bool is_top(const keeper *k, uint32_t at) {
  uint32_t open = role_of(k, at)->parent;
  return !open || role_of(k, open)->subregion == 0;
}

/* --- what is needed ---------------------------------------------------------*/

static void need_value(keeper *k, vyre__val v) {
  vyre__inst_info *role = role_of(k, v);
  if (role->is_needed) return;
  role->is_needed = true;
  k->stack[k->stack_count++] = v;
}

static void need_var(keeper *k, uint32_t var) {
  if (k->r->var_needed[var]) return;
  k->r->var_needed[var] = true;
  for (uint32_t at = k->first_set[var]; at; at = k->next_set[slot(k, at)]) {
    need_value(k, at);
  }
}

static bool is_shared(const keeper *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  return inst->op != VYRE__LIR_OUT_OF_FUEL && (flags_at(k, at) & memory) &&
         k->r->kernel->buffers[inst->aux].kind == VYRE_MEMORY_SHARED;
}

/* Nobody but the workgroup sees shared memory: what is written there is needed
 * once something is read. */
static void need_shared(keeper *k, uint32_t buffer) {
  const vyre__regions *r = k->r;
  if (k->wrote_last[buffer]) return; /* not used otherwise yet */
  k->wrote_last[buffer] = 1;
  for (uint32_t at = r->begin; at < r->end; at++) {
    if (role_of(k, at)->is_reached && is_shared(k, at) &&
        inst_at(r, at)->aux == buffer && !inst_is(r, at, VYRE__LIR_LOAD)) {
      need_value(k, at);
    }
  }
}

/* Bounds of grid loops are computed for the host's steps. */
static bool wants_bounds(const vyre__regions *r, const vyre__lir_step *step) {
  return step->kind == VYRE__STEP_FOR && step->first >= r->begin &&
         step->first < r->end && step->bound >= r->begin &&
         step->bound < r->end;
}

static void need_bounds(keeper *k) {
  const vyre__lir_kernel *kernel = k->r->kernel;
  for (uint32_t i = 0; i < kernel->step_count; i++) {
    if (!wants_bounds(k->r, &kernel->steps[i])) continue;
    need_value(k, kernel->steps[i].first);
    need_value(k, kernel->steps[i].bound);
  }
}

static void find_needed(keeper *k) {
  const vyre__regions *r = k->r;
  need_bounds(k);
  uint16_t roots = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS | VYRE__LIRF_CONTROL |
                   VYRE__LIRF_JUMPS | VYRE__LIRF_BARRIER;
  for (uint32_t at = r->end; at-- > r->begin;) {
    const vyre__lir_inst *inst = inst_at(r, at);
    if (!role_of(k, at)->is_reached || inst->op != VYRE__LIR_SET) continue;
    k->next_set[slot(k, at)] = k->first_set[inst->aux];
    k->first_set[inst->aux] = at;
  }
  for (uint32_t at = r->begin; at < r->end; at++) {
    if (role_of(k, at)->is_reached && (flags_at(k, at) & roots) &&
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

/* --- what is uniform --------------------------------------------------------*/

/* From an EXIT in a piece on, group code must not do what only some would; from
 * a CONTINUE on, until the step. */
static void find_disturbed(keeper *k) {
  const vyre__regions *r = k->r;
  uint32_t until = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__inst_info *role = role_of(k, at);
    k->is_disturbed[slot(k, at)] = at < until;
    uint8_t op = inst_at(r, at)->op;
    if (!role->subregion || !role->is_reached) continue;
    uint32_t stop = 0;
    if (op == VYRE__LIR_EXIT) stop = r->end;
    if (op == VYRE__LIR_CONTINUE) {
      uint32_t loop = role->parent;
      while (!inst_is(r, loop, VYRE__LIR_LOOP)) loop = role_of(k, loop)->parent;
      if (role_of(k, loop)->subregion == 0) stop = role_of(k, loop)->mate;
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

static bool all_operands(const keeper *k, uint32_t at,
                         bool (*holds)(const keeper *, vyre__val)) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(k->r, at), operands);
  for (uint32_t i = 0; i < count; i++) {
    if (!holds(k, operands[i])) return false;
  }
  return true;
}

static bool value_uniform(const keeper *k, vyre__val v) {
  return role_of(k, v)->is_uniform;
}

static bool value_hoists(const keeper *k, vyre__val v) {
  const vyre__inst_info *role = role_of(k, v);
  return k->can_hoist[slot(k, v)] || (role->is_leaf && role->is_uniform);
}

/* A load sees the same for all if nobody writes, or nobody since the barrier. */
static bool load_uniform(const keeper *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (!all_operands(k, at, value_uniform)) return false;
  if (!k->r->kernel->buffers[inst->aux].is_written) return true;
  return is_top(k, at) &&
         k->wrote_last[inst->aux] !=
             k->r->subregions[role_of(k, at)->subregion].region;
}

static bool inst_uniform(const keeper *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (inst->op == VYRE__LIR_LOCAL_ID) {
    return k->r->kernel->workgroup[inst->aux] == 1;
  }
  if (inst->op == VYRE__LIR_GET) return k->var_uniform[inst->aux];
  if (inst->op == VYRE__LIR_LOAD) return load_uniform(k, at);
  return (flags_at(k, at) & VYRE__LIRF_PURE) &&
         all_operands(k, at, value_uniform);
}

/* Whether a set leaves the variable the same for all. */
static bool set_uniform(const keeper *k, uint32_t at) {
  return is_top(k, at) && !k->is_disturbed[slot(k, at)] &&
         role_of(k, inst_at(k->r, at)->a)->is_uniform;
}

static void find_uniform(keeper *k) {
  const vyre__regions *r = k->r;
  for (uint32_t i = 0; i < r->kernel->var_count; i++) k->var_uniform[i] = true;
  for (bool changed = true; changed;) {
    changed = false;
    memset(k->wrote_last, 0, r->kernel->buffer_count * sizeof *k->wrote_last);
    for (uint32_t at = r->begin; at < r->end; at++) {
      vyre__inst_info *role = role_of(k, at);
      const vyre__lir_inst *inst = inst_at(r, at);
      if (!role->is_needed) continue;
      role->is_uniform = inst_uniform(k, at);
      bool writes = flags_at(k, at) & (VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS);
      if (writes && inst->op != VYRE__LIR_OUT_OF_FUEL) {
        k->wrote_last[inst->aux] = r->subregions[role->subregion].region;
      }
      if (inst->op == VYRE__LIR_SET && k->var_uniform[inst->aux] &&
          !set_uniform(k, at)) {
        k->var_uniform[inst->aux] = false;
        changed = true;
      }
    }
  }
}

/* A uniform that is always there, whatever is asked before. */
static bool is_safe_load(const keeper *k, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(k->r, at);
  const vyre__lir_buffer *buffer = &k->r->kernel->buffers[inst->aux];
  const vyre__lir_inst *index = inst_at(k->r, inst->a);
  return buffer->kind == VYRE_MEMORY_UNIFORM && !buffer->is_written &&
         !inst->b && index->op == VYRE__LIR_CONST &&
         vyre__lir_const(index) < buffer->count &&
         buffer->unit == buffer->width;
}

/* Whether the workgroup may do it once, before the run that it stands in.
 * Operations that are not defined for all operands may be guarded by an IF. */
static bool find_hoist(const keeper *k, uint32_t at) {
  const vyre__inst_info *role = role_of(k, at);
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (!role->is_uniform || role->is_leaf || !role->subregion) return false;
  bool is_sure = is_top(k, at) && !k->is_disturbed[slot(k, at)];
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

/* Operations that cost less than keeping their result. */
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

static uint8_t find_cost(const keeper *k, uint32_t at) {
  const vyre__inst_info *role = role_of(k, at);
  const vyre__lir_inst *inst = inst_at(k->r, at);
  if (role->is_leaf || k->can_hoist[slot(k, at)]) return 0;
  if (!is_cheap(inst->op)) return NEVER;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands), sum = 1;
  for (uint32_t i = 0; i < count; i++) sum += k->cost[slot(k, operands[i])];
  return sum <= CHEAP ? (uint8_t)sum : NEVER;
}

static void find_costs(keeper *k) {
  for (uint32_t at = k->r->begin; at < k->r->end; at++) {
    vyre__inst_info *role = role_of(k, at);
    if (!role->is_needed) continue;
    role->is_leaf = is_leaf(inst_at(k->r, at)->op);
    k->can_hoist[slot(k, at)] = find_hoist(k, at);
    k->cost[slot(k, at)] = find_cost(k, at);
  }
}

/* --- variables --------------------------------------------------------------*/

static bool in_group_loop(const keeper *k, uint32_t at) {
  for (uint32_t open = role_of(k, at)->parent; open;
       open = role_of(k, open)->parent) {
    if (opens_loop(k->r, open) && role_of(k, open)->subregion == 0) return true;
  }
  return false;
}

/* Where a variable is seen: in which piece, run, and in how many. */
typedef struct sighting {
  uint32_t piece, part;
  uint8_t keep;
} sighting;

static void see(const keeper *k, uint32_t at, sighting *seen) {
  uint32_t piece = role_of(k, at)->subregion,
           part = k->r->subregions[piece].region;
  bool sets = inst_is(k->r, at, VYRE__LIR_SET);
  if (!seen->piece) {
    seen->piece = piece;
    seen->part = part;
    /* A round of a loop of the workgroup may see what the last one left. */
    bool fresh = sets && is_top(k, at) && !k->is_disturbed[slot(k, at)];
    seen->keep = !fresh && in_group_loop(k, at) ? VYRE__STORAGE_GROUP
                                                : VYRE__STORAGE_LOCAL;
  } else if (seen->part != part) {
    seen->keep = VYRE__STORAGE_GROUP;
  } else if (seen->piece != piece && seen->keep == VYRE__STORAGE_LOCAL) {
    seen->keep = VYRE__STORAGE_ARRAY;
  }
}

static bool keep_variables(keeper *k, vyre_arena *arena) {
  vyre__regions *r = k->r;
  uint32_t count = r->kernel->var_count;
  sighting *seen = vyre__arena_array(arena, count, sizeof *seen);
  if (!seen) return false;
  memset(seen, 0, count * sizeof *seen);
  for (uint32_t at = r->begin; at < r->end; at++) {
    uint8_t op = inst_at(r, at)->op;
    if (op != VYRE__LIR_GET && op != VYRE__LIR_SET) continue;
    if (role_of(k, at)->is_needed) see(k, at, &seen[inst_at(r, at)->aux]);
  }
  for (uint32_t i = 0; i < count; i++) {
    r->var_storage[i] = seen[i].keep;
    if (seen[i].keep != VYRE__STORAGE_LOCAL && k->var_uniform[i]) {
      r->var_storage[i] = VYRE__STORAGE_UNIFORM;
    }
  }
  return true;
}

/* --- values -----------------------------------------------------------------*/

static void hoist(keeper *k, vyre__val v);

static void remake(keeper *k, vyre__val v, uint32_t piece);

/* Value @p v is used in @p piece (0: by the workgroup). */
static void use_in(keeper *k, vyre__val v, uint32_t piece) {
  vyre__inst_info *role = role_of(k, v);
  if (role->is_leaf && (piece || role->is_uniform)) return;
  if (role->subregion == piece || role->storage == VYRE__STORAGE_BROADCAST)
    return;
  if (k->can_hoist[slot(k, v)]) {
    hoist(k, v);
  } else if (!piece) {
    role->storage = VYRE__STORAGE_BROADCAST;
  } else if (k->cost[slot(k, v)] <= CHEAP &&
             role->storage < VYRE__STORAGE_ARRAY) {
    role->storage = VYRE__STORAGE_REMATERIALIZE;
    remake(k, v, piece);
  } else {
    uint8_t keep = k->r->subregions[piece].region ==
                           k->r->subregions[role->subregion].region
                       ? VYRE__STORAGE_ARRAY
                       : VYRE__STORAGE_GROUP;
    if (role->storage < keep) role->storage = keep;
  }
}

static void hoist(keeper *k, vyre__val v) {
  vyre__inst_info *role = role_of(k, v);
  if (role->storage == VYRE__STORAGE_UNIFORM) return;
  role->storage = VYRE__STORAGE_UNIFORM;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(k->r, v), operands);
  for (uint32_t i = 0; i < count; i++) use_in(k, operands[i], 0);
}

static void remake(keeper *k, vyre__val v, uint32_t piece) {
  vyre__regions *r = k->r;
  if (k->stamp[slot(k, v)] == piece) return;
  k->stamp[slot(k, v)] = piece;
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(r, v), operands);
  for (uint32_t i = 0; i < count; i++) use_in(k, operands[i], piece);
  if (!vyre__reserve(k->allocator, &r->remats, &k->remake_capacity,
                     r->remat_count + 1, sizeof *r->remats, false)) {
    k->no_memory = true;
    return;
  }
  r->remats[r->remat_count++] = v;
  r->subregions[piece].remat_count++;
}

/* The condition of a rare IF is asked for the whole strip: it is kept, not made
 * again. */
static void use_rare(keeper *k, uint32_t at) {
  vyre__val condition = inst_at(k->r, at)->a;
  vyre__inst_info *role = role_of(k, condition);
  if (role->is_leaf || k->can_hoist[slot(k, condition)]) return;
  if (role->subregion != role_of(k, at)->subregion &&
      role->storage < VYRE__STORAGE_ARRAY &&
      role->storage != VYRE__STORAGE_BROADCAST) {
    role->storage = VYRE__STORAGE_ARRAY;
  }
}

static void use_operands(keeper *k, uint32_t at) {
  const vyre__regions *r = k->r;
  const vyre__lir_inst *inst = inst_at(r, at);
  vyre__inst_info *role = role_of(k, at);
  uint32_t piece = role->subregion;
  if (inst->op == VYRE__LIR_SET &&
      r->var_storage[inst->aux] == VYRE__STORAGE_UNIFORM) {
    piece = 0;
    role->storage = VYRE__STORAGE_UNIFORM;
  }
  if (inst->op == VYRE__LIR_GET &&
      r->var_storage[inst->aux] == VYRE__STORAGE_UNIFORM) {
    hoist(k, at);
  }
  if (inst->op == VYRE__LIR_LOAD && is_safe_load(k, at)) hoist(k, at);
  if (piece && r->subregions[piece].is_rare &&
      r->subregions[piece].begin == at) {
    use_rare(k, at);
  }
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) use_in(k, operands[i], piece);
}

/* Conditions of IFs that a piece begins inside of. */
static void use_reopened(keeper *k, uint32_t piece) {
  uint32_t open = role_of(k, k->r->subregions[piece].begin)->parent;
  while (open && role_of(k, open)->subregion) {
    uint32_t begin = role_of(k, vyre__end_of(k->r, open))->mate;
    use_in(k, inst_at(k->r, begin)->a, piece);
    open = role_of(k, open)->parent;
  }
}

static void keep_values(keeper *k) {
  vyre__regions *r = k->r;
  uint32_t piece = 0;
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__inst_info *role = role_of(k, at);
    if (role->subregion > piece) {
      piece = role->subregion;
      r->subregions[piece].first_remat = r->remat_count;
      use_reopened(k, piece);
    }
    if (role->is_needed) use_operands(k, at);
  }
  for (uint32_t i = 0; i < r->kernel->step_count; i++) {
    const vyre__lir_step *step = &r->kernel->steps[i];
    if (!wants_bounds(r, step)) continue;
    use_in(k, step->first, 0);
    use_in(k, step->bound, 0);
  }
}

/* A piece that remakes a value which turned out to be kept after all does not
 * need it; the rest in the order in which they were defined. */
static void tidy_remakes(keeper *k) {
  vyre__regions *r = k->r;
  for (uint32_t i = 1; i < r->subregion_count; i++) {
    vyre__subregion *piece = &r->subregions[i];
    if (piece->remat_count == 0) continue; /* there may be no list at all */
    vyre__val *list = r->remats + piece->first_remat;
    uint32_t kept = 0;
    for (uint32_t j = 0; j < piece->remat_count; j++) {
      vyre__val v = list[j];
      if (role_of(k, v)->storage != VYRE__STORAGE_REMATERIALIZE) continue;
      uint32_t to = kept++;
      for (; to > 0 && list[to - 1] > v; to--) list[to] = list[to - 1];
      list[to] = v;
    }
    piece->remat_count = kept;
  }
}

/* --- what is left for the loops ---------------------------------------------*/

static bool is_kept_apart(uint8_t keep) {
  return keep == VYRE__STORAGE_BROADCAST || keep == VYRE__STORAGE_ARRAY ||
         keep == VYRE__STORAGE_GROUP;
}

/* Whether an instruction does something in its piece's loop. */
static bool does_something(const keeper *k, uint32_t at) {
  const vyre__inst_info *role = role_of(k, at);
  uint16_t effects = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  if (role->storage == VYRE__STORAGE_UNIFORM) return false;
  return (flags_at(k, at) & effects) || inst_is(k->r, at, VYRE__LIR_SET) ||
         is_kept_apart(role->storage) || role->sets_done;
}

static void count_uses(keeper *k) {
  vyre__regions *r = k->r;
  for (uint32_t i = 1; i < r->subregion_count; i++)
    r->subregions[i].is_empty = true;
  for (uint32_t at = r->end; at-- > r->begin;) {
    vyre__inst_info *role = role_of(k, at);
    if (!role->is_needed || !role->subregion) continue;
    if (does_something(k, at)) r->subregions[role->subregion].is_empty = false;
    uint16_t flags = flags_at(k, at);
    bool stays = does_something(k, at) || role->uses ||
                 (flags & (VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS));
    if (!stays || role->storage == VYRE__STORAGE_UNIFORM) continue;
    vyre__val operands[4];
    uint32_t count = vyre__lir_operands(inst_at(r, at), operands);
    for (uint32_t i = 0; i < count; i++) {
      vyre__inst_info *operand = role_of(k, operands[i]);
      operand->uses += operand->subregion == role->subregion;
    }
  }
  for (uint32_t i = 1; i < r->region_count; i++) {
    vyre__region *part = &r->regions[i];
    part->is_empty = true;
    for (uint32_t j = 0; j < part->subregion_count; j++) {
      part->is_empty &= r->subregions[part->first_subregion + j].is_empty;
    }
  }
}

static bool take_arrays(keeper *k, vyre_arena *arena) {
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
  keeper k = {.r = r, .allocator = arena->allocator};
  size_t count = (size_t)(r->end - r->begin) + 1;
  if (!take_arrays(&k, arena)) {
    return vyre__no_memory(st, "regions", "instructions", count);
  }
  find_needed(&k);
  find_disturbed(&k);
  find_uniform(&k);
  if (!keep_variables(&k, arena)) {
    return vyre__no_memory(st, "regions", "variables", r->kernel->var_count);
  }
  find_costs(&k);
  keep_values(&k);
  tidy_remakes(&k);
  count_uses(&k);
  /* The list grew in memory of its own; it belongs into the arena. */
  vyre__val *grown = r->remats;
  r->remats = vyre__arena_array(arena, r->remat_count, sizeof *r->remats);
  bool ok = r->remats && !k.no_memory;
  if (ok && grown) {
    memcpy(r->remats, grown, r->remat_count * sizeof *grown);
  }
  vyre__reserve_free(k.allocator, &grown, &k.remake_capacity, sizeof *grown);
  if (ok) return VYRE_OK;
  return vyre__no_memory(st, "regions", "remakes", r->remat_count);
}
