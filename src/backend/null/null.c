/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A backend that is whole but for one thing: it runs nothing. Whoever writes a
 * backend starts from a copy; docs/backend-guide.md goes through it step by step,
 * and what each function may rely on is in hal/backend.h.
 *
 * Its memory stands for that of a device: the host cannot touch it, so that all
 * bytes come and go through the functions below, as on a device that is far away. */
#include <string.h>

#include "vyre/validate.h"
#include "vyre/version.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/backend.h"
#include "ir/ir.h"

/* What a backend keeps begins with what the driver keeps. */
typedef struct null_device {
  vyre_device base; /* here: a context or a queue of the device's own API */
} null_device;

typedef struct null_pipeline {
  vyre_pipeline base; /* here: the compiled kernel */
} null_pipeline;

typedef struct null_buffer {
  vyre__buffer base;     /* host stays NULL: nobody but us finds the memory */
  unsigned char *memory; /* here: a handle of the device's own API */
} null_buffer;

/* --- devices ------------------------------------------------------------------*/

static bool describe(uint32_t index, vyre_device_info *out) {
  if (index > 0) return false;
  out->description = "runs nothing: a template";
  out->driver = "vyre " VYRE_VERSION_STRING;
  out->note =
      "for those who write a backend; outputs keep what they begin with";
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
      .borrows_host_memory = false, /* it has memory of its own */
      .has_f64 = true,
      .has_u64 = true,
      .has_atomics64 = true,
      .is_stub = true}; /* not in a copy of this */
  return VYRE_OK;
}

static void device_finish(vyre_device *device) {
  (void)device;
}

/* --- pipelines ----------------------------------------------------------------*/

/* The program is valid, the bindings are planned, the workgroup fits the caps. */
static vyre_code pipeline_init(vyre_pipeline *pipeline, vyre_status *st) {
  (void)pipeline;
  (void)st;
  return VYRE_OK;
}

static void pipeline_finish(vyre_pipeline *pipeline) {
  (void)pipeline;
}

/* --- resident memory ----------------------------------------------------------*/

/* Nothing is ever imported: the caps say that host memory is not borrowed. */
static vyre_code buffer_init(vyre_device *device, vyre__buffer *buffer,
                             vyre_status *st) {
  null_buffer *own = (null_buffer *)buffer;
  size_t size = (size_t)buffer->size;
  if (size == 0) return VYRE_OK;
  own->memory = vyre__resize(device->allocator, NULL, 0, size);
  if (!own->memory) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
        "resident buffers", VYRE_NUMBERS({"requested_bytes", size}),
        "free resident buffers, or split the data",
        "device 'null' has no memory for a resident buffer of %zu bytes", size);
  }
  memset(own->memory, 0, size);
  return VYRE_OK;
}

static void buffer_finish(vyre_device *device, vyre__buffer *buffer) {
  null_buffer *own = (null_buffer *)buffer;
  vyre__resize(device->allocator, own->memory, (size_t)buffer->size, 0);
}

/* Ranges are checked, and sizes are above 0. */
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

/* --- running ------------------------------------------------------------------*/

static size_t bytes_of(const vyre_buffer_decl *buffer, const vyre__view *view) {
  uint32_t size = vyre_element_size(buffer->element);
  return (size_t)view->length * (size ? size : 1);
}

static bool is_written(const vyre_buffer_decl *buffer) {
  return buffer->access != VYRE_ACCESS_READ &&
         buffer->access != VYRE_ACCESS_UNIFORM;
}

/* Sets where the device finds each buffer: resident ones where they are, bytes of
 * the host in a copy, which the scratch keeps from run to run. Uniforms are always
 * copied: all that a launch reads of them agrees, whatever else writes there. */
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

/* What kernels may have written, back to the host. */
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
}

static vyre_code run(vyre_pipeline *pipeline, vyre__launch *launch,
                     vyre_status *st) {
  size_t count = pipeline->program->buffer_count;
  unsigned char **memory = (unsigned char **)vyre__arena_array(
      launch->scratch, count, sizeof *memory);
  if (!memory) return vyre__no_memory(st, "null", "buffers", count);
  VYRE_TRY(stage(pipeline, launch, memory, st));
  launch->launches = 0; /* here: launch the kernel, and wait for it */
  collect(pipeline, launch, memory);
  return VYRE_OK;
}

/* --- the table ----------------------------------------------------------------*/

extern const vyre__backend vyre__backend_null;

const vyre__backend vyre__backend_null = {
    .abi = VYRE__BACKEND_ABI,
    .struct_size = sizeof(vyre__backend),
    .name = "null",
    .is_explicit_only = true,
    .is_exact = true, /* it computes nothing, so it is never wrong */
    .device_size = sizeof(null_device),
    .pipeline_size = sizeof(null_pipeline),
    .buffer_size = sizeof(null_buffer),
    .describe = describe,
    .device_init = device_init,
    .device_deinit = device_finish,
    .pipeline_init = pipeline_init,
    .pipeline_deinit = pipeline_finish,
    .buffer_init = buffer_init,
    .buffer_deinit = buffer_finish,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .run = run};
