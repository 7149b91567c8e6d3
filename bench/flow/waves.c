/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite flow.waves: graphs of small waves on all processors, against the same
 * loops in plain C on one thread; transients placed over each other against
 * separate memory; windows of queues on `vulkan`, many in a submission against
 * one submission and one wait each. Results are checked before times are
 * taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "flow.waves";

enum { ROUNDS = 15 };

static const char text[] =
    "kernel wave workgroup(256) over(y)\n"
    "buffer x : read f32[] @0;\n"
    "buffer y : write f32[] @1 output;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = 0.5 * x[i] + 1.0; }\n"
    "kernel path queue(u32) once(depth)\n"
    "buffer depth : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ depth[item] = window; if (item + 1 < n) push(item + 1); }\n"
    "kernel chain queue(u32)\n"
    "buffer count : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ atomic_add(count[0], 1); if (item + 1 < n) push(item + 1); }\n";

enum { WAVE, PATH, CHAIN };

/* --- waves -------------------------------------------------------------------*/

/* Groups of independent waves: wave w of a group reads what wave w of the group
 * before wrote. */
typedef struct waves {
  uint32_t groups, width, elements;
  vyre_wave_graph *graph;
  float *in, *out, *plain; /* one array per wave of a group */
  vyre_wave_input *inputs;
  vyre_wave_output *outputs;
  vyre_wave_result result;
} waves;

static void fail(const vyre_status *st) {
  bench_fail(suite, st->message);
}

static uint32_t add_resource(const waves *w, uint32_t group, uint32_t wave) {
  char name[32];
  uint32_t id;
  vyre_status st = {0};
  (void)snprintf(name, sizeof name, "g%u_w%u", group, wave);
  const vyre_wave_resource r = {.name = name,
                                .size = 4 * (uint64_t)w->elements,
                                .is_input = group == 0,
                                .is_output = group == w->groups};
  if (vyre_wave_graph_add_resource(w->graph, &r, &id, &st) != VYRE_OK)
    fail(&st);
  return id;
}

static waves waves_make(vyre_device *device, vyre_pipeline *pipeline,
                        uint32_t groups, uint32_t width, uint32_t elements,
                        bool is_separate) {
  waves w = {.groups = groups, .width = width, .elements = elements};
  const size_t bytes = (size_t)width * elements * sizeof(float);
  const vyre_wave_graph_options options = {.is_separate = is_separate};
  uint32_t *before = malloc(width * sizeof *before), id;
  vyre_status st = {0};
  w.in = malloc(bytes);
  w.out = malloc(bytes);
  w.plain = malloc(2 * bytes);
  w.inputs = malloc(width * sizeof *w.inputs);
  w.outputs = malloc(width * sizeof *w.outputs);
  if (!before || !w.in || !w.out || !w.plain || !w.inputs || !w.outputs)
    bench_fail(suite, "no memory");
  for (size_t i = 0; i < (size_t)width * elements; i++) w.in[i] = (float)i;
  if (vyre_wave_graph_create(device, &options, &w.graph, &st) != VYRE_OK)
    fail(&st);
  for (uint32_t g = 0; g <= groups; g++) {
    for (uint32_t k = 0; k < width; k++) {
      const uint32_t now = add_resource(&w, g, k);
      const size_t at = (size_t)k * elements, size = elements * sizeof(float);
      const vyre_wave_binding bindings[] = {{.resource = before[k]},
                                            {.resource = now}};
      const vyre_wave_desc desc = {.bindings = bindings, .binding_count = 2};
      if (g == 0) w.inputs[k] = (vyre_wave_input){now, w.in + at, size};
      if (g == groups) w.outputs[k] = (vyre_wave_output){now, w.out + at, size};
      if (g > 0 && vyre_wave_graph_add_wave(w.graph, pipeline, &desc, &id,
                                            &st) != VYRE_OK) {
        fail(&st);
      }
      before[k] = now;
    }
  }
  if (vyre_wave_graph_seal(w.graph, &st) != VYRE_OK) fail(&st);
  free(before);
  return w;
}

