/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Device memory. A block is one VkDeviceMemory with one VkBuffer over all of
 * it; everything else is a range of a block. */
#ifndef VYRE_BACKEND_VULKAN_MEMORY_HEAP_H
#define VYRE_BACKEND_VULKAN_MEMORY_HEAP_H

#include <pthread.h>

#include "backend/vulkan/device/functions.h"
#include "hal/backend.h"

typedef struct vk_device vk_device;
typedef struct vk_block vk_block;

typedef enum vk_memory_kind {
  VK_MEMORY_KIND_DEVICE, /* for kernels; host-visible if device->is_unified */
  VK_MEMORY_KIND_HOST,   /* host-visible, for staging */
  VK_MEMORY_KIND_COUNT
} vk_memory_kind;

/* A range of a block; all zero if unallocated. */
typedef struct vk_range {
  vk_block *block;
  VkBuffer buffer;
  uint64_t offset, size;
  uint64_t id;         /* id of the block; ids are never reused */
  unsigned char *host; /* mapped address of the range, or NULL */
} vk_range;

typedef struct vk_heap {
  pthread_mutex_t lock;
  vk_block *blocks[VK_MEMORY_KIND_COUNT];
  uint32_t type[VK_MEMORY_KIND_COUNT]; /* expected memory type of each kind */
  uint64_t last_id;
  uint64_t alignment; /* of ranges: at least 64, and enough for descriptors */
} vk_heap;

vyre_code vk_heap_init(vk_device *device, vyre_status *st);
/* Frees all blocks and the staging ring. */
void vk_heap_deinit(vk_device *device);

/* Allocates a range; its bytes are undefined. When memory runs out, frees idle
 * encoded dispatches, encodings of lists that do not execute, and empty blocks,
 * and tries once more. Call without locks, except that of a command list.
 * Errors: VYRE_DEVICE_OUT_OF_MEMORY, VYRE_OUT_OF_MEMORY. */
vyre_code vk_range_alloc(vk_device *device, vk_memory_kind kind, uint64_t size,
                         vk_range *out, vyre_status *st);
/* Frees a range and zeroes it. Accepts an unallocated one. */
void vk_range_free(vk_device *device, vk_range *range);
/* Allocates device->dummy unless that was done before. */
vyre_code vk_dummy_range_create(vk_device *device, vyre_status *st);

/* Returns the size of the VkMemoryHeap that a kind of memory is allocated
 * from. */
uint64_t vk_heap_bytes(const vk_device *device, vk_memory_kind kind);

/* Current memory budget of the process on one heap, in bytes. */
typedef struct vk_budget {
  uint64_t max, used;
} vk_budget;

/* Returns false if the driver does not report a budget. */
bool vk_budget_read(const vk_device *device, vk_memory_kind kind,
                    vk_budget *out);
/* Returns true if host memory can be imported as buffers with our usage
 * flags. */
bool vk_can_import(const vk_device *device);

/* A device buffer of the backend. */
typedef struct vk_buffer {
  vyre__buffer base;
  vk_range range;
  uint64_t lead; /* bytes allocated before the range, to align it */
} vk_buffer;

/* Buffer entries of the backend table. */
vyre_code vk_buffer_init(vyre_device *device, vyre__buffer *buffer,
                         vyre_status *st);
void vk_buffer_deinit(vyre_device *device, vyre__buffer *buffer);
vyre_code vk_buffer_write(vyre_device *device, vyre__buffer *buffer,
                          uint64_t offset, const void *data, size_t size,
                          vyre_status *st);
vyre_code vk_buffer_read(vyre_device *device, vyre__buffer *buffer,
                         uint64_t offset, void *data, size_t size,
                         vyre_status *st);

#endif
