/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of invocations side by side in x.
 *
 * Conditions that compare something that counts with x to something that is the
 * same for the row hold in one stretch of it, or in two where it wraps at 2^32,
 * of which one is taken. Most kernels have some: the guard
 * `i < len(y)`, and the checks of accesses. They are found, the stretch where all
 * of them are as hoped is computed once a row, and gets code of its own, without
 * any of them. What is left at both ends goes the long way. Where everything that
 * a row does is behind such a guard, the rest is not visited at all. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "emit/llvm_internal.h"

enum {
  MASK = LL_I32 | LL_VEC,
  MOST_ATOMS = 32,
  MOST_DEPTH = 64,
  MOST_KNOWN = 400, /* instructions of vectors one after the other .. */
  MOST_WHOLE = 640, /* .. where that may spare memory */
};

/* How a value goes along a row. */
typedef enum way { WAY_UNKNOWN, WAY_NONE, WAY_SAME, WAY_COUNTS } way;

/* One comparison, or something that is the same for the row. */
typedef struct atom {
  vyre__val v;   /* the bool */
  bool want;     /* what it is hoped to be */
  bool is_same;  /* of the row: no stretch, all or nothing */
  bool clips;    /* where it is not so, nothing is to be done */
  bool is_reach; /* a check in a loop, of all rounds */
  bool is_told;  /* can be told where the workgroup begins: see llvm_whole.c */
} atom;

struct ll_row {
  uint32_t piece;
  uint32_t effects_from; /* top level: before it, nothing happens */
  uint8_t *ways;
  atom atoms[MOST_ATOMS];
  uint32_t count;
};

static bool is_op(const ll *e, uint32_t at, vyre__low_op op) {
  return ll_inst(e, at)->op == op;
}

/* --- what can be computed ahead -----------------------------------------------------*/

static bool is_top(const ll *e, uint32_t at) {
  uint32_t open = ll_role(e, at)->parent;
  return !open || ll_role(e, open)->piece == 0;
}

/* x == 0 ? 1 : x, or a number. */
static bool is_never_zero(const ll *e, vyre__val v) {
  const vyre__low_inst *inst = ll_inst(e, v);
  if (inst->op == VYRE__LOW_CONST) return vyre__low_const(inst) != 0;
  if (inst->op != VYRE__LOW_SELECT) return false;
  const vyre__low_inst *test = ll_inst(e, inst->a),
                       *other = ll_inst(e, inst->b);
  if (test->op != VYRE__LOW_EQ || other->op != VYRE__LOW_CONST) return false;
  const vyre__low_inst *zero = ll_inst(e, test->b);
  return test->a == inst->c && zero->op == VYRE__LOW_CONST &&
         vyre__low_const(zero) == 0 && vyre__low_const(other) != 0;
}

static bool is_sure(const ll *e, const ll_row *row, uint32_t at) {
  switch (ll_inst(e, at)->op) {
    case VYRE__LOW_DIV_U:
    case VYRE__LOW_REM_U:
      if (is_never_zero(e, ll_inst(e, at)->b)) return true;
      return is_top(e, at) && at < row->effects_from;
    case VYRE__LOW_DIV_S:
    case VYRE__LOW_REM_S:
    case VYRE__LOW_F_TO_U:
    case VYRE__LOW_F_TO_S:
      return is_top(e, at) && at < row->effects_from;
    default:
      return true;
  }
}

static way way_of(ll *e, ll_row *row, vyre__val v, unsigned depth);

static way find_way(ll *e, ll_row *row, vyre__val v, unsigned depth) {
  const vyre__low_inst *inst = ll_inst(e, v);
  const vyre__role *role = ll_role(e, v);
  if (ll_is_x(e, v)) return WAY_COUNTS;
  if (inst->op == VYRE__LOW_LOCAL_ID && inst->aux == 0 &&
      e->kernel->workgroup[0] > 1) {
    return WAY_COUNTS;
  }
  if (inst->op == VYRE__LOW_GROUP_ID && inst->aux == 0 && e->is_fused) {
    return WAY_NONE;
  }
  if (role->is_leaf || role->keep == VYRE__KEEP_UNIFORM) return WAY_SAME;
  if (!(vyre__low_ops[inst->op].flags & VYRE__LOWF_PURE) ||
      depth > MOST_DEPTH) {
    return WAY_NONE;
  }
  if (!is_sure(e, row, v)) return WAY_NONE;
  bool all_same = true;
  for (unsigned i = 0; i < vyre__low_ops[inst->op].operands; i++) {
    way operand = way_of(e, row, inst->v[i], depth + 1);
    if (operand == WAY_NONE) return WAY_NONE;
    all_same &= operand == WAY_SAME;
  }
  if (all_same) return WAY_SAME;
  bool adds = inst->op == VYRE__LOW_ADD || inst->op == VYRE__LOW_SUB;
  if (!adds || inst->type != VYRE_TYPE_U32) return WAY_NONE;
  way a = way_of(e, row, inst->a, depth + 1);
  way b = way_of(e, row, inst->b, depth + 1);
  if (a == WAY_COUNTS && b == WAY_COUNTS) return WAY_NONE;
  if (b == WAY_COUNTS && inst->op == VYRE__LOW_SUB) return WAY_NONE;
  return WAY_COUNTS;
}

