/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rules V100 to V104, V118: all invocations must reach barrier(), uniform() and
 * grid_barrier() together, and those of a subgroup its operations. */
#include <stdio.h>

#include "analyze/walk.h"
#include "validate/validate.h"

enum { ORIGIN_TEXT = 200, SENTENCE_TEXT = 400, FIX_TEXT = 256 };

static const char axes[] = "xyz";

static const vyre__node *node_at(const vyre__validation *v, vyre__id id) {
  return &v->program->nodes[id];
}

/* Writes " at line 7", or nothing for a program without a source. */
static const char *at_line(const vyre__validation *v, vyre__id id,
                           char out[24]) {
  out[0] = 0;
  if (vyre__line_of(v, id)) {
    snprintf(out, 24, " at line %u", (unsigned)vyre__line_of(v, id));
  }
  return out;
}

/* Describes the origin of a non-uniform value: "local_id.x at line 7". */
static void name_origin(const vyre__validation *v, vyre__origin origin,
                        char out[ORIGIN_TEXT]) {
  const vyre__node *node = node_at(v, origin.node);
  const vyre_program *p = v->program;
  char line[24];
  at_line(v, origin.node, line);
  if (origin.by_control) {
    snprintf(out, ORIGIN_TEXT, "which invocations take the '%s'%s",
             vyre__ops[node->op].text, line);
  } else if (vyre__ops[node->op].form == VYRE__FORM_AXIS) {
    snprintf(out, ORIGIN_TEXT, "%s.%c%s", vyre__ops[node->op].text,
             axes[node->aux], line);
  } else if (node->op == VYRE__OP_LOAD) {
    snprintf(out, ORIGIN_TEXT, "'%.60s[...]'%s, which invocations may write",
             p->buffers[node->a].name, line);
    if (vyre__is_constant(&p->buffers[node->a])) {
      snprintf(out, ORIGIN_TEXT, "'%.60s[...]'%s, which the host does not see",
               p->buffers[node->a].name, line);
    }
  } else if (node->op == VYRE__OP_CALL) {
    snprintf(out, ORIGIN_TEXT, "%.60s(), which uses ids,%s",
             p->functions[node->a].name, line);
  } else if (node->op == VYRE__OP_LOCAL) {
    snprintf(out, ORIGIN_TEXT, "'%.60s'%s, which changes",
             p->functions[0].locals[node->a].name, line);
  } else {
    snprintf(out, ORIGIN_TEXT, "%s%s", vyre__ops[node->op].text, line);
  }
}

/* Returns the non-uniform condition or loop bound of a node, or 0. */
static vyre__id divergent_operand(const vyre__validation *v, vyre__id id,
                                  vyre__level level) {
  const uint8_t *value = v->uniformity.value;
  const vyre__node *node = node_at(v, id);
  switch ((vyre__op)node->op) {
    case VYRE__OP_FOR: {
      vyre__for_parts parts = vyre__for_of(v->program, id);
      if (value[parts.first] > level) return parts.first;
      return value[parts.bound] > level ? parts.bound : 0;
    }
    case VYRE__OP_IF:
    case VYRE__OP_WHILE:
    case VYRE__OP_LAND:
    case VYRE__OP_LOR:
    case VYRE__OP_COND:
      return value[node->a] > level ? node->a : 0;
    default:
      return 0;
  }
}

static bool is_jump(const vyre__node *node) {
  return (vyre__ops[node->op].flags & VYRE__OPF_JUMPS) != 0;
}

static const char *op_text(const vyre__validation *v, vyre__id id) {
  return vyre__ops[node_at(v, id)->op].text;
}

/* The reason why invocations reach a node separately. */
typedef struct divergence {
  vyre__id source; /* statement or operator where invocations diverge */
  /* Jump that diverges only because invocations reach it separately after the
   * jump `source`: a `break` behind a divergent `continue`. Otherwise 0. */
  vyre__id later_jump;
  char why[SENTENCE_TEXT];
} divergence;

enum { MAX_JUMP_CHAIN = 16 };

