/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rebuilds the nodes of a program from its binary form. The nodes are walked
 * in the order of the writer and built by the IR builder, which checks types.
 * The result is then compared with the bytes. So every accepted program is
 * one that the writer could have written, whatever the input. */
#include <string.h>

#include "base/utf8.h"
#include "ir/binary_reader.h"
#include "ir/queue.h"

/* --- values ----------------------------------------------------------------*/

static void record_report(void *self, const char *rule, vyre__source_loc place,
                          uint32_t length, const char *message, const char *fix,
                          vyre__source_loc other, const char *other_text) {
  (void)length;
  (void)fix;
  (void)other;
  (void)other_text;
  (void)VYRE__CORRUPT(
      (vyre_status *)self,
      "the bytes are not a valid program: %.200s%s%s%s (line %u)", message,
      rule[0] ? " (" : "", rule, rule[0] ? ")" : "", place.line);
}

static vyre__node node_at(const vyre__reader *r, uint32_t id) {
  const uint8_t *from = r->nodes + (size_t)id * VYRE__BINARY_NODE;
  return (vyre__node){.op = from[0],
                      .type = from[1],
                      .aux = from[2],
                      .a = vyre__load_u32(from + 4),
                      .b = vyre__load_u32(from + 8),
                      .c = vyre__load_u32(from + 12)};
}

static bool stopped(const vyre__reader *r) {
  return r->is_corrupt || r->m.error_count > 0 || r->m.out_of_memory;
}

/* Reads the node that the builder makes next. Returns false if @p id cannot
 * be it: the writer numbers nodes in the order in which they are completed,
 * so each is met once. */
static bool enter(vyre__reader *r, uint32_t id, vyre__node *node) {
  if (stopped(r)) return false;
  if (id == 0 || id >= r->node_count || r->depth >= VYRE__MAX_DEPTH) {
    r->is_corrupt = true;
    return false;
  }
  r->depth++;
  *node = node_at(r, id);
  return true;
}

static vyre__id leave(vyre__reader *r, uint32_t id, vyre__id made) {
  r->depth--;
  if (id != r->next++) r->is_corrupt = true;
  return stopped(r) ? 0 : made;
}

/* Sets the source location for the nodes built next to that of @p id. */
static void at_place(vyre__reader *r, uint32_t id) {
  const uint8_t *from = r->places + (size_t)id * VYRE__BINARY_SOURCE_LOC;
  r->m.place =
      (vyre__source_loc){vyre__load_u32(from), vyre__load_u32(from + 4)};
}

static bool list_in(vyre__reader *r, uint32_t list, uint32_t count) {
  if (list <= r->list_count && count <= r->list_count - list) return true;
  r->is_corrupt = true;
  return false;
}

static uint32_t item(const vyre__reader *r, uint32_t list, uint32_t index) {
  return vyre__load_u32(r->lists + ((size_t)list + index) * 4);
}

static vyre__id value(vyre__reader *r, uint32_t id);

static vyre__id make_call(vyre__reader *r, uint32_t id,
                          const vyre__node *node) {
  uint32_t mark = vyre__stack_mark(&r->m);
  if (!list_in(r, node->b, node->c)) return 0;
  for (uint32_t i = 0; i < node->c && !stopped(r); i++) {
    vyre__push(&r->m, value(r, item(r, node->b, i)));
  }
  if (stopped(r)) return 0;
  at_place(r, id);
  /* The IR builder has the kernel and its further bodies as its last
   * functions, the file as its first. */
  return vyre__ir_build_call(&r->m, node->a - 1 - r->part_count, mark);
}

static vyre__id make_array(vyre__reader *r, uint32_t id,
                           const vyre__node *node) {
  uint32_t mark = vyre__stack_mark(&r->m);
  if (!list_in(r, node->a, node->b)) return 0;
  for (uint32_t i = 0; i < node->b && !stopped(r); i++) {
    vyre__push(&r->m, value(r, item(r, node->a, i)));
  }
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_array_value(&r->m, mark);
}

