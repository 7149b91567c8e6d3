/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes facts about a program before it runs, above all the depth of the
 * stack of temporaries: a run then allocates once and cannot overflow. The
 * counts mirror the pushes in eval.c, exec.c and print.c. */

#include "backend/ref/ref.h"
#include "base/memory.h"
#include "base/status.h"

typedef struct analysis {
  const vyre_program *program;
  ref_program_info *shape;
  uint32_t *need;          /* for each node: vectors it pushes */
  uint32_t *function_need; /* for each function; 0: not known yet */
} analysis;

static uint32_t larger(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

/* Returns the need of operands that are evaluated in turn and all kept. */
static uint32_t need_of_list(const analysis *s, const uint32_t *ids,
                             uint32_t count) {
  uint32_t max = 1;
  for (uint32_t i = 0; i < count; i++) max = larger(max, i + s->need[ids[i]]);
  return max;
}

static uint32_t need_call(const analysis *s, const vyre__node *node) {
  const vyre__function *callee = &s->program->functions[node->a];
  uint32_t arguments = need_of_list(s, s->program->lists + node->b, node->c);
  uint32_t body = callee->local_count + 2 + s->function_need[node->a];
  return 1 + larger(arguments, body); /* 1 for the result */
}

static uint32_t need_statement(const analysis *s, const vyre__node *node) {
  const uint32_t *list = s->program->lists;
  const uint32_t *need = s->need;
  uint32_t max = 1;
  switch (node->op) {
    case VYRE__OP_BLOCK:
      for (uint32_t i = 0; i < node->b; i++) {
        max = larger(max, need[list[node->a + i]]);
      }
      return max;
    case VYRE__OP_PRINT:
    case VYRE__OP_PUSH_FIELDS:
      return need_of_list(s, list + node->a, node->b);
    case VYRE__OP_IF:
      max = larger(need[node->b], node->c ? need[node->c] : 0);
      return larger(need[node->a], 2 + max);
    case VYRE__OP_FOR:
      max = need_of_list(s, list + node->b, 2);
      return larger(max, 4 + need[list[node->b + 3]]);
    case VYRE__OP_WHILE:
      return 3 + larger(1 + need[node->a], need[node->b]);
    default:
      return 1;
  }
}

static uint32_t need_node(const analysis *s, const vyre__node *node) {
  const uint32_t *need = s->need;
  switch (vyre__ops[node->op].form) {
    case VYRE__FORM_CALL:
      return need_call(s, node);
    case VYRE__FORM_UNARY:
      if (node->op == VYRE__OP_BALLOT) return larger(2, need[node->a]);
      return node->a ? larger(1, need[node->a]) : 1;
    case VYRE__FORM_LOAD:
    case VYRE__FORM_SET:
      return larger(1, need[node->b]);
    case VYRE__FORM_BINARY: /* up to two: the mask of && and || */
      if (vyre__op_is_exchange(node->op)) {
        return larger(larger(need[node->a], 1 + need[node->b]), 3);
      }
      return larger(need[node->a], 2 + need[node->b]);
    case VYRE__FORM_TERNARY:
      if (node->op == VYRE__OP_COND) { /* condition, result, mask */
        return larger(need[node->a], 3 + larger(need[node->b], need[node->c]));
      }
      return need_of_list(s, (const uint32_t[]){node->a, node->b, node->c}, 3);
    case VYRE__FORM_MAKE: { /* the sum and the operands of one dimension */
      uint32_t most = 0;
      for (uint32_t i = 0; i < node->b; i++) {
        most = larger(most, need[s->program->lists[node->a + i]]);
      }
      return most + 1 + VYRE__AT_STEP;
    }
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_STORE:
      return larger(need_of_list(s, (const uint32_t[]){node->b, node->c}, 2),
                    4);
    case VYRE__FORM_ATOMIC2: {
      const uint32_t *list = s->program->lists + node->c;
      return larger(
          need_of_list(s, (const uint32_t[]){node->b, list[0], list[1]}, 3), 4);
    }
    default:
      return need_statement(s, node);
  }
}

static void note_inside(const analysis *s, vyre__id id) {
  const vyre__node *node = &s->program->nodes[id];
  uint8_t *has_grid = s->shape->has_grid;
  const uint32_t *list = s->program->lists;
  if (node->op == VYRE__OP_GRID_BARRIER) {
    has_grid[id] = 1;
  } else if (node->op == VYRE__OP_BLOCK) {
    for (uint32_t i = 0; i < node->b; i++) {
      has_grid[id] |= has_grid[list[node->a + i]];
    }
  } else if (node->op == VYRE__OP_FOR) {
    has_grid[id] = has_grid[list[node->b + 3]];
  } else if (node->op == VYRE__OP_IF) {
    has_grid[id] = has_grid[node->b] | (node->c ? has_grid[node->c] : 0);
  } else if (node->op == VYRE__OP_WHILE) {
    has_grid[id] = has_grid[node->b];
  } else if (node->op == VYRE__OP_EVAL) {
    s->shape->is_ignored[node->a] = 1;
  }
  uint8_t flags = vyre__ops[node->op].flags;
  /* Programs with atomics and prints run one workgroup after the other,
   * so that even a program that depends on the order gives the same
   * result every time. */
  if (flags & ~(VYRE__OPF_READS | VYRE__OPF_WRITES | VYRE__OPF_JUMPS)) {
    s->shape->can_batch = false;
  }
  if (flags & VYRE__OPF_GRID_BARRIER) s->shape->has_grid_barrier = true;
  if (flags & (VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER)) {
    s->shape->has_barrier = true;
  }
}

/* Computes the need of all nodes. Children come before their parents, so one
 * pass is enough once the needs of called functions are known. Functions do not
 * recurse; every pass resolves at least one more function. */
static void measure(const analysis *s) {
  const vyre_program *program = s->program;
  for (uint32_t known = 0; known < program->function_count;) {
    for (vyre__id id = 1; id < program->node_count; id++) {
      s->need[id] = need_node(s, &program->nodes[id]);
    }
    uint32_t stable = 0;
    for (uint32_t f = 0; f < program->function_count; f++) {
      uint32_t need = s->need[program->functions[f].body];
      stable += need == s->function_need[f];
      s->function_need[f] = need;
    }
    known = stable;
  }
}

static uint32_t grid_depth(const analysis *s, vyre__id id) {
  const vyre__node *node = &s->program->nodes[id];
  const uint32_t *list = s->program->lists;
  if (!s->shape->has_grid[id]) return 0;
  uint32_t max = 0;
  if (node->op == VYRE__OP_BLOCK) {
    for (uint32_t i = 0; i < node->b; i++) {
      max = larger(max, grid_depth(s, list[node->a + i]));
    }
  } else if (node->op == VYRE__OP_FOR) {
    max = 1 + grid_depth(s, list[node->b + 3]);
  }
  return max;
}

static uint64_t shared_bytes(const vyre_program *program, uint64_t lanes) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre_buffer_decl *buffer = &program->buffers[i];
    if (!vyre__is_shared(buffer)) continue;
    bytes += (uint64_t)buffer->count * vyre_buffer_stride(buffer) *
             (vyre__is_private(program, (uint32_t)i) ? lanes : 1);
  }
  return bytes;
}