static way way_of(ll *e, ll_row *row, vyre__val v, unsigned depth) {
  uint8_t *known = &row->ways[v - e->r.begin];
  if (*known == WAY_UNKNOWN) *known = (uint8_t)find_way(e, row, v, depth);
  return (way)*known;
}

bool ll_row_same(ll *e, ll_row *row, vyre__val v) {
  return way_of(e, row, v, 0) == WAY_SAME;
}

bool ll_row_counts(ll *e, ll_row *row, vyre__val v) {
  return way_of(e, row, v, 0) == WAY_COUNTS;
}

/* --- goals ---------------------------------------------------------------------------*/

static bool compares(uint8_t op) {
  return op == VYRE__LOW_EQ || (op >= VYRE__LOW_LT_U && op <= VYRE__LOW_LE_S);
}

static bool add_atom(ll_row *row, vyre__val v, bool want, bool is_same,
                     bool clips) {
  if (row->count == MOST_ATOMS) return false;
  row->atoms[row->count++] =
      (atom){.v = v, .want = want, .is_same = is_same, .clips = clips};
  return true;
}

static bool decompose(ll *e, ll_row *row, vyre__val v, bool want, bool clips) {
  const vyre__low_inst *inst = ll_inst(e, v);
  if (way_of(e, row, v, 0) == WAY_SAME) {
    return add_atom(row, v, want, true, clips);
  }
  if (inst->op == VYRE__LOW_NOT) {
    return decompose(e, row, inst->a, !want, clips);
  }
  vyre__val left, right;
  bool is_or;
  if (ll_logic(e, v, &left, &right, &is_or)) {
    return is_or != want && decompose(e, row, left, want, clips) &&
           decompose(e, row, right, want, clips);
  }
  if (!compares(inst->op) || (inst->op == VYRE__LOW_EQ && !want)) return false;
  if (ll_inst(e, inst->a)->type != VYRE_TYPE_U32) return false;
  way a = way_of(e, row, inst->a, 0), b = way_of(e, row, inst->b, 0);
  if (a + b != WAY_SAME + WAY_COUNTS || a == WAY_NONE || b == WAY_NONE) {
    return false;
  }
  return add_atom(row, v, want, false, clips);
}

/* What follows from it in the code for the stretch. */
static void set_known(ll *e, vyre__val v, bool want, uint32_t piece) {
  const vyre__low_inst *inst = ll_inst(e, v);
  ll_note_of(e, v)->known = want ? LL_TRUE : LL_FALSE;
  ll_note_of(e, v)->known_in = piece;
  if (inst->op == VYRE__LOW_NOT) set_known(e, inst->a, !want, piece);
  vyre__val left, right;
  bool is_or;
  if (ll_logic(e, v, &left, &right, &is_or) && is_or != want) {
    set_known(e, left, want, piece);
    set_known(e, right, want, piece);
  }
}

static bool add_goal(ll *e, ll_row *row, vyre__val v, bool want, bool clips) {
  const ll_note *note = ll_note_of(e, v);
  if (ll_inst(e, v)->op == VYRE__LOW_CONST) return false;
  if (note->known && note->known_in == row->piece) {
    return note->known == (want ? LL_TRUE : LL_FALSE);
  }
  uint32_t count = row->count;
  if (!decompose(e, row, v, want, clips)) {
    row->count = count;
    return false;
  }
  set_known(e, v, want, row->piece);
  return true;
}

/* A check of the access at @p at: once, or in all rounds of loops. */
static void add_check(ll *e, ll_row *row, vyre__val check, uint32_t at) {
  const ll_note *note = ll_note_of(e, check);
  if (add_goal(e, row, check, true, false)) return;
  if (ll_inst(e, check)->op == VYRE__LOW_CONST) return;
  if (note->known && note->known_in == row->piece) return;
  if (!ll_reaches(e, row, check, at)) return;
  if (!add_atom(row, check, true, false, false)) return;
  row->atoms[row->count - 1].is_reach = true;
  set_known(e, check, true, row->piece);
}

static bool only_exits(const ll *e, uint32_t at) {
  return is_op(e, at + 1, VYRE__LOW_EXIT) && is_op(e, at + 2, VYRE__LOW_END);
}

static vyre__val check_of(const vyre__low_inst *inst) {
  uint16_t memory = VYRE__LOWF_READS | VYRE__LOWF_WRITES | VYRE__LOWF_ATOMICS;
  if (!(vyre__low_ops[inst->op].flags & memory)) return 0;
  if (inst->op == VYRE__LOW_OUT_OF_FUEL) return 0;
  return inst->v[vyre__low_ops[inst->op].operands - 1];
}

