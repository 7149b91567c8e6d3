/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds statements, library functions and the kernel. */
#include <string.h>

#include "analyze/racy_guards.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "lower/build_internal.h"

/* Assigns a local. A `var` gets a LIR variable at its declaration. */
static void assign(build *b, uint32_t local, vyre__val value, bool declares) {
  const vyre__local *l = &b->function->locals[local];
  if (!l->is_mutable) {
    b->values[local] = value;
    return;
  }
  if (declares || b->values[local] == 0) {
    b->values[local] =
        1 +
        vyre__lir_new_var(b->lir, l->name, vyre__lir_type((vyre_type)l->type));
  }
  vyre__lir_set(b->lir, b->values[local] - 1, value);
}

static void block(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  for (uint32_t i = 0; i < node->b && !b->has_left; i++) {
    build_statement(b, b->program->lists[node->a + i]);
  }
}

/* Builds a nested statement. A jump in it does not end the enclosing block. */
static void body(build *b, vyre__id id) {
  build_statement(b, id);
  b->has_left = false;
}

vyre__val build_guard(build *b, vyre__id id, vyre__val condition) {
  const uint8_t *unsteady = b->ranges ? b->ranges->unsteady : NULL;
  if (!vyre__is_racy(unsteady, id, VYRE__RACY_GUARD)) return condition;
  return vyre__lir_do(b->lir, VYRE__LIR_AGREE, VYRE_TYPE_BOOL, condition, 0, 0);
}

static void if_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre__val condition = build_value(b, node->a);
  uint64_t known;
  if (vyre__lir_is_constant(lir, condition, &known)) {
    if (known) build_statement(b, node->b);
    if (!known && node->c) build_statement(b, node->c);
    return;
  }
  condition = build_guard(b, id, condition);
  size_t begin =
      vyre__lir_if(lir, condition, b->is_library ? VYRE__HINT_RARE : 0);
  body(b, node->b);
  if (node->c) {
    vyre__lir_else(lir, begin);
    body(b, node->c);
  }
  vyre__lir_end(lir, begin);
}

/* Invalidates, before a loop, all variables that its body assigns. */
static void invalidate_assigned(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  if (node->op == VYRE__OP_ASSIGN) {
    if (b->values[node->a])
      vyre__lir_invalidate(b->lir, b->values[node->a] - 1);
    return;
  }
  if (vyre__ops[node->op].form < VYRE__FORM_LIST) return;
  uint32_t count = vyre__child_count(b->program, id);
  for (uint32_t i = 0; i < count; i++) {
    invalidate_assigned(b, vyre__child(b->program, id, i));
  }
}

static void break_unless(vyre__lir_writer *lir, vyre__val condition) {
  uint64_t known;
  if (vyre__lir_is_constant(lir, condition, &known) && known) return;
  vyre__val leave =
      vyre__lir_do(lir, VYRE__LIR_NOT, VYRE_TYPE_BOOL, condition, 0, 0);
  size_t begin = vyre__lir_if(lir, leave, VYRE__HINT_TEST);
  vyre__lir_plain(lir, VYRE__LIR_BREAK);
  vyre__lir_end(lir, begin);
}

/* --- counting iterations: lower/trip_count.h ------------------------------ */

/* Returns how the loop counts its iterations; NULL if it does not. */
static const vyre__trip_count *trip_count_of(const build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  if (!b->counts_iterations || b->counted > 0) return NULL;
  if (node->op == VYRE__OP_FOR && node->c == VYRE__FOR_ONCE) return NULL;
  return &b->trip_counts[id];
}

static bool counts_inside(const vyre__trip_count *trip_count) {
  return trip_count && trip_count->inside != VYRE__TRIP_COUNT_VARIES;
}

/* Charges @p more iterations plus one, if the condition holds. */
static void tick(vyre__lir_writer *lir, uint32_t loop, vyre__val more,
                 vyre__val condition) {
  vyre__lir_push(lir, &(vyre__lir_inst){.op = VYRE__LIR_TICK,
                                        .aux = loop,
                                        .v = {more, condition, 0, 0}});
}

/* Charges one iteration and its inner iterations. */
static void tick_iteration(vyre__lir_writer *lir, uint32_t loop,
                           const vyre__trip_count *trip_count) {
  if (!trip_count) return;
  uint64_t inside = counts_inside(trip_count) ? trip_count->inside : 0;
  if (inside > UINT32_MAX) inside = UINT32_MAX; /* exceeds every limit */
  vyre__val more = inside ? vyre__lir_bits(lir, VYRE_TYPE_U32, inside) : 0;
  tick(lir, loop, more, 0);
}

