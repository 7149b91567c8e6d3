/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Masks: vectors of i32 with all ones for active lanes and zeros for others.
 * Masks are combined in this form, because vectors of i1 that live through
 * loops are slow on processors without mask registers. */
#include "codegen/llvm/internal.h"

enum { MASK = LL_I32 | LL_VEC, BITS = LL_I1 | LL_VEC };

/* --- lanes that are known ----------------------------------------------------*/

static uint64_t all_lanes(const ll *e) {
  return (UINT64_C(1) << e->width) - 1;
}

bool ll_lanes_known(const ll *e, ll_op mask, uint32_t *lanes) {
  bool is_all = mask.kind == LL_NONE || (mask.kind == LL_CONST && mask.bits);
  *lanes = (uint32_t)(is_all ? all_lanes(e) : mask.bits & all_lanes(e));
  return is_all || mask.kind == LL_CONST || mask.bits & LL_LANES_KNOWN;
}

ll_op ll_with_lanes(const ll *e, ll_op op, uint64_t lanes) {
  if (op.kind == LL_TEMP) op.bits = (lanes & all_lanes(e)) | LL_LANES_KNOWN;
  return op;
}

static bool compare(uint8_t op, uint32_t a, uint32_t b) {
  switch (op) {
    case VYRE__LIR_EQ:
      return a == b;
    case VYRE__LIR_NE:
      return a != b;
    case VYRE__LIR_LT_U:
      return a < b;
    case VYRE__LIR_LE_U:
      return a <= b;
    case VYRE__LIR_LT_S:
      return (int32_t)a < (int32_t)b;
    default:
      return (int32_t)a <= (int32_t)b;
  }
}

/* Finds the lanes in which comparison @p v of constants, or of numbers that
 * count up from one, holds. */
static bool find_lanes(ll *e, vyre__val v, uint32_t *lanes) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (inst->op < VYRE__LIR_EQ || inst->op > VYRE__LIR_LE_S) return false;
  if (ll_inst(e, inst->a)->type != VYRE_TYPE_U32 || e->jam) return false;
  const ll_rep *a = ll_value(e, inst->a);
  if (a->form == LL_VECTOR || a->s.kind != LL_CONST) return false;
  uint32_t first = (uint32_t)a->s.bits;
  uint32_t by = a->form == LL_LINEAR ? (uint32_t)a->stride : 0;
  const ll_rep *b = ll_value(e, inst->b);
  if (b->form == LL_VECTOR || b->s.kind != LL_CONST) return false;
  uint32_t other = (uint32_t)b->s.bits;
  uint32_t other_by = b->form == LL_LINEAR ? (uint32_t)b->stride : 0;
  *lanes = 0;
  for (uint32_t i = 0; i < e->width; i++) {
    bool holds = compare(inst->op, first + i * by, other + i * other_by);
    *lanes |= (uint32_t)holds << i;
  }
  return true;
}

/* --- operations ---------------------------------------------------------------*/

ll_op ll_mask_bits(ll *e) {
  if (e->mask.lanes.kind == LL_NONE) return (ll_op){0};
  if (e->mask.bits.kind == LL_NONE) {
    e->mask.bits =
        ll_def(e, "icmp slt %o, zeroinitializer", MASK, e->mask.lanes);
  }
  return e->mask.bits;
}

ll_op ll_mask_vector(ll *e) {
  return e->mask.lanes.kind == LL_NONE ? ll_const(UINT32_MAX) : e->mask.lanes;
}

/* Returns the bits of a mask as an integer, one per lane, for a comparison:
 * fewer instructions to select than for a reduction of the lanes. */
static ll_op lane_bits(ll *e, ll_op mask) {
  ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, mask);
  return ll_def(e, "bitcast %o to i%u", BITS, bits, e->width);
}

ll_op ll_any(ll *e, ll_op mask) {
  uint32_t lanes;
  if (ll_lanes_known(e, mask, &lanes)) return ll_const(lanes != 0);
  return ll_def(e, "icmp ne i%u %v, 0", e->width, LL_I32, lane_bits(e, mask));
}

