/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drains sets of keys. Pushes set bits, and threads list the keys whose bits
 * they set. If the lists are long enough, they are joined and sorted: this is
 * the next window. Otherwise the window is dense, and its blocks are ranges of
 * the bit set. */
#include <string.h>

#include "backend/cpu/queue_drain.h"

enum { SET_BLOCK = 64, RADIX_BITS = 11, INSERTION_SORT = 48 };

/* Keys of a call in a dense window: at least so many, if the block has them. A
 * call ends the prefetches of the calls before it. */
enum { DENSE_CALL = 448 };

/* Keys whose edges are counted to estimate those of all keys; windows of fewer
 * than EDGE_KEYS keys are pushed. */
enum { EDGE_SAMPLES = 2048, EDGE_KEYS = 64 };

/* Tasks of the next call of queue_set_advance. */
enum { SET_BEGIN, SET_RAN, SET_PULLED, SET_COUNTED };

static uint64_t aligned(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

static inline bool has_bit(const uint32_t *bits, uint32_t key) {
  return bits[key / 32] >> key % 32 & 1;
}

static inline void set_bit(uint32_t *bits, uint32_t key) {
  bits[key / 32] |= UINT32_C(1) << key % 32;
}

static uint32_t bit_blocks(uint64_t keys) {
  return (uint32_t)((queue_bit_words(keys) + QUEUE_BIT_WORDS - 1) /
                    QUEUE_BIT_WORDS);
}

/* --- memory ---------------------------------------------------------------*/

void queue_set_plan(const vyre__queue_info *info, uint64_t *bytes) {
  const uint64_t bits = aligned(queue_bit_words(info->capacity) * 4);
  const uint64_t list = aligned(info->capacity * 4);
  *bytes += 2 * bits + list + aligned((bit_blocks(info->capacity) + 1) * 4ul);
  if (info->has_by) *bytes += list + bits;
}

void queue_set_begin(cpu_queue *q, unsigned char *work) {
  const vyre__queue_info *info = q->info;
  const uint64_t bits = aligned(queue_bit_words(info->capacity) * 4);
  const uint64_t list = aligned(info->capacity * 4);
  const size_t used = queue_bit_words(q->drain->keys) * 4;
  q->advance = queue_set_advance;
  q->keys = vyre__queue_memory(q->drain, info->items);
  if (info->kind == VYRE__QUEUE_ONCE)
    q->seen = vyre__queue_memory(q->drain, info->seen);
  q->bits = (uint32_t *)(void *)work;
  work += bits;
  q->next = (uint32_t *)(void *)work;
  work += bits;
  q->spare = (uint32_t *)(void *)work;
  work += list;
  q->dense_counts = (uint32_t *)(void *)work;
  work += aligned((bit_blocks(info->capacity) + 1) * 4ul);
  memset(q->bits, 0, used);
  memset(q->next, 0, used);
  if (!info->has_by) return;
  q->priorities = vyre__queue_memory(q->drain, info->priorities);
  q->pending = (uint32_t *)(void *)work;
  work += list;
  q->pending_bits = (uint32_t *)(void *)work;
  memset(q->pending_bits, 0, used);
}

/* --- sorting --------------------------------------------------------------*/

static void sort_few(uint32_t *keys, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    const uint32_t key = keys[i];
    uint32_t at = i;
    for (; at > 0 && keys[at - 1] > key; at--) keys[at] = keys[at - 1];
    keys[at] = key;
  }
}

/* Sorts distinct keys below @p bound. @p spare has as much space. */
static void sort_keys(uint32_t *keys, uint32_t count, uint64_t bound,
                      uint32_t *spare) {
  if (count <= INSERTION_SORT) {
    sort_few(keys, count);
    return;
  }
  uint32_t *from = keys, *to = spare;
  const uint32_t bits = count < 1024 ? 8 : RADIX_BITS;
  for (uint32_t shift = 0; shift < 32 && bound >> shift > 0; shift += bits) {
    uint32_t starts[(1 << RADIX_BITS) + 1] = {0};
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    for (uint32_t i = 0; i < count; i++)
      starts[(from[i] >> shift & mask) + 1]++;
    for (uint32_t i = 0; i < mask; i++) starts[i + 1] += starts[i];
    for (uint32_t i = 0; i < count; i++)
      to[starts[from[i] >> shift & mask]++] = from[i];
    uint32_t *swapped = from;
    from = to;
    to = swapped;
  }
  if (from != keys) memcpy(keys, from, count * sizeof *keys);
}