static void body_counted(build *b, vyre__id id,
                         const vyre__trip_count *trip_count) {
  b->counted += counts_inside(trip_count);
  body(b, id);
  b->counted -= counts_inside(trip_count);
}

/* Returns true for `if (..) break;`, which inlining puts at the top of a
 * `while`. */
static bool is_test_inside(const build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  if (node->op != VYRE__OP_IF || node->c) return false;
  const vyre__node *then = node_of(b, node->b);
  return then->op == VYRE__OP_BLOCK && then->b == 1 &&
         node_of(b, b->program->lists[then->a])->op == VYRE__OP_BREAK;
}

/* Builds the body of such a loop. An iteration begins after its test. */
static void body_with_test(build *b, vyre__id id, uint32_t loop,
                           const vyre__trip_count *trip_count) {
  const vyre__node *node = node_of(b, id);
  bool is_tested = false;
  for (uint32_t i = 0; i < node->b && !b->has_left; i++) {
    vyre__id child = b->program->lists[node->a + i];
    build_statement(b, child);
    if (is_tested || b->has_left || !is_test_inside(b, child)) continue;
    is_tested = true;
    tick_iteration(b->lir, loop, trip_count);
  }
  b->has_left = false;
}

/* Charges all iterations of a `while` that shifts the tested number until it is
 * 0. The trip count follows from the position of the highest set bit. */
static void tick_halvings(build *b, uint32_t loop,
                          const vyre__trip_count *trip_count) {
  vyre__lir_writer *lir = b->lir;
  if (lir->no_memory || !b->values[trip_count->halved]) return;
  vyre__val v = vyre__lir_get(lir, b->values[trip_count->halved] - 1);
  vyre__val zero = vyre__lir_bits(lir, VYRE_TYPE_U32, 0);
  vyre__val any = vyre__lir_do(lir, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, zero, v, 0);
  uint64_t known, inside = counts_inside(trip_count) ? trip_count->inside : 0;
  if (vyre__lir_is_constant(lir, any, &known)) {
    if (!known) return;
    any = 0;
  }
  vyre__val n = vyre__lir_do(lir, VYRE__LIR_CLZ, VYRE_TYPE_U32, v, 0, 0);
  n = vyre__lir_do(lir, VYRE__LIR_SUB, VYRE_TYPE_U32,
                   vyre__lir_bits(lir, VYRE_TYPE_U32, 31), n, 0);
  if (trip_count->shift > 1) {
    vyre__val by = vyre__lir_bits(lir, VYRE_TYPE_U32, trip_count->shift);
    n = vyre__lir_do(lir, VYRE__LIR_TOTAL_DIV_U, VYRE_TYPE_U32, n, by, 0);
  }
  if (inside > 0) {
    vyre__val each = vyre__lir_bits(lir, VYRE_TYPE_U32, inside + 1);
    vyre__val rest = vyre__lir_bits(lir, VYRE_TYPE_U32, inside);
    n = vyre__lir_do(lir, VYRE__LIR_MUL, VYRE_TYPE_U32, n, each, 0);
    n = vyre__lir_do(lir, VYRE__LIR_ADD, VYRE_TYPE_U32, n, rest, 0);
  }
  tick(lir, loop, n, any);
}

/* Returns true if the trip count of a `while` is known before it begins. */
static bool is_charged_at_entry(const vyre__trip_count *trip_count) {
  return trip_count && trip_count->shift && !trip_count->exits_early &&
         (trip_count->inside == VYRE__TRIP_COUNT_VARIES ||
          trip_count->inside < 1u << 26);
}

static void while_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  const vyre__trip_count *trip_count = trip_count_of(b, id);
  uint64_t max = b->trip_counts ? b->trip_counts[id].max : UINT64_MAX;
  uint32_t loop = vyre__lir_new_loop(lir, &(vyre__lir_loop){.max_trips = max});
  bool at_entry = is_charged_at_entry(trip_count);
  if (at_entry) tick_halvings(b, loop, trip_count);
  size_t begin = lir->log_count;
  invalidate_assigned(b, node->b);
  (void)vyre__lir_loop_begin(lir, loop);
  break_unless(lir, build_guard(b, id, build_value(b, node->a)));
  if (node->aux == VYRE__WHILE_TESTS_INSIDE) {
    body_with_test(b, node->b, loop, trip_count);
  } else {
    if (!at_entry) tick_iteration(lir, loop, trip_count);
    body_counted(b, node->b, trip_count);
  }
  vyre__lir_to_step(lir);
  vyre__lir_end(lir, begin);
}

