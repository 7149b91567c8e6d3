/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: statements. */
#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"

/* --- blocks ----------------------------------------------------------------*/

vyre__mark vyre__block_begin(vyre__ir_builder *m) {
  uint32_t locals = 0;
  if (m->function < m->function_count) {
    locals = m->functions[m->function].local_count;
  }
  return (vyre__mark){(uint32_t)m->stack_count, locals};
}

void vyre__statement(vyre__ir_builder *m, vyre__id statement) {
  if (!statement) return;
  if ((m->results_left | m->results_open) && !vyre__use_results(m, statement)) {
    return;
  }
  vyre__push(m, statement);
}

static void close_locals(vyre__ir_builder *m, uint32_t from) {
  if (m->function >= m->function_count) return;
  const vyre__ir_function *f = &m->functions[m->function];
  for (uint32_t i = from; i < f->local_count; i++) {
    m->locals[f->first_local + i].is_open = false;
  }
}

vyre__id vyre__block_of_stack(vyre__ir_builder *m, uint32_t first) {
  uint32_t count = (uint32_t)m->stack_count - first;
  unsigned height = 0;
  for (uint32_t i = 0; i < count; i++) {
    unsigned own = vyre__height(m, m->stack[first + i]);
    if (own > height) height = own;
  }
  uint32_t list = vyre__append_list(m, vyre__stack_from(m, first), count);
  vyre__stack_drop(m, first);
  if (list == VYRE_NO_INDEX) return 0;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_BLOCK, .a = list, .b = count}, height);
}

vyre__id vyre__block_end(vyre__ir_builder *m, vyre__mark mark) {
  if (m->results_left > 0) {
    m->results_left = 0;
    vyre__diagnose(m, "", "store every result of the call",
                   "the results of a call are not used");
  }
  close_locals(m, mark.local);
  if (m->switch_.break_count > 0) vyre__skip_after_breaks(m, mark.stack);
  return vyre__block_of_stack(m, mark.stack);
}

static vyre__id as_block(vyre__ir_builder *m, vyre__id body) {
  if (!body || m->nodes[body].op == VYRE__OP_BLOCK) return body;
  uint32_t list = vyre__append_list(m, &body, 1);
  if (list == VYRE_NO_INDEX) return 0;
  return vyre__append(m, (vyre__node){.op = VYRE__OP_BLOCK, .a = list, .b = 1},
                      vyre__height(m, body));
}

/* --- locals and memory -----------------------------------------------------*/

vyre__id vyre__ir_build_let(vyre__ir_builder *m, const char *name,
                            size_t length, vyre_type type, bool is_mutable,
                            vyre__id value, uint32_t *local) {
  if (vyre__is_no_operand(m, value)) value = 0;
  const bool is_default =
      type == VYRE_TYPE_VOID && vyre__type_of(m, value) == VYRE__TYPE_INT;
  if (type == VYRE_TYPE_VOID) {
    value = vyre__resolve_type(m, value, VYRE_TYPE_VOID);
    type = vyre__type_of(m, value);
    if (value && type == VYRE_TYPE_VOID) value = vyre__no_value(m, value);
  }
  *local = vyre__local_add(m, name, length,
                           (vyre__ir_local){.type = (uint8_t)type,
                                            .is_mutable = is_mutable,
                                            .is_default = is_default});
  if (*local == VYRE_NO_INDEX || !value) return 0;
  value = vyre__expect_named(m, value, type, "V065", "the value of",
                             m->locals[m->local_count - 1].name);
  if (!value) return 0;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_LET, .a = *local, .b = value},
                      vyre__height(m, value));
}

static vyre__id not_mutable(vyre__ir_builder *m, const vyre__ir_local *it) {
  const char *fix = "declare it with var instead of let";
  const char *kind = "declared by let";
  if (it->is_memory && it->is_parameter) {
    fix = "declare the parameter with var: the caller's array changes then";
    kind = "a parameter without var";
  } else if (it->is_parameter) {
    fix = "copy the parameter to a var first";
    kind = "a parameter";
  } else if (it->is_loop) {
    fix = "use while with a var, or change the step of the loop";
    kind = "a loop variable";
  }
  return vyre__diagnose_span(m, (vyre__source_span){m->place, m->length},
                             "V066", it->span, "declared here", fix,
                             "'%.100s' is %s and cannot be assigned", it->name,
                             kind);
}