ll_op ll_all(ll *e, ll_op mask) {
  uint32_t lanes;
  if (ll_lanes_known(e, mask, &lanes)) return ll_const(lanes == all_lanes(e));
  return ll_def(e, "icmp eq i%u %v, -1", e->width, LL_I32, lane_bits(e, mask));
}

ll_op ll_and(ll *e, ll_op a, ll_op b) {
  if (a.kind == LL_NONE) return b;
  if (b.kind == LL_NONE) return a;
  uint32_t left, right;
  bool knows_left = ll_lanes_known(e, a, &left);
  bool knows_right = ll_lanes_known(e, b, &right);
  if (knows_left && left == all_lanes(e)) return b;
  if (knows_right && right == all_lanes(e)) return a;
  ll_op op = ll_def(e, "and %o, %v", MASK, a, MASK, b);
  return knows_left && knows_right ? ll_with_lanes(e, op, left & right) : op;
}

ll_op ll_and_not(ll *e, ll_op a, ll_op b) {
  if (b.kind == LL_CONST) return b.bits ? ll_const(0) : a;
  ll_op off = ll_def(e, "xor %o, %v", MASK, b, MASK, ll_const(UINT32_MAX));
  uint32_t lanes;
  if (ll_lanes_known(e, b, &lanes)) off = ll_with_lanes(e, off, ~lanes);
  return ll_and(e, a, off);
}

ll_op ll_widen(ll *e, ll_op bits) {
  return ll_def(e, "sext %o to %t", BITS, bits, MASK);
}

ll_op ll_lanes(ll *e, ll_op mask) {
  if (mask.kind == LL_CONST && !mask.bits) return mask; /* empty mask */
  if (mask.kind == LL_NONE || mask.kind == LL_CONST) {
    return ll_const(e->width == 32 ? UINT32_MAX : (1u << e->width) - 1);
  }
  ll_op number = lane_bits(e, mask);
  if (e->width == 32) return number;
  return ll_def(e, "zext i%u %v to i32", e->width, LL_I32, number);
}

static ll_op mask_of(ll *e, vyre__val v, bool is_not, unsigned depth) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  vyre__val left, right;
  bool is_or;
  if (ll_is_scalar(e, v)) {
    ll_op op = ll_scalar(e, v);
    if (op.kind == LL_CONST) {
      return ll_const((op.bits != 0) != is_not ? UINT32_MAX : 0);
    }
    op = ll_def(e, "sext i1 %v to i32", LL_I1, op);
    if (is_not) op = ll_def(e, "xor i32 %v, %u", LL_I32, op, UINT32_MAX);
    return ll_splat(e, LL_I32, op);
  }
  if (depth < 4 && ll_role(e, v)->subregion == e->subregion) {
    if (inst->op == VYRE__LIR_NOT) {
      return mask_of(e, inst->a, !is_not, depth + 1);
    }
    if (vyre__sched_operation(e->s, v, &left, &right, &is_or)) {
      ll_op a = mask_of(e, left, is_not, depth + 1);
      ll_op b = mask_of(e, right, is_not, depth + 1);
      bool is_and = is_or == is_not;
      ll_op op =
          ll_def(e, "%s %o, %v", is_and ? "and" : "or", MASK, a, MASK, b);
      uint32_t ours, others;
      bool knows = ll_lanes_known(e, a, &ours) && ll_lanes_known(e, b, &others);
      if (!knows) return op;
      return ll_with_lanes(e, op, is_and ? ours & others : ours | others);
    }
  }
  uint32_t lanes;
  ll_op op = ll_widen(e, ll_vector(e, v));
  if (is_not) {
    op = ll_def(e, "xor %o, %v", MASK, op, MASK, ll_const(UINT32_MAX));
  }
  if (!find_lanes(e, v, &lanes)) return op;
  return ll_with_lanes(e, op, is_not ? ~lanes : lanes);
}

