/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: vectors, their operand types and result types. */
#include <stdio.h>

#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"

/* --- making and taking apart -----------------------------------------------*/

static bool is_splat_or_cast(unsigned type, unsigned only) {
  return !vyre__is_vector(only) ||
         vyre__vector_length(only) == vyre__vector_length(type);
}

/* Checks the values of a constructor and returns their number of components;
 * 0 after a report. */
static unsigned check_parts(vyre__ir_builder *m, unsigned type, uint32_t mark,
                            uint32_t count) {
  const unsigned component = vyre__component_type(type);
  unsigned total = 0;
  for (uint32_t i = 0; i < count; i++) {
    vyre__id id = vyre__resolve_type(m, m->stack[mark + i], component);
    if (!id) return 0;
    m->stack[mark + i] = id;
    const unsigned own = vyre__type_of(m, id);
    if (count == 1 && vyre__is_vector(own)) return vyre__vector_length(own);
    if (vyre__component_type(own) != component || own >= 64) {
      char fix[64];
      snprintf(fix, sizeof fix, "cast it: %s(x)",
               vyre__type_name(vyre__vector_of(
                   component, own >= 64 ? 1 : vyre__vector_length(own))));
      vyre__diagnose_at(m, id, "V065", fix,
                        "a component of %s must be %s, not %s",
                        vyre__type_name(type), vyre__type_name(component),
                        vyre__type_name(own));
      return 0;
    }
    total += vyre__vector_length(own);
  }
  return total;
}

vyre__id vyre__ir_build_make(vyre__ir_builder *m, unsigned type,
                             uint32_t mark) {
  const uint32_t count = (uint32_t)m->stack_count - mark;
  const unsigned length = vyre__vector_length(type);
  unsigned height = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (m->stack[mark + i] == 0) {
      vyre__stack_drop(m, mark);
      return 0;
    }
    const unsigned own = vyre__height(m, m->stack[mark + i]);
    if (own > height) height = own;
  }
  const unsigned total =
      m->out_of_memory || count == 0 ? 0 : check_parts(m, type, mark, count);
  const bool is_one =
      count == 1 && is_splat_or_cast(type, vyre__type_of(m, m->stack[mark]));
  if (count == 0 || (total > 0 && total != length && !is_one)) {
    vyre__stack_drop(m, mark);
    return vyre__diagnose(
        m, "V051",
        "give it one value for all components, or one value for each component",
        "%s has %u components, not %u", vyre__type_name(type), length, total);
  }
  uint32_t list = VYRE_NO_INDEX;
  if (total > 0) {
    list = vyre__append_list(m, vyre__stack_from(m, mark), count);
  }
  vyre__stack_drop(m, mark);
  if (list == VYRE_NO_INDEX) return 0;
  return vyre__append(
      m,
      (vyre__node){
          .op = VYRE__OP_MAKE, .type = (uint8_t)type, .a = list, .b = count},
      height);
}

vyre__id vyre__ir_build_part(vyre__ir_builder *m, vyre__id a,
                             const uint8_t *components, unsigned count) {
  if (!a) return 0;
  const unsigned type = vyre__type_of(m, a);
  uint8_t aux = 0;
  if (!vyre__is_vector(type)) {
    return vyre__diagnose(m, "V036", "use the value itself",
                          "%s has no components", vyre__type_name(type));
  }
  if (count == 0 || count > VYRE__MAX_COMPONENTS) {
    return vyre__diagnose(m, "V036", "name 1 to 4 components",
                          "%u components of a vector", count);
  }
  for (unsigned i = 0; i < count; i++) {
    if (components[i] >= vyre__vector_length(type)) {
      return vyre__diagnose(
          m, "V036", "use .x, .y, and .z or .w if it has them",
          "%s has %u components; it has no .%c", vyre__type_name(type),
          vyre__vector_length(type), "xyzw"[components[i] & 3]);
    }
    aux |= (uint8_t)(components[i] << 2 * i);
  }
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_PART,
                                   .type = (uint8_t)vyre__vector_of(
                                       vyre__component_type(type), count),
                                   .aux = aux,
                                   .a = a},
                      vyre__height(m, a));
}

