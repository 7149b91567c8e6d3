/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Device buffers of a backend, and blocks of its memory that launches use for
 * copies. */
#include "base/memory.h"

#include <string.h>

#include "backend/plugin/plugin.h"
#include "base/status.h"

/* Descriptors cover full words, and at least eight bytes. */
enum { GRANULARITY = 16 };

/* Creates memory. C code runs in this process, so it needs an address. */
static vyre_code create(plugin_device *device, uint64_t size, void **buffer,
                        void **host, vyre_status *st) {
  const vyre_backend *table = plugin_table(&device->base);
  vyre_status inner = {0};
  *buffer = *host = NULL;
  VYRE_TRY(plugin_report(
      table, &device->base, "buffer_create",
      table->buffer_create(device->opened.device, size, buffer, host, &inner),
      &inner, VYRE_DEVICE_OUT_OF_MEMORY, st));
  if (*host || table->form != VYRE_BACKEND_FORM_C) return VYRE_OK;
  table->buffer_destroy(device->opened.device, *buffer);
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "set *host in buffer_create, or take another form",
                   "backend '%s' takes C, but its buffers have no host address",
                   table->name);
}

static vyre_code write_bytes(plugin_device *device, void *buffer, void *host,
                             uint64_t offset, const void *data, size_t size,
                             vyre_status *st) {
  const vyre_backend *table = plugin_table(&device->base);
  if (host) {
    memmove((unsigned char *)host + offset, data, size);
    return VYRE_OK;
  }
  vyre_status inner = {0};
  return plugin_report(table, &device->base, "buffer_write",
                       table->buffer_write(device->opened.device, buffer,
                                           offset, data, size, &inner),
                       &inner, VYRE_DISPATCH_FAILED, st);
}

static vyre_code read_bytes(plugin_device *device, void *buffer,
                            const void *host, uint64_t offset, void *data,
                            size_t size, vyre_status *st) {
  const vyre_backend *table = plugin_table(&device->base);
  if (host) {
    memmove(data, (const unsigned char *)host + offset, size);
    return VYRE_OK;
  }
  vyre_status inner = {0};
  return plugin_report(table, &device->base, "buffer_read",
                       table->buffer_read(device->opened.device, buffer, offset,
                                          data, size, &inner),
                       &inner, VYRE_DISPATCH_FAILED, st);
}

/* --- device buffers --------------------------------------------------------*/

vyre_code plugin_buffer_init(vyre_device *device, vyre__buffer *buffer,
                             vyre_status *st) {
  plugin_buffer *own = (plugin_buffer *)buffer;
  if (buffer->size == 0 || buffer->host) return VYRE_OK; /* imported */
  if (buffer->size > UINT64_MAX - GRANULARITY) {
    return vyre__no_memory(st, "vyre_buffer_create", "bytes", buffer->size);
  }
  uint64_t size = (buffer->size + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
  void *host;
  VYRE_TRY(create((plugin_device *)device, size, &own->handle, &host, st));
  buffer->host = host;
  return VYRE_OK;
}

void plugin_buffer_deinit(vyre_device *device, vyre__buffer *buffer) {
  const plugin_device *own = (const plugin_device *)device;
  void *handle = ((plugin_buffer *)buffer)->handle;
  if (buffer->size == 0 || buffer->is_imported) return;
  plugin_table(device)->buffer_destroy(own->opened.device, handle);
}

vyre_code plugin_buffer_write(vyre_device *device, vyre__buffer *buffer,
                              uint64_t offset, const void *data, size_t size,
                              vyre_status *st) {
  return write_bytes((plugin_device *)device, ((plugin_buffer *)buffer)->handle,
                     buffer->host, offset, data, size, st);
}

vyre_code plugin_buffer_read(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, void *data, size_t size,
                             vyre_status *st) {
  return read_bytes((plugin_device *)device, ((plugin_buffer *)buffer)->handle,
                    buffer->host, offset, data, size, st);
}

/* --- blocks ----------------------------------------------------------------*/

static unsigned class_of(uint64_t size) {
  unsigned size_class = PLUGIN_MIN_CLASS;
  while (size_class + 1 < PLUGIN_SIZE_CLASSES &&
         (uint64_t)1 << size_class < size) {
    size_class++;
  }
  return size_class;
}

static void destroy_block(plugin_device *device, plugin_block *block) {
  plugin_table(&device->base)
      ->buffer_destroy(device->opened.device, block->buffer);
  vyre__resize(device->base.allocator, block, sizeof *block, 0);
}

vyre_code plugin_block_acquire(plugin_device *device, uint64_t size,
                               plugin_block **out, vyre_status *st) {
  unsigned size_class = class_of(size);
  pthread_mutex_lock(&device->lock);
  plugin_block *block = device->unused[size_class];
  if (block) device->unused[size_class] = block->next;
  pthread_mutex_unlock(&device->lock);
  *out = block;
  if (block) return VYRE_OK;
  block = vyre__alloc_zeroed(device->base.allocator, sizeof *block);
  if (!block) return vyre__no_memory(st, "a launch", "blocks", 1);
  block->size_class = size_class;
  vyre_code code = create(device, (uint64_t)1 << size_class, &block->buffer,
                          &block->host, st);
  if (code != VYRE_OK) {
    vyre__resize(device->base.allocator, block, sizeof *block, 0);
    return code;
  }
  *out = block;
  return VYRE_OK;
}

void plugin_block_release(plugin_device *device, plugin_block *block) {
  if (block->size_class > PLUGIN_KEPT_CLASS) {
    destroy_block(device, block);
    return;
  }
  pthread_mutex_lock(&device->lock);
  block->next = device->unused[block->size_class];
  device->unused[block->size_class] = block;
  pthread_mutex_unlock(&device->lock);
}

vyre_code plugin_block_write(plugin_device *device, const plugin_block *block,
                             const void *data, size_t size, vyre_status *st) {
  return write_bytes(device, block->buffer, block->host, 0, data, size, st);
}

vyre_code plugin_block_read(plugin_device *device, const plugin_block *block,
                            void *data, size_t size, vyre_status *st) {
  return read_bytes(device, block->buffer, block->host, 0, data, size, st);
}

void plugin_blocks_deinit(plugin_device *device) {
  for (unsigned i = 0; i < PLUGIN_SIZE_CLASSES; i++) {
    while (device->unused[i]) {
      plugin_block *block = device->unused[i];
      device->unused[i] = block->next;
      destroy_block(device, block);
    }
  }
}
