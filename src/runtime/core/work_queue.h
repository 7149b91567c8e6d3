/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A work queue: one thread that runs fences in the order in which they were
 * pushed. */
#ifndef VYRE_RUNTIME_CORE_WORK_QUEUE_H
#define VYRE_RUNTIME_CORE_WORK_QUEUE_H

#include "vyre/device.h"
#include "vyre/fence.h"

typedef struct vyre__queue vyre__queue;

/* Appends @p fence to *queue. The first push creates the queue and its
 * thread. */
vyre_code vyre__queue_push(vyre_device *device, vyre__queue **queue,
                           vyre_fence *fence, vyre_status *st);
/* Waits until the work that is on the device's queue now has finished. Returns
 * at once on the queue's own thread, and inside a replay scope of the
 * device. */
void vyre__queue_wait(vyre_device *device);
/* Counts one more piece of work as finished, and wakes vyre__queue_wait. */
void vyre__queue_passed(vyre__queue *queue);
/* Runs what is left, and ends the thread. Waits for it, unless called on that
 * thread. Accepts NULL. */
void vyre__queue_deinit(vyre__queue *queue);

/* A replay that runs on this thread; lives on its stack. Queued work may wait
 * for the replay, so a callback of the replay must not wait for queued work. */
typedef struct vyre__replay_scope {
  const vyre_device *device;
  struct vyre__replay_scope *outer;
} vyre__replay_scope;

void vyre__replay_scope_begin(vyre__replay_scope *scope,
                              const vyre_device *device);
void vyre__replay_scope_end(const vyre__replay_scope *scope);
/* Returns true if this thread runs a replay on @p device. */
bool vyre__replay_scope_is_held(const vyre_device *device);

#endif