/* Whether something that others see happens in [begin, end). */
static bool has_effect(const ll *e, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end; at++) {
    const vyre__role *role = ll_role(e, at);
    uint8_t op = ll_inst(e, at)->op;
    uint16_t effects = VYRE__LOWF_WRITES | VYRE__LOWF_ATOMICS;
    if (!role->is_needed || role->keep == VYRE__KEEP_UNIFORM) continue;
    if (vyre__low_ops[op].flags & effects || role->sets_done) return true;
    if (op == VYRE__LOW_SET && e->vars[ll_inst(e, at)->aux].is_array)
      return true;
    if (role->keep == VYRE__KEEP_AGREED || role->keep >= VYRE__KEEP_STRIP) {
      return true;
    }
  }
  return false;
}

/* What an IF is hoped to be, if anything: an exit not taken, a block that is most
 * of what there is taken. */
static bool has_hope(const ll *e, ll_row *row, uint32_t at, uint32_t size) {
  const vyre__low_inst *inst = ll_inst(e, at);
  uint32_t close = vyre__end_of(&e->r, at);
  if (ll_role(e, at)->mate != close || inst->hints & VYRE__HINT_RARE) {
    return false;
  }
  (void)row;
  return only_exits(e, at) || 4 * (close - at) >= size;
}

/* Guards and checks, in IFs that are hoped to be taken too. */
static void find_goals(ll *e, ll_row *row, uint32_t begin, uint32_t end) {
  bool acts = false;
  for (uint32_t at = begin; at < end; at++) {
    const vyre__low_inst *inst = ll_inst(e, at);
    if (!ll_role(e, at)->is_needed) continue;
    if (inst->op != VYRE__LOW_IF) {
      vyre__val check = check_of(inst);
      if (check) add_check(e, row, check, at);
      acts |= has_effect(e, at, at + 1);
      continue;
    }
    uint32_t close = vyre__end_of(&e->r, at);
    if (ll_note_of(e, at)->is_settled) {
      at = close;
      continue;
    }
    bool never = only_exits(e, at);
    bool clean =
        is_top(e, at) && !acts &&
        (never ? !ll_role(e, at + 1)->sets_done : !has_effect(e, close, end));
    bool hopes = has_hope(e, row, at, end - begin) &&
                 (clean || way_of(e, row, inst->a, 0) != WAY_SAME);
    if (hopes) hopes = add_goal(e, row, inst->a, !never, clean);
    if (hopes && !never) find_goals(e, row, at + 1, close);
    acts |= !never && has_effect(e, at, close);
    at = close;
  }
}

/* --- a row -----------------------------------------------------------------------------*/

/* Makes @p v and what it is made of, where the row begins. */
void ll_make_ahead(ll *e, vyre__val v) {
  const ll_rep *rep = &e->reps[v - e->r.begin];
  const vyre__low_inst *inst = ll_inst(e, v);
  if (rep->form && (rep->stamp == 0 || rep->stamp == e->stamp)) return;
  if (ll_is_x(e, v)) {
    ll_give_x(e, v);
    return;
  }
  if (ll_role(e, v)->is_leaf) return;
  for (unsigned i = 0; i < vyre__low_ops[inst->op].operands; i++) {
    ll_make_ahead(e, inst->v[i]);
  }
  ll_pure(e, v);
}

static ll_op wide(ll *e, ll_op op) {
  if (op.kind == LL_CONST) return op;
  return ll_def(e, "zext i32 %v to i64", LL_I32, op);
}

static ll_op pick(ll *e, ll_op c, ll_op yes, ll_op no) {
  if (c.kind == LL_CONST) return c.bits ? yes : no;
  return ll_def(e, "select %o, %o, %o", LL_I1, c, LL_I64, yes, LL_I64, no);
}

static bool are_known(ll_op a, ll_op b) {
  return a.kind == LL_CONST && b.kind == LL_CONST;
}

static ll_op minus(ll *e, ll_op a, ll_op b) {
  if (are_known(a, b)) return ll_const(a.bits - b.bits);
  return ll_def(e, "sub i64 %v, %v", LL_I64, a, LL_I64, b);
}

typedef ll_stretch stretch;

static ll_op plus(ll *e, ll_op a, ll_op b) {
  if (are_known(a, b)) return ll_const(a.bits + b.bits);
  return ll_def(e, "add i64 %v, %v", LL_I64, a, LL_I64, b);
}

static ll_op least(ll *e, ll_op a, ll_op b) {
  if (are_known(a, b)) return a.bits < b.bits ? a : b;
  return ll_def(e, "call i64 @llvm.umin.i64(%o, %o)", LL_I64, a, LL_I64, b);
}

static ll_op most(ll *e, ll_op a, ll_op b) {
  if (are_known(a, b)) return a.bits > b.bits ? a : b;
  if (ll_is(a, 0) || ll_is(b, 0)) return ll_is(a, 0) ? b : a;
  return ll_def(e, "call i64 @llvm.umax.i64(%o, %o)", LL_I64, a, LL_I64, b);
}

