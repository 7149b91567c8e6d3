/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/queue/queue.h"

#include <stdio.h>
#include <string.h>

#include "analyze/inline/inliner.h"
#include "analyze/queue/queue_kernel.h"
#include "analyze/walk.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/queue.h"

/* --- number of pushes ------------------------------------------------------*/

enum { MAX_PUSHES = 1 << 24 };
static const uint64_t unbounded = UINT64_MAX;

typedef struct counter {
  const vyre_program *program;
  vyre__id site; /* a push in a loop without a bound */
} counter;

static const vyre__node *node_at(const vyre_program *program, vyre__id id) {
  return &program->nodes[id];
}

static bool is_push(const vyre__node *node) {
  return node->op == VYRE__OP_PUSH || node->op == VYRE__OP_PUSH_FIELDS;
}

/* Returns a push below a node, or 0. */
static vyre__id find_push(const vyre_program *program, vyre__id id) {
  if (is_push(node_at(program, id))) return id;
  const uint32_t count = vyre__child_count(program, id);
  for (uint32_t i = 0; i < count; i++) {
    vyre__id found = find_push(program, vyre__child(program, id, i));
    if (found) return found;
  }
  return 0;
}

/* Evaluates sums, differences and products of literals. */
static bool constant(const vyre_program *program, vyre__id id, int64_t *out) {
  const vyre__node *node = node_at(program, id);
  int64_t a, b;
  if (node->op == VYRE__OP_LITERAL) {
    const uint64_t bits = vyre__literal(node);
    *out =
        node->type == VYRE_TYPE_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    return node->type != VYRE_TYPE_U64 || bits <= INT64_MAX;
  }
  if (node->op != VYRE__OP_ADD && node->op != VYRE__OP_SUB &&
      node->op != VYRE__OP_MUL) {
    return false;
  }
  if (!constant(program, node->a, &a) || !constant(program, node->b, &b) ||
      a < INT32_MIN || a > INT32_MAX || b < INT32_MIN || b > INT32_MAX) {
    return false;
  }
  *out = node->op == VYRE__OP_ADD   ? a + b
         : node->op == VYRE__OP_SUB ? a - b
                                    : a * b;
  return node->type == VYRE_TYPE_I64 || node->type == VYRE_TYPE_U64
             ? *out >= 0 || node->type == VYRE_TYPE_I64
         : node->type == VYRE_TYPE_I32 ? *out >= INT32_MIN && *out <= INT32_MAX
                                       : *out >= 0 && *out <= UINT32_MAX;
}

/* Returns the number of iterations of a loop with constant bounds. */
static uint64_t trips(const vyre_program *program, vyre__id id) {
  const vyre__node *node = node_at(program, id);
  const vyre__for_parts parts = vyre__for_of(program, id);
  int64_t first, bound, step;
  if (!constant(program, parts.first, &first) ||
      !constant(program, parts.bound, &bound) ||
      !constant(program, parts.step, &step)) {
    return unbounded;
  }
  const bool is_down = node->aux >= VYRE__LOOP_GT;
  const bool is_closed =
      node->aux == VYRE__LOOP_LE || node->aux == VYRE__LOOP_GE;
  const uint64_t low = (uint64_t)(is_down ? bound : first);
  const uint64_t high = (uint64_t)(is_down ? first : bound);
  if ((int64_t)low > (int64_t)high) return 0;
  const uint64_t width = high - low;
  if (is_closed) return width / (uint64_t)step + 1;
  return width / (uint64_t)step + (width % (uint64_t)step != 0);
}

static uint64_t count_pushes(counter *c, vyre__id id);

static uint64_t count_children(counter *c, vyre__id id) {
  uint64_t all = is_push(node_at(c->program, id));
  const uint32_t count = vyre__child_count(c->program, id);
  for (uint32_t i = 0; i < count; i++) {
    const vyre__id child = vyre__child(c->program, id, i);
    all = vyre__add_saturated(all, count_pushes(c, child));
  }
  return all;
}

