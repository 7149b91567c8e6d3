/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/inline.h"

#include <stdio.h>
#include <string.h>

#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir_builder.h"

enum {
  HAS_CALL = 1,
  HAS_RETURN = 2,
  /* has or observes an effect: a load, an atomic, a uniform() */
  HAS_EFFECT = 4,
};

enum { MAX_GUARDS = 4 };

/* --- form of a function ----------------------------------------------------*/

/* Returns true if a statement contains a return, or with @p only_in_loops one
 * inside a loop. */
static bool has_return(const vyre_program *program, vyre__id id,
                       bool only_in_loops) {
  const vyre__node *node = &program->nodes[id];
  if (node->op == VYRE__OP_RETURN) return !only_in_loops;
  if (vyre__ops[node->op].form < VYRE__FORM_LIST) return false;
  bool is_loop = node->op == VYRE__OP_FOR || node->op == VYRE__OP_WHILE;
  uint32_t count = vyre__child_count(program, id);
  for (uint32_t i = 0; i < count; i++) {
    if (has_return(program, vyre__child(program, id, i),
                   only_in_loops && !is_loop)) {
      return true;
    }
  }
  return false;
}

/* Returns true if control clearly never reaches the end of a statement. */
static bool always_leaves(const vyre_program *program, vyre__id id) {
  const vyre__node *node = &program->nodes[id];
  if (node->op == VYRE__OP_RETURN) return true;
  if (node->op == VYRE__OP_IF) {
    return node->c && always_leaves(program, node->b) &&
           always_leaves(program, node->c);
  }
  return node->op == VYRE__OP_BLOCK && node->b > 0 &&
         always_leaves(program, program->lists[node->a + node->b - 1]);
}

/* Returns true for `if (c) { ... return x; }`: the statements after it become
 * its else. */
static bool is_guard(const vyre_program *program, vyre__id id) {
  const vyre__node *node = &program->nodes[id];
  return node->op == VYRE__OP_IF && node->c == 0 &&
         always_leaves(program, node->b);
}

/* Returns true if all returns in a statement at the end of a function can
 * become assignments; counts the guards on the way. */
static bool returns_nest(const vyre_program *program, vyre__id id,
                         uint32_t *guards) {
  const vyre__node *node = &program->nodes[id];
  if (node->op == VYRE__OP_RETURN) return true;
  if (node->op == VYRE__OP_IF) {
    return returns_nest(program, node->b, guards) &&
           (node->c == 0 || returns_nest(program, node->c, guards));
  }
  if (node->op != VYRE__OP_BLOCK) return !has_return(program, id, false);
  uint32_t count = vyre__child_count(program, id);
  for (uint32_t i = 0; i < count; i++) {
    vyre__id child = vyre__child(program, id, i);
    if (i + 1 == count) return returns_nest(program, child, guards);
    if (!has_return(program, child, false)) continue;
    if (!is_guard(program, child)) return false;
    ++*guards;
    if (!returns_nest(program, program->nodes[child].b, guards)) return false;
  }
  return true;
}

vyre__inline_shape vyre__inline_shape_of(const vyre_program *program,
                                         const vyre__function *function) {
  vyre__inline_shape shape = {0};
  const vyre__node *body = &program->nodes[function->body];
  uint32_t early = 0, guards = 0;
  for (uint32_t i = 0; i + 1 < body->b; i++) {
    early += has_return(program, program->lists[body->a + i], false);
  }
  vyre__id last = body->b ? program->lists[body->a + body->b - 1] : 0;
  shape.is_straight =
      early == 0 && last && program->nodes[last].op == VYRE__OP_RETURN;
  if (shape.is_straight) return shape;
  if (returns_nest(program, function->body, &guards) && guards <= MAX_GUARDS) {
    shape.is_nested = true;
    shape.depth = 2 * guards;
    return shape;
  }
  shape.has_loop_exit = has_return(program, function->body, true);
  shape.depth = 4;
  return shape;
}

/* --- the inliner -----------------------------------------------------------*/

/* Function whose statements are being copied. */
typedef struct frame {
  const vyre__function *function;
  vyre__inline_shape shape;
  uint32_t *locals; /* indices in the result */
  uint32_t result, done;
  uint32_t loops; /* its own loops around the statement */
  bool is_kernel;
} frame;

