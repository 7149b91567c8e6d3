/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `row-walk`: each lane walks along a row of its own,
 *
 *   for (let j = 0u; j < columns; j++) sum += a[i * columns + j] * x[j];
 *
 * which is a gather in every iteration. Instead, the code generator loads the
 * next elements of every row with one vector per row, transposes the block, and
 * takes one vector of it in each iteration.
 *
 * The index is a sum of values that are the same in all lanes, one of which
 * grows with the counter of the loop, and of values that the loop does not
 * change. Elements are loaded before their iteration, and some are never used, so
 * the loop must not write to the buffer. A block is inside the buffer or is not
 * loaded. */
#include "spmd/schedule_internal.h"

enum {
  MAX_DEPTH = 12,
  MAX_STEP = 2,   /* elements an iteration, so that most of a block is used */
  MIN_TRIPS = 8,  /* iterations that pay for a block */
  MAX_WALKS = 4,  /* loads of a loop: blocks are on the stack */
  MAX_SLOPE = 64, /* bound on intermediate results */
  MAX_EFFORT =
      4096, /* values looked at for one load, or 64 instructions each */
};

/* Takes from the effort that is left. Returns false when there is too little. */
static bool spend(uint32_t *effort, uint32_t count) {
  if (*effort <= count) *effort = 0;
  if (*effort == 0) return false;
  *effort -= count;
  return true;
}

/* Returns true if @p v, which instruction @p use reads, is the same in all
 * iterations of the LOOP at @p loop. */
static bool is_invariant(const vyre__schedule *s, vyre__val v, uint32_t loop,
                         unsigned depth, uint32_t *effort) {
  const vyre__lir_inst *inst = inst_at(s, v);
  uint32_t end = vyre__end_of(&s->r, loop);
  if (v < loop) return true;
  if (!spend(effort, 1)) return false;
  if (depth == MAX_DEPTH || v >= end) return false;
  if (inst->op == VYRE__LIR_GET) {
    if (!spend(effort, (end - loop) / 64)) return false;
    for (uint32_t at = loop; at < end; at++) {
      if (is_op(s, at, VYRE__LIR_SET) && inst_at(s, at)->aux == inst->aux) {
        return false;
      }
    }
    return true;
  }
  if (!(flags_at(s, v) & VYRE__LIRF_PURE)) return false;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    if (!is_invariant(s, inst->v[i], loop, depth + 1, effort)) return false;
  }
  return true;
}

/* Returns by how much @p v, which lanes share, grows at most in an iteration;
 * -1: unknown. */
static int32_t slope_of(const vyre__schedule *s, vyre__val v, uint32_t loop,
                        unsigned depth, uint32_t *effort) {
  const vyre__lir_inst *inst = inst_at(s, v);
  const vyre__lir_loop *of = &s->kernel->loops[inst_at(s, loop)->aux];
  if (is_invariant(s, v, loop, 0, effort)) return 0;
  if (depth == MAX_DEPTH || inst->type != VYRE_TYPE_U32) return -1;
  bool selects = inst->op == VYRE__LIR_SELECT;
  int32_t a = -1, b = -1;
  switch (inst->op) {
    case VYRE__LIR_GET:
      if (!of->is_counted || of->var != inst->aux) return -1;
      return of->step <= MAX_STEP ? (int32_t)of->step : -1;
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB:
    case VYRE__LIR_MIN_U:
    case VYRE__LIR_MIN_S:
    case VYRE__LIR_MAX_U:
    case VYRE__LIR_MAX_S:
    case VYRE__LIR_SELECT:
      a = slope_of(s, selects ? inst->b : inst->a, loop, depth + 1, effort);
      if (a < 0) return -1;
      b = slope_of(s, selects ? inst->c : inst->b, loop, depth + 1, effort);
      break;
    default:
      return -1;
  }
  if (a < 0 || b < 0 || a > MAX_SLOPE || b > MAX_SLOPE) return -1;
  bool adds = inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB;
  return adds ? a + b : a > b ? a : b;
}

static bool add_part(vyre__walk *walk, vyre__val v, bool is_negative) {
  if (walk->count == VYRE__WALK_PARTS) return false;
  walk->parts[walk->count] = v;
  walk->is_negative[walk->count++] = is_negative;
  return true;
}