vyre__id vyre__ir_build_assign(vyre__ir_builder *m, uint32_t local,
                               vyre__id value) {
  if (m->function < m->function_count &&
      local < m->functions[m->function].local_count &&
      m->locals[m->functions[m->function].first_local + local].is_memory) {
    return vyre__assign_array(m, local, value);
  }
  /* does all checks of a use */
  vyre__id target = vyre__ir_build_local(m, local);
  if (!target || vyre__is_no_operand(m, value)) return 0;
  const vyre__ir_local *it =
      &m->locals[m->functions[m->function].first_local + local];
  if (!it->is_mutable) return not_mutable(m, it);
  if (!value) return 0;
  value = vyre__expect_named(m, value, it->type, "V065",
                             "the value assigned to", it->name);
  if (!value) return 0;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_ASSIGN, .a = local, .b = value},
      vyre__height(m, value));
}

static bool can_store(vyre__ir_builder *m, uint32_t buffer,
                      const vyre_buffer_decl *decl) {
  if (decl->access != VYRE_ACCESS_READ && decl->access != VYRE_ACCESS_UNIFORM) {
    return true;
  }
  if (buffer & VYRE__MEMORY_TABLE) {
    vyre__diagnose(m, "V066", "copy the table to an array: var a : f32[4] = T;",
                   "'%.100s' is a const and cannot be assigned", decl->name);
    return false;
  }
  if (buffer & VYRE__MEMORY_LOCAL) {
    const vyre__ir_local *it =
        &m->locals[m->functions[m->function].first_local +
                   (buffer & VYRE__MEMORY_INDEX)];
    if (it->length > 0) {
      (void)not_mutable(m, it);
      return false;
    }
  }
  vyre__diagnose(m, "V071",
                 decl->access == VYRE_ACCESS_READ
                     ? "declare it read_write"
                     : "store to a buffer that is declared write or read_write",
                 "'%.100s' is declared %s and cannot be written", decl->name,
                 vyre_access_name(decl->access));
  return false;
}

bool vyre__can_assign(vyre__ir_builder *m, vyre__id root) {
  const vyre__node *node = &m->nodes[root];
  if (node->op == VYRE__OP_LOAD) {
    const uint32_t buffer = node->a;
    const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
    return decl && can_store(m, buffer, decl);
  }
  const vyre__ir_local *it =
      &m->locals[m->functions[m->function].first_local + node->a];
  if (it->is_mutable) return true;
  (void)not_mutable(m, it);
  return false;
}

vyre__id vyre__ir_build_store(vyre__ir_builder *m, uint32_t buffer,
                              vyre__id index, vyre__id value) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (decl) index = vyre__ir_build_index(m, decl, index);
  if (!decl || !index || !value || vyre__is_no_operand(m, value)) return 0;
  if (!can_store(m, buffer, decl)) return 0;
  value = vyre__expect_named(m, value, (vyre_type)vyre__buffer_type(decl),
                             "V069", "an element of", decl->name);
  if (!value) return 0;
  return vyre__append(
      m,
      (vyre__node){.op = VYRE__OP_STORE, .a = buffer, .b = index, .c = value},
      vyre__height2(m, index, value));
}

/* --- control ---------------------------------------------------------------*/

vyre__id vyre__ir_build_if(vyre__ir_builder *m, vyre__id condition,
                           vyre__id then, vyre__id otherwise) {
  condition =
      vyre__expect(m, condition, VYRE_TYPE_BOOL, "V067", "the condition of if");
  then = as_block(m, then);
  otherwise = as_block(m, otherwise);
  if (!condition || !then) return 0;
  if (otherwise && m->nodes[otherwise].b == 0) otherwise = 0;
  unsigned height = vyre__height2(m, condition, then);
  unsigned more = vyre__height(m, otherwise);
  return vyre__append(
      m,
      (vyre__node){
          .op = VYRE__OP_IF, .a = condition, .b = then, .c = otherwise},
      height > more ? height : more);
}