typedef struct inliner {
  const vyre_program *program;
  vyre__ir_builder builder;
  vyre_arena scratch;
  uint8_t *has;    /* per node: HAS_* */
  uint32_t unique; /* makes names unique */
  bool no_memory;
  char message[256]; /* first error */
} inliner;

static vyre__id copy_value(inliner *in, frame *f, vyre__id id);
static void copy_statement(inliner *in, frame *f, vyre__id id);

static const vyre__node *node_at(const inliner *in, vyre__id id) {
  return &in->program->nodes[id];
}

static void at_place_of(inliner *in, vyre__id id) {
  in->builder.place = vyre__source_loc_of(in->program, id);
  in->builder.length = 1;
}

static uint32_t add_local(inliner *in, const char *name, bool is_mutable,
                          vyre__id value) {
  char text[80];
  uint32_t local = 0;
  int length = snprintf(text, sizeof text, "%.60s_%u", *name ? name : "t",
                        (unsigned)++in->unique);
  vyre__statement(&in->builder, vyre__ir_build_let(
                                    &in->builder, text, (size_t)length,
                                    VYRE_TYPE_VOID, is_mutable, value, &local));
  return local;
}

static void assign(inliner *in, uint32_t local, vyre__id value) {
  vyre__statement(&in->builder,
                  vyre__ir_build_assign(&in->builder, local, value));
}

/* Stores a value in a `let`, because it must be computed here and not later. */
static vyre__id store_in_let(inliner *in, vyre__id value) {
  return vyre__ir_build_local(&in->builder, add_local(in, "t", false, value));
}

/* Copies child @p index. If a later child contains a call, the value goes to
 * a `let` before the inlined statements. */
static vyre__id copy_operand(inliner *in, frame *f, vyre__id id,
                             uint32_t index) {
  uint32_t count = vyre__child_count(in->program, id);
  vyre__id child = vyre__child(in->program, id, index);
  vyre__id value = copy_value(in, f, child);
  bool call_follows = false;
  for (uint32_t i = index + 1; i < count; i++) {
    vyre__id later = vyre__child(in->program, id, i);
    call_follows |= (in->has[later] & HAS_CALL) != 0;
  }
  bool can_wait = (in->has[child] & (HAS_CALL | HAS_EFFECT)) == 0;
  if (!call_follows || can_wait) return value;
  at_place_of(in, child);
  return store_in_let(in, value);
}

/* --- calls -----------------------------------------------------------------*/

static void copy_tail(inliner *in, frame *f, vyre__id id);

/* Copies the statements of a block from @p first on, at the end of a
 * function. */
static void copy_tail_of(inliner *in, frame *f, vyre__id block,
                         uint32_t first) {
  uint32_t count = vyre__child_count(in->program, block);
  for (uint32_t i = first; i < count; i++) {
    vyre__id child = vyre__child(in->program, block, i);
    bool is_last = i + 1 == count;
    if (is_last) {
      copy_tail(in, f, child);
    } else if ((in->has[child] & HAS_RETURN) == 0) {
      copy_statement(in, f, child);
    } else {
      const vyre__node *guard = node_at(in, child);
      vyre__id condition = copy_value(in, f, guard->a);
      vyre__mark mark = vyre__block_begin(&in->builder);
      copy_tail(in, f, guard->b);
      vyre__id then = vyre__block_end(&in->builder, mark);
      mark = vyre__block_begin(&in->builder);
      copy_tail_of(in, f, block, i + 1);
      vyre__id rest = vyre__block_end(&in->builder, mark);
      at_place_of(in, child);
      vyre__statement(&in->builder,
                      vyre__ir_build_if(&in->builder, condition, then, rest));
      return;
    }
  }
}

static vyre__id tail_block(inliner *in, frame *f, vyre__id id) {
  vyre__mark mark = vyre__block_begin(&in->builder);
  copy_tail(in, f, id);
  return vyre__block_end(&in->builder, mark);
}

/* Copies the last statement of a function whose returns become if/else. */
static void copy_tail(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = node_at(in, id);
  if (node->op == VYRE__OP_BLOCK) {
    copy_tail_of(in, f, id, 0);
  } else if (node->op == VYRE__OP_IF) {
    vyre__id condition = copy_value(in, f, node->a);
    vyre__id then = tail_block(in, f, node->b);
    vyre__id otherwise = node->c ? tail_block(in, f, node->c) : 0;
    at_place_of(in, id);
    vyre__statement(&in->builder, vyre__ir_build_if(&in->builder, condition,
                                                    then, otherwise));
  } else {
    copy_statement(in, f, id);
  }
}

