/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Privatised atomics: a thread applies atomics to private memory, and adds
 * the private results to the buffer when its range of workgroups ends.
 *
 * This is legal if the phase uses the buffer for one commutative operation
 * only, whose old value is unused. It pays if the buffer is short and there
 * are many operations, which the launch decides. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/llvm/internal.h"

enum {
  ELEMENTS = 4096,       /* assumed length of a buffer without a fixed one */
  MAX_BYTES = 48 * 1024, /* private bytes in all */
  PAD = 2 * VYRE__SPMD_MAX_WIDTH * 8, /* padding on both sides: see file.c */
  ROUNDS = 8, /* assumed trip count if max_trips is unknown or >= MAX_ROUNDS */
  MAX_ROUNDS = 128, /* bounds from here on are too loose to use */
  WORTH = 4,        /* operations per element that make it pay */
  TWIN_WORTH = 16,  /* the same */
  MAX_TWIN = 8192,  /* bytes */
};

/* --- which ------------------------------------------------------------------------*/

/* Estimates how often an invocation executes the instruction at @p at. */
static uint64_t times(const ll *e, uint32_t at) {
  uint64_t count = 1;
  for (uint32_t open = ll_role(e, at)->parent; open;
       open = ll_role(e, open)->parent) {
    if (ll_inst(e, open)->op != VYRE__LIR_LOOP) continue;
    const vyre__lir_loop *loop = &e->kernel->loops[ll_inst(e, open)->aux];
    uint64_t rounds = loop->max_trips < MAX_ROUNDS ? loop->max_trips : ROUNDS;
    count *= rounds ? rounds : 1;
    if (count > UINT16_MAX) return UINT16_MAX;
  }
  return count;
}

static void look_at(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  const vyre__inst_info *role = ll_role(e, at);
  if (!(vyre__lir_ops[inst->op].flags & memory) || !role->is_needed) return;
  if (inst->op == VYRE__LIR_OUT_OF_FUEL) return;
  ll_delay *delay = &e->delays[inst->aux];
  bool fits = ll_atomic_commutes(inst->op) && role->subregion && !role->uses &&
              role->storage == VYRE__STORAGE_LOCAL &&
              (!delay->op || delay->op == inst->op);
  if (!fits) delay->is_refused = true;
  delay->op = inst->op;
  delay->times += times(e, at);
}

/* --- shared memory ---------------------------------------------------------------
 * An atomic on an element that was just written waits for the store. If there are many
 * operations, odd lanes use a replica of the array. Both are merged before the next
 * load. */

/* Returns the region that it is in; 0: it is hoisted. */
static uint32_t part_of(const ll *e, uint32_t at) {
  uint32_t i = ll_role(e, at)->subregion ? e->r.first : 0;
  while (i && at >= e->r.regions[i].end) i = e->r.regions[i].next;
  return i;
}

/* Checks three properties: old values are unused, the operations commute, and 0 is
 * the identity. */
static bool is_plain_change(const ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  const vyre__inst_info *role = ll_role(e, at);
  return ll_atomic_commutes(inst->op) && ll_atomic_identity(inst->op, 4) == 0 &&
         !role->uses && role->storage == VYRE__STORAGE_LOCAL;
}

static void find_twin(ll *e, uint32_t buffer) {
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  uint64_t often = 0;
  uint32_t part = 0;
  uint8_t op = 0;
  for (unsigned turn = 0; turn < 2;
       turn++) { /* first the atomics, then all other accesses */
    for (uint32_t at = e->r.begin; at < e->r.end; at++) {
      const vyre__lir_inst *inst = ll_inst(e, at);
      if (!(vyre__lir_ops[inst->op].flags & memory) || inst->aux != buffer ||
          inst->op == VYRE__LIR_OUT_OF_FUEL || !ll_role(e, at)->is_needed) {
        continue;
      }
      uint32_t here = part_of(e, at);
      if (!is_plain_change(e, at)) {
        if (turn == 1 && (!here || here == part)) return;
      } else if (turn == 0) {
        if (!here || (part && (part != here || op != inst->op))) return;
        part = here;
        op = inst->op;
        often += times(e, at);
      }
    }
  }
  uint64_t elements = e->kernel->buffers[buffer].count;
  if (!part || often * e->r.invocations < TWIN_WORTH * elements) {
    return;
  }
  e->delays[buffer].twin = part;
  e->delays[buffer].op = op;
}

static void find_twins(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    uint64_t bytes = (uint64_t)buffer->count * buffer->width;
    if (buffer->kind == VYRE_MEMORY_SHARED && buffer->is_atomic &&
        buffer->width == 4 && buffer->unit == 4 && bytes <= MAX_TWIN &&
        e->width > 1) {
      find_twin(e, i);
    }
  }
}

ll_op ll_twin(const ll *e, uint32_t buffer) {
  return ll_name(e->is_whole ? "twinw" : "twin", buffer);
}

uint64_t ll_twin_elements(const ll *e, uint32_t buffer) {
  uint64_t count = e->kernel->buffers[buffer].count;
  return (count + e->width - 1) / e->width * e->width;
}

/* --- all of them ------------------------------------------------------------------*/

