/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work queues, as a backend sees them. The runtime plans a queue, allocates its
 * memory, checks bindings, and turns the end of a drain into a status. A
 * backend drains windows.
 *
 * Between drains, a queue is at rest: its items are in the region `items`, those
 * of the current window first, then those of the next one, and `state` has
 * their numbers. In a set, both parts ascend. A drain begins and ends at rest. */
#ifndef VYRE_HAL_QUEUE_H
#define VYRE_HAL_QUEUE_H

#include "vyre/work_queue.h"

#include "hal/launch.h"
#include "ir/ir.h"

/* Programs of a queue: vyre__queue_part_kind of analyze/queue/queue.h. */
enum {
  VYRE__QUEUE_PUSH,
  VYRE__QUEUE_VISIT,
  VYRE__QUEUE_PULL,
  VYRE__QUEUE_BY,
  VYRE__QUEUE_PARTS
};

/* Workgroup size of queue kernels on backends without steps. Adjacent workgroups
 * of more than one invocation become rows, which run in vectors or with
 * prefetches; a small size keeps windows of one item fast. */
enum { VYRE__QUEUE_GROUP = 2 };

/* Range of the memory of a queue. */
typedef struct vyre__queue_region {
  uint64_t offset, size; /* bytes; the offset is a multiple of 256 */
} vyre__queue_region;

/* A queue as planned. */
typedef struct vyre__queue_info {
  uint8_t kind;         /* vyre__queue_kind */
  vyre_queue_mode mode; /* not AUTO when a drain begins */
  uint32_t item_words;
  uint32_t pushes;   /* P; 0 for sets */
  uint64_t capacity; /* items, or the largest number of keys */
  uint64_t max_depth;
  uint64_t items_per_chunk; /* below 2^31 */
  uint64_t check_interval;  /* chunks; 0: the backend chooses */
  bool has_by, has_pull, has_order_hash;
  uint32_t first_batch, max_batch, threads; /* as in vyre_queue_run_plan */
  uint64_t work_bytes;                      /* memory that the backend uses */
  /* `items` has space for `capacity` items, or for sets for twice as many.
   * `seen` has a bit for each key that a run of `once` had in a window or has
   * in `items`; `priorities` a u32 for each key in `items`. */
  vyre__queue_region items, seen, priorities, work;
  /* Memory that is bound to the hidden buffers (ir/queue.h), 256 bytes each,
   * where a backend binds nothing else. */
  vyre__queue_region hidden;
  uint64_t memory_bytes;
} vyre__queue_info;

/* Numbers of a queue. */
typedef struct vyre__queue_state {
  uint64_t window, position; /* as in vyre_queue_state */
  uint64_t current, next;
  bool is_pulling;     /* the last window ran `pull` */
  uint64_t last_items; /* items of the window before the current one */
  uint64_t seen;       /* keys in `seen` */
  uint32_t priority;   /* of the current window */
  uint64_t order_hash; /* of all windows before the current one */
  uint32_t sums[2];    /* of the items of the current window that ran */
} vyre__queue_state;

/* One drain. */
typedef struct vyre__drain {
  const vyre__queue_info *info;
  vyre__queue_state *state;
  vyre__buffer *memory;
  /* Launch of PUSH: its views are those of every part. */
  vyre__launch *launch;
  vyre_pipeline *parts[VYRE__QUEUE_PARTS]; /* NULL: the kernel has none */
  /* vyre__queue_step, for backends that need them; NULL: the kind has none. */
  vyre_pipeline *const *steps;
  /* Views from here on are buffers of the queue (analyze/queue/queue_kernel.h). */
  uint32_t first_hidden;
  const uint32_t *push_lines; /* lines of the pushes that COUNTS numbers */
  uint64_t keys;              /* N of this run */
  uint64_t max_windows;       /* UINT64_MAX: no limit */
  uint64_t timeout_ns;
  uint64_t stop_ns;          /* time to stop behind a chunk; 0: none */
  uint64_t kill_ns;          /* time to stop inside a chunk; 0: none */
  atomic_bool *is_cancelled; /* the caller asked for an end */

  bool has_begun; /* the backend was called */

  /* Set by the backend. */
  vyre_queue_stats *stats; /* added to */
  vyre_queue_stop stop;
  uint64_t failed_item; /* PUSHES: lowest position of an item that pushed too
                           often */
  uint32_t failed_line; /* line of the push; 0: unknown */
} vyre__drain;