/* Returns the pushes of a loop that runs @p times with @p each pushes. */
static uint64_t repeat(counter *c, vyre__id id, uint64_t times, uint64_t each) {
  uint64_t all;
  if (each == 0 || times == 0) return 0;
  if (times != unbounded && each != unbounded &&
      vyre__mul_u64(times, each, &all)) {
    return all;
  }
  if (!c->site) c->site = find_push(c->program, id);
  return unbounded;
}

static uint64_t count_pushes(counter *c, vyre__id id) {
  const vyre__node *node = node_at(c->program, id);
  uint64_t a, b;
  switch ((vyre__op)node->op) {
    case VYRE__OP_IF:
      a = count_pushes(c, node->b);
      b = node->c ? count_pushes(c, node->c) : 0;
      return vyre__add_saturated(count_pushes(c, node->a), a > b ? a : b);
    case VYRE__OP_FOR: {
      const vyre__for_parts parts = vyre__for_of(c->program, id);
      a = vyre__add_saturated(count_pushes(c, parts.first),
                              count_pushes(c, parts.bound));
      b = repeat(c, id, trips(c->program, id), count_pushes(c, parts.body));
      return vyre__add_saturated(a, b);
    }
    case VYRE__OP_WHILE:
      a = vyre__add_saturated(count_pushes(c, node->a),
                              count_pushes(c, node->b));
      return repeat(c, id, unbounded, a);
    default:
      return count_children(c, id);
  }
}

bool vyre__queue_pushes(const vyre_program *program, uint32_t *pushes,
                        vyre__id *site) {
  *pushes = 0;
  if (site) *site = 0;
  if (!program->queue || program->function_count == 0) return true;
  if (program->queue->pushes) {
    *pushes = program->queue->pushes;
    return true;
  }
  counter c = {.program = program};
  const uint64_t all = count_pushes(&c, program->functions[0].body);
  if (all <= MAX_PUSHES) {
    *pushes = (uint32_t)all;
    return true;
  }
  if (site) {
    *site = c.site ? c.site : find_push(program, program->functions[0].body);
  }
  return false;
}

/* --- bodies ----------------------------------------------------------------*/

/* A copy of a program whose nodes and lists may be changed. */
typedef struct draft {
  vyre_program program;
  vyre__queue_clauses queue;
  vyre__node *nodes; /* with space for some more */
  uint32_t *lists, *places;
  vyre__source_loc *wide_places;
  vyre__function *functions;
} draft;

/* Nodes that a VISIT body adds for each push. */
enum { NODES_PER_PUSH = 4 };

static bool copy_program(const vyre_program *from, vyre_arena *arena,
                         draft *d) {
  const size_t count =
      from->node_count + (size_t)from->node_count * NODES_PER_PUSH;
  if (count > UINT32_MAX) return false;
  d->program = (vyre_program){.name = from->name,
                              .file = from->file,
                              .files = from->files,
                              .buffers = from->buffers,
                              .buffer_places = from->buffer_places,
                              .buffer_count = from->buffer_count,
                              .over = from->over,
                              .item_type = from->item_type,
                              .queue = &d->queue,
                              .function_count = from->function_count,
                              .node_count = from->node_count,
                              .list_count = from->list_count,
                              .texts = from->texts,
                              .text_count = from->text_count,
                              .is_rich = from->is_rich,
                              .structs = from->structs,
                              .struct_count = from->struct_count,
                              .tables = from->tables,
                              .table_count = from->table_count};
  memcpy(d->program.workgroup, from->workgroup, sizeof from->workgroup);
  d->queue = *from->queue;
  d->queue.by = d->queue.pull = 0;
  d->nodes = vyre__arena_filled(arena, count, sizeof *d->nodes, 0);
  d->lists = vyre__arena_array(arena, from->list_count, sizeof *d->lists);
  d->functions =
      vyre__arena_array(arena, from->function_count, sizeof *d->functions);
  if (from->wide_places) {
    d->wide_places =
        vyre__arena_filled(arena, count, sizeof *d->wide_places, 0);
    if (!d->wide_places) return false;
    memcpy(d->wide_places, from->wide_places,
           from->node_count * sizeof *d->wide_places);
  } else {
    d->places = vyre__arena_filled(arena, count, sizeof *d->places, 0);
    if (!d->places) return false;
    memcpy(d->places, from->places, from->node_count * sizeof *d->places);
  }
  if (!d->nodes || !d->lists || !d->functions) return false;
  memcpy(d->nodes, from->nodes, from->node_count * sizeof *d->nodes);
  if (from->list_count > 0) {
    memcpy(d->lists, from->lists, from->list_count * sizeof *d->lists);
  }
  memcpy(d->functions, from->functions,
         from->function_count * sizeof *d->functions);
  d->program.nodes = d->nodes;
  d->program.lists = d->lists;
  d->program.places = d->places;
  d->program.wide_places = d->wide_places;
  d->program.functions = d->functions;
  return true;
}

