/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/uniformity.h"

#include <string.h>

#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

/* Uniformity level and the node that causes it. */
typedef struct fact {
  vyre__id cause;
  uint8_t level;
} fact;

static fact join(fact a, fact b) {
  return b.level > a.level ? b : a;
}

#include "analyze/env.h"

/* Fact of a local where a jump leaves the middle of a loop body. */
typedef struct leaving {
  uint32_t local;
  bool continues; /* false: it breaks */
  fact value;
} leaving;

/* Fact of a local that the end of a loop body passes to its start. */
typedef struct carried {
  uint32_t next; /* index in walker.carried; 0 ends the list */
  uint32_t local;
  fact value;
} carried;

/* Results for one loop. A loop is walked until nothing changes, and again for
 * each walk of the enclosing loop. Results are kept here, so that nested
 * loops need few walks. */
typedef struct loop_facts {
  fact divergence; /* of its iterations */
  uint32_t carried;
} loop_facts;

typedef struct loop_frame {
  struct loop_frame *outer;
  loop_facts *facts;
  size_t changes;    /* env.change_count at the start of the walk */
  uint32_t birthday; /* locals declared later belong to the body */
  /* set after a divergent `continue`, until the end of the iteration */
  fact skipped;
} loop_frame;

typedef struct walker {
  const vyre_program *program;
  const vyre__effects *effects;
  uint8_t *value, *control;
  vyre__id *cause;
  env env;
  uint32_t *born; /* per local: clock at its declaration */
  uint32_t *slot; /* per node: index in loops, 0 before the first walk */
  leaving *leavings;
  size_t leaving_count, leaving_capacity;
  carried *carried;
  size_t carried_count, carried_capacity;
  loop_facts *loops;
  size_t loop_count, loop_capacity;
  loop_frame *loop;
  uint32_t clock;
  fact returned; /* set after a divergent return */
  bool reachable;
  bool memory_changes; /* two loads of one element may differ */
  uint64_t work, work_limit;
} walker;

static fact raise_to(fact control, uint8_t level, vyre__id cause) {
  return level > control.level ? (fact){cause, level} : control;
}

/* --- expressions -----------------------------------------------------------*/

static uint8_t load_level(const walker *w, const vyre__node *node,
                          uint8_t index) {
  const vyre_buffer_decl *buffer = &w->program->buffers[node->a];
  if (!vyre__is_constant(buffer)) return VYRE__LEVEL_VARYING;
  if (buffer->kind == VYRE_MEMORY_UNIFORM ||
      buffer->access == VYRE_ACCESS_UNIFORM || index == VYRE__LEVEL_VARYING) {
    return index;
  }
  if (w->memory_changes) return VYRE__LEVEL_VARYING;
  /* the host does not read other buffers */
  return index > VYRE__LEVEL_GROUP ? index : VYRE__LEVEL_GROUP;
}

static uint8_t call_level(const walker *w, uint32_t function) {
  const vyre__function_effects *f = &w->effects->functions[function];
  uint8_t reads = VYRE__OPF_READS | VYRE__OPF_ATOMICS | VYRE__OPF_PUSHES;
  if (f->has_id || (f->flags & reads)) return VYRE__LEVEL_VARYING;
  return f->has_workgroup_id || f->has_uniform ? VYRE__LEVEL_GROUP
                                               : VYRE__LEVEL_GRID;
}

/* Returns true if the analysis exceeds its limit. A chain of variables that
 * each iteration shifts by one would need as many walks as it has links. From
 * here on, everything that can change counts as varying, and one more walk is
 * enough. */
static bool gives_up(const walker *w) {
  return w->work > w->work_limit;
}

static uint8_t local_level(walker *w, vyre__id id, uint32_t local) {
  w->cause[id] = w->env.locals[local].cause;
  if (gives_up(w) && w->program->functions[0].locals[local].is_mutable) {
    return VYRE__LEVEL_VARYING;
  }
  return w->env.locals[local].level;
}

