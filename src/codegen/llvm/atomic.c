/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Atomics: relaxed on memory that other threads share, plain operations on
 * memory of this thread, such as shared memory. Lanes execute in order,
 * lowest first. Atomics of several lanes on one element are combined if the
 * result is the same; atomics on adjacent elements become vector operations
 * on memory of this thread. */
#include "codegen/llvm/internal.h"

enum { MASK = LL_I32 | LL_VEC, BITS = LL_I1 | LL_VEC };

/* An atomic and its address. */
typedef struct job {
  vyre__val v;
  const vyre__lir_inst *inst;
  unsigned type; /* of an element */
  ll_op base;    /* of the memory */
  ll_op replica; /* of the replica that odd lanes use; LL_NONE: no replica */
  bool is_plain; /* private to the thread */
  bool is_cas;
  bool is_used;  /* the old value is used */
  bool may_skip; /* has a condition that is not known to hold */
  ll_op active;  /* lanes that execute it; LL_NONE: all */
} job;

static const char *const names[] = {"add", "umin", "min", "umax", "max",
                                    "and", "or",   "xor", "xchg"};

const char *ll_atomic_name(uint8_t op) {
  return names[op - VYRE__LIR_ATOMIC_ADD];
}

/* Without a native instruction, the processor would drain its store buffer. */
static bool is_load(const job *j, ll_op value) {
  return vyre__atomic_commutes(j->inst->op) &&
         ll_is(value, vyre__atomic_identity(j->inst->op, ll_bytes(j->type)));
}

/* --- one element -------------------------------------------------------------------*/

/* Emits smin, umax and so on, for scalars or vectors. */
static ll_op extreme(ll *e, const char *name, unsigned type, ll_op a, ll_op b) {
  unsigned bits = 8 * ll_bytes(type);
  if (!(type & LL_VEC) || e->width == 1) {
    return ll_def(e, "call %t @llvm.%s.i%u(%o, %o)", type, name, bits, type, a,
                  type, b);
  }
  return ll_def(e, "call %t @llvm.%s.v%ui%u(%o, %o)", type, name, e->width,
                bits, type, a, type, b);
}

ll_op ll_combine(ll *e, uint8_t op, unsigned type, ll_op old, ll_op value) {
  switch (op) {
    case VYRE__LIR_ATOMIC_EXCHANGE:
      return value;
    case VYRE__LIR_ATOMIC_MIN_S:
      return extreme(e, "smin", type, old, value);
    case VYRE__LIR_ATOMIC_MAX_S:
      return extreme(e, "smax", type, old, value);
    case VYRE__LIR_ATOMIC_MIN_U:
      return extreme(e, "umin", type, old, value);
    case VYRE__LIR_ATOMIC_MAX_U:
      return extreme(e, "umax", type, old, value);
    default:
      return ll_def(e, "%s %o, %v", ll_atomic_name(op), type, old, type, value);
  }
}

/* For an index of 64 bits. */
static ll_op place_of(ll *e, const job *j, ll_op index) {
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v", j->type, LL_PTR,
                j->base, LL_I64, index);
}

/* Does the same for a constant lane number. */
static ll_op place_of_lane(ll *e, const job *j, unsigned lane, ll_op index) {
  job own = *j;
  if (lane % 2 && j->replica.kind != LL_NONE) own.base = j->replica;
  return place_of(e, &own, index);
}

static ll_op widen(ll *e, ll_op index, const char *how) {
  if (index.kind == LL_CONST) {
    uint32_t bits = (uint32_t)index.bits;
    return ll_const(how[0] == 's' ? (uint64_t)(int64_t)(int32_t)bits : bits);
  }
  return ll_def(e, "%s i32 %v to i64", how, LL_I32, index);
}

/* Returns true if repeating the operation changes nothing. */
static bool is_idempotent(uint8_t op) {
  return vyre__atomic_commutes(op) && op != VYRE__LIR_ATOMIC_ADD &&
         op != VYRE__LIR_ATOMIC_XOR;
}

