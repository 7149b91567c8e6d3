/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Dispatches one pipeline from several threads at once, each with its own
 * memory. ThreadSanitizer finds shared state; in any build, the bytes are
 * compared with those of a single run. */
#include <pthread.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"

enum { THREADS = 4, ROUNDS = 8, ELEMENTS = 512 };

/* Shared memory, both barriers, an atomic, a loop and a function. */
static const char text[] =
    "fn mix(a: u32, b: u32) -> u32 { return (a ^ b) * 2654435761 + b; }\n"
    "kernel k workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer sum : read_write u32[1] @2;\n"
    "uniform seed : u32 @3;\n"
    "shared tile : u32[64];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    let l = local_id.x;\n"
    "    var v = mix(x[i], seed);\n"
    "    for (let k = 0u; k < l % 7; k++) v = mix(v, k);\n"
    "    tile[l] = v;\n"
    "    barrier();\n"
    "    y[i] += tile[63 - l];\n"
    "    grid_barrier();\n"
    "    let other = y[len(y) - 1 - i];\n"
    "    grid_barrier();\n"
    "    y[i] = mix(y[i], other);\n"
    "    atomic_add(sum[0], y[i]);\n"
    "}\n";

typedef struct result {
  uint32_t y[ELEMENTS], sum;
} result;

typedef struct worker {
  vyre_pipeline *pipeline;
  uint32_t seed;
  bool check; /* checks have state as well */
  pthread_t thread;
  result got;
  size_t findings;
  vyre_code code;
} worker;

static vyre_code dispatch(worker *w) {
  static const uint32_t zero;
  uint32_t x[ELEMENTS];
  vyre_check_report report = {0};
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    x[i] = i * w->seed;
    w->got.y[i] = i;
  }
  w->got.sum = 0;
  const vyre_input inputs[] = {{x, sizeof x},
                               {w->got.y, sizeof w->got.y},
                               {&zero, sizeof zero},
                               {&w->seed, sizeof w->seed}};
  const vyre_output outputs[] = {{w->got.y, sizeof w->got.y},
                                 {&w->got.sum, sizeof w->got.sum}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 4,
                             .outputs = outputs,
                             .output_count = 2};
  if (w->check) {
    desc.check = (vyre_check_options){true, true, 2, w->seed};
    desc.report = &report;
  }
  vyre_code code = vyre_dispatch(w->pipeline, &desc, NULL);
  w->findings += report.count;
  vyre_check_report_deinit(&report);
  return code;
}

static void *work(void *self) {
  worker *w = self;
  for (int i = 0; i < ROUNDS && w->code == VYRE_OK; i++) {
    w->check = i % 4 == 3;
    w->code = dispatch(w);
  }
  vyre_pipeline_release(w->pipeline);
  return NULL;
}

static vyre_pipeline *compile(void) {
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  vyre_module *module = parse_module(text);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  vyre_device_release(device);
  vyre_module_release(module);
  return pipeline;
}

TEST(one_pipeline_runs_in_many_threads_at_once) {
  static worker workers[THREADS], alone[THREADS];
  vyre_pipeline *pipeline = compile();
  for (uint32_t i = 0; i < THREADS; i++) {
    alone[i] = (worker){.pipeline = pipeline, .seed = i + 1};
    CHECK(dispatch(&alone[i]) == VYRE_OK);
  }
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] =
        (worker){.pipeline = vyre_pipeline_retain(pipeline), .seed = i + 1};
    CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  vyre_pipeline_release(pipeline); /* the threads hold references */
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_join(workers[i].thread, NULL) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK(workers[i].code == VYRE_OK);
    CHECK_U64(workers[i].findings, 0);
    CHECK(memcmp(&workers[i].got, &alone[i].got, sizeof(result)) == 0);
    CHECK(i == 0 || memcmp(&alone[i].got, &alone[0].got, sizeof(result)) != 0);
  }
}

TEST_MAIN(TEST_ENTRY(one_pipeline_runs_in_many_threads_at_once))
