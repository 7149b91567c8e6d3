/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Assignments to locals and to elements of buffers. */
#include <stdio.h>

#include "lang/parse/parse.h"

unsigned vyre__p_assigned_op(unsigned kind) {
  static const uint8_t ops[VYRE__T_COUNT] = {
      [VYRE__T_SET_ADD] = VYRE__OP_ADD, [VYRE__T_PLUS_PLUS] = VYRE__OP_ADD,
      [VYRE__T_SET_SUB] = VYRE__OP_SUB, [VYRE__T_MINUS_MINUS] = VYRE__OP_SUB,
      [VYRE__T_SET_MUL] = VYRE__OP_MUL, [VYRE__T_SET_DIV] = VYRE__OP_DIV,
      [VYRE__T_SET_REM] = VYRE__OP_REM, [VYRE__T_SET_AND] = VYRE__OP_AND,
      [VYRE__T_SET_OR] = VYRE__OP_OR,   [VYRE__T_SET_XOR] = VYRE__OP_XOR,
      [VYRE__T_SET_SHL] = VYRE__OP_SHL, [VYRE__T_SET_SHR] = VYRE__OP_SHR,
  };
  if (kind == VYRE__T_SET) return VYRE__OP_NONE;
  return ops[kind] ? ops[kind] : (unsigned)VYRE__OP_COUNT;
}

vyre__id vyre__p_assigned(vyre__parser *p, unsigned *op) {
  vyre__token token = p->now.token;
  *op = vyre__p_assigned_op(token.kind);
  vyre__p_advance(p);
  if (token.kind != VYRE__T_PLUS_PLUS && token.kind != VYRE__T_MINUS_MINUS) {
    return vyre__p_value(p);
  }
  vyre__p_mark(p, &token);
  return vyre__ir_build_step(&p->ir);
}

vyre__id vyre__p_assign_local(vyre__parser *p, uint32_t local) {
  vyre__ir_builder *m = &p->ir;
  vyre__token name = p->now.token;
  unsigned op;
  vyre__p_advance(p);
  vyre__p_mark(p, &name);
  vyre__id old = 0;
  if (vyre__p_assigned_op(vyre__p_kind(p)) != VYRE__OP_NONE) {
    old = vyre__ir_build_local(m, local);
  }
  vyre__id value = vyre__p_assigned(p, &op);
  if (p->now.panic) return 0;
  vyre__p_mark(p, &name);
  if (op != VYRE__OP_NONE) {
    value = vyre__ir_build_binary(m, (vyre__op)op, old, value);
  }
  vyre__id id = vyre__ir_build_assign(m, local, value);
  vyre__p_semicolon(p, "an assignment");
  return id;
}

/* Copies a node without effects: a literal, a local or an id. Returns 0 for
 * other nodes. */
static vyre__id repeat_node(vyre__ir_builder *m, vyre__id id) {
  vyre__node node = m->nodes[id];
  switch (node.op) {
    case VYRE__OP_LITERAL:
      return vyre__ir_build_literal(m, (vyre_type)node.type,
                                    vyre__literal(&node));
    case VYRE__OP_LOCAL:
      return vyre__ir_build_local(m, node.a);
    case VYRE__OP_GLOBAL_ID:
    case VYRE__OP_LOCAL_ID:
    case VYRE__OP_WORKGROUP_ID:
      return vyre__ir_build_axis(m, (vyre__op)node.op, node.aux);
    default:
      return 0;
  }
}

/* Stores an index in a `let` unless it can be repeated. Returns the node for its
 * first use. */
static vyre__id keep_index(vyre__parser *p, vyre__id index) {
  vyre__ir_builder *m = &p->ir;
  index = vyre__type_of(m, index) == VYRE__TYPE_INT
              ? vyre__resolve_index_type(m, index)
              : vyre__resolve_type(m, index, VYRE_TYPE_VOID);
  if (!index || repeat_node(m, index)) return index;
  uint32_t local = VYRE_NO_INDEX;
  vyre__statement(
      m, vyre__ir_build_let(m, "", 0, VYRE_TYPE_VOID, false, index, &local));
  return local == VYRE_NO_INDEX ? 0 : vyre__ir_build_local(m, local);
}

