/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite cpu.compile: time from the source of a kernel to a ready pipeline,
 * compiled and from the disk cache; time to open the device and to load LLVM.
 * For $VYRE_BENCH_DEVICE see kernels.c.
 *
 * Costs that occur once per process are measured in child processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "machine.h"
#include "rival.h"
#include "rounds.h"

int setenv(const char *name, const char *value, int overwrite);
char *mkdtemp(char *pattern);

static const char suite[] = "cpu.compile";
static const char limit[] = "its limit";

enum { TURNS = 5 };

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

/* --- child processes -------------------------------------------------------*/

typedef struct child_job {
  void (*run)(const struct child_job *job, double *figures);
  const char *text; /* argument of the job */
  const char *directory;
} child_job;

enum { FIGURES = 2 * CPU_KERNELS + 1 };

/* Runs a job in a child process. Returns false if it failed; figures are then
 * 0. */
static bool in_child(const child_job *job, double *figures) {
  int ends[2];
  memset(figures, 0, FIGURES * sizeof *figures);
  (void)fflush(stdout);
  if (pipe(ends) != 0) return false;
  pid_t child = fork();
  if (child == 0) {
    double made[FIGURES] = {0};
    job->run(job, made);
    bool is_written = write(ends[1], made, sizeof made) == sizeof made;
    _exit(is_written ? 0 : 1);
  }
  (void)close(ends[1]);
  size_t size = FIGURES * sizeof *figures;
  bool is_read = child > 0 && read(ends[0], figures, size) == (ssize_t)size;
  (void)close(ends[0]);
  int status = 0;
  if (child > 0) (void)waitpid(child, &status, 0);
  return is_read && status == 0;
}

/* --- vyre ------------------------------------------------------------------*/

typedef struct place {
  vyre_context *context;
  vyre_device *device;
} place;

/* Opens a device with an empty cache in memory; @p directory "": no disk cache
 * either. Returns the nanoseconds that opening took. */
static double open_place(place *p, const char *device, const char *directory) {
  vyre_status st = {0};
  vyre_context_options options = {
      .cache_directory = directory, .trace_file = "", .faults = ""};
  must(vyre_context_create(&options, &p->context, &st), &st, "context");
  double start = cpu_now_ns();
  must(vyre_device_open(p->context, device, &p->device, &st), &st, device);
  return cpu_now_ns() - start;
}

static void close_place(place *p) {
  vyre_device_release(p->device);
  vyre_context_release(p->context);
}

/* Waits until optimised code has replaced the baseline code, so that compiling
 * in the background does not disturb the next measurement. */
