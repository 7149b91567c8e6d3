/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Evaluates expressions for all lanes at once.
 *
 * A value is a vector on the stack, or a local used in place: expressions do
 * not change locals, so a local stays valid until the statement ends. An
 * operation pops its operands and puts its result where the first one was. */
#include <string.h>

#include "backend/ref/ref.h"
#include "ir/scalar.h"

static const uint64_t *splat(ref_machine *m, uint64_t value) {
  uint64_t *out = ref_push(m);
  for (uint32_t i = 0; i < m->lanes; i++) out[i] = value;
  return out;
}

static const uint64_t *eval_global_id(ref_machine *m, unsigned axis) {
  uint64_t *out = ref_push(m);
  uint64_t base = (uint64_t)m->group[axis] * m->pipeline->base.workgroup[axis];
  const uint64_t *local = m->local_ids[axis] + m->first_lane;
  if (m->batch > 1) {
    uint32_t size = m->pipeline->base.workgroup[axis];
    const uint64_t *group = m->group_ids[axis];
    for (uint32_t i = 0; i < m->lanes; i++) out[i] = group[i] * size + local[i];
  } else {
    for (uint32_t i = 0; i < m->lanes; i++) out[i] = base + local[i];
  }
  return out;
}

static const uint64_t *eval_lane(ref_machine *m, vyre__op op) {
  uint64_t *out = ref_push(m);
  for (uint32_t i = 0; i < m->lanes; i++) {
    const uint32_t number = (m->first_lane + i) % m->workgroup_lanes;
    out[i] =
        op == VYRE__OP_LANE ? number % VYRE__SUBGROUP : number / VYRE__SUBGROUP;
  }
  return out;
}

static const uint64_t *eval_place(ref_machine *m, const vyre__node *node) {
  switch (node->op) {
    case VYRE__OP_LITERAL:
      return splat(m, vyre__literal(node));
    case VYRE__OP_LOCAL:
      return ref_local(m, node->a);
    case VYRE__OP_LEN:
      return splat(m, m->views[node->a].length);
    case VYRE__OP_GLOBAL_ID:
      return eval_global_id(m, node->aux);
    case VYRE__OP_LOCAL_ID:
      return m->local_ids[node->aux] + m->first_lane;
    case VYRE__OP_WORKGROUP_ID:
      if (m->batch > 1) return m->group_ids[node->aux];
      return splat(m, m->group[node->aux]);
    case VYRE__OP_WORKGROUP_SIZE:
      return splat(m, m->pipeline->base.workgroup[node->aux]);
    case VYRE__OP_LANE:
    case VYRE__OP_SUBGROUP_ID:
      return eval_lane(m, node->op);
    case VYRE__OP_ITEM:
    case VYRE__OP_ITEM_INDEX:
    case VYRE__OP_WINDOW:
      return splat(m, ref_queue_value(m, node));
    default: /* GRID_SIZE */
      return splat(m, m->launch->grid[node->aux]);
  }
}

/* && and ||: evaluates the right side only for lanes that need it. */
static const uint64_t *eval_short(ref_machine *m, const vyre__node *node,
                                  const ref_mask *mask) {
  uint32_t base = m->top;
  bool is_and = node->op == VYRE__OP_LAND;
  const uint64_t *left = ref_eval(m, node->a, mask);
  m->top = base;
  uint64_t *out = ref_push(m);
  if (left != out) memcpy(out, left, m->lanes * sizeof *out);
  ref_mask rest = {ref_push(m), 0};
  for (uint32_t i = 0; i < m->lanes; i++) {
    uint64_t needed = is_and ? out[i] : out[i] ^ 1;
    rest.lane[i] = mask->lane[i] & (0 - needed);
    rest.count += rest.lane[i] != 0;
  }
  if (rest.count > 0) {
    const uint64_t *right = ref_eval(m, node->b, &rest);
    for (uint32_t i = 0; i < m->lanes; i++) {
      out[i] = is_and ? out[i] & right[i] : out[i] | right[i];
    }
  }
  m->top = base + 1;
  return out;
}

