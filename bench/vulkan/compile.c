/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite vulkan.compile: the time to open a device and to compile a kernel from
 * its source, against hand-written Vulkan with SPIR-V modules. Each measurement
 * has its own process, and the driver's caches are off. VYRE_BENCH_VULKAN as in
 * kernels.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rival.h"
#include "cpu/rounds.h"
#include "side.h"

int setenv(const char *name, const char *value, int overwrite);
char *mkdtemp(char *pattern);

static const char suite[] = "vulkan.compile";

enum { REPEATS = 7, FIGURES = 2 + 2 * CPU_KERNELS };

/* --- child processes ------------------------------------------------------ */

typedef void child_work(const char *directory, double *figures);

typedef struct child_task {
  const char *name;
  child_work *run;
} child_task;

/* Runs a task in a new process, because this one may have loaded the driver
 * already. The process runs this program again, and returns its figures through
 * a pipe. @p directory: cache directory of vyre; "": no cache. Returns false on
 * failure; the figures are 0 then. */
static bool run_in_child(const child_task *task, const char *directory,
                         double *figures) {
  int ends[2], status = 0;
  size_t size = FIGURES * sizeof *figures;
  memset(figures, 0, size);
  (void)fflush(stdout);
  if (pipe(ends) != 0) return false;
  pid_t child = fork();
  if (child == 0) {
    (void)dup2(ends[1], 3);
    (void)setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    (void)setenv("VYRE_BENCH_CHILD", task->name, 1);
    (void)setenv("VYRE_BENCH_CHILD_CACHE", directory, 1);
    (void)execl("/proc/self/exe", "vyre-bench", (char *)NULL);
    _exit(127);
  }
  (void)close(ends[1]);
  bool is_read = child > 0 && read(ends[0], figures, size) == (ssize_t)size;
  (void)close(ends[0]);
  if (child > 0) (void)waitpid(child, &status, 0);
  return is_read && status == 0;
}

static double since(double start) {
  return (bench_now_ns() - start) / 1e6;
}

typedef struct open_device {
  vyre_context *context;
  vyre_device *device;
} open_device;

static bool open_vyre_device(open_device *p, const char *directory,
                             vyre_status *st) {
  const vyre_context_options options = {
      .cache_directory = directory, .trace_file = "", .faults = ""};
  *p = (open_device){0};
  vulkan_check(vyre_context_create(&options, &p->context, st), st, suite);
  return vyre_device_open(p->context, vulkan_device_name(), &p->device, st) ==
         VYRE_OK;
}

/* Measures the first open of the process, and a second one next to it. */
static void open_vyre(const char *directory, double *figures) {
  open_device first, second;
  vyre_status st = {0};
  double start = bench_now_ns();
  if (!open_vyre_device(&first, directory, &st)) return;
  figures[0] = since(start);
  start = bench_now_ns();
  if (!open_vyre_device(&second, directory, &st)) return;
  figures[1] = since(start);
}

static void open_raw(const char *directory, double *figures) {
  const char *reason;
  (void)directory;
  double start = bench_now_ns();
  if (raw_open(vulkan_device_index(), &reason)) figures[0] = since(start);
  start = bench_now_ns();
  if (raw_open(vulkan_device_index(), &reason)) figures[1] = since(start);
}

/* Measures compiling from text, and the first dispatch of a small workload. */
static void compile_vyre(const char *directory, double *figures) {
  open_device p;
  vyre_status st = {0};
  if (!open_vyre_device(&p, directory, &st)) return;
  vulkan_side s = vulkan_side_vyre(p.device, "vyre");
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    cpu_workload w;
    cpu_workload_make(&w, i, true);
    size_t k = (size_t)w.kernel;
    if (figures[2 * k] > 0) {
      cpu_workload_free(&w);
      continue;
    }
    double start = bench_now_ns();
    vyre_pipeline *ready = vulkan_compile(p.device, cpu_shapes[k].file, false);
    figures[2 * k] = since(start);
    (void)s.bind(s.self, &w, false); /* reuses the cached pipeline */
    start = bench_now_ns();
    s.launch(s.self);
    figures[2 * k + 1] = since(start);
    s.unbind(s.self);
    vyre_pipeline_release(ready);
    cpu_workload_free(&w);
  }
}

/* Measures pipeline creation from SPIR-V, and the first dispatch: some drivers
 * compile then. */
