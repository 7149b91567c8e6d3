/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ir/queue.h"

#include <string.h>

#include "base/status.h"
#include "ir/keywords.h"

enum { MAX_PUSHES = 1 << 24 };

#define REFUSE(st, fix, ...)                                          \
  VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM, fix, \
            __VA_ARGS__)

const char *vyre__queue_kind_name(unsigned kind) {
  static const char *const names[VYRE__QUEUE_KIND_COUNT] = {"ordered", "set",
                                                            "once", "any"};
  return kind < VYRE__QUEUE_KIND_COUNT ? names[kind] : "?";
}

/* Returns true if a name is used by a buffer or by an earlier field. */
static bool is_taken(const vyre__kernel *kernel, uint32_t field) {
  const char *name = kernel->queue->fields[field].name;
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    if (strcmp(kernel->buffers[i].name, name) == 0) return true;
  }
  for (uint32_t i = 0; i < field; i++) {
    if (strcmp(kernel->queue->fields[i].name, name) == 0) return true;
  }
  return false;
}

static vyre_code check_fields(const vyre__kernel *kernel, vyre_status *st) {
  const vyre__queue_clauses *queue = kernel->queue;
  if (queue->field_count < 1 || queue->field_count > VYRE__MAX_QUEUE_FIELDS) {
    return REFUSE(st, "use 1 to 32 fields", "an item with %u fields",
                  queue->field_count);
  }
  for (uint32_t i = 0; i < queue->field_count; i++) {
    const vyre__queue_field *field = &queue->fields[i];
    if (field->type <= VYRE_TYPE_BOOL || field->type >= VYRE_TYPE_COUNT) {
      return REFUSE(st, "use u32, i32, u64, i64, f32 or f64",
                    "field %u of the item has type %s, which has no 32 or 64 "
                    "bits",
                    i, vyre__type_name(field->type));
    }
    const bool is_unnamed = queue->field_count == 1 && !field->name[0];
    if (is_unnamed) continue;
    if (!vyre__name_is_identifier(field->name, strlen(field->name)) ||
        vyre__is_queue_word(field->name) || is_taken(kernel, i)) {
      return REFUSE(st,
                    "use an identifier that is neither a word of the language "
                    "nor the name of a buffer or of another field",
                    "'%.100s' cannot be the name of field %u of the item",
                    field->name, i);
    }
  }
  return VYRE_OK;
}

static vyre_code check_bound(const vyre__kernel *kernel, vyre_status *st) {
  const vyre__queue_clauses *queue = kernel->queue;
  bool good;
  switch (queue->bound_kind) {
    case VYRE__BOUND_CONSTANT:
      good = queue->bound > 0;
      break;
    case VYRE__BOUND_UNIFORM:
      good = queue->bound < kernel->buffer_count &&
             kernel->buffers[queue->bound].kind == VYRE_MEMORY_UNIFORM &&
             kernel->buffers[queue->bound].element == VYRE_ELEMENT_U32 &&
             kernel->buffers[queue->bound].count == 1;
      break;
    case VYRE__BOUND_LEN:
      good = queue->bound < kernel->buffer_count &&
             kernel->buffers[queue->bound].kind != VYRE_MEMORY_UNIFORM &&
             !vyre__is_shared(&kernel->buffers[queue->bound]);
      break;
    default:
      good = false;
  }
  if (good) return VYRE_OK;
  return REFUSE(st,
                "use a constant above 0, a uniform of type u32, or a buffer "
                "that is neither uniform nor shared",
                "%u (of kind %u) cannot bound the keys of kernel '%.100s'",
                queue->bound, queue->bound_kind, kernel->name);
}

