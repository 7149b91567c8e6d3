/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Access to the children of a node, in evaluation order. */
#ifndef VYRE_ANALYZE_WALK_H
#define VYRE_ANALYZE_WALK_H

#include "ir/ir.h"

/* Position of the children of an operation: @p count operands from a, b or c
 * on, or a list. */
typedef struct vyre__child_run {
  uint8_t first; /* 0, 1, 2: a, b, c; in lists: VYRE__CHILDREN_* */
  uint8_t count; /* or VYRE__CHILDREN_IN_LIST */
} vyre__child_run;

enum { VYRE__CHILDREN_IN_LIST = 4 };
enum {
  VYRE__CHILDREN_CALL,
  VYRE__CHILDREN_LIST,
  VYRE__CHILDREN_FOR,
  VYRE__CHILDREN_ATOMIC2
};

extern const vyre__child_run vyre__child_runs[VYRE__OP_COUNT];

/* Returns the number of children and sets *ids to them; absent children do
 * not count. @p storage is used for children that are not adjacent. Analyses
 * spend most time here, so it is inline and nearly free of branches. */
static inline uint32_t vyre__children(const vyre_program *program,
                                      const vyre__node *node,
                                      vyre__id storage[3],
                                      const vyre__id **ids) {
  const vyre__child_run children = vyre__child_runs[node->op];
  if (children.count != VYRE__CHILDREN_IN_LIST) {
    const uint32_t count = children.count;
    *ids = node->abc + children.first;
    /* Only the last child may be absent: an else, the value of a return. */
    return count - (uint32_t)(count > 0 && (*ids)[count - 1] == 0);
  }
  const uint32_t *lists = program->lists;
  switch (children.first) {
    case VYRE__CHILDREN_CALL:
      *ids = lists + node->b;
      return node->c;
    case VYRE__CHILDREN_LIST:
      *ids = lists + node->a;
      return node->b;
    case VYRE__CHILDREN_FOR:
      *ids = lists + node->b;
      return 4;
    default: /* ATOMIC2 */
      storage[0] = node->b;
      storage[1] = lists[node->c];
      storage[2] = lists[node->c + 1];
      *ids = storage;
      return 3;
  }
}

/* Returns the number of children. */
static inline uint32_t vyre__child_count(const vyre_program *program,
                                         vyre__id id) {
  vyre__id storage[3];
  const vyre__id *ids;
  return vyre__children(program, &program->nodes[id], storage, &ids);
}

/* Returns child @p index, which is below vyre__child_count. */
static inline vyre__id vyre__child(const vyre_program *program, vyre__id id,
                                   uint32_t index) {
  vyre__id storage[3] = {0, 0, 0};
  const vyre__id *ids;
  uint32_t count = vyre__children(program, &program->nodes[id], storage, &ids);
  return index < count ? ids[index] : 0;
}

/* Returns true for statements. Only statements jump, assign, and wait for
 * others (except uniform()), so searches for these skip values. */
static inline bool vyre__is_statement(const vyre__node *node) {
  return node->type == VYRE_TYPE_VOID;
}

/* Children of a `for`. */
typedef struct vyre__for_parts {
  vyre__id first, bound, step, body;
} vyre__for_parts;

static inline vyre__for_parts vyre__for_of(const vyre_program *program,
                                           vyre__id id) {
  const uint32_t *list = program->lists + program->nodes[id].b;
  return (vyre__for_parts){list[0], list[1], list[2], list[3]};
}

/* Returns true if nothing in a dispatch writes the buffer: all loads of one
 * index return one value. */
static inline bool vyre__is_constant(const vyre_buffer_decl *buffer) {
  return buffer->kind != VYRE_MEMORY_SHARED &&
         (buffer->kind == VYRE_MEMORY_UNIFORM ||
          buffer->access == VYRE_ACCESS_READ ||
          buffer->access == VYRE_ACCESS_UNIFORM);
}

#endif
