/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels and random wave graphs, with a plain computation of their results,
 * for tests. */
#ifndef VYRE_FLOW_WAVE_TESTING_H
#define VYRE_FLOW_WAVE_TESTING_H

#include <stdlib.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/driver.h"

static const char wave_text[] =
    "kernel mix workgroup(32) over(z)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read u32[] @1;\n"
    "buffer z : write u32[] @2 output;\n"
    "uniform a : u32 @3;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(z)) z[i] = a * x[i] + (y[i] ^ i); }\n"
    "kernel add workgroup(32) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] += 3 * x[i] + 1; }\n"
    "kernel part workgroup(32)\n" /* writes every third element */
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1 output;\n"
    "{ let i = 3 * global_id.x; if (i < len(y)) y[i] = x[i] + 7; }\n"
    "kernel down workgroup(1)\n"
    "buffer n : read_write u32[] @0;\n"
    "{ if (global_id.x > 0) return; if (n[0] > 0) n[0] -= 1; n[1] += 1; }\n"
    "kernel hang workgroup(1)\n"
    "buffer n : read_write u32[] @0;\n"
    "{ while (global_id.x == 0 && n[0] > 0) n[1] += 1; }\n"
    "kernel two_phases workgroup(32) over(z)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer z : write u32[] @2 output;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(y)) y[i] = x[i] + 5;\n"
    "  grid_barrier();\n"
    "  if (i < len(z)) z[i] = y[len(y) - 1 - i] * 3; }\n"
    "kernel scale workgroup(32) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1 output;\n"
    "uniform a : u32 @2;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = a * x[i]; }\n"
    "kernel count workgroup(32) over(x)\n"
    "buffer x : read u32[] @0;\n"
    "buffer n : read_write u32[] @1;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(x)) atomic_add(n[x[i] % len(n)], 1); }\n";

enum { MIX, ADD, PART, DOWN, HANG, TWO_PHASES, SCALE, COUNT, WAVE_KERNELS };

typedef struct wave_bench {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipelines[WAVE_KERNELS];
} wave_bench;

/* Opens a device. Returns false if the backend is not available here. */
static inline bool wave_open(wave_bench *b, const char *device,
                             const char *settings, vyre_allocator allocator) {
  vyre_status st = {0};
  vyre_context_options options = {.allocator = allocator,
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = settings};
  *b = (wave_bench){0};
  CHECK_OK(vyre_context_create(&options, &b->context, &st), st);
  if (vyre_device_open(b->context, device, &b->device, &st) != VYRE_OK) {
    vyre_context_release(b->context);
    return false;
  }
  CHECK_OK(vyre_module_parse(wave_text, strlen(wave_text), "wave.vyre",
                             (vyre_allocator){0}, &b->module, NULL, &st),
           st);
  for (size_t i = 0; i < WAVE_KERNELS; i++) {
    const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};
    CHECK_OK(vyre_pipeline_compile(b->device, vyre_module_kernel(b->module, i),
                                   &optimised, &b->pipelines[i], NULL, &st),
             st);
  }
  return true;
}

static inline void wave_close(wave_bench *b) {
  for (size_t i = 0; i < WAVE_KERNELS; i++)
    vyre_pipeline_release(b->pipelines[i]);
  vyre_device_release(b->device);
  vyre_context_release(b->context);
  vyre_module_release(b->module);
}

/* --- random graphs ------------------------------------------------------- */

enum { MAX_RESOURCES = 24, MAX_WAVES = 60 };

/* A wave of a random graph: kernel, resources, constant. */
typedef struct random_wave {
  uint32_t kernel, x, y, z, a;
} random_wave;

typedef struct random_graph {
  uint32_t resources, waves, elements, inputs, outputs;
  random_wave wave[MAX_WAVES];
} random_graph;

static inline uint32_t wave_random(uint64_t *state, uint32_t below) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)((*state >> 33) % below);
}

/* Resources [0, inputs) are inputs. The next one is both input and output. The
 * last ones are outputs. */
static inline random_graph random_graph_make(uint64_t seed) {
  uint64_t state = seed * 77 + 5;
  random_graph g = {.resources = 5 + wave_random(&state, MAX_RESOURCES - 4),
                    .waves = 1 + wave_random(&state, MAX_WAVES),
                    .elements = 1 + wave_random(&state, 200)};
  g.inputs = 1 + wave_random(&state, 2);
  g.outputs = 1 + wave_random(&state, 2);
  bool written[MAX_RESOURCES] = {0};
  for (uint32_t i = 0; i <= g.inputs; i++) written[i] = true;
  for (uint32_t i = 0; i < g.waves; i++) {
    random_wave *w = &g.wave[i];
    /* reads what has contents, writes anything but inputs */
    do w->x = wave_random(&state, g.resources);
    while (!written[w->x]);
    do w->y = wave_random(&state, g.resources);
    while (!written[w->y]);
    do {
      w->z = g.inputs + wave_random(&state, g.resources - g.inputs);
    } while (w->z == w->x || w->z == w->y);
    w->kernel = wave_random(&state, 3);
    w->a = wave_random(&state, 1000);
    written[w->z] = true;
  }
  return g;
}