/* Returns true if a value changes nothing but the queue. */
static bool is_silent(const vyre_program *program, vyre__id id) {
  const uint8_t effects = VYRE__OPF_WRITES | VYRE__OPF_ATOMICS |
                          VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER |
                          VYRE__OPF_PRINTS;
  if (vyre__ops[node_at(program, id)->op].flags & effects) return false;
  const uint32_t count = vyre__child_count(program, id);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_silent(program, vyre__child(program, id, i))) return false;
  }
  return true;
}

/* Returns true if a statement changes nothing but the queue, and locals from
 * @p first_local on, which are its own. */
static bool is_idle(const vyre_program *program, vyre__id id,
                    uint32_t first_local, bool in_loop) {
  const vyre__node *node = node_at(program, id);
  if (!is_silent(program, id)) return false;
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      for (uint32_t i = 0; i < node->b; i++) {
        if (!is_idle(program, program->lists[node->a + i], first_local,
                     in_loop)) {
          return false;
        }
      }
      return true;
    case VYRE__OP_IF:
      return is_idle(program, node->b, first_local, in_loop) &&
             (!node->c || is_idle(program, node->c, first_local, in_loop));
    case VYRE__OP_FOR:
      if (node->a < first_local) first_local = node->a;
      return is_idle(program, vyre__for_of(program, id).body, first_local,
                     true);
    case VYRE__OP_WHILE:
      return is_idle(program, node->b, first_local, true);
    case VYRE__OP_ASSIGN:
      return node->a >= first_local;
    case VYRE__OP_LET:
    case VYRE__OP_EVAL:
      return true;
    case VYRE__OP_BREAK:
    case VYRE__OP_CONTINUE:
      return in_loop;
    default:
      return false;
  }
}

static vyre__id add_node(draft *d, vyre__id like, vyre__node node) {
  const vyre__id id = d->program.node_count++;
  d->nodes[id] = node;
  if (d->wide_places) {
    d->wide_places[id] = d->wide_places[like];
  } else {
    d->places[id] = d->places[like];
  }
  return id;
}

/* Turns push(key) into the value that it has in a set: key < N. */
static void make_test(draft *d, vyre__id push) {
  vyre__node bound = {
      .op = VYRE__OP_LITERAL, .type = VYRE_TYPE_U32, .a = d->queue.bound};
  if (d->queue.bound_kind == VYRE__BOUND_LEN) {
    bound.op = VYRE__OP_LEN;
  } else if (d->queue.bound_kind == VYRE__BOUND_UNIFORM) {
    const vyre__id zero = add_node(
        d, push, (vyre__node){.op = VYRE__OP_LITERAL, .type = VYRE_TYPE_U32});
    bound.op = VYRE__OP_LOAD;
    bound.b = zero;
  }
  const vyre__id right = add_node(d, push, bound);
  d->nodes[push].op = VYRE__OP_LT;
  d->nodes[push].b = right;
}

