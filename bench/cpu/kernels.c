/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite cpu.kernels: throughput of kernels, compared with C and PoCL.
 *
 *   VYRE_BENCH_DEVICE   the device ("cpu"); ref: small sizes; none: peers only
 *   VYRE_BENCH_ROUNDS   rounds (11)
 *   VYRE_BENCH_THREADS  1: one thread each, measured by processor time
 *   VYRE_BENCH_KERNEL   only workloads whose name contains this
 *
 * Every rival works on the same memory, and its results are checked before it
 * is timed. On a small size of each workload, vyre must also match ref bit for
 * bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "machine.h"
#include "rival.h"
#include "rounds.h"

static const char suite[] = "cpu.kernels";

enum { STRICT, RELAXED, GCC, CLANG, POCL, GCC_FAST, CLANG_FAST, ALONE, RIVALS };

/* Results of one workload. */
typedef struct outcome {
  cpu_workload *w;
  int rounds;
  cpu_entry entries[RIVALS];
} outcome;

/* Logarithms of ratios, for geometric means. */
typedef struct means {
  double best, pocl, relaxed;
  int best_count, pocl_count, relaxed_count, met, asked;
  double cores[CPU_WORKLOADS]; /* all cores against one; 0: not measured */
} means;

/* --- running ---------------------------------------------------------------*/

typedef struct job {
  cpu_rival rival;
  cpu_workload *w;
} job;

static void run(void *self) {
  const job *j = self;
  for (int i = 0; i < j->w->repeat; i++) j->rival.launch(j->rival.self);
}

static void reset(void *self) {
  const job *j = self;
  cpu_workload_restore(j->w, j->w->reset);
}

static void check(const job *j) {
  cpu_workload_restore(j->w, cpu_shapes[j->w->kernel].written);
  j->rival.launch(j->rival.self);
  const char *problem = cpu_workload_check(j->w);
  if (!problem) return;
  char what[128];
  (void)snprintf(what, sizeof what, "%s by %s", j->w->name, j->rival.name);
  bench_fail(what, problem);
}

static void measure(const cpu_rival *rivals, outcome *o) {
  job jobs[RIVALS];
  for (int i = 0; i < RIVALS; i++) {
    jobs[i] = (job){rivals[i], o->w};
    o->entries[i] = (cpu_entry){.name = rivals[i].name,
                                .self = &jobs[i],
                                .before = o->w->reset ? reset : NULL,
                                .warm = 2,
                                .timed = 5};
    if (!rivals[i].self) continue;
    if (i == ALONE && o->w->bound != CPU_COMPUTE) continue;
    o->entries[i].run = run;
    rivals[i].bind(rivals[i].self, o->w);
    check(&jobs[i]);
  }
  o->rounds = cpu_rounds(o->entries, RIVALS, o->rounds);
  for (int i = 0; i < RIVALS; i++) {
    if (o->entries[i].run) rivals[i].unbind(rivals[i].self);
  }
}

/* --- bit-identical results -------------------------------------------------*/

static void run_once(const cpu_rival *rival, cpu_workload *w) {
  rival->bind(rival->self, w);
  rival->launch(rival->self);
  rival->unbind(rival->self);
  cpu_workload_sort_nodes(w);
}

/* Compares small sizes, none of which is a multiple of the workgroup size. */
static void compare_with_ref(const cpu_rival *ours, int index) {
  vyre_status st = {0};
  cpu_vyre *ref = cpu_vyre_open("ref", false, 0, &st);
  if (!ref) bench_fail("ref", st.message);
  cpu_rival other = cpu_vyre_rival(ref, "ref");
  cpu_workload mine, theirs;
  cpu_workload_make(&mine, index, true);
  cpu_workload_make(&theirs, index, true);
  run_once(ours, &mine);
  run_once(&other, &theirs);
  for (uint32_t i = 0; i < cpu_shapes[mine.kernel].buffers; i++) {
    if (memcmp(mine.args.buffers[i].data, theirs.args.buffers[i].data,
               mine.args.buffers[i].size) != 0) {
      bench_fail(mine.name, "the bits are not those of ref");
    }
  }
  cpu_workload_free(&mine);
  cpu_workload_free(&theirs);
  cpu_vyre_close(ref);
}

/* --- rows ------------------------------------------------------------------*/

static double rate(const outcome *o, double ns) {
  return ns > 0 ? o->w->amount * o->w->repeat / ns : 0;
}

static cpu_quartiles times(const outcome *o, int rival) {
  if (!o->entries[rival].run) return (cpu_quartiles){0};
  return cpu_quartiles_of(o->entries[rival].ns, o->rounds);
}

/* Returns the one of gcc, clang and PoCL with the best median, or -1. */
static int best_peer(const outcome *o) {
  int best = -1;
  for (int i = GCC; i <= POCL; i++) {
    if (!o->entries[i].run) continue;
    if (best < 0 || times(o, i).median < times(o, best).median) best = i;
  }
  return best;
}

