/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads with OpenCL on PoCL. The library is loaded at run time, and
 * the few functions and constants are declared here: building needs no OpenCL
 * headers. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "rival.h"

int setenv(const char *name, const char *value, int overwrite);

typedef void *handle;

enum {
  PLATFORM_VERSION = 0x0901, /* CL_PLATFORM_VERSION, _NAME */
  PLATFORM_NAME = 0x0902,
  DEVICE_TYPE_CPU = 1 << 1,
  DEVICE_NAME = 0x102B,
  MEM_READ_WRITE = 1 << 0,
  MEM_USE_HOST_PTR = 1 << 3,
  BUILD_LOG = 0x1183,
};

#define FUNCTIONS(X)                                                           \
  X(int32_t, clGetPlatformIDs, (uint32_t, handle *, uint32_t *))               \
  X(int32_t, clGetPlatformInfo, (handle, uint32_t, size_t, void *, size_t *))  \
  X(int32_t, clGetDeviceIDs,                                                   \
    (handle, uint64_t, uint32_t, handle *, uint32_t *))                        \
  X(int32_t, clGetDeviceInfo, (handle, uint32_t, size_t, void *, size_t *))    \
  X(handle, clCreateContext,                                                   \
    (const intptr_t *, uint32_t, const handle *, void *, void *, int32_t *))   \
  X(handle, clCreateCommandQueue, (handle, handle, uint64_t, int32_t *))       \
  X(handle, clCreateProgramWithSource,                                         \
    (handle, uint32_t, const char **, const size_t *, int32_t *))              \
  X(int32_t, clBuildProgram,                                                   \
    (handle, uint32_t, const handle *, const char *, void *, void *))          \
  X(int32_t, clGetProgramBuildInfo,                                            \
    (handle, handle, uint32_t, size_t, void *, size_t *))                      \
  X(handle, clCreateKernel, (handle, const char *, int32_t *))                 \
  X(handle, clCreateBuffer, (handle, uint64_t, size_t, void *, int32_t *))     \
  X(int32_t, clSetKernelArg, (handle, uint32_t, size_t, const void *))         \
  X(int32_t, clEnqueueNDRangeKernel,                                           \
    (handle, handle, uint32_t, const size_t *, const size_t *, const size_t *, \
     uint32_t, const handle *, handle *))                                      \
  X(int32_t, clFinish, (handle))                                               \
  X(int32_t, clReleaseMemObject, (handle))                                     \
  X(int32_t, clReleaseKernel, (handle))                                        \
  X(int32_t, clReleaseProgram, (handle))

static struct {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration has none there */
#define X_POINTER(result, name, parameters) result(*name) parameters;
  FUNCTIONS(X_POINTER)
#undef X_POINTER
} cl_api;

enum { PASSES = 3, MEMORY = CPU_BUFFERS + PASSES };

typedef struct pass {
  handle kernel;
  size_t global[3], local[3];
} pass;

struct cpu_opencl {
  char version[128];
  handle device, context, queue, program;
  pass passes[PASSES];
  int pass_count;
  handle memory[MEMORY];
  int memory_count;
  uint32_t *partial[PASSES];
};

static void must(int32_t code, const char *what) {
  if (code == 0) return;
  char text[64];
  (void)snprintf(text, sizeof text, "OpenCL says %d", code);
  bench_fail(what, text);
}

/* --- opening ---------------------------------------------------------------*/

