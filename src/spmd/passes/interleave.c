/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `interleave`: accesses to the fields of structures,
 *
 *   v[3 * i] += p[3 * i];  v[3 * i + 1] += p[3 * i + 1];  ..
 *
 * whose indices differ by less than the distance of lanes. The code generator
 * loads the elements of all of them once, and picks those of each; stores are
 * collected, and interleaved vectors are stored at the last of them.
 *
 * Loads move up to the first of a group, and stores down to the last. Accesses
 * of the buffer that they pass must touch other fields. */
#include "spmd/schedule_internal.h"

enum {
  MAX_STRIDE = 8,
  MAX_SUMS = 8,    /* constants added to an index */
  MAX_SPAN = 4096, /* instructions between accesses of a group */
};

/* An index: root + field, where lanes are `stride` elements apart. */
typedef struct place {
  uint32_t buffer, stride;
  vyre__val root;
  uint32_t field;
} place;

static bool constant_of(const vyre__schedule *s, vyre__val v, uint32_t *out) {
  if (!is_op(s, v, VYRE__LIR_CONST)) return false;
  *out = (uint32_t)vyre__lir_const(inst_at(s, v));
  return true;
}

static place place_of(const vyre__schedule *s, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  place p = {.buffer = inst->aux, .root = inst->a};
  p.stride = (uint32_t)shape_at(s, inst->a).stride;
  for (unsigned i = 0; i < MAX_SUMS; i++) {
    const vyre__lir_inst *sum = inst_at(s, p.root);
    uint32_t by;
    if (sum->op != VYRE__LIR_ADD) break;
    if (constant_of(s, sum->b, &by)) {
      p.root = sum->a;
    } else if (constant_of(s, sum->a, &by)) {
      p.root = sum->b;
    } else {
      break;
    }
    p.field += by;
  }
  return p;
}

uint32_t vyre__field_of(const vyre__schedule *s, uint32_t at) {
  return place_of(s, at).field;
}

static bool is_related(const place *a, const place *b) {
  return a->buffer == b->buffer && a->stride == b->stride && a->root == b->root;
}

/* Returns true if no lane of one access touches an element of the other. */
static bool are_apart(const place *a, const place *b) {
  int32_t by = (int32_t)(a->field - b->field);
  return is_related(a, b) && by % (int32_t)a->stride != 0;
}

static bool fits(const vyre__schedule *s, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  const vyre__inst_info *info = info_at(s, at);
  bool stores = inst->op == VYRE__LIR_STORE;
  if (!stores && inst->op != VYRE__LIR_LOAD) return false;
  const vyre__lir_buffer *buffer = &s->kernel->buffers[inst->aux];
  uint32_t stride = (uint32_t)shape_at(s, inst->a).stride;
  return info->is_needed && info->storage != VYRE__STORAGE_UNIFORM &&
         buffer->kind != VYRE_MEMORY_SHARED && buffer->unit == buffer->width &&
         vyre__access_kind_of(s, at) == VYRE__ACCESS_STRIDED && stride >= 2 &&
         stride <= MAX_STRIDE;
}

/* The group that starts at an access. */
typedef struct group {
  uint32_t at[MAX_STRIDE];
  uint32_t count;
  uint32_t fields[MAX_STRIDE];
} group;

/* Returns true if @p p is another field of the structures of the group. */
static bool joins(const group *g, const place *p, const place *first) {
  if (g->count == MAX_STRIDE || !is_related(p, first)) return false;
  int32_t low = 0, high = 0;
  for (uint32_t i = 0; i <= g->count; i++) {
    uint32_t field = i == g->count ? p->field : g->fields[i];
    int32_t by = (int32_t)(field - first->field);
    if (i < g->count && field == p->field) return false;
    low = by < low ? by : low;
    high = by > high ? by : high;
  }
  return high - low < (int32_t)p->stride;
}

/* Returns true if access @p at may be passed by the accesses of the group: by
 * its stores, or by a load of field @p p that moves up. */