/* --- priorities -----------------------------------------------------------*/

/* Evaluates `by` for keys, and adds them to those that are pending. */
static bool add_pending(cpu_queue *q, const uint32_t *keys, uint32_t count,
                        uint32_t number) {
  queue_thread *t = &q->threads[0];
  for (uint32_t at = 0; at < count; at += SET_BLOCK) {
    const uint32_t size = count - at < SET_BLOCK ? count - at : SET_BLOCK;
    if (!queue_call(q, t, VYRE__QUEUE_BY, keys + at, size, 0, number))
      return false;
    for (uint32_t i = 0; i < size; i++) {
      const uint32_t key = keys[at + i];
      q->priorities[key] = t->pushed[i];
      if (q->state->window > 0 && t->pushed[i] < q->state->priority)
        q->stats->priority_fell++;
      if (has_bit(q->pending_bits, key)) continue;
      set_bit(q->pending_bits, key);
      q->pending[q->pending_count++] = key;
    }
  }
  return true;
}

/* Makes the pending keys with the lowest priority the current window. */
static void select_window(cpu_queue *q) {
  uint32_t lowest = UINT32_MAX, kept = 0, taken = 0;
  for (uint32_t i = 0; i < q->pending_count; i++) {
    const uint32_t priority = q->priorities[q->pending[i]];
    if (priority < lowest) lowest = priority;
  }
  for (uint32_t i = 0; i < q->pending_count; i++) {
    const uint32_t key = q->pending[i];
    if (q->priorities[key] == lowest) {
      q->keys[taken++] = key;
      q->pending_bits[key / 32] &= ~(UINT32_C(1) << key % 32);
    } else {
      q->pending[kept++] = key;
    }
  }
  q->pending_count = kept;
  sort_keys(q->keys, taken, q->drain->keys, q->spare);
  q->state->priority = lowest;
  q->state->current = taken;
  q->state->next = kept;
}

/* --- begin and end --------------------------------------------------------*/

static uint64_t drop_keys(cpu_queue *q) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < q->state->current; i++) {
    if (q->keys[i] < q->drain->keys) {
      q->keys[kept++] = q->keys[i];
    } else {
      q->stats->dropped_keys++;
    }
  }
  return kept;
}

void queue_set_first(cpu_queue *q) {
  vyre__queue_state *s = q->state;
  const size_t bytes = queue_bit_words(q->drain->keys) * 4;
  const bool is_fresh = s->window == 0 && s->seen == 0;
  if (is_fresh) {
    s->current = drop_keys(q);
    if (q->seen) memset(q->seen, 0, bytes);
    for (uint64_t i = 0; q->seen && i < s->current; i++)
      set_bit(q->seen, q->keys[i]);
    s->seen = s->current;
  }
  if (!q->info->has_by) return;
  const uint64_t held = s->current + s->next;
  if (held == 0) return;
  if (is_fresh) {
    if (!add_pending(q, q->keys, (uint32_t)held, q->number)) return;
  } else {
    for (uint64_t i = 0; i < held; i++) {
      set_bit(q->pending_bits, q->keys[i]);
      q->pending[q->pending_count++] = q->keys[i];
    }
  }
  select_window(q);
}

/* Copies the keys of a bit set to a list. Returns the end. */
static uint32_t *list_bits(const uint32_t *bits, size_t first, size_t end,
                           uint32_t *to) {
  for (size_t w = first; w < end; w++) {
    for (uint32_t rest = bits[w]; rest; rest &= rest - 1)
      *to++ = (uint32_t)(w * 32) + (uint32_t)__builtin_ctz(rest);
  }
  return to;
}

