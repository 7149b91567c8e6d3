/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures the limits of the machine with small kernels: bandwidth of arrays of
 * three sizes, arithmetic, and the shortest dispatch. */
#include <stdlib.h>
#include <string.h>

#include "cli/stopwatch.h"
#include "commands/bench/bench.h"

enum {
  SMALL_BYTES = 192 << 10, /* fits the second cache of common processors */
  LARGE_BYTES = 96 << 20,  /* exceeds the last one of most */
  ARRAYS = 3,
  CHAINS = 8, /* independent operations of `peak` */
};

static const uint64_t BUDGET_NS = 150000000; /* for one limit */

static const char kernels[] =
    "kernel add workgroup(256) over(c)\n"
    "buffer a : read f32[] @0;\n"
    "buffer b : read f32[] @1;\n"
    "buffer c : write f32[] @2;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(c)) c[i] = a[i] + b[i];\n"
    "}\n"
    "kernel update workgroup(256) over(b)\n"
    "buffer a : read f32[] @0;\n"
    "buffer b : read_write f32[] @1;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(b)) b[i] = b[i] + a[i];\n"
    "}\n"
    "kernel peak workgroup(256) over(y)\n"
    "buffer y : write f32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{\n"
    "    let x = f32(global_id.x);\n"
    "    var a = x;\n"
    "    var b = x + 1.0;\n"
    "    var c = x + 2.0;\n"
    "    var d = x + 3.0;\n"
    "    var e = x + 4.0;\n"
    "    var f = x + 5.0;\n"
    "    var g = x + 6.0;\n"
    "    var h = x + 7.0;\n"
    "    for (let i = 0u; i < n; i++) {\n"
    "        a = fma(a, 0.5, 1.0);\n"
    "        b = fma(b, 0.5, 1.0);\n"
    "        c = fma(c, 0.5, 1.0);\n"
    "        d = fma(d, 0.5, 1.0);\n"
    "        e = fma(e, 0.5, 1.0);\n"
    "        f = fma(f, 0.5, 1.0);\n"
    "        g = fma(g, 0.5, 1.0);\n"
    "        h = fma(h, 0.5, 1.0);\n"
    "    }\n"
    "    y[global_id.x] = a + b + c + d + e + f + g + h;\n"
    "}\n";

typedef struct probe {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *add, *update, *peak;
  float *memory; /* LARGE_BYTES */
} probe;

/* Returns the shortest time of one launch, in nanoseconds, or 0 with a
 * status. */
static double shortest(vyre_pipeline *pipeline, const vyre_dispatch_desc *desc,
                       vyre_status *st) {
  uint64_t best = UINT64_MAX, start = stopwatch_ns();
  for (int i = 0; i < 1000; i++) {
    uint64_t before = stopwatch_ns();
    if (vyre_dispatch(pipeline, desc, st) != VYRE_OK) return 0;
    uint64_t after = stopwatch_ns();
    if (after - before < best) best = after - before;
    if (i >= 2 && after - start > BUDGET_NS) break;
  }
  return best > 0 ? (double)best : 1;
}

/* Returns the time of one launch of a kernel that moves @p bytes: `add` has an
 * output of its own, `update` works in place. */
static double time_stream(const probe *p, bool is_in_place, size_t bytes,
                          uint32_t repeat, vyre_status *st) {
  size_t each = bytes / ARRAYS / sizeof(float) * sizeof(float);
  char *memory = (char *)p->memory;
  if (each == 0) each = sizeof(float);
  vyre_input inputs[] = {vyre_input_bytes(memory, each),
                         vyre_input_bytes(memory + each, each)};
  vyre_output output =
      vyre_output_bytes(memory + (is_in_place ? 1 : 2) * each, each);
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 2,
                             .outputs = &output,
                             .output_count = 1,
                             .is_borrowed = true,
                             .has_repeat_count = true,
                             .repeat_count = repeat};
  return shortest(is_in_place ? p->update : p->add, &desc, st) / repeat;
}

/* Returns bytes per nanosecond of arrays with @p bytes in total, of the faster
 * kernel. */
