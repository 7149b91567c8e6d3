/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a backend is: one constant table. The driver checks arguments, validates
 * programs, plans bindings and sizes, and counts references; a backend gets only
 * what is right, and every slot that can fail says so by a status. */
#ifndef VYRE_DRIVER_BACKEND_H
#define VYRE_DRIVER_BACKEND_H

#include <stdatomic.h>

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/pipeline.h"

typedef struct vyre__backend vyre__backend;

/* The start of every backend's device. */
struct vyre_device {
  const vyre__backend *backend;
  vyre_allocator allocator;
  atomic_uint references;
};

enum { VYRE__PIPELINE_ID = 96 };

/* The start of every backend's pipeline. */
struct vyre_pipeline {
  vyre_device *device;   /* retained */
  vyre_program *program; /* retained; has a body and is valid */
  vyre_arena arena;      /* holds the plan; the backend may add */
  vyre_binding_plan plan;
  uint32_t workgroup[3];
  atomic_uint references;
  char id[VYRE__PIPELINE_ID];
};

/* One buffer of a dispatch. */
typedef struct vyre__view {
  unsigned char *data; /* NULL for shared buffers, and for ones without bytes */
  uint32_t length;     /* elements */
} vyre__view;

/* One run, checked. */
typedef struct vyre__launch {
  const vyre__view *views; /* one a buffer, in the program's order */
  uint32_t grid[3];        /* ids fit in 32 bits, the product in 64 */
  uint64_t max_iterations; /* at least 1 */
  uint64_t deadline_ns;    /* of vyre__clock_ns; 0: none */
  uint64_t timeout_ns;     /* what the deadline came from, to name it */
  vyre_writer print;       /* write may be NULL */
  vyre_check_options check;
  vyre_check_report *report; /* empty; not NULL if check asks for anything */
} vyre__launch;

enum { VYRE__BACKEND_ABI = 1 };

struct vyre__backend {
  uint32_t abi, struct_size;
  const char *name;
  size_t device_size;   /* bytes of its device and its pipeline; the driver */
  size_t pipeline_size; /* allocates and zeroes them, and sets the start */

  vyre_code (*device_init)(vyre_device *device, vyre_status *st);
  void (*device_finish)(vyre_device *device); /* after a successful init only */
  vyre_code (*pipeline_init)(vyre_pipeline *pipeline, vyre_status *st);
  void (*pipeline_finish)(vyre_pipeline *pipeline);
  vyre_code (*dispatch)(vyre_pipeline *pipeline, const vyre__launch *launch,
                        vyre_status *st);
};

/* Grid of a dispatch: the one function that decides it. @p lengths has the
 * elements of every buffer of the program. */
vyre_code vyre__grid_infer(const vyre_pipeline *pipeline,
                           const uint32_t override[3], const vyre__view *views,
                           uint32_t out[3], vyre_status *st);

#endif
