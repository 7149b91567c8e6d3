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
  for (uint32_t i = 0; i < p->node_count; i++) {
    const vyre__source_loc place = vyre__source_loc_of(p, i);
    put_u32(s, place.line);
    put_u32(s, place.column);
  }
  put_u32(s, p->list_count);
  for (uint32_t i = 0; i < p->list_count; i++) put_u32(s, p->lists[i]);
  put_u32(s, p->text_count);
  put_bytes(s, p->texts, p->text_count);
}

static void put_program(sink *s, const vyre_program *p) {
  put_text(s, p->name);
  put_text(s, p->file);
  for (int i = 0; i < 3; i++) put_u32(s, p->workgroup[i]);
  put_u32(s, p->over);
  put_u8(s, p->item_type);
  put_u32(s, (uint32_t)p->buffer_count);
  for (size_t i = 0; i < p->buffer_count; i++) put_buffer(s, &p->buffers[i]);
  put_u32(s, p->function_count);
  for (uint32_t i = 0; i < p->function_count; i++) {
    put_function(s, &p->functions[i], i == 0);
  }
  put_nodes(s, p);
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
  sink count = {.length = VYRE__BINARY_HEAD};
  put_program(&count, program);
  uint8_t *to = vyre_arena_alloc(arena, count.length, 0);
  if (!to) return vyre__no_memory(st, __func__, "bytes", count.length);
  sink body = {.to = to, .length = VYRE__BINARY_HEAD};
  put_program(&body, program);
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
