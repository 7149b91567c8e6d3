/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the suites share: timing of two rivals side by side, and the table.
 *
 * A row measures vyre and a peer in the same run, turn by turn, so that noise
 * of the machine meets both. A ratio above 1 means that vyre is better. */
#ifndef VYRE_BENCH_H
#define VYRE_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thing to measure. run() does it once and returns false if it cannot. */
typedef struct bench_job {
  bool (*run)(void *self);
  void *self;
} bench_job;

/* Nanoseconds of one run: the median and the least of all rounds. */
typedef struct bench_times {
  double median, minimum;
} bench_times;

/* Times @p ours and @p peer in turn. Each round repeats the job @p repeat times
 * and divides. A peer without run() is left out. Ends the program if a job
 * fails: a benchmark of a failure would be a lie. */
void bench_pair(bench_job ours, bench_job peer, int rounds, long repeat,
                bench_times *our_times, bench_times *peer_times);

/* What @p whole takes more than @p part, of which it does all: the median of what
 * the two of a round differ by. Two medians need not be of the same round, and a
 * small difference of them may be anything. Its minimum is that of the minima. */
bench_times bench_difference(bench_job whole, bench_job part, int rounds,
                             long repeat, bench_times *whole_times);

/* Adds a row of times: nanoseconds times @p scale are in @p unit. */
void bench_row_times(const char *suite, const char *name, const char *unit,
                     double scale, bench_times ours, const char *peer,
                     bench_times peer_times);

/* Adds a row of plain figures, for which less is better. A peer of "" is none.
 */
void bench_row_figure(const char *suite, const char *name, const char *unit,
                      double value, const char *peer, double peer_value);

/* A row that was printed by its suite, of figures of any kind. Texts are copied. */
typedef struct bench_result {
  const char *suite, *name, *unit;
  double value, best;           /* the median, and the best of all rounds */
  const char *peer;             /* "": none */
  double peer_value, peer_best; /* 0: it is not there */
  double ratio;                 /* above 1: vyre is better; 0: there is none */
  double ratio_low, ratio_high; /* its quartiles; 0: there are none */
  const char *note;             /* "": none */
} bench_result;
void bench_row_add(const bench_result *result);

double bench_now_ns(void);
_Noreturn void bench_fail(const char *what, const char *why);

/* xorshift64*: inputs are the same in every run. */
uint64_t bench_random(uint64_t *state);

/* The suites, and the parts of the plan suite. Those of the driver and of the
 * CPU device are beside them. */
void bench_cache(void);
void bench_cpu_compile(void);
void bench_cpu_dispatch(void);
void bench_cpu_kernels(void);
void bench_cpu_pool(void);
void bench_dispatch(void);
/* Rows of @p suite: what the forms of float operations cost on @p device. Beside
 * the driver: an operation of the probe, and a kernel with it in another form. */
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
void bench_language(void);
void bench_numbers(void);
void bench_plan(void);
void bench_plan_frontier(void);
void bench_plan_placement(void);
void bench_recording(void);
int bench_vulkan_child(const char *name); /* of the next: a process's own */
void bench_vulkan_compile(void);
void bench_vulkan_dispatch(void);
void bench_vulkan_kernels(void);
void bench_vulkan_replay(void);

#endif
