/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads of a device: work in numbered pieces, done by the caller and by
 * whoever is awake.
 *
 * The caller works too, and can do every piece: nobody is waited for that has not
 * begun. Pieces are taken in contiguous blocks, one a thread, then stolen. Those
 * with nothing to do spin for a while, then sleep; they are woken only for work
 * that is worth it. */
#ifndef VYRE_BACKEND_CPU_POOL_H
#define VYRE_BACKEND_CPU_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct vyre__pool vyre__pool;

/* One job: pieces 0 to count - 1, in any order, at the same time or not, each
 * once. run returns 0, or something else to end the job: pieces that have not
 * begun are then left out. thread: below vyre__pool_threads, of whoever calls;
 * two that run at the same time have different ones. */
typedef struct vyre__job {
  uint32_t (*run)(void *self, uint64_t first, uint64_t count, uint32_t thread);
  void *self;
  uint64_t count;
  uint64_t least; /* pieces that are not worth splitting; 0: 1 */
} vyre__job;

/* @p threads with the caller: 0 as many as the process may run on. No thread is
 * started before there is work for it.
 * Errors: VYRE_OUT_OF_MEMORY. A thread that the system refuses is done without. */
vyre_code vyre__pool_make(vyre_allocator allocator, uint32_t threads,
                          vyre__pool **out, vyre_status *st);
/* When no job runs. NULL is fine. */
void vyre__pool_free(vyre__pool *pool);
uint32_t vyre__pool_threads(const vyre__pool *pool);

/* Runs jobs one after the other, each when the one before is over, all in one
 * parallel region, and returns when all are. Gives the first result that is not
 * 0; the jobs after it are left out, and *done (or NULL) says how many were run to
 * their end. Many threads may call it at once; allocates nothing.
 * busy_ns (or NULL): what all threads together spent in the jobs. */
uint32_t vyre__pool_run(vyre__pool *pool, const vyre__job *jobs, size_t count,
                        size_t *done, uint64_t *busy_ns);

#endif
