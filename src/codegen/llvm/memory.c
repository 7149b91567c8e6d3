/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads and stores: scalar if the address is uniform, a vector if lanes are
 * contiguous, otherwise lane by lane or gathered. */
#include "codegen/llvm/internal.h"

enum { MASK = LL_I32 | LL_VEC };

static const vyre__lir_buffer *buffer_of(const ll *e, uint32_t at) {
  return &e->kernel->buffers[ll_inst(e, at)->aux];
}

static bool is_shared(const ll *e, uint32_t at) {
  return buffer_of(e, at)->kind == VYRE_MEMORY_SHARED;
}

/* The caller's memory has any alignment; shared memory is aligned. */
static unsigned align_of(const ll *e, uint32_t at) {
  return is_shared(e, at) ? buffer_of(e, at)->width : 1;
}

ll_op ll_base(ll *e, uint32_t buffer) {
  e->buffer_used[buffer] = true;
  bool is_shared = e->kernel->buffers[buffer].kind == VYRE_MEMORY_SHARED;
  return ll_name(is_shared && e->is_full_group ? "dw" : "d", buffer);
}

ll_op ll_address(ll *e, uint32_t buffer, ll_op index) {
  unsigned type = ll_memory_type(e->kernel->buffers[buffer].width);
  ll_op wide = index.kind == LL_CONST
                   ? ll_const(index.bits & UINT32_MAX)
                   : ll_def(e, "zext i32 %v to i64", LL_I32, index);
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v", type, LL_PTR,
                ll_base(e, buffer), LL_I64, wide);
}

/* To LLVM, a load of memory that another thread writes is undefined: each use of it
 * may be another value, and a branch on it may go anywhere. Freezing it makes it one
 * value, which LLVM must not load again (spmd/passes/single_read.h). */
static ll_op freeze(ll *e, uint32_t at, unsigned type, ll_op op) {
  const vyre__lir_buffer *buffer = buffer_of(e, at);
  bool is_raced = buffer->is_written &&
                  vyre__lir_may_change(e->kernel, ll_inst(e, at)->aux);
  if (!is_raced && !vyre__load_is_single_read(e->kernel, e->s->decides, at)) {
    return op;
  }
  return ll_def(e, "freeze %o", type, op);
}

static ll_op widen_loaded(ll *e, uint32_t at, unsigned type, ll_op op) {
  const vyre__lir_buffer *buffer = buffer_of(e, at);
  op = freeze(e, at, type, op);
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

/* Guards the code up to close_guard() by @p condition, an i1. A condition
 * that is known to hold needs no branch, and close_guard() then emits no
 * phi. */
static guard open_guard(ll *e, ll_op condition) {
  bool holds = condition.kind == LL_CONST && condition.bits;
  guard g = {.is_open = condition.kind != LL_NONE && !holds};
  if (!g.is_open) return g;
  g.from = ll_label(e);
  g.end = ll_label(e);
  uint32_t inside = ll_label(e);
  ll_place(e, g.from);
  ll_branch_likely(e, condition, inside, g.end);
  ll_place(e, inside);
  return g;
}

/* Returns @p op, computed inside the guard, or zero. */
static ll_op close_guard(ll *e, guard g, unsigned type, ll_op op) {
  if (!g.is_open) return op;
  uint32_t inside = ll_label(e);
  ll_place(e, inside);
  ll_place(e, g.end);
  if (op.kind == LL_NONE) return op;
  return ll_def(e, "phi %t [%v, %b], [%v, %b]", type, type, op, inside, type,
                ll_const(0), g.from);
}

/* Returns an i1 that is true if a uniform access happens; LL_NONE: always. */
static ll_op happens(ll *e, vyre__val c) {
  if (!c || ll_known_of(e, c) == LL_TRUE) return (ll_op){0};
  if (ll_is_scalar(e, c)) return ll_scalar(e, c);
  return ll_any(e, ll_active(e, c));
}

/* Returns the address of element @p index, a scalar. Elements next to each other
 * have one address and constant offsets, so that LLVM joins their loads. */
static ll_op address_of(ll *e, uint32_t buffer, vyre__val index) {
  const vyre__lir_inst *sum = ll_inst(e, index);
  if (!(sum->hints & VYRE__HINT_NO_WRAP)) {
    return ll_address(e, buffer, ll_scalar(e, index));
  }
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v",
                ll_memory_type(e->kernel->buffers[buffer].width), LL_PTR,
                ll_address(e, buffer, ll_scalar(e, sum->a)), LL_I64,
                ll_scalar(e, sum->b));
}

ll_op ll_load_one(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned type = ll_memory_type(buffer_of(e, v)->width);
  ll_op op = ll_def(e, "load %t, ptr %v, align %u", type, LL_PTR,
                    address_of(e, inst->aux, inst->a), align_of(e, v));
  return widen_loaded(e, v, type, op);
}