vyre__id vyre__ir_build_component(vyre__ir_builder *m, vyre__id a,
                                  vyre__id index) {
  if (!a || !index) return 0;
  const unsigned type = vyre__type_of(m, a);
  if (!vyre__is_vector(type)) {
    return vyre__diagnose(m, "V035", "use the name of a buffer before '['",
                          "only buffers and vectors have elements, not %s",
                          vyre__type_name(type));
  }
  index = vyre__resolve_index_type(m, index);
  if (!index) return 0;
  if (!vyre__type_is_integer(vyre__type_of(m, index))) {
    return vyre__diagnose_at(
        m, index, "V068", "cast it: u32(x)",
        "the index of a vector is %s; it must be an integer",
        vyre__type_name(vyre__type_of(m, index)));
  }
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_COMPONENT,
                                   .type = (uint8_t)vyre__component_type(type),
                                   .a = a,
                                   .b = index},
                      vyre__height2(m, a, index));
}

/* --- operations ------------------------------------------------------------*/

static vyre__id wrong_operand(vyre__ir_builder *m, vyre__op op, vyre__id id) {
  const unsigned type = vyre__type_of(m, id);
  const char *fix = "cast the vector first, as in f32x3(v)";
  if (op == VYRE__OP_LAND || op == VYRE__OP_LOR) {
    fix = "use all(v) or any(v), or & and | for each component";
  } else if (vyre__component_type(type) == VYRE_TYPE_BOOL) {
    fix = "use & | ^ ! == != on vectors of bool, or select(v, a, b)";
  }
  return vyre__diagnose_at(m, id, "V061", fix,
                           "'%s' needs vectors of %s here, not %s",
                           vyre__ops[op].text,
                           op == VYRE__OP_LAND || op == VYRE__OP_LOR
                               ? "nothing but scalar bool"
                               : vyre__rule_wants(vyre__ops[op].rule),
                           vyre__type_name(type));
}

/* Returns true if the operation works on each component of the vector. */
static bool takes_parts(vyre__op op, unsigned type) {
  return vyre__is_vector(type) && op != VYRE__OP_LAND && op != VYRE__OP_LOR &&
         vyre__rule_takes(vyre__ops[op].rule, vyre__component_type(type));
}

static vyre__id append_op(vyre__ir_builder *m, vyre__op op, unsigned type,
                          vyre__id a, vyre__id b, vyre__id c) {
  unsigned height = vyre__height2(m, a, b), more = vyre__height(m, c);
  return vyre__append(
      m,
      (vyre__node){
          .op = (uint8_t)op, .type = (uint8_t)type, .a = a, .b = b, .c = c},
      height > more ? height : more);
}

/* Reports an operand of dot and the like that is not a suitable vector. */
static vyre__id wrong_vector(vyre__ir_builder *m, vyre__op op, vyre__id id,
                             const char *wanted) {
  return vyre__diagnose_at(m, id, "V061", "use vectors, such as f32x3(x, y, z)",
                           "'%s' needs %s, not %s", vyre__ops[op].text, wanted,
                           vyre__type_name(vyre__type_of(m, id)));
}

static bool is_float_vector(unsigned type) {
  return vyre__is_vector(type) && vyre__is_float(vyre__component_type(type));
}

vyre__id vyre__vector_unary(vyre__ir_builder *m, vyre__op op, vyre__id a) {
  const unsigned type = vyre__type_of(m, a);
  const unsigned component = vyre__component_type(type);
  switch (op) {
    case VYRE__OP_ALL:
    case VYRE__OP_ANY:
      if (!vyre__is_vector(type) || component != VYRE_TYPE_BOOL) {
        return wrong_vector(m, op, a, "a vector of bool");
      }
      return append_op(m, op, VYRE_TYPE_BOOL, a, 0, 0);
    case VYRE__OP_LENGTH:
    case VYRE__OP_NORMALIZE:
      if (!is_float_vector(type)) {
        return wrong_vector(m, op, a, "a vector of floats");
      }
      return append_op(m, op, op == VYRE__OP_LENGTH ? component : type, a, 0,
                       0);
    case VYRE__OP_BALLOT:
      return wrong_operand(m, op, a);
    default:
      if (!takes_parts(op, type)) return wrong_operand(m, op, a);
      return append_op(m, op, type, a, 0, 0);
  }
}