vyre_code ll_find_delays(ll *e) {
  uint32_t count = e->kernel->buffer_count;
  uint64_t used = 0;
  e->delays = vyre__arena_array(e->arena, count, sizeof *e->delays);
  if (!e->delays) return vyre__no_memory(e->st, "emit/llvm", "buffers", count);
  memset(e->delays, 0, count * sizeof *e->delays);
  for (uint32_t at = e->r.begin; at < e->r.end; at++) look_at(e, at);
  for (uint32_t i = 0; i < count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    ll_delay *delay = &e->delays[i];
    uint32_t elements = buffer->count ? buffer->count : ELEMENTS;
    uint64_t bytes = (uint64_t)elements * buffer->width;
    delay->is_on = delay->op && !delay->is_refused &&
                   i != e->kernel->spill_buffer &&
                   buffer->kind != VYRE_MEMORY_SHARED &&
                   buffer->unit == buffer->width && used + bytes <= MAX_BYTES;
    if (!delay->is_on) continue;
    delay->elements = elements;
    used += bytes;
  }
  find_twins(e);
  return VYRE_OK;
}

/* --- around a range -----------------------------------------------------------------*/

typedef struct walk {
  ll_op at, now; /* i64 */
  uint32_t head, end;
} walk;

/* for (now = 0; now < length; now++), if privatising pays. */
static walk open_walk(ll *e, uint32_t buffer) {
  walk w = {.at = ll_alloca(e, LL_I64, 1, 8),
            .head = ll_label(e),
            .end = ll_label(e)};
  uint32_t body = ll_label(e), start = ll_label(e);
  ll_cond(e, ll_name("w", buffer), start, w.end);
  ll_place(e, start);
  ll_do(e, "store i64 0, ptr %v", LL_PTR, w.at);
  ll_op length = ll_def(e, "zext i32 %%n%u to i64", buffer);
  ll_place(e, w.head);
  w.now = ll_def(e, "load i64, ptr %v", LL_PTR, w.at);
  ll_cond(e, ll_def(e, "icmp ult i64 %v, %v", LL_I64, w.now, LL_I64, length),
          body, w.end);
  ll_place(e, body);
  ll_op next = ll_def(e, "add nuw i64 %v, 1", LL_I64, w.now);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, w.at);
  return w;
}

static void close_walk(ll *e, const walk *w) {
  ll_br(e, w->head);
  ll_place(e, w->end);
}

static ll_op element(ll *e, const char *base, uint32_t buffer, ll_op index) {
  unsigned type = ll_memory_type(e->kernel->buffers[buffer].width);
  return ll_def(e, "getelementptr inbounds %t, ptr %%%s%u, i64 %v", type, base,
                buffer, LL_I64, index);
}

/* Computes %wN: whether privatising pays. */
static void decide(ll *e, uint32_t buffer) {
  const ll_delay *delay = &e->delays[buffer];
  uint64_t each = delay->times * e->r.invocations;
  ll_op length = ll_def(e, "zext i32 %%n%u to i64", buffer);
  ll_op most = ll_def(e, "mul i64 %v, %u", LL_I64, length, (unsigned)WORTH);
  /* as many workgroups as elements always suffice */
  ll_op groups = ll_def(e, "call i64 @llvm.umin.i64(i64 %%count, i64 %l)",
                        (uint64_t)1 << 32);
  ll_op work = ll_def(e, "mul i64 %v, %l", LL_I64, groups, each);
  ll_op does = ll_def(e, "icmp uge i64 %v, %v", LL_I64, work, LL_I64, most);
  ll_op fits =
      ll_def(e, "icmp ule i32 %%n%u, %u", buffer, (unsigned)delay->elements);
  ll_print(e, " %%w%u = and i1 %v, %v\n", buffer, LL_I1, does, LL_I1, fits);
}

void ll_open_delays(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    if (!e->delays[i].is_on) continue;
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    unsigned type = ll_memory_type(buffer->width);
    uint64_t bytes = (uint64_t)e->delays[i].elements * buffer->width;
    ll_array(e, LL_I8, bytes + 2 * (uint64_t)PAD, "y", i);
    ll_text *was = e->to;
    e->to = &e->entry;
    ll_print(e, " %%q%u = getelementptr inbounds i8, ptr %%y%u, i64 %u\n", i, i,
             (unsigned)PAD);
    e->to = was;
    decide(e, i);
    walk w = open_walk(e, i);
    ll_do(e, "store %o, ptr %v", type,
          ll_const(ll_atomic_identity(e->delays[i].op, buffer->width)), LL_PTR,
          element(e, "q", i, w.now));
    close_walk(e, &w);
  }
}

void ll_close_delays(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    if (!e->delays[i].is_on) continue;
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    unsigned type = ll_memory_type(buffer->width);
    walk w = open_walk(e, i);
    ll_op got =
        ll_def(e, "load %t, ptr %v", type, LL_PTR, element(e, "q", i, w.now));
    uint32_t some = ll_label(e);
    ll_op none =
        ll_def(e, "icmp eq %o, %v", type, got, type,
               ll_const(ll_atomic_identity(e->delays[i].op, buffer->width)));
    ll_cond(e, none, w.head, some);
    ll_place(e, some);
    ll_op to = element(e, "d", i, w.now);
    e->buffer_used[i] = true;
    ll_def(e, "atomicrmw %s ptr %v, %o monotonic, align %u",
           ll_atomic_name(e->delays[i].op), LL_PTR, to, type, got,
           buffer->width);
    close_walk(e, &w);
  }
}

/* Code for both cases is long, so such rows are not unrolled. */
bool ll_is_bulky(const ll *e, uint32_t index) {
  const vyre__subregion *piece = &e->r.subregions[index];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS &&
        e->delays[inst->aux].is_on) {
      return true;
    }
  }
  return false;
}

void ll_again(ll *e, uint32_t piece, ll_op condition, uint32_t head,
              uint32_t end) {
  if (!ll_is_bulky(e, piece) || !e->is_open || condition.kind == LL_CONST) {
    ll_cond(e, condition, head, end);
    return;
  }
  ll_do(e, "br i1 %v, label %b, label %b, !llvm.loop !1", LL_I1, condition,
        head, end);
  e->is_open = false;
}
