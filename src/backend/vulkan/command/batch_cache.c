/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Batch cache. A batch that is submitted twice with the same bindings is
 * encoded once and then replayed, like a recording. The key of a batch lists
 * all that its commands depend on; it is compared with the last few batches. */
#include "backend/vulkan/command/batch_cache.h"

#include <string.h>

#include "backend/vulkan/command/command_list.h"
#include "backend/vulkan/command/encoding.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/memory.h"

/* Shorter batches gain too little. */
enum { MIN_LAUNCHES = 8, MAX_KEY_WORDS = 5 + 6 * 32 };

/* State of a cached batch. LOCKED ends soon; RUNNING lasts as long as the
 * submission, and its pipelines cannot be freed in that time. */
enum { IDLE, LOCKED, RUNNING };

static bool try_lock(vk_cached_batch *batch) {
  unsigned idle = IDLE;
  return atomic_load_explicit(&batch->state, memory_order_relaxed) == idle &&
         atomic_compare_exchange_strong_explicit(&batch->state, &idle, LOCKED,
                                                 memory_order_acquire,
                                                 memory_order_relaxed);
}

static void unlock(vk_cached_batch *batch) {
  atomic_store_explicit(&batch->state, IDLE, memory_order_release);
}

/* --- keys ----------------------------------------------------------------- */

/* Writes the key of a launch: all that its commands depend on, and the
 * addresses of its host memory. Returns 0 if the launch cannot be cached. */
static size_t launch_key(const vyre__launch *l, uint64_t out[MAX_KEY_WORDS]) {
  const vk_pipeline *p = (const vk_pipeline *)l->pipeline;
  const vk_plan *plan = &p->plan;
  size_t count = 0;
  if (plan->buffer_count > 32 || p->has_encoded_uniforms) return 0;
  out[count++] = (uintptr_t)l->pipeline;
  out[count++] = (uint64_t)l->grid[1] << 32 | l->grid[0];
  out[count++] = (uint64_t)l->is_independent << 32 | l->grid[2];
  out[count++] = l->max_loop_iterations;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__view *view = &l->views[i];
    if (!plan->buffers[i].is_bound) continue;
    out[count++] = (uint64_t)view->begins_zero << 32 | view->length;
    if (!view->buffer) {
      out[count++] = (uintptr_t)view->data;
      continue;
    }
    const vk_range *range = &((const vk_buffer *)view->buffer)->range;
    out[count++] = (uintptr_t)view->buffer;
    out[count++] = view->offset;
    out[count++] = range->id;
    out[count++] = range->offset;
  }
  out[count++] = UINT64_MAX; /* end of the launch */
  return count;
}

static bool matches(const vk_cached_batch *batch, const vyre__launch *first) {
  uint64_t key[MAX_KEY_WORDS];
  size_t at = 0;
  uint32_t number = 0;
  if (batch->use_count == 0) return false;
  for (const vyre__launch *l = first; l; l = l->next, number++) {
    size_t count = launch_key(l, key);
    if (number == batch->count || count == 0 || count > batch->key_count - at ||
        memcmp(batch->key + at, key, count * sizeof *key) != 0) {
      return false;
    }
    at += count;
  }
  return number == batch->count && at == batch->key_count;
}

/* --- lookup --------------------------------------------------------------- */

static void clear(vk_cached_batch *batch) {
  if (batch->use_count > 0) vk_command_list_deinit(&batch->list.base);
  batch->list = (vk_command_list){0};
  batch->use_count = 0;
}

/* Stores the key of a batch. If memory runs out, the entry stays empty. */
static void store(vk_device *device, vk_cached_batch *batch,
                  const vyre__launch *first) {
  uint64_t key[MAX_KEY_WORDS];
  vyre_allocator allocator = device->base.allocator;
  clear(batch);
  batch->key_count = batch->count = 0;
  for (const vyre__launch *l = first; l; l = l->next) {
    size_t count = launch_key(l, key);
    if (count == 0 ||
        !vyre__reserve(allocator, &batch->key, &batch->key_capacity,
                       batch->key_count + count, sizeof *key, false)) {
      return;
    }
    memcpy(batch->key + batch->key_count, key, count * sizeof *key);
    batch->key_count += count;
    batch->count++;
  }
  batch->list.base.device = &device->base;
  batch->use_count = 1;
}

static vk_cached_batch *get_batches(vk_device *device) {
  size_t size = VK_CACHED_BATCHES * sizeof(vk_cached_batch);
  pthread_mutex_lock(&device->primary_lock);
  if (!device->cached_batches) {
    device->cached_batches =
        vyre__resize(device->base.allocator, NULL, 0, size);
    if (device->cached_batches) memset(device->cached_batches, 0, size);
  }
  vk_cached_batch *batches = device->cached_batches;
  pthread_mutex_unlock(&device->primary_lock);
  return batches;
}

