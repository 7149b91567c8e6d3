/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows (rows.h): emits the code of a row in vectors. */
#include "codegen/llvm/rows.h"

enum {
  MASK = LL_I32 | LL_VEC,
  MAX_KNOWN = 400, /* instructions of unrolled vectors .. */
  MAX_WHOLE = 640, /* .. if that may save memory accesses */
  MAX_AGAIN = 160, /* .. if the workgroup runs them in a loop, or if positions
                    * in shared memory are not constant anyway */
  MAX_TEXT =
      96 * 1024, /* bytes of text above which no further copies are emitted */
};

static ll_op low_half(ll *e, ll_op op) {
  if (op.kind == LL_CONST) return ll_const(op.bits & UINT32_MAX);
  return ll_def(e, "trunc i64 %v to i32", LL_I64, op);
}

static ll_op lanes_below(ll *e, ll_op from, ll_op end) {
  ll_op rest = ll_min(e, ll_minus(e, end, from), ll_const(e->width));
  if (ll_is(rest, e->width)) return (ll_op){0};
  rest = low_half(e, rest);
  ll_op on = ll_def(e, "icmp ult %t %%iota, %v", MASK, MASK,
                    ll_splat(e, LL_I32, rest));
  on = ll_widen(e, on);
  if (rest.kind != LL_CONST) return on;
  return ll_with_lanes(e, on, (UINT64_C(1) << rest.bits) - 1);
}

/* Alignment at which rows should start for full-register stores. */
static uint32_t least_good(const ll *e) {
  uint32_t lanes = e->options->lanes ? e->options->lanes : 8;
  return e->width < lanes ? e->width : lanes;
}

/* Returns a range of a row; NULL: it has none of this kind. */
static const vyre__sched_node *range_of(const vyre__sched_node *rows,
                                        vyre__range_kind kind) {
  const vyre__sched_node *range = rows->body;
  while (range && (range->kind != VYRE__SCHED_RANGE || range->range != kind)) {
    range = range->next;
  }
  return range;
}

/* Emits one vector, at @p at of the row. */
static void run_vector(ll *e, const vyre__sched_node *range, const ll_op *first,
                       ll_op at, ll_op mask) {
  bool is_full = range->range != VYRE__RANGE_EDGE;
  ll_op low = low_half(e, at);
  e->x = ll_const((first->bits + low.bits) & UINT32_MAX);
  if (!ll_are_known(*first, low)) {
    e->x = ll_def(e, "add nuw i32 %v, %v", LL_I32, *first, LL_I32, low);
  }
  if (!is_full) e->x = ll_opaque(e, e->x);
  e->local[0] = e->x;
  e->local_form[0] = e->width == 1 ? LL_SCALAR : LL_LINEAR;
  if (!e->s->is_fused) ll_set_vector_index(e, low);
  if (e->jam) ll_begin_jam(e);
  ll_run_range(e, range, mask);
}

/* Returns true if the subregion contains a loop. It is not unrolled then: indices
 * in the loop are not constant even if the position of the vector is. */
static bool has_loop(const ll *e, const vyre__subregion *subregion) {
  for (uint32_t at = subregion->begin; at < subregion->end; at++) {
    if (ll_is_op(e, at, VYRE__LIR_LOOP)) return true;
  }
  return false;
}

/* Counts the instructions of a vector, with its address computation; atomics
 * count once per lane. */
static uint64_t weight(const ll *e, const vyre__subregion *subregion) {
  enum { PLACE = 4 };
  uint64_t sum = subregion->end - subregion->begin + PLACE;
  for (uint32_t at = subregion->begin; at < subregion->end; at++) {
    uint16_t flags = vyre__lir_ops[ll_inst(e, at)->op].flags;
    if (flags & VYRE__LIRF_ATOMICS) sum += e->width;
  }
  return sum;
}

