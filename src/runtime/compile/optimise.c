/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles the optimised tier of pipelines that have baseline code. The compile
 * takes processor time from launches, so the backend says when it begins.
 *
 * The work in the background borrows its pipeline: a caller that releases the
 * last reference may free the memory of the program next. So freeing a pipeline
 * cancels pending work, and waits for running work. */
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/work_queue.h"

enum {
  QUEUED,
  WAITING, /* until the compile pays */
  BEGUN,
  CANCELLED, /* before its thread used the pipeline */
  STOPPED,   /* while it waited */
};

enum {
  POLL_NS = 1000000, /* between two looks: each takes time from launches */
  MAX_COMPILING_NS = 20000000, /* time that it waits for other compiles */
};

typedef struct optimise_work {
  vyre_fence fence;
  vyre_pipeline *pipeline; /* borrowed; valid after this work has changed
                              `step` from QUEUED, until its fence is done */
  atomic_uint step;
  pthread_mutex_t lock;
  pthread_cond_t stopped; /* while it waits */
  uint64_t requested_ns;
  pid_t process; /* the work ends with it: a forked child has no threads */
} optimise_work;

static bool change_step(optimise_work *work, unsigned from, unsigned to) {
  return atomic_compare_exchange_strong(&work->step, &from, to);
}

/* Cancels work before its compile begins. Returns true if its thread never
 * uses the pipeline. */
static bool cancel(optimise_work *work) {
  if (change_step(work, QUEUED, CANCELLED) ||
      atomic_load(&work->step) == CANCELLED) {
    return true;
  }
  pthread_mutex_lock(&work->lock);
  (void)change_step(work, WAITING, STOPPED);
  pthread_cond_signal(&work->stopped);
  pthread_mutex_unlock(&work->lock);
  return false;
}

/* Compiles the optimised tier through the cache on disk, and moves its code to
 * @p pipeline. After a failure, the baseline tier stays. */
static vyre_code optimise(vyre_pipeline *pipeline, vyre_status *st) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre_pipeline wanted =
      vyre__pipeline_like(pipeline, pipeline->workgroup, pipeline->ulp_budget);
  wanted.counts_iterations = pipeline->counts_iterations;
  memcpy(wanted.tuned, pipeline->tuned, sizeof wanted.tuned);
  vyre_pipeline *full;
  VYRE_TRY(
      vyre__pipeline_create_replacement(&wanted, state->is_fresh, &full, st));
  pipeline->device->backend->pipeline_replace_code(pipeline, full);
  vyre__cache_replaced(pipeline, full);
  vyre__pipeline_free(full);
  atomic_store(&state->is_baseline, false);
  return VYRE_OK;
}

/* Returns true when a compile is to begin. While programs are compiled, it
 * waits: a dispatch of them usually follows. */
static bool is_due(const optimise_work *work, vyre__optimise_wait *wait) {
  vyre_pipeline *pipeline = work->pipeline;
  vyre_device *device = pipeline->device;
  uint64_t now = vyre__clock_ns();
  if (atomic_load(&device->state->compiling) > 0 &&
      now - work->requested_ns < MAX_COMPILING_NS) {
    *wait =
        (vyre__optimise_wait){.begin_ns = now, .compile_ns = wait->compile_ns};
    return false;
  }
  wait->now_ns = now;
  return device->backend->optimise_is_due(pipeline, wait);
}

static void sleep_until_stopped(optimise_work *work, uint64_t max_ns) {
  uint64_t end = vyre__clock_ns() + max_ns;
  const struct timespec until = {.tv_sec = (time_t)(end / 1000000000),
                                 .tv_nsec = (long)(end % 1000000000)};
  pthread_mutex_lock(&work->lock);
  if (atomic_load(&work->step) == WAITING) {
    (void)pthread_cond_timedwait(&work->stopped, &work->lock, &until);
  }
  pthread_mutex_unlock(&work->lock);
}

/* Waits until the compile pays. Returns false if it was stopped. */
static bool await_due(optimise_work *work) {
  const vyre__backend *backend = work->pipeline->device->backend;
  vyre__optimise_wait wait = {.begin_ns = vyre__clock_ns(),
                              .compile_ns = work->pipeline->state->compile_ns};
  while (backend->optimise_is_due && !is_due(work, &wait)) {
    if (atomic_load(&work->step) == STOPPED ||
        atomic_load(&work->pipeline->device->state->is_closing)) {
      return false;
    }
    sleep_until_stopped(work, POLL_NS);
  }
  return change_step(work, WAITING, BEGUN);
}

static vyre_code run(vyre_fence *fence, vyre_status *st) {
  optimise_work *work = (optimise_work *)fence;
  if (!change_step(work, QUEUED, WAITING) || !await_due(work)) return VYRE_OK;
  vyre_device *device = work->pipeline->device;
  if (atomic_load(&device->state->is_closing)) return VYRE_OK;
  if (device->backend->optimise_begins)
    device->backend->optimise_begins(device);
  vyre_code code = optimise(work->pipeline, st);
  if (device->backend->optimise_ends) device->backend->optimise_ends(device);
  return code;
}

static void cleanup(vyre_fence *fence) {
  (void)fence;
}

static void on_free(vyre_fence *fence) {
  optimise_work *work = (optimise_work *)fence;
  pthread_cond_destroy(&work->stopped);
  pthread_mutex_destroy(&work->lock);
}

/* Returns the work of this process, under the lock. */
static optimise_work *current_work(struct vyre__pipeline_state *state) {
  optimise_work *work = (optimise_work *)state->optimise;
  if (work && work->process != getpid()) state->optimise = NULL;
  return (optimise_work *)state->optimise;
}

static void queue_work(vyre_pipeline *pipeline) {
  vyre_device *device = pipeline->device;
  vyre_fence *fence;
  if (vyre__fence_make(device->context, sizeof(optimise_work), &fence, NULL) !=
      VYRE_OK) {
    return;
  }
  optimise_work *work = (optimise_work *)fence;
  work->pipeline = pipeline;
  work->requested_ns = vyre__clock_ns();
  pthread_mutex_init(&work->lock, NULL);
  vyre__condition_init(&work->stopped);
  work->process = getpid();
  fence->work = run;
  fence->cleanup = cleanup;
  fence->on_free = on_free;
  if (vyre__queue_push(device, vyre__next_optimise_queue(device), fence,
                       NULL) == VYRE_OK) {
    pipeline->state->optimise = fence;
  } else {
    on_free(fence);
    vyre__fence_discard(fence);
  }
}

void vyre__optimise_later(vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  if (!atomic_load(&state->is_baseline)) return;
  pthread_mutex_lock(&state->lock);
  if (!current_work(state)) queue_work(pipeline);
  pthread_mutex_unlock(&state->lock);
}

vyre_code vyre__optimise_now(vyre_pipeline *pipeline, vyre_status *st) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre_code code = VYRE_OK;
  if (!atomic_load(&state->is_baseline)) return VYRE_OK;
  pthread_mutex_lock(&state->lock);
  optimise_work *work = current_work(state);
  if (work && !cancel(work)) vyre__fence_await(&work->fence);
  /* Also after a failure: a new attempt tells the reason. */
  if (atomic_load(&state->is_baseline)) code = optimise(pipeline, st);
  pthread_mutex_unlock(&state->lock);
  return code;
}

void vyre__optimise_end(vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  optimise_work *work = (optimise_work *)state->optimise;
  state->optimise = NULL;
  if (!work || work->process != getpid()) return;
  if (!cancel(work)) vyre__fence_await(&work->fence);
  vyre_fence_release(&work->fence);
}
