/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining: print. Vectors and structs become texts around their scalars. */
#include <string.h>

#include "analyze/inline/inliner.h"
#include "analyze/walk.h"
#include "base/memory.h"

static void push_text(inliner *in, const char *text) {
  vyre__push(&in->builder,
             vyre__ir_build_text(&in->builder, text, strlen(text)));
}

/* Pushes the parts that print a value of a type; returns the scalars after it.
 */
static const vyre__id *print_parts(inliner *in, unsigned type,
                                   const vyre__id *ids) {
  const vyre__struct *s = vyre__program_struct(in->program, type);
  const uint32_t count =
      s ? (uint32_t)s->self.field_count : vyre__vector_length(type);
  const bool is_list = vyre__is_aggregate(type);
  if (is_list) push_text(in, s ? "{" : "(");
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) push_text(in, ", ");
    if (!s) {
      vyre__push(&in->builder, *ids++);
      continue;
    }
    push_text(in, s->self.fields[i].name);
    push_text(in, ": ");
    ids = print_parts(in, vyre__field_type(&s->self.fields[i]), ids);
  }
  if (is_list) push_text(in, s ? "}" : ")");
  return ids;
}

static void print_aggregate(inliner *in, frame *f, vyre__id value) {
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  const unsigned type = inline_node(in, value)->type;
  const uint32_t count = inline_scalars(in, type);
  vyre__id *ids = vyre__arena_filled(&in->scratch, count, sizeof *ids, 0);
  if (!ids) {
    in->no_memory = true;
    return;
  }
  inline_scalars_of(in, f, value, 0, count, ids);
  for (uint32_t i = 0; i < count; i++) ids[i] = inline_stable(in, ids[i]);
  inline_at(in, value);
  (void)print_parts(in, type, ids);
  vyre__arena_rewind(&in->scratch, mark);
}

void inline_print(inliner *in, frame *f, vyre__id id) {
  vyre__ir_builder *m = &in->builder;
  uint32_t count = vyre__child_count(in->program, id);
  vyre__arena_mark mark = vyre__arena_here(&in->scratch);
  vyre__id *values = vyre__arena_array(&in->scratch, count, sizeof *values);
  if (!values) {
    in->no_memory = true;
    return;
  }
  bool is_plain = true;
  for (uint32_t i = 0; i < count; i++) {
    is_plain =
        is_plain && !vyre__is_aggregate(
                        inline_node(in, vyre__child(in->program, id, i))->type);
  }
  for (uint32_t i = 0; i < count && is_plain; i++) {
    values[i] = inline_operand(in, f, id, i);
  }
  uint32_t stack = vyre__stack_mark(m);
  for (uint32_t i = 0; i < count; i++) {
    if (is_plain) {
      vyre__push(m, values[i]);
    } else {
      print_aggregate(in, f, vyre__child(in->program, id, i));
    }
  }
  inline_at(in, id);
  vyre__statement(m, vyre__ir_build_print(m, stack));
  vyre__arena_rewind(&in->scratch, mark);
}
