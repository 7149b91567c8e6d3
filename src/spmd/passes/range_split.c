/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Passes `range-split` and `loop-range`: find conditions that hold in one range
 * of a row.
 *
 * Most kernels compare a value that is linear in x with one that is uniform in
 * the row: the guard `i < len(y)`, and bounds checks. Such a condition holds in
 * one range of the row, or in two if it wraps at 2^32, of which one is used.
 * The start of the row computes the range in which all conditions have their
 * expected value. The code of that range contains none of the conditions; the
 * two ends of the row run general code. If a guard encloses everything that
 * the row does, invocations outside the range are skipped.
 *
 * Indices of neighbours are often clamped at the ends of a row: max(i, 1) - 1,
 * min(i + 1, n - 1), select(i == 0, n - 1, i - 1). The result is the linear
 * operand except at the ends. That is a condition too, and the code of the
 * range uses the operand instead, so that its accesses are contiguous. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

enum {
  MAX_DEPTH = 64,
  MAX_CHECKED = 48, /* instructions of an IF on data whose checks are added */
};

/* Behaviour of a value along a row. */
typedef enum row_shape {
  ROW_UNKNOWN,
  ROW_OTHER,
  ROW_UNIFORM,
  ROW_LINEAR,
  ROW_CLAMPED, /* linear where all conditions of the row hold */
} row_shape;

/* --- what can be computed ahead -----------------------------------------------------*/

static bool is_top(const vyre__schedule *s, uint32_t at) {
  uint32_t open = info_at(s, at)->parent;
  return !open || info_at(s, open)->subregion == 0;
}

/* x == 0 ? 1 : x, or a constant. */
static bool is_never_zero(const vyre__schedule *s, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (inst->op == VYRE__LIR_CONST) return vyre__lir_const(inst) != 0;
  if (inst->op != VYRE__LIR_SELECT) return false;
  const vyre__lir_inst *test = inst_at(s, inst->a),
                       *other = inst_at(s, inst->b);
  if (test->op != VYRE__LIR_EQ || other->op != VYRE__LIR_CONST) return false;
  const vyre__lir_inst *zero = inst_at(s, test->b);
  return test->a == inst->c && zero->op == VYRE__LIR_CONST &&
         vyre__lir_const(zero) == 0 && vyre__lir_const(other) != 0;
}

static bool is_sure(const vyre__schedule *s, const vyre__row_split *row,
                    uint32_t at) {
  switch (inst_at(s, at)->op) {
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_REM_U:
      if (is_never_zero(s, inst_at(s, at)->b)) return true;
      return is_top(s, at) && at < row->effects_from;
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      return is_top(s, at) && at < row->effects_from;
    default:
      return true;
  }
}

static row_shape row_shape_of(const vyre__schedule *s, vyre__row_split *row,
                              vyre__val v, unsigned depth);

static row_shape find_row_shape(const vyre__schedule *s, vyre__row_split *row,
                                vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = inst_at(s, v);
  const vyre__inst_info *role = info_at(s, v);
  if (is_fused_x(s, v)) return ROW_LINEAR;
  if (inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0 &&
      s->kernel->workgroup[0] > 1) {
    return ROW_LINEAR;
  }
  if (inst->op == VYRE__LIR_GROUP_ID && inst->aux == 0 && s->is_fused) {
    return ROW_OTHER;
  }
  if (role->is_leaf || role->storage == VYRE__STORAGE_UNIFORM)
    return ROW_UNIFORM;
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE) || depth > MAX_DEPTH) {
    return ROW_OTHER;
  }
  if (!is_sure(s, row, v)) return ROW_OTHER;
  if (vyre__row_operand(s, row, v)) return ROW_CLAMPED;
  bool all_same = true;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    row_shape operand = row_shape_of(s, row, inst->v[i], depth + 1);
    if (operand == ROW_OTHER) return ROW_OTHER;
    all_same &= operand == ROW_UNIFORM;
  }
  if (all_same) return ROW_UNIFORM;
  bool adds = inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB;
  bool selects = inst->op == VYRE__LIR_SELECT;
  if ((!adds && !selects) || inst->type != VYRE_TYPE_U32) return ROW_OTHER;
  row_shape a = row_shape_of(s, row, inst->a, depth + 1);
  row_shape b = row_shape_of(s, row, inst->b, depth + 1);
  if (selects) { /* one of two linear values, the same one in the whole row */
    row_shape c = row_shape_of(s, row, inst->c, depth + 1);
    if (a != ROW_UNIFORM || b < ROW_LINEAR || c < ROW_LINEAR) return ROW_OTHER;
    return b > c ? b : c;
  }
  if (a >= ROW_LINEAR && b >= ROW_LINEAR) return ROW_OTHER;
  if (b >= ROW_LINEAR && inst->op == VYRE__LIR_SUB) return ROW_OTHER;
  return a > b ? a : b;
}

