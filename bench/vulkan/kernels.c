/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite vulkan.kernels: the kernels of bench/cpu against the same kernels in
 * GLSL, on the same driver.
 *
 *   VYRE_BENCH_VULKAN   the device ("vulkan")
 *   VYRE_BENCH_ROUNDS   rounds (9)
 *   VYRE_BENCH_KERNEL   only workloads whose name contains this text; "forms":
 *                       only the cost of float modes
 *
 * Results are checked before anything is timed: both must be correct, vyre must
 * match ref on small workloads, and both must have the same bits where the
 * operations define them. Kernels with fma also run with a product and a sum,
 * which drivers execute natively. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rounds.h"
#include "side.h"

static const char suite[] = "vulkan.kernels";
static const double BAR = 0.95;

enum { VYRE, GLSL, SIDES };

/* Float operations of a kernel, by the names of the probe, and whether it uses
 * exp. GLSL may round an fma twice, and its exp depends on the driver. */
typedef struct needs {
  const char *operations[4];
  bool has_exp;
} needs;

static const needs needed[CPU_KERNELS] = {
    [CPU_KERNEL_saxpy] = {{"f32 fma"}, false},
    [CPU_KERNEL_mandelbrot] = {{"f32 fma", "f32 +", "f32 *", "f32 <="}, false},
    [CPU_KERNEL_reduce] = {{"f32 +"}, false},
    [CPU_KERNEL_softmax] = {{"f32 max", "f32 /", "f32 -", "f32 *"}, true},
    [CPU_KERNEL_matmul_naive] = {{"f32 fma"}, false},
    [CPU_KERNEL_matmul_tiled] = {{"f32 fma"}, false},
    [CPU_KERNEL_matmul_blocked] = {{"f32 fma"}, false},
    [CPU_KERNEL_stencil] = {{"f32 +", "f32 *"}, false},
    [CPU_KERNEL_histogram] = {{NULL}, false},
    [CPU_KERNEL_bfs] = {{NULL}, false},
    [CPU_KERNEL_match] = {{NULL}, false},
    [CPU_KERNEL_exp] = {{NULL}, true}};

/* Workload sizes and launches per run for software devices, in the order of the
 * workloads. They need seconds for what a CPU does in milliseconds. */
static const struct {
  size_t size;
  int repeat;
} software_sizes[CPU_WORKLOADS] = {
    {65536, 10},  {2 << 20, 1}, {256, 1},     {65536, 2},  {1 << 20, 1},
    {128, 1},     {128, 1},     {128, 1},     {128, 1},    {512, 1},
    {2 << 20, 1}, {1 << 16, 1}, {1 << 20, 1}, {1 << 18, 1}};

typedef struct result {
  cpu_workload *w;
  bool is_plain;
  int rounds;
  bool has_same_bits;
  const char *not_native; /* first operation that is not native, or NULL */
  const char *form;       /* its float mode */
  cpu_entry entries[SIDES];
} result;

typedef struct means {
  double sum;
  int count, met;
} means;

static bool has_fma(cpu_kernel kernel) {
  const char *first = needed[kernel].operations[0];
  return first && strcmp(first, "f32 fma") == 0;
}

/* --- native operations ---------------------------------------------------- */

static void classify(const vyre_device *device, result *o) {
  static const char *const names[] = {"native", "corrected", "soft"};
  const needs *n = &needed[o->w->kernel];
  for (int i = 0; i < 4 && n->operations[i] && !o->not_native; i++) {
    if (o->is_plain && strcmp(n->operations[i], "f32 fma") == 0) continue;
    const vyre_float_op_info *c = bench_number(device, n->operations[i]);
    if (c->mode == VYRE_FLOAT_MODE_NATIVE) continue;
    o->not_native = n->operations[i];
    o->form = names[c->mode];
  }
  if (n->has_exp && !o->not_native) {
    o->not_native = "exp";
    o->form = "correctly rounded";
  }
}

/* --- correctness ---------------------------------------------------------- */

static void run_once(const vulkan_side *s, cpu_workload *w) {
  cpu_workload_restore(w, cpu_shapes[w->kernel].written);
  s->upload(s->self, UINT32_MAX);
  s->launch(s->self);
  s->fetch(s->self);
}

/* Compares with a tolerance: the exp of drivers is a few ulp off, or more. */
static bool is_near(const float *got, const float *want, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!(fabsf(got[i] - want[i]) <= 1e-4f * fabsf(want[i]))) return false;
  }
  return true;
}

/* Runs a workload and checks its result. @p ours: the result of vyre, or NULL
 * if @p s is vyre. */