static double bandwidth(const probe *p, double bytes, vyre_status *st) {
  if (bytes > LARGE_BYTES) bytes = LARGE_BYTES;
  if (bytes < SMALL_BYTES) bytes = SMALL_BYTES;
  uint32_t repeat = bytes < (4 << 20) ? 16 : 1;
  double apart = time_stream(p, false, (size_t)bytes, repeat, st);
  double in_place = time_stream(p, true, (size_t)bytes, repeat, st);
  double ns = apart < in_place ? apart : in_place;
  return ns > 0 ? (double)(size_t)bytes / ns : 0;
}

/* Returns operations per nanosecond. Doubles the work until it takes long
 * enough to measure. */
static double arithmetic(const probe *p, vyre_status *st) {
  enum { COUNT = 16384 };
  double rate = 0;
  for (uint32_t iterations = 64; iterations <= (1u << 18); iterations *= 4) {
    vyre_input given = vyre_input_bytes(&iterations, sizeof iterations);
    vyre_output output = vyre_output_bytes(p->memory, COUNT * sizeof(float));
    vyre_dispatch_desc desc = {.inputs = &given,
                               .input_count = 1,
                               .outputs = &output,
                               .output_count = 1,
                               .is_borrowed = true};
    double ns = shortest(p->peak, &desc, st);
    if (ns <= 0) return 0;
    rate = 2.0 * CHAINS * COUNT * iterations / ns;
    if (ns > 1e5) break; /* short samples escape other processes */
  }
  return rate;
}

/* Opens the device with its own context: --width must not lower the limits. */
static vyre_code open_probe(probe *p, const bench_state *s, vyre_status *st) {
  char own[OPTIONS_TEXT];
  vyre_context_options options = {
      .backend_options = args_cpu_options(s->run.flags.threads, 0, own)};
  p->memory = calloc(LARGE_BYTES / sizeof(float) + 1, sizeof(float));
  if (!p->memory) return VYRE_OUT_OF_MEMORY;
  vyre_code code = vyre_context_create(&options, &p->context, st);
  if (code == VYRE_OK) {
    code = vyre_device_open(p->context, vyre_device_name(s->run.device),
                            &p->device, st);
  }
  if (code == VYRE_OK) {
    code = vyre_module_parse(kernels, sizeof kernels - 1, "limits",
                             vyre_allocator_heap(), &p->module, NULL, st);
  }
  const vyre_compile_options how = {.tier = VYRE_TIER_OPTIMISED};
  vyre_pipeline **made[] = {&p->add, &p->update, &p->peak};
  for (size_t i = 0; i < sizeof made / sizeof made[0] && code == VYRE_OK; i++) {
    code = vyre_pipeline_compile(p->device, vyre_module_kernel(p->module, i),
                                 &how, made[i], NULL, st);
  }
  return code;
}

static void close_probe(probe *p) {
  vyre_pipeline_release(p->add);
  vyre_pipeline_release(p->update);
  vyre_pipeline_release(p->peak);
  vyre_module_release(p->module);
  vyre_device_release(p->device);
  vyre_context_release(p->context);
  free(p->memory);
}

bool bench_measure_limits(bench_state *s, problem *wrong) {
  probe p = {0};
  vyre_status st = {0};
  bench_limits *l = &s->limits;
  vyre_code code = open_probe(&p, s, &st);
  if (code == VYRE_OK) {
    l->operations = arithmetic(&p, &st);
    l->cache_bytes = bandwidth(&p, SMALL_BYTES, &st);
    l->memory_bytes = bandwidth(&p, LARGE_BYTES, &st);
    l->sized_bytes = bandwidth(&p, s->bytes, &st);
    l->launch_ns = time_stream(&p, false, ARRAYS * sizeof(float), 1, &st);
    code = st.code;
  }
  close_probe(&p);
  if (code == VYRE_OUT_OF_MEMORY) {
    return problem_no_memory(wrong, "the measurement of the machine");
  }
  return code == VYRE_OK || problem_from_status(wrong, &st);
}