/* Reports operands of different types. */
static vyre__id differ(vyre__ir_builder *m, vyre__op op, vyre__id a,
                       vyre__id b) {
  const unsigned ta = vyre__type_of(m, a), tb = vyre__type_of(m, b);
  const unsigned vector = vyre__is_vector(ta) ? ta : tb;
  char fix[96];
  snprintf(fix, sizeof fix, "make both sides %s: %s(x)",
           vyre__type_name(vector), vyre__type_name(vector));
  return vyre__diagnose(m, "V060", fix,
                        "both sides of '%s' must have the same type, not %s "
                        "and %s",
                        vyre__ops[op].text, vyre__type_name(ta),
                        vyre__type_name(tb));
}

/* v * s and s * v, v / s and s / v with a scalar of the component type */
static vyre__id scale(vyre__ir_builder *m, vyre__op op, vyre__id a,
                      vyre__id b) {
  const bool first = vyre__is_vector(vyre__type_of(m, a));
  const unsigned type = vyre__type_of(m, first ? a : b);
  vyre__id *scalar = first ? &b : &a;
  *scalar =
      vyre__resolve_type(m, *scalar, (vyre_type)vyre__component_type(type));
  if (!*scalar) return 0;
  if (vyre__type_of(m, *scalar) != vyre__component_type(type)) {
    return differ(m, op, a, b);
  }
  if (!takes_parts(op, type)) return wrong_operand(m, op, first ? a : b);
  return append_op(m, op, type, a, b, 0);
}

static vyre__id products(vyre__ir_builder *m, vyre__op op, vyre__id a,
                         vyre__id b) {
  const unsigned type = vyre__type_of(m, a);
  const bool any_number =
      op == VYRE__OP_DOT && vyre__component_type(type) != VYRE_TYPE_BOOL;
  if (!vyre__is_vector(type) || (!any_number && !is_float_vector(type))) {
    return wrong_vector(
        m, op, a, any_number ? "vectors of numbers" : "vectors of floats");
  }
  if (type != vyre__type_of(m, b)) return differ(m, op, a, b);
  if (op == VYRE__OP_CROSS && vyre__vector_length(type) != 3) {
    return wrong_vector(m, op, a, "vectors of 3 floats");
  }
  return append_op(
      m, op, op == VYRE__OP_CROSS ? type : vyre__component_type(type), a, b, 0);
}

vyre__id vyre__vector_binary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                             vyre__id b) {
  const unsigned ta = vyre__type_of(m, a), tb = vyre__type_of(m, b);
  const vyre__rule rule = vyre__ops[op].rule;
  if (rule == VYRE__RULE_VECTOR) return products(m, op, a, b);
  const bool both = vyre__is_vector(ta) && vyre__is_vector(tb);
  if (!both && (op == VYRE__OP_MUL || op == VYRE__OP_DIV) && ta < 64 &&
      tb < 64) {
    return scale(m, op, a, b);
  }
  if (ta < 64 && vyre__is_vector(ta) && !takes_parts(op, ta)) {
    return wrong_operand(m, op, a);
  }
  if (rule == VYRE__RULE_SHIFT) {
    const unsigned wanted =
        vyre__vector_of(VYRE_TYPE_U32, vyre__vector_length(ta));
    if (both && tb == wanted) return append_op(m, op, ta, a, b, 0);
    char fix[64];
    snprintf(fix, sizeof fix, "write the count as %s(n)",
             vyre__type_name(wanted));
    return vyre__diagnose_at(
        m, b, "V078", fix, "the count of '%s' must be %s, not %s",
        vyre__ops[op].text, vyre__type_name(wanted), vyre__type_name(tb));
  }
  if (rule == VYRE__RULE_LANES) {
    return wrong_operand(m, op, vyre__is_vector(ta) ? b : a);
  }
  if (ta != tb) return differ(m, op, a, b);
  if (!takes_parts(op, ta)) return wrong_operand(m, op, a);
  const bool compares =
      rule == VYRE__RULE_COMPARE_ANY || rule == VYRE__RULE_COMPARE_NUMBER;
  const unsigned type =
      compares ? vyre__vector_of(VYRE_TYPE_BOOL, vyre__vector_length(ta)) : ta;
  return append_op(m, op, type, a, b, 0);
}

