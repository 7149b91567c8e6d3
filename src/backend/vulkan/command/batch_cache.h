/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Batch cache: a batch that is submitted twice is encoded once and then
 * replayed. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_BATCH_CACHE_H
#define VYRE_BACKEND_VULKAN_COMMAND_BATCH_CACHE_H

#include "backend/vulkan/command/command_list.h"

enum { VK_CACHED_BATCHES = 4 };

/* A batch that was seen: its key and, from the second time on, its command
 * list. */
typedef struct vk_cached_batch {
  atomic_uint state; /* idle, locked or running; see batch_cache.c */
  uint64_t last_used;
  uint32_t use_count; /* 0: empty, 1: key only, 2: the list was run */
  uint32_t count;     /* launches */
  uint64_t *key;
  size_t key_count, key_capacity;
  vyre__command_list_item *items;
  size_t item_capacity;
  vk_command_list list;
} vk_cached_batch;

/* Runs @p first and its successors from the cache, if an equal batch was seen
 * before. Otherwise stores the key, runs nothing and sets *is_cached to
 * false. */
vyre_code vk_batch_cache_run(vk_device *device, vyre__launch *first,
                             bool *is_cached, size_t *done, vyre_status *st);
/* Removes all batches that use a pipeline which is about to be freed. */
void vk_batch_cache_remove(vk_device *device, const vk_pipeline *pipeline);
/* Unlocks all batches in a child process; the threads that held them are
 * gone. */
void vk_batch_cache_after_fork(vk_device *device);
void vk_batch_cache_deinit(vk_device *device);

#endif
