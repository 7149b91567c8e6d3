/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies LIR from one writer to another, passing every instruction through
 * lir->emit. */
#include <string.h>

#include "base/memory.h"
#include "lower/legalize_floats.h"

enum { NOT_FOLDED, TAKES_THEN, TAKES_ELSE };

typedef struct frame {
  size_t begin;   /* begin of the undo log */
  uint8_t folded; /* set for an IF with a constant condition */
  bool is_loop;
} frame;

typedef struct rewriter {
  vyre__lir_writer *lir;
  const vyre__lir_writer *from;
  vyre__val *map;  /* per old value: the new one */
  uint32_t *match; /* IF: its ELSE or END; ELSE, LOOP: its END */
  frame *frames;
  size_t depth;
  uint32_t *high_var; /* per split variable: its upper half */
} rewriter;

/* Returns the upper half of a PAIR. */
static vyre__val high_of(const vyre__lir_writer *lir, vyre__val v) {
  return lir->code[v].op == VYRE__LIR_PAIR ? lir->code[v].b : 0;
}

static vyre__val low_of(const vyre__lir_writer *lir, vyre__val v) {
  return lir->code[v].op == VYRE__LIR_PAIR ? lir->code[v].a : 0;
}

/* Finds the end of each block. Returns the maximum nesting depth. */
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

static void invalidate_set_vars(rewriter *r, uint32_t loop) {
  for (uint32_t i = loop + 1; i < r->match[loop]; i++) {
    const vyre__lir_inst *inst = &r->from->code[i];
    if (r->lir->adds_fuel &&
        (inst->op == VYRE__LIR_TICK || inst->op == VYRE__LIR_GRID_BARRIER)) {
      vyre__lir_invalidate(r->lir, r->lir->fuel_var);
    }
    if (inst->op == VYRE__LIR_SET) {
      vyre__lir_invalidate(r->lir, inst->aux);
      if (r->high_var && r->high_var[inst->aux]) {
        vyre__lir_invalidate(r->lir, r->high_var[inst->aux]);
      }
    }
  }
}

static void begin_loop(rewriter *r, uint32_t i) {
  vyre__lir_writer *lir = r->lir;
  vyre__lir_loop *loop = &lir->loops[r->from->code[i].aux];
  loop->first = r->map[loop->first];
  loop->bound = r->map[loop->bound];
  if (loop->high_var && lir->splits_u64) { /* split by this pass */
    loop->first_high = high_of(lir, loop->first);
    loop->bound_high = high_of(lir, loop->bound);
    loop->first = low_of(lir, loop->first);
    loop->bound = low_of(lir, loop->bound);
  } else if (loop->high_var) {
    loop->first_high = r->map[loop->first_high];
    loop->bound_high = r->map[loop->bound_high];
  }
  r->frames[r->depth++] = (frame){.begin = lir->log_count, .is_loop = true};
  invalidate_set_vars(r, i);
  (void)vyre__lir_loop_begin(lir, r->from->code[i].aux);
}

/* Begins an IF. Returns the index of the last skipped instruction. */
static uint32_t begin_if(rewriter *r, uint32_t i) {
  const vyre__lir_inst *inst = &r->from->code[i];
  vyre__lir_writer *lir = r->lir;
  vyre__val condition = r->map[inst->a];
  uint64_t known;
  if (!vyre__lir_is_constant(lir, condition, &known)) {
    size_t begin = vyre__lir_if(lir, condition, inst->hints);
    r->frames[r->depth++] = (frame){.begin = begin};
    return i;
  }
  r->frames[r->depth++] = (frame){.folded = known ? TAKES_THEN : TAKES_ELSE};
  if (known) return i;
  uint32_t next = r->match[i];
  /* After ELSE comes the other arm. END closes the frame itself. */
  return r->from->code[next].op == VYRE__LIR_ELSE ? next : next - 1;
}

static uint32_t rewrite_control(rewriter *r, uint32_t i) {
  vyre__lir_writer *lir = r->lir;
  frame *top = r->depth ? &r->frames[r->depth - 1] : NULL;
  switch ((vyre__lir_op)r->from->code[i].op) {
    case VYRE__LIR_IF:
      return begin_if(r, i);
    case VYRE__LIR_LOOP:
      begin_loop(r, i);
      return i;
    case VYRE__LIR_ELSE:
      if (top && top->folded == TAKES_THEN) return r->match[i] - 1; /* to END */
      if (top && !top->folded) vyre__lir_else(lir, top->begin);
      return i;
    case VYRE__LIR_STEP:
      vyre__lir_to_step(lir);
      return i;
    default: /* END */
      if (top && !top->folded) vyre__lir_end(lir, top->begin);
      r->depth--;
      return i;
  }
}

/* Rewrites GET and SET of a split variable. */
static void pair_variable(rewriter *r, uint32_t i) {
  vyre__lir_writer *lir = r->lir;
  const vyre__lir_inst *inst = &r->from->code[i];
  uint32_t high = r->high_var[inst->aux];
  if (lir->no_memory) return;
  if (inst->op == VYRE__LIR_GET) {
    vyre__val lo = vyre__lir_get(lir, inst->aux), hi = vyre__lir_get(lir, high);
    r->map[i] = vyre__lir_push(lir, &(vyre__lir_inst){.op = VYRE__LIR_PAIR,
                                                      .type = VYRE_TYPE_U64,
                                                      .v = {lo, hi, 0, 0}});
    return;
  }
  vyre__lir_inst value = lir->code[r->map[inst->a]];
  vyre__lir_set(lir, inst->aux, value.a);
  vyre__lir_set(lir, high, value.b);
}