/* Returns the level of a shuffle or a ballot. */
static uint8_t exchange_level(const walker *w, const vyre__node *node) {
  const uint8_t value = w->value[node->a];
  if (value <= VYRE__LEVEL_SUBGROUP) return value;
  if (node->op == VYRE__OP_BALLOT) return VYRE__LEVEL_SUBGROUP;
  const bool is_one =
      node->op == VYRE__OP_SHUFFLE && w->value[node->b] <= VYRE__LEVEL_SUBGROUP;
  return is_one ? VYRE__LEVEL_SUBGROUP : VYRE__LEVEL_VARYING;
}

/* Returns the level of a node whose operands have at most level @p operands. */
static uint8_t level_of(walker *w, vyre__id id, uint8_t operands) {
  const vyre__node *node = &w->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_LOCAL_ID:
    case VYRE__OP_GLOBAL_ID:
    case VYRE__OP_ITEM:
    case VYRE__OP_ITEM_INDEX:
    case VYRE__OP_LANE:
    case VYRE__OP_IN_WINDOW:
    case VYRE__OP_PUSH:
    case VYRE__OP_PUSH_FIELDS:
      return VYRE__LEVEL_VARYING;
    case VYRE__OP_WORKGROUP_ID:
      return VYRE__LEVEL_GROUP;
    case VYRE__OP_SUBGROUP_ID:
      return VYRE__LEVEL_SUBGROUP;
    case VYRE__OP_SHUFFLE:
    case VYRE__OP_SHUFFLE_XOR:
    case VYRE__OP_SHUFFLE_UP:
    case VYRE__OP_SHUFFLE_DOWN:
    case VYRE__OP_BALLOT:
      return exchange_level(w, node);
    case VYRE__OP_LOAD:
      return load_level(w, node, operands);
    case VYRE__OP_UNIFORM:
      return operands < VYRE__LEVEL_GROUP ? operands : VYRE__LEVEL_GROUP;
    case VYRE__OP_LOCAL:
      return local_level(w, id, node->a);
    case VYRE__OP_CALL: {
      uint8_t own = call_level(w, node->a);
      return own > operands ? own : operands;
    }
    default:
      return vyre__ops[node->op].flags & VYRE__OPF_ATOMICS ? VYRE__LEVEL_VARYING
                                                           : operands;
  }
}

static uint8_t walk_value(walker *w, vyre__id id, fact control) {
  const vyre__node *node = &w->program->nodes[id];
  if (node->op == VYRE__OP_LITERAL) { /* shortcut for the code below */
    w->work++;
    w->control[id] = control.level;
    return w->value[id] = VYRE__LEVEL_GRID;
  }
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(w->program, node, storage, &ids);
  uint8_t operands = VYRE__LEVEL_GRID;
  bool may_skip = node->op == VYRE__OP_LAND || node->op == VYRE__OP_LOR ||
                  node->op == VYRE__OP_COND;
  fact inside = control;
  w->work++;
  for (uint32_t i = 0; i < count; i++) {
    uint8_t level = walk_value(w, ids[i], inside);
    if (level > operands) operands = level;
    /* of the operands that depend on the first one */
    if (may_skip && i == 0) inside = raise_to(control, level, id);
  }
  w->control[id] = control.level;
  if (vyre__ops[node->op].flags & VYRE__OPF_BARRIER) {
    w->cause[id] = control.cause;
  }
  w->value[id] = level_of(w, id, operands);
  return w->value[id];
}

/* --- statements ------------------------------------------------------------*/

static void walk_statement(walker *w, vyre__id id, fact control);

/* Returns the level of control here: of the enclosing statements and of
 * earlier jumps. */
static fact here(const walker *w, fact control) {
  control = join(control, w->returned);
  if (!w->loop) return control;
  return join(join(control, w->loop->facts->divergence), w->loop->skipped);
}