/* Finds the terms of @p v that lanes share. */
static bool find_parts(const vyre__schedule *s, vyre__val v, uint32_t loop,
                       bool is_negative, unsigned depth, uint32_t *effort,
                       vyre__walk *walk) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (vyre__lane_shape_is_uniform(shape_at(s, v))) {
    int32_t slope = slope_of(s, v, loop, 0, effort);
    if (slope < 0) return false;
    walk->slope += is_negative ? -slope : slope;
    return add_part(walk, v, is_negative);
  }
  if (is_invariant(s, v, loop, 0, effort)) return true;
  bool adds = inst->op == VYRE__LIR_ADD;
  if (depth == MAX_DEPTH || (!adds && inst->op != VYRE__LIR_SUB)) return false;
  bool is_less = is_negative != !adds;
  return find_parts(s, inst->a, loop, is_negative, depth + 1, effort, walk) &&
         find_parts(s, inst->b, loop, is_less, depth + 1, effort, walk);
}

bool vyre__walk_find(const vyre__schedule *s, uint32_t at, uint32_t loop,
                     vyre__walk *walk) {
  uint32_t effort = MAX_EFFORT;
  *walk = (vyre__walk){0};
  return find_parts(s, inst_at(s, at)->a, loop, false, 0, &effort, walk) &&
         walk->slope >= 1 && walk->slope <= MAX_STEP;
}

static bool is_short(const vyre__schedule *s, uint32_t loop) {
  const vyre__lir_loop *of = &s->kernel->loops[inst_at(s, loop)->aux];
  return of->max_trips < MIN_TRIPS;
}

/* Returns true if the loop may change what @p buffer holds, or wait for another
 * thread to change it. */
static bool may_change(const vyre__schedule *s, uint32_t loop,
                       uint32_t buffer) {
  if (!s->kernel->buffers[buffer].is_written) return false;
  for (uint32_t at = loop; at < vyre__end_of(&s->r, loop); at++) {
    if (!is_access(s, at)) continue;
    uint16_t flags = flags_at(s, at);
    bool writes = flags & VYRE__LIRF_WRITES && inst_at(s, at)->aux == buffer;
    if (writes || flags & VYRE__LIRF_ATOMICS) return true;
  }
  return false;
}

static bool is_walk(const vyre__schedule *s, uint32_t at, uint32_t loop) {
  const vyre__lir_inst *inst = inst_at(s, at);
  vyre__walk walk;
  if (inst->op != VYRE__LIR_LOAD || !info_at(s, at)->is_needed) return false;
  const vyre__lir_buffer *buffer = &s->kernel->buffers[inst->aux];
  if (buffer->kind == VYRE_MEMORY_SHARED || buffer->width != 4 ||
      buffer->unit != 4 || may_change(s, loop, inst->aux)) {
    return false;
  }
  return vyre__access_kind_of(s, at) == VYRE__ACCESS_GATHER &&
         vyre__walk_find(s, at, loop, &walk);
}

/* Marks the loads of the code in a loop, but not of loops inside it. */
static uint32_t mark_loads(vyre__schedule *s, const vyre__sched_node *first,
                           uint32_t loop) {
  uint32_t count = 0;
  for (const vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind == VYRE__SCHED_IF) {
      count += mark_loads(s, node->body, loop);
      count += mark_loads(s, node->other, loop);
    }
    if (node->kind != VYRE__SCHED_CODE) continue;
    for (uint32_t at = node->begin; at < node->end; at++) {
      if (count == MAX_WALKS || !is_walk(s, at, loop)) continue;
      note_at(s, at)->walk = loop;
      count++;
    }
  }
  return count;
}

static void mark_loops(vyre__schedule *s, vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind == VYRE__SCHED_JAM ||
        node->kind == VYRE__SCHED_ACCUMULATORS) {
      continue;
    }
    bool is_spare =
        node->kind == VYRE__SCHED_RANGE && node->range != VYRE__RANGE_FULL;
    if (is_spare) continue;
    if (node->kind == VYRE__SCHED_LOOP && !is_short(s, node->begin)) {
      node->walks = mark_loads(s, node->body, node->begin) > 0;
    }
    mark_loops(s, node->body);
    mark_loops(s, node->other);
  }
}

vyre_code vyre__schedule_row_walk(vyre__schedule *s) {
  if (s->width > 1 && !s->is_compact) mark_loops(s, s->root);
  return VYRE_OK;
}
