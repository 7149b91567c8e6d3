/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/symbolic.h"

#include <string.h>

#include "analyze/racy_guards.h"
#include "analyze/terms.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

/* Term of a local's value; 0 if several values are possible: reading it makes
 * a new term. */
typedef vyre__term fact;

static fact join(fact a, fact b) {
  return a == b ? a : 0;
}

#include "analyze/env.h"

typedef struct walker {
  const vyre_program *program;
  const vyre__ranges *ranges;
  uint8_t *flags;
  env env;
  vyre__terms terms;
  bool quiet;     /* re-evaluation: accesses are not judged */
  bool reachable; /* control reaches the end of the last statement */
} walker;

/* --- values ----------------------------------------------------------------*/

static vyre__term walk_value(walker *w, vyre__id id);

static vyre__term length_term(walker *w, uint32_t buffer) {
  uint32_t count = w->program->buffers[buffer].count;
  if (count) return vyre__terms_literal(&w->terms, count);
  const uint32_t operands[3] = {buffer, 0, 0};
  return vyre__terms_make(&w->terms, VYRE__OP_LEN, VYRE_TYPE_U32, operands);
}

static void check_access(walker *w, vyre__id id, uint32_t buffer,
                         vyre__term index) {
  if (w->quiet || (w->flags[id] & VYRE__RANGE_INSIDE) || index == 0) return;
  const vyre__id at = w->program->nodes[id].b;
  if (w->program->nodes[at].op == VYRE__OP_AT) {
    w->flags[id] |= w->flags[at] & VYRE__RANGE_INSIDE;
    return;
  }
  vyre__term length = length_term(w, buffer);
  if (w->terms.no_memory) return;
  if ((vyre__terms_natural(&w->terms, index) &&
       vyre__terms_less(&w->terms, index, length)) ||
      vyre__terms_sum_inside(&w->terms, index, length)) {
    w->flags[id] |= VYRE__RANGE_INSIDE;
  }
}

static vyre__term walk_local(walker *w, const vyre__node *node) {
  vyre__term term = w->env.locals[node->a];
  if (term) return term;
  term = vyre__terms_fresh(&w->terms, (vyre_type)node->type);
  env_set(&w->env, node->a, term);
  return term;
}

/* Two loads of a uniform agree; every other load is a new value, even of
 * `read` buffers (analyze/racy_guards.h). */
static vyre__term walk_load(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  const vyre_buffer_decl *buffer = &w->program->buffers[node->a];
  vyre__term index = walk_value(w, node->b);
  check_access(w, id, node->a, index);
  if (!vyre__has_interval(node->type)) return 0;
  if (buffer->kind != VYRE_MEMORY_UNIFORM || index == 0) {
    return vyre__terms_fresh(&w->terms, (vyre_type)node->type);
  }
  const uint32_t operands[3] = {node->a, index, 0};
  return vyre__terms_make(&w->terms, VYRE__OP_LOAD, (vyre_type)node->type,
                          operands);
}

/* Assumes the condition of guard @p id, unless it is racy. */
static void suppose_guard(walker *w, vyre__id id, vyre__term condition,
                          bool holds) {
  if (vyre__is_racy(w->ranges->unsteady, id, VYRE__RACY_GUARD)) return;
  vyre__terms_suppose(&w->terms, condition, holds);
}

/* Evaluates && and ||: the right side is evaluated under the result of the
 * left side. */
static vyre__term walk_both(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  uint32_t operands[3] = {walk_value(w, node->a), 0, 0};
  vyre__terms_mark mark = vyre__terms_here(&w->terms);
  suppose_guard(w, id, operands[0], node->op == VYRE__OP_LAND);
  operands[1] = walk_value(w, node->b);
  vyre__terms_rewind(&w->terms, mark);
  return vyre__terms_make(&w->terms, node->op, VYRE_TYPE_BOOL, operands);
}

