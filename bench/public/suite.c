/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suites public, public.pocl, public.held and public.held2: kernels of public
 * GPU suites, ported without changes, compared with twins in C and with PoCL.
 *
 *   VYRE_BENCH_ROUNDS   rounds (7)
 *   VYRE_BENCH_THREADS  1: only the tables of one thread
 *   VYRE_BENCH_KERNEL   only workloads whose name contains this
 *
 * Tables of one thread are measured by processor time, tables of all threads by
 * the wall clock. Every rival works on the same memory, and its results are
 * compared with those of the twin before it is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rounds.h"
#include "rival.h"

enum { OURS, GCC, CLANG, GCC_SAME, CLANG_SAME, POCL, RIVALS };

/* A ratio above this counts as this much in the mean: one win cannot hide
 * losses. */
static const double CAP = 1.5, NEAR = 0.9;

/* Ratios of one kind. */
typedef struct tally {
  double log_sum, log_capped, minimum;
  const char *minimum_name;
  int count, near;
} tally;

typedef struct table {
  const char *suite;
  bool is_alone;
  int rounds;
  public_rival rivals[RIVALS];
  /* Against the best C; against the twin with the same algorithm where there is
   * one; against PoCL. */
  tally best, same, pocl;
} table;

static void count(tally *t, const char *name, double ratio) {
  if (ratio <= 0) return;
  t->log_sum += log(ratio);
  t->log_capped += log(ratio < CAP ? ratio : CAP);
  t->near += ratio > NEAR;
  if (t->count++ == 0 || ratio < t->minimum) {
    t->minimum = ratio;
    t->minimum_name = name;
  }
}

/* --- measuring -------------------------------------------------------------*/

typedef struct job {
  public_rival *rival;
  public_workload *w;
} job;

typedef struct outcome {
  public_workload w;
  const public_entry *entry;
  int rounds;
  public_code code;
  cpu_entry entries[RIVALS];
} outcome;

static void run(void *self) {
  const job *j = self;
  j->rival->launch(j->rival->self);
}

static void reset(void *self) {
  public_workload_reset(((const job *)self)->w);
}

/* Runs a rival once. The first one is the twin, which gives the result that is
 * expected of all others. */
static void check(const job *j, bool is_first) {
  public_workload_clear(j->w);
  j->rival->launch(j->rival->self);
  if (is_first) {
    public_workload_expect(j->w);
    return;
  }
  const char *problem = public_workload_check(j->w, false);
  if (!problem) return;
  char what[128];
  (void)snprintf(what, sizeof what, "%s by %s", j->w->name, j->rival->name);
  bench_fail(what, problem);
}

static bool can_run(const table *t, int rival, const outcome *o) {
  if (!t->rivals[rival].self) return false;
  bool is_same = rival == GCC_SAME || rival == CLANG_SAME;
  if (is_same && !o->entry->has_same) return false;
  bool is_twin = is_same || rival == GCC || rival == CLANG;
  return !is_twin || public_peer_has(&t->rivals[rival], &o->w);
}

static void measure(table *t, outcome *o) {
  static const int order[RIVALS] = {GCC,        CLANG, GCC_SAME,
                                    CLANG_SAME, OURS,  POCL};
  job jobs[RIVALS];
  bool is_first = true;
  bool is_reset = false;
  for (int i = 0; i < o->w.buffer_count; i++) {
    is_reset |= o->w.buffers[i].is_reset;
  }
  for (int k = 0; k < RIVALS; k++) {
    int i = order[k];
    jobs[i] = (job){&t->rivals[i], &o->w};
    o->entries[i] = (cpu_entry){.name = t->rivals[i].name,
                                .self = &jobs[i],
                                .before = is_reset ? reset : NULL,
                                .warm = 1,
                                .timed = 3};
    if (!can_run(t, i, o)) continue;
    o->entries[i].run = run;
    t->rivals[i].bind(t->rivals[i].self, &o->w);
    check(&jobs[i], is_first);
    is_first = false;
  }
  cpu_use_processor_time(t->is_alone);
  o->rounds = cpu_rounds(o->entries, RIVALS, t->rounds);
  cpu_use_processor_time(false);
  o->code = public_vyre_code(&t->rivals[OURS]);
  for (int i = 0; i < RIVALS; i++) {
    if (o->entries[i].run) t->rivals[i].unbind(t->rivals[i].self);
  }
}

/* --- rows ------------------------------------------------------------------*/

