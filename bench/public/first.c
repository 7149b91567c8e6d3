/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite cpu.first_dispatch: time from the source of a workload to the result of
 * its first run, with nothing in the caches: by baseline code alone, by
 * optimised code alone, and by the default, which begins with baseline code and
 * replaces it.
 *
 * Every run has a device of its own. LLVM is loaded already. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rounds.h"
#include "cpu/workload.h"
#include "others.h"
#include "rival.h"

static const char suite[] = "cpu.first_dispatch";

enum { TIERS = 3, ROUNDS = 5, MOST_ROUNDS = 31 };
static const vyre_tier tiers[TIERS] = {VYRE_TIER_BASELINE, VYRE_TIER_OPTIMISED,
                                       VYRE_TIER_AUTO};
enum { BASELINE, OPTIMISED, AUTO };

/* The default is good enough up to this ratio to the better tier. */
static const double CLOSE = 1.05;

/* Milliseconds of one cold run. */
typedef struct figures {
  double ready;  /* until the first kernel can be dispatched: mean of all */
  double behind; /* from then until its optimised code is ready */
  double total;  /* until the result is available */
} figures;

typedef struct totals {
  int count, close, kernels;
  double ready, behind, log_ratio, worst;
  char worst_name[48];
} totals;

/* Waits until no kernel has baseline code. Kernels that are too large for
 * optimised code keep theirs. */
