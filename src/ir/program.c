/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/program.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/utf8.h"

/* The program lives at the start of its own arena: one object, freed at once.
 */
struct vyre_program {
  vyre_arena arena;
  const vyre_buffer_decl *buffers;
  size_t buffer_count;
  uint32_t workgroup[3];
};

enum { MAX_NAME = 255 };

static vyre_code check_name(const char *name, size_t index, vyre_status *st) {
  size_t length = name ? strnlen(name, MAX_NAME + 1) : 0;
  char shown[VYRE__NAME_TEXT];
  if (length == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "give every buffer a name", "buffer %zu has no name",
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

static vyre_code unknown_value(const char *name, const char *what,
                               unsigned value, vyre_status *st) {
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                   "use a value that vyre/program.h names",
                   "buffer '%s' has an unknown %s: %u", vyre__name(name, shown),
                   what, value);
}

static vyre_code check_buffer(const vyre_buffer_decl *buffer, size_t index,
                              vyre_status *st) {
  VYRE_TRY(check_name(buffer->name, index, st));
  /* Compared as unsigned: a value below the first is out of range too. */
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
                     "use 0 for x, 1 for y, 2 for z, or leave the hint out",
                     "buffer '%s' has coalesce_axis %u, the largest is 2",
                     vyre__name(buffer->name, shown),
                     (unsigned)buffer->hints.coalesce_axis);
  }
  return VYRE_OK;
}

static vyre_code check_desc(const vyre_program_desc *desc, vyre_status *st) {
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
                     "a program of %zu buffers is too large",
                     desc->buffer_count);
  }
  for (size_t i = 0; i < desc->buffer_count; i++) {
    VYRE_TRY(check_buffer(&desc->buffers[i], i, st));
  }
  return VYRE_OK;
}

static const char *copy_text(vyre_arena *arena, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = vyre_arena_alloc(arena, size, 1);
  if (copy) memcpy(copy, text, size);
  return copy;
}

/* Everything of the program into @p arena; NULL without memory. */
static vyre_program *copy_program(vyre_arena *arena,
                                  const vyre_program_desc *desc) {
  size_t count = desc->buffer_count;
  vyre_program *program = vyre_arena_alloc(arena, sizeof *program, 0);
  vyre_buffer_decl *buffers = vyre__arena_array(arena, count, sizeof *buffers);
  if (!program || !buffers) return NULL;
  for (size_t i = 0; i < count; i++) {
    buffers[i] = desc->buffers[i];
    buffers[i].name = copy_text(arena, desc->buffers[i].name);
    if (!buffers[i].name) return NULL;
  }
  *program = (vyre_program){.buffers = buffers, .buffer_count = count};
  memcpy(program->workgroup, desc->workgroup, sizeof program->workgroup);
  return program;
}

vyre_code vyre_program_create(const vyre_program_desc *desc,
                              vyre_allocator allocator, vyre_program **out,
                              vyre_status *st) {
  if (!out) return vyre__null_argument(st, "vyre_program_create", "out");
  *out = NULL;
  if (!desc) return vyre__null_argument(st, "vyre_program_create", "desc");
  if (!desc->buffers && desc->buffer_count > 0) {
    return vyre__null_argument(st, "vyre_program_create", "desc->buffers");
  }
  VYRE_TRY(check_desc(desc, st));
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_program *program = copy_program(&arena, desc);
  if (!program) {
    vyre_arena_finish(&arena);
    return vyre__no_memory(st, "vyre_program_create", "program buffers",
                           desc->buffer_count);
  }
  program->arena = arena;
  *out = program;
  return VYRE_OK;
}

void vyre_program_release(vyre_program *program) {
  if (!program) return;
  vyre_arena arena = program->arena; /* the program is inside */
  vyre_arena_finish(&arena);
}

const vyre_buffer_decl *vyre_program_buffers(const vyre_program *program,
                                             size_t *count) {
  if (count) *count = program ? program->buffer_count : 0;
  return program ? program->buffers : NULL;
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

#define VYRE_X3(name, text, bytes) [name] = (text),
#define VYRE_X2(name, text)        [name] = (text),

const char *vyre_element_name(vyre_element element) {
  static const char *const names[] = {VYRE_ELEMENT_MAP(VYRE_X3)};
  return (unsigned)element < VYRE_ELEMENT_COUNT ? names[element] : "?";
}

const char *vyre_memory_name(vyre_memory kind) {
  static const char *const names[] = {VYRE_MEMORY_MAP(VYRE_X2)};
  return (unsigned)kind < VYRE_MEMORY_COUNT ? names[kind] : "?";
}

const char *vyre_access_name(vyre_access access) {
  static const char *const names[] = {VYRE_ACCESS_MAP(VYRE_X2)};
  return (unsigned)access < VYRE_ACCESS_COUNT ? names[access] : "?";
}

const char *vyre_locality_name(vyre_locality locality) {
  static const char *const names[] = {VYRE_LOCALITY_MAP(VYRE_X2)};
  return (unsigned)locality < VYRE_LOCALITY_COUNT ? names[locality] : "?";
}
