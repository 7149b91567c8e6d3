/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads with OpenCL on PoCL. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cpu/opencl.h"
#include "cpu/rival.h"
#include "rival.h"

enum { KERNEL_WORKGROUP_SIZE = 0x11B1 }; /* CL_KERNEL_COMPILE_WORK_GROUP_SIZE */

typedef struct step {
  cpu_handle kernel;
  size_t global[3], local[3];
} step;

typedef struct opencl {
  cpu_opencl_device on;
  cpu_handle program;
  cpu_handle memory[PUBLIC_BUFFERS];
  int memory_count;
  step *steps;
  int step_count;
} opencl;

static void set(const step *s, uint32_t index, const void *value, size_t size) {
  cpu_opencl_must(cpu_cl.clSetKernelArg(s->kernel, index, size, value),
                  "argument");
}

static void bind_launch(const opencl *cl, step *s,
                        const public_launch *launch) {
  int32_t code;
  uint32_t at = 0;
  s->kernel = cpu_cl.clCreateKernel(cl->program, launch->kernel, &code);
  cpu_opencl_must(code, launch->kernel);
  code = cpu_cl.clGetKernelWorkGroupInfo(s->kernel, cl->on.device,
                                         KERNEL_WORKGROUP_SIZE, sizeof s->local,
                                         s->local, NULL);
  cpu_opencl_must(code, launch->kernel);
  for (int i = 0; i < 3; i++) {
    s->global[i] = s->local[i] * launch->grid[i];
  }
  for (int i = 0; i < launch->buffer_count; i++) {
    const cpu_handle *m = &cl->memory[launch->buffers[i]];
    set(s, at++, (const void *)m, sizeof *m);
  }
  for (int i = 0; i < launch->uniform_count; i++) {
    set(s, at++, &launch->uniforms[i], 4);
  }
  if (launch->length) set(s, at, &launch->length, 4);
}

static void bind(void *self, public_workload *w) {
  opencl *cl = self;
  char *text = cpu_text(w->file, "cl");
  cl->program = cpu_opencl_compile(&cl->on, w->file, text);
  free(text);
  for (int i = 0; i < w->buffer_count; i++) {
    cl->memory[cl->memory_count++] =
        cpu_opencl_memory(&cl->on, w->buffers[i].data, w->buffers[i].size);
  }
  cl->steps = calloc((size_t)w->launch_count, sizeof *cl->steps);
  if (!cl->steps) bench_fail(w->name, "out of memory");
  for (int i = 0; i < w->launch_count; i++) {
    bind_launch(cl, &cl->steps[cl->step_count++], &w->launches[i]);
  }
}

static void launch(void *self) {
  const opencl *cl = self;
  for (int i = 0; i < cl->step_count; i++) {
    const step *s = &cl->steps[i];
    cpu_opencl_must(
        cpu_cl.clEnqueueNDRangeKernel(cl->on.queue, s->kernel, 3, NULL,
                                      s->global, s->local, 0, NULL, NULL),
        "enqueue");
  }
  cpu_opencl_must(cpu_cl.clFinish(cl->on.queue), "finish");
}

static void unbind(void *self) {
  opencl *cl = self;
  for (int i = 0; i < cl->step_count; i++) {
    cpu_cl.clReleaseKernel(cl->steps[i].kernel);
  }
  for (int i = 0; i < cl->memory_count; i++) {
    cpu_cl.clReleaseMemObject(cl->memory[i]);
  }
  cpu_cl.clReleaseProgram(cl->program);
  free(cl->steps);
  cl->steps = NULL;
  cl->step_count = cl->memory_count = 0;
}

public_rival public_opencl_open(const char *name, bool is_alone,
                                const char **why) {
  opencl *cl = calloc(1, sizeof *cl);
  if (!cl) bench_fail(name, "out of memory");
  if (!cpu_opencl_connect(&cl->on, is_alone ? "basic" : "pthread", why)) {
    free(cl);
    cl = NULL;
  }
  return (public_rival){name, cl, bind, launch, unbind};
}