/* Follows jumps that diverge because of an earlier jump to the first one. */
static void find_source(const vyre__validation *v, vyre__id id,
                        divergence *out) {
  const vyre__id *cause = v->uniformity.cause;
  out->source = cause[id] ? cause[id] : id;
  out->later_jump = 0;
  for (int i = 0; i < MAX_JUMP_CHAIN; i++) {
    const vyre__id earlier = cause[out->source];
    if (!is_jump(node_at(v, out->source)) || !earlier ||
        earlier == out->source || !is_jump(node_at(v, earlier))) {
      return;
    }
    out->later_jump = out->source;
    out->source = earlier;
  }
}

/* Explains why control is not uniform at a node. */
static divergence explain(const vyre__validation *v, vyre__id id,
                          vyre__level level) {
  divergence out;
  find_source(v, id, &out);
  vyre__id condition = out.source;
  char origin_text[ORIGIN_TEXT], line[24];
  if (is_jump(node_at(v, out.source)) && v->uniformity.cause[out.source]) {
    condition = v->uniformity.cause[out.source];
  }
  vyre__id operand = divergent_operand(v, condition, level);
  vyre__origin origin = {0};
  if (operand) {
    origin =
        vyre__uniformity_origin(v->program, &v->uniformity, operand, level);
  }
  /* In a loop a condition may depend on itself; that explains nothing. */
  bool is_itself = origin.by_control &&
                   (origin.node == out.source || origin.node == condition);
  if (operand && !is_itself) {
    name_origin(v, origin, origin_text);
  } else {
    snprintf(origin_text, sizeof origin_text,
             "earlier assignments to its variables");
  }
  if (out.source != condition) {
    snprintf(out.why, sizeof out.why,
             "some leave at the '%s'%s, because its '%s' depends on %s",
             op_text(v, out.source), at_line(v, out.source, line),
             op_text(v, condition), origin_text);
  } else {
    snprintf(out.why, sizeof out.why, "the '%s'%s depends on %s",
             op_text(v, condition), at_line(v, out.source, line), origin_text);
  }
  return out;
}

/* Statements around a node. */
typedef struct surroundings {
  /* innermost one that allows no grid_barrier, or 0 */
  vyre__id no_grid_barrier;
  vyre__id loop; /* outermost loop, or 0 */
} surroundings;

static bool contains(const vyre__validation *v, vyre__id root, vyre__id id) {
  if (root == id) return true;
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(v->program, node_at(v, root), storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    if (contains(v, ids[i], id)) return true;
  }
  return false;
}

/* Writes the fix for a jump that comes too early for a later jump. */
static void move_later_jump(const vyre__validation *v, const divergence *d,
                            const char *and_this, char out[FIX_TEXT]) {
  char line[24], later_line[24];
  snprintf(out, FIX_TEXT,
           "move the '%s'%s with its condition%s before the '%s'%s",
           op_text(v, d->later_jump), at_line(v, d->later_jump, later_line),
           and_this, op_text(v, d->source), at_line(v, d->source, line));
}

/* Returns true if invocations diverge by leaving a loop around the node. */
static bool leaves_loop(const vyre__validation *v, const divergence *d,
                        surroundings at) {
  const vyre__node *source = node_at(v, d->source);
  return is_jump(source) && source->op != VYRE__OP_CONTINUE && at.loop &&
         contains(v, at.loop, d->source);
}

/* Writes the fix for a jump out of a loop that must be uniform. */
static void stay_in_loop(const vyre__validation *v, const divergence *d,
                         const char *operation, char out[FIX_TEXT]) {
  char line[24];
  snprintf(out, FIX_TEXT,
           "keep all invocations in the loop: set a variable instead of the "
           "'%s'%s, and make the work, but not the %s, depend on it",
           op_text(v, d->source), at_line(v, d->source, line), operation);
}