static void walk_if(walker *w, vyre__id id, fact control) {
  const vyre__node *node = &w->program->nodes[id];
  fact inside = raise_to(control, walk_value(w, node->a, control), id);
  fact returned = w->returned;
  size_t begin = w->env.change_count;
  env_open(&w->env);
  walk_statement(w, node->b, inside);
  bool first_ends = w->reachable;
  fact first_returned = w->returned;
  size_t middle = w->env.change_count;
  env_leave_arm(&w->env, begin, middle);
  w->returned = returned;
  w->reachable = true;
  if (node->c) walk_statement(w, node->c, inside);
  if (first_ends && w->reachable) {
    env_join_arms(&w->env, begin, middle);
  } else if (first_ends) {
    env_take_first_arm(&w->env, begin, middle);
  }
  w->returned = join(w->returned, first_returned);
  w->reachable |= first_ends;
  env_close(&w->env);
}

/* Records the facts of the changed locals where a jump leaves the body. */
static void note_leaving(walker *w, bool continues) {
  const loop_frame *loop = w->loop;
  /* everything that can change counts as varying then */
  if (gives_up(w)) return;
  size_t count = w->env.change_count - loop->changes;
  if (!vyre__reserve(w->env.allocator, &w->leavings, &w->leaving_capacity,
                     w->leaving_count + count, sizeof *w->leavings, false)) {
    w->env.no_memory = true;
    return;
  }
  for (size_t i = loop->changes; i < w->env.change_count; i++) {
    uint32_t local = w->env.changes[i].local;
    if (w->born[local] >= loop->birthday) continue;
    w->leavings[w->leaving_count++] =
        (leaving){local, continues, w->env.locals[local]};
  }
  w->work += count;
}

static void walk_jump(walker *w, vyre__id id, fact control) {
  vyre__op op = w->program->nodes[id].op;
  fact jump =
      control.level > VYRE__LEVEL_GRID ? (fact){id, control.level} : (fact){0};
  if (op == VYRE__OP_RETURN) {
    w->returned = join(w->returned, jump);
  } else if (w->loop) { /* break and continue are inside loops */
    bool continues = op == VYRE__OP_CONTINUE;
    fact *left = continues ? &w->loop->skipped : &w->loop->facts->divergence;
    *left = join(*left, jump);
    note_leaving(w, continues);
  }
  w->reachable = false;
}

static loop_facts *facts_of_loop(walker *w, vyre__id id) {
  if (w->slot[id] == 0) w->slot[id] = (uint32_t)++w->loop_count;
  return &w->loops[w->slot[id]];
}

/* Adds a fact that the loop passes to its next iteration. Returns false if it
 * is known. */
static bool carry(walker *w, loop_facts *facts, uint32_t local, fact value) {
  if (value.level <= w->env.locals[local].level) return false;
  if (!vyre__reserve(w->env.allocator, &w->carried, &w->carried_capacity,
                     w->carried_count + 1, sizeof *w->carried, false)) {
    w->env.no_memory = true;
    return false;
  }
  w->carried[w->carried_count] = (carried){facts->carried, local, value};
  facts->carried = (uint32_t)w->carried_count++;
  env_set(&w->env, local, value);
  return true;
}

/* Ends a walk of the body. Returns true if a fact is worse than the walk
 * assumed. */
static bool close_loop(walker *w, loop_frame *loop, size_t leavings,
                       fact before) {
  if (w->reachable) note_leaving(w, true);
  env_rewind(&w->env, loop->changes);
  bool changed = false;
  for (size_t i = leavings; i < w->leaving_count; i++) {
    const leaving *l = &w->leavings[i];
    if (l->continues) changed |= carry(w, loop->facts, l->local, l->value);
  }
  loop->facts->divergence = join(loop->facts->divergence, w->returned);
  return changed || loop->facts->divergence.level > before.level;
}

/* Walks the header and the body of a loop once. */
static void walk_iteration(walker *w, vyre__id id, fact base) {
  const vyre__node *node = &w->program->nodes[id];
  fact head = join(join(base, w->loop->facts->divergence), w->returned);
  vyre__id body = node->b;
  w->reachable = true;
  /* All invocations that continued take part in the next iteration. */
  w->loop->skipped = (fact){0};
  if (node->op == VYRE__OP_FOR) {
    vyre__for_parts parts = vyre__for_of(w->program, id);
    fact first = {id, w->value[parts.first]};
    body = parts.body;
    w->born[node->a] = w->clock;
    env_set(&w->env, node->a, join(first, head));
  } else {
    uint8_t level = walk_value(w, node->a, head);
    if (level > head.level) {
      head = (fact){id, level};
      w->loop->facts->divergence = join(w->loop->facts->divergence, head);
    }
  }
  walk_statement(w, body, head);
}

