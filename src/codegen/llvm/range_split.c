/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows (rows.h): finds how values change along a row, and which conditions
 * are worth splitting the row for. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/llvm/rows.h"

enum { MAX_DEPTH = 64 };

/* Behaviour of a value along a row. */
typedef enum way { WAY_UNKNOWN, WAY_NONE, WAY_SAME, WAY_COUNTS } way;

/* --- what can be computed ahead -----------------------------------------------------*/

static bool is_top(const ll *e, uint32_t at) {
  uint32_t open = ll_role(e, at)->parent;
  return !open || ll_role(e, open)->subregion == 0;
}

/* x == 0 ? 1 : x, or a constant. */
static bool is_never_zero(const ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (inst->op == VYRE__LIR_CONST) return vyre__lir_const(inst) != 0;
  if (inst->op != VYRE__LIR_SELECT) return false;
  const vyre__lir_inst *test = ll_inst(e, inst->a),
                       *other = ll_inst(e, inst->b);
  if (test->op != VYRE__LIR_EQ || other->op != VYRE__LIR_CONST) return false;
  const vyre__lir_inst *zero = ll_inst(e, test->b);
  return test->a == inst->c && zero->op == VYRE__LIR_CONST &&
         vyre__lir_const(zero) == 0 && vyre__lir_const(other) != 0;
}

static bool is_sure(const ll *e, const ll_row *row, uint32_t at) {
  switch (ll_inst(e, at)->op) {
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_REM_U:
      if (is_never_zero(e, ll_inst(e, at)->b)) return true;
      return is_top(e, at) && at < row->effects_from;
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      return is_top(e, at) && at < row->effects_from;
    default:
      return true;
  }
}

static way way_of(ll *e, ll_row *row, vyre__val v, unsigned depth);

static way find_way(ll *e, ll_row *row, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const vyre__inst_info *role = ll_role(e, v);
  if (ll_is_x(e, v)) return WAY_COUNTS;
  if (inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0 &&
      e->kernel->workgroup[0] > 1) {
    return WAY_COUNTS;
  }
  if (inst->op == VYRE__LIR_GROUP_ID && inst->aux == 0 && e->is_fused) {
    return WAY_NONE;
  }
  if (role->is_leaf || role->storage == VYRE__STORAGE_UNIFORM) return WAY_SAME;
  if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE) || depth > MAX_DEPTH) {
    return WAY_NONE;
  }
  if (!is_sure(e, row, v)) return WAY_NONE;
  bool all_same = true;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    way operand = way_of(e, row, inst->v[i], depth + 1);
    if (operand == WAY_NONE) return WAY_NONE;
    all_same &= operand == WAY_SAME;
  }
  if (all_same) return WAY_SAME;
  bool adds = inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB;
  if (!adds || inst->type != VYRE_TYPE_U32) return WAY_NONE;
  way a = way_of(e, row, inst->a, depth + 1);
  way b = way_of(e, row, inst->b, depth + 1);
  if (a == WAY_COUNTS && b == WAY_COUNTS) return WAY_NONE;
  if (b == WAY_COUNTS && inst->op == VYRE__LIR_SUB) return WAY_NONE;
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
  return op == VYRE__LIR_EQ || (op >= VYRE__LIR_LT_U && op <= VYRE__LIR_LE_S);
}

static bool add_atom(ll_row *row, vyre__val v, bool want, bool is_same,
                     bool clips) {
  if (row->count == LL_MOST_ATOMS) return false;
  row->atoms[row->count++] =
      (ll_atom){.v = v, .want = want, .is_same = is_same, .clips = clips};
  return true;
}

