/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Predicated copies of statements: see analyze/share_subgroups.h. */
#include "analyze/share_subgroups_internal.h"
#include "analyze/walk.h"

static void masked(sharer *s, vyre__id id);

/* Returns whether the invocation takes part. */
static vyre__id guard(sharer *s) {
  return share_get(s, s->scope->guard);
}

static vyre__id truth(sharer *s, bool value) {
  return share_literal(s, VYRE_TYPE_BOOL, value);
}

/* Assigns a value that only invocations that take part compute. */
static void set_if(sharer *s, uint32_t local, vyre__id from) {
  vyre__id condition = guard(s);
  vyre__mark mark = vyre__block_begin(&s->builder);
  share_set(s, local, share_value(s, from));
  share_if(s, condition, mark);
}

/* Returns a new local with this value; zero in invocations that do not take
 * part. */
static uint32_t masked_value(sharer *s, const char *name, vyre__id from) {
  const vyre_type type = (vyre_type)share_node(s, from)->type;
  const uint32_t local = share_local(s, name, true, share_literal(s, type, 0));
  set_if(s, local, from);
  return local;
}

static bool waits(const vyre__node *node) {
  return vyre__op_is_exchange(node->op) || node->op == VYRE__OP_UNIFORM;
}

static void masked_let(sharer *s, vyre__id id) {
  const vyre__node *node = share_node(s, id);
  const vyre__node *value = share_node(s, node->b);
  const vyre__local *local = &s->program->functions[0].locals[node->a];
  uint32_t made = 0;
  if (waits(value)) {
    vyre__id operands[2] = {0, 0};
    const uint32_t a = masked_value(s, "value", value->a);
    const uint32_t b = value->b ? masked_value(s, "lane", value->b) : 0;
    operands[0] = share_get(s, a);
    if (value->b) operands[1] = share_get(s, b);
    made = share_local(s, local->name, local->is_mutable,
                       share_exchange(s, value, operands));
  } else if (s->facts.control[id] <= VYRE__LEVEL_GROUP &&
             !(s->has[node->b] & SHARE_EFFECT)) {
    /* Bounds of loops with a grid barrier are such locals. */
    made =
        share_local(s, local->name, local->is_mutable, share_value(s, node->b));
  } else {
    made = masked_value(s, local->name, node->b);
  }
  s->locals[node->a] = made;
}

/* Copies statements with a new guard. */
static void masked_in(sharer *s, share_kind kind, uint32_t local, vyre__id id) {
  share_scope scope = {.outer = s->scope, .guard = local, .kind = kind};
  s->scope = &scope;
  masked(s, id);
  s->scope = scope.outer;
}

static void masked_if(sharer *s, const vyre__node *node) {
  vyre__ir_builder *m = &s->builder;
  const uint32_t then = masked_value(s, "then", node->a);
  uint32_t otherwise = 0;
  if (node->c) {
    vyre__id is_not = vyre__ir_build_unary(m, VYRE__OP_NOT, share_get(s, then));
    otherwise =
        share_local(s, "else", true,
                    vyre__ir_build_binary(m, VYRE__OP_AND, guard(s), is_not));
  }
  masked_in(s, SHARE_IF, then, node->b);
  if (node->c) masked_in(s, SHARE_IF, otherwise, node->c);
}

/* --- loops -----------------------------------------------------------------*/

/* Copies the body of a loop, with a guard of its own for `continue`. */
static void masked_body(sharer *s, vyre__id body) {
  share_forget(s);
  const uint32_t inside = share_local(s, "iteration", true, guard(s));
  masked_in(s, SHARE_BODY, inside, body);
  share_forget(s);
}

/* Leaves the loop if no invocation continues. */
static void leave_unless_any(sharer *s) {
  vyre__ir_builder *m = &s->builder;
  const uint32_t any =
      share_local(s, "any", false, share_any(s, s->scope->guard));
  vyre__mark mark = vyre__block_begin(m);
  vyre__statement(m, vyre__ir_build_simple(m, VYRE__OP_BREAK));
  share_if(s, vyre__ir_build_unary(m, VYRE__OP_NOT, share_get(s, any)), mark);
}

