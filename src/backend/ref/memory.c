/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads, stores and atomics, lane by lane. An i32 index is sign-extended to 64
 * bits: negative indices are then larger than any length. */
#include <string.h>

#include "backend/ref/ref.h"
#include "ir/scalar.h"
#include "ir/sum.h"

static uint64_t widen(vyre_type type, uint64_t index) {
  return type == VYRE_TYPE_I32 ? (uint64_t)(int64_t)vyre__i32(index) : index;
}

/* Returns true if the element of lane @p i exists; otherwise reports it to the
 * check. */
static bool inside(ref_machine *m, vyre__id id, uint32_t i, vyre_type type,
                   uint64_t index, uint64_t length) {
  if (index < length) return true;
  if (m->check) {
    bool is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
    bool negative = is_signed && (int64_t)index < 0;
    ref_check_bounds(m, id, i, negative ? 0 - index : index, negative);
  }
  return false;
}

/* Memory that an access names: elements, or scalars of elements. */
static ref_view accessed(const ref_machine *m, const vyre__node *node) {
  ref_view view = m->views[node->a];
  if (node->aux) {
    view.element = vyre__accessed_element(m->program, node);
    view.size = vyre__access_unit(m->program, node);
    view.length = view.length * view.stride / view.size;
    if (view.data) view.data += node->aux >> VYRE__AUX_BYTE_SHIFT;
  }
  if (view.data) view.data += m->first_lane * view.lane_bytes;
  return view;
}

/* Returns the number of an element's cell in the race check. */
static uint64_t cell_of(const ref_view *view, const vyre__node *node,
                        uint64_t index) {
  return view->stride == view->size
             ? index
             : index * view->size + (node->aux >> VYRE__AUX_BYTE_SHIFT);
}

/* Returns true if the index counts elements of this size, without gaps. */
static bool is_dense(const ref_view *view) {
  const uint32_t size = vyre_element_size(view->element);
  return size == view->size || size == 0;
}

/* Notes a write to @p memory, if that is watched. */
static void note_write(const ref_machine *m, vyre__id id,
                       const unsigned char *memory) {
  ref_watch *w = m->watch;
  if (memory < w->bytes || memory >= w->bytes + w->size) return;
  w->writer = ref_queue_cause(m, id);
}

/* --- loads -----------------------------------------------------------------*/

#define LOAD_LANES(C, convert)                                                \
  for (uint32_t i = 0; i < m->lanes; i++) {                                   \
    uint64_t at = is_i32 ? (uint64_t)(int64_t)vyre__i32(index[i]) : index[i]; \
    C raw = 0;                                                                \
    if (at < view->length && mask->lane[i]) {                                 \
      memcpy(&raw, view->data + i * view->lane_bytes + at * sizeof raw,       \
             sizeof raw);                                                     \
    }                                                                         \
    out[i] = convert(raw);                                                    \
  }                                                                           \
  return

#define NOT_ZERO(raw)  ((raw) != 0)
#define SIGNED_8(raw)  vyre__of_i32((int8_t)(raw))
#define SIGNED_16(raw) vyre__of_i32((int16_t)(raw))
#define AS_IT_IS(raw)  (raw)

static void load_fast(const ref_machine *m, const ref_view *view, bool is_i32,
                      const uint64_t *index, const ref_mask *mask,
                      uint64_t *out) {
  switch (view->element) {
    case VYRE_ELEMENT_BOOL:
      LOAD_LANES(uint8_t, NOT_ZERO);
    case VYRE_ELEMENT_I8:
      LOAD_LANES(uint8_t, SIGNED_8);
    case VYRE_ELEMENT_U8:
    case VYRE_ELEMENT_BYTES:
      LOAD_LANES(uint8_t, AS_IT_IS);
    case VYRE_ELEMENT_I16:
      LOAD_LANES(uint16_t, SIGNED_16);
    case VYRE_ELEMENT_U16:
      LOAD_LANES(uint16_t, AS_IT_IS);
    case VYRE_ELEMENT_F16:
      LOAD_LANES(uint16_t, vyre__f16_to_f32);
    case VYRE_ELEMENT_BF16:
      LOAD_LANES(uint16_t, vyre__bf16_to_f32);
    case VYRE_ELEMENT_U64:
    case VYRE_ELEMENT_I64:
    case VYRE_ELEMENT_F64:
      LOAD_LANES(uint64_t, AS_IT_IS);
    default:
      LOAD_LANES(uint32_t, AS_IT_IS);
  }
}

