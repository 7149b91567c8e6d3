/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Times rivals in rounds, and computes medians and quartiles. */
#include "rounds.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { MAX_TIMED = 32, SLOW_NS = 25000000, NAP_NS = 12000000 };

static const double LONG_NS = 9e9;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

cpu_quartiles cpu_quartiles_of(const double *values, int count) {
  double sorted[CPU_MOST_ROUNDS];
  memcpy(sorted, values, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, by_value);
  return (cpu_quartiles){sorted[count / 4], sorted[count / 2],
                         sorted[count - 1 - count / 4], sorted[0]};
}

cpu_quartiles cpu_paired(const cpu_entry *ours, const cpu_entry *peer,
                         int rounds) {
  double ratios[CPU_MOST_ROUNDS];
  for (int i = 0; i < rounds; i++) ratios[i] = peer->ns[i] / ours->ns[i];
  return cpu_quartiles_of(ratios, rounds);
}

bool cpu_is_alone(void) {
  const char *text = getenv("VYRE_BENCH_THREADS");
  return text && strcmp(text, "1") == 0;
}

/* Set by cpu_use_processor_time. */
static bool is_processor_time;

void cpu_use_processor_time(bool is_used) {
  is_processor_time = is_used;
}

double cpu_now_ns(void) {
  struct timespec t;
  if (!cpu_is_alone() && !is_processor_time) return bench_now_ns();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double time_one(const cpu_entry *e) {
  if (e->before) e->before(e->self);
  double start = cpu_now_ns();
  e->run(e->self);
  return cpu_now_ns() - start;
}

/* Times one round. A slow entry is run once only, to save time. */
static double time_round(const cpu_entry *e) {
  double times[MAX_TIMED], spent = 0;
  int count = 0;
  for (int i = 0; i < e->warm; i++) {
    double took = time_one(e);
    if (took > SLOW_NS) return took;
  }
  while (count < e->timed && count < MAX_TIMED && spent < 2.0 * SLOW_NS) {
    spent += times[count++] = time_one(e);
  }
  qsort(times, (size_t)count, sizeof *times, by_value);
  return times[count / 2];
}

int cpu_rounds(cpu_entry *entries, int count, int rounds) {
  const struct timespec nap = {.tv_nsec = NAP_NS};
  bool insists = getenv("VYRE_BENCH_ROUNDS") != NULL;
  double start = bench_now_ns();
  for (int i = 0; i < count; i++) {
    if (entries[i].run) (void)time_one(&entries[i]); /* warms up */
  }
  for (int round = 0; round < rounds; round++) {
    if (round >= 3 && !insists && bench_now_ns() - start > LONG_NS) {
      return round;
    }
    for (int i = 0; i < count; i++) {
      cpu_entry *e = &entries[(i + round) % count];
      if (!e->run) continue;
      (void)nanosleep(&nap, NULL);
      e->ns[round] = time_round(e);
    }
  }
  return rounds;
}

int cpu_round_count(int usual) {
  const char *text = getenv("VYRE_BENCH_ROUNDS");
  long rounds = text ? strtol(text, NULL, 10) : usual;
  if (rounds < 1) rounds = 1;
  return rounds > CPU_MOST_ROUNDS ? CPU_MOST_ROUNDS : (int)rounds;
}
