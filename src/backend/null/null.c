/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A complete backend that runs no kernel. A new backend starts as a copy of
 * this file; docs/how-to/write-a-backend.md explains it step by step, and hal/backend.h
 * states what each function may rely on.
 *
 * Its memory stands for that of a discrete device: the host has no access to
 * it, so all bytes go through the functions below. */
#include <string.h>

#include "vyre/validate.h"
#include "vyre/version.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/backend.h"
#include "ir/ir.h"

/* The structs of a backend begin with the struct of the runtime. */
typedef struct null_device {
  vyre_device base; /* add here: a context or queue of the device's API */
} null_device;

typedef struct null_pipeline {
  vyre_pipeline base; /* add here: the compiled kernel */
} null_pipeline;

typedef struct null_buffer {
  vyre__buffer base;     /* `host` stays NULL: only this file has the address */
  unsigned char *memory; /* in a real backend: a handle of the device's API */
} null_buffer;

/* --- devices ---------------------------------------------------------------*/

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  if (index > 0) return false;
  out->description = "runs nothing: a template";
  out->driver = "vyre " VYRE_VERSION_STRING;
  out->note =
      "a starting point for new backends; outputs keep their initial contents";
  return true;
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  (void)st;
  device->caps = (vyre_device_caps){
      .max_workgroup = {VYRE_MAX_INVOCATIONS, VYRE_MAX_INVOCATIONS,
                        VYRE_MAX_INVOCATIONS},
      .max_workgroup_invocations = VYRE_MAX_INVOCATIONS,
      .max_shared_bytes = 256 << 10,
      .max_buffer_bytes = (uint64_t)1 << 32,
      .host_alignment = 1,
      .borrows_host_memory = false, /* it has its own memory */
      .has_f64 = true,
      .has_u64 = true,
      .has_atomics64 = true,
      .is_stub = true}; /* remove this in a copy */
  return VYRE_OK;
}

/* --- pipelines -------------------------------------------------------------*/

/* The runtime has validated the program, planned the bindings and checked the
 * workgroup size against the caps. Without `target` and `generate` there is no
 * code to load: the backend takes the program itself. */
static vyre_code load(vyre_pipeline *pipeline, const vyre__code_source *source,
                      vyre_status *st) {
  (void)pipeline;
  (void)source;
  (void)st;
  return VYRE_OK;
}

/* --- device buffers --------------------------------------------------------*/

/* Imported memory does not occur: the caps say that host memory is not
 * borrowed. */
static vyre_code buffer_init(vyre_device *device, vyre__buffer *buffer,
                             vyre_status *st) {
  null_buffer *own = (null_buffer *)buffer;
  size_t size = (size_t)buffer->size;
  if (size == 0) return VYRE_OK;
  own->memory = vyre__resize(device->allocator, NULL, 0, size);
  if (!own->memory) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
        "device buffers", VYRE_NUMBERS({"requested_bytes", size}),
        "free device buffers, or split the data",
        "device 'null' has no memory for a device buffer of %zu bytes", size);
  }
  memset(own->memory, 0, size);
  return VYRE_OK;
}

static void buffer_deinit(vyre_device *device, vyre__buffer *buffer) {
  null_buffer *own = (null_buffer *)buffer;
  vyre__resize(device->allocator, own->memory, (size_t)buffer->size, 0);
}

/* The runtime has checked the ranges; sizes are above 0. */
static vyre_code buffer_write(vyre_device *device, vyre__buffer *buffer,
                              uint64_t offset, const void *data, size_t size,
                              vyre_status *st) {
  (void)device;
  (void)st;
  memcpy(((null_buffer *)buffer)->memory + offset, data, size);
  return VYRE_OK;
}

static vyre_code buffer_read(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, void *data, size_t size,
                             vyre_status *st) {
  (void)device;
  (void)st;
  memcpy(data, ((null_buffer *)buffer)->memory + offset, size);
  return VYRE_OK;
}

/* --- running ---------------------------------------------------------------*/

static size_t bytes_of(const vyre_buffer_decl *buffer, const vyre__view *view) {
  return (size_t)view->length * vyre_buffer_stride(buffer);
}

static bool is_written(const vyre_buffer_decl *buffer) {
  return buffer->access != VYRE_ACCESS_READ &&
         buffer->access != VYRE_ACCESS_UNIFORM;
}

/* Sets the device address of each buffer. Device buffers are used in place.
 * Host memory is copied to scratch blocks, which are reused from launch to
 * launch. Uniforms are always copied: all reads of a launch must return the
 * same value, even if the host changes its memory. */
static vyre_code stage(const vyre_pipeline *pipeline,
                       const vyre__launch *launch, unsigned char **memory,
                       vyre_status *st) {
  const vyre_program *program = pipeline->program;
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre__view *view = &launch->views[i];
    size_t size = bytes_of(&program->buffers[i], view);
    memory[i] = NULL;
    if (vyre__is_shared(&program->buffers[i]) || size == 0) continue;
    const unsigned char *from = view->data;
    if (view->buffer) {
      unsigned char *own = ((null_buffer *)view->buffer)->memory + view->offset;
      memory[i] = own;
      if (program->buffers[i].kind != VYRE_MEMORY_UNIFORM) continue;
      from = own;
    }
    memory[i] = vyre_arena_alloc(launch->scratch, size, 64);
    if (!memory[i]) return vyre__no_memory(st, "null", "bytes", size);
    memcpy(memory[i], from, size);
  }
  return VYRE_OK;
}

/* Copies the buffers that a kernel may have written back to the host, and the
 * device buffers that the caller wants there too. */
static void collect(const vyre_pipeline *pipeline, const vyre__launch *launch,
                    unsigned char **memory) {
  const vyre_program *program = pipeline->program;
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre__view *view = &launch->views[i];
    if (!memory[i] || view->buffer || !is_written(&program->buffers[i])) {
      continue;
    }
    memcpy(view->data, memory[i], bytes_of(&program->buffers[i], view));
  }
  for (uint32_t i = 0; i < launch->readback_count; i++) {
    const vyre__readback *readback = &launch->readbacks[i];
    memcpy(readback->to, memory[readback->buffer], (size_t)readback->size);
  }
}

static vyre_code run(vyre_pipeline *pipeline, vyre__launch *launch,
                     vyre_status *st) {
  size_t count = pipeline->program->buffer_count;
  unsigned char **memory = (unsigned char **)vyre__arena_array(
      launch->scratch, count, sizeof *memory);
  if (!memory) return vyre__no_memory(st, "null", "buffers", count);
  VYRE_TRY(stage(pipeline, launch, memory, st));
  launch->launches = 0; /* add here: launch the kernel, and wait for it */
  collect(pipeline, launch, memory);
  return VYRE_OK;
}

static vyre_code execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  return vyre__execute_each(list, first, end, run, done, st);
}

/* --- backend table ---------------------------------------------------------*/

extern const vyre__backend vyre__backend_null;

const vyre__backend vyre__backend_null = {
    .abi = VYRE__BACKEND_ABI,
    .struct_size = sizeof(vyre__backend),
    .name = "null",
    .precedence = 0,  /* by name only */
    .is_exact = true, /* it computes nothing, so no result is wrong */
    .device_size = sizeof(null_device),
    .pipeline_size = sizeof(null_pipeline),
    .buffer_size = sizeof(null_buffer),
    .describe = describe,
    .device_init = device_init,
    .load = load,
    .buffer_init = buffer_init,
    .buffer_deinit = buffer_deinit,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .execute = execute};