void ref_load(ref_machine *m, vyre__id id, const uint64_t *index,
              const ref_mask *mask, uint64_t *out) {
  const vyre__node *node = &m->nodes[id];
  const ref_view own = accessed(m, node), *view = &own;
  vyre_type type = m->nodes[node->b].type;
  if (!m->check && is_dense(view)) {
    load_fast(m, view, type == VYRE_TYPE_I32, index, mask, out);
    return;
  }
  for (uint32_t i = 0; i < m->lanes; i++) {
    uint64_t at = widen(type, index[i]);
    out[i] = 0;
    if (!mask->lane[i] || !inside(m, id, i, type, at, view->length)) continue;
    if (m->check) {
      ref_check_access(m, id, i, cell_of(view, node, at), REF_READ);
    }
    out[i] = vyre__element_load(
        view->element, view->data + i * view->lane_bytes + at * view->size);
  }
}

/* --- stores ----------------------------------------------------------------*/

#define STORE_LANES(C, convert)                                               \
  for (uint32_t i = 0; i < m->lanes; i++) {                                   \
    uint64_t at = is_i32 ? (uint64_t)(int64_t)vyre__i32(index[i]) : index[i]; \
    if (at >= view->length || !mask->lane[i]) continue;                       \
    C raw = (C)convert(value[i]);                                             \
    memcpy(view->data + i * view->lane_bytes + at * sizeof raw, &raw,         \
           sizeof raw);                                                       \
  }                                                                           \
  return

static void store_fast(const ref_machine *m, const ref_view *view, bool is_i32,
                       const uint64_t *index, const uint64_t *value,
                       const ref_mask *mask) {
  switch (view->element) {
    case VYRE_ELEMENT_F32:
      STORE_LANES(uint32_t, vyre__canonical_f32);
    case VYRE_ELEMENT_U32:
    case VYRE_ELEMENT_I32:
      STORE_LANES(uint32_t, AS_IT_IS);
    default:
      for (uint32_t i = 0; i < m->lanes; i++) {
        uint64_t at =
            is_i32 ? (uint64_t)(int64_t)vyre__i32(index[i]) : index[i];
        if (at >= view->length || !mask->lane[i]) continue;
        vyre__element_store(view->element,
                            view->data + i * view->lane_bytes + at * view->size,
                            value[i]);
      }
      return;
  }
}

void ref_store(ref_machine *m, vyre__id id, const uint64_t *index,
               const uint64_t *value, const ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  const ref_view own = accessed(m, node), *view = &own;
  vyre_type type = m->nodes[node->b].type;
  if (!m->check && !m->watch && is_dense(view)) {
    store_fast(m, view, type == VYRE_TYPE_I32, index, value, mask);
    return;
  }
  for (uint32_t i = 0; i < m->lanes; i++) {
    uint64_t at = widen(type, index[i]);
    if (!mask->lane[i] || !inside(m, id, i, type, at, view->length)) continue;
    if (m->check) {
      ref_check_access(m, id, i, cell_of(view, node, at), REF_WRITE);
    }
    if (m->watch) note_write(m, id, view->data + at * view->size);
    vyre__element_store(view->element,
                        view->data + i * view->lane_bytes + at * view->size,
                        value[i]);
  }
}

/* --- atomics ---------------------------------------------------------------*/