void queue_set_end(cpu_queue *q) {
  const vyre__queue_state *s = q->state;
  if (q->is_dense)
    (void)list_bits(q->bits, 0, queue_bit_words(q->drain->keys), q->keys);
  if (!q->info->has_by || q->pending_count == 0) return;
  sort_keys(q->pending, q->pending_count, q->drain->keys, q->spare);
  memcpy(q->keys + s->current, q->pending,
         q->pending_count * sizeof *q->pending);
}

/* --- blocks ---------------------------------------------------------------*/

static void run_keys(cpu_queue *q, queue_thread *t, const uint32_t *keys,
                     uint32_t count, uint64_t position, uint32_t number) {
  const int part = q->state->is_pulling ? VYRE__QUEUE_VISIT : VYRE__QUEUE_PUSH;
  if (queue_call(q, t, part, keys, count, position, number))
    queue_sum_items(q, t, keys, count, position);
}

static void run_list(cpu_queue *q, queue_thread *t, uint32_t block,
                     uint32_t number) {
  const uint32_t first = block * SET_BLOCK;
  const uint64_t left = q->state->current - first;
  run_keys(q, t, q->keys + first, left < SET_BLOCK ? (uint32_t)left : SET_BLOCK,
           first, number);
}

static void end_words(const cpu_queue *q, uint32_t block, size_t *first,
                      size_t *end) {
  const size_t words = queue_bit_words(q->drain->keys);
  *first = (size_t)block * QUEUE_BIT_WORDS;
  *end = *first + QUEUE_BIT_WORDS < words ? *first + QUEUE_BIT_WORDS : words;
}

static void run_dense(cpu_queue *q, queue_thread *t, uint32_t block,
                      uint32_t number) {
  size_t first, end;
  uint64_t position = q->dense_counts[block];
  uint32_t count = 0;
  end_words(q, block, &first, &end);
  for (size_t w = first; w < end; w++) {
    uint32_t *to = list_bits(q->bits, w, w + 1, t->gathered + count);
    count = (uint32_t)(to - t->gathered);
    if (count < DENSE_CALL && w + 1 < end) continue;
    if (count == 0) continue;
    run_keys(q, t, t->gathered, count, position, number);
    position += count;
    count = 0;
  }
}

/* Runs `pull` for the keys of a block that are in no window yet. */
static void run_pull(cpu_queue *q, queue_thread *t, uint32_t block,
                     uint32_t number) {
  size_t first, end;
  const uint64_t keys = q->drain->keys;
  uint32_t count = 0;
  end_words(q, block, &first, &end);
  for (size_t w = first; w < end; w++) {
    uint32_t unseen = ~q->seen[w];
    if (w == keys / 32) unseen &= (UINT32_C(1) << keys % 32) - 1;
    uint32_t *to = list_bits(&unseen, 0, 1, t->gathered + count);
    for (uint32_t *k = t->gathered + count; k < to; k++)
      *k += (uint32_t)(w * 32);
    count = (uint32_t)(to - t->gathered);
    if ((count < DENSE_CALL && w + 1 < end) || count == 0) continue;
    if (!queue_call(q, t, VYRE__QUEUE_PULL, t->gathered, count, 0, number))
      return;
    count = 0;
  }
}

/* Counts the pushed keys of a block, marks them as seen, and clears the window
 * that has ended. */
static void count_bits(cpu_queue *q, queue_thread *t, uint32_t block,
                       uint32_t number) {
  size_t first, end;
  uint32_t count = 0;
  (void)t, (void)number;
  end_words(q, block, &first, &end);
  for (size_t w = first; w < end; w++) {
    count += (uint32_t)__builtin_popcount(q->next[w]);
    if (q->seen) q->seen[w] |= q->next[w];
    q->bits[w] = 0;
  }
  q->dense_counts[block + 1] = count;
}

/* --- windows --------------------------------------------------------------*/

static bool has_failed(const cpu_queue *q) {
  return atomic_load_explicit(&q->result, memory_order_relaxed) != 0;
}

/* Runs a step here if it has little work, or opens it. Returns true if it was
 * opened. */
