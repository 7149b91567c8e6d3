/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of `vyre bench`. */
#ifndef VYRE_TOOLS_COMMANDS_BENCH_BENCH_H
#define VYRE_TOOLS_COMMANDS_BENCH_BENCH_H

#include "commands/run/run.h"

/* Work of one run, counted by an instrumented copy of the kernel. */
typedef struct bench_counts {
  bool is_known;
  char why_not[200];   /* if it is not known */
  bool is_lower_bound; /* some functions could not be counted */
  double operations;   /* arithmetic, without index computations */
  double bytes;        /* accessed in buffers */
  /* Operations that vectors of the compiled width execute, over those that
   * invocations need: 1 without divergence. */
  double divergence;
} bench_counts;

/* Limits of the machine, measured on the same device with the same threads.
 * Rates are per nanosecond. */
typedef struct bench_limits {
  double memory_bytes, cache_bytes; /* large and small arrays */
  double sized_bytes;               /* arrays as large as those of the kernel */
  double operations;
  double launch_ns; /* smallest dispatch */
} bench_limits;

typedef enum bench_limit {
  BENCH_MEMORY,
  BENCH_COMPUTE,
  BENCH_LAUNCH,
  BENCH_DIVERGENCE,
  BENCH_OVERHEAD,
} bench_limit;

typedef struct bench_state {
  run_state run;
  uint64_t size, runs; /* flags; runs 0: chosen by time */
  const char *svg;     /* NULL: no drawing */
  sink made_up;        /* names of the data that was made up */
  uint64_t run_count, median_ns, best_ns;
  double bytes; /* of all buffers: each read or written once */
  vyre_pipeline_resources resources;
  bench_counts counts;
  bench_limits limits;
} bench_state;

/* The parts in which commands over a kernel and its data differ. */
typedef struct bench_command {
  bool (*work)(bench_state *s, problem *wrong);
  void (*tell)(const bench_state *s, sink *answer, sink *drawing);
  void (*release)(bench_state *s); /* or NULL */
} bench_command;

/* Opens the file of @p s, works, publishes the answer and frees @p s. With
 * !@p has_flags, reports what is wrong with them. Returns the exit status. */
int bench_run(bench_state *s, const bench_command *command, bool has_flags,
              problem *wrong);

/* Adds a --set to the flags for every input without one, and a grid if no data
 * is given. */
bool bench_make_up_data(bench_state *s, problem *wrong);

/* Fills `counts`. A kernel that cannot be counted is not a failure. */
void bench_count(bench_state *s);

/* Fills `limits`. */
bool bench_measure_limits(bench_state *s, problem *wrong);

/* Shares of the limits that the kernel reaches, from 0 to 1. */
double bench_memory_share(const bench_state *s);
double bench_compute_share(const bench_state *s);
double bench_launch_share(const bench_state *s);

/* Returns the limit that explains the time. */
bench_limit bench_limited_by(const bench_state *s);
const char *bench_limit_name(bench_limit limit);

/* Returns the bytes that a run moves at least: those of the buffers, or of the
 * accesses if these are fewer. */
double bench_traffic(const bench_state *s);

/* Rates per nanosecond: G per second. */
double bench_byte_rate(const bench_state *s);
double bench_operation_rate(const bench_state *s);

/* Returns operations per byte, or 0 if it is unknown. */
double bench_intensity(const bench_state *s);

/* Write the report, the plot of the report, and the drawing. */
void bench_tell(const bench_state *s, sink *out);
void bench_json(const bench_state *s, sink *out);
void bench_plot(const bench_state *s, sink *out);
void bench_svg(const bench_state *s, sink *out);

#endif