static void load_uniform(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  (void)ll_scalar(e, inst->a);
  guard g = open_guard(e, happens(e, inst->b));
  ll_op op = ll_load_one(e, v);
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
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  unsigned from = ll_type_of(e, inst->b);
  ll_op index = ll_scalar(e, inst->a);
  ll_op value = ll_scalar(e, vyre__sched_stored(e->s, at));
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

/* Keep the loads of a full workgroup in address order. LLVM would reorder
 * them like the reduction tree that uses them, and hardware prefetchers
 * follow only ascending or descending addresses. */
static ll_op plain_load(ll *e, vyre__val v, ll_op at) {
  bool stays = e->is_full_group && !is_shared(e, v);
  return ll_def(e,
                stays ? "load volatile %t, ptr %v, align %u"
                      : "load %t, ptr %v, align %u",
                ll_memory_type(buffer_of(e, v)->width) | LL_VEC, LL_PTR, at,
                align_of(e, v));
}

/* Inactive lanes get zero. */
static ll_op only_where(ll *e, vyre__val c, unsigned type, ll_op op) {
  return ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, ll_vector(e, c), type,
                op, type, ll_const(0));
}

/* Returns the bound if condition @p c of an access is nothing but its bounds
 * check: the length of the buffer, or for signed indices the smaller one of the
 * length and 2^31. 0: the condition is something else. */
static vyre__val checked_bound(const ll *e, uint32_t at, vyre__val c) {
  const vyre__lir_inst *inst = ll_inst(e, c);
  if (!c || inst->op != VYRE__LIR_LT_U || inst->a != ll_inst(e, at)->a) {
    return 0;
  }
  const vyre__lir_inst *bound = ll_inst(e, inst->b);
  if (bound->op == VYRE__LIR_MIN_U &&
      ll_inst(e, bound->b)->op == VYRE__LIR_CONST) {
    bound = ll_inst(e, bound->a);
  }
  bool is_length =
      bound->op == VYRE__LIR_LEN && bound->aux == ll_inst(e, at)->aux;
  return is_length ? inst->b : 0;
}

bool ll_is_bounds_check(const ll *e, uint32_t at, vyre__val c) {
  vyre__val bound = checked_bound(e, at, c);
  return bound && ll_inst(e, bound)->op == VYRE__LIR_LEN;
}

/* Returns an i1: index to index + span - 1 are all inside the buffer, and below
 * @p bound unless it is 0. */
static ll_op is_inside(ll *e, uint32_t at, vyre__val bound, ll_op index,
                       uint32_t span) {
  const vyre__lir_buffer *buffer = buffer_of(e, at);
  ll_op length = ll_name("n", ll_inst(e, at)->aux);
  if (bound && ll_inst(e, bound)->op == VYRE__LIR_MIN_U) {
    length = ll_scalar(e, bound);
  } else if (buffer->kind == VYRE_MEMORY_SHARED) {
    length = ll_const((uint64_t)buffer->count * buffer->unit / buffer->width);
    if (length.bits < span) return ll_const(0);
  }
  ll_op last = ll_def(e, "sub i32 %v, %u", LL_I32, length, span);
  ll_op low = ll_def(e, "icmp ule i32 %v, %v", LL_I32, index, LL_I32, last);
  if (length.kind == LL_CONST) return low;
  ll_op has = ll_def(e, "icmp uge i32 %v, %u", LL_I32, length, span);
  return ll_def(e, "and i1 %v, %v", LL_I1, low, LL_I1, has);
}

/* Shared arrays are padded on both sides, so a vector may start before or
 * end after the array as long as one of its lanes is inside. */
static ll_op padded_address(ll *e, uint32_t at, ll_op index) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  ll_op wide = index.kind == LL_CONST
                   ? ll_const((uint64_t)(int64_t)(int32_t)index.bits)
                   : ll_def(e, "sext i32 %v to i64", LL_I32, index);
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v", type, LL_PTR,
                ll_base(e, inst->aux), LL_I64, wide);
}

static ll_op shared_address(ll *e, uint32_t at, int64_t index) {
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v",
                ll_memory_type(buffer_of(e, at)->width), LL_PTR,
                ll_base(e, ll_inst(e, at)->aux), LL_I64,
                ll_const((uint64_t)index));
}

static ll_op shared_at(ll *e, uint32_t at, int64_t index) {
  unsigned width = buffer_of(e, at)->width;
  return ll_def(e, "load %t, ptr %v, align %u", ll_memory_type(width) | LL_VEC,
                LL_PTR, shared_address(e, at, index), width);
}

/* Returns lanes @p first to first + width - 1 of two vectors, one after the
 * other. */