/* Unrolls a few vectors at constant positions. Returns true if it did. */
static bool run_known(ll *e, const vyre__sched_node *rows, ll_op first,
                      ll_interval clip, ll_interval middle, ll_interval exact) {
  const vyre__row_split *row = rows->split;
  const vyre__subregion *subregion = &e->s->r.subregions[row->subregion];
  if (!ll_are_known(clip.from, clip.to) ||
      !ll_are_known(middle.from, middle.to) ||
      !ll_are_known(exact.from, exact.to)) {
    return false;
  }
  bool is_repeated = (e->group_scope && !e->unrolls) || e->has_versions;
  uint64_t most = is_repeated        ? MAX_AGAIN
                  : e->is_full_group ? MAX_WHOLE
                                     : MAX_KNOWN;
  uint64_t count =
      clip.to.bits > clip.from.bits
          ? (clip.to.bits - clip.from.bits + e->width - 1) / e->width
          : 0;
  if (count > 1 && (e->options->is_compact || ll_is_spare(e) ||
                    count * weight(e, subregion) > most ||
                    e->body.length > MAX_TEXT || has_loop(e, subregion) ||
                    vyre__has_private_atomics(e->s, row->subregion))) {
    return false;
  }
  const vyre__sched_node *full = range_of(rows, VYRE__RANGE_FULL),
                         *edge = range_of(rows, VYRE__RANGE_EDGE),
                         *outside = range_of(rows, VYRE__RANGE_OUTSIDE);
  for (uint64_t d = clip.from.bits; d < clip.to.bits; d += e->width) {
    bool is_full = d >= middle.from.bits && d < middle.to.bits;
    /* Vectors in which the single condition holds in no lane. */
    bool is_outside = outside && !is_full && d + e->width <= clip.to.bits &&
                      (d + e->width <= exact.from.bits || d >= exact.to.bits);
    ll_op mask = {0};
    if (!is_full && e->width > 1) mask = lanes_below(e, ll_const(d), clip.to);
    run_vector(e,
               is_full      ? full
               : is_outside ? outside
                            : edge,
               &first, ll_const(d), mask);
  }
  return true;
}

/* d = from; while (d < to) { if (d is in the middle) full vectors: one at
 * the start of the middle, aligned ones from the next boundary on, the last
 * one up to its end; else one masked vector } */
static void run_overlapping(ll *e, const vyre__sched_node *rows, ll_op first,
                            ll_interval clip, ll_interval middle) {
  uint64_t good = ~(uint64_t)(least_good(e) - 1);
  uint64_t ones = ~(uint64_t)(e->width - 1);
  ll_op at = ll_alloca(e, LL_I64, 1, 8), place = ll_alloca(e, LL_I64, 1, 8);
  uint32_t check = ll_label(e), which = ll_label(e), full = ll_label(e),
           head = ll_label(e), more = ll_label(e), some = ll_label(e),
           end = ll_label(e);
  ll_op width = ll_const(e->width);
  ll_op last = ll_minus(e, middle.to, width);
  ll_op fits = ll_def(e, "icmp uge i64 %v, %v", LL_I64, middle.to, LL_I64,
                      ll_plus(e, middle.from, width));
  ll_do(e, "store i64 %v, ptr %v", LL_I64, clip.from, LL_PTR, at);
  ll_place(e, check);
  ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, at);
  ll_cond(e, ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, clip.to),
          which, end);
  ll_place(e, which);
  ll_op in = ll_def(e, "icmp uge i64 %v, %v", LL_I64, now, LL_I64, middle.from);
  ll_op before =
      ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, middle.to);
  in = ll_def(e, "and i1 %v, %v", LL_I1, in, LL_I1, before);
  in = ll_def(e, "and i1 %v, %v", LL_I1, in, LL_I1, fits);
  ll_cond(e, in, full, some);

  ll_place(e, full);
  ll_op is_last = ll_def(e, "icmp ugt i64 %v, %v", LL_I64, now, LL_I64, last);
  ll_op begin = ll_pick(e, is_last, last, now);
  ll_op off = ll_masked(e, begin, ~good);
  off = ll_def(e, "icmp ne i64 %v, 0", LL_I64, off);
  off = ll_def(e, "or i1 %v, %v", LL_I1, off, LL_I1, is_last);
  ll_op many = ll_masked(e, ll_minus(e, middle.to, begin), ones);
  ll_op stop = ll_plus(e, begin, ll_pick(e, off, width, many));
  ll_do(e, "store i64 %v, ptr %v", LL_I64,
        ll_pick(e, is_last, middle.to, ll_masked(e, stop, good)), LL_PTR, at);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, begin, LL_PTR, place);
  ll_place(e, head);
  ll_op here = ll_def(e, "load i64, ptr %v", LL_PTR, place);
  run_vector(e, range_of(rows, VYRE__RANGE_FULL), &first, here, (ll_op){0});
  ll_op next = ll_def(e, "add nuw i64 %v, %u", LL_I64, here, e->width);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, place);
  ll_cond(e, ll_def(e, "icmp ult i64 %v, %v", LL_I64, next, LL_I64, stop), head,
          more);
  ll_place(e, more);
  ll_br(e, check);

  ll_place(e, some);
  run_vector(e, range_of(rows, VYRE__RANGE_EDGE), &first, now,
             lanes_below(e, now, clip.to));
  ll_do(e, "store i64 %v, ptr %v", LL_I64, ll_plus(e, now, width), LL_PTR, at);
  ll_br(e, check);
  ll_place(e, end);
}

