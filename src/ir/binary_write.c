/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "vyre/binary.h"

#include "base/hash.h"
#include "base/status.h"
#include "ir/binary.h"
#include "ir/ir.h"

vyre_hash128 vyre__binary_checksum(const uint8_t *bytes, size_t length) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre.binary");
  vyre__hash_bytes(&hasher, bytes, length);
  return vyre__hash_end(&hasher);
}

/* Output. The writer runs twice: with `bytes` NULL it only counts. */
typedef struct sink {
  uint8_t *to;
  size_t length;
} sink;

static void put_bytes(sink *s, const void *bytes, size_t count) {
  if (s->to && count > 0) memcpy(s->to + s->length, bytes, count);
  s->length += count;
}

static void put_u8(sink *s, unsigned value) {
  uint8_t byte = (uint8_t)value;
  put_bytes(s, &byte, 1);
}

static void put_u32(sink *s, uint32_t value) {
  uint8_t bytes[4];
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(value >> (8 * i));
  put_bytes(s, bytes, sizeof bytes);
}

static void put_u64(sink *s, uint64_t value) {
  put_u32(s, (uint32_t)value);
  put_u32(s, (uint32_t)(value >> 32));
}

static void put_text(sink *s, const char *text) {
  size_t length = strlen(text);
  put_u32(s, (uint32_t)length);
  put_bytes(s, text, length);
}

static void put_buffer(sink *s, const vyre_buffer_decl *buffer) {
  const vyre_memory_hints *hints = &buffer->hints;
  put_text(s, buffer->name);
  put_u32(s, buffer->binding);
  put_u8(s, buffer->kind);
  put_u8(s, buffer->access);
  put_u8(s, buffer->element);
  put_u32(s, buffer->count);
  put_u8(s, buffer->is_output);
  put_u8(s, buffer->pipeline_live_out);
  put_u32(s, hints->preferred_alignment);
  put_u8(s, hints->has_coalesce_axis);
  put_u8(s, hints->has_coalesce_axis ? hints->coalesce_axis : 0);
  put_u8(s, hints->cache_locality);
}

static void put_function(sink *s, const vyre__function *f, bool is_kernel) {
  /* A kernel has its name in the header, so it is not stored again. */
  put_text(s, is_kernel ? "" : f->name);
  put_u8(s, f->result);
  put_u32(s, f->parameter_count);
  put_u32(s, f->local_count);
  for (uint32_t i = 0; i < f->local_count; i++) {
    put_text(s, f->locals[i].name);
    put_u8(s, f->locals[i].type);
    put_u8(s, f->locals[i].is_mutable);
  }
  put_u32(s, f->body);
}

static void put_kernel(sink *s, const vyre_program *p) {
  put_text(s, p->name);
  put_text(s, p->file);
  for (int i = 0; i < 3; i++) put_u32(s, p->workgroup[i]);
  put_u32(s, p->over);
  put_u8(s, p->item_type);
}

static void put_buffers(sink *s, const vyre_program *p) {
  put_u32(s, (uint32_t)p->buffer_count);
  for (size_t i = 0; i < p->buffer_count; i++) put_buffer(s, &p->buffers[i]);
}

static void put_functions(sink *s, const vyre_program *p) {
  put_u32(s, p->function_count);
  for (uint32_t i = 0; i < p->function_count; i++) {
    put_function(s, &p->functions[i], i == 0);
  }
}

static void put_nodes(sink *s, const vyre_program *p) {
  put_u32(s, p->node_count);
  for (uint32_t i = 0; i < p->node_count; i++) {
    const vyre__node *node = &p->nodes[i];
    put_u8(s, node->op);
    put_u8(s, node->type);
    put_u8(s, node->aux);
    put_u8(s, 0);
    put_u32(s, node->a);
    put_u32(s, node->b);
    put_u32(s, node->c);
  }
}

static void put_places(sink *s, const vyre_program *p) {
  for (uint32_t i = 0; i < p->node_count; i++) {
    const vyre__source_loc place = vyre__source_loc_of(p, i);
    put_u32(s, place.line);
    put_u32(s, place.column);
  }
}