ll_op ll_mask_of(ll *e, vyre__val v, bool is_not) {
  return mask_of(e, v, is_not, 0);
}

ll_op ll_active(ll *e, vyre__val c) {
  if (!c || ll_known_of(e, c) == LL_TRUE) return e->mask.lanes;
  return ll_and(e, e->mask.lanes, mask_of(e, c, false, 0));
}

/* --- from lane 0 ---------------------------------------------------------------------*/

static ll_op both(ll *e, ll_op a, ll_op b) {
  if (a.kind == LL_NONE || b.kind == LL_NONE) return (ll_op){0};
  return ll_def(e, "and i1 %v, %v", LL_I1, a, LL_I1, b);
}

/* first + width - 1 + extra <= bound, without wrapping at 2^32. */
static ll_op stays_below(ll *e, ll_op first, ll_op bound, bool equals) {
  uint32_t reach = e->width - equals;
  ll_op top = ll_def(e, "sub i32 %v, %u", LL_I32, bound, reach);
  ll_op has = ll_def(e, "icmp uge i32 %v, %u", LL_I32, bound, reach);
  ll_op in = ll_def(e, "icmp ule i32 %v, %v", LL_I32, first, LL_I32, top);
  return both(e, has, in);
}

static ll_op stays_above(ll *e, ll_op first, ll_op bound, bool equals) {
  ll_op in = ll_def(e, "icmp %s i32 %v, %v", equals ? "uge" : "ugt", LL_I32,
                    first, LL_I32, bound);
  ll_op last =
      ll_def(e, "icmp ule i32 %v, %u", LL_I32, first, (unsigned)-e->width);
  return both(e, in, last);
}

ll_op ll_test(ll *e, vyre__val c, bool want) {
  const vyre__lir_inst *inst = ll_inst(e, c);
  if (ll_is_scalar(e, c)) {
    ll_op op = ll_scalar(e, c);
    return want ? op : ll_def(e, "xor i1 %v, true", LL_I1, op);
  }
  if (ll_role(e, c)->subregion != e->subregion) return (ll_op){0};
  if (inst->op == VYRE__LIR_NOT) return ll_test(e, inst->a, !want);
  vyre__val first, last;
  bool is_or;
  if (vyre__sched_operation(e->s, c, &first, &last, &is_or)) {
    if (is_or == want) return (ll_op){0};
    ll_op one = ll_test(e, first, want);
    return one.kind == LL_NONE ? one : both(e, one, ll_test(e, last, want));
  }
  if (inst->op < VYRE__LIR_LT_U || inst->op > VYRE__LIR_LE_S) return (ll_op){0};
  bool equals = inst->op == VYRE__LIR_LE_U || inst->op == VYRE__LIR_LE_S;
  bool is_signed = inst->op == VYRE__LIR_LT_S || inst->op == VYRE__LIR_LE_S;
  if (ll_inst(e, inst->a)->type != VYRE_TYPE_U32) return (ll_op){0};
  const ll_rep *a = ll_value(e, inst->a), *b = ll_value(e, inst->b);
  ll_op left = a->s, right = b->s;
  bool counts_first = a->form == LL_LINEAR && a->stride == 1;
  bool counts_last = b->form == LL_LINEAR && b->stride == 1;
  counts_first &= b->form == LL_SCALAR;
  counts_last &= a->form == LL_SCALAR;
  if (!counts_first && !counts_last) return (ll_op){0};
  if (is_signed) { /* in unsigned order */
    left = ll_def(e, "xor i32 %v, %u", LL_I32, left, 0x80000000u);
    right = ll_def(e, "xor i32 %v, %u", LL_I32, right, 0x80000000u);
  }
  if (counts_first) {
    return want ? stays_below(e, left, right, equals)
                : stays_above(e, left, right, !equals);
  }
  return want ? stays_above(e, right, left, equals)
              : stays_below(e, right, left, !equals);
}
