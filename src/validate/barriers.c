/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where all invocations must meet: barrier(), uniform(), grid_barrier(). */
#include <stdio.h>

#include "analyze/walk.h"
#include "base/status.h"
#include "validate/validate.h"

enum { WHY_TEXT = 200, SENTENCE_TEXT = 400 };

static const char axes[] = "xyz";

static const vyre__node *node_at(const vyre__validation *v, vyre__id id) {
  return &v->program->nodes[id];
}

/* " at line 7", or nothing for a program without a source. */
static const char *at_line(const vyre__validation *v, vyre__id id,
                           char out[24]) {
  out[0] = 0;
  if (vyre__line_of(v, id)) {
    snprintf(out, 24, " at line %u", (unsigned)vyre__line_of(v, id));
  }
  return out;
}

/* What a value depends on, that is not the same for all: "local_id.x at line
 * 7". */
static void name_origin(const vyre__validation *v, vyre__origin origin,
                        char out[WHY_TEXT]) {
  const vyre__node *node = node_at(v, origin.node);
  const vyre_program *p = v->program;
  char line[24];
  at_line(v, origin.node, line);
  if (origin.by_control) {
    snprintf(out, WHY_TEXT, "which invocations pass the '%s'%s",
             vyre__ops[node->op].text, line);
  } else if (vyre__ops[node->op].form == VYRE__FORM_AXIS) {
    snprintf(out, WHY_TEXT, "%s.%c%s", vyre__ops[node->op].text,
             axes[node->aux], line);
  } else if (node->op == VYRE__OP_LOAD) {
    snprintf(out, WHY_TEXT, "'%.60s[...]'%s, which invocations may write",
             p->buffers[node->a].name, line);
    if (vyre__is_constant(&p->buffers[node->a])) {
      snprintf(out, WHY_TEXT, "'%.60s[...]'%s, which the host does not see",
               p->buffers[node->a].name, line);
    }
  } else if (node->op == VYRE__OP_CALL) {
    snprintf(out, WHY_TEXT, "%.60s(), which uses ids,%s",
             p->functions[node->a].name, line);
  } else if (node->op == VYRE__OP_LOCAL) {
    snprintf(out, WHY_TEXT, "'%.60s'%s, which changes",
             p->functions[0].locals[node->a].name, line);
  } else {
    snprintf(out, WHY_TEXT, "%s%s", vyre__ops[node->op].text, line);
  }
}

/* The expression by which a statement parts the invocations, or 0. */
static vyre__id guilty_expression(const vyre__validation *v, vyre__id parting,
                                  vyre__level level) {
  const uint8_t *value = v->uniformity.value;
  const vyre__node *node = node_at(v, parting);
  switch ((vyre__op)node->op) {
    case VYRE__OP_FOR: {
      vyre__for_parts parts = vyre__for_of(v->program, parting);
      if (value[parts.first] > level) return parts.first;
      return value[parts.bound] > level ? parts.bound : 0;
    }
    case VYRE__OP_IF:
    case VYRE__OP_WHILE:
    case VYRE__OP_LAND:
    case VYRE__OP_LOR:
      return value[node->a] > level ? node->a : 0;
    default:
      return 0;
  }
}

static bool is_jump(const vyre__node *node) {
  return (vyre__ops[node->op].flags & VYRE__OPF_JUMPS) != 0;
}

/* Why control is not uniform at @p id: the statement or operator that parts the
 * invocations, and a sentence about it. */
static vyre__id explain(const vyre__validation *v, vyre__id id,
                        vyre__level level, char out[SENTENCE_TEXT]) {
  vyre__id parting = v->uniformity.cause[id];
  if (!parting) parting = id;
  vyre__id condition = parting;
  char why[WHY_TEXT], line[24];
  if (is_jump(node_at(v, parting)) && v->uniformity.cause[parting]) {
    condition = v->uniformity.cause[parting];
  }
  vyre__id guilty = guilty_expression(v, condition, level);
  vyre__origin origin = {0};
  if (guilty) {
    origin = vyre__uniformity_origin(v->program, &v->uniformity, guilty, level);
  }
  /* That it depends on itself, as in a loop it does, tells nothing. */
  bool is_itself =
      origin.by_control && (origin.node == parting || origin.node == condition);
  if (guilty && !is_itself) {
    name_origin(v, origin, why);
  } else {
    snprintf(why, sizeof why, "what its variables were assigned before");
  }
  const char *op = vyre__ops[node_at(v, condition)->op].text;
  if (parting != condition) {
    snprintf(out, SENTENCE_TEXT,
             "only some come past the '%s'%s, because its '%s' depends on %s",
             vyre__ops[node_at(v, parting)->op].text, at_line(v, parting, line),
             op, why);
  } else {
    snprintf(out, SENTENCE_TEXT, "the '%s'%s depends on %s", op,
             at_line(v, parting, line), why);
  }
  return parting;
}

static void check_barrier(vyre__validation *v, vyre__id id) {
  if (v->uniformity.control[id] <= VYRE__LEVEL_GROUP) return;
  char why[SENTENCE_TEXT];
  vyre__id parting = explain(v, id, VYRE__LEVEL_GROUP, why);
  vyre__find(
      v, "V100", (vyre__validation_site){id, parting, "parts the workgroup"},
      is_jump(node_at(v, parting))
          ? "put the work between the jump and the barrier under a "
            "condition instead of jumping past it"
          : "move the barrier out of it, so that all invocations come "
            "to it, or make the condition uniform with uniform(...)",
      "not all invocations of a workgroup come to this barrier: %s", why);
}

