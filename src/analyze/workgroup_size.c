/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Proves that results do not depend on the workgroup size.
 *
 * The grid has as many workgroups as cover the over(...) buffer, so the last
 * one may have invocations past its end. Their number depends on the workgroup
 * size. The walk follows such an invocation: every statement with an effect,
 * and every loop, must be under a condition that it does not meet, such as
 * `global_id.x < len(y)`. */
#include "analyze/workgroup_size.h"

#include "analyze/effects.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

enum {
  MAX_STEPS = 1 << 22, /* values that are looked at, for the program */
  MAX_DEPTH = 200,     /* of a condition, with the locals in it */
};

/* The only statement that sets a local. */
typedef struct setter {
  vyre__id value; /* of the `let`; 0: another statement */
  uint32_t count;
} setter;

typedef struct walker {
  const vyre_program *program;
  const vyre__effects *effects;
  setter *locals; /* of the kernel */
  bool has_loops; /* a function has one */
  uint32_t *left; /* steps. Locals can be shared, so that a short kernel has
                   * very many paths through them. */
} walker;

static const vyre__node *node_of(const walker *w, vyre__id id) {
  return &w->program->nodes[id];
}

/* --- values ----------------------------------------------------------------*/

/* Takes a step. Returns false if none is left. */
static bool step(const walker *w) {
  if (*w->left == 0) return false;
  --*w->left;
  return true;
}

/* Follows locals that have one value only. */
static const vyre__node *resolve(const walker *w, vyre__id id) {
  const vyre__node *node = node_of(w, id);
  while (node->op == VYRE__OP_LOCAL && w->locals[node->a].count == 1 &&
         w->locals[node->a].value && step(w)) {
    node = node_of(w, w->locals[node->a].value);
  }
  return node;
}

static bool is_id(const walker *w, vyre__id id) {
  const vyre__node *node = resolve(w, id);
  return node->op == VYRE__OP_GLOBAL_ID && node->aux == 0;
}

/* Returns true if the value is at most the length of the over(...) buffer. */
static bool is_limit(const walker *w, vyre__id id, unsigned depth) {
  if (depth == MAX_DEPTH || !step(w)) return false;
  const vyre__node *node = resolve(w, id);
  if (node->op == VYRE__OP_MIN && node->type == VYRE_TYPE_U32) {
    return is_limit(w, node->a, depth + 1) || is_limit(w, node->b, depth + 1);
  }
  return node->op == VYRE__OP_LEN && node->a == w->program->over;
}

/* Returns true if global_id.x is below the length of the over(...) buffer
 * whenever the condition has the value @p holds. */
static bool implies(const walker *w, vyre__id id, bool holds, unsigned depth) {
  if (depth == MAX_DEPTH || !step(w)) return false;
  const vyre__node *node = resolve(w, id);
  switch ((vyre__op)node->op) {
    case VYRE__OP_NOT:
      return implies(w, node->a, !holds, depth + 1);
    case VYRE__OP_LAND:
    case VYRE__OP_AND:
      return holds ? implies(w, node->a, true, depth + 1) ||
                         implies(w, node->b, true, depth + 1)
                   : implies(w, node->a, false, depth + 1) &&
                         implies(w, node->b, false, depth + 1);
    case VYRE__OP_LOR:
    case VYRE__OP_OR:
      return holds ? implies(w, node->a, true, depth + 1) &&
                         implies(w, node->b, true, depth + 1)
                   : implies(w, node->a, false, depth + 1) ||
                         implies(w, node->b, false, depth + 1);
    case VYRE__OP_LT:
      return holds && is_id(w, node->a) && is_limit(w, node->b, depth + 1);
    case VYRE__OP_GT:
      return holds && is_limit(w, node->a, depth + 1) && is_id(w, node->b);
    case VYRE__OP_GE:
      return !holds && is_id(w, node->a) && is_limit(w, node->b, depth + 1);
    case VYRE__OP_LE:
      return !holds && is_limit(w, node->a, depth + 1) && is_id(w, node->b);
    default:
      return false;
  }
}

/* Returns true if computing the value has no effect and ends. */
static bool is_pure(const walker *w, vyre__id id) {
  const vyre__node *node = node_of(w, id);
  unsigned flags = vyre__ops[node->op].flags;
  if (node->op == VYRE__OP_CALL) {
    if (w->has_loops) return false;
    flags = w->effects->functions[node->a].flags & ~(unsigned)VYRE__OPF_JUMPS;
  }
  if (flags & ~(unsigned)VYRE__OPF_READS) return false;
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_pure(w, ids[i])) return false;
  }
  return true;
}

/* --- statements ------------------------------------------------------------*/