static vyre__id make_list(vyre__reader *r, uint32_t id,
                          const vyre__node *node) {
  uint32_t mark = vyre__stack_mark(&r->m);
  const bool is_index = node->op == VYRE__OP_INDEX;
  const bool is_struct = vyre__struct_at(&r->m, node->type) != NULL;
  if (!list_in(r, node->a, node->b) ||
      (!is_index && (node->op != VYRE__OP_MAKE ||
                     (!vyre__is_vector(node->type) && !is_struct)))) {
    r->is_corrupt = true;
    return 0;
  }
  for (uint32_t i = 0; i < node->b && !stopped(r); i++) {
    vyre__push(&r->m, value(r, item(r, node->a, i)));
  }
  if (stopped(r)) return 0;
  at_place(r, id);
  if (is_index) return vyre__ir_build_indices(&r->m, mark);
  return is_struct ? vyre__ir_build_struct(&r->m, node->type, mark)
                   : vyre__ir_build_make(&r->m, node->type, mark);
}

static vyre__id make_part(vyre__reader *r, uint32_t id, const vyre__node *node,
                          vyre__id a) {
  uint8_t components[VYRE__MAX_COMPONENTS];
  if (stopped(r)) return 0;
  for (unsigned i = 0; i < VYRE__MAX_COMPONENTS; i++) {
    components[i] = (uint8_t)(node->aux >> 2 * i & 3);
  }
  at_place(r, id);
  return vyre__ir_build_part(&r->m, a, components,
                             vyre__vector_length(node->type) & 7);
}

static vyre__id make_field(vyre__reader *r, uint32_t id, const vyre__node *node,
                           vyre__id a) {
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_field(&r->m, a, node->aux);
}

static vyre__id make_atomic(vyre__reader *r, uint32_t id,
                            const vyre__node *node) {
  vyre__id index = value(r, node->b);
  if (node->op != VYRE__OP_ATOMIC_CAS) {
    vyre__id with = value(r, node->c);
    at_place(r, id);
    return vyre__ir_build_atomic(&r->m, (vyre__op)node->op, node->a, index,
                                 with);
  }
  if (!list_in(r, node->c, 2)) return 0;
  vyre__id expected = value(r, item(r, node->c, 0));
  vyre__id desired = value(r, item(r, node->c, 1));
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_atomic_cas(&r->m, node->a, index, expected, desired);
}

static vyre__id make_push(vyre__reader *r, vyre__id value) {
  if (r->m.in_by) return vyre__ir_build_priority(&r->m, value);
  uint32_t mark = vyre__stack_mark(&r->m);
  vyre__push(&r->m, value);
  return vyre__ir_build_push(&r->m, mark);
}

static vyre__id make_push_fields(vyre__reader *r, uint32_t id,
                                 const vyre__node *node) {
  uint32_t mark = vyre__stack_mark(&r->m);
  if (!list_in(r, node->a, node->b)) return 0;
  for (uint32_t i = 0; i < node->b && !stopped(r); i++) {
    vyre__push(&r->m, value(r, item(r, node->a, i)));
  }
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_push(&r->m, mark);
}

static vyre__id make_unary(vyre__reader *r, uint32_t id,
                           const vyre__node *node) {
  if (node->op == VYRE__OP_PART) {
    return make_part(r, id, node, value(r, node->a));
  }
  if (node->op == VYRE__OP_FIELD) {
    return make_field(r, id, node, value(r, node->a));
  }
  vyre__id a = value(r, node->a);
  if (stopped(r)) return 0;
  at_place(r, id);
  switch ((vyre__op)node->op) {
    case VYRE__OP_CAST:
      return vyre__ir_build_cast(&r->m, (vyre_type)node->type, a);
    case VYRE__OP_BITCAST:
      return vyre__ir_build_bitcast(
          &r->m, (vyre_type)vyre__component_type(node->type), a);
    case VYRE__OP_PUSH:
      return make_push(r, a);
    case VYRE__OP_IN_WINDOW:
      return vyre__ir_build_in_window(&r->m, a);
    default:
      return vyre__ir_build_unary(&r->m, (vyre__op)node->op, a);
  }
}

