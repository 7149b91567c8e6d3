/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads and stores: of one number where lanes agree about the place, of a whole
 * vector where they are side by side, lane by lane elsewhere. */
#include "emit/llvm_internal.h"

enum { MASK = LL_I32 | LL_VEC };

static const vyre__low_buffer *buffer_of(const ll *e, uint32_t at) {
  return &e->kernel->buffers[ll_inst(e, at)->aux];
}

static bool is_shared(const ll *e, uint32_t at) {
  return buffer_of(e, at)->kind == VYRE_MEMORY_SHARED;
}

/* Memory of the caller is where it is; shared memory is ours. */
static unsigned align_of(const ll *e, uint32_t at) {
  return is_shared(e, at) ? buffer_of(e, at)->width : 1;
}

static ll_op base_of(ll *e, uint32_t buffer) {
  e->buffer_used[buffer] = true;
  return ll_name("d", buffer);
}

ll_op ll_address(ll *e, uint32_t buffer, ll_op index) {
  unsigned type = ll_memory_type(e->kernel->buffers[buffer].width);
  ll_op wide = index.kind == LL_CONST
                   ? ll_const(index.bits & UINT32_MAX)
                   : ll_def(e, "zext i32 %v to i64", LL_I32, index);
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v", type, LL_PTR,
                base_of(e, buffer), LL_I64, wide);
}

static ll_op addresses(ll *e, uint32_t buffer, ll_op indices) {
  unsigned type = ll_memory_type(e->kernel->buffers[buffer].width);
  ll_op wide = ll_def(e, "zext %o to %t", MASK, indices, LL_I64 | LL_VEC);
  return ll_def(e, "getelementptr inbounds %t, ptr %v, %o", type, LL_PTR,
                base_of(e, buffer), LL_I64 | LL_VEC, wide);
}

/* A load of memory that others may write meanwhile gives one number, whatever it
 * is: what was checked is what is used. */
static ll_op settle(ll *e, uint32_t at, unsigned type, ll_op op) {
  const vyre__low_buffer *buffer = buffer_of(e, at);
  if (buffer->is_written && buffer->kind != VYRE_MEMORY_SHARED &&
      ll_inst(e, at)->aux != e->kernel->hidden) {
    op = ll_def(e, "freeze %o", type, op);
  }
  if (buffer->width < 4) {
    op = ll_def(e, "zext %o to %t", type, op, LL_I32 | (type & LL_VEC));
  }
  return op;
}

/* --- one number ------------------------------------------------------------------*/

typedef struct guard {
  uint32_t from, end; /* labels */
  bool is_open;
} guard;

/* Code up to close_guard() happens if @p condition holds, an i1. */
static guard open_guard(ll *e, ll_op condition) {
  guard g = {.is_open = condition.kind != LL_NONE};
  if (!g.is_open) return g;
  g.from = ll_label(e);
  g.end = ll_label(e);
  uint32_t inside = ll_label(e);
  ll_place(e, g.from);
  ll_cond(e, condition, inside, g.end);
  ll_place(e, inside);
  return g;
}

/* Gives @p op, made inside, or zero. */
static ll_op close_guard(ll *e, guard g, unsigned type, ll_op op) {
  if (!g.is_open) return op;
  uint32_t inside = ll_label(e);
  ll_place(e, inside);
  ll_place(e, g.end);
  if (op.kind == LL_NONE) return op;
  return ll_def(e, "phi %t [%v, %b], [%v, %b]", type, type, op, inside, type,
                ll_const(0), g.from);
}

/* Whether a uniform access happens; LL_NONE: it does. */
static ll_op happens(ll *e, vyre__val c) {
  if (!c || ll_known_of(e, c) == LL_TRUE) return (ll_op){0};
  if (ll_is_scalar(e, c)) return ll_scalar(e, c);
  return ll_any(e, ll_active(e, c));
}

static void load_uniform(ll *e, vyre__val v) {
  const vyre__low_inst *inst = ll_inst(e, v);
  unsigned type = ll_memory_type(buffer_of(e, v)->width);
  ll_op index = ll_scalar(e, inst->a);
  guard g = open_guard(e, happens(e, inst->b));
  ll_op op = ll_def(e, "load %t, ptr %v, align %u", type, LL_PTR,
                    ll_address(e, inst->aux, index), align_of(e, v));
  op = settle(e, v, type, op);
  unsigned wide = ll_type(inst->type);
  op = close_guard(e, g, wide, op);
  bool differs = inst->b && ll_known_of(e, inst->b) != LL_TRUE &&
                 !ll_is_scalar(e, inst->b);
  if (!differs) {
    ll_give(e, v, LL_SCALAR, op);
    return;
  }
  op = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, ll_vector(e, inst->b),
              wide | LL_VEC, ll_splat(e, wide, op), wide | LL_VEC, ll_const(0));
  ll_give(e, v, LL_VECTOR, op);
}