static vyre__mark begin_forever(sharer *s) {
  vyre__while_begin(&s->builder);
  return vyre__block_begin(&s->builder);
}

static void end_forever(sharer *s, vyre__mark mark) {
  vyre__ir_builder *m = &s->builder;
  vyre__id body = vyre__block_end(m, mark);
  vyre__id made = vyre__while_end(m, truth(s, true), body);
  if (made) m->nodes[made].aux = VYRE__WHILE_TESTS_INSIDE;
  vyre__statement(m, made);
}

/* Copies a loop that all invocations of the workgroup run together. */
static void uniform_for(sharer *s, vyre__id id) {
  vyre__ir_builder *m = &s->builder;
  const vyre__node *node = share_node(s, id);
  const vyre__for_parts parts = vyre__for_of(s->program, id);
  vyre__for loop;
  vyre__for_begin(m, &loop, "k", 1, (vyre_type)share_node(s, parts.first)->type,
                  (vyre__loop)node->aux, share_value(s, parts.first),
                  share_value(s, parts.bound), share_value(s, parts.step));
  s->locals[node->a] = loop.local;
  vyre__mark mark = vyre__block_begin(m);
  masked_body(s, parts.body);
  vyre__id made = vyre__for_end(m, &loop, vyre__block_end(m, mark));
  if (made) m->nodes[made].c = node->c;
  vyre__statement(m, made);
}

/* Adds the step; an invocation whose variable would wrap leaves the loop. */
static void step(sharer *s, const vyre__node *node, uint32_t variable,
                 vyre__id by) {
  vyre__ir_builder *m = &s->builder;
  const bool is_up = node->aux == VYRE__LOOP_LT || node->aux == VYRE__LOOP_LE;
  const uint32_t next = share_local(
      s, "next", false,
      vyre__ir_build_binary(m, is_up ? VYRE__OP_ADD : VYRE__OP_SUB,
                            share_get(s, variable), share_value(s, by)));
  vyre__id goes_on =
      vyre__ir_build_binary(m, is_up ? VYRE__OP_GT : VYRE__OP_LT,
                            share_get(s, next), share_get(s, variable));
  share_set(s, s->scope->guard,
            vyre__ir_build_binary(m, VYRE__OP_AND, guard(s), goes_on));
  share_set(s, variable, share_get(s, next));
}

/* Copies a `for` whose trip count differs between subgroups. */
static void separate_for(sharer *s, vyre__id id) {
  static const uint8_t tests[] = {VYRE__OP_LT, VYRE__OP_LE, VYRE__OP_GT,
                                  VYRE__OP_GE};
  vyre__ir_builder *m = &s->builder;
  const vyre__node *node = share_node(s, id);
  const vyre__for_parts parts = vyre__for_of(s->program, id);
  const uint32_t variable = masked_value(s, "k", parts.first);
  const uint32_t bound = masked_value(s, "bound", parts.bound);
  share_scope scope = {.outer = s->scope,
                       .guard = share_local(s, "loop", true, guard(s)),
                       .kind = SHARE_LOOP};
  s->scope = &scope;
  s->locals[node->a] = variable;
  vyre__mark mark = begin_forever(s);
  vyre__id test =
      vyre__ir_build_binary(m, (vyre__op)tests[node->aux],
                            share_get(s, variable), share_get(s, bound));
  share_set(s, scope.guard,
            vyre__ir_build_binary(m, VYRE__OP_AND, guard(s), test));
  leave_unless_any(s);
  masked_body(s, parts.body);
  step(s, node, variable, parts.step);
  end_forever(s, mark);
  s->scope = scope.outer;
}

static void masked_while(sharer *s, vyre__id id) {
  const vyre__node *node = share_node(s, id);
  share_scope scope = {.outer = s->scope,
                       .guard = share_local(s, "loop", true, guard(s)),
                       .kind = SHARE_LOOP};
  s->scope = &scope;
  vyre__mark mark = begin_forever(s);
  set_if(s, scope.guard, node->a);
  leave_unless_any(s);
  masked_body(s, node->b);
  end_forever(s, mark);
  s->scope = scope.outer;
}