static ll_op masked(ll *e, ll_op a, uint64_t bits) {
  if (a.kind == LL_CONST) return ll_const(a.bits & bits);
  return ll_def(e, "and i64 %v, %l", LL_I64, a, bits);
}

static void narrow(ll *e, stretch *s, ll_op from, ll_op to) {
  s->from = most(e, s->from, from);
  s->to = least(e, s->to, to);
}

/* Where value(0) + d, which wraps at 2^32, is below @p limit (at most 2^32) or, if
 * not @p below, not below. The first such stretch that does not wrap; @p all: from
 * there to the end, if there is another one. */
static void narrow_by(ll *e, stretch *s, ll_op first, ll_op limit, bool below,
                      bool all) {
  ll_op turn = ll_const(UINT64_C(1) << 32);
  ll_op is_below = ll_const(first.bits < limit.bits);
  if (!are_known(first, limit)) {
    is_below = ll_def(e, "icmp ult i64 %v, %v", LL_I64, first, LL_I64, limit);
  }
  ll_op rest = minus(e, limit, first);
  ll_op wrap = minus(e, turn, first);
  ll_op again = plus(e, wrap, limit);
  ll_op from = pick(e, is_below, rest, ll_const(0)), to = wrap, next = again;
  if (below) {
    from = pick(e, is_below, ll_const(0), wrap);
    to = pick(e, is_below, rest, again);
    next = pick(e, is_below, wrap, plus(e, wrap, turn));
  }
  if (all) {
    ll_op has_next = ll_const(next.bits < s->to.bits);
    if (!are_known(next, s->to)) {
      has_next = ll_def(e, "icmp ult i64 %v, %v", LL_I64, next, LL_I64, s->to);
    }
    to = pick(e, has_next, s->to, to);
  }
  narrow(e, s, from, to);
}

static void narrow_by_atom(ll *e, ll_row *row, const atom *a, stretch *s,
                           bool all) {
  const vyre__low_inst *inst = ll_inst(e, a->v);
  if (a->is_same) {
    ll_make_ahead(e, a->v);
    ll_op none = pick(e, ll_scalar(e, a->v), a->want ? s->to : ll_const(0),
                      a->want ? ll_const(0) : s->to);
    s->to = none;
    return;
  }
  if (a->is_reach) {
    stretch own = ll_reach(e, row, a->v, s->to);
    narrow(e, s, own.from, own.to);
    return;
  }
  ll_make_ahead(e, inst->a);
  ll_make_ahead(e, inst->b);
  bool counts_first = way_of(e, row, inst->a, 0) == WAY_COUNTS;
  ll_op first = ll_scalar(e, counts_first ? inst->a : inst->b);
  ll_op other = ll_scalar(e, counts_first ? inst->b : inst->a);
  bool is_signed = inst->op == VYRE__LOW_LT_S || inst->op == VYRE__LOW_LE_S;
  bool equals = inst->op == VYRE__LOW_LE_U || inst->op == VYRE__LOW_LE_S;
  if (inst->op == VYRE__LOW_EQ) {
    ll_op at = ll_const((other.bits - first.bits) & UINT32_MAX);
    if (!are_known(other, first)) {
      at = ll_def(e, "sub i32 %v, %v", LL_I32, other, LL_I32, first);
      at = wide(e, at);
    }
    narrow(e, s, at, plus(e, at, ll_const(1)));
    return;
  }
  if (is_signed) {
    first = ll_def(e, "xor i32 %v, %u", LL_I32, first, 0x80000000u);
    other = ll_def(e, "xor i32 %v, %u", LL_I32, other, 0x80000000u);
  }
  first = wide(e, first);
  other = wide(e, other);
  /* x < u, x <= u: below u, u + 1. u < x, u <= x: not below u + 1, u. */
  bool one_more = counts_first == equals;
  if (one_more) other = plus(e, other, ll_const(1));
  narrow_by(e, s, first, other, counts_first == a->want, all);
}

static ll_op low_half(ll *e, ll_op op) {
  if (op.kind == LL_CONST) return ll_const(op.bits & UINT32_MAX);
  return ll_def(e, "trunc i64 %v to i32", LL_I64, op);
}

static ll_op lanes_below(ll *e, ll_op from, ll_op end) {
  ll_op rest = least(e, minus(e, end, from), ll_const(e->width));
  if (ll_is(rest, e->width)) return (ll_op){0};
  rest = low_half(e, rest);
  ll_op on = ll_def(e, "icmp ult %t %%iota, %v", MASK, MASK,
                    ll_splat(e, LL_I32, rest));
  return ll_widen(e, on);
}

/* Where stores of whole registers are best begun, if rows are. */
static uint32_t least_good(const ll *e) {
  uint32_t lanes = e->options->lanes ? e->options->lanes : 8;
  return e->width < lanes ? e->width : lanes;
}