static void store_uniform(ll *e, uint32_t at) {
  const vyre__low_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  unsigned from = ll_type_of(e, inst->b);
  ll_op index = ll_scalar(e, inst->a);
  ll_op value = ll_scalar(e, inst->b);
  guard g = open_guard(e, happens(e, inst->c));
  if (from != type && value.kind != LL_CONST) {
    value = ll_def(e, "trunc %o to %t", from, value, type);
  }
  ll_do(e, "store %o, ptr %v, align %u", type, value, LL_PTR,
        ll_address(e, inst->aux, index), align_of(e, at));
  close_guard(e, g, type, (ll_op){0});
}

/* --- vectors -----------------------------------------------------------------------*/

static bool is_contiguous(ll *e, vyre__val index) {
  const ll_rep *rep = ll_value(e, index);
  return rep->form == LL_LINEAR && rep->stride == 1;
}

static ll_op bits_of(ll *e, ll_op mask) {
  if (mask.kind == LL_NONE) return ll_const(1);
  return ll_def(e, "icmp slt %o, zeroinitializer", MASK, mask);
}

static void load_vector(ll *e, vyre__val v) {
  const vyre__low_inst *inst = ll_inst(e, v);
  unsigned scalar = ll_memory_type(buffer_of(e, v)->width);
  unsigned type = scalar | LL_VEC;
  ll_op active = ll_active(e, inst->b), op;
  if (active.kind == LL_NONE && is_contiguous(e, inst->a)) {
    op = ll_def(e, "load %t, ptr %v, align %u", type, LL_PTR,
                ll_address(e, inst->aux, ll_scalar(e, inst->a)),
                align_of(e, v));
  } else {
    ll_op at = addresses(e, inst->aux, ll_vector(e, inst->a));
    op = ll_def(e,
                "call %t @llvm.masked.gather.v%ui%u.v%up0(%o, i32 %u, %o, %o)",
                type, e->width, 8 * ll_bytes(scalar), e->width,
                LL_PTR | LL_VEC, at, align_of(e, v), LL_I1 | LL_VEC,
                bits_of(e, active), type, ll_const(0));
  }
  ll_give(e, v, LL_VECTOR, settle(e, v, type, op));
}

static void store_vector(ll *e, uint32_t at) {
  const vyre__low_inst *inst = ll_inst(e, at);
  unsigned scalar = ll_memory_type(buffer_of(e, at)->width);
  unsigned type = scalar | LL_VEC;
  unsigned from = ll_type_of(e, inst->b) | LL_VEC;
  ll_op active = ll_active(e, inst->c), value = ll_vector(e, inst->b);
  if (from != type && value.kind != LL_CONST) {
    value = ll_def(e, "trunc %o to %t", from, value, type);
  }
  if (active.kind == LL_NONE && is_contiguous(e, inst->a)) {
    ll_do(e, "store %o, ptr %v, align %u", type, value, LL_PTR,
          ll_address(e, inst->aux, ll_scalar(e, inst->a)), align_of(e, at));
    return;
  }
  ll_op to = addresses(e, inst->aux, ll_vector(e, inst->a));
  ll_do(e, "call void @llvm.masked.scatter.v%ui%u.v%up0(%o, %o, i32 %u, %o)",
        e->width, 8 * ll_bytes(scalar), e->width, type, value,
        LL_PTR | LL_VEC, to, align_of(e, at), LL_I1 | LL_VEC,
        bits_of(e, active));
}

void ll_load(ll *e, vyre__val v) {
  if (ll_is_scalar(e, ll_inst(e, v)->a)) {
    load_uniform(e, v);
  } else {
    load_vector(e, v);
  }
}

/* Which lane stores where all store to one place does not matter: it is a race
 * unless one is active. */
void ll_store(ll *e, uint32_t at) {
  const vyre__low_inst *inst = ll_inst(e, at);
  bool is_one = ll_is_scalar(e, inst->a) && ll_is_scalar(e, inst->b);
  bool needs_lane = inst->c && !ll_is_scalar(e, inst->c) &&
                    !ll_is_scalar(e, inst->b);
  if (is_one || (ll_is_scalar(e, inst->a) && !needs_lane)) {
    store_uniform(e, at);
  } else {
    store_vector(e, at);
  }
}
