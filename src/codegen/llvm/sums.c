/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Additions to exact sums. If all lanes add to one sum, they append their
 * numbers to a strip of the thread (spmd/passes/sum_strip.h), which the runtime adds to
 * the sum when it is full, when the sum changes, and after a range of
 * workgroups. Inactive lanes append zeros. Otherwise each lane calls the
 * runtime. */
#include <assert.h>
#include <stddef.h>

#include "codegen/llvm/internal.h"
#include "spmd/passes/sum_strip.h"

static_assert(offsetof(vyre__sum_strip, count) == 8 &&
                  offsetof(vyre__sum_strip, numbers) == 1152,
              "offsets are part of the text");

enum {
  COUNT_AT = offsetof(vyre__sum_strip, count),
  NUMBERS_AT = offsetof(vyre__sum_strip, numbers),
  MASK = LL_I32 | LL_VEC,
  BITS = LL_I1 | LL_VEC,
  F64_UNIT = 576, /* bytes of a sum_f64 */
};

static bool is_add(const ll *e, uint32_t at) {
  return ll_inst(e, at)->op == VYRE__LIR_SUM_ADD && ll_role(e, at)->is_needed;
}

/* Returns "f32" or "f64", the kind of sum that an addition changes. */
static const char *kind_of(const ll *e, vyre__val v) {
  const vyre__lir_buffer *buffer = &e->kernel->buffers[ll_inst(e, v)->aux];
  return buffer->unit == F64_UNIT ? "f64" : "f32";
}

static bool is_wide(const ll *e, vyre__val v) {
  return e->kernel->buffers[ll_inst(e, v)->aux].unit == F64_UNIT;
}

/* Returns true if an addition may wait in a strip: nothing else in the phase
 * accesses the buffer, whose sums other code reads only after the phase. */
static bool may_wait(const ll *e, vyre__val v) {
  const uint32_t buffer = ll_inst(e, v)->aux;
  const uint16_t memory =
      VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  if (e->kernel->buffers[buffer].kind == VYRE_MEMORY_SHARED) return false;
  for (uint32_t at = e->s->r.begin; at < e->s->r.end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (!(vyre__lir_ops[inst->op].flags & memory) || inst->aux != buffer ||
        inst->op == VYRE__LIR_OUT_OF_FUEL || !ll_role(e, at)->is_needed) {
      continue;
    }
    if (inst->op != VYRE__LIR_SUM_ADD) return false;
  }
  return true;
}

void ll_open_strips(ll *e) {
  for (uint32_t at = e->s->r.begin; at < e->s->r.end; at++) {
    if (!is_add(e, at)) continue;
    e->uses_sums = true;
    if (!may_wait(e, at)) continue;
    ll_array(e, LL_I8, sizeof(vyre__sum_strip), "strip", at);
    ll_do(e,
          "call void @llvm.memset.p0.i64(ptr align 64 %%strip%u, i8 0, i64 %u, "
          "i1 false)",
          at, (unsigned)NUMBERS_AT);
  }
}

void ll_close_strips(ll *e) {
  for (uint32_t at = e->s->r.begin; at < e->s->r.end; at++) {
    if (!is_add(e, at) || !may_wait(e, at)) continue;
    ll_do(e, "call void @vyre__sum_strip_end_%s(ptr %%strip%u)", kind_of(e, at),
          at);
  }
}

void ll_sum_functions(ll *e) {
  static const char *const kinds[] = {"f32", "f64"};
  static const char *const bits[] = {"i32", "i64"};
  for (int i = 0; i < 2 && e->uses_sums; i++) {
    const char *kind = kinds[i];
    ll_print(e, "declare void @vyre__sum_strip_begin_%s(ptr, ptr, ptr)\n",
             kind);
    ll_print(e, "declare void @vyre__sum_strip_end_%s(ptr)\n", kind);
    ll_print(e, "declare void @vyre__sum_strip_add_%s(ptr, %s)\n", kind,
             bits[i]);
  }
}

/* --- one sum for all lanes -------------------------------------------------*/