static row_shape row_shape_of(const vyre__schedule *s, vyre__row_split *row,
                              vyre__val v, unsigned depth) {
  uint8_t *known = &row->shapes[v - s->r.begin];
  if (*known == ROW_UNKNOWN) *known = (uint8_t)find_row_shape(s, row, v, depth);
  return (row_shape)*known;
}

bool vyre__row_is_uniform(const vyre__schedule *s, vyre__row_split *row,
                          vyre__val v) {
  return row_shape_of(s, row, v, 0) == ROW_UNIFORM;
}

bool vyre__row_is_linear(const vyre__schedule *s, vyre__row_split *row,
                         vyre__val v) {
  return row_shape_of(s, row, v, 0) == ROW_LINEAR;
}

bool vyre__row_is_clamped(const vyre__schedule *s, vyre__row_split *row,
                          vyre__val v) {
  return row_shape_of(s, row, v, 0) == ROW_CLAMPED;
}

vyre__val vyre__row_operand(const vyre__schedule *s, const vyre__row_split *row,
                            vyre__val v) {
  uint8_t known = row->known[v - s->r.begin];
  return known >= VYRE__KNOWN_A ? inst_at(s, v)->v[known - VYRE__KNOWN_A] : 0;
}

/* --- conditions ---------------------------------------------------------------------------*/

static bool compares(uint8_t op) {
  return op >= VYRE__LIR_EQ && op <= VYRE__LIR_LE_S;
}

static bool add_part(vyre__row_split *row, vyre__val v, bool want, bool is_same,
                     bool clips) {
  if (row->count == VYRE__MAX_CONDITIONS) return false;
  row->conditions[row->count++] = (vyre__row_condition){
      .v = v, .want = want, .is_same = is_same, .clips = clips};
  return true;
}

static bool is_linear_and_uniform(row_shape a, row_shape b) {
  return (a == ROW_UNIFORM && b >= ROW_LINEAR) ||
         (b == ROW_UNIFORM && a >= ROW_LINEAR);
}

static bool decompose(vyre__schedule *s, vyre__row_split *row, vyre__val v,
                      bool want, bool clips) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (row_shape_of(s, row, v, 0) == ROW_UNIFORM) {
    return add_part(row, v, want, true, clips);
  }
  if (inst->op == VYRE__LIR_NOT) {
    return decompose(s, row, inst->a, !want, clips);
  }
  vyre__val left, right;
  bool is_or;
  if (vyre__sched_logic(s, v, &left, &right, &is_or)) {
    return is_or != want && decompose(s, row, left, want, clips) &&
           decompose(s, row, right, want, clips);
  }
  if (!compares(inst->op)) return false;
  if (inst_at(s, inst->a)->type != VYRE_TYPE_U32) return false;
  row_shape a = row_shape_of(s, row, inst->a, 0),
            b = row_shape_of(s, row, inst->b, 0);
  if (!is_linear_and_uniform(a, b)) return false;
  /* A clamped value is not linear at the ends, which must not be skipped. */
  bool is_clamped = a == ROW_CLAMPED || b == ROW_CLAMPED;
  return add_part(row, v, want, false, clips && !is_clamped);
}

/* Derives consequences of a condition for the code of the range. */
static void set_known(vyre__schedule *s, vyre__row_split *row, vyre__val v,
                      bool want) {
  const vyre__lir_inst *inst = inst_at(s, v);
  row->known[v - s->r.begin] = want ? VYRE__KNOWN_TRUE : VYRE__KNOWN_FALSE;
  note_at(s, v)->known_in = row->subregion;
  if (inst->op == VYRE__LIR_NOT) set_known(s, row, inst->a, !want);
  vyre__val left, right;
  bool is_or;
  if (vyre__sched_logic(s, v, &left, &right, &is_or) && is_or != want) {
    set_known(s, row, left, want);
    set_known(s, row, right, want);
  }
}