/* Evaluates c ? x : y: each side under its condition. */
static vyre__term walk_conditional(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  const vyre__id sides[2] = {node->b, node->c};
  uint32_t operands[3] = {walk_value(w, node->a), 0, 0};
  for (int side = 0; side < 2; side++) {
    vyre__terms_mark mark = vyre__terms_here(&w->terms);
    suppose_guard(w, id, operands[0], side == 0);
    operands[1 + side] = walk_value(w, sides[side]);
    vyre__terms_rewind(&w->terms, mark);
  }
  if (!vyre__has_interval(node->type)) return 0;
  if (!operands[0] || !operands[1] || !operands[2]) {
    return vyre__terms_fresh(&w->terms, (vyre_type)node->type);
  }
  return vyre__terms_make(&w->terms, VYRE__OP_SELECT, (vyre_type)node->type,
                          operands);
}

/* Returns true for a conversion that keeps the value: it has the term of its
 * operand. */
static bool keeps_value(const walker *w, const vyre__node *node) {
  if (node->op != VYRE__OP_CAST && node->op != VYRE__OP_BITCAST) return false;
  unsigned from = w->program->nodes[node->a].type;
  return vyre__has_interval(from) && vyre__has_interval(node->type) &&
         node->type != VYRE_TYPE_BOOL &&
         vyre__interval_inside(vyre__range_of(w->ranges, node->a),
                               vyre__interval_full((vyre_type)node->type));
}

/* Represents x << c as x * 2^c, which wraps alike. */
static vyre__term shifted_left(walker *w, const vyre__node *node,
                               uint32_t operands[3]) {
  vyre__interval count = vyre__range_of(w->ranges, node->b);
  bool is_wide = node->type == VYRE_TYPE_U64 || node->type == VYRE_TYPE_I64;
  vyre__op op = VYRE__OP_SHL;
  if (count.lo == count.hi && count.hi < (is_wide ? 62 : 30)) {
    op = VYRE__OP_MUL;
    operands[1] =
        vyre__terms_literal(&w->terms, (vyre__wide)1 << (int)count.lo);
  }
  return vyre__terms_make(&w->terms, op, (vyre_type)node->type, operands);
}

/* Builds the term of an operation that depends on its operands only. If an
 * operand has no term (a float), the result is a new value. */
static vyre__term walk_operation(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  uint32_t operands[3] = {0, 0, 0};
  bool known = count >= 1 && count <= 3 && vyre__ops[node->op].flags == 0 &&
               node->op != VYRE__OP_CALL;
  for (uint32_t i = 0; i < count; i++) {
    vyre__term term = walk_value(w, ids[i]);
    if (i < 3) operands[i] = term;
    known = known && term != 0;
  }
  if (!vyre__has_interval(node->type)) return 0;
  if (!known) return vyre__terms_fresh(&w->terms, (vyre_type)node->type);
  if (keeps_value(w, node)) return operands[0];
  if (node->op == VYRE__OP_SHL) return shifted_left(w, node, operands);
  return vyre__terms_make(&w->terms, node->op, (vyre_type)node->type, operands);
}

/* Walks the index of an access with dimensions: each index must be below its
 * extent. */
static vyre__term walk_at(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  const uint32_t *list = w->program->lists + node->a;
  bool inside = !w->terms.no_memory;
  for (uint32_t i = 0; i + 1 < node->b; i += VYRE__AT_STEP) {
    const vyre__term index = walk_value(w, list[i]);
    const vyre__term extent = walk_value(w, list[i + 1]);
    (void)walk_value(w, list[i + 2]);
    inside = inside && index && extent &&
             vyre__terms_natural(&w->terms, index) &&
             (vyre__terms_less(&w->terms, index, extent) ||
              vyre__terms_sum_inside(&w->terms, index, extent));
  }
  (void)walk_value(w, list[node->b - 1]);
  if (inside && !w->quiet) w->flags[id] |= VYRE__RANGE_INSIDE;
  return vyre__terms_fresh(&w->terms, (vyre_type)node->type);
}

static vyre__term walk_atomic(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  vyre__term index = walk_value(w, node->b);
  for (uint32_t i = 1; i < count; i++) walk_value(w, ids[i]);
  check_access(w, id, node->a, index);
  if (!vyre__has_interval(node->type)) return 0;
  return vyre__terms_fresh(&w->terms, (vyre_type)node->type);
}