/* Sets the locals after the loop: joined from its header and its breaks. */
static void leave_loop(walker *w, size_t leavings) {
  for (size_t i = leavings; i < w->leaving_count; i++) {
    const leaving *l = &w->leavings[i];
    if (l->continues) continue;
    if (l->value.level > w->env.locals[l->local].level) {
      env_set(&w->env, l->local, l->value);
    }
  }
  w->leaving_count = leavings;
}

static void begin_loop(walker *w, loop_frame *loop, vyre__id id) {
  uint32_t next = loop->facts->carried;
  for (; next && w->carried; next = w->carried[next].next) {
    const carried c = w->carried[next];
    if (c.value.level > w->env.locals[c.local].level) {
      env_set(&w->env, c.local, c.value);
    }
  }
  if (gives_up(w)) {
    loop->facts->divergence =
        raise_to(loop->facts->divergence, VYRE__LEVEL_VARYING, id);
  }
}

static void walk_loop(walker *w, vyre__id id, fact control) {
  fact base = control;
  if (w->program->nodes[id].op == VYRE__OP_FOR) {
    vyre__for_parts parts = vyre__for_of(w->program, id);
    base = raise_to(base, walk_value(w, parts.first, control), id);
    base = raise_to(base, walk_value(w, parts.bound, control), id);
    walk_value(w, parts.step, control);
  }
  loop_frame loop = {
      .outer = w->loop, .facts = facts_of_loop(w, id), .birthday = ++w->clock};
  size_t leavings = w->leaving_count;
  w->loop = &loop;
  env_open(&w->env);
  bool changed = true;
  while (changed && !w->env.no_memory) {
    w->leaving_count = leavings;
    begin_loop(w, &loop, id);
    loop.changes = w->env.change_count;
    fact before = loop.facts->divergence;
    bool gave_up = gives_up(w);
    walk_iteration(w, id, base);
    changed = close_loop(w, &loop, leavings, before);
    changed = !gave_up && (changed || gives_up(w));
  }
  leave_loop(w, leavings);
  w->loop = loop.outer;
  env_close(&w->env);
  w->reachable = true;
}

static void walk_set(walker *w, vyre__id id, fact control) {
  const vyre__node *node = &w->program->nodes[id];
  fact value = {id, walk_value(w, node->b, control)};
  if (value.level == VYRE__LEVEL_GRID) value.cause = 0;
  if (node->op == VYRE__OP_LET) w->born[node->a] = w->clock;
  /* Invocations that do not execute this keep the old value. */
  if (control.level > value.level) value = (fact){id, control.level};
  env_set(&w->env, node->a, value);
}

static void walk_block(walker *w, vyre__id id, fact control) {
  const vyre__node *node = &w->program->nodes[id];
  const vyre__id *ids = w->program->lists + node->a;
  for (uint32_t i = 0; i < node->b; i++) walk_statement(w, ids[i], control);
}

/* Records the control level of a node. In the second walk of a loop, a
 * divergent jump is the cause of its own divergence; the condition found in
 * the first walk explains more and is kept. */
static void note_control(walker *w, vyre__id id, fact now) {
  bool jumps = vyre__ops[w->program->nodes[id].op].flags & VYRE__OPF_JUMPS;
  bool is_known = w->cause[id] && w->control[id] == now.level;
  w->control[id] = now.level;
  if (!jumps || !is_known) w->cause[id] = now.cause;
}