static bool add_condition(vyre__schedule *s, vyre__row_split *row, vyre__val v,
                          bool want, bool clips) {
  uint8_t known = row->known[v - s->r.begin];
  if (inst_at(s, v)->op == VYRE__LIR_CONST) return false;
  if (known) return known == (want ? VYRE__KNOWN_TRUE : VYRE__KNOWN_FALSE);
  uint32_t count = row->count;
  if (!decompose(s, row, v, want, clips)) {
    row->count = count;
    return false;
  }
  set_known(s, row, v, want);
  return true;
}

/* Adds that comparison @p v equals @p want in all iterations of the loops
 * around @p at. */
static bool add_comparison(vyre__schedule *s, vyre__row_split *row, vyre__val v,
                           bool want, uint32_t at, bool is_check) {
  if (!vyre__comparison_has_range(s, row, v, want, at, is_check)) return false;
  if (!add_part(row, v, want, false, false)) return false;
  row->conditions[row->count - 1].in_loops = true;
  return true;
}

static bool decompose_in_loops(vyre__schedule *s, vyre__row_split *row,
                               vyre__val v, bool want, uint32_t at) {
  vyre__val left, right;
  bool is_or;
  if (row->known[v - s->r.begin]) {
    return row->known[v - s->r.begin] ==
           (want ? VYRE__KNOWN_TRUE : VYRE__KNOWN_FALSE);
  }
  if (is_op(s, v, VYRE__LIR_NOT)) {
    return decompose_in_loops(s, row, inst_at(s, v)->a, !want, at);
  }
  if (vyre__sched_logic(s, v, &left, &right, &is_or)) {
    return is_or != want && decompose_in_loops(s, row, left, want, at) &&
           decompose_in_loops(s, row, right, want, at);
  }
  return add_comparison(s, row, v, want, at, false);
}

/* Adds that the condition of IF @p at, in a loop, equals @p want in all
 * iterations: `x + k >= 0 && x + k < n`. */
static bool add_in_loops(vyre__schedule *s, vyre__row_split *row, uint32_t at,
                         bool want) {
  vyre__val v = inst_at(s, at)->a;
  uint32_t count = row->count;
  if (!row->has_loop_ranges) return false;
  if (!decompose_in_loops(s, row, v, want, at)) {
    row->count = count;
    return false;
  }
  set_known(s, row, v, want);
  return true;
}

/* Adds the bounds check of the access at @p at: once, or for all iterations
 * of loops. */
static void add_check(vyre__schedule *s, vyre__row_split *row, vyre__val check,
                      uint32_t at) {
  if (add_condition(s, row, check, true, false)) return;
  if (inst_at(s, check)->op == VYRE__LIR_CONST) return;
  if (!row->has_loop_ranges || row->known[check - s->r.begin]) return;
  if (add_comparison(s, row, check, true, at, true))
    set_known(s, row, check, true);
}

static bool only_exits(const vyre__schedule *s, uint32_t at) {
  return is_op(s, at + 1, VYRE__LIR_EXIT) && is_op(s, at + 2, VYRE__LIR_END);
}

static vyre__val check_of(const vyre__lir_inst *inst) {
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  if (!(vyre__lir_ops[inst->op].flags & memory)) return 0;
  if (inst->op == VYRE__LIR_OUT_OF_FUEL) return 0;
  return inst->v[vyre__lir_ops[inst->op].operands - 1];
}

/* Returns true if [begin, end) has a visible side effect. */
static bool has_effect(const vyre__schedule *s, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end; at++) {
    const vyre__inst_info *role = info_at(s, at);
    uint8_t op = inst_at(s, at)->op;
    uint16_t effects = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
    if (!role->is_needed || role->storage == VYRE__STORAGE_UNIFORM) continue;
    if (vyre__lir_ops[op].flags & effects || role->sets_done) return true;
    if (op == VYRE__LIR_SET && s->vars[inst_at(s, at)->aux].is_array)
      return true;
    if (role->storage == VYRE__STORAGE_BROADCAST ||
        role->storage >= VYRE__STORAGE_ARRAY) {
      return true;
    }
  }
  return false;
}