static void await_optimised(const public_rival *rival) {
  enum { TRIES = 4000, NAP_NS = 250000 };
  for (int i = 0; i < TRIES && public_vyre_code(rival).is_baseline; i++) {
    (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
  }
}

static public_rival open_tier(int tier) {
  vyre_status st = {0};
  public_rival rival = public_vyre_open("vyre", "", &st);
  if (!rival.self) bench_fail(suite, st.message);
  public_vyre_set_tier(&rival, tiers[tier]);
  return rival;
}

static figures run_cold(public_workload *w, int tier) {
  public_rival rival = open_tier(tier);
  public_workload_reset(w);
  double start = cpu_now_ns();
  rival.bind(rival.self, w);
  double ready = cpu_now_ns();
  rival.launch(rival.self);
  double end = cpu_now_ns();
  figures f = {.ready = (ready - start) / 1e6, .total = (end - start) / 1e6};
  f.ready /= public_vyre_code(&rival).kernels;
  if (tier == AUTO) await_optimised(&rival);
  rival.unbind(rival.self);
  public_vyre_close(&rival);
  return f;
}

/* Returns the milliseconds from ready code to optimised code, with no dispatch
 * at the same time. */
static double time_behind(public_workload *w) {
  public_rival rival = open_tier(AUTO);
  rival.bind(rival.self, w);
  double ready = cpu_now_ns();
  await_optimised(&rival);
  double took = (cpu_now_ns() - ready) / 1e6 / public_vyre_code(&rival).kernels;
  rival.unbind(rival.self);
  public_vyre_close(&rival);
  return took;
}

static void count(totals *t, const char *name, const figures *f, double ratio,
                  int kernels) {
  t->count++;
  t->kernels += kernels;
  t->ready += f->ready * kernels;
  t->behind += f->behind * kernels;
  t->log_ratio += log(ratio);
  t->close += ratio <= CLOSE;
  if (ratio <= t->worst) return;
  t->worst = ratio;
  (void)snprintf(t->worst_name, sizeof t->worst_name, "%s", name);
}

static void add_row(const public_workload *w, const double *total,
                    double better, cpu_quartiles ratio) {
  bench_row_add(&(bench_result){.suite = suite,
                                .name = w->name,
                                .unit = "ms",
                                .value = total[AUTO],
                                .best = total[AUTO],
                                .peer = "the better tier",
                                .peer_value = better,
                                .peer_best = better,
                                .ratio = 1 / ratio.median,
                                .ratio_low = 1 / ratio.high,
                                .ratio_high = 1 / ratio.low,
                                .note = ""});
}

/* Returns the number of kernels of a workload. */
static int kernels_of(const public_workload *w) {
  int kernels = 0;
  for (int i = 0; i < w->launch_count; i++) {
    bool is_new = true;
    for (int k = 0; k < i && is_new; k++) {
      const char *a = w->launches[i].kernel, *b = w->launches[k].kernel;
      is_new = a && b && strcmp(a, b) != 0;
    }
    kernels += is_new;
  }
  return kernels;
}

static void measure(public_workload *w, totals *t) {
  static double ms[TIERS][MOST_ROUNDS], ready[MOST_ROUNDS], behind[MOST_ROUNDS],
      ratios[MOST_ROUNDS];
  double total[TIERS];
  int rounds = cpu_round_count(ROUNDS);
  if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
  for (int r = 0; r < rounds; r++) {
    for (int k = 0; k < TIERS; k++) {
      int tier = (r + k) % TIERS;
      figures f = run_cold(w, tier);
      ms[tier][r] = f.total;
      if (tier == AUTO) ready[r] = f.ready;
    }
    behind[r] = time_behind(w);
  }
  for (int k = 0; k < TIERS; k++) {
    total[k] = cpu_quartiles_of(ms[k], rounds).median;
  }
  int best = total[BASELINE] <= total[OPTIMISED] ? BASELINE : OPTIMISED;
  for (int r = 0; r < rounds; r++) ratios[r] = ms[AUTO][r] / ms[best][r];
  cpu_quartiles ratio = cpu_quartiles_of(ratios, rounds);
  const figures f = {.ready = cpu_quartiles_of(ready, rounds).median,
                     .behind = cpu_quartiles_of(behind, rounds).median};
  printf("%-20s %8.2f %8.2f %9.2f %9.2f %9.2f  %6.2f%s\n", w->name, f.ready,
         f.behind, total[BASELINE], total[OPTIMISED], total[AUTO], ratio.median,
         ratio.median > CLOSE ? " <" : "");
  (void)fflush(stdout);
  add_row(w, total, total[best], ratio);
  count(t, w->name, &f, ratio.median, kernels_of(w));
}

static bool is_wanted(const char *name) {
  const char *only = getenv("VYRE_BENCH_KERNEL");
  return !only || strstr(name, only);
}

static void measure_list(const public_entry *entries, int entry_count,
                         totals *t) {
  for (int i = 0; i < entry_count; i++) {
    if (!is_wanted(entries[i].name)) continue;
    public_workload w;
    public_workload_make(&w, &entries[i]);
    measure(&w, t);
    public_workload_free(&w);
  }
}

static void add_mean(const char *name, double value, double limit) {
  bench_row_add(&(bench_result){.suite = suite,
                                .name = name,
                                .unit = "ms",
                                .value = value,
                                .best = value,
                                .peer = "its limit",
                                .peer_value = limit,
                                .peer_best = limit,
                                .ratio = limit / value,
                                .note = ""});
}

static void print_totals(const totals *t) {
  if (t->count == 0) return;
  double ready = t->ready / t->kernels, behind = t->behind / t->kernels;
  printf(
      "\n%d kernels of %d workloads: ready after %.2f ms in the mean, "
      "optimised "
      "%.2f ms later\nwithin 5 %% of the better tier: %d of %d; geometric mean "
      "%.2f, worst %.2f (%s)\n",
      t->kernels, t->count, ready, behind, t->close, t->count,
      exp(t->log_ratio / t->count), t->worst, t->worst_name);
  add_mean("mean, ready", ready, 8);
  add_mean("mean, from ready to optimised", behind, 30);
}

/* Opens a device that keeps LLVM loaded. */
static public_rival open_kept(vyre_status *st) {
  public_rival kept = public_vyre_open("vyre", "", st);
  public_workload w;
  if (!kept.self) return kept;
  public_wrap_cpu(&w, 0);
  kept.bind(kept.self, &w);
  kept.unbind(kept.self);
  public_workload_free(&w);
  return kept;
}

void bench_public_first(void) {
  totals t = {0};
  vyre_status st = {0};
  cpu_machine_print(suite, "cpu");
  public_rival kept = open_kept(&st);
  if (!kept.self) {
    cpu_missing(suite, "cpu", st.message);
    return;
  }
  printf(
      "milliseconds, medians; ready: from source to baseline code; then: from "
      "there to optimised code;\nfirst result with baseline code alone, with "
      "optimised code alone, and by default\n\n"
      "%-20s %8s %8s %9s %9s %9s  %6s\n",
      "workload", "ready", "then", "baseline", "optimised", "default", "ratio");
  measure_list(public_entries, public_entry_count, &t);
  measure_list(public_held_entries, public_held_count, &t);
  measure_list(public_held2_entries, public_held2_count, &t);
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    if (!is_wanted(cpu_workload_name(i))) continue;
    public_workload w;
    public_wrap_cpu(&w, i);
    measure(&w, &t);
    public_workload_free(&w);
  }
  measure_list(public_examples, public_example_count, &t);
  print_totals(&t);
  public_vyre_close(&kept);
}