static void put_lists(sink *s, const vyre_program *p) {
  put_u32(s, p->list_count);
  for (uint32_t i = 0; i < p->list_count; i++) put_u32(s, p->lists[i]);
}

static void put_texts(sink *s, const vyre_program *p) {
  put_u32(s, p->text_count);
  put_bytes(s, p->texts, p->text_count);
}

static void put_queue(sink *s, const vyre_program *p) {
  const vyre__queue_clauses *queue = p->queue;
  put_u8(s, queue->kind);
  put_u8(s, queue->bound_kind);
  put_u32(s, queue->bound);
  put_u32(s, queue->pushes);
  put_u32(s, queue->by);
  put_u32(s, queue->pull);
  put_u32(s, queue->field_count);
  for (uint32_t i = 0; i < queue->field_count; i++) {
    put_text(s, queue->fields[i].name);
    put_u8(s, queue->fields[i].type);
  }
}

static bool needs_queue(const vyre_program *p) {
  return p->queue && !vyre__queue_is_plain(p->queue);
}

static bool has_types(const vyre_program *p) {
  for (size_t i = 0; i < p->buffer_count; i++) {
    if (p->buffers[i].type) return true;
  }
  return false;
}

static void put_types(sink *s, const vyre_program *p) {
  for (size_t i = 0; i < p->buffer_count; i++) put_u32(s, p->buffers[i].type);
}

static bool has_dimensions(const vyre_program *p) {
  for (size_t i = 0; i < p->buffer_count; i++) {
    if (p->buffers[i].dimension_count) return true;
  }
  return false;
}

static void put_dimensions(sink *s, const vyre_program *p) {
  for (size_t i = 0; i < p->buffer_count; i++) {
    const vyre_buffer_decl *b = &p->buffers[i];
    put_u8(s, b->dimension_count);
    put_u8(s, b->dimension_uniforms);
    for (unsigned k = 0; k < b->dimension_count; k++) {
      put_u32(s, b->dimensions[k]);
    }
  }
}

static void put_memory(sink *s, const vyre_program *p) {
  for (uint32_t i = 0; i < p->function_count; i++) {
    const vyre__function *f = &p->functions[i];
    put_u8(s, f->result_count);
    put_bytes(s, f->results, f->result_count);
    for (uint32_t j = 0; j < f->local_count; j++) {
      put_u8(s, f->locals[j].is_memory);
      put_u8(s, f->locals[j].access);
      put_u8(s, f->locals[j].element);
      put_u32(s, f->locals[j].length);
    }
  }
  put_u32(s, p->table_count);
  for (uint32_t i = 0; i < p->table_count; i++) {
    const vyre__table *table = &p->tables[i];
    put_text(s, table->name);
    put_u8(s, table->type);
    put_u32(s, table->length);
    for (uint32_t j = 0; j < table->length; j++) put_u64(s, table->values[j]);
  }
}

static bool has_structs(const vyre_program *p) {
  return p->struct_count > 0;
}

static void put_structs(sink *s, const vyre_program *p) {
  put_u32(s, p->struct_count);
  for (uint32_t i = 0; i < p->struct_count; i++) {
    const vyre_struct *own = &p->structs[i]->self;
    put_text(s, own->name);
    put_u32(s, (uint32_t)own->field_count);
    for (size_t k = 0; k < own->field_count; k++) {
      put_text(s, own->fields[k].name);
      put_u8(s, own->fields[k].element);
      put_u8(s, own->fields[k].type);
    }
  }
}

static void put_shapes(sink *s, const vyre_program *p) {
  for (uint32_t i = 0; i < p->function_count; i++) {
    const vyre__function *f = &p->functions[i];
    for (uint32_t j = 0; j < f->local_count; j++) {
      put_u64(s, f->locals[j].shape);
    }
  }
  for (uint32_t i = 0; i < p->table_count; i++) put_u64(s, p->tables[i].shape);
}

