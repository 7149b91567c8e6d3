/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drains of the reference backend, shared by queue.c and queue_check.c. */
#ifndef VYRE_BACKEND_REF_QUEUE_INTERNAL_H
#define VYRE_BACKEND_REF_QUEUE_INTERNAL_H

#include "backend/ref/ref.h"

/* Order in which a trial takes the items of a queue of kind `any`. */
typedef enum ref_pool {
  REF_POOL_NONE, /* windows */
  REF_POOL_NEWEST,
  REF_POOL_OLDEST,
  REF_POOL_RANDOM
} ref_pool;

/* Log entry of a window. */
typedef struct ref_window_log {
  uint32_t sums[2]; /* of its items */
  uint64_t items;
  uint64_t value; /* hash of the watched element behind the window */
  ref_cause writer;
} ref_window_log;

/* A repetition of a drain in another order. */
typedef struct ref_trial {
  bool canonical; /* items of a chunk in their usual order */
  bool backward;  /* in reverse order; otherwise in a random one */
  bool cuts;      /* chunks of random size */
  ref_pool pool;
  uint64_t seed, chunks;
  bool is_cut_short; /* the pool does not fit into the queue */
  /* Lists: items pushed by a chunk in order of execution, their pushes, and for
   * each item of the chunk the
   * first one and their number. */
  uint32_t *pushed;
  ref_cause *pushers;
  uint64_t *first, *counts;
  /* Push of each item of the next window, or of each key. */
  ref_cause *placed;
  bool has_log;
  ref_window_log *log;
  size_t log_count, log_capacity;
  uint64_t from; /* window whose atomics are hashed */
} ref_trial;

/* One drain, with a machine for each program of the queue. */
typedef struct ref_drain {
  vyre__drain *drain;
  const vyre__queue_info *info;
  vyre__queue_state *state;
  vyre_queue_stats *stats;
  vyre__launch launch;
  ref_machine machines[VYRE__QUEUE_PARTS];
  ref_chunk chunk;
  uint32_t *items;       /* region `items` */
  uint32_t *list;        /* work: as many words as `items` */
  uint32_t *seen, *next; /* bit sets */
  uint32_t *in_window, *pending;
  uint32_t *priorities;
  uint64_t windows; /* of this drain */
  ref_trial *trial; /* NULL: the run of the caller */
} ref_drain;

static inline bool ref_queue_is_set(const vyre__queue_info *info) {
  return info->kind == VYRE__QUEUE_SET || info->kind == VYRE__QUEUE_ONCE;
}

/* Drains the queue once. */
vyre_code ref_queue_run(ref_drain *r);

/* Implements the chunk of a trial: runs items one by one in its order, and
 * collects pushes in the order of the items. */
vyre_code ref_trial_run(ref_drain *r, int part, const uint32_t *items,
                        uint64_t count);
/* Drains a queue of kind `any` item by item. */
vyre_code ref_trial_pool(ref_drain *r);
/* Notes the end of a window, before its numbers change. */
vyre_code ref_trial_window(ref_drain *r);

/* Repeats a drain in other orders, and adds a finding if the results differ.
 * Begin saves the state before the drain; *out is NULL if the caller did not
 * ask for this check. End is called after the drain, and leaves its results. */
typedef struct ref_queue_check ref_queue_check;
vyre_code ref_queue_check_begin(ref_drain *r, ref_queue_check **out);
vyre_code ref_queue_check_end(ref_queue_check *check);

#endif