/* Evaluates one side of ?: for the lanes that select it. */
static void eval_side(ref_machine *m, vyre__id id, const ref_mask *mask,
                      uint64_t skipped, uint64_t *out) {
  const uint64_t *condition = out;
  ref_mask rest = {ref_push(m), 0};
  for (uint32_t i = 0; i < m->lanes; i++) {
    rest.lane[i] = mask->lane[i] & (0 - (condition[i] ^ skipped));
    rest.count += rest.lane[i] != 0;
  }
  if (rest.count == 0) return;
  const uint64_t *value = ref_eval(m, id, &rest);
  uint64_t *result = out + m->lanes;
  for (uint32_t i = 0; i < m->lanes; i++) {
    result[i] = (value[i] & rest.lane[i]) | (result[i] & ~rest.lane[i]);
  }
}

/* c ? x : y */
static const uint64_t *eval_conditional(ref_machine *m, const vyre__node *node,
                                        const ref_mask *mask) {
  uint32_t base = m->top;
  const uint64_t *condition = ref_eval(m, node->a, mask);
  m->top = base;
  uint64_t *out = ref_push(m);
  if (condition != out) memcpy(out, condition, m->lanes * sizeof *out);
  uint64_t *result = ref_push(m);
  memset(result, 0, m->lanes * sizeof *result);
  eval_side(m, node->b, mask, 0, out);
  m->top = base + 2;
  eval_side(m, node->c, mask, 1, out);
  memcpy(out, result, m->lanes * sizeof *out);
  m->top = base + 1;
  return out;
}

static const uint64_t *eval_pure(ref_machine *m, const vyre__node *node,
                                 const ref_mask *mask) {
  static const uint8_t operands[] = {[VYRE__FORM_UNARY] = 1,
                                     [VYRE__FORM_BINARY] = 2,
                                     [VYRE__FORM_TERNARY] = 3};
  uint32_t base = m->top;
  const uint32_t ids[3] = {node->a, node->b, node->c};
  const uint64_t *args[3] = {NULL, NULL, NULL};
  unsigned count = operands[vyre__ops[node->op].form];
  for (unsigned i = 0; i < count; i++) {
    args[i] = ref_eval(m, ids[i], mask);
    /* A local is used in place, but frame_size.c counts a vector per
     * operand. */
    m->top = base + i + 1;
  }
  m->top = base;
  uint64_t *out = ref_push(m);
  ref_lanes(node->op, m->nodes[node->a].type, node->type, m->lanes, args, out);
  return out;
}

/* Gives all lanes the value of local invocation 0, which is always active
 * here. */
static const uint64_t *eval_uniform(ref_machine *m, const vyre__node *node,
                                    const ref_mask *mask) {
  uint32_t base = m->top;
  const uint64_t *value = ref_eval(m, node->a, mask);
  uint64_t first = value[0];
  m->top = base;
  if (m->frame) m->frame->epoch++;
  return splat(m, first);
}

/* Returns the lane that invocation @p lane of a subgroup reads. */
static uint32_t source_lane(vyre__op op, uint32_t lane, uint32_t by) {
  const uint32_t last = VYRE__SUBGROUP - 1;
  switch (op) {
    case VYRE__OP_SHUFFLE:
      return by & last;
    case VYRE__OP_SHUFFLE_XOR:
      return (lane ^ by) & last;
    case VYRE__OP_SHUFFLE_UP:
      return by > lane ? lane : lane - by;
    default:
      return by > last - lane ? lane : lane + by;
  }
}

