/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits prefetches (spmd/passes/prefetch.c): runs the loads of an address chain for a
 * later invocation, inside their buffers, and prefetches the final address. */
#include "codegen/llvm/internal.h"

/* Branches to @p end unless LOAD @p at is entirely inside its buffer. */
static ll_op load_one(ll *e, uint32_t at, uint32_t end) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(e->kernel->buffers[inst->aux].width);
  bool is_many = e->width > 1 && !ll_is_scalar(e, inst->a);
  uint32_t inside = ll_label(e);
  ll_op index = ll_scalar(e, inst->a);
  ll_op last = ll_name("n", inst->aux), room = {0};
  if (is_many) { /* contiguous */
    room = ll_def(e, "icmp uge i32 %v, %u", LL_I32, last, e->width);
    last = ll_def(e, "sub i32 %v, %u", LL_I32, last, e->width - 1);
  }
  ll_op is_there =
      ll_def(e, "icmp ult i32 %v, %v", LL_I32, index, LL_I32, last);
  if (is_many) {
    is_there = ll_def(e, "and i1 %v, %v", LL_I1, is_there, LL_I1, room);
  }
  ll_cond(e, is_there, inside, end);
  ll_place(e, inside);
  if (is_many) type |= LL_VEC;
  ll_op got = ll_def(e, "load %t, ptr %v, align 1", type, LL_PTR,
                     ll_address(e, inst->aux, index));
  got = ll_def(e, "freeze %o", type, got); /* used as an index */
  if ((type & LL_NARROW_MASK) == LL_I32) return got;
  return ll_def(e, "zext %o to %t", type, got, LL_I32 | (type & LL_VEC));
}

/* Lanes outside load element 0, if the buffer has one. */
static ll_op load_many(ll *e, uint32_t at, uint32_t end) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(e->kernel->buffers[inst->aux].width);
  unsigned bits = 8 * ll_bytes(type), all = LL_I32 | LL_VEC;
  uint32_t inside = ll_label(e);
  ll_op index = ll_vector(e, inst->a), length = ll_name("n", inst->aux);
  ll_cond(e, ll_def(e, "icmp ne i32 %v, 0", LL_I32, length), inside, end);
  ll_place(e, inside);
  ll_op is_there = ll_def(e, "icmp ult %o, %v", all, index, all,
                          ll_splat(e, LL_I32, length));
  index = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, is_there, all, index,
                 all, ll_const(0));
  index = ll_def(e, "zext %o to %t", all, index, LL_I64 | LL_VEC);
  ll_op from = ll_def(e, "getelementptr inbounds %t, ptr %%d%u, %o", type,
                      (unsigned)inst->aux, LL_I64 | LL_VEC, index);
  ll_op got =
      ll_def(e, "call %t @llvm.masked.gather.v%ui%u.v%up0(%o, i32 1, %o, %o)",
             type | LL_VEC, e->width, bits, e->width, LL_PTR | LL_VEC, from,
             LL_I1 | LL_VEC, ll_const(1), type | LL_VEC, ll_const(0));
  got = ll_def(e, "freeze %o", type | LL_VEC, got);
  if (type == LL_I32) return got;
  return ll_def(e, "zext %o to %t", type | LL_VEC, got, all);
}

static void step(ll *e, uint32_t at, uint32_t end) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  if (ll_is_x(e, at)) {
    ll_give_x(e, at);
  } else if (inst->op == VYRE__LIR_GET) {
    vyre__val first = vyre__counter_first(e->s, at);
    bool is_one = ll_is_scalar(e, first);
    ll_give(e, at, is_one ? LL_SCALAR : LL_VECTOR,
            is_one ? ll_scalar(e, first) : ll_vector(e, first));
  } else if (inst->op != VYRE__LIR_LOAD) {
    ll_pure(e, at);
  } else {
    const ll_rep *index = ll_value(e, inst->a);
    bool is_near = index->form == LL_LINEAR && index->stride == 1;
    if (index->form == LL_SCALAR) {
      ll_give(e, at, LL_SCALAR, load_one(e, at, end));
    } else {
      ll_give(e, at, LL_VECTOR,
              is_near ? load_one(e, at, end) : load_many(e, at, end));
    }
  }
}

void ll_prefetch(ll *e, const vyre__prefetch *p) {
  uint32_t at = p->at, ahead = p->distance;
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(e->kernel->buffers[inst->aux].width);
  uint32_t end = ll_label(e), mark = ll_enter(e);
  ll_op x = e->x, local = e->local[0];
  e->stamp = ++e->stamps;
  if (e->s->is_fused) {
    e->x = ll_def(e, "add i32 %v, %u", LL_I32, x, ahead);
  } else {
    e->local[0] = ll_def(e, "add i32 %v, %u", LL_I32, local, ahead);
  }
  for (uint32_t i = 0; i < p->count; i++) step(e, p->steps[i], end);
  bool is_one = ll_is_scalar(e, inst->a);
  ll_op indices = is_one ? ll_scalar(e, inst->a) : ll_vector(e, inst->a);
  for (unsigned i = 0; i < (is_one ? 1 : e->width); i++) {
    ll_op index = is_one ? indices
                         : ll_def(e, "extractelement %o, i32 %u",
                                  LL_I32 | LL_VEC, indices, i);
    index = ll_def(e, "zext i32 %v to i64", LL_I32, index);
    ll_op to = ll_def(e, "getelementptr %t, ptr %%d%u, i64 %v", type,
                      (unsigned)inst->aux, LL_I64, index);
    ll_do(e, "call void @llvm.prefetch.p0(ptr %v, i32 0, i32 3, i32 1)", LL_PTR,
          to);
  }
  ll_place(e, end);
  ll_leave(e, mark);
  e->x = x;
  e->local[0] = local;
  e->stamp = ++e->stamps;
}