static void walk_statement(walker *w, vyre__id id, fact control) {
  fact now = here(w, control);
  note_control(w, id, now);
  w->work++;
  switch ((vyre__op)w->program->nodes[id].op) {
    case VYRE__OP_BLOCK:
      walk_block(w, id, control);
      break;
    case VYRE__OP_LET:
    case VYRE__OP_ASSIGN:
      walk_set(w, id, now);
      break;
    case VYRE__OP_IF:
      walk_if(w, id, now);
      break;
    case VYRE__OP_FOR:
    case VYRE__OP_WHILE:
      walk_loop(w, id, now);
      break;
    case VYRE__OP_BREAK:
    case VYRE__OP_CONTINUE:
    case VYRE__OP_RETURN:
      walk_jump(w, id, now);
      break;
    case VYRE__OP_TEXT:
      break;
    default: { /* stores, atomics, prints, barriers */
      vyre__id storage[3];
      const vyre__id *ids;
      uint32_t count =
          vyre__children(w->program, &w->program->nodes[id], storage, &ids);
      for (uint32_t i = 0; i < count; i++) walk_value(w, ids[i], now);
    }
  }
}

/* --- program ---------------------------------------------------------------*/

/* Walks the kernel up to the statement with node @p last. Later statements do
 * not affect earlier ones. */
static void walk_kernel(walker *w, vyre__id last) {
  vyre__id body = w->program->functions[0].body;
  const vyre__node *block = &w->program->nodes[body];
  const vyre__id *ids = w->program->lists + block->a;
  note_control(w, body, (fact){0});
  w->work++;
  for (uint32_t i = 0; i < block->b; i++) {
    walk_statement(w, ids[i], (fact){0});
    if (ids[i] >= last) return;
  }
}

static void *zeroed(vyre_arena *arena, size_t count, size_t size) {
  void *array = vyre__arena_array(arena, count, size);
  if (array) memset(array, 0, count * size);
  return array;
}

static bool reserve(walker *w, vyre_arena *arena, vyre__arena_mark *end) {
  size_t nodes = w->program->node_count;
  size_t locals = w->program->functions[0].local_count;
  w->value = vyre__arena_array(arena, nodes, 1);
  w->control = vyre__arena_array(arena, nodes, 1);
  w->cause = zeroed(arena, nodes, sizeof *w->cause);
  *end = vyre__arena_here(arena);
  w->env.locals = zeroed(arena, locals, sizeof *w->env.locals);
  w->born = zeroed(arena, locals, sizeof *w->born);
  w->env.seen = zeroed(arena, locals, sizeof *w->env.seen);
  w->slot = zeroed(arena, nodes, sizeof *w->slot);
  w->loops = zeroed(arena, (size_t)w->effects->functions[0].loops + 1,
                    sizeof *w->loops);
  if (!w->value || !w->control || !w->cause || !w->env.locals || !w->born ||
      !w->env.seen || !w->slot || !w->loops) {
    return false;
  }
  memset(w->value, VYRE__LEVEL_VARYING, nodes); /* for nodes of functions */
  memset(w->control, VYRE__LEVEL_VARYING, nodes);
  return true;
}

static void walker_deinit(walker *w) {
  env_deinit(&w->env);
  vyre__reserve_free(w->env.allocator, &w->leavings, &w->leaving_capacity,
                     sizeof *w->leavings);
  vyre__reserve_free(w->env.allocator, &w->carried, &w->carried_capacity,
                     sizeof *w->carried);
}

static vyre_code build(const vyre_program *program,
                       const vyre__effects *effects, vyre__id last,
                       bool memory_changes, vyre_arena *arena,
                       vyre__uniformity *out, vyre_status *st) {
  vyre__arena_mark start = vyre__arena_here(arena), end = start;
  walker w = {.program = program,
              .effects = effects,
              .env.allocator = arena->allocator,
              .carried_count = 1, /* 0 ends lists */
              .clock = 1,
              .reachable = true,
              .memory_changes = memory_changes,
              .work_limit = 64 * (uint64_t)program->node_count + 4096};
  *out = (vyre__uniformity){0};
  w.env.no_memory = !reserve(&w, arena, &end);
  if (!w.env.no_memory) {
    walk_kernel(&w, last);
  }
  walker_deinit(&w);
  vyre__arena_rewind(arena, w.env.no_memory ? start : end);
  if (w.env.no_memory) {
    return vyre__no_memory(st, "vyre__uniformity_build", "uniformity facts",
                           program->node_count);
  }
  *out = (vyre__uniformity){w.value, w.control, w.cause};
  return VYRE_OK;
}

