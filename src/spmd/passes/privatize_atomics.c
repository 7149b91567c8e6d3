/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `privatize-atomics`: a thread applies atomics to private memory, and adds
 * the private results to the buffer when its range of workgroups ends.
 *
 * This is legal if the phase uses the buffer for one commutative operation
 * only, whose old value is unused. It pays if the buffer is short and there
 * are many operations, which the launch decides. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

enum {
  ELEMENTS = 4096,       /* assumed length of a buffer without a fixed one */
  MAX_BYTES = 48 * 1024, /* private bytes in all */
  UNKNOWN_TRIPS = 8,     /* assumed if max_trips is unknown or >= MAX_TRIPS */
  MAX_TRIPS = 128,       /* bounds from here on are too loose to use */
  REPLICA_WORTH = 16,    /* operations per element that make a replica pay */
  MAX_REPLICA = 8192,    /* bytes */
};

bool vyre__atomic_commutes(uint8_t op) {
  return op >= VYRE__LIR_ATOMIC_ADD && op <= VYRE__LIR_ATOMIC_XOR;
}

uint64_t vyre__atomic_identity(uint8_t op, unsigned bytes) {
  uint64_t ones = bytes == 8 ? UINT64_MAX : UINT32_MAX;
  switch (op) {
    case VYRE__LIR_ATOMIC_AND:
    case VYRE__LIR_ATOMIC_MIN_U:
      return ones;
    case VYRE__LIR_ATOMIC_MIN_S:
      return ones >> 1;
    case VYRE__LIR_ATOMIC_MAX_S:
      return ones ^ ones >> 1;
    default:
      return 0;
  }
}

/* --- which ------------------------------------------------------------------------*/

/* Estimates how often an invocation executes the instruction at @p at. */
static uint64_t times(const vyre__schedule *s, uint32_t at) {
  uint64_t count = 1;
  for (uint32_t open = info_at(s, at)->parent; open;
       open = info_at(s, open)->parent) {
    if (inst_at(s, open)->op != VYRE__LIR_LOOP) continue;
    const vyre__lir_loop *loop = &s->kernel->loops[inst_at(s, open)->aux];
    uint64_t trips =
        loop->max_trips < MAX_TRIPS ? loop->max_trips : UNKNOWN_TRIPS;
    count *= trips ? trips : 1;
    if (count > UINT16_MAX) return UINT16_MAX;
  }
  return count;
}

static void look_at(vyre__schedule *s, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  const vyre__inst_info *role = info_at(s, at);
  if (!(vyre__lir_ops[inst->op].flags & memory) || !role->is_needed) return;
  if (inst->op == VYRE__LIR_OUT_OF_FUEL) return;
  vyre__privatised *own = &s->privatised[inst->aux];
  bool fits = vyre__atomic_commutes(inst->op) && role->subregion &&
              !role->uses && role->storage == VYRE__STORAGE_LOCAL &&
              (!own->op || own->op == inst->op);
  if (!fits) own->is_refused = true;
  own->op = inst->op;
  own->times += times(s, at);
}

/* --- shared memory ---------------------------------------------------------------
 * An atomic on an element that was just written waits for the store. If there are many
 * operations, odd lanes use a replica of the array. Both are merged before the next
 * load. */

/* Returns the region that it is in; 0: it is hoisted. */
static uint32_t part_of(const vyre__schedule *s, uint32_t at) {
  uint32_t i = info_at(s, at)->subregion ? s->r.first : 0;
  while (i && at >= s->r.regions[i].end) i = s->r.regions[i].next;
  return i;
}

/* Checks three properties: old values are unused, the operations commute, and 0 is
 * the identity. */
static bool is_plain_change(const vyre__schedule *s, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  const vyre__inst_info *role = info_at(s, at);
  return vyre__atomic_commutes(inst->op) &&
         vyre__atomic_identity(inst->op, 4) == 0 && !role->uses &&
         role->storage == VYRE__STORAGE_LOCAL;
}

static void find_replica(vyre__schedule *s, uint32_t buffer) {
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  uint64_t often = 0;
  uint32_t part = 0;
  uint8_t op = 0;
  for (unsigned turn = 0; turn < 2;
       turn++) { /* first the atomics, then all other accesses */
    for (uint32_t at = s->r.begin; at < s->r.end; at++) {
      const vyre__lir_inst *inst = inst_at(s, at);
      if (!(vyre__lir_ops[inst->op].flags & memory) || inst->aux != buffer ||
          inst->op == VYRE__LIR_OUT_OF_FUEL || !info_at(s, at)->is_needed) {
        continue;
      }
      uint32_t here = part_of(s, at);
      if (!is_plain_change(s, at)) {
        if (turn == 1 && (!here || here == part)) return;
      } else if (turn == 0) {
        if (!here || (part && (part != here || op != inst->op))) return;
        part = here;
        op = inst->op;
        often += times(s, at);
      }
    }
  }
  uint64_t elements = s->kernel->buffers[buffer].count;
  if (!part || often * s->r.invocations < REPLICA_WORTH * elements) {
    return;
  }
  s->privatised[buffer].replica = part;
  s->privatised[buffer].op = op;
}

