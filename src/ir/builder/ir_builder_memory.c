/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: arrays, tables, memory parameters, and calls with several results.
 */
#include <stdio.h>
#include <string.h>

#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"

/* --- declarations ----------------------------------------------------------*/

static vyre_element element_of(unsigned type) {
  static const uint8_t elements[VYRE_TYPE_COUNT] = {
      [VYRE_TYPE_BOOL] = VYRE_ELEMENT_BOOL, [VYRE_TYPE_U32] = VYRE_ELEMENT_U32,
      [VYRE_TYPE_I32] = VYRE_ELEMENT_I32,   [VYRE_TYPE_U64] = VYRE_ELEMENT_U64,
      [VYRE_TYPE_I64] = VYRE_ELEMENT_I64,   [VYRE_TYPE_F32] = VYRE_ELEMENT_F32,
      [VYRE_TYPE_F64] = VYRE_ELEMENT_F64};
  return type < VYRE_TYPE_COUNT ? (vyre_element)elements[type]
                                : VYRE_ELEMENT_U32;
}

static void array_decl(const char *name, unsigned type, uint32_t length,
                       vyre_access access, vyre_buffer_decl *out) {
  *out = (vyre_buffer_decl){.name = name,
                            .access = access,
                            .element = element_of(vyre__component_type(type)),
                            .type = vyre__is_vector(type) ? type : 0,
                            .count = length};
}

static void set_shape(vyre_buffer_decl *decl, vyre__shape shape) {
  decl->dimension_count = (uint8_t)vyre__shape_count(shape);
  for (unsigned i = 0; i < decl->dimension_count; i++) {
    decl->dimensions[i] = vyre__shape_length(shape, i);
  }
}

/* Returns the shape of the declaration of an array or a table. */
static vyre__shape shape_of(const vyre_buffer_decl *decl) {
  vyre__shape shape = 0;
  for (unsigned i = 0; i < decl->dimension_count; i++) {
    shape |= (vyre__shape)decl->dimensions[i] << VYRE__SHAPE_BITS * i;
  }
  return shape;
}

/* Writes a type such as f32[3, 3]. */
static void write_type(char text[64], unsigned type, uint32_t length,
                       vyre__shape shape) {
  const unsigned count = vyre__shape_count(shape);
  size_t at = (size_t)snprintf(text, 64, "%s[%u", vyre__type_name(type),
                               count ? vyre__shape_length(shape, 0) : length);
  for (unsigned i = 1; i < count; i++) {
    at += (size_t)snprintf(text + at, 64 - at, ", %u",
                           vyre__shape_length(shape, i));
  }
  snprintf(text + at, 64 - at, "]");
}

static vyre__ir_local *local_at(vyre__ir_builder *m, uint32_t local) {
  if (m->function >= m->function_count ||
      local >= m->functions[m->function].local_count) {
    return NULL;
  }
  return &m->locals[m->functions[m->function].first_local + local];
}

const vyre_buffer_decl *vyre__memory_at(vyre__ir_builder *m, uint32_t memory) {
  const uint32_t index = memory & VYRE__MEMORY_INDEX;
  const vyre__ir_local *local =
      memory & VYRE__MEMORY_LOCAL ? local_at(m, index) : NULL;
  if (memory & VYRE__MEMORY_TABLE) {
    if (index < m->table_count && !(memory & VYRE__MEMORY_LOCAL)) {
      const vyre__ir_table *table = &m->tables[index];
      array_decl(table->name, table->type, table->length, VYRE_ACCESS_READ,
                 &m->memory);
      set_shape(&m->memory, table->shape);
      return &m->memory;
    }
  } else if (local && local->is_memory && local->is_open) {
    array_decl(local->name, local->type, local->length,
               local->is_mutable ? VYRE_ACCESS_READ_WRITE : VYRE_ACCESS_READ,
               &m->memory);
    set_shape(&m->memory, local->shape);
    if (local->length == 0) {
      m->memory.access = (vyre_access)local->access;
      m->memory.element = (vyre_element)local->element;
    }
    return &m->memory;
  }
  if (m->out_of_memory || (local && local->type == VYRE_TYPE_VOID)) return NULL;
  vyre__diagnose(m, "", "declare the array first, in an outer block",
                 "memory %u does not exist here", index);
  return NULL;
}

/* --- whole arrays ----------------------------------------------------------*/