/* Makes an index repeatable, and builds it again. */
static vyre__id repeat_index(vyre__parser *p, vyre__id *index) {
  vyre__ir_builder *m = &p->ir;
  if (!*index) return 0;
  const vyre__node node = m->nodes[*index];
  if (node.op != VYRE__OP_INDEX) {
    *index = keep_index(p, *index);
    return *index ? repeat_node(m, *index) : 0;
  }
  vyre__id ids[VYRE_MAX_DIMENSIONS] = {0};
  for (uint32_t i = 0; i < node.b && i < VYRE_MAX_DIMENSIONS; i++) {
    ids[i] = keep_index(p, m->lists[node.a + i]);
    if (!ids[i]) return 0;
    m->lists[node.a + i] = ids[i];
  }
  const uint32_t mark = vyre__stack_mark(m); /* after the statements */
  for (uint32_t i = 0; i < node.b && i < VYRE_MAX_DIMENSIONS; i++) {
    vyre__push(m, repeat_node(m, ids[i]));
  }
  return vyre__ir_build_indices(m, mark);
}

/* Builds buffer[index] op= value. The index is computed once, in an unnamed
 * local unless it is trivial. */
static vyre__id update_element(vyre__parser *p, const vyre__token *name,
                               uint32_t buffer, vyre__id index) {
  vyre__ir_builder *m = &p->ir;
  unsigned op;
  vyre__p_mark(p, name);
  vyre__id again = repeat_index(p, &index);
  vyre__id old = vyre__ir_build_load(m, buffer, again);
  vyre__id value = vyre__p_assigned(p, &op);
  if (p->now.panic) return 0;
  vyre__p_mark(p, name);
  value = vyre__ir_build_binary(m, (vyre__op)op, old, value);
  return vyre__ir_build_store(m, buffer, index, value);
}

static vyre__id assign_place(vyre__parser *p, const vyre__token *first,
                             vyre__id place);

vyre__id vyre__p_assign_element(vyre__parser *p, uint32_t buffer) {
  vyre__ir_builder *m = &p->ir;
  vyre__token name = p->now.token;
  vyre__id index, id;
  vyre__p_advance(p);
  if (vyre__p_is(p, VYRE__T_LBRACKET)) {
    index = vyre__p_index_of(p);
  } else {
    vyre__p_mark(p, &name);
    index = vyre__ir_build_literal(m, VYRE_TYPE_U32, 0);
  }
  if (p->now.panic) return 0;
  const vyre_buffer_decl *decl = vyre__p_buffer(p, buffer);
  if (decl && vyre__is_aggregate(decl->type) &&
      (vyre__p_is(p, VYRE__T_DOT) || vyre__p_is(p, VYRE__T_LBRACKET))) {
    vyre__p_mark(p, &name);
    return assign_place(p, &name, vyre__ir_build_element(m, buffer, index));
  }
  unsigned op = vyre__p_assigned_op(vyre__p_kind(p));
  if (vyre__p_is(p, VYRE__T_LBRACKET)) {
    vyre__p_report_second_bracket(p);
    p->now.panic = true;
    return 0;
  }
  if (op == VYRE__OP_COUNT) {
    return vyre__p_syntax(p, vyre__p_since(p, &name), "V027",
                          "assign to it with = value, or use it: let x = ...;",
                          "this value is not used");
  }
  if (op == VYRE__OP_NONE) {
    vyre__id value = vyre__p_assigned(p, &op);
    if (p->now.panic) return 0;
    vyre__p_mark(p, &name);
    id = vyre__ir_build_store(m, buffer, index, value);
  } else {
    id = update_element(p, &name, buffer, index);
    if (p->now.panic) return 0;
  }
  vyre__p_semicolon(p, "an assignment");
  return id;
}

/* --- parts -----------------------------------------------------------------*/