static void copy_statements(inliner *in, frame *f, vyre__id block,
                            uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    copy_statement(in, f, vyre__child(in->program, block, i));
  }
}

/* Wraps a body in `for (once = 0; once < 1; once += 1)`, so that a return can
 * become a break. */
static void copy_once(inliner *in, frame *f) {
  vyre__ir_builder *m = &in->builder;
  vyre__for loop;
  vyre__for_begin(m, &loop, "once", 4, VYRE_TYPE_U32, VYRE__LOOP_LT,
                  vyre__ir_build_literal(m, VYRE_TYPE_U32, 0),
                  vyre__ir_build_literal(m, VYRE_TYPE_U32, 1),
                  vyre__ir_build_literal(m, VYRE_TYPE_U32, 1));
  vyre__mark mark = vyre__block_begin(m);
  copy_statements(in, f, f->function->body,
                  vyre__child_count(in->program, f->function->body));
  vyre__id body = vyre__block_end(m, mark);
  vyre__id made = vyre__for_end(m, &loop, body);
  if (made) m->nodes[made].c = VYRE__FOR_ONCE;
  vyre__statement(m, made);
}

/* Copies the body of a called function, after its parameters were set.
 * Returns the value of the call. */
static vyre__id copy_body(inliner *in, frame *f) {
  vyre__ir_builder *m = &in->builder;
  const vyre__function *function = f->function;
  uint32_t count = vyre__child_count(in->program, function->body);
  if (f->shape.is_straight) {
    copy_statements(in, f, function->body, count - 1);
    vyre__id last = vyre__child(in->program, function->body, count - 1);
    vyre__id value = copy_value(in, f, node_at(in, last)->a);
    at_place_of(in, last);
    return vyre__ir_build_local(m, add_local(in, function->name, false, value));
  }
  f->result = add_local(in, function->name, true,
                        vyre__ir_build_literal(m, function->result, 0));
  if (f->shape.has_loop_exit) {
    f->done = add_local(in, "done", true,
                        vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 0));
  }
  if (f->shape.is_nested) {
    copy_tail(in, f, function->body);
  } else {
    copy_once(in, f);
  }
  return vyre__ir_build_local(m, f->result);
}

static vyre__id copy_call(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = node_at(in, id);
  frame callee = {.function = &in->program->functions[node->a]};
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  callee.shape = vyre__inline_shape_of(in->program, callee.function);
  callee.locals = vyre__arena_array(&in->scratch, callee.function->local_count,
                                    sizeof *callee.locals);
  if (!callee.locals) {
    in->no_memory = true;
    return 0;
  }
  for (uint32_t i = 0; i < node->c; i++) {
    vyre__id argument = vyre__child(in->program, id, i);
    vyre__id value = copy_value(in, f, argument);
    at_place_of(in, argument);
    callee.locals[i] =
        add_local(in, callee.function->locals[i].name, false, value);
  }
  vyre__id value = copy_body(in, &callee);
  vyre__arena_rewind(&in->scratch, mark);
  return value;
}

/* --- values ----------------------------------------------------------------*/

/* Copies a && b with a call in b as `var t = a; if (t) t = b;`. */
static vyre__id copy_short_circuit(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = node_at(in, id);
  vyre__id left = copy_value(in, f, node->a);
  at_place_of(in, id);
  uint32_t local = add_local(in, "t", true, left);
  vyre__id test = vyre__ir_build_local(m, local);
  if (node->op == VYRE__OP_LOR)
    test = vyre__ir_build_unary(m, VYRE__OP_NOT, test);
  vyre__mark mark = vyre__block_begin(m);
  assign(in, local, copy_value(in, f, node->b));
  vyre__id then = vyre__block_end(m, mark);
  at_place_of(in, id);
  vyre__statement(m, vyre__ir_build_if(m, test, then, 0));
  return vyre__ir_build_local(m, local);
}

/* Copies c ? x : y with a call in x or y as `var t; if (c) t = x; else t = y;`.
 */
static vyre__id copy_conditional(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = node_at(in, id);
  const vyre__id sides[2] = {node->b, node->c};
  vyre__id blocks[2];
  vyre__id condition = copy_value(in, f, node->a);
  at_place_of(in, id);
  uint32_t value = add_local(
      in, "t", true, vyre__ir_build_literal(m, (vyre_type)node->type, 0));
  for (int i = 0; i < 2; i++) {
    vyre__mark mark = vyre__block_begin(m);
    assign(in, value, copy_value(in, f, sides[i]));
    blocks[i] = vyre__block_end(m, mark);
  }
  at_place_of(in, id);
  vyre__statement(m, vyre__ir_build_if(m, condition, blocks[0], blocks[1]));
  return vyre__ir_build_local(m, value);
}