/* Returns true if the variable, one step past its last value, still fits its
 * type. */
static bool step_fits(const build *b, const vyre__node *node,
                      vyre__for_parts parts, vyre_type type) {
  vyre__interval all = vyre__interval_full(type), bound = all;
  vyre__wide step = (vyre__wide)vyre__literal(node_of(b, parts.step));
  if (b->ranges) {
    bound = vyre__range_of(b->ranges, parts.bound);
  } else if (node_of(b, parts.bound)->op == VYRE__OP_LITERAL) {
    bound.lo = bound.hi =
        vyre__interval_value(type, vyre__literal(node_of(b, parts.bound)));
  }
  switch ((vyre__loop)node->aux) {
    case VYRE__LOOP_LT:
      return bound.hi - 1 + step <= all.hi;
    case VYRE__LOOP_LE:
      return bound.hi + step <= all.hi;
    case VYRE__LOOP_GT:
      return bound.lo + 1 - step >= all.lo;
    default:
      return bound.lo - step >= all.lo;
  }
}

static vyre__val loop_test(vyre__lir_writer *lir, const vyre__lir_loop *loop,
                           vyre__val i) {
  bool swap = loop->kind == VYRE__LOOP_GT || loop->kind == VYRE__LOOP_GE;
  bool strict = loop->kind == VYRE__LOOP_LT || loop->kind == VYRE__LOOP_GT;
  vyre__lir_op op = strict ? VYRE__LIR_LT_U : VYRE__LIR_LE_U;
  if (loop->is_signed) op = strict ? VYRE__LIR_LT_S : VYRE__LIR_LE_S;
  return vyre__lir_do(lir, op, VYRE_TYPE_BOOL, swap ? loop->bound : i,
                      swap ? i : loop->bound, 0);
}

/* Emits the step of a loop. If the next value might not fit, `more` is set to
 * false instead, so that the loop ends without wrapping. */
static void loop_next(vyre__lir_writer *lir, const vyre__lir_loop *loop,
                      vyre_type type, vyre__val i, uint32_t more) {
  vyre_type plain = vyre__lir_type(type);
  bool down = loop->kind == VYRE__LOOP_GT || loop->kind == VYRE__LOOP_GE;
  vyre__val step = vyre__lir_bits(lir, plain, loop->step);
  if (more != VYRE_NO_INDEX) {
    vyre__interval all = vyre__interval_full(type);
    vyre__wide last = down ? all.lo + (vyre__wide)loop->step
                           : all.hi - (vyre__wide)loop->step;
    uint64_t mask = plain == VYRE_TYPE_U32 ? UINT32_MAX : UINT64_MAX;
    vyre__val edge = vyre__lir_bits(lir, plain, (uint64_t)last & mask);
    vyre__lir_op op = loop->is_signed ? VYRE__LIR_LE_S : VYRE__LIR_LE_U;
    vyre__lir_set(lir, more,
                  vyre__lir_do(lir, op, VYRE_TYPE_BOOL, down ? edge : i,
                               down ? i : edge, 0));
  }
  vyre__lir_set(lir, loop->var,
                vyre__lir_do(lir, down ? VYRE__LIR_SUB : VYRE__LIR_ADD, plain,
                             i, step, 0));
}

/* Returns the iterations of the loop and its inner loops, minus one, as u32.
 * UINT32_MAX stands for all larger numbers, since fuel is never higher. The
 * value is unused if the loop has no iteration. */