static double milliseconds(const outcome *o, int rival) {
  if (!o->entries[rival].run) return 0;
  return cpu_quartiles_of(o->entries[rival].ns, o->rounds).median / 1e6;
}

/* Returns the faster one of two rivals, or -1. */
static int faster(const outcome *o, int a, int b) {
  double x = milliseconds(o, a), y = milliseconds(o, b);
  if (x <= 0) return y > 0 ? b : -1;
  return y <= 0 || x <= y ? a : b;
}

static cpu_quartiles ratio_to(const outcome *o, int rival) {
  if (rival < 0 || !o->entries[rival].run) return (cpu_quartiles){0};
  return cpu_paired(&o->entries[OURS], &o->entries[rival], o->rounds);
}

static void add_row(const table *t, const outcome *o, const char *suite,
                    const char *what, int rival) {
  if (rival < 0 || !o->entries[rival].run) return;
  char name[96];
  cpu_quartiles ratio = ratio_to(o, rival);
  (void)snprintf(name, sizeof name, "%s, %s%s", o->w.name,
                 t->is_alone ? "one thread" : "all threads", what);
  bench_row_add(&(bench_result){
      .suite = suite,
      .name = name,
      .unit = "ms",
      .value = milliseconds(o, OURS),
      .best = cpu_quartiles_of(o->entries[OURS].ns, o->rounds).minimum / 1e6,
      .peer = o->entries[rival].name,
      .peer_value = milliseconds(o, rival),
      .peer_best =
          cpu_quartiles_of(o->entries[rival].ns, o->rounds).minimum / 1e6,
      .ratio = ratio.median,
      .ratio_low = ratio.low,
      .ratio_high = ratio.high,
      .note = o->entry->kind == PUBLIC_REWRITE ? "does not count" : ""});
}