/* One vector, at @p at of the row. */
static void run_vector(ll *e, uint32_t piece, const ll_op *first, ll_op at,
                       ll_op mask, bool is_full) {
  ll_op low = low_half(e, at);
  e->x = ll_const((first->bits + low.bits) & UINT32_MAX);
  if (!are_known(*first, low)) {
    e->x = ll_def(e, "add nuw i32 %v, %v", LL_I32, *first, LL_I32, low);
  }
  if (!is_full) e->x = ll_opaque(e, e->x);
  e->local[0] = e->x;
  e->local_form[0] = e->width == 1 ? LL_SCALAR : LL_LINEAR;
  if (!e->is_fused) ll_count_vectors(e, low);
  if (e->jam) ll_begin_jam(e);
  e->is_full = is_full;
  ll_run_piece(e, piece, mask);
  e->is_full = false;
}

/* The stretch where all is as hoped, and its whole vectors, counted from the
 * begin. */
static void find_middle(ll *e, ll_row *row, ll_op count, stretch *clip,
                        stretch *middle, stretch *exact) {
  stretch full = {ll_const(0), count};
  *clip = full;
  for (uint32_t i = 0; i < row->count; i++) {
    if (e->is_whole && row->atoms[i].is_told) continue;
    narrow_by_atom(e, row, &row->atoms[i], &full, false);
    if (row->atoms[i].clips) {
      /* What is outside of it is not visited. */
      narrow_by_atom(e, row, &row->atoms[i], clip, true);
    }
  }
  *exact = full;
  uint64_t ones = ~(uint64_t)(e->width - 1);
  if (e->overlaps && !e->jams[row->piece]) {
    *middle = full;
    return;
  }
  full.from = masked(e, plus(e, full.from, ll_const(e->width - 1)), ones);
  clip->from = masked(e, clip->from, ones);
  full.to = masked(e, full.to, ones);
  if (are_known(full.from, full.to) && full.from.bits >= full.to.bits) {
    full.from = full.to = ll_const(0);
  }
  *middle = full;
}

static bool is_local_x(const ll *e, vyre__val v) {
  return is_op(e, v, VYRE__LOW_LOCAL_ID) && ll_inst(e, v)->aux == 0;
}

/* Whether there is one condition, which fails wherever it is not known to hold:
 * what it compares does not wrap. */
static bool is_one_stretch(const ll *e, const ll_row *row) {
  if (row->count != 1) return false;
  const vyre__low_inst *inst = ll_inst(e, row->atoms[0].v);
  return row->atoms[0].is_same || is_local_x(e, inst->a) ||
         is_local_x(e, inst->b);
}

/* Places inside of loops are not known, even if those of vectors are. */
static bool has_loop(const ll *e, const vyre__piece *piece) {
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    if (is_op(e, at, VYRE__LOW_LOOP)) return true;
  }
  return false;
}

/* Few vectors at places that are known now, one after the other. Whether it was
 * so. */
static bool run_known(ll *e, const ll_row *row, ll_op first, stretch clip,
                      stretch middle, stretch exact) {
  const vyre__piece *piece = &e->r.pieces[row->piece];
  if (!are_known(clip.from, clip.to) || !are_known(middle.from, middle.to) ||
      !are_known(exact.from, exact.to)) {
    return false;
  }
  uint64_t most = e->is_whole ? MOST_WHOLE : MOST_KNOWN;
  uint64_t count =
      clip.to.bits > clip.from.bits
          ? (clip.to.bits - clip.from.bits + e->width - 1) / e->width
          : 0;
  if (count > 1 && (count * (piece->end - piece->begin) > most ||
                    has_loop(e, piece) || ll_is_bulky(e, row->piece))) {
    return false;
  }
  for (uint64_t d = clip.from.bits; d < clip.to.bits; d += e->width) {
    bool is_full = d >= middle.from.bits && d < middle.to.bits;
    /* One condition, and no lane of the vector is where it holds. */
    bool is_opposite = is_one_stretch(e, row) && !is_full &&
                       d + e->width <= clip.to.bits &&
                       (d + e->width <= exact.from.bits || d >= exact.to.bits);
    ll_op mask = {0};
    if (!is_full && e->width > 1) mask = lanes_below(e, ll_const(d), clip.to);
    e->is_opposite = is_opposite;
    run_vector(e, row->piece, &first, ll_const(d), mask,
               is_full || is_opposite);
    e->is_opposite = false;
  }
  return true;
}

/* d = from; while (d < to) {
 *   if (d is in the middle) whole vectors: one where the middle begins, those from
 *     the next good place on, the last one up to its end
 *   else one with lanes off } */
