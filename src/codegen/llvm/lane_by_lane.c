/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Accesses of all lanes at a constant distance, as scalar loads and stores.
 * Their addresses need no arithmetic in vectors. On current processors this
 * takes half the time of a gather or scatter, or less. */
#include "codegen/llvm/internal.h"

/* Returns true if addresses of lanes are offsets from the first one, which is
 * inside: shared arrays are small. Elsewhere the index may wrap at 2^32. */
static bool has_offsets(const ll *e, const ll_lanes_at *at) {
  return at->index.kind != LL_CONST && at->lanes & 1 &&
         e->kernel->buffers[at->buffer].kind == VYRE_MEMORY_SHARED;
}

/* Returns the address of lane @p lane. */
static ll_op lane_address(ll *e, const ll_lanes_at *at, ll_op first,
                          uint32_t lane) {
  uint32_t offset = lane * (uint32_t)at->stride;
  if (at->index.kind == LL_CONST) {
    return ll_address(e, at->buffer, ll_const(at->index.bits + offset));
  }
  if (has_offsets(e, at)) {
    int64_t exact = (int64_t)lane * at->stride;
    return ll_def(e, "getelementptr %t, ptr %v, i64 %v", at->type, LL_PTR,
                  first, LL_I64, ll_const((uint64_t)exact));
  }
  return ll_address(
      e, at->buffer,
      ll_def(e, "add i32 %v, %u", LL_I32, at->index, (unsigned)offset));
}

static ll_op first_address(ll *e, const ll_lanes_at *at) {
  return has_offsets(e, at) ? ll_address(e, at->buffer, at->index) : (ll_op){0};
}

/* Returns true if lane @p lane of a shared array is outside it, so that it must
 * be inactive. */
static bool is_outside(const ll *e, const ll_lanes_at *at, uint32_t lane) {
  const vyre__lir_buffer *b = &e->kernel->buffers[at->buffer];
  if (b->kind != VYRE_MEMORY_SHARED || at->index.kind != LL_CONST) return false;
  uint32_t offset = lane * (uint32_t)at->stride;
  return (uint32_t)at->index.bits + offset >= b->count;
}

ll_op ll_load_each(ll *e, const ll_lanes_at *at) {
  ll_op first = first_address(e, at), all = ll_const(0);
  for (uint32_t i = 0; i < e->width; i++) {
    if (is_outside(e, at, i) || !(at->lanes >> i & 1)) continue;
    ll_op one = ll_def(e, "load %t, ptr %v, align %u", at->type, LL_PTR,
                       lane_address(e, at, first, i), at->align);
    all = ll_def(e, "insertelement %o, %o, i64 %v", at->type | LL_VEC, all,
                 at->type, one, LL_I64, ll_const(i));
  }
  return all;
}

void ll_store_each(ll *e, const ll_lanes_at *at, ll_op value) {
  ll_op first = first_address(e, at);
  for (uint32_t i = 0; i < e->width; i++) {
    if (!(at->lanes >> i & 1)) continue;
    ll_op one = value;
    if (value.kind != LL_CONST) {
      one = ll_def(e, "extractelement %o, i64 %v", at->type | LL_VEC, value,
                   LL_I64, ll_const(i));
    }
    ll_do(e, "store %o, ptr %v, align %u", at->type, one, LL_PTR,
          lane_address(e, at, first, i), at->align);
  }
}
