/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/inline/inline.h"

#include <stdio.h>
#include <string.h>

#include "analyze/inline/inliner.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

enum {
  MAX_GUARDS = 4,
  MAX_UNROLLED = 20000, /* nodes that unrolling may add */
};

/* --- form of a function ----------------------------------------------------*/

static bool is_return(const vyre__node *node) {
  return node->op == VYRE__OP_RETURN || node->op == VYRE__OP_RETURN_RESULTS;
}

/* Returns true if a statement contains a return, or with @p only_in_loops one
 * inside a loop. */
static bool has_return(const vyre_program *program, vyre__id id,
                       bool only_in_loops) {
  const vyre__node *node = &program->nodes[id];
  if (is_return(node)) return !only_in_loops;
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
  if (is_return(node)) return true;
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
  if (is_return(node)) return true;
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
  const bool has_result =
      function->result != VYRE_TYPE_VOID || function->result_count > 0;
  shape.is_straight =
      early == 0 &&
      ((last && is_return(&program->nodes[last])) ||
       (!has_result && !(last && has_return(program, last, false))));
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

static void copy_statement(inliner *in, frame *f, vyre__id id);

uint32_t inline_local(inliner *in, const char *name, bool is_mutable,
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

void inline_assign(inliner *in, uint32_t local, vyre__id value) {
  vyre__statement(&in->builder,
                  vyre__ir_build_assign(&in->builder, local, value));
}

/* Stores a value in a `let`, because it must be computed here and not later. */
vyre__id inline_let(inliner *in, vyre__id value) {
  return vyre__ir_build_local(&in->builder,
                              inline_local(in, "t", false, value));
}

/* Copies child @p index. If a later child contains a call, the value goes to
 * a `let` before the inlined statements. */
vyre__id inline_operand(inliner *in, frame *f, vyre__id id, uint32_t index) {
  uint32_t count = vyre__child_count(in->program, id);
  vyre__id child = vyre__child(in->program, id, index);
  vyre__id value = inline_value(in, f, child);
  bool call_follows = false;
  for (uint32_t i = index + 1; i < count; i++) {
    vyre__id later = vyre__child(in->program, id, i);
    call_follows |= (in->has[later] & INLINE_CALL) != 0;
  }
  bool can_wait = (in->has[child] & (INLINE_CALL | INLINE_EFFECT)) == 0;
  if (!call_follows || can_wait) return value;
  inline_at(in, child);
  return inline_let(in, value);
}

/* --- known values ----------------------------------------------------------*/

/* Returns a copy of the known values of the frame; NULL without folding. */
static uint32_t *keep_known(inliner *in, const frame *f) {
  const uint32_t count = f->function->local_count;
  if (!in->folds || count == 0) return NULL;
  uint32_t *copy = vyre__arena_array(&in->scratch, count, sizeof *copy);
  if (!copy) {
    in->no_memory = true;
    return NULL;
  }
  memcpy(copy, f->known, count * sizeof *copy);
  return copy;
}

/* Sets the known values to a copy of keep_known. */
static void use_known(frame *f, const uint32_t *known) {
  if (!known) return;
  memcpy(f->known, known, f->function->local_count * sizeof *known);
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
    f->block = block;
    if (is_last) {
      copy_tail(in, f, child);
    } else if ((in->has[child] & INLINE_RETURN) == 0) {
      copy_statement(in, f, child);
    } else {
      const vyre__node *guard = inline_node(in, child);
      vyre__id condition = inline_value(in, f, guard->a);
      uint64_t holds;
      if (in->folds && inline_literal(in, condition, &holds)) {
        if (holds) {
          copy_tail(in, f, guard->b);
          return;
        }
        continue;
      }
      const uint32_t *known = keep_known(in, f);
      vyre__mark mark = vyre__block_begin(&in->builder);
      copy_tail(in, f, guard->b);
      vyre__id then = vyre__block_end(&in->builder, mark);
      use_known(f, known);
      mark = vyre__block_begin(&in->builder);
      copy_tail_of(in, f, block, i + 1);
      vyre__id rest = vyre__block_end(&in->builder, mark);
      inline_at(in, child);
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
  const vyre__node *node = inline_node(in, id);
  if (node->op == VYRE__OP_BLOCK) {
    copy_tail_of(in, f, id, 0);
  } else if (node->op == VYRE__OP_IF) {
    vyre__id condition = inline_value(in, f, node->a);
    const uint32_t *known = keep_known(in, f);
    vyre__id then = tail_block(in, f, node->b);
    use_known(f, known);
    vyre__id otherwise = node->c ? tail_block(in, f, node->c) : 0;
    inline_at(in, id);
    vyre__statement(&in->builder, vyre__ir_build_if(&in->builder, condition,
                                                    then, otherwise));
  } else {
    copy_statement(in, f, id);
  }
}

static void copy_statements(inliner *in, frame *f, vyre__id block,
                            uint32_t count) {
  const vyre__id around = f->block;
  for (uint32_t i = 0; i < count; i++) {
    f->block = block;
    copy_statement(in, f, vyre__child(in->program, block, i));
  }
  f->block = around;
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

void inline_body(inliner *in, frame *f) {
  copy_statements(in, f, f->function->body,
                  vyre__child_count(in->program, f->function->body));
}

/* Copies the body of a function that is not straight. */
static void copy_returning(inliner *in, frame *f) {
  if (f->shape.has_loop_exit) {
    f->done =
        inline_local(in, "done", true,
                     vyre__ir_build_literal(&in->builder, VYRE_TYPE_BOOL, 0));
  }
  if (f->shape.is_nested) {
    copy_tail(in, f, f->function->body);
  } else {
    inline_forget_assigned(in, f, f->function->body);
    copy_once(in, f);
  }
}

/* Copies the body of a called function, after its parameters were set, and sets
 * the locals of its results. */
static void copy_body(inliner *in, frame *f) {
  const vyre__function *function = f->function;
  uint32_t count = vyre__child_count(in->program, function->body);
  if (f->shape.is_straight) {
    vyre__id last =
        count ? vyre__child(in->program, function->body, count - 1) : 0;
    if (!last || !is_return(inline_node(in, last))) {
      copy_statements(in, f, function->body, count);
      return;
    }
    copy_statements(in, f, function->body, count - 1);
    const uint32_t values = vyre__child_count(in->program, last);
    for (uint32_t i = 0; i < values; i++) {
      f->results[i] = inline_to_locals(in, f, vyre__child(in->program, last, i),
                                       function->name, false);
    }
    return;
  }
  if (function->result != VYRE_TYPE_VOID) {
    f->results[0] = inline_zeros(in, function->result, function->name);
  }
  for (uint32_t i = 0; i < function->result_count; i++) {
    f->results[i] = inline_zeros(in, function->results[i], function->name);
  }
  copy_returning(in, f);
}

/* Copies the body of the kernel as that of a function, so that statements can
 * follow it. */
static void copy_kernel_body(inliner *in, frame *f) {
  const vyre_program *p = in->program;
  if (!has_return(p, f->function->body, false)) {
    inline_body(in, f);
    return;
  }
  bool has_grid_barrier = false;
  for (vyre__id id = 0; id < p->node_count; id++) {
    has_grid_barrier |= p->nodes[id].op == VYRE__OP_GRID_BARRIER;
  }
  f->is_kernel = false;
  f->is_void = true;
  f->shape = vyre__inline_shape_of(p, f->function);
  if (f->shape.is_straight) {
    copy_statements(in, f, f->function->body,
                    vyre__child_count(p, f->function->body) - 1);
    return;
  }
  if (has_grid_barrier) { /* which may be in a loop, but not in an if */
    f->shape = (vyre__inline_shape){.has_loop_exit =
                                        has_return(p, f->function->body, true)};
  }
  copy_returning(in, f);
}

uint32_t inline_call(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  frame callee = {.function = &in->program->functions[node->a]};
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  callee.shape = vyre__inline_shape_of(in->program, callee.function);
  callee.locals = vyre__arena_array(&in->scratch, callee.function->local_count,
                                    sizeof *callee.locals);
  callee.known = vyre__arena_filled(&in->scratch, callee.function->local_count,
                                    sizeof *callee.known, 0);
  if (!callee.locals || !callee.known) {
    in->no_memory = true;
    return 0;
  }
  for (uint32_t i = 0; i < node->c; i++) {
    vyre__id argument = vyre__child(in->program, id, i);
    if (callee.function->locals[i].is_memory) {
      callee.locals[i] = inline_ref(in, f, inline_node(in, argument)->a);
      continue;
    }
    callee.locals[i] = inline_to_locals(in, f, argument,
                                        callee.function->locals[i].name, false);
    inline_know(in, &callee, i, in->last_value);
  }
  const uint32_t open = in->open_count;
  copy_body(in, &callee);
  inline_close_arrays(in, open);
  memcpy(f->last_results, callee.results, sizeof callee.results);
  vyre__arena_rewind(&in->scratch, mark);
  return callee.results[0];
}

/* --- values ----------------------------------------------------------------*/

/* Copies a && b with a call in b as `var t = a; if (t) t = b;`. */
static vyre__id copy_short_circuit(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  vyre__id left = inline_value(in, f, node->a);
  inline_at(in, id);
  uint32_t local = inline_local(in, "t", true, left);
  vyre__id test = vyre__ir_build_local(m, local);
  if (node->op == VYRE__OP_LOR)
    test = vyre__ir_build_unary(m, VYRE__OP_NOT, test);
  vyre__mark mark = vyre__block_begin(m);
  inline_assign(in, local, inline_value(in, f, node->b));
  vyre__id then = vyre__block_end(m, mark);
  inline_at(in, id);
  vyre__statement(m, vyre__ir_build_if(m, test, then, 0));
  return vyre__ir_build_local(m, local);
}

/* Copies c ? x : y with a call in x or y as `var t; if (c) t = x; else t = y;`.
 */
static vyre__id copy_conditional(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const vyre__id sides[2] = {node->b, node->c};
  vyre__id blocks[2];
  vyre__id condition = inline_value(in, f, node->a);
  inline_at(in, id);
  uint32_t value = inline_local(
      in, "t", true, vyre__ir_build_literal(m, (vyre_type)node->type, 0));
  for (int i = 0; i < 2; i++) {
    vyre__mark mark = vyre__block_begin(m);
    inline_assign(in, value, inline_value(in, f, sides[i]));
    blocks[i] = vyre__block_end(m, mark);
  }
  inline_at(in, id);
  vyre__statement(m, vyre__ir_build_if(m, condition, blocks[0], blocks[1]));
  return vyre__ir_build_local(m, value);
}

static vyre__id copy_leaf(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LITERAL:
      return vyre__ir_build_literal(m, node->type, vyre__literal(node));
    case VYRE__FORM_LOCAL:
      if (in->folds && f->known[node->a]) {
        return vyre__ir_build_literal(m, node->type,
                                      in->values[f->known[node->a] - 1]);
      }
      return vyre__ir_build_local(m, f->locals[node->a]);
    case VYRE__FORM_BUFFER:
      return inline_len(in, f, node->a);
    case VYRE__FORM_AXIS:
      return vyre__ir_build_axis(m, node->op, node->aux);
    case VYRE__FORM_TEXT:
      return vyre__ir_build_text(m, in->program->texts + node->a, node->b);
    default:
      if (node->op == VYRE__OP_RESULT) {
        return vyre__ir_build_local(m, f->last_results[node->aux]);
      }
      if (in->form) return queue_form_leaf(in, node);
      return node->op == VYRE__OP_ITEM ? vyre__ir_build_item(m, node->aux)
                                       : vyre__ir_build_position(m, node->op);
  }
}

static vyre__id make_push(vyre__ir_builder *m, vyre__id value) {
  if (m->in_by) return vyre__ir_build_priority(m, value);
  const uint32_t mark = vyre__stack_mark(m);
  vyre__push(m, value);
  return vyre__ir_build_push(m, mark);
}

static vyre__id copy_list(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  vyre__id values[VYRE__MAX_QUEUE_FIELDS];
  const uint32_t count = vyre__child_count(in->program, id);
  for (uint32_t i = 0; i < count; i++) values[i] = inline_operand(in, f, id, i);
  const uint32_t mark = vyre__stack_mark(m);
  for (uint32_t i = 0; i < count; i++) vyre__push(m, values[i]);
  inline_at(in, id);
  return inline_node(in, id)->op == VYRE__OP_AT ? vyre__ir_build_at(m, mark)
                                                : vyre__ir_build_push(m, mark);
}

static vyre__id make_unary(vyre__ir_builder *m, const vyre__node *node,
                           vyre__id a) {
  switch ((vyre__op)node->op) {
    case VYRE__OP_CAST:
      return vyre__ir_build_cast(m, node->type, a);
    case VYRE__OP_BITCAST:
      return vyre__ir_build_bitcast(m, node->type, a);
    case VYRE__OP_PUSH:
      return make_push(m, a);
    case VYRE__OP_IN_WINDOW:
      return vyre__ir_build_in_window(m, a);
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
    default:
      return vyre__ir_build_ternary(m, node->op, v[0], v[1], v[2]);
  }
}

static bool is_access(const vyre__node *node) {
  const uint8_t form = vyre__ops[node->op].form;
  return form == VYRE__FORM_LOAD || form == VYRE__FORM_ATOMIC ||
         form == VYRE__FORM_ATOMIC2;
}

/* Returns true for the value of a uniform that is a dimension. */
static bool is_size(const inliner *in, const vyre__node *load) {
  const vyre__node *index = inline_node(in, load->b);
  return load->a < in->program->buffer_count &&
         in->sizes[load->a] != VYRE_NO_INDEX && index->op == VYRE__OP_LITERAL &&
         vyre__literal(index) == 0;
}

vyre__id inline_value(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  uint32_t count = vyre__child_count(in->program, id);
  vyre__id v[3] = {0, 0, 0};
  if (node->op == VYRE__OP_CALL) {
    const uint32_t local = inline_call(in, f, id);
    return vyre__ir_build_local(&in->builder, local);
  }
  if ((node->op >= VYRE__OP_MAKE && node->op <= VYRE__OP_DISTANCE) ||
      node->op == VYRE__OP_FIELD) {
    return inline_reduction(in, f, id);
  }
  if (in->form && inline_is_of_queue(node->op))
    return queue_form_value(in, f, id);
  if (node->op == VYRE__OP_PUSH_FIELDS || node->op == VYRE__OP_AT)
    return copy_list(in, f, id);
  if (vyre__op_is_workgroup(node->op)) return inline_workgroup(in, f, id);
  if (vyre__op_is_subgroup(node->op)) return inline_subgroup(in, f, id);
  if (node->op == VYRE__OP_UNIFORM && in->has_subgroups) {
    return inline_uniform(in, f, id);
  }
  if (node->op == VYRE__OP_LOAD) {
    if (in->splice) return inline_spliced_load(in, f, id);
    if (inline_is_sum(in, node->a)) return inline_sum_load(in, f, id);
  }
  if (in->splice && (vyre__ops[node->op].flags & VYRE__OPF_ATOMICS)) {
    return inline_spliced_atomic(in, f, id);
  }
  if (is_access(node) && inline_has_dimensions(in, f, node->a)) {
    return inline_access(in, f, id);
  }
  if (node->op == VYRE__OP_LOAD && is_size(in, node)) {
    inline_at(in, id);
    return vyre__ir_build_local(&in->builder, in->sizes[node->a]);
  }
  const unsigned form = vyre__ops[node->op].form;
  if (form == VYRE__FORM_LOAD) return inline_load(in, f, id);
  if (form == VYRE__FORM_ATOMIC || form == VYRE__FORM_ATOMIC2) {
    return inline_atomic(in, f, id);
  }
  if (count == 0) {
    inline_at(in, id);
    return copy_leaf(in, f, id);
  }
  if ((node->op == VYRE__OP_LAND || node->op == VYRE__OP_LOR) &&
      (in->has[node->b] & INLINE_CALL)) {
    return copy_short_circuit(in, f, id);
  }
  if (node->op == VYRE__OP_COND &&
      ((in->has[node->b] | in->has[node->c]) & INLINE_CALL)) {
    return copy_conditional(in, f, id);
  }
  for (uint32_t i = 0; i < count && i < 3; i++) {
    v[i] = inline_operand(in, f, id, i);
  }
  inline_at(in, id);
  const vyre__id made = make_value(&in->builder, node, v);
  return in->folds ? inline_fold(in, made) : made;
}

/* --- statements ------------------------------------------------------------*/

vyre__id inline_copy_block(inliner *in, frame *f, vyre__id id) {
  vyre__mark mark = vyre__block_begin(&in->builder);
  const uint32_t open = in->open_count;
  copy_statements(in, f, id, vyre__child_count(in->program, id));
  inline_close_arrays(in, open);
  inline_at(in, id);
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
  if (f->is_kernel || !(in->has[loop] & INLINE_RETURN)) return;
  leave_if(in, vyre__ir_build_local(&in->builder, f->done));
}

static void copy_for(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  const vyre__local *local = &f->function->locals[node->a];
  char name[80];
  int length = snprintf(name, sizeof name, "%.60s_%u", local->name,
                        (unsigned)++in->unique);
  vyre__id first = inline_operand(in, f, id, 0);
  vyre__id bound = inline_operand(in, f, id, 1);
  vyre__id step = inline_operand(in, f, id, 2);
  vyre__for loop;
  if (inline_unroll_for(in, f, id, first, bound)) return;
  inline_forget_assigned(in, f, id);
  if (in->folds) f->known[node->a] = 0;
  inline_at(in, id);
  vyre__for_begin(m, &loop, name, (size_t)length, local->type, node->aux, first,
                  bound, step);
  f->locals[node->a] = loop.local;
  f->loops++;
  vyre__id body = inline_copy_block(in, f, vyre__for_of(in->program, id).body);
  f->loops--;
  inline_forget_assigned(in, f, id);
  vyre__statement(m, vyre__for_end(m, &loop, body));
  propagate_return(in, f, id);
}

static void copy_while(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  bool calls = (in->has[node->a] & INLINE_CALL) != 0;
  if (inline_unroll_while(in, f, id)) return;
  inline_forget_assigned(in, f, id);
  vyre__id condition = 0;
  if (!calls) condition = inline_value(in, f, node->a);
  vyre__while_begin(m);
  vyre__mark mark = vyre__block_begin(m);
  if (calls) {
    vyre__id test = inline_value(in, f, node->a);
    inline_at(in, node->a);
    leave_if(in, vyre__ir_build_unary(m, VYRE__OP_NOT, test));
    condition = vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 1);
  }
  f->loops++;
  copy_statements(in, f, node->b, vyre__child_count(in->program, node->b));
  f->loops--;
  vyre__id body = vyre__block_end(m, mark);
  inline_forget_assigned(in, f, id);
  inline_at(in, id);
  vyre__id made = vyre__while_end(m, condition, body);
  if (made && calls) m->nodes[made].aux = VYRE__WHILE_TESTS_INSIDE;
  vyre__statement(m, made);
  propagate_return(in, f, id);
}

static void copy_return(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  if (f->is_kernel) {
    inline_at(in, id);
    vyre__statement(m, vyre__ir_build_return(m, false, 0));
    return;
  }
  const uint32_t values = vyre__child_count(in->program, id);
  for (uint32_t i = 0; i < values; i++) {
    inline_assign_all(in, f, f->results[i], vyre__child(in->program, id, i));
  }
  if (f->shape.is_nested) return;
  if (f->loops > 0) {
    inline_assign(in, f->done, vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 1));
  }
  vyre__statement(m, vyre__ir_build_simple(m, VYRE__OP_BREAK));
}

static void copy_let(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  const vyre__local *local = &f->function->locals[node->a];
  if (local->is_memory) {
    inline_declare_array(in, f, id);
    return;
  }
  f->locals[node->a] =
      inline_to_locals(in, f, node->b, local->name, local->is_mutable);
  inline_know(in, f, node->a, in->last_value);
}

static void copy_assign(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  if (f->function->locals[node->a].is_memory) {
    inline_assign_array(in, f, id);
    return;
  }
  inline_assign_all(in, f, f->locals[node->a], node->b);
  inline_know(in, f, node->a, in->last_value);
}

static void copy_store(inliner *in, frame *f, vyre__id id) {
  if (in->splice) {
    inline_spliced_store(in, f, id);
    return;
  }
  if (inline_is_sum(in, inline_node(in, id)->a)) {
    inline_sum_store(in, f, id);
    return;
  }
  if (vyre__is_aggregate(inline_node(in, inline_node(in, id)->c)->type)) {
    inline_store(in, f, id);
    return;
  }
  if (inline_has_dimensions(in, f, inline_node(in, id)->a)) {
    inline_scalar_store(in, f, id);
    return;
  }
  inline_set_element(in, f, id);
}

static void copy_if(inliner *in, frame *f, vyre__id id) {
  const vyre__node *node = inline_node(in, id);
  vyre__id condition = inline_value(in, f, node->a);
  uint64_t holds;
  if (in->folds && inline_literal(in, condition, &holds)) {
    const vyre__id taken = holds ? node->b : node->c;
    if (taken) vyre__statement(&in->builder, inline_copy_block(in, f, taken));
    return;
  }
  /* A branch knows the values before the if, but none of the other branch. */
  const uint32_t *known = keep_known(in, f);
  vyre__id then = inline_copy_block(in, f, node->b);
  use_known(f, known);
  vyre__id otherwise = node->c ? inline_copy_block(in, f, node->c) : 0;
  inline_forget_assigned(in, f, id);
  inline_at(in, id);
  vyre__statement(&in->builder,
                  vyre__ir_build_if(&in->builder, condition, then, otherwise));
}

static void copy_statement(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  const vyre__node *node = inline_node(in, id);
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      vyre__statement(m, inline_copy_block(in, f, id));
      break;
    case VYRE__OP_LET:
      copy_let(in, f, id);
      break;
    case VYRE__OP_ASSIGN:
      copy_assign(in, f, id);
      break;
    case VYRE__OP_SET_PLACE:
      inline_set_place(in, f, id);
      break;
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
    case VYRE__OP_RETURN_RESULTS:
      copy_return(in, f, id);
      break;
    case VYRE__OP_PRINT:
      inline_print(in, f, id);
      break;
    case VYRE__OP_EVAL: {
      if (inline_node(in, node->a)->op == VYRE__OP_ATOMIC_MERGE) {
        inline_sum_merge(in, f, node->a);
        break;
      }
      if (vyre__is_no_value(inline_node(in, node->a)->type)) {
        (void)inline_call(in, f, node->a);
        break;
      }
      vyre__id value = inline_value(in, f, node->a);
      if (in->form && inline_is_of_queue(inline_node(in, node->a)->op)) break;
      inline_at(in, id);
      /* An atomic on an array is already stored in a local. */
      if (m->nodes[value].op == VYRE__OP_LOCAL) break;
      vyre__statement(m, vyre__ir_build_eval(m, value));
      break;
    }
    default:
      inline_at(in, id);
      vyre__statement(m, vyre__ir_build_simple(m, node->op));
  }
}