/* Sections in the order of their tags. */
static const struct {
  uint32_t tag;
  void (*put)(sink *, const vyre_program *);
  bool (*is_needed)(const vyre_program *); /* NULL: always */
} sections[] = {
    {VYRE__SECTION_KERNEL, put_kernel, NULL},
    {VYRE__SECTION_BUFFERS, put_buffers, NULL},
    {VYRE__SECTION_FUNCTIONS, put_functions, NULL},
    {VYRE__SECTION_NODES, put_nodes, NULL},
    {VYRE__SECTION_PLACES, put_places, NULL},
    {VYRE__SECTION_LISTS, put_lists, NULL},
    {VYRE__SECTION_TEXTS, put_texts, NULL},
    {VYRE__SECTION_QUEUE, put_queue, needs_queue},
    {VYRE__SECTION_TYPES, put_types, has_types},
    {VYRE__SECTION_DIMENSIONS, put_dimensions, has_dimensions},
    {VYRE__SECTION_MEMORY, put_memory, vyre__program_has_memory},
    {VYRE__SECTION_STRUCTS, put_structs, has_structs},
    {VYRE__SECTION_SHAPES, put_shapes, vyre__program_has_shapes},
};

static void put_program(sink *s, const vyre_program *p) {
  for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
    if (sections[i].is_needed && !sections[i].is_needed(p)) continue;
    sink count = {0};
    sections[i].put(&count, p);
    put_u32(s, sections[i].tag);
    put_u32(s, 0);
    put_u64(s, count.length);
    sections[i].put(s, p);
  }
}

static void put_source(sink *s, const char *source, size_t length) {
  if (!source) return;
  put_u32(s, VYRE__SECTION_SOURCE);
  put_u32(s, VYRE__SECTION_OPTIONAL);
  put_u64(s, length);
  put_bytes(s, source, length);
}

/* Writes @p program, and @p source if it is not NULL. */
static vyre_code write_bytes(const vyre_program *program, const char *source,
                             size_t source_length, vyre_arena *arena,
                             const uint8_t **bytes, size_t *length,
                             vyre_status *st) {
  sink count = {.length = VYRE__BINARY_HEAD};
  put_program(&count, program);
  put_source(&count, source, source_length);
  uint8_t *to = vyre_arena_alloc(arena, count.length, 0);
  if (!to)
    return vyre__no_memory(st, "vyre_program_write_binary", "bytes",
                           count.length);
  sink body = {.to = to, .length = VYRE__BINARY_HEAD};
  put_program(&body, program);
  put_source(&body, source, source_length);
  vyre_hash128 checksum = vyre__binary_checksum(
      to + VYRE__BINARY_HEAD, body.length - VYRE__BINARY_HEAD);
  sink head = {.to = to};
  put_bytes(&head, VYRE__BINARY_MAGIC_BYTES, VYRE__BINARY_MAGIC);
  put_u32(&head, VYRE__BINARY_VERSION);
  put_u32(&head, 0);
  put_u64(&head, body.length);
  put_u64(&head, checksum.low);
  put_u64(&head, checksum.high);
  *bytes = to;
  *length = body.length;
  return VYRE_OK;
}

vyre_code vyre_program_write_binary(const vyre_program *program,
                                    vyre_arena *arena, const uint8_t **bytes,
                                    size_t *length, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, bytes);
  *bytes = NULL;
  VYRE_REQUIRE(st, length);
  *length = 0;
  VYRE_REQUIRE_BOTH(st, program, arena);
  return write_bytes(program, NULL, 0, arena, bytes, length, st);
}

vyre_code vyre_program_write_binary_with_source(
    const vyre_program *program, const char *source, size_t source_length,
    vyre_arena *arena, const uint8_t **bytes, size_t *length, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, bytes);
  *bytes = NULL;
  VYRE_REQUIRE(st, length);
  *length = 0;
  VYRE_REQUIRE_BOTH(st, program, arena);
  VYRE_REQUIRE(st, source);
  if (source_length >= UINT32_MAX) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "write the program without its source",
                     "the source has %zu bytes, and the limit is %u",
                     source_length, UINT32_MAX - 1);
  }
  return write_bytes(program, source, source_length, arena, bytes, length, st);
}