static void compile_raw(const char *directory, double *figures) {
  const char *reason;
  (void)directory;
  raw *r = raw_open(vulkan_device_index(), &reason);
  if (!r) return;
  vulkan_side s = vulkan_side_raw(r, "raw");
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    cpu_workload w;
    cpu_workload_make(&w, i, true);
    size_t k = (size_t)w.kernel;
    if (figures[2 * k] <= 0) {
      double start = bench_now_ns();
      if (!s.bind(s.self, &w, false)) return;
      figures[2 * k] = since(start);
      start = bench_now_ns();
      s.launch(s.self);
      figures[2 * k + 1] = since(start);
      s.unbind(s.self);
    }
    cpu_workload_free(&w);
  }
}

/* Sets the figures to 1 for each device that opens. */
static void try_open(const char *directory, double *figures) {
  vyre_status st = {0};
  open_device p;
  const char *reason;
  figures[0] = raw_open(vulkan_device_index(), &reason) != NULL;
  figures[1] = open_vyre_device(&p, directory, &st);
}

/* --- rows ----------------------------------------------------------------- */

static void add_row(const char *name, cpu_quartiles ours, const char *peer,
                    cpu_quartiles their, const char *note) {
  double ratio =
      ours.median > 0 && their.median > 0 ? their.median / ours.median : 0;
  printf("%-34s %10.3f", name, ours.median);
  if (ratio > 0) {
    printf(" %10.3f %7.2fx  %s\n", their.median, ratio, note);
  } else {
    printf(" %10s %8s  %s\n", "-", "-", note);
  }
  (void)fflush(stdout);
  bench_row_add(&(bench_result){.suite = suite,
                                .name = name,
                                .unit = "ms",
                                .value = ours.median,
                                .best = ours.minimum,
                                .peer = peer,
                                .peer_value = their.median,
                                .peer_best = their.minimum,
                                .ratio = ratio,
                                .note = note});
}

/* Returns the quartiles of figure @p at over all repeats. */
static cpu_quartiles figure_of(double all[REPEATS][FIGURES], int at) {
  double values[REPEATS];
  for (int i = 0; i < REPEATS; i++) values[i] = all[i][at];
  return cpu_quartiles_of(values, REPEATS);
}

enum { OPEN_VYRE, OPEN_RAW, COMPILE_VYRE, COMPILE_RAW, TRY };

static const child_task tasks[] = {{"open vyre", open_vyre},
                                   {"open raw", open_raw},
                                   {"compile vyre", compile_vyre},
                                   {"compile raw", compile_raw},
                                   {"try", try_open}};

int bench_vulkan_child(const char *name) {
  double figures[FIGURES] = {0};
  const char *directory = getenv("VYRE_BENCH_CHILD_CACHE");
  for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
    if (strcmp(tasks[i].name, name) != 0) continue;
    tasks[i].run(directory ? directory : "", figures);
    return write(3, figures, sizeof figures) == (ssize_t)sizeof figures ? 0 : 1;
  }
  return 1;
}

static void must_run(int task, const char *directory, double *figures) {
  if (!run_in_child(&tasks[task], directory, figures))
    bench_fail(tasks[task].name, "the child process failed");
}

static void shell(const char *command) {
  /* NOLINTNEXTLINE(cert-env33-c): fixed command in the temporary folder */
  if (system(command) != 0) bench_fail(command, "failed");
}

/* Creates a cache with the probe results of @p from, and without kernels. */
static void copy_probe(const char *from, const char *to) {
  char command[3400];
  (void)snprintf(command, sizeof command,
                 "mkdir -m 700 '%s' && find '%s' -maxdepth 1 -name 'probe-*' "
                 "-exec cp {} '%s' ';'",
                 to, from, to);
  shell(command);
}

static void report_open(const char *cache) {
  static double bare[REPEATS][FIGURES], probed[REPEATS][FIGURES],
      hand[REPEATS][FIGURES];
  must_run(OPEN_VYRE, cache, bare[0]); /* stores the probe results */
  for (int i = 0; i < REPEATS; i++) {
    must_run(OPEN_VYRE, cache, bare[i]);
    must_run(OPEN_RAW, "", hand[i]);
    if (i < 3) must_run(OPEN_VYRE, "", probed[i]);
  }
  char note[64];
  cpu_quartiles mine = figure_of(bare, 0), hand_ms = figure_of(hand, 0);
  (void)snprintf(note, sizeof note, "%s: raw Vulkan's and 1 ms",
                 mine.median <= hand_ms.median + 1 ? "met" : "not met");
  add_row("open, the probe remembered", mine, "raw Vulkan", hand_ms, note);
  add_row("open again, the first still there", figure_of(bare, 1), "raw Vulkan",
          figure_of(hand, 1), "no bar");
  double values[3] = {probed[0][0], probed[1][0], probed[2][0]};
  add_row("open, with the probe", cpu_quartiles_of(values, 3), "",
          (cpu_quartiles){0}, "once for each driver");
}