/* --- program ---------------------------------------------------------------*/

/* Returns true for accesses to arrays that are copied as several operations. */
static bool may_add_statements(const inliner *in, const vyre__node *node) {
  const unsigned form = vyre__ops[node->op].form;
  const bool is_atomic =
      form == VYRE__FORM_ATOMIC || form == VYRE__FORM_ATOMIC2;
  return (is_atomic || (form == VYRE__FORM_LOAD && in->has_grid)) &&
         (node->a & VYRE__MEMORY_LOCAL);
}

/* Children come before their parents, so one pass is enough. */
void inline_mark_nodes(inliner *in) {
  const vyre_program *p = in->program;
  for (vyre__id id = 1; id < p->node_count && p->is_rich; id++) {
    in->has_subgroups |= vyre__op_is_subgroup(p->nodes[id].op);
  }
  for (vyre__id id = 0; id < p->node_count; id++) {
    uint8_t flags = vyre__ops[p->nodes[id].op].flags;
    uint8_t has = 0;
    if (vyre__op_is_workgroup(p->nodes[id].op) ||
        vyre__op_is_subgroup(p->nodes[id].op) ||
        (p->nodes[id].op == VYRE__OP_UNIFORM && in->has_subgroups)) {
      has |= INLINE_CALL;
    }
    if (p->nodes[id].op == VYRE__OP_CALL) {
      has |= INLINE_CALL;
      if (!in->splice) has |= in->effects[p->nodes[id].a];
    }
    if (in->form && inline_is_of_queue(p->nodes[id].op)) has |= INLINE_CALL;
    if (p->nodes[id].op == VYRE__OP_LOAD && inline_is_sum(in, p->nodes[id].a)) {
      has |= INLINE_CALL;
    }
    if (flags & VYRE__OPF_GRID_BARRIER) has |= INLINE_GRID;
    if (may_add_statements(in, &p->nodes[id])) has |= INLINE_CALL;
    if (is_return(&p->nodes[id])) has |= INLINE_RETURN;
    if (flags & (uint8_t)~VYRE__OPF_JUMPS) has |= INLINE_EFFECT;
    if (flags & (VYRE__OPF_ATOMICS | VYRE__OPF_PUSHES | VYRE__OPF_BARRIER)) {
      has |= INLINE_ORDERED;
    }
    uint32_t count = vyre__child_count(p, id);
    for (uint32_t i = 0; i < count; i++) has |= in->has[vyre__child(p, id, i)];
    in->has[id] = has | inline_hoists(in, id, (has & INLINE_ORDERED) != 0);
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

/* Returns the header of the result, which has one body. */
static vyre__kernel head_of(inliner *in) {
  const vyre_program *p = in->program;
  if (p->queue && !in->form) {
    in->queue = *p->queue;
    in->queue.by = in->queue.pull = 0;
  }
  vyre__kernel kernel = {
      .name = p->name,
      .file = p->file,
      .files = p->files,
      .hidden = p->hidden,
      .hidden_count = p->hidden_count,
      .buffers = p->buffers,
      .buffer_places = p->buffer_places,
      .buffer_count = (uint32_t)p->buffer_count,
      .workgroup = {p->workgroup[0], p->workgroup[1], p->workgroup[2]},
      .over = p->over,
      .queue = p->queue && !in->form ? &in->queue : NULL};
  return kernel;
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
  vyre__kernel kernel = head_of(in);
  frame f = {.function = &p->functions[0], .is_kernel = true};
  uint32_t function = 0;
  /* nodes that a part of a queue adds may come after their parents */
  in->has = vyre__arena_filled(&in->scratch, p->node_count, 1, 0);
  f.locals = vyre__arena_array(&in->scratch, f.function->local_count,
                               sizeof *f.locals);
  f.known = vyre__arena_filled(&in->scratch, f.function->local_count,
                               sizeof *f.known, 0);
  in->kernel = &kernel;
  in->no_memory =
      !in->has || !f.locals || !f.known || !inline_prepare_memory(in) ||
      !vyre__structs_adopt(&in->builder, p->structs, p->struct_count);
  if (!in->no_memory) {
    inline_mark_nodes(in);
    inline_add_hidden(in, &kernel);
  }
  if (!in->no_memory) {
    function = vyre__kernel_begin(&in->builder, &kernel);
    vyre__mark mark = vyre__block_begin(&in->builder);
    inline_at(in, f.function->body);
    if (in->form) queue_form_begin(in);
    if (!inline_begin_dimensions(in)) {
      /* no memory */
    } else if (in->settles && inline_changes_sums(in)) {
      copy_kernel_body(in, &f);
      inline_settle_sums(in);
    } else {
      inline_body(in, &f);
    }
    inline_at(in, f.function->body);
    vyre__function_end(&in->builder, vyre__block_end(&in->builder, mark));
  }
  in->is_large = in->builder.node_count > in->node_limit;
  if (in->folds && !in->no_memory && (in->is_again || in->is_large)) {
    return VYRE_OK; /* copied again */
  }
  return seal(in, function, &kernel, allocator, out, st);
}

static vyre_code inline_once(inliner *in, vyre_allocator allocator,
                             vyre_program **out, vyre_status *st) {
  vyre_arena_init(&in->scratch, allocator);
  vyre__ir_builder_init(&in->builder, allocator,
                        (vyre__reporter){note_complaint, in});
  vyre_code code = inline_kernel(in, allocator, out, st);
  vyre__ir_builder_build(&in->builder);
  vyre_arena_deinit(&in->scratch);
  return code;
}

vyre_code inline_program(const vyre_program *program, bool is_for_code,
                         bool settles, struct queue_form *form,
                         vyre_allocator allocator, vyre_program **out,
                         vyre_status *st) {
  enum { MAX_COPIES = 4 };
  uint8_t *stays = NULL;
  vyre_code code = VYRE_OK;
  vyre_arena lasting;
  *out = NULL;
  vyre_arena_init(&lasting, allocator);
  const bool folds = is_for_code && vyre__program_has_memory(program);
  for (uint32_t i = 0; i < MAX_COPIES && code == VYRE_OK && !*out; i++) {
    inliner in = {.program = program,
                  .lasting = lasting,
                  .stays = stays,
                  .settles = settles,
                  .form = form,
                  .keeps_arrays = is_for_code,
                  .folds = folds && i + 1 < MAX_COPIES};
    in.node_limit = 4 * (size_t)program->node_count + MAX_UNROLLED;
    code = inline_once(&in, allocator, out, st);
    if (in.is_large && i + 2 < MAX_COPIES) i = MAX_COPIES - 2;
    stays = in.stays;
    lasting = in.lasting;
  }
  vyre_arena_deinit(&lasting);
  return code;
}

vyre_code vyre__inline(const vyre_program *program, vyre_allocator allocator,
                       vyre_program **out, vyre_status *st) {
  if (vyre__is_queue_part(program))
    return inline_queue_part(program, false, allocator, out, st);
  return inline_program(program, false, false, NULL, allocator, out, st);
}

vyre_code vyre__inline_for_code(const vyre_program *program, bool settles,
                                vyre_allocator allocator, vyre_program **out,
                                vyre_status *st) {
  if (vyre__is_queue_part(program))
    return inline_queue_part(program, true, allocator, out, st);
  return inline_program(program, true, settles, NULL, allocator, out, st);
}

vyre_code vyre__plain(const vyre_program *program, vyre_allocator allocator,
                      vyre_program **out, vyre_status *st) {
  if (program->is_rich || vyre__is_queue_part(program))
    return vyre__inline(program, allocator, out, st);
  *out = vyre_program_retain((vyre_program *)program);
  return VYRE_OK;
}
