/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite runtime: a routed dispatch against a direct one, the choice of the
 * fastest device against the best fixed one, and a dispatch on resident memory
 * with a copy of the result to the host. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): mkdtemp */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "vulkan/side.h"

static const char suite[] = "runtime";

enum {
  KERNELS = 14,
  SIZES = 4,
  DISPATCHES = 200,
  MAX_ELEMENTS = 1 << 18,
  ROUNDS = 401,
  REPEAT = 100,
  ELEMENTS = 256,
  BLOCK = 20,
};

static const uint32_t sizes[SIZES] = {256, 4096, 32768, MAX_ELEMENTS};

/* All kernels read x and update y, both of the same length. */
#define BODY(name, ...)                                          \
  "kernel " name                                                 \
  " workgroup(64) over(y)\n"                                     \
  "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n" \
  "{ let i = global_id.x; if (i >= len(y)) return; let v = "     \
  "x[i];\n" __VA_ARGS__ " }\n"

static const char text[] = BODY("saxpy", "y[i] = fma(0.5, v, y[i]);") BODY(
    "square", "y[i] = v * v;") BODY("roots",
                                    "y[i] = sqrt(abs(v)) + sqrt(abs(v) + 1.0);")
    BODY("waves", "y[i] = sin(v) * cos(v);") BODY(
        "powers", "y[i] = exp(v) * 0.25;") BODY("horner",
                                                "var s = v; for (let k = 0u; k "
                                                "< 16; k++) "
                                                "s = fma(s, v, 0.5); y[i] = s;")
        BODY("newton",
             "var s = v + 1.0; for (let k = 0u; k < 8; k++) "
             "s = 0.5 * (s + v / s); y[i] = s;")
            BODY("sums",
                 "var s = 0.0; for (let k = 0u; k < 32; k++) "
                 "s += x[(i + k) % len(x)]; y[i] = s;")
                BODY("stencil",
                     "if (i > 0 && i + 1 < len(x)) "
                     "y[i] = x[i - 1] - 2.0 * v + x[i + 1];")
                    BODY("gather", "y[i] = x[(i * 2654435761) % len(x)];") BODY(
                        "mixes",
                        "var h = as_u32(v); for (let k = 0u; k < 12; k++) "
                        "{ h = h * 2654435761; h = h ^ (h >> 15); } "
                        "y[i] = f32(h >> 8);")
                        BODY("branches",
                             "if (v > 0.5) { y[i] = v / 3.0; } else { y[i] = "
                             "-v; }")
                            BODY("orbits",
                                 "var a = v; var b = 0.0; var n = 0u; "
                                 "while (n < 24 && a * a + b * b < 4.0) { "
                                 "let t = a * a - b * b + v; b = 2.0 * a * b; "
                                 "a = t; n++; } "
                                 "y[i] = f32(n);")
                                BODY("reverse", "y[i] = x[len(x) - 1 - i];");

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

typedef struct ground {
  vyre_context *context;
  vyre_module *module;
  char folder[64];
  float *x, *y;
  vyre_input inputs[2];
  vyre_output output;
  vyre_dispatch_desc desc;
} ground;

static void open_context(ground *g) {
  vyre_status st = {0};
  vyre_context_options options = {.cache_directory = g->folder};
  must(vyre_context_create(&options, &g->context, &st), &st, "context");
}

static void ground_open(ground *g) {
  vyre_status st = {0};
  memset(g, 0, sizeof *g);
  (void)snprintf(g->folder, sizeof g->folder, "/tmp/vyre-bench-XXXXXX");
  if (!mkdtemp(g->folder)) bench_fail("folder", "cannot be made");
  open_context(g);
  must(vyre_module_parse(text, strlen(text), "runtime", vyre_allocator_heap(),
                         &g->module, NULL, &st),
       &st, "parse");
  g->x = malloc(MAX_ELEMENTS * sizeof *g->x);
  g->y = malloc(MAX_ELEMENTS * sizeof *g->y);
  if (!g->x || !g->y) bench_fail("data", "out of memory");
  for (int i = 0; i < MAX_ELEMENTS; i++) {
    g->x[i] = (float)(i % 1000) * 1e-3f;
    g->y[i] = 0.25f;
  }
}

static void ground_close(ground *g) {
  char command[96];
  vyre_module_release(g->module);
  vyre_context_release(g->context);
  free(g->x);
  free(g->y);
  (void)snprintf(command, sizeof command, "rm -rf %s", g->folder);
  if (system(command) != 0) bench_fail(g->folder, "cannot be removed");
}

