/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Statements, functions of libraries, and the kernel as a whole. */
#include <string.h>

#include "analyze/racy_guards.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "lower/build_internal.h"

static const vyre__node *node_of(const build *b, vyre__id id) {
  return &b->program->nodes[id];
}

/* The low variable of a `var`; made where it is declared. */
static void assign(build *b, uint32_t local, vyre__val value, bool declares) {
  const vyre__local *l = &b->function->locals[local];
  if (!l->is_mutable) {
    b->values[local] = value;
    return;
  }
  if (declares || b->values[local] == 0) {
    b->values[local] =
        1 +
        vyre__lir_new_var(b->low, l->name, vyre__lir_type((vyre_type)l->type));
  }
  vyre__lir_set(b->low, b->values[local] - 1, value);
}

static void block(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  for (uint32_t i = 0; i < node->b && !b->has_left; i++) {
    build_statement(b, b->program->lists[node->a + i]);
  }
}

/* A statement on its own: what it leaves is known to it alone. */
static void body(build *b, vyre__id id) {
  build_statement(b, id);
  b->has_left = false;
}

vyre__val build_guard(build *b, vyre__id id, vyre__val condition) {
  const uint8_t *unsteady = b->ranges ? b->ranges->unsteady : NULL;
  if (!vyre__is_racy(unsteady, id, VYRE__RACY_GUARD)) return condition;
  return vyre__lir_do(b->low, VYRE__LIR_AGREE, VYRE_TYPE_BOOL, condition, 0, 0);
}

static void if_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *low = b->low;
  vyre__val condition = build_value(b, node->a);
  uint64_t known;
  if (vyre__lir_is_constant(low, condition, &known)) {
    if (known) build_statement(b, node->b);
    if (!known && node->c) build_statement(b, node->c);
    return;
  }
  condition = build_guard(b, id, condition);
  size_t begin =
      vyre__lir_if(low, condition, b->is_library ? VYRE__HINT_RARE : 0);
  body(b, node->b);
  if (node->c) {
    vyre__lir_else(low, begin);
    body(b, node->c);
  }
  vyre__lir_end(low, begin);
}

/* Before a loop: what its body assigns may have any of its values. */
static void forget_assigned(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  if (node->op == VYRE__OP_ASSIGN) {
    if (b->values[node->a]) vyre__lir_forget(b->low, b->values[node->a] - 1);
    return;
  }
  if (vyre__ops[node->op].form < VYRE__FORM_LIST) return;
  uint32_t count = vyre__child_count(b->program, id);
  for (uint32_t i = 0; i < count; i++) {
    forget_assigned(b, vyre__child(b->program, id, i));
  }
}

static void break_unless(vyre__lir_writer *low, vyre__val condition) {
  uint64_t known;
  if (vyre__lir_is_constant(low, condition, &known) && known) return;
  vyre__val leave =
      vyre__lir_do(low, VYRE__LIR_NOT, VYRE_TYPE_BOOL, condition, 0, 0);
  size_t begin = vyre__lir_if(low, leave, VYRE__HINT_TEST);
  vyre__lir_plain(low, VYRE__LIR_BREAK);
  vyre__lir_end(low, begin);
}

/* --- counting rounds: lower/trip_count.h ---------------------------------------- */

/* How the loop counts; NULL: it does not. */
static const vyre__trip_count *rounds_of(const build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  if (!b->counts_rounds || b->counted > 0) return NULL;
  if (node->op == VYRE__OP_FOR && node->c == VYRE__FOR_ONCE) return NULL;
  return &b->rounds[id];
}

static bool counts_inside(const vyre__trip_count *rounds) {
  return rounds && rounds->inside != VYRE__TRIP_COUNT_VARIES;
}

/* So many rounds more than one, if the condition holds. */
static void tick(vyre__lir_writer *low, uint32_t loop, vyre__val more,
                 vyre__val condition) {
  vyre__lir_push(low, &(vyre__lir_inst){.op = VYRE__LIR_TICK,
                                        .aux = loop,
                                        .v = {more, condition, 0, 0}});
}

/* A round begins, and those inside of it are sure to follow. */
static void tick_round(vyre__lir_writer *low, uint32_t loop,
                       const vyre__trip_count *rounds) {
  if (!rounds) return;
  uint64_t inside = counts_inside(rounds) ? rounds->inside : 0;
  if (inside > UINT32_MAX) inside = UINT32_MAX; /* more than there can be */
  vyre__val more = inside ? vyre__lir_bits(low, VYRE_TYPE_U32, inside) : 0;
  tick(low, loop, more, 0);
}

static void body_counted(build *b, vyre__id id,
                         const vyre__trip_count *rounds) {
  b->counted += counts_inside(rounds);
  body(b, id);
  b->counted -= counts_inside(rounds);
}