static ll_op address_of(ll *e, vyre__val v, ll_op index) {
  ll_op wide = index.kind == LL_CONST
                   ? ll_const((uint32_t)index.bits)
                   : ll_def(e, "zext i32 %v to i64", LL_I32, index);
  return ll_def(e, "getelementptr inbounds i64, ptr %v, i64 %v", LL_PTR,
                ll_base(e, ll_inst(e, v)->aux), LL_I64, wide);
}

/* Returns the numbers as integers of their size: a scalar if the width is 1. */
static ll_op numbers_of(ll *e, vyre__val v, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const bool is_vector = e->width > 1;
  const unsigned type = is_vector ? LL_I64 | LL_VEC : LL_I64;
  ll_op bits = is_vector ? ll_vector(e, inst->b) : ll_scalar(e, inst->b);
  if (is_vector && active.kind != LL_NONE) {
    ll_op on = ll_def(e, "icmp slt %o, zeroinitializer", MASK, active);
    bits =
        ll_def(e, "select %o, %o, %o", BITS, on, type, bits, type, ll_const(0));
  }
  if (is_wide(e, v)) return bits;
  return ll_def(e, "trunc %o to %t", type, bits,
                is_vector ? LL_I32 | LL_VEC : LL_I32);
}

enum { MAX_DEPTH = 6 }; /* of the search for a load */

/* Returns a load of adjacent elements that value @p v depends on, or 0. */
static vyre__val source_of(const ll *e, vyre__val v, unsigned depth) {
  if (v < e->s->r.begin || v >= e->s->r.end || depth == 0) return 0;
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (inst->op == VYRE__LIR_LOAD) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[inst->aux];
    const bool is_global = buffer->kind != VYRE_MEMORY_SHARED &&
                           buffer->kind != VYRE_MEMORY_UNIFORM;
    return is_global && vyre__access_kind_of(e->s, v) == VYRE__ACCESS_CONTIGUOUS
               ? v
               : 0;
  }
  const unsigned operands = vyre__lir_ops[inst->op].operands;
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) return 0;
  for (unsigned i = 0; i < operands; i++) {
    const vyre__val found = source_of(e, inst->v[i], depth - 1);
    if (found) return found;
  }
  return 0;
}

/* Returns the address that the numbers come from, or null. The runtime
 * prefetches those of the next strip while it adds this one. */
static ll_op source_address(ll *e, vyre__val v) {
  const vyre__val load = source_of(e, ll_inst(e, v)->b, MAX_DEPTH);
  if (!load || ll_value(e, ll_inst(e, load)->a)->form != LL_LINEAR) {
    return (ll_op){0};
  }
  const vyre__lir_inst *inst = ll_inst(e, load);
  ll_op wide = ll_def(e, "zext i32 %v to i64", LL_I32, ll_scalar(e, inst->a));
  return ll_def(e, "getelementptr i8, ptr %v, i64 %v", LL_PTR,
                ll_base(e, inst->aux), LL_I64,
                ll_def(e, "mul i64 %v, %u", LL_I64, wide,
                       (unsigned)e->kernel->buffers[inst->aux].width));
}

