/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Transfers between the host and memory that it cannot map, through a ring of
 * host-visible chunks. */
#ifndef VYRE_BACKEND_VULKAN_MEMORY_STAGING_H
#define VYRE_BACKEND_VULKAN_MEMORY_STAGING_H

#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/memory/heap.h"

enum {
  VK_STAGING_CHUNKS = 8, /* upper bound of copies in flight */
  VK_STAGING_CHUNK_BYTES = 2 << 20,
  VK_LARGE_VIEW_BYTES = 256 << 10 /* host views from here on use the ring */
};

/* A chunk of the ring and the command buffer of its copy. */
typedef struct vk_staging_chunk {
  VkCommandPool pool; /* created on first use */
  VkCommandBuffer commands;
  vk_submission submission;
  bool is_held;      /* owned by a thread; under the lock of the ring */
  bool is_in_flight; /* submitted and not waited for; belongs to the owner */
} vk_staging_chunk;

typedef struct vk_staging_ring {
  pthread_mutex_t lock;
  pthread_cond_t chunk_released;
  vk_range memory; /* of all chunks; allocated on first use */
  vk_staging_chunk chunks[VK_STAGING_CHUNKS];
  uint32_t next; /* chunk to try first */
} vk_staging_ring;

void vk_staging_ring_init(vk_device *device);
void vk_staging_ring_deinit(vk_device *device);
/* Waits until no copy is in flight. */
void vk_staging_ring_wait(vk_device *device);

/* Copies host bytes to a range, or range bytes to the host; vk_fill writes
 * zeros and takes multiples of 4. Later submissions see an upload or a fill,
 * which may still be in flight on return. A download has finished on return.
 * Errors: those of vk_range_alloc, vk_submit and vk_wait. */
vyre_code vk_upload(vk_device *device, const vk_range *to, uint64_t offset,
                    const unsigned char *from, uint64_t size, vyre_status *st);
vyre_code vk_fill(vk_device *device, const vk_range *to, uint64_t offset,
                  uint64_t size, vyre_status *st);
vyre_code vk_download(vk_device *device, const vk_range *from, uint64_t offset,
                      unsigned char *to, uint64_t size, vyre_status *st);

#endif
