/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work queues. Each has one thread, which starts with the first push. */
#include "runtime/core/work_queue.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"

/* Shared by the device and the thread: the last release frees it. The device
 * may end on the thread itself, when the last work drops the last reference to
 * it. */
struct vyre__queue {
  vyre_context *context; /* retained; its allocator owns this object */
  atomic_uint references;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  vyre_fence *first, *last;
  bool is_ending;
  pid_t process; /* owner of the thread; a forked child has no thread */
  pthread_t thread;
  /* Unfinished work, in the state of the device; NULL for a compile queue. The
   * device lives as long as its work is unfinished. */
  atomic_uint *queued;
  uint64_t pushed, passed;
  pthread_cond_t has_passed;
  char name[80]; /* of its track in a trace */
};

static void release(vyre__queue *queue) {
  if (atomic_fetch_sub(&queue->references, 1) > 1) return;
  vyre_context *context = queue->context;
  pthread_cond_destroy(&queue->changed);
  pthread_cond_destroy(&queue->has_passed);
  pthread_mutex_destroy(&queue->lock);
  vyre__resize(context->allocator, queue, sizeof *queue, 0);
  vyre_context_release(context);
}

/* Waits for the next fence. Returns NULL when the queue ends. */
static vyre_fence *pop(vyre__queue *queue) {
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
  for (vyre_fence *fence; (fence = pop(queue));) vyre__fence_run(fence);
  release(queue);
  return NULL;
}

static vyre_code create(vyre_device *device, vyre__queue **out,
                        vyre_status *st) {
  vyre__queue *queue = vyre__alloc_zeroed(device->allocator, sizeof *queue);
  if (!queue) return vyre__no_memory(st, "vyre_submit", "queues", 1);
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
  int error = vyre__thread_start(&queue->thread, work, queue);
  if (error != 0) {
    atomic_store(&queue->references, 1);
    release(queue);
    return VYRE_FAIL_WITH(
        st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, "threads",
        NULL, "end other threads, or dispatch without a fence",
        "cannot start a thread for the queue of device '%s': error %d",
        vyre_device_name(device), error);
  }
  *out = queue;
  return VYRE_OK;
}

static bool is_own_process(const vyre__queue *queue) {
  return queue->process == getpid();
}

/* Abandons the parent's queue in a forked child. Its thread does not exist
 * here, and its locks may be held for ever, so it is neither used nor freed. */
static void abandon(vyre__queue **queue) {
  if ((*queue)->queued) atomic_store((*queue)->queued, 0);
  *queue = NULL;
}

vyre_code vyre__queue_push(vyre_device *device, vyre__queue **queue,
                           vyre_fence *fence, vyre_status *st) {
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&device->state->lock);
  if (*queue && !is_own_process(*queue)) abandon(queue);
  if (!*queue) code = create(device, queue, st);
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

/* The innermost replay scope of this thread. */
static _Thread_local vyre__replay_scope *innermost
    __attribute__((tls_model("initial-exec")));

void vyre__replay_scope_begin(vyre__replay_scope *scope,
                              const vyre_device *device) {
  *scope = (vyre__replay_scope){device, innermost};
  innermost = scope;
}

void vyre__replay_scope_end(const vyre__replay_scope *scope) {
  innermost = scope->outer;
}

bool vyre__replay_scope_is_held(const vyre_device *device) {
  const vyre__replay_scope *scope = innermost;
  while (scope && scope->device != device) scope = scope->outer;
  return scope != NULL;
}

void vyre__queue_wait(vyre_device *device) {
  if (vyre__replay_scope_is_held(device)) return;
  pthread_mutex_lock(&device->state->lock);
  vyre__queue *queue = device->state->queue;
  pthread_mutex_unlock(&device->state->lock);
  if (!queue || !is_own_process(queue) ||
      pthread_equal(queue->thread, pthread_self())) {
    return;
  }
  pthread_mutex_lock(&queue->lock);
  uint64_t until = queue->pushed; /* later pushes are not waited for */
  while (queue->passed < until) {
    pthread_cond_wait(&queue->has_passed, &queue->lock);
  }
  pthread_mutex_unlock(&queue->lock);
}

void vyre__queue_deinit(vyre__queue *queue) {
  if (!queue || !is_own_process(queue)) return;
  pthread_t thread = queue->thread;
  pthread_mutex_lock(&queue->lock);
  queue->is_ending = true;
  pthread_cond_signal(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  bool is_own = pthread_equal(thread, pthread_self());
  release(queue);
  if (is_own) {
    pthread_detach(thread);
  } else {
    pthread_join(thread, NULL);
  }
}