static vyre__val iterations_minus_one(vyre__lir_writer *lir,
                                      const vyre__lir_loop *loop,
                                      vyre_type type, uint64_t inside) {
  bool down = loop->kind == VYRE__LOOP_GT || loop->kind == VYRE__LOOP_GE;
  bool strict = loop->kind == VYRE__LOOP_LT || loop->kind == VYRE__LOOP_GT;
  vyre_type plain = vyre__lir_type(type);
  if (inside >= UINT32_MAX) {
    return vyre__lir_bits(lir, VYRE_TYPE_U32, UINT32_MAX);
  }
  vyre__val n =
      vyre__lir_do(lir, VYRE__LIR_SUB, plain, down ? loop->first : loop->bound,
                   down ? loop->bound : loop->first, 0);
  if (strict) {
    vyre__val one = vyre__lir_bits(lir, plain, 1);
    n = vyre__lir_do(lir, VYRE__LIR_SUB, plain, n, one, 0);
  }
  if (loop->step != 1) {
    vyre__val step = vyre__lir_bits(lir, plain, loop->step);
    n = vyre__lir_do(lir, VYRE__LIR_TOTAL_DIV_U, plain, n, step, 0);
  }
  if (inside == 0 && plain == VYRE_TYPE_U32) return n;
  vyre__val max =
      vyre__lir_bits(lir, plain, (UINT32_MAX - inside) / (inside + 1));
  vyre__val fits = vyre__lir_do(lir, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, n, max, 0);
  if (plain == VYRE_TYPE_U64) {
    n = vyre__lir_do(lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, n, 0, 0);
  }
  vyre__val each = vyre__lir_bits(lir, VYRE_TYPE_U32, inside + 1);
  n = vyre__lir_do(lir, VYRE__LIR_MUL, VYRE_TYPE_U32, n, each, 0);
  vyre__val rest = vyre__lir_bits(lir, VYRE_TYPE_U32, inside);
  n = vyre__lir_do(lir, VYRE__LIR_ADD, VYRE_TYPE_U32, n, rest, 0);
  vyre__val all = vyre__lir_bits(lir, VYRE_TYPE_U32, UINT32_MAX);
  return vyre__lir_do(lir, VYRE__LIR_SELECT, VYRE_TYPE_U32, fits, n, all);
}

/* Charges all iterations of a loop without early exit before it begins. */
static void tick_all(build *b, vyre__id id, uint32_t number,
                     const vyre__trip_count *trip_count, vyre_type type) {
  vyre__lir_writer *lir = b->lir;
  if (lir->no_memory) return;
  vyre__lir_loop loop = lir->loops[number];
  bool is_sure = b->ranges && (b->ranges->flags[id] & VYRE__RANGE_BOUNDED) &&
                 b->ranges->nodes[id].lo > 0;
  vyre__val any = is_sure ? 0 : loop_test(lir, &loop, loop.first);
  uint64_t known;
  if (any && vyre__lir_is_constant(lir, any, &known)) {
    if (!known) return;
    any = 0;
  }
  uint64_t inside = counts_inside(trip_count) ? trip_count->inside : 0;
  tick(lir, number, iterations_minus_one(lir, &loop, type, inside), any);
}

static void for_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre__for_parts parts = vyre__for_of(b->program, id);
  const vyre__local *local = &b->function->locals[node->a];
  vyre_type type = (vyre_type)local->type;
  vyre__val first = build_value(b, parts.first);
  vyre__val bound = build_value(b, parts.bound);
  vyre__lir_loop loop = {
      .is_counted = true,
      .kind = node->aux,
      .is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64,
      .first = first,
      .bound = bound,
      .step = vyre__literal(node_of(b, parts.step)),
      .max_trips = UINT64_MAX};
  if (b->ranges && (b->ranges->flags[id] & VYRE__RANGE_BOUNDED)) {
    loop.max_trips = b->ranges->nodes[id].hi;
  }
  loop.var = vyre__lir_new_var(lir, local->name, vyre__lir_type(type));
  uint32_t number = vyre__lir_new_loop(lir, &loop), more = VYRE_NO_INDEX;
  const vyre__trip_count *trip_count = trip_count_of(b, id);
  bool is_left = trip_count && trip_count->exits_early;
  if (trip_count && !is_left) tick_all(b, id, number, trip_count, type);
  vyre__lir_set(lir, loop.var, loop.first);
  if (!step_fits(b, node, parts, type)) {
    more = vyre__lir_new_var(lir, "more", VYRE_TYPE_BOOL);
    vyre__lir_set(lir, more, vyre__lir_bits(lir, VYRE_TYPE_BOOL, 1));
  }
  size_t begin = lir->log_count;
  vyre__lir_invalidate(lir, loop.var);
  if (more != VYRE_NO_INDEX) vyre__lir_invalidate(lir, more);
  invalidate_assigned(b, parts.body);
  (void)vyre__lir_loop_begin(lir, number);
  if (more != VYRE_NO_INDEX) {
    break_unless(lir, build_guard(b, id, vyre__lir_get(lir, more)));
  }
  vyre__val i = vyre__lir_get(lir, loop.var);
  break_unless(lir, build_guard(b, id, loop_test(lir, &loop, i)));
  b->values[node->a] = i;
  if (is_left) tick_iteration(lir, number, trip_count);
  body_counted(b, parts.body, trip_count);
  vyre__lir_to_step(lir);
  loop_next(lir, &loop, type, i, more);
  vyre__lir_end(lir, begin);
}

