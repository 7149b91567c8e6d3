/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: dimensions of buffers, and accesses with several indices. */
#include <stdio.h>

#include "base/memory.h"
#include "lang/parse/parse.h"

/* Returns true if a dimension is a name that is not a const: a uniform. */
static bool is_uniform_name(vyre__parser *p) {
  if (!vyre__p_is(p, VYRE__T_NAME)) return false;
  const unsigned next = vyre__p_peek(p).kind;
  const vyre__symbol *symbol = vyre__p_symbol(p, &p->now.token);
  if (next != VYRE__T_COMMA && next != VYRE__T_RBRACKET) return false;
  return symbol->word == VYRE__WORD_PLAIN && (symbol->local || !symbol->item);
}

static bool add_name(vyre__parser *p, uint32_t dimension) {
  void *names = p->dimensions;
  if (!vyre__reserve(p->allocator, &names, &p->dimension_capacity,
                     p->dimension_count + 1, sizeof *p->dimensions, false)) {
    p->out_of_memory = true;
    return false;
  }
  p->dimensions = names;
  p->dimensions[p->dimension_count++] =
      (vyre__dimension_name){.buffer = (uint32_t)p->buffer_count,
                             .dimension = dimension,
                             .name = p->now.token};
  return true;
}

/* Reads one dimension; with an error it becomes 1. */
static void read_dimension(vyre__parser *p, vyre_buffer_decl *buffer) {
  const unsigned at = buffer->dimension_count;
  uint32_t size = 1;
  if (is_uniform_name(p)) {
    if (buffer->kind == VYRE_MEMORY_SHARED ||
        buffer->kind == VYRE_MEMORY_UNIFORM) {
      vyre__p_error(p, vyre__p_span(&p->now.token), "V041",
                    "use a number or a const: [64]",
                    "the number of elements must be a compile-time constant");
    } else if (add_name(p, at)) {
      buffer->dimension_uniforms |= (uint8_t)(1u << at);
      size = 0;
    }
    vyre__p_advance(p);
  } else if (!vyre__p_constant(p, "V041", "the number of elements", 1,
                               UINT32_MAX, &size)) {
    size = 1;
  }
  buffer->dimensions[at] = size;
  buffer->dimension_count++;
}

/* Sets the count of a buffer from its dimensions. A single constant is a count
 * without dimensions. */
static void finish_count(vyre__parser *p, vyre_buffer_decl *buffer,
                         const vyre__token *open) {
  uint64_t product = 1;
  for (unsigned i = 0; i < buffer->dimension_count; i++) {
    product *= buffer->dimensions[i];
    if (product <= UINT32_MAX) continue;
    vyre__p_error(p, vyre__p_since(p, open), "V041",
                  "use smaller dimensions, or several buffers",
                  "a buffer has at most 4294967295 elements");
    buffer->dimension_count = 0;
    buffer->dimension_uniforms = 0;
    product = 1;
  }
  buffer->count = (uint32_t)product;
  if (buffer->dimension_count > 1 || buffer->dimension_uniforms) return;
  buffer->dimension_count = 0;
  buffer->dimensions[0] = 0;
}

