/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From one array of instructions to the next, everything through low->emit. */
#include <string.h>

#include "base/memory.h"
#include "lower/legalize_floats.h"

enum { NOT_FOLDED, TAKES_THEN, TAKES_ELSE };

typedef struct frame {
  size_t begin;   /* of the log */
  uint8_t folded; /* an IF whose condition turned out to be known */
  bool is_loop;
} frame;

typedef struct rewriter {
  vyre__lir_writer *low;
  const vyre__lir_writer *from;
  vyre__val *map;  /* per old value */
  uint32_t *match; /* IF: its ELSE or END; ELSE, LOOP: its END */
  frame *frames;
  size_t depth;
  uint32_t *high_var; /* per variable that becomes two: the other half */
} rewriter;

/* The upper half of a value that became a PAIR. */
static vyre__val high_of(const vyre__lir_writer *low, vyre__val v) {
  return low->code[v].op == VYRE__LIR_PAIR ? low->code[v].b : 0;
}

static vyre__val low_of(const vyre__lir_writer *low, vyre__val v) {
  return low->code[v].op == VYRE__LIR_PAIR ? low->code[v].a : 0;
}

/* Where each block goes on; gives how deep blocks nest. */
static size_t find_matches(const vyre__lir_writer *from, uint32_t *match,
                           uint32_t *stack) {
  size_t depth = 0, deepest = 0;
  for (uint32_t i = 0; i < from->count; i++) {
    switch ((vyre__lir_op)from->code[i].op) {
      case VYRE__LIR_IF:
      case VYRE__LIR_LOOP:
        stack[depth++] = i;
        if (depth > deepest) deepest = depth;
        break;
      case VYRE__LIR_ELSE:
        match[stack[depth - 1]] = i;
        stack[depth - 1] = i;
        break;
      case VYRE__LIR_END:
        match[stack[--depth]] = i;
        break;
      default:
        break;
    }
  }
  return deepest;
}

static void forget_set(rewriter *r, uint32_t loop) {
  for (uint32_t i = loop + 1; i < r->match[loop]; i++) {
    const vyre__lir_inst *inst = &r->from->code[i];
    if (r->low->adds_fuel &&
        (inst->op == VYRE__LIR_TICK || inst->op == VYRE__LIR_GRID_BARRIER)) {
      vyre__lir_forget(r->low, r->low->fuel_var);
    }
    if (inst->op == VYRE__LIR_SET) {
      vyre__lir_forget(r->low, inst->aux);
      if (r->high_var && r->high_var[inst->aux]) {
        vyre__lir_forget(r->low, r->high_var[inst->aux]);
      }
    }
  }
}

static void begin_loop(rewriter *r, uint32_t i) {
  vyre__lir_writer *low = r->low;
  vyre__lir_loop *loop = &low->loops[r->from->code[i].aux];
  loop->first = r->map[loop->first];
  loop->bound = r->map[loop->bound];
  if (loop->high_var && low->splits_u64) { /* split by this pass */
    loop->first_high = high_of(low, loop->first);
    loop->bound_high = high_of(low, loop->bound);
    loop->first = low_of(low, loop->first);
    loop->bound = low_of(low, loop->bound);
  } else if (loop->high_var) {
    loop->first_high = r->map[loop->first_high];
    loop->bound_high = r->map[loop->bound_high];
  }
  r->frames[r->depth++] = (frame){.begin = low->log_count, .is_loop = true};
  forget_set(r, i);
  (void)vyre__lir_loop_begin(low, r->from->code[i].aux);
}

