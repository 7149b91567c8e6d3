/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads with vyre: in device buffers, as single dispatches, or as a
 * batch if a kernel runs several times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rival.h"
#include "side.h"

enum { PASSES = 3, BINDINGS = CPU_BUFFERS + CPU_SCALARS };

typedef struct vyre_side {
  vyre_device *device;
  vyre_pipeline *pipeline;
  cpu_workload *w;
  vyre_buffer buffers[CPU_BUFFERS], partial[PASSES];
  vyre_input inputs[PASSES][BINDINGS];
  vyre_output outputs[PASSES][CPU_BUFFERS];
  vyre_dispatch_desc passes[PASSES];
  size_t pass_count;
} vyre_side;

const char vulkan_no_modules[] =
    "its SPIR-V modules are missing (make bench compiles them; Debian: "
    "glslang-tools)";

void vulkan_check(vyre_code code, const vyre_status *st, const char *context) {
  if (code == VYRE_OK) return;
  char text[sizeof st->message + sizeof st->fix + 8];
  (void)snprintf(text, sizeof text, "%s Fix: %s", st->message, st->fix);
  bench_fail(context, text);
}

/* --- devices -------------------------------------------------------------- */

const char *vulkan_device_name(void) {
  const char *name = getenv("VYRE_BENCH_VULKAN");
  return name && name[0] ? name : "vulkan";
}