static vyre_code check_set(const vyre__kernel *kernel, vyre_status *st) {
  const vyre__queue_clauses *queue = kernel->queue;
  if (queue->field_count != 1 || queue->fields[0].type != VYRE_TYPE_U32) {
    return REFUSE(st, "use one field of type u32",
                  "an item of kind '%s' is one u32, the key",
                  vyre__queue_kind_name(queue->kind));
  }
  if (queue->pushes != 0) {
    return REFUSE(st, "set the number of pushes to 0",
                  "a queue of kind '%s' has space for all of its keys",
                  vyre__queue_kind_name(queue->kind));
  }
  return check_bound(kernel, st);
}

static vyre_code check_words(const vyre__kernel *kernel, vyre_status *st) {
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    if (!vyre__is_queue_word(kernel->buffers[i].name)) continue;
    return REFUSE(st, "use another name",
                  "'%s' is a word of queue kernels and cannot be the name of a "
                  "buffer",
                  kernel->buffers[i].name);
  }
  return VYRE_OK;
}

vyre_code vyre__queue_check(const vyre__kernel *kernel, vyre_status *st) {
  const vyre__queue_clauses *queue = kernel->queue;
  if (queue->kind >= VYRE__QUEUE_KIND_COUNT) {
    return REFUSE(st, "use a vyre_queue_kind of vyre/program.h",
                  "kernel '%.100s' has a queue of unknown kind %u",
                  kernel->name, queue->kind);
  }
  VYRE_TRY(check_fields(kernel, st));
  VYRE_TRY(check_words(kernel, st));
  if (queue->by && queue->kind != VYRE__QUEUE_SET) {
    return REFUSE(st, "use by only with set",
                  "by(...) orders the keys of a set");
  }
  if (queue->pull && queue->kind != VYRE__QUEUE_ONCE) {
    return REFUSE(st, "use pull only with once",
                  "only a queue of kind 'once' has a 'pull' body");
  }
  if (queue->kind == VYRE__QUEUE_SET || queue->kind == VYRE__QUEUE_ONCE) {
    return check_set(kernel, st);
  }
  if (queue->bound_kind != VYRE__BOUND_NONE || queue->bound != 0) {
    return REFUSE(st, "set the bound only for set and once",
                  "a queue of kind '%s' has no keys",
                  vyre__queue_kind_name(queue->kind));
  }
  if (queue->pushes > MAX_PUSHES) {
    return REFUSE(st, "push fewer items, or push in several windows",
                  "%u pushes per item; the maximum is %d", queue->pushes,
                  MAX_PUSHES);
  }
  return VYRE_OK;
}

void vyre__queue_hash(vyre__hasher *hasher, const vyre__queue_clauses *queue) {
  vyre__hash_u8(hasher, queue->kind);
  vyre__hash_u8(hasher, queue->bound_kind);
  vyre__hash_u32(hasher, queue->bound);
  vyre__hash_u32(hasher, queue->pushes);
  vyre__hash_u32(hasher, queue->by);
  vyre__hash_u32(hasher, queue->pull);
  if (queue->part) {
    vyre__hash_u8(hasher, queue->part);
    vyre__hash_u32(hasher, queue->hidden);
  }
  vyre__hash_u32(hasher, queue->field_count);
  for (uint32_t i = 0; i < queue->field_count; i++) {
    vyre__hash_text(hasher, queue->fields[i].name);
    vyre__hash_u8(hasher, queue->fields[i].type);
  }
}

bool vyre__queue_equal(const vyre__queue_clauses *a,
                       const vyre__queue_clauses *b) {
  if (!a || !b) return a == b;
  if (a->kind != b->kind || a->bound_kind != b->bound_kind ||
      a->bound != b->bound || a->pushes != b->pushes || a->by != b->by ||
      a->pull != b->pull || a->part != b->part || a->hidden != b->hidden ||
      a->field_count != b->field_count) {
    return false;
  }
  for (uint32_t i = 0; i < a->field_count; i++) {
    if (a->fields[i].type != b->fields[i].type ||
        strcmp(a->fields[i].name, b->fields[i].name) != 0) {
      return false;
    }
  }
  return true;
}
