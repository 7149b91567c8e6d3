/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A backend that takes programs in their binary form and runs them on "ref" of
 * a second context. Its memory cannot be accessed by the host, and views must be
 * aligned to 64 bytes, so that the library has to copy. */
#ifndef VYRE_TESTS_PROXY_H
#define VYRE_TESTS_PROXY_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vyre/vyre.h"

static inline vyre_code proxy_no_memory(vyre_status *st) {
  return vyre_backend_fail(st, VYRE_OUT_OF_MEMORY, VYRE_KIND_NONE,
                           "free memory", "no memory");
}

static inline bool proxy_describe(const vyre_backend *table, uint32_t index,
                                  vyre_device_info *out) {
  (void)table;
  out->description = "programs on ref";
  out->driver = "proxy 1";
  out->note = "for tests";
  return index < 2;
}

static inline vyre_code proxy_open(const vyre_backend *table, uint32_t index,
                                   const vyre_backend_option_value *options,
                                   vyre_backend_device *out, vyre_status *st) {
  (void)table, (void)index, (void)options;
  const vyre_context_options with = {.cache_directory = "",
                                     .trace_file = "",
                                     .faults = "",
                                     .backend_options = "",
                                     .backend_path = ""};
  vyre_context *context;
  vyre_device *device;
  vyre_code code = vyre_context_create(&with, &context, st);
  if (code != VYRE_OK) return code;
  code = vyre_device_open(context, "ref", &device, st);
  vyre_context_release(context);
  if (code != VYRE_OK) return code;
  out->device = device;
  out->caps = *vyre_device_get_caps(device);
  out->caps.borrows_host_memory = false;
  out->offset_alignment = 64;
  return VYRE_OK;
}

static inline void proxy_close(void *device) {
  vyre_device_release(device);
}

static inline vyre_code proxy_load(void *device,
                                   const vyre_backend_kernel *kernel,
                                   void **out, vyre_status *st) {
  vyre_program *program;
  vyre_pipeline *pipeline;
  vyre_compile_options options = {{0}, 0};
  memcpy(options.workgroup, kernel->workgroup, sizeof options.workgroup);
  vyre_code code = vyre_program_read_binary((const uint8_t *)kernel->code,
                                            kernel->code_bytes,
                                            (vyre_allocator){0}, &program, st);
  if (code != VYRE_OK) return code;
  code = vyre_pipeline_compile(device, program, &options, &pipeline, NULL, st);
  vyre_program_release(program);
  if (code == VYRE_OK) *out = pipeline;
  return code;
}

static inline void proxy_unload(void *device, void *kernel) {
  (void)device;
  vyre_pipeline_release(kernel);
}

static inline vyre_code proxy_create(void *device, uint64_t bytes, void **out,
                                     void **host, vyre_status *st) {
  (void)host;
  vyre_buffer *buffer = malloc(sizeof *buffer);
  if (!buffer) return proxy_no_memory(st);
  vyre_code code = vyre_buffer_create(device, bytes, buffer, st);
  if (code == VYRE_OK) {
    *out = buffer;
  } else {
    free(buffer);
  }
  return code;
}

static inline void proxy_destroy(void *device, void *buffer) {
  (void)vyre_buffer_destroy(device, *(vyre_buffer *)buffer, NULL);
  free(buffer);
}

static inline vyre_code proxy_write(void *device, void *buffer, uint64_t offset,
                                    const void *data, size_t bytes,
                                    vyre_status *st) {
  return vyre_buffer_upload(device, *(vyre_buffer *)buffer, offset, data, bytes,
                            st);
}

static inline vyre_code proxy_read(void *device, void *buffer, uint64_t offset,
                                   void *data, size_t bytes, vyre_status *st) {
  return vyre_buffer_download(device, *(vyre_buffer *)buffer, offset, data,
                              bytes, st);
}

/* Returns the time until the deadline, at least 1 ns. */
static inline uint64_t proxy_time_left(uint64_t deadline_ns) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t ns =
      (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
  return deadline_ns > ns ? deadline_ns - ns : 1;
}

static inline vyre_code proxy_launch(void *device, void *kernel,
                                     vyre_backend_launch *launch,
                                     vyre_status *st) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(kernel);
  vyre_buffer empty; /* for buffers without elements */
  vyre_code code = vyre_buffer_create(device, 0, &empty, st);
  if (code != VYRE_OK) return code;
  vyre_input *resources = calloc(plan->binding_count + 1, sizeof *resources);
  if (!resources) return proxy_no_memory(st);
  vyre_dispatch_desc desc = {
      .resources = resources,
      .grid = {launch->groups[0], launch->groups[1], launch->groups[2]},
      .max_loop_iterations = launch->max_loop_iterations};
  if (launch->deadline_ns)
    desc.timeout_ns = proxy_time_left(launch->deadline_ns);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    const vyre_backend_memory *m = &launch->memory[b->buffer_index];
    if (b->role == VYRE_ROLE_SHARED) continue;
    vyre_input *to = &resources[desc.resource_count++];
    if (m->buffer) {
      *to = (vyre_input){.buffer = *(vyre_buffer *)m->buffer,
                         .offset = m->offset,
                         .size = (size_t)m->bytes};
    } else {
      *to = (vyre_input){.buffer = empty};
    }
  }
  code = vyre_dispatch(kernel, &desc, st);
  free(resources);
  (void)vyre_buffer_destroy(device, empty, NULL);
  launch->is_out_of_fuel = st->kind == VYRE_KIND_OUT_OF_FUEL;
  launch->is_timed_out = st->kind == VYRE_KIND_TIMED_OUT;
  return launch->is_out_of_fuel || launch->is_timed_out ? VYRE_OK : code;
}

static const vyre_device_option proxy_options[] = {
    {.name = "level", .max = 9, .help = "a number"},
    {.name = "mood",
     .max = 1,
     .help = "a word",
     .type = VYRE_OPTION_ENUM,
     .values = "calm wild"},
    {.name = "file", .help = "a path", .type = VYRE_OPTION_PATH}};

#define PROXY_TABLE(title, rank)        \
  {.abi = VYRE_BACKEND_ABI,             \
   .struct_size = sizeof(vyre_backend), \
   .name = (title),                     \
   .precedence = (rank),                \
   .form = VYRE_BACKEND_FORM_BINARY,    \
   .is_exact = true,                    \
   .has_deadlines = true,               \
   .options = proxy_options,            \
   .option_count = 3,                   \
   .describe = proxy_describe,          \
   .device_open = proxy_open,           \
   .device_close = proxy_close,         \
   .kernel_load = proxy_load,           \
   .kernel_unload = proxy_unload,       \
   .buffer_create = proxy_create,       \
   .buffer_destroy = proxy_destroy,     \
   .buffer_write = proxy_write,         \
   .buffer_read = proxy_read,           \
   .launch = proxy_launch}

#endif
