/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/program.h"

#include <assert.h>
#include <string.h>

#include "vyre/binding.h" /* VYRE_NO_INDEX */

#include "base/checked_math.h"
#include "base/enum_name.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/utf8.h"
#include "ir/program.h"

enum { MAX_NAME = 255 };

static vyre_code check_name(const char *name, size_t index, vyre_status *st) {
  size_t length = name ? strnlen(name, MAX_NAME + 1) : 0;
  char shown[VYRE__NAME_TEXT];
  if (length == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "set the name of every buffer", "buffer %zu has no name",
                     index);
  }
  if (length > MAX_NAME) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "use a name of at most 255 bytes",
                     "the name of buffer %zu (%s) is longer than %d bytes",
                     index, vyre__name(name, shown), MAX_NAME);
  }
  if (!vyre__utf8_printable(name, length)) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "use UTF-8 text without control characters",
                     "the name of buffer %zu is not printable UTF-8", index);
  }
  return VYRE_OK;
}

static vyre_code unknown_value(const char *name, const char *subject,
                               unsigned value, vyre_status *st) {
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                   "use a value of vyre/program.h",
                   "buffer '%s' has an unknown %s: %u", vyre__name(name, shown),
                   subject, value);
}

static vyre_code check_buffer(const vyre_buffer_decl *buffer, size_t index,
                              vyre_status *st) {
  VYRE_TRY(check_name(buffer->name, index, st));
  /* Compared as unsigned, so that negative values are out of range too. */
  if ((unsigned)buffer->kind >= VYRE_MEMORY_COUNT) {
    return unknown_value(buffer->name, "memory kind", buffer->kind, st);
  }
  if ((unsigned)buffer->access >= VYRE_ACCESS_COUNT) {
    return unknown_value(buffer->name, "access", buffer->access, st);
  }
  if ((unsigned)buffer->element >= VYRE_ELEMENT_COUNT) {
    return unknown_value(buffer->name, "element type", buffer->element, st);
  }
  if ((unsigned)buffer->hints.cache_locality >= VYRE_LOCALITY_COUNT) {
    return unknown_value(buffer->name, "cache locality",
                         buffer->hints.cache_locality, st);
  }
  if (buffer->hints.has_coalesce_axis && buffer->hints.coalesce_axis > 2) {
    char shown[VYRE__NAME_TEXT];
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "use 0 for x, 1 for y, 2 for z, or omit the hint",
                     "buffer '%s' has coalesce_axis %u; the maximum is 2",
                     vyre__name(buffer->name, shown),
                     (unsigned)buffer->hints.coalesce_axis);
  }
  return VYRE_OK;
}

vyre_code vyre__program_check(const vyre_program_desc *desc, vyre_status *st) {
  static const char axes[] = "xyz";
  for (int axis = 0; axis < 3; axis++) {
    if (desc->workgroup[axis] > 0) continue;
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "set every axis of the workgroup to 1 or more",
                     "the workgroup is %u x %u x %u: axis %c is 0",
                     desc->workgroup[0], desc->workgroup[1], desc->workgroup[2],
                     axes[axis]);
  }
  if (desc->buffer_count >= UINT32_MAX) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "split the program",
                     "a program with %zu buffers is too large",
                     desc->buffer_count);
  }
  for (size_t i = 0; i < desc->buffer_count; i++) {
    VYRE_TRY(check_buffer(&desc->buffers[i], i, st));
  }
  return VYRE_OK;
}

vyre_program *vyre__program_new(vyre_arena *arena,
                                const vyre_program_desc *desc,
                                vyre_buffer_decl **buffers) {
  size_t count = desc->buffer_count, bytes;
  vyre_program *program = vyre_arena_alloc(arena, sizeof *program, 0);
  if (!program || !vyre__mul(count, sizeof **buffers, &bytes)) return NULL;
  *buffers = vyre_arena_alloc(arena, bytes, _Alignof(vyre_buffer_decl));
  if (!*buffers) return NULL;
  if (count > 0) memcpy(*buffers, desc->buffers, bytes);
  *program = (vyre_program){.name = "",
                            .file = "",
                            .buffers = *buffers,
                            .buffer_count = count,
                            .over = VYRE_NO_INDEX,
                            .item_type = VYRE_TYPE_VOID};
  atomic_init(&program->references, 1);
  memcpy(program->workgroup, desc->workgroup, sizeof program->workgroup);
  return program;
}

static vyre_program *new_with_names(vyre_arena *arena,
                                    const vyre_program_desc *desc) {
  vyre_buffer_decl *buffers;
  vyre_program *program = vyre__program_new(arena, desc, &buffers);
  for (size_t i = 0; program && i < desc->buffer_count; i++) {
    buffers[i].name = vyre__arena_text(arena, desc->buffers[i].name);
    if (!buffers[i].name) return NULL;
  }
  return program;
}