/* Removes the pushes of a statement that stays. */
static void drop_pushes(draft *d, vyre__id id);

/* Removes statements that only push from a block. */
static void drop_statements(draft *d, vyre__id block) {
  vyre__node *node = &d->nodes[block];
  uint32_t kept = 0;
  for (uint32_t i = 0; i < node->b; i++) {
    const vyre__id id = d->lists[node->a + i];
    const unsigned op = d->nodes[id].op;
    const bool may_go = op == VYRE__OP_IF || op == VYRE__OP_FOR ||
                        op == VYRE__OP_WHILE || op == VYRE__OP_EVAL;
    if (may_go && is_idle(&d->program, id, UINT32_MAX, false)) continue;
    d->lists[node->a + kept++] = id;
    drop_pushes(d, id);
  }
  node->b = kept;
}

static void drop_pushes(draft *d, vyre__id id) {
  if (d->nodes[id].op == VYRE__OP_BLOCK) {
    drop_statements(d, id);
    return;
  }
  const uint32_t count = vyre__child_count(&d->program, id);
  for (uint32_t i = 0; i < count; i++) {
    drop_pushes(d, vyre__child(&d->program, id, i));
  }
  if (d->nodes[id].op == VYRE__OP_PUSH) make_test(d, id);
  const bool is_test = d->nodes[id].op == VYRE__OP_EVAL &&
                       d->nodes[d->nodes[id].a].op == VYRE__OP_LT;
  if (!is_test) return;
  /* the key has an effect: `if (key < N) {}` computes it */
  const vyre__id empty = add_node(d, id, (vyre__node){.op = VYRE__OP_BLOCK});
  d->nodes[id].op = VYRE__OP_IF;
  d->nodes[id].b = empty;
}

/* Returns true for a loop over u32 numbers that counts up by one, and only
 * pushes. */
static bool is_edge_loop(const vyre_program *program, vyre__id id) {
  const vyre__node *node = node_at(program, id);
  if (node->op != VYRE__OP_FOR || node->aux != VYRE__LOOP_LT) return false;
  const vyre__for_parts parts = vyre__for_of(program, id);
  int64_t step;
  return node_at(program, parts.first)->type == VYRE_TYPE_U32 &&
         constant(program, parts.step, &step) && step == 1 &&
         find_push(program, parts.body) &&
         is_idle(program, id, UINT32_MAX, false);
}

/* Returns the loop of a body whose iterations are the edges of an item, or 0.
 * Locals that it may need are declared without effects. */
static vyre__id find_edges(const vyre_program *program) {
  const vyre__node *body = node_at(program, program->functions[0].body);
  for (uint32_t i = 0; i < body->b; i++) {
    const vyre__id id = program->lists[body->a + i];
    if (is_edge_loop(program, id)) return id;
    if (node_at(program, id)->op == VYRE__OP_LET &&
        (!is_silent(program, id) || find_push(program, id))) {
      return 0;
    }
  }
  return 0;
}

/* Makes a body that pushes the number of iterations of @p loop. */
static void make_weight(draft *d, vyre__id loop) {
  const vyre__node body = d->nodes[d->functions[0].body];
  const vyre__for_parts parts = vyre__for_of(&d->program, loop);
  uint32_t kept = 0;
  for (uint32_t i = 0; d->lists[body.a + i] != loop; i++) {
    const vyre__id id = d->lists[body.a + i];
    if (d->nodes[id].op == VYRE__OP_LET) d->lists[body.a + kept++] = id;
  }
  const vyre__id count = add_node(d, loop,
                                  (vyre__node){.op = VYRE__OP_SUB,
                                               .type = VYRE_TYPE_U32,
                                               .a = parts.bound,
                                               .b = parts.first});
  const vyre__id push = add_node(
      d, loop,
      (vyre__node){.op = VYRE__OP_PUSH, .type = VYRE_TYPE_BOOL, .a = count});
  d->lists[body.a + kept++] =
      add_node(d, loop, (vyre__node){.op = VYRE__OP_EVAL, .a = push});
  d->nodes[d->functions[0].body].b = kept;
}