vyre__id vyre__vector_ternary(vyre__ir_builder *m, vyre__op op, vyre__id a,
                              vyre__id b, vyre__id c) {
  const unsigned ta = vyre__type_of(m, a), tb = vyre__type_of(m, b);
  const unsigned tc = vyre__type_of(m, c);
  if (vyre__is_no_operand(m, a) || vyre__is_no_operand(m, b) ||
      vyre__is_no_operand(m, c)) {
    return 0;
  }
  if (vyre__ops[op].rule != VYRE__RULE_SELECT) {
    if (ta != tb) return differ(m, op, a, b);
    if (tb != tc) return differ(m, op, b, c);
    if (!takes_parts(op, ta)) return wrong_operand(m, op, a);
    return append_op(m, op, ta, a, b, c);
  }
  if (tb != tc) return differ(m, op, b, c);
  if (op == VYRE__OP_SELECT && vyre__is_struct(tb)) {
    return vyre__diagnose(m, "V061", "write condition ? a : b",
                          "'select' does not take structs");
  }
  const bool by_parts =
      op == VYRE__OP_SELECT && vyre__is_vector(tb) &&
      ta == vyre__vector_of(VYRE_TYPE_BOOL, vyre__vector_length(tb));
  if (!by_parts &&
      !vyre__expect(m, a, VYRE_TYPE_BOOL, "V067",
                    op == VYRE__OP_SELECT ? "the condition of select"
                                          : "the condition of ?:")) {
    return 0;
  }
  return append_op(m, op, tb, a, b, c);
}

vyre__id vyre__vector_cast(vyre__ir_builder *m, vyre__op op, unsigned type,
                           vyre__id a) {
  const unsigned from = vyre__type_of(m, a);
  if (op == VYRE__OP_CAST || !vyre__is_vector(from) || vyre__is_vector(type)) {
    char fix[64];
    snprintf(fix, sizeof fix,
             "convert the vector: %s(v), or one component: %s(v.x)",
             vyre__type_name(vyre__vector_of(type, vyre__vector_length(from))),
             vyre__type_name(type));
    return vyre__diagnose(m, "V079", fix, "%s cannot be converted to %s",
                          vyre__type_name(from), vyre__type_name(type));
  }
  return append_op(m, op, vyre__vector_of(type, vyre__vector_length(from)), a,
                   0, 0);
}

/* --- places ----------------------------------------------------------------*/

/* Returns the LOCAL or LOAD of which @p place is a part, or 0. */
static vyre__id root_of(const vyre__ir_builder *m, vyre__id place) {
  for (;;) {
    const vyre__node *node = &m->nodes[place];
    if (node->op == VYRE__OP_LOCAL || node->op == VYRE__OP_LOAD) return place;
    if (node->op != VYRE__OP_PART && node->op != VYRE__OP_COMPONENT &&
        node->op != VYRE__OP_FIELD) {
      return 0;
    }
    place = node->a;
  }
}

vyre__id vyre__ir_build_set_place(vyre__ir_builder *m, vyre__id place,
                                  vyre__id value) {
  if (!place || !value) return 0;
  const vyre__node *node = &m->nodes[place];
  const vyre__id root = root_of(m, place);
  if (!root) {
    return vyre__diagnose_at(m, place, "V037",
                             "store it in a var first, and assign its part",
                             "only a part of a var or of an element can be "
                             "assigned");
  }
  if (node->op == VYRE__OP_PART && vyre__is_vector(node->type)) {
    return vyre__diagnose_at(
        m, place, "V037", "assign one component at a time: v.x = a; v.y = b;",
        "several components cannot be assigned at once");
  }
  if (!vyre__can_assign(m, root)) return 0;
  value = vyre__expect(m, value, (vyre_type)node->type, "V065",
                       "the value assigned to this part");
  if (!value) return 0;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_SET_PLACE, .a = place, .b = value},
      vyre__height2(m, place, value));
}

vyre__id vyre__ir_build_at(vyre__ir_builder *m, uint32_t mark) {
  const uint32_t count = (uint32_t)m->stack_count - mark;
  unsigned height = 0;
  bool good = !m->out_of_memory;
  for (uint32_t i = 0; i < count; i++) {
    const vyre__id id = m->stack[mark + i];
    if (!id) good = false;
    const unsigned own = vyre__height(m, id);
    if (own > height) height = own;
  }
  const uint32_t list =
      good ? vyre__append_list(m, vyre__stack_from(m, mark), count)
           : VYRE_NO_INDEX;
  vyre__stack_drop(m, mark);
  if (list == VYRE_NO_INDEX) return 0;
  return vyre__append(
      m,
      (vyre__node){
          .op = VYRE__OP_AT, .type = VYRE_TYPE_U32, .a = list, .b = count},
      height);
}

