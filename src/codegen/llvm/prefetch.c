/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Software prefetch for indirect accesses: node -> its edges -> their
 * targets.
 *
 * An out-of-order processor overlaps such chains by itself, but not past
 * atomics that threads share. Before an invocation runs, the loads of an
 * address chain are therefore executed for a later invocation, and the final
 * address is prefetched. Results do not depend on it: the extra loads stay
 * inside read-only buffers and are used as addresses only. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/llvm/internal.h"

enum {
  MAX_STEPS = 24, /* instructions of an address chain */
  MAX_DEPTH = 16,
  MAX_PLACES = 4, /* chains of a subregion */
  MAX_LOADS = 2,  /* loads of a chain */
  NEAR =
      4, /* smallest distance in invocations, with MAX_LOADS loads; else twice that */
  NOT_FOUND = -1,
};

/* An address chain: instructions in order, the last one the access. */
typedef struct path {
  uint32_t steps[MAX_STEPS];
  uint32_t count;
  bool has_x;
} path;

static bool add_step(path *p, uint32_t at) {
  uint32_t to = p->count;
  for (uint32_t i = 0; i < p->count; i++) {
    if (p->steps[i] == at) return true;
  }
  if (p->count == MAX_STEPS) return false;
  p->count++;
  for (; to > 0 && p->steps[to - 1] > at; to--) p->steps[to] = p->steps[to - 1];
  p->steps[to] = at;
  return true;
}

static bool is_simple(uint8_t op) {
  return op == VYRE__LIR_MUL || op == VYRE__LIR_ADD || op == VYRE__LIR_SUB ||
         (op >= VYRE__LIR_AND && op <= VYRE__LIR_SHR_S);
}

/* Returns the initial value of the loop counter that @p v is a GET of; 0:
 * not a counter. */
static vyre__val first_of(const ll *e, vyre__val v) {
  for (uint32_t open = ll_role(e, v)->parent; open;
       open = ll_role(e, open)->parent) {
    if (ll_inst(e, open)->op != VYRE__LIR_LOOP) continue;
    const vyre__lir_loop *loop = &e->kernel->loops[ll_inst(e, open)->aux];
    if (loop->is_counted && loop->var == ll_inst(e, v)->aux) return loop->first;
  }
  return 0;
}

static bool is_readable(const ll *e, const vyre__lir_inst *inst) {
  const vyre__lir_buffer *buffer = &e->kernel->buffers[inst->aux];
  return buffer->kind == VYRE_MEMORY_GLOBAL && !buffer->is_written &&
         buffer->width == buffer->unit && inst->type == VYRE_TYPE_U32;
}

/* Returns the number of dependent loads that lead to @p v in the first
 * iteration of loops; NOT_FOUND if it cannot be computed ahead. */
static int follow(ll *e, vyre__val v, path *p, unsigned depth) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const vyre__inst_info *role = ll_role(e, v);
  int most = 0;
  bool is_x = e->is_fused ? ll_is_x(e, v)
                          : inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0;
  p->has_x |= is_x;
  if (is_x) return e->is_fused && !add_step(p, v) ? NOT_FOUND : 0;
  if (role->is_leaf || role->storage == VYRE__STORAGE_UNIFORM) return 0;
  if (depth == MAX_DEPTH || inst->type != VYRE_TYPE_U32) return NOT_FOUND;
  vyre__val operands[4] = {inst->a};
  uint32_t count = 1;
  if (inst->op == VYRE__LIR_LOAD) {
    if (!is_readable(e, inst)) return NOT_FOUND;
  } else if (inst->op == VYRE__LIR_GET) {
    operands[0] = first_of(e, v);
    if (!operands[0]) return NOT_FOUND;
  } else if (is_simple(inst->op)) {
    count = vyre__lir_operands(inst, operands);
  } else {
    return NOT_FOUND;
  }
  for (uint32_t i = 0; i < count; i++) {
    int loads = follow(e, operands[i], p, depth + 1);
    if (loads == NOT_FOUND) return NOT_FOUND;
    if (loads > most) most = loads;
  }
  if (!add_step(p, v)) return NOT_FOUND;
  return most + (inst->op == VYRE__LIR_LOAD);
}

/* --- code -------------------------------------------------------------------------*/

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
    vyre__val first = first_of(e, at);
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

/* Prefetches the address of access @p at. */
static void ask(ll *e, const path *p, uint32_t at, uint32_t ahead) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(e->kernel->buffers[inst->aux].width);
  uint32_t end = ll_label(e), mark = ll_enter(e);
  ll_op x = e->x, local = e->local[0];
  e->stamp = ++e->stamps;
  if (e->is_fused) {
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

/* Returns true if the subregion has atomics that threads contend for: the
 * processor does not look ahead past them. */
static bool meets(const ll *e, const vyre__subregion *piece) {
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS)) continue;
    if (ll_role(e, at)->is_needed && !e->delays[inst->aux].is_on &&
        e->kernel->buffers[inst->aux].kind != VYRE_MEMORY_SHARED) {
      return true;
    }
  }
  return false;
}

void ll_look_ahead(ll *e, uint32_t index) {
  const vyre__subregion *piece = &e->r.subregions[index];
  uint32_t asked[MAX_PLACES], count = 0;
  if (!e->has_rows || !ll_is_all_on(e) || !meets(e, piece)) return;
  for (uint32_t at = piece->begin; at < piece->end && count < MAX_PLACES;
       at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_ATOMICS;
    if (!(vyre__lir_ops[inst->op].flags & memory)) continue;
    if (!ll_role(e, at)->is_needed || !inst->a) continue;
    const vyre__lir_buffer *buffer = &e->kernel->buffers[inst->aux];
    if (buffer->kind != VYRE_MEMORY_GLOBAL) continue;
    bool is_new = true; /* neighbouring elements mostly share the cache line */
    for (uint32_t i = 0; i < count; i++) is_new &= asked[i] != inst->aux;
    path p = {0};
    int loads = is_new ? follow(e, inst->a, &p, 0) : NOT_FOUND;
    if (loads < 1 || loads > MAX_LOADS || !p.has_x) continue;
    asked[count++] = inst->aux;
    uint32_t near = e->width > NEAR ? e->width : NEAR;
    ask(e, &p, at, loads == MAX_LOADS ? near : 2 * near);
  }
}
