/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/suggest.h"

#include <string.h>

enum { LONGEST = 40 }; /* longer names get no suggestion */

static int fold(int c) {
  return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static unsigned min(unsigned a, unsigned b) {
  return a < b ? a : b;
}

/* Returns the number of edits (insert, delete, replace, swap of neighbours)
 * between two names, ignoring case. */
static unsigned distance(const char *a, size_t a_length, const char *b,
                         size_t b_length) {
  unsigned rows[3][LONGEST + 1];
  for (size_t j = 0; j <= b_length; j++) rows[0][j] = (unsigned)j;
  for (size_t i = 1; i <= a_length; i++) {
    unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3];
    const unsigned *two_above = rows[(i + 1) % 3];
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      int x = fold(a[i - 1]), y = fold(b[j - 1]);
      unsigned cost = min(above[j], row[j - 1]) + 1;
      cost = min(cost, above[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == fold(b[j - 2]) && fold(a[i - 2]) == y) {
        cost = min(cost, two_above[j - 2] + 1);
      }
      row[j] = cost;
    }
  }
  return rows[a_length % 3][b_length];
}

vyre__guess vyre__guess_begin(const char *name, size_t length) {
  /* Longer names may contain more mistakes; short names are all similar to
   * each other. */
  unsigned limit = length < 3 ? 1 : length < 6 ? 2 : length < 9 ? 3 : 4;
  return (vyre__guess){.name = name, .length = length, .distance = limit};
}

void vyre__guess_try(vyre__guess *guess, const char *candidate, size_t length) {
  size_t more =
      length > guess->length ? length - guess->length : guess->length - length;
  if (length == 0 || length > LONGEST || guess->length > LONGEST ||
      more >= guess->distance) {
    return;
  }
  unsigned edits = distance(guess->name, guess->length, candidate, length);
  if (edits >= guess->distance) return;
  /* With several edits, of which one is the first letter, another word is
   * likely meant. */
  if (edits > 1 && fold(guess->name[0]) != fold(candidate[0])) return;
  guess->distance = edits;
  guess->best = candidate;
  guess->best_length = length;
}

void vyre__guess_try_all(vyre__guess *guess, const char *const *candidates,
                         size_t count) {
  for (size_t i = 0; i < count; i++) {
    vyre__guess_try(guess, candidates[i], strlen(candidates[i]));
  }
}
