/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies bytes between the host and unmapped device memory through a ring of
 * chunks that both can access. Uploads are submitted without waiting: later
 * work on the queue sees them, and a chunk is waited for when it is reused.
 * Downloads submit as many copies as chunks are free, then copy them out in
 * order.
 *
 * A thread owns a chunk from `acquire` to `release`. A thread that owns chunks
 * never waits for more of them, so threads cannot deadlock. */
#include "backend/vulkan/memory/staging.h"

#include <string.h>

#include "backend/vulkan/command/pools.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/memory/heap.h"
#include "base/status.h"

static vk_staging_chunk *find_free(vk_staging_ring *ring) {
  for (uint32_t i = 0; i < VK_STAGING_CHUNKS; i++) {
    vk_staging_chunk *chunk =
        &ring->chunks[(ring->next + i) % VK_STAGING_CHUNKS];
    if (chunk->is_held) continue;
    ring->next = (ring->next + i + 1) % VK_STAGING_CHUNKS;
    return chunk;
  }
  return NULL;
}

static void release(vk_device *device, vk_staging_chunk *chunk) {
  vk_staging_ring *ring = &device->ring;
  pthread_mutex_lock(&ring->lock);
  chunk->is_held = false;
  pthread_cond_broadcast(&ring->chunk_released);
  pthread_mutex_unlock(&ring->lock);
}

/* Waits for the copy of a chunk. */
static vyre_code wait_chunk(vk_device *device, vk_staging_chunk *chunk,
                            vyre_status *st) {
  if (!chunk->is_in_flight) return VYRE_OK;
  VYRE_TRY(vk_wait(device, &chunk->submission, st));
  chunk->is_in_flight = false;
  return VYRE_OK;
}

static vyre_code begin_chunk(vk_device *device, vk_staging_chunk *chunk,
                             vyre_status *st) {
  const vk_api *api = &device->api;
  const VkCommandBufferBeginInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  VYRE_TRY(wait_chunk(device, chunk, st));
  VkResult result = chunk->pool
                        ? api->ResetCommandPool(device->handle, chunk->pool, 0)
                        : vk_command_buffer_create(
                              device, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                              &chunk->pool, &chunk->commands);
  if (result == VK_SUCCESS) {
    result = api->BeginCommandBuffer(chunk->commands, &info);
  }
  VK_TRY(device, result, "recording of a copy", st);
  return VYRE_OK;
}

/* Allocates the memory of the ring on first use. It does so without the lock,
 * because an allocation under memory pressure waits for copies. */
static vyre_code alloc_memory(vk_device *device, vyre_status *st) {
  vk_staging_ring *ring = &device->ring;
  vk_range made;
  pthread_mutex_lock(&ring->lock);
  bool exists = ring->memory.block != NULL;
  pthread_mutex_unlock(&ring->lock);
  if (exists) return VYRE_OK;
  VYRE_TRY(vk_range_alloc(device, VK_MEMORY_KIND_HOST,
                          (uint64_t)VK_STAGING_CHUNKS * VK_STAGING_CHUNK_BYTES,
                          &made, st));
  pthread_mutex_lock(&ring->lock);
  if (!ring->memory.block) {
    ring->memory = made;
    made = (vk_range){0};
  }
  pthread_mutex_unlock(&ring->lock);
  vk_range_free(device, &made);
  return VYRE_OK;
}

/* Acquires a chunk and begins its commands. *out is NULL if all chunks are held
 * and @p may_wait is false. */
static vyre_code acquire(vk_device *device, bool may_wait,
                         vk_staging_chunk **out, vyre_status *st) {
  vk_staging_ring *ring = &device->ring;
  *out = NULL;
  VYRE_TRY(alloc_memory(device, st));
  pthread_mutex_lock(&ring->lock);
  vk_staging_chunk *found = find_free(ring);
  while (!found && may_wait) {
    pthread_cond_wait(&ring->chunk_released, &ring->lock);
    found = find_free(ring);
  }
  if (found) found->is_held = true;
  pthread_mutex_unlock(&ring->lock);
  *out = found;
  if (!found) return VYRE_OK;
  vyre_code code = begin_chunk(device, found, st);
  if (code == VYRE_OK) return VYRE_OK;
  release(device, found);
  *out = NULL;
  return code;
}

/* Ends the commands of a chunk and submits them. */
static vyre_code submit_chunk(vk_device *device, vk_staging_chunk *chunk,
                              vyre_status *st) {
  vk_cmd_barrier(device, chunk->commands);
  VK_TRY(device, device->api.EndCommandBuffer(chunk->commands),
         "vkEndCommandBuffer", st);
  VYRE_TRY(vk_submit(device, &chunk->commands, 1, &chunk->submission, st));
  chunk->is_in_flight = true;
  return VYRE_OK;
}

/* --- transfers ------------------------------------------------------------ */

static uint64_t chunk_offset(const vk_device *device,
                             const vk_staging_chunk *chunk) {
  return (uint64_t)(chunk - device->ring.chunks) * VK_STAGING_CHUNK_BYTES;
}

static uint64_t chunk_bytes(uint64_t size, uint64_t at) {
  return size - at < VK_STAGING_CHUNK_BYTES ? size - at
                                            : VK_STAGING_CHUNK_BYTES;
}

static void add_counters(vk_device *device, uint64_t bytes) {
  atomic_fetch_add_explicit(&device->counters.staged_chunks, 1,
                            memory_order_relaxed);
  atomic_fetch_add_explicit(&device->counters.staged_bytes, bytes,
                            memory_order_relaxed);
}

