/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre flow`: a wave graph from a file, on one device or several. */
#ifndef VYRE_TOOLS_COMMANDS_FLOW_FLOW_H
#define VYRE_TOOLS_COMMANDS_FLOW_FLOW_H

#include "vyre/context.h"
#include "vyre/wave_graph.h"

#include "cli/args.h"
#include "cli/kernel_file.h"
#include "flow/flow_file.h"
#include "io/data_spec.h"

enum { FLOW_MAX_BACKENDS = 16, FLOW_MAX_RUNS = 1000, FLOW_MAX_FILES = 256 };

/* Result of one backend. */
typedef struct flow_outcome {
  char name[VYRE_DEVICE_NAME];
  uint64_t hash;    /* of all outputs */
  uint64_t time_ns; /* median */
  vyre_wave_result result;
} flow_outcome;

typedef struct flow_state {
  const char *file, *backends, *options, *svg;
  word_list sets, outs;
  uint64_t runs;
  bool json, has_no_time, is_separate;
  input in;
  vyre_arena arena;
  flow_file flow;
  kernel_file kernels[FLOW_MAX_FILES];
  size_t kernel_count;     /* files that were read */
  vyre_program **programs; /* one per wave */
  buffer_data *data;       /* one per resource: contents of inputs */
  unsigned char **outputs; /* one per resource: of the first backend */
  flow_outcome outcomes[FLOW_MAX_BACKENDS];
  size_t outcome_count;
  const char *differs; /* first backend with another result; NULL: none */
  vyre_context *context;
} flow_state;

/* A graph on a device. */
typedef struct flow_job {
  vyre_device *device;
  vyre_pipeline **pipelines; /* one per wave; several may be the same */
  vyre_wave_graph *graph;
  const vyre_wave_plan *plan;
} flow_job;

/* Reads the kernel files, and finds the kernel of each wave. */
bool flow_load_kernels(flow_state *s, problem *wrong);
/* Reads the data of the inputs. */
bool flow_load_data(flow_state *s, problem *wrong);
/* Opens the device @p name, compiles the kernels and plans the graph.
 * flow_job_deinit releases *out, after a failure too. */
bool flow_job_init(flow_state *s, const char *name, flow_job *out,
                   problem *wrong);
void flow_job_deinit(const flow_state *s, flow_job *job);
/* Runs the graph once. @p outputs: one per resource. */
bool flow_job_run(const flow_state *s, const flow_job *job,
                  unsigned char *const *outputs, vyre_wave_result *result,
                  problem *wrong);

/* Print what has been found, as text and as JSON. */
void flow_tell(const flow_state *s, const flow_job *job, sink *out);
void flow_tell_json(const flow_state *s, const flow_job *job, sink *out);
/* Prints a plan as JSON. */
void flow_plan_json(const flow_state *s, const flow_job *job, sink *out);
/* Draws a plan: waves over groups and threads, and the placement. */
void flow_draw(flow_state *s, const flow_job *job, sink *out);

#endif