static vyre__id copy_leaf(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = node_at(in, id);
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LITERAL:
      return vyre__ir_build_literal(m, node->type, vyre__literal(node));
    case VYRE__FORM_LOCAL:
      return vyre__ir_build_local(m, f->locals[node->a]);
    case VYRE__FORM_BUFFER:
      return vyre__ir_build_len(m, node->a);
    case VYRE__FORM_AXIS:
      return vyre__ir_build_axis(m, node->op, node->aux);
    case VYRE__FORM_TEXT:
      return vyre__ir_build_text(m, in->program->texts + node->a, node->b);
    default:
      return vyre__ir_build_item(m);
  }
}

static vyre__id make_unary(vyre__ir_builder *m, const vyre__node *node,
                           vyre__id a) {
  switch ((vyre__op)node->op) {
    case VYRE__OP_CAST:
      return vyre__ir_build_cast(m, node->type, a);
    case VYRE__OP_BITCAST:
      return vyre__ir_build_bitcast(m, node->type, a);
    case VYRE__OP_PUSH:
      return vyre__ir_build_push(m, a);
    default:
      return vyre__ir_build_unary(m, node->op, a);
  }
}

static vyre__id make_value(vyre__ir_builder *m, const vyre__node *node,
                           const vyre__id v[3]) {
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_UNARY:
      return make_unary(m, node, v[0]);
    case VYRE__FORM_BINARY:
      return vyre__ir_build_binary(m, node->op, v[0], v[1]);
    case VYRE__FORM_TERNARY:
      return vyre__ir_build_ternary(m, node->op, v[0], v[1], v[2]);
    case VYRE__FORM_LOAD:
      return vyre__ir_build_load(m, node->a, v[0]);
    case VYRE__FORM_ATOMIC:
      return vyre__ir_build_atomic(m, node->op, node->a, v[0], v[1]);
    default:
      return vyre__ir_build_atomic_cas(m, node->a, v[0], v[1], v[2]);
  }
}

static vyre__id copy_value(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = node_at(in, id);
  uint32_t count = vyre__child_count(in->program, id);
  vyre__id v[3] = {0, 0, 0};
  if (node->op == VYRE__OP_CALL) return copy_call(in, f, id);
  if (count == 0) {
    at_place_of(in, id);
    return copy_leaf(in, f, id);
  }
  if ((node->op == VYRE__OP_LAND || node->op == VYRE__OP_LOR) &&
      (in->has[node->b] & HAS_CALL)) {
    return copy_short_circuit(in, f, id);
  }
  if (node->op == VYRE__OP_COND &&
      ((in->has[node->b] | in->has[node->c]) & HAS_CALL)) {
    return copy_conditional(in, f, id);
  }
  for (uint32_t i = 0; i < count && i < 3; i++) {
    v[i] = copy_operand(in, f, id, i);
  }
  at_place_of(in, id);
  return make_value(&in->builder, node, v);
}

/* --- statements ------------------------------------------------------------*/

static vyre__id copy_block(inliner *in, frame *f, vyre__id id) {
  vyre__mark mark = vyre__block_begin(&in->builder);
  copy_statements(in, f, id, vyre__child_count(in->program, id));
  at_place_of(in, id);
  return vyre__block_end(&in->builder, mark);
}

static void leave_if(inliner *in, vyre__id condition) {
  vyre__ir_builder *m = &in->builder;
  vyre__mark mark = vyre__block_begin(m);
  vyre__statement(m, vyre__ir_build_simple(m, VYRE__OP_BREAK));
  vyre__id then = vyre__block_end(m, mark);
  vyre__statement(m, vyre__ir_build_if(m, condition, then, 0));
}

/* After a loop that a return left: also leaves the enclosing loop. */
static void propagate_return(inliner *in, const frame *f, vyre__id loop) {
  if (f->is_kernel || !(in->has[loop] & HAS_RETURN)) return;
  leave_if(in, vyre__ir_build_local(&in->builder, f->done));
}