static vyre__id make_operation(vyre__reader *r, uint32_t id,
                               const vyre__node *node) {
  vyre__op op = (vyre__op)node->op;
  vyre__id a = value(r, node->a);
  vyre__id b = value(r, node->b);
  if (vyre__ops[op].form == VYRE__FORM_BINARY) {
    at_place(r, id);
    if (op == VYRE__OP_COMPONENT) {
      return stopped(r) ? 0 : vyre__ir_build_component(&r->m, a, b);
    }
    return stopped(r) ? 0 : vyre__ir_build_binary(&r->m, op, a, b);
  }
  vyre__id c = value(r, node->c);
  at_place(r, id);
  return stopped(r) ? 0 : vyre__ir_build_ternary(&r->m, op, a, b, c);
}

static vyre__id make_value(vyre__reader *r, uint32_t id,
                           const vyre__node *node) {
  vyre__ir_builder *m = &r->m;
  vyre__id index;
  at_place(r, id);
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LITERAL:
      return vyre__ir_build_literal(m, (vyre_type)node->type,
                                    vyre__literal(node));
    case VYRE__FORM_LOCAL:
      return vyre__ir_build_local(m, node->a);
    case VYRE__FORM_BUFFER:
      return node->op == VYRE__OP_LEN ? vyre__ir_build_len(m, node->a)
                                      : vyre__ir_build_memory(m, node->a);
    case VYRE__FORM_AXIS:
      return vyre__ir_build_axis(m, (vyre__op)node->op, node->aux);
    case VYRE__FORM_NULLARY:
      if (node->op == VYRE__OP_RESULT) {
        return vyre__ir_build_result(m, node->aux);
      }
      return node->op == VYRE__OP_ITEM
                 ? vyre__ir_build_item(m, node->aux)
                 : vyre__ir_build_position(m, (vyre__op)node->op);
    case VYRE__FORM_CALL:
      return make_call(r, id, node);
    case VYRE__FORM_LIST:
      return make_push_fields(r, id, node);
    case VYRE__FORM_LOAD:
      index = value(r, node->b);
      at_place(r, id);
      return vyre__ir_build_load(m, node->a, index);
    case VYRE__FORM_MAKE:
      return node->op == VYRE__OP_ARRAY ? make_array(r, id, node)
                                        : make_list(r, id, node);
    case VYRE__FORM_UNARY:
      return make_unary(r, id, node);
    case VYRE__FORM_BINARY:
    case VYRE__FORM_TERNARY:
      return make_operation(r, id, node);
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_ATOMIC2:
      return make_atomic(r, id, node);
    default:
      r->is_corrupt = true;
      return 0;
  }
}

static vyre__id value(vyre__reader *r, uint32_t id) {
  vyre__node node;
  if (!enter(r, id, &node)) return 0;
  if (node.op >= VYRE__OP_BLOCK && !vyre__op_is_late_value(node.op)) {
    /* a statement where a value is needed */
    r->is_corrupt = true;
    return 0;
  }
  return leave(r, id, make_value(r, id, &node));
}

/* --- statements ------------------------------------------------------------*/

/* Next local of the current function, as stored in the file. */
typedef struct file_local {
  const char *name;
  uint32_t length;
  uint8_t type;
  bool is_mutable;
  vyre__local memory; /* what MEMORY says */
} file_local;

