/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes operations lane by lane where no vector instruction exists:
 * active lanes only, lowest first. Values that differ between lanes pass
 * through stack arrays. */
#include "codegen/llvm/internal.h"

ll_op ll_spill(ll *e, unsigned type, ll_op vector) {
  ll_op at = ll_alloca(e, type | LL_VEC, 1, 64);
  ll_do(e, "store %o, ptr %v", type | LL_VEC, vector, LL_PTR, at);
  return at;
}

/* while (left) { lane = lowest of left; left &= left - 1; .. } */
ll_lane_loop ll_open_lanes(ll *e, ll_op active) {
  ll_lane_loop l = {.left = ll_alloca(e, LL_I32, 1, 4),
                    .head = ll_label(e),
                    .end = ll_label(e)};
  uint32_t body = ll_label(e);
  ll_do(e, "store i32 %v, ptr %v", LL_I32, ll_lanes(e, active), LL_PTR, l.left);
  ll_place(e, l.head);
  ll_op left = ll_def(e, "load i32, ptr %v", LL_PTR, l.left);
  ll_cond(e, ll_def(e, "icmp eq i32 %v, 0", LL_I32, left), l.end, body);
  ll_place(e, body);
  l.lane = ll_def(e, "call i32 @llvm.cttz.i32(i32 %v, i1 true)", LL_I32, left);
  ll_op less = ll_def(e, "sub i32 %v, 1", LL_I32, left);
  less = ll_def(e, "and i32 %v, %v", LL_I32, less, LL_I32, left);
  ll_do(e, "store i32 %v, ptr %v", LL_I32, less, LL_PTR, l.left);
  return l;
}

void ll_close_lanes(ll *e, const ll_lane_loop *l) {
  if (l->stays && e->is_open) {
    ll_do(e, "br label %b, !llvm.loop !1", l->head);
    e->is_open = false;
  }
  ll_br(e, l->head);
  ll_place(e, l->end);
}

static ll_op place(ll *e, const ll_lane_loop *l, unsigned type, ll_op array) {
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i32 %v", type, LL_PTR,
                array, LL_I32, l->lane);
}

ll_op ll_from_lane(ll *e, const ll_lane_loop *l, unsigned type, ll_op array) {
  return ll_def(e, "load %t, ptr %v", type, LL_PTR, place(e, l, type, array));
}

void ll_to_lane(ll *e, const ll_lane_loop *l, unsigned type, ll_op array,
                ll_op value) {
  ll_do(e, "store %o, ptr %v", type, value, LL_PTR, place(e, l, type, array));
}

/* --- functions ----------------------------------------------------------------*/

/* for each lane of %left, lowest first: got[lane] = base[at[lane]], or the
 * store. */
static void lane_function(ll *e, bool is_load, unsigned type) {
  ll_print(e,
           "define internal void @%s_lanes_%t(ptr %%base, ptr %%at, ptr "
           "%%got, i32 %%first) noinline cold optsize nounwind {\n"
           "start:\n"
           " %%none = icmp eq i32 %%first, 0\n"
           " br i1 %%none, label %%end, label %%head\n"
           "head:\n"
           " %%left = phi i32 [%%first, %%start], [%%rest, %%head]\n"
           " %%lane = call i32 @llvm.cttz.i32(i32 %%left, i1 true)\n"
           " %%less = sub i32 %%left, 1\n"
           " %%rest = and i32 %%less, %%left\n"
           " %%where = getelementptr inbounds i32, ptr %%at, i32 %%lane\n"
           " %%index = load i32, ptr %%where\n"
           " %%wide = zext i32 %%index to i64\n",
           is_load ? "load" : "store", type);
  ll_print(e,
           " %%mine = getelementptr inbounds %t, ptr %%got, i32 %%lane\n"
           " %%there = getelementptr inbounds %t, ptr %%base, i64 %%wide\n"
           " %%one = load %t, ptr %%%s, align 1\n"
           " store %t %%one, ptr %%%s, align 1\n"
           " %%ends = icmp eq i32 %%rest, 0\n"
           " br i1 %%ends, label %%end, label %%head\n"
           "end:\n ret void\n}\n",
           type, type, type, is_load ? "there" : "mine", type,
           is_load ? "mine" : "there");
}

void ll_lane_functions(ll *e) {
  for (unsigned type = 0; type < LL_TYPES; type++) {
    if (e->loads_lanes[type]) lane_function(e, true, type);
    if (e->stores_lanes[type]) lane_function(e, false, type);
  }
}