vyre__id vyre__ir_build_memory(vyre__ir_builder *m, uint32_t memory) {
  if (!vyre__buffer_at(m, memory)) return 0;
  return vyre__append(
      m,
      (vyre__node){
          .op = VYRE__OP_MEMORY, .type = VYRE__TYPE_MEMORY, .a = memory},
      0);
}

vyre__id vyre__ir_build_array_value(vyre__ir_builder *m, uint32_t mark) {
  uint32_t offset, count;
  unsigned height;
  if (!vyre__take_list(m, mark, &offset, &count, &height)) return 0;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_ARRAY,
                                   .type = VYRE__TYPE_MEMORY,
                                   .a = offset,
                                   .b = count},
                      height);
}

static bool is_element_type(unsigned type) {
  const unsigned component = vyre__component_type(type);
  return component > VYRE_TYPE_VOID && component < VYRE_TYPE_COUNT &&
         (type == component || vyre__is_vector(type));
}

/* Checks the elements of an array of @p type. */
static bool check_elements(vyre__ir_builder *m, unsigned type, vyre__id value) {
  const uint32_t list = m->nodes[value].a, count = m->nodes[value].b;
  bool good = true;
  for (uint32_t i = 0; i < count; i++) {
    const vyre__id id = m->lists[list + i];
    if (vyre__is_no_operand(m, id)) return false;
    const vyre__id made =
        vyre__expect(m, id, (vyre_type)type, "V065", "an element of the array");
    good = good && made;
    m->lists[list + i] = made;
  }
  return good;
}

/* Checks that @p value can be stored in an array. A MEMORY must have elements of
 * the type. *length is that of the array, or 0: taken from the value with its
 * *shape. */
static bool check_value(vyre__ir_builder *m, const char *name, unsigned type,
                        uint32_t *length, vyre__shape *shape, vyre__id value) {
  uint32_t count = 0;
  if (m->nodes[value].op == VYRE__OP_ARRAY) {
    count = m->nodes[value].b;
    if (!check_elements(m, type, value)) return false;
  } else if (m->nodes[value].op == VYRE__OP_MEMORY) {
    const uint32_t from = m->nodes[value].a;
    const vyre_buffer_decl *decl = vyre__buffer_at(m, from);
    if (!decl) return false;
    count = from >= VYRE__MEMORY_TABLE ? decl->count : 0;
    if (count == 0) {
      vyre__diagnose_at(m, value, "V098", "copy its elements in a loop",
                        "'%.100s' is not an array, so it cannot be copied as a "
                        "whole",
                        decl->name);
      return false;
    }
    if (*length == 0) *shape = shape_of(decl);
    if (*shape != shape_of(decl)) {
      char have[64], want[64];
      write_type(have, type, count, shape_of(decl));
      write_type(want, type, *length, *shape);
      vyre__diagnose_at(m, value, "V098",
                        "declare both with the same lengths, or copy the "
                        "elements in loops",
                        "array '%.60s' is %s, but its value is %s", name, want,
                        have);
      return false;
    }
    if (vyre__buffer_type(decl) != type) {
      vyre__diagnose_at(
          m, value, "V098", "convert its elements in a loop: a[i] = f32(b[i]);",
          "array '%.60s' of %s gets an array of %s", name,
          vyre__type_name(type), vyre__type_name(vyre__buffer_type(decl)));
      return false;
    }
  } else {
    char fix[96];
    snprintf(fix, sizeof fix,
             "write the elements: {x, y}, or var %.40s : %s[%u];", name,
             vyre__type_name(type), *length ? *length : 4);
    vyre__diagnose_at(m, value, "V098", fix,
                      "array '%.60s' gets %s, which is not an array", name,
                      vyre__type_name(vyre__type_of(m, value)));
    return false;
  }
  if (*length == 0) *length = count;
  if (*length == count) return true;
  char fix[64];
  snprintf(fix, sizeof fix, "give it %u values, or declare the length %u",
           *length, count);
  vyre__diagnose_at(m, value, "V098", fix,
                    "array '%.60s' of %u gets %u value%s", name, *length, count,
                    count == 1 ? "" : "s");
  return false;
}