static bool decompose(ll *e, ll_row *row, vyre__val v, bool want, bool clips) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  if (way_of(e, row, v, 0) == WAY_SAME) {
    return add_atom(row, v, want, true, clips);
  }
  if (inst->op == VYRE__LIR_NOT) {
    return decompose(e, row, inst->a, !want, clips);
  }
  vyre__val left, right;
  bool is_or;
  if (ll_logic(e, v, &left, &right, &is_or)) {
    return is_or != want && decompose(e, row, left, want, clips) &&
           decompose(e, row, right, want, clips);
  }
  if (!compares(inst->op) || (inst->op == VYRE__LIR_EQ && !want)) return false;
  if (ll_inst(e, inst->a)->type != VYRE_TYPE_U32) return false;
  way a = way_of(e, row, inst->a, 0), b = way_of(e, row, inst->b, 0);
  if (a + b != WAY_SAME + WAY_COUNTS || a == WAY_NONE || b == WAY_NONE) {
    return false;
  }
  return add_atom(row, v, want, false, clips);
}

/* Derives consequences of a condition for the code of the range. */
static void set_known(ll *e, vyre__val v, bool want, uint32_t piece) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  ll_note_of(e, v)->known = want ? LL_TRUE : LL_FALSE;
  ll_note_of(e, v)->known_in = piece;
  if (inst->op == VYRE__LIR_NOT) set_known(e, inst->a, !want, piece);
  vyre__val left, right;
  bool is_or;
  if (ll_logic(e, v, &left, &right, &is_or) && is_or != want) {
    set_known(e, left, want, piece);
    set_known(e, right, want, piece);
  }
}

static bool add_goal(ll *e, ll_row *row, vyre__val v, bool want, bool clips) {
  const ll_note *note = ll_note_of(e, v);
  if (ll_inst(e, v)->op == VYRE__LIR_CONST) return false;
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

/* Adds the bounds check of the access at @p at: once, or for all iterations
 * of loops. */
static void add_check(ll *e, ll_row *row, vyre__val check, uint32_t at) {
  const ll_note *note = ll_note_of(e, check);
  if (add_goal(e, row, check, true, false)) return;
  if (ll_inst(e, check)->op == VYRE__LIR_CONST) return;
  if (note->known && note->known_in == row->piece) return;
  if (!ll_reaches(e, row, check, at)) return;
  if (!add_atom(row, check, true, false, false)) return;
  row->atoms[row->count - 1].is_reach = true;
  set_known(e, check, true, row->piece);
}

static bool only_exits(const ll *e, uint32_t at) {
  return ll_is_op(e, at + 1, VYRE__LIR_EXIT) &&
         ll_is_op(e, at + 2, VYRE__LIR_END);
}

static vyre__val check_of(const vyre__lir_inst *inst) {
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  if (!(vyre__lir_ops[inst->op].flags & memory)) return 0;
  if (inst->op == VYRE__LIR_OUT_OF_FUEL) return 0;
  return inst->v[vyre__lir_ops[inst->op].operands - 1];
}

/* Returns true if [begin, end) has a visible side effect. */
static bool has_effect(const ll *e, uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end; at++) {
    const vyre__inst_info *role = ll_role(e, at);
    uint8_t op = ll_inst(e, at)->op;
    uint16_t effects = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
    if (!role->is_needed || role->storage == VYRE__STORAGE_UNIFORM) continue;
    if (vyre__lir_ops[op].flags & effects || role->sets_done) return true;
    if (op == VYRE__LIR_SET && e->vars[ll_inst(e, at)->aux].is_array)
      return true;
    if (role->storage == VYRE__STORAGE_BROADCAST ||
        role->storage >= VYRE__STORAGE_ARRAY) {
      return true;
    }
  }
  return false;
}

/* Estimates the cost of [begin, end); accesses dominate. */
static uint32_t weight(const ll *e, uint32_t begin, uint32_t end) {
  uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  uint32_t all = end - begin;
  for (uint32_t at = begin; at < end; at++) {
    if (vyre__lir_ops[ll_inst(e, at)->op].flags & memory) all += 3;
  }
  return all;
}

/* Returns the expected value of an IF: exits are not taken, blocks with most
 * of the work are. */
static bool has_hope(const ll *e, uint32_t at, uint32_t begin, uint32_t end) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  uint32_t close = vyre__end_of(&e->r, at);
  if (ll_role(e, at)->mate != close || inst->hints & VYRE__HINT_RARE) {
    return false;
  }
  return only_exits(e, at) || 4 * weight(e, at, close) >= weight(e, begin, end);
}