/* Estimates the cost of [begin, end); accesses dominate. */
static uint32_t weight(const vyre__schedule *s, uint32_t begin, uint32_t end) {
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  uint32_t all = end - begin;
  for (uint32_t at = begin; at < end; at++) {
    if (vyre__lir_ops[inst_at(s, at)->op].flags & memory) all += 3;
  }
  return all;
}

/* Returns true if IF @p at, which has no else, is expected to skip exits and
 * to take blocks with most of the work. */
static bool is_expected(const vyre__schedule *s, uint32_t at, uint32_t begin,
                        uint32_t end) {
  const vyre__lir_inst *inst = inst_at(s, at);
  uint32_t close = vyre__end_of(&s->r, at);
  if (inst->hints & VYRE__HINT_RARE) return false;
  return only_exits(s, at) || 4 * weight(s, at, close) >= weight(s, begin, end);
}

/* --- clamps ----------------------------------------------------------------------------*/

/* Constant bounds beyond this leave too little of a row, or all of it. */
enum { MAX_MARGIN = 64 };

/* Returns true if a clamp to @p bound is expected to change few elements. */
static bool is_margin(const vyre__schedule *s, vyre__val bound, bool is_max) {
  const vyre__lir_inst *inst = inst_at(s, bound);
  if (inst->op != VYRE__LIR_CONST) return true;
  return (vyre__lir_const(inst) <= MAX_MARGIN) == is_max;
}

/* Expected value of a condition in most of a row. */
typedef enum guess { GUESS_NONE, GUESS_FALSE, GUESS_TRUE } guess;

static guess not_guess(guess a) {
  if (a == GUESS_NONE) return a;
  return a == GUESS_TRUE ? GUESS_FALSE : GUESS_TRUE;
}

/* Guesses a comparison of a linear with a uniform value: neighbours are rarely
 * equal, and limits are near the ends of a row. */
static guess guess_comparison(vyre__schedule *s, vyre__row_split *row,
                              vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  row_shape a = row_shape_of(s, row, inst->a, 0);
  row_shape b = row_shape_of(s, row, inst->b, 0);
  if (!is_linear_and_uniform(a, b)) return GUESS_NONE;
  if (inst->op == VYRE__LIR_EQ) return GUESS_FALSE;
  if (inst->op == VYRE__LIR_NE) return GUESS_TRUE;
  bool is_above = a == ROW_UNIFORM; /* bound < x */
  vyre__val bound = is_above ? inst->a : inst->b;
  if (!is_op(s, bound, VYRE__LIR_CONST)) {
    return is_above ? GUESS_FALSE : GUESS_TRUE;
  }
  bool is_low = is_margin(s, bound, true);
  return is_above == is_low ? GUESS_TRUE : GUESS_FALSE;
}

/* Guesses condition @p v. Parts that are uniform in the row do not count. */
static guess guess_condition(vyre__schedule *s, vyre__row_split *row,
                             vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = inst_at(s, v);
  vyre__val left, right;
  bool is_or;
  if (depth > MAX_DEPTH / 4 || row_shape_of(s, row, v, 0) == ROW_UNIFORM) {
    return GUESS_NONE;
  }
  if (inst->op == VYRE__LIR_NOT) {
    return not_guess(guess_condition(s, row, inst->a, depth + 1));
  }
  if (vyre__sched_logic(s, v, &left, &right, &is_or)) {
    guess a = guess_condition(s, row, left, depth + 1);
    guess b = guess_condition(s, row, right, depth + 1);
    guess most = is_or ? GUESS_FALSE : GUESS_TRUE;
    bool is_most =
        (a == most || row_shape_of(s, row, left, 0) == ROW_UNIFORM) &&
        (b == most || row_shape_of(s, row, right, 0) == ROW_UNIFORM);
    return is_most ? most : GUESS_NONE;
  }
  if (!compares(inst->op)) return GUESS_NONE;
  return guess_comparison(s, row, v);
}

