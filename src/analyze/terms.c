/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/terms.h"

#include <string.h>

#include "base/memory.h"

typedef vyre__term term;
typedef vyre__term_info info;

enum { FIRST_BUCKETS = 64 };

/* --- the table -------------------------------------------------------------*/

bool vyre__terms_init(vyre__terms *t, vyre_allocator allocator) {
  *t = (vyre__terms){.allocator = allocator};
  bool fine = vyre__reserve(allocator, &t->buckets, &t->bucket_count,
                            FIRST_BUCKETS, sizeof *t->buckets, true) &&
              vyre__reserve(allocator, &t->items, &t->capacity, FIRST_BUCKETS,
                            sizeof *t->items, false) &&
              vyre__reserve(allocator, &t->facts, &t->fact_capacity, 8,
                            sizeof *t->facts, false);
  if (!fine) {
    vyre__terms_deinit(t);
    return false;
  }
  memset(t->buckets, 0, t->bucket_count * sizeof *t->buckets);
  t->items[0] = (info){0};
  t->facts[0] = (vyre__term_fact){0};
  t->count = t->fact_count = 1;
  return true;
}

void vyre__terms_deinit(vyre__terms *t) {
  vyre__reserve_free(t->allocator, &t->buckets, &t->bucket_count,
                     sizeof *t->buckets);
  vyre__reserve_free(t->allocator, &t->items, &t->capacity, sizeof *t->items);
  vyre__reserve_free(t->allocator, &t->facts, &t->fact_capacity,
                     sizeof *t->facts);
  vyre__reserve_free(t->allocator, &t->undo, &t->undo_capacity,
                     sizeof *t->undo);
}

static uint32_t hash_of(const info *i) {
  uint64_t h = (uint64_t)i->op << 8 | i->type;
  h = (h ^ i->a) * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 29) ^ i->b) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 32) ^ i->c) * 0x94D049BB133111EBu;
  return (uint32_t)(h >> 32);
}

static void link_bucket(vyre__terms *t, term id) {
  uint32_t *bucket =
      &t->buckets[hash_of(&t->items[id]) & (t->bucket_count - 1)];
  t->items[id].next_alike = *bucket;
  *bucket = id;
}

/* Doubles the number of buckets, so that chains stay short. */
static bool grow_buckets(vyre__terms *t) {
  if (!vyre__reserve(t->allocator, &t->buckets, &t->bucket_count,
                     t->bucket_count * 2, sizeof *t->buckets, true)) {
    return false;
  }
  memset(t->buckets, 0, t->bucket_count * sizeof *t->buckets);
  for (term id = 1; id < t->count; id++) {
    if (t->items[id].op != VYRE__OP_NONE) link_bucket(t, id);
  }
  return true;
}

static term add(vyre__terms *t, const info *item) {
  bool fine = vyre__reserve(t->allocator, &t->items, &t->capacity, t->count + 1,
                            sizeof *t->items, false) &&
              (t->count < t->bucket_count || grow_buckets(t));
  if (!fine) {
    t->no_memory = true;
    return 0;
  }
  term id = (term)t->count++;
  t->items[id] = *item;
  if (item->op != VYRE__OP_NONE) link_bucket(t, id);
  if (item->op == VYRE__OP_DIV) {
    t->items[id].next_divided = t->items[item->b].divided;
    t->items[item->b].divided = id;
  }
  return id;
}

term vyre__terms_fresh(vyre__terms *t, vyre_type type) {
  info item = {.type = (uint8_t)type, .range = vyre__interval_full(type)};
  return add(t, &item);
}

static term find(const vyre__terms *t, const info *item) {
  term id = t->buckets[hash_of(item) & (t->bucket_count - 1)];
  for (; id; id = t->items[id].next_alike) {
    const info *i = &t->items[id];
    if (i->op == item->op && i->type == item->type && i->a == item->a &&
        i->b == item->b && i->c == item->c) {
      break;
    }
  }
  return id;
}

term vyre__terms_literal(vyre__terms *t, vyre__wide value) {
  info item = {.op = VYRE__OP_LITERAL,
               .a = (uint32_t)value,
               .b = (uint32_t)((uint64_t)value >> 32),
               .c = value < 0,
               .range = {value, value}};
  item.type = value < 0 ? VYRE_TYPE_I64 : VYRE_TYPE_U64;
  term id = find(t, &item);
  return id ? id : add(t, &item);
}