static void add_row(const outcome *o, const char *what, int ours, int peer,
                    const char *note) {
  char name[96];
  (void)snprintf(name, sizeof name, "%s%s%s", o->w->name, what[0] ? ", " : "",
                 what);
  cpu_quartiles mine = times(o, ours), their = times(o, peer), ratio = {0};
  if (o->entries[ours].run && o->entries[peer].run) {
    ratio = cpu_paired(&o->entries[ours], &o->entries[peer], o->rounds);
  }
  bench_row_add(&(bench_result){.suite = suite,
                                .name = name,
                                .unit = o->w->unit,
                                .value = rate(o, mine.median),
                                .best = rate(o, mine.minimum),
                                .peer = o->entries[peer].name,
                                .peer_value = rate(o, their.median),
                                .peer_best = rate(o, their.minimum),
                                .ratio = ratio.median,
                                .ratio_low = ratio.low,
                                .ratio_high = ratio.high,
                                .note = note});
}

static void add_rows(const outcome *o, int best, bool is_met) {
  bool is_memory = o->w->bound == CPU_MEMORY;
  if (best >= 0) {
    add_row(o, "", STRICT, best,
            !o->entries[STRICT].run ? "not measured"
            : is_met                ? is_memory ? "met, memory-bound" : "met"
            : is_memory             ? "not met, memory-bound"
                                    : "not met");
  }
  for (int i = GCC; i <= CLANG_FAST; i++) {
    char what[64];
    (void)snprintf(what, sizeof what, "against %s", o->entries[i].name);
    add_row(o, what, STRICT, i,
            !o->entries[i].run ? "the peer is not installed"
            : i > POCL         ? "no bar"
                               : "");
  }
  if (!o->entries[STRICT].run) return;
  add_row(o, "strict against relaxed", STRICT, RELAXED, "");
  if (o->entries[ALONE].run)
    add_row(o, "all cores against one", STRICT, ALONE,
            "at least 1.8 on two cores");
}

/* --- the table -------------------------------------------------------------*/

static void print_rate(const outcome *o, int rival, int best) {
  double value = rate(o, times(o, rival).median);
  if (value > 0) {
    printf(" %6.*f%c",
           value < 10    ? 2
           : value < 100 ? 1
                         : 0,
           value, rival == best ? '*' : ' ');
  } else {
    printf("      - ");
  }
}

static void print_row(const outcome *o, int best, cpu_quartiles ratio,
                      bool is_met) {
  printf("%-19s %-7s", o->w->name, o->w->unit);
  for (int i = STRICT; i <= CLANG_FAST; i++) print_rate(o, i, best);
  if (ratio.median > 0) {
    int digits = ratio.high < 10 ? 2 : 1; /* at most 100 columns */
    printf("%c%5.2f %.*f-%.*f", is_met ? ' ' : '<', ratio.median, digits,
           ratio.low, digits, ratio.high);
  }
  printf("\n");
  (void)fflush(stdout);
}

static void print_head(const char *device, int rounds, bool is_small) {
  cpu_machine_print(suite, device);
  cpu_peers_print();
  if (cpu_is_alone()) printf("one thread each, by processor time\n");
  if (is_small) printf("small sizes: these say little of speed\n");
  printf(
      "medians of at most %d rounds; ratio: time of the best -O3 peer (*) over "
      "strict, paired in\n",
      rounds);
  printf(
      "rounds, with quartiles; <: below 1, or its upper quartile where memory "
      "limits\n\n");
  printf("%-27s %-15s %-23s %s\n", "", "  vyre", "   -O3", "   -ffast-math");
  printf("%-19s %-7s", "kernel", "unit");
  static const char *const titles[] = {"strict", "relaxed", "gcc",  "clang",
                                       "PoCL",   "gcc",     "clang"};
  for (int i = STRICT; i <= CLANG_FAST; i++) printf("%7s ", titles[i]);
  printf("  ratio quartiles\n");
}

static void print_cores(const means *m) {
  int column = printf("all cores against one:");
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    if (m->cores[i] <= 0) continue;
    if (column > 80) column = printf("\n ") - 1;
    column += printf(" %s %.2f", cpu_workload_name(i), m->cores[i]);
  }
  printf("\n");
}

static void add_mean(const char *name, double sum, int count, const char *peer,
                     const char *note) {
  if (count == 0) return;
  double mean = exp(sum / count);
  printf("geometric mean %-44s %6.2f over %d\n", name, mean, count);
  bench_row_add(&(bench_result){.suite = suite,
                                .name = name,
                                .unit = "x",
                                .value = mean,
                                .best = mean,
                                .peer = peer,
                                .peer_value = 1,
                                .peer_best = 1,
                                .ratio = mean,
                                .note = note});
}

/* --- the suite -------------------------------------------------------------*/