static void add_clamp(vyre__schedule *s, vyre__row_split *row, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  bool is_max = inst->op == VYRE__LIR_MAX_U || inst->op == VYRE__LIR_MAX_S;
  row_shape a = row_shape_of(s, row, inst->a, 0);
  row_shape b = row_shape_of(s, row, inst->b, 0);
  if (!is_linear_and_uniform(a, b)) return;
  vyre__val bound = a == ROW_UNIFORM ? inst->a : inst->b;
  if (!is_margin(s, bound, is_max)) return;
  if (!add_part(row, v, true, false, false)) return;
  row->conditions[row->count - 1].is_clamp = true;
  row->known[v - s->r.begin] = a == ROW_UNIFORM ? VYRE__KNOWN_B : VYRE__KNOWN_A;
  note_at(s, v)->known_in = row->subregion;
}

static void add_select(vyre__schedule *s, vyre__row_split *row, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  bool first = row_shape_of(s, row, inst->b, 0) >= ROW_LINEAR;
  bool second = row_shape_of(s, row, inst->c, 0) >= ROW_LINEAR;
  if (!first && !second) return;
  if (row_shape_of(s, row, inst->a, 0) == ROW_UNIFORM) return;
  if (first && second) {
    guess expected = guess_condition(s, row, inst->a, 0);
    if (expected == GUESS_NONE) return;
    first = expected == GUESS_TRUE;
  }
  if (!add_condition(s, row, inst->a, first, false)) return;
  row->known[v - s->r.begin] = first ? VYRE__KNOWN_B : VYRE__KNOWN_C;
  note_at(s, v)->known_in = row->subregion;
}

/* Adds the condition that an index is not clamped. */
static void add_value(vyre__schedule *s, vyre__row_split *row, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (inst->type != VYRE_TYPE_U32 || s->width == 1) return;
  if (row->shapes[v - s->r.begin] != ROW_UNKNOWN) return; /* used before */
  if (inst->op >= VYRE__LIR_MIN_U && inst->op <= VYRE__LIR_MAX_S) {
    add_clamp(s, row, v);
  } else if (inst->op == VYRE__LIR_SELECT) {
    add_select(s, row, v);
  }
}

static void find_conditions(vyre__schedule *s, vyre__row_split *row,
                            uint32_t begin, uint32_t end);

/* Returns true if IF @p at is expected to be false in most of a long row, as
 * `x == 0` is. A limit that is not constant says too little. */
static bool is_rare(vyre__schedule *s, vyre__row_split *row, uint32_t at) {
  vyre__val v = inst_at(s, at)->a, left, right;
  bool is_or;
  if (!s->is_fused || only_exits(s, at)) return false;
  if (guess_condition(s, row, v, 0) != GUESS_FALSE) return false;
  while (is_op(s, v, VYRE__LIR_NOT)) v = inst_at(s, v)->a;
  const vyre__lir_inst *inst = inst_at(s, v);
  return vyre__sched_logic(s, v, &left, &right, &is_or) ||
         inst->op == VYRE__LIR_EQ || inst->op == VYRE__LIR_NE ||
         is_op(s, inst->a, VYRE__LIR_CONST) ||
         is_op(s, inst->b, VYRE__LIR_CONST);
}

/* Adds the condition of an IF with an else if most of a long row is expected
 * to take one arm: inner points, apart from those at the border. */
static void find_in_arm(vyre__schedule *s, vyre__row_split *row, uint32_t at,
                        uint32_t begin, uint32_t end) {
  const vyre__lir_inst *inst = inst_at(s, at);
  uint32_t middle = info_at(s, at)->mate, close = vyre__end_of(&s->r, at);
  guess most = guess_condition(s, row, inst->a, 0);
  if (note_at(s, at)->is_small || most == GUESS_NONE) return;
  bool takes_first = most == GUESS_TRUE;
  if ((inst->hints & VYRE__HINT_RARE && takes_first) ||
      4 * weight(s, at, close) < weight(s, begin, end)) {
    return;
  }
  if (!add_condition(s, row, inst->a, takes_first, false)) return;
  if (takes_first) {
    find_conditions(s, row, at + 1, middle);
  } else {
    find_conditions(s, row, middle + 1, close);
  }
}

/* Returns true if IF @p at, without an else, has much of the work of the
 * innermost loop around it, and does not leave that loop. */