/* Returns the entry with the same key, locked. Otherwise stores the key in the
 * oldest entry and returns NULL. */
static vk_cached_batch *find_batch(vk_device *device,
                                   const vyre__launch *first) {
  vk_cached_batch *batches = get_batches(device), *oldest = NULL;
  if (!batches) return NULL;
  uint64_t now = 1 + atomic_fetch_add_explicit(&device->batch_clock, 1,
                                               memory_order_relaxed);
  for (int i = 0; i < VK_CACHED_BATCHES; i++) {
    if (!try_lock(&batches[i])) continue;
    if (matches(&batches[i], first)) {
      if (oldest) unlock(oldest);
      batches[i].last_used = now;
      return &batches[i];
    }
    if (oldest && oldest->last_used <= batches[i].last_used) {
      unlock(&batches[i]);
      continue;
    }
    if (oldest) unlock(oldest);
    oldest = &batches[i];
  }
  if (!oldest) return NULL;
  store(device, oldest, first);
  oldest->last_used = now;
  unlock(oldest);
  return NULL;
}

/* --- running -------------------------------------------------------------- */

static bool set_items(vk_device *device, vk_cached_batch *batch,
                      vyre__launch *first) {
  uint32_t number = 0;
  if (!vyre__reserve(device->base.allocator, &batch->items,
                     &batch->item_capacity, batch->count, sizeof *batch->items,
                     false)) {
    return false;
  }
  for (vyre__launch *l = first; l; l = l->next) {
    batch->items[number++] = (vyre__command_list_item){.launch = l};
  }
  batch->list.base.items = batch->items;
  batch->list.base.count = number;
  return true;
}

vyre_code vk_batch_cache_run(vk_device *device, vyre__launch *first,
                             bool *is_cached, size_t *done, vyre_status *st) {
  size_t count = 0;
  *is_cached = false;
  for (const vyre__launch *l = first; l && count < MIN_LAUNCHES; l = l->next) {
    count++;
  }
  if (count < MIN_LAUNCHES) return VYRE_OK;
  vk_cached_batch *batch = find_batch(device, first);
  if (!batch) return VYRE_OK;
  if (!set_items(device, batch, first)) {
    unlock(batch);
    return VYRE_OK;
  }
  *is_cached = true;
  batch->list.base.is_changed = batch->use_count == 1;
  batch->use_count = 2;
  atomic_store_explicit(&batch->state, RUNNING, memory_order_relaxed);
  vyre_code code = vk_command_list_run(&batch->list.base, done, st);
  if (code != VYRE_OK) clear(batch);
  unlock(batch);
  return code;
}

/* --- removal -------------------------------------------------------------- */

static bool uses_pipeline(const vk_cached_batch *batch,
                          const vk_pipeline *pipeline) {
  for (uint32_t i = 0; i < batch->list.base.count; i++) {
    for (int k = 0; k < VK_ENCODINGS; k++) {
      const vk_encoding *encoding = &batch->list.encodings[k];
      if (encoding->last_used != 0 && i < encoding->item_count &&
          encoding->dispatches[i] &&
          encoding->dispatches[i]->pipeline == pipeline) {
        return true;
      }
    }
  }
  return false;
}

void vk_batch_cache_remove(vk_device *device, const vk_pipeline *pipeline) {
  pthread_mutex_lock(&device->primary_lock);
  vk_cached_batch *batches = device->cached_batches;
  pthread_mutex_unlock(&device->primary_lock);
  for (int i = 0; batches && i < VK_CACHED_BATCHES; i++) {
    bool is_locked = false;
    while (!is_locked && atomic_load(&batches[i].state) != RUNNING) {
      is_locked = try_lock(&batches[i]);
    }
    if (!is_locked) continue;
    if (uses_pipeline(&batches[i], pipeline)) clear(&batches[i]);
    unlock(&batches[i]);
  }
}

void vk_batch_cache_after_fork(vk_device *device) {
  for (int i = 0; device->cached_batches && i < VK_CACHED_BATCHES; i++)
    unlock(&device->cached_batches[i]);
}

void vk_batch_cache_deinit(vk_device *device) {
  vyre_allocator allocator = device->base.allocator;
  if (!device->cached_batches) return;
  for (int i = 0; i < VK_CACHED_BATCHES; i++) {
    vk_cached_batch *batch = &device->cached_batches[i];
    clear(batch); /* an entry without dispatches uses no pipeline */
    vyre__reserve_free(allocator, &batch->key, &batch->key_capacity,
                       sizeof *batch->key);
    vyre__reserve_free(allocator, &batch->items, &batch->item_capacity,
                       sizeof *batch->items);
  }
  vyre__resize(allocator, device->cached_batches,
               VK_CACHED_BATCHES * sizeof(vk_cached_batch), 0);
  device->cached_batches = NULL;
}
