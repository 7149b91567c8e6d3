/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles the optimised tier of pipelines that have baseline code.
 *
 * The work in the background borrows its pipeline: a caller that releases the
 * last reference may free the memory of the program next. So freeing a pipeline
 * cancels pending work, and waits for running work. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/work_queue.h"

enum { QUEUED, BEGUN, CANCELLED };

typedef struct optimise_work {
  vyre_fence fence;
  vyre_pipeline *pipeline; /* borrowed; valid if this work has changed `step`
                              to BEGUN */
  atomic_uint step;
  pid_t process; /* the work ends with it: a forked child has no threads */
} optimise_work;

/* Claims work that no thread has begun. */
static bool claim(optimise_work *work, unsigned step) {
  unsigned queued = QUEUED;
  return atomic_compare_exchange_strong(&work->step, &queued, step);
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

static vyre_code run(vyre_fence *fence, vyre_status *st) {
  optimise_work *work = (optimise_work *)fence;
  if (!claim(work, BEGUN)) return VYRE_OK;
  if (atomic_load(&work->pipeline->device->state->is_closing)) return VYRE_OK;
  return optimise(work->pipeline, st);
}

static void cleanup(vyre_fence *fence) {
  (void)fence;
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
  work->process = getpid();
  fence->work = run;
  fence->cleanup = cleanup;
  if (vyre__queue_push(device, vyre__next_optimise_queue(device), fence,
                       NULL) == VYRE_OK) {
    pipeline->state->optimise = fence;
  } else {
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
  if (work && !claim(work, CANCELLED)) vyre__fence_await(&work->fence);
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
  if (!claim(work, CANCELLED)) vyre__fence_await(&work->fence);
  vyre_fence_release(&work->fence);
}