static ll_op two_vectors(ll *e, unsigned type, ll_op low, ll_op high,
                         unsigned first) {
  ll_op op = {.kind = LL_TEMP, .id = e->temps++};
  ll_print(e, " %v = shufflevector %o, %o, <%u x i32> <", type, op, type, low,
           type, high, e->width);
  for (unsigned i = 0; i < e->width; i++) {
    ll_print(e, "%si32 %u", i ? ", " : "", first + i);
  }
  ll_print(e, ">\n");
  return op;
}

/* A constant position in a shared array: @p shift elements after the start of
 * a vector. */
static int64_t constant_position(ll *e, uint32_t at, unsigned *shift) {
  int64_t index = (int32_t)ll_scalar(e, ll_inst(e, at)->a).bits;
  int64_t width = e->width;
  *shift = (unsigned)(((index % width) + width) % width);
  return index - *shift;
}

/* Reads a shared array at a constant position from the vectors stored there,
 * so that a value just stored need not come from memory. */
static ll_op load_across(ll *e, vyre__val v) {
  unsigned type = ll_memory_type(buffer_of(e, v)->width) | LL_VEC, shift;
  int64_t start = constant_position(e, v, &shift);
  ll_op low = shared_at(e, v, start);
  if (shift == 0) return low;
  return two_vectors(e, type, low, shared_at(e, v, start + e->width), shift);
}

/* Stores @p value at a constant position, as vectors that load_across reads:
 * a processor does not forward a store to a load that overlaps it in part. */
static void store_across(ll *e, uint32_t at, ll_op value) {
  unsigned width = buffer_of(e, at)->width, shift;
  unsigned type = ll_memory_type(width) | LL_VEC;
  int64_t start = constant_position(e, at, &shift);
  ll_op parts[2] = {value, {0}};
  if (shift || !ll_is_all_on(e)) {
    ll_op low = shared_at(e, at, start), high = {0}, old = low;
    if (shift) {
      high = shared_at(e, at, start + e->width);
      old = two_vectors(e, type, low, high, shift);
    }
    if (!ll_is_all_on(e)) {
      value = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, ll_mask_bits(e),
                     type, value, type, old);
    }
    parts[0] = value;
    if (shift) {
      /* low, value and high are 3 vectors in a row, cut at other places */
      ll_op first = two_vectors(e, type, low, low, shift);
      parts[0] = two_vectors(e, type, first, value, e->width - shift);
      ll_op last = two_vectors(e, type, high, high, shift);
      parts[1] = two_vectors(e, type, value, last, e->width - shift);
    }
  }
  for (unsigned i = 0; i < 2 && parts[i].kind != LL_NONE; i++) {
    ll_op to = shared_address(e, at, start + (int64_t)i * e->width);
    ll_do(e, "store %o, ptr %v, align %u", type, parts[i], LL_PTR, to, width);
  }
}

static bool is_padded(ll *e, uint32_t at, vyre__val c) {
  return is_shared(e, at) && (!c || ll_known_of(e, c) == LL_TRUE);
}

/* Out of line, because it is rare and there are many copies. */
static ll_op load_lanes(ll *e, vyre__val v, ll_op indices, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned type = ll_memory_type(buffer_of(e, v)->width);
  ll_op from = ll_spill(e, LL_I32, indices);
  ll_op got = ll_spill(e, type, ll_const(0));
  e->loads_lanes[type] = true;
  ll_do(e, "call void @load_lanes_%t(ptr %v, ptr %v, ptr %v, i32 %v)", type,
        LL_PTR, ll_base(e, inst->aux), LL_PTR, from, LL_PTR, got, LL_I32,
        ll_lanes(e, active));
  return ll_def(e, "load %t, ptr %v", type | LL_VEC, LL_PTR, got);
}

/* Returns true if the machine has masked vectors of @p scalar. */
static bool has_masked(const ll *e, unsigned scalar) {
  return e->options->lanes != 4 && ll_bytes(scalar) >= 4;
}

/* The index of lane 0 may lie before the buffer. It has then wrapped, while
 * the indices of active lanes did not. No buffer is long enough to contain
 * an index so close to 2^32. */
static ll_op masked_address(ll *e, uint32_t at, ll_op index) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  ll_op wide;
  if (index.kind == LL_CONST) {
    wide = ll_const((uint64_t)(uint32_t)(index.bits + e->width) - e->width);
  } else {
    wide = ll_def(e, "add i32 %v, %u", LL_I32, index, e->width);
    wide = ll_def(e, "zext i32 %v to i64", LL_I32, wide);
    wide = ll_def(e, "sub i64 %v, %u", LL_I64, wide, e->width);
  }
  return ll_def(e, "getelementptr %t, ptr %v, i64 %v",
                ll_memory_type(buffer_of(e, at)->width), LL_PTR,
                ll_base(e, inst->aux), LL_I64, wide);
}

