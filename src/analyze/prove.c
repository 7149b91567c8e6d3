/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Proves that one term is less than another, by a backward search with
 * limited depth and steps, so that failing is cheap.
 *
 * A wrong proof causes an out-of-bounds access. All rules are about
 * mathematical integers, not about values modulo 2^32: a rule that decomposes
 * an operation shows that the operation did not wrap. */
#include "analyze/terms.h"

typedef vyre__term term;
typedef vyre__term_info info;
typedef vyre__wide wide;

enum { DEPTH = 7, STEPS = 300, QUOTIENTS = 4 };

static bool at_most(vyre__terms *t, term a, wide by, term b, int depth);

static vyre__interval range_of(const vyre__terms *t, term id) {
  return t->items[id].range;
}

static bool is_natural(const vyre__terms *t, term id) {
  return t->items[id].range.lo >= 0;
}

/* Returns true if all values up to b fit the type of @p id. Then a sum or
 * product of at most b did not wrap. */
static bool has_room(const vyre__terms *t, term id, term b) {
  vyre__interval full = vyre__interval_full((vyre_type)t->items[id].type);
  return range_of(t, b).hi <= full.hi;
}

/* --- rows of a matrix ------------------------------------------------------*/

/* Proves (y + by) * w <= b for w >= 0 by finding an h with y + by <= h and
 * h * w <= b. Candidates for h are a quotient c / w with c <= b, and the other
 * factor of a product h * w that is known to be at most b and not to wrap. */
static bool row_fits(vyre__terms *t, term y, wide by, term w, term b,
                     int depth) {
  int tries = QUOTIENTS;
  for (term h = t->items[w].divided; h && tries > 0; tries--) {
    term dividend = t->items[h].a;
    if (is_natural(t, dividend) && at_most(t, y, by, h, depth) &&
        at_most(t, dividend, 0, b, depth)) {
      return true;
    }
    h = t->items[h].next_divided;
  }
  tries = QUOTIENTS;
  for (uint32_t f = t->items[b].below; f && tries > 0; tries--) {
    const vyre__term_fact fact = t->facts[f];
    const info product = t->items[fact.p];
    f = fact.next_below;
    if (product.op != VYRE__OP_MUL || fact.by < 0) continue;
    if (product.a != w && product.b != w) continue;
    term h = product.a == w ? product.b : product.a;
    vyre__interval full = vyre__interval_full((vyre_type)product.type);
    wide high = range_of(t, h).hi, wide_hi = range_of(t, w).hi;
    if (!is_natural(t, h) || high > UINT32_MAX || wide_hi > UINT32_MAX ||
        high * wide_hi > full.hi) {
      continue;
    }
    if (at_most(t, y, by, h, depth)) return true;
  }
  return false;
}

/* Proves y * w + x + by <= b, where @p row is y * w and x may be 0: x + by <=
 * w and (y + 1) * w <= b. Then w >= 1, and nothing wraps because the sum is
 * at most b. */
static bool rows(vyre__terms *t, term row, term x, wide by, term b, int depth) {
  const info product = t->items[row];
  if (product.op != VYRE__OP_MUL || !has_room(t, row, b)) return false;
  if (by < 1) by = 1;
  if (x && !is_natural(t, x)) return false;
  for (int order = 0; order < 2; order++) {
    term y = order ? product.b : product.a, w = order ? product.a : product.b;
    if (!is_natural(t, y) || !is_natural(t, w)) continue;
    bool column = x ? at_most(t, x, by, w, depth) : range_of(t, w).lo >= by;
    if (column && row_fits(t, y, 1, w, b, depth)) return true;
  }
  return false;
}

/* Returns the summands of a sum, modulo its type; 0 if there are too many. */
static int summands(const vyre__terms *t, term sum, term out[3]) {
  uint8_t type = t->items[sum].type;
  int count = 1;
  out[0] = sum;
  for (int i = 0; i < count;) {
    const info *item = &t->items[out[i]];
    if (item->op != VYRE__OP_ADD || item->type != type) {
      i++;
      continue;
    }
    if (count == 3) return 0;
    out[i] = item->a;
    out[count++] = item->b;
  }
  return count;
}

