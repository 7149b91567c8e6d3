/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two implementations that run the workloads of bench/cpu on a Vulkan device:
 * vyre and hand-written GLSL. Both keep the data in device memory; no copies
 * are timed. */
#ifndef VYRE_BENCH_VULKAN_SIDE_H
#define VYRE_BENCH_VULKAN_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/vyre.h"

#include "cpu/workload.h"
#include "raw.h"

typedef struct vulkan_side {
  const char *name;
  void *self; /* NULL: unavailable */
  /* Prepares a workload. @p is_plain: a product and a sum replace fma. Returns
   * false if the side has no such kernel; every other failure ends the
   * program. */
  bool (*bind)(void *self, cpu_workload *w, bool is_plain);
  void (*upload)(void *self, uint32_t mask); /* mask of buffers */
  void (*launch)(void *self);                /* waits for the end */
  void (*fetch)(void *self);                 /* copies results to the host */
  void (*unbind)(void *self);
} vulkan_side;

/* Returns $VYRE_BENCH_VULKAN, or "vulkan". */
const char *vulkan_device_name(void);
/* Returns the index of that device in its backend: 1 for "vulkan:1". */
uint32_t vulkan_device_index(void);

/* Opens a vyre device and a raw device. If one is missing, prints a line, adds
 * a row to @p suite and returns false; the suite is skipped then. */
typedef struct vulkan_devices {
  vyre_context *context;
  vyre_device *device;
  raw *r;
} vulkan_devices;
bool vulkan_open(vulkan_devices *g, const char *suite);
void vulkan_close(vulkan_devices *g);
/* Prints the heading of a suite: machine, device and driver. */
void vulkan_print(const vulkan_devices *g, const char *suite);

/* Message for missing GLSL kernels. */
extern const char vulkan_no_modules[];

void vulkan_check(vyre_code code, const vyre_status *st, const char *context);

/* Compiles bench/cpu/FILE.vyre. @p is_plain: a product and a sum replace
 * fma. */
vyre_pipeline *vulkan_compile(vyre_device *device, const char *file,
                              bool is_plain);

vulkan_side vulkan_side_vyre(vyre_device *device, const char *name);
vulkan_side vulkan_side_raw(raw *r, const char *name);
void vulkan_side_free(vulkan_side *s);

#endif