static file_local next_local(vyre__reader *r) {
  file_local local = {.name = ""};
  local.length = vyre__get_count(&r->locals, 1);
  const uint8_t *name = vyre__get_bytes(&r->locals, local.length);
  if (name) local.name = (const char *)name;
  local.type = vyre__get_u8(&r->locals);
  uint8_t is_mutable = vyre__get_u8(&r->locals);
  local.is_mutable = is_mutable == 1;
  if (r->locals.short_of || is_mutable > 1 ||
      !vyre__utf8_printable(local.name, local.length)) {
    r->is_corrupt = true;
  }
  if (r->local_memory && !r->is_corrupt) {
    const uint8_t *from =
        r->local_memory + (size_t)r->next_local * VYRE__BINARY_LOCAL_MEMORY;
    local.memory = (vyre__local){.type = local.type,
                                 .is_mutable = local.is_mutable,
                                 .is_memory = from[0] == 1,
                                 .access = from[1],
                                 .element = from[2],
                                 .length = vyre__load_u32(from + 3)};
    if (from[0] > 1 || from[1] > VYRE_ACCESS_READ_WRITE ||
        from[2] >= VYRE_ELEMENT_COUNT) {
      r->is_corrupt = true;
    }
  }
  if (r->local_shapes && !r->is_corrupt) {
    const uint8_t *from =
        r->local_shapes + (size_t)r->next_local * VYRE__BINARY_SHAPE;
    local.memory.shape =
        vyre__load_u32(from) | (vyre__shape)vyre__load_u32(from + 4) << 32;
    if (!vyre__shape_fits(local.memory.shape, local.memory.length)) {
      r->is_corrupt = true;
    }
  }
  r->next_local++;
  return local;
}

/* Reads a place: a part of a local or of an element, which need not be
 * readable. */
static vyre__id place(vyre__reader *r, uint32_t id) {
  vyre__node node;
  vyre__id made = 0;
  if (!enter(r, id, &node)) return 0;
  if (node.op == VYRE__OP_PART) {
    made = make_part(r, id, &node, place(r, node.a));
  } else if (node.op == VYRE__OP_FIELD) {
    made = make_field(r, id, &node, place(r, node.a));
  } else if (node.op == VYRE__OP_COMPONENT) {
    const vyre__id inner = place(r, node.a);
    const vyre__id index = value(r, node.b);
    at_place(r, id);
    if (!stopped(r)) made = vyre__ir_build_component(&r->m, inner, index);
  } else if (node.op == VYRE__OP_LOAD) {
    const vyre__id index = value(r, node.b);
    at_place(r, id);
    if (!stopped(r)) made = vyre__ir_build_element(&r->m, node.a, index);
  } else if (node.op == VYRE__OP_LOCAL) {
    at_place(r, id);
    made = vyre__ir_build_local(&r->m, node.a);
  } else {
    r->is_corrupt = true;
  }
  return leave(r, id, made);
}

static vyre__id make_set_place(vyre__reader *r, uint32_t id,
                               const vyre__node *node) {
  const vyre__id to = place(r, node->a);
  const vyre__id stored = value(r, node->b);
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_set_place(&r->m, to, stored);
}

static vyre__id statement(vyre__reader *r, uint32_t id);

static vyre__id block(vyre__reader *r, uint32_t id) {
  vyre__node node;
  if (!enter(r, id, &node)) return 0;
  if (node.op != VYRE__OP_BLOCK || !list_in(r, node.a, node.b)) {
    r->is_corrupt = true;
    return 0;
  }
  vyre__mark mark = vyre__block_begin(&r->m);
  for (uint32_t i = 0; i < node.b && !stopped(r); i++) {
    r->is_added = false;
    const vyre__id made = statement(r, item(r, node.a, i));
    if (!r->is_added) vyre__statement(&r->m, made);
    r->is_added = false;
  }
  at_place(r, id);
  return leave(r, id, vyre__block_end(&r->m, mark));
}

static vyre__id make_let(vyre__reader *r, uint32_t id, const vyre__node *node) {
  vyre__id stored = node->b ? value(r, node->b) : 0;
  file_local local = next_local(r);
  uint32_t index;
  if (stopped(r)) return 0;
  at_place(r, id);
  if (local.memory.is_memory) {
    return vyre__ir_build_array(&r->m, local.name, local.length,
                                (vyre_type)local.type, local.memory.length,
                                local.memory.shape, local.is_mutable, stored,
                                &index);
  }
  if (!stored) {
    r->is_corrupt = true;
    return 0;
  }
  return vyre__ir_build_let(&r->m, local.name, local.length,
                            (vyre_type)local.type, local.is_mutable, stored,
                            &index);
}

