/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who runs a workload of bench/cpu on a Vulkan device: vyre, or GLSL by hand. Both
 * have the workload's bytes in memory of the device, and nothing is copied while
 * they are timed. */
#ifndef VYRE_BENCH_VULKAN_SIDE_H
#define VYRE_BENCH_VULKAN_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/vyre.h"

#include "cpu/workload.h"
#include "raw.h"

typedef struct vulkan_side {
  const char *name;
  void *self; /* NULL: it is not there */
  /* Plain: with a product and a sum where the kernel has fma. False if it has no
   * such kernel; any other failure ends the program. */
  bool (*bind)(void *self, cpu_workload *w, bool is_plain);
  void (*upload)(void *self, uint32_t mask); /* buffers of the workload */
  void (*launch)(void *self);                /* over when it returns */
  void (*fetch)(void *self);                 /* what is written, back */
  void (*unbind)(void *self);
} vulkan_side;

/* $VYRE_BENCH_VULKAN, else "vulkan". */
const char *vulkan_device_name(void);
/* Number of that device among those of its backend: 1 for "vulkan:1". */
uint32_t vulkan_device_index(void);

/* Opens both, or says in a line and a row of @p suite what is missing: the rest of
 * the suite is then left out, which is no failure. */
typedef struct vulkan_ground {
  vyre_context *context;
  vyre_device *device;
  raw *r;
} vulkan_ground;
bool vulkan_open(vulkan_ground *g, const char *suite);
void vulkan_close(vulkan_ground *g);
/* The head of a suite: machine, device, driver. */
void vulkan_print(const vulkan_ground *g, const char *suite);

/* Why kernels in GLSL are not there. */
extern const char vulkan_no_modules[];

void vulkan_must(vyre_code code, const vyre_status *st, const char *what);

/* bench/cpu/FILE.vyre compiled, with `fma` as a product and a sum if plain. */
vyre_pipeline *vulkan_compile(vyre_device *device, const char *file,
                              bool is_plain);

vulkan_side vulkan_side_vyre(vyre_device *device, const char *name);
vulkan_side vulkan_side_raw(raw *r, const char *name);
void vulkan_side_free(vulkan_side *s);

#endif