/* Moves past the part that is done: computes where to continue, and how far
 * full vectors reach then. */
static ll_op pass_over(ll *e, ll_interval done, ll_op now, ll_op at,
                       ll_op *to) {
  ll_op from = ll_def(e, "icmp uge i64 %v, %v", LL_I64, now, LL_I64, done.from);
  ll_op in = ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, done.to);
  in = ll_def(e, "and i1 %v, %v", LL_I1, in, LL_I1, from);
  now = ll_pick(e, in, done.to, now);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, now, LL_PTR, at);
  ll_op is_before =
      ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, done.from);
  *to = ll_pick(e, is_before, ll_min(e, *to, done.from), *to);
  return now;
}

/* d = from; while (d < to) { if (d is in the middle) full vectors; else one
 * masked vector }. @p done: NULL if nothing is done yet. */
static void run_ranges(ll *e, const vyre__sched_node *rows, ll_op first,
                       ll_interval clip, ll_interval middle, ll_interval exact,
                       const ll_interval *done) {
  if (!done && run_known(e, rows, first, clip, middle, exact)) return;
  bool covers_all = clip.to.kind == LL_CONST &&
                    ll_is(middle.to, clip.to.bits) && ll_is(clip.from, 0) &&
                    ll_is(middle.from, 0) && !done;
  ll_op at = ll_alloca(e, LL_I64, 1, 8);
  uint32_t check = ll_label(e), full = ll_label(e), more = ll_label(e),
           some = ll_label(e), end = ll_label(e), which = ll_label(e);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, clip.from, LL_PTR, at);
  if (!covers_all) {
    ll_place(e, check);
    ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, at);
    if (done) now = pass_over(e, *done, now, at, &middle.to);
    ll_op goes_on =
        ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, clip.to);
    ll_cond(e, goes_on, which, end);
    ll_place(e, which);
    ll_op in = ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, middle.to);
    ll_op from =
        ll_def(e, "icmp uge i64 %v, %v", LL_I64, now, LL_I64, middle.from);
    in = ll_def(e, "and i1 %v, %v", LL_I1, in, LL_I1, from);
    ll_cond(e, in, full, some);
  }
  ll_place(e, full);
  ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, at);
  bool is_ever = !ll_is(middle.to, 0);
  if (is_ever)
    run_vector(e, range_of(rows, VYRE__RANGE_FULL), &first, now, (ll_op){0});
  ll_op next = ll_def(e, "add nuw i64 %v, %u", LL_I64, now, e->width);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, at);
  next = ll_def(e, "icmp ult i64 %v, %v", LL_I64, next, LL_I64, middle.to);
  ll_again(e, rows->subregion, next, full, covers_all ? end : more);
  if (!covers_all) {
    ll_place(e, more);
    ll_br(e, check);
    ll_place(e, some);
    now = ll_def(e, "load i64, ptr %v", LL_PTR, at);
    ll_op mask = {0};
    if (e->width > 1) mask = lanes_below(e, now, clip.to);
    run_vector(e, range_of(rows, VYRE__RANGE_EDGE), &first, now, mask);
    next = ll_def(e, "add nuw i64 %v, %u", LL_I64, now, e->width);
    ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, at);
    ll_br(e, check);
  }
  ll_place(e, end);
}