/* Tries each summand as a row and the others as a column. The order of the
 * additions does not matter modulo the type. */
static bool rows_of_sum(vyre__terms *t, term sum, wide by, term b, int depth) {
  term parts[3] = {0, 0, 0};
  int count = summands(t, sum, parts);
  for (int i = 0; i < count; i++) {
    if (t->items[parts[i]].op != VYRE__OP_MUL) continue;
    term x = parts[i == 0 ? 1 : 0];
    if (count == 3) {
      uint32_t others[3] = {x, parts[i == 2 ? 1 : 2], 0};
      x = vyre__terms_find(t, VYRE__OP_ADD, (vyre_type)t->items[sum].type,
                           others);
    }
    if (x && rows(t, parts[i], x, by, b, depth)) return true;
  }
  return false;
}

/* --- the left side is an operation -----------------------------------------*/

/* Handles p + q. If the sum of two natural numbers is proven to be at most b
 * - by, it fits its type and did not wrap. */
static bool sum_at_most(vyre__terms *t, term a, wide by, term b, int depth) {
  const info sum = t->items[a];
  if (by < 0 || !has_room(t, a, b)) return false;
  if (!is_natural(t, sum.a) || !is_natural(t, sum.b)) return false;
  for (int order = 0; order < 2; order++) {
    term p = order ? sum.b : sum.a, q = order ? sum.a : sum.b;
    if (at_most(t, p, by + range_of(t, q).hi, b, depth)) return true;
    /* q <= b - p, which is known to be at least 0 */
    uint32_t operands[3] = {b, p, 0};
    term rest =
        vyre__terms_find(t, VYRE__OP_SUB, (vyre_type)sum.type, operands);
    if (rest && at_most(t, p, 0, b, depth) && at_most(t, q, by, rest, depth)) {
      return true;
    }
  }
  return rows_of_sum(t, a, by, b, depth);
}

/* Handles p - q. For natural numbers it is exact, unless it is negative in an
 * unsigned type. */
static bool difference_at_most(vyre__terms *t, term a, wide by, term b,
                               int depth) {
  const info difference = t->items[a];
  term p = difference.a, q = difference.b;
  if (!is_natural(t, p) || !is_natural(t, q)) return false;
  bool is_unsigned = vyre__interval_full((vyre_type)difference.type).lo == 0;
  if (is_unsigned && !at_most(t, q, 0, p, depth)) return false;
  return at_most(t, p, by - range_of(t, q).lo, b, depth);
}

/* Handles select(c, p, q): proves each arm under its condition. */
static bool choice_at_most(vyre__terms *t, const info *choice, wide by, term b,
                           int depth) {
  for (int arm = 0; arm < 2; arm++) {
    vyre__terms_mark mark = vyre__terms_here(t);
    unsigned budget = t->budget;
    vyre__terms_suppose(t, choice->a, arm == 0);
    t->budget = budget;
    bool fits = at_most(t, arm == 0 ? choice->b : choice->c, by, b, depth);
    vyre__terms_rewind(t, mark);
    if (!fits) return false;
  }
  return true;
}

static bool left_at_most(vyre__terms *t, term a, wide by, term b, int depth) {
  const info i = t->items[a];
  switch ((vyre__op)i.op) {
    case VYRE__OP_MIN:
      return at_most(t, i.a, by, b, depth) || at_most(t, i.b, by, b, depth);
    case VYRE__OP_MAX:
      return at_most(t, i.a, by, b, depth) && at_most(t, i.b, by, b, depth);
    case VYRE__OP_SELECT:
      return choice_at_most(t, &i, by, b, depth);
    case VYRE__OP_ADD:
      return sum_at_most(t, a, by, b, depth);
    case VYRE__OP_SUB:
      return difference_at_most(t, a, by, b, depth);
    case VYRE__OP_MUL:
      return rows(t, a, 0, by, b, depth);
    case VYRE__OP_AND: /* clears bits of a natural number */
      return (is_natural(t, i.a) && at_most(t, i.a, by, b, depth)) ||
             (is_natural(t, i.b) && at_most(t, i.b, by, b, depth));
    case VYRE__OP_SHR:
      return is_natural(t, i.a) && at_most(t, i.a, by, b, depth);
    case VYRE__OP_DIV: /* by 0 gives all ones */
      return is_natural(t, i.a) && range_of(t, i.b).lo >= 1 &&
             at_most(t, i.a, by, b, depth);
    case VYRE__OP_REM: /* by 0 gives 0, which is not less than 0 */
      if (!is_natural(t, i.a)) return false;
      if (at_most(t, i.a, by, b, depth)) return true;
      return range_of(t, i.b).lo >= 1 && at_most(t, i.b, by - 1, b, depth);
    default:
      return false;
  }
}