/* `if (..) break;`, which inlining puts at the top of a `while`. */
static bool is_test_inside(const build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  if (node->op != VYRE__OP_IF || node->c) return false;
  const vyre__node *then = node_of(b, node->b);
  return then->op == VYRE__OP_BLOCK && then->b == 1 &&
         node_of(b, b->program->lists[then->a])->op == VYRE__OP_BREAK;
}

/* The body of such a loop: the round begins behind its test. */
static void body_with_test(build *b, vyre__id id, uint32_t loop,
                           const vyre__trip_count *rounds) {
  const vyre__node *node = node_of(b, id);
  bool is_tested = false;
  for (uint32_t i = 0; i < node->b && !b->has_left; i++) {
    vyre__id child = b->program->lists[node->a + i];
    build_statement(b, child);
    if (is_tested || b->has_left || !is_test_inside(b, child)) continue;
    is_tested = true;
    tick_round(b->low, loop, rounds);
  }
  b->has_left = false;
}

/* All rounds of a `while` that shifts what it tests until it is 0: as many as that
 * has bits, or a part of it. */
static void tick_halvings(build *b, uint32_t loop,
                          const vyre__trip_count *rounds) {
  vyre__lir_writer *low = b->low;
  if (low->no_memory || !b->values[rounds->halved]) return;
  vyre__val v = vyre__lir_get(low, b->values[rounds->halved] - 1);
  vyre__val zero = vyre__lir_bits(low, VYRE_TYPE_U32, 0);
  vyre__val any = vyre__lir_do(low, VYRE__LIR_LT_U, VYRE_TYPE_BOOL, zero, v, 0);
  uint64_t known, inside = counts_inside(rounds) ? rounds->inside : 0;
  if (vyre__lir_is_constant(low, any, &known)) {
    if (!known) return;
    any = 0;
  }
  vyre__val n = vyre__lir_do(low, VYRE__LIR_CLZ, VYRE_TYPE_U32, v, 0, 0);
  n = vyre__lir_do(low, VYRE__LIR_SUB, VYRE_TYPE_U32,
                   vyre__lir_bits(low, VYRE_TYPE_U32, 31), n, 0);
  if (rounds->shift > 1) {
    vyre__val by = vyre__lir_bits(low, VYRE_TYPE_U32, rounds->shift);
    n = vyre__lir_do(low, VYRE__LIR_TOTAL_DIV_U, VYRE_TYPE_U32, n, by, 0);
  }
  if (inside > 0) {
    vyre__val each = vyre__lir_bits(low, VYRE_TYPE_U32, inside + 1);
    vyre__val rest = vyre__lir_bits(low, VYRE_TYPE_U32, inside);
    n = vyre__lir_do(low, VYRE__LIR_MUL, VYRE_TYPE_U32, n, each, 0);
    n = vyre__lir_do(low, VYRE__LIR_ADD, VYRE_TYPE_U32, n, rest, 0);
  }
  tick(low, loop, n, any);
}

/* Whether it is known before a `while` begins how many rounds it takes. */
static bool is_charged_ahead(const vyre__trip_count *rounds) {
  return rounds && rounds->shift && !rounds->is_left &&
         (rounds->inside == VYRE__TRIP_COUNT_VARIES ||
          rounds->inside < 1u << 26);
}

static void while_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *low = b->low;
  const vyre__trip_count *rounds = rounds_of(b, id);
  uint64_t most = b->rounds ? b->rounds[id].most : UINT64_MAX;
  uint32_t loop = vyre__lir_new_loop(low, &(vyre__lir_loop){.max_trips = most});
  bool is_ahead = is_charged_ahead(rounds);
  if (is_ahead) tick_halvings(b, loop, rounds);
  size_t begin = low->log_count;
  forget_assigned(b, node->b);
  (void)vyre__lir_loop_begin(low, loop);
  break_unless(low, build_guard(b, id, build_value(b, node->a)));
  if (node->aux == VYRE__WHILE_TESTS_INSIDE) {
    body_with_test(b, node->b, loop, rounds);
  } else {
    if (!is_ahead) tick_round(low, loop, rounds);
    body_counted(b, node->b, rounds);
  }
  vyre__lir_to_step(low);
  vyre__lir_end(low, begin);
}

/* Whether the variable, one step beyond its last value, still fits its type. */
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

static vyre__val loop_test(vyre__lir_writer *low, const vyre__lir_loop *loop,
                           vyre__val i) {
  bool swap = loop->kind == VYRE__LOOP_GT || loop->kind == VYRE__LOOP_GE;
  bool strict = loop->kind == VYRE__LOOP_LT || loop->kind == VYRE__LOOP_GT;
  vyre__lir_op op = strict ? VYRE__LIR_LT_U : VYRE__LIR_LE_U;
  if (loop->is_signed) op = strict ? VYRE__LIR_LT_S : VYRE__LIR_LE_S;
  return vyre__lir_do(low, op, VYRE_TYPE_BOOL, swap ? loop->bound : i,
                      swap ? i : loop->bound, 0);
}