static bool check_size(vyre__ir_builder *m, const char *name, unsigned type,
                       uint32_t length) {
  const uint64_t bytes =
      (uint64_t)length * vyre__vector_length(type) *
      vyre_element_size(element_of(vyre__component_type(type)));
  if (length > 0 && bytes <= VYRE__MAX_ARRAY_BYTES) return true;
  char fix[128];
  if (length == 0) {
    vyre__diagnose(m, "V098", "use a length of 1 or more",
                   "array '%.60s' has no elements", name);
    return false;
  }
  snprintf(fix, sizeof fix,
           "use a shorter array, or a buffer with %u elements for each "
           "invocation",
           length);
  vyre__diagnose(
      m, "V098", fix,
      "array '%.60s' has %llu bytes; the arrays of an invocation may "
      "have %d",
      name, (unsigned long long)bytes, VYRE__MAX_ARRAY_BYTES);
  return false;
}

vyre__id vyre__ir_build_array(vyre__ir_builder *m, const char *name,
                              size_t name_length, vyre_type type,
                              uint32_t length, vyre__shape shape,
                              bool is_mutable, vyre__id value,
                              uint32_t *local) {
  char shown[64];
  snprintf(shown, sizeof shown, "%.*s",
           name_length > 60 ? 60 : (int)name_length, name ? name : "");
  bool good = is_element_type(type);
  if (!good) {
    vyre__diagnose(m, "V098", "use one array for each field",
                   "elements of an array are bool, u32, i32, u64, i64, f32, "
                   "f64 or vectors of them, not %s",
                   vyre__type_name(type));
  }
  if (good && value) good = check_value(m, shown, type, &length, &shape, value);
  good = good && check_size(m, shown, type, length);
  *local = vyre__local_add(
      m, name, name_length,
      (vyre__ir_local){.type = good ? (uint8_t)type : VYRE_TYPE_VOID,
                       .is_mutable = is_mutable,
                       .is_memory = true,
                       .length = length,
                       .shape = shape});
  if (*local == VYRE_NO_INDEX || !good) return 0;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_LET, .a = *local, .b = value},
                      vyre__height(m, value));
}

vyre__id vyre__assign_array(vyre__ir_builder *m, uint32_t local,
                            vyre__id value) {
  const uint32_t memory = VYRE__MEMORY_LOCAL | local;
  const vyre_buffer_decl *decl = vyre__buffer_at(m, memory);
  if (!decl || !value) return 0;
  vyre__ir_local *it = local_at(m, local);
  if (it->length == 0) {
    return vyre__diagnose(
        m, "V098", "assign its elements: name[i] = value;",
        "'%.100s' is memory and cannot be assigned as a whole", it->name);
  }
  const vyre__node element = {.op = VYRE__OP_LOAD, .a = memory};
  const vyre__id root = vyre__append(m, element, 0);
  if (!root || !vyre__can_assign(m, root)) return 0;
  uint32_t length = it->length;
  vyre__shape shape = it->shape;
  char name[64];
  snprintf(name, sizeof name, "%.60s", it->name);
  if (!check_value(m, name, it->type, &length, &shape, value)) return 0;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_ASSIGN, .a = local, .b = value},
      vyre__height(m, value));
}

/* --- calls -----------------------------------------------------------------*/

bool vyre__is_no_operand(vyre__ir_builder *m, vyre__id id) {
  const unsigned type = vyre__type_of(m, id);
  if (!vyre__is_no_value(type)) return false;
  if (type == VYRE__TYPE_INDEX) {
    vyre__diagnose_at(m, id, "V068",
                      "use them as the index of an access: a[y, x]",
                      "%s are not a value", vyre__type_name(type));
  } else if (type == VYRE__TYPE_MEMORY) {
    const bool is_list = m->nodes[id].op == VYRE__OP_ARRAY;
    vyre__diagnose_at(m, id, "V098",
                      is_list ? "declare an array: let a : f32[2] = {x, y};"
                              : "write one of its elements: name[i]",
                      "a whole array is not a value");
  } else if (type == VYRE__TYPE_RESULTS) {
    vyre__diagnose_at(m, id, "V099",
                      "write let (a, b) = f(x);, and use a and b",
                      "the call has several results, so it is not a value");
  } else {
    vyre__diagnose_at(m, id, "V099",
                      "declare the type of its result: fn name(...) -> f32",
                      "the function has no result, so the call is not a value");
  }
  return true;
}

static bool wants_write(const vyre__ir_parameter *parameter) {
  if (parameter->length > 0) return parameter->is_mutable;
  return parameter->access != VYRE_ACCESS_READ;
}

static bool allows(vyre_access have, vyre_access want) {
  if (have == VYRE_ACCESS_READ_WRITE || have == VYRE_ACCESS_WORKGROUP) {
    return true;
  }
  if (have == VYRE_ACCESS_UNIFORM) have = VYRE_ACCESS_READ;
  return have == want;
}

