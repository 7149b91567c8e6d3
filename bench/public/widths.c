/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite public.width: the vector width that the device chooses, compared with
 * every fixed width. One thread, by processor time. All widths must give the
 * same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rounds.h"
#include "cpu/workload.h"
#include "others.h"
#include "rival.h"

static const char suite[] = "public.width";

static const uint32_t widths[] = {0, 1, 4, 8, 16, 32}; /* 0: automatic */
enum { WIDTHS = sizeof widths / sizeof widths[0] };

/* The automatic width is good enough up to this ratio to the best. */
static const double CLOSE = 1.1;

typedef struct totals {
  int count, close;
  double worst;
  char worst_name[48];
} totals;

typedef struct job {
  public_rival *rival;
  public_workload *w;
} job;

static void run(void *self) {
  const job *j = self;
  int left = j->w->repeat;
  do {
    j->rival->launch(j->rival->self);
  } while (--left > 0);
}

static void reset(void *self) {
  public_workload_reset(((const job *)self)->w);
}

static void check(const job *j, bool is_first) {
  public_workload_clear(j->w);
  j->rival->launch(j->rival->self);
  if (is_first) {
    public_workload_expect(j->w);
    return;
  }
  const char *problem = public_workload_check(j->w, true);
  char what[96];
  (void)snprintf(what, sizeof what, "%s by %s", j->w->name, j->rival->name);
  if (problem) bench_fail(what, problem);
}

static void print_row(const public_workload *w, const cpu_entry *entries,
                      int rounds, int best, double ratio, public_code code) {
  printf("%-20s", w->name);
  for (int i = 0; i < WIDTHS; i++) {
    double ms = cpu_quartiles_of(entries[i].ns, rounds).median / 1e6;
    printf(" %8.3f", ms);
  }
  printf("  %4u %5u%c %6.2f%s\n", widths[best], code.width,
         code.is_baseline ? '*' : ' ', ratio, ratio > CLOSE ? " <" : "");
  (void)fflush(stdout);
}

static void add_row(const public_workload *w, const cpu_entry *entries,
                    int rounds, int best, double ratio) {
  cpu_quartiles ours = cpu_quartiles_of(entries[0].ns, rounds);
  cpu_quartiles peer = cpu_quartiles_of(entries[best].ns, rounds);
  bench_row_add(&(bench_result){.suite = suite,
                                .name = w->name,
                                .unit = "ms",
                                .value = ours.median / 1e6,
                                .best = ours.minimum / 1e6,
                                .peer = entries[best].name,
                                .peer_value = peer.median / 1e6,
                                .peer_best = peer.minimum / 1e6,
                                .ratio = 1 / ratio,
                                .note = "automatic against the best width"});
}

static void count(totals *t, const char *name, double ratio) {
  t->count++;
  t->close += ratio <= CLOSE;
  if (ratio <= t->worst) return;
  t->worst = ratio;
  (void)snprintf(t->worst_name, sizeof t->worst_name, "%s", name);
}

static void measure(public_rival *rivals, public_workload *w, totals *t) {
  job jobs[WIDTHS];
  cpu_entry *entries = calloc(WIDTHS, sizeof *entries);
  public_code code = {0};
  if (!entries) bench_fail(suite, "out of memory");
  for (int i = 0; i < WIDTHS; i++) {
    jobs[i] = (job){&rivals[i], w};
    entries[i] = (cpu_entry){.name = rivals[i].name,
                             .run = run,
                             .before = reset,
                             .self = &jobs[i],
                             .warm = 1,
                             .timed = 3};
    rivals[i].bind(rivals[i].self, w);
    if (i == 0) code = public_vyre_code(&rivals[i]);
    check(&jobs[i], i == 0);
  }
  int rounds = cpu_rounds(entries, WIDTHS, cpu_round_count(7)), best = 1;
  for (int i = 2; i < WIDTHS; i++) {
    if (cpu_quartiles_of(entries[i].ns, rounds).median <
        cpu_quartiles_of(entries[best].ns, rounds).median) {
      best = i;
    }
  }
  double ratio = cpu_paired(&entries[best], &entries[0], rounds).median;
  print_row(w, entries, rounds, best, ratio, code);
  add_row(w, entries, rounds, best, ratio);
  count(t, w->name, ratio);
  for (int i = 0; i < WIDTHS; i++) rivals[i].unbind(rivals[i].self);
  free(entries);
}

static bool is_wanted(const char *name) {
  const char *only = getenv("VYRE_BENCH_KERNEL");
  return !only || strstr(name, only);
}

static void measure_list(public_rival *rivals, const public_entry *entries,
                         int entry_count, totals *t) {
  for (int i = 0; i < entry_count; i++) {
    if (!is_wanted(entries[i].name)) continue;
    public_workload w;
    public_workload_make(&w, &entries[i]);
    measure(rivals, &w, t);
    public_workload_free(&w);
  }
}

static void print_totals(const totals *t) {
  if (t->count == 0) return;
  printf(
      "\nthe automatic width is within 10 %% of the best fixed width on %d of "
      "%d kernels, worst %.2f (%s)\n",
      t->close, t->count, t->worst, t->worst_name);
  bench_row_add(&(bench_result){.suite = suite,
                                .name = "kernels within 10 % of the best width",
                                .unit = "of all",
                                .value = (double)t->close / t->count,
                                .best = (double)t->close / t->count,
                                .peer = "",
                                .note = t->worst_name});
}

void bench_public_widths(void) {
  public_rival rivals[WIDTHS];
  char names[WIDTHS][24], options[48];
  totals t = {0};
  vyre_status st = {0};
  cpu_machine_print(suite, "cpu");
  for (int i = 0; i < WIDTHS; i++) {
    (void)snprintf(names[i], sizeof names[i], i ? "width %u" : "automatic",
                   widths[i]);
    (void)snprintf(options, sizeof options, "cpu.threads=1,cpu.width=%u",
                   widths[i]);
    rivals[i] = public_vyre_open(names[i], options, &st);
    if (!rivals[i].self) {
      cpu_missing(suite, "cpu", st.message);
      return;
    }
  }
  printf(
      "one thread, by processor time: milliseconds, medians; ratio: automatic "
      "to best; *: baseline tier\n\n%-20s",
      "kernel");
  for (int i = 0; i < WIDTHS; i++) {
    printf(" %8s", i ? names[i] + 6 : "auto");
  }
  printf("  best  auto  ratio\n");
  cpu_use_processor_time(true);
  measure_list(rivals, public_entries, public_entry_count, &t);
  measure_list(rivals, public_held_entries, public_held_count, &t);
  measure_list(rivals, public_held2_entries, public_held2_count, &t);
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    if (!is_wanted(cpu_workload_name(i))) continue;
    public_workload w;
    public_wrap_cpu(&w, i);
    measure(rivals, &w, &t);
    public_workload_free(&w);
  }
  measure_list(rivals, public_examples, public_example_count, &t);
  cpu_use_processor_time(false);
  print_totals(&t);
  for (int i = 0; i < WIDTHS; i++) public_vyre_close(&rivals[i]);
}
