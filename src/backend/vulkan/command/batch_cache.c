/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Batches that come again: who submits the same launches once more, with the same memory
 * bound, has in fact a recording, and gets what a recording has: commands that are
 * recorded once, with all dispatches in one buffer. What a launch is, is written down in
 * words, which are compared with those of the last few batches; the second time, the
 * batch becomes a piece. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/memory.h"

/* Shorter ones cost little as they are. */
enum { LEAST_COUNT = 8, MOST_WORDS = 5 + 6 * 32 };

/* A memo that somebody looks at is free again soon; one that runs has only launches
 * of pipelines that live. */
enum { IDLE, LOOKED_AT, RUNS };

static bool enter(vk_memo *memo) {
  unsigned idle = IDLE;
  return atomic_load_explicit(&memo->state, memory_order_relaxed) == idle &&
         atomic_compare_exchange_strong_explicit(&memo->state, &idle, LOOKED_AT,
                                                 memory_order_acquire,
                                                 memory_order_relaxed);
}

static void leave(vk_memo *memo) {
  atomic_store_explicit(&memo->state, IDLE, memory_order_release);
}

/* --- what a launch is --------------------------------------------------------------*/

/* All that is in its commands, and where its bytes are. 0: too much. */
static size_t describe(const vyre__launch *l, uint64_t out[MOST_WORDS]) {
  const vk_pipeline *p = (const vk_pipeline *)l->pipeline;
  const vk_plan *plan = &p->plan;
  size_t count = 0;
  if (plan->buffer_count > 32 || p->has_values) return 0;
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
  out[count++] = UINT64_MAX; /* ends it */
  return count;
}

static bool is_same(const vk_memo *memo, const vyre__launch *first) {
  uint64_t words[MOST_WORDS];
  size_t at = 0;
  uint32_t number = 0;
  if (memo->seen == 0) return false;
  for (const vyre__launch *l = first; l; l = l->next, number++) {
    size_t count = describe(l, words);
    if (number == memo->count || count == 0 || count > memo->word_count - at ||
        memcmp(memo->words + at, words, count * sizeof *words) != 0) {
      return false;
    }
    at += count;
  }
  return number == memo->count && at == memo->word_count;
}

/* --- keeping -----------------------------------------------------------------------*/

static void forget(vk_memo *memo) {
  if (memo->seen > 0) vk_piece_finish(&memo->piece.base);
  memo->piece = (vk_piece){0};
  memo->seen = 0;
}

/* Without memory it is not kept. */
static void keep(vk_device *device, vk_memo *memo, const vyre__launch *first) {
  uint64_t words[MOST_WORDS];
  vyre_allocator allocator = device->base.allocator;
  forget(memo);
  memo->word_count = memo->count = 0;
  for (const vyre__launch *l = first; l; l = l->next) {
    size_t count = describe(l, words);
    if (count == 0 ||
        !vyre__reserve(allocator, &memo->words, &memo->word_capacity,
                       memo->word_count + count, sizeof *words, false)) {
      return;
    }
    memcpy(memo->words + memo->word_count, words, count * sizeof *words);
    memo->word_count += count;
    memo->count++;
  }
  memo->piece.base.device = &device->base;
  memo->seen = 1;
}

static vk_memo *memos_of(vk_device *device) {
  size_t size = VK_MEMOS * sizeof(vk_memo);
  pthread_mutex_lock(&device->primary_lock);
  if (!device->memos) {
    device->memos = vyre__resize(device->base.allocator, NULL, 0, size);
    if (device->memos) memset(device->memos, 0, size);
  }
  vk_memo *memos = device->memos;
  pthread_mutex_unlock(&device->primary_lock);
  return memos;
}