static void check_barrier(vyre__validation *v, vyre__id id, surroundings at) {
  if (v->uniformity.control[id] <= VYRE__LEVEL_GROUP) return;
  divergence d = explain(v, id, VYRE__LEVEL_GROUP);
  char fix[FIX_TEXT] =
      "move the barrier out of this statement, or make the condition uniform "
      "with uniform(...)";
  if (d.later_jump && node_at(v, d.source)->op == VYRE__OP_CONTINUE) {
    move_later_jump(v, &d, "", fix);
  } else if (leaves_loop(v, &d, at)) {
    stay_in_loop(v, &d, "barrier", fix);
  } else if (is_jump(node_at(v, d.source))) {
    snprintf(fix, sizeof fix,
             "instead of the jump, put the work between it and the barrier "
             "into an 'if'");
  }
  vyre__find(v, "V100",
             (vyre__validation_site){id, d.source, "invocations diverge here"},
             fix, "not all invocations of a workgroup reach this barrier: %s",
             d.why);
}

/* Writes a fix that works when it is followed to the letter. */
static void uniform_fix(const vyre__validation *v, vyre__id id,
                        const divergence *d, surroundings at,
                        char out[FIX_TEXT]) {
  char line[24];
  const vyre__node *source = node_at(v, d->source);
  const bool continues = source->op == VYRE__OP_CONTINUE;
  if (continues && d->later_jump) {
    move_later_jump(v, d, id > d->source ? ", and this uniform()," : "", out);
  } else if (leaves_loop(v, d, at)) {
    stay_in_loop(v, d, "uniform()", out);
  } else {
    snprintf(out, FIX_TEXT,
             "compute the uniform() before the '%s'%s, and keep the result in "
             "a let",
             op_text(v, d->source), at_line(v, d->source, line));
  }
}

static void check_uniform(vyre__validation *v, vyre__id id, surroundings at) {
  if (v->uniformity.control[id] <= VYRE__LEVEL_GROUP) return;
  divergence d = explain(v, id, VYRE__LEVEL_GROUP);
  char fix[FIX_TEXT];
  uniform_fix(v, id, &d, at, fix);
  vyre__find(v, "V101",
             (vyre__validation_site){id, d.source, "invocations diverge here"},
             fix, "not all invocations of a workgroup reach this uniform(): %s",
             d.why);
}

static void check_exchange(vyre__validation *v, vyre__id id, surroundings at) {
  if (v->uniformity.control[id] <= VYRE__LEVEL_SUBGROUP) return;
  divergence d = explain(v, id, VYRE__LEVEL_SUBGROUP);
  char fix[FIX_TEXT], line[24];
  const bool continues = node_at(v, d.source)->op == VYRE__OP_CONTINUE;
  const char *operation = op_text(v, id);
  if (continues && d.later_jump) {
    move_later_jump(v, &d, "", fix);
  } else if (leaves_loop(v, &d, at)) {
    stay_in_loop(v, &d, operation, fix);
  } else {
    snprintf(fix, sizeof fix,
             "compute it before the '%s'%s, where all lanes run, and let lanes "
             "that must not contribute pass a value that changes nothing, such "
             "as 0",
             op_text(v, d.source), at_line(v, d.source, line));
  }
  vyre__find(
      v, "V118", (vyre__validation_site){id, d.source, "lanes diverge here"},
      fix, "not all lanes of a subgroup reach this %s(): %s", operation, d.why);
}

static void check_grid_barrier(vyre__validation *v, vyre__id id,
                               surroundings at) {
  if (at.no_grid_barrier) {
    const vyre__id around = at.no_grid_barrier;
    bool is_for = node_at(v, around)->op == VYRE__OP_FOR;
    vyre__find(v, "V102",
               (vyre__validation_site){id, around, "inside this statement"},
               is_for ? "compute the bounds from constants, uniforms and len()"
                      : "move it to the top level of the kernel, or into a for "
                        "loop with bounds from constants, uniforms and len()",
               "grid_barrier inside a '%s'%s", op_text(v, around),
               is_for ? " whose bounds the host cannot compute"
                      : "; only the top level and for loops may contain it");
    return;
  }
  if (v->uniformity.control[id] == VYRE__LEVEL_GRID) return;
  divergence d = explain(v, id, VYRE__LEVEL_GRID);
  vyre__find(v, "V103",
             (vyre__validation_site){id, d.source, "invocations diverge here"},
             "instead of the jump, put the work before the grid_barrier into "
             "an 'if'",
             "not all invocations of the dispatch reach this grid_barrier: %s",
             d.why);
}

