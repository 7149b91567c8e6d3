/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Walk over statements, shared by ranges.c and symbolic.c.
 *
 * The including file first defines `walker` (with the program and
 * `reachable`), `fact walk_value(walker *, vyre__id)`, `check_access(walker
 * *, vyre__id, uint32_t buffer, fact index)`, and walk_set, walk_if, walk_for
 * and walk_while. It declares `walk_statement`. */
#ifndef VYRE_ANALYZE_STATEMENT_WALK_H
#define VYRE_ANALYZE_STATEMENT_WALK_H

#include "analyze/walk.h"

/* Walks a statement that contains only values. */
static void walk_parts(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    fact f = walk_value(w, ids[i]);
    if (node->op == VYRE__OP_STORE && i == 0) check_access(w, id, node->a, f);
  }
}

static void walk_statement(walker *w, vyre__id id) {
  const vyre__node *node = &w->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK: {
      const vyre__id *ids = w->program->lists + node->a;
      for (uint32_t i = 0; i < node->b; i++) walk_statement(w, ids[i]);
      break;
    }
    case VYRE__OP_LET:
    case VYRE__OP_ASSIGN:
      walk_set(w, node);
      break;
    case VYRE__OP_IF:
      walk_if(w, id);
      break;
    case VYRE__OP_FOR:
      walk_for(w, id);
      break;
    case VYRE__OP_WHILE:
      walk_while(w, id);
      break;
    default:
      walk_parts(w, id);
      if (vyre__ops[node->op].flags & VYRE__OPF_JUMPS) w->reachable = false;
  }
}

#endif