/* The one that has it, which is then this thread's; or NULL, and it is remembered. */
static vk_memo *find(vk_device *device, const vyre__launch *first) {
  vk_memo *memos = memos_of(device), *oldest = NULL;
  if (!memos) return NULL;
  uint64_t now =
      1 + atomic_fetch_add_explicit(&device->batches, 1, memory_order_relaxed);
  for (int i = 0; i < VK_MEMOS; i++) {
    if (!enter(&memos[i])) continue;
    if (is_same(&memos[i], first)) {
      if (oldest) leave(oldest);
      memos[i].used = now;
      return &memos[i];
    }
    if (oldest && oldest->used <= memos[i].used) {
      leave(&memos[i]);
      continue;
    }
    if (oldest) leave(oldest);
    oldest = &memos[i];
  }
  if (!oldest) return NULL;
  keep(device, oldest, first);
  oldest->used = now;
  leave(oldest);
  return NULL;
}

/* --- running -----------------------------------------------------------------------*/

static bool fill(vk_device *device, vk_memo *memo, vyre__launch *first) {
  uint32_t number = 0;
  if (!vyre__reserve(device->base.allocator, &memo->items, &memo->item_capacity,
                     memo->count, sizeof *memo->items, false)) {
    return false;
  }
  for (vyre__launch *l = first; l; l = l->next) {
    memo->items[number++] = (vyre__command_list_item){.launch = l};
  }
  memo->piece.base.items = memo->items;
  memo->piece.base.count = number;
  return true;
}

vyre_code vk_memo_run(vk_device *device, vyre__launch *first, bool *is_taken,
                      size_t *done, vyre_status *st) {
  size_t count = 0;
  *is_taken = false;
  for (const vyre__launch *l = first; l && count < LEAST_COUNT; l = l->next) {
    count++;
  }
  if (count < LEAST_COUNT) return VYRE_OK;
  vk_memo *memo = find(device, first);
  if (!memo) return VYRE_OK;
  if (!fill(device, memo, first)) {
    leave(memo);
    return VYRE_OK;
  }
  *is_taken = true;
  memo->piece.base.is_changed = memo->seen == 1;
  memo->seen = 2;
  atomic_store_explicit(&memo->state, RUNS, memory_order_relaxed);
  vyre_code code = vk_piece_run(&memo->piece.base, done, st);
  if (code != VYRE_OK) forget(memo);
  leave(memo);
  return code;
}

/* --- ends --------------------------------------------------------------------------*/

static bool has(const vk_memo *memo, const vk_pipeline *pipeline) {
  for (uint32_t i = 0; i < memo->piece.base.count; i++) {
    for (int k = 0; k < VK_TAKES; k++) {
      const vk_take *take = &memo->piece.takes[k];
      if (take->used != 0 && i < take->item_count && take->jobs[i] &&
          take->jobs[i]->pipeline == pipeline) {
        return true;
      }
    }
  }
  return false;
}

void vk_memos_forget(vk_device *device, const vk_pipeline *pipeline) {
  pthread_mutex_lock(&device->primary_lock);
  vk_memo *memos = device->memos;
  pthread_mutex_unlock(&device->primary_lock);
  for (int i = 0; memos && i < VK_MEMOS; i++) {
    bool is_mine = false;
    while (!is_mine && atomic_load(&memos[i].state) != RUNS) {
      is_mine = enter(&memos[i]);
    }
    if (!is_mine) continue;
    if (has(&memos[i], pipeline)) forget(&memos[i]);
    leave(&memos[i]);
  }
}

void vk_memos_free(vk_device *device) {
  for (int i = 0; device->memos && i < VK_MEMOS; i++) leave(&device->memos[i]);
}

void vk_memos_finish(vk_device *device) {
  vyre_allocator allocator = device->base.allocator;
  if (!device->memos) return;
  for (int i = 0; i < VK_MEMOS; i++) {
    vk_memo *memo = &device->memos[i];
    forget(memo); /* one without jobs is no pipeline's */
    vyre__reserve_free(allocator, &memo->words, &memo->word_capacity,
                       sizeof *memo->words);
    vyre__reserve_free(allocator, &memo->items, &memo->item_capacity,
                       sizeof *memo->items);
  }
  vyre__resize(allocator, device->memos, VK_MEMOS * sizeof(vk_memo), 0);
  device->memos = NULL;
}
