/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Proves indices that are sums: 33 * (y + x % 8) + x - x % 8, or
 * (y - 1) * w + x written as i - w.
 *
 * An index is rewritten as a sum of terms with constant factors. Sums,
 * differences, products with constants and conversions that keep the low bits
 * are exact modulo 2^n, so the sum equals the index modulo 2^n of its type.
 * If the sum, as a mathematical integer, is at least 0 and below the length,
 * it is the index, even if operations wrapped on the way.
 *
 * The bounds of the sum follow from the ranges of its terms. Terms that depend
 * on each other (x with x % c, x / c or x & m) are bounded together. */
#include "analyze/terms.h"

typedef vyre__term term;
typedef vyre__term_info info;
typedef vyre__wide wide;
typedef vyre__interval interval;

enum { PARTS = 8, VISITS = 64 };

/* One summand: a term times a factor. */
typedef struct part {
  term id;
  wide by;
  bool is_bounded; /* its bounds are already part of the result */
} part;

typedef struct form {
  part parts[PARTS];
  unsigned count;
  unsigned visits; /* remaining terms to look at */
  unsigned type;   /* type of the index */
  int bits;        /* the sum is known modulo 2^bits */
  wide constant;
  bool has_failed; /* too many summands, or factors that are too large */
} form;

/* --- the sum ---------------------------------------------------------------*/

static int bits_of(unsigned type) {
  if (type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64) return 64;
  return type == VYRE_TYPE_U32 || type == VYRE_TYPE_I32 ? 32 : 0;
}

/* Returns the number of the smallest absolute value that equals @p value
 * modulo 2^bits. */
static wide reduce(const form *f, wide value) {
  wide modulus = (wide)1 << f->bits;
  value %= modulus;
  if (value > modulus / 2) value -= modulus;
  if (value < -(modulus / 2)) value += modulus;
  return value;
}

static part *part_of(form *f, term id) {
  for (unsigned i = 0; i < f->count; i++) {
    if (f->parts[i].id == id) return &f->parts[i];
  }
  return NULL;
}

static void add_part(form *f, term id, wide by) {
  part *p = part_of(f, id);
  if (p) {
    p->by = reduce(f, p->by + by);
  } else if (f->count == PARTS) {
    f->has_failed = true;
  } else {
    f->parts[f->count++] = (part){.id = id, .by = by};
  }
}

static bool is_literal(const vyre__terms *t, term id) {
  return t->items[id].op == VYRE__OP_LITERAL;
}

/* Adds @p id times @p by. A term of fewer bits than the sum may have wrapped
 * on its own, so it is not taken apart. */
static void add(const vyre__terms *t, form *f, term id, wide by) {
  const info *i = &t->items[id];
  by = reduce(f, by);
  if (by == 0 || f->has_failed) return;
  if (f->visits == 0) {
    f->has_failed = true;
    return;
  }
  f->visits--;
  if (is_literal(t, id)) {
    f->constant = reduce(f, f->constant + by * reduce(f, i->range.lo));
    return;
  }
  switch (bits_of(i->type) >= f->bits ? (vyre__op)i->op : VYRE__OP_NONE) {
    case VYRE__OP_ADD:
      add(t, f, i->a, by);
      add(t, f, i->b, by);
      return;
    case VYRE__OP_SUB:
      add(t, f, i->a, by);
      add(t, f, i->b, -by);
      return;
    case VYRE__OP_NEG:
      add(t, f, i->a, -by);
      return;
    case VYRE__OP_MUL:
      if (is_literal(t, i->a)) {
        add(t, f, i->b, by * reduce(f, t->items[i->a].range.lo));
        return;
      }
      if (is_literal(t, i->b)) {
        add(t, f, i->a, by * reduce(f, t->items[i->b].range.lo));
        return;
      }
      break;
    case VYRE__OP_CAST: /* an extended integer keeps its value modulo 2^64 */
    case VYRE__OP_BITCAST:
      add(t, f, i->a, by);
      return;
    default:
      break;
  }
  add_part(f, id, by);
}