static ll_op load_masked(ll *e, vyre__val v, ll_op index, ll_op active) {
  unsigned scalar = ll_memory_type(buffer_of(e, v)->width);
  ll_op at = masked_address(e, v, index);
  ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, active);
  return ll_def(
      e, "call %t @llvm.masked.load.v%ui%u.p0(ptr %v, i32 %u, %o, %o)",
      scalar | LL_VEC, e->width, 8 * ll_bytes(scalar), LL_PTR, at,
      align_of(e, v), LL_I1 | LL_VEC, bits, scalar | LL_VEC, ll_const(0));
}

/* Prefetches what a later iteration loads. The address may lie outside the
 * buffer: a prefetch never faults. */
static void prefetch_ahead(ll *e, vyre__val v, uint32_t bytes) {
  ll_op at = masked_address(e, v, ll_scalar(e, ll_inst(e, v)->a));
  at = ll_def(e, "getelementptr i8, ptr %v, i64 %u", LL_PTR, at, bytes);
  ll_do(e, "call void @llvm.prefetch.p0(ptr %v, i32 0, i32 3, i32 1)", LL_PTR,
        at);
}

/* Lanes may be inactive or outside. Uses one load if no lane is outside,
 * active or not. */
static ll_op load_some(ll *e, vyre__val v, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned type = ll_memory_type(buffer_of(e, v)->width) | LL_VEC;
  ll_op index = ll_scalar(e, inst->a), indices = ll_vector(e, inst->a);
  uint32_t all = ll_label(e), lanes = ll_label(e), end = ll_label(e);
  ll_op at = ll_alloca(e, type, 1, 64);
  bool checks = inst->b && ll_known_of(e, inst->b) != LL_TRUE;
  vyre__val bound = checks ? checked_bound(e, v, inst->b) : 0;
  checks = checks && !bound;
  if (checks) (void)ll_vector(e, inst->b);
  ll_branch_likely(e, is_inside(e, v, bound, index, e->width), all, lanes);
  ll_place(e, all);
  ll_op op = plain_load(e, v, ll_address(e, inst->aux, index));
  if (checks) op = only_where(e, inst->b, type, op);
  ll_do(e, "store %o, ptr %v", type, op, LL_PTR, at);
  ll_br(e, end);
  ll_place(e, lanes);
  op = has_masked(e, type) ? load_masked(e, v, index, active)
                           : load_lanes(e, v, indices, active);
  ll_do(e, "store %o, ptr %v", type, op, LL_PTR, at);
  ll_place(e, end);
  return ll_def(e, "load %t, ptr %v", type, LL_PTR, at);
}

/* Without gathers under a mask, inactive lanes load element 0: if the buffer has
 * any element, it has that one. */
static ll_op gather(ll *e, vyre__val v, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned scalar = ll_memory_type(buffer_of(e, v)->width);
  unsigned type = scalar | LL_VEC;
  bool checks = inst->b && ll_known_of(e, inst->b) != LL_TRUE;
  ll_op indices = ll_vector(e, inst->a);
  if (active.kind != LL_NONE && ll_has_masked_gather(e, v)) {
    return ll_gather_some(e, v, indices, active);
  }
  if (active.kind != LL_NONE) {
    ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, active);
    indices = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, bits, MASK,
                     indices, MASK, ll_const(0));
  }
  if (checks) (void)ll_vector(e, inst->b);
  guard g = open_guard(e, checks ? ll_any(e, active) : (ll_op){0});
  ll_op op = ll_gather_all(e, v, indices);
  if (checks) op = only_where(e, inst->b, type, op);
  return close_guard(e, g, type, op);
}

/* --- clamped indices -------------------------------------------------------------*/

enum { MAX_CLAMP_DEPTH = 8 };

/* Returns true if @p v can be used here: it need not be computed again. */
static bool is_available(const ll *e, vyre__val v) {
  const ll_rep *rep = &e->reps[v - e->s->r.begin];
  if (ll_role(e, v)->is_leaf) return true;
  return rep->form && (rep->stamp == 0 || rep->stamp == e->stamp);
}

/* The stride that an index would have without clamps. */
typedef struct unclamped {
  uint64_t stride;
  bool is_known, has_clamp;
} unclamped;

static bool is_clamp(uint8_t op) {
  return (op >= VYRE__LIR_MIN_U && op <= VYRE__LIR_MAX_S) ||
         op == VYRE__LIR_SELECT;
}

static unclamped find_unclamped(const ll *e, vyre__val v, unsigned depth);

/* Returns the operand of a clamp that is linear: the other one must not be. 0:
 * none or both. */
static vyre__val linear_operand(const ll *e, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  bool selects = inst->op == VYRE__LIR_SELECT;
  vyre__val a = selects ? inst->b : inst->a, b = selects ? inst->c : inst->b;
  unclamped first = find_unclamped(e, a, depth + 1);
  unclamped second = find_unclamped(e, b, depth + 1);
  bool takes_first = first.is_known && first.stride;
  bool takes_second = second.is_known && second.stride;
  if (takes_first == takes_second) return 0;
  return takes_first ? a : b;
}