static ll_op change(ll *e, const job *j, ll_op at, ll_op value) {
  return ll_def(e, "atomicrmw %s ptr %v, %o monotonic, align %u",
                ll_atomic_name(j->inst->op), LL_PTR, at, j->type, value,
                ll_bytes(j->type));
}

/* Loads first: mostly the value need not change, and a load does not wait
 * for other threads. */
static ll_op change_if(ll *e, const job *j, ll_op at, ll_op value) {
  unsigned type = j->type;
  uint32_t from = ll_label(e), changes = ll_label(e), end = ll_label(e);
  ll_place(e, from);
  ll_op old = ll_def(e, "load atomic %t, ptr %v monotonic, align %u", type,
                     LL_PTR, at, ll_bytes(type));
  ll_op now = ll_combine(e, j->inst->op, type, old, value);
  ll_op same = ll_def(e, "icmp eq %o, %v", type, now, type, old);
  ll_cond(e, same, end, changes);
  ll_place(e, changes);
  ll_op was = change(e, j, at, value);
  ll_place(e, end);
  return ll_def(e, "phi %t [%v, %b], [%v, %b]", type, type, old, from, type,
                was, changes);
}

/* Returns the old value. */
static ll_op one(ll *e, const job *j, ll_op at, ll_op value, ll_op desired) {
  unsigned type = j->type, bytes = ll_bytes(type);
  if (j->is_plain) {
    ll_op old = ll_def(e, "load %t, ptr %v", type, LL_PTR, at), now;
    if (j->is_cas) {
      ll_op same = ll_def(e, "icmp eq %o, %v", type, old, type, value);
      now =
          ll_def(e, "select %o, %o, %o", LL_I1, same, type, desired, type, old);
    } else {
      now = ll_combine(e, j->inst->op, type, old, value);
    }
    ll_do(e, "store %o, ptr %v", type, now, LL_PTR, at);
    return old;
  }
  if (is_load(j, value)) {
    return ll_def(e, "load atomic %t, ptr %v monotonic, align %u", type, LL_PTR,
                  at, bytes);
  }
  if (j->inst->op == VYRE__LIR_ATOMIC_EXCHANGE && !j->is_used) {
    ll_do(e, "store atomic %o, ptr %v monotonic, align %u", type, value, LL_PTR,
          at, bytes);
    return ll_const(0);
  }
  if (is_idempotent(j->inst->op)) return change_if(e, j, at, value);
  if (!j->is_cas) return change(e, j, at, value);
  ll_op pair = ll_def(e, "cmpxchg ptr %v, %o, %o monotonic monotonic, align %u",
                      LL_PTR, at, type, value, type, desired, bytes);
  return ll_def(e, "extractvalue {%t, i1} %v, 0", type, type, pair);
}

/* --- only if some lane does it -------------------------------------------------------*/

typedef struct guard {
  uint32_t from, end;
  bool is_open;
} guard;

static guard open_guard(ll *e, const job *j, ll_op condition) {
  /* If the condition is known to hold, no branch skips the operation, so the
   * phi has one predecessor less. */
  bool holds = condition.kind == LL_CONST && condition.bits;
  guard g = {.is_open = j->may_skip && !holds};
  if (!g.is_open) return g;
  uint32_t inside = ll_label(e);
  g.from = ll_label(e);
  g.end = ll_label(e);
  ll_place(e, g.from);
  ll_cond(e, condition, inside, g.end);
  ll_place(e, inside);
  return g;
}

/* Returns @p op, or 0. */
static ll_op close_guard(ll *e, const job *j, guard g, unsigned type,
                         ll_op op) {
  if (!g.is_open) return op;
  uint32_t inside = ll_label(e);
  ll_place(e, inside);
  ll_place(e, g.end);
  if (!j->is_used) return ll_const(0);
  return ll_def(e, "phi %t [%v, %b], [%v, %b]", type, type, op, inside, type,
                ll_const(0), g.from);
}

/* Inactive lanes get 0. */
static ll_op only_active(ll *e, const job *j, ll_op op) {
  if (!j->may_skip || j->active.kind == LL_NONE) return op;
  unsigned type = j->type | LL_VEC;
  ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, j->active);
  return ll_def(e, "select %o, %o, %o", BITS, bits, type, op, type,
                ll_const(0));
}