vyre_code vyre_program_create(const vyre_program_desc *desc,
                              vyre_allocator allocator, vyre_program **out,
                              vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, desc);
  VYRE_REQUIRE_ARRAY(st, desc->buffers, desc->buffer_count);
  VYRE_CHECK_RESERVED(st, __func__, desc);
  VYRE_TRY(vyre__program_check(desc, st));
  for (size_t i = 0; i < desc->buffer_count; i++) {
    VYRE_CHECK_RESERVED(st, __func__, &desc->buffers[i]);
  }
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_program *program = new_with_names(&arena, desc);
  if (!program) {
    vyre_arena_deinit(&arena);
    return vyre__no_memory(st, __func__, "program buffers", desc->buffer_count);
  }
  program->arena = arena;
  vyre__program_hash(program, &program->fingerprint);
  *out = program;
  return VYRE_OK;
}

vyre_program *vyre_program_retain(vyre_program *program) {
  if (program) {
    atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
  }
  return program;
}

void vyre_program_release(vyre_program *program) {
  if (!program) return;
  /* Acquire-release: the thread that frees must see all earlier accesses of
   * the other threads. */
  if (atomic_fetch_sub_explicit(&program->references, 1,
                                memory_order_acq_rel) != 1) {
    return;
  }
  vyre_arena arena = program->arena; /* the program lives in its arena */
  vyre_arena_deinit(&arena);
}

const char *vyre_program_name(const vyre_program *program) {
  return program ? program->name : "";
}

bool vyre_program_has_body(const vyre_program *program) {
  return program && program->function_count > 0;
}

vyre_hash128 vyre_program_fingerprint(const vyre_program *program) {
  return program ? program->fingerprint : (vyre_hash128){0};
}

/* --- content ---------------------------------------------------------------*/

static void hash_buffer(vyre__hasher *hasher, const vyre_buffer_decl *buffer) {
  vyre__hash_text(hasher, buffer->name);
  vyre__hash_u32(hasher, buffer->binding);
  vyre__hash_u8(hasher, (uint8_t)buffer->kind);
  vyre__hash_u8(hasher, (uint8_t)buffer->access);
  vyre__hash_u8(hasher, (uint8_t)buffer->element);
  vyre__hash_u32(hasher, buffer->count);
  vyre__hash_u8(hasher, buffer->is_output);
  vyre__hash_u8(hasher, buffer->pipeline_live_out);
  vyre__hash_u32(hasher, buffer->hints.preferred_alignment);
  vyre__hash_u8(hasher, buffer->hints.has_coalesce_axis);
  vyre__hash_u8(hasher, buffer->hints.has_coalesce_axis
                            ? buffer->hints.coalesce_axis
                            : 0);
  vyre__hash_u8(hasher, (uint8_t)buffer->hints.cache_locality);
}

static void hash_function(vyre__hasher *hasher,
                          const vyre__function *function) {
  vyre__hash_u8(hasher, function->result);
  vyre__hash_u32(hasher, function->parameter_count);
  vyre__hash_u32(hasher, function->local_count);
  for (uint32_t i = 0; i < function->local_count; i++) {
    vyre__hash_u8(hasher, function->locals[i].type);
    vyre__hash_u8(hasher, function->locals[i].is_mutable);
  }
  vyre__hash_u32(hasher, function->body);
}

static_assert(sizeof(vyre__node) == 16, "a node has no padding");

static void hash_nodes(vyre__hasher *hasher, const vyre__node *nodes,
                       uint32_t count) {
  vyre__hash_u32(hasher, count);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  vyre__hash_bytes(hasher, nodes,
                   count * sizeof *nodes); /* same bytes as the loop below */
#else
  for (uint32_t i = 0; i < count; i++) {
    const vyre__node *node = &nodes[i];
    vyre__hash_u8(hasher, node->op);
    vyre__hash_u8(hasher, node->type);
    vyre__hash_u8(hasher, node->aux);
    vyre__hash_u8(hasher, node->reserved);
    for (int j = 0; j < 3; j++) vyre__hash_u32(hasher, node->abc[j]);
  }
#endif
}

static void hash_lists(vyre__hasher *hasher, const uint32_t *lists,
                       uint32_t count) {
  vyre__hash_u32(hasher, count);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  vyre__hash_bytes(hasher, lists, count * sizeof *lists);
#else
  for (uint32_t i = 0; i < count; i++) vyre__hash_u32(hasher, lists[i]);
#endif
}