static void run_overlapping(ll *e, const ll_row *row, ll_op first, stretch clip,
                            stretch middle) {
  uint64_t good = ~(uint64_t)(least_good(e) - 1);
  uint64_t ones = ~(uint64_t)(e->width - 1);
  ll_op at = ll_alloca(e, LL_I64, 1, 8), place = ll_alloca(e, LL_I64, 1, 8);
  uint32_t check = ll_label(e), which = ll_label(e), full = ll_label(e),
           head = ll_label(e), more = ll_label(e), some = ll_label(e),
           end = ll_label(e);
  ll_op width = ll_const(e->width);
  ll_op last = minus(e, middle.to, width);
  ll_op fits = ll_def(e, "icmp uge i64 %v, %v", LL_I64, middle.to, LL_I64,
                      plus(e, middle.from, width));
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
  ll_op begin = pick(e, is_last, last, now);
  ll_op off = masked(e, begin, ~good);
  off = ll_def(e, "icmp ne i64 %v, 0", LL_I64, off);
  off = ll_def(e, "or i1 %v, %v", LL_I1, off, LL_I1, is_last);
  ll_op many = masked(e, minus(e, middle.to, begin), ones);
  ll_op stop = plus(e, begin, pick(e, off, width, many));
  ll_do(e, "store i64 %v, ptr %v", LL_I64,
        pick(e, is_last, middle.to, masked(e, stop, good)), LL_PTR, at);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, begin, LL_PTR, place);
  ll_place(e, head);
  ll_op here = ll_def(e, "load i64, ptr %v", LL_PTR, place);
  run_vector(e, row->piece, &first, here, (ll_op){0}, true);
  ll_op next = ll_def(e, "add nuw i64 %v, %u", LL_I64, here, e->width);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, place);
  ll_cond(e, ll_def(e, "icmp ult i64 %v, %v", LL_I64, next, LL_I64, stop), head,
          more);
  ll_place(e, more);
  ll_br(e, check);

  ll_place(e, some);
  run_vector(e, row->piece, &first, now, lanes_below(e, now, clip.to), false);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, plus(e, now, width), LL_PTR, at);
  ll_br(e, check);
  ll_place(e, end);
}

/* Past what is done: where to go on, and how far whole vectors go then. */
static ll_op pass_over(ll *e, stretch done, ll_op now, ll_op at, ll_op *to) {
  ll_op from = ll_def(e, "icmp uge i64 %v, %v", LL_I64, now, LL_I64, done.from);
  ll_op in = ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, done.to);
  in = ll_def(e, "and i1 %v, %v", LL_I1, in, LL_I1, from);
  now = pick(e, in, done.to, now);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, now, LL_PTR, at);
  ll_op is_before =
      ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, done.from);
  *to = pick(e, is_before, least(e, *to, done.from), *to);
  return now;
}

/* d = from; while (d < to) { if (d is in the middle) full vectors; else one with
 * lanes off }. @p done: NULL if nothing is done yet. */
static void run_stretches(ll *e, const ll_row *row, ll_op first, stretch clip,
                          stretch middle, stretch exact, const stretch *done) {
  if (!done && run_known(e, row, first, clip, middle, exact)) return;
  bool is_whole = clip.to.kind == LL_CONST && ll_is(middle.to, clip.to.bits) &&
                  ll_is(clip.from, 0) && ll_is(middle.from, 0) && !done;
  ll_op at = ll_alloca(e, LL_I64, 1, 8);
  uint32_t check = ll_label(e), full = ll_label(e), more = ll_label(e),
           some = ll_label(e), end = ll_label(e), which = ll_label(e);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, clip.from, LL_PTR, at);
  if (!is_whole) {
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
  if (is_ever) run_vector(e, row->piece, &first, now, (ll_op){0}, true);
  ll_op next = ll_def(e, "add nuw i64 %v, %u", LL_I64, now, e->width);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, at);
  next = ll_def(e, "icmp ult i64 %v, %v", LL_I64, next, LL_I64, middle.to);
  ll_again(e, row->piece, next, full, is_whole ? end : more);
  if (!is_whole) {
    ll_place(e, more);
    ll_br(e, check);
    ll_place(e, some);
    now = ll_def(e, "load i64, ptr %v", LL_PTR, at);
    ll_op mask = {0};
    if (e->width > 1) mask = lanes_below(e, now, clip.to);
    run_vector(e, row->piece, &first, now, mask, false);
    next = ll_def(e, "add nuw i64 %v, %u", LL_I64, now, e->width);
    ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, at);
    ll_br(e, check);
  }
  ll_place(e, end);
}

static bool only_ends(const ll *e, uint32_t at) {
  return is_op(e, at, VYRE__LOW_IF) &&
         is_op(e, at + 1, VYRE__LOW_OUT_OF_FUEL) &&
         ll_role(e, at)->mate == vyre__end_of(&e->r, at);
}

/* The end of the dispatch comes for all or for nobody: asked once. */
static void plan_fuel(ll *e, ll_row *row) {
  const vyre__piece *piece = &e->r.pieces[row->piece];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    bool ends = only_ends(e, at);
    if (!ends && vyre__low_ops[ll_inst(e, at)->op].flags & VYRE__LOWF_CONTROL) {
      return;
    }
    if (!ends) continue;
    if (way_of(e, row, ll_inst(e, at)->a, 0) != WAY_SAME) return;
    ll_note_of(e, at)->is_settled = true;
    at = vyre__end_of(&e->r, at);
  }
}