static void check_queue(vyre__validation *v, vyre__id id) {
  vyre__find(v, "V104", (vyre__validation_site){id, 0, NULL},
             "process each item without the others; exchange data by push or "
             "atomics",
             "%s in queue kernel '%.100s': the last workgroup of a queue may "
             "be partly empty, so its invocations cannot wait for each other",
             vyre__ops[node_at(v, id)->op].text, v->program->name);
}

/* Returns true if the host can compute a value before the launch: operations
 * on constants, uniforms, len() and immutable locals. Follows at most
 * @p lookups locals. */
static bool host_can_compute(const vyre__validation *v, vyre__id id,
                             int *lookups) {
  const vyre__node *node = node_at(v, id);
  if (node->op == VYRE__OP_CALL) return false;
  if (node->op == VYRE__OP_LOCAL) {
    if (v->program->functions[0].locals[node->a].is_mutable) return false;
    if (--*lookups < 0) return false;
    vyre__id value = v->definitions[node->a]; /* 0: loop variable */
    return !value || host_can_compute(v, value, lookups);
  }
  uint32_t count = vyre__child_count(v->program, id);
  for (uint32_t i = 0; i < count; i++) {
    if (!host_can_compute(v, vyre__child(v->program, id, i), lookups))
      return false;
  }
  return true;
}

static bool host_can_compute_bounds(const vyre__validation *v, vyre__id id) {
  int lookups = 16;
  vyre__for_parts parts = vyre__for_of(v->program, id);
  return divergent_operand(v, id, VYRE__LEVEL_GRID) == 0 &&
         host_can_compute(v, parts.first, &lookups) &&
         host_can_compute(v, parts.bound, &lookups);
}

/* Returns the surroundings of a node's children. */
static surroundings inside(const vyre__validation *v, vyre__id id,
                           surroundings at) {
  const vyre__node *node = node_at(v, id);
  const bool is_loop = node->op == VYRE__OP_FOR || node->op == VYRE__OP_WHILE;
  if (is_loop && !at.loop) at.loop = id;
  if (node->op == VYRE__OP_IF || node->op == VYRE__OP_WHILE) {
    at.no_grid_barrier = id;
  }
  bool barriers = (v->effects.functions[0].flags & VYRE__OPF_GRID_BARRIER) != 0;
  if (node->op == VYRE__OP_FOR && barriers && !host_can_compute_bounds(v, id)) {
    at.no_grid_barrier = id;
  }
  return at;
}

static void check(vyre__validation *v, vyre__id id, surroundings at) {
  const vyre__node *node = node_at(v, id);
  uint8_t waits = VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER;
  if (vyre__ops[node->op].flags & waits) {
    if (v->program->item_type != VYRE_TYPE_VOID) {
      check_queue(v, id);
    } else if (node->op == VYRE__OP_BARRIER) {
      check_barrier(v, id, at);
    } else if (node->op == VYRE__OP_UNIFORM) {
      check_uniform(v, id, at);
    } else if (vyre__op_is_exchange(node->op)) {
      check_exchange(v, id, at);
    } else {
      check_grid_barrier(v, id, at);
    }
  }
  at = inside(v, id, at);
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(v->program, node, storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    /* Of these operations, only uniform() and those of subgroups can be inside
     * a value. */
    bool may_contain = v->effects.functions[0].has_uniform ||
                       v->effects.functions[0].has_exchange ||
                       vyre__is_statement(node_at(v, ids[i]));
    if (may_contain) check(v, ids[i], at);
  }
}

void vyre__check_barriers(vyre__validation *v) {
  uint8_t waits = VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER;
  if ((v->effects.functions[0].flags & waits) == 0) return;
  check(v, v->program->functions[0].body, (surroundings){0});
}
