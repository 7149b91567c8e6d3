/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs single launches. A launch with few tiles and a short expected
 * duration is one submission. Others run in windows of tiles, so that
 * deadlines are checked and no watchdog ends a submission. The duration of
 * workgroups is measured to choose the size of windows. */
#include "backend/vulkan/command/launch.h"

#include <string.h>

#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/grid_tiles.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

/* --- failures ------------------------------------------------------------- */

/* Reports that the driver ended a loop by itself. */
VYRE__RARE
static vyre_code loop_was_cut(const vk_pipeline *p, const vyre__launch *launch,
                              vyre_status *st) {
  const vk_device *device = (const vk_device *)p->base.device;
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL, NULL,
      VYRE_NUMBERS({"max_iterations", launch->max_loop_iterations},
                   {"device_max_iterations", device->max_loop_iterations}),
      "run the kernel on device 'cpu', or split the loop over several "
      "dispatches",
      "kernel '%.60s': device '%s' ends a loop after %u iterations of a vector "
      "of invocations, and a loop exceeded that",
      p->base.program->name, vyre_device_name(&device->base),
      device->max_loop_iterations);
}

vyre_code vk_snapshot_uniforms(const vk_pipeline *p, const vyre__launch *launch,
                               unsigned uses, bool device_memory,
                               vyre__launch *snapshot, vyre_status *st) {
  size_t count = p->base.program->buffer_count;
  vyre__view *views = NULL;
  vyre__launch out = *launch; /* `snapshot` may be `launch` */
  for (uint32_t i = 0; i < count; i++) {
    const vyre__view *view = &launch->views[i];
    if (!(p->uniform_uses[i] & uses) || (view->buffer && !device_memory))
      continue;
    uint64_t size = (uint64_t)view->length * p->plan.buffers[i].unit;
    if (!views) {
      views = vyre__arena_array(launch->scratch, count, sizeof *views);
      if (!views) return vyre__no_memory(st, "vulkan", "buffers", count);
      memcpy(views, launch->views, count * sizeof *views);
      out.views = views;
    }
    unsigned char *copy = vyre_arena_alloc(launch->scratch, (size_t)size, 16);
    if (!copy) return vyre__no_memory(st, "vulkan", "bytes", size);
    if (view->data) {
      memcpy(copy, view->data, (size_t)size);
    } else {
      VYRE_TRY(vk_buffer_read(p->base.device, view->buffer, view->offset, copy,
                              (size_t)size, st));
    }
    /* Uses of the same uniform in memory read the copy, too. */
    views[i] = (vyre__view){.data = copy, .length = view->length};
  }
  *snapshot = out;
  return VYRE_OK;
}

/* --- duration ------------------------------------------------------------- */

enum {
  /* Max workgroups in the first window of an unmeasured kernel. */
  FIRST_GROUPS = 256,
  UNMEASURED_GROUP_NS = 2000000, /* assumed duration of one of its workgroups */
  /* Min workgroups of a window. On a busy machine measured times are too long,
   * and windows would become tiny. */
  MIN_GROUPS = 64,
  /* A kernel that is slower than MIN_GROUPS allows, by this factor, is really
   * slow: its windows may be smaller. */
  SLOW_FACTOR = 8,
  POLL_NS = 5000000 /* max time between two checks of the deadline */
};