static unclamped find_unclamped(const ll *e, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  vyre__lane_shape shape = ll_shape(e, v);
  bool adds = inst->op == VYRE__LIR_ADD;
  if (shape.kind != VYRE__LANE_SHAPE_VARYING && is_available(e, v)) {
    bool is_linear = shape.kind == VYRE__LANE_SHAPE_LINEAR;
    return (unclamped){.stride = is_linear ? shape.stride : 0,
                       .is_known = true};
  }
  if (depth == MAX_CLAMP_DEPTH || inst->type != VYRE_TYPE_U32) {
    return (unclamped){0};
  }
  if (is_clamp(inst->op)) {
    vyre__val linear = linear_operand(e, v, depth);
    if (!linear) return (unclamped){0};
    unclamped u = find_unclamped(e, linear, depth + 1);
    u.has_clamp = true;
    return u;
  }
  if (!adds && inst->op != VYRE__LIR_SUB) return (unclamped){0};
  unclamped a = find_unclamped(e, inst->a, depth + 1);
  unclamped b = find_unclamped(e, inst->b, depth + 1);
  uint64_t stride = adds ? a.stride + b.stride : a.stride - b.stride;
  return (unclamped){.stride = stride & UINT32_MAX,
                     .is_known = a.is_known && b.is_known,
                     .has_clamp = a.has_clamp || b.has_clamp};
}

/* Emits the index of lane 0 without clamps. */
static ll_op unclamped_index(ll *e, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (ll_shape(e, v).kind != VYRE__LANE_SHAPE_VARYING && is_available(e, v)) {
    return ll_scalar(e, v);
  }
  if (is_clamp(inst->op)) {
    return unclamped_index(e, linear_operand(e, v, depth), depth + 1);
  }
  ll_op a = unclamped_index(e, inst->a, depth + 1);
  ll_op b = unclamped_index(e, inst->b, depth + 1);
  return ll_def(e, "%s i32 %v, %v", inst->op == VYRE__LIR_ADD ? "add" : "sub",
                LL_I32, a, LL_I32, b);
}

/* Tests if the clamps change no index of an active lane, and then loads
 * contiguous elements; otherwise gathers. Returns LL_NONE if the index is
 * not a clamped linear one. */
static ll_op load_clamped(ll *e, vyre__val v, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned scalar = ll_memory_type(buffer_of(e, v)->width);
  unsigned type = scalar | LL_VEC;
  bool is_plain = buffer_of(e, v)->unit == buffer_of(e, v)->width;
  bool is_padded_load = is_padded(e, v, inst->b);
  unclamped u = find_unclamped(e, inst->a, 0);
  if (!u.is_known || !u.has_clamp || u.stride != 1) return (ll_op){0};
  if (active.kind != LL_NONE && !is_padded_load &&
      !(is_plain && has_masked(e, scalar))) {
    return (ll_op){0};
  }
  ll_op first = unclamped_index(e, inst->a, 0);
  uint32_t all = ll_label(e), lanes = ll_label(e), end = ll_label(e);
  ll_op at = ll_alloca(e, type, 1, 64);
  ll_op linear = ll_def(e, "add %o, %v", MASK, ll_splat(e, LL_I32, first), MASK,
                        ll_name("iota", UINT32_MAX));
  ll_op differs =
      ll_def(e, "icmp ne %o, %v", MASK, ll_vector(e, inst->a), MASK, linear);
  differs = ll_any(e, ll_and(e, ll_widen(e, differs), active));
  if (inst->b && ll_known_of(e, inst->b) != LL_TRUE) {
    (void)ll_vector(e, inst->b);
  }
  ll_branch_likely(e, ll_def(e, "xor i1 %v, true", LL_I1, differs), all, lanes);
  ll_place(e, all);
  ll_op op = active.kind == LL_NONE
                 ? plain_load(e, v, ll_address(e, inst->aux, first))
             : is_padded_load ? plain_load(e, v, padded_address(e, v, first))
                              : load_masked(e, v, first, active);
  ll_do(e, "store %o, ptr %v", type, op, LL_PTR, at);
  ll_br(e, end);
  ll_place(e, lanes);
  op = gather(e, v, active);
  ll_do(e, "store %o, ptr %v", type, op, LL_PTR, at);
  ll_place(e, end);
  return ll_def(e, "load %t, ptr %v", type, LL_PTR, at);
}

/* --- every other element ---------------------------------------------------------*/

enum {
  MAX_STRIDE = 8, /* elements between lanes are loaded as well */
  MAX_SPAN = 1 << 24,
};