vyre_type vyre__loop_type(vyre__ir_builder *m, vyre_type type, vyre__id *first,
                          vyre__id *bound) {
  if (!*first || !*bound) return VYRE_TYPE_VOID;
  if (type == VYRE_TYPE_VOID) type = vyre__type_of(m, *first);
  if (vyre__type_is_untyped(type)) type = vyre__type_of(m, *bound);
  if (vyre__type_is_untyped(type)) type = VYRE_TYPE_VOID;
  *first = vyre__resolve_type(m, *first, type);
  *bound = vyre__resolve_type(m, *bound, type);
  if (!*first || !*bound) return VYRE_TYPE_VOID;
  unsigned a = vyre__type_of(m, *first), b = vyre__type_of(m, *bound);
  if (type == VYRE_TYPE_VOID) type = a;
  if (a == b && a == (unsigned)type && vyre__type_is_integer(type)) return type;
  vyre__diagnose(
      m, "V081", "cast one of them, as in u32(x)",
      "the bounds of a for loop must have one integer type, not %s and %s",
      vyre__type_name(a == b ? (unsigned)type : a), vyre__type_name(b));
  return VYRE_TYPE_VOID;
}

static vyre__id loop_step(vyre__ir_builder *m, vyre_type type, vyre__id step) {
  step = vyre__expect(m, step, type, "V081", "the step of the loop");
  uint64_t bits;
  if (!step || !vyre__const_eval(m, step, &bits)) return 0;
  bool negative = (type == VYRE_TYPE_I32 && bits > INT32_MAX) ||
                  (type == VYRE_TYPE_I64 && bits > INT64_MAX);
  if (bits == 0 || negative) {
    return vyre__diagnose_at(m, step, "V082",
                             "use a step of 1 or more; count down with -=",
                             "the step of a loop must be at least 1");
  }
  if (m->nodes[step].op == VYRE__OP_LITERAL) return step;
  vyre__id literal = vyre__ir_build_literal(m, type, bits);
  if (literal) m->spans[literal] = m->spans[step];
  return literal;
}

void vyre__for_begin(vyre__ir_builder *m, vyre__for *loop, const char *name,
                     size_t length, vyre_type type, vyre__loop kind,
                     vyre__id first, vyre__id bound, vyre__id step) {
  loop->mark = vyre__block_begin(m);
  loop->span = (vyre__source_span){m->place, m->length};
  loop->kind = kind;
  const bool is_default = type == VYRE_TYPE_VOID &&
                          vyre__type_is_untyped(vyre__type_of(m, first)) &&
                          vyre__type_is_untyped(vyre__type_of(m, bound));
  type = vyre__loop_type(m, type, &first, &bound);
  loop->first = first;
  loop->bound = bound;
  loop->step = type == VYRE_TYPE_VOID ? 0 : loop_step(m, type, step);
  loop->local = vyre__local_add(
      m, name, length,
      (vyre__ir_local){
          .type = (uint8_t)type, .is_loop = true, .is_default = is_default});
  m->loop_depth++;
}

vyre__id vyre__for_end(vyre__ir_builder *m, const vyre__for *loop,
                       vyre__id body) {
  m->loop_depth--;
  close_locals(m, loop->mark.local);
  body = as_block(m, body);
  if (!loop->first || !loop->bound || !loop->step || !body ||
      loop->local == VYRE_NO_INDEX) {
    return 0;
  }
  const uint32_t parts[] = {loop->first, loop->bound, loop->step, body};
  unsigned height = vyre__height2(m, loop->first, loop->bound);
  unsigned more = vyre__height(m, body);
  uint32_t list = vyre__append_list(m, parts, 4);
  if (list == VYRE_NO_INDEX) return 0;
  m->place = loop->span.place;
  m->length = loop->span.length;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_FOR,
                                   .aux = (uint8_t)loop->kind,
                                   .a = loop->local,
                                   .b = list},
                      height > more ? height : more);
}

void vyre__while_begin(vyre__ir_builder *m) {
  m->loop_depth++;
}

vyre__id vyre__while_end(vyre__ir_builder *m, vyre__id condition,
                         vyre__id body) {
  m->loop_depth--;
  condition = vyre__expect(m, condition, VYRE_TYPE_BOOL, "V067",
                           "the condition of while");
  body = as_block(m, body);
  if (!condition || !body) return 0;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_WHILE, .a = condition, .b = body},
      vyre__height2(m, condition, body));
}