static bool report_type(vyre__ir_builder *m, vyre__id id, const char *parameter,
                        const char *want, const char *name, const char *have) {
  vyre__diagnose_at(m, id, "V099",
                    "pass memory with the same elements, or change the type of "
                    "the parameter",
                    "parameter '%.60s' takes %s, but '%.60s' has %s", parameter,
                    want, name, have);
  return false;
}

bool vyre__check_memory_argument(vyre__ir_builder *m,
                                 const vyre__ir_function *f,
                                 const vyre__ir_parameter *parameter,
                                 vyre__id id) {
  char want[64], have[64];
  if (!id) return false;
  if (m->nodes[id].op != VYRE__OP_MEMORY) {
    vyre__diagnose_at(m, id, "V099", "pass the name of an array or a buffer",
                      "parameter '%.60s' of fn '%.60s' takes %s, not %s",
                      parameter->name, f->name,
                      parameter->length ? "an array" : "memory",
                      vyre__type_name(vyre__type_of(m, id)));
    return false;
  }
  const uint32_t memory = m->nodes[id].a;
  const vyre_buffer_decl *decl = vyre__buffer_at(m, memory);
  if (!decl) return false;
  const bool is_array = memory >= VYRE__MEMORY_TABLE && decl->count > 0;
  const char *name = decl->name;
  const bool takes_shape = parameter->length > 0 && is_array;
  if ((decl->dimension_count > 0 && !takes_shape) ||
      vyre__is_sum(decl->element)) {
    vyre__diagnose_at(m, id, "V099",
                      "use it in the kernel, and pass the values to the fn",
                      "parameter '%.60s' takes memory with one index and plain "
                      "elements, which '%.60s' is not",
                      parameter->name, name);
    return false;
  }
  if (parameter->length > 0) {
    write_type(want, parameter->type, parameter->length, parameter->shape);
    write_type(have, vyre__buffer_type(decl), decl->count, shape_of(decl));
    if (!is_array) {
      vyre__diagnose_at(
          m, id, "V099",
          "declare the parameter x: read f32[], which takes any memory",
          "parameter '%.60s' takes an array of %s, but '%.60s' is a buffer",
          parameter->name, want, name);
      return false;
    }
    if (parameter->length != decl->count ||
        parameter->shape != shape_of(decl) ||
        parameter->type != vyre__buffer_type(decl)) {
      return report_type(m, id, parameter->name, want, name, have);
    }
  } else {
    snprintf(want, sizeof want, "%s[]",
             vyre__is_vector(parameter->type)
                 ? vyre__type_name(parameter->type)
                 : vyre_element_name((vyre_element)parameter->element));
    snprintf(have, sizeof have, "%s[]",
             decl->type ? vyre__type_name(decl->type)
                        : vyre_element_name(decl->element));
    if (strcmp(want, have) != 0) {
      return report_type(m, id, parameter->name, want, name, have);
    }
  }
  const vyre_access access = parameter->length == 0
                                 ? (vyre_access)parameter->access
                             : parameter->is_mutable ? VYRE_ACCESS_READ_WRITE
                                                     : VYRE_ACCESS_READ;
  if (allows(decl->access, access)) return true;
  const bool is_let = is_array && decl->access == VYRE_ACCESS_READ;
  char fix[64];
  snprintf(fix, sizeof fix,
           is_let ? "declare '%.40s' with var" : "declare '%.40s' read_write",
           name);
  vyre__diagnose_at(
      m, id, "V099", fix,
      "fn '%.60s' %s its parameter '%.60s', but '%.60s' is %s", f->name,
      access == VYRE_ACCESS_READ ? "reads" : "writes", parameter->name, name,
      is_let ? "not declared with var" : vyre_access_name(decl->access));
  return false;
}

bool vyre__check_aliases(vyre__ir_builder *m, const vyre__ir_function *f,
                         uint32_t mark) {
  for (uint32_t i = 0; i < f->parameter_count; i++) {
    const vyre__ir_parameter *a = &m->parameters[f->first_parameter + i];
    if (!a->is_memory) continue;
    for (uint32_t j = 0; j < i; j++) {
      const vyre__ir_parameter *b = &m->parameters[f->first_parameter + j];
      if (!b->is_memory || (!wants_write(a) && !wants_write(b))) continue;
      const vyre__id one = m->stack[mark + i], two = m->stack[mark + j];
      if (!one || !two || m->nodes[one].a != m->nodes[two].a) continue;
      const vyre_buffer_decl *decl = vyre__buffer_at(m, m->nodes[one].a);
      vyre__diagnose_at(
          m, one, "V099", "copy it to another array first, and pass the copy",
          "fn '%.60s' gets '%.60s' twice, as '%.60s' and '%.60s', and modifies "
          "it",
          f->name, decl ? decl->name : "", b->name, a->name);
      return false;
    }
  }
  return true;
}