static void check(const vulkan_side *s, cpu_workload *w, const float *ours) {
  run_once(s, w);
  const char *problem = NULL;
  if (!ours || !needed[w->kernel].has_exp) {
    problem = cpu_workload_check(w);
  } else {
    cpu_buffer y = w->args.buffers[cpu_shapes[w->kernel].buffers - 1];
    if (!is_near(y.data, ours, y.size / 4))
      problem = "too far from the result of vyre";
  }
  if (!problem) return;
  char what[128];
  (void)snprintf(what, sizeof what, "%s by %s", w->name, s->name);
  bench_fail(what, problem);
}

static bool has_equal_outputs(const cpu_workload *a, const cpu_workload *b) {
  for (uint32_t i = 0; i < cpu_shapes[a->kernel].buffers; i++) {
    if (memcmp(a->args.buffers[i].data, b->args.buffers[i].data,
               a->args.buffers[i].size) != 0)
      return false;
  }
  return true;
}

/* Runs a small workload on @p s. */
static void run_small_workload(vulkan_side *s, cpu_workload *w, int index,
                               bool is_plain) {
  cpu_workload_make(w, index, true);
  if (!s->bind(s->self, w, is_plain)) bench_fail(s->name, "has no kernel");
  run_once(s, w);
  s->unbind(s->self);
  cpu_workload_sort_nodes(w);
}

/* Compares results of small workloads that do not fill their last workgroup. */
static void compare_small(vulkan_side *sides, result *o, int index) {
  vyre_status st = {0};
  vyre_device *ref;
  cpu_workload ours, glsl, exact;
  vulkan_check(vyre_device_open(NULL, "ref", &ref, &st), &st, "ref");
  vulkan_side reference = vulkan_side_vyre(ref, "ref");
  run_small_workload(&sides[VYRE], &ours, index, o->is_plain);
  run_small_workload(&sides[GLSL], &glsl, index, o->is_plain);
  run_small_workload(&reference, &exact, index, o->is_plain);
  if (!has_equal_outputs(&ours, &exact))
    bench_fail(ours.name, "the bits differ from ref");
  o->has_same_bits = has_equal_outputs(&ours, &glsl);
  bool must_be =
      !needed[ours.kernel].has_exp && (o->is_plain || !has_fma(ours.kernel));
  if (must_be && !o->has_same_bits)
    bench_fail(ours.name, "vyre and GLSL must have the same bits, but differ");
  cpu_workload_free(&ours);
  cpu_workload_free(&glsl);
  cpu_workload_free(&exact);
  vulkan_side_free(&reference);
  vyre_device_release(ref);
}

/* --- running -------------------------------------------------------------- */

typedef struct side_run {
  vulkan_side *side;
  cpu_workload *w;
} side_run;

static void run(void *self) {
  const side_run *j = self;
  for (int i = 0; i < j->w->repeat; i++) j->side->launch(j->side->self);
}

static void reset(void *self) {
  const side_run *j = self;
  cpu_workload_restore(j->w, j->w->reset);
  j->side->upload(j->side->self, j->w->reset);
}

static void measure(vulkan_side *sides, result *o) {
  side_run runs[SIDES];
  uint32_t last_buffer = cpu_shapes[o->w->kernel].buffers - 1;
  float *ours = malloc(o->w->args.buffers[last_buffer].size);
  if (!ours) bench_fail(suite, "out of memory");
  for (int i = 0; i < SIDES; i++) {
    runs[i] = (side_run){&sides[i], o->w};
    o->entries[i] = (cpu_entry){.name = sides[i].name,
                                .run = run,
                                .self = &runs[i],
                                .before = o->w->reset ? reset : NULL,
                                .warm = 1,
                                .timed = 5};
    if (!sides[i].bind(sides[i].self, o->w, o->is_plain))
      bench_fail(sides[i].name, "has no kernel");
    check(&sides[i], o->w, i == VYRE ? NULL : ours);
    cpu_buffer last = o->w->args.buffers[last_buffer];
    if (i == VYRE) memcpy(ours, last.data, last.size);
  }
  free(ours);
  o->rounds = cpu_rounds(o->entries, SIDES, o->rounds);
  for (int i = 0; i < SIDES; i++) sides[i].unbind(sides[i].self);
}

/* --- rows ----------------------------------------------------------------- */

static double rate(const result *o, double ns) {
  return ns > 0 ? o->w->amount * o->w->repeat / ns : 0;
}