static inline bool random_is_output(const random_graph *g, uint32_t r) {
  return r == g->inputs || r >= g->resources - g->outputs;
}

/* The results, computed one wave after the other on separate memory. */
static inline void random_graph_expect(const random_graph *g, uint32_t **data) {
  for (uint32_t i = 0; i < g->waves; i++) {
    const random_wave *w = &g->wave[i];
    const uint32_t *x = data[w->x], *y = data[w->y];
    uint32_t *z = data[w->z];
    for (uint32_t k = 0; k < g->elements; k++) {
      if (w->kernel == MIX) z[k] = w->a * x[k] + (y[k] ^ k);
      if (w->kernel == ADD) z[k] += 3 * x[k] + 1;
      if (w->kernel == PART) z[k] = k % 3 == 0 ? x[k] + 7 : 0;
    }
  }
}

static inline vyre_code random_graph_build(const wave_bench *b,
                                           const random_graph *g,
                                           const vyre_wave_graph_options *o,
                                           vyre_wave_graph **out,
                                           vyre_status *st) {
  uint32_t id;
  char name[16];
  vyre_code code = vyre_wave_graph_create(b->device, o, out, st);
  for (uint32_t i = 0; i < g->resources && code == VYRE_OK; i++) {
    (void)snprintf(name, sizeof name, "r%u", i);
    vyre_wave_resource r = {.name = name,
                            .size = 4 * (uint64_t)g->elements,
                            .is_input = i <= g->inputs,
                            .is_output = random_is_output(g, i)};
    code = vyre_wave_graph_add_resource(*out, &r, &id, st);
  }
  for (uint32_t i = 0; i < g->waves && code == VYRE_OK; i++) {
    const random_wave *w = &g->wave[i];
    vyre_wave_binding mix[] = {{.resource = w->x},
                               {.resource = w->y},
                               {.resource = w->z},
                               {.data = &w->a, .size = 4}};
    vyre_wave_binding two[] = {{.resource = w->x}, {.resource = w->z}};
    vyre_wave_desc desc = {.bindings = w->kernel == MIX ? mix : two,
                           .binding_count = w->kernel == MIX ? 4 : 2};
    code =
        vyre_wave_graph_add_wave(*out, b->pipelines[w->kernel], &desc, &id, st);
  }
  if (code == VYRE_OK) code = vyre_wave_graph_seal(*out, st);
  return code;
}

/* Runs a graph on @p data, which has one array per resource: inputs are read
 * from it, outputs written to it. */
static inline vyre_code random_graph_run(vyre_wave_graph *graph,
                                         const random_graph *g, uint32_t **data,
                                         vyre_wave_result *result,
                                         vyre_fence **fence, vyre_status *st) {
  vyre_wave_input in[MAX_RESOURCES];
  vyre_wave_output out[MAX_RESOURCES];
  size_t size = 4 * (size_t)g->elements;
  vyre_wave_run run = {.inputs = in, .outputs = out, .result = result};
  for (uint32_t i = 0; i < g->resources; i++) {
    if (i <= g->inputs)
      in[run.input_count++] = (vyre_wave_input){i, data[i], size};
    if (random_is_output(g, i))
      out[run.output_count++] = (vyre_wave_output){i, data[i], size};
  }
  return vyre_wave_graph_run(graph, &run, fence, st);
}

/* Arrays of a run, with inputs that @p seed gives. */
typedef struct random_data {
  uint32_t *at[MAX_RESOURCES], values[MAX_RESOURCES][200];
} random_data;

static inline void random_data_fill(random_data *d, const random_graph *g,
                                    uint64_t seed) {
  uint64_t state = seed;
  memset(d->values, 0, sizeof d->values);
  for (uint32_t i = 0; i < MAX_RESOURCES; i++) d->at[i] = d->values[i];
  for (uint32_t i = 0; i <= g->inputs; i++) {
    for (uint32_t k = 0; k < g->elements; k++)
      d->values[i][k] = wave_random(&state, UINT32_MAX);
  }
}

#endif
