/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The children of a node, in the order in which they are evaluated. */
#ifndef VYRE_ANALYZE_WALK_H
#define VYRE_ANALYZE_WALK_H

#include "ir/ir.h"

/* How many children there are. Parts that are not there do not count. */
uint32_t vyre__child_count(const vyre_program *program, vyre__id id);

/* Child @p index, below vyre__child_count. */
vyre__id vyre__child(const vyre_program *program, vyre__id id, uint32_t index);

/* The parts of a `for`. */
typedef struct vyre__for_parts {
  vyre__id first, bound, step, body;
} vyre__for_parts;

static inline vyre__for_parts vyre__for_of(const vyre_program *program,
                                           vyre__id id) {
  const uint32_t *list = program->lists + program->nodes[id].b;
  return (vyre__for_parts){list[0], list[1], list[2], list[3]};
}

/* Whether nothing in a dispatch writes it: what is loaded at one index is one
 * value for all, whenever it is loaded. */
static inline bool vyre__is_constant(const vyre_buffer_decl *buffer) {
  return buffer->kind != VYRE_MEMORY_SHARED &&
         (buffer->kind == VYRE_MEMORY_UNIFORM ||
          buffer->access == VYRE_ACCESS_READ ||
          buffer->access == VYRE_ACCESS_UNIFORM);
}

#endif