static void await_full(vyre_pipeline *pipeline) {
  vyre_pipeline_resources now;
  for (int i = 0; i < 10000; i++) {
    if (!vyre_pipeline_get_resources(pipeline, &now) || !now.is_baseline)
      return;
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  bench_fail(suite, "the baseline code was not replaced by optimised code");
}

/* Returns the nanoseconds from source to ready; *made says how it was made.
 * With the baseline tier, until the first code is ready, which is replaced in
 * the background. */
static double time_to_ready(const place *p, const char *file, bool is_baseline,
                            vyre_cache_result *made) {
  const vyre_compile_options options = {
      .tier = is_baseline ? VYRE_TIER_AUTO : VYRE_TIER_OPTIMISED};
  vyre_status st = {0};
  vyre_module *module;
  vyre_pipeline *pipeline;
  vyre_cache_info info;
  char *text = cpu_text(file, "vyre");
  double start = cpu_now_ns();
  must(vyre_module_parse(text, strlen(text), file, vyre_allocator_heap(),
                         &module, NULL, &st),
       &st, file);
  must(vyre_pipeline_compile(p->device, vyre_module_kernel(module, 0), &options,
                             &pipeline, NULL, &st),
       &st, file);
  double took = cpu_now_ns() - start;
  if (is_baseline) await_full(pipeline);
  *made = vyre_pipeline_get_cache_info(pipeline, &info) ? info.origin
                                                        : VYRE_CACHE_OFF;
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  free(text);
  return took;
}

/* In a child process, where the device has not been opened before. */
static void try_open(const child_job *job, double *figures) {
  vyre_status st = {0};
  cpu_vyre *v = cpu_vyre_open(job->text, false, 0, &st);
  figures[0] = v ? 1 : 0;
}

/* Measures opening, the first compile, and the second, which does not load
 * LLVM. */
static void first_compile(const child_job *job, double *figures) {
  place first, second;
  vyre_cache_result made;
  figures[0] = open_place(&first, job->text, "");
  figures[1] = time_to_ready(&first, "saxpy", false, &made);
  open_place(&second, job->text, "");
  figures[2] = time_to_ready(&second, "saxpy", false, &made);
}

/* Returns the nanoseconds until all kernels are ready on a device that has none
 * of them, compiled one after the other or all at once. */
static double time_to_all_ready(const char *device, bool at_once) {
  const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  place p;
  vyre_status st = {0};
  vyre_module *modules[CPU_KERNELS];
  vyre_pipeline *pipelines[CPU_KERNELS];
  vyre_fence *fences[CPU_KERNELS];
  open_place(&p, device, "");
  for (int k = 0; k < CPU_KERNELS; k++) {
    char *text = cpu_text(cpu_shapes[k].file, "vyre");
    must(vyre_module_parse(text, strlen(text), cpu_shapes[k].file,
                           vyre_allocator_heap(), &modules[k], NULL, &st),
         &st, cpu_shapes[k].file);
    free(text);
  }
  double start = cpu_now_ns();
  for (int k = 0; k < CPU_KERNELS; k++) {
    vyre_program *kernel = vyre_module_kernel(modules[k], 0);
    vyre_code code = at_once ? vyre_pipeline_compile_async(
                                   p.device, kernel, &options, &fences[k], &st)
                             : vyre_pipeline_compile(p.device, kernel, &options,
                                                     &pipelines[k], NULL, &st);
    must(code, &st, cpu_shapes[k].file);
  }
  for (int k = 0; at_once && k < CPU_KERNELS; k++) {
    must(vyre_fence_wait(fences[k], VYRE_WAIT_FOREVER, &st), &st,
         cpu_shapes[k].file);
    pipelines[k] = vyre_fence_pipeline(fences[k]);
    vyre_fence_release(fences[k]);
  }
  double took = cpu_now_ns() - start;
  for (int k = 0; k < CPU_KERNELS; k++) {
    vyre_pipeline_release(pipelines[k]);
    vyre_module_release(modules[k]);
  }
  close_place(&p);
  return took;
}

static double mean_of(const double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += values[i];
  return count > 0 ? sum / count : 0;
}

/* Medians of each kernel in milliseconds; 0 where the disk cache was not
 * used. */
typedef struct times {
  cpu_quartiles fresh[CPU_KERNELS], baseline[CPU_KERNELS], disk[CPU_KERNELS];
  double first; /* from disk, the first in a process */
} times;

/* Fills the cache directory. */
static void fill_cache(const child_job *job, double *figures) {
  place p;
  vyre_cache_result made;
  (void)figures;
  open_place(&p, job->text, job->directory);
  for (int k = 0; k < CPU_KERNELS; k++) {
    time_to_ready(&p, cpu_shapes[k].file, false, &made);
  }
  close_place(&p);
}

/* Measures a process that only runs cached kernels and never loads LLVM. Each
 * kernel is loaded on a device of its own, all of them in turn, so that none is
 * in the processor's caches. Medians, then the best, in ms; the very first one
 * last. */
static void from_disk(const child_job *job, double *figures) {
  enum { ROUNDS = 21 };
  static double ms[CPU_KERNELS][ROUNDS];
  vyre_cache_result made;
  for (int round = -1; round < ROUNDS; round++) {
    for (int k = 0; k < CPU_KERNELS; k++) {
      place p;
      open_place(&p, job->text, job->directory);
      double ns = time_to_ready(&p, cpu_shapes[k].file, false, &made);
      close_place(&p);
      if (made != VYRE_CACHE_DISK_HIT) return;
      if (round >= 0) ms[k][round] = ns / 1e6;
      if (round < 0 && k == 0) figures[(size_t)2 * CPU_KERNELS] = ns / 1e6;
    }
  }
  for (int k = 0; k < CPU_KERNELS; k++) {
    cpu_quartiles q = cpu_quartiles_of(ms[k], ROUNDS);
    figures[k] = q.median;
    figures[CPU_KERNELS + k] = q.minimum;
  }
}

/* Must run before this process has loaded LLVM. */
static void measure_disk(const char *device, const char *directory, times *t) {
  double f[FIGURES];
  child_job fill = {fill_cache, device, directory};
  child_job look = {from_disk, device, directory};
  if (!in_child(&fill, f) || !in_child(&look, f)) {
    bench_fail(suite, "a process of its own failed");
  }
  for (int k = 0; k < CPU_KERNELS; k++) {
    t->disk[k].median = f[k];
    t->disk[k].minimum = f[CPU_KERNELS + k];
  }
  t->first = f[(size_t)2 * CPU_KERNELS];
}

static void measure(const char *device, times *t) {
  place kept; /* LLVM stays loaded as long as a device is open */
  vyre_cache_result made;
  open_place(&kept, device, "");
  for (int k = 0; k < CPU_KERNELS; k++) {
    const char *file = cpu_shapes[k].file;
    double fresh[TURNS], baseline[TURNS];
    for (int turn = 0; turn <= TURNS; turn++) {
      place p;
      open_place(&p, device, "");
      double ns = time_to_ready(&p, file, false, &made);
      if (turn > 0) fresh[turn - 1] = ns / 1e6; /* the first one warms up */
      close_place(&p);
      open_place(&p, device, "");
      ns = time_to_ready(&p, file, true, &made);
      if (turn > 0) baseline[turn - 1] = ns / 1e6;
      close_place(&p);
    }
    t->fresh[k] = cpu_quartiles_of(fresh, TURNS);
    t->baseline[k] = cpu_quartiles_of(baseline, TURNS);
  }
  close_place(&kept);
}

/* --- peers -----------------------------------------------------------------*/

/* Compiles all kernels with PoCL, from source to ready: the mean in ns. With an
 * empty cache directory, and again with a filled one. */
static void build_opencl(const child_job *job, double *figures) {
  const char *why;
  (void)setenv("POCL_CACHE_DIR", job->text, 1);
  cpu_opencl *cl = cpu_opencl_open("pthread", &why);
  if (!cl) return;
  double start = cpu_now_ns();
  cpu_opencl_build(cl);
  figures[0] = (cpu_now_ns() - start) / CPU_KERNELS;
}

/* Returns the time, or the processor time of finished children. */
static double children_ns(void) {
  struct rusage used;
  if (!cpu_is_alone() || getrusage(RUSAGE_CHILDREN, &used) != 0) {
    return cpu_now_ns();
  }
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e9 +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e3;
}

/* Compiles all kernels in C with the compiler @p job->text to a shared
 * object. */
static void build_c(const child_job *job, double *figures) {
  char command[2048];
  (void)snprintf(command, sizeof command,
                 "%s -std=c11 -O3 -march=native -fopenmp -fPIC -shared -w -o "
                 "/dev/null %s/peer_openmp.c -lm 2>/dev/null",
                 job->text, VYRE_BENCH_CPU);
  double start = children_ns();
  /* NOLINTNEXTLINE(cert-env33-c): a compiler is a command */
  if (system(command) != 0) return;
  figures[0] = (children_ns() - start) / CPU_KERNELS;
}

/* --- rows ------------------------------------------------------------------*/

static void add_row(const char *name, const char *unit, double value,
                    double best, const char *peer, double peer_value,
                    const char *note) {
  bench_row_add(&(bench_result){
      .suite = suite,
      .name = name,
      .unit = unit,
      .value = value,
      .best = best,
      .peer = peer,
      .peer_value = peer_value,
      .peer_best = peer_value,
      .ratio = value > 0 && peer_value > 0 ? peer_value / value : 0,
      .note = note});
}

static void print_figure(double value) {
  if (value > 0) {
    printf(" %10.3f", value);
  } else {
    printf(" %10s", "-");
  }
}

static void report_kernels(const times *t, double *fresh, double *baseline,
                           double *disk) {
  double all_fresh[CPU_KERNELS], all_baseline[CPU_KERNELS],
      all_disk[CPU_KERNELS];
  int hits = 0;
  printf("%-28s %10s %10s %10s\n", "ms from source to ready", "compiled",
         "baseline", "from disk");
  for (int k = 0; k < CPU_KERNELS; k++) {
    char name[64];
    printf("%-28s", cpu_shapes[k].file);
    print_figure(t->fresh[k].median);
    print_figure(t->baseline[k].median);
    print_figure(t->disk[k].median);
    printf("\n");
    (void)snprintf(name, sizeof name, "%s, compiled", cpu_shapes[k].file);
    add_row(name, "ms", t->fresh[k].median, t->fresh[k].minimum, "", 0, "");
    (void)snprintf(name, sizeof name, "%s, baseline", cpu_shapes[k].file);
    add_row(name, "ms", t->baseline[k].median, t->baseline[k].minimum, "", 0,
            "");
    (void)snprintf(name, sizeof name, "%s, from disk", cpu_shapes[k].file);
    add_row(name, "ms", t->disk[k].median, t->disk[k].minimum, "", 0,
            t->disk[k].median > 0 ? "" : "the device has no disk cache");
    all_fresh[k] = t->fresh[k].median;
    all_baseline[k] = t->baseline[k].median;
    if (t->disk[k].median > 0) all_disk[hits++] = t->disk[k].median;
  }
  *fresh = mean_of(all_fresh, CPU_KERNELS);
  *baseline = mean_of(all_baseline, CPU_KERNELS);
  *disk = hits == CPU_KERNELS ? mean_of(all_disk, hits) : 0;
}

typedef struct peer_times {
  double gcc, clang, pocl, pocl_cached; /* ms per kernel; 0: not installed */
} peer_times;

static peer_times measure_peers(const char *directory) {
  double f[FIGURES];
  peer_times made = {0};
  child_job gcc = {build_c, "gcc"}, clang = {build_c, "clang-19"};
  child_job pocl = {build_opencl, directory};
  if (in_child(&gcc, f)) made.gcc = f[0] / 1e6;
  if (in_child(&clang, f)) made.clang = f[0] / 1e6;
  if (in_child(&pocl, f)) made.pocl = f[0] / 1e6;
  if (in_child(&pocl, f)) made.pocl_cached = f[0] / 1e6;
  return made;
}

static void report_mean(const char *what, double mean, double max,
                        const char *const *peers, const double *values,
                        int count) {
  add_row(what, "ms", mean, mean, limit, max, "");
  printf("%-28s", what);
  print_figure(mean);
  for (int i = 0; i < count; i++) {
    char name[96];
    if (values[i] > 0) {
      printf("   %s %.1f", peers[i], values[i]);
    } else {
      printf("   %s is not installed", peers[i]);
    }
    (void)snprintf(name, sizeof name, "%s, against %s", what, peers[i]);
    add_row(name, "ms", mean, mean, peers[i], values[i],
            values[i] > 0 ? "" : "the peer is not installed");
  }
  printf("\n");
  (void)fflush(stdout);
}

static void report_once(const char *device) {
  double opens[TURNS], loads[TURNS], f[FIGURES];
  child_job job = {first_compile, device};
  for (int i = 0; i < TURNS; i++) {
    if (!in_child(&job, f)) bench_fail(suite, "a process of its own failed");
    opens[i] = f[0] / 1e6;
    loads[i] = f[1] > f[2] ? (f[1] - f[2]) / 1e6 : 0;
  }
  cpu_quartiles opened = cpu_quartiles_of(opens, TURNS);
  cpu_quartiles loaded = cpu_quartiles_of(loads, TURNS);
  printf("%-28s", "opening the device");
  print_figure(opened.median);
  printf("   the first time in a process\n%-28s", "loading what compiles");
  print_figure(loaded.median);
  printf("   the first compile over the second\n");
  add_row("opening the device", "ms", opened.median, opened.minimum, limit, 1,
          "");
  add_row("loading what compiles", "ms", loaded.median, loaded.minimum, "", 0,
          "the first compile of a process over the second");
}

/* Measured by the clock: processor time would be the same. */
static void report_at_once(const char *device) {
  enum { ROUNDS = 3 };
  double single[ROUNDS], all[ROUNDS];
  if (cpu_is_alone()) return;
  (void)time_to_all_ready(device, false);
  for (int i = 0; i < ROUNDS; i++) {
    single[i] = time_to_all_ready(device, false) / 1e6;
    all[i] = time_to_all_ready(device, true) / 1e6;
  }
  cpu_quartiles one = cpu_quartiles_of(single, ROUNDS);
  cpu_quartiles many = cpu_quartiles_of(all, ROUNDS);
  printf("%-28s", "all of them at once");
  print_figure(many.median);
  printf("   one after the other %.1f\n", one.median);
  add_row("all kernels at once", "ms", many.median, many.minimum,
          "one after the other", one.median, "");
}

/* --- the suite -------------------------------------------------------------*/

static void remove_folder(const char *directory) {
  char command[1100];
  (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
  /* NOLINTNEXTLINE(cert-env33-c): the path was made by mkdtemp */
  if (system(command) != 0) printf("%s: left behind\n", directory);
}

static void make_folder(char *path, size_t room, const char *kind) {
  const char *where = getenv("TMPDIR");
  (void)snprintf(path, room, "%s/vyre-bench-%s-XXXXXX",
                 where && where[0] ? where : "/tmp", kind);
  if (!mkdtemp(path)) bench_fail(path, "cannot be made");
}

void bench_cpu_compile(void) {
  static const char *const compiled[] = {"gcc -O3", "clang-19 -O3", "PoCL"};
  static const char *const cached[] = {"PoCL"};
  const char *device = cpu_device_name();
  char ours[1024], theirs[1024];
  double fresh = 0, baseline = 0, disk = 0, is_there[FIGURES];
  bool has_device = strcmp(device, "none") != 0;
  child_job probe = {try_open, device};
  if (has_device && (!in_child(&probe, is_there) || is_there[0] < 1)) {
    vyre_status st = {0};
    cpu_vyre_close(cpu_vyre_open(device, false, 0, &st));
    cpu_missing(suite, device, st.message);
    return;
  }
  cpu_machine_print(suite, device);
  if (cpu_is_alone()) printf("by processor time\n");
  printf("kernels of bench/cpu, %d in all; medians of %d\n\n", CPU_KERNELS,
         TURNS);
  make_folder(ours, sizeof ours, "cache");
  make_folder(theirs, sizeof theirs, "pocl");
  if (has_device) {
    times t = {0};
    report_once(device);
    measure_disk(device, ours, &t);
    printf("%-28s", "the first from disk");
    print_figure(t.first);
    printf("   of a process, %s\n\n", cpu_shapes[0].file);
    add_row("the first from disk", "ms", t.first, t.first, "", 0,
            "of a process; the others come after it");
    measure(device, &t);
    report_kernels(&t, &fresh, &baseline, &disk);
    report_at_once(device);
  }
  peer_times p = measure_peers(theirs);
  report_mean("mean, compiled", fresh, 15, compiled,
              (double[]){p.gcc, p.clang, p.pocl}, 3);
  report_mean("mean, baseline", baseline, 15, compiled, (double[]){p.gcc}, 1);
  report_mean("mean, from disk", disk, 0.1, cached, &p.pocl_cached, 1);
  printf("\n");
  remove_folder(ours);
  remove_folder(theirs);
}