/* shuffle and the like. All lanes of a subgroup are active, or none. */
static const uint64_t *eval_shuffle(ref_machine *m, const vyre__node *node,
                                    const ref_mask *mask) {
  const uint32_t base = m->top, last = VYRE__SUBGROUP - 1;
  const uint64_t *value = ref_eval(m, node->a, mask);
  m->top = base + 1;
  const uint64_t *by = ref_eval(m, node->b, mask);
  m->top = base + 2;
  uint64_t *out = ref_push(m);
  for (uint32_t i = 0; i < m->lanes; i++) {
    const uint32_t from =
        (i & ~last) + source_lane(node->op, i & last, (uint32_t)by[i]);
    out[i] = from < m->lanes ? value[from] : 0;
  }
  uint64_t *kept = m->temporaries + (size_t)base * m->lanes;
  memcpy(kept, out, m->lanes * sizeof *out);
  m->top = base + 1;
  return kept;
}

static const uint64_t *eval_ballot(ref_machine *m, const vyre__node *node,
                                   const ref_mask *mask) {
  const uint32_t base = m->top;
  const uint64_t *value = ref_eval(m, node->a, mask);
  m->top = base + 1;
  uint64_t *out = ref_push(m);
  for (uint32_t first = 0; first < m->lanes; first += VYRE__SUBGROUP) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < VYRE__SUBGROUP && first + i < m->lanes; i++) {
      bits |= (value[first + i] & mask->lane[first + i] & 1) << i;
    }
    for (uint32_t i = 0; i < VYRE__SUBGROUP && first + i < m->lanes; i++) {
      out[first + i] = bits;
    }
  }
  uint64_t *kept = m->temporaries + (size_t)base * m->lanes;
  memcpy(kept, out, m->lanes * sizeof *out);
  m->top = base + 1;
  return kept;
}

static const uint64_t *eval_call(ref_machine *m, const vyre__node *node,
                                 const ref_mask *mask) {
  const vyre__function *callee = &m->program->functions[node->a];
  const uint32_t *list = m->program->lists + node->b;
  size_t bytes = m->lanes * sizeof(uint64_t);
  uint64_t *result = ref_push(m);
  uint32_t base = m->top;
  for (uint32_t i = 0; i < node->c; i++) { /* parameters are the first locals */
    const uint64_t *value = ref_eval(m, list[i], mask);
    m->top = base + i;
    uint64_t *parameter = ref_push(m);
    if (value != parameter) memcpy(parameter, value, bytes);
  }
  ref_activation caller = m->activation;
  ref_loop loop = m->loop;
  m->top = base;
  m->activation.locals = m->temporaries + (size_t)base * m->lanes;
  m->activation.result = result;
  m->top += callee->local_count;
  m->activation.returned = ref_push(m);
  ref_mask running = {ref_push(m), mask->count};
  memset(result, 0, bytes);
  memset(m->activation.returned, 0, bytes);
  memcpy(running.lane, mask->lane, bytes);
  ref_exec(m, callee->body, &running);
  m->activation = caller;
  m->loop = loop;
  m->top = base;
  return result;
}

static const uint64_t *eval_load(ref_machine *m, vyre__id id,
                                 const ref_mask *mask) {
  uint32_t base = m->top;
  const uint64_t *index = ref_eval(m, m->nodes[id].b, mask);
  m->top = base;
  uint64_t *out = ref_push(m);
  ref_load(m, id, index, mask, out);
  return out;
}

/* The index of an access with dimensions: the sum of index times stride, or a
 * value above every length if an index is outside. */
static const uint64_t *eval_at(ref_machine *m, const vyre__node *node,
                               const ref_mask *mask) {
  const uint32_t *list = m->program->lists + node->a;
  const uint32_t base = m->top;
  uint64_t *out = ref_push(m);
  for (uint32_t lane = 0; lane < m->lanes; lane++) out[lane] = 0;
  for (uint32_t i = 0; i + 1 < node->b; i += VYRE__AT_STEP) {
    const uint64_t *values[VYRE__AT_STEP];
    const bool is_i32 = m->nodes[list[i]].type == VYRE_TYPE_I32;
    m->top = base + 1;
    for (uint32_t k = 0; k < VYRE__AT_STEP; k++) {
      values[k] = ref_eval(m, list[i + k], mask);
      m->top = base + 2 + k;
    }
    for (uint32_t lane = 0; lane < m->lanes; lane++) {
      const uint64_t index = is_i32
                                 ? (uint64_t)(int64_t)vyre__i32(values[0][lane])
                                 : values[0][lane];
      if (index >= values[1][lane]) {
        out[lane] = REF_OUTSIDE;
      } else if (out[lane] < REF_OUTSIDE) {
        out[lane] += index * values[2][lane];
      }
    }
  }
  m->top = base + 1;
  const uint64_t *offset = ref_eval(m, list[node->b - 1], mask);
  for (uint32_t lane = 0; lane < m->lanes; lane++) {
    if (out[lane] < REF_OUTSIDE) out[lane] += offset[lane];
  }
  m->top = base + 1;
  return out;
}

