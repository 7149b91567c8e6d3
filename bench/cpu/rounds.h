/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rivals side by side: each once a round, in rotating order, with a nap between,
 * so that nobody's threads still spin and noise of the machine meets all. */
#ifndef VYRE_BENCH_CPU_ROUNDS_H
#define VYRE_BENCH_CPU_ROUNDS_H

#include <stdbool.h>

enum { CPU_MOST_ROUNDS = 101, CPU_MOST_RIVALS = 10 };

/* One that is timed. run() does it once; before(), where not NULL, is not timed. */
typedef struct cpu_entry {
  const char *name;
  void (*run)(void *self); /* NULL: it is not there */
  void (*before)(void *self);
  void *self;
  int warm;                   /* runs before those that are timed */
  int timed;                  /* runs a round */
  double ns[CPU_MOST_ROUNDS]; /* of a run: the median of a round's */
} cpu_entry;

/* Gives the rounds that were made: fewer than @p rounds, but three at least, where
 * they take longer than a benchmark should and $VYRE_BENCH_ROUNDS does not insist. */
int cpu_rounds(cpu_entry *entries, int count, int rounds);

/* Whether $VYRE_BENCH_THREADS is 1: one thread, and its processor time instead of
 * the clock's, which others on the machine cannot prolong. */
bool cpu_is_alone(void);
double cpu_now_ns(void); /* of that clock */

/* $VYRE_BENCH_ROUNDS, or @p usual. */
int cpu_round_count(int usual);

typedef struct cpu_quartiles {
  double low, median, high, least;
} cpu_quartiles;

cpu_quartiles cpu_quartiles_of(const double *values, int count);

/* Of peer / ours, round by round: above 1, ours is faster. */
cpu_quartiles cpu_paired(const cpu_entry *ours, const cpu_entry *peer,
                         int rounds);

#endif