vyre__id vyre__ir_build_simple(vyre__ir_builder *m, vyre__op op) {
  switch (op) {
    case VYRE__OP_BREAK:
      if (m->switch_.is_open && m->switch_.loop_depth == m->loop_depth) {
        return vyre__break_switch(m);
      }
      /* fall through */
    case VYRE__OP_CONTINUE:
      if (m->loop_depth > 0) break;
      return vyre__diagnose(m, "V088", "use return, or put it inside a loop",
                            "'%s' outside a loop", vyre__ops[op].text);
    case VYRE__OP_BARRIER:
    case VYRE__OP_GRID_BARRIER:
      if (vyre__need_procedure(m, "a barrier")) break;
      return 0;
    default:
      return vyre__diagnose(m, "", "use break, continue or a barrier",
                            "operation %u is not a jump or a barrier",
                            (unsigned)op);
  }
  return vyre__append(m, (vyre__node){.op = (uint8_t)op}, 0);
}

vyre__id vyre__ir_build_return(vyre__ir_builder *m, bool has_value,
                               vyre__id value) {
  if (m->function >= m->function_count || (has_value && !value)) return 0;
  const vyre__ir_function *f = &m->functions[m->function];
  if (f->is_kernel && has_value) {
    return vyre__diagnose_at(m, value, "V076",
                             "store the value to a buffer, then write return;",
                             "a kernel cannot return a value");
  }
  if (f->result_count > 0) {
    return vyre__diagnose(m, "V076", "write return (x, y);",
                          "fn '%.100s' must return %u values", f->name,
                          f->result_count);
  }
  if (!f->is_kernel && has_value && f->result == VYRE_TYPE_VOID) {
    return vyre__diagnose_at(m, value, "V076",
                             "write return;, or declare the type of the "
                             "result: fn name(...) -> f32",
                             "fn '%.100s' has no result", f->name);
  }
  if (!f->is_kernel && !has_value && f->result != VYRE_TYPE_VOID) {
    return vyre__diagnose(m, "V076", "write return value;",
                          "fn '%.100s' must return %s", f->name,
                          vyre__type_name(f->result));
  }
  if (has_value) {
    value = vyre__expect(m, value, f->result, "V076", "the returned value");
    if (!value) return 0;
  }
  return vyre__append(m, (vyre__node){.op = VYRE__OP_RETURN, .a = value},
                      vyre__height(m, value));
}

vyre__id vyre__ir_build_eval(vyre__ir_builder *m, vyre__id value) {
  if (!value) return 0;
  const vyre__op_info *info = &vyre__ops[m->nodes[value].op];
  const bool is_procedure = vyre__type_of(m, value) == VYRE__TYPE_NOTHING;
  if (!is_procedure && vyre__type_of(m, value) == VYRE__TYPE_RESULTS) {
    return vyre__diagnose_at(m, value, "V099", "write let (a, b) = f(x);",
                             "the results of this call are not used");
  }
  if (!is_procedure &&
      !(info->flags & (VYRE__OPF_ATOMICS | VYRE__OPF_PUSHES))) {
    return vyre__diagnose_at(m, value, "V087",
                             "use the value: let x = ...; or remove it",
                             "this value is not used");
  }
  return vyre__append(m, (vyre__node){.op = VYRE__OP_EVAL, .a = value},
                      vyre__height(m, value));
}

vyre__id vyre__ir_build_print(vyre__ir_builder *m, uint32_t mark) {
  bool good = !m->out_of_memory && vyre__need_procedure(m, "print()");
  uint32_t count = (uint32_t)m->stack_count - mark;
  unsigned height = 0;
  for (uint32_t i = 0; i < count && good; i++) {
    vyre__id id = m->stack[mark + i];
    good = vyre__resolve_type(m, id, VYRE_TYPE_VOID) != 0 &&
           !vyre__is_no_operand(m, id);
    unsigned own = vyre__height(m, id);
    if (own > height) height = own;
  }
  uint32_t list = 0;
  if (good) list = vyre__append_list(m, vyre__stack_from(m, mark), count);
  vyre__stack_drop(m, mark);
  if (!good || list == VYRE_NO_INDEX) return 0;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_PRINT, .a = list, .b = count}, height);
}