static void one(const cpu_rival *rivals, int index, int rounds, bool is_small,
                means *m) {
  cpu_workload w;
  outcome *o = calloc(1, sizeof *o);
  if (!o) bench_fail(suite, "out of memory");
  if (rivals[STRICT].self && !is_small)
    compare_with_ref(&rivals[STRICT], index);
  cpu_workload_make(&w, index, is_small);
  o->w = &w;
  o->rounds = rounds;
  measure(rivals, o);
  rounds = o->rounds;
  int best = best_peer(o);
  cpu_quartiles ratio = {0};
  bool is_met = true;
  if (o->entries[STRICT].run && best >= 0) {
    ratio = cpu_paired(&o->entries[STRICT], &o->entries[best], rounds);
    is_met = (w.bound == CPU_MEMORY ? ratio.high : ratio.median) >= 1;
    m->best += log(ratio.median);
    m->best_count++;
    m->asked++;
    m->met += is_met;
  }
  if (o->entries[STRICT].run && o->entries[POCL].run) {
    m->pocl +=
        log(cpu_paired(&o->entries[STRICT], &o->entries[POCL], rounds).median);
    m->pocl_count++;
  }
  if (o->entries[STRICT].run && o->entries[RELAXED].run) {
    m->relaxed += log(
        cpu_paired(&o->entries[RELAXED], &o->entries[STRICT], rounds).median);
    m->relaxed_count++;
  }
  if (o->entries[STRICT].run && o->entries[ALONE].run) {
    m->cores[index] =
        cpu_paired(&o->entries[STRICT], &o->entries[ALONE], rounds).median;
  }
  print_row(o, best, ratio, is_met);
  add_rows(o, best, is_met);
  cpu_workload_free(&w);
  free(o);
}

/* Returns false if the device is not available: nothing can be compared
 * then. */
static bool open_rivals(cpu_rival *rivals, const char *device) {
  vyre_status st = {0};
  const char *why = NULL;
  bool has_device = strcmp(device, "none") != 0;
  cpu_vyre *strict = NULL, *relaxed = NULL, *alone = NULL;
  if (has_device) strict = cpu_vyre_open(device, cpu_is_alone(), 0, &st);
  if (has_device && !strict) {
    cpu_missing(suite, device, st.message);
    return false;
  }
  if (strict) relaxed = cpu_vyre_open(device, cpu_is_alone(), 1, &st);
  if (strict && strcmp(device, "ref") != 0 && !cpu_is_alone()) {
    alone = cpu_vyre_open(device, true, 0, &st);
  }
  rivals[STRICT] = cpu_vyre_rival(strict, "vyre");
  rivals[RELAXED] = cpu_vyre_rival(relaxed, "vyre, ulp_budget 1");
  rivals[ALONE] = cpu_vyre_rival(alone, "vyre, one thread");
  static const struct {
    int at;
    const char *object, *name;
  } peers[] = {{GCC, "gcc", "gcc -O3"},
               {CLANG, "clang", "clang-19 -O3"},
               {GCC_FAST, "gcc_fast", "gcc -O3 -ffast-math"},
               {CLANG_FAST, "clang_fast", "clang-19 -O3 -ffast-math"}};
  for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
    const cpu_peer *peer = cpu_peer_load(peers[i].object);
    rivals[peers[i].at] = cpu_peer_rival(peer, peers[i].name);
    if (!peer) cpu_missing(suite, peers[i].name, cpu_peer_missing);
    if (peer && cpu_is_alone()) peer->threads(1);
  }
  cpu_opencl *cl = cpu_opencl_open(cpu_is_alone() ? "basic" : "pthread", &why);
  rivals[POCL] = cpu_opencl_rival(cl, "PoCL");
  if (!cl) cpu_missing(suite, "PoCL", why);
  return true;
}

void bench_cpu_kernels(void) {
  const char *device = cpu_device_name(), *only = getenv("VYRE_BENCH_KERNEL");
  bool is_small = strcmp(device, "ref") == 0;
  int rounds = cpu_round_count(11);
  cpu_rival rivals[RIVALS];
  means m = {0};
  if (!open_rivals(rivals, device)) return;
  print_head(device, rounds, is_small);
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    if (only && !strstr(cpu_workload_name(i), only)) continue;
    one(rivals, i, rounds, is_small, &m);
  }
  printf("\n");
  add_mean("against the best peer", m.best, m.best_count, "the best peer",
           "geometric mean");
  add_mean("against PoCL", m.pocl, m.pocl_count, "PoCL",
           "geometric mean, at least 6");
  add_mean("of relaxed against strict", m.relaxed, m.relaxed_count, "vyre",
           "geometric mean, at most 1.1");
  if (rivals[ALONE].self) print_cores(&m);
  if (m.asked > 0) printf("%d of %d rows are met\n", m.met, m.asked);
  printf("\n");
  cpu_vyre_close(rivals[STRICT].self);
  cpu_vyre_close(rivals[RELAXED].self);
  cpu_vyre_close(rivals[ALONE].self);
}