static bool run_or_open(cpu_queue *q, queue_run_block *run, uint32_t count,
                        uint64_t work, uint32_t number) {
  if (!queue_is_narrow(q, work)) {
    queue_open(q, run, count, work);
    q->is_wide = true;
    q->open_ticks = queue_ticks();
    return true;
  }
  q->open_ticks = work >= SET_BLOCK ? queue_ticks() : 0;
  queue_run_inline(q, run, count, number);
  return false;
}

static uint64_t edges_of(cpu_queue *q, const uint32_t *keys, uint32_t count,
                         uint32_t number) {
  queue_thread *t = &q->threads[0];
  uint64_t sum = 0;
  for (uint32_t at = 0; at < count; at += SET_BLOCK) {
    const uint32_t size = count - at < SET_BLOCK ? count - at : SET_BLOCK;
    if (!queue_call(q, t, VYRE__QUEUE_BY, keys + at, size, 0, number))
      return sum;
    for (uint32_t i = 0; i < size; i++)
      sum += t->pushed[i] <= INT32_MAX ? t->pushed[i] : 0;
  }
  return sum;
}

/* Estimates the edges of all keys from some of them. */
static uint64_t all_edges(cpu_queue *q, uint32_t number) {
  const uint64_t keys = q->drain->keys;
  const uint32_t count = keys < EDGE_SAMPLES ? (uint32_t)keys : EDGE_SAMPLES;
  if (count == 0) return 0;
  for (uint32_t i = 0; i < count; i++)
    q->spare[i] = (uint32_t)(keys * i / count);
  return edges_of(q, q->spare, count, number) * keys / count;
}

/* Counts the edges of a window that grows, and compares them with those of the
 * keys that are left. Other windows are not worth the count. */
static bool has_many_edges(cpu_queue *q, uint32_t number) {
  const vyre__queue_state *s = q->state;
  const uint64_t keys = q->drain->keys, words = queue_bit_words(keys);
  if (s->current < EDGE_KEYS || s->current / 5 <= s->last_items / 4)
    return false;
  if (q->all_edges == 0) q->all_edges = all_edges(q, number) + 1;
  if (q->is_dense) (void)list_bits(q->bits, 0, words, q->spare);
  const uint64_t edges = edges_of(q, q->is_dense ? q->spare : q->keys,
                                  (uint32_t)s->current, number);
  const uint64_t left = (uint64_t)((double)q->all_edges *
                                   (double)(keys - s->seen) / (double)keys);
  return edges > left / VYRE__QUEUE_ALPHA;
}

/* Chooses between pushes and `pull`, which give the same next window. */
static bool must_pull(cpu_queue *q, uint32_t number) {
  const vyre__queue_state *s = q->state;
  if (vyre__queue_pulls(q->info, s, q->drain->keys)) return true;
  return q->info->has_pull && !s->is_pulling &&
         q->drain->parts[VYRE__QUEUE_BY] && has_many_edges(q, number);
}

static bool begin_window(cpu_queue *q, uint32_t number) {
  vyre__queue_state *s = q->state;
  const uint64_t keys = q->drain->keys;
  s->is_pulling = must_pull(q, number);
  q->is_wide = false;
  q->phase = SET_RAN;
  if (s->is_pulling && !q->is_dense) {
    for (uint64_t i = 0; i < s->current; i++) set_bit(q->bits, q->keys[i]);
  }
  return q->is_dense
             ? run_or_open(q, run_dense, bit_blocks(keys), s->current, number)
             : run_or_open(q, run_list,
                           (uint32_t)((s->current + SET_BLOCK - 1) / SET_BLOCK),
                           s->current, number);
}

/* Counts the items that ran. Returns true if a step for `pull` was opened. */
static bool end_items(cpu_queue *q, uint32_t number) {
  vyre__queue_state *s = q->state;
  const uint64_t keys = q->drain->keys;
  if (q->open_ticks) {
    queue_measure(
        q, s->current,
        (queue_ticks() - q->open_ticks) * (q->is_wide ? q->thread_count : 1));
  }
  (void)queue_collect(q);
  q->stats->items += s->current;
  q->stats->chunks++;
  q->chunks++;
  s->position = s->current;
  q->phase = SET_PULLED;
  if (!s->is_pulling) return false;
  q->stats->pull_windows++;
  return run_or_open(q, run_pull, bit_blocks(keys), keys - s->seen, number);
}