static void add_row(const result *o, means *m) {
  char name[96], note[160];
  cpu_quartiles ours = cpu_quartiles_of(o->entries[VYRE].ns, o->rounds);
  cpu_quartiles glsl = cpu_quartiles_of(o->entries[GLSL].ns, o->rounds);
  cpu_quartiles ratio =
      cpu_paired(&o->entries[VYRE], &o->entries[GLSL], o->rounds);
  (void)snprintf(name, sizeof name, "%s%s", o->w->name,
                 o->is_plain ? ", * and +" : "");
  const char *bits = o->has_same_bits ? "same bits" : "within a tolerance";
  if (o->not_native) {
    (void)snprintf(note, sizeof note, "%s is %s: no bar; %s", o->not_native,
                   o->form, bits);
  } else {
    bool is_met = ratio.median >= BAR;
    m->sum += log(ratio.median);
    m->count++;
    m->met += is_met;
    (void)snprintf(note, sizeof note, "%s: at least %.2f; %s",
                   is_met ? "met" : "not met", BAR, bits);
  }
  printf("%-28s %-7s %9.2f %9.2f %7.2fx %7.2fx  %s\n", name, o->w->unit,
         rate(o, ours.median), rate(o, glsl.median), ratio.median,
         glsl.minimum / ours.minimum, note);
  (void)fflush(stdout);
  bench_row_add(&(bench_result){.suite = suite,
                                .name = name,
                                .unit = o->w->unit,
                                .value = rate(o, ours.median),
                                .best = rate(o, ours.minimum),
                                .peer = "GLSL",
                                .peer_value = rate(o, glsl.median),
                                .peer_best = rate(o, glsl.minimum),
                                .ratio = ratio.median,
                                .ratio_low = ratio.low,
                                .ratio_high = ratio.high,
                                .note = note});
}

static void run_workload(const vulkan_devices *g, vulkan_side *sides, int index,
                         bool is_plain, means *m) {
  cpu_workload w;
  result *o = calloc(1, sizeof *o);
  if (!o) bench_fail(suite, "out of memory");
  if (raw_is_software(g->r)) {
    cpu_workload_make_sized(&w, index, software_sizes[index].size,
                            software_sizes[index].repeat);
  } else {
    cpu_workload_make(&w, index, false);
  }
  *o = (result){.w = &w, .is_plain = is_plain, .rounds = cpu_round_count(9)};
  classify(g->device, o);
  compare_small(sides, o, index);
  measure(sides, o);
  add_row(o, m);
  cpu_workload_free(&w);
  free(o);
}

static bool has_modules(const vulkan_devices *g) {
  raw_kernel *k = raw_kernel_create(g->r, "saxpy", 2, 2);
  raw_kernel_free(k);
  return k != NULL;
}

void bench_vulkan_kernels(void) {
  const char *only = getenv("VYRE_BENCH_KERNEL");
  vulkan_devices g;
  means m = {0};
  if (!vulkan_open(&g, suite)) return;
  if (!has_modules(&g)) {
    cpu_missing(suite, "GLSL", vulkan_no_modules);
    vulkan_close(&g);
    return;
  }
  vulkan_side sides[SIDES] = {[VYRE] = vulkan_side_vyre(g.device, "vyre"),
                              [GLSL] = vulkan_side_raw(g.r, "GLSL")};
  vulkan_print(&g, suite);
  if (raw_is_software(g.r)) printf("a software device: smaller sizes\n");
  printf(
      "both record each dispatch; ratio of medians round by round, and of "
      "best times\n\n%-28s %-7s %9s %9s %8s %8s\n",
      "", "", "vyre", "GLSL", "ratio", "of best");
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    cpu_workload w;
    const char *name = cpu_workload_name(i);
    if (only && !strstr(name, only)) continue;
    run_workload(&g, sides, i, false, &m);
    cpu_workload_make(&w, i, true);
    bool has_plain = has_fma(w.kernel);
    cpu_workload_free(&w);
    if (has_plain) run_workload(&g, sides, i, true, &m);
  }
  if (m.count > 0) {
    double mean = exp(m.sum / m.count);
    printf("\n%d of %d rows with a bar are met; geometric mean %.2fx\n", m.met,
           m.count, mean);
    bench_row_add(&(bench_result){.suite = suite,
                                  .name = "kernels whose operations are native",
                                  .unit = "",
                                  .value = mean,
                                  .best = mean,
                                  .peer = "GLSL",
                                  .peer_value = 1,
                                  .peer_best = 1,
                                  .ratio = mean,
                                  .note = "geometric mean"});
  }
  printf("\n");
  if (!only || strcmp(only, "forms") == 0) bench_forms(suite, g.device);
  printf("\n");
  for (int i = 0; i < SIDES; i++) vulkan_side_free(&sides[i]);
  vulkan_close(&g);
}