static void settle_fuel(ll *e, const ll_row *row) {
  const vyre__piece *piece = &e->r.pieces[row->piece];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    if (!ll_note_of(e, at)->is_settled) continue;
    vyre__val condition = ll_inst(e, at)->a;
    uint32_t rest = ll_label(e);
    ll_make_ahead(e, condition);
    e->uses_fuel_exit = true;
    ll_cond(e, ll_scalar(e, condition), e->fuel_label, rest);
    ll_place(e, rest);
  }
}

static void begin_vector(ll *e, const ll_row *row, ll_op x) {
  e->piece = row->piece;
  e->stamp = ++e->stamps;
  e->x = x;
  e->local[0] = x;
  e->local_form[0] = e->width == 1 ? LL_SCALAR : LL_LINEAR;
}

static void end_vector(ll *e, uint32_t mark) {
  ll_leave(e, mark);
  e->piece = 0;
  e->stamp = 0;
}

/* One or two vectors: conditions are asked of each. */
static bool run_short(ll *e, ll_row *row, ll_op first, ll_op count) {
  if (e->width == 1 || row->count == 0 || count.kind != LL_CONST ||
      count.bits % e->width || count.bits > 2 * (uint64_t)e->width ||
      first.kind != LL_CONST) {
    return false;
  }
  for (uint32_t i = 0; i < row->count; i++) {
    if (row->atoms[i].is_reach) return false;
  }
  for (uint64_t d = 0; d < count.bits; d += e->width) {
    uint32_t mark = ll_enter(e), all = ll_label(e), some = ll_label(e),
             end = ll_label(e);
    begin_vector(e, row, ll_const((first.bits + d) & UINT32_MAX));
    settle_fuel(e, row);
    ll_op test = ll_const(1);
    for (uint32_t i = 0; i < row->count && test.kind != LL_NONE; i++) {
      ll_make_ahead(e, row->atoms[i].v);
      ll_op one = ll_test(e, row->atoms[i].v, row->atoms[i].want);
      if (one.kind == LL_NONE) {
        test = one;
      } else {
        test = i ? ll_def(e, "and i1 %v, %v", LL_I1, test, LL_I1, one) : one;
      }
    }
    end_vector(e, mark);
    if (test.kind != LL_NONE) {
      ll_hope(e, test, all, some);
      ll_place(e, all);
      run_vector(e, row->piece, &first, ll_const(d), (ll_op){0}, true);
      ll_br(e, end);
    }
    ll_place(e, some);
    e->no_copies = test.kind != LL_NONE;
    run_vector(e, row->piece, &first, ll_const(d), (ll_op){0}, false);
    e->no_copies = false;
    ll_place(e, end);
  }
  return true;
}

/* --- all of a row ------------------------------------------------------------------------*/

typedef enum told { TOLD_NOT, TOLD_NUMBER, TOLD } told;

/* Whether @p v can be computed before anything of the workgroup has happened. */
static told told_of(const ll *e, vyre__val v, unsigned depth) {
  const vyre__low_inst *inst = ll_inst(e, v);
  switch (inst->op) {
    case VYRE__LOW_CONST:
    case VYRE__LOW_LOCAL_ID: /* of a row: that of its first */
      return TOLD_NUMBER;
    case VYRE__LOW_GROUP_ID:
    case VYRE__LOW_GRID_SIZE:
    case VYRE__LOW_LEN:
      return TOLD;
    case VYRE__LOW_DIV_U:
    case VYRE__LOW_REM_U:
      if (!is_never_zero(e, inst->b)) return TOLD_NOT;
      break;
    case VYRE__LOW_DIV_S:
    case VYRE__LOW_REM_S:
    case VYRE__LOW_F_TO_U:
    case VYRE__LOW_F_TO_S:
      return TOLD_NOT;
    default:
      if (!(vyre__low_ops[inst->op].flags & VYRE__LOWF_PURE)) return TOLD_NOT;
  }
  told all = TOLD_NUMBER;
  for (unsigned i = 0; i < vyre__low_ops[inst->op].operands; i++) {
    told one =
        depth < MOST_DEPTH / 4 ? told_of(e, inst->v[i], depth + 1) : TOLD_NOT;
    if (one == TOLD_NOT) return one;
    if (one == TOLD) all = one;
  }
  return all;
}

bool ll_row_is_told(ll *e, ll_row *row) {
  bool any = false;
  for (uint32_t i = 0; i < row->count; i++) {
    atom *a = &row->atoms[i];
    a->is_told = (a->is_same || !is_op(e, a->v, VYRE__LOW_EQ)) &&
                 told_of(e, a->v, 0) == TOLD;
    any |= a->is_told;
  }
  return any;
}