static void waves_free(waves *w) {
  vyre_wave_graph_release(w->graph);
  free(w->in);
  free(w->out);
  free(w->plain);
  free(w->inputs);
  free(w->outputs);
}

static bool run_waves(void *self) {
  waves *w = self;
  vyre_status st = {0};
  const vyre_wave_run run = {.inputs = w->inputs,
                             .input_count = w->width,
                             .outputs = w->outputs,
                             .output_count = w->width,
                             .result = &w->result};
  return vyre_wave_graph_run(w->graph, &run, NULL, &st) == VYRE_OK;
}

__attribute__((noinline)) static void plain_wave(const float *x, float *y,
                                                 uint32_t n) {
  for (uint32_t i = 0; i < n; i++) y[i] = 0.5f * x[i] + 1.0f;
}

/* Results are in the half that the last group wrote. */
static bool run_plain(void *self) {
  waves *w = self;
  const size_t half = (size_t)w->width * w->elements;
  float *from = w->plain, *to = w->plain + half;
  memcpy(from, w->in, half * sizeof *from);
  for (uint32_t g = 0; g < w->groups; g++) {
    for (uint32_t k = 0; k < w->width; k++) {
      const size_t at = (size_t)k * w->elements;
      plain_wave(from + at, to + at, w->elements);
    }
    float *swapped = from;
    from = to;
    to = swapped;
  }
  return true;
}

static void check_waves(waves *w) {
  const size_t half = (size_t)w->width * w->elements;
  const float *last = w->plain + (w->groups % 2 ? half : 0);
  const vyre_wave_plan *plan;
  vyre_status st = {0};
  if (!run_waves(w) || !run_plain(w)) bench_fail(suite, "a run failed");
  if (memcmp(w->out, last, half * sizeof *last) != 0)
    bench_fail(suite, "a wave graph and plain C differ");
  if (vyre_wave_graph_plan(w->graph, &plan, &st) != VYRE_OK) fail(&st);
  if (w->result.submissions != plan->submissions ||
      w->result.barriers != plan->barriers) {
    bench_fail(suite, "a run differs from its plan");
  }
}

static void row(const char *name, const char *unit, double each, bench_job own,
                const char *peer, bench_job other, int rounds,
                const char *note) {
  bench_times a, b;
  bench_pair(own, other, rounds, 1, &a, &b);
  const bench_result result = {.suite = suite,
                               .name = name,
                               .unit = unit,
                               .value = a.median / each,
                               .best = a.minimum / each,
                               .peer = peer,
                               .peer_value = other.run ? b.median / each : 0,
                               .peer_best = other.run ? b.minimum / each : 0,
                               .ratio = other.run ? b.median / a.median : 0,
                               .note = note};
  bench_row_show(&result);
}

static void bench_small(vyre_device *device, vyre_pipeline *pipeline) {
  static const uint32_t shapes[][3] = {{1000, 1, 1},    {100, 10, 1},
                                       {100, 10, 256},  {10, 100, 256},
                                       {100, 10, 4096}, {100, 10, 16384}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    const uint32_t *s = shapes[i];
    char name[64];
    waves w = waves_make(device, pipeline, s[0], s[1], s[2], false);
    check_waves(&w);
    (void)snprintf(name, sizeof name, "%u groups of %u waves of %u", s[0], s[1],
                   s[2]);
    row(name, "ns/wave", s[0] * s[1], (bench_job){run_waves, &w}, "C, 1 thread",
        (bench_job){run_plain, &w}, ROUNDS, "");
    waves_free(&w);
  }
}

static void bench_placed(vyre_device *device, vyre_pipeline *pipeline) {
  waves placed = waves_make(device, pipeline, 100, 10, 16384, false);
  waves apart = waves_make(device, pipeline, 100, 10, 16384, true);
  check_waves(&placed);
  check_waves(&apart);
  row("placed, 10 waves of 16384", "ns/wave", 1000,
      (bench_job){run_waves, &placed}, "separate memory",
      (bench_job){run_waves, &apart}, ROUNDS, "");
  waves_free(&placed);
  waves_free(&apart);
}