static bool commutes(vyre__op op) {
  return op == VYRE__OP_ADD || op == VYRE__OP_MUL || op == VYRE__OP_MIN ||
         op == VYRE__OP_MAX || op == VYRE__OP_AND || op == VYRE__OP_OR ||
         op == VYRE__OP_XOR || op == VYRE__OP_EQ || op == VYRE__OP_NE;
}

/* Normalises an operation: commuted operands and the like get one form. */
static info normalize(vyre__op op, vyre_type type, const uint32_t operands[3]) {
  info i = {.op = (uint8_t)op,
            .type = (uint8_t)type,
            .a = operands[0],
            .b = operands[1],
            .c = operands[2],
            .range = vyre__interval_full(type)};
  bool flips = op == VYRE__OP_GT || op == VYRE__OP_GE;
  if (op == VYRE__OP_GT) i.op = VYRE__OP_LT;
  if (op == VYRE__OP_GE) i.op = VYRE__OP_LE;
  if (flips || (commutes(op) && i.a > i.b)) {
    i.a = operands[1];
    i.b = operands[0];
  }
  return i;
}

term vyre__terms_find(const vyre__terms *t, vyre__op op, vyre_type type,
                      const uint32_t operands[3]) {
  info item = normalize(op, type, operands);
  return find(t, &item);
}

term vyre__terms_make(vyre__terms *t, vyre__op op, vyre_type type,
                      const uint32_t operands[3]) {
  info item = normalize(op, type, operands);
  term id = find(t, &item);
  return id ? id : add(t, &item);
}

/* --- facts -----------------------------------------------------------------*/

vyre__terms_mark vyre__terms_here(const vyre__terms *t) {
  return (vyre__terms_mark){t->fact_count, t->undo_count};
}

void vyre__terms_rewind(vyre__terms *t, vyre__terms_mark mark) {
  while (t->fact_count > mark.facts) {
    const vyre__term_fact *f = &t->facts[--t->fact_count];
    t->items[f->p].above = f->next_above;
    t->items[f->q].below = f->next_below;
  }
  while (t->undo_count > mark.undo) {
    const vyre__term_undo *u = &t->undo[--t->undo_count];
    t->items[u->term].range = u->range;
    t->items[u->term].is_power = u->is_power;
  }
}

/* Logs a term before it changes. */
static bool log_change(vyre__terms *t, term id) {
  if (!vyre__reserve(t->allocator, &t->undo, &t->undo_capacity,
                     t->undo_count + 1, sizeof *t->undo, false)) {
    t->no_memory = true;
    return false;
  }
  const info *i = &t->items[id];
  t->undo[t->undo_count++] = (vyre__term_undo){id, i->range, i->is_power};
  return true;
}

/* Returns c if @p id is x % c or x & (c - 1), for a constant c and x >= 0. */
static vyre__wide remainder_by(const vyre__terms *t, term id, term *x) {
  const info *i = &t->items[id];
  if (i->op != VYRE__OP_REM && i->op != VYRE__OP_AND) return 0;
  bool is_first =
      i->op == VYRE__OP_AND && t->items[i->a].op == VYRE__OP_LITERAL;
  term constant = is_first ? i->a : i->b;
  *x = is_first ? i->b : i->a;
  if (t->items[constant].op != VYRE__OP_LITERAL || t->items[*x].range.lo < 0) {
    return 0;
  }
  vyre__wide c = t->items[constant].range.lo;
  if (i->op == VYRE__OP_AND) {
    c++;
    if ((c & (c - 1)) != 0) return 0;
  }
  return c > 0 ? c : 0;
}

/* Records a range without consequences. Returns false if it is not smaller. */
static bool narrow_one(vyre__terms *t, term id, vyre__interval range) {
  vyre__interval old = t->items[id].range;
  if (range.lo < old.lo) range.lo = old.lo;
  if (range.hi > old.hi) range.hi = old.hi;
  bool same = range.lo == old.lo && range.hi == old.hi;
  /* An empty range means unreachable code; nothing needs to be recorded. */
  if (id == 0 || same || range.lo > range.hi) return false;
  if (!log_change(t, id)) return false;
  t->items[id].range = range;
  return true;
}

/* If x % c is narrowed to at most r, x cannot be further than r above the last
 * multiple of c. x may be a remainder itself; the number of steps is limited,
 * because definitions can be chained without end. */
