/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* OpenCL on PoCL. The library is loaded at run time, and the few functions and
 * constants are declared here: building needs no OpenCL headers. */
#ifndef VYRE_BENCH_CPU_OPENCL_H
#define VYRE_BENCH_CPU_OPENCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *cpu_handle; /* an object of OpenCL */

#define CPU_OPENCL_FUNCTIONS(X)                                               \
  X(int32_t, clGetPlatformIDs, (uint32_t, cpu_handle *, uint32_t *))          \
  X(int32_t, clGetPlatformInfo,                                               \
    (cpu_handle, uint32_t, size_t, void *, size_t *))                         \
  X(int32_t, clGetDeviceIDs,                                                  \
    (cpu_handle, uint64_t, uint32_t, cpu_handle *, uint32_t *))               \
  X(int32_t, clGetDeviceInfo,                                                 \
    (cpu_handle, uint32_t, size_t, void *, size_t *))                         \
  X(cpu_handle, clCreateContext,                                              \
    (const intptr_t *, uint32_t, const cpu_handle *, void *, void *,          \
     int32_t *))                                                              \
  X(cpu_handle, clCreateCommandQueue,                                         \
    (cpu_handle, cpu_handle, uint64_t, int32_t *))                            \
  X(cpu_handle, clCreateProgramWithSource,                                    \
    (cpu_handle, uint32_t, const char **, const size_t *, int32_t *))         \
  X(int32_t, clBuildProgram,                                                  \
    (cpu_handle, uint32_t, const cpu_handle *, const char *, void *, void *)) \
  X(int32_t, clGetProgramBuildInfo,                                           \
    (cpu_handle, cpu_handle, uint32_t, size_t, void *, size_t *))             \
  X(cpu_handle, clCreateKernel, (cpu_handle, const char *, int32_t *))        \
  X(cpu_handle, clCreateBuffer,                                               \
    (cpu_handle, uint64_t, size_t, void *, int32_t *))                        \
  X(int32_t, clSetKernelArg, (cpu_handle, uint32_t, size_t, const void *))    \
  X(int32_t, clEnqueueNDRangeKernel,                                          \
    (cpu_handle, cpu_handle, uint32_t, const size_t *, const size_t *,        \
     const size_t *, uint32_t, const cpu_handle *, cpu_handle *))             \
  X(int32_t, clFinish, (cpu_handle))                                          \
  X(int32_t, clReleaseMemObject, (cpu_handle))                                \
  X(int32_t, clGetKernelWorkGroupInfo,                                        \
    (cpu_handle, cpu_handle, uint32_t, size_t, void *, size_t *))             \
  X(int32_t, clReleaseKernel, (cpu_handle))                                   \
  X(int32_t, clReleaseProgram, (cpu_handle))

typedef struct cpu_opencl_api {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration has none there */
#define CPU_X(result, name, parameters) result(*name) parameters;
  CPU_OPENCL_FUNCTIONS(CPU_X)
#undef CPU_X
} cpu_opencl_api;

/* Valid after cpu_opencl_connect. */
extern cpu_opencl_api cpu_cl;

/* A device of PoCL with its context and queue. */
typedef struct cpu_opencl_device {
  char version[128];
  cpu_handle device, context, queue;
} cpu_opencl_device;

/* Opens the device whose name begins with @p driver ("pthread", "basic").
 * Returns false if it is missing; *why then says why. */
bool cpu_opencl_connect(cpu_opencl_device *d, const char *driver,
                        const char **why);

/* Compiles @p text. These exit if OpenCL reports an error. */
cpu_handle cpu_opencl_compile(const cpu_opencl_device *d, const char *name,
                              const char *text);
cpu_handle cpu_opencl_memory(const cpu_opencl_device *d, void *data,
                             size_t size);
void cpu_opencl_must(int32_t code, const char *what);

#endif