static void print_time(double ms) {
  if (ms <= 0) {
    printf("       -");
  } else {
    printf(" %7.*f", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
  }
}

static void print_ratio(cpu_quartiles ratio) {
  if (ratio.median <= 0) {
    printf("      -");
  } else {
    printf(" %6.2f", ratio.median);
  }
}

static void print_row(const outcome *o, int best, int same) {
  cpu_quartiles ratio = ratio_to(o, best);
  printf("%-15s", o->w.name);
  print_time(milliseconds(o, OURS));
  print_time(milliseconds(o, GCC));
  print_time(milliseconds(o, CLANG));
  print_time(same < 0 ? 0 : milliseconds(o, same));
  print_time(milliseconds(o, POCL));
  print_ratio(ratio);
  printf(" %5.2f-%-5.2f", ratio.low, ratio.high);
  print_ratio(ratio_to(o, same));
  print_ratio(ratio_to(o, POCL));
  printf(" %5u%s\n", o->code.width, o->code.is_baseline ? " slow" : "");
  (void)fflush(stdout);
}

static void one(table *t, const public_entry *entry) {
  outcome *o = calloc(1, sizeof *o);
  if (!o) bench_fail(t->suite, "out of memory");
  public_workload_make(&o->w, entry);
  o->entry = entry;
  measure(t, o);
  int best = faster(o, GCC, CLANG), same = faster(o, GCC_SAME, CLANG_SAME);
  print_row(o, best, same);
  add_row(t, o, t->suite, "", best);
  add_row(t, o, t->suite, ", same algorithm", same);
  add_row(t, o, "public.pocl", "", POCL);
  if (entry->kind != PUBLIC_REWRITE) {
    count(&t->best, entry->name, ratio_to(o, best).median);
    count(&t->same, entry->name, ratio_to(o, same < 0 ? best : same).median);
    count(&t->pocl, entry->name, ratio_to(o, POCL).median);
  }
  public_workload_free(&o->w);
  free(o);
}

/* --- summary ---------------------------------------------------------------*/

static void add_summary(const table *t, const char *name, double value,
                        const char *note) {
  char full[128];
  (void)snprintf(full, sizeof full, "%s, %s", name,
                 t->is_alone ? "one thread" : "all threads");
  bench_row_add(&(bench_result){.suite = t->suite,
                                .name = full,
                                .unit = "x",
                                .value = value,
                                .best = value,
                                .peer = "",
                                .note = note});
}

static void print_tally(const table *t, const char *name, const tally *y) {
  if (y->count == 0) return;
  double capped = exp(y->log_capped / y->count);
  printf(
      "against %s: geometric mean %.2f (%.2f with ratios capped at %.1f),\n"
      "  %d of %d above %.1f, minimum %.2f (%s)\n",
      name, exp(y->log_sum / y->count), capped, CAP, y->near, y->count, NEAR,
      y->minimum, y->minimum_name);
  char text[96];
  (void)snprintf(text, sizeof text, "geometric mean against %s", name);
  add_summary(t, text, exp(y->log_sum / y->count), "");
  (void)snprintf(text, sizeof text, "geometric mean against %s, capped", name);
  add_summary(t, text, capped, "");
  (void)snprintf(text, sizeof text, "minimum against %s", name);
  add_summary(t, text, y->minimum, y->minimum_name);
}

static void print_head(const table *t) {
  printf("\n%s, %s: milliseconds, medians of at most %d rounds\n", t->suite,
         t->is_alone ? "one thread, by processor time" : "all threads",
         t->rounds);
  printf(
      "C: the faster of gcc and clang; same: the faster twin with the "
      "algorithm "
      "of the kernel;\nratios above 1: vyre is faster; slow: code of the "
      "baseline tier\n\n");
  printf("%-15s%8s%8s%8s%8s%8s%7s %-11s%7s%7s %5s\n", "kernel", "vyre", "gcc",
         "clang", "same", "PoCL", "C/vyre", " quartiles", "same", "PoCL",
         "width");
}

/* Returns false if nothing can be compared. */
static bool open_rivals(table *t, const char *peers) {
  vyre_status st = {0};
  char gcc[32], clang[32];
  const char *why = NULL;
  (void)snprintf(gcc, sizeof gcc, "%s_gcc", peers);
  (void)snprintf(clang, sizeof clang, "%s_clang", peers);
  t->rivals[OURS] =
      public_vyre_open("vyre", t->is_alone ? "cpu.threads=1" : "", &st);
  t->rivals[GCC] = public_peer_open("gcc -O3", gcc, "", t->is_alone);
  t->rivals[CLANG] = public_peer_open("clang-19 -O3", clang, "", t->is_alone);
  t->rivals[GCC_SAME] =
      public_peer_open("gcc -O3, same algorithm", gcc, "_same", t->is_alone);
  t->rivals[CLANG_SAME] = public_peer_open("clang-19 -O3, same algorithm",
                                           clang, "_same", t->is_alone);
  t->rivals[POCL] = public_opencl_open("PoCL", t->is_alone, &why);
  for (int i = GCC; i <= CLANG; i++) {
    if (!t->rivals[i].self) {
      cpu_missing(t->suite, t->rivals[i].name, cpu_peer_missing);
    }
  }
  if (!t->rivals[POCL].self) cpu_missing("public.pocl", "PoCL", why);
  if (!t->rivals[OURS].self) {
    cpu_missing(t->suite, "cpu", st.message);
    return false;
  }
  if (t->rivals[GCC].self || t->rivals[CLANG].self) return true;
  printf("%s: no twin to compare results with: nothing is measured\n",
         t->suite);
  public_vyre_close(&t->rivals[OURS]);
  return false;
}

/* Measures and prints one table. */
static void run_table(const char *suite, const char *peers,
                      const public_entry *entries, int entry_count,
                      bool is_alone) {
  const char *only = getenv("VYRE_BENCH_KERNEL");
  table t = {
      .suite = suite, .is_alone = is_alone, .rounds = cpu_round_count(7)};
  if (!open_rivals(&t, peers)) return;
  print_head(&t);
  for (int i = 0; i < entry_count; i++) {
    if (only && !strstr(entries[i].name, only)) continue;
    one(&t, &entries[i]);
  }
  printf("\n");
  print_tally(&t, "C with the same algorithm", &t.same);
  print_tally(&t, "the best C", &t.best);
  print_tally(&t, "PoCL", &t.pocl);
  public_vyre_close(&t.rivals[OURS]);
}

static void run_suite(const char *suite, const char *peers,
                      const public_entry *entries, int entry_count) {
  cpu_machine_print(suite, "cpu");
  run_table(suite, peers, entries, entry_count, true);
  if (!cpu_is_alone()) run_table(suite, peers, entries, entry_count, false);
}

void bench_public(void) {
  run_suite("public", "public", public_entries, public_entry_count);
}

void bench_public_held(void) {
  run_suite("public.held", "held", public_held_entries, public_held_count);
}

void bench_public_held2(void) {
  run_suite("public.held2", "held2", public_held2_entries, public_held2_count);
}
