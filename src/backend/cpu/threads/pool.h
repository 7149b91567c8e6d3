/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads of a device: work in numbered pieces, done by the caller and by
 * whoever is awake.
 *
 * The caller works too, and can do every piece: nobody is waited for that has not
 * begun. Pieces are taken in contiguous blocks, one a thread, then stolen. Those
 * with nothing to do spin for a while, then sleep; they are woken only for work
 * that is worth it.
 *
 * So pieces must not wait for each other: all may run one after the other on one
 * thread, in any order. */
#ifndef VYRE_BACKEND_CPU_THREADS_POOL_H
#define VYRE_BACKEND_CPU_THREADS_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct vyre__pool vyre__pool;

/* One job: pieces 0 to count - 1, in any order, at the same time or not, each
 * once. run returns 0, or something else to end the job: pieces that have not
 * begun are then left out. thread: below vyre__pool_numbers, of whoever calls;
 * two that run at the same time have different ones. */
typedef struct vyre__job {
  uint32_t (*run)(void *self, uint64_t first, uint64_t count, uint32_t thread);
  void *self;
  uint64_t count;
  uint64_t least; /* pieces that are not worth splitting; 0: 1 */
  /* Where the pool remembers from run to run what one piece took, in picoseconds:
   * starts as 0 (not known), may be shared by all threads. Or NULL: then each run
   * finds out anew. It is only a hint. */
  atomic_uint *cost;
} vyre__job;

/* @p threads with the caller: 0 as many as the process may run on, at most 1024.
 * No thread is started before there is work for it.
 * Errors: VYRE_OUT_OF_MEMORY. A thread that the system refuses is done without,
 * and asked for again later.
 * Forks: the child may use the pool, with threads of its own. Jobs that other
 * threads ran when it was made do not go on in it. */
vyre_code vyre__pool_make(vyre_allocator allocator, uint32_t threads,
                          vyre__pool **out, vyre_status *st);
/* When no job runs. NULL is fine. */
void vyre__pool_free(vyre__pool *pool);

/* How many can work at one job. */
uint32_t vyre__pool_threads(const vyre__pool *pool);

/* What thread numbers are below: more than vyre__pool_threads, for many may call
 * vyre__pool_run at once, and each has a number while it does. */
uint32_t vyre__pool_numbers(const vyre__pool *pool);

/* How long a thread with nothing to do looks for work before it sleeps. Unless
 * told, 300 us, or not at all in a pool with more threads than processors. Before
 * the first run. */
void vyre__pool_spin(vyre__pool *pool, uint64_t spin_ns);

/* A place in the pool for one caller, who has many jobs: what begins and ends with
 * each call of vyre__pool_run does so once. On the stack; one thread's. */
typedef struct vyre__pool_stay {
  vyre__pool *pool;
  const vyre__pool *outer; /* whose job this thread runs; or NULL */
  uint32_t outer_number;
  uint32_t number, launcher;
  bool is_alone, is_inner;
} vyre__pool_stay;

void vyre__pool_enter(vyre__pool *pool, vyre__pool_stay *stay);
/* As vyre__pool_run for one job. @p more: how many like it are to come, so that
 * others are woken for all of them. */
uint32_t vyre__pool_run_in(const vyre__pool_stay *stay, const vyre__job *job,
                           uint32_t more);
void vyre__pool_leave(const vyre__pool_stay *stay);

/* Runs jobs one after the other, each when the one before is over, all in one
 * parallel region, and returns when all are. Gives the first result that is not
 * 0; the jobs after it are left out, and *done (or NULL) says how many were run to
 * their end. Allocates nothing.
 * busy_ns (or NULL): what all threads together spent in the jobs.
 * Threads: many may call it at once; each goes on whatever the others do, but for
 * those beyond the 64th, which wait for one to return. A job may call it for its
 * own pool: that runs on the one thread, and under its number. */
uint32_t vyre__pool_run(vyre__pool *pool, const vyre__job *jobs, size_t count,
                        size_t *done, uint64_t *busy_ns);

#endif