static void bind(ground *g, uint32_t elements) {
  size_t size = elements * sizeof *g->x;
  g->inputs[0] = vyre_input_bytes(g->x, size);
  g->inputs[1] = vyre_input_bytes(g->y, size);
  g->output = vyre_output_bytes(g->y, size);
  g->desc = (vyre_dispatch_desc){.inputs = g->inputs,
                                 .input_count = 2,
                                 .outputs = &g->output,
                                 .output_count = 1};
}

/* --- overhead of a route ---------------------------------------------------*/

typedef struct pair {
  ground *g;
  vyre_pipeline *pipeline;
  vyre_route *route;
} pair;

static bool run_direct(void *self) {
  const pair *p = self;
  vyre_status st;
  st.code = VYRE_OK;
  return vyre_dispatch(p->pipeline, &p->g->desc, &st) == VYRE_OK;
}

static bool run_routed(void *self) {
  const pair *p = self;
  vyre_status st;
  st.code = VYRE_OK;
  return vyre_route_dispatch(p->route, &p->g->desc, NULL, &st) == VYRE_OK;
}

static vyre_router *open_router(ground *g, vyre_route_policy policy,
                                const char *devices) {
  vyre_router *router;
  vyre_status st = {0};
  vyre_router_options options = {.devices = devices, .policy = policy};
  must(vyre_router_open(g->context, &options, &router, &st), &st, "router");
  return router;
}

static vyre_route *open_route(ground *g, vyre_router *router, size_t kernel) {
  static const vyre_compile_options how = {.tier = VYRE_TIER_OPTIMISED};
  vyre_route *route;
  vyre_status st = {0};
  must(vyre_router_compile(router, vyre_module_kernel(g->module, kernel), &how,
                           &route, NULL, &st),
       &st, "route");
  return route;
}

static vyre_pipeline *compile(ground *g, vyre_device *device, size_t kernel) {
  static const vyre_compile_options how = {.tier = VYRE_TIER_OPTIMISED};
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  must(vyre_pipeline_compile(device, vyre_module_kernel(g->module, kernel),
                             &how, &pipeline, NULL, &st),
       &st, "compile");
  return pipeline;
}

static void bench_overhead(ground *g) {
  static const struct {
    vyre_route_policy policy;
    const char *name;
  } kinds[] = {
      {VYRE_ROUTE_FIXED, "route, fixed: time over a direct dispatch"},
      {VYRE_ROUTE_FASTEST, "route, fastest: time over a direct dispatch"}};
  for (size_t k = 0; k < 2; k++) {
    bench_times whole;
    vyre_router *router = open_router(g, kinds[k].policy, "cpu,ref");
    pair p = {.g = g, .route = open_route(g, router, 0)};
    p.pipeline = compile(g, vyre_router_device_at(router, 0), 0);
    bind(g, 64);
    for (int i = 0; i < 2 * DISPATCHES; i++) (void)run_routed(&p);
    bench_times over =
        bench_difference((bench_job){run_routed, &p},
                         (bench_job){run_direct, &p}, ROUNDS, REPEAT, &whole);
    bench_row_times(suite, kinds[k].name, "ns", 1, over, "its limit",
                    (bench_times){30, 30});
    vyre_pipeline_release(p.pipeline);
    vyre_route_release(p.route);
    vyre_router_release(router);
  }
}

/* --- the fastest device ----------------------------------------------------*/

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

static double time_of(bench_job job) {
  double start = bench_now_ns();
  if (!job.run(job.self)) bench_fail("a dispatch", "failed");
  return bench_now_ns() - start;
}

/* Returns the device with the lowest median of a few dispatches. */
static const char *best_fixed(ground *g, vyre_router *router, size_t kernel) {
  vyre_device *device;
  const char *name = NULL;
  double best = 0;
  for (size_t d = 0; (device = vyre_router_device_at(router, d)); d++) {
    pair one = {.g = g, .pipeline = compile(g, device, kernel)};
    double ns[11] = {0};
    int count = 0;
    (void)time_of((bench_job){run_direct, &one});
    while (count < 11 && (count < 1 || best == 0 || ns[0] < 4 * best)) {
      ns[count++] = time_of((bench_job){run_direct, &one});
    }
    double median = median_of(ns, count);
    if (best == 0 || median < best) {
      best = median;
      name = vyre_device_name(device);
    }
    vyre_pipeline_release(one.pipeline);
  }
  return name;
}