/* --- lane by lane --------------------------------------------------------------------*/

static ll_op lane_by_lane(ll *e, const job *j) {
  const vyre__lir_inst *inst = j->inst;
  unsigned count = j->is_cas ? 3 : 2, type = j->type;
  ll_op from[3] = {{0}}, args[3] = {{0}}, got = {0};
  for (unsigned i = 0; i < count; i++) {
    if (ll_is_scalar(e, inst->v[i])) continue;
    from[i] = ll_spill(e, ll_type_of(e, inst->v[i]), ll_vector(e, inst->v[i]));
  }
  if (j->is_used) got = ll_spill(e, type, ll_const(0));
  ll_lane_loop l = ll_open_lanes(e, j->active);
  l.stays = !j->is_plain;
  for (unsigned i = 0; i < count; i++) {
    args[i] = from[i].kind == LL_NONE
                  ? ll_scalar(e, inst->v[i])
                  : ll_from_lane(e, &l, ll_type_of(e, inst->v[i]), from[i]);
  }
  ll_op at = place_of(e, j, widen(e, args[0], "zext"));
  ll_op old = one(e, j, at, args[1], args[2]);
  if (j->is_used) ll_to_lane(e, &l, type, got, old);
  ll_close_lanes(e, &l);
  if (!j->is_used) return ll_const(0);
  return ll_def(e, "load %t, ptr %v", type | LL_VEC, LL_PTR, got);
}

/* --- all lanes, written one by one ----------------------------------------------------*/

/* Extracts indices from vectors. Loaded bytes are extracted word by word,
 * which is faster than element by element. Other values are not: LLVM 19
 * drops the mask of a word's first element if it believes to know the bits
 * (random program 6063), which makes the index arbitrary. */
typedef struct unpacking {
  ll_op all; /* words of eight bytes, or the vector */
  ll_op word;
  unsigned word_count; /* 0: element by element */
} unpacking;

static unpacking unpack(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unpacking u = {.all = ll_vector(e, v)};
  if (inst->op != VYRE__LIR_LOAD || e->width < 8 ||
      e->kernel->buffers[inst->aux].width != 1) {
    return u;
  }
  u.word_count = e->width / 8;
  ll_op op = ll_def(e, "trunc %o to %t", MASK, u.all, LL_I8 | LL_VEC);
  u.all = u.word_count == 1 ? ll_def(e, "bitcast %o to i64", LL_I8 | LL_VEC, op)
                            : ll_def(e, "bitcast %o to <%u x i64>",
                                     LL_I8 | LL_VEC, op, u.word_count);
  return u;
}

static ll_op unpack_lane(ll *e, unpacking *u, unsigned lane) {
  enum { EACH = 8, BYTE = 8 };
  if (u->word_count == 0) {
    ll_op op = ll_def(e, "extractelement %o, i32 %u", MASK, u->all, lane);
    return widen(e, op, "zext");
  }
  unsigned in_word = lane % EACH;
  if (in_word == 0) {
    u->word = u->word_count == 1
                  ? u->all
                  : ll_def(e, "extractelement <%u x i64> %v, i32 %u",
                           u->word_count, LL_I64, u->all, lane / EACH);
  }
  ll_op op = u->word;
  if (in_word) {
    op = ll_def(e, "lshr i64 %v, %u", LL_I64, op, in_word * BYTE);
  }
  if (in_word == EACH - 1) return op;
  return ll_def(e, "and i64 %v, %l", LL_I64, op, (UINT64_C(1) << BYTE) - 1);
}

static ll_op lane_of(ll *e, vyre__val v, unsigned lane) {
  if (ll_is_scalar(e, v)) return ll_scalar(e, v);
  return ll_def(e, "extractelement %o, i32 %u", ll_type_of(e, v) | LL_VEC,
                ll_vector(e, v), lane);
}

