/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which lanes are on: vectors of i32, all ones or zeros. They are combined as
 * such; vectors of i1 that live through loops are slow on processors without
 * registers for them. */
#include "emit/llvm_internal.h"

enum { MASK = LL_I32 | LL_VEC, BITS = LL_I1 | LL_VEC };

ll_op ll_mask_bits(ll *e) {
  if (e->mask.lanes.kind == LL_NONE) return (ll_op){0};
  if (e->mask.bits.kind == LL_NONE) {
    e->mask.bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK,
                          e->mask.lanes);
  }
  return e->mask.bits;
}

ll_op ll_mask_vector(ll *e) {
  return e->mask.lanes.kind == LL_NONE ? ll_const(UINT32_MAX) : e->mask.lanes;
}

ll_op ll_any(ll *e, ll_op mask) {
  if (mask.kind == LL_NONE) return ll_const(1);
  ll_op all = ll_def(e, "call i32 @llvm.vector.reduce.or.v%ui32(%o)", e->width,
                     MASK, mask);
  return ll_def(e, "icmp ne i32 %v, 0", LL_I32, all);
}

ll_op ll_all(ll *e, ll_op mask) {
  if (mask.kind == LL_NONE) return ll_const(1);
  ll_op off = ll_def(e, "xor %o, %v", MASK, mask, MASK, ll_const(UINT32_MAX));
  ll_op any = ll_def(e, "call i32 @llvm.vector.reduce.or.v%ui32(%o)", e->width,
                     MASK, off);
  return ll_def(e, "icmp eq i32 %v, 0", LL_I32, any);
}

ll_op ll_and(ll *e, ll_op a, ll_op b) {
  if (a.kind == LL_NONE) return b;
  if (b.kind == LL_NONE) return a;
  return ll_def(e, "and %o, %v", MASK, a, MASK, b);
}

ll_op ll_and_not(ll *e, ll_op a, ll_op b) {
  ll_op off = ll_def(e, "xor %o, %v", MASK, b, MASK, ll_const(UINT32_MAX));
  return ll_and(e, a, off);
}

ll_op ll_widen(ll *e, ll_op bits) {
  return ll_def(e, "sext %o to %t", BITS, bits, MASK);
}

ll_op ll_lanes(ll *e, ll_op mask) {
  if (mask.kind == LL_NONE || mask.kind == LL_CONST) {
    return ll_const(e->width == 32 ? UINT32_MAX : (1u << e->width) - 1);
  }
  ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, mask);
  ll_op number = ll_def(e, "bitcast %o to i%u", BITS, bits, e->width);
  if (e->width == 32) return number;
  return ll_def(e, "zext i%u %v to i32", e->width, LL_I32, number);
}

ll_op ll_active(ll *e, vyre__val c) {
  if (!c || ll_known_of(e, c) == LL_TRUE) return e->mask.lanes;
  return ll_and(e, e->mask.lanes, ll_widen(e, ll_vector(e, c)));
}