static void set_part(draft *d, const vyre_program *program,
                     vyre__queue_part_kind kind) {
  static const vyre__queue_field key = {"", VYRE_TYPE_U32};
  if (kind == VYRE__QUEUE_PART_VISIT) {
    drop_pushes(d, d->functions[0].body);
  } else if (kind == VYRE__QUEUE_PART_PULL) {
    d->functions[0] = d->functions[program->queue->pull];
  } else if (kind == VYRE__QUEUE_PART_BY) {
    if (program->queue->by) {
      d->functions[0] = d->functions[program->queue->by];
    } else {
      make_weight(d, find_edges(program));
    }
    d->queue = (vyre__queue_clauses){.kind = VYRE__QUEUE_ORDERED,
                                     .pushes = 1,
                                     .field_count = 1,
                                     .fields = &key,
                                     .part = program->queue->part,
                                     .hidden = program->queue->hidden};
  }
  d->functions[0].name = program->name;
}

bool vyre__queue_has_part(const vyre_program *program,
                          vyre__queue_part_kind kind) {
  const vyre__queue_clauses *queue = program->queue;
  if (!queue) return false;
  if (kind == VYRE__QUEUE_PART_BY)
    return queue->by != 0 || (queue->pull != 0 && find_edges(program) != 0);
  if (kind == VYRE__QUEUE_PART_PUSH) return true;
  return queue->pull != 0;
}

const vyre_program *queue_part_body(const vyre_program *program,
                                    vyre_arena *arena) {
  draft *d = vyre__arena_filled(arena, 1, sizeof *d, 0);
  if (!d || !copy_program(program, arena, d)) return NULL;
  set_part(d, program, (vyre__queue_part_kind)(program->queue->part - 1));
  return &d->program;
}

/* --- programs of bodies ----------------------------------------------------*/

static bool is_taken(const vyre_program *program, const char *name) {
  for (size_t i = 0; i < program->buffer_count; i++) {
    if (strcmp(program->buffers[i].name, name) == 0) return true;
  }
  return false;
}

/* Returns a name that no buffer of the program has. */
static const char *make_name(const vyre_program *program, vyre_arena *arena,
                             const char *stem) {
  enum { NAME_SIZE = 32 };
  char name[NAME_SIZE];
  snprintf(name, sizeof name, "%s", stem);
  for (unsigned i = 1; is_taken(program, name); i++)
    snprintf(name, sizeof name, "%s_%u", stem, i);
  return vyre__arena_text(arena, name);
}

/* Adds the buffers of the queue behind those of a program. */
static bool add_buffers(vyre_program *p, uint32_t hidden, vyre_arena *arena) {
  static const struct {
    const char *name;
    bool is_written;
  } known[VYRE__HIDDEN_COUNT] = {
      [VYRE__HIDDEN_ITEMS] = {"queue_items", false},
      [VYRE__HIDDEN_PLACE] = {"queue_place", false},
      [VYRE__HIDDEN_PUSHED] = {"queue_pushed", true},
      [VYRE__HIDDEN_COUNTS] = {"queue_counts", true},
      [VYRE__HIDDEN_SEEN] = {"queue_seen", false},
      [VYRE__HIDDEN_NEXT] = {"queue_next", true},
      [VYRE__HIDDEN_WINDOW] = {"queue_window", false}};
  const size_t count = p->buffer_count;
  uint32_t binding = 0;
  vyre_buffer_decl *buffers =
      vyre__arena_filled(arena, count + hidden, sizeof *buffers, 0);
  if (!buffers) return false;
  for (size_t i = 0; i < count; i++) {
    buffers[i] = p->buffers[i];
    if (buffers[i].binding >= binding) binding = buffers[i].binding + 1;
  }
  for (uint32_t i = 0; i < hidden; i++) {
    const vyre_access access =
        known[i].is_written ? VYRE_ACCESS_READ_WRITE : VYRE_ACCESS_READ;
    buffers[count + i] =
        (vyre_buffer_decl){.name = make_name(p, arena, known[i].name),
                           .binding = binding + i,
                           .kind = VYRE_MEMORY_GLOBAL,
                           .access = access,
                           .element = VYRE_ELEMENT_U32};
    if (!buffers[count + i].name) return false;
  }
  p->buffers = buffers;
  p->buffer_count = count + hidden;
  p->buffer_places = NULL;
  return true;
}