static void check_uniform(vyre__validation *v, vyre__id id) {
  if (v->uniformity.control[id] <= VYRE__LEVEL_GROUP) return;
  char why[SENTENCE_TEXT];
  vyre__id parting = explain(v, id, VYRE__LEVEL_GROUP, why);
  vyre__find(
      v, "V101", (vyre__validation_site){id, parting, "parts the workgroup"},
      "compute the uniform() before, into a let that all invocations "
      "reach",
      "not all invocations of a workgroup come to this uniform(): %s", why);
}

/* What a grid_barrier stands in: the innermost statement that it may not, or 0.
 */
typedef struct place {
  vyre__id wrong;
} place;

static void check_grid_barrier(vyre__validation *v, vyre__id id, place at) {
  char why[SENTENCE_TEXT];
  if (at.wrong) {
    const vyre__node *around = node_at(v, at.wrong);
    bool is_for = around->op == VYRE__OP_FOR;
    vyre__find(v, "V102",
               (vyre__validation_site){id, at.wrong, "it stands in this"},
               is_for ? "take the bounds from constants, uniforms and len()"
                      : "move it to the top level of the kernel, or into a for "
                        "loop with bounds from constants, uniforms and len()",
               "grid_barrier stands in a '%s'%s", vyre__ops[around->op].text,
               is_for ? " whose bounds the host cannot know"
                      : "; it may only stand at the top level or in for loops");
    return;
  }
  if (v->uniformity.control[id] == VYRE__LEVEL_GRID) return;
  vyre__id parting = explain(v, id, VYRE__LEVEL_GRID, why);
  vyre__find(v, "V103",
             (vyre__validation_site){id, parting, "parts the dispatch"},
             "let all invocations come here: put the work before under a "
             "condition instead of jumping past it",
             "not all invocations of the dispatch come to this grid_barrier: "
             "%s",
             why);
}

static void check_queue(vyre__validation *v, vyre__id id) {
  vyre__find(v, "V104", (vyre__validation_site){id, 0, NULL},
             "let each item do its work alone; pass data on by push or "
             "atomics",
             "%s in queue kernel '%.100s': the last workgroup of a queue may "
             "not be full, so its invocations cannot wait for each other",
             vyre__ops[node_at(v, id)->op].text, v->program->name);
}

/* Whether the host can compute it before the launch: operations on constants,
 * uniforms and len(), by way of locals that never change. @p lookups limits how
 * many of those are followed. */
static bool host_knows(const vyre__validation *v, vyre__id id, int *lookups) {
  const vyre__node *node = node_at(v, id);
  if (node->op == VYRE__OP_CALL) return false;
  if (node->op == VYRE__OP_LOCAL) {
    if (v->program->functions[0].locals[node->a].is_mutable) return false;
    if (--*lookups < 0) return false;
    vyre__id value = v->definitions[node->a]; /* none: a loop's own variable */
    return !value || host_knows(v, value, lookups);
  }
  uint32_t count = vyre__child_count(v->program, id);
  for (uint32_t i = 0; i < count; i++) {
    if (!host_knows(v, vyre__child(v->program, id, i), lookups)) return false;
  }
  return true;
}

static bool host_knows_bounds(const vyre__validation *v, vyre__id id) {
  int lookups = 16;
  vyre__for_parts parts = vyre__for_of(v->program, id);
  return guilty_expression(v, id, VYRE__LEVEL_GRID) == 0 &&
         host_knows(v, parts.first, &lookups) &&
         host_knows(v, parts.bound, &lookups);
}

/* What the children of a node stand in. */
static place inside(const vyre__validation *v, vyre__id id, place at) {
  const vyre__node *node = node_at(v, id);
  if (node->op == VYRE__OP_IF || node->op == VYRE__OP_WHILE) at.wrong = id;
  bool barriers = (v->effects.functions[0].flags & VYRE__OPF_GRID_BARRIER) != 0;
  if (node->op == VYRE__OP_FOR && barriers && !host_knows_bounds(v, id)) {
    at.wrong = id;
  }
  return at;
}

static void check(vyre__validation *v, vyre__id id, place at) {
  const vyre__node *node = node_at(v, id);
  uint8_t meets = VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER;
  if (vyre__ops[node->op].flags & meets) {
    if (v->program->item_type != VYRE_TYPE_VOID) {
      check_queue(v, id);
    } else if (node->op == VYRE__OP_BARRIER) {
      check_barrier(v, id);
    } else if (node->op == VYRE__OP_UNIFORM) {
      check_uniform(v, id);
    } else {
      check_grid_barrier(v, id, at);
    }
  }
  at = inside(v, id, at);
  vyre__id room[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(v->program, node, room, &ids);
  for (uint32_t i = 0; i < count; i++) {
    /* In values there is only uniform() to be found. */
    bool matters = v->effects.functions[0].has_uniform ||
                   vyre__is_statement(node_at(v, ids[i]));
    if (matters) check(v, ids[i], at);
  }
}

void vyre__check_barriers(vyre__validation *v) {
  uint8_t meets = VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER;
  if ((v->effects.functions[0].flags & meets) == 0) return;
  check(v, v->program->functions[0].body, (place){0});
}
