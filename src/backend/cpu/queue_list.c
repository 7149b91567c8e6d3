/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drains queues of items. A window is a list of extents, in order. Each block of
 * items appends what it pushes to the list of the next window, at any place,
 * and the extents of the blocks give the order. */
#include <string.h>

#include "backend/cpu/queue_drain.h"

static uint64_t aligned(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/* --- memory ---------------------------------------------------------------*/

/* Returns a bound of the extents of a window. A shared chunk has more than an
 * eighth of a block, so there are at most 8 blocks for each full one; chunks
 * between them add one extent each. */
static uint64_t max_extents(uint64_t items, uint32_t block_items) {
  return 16 * (items / block_items) + 64;
}

/* Sizes of the lists: of the window, of pushed items, and in NEWEST of the
 * items that were taken. */
typedef struct list_sizes {
  uint64_t taken, later, rest, extents;
} list_sizes;

static list_sizes sizes_of(const vyre__queue_info *info, uint32_t block_items) {
  list_sizes s = {.later = info->capacity, .rest = info->capacity};
  if (info->mode == VYRE_QUEUE_MODE_NEWEST) {
    s.rest = 0;
    s.taken = info->items_per_chunk;
    s.later = info->items_per_chunk * (info->pushes ? info->pushes : 1);
  }
  const uint64_t most = s.later > s.taken ? s.later : s.taken;
  s.extents = max_extents(most, block_items);
  return s;
}

void queue_list_plan(vyre__queue_info *info, uint32_t threads, uint64_t *bytes,
                     uint32_t block_items) {
  (void)threads;
  if (info->mode == VYRE_QUEUE_MODE_NEWEST) {
    const uint64_t depth =
        info->max_depth ? info->max_depth : VYRE__QUEUE_DEPTH;
    uint64_t most = info->capacity;
    if (info->pushes > 1) most = info->capacity / (info->pushes - 1) / depth;
    if (most == 0) most = 1;
    if (info->items_per_chunk == 0 || info->items_per_chunk > most)
      info->items_per_chunk = most;
  }
  const list_sizes s = sizes_of(info, block_items);
  const uint64_t word = 4ul * info->item_words;
  *bytes += aligned(s.taken * word) + aligned(s.later * word) +
            aligned(s.rest * word) +
            2 * aligned(s.extents * sizeof(queue_extent)) +
            aligned(s.extents * sizeof(queue_block)) + aligned(s.extents * 4);
}

void queue_list_begin(cpu_queue *q, unsigned char *work) {
  const vyre__queue_info *info = q->info;
  const list_sizes s = sizes_of(info, q->block_items);
  const uint64_t word = 4ul * info->item_words;
  uint32_t *items = vyre__queue_memory(q->drain, info->items);
  vyre__queue_state *state = q->state;
  q->taken = (uint32_t *)(void *)work;
  work += aligned(s.taken * word);
  q->later = (uint32_t *)(void *)work;
  work += aligned(s.later * word);
  q->rest = (uint32_t *)(void *)work;
  work += aligned(s.rest * word);
  q->extents = (queue_extent *)(void *)work;
  work += aligned(s.extents * sizeof(queue_extent));
  q->pushed = (queue_extent *)(void *)work;
  work += aligned(s.extents * sizeof(queue_extent));
  q->blocks = (queue_block *)(void *)work;
  work += aligned(s.extents * sizeof(queue_block));
  q->sorted = (uint32_t *)(void *)work;
  atomic_init(&q->used, 0);
  if (info->mode == VYRE_QUEUE_MODE_NEWEST) {
    q->now = items; /* the stack */
    q->advance = queue_newest_advance;
    return;
  }
  q->advance = queue_list_advance;
  q->now = items;
  if (state->current > 0)
    q->extents[q->extent_count++] =
        (queue_extent){0, (uint32_t)state->current, UINT32_MAX};
  if (state->next > 0) {
    memcpy(q->later, items + state->current * info->item_words,
           (size_t)(state->next * word));
    q->pushed[q->pushed_count++] =
        (queue_extent){0, (uint32_t)state->next, UINT32_MAX};
    atomic_init(&q->used, (uint32_t)state->next);
  }
}

/* Copies the items of extents, in order. Returns the end. */
static uint32_t *gather(uint32_t *to, const uint32_t *from,
                        const queue_extent *extents, uint32_t first,
                        uint32_t end, uint32_t skip, uint32_t words) {
  for (uint32_t i = first; i < end; i++) {
    const size_t count = (size_t)(extents[i].count - skip) * words;
    memcpy(to, from + (size_t)(extents[i].first + skip) * words, count * 4);
    to += count;
    skip = 0;
  }
  return to;
}

void queue_list_end(cpu_queue *q) {
  const vyre__queue_info *info = q->info;
  if (info->mode == VYRE_QUEUE_MODE_NEWEST) return;
  const uint64_t held = q->state->current + q->state->next;
  if (held == 0) return;
  uint32_t *to = gather(q->rest, q->now, q->extents, q->at, q->extent_count,
                        q->skip, info->item_words);
  (void)gather(to, q->later, q->pushed, 0, q->pushed_count, 0,
               info->item_words);
  memcpy(vyre__queue_memory(q->drain, info->items), q->rest,
         (size_t)(held * info->item_words) * 4);
}

/* --- blocks ---------------------------------------------------------------*/

/* Moves the pushed items of a block together. Returns their number, or stops
 * the drain if an item pushed too often. */
static uint32_t compact(cpu_queue *q, queue_thread *t, uint32_t count,
                        uint64_t position) {
  const uint32_t words = q->info->item_words, most = q->info->pushes;
  uint32_t *to = t->pushed;
  const uint32_t *from = t->pushed;
  const size_t stride = (size_t)most * words;
  for (uint32_t i = 0; i < count; i++, from += stride) {
    uint32_t pushes = t->counts[i];
    if (pushes > most) {
      if (position + i < t->failed_item) {
        t->failed_item = position + i;
        t->failed_site = pushes - most - 1;
      }
      pushes = most;
    }
    if (stride == 2) { /* no branch: what is behind is overwritten later */
      const uint32_t a = from[0], b = from[1];
      to[0] = a;
      to[1] = b;
    } else if (pushes > 0 && to != from) {
      memmove(to, from, (size_t)pushes * words * 4);
    }
    to += (size_t)pushes * words;
  }
  return (uint32_t)((size_t)(to - t->pushed) / words);
}

/* Returns the items of a block in consecutive memory. */
static const uint32_t *items_of(const cpu_queue *q, queue_thread *t,
                                const queue_block *block) {
  const uint32_t words = q->info->item_words;
  const queue_extent *e = &q->extents[block->extent];
  uint32_t skip = block->skip, left = block->count;
  if (e->count - skip >= left)
    return q->now + (size_t)(e->first + skip) * words;
  uint32_t *to = t->gathered;
  for (; left > 0; e++, skip = 0) {
    const uint32_t count = e->count - skip < left ? e->count - skip : left;
    memcpy(to, q->now + (size_t)(e->first + skip) * words,
           (size_t)count * words * 4);
    to += (size_t)count * words;
    left -= count;
  }
  return t->gathered;
}

/* Runs a block. Returns the extent of what it pushed. */
static queue_extent run_items(cpu_queue *q, queue_thread *t,
                              const queue_block *block, uint32_t number) {
  queue_extent out = {0, 0, (uint32_t)(t - q->threads)};
  const uint32_t words = q->info->item_words;
  const uint32_t *items = items_of(q, t, block);
  if (!queue_call(q, t, VYRE__QUEUE_PUSH, items, block->count, block->position,
                  number)) {
    return out;
  }
  queue_sum_items(q, t, items, block->count, block->position);
  if (q->info->pushes == 0) return out;
  out.count = compact(q, t, block->count, block->position);
  if (out.count == 0) return out;
  out.first =
      atomic_fetch_add_explicit(&q->used, out.count, memory_order_relaxed);
  memcpy(q->later + (size_t)out.first * words, t->pushed,
         (size_t)out.count * words * 4);
  return out;
}

static void run_block(cpu_queue *q, queue_thread *t, uint32_t block,
                      uint32_t number) {
  q->pushed[q->pushed_count + block] =
      run_items(q, t, &q->blocks[block], number);
}

/* --- chunks ---------------------------------------------------------------*/

/* Cuts the next items into a block, and steps over them. */
static queue_block next_block(cpu_queue *q, uint32_t count, uint64_t position) {
  const queue_block block = {q->at, q->skip, count, (uint32_t)position};
  while (count > 0) {
    const uint32_t left = q->extents[q->at].count - q->skip;
    if (count < left) {
      q->skip += count;
      break;
    }
    count -= left;
    q->at++;
    q->skip = 0;
  }
  return block;
}

/* Orders the blocks by the threads that wrote their items. */
static void sort_blocks(cpu_queue *q) {
  const uint32_t threads = q->thread_count;
  uint32_t counts[VYRE__REGION_THREADS + 1] = {0};
  for (uint32_t i = 0; i < q->block_count; i++) {
    const uint32_t thread = q->extents[q->blocks[i].extent].thread;
    counts[thread < threads
               ? thread
               : (uint32_t)((uint64_t)i * threads / q->block_count)]++;
  }
  uint32_t at = 0;
  for (uint32_t i = 0; i < threads; i++) {
    atomic_store_explicit(&q->threads[i].next, at, memory_order_relaxed);
    const uint32_t count = counts[i];
    counts[i] = at;
    at += count;
    q->threads[i].end = at;
  }
  for (uint32_t i = 0; i < q->block_count; i++) {
    const uint32_t thread = q->extents[q->blocks[i].extent].thread;
    const uint32_t owner =
        thread < threads ? thread
                         : (uint32_t)((uint64_t)i * threads / q->block_count);
    q->sorted[counts[owner]++] = i;
  }
  q->order = q->sorted;
}

/* Cuts a chunk into blocks, for all threads. */
static void open_chunk(cpu_queue *q, uint64_t count, uint64_t position) {
  q->block_count = 0;
  for (uint64_t left = count; left > 0;) {
    const uint32_t size =
        left < q->block_items ? (uint32_t)left : q->block_items;
    q->blocks[q->block_count++] = next_block(q, size, position);
    position += size;
    left -= size;
  }
  q->open_items = count;
  sort_blocks(q);
  queue_open(q, run_block, q->block_count, count);
}

/* Appends an extent, or makes the last one longer. */
static void append(cpu_queue *q, const queue_extent *e) {
  if (e->count == 0) return;
  if (q->pushed_count > 0) {
    queue_extent *last = &q->pushed[q->pushed_count - 1];
    if (last->first + last->count == e->first) {
      last->count += e->count;
      return;
    }
  }
  q->pushed[q->pushed_count++] = *e;
}

/* Adds the extents of the chunk that all threads ran, without empty ones. */
static void close_chunk(cpu_queue *q) {
  const uint32_t end = q->pushed_count + q->block_count;
  for (uint32_t i = q->pushed_count; i < end; i++) {
    const queue_extent e = q->pushed[i];
    append(q, &e);
  }
  q->block_count = 0;
}

/* Runs a chunk on this thread. */
static void run_chunk(cpu_queue *q, uint64_t count, uint64_t position,
                      uint32_t number) {
  const bool is_measured = count >= 16;
  const uint64_t start = is_measured ? queue_ticks() : 0;
  for (uint64_t left = count; left > 0;) {
    const uint32_t size =
        left < q->block_items ? (uint32_t)left : q->block_items;
    const queue_block block = next_block(q, size, position);
    const queue_extent out = run_items(q, &q->threads[0], &block, number);
    append(q, &out);
    position += size;
    left -= size;
    if (atomic_load_explicit(&q->result, memory_order_relaxed)) return;
  }
  if (is_measured) queue_measure(q, count, queue_ticks() - start);
}

static void note_chunk(cpu_queue *q, uint64_t count) {
  q->stats->items += count;
  q->stats->chunks++;
  q->chunks++;
}

/* --- window by window -----------------------------------------------------*/

static void count_chunk(cpu_queue *q, uint64_t count) {
  vyre__queue_state *s = q->state;
  const uint64_t used = atomic_load_explicit(&q->used, memory_order_relaxed);
  note_chunk(q, count);
  s->position += count;
  s->current -= count;
  q->stats->pushed += used - s->next;
  s->next = used;
  if (s->current + s->next > q->stats->high_water)
    q->stats->high_water = s->current + s->next;
}

static void next_window(cpu_queue *q) {
  uint32_t *list = q->now;
  queue_extent *extents = q->extents;
  q->now = q->later;
  q->later = list;
  q->extents = q->pushed;
  q->pushed = extents;
  q->extent_count = q->pushed_count;
  q->pushed_count = q->at = q->skip = 0;
  atomic_store_explicit(&q->used, 0, memory_order_relaxed);
  q->state->current = q->state->next;
  q->state->next = 0;
  q->is_wide = false;
}

bool queue_list_advance(cpu_queue *q, uint32_t number) {
  vyre__queue_state *s = q->state;
  if (q->block_count > 0) {
    close_chunk(q);
    queue_measure(q, q->open_items,
                  (queue_ticks() - q->open_ticks) * q->thread_count);
    count_chunk(q, q->open_items);
  }
  for (;;) {
    if (atomic_load_explicit(&q->result, memory_order_relaxed)) return false;
    if (queue_collect(q)) return false;
    if (s->current == 0) {
      if (s->position > 0) queue_end_window(q, !q->is_wide);
      if (s->next == 0) return false;
      next_window(q);
    }
    if (queue_must_stop(q)) return false;
    const uint64_t count =
        vyre__queue_chunk(q->info, s->current + s->next, s->current);
    if (count == 0) {
      q->drain->stop = VYRE_QUEUE_STOP_FULL;
      return false;
    }
    /* Chunks of one block run here, so that all others have full blocks. */
    if (queue_is_narrow(q, count) || count <= q->block_items / 8) {
      run_chunk(q, count, s->position, number);
      count_chunk(q, count);
      continue;
    }
    q->is_wide = true;
    open_chunk(q, count, s->position);
    q->open_ticks = queue_ticks();
    return true;
  }
}

/* --- newest first ---------------------------------------------------------*/

/* Pushes the results of the items that were taken, in order. */
static void return_items(cpu_queue *q, uint64_t count) {
  const uint32_t words = q->info->item_words;
  vyre__queue_state *s = q->state;
  const uint64_t pushed = atomic_load_explicit(&q->used, memory_order_relaxed);
  (void)gather(q->stack + s->current * words, q->later, q->pushed, 0,
               q->pushed_count, 0, words);
  note_chunk(q, count);
  s->position = count;
  s->current += pushed;
  q->stats->pushed += pushed;
  if (s->current > q->stats->high_water) q->stats->high_water = s->current;
  queue_end_window(q, !q->is_wide);
}

bool queue_newest_advance(cpu_queue *q, uint32_t number) {
  const uint32_t words = q->info->item_words;
  vyre__queue_state *s = q->state;
  if (!q->stack) q->stack = q->now;
  if (q->block_count > 0) {
    close_chunk(q);
    queue_measure(q, q->open_items,
                  (queue_ticks() - q->open_ticks) * q->thread_count);
    if (queue_collect(q)) return false;
    if (!atomic_load(&q->result)) return_items(q, q->open_items);
  }
  for (;;) {
    if (atomic_load_explicit(&q->result, memory_order_relaxed)) return false;
    if (s->current == 0 || queue_must_stop(q)) return false;
    const uint64_t count = vyre__queue_newest(q->info, s->current);
    if (count == 0) {
      q->drain->stop = VYRE_QUEUE_STOP_FULL;
      return false;
    }
    s->current -= count;
    q->now = q->taken;
    memcpy(q->taken, q->stack + s->current * words, (size_t)count * words * 4);
    q->extents[0] = (queue_extent){0, (uint32_t)count, UINT32_MAX};
    q->extent_count = 1;
    q->pushed_count = q->at = q->skip = 0;
    atomic_store_explicit(&q->used, 0, memory_order_relaxed);
    q->is_wide = !queue_is_narrow(q, count) && count > q->block_items / 8;
    if (q->is_wide) {
      open_chunk(q, count, 0);
      q->open_ticks = queue_ticks();
      return true;
    }
    run_chunk(q, count, 0, number);
    if (queue_collect(q)) return false;
    if (!atomic_load(&q->result)) return_items(q, count);
  }
}