static bool is_main_work(const vyre__schedule *s, uint32_t at) {
  uint32_t open = info_at(s, at)->parent;
  uint32_t close = vyre__end_of(&s->r, at);
  while (open && !is_op(s, open, VYRE__LIR_LOOP)) {
    open = info_at(s, open)->parent;
  }
  if (!open || inst_at(s, at)->hints & VYRE__HINT_RARE) return false;
  if (flags_at(s, close - 1) & VYRE__LIRF_JUMPS) return false;
  return 4 * weight(s, at, close) >= weight(s, open, vyre__end_of(&s->r, open));
}

/* Adds the checks in IF @p at, which depends on data: see speculate.c. */
static void find_checks(vyre__schedule *s, vyre__row_split *row, uint32_t at) {
  uint32_t close = vyre__end_of(&s->r, at);
  vyre__val condition = inst_at(s, at)->a;
  if (!s->is_fused || close - at > MAX_CHECKED || s->width == 1) return;
  if (row_shape_of(s, row, condition, 0) != ROW_OTHER) return;
  if (guess_condition(s, row, condition, 0) != GUESS_NONE) return;
  for (uint32_t i = at + 1; i < close; i++) {
    vyre__val check = check_of(inst_at(s, i));
    if (check && info_at(s, i)->is_needed) add_check(s, row, check, i);
  }
}

/* Finds guards and checks, also inside IFs that are expected to be taken. */
static void find_conditions(vyre__schedule *s, vyre__row_split *row,
                            uint32_t begin, uint32_t end) {
  bool acts = false;
  for (uint32_t at = begin; at < end; at++) {
    const vyre__lir_inst *inst = inst_at(s, at);
    if (!info_at(s, at)->is_needed) continue;
    if (inst->op != VYRE__LIR_IF) {
      vyre__val check = check_of(inst);
      add_value(s, row, at);
      if (check) add_check(s, row, check, at);
      acts |= has_effect(s, at, at + 1);
      continue;
    }
    uint32_t close = vyre__end_of(&s->r, at);
    if (note_at(s, at)->is_hoisted) {
      at = close;
      continue;
    }
    uint32_t middle = info_at(s, at)->mate;
    bool never = only_exits(s, at);
    bool is_skipped = middle == close && is_rare(s, row, at);
    if (is_skipped) add_condition(s, row, inst->a, false, false);
    if (is_skipped || middle != close) {
      if (!is_skipped) find_in_arm(s, row, at, begin, end);
      acts |= has_effect(s, at, close);
      at = close;
      continue;
    }
    bool clean =
        is_top(s, at) && !acts &&
        (never ? !info_at(s, at + 1)->sets_done : !has_effect(s, close, end));
    bool hopes = is_expected(s, at, begin, end) &&
                 (clean || row_shape_of(s, row, inst->a, 0) != ROW_UNIFORM);
    if (hopes) hopes = add_condition(s, row, inst->a, !never, clean);
    if (!hopes && is_main_work(s, at)) hopes = add_in_loops(s, row, at, true);
    if (hopes && !never) find_conditions(s, row, at + 1, close);
    if (!hopes && !never) find_checks(s, row, at);
    acts |= !never && has_effect(s, at, close);
    at = close;
  }
}

/* --- the end of the dispatch ---------------------------------------------------------*/

static bool only_ends(const vyre__schedule *s, uint32_t at) {
  return is_op(s, at, VYRE__LIR_IF) &&
         is_op(s, at + 1, VYRE__LIR_OUT_OF_FUEL) &&
         info_at(s, at)->mate == vyre__end_of(&s->r, at);
}

/* The dispatch ends for all invocations or for none: ask once. */
static void plan_fuel(vyre__schedule *s, vyre__row_split *row) {
  const vyre__subregion *piece = &s->r.subregions[row->subregion];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    bool ends = only_ends(s, at);
    if (!ends && vyre__lir_ops[inst_at(s, at)->op].flags & VYRE__LIRF_CONTROL) {
      return;
    }
    if (!ends) continue;
    if (row_shape_of(s, row, inst_at(s, at)->a, 0) != ROW_UNIFORM) return;
    note_at(s, at)->is_hoisted = true;
    at = vyre__end_of(&s->r, at);
  }
}

/* --- what the workgroup knows ----------------------------------------------------------*/

