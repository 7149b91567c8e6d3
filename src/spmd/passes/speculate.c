/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `speculate`: an `if` that depends on data,
 *
 *   if (through < dist[i]) dist[i] = through;
 *
 * is taken by some lanes and not by others, and no branch predictor can tell.
 * In the full range of a row, accesses whose bounds checks hold in every lane
 * may run for all lanes: loads read memory of the buffer, and masked stores
 * write nothing for lanes that do not take the `if`. Such an `if` runs without
 * a branch. */
#include "spmd/schedule_internal.h"

enum {
  MAX_SIZE = 32,   /* instructions of an IF */
  MAX_STORES = 2,  /* stores run even if no lane takes the IF */
  WIDE_LANES = 16, /* processors whose masked stores are as fast as others */
};

typedef struct candidate {
  const vyre__schedule *s;
  const vyre__sched_node *range;
  uint32_t stores;
} candidate;

/* Returns true if the check of the access at @p at holds in all lanes of the
 * range, whichever of them are active. A proven access does not count: the
 * proof may rest on the condition of the IF. */
static bool is_safe(const candidate *c, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(c->s, at);
  vyre__val check = inst->v[vyre__lir_ops[inst->op].operands - 1];
  return check && is_op(c->s, check, VYRE__LIR_LT_U) &&
         c->range->known[check - c->s->r.begin] == VYRE__KNOWN_TRUE;
}

/* Returns true if the range loads from @p buffer in any case, so that a load
 * whose result is dropped takes no further memory traffic. */
static bool is_loaded_anyway(const candidate *c, uint32_t buffer) {
  const vyre__sched_node *node = c->range->body;
  for (; node; node = node->next) {
    if (node->kind != VYRE__SCHED_CODE) continue;
    for (uint32_t at = node->begin; at < node->end; at++) {
      if (is_op(c->s, at, VYRE__LIR_LOAD) && info_at(c->s, at)->is_needed &&
          inst_at(c->s, at)->aux == buffer) {
        return true;
      }
    }
  }
  return false;
}

static bool fits_access(candidate *c, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(c->s, at);
  const vyre__lir_buffer *buffer = &c->s->kernel->buffers[inst->aux];
  bool loads = inst->op == VYRE__LIR_LOAD;
  if (!loads && inst->op != VYRE__LIR_STORE) return false;
  if (buffer->kind == VYRE_MEMORY_SHARED || !is_safe(c, at)) return false;
  vyre__access_kind kind = vyre__access_kind_of(c->s, at);
  if (kind != VYRE__ACCESS_CONTIGUOUS) return false;
  if (loads) return is_loaded_anyway(c, inst->aux);
  return c->s->lanes >= WIDE_LANES && buffer->width >= 4 &&
         ++c->stores <= MAX_STORES;
}

static bool fits(candidate *c, uint32_t at) {
  const vyre__schedule *s = c->s;
  if (!info_at(s, at)->is_needed) return true;
  if (is_access(s, at)) return fits_access(c, at);
  return vyre__fits_small(s, at);
}

static bool fits_nodes(candidate *c, const vyre__sched_node *first);

static bool fits_node(candidate *c, const vyre__sched_node *node) {
  if (node->kind == VYRE__SCHED_IF) {
    bool is_straight = node->mode == VYRE__MODE_SELECT ||
                       node->mode == VYRE__MODE_SPECULATE ||
                       node->mode == VYRE__MODE_MASKED;
    return is_straight && fits_nodes(c, node->body) &&
           fits_nodes(c, node->other);
  }
  if (node->kind != VYRE__SCHED_CODE) return false;
  for (uint32_t at = node->begin; at < node->end; at++) {
    if (!fits(c, at)) return false;
  }
  return true;
}

static bool fits_nodes(candidate *c, const vyre__sched_node *first) {
  for (const vyre__sched_node *node = first; node; node = node->next) {
    if (!fits_node(c, node)) return false;
  }
  return true;
}

/* Runs the IFs of a list, and those in them, without branches. */
static void make_straight(vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind != VYRE__SCHED_IF) continue;
    if (node->mode == VYRE__MODE_MASKED) node->mode = VYRE__MODE_SELECT;
    make_straight(node->body);
    make_straight(node->other);
  }
}

static void find_all(const vyre__schedule *s, const vyre__sched_node *range,
                     vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    candidate c = {.s = s, .range = range};
    bool is_masked =
        node->kind == VYRE__SCHED_IF && node->mode == VYRE__MODE_MASKED;
    if (is_masked && node->end - node->begin <= MAX_SIZE &&
        fits_node(&c, node)) {
      node->mode = VYRE__MODE_SELECT;
      make_straight(node->body);
      make_straight(node->other);
      continue;
    }
    find_all(s, range, node->body);
    find_all(s, range, node->other);
  }
}

static void find_ranges(const vyre__schedule *s, vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind != VYRE__SCHED_RANGE) {
      find_ranges(s, node->body);
      find_ranges(s, node->other);
    } else if (node->range == VYRE__RANGE_FULL && node->known) {
      find_all(s, node, node->body);
    }
  }
}

vyre_code vyre__schedule_speculate(vyre__schedule *s) {
  if (s->width > 1 && s->has_rows) find_ranges(s, s->root);
  return VYRE_OK;
}
