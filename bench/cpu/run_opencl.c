/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads with OpenCL on PoCL. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "opencl.h"
#include "rival.h"

enum { PASSES = 3, MEMORY = CPU_BUFFERS + PASSES };

typedef struct pass {
  cpu_handle kernel;
  size_t global[3], local[3];
} pass;

struct cpu_opencl {
  cpu_opencl_device on;
  cpu_handle program;
  pass passes[PASSES];
  int pass_count;
  cpu_handle memory[MEMORY];
  int memory_count;
  uint32_t *partial[PASSES];
};

cpu_opencl *cpu_opencl_open(const char *driver, const char **why) {
  cpu_opencl_device device = {.device = NULL};
  if (!cpu_opencl_connect(&device, driver, why)) return NULL;
  cpu_opencl *cl = calloc(1, sizeof *cl);
  if (!cl) bench_fail("OpenCL", "out of memory");
  cl->on = device;
  return cl;
}

const char *cpu_opencl_version(const cpu_opencl *cl) {
  const char *name = strstr(cl->on.version, "PoCL");
  return name ? name : cl->on.version;
}

/* --- a workload ------------------------------------------------------------*/

static cpu_handle add_memory(cpu_opencl *cl, void *data, size_t size) {
  if (cl->memory_count == MEMORY) bench_fail("OpenCL", "too many buffers");
  cpu_handle made = cpu_opencl_memory(&cl->on, data, size);
  return cl->memory[cl->memory_count++] = made;
}

static cpu_handle make_program(const cpu_opencl *cl) {
  char *text = cpu_text("peer_opencl", "cl");
  cpu_handle program = cpu_opencl_compile(&cl->on, "peer_opencl.cl", text);
  free(text);
  return program;
}

static pass *add_pass(cpu_opencl *cl, const char *name, const uint32_t *grid,
                      const uint32_t *local) {
  int32_t code;
  if (cl->pass_count == PASSES) bench_fail(name, "needs too many passes");
  if (!cl->program) cl->program = make_program(cl);
  pass *made = &cl->passes[cl->pass_count++];
  made->kernel = cpu_cl.clCreateKernel(cl->program, name, &code);
  cpu_opencl_must(code, name);
  for (int i = 0; i < 3; i++) {
    made->local[i] = local[i];
    made->global[i] = (size_t)grid[i] * local[i];
  }
  return made;
}

static void set(const pass *p, uint32_t index, const void *value, size_t size) {
  cpu_opencl_must(cpu_cl.clSetKernelArg(p->kernel, index, size, value),
                  "argument");
}

static void bind_reduce(cpu_opencl *cl, cpu_workload *w) {
  uint32_t left = (uint32_t)(w->args.buffers[0].size / 4);
  cpu_handle from =
      add_memory(cl, w->args.buffers[0].data, w->args.buffers[0].size);
  while (left > 1) {
    uint32_t sums = (left + 255) / 256, grid[3] = {sums, 1, 1};
    cpu_handle to;
    if (sums > 1) {
      uint32_t *room = calloc(sums, 4);
      if (!room) bench_fail(w->name, "out of memory");
      cl->partial[cl->pass_count] = room;
      to = add_memory(cl, room, (size_t)sums * 4);
    } else {
      to = add_memory(cl, w->args.buffers[1].data, 4);
    }
    pass *p = add_pass(cl, "reduce", grid, cpu_shapes[w->kernel].local);
    set(p, 0, (const void *)&from, sizeof from);
    set(p, 1, (const void *)&to, sizeof to);
    set(p, 2, &left, 4);
    from = to;
    left = sums;
  }
}

static void bind(void *self, cpu_workload *w) {
  cpu_opencl *cl = self;
  const cpu_shape *shape = &cpu_shapes[w->kernel];
  if (w->kernel == CPU_KERNEL_reduce) {
    bind_reduce(cl, w);
    return;
  }
  uint32_t at = 0;
  pass *p = add_pass(cl, shape->opencl, w->grid, shape->local);
  for (uint32_t i = 0; i < shape->buffers; i++) {
    cpu_handle m =
        add_memory(cl, w->args.buffers[i].data, w->args.buffers[i].size);
    set(p, at++, (const void *)&m, sizeof m);
  }
  for (uint32_t i = 0; i < shape->scalars; i++) {
    set(p, at++, &w->args.scalars[i], 4);
  }
  for (uint32_t i = 0; i < w->length_count; i++)
    set(p, at++, &w->lengths[i], 4);
}

void cpu_opencl_bind_pieces(cpu_opencl *cl, uint32_t *out, uint32_t count,
                            uint32_t rounds) {
  uint32_t grid[3] = {count, 1, 1}, local[3] = {1, 1, 1};
  pass *p = add_pass(cl, "pieces", grid, local);
  cpu_handle m = add_memory(cl, out, (size_t)count * 4);
  set(p, 0, (const void *)&m, sizeof m);
  set(p, 1, &rounds, 4);
}

void cpu_opencl_enqueue(cpu_opencl *cl) {
  for (int i = 0; i < cl->pass_count; i++) {
    const pass *p = &cl->passes[i];
    cpu_opencl_must(
        cpu_cl.clEnqueueNDRangeKernel(cl->on.queue, p->kernel, 3, NULL,
                                      p->global, p->local, 0, NULL, NULL),
        "enqueue");
  }
}

void cpu_opencl_finish(cpu_opencl *cl) {
  cpu_opencl_must(cpu_cl.clFinish(cl->on.queue), "finish");
}

static void launch(void *self) {
  cpu_opencl_enqueue(self);
  cpu_opencl_finish(self);
}

static void unbind(void *self) {
  cpu_opencl *cl = self;
  for (int i = 0; i < cl->pass_count; i++) {
    cpu_cl.clReleaseKernel(cl->passes[i].kernel);
    free(cl->partial[i]);
    cl->partial[i] = NULL;
  }
  for (int i = 0; i < cl->memory_count; i++) {
    cpu_cl.clReleaseMemObject(cl->memory[i]);
  }
  cl->pass_count = cl->memory_count = 0;
}

cpu_rival cpu_opencl_rival(cpu_opencl *cl, const char *name) {
  return (cpu_rival){name, cl, bind, launch, unbind};
}

/* PoCL compiles a kernel for its workgroup size when it is first enqueued. */
void cpu_opencl_build(cpu_opencl *cl) {
  if (cl->program) cpu_cl.clReleaseProgram(cl->program);
  cl->program = NULL;
  for (int i = 0; i < CPU_WORKLOADS; i++) {
    cpu_workload w;
    cpu_workload_make(&w, i, true);
    bind(cl, &w);
    launch(cl);
    unbind(cl);
    cpu_workload_free(&w);
  }
}
