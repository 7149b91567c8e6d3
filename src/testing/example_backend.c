/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Example backend of docs/how-to/write-a-backend.md: the null backend, extended to
 * interpret lowered kernels. Only tests use it: they check that the
 * guide works, and that lowered kernels give the results of ref. */
#include <string.h>

#include "vyre/validate.h"
#include "vyre/version.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/backend.h"
#include "ir/ir.h"
#include "lir/lir.h"
#include "testing/lir_interp.h"

/* Objects of a backend begin with the objects of the runtime. */
typedef struct example_device {
  vyre_device base; /* place for a context or a queue of the device's API */
} example_device;

typedef struct example_pipeline {
  vyre_pipeline base;
  const vyre__lir_kernel *kernel; /* in the arena of the pipeline */
} example_pipeline;

typedef struct example_buffer {
  /* host stays NULL: only the backend can access the memory */
  vyre__buffer base;
  unsigned char *memory; /* place for a handle of the device's API */
} example_buffer;

/* --- devices -------------------------------------------------------------- */

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  if (index > 0) return false;
  out->description = "interprets lowered kernels";
  out->driver = "vyre " VYRE_VERSION_STRING;
  out->note = "for the tests of the guide";
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
      .has_atomics64 = true};
  return VYRE_OK;
}

/* --- pipelines ------------------------------------------------------------ */

static void target(const vyre_pipeline *pipeline, vyre__target *out) {
  (void)pipeline;
  *out = (vyre__target){0}; /* all types, all operations native */
}

static vyre_code load(vyre_pipeline *pipeline, const vyre__code_source *source,
                      vyre_status *st) {
  (void)st;
  ((example_pipeline *)pipeline)->kernel = source->kernel;
  return VYRE_OK;
}

/* --- device buffers ----------------------------------------------------- */

/* Memory is never imported, because the caps exclude it. */
static vyre_code buffer_init(vyre_device *device, vyre__buffer *buffer,
                             vyre_status *st) {
  example_buffer *own = (example_buffer *)buffer;
  size_t size = (size_t)buffer->size;
  if (size == 0) return VYRE_OK;
  own->memory = vyre__resize(device->allocator, NULL, 0, size);
  if (!own->memory) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
        "device buffers", VYRE_NUMBERS({"requested_bytes", size}),
        "free device buffers, or split the data",
        "device 'example' has no memory for a device buffer of %zu bytes",
        size);
  }
  memset(own->memory, 0, size);
  return VYRE_OK;
}

static void buffer_deinit(vyre_device *device, vyre__buffer *buffer) {
  example_buffer *own = (example_buffer *)buffer;
  vyre__resize(device->allocator, own->memory, (size_t)buffer->size, 0);
}

/* The runtime has checked the range; size is above 0. */
static vyre_code buffer_write(vyre_device *device, vyre__buffer *buffer,
                              uint64_t offset, const void *data, size_t size,
                              vyre_status *st) {
  (void)device;
  (void)st;
  memcpy(((example_buffer *)buffer)->memory + offset, data, size);
  return VYRE_OK;
}

static vyre_code buffer_read(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, void *data, size_t size,
                             vyre_status *st) {
  (void)device;
  (void)st;
  memcpy(data, ((example_buffer *)buffer)->memory + offset, size);
  return VYRE_OK;
}

/* --- running ------------------------------------------------------------ */

static size_t bytes_of(const vyre_buffer_decl *buffer, const vyre__view *view) {
  uint32_t size = vyre_element_size(buffer->element);
  return (size_t)view->length * (size ? size : 1);
}

static bool is_written(const vyre_buffer_decl *buffer) {
  return buffer->access != VYRE_ACCESS_READ &&
         buffer->access != VYRE_ACCESS_UNIFORM;
}

/* Sets the address of each buffer: device buffers directly, host memory as a
 * copy in the scratch arena. Uniforms are always copied, so that all loads of
 * a launch see the same value. */
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
      unsigned char *own =
          ((example_buffer *)view->buffer)->memory + view->offset;
      memory[i] = own;
      if (program->buffers[i].kind != VYRE_MEMORY_UNIFORM) continue;
      from = own;
    }
    memory[i] = vyre_arena_alloc(launch->scratch, size, 64);
    if (!memory[i]) return vyre__no_memory(st, "example", "bytes", size);
    memcpy(memory[i], from, size);
  }
  return VYRE_OK;
}

/* Copies written buffers back to the host. */
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

/* The buffers of the LIR are those of the program, then the spill buffer. */
static vyre_code interpret(const vyre_pipeline *pipeline,
                           const vyre__launch *launch,
                           unsigned char *const *memory, vyre_status *st) {
  const vyre__lir_kernel *kernel = ((const example_pipeline *)pipeline)->kernel;
  vyre__lir_binding *bound =
      vyre__arena_array(launch->scratch, kernel->buffer_count, sizeof *bound);
  if (!bound) {
    return vyre__no_memory(st, "example", "buffers", kernel->buffer_count);
  }
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    bool is_bound = kernel->buffers[i].source != VYRE_NO_INDEX;
    bound[i] =
        (vyre__lir_binding){.data = is_bound ? memory[i] : NULL,
                            .length = is_bound ? launch->views[i].length : 0};
  }
  uint64_t fuel = launch->max_loop_iterations;
  vyre__lir_launch job = {
      .buffers = bound,
      .fuel = fuel < UINT32_MAX ? (uint32_t)fuel : UINT32_MAX,
      .poison = 0xA5};
  memcpy(job.grid, launch->grid, sizeof job.grid);
  return vyre__lir_interpret(kernel, &job, pipeline->device->allocator, st);
}

static vyre_code run(vyre_pipeline *pipeline, vyre__launch *launch,
                     vyre_status *st) {
  size_t count = pipeline->program->buffer_count;
  unsigned char **memory = (unsigned char **)vyre__arena_array(
      launch->scratch, count, sizeof *memory);
  if (!memory) return vyre__no_memory(st, "example", "buffers", count);
  VYRE_TRY(stage(pipeline, launch, memory, st));
  VYRE_TRY(interpret(pipeline, launch, memory, st));
  collect(pipeline, launch, memory);
  return VYRE_OK;
}

static vyre_code execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  return vyre__execute_each(list, first, end, run, done, st);
}

/* --- the table ------------------------------------------------------------ */

extern const vyre__backend vyre__backend_example;

const vyre__backend vyre__backend_example = {
    .abi = VYRE__BACKEND_ABI,
    .struct_size = sizeof(vyre__backend),
    .name = "example",
    .precedence = 50,
    /* the interpreter computes floats on the host, with exact results */
    .is_exact = true,
    .device_size = sizeof(example_device),
    .pipeline_size = sizeof(example_pipeline),
    .buffer_size = sizeof(example_buffer),
    .describe = describe,
    .device_init = device_init,
    .target = target,
    .load = load,
    .buffer_init = buffer_init,
    .buffer_deinit = buffer_deinit,
    .buffer_write = buffer_write,
    .buffer_read = buffer_read,
    .execute = execute};