/* Goes to the next value. Where that might not fit, `more` says whether there is
 * one: the loop ends instead of wrapping. */
static void loop_next(vyre__lir_writer *low, const vyre__lir_loop *loop,
                      vyre_type type, vyre__val i, uint32_t more) {
  vyre_type plain = vyre__lir_type(type);
  bool down = loop->kind == VYRE__LOOP_GT || loop->kind == VYRE__LOOP_GE;
  vyre__val step = vyre__lir_bits(low, plain, loop->step);
  if (more != VYRE_NO_INDEX) {
    vyre__interval all = vyre__interval_full(type);
    vyre__wide last = down ? all.lo + (vyre__wide)loop->step
                           : all.hi - (vyre__wide)loop->step;
    uint64_t mask = plain == VYRE_TYPE_U32 ? UINT32_MAX : UINT64_MAX;
    vyre__val edge = vyre__lir_bits(low, plain, (uint64_t)last & mask);
    vyre__lir_op op = loop->is_signed ? VYRE__LIR_LE_S : VYRE__LIR_LE_U;
    vyre__lir_set(low, more,
                  vyre__lir_do(low, op, VYRE_TYPE_BOOL, down ? edge : i,
                               down ? i : edge, 0));
  }
  vyre__lir_set(low, loop->var,
                vyre__lir_do(low, down ? VYRE__LIR_SUB : VYRE__LIR_ADD, plain,
                             i, step, 0));
}

/* Rounds of the loop, those inside too, but one; as a u32, of which the greatest
 * stands for all that are more than a u32: nobody has so much fuel. Not looked
 * at where there is no round. */
static vyre__val rounds_but_one(vyre__lir_writer *low,
                                const vyre__lir_loop *loop, vyre_type type,
                                uint64_t inside) {
  bool down = loop->kind == VYRE__LOOP_GT || loop->kind == VYRE__LOOP_GE;
  bool strict = loop->kind == VYRE__LOOP_LT || loop->kind == VYRE__LOOP_GT;
  vyre_type plain = vyre__lir_type(type);
  if (inside >= UINT32_MAX) {
    return vyre__lir_bits(low, VYRE_TYPE_U32, UINT32_MAX);
  }
  vyre__val n =
      vyre__lir_do(low, VYRE__LIR_SUB, plain, down ? loop->first : loop->bound,
                   down ? loop->bound : loop->first, 0);
  if (strict) {
    vyre__val one = vyre__lir_bits(low, plain, 1);
    n = vyre__lir_do(low, VYRE__LIR_SUB, plain, n, one, 0);
  }
  if (loop->step != 1) {
    vyre__val step = vyre__lir_bits(low, plain, loop->step);
    n = vyre__lir_do(low, VYRE__LIR_TOTAL_DIV_U, plain, n, step, 0);
  }
  if (inside == 0 && plain == VYRE_TYPE_U32) return n;
  vyre__val most =
      vyre__lir_bits(low, plain, (UINT32_MAX - inside) / (inside + 1));
  vyre__val fits =
      vyre__lir_do(low, VYRE__LIR_LE_U, VYRE_TYPE_BOOL, n, most, 0);
  if (plain == VYRE_TYPE_U64) {
    n = vyre__lir_do(low, VYRE__LIR_TRUNC, VYRE_TYPE_U32, n, 0, 0);
  }
  vyre__val each = vyre__lir_bits(low, VYRE_TYPE_U32, inside + 1);
  n = vyre__lir_do(low, VYRE__LIR_MUL, VYRE_TYPE_U32, n, each, 0);
  vyre__val rest = vyre__lir_bits(low, VYRE_TYPE_U32, inside);
  n = vyre__lir_do(low, VYRE__LIR_ADD, VYRE_TYPE_U32, n, rest, 0);
  vyre__val all = vyre__lir_bits(low, VYRE_TYPE_U32, UINT32_MAX);
  return vyre__lir_do(low, VYRE__LIR_SELECT, VYRE_TYPE_U32, fits, n, all);
}