/* Gives the instruction to go on behind. */
static uint32_t begin_if(rewriter *r, uint32_t i) {
  const vyre__lir_inst *inst = &r->from->code[i];
  vyre__lir_writer *low = r->low;
  vyre__val condition = r->map[inst->a];
  uint64_t known;
  if (!vyre__lir_is_constant(low, condition, &known)) {
    size_t begin = vyre__lir_if(low, condition, inst->hints);
    r->frames[r->depth++] = (frame){.begin = begin};
    return i;
  }
  r->frames[r->depth++] = (frame){.folded = known ? TAKES_THEN : TAKES_ELSE};
  if (known) return i;
  uint32_t next = r->match[i];
  /* Behind ELSE the other arm; END closes the frame by itself. */
  return r->from->code[next].op == VYRE__LIR_ELSE ? next : next - 1;
}

static uint32_t control(rewriter *r, uint32_t i) {
  vyre__lir_writer *low = r->low;
  frame *top = r->depth ? &r->frames[r->depth - 1] : NULL;
  switch ((vyre__lir_op)r->from->code[i].op) {
    case VYRE__LIR_IF:
      return begin_if(r, i);
    case VYRE__LIR_LOOP:
      begin_loop(r, i);
      return i;
    case VYRE__LIR_ELSE:
      if (top && top->folded == TAKES_THEN) return r->match[i] - 1; /* to END */
      if (top && !top->folded) vyre__lir_else(low, top->begin);
      return i;
    case VYRE__LIR_STEP:
      vyre__lir_to_step(low);
      return i;
    default: /* END */
      if (top && !top->folded) vyre__lir_end(low, top->begin);
      r->depth--;
      return i;
  }
}

/* GET and SET of a variable that became two. */
static void pair_variable(rewriter *r, uint32_t i) {
  vyre__lir_writer *low = r->low;
  const vyre__lir_inst *inst = &r->from->code[i];
  uint32_t high = r->high_var[inst->aux];
  if (low->no_memory) return;
  if (inst->op == VYRE__LIR_GET) {
    vyre__val lo = vyre__lir_get(low, inst->aux), hi = vyre__lir_get(low, high);
    r->map[i] = vyre__lir_push(low, &(vyre__lir_inst){.op = VYRE__LIR_PAIR,
                                                      .type = VYRE_TYPE_U64,
                                                      .v = {lo, hi, 0, 0}});
    return;
  }
  vyre__lir_inst value = low->code[r->map[inst->a]];
  vyre__lir_set(low, inst->aux, value.a);
  vyre__lir_set(low, high, value.b);
}

static void one(rewriter *r, uint32_t i) {
  vyre__lir_writer *low = r->low;
  vyre__lir_inst inst = r->from->code[i];
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  bool pairs = low->splits_u64 &&
               (inst.op == VYRE__LIR_GET || inst.op == VYRE__LIR_SET) &&
               r->from->vars[inst.aux].type == VYRE_TYPE_U64;
  if (pairs) {
    pair_variable(r, i);
    return;
  }
  if (inst.op == VYRE__LIR_GET) {
    r->map[i] = vyre__lir_get(low, inst.aux);
    return;
  }
  if (inst.op == VYRE__LIR_SET) {
    vyre__lir_set(low, inst.aux, r->map[inst.a]);
    return;
  }
  for (unsigned k = 0; k < info->operands; k++) {
    if (inst.v[k]) inst.v[k] = r->map[inst.v[k]];
  }
  r->map[i] = low->emit(low, &inst);
}

bool vyre__lir_copy_tables(vyre__lir_writer *low,
                           const vyre__lir_writer *from) {
  memcpy(low->workgroup, from->workgroup, sizeof low->workgroup);
  low->access_count = from->access_count;
  low->proven_count = from->proven_count;
  for (size_t i = 0; i < from->buffer_count; i++) {
    (void)vyre__lir_new_buffer(low, &from->buffers[i]);
  }
  for (size_t i = 0; i < from->var_count; i++) {
    vyre_type type =
        vyre__legalized_float_type(low, (vyre_type)from->vars[i].type);
    if (low->splits_u64 && type == VYRE_TYPE_U64) type = VYRE_TYPE_U32;
    (void)vyre__lir_new_var(low, from->vars[i].name, type);
  }
  if (!vyre__reserve(low->allocator, &low->loops, &low->loop_capacity,
                     from->loop_count, sizeof *low->loops, true)) {
    return false;
  }
  if (from->loop_count) {
    memcpy(low->loops, from->loops, sizeof *low->loops * from->loop_count);
  }
  low->loop_count = from->loop_count;
  return !low->no_memory;
}