static void append(ll *e, vyre__val v, ll_op index, ll_op numbers) {
  const unsigned each = is_wide(e, v) ? 8 : 4, bytes = each * e->width;
  const unsigned type =
      (is_wide(e, v) ? LL_I64 : LL_I32) | (e->width > 1 ? LL_VEC : 0);
  uint32_t slow = ll_label(e), fast = ll_label(e);
  ll_op to = address_of(e, v, index);
  ll_op target = ll_def(e, "load ptr, ptr %%strip%u", v);
  ll_op count_at = ll_def(e, "getelementptr inbounds i8, ptr %%strip%u, i64 %u",
                          v, (unsigned)COUNT_AT);
  ll_op count = ll_def(e, "load i64, ptr %v", LL_PTR, count_at);
  ll_op same = ll_def(e, "icmp eq ptr %v, %v", LL_PTR, target, LL_PTR, to);
  ll_op room = ll_def(e, "icmp ule i64 %v, %u", LL_I64, count,
                      (unsigned)VYRE__STRIP_BYTES - bytes);
  ll_op fine = ll_def(e, "and i1 %v, %v", LL_I1, same, LL_I1, room);
  ll_branch_likely(e, fine, fast, slow);
  ll_place(e, slow);
  ll_op source = source_address(e, v);
  if (source.kind == LL_NONE) {
    ll_do(e,
          "call void @vyre__sum_strip_begin_%s(ptr %%strip%u, ptr %v, ptr "
          "null)",
          kind_of(e, v), v, LL_PTR, to);
  } else {
    ll_do(e,
          "call void @vyre__sum_strip_begin_%s(ptr %%strip%u, ptr %v, ptr %v)",
          kind_of(e, v), v, LL_PTR, to, LL_PTR, source);
  }
  ll_br(e, fast);
  ll_place(e, fast);
  ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, count_at);
  ll_op first = ll_def(e, "getelementptr inbounds i8, ptr %%strip%u, i64 %u", v,
                       (unsigned)NUMBERS_AT);
  ll_op at = ll_def(e, "getelementptr inbounds i8, ptr %v, i64 %v", LL_PTR,
                    first, LL_I64, now);
  ll_do(e, "store %o, ptr %v, align %u", type, numbers, LL_PTR, at, each);
  ll_op next = ll_def(e, "add nuw i64 %v, %u", LL_I64, now, bytes);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, count_at);
}

/* --- a sum for each lane ---------------------------------------------------*/

static void add_one(ll *e, vyre__val v, ll_op index, ll_op bits) {
  ll_op to = address_of(e, v, index);
  unsigned type = LL_I64;
  if (!is_wide(e, v)) {
    bits = ll_def(e, "trunc i64 %v to i32", LL_I64, bits);
    type = LL_I32;
  }
  ll_do(e, "call void @vyre__sum_strip_add_%s(ptr %v, %o)", kind_of(e, v),
        LL_PTR, to, type, bits);
}

static void add_lanes(ll *e, vyre__val v, ll_op active) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  ll_op indices = ll_spill(e, LL_I32, ll_vector(e, inst->a));
  ll_op numbers = ll_spill(e, LL_I64, ll_vector(e, inst->b));
  ll_lane_loop l = ll_open_lanes(e, active);
  l.stays = true;
  add_one(e, v, ll_from_lane(e, &l, LL_I32, indices),
          ll_from_lane(e, &l, LL_I64, numbers));
  ll_close_lanes(e, &l);
}

void ll_sum_add(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const vyre__val c = inst->c;
  const bool may_skip = c && ll_known_of(e, c) != LL_TRUE;
  const bool is_vector = e->width > 1;
  ll_op active = {0}, some = {0};
  e->buffer_used[inst->aux] = true;
  if (is_vector) active = ll_active(e, c);
  const bool is_one =
      (!is_vector || ll_is_scalar(e, inst->a)) && may_wait(e, v);
  ll_op index = {0}, numbers = {0};
  if (is_one || !is_vector) index = ll_scalar(e, inst->a);
  if (is_one) numbers = numbers_of(e, v, active);
  if (!is_one) (void)ll_value(e, inst->b);
  uint32_t end = 0;
  const bool is_guarded =
      may_skip || (is_vector && active.kind != LL_NONE && is_one);
  if (is_guarded) {
    uint32_t inside = ll_label(e);
    end = ll_label(e);
    some = is_vector ? ll_any(e, active) : ll_scalar(e, c);
    ll_cond(e, some, inside, end);
    ll_place(e, inside);
  }
  uint32_t mark = ll_enter(e);
  if (is_one) {
    append(e, v, index, numbers);
  } else if (!is_vector) {
    add_one(e, v, index, ll_scalar(e, inst->b));
  } else {
    add_lanes(e, v, active);
  }
  ll_leave(e, mark);
  if (is_guarded) ll_place(e, end);
  ll_give(e, v, LL_SCALAR, ll_const(0));
}
