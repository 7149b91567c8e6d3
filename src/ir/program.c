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
#include "ir/queue.h"

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

static vyre_code wrong_dimension(const vyre_buffer_decl *buffer, unsigned index,
                                 vyre_status *st) {
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL(
      st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
      "use a constant of 1 or more, or the index of a uniform of type u32; "
      "only the first of several dimensions may be 0, and unused ones are 0",
      "dimension %u of buffer '%s' cannot be %u", index,
      vyre__name(buffer->name, shown), buffer->dimensions[index]);
}

/* Checks everything about dimensions that needs no other buffer. */
static vyre_code check_dimensions(const vyre_buffer_decl *buffer,
                                  vyre_status *st) {
  const unsigned count = buffer->dimension_count;
  uint64_t product = 1;
  bool is_fixed = count > 0;
  if (count > VYRE_MAX_DIMENSIONS || buffer->dimension_uniforms >> count) {
    return unknown_value(buffer->name, "number of dimensions", count, st);
  }
  for (unsigned i = 0; i < VYRE_MAX_DIMENSIONS; i++) {
    const uint32_t size = buffer->dimensions[i];
    const bool is_uniform = buffer->dimension_uniforms >> i & 1;
    if (i >= count) {
      if (size == 0) continue;
      return wrong_dimension(buffer, i, st);
    }
    if (is_uniform || size == 0) is_fixed = false;
    if (!is_uniform && size == 0 && (i > 0 || count == 1)) {
      return wrong_dimension(buffer, i, st);
    }
    if (is_fixed) product *= size;
    if (product > UINT32_MAX) {
      return wrong_dimension(buffer, i, st);
    }
  }
  if (count > 0 && (buffer->element == VYRE_ELEMENT_BYTES ||
                    vyre__is_sum(buffer->element))) {
    return unknown_value(buffer->name, "number of dimensions of such elements",
                         count, st);
  }
  if (count == 0 || buffer->count == (is_fixed ? product : 0)) return VYRE_OK;
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                   "set it to the product of constant dimensions, else to 0",
                   "buffer '%s' has count %u, but its dimensions have %llu",
                   vyre__name(buffer->name, shown), buffer->count,
                   is_fixed ? (unsigned long long)product : 0);
}

vyre_code vyre__dimension_uniforms_check(const vyre_buffer_decl *buffers,
                                         size_t count, vyre_status *st) {
  for (size_t i = 0; i < count; i++) {
    const vyre_buffer_decl *b = &buffers[i];
    for (unsigned k = 0; k < b->dimension_count; k++) {
      if (!(b->dimension_uniforms >> k & 1)) continue;
      const uint32_t at = b->dimensions[k];
      const vyre_buffer_decl *u = at < count ? &buffers[at] : NULL;
      if (u && u->kind == VYRE_MEMORY_UNIFORM && u->count == 1 && !u->type &&
          u->element == VYRE_ELEMENT_U32 && u->dimension_count == 0) {
        continue;
      }
      return wrong_dimension(b, k, st);
    }
  }
  return VYRE_OK;
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
  if (vyre__is_struct(buffer->type) != (buffer->structure != NULL)) {
    return unknown_value(buffer->name, "type", buffer->type, st);
  }
  if (buffer->type != 0 && !buffer->structure &&
      (!vyre__is_vector(buffer->type) ||
       vyre__component_type(buffer->type) !=
           (unsigned)vyre__element_type(buffer->element) ||
       vyre_element_size(buffer->element) == 0 ||
       buffer->element == VYRE_ELEMENT_BOOL)) {
    return unknown_value(buffer->name, "type", buffer->type, st);
  }
  VYRE_TRY(check_dimensions(buffer, st));
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
    if (desc->buffers[i].structure) {
      return unknown_value(desc->buffers[i].name, "type", desc->buffers[i].type,
                           st);
    }
  }
  VYRE_TRY(
      vyre__dimension_uniforms_check(desc->buffers, desc->buffer_count, st));
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
  vyre_program *origin = program->origin;
  vyre_arena arena = program->arena; /* the program lives in its arena */
  vyre_arena_deinit(&arena);
  vyre_program_release(origin);
}

const char *vyre_program_name(const vyre_program *program) {
  return program ? program->name : "";
}