static uint64_t grid_groups(const vyre__launch *launch) {
  return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

/* Returns how often the schedule runs the grid, at most @p max + 1. Uniforms
 * that grid loops read must be in host memory. */
static uint64_t schedule_runs(const vk_pipeline *p, const vyre__launch *launch,
                              uint64_t max) {
  uint64_t values[64], runs = 0;
  uint32_t phase;
  if (p->plan.step_count == 1) return 1;
  if (2 * (uint64_t)p->plan.loop_count + p->plan.host_count > 64) {
    return max + 1;
  }
  vyre__host_schedule schedule =
      vyre__host_schedule_begin(&p->plan.base, launch, values);
  while (runs <= max && vyre__host_schedule_next(&schedule, &phase)) runs++;
  return runs;
}

uint64_t vk_launch_groups(const vk_pipeline *p, const vyre__launch *launch) {
  uint64_t groups = grid_groups(launch),
           runs = schedule_runs(p, launch, VK_WINDOW_TILES);
  return runs > 0 && groups > UINT64_MAX / runs ? UINT64_MAX : groups * runs;
}

/* Returns the number of workgroups that take about @p ns. */
static uint64_t groups_within(const vk_pipeline *p, uint64_t ns) {
  uint64_t ps = atomic_load_explicit(&p->group_ps, memory_order_relaxed);
  if (ps == 0) {
    uint64_t estimate = ns / UNMEASURED_GROUP_NS;
    return estimate == 0             ? 1
           : estimate < FIRST_GROUPS ? estimate
                                     : FIRST_GROUPS;
  }
  uint64_t groups = ns * 1000 / ps;
  if (groups > MIN_GROUPS) return groups;
  if (groups < MIN_GROUPS / SLOW_FACTOR) return groups > 0 ? groups : 1;
  return MIN_GROUPS;
}

/* Updates the measured time of a workgroup. Each measurement includes the fixed
 * cost of a submission, which weighs less with more workgroups; so the minimum
 * is the best estimate. A larger value counts only if the submission took far
 * longer than its target. */
static void add_timing(vk_pipeline *p, uint64_t groups, uint64_t ns,
                       uint64_t target_ns) {
  uint64_t previous = atomic_load_explicit(&p->group_ps, memory_order_relaxed);
  if (groups == 0) return;
  uint64_t ps = ns * 1000 / groups + 1;
  /* Limits the effect of an interruption. */
  if (previous != 0 && ps > 2 * previous) ps = 2 * previous;
  if (previous == 0 || ps < previous || ns / 2 > target_ns) {
    atomic_store_explicit(&p->group_ps, ps, memory_order_relaxed);
  }
}

void vk_pipeline_add_timing(vk_pipeline *p, uint64_t groups, uint64_t ns) {
  add_timing(p, groups, ns, ((const vk_device *)p->base.device)->max_submit_ns);
}

void vk_pipeline_add_first_timing(vk_pipeline *p, uint64_t groups,
                                  uint64_t ns) {
  if (atomic_load_explicit(&p->group_ps, memory_order_relaxed) != 0) return;
  vk_pipeline_add_timing(p, groups, ns);
}

bool vk_launch_is_unmeasured(const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  return atomic_load_explicit(&p->group_ps, memory_order_relaxed) == 0 &&
         vk_launch_groups(p, launch) > 0;
}

uint64_t vk_launch_expected_ns(const vk_pipeline *p,
                               const vyre__launch *launch) {
  uint64_t ps = atomic_load_explicit(&p->group_ps, memory_order_relaxed);
  uint64_t groups = vk_launch_groups(p, launch);
  if (ps == 0) ps = UINT64_C(1000) * UNMEASURED_GROUP_NS;
  return groups > UINT64_MAX / ps ? UINT64_MAX / 1000 : groups * ps / 1000;
}

/* Steps through grid loops to count runs. */
bool vk_launch_fits_submission(const vk_pipeline *p,
                               const vyre__launch *launch) {
  const vk_device *device = (const vk_device *)p->base.device;
  if (launch->deadline_ns != 0 || launch->progress) return false;
  uint64_t max = p->plan.step_count == 1 ? VK_FEW_TILES : VK_WINDOW_TILES;
  uint64_t tiles = vk_tile_count(
      launch->grid,
      device->physical->properties.limits.maxComputeWorkGroupCount);
  if (tiles > max) return false;
  uint64_t runs = schedule_runs(p, launch, max / tiles);
  return runs * tiles <= max &&
         (runs == 0 || grid_groups(launch) <=
                           groups_within(p, device->max_submit_ns) / runs);
}

/* --- one submission ------------------------------------------------------- */

vyre_code vk_dispatch_complete(vk_dispatch *dispatch, vyre__launch *launch,
                               vyre_status *st) {
  vyre__spirv_end end = vk_dispatch_end_status(dispatch);
  if (end == VYRE__SPIRV_OUT_OF_FUEL) {
    return vyre__out_of_fuel(&dispatch->pipeline->base, launch, st);
  }
  if (end != VYRE__SPIRV_ENDED)
    return loop_was_cut(dispatch->pipeline, launch, st);
  VYRE_TRY(vk_dispatch_read_outputs(dispatch, launch, st));
  if (dispatch->flags & VK_DISPATCH_TIMED)
    launch->device_ns = vk_dispatch_device_ns(dispatch);
  return VYRE_OK;
}

static vyre_code run_once(vk_pipeline *p, vyre__launch *launch,
                          vyre_status *st) {
  vk_device *device = (vk_device *)p->base.device;
  vk_dispatch *dispatch;
  unsigned flags = VK_DISPATCH_END_BARRIER;
  if (launch->is_timed && device->base.caps.has_device_time) {
    flags |= VK_DISPATCH_TIMED;
  }
  VYRE_TRY(vk_dispatch_acquire(p, launch, flags, &dispatch, st));
  vyre_code code = vk_dispatch_write_inputs(dispatch, launch, st);
  uint64_t start = vyre__clock_ns();
  if (code == VYRE_OK) {
    code = vk_submit(device, &dispatch->commands, 1, &dispatch->submission, st);
  }
  if (code == VYRE_OK) code = vk_wait(device, &dispatch->submission, st);
  if (code != VYRE_OK) {
    vk_dispatch_free(dispatch);
    return code;
  }
  vk_pipeline_add_timing(p, vk_launch_groups(p, launch),
                         vyre__clock_ns() - start);
  code = vk_dispatch_complete(dispatch, launch, st);
  vk_dispatch_release(dispatch);
  return code;
}

/* --- windows -------------------------------------------------------------- */

typedef struct windowed_run {
  vk_pipeline *pipeline;
  vyre__launch *launch;
  vk_dispatch *dispatch;
  vk_tile_walk walk;
  uint32_t *spill; /* copy of the flags in the spill buffer; NULL: not read */
  uint64_t invocations;
} windowed_run;

static vyre_code run_window(windowed_run *w, uint64_t ns, vyre_status *st) {
  vk_device *device = (vk_device *)w->pipeline->base.device;
  vk_dispatch *dispatch = w->dispatch;
  uint64_t groups;
  VkPipeline bound = VK_NULL_HANDLE;
  VK_TRY(device,
         device->api.ResetCommandPool(device->handle, dispatch->pool, 0),
         "vkResetCommandPool", st);
  VYRE_TRY(vk_command_buffer_begin(device, dispatch->commands, st));
  vk_dispatch_record_window(dispatch, w->launch, &w->walk,
                            groups_within(w->pipeline, ns), dispatch->commands,
                            &bound, &groups);
  VYRE_TRY(vk_command_buffer_end(device, dispatch->commands, true, st));
  uint64_t start = vyre__clock_ns();
  VYRE_TRY(
      vk_submit(device, &dispatch->commands, 1, &dispatch->submission, st));
  VYRE_TRY(vk_wait(device, &dispatch->submission, st));
  add_timing(w->pipeline, groups, vyre__clock_ns() - start, ns);
  vyre__progress_add(w->launch, groups);
  w->launch->device_ns += vk_dispatch_device_ns(dispatch);
  return VYRE_OK;
}

/* Allocates memory for the flags that end grid loops early, if there are any.
 * Without memory they run to their end. */
static void allocate_flags(windowed_run *w) {
  const vyre__host_plan *plan = &w->pipeline->plan.base;
  const uint32_t *group = plan->workgroup;
  bool has_flags = false;
  for (uint32_t word = 0; word < plan->spill_words; word++)
    has_flags |= vyre__host_plan_is_flag(plan, word);
  if (!has_flags || plan->loop_count == 0) return;
  w->invocations = grid_groups(w->launch) * group[0] * group[1] * group[2];
  w->spill = vyre__arena_array(w->launch->scratch, plan->spill_words,
                               (size_t)w->invocations * sizeof *w->spill);
}

/* Ends grid loops that all invocations have left. */
static vyre_code leave_loops(windowed_run *w, vyre_status *st) {
  const vyre__host_plan *plan = &w->pipeline->plan.base;
  uint64_t size = w->invocations * sizeof *w->spill;
  if (!w->spill || w->walk.is_done || !vk_tile_walk_is_between_phases(&w->walk))
    return VYRE_OK;
  for (uint32_t word = 0; word < plan->spill_words; word++) {
    if (!vyre__host_plan_is_flag(plan, word)) continue;
    VYRE_TRY(vk_dispatch_download(w->dispatch,
                                  w->dispatch->spill_at + word * size,
                                  w->spill + word * w->invocations, size, st));
  }
  w->walk.schedule.spill = w->spill;
  w->walk.schedule.invocations = w->invocations;
  vk_tile_walk_leave_loops(&w->walk);
  w->walk.schedule.spill = NULL; /* the flags will change */
  return VYRE_OK;
}

static vyre_code run_all_windows(windowed_run *w, vyre_status *st) {
  const vk_device *device = (const vk_device *)w->pipeline->base.device;
  vyre__launch *launch = w->launch;
  uint64_t ns = device->max_submit_ns;
  bool is_polled = launch->deadline_ns != 0 || launch->progress;
  if (is_polled && ns > POLL_NS) ns = POLL_NS;
  launch->device_ns = 0;
  /* The window in which the walk ends returns the outputs: the first one
   * without phases, and one without tiles after loops that end early. */
  for (bool is_last = false; !is_last;) {
    VYRE_TRY(run_window(w, ns, st));
    is_last = w->walk.is_done;
    if (vk_dispatch_end_status(w->dispatch) != VYRE__SPIRV_ENDED) break;
    if (launch->deadline_ns != 0 && vyre__clock_ns() > launch->deadline_ns) {
      launch->is_complete = w->walk.is_done;
      return vyre__timed_out(&w->pipeline->base, launch, st);
    }
    VYRE_TRY(leave_loops(w, st));
  }
  return VYRE_OK;
}

static vyre_code run_windowed(vk_pipeline *p, vyre__launch *launch,
                              vyre_status *st) {
  const vk_device *device = (const vk_device *)p->base.device;
  windowed_run w = {.pipeline = p, .launch = launch};
  size_t count = 2 * (size_t)p->plan.loop_count + p->plan.host_count;
  unsigned flags = VK_DISPATCH_END_BARRIER | VK_DISPATCH_WINDOWED;
  if (launch->is_timed && device->base.caps.has_device_time) {
    flags |= VK_DISPATCH_TIMED;
  }
  uint64_t *values = vyre__arena_array(launch->scratch, count, sizeof *values);
  if (!values) return vyre__no_memory(st, "vulkan", "loops", count);
  VYRE_TRY(vk_dispatch_acquire(p, launch, flags, &w.dispatch, st));
  vyre_code code = vk_dispatch_write_inputs(w.dispatch, launch, st);
  w.walk = vk_tile_walk_begin(p, launch, values);
  allocate_flags(&w);
  if (launch->progress) {
    vyre__progress_begin(launch,
                         p->plan.step_count == 1 ? grid_groups(launch) : 0);
  }
  if (code == VYRE_OK) code = run_all_windows(&w, st);
  uint64_t device_ns = launch->device_ns;
  if (code != VYRE_OK) {
    vk_dispatch_free(w.dispatch);
    return code;
  }
  code = vk_dispatch_complete(w.dispatch, launch, st);
  launch->device_ns = device_ns;
  vk_dispatch_release(w.dispatch);
  return code;
}

vyre_code vk_launch_run(vyre_pipeline *pipeline, vyre__launch *launch,
                        vyre_status *st) {
  vk_pipeline *p = (vk_pipeline *)pipeline;
  vyre__launch snapshot;
  if (launch->deadline_ns != 0 &&
      !vk_wait_for_warm_ups((const vk_device *)pipeline->device,
                            launch->deadline_ns)) {
    return vyre__timed_out(pipeline, launch, st);
  }
  snapshot = *launch;
  if (p->has_encoded_uniforms) {
    VYRE_TRY(vk_snapshot_uniforms(p, launch, VK_UNIFORM_ENCODED, true,
                                  &snapshot, st));
  }
  vyre_code code = VYRE_OK;
  if (vk_launch_fits_submission(p, &snapshot)) {
    code = run_once(p, &snapshot, st);
  } else {
    /* Each window writes launch blocks, from the same bytes. */
    VYRE_TRY(vk_snapshot_uniforms(p, &snapshot, VK_UNIFORM_IN_BLOCK, false,
                                  &snapshot, st));
    code = run_windowed(p, &snapshot, st);
  }
  launch->device_ns = snapshot.device_ns;
  launch->is_complete = snapshot.is_complete;
  return code;
}
