/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/racy_guards.h"

#include <string.h>

#include "analyze/effects.h"
#include "analyze/uniformity.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

typedef struct marker {
  const vyre_program *program;
  vyre__uniformity plain;    /* assuming that memory does not change */
  vyre__uniformity changing; /* assuming that it may change */
  uint8_t *bits;
} marker;

/* Returns true if the kernel has a barrier and loads that differ between
 * invocations only if memory changes. Otherwise no guard is racy. */
static bool needs_marks(const vyre_program *program) {
  bool has_barrier = false, has_load = false;
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = &program->nodes[id];
    has_barrier |= node->op == VYRE__OP_BARRIER || node->op == VYRE__OP_UNIFORM;
    if (node->op != VYRE__OP_LOAD) continue;
    const vyre_buffer_decl *buffer = &program->buffers[node->a];
    has_load |=
        vyre__is_constant(buffer) && buffer->kind != VYRE_MEMORY_UNIFORM;
  }
  return has_barrier && has_load;
}

/* Returns true if validation considers @p value uniform in a workgroup,
 * although it is not when memory changes. */
static bool may_differ(const marker *m, vyre__id value) {
  return m->plain.value[value] <= VYRE__LEVEL_GROUP &&
         m->changing.value[value] > VYRE__LEVEL_GROUP;
}

static void mark_guard(marker *m, vyre__id id) {
  const vyre__node *node = &m->program->nodes[id];
  if (node->op != VYRE__OP_FOR) {
    if (may_differ(m, node->a)) m->bits[id] = VYRE__RACY_GUARD;
    return;
  }
  vyre__for_parts parts = vyre__for_of(m->program, id);
  bool start = may_differ(m, parts.first);
  if (start || may_differ(m, parts.bound)) m->bits[id] = VYRE__RACY_GUARD;
  if (start) m->bits[id] |= VYRE__RACY_START;
}

/* Marks the guards inside @p id. Returns true if it contains a barrier or a
 * jump past one: then the workgroup takes one common decision about the
 * statement around it. */
static bool mark(marker *m, vyre__id id) {
  const vyre__node *node = &m->program->nodes[id];
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(m->program, node, storage, &ids);
  bool gathers =
      vyre__ops[node->op].flags & (VYRE__OPF_BARRIER | VYRE__OPF_JUMPS);
  for (uint32_t i = 0; i < count; i++) gathers |= mark(m, ids[i]);
  switch ((vyre__op)node->op) {
    case VYRE__OP_IF:
    case VYRE__OP_FOR:
    case VYRE__OP_WHILE:
    case VYRE__OP_LAND:
    case VYRE__OP_LOR:
    case VYRE__OP_COND:
      if (gathers) mark_guard(m, id);
      break;
    default:
      break;
  }
  return gathers;
}

vyre_code vyre__racy_guards_build(const vyre_program *program,
                                  vyre_arena *arena, const uint8_t **out,
                                  vyre_status *st) {
  vyre__arena_mark start = vyre__arena_here(arena);
  marker m = {.program = program};
  vyre__effects effects;
  *out = NULL;
  if (!needs_marks(program)) return VYRE_OK;
  m.bits = vyre__arena_array(arena, program->node_count, 1);
  if (!m.bits) {
    return vyre__no_memory(st, "vyre__racy_guards_build", "nodes",
                           program->node_count);
  }
  memset(m.bits, 0, program->node_count);
  vyre__arena_mark end = vyre__arena_here(arena);
  vyre_code code = vyre__effects_build(program, arena, &effects, st);
  if (code == VYRE_OK) {
    code = vyre__uniformity_build(program, &effects, arena, &m.plain, st);
  }
  if (code == VYRE_OK) {
    code = vyre__uniformity_build_changing(program, &effects, arena,
                                           &m.changing, st);
  }
  if (code == VYRE_OK) (void)mark(&m, program->functions[0].body);
  vyre__arena_rewind(arena, code == VYRE_OK ? end : start);
  if (code == VYRE_OK) *out = m.bits;
  return code;
}