static vyre__term term_of(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  uint32_t operands[3] = {0, 0, 0};
  switch ((vyre__op)node->op) {
    case VYRE__OP_LOCAL:
      return vyre__has_interval(node->type) ? walk_local(w, node) : 0;
    case VYRE__OP_LEN:
      return length_term(w, node->a);
    case VYRE__OP_GLOBAL_ID:
    case VYRE__OP_LOCAL_ID:
    case VYRE__OP_WORKGROUP_ID:
    case VYRE__OP_WORKGROUP_SIZE:
    case VYRE__OP_GRID_SIZE:
    case VYRE__OP_ITEM:
      operands[0] = node->aux;
      if (!vyre__has_interval(node->type)) return 0;
      return vyre__terms_make(&w->terms, node->op, (vyre_type)node->type,
                              operands);
    case VYRE__OP_AT:
      return walk_at(w, id);
    case VYRE__OP_LOAD:
      return walk_load(w, id);
    case VYRE__OP_LAND:
    case VYRE__OP_LOR:
      return walk_both(w, id);
    case VYRE__OP_COND:
      return walk_conditional(w, id);
    default:
      break;
  }
  if (vyre__ops[node->op].flags & VYRE__OPF_ATOMICS) return walk_atomic(w, id);
  return walk_operation(w, id);
}

/* After memory is exhausted, terms are meaningless. Nothing is proven from
 * then on, and the analysis fails. */
static vyre__term walk_value(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__interval range = {0, 0};
  if (vyre__has_interval(node->type)) {
    range = vyre__range_of(w->ranges, id);
    if (node->op == VYRE__OP_LITERAL) {
      return vyre__terms_literal(&w->terms, range.lo);
    }
  }
  vyre__term term = term_of(w, id);
  if (term == 0 || w->terms.no_memory) return 0;
  if (range.lo == range.hi && node->type != VYRE_TYPE_BOOL) {
    return vyre__terms_literal(&w->terms, range.lo);
  }
  vyre__terms_narrow(&w->terms, term, range);
  if (w->ranges->flags[id] & VYRE__RANGE_POWER) {
    vyre__terms_suppose_power(&w->terms, term);
  }
  return term;
}

/* --- statements ------------------------------------------------------------*/

static void walk_statement(walker *w, vyre__id id);

static void walk_if(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__term condition = walk_value(w, node->a);
  size_t begin = w->env.change_count;
  vyre__terms_mark mark = vyre__terms_here(&w->terms);
  env_open(&w->env);
  suppose_guard(w, id, condition, true);
  walk_statement(w, node->b);
  bool first_ends = w->reachable;
  size_t middle = w->env.change_count;
  env_leave_arm(&w->env, begin, middle);
  vyre__terms_rewind(&w->terms, mark);
  w->reachable = true;
  suppose_guard(w, id, condition, false);
  if (node->c) walk_statement(w, node->c);
  if (first_ends) {
    /* otherwise the facts of the second arm stay valid */
    vyre__terms_rewind(&w->terms, mark);
    if (w->reachable) {
      env_join_arms(&w->env, begin, middle);
    } else {
      env_take_first_arm(&w->env, begin, middle);
      suppose_guard(w, id, condition, true);
    }
  }
  w->reachable |= first_ends;
  env_close(&w->env);
}

/* Gives every local that a loop assigns a new value. Returns true if the loop
 * has a break of its own. */
static bool invalidate_assigned(walker *w, vyre__id id, bool is_own) {
  const vyre__node *node = &w->program->nodes[id];
  bool breaks = node->op == VYRE__OP_BREAK && is_own;
  bool is_loop = node->op == VYRE__OP_FOR || node->op == VYRE__OP_WHILE;
  bool sets = node->op == VYRE__OP_LET || node->op == VYRE__OP_ASSIGN ||
              node->op == VYRE__OP_FOR;
  if (!vyre__is_statement(node)) return false;
  if (sets && w->env.locals[node->a]) env_set(&w->env, node->a, 0);
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    breaks |= invalidate_assigned(w, ids[i], is_own && !is_loop);
  }
  return breaks;
}