void vyre__program_hash(const vyre_program *program, vyre_hash128 *out) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre.program.1");
  vyre__hash_u64(&hasher, program->buffer_count);
  for (size_t i = 0; i < program->buffer_count; i++) {
    hash_buffer(&hasher, &program->buffers[i]);
  }
  for (int i = 0; i < 3; i++) vyre__hash_u32(&hasher, program->workgroup[i]);
  vyre__hash_u32(&hasher, program->over);
  vyre__hash_u8(&hasher, program->item_type);
  vyre__hash_u32(&hasher, program->function_count);
  for (uint32_t i = 0; i < program->function_count; i++) {
    hash_function(&hasher, &program->functions[i]);
  }
  hash_nodes(&hasher, program->nodes, program->node_count);
  hash_lists(&hasher, program->lists, program->list_count);
  vyre__hash_u32(&hasher, program->text_count);
  vyre__hash_bytes(&hasher, program->texts, program->text_count);
  *out = vyre__hash_end(&hasher);
}

static bool same_buffer(const vyre_buffer_decl *a, const vyre_buffer_decl *b) {
  const vyre_memory_hints *ha = &a->hints, *hb = &b->hints;
  return strcmp(a->name, b->name) == 0 && a->binding == b->binding &&
         a->kind == b->kind && a->access == b->access &&
         a->element == b->element && a->count == b->count &&
         a->is_output == b->is_output &&
         a->pipeline_live_out == b->pipeline_live_out &&
         ha->preferred_alignment == hb->preferred_alignment &&
         ha->has_coalesce_axis == hb->has_coalesce_axis &&
         (!ha->has_coalesce_axis || ha->coalesce_axis == hb->coalesce_axis) &&
         ha->cache_locality == hb->cache_locality;
}

static bool same_function(const vyre__function *a, const vyre__function *b) {
  if (a->result != b->result || a->parameter_count != b->parameter_count ||
      a->local_count != b->local_count || a->body != b->body) {
    return false;
  }
  for (uint32_t i = 0; i < a->local_count; i++) {
    if (a->locals[i].type != b->locals[i].type ||
        a->locals[i].is_mutable != b->locals[i].is_mutable) {
      return false;
    }
  }
  return true;
}

static bool same_bytes(const void *a, const void *b, size_t size) {
  return size == 0 || memcmp(a, b, size) == 0;
}

static bool same_head(const vyre_program *a, const vyre_program *b) {
  if (a->buffer_count != b->buffer_count || a->over != b->over ||
      a->item_type != b->item_type ||
      memcmp(a->workgroup, b->workgroup, sizeof a->workgroup) != 0) {
    return false;
  }
  for (size_t i = 0; i < a->buffer_count; i++) {
    if (!same_buffer(&a->buffers[i], &b->buffers[i])) return false;
  }
  return true;
}

bool vyre_program_equal(const vyre_program *a, const vyre_program *b) {
  if (a == b) return true;
  if (!a || !b || !same_head(a, b)) return false;
  if (a->function_count != b->function_count ||
      a->node_count != b->node_count || a->list_count != b->list_count ||
      a->text_count != b->text_count) {
    return false;
  }
  for (uint32_t i = 0; i < a->function_count; i++) {
    if (!same_function(&a->functions[i], &b->functions[i])) return false;
  }
  return same_bytes(a->nodes, b->nodes, a->node_count * sizeof *a->nodes) &&
         same_bytes(a->lists, b->lists, a->list_count * sizeof *a->lists) &&
         same_bytes(a->texts, b->texts, a->text_count);
}

const vyre_buffer_decl *vyre_program_buffers(const vyre_program *program,
                                             size_t *count) {
  if (count) *count = program ? program->buffer_count : 0;
  return program ? program->buffers : NULL;
}

uint32_t vyre_program_grid_buffer(const vyre_program *program) {
  return program ? program->over : VYRE_NO_INDEX;
}

const uint32_t *vyre_program_workgroup(const vyre_program *program) {
  return program ? program->workgroup : NULL;
}

#define VYRE_X3(name, text, bytes) [name] = (bytes),
uint32_t vyre_element_size(vyre_element element) {
  static const uint8_t sizes[] = {VYRE_ELEMENT_MAP(VYRE_X3)};
  return (unsigned)element < VYRE_ELEMENT_COUNT ? sizes[element] : 0;
}
#undef VYRE_X3

VYRE__ENUM_NAME(vyre_element_name, vyre_element, VYRE_ELEMENT_MAP)
VYRE__ENUM_NAME(vyre_memory_name, vyre_memory, VYRE_MEMORY_MAP)
VYRE__ENUM_NAME(vyre_access_name, vyre_access, VYRE_ACCESS_MAP)
VYRE__ENUM_NAME(vyre_locality_name, vyre_locality, VYRE_LOCALITY_MAP)