const char *vyre_program_file(const vyre_program *program) {
  return program && program->file ? program->file : "";
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
  if (buffer->type) vyre__hash_u32(hasher, buffer->type);
  if (buffer->dimension_count) {
    vyre__hash_text(hasher, "dimensions");
    vyre__hash_u8(hasher, buffer->dimension_count);
    vyre__hash_u8(hasher, buffer->dimension_uniforms);
    for (unsigned i = 0; i < buffer->dimension_count; i++) {
      vyre__hash_u32(hasher, buffer->dimensions[i]);
    }
  }
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

/* Returns true for a function that version 1 of the binary form cannot express:
 * it has arrays, memory parameters, or not exactly one result. */
static bool has_memory(const vyre__function *function, bool is_body) {
  if (function->result_count > 0) return true;
  if (!is_body && function->result == VYRE_TYPE_VOID) return true;
  for (uint32_t i = 0; i < function->local_count; i++) {
    if (function->locals[i].is_memory) return true;
  }
  return false;
}

bool vyre__program_has_memory(const vyre_program *program) {
  if (program->table_count > 0) return true;
  for (uint32_t i = 0; i < program->function_count; i++) {
    const bool is_part = program->queue &&
                         (i == program->queue->by || i == program->queue->pull);
    if (has_memory(&program->functions[i], i == 0 || is_part)) return true;
  }
  return false;
}

bool vyre__program_has_shapes(const vyre_program *program) {
  for (uint32_t i = 0; i < program->table_count; i++) {
    if (program->tables[i].shape) return true;
  }
  for (uint32_t i = 0; i < program->function_count; i++) {
    const vyre__function *f = &program->functions[i];
    for (uint32_t j = 0; j < f->local_count; j++) {
      if (f->locals[j].shape) return true;
    }
  }
  return false;
}

static void hash_shapes(vyre__hasher *hasher, const vyre_program *program) {
  vyre__hash_text(hasher, "shapes");
  for (uint32_t i = 0; i < program->function_count; i++) {
    const vyre__function *f = &program->functions[i];
    for (uint32_t j = 0; j < f->local_count; j++) {
      vyre__hash_u64(hasher, f->locals[j].shape);
    }
  }
  for (uint32_t i = 0; i < program->table_count; i++) {
    vyre__hash_u64(hasher, program->tables[i].shape);
  }
}

static void hash_memory(vyre__hasher *hasher, const vyre_program *program) {
  vyre__hash_text(hasher, "memory");
  for (uint32_t i = 0; i < program->function_count; i++) {
    const vyre__function *f = &program->functions[i];
    vyre__hash_u8(hasher, f->result_count);
    vyre__hash_bytes(hasher, f->results, f->result_count);
    for (uint32_t j = 0; j < f->local_count; j++) {
      vyre__hash_u8(hasher, f->locals[j].is_memory);
      vyre__hash_u8(hasher, f->locals[j].access);
      vyre__hash_u8(hasher, f->locals[j].element);
      vyre__hash_u32(hasher, f->locals[j].length);
    }
  }
  vyre__hash_u32(hasher, program->table_count);
  for (uint32_t i = 0; i < program->table_count; i++) {
    const vyre__table *table = &program->tables[i];
    vyre__hash_u8(hasher, table->type);
    vyre__hash_u32(hasher, table->length);
    for (uint32_t j = 0; j < table->length; j++) {
      vyre__hash_u64(hasher, table->values[j]);
    }
  }
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

static void hash_structs(vyre__hasher *hasher, const vyre_program *program) {
  vyre__hash_u32(hasher, program->struct_count);
  for (uint32_t i = 0; i < program->struct_count; i++) {
    const vyre_struct *s = &program->structs[i]->self;
    vyre__hash_text(hasher, s->name);
    vyre__hash_u32(hasher, (uint32_t)s->field_count);
    for (size_t k = 0; k < s->field_count; k++) {
      vyre__hash_text(hasher, s->fields[k].name);
      vyre__hash_u8(hasher, (uint8_t)s->fields[k].element);
      vyre__hash_u8(hasher, (uint8_t)s->fields[k].type);
    }
  }
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
  /* programs that version 1 could express keep their fingerprints */
  if (program->queue && !vyre__queue_is_plain(program->queue)) {
    vyre__hash_text(&hasher, "queue");
    vyre__queue_hash(&hasher, program->queue);
  }
  if (vyre__program_has_memory(program)) hash_memory(&hasher, program);
  if (vyre__program_has_shapes(program)) hash_shapes(&hasher, program);
  if (program->struct_count) {
    vyre__hash_text(&hasher, "structs");
    hash_structs(&hasher, program);
  }
  *out = vyre__hash_end(&hasher);
}

static bool same_structs(const vyre_program *a, const vyre_program *b) {
  if (a->struct_count != b->struct_count) return false;
  for (uint32_t i = 0; i < a->struct_count; i++) {
    const vyre_struct *x = &a->structs[i]->self, *y = &b->structs[i]->self;
    if (strcmp(x->name, y->name) != 0 || x->field_count != y->field_count) {
      return false;
    }
    for (size_t k = 0; k < x->field_count; k++) {
      if (strcmp(x->fields[k].name, y->fields[k].name) != 0 ||
          x->fields[k].element != y->fields[k].element ||
          x->fields[k].type != y->fields[k].type) {
        return false;
      }
    }
  }
  return true;
}

static bool same_buffer(const vyre_buffer_decl *a, const vyre_buffer_decl *b) {
  const vyre_memory_hints *ha = &a->hints, *hb = &b->hints;
  return strcmp(a->name, b->name) == 0 && a->binding == b->binding &&
         a->kind == b->kind && a->access == b->access &&
         a->element == b->element && a->type == b->type &&
         a->count == b->count && a->dimension_count == b->dimension_count &&
         a->dimension_uniforms == b->dimension_uniforms &&
         memcmp(a->dimensions, b->dimensions, sizeof a->dimensions) == 0 &&
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
    const vyre__local *p = &a->locals[i], *q = &b->locals[i];
    if (p->type != q->type || p->is_mutable != q->is_mutable ||
        p->is_memory != q->is_memory || p->access != q->access ||
        p->element != q->element || p->length != q->length ||
        p->shape != q->shape) {
      return false;
    }
  }
  return a->result_count == b->result_count &&
         memcmp(a->results, b->results, a->result_count) == 0;
}

static bool same_tables(const vyre_program *a, const vyre_program *b) {
  if (a->table_count != b->table_count) return false;
  for (uint32_t i = 0; i < a->table_count; i++) {
    const vyre__table *p = &a->tables[i], *q = &b->tables[i];
    if (p->type != q->type || p->length != q->length || p->shape != q->shape ||
        memcmp(p->values, q->values, p->length * sizeof *p->values) != 0) {
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
      !vyre__queue_equal(a->queue, b->queue) ||
      memcmp(a->workgroup, b->workgroup, sizeof a->workgroup) != 0) {
    return false;
  }
  if (!same_structs(a, b)) return false;
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
      a->text_count != b->text_count || !same_tables(a, b)) {
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

static_assert((int)VYRE_QUEUE_KIND_ANY == (int)VYRE__QUEUE_ANY &&
                  (int)VYRE_KEY_BOUND_LEN == (int)VYRE__BOUND_LEN,
              "public and internal values are equal");

bool vyre_program_queue(const vyre_program *program, vyre_queue_clauses *out,
                        vyre_queue_field *storage) {
  if (out) *out = (vyre_queue_clauses){0};
  if (!program || !program->queue) return false;
  const vyre__queue_clauses *queue = program->queue;
  if (!out || !storage) return true;
  for (uint32_t i = 0; i < queue->field_count; i++) {
    storage[i] = (vyre_queue_field){.name = queue->fields[i].name,
                                    .type = (vyre_type)queue->fields[i].type};
  }
  *out = (vyre_queue_clauses){.kind = (vyre_queue_kind)queue->kind,
                              .fields = storage,
                              .field_count = queue->field_count,
                              .key_bound = (vyre_key_bound)queue->bound_kind,
                              .keys = queue->bound,
                              .pushes = queue->pushes,
                              .has_by = queue->by != 0,
                              .has_pull = queue->pull != 0,
                              .item_bytes = vyre__queue_item_words(queue) * 4};
  return true;
}

const uint32_t *vyre_program_workgroup(const vyre_program *program) {
  return program ? program->workgroup : NULL;
}

#define VYRE_X3(name, text, bytes) [name] = (bytes),
uint32_t vyre_buffer_stride(const vyre_buffer_decl *buffer) {
  const uint32_t size = vyre_element_size(buffer->element);
  if (buffer->structure) return buffer->structure->size;
  if (size == 0) return 1;
  return vyre__is_vector(buffer->type)
             ? size * vyre__vector_length(buffer->type)
             : size;
}

uint32_t vyre_element_size(vyre_element element) {
  static const uint16_t sizes[] = {VYRE_ELEMENT_MAP(VYRE_X3)};
  return (unsigned)element < VYRE_ELEMENT_COUNT ? sizes[element] : 0;
}
#undef VYRE_X3

VYRE__ENUM_NAME(vyre_element_name, vyre_element, VYRE_ELEMENT_MAP)
VYRE__ENUM_NAME(vyre_memory_name, vyre_memory, VYRE_MEMORY_MAP)
VYRE__ENUM_NAME(vyre_access_name, vyre_access, VYRE_ACCESS_MAP)
VYRE__ENUM_NAME(vyre_queue_kind_name, vyre_queue_kind, VYRE_QUEUE_KIND_MAP)
VYRE__ENUM_NAME(vyre_locality_name, vyre_locality, VYRE_LOCALITY_MAP)