static void test_fuel(ll *e, const vyre__row_split *row) {
  const vyre__subregion *subregion = &e->s->r.subregions[row->subregion];
  for (uint32_t at = subregion->begin; at < subregion->end; at++) {
    if (!ll_note_of(e, at)->is_hoisted) continue;
    vyre__val condition = ll_inst(e, at)->a;
    uint32_t rest = ll_label(e);
    ll_emit_at_row_start(e, condition);
    e->uses_fuel_exit = true;
    ll_cond(e, ll_scalar(e, condition), e->fuel_label, rest);
    ll_place(e, rest);
  }
}

static void begin_vector(ll *e, vyre__row_split *row, ll_op x) {
  e->subregion = row->subregion;
  e->row = row;
  e->stamp = ++e->stamps;
  e->x = x;
  e->local[0] = x;
  e->local_form[0] = e->width == 1 ? LL_SCALAR : LL_LINEAR;
}

static void end_vector(ll *e, uint32_t mark) {
  ll_leave(e, mark);
  e->subregion = 0;
  e->row = NULL;
  e->stamp = 0;
}

/* One or two vectors: each evaluates the conditions. */
static bool run_short(ll *e, const vyre__sched_node *rows, ll_op first,
                      ll_op count) {
  vyre__row_split *row = rows->split;
  if (e->width == 1 || row->count == 0 || count.kind != LL_CONST ||
      count.bits % e->width || count.bits > 2 * (uint64_t)e->width ||
      first.kind != LL_CONST) {
    return false;
  }
  for (uint32_t i = 0; i < row->count; i++) {
    if (row->conditions[i].in_loops || row->conditions[i].is_clamp)
      return false;
  }
  for (uint64_t d = 0; d < count.bits; d += e->width) {
    uint32_t mark = ll_enter(e), all = ll_label(e), some = ll_label(e),
             end = ll_label(e);
    begin_vector(e, row, ll_const((first.bits + d) & UINT32_MAX));
    test_fuel(e, row);
    ll_op test = ll_const(1);
    for (uint32_t i = 0; i < row->count && test.kind != LL_NONE; i++) {
      ll_emit_at_row_start(e, row->conditions[i].v);
      ll_op one = ll_test(e, row->conditions[i].v, row->conditions[i].want);
      if (one.kind == LL_NONE) {
        test = one;
      } else {
        test = i ? ll_def(e, "and i1 %v, %v", LL_I1, test, LL_I1, one) : one;
      }
    }
    end_vector(e, mark);
    if (test.kind != LL_NONE) {
      ll_branch_likely(e, test, all, some);
      ll_place(e, all);
      run_vector(e, range_of(rows, VYRE__RANGE_FULL), &first, ll_const(d),
                 (ll_op){0});
      ll_br(e, end);
    }
    ll_place(e, some);
    e->no_copies = test.kind != LL_NONE;
    run_vector(e, range_of(rows, VYRE__RANGE_EDGE), &first, ll_const(d),
               (ll_op){0});
    e->no_copies = false;
    ll_place(e, end);
  }
  return true;
}

/* --- elements that the row loads once ------------------------------------------------*/

