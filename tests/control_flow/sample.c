/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A sample of the small shapes, for runs that have no time for all: shapes are put
 * into classes by how much they ask of execution masks, and each class has its
 * share. The members of a class are taken at equal distances. */
#include <stdlib.h>

#include "program.h"

typedef enum shape_class {
  THREE_DENSE, /* 3 statements, two of them jumps in loops: all of them */
  SMALL,       /* 1 or 2 statements: all of them */
  FOUR_DENSE,  /* 4 statements, at least two of them jumps in loops */
  THREE_LOOP,  /* 3 statements, one of them a jump in a loop */
  FOUR_LOOP,   /* 4 statements, one of them a jump in a loop */
  THREE_OTHERS,
  FOUR_OTHERS,
  CLASSES
} shape_class;

/* Percent of what is left when the first two classes are taken. */
static const unsigned share[CLASSES] = {
    [FOUR_DENSE] = 40,  [THREE_LOOP] = 35, [FOUR_LOOP] = 15,
    [THREE_OTHERS] = 5, [FOUR_OTHERS] = 5,
};

static unsigned jumps_in_loops(const cf_shape *s, bool in_loop) {
  unsigned sum = 0;
  for (; s; s = s->next) {
    bool is_loop = s->kind == CF_SHAPE_FOR || s->kind == CF_SHAPE_WHILE;
    sum += s->kind >= CF_SHAPE_BREAK && in_loop;
    sum += jumps_in_loops(s->body, in_loop || is_loop);
    sum += jumps_in_loops(s->other, in_loop || is_loop);
  }
  return sum;
}

static shape_class class_of(uint64_t index) {
  uint64_t small = cf_shape_count(1) + cf_shape_count(2);
  cf_program p = {0};
  unsigned jumps = jumps_in_loops(cf_shape_make(&p, index), false);
  cf_deinit(&p);
  if (index < small) return SMALL;
  if (index < small + cf_shape_count(3)) {
    return jumps > 1 ? THREE_DENSE : jumps ? THREE_LOOP : THREE_OTHERS;
  }
  return jumps > 1 ? FOUR_DENSE : jumps ? FOUR_LOOP : FOUR_OTHERS;
}

/* All shapes, class by class. */
static uint64_t *order;
static uint64_t begin[CLASSES + 1];

static void sort_by_class(void) {
  uint64_t total = cf_shape_total(), sizes[CLASSES] = {0};
  unsigned char *classes = malloc(total);
  order = malloc(total * sizeof *order); /* as long as the process lives */
  if (!order || !classes) abort();
  for (uint64_t i = 0; i < total; i++) {
    classes[i] = (unsigned char)class_of(i);
    sizes[classes[i]]++;
  }
  uint64_t next[CLASSES];
  for (int c = 0; c < CLASSES; c++) {
    next[c] = begin[c];
    begin[c + 1] = begin[c] + sizes[c];
  }
  for (uint64_t i = 0; i < total; i++) order[next[classes[i]]++] = i;
  free(classes);
}

enum { MIN_SAMPLE = 1000, USUAL_SAMPLE = 2500 };

/* Members of a class in a sample of @p n. What other classes are too small for
 * goes to the last. */
static uint64_t members(int class, uint64_t n) {
  uint64_t size = begin[class + 1] - begin[class];
  if (class <= SMALL) return size;
  uint64_t left = n - begin[SMALL + 1];
  if (class == FOUR_OTHERS) {
    for (int c = FOUR_DENSE; c < FOUR_OTHERS; c++) left -= members(c, n);
    return left < size ? left : size;
  }
  return left * share[class] / 100 < size ? left * share[class] / 100 : size;
}

uint64_t cf_shape_sample(uint64_t i, uint64_t n) {
  if (!order) sort_by_class();
  if (n >= cf_shape_total()) return i;
  if (n < MIN_SAMPLE) { /* some of the usual sample */
    return cf_shape_sample(i * USUAL_SAMPLE / n, USUAL_SAMPLE);
  }
  for (int class = 0; class < CLASSES; class ++) {
    uint64_t count = members(class, n);
    if (i < count) {
      uint64_t distance = (begin[class + 1] - begin[class]) / count;
      return order[begin[class] + i * distance + cf_hash(i) % distance];
    }
    i -= count;
  }
  return i; /* n is nearly all: the last class is full; some occur twice */
}
