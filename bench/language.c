/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures parsing and checking of kernel text, the reference device, and the
 * start of the command-line tool. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "language";

enum { TEXT_BYTES = 8 << 20, ROUNDS = 9 };

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

/* --- parsing and checking --------------------------------------------------*/

typedef struct text_job {
  char *text;
  size_t length;
} text_job;

/* A typical hand-written kernel: loops, barriers, shared memory, a comment. */
static const char kernel_text[] =
    "// kernel %u of many: smooths a row, then sums it up as a tree\n"
    "fn mean%u(a: f32, b: f32, c: f32) -> f32 {\n"
    "    return (a + b + c) / 3.0;\n"
    "}\n"
    "\n"
    "kernel smooth%u workgroup(64) over(y)\n"
    "buffer x : read f32[] @0;\n"
    "buffer y : read_write f32[] @1;\n"
    "buffer total : read_write u32[] @2;\n"
    "uniform scale : f32 @3;\n"
    "shared part : f32[64];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    let here = local_id.x;\n"
    "    part[here] = 0.0;\n"
    "    if (i > 0 && i + 1 < len(x)) {\n"
    "        part[here] = mean%u(x[i - 1], x[i], x[i + 1]) * scale;\n"
    "    }\n"
    "    barrier();\n"
    "    var half = 32u;\n"
    "    while (half > 0) {\n"
    "        if (here < half) part[here] += part[here + half];\n"
    "        barrier();\n"
    "        half /= 2;\n"
    "    }\n"
    "    for (let k = 0u; k < 4; k++) {\n"
    "        if (i < len(y)) y[i] = fma(part[k], scale, y[i]);\n"
    "    }\n"
    "    if (here == 0) atomic_add(total[%u], u32(part[0]));\n"
    "}\n"
    "\n";

static void make_text(text_job *job) {
  job->text = malloc(TEXT_BYTES + 2 * sizeof kernel_text);
  if (!job->text) bench_fail("kernel text", "no memory");
  for (unsigned n = 0; job->length < TEXT_BYTES; n++) {
    job->length +=
        (size_t)snprintf(job->text + job->length, 2 * sizeof kernel_text,
                         kernel_text, n, n, n, n, n);
  }
}

static bool run_text(void *self) {
  text_job *job = self;
  vyre_module *module;
  vyre_status st = {0};
  must(vyre_module_parse(job->text, job->length, "bench", vyre_allocator_heap(),
                         &module, NULL, &st),
       &st, "parse");
  for (size_t i = 0; i < vyre_module_kernel_count(module); i++) {
    must(vyre_program_validate(vyre_module_kernel(module, i), NULL, &st), &st,
         "check");
  }
  vyre_module_release(module);
  return true;
}

static void bench_text(void) {
  text_job job = {0};
  bench_times ours, none;
  make_text(&job);
  bench_pair((bench_job){run_text, &job}, (bench_job){0}, ROUNDS, 1, &ours,
             &none);
  bench_row_times(suite, "parse and check 8 MiB of kernels", "ms", 1e-6, ours,
                  "", none);
  bench_row_figure(suite, "parse and check, speed", "MB/s",
                   (double)job.length / ours.median * 1e3, "", 0);
  free(job.text);
}

/* --- reference device ------------------------------------------------------*/

enum { ELEMENTS = 16384, TURNS = 256, OPERATIONS = 4, LONE_TURNS = 100000 };

static const char loop_text[] =
    "kernel loop workgroup(256) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{\n"
    "    var v = y[global_id.x];\n"
    "    for (let k = 0u; k < 256; k++) v = (v * 1664525 + k) ^ v >> 7;\n"
    "    y[global_id.x] = v;\n"
    "}\n";

/* A single invocation: no other lanes share the interpreter's overhead. */
static const char lone_text[] =
    "kernel lone workgroup(1) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{\n"
    "    var v = y[0];\n"
    "    for (let k = 0u; k < 100000; k++) v = (v * 1664525 + k) ^ v >> 7;\n"
    "    y[0] = v;\n"
    "}\n";

typedef struct ref_job {
  vyre_pipeline *pipeline;
  uint32_t *elements;
  size_t count;
} ref_job;

static bool run_ref(void *self) {
  ref_job *job = self;
  size_t size = job->count * sizeof *job->elements;
  vyre_input in = {job->elements, size};
  vyre_output out = {job->elements, size};
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  vyre_status st = {0};
  must(vyre_dispatch(job->pipeline, &desc, &st), &st, "dispatch");
  return true;
}

static void bench_ref(const char *text, size_t count, double operations,
                      const char *name) {
  ref_job job = {.elements = calloc(count, sizeof *job.elements),
                 .count = count};
  vyre_module *module;
  vyre_device *device;
  vyre_status st = {0};
  bench_times ours, none;
  vyre_allocator heap = vyre_allocator_heap();
  if (!job.elements) bench_fail("ref", "no memory");
  must(vyre_module_parse(text, strlen(text), "loop", heap, &module, NULL, &st),
       &st, "parse");
  must(vyre_device_open(NULL, "ref", &device, &st), &st, "open");
  must(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                             &job.pipeline, NULL, &st),
       &st, "compile");
  bench_pair((bench_job){run_ref, &job}, (bench_job){0}, ROUNDS, 1, &ours,
             &none);
  bench_row_figure(suite, name, "Mop/s", operations / ours.median * 1e3, "", 0);
  vyre_pipeline_release(job.pipeline);
  vyre_device_release(device);
  vyre_module_release(module);
  free(job.elements);
}

/* --- command-line tool -----------------------------------------------------*/

extern char **environ;

static bool run_command(void *self) {
  static char *const words[] = {"vyre",        "run",   VYRE_SAXPY,    "--set",
                                "a=2",         "--set", "x=iota:1024", "--set",
                                "y=iota:1024", NULL};
  posix_spawn_file_actions_t *quiet = self;
  pid_t child;
  int status;
  return posix_spawn(&child, VYRE_COMMAND, quiet, NULL, words, environ) == 0 &&
         waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

static void bench_command(void) {
  posix_spawn_file_actions_t quiet;
  bench_times ours, none;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY,
                                   0);
  posix_spawn_file_actions_adddup2(&quiet, STDOUT_FILENO, STDERR_FILENO);
  bench_pair((bench_job){run_command, &quiet}, (bench_job){0}, 51, 1, &ours,
             &none);
  bench_row_times(suite, "vyre run examples/saxpy.vyre, process and all", "ms",
                  1e-6, ours, "", none);
  posix_spawn_file_actions_destroy(&quiet);
}

void bench_language(void) {
  bench_text();
  bench_ref(loop_text, ELEMENTS, (double)ELEMENTS * TURNS * OPERATIONS,
            "ref: simple operations of one core");
  bench_ref(lone_text, 1, (double)LONE_TURNS * OPERATIONS,
            "ref: simple operations of one core, 1 lane");
  bench_command();
}