typedef struct tally {
  double ratios[KERNELS * SIZES];
  int count, above, other, kept;
} tally;

/* Runs a block of dispatches. The threads of the other router look for work for
 * a while before they sleep, so each block begins after a pause. */
static void time_block(pair *p, double *ns) {
  const struct timespec pause = {0, 2000000};
  nanosleep(&pause, NULL);
  (void)run_routed(p);
  for (int i = 0; i < BLOCK; i++) ns[i] = time_of((bench_job){run_routed, p});
}

/* Routes 200 dispatches; the second half alternates, in blocks, with a router
 * that is fixed to the best device. */
static void route_case(ground *g, vyre_router *router, size_t kernel,
                       uint32_t elements, tally *t) {
  double ours[DISPATCHES / 2], theirs[DISPATCHES / 2];
  vyre_route_candidate c;
  const char *choice = "";
  bind(g, elements);
  const char *best = best_fixed(g, router, kernel);
  vyre_router *fixed = open_router(g, VYRE_ROUTE_FIXED, best);
  pair p = {.g = g, .route = open_route(g, router, kernel)};
  pair other = {.g = g, .route = open_route(g, fixed, kernel)};
  for (int i = 0; i < DISPATCHES / 2; i++) (void)run_routed(&p);
  for (int i = 0; i < DISPATCHES / 2; i += BLOCK) {
    time_block(&p, ours + i);
    time_block(&other, theirs + i);
  }
  for (size_t i = 0; vyre_route_candidate_at(p.route, &g->desc, i, &c); i++) {
    if (c.is_choice) choice = c.device;
  }
  double ratio =
      median_of(ours, DISPATCHES / 2) / median_of(theirs, DISPATCHES / 2);
  t->ratios[t->count++] = ratio;
  t->above += ratio > 1.05;
  t->other += strcmp(best, choice) != 0;
  if (ratio > 1.05 || strcmp(best, choice) != 0) {
    printf("  %s, %u elements: %.2f on %s, the best is %s\n",
           vyre_program_name(vyre_module_kernel(g->module, kernel)),
           (unsigned)elements, ratio, choice, best);
  }
  vyre_route_release(p.route);
  vyre_route_release(other.route);
  vyre_router_release(fixed);
}

/* Counts first dispatches of a new process that need no measurement. */
static void restart_case(ground *g, vyre_router *router, size_t kernel,
                         uint32_t elements, tally *t) {
  vyre_route_report report;
  vyre_status st = {0};
  vyre_route *route = open_route(g, router, kernel);
  bind(g, elements);
  must(vyre_route_dispatch(route, &g->desc, &report, &st), &st, "dispatch");
  t->kept += report.reason == VYRE_ROUTE_BY_TIME;
  vyre_route_release(route);
}

static void bench_fastest(ground *g, const char *devices) {
  static tally t;
  vyre_router *router = open_router(g, VYRE_ROUTE_FASTEST, devices);
  for (size_t k = 0; k < KERNELS; k++) {
    for (int s = 0; s < SIZES; s++) route_case(g, router, k, sizes[s], &t);
  }
  vyre_router_release(router);
  vyre_context_release(g->context); /* as a restart does */
  open_context(g);
  router = open_router(g, VYRE_ROUTE_FASTEST, devices);
  for (size_t k = 0; k < KERNELS; k++) {
    for (int s = 0; s < SIZES; s++) restart_case(g, router, k, sizes[s], &t);
  }
  vyre_router_release(router);
  double worst = 0;
  for (int i = 0; i < t.count; i++) {
    if (t.ratios[i] > worst) worst = t.ratios[i];
  }
  bench_row_figure(suite, "fastest, time over the best fixed device", "x",
                   median_of(t.ratios, t.count), "its limit", 1.05);
  bench_row_figure(suite, "fastest, the worst of 56 cases", "x", worst, "", 0);
  bench_row_figure(suite, "fastest, cases above 1.05", "cases", t.above, "", 0);
  bench_row_figure(suite, "fastest, cases on another device", "cases", t.other,
                   "", 0);
  bench_row_figure(suite, "fastest, cases measured again after a restart",
                   "cases", t.count - t.kept, "", 0);
}

/* --- resident memory -------------------------------------------------------*/

typedef struct resident {
  ground *g;
  vyre_pipeline *pipeline;
  float *kept; /* memory of the direct call */
  raw_list *list;
  raw_buffer *y;
} resident;

