/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions shared by the benchmark suites: timing of vyre and a peer, and the
 * table.
 *
 * A row measures vyre and a peer alternately in the same run, so that noise of
 * the machine affects both. A ratio above 1 means that vyre is better. */
#ifndef VYRE_BENCH_H
#define VYRE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Something to measure. run() does it once and returns false if it fails. */
typedef struct bench_job {
  bool (*run)(void *self);
  void *self;
} bench_job;

/* Nanoseconds of one run: median and minimum of all rounds. */
typedef struct bench_times {
  double median, minimum;
} bench_times;

/* Times @p ours and @p peer alternately. Each round repeats the job @p repeat
 * times and divides. A peer without run() is skipped. Exits if a job fails: its
 * time would be meaningless. */
void bench_pair(bench_job ours, bench_job peer, int rounds, long repeat,
                bench_times *our_times, bench_times *peer_times);

/* Measures the time of @p whole without that of @p part, which it includes: the
 * median of the differences within a round. The difference of two medians would
 * mix rounds, and a small one would be noise. The minimum is the difference of
 * the minima. */
bench_times bench_difference(bench_job whole, bench_job part, int rounds,
                             long repeat, bench_times *whole_times);

/* Adds a row of times: nanoseconds times @p scale are in @p unit. */
void bench_row_times(const char *suite, const char *name, const char *unit,
                     double scale, bench_times ours, const char *peer,
                     bench_times peer_times);

/* Adds a row of plain figures, for which less is better. peer "": no peer. */
void bench_row_figure(const char *suite, const char *name, const char *unit,
                      double value, const char *peer, double peer_value);

/* A row of any figures, printed by its suite. Texts are copied. */
typedef struct bench_result {
  const char *suite, *name, *unit;
  double value, best;           /* median, and best of all rounds */
  const char *peer;             /* "": no peer */
  double peer_value, peer_best; /* 0: the peer is not installed */
  double ratio;                 /* above 1: vyre is better; 0: unknown */
  double ratio_low, ratio_high; /* its quartiles; 0: unknown */
  const char *note;             /* may be "" */
} bench_result;
void bench_row_add(const bench_result *result);
/* Prints a row, too: suite, name, median, best, unit, ratio, peer. */
void bench_row_show(const bench_result *result);

double bench_now_ns(void);
_Noreturn void bench_fail(const char *what, const char *why);

/* xorshift64*: the same numbers in every run. */
uint64_t bench_random(uint64_t *state);

/* The suites, and the parts of the plan suite. Those of the runtime and of the
 * thread pool are in the folders of their subjects. */
void bench_cache(void);
void bench_sums(void);
void bench_cpu_compile(void);
void bench_cpu_dispatch(void);
void bench_cpu_kernels(void);
void bench_cpu_pool(void);
void bench_cpu_threads(void);
void bench_dispatch(void);
/* Adds rows to @p suite: the cost of float modes on @p device. One row per
 * operation of the probe, and one for a kernel that uses it in another mode. */
struct vyre_device;
struct vyre_float_op_info;
struct vyre_pipeline;
struct vyre_program;
void bench_forms(const char *suite, struct vyre_device *device);
const struct vyre_float_op_info *bench_number(const struct vyre_device *device,
                                              const char *operation);
struct vyre_pipeline *bench_compile_as(struct vyre_device *device,
                                       struct vyre_program *program,
                                       const struct vyre_float_op_info *number,
                                       int form);
void bench_flow_fixpoint(void);
void bench_flow_graphs(void);
void bench_flow_queue(void);
void bench_flow_waves(void);
void bench_language(void);
void bench_numbers(void);
void bench_plan(void);
void bench_plan_frontier(void);
void bench_plan_placement(void);
void bench_public(void);
void bench_public_first(void);
void bench_public_held(void);
void bench_public_held2(void);
void bench_public_widths(void);
void bench_recording(void);
void bench_package(void);
void bench_runtime(void);
int bench_vulkan_child(const char *name); /* runs in a process of its own */
void bench_vulkan_compile(void);
void bench_vulkan_dispatch(void);
void bench_vulkan_kernels(void);
void bench_vulkan_replay(void);

#endif