/* Assumes that the variable runs from its first value to the bound and never
 * wraps. */
static void suppose_variable(walker *w, vyre__id id, vyre__term variable,
                             vyre__term first, vyre__term bound) {
  uint8_t kind = w->program->nodes[id].aux;
  bool strict = kind == VYRE__LOOP_LT || kind == VYRE__LOOP_GT;
  if (kind == VYRE__LOOP_LT || kind == VYRE__LOOP_LE) {
    vyre__terms_assume(&w->terms, variable, strict, bound);
    vyre__terms_assume(&w->terms, first, 0, variable);
  } else {
    vyre__terms_assume(&w->terms, bound, strict, variable);
    vyre__terms_assume(&w->terms, variable, 0, first);
  }
}

static void walk_for(walker *w, vyre__id id) {
  vyre__for_parts parts = vyre__for_of(w->program, id);
  vyre__term first = walk_value(w, parts.first);
  vyre__term bound = walk_value(w, parts.bound);
  vyre_type type = (vyre_type)w->program->nodes[parts.first].type;
  env_open(&w->env);
  invalidate_assigned(w, parts.body, true);
  size_t begin = w->env.change_count;
  vyre__terms_mark mark = vyre__terms_here(&w->terms);
  vyre__term variable = vyre__terms_fresh(&w->terms, type);
  env_set(&w->env, w->program->nodes[id].a, variable);
  if (!vyre__is_racy(w->ranges->unsteady, id, VYRE__RACY_GUARD)) {
    suppose_variable(w, id, variable, first, bound);
  }
  walk_statement(w, parts.body);
  env_rewind(&w->env, begin);
  vyre__terms_rewind(&w->terms, mark);
  env_close(&w->env);
  w->reachable = true;
}

static void walk_while(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  env_open(&w->env);
  bool breaks = invalidate_assigned(w, node->b, true);
  size_t begin = w->env.change_count;
  vyre__terms_mark mark = vyre__terms_here(&w->terms);
  vyre__term condition = walk_value(w, node->a);
  suppose_guard(w, id, condition, true);
  walk_statement(w, node->b);
  env_rewind(&w->env, begin);
  vyre__terms_rewind(&w->terms, mark);
  if (!breaks) {
    bool quiet = w->quiet;
    w->quiet = true;
    condition = walk_value(w, node->a);
    w->quiet = quiet;
    suppose_guard(w, id, condition, false);
  }
  env_close(&w->env);
  w->reachable = true;
}

static void walk_set(walker *w, const vyre__node *node) {
  env_set(&w->env, node->a, walk_value(w, node->b));
}

#include "analyze/statement_walk.h"

/* --- program ---------------------------------------------------------------*/

vyre_code vyre__symbolic_prove(const vyre__ranges *ranges,
                               vyre_allocator allocator, uint8_t *flags,
                               vyre_status *st) {
  const vyre__function *kernel = &ranges->program->functions[0];
  walker w = {.program = ranges->program,
              .ranges = ranges,
              .flags = flags,
              .env = {.allocator = allocator},
              .reachable = true};
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  uint32_t count = kernel->local_count;
  w.env.locals = vyre__arena_array(&arena, count, sizeof *w.env.locals);
  w.env.seen = vyre__arena_array(&arena, count, sizeof *w.env.seen);
  bool fine =
      w.env.locals && w.env.seen && vyre__terms_init(&w.terms, allocator);
  if (fine) {
    memset(w.env.locals, 0, count * sizeof *w.env.locals);
    memset(w.env.seen, 0, count * sizeof *w.env.seen);
    walk_statement(&w, kernel->body);
    fine = !w.env.no_memory && !w.terms.no_memory;
    vyre__terms_deinit(&w.terms);
  }
  env_deinit(&w.env);
  vyre_arena_deinit(&arena);
  if (fine) return VYRE_OK;
  return vyre__no_memory(st, "vyre__ranges_build", "terms",
                         ranges->program->node_count);
}
