/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A device with a context of its own and one compiled kernel, for tests of the
 * driver. */
#ifndef VYRE_TESTS_DRIVER_H
#define VYRE_TESTS_DRIVER_H

#include "vyre/vyre.h"

#include "support/check.h"

typedef struct rig {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_program *program; /* the module's first kernel */
  vyre_pipeline *pipeline;
} rig;

/* Compiles the first kernel of @p text on @p device. Ended by rig_close. The
 * code is optimised at once: a compile in the background would allocate memory
 * while a test counts allocations. */
static inline rig rig_open_as(const vyre_context_options *options,
                              const char *device, const char *text) {
  rig r = {0};
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(options, &r.context, &st), st);
  CHECK_OK(vyre_device_open(r.context, device, &r.device, &st), st);
  CHECK_OK(vyre_module_parse(text, strlen(text), "rig.vyre",
                             (vyre_allocator){0}, &r.module, NULL, &st),
           st);
  r.program = vyre_module_kernel(r.module, 0);
  const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};
  CHECK_OK(vyre_pipeline_compile(r.device, r.program, &optimised, &r.pipeline,
                                 NULL, &st),
           st);
  return r;
}

/* On ref. With @p heap, all of the driver's memory comes from there. */
static inline rig rig_open(const char *text, test_heap *heap) {
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  if (heap) options.allocator = (vyre_allocator){test_heap_resize, heap};
  return rig_open_as(&options, "ref", text);
}

static inline void rig_close(rig *r) {
  vyre_pipeline_release(r->pipeline);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
  vyre_module_release(r->module);
  *r = (rig){0};
}

/* Text into memory, terminated; refuses what does not fit. */
typedef struct memory_text {
  char *bytes;
  size_t capacity, length;
} memory_text;

static inline bool memory_write(void *self, const char *text, size_t length) {
  memory_text *memory = self;
  if (memory->capacity - memory->length <= length) return false;
  memcpy(memory->bytes + memory->length, text, length);
  memory->length += length;
  memory->bytes[memory->length] = '\0';
  return true;
}

#endif
