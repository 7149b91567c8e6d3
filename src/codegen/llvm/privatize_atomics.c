/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits private memory for atomics (spmd/passes/privatize_atomics.c): cleared before a
 * range of workgroups, added to the buffer after it. */
#include "codegen/llvm/internal.h"

enum {
  PAD = 2 * VYRE__SPMD_MAX_WIDTH * 8, /* padding on both sides: see file.c */
  WORTH = 4, /* operations per element that make it pay */
};

ll_op ll_replica(const ll *e, uint32_t buffer) {
  return ll_name(e->is_full_group ? "replicaw" : "replica", buffer);
}

uint64_t ll_replica_elements(const ll *e, uint32_t buffer) {
  uint64_t count = e->kernel->buffers[buffer].count;
  return (count + e->width - 1) / e->width * e->width;
}

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
  const vyre__privatised *own = &e->s->privatised[buffer];
  uint64_t each = own->times * e->s->r.invocations;
  ll_op length = ll_def(e, "zext i32 %%n%u to i64", buffer);
  ll_op most = ll_def(e, "mul i64 %v, %u", LL_I64, length, (unsigned)WORTH);
  /* as many workgroups as elements always suffice */
  ll_op groups = ll_def(e, "call i64 @llvm.umin.i64(i64 %%count, i64 %l)",
                        (uint64_t)1 << 32);
  ll_op work = ll_def(e, "mul i64 %v, %l", LL_I64, groups, each);
  ll_op does = ll_def(e, "icmp uge i64 %v, %v", LL_I64, work, LL_I64, most);
  ll_op fits =
      ll_def(e, "icmp ule i32 %%n%u, %u", buffer, (unsigned)own->elements);
  ll_print(e, " %%w%u = and i1 %v, %v\n", buffer, LL_I1, does, LL_I1, fits);
}

void ll_open_private(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    if (!e->s->privatised[i].is_on) continue;
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    unsigned type = ll_memory_type(buffer->width);
    uint64_t bytes = (uint64_t)e->s->privatised[i].elements * buffer->width;
    ll_array(e, LL_I8, bytes + 2 * (uint64_t)PAD, "y", i);
    ll_text *was = e->to;
    e->to = &e->entry;
    ll_print(e, " %%q%u = getelementptr inbounds i8, ptr %%y%u, i64 %u\n", i, i,
             (unsigned)PAD);
    e->to = was;
    decide(e, i);
    walk w = open_walk(e, i);
    ll_do(
        e, "store %o, ptr %v", type,
        ll_const(vyre__atomic_identity(e->s->privatised[i].op, buffer->width)),
        LL_PTR, element(e, "q", i, w.now));
    close_walk(e, &w);
  }
}

void ll_close_private(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    if (!e->s->privatised[i].is_on) continue;
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    unsigned type = ll_memory_type(buffer->width);
    walk w = open_walk(e, i);
    ll_op got =
        ll_def(e, "load %t, ptr %v", type, LL_PTR, element(e, "q", i, w.now));
    uint32_t some = ll_label(e);
    ll_op none = ll_def(
        e, "icmp eq %o, %v", type, got, type,
        ll_const(vyre__atomic_identity(e->s->privatised[i].op, buffer->width)));
    ll_cond(e, none, w.head, some);
    ll_place(e, some);
    ll_op to = element(e, "d", i, w.now);
    e->buffer_used[i] = true;
    ll_def(e, "atomicrmw %s ptr %v, %o monotonic, align %u",
           ll_atomic_name(e->s->privatised[i].op), LL_PTR, to, type, got,
           buffer->width);
    close_walk(e, &w);
  }
}

/* Code for both cases is long, so such rows are not unrolled. */
void ll_again(ll *e, uint32_t subregion, ll_op condition, uint32_t head,
              uint32_t end) {
  if (!vyre__has_private_atomics(e->s, subregion) || !e->is_open ||
      condition.kind == LL_CONST) {
    ll_cond(e, condition, head, end);
    return;
  }
  ll_do(e, "br i1 %v, label %b, label %b, !llvm.loop !1", LL_I1, condition,
        head, end);
  e->is_open = false;
}
