/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/queue/queue_order.h"

#include "analyze/inline/inline.h"
#include "analyze/queue/queue.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

/* Index of an access that differs for all items of a window: the key or the
 * position of the item, plus a constant. */
typedef struct own_index {
  uint8_t base; /* ITEM, ITEM_INDEX, or NONE: other items may have it too */
  uint32_t offset;
} own_index;

/* Accesses of a body to one buffer. */
typedef struct traffic {
  vyre__id store, atomic; /* first one that is not `own`; or 0 */
  vyre__id own_write;     /* first write to an element of the item; or 0 */
  own_index own;          /* of own_write */
  uint8_t kind;           /* op of `atomic` */
  bool has_literal;       /* `atomic` exchanges only this literal */
  uint64_t literal;
} traffic;

typedef struct prover {
  const vyre_program *program;
  const vyre__id *values; /* per local: its value, if it is set once */
  traffic *buffers;
  uint8_t kind; /* of the queue, as the body sees it */
  vyre__queue_order *out;
} prover;

static const vyre__node *node_at(const prover *p, vyre__id id) {
  return &p->program->nodes[id];
}

static void doubt(prover *p, vyre__order_doubt why, vyre__id id,
                  vyre__id other) {
  const uint32_t shared =
      (uint32_t)p->program->buffer_count - p->program->hidden_count;
  if (p->out->doubt != VYRE__ORDER_PROVEN) return;
  if (node_at(p, id)->a >= shared) return; /* an array of the invocation */
  *p->out = (vyre__queue_order){.doubt = why,
                                .buffer = node_at(p, id)->a,
                                .place = vyre__source_loc_of(p->program, id)};
  if (other) p->out->other = vyre__source_loc_of(p->program, other);
}

/* --- indices ---------------------------------------------------------------*/

static vyre__id definition(const prover *p, vyre__id id) {
  while (node_at(p, id)->op == VYRE__OP_LOCAL && p->values[node_at(p, id)->a]) {
    id = p->values[node_at(p, id)->a];
  }
  return id;
}

/* Items of a window differ in their position. In sets they differ in their
 * keys, too. */
static bool is_own_base(const prover *p, unsigned op) {
  if (op == VYRE__OP_ITEM_INDEX) return p->kind != VYRE__QUEUE_ANY;
  return op == VYRE__OP_ITEM &&
         (p->kind == VYRE__QUEUE_SET || p->kind == VYRE__QUEUE_ONCE);
}

static own_index index_of(const prover *p, vyre__id id) {
  const vyre__node *node = node_at(p, definition(p, id));
  if (is_own_base(p, node->op)) return (own_index){node->op, 0};
  if (node->op != VYRE__OP_ADD || node->type != VYRE_TYPE_U32) {
    return (own_index){VYRE__OP_NONE, 0};
  }
  const vyre__node *a = node_at(p, definition(p, node->a));
  const vyre__node *b = node_at(p, definition(p, node->b));
  if (a->op == VYRE__OP_LITERAL) {
    const vyre__node *swap = a;
    a = b;
    b = swap;
  }
  if (b->op != VYRE__OP_LITERAL || !is_own_base(p, a->op)) {
    return (own_index){VYRE__OP_NONE, 0};
  }
  return (own_index){a->op, b->a};
}

/* --- writes ----------------------------------------------------------------*/

static bool same_index(own_index a, own_index b) {
  return a.base == b.base && a.offset == b.offset;
}

static bool is_commutative(unsigned op) {
  return op >= VYRE__OP_ATOMIC_ADD && op <= VYRE__OP_ATOMIC_XOR;
}

/* atomic_load is an `or` of 0, which changes nothing. */
static bool is_atomic_load(const prover *p, const vyre__node *node) {
  const vyre__node *value = node_at(p, node->c);
  return node->op == VYRE__OP_ATOMIC_OR && value->op == VYRE__OP_LITERAL &&
         vyre__literal(value) == 0;
}

/* Notes a write to an element of the item. */
static void note_own(prover *p, vyre__id id, own_index index) {
  traffic *t = &p->buffers[node_at(p, id)->a];
  if (!t->own_write) {
    t->own_write = id;
    t->own = index;
  } else if (!same_index(t->own, index)) {
    doubt(p, VYRE__ORDER_STORE, id, t->own_write);
  }
}

static void note_store(prover *p, vyre__id id) {
  const vyre__node *node = node_at(p, id);
  const own_index index = index_of(p, node->b);
  if (index.base != VYRE__OP_NONE) {
    note_own(p, id, index);
    return;
  }
  if (!p->buffers[node->a].store) p->buffers[node->a].store = id;
  doubt(p, VYRE__ORDER_STORE, id, 0);
}

static void note_exchange(prover *p, vyre__id id) {
  const vyre__node *node = node_at(p, id);
  traffic *t = &p->buffers[node->a];
  const vyre__node *value = node_at(p, definition(p, node->c));
  const bool is_literal =
      node->op == VYRE__OP_ATOMIC_EXCHANGE && value->op == VYRE__OP_LITERAL;
  if (!is_literal || (t->has_literal && t->literal != vyre__literal(value))) {
    doubt(p, VYRE__ORDER_EXCHANGE, id, t->atomic);
    return;
  }
  t->has_literal = true;
  t->literal = vyre__literal(value);
}