/* Returns the distance of lanes if it is constant and not 1; else 0. */
static int32_t stride_of(ll *e, uint32_t at) {
  const ll_rep *rep = ll_value(e, ll_inst(e, at)->a);
  int32_t stride = (int32_t)rep->stride;
  if (rep->form != LL_LINEAR || stride == 1 || stride == 0) return 0;
  if (buffer_of(e, at)->unit != buffer_of(e, at)->width) return 0;
  int64_t reach = (int64_t)stride * e->width;
  return reach >= -MAX_SPAN && reach <= MAX_SPAN ? stride : 0;
}

static ll_lanes_at lanes_at(ll *e, uint32_t at, int32_t stride,
                            uint32_t lanes) {
  return (ll_lanes_at){.buffer = ll_inst(e, at)->aux,
                       .type = ll_memory_type(buffer_of(e, at)->width),
                       .align = align_of(e, at),
                       .index = ll_scalar(e, ll_inst(e, at)->a),
                       .stride = stride,
                       .lanes = lanes};
}

/* Loads all elements from the first lane's to the last lane's and selects
 * the ones needed. */
static ll_op pick_lanes(ll *e, vyre__val v, ll_op from, int32_t stride) {
  uint32_t step = (uint32_t)(stride < 0 ? -stride : stride);
  uint32_t span = (e->width - 1) * step + 1;
  unsigned type = ll_memory_type(buffer_of(e, v)->width);
  ll_op at = ll_address(e, ll_inst(e, v)->aux, from);
  ll_op all = ll_def(e, "load <%u x %t>, ptr %v, align %u", span, type, LL_PTR,
                     at, align_of(e, v));
  ll_op op = {.kind = LL_TEMP, .id = e->temps++};
  ll_print(e,
           " %v = shufflevector <%u x %t> %v, <%u x %t> poison, <%u x i32> <",
           type, op, span, type, type, all, span, type, e->width);
  for (uint32_t i = 0; i < e->width; i++) {
    uint32_t lane = stride < 0 ? e->width - 1 - i : i;
    ll_print(e, "%si32 %u", i ? ", " : "", lane * step);
  }
  ll_print(e, ">\n");
  return op;
}

/* Uses a vector if all of it is inside the buffer; otherwise goes lane by
 * lane. */
static ll_op load_apart(ll *e, vyre__val v, ll_op active, int32_t stride) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned type = ll_memory_type(buffer_of(e, v)->width) | LL_VEC;
  uint32_t step = (uint32_t)(stride < 0 ? -stride : stride);
  uint32_t reach = (e->width - 1) * step;
  uint32_t all = ll_label(e), lanes = ll_label(e), end = ll_label(e);
  ll_op from = ll_scalar(e, inst->a), is_above = {0};
  ll_op place = ll_alloca(e, type, 1, 64);
  bool checks = inst->b && ll_known_of(e, inst->b) != LL_TRUE;
  bool is_near = step <= MAX_STRIDE;
  if (active.kind == LL_NONE && !checks && stride > 0) {
    ll_lanes_at each = lanes_at(e, v, stride, UINT32_MAX);
    return is_near ? pick_lanes(e, v, from, stride) : ll_load_each(e, &each);
  }
  vyre__val bound = checks ? checked_bound(e, v, inst->b) : 0;
  (void)ll_vector(e, inst->a);
  if (checks) (void)ll_vector(e, inst->b);
  if (stride < 0) {
    is_above = ll_def(e, "icmp uge i32 %v, %u", LL_I32, from, reach);
    from = ll_def(e, "sub i32 %v, %u", LL_I32, from, reach);
  }
  ll_op in = is_inside(e, v, bound, from, reach + 1);
  if (stride < 0) in = ll_def(e, "and i1 %v, %v", LL_I1, in, LL_I1, is_above);
  ll_branch_likely(e, in, all, lanes);
  ll_place(e, all);
  ll_lanes_at each = lanes_at(e, v, stride, UINT32_MAX);
  ll_op op = is_near ? pick_lanes(e, v, from, stride) : ll_load_each(e, &each);
  if (checks && !bound) {
    op = only_where(e, inst->b, type, op);
  }
  ll_do(e, "store %o, ptr %v", type, op, LL_PTR, place);
  ll_br(e, end);
  ll_place(e, lanes);
  op = gather(e, v, active);
  ll_do(e, "store %o, ptr %v", type, op, LL_PTR, place);
  ll_place(e, end);
  return ll_def(e, "load %t, ptr %v", type, LL_PTR, place);
}

/* Returns true if every lane of the range is inside the buffer, active or
 * not. */
static bool is_inside_range(const ll *e, vyre__val check) {
  return check && e->range && e->range->range == VYRE__RANGE_FULL &&
         e->range->known && ll_inst(e, check)->op == VYRE__LIR_LT_U &&
         e->range->known[check - e->s->r.begin] == VYRE__KNOWN_TRUE;
}