static void find_replicas(vyre__schedule *s) {
  for (uint32_t i = 0; i < s->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &s->kernel->buffers[i];
    uint64_t bytes = (uint64_t)buffer->count * buffer->width;
    if (buffer->kind == VYRE_MEMORY_SHARED && buffer->is_atomic &&
        buffer->width == 4 && buffer->unit == 4 && bytes <= MAX_REPLICA &&
        s->width > 1) {
      find_replica(s, i);
    }
  }
}

/* --- all of them ------------------------------------------------------------------*/

/* --- nodes ----------------------------------------------------------------*/

/* Wraps the loop over workgroups in a PRIVATE node. */
static vyre_code add_private(vyre__schedule *s, uint32_t buffer) {
  vyre__sched_node *node = vyre__arena_array(s->arena, 1, sizeof *node);
  if (!node) return vyre__schedule_no_memory(s, 1);
  *node = (vyre__sched_node){.kind = VYRE__SCHED_PRIVATE,
                             .begin = s->r.begin,
                             .end = s->r.end,
                             .buffer = buffer,
                             .body = s->root};
  s->root = node;
  return VYRE_OK;
}

/* Adds a MERGE node after the last node of the region that uses a replica. */
static vyre_code add_merge(vyre__schedule *s, uint32_t buffer) {
  vyre__sched_node *at = vyre__sched_groups(s)->body;
  uint32_t region = s->privatised[buffer].replica;
  while (at && (at->region != region || at->kind == VYRE__SCHED_UNIFORM)) {
    at = at->next;
  }
  while (at && at->next && at->next->kind == VYRE__SCHED_MERGE) at = at->next;
  vyre__sched_node *node = vyre__arena_array(s->arena, 1, sizeof *node);
  if (!at || !node) return vyre__schedule_no_memory(s, 1);
  *node = (vyre__sched_node){.kind = VYRE__SCHED_MERGE,
                             .begin = at->end,
                             .end = at->end,
                             .buffer = buffer,
                             .region = region,
                             .next = at->next};
  at->next = node;
  return VYRE_OK;
}

vyre_code vyre__schedule_privatize_atomics(vyre__schedule *s) {
  uint32_t count = s->kernel->buffer_count;
  uint64_t used = 0;
  s->privatised = vyre__arena_array(s->arena, count, sizeof *s->privatised);
  if (!s->privatised) {
    return vyre__no_memory(s->st, "spmd/schedule", "buffers", count);
  }
  memset(s->privatised, 0, count * sizeof *s->privatised);
  if (vyre__pass_is_off(s->off, VYRE__OPTIONAL_PRIVATIZE_ATOMICS)) {
    return VYRE_OK;
  }
  for (uint32_t at = s->r.begin; at < s->r.end; at++) look_at(s, at);
  for (uint32_t i = 0; i < count; i++) {
    const vyre__lir_buffer *buffer = &s->kernel->buffers[i];
    vyre__privatised *own = &s->privatised[i];
    uint32_t elements = buffer->count ? buffer->count : ELEMENTS;
    uint64_t bytes = (uint64_t)elements * buffer->width;
    own->is_on = own->op && !own->is_refused && i != s->kernel->spill_buffer &&
                 buffer->kind != VYRE_MEMORY_SHARED &&
                 buffer->unit == buffer->width && used + bytes <= MAX_BYTES;
    if (!own->is_on) continue;
    own->elements = elements;
    used += bytes;
  }
  find_replicas(s);
  for (uint32_t i = count; i-- > 0;) {
    if (s->privatised[i].is_on) VYRE_TRY(add_private(s, i));
  }
  for (uint32_t i = 0; i < count; i++) {
    if (s->privatised[i].replica) VYRE_TRY(add_merge(s, i));
  }
  return VYRE_OK;
}

bool vyre__has_private_atomics(const vyre__schedule *s, uint32_t subregion) {
  const vyre__subregion *of = &s->r.subregions[subregion];
  for (uint32_t at = of->begin; at < of->end; at++) {
    if (flags_at(s, at) & VYRE__LIRF_ATOMICS &&
        s->privatised[inst_at(s, at)->aux].is_on) {
      return true;
    }
  }
  return false;
}