/* All rounds of a loop that nobody leaves, before it begins. */
static void tick_all(build *b, vyre__id id, uint32_t number,
                     const vyre__trip_count *rounds, vyre_type type) {
  vyre__lir_writer *low = b->low;
  if (low->no_memory) return;
  vyre__lir_loop loop = low->loops[number];
  bool is_sure = b->ranges && (b->ranges->flags[id] & VYRE__RANGE_BOUNDED) &&
                 b->ranges->nodes[id].lo > 0;
  vyre__val any = is_sure ? 0 : loop_test(low, &loop, loop.first);
  uint64_t known;
  if (any && vyre__lir_is_constant(low, any, &known)) {
    if (!known) return;
    any = 0;
  }
  uint64_t inside = counts_inside(rounds) ? rounds->inside : 0;
  tick(low, number, rounds_but_one(low, &loop, type, inside), any);
}

static void for_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *low = b->low;
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
  loop.var = vyre__lir_new_var(low, local->name, vyre__lir_type(type));
  uint32_t number = vyre__lir_new_loop(low, &loop), more = VYRE_NO_INDEX;
  const vyre__trip_count *rounds = rounds_of(b, id);
  bool is_left = rounds && rounds->is_left;
  if (rounds && !is_left) tick_all(b, id, number, rounds, type);
  vyre__lir_set(low, loop.var, loop.first);
  if (!step_fits(b, node, parts, type)) {
    more = vyre__lir_new_var(low, "more", VYRE_TYPE_BOOL);
    vyre__lir_set(low, more, vyre__lir_bits(low, VYRE_TYPE_BOOL, 1));
  }
  size_t begin = low->log_count;
  vyre__lir_forget(low, loop.var);
  if (more != VYRE_NO_INDEX) vyre__lir_forget(low, more);
  forget_assigned(b, parts.body);
  (void)vyre__lir_loop_begin(low, number);
  if (more != VYRE_NO_INDEX) {
    break_unless(low, build_guard(b, id, vyre__lir_get(low, more)));
  }
  vyre__val i = vyre__lir_get(low, loop.var);
  break_unless(low, build_guard(b, id, loop_test(low, &loop, i)));
  b->values[node->a] = i;
  if (is_left) tick_round(low, number, rounds);
  body_counted(b, parts.body, rounds);
  vyre__lir_to_step(low);
  loop_next(low, &loop, type, i, more);
  vyre__lir_end(low, begin);
}

static void leave(build *b, vyre__lir_op op) {
  vyre__lir_plain(b->low, op);
  b->has_left = true;
}

void build_statement(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *low = b->low;
  if (low->no_memory || low->code_failed != VYRE_OK) return;
  if (!b->is_library) low->here = vyre__source_loc_of(b->program, id);
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
      vyre__lir_plain(low, VYRE__LIR_BARRIER);
      return;
    case VYRE__OP_GRID_BARRIER:
      vyre__lir_plain(low, VYRE__LIR_GRID_BARRIER);
      return;
    case VYRE__OP_EVAL:
      (void)build_value(b, node->a);
      return;
    case VYRE__OP_PRINT:
      build_refuse(b, id, "print()");
      return;
    default:
      build_refuse(b, id, vyre__ops[node->op].text);
      return;
  }
}

vyre__val vyre__build_call(vyre__lir_writer *low, const vyre_program *library,
                           const vyre__function *function,
                           const vyre__val *arguments, uint32_t count) {
  vyre__val values[VYRE__BUILD_LOCALS];
  if (function->parameter_count > count) {
    vyre__lir_misfit(low, "parameters", function->parameter_count, count);
  } else if (function->local_count > VYRE__BUILD_LOCALS) {
    vyre__lir_misfit(low, "locals", function->local_count, VYRE__BUILD_LOCALS);
  }
  if (low->no_memory || low->code_failed != VYRE_OK) return 0;
  memset(values, 0, sizeof *values * function->local_count);
  memcpy(values, arguments, sizeof *values * function->parameter_count);
  build b = {.low = low,
             .program = library,
             .function = function,
             .values = values,
             .is_library = true};
  low->depth++;
  build_statement(&b, function->body);
  low->depth--;
  return b.result;
}

void vyre__build_kernel(vyre__lir_writer *low, const vyre__ranges *ranges,
                        vyre_arena *scratch) {
  const vyre__function *kernel = &low->program->functions[0];
  build_buffers(low);
  vyre__val *values =
      vyre__arena_array(scratch, kernel->local_count, sizeof *values);
  if (!values) {
    low->no_memory = true;
    return;
  }
  memset(values, 0, sizeof *values * kernel->local_count);
  vyre__trip_count *rounds = NULL;
  uint64_t most;
  if (!vyre__trip_count_find(low->program, ranges, scratch, &rounds, &most)) {
    low->no_memory = true;
    return;
  }
  build b = {.low = low,
             .program = low->program,
             .function = kernel,
             .ranges = ranges,
             .rounds = rounds,
             .counts_rounds = most > VYRE__UNCOUNTED_ITERATIONS ||
                              (most > 0 && low->target->counts_iterations),
             .values = values};
  build_statement(&b, kernel->body);
}