static vyre__id make_if(vyre__reader *r, uint32_t id, const vyre__node *node) {
  vyre__id condition = value(r, node->a);
  vyre__id then = block(r, node->b);
  vyre__id otherwise = node->c ? block(r, node->c) : 0;
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_if(&r->m, condition, then, otherwise);
}

static vyre__id make_for(vyre__reader *r, uint32_t id, const vyre__node *node) {
  if (!list_in(r, node->b, 4) || node->aux > VYRE__LOOP_GE) {
    r->is_corrupt = true;
    return 0;
  }
  vyre__id first = value(r, item(r, node->b, 0));
  vyre__id bound = value(r, item(r, node->b, 1));
  vyre__id step = value(r, item(r, node->b, 2));
  file_local local = next_local(r);
  if (stopped(r)) return 0;
  vyre__for loop;
  at_place(r, id);
  vyre__for_begin(&r->m, &loop, local.name, local.length, (vyre_type)local.type,
                  (vyre__loop)node->aux, first, bound, step);
  vyre__id body = block(r, item(r, node->b, 3));
  return vyre__for_end(&r->m, &loop, body);
}

static vyre__id make_while(vyre__reader *r, uint32_t id,
                           const vyre__node *node) {
  vyre__id condition = value(r, node->a);
  vyre__while_begin(&r->m);
  vyre__id body = block(r, node->b);
  at_place(r, id);
  if (stopped(r)) return 0;
  return vyre__while_end(&r->m, condition, body);
}

static vyre__id text(vyre__reader *r, uint32_t id) {
  vyre__node node;
  if (!enter(r, id, &node)) return 0;
  if (node.a > r->text_count || node.b > r->text_count - node.a) {
    r->is_corrupt = true;
    return 0;
  }
  at_place(r, id);
  return leave(
      r, id,
      vyre__ir_build_text(&r->m, (const char *)r->texts + node.a, node.b));
}

static vyre__id make_print(vyre__reader *r, uint32_t id,
                           const vyre__node *node) {
  uint32_t mark = vyre__stack_mark(&r->m);
  if (!list_in(r, node->a, node->b)) return 0;
  for (uint32_t i = 0; i < node->b && !stopped(r); i++) {
    uint32_t part = item(r, node->a, i);
    bool is_text = part < r->node_count && node_at(r, part).op == VYRE__OP_TEXT;
    vyre__push(&r->m, is_text ? text(r, part) : value(r, part));
  }
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_print(&r->m, mark);
}

static vyre__id make_return_results(vyre__reader *r, uint32_t id,
                                    const vyre__node *node) {
  uint32_t mark = vyre__stack_mark(&r->m);
  if (!list_in(r, node->a, node->b)) return 0;
  for (uint32_t i = 0; i < node->b && !stopped(r); i++) {
    vyre__push(&r->m, value(r, item(r, node->a, i)));
  }
  if (stopped(r)) return 0;
  at_place(r, id);
  return vyre__ir_build_return_results(&r->m, mark);
}

/* Builds an EVAL. A call with several results adds its statement itself; *is_done
 * is true then. */
static vyre__id make_eval(vyre__reader *r, vyre__id a, bool *is_done) {
  vyre__ir_builder *m = &r->m;
  *is_done = vyre__type_of(m, a) == VYRE__TYPE_RESULTS;
  return *is_done ? vyre__ir_build_results(m, a) : vyre__ir_build_eval(m, a);
}

static vyre__id make_plain(vyre__reader *r, uint32_t id,
                           const vyre__node *node) {
  vyre__ir_builder *m = &r->m;
  vyre__id a, b;
  switch ((vyre__op)node->op) {
    case VYRE__OP_ASSIGN:
      b = value(r, node->b);
      at_place(r, id);
      return stopped(r) ? 0 : vyre__ir_build_assign(m, node->a, b);
    case VYRE__OP_STORE:
      a = value(r, node->b);
      b = value(r, node->c);
      at_place(r, id);
      return stopped(r) ? 0 : vyre__ir_build_store(m, node->a, a, b);
    case VYRE__OP_RETURN:
      a = node->a ? value(r, node->a) : 0;
      at_place(r, id);
      return stopped(r) ? 0 : vyre__ir_build_return(m, node->a != 0, a);
    case VYRE__OP_EVAL:
      a = value(r, node->a);
      at_place(r, id);
      return stopped(r) ? 0 : make_eval(r, a, &r->is_added);
    default:
      at_place(r, id);
      return vyre__ir_build_simple(m, (vyre__op)node->op);
  }
}