/* Measures compiling with an empty cache and with a filled one. Both have the
 * probe results: a process that runs the probe compiles a hundred kernels
 * first. */
static void report_kernels(const char *cache) {
  enum { FRESH = 5 };
  static double fresh[FRESH][FIGURES], disk[FRESH][FIGURES],
      hand[FRESH][FIGURES];
  for (int i = 0; i < FRESH; i++) {
    char folder[1100];
    (void)snprintf(folder, sizeof folder, "%s/turn%d", cache, i);
    copy_probe(cache, folder);
    must_run(COMPILE_VYRE, folder, fresh[i]); /* fills the cache */
    must_run(COMPILE_RAW, "", hand[i]);
    must_run(COMPILE_VYRE, folder, disk[i]);
  }
  double all[3] = {0};
  for (size_t k = 0; k < CPU_KERNELS; k++) {
    double of_vyre[FRESH], of_disk[FRESH], of_raw[FRESH], first[FRESH];
    for (int i = 0; i < FRESH; i++) {
      of_vyre[i] = fresh[i][2 * k];
      of_disk[i] = disk[i][2 * k];
      first[i] = fresh[i][2 * k + 1];
      of_raw[i] = hand[i][2 * k] + hand[i][2 * k + 1];
    }
    char name[64], note[64];
    cpu_quartiles v = cpu_quartiles_of(of_vyre, FRESH);
    cpu_quartiles d = cpu_quartiles_of(of_disk, FRESH);
    cpu_quartiles r = cpu_quartiles_of(of_raw, FRESH);
    (void)snprintf(name, sizeof name, "%s, compiled", cpu_shapes[k].file);
    (void)snprintf(note, sizeof note, "its first dispatch %.3f ms",
                   cpu_quartiles_of(first, FRESH).median);
    add_row(name, v, "raw Vulkan", r, note);
    (void)snprintf(name, sizeof name, "%s, from disk", cpu_shapes[k].file);
    add_row(name, d, "raw Vulkan", r, "");
    all[0] += v.median / CPU_KERNELS;
    all[1] += d.median / CPU_KERNELS;
    all[2] += r.median / CPU_KERNELS;
  }
  const cpu_quartiles by_hand = {all[2], all[2], all[2], all[2]};
  add_row("mean, compiled", (cpu_quartiles){all[0], all[0], all[0], all[0]},
          "raw Vulkan", by_hand, "");
  add_row("mean, from disk", (cpu_quartiles){all[1], all[1], all[1], all[1]},
          "raw Vulkan", by_hand, "");
}

/* --- the suite ------------------------------------------------------------ */

static void remove_folder(const char *directory) {
  char command[1100];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
  /* NOLINTNEXTLINE(cert-env33-c): fixed command in the temporary folder */
  if (system(command) != 0) printf("%s: left behind\n", directory);
}

void bench_vulkan_compile(void) {
  const char *temporary = getenv("TMPDIR");
  double opens[FIGURES];
  char cache[1024];
  if (!run_in_child(&tasks[TRY], "", opens) || opens[0] < 1 || opens[1] < 1) {
    vulkan_devices g;
    if (vulkan_open(&g, suite)) vulkan_close(&g);
    return;
  }
  cpu_machine_print(suite, vulkan_device_name());
  printf(
      "milliseconds; raw: from SPIR-V to the end of the first dispatch, "
      "when\nsome drivers compile; the cache of the driver is off\n\n%-34s "
      "%10s %10s %8s\n",
      "", "vyre", "raw", "ratio");
  (void)snprintf(cache, sizeof cache, "%s/vyre-bench-vulkan-XXXXXX",
                 temporary && temporary[0] ? temporary : "/tmp");
  if (!mkdtemp(cache)) bench_fail(cache, "cannot be created");
  report_open(cache);
  report_kernels(cache);
  printf("\n");
  remove_folder(cache);
}