/* Builds the value of a place again; its indices become repeatable. */
static vyre__id read_place(vyre__parser *p, vyre__id place) {
  vyre__ir_builder *m = &p->ir;
  const vyre__node node = m->nodes[place];
  if (node.op == VYRE__OP_LOCAL) return vyre__ir_build_local(m, node.a);
  if (node.op == VYRE__OP_PART) {
    const uint8_t component = node.aux & 3;
    return vyre__ir_build_part(m, read_place(p, node.a), &component, 1);
  }
  if (node.op == VYRE__OP_FIELD) {
    return vyre__ir_build_field(m, read_place(p, node.a), node.aux);
  }
  if (node.op != VYRE__OP_COMPONENT && node.op != VYRE__OP_LOAD) return 0;
  vyre__id inner = 0;
  if (node.op == VYRE__OP_COMPONENT) {
    inner = read_place(p, node.a);
    if (!inner) return 0;
  }
  vyre__id index = node.b;
  const vyre__id again = repeat_index(p, &index);
  if (!again) return 0;
  m->nodes[place].b = index;
  return inner ? vyre__ir_build_component(m, inner, again)
               : vyre__ir_build_load(m, node.a, again);
}

/* Reads the rest of an assignment to @p place, which may have further parts. */
static vyre__id assign_place(vyre__parser *p, const vyre__token *first,
                             vyre__id place) {
  vyre__ir_builder *m = &p->ir;
  while ((vyre__p_is(p, VYRE__T_DOT) || vyre__p_is(p, VYRE__T_LBRACKET)) &&
         !p->now.panic) {
    if (place && !vyre__is_aggregate(vyre__type_of(m, place))) {
      return vyre__p_syntax(p, vyre__p_span(&p->now.token), "V036",
                            "assign the value itself", "%s has no parts",
                            vyre__type_name(vyre__type_of(m, place)));
    }
    place = vyre__p_part(p, first, place);
  }
  if (p->now.panic) return 0;
  unsigned op = vyre__p_assigned_op(vyre__p_kind(p));
  if (op == VYRE__OP_COUNT) {
    return vyre__p_syntax(p, vyre__p_since(p, first), "V027",
                          "assign to it with = value, or use it: let x = ...;",
                          "this value is not used");
  }
  vyre__p_mark(p, first);
  const vyre__id old = op == VYRE__OP_NONE || !place ? 0 : read_place(p, place);
  vyre__id value = vyre__p_assigned(p, &op);
  if (p->now.panic) return 0;
  vyre__p_mark(p, first);
  if (op != VYRE__OP_NONE) {
    value = vyre__ir_build_binary(m, (vyre__op)op, old, value);
  }
  const vyre__id id = vyre__ir_build_set_place(m, place, value);
  vyre__p_semicolon(p, "an assignment");
  return id;
}

vyre__id vyre__p_assign_part(vyre__parser *p, uint32_t local) {
  vyre__token name = p->now.token;
  vyre__p_advance(p);
  vyre__p_mark(p, &name);
  return assign_place(p, &name, vyre__ir_build_local(&p->ir, local));
}

vyre__id vyre__p_report_assignment(vyre__parser *p) {
  vyre__token name = p->now.token;
  const vyre__symbol *symbol = vyre__p_symbol(p, &name);
  unsigned op;
  char fix[VYRE__FIX_TEXT];
  if (symbol->word != VYRE__WORD_PLAIN || symbol->item) {
    vyre__p_error(
        p, vyre__p_span(&name), "V037", "use a var, or store to a buffer",
        "'%.*s' cannot be assigned", (int)symbol->length, symbol->text);
  } else if (!symbol->local) {
    int shown = symbol->length > 60 ? 60 : (int)symbol->length;
    snprintf(fix, sizeof fix, "declare it first: var %.*s = value;", shown,
             symbol->text);
    vyre__p_error(p, vyre__p_span(&name), "V030", fix, "'%.*s' is not declared",
                  (int)symbol->length, symbol->text);
    vyre__p_bind(p, &name, VYRE__BIND_WRONG, 0);
  }
  vyre__p_advance(p);
  (void)vyre__p_assigned(p, &op);
  vyre__p_semicolon(p, "an assignment");
  return 0;
}