static void masked_for(sharer *s, vyre__id id) {
  const vyre__for_parts parts = vyre__for_of(s->program, id);
  const bool is_uniform =
      s->facts.value[parts.first] <= VYRE__LEVEL_GROUP &&
      s->facts.value[parts.bound] <= VYRE__LEVEL_GROUP &&
      !((s->has[parts.first] | s->has[parts.bound]) & SHARE_EFFECT);
  if (!is_uniform) {
    separate_for(s, id);
    return;
  }
  share_scope scope = {.outer = s->scope,
                       .guard = share_local(s, "loop", true, guard(s)),
                       .kind = SHARE_LOOP};
  s->scope = &scope;
  uniform_for(s, id);
  s->scope = scope.outer;
}

/* --- jumps -----------------------------------------------------------------*/

/* Clears the guards of the active invocations in every scope up to the one that
 * the jump leaves. */
void share_jump(sharer *s, vyre__op op) {
  vyre__ir_builder *m = &s->builder;
  const share_kind end = op == VYRE__OP_CONTINUE ? SHARE_BODY
                         : op == VYRE__OP_BREAK  ? SHARE_LOOP
                                                 : SHARE_KERNEL;
  vyre__id condition = guard(s);
  vyre__mark mark = vyre__block_begin(m);
  for (const share_scope *scope = s->scope; scope; scope = scope->outer) {
    share_set(s, scope->guard, truth(s, false));
    if (scope->kind == end) break;
  }
  share_if(s, condition, mark);
  if (s->whole_loops > 0) {
    vyre__statement(m, vyre__ir_build_simple(m, VYRE__OP_BREAK));
  }
}

/* --- statements ------------------------------------------------------------*/

static void masked_block(sharer *s, vyre__id id) {
  vyre__mark mark = vyre__block_begin(&s->builder);
  const uint32_t count = vyre__child_count(s->program, id);
  for (uint32_t i = 0; i < count; i++) {
    masked(s, vyre__child(s->program, id, i));
  }
  vyre__statement(&s->builder, vyre__block_end(&s->builder, mark));
}

/* Returns true if a statement runs under one `if (guard)`. */
static bool is_whole(const sharer *s, vyre__id id) {
  const vyre__node *node = share_node(s, id);
  if (s->has[id] & SHARE_EXCHANGE) return false;
  if (node->op == VYRE__OP_FOR || node->op == VYRE__OP_WHILE) return true;
  return node->op != VYRE__OP_LET && !(s->has[id] & SHARE_JUMP);
}

static void masked(sharer *s, vyre__id id) {
  const vyre__node *node = share_node(s, id);
  s->builder.place = vyre__source_loc_of(s->program, id);
  if (is_whole(s, id)) {
    vyre__id condition = guard(s);
    vyre__mark mark = vyre__block_begin(&s->builder);
    share_statement(s, id);
    share_if(s, condition, mark);
    return;
  }
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      masked_block(s, id);
      break;
    case VYRE__OP_LET:
      masked_let(s, id);
      break;
    case VYRE__OP_IF:
      masked_if(s, node);
      break;
    case VYRE__OP_FOR:
      masked_for(s, id);
      break;
    case VYRE__OP_WHILE:
      masked_while(s, id);
      break;
    case VYRE__OP_RETURN:
    case VYRE__OP_BREAK:
    case VYRE__OP_CONTINUE:
      share_jump(s, (vyre__op)node->op);
      break;
    default: /* barriers, which all invocations reach */
      share_statement(s, id);
  }
}

void share_masked(sharer *s) {
  share_scope scope = {.kind = SHARE_KERNEL};
  scope.guard = share_local(s, "runs", true, truth(s, true));
  s->scope = &scope;
  masked(s, s->program->functions[0].body);
  s->scope = NULL;
}
