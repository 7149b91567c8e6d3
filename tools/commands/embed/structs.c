/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the structs of kernels as C structs, whose layout is asserted. */
#include <string.h>

#include "commands/embed/internal.h"

const char *c_element_type(vyre_element element) {
  switch (element) {
    case VYRE_ELEMENT_BOOL:
      return "bool";
    case VYRE_ELEMENT_I8:
      return "int8_t";
    case VYRE_ELEMENT_U16:
    case VYRE_ELEMENT_F16: /* C has no such type; the bits are passed */
    case VYRE_ELEMENT_BF16:
      return "uint16_t";
    case VYRE_ELEMENT_I16:
      return "int16_t";
    case VYRE_ELEMENT_U32:
      return "uint32_t";
    case VYRE_ELEMENT_I32:
      return "int32_t";
    case VYRE_ELEMENT_U64:
      return "uint64_t";
    case VYRE_ELEMENT_I64:
      return "int64_t";
    case VYRE_ELEMENT_F32:
      return "float";
    case VYRE_ELEMENT_F64:
      return "double";
    case VYRE_ELEMENT_SUM_F32: /* exact sums: several words each */
    case VYRE_ELEMENT_SUM_F64:
      return "uint64_t";
    default:
      return "uint8_t";
  }
}

unsigned vector_length(vyre_element element, uint16_t type) {
  const vyre_buffer_decl one = {.element = element, .type = type};
  return vyre_buffer_stride(&one) / vyre_element_size(element);
}

const char *struct_name(const struct_list *list, const vyre_struct *of) {
  const named_struct *items = list->list.items;
  for (size_t i = 0; i < list->list.count; i++) {
    if (strcmp(items[i].name, of->name) == 0) return items[i].c_name;
  }
  return NULL;
}

/* Writes the declaration, and an assertion for its size and each offset. */
static bool put_struct(const struct_list *list, const vyre_struct *of,
                       const char *c_name, vyre_arena *arena, sink *out) {
  static const char *const none[] = {NULL};
  name_set own = {.arena = arena};
  const char **fields = (const char **)vyre_arena_alloc(
      arena, of->field_count * sizeof *fields, 0);
  if (!fields) return false;
  sink_format(out, "\ntypedef struct %s {\n", c_name);
  for (size_t i = 0; i < of->field_count; i++) {
    const vyre_struct_field *field = &of->fields[i];
    fields[i] = unique_name(&own, NULL, "", field->name, true, none);
    if (!fields[i]) return false;
    sink_format(out, "  %s %s",
                field->structure ? struct_name(list, field->structure)
                                 : c_element_type(field->element),
                fields[i]);
    if (field->type && !field->structure) {
      sink_format(out, "[%u]", vector_length(field->element, field->type));
    }
    sink_text(out, ";\n");
  }
  sink_format(out,
              "} %s;\n"
              "static_assert(sizeof(%s) == %u, \"layout of %s\");\n",
              c_name, c_name, of->size, c_name);
  for (size_t i = 0; i < of->field_count; i++) {
    sink_format(out,
                "static_assert(offsetof(%s, %s) == %u, \"layout of %s\");\n",
                c_name, fields[i], of->fields[i].offset, c_name);
  }
  return true;
}

/* Adds a struct after those that its fields have. */
static bool add_struct(struct_list *list, name_set *taken, const char *prefix,
                       const vyre_struct *of, vyre_arena *arena, sink *out) {
  static const char *const none[] = {NULL};
  if (!of || struct_name(list, of)) return true;
  for (size_t i = 0; i < of->field_count; i++) {
    if (!add_struct(list, taken, prefix, of->fields[i].structure, arena, out)) {
      return false;
    }
  }
  const char *c_name = unique_name(taken, NULL, prefix, of->name, true, none);
  named_struct *item = list_add(&list->list, sizeof *item, arena);
  if (!c_name || !item) return false;
  *item = (named_struct){.name = of->name, .c_name = c_name};
  return put_struct(list, of, c_name, arena, out);
}

bool embed_structs(struct_list *list, name_set *taken, const char *prefix,
                   const vyre_program *program, vyre_arena *arena, sink *out) {
  size_t count;
  const vyre_buffer_decl *buffers = vyre_program_buffers(program, &count);
  for (size_t i = 0; i < count; i++) {
    if (!add_struct(list, taken, prefix, buffers[i].structure, arena, out)) {
      return false;
    }
  }
  return true;
}
