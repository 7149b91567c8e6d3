/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fences: waiting, callbacks and file descriptors. */
#include "vyre/fence.h"

#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "runtime/core/counters.h"
#include "runtime/core/fault_injection.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"
#include "runtime/core/work_queue.h"

/* Waiters of vyre_fence_wait_any. A fence does not know them, so every fence
 * that ends wakes all of them. */
static pthread_mutex_t any_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t any_changed;
static pthread_once_t any_once = PTHREAD_ONCE_INIT;
static atomic_uint any_waiters;

static void init_any(void) {
  vyre__condition_init(&any_changed);
}

/* --- fork ------------------------------------------------------------------ */

/* Number of forks between the process that loaded the library and this one. */
static atomic_uint generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Runs in the child. The threads that waited in vyre_fence_wait_any do not
 * exist there. */
static void after_fork(void) {
  atomic_fetch_add(&generation, 1);
  vyre__devices_after_fork();
  pthread_mutex_init(&any_lock, NULL);
  vyre__condition_init(&any_changed);
  atomic_store(&any_waiters, 0);
}

static void install_fork_handler(void) {
  (void)pthread_atfork(vyre__devices_lock, vyre__devices_unlock, after_fork);
}

unsigned vyre__process_generation(void) {
  pthread_once(&fork_once, install_fork_handler);
  return atomic_load(&generation);
}

/* Returns true if the work was unfinished when this process was forked. Its
 * thread exists only in the parent, and the locks of the fence may be held. */
static bool is_abandoned(const vyre_fence *fence) {
  return !atomic_load(&fence->is_done) &&
         fence->generation != atomic_load(&generation);
}

static vyre_code abandoned(vyre_status *st) {
  return VYRE_FAIL(st, VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST,
                   "submit the work again in the child process, or wait for "
                   "the fence before the fork",
                   "the work of the fence belongs to the parent process: it "
                   "was not done at the fork, and never ends in the child");
}

vyre_code vyre__fence_make(vyre_context *context, size_t size, vyre_fence **out,
                           vyre_status *st) {
  vyre_fence *fence = vyre__alloc_zeroed(context->allocator, size);
  if (!fence) return vyre__no_memory(st, "vyre_submit", "fences", 1);
  pthread_once(&fork_once, install_fork_handler);
  fence->generation = atomic_load(&generation);
  atomic_init(&fence->references, 2); /* the queue's and the caller's */
  atomic_init(&fence->is_done, false);
  fence->context = vyre_context_retain(context);
  fence->size = size;
  fence->fd = -1;
  pthread_mutex_init(&fence->lock, NULL);
  vyre__condition_init(&fence->changed);
  *out = fence;
  return VYRE_OK;
}

void vyre__fence_discard(vyre_fence *fence) {
  vyre_context *context = fence->context;
  if (fence->fd >= 0) close(fence->fd);
  pthread_cond_destroy(&fence->changed);
  pthread_mutex_destroy(&fence->lock);
  vyre__resize(context->allocator, fence, fence->size, 0);
  vyre_context_release(context);
}

void vyre__fence_run(vyre_fence *fence) {
  vyre_status st = {0};
  vyre_code code = fence->work(fence, &st);
  /* Before cleanup releases the device, and before any waiter sees is_done. */
  if (fence->queue) vyre__queue_passed(fence->queue);
  fence->cleanup(fence);
  fence->status = st;
  fence->code = code;
  pthread_mutex_lock(&fence->lock);
  atomic_store(&fence->is_done, true);
  void (*done)(void *, vyre_fence *) = fence->callback;
  if (fence->fd >= 0) {
    /* One write cannot overflow the counter of an eventfd. */
    (void)!write(fence->fd, &(uint64_t){1}, sizeof(uint64_t));
  }
  pthread_cond_broadcast(&fence->changed);
  pthread_mutex_unlock(&fence->lock);
  if (atomic_load(&any_waiters) > 0) {
    pthread_mutex_lock(&any_lock);
    pthread_cond_broadcast(&any_changed);
    pthread_mutex_unlock(&any_lock);
  }
  if (done) done(fence->callback_user_data, fence);
  vyre_fence_release(fence);
}

/* Waits for one signal. Returns false after the deadline. */
static bool wait_once(pthread_cond_t *changed, pthread_mutex_t *lock,
                      const struct timespec *end) {
  if (!end) return pthread_cond_wait(changed, lock) == 0;
  return pthread_cond_timedwait(changed, lock, end) == 0;
}

void vyre__fence_await(vyre_fence *fence) {
  pthread_mutex_lock(&fence->lock);
  while (!atomic_load(&fence->is_done)) {
    pthread_cond_wait(&fence->changed, &fence->lock);
  }
  pthread_mutex_unlock(&fence->lock);
}

bool vyre__fence_await_until(vyre_fence *fence, uint64_t end_ns) {
  const struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000u),
                               .tv_nsec = (long)(end_ns % 1000000000u)};
  bool in_time = true;
  pthread_mutex_lock(&fence->lock);
  while (!atomic_load(&fence->is_done) && in_time) {
    in_time = wait_once(&fence->changed, &fence->lock, &end);
  }
  pthread_mutex_unlock(&fence->lock);
  return atomic_load(&fence->is_done);
}

vyre_fence *vyre_fence_retain(vyre_fence *fence) {
  if (fence) atomic_fetch_add(&fence->references, 1);
  return fence;
}

void vyre_fence_release(vyre_fence *fence) {
  if (!fence || atomic_fetch_sub(&fence->references, 1) > 1) return;
  if (fence->on_free) fence->on_free(fence);
  vyre__fence_discard(fence);
}

