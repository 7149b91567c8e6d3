/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles the phase of a kernel that counts loop iterations. A launch with a
 * deadline has it compiled on a detached thread, because a driver cannot be
 * interrupted, and stops waiting at the deadline. The thread retains the
 * pipeline, which keeps the phase for later launches. */
#include <time.h>

#include "vyre/pipeline.h"

#include "backend/vulkan/device/compile_guard.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/pipeline.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "hal/host_plan.h"

void vk_counted_phase_init(vk_counted_phase *counted) {
  pthread_mutex_init(&counted->lock, NULL);
  vyre__condition_init(&counted->ended);
}

void vk_counted_phase_deinit(vk_pipeline *own) {
  const vk_device *device = (const vk_device *)own->base.device;
  device->api.DestroyPipeline(device->handle, own->counted.phase, NULL);
  pthread_mutex_destroy(&own->counted.lock);
  pthread_cond_destroy(&own->counted.ended);
}

static vyre_code create(vk_pipeline *own, VkPipeline *out, vyre_status *st) {
  const vk_device *device = (const vk_device *)own->base.device;
  const vk_api *api = &device->api;
  VkShaderModule module = VK_NULL_HANDLE;
  VkPipeline phase = VK_NULL_HANDLE;
  VkResult result = vk_module_create(own, &module);
  if (result == VK_SUCCESS) {
    result = vk_phase_create(own, 0, true, module, VK_NULL_HANDLE, &phase);
    api->DestroyShaderModule(device->handle, module, NULL);
  }
  vyre_code code =
      result == VK_SUCCESS ? VYRE_OK : vk_compile_failed(own, result, st);
  if (code == VYRE_OK && device->physical->is_software) {
    code = vk_warm_up(own, &phase, 1, st);
  }
  if (code != VYRE_OK) {
    api->DestroyPipeline(device->handle, phase, NULL);
    phase = VK_NULL_HANDLE;
  }
  *out = phase;
  return code;
}

/* Compiles the phase; is_compiling is set. */
static void compile(vk_pipeline *own) {
  vyre_status st = {0};
  VkPipeline phase = VK_NULL_HANDLE;
  vyre_code code = vk_compile_enter(&st);
  if (code == VYRE_OK) {
    code = create(own, &phase, &st);
    vk_compile_leave();
  }
  vk_counted_phase *counted = &own->counted;
  pthread_mutex_lock(&counted->lock);
  counted->phase = phase;
  counted->is_compiling = false;
  if (code != VYRE_OK) {
    counted->failures++;
    counted->status = st;
  }
  pthread_cond_broadcast(&counted->ended);
  pthread_mutex_unlock(&counted->lock);
}

static void *compile_detached(void *self) {
  vk_pipeline *own = self;
  compile(own);
  vyre_pipeline_release(&own->base);
  return NULL;
}

/* Begins a compile, under the lock. With @p in_background it is not done when
 * this returns. */
static vyre_code begin(vk_pipeline *own, bool in_background, vyre_status *st) {
  vk_counted_phase *counted = &own->counted;
  counted->is_compiling = true;
  if (!in_background) {
    pthread_mutex_unlock(&counted->lock);
    compile(own);
    pthread_mutex_lock(&counted->lock);
    return VYRE_OK;
  }
  int error = vyre__thread_start(NULL, compile_detached,
                                 vyre_pipeline_retain(&own->base));
  if (error == 0) return VYRE_OK;
  counted->is_compiling = false;
  vyre_pipeline_release(&own->base); /* the caller has a reference, too */
  return VYRE_FAIL_WITH(
      st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, "threads", NULL,
      "end other threads, or dispatch without a timeout",
      "cannot start a thread to compile code that counts loop iterations: "
      "error %d",
      error);
}

/* Waits for the compile, under the lock. Returns false at the deadline. */
static bool wait(vk_counted_phase *counted, uint64_t deadline_ns) {
  if (deadline_ns == 0) {
    return pthread_cond_wait(&counted->ended, &counted->lock) == 0;
  }
  const struct timespec end = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                               .tv_nsec = (long)(deadline_ns % 1000000000u)};
  return pthread_cond_timedwait(&counted->ended, &counted->lock, &end) == 0;
}

/* Waits for a phase that exists or is compiling, or compiles one. */
static vyre_code find(vk_pipeline *own, const vyre__launch *launch,
                      vyre_status *st) {
  vk_counted_phase *counted = &own->counted;
  uint64_t failures = counted->failures;
  while (!counted->phase) {
    if (counted->failures != failures) {
      if (st) *st = counted->status;
      return counted->status.code;
    }
    if (!counted->is_compiling) {
      VYRE_TRY(begin(own, launch->deadline_ns != 0, st));
    } else if (!wait(counted, launch->deadline_ns) && counted->is_compiling) {
      return vyre__timed_out(&own->base, launch, st);
    }
  }
  return VYRE_OK;
}

vyre_code vk_pipeline_phases(vk_pipeline *own, bool counts_iterations,
                             const vyre__launch *launch, const VkPipeline **out,
                             vyre_status *st) {
  *out = own->phases;
  if (!counts_iterations || !own->plan.may_skip_fuel) return VYRE_OK;
  pthread_mutex_lock(&own->counted.lock);
  vyre_code code = find(own, launch, st);
  pthread_mutex_unlock(&own->counted.lock);
  *out = &own->counted.phase;
  return code;
}
