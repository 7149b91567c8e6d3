/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures exact sums against a plain vectorised sum in C, on one thread: from
 * memory and from the second-level cache. */
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "sums";

enum { ROUNDS = 15, LANES = 64 };

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

static const char kernel_text[] =
    "kernel total workgroup(256) over(x)\n"
    "buffer x : read f32[] @0;\n"
    "buffer sum : read_write sum_f32[1] @1;\n"
    "{\n"
    "    if (global_id.x < len(x)) atomic_add(sum[0], x[global_id.x]);\n"
    "}\n";

typedef struct sum_job {
  vyre_pipeline *pipeline;
  const float *x;
  size_t count;
  uint64_t exact[12];
  volatile float plain;
} sum_job;

static bool run_exact(void *self) {
  sum_job *job = self;
  memset(job->exact, 0, sizeof job->exact);
  const vyre_input inputs[] = {
      vyre_input_bytes(job->x, job->count * sizeof *job->x),
      vyre_input_bytes(job->exact, sizeof job->exact)};
  const vyre_output output = vyre_output_bytes(job->exact, sizeof job->exact);
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 2,
                                   .outputs = &output,
                                   .output_count = 1};
  vyre_status st = {0};
  return vyre_dispatch(job->pipeline, &desc, &st) == VYRE_OK;
}

/* As many sums side by side as hide the latency of additions. */
#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static float
plain_sum(const float *x, size_t count) {
  float sums[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    for (int k = 0; k < LANES; k++) sums[k] += x[i + (size_t)k];
  }
  float total = 0;
  for (; i < count; i++) total += x[i];
  for (int k = 0; k < LANES; k++) total += sums[k];
  return total;
}

static bool run_plain(void *self) {
  sum_job *job = self;
  job->plain = plain_sum(job->x, job->count);
  return true;
}

static void measure(vyre_pipeline *pipeline, const char *name, size_t count,
                    long repeat) {
  uint64_t seed = 7;
  float *x = malloc(count * sizeof *x);
  if (!x) bench_fail(name, "no memory");
  for (size_t i = 0; i < count; i++) {
    x[i] = (float)(int32_t)(bench_random(&seed) >> 32) * 0x1p-31f;
  }
  sum_job job = {.pipeline = pipeline, .x = x, .count = count};
  bench_times ours, peer;
  bench_pair((bench_job){run_exact, &job}, (bench_job){run_plain, &job}, ROUNDS,
             repeat, &ours, &peer);
  bench_row_times(suite, name, "us", 1e-3, ours, "plain C sum", peer);
  free(x);
}

void bench_sums(void) {
  vyre_status st = {0};
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipeline;
  const vyre_context_options alone = {.cache_directory = "",
                                      .trace_file = "",
                                      .faults = "",
                                      .backend_options = "cpu.threads=1"};
  vyre_context *context;
  must(vyre_context_create(&alone, &context, &st), &st, "context");
  must(vyre_device_open(context, "cpu", &device, &st), &st, "cpu");
  must(vyre_module_parse(kernel_text, sizeof kernel_text - 1, "sums",
                         (vyre_allocator){0}, &module, NULL, &st),
       &st, "the kernel");
  must(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                             &pipeline, NULL, &st),
       &st, "the kernel");
  measure(pipeline, "64 Mi f32 from memory", (size_t)64 << 20, 1);
  measure(pipeline, "128 Ki f32 from L2", (size_t)128 << 10, 200);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  vyre_device_release(device);
  vyre_context_release(context);
}