static void load_vector(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned type = ll_memory_type(buffer_of(e, v)->width) | LL_VEC;
  bool is_plain = buffer_of(e, v)->unit == buffer_of(e, v)->width;
  ll_op active = ll_active(e, inst->b), op;
  int32_t stride = stride_of(e, v);
  bool is_far = stride < -MAX_STRIDE || stride > MAX_STRIDE;
  bool is_constant = stride && is_padded(e, v, inst->b) &&
                     ll_scalar(e, inst->a).kind == LL_CONST;
  uint32_t lanes, ahead = ll_note_of(e, v)->ahead;
  bool is_known = ll_lanes_known(e, active, &lanes);
  if (ahead && is_contiguous(e, inst->a)) prefetch_ahead(e, v, ahead);
  const bool is_loaded = ll_load_together(e, v, &op);
  if (!is_loaded && is_far && (is_known || is_constant)) {
    ll_lanes_at each = lanes_at(e, v, stride, is_known ? lanes : UINT32_MAX);
    op = ll_load_each(e, &each);
  } else if (is_loaded || (!is_contiguous(e, inst->a) &&
                           ll_load_pattern(e, v, active, &op))) {
    /* loaded */
  } else if (stride) {
    op = load_apart(e, v, active, stride);
  } else if (!is_contiguous(e, inst->a)) {
    if (!ll_load_walk(e, v, active, gather, &op)) {
      op = load_clamped(e, v, active);
      if (op.kind == LL_NONE) op = gather(e, v, active);
    }
  } else if (is_padded(e, v, inst->b) &&
             ll_scalar(e, inst->a).kind == LL_CONST) {
    op = load_across(e, v);
  } else if (active.kind == LL_NONE || is_inside_range(e, inst->b)) {
    op = plain_load(e, v, ll_address(e, inst->aux, ll_scalar(e, inst->a)));
  } else if (is_padded(e, v, inst->b)) {
    op = plain_load(e, v, padded_address(e, v, ll_scalar(e, inst->a)));
  } else if (is_plain) {
    op = load_some(e, v, active);
  } else {
    op = load_lanes(e, v, ll_vector(e, inst->a), active);
  }
  if (e->width > 1 && ll_narrow_of(e, v)->bytes == buffer_of(e, v)->width) {
    ll_give_narrow(e, v, buffer_of(e, v)->width, freeze(e, v, type, op));
  } else {
    ll_give(e, v, LL_VECTOR, widen_loaded(e, v, type, op));
  }
}

static void store_lanes(ll *e, uint32_t at, ll_op value, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  ll_op to = ll_spill(e, LL_I32, ll_vector(e, inst->a));
  ll_op from = ll_spill(e, type, value);
  e->stores_lanes[type] = true;
  ll_do(e, "call void @store_lanes_%t(ptr %v, ptr %v, ptr %v, i32 %v)", type,
        LL_PTR, ll_base(e, inst->aux), LL_PTR, to, LL_PTR, from, LL_I32,
        ll_lanes(e, active));
}

static void plain_store(ll *e, uint32_t at, ll_op value) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  ll_do(e, "store %o, ptr %v, align %u",
        ll_memory_type(buffer_of(e, at)->width) | LL_VEC, value, LL_PTR,
        ll_address(e, inst->aux, ll_scalar(e, inst->a)), align_of(e, at));
}

/* Returns true if the code around stores to another place of the same array. A
 * processor does not forward that store to a load that overlaps it in part. */
static bool stores_nearby(const ll *e, uint32_t at) {
  const vyre__subregion *piece = &e->s->r.subregions[e->subregion];
  const vyre__lir_inst *inst = ll_inst(e, at);
  for (uint32_t i = piece->begin; i < piece->end; i++) {
    const vyre__lir_inst *other = ll_inst(e, i);
    bool is_store = other->op == VYRE__LIR_STORE && other->aux == inst->aux;
    if (is_store && other->a != inst->a) return true;
  }
  return false;
}

static void masked_store(ll *e, uint32_t at, ll_op value, ll_op to,
                         ll_op active) {
  unsigned scalar = ll_memory_type(buffer_of(e, at)->width);
  ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, active);
  ll_do(e, "call void @llvm.masked.store.v%ui%u.p0(%o, ptr %v, i32 %u, %o)",
        e->width, 8 * ll_bytes(scalar), scalar | LL_VEC, value, LL_PTR, to,
        align_of(e, at), LL_I1 | LL_VEC, bits);
}

/* Inactive lanes must not be blended: other threads may write these
 * elements. */