static ll_op straight(ll *e, const job *j) {
  const vyre__lir_inst *inst = j->inst;
  unsigned type = j->type;
  bool is_same = ll_is_scalar(e, inst->a);
  unpacking u = {0};
  ll_op at = {0}, all = {0};
  if (is_same) {
    at = place_of(e, j, widen(e, ll_scalar(e, inst->a), "zext"));
  } else {
    u = unpack(e, inst->a);
  }
  for (unsigned i = 0; i < e->width; i++) {
    if (!is_same) at = place_of_lane(e, j, i, unpack_lane(e, &u, i));
    ll_op value = lane_of(e, inst->b, i), desired = {0};
    if (j->is_cas) desired = lane_of(e, inst->c, i);
    ll_op old = one(e, j, at, value, desired);
    if (!j->is_used) continue;
    if (i == 0) {
      all = ll_def(e, "insertelement %t poison, %o, i32 0", type | LL_VEC, type,
                   old);
    } else {
      all = ll_def(e, "insertelement %o, %o, i32 %u", type | LL_VEC, all, type,
                   old, i);
    }
  }
  return j->is_used ? all : ll_const(0);
}

/* All lanes are active except for a check that mostly holds. */
static ll_op straight_or_not(ll *e, const job *j) {
  uint32_t all = ll_label(e), some = ll_label(e), end = ll_label(e);
  unsigned type = j->type | LL_VEC;
  ll_op got = {0};
  if (j->is_used) got = ll_alloca(e, type, 1, 64);
  ll_branch_likely(e, ll_all(e, j->active), all, some);
  for (unsigned i = 0; i < 2; i++) {
    ll_place(e, i ? some : all);
    uint32_t mark = ll_enter(e);
    ll_op op = i ? lane_by_lane(e, j) : straight(e, j);
    if (j->is_used) ll_do(e, "store %o, ptr %v", type, op, LL_PTR, got);
    ll_leave(e, mark);
    ll_br(e, end);
  }
  ll_place(e, end);
  if (!j->is_used) return ll_const(0);
  return ll_def(e, "load %t, ptr %v", type, LL_PTR, got);
}

/* --- one element for all lanes -----------------------------------------------------------*/

static ll_op multiply(ll *e, unsigned type, ll_op count, ll_op value) {
  if (type == LL_I64) count = ll_def(e, "zext i32 %v to i64", LL_I32, count);
  if (ll_is(value, 1)) return count;
  return ll_def(e, "mul %o, %v", type, count, type, value);
}

/* Emits the combined operation of all active lanes. */
static ll_op total(ll *e, const job *j, ll_op lanes) {
  uint8_t op = j->inst->op;
  unsigned type = j->type, bytes = ll_bytes(type);
  if (ll_is_scalar(e, j->inst->b)) {
    ll_op value = ll_scalar(e, j->inst->b);
    if (op != VYRE__LIR_ATOMIC_ADD && op != VYRE__LIR_ATOMIC_XOR) return value;
    ll_op count = ll_def(e, "call i32 @llvm.ctpop.i32(i32 %v)", LL_I32, lanes);
    if (op == VYRE__LIR_ATOMIC_XOR) {
      count = ll_def(e, "and i32 %v, 1", LL_I32, count);
    }
    return multiply(e, type, count, value);
  }
  static const char *const reductions[] = {"add",  "umin", "smin", "umax",
                                           "smax", "and",  "or",   "xor"};
  ll_op all = ll_vector(e, j->inst->b);
  if (j->active.kind != LL_NONE) {
    ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, j->active);
    all = ll_def(e, "select %o, %o, %o", BITS, bits, type | LL_VEC, all,
                 type | LL_VEC, ll_const(vyre__atomic_identity(op, bytes)));
  }
  return ll_def(e, "call %t @llvm.vector.reduce.%s.v%ui%u(%o)", type,
                reductions[op - VYRE__LIR_ATOMIC_ADD], e->width, 8 * bytes,
                type | LL_VEC, all);
}

