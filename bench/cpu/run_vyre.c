/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads on a device of vyre, through the public API only. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "rival.h"

long syscall(long number, ...); /* not in POSIX */

enum { PASSES = 3, BINDINGS = CPU_BUFFERS + CPU_SCALARS };

struct cpu_vyre {
  vyre_context *context;
  vyre_device *device;
  vyre_compile_options options;
  vyre_module *module;
  vyre_pipeline *pipeline;
  vyre_input inputs[PASSES][BINDINGS];
  vyre_output outputs[PASSES][CPU_BUFFERS];
  vyre_dispatch_desc passes[PASSES];
  size_t pass_count;
  vyre_buffer partial[PASSES];
};

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code == VYRE_OK) return;
  char text[sizeof st->message + sizeof st->fix + 8];
  (void)snprintf(text, sizeof text, "%s Fix: %s", st->message, st->fix);
  bench_fail(what, text);
}

const char *cpu_device_name(void) {
  const char *name = getenv("VYRE_BENCH_DEVICE");
  return name && name[0] ? name : "cpu";
}

char *cpu_text(const char *name, const char *extension) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/%s.%s", VYRE_BENCH_CPU, name,
                 extension);
  FILE *file = fopen(path, "rb");
  if (!file) bench_fail(path, "cannot be read");
  size_t room = 1 << 16;
  char *text = malloc(room);
  size_t size = text ? fread(text, 1, room - 1, file) : 0;
  if (!text || size == 0 || size == room - 1)
    bench_fail(path, "cannot be read");
  text[size] = 0;
  (void)fclose(file);
  return text;
}

/* --- the device ------------------------------------------------------------*/

/* Opens a device with one thread: a device has one thread per processor that
 * the process may use when it is opened. */
static vyre_code open_alone(cpu_vyre *v, const char *device, vyre_status *st) {
  unsigned long before[16] = {0}, one[16] = {0};
  long size = syscall(SYS_sched_getaffinity, 0, sizeof before, before);
  for (int i = 0; size > 0 && i < 16 && !one[i]; i++) {
    one[i] = before[i] & (~before[i] + 1);
    if (one[i]) break;
  }
  if (size > 0) (void)syscall(SYS_sched_setaffinity, 0, sizeof one, one);
  vyre_code code = vyre_device_open(v->context, device, &v->device, st);
  if (size > 0) (void)syscall(SYS_sched_setaffinity, 0, sizeof before, before);
  return code;
}

cpu_vyre *cpu_vyre_open(const char *device, bool is_alone, uint8_t ulp_budget,
                        vyre_status *st) {
  cpu_vyre *v = calloc(1, sizeof *v);
  if (!v) bench_fail(device, "out of memory");
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  must(vyre_context_create(&options, &v->context, st), st, "context");
  v->options.ulp_budget = ulp_budget;
  v->options.tier = VYRE_TIER_OPTIMISED;
  vyre_code code = is_alone
                       ? open_alone(v, device, st)
                       : vyre_device_open(v->context, device, &v->device, st);
  if (code == VYRE_OK) return v;
  cpu_vyre_close(v);
  return NULL;
}

void cpu_vyre_close(cpu_vyre *v) {
  if (!v) return;
  vyre_device_release(v->device);
  vyre_context_release(v->context);
  free(v);
}

/* --- a workload ------------------------------------------------------------*/

static void bind_plain(cpu_vyre *v, cpu_workload *w) {
  const cpu_shape *shape = &cpu_shapes[w->kernel];
  vyre_dispatch_desc *d = &v->passes[0];
  *d = (vyre_dispatch_desc){.inputs = v->inputs[0],
                            .outputs = v->outputs[0],
                            .grid = {w->grid[0], w->grid[1], w->grid[2]},
                            .is_borrowed = true,
                            .require_zero_copy = true};
  for (uint32_t i = 0; i < shape->buffers; i++) {
    cpu_buffer b = w->args.buffers[i];
    v->inputs[0][d->input_count++] = vyre_input_bytes(b.data, b.size);
    if (!(shape->written >> i & 1)) continue;
    v->outputs[0][d->output_count++] = vyre_output_bytes(b.data, b.size);
  }
  for (uint32_t i = 0; i < shape->scalars; i++) {
    v->inputs[0][d->input_count++] = vyre_input_bytes(&w->args.scalars[i], 4);
  }
  v->pass_count = 1;
}

