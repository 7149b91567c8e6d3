/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/effects.h"

#include <assert.h>
#include <string.h>

#include "analyze/inline/inline.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

/* Call: the callee, and its nesting in the caller. */
typedef struct edge {
  uint32_t callee, depth;
} edge;

/* Nesting depth of a node: of its statement's block, in nodes, in loops.
 * Stored in small types because there is one per node, and no depth exceeds
 * VYRE__MAX_DEPTH. */
typedef struct depths {
  uint16_t block;
  uint8_t nodes, loops;
} depths;

static_assert(VYRE__MAX_DEPTH < UINT8_MAX, "depths must fit");

typedef struct survey {
  const vyre_program *program;
  uint8_t *buffers;
  depths *depths; /* per node */
  edge *edges;    /* of all functions, one range each */
  size_t edge_count;
} survey;

/* Records properties that few nodes have. */
static inline void note_rare(survey *s, vyre__function_effects *now,
                             const vyre__node *node, depths at) {
  switch ((vyre__op)node->op) {
    case VYRE__OP_UNIFORM:
      now->has_uniform = true;
      break;
    case VYRE__OP_SHUFFLE:
    case VYRE__OP_SHUFFLE_XOR:
    case VYRE__OP_SHUFFLE_UP:
    case VYRE__OP_SHUFFLE_DOWN:
    case VYRE__OP_BALLOT:
      now->has_exchange = true;
      break;
    case VYRE__OP_LOCAL_ID:
    case VYRE__OP_GLOBAL_ID:
    case VYRE__OP_ITEM:
    case VYRE__OP_ITEM_INDEX:
    case VYRE__OP_LANE:
    case VYRE__OP_SUBGROUP_ID:
      now->has_id = true;
      break;
    case VYRE__OP_WORKGROUP_ID:
      now->has_workgroup_id = true;
      break;
    case VYRE__OP_CALL:
      s->edges[s->edge_count++] = (edge){node->a, at.block};
      break;
    default:
      break;
  }
}

/* Returns the depth of the statements of an inlined call in the operands of a
 * node; calls after && or ||, and in the arms of ?:, are deeper. */
static uint16_t block_of(const vyre__node *node, depths at) {
  if (node->op == VYRE__OP_BLOCK) return at.nodes;
  if (node->op == VYRE__OP_WHILE) return (uint16_t)(at.nodes + 1);
  return at.block;
}

static inline void look(survey *s, vyre__function_effects *now, vyre__id id) {
  const uint8_t touches =
      VYRE__OPF_READS | VYRE__OPF_WRITES | VYRE__OPF_ATOMICS;
  const vyre__node *node = &s->program->nodes[id];
  const uint8_t flags = vyre__ops[node->op].flags;
  depths at = s->depths[id];
  vyre__id storage[3];
  const vyre__id *ids;
  now->own_flags |= flags;
  if (flags & touches) s->buffers[node->a] |= flags;
  if (node->op == VYRE__OP_FOR || node->op == VYRE__OP_WHILE) {
    at.loops++;
    now->loops++;
    if (at.loops > now->loop_depth) now->loop_depth = at.loops;
  }
  if (at.nodes > now->depth) now->depth = at.nodes;
  note_rare(s, now, node, at);
  uint32_t count = vyre__children(s->program, node, storage, &ids);
  if (count == 0) return;
  if (at.nodes == now->depth) now->depth++; /* leaves; see below */
  depths inside = {block_of(node, at), (uint8_t)(at.nodes + 1), at.loops};
  for (uint32_t i = 0; i < count; i++) s->depths[ids[i]] = inside;
  if (node->op == VYRE__OP_LAND || node->op == VYRE__OP_LOR ||
      node->op == VYRE__OP_COND) {
    s->depths[node->b].block = (uint16_t)(at.block + 2);
  }
  if (node->op == VYRE__OP_COND) {
    s->depths[node->c].block = (uint16_t)(at.block + 2);
  }
}

/* Walks the nodes of a function backwards: children come before their
 * parents, so the depth of a node is known when it is reached. Literals and
 * locals, half of all nodes, need no visit; their parents count their depth. */
static void look_at_function(survey *s, vyre__function_effects *out,
                             vyre__id body, vyre__id before) {
  vyre__function_effects now = {.around = out->around, .nodes = body - before};
  s->depths[body] = (depths){1, 1, 0};
  for (vyre__id id = body; id > before; id--) {
    const uint8_t op = s->program->nodes[id].op;
    if (op == VYRE__OP_LITERAL || op == VYRE__OP_LOCAL) continue;
    look(s, &now, id);
  }
  now.flags = now.own_flags;
  *out = now;
}

