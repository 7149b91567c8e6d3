/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A fence: work that runs on a queue, and a way to wait for its end. */
#ifndef VYRE_RUNTIME_CORE_FENCE_H
#define VYRE_RUNTIME_CORE_FENCE_H

#include <pthread.h>
#include <stdatomic.h>

#include "vyre/fence.h"

/* First member of a struct that holds the data of the work. */
struct vyre_fence {
  atomic_uint references;
  atomic_bool is_done;
  unsigned generation;   /* of the process that queues the work */
  vyre_context *context; /* retained */
  size_t size;           /* bytes of the full object */
  vyre_code code;        /* valid when is_done */
  vyre_status status;

  vyre_code (*work)(vyre_fence *fence, vyre_status *st);
  /* Releases the data of the work. Called after it, before is_done is set. */
  void (*cleanup)(vyre_fence *fence);
  void (*on_free)(vyre_fence *fence); /* called by the last release; or NULL */
  vyre_pipeline *pipeline;            /* result of a compile, or NULL */

  pthread_mutex_t lock; /* guards the fields below */
  pthread_cond_t changed;
  void (*callback)(void *self, vyre_fence *fence);
  void *callback_user_data;
  int fd;                    /* -1: not created yet */
  vyre_fence *next;          /* in the queue */
  struct vyre__queue *queue; /* queue that runs the work; NULL: none */
};

/* Returns the number of forks between the process that loaded the library and
 * this one. Counted from the first fence on. */
unsigned vyre__process_generation(void);
/* Allocates a zeroed object of @p size bytes that starts with a fence. */
vyre_code vyre__fence_make(vyre_context *context, size_t size, vyre_fence **out,
                           vyre_status *st);
/* Frees a fence whose work was never queued. */
void vyre__fence_discard(vyre_fence *fence);
/* Runs the work on this thread, wakes all waiters, and drops the reference of
 * the queue. */
void vyre__fence_run(vyre_fence *fence);
/* Waits until the work has finished. */
void vyre__fence_await(vyre_fence *fence);
/* Waits until the work has finished, or until @p end_ns of vyre__clock_ns.
 * Returns true if it has finished. */
bool vyre__fence_await_until(vyre_fence *fence, uint64_t end_ns);

#endif