/* Describes when a value can be computed: before any side effect of the
 * workgroup, or not. */
typedef enum early_kind {
  EARLY_NEVER,
  EARLY_CONSTANT, /* the same in all workgroups */
  EARLY_BY_GROUP, /* from ids of the workgroup or lengths of buffers */
} early_kind;

static early_kind early_kind_of(const vyre__schedule *s, vyre__val v,
                                unsigned depth) {
  const vyre__lir_inst *inst = inst_at(s, v);
  switch (inst->op) {
    case VYRE__LIR_CONST:
    case VYRE__LIR_LOCAL_ID: /* of a row: that of its first invocation */
      return EARLY_CONSTANT;
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_GRID_SIZE:
    case VYRE__LIR_LEN:
      return EARLY_BY_GROUP;
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_REM_U:
      if (!is_never_zero(s, inst->b)) return EARLY_NEVER;
      break;
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      return EARLY_NEVER;
    default:
      if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE))
        return EARLY_NEVER;
  }
  early_kind all = EARLY_CONSTANT;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    early_kind one = depth < MAX_DEPTH / 4
                         ? early_kind_of(s, inst->v[i], depth + 1)
                         : EARLY_NEVER;
    if (one == EARLY_NEVER) return one;
    if (one == EARLY_BY_GROUP) all = one;
  }
  return all;
}

/* Returns true if the condition compares for equality. */
static bool is_point(const vyre__schedule *s, const vyre__row_condition *a) {
  return is_op(s, a->v, VYRE__LIR_EQ) || is_op(s, a->v, VYRE__LIR_NE);
}

bool vyre__row_by_group(const vyre__schedule *s, vyre__row_split *row) {
  bool any = false;
  for (uint32_t i = 0; i < row->count; i++) {
    vyre__row_condition *a = &row->conditions[i];
    a->by_group = (a->is_same || !is_point(s, a)) &&
                  early_kind_of(s, a->v, 0) == EARLY_BY_GROUP;
    any |= a->by_group;
  }
  return any;
}

/* --- ranges ---------------------------------------------------------------*/

static bool is_local_x(const vyre__schedule *s, vyre__val v) {
  return is_op(s, v, VYRE__LIR_LOCAL_ID) && inst_at(s, v)->aux == 0;
}

/* Returns true if there is one condition, which fails wherever it is not
 * known to hold, because its operands do not wrap. */
static bool has_outside(const vyre__schedule *s, const vyre__row_split *row) {
  if (row->count != 1 || row->conditions[0].is_clamp) return false;
  const vyre__lir_inst *inst = inst_at(s, row->conditions[0].v);
  /* Both sides of an excluded point satisfy the condition. */
  bool excludes_point = is_point(s, &row->conditions[0]) &&
                        row->conditions[0].want != (inst->op == VYRE__LIR_EQ);
  if (excludes_point && !row->conditions[0].is_same) return false;
  return row->conditions[0].is_same || is_local_x(s, inst->a) ||
         is_local_x(s, inst->b);
}

/* Copies what the full range knows; @p opposite: what a vector knows in which
 * the only condition fails in all lanes. A value that several subregions use
 * is known in the last of them only. */
static uint8_t *copy_known(const vyre__schedule *s, const vyre__row_split *row,
                           bool opposite) {
  size_t count = (size_t)(s->r.end - s->r.begin) + 1;
  uint8_t *known = vyre__arena_array(s->arena, count, 1);
  if (!known) return NULL;
  memset(known, VYRE__UNKNOWN, count);
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    uint8_t is = row->known[at - s->r.begin];
    if (!is || note_at(s, at)->known_in != row->subregion) continue;
    if (opposite && is >= VYRE__KNOWN_A) continue;
    uint8_t other =
        is == VYRE__KNOWN_TRUE ? VYRE__KNOWN_FALSE : VYRE__KNOWN_TRUE;
    known[at - s->r.begin] = opposite ? other : is;
  }
  return known;
}