static void leave(build *b, vyre__lir_op op) {
  vyre__lir_plain(b->lir, op);
  b->has_left = true;
}

void build_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  if (lir->no_memory || lir->code_failed != VYRE_OK) return;
  if (!b->is_library) lir->here = vyre__source_loc_of(b->program, id);
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      block(b, id);
      return;
    case VYRE__OP_LET:
    case VYRE__OP_ASSIGN:
      assign(b, node->a, build_value(b, node->b), node->op == VYRE__OP_LET);
      return;
    case VYRE__OP_STORE:
      build_store(b, id);
      return;
    case VYRE__OP_IF:
      if_statement(b, id);
      return;
    case VYRE__OP_FOR:
      for_statement(b, id);
      return;
    case VYRE__OP_WHILE:
      while_statement(b, id);
      return;
    case VYRE__OP_BREAK:
      leave(b, VYRE__LIR_BREAK);
      return;
    case VYRE__OP_CONTINUE:
      leave(b, VYRE__LIR_CONTINUE);
      return;
    case VYRE__OP_RETURN:
      if (b->is_library) {
        b->result = build_value(b, node->a);
        b->has_left = true;
      } else {
        leave(b, VYRE__LIR_EXIT);
      }
      return;
    case VYRE__OP_BARRIER:
      vyre__lir_plain(lir, VYRE__LIR_BARRIER);
      return;
    case VYRE__OP_GRID_BARRIER:
      vyre__lir_plain(lir, VYRE__LIR_GRID_BARRIER);
      return;
    case VYRE__OP_EVAL:
      (void)build_value(b, node->a);
      return;
    case VYRE__OP_PRINT:
      build_reject(b, id, "print()");
      return;
    default:
      build_reject(b, id, vyre__ops[node->op].text);
      return;
  }
}

vyre__val vyre__build_call(vyre__lir_writer *lir, const vyre_program *library,
                           const vyre__function *function,
                           const vyre__val *arguments, uint32_t count) {
  vyre__val values[VYRE__BUILD_LOCALS];
  if (function->parameter_count > count) {
    vyre__lir_library_too_large(lir, "parameters", function->parameter_count,
                                count);
  } else if (function->local_count > VYRE__BUILD_LOCALS) {
    vyre__lir_library_too_large(lir, "locals", function->local_count,
                                VYRE__BUILD_LOCALS);
  }
  if (lir->no_memory || lir->code_failed != VYRE_OK) return 0;
  memset(values, 0, sizeof *values * function->local_count);
  memcpy(values, arguments, sizeof *values * function->parameter_count);
  build b = {.lir = lir,
             .program = library,
             .function = function,
             .values = values,
             .is_library = true};
  lir->call_depth++;
  build_statement(&b, function->body);
  lir->call_depth--;
  return b.result;
}

void vyre__build_kernel(vyre__lir_writer *lir, const vyre__ranges *ranges,
                        vyre_arena *scratch) {
  const vyre__function *kernel = &lir->program->functions[0];
  build_buffers(lir);
  vyre__val *values =
      vyre__arena_filled(scratch, kernel->local_count, sizeof *values, 0);
  if (!values) {
    lir->no_memory = true;
    return;
  }
  vyre__trip_count *trip_counts = NULL;
  uint64_t max;
  if (!vyre__trip_count_find(lir->program, ranges, scratch, &trip_counts,
                             &max)) {
    lir->no_memory = true;
    return;
  }
  build b = {.lir = lir,
             .program = lir->program,
             .function = kernel,
             .ranges = ranges,
             .trip_counts = trip_counts,
             .counts_iterations = max > VYRE__UNCOUNTED_ITERATIONS ||
                                  (max > 0 && lir->target->counts_iterations),
             .values = values};
  build_statement(&b, kernel->body);
}