/* Number of items of the next chunk, if @p left items of the window are left
 * and the queue holds @p held items. 0: not one item fits. */
static inline uint64_t vyre__queue_chunk(const vyre__queue_info *info,
                                         uint64_t held, uint64_t left) {
  uint64_t count = left < info->items_per_chunk ? left : info->items_per_chunk;
  if (info->pushes <= 1) return count;
  const uint64_t fit = (info->capacity - held) / (info->pushes - 1);
  return count < fit ? count : fit;
}

/* Depth that NEWEST assumes without max_depth. */
enum { VYRE__QUEUE_DEPTH = 64 };

/* Number of items that NEWEST takes from @p held items. 0: not one item fits.
 * With n items held in j parts of windows, at least D - j times (P - 1) places
 * are free: so C = initial items + (P - 1) * D suffices. */
static inline uint64_t vyre__queue_newest(const vyre__queue_info *info,
                                          uint64_t held) {
  uint64_t count = held < info->items_per_chunk ? held : info->items_per_chunk;
  if (info->pushes <= 1) return count;
  const uint64_t places = (info->capacity - held) / (info->pushes - 1);
  const uint64_t depth = info->max_depth ? info->max_depth : VYRE__QUEUE_DEPTH;
  if (places == 0) return 0;
  const uint64_t share = places / depth;
  if (share < count) count = share;
  return count > 0 ? count : 1;
}

/* Constants of Beamer for direction-optimising search. */
enum { VYRE__QUEUE_ALPHA = 15, VYRE__QUEUE_BETA = 18 };

/* Returns true if a window runs `pull` by its number of keys, which stand for
 * edges. A device that counts edges (part BY) may pull in other windows, too. */
static inline bool vyre__queue_pulls(const vyre__queue_info *info,
                                     const vyre__queue_state *state,
                                     uint64_t keys) {
  const uint64_t items = state->current;
  if (!info->has_pull) return false;
  if (state->is_pulling) {
    return items >= state->last_items || items > keys / VYRE__QUEUE_BETA;
  }
  return items > (keys - state->seen) / VYRE__QUEUE_ALPHA &&
         items > state->last_items;
}

/* Adds an item to the sums of its window: sums do not depend on the order in
 * which they are made, so that threads can make them. */
static inline void vyre__queue_sum(uint32_t sums[2], uint64_t position,
                                   const uint32_t *item, uint32_t words) {
  uint32_t x = (uint32_t)position * 0x9e3779b1u ^ (uint32_t)(position >> 32);
  for (uint32_t i = 0; i < words; i++) {
    x = (x ^ item[i]) * 0x85ebca6bu;
    x ^= x >> 15;
  }
  const uint32_t y = x * 0xc2b2ae35u;
  sums[0] += x;
  sums[1] += y ^ y >> 16;
}

/* Adds a complete window to the hash of a queue. */
static inline void vyre__queue_fold(vyre__queue_state *state, uint64_t items) {
  uint64_t x = (uint64_t)state->sums[1] << 32 | state->sums[0];
  x = (state->order_hash ^ x) * UINT64_C(0x9e3779b97f4a7c15) + items;
  state->order_hash = x ^ x >> 29;
  state->sums[0] = state->sums[1] = 0;
}

/* Returns the memory of a region, for backends whose device memory the host
 * addresses. */
static inline void *vyre__queue_memory(const vyre__drain *drain,
                                       vyre__queue_region region) {
  return drain->memory->host + region.offset;
}

#endif
