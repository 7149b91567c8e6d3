/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: structs, their layout and values. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"

/* --- types -----------------------------------------------------------------*/

const vyre__struct *vyre__struct_at(const vyre__ir_builder *m, unsigned type) {
  if (!vyre__is_struct(type)) return NULL;
  const size_t index = type - VYRE__FIRST_STRUCT;
  return index < m->struct_count ? m->structs[index] : NULL;
}

static unsigned components_of(const vyre_struct_field *field) {
  return field->type ? vyre__vector_length(field->type) : 1;
}

static uint32_t align_up(uint32_t value, uint32_t to) {
  return (value + to - 1) / to * to;
}

/* Returns the number of scalars of a field, and sets its size and alignment. */
static uint32_t measure(const vyre__ir_builder *m,
                        const vyre_struct_field *field, uint32_t *size,
                        uint32_t *alignment) {
  const vyre__struct *inner = vyre__struct_at(m, field->type);
  if (inner) {
    *size = inner->self.size;
    *alignment = inner->self.alignment;
    return inner->scalar_count;
  }
  *alignment = vyre_element_size(field->element);
  *size = *alignment * components_of(field);
  return components_of(field);
}

/* Returns true if a field has a type that structs may have. */
static bool is_field_type(const vyre__ir_builder *m,
                          const vyre_struct_field *field) {
  if (vyre__is_struct(field->type)) {
    return vyre__struct_at(m, field->type) != NULL;
  }
  if ((unsigned)field->element >= VYRE_ELEMENT_COUNT ||
      vyre_element_size(field->element) == 0 || vyre__is_sum(field->element)) {
    return false;
  }
  return field->type == 0 ||
         (vyre__is_vector(field->type) && field->element != VYRE_ELEMENT_BOOL &&
          vyre__component_type(field->type) ==
              (unsigned)vyre__element_type(field->element));
}

/* Checks names and types. Returns the number of scalars, or 0 after a report. */
static uint32_t check_fields(vyre__ir_builder *m, const char *name,
                             const vyre_struct_field *fields, size_t count) {
  uint32_t scalars = 0, size, alignment;
  if (count == 0) {
    return vyre__diagnose(m, "V116", "add a field: x : f32;",
                          "struct '%.100s' has no fields", name);
  }
  for (size_t i = 0; i < count; i++) {
    if (!is_field_type(m, &fields[i])) {
      return vyre__diagnose(m, "V116",
                            "use an element such as f32 or u8, a vector, or a "
                            "struct",
                            "field '%.100s' of '%.100s' has a wrong type",
                            fields[i].name, name);
    }
    for (size_t k = 0; k < i; k++) {
      if (strcmp(fields[i].name, fields[k].name) != 0) continue;
      return vyre__diagnose(m, "V116", "use another name",
                            "struct '%.100s' has two fields '%.100s'", name,
                            fields[i].name);
    }
    scalars += measure(m, &fields[i], &size, &alignment);
    if (scalars > VYRE__MAX_SCALARS) {
      return vyre__diagnose(m, "V116", "use several structs, or buffers",
                            "struct '%.100s' has more than %d scalars", name,
                            VYRE__MAX_SCALARS);
    }
  }
  return scalars;
}

/* Appends the scalars of a field at byte @p offset. */
static uint32_t put_scalars(const vyre__ir_builder *m,
                            const vyre_struct_field *field, uint32_t offset,
                            vyre__scalar *to) {
  const vyre__struct *inner = vyre__struct_at(m, field->type);
  if (!inner) {
    const uint32_t count = components_of(field);
    for (uint32_t i = 0; i < count; i++) {
      to[i] = (vyre__scalar){(uint8_t)field->element,
                             offset + i * vyre_element_size(field->element)};
    }
    return count;
  }
  for (uint32_t i = 0; i < inner->scalar_count; i++) {
    to[i] = inner->scalars[i];
    to[i].offset += offset;
  }
  return inner->scalar_count;
}

/* Returns the bytes of one access: the size of all scalars; if they differ, 4,
 * or 1 if the struct is not aligned to 4. */
static uint8_t access_width(const vyre__struct *s) {
  const uint32_t first = vyre_element_size((vyre_element)s->scalars[0].element);
  for (uint32_t i = 1; i < s->scalar_count; i++) {
    if (vyre_element_size((vyre_element)s->scalars[i].element) != first) {
      return s->self.alignment >= 4 ? 4 : 1;
    }
  }
  return (uint8_t)first;
}

/* Lays out the fields as C does. */
static void lay_out(const vyre__ir_builder *m, vyre__struct *s,
                    vyre_struct_field *fields, vyre__scalar *scalars,
                    uint32_t *firsts) {
  uint32_t at = 0, count = 0;
  s->self.alignment = 1;
  for (size_t i = 0; i < s->self.field_count; i++) {
    const vyre__struct *inner = vyre__struct_at(m, fields[i].type);
    uint32_t size, alignment;
    (void)measure(m, &fields[i], &size, &alignment);
    at = align_up(at, alignment);
    fields[i].offset = at;
    fields[i].structure = inner ? &inner->self : NULL;
    if (inner) fields[i].element = (vyre_element)inner->main_element;
    if (alignment > s->self.alignment || i == 0) {
      s->self.alignment = alignment;
      s->main_element = (uint8_t)fields[i].element;
    }
    firsts[i] = count;
    count += put_scalars(m, &fields[i], at, scalars + count);
    at += size;
  }
  s->self.size = align_up(at, s->self.alignment);
  s->scalars = scalars;
  s->scalar_count = count;
  s->firsts = firsts;
  s->width = access_width(s);
}