/* Returns the new value of the element. */
static uint64_t combine(vyre__op op, vyre_type type, uint64_t old,
                        uint64_t first, uint64_t second) {
  static const uint8_t pure[VYRE__OP_COUNT] = {
      [VYRE__OP_ATOMIC_ADD] = VYRE__OP_ADD,
      [VYRE__OP_ATOMIC_MIN] = VYRE__OP_MIN,
      [VYRE__OP_ATOMIC_MAX] = VYRE__OP_MAX,
      [VYRE__OP_ATOMIC_AND] = VYRE__OP_AND,
      [VYRE__OP_ATOMIC_OR] = VYRE__OP_OR,
      [VYRE__OP_ATOMIC_XOR] = VYRE__OP_XOR};
  if (op == VYRE__OP_ATOMIC_EXCHANGE) return first;
  if (op == VYRE__OP_ATOMIC_CAS) return old == first ? second : old;
  const uint64_t args[3] = {old, first, 0};
  uint64_t out = old;
  (void)vyre__scalar_apply(pure[op], type, type, args, &out);
  return out;
}

static ref_order lane_order(ref_machine *m, vyre__id id) {
  const ref_schedule *schedule = &m->schedule;
  bool mine = !schedule->only || schedule->only == id;
  if (!schedule->permute_lanes || !mine) return ref_order_forward(m->lanes);
  if (schedule->backward) return ref_order_backward(m->lanes);
  return ref_order_make(m->lanes, schedule->seed + ref_mix(++m->executed));
}

/* Adds a result to the node's hash, which does not depend on the order of
 * lanes. */
static void note_result(ref_machine *m, vyre__id id, uint32_t lane,
                        uint64_t value) {
  if (!m->node_hashes) return;
  uint64_t invocation =
      m->chunk ? ref_queue_item_hash(m)
               : m->group_index * m->workgroup_lanes + m->first_lane + lane;
  m->node_hashes[id] += ref_mix(ref_mix(invocation) ^ value);
}

/* Adds numbers to exact sums. Additions commute, so the order of lanes is not
 * permuted. The check sees an atomic change of each word. */
static void add_to_sums(ref_machine *m, vyre__id id, const uint64_t *index,
                        const uint64_t *numbers, const ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  const ref_view *view = &m->views[node->a];
  const vyre_type type = m->nodes[node->b].type;
  for (uint32_t i = 0; i < m->lanes; i++) {
    const uint64_t at = widen(type, index[i]);
    if (!mask->lane[i] || !inside(m, id, i, type, at, view->length)) continue;
    for (uint64_t k = 0; m->check && k < view->stride; k += sizeof at) {
      ref_check_access(m, id, i, at * view->stride + k, REF_ATOMIC);
    }
    vyre__sum_add(view->element, view->data + at * view->stride, numbers[i]);
  }
}

void ref_atomic(ref_machine *m, vyre__id id, const uint64_t *index,
                const uint64_t *const values[2], const ref_mask *mask,
                uint64_t *out) {
  const vyre__node *node = &m->nodes[id];
  const ref_view own = accessed(m, node), *view = &own;
  vyre_type type = m->nodes[node->b].type;
  if (node->type == VYRE_TYPE_VOID) {
    memset(out, 0, m->lanes * sizeof *out);
    add_to_sums(m, id, index, values[0], mask);
    return;
  }
  ref_order order = lane_order(m, id);
  for (uint32_t k = 0; k < m->lanes; k++) {
    uint32_t i = (uint32_t)ref_order_at(&order, k);
    uint64_t at = widen(type, index[i]);
    out[i] = 0;
    if (!mask->lane[i] || !inside(m, id, i, type, at, view->length)) continue;
    if (m->check)
      ref_check_access(m, id, i, cell_of(view, node, at), REF_ATOMIC);
    unsigned char *memory = view->data + at * view->size;
    uint64_t old = vyre__element_load(view->element, memory);
    if (m->watch) note_write(m, id, memory);
    vyre__element_store(view->element, memory,
                        combine(node->op, node->type, old, values[0][i],
                                values[1] ? values[1][i] : 0));
    out[i] = old;
    note_result(m, id, i, old);
  }
}