/* Products of factors, ranges and divisors must fit 128 bits. */
static bool has_large_factor(const form *f) {
  const wide max = (wide)1 << 32;
  for (unsigned i = 0; i < f->count; i++) {
    if (f->parts[i].by > max || f->parts[i].by < -max) return true;
  }
  return false;
}

/* --- its bounds ------------------------------------------------------------*/

static interval range_of(const vyre__terms *t, term id) {
  return t->items[id].range;
}

static interval times(interval r, wide by) {
  if (by < 0) return (interval){r.hi * by, r.lo * by};
  return (interval){r.lo * by, r.hi * by};
}

static interval plus(interval a, interval b) {
  return (interval){a.lo + b.lo, a.hi + b.hi};
}

static interval meet(interval a, interval b) {
  return (interval){a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

static wide min(wide a, wide b) {
  return a < b ? a : b;
}

/* Takes a part out of the sum that remains to be bounded. Returns its factor,
 * and adds its bounds to *alone. */
static wide take(const vyre__terms *t, part *p, interval *alone) {
  if (!p || p->is_bounded) return 0;
  p->is_bounded = true;
  *alone = plus(*alone, times(range_of(t, p->id), p->by));
  return p->by;
}

/* Returns c if @p id is x % c, x / c or x & (c - 1), for a constant c. */
static wide divisor_of(const vyre__terms *t, term id, term *x) {
  const info *i = &t->items[id];
  term constant = i->b;
  *x = i->a;
  if (i->op == VYRE__OP_AND && is_literal(t, *x)) {
    *x = i->b;
    constant = i->a;
  }
  if (!is_literal(t, constant) || range_of(t, *x).lo < 0) return 0;
  wide c = range_of(t, constant).lo;
  if (i->op == VYRE__OP_AND) {
    c++;
    if ((c & (c - 1)) != 0) return 0;
  } else if (i->op != VYRE__OP_REM && i->op != VYRE__OP_DIV) {
    return 0;
  }
  return c >= 1 && c <= UINT32_MAX ? c : 0;
}

/* Bounds x together with its quotient q and its remainder r by a constant:
 * x = c * q + r. */
static bool bound_quotient(const vyre__terms *t, form *f, const part *p,
                           interval *out) {
  term x, same;
  wide c = divisor_of(t, p->id, &x);
  part *whole = c ? part_of(f, x) : NULL;
  if (!whole || whole->is_bounded) return false;
  interval range = range_of(t, x), alone = {0, 0};
  wide a = take(t, whole, &alone), by_quotient = a * c, by_remainder = a;
  for (unsigned i = 0; i < f->count; i++) {
    part *other = &f->parts[i];
    if (other->is_bounded || divisor_of(t, other->id, &same) != c ||
        same != x) {
      continue;
    }
    wide by = take(t, other, &alone);
    if (t->items[other->id].op == VYRE__OP_DIV) {
      by_quotient += by;
    } else {
      by_remainder += by;
    }
  }
  interval together =
      plus(times((interval){range.lo / c, range.hi / c}, by_quotient),
           times((interval){0, min(c - 1, range.hi)}, by_remainder));
  *out = plus(*out, meet(alone, together));
  return true;
}

/* Returns s if @p mask is s - 1 for a power of two s, or s is 0. */
static term power_below(const vyre__terms *t, term mask) {
  const info *i = &t->items[mask];
  if (i->op != VYRE__OP_SUB || !is_literal(t, i->b)) return 0;
  if (range_of(t, i->b).lo != 1 || !t->items[i->a].is_power) return 0;
  return range_of(t, i->a).lo >= 0 && range_of(t, i->a).hi >= 1 ? i->a : 0;
}

/* Returns the multiple of the largest value of @p power that follows x. */
static wide next_multiple(wide x, interval power) {
  wide largest = 1;
  while (largest * 2 <= power.hi) largest *= 2;
  return (x / largest + 1) * largest;
}

/* Bounds a * x + b * v + e * s, where v is x & m. With u = x - v, which is not
 * negative either, it is a * u + (a + b) * v + e * s. If s is a power of two
 * and m is s - 1, u is a multiple of s, so u + s is at most the first multiple
 * of the largest s after x. */
static bool bound_bits(const vyre__terms *t, form *f, const part *p,
                       interval *out) {
  const info *i = &t->items[p->id];
  if (i->op != VYRE__OP_AND) return false;
  for (int order = 0; order < 2; order++) {
    term x = order ? i->b : i->a, power = power_below(t, order ? i->a : i->b);
    part *whole = part_of(f, x), *step = power ? part_of(f, power) : NULL;
    interval range = range_of(t, x), v = range_of(t, p->id), alone = {0, 0};
    if (!whole || whole->is_bounded || range.lo < 0) continue;
    wide high = range.hi;
    wide by_u = take(t, whole, &alone);
    wide by_v = by_u + take(t, part_of(f, p->id), &alone);
    interval together = times((interval){0, high}, by_u > by_v ? by_u : by_v);
    if (by_u < 0 || by_v < 0) {
      together.lo = times((interval){0, high}, min(by_u, by_v)).lo;
    }
    if (together.hi < 0) together.hi = 0;
    if (step && !step->is_bounded && by_u >= 0 && by_v >= 0 && step->by > 0) {
      interval s = range_of(t, power);
      wide by_s = take(t, step, &alone);
      wide common = min(by_u, by_s);
      together = (interval){by_s * s.lo, common * next_multiple(high, s)};
      by_u -= common;
      by_s -= common;
      common = min(by_u, by_v); /* u + v = x */
      together.hi += common * high + (by_u - common) * high +
                     (by_v - common) * min(high, v.hi) + by_s * s.hi;
    }
    *out = plus(*out, meet(alone, together));
    return true;
  }
  return false;
}

/* Returns the bounds of the sum without the parts that are marked. */
static interval bounds_of_rest(const vyre__terms *t, form *f) {
  interval sum = {f->constant, f->constant};
  for (unsigned i = 0; i < f->count; i++) {
    const part *p = &f->parts[i];
    if (!p->is_bounded && !bound_quotient(t, f, p, &sum)) {
      bound_bits(t, f, p, &sum);
    }
  }
  for (unsigned i = 0; i < f->count; i++) take(t, &f->parts[i], &sum);
  return sum;
}

/* Returns the bounds of the sum without two of its parts, which may be NULL. */
static interval bounds_without(const vyre__terms *t, form f, const part *a,
                               const part *b) {
  for (unsigned i = 0; i < f.count; i++) {
    f.parts[i].is_bounded =
        (a && f.parts[i].id == a->id) || (b && f.parts[i].id == b->id);
  }
  return bounds_of_rest(t, &f);
}

/* Returns a lower bound that uses guards: p - q is not negative if q <= p. */
static wide guarded_min(vyre__terms *t, form f) {
  wide sum = f.constant;
  for (unsigned i = 0; i < f.count; i++) {
    part *q = &f.parts[i];
    for (unsigned k = 0; k < f.count && q->by < 0; k++) {
      part *p = &f.parts[k];
      if (p->by <= 0 || !vyre__terms_at_most(t, q->id, 0, p->id)) continue;
      wide common = min(p->by, -q->by);
      if (vyre__terms_at_most(t, q->id, 1, p->id)) sum += common;
      p->by -= common;
      q->by += common;
    }
  }
  for (unsigned i = 0; i < f.count; i++) {
    sum += times(range_of(t, f.parts[i].id), f.parts[i].by).lo;
  }
  return sum;
}

/* --- proofs ----------------------------------------------------------------*/

/* Proves rest < w, where the rest is the sum without @p a and @p b. */
static bool rest_is_below(vyre__terms *t, const form *f, const part *a,
                          const part *b, term w) {
  if (bounds_without(t, *f, a, b).hi < range_of(t, w).lo) return true;
  for (unsigned i = 0; i < f->count; i++) {
    const part *x = &f->parts[i];
    if (x->by != 1 || x == a || x == b) continue;
    form rest = *f;
    for (unsigned k = 0; k < f->count; k++) {
      const part *p = &f->parts[k];
      rest.parts[k].is_bounded = p == a || p == b || p == x;
    }
    wide high = bounds_of_rest(t, &rest).hi;
    if (vyre__terms_at_most(t, x->id, high + 1, w)) return true;
  }
  return false;
}

/* Proves (y + m) * w + rest < b, where @p row is y * w and m the factor of w:
 * 0 <= y + m, 0 <= rest < w and (y + m + 1) * w <= b. */
static bool row_is_inside(vyre__terms *t, form *f, const part *row, term b) {
  const info product = t->items[row->id];
  if (product.op != VYRE__OP_MUL || row->by != 1) return false;
  /* The type of y * w may be too narrow for the exact product. The proof holds
   * if the lower bits of the index are right (the product has at least as many
   * bits), and if the type can hold every index below b. */
  if (bits_of(product.type) < f->bits ||
      range_of(t, b).hi - 1 > vyre__interval_full((vyre_type)f->type).hi) {
    return false;
  }
  for (int order = 0; order < 2; order++) {
    term y = order ? product.b : product.a, w = order ? product.a : product.b;
    const part *more = part_of(f, w);
    wide m = more ? more->by : 0;
    if (range_of(t, w).lo < 0 || range_of(t, y).lo + m < 0) continue;
    if (bounds_without(t, *f, row, more).lo < 0) continue;
    if (rest_is_below(t, f, row, more, w) &&
        vyre__terms_rows_fit(t, y, m + 1, w, b)) {
      return true;
    }
  }
  return false;
}

/* Proves c * y + rest < b for a constant c in the same way. Multiples of c in
 * the constant count as rows. */
static bool step_is_inside(vyre__terms *t, form *f, const part *y, term b) {
  form shifted = *f;
  if (y->by < 2 || y->by > UINT32_MAX) return false;
  wide low = bounds_without(t, *f, y, NULL).lo;
  wide m = low / y->by - (low % y->by < 0);
  shifted.constant -= m * y->by;
  if (range_of(t, y->id).lo + m < 0) return false;
  if (bounds_without(t, shifted, y, NULL).hi >= y->by) return false;
  term w = vyre__terms_literal(t, y->by);
  return w && vyre__terms_rows_fit(t, y->id, m + 1, w, b);
}

bool vyre__terms_sum_inside(vyre__terms *t, term index, term length) {
  if (index == 0 || length == 0 || t->no_memory) return false;
  unsigned type = t->items[index].type;
  form f = {.type = type, .bits = bits_of(type), .visits = VISITS};
  if (f.bits == 0) return false;
  add(t, &f, index, 1);
  if (f.has_failed || f.count == 0 || has_large_factor(&f)) return false;
  interval sum = bounds_without(t, f, NULL, NULL), b = range_of(t, length);
  wide max = vyre__interval_full((vyre_type)type).hi;
  if (sum.hi > max && b.hi - 1 > max) return false;
  for (unsigned i = 0; i < f.count; i++) {
    if (row_is_inside(t, &f, &f.parts[i], length) ||
        step_is_inside(t, &f, &f.parts[i], length)) {
      return !t->no_memory;
    }
  }
  if (sum.lo < 0 && guarded_min(t, f) < 0) return false;
  return (sum.hi < b.lo || rest_is_below(t, &f, NULL, NULL, length)) &&
         !t->no_memory;
}