static uint64_t add_capped(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Adds up the effects of a function and its callees, which are done. */
static void sum_up(vyre__function_effects *all, uint32_t function,
                   const edge *edges, size_t count) {
  vyre__function_effects *own = &all[function];
  own->inlined_nodes = own->nodes;
  /* statements around an inlined body */
  own->inlined_depth = own->depth + (count ? 4 : 0);
  for (size_t i = 0; i < count; i++) {
    const vyre__function_effects *callee = &all[edges[i].callee];
    own->flags |= callee->flags;
    own->has_uniform |= callee->has_uniform;
    own->has_exchange |= callee->has_exchange;
    own->has_id |= callee->has_id;
    own->has_workgroup_id |= callee->has_workgroup_id;
    own->inlined_nodes = add_capped(own->inlined_nodes, callee->inlined_nodes);
    uint64_t depth =
        (uint64_t)edges[i].depth + callee->around + callee->inlined_depth;
    if (depth > own->inlined_depth) own->inlined_depth = depth;
  }
}

/* Stack for the walk over the calls, whose depth might exceed the C stack. */
typedef struct frame {
  uint32_t function;
  size_t next; /* next edge to follow */
} frame;

typedef struct order_walk {
  const edge *edges;
  const size_t *first; /* per function and one more: its range of edges */
  frame *stack;
  bool *seen;
  uint32_t *order;
  uint32_t count;
} order_walk;

/* Visits functions in post-order. Cycles are impossible, because programs with
 * recursion are rejected. */
static void visit_calls(order_walk *w, uint32_t root,
                        vyre__function_effects *all) {
  size_t depth = 0;
  if (w->seen[root]) return;
  w->seen[root] = true;
  w->stack[depth++] = (frame){root, w->first[root]};
  while (depth > 0) {
    frame *top = &w->stack[depth - 1];
    size_t begin = w->first[top->function], end = w->first[top->function + 1];
    if (top->next == end) {
      sum_up(all, top->function, w->edges + begin, end - begin);
      w->order[w->count++] = top->function;
      depth--;
      continue;
    }
    uint32_t callee = w->edges[top->next++].callee;
    if (w->seen[callee]) continue;
    w->seen[callee] = true;
    w->stack[depth++] = (frame){callee, w->first[callee]};
  }
}

typedef struct effects_storage {
  vyre__function_effects *functions;
  uint32_t *order;
  uint8_t *buffers;
  vyre__arena_mark end; /* what follows is scratch */
  edge *edges;
  size_t *first;
  frame *stack;
  bool *seen;
  depths *depths;
} effects_storage;

static bool reserve(effects_storage *storage, const vyre_program *program,
                    vyre_arena *arena) {
  size_t functions = program->function_count;
  size_t calls = functions > 1 ? program->node_count : 0; /* upper limit */
  storage->functions =
      vyre__arena_array(arena, functions, sizeof *storage->functions);
  storage->order = vyre__arena_array(arena, functions, sizeof *storage->order);
  storage->buffers = vyre__arena_array(arena, program->buffer_count, 1);
  storage->end = vyre__arena_here(arena);
  storage->edges = vyre__arena_array(arena, calls, sizeof *storage->edges);
  storage->first =
      vyre__arena_array(arena, functions + 1, sizeof *storage->first);
  storage->stack = vyre__arena_array(arena, functions, sizeof *storage->stack);
  storage->seen = vyre__arena_array(arena, functions, sizeof *storage->seen);
  storage->depths =
      vyre__arena_array(arena, program->node_count, sizeof *storage->depths);
  if (!storage->functions || !storage->order || !storage->buffers ||
      !storage->edges || !storage->first || !storage->stack || !storage->seen ||
      !storage->depths) {
    return false;
  }
  memset(storage->functions, 0, functions * sizeof *storage->functions);
  memset(storage->seen, 0, functions * sizeof *storage->seen);
  memset(storage->buffers, 0, program->buffer_count);
  return true;
}

vyre_code vyre__effects_build(const vyre_program *program, vyre_arena *arena,
                              vyre__effects *out, vyre_status *st) {
  vyre__arena_mark start = vyre__arena_here(arena);
  effects_storage storage;
  *out = (vyre__effects){0};
  if (!reserve(&storage, program, arena)) {
    vyre__arena_rewind(arena, start);
    return vyre__no_memory(st, "vyre__effects_build", "program effects",
                           program->node_count);
  }
  survey s = {.program = program,
              .buffers = storage.buffers,
              .depths = storage.depths,
              .edges = storage.edges};
  vyre__id before = 0;
  for (uint32_t f = 0; f < program->function_count; f++) {
    const vyre__function *function = &program->functions[f];
    storage.first[f] = s.edge_count;
    if (f > 0) { /* the kernel is never inlined */
      storage.functions[f].around =
          vyre__inline_shape_of(program, function).depth;
    }
    look_at_function(&s, &storage.functions[f], function->body, before);
    before = function->body;
  }
  storage.first[program->function_count] = s.edge_count;
  order_walk w = {storage.edges, storage.first, storage.stack,
                  storage.seen,  storage.order, 0};
  for (uint32_t f = 0; f < program->function_count; f++) {
    visit_calls(&w, f, storage.functions);
  }
  vyre__arena_rewind(arena, storage.end);
  *out = (vyre__effects){storage.functions, storage.order, storage.buffers};
  return VYRE_OK;
}