static const uint64_t *eval_atomic(ref_machine *m, vyre__id id,
                                   const ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  uint32_t base = m->top;
  const uint32_t *list = m->program->lists + node->c;
  bool two = node->op == VYRE__OP_ATOMIC_CAS;
  const uint64_t *index = ref_eval(m, node->b, mask);
  m->top = base + 1;
  const uint64_t *values[2] = {NULL, NULL};
  values[0] = ref_eval(m, two ? list[0] : node->c, mask);
  m->top = base + 2;
  if (two) values[1] = ref_eval(m, list[1], mask);
  m->top = base + 3;
  /* Not over an operand: the lanes are processed in any order. */
  uint64_t *out = ref_push(m);
  ref_atomic(m, id, index, values, mask, out);
  uint64_t *kept = m->temporaries + (size_t)base * m->lanes;
  memcpy(kept, out, m->lanes * sizeof *out);
  m->top = base + 1;
  return kept;
}

/* push and in_window. An item of a queue is a workgroup of one lane. */
static const uint64_t *eval_queue(ref_machine *m, vyre__id id,
                                  const ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  const uint32_t base = m->top;
  const bool is_list = node->op == VYRE__OP_PUSH_FIELDS;
  const uint32_t *ids = is_list ? m->program->lists + node->a : &node->a;
  const uint32_t count = is_list ? node->b : 1;
  uint64_t values[VYRE__MAX_QUEUE_FIELDS];
  for (uint32_t i = 0; i < count; i++) {
    values[i] = ref_eval(m, ids[i], mask)[0];
    m->top = base;
  }
  uint64_t *out = ref_push(m);
  assert(m->lanes == 1 && mask->count == 1);
  out[0] = node->op == VYRE__OP_IN_WINDOW ? ref_queue_in_window(m, values[0])
                                          : ref_queue_push(m, id, values);
  return out;
}

static bool is_of_queue(unsigned op) {
  return op == VYRE__OP_PUSH || op == VYRE__OP_PUSH_FIELDS ||
         op == VYRE__OP_IN_WINDOW;
}

const uint64_t *ref_eval(ref_machine *m, vyre__id id, const ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  if (is_of_queue(node->op)) return eval_queue(m, id, mask);
  switch (vyre__ops[node->op].form) {
    case VYRE__FORM_CALL:
      return eval_call(m, node, mask);
    case VYRE__FORM_LOAD:
      return eval_load(m, id, mask);
    case VYRE__FORM_MAKE:
      return eval_at(m, node, mask);
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_ATOMIC2:
      return eval_atomic(m, id, mask);
    case VYRE__FORM_UNARY:
      if (node->op == VYRE__OP_UNIFORM) return eval_uniform(m, node, mask);
      if (node->op == VYRE__OP_BALLOT) return eval_ballot(m, node, mask);
      return eval_pure(m, node, mask);
    case VYRE__FORM_BINARY:
      if (node->op == VYRE__OP_LAND || node->op == VYRE__OP_LOR) {
        return eval_short(m, node, mask);
      }
      if (vyre__op_is_exchange(node->op)) return eval_shuffle(m, node, mask);
      return eval_pure(m, node, mask);
    case VYRE__FORM_TERNARY:
      if (node->op == VYRE__OP_COND) return eval_conditional(m, node, mask);
      return eval_pure(m, node, mask);
    default:
      return eval_place(m, node);
  }
}
