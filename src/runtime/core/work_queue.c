/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/core/work_queue.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/context.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"

/* Belongs to its device and to its thread: whoever leaves last frees it. The
 * device may end on the thread itself, when the last work of all let go of it. */
struct vyre__queue {
  vyre_context *context; /* retained: memory comes from there */
  atomic_uint references;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  vyre_fence *first, *last;
  bool is_ending;
  pid_t process; /* that has the thread: the child of a fork has not */
  pthread_t thread;
  /* Of the device's work; the device lives as long as work of it is not done. */
  atomic_uint *queued; /* NULL: nobody asks */
  uint64_t pushed, passed;
  pthread_cond_t has_passed;
  char name[80]; /* of its track */
};

static void leave(vyre__queue *queue) {
  if (atomic_fetch_sub(&queue->references, 1) > 1) return;
  vyre_context *context = queue->context;
  pthread_cond_destroy(&queue->changed);
  pthread_cond_destroy(&queue->has_passed);
  pthread_mutex_destroy(&queue->lock);
  vyre__resize(context->allocator, queue, sizeof *queue, 0);
  vyre_context_release(context);
}

static vyre_fence *take(vyre__queue *queue) {
  pthread_mutex_lock(&queue->lock);
  while (!queue->first && !queue->is_ending) {
    pthread_cond_wait(&queue->changed, &queue->lock);
  }
  vyre_fence *fence = queue->first;
  if (fence) queue->first = fence->next;
  if (!queue->first) queue->last = NULL;
  pthread_mutex_unlock(&queue->lock);
  return fence;
}

static void *work(void *self) {
  vyre__queue *queue = self;
  vyre__trace_name_thread(queue->name);
  for (vyre_fence *fence; (fence = take(queue));) vyre__fence_run(fence);
  leave(queue);
  return NULL;
}

/* Signals are for the threads of the program: one that came to ours would run its
 * handler there, and a thread that waits for it by sigwait would miss it. */
static int begin_thread(vyre__queue *queue) {
  sigset_t all, before;
  sigfillset(&all);
  int error = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error != 0) return error;
  error = pthread_create(&queue->thread, NULL, work, queue);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static vyre_code begin(vyre_device *device, vyre__queue **out,
                       vyre_status *st) {
  vyre__queue *queue = vyre__resize(device->allocator, NULL, 0, sizeof *queue);
  if (!queue) return vyre__no_memory(st, "vyre_submit", "queues", 1);
  memset(queue, 0, sizeof *queue);
  queue->context = vyre_context_retain(device->context);
  atomic_init(&queue->references, 2);
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, NULL);
  pthread_cond_init(&queue->has_passed, NULL);
  queue->process = getpid();
  if (out == &device->state->queue) queue->queued = &device->state->queued;
  (void)snprintf(queue->name, sizeof queue->name, "%s #%llu %s",
                 vyre_device_name(device),
                 (unsigned long long)device->state->id,
                 out == &device->state->queue ? "queue" : "compile");
  int error = begin_thread(queue);
  if (error != 0) {
    atomic_store(&queue->references, 1);
    leave(queue);
    return VYRE_FAIL_WITH(st, VYRE_OUT_OF_MEMORY,
                          VYRE_KIND_STORAGE_RESERVE_FAILED, "threads", NULL,
                          "end other threads, or dispatch without a fence",
                          "no thread for the work of device '%s': error %d",
                          vyre_device_name(device), error);
  }
  *out = queue;
  return VYRE_OK;
}

static bool is_here(const vyre__queue *queue) {
  return queue->process == getpid();
}

/* In the child of a fork: nobody does what the parent submitted, and who knows what
 * the thread had locked. It stays as it is, and goes with the process. */
static void leave_behind(vyre__queue **queue) {
  if ((*queue)->queued) atomic_store((*queue)->queued, 0);
  *queue = NULL;
}

vyre_code vyre__queue_push(vyre_device *device, vyre__queue **queue,
                           vyre_fence *fence, vyre_status *st) {
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&device->state->lock);
  if (*queue && !is_here(*queue)) leave_behind(queue);
  if (!*queue) code = begin(device, queue, st);
  vyre__queue *to = *queue;
  pthread_mutex_unlock(&device->state->lock);
  if (code != VYRE_OK) return code;
  fence->queue = to;
  pthread_mutex_lock(&to->lock);
  to->pushed++;
  if (to->queued) atomic_fetch_add(to->queued, 1);
  if (to->last) {
    to->last->next = fence;
  } else {
    to->first = fence;
  }
  to->last = fence;
  pthread_cond_signal(&to->changed);
  pthread_mutex_unlock(&to->lock);
  return VYRE_OK;
}

void vyre__queue_passed(vyre__queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->passed++;
  if (queue->queued) atomic_fetch_sub(queue->queued, 1);
  pthread_cond_broadcast(&queue->has_passed);
  pthread_mutex_unlock(&queue->lock);
}

/* The innermost turn of this thread. */
static _Thread_local vyre__replay_scope *innermost
    __attribute__((tls_model("initial-exec")));

void vyre__replay_scope_begin(vyre__replay_scope *turn,
                              const vyre_device *device) {
  *turn = (vyre__replay_scope){device, innermost};
  innermost = turn;
}

void vyre__replay_scope_end(const vyre__replay_scope *turn) {
  innermost = turn->outer;
}

bool vyre__replay_scope_is_held(const vyre_device *device) {
  const vyre__replay_scope *turn = innermost;
  while (turn && turn->device != device) turn = turn->outer;
  return turn != NULL;
}

void vyre__queue_wait(vyre_device *device) {
  if (vyre__replay_scope_is_held(device)) return;
  pthread_mutex_lock(&device->state->lock);
  vyre__queue *queue = device->state->queue;
  pthread_mutex_unlock(&device->state->lock);
  if (!queue || !is_here(queue) ||
      pthread_equal(queue->thread, pthread_self())) {
    return;
  }
  pthread_mutex_lock(&queue->lock);
  uint64_t until = queue->pushed; /* what comes after is not waited for */
  while (queue->passed < until) {
    pthread_cond_wait(&queue->has_passed, &queue->lock);
  }
  pthread_mutex_unlock(&queue->lock);
}

void vyre__queue_deinit(vyre__queue *queue) {
  if (!queue || !is_here(queue)) return;
  pthread_t thread = queue->thread;
  pthread_mutex_lock(&queue->lock);
  queue->is_ending = true;
  pthread_cond_signal(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  bool is_own = pthread_equal(thread, pthread_self());
  leave(queue);
  if (is_own) {
    pthread_detach(thread);
  } else {
    pthread_join(thread, NULL);
  }
}