uint32_t vulkan_device_index(void) {
  const char *colon = strchr(vulkan_device_name(), ':');
  return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

bool vulkan_open(vulkan_devices *g, const char *suite) {
  const vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  const char *reason;
  vyre_status st = {0};
  *g = (vulkan_devices){0};
  g->r = raw_open(vulkan_device_index(), &reason);
  if (!g->r) {
    cpu_missing(suite, "raw Vulkan", reason);
    return false;
  }
  vulkan_check(vyre_context_create(&options, &g->context, &st), &st, suite);
  if (vyre_device_open(g->context, vulkan_device_name(), &g->device, &st) ==
      VYRE_OK)
    return true;
  cpu_missing(suite, vulkan_device_name(), st.message);
  vulkan_close(g);
  return false;
}

void vulkan_close(vulkan_devices *g) {
  vyre_device_release(g->device);
  vyre_context_release(g->context);
  raw_close(g->r);
  *g = (vulkan_devices){0};
}

void vulkan_print(const vulkan_devices *g, const char *suite) {
  cpu_machine_print(suite, vulkan_device_name());
  printf("peer: hand-written Vulkan in C and GLSL, on %.60s, %s\n",
         raw_name(g->r), raw_driver(g->r));
}

/* --- kernels -------------------------------------------------------------- */

/* Replaces `fma` by a function `mad`. No other name in these files ends in
 * fma. */
static char *make_plain(char *text) {
  static const char head[] =
      "fn mad(a: f32, b: f32, c: f32) -> f32 { return a * b + c; }\n";
  size_t size = strlen(text), bytes = sizeof head + size;
  char *made = malloc(bytes);
  if (!made) bench_fail("kernel", "out of memory");
  memcpy(made, head, sizeof head - 1);
  memcpy(made + sizeof head - 1, text, size + 1);
  free(text);
  char *at = made + sizeof head - 1;
  while ((at = strstr(at, "fma("))) memcpy(at, "mad(", 4);
  return made;
}

vyre_pipeline *vulkan_compile(vyre_device *device, const char *file,
                              bool is_plain) {
  vyre_status st = {0};
  vyre_module *module;
  vyre_pipeline *pipeline;
  char *text = cpu_text(file, "vyre");
  if (is_plain) text = make_plain(text);
  vulkan_check(vyre_module_parse(text, strlen(text), file,
                                 vyre_allocator_heap(), &module, NULL, &st),
               &st, file);
  vulkan_check(vyre_pipeline_compile(device, vyre_module_kernel(module, 0),
                                     NULL, &pipeline, NULL, &st),
               &st, file);
  vyre_module_release(module);
  free(text);
  return pipeline;
}

/* --- workloads ------------------------------------------------------------ */

static vyre_buffer create_buffer(const vyre_side *s, size_t size) {
  vyre_status st = {0};
  vyre_buffer made;
  vulkan_check(vyre_buffer_create(s->device, size, &made, &st), &st,
               s->w->name);
  return made;
}

static void bind_plain(vyre_side *s) {
  const cpu_workload *w = s->w;
  const cpu_shape *shape = &cpu_shapes[w->kernel];
  vyre_dispatch_desc *d = &s->passes[0];
  *d = (vyre_dispatch_desc){.inputs = s->inputs[0],
                            .outputs = s->outputs[0],
                            .grid = {w->grid[0], w->grid[1], w->grid[2]}};
  for (uint32_t i = 0; i < shape->buffers; i++) {
    s->inputs[0][d->input_count++] = vyre_input_buffer(s->buffers[i]);
    if (!(shape->written >> i & 1)) continue;
    s->outputs[0][d->output_count++] = vyre_output_buffer(s->buffers[i]);
  }
  for (uint32_t i = 0; i < shape->scalars; i++) {
    s->inputs[0][d->input_count++] = vyre_input_bytes(&w->args.scalars[i], 4);
  }
  s->pass_count = 1;
}

/* Binds passes that sum until one value is left. */
static void bind_reduce(vyre_side *s) {
  size_t left = s->w->args.buffers[0].size / 4;
  vyre_buffer from = s->buffers[0];
  s->pass_count = 0;
  while (left > 1) {
    size_t pass = s->pass_count++, sums = (left + 255) / 256;
    if (pass == PASSES) bench_fail(s->w->name, "needs too many passes");
    if (sums > 1) s->partial[pass] = create_buffer(s, sums * 4);
    vyre_buffer to = sums > 1 ? s->partial[pass] : s->buffers[1];
    s->inputs[pass][0] = vyre_input_buffer(from);
    s->inputs[pass][1] = vyre_input_buffer(to);
    s->outputs[pass][0] = vyre_output_buffer(to);
    s->passes[pass] = (vyre_dispatch_desc){.inputs = s->inputs[pass],
                                           .input_count = 2,
                                           .outputs = s->outputs[pass],
                                           .output_count = 1,
                                           .grid = {(uint32_t)sums}};
    from = to;
    left = sums;
  }
}

static void upload(void *self, uint32_t mask) {
  const vyre_side *s = self;
  vyre_status st = {0};
  for (uint32_t i = 0; i < cpu_shapes[s->w->kernel].buffers; i++) {
    cpu_buffer b = s->w->args.buffers[i];
    if (!(mask >> i & 1)) continue;
    vulkan_check(
        vyre_buffer_upload(s->device, s->buffers[i], 0, b.data, b.size, &st),
        &st, s->w->name);
  }
}

static bool bind(void *self, cpu_workload *w, bool is_plain) {
  vyre_side *s = self;
  s->w = w;
  s->pipeline = vulkan_compile(s->device, cpu_shapes[w->kernel].file, is_plain);
  for (uint32_t i = 0; i < cpu_shapes[w->kernel].buffers; i++) {
    s->buffers[i] = create_buffer(s, w->args.buffers[i].size);
  }
  if (w->kernel == CPU_KERNEL_reduce) {
    bind_reduce(s);
  } else {
    bind_plain(s);
  }
  upload(s, UINT32_MAX);
  return true;
}

static void launch(void *self) {
  const vyre_side *s = self;
  vyre_status st;
  st.code = VYRE_OK;
  vulkan_check(vyre_submit(s->pipeline, s->passes, s->pass_count, NULL, &st),
               &st, s->w->name);
}

static void fetch(void *self) {
  const vyre_side *s = self;
  const cpu_shape *shape = &cpu_shapes[s->w->kernel];
  vyre_status st = {0};
  for (uint32_t i = 0; i < shape->buffers; i++) {
    cpu_buffer b = s->w->args.buffers[i];
    if (!(shape->written >> i & 1)) continue;
    vulkan_check(
        vyre_buffer_download(s->device, s->buffers[i], 0, b.data, b.size, &st),
        &st, s->w->name);
  }
}

static void destroy_buffer(const vyre_side *s, vyre_buffer *buffer) {
  vyre_status st = {0};
  if (buffer->id == 0 && buffer->owner == 0) return;
  vulkan_check(vyre_buffer_destroy(s->device, *buffer, &st), &st,
               "device buffer");
  *buffer = (vyre_buffer){0};
}

static void unbind(void *self) {
  vyre_side *s = self;
  for (int i = 0; i < CPU_BUFFERS; i++) destroy_buffer(s, &s->buffers[i]);
  for (int i = 0; i < PASSES; i++) destroy_buffer(s, &s->partial[i]);
  vyre_pipeline_release(s->pipeline);
  s->pipeline = NULL;
}

vulkan_side vulkan_side_vyre(vyre_device *device, const char *name) {
  vyre_side *s = calloc(1, sizeof *s);
  if (!s) bench_fail(name, "out of memory");
  s->device = device;
  return (vulkan_side){name, s, bind, upload, launch, fetch, unbind};
}

void vulkan_side_free(vulkan_side *s) {
  free(s->self);
  s->self = NULL;
}
