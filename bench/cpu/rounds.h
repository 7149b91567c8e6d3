/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Times rivals in rounds: each once per round, in rotating order, with a pause
 * between them. No rival's threads still spin then, and noise of the machine
 * affects all. */
#ifndef VYRE_BENCH_CPU_ROUNDS_H
#define VYRE_BENCH_CPU_ROUNDS_H

#include <stdbool.h>

enum { CPU_MOST_ROUNDS = 101, CPU_MOST_RIVALS = 10 };

/* An entry to time. run() does it once; before(), if not NULL, is not timed. */
typedef struct cpu_entry {
  const char *name;
  void (*run)(void *self); /* NULL: not installed */
  void (*before)(void *self);
  void *self;
  int warm;                   /* runs before the timed ones */
  int timed;                  /* timed runs per round */
  double ns[CPU_MOST_ROUNDS]; /* median time of a run in each round */
} cpu_entry;

/* Times the entries. Returns the number of rounds: at least three, and fewer
 * than @p rounds if they take too long and $VYRE_BENCH_ROUNDS is not set. */
int cpu_rounds(cpu_entry *entries, int count, int rounds);

/* Returns true if $VYRE_BENCH_THREADS is 1: one thread, measured by processor
 * time, which other processes do not affect. */
bool cpu_is_alone(void);
double cpu_now_ns(void); /* of the selected clock */

/* Selects processor time for a part of a run that uses one thread, or the wall
 * clock again. */
void cpu_use_processor_time(bool is_used);

/* Returns $VYRE_BENCH_ROUNDS, or @p usual. */
int cpu_round_count(int usual);

typedef struct cpu_quartiles {
  double low, median, high, minimum;
} cpu_quartiles;

cpu_quartiles cpu_quartiles_of(const double *values, int count);

/* Returns the quartiles of peer / ours in each round; above 1, ours is
 * faster. */
cpu_quartiles cpu_paired(const cpu_entry *ours, const cpu_entry *peer,
                         int rounds);

#endif