/* --- several results -------------------------------------------------------*/

vyre__id vyre__ir_build_results(vyre__ir_builder *m, vyre__id call) {
  if (!call) return 0;
  if (vyre__type_of(m, call) != VYRE__TYPE_RESULTS) {
    return vyre__diagnose_at(m, call, "V099",
                             "write let a = value;, or call a fn with several "
                             "results",
                             "this value is not a call with several results");
  }
  const vyre__id id = vyre__append(
      m, (vyre__node){.op = VYRE__OP_EVAL, .a = call}, vyre__height(m, call));
  if (!id) return 0;
  vyre__statement(m, id);
  m->results_of = m->nodes[call].a;
  m->results_used = 0;
  m->results_left = m->functions[m->results_of].result_count;
  m->results_open = 0;
  return id;
}

vyre__id vyre__ir_build_result(vyre__ir_builder *m, uint32_t index) {
  if (m->results_left == 0 ||
      index != m->functions[m->results_of].result_count - m->results_left +
                   m->results_open) {
    return vyre__diagnose(m, "",
                          "use the results in order, directly after "
                          "the call",
                          "result %u is not available here", index);
  }
  if (m->results_open >= m->results_left) return 0;
  m->results_open++;
  return vyre__append(
      m,
      (vyre__node){.op = VYRE__OP_RESULT,
                   .type = m->functions[m->results_of].results[index],
                   .aux = (uint8_t)index},
      0);
}

/* Returns the values that a statement stores. */
static uint32_t stored_values(const vyre__ir_builder *m, const vyre__node *node,
                              const uint32_t **values) {
  switch ((vyre__op)node->op) {
    case VYRE__OP_LET:
    case VYRE__OP_ASSIGN:
    case VYRE__OP_SET_PLACE:
      *values = &node->b;
      return 1;
    case VYRE__OP_STORE:
      *values = &node->c;
      return 1;
    case VYRE__OP_RETURN_RESULTS:
      *values = m->lists + node->a;
      return node->b;
    default:
      return 0;
  }
}

bool vyre__use_results(vyre__ir_builder *m, vyre__id statement) {
  const uint32_t *values = NULL;
  const uint32_t count = stored_values(m, &m->nodes[statement], &values);
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; i++) {
    used += m->nodes[values[i]].op == VYRE__OP_RESULT;
  }
  const bool good = used > 0 && used == count && used == m->results_open;
  m->results_left -= good ? used : m->results_left;
  m->results_open = 0;
  if (good) return true;
  vyre__diagnose_at(m, statement, "", "store each result with one statement",
                    "the results of a call are not used in order");
  return false;
}

vyre__id vyre__ir_build_return_results(vyre__ir_builder *m, uint32_t mark) {
  uint32_t offset, count = (uint32_t)m->stack_count - mark;
  unsigned height;
  const vyre__ir_function *f =
      m->function < m->function_count ? &m->functions[m->function] : NULL;
  if (!f || f->result_count != count) {
    vyre__stack_drop(m, mark);
    if (!f) return 0;
    if (f->result_count == 0) {
      return vyre__diagnose(m, "V099",
                            "declare the results: fn name(...) -> (f32, f32)",
                            "'%.60s' does not return several values", f->name);
    }
    return vyre__diagnose(m, "V099", "return one value for each result",
                          "fn '%.60s' returns %u values, not %u", f->name,
                          f->result_count, count);
  }
  bool good = !m->out_of_memory;
  for (uint32_t i = 0; good && i < count; i++) {
    const vyre__id id = m->stack[mark + i];
    if (!id || vyre__is_no_operand(m, id)) {
      good = false;
      break;
    }
    m->stack[mark + i] = vyre__expect(m, id, (vyre_type)f->results[i], "V076",
                                      "the returned value");
    good = m->stack[mark + i] != 0;
  }
  if (!good) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  if (!vyre__take_list(m, mark, &offset, &count, &height)) return 0;
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_RETURN_RESULTS, .a = offset, .b = count},
      height);
}