static void copy_for(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = node_at(in, id);
  const vyre__local *local = &f->function->locals[node->a];
  char name[80];
  int length = snprintf(name, sizeof name, "%.60s_%u", local->name,
                        (unsigned)++in->unique);
  vyre__id first = copy_operand(in, f, id, 0);
  vyre__id bound = copy_operand(in, f, id, 1);
  vyre__id step = copy_operand(in, f, id, 2);
  vyre__for loop;
  at_place_of(in, id);
  vyre__for_begin(m, &loop, name, (size_t)length, local->type, node->aux, first,
                  bound, step);
  f->locals[node->a] = loop.local;
  f->loops++;
  vyre__id body = copy_block(in, f, vyre__for_of(in->program, id).body);
  f->loops--;
  vyre__statement(m, vyre__for_end(m, &loop, body));
  propagate_return(in, f, id);
}

static void copy_while(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = node_at(in, id);
  bool calls = (in->has[node->a] & HAS_CALL) != 0;
  vyre__id condition = 0;
  if (!calls) condition = copy_value(in, f, node->a);
  vyre__while_begin(m);
  vyre__mark mark = vyre__block_begin(m);
  if (calls) {
    vyre__id test = copy_value(in, f, node->a);
    at_place_of(in, node->a);
    leave_if(in, vyre__ir_build_unary(m, VYRE__OP_NOT, test));
    condition = vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 1);
  }
  f->loops++;
  copy_statements(in, f, node->b, vyre__child_count(in->program, node->b));
  f->loops--;
  vyre__id body = vyre__block_end(m, mark);
  at_place_of(in, id);
  vyre__id made = vyre__while_end(m, condition, body);
  if (made && calls) m->nodes[made].aux = VYRE__WHILE_TESTS_INSIDE;
  vyre__statement(m, made);
  propagate_return(in, f, id);
}

static void copy_return(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  if (f->is_kernel) {
    at_place_of(in, id);
    vyre__statement(m, vyre__ir_build_return(m, false, 0));
    return;
  }
  vyre__id value = copy_value(in, f, node_at(in, id)->a);
  at_place_of(in, id);
  assign(in, f->result, value);
  if (f->shape.is_nested) return;
  if (f->loops > 0) {
    assign(in, f->done, vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 1));
  }
  vyre__statement(m, vyre__ir_build_simple(m, VYRE__OP_BREAK));
}

static void copy_print(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  uint32_t count = vyre__child_count(in->program, id);
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  vyre__id *values = vyre__arena_array(&in->scratch, count, sizeof *values);
  if (!values) {
    in->no_memory = true;
    return;
  }
  for (uint32_t i = 0; i < count; i++) values[i] = copy_operand(in, f, id, i);
  uint32_t stack = vyre__stack_mark(m);
  for (uint32_t i = 0; i < count; i++) vyre__push(m, values[i]);
  at_place_of(in, id);
  vyre__statement(m, vyre__ir_build_print(m, stack));
  vyre__arena_rewind(&in->scratch, mark);
}

static void copy_let(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = node_at(in, id);
  const vyre__local *local = &f->function->locals[node->a];
  vyre__id value = copy_value(in, f, node->b);
  at_place_of(in, id);
  f->locals[node->a] = add_local(in, local->name, local->is_mutable, value);
}

static void copy_store(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  vyre__id index = copy_operand(in, f, id, 0);
  vyre__id value = copy_operand(in, f, id, 1);
  at_place_of(in, id);
  vyre__statement(m, vyre__ir_build_store(m, node_at(in, id)->a, index, value));
}

static void copy_if(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = node_at(in, id);
  vyre__id condition = copy_value(in, f, node->a);
  vyre__id then = copy_block(in, f, node->b);
  vyre__id otherwise = node->c ? copy_block(in, f, node->c) : 0;
  at_place_of(in, id);
  vyre__statement(&in->builder,
                  vyre__ir_build_if(&in->builder, condition, then, otherwise));
}

