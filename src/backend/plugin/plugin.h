/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Adapter between the internal interface of backends (hal/backend.h) and the
 * public one (vyre/backend.h). It lowers programs to the form that a table asks
 * for, runs the host schedule of a kernel, and moves memory that the device
 * cannot use where it is. */
#ifndef VYRE_BACKEND_PLUGIN_PLUGIN_H
#define VYRE_BACKEND_PLUGIN_PLUGIN_H

#include <pthread.h>

#include "vyre/backend.h"

#include "codegen/spirv/spirv.h"
#include "hal/backend.h"
#include "hal/host_plan.h"

typedef struct plugin_backend {
  vyre__backend base;
  const vyre_backend *table;
  vyre__option *options; /* those of the table, and of the library */
  size_t option_count;   /* with the end of the list */
} plugin_backend;

/* Memory of the backend that the adapter reuses: copies of host memory. */
typedef struct plugin_block {
  struct plugin_block *next;
  void *buffer, *host;
  unsigned size_class; /* 2^size_class bytes */
} plugin_block;

enum { PLUGIN_SIZE_CLASSES = 64, PLUGIN_MIN_CLASS = 8, PLUGIN_KEPT_CLASS = 26 };

typedef struct plugin_device {
  vyre_device base;
  vyre_backend_device opened;
  pthread_mutex_t lock; /* guards the lists of unused blocks */
  plugin_block *unused[PLUGIN_SIZE_CLASSES];
} plugin_device;

typedef struct plugin_buffer {
  vyre__buffer base;
  void *handle; /* NULL: memory at base.host, which belongs to the caller */
} plugin_buffer;

/* Memory that a binding stands for. */
typedef enum plugin_role {
  PLUGIN_BUFFER, /* buffer of the program */
  PLUGIN_SPILL,
  PLUGIN_STATUS, /* word that a SPIR-V kernel sets when it runs out of fuel */
  PLUGIN_BLOCK   /* launch parameters of SPIR-V that are not pushed */
} plugin_role;

typedef struct plugin_binding {
  plugin_role role;
  uint32_t buffer;      /* BUFFER: index in the program */
  uint32_t unit, width; /* bytes of an element and of an access */
  bool is_uniform, is_written, is_shared;
} plugin_binding;

typedef struct plugin_pipeline {
  vyre_pipeline base;
  vyre__host_plan plan; /* not for BINARY */
  vyre__spirv_module module;
  plugin_binding *bindings;
  uint32_t binding_count;
  void *kernel;
} plugin_pipeline;

static inline const vyre_backend *plugin_table(const vyre_device *device) {
  return ((const plugin_backend *)device->backend)->table;
}

/* Copies the failure of a function of the backend to @p st, and returns its
 * code. @p code is VYRE_OK: returns that. @p fallback replaces a code that does
 * not exist. */
vyre_code plugin_report(const vyre_backend *table, vyre_device *device,
                        const char *function, vyre_code code,
                        const vyre_status *own, vyre_code fallback,
                        vyre_status *st);

vyre_code plugin_buffer_init(vyre_device *device, vyre__buffer *buffer,
                             vyre_status *st);
void plugin_buffer_deinit(vyre_device *device, vyre__buffer *buffer);
vyre_code plugin_buffer_write(vyre_device *device, vyre__buffer *buffer,
                              uint64_t offset, const void *data, size_t size,
                              vyre_status *st);
vyre_code plugin_buffer_read(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, void *data, size_t size,
                             vyre_status *st);

/* Returns a block of at least @p size bytes with arbitrary contents.
 * plugin_block_release makes it available again. */
vyre_code plugin_block_acquire(plugin_device *device, uint64_t size,
                               plugin_block **out, vyre_status *st);
void plugin_block_release(plugin_device *device, plugin_block *block);
vyre_code plugin_block_write(plugin_device *device, const plugin_block *block,
                             const void *data, size_t size, vyre_status *st);
vyre_code plugin_block_read(plugin_device *device, const plugin_block *block,
                            void *data, size_t size, vyre_status *st);
void plugin_blocks_deinit(plugin_device *device);

void plugin_target(const vyre_pipeline *pipeline, vyre__target *out);
vyre_code plugin_load(vyre_pipeline *pipeline, const vyre__code_source *source,
                      vyre_status *st);
void plugin_pipeline_deinit(vyre_pipeline *pipeline);

vyre_code plugin_execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st);

#endif