static void note_atomic(prover *p, vyre__id id, bool is_used) {
  const vyre__node *node = node_at(p, id);
  traffic *t = &p->buffers[node->a];
  const own_index index = index_of(p, node->b);
  if (is_atomic_load(p, node)) return; /* a read; see check_reads */
  if (index.base != VYRE__OP_NONE) {
    note_own(p, id, index);
    return;
  }
  if (is_used) {
    doubt(p, VYRE__ORDER_RESULT, id, 0);
    return;
  }
  if (t->atomic && t->kind != node->op) {
    doubt(p, VYRE__ORDER_MIXED, id, t->atomic);
    return;
  }
  if (!is_commutative(node->op)) note_exchange(p, id);
  if (!t->atomic) t->atomic = id;
  t->kind = node->op;
}

static void note_writes(prover *p, vyre__id id, bool is_used) {
  const vyre__node *node = node_at(p, id);
  const uint32_t count = vyre__child_count(p->program, id);
  for (uint32_t i = 0; i < count; i++) {
    note_writes(p, vyre__child(p->program, id, i), node->op != VYRE__OP_EVAL);
  }
  if (node->op == VYRE__OP_STORE) note_store(p, id);
  if (vyre__ops[node->op].flags & VYRE__OPF_ATOMICS) {
    note_atomic(p, id, is_used);
  }
}

/* --- reads -----------------------------------------------------------------*/

/* Finds reads of elements that other items of the window may write. */
static void check_reads(prover *p, vyre__id id) {
  const vyre__node *node = node_at(p, id);
  const bool reads = node->op == VYRE__OP_LOAD ||
                     ((vyre__ops[node->op].flags & VYRE__OPF_ATOMICS) &&
                      is_atomic_load(p, node));
  if (reads) {
    const traffic *t = &p->buffers[node->a];
    const vyre__id write = t->store ? t->store : t->atomic;
    if (write) {
      doubt(p, VYRE__ORDER_READ, id, write);
    } else if (t->own_write && !same_index(t->own, index_of(p, node->b))) {
      doubt(p, VYRE__ORDER_READ, id, t->own_write);
    }
  }
  const uint32_t count = vyre__child_count(p->program, id);
  for (uint32_t i = 0; i < count; i++) {
    check_reads(p, vyre__child(p->program, id, i));
  }
}

/* Finds buffers that items write in two ways. */
static void check_mixed(prover *p) {
  for (size_t i = 0; i < p->program->buffer_count; i++) {
    const traffic *t = &p->buffers[i];
    if (t->own_write && t->atomic) {
      doubt(p, VYRE__ORDER_STORE_ATOMIC, t->own_write, t->atomic);
    }
  }
}

/* --- the proof -------------------------------------------------------------*/

/* Notes the values of locals that are never assigned. */
static void note_values(const vyre_program *program, vyre__id *values) {
  const vyre__function *kernel = &program->functions[0];
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = &program->nodes[id];
    if (node->op != VYRE__OP_LET || kernel->locals[node->a].is_mutable) {
      continue;
    }
    values[node->a] = node->b;
  }
}

/* Creates one body of a queue kernel, with its calls and aggregates expanded. */
static vyre_code inlined_part(const vyre_program *program,
                              vyre__queue_part_kind kind,
                              vyre_allocator allocator, vyre_program **out,
                              vyre_status *st) {
  vyre_program *part;
  VYRE_TRY(vyre__queue_part(program, kind, allocator, &part, st));
  vyre_code code = vyre__inline(part, allocator, out, st);
  vyre_program_release(part);
  return code;
}

static vyre_code prove_part(const vyre_program *program,
                            vyre__queue_part_kind kind,
                            vyre_allocator allocator, vyre__queue_order *out,
                            vyre_status *st) {
  vyre_program *part;
  VYRE_TRY(inlined_part(program, kind, allocator, &part, st));
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  const size_t locals = part->functions[0].local_count;
  vyre__id *values = vyre__arena_filled(&arena, locals + 1, sizeof *values, 0);
  prover p = {.program = part,
              .values = values,
              .buffers = vyre__arena_filled(&arena, part->buffer_count + 1,
                                            sizeof *p.buffers, 0),
              .kind = part->queue->kind,
              .out = out};
  vyre_code code = VYRE_OK;
  if (values && p.buffers) {
    note_values(part, values);
    note_writes(&p, part->functions[0].body, true);
    check_reads(&p, part->functions[0].body);
    check_mixed(&p);
  } else {
    code = vyre__no_memory(st, "vyre__queue_order_prove", "locals", locals);
  }
  vyre_arena_deinit(&arena);
  vyre_program_release(part);
  return code;
}

vyre_code vyre__queue_order_prove(const vyre_program *program,
                                  vyre_allocator allocator,
                                  vyre__queue_order *out, vyre_status *st) {
  *out = (vyre__queue_order){.doubt = VYRE__ORDER_PROVEN};
  if (!program->queue) return VYRE_OK;
  VYRE_TRY(prove_part(program, VYRE__QUEUE_PART_PUSH, allocator, out, st));
  if (!program->queue->pull || out->doubt != VYRE__ORDER_PROVEN) {
    return VYRE_OK;
  }
  return prove_part(program, VYRE__QUEUE_PART_PULL, allocator, out, st);
}