static vyre__id statement(vyre__reader *r, uint32_t id) {
  vyre__node node;
  if (id < r->node_count && node_at(r, id).op == VYRE__OP_BLOCK) {
    return block(r, id);
  }
  if (!enter(r, id, &node)) return 0;
  vyre__id made = 0;
  switch (node.op) {
    case VYRE__OP_LET:
      made = make_let(r, id, &node);
      break;
    case VYRE__OP_IF:
      made = make_if(r, id, &node);
      break;
    case VYRE__OP_FOR:
      made = make_for(r, id, &node);
      break;
    case VYRE__OP_WHILE:
      made = make_while(r, id, &node);
      break;
    case VYRE__OP_PRINT:
      made = make_print(r, id, &node);
      break;
    case VYRE__OP_SET_PLACE:
      made = make_set_place(r, id, &node);
      break;
    case VYRE__OP_RETURN_RESULTS:
      made = make_return_results(r, id, &node);
      break;
    default:
      if (node.op > VYRE__OP_BLOCK && node.op < VYRE__OP_TEXT) {
        made = make_plain(r, id, &node);
      } else {
        r->is_corrupt = true;
      }
  }
  return leave(r, id, made);
}

/* --- functions and program -------------------------------------------------*/

static void open_locals(vyre__reader *r, const vyre__file_function *f) {
  r->locals = (vyre__byte_reader){f->locals, f->local_bytes, false};
  r->local_memory = f->memory;
  r->local_shapes = f->shapes;
  r->next_local = 0;
  r->depth = 0;
}

static bool is_type(const vyre__reader *r, unsigned type) {
  if (vyre__struct_at(&r->m, type)) return true;
  const unsigned scalar =
      vyre__is_vector(type) ? vyre__component_type(type) : type;
  return scalar > VYRE_TYPE_VOID && scalar < VYRE_TYPE_COUNT;
}

/* Returns true for a parameter that text could declare. */
static bool is_parameter(const vyre__reader *r, const file_local *local) {
  const vyre__local *memory = &local->memory;
  if (!is_type(r, local->type)) return false;
  if (!memory->is_memory) return !local->is_mutable;
  if (memory->length > 0) {
    return vyre__component_type(local->type) < VYRE_TYPE_COUNT &&
           memory->access == 0 && memory->element == 0;
  }
  return !local->is_mutable &&
         vyre__component_type(local->type) ==
             (unsigned)vyre__element_type((vyre_element)memory->element);
}

/* Returns true for a further body of a queue kernel. */
static bool is_part(const vyre__reader *r, uint32_t index) {
  return index != 0 && (index == r->queue.by || index == r->queue.pull);
}

static void declare_functions(vyre__reader *r) {
  for (uint32_t i = 1; i < r->function_count && !stopped(r); i++) {
    const vyre__file_function *f = &r->functions[i];
    open_locals(r, f);
    if (is_part(r, i)) {
      /* further bodies follow the kernel */
      if (i != ++r->part_count || f->result != VYRE_TYPE_VOID ||
          f->name_length != 0 || f->parameter_count != 0) {
        r->is_corrupt = true;
      }
      continue;
    }
    if (!is_type(r, f->result) &&
        (f->result != VYRE_TYPE_VOID || !r->has_memory)) {
      r->is_corrupt = true;
    }
    for (uint32_t j = 0; j < f->result_count; j++) {
      if (!is_type(r, f->results[j]) || f->result) r->is_corrupt = true;
    }
    uint32_t function = vyre__function_declare(&r->m, f->name, f->name_length,
                                               (vyre_type)f->result);
    for (uint32_t j = 0; j < f->parameter_count && !stopped(r); j++) {
      file_local local = next_local(r);
      if (!is_parameter(r, &local)) r->is_corrupt = true;
      if (local.memory.is_memory) {
        vyre__function_memory(&r->m, function, local.name, local.length,
                              &local.memory);
      } else {
        vyre__function_parameter(&r->m, function, local.name, local.length,
                                 (vyre_type)local.type);
      }
    }
    vyre__function_results(&r->m, function, f->results, f->result_count);
  }
}