void vyre__terms_narrow(vyre__terms *t, term id, vyre__interval range) {
  enum { STEPS = 4 };
  for (int i = 0; i < STEPS && narrow_one(t, id, range); i++) {
    term x;
    vyre__wide c = remainder_by(t, id, &x), max = t->items[id].range.hi;
    if (c == 0 || max < 0) return;
    range = t->items[x].range;
    if (range.hi % c <= max) return;
    range.hi = range.hi / c * c + max;
    id = x;
  }
}

void vyre__terms_suppose_power(vyre__terms *t, term id) {
  if (id == 0 || t->items[id].is_power || !log_change(t, id)) return;
  t->items[id].is_power = true;
}

/* Returns true if @p id is x + c or x - c without wrapping. */
static bool is_shifted(const vyre__terms *t, term id, term *x, vyre__wide *c) {
  const info *i = &t->items[id];
  if (i->op != VYRE__OP_ADD && i->op != VYRE__OP_SUB) return false;
  term plain = i->a, constant = i->b;
  if (i->op == VYRE__OP_ADD && t->items[plain].op == VYRE__OP_LITERAL) {
    plain = i->b;
    constant = i->a;
  }
  if (t->items[constant].op != VYRE__OP_LITERAL) return false;
  vyre__wide by = t->items[constant].range.lo;
  if (i->op == VYRE__OP_SUB) by = -by;
  vyre__interval full = vyre__interval_full((vyre_type)i->type);
  vyre__interval range = t->items[plain].range;
  if (range.lo + by < full.lo || range.hi + by > full.hi) return false;
  *x = plain;
  *c = by;
  return true;
}

void vyre__terms_assume(vyre__terms *t, term p, vyre__wide by, term q) {
  vyre__wide c;
  if (p == 0 || q == 0) return;
  while (is_shifted(t, p, &p, &c)) by += c;
  while (is_shifted(t, q, &q, &c)) by -= c;
  if (p == q) return;
  vyre__interval left = t->items[p].range, right = t->items[q].range;
  vyre__terms_narrow(t, p, (vyre__interval){left.lo, right.hi - by});
  vyre__terms_narrow(t, q, (vyre__interval){left.lo + by, right.hi});
  if (!vyre__reserve(t->allocator, &t->facts, &t->fact_capacity,
                     t->fact_count + 1, sizeof *t->facts, false)) {
    t->no_memory = true;
    return;
  }
  uint32_t id = (uint32_t)t->fact_count++;
  t->facts[id] = (vyre__term_fact){.p = p,
                                   .q = q,
                                   .by = by,
                                   .next_above = t->items[p].above,
                                   .next_below = t->items[q].below};
  t->items[p].above = id;
  t->items[q].below = id;
}

static void suppose(vyre__terms *t, term condition, bool holds) {
  if (t->budget == 0 || condition == 0) return;
  t->budget--;
  const info i = t->items[condition];
  bool both = i.op == VYRE__OP_LAND || i.op == VYRE__OP_AND;
  bool either = i.op == VYRE__OP_LOR || i.op == VYRE__OP_OR;
  switch ((vyre__op)i.op) {
    case VYRE__OP_NOT:
      suppose(t, i.a, !holds);
      break;
    case VYRE__OP_LAND:
    case VYRE__OP_AND:
    case VYRE__OP_LOR:
    case VYRE__OP_OR:
      if ((both && !holds) || (either && holds)) break;
      suppose(t, i.a, holds);
      suppose(t, i.b, holds);
      break;
    case VYRE__OP_LT:
      if (holds) {
        vyre__terms_assume(t, i.a, 1, i.b);
      } else {
        vyre__terms_assume(t, i.b, 0, i.a);
      }
      break;
    case VYRE__OP_LE:
      if (holds) {
        vyre__terms_assume(t, i.a, 0, i.b);
      } else {
        vyre__terms_assume(t, i.b, 1, i.a);
      }
      break;
    case VYRE__OP_EQ:
    case VYRE__OP_NE:
      if (holds != (i.op == VYRE__OP_EQ)) break;
      vyre__terms_assume(t, i.a, 0, i.b);
      vyre__terms_assume(t, i.b, 0, i.a);
      break;
    default:
      break;
  }
}

void vyre__terms_suppose(vyre__terms *t, term condition, bool holds) {
  enum { CONDITIONS = 64 };
  t->budget = CONDITIONS;
  suppose(t, condition, holds);
}