bool ll_is_row_load(const ll *e, vyre__val v) {
  return e->range && e->range->range == VYRE__RANGE_FULL && !e->jam &&
         e->row_loads[v - e->s->r.begin].kind != LL_NONE;
}

void ll_give_row_load(ll *e, vyre__val v) {
  unsigned type = ll_type(ll_inst(e, v)->type);
  ll_give(e, v, LL_SCALAR,
          ll_def(e, "load %t, ptr %v", type, LL_PTR,
                 e->row_loads[v - e->s->r.begin]));
}

/* Emits the loads if the row has full vectors; their checks hold there. */
static void load_once(ll *e, const vyre__row_split *row, ll_interval middle) {
  const vyre__subregion *of = &e->s->r.subregions[row->subregion];
  if (!row->has_loads) return;
  uint32_t loads = ll_label(e), end = ll_label(e);
  ll_op any = ll_const(middle.from.bits < middle.to.bits);
  if (!ll_are_known(middle.from, middle.to)) {
    any = ll_def(e, "icmp ult i64 %v, %v", LL_I64, middle.from, LL_I64,
                 middle.to);
  }
  for (uint32_t at = of->begin; at < of->end; at++) {
    if (ll_note_of(e, at)->is_row_load)
      ll_emit_at_row_start(e, ll_inst(e, at)->a);
  }
  ll_cond(e, any, loads, end);
  ll_place(e, loads);
  for (uint32_t at = of->begin; at < of->end; at++) {
    if (!ll_note_of(e, at)->is_row_load) continue;
    unsigned type = ll_type(ll_inst(e, at)->type);
    ll_op to = ll_alloca(e, type, 1, 8);
    ll_do(e, "store %o, ptr %v", type, ll_load_one(e, at), LL_PTR, to);
    e->row_loads[at - e->s->r.begin] = to;
  }
  ll_place(e, end);
}

static void forget_loads(ll *e, const vyre__row_split *row) {
  const vyre__subregion *of = &e->s->r.subregions[row->subregion];
  for (uint32_t at = of->begin; row->has_loads && at < of->end; at++) {
    e->row_loads[at - e->s->r.begin] = (ll_op){0};
  }
}

/* --- all of a row ------------------------------------------------------------------------*/

ll_op ll_row_is_full(ll *e, vyre__row_split *row) {
  ll_op size = ll_const(e->kernel->workgroup[0]);
  ll_interval all = {ll_const(0), size};
  uint32_t mark = ll_enter(e);
  begin_vector(e, row, ll_const(0));
  for (uint32_t i = 0; i < row->count; i++) {
    if (!row->conditions[i].by_group) continue;
    ll_narrow_by_condition(e, row, &row->conditions[i], &all, false);
  }
  end_vector(e, mark);
  ll_op from = ll_def(e, "icmp eq i64 %v, 0", LL_I64, all.from);
  ll_op to = ll_def(e, "icmp eq i64 %v, %v", LL_I64, all.to, LL_I64, size);
  return ll_def(e, "and i1 %v, %v", LL_I1, from, LL_I1, to);
}

/* Branches to @p end if a condition that is the same in the whole row says that
 * no invocation has anything to do: before the ranges of others are computed. */
static void skip_idle(ll *e, const vyre__row_split *row, uint32_t end) {
  for (uint32_t i = 0; i < row->count; i++) {
    const vyre__row_condition *c = &row->conditions[i];
    if (!c->is_same || !c->clips || c->is_proven) continue;
    ll_emit_at_row_start(e, c->v);
    ll_op holds = ll_scalar(e, c->v);
    if (holds.kind == LL_CONST) continue;
    uint32_t rest = ll_label(e);
    ll_cond(e, holds, c->want ? rest : end, c->want ? end : rest);
    ll_place(e, rest);
  }
}