/* --- windows on vulkan -------------------------------------------------------- */

typedef struct windows {
  vyre_queue *queue;
  uint32_t n, *data;
  size_t count;
  vyre_queue_stats stats;
  uint64_t items;
} windows;

static windows windows_make(vyre_device *device, const vyre_module *module,
                            size_t kernel, uint32_t n, uint64_t max_windows) {
  windows w = {.n = n, .count = kernel == PATH ? n : 1};
  const vyre_queue_options options = {.capacity = kernel == PATH ? n : 1024,
                                      .max_windows = max_windows};
  vyre_status st = {0};
  w.data = calloc(w.count, sizeof *w.data);
  if (!w.data) bench_fail(suite, "no memory");
  if (vyre_queue_create(device, vyre_module_kernel(module, kernel), &options,
                        &w.queue, NULL, &st) != VYRE_OK) {
    fail(&st);
  }
  return w;
}

/* Runs until the queue is empty: once, or once per window. */
static bool run_windows(void *self) {
  static const uint32_t root;
  windows *w = self;
  vyre_status st = {0};
  const vyre_input in[] = {
      vyre_input_bytes(w->data, w->count * sizeof *w->data),
      vyre_input_bytes(&w->n, sizeof w->n)};
  const vyre_output out =
      vyre_output_bytes(w->data, w->count * sizeof *w->data);
  const vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = &out, .output_count = 1};
  w->items = 0;
  if (vyre_queue_fill(w->queue, &root, 1, &st) != VYRE_OK) return false;
  do {
    if (vyre_queue_run(w->queue, &desc, &w->stats, NULL, &st) != VYRE_OK)
      return false;
    w->items += w->stats.items;
  } while (w->stats.remaining > 0);
  return w->items == w->n;
}

static void windows_free(windows *w) {
  vyre_queue_release(w->queue);
  free(w->data);
}

static void bench_vulkan(const vyre_module *module) {
  vyre_device *device;
  vyre_status st = {0};
  if (vyre_device_open(NULL, "vulkan", &device, &st) != VYRE_OK) return;
  windows all = windows_make(device, module, CHAIN, 1000, 0);
  windows each = windows_make(device, module, CHAIN, 1000, 1);
  if (!run_windows(&all) || !run_windows(&each))
    bench_fail(suite, "a queue failed");
  row("vulkan, 1000 windows of 1 item", "ns/window", 1000,
      (bench_job){run_windows, &all}, "a wait per window",
      (bench_job){run_windows, &each}, 3,
      "lavapipe: LP_NUM_THREADS=0 uses no threads");
  windows path = windows_make(device, module, PATH, 20000, 0);
  if (!run_windows(&path)) bench_fail(suite, "a queue failed");
  row("vulkan, path of 20000 levels", "ns/window", 20000,
      (bench_job){run_windows, &path}, "", (bench_job){NULL, NULL}, 3,
      vyre_device_name(device));
  windows_free(&all);
  windows_free(&each);
  windows_free(&path);
  vyre_device_release(device);
}

void bench_flow_waves(void) {
  vyre_status st = {0};
  vyre_device *device;
  vyre_module *module = NULL;
  vyre_pipeline *pipeline = NULL;
  const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};
  if (vyre_device_open(NULL, "cpu", &device, &st) != VYRE_OK ||
      vyre_module_parse(text, strlen(text), "waves.vyre", (vyre_allocator){0},
                        &module, NULL, &st) != VYRE_OK ||
      vyre_pipeline_compile(device, vyre_module_kernel(module, WAVE),
                            &optimised, &pipeline, NULL, &st) != VYRE_OK) {
    fail(&st);
  }
  bench_small(device, pipeline);
  bench_placed(device, pipeline);
  bench_vulkan(module);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  vyre_device_release(device);
}