static uint32_t make_function(vyre__reader *r, uint32_t index) {
  const vyre__file_function *f = &r->functions[index];
  uint32_t function = index - 1 - r->part_count;
  open_locals(r, f);
  if (index == 0) {
    function = vyre__kernel_begin(&r->m, &r->kernel);
    if (f->parameter_count != 0) r->is_corrupt = true;
  } else if (is_part(r, index)) {
    function =
        vyre__kernel_part_begin(&r->m, &r->kernel, index == r->queue.pull);
  } else {
    vyre__function_begin(&r->m, function);
  }
  for (uint32_t i = 0; i < f->parameter_count; i++) (void)next_local(r);
  vyre__id body = block(r, f->body);
  vyre__function_end(&r->m, body);
  if (r->next_local != f->local_count) r->is_corrupt = true;
  return function;
}

static bool same_nodes(const vyre__reader *r, const vyre_program *p) {
  if (p->node_count != r->node_count || p->list_count != r->list_count ||
      p->text_count != r->text_count) {
    return false;
  }
  for (uint32_t i = 0; i < p->node_count; i++) {
    vyre__node node = node_at(r, i);
    if (r->nodes[(size_t)i * VYRE__BINARY_NODE + 3] != 0 ||
        memcmp(&node, &p->nodes[i], sizeof node) != 0) {
      return false;
    }
    const uint8_t *place = r->places + (size_t)i * VYRE__BINARY_SOURCE_LOC;
    const vyre__source_loc own = vyre__source_loc_of(p, i);
    if (vyre__load_u32(place) != own.line ||
        vyre__load_u32(place + 4) != own.column) {
      return false;
    }
  }
  for (uint32_t i = 0; i < p->list_count; i++) {
    if (item(r, 0, i) != p->lists[i]) return false;
  }
  return r->text_count == 0 || memcmp(r->texts, p->texts, r->text_count) == 0;
}

/* Compares the rebuilt program with the bytes. */
static bool same_program(vyre__reader *r, const vyre_program *p) {
  if (p->function_count != r->function_count || !same_nodes(r, p) ||
      p->table_count != r->table_count || p->struct_count != r->struct_count ||
      vyre__program_has_memory(p) != r->has_memory ||
      vyre__program_has_shapes(p) != r->has_shapes) {
    return false;
  }
  for (uint32_t i = 0; i < p->table_count; i++) {
    if (p->tables[i].type != r->tables[i].type ||
        p->tables[i].length != r->tables[i].length ||
        p->tables[i].shape != r->tables[i].shape ||
        memcmp(p->tables[i].values, r->tables[i].values,
               p->tables[i].length * sizeof(uint64_t)) != 0) {
      return false;
    }
  }
  for (uint32_t i = 0; i < p->function_count; i++) {
    const vyre__file_function *f = &r->functions[i];
    const vyre__function *g = &p->functions[i];
    if (f->result != g->result || f->body != g->body ||
        f->result_count != g->result_count ||
        memcmp(f->results, g->results, f->result_count) != 0 ||
        f->parameter_count != g->parameter_count ||
        f->local_count != g->local_count || (i == 0 && f->name_length != 0)) {
      return false;
    }
    open_locals(r, f);
    for (uint32_t j = 0; j < f->local_count; j++) {
      file_local local = next_local(r);
      if (local.memory.is_memory != g->locals[j].is_memory ||
          local.memory.access != g->locals[j].access ||
          local.memory.element != g->locals[j].element ||
          local.memory.length != g->locals[j].length ||
          local.memory.shape != g->locals[j].shape ||
          local.type != g->locals[j].type ||
          local.is_mutable != g->locals[j].is_mutable) {
        return false;
      }
    }
  }
  return true;
}

