/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads OpenCL, opens devices of PoCL and compiles programs. */
#include "opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

int setenv(const char *name, const char *value, int overwrite);

enum {
  PLATFORM_VERSION = 0x0901, /* CL_PLATFORM_VERSION, _NAME */
  PLATFORM_NAME = 0x0902,
  DEVICE_TYPE_CPU = 1 << 1,
  DEVICE_NAME = 0x102B,
  MEM_READ_WRITE = 1 << 0,
  MEM_USE_HOST_PTR = 1 << 3,
  BUILD_LOG = 0x1183,
};

cpu_opencl_api cpu_cl;

void cpu_opencl_must(int32_t code, const char *what) {
  if (code == 0) return;
  char text[64];
  (void)snprintf(text, sizeof text, "OpenCL says %d", code);
  bench_fail(what, text);
}

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
    memcpy(&cpu_cl.name, &symbol, sizeof symbol); \
    *why = "libOpenCL.so.1 has no " #name;        \
    if (!symbol) return false;                    \
  }
  CPU_OPENCL_FUNCTIONS(X_LOAD)
#undef X_LOAD
  return true;
}

static cpu_handle find_platform(char *version, size_t room) {
  cpu_handle platforms[8];
  uint32_t count = 0;
  if (cpu_cl.clGetPlatformIDs(8, platforms, &count) != 0) return NULL;
  for (uint32_t i = 0; i < count && i < 8; i++) {
    char name[128] = "";
    cpu_cl.clGetPlatformInfo(platforms[i], PLATFORM_NAME, sizeof name, name,
                             NULL);
    if (!strstr(name, "Portable Computing Language")) continue;
    cpu_cl.clGetPlatformInfo(platforms[i], PLATFORM_VERSION, room, version,
                             NULL);
    return platforms[i];
  }
  return NULL;
}

static cpu_handle find_device(cpu_handle platform, const char *driver) {
  cpu_handle devices[8];
  uint32_t count = 0;
  if (cpu_cl.clGetDeviceIDs(platform, DEVICE_TYPE_CPU, 8, devices, &count) != 0)
    return NULL;
  for (uint32_t i = 0; i < count && i < 8; i++) {
    char name[256] = "";
    cpu_cl.clGetDeviceInfo(devices[i], DEVICE_NAME, sizeof name, name, NULL);
    if (strncmp(name, driver, strlen(driver)) == 0) return devices[i];
  }
  return NULL;
}

bool cpu_opencl_connect(cpu_opencl_device *d, const char *driver,
                        const char **why) {
  if (!load(why)) return false;
  cpu_handle platform = find_platform(d->version, sizeof d->version);
  *why = "libOpenCL.so.1 has no PoCL (Debian: pocl-opencl-icd)";
  if (platform) {
    d->device = find_device(platform, driver);
    *why = "PoCL has no such device";
  }
  if (!d->device) return false;
  int32_t code;
  d->context = cpu_cl.clCreateContext(NULL, 1, &d->device, NULL, NULL, &code);
  cpu_opencl_must(code, "context");
  d->queue = cpu_cl.clCreateCommandQueue(d->context, d->device, 0, &code);
  cpu_opencl_must(code, "queue");
  return true;
}

cpu_handle cpu_opencl_compile(const cpu_opencl_device *d, const char *name,
                              const char *text) {
  int32_t code;
  cpu_handle program =
      cpu_cl.clCreateProgramWithSource(d->context, 1, &text, NULL, &code);
  cpu_opencl_must(code, name);
  if (cpu_cl.clBuildProgram(program, 1, &d->device, "", NULL, NULL) != 0) {
    static char log[4096];
    cpu_cl.clGetProgramBuildInfo(program, d->device, BUILD_LOG, sizeof log, log,
                                 NULL);
    bench_fail(name, log);
  }
  return program;
}

cpu_handle cpu_opencl_memory(const cpu_opencl_device *d, void *data,
                             size_t size) {
  int32_t code;
  cpu_handle made = cpu_cl.clCreateBuffer(
      d->context, MEM_READ_WRITE | MEM_USE_HOST_PTR, size, data, &code);
  cpu_opencl_must(code, "buffer");
  return made;
}