/* Returns a program that shares the nodes of @p program, and whose clauses name
 * one body. */
static vyre_program *share_program(const vyre_program *program,
                                   vyre__queue_part_kind kind, uint32_t hidden,
                                   vyre_arena *arena) {
  vyre_program *p = vyre_arena_alloc(arena, sizeof *p, 0);
  vyre__queue_clauses *queue = vyre_arena_alloc(arena, sizeof *queue, 0);
  if (!p || !queue) return NULL;
  memcpy(p, program, sizeof *p);
  *queue = *program->queue;
  queue->part = (uint8_t)(1 + kind);
  queue->hidden = hidden;
  p->queue = queue;
  p->origin = NULL;
  atomic_init(&p->references, 1);
  return hidden == 0 || add_buffers(p, hidden, arena) ? p : NULL;
}

static vyre_code make_part(const vyre_program *program,
                           vyre__queue_part_kind kind, uint32_t hidden,
                           uint32_t workgroup, vyre_allocator allocator,
                           vyre_program **out, vyre_status *st) {
  vyre_arena arena;
  *out = NULL;
  vyre_arena_init(&arena, allocator);
  vyre_program *p = share_program(program, kind, hidden, &arena);
  if (!p) {
    vyre_arena_deinit(&arena);
    return vyre__no_memory(st, __func__, "buffers", program->buffer_count);
  }
  p->workgroup[0] = workgroup;
  if (hidden > 0) p->over = VYRE_NO_INDEX;
  p->origin = vyre_program_retain((vyre_program *)program);
  vyre__program_hash(p, &p->fingerprint);
  p->arena = arena;
  *out = p;
  return VYRE_OK;
}

vyre_code vyre__queue_part(const vyre_program *program,
                           vyre__queue_part_kind kind, vyre_allocator allocator,
                           vyre_program **out, vyre_status *st) {
  return make_part(program, kind, 0, program->workgroup[0], allocator, out, st);
}

static void note_lines(const vyre_program *program,
                       vyre__queue_kernel_info *info) {
  for (vyre__id id = 1; id < program->node_count; id++) {
    if (!is_push(node_at(program, id))) continue;
    info->lines[info->line_count++] = vyre__source_loc_of(program, id).line;
    if (info->line_count == VYRE__MAX_PUSH_LINES) return;
  }
}

uint32_t queue_push_number(const vyre_program *program, vyre__id push) {
  uint32_t number = 0;
  for (vyre__id id = 1; id < push && number + 1 < VYRE__MAX_PUSH_LINES; id++)
    number += is_push(node_at(program, id));
  return number;
}

vyre_code vyre__queue_kernel(const vyre_program *program,
                             vyre__queue_part_kind kind, uint32_t hidden,
                             uint32_t workgroup, vyre_allocator allocator,
                             vyre_program **out, vyre__queue_kernel_info *info,
                             vyre_status *st) {
  *info = (vyre__queue_kernel_info){0};
  if (kind == VYRE__QUEUE_PART_BY) {
    info->pushes = 1;
  } else if (!vyre__queue_has_keys(program->queue)) {
    (void)vyre__queue_pushes(program, &info->pushes, NULL);
  }
  note_lines(program, info);
  return make_part(program, kind, hidden, workgroup, allocator, out, st);
}