/* Returns, for each lane, the number of active lanes before it. */
static ll_op ranks(ll *e, ll_op lanes) {
  ll_op iota = ll_name("iota", UINT32_MAX);
  ll_op below = ll_def(e, "shl %o, %v", MASK, ll_const(1), MASK, iota);
  below = ll_def(e, "add %o, %v", MASK, below, MASK, ll_const(UINT32_MAX));
  below =
      ll_def(e, "and %o, %v", MASK, below, MASK, ll_splat(e, LL_I32, lanes));
  return ll_def(e, "call %t @llvm.ctpop.v%ui32(%o)", MASK, e->width, MASK,
                below);
}

static ll_op together(ll *e, const job *j) {
  unsigned type = j->type, vector = type | LL_VEC;
  ll_op lanes = ll_lanes(e, j->active);
  ll_op index = ll_scalar(e, j->inst->a);
  (void)ll_value(e, j->inst->b);
  ll_op some = {0}, op = {0};
  if (j->may_skip) some = ll_def(e, "icmp ne i32 %v, 0", LL_I32, lanes);
  guard g = open_guard(e, j, some);
  uint32_t mark = ll_enter(e);
  ll_op at = place_of(e, j, widen(e, index, "zext"));
  ll_op old = one(e, j, at, total(e, j, lanes), (ll_op){0});
  if (j->is_used) {
    ll_op value = ll_splat(e, type, ll_scalar(e, j->inst->b));
    op = lanes.kind == LL_CONST ? ll_name("iota", UINT32_MAX) : ranks(e, lanes);
    if (type == LL_I64) op = ll_def(e, "zext %o to %t", MASK, op, vector);
    op = ll_def(e, "mul %o, %v", vector, op, vector, value);
    op = ll_def(e, "add %o, %v", vector, op, vector, ll_splat(e, type, old));
    op = only_active(e, j, op);
  }
  ll_leave(e, mark);
  op = close_guard(e, j, g, vector, op);
  return j->is_used ? op : ll_const(0);
}

/* --- loads --------------------------------------------------------------------------------*/

/* If the buffer has any element, it has element 0, which inactive lanes
 * load. */
static ll_op load_all(ll *e, const job *j) {
  unsigned vector = j->type | LL_VEC;
  if (!j->is_used) return ll_const(0);
  ll_op indices = ll_vector(e, j->inst->a), all = {0};
  if (j->active.kind != LL_NONE) {
    ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, j->active);
    indices = ll_def(e, "select %o, %o, %o", BITS, bits, MASK, indices, MASK,
                     ll_const(0));
  }
  guard g = open_guard(e, j, j->may_skip ? ll_any(e, j->active) : (ll_op){0});
  for (unsigned i = 0; i < e->width; i++) {
    ll_op index =
        ll_def(e, "extractelement %o, i32 %u", MASK, indices, (unsigned)i);
    ll_op at = place_of(e, j, widen(e, index, "zext"));
    ll_op old = ll_def(e, "load atomic %t, ptr %v monotonic, align %u", j->type,
                       LL_PTR, at, ll_bytes(j->type));
    all = i ? ll_def(e, "insertelement %o, %o, i32 %u", vector, all, j->type,
                     old, i)
            : ll_def(e, "insertelement %t poison, %o, i32 0", vector, j->type,
                     old);
  }
  return close_guard(e, j, g, vector, only_active(e, j, all));
}

/* --- elements side by side ----------------------------------------------------------------*/

/* Memory of the thread is padded on both sides. */
static ll_op side_by_side(ll *e, const job *j) {
  unsigned type = j->type | LL_VEC, bytes = ll_bytes(j->type);
  ll_op at = place_of(e, j, widen(e, ll_scalar(e, j->inst->a), "sext"));
  ll_op value = ll_vector(e, j->inst->b);
  ll_op old = ll_def(e, "load %t, ptr %v, align %u", type, LL_PTR, at, bytes);
  ll_op now = ll_combine(e, j->inst->op, type, old, value);
  if (j->active.kind != LL_NONE) {
    ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, j->active);
    now = ll_def(e, "select %o, %o, %o", BITS, bits, type, now, type, old);
  }
  ll_do(e, "store %o, ptr %v, align %u", type, now, LL_PTR, at, bytes);
  return old;
}