/* Sums in several passes, until one number is left: one batch with device
 * buffers. */
static void bind_reduce(cpu_vyre *v, cpu_workload *w) {
  size_t left = w->args.buffers[0].size / 4;
  vyre_status st = {0};
  v->pass_count = 0;
  while (left > 1) {
    size_t pass = v->pass_count++, sums = (left + 255) / 256;
    if (pass == PASSES) bench_fail(w->name, "needs too many passes");
    vyre_input *in = v->inputs[pass];
    in[0] = pass == 0 ? vyre_input_bytes(w->args.buffers[0].data,
                                         w->args.buffers[0].size)
                      : vyre_input_buffer(v->partial[pass - 1]);
    if (sums > 1) {
      must(vyre_buffer_create(v->device, sums * 4, &v->partial[pass], &st), &st,
           w->name);
      in[1] = vyre_input_buffer(v->partial[pass]);
      v->outputs[pass][0] = vyre_output_buffer(v->partial[pass]);
    } else {
      in[1] = vyre_input_bytes(w->args.buffers[1].data, 4);
      v->outputs[pass][0] = vyre_output_bytes(w->args.buffers[1].data, 4);
    }
    v->passes[pass] = (vyre_dispatch_desc){.inputs = in,
                                           .input_count = 2,
                                           .outputs = v->outputs[pass],
                                           .output_count = 1,
                                           .grid = {(uint32_t)sums},
                                           .is_borrowed = true,
                                           .require_zero_copy = true};
    left = sums;
  }
}

void cpu_vyre_compile(cpu_vyre *v, const char *file) {
  vyre_status st = {0};
  char *text = cpu_text(file, "vyre");
  must(vyre_module_parse(text, strlen(text), file, vyre_allocator_heap(),
                         &v->module, NULL, &st),
       &st, file);
  must(vyre_pipeline_compile(v->device, vyre_module_kernel(v->module, 0),
                             &v->options, &v->pipeline, NULL, &st),
       &st, file);
  free(text);
}

vyre_pipeline *cpu_vyre_pipeline(const cpu_vyre *v) {
  return v->pipeline;
}

vyre_device *cpu_vyre_device(const cpu_vyre *v) {
  return v->device;
}

static void bind(void *self, cpu_workload *w) {
  cpu_vyre *v = self;
  cpu_vyre_compile(v, cpu_shapes[w->kernel].file);
  if (w->kernel == CPU_KERNEL_reduce) {
    bind_reduce(v, w);
  } else {
    bind_plain(v, w);
  }
}

static void launch(void *self) {
  cpu_vyre *v = self;
  vyre_status st;
  st.code = VYRE_OK;
  must(vyre_submit(v->pipeline, v->passes, v->pass_count, NULL, &st), &st,
       "dispatch");
}

static void unbind(void *self) {
  cpu_vyre *v = self;
  vyre_status st = {0};
  for (size_t i = 0; i < PASSES; i++) {
    if (v->partial[i].id == 0 && v->partial[i].owner == 0) continue;
    must(vyre_buffer_destroy(v->device, v->partial[i], &st), &st, "resident");
    v->partial[i] = (vyre_buffer){0};
  }
  vyre_pipeline_release(v->pipeline);
  vyre_module_release(v->module);
  v->pipeline = NULL;
  v->module = NULL;
}

cpu_rival cpu_vyre_rival(cpu_vyre *v, const char *name) {
  return (cpu_rival){name, v, bind, launch, unbind};
}
