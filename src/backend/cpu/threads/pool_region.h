/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Regions: one job of the pool in which threads run many steps, with a barrier
 * between steps. A step has parts, each meant for one thread, so that a thread
 * finds its memory in its cache in step after step.
 *
 * The thread that finishes the last part of a step begins the next one. It runs
 * short steps by itself, because a barrier would take longer. A thread takes
 * parts of another one only after that one did not come for a while. A thread waits
 * only for parts that another one has begun, so the region works on any number
 * of threads. */
#ifndef VYRE_BACKEND_CPU_THREADS_POOL_REGION_H
#define VYRE_BACKEND_CPU_THREADS_POOL_REGION_H

#include "backend/cpu/threads/pool.h"

enum { VYRE__REGION_THREADS = 256 };

/* A range of entries that one thread runs in a step. */
typedef struct vyre__region_part {
  uint32_t thread; /* that the part is meant for */
  uint32_t first, end;
} vyre__region_part;

/* Parts first_part to end_part - 1, in order of their threads, with at most one
 * part per thread. */
typedef struct vyre__region_step {
  uint32_t first_part, end_part;
  uint64_t ns;      /* estimated time of all parts; updated as they run */
  bool is_measured; /* `ns` was measured */
} vyre__region_step;

typedef struct vyre__region {
  /* Runs entries [first, end). Returns 0, or another value to end the
   * region. */
  uint32_t (*run)(void *self, uint32_t first, uint32_t end, uint32_t number);
  /* Called by one thread after the last step, if it is not NULL. Returns true
   * to begin again with the first step. */
  bool (*again)(void *self);
  void *self;
  vyre__region_step *steps;
  uint32_t step_count;
  uint32_t threads; /* bound of part.thread; at most VYRE__REGION_THREADS */
  const vyre__region_part *parts;
  uint64_t inline_ns; /* steps of at most this time are not shared */
  uint64_t runs;      /* number of runs so far, to measure some of them */
  /* Figures of the last run. */
  uint64_t steps_run, inline_steps, steals;
} vyre__region;

/* Runs a region from its first step to its last. The caller's thread number is
 * that of @p session. Returns the result of the first part that failed, or
 * 0. */
uint32_t vyre__pool_run_region(const vyre__pool_session *session,
                               vyre__region *region);

#endif
