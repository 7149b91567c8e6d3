/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of `vyre run`. */
#ifndef VYRE_TOOLS_COMMANDS_RUN_RUN_H
#define VYRE_TOOLS_COMMANDS_RUN_RUN_H

#include "vyre/binding.h"
#include "vyre/buffer.h"
#include "vyre/dispatch.h"
#include "vyre/work_queue.h"

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
  const char *options; /* backend options; NULL: none */
  uint64_t schedules, seed, max_iterations, threads, width, replay;
  uint64_t timeout_ns, compile_timeout_ns; /* 0: none */
  uint8_t ulp_budget;
  size_t tier; /* a vyre_tier */
  /* of queue kernels */
  const char *items; /* initial ones; NULL: one item of zeros */
  uint64_t capacity, budget_bytes, max_depth; /* 0: not given */
  size_t queue_mode;                          /* a vyre_queue_mode */
  const char *svg;                            /* NULL: no drawing */
  bool check, values, time, json;
  bool is_untuned; /* without the choices of `vyre tune` */
} run_flags;

/* Windows that --svg draws. */
enum { RUN_MAX_DRAWN = 64 };

/* A buffer of the kernel with its data. */
typedef struct run_buffer {
  const vyre_buffer_decl *decl;
  const vyre_binding *binding;
  const char *spec; /* value of --set; NULL: not given */
  const char *path; /* file of --out, without raw: and shape; NULL: not given */
  bool is_raw;      /* written as raw bytes, whatever its name */
  image_format format; /* image format of --out; IMAGE_NONE: not an image */
  image_shape shape;   /* shape of that image; zero until known */
  buffer_data in;
  unsigned char *out; /* contents after the run; NULL: not written */
  size_t out_length;
  vyre_buffer persistent;  /* of a persistent buffer; zero: none */
  uint64_t count;          /* elements */
  bool is_sized_by_others; /* the count comes from another buffer */
} run_buffer;

typedef struct run_state {
  run_flags flags;
  vyre_arena arena;
  kernel_file file;
  vyre_program *program; /* owned by the file */
  vyre_context *context; /* NULL: the default context */
  compiled_on on;
  vyre_device *device;     /* owned by `on` */
  vyre_pipeline *pipeline; /* NULL for a queue kernel, which has: */
  vyre_queue_clauses clauses;
  vyre_queue_field fields[32];
  vyre_queue *queue;
  vyre_queue_stats queue_stats;
  uint64_t held[RUN_MAX_DRAWN + 1]; /* --svg: items held after each window */
  size_t held_count;
  vyre_binding_plan plan;
  run_buffer *buffers; /* in binding order, without shared buffers */
  size_t buffer_count;
  vyre_input *inputs;
  vyre_output *outputs;
  size_t input_count, output_count;
  bool has_persistent;
  vyre_input *resources; /* one per buffer; with persistent buffers only */
  uint32_t grid[3];
  vyre_check_report report;
  vyre_timing timing;           /* with --time */
  uint64_t plain_ns, replay_ns; /* with --replay: the median of each */
  sink
      printed; /* output of print(...): all of it for JSON, otherwise the current line */
  progress_bar bar;         /* printed to the terminal */
  uint64_t printed_dropped; /* bytes that JSON drops */
  bool is_compiling;        /* a compile goes on after its time limit */
} run_state;

/* Flags that `vyre run` and `vyre bench` share, before they are parsed. */
typedef struct run_flag_texts {
  const char *grid, *workgroup, *timeout, *compile_timeout;
  uint64_t ulp_budget;
} run_flag_texts;

/* Parses and checks the shared flags. */
bool run_resolve_flags(run_flags *f, const run_flag_texts *texts,
                       problem *wrong);
bool run_read_flags(int count, char **words, run_flags *f, problem *wrong);

/* Opens the device and compiles. Returns false without a problem if there are
 * diagnostics. */
bool run_compile(run_state *s, problem *wrong);

/* Creates the context that the flags need. */
bool run_make_context(run_state *s, problem *wrong);

/* Binds, compiles and drains a queue kernel. Returns false without a problem if
 * there are diagnostics. */
/* Asks for the checks of --check. */
void run_ask_check(run_state *s, vyre_dispatch_desc *desc);

bool run_queue(run_state *s, problem *wrong);

/* Prints "ran visit on cpu: 9 items in 4 windows ...". */
void run_tell_queue(const run_state *s, sink *out);

/* Draws the memory of the items that the queue held after each window. */
void run_draw_queue(const run_state *s, sink *out);

/* Adds the member "queue". */
void run_put_queue(const run_state *s, json_out *json);

/* Fills @p wrong from a failed dispatch. Returns false. */
bool run_failed(const run_state *s, problem *wrong, const vyre_status *st);

/* Replaces the fix by a --grid that suits the size of the data. */
void run_suggest_grid(const run_state *s, problem *wrong);

/* Compiles the code that --max-loop-iterations needs: it counts iterations. */
bool run_limit_loops(run_state *s, problem *wrong);

/* Releases everything. */
void run_deinit(run_state *s);

/* Finds the buffers named by --set and --out, fills the inputs and allocates
 * the outputs. */
bool run_bind(run_state *s, problem *wrong);

/* Reads the data of persistent buffers; creates their device buffers; copies
 * these to `out` after a run; frees them. */
bool run_read_persistent(run_state *s, problem *wrong);
bool run_make_persistent(run_state *s, problem *wrong);
bool run_fetch_persistent(run_state *s, problem *wrong);
void run_free_persistent(run_state *s);

/* Refuses a kernel with persistent buffers for @p what, such as "--replay". */
bool run_refuse_persistent(const run_state *s, const char *what,
                           problem *wrong);

/* Sets the memory of a dispatch. */
void run_describe(const run_state *s, vyre_dispatch_desc *desc);

/* Determines the shapes of images that --out writes, once the grid is known
 * and before the kernel runs. Refuses shapes that do not fit the buffer. */
bool run_shape_images(run_state *s, problem *wrong);

/* Measures dispatches and replays for --replay. Outputs keep their contents. */
bool run_replay(run_state *s, problem *wrong);

/* Prints "ran saxpy on ref: ...". */
void run_tell(const run_state *s, sink *out);

/* Prints the findings of --check. */
void run_tell_findings(const run_state *s, sink *out);

/* Writes and prints the outputs. Returns the exit code. */
int run_publish(run_state *s);

/* Returns the number of invocations. */
void run_extent(const run_state *s, uint64_t out[3]);

#endif