static void store_some(ll *e, uint32_t at, ll_op value, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned scalar = ll_memory_type(buffer_of(e, at)->width);
  if (is_padded(e, at, inst->c)) { /* no other thread writes there */
    ll_op to = padded_address(e, at, ll_scalar(e, inst->a));
    if (has_masked(e, scalar) && stores_nearby(e, at)) {
      masked_store(e, at, value, to, active);
      return;
    }
    ll_op old = plain_load(e, at, to);
    old = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, ll_mask_bits(e),
                 scalar | LL_VEC, value, scalar | LL_VEC, old);
    ll_do(e, "store %o, ptr %v, align %u", scalar | LL_VEC, old, LL_PTR, to,
          align_of(e, at));
    return;
  }
  if (!has_masked(e, scalar)) {
    store_lanes(e, at, value, active);
    return;
  }
  masked_store(e, at, value, masked_address(e, at, ll_scalar(e, inst->a)),
               active);
}

static void store_vector(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned scalar = ll_memory_type(buffer_of(e, at)->width);
  unsigned type = scalar | LL_VEC;
  unsigned from = ll_type_of(e, inst->b) | LL_VEC;
  ll_op value;
  if (from != type && e->width > 1) {
    value = ll_narrow_vector(e, vyre__sched_stored(e->s, at), ll_bytes(scalar));
  } else {
    value = ll_vector(e, vyre__sched_stored(e->s, at));
    if (from != type && value.kind != LL_CONST) {
      value = ll_def(e, "trunc %o to %t", from, value, type);
    }
  }
  if (ll_store_together(e, at, value)) return;
  bool checks = inst->c && ll_known_of(e, inst->c) != LL_TRUE;
  bool contiguous = is_contiguous(e, inst->a);
  ll_op test = {0};
  if (checks && ll_is_all_on(e) && contiguous) test = ll_test(e, inst->c, true);
  uint32_t all = ll_label(e), some = ll_label(e), end = ll_label(e);
  ll_op active = ll_active(e, inst->c);
  uint32_t lanes;
  bool is_known = ll_lanes_known(e, active, &lanes);
  (void)ll_vector(e, inst->a);
  if (test.kind != LL_NONE) {
    ll_branch_likely(e, test, all, some);
    ll_place(e, all);
    plain_store(e, at, value);
    ll_br(e, end);
    ll_place(e, some);
  }
  if (contiguous && is_padded(e, at, inst->c) &&
      ll_scalar(e, inst->a).kind == LL_CONST) {
    store_across(e, at, value);
  } else if (!contiguous && ll_store_pattern(e, at, value, active)) {
    /* stored */
  } else if (active.kind == LL_NONE && contiguous) {
    plain_store(e, at, value);
  } else if (is_known && stride_of(e, at)) {
    ll_lanes_at each = lanes_at(e, at, stride_of(e, at), lanes);
    ll_store_each(e, &each, value);
  } else if (active.kind == LL_NONE) {
    ll_scatter_all(e, at, ll_vector(e, inst->a), value);
  } else if (contiguous) {
    store_some(e, at, value, active);
  } else if (e->options->lanes == 16 && ll_bytes(scalar) >= 4) {
    ll_scatter_some(e, at, ll_vector(e, inst->a), value, active);
  } else {
    store_lanes(e, at, value, active);
  }
  if (test.kind != LL_NONE) ll_place(e, end);
}

/* Stores the value of one active lane, if there is any, to an element that all
 * lanes share: a scatter takes longer. */
static void store_one_lane(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  unsigned from = ll_type_of(e, inst->b);
  ll_op index = ll_scalar(e, inst->a);
  ll_op value = ll_vector(e, vyre__sched_stored(e->s, at));
  ll_op lanes = ll_lanes(e, ll_active(e, inst->c));
  guard g = open_guard(e, ll_def(e, "icmp ne i32 %v, 0", LL_I32, lanes));
  ll_op lane =
      ll_def(e, "call i32 @llvm.cttz.i32(i32 %v, i1 true)", LL_I32, lanes);
  value = ll_def(e, "extractelement %o, i32 %v", from | LL_VEC, value, LL_I32,
                 lane);
  if (from != type) {
    value = ll_def(e, "trunc %o to %t", from, value, type);
  }
  ll_do(e, "store %o, ptr %v, align %u", type, value, LL_PTR,
        ll_address(e, inst->aux, index), align_of(e, at));
  close_guard(e, g, type, (ll_op){0});
}

void ll_load(ll *e, vyre__val v) {
  if (ll_is_scalar(e, ll_inst(e, v)->a)) {
    load_uniform(e, v);
  } else {
    load_vector(e, v);
  }
}

/* If all lanes store to one element, any of them may win: it is a race
 * unless one lane is active. The active one need not be the first. */
void ll_store(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  bool is_some = !ll_is_all_on(e) || (inst->c && !ll_is_scalar(e, inst->c));
  bool needs_lane = is_some && !ll_is_scalar(e, inst->b);
  if (ll_is_scalar(e, inst->a) && !needs_lane) {
    store_uniform(e, at);
  } else if (ll_is_scalar(e, inst->a) && e->width > 1 && !e->jam) {
    store_one_lane(e, at);
  } else {
    store_vector(e, at);
  }
}
