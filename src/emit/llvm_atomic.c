/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Atomics: relaxed on global memory, plain on shared memory, which one thread has
 * for itself. Lane by lane, those that are on. */
#include "emit/llvm_internal.h"

static const char *const names[] = {"add", "umin", "min", "umax", "max",
                                    "and", "or",   "xor", "xchg"};

static const char *name_of(uint8_t op) {
  return names[op - VYRE__LOW_ATOMIC_ADD];
}

/* What a plain operation on memory leaves there. */
static ll_op combine(ll *e, uint8_t op, unsigned type, ll_op old, ll_op value) {
  unsigned bits = 8 * ll_bytes(type);
  switch (op) {
    case VYRE__LOW_ATOMIC_ADD:
      return ll_def(e, "add %o, %v", type, old, type, value);
    case VYRE__LOW_ATOMIC_AND:
      return ll_def(e, "and %o, %v", type, old, type, value);
    case VYRE__LOW_ATOMIC_OR:
      return ll_def(e, "or %o, %v", type, old, type, value);
    case VYRE__LOW_ATOMIC_XOR:
      return ll_def(e, "xor %o, %v", type, old, type, value);
    case VYRE__LOW_ATOMIC_EXCHANGE:
      return value;
    case VYRE__LOW_ATOMIC_MIN_S:
      return ll_def(e, "call %t @llvm.smin.i%u(%o, %o)", type, bits, type, old,
                    type, value);
    case VYRE__LOW_ATOMIC_MAX_S:
      return ll_def(e, "call %t @llvm.smax.i%u(%o, %o)", type, bits, type, old,
                    type, value);
    case VYRE__LOW_ATOMIC_MIN_U:
      return ll_def(e, "call %t @llvm.umin.i%u(%o, %o)", type, bits, type, old,
                    type, value);
    default: /* MAX_U */
      return ll_def(e, "call %t @llvm.umax.i%u(%o, %o)", type, bits, type, old,
                    type, value);
  }
}

/* Whether @p value changes nothing, whatever is there: the operation is a load then.
 * Processors without one for it would wait for all that was stored before. */
static bool is_load(uint8_t op, unsigned type, ll_op value) {
  unsigned bits = 8 * ll_bytes(type);
  uint64_t ones = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  switch (op) {
    case VYRE__LOW_ATOMIC_ADD:
    case VYRE__LOW_ATOMIC_OR:
    case VYRE__LOW_ATOMIC_XOR:
    case VYRE__LOW_ATOMIC_MAX_U:
      return ll_is(value, 0);
    case VYRE__LOW_ATOMIC_AND:
    case VYRE__LOW_ATOMIC_MIN_U:
      return ll_is(value, ones);
    case VYRE__LOW_ATOMIC_MIN_S:
      return ll_is(value, ones >> 1);
    case VYRE__LOW_ATOMIC_MAX_S:
      return ll_is(value, ones ^ ones >> 1);
    default:
      return false;
  }
}

/* One lane's. What was there before. */
static ll_op one(ll *e, const vyre__low_inst *inst, ll_op index, ll_op value,
                 ll_op desired) {
  const vyre__low_buffer *buffer = &e->kernel->buffers[inst->aux];
  unsigned type = ll_memory_type(buffer->width), bytes = ll_bytes(type);
  ll_op at = ll_address(e, inst->aux, index);
  bool is_cas = inst->op == VYRE__LOW_ATOMIC_CAS;
  if (buffer->kind == VYRE_MEMORY_SHARED) {
    ll_op old = ll_def(e, "load %t, ptr %v", type, LL_PTR, at);
    ll_op now;
    if (is_cas) {
      ll_op same = ll_def(e, "icmp eq %o, %v", type, old, type, value);
      now =
          ll_def(e, "select %o, %o, %o", LL_I1, same, type, desired, type, old);
    } else {
      now = combine(e, inst->op, type, old, value);
    }
    ll_do(e, "store %o, ptr %v", type, now, LL_PTR, at);
    return old;
  }
  if (is_load(inst->op, type, value)) {
    return ll_def(e, "load atomic %t, ptr %v monotonic, align %u", type, LL_PTR,
                  at, bytes);
  }
  if (!is_cas) {
    return ll_def(e, "atomicrmw %s ptr %v, %o monotonic, align %u",
                  name_of(inst->op), LL_PTR, at, type, value, bytes);
  }
  ll_op pair = ll_def(e, "cmpxchg ptr %v, %o, %o monotonic monotonic, align %u",
                      LL_PTR, at, type, value, type, desired, bytes);
  return ll_def(e, "extractvalue {%t, i1} %v, 0", type, type, pair);
}

static void lane_by_lane(ll *e, vyre__val v, ll_op active) {
  const vyre__low_inst *inst = ll_inst(e, v);
  unsigned count = inst->op == VYRE__LOW_ATOMIC_CAS ? 3 : 2;
  unsigned type = ll_type(inst->type);
  bool is_used = ll_role(e, v)->uses || ll_role(e, v)->keep != VYRE__KEEP_LOCAL;
  ll_op from[3] = {{0}}, args[3] = {{0}}, got = {0};
  for (unsigned i = 0; i < count; i++) {
    if (ll_is_scalar(e, inst->v[i])) continue;
    from[i] = ll_spill(e, ll_type_of(e, inst->v[i]), ll_vector(e, inst->v[i]));
  }
  if (is_used) got = ll_spill(e, type, ll_const(0));
  ll_lane_loop l = ll_open_lanes(e, active);
  for (unsigned i = 0; i < count; i++) {
    args[i] = from[i].kind == LL_NONE
                  ? ll_scalar(e, inst->v[i])
                  : ll_from_lane(e, &l, ll_type_of(e, inst->v[i]), from[i]);
  }
  ll_op old = one(e, inst, args[0], args[1], args[2]);
  if (is_used) ll_to_lane(e, &l, type, got, old);
  ll_close_lanes(e, &l);
  ll_op all = is_used ? ll_def(e, "load %t, ptr %v", type | LL_VEC, LL_PTR, got)
                      : ll_const(0);
  ll_give(e, v, LL_VECTOR, all);
}

void ll_atomic(ll *e, vyre__val v) {
  const vyre__low_inst *inst = ll_inst(e, v);
  bool is_cas = inst->op == VYRE__LOW_ATOMIC_CAS;
  vyre__val c = is_cas ? inst->d : inst->c;
  if (e->width > 1) {
    lane_by_lane(e, v, ll_active(e, c));
    return;
  }
  unsigned type = ll_type(inst->type);
  uint32_t from = ll_label(e), inside = ll_label(e), done = ll_label(e),
           end = ll_label(e);
  ll_op args[3] = {{0}};
  for (unsigned i = 0; i < 2u + is_cas; i++) args[i] = ll_scalar(e, inst->v[i]);
  bool asks = c && ll_known_of(e, c) != LL_TRUE;
  if (asks) {
    ll_op condition = ll_scalar(e, c);
    ll_place(e, from);
    ll_cond(e, condition, inside, end);
    ll_place(e, inside);
  }
  ll_op old = one(e, inst, args[0], args[1], args[2]);
  if (asks) {
    ll_place(e, done);
    ll_place(e, end);
    old = ll_def(e, "phi %t [%v, %b], [%v, %b]", type, type, old, done, type,
                 ll_const(0), from);
  }
  ll_give(e, v, LL_SCALAR, old);
}