unsigned vyre__struct_add(vyre__ir_builder *m, const char *name,
                          const vyre_struct_field *fields, size_t count) {
  const uint32_t scalar_count = check_fields(m, name, fields, count);
  if (scalar_count == 0) return VYRE_TYPE_VOID;
  if (m->struct_count >= VYRE__MAX_STRUCTS) {
    vyre__diagnose(m, "V116", "use fewer structs in one file",
                   "a program has at most %d structs", VYRE__MAX_STRUCTS);
    return VYRE_TYPE_VOID;
  }
  void *all = m->structs;
  vyre__struct *s = vyre_arena_alloc(&m->names, sizeof *s, 0);
  vyre_struct_field *own = vyre__arena_array(&m->names, count, sizeof *own);
  vyre__scalar *scalars =
      vyre__arena_array(&m->names, scalar_count, sizeof *scalars);
  uint32_t *firsts = vyre__arena_array(&m->names, count, sizeof *firsts);
  const char *copy = vyre__arena_text(&m->names, name);
  if (!s || !own || !scalars || !firsts || !copy ||
      !vyre__reserve(m->allocator, &all, &m->struct_capacity,
                     m->struct_count + 1, sizeof *m->structs, false)) {
    m->out_of_memory = true;
    return VYRE_TYPE_VOID;
  }
  m->structs = all;
  for (size_t i = 0; i < count; i++) {
    own[i] =
        (vyre_struct_field){.name = vyre__arena_text(&m->names, fields[i].name),
                            .element = fields[i].element,
                            .type = fields[i].type};
    if (!own[i].name) m->out_of_memory = true;
  }
  *s = (vyre__struct){
      .self = {.name = copy, .fields = own, .field_count = count}};
  lay_out(m, s, own, scalars, firsts);
  m->structs[m->struct_count++] = s;
  return VYRE__FIRST_STRUCT + (unsigned)m->struct_count - 1;
}

bool vyre__structs_adopt(vyre__ir_builder *m,
                         const vyre__struct *const *structs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (vyre__struct_add(m, structs[i]->self.name, structs[i]->self.fields,
                         structs[i]->self.field_count) == VYRE_TYPE_VOID) {
      return false;
    }
  }
  return true;
}

const vyre__struct *const *vyre__structs_copy(const vyre__ir_builder *m,
                                              vyre_arena *arena) {
  const size_t count = m->struct_count;
  vyre__struct **all =
      (vyre__struct **)vyre__arena_array(arena, count, sizeof *all);
  for (size_t i = 0; all && i < count; i++) {
    const vyre__struct *from = m->structs[i];
    const size_t fields = from->self.field_count;
    vyre__struct *to = vyre_arena_alloc(arena, sizeof *to, 0);
    vyre_struct_field *own = vyre__arena_array(arena, fields, sizeof *own);
    vyre__scalar *scalars =
        vyre__arena_array(arena, from->scalar_count, sizeof *scalars);
    uint32_t *firsts = vyre__arena_array(arena, fields, sizeof *firsts);
    if (!to || !own || !scalars || !firsts) return NULL;
    *to = *from;
    memcpy(scalars, from->scalars, from->scalar_count * sizeof *scalars);
    memcpy(firsts, from->firsts, fields * sizeof *firsts);
    for (size_t k = 0; k < fields; k++) {
      own[k] = from->self.fields[k];
      own[k].name = vyre__arena_text(arena, own[k].name);
      if (!own[k].name) return NULL;
      if (own[k].structure) {
        own[k].structure = &all[own[k].type - VYRE__FIRST_STRUCT]->self;
      }
    }
    to->self.name = vyre__arena_text(arena, from->self.name);
    if (!to->self.name) return NULL;
    to->self.fields = own;
    to->scalars = scalars;
    to->firsts = firsts;
    all[i] = to;
  }
  return (const vyre__struct *const *)all;
}

/* --- values ----------------------------------------------------------------*/

vyre__id vyre__ir_build_field(vyre__ir_builder *m, vyre__id a, uint32_t field) {
  if (!a) return 0;
  const vyre__struct *s = vyre__struct_at(m, vyre__type_of(m, a));
  if (!s || field >= s->self.field_count) {
    return vyre__diagnose(m, "V036", "use a field of its struct",
                          "field %u of a value that does not have it", field);
  }
  return vyre__append(
      m,
      (vyre__node){.op = VYRE__OP_FIELD,
                   .type = (uint8_t)vyre__field_type(&s->self.fields[field]),
                   .aux = (uint8_t)field,
                   .a = a},
      vyre__height(m, a));
}

vyre__id vyre__ir_build_struct(vyre__ir_builder *m, unsigned type,
                               uint32_t mark) {
  const vyre__struct *s = vyre__struct_at(m, type);
  const size_t given = m->out_of_memory ? 0 : m->stack_count - mark;
  bool good = s != NULL && given == s->self.field_count;
  if (s && given != s->self.field_count && !m->out_of_memory) {
    vyre__diagnose(m, "V051", "give each field a value",
                   "struct '%.100s' has %zu fields, not %zu", s->self.name,
                   s->self.field_count, given);
  }
  for (size_t i = 0; good && i < given; i++) {
    const vyre_struct_field *field = &s->self.fields[i];
    vyre__id id = vyre__expect_named(m, m->stack[mark + i],
                                     (vyre_type)vyre__field_type(field), "V065",
                                     "field", field->name);
    m->stack[mark + i] = id;
    good = id != 0;
  }
  uint32_t list, count;
  unsigned height;
  if (!good) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  if (!vyre__take_list(m, mark, &list, &count, &height)) return 0;
  return vyre__append(
      m,
      (vyre__node){
          .op = VYRE__OP_MAKE, .type = (uint8_t)type, .a = list, .b = count},
      height);
}