/* Adds the structs, and sets those of buffers. */
static void make_structs(vyre__reader *r) {
  for (uint32_t i = 0; i < r->struct_count && !r->is_corrupt; i++) {
    const vyre__file_struct *from = &r->structs[i];
    bool good = vyre__name_is_identifier(from->name, strlen(from->name));
    for (uint32_t k = 0; k < from->count; k++) {
      const char *name = from->fields[k].name;
      good = good && vyre__name_is_identifier(name, strlen(name));
    }
    for (uint32_t k = 0; k < i; k++) {
      good = good && strcmp(r->structs[k].name, from->name) != 0;
    }
    good = good && vyre__struct_add(&r->m, from->name, from->fields,
                                    from->count) != VYRE_TYPE_VOID;
    const vyre__struct *made =
        good ? r->m.structs[r->m.struct_count - 1] : NULL;
    for (uint32_t k = 0; k < from->count && made; k++) {
      good = good && made->self.fields[k].element == from->fields[k].element;
    }
    if (!good) r->is_corrupt = true;
  }
  for (uint32_t i = 0; i < r->kernel.buffer_count; i++) {
    const vyre__struct *s = vyre__struct_at(&r->m, r->buffers[i].type);
    if (!s) continue;
    r->buffers[i].structure = &s->self;
    if ((uint8_t)r->buffers[i].element != s->main_element) r->is_corrupt = true;
  }
}

static vyre_code make_program(vyre__reader *r, vyre_allocator allocator,
                              vyre_program **out) {
  make_structs(r);
  if (r->is_corrupt) return VYRE__CORRUPT(r->st, "invalid structs");
  VYRE_TRY(vyre__kernel_check(&r->kernel, r->st));
  declare_functions(r);
  for (uint32_t i = 0; i < r->table_count; i++) {
    const vyre__table *table = &r->tables[i];
    (void)vyre__table_add(&r->m, table->name, strlen(table->name),
                          (vyre_type)table->type, table->values, table->length,
                          table->shape);
  }
  r->next = 1; /* node 0 is unused */
  uint32_t kernel = 0, by = 0, pull = 0;
  const vyre__queue_clauses stored = r->queue;
  for (uint32_t i = 0; i < r->function_count && !stopped(r); i++) {
    uint32_t function = make_function(r, i);
    if (i == 0) kernel = function;
    if (i != 0 && i == stored.by) by = function;
    if (i != 0 && i == stored.pull) pull = function;
  }
  r->queue.by = by;
  r->queue.pull = pull;
  if (r->m.out_of_memory) {
    return vyre__no_memory(r->st, VYRE__READ_BINARY, "nodes", r->node_count);
  }
  if (r->failure.code != VYRE_OK) {
    if (r->st && r->st->code == VYRE_OK) *r->st = r->failure;
    return r->failure.code;
  }
  if (r->is_corrupt)
    return VYRE__CORRUPT(r->st, "the nodes do not form a program");
  VYRE_TRY(
      vyre__canonicalize(&r->m, kernel, &r->kernel, allocator, out, r->st));
  r->queue.by = stored.by;
  r->queue.pull = stored.pull;
  if (same_program(r, *out) &&
      (!r->kernel.queue || vyre__queue_equal(&r->queue, (*out)->queue))) {
    return VYRE_OK;
  }
  vyre_program_release(*out);
  *out = NULL;
  return VYRE__CORRUPT(
      r->st, "the program is not in the form that the writer produces");
}

vyre_code vyre__binary_make(vyre__reader *r, vyre_allocator allocator,
                            vyre_program **out) {
  vyre__ir_builder_init(&r->m, allocator,
                        (vyre__reporter){record_report, &r->failure});
  vyre_code code = make_program(r, allocator, out);
  vyre__ir_builder_build(&r->m);
  return code;
}