static bool passes(const vyre__schedule *s, const group *g, uint32_t at,
                   bool stores) {
  place other = place_of(s, at);
  uint16_t flags = flags_at(s, at);
  if (inst_at(s, at)->aux != inst_at(s, g->at[0])->aux) {
    return !(flags & VYRE__LIRF_ATOMICS);
  }
  if (flags & VYRE__LIRF_ATOMICS) return false;
  if (!stores && !(flags & VYRE__LIRF_WRITES)) return true;
  if (stores) {
    for (uint32_t i = 0; i < g->count; i++) {
      place own = place_of(s, g->at[i]);
      if (!are_apart(&own, &other)) return false;
    }
  }
  return true;
}

/* Returns true if load @p p does not depend on the stores before it in the leaf,
 * which begins at @p begin: those before the first load of the group may move
 * down. */
static bool moves_up(const vyre__schedule *s, uint32_t begin, uint32_t at,
                     const place *p) {
  if (at - begin > MAX_SPAN) return false;
  for (uint32_t i = begin; i < at; i++) {
    if (!is_access(s, i) || inst_at(s, i)->aux != p->buffer) continue;
    if (!(flags_at(s, i) & VYRE__LIRF_WRITES)) continue;
    place other = place_of(s, i);
    if (!are_apart(p, &other)) return false;
  }
  return true;
}

static void find_group(const vyre__schedule *s, const vyre__sched_node *leaf,
                       uint32_t first, group *g) {
  uint32_t end = leaf->end;
  bool stores = is_op(s, first, VYRE__LIR_STORE);
  place own = place_of(s, first);
  *g = (group){.at = {first}, .fields = {own.field}, .count = 1};
  if (end > first + MAX_SPAN) end = first + MAX_SPAN;
  for (uint32_t at = first + 1; at < end; at++) {
    if (!is_access(s, at)) continue;
    place p = place_of(s, at);
    if (inst_at(s, at)->op == inst_at(s, first)->op && fits(s, at) &&
        note_at(s, at)->together == 0 && joins(g, &p, &own)) {
      if (!stores && !moves_up(s, leaf->begin, at, &p)) break;
      g->at[g->count] = at;
      g->fields[g->count++] = p.field;
    } else if (!passes(s, g, at, stores)) {
      break;
    }
  }
}

/* Returns true if grouping pays. A store that leaves out a field needs a mask,
 * which requires 16 lanes and elements of 4 bytes. */
static bool is_useful(const vyre__schedule *s, const group *g) {
  const vyre__lir_inst *inst = inst_at(s, g->at[0]);
  const vyre__lir_buffer *buffer = &s->kernel->buffers[inst->aux];
  bool is_complete = g->count == (uint32_t)shape_at(s, inst->a).stride;
  if (inst->op == VYRE__LIR_LOAD) return g->count > 1;
  return is_complete || (s->lanes >= 16 && buffer->width >= 4);
}

static void group_leaf(vyre__schedule *s, const vyre__sched_node *leaf) {
  for (uint32_t at = leaf->begin; at < leaf->end; at++) {
    group g;
    if (!fits(s, at) || note_at(s, at)->together) continue;
    find_group(s, leaf, at, &g);
    if (!is_useful(s, &g)) continue;
    for (uint32_t i = 0; i < g.count; i++) note_at(s, g.at[i])->together = at;
    note_at(s, at)->together_last = g.at[g.count - 1];
  }
}

static void group_all(vyre__schedule *s, const vyre__sched_node *first) {
  for (const vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind == VYRE__SCHED_CODE) group_leaf(s, node);
    bool is_spare =
        node->kind == VYRE__SCHED_RANGE && node->range != VYRE__RANGE_FULL;
    if (is_spare || node->kind == VYRE__SCHED_ACCUMULATORS) continue;
    group_all(s, node->body);
    group_all(s, node->other);
  }
}

vyre_code vyre__schedule_interleave(vyre__schedule *s) {
  if (s->width > 1 && !s->is_compact) group_all(s, s->root);
  return VYRE_OK;
}