/* --- the right side is an operation ----------------------------------------*/

static bool at_most_right(vyre__terms *t, term a, wide by, term b, int depth) {
  const info i = t->items[b];
  vyre__interval p, q, full;
  switch ((vyre__op)i.op) {
    case VYRE__OP_MIN:
      return at_most(t, a, by, i.a, depth) && at_most(t, a, by, i.b, depth);
    case VYRE__OP_MAX:
      return at_most(t, a, by, i.a, depth) || at_most(t, a, by, i.b, depth);
    case VYRE__OP_SUB:
      /* a + by + q <= p: q is at most p, and p - q did not wrap */
      if (!is_natural(t, i.b) || range_of(t, a).lo + by < 0) return false;
      return at_most(t, a, by + range_of(t, i.b).hi, i.a, depth);
    case VYRE__OP_ADD:
      p = range_of(t, i.a);
      q = range_of(t, i.b);
      full = vyre__interval_full((vyre_type)i.type);
      if (p.lo + q.lo < full.lo || p.hi + q.hi > full.hi) return false;
      return at_most(t, a, by - q.lo, i.a, depth) ||
             at_most(t, a, by - p.lo, i.b, depth);
    default:
      return false;
  }
}

/* --- the search ------------------------------------------------------------*/

/* Uses a guard: a + f.by <= q, then the rest from q; or from p, with p + f.by
 * <= b. */
static bool by_guards(vyre__terms *t, term a, wide by, term b, int depth) {
  for (uint32_t f = t->items[a].above; f && t->budget;) {
    const vyre__term_fact fact = t->facts[f];
    if (at_most(t, fact.q, by - fact.by, b, depth)) return true;
    f = fact.next_above;
  }
  for (uint32_t f = t->items[b].below; f && t->budget;) {
    const vyre__term_fact fact = t->facts[f];
    if (at_most(t, a, by - fact.by, fact.p, depth)) return true;
    f = fact.next_below;
  }
  return false;
}

/* Proves a + by <= b. */
static bool at_most(vyre__terms *t, term a, wide by, term b, int depth) {
  if (t->budget == 0) return false;
  t->budget--;
  if (a == b) return by <= 0;
  vyre__interval left = range_of(t, a), right = range_of(t, b);
  if (left.hi + by <= right.lo) return true;
  if (depth == 0 || left.lo + by > right.hi) return false;
  return by_guards(t, a, by, b, depth - 1) ||
         left_at_most(t, a, by, b, depth - 1) ||
         at_most_right(t, a, by, b, depth - 1);
}

bool vyre__terms_less(vyre__terms *t, term a, term b) {
  if (a == 0 || b == 0 || t->no_memory) return false;
  t->budget = STEPS;
  return at_most(t, a, 1, b, DEPTH) && !t->no_memory;
}

bool vyre__terms_at_most(vyre__terms *t, term a, wide by, term b) {
  t->budget = STEPS;
  return at_most(t, a, by, b, DEPTH) && !t->no_memory;
}

bool vyre__terms_rows_fit(vyre__terms *t, term y, wide by, term w, term b) {
  t->budget = STEPS;
  return row_fits(t, y, by, w, b, DEPTH) && !t->no_memory;
}

bool vyre__terms_natural(vyre__terms *t, term a) {
  if (a == 0 || t->no_memory) return false;
  if (t->items[a].range.lo >= 0) return true;
  term zero = vyre__terms_literal(t, 0);
  return zero && vyre__terms_at_most(t, zero, 0, a);
}
