/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Draining of work queues, shared by its files:
 *
 *   queue.c        plans, threads, calls of kernels
 *   queue_list.c   queues of items: windows, and newest first
 *   queue_set.c    sets of keys, priorities, `pull`
 *
 * One region of the thread pool drains the whole queue. A step of the region
 * runs the blocks of a window: a thread first takes the blocks that it wrote in
 * the window before, then blocks of others. The thread that finishes a step
 * builds the next window, and runs windows of little work by itself. */
#ifndef VYRE_BACKEND_CPU_QUEUE_DRAIN_H
#define VYRE_BACKEND_CPU_QUEUE_DRAIN_H

#include "backend/cpu/launch.h"
#include "backend/cpu/threads/pool_region.h"
#include "base/clock.h"
#include "ir/queue.h"

/* Items in consecutive memory of a list. */
typedef struct queue_extent {
  uint32_t first, count; /* items of the list */
  uint32_t thread;       /* that wrote them */
} queue_extent;

/* Items of a window that are run by one call of the kernel: `count` items from
 * item `skip` of extent `extent` on. They may end in a later extent. */
typedef struct queue_block {
  uint32_t extent, skip, count, position;
} queue_block;

/* State of a thread, on cache lines of its own. */
typedef struct queue_thread {
  _Alignas(64) atomic_uint next; /* index of the next block; others take, too */
  uint32_t end;
  _Alignas(64) cpu_launch launches[VYRE__QUEUE_PARTS];
  uint32_t place[VYRE__PLACE_WORDS];
  uint32_t counts_of_set[VYRE__COUNT_WORDS];
  uint32_t sums[2];
  uint32_t steals;
  uint32_t *gathered;   /* items of a block */
  uint32_t *pushed;     /* places of a block; for sets, a list of keys */
  uint32_t *counts;     /* pushes of the items of a block */
  uint64_t failed_item; /* lowest that pushed too often; UINT64_MAX: none */
  uint32_t failed_site;
} queue_thread;

typedef struct cpu_queue cpu_queue;

/* Runs a block of the open step. */
typedef void queue_run_block(cpu_queue *q, queue_thread *t, uint32_t block,
                             uint32_t number);

struct cpu_queue {
  vyre__drain *drain;
  const vyre__queue_info *info;
  vyre__queue_state *state;
  vyre_queue_stats *stats;
  cpu_device *device;
  uint32_t thread_count;
  queue_thread *threads;
  uint32_t block_items; /* maximum number of items of a call */
  uint32_t list_limit;  /* keys in the list of a thread */

  /* The open step. */
  queue_run_block *run_block;
  const uint32_t *order; /* blocks in the order of their threads; NULL: as they
                            are numbered */
  bool (*advance)(cpu_queue *q, uint32_t number); /* opens the next step; false:
                                                     the drain has ended */
  vyre__region region;
  vyre__region_step step;
  vyre__region_part parts[VYRE__REGION_THREADS];
  atomic_uint result; /* first failure of a kernel: vyre__spmd_result */
  const cpu_launch *failed;
  atomic_uint stop; /* set at kill_ns */

  /* Time of an item, measured: ticks in 1/256. 0: not known. */
  uint64_t item_ticks;
  uint64_t inline_ticks; /* steps of less work run on one thread */
  uint64_t chunks, windows;
  uint32_t number;                 /* thread number of the caller */
  bool is_wide;                    /* a step of this window was shared */
  bool was_wide;                   /* one of the window before was */
  uint64_t open_items, open_ticks; /* of the open step */

  /* Lists. */
  uint32_t *now, *later;   /* items of this window and of the next one */
  uint32_t *rest;          /* space for all items, to bring them to rest */
  uint32_t *stack, *taken; /* NEWEST: items held, and items that run */
  queue_extent *extents, *pushed; /* of `now` and of `later` */
  uint32_t extent_count, pushed_count;
  uint32_t at, skip; /* first item of `now` that did not run */
  uint32_t block_count;
  queue_block *blocks;
  uint32_t *sorted;
  _Alignas(64) atomic_uint used; /* items of `later` */

  /* Sets. */
  uint32_t *bits, *next, *seen; /* of the window, pushed, of all windows */
  uint32_t *keys, *spare;       /* list of the window, if it is not dense */
  uint32_t *pending, *pending_bits, pending_count; /* with priorities */
  uint32_t *priorities;
  uint32_t *dense_counts; /* items before each block of bits */
  uint64_t all_edges;     /* of all keys, estimated; 0: not yet */
  bool is_dense;
  uint32_t phase;
};

/* Returns ticks as of vyre__pool_ticks_of. */
static inline uint64_t queue_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return vyre__clock_ns();
#endif
}

/* Blocks of bits: words. */
enum { QUEUE_BIT_WORDS = 128 };

static inline bool queue_is_set(const vyre__queue_info *info) {
  return info->kind == VYRE__QUEUE_SET || info->kind == VYRE__QUEUE_ONCE;
}

static inline size_t queue_bit_words(uint64_t keys) {
  return (size_t)((keys + 31) / 32);
}

/* Runs `count` items from `items` on, the first at `position` of the window.
 * Returns false if the kernel failed. */
bool queue_call(cpu_queue *q, queue_thread *t, int part, const uint32_t *items,
                uint32_t count, uint64_t position, uint32_t number);
/* Returns true if this much work should run on one thread. */
bool queue_is_narrow(const cpu_queue *q, uint64_t items);
/* Updates the time of an item from a measurement. */
void queue_measure(cpu_queue *q, uint64_t items, uint64_t ticks);
/* Opens a step of `count` blocks. @p work: items in it. */
void queue_open(cpu_queue *q, queue_run_block *run, uint32_t count,
                uint64_t work);
/* Runs the blocks 0 to count - 1 on this thread. */
void queue_run_inline(cpu_queue *q, queue_run_block *run, uint32_t count,
                      uint32_t number);
/* Returns true if the drain must end before the next chunk. */
bool queue_must_stop(cpu_queue *q);
void queue_end_window(cpu_queue *q, bool is_narrow);
/* Adds the sums of all threads to those of the window. Returns true if an item
 * pushed too often. */
bool queue_collect(cpu_queue *q);
void queue_sum_items(const cpu_queue *q, queue_thread *t, const uint32_t *items,
                     uint32_t count, uint64_t position);

void queue_list_plan(vyre__queue_info *info, uint32_t threads, uint64_t *bytes,
                     uint32_t block_items);
void queue_list_begin(cpu_queue *q, unsigned char *work);
void queue_list_end(cpu_queue *q);
bool queue_list_advance(cpu_queue *q, uint32_t number);
bool queue_newest_advance(cpu_queue *q, uint32_t number);

void queue_set_plan(const vyre__queue_info *info, uint64_t *bytes);
void queue_set_begin(cpu_queue *q, unsigned char *work);
/* Builds the first window. */
void queue_set_first(cpu_queue *q);
void queue_set_end(cpu_queue *q);
bool queue_set_advance(cpu_queue *q, uint32_t number);

#endif