vyre_code ref_program_info_build(const vyre_program *program,
                                 const uint32_t workgroup[3], vyre_arena *arena,
                                 ref_program_info *out, vyre_status *st) {
  uint32_t nodes = program->node_count;
  uint32_t functions = program->function_count;
  analysis s = {.program = program, .shape = out};
  out->has_grid = vyre__arena_filled(arena, nodes, 1, 0);
  out->is_ignored = vyre__arena_filled(arena, nodes, 1, 0);
  vyre__arena_mark end = vyre__arena_here(arena);
  s.need = vyre__arena_filled(arena, nodes, sizeof *s.need, 0);
  s.function_need = vyre__arena_filled(arena, functions, sizeof *s.need, 0);
  if (!out->has_grid || !out->is_ignored || !s.need || !s.function_need) {
    return vyre__no_memory(st, "ref", "nodes", nodes);
  }
  out->shared_bytes = shared_bytes(
      program, (uint64_t)workgroup[0] * workgroup[1] * workgroup[2]);
  out->zeroed_bytes = shared_bytes(program, 0);
  out->can_batch = out->shared_bytes == 0;
  for (vyre__id id = 1; id < nodes; id++) note_inside(&s, id);
  measure(&s);
  out->temporary_vectors = s.function_need[0] + 1;
  out->grid_depth = grid_depth(&s, program->functions[0].body);
  vyre__arena_rewind(arena, end);
  return VYRE_OK;
}