/* Finds guards and checks, also inside IFs that are expected to be taken. */
static void find_goals(ll *e, ll_row *row, uint32_t begin, uint32_t end) {
  bool acts = false;
  for (uint32_t at = begin; at < end; at++) {
    const vyre__lir_inst *inst = ll_inst(e, at);
    if (!ll_role(e, at)->is_needed) continue;
    if (inst->op != VYRE__LIR_IF) {
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
    bool hopes = has_hope(e, at, begin, end) &&
                 (clean || way_of(e, row, inst->a, 0) != WAY_SAME);
    if (hopes) hopes = add_goal(e, row, inst->a, !never, clean);
    if (hopes && !never) find_goals(e, row, at + 1, close);
    acts |= !never && has_effect(e, at, close);
    at = close;
  }
}

/* --- the end of the dispatch ---------------------------------------------------------*/

static bool only_ends(const ll *e, uint32_t at) {
  return ll_is_op(e, at, VYRE__LIR_IF) &&
         ll_is_op(e, at + 1, VYRE__LIR_OUT_OF_FUEL) &&
         ll_role(e, at)->mate == vyre__end_of(&e->r, at);
}

/* The dispatch ends for all invocations or for none: ask once. */
static void plan_fuel(ll *e, ll_row *row) {
  const vyre__subregion *piece = &e->r.subregions[row->piece];
  for (uint32_t at = piece->begin; at < piece->end; at++) {
    bool ends = only_ends(e, at);
    if (!ends && vyre__lir_ops[ll_inst(e, at)->op].flags & VYRE__LIRF_CONTROL) {
      return;
    }
    if (!ends) continue;
    if (way_of(e, row, ll_inst(e, at)->a, 0) != WAY_SAME) return;
    ll_note_of(e, at)->is_settled = true;
    at = vyre__end_of(&e->r, at);
  }
}

/* --- what the workgroup knows ----------------------------------------------------------*/

typedef enum told { TOLD_NOT, TOLD_NUMBER, TOLD } told;

/* Returns true if @p v can be computed before any side effect of the
 * workgroup. */
static told told_of(const ll *e, vyre__val v, unsigned depth) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  switch (inst->op) {
    case VYRE__LIR_CONST:
    case VYRE__LIR_LOCAL_ID: /* of a row: that of its first invocation */
      return TOLD_NUMBER;
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_GRID_SIZE:
    case VYRE__LIR_LEN:
      return TOLD;
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_REM_U:
      if (!is_never_zero(e, inst->b)) return TOLD_NOT;
      break;
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      return TOLD_NOT;
    default:
      if (!(vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE)) return TOLD_NOT;
  }
  told all = TOLD_NUMBER;
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
    told one =
        depth < MAX_DEPTH / 4 ? told_of(e, inst->v[i], depth + 1) : TOLD_NOT;
    if (one == TOLD_NOT) return one;
    if (one == TOLD) all = one;
  }
  return all;
}

bool ll_row_is_told(ll *e, ll_row *row) {
  bool any = false;
  for (uint32_t i = 0; i < row->count; i++) {
    ll_atom *a = &row->atoms[i];
    a->is_told = (a->is_same || !ll_is_op(e, a->v, VYRE__LIR_EQ)) &&
                 told_of(e, a->v, 0) == TOLD;
    any |= a->is_told;
  }
  return any;
}

vyre_code ll_plan_row(ll *e, uint32_t piece, ll_row **out) {
  const vyre__subregion *p = &e->r.subregions[piece];
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
         !ll_is_op(e, row->effects_from, VYRE__LIR_IF) &&
         !ll_is_op(e, row->effects_from, VYRE__LIR_LOOP)) {
    row->effects_from++;
  }
  if (!p->tests_done) {
    plan_fuel(e, row);
    find_goals(e, row, p->begin, p->end);
  }
  *out = row;
  return VYRE_OK;
}