bool vyre_fence_is_done(const vyre_fence *fence) {
  return fence && (atomic_load(&fence->is_done) || is_abandoned(fence));
}

/* --- waiting -------------------------------------------------------------- */

/* Computes the end of a timeout. Returns false for an endless wait. */
static bool get_deadline(uint64_t timeout_ns, struct timespec *out) {
  uint64_t end = vyre__clock_ns() + timeout_ns;
  if (timeout_ns == VYRE_WAIT_FOREVER || end < timeout_ns) return false;
  out->tv_sec = (time_t)(end / 1000000000u);
  out->tv_nsec = (long)(end % 1000000000u);
  return true;
}

static vyre_code timed_out(uint64_t timeout_ns, vyre_status *st) {
  char limit[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
      VYRE_NUMBERS({"timeout_ns", timeout_ns}),
      "wait again with a longer timeout: the work is still running",
      "the work did not finish within %s", vyre__duration(timeout_ns, limit));
}

vyre_code vyre_fence_wait(vyre_fence *fence, uint64_t timeout_ns,
                          vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, fence);
  if (vyre__fault(fence->context, VYRE_FAULT_WAIT)) {
    return vyre__fault_status(VYRE_FAULT_WAIT, st);
  }
  if (is_abandoned(fence)) return abandoned(st);
  if (!atomic_load(&fence->is_done)) {
    struct timespec end;
    bool ends = get_deadline(timeout_ns, &end);
    bool in_time = timeout_ns > 0;
    uint64_t start = vyre__trace_begin(fence->context);
    pthread_mutex_lock(&fence->lock);
    while (!atomic_load(&fence->is_done) && in_time) {
      in_time = wait_once(&fence->changed, &fence->lock, ends ? &end : NULL);
    }
    pthread_mutex_unlock(&fence->lock);
    bool is_done = atomic_load(&fence->is_done);
    vyre__trace_end(fence->context, start, .kind = VYRE__TRACE_WAIT,
                    .result = is_done ? fence->code : VYRE_DISPATCH_FAILED);
    if (!is_done) return timed_out(timeout_ns, st);
  }
  if (fence->code != VYRE_OK && st) *st = fence->status;
  return fence->code;
}

static bool find_done(vyre_fence *const *fences, size_t count, size_t *out) {
  for (size_t i = 0; i < count; i++) {
    if (!vyre_fence_is_done(fences[i])) continue;
    *out = i;
    return true;
  }
  return false;
}

vyre_code vyre_fence_wait_any(vyre_fence *const *fences, size_t count,
                              uint64_t timeout_ns, size_t *out,
                              vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = 0;
  VYRE_REQUIRE(st, fences);
  if (count == 0) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"count", 0}), "pass at least one fence",
        "%s: count is 0; expected at least one fence", __func__);
  }
  for (size_t i = 0; i < count; i++) {
    if (!fences[i]) return vyre__null_argument(st, __func__, "fences[]");
  }
  if (vyre__fault(fences[0]->context, VYRE_FAULT_WAIT)) {
    return vyre__fault_status(VYRE_FAULT_WAIT, st);
  }
  if (find_done(fences, count, out)) return VYRE_OK;
  struct timespec end;
  bool ends = get_deadline(timeout_ns, &end), in_time = timeout_ns > 0, found;
  uint64_t start = vyre__trace_begin(fences[0]->context);
  pthread_once(&any_once, init_any);
  pthread_mutex_lock(&any_lock);
  /* Counted before the last check: a fence that ends later sees the count. */
  atomic_fetch_add(&any_waiters, 1);
  while (!(found = find_done(fences, count, out)) && in_time) {
    in_time = wait_once(&any_changed, &any_lock, ends ? &end : NULL);
  }
  atomic_fetch_sub(&any_waiters, 1);
  pthread_mutex_unlock(&any_lock);
  vyre__trace_end(fences[0]->context, start, .kind = VYRE__TRACE_WAIT,
                  .name = "wait for any", .numbers = {{"fences", count}},
                  .result = found ? VYRE_OK : VYRE_DISPATCH_FAILED);
  return found ? VYRE_OK : timed_out(timeout_ns, st);
}

vyre_code vyre_fence_set_callback(vyre_fence *fence,
                                  void (*done)(void *user_data,
                                               vyre_fence *fence),
                                  void *user_data, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, fence, done);
  if (is_abandoned(fence)) return abandoned(st);
  pthread_mutex_lock(&fence->lock);
  bool has_callback = fence->callback != NULL;
  bool is_done = atomic_load(&fence->is_done);
  if (!has_callback) {
    fence->callback = done;
    fence->callback_user_data = user_data;
  }
  pthread_mutex_unlock(&fence->lock);
  if (has_callback) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "set one callback that calls the others",
                     "the fence already has a callback");
  }
  if (is_done) done(user_data, fence);
  return VYRE_OK;
}

vyre_code vyre_fence_fd(vyre_fence *fence, int *out, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = -1;
  VYRE_REQUIRE(st, fence);
  if (is_abandoned(fence)) return abandoned(st);
  pthread_mutex_lock(&fence->lock);
  if (fence->fd < 0) {
    unsigned is_done = atomic_load(&fence->is_done);
    fence->fd = eventfd(is_done, EFD_CLOEXEC | EFD_NONBLOCK);
  }
  *out = fence->fd;
  pthread_mutex_unlock(&fence->lock);
  if (*out >= 0) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
      "file descriptors", NULL, "close files, or raise the limit (ulimit -n)",
      "cannot create a file descriptor for the fence: the limit is reached");
}

vyre_pipeline *vyre_fence_pipeline(vyre_fence *fence) {
  if (!fence || !atomic_load(&fence->is_done)) return NULL;
  return vyre_pipeline_retain(fence->pipeline);
}