/* --- indices of buffers with dimensions ------------------------------------*/

bool vyre__check_indices(vyre__ir_builder *m, const vyre_buffer_decl *buffer,
                         vyre__id index) {
  const vyre__node *node = &m->nodes[index];
  const unsigned given = node->op == VYRE__OP_INDEX ? node->b : 1;
  const unsigned wanted = buffer->dimension_count ? buffer->dimension_count : 1;
  if (given == wanted) return true;
  char fix[96];
  if (wanted == 1) {
    snprintf(fix, sizeof fix,
             "declare its dimensions, as in f32[height, width]");
  } else {
    snprintf(fix, sizeof fix, "write one index for each: %.40s[%s]",
             buffer->name,
             wanted == 2   ? "y, x"
             : wanted == 3 ? "z, y, x"
                           : "w, z, y, x");
  }
  vyre__diagnose_at(m, index, "V068", fix,
                    "'%.100s' has %u dimension%s, but this access has %u ind%s",
                    buffer->name, wanted, wanted == 1 ? "" : "s", given,
                    given == 1 ? "ex" : "ices");
  return false;
}

vyre__id vyre__ir_build_indices(vyre__ir_builder *m, uint32_t mark) {
  uint32_t list, count;
  unsigned height;
  for (size_t i = mark; i < m->stack_count; i++) {
    const vyre__id id = vyre__resolve_index_type(m, m->stack[i]);
    if (id && !vyre__type_is_integer(vyre__type_of(m, id))) {
      vyre__stack_drop(m, mark);
      return vyre__diagnose_at(m, id, "V068", "cast it: u32(x)",
                               "an index is %s; it must be an integer",
                               vyre__type_name(vyre__type_of(m, id)));
    }
    m->stack[i] = id;
  }
  if (!vyre__take_list(m, mark, &list, &count, &height)) return 0;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_INDEX,
                                   .type = VYRE__TYPE_INDEX,
                                   .a = list,
                                   .b = count},
                      height);
}

vyre__id vyre__ir_build_dimension(vyre__ir_builder *m, uint32_t buffer,
                                  unsigned dimension) {
  const vyre_buffer_decl *decl = vyre__buffer_at(m, buffer);
  if (!decl) return 0;
  if (dimension >= decl->dimension_count) {
    return vyre__diagnose(m, "V068", "use a number below it, or len(a) alone",
                          "'%.100s' has no dimension %u; it has %u", decl->name,
                          dimension, decl->dimension_count);
  }
  const uint32_t size = decl->dimensions[dimension];
  if (decl->dimension_uniforms >> dimension & 1) {
    return vyre__ir_build_load(m, size,
                               vyre__ir_build_literal(m, VYRE_TYPE_U32, 0));
  }
  if (size) return vyre__ir_build_literal(m, VYRE_TYPE_U32, size);
  vyre__id rows = vyre__ir_build_len(m, buffer);
  for (unsigned i = decl->dimension_count; i-- > 1;) {
    rows = vyre__ir_build_binary(m, VYRE__OP_DIV, rows,
                                 vyre__ir_build_dimension(m, buffer, i));
  }
  return rows;
}

vyre__id vyre__ir_build_scalar_atomic(vyre__ir_builder *m, vyre__op op,
                                      uint32_t buffer, vyre__id at,
                                      vyre_element element, vyre__id value,
                                      vyre__id desired) {
  unsigned height = vyre__height2(m, at, value);
  uint32_t c = value;
  if (!at || !value) return 0;
  if (op == VYRE__OP_ATOMIC_CAS) {
    c = desired ? vyre__append_list(m, (const uint32_t[]){value, desired}, 2)
                : VYRE_NO_INDEX;
    if (c == VYRE_NO_INDEX) return 0;
    if (vyre__height(m, desired) > height) height = vyre__height(m, desired);
  }
  return vyre__append(m,
                      (vyre__node){.op = (uint8_t)op,
                                   .type = (uint8_t)vyre__element_type(element),
                                   .aux = (uint8_t)(element + 1),
                                   .a = buffer,
                                   .b = at,
                                   .c = c},
                      height);
}