static vyre_code set_ranges(vyre__schedule *s, vyre__sched_node *rows) {
  const vyre__row_split *row = s->splits[rows->subregion];
  bool has_outer = has_outside(s, row);
  uint8_t *known = copy_known(s, row, false), *outer = NULL;
  if (has_outer) outer = copy_known(s, row, true);
  if (!known || (has_outer && !outer)) {
    return vyre__schedule_no_memory(s, s->r.end - s->r.begin);
  }
  vyre__sched_node **to = &rows->body;
  rows->split = s->splits[rows->subregion];
  VYRE_TRY(vyre__build_range(s, rows->subregion, VYRE__RANGE_FULL, known, to));
  to = &(*to)->next;
  if (row->count || vyre__rows_have_edge(s)) {
    VYRE_TRY(vyre__build_range(s, rows->subregion, VYRE__RANGE_EDGE, NULL, to));
    to = &(*to)->next;
  }
  if (!has_outer) return VYRE_OK;
  return vyre__build_range(s, rows->subregion, VYRE__RANGE_OUTSIDE, outer, to);
}

static vyre_code set_all_ranges(vyre__schedule *s, vyre__sched_node *first) {
  for (vyre__sched_node *node = first; node; node = node->next) {
    if (node->kind == VYRE__SCHED_ROWS) {
      VYRE_TRY(set_ranges(s, node));
    } else if (node->kind != VYRE__SCHED_VECTORS) {
      VYRE_TRY(set_all_ranges(s, node->body));
      VYRE_TRY(set_all_ranges(s, node->other));
    }
  }
  return VYRE_OK;
}

/* --- the passes -----------------------------------------------------------*/

static vyre_code split_row(vyre__schedule *s, uint32_t subregion,
                           bool has_loop_ranges, vyre__row_split **out) {
  const vyre__subregion *of = &s->r.subregions[subregion];
  size_t count = (size_t)(s->r.end - s->r.begin) + 1;
  vyre__row_split *row = vyre__arena_array(s->arena, 1, sizeof *row);
  uint8_t *tables = vyre__arena_array(s->arena, 2 * count, 1);
  if (!row || !tables) return vyre__schedule_no_memory(s, count);
  memset(tables, 0, 2 * count);
  *row = (vyre__row_split){.subregion = subregion,
                           .shapes = tables,
                           .known = tables + count,
                           .has_loop_ranges = has_loop_ranges};
  row->effects_from = of->begin;
  while (row->effects_from < of->end &&
         !is_op(s, row->effects_from, VYRE__LIR_IF) &&
         !is_op(s, row->effects_from, VYRE__LIR_LOOP)) {
    row->effects_from++;
  }
  if (!of->tests_done &&
      !vyre__pass_is_off(s->off, VYRE__OPTIONAL_RANGE_SPLIT)) {
    plan_fuel(s, row);
    find_conditions(s, row, of->begin, of->end);
  }
  *out = row;
  return VYRE_OK;
}

static vyre_code split_rows(vyre__schedule *s, bool has_loop_ranges) {
  for (uint32_t i = 1; i < s->r.subregion_count; i++) {
    VYRE_TRY(split_row(s, i, has_loop_ranges, &s->splits[i]));
  }
  return set_all_ranges(s, s->root);
}

vyre_code vyre__schedule_range_split(vyre__schedule *s) {
  uint32_t count = s->r.subregion_count;
  s->splits = vyre__arena_array(s->arena, count, sizeof *s->splits);
  if (!s->splits) return vyre__schedule_no_memory(s, count);
  memset(s->splits, 0, count * sizeof *s->splits);
  return s->has_rows ? split_rows(s, false) : VYRE_OK;
}

/* Returns true if instruction @p at is a loop, or accesses every n-th element in a
 * row that spans workgroups. */
static bool has_range(const vyre__schedule *s, uint32_t at) {
  if (!info_at(s, at)->subregion) return false;
  if (is_op(s, at, VYRE__LIR_LOOP)) return true;
  if (!s->is_fused || !check_of(inst_at(s, at))) return false;
  vyre__lane_shape shape = shape_at(s, inst_at(s, at)->a);
  return shape.kind == VYRE__LANE_SHAPE_LINEAR && shape.stride != 1;
}

/* Finds all conditions again, because a bounds check that holds in all
 * iterations may imply others. */
vyre_code vyre__schedule_loop_range(vyre__schedule *s) {
  bool has_ranges = false;
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    has_ranges |= has_range(s, at);
  }
  return s->has_rows && has_ranges ? split_rows(s, true) : VYRE_OK;
}