/* Joins the lists of the threads. Returns false if one is too short. */
static bool join_lists(cpu_queue *q, uint64_t *total) {
  *total = 0;
  for (uint32_t i = 0; i < q->thread_count; i++) {
    const uint32_t count = q->threads[i].counts_of_set[VYRE__COUNT_KEYS];
    if (count > q->list_limit) return false;
    *total += count;
  }
  return true;
}

static void take_lists(cpu_queue *q) {
  const vyre__queue_state *s = q->state;
  if (q->is_dense) {
    memset(q->bits, 0, queue_bit_words(q->drain->keys) * 4);
  } else if (s->is_pulling) {
    for (uint64_t i = 0; i < s->position; i++) q->bits[q->keys[i] / 32] = 0;
  }
  uint32_t *to = q->keys;
  for (uint32_t i = 0; i < q->thread_count; i++) {
    const queue_thread *t = &q->threads[i];
    const uint32_t count = t->counts_of_set[VYRE__COUNT_KEYS];
    for (uint32_t k = 0; k < count; k++) {
      const uint32_t key = t->pushed[k];
      *to++ = key;
      q->next[key / 32] = 0;
      if (q->seen) set_bit(q->seen, key);
    }
  }
  q->is_dense = false;
}

/* Ends the window; @p count keys were pushed. */
static void end_window(cpu_queue *q, uint64_t count, uint32_t number) {
  vyre__queue_state *s = q->state;
  for (uint32_t i = 0; i < q->thread_count; i++)
    q->threads[i].counts_of_set[VYRE__COUNT_KEYS] = 0;
  q->stats->pushed += count;
  if (q->seen) s->seen += count;
  queue_end_window(q, !q->is_wide);
  s->current = count;
  q->phase = SET_BEGIN;
  if (q->info->has_by) {
    if (q->is_dense) {
      const size_t words = queue_bit_words(q->drain->keys);
      (void)list_bits(q->bits, 0, words, q->spare);
      memset(q->bits, 0, words * 4);
      memcpy(q->keys, q->spare, count * sizeof *q->keys);
      q->is_dense = false;
    }
    s->current = 0;
    if (!add_pending(q, q->keys, (uint32_t)count, number)) return;
    select_window(q);
  } else if (!q->is_dense) {
    sort_keys(q->keys, (uint32_t)count, q->drain->keys, q->spare);
  }
  if (s->current + s->next > q->stats->high_water)
    q->stats->high_water = s->current + s->next;
}

/* Makes the bits that were counted the window. */
static void take_bits(cpu_queue *q, uint32_t number) {
  const uint32_t blocks = bit_blocks(q->drain->keys);
  uint32_t *bits = q->bits;
  q->dense_counts[0] = 0;
  for (uint32_t i = 0; i < blocks; i++)
    q->dense_counts[i + 1] += q->dense_counts[i];
  q->bits = q->next;
  q->next = bits;
  q->is_dense = true;
  end_window(q, q->dense_counts[blocks], number);
}

bool queue_set_advance(cpu_queue *q, uint32_t number) {
  uint64_t total;
  for (;;) {
    if (has_failed(q)) return false;
    switch (q->phase) {
      case SET_BEGIN:
        if (q->state->current == 0 || queue_must_stop(q)) return false;
        if (begin_window(q, number)) return true;
        break;
      case SET_RAN:
        if (end_items(q, number)) return true;
        break;
      case SET_PULLED:
        if (join_lists(q, &total)) {
          take_lists(q);
          end_window(q, total, number);
          break;
        }
        q->phase = SET_COUNTED;
        if (run_or_open(q, count_bits, bit_blocks(q->drain->keys),
                        queue_bit_words(q->drain->keys) / 16, number)) {
          return true;
        }
        break;
      default:
        take_bits(q, number);
    }
  }
}