vyre_code vyre__uniformity_build(const vyre_program *program,
                                 const vyre__effects *effects,
                                 vyre_arena *arena, vyre__uniformity *out,
                                 vyre_status *st) {
  return build(program, effects, UINT32_MAX, false, arena, out, st);
}

vyre_code vyre__uniformity_build_changing(const vyre_program *program,
                                          const vyre__effects *effects,
                                          vyre_arena *arena,
                                          vyre__uniformity *out,
                                          vyre_status *st) {
  return build(program, effects, UINT32_MAX, true, arena, out, st);
}

vyre_code vyre__uniformity_build_to(const vyre_program *program,
                                    const vyre__effects *effects, vyre__id last,
                                    vyre_arena *arena, vyre__uniformity *out,
                                    vyre_status *st) {
  return build(program, effects, last, false, arena, out, st);
}

/* --- origins ---------------------------------------------------------------*/

/* Search for the origin of a value, first operands first. Facts of a loop can
 * depend on each other in a cycle, so visited statements are recorded;
 * nothing new follows from them. Entries that do not fit are dropped: there
 * are several answers then, and each is correct. */
typedef struct search {
  const vyre_program *program;
  const vyre__uniformity *facts;
  uint8_t level;
  vyre__id been[64], todo[256];
  unsigned been_count, todo_count;
} search;

static bool is_new(search *s, vyre__id set) {
  for (unsigned i = 0; i < s->been_count; i++) {
    if (s->been[i] == set) return false;
  }
  if (s->been_count == sizeof s->been / sizeof s->been[0]) return false;
  s->been[s->been_count++] = set;
  return true;
}

/* Adds a value to the search if it is above the level. */
static bool suspect(search *s, vyre__id id) {
  if (s->facts->value[id] <= s->level) return false;
  if (s->todo_count < sizeof s->todo / sizeof s->todo[0]) {
    s->todo[s->todo_count++] = id;
  }
  return true;
}

/* Follows a local to the value that was assigned to it. Returns true and sets
 * *out if the control flow around the assignment is the origin instead. */
static bool look_at_local(search *s, vyre__id id, vyre__origin *out) {
  vyre__id set = s->facts->cause[id], from = 0;
  if (!set || !is_new(s, set)) return false;
  const vyre__node *node = &s->program->nodes[set];
  if (node->op == VYRE__OP_LET || node->op == VYRE__OP_ASSIGN) {
    from = node->b;
  } else if (node->op == VYRE__OP_FOR) {
    from = vyre__for_of(s->program, set).first;
  }
  if (from && suspect(s, from)) return false;
  vyre__id parting = from ? s->facts->cause[set] : set;
  *out = (vyre__origin){parting ? parting : set, true};
  return true;
}

vyre__origin vyre__uniformity_origin(const vyre_program *program,
                                     const vyre__uniformity *facts, vyre__id id,
                                     vyre__level level) {
  search s = {.program = program, .facts = facts, .level = (uint8_t)level};
  vyre__origin origin = {id, false};
  vyre__id variable = 0; /* result if the search finds no origin */
  bool by_control = false;
  (void)suspect(&s, id);
  while (s.todo_count > 0) {
    vyre__id now = s.todo[--s.todo_count];
    bool any = false;
    if (program->nodes[now].op == VYRE__OP_LOCAL) {
      if (!variable) variable = now;
      /* In a loop that is left by a jump, everything depends on that jump
       * again. An earlier origin explains more. */
      vyre__origin parting;
      if (look_at_local(&s, now, &parting) && !by_control) {
        origin = parting;
        by_control = true;
      }
      continue;
    }
    for (uint32_t i = vyre__child_count(program, now); i > 0; i--) {
      if (suspect(&s, vyre__child(program, now, i - 1))) any = true;
    }
    if (!any) return (vyre__origin){now, false};
  }
  if (by_control) return origin;
  return (vyre__origin){variable ? variable : id, false};
}