/* --- which way -----------------------------------------------------------------------------*/

static ll_op vectors(ll *e, const job *j) {
  const vyre__lir_inst *inst = j->inst;
  const ll_rep *index = ll_value(e, inst->a);
  bool is_same = index->form == LL_SCALAR;
  bool counts = index->form == LL_LINEAR && index->stride == 1;
  bool is_scalar = ll_is_scalar(e, inst->b);
  bool loads = !j->is_plain && is_scalar && is_load(j, ll_scalar(e, inst->b));
  if (is_same && vyre__atomic_commutes(inst->op) && !loads &&
      (!j->is_used || (inst->op == VYRE__LIR_ATOMIC_ADD && is_scalar))) {
    return together(e, j);
  }
  if (counts && j->is_plain && !j->is_cas && !j->may_skip) {
    return side_by_side(e, j);
  }
  if (loads) return load_all(e, j);
  /* Next to contended atomics a loop is cheap, and its code is small. */
  if (!j->is_plain) return lane_by_lane(e, j);
  if (j->active.kind == LL_NONE) return straight(e, j);
  if (j->may_skip && ll_is_all_on(e) && !j->is_cas) {
    return straight_or_not(e, j);
  }
  return lane_by_lane(e, j);
}

static ll_op scalar(ll *e, const job *j) {
  const vyre__lir_inst *inst = j->inst;
  ll_op args[3] = {{0}}, some = {0};
  for (unsigned i = 0; i < 2u + j->is_cas; i++) {
    args[i] = ll_scalar(e, inst->v[i]);
  }
  if (j->may_skip) some = ll_scalar(e, j->is_cas ? inst->d : inst->c);
  guard g = open_guard(e, j, some);
  ll_op at = place_of(e, j, widen(e, args[0], "zext"));
  ll_op old = one(e, j, at, args[1], args[2]);
  return close_guard(e, j, g, j->type, old);
}

static ll_op run(ll *e, const job *j) {
  return e->width == 1 ? scalar(e, j) : vectors(e, j);
}

/* Uses private memory if the start of the range decided so, otherwise the
 * buffer. */
static void run_privatized(ll *e, job *j) {
  uint32_t own = ll_label(e), all = ll_label(e), end = ll_label(e);
  ll_op base = j->base;
  ll_cond(e, ll_name("w", j->inst->aux), own, all);
  for (unsigned i = 0; i < 2; i++) {
    ll_place(e, i ? all : own);
    uint32_t mark = ll_enter(e);
    j->is_plain = i == 0;
    j->base = i ? base : ll_name("q", j->inst->aux);
    (void)run(e, j);
    ll_leave(e, mark);
    ll_br(e, end);
  }
  ll_place(e, end);
}

void ll_atomic(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const vyre__lir_buffer *buffer = &e->kernel->buffers[inst->aux];
  const vyre__inst_info *role = ll_role(e, v);
  job j = {.v = v,
           .inst = inst,
           .type = ll_memory_type(buffer->width),
           .base = ll_base(e, inst->aux),
           .is_plain = buffer->kind == VYRE_MEMORY_SHARED,
           .is_cas = inst->op == VYRE__LIR_ATOMIC_CAS,
           .is_used = role->uses || role->storage != VYRE__STORAGE_LOCAL};
  vyre__val c = j.is_cas ? inst->d : inst->c;
  uint8_t form = e->width == 1 ? LL_SCALAR : LL_VECTOR;
  ll_op old = ll_const(0);
  e->buffer_used[inst->aux] = true;
  j.may_skip = c && ll_known_of(e, c) != LL_TRUE;
  if (e->width > 1) j.active = ll_active(e, c);
  /* A later load of the array must see both replicas merged. */
  if (e->s->privatised[inst->aux].replica &&
      e->s->privatised[inst->aux].op == inst->op && !j.is_used) {
    j.replica = ll_replica(e, inst->aux);
  }
  if (e->s->privatised[inst->aux].is_on) {
    run_privatized(e, &j);
  } else {
    old = run(e, &j);
  }
  ll_give(e, v, form, old);
}