static bool load(const char **why) {
  static void *library;
  if (library) return true;
  /* The device with threads, and the one without. */
  (void)setenv("POCL_DEVICES", "pthread basic", 0);
  library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  *why = "libOpenCL.so.1 is missing (Debian: ocl-icd-libopencl1)";
  if (!library) return false;
#define X_LOAD(result, name, parameters)          \
  {                                               \
    void *symbol = dlsym(library, #name);         \
    memcpy(&cl_api.name, &symbol, sizeof symbol); \
    *why = "libOpenCL.so.1 has no " #name;        \
    if (!symbol) return false;                    \
  }
  FUNCTIONS(X_LOAD)
#undef X_LOAD
  return true;
}

static handle find_platform(char *version, size_t room) {
  handle platforms[8];
  uint32_t count = 0;
  if (cl_api.clGetPlatformIDs(8, platforms, &count) != 0) return NULL;
  for (uint32_t i = 0; i < count && i < 8; i++) {
    char name[128] = "";
    cl_api.clGetPlatformInfo(platforms[i], PLATFORM_NAME, sizeof name, name,
                             NULL);
    if (!strstr(name, "Portable Computing Language")) continue;
    cl_api.clGetPlatformInfo(platforms[i], PLATFORM_VERSION, room, version,
                             NULL);
    return platforms[i];
  }
  return NULL;
}

static handle find_device(handle platform, const char *driver) {
  handle devices[8];
  uint32_t count = 0;
  if (cl_api.clGetDeviceIDs(platform, DEVICE_TYPE_CPU, 8, devices, &count) != 0)
    return NULL;
  for (uint32_t i = 0; i < count && i < 8; i++) {
    char name[256] = "";
    cl_api.clGetDeviceInfo(devices[i], DEVICE_NAME, sizeof name, name, NULL);
    if (strncmp(name, driver, strlen(driver)) == 0) return devices[i];
  }
  return NULL;
}

static handle make_program(cpu_opencl *cl) {
  char *text = cpu_text("peer_opencl", "cl");
  const char *source = text;
  int32_t code;
  handle program =
      cl_api.clCreateProgramWithSource(cl->context, 1, &source, NULL, &code);
  must(code, "peer_opencl.cl");
  if (cl_api.clBuildProgram(program, 1, &cl->device, "", NULL, NULL) != 0) {
    static char log[4096];
    cl_api.clGetProgramBuildInfo(program, cl->device, BUILD_LOG, sizeof log,
                                 log, NULL);
    bench_fail("peer_opencl.cl", log);
  }
  free(text);
  return program;
}

cpu_opencl *cpu_opencl_open(const char *driver, const char **why) {
  if (!load(why)) return NULL;
  cpu_opencl *cl = calloc(1, sizeof *cl);
  if (!cl) bench_fail("OpenCL", "out of memory");
  handle platform = find_platform(cl->version, sizeof cl->version);
  *why = "libOpenCL.so.1 has no PoCL (Debian: pocl-opencl-icd)";
  if (platform) {
    cl->device = find_device(platform, driver);
    *why = "PoCL has no such device";
  }
  if (!cl->device) {
    free(cl);
    return NULL;
  }
  int32_t code;
  cl->context = cl_api.clCreateContext(NULL, 1, &cl->device, NULL, NULL, &code);
  must(code, "context");
  cl->queue = cl_api.clCreateCommandQueue(cl->context, cl->device, 0, &code);
  must(code, "queue");
  return cl;
}

const char *cpu_opencl_version(const cpu_opencl *cl) {
  const char *name = strstr(cl->version, "PoCL");
  return name ? name : cl->version;
}

/* --- a workload ------------------------------------------------------------*/

static handle add_memory(cpu_opencl *cl, void *data, size_t size) {
  int32_t code;
  if (cl->memory_count == MEMORY) bench_fail("OpenCL", "too many buffers");
  handle made = cl_api.clCreateBuffer(
      cl->context, MEM_READ_WRITE | MEM_USE_HOST_PTR, size, data, &code);
  must(code, "buffer");
  return cl->memory[cl->memory_count++] = made;
}

static pass *add_pass(cpu_opencl *cl, const char *name, const uint32_t *grid,
                      const uint32_t *local) {
  int32_t code;
  if (cl->pass_count == PASSES) bench_fail(name, "needs too many passes");
  if (!cl->program) cl->program = make_program(cl);
  pass *made = &cl->passes[cl->pass_count++];
  made->kernel = cl_api.clCreateKernel(cl->program, name, &code);
  must(code, name);
  for (int i = 0; i < 3; i++) {
    made->local[i] = local[i];
    made->global[i] = (size_t)grid[i] * local[i];
  }
  return made;
}

static void set(const pass *p, uint32_t index, const void *value, size_t size) {
  must(cl_api.clSetKernelArg(p->kernel, index, size, value), "argument");
}

static void bind_reduce(cpu_opencl *cl, cpu_workload *w) {
  uint32_t left = (uint32_t)(w->args.buffers[0].size / 4);
  handle from =
      add_memory(cl, w->args.buffers[0].data, w->args.buffers[0].size);
  while (left > 1) {
    uint32_t sums = (left + 255) / 256, grid[3] = {sums, 1, 1};
    handle to;
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
    handle m = add_memory(cl, w->args.buffers[i].data, w->args.buffers[i].size);
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
  handle m = add_memory(cl, out, (size_t)count * 4);
  set(p, 0, (const void *)&m, sizeof m);
  set(p, 1, &rounds, 4);
}

void cpu_opencl_enqueue(cpu_opencl *cl) {
  for (int i = 0; i < cl->pass_count; i++) {
    const pass *p = &cl->passes[i];
    must(cl_api.clEnqueueNDRangeKernel(cl->queue, p->kernel, 3, NULL, p->global,
                                       p->local, 0, NULL, NULL),
         "enqueue");
  }
}

void cpu_opencl_finish(cpu_opencl *cl) {
  must(cl_api.clFinish(cl->queue), "finish");
}

static void launch(void *self) {
  cpu_opencl_enqueue(self);
  cpu_opencl_finish(self);
}

static void unbind(void *self) {
  cpu_opencl *cl = self;
  for (int i = 0; i < cl->pass_count; i++) {
    cl_api.clReleaseKernel(cl->passes[i].kernel);
    free(cl->partial[i]);
    cl->partial[i] = NULL;
  }
  for (int i = 0; i < cl->memory_count; i++) {
    cl_api.clReleaseMemObject(cl->memory[i]);
  }
  cl->pass_count = cl->memory_count = 0;
}

cpu_rival cpu_opencl_rival(cpu_opencl *cl, const char *name) {
  return (cpu_rival){name, cl, bind, launch, unbind};
}

/* PoCL compiles a kernel for its workgroup size when it is first enqueued. */
void cpu_opencl_build(cpu_opencl *cl) {
  if (cl->program) cl_api.clReleaseProgram(cl->program);
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
