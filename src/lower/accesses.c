/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists the accesses of a program with index ranges and proof results. */
#include <stdio.h>
#include <string.h>

#include "vyre/emit.h"
#include "vyre/validate.h"

#include "analyze/inline/inline.h"
#include "analyze/ranges.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"

enum { TEXT_SIZE = 64 };

typedef struct listing {
  const vyre_program *program; /* inlined */
  const vyre__source_files *files;
  vyre__ranges ranges;
  vyre_arena *arena;
  vyre_access_info *items; /* NULL while counting */
  size_t count;
  bool no_memory;
} listing;

static const char *copy_text(listing *l, const char *text) {
  const char *copy = vyre__arena_text(l->arena, text);
  l->no_memory |= !copy;
  return copy ? copy : "";
}

/* Formats "[-1, 63]". Every bound of a 64-bit integer fits one of the two
 * formats. */
static const char *interval_text(listing *l, vyre__interval range) {
  char lo[24], hi[24], text[TEXT_SIZE];
  const vyre__wide ends[2] = {range.lo, range.hi};
  char *to[2] = {lo, hi};
  for (int i = 0; i < 2; i++) {
    if (ends[i] < 0) {
      snprintf(to[i], sizeof lo, "%lld", (long long)ends[i]);
    } else {
      snprintf(to[i], sizeof lo, "%llu", (unsigned long long)ends[i]);
    }
  }
  snprintf(text, sizeof text, "[%s, %s]", lo, hi);
  return copy_text(l, text);
}

static const char *length_text(listing *l, const vyre_buffer_decl *buffer) {
  char text[TEXT_SIZE];
  if (buffer->count) {
    snprintf(text, sizeof text, "%u", (unsigned)buffer->count);
  } else {
    snprintf(text, sizeof text, "len(%.50s)", buffer->name);
  }
  return copy_text(l, text);
}

static const char *reason_of(const listing *l, vyre__id id,
                             const vyre_buffer_decl *buffer) {
  const vyre__node *node = &l->program->nodes[id];
  vyre_type type = (vyre_type)l->program->nodes[node->b].type;
  vyre__interval range = vyre__range_of(&l->ranges, node->b);
  vyre__interval full = vyre__interval_full(type);
  uint8_t flags = l->ranges.flags[id];
  if (flags & VYRE__RANGE_OUTSIDE) return "the index is always outside";
  if (flags & VYRE__RANGE_ANOTHER) {
    return "a guard keeps it below the length of another buffer only";
  }
  if (vyre__interval_inside(full, range)) return "the index has no bound";
  if (range.lo < 0) return "the index can be negative";
  if (buffer->count) return "the index can reach or exceed the length";
  return "the length is unknown, and no guard compares the index with it";
}

static bool is_access(const vyre__node *node) {
  return node->op == VYRE__OP_LOAD || node->op == VYRE__OP_STORE ||
         (vyre__ops[node->op].flags & VYRE__OPF_ATOMICS);
}

static void add(listing *l, vyre__id id) {
  const vyre__node *node = &l->program->nodes[id];
  const vyre_buffer_decl *buffer = &l->program->buffers[node->a];
  vyre__source_loc loc = vyre__source_loc_of(l->program, id);
  const vyre__source_file *file = vyre__source_file_of(l->files, &loc.line);
  bool proven = l->ranges.flags[id] & VYRE__RANGE_INSIDE;
  size_t at = l->count++;
  if (!l->items) return;
  l->items[at] = (vyre_access_info){
      .buffer = node->a,
      .file = file ? file->name : NULL,
      .line = loc.line,
      .column = loc.column,
      .is_store = node->op == VYRE__OP_STORE,
      .is_atomic = vyre__ops[node->op].flags & VYRE__OPF_ATOMICS,
      .is_proven = proven,
      .index = interval_text(l, vyre__range_of(&l->ranges, node->b)),
      .length = length_text(l, buffer),
      .reason = proven ? NULL : reason_of(l, id, buffer)};
}

static void walk(listing *l, vyre__id id) {
  uint32_t count = vyre__child_count(l->program, id);
  for (uint32_t i = 0; i < count; i++) {
    walk(l, vyre__child(l->program, id, i));
  }
  if (is_access(&l->program->nodes[id])) add(l, id);
}

static vyre_code list_all(listing *l, vyre_status *st) {
  vyre__id body = l->program->functions[0].body;
  walk(l, body);
  l->items =
      vyre__arena_array(l->arena, l->count ? l->count : 1, sizeof *l->items);
  size_t count = l->count;
  l->count = 0;
  if (l->items) walk(l, body);
  if (l->items && !l->no_memory) return VYRE_OK;
  return vyre__no_memory(st, "vyre_program_accesses", "accesses", count);
}

vyre_code vyre_program_accesses(const vyre_program *program, vyre_arena *arena,
                                const vyre_access_info **out, size_t *count,
                                vyre_status *st) {
  vyre__status_begin(st);
  if (out) *out = NULL;
  if (count) *count = 0;
  VYRE_REQUIRE_BOTH(st, program, arena);
  VYRE_REQUIRE_BOTH(st, out, count);
  VYRE_TRY(vyre_program_validate(program, NULL, vyre__status_open(st)));
  if (!vyre_program_has_body(program)) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "parse a kernel, or give the builder a body",
                     "vyre_program_accesses: the program has no body");
  }
  vyre_program *inlined = NULL;
  VYRE_TRY(vyre__inline(program, arena->allocator, &inlined, st));
  vyre_arena scratch;
  vyre_arena_init(&scratch, arena->allocator);
  vyre__arena_mark start = vyre__arena_here(arena);
  listing l = {.program = inlined, .files = program->files, .arena = arena};
  vyre_code code = vyre__ranges_build(inlined, NULL, &scratch, &l.ranges, st);
  if (code == VYRE_OK) code = list_all(&l, st);
  if (code == VYRE_OK) {
    *out = l.items;
    *count = l.count;
  } else {
    vyre__arena_rewind(arena, start);
  }
  vyre_arena_deinit(&scratch);
  vyre_program_release(inlined);
  return code;
}