bool vyre__p_dimensions(vyre__parser *p, vyre_buffer_decl *buffer) {
  const bool may_be_open =
      buffer->kind != VYRE_MEMORY_SHARED && buffer->kind != VYRE_MEMORY_UNIFORM;
  vyre__token open = p->now.token;
  if (!vyre__p_accept(p, VYRE__T_LBRACKET)) return false;
  buffer->count = 0;
  const bool is_empty =
      vyre__p_is(p, VYRE__T_RBRACKET) || vyre__p_is(p, VYRE__T_COMMA);
  if (is_empty && !may_be_open) {
    vyre__p_error(p, vyre__p_span(&open), "V041",
                  "write the number of elements: [64]",
                  "the number of elements must be a compile-time constant");
  }
  if (vyre__p_accept(p, VYRE__T_RBRACKET)) {
    if (!may_be_open) buffer->count = 1;
    return true;
  }
  if (is_empty) {
    buffer->dimensions[buffer->dimension_count++] = may_be_open ? 0 : 1;
  } else {
    read_dimension(p, buffer);
  }
  while (!p->now.panic && vyre__p_accept(p, VYRE__T_COMMA)) {
    if (buffer->dimension_count == VYRE_MAX_DIMENSIONS) {
      vyre__p_syntax(p, vyre__p_span(&p->now.token), "V041",
                     "combine two of them into one",
                     "a buffer has at most 4 dimensions");
      return false;
    }
    read_dimension(p, buffer);
  }
  if (p->now.panic || !vyre__p_close(p, VYRE__T_RBRACKET, &open)) return false;
  finish_count(p, buffer, &open);
  if (buffer->dimension_count > 0 && vyre__is_sum(buffer->element)) {
    vyre__p_error(p, vyre__p_since(p, &open), "V041",
                  "compute the index, and declare sum_f32[]",
                  "a buffer of exact sums has no dimensions");
    buffer->dimension_count = buffer->dimension_uniforms = 0;
    memset(buffer->dimensions, 0, sizeof buffer->dimensions);
  }
  return true;
}

static void finish_name(vyre__parser *p, const vyre__dimension_name *it) {
  const vyre__symbol *symbol = vyre__p_symbol(p, &it->name);
  const vyre__binding *binding =
      symbol->local ? &p->bindings[symbol->local - 1] : NULL;
  vyre_buffer_decl *buffer = &p->buffers[it->buffer];
  const vyre_buffer_decl *uniform = NULL;
  if (binding && binding->kind == VYRE__BIND_BUFFER) {
    uniform = &p->buffers[binding->index];
  }
  if (uniform && uniform->kind == VYRE_MEMORY_UNIFORM && uniform->count == 1 &&
      uniform->element == VYRE_ELEMENT_U32 && !uniform->type) {
    buffer->dimensions[it->dimension] = binding->index;
    return;
  }
  if (!binding || binding->kind != VYRE__BIND_WRONG) {
    char fix[VYRE__FIX_TEXT];
    const bool is_uniform = uniform && uniform->kind == VYRE_MEMORY_UNIFORM;
    snprintf(fix, sizeof fix,
             is_uniform ? "declare it as u32: uniform %.*s : u32 @%u;"
                        : "declare it: uniform %.*s : u32 @%u;",
             (int)(symbol->length < 60 ? symbol->length : 60), symbol->text,
             is_uniform ? uniform->binding : (unsigned)p->buffer_count);
    vyre__p_error(p, vyre__p_span(&it->name), "V041", fix,
                  "a dimension is a constant or a uniform of type u32, and "
                  "'%.*s' is neither",
                  (int)symbol->length, symbol->text);
  }
  buffer->dimension_uniforms &= (uint8_t)~(1u << it->dimension);
  buffer->dimensions[it->dimension] = 1;
}

void vyre__p_dimensions_finish(vyre__parser *p) {
  for (size_t i = 0; i < p->dimension_count; i++) {
    /* A declaration with an error has no buffer. */
    if (p->dimensions[i].buffer < p->buffer_count &&
        p->buffers[p->dimensions[i].buffer].dimension_uniforms >>
                p->dimensions[i].dimension &
            1) {
      finish_name(p, &p->dimensions[i]);
    }
  }
}

vyre__id vyre__p_indices(vyre__parser *p, const vyre__token *open,
                         vyre__id first) {
  vyre__ir_builder *m = &p->ir;
  if (!vyre__p_is(p, VYRE__T_COMMA)) {
    return vyre__p_close(p, VYRE__T_RBRACKET, open) ? first : 0;
  }
  const uint32_t mark = vyre__stack_mark(m);
  vyre__push(m, first);
  while (!p->now.panic && vyre__p_accept(p, VYRE__T_COMMA)) {
    vyre__push(m, vyre__p_value(p));
  }
  if (p->now.panic || !vyre__p_close(p, VYRE__T_RBRACKET, open)) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  vyre__p_mark(p, open);
  return vyre__ir_build_indices(m, mark);
}