ll_op ll_row_is_whole(ll *e, ll_row *row) {
  ll_op size = ll_const(e->kernel->workgroup[0]);
  stretch all = {ll_const(0), size};
  uint32_t mark = ll_enter(e);
  begin_vector(e, row, ll_const(0));
  for (uint32_t i = 0; i < row->count; i++) {
    if (!row->atoms[i].is_told) continue;
    narrow_by_atom(e, row, &row->atoms[i], &all, false);
  }
  end_vector(e, mark);
  ll_op from = ll_def(e, "icmp eq i64 %v, 0", LL_I64, all.from);
  ll_op to = ll_def(e, "icmp eq i64 %v, %v", LL_I64, all.to, LL_I64, size);
  return ll_def(e, "and i1 %v, %v", LL_I1, from, LL_I1, to);
}

/* What the row at x = @p first, of @p count invocations, does; i32 and i64. */
void ll_run_row(ll *e, ll_row *row, ll_op first, ll_op count) {
  stretch clip, middle, exact;
  uint32_t mark = ll_enter(e);
  begin_vector(e, row, first);
  settle_fuel(e, row);
  find_middle(e, row, count, &clip, &middle, &exact);
  end_vector(e, mark);
  bool is_known = clip.to.kind == LL_CONST && middle.to.kind == LL_CONST &&
                  middle.from.kind == LL_CONST;
  if (!is_known && run_short(e, row, first, count)) return;
  if (e->overlaps) {
    run_overlapping(e, row, first, clip, middle);
  } else {
    run_stretches(e, row, first, clip, middle, exact, NULL);
  }
}

void ll_run_rest(ll *e, ll_row *row, ll_op first, ll_op count,
                 ll_stretch done) {
  stretch clip, middle, exact;
  uint32_t mark = ll_enter(e);
  begin_vector(e, row, first);
  find_middle(e, row, count, &clip, &middle, &exact);
  end_vector(e, mark);
  run_stretches(e, row, first, clip, middle, exact, &done);
}

/* while (from < to) { a vector of each row }. */
static void run_whole(ll *e, const ll_row *row, ll_jam *jam, ll_op first,
                      stretch all) {
  ll_op at = ll_alloca(e, LL_I64, 1, 8);
  uint32_t head = ll_label(e), check = ll_label(e), end = ll_label(e);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, all.from, LL_PTR, at);
  ll_place(e, check);
  ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, at);
  ll_cond(e, ll_def(e, "icmp ult i64 %v, %v", LL_I64, now, LL_I64, all.to),
          head, end);
  ll_place(e, head);
  e->jam = jam;
  run_vector(e, row->piece, &first, now, (ll_op){0}, true);
  ll_end_jam(e);
  ll_op next = ll_def(e, "add nuw i64 %v, %u", LL_I64, now, e->width);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, next, LL_PTR, at);
  ll_br(e, check);
  ll_place(e, end);
}

bool ll_run_together(ll *e, ll_row *row, ll_jam *jam, ll_op first, ll_op count,
                     ll_stretch *done) {
  stretch all = {ll_const(0), count}, clip, middle, exact;
  ll_op y = e->local[1];
  bool is_whole = true;
  for (uint32_t i = 0; i < ll_jam_rows(jam); i++) {
    uint32_t mark = ll_enter(e);
    if (i) e->local[1] = ll_def(e, "add nuw i32 %v, %u", LL_I32, y, i);
    begin_vector(e, row, first);
    settle_fuel(e, row);
    find_middle(e, row, count, &clip, &middle, &exact);
    end_vector(e, mark);
    narrow(e, &all, middle.from, middle.to);
    is_whole &=
        are_known(clip.from, clip.to) && are_known(middle.from, middle.to) &&
        middle.from.bits <= clip.from.bits && middle.to.bits >= clip.to.bits;
  }
  e->local[1] = y;
  *done = all;
  if (are_known(all.from, all.to) && all.from.bits >= all.to.bits) return true;
  if (are_known(all.from, all.to) && all.to.bits - all.from.bits == e->width) {
    e->jam = jam;
    run_vector(e, row->piece, &first, all.from, (ll_op){0}, true);
    ll_end_jam(e);
  } else {
    run_whole(e, row, jam, first, all);
  }
  return !is_whole;
}

vyre_code ll_plan_row(ll *e, uint32_t piece, ll_row **out) {
  const vyre__piece *p = &e->r.pieces[piece];
  size_t count = (size_t)(e->r.end - e->r.begin) + 1;
  ll_row *row = vyre__arena_array(e->arena, 1, sizeof *row);
  uint8_t *ways = vyre__arena_array(e->arena, count, 1);
  if (!row || !ways) {
    return vyre__no_memory(e->st, "emit/llvm", "instructions", count);
  }
  memset(ways, WAY_UNKNOWN, count);
  *row = (ll_row){.piece = piece, .ways = ways};
  row->effects_from = p->begin;
  while (row->effects_from < p->end &&
         !is_op(e, row->effects_from, VYRE__LOW_IF) &&
         !is_op(e, row->effects_from, VYRE__LOW_LOOP)) {
    row->effects_from++;
  }
  if (!p->tests_done) {
    plan_fuel(e, row);
    find_goals(e, row, p->begin, p->end);
  }
  *out = row;
  return VYRE_OK;
}