vyre_code vk_upload(vk_device *device, const vk_range *to, uint64_t offset,
                    const unsigned char *from, uint64_t size, vyre_status *st) {
  const vk_range *memory = &device->ring.memory;
  for (uint64_t at = 0; at < size; at += VK_STAGING_CHUNK_BYTES) {
    uint64_t bytes = chunk_bytes(size, at);
    vk_staging_chunk *chunk;
    VYRE_TRY(acquire(device, true, &chunk, st));
    uint64_t offset_in_ring = chunk_offset(device, chunk);
    const VkBufferCopy region = {memory->offset + offset_in_ring,
                                 to->offset + offset + at, bytes};
    memcpy(memory->host + offset_in_ring, from + at, (size_t)bytes);
    device->api.CmdCopyBuffer(chunk->commands, memory->buffer, to->buffer, 1,
                              &region);
    vyre_code code = submit_chunk(device, chunk, st);
    release(device, chunk);
    if (code != VYRE_OK) return code;
    add_counters(device, bytes);
  }
  return VYRE_OK;
}

vyre_code vk_fill(vk_device *device, const vk_range *to, uint64_t offset,
                  uint64_t size, vyre_status *st) {
  vk_staging_chunk *chunk;
  VYRE_TRY(acquire(device, true, &chunk, st));
  device->api.CmdFillBuffer(chunk->commands, to->buffer, to->offset + offset,
                            size, 0);
  vyre_code code = submit_chunk(device, chunk, st);
  release(device, chunk);
  return code;
}

/* A download: its chunks in flight, oldest first. */
typedef struct download {
  vk_device *device;
  const vk_range *from;
  uint64_t offset, size;
  uint64_t submitted, received; /* bytes */
  vk_staging_chunk *pending[VK_STAGING_CHUNKS];
  uint32_t first, count;
} download;

/* Submits the next copy. *is_submitted is false if other threads hold all
 * chunks. */
static vyre_code submit_read(download *d, bool *is_submitted, vyre_status *st) {
  vk_device *device = d->device;
  const vk_range *memory = &device->ring.memory;
  vk_staging_chunk *chunk;
  VYRE_TRY(acquire(device, d->count == 0, &chunk, st));
  *is_submitted = chunk != NULL;
  if (!chunk) return VYRE_OK;
  uint64_t bytes = chunk_bytes(d->size, d->submitted);
  const VkBufferCopy region = {d->from->offset + d->offset + d->submitted,
                               memory->offset + chunk_offset(device, chunk),
                               bytes};
  device->api.CmdCopyBuffer(chunk->commands, d->from->buffer, memory->buffer, 1,
                            &region);
  vyre_code code = submit_chunk(device, chunk, st);
  if (code != VYRE_OK) {
    release(device, chunk);
    return code;
  }
  d->pending[(d->first + d->count++) % VK_STAGING_CHUNKS] = chunk;
  d->submitted += bytes;
  add_counters(device, bytes);
  return VYRE_OK;
}

/* Waits for the oldest copy and copies its bytes to @p to, unless that is
 * NULL. */
static vyre_code finish_read(download *d, unsigned char *to, vyre_status *st) {
  vk_staging_chunk *chunk = d->pending[d->first];
  uint64_t bytes = chunk_bytes(d->size, d->received);
  vyre_code code = wait_chunk(d->device, chunk, st);
  if (code == VYRE_OK && to) {
    memcpy(to + d->received,
           d->device->ring.memory.host + chunk_offset(d->device, chunk),
           (size_t)bytes);
  }
  d->first = (d->first + 1) % VK_STAGING_CHUNKS;
  d->count--;
  d->received += bytes;
  release(d->device, chunk);
  return code;
}

vyre_code vk_download(vk_device *device, const vk_range *from, uint64_t offset,
                      unsigned char *to, uint64_t size, vyre_status *st) {
  download d = {.device = device, .from = from, .offset = offset, .size = size};
  vyre_code code = VYRE_OK;
  while (d.received < size && code == VYRE_OK) {
    bool is_submitted = true;
    while (code == VYRE_OK && is_submitted && d.submitted < size &&
           d.count < VK_STAGING_CHUNKS) {
      code = submit_read(&d, &is_submitted, st);
    }
    if (code == VYRE_OK && d.count > 0) code = finish_read(&d, to, st);
  }
  while (d.count > 0) (void)finish_read(&d, NULL, NULL);
  return code;
}

/* --- the ring ------------------------------------------------------------- */

void vk_staging_ring_init(vk_device *device) {
  pthread_mutex_init(&device->ring.lock, NULL);
  pthread_cond_init(&device->ring.chunk_released, NULL);
}

void vk_staging_ring_wait(vk_device *device) {
  vk_staging_ring *ring = &device->ring;
  for (uint32_t i = 0; i < VK_STAGING_CHUNKS; i++) {
    vk_staging_chunk *chunk = &ring->chunks[i];
    pthread_mutex_lock(&ring->lock);
    while (chunk->is_held)
      pthread_cond_wait(&ring->chunk_released, &ring->lock);
    chunk->is_held = true;
    pthread_mutex_unlock(&ring->lock);
    (void)wait_chunk(device, chunk, NULL);
    release(device, chunk);
  }
}

void vk_staging_ring_deinit(vk_device *device) {
  vk_staging_ring *ring = &device->ring;
  vk_staging_ring_wait(device);
  for (uint32_t i = 0; i < VK_STAGING_CHUNKS; i++) {
    vk_staging_chunk *chunk = &ring->chunks[i];
    vk_submission_deinit(device, &chunk->submission);
    device->api.DestroyCommandPool(device->handle, chunk->pool, NULL);
    *chunk = (vk_staging_chunk){0};
  }
  vk_range_free(device, &ring->memory);
  pthread_cond_destroy(&ring->chunk_released);
  pthread_mutex_destroy(&ring->lock);
}