/* Behaviour of an invocation past the end of the buffer. */
typedef enum outcome {
  GOES_ON, /* with the next statement */
  ENDS,    /* it returns, or was never there */
  ACTS,    /* it may have an effect */
} outcome;

static outcome walk(const walker *w, vyre__id id);

static outcome walk_if(const walker *w, const vyre__node *node) {
  if (!is_pure(w, node->a)) return ACTS;
  outcome then = implies(w, node->a, true, 0) ? ENDS : walk(w, node->b);
  outcome other = implies(w, node->a, false, 0) ? ENDS
                  : node->c                     ? walk(w, node->c)
                                                : GOES_ON;
  if (then == ACTS || other == ACTS) return ACTS;
  return then == ENDS && other == ENDS ? ENDS : GOES_ON;
}

static outcome walk(const walker *w, vyre__id id) {
  const vyre__node *node = node_of(w, id);
  const vyre__id *ids;
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      ids = w->program->lists + node->a;
      for (uint32_t i = 0; i < node->b; i++) {
        outcome one = walk(w, ids[i]);
        if (one != GOES_ON) return one;
      }
      return GOES_ON;
    case VYRE__OP_LET:
    case VYRE__OP_ASSIGN:
      return is_pure(w, node->b) ? GOES_ON : ACTS;
    case VYRE__OP_EVAL:
      return is_pure(w, node->a) ? GOES_ON : ACTS;
    case VYRE__OP_STORE: /* outside a buffer it is dropped */
      return node->a == w->program->over && is_id(w, node->b) &&
                     is_pure(w, node->c)
                 ? GOES_ON
                 : ACTS;
    case VYRE__OP_IF:
      return walk_if(w, node);
    case VYRE__OP_RETURN:
      return ENDS;
    default:
      return ACTS;
  }
}

/* --- the program -----------------------------------------------------------*/

/* Returns an operation that depends on the workgroup, or NULL. */
static const char *find_operation(walker *w) {
  const vyre_program *program = w->program;
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = node_of(w, id);
    switch ((vyre__op)node->op) {
      case VYRE__OP_LOCAL_ID:
        return "it reads local_id";
      case VYRE__OP_WORKGROUP_ID:
        return "it reads workgroup_id";
      case VYRE__OP_WORKGROUP_SIZE:
        return "it reads workgroup_size";
      case VYRE__OP_GRID_SIZE:
        return "it reads grid_size";
      case VYRE__OP_FOR:
      case VYRE__OP_WHILE:
        w->has_loops = true;
        break;
      default:
        break;
    }
    unsigned flags = vyre__ops[node->op].flags;
    if (flags & (VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER)) {
      return "it has a barrier";
    }
    if (flags & VYRE__OPF_PUSHES) return "it pushes items";
    if (flags & VYRE__OPF_PRINTS) return "it prints";
  }
  return NULL;
}

static const char *find_property(walker *w) {
  const vyre_program *program = w->program;
  if (program->function_count == 0) return "it has no body";
  if (program->over == VYRE_NO_INDEX) {
    return "it has no over(...), so that its grid may be given";
  }
  if (program->workgroup[1] != 1 || program->workgroup[2] != 1) {
    return "its workgroup has more than one dimension";
  }
  for (size_t i = 0; i < program->buffer_count; i++) {
    if (vyre__is_shared(&program->buffers[i])) return "it has shared memory";
  }
  return find_operation(w);
}

static void find_setters(walker *w) {
  for (vyre__id id = 1; id <= w->program->functions[0].body; id++) {
    const vyre__node *node = node_of(w, id);
    bool is_let = node->op == VYRE__OP_LET;
    if (!is_let && node->op != VYRE__OP_ASSIGN && node->op != VYRE__OP_FOR) {
      continue;
    }
    w->locals[node->a].count++;
    w->locals[node->a].value = is_let ? node->b : 0;
  }
}

vyre_code vyre__workgroup_size_matters(const vyre_program *program,
                                       vyre_arena *arena, const char **why,
                                       vyre_status *st) {
  uint32_t left = MAX_STEPS;
  walker w = {.program = program, .left = &left};
  *why = find_property(&w);
  if (*why) return VYRE_OK;
  vyre__effects effects;
  VYRE_TRY(vyre__effects_build(program, arena, &effects, st));
  uint32_t count = program->functions[0].local_count;
  w.effects = &effects;
  w.locals = vyre__arena_filled(arena, count, sizeof *w.locals, 0);
  if (!w.locals) {
    return vyre__no_memory(st, __func__, "locals", count);
  }
  find_setters(&w);
  if (walk(&w, program->functions[0].body) == ACTS) {
    *why =
        "it has effects that no comparison of global_id.x with the length "
        "of its over(...) buffer guards";
  }
  return VYRE_OK;
}
