/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Device buffers: the table from handles to device memory, and transfers. */
#ifndef VYRE_RUNTIME_MEMORY_DEVICE_BUFFER_H
#define VYRE_RUNTIME_MEMORY_DEVICE_BUFFER_H

#include <pthread.h>
#include <stdatomic.h>

#include "vyre/buffer.h"

#include "hal/launch.h"

enum { VYRE__CHUNK_SLOTS = 256, VYRE__CHUNKS = 4096 };

/* Entry of the table. `state` holds the generation in its high half. The low
 * half holds a bit for "the handle is valid" and the number of current users.
 * The thread that takes the low half to zero frees the memory. */
typedef struct vyre__device_buffer {
  _Atomic uint64_t state;
  vyre__buffer *buffer;
  uint32_t next_free; /* index + 1 */
} vyre__device_buffer;

typedef struct vyre__device_buffers {
  _Atomic(vyre__device_buffer *) chunks[VYRE__CHUNKS];
  pthread_mutex_t lock; /* guards creation and freeing */
  uint32_t count;       /* entries that were ever used */
  uint32_t first_free;  /* index + 1; 0: none */
} vyre__device_buffers;

/* Finds the buffer of a handle, and keeps it alive until the release. */
vyre_code vyre__device_buffer_acquire(vyre_device *device, vyre_buffer handle,
                                      vyre__device_buffer **out,
                                      vyre_status *st);
void vyre__device_buffer_release(vyre_device *device,
                                 vyre__device_buffer *buffer);
void vyre__device_buffers_deinit(vyre_device *device);

/* Preferences above this one do not count for buffers that are made for no
 * binding: the memory in front of them is lost. */
enum { VYRE__MAX_SHARED_ALIGNMENT = 4096 };

/* Makes buffers that are created later as aligned as the bindings of @p plan
 * prefer. */
void vyre__device_buffers_prefer(vyre_device *device,
                                 const vyre_binding_plan *plan);

/* Creates a buffer at an address that is a multiple of @p alignment. */
vyre_code vyre__device_buffer_create(vyre_device *device, uint64_t size,
                                     uint64_t alignment, vyre_buffer *out,
                                     vyre_status *st);

/* Memory of another owner that becomes a device buffer. The buffer calls
 * `release`, on any thread, when it no longer uses the memory. */
typedef struct vyre__imported_memory {
  void *data; /* may be NULL if size is 0 */
  uint64_t size;
  bool is_read_only;
  void (*release)(void *self);
  void *release_user_data;
} vyre__imported_memory;

vyre_code vyre__device_buffer_import(vyre_device *device,
                                     const vyre__imported_memory *memory,
                                     vyre_buffer *out, vyre_status *st);

/* Reports that the host cannot address the memory of a buffer. */
vyre_code vyre__device_buffer_not_visible(const vyre_device *device,
                                          vyre_status *st);

/* Reports that @p kind ("output" or "slot") @p name would write a read-only
 * buffer. */
vyre_code vyre__device_buffer_read_only(const char *kind, const char *name,
                                        vyre_status *st);

/* Copies bytes between the host and a buffer. The caller has checked the
 * range. */
vyre_code vyre__buffer_write(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, const void *data, size_t size,
                             vyre_status *st);
vyre_code vyre__buffer_read(vyre_device *device, vyre__buffer *buffer,
                            uint64_t offset, void *data, size_t size,
                            vyre_status *st);

/* Zeroes a range of a buffer. */
vyre_code vyre__buffer_clear(vyre_device *device, vyre__buffer *buffer,
                             uint64_t offset, size_t size, vyre_status *st);

typedef struct vyre__bound_buffer vyre__bound_buffer;

/* Copies the input of a binding to its output. At least one of them is memory
 * that the host cannot address. */
vyre_code vyre__buffer_copy(vyre_device *device,
                            const vyre__bound_buffer *bound, size_t size,
                            vyre_arena *scratch, vyre_status *st);

#endif