/* Marks the loops around grid barriers in @p is_grid, by their index in loops. */
static void find_grid_loops(const rewriter *r, bool *is_grid) {
  for (uint32_t i = 1; i < r->from->count; i++) {
    if (r->from->code[i].op != VYRE__LIR_LOOP) continue;
    bool *found = &is_grid[r->from->code[i].aux];
    for (uint32_t k = i + 1; k < r->match[i] && !*found; k++) {
      *found = r->from->code[k].op == VYRE__LIR_GRID_BARRIER;
    }
  }
}

/* Adds the upper halves of 64-bit variables, behind all others. A loop over such a
 * variable is not counted any more, unless the host runs it. */
static bool split_variables(rewriter *r, vyre_arena *scratch) {
  const vyre__lir_writer *from = r->from;
  r->high_var = vyre__arena_array(scratch, from->var_count, sizeof(uint32_t));
  bool *is_grid = vyre__arena_array(scratch, from->loop_count, sizeof *is_grid);
  if (!r->high_var || !is_grid) return false;
  if (from->loop_count > 0) memset(is_grid, 0, from->loop_count);
  find_grid_loops(r, is_grid);
  for (size_t i = 0; i < from->var_count; i++) {
    r->high_var[i] = 0;
    if (from->vars[i].type != VYRE_TYPE_U64) continue;
    r->high_var[i] =
        vyre__lir_new_var(r->low, from->vars[i].name, VYRE_TYPE_U32);
  }
  for (size_t i = 0; i < r->low->loop_count; i++) {
    vyre__lir_loop *loop = &r->low->loops[i]; /* others have no variable */
    if (!loop->is_counted || r->high_var[loop->var] == 0) continue;
    loop->is_counted = is_grid[i];
    if (is_grid[i]) loop->high_var = r->high_var[loop->var];
  }
  return !r->low->no_memory;
}

void vyre__lir_rewrite(vyre__lir_writer *low, const vyre__lir_writer *from,
                       vyre_arena *scratch) {
  rewriter r = {.low = low, .from = from};
  uint32_t *stack = vyre__arena_array(scratch, from->count, sizeof *stack);
  r.map = vyre__arena_array(scratch, from->count, sizeof *r.map);
  r.match = vyre__arena_array(scratch, from->count, sizeof *r.match);
  if (!stack || !r.map || !r.match || !vyre__lir_copy_tables(low, from)) {
    low->no_memory = true;
    return;
  }
  size_t depth = find_matches(from, r.match, stack);
  r.frames = vyre__arena_array(scratch, depth + 1, sizeof *r.frames);
  if (!r.frames || (low->splits_u64 && !split_variables(&r, scratch))) {
    low->no_memory = true;
    return;
  }
  memset(r.map, 0, sizeof *r.map * from->count);
  if (low->adds_fuel) {
    low->fuel_var = vyre__lir_new_var(low, "fuel", VYRE_TYPE_U32);
    vyre__lir_set(
        low, low->fuel_var,
        vyre__lir_push(low, &(vyre__lir_inst){.op = VYRE__LIR_FUEL,
                                              .type = VYRE_TYPE_U32}));
  }
  for (uint32_t i = 1; i < from->count; i++) {
    if (low->no_memory || low->code_failed != VYRE_OK) return;
    low->here = from->places[i];
    if (vyre__lir_ops[from->code[i].op].flags & VYRE__LIRF_CONTROL) {
      i = control(&r, i);
    } else {
      one(&r, i);
    }
  }
}