static void copy_statement(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = node_at(in, id);
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      vyre__statement(m, copy_block(in, f, id));
      break;
    case VYRE__OP_LET:
      copy_let(in, f, id);
      break;
    case VYRE__OP_ASSIGN: {
      vyre__id value = copy_value(in, f, node->b);
      at_place_of(in, id);
      assign(in, f->locals[node->a], value);
      break;
    }
    case VYRE__OP_STORE:
      copy_store(in, f, id);
      break;
    case VYRE__OP_IF:
      copy_if(in, f, id);
      break;
    case VYRE__OP_FOR:
      copy_for(in, f, id);
      break;
    case VYRE__OP_WHILE:
      copy_while(in, f, id);
      break;
    case VYRE__OP_RETURN:
      copy_return(in, f, id);
      break;
    case VYRE__OP_PRINT:
      copy_print(in, f, id);
      break;
    case VYRE__OP_EVAL: {
      vyre__id value = copy_value(in, f, node->a);
      at_place_of(in, id);
      vyre__statement(m, vyre__ir_build_eval(m, value));
      break;
    }
    default:
      at_place_of(in, id);
      vyre__statement(m, vyre__ir_build_simple(m, node->op));
  }
}

/* --- program ---------------------------------------------------------------*/

/* Children come before their parents, so one pass is enough. */
static void mark_nodes(inliner *in) {
  const vyre_program *p = in->program;
  for (vyre__id id = 0; id < p->node_count; id++) {
    uint8_t flags = vyre__ops[p->nodes[id].op].flags;
    uint8_t has = 0;
    if (p->nodes[id].op == VYRE__OP_CALL) has |= HAS_CALL;
    if (p->nodes[id].op == VYRE__OP_RETURN) has |= HAS_RETURN;
    if (flags & (uint8_t)~VYRE__OPF_JUMPS) has |= HAS_EFFECT;
    uint32_t count = vyre__child_count(p, id);
    for (uint32_t i = 0; i < count; i++) has |= in->has[vyre__child(p, id, i)];
    in->has[id] = has;
  }
}

static void note_complaint(void *self, const char *rule, vyre__source_loc place,
                           uint32_t length, const char *message,
                           const char *fix, vyre__source_loc other,
                           const char *other_text) {
  inliner *in = self;
  (void)rule, (void)length, (void)fix, (void)other, (void)other_text;
  if (in->message[0]) return;
  snprintf(in->message, sizeof in->message, "line %u: %.200s",
           (unsigned)place.line, message);
}

static vyre__kernel head_of(const vyre_program *p) {
  return (vyre__kernel){
      .name = p->name,
      .file = p->file,
      .buffers = p->buffers,
      .buffer_places = p->buffer_places,
      .buffer_count = (uint32_t)p->buffer_count,
      .workgroup = {p->workgroup[0], p->workgroup[1], p->workgroup[2]},
      .over = p->over,
      .item_type = p->item_type};
}

static vyre_code seal(inliner *in, uint32_t function,
                      const vyre__kernel *kernel, vyre_allocator allocator,
                      vyre_program **out, vyre_status *st) {
  if (in->no_memory || in->builder.out_of_memory) {
    return vyre__no_memory(st, "vyre__inline", "inlined program",
                           in->builder.node_count);
  }
  if (in->builder.error_count > 0) {
    return VYRE_FAIL(
        st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
        "call fewer functions from each other, or make them smaller",
        "cannot inline the functions of '%.60s': %.200s", in->program->name,
        in->message);
  }
  return vyre__canonicalize(&in->builder, function, kernel, allocator, out, st);
}

static vyre_code inline_kernel(inliner *in, vyre_allocator allocator,
                               vyre_program **out, vyre_status *st) {
  const vyre_program *p = in->program;
  vyre__kernel kernel = head_of(p);
  frame f = {.function = &p->functions[0], .is_kernel = true};
  uint32_t function = 0;
  in->has = vyre__arena_array(&in->scratch, p->node_count, 1);
  f.locals = vyre__arena_array(&in->scratch, f.function->local_count,
                               sizeof *f.locals);
  in->no_memory = !in->has || !f.locals;
  if (!in->no_memory) {
    mark_nodes(in);
    function = vyre__kernel_begin(&in->builder, &kernel);
    vyre__function_end(&in->builder, copy_block(in, &f, f.function->body));
  }
  return seal(in, function, &kernel, allocator, out, st);
}

vyre_code vyre__inline(const vyre_program *program, vyre_allocator allocator,
                       vyre_program **out, vyre_status *st) {
  inliner in = {.program = program};
  *out = NULL;
  vyre_arena_init(&in.scratch, allocator);
  vyre__ir_builder_init(&in.builder, allocator,
                        (vyre__reporter){note_complaint, &in});
  vyre_code code = inline_kernel(&in, allocator, out, st);
  vyre__ir_builder_build(&in.builder);
  vyre_arena_deinit(&in.scratch);
  return code;
}
