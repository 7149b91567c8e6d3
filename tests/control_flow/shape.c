/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Small shapes of control flow, all of them.
 *
 * A control statement is one of
 *     if (c) { S }            if (c) { S } else { S }
 *     for (...) { S }         while (c) { S }
 *     break;                  continue;                  return;
 *     if (c) break;           if (c) continue;           if (c) return;
 * where c, and the number of rounds of a loop, is either uniform or divergent,
 * and S is a sequence of control statements, which may be empty. The size of a
 * shape is the number of its control statements: a guarded jump counts as one.
 *
 * A shape is a sequence that is the body of a kernel. These are left out:
 *   - `break` and `continue` outside a loop;
 *   - statements that are never reached: after an unconditional jump, and after
 *     an `if` with `else` of which both arms end in one;
 *   - `if (c) { jump; }`, which is the guarded jump of a smaller size.
 * Sequences that differ in one statement, or in the order of two, are different
 * shapes, and each occurs once: a sequence is taken apart in only one way, as its
 * first statement and the rest.
 *
 * Shapes are numbered by counting: how many sequences of each size there are says
 * which of them number N is, without a list. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* Sequences of one size, by whether they are in a loop and whether their end is
 * reached ("open") or not ("closed"). */
typedef struct counts {
  uint64_t open[2][CF_SHAPE_MAX + 1];
  uint64_t closed[2][CF_SHAPE_MAX + 1];
} counts;

static counts table;
static bool is_ready;

static uint64_t all(unsigned in_loop, unsigned size) {
  return table.open[in_loop][size] + table.closed[in_loop][size];
}

/* Bodies of an `if` without `else`: all but the one unconditional jump. */
static uint64_t if_bodies(unsigned in_loop, unsigned size) {
  return all(in_loop, size) - (size == 1 ? table.closed[in_loop][1] : 0);
}

/* Pairs of arms that both end in a jump, and of others. */
static uint64_t closed_arms(unsigned in_loop, unsigned size) {
  uint64_t sum = 0;
  for (unsigned i = 0; i <= size; i++) {
    sum += table.closed[in_loop][i] * table.closed[in_loop][size - i];
  }
  return sum;
}
static uint64_t open_arms(unsigned in_loop, unsigned size) {
  uint64_t sum = 0;
  for (unsigned i = 0; i <= size; i++) {
    sum += all(in_loop, i) * all(in_loop, size - i);
  }
  return sum - closed_arms(in_loop, size);
}

/* Kinds of jumps: `return` alone, or all three. */
static uint64_t jumps(unsigned in_loop) {
  return in_loop ? 3 : 1;
}

/* Single statements of a size whose end is reached. */
static uint64_t open_statements(unsigned in_loop, unsigned size) {
  uint64_t sum = size == 1 ? 2 * jumps(in_loop) : 0;
  sum += 2 * if_bodies(in_loop, size - 1);
  sum += 2 * open_arms(in_loop, size - 1);
  sum += 4 * all(1, size - 1); /* for and while */
  return sum;
}
static uint64_t closed_statements(unsigned in_loop, unsigned size) {
  return (size == 1 ? jumps(in_loop) : 0) + 2 * closed_arms(in_loop, size - 1);
}

static void prepare(void) {
  if (is_ready) return;
  table.open[0][0] = table.open[1][0] = 1;
  for (unsigned size = 1; size <= CF_SHAPE_MAX; size++) {
    for (unsigned in_loop = 0; in_loop < 2; in_loop++) {
      uint64_t open = 0, closed = closed_statements(in_loop, size);
      for (unsigned first = 1; first <= size; first++) {
        uint64_t ways = open_statements(in_loop, first);
        open += ways * table.open[in_loop][size - first];
        closed += ways * table.closed[in_loop][size - first];
      }
      table.open[in_loop][size] = open;
      table.closed[in_loop][size] = closed;
    }
  }
  is_ready = true;
}

uint64_t cf_shape_count(unsigned size) {
  prepare();
  return all(0, size);
}

uint64_t cf_shape_total(void) {
  uint64_t sum = 0;
  for (unsigned size = 1; size <= CF_SHAPE_MAX; size++) {
    sum += cf_shape_count(size);
  }
  return sum;
}

/* --- from a number to a shape -----------------------------------------------------*/

typedef enum end { OPEN, CLOSED, EITHER } end;

static cf_shape *sequence(cf_program *p, unsigned in_loop, unsigned size,
                          end how, uint64_t index);

static cf_shape *shape_new(cf_program *p, cf_shape_kind kind) {
  cf_shape *s = cf_take(p, sizeof *s);
  s->kind = kind;
  return s;
}

/* Returns true if @p index is below @p count; otherwise subtracts @p count
 * from it. */
static bool falls(uint64_t *index, uint64_t count) {
  if (*index < count) return true;
  *index -= count;
  return false;
}

static void set_level(cf_shape *s, uint64_t *index) {
  s->is_guarded = true;
  s->level = *index % 2 ? CF_DIVERGENT : CF_GRID;
  *index /= 2;
}