static void run_row_ranges(ll *e, const vyre__sched_node *rows, ll_op first,
                           ll_op count, uint32_t end) {
  vyre__row_split *row = rows->split;
  ll_interval clip, middle, exact;
  uint32_t mark = ll_enter(e);
  begin_vector(e, row, first);
  test_fuel(e, row);
  skip_idle(e, row, end);
  ll_find_middle(e, row, count, &clip, &middle, &exact);
  load_once(e, row, middle);
  end_vector(e, mark);
  bool is_known = clip.to.kind == LL_CONST && middle.to.kind == LL_CONST &&
                  middle.from.kind == LL_CONST;
  if (!is_known && run_short(e, rows, first, count)) return;
  if (e->s->overlaps) {
    run_overlapping(e, rows, first, clip, middle);
  } else {
    run_ranges(e, rows, first, clip, middle, exact, NULL);
  }
  forget_loads(e, row);
}

/* Emits the row at x = @p first, of @p count invocations; i32 and i64. */
void ll_run_row(ll *e, const vyre__sched_node *rows, ll_op first, ll_op count) {
  uint32_t end = ll_label(e);
  run_row_ranges(e, rows, first, count, end);
  ll_place(e, end);
}

void ll_run_rest(ll *e, const vyre__sched_node *rows, ll_op first, ll_op count,
                 ll_interval done) {
  vyre__row_split *row = rows->split;
  ll_interval clip, middle, exact;
  uint32_t mark = ll_enter(e);
  begin_vector(e, row, first);
  ll_find_middle(e, row, count, &clip, &middle, &exact);
  end_vector(e, mark);
  run_ranges(e, rows, first, clip, middle, exact, &done);
}

/* while (from < to) { a vector of each row } */
static void run_jammed(ll *e, const vyre__sched_node *jam, ll_jam *own,
                       ll_op first, ll_interval all) {
  ll_op at = ll_alloca(e, LL_I64, 1, 8);
  uint32_t head = ll_label(e), check = ll_label(e), end = ll_label(e);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, all.from, LL_PTR, at);
  ll_place(e, check);
  ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, at);
  ll_cond(e, ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, all.to),
          head, end);
  ll_place(e, head);
  e->jam = own;
  run_vector(e, jam->body, &first, now, (ll_op){0});
  ll_end_jam(e);
  ll_op next = ll_def(e, "add nuw i64 %v, %u", LL_I64, now, e->width);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, at);
  ll_br(e, check);
  ll_place(e, end);
}

bool ll_run_together(ll *e, const vyre__sched_node *rows,
                     const vyre__sched_node *jam, ll_op first, ll_op count,
                     ll_interval *done) {
  vyre__row_split *row = rows->split;
  ll_interval all = {ll_const(0), count}, clip, middle, exact;
  ll_op y = e->local[1];
  bool covers_all = true;
  ll_jam *own = ll_make_jam(e, jam->jam);
  if (!own) return false;
  for (uint32_t i = 0; i < jam->jam->rows; i++) {
    uint32_t mark = ll_enter(e);
    if (i) e->local[1] = ll_def(e, "add nuw i32 %v, %u", LL_I32, y, i);
    begin_vector(e, row, first);
    test_fuel(e, row);
    ll_find_middle(e, row, count, &clip, &middle, &exact);
    end_vector(e, mark);
    ll_narrow(e, &all, middle.from, middle.to);
    covers_all &= ll_are_known(clip.from, clip.to) &&
                  ll_are_known(middle.from, middle.to) &&
                  middle.from.bits <= clip.from.bits &&
                  middle.to.bits >= clip.to.bits;
  }
  e->local[1] = y;
  *done = all;
  if (ll_are_known(all.from, all.to) && all.from.bits >= all.to.bits)
    return true;
  if (ll_are_known(all.from, all.to) &&
      all.to.bits - all.from.bits == e->width) {
    e->jam = own;
    run_vector(e, jam->body, &first, all.from, (ll_op){0});
    ll_end_jam(e);
  } else {
    run_jammed(e, jam, own, first, all);
  }
  return !covers_all;
}
