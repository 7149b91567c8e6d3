/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles with a time limit. Neither a driver nor LLVM can be interrupted, so
 * the compile runs on a detached thread, and its caller stops waiting at the
 * limit. The thread keeps the device and the program alive, and ends by itself:
 * its pipeline goes to the table of the device, where a later compile finds it.
 * A later compile with a limit waits for it instead of starting a second one. */
#include <string.h>

#include "base/clock.h"
#include "base/print.h"
#include "base/status.h"
#include "base/thread.h"
#include "ir/ir.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"

typedef struct vyre__timed_compile {
  vyre_fence fence;
  struct vyre__timed_compile *next; /* list of the device, under its lock */
  vyre_device *device;
  vyre_program *program;
  vyre_pipeline *parent;        /* of a variant; NULL: compile the program */
  vyre_compile_options options; /* without a limit */
} timed_compile;

/* Runs on the thread of the compile. */
static vyre_code compile(vyre_fence *fence, vyre_status *st) {
  timed_compile *work = (timed_compile *)fence;
  if (work->parent) {
    return vyre_pipeline_add_variant(work->parent, &work->options,
                                     vyre__status_open(st));
  }
  return vyre_pipeline_compile(work->device, work->program, &work->options,
                               &fence->pipeline, NULL, vyre__status_open(st));
}

static void remove_from_list(timed_compile *work) {
  struct vyre__device_state *state = work->device->state;
  pthread_mutex_lock(&state->lock);
  timed_compile **at = &state->timed_compiles;
  while (*at && *at != work) at = &(*at)->next;
  if (*at) *at = work->next;
  pthread_mutex_unlock(&state->lock);
}

static void cleanup(vyre_fence *fence) {
  timed_compile *work = (timed_compile *)fence;
  remove_from_list(work);
  vyre_pipeline_release(work->parent);
  vyre_program_release(work->program);
  vyre_device_release(work->device);
}

static void on_free(vyre_fence *fence) {
  vyre_pipeline_release(fence->pipeline);
}

static void *run(void *self) {
  vyre__trace_name_thread("compile with a time limit");
  vyre__fence_run(self);
  return NULL;
}

static bool same_code(const vyre_compile_options *a,
                      const vyre_compile_options *b) {
  return memcmp(a->workgroup, b->workgroup, sizeof a->workgroup) == 0 &&
         a->ulp_budget == b->ulp_budget &&
         a->counts_iterations == b->counts_iterations &&
         a->ignores_tuning == b->ignores_tuning && a->tier == b->tier;
}

/* Returns an unfinished compile of the same code, retained, or NULL. */
static vyre_fence *find_unfinished(vyre_device *device,
                                   const vyre_program *program,
                                   const vyre_compile_options *options) {
  struct vyre__device_state *state = device->state;
  vyre_fence *found = NULL;
  pthread_mutex_lock(&state->lock);
  for (timed_compile *at = state->timed_compiles; at && !found; at = at->next) {
    bool is_same = at->program->fingerprint.low == program->fingerprint.low &&
                   at->program->fingerprint.high == program->fingerprint.high &&
                   same_code(&at->options, options);
    if (is_same && !vyre_fence_is_done(&at->fence))
      found = vyre_fence_retain(&at->fence);
  }
  pthread_mutex_unlock(&state->lock);
  return found;
}

static vyre_code begin(vyre_device *device, vyre_program *program,
                       vyre_pipeline *parent,
                       const vyre_compile_options *options, vyre_fence **out,
                       vyre_status *st) {
  vyre_fence *fence;
  VYRE_TRY(
      vyre__fence_make(device->context, sizeof(timed_compile), &fence, st));
  timed_compile *work = (timed_compile *)fence;
  work->options = *options;
  work->device = vyre_device_retain(device);
  work->program = vyre_program_retain(program);
  work->parent = vyre_pipeline_retain(parent);
  fence->work = compile;
  fence->cleanup = cleanup;
  fence->on_free = on_free;
  pthread_mutex_lock(&device->state->lock);
  work->next = device->state->timed_compiles;
  device->state->timed_compiles = work;
  pthread_mutex_unlock(&device->state->lock);
  int error = vyre__thread_start(NULL, run, fence);
  if (error == 0) {
    *out = fence;
    return VYRE_OK;
  }
  cleanup(fence);
  vyre__fence_discard(fence);
  return VYRE_FAIL_WITH(
      st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, "threads", NULL,
      "end other threads, or compile without timeout_ns",
      "cannot start a thread for a compile with a time limit: error %d", error);
}

static vyre_code timed_out(const vyre_device *device,
                           const vyre_program *program, uint64_t timeout_ns,
                           vyre_status *st) {
  char limit[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_TIMED_OUT, NULL,
      VYRE_NUMBERS({"timeout_ns", timeout_ns}),
      "compile again later, as the compile goes on in the background and its "
      "result is kept; or raise timeout_ns, or use another device",
      "device '%s' did not compile kernel '%.60s' within %s",
      vyre_device_name(device), program->name,
      vyre__duration(timeout_ns, limit));
}

vyre_code vyre__compile_within(vyre_device *device, vyre_program *program,
                               vyre_pipeline *parent,
                               const vyre_compile_options *options,
                               vyre_pipeline **out, vyre_status *st) {
  uint64_t timeout_ns = options->timeout_ns;
  uint64_t now = vyre__clock_ns();
  uint64_t end = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
  vyre_compile_options unlimited = *options;
  unlimited.timeout_ns = 0;
  vyre_fence *fence = find_unfinished(device, program, &unlimited);
  if (fence) {
    bool is_done = vyre__fence_await_until(fence, end);
    vyre_fence_release(fence);
    if (!is_done) return timed_out(device, program, timeout_ns, st);
  }
  VYRE_TRY(begin(device, program, parent, &unlimited, &fence, st));
  vyre_code code;
  if (!vyre__fence_await_until(fence, end)) {
    code = timed_out(device, program, timeout_ns, st);
  } else {
    code = fence->code;
    if (code != VYRE_OK && st) *st = fence->status;
    if (out) *out = vyre_fence_pipeline(fence);
  }
  vyre_fence_release(fence);
  return code;
}