static void set_arms(cf_program *p, cf_shape *s, unsigned in_loop,
                     unsigned size, bool is_closed, uint64_t index) {
  for (unsigned i = 0; i <= size; i++) {
    for (unsigned ends = 0; ends < 4; ends++) { /* of both arms */
      bool closed_a = ends & 1, closed_b = ends & 2;
      if (is_closed != (closed_a && closed_b)) continue;
      uint64_t a = (closed_a ? table.closed : table.open)[in_loop][i];
      uint64_t b = (closed_b ? table.closed : table.open)[in_loop][size - i];
      if (!falls(&index, a * b)) continue;
      s->body = sequence(p, in_loop, i, closed_a ? CLOSED : OPEN, index / b);
      s->other =
          sequence(p, in_loop, size - i, closed_b ? CLOSED : OPEN, index % b);
      return;
    }
  }
  abort(); /* the counts are wrong */
}

static const cf_shape_kind jump_kinds[] = {CF_SHAPE_RETURN, CF_SHAPE_BREAK,
                                           CF_SHAPE_CONTINUE};

static cf_shape *open_statement(cf_program *p, unsigned in_loop, unsigned size,
                                uint64_t index) {
  if (size == 1 && falls(&index, 2 * jumps(in_loop))) {
    cf_shape *s = shape_new(p, jump_kinds[index / 2]);
    set_level(s, &index);
    return s;
  }
  if (falls(&index, 2 * if_bodies(in_loop, size - 1))) {
    cf_shape *s = shape_new(p, CF_SHAPE_IF);
    set_level(s, &index);
    s->body = sequence(p, in_loop, size - 1, size == 2 ? OPEN : EITHER, index);
    return s;
  }
  if (falls(&index, 2 * open_arms(in_loop, size - 1))) {
    cf_shape *s = shape_new(p, CF_SHAPE_IF_ELSE);
    set_level(s, &index);
    set_arms(p, s, in_loop, size - 1, false, index);
    return s;
  }
  cf_shape *s = shape_new(p, index % 2 ? CF_SHAPE_WHILE : CF_SHAPE_FOR);
  index /= 2;
  set_level(s, &index);
  s->body = sequence(p, 1, size - 1, EITHER, index);
  return s;
}

static cf_shape *closed_statement(cf_program *p, unsigned in_loop,
                                  unsigned size, uint64_t index) {
  if (size == 1 && falls(&index, jumps(in_loop))) {
    return shape_new(p, jump_kinds[index]);
  }
  cf_shape *s = shape_new(p, CF_SHAPE_IF_ELSE);
  set_level(s, &index);
  set_arms(p, s, in_loop, size - 1, true, index);
  return s;
}

static cf_shape *sequence(cf_program *p, unsigned in_loop, unsigned size,
                          end how, uint64_t index) {
  if (how == EITHER) {
    how = falls(&index, table.open[in_loop][size]) ? OPEN : CLOSED;
  }
  if (size == 0) return NULL;
  if (how == CLOSED && falls(&index, closed_statements(in_loop, size))) {
    return closed_statement(p, in_loop, size, index);
  }
  for (unsigned first = 1; first <= size; first++) {
    uint64_t rest =
        (how == OPEN ? table.open : table.closed)[in_loop][size - first];
    if (!falls(&index, open_statements(in_loop, first) * rest)) continue;
    cf_shape *s = open_statement(p, in_loop, first, index / rest);
    s->next = sequence(p, in_loop, size - first, how, index % rest);
    return s;
  }
  abort(); /* the counts are wrong */
}

cf_shape *cf_shape_make(cf_program *p, uint64_t index) {
  prepare();
  for (unsigned size = 1; size <= CF_SHAPE_MAX; size++) {
    if (falls(&index, all(0, size))) {
      return sequence(p, 0, size, EITHER, index);
    }
  }
  return NULL;
}

/* --- that no shape occurs twice ---------------------------------------------------*/

/* Spells a shape: different shapes have different texts. */
static size_t spell(const cf_shape *s, char *to) {
  size_t length = 0;
  for (; s; s = s->next) {
    to[length++] = "iefwbcr"[s->kind];
    to[length++] = "=ud"[!s->is_guarded ? 0 : s->level == CF_GRID ? 1 : 2];
    to[length++] = '{';
    length += spell(s->body, to + length);
    to[length++] = '|';
    length += spell(s->other, to + length);
    to[length++] = '}';
  }
  to[length] = 0;
  return length;
}

enum { LONGEST_SPELLING = CF_SHAPE_MAX * 5 + 1 };

static int compare_spellings(const void *a, const void *b) {
  return strcmp(a, b);
}

bool cf_shapes_are_distinct(void) {
  uint64_t total = cf_shape_total(), twice = 0;
  char(*all)[LONGEST_SPELLING] = calloc(total, sizeof *all);
  if (!all) abort();
  for (uint64_t i = 0; i < total; i++) {
    cf_program p = {0};
    (void)spell(cf_shape_make(&p, i), all[i]);
    cf_deinit(&p);
  }
  qsort(all, total, sizeof *all, compare_spellings);
  for (uint64_t i = 1; i < total; i++) twice += !strcmp(all[i - 1], all[i]);
  free(all);
  if (twice) printf("%llu shapes occur twice\n", (unsigned long long)twice);
  return twice == 0;
}