static void rewrite_instruction(rewriter *r, uint32_t i) {
  vyre__lir_writer *lir = r->lir;
  vyre__lir_inst inst = r->from->code[i];
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  bool pairs = lir->splits_u64 &&
               (inst.op == VYRE__LIR_GET || inst.op == VYRE__LIR_SET) &&
               r->from->vars[inst.aux].type == VYRE_TYPE_U64;
  if (pairs) {
    pair_variable(r, i);
    return;
  }
  if (inst.op == VYRE__LIR_GET) {
    r->map[i] = vyre__lir_get(lir, inst.aux);
    return;
  }
  if (inst.op == VYRE__LIR_SET) {
    vyre__lir_set(lir, inst.aux, r->map[inst.a]);
    return;
  }
  for (unsigned k = 0; k < info->operands; k++) {
    if (inst.v[k]) inst.v[k] = r->map[inst.v[k]];
  }
  r->map[i] = lir->emit(lir, &inst);
}

bool vyre__lir_copy_tables(vyre__lir_writer *lir,
                           const vyre__lir_writer *from) {
  memcpy(lir->workgroup, from->workgroup, sizeof lir->workgroup);
  lir->access_count = from->access_count;
  lir->proven_count = from->proven_count;
  for (size_t i = 0; i < from->buffer_count; i++) {
    (void)vyre__lir_new_buffer(lir, &from->buffers[i]);
  }
  for (size_t i = 0; i < from->var_count; i++) {
    vyre_type type =
        vyre__legalized_float_type(lir, (vyre_type)from->vars[i].type);
    if (lir->splits_u64 && type == VYRE_TYPE_U64) type = VYRE_TYPE_U32;
    (void)vyre__lir_new_var(lir, from->vars[i].name, type);
  }
  if (!vyre__reserve(lir->allocator, &lir->loops, &lir->loop_capacity,
                     from->loop_count, sizeof *lir->loops, true)) {
    return false;
  }
  if (from->loop_count) {
    memcpy(lir->loops, from->loops, sizeof *lir->loops * from->loop_count);
  }
  lir->loop_count = from->loop_count;
  return !lir->no_memory;
}

/* Marks the loops that contain grid barriers in @p is_grid, by index in
 * loops. */
static void find_grid_loops(const rewriter *r, bool *is_grid) {
  for (uint32_t i = 1; i < r->from->count; i++) {
    if (r->from->code[i].op != VYRE__LIR_LOOP) continue;
    bool *found = &is_grid[r->from->code[i].aux];
    for (uint32_t k = i + 1; k < r->match[i] && !*found; k++) {
      *found = r->from->code[k].op == VYRE__LIR_GRID_BARRIER;
    }
  }
}

/* Adds upper halves of 64-bit variables, after all other variables. A loop over
 * such a variable stays counted only if the host runs it. */
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
        vyre__lir_new_var(r->lir, from->vars[i].name, VYRE_TYPE_U32);
  }
  for (size_t i = 0; i < r->lir->loop_count; i++) {
    vyre__lir_loop *loop = &r->lir->loops[i]; /* others have no variable */
    if (!loop->is_counted || r->high_var[loop->var] == 0) continue;
    loop->is_counted = is_grid[i];
    if (is_grid[i]) loop->high_var = r->high_var[loop->var];
  }
  return !r->lir->no_memory;
}

void vyre__lir_rewrite(vyre__lir_writer *lir, const vyre__lir_writer *from,
                       vyre_arena *scratch) {
  rewriter r = {.lir = lir, .from = from};
  uint32_t *stack = vyre__arena_array(scratch, from->count, sizeof *stack);
  r.map = vyre__arena_filled(scratch, from->count, sizeof *r.map, 0);
  r.match = vyre__arena_array(scratch, from->count, sizeof *r.match);
  if (!stack || !r.map || !r.match || !vyre__lir_copy_tables(lir, from)) {
    lir->no_memory = true;
    return;
  }
  size_t depth = find_matches(from, r.match, stack);
  r.frames = vyre__arena_array(scratch, depth + 1, sizeof *r.frames);
  if (!r.frames || (lir->splits_u64 && !split_variables(&r, scratch))) {
    lir->no_memory = true;
    return;
  }
  if (lir->adds_fuel) {
    lir->fuel_var = vyre__lir_new_var(lir, "fuel", VYRE_TYPE_U32);
    vyre__lir_set(
        lir, lir->fuel_var,
        vyre__lir_push(lir, &(vyre__lir_inst){.op = VYRE__LIR_FUEL,
                                              .type = VYRE_TYPE_U32}));
  }
  for (uint32_t i = 1; i < from->count; i++) {
    if (lir->no_memory || lir->code_failed != VYRE_OK) return;
    lir->here = from->source_locs[i];
    if (vyre__lir_ops[from->code[i].op].flags & VYRE__LIRF_CONTROL) {
      i = rewrite_control(&r, i);
    } else {
      rewrite_instruction(&r, i);
    }
  }
}
