/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of `vyre run`. */
#ifndef VYRE_TOOLS_COMMANDS_RUN_INTERNAL_H
#define VYRE_TOOLS_COMMANDS_RUN_INTERNAL_H

#include "vyre/binding.h"
#include "vyre/dispatch.h"

#include "cli/args.h"
#include "cli/compile_kernel.h"
#include "cli/kernel_file.h"
#include "cli/progress.h"
#include "io/data_spec.h"
#include "io/image.h"

typedef struct run_flags {
  const char *file, *kernel;
  word_list sets, outs;           /* NAME=SPEC, NAME=FILE */
  uint32_t grid[3], workgroup[3]; /* 0: not given */
  const char *backend, *trace;
  const char *options; /* of backends; NULL: none */
  uint64_t schedules, seed, max_iterations, threads, width, replay;
  uint64_t timeout_ns; /* 0: none */
  uint8_t ulp_budget;
  bool check, values, time, json;
} run_flags;

/* A buffer of the kernel and what is done with it. */
typedef struct run_buffer {
  const vyre_buffer_decl *decl;
  const vyre_binding *binding;
  const char *spec;    /* of --set; NULL: none */
  const char *path;    /* of --out, without raw: and shape; NULL: none */
  bool is_raw;         /* the file gets the bytes alone, whatever its name */
  image_format format; /* of the picture to write; IMAGE_NONE: it is none */
  image_shape shape;   /* of that picture; zero until it is known */
  buffer_data in;
  unsigned char *out; /* what the kernel wrote; NULL if it does not */
  size_t out_length;
  uint64_t count;          /* elements */
  bool is_sized_by_others; /* count comes from another buffer */
} run_buffer;

typedef struct run_state {
  run_flags flags;
  vyre_arena arena;
  kernel_file file;
  vyre_program *program; /* the file's */
  vyre_context *context; /* NULL: the process's own */
  compiled_on on;
  vyre_device *device; /* these two are of it */
  vyre_pipeline *pipeline;
  run_buffer *buffers; /* in binding order, without the shared ones */
  size_t buffer_count;
  vyre_input *inputs;
  vyre_output *outputs;
  size_t input_count, output_count;
  uint32_t grid[3];
  vyre_check_report report;
  vyre_timing timing;           /* with --time */
  uint64_t plain_ns, replay_ns; /* with --replay: the median of each */
  sink printed; /* by print(...): all that JSON tells, else the line so far */
  progress_bar bar;         /* on the terminal */
  uint64_t printed_dropped; /* bytes that are too many for JSON */
} run_state;

bool run_read_flags(int count, char **words, run_flags *f, problem *wrong);

/* Finds the buffers that --set and --out name, reads or makes their elements and
 * gives every output its memory. */
bool run_bind(run_state *s, problem *wrong);

/* Works out the shapes of the pictures that --out writes, once the grid is known
 * and before the kernel runs. Refuses what does not fit. */
bool run_shape_images(run_state *s, problem *wrong);

/* With --replay: measures. What came out does not change. */
bool run_replay(run_state *s, problem *wrong);

/* "ran saxpy on ref: ..." */
void run_tell(const run_state *s, sink *out);

/* Tells findings of --check. */
void run_tell_findings(const run_state *s, sink *out);

/* Writes and prints the outputs. Returns the exit code. */
int run_publish(run_state *s);

/* The invocations of the run in x, y, z. */
void run_extent(const run_state *s, uint64_t out[3]);

#endif