static bool run_resident(void *self) {
  const resident *r = self;
  vyre_status st;
  st.code = VYRE_OK;
  return vyre_dispatch(r->pipeline, &r->g->desc, &st) == VYRE_OK;
}

/* The same work without a runtime. */
__attribute__((noinline)) static void saxpy(const float *x, float *y, int n) {
  for (int i = 0; i < n; i++) y[i] = 0.5f * x[i] + y[i];
}

static bool run_call(void *self) {
  const resident *r = self;
  saxpy(r->g->x, r->kept, ELEMENTS);
  memcpy(r->g->y, r->kept, ELEMENTS * sizeof(float));
  return true;
}

static bool run_raw(void *self) {
  const resident *r = self;
  raw_run(r->list);
  memcpy(r->g->y, raw_buffer_bytes(r->y), ELEMENTS * sizeof(float));
  return true;
}

static vyre_buffer upload(vyre_device *device, const float *data) {
  vyre_buffer out;
  vyre_status st = {0};
  size_t size = ELEMENTS * sizeof *data;
  must(vyre_buffer_create(device, size, &out, &st), &st, "buffer");
  must(vyre_buffer_upload(device, out, 0, data, size, &st), &st, "upload");
  return out;
}

/* Binds x and y in device memory, and y also in host memory. */
static void bind_resident(resident *r, vyre_device *device) {
  ground *g = r->g;
  bind(g, ELEMENTS);
  g->inputs[0] = vyre_input_buffer(upload(device, g->x));
  g->inputs[1] = vyre_input_buffer(upload(device, g->y));
  g->output.buffer = g->inputs[1].buffer;
  r->pipeline = compile(g, device, 0);
}

static void add_resident(resident *r, const char *name, bench_job peer,
                         const char *what) {
  bench_times ours, theirs;
  bench_pair((bench_job){run_resident, r}, peer, ROUNDS, REPEAT, &ours,
             &theirs);
  bench_row_times(suite, name, "us", 1e-3, ours, what, theirs);
}

static void bench_resident_cpu(ground *g) {
  vyre_device *device;
  vyre_status st = {0};
  resident r = {.g = g, .kept = calloc(ELEMENTS, sizeof(float))};
  must(vyre_device_open(g->context, "cpu", &device, &st), &st, "cpu");
  bind_resident(&r, device);
  add_resident(&r, "cpu, resident with readback", (bench_job){run_call, &r},
               "a call");
  vyre_pipeline_release(r.pipeline);
  vyre_device_release(device);
  free(r.kept);
}

static void bench_resident_vulkan(ground *g) {
  const char *reason = "";
  vyre_device *device;
  vyre_status st = {0};
  resident r = {.g = g};
  raw *theirs = raw_open(vulkan_device_index(), &reason);
  raw_kernel *kernel =
      theirs ? raw_kernel_create(theirs, "saxpy_plain", 2, 2) : NULL;
  if (!kernel || vyre_device_open(g->context, vulkan_device_name(), &device,
                                  &st) != VYRE_OK) {
    printf("%s: raw Vulkan is left out: %s\n", suite,
           theirs ? vulkan_no_modules : reason);
    raw_kernel_free(kernel);
    raw_close(theirs);
    return;
  }
  raw_buffer *x = raw_buffer_create(theirs, ELEMENTS * sizeof(float));
  r.y = raw_buffer_create(theirs, ELEMENTS * sizeof(float));
  const raw_range ranges[] = {{.buffer = x}, {.buffer = r.y}};
  raw_set *set = raw_set_create(kernel, ranges);
  const raw_dispatch item = {.kernel = kernel,
                             .set = set,
                             .words = {0x3f000000, ELEMENTS},
                             .grid = {1, 1, 1}};
  r.list = raw_list_create(theirs);
  raw_record(r.list, &item, 1);
  bind_resident(&r, device);
  add_resident(&r, "vulkan, resident with readback", (bench_job){run_raw, &r},
               "raw Vulkan");
  vyre_pipeline_release(r.pipeline);
  vyre_device_release(device);
  raw_list_free(r.list);
  raw_set_free(set);
  raw_buffer_free(x);
  raw_buffer_free(r.y);
  raw_kernel_free(kernel);
  raw_close(theirs);
}

void bench_runtime(void) {
  static ground g;
  ground_open(&g);
  bench_overhead(&g);
  bench_resident_cpu(&g);
  bench_resident_vulkan(&g);
  bench_fastest(&g, "all");
  ground_close(&g);
}
