/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Thread pool of a device. A job is a range of numbered items; the caller and
 * the awake threads of the pool run them together.
 *
 * The caller can run every item itself, so it never waits for a thread that has
 * not started on the job. Each thread first takes items from its own contiguous
 * share, then steals from others. An idle thread spins for a while, then
 * sleeps; it is woken only for work that takes longer than the wake-up.
 *
 * Items must not wait for each other: all of them may run on one thread, in any
 * order. */
#ifndef VYRE_BACKEND_CPU_THREADS_POOL_H
#define VYRE_BACKEND_CPU_THREADS_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct vyre__pool vyre__pool;

/* A job: items 0 to count - 1, each run once, in any order, possibly at
 * the same time. run() returns 0, or another value to end the job; items
 * not yet started are then skipped. Its argument `thread` is below
 * vyre__pool_numbers(); calls that run at the same time get different
 * numbers. */
typedef struct vyre__job {
  uint32_t (*run)(void *self, uint64_t first, uint64_t count, uint32_t thread);
  void *self;
  uint64_t count;
  uint64_t min_items; /* smallest range worth splitting off; 0 means 1 */
  /* Measured cost of an item in picoseconds, kept by the pool from run to run.
   * Starts as 0 (unknown) and may be shared by all threads. NULL: measured
   * again in every run. It is only a hint. */
  atomic_uint *cost;
} vyre__job;

/* Creates a pool of @p threads including the caller; 0 means one per processor
 * of the process, and 1024 is the maximum. A thread is started when there is
 * work for it. If the system refuses one, the pool works without it and tries
 * again later.
 * Forks: the child may use the pool and gets its own threads. Jobs that other
 * threads of the parent were running do not continue in the child.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__pool_create(vyre_allocator allocator, uint32_t threads,
                            vyre__pool **out, vyre_status *st);
/* Frees the pool. No job may be running. Accepts NULL. */
void vyre__pool_free(vyre__pool *pool);

/* Returns the upper bound of thread numbers. It is larger than the number of
 * threads: every caller of vyre__pool_run() holds a number during its call. */
uint32_t vyre__pool_numbers(const vyre__pool *pool);

/* Returns the number of threads, including the caller of a job. */
uint32_t vyre__pool_threads(const vyre__pool *pool);

/* Sets how long an idle thread looks for work before it sleeps. The default is
 * 300 us, or 0 in a pool with more threads than processors. Call it before the
 * first run. */
void vyre__pool_set_spin(vyre__pool *pool, uint64_t spin_ns);

/* Leaves one processor more, or one less, to threads that are not of the pool:
 * so many of its threads stop to claim work and sleep. Processors that the pool
 * has no thread for count first. Threads: safe. */
void vyre__pool_reserve(vyre__pool *pool);
void vyre__pool_unreserve(vyre__pool *pool);

/* Converts to ticks of the time-stamp counter, or of the clock without one. */
uint64_t vyre__pool_ticks_of(uint64_t ns);

/* A caller that runs many jobs in a row. It acquires its thread number
 * once for all of them, not once per job. Lives on the stack and belongs
 * to one thread. */
typedef struct vyre__pool_session {
  vyre__pool *pool;
  const vyre__pool *outer; /* pool whose job this thread runs; or NULL */
  uint32_t outer_number;
  uint32_t number, launcher;
  bool is_alone, is_inner;
} vyre__pool_session;

/* Starts a session; vyre__pool_leave ends it. Waits while 64 other callers use
 * the pool. */
void vyre__pool_enter(vyre__pool *pool, vyre__pool_session *session);
/* Runs one job, like vyre__pool_run. @p upcoming: number of similar jobs that
 * follow; more threads are woken if there are many. */
uint32_t vyre__pool_run_in(const vyre__pool_session *session,
                           const vyre__job *job, uint32_t upcoming);
void vyre__pool_leave(const vyre__pool_session *session);

/* Runs jobs one after the other; each starts when the one before has finished.
 * Returns 0, or the first other result; the jobs after it are skipped. *done
 * (or NULL) gets the number of jobs that finished. *busy_ns (or NULL) gets the
 * time that all threads together spent in the jobs. Allocates nothing.
 * Threads: safe. Up to 64 callers run at the same time without waiting for each
 * other; further ones wait until one returns. A job may call this for its own
 * pool: the inner job then runs on the calling thread only, with its number. */
uint32_t vyre__pool_run(vyre__pool *pool, const vyre__job *jobs, size_t count,
                        size_t *done, uint64_t *busy_ns);

#endif
