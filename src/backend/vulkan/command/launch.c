/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"

/* --- failures --------------------------------------------------------------------*/

/* The device has ended a loop by itself. */
VYRE__RARE
static vyre_code cut(const vk_pipeline *p, const vyre__launch *launch,
                     vyre_status *st) {
  const vk_device *device = (const vk_device *)p->base.device;
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL, NULL,
      VYRE_NUMBERS({"max_iterations", launch->max_loop_iterations},
                   {"most_iterations", device->most_rounds}),
      "run it on device 'cpu', or split the loop over several dispatches",
      "kernel '%.60s': device '%s' ends loops after %u iterations that it "
      "counts for invocations side by side, and one went past that",
      p->base.program->name, vyre_device_name(&device->base),
      device->most_rounds);
}

VYRE__RARE
static vyre_code wrong_length(const vk_pipeline *p, uint32_t buffer,
                              uint32_t length, vyre_status *st) {
  const vyre__plan_buffer *b = &p->plan.buffers[buffer];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"elements", length}, {"least_elements", b->min},
                   {"most_elements", b->max}),
      "bind as many elements as the kernel declares",
      "'%.60s' of kernel '%.60s' has %u elements, and not %u to %u",
      p->base.program->buffers[buffer].name, p->base.program->name, length,
      b->min, b->max);
}

VYRE__RARE
static vyre_code grid_too_large(const vk_pipeline *p, unsigned axis,
                                uint32_t groups, vyre_status *st) {
  uint32_t most = p->plan.max_groups[axis];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"most_workgroups", most}),
      "use a smaller grid",
      "kernel '%.60s': %u workgroups in %c, of which ids of 32 bits allow %u",
      p->base.program->name, groups, "xyz"[axis], most);
}

/* --- before it runs ----------------------------------------------------------------*/

vyre_code vk_check(const vk_pipeline *p, const vyre__launch *launch,
                   vyre_status *st) {
  const vk_plan *plan = &p->plan;
  for (unsigned axis = 0; axis < 3; axis++) {
    if (launch->grid[axis] > plan->max_groups[axis]) {
      return grid_too_large(p, axis, launch->grid[axis], st);
    }
  }
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__plan_buffer *b = &plan->buffers[i];
    if (!b->is_bound) continue;
    uint32_t length = launch->views[i].length;
    if (length < b->min || length > b->max) {
      return wrong_length(p, i, length, st);
    }
  }
  return VYRE_OK;
}

vyre_code vk_see_uniforms(const vk_pipeline *p, const vyre__launch *launch,
                          unsigned bits, bool residents, vyre__launch *seen,
                          vyre_status *st) {
  size_t count = p->base.program->buffer_count;
  vyre__view *views = NULL;
  vyre__launch out = *launch; /* it may be the same */
  for (uint32_t i = 0; i < count; i++) {
    const vyre__view *view = &launch->views[i];
    if (!(p->values[i] & bits) || (view->buffer && !residents)) continue;
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
    /* Where the kernel reads it from memory, it reads the same bytes. */
    views[i] = (vyre__view){.data = copy, .length = view->length};
  }
  *seen = out;
  return VYRE_OK;
}

/* --- how long it may take ------------------------------------------------------------*/

enum {
  FIRST_GROUPS = 256,   /* of a kernel of which nothing is known, at most: */
  UNKNOWN_NS = 2000000, /* what a workgroup of it may take */
  LEAST_GROUPS = 64,    /* else a machine that is busy makes parts of nothing */
  FAR_BEYOND = 8,       /* times what they may take: it is not the machine */
  WATCHED_NS = 5000000  /* between looks at the clock */
};

static uint64_t groups_of(const vyre__launch *launch) {
  return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

/* How often all workgroups run, up to one more than @p most; uniforms that grid loops
 * ask for are where the host sees them. */
static uint64_t runs_of(const vk_pipeline *p, const vyre__launch *launch,
                        uint64_t most) {
  uint64_t values[64], runs = 0;
  uint32_t phase;
  if (p->plan.step_count == 1) return 1;
  if (2 * (uint64_t)p->plan.loop_count + p->plan.host_count > 64) {
    return most + 1;
  }
  vyre__host_schedule walk =
      vyre__host_schedule_begin(&p->plan.base, launch, values);
  while (runs <= most && vyre__host_schedule_next(&walk, &phase)) runs++;
  return runs;
}

uint64_t vk_groups_of(const vk_pipeline *p, const vyre__launch *launch) {
  uint64_t groups = groups_of(launch), runs = runs_of(p, launch, VK_WINDOW);
  return runs > 0 && groups > UINT64_MAX / runs ? UINT64_MAX : groups * runs;
}

/* Workgroups that take about @p ns. */
static uint64_t groups_in(const vk_pipeline *p, uint64_t ns) {
  uint64_t ps = atomic_load_explicit(&p->group_ps, memory_order_relaxed);
  if (ps == 0) {
    uint64_t few = ns / UNKNOWN_NS;
    return few == 0 ? 1 : few < FIRST_GROUPS ? few : FIRST_GROUPS;
  }
  uint64_t groups = ns * 1000 / ps;
  if (groups > LEAST_GROUPS) return groups;
  if (groups < LEAST_GROUPS / FAR_BEYOND) return groups > 0 ? groups : 1;
  return LEAST_GROUPS;
}

/* What a submission costs by itself is in every measure, and weighs less the more
 * workgroups there were: the least is nearest. Only one that took far longer than it
 * was meant to says that the kernel became slower. */
static void learn(vk_pipeline *p, uint64_t groups, uint64_t ns,
                  uint64_t meant_ns) {
  uint64_t was = atomic_load_explicit(&p->group_ps, memory_order_relaxed);
  if (groups == 0) return;
  uint64_t ps = ns * 1000 / groups + 1;
  if (was != 0 && ps > 2 * was) ps = 2 * was; /* or it was only interrupted */
  if (was == 0 || ps < was || ns / 2 > meant_ns) {
    atomic_store_explicit(&p->group_ps, ps, memory_order_relaxed);
  }
}

void vk_learn(vk_pipeline *p, uint64_t groups, uint64_t ns) {
  learn(p, groups, ns, ((const vk_device *)p->base.device)->most_ns);
}

void vk_learn_first(vk_pipeline *p, uint64_t groups, uint64_t ns) {
  if (atomic_load_explicit(&p->group_ps, memory_order_relaxed) != 0) return;
  vk_learn(p, groups, ns);
}

bool vk_is_unknown(const vyre__launch *launch) {
  const vk_pipeline *p = (const vk_pipeline *)launch->pipeline;
  return atomic_load_explicit(&p->group_ps, memory_order_relaxed) == 0 &&
         vk_groups_of(p, launch) > 0;
}

uint64_t vk_expected_ns(const vk_pipeline *p, const vyre__launch *launch) {
  uint64_t ps = atomic_load_explicit(&p->group_ps, memory_order_relaxed);
  uint64_t groups = vk_groups_of(p, launch);
  if (ps == 0) ps = UINT64_C(1000) * UNKNOWN_NS;
  return groups > UINT64_MAX / ps ? UINT64_MAX / 1000 : groups * ps / 1000;
}

/* Walks grid loops to count. */
bool vk_is_whole(const vk_pipeline *p, const vyre__launch *launch) {
  const vk_device *device = (const vk_device *)p->base.device;
  if (launch->deadline_ns != 0 || launch->progress) return false;
  uint64_t most = p->plan.step_count == 1 ? VK_FEW_PARTS : VK_WINDOW;
  uint64_t parts = vk_tiles_count(
      launch->grid,
      device->physical->properties.limits.maxComputeWorkGroupCount);
  if (parts > most) return false;
  uint64_t runs = runs_of(p, launch, most / parts);
  return runs * parts <= most &&
         (runs == 0 ||
          groups_of(launch) <= groups_in(p, device->most_ns) / runs);
}

/* --- in one piece ----------------------------------------------------------------------*/

/* The end of a job that is over. */
vyre_code vk_job_finish(vk_job *job, vyre__launch *launch, vyre_status *st) {
  vyre__spirv_end end = vk_job_end(job);
  if (end == VYRE__SPIRV_OUT_OF_FUEL) {
    return vyre__out_of_fuel(&job->pipeline->base, launch, st);
  }
  if (end != VYRE__SPIRV_ENDED) return cut(job->pipeline, launch, st);
  VYRE_TRY(vk_job_collect(job, launch, st));
  if (job->flags & VK_JOB_TIMED) launch->device_ns = vk_job_time(job);
  return VYRE_OK;
}

static vyre_code run_whole(vk_pipeline *p, vyre__launch *launch,
                           vyre_status *st) {
  vk_device *device = (vk_device *)p->base.device;
  vk_job *job;
  unsigned flags = VK_JOB_ENDS;
  if (launch->is_timed && device->base.caps.has_device_time) {
    flags |= VK_JOB_TIMED;
  }
  VYRE_TRY(vk_job_take(p, launch, flags, &job, st));
  vyre_code code = vk_job_fill(job, launch, st);
  uint64_t start = vyre__clock_ns();
  if (code == VYRE_OK) {
    code = vk_submit(device, &job->commands, 1, &job->ticket, st);
  }
  if (code == VYRE_OK) code = vk_wait(device, &job->ticket, st);
  if (code != VYRE_OK) {
    vk_job_free(job);
    return code;
  }
  vk_learn(p, vk_groups_of(p, launch), vyre__clock_ns() - start);
  code = vk_job_finish(job, launch, st);
  vk_job_give(job);
  return code;
}

/* --- in parts --------------------------------------------------------------------------*/

typedef struct windows {
  vk_pipeline *pipeline;
  vyre__launch *launch;
  vk_job *job;
  vk_tiles tiles;
} windows;

static vyre_code run_window(windows *w, uint64_t ns, vyre_status *st) {
  vk_device *device = (vk_device *)w->pipeline->base.device;
  vk_job *job = w->job;
  uint64_t groups;
  VkPipeline bound = VK_NULL_HANDLE;
  VK_TRY(device, device->api.ResetCommandPool(device->handle, job->pool, 0),
         "vkResetCommandPool", st);
  VYRE_TRY(vk_commands_begin(device, job->commands, false, st));
  vk_job_put(job, w->launch, &w->tiles, groups_in(w->pipeline, ns),
             job->commands, &bound, &groups);
  VYRE_TRY(vk_commands_end(device, job->commands, true, st));
  uint64_t start = vyre__clock_ns();
  VYRE_TRY(vk_submit(device, &job->commands, 1, &job->ticket, st));
  VYRE_TRY(vk_wait(device, &job->ticket, st));
  learn(w->pipeline, groups, vyre__clock_ns() - start, ns);
  vyre__progress_add(w->launch, groups);
  w->launch->device_ns += vk_job_time(job);
  return VYRE_OK;
}

static vyre_code run_windows(windows *w, vyre_status *st) {
  const vk_device *device = (const vk_device *)w->pipeline->base.device;
  vyre__launch *launch = w->launch;
  uint64_t ns = device->most_ns;
  bool is_watched = launch->deadline_ns != 0 || launch->progress;
  if (is_watched && ns > WATCHED_NS) ns = WATCHED_NS;
  launch->device_ns = 0;
  do { /* one without a phase clears what is to be zero, too */
    VYRE_TRY(run_window(w, ns, st));
    if (vk_job_end(w->job) != VYRE__SPIRV_ENDED) break;
    if (launch->deadline_ns != 0 && vyre__clock_ns() > launch->deadline_ns) {
      launch->is_complete = w->tiles.is_over;
      return vyre__timed_out(&w->pipeline->base, launch, st);
    }
  } while (!w->tiles.is_over);
  return VYRE_OK;
}

static vyre_code run_parted(vk_pipeline *p, vyre__launch *launch,
                            vyre_status *st) {
  const vk_device *device = (const vk_device *)p->base.device;
  windows w = {.pipeline = p, .launch = launch};
  size_t room = 2 * (size_t)p->plan.loop_count + p->plan.host_count;
  unsigned flags = VK_JOB_ENDS | VK_JOB_PARTED;
  if (launch->is_timed && device->base.caps.has_device_time) {
    flags |= VK_JOB_TIMED;
  }
  uint64_t *values = vyre__arena_array(launch->scratch, room, sizeof *values);
  if (!values) return vyre__no_memory(st, "vulkan", "loops", room);
  VYRE_TRY(vk_job_take(p, launch, flags, &w.job, st));
  vyre_code code = vk_job_fill(w.job, launch, st);
  w.tiles = vk_tiles_begin(p, launch, values);
  if (launch->progress) {
    vyre__progress_begin(launch,
                         p->plan.step_count == 1 ? groups_of(launch) : 0);
  }
  if (code == VYRE_OK) code = run_windows(&w, st);
  uint64_t device_ns = launch->device_ns;
  if (code != VYRE_OK) {
    vk_job_free(w.job);
    return code;
  }
  code = vk_job_finish(w.job, launch, st);
  launch->device_ns = device_ns;
  vk_job_give(w.job);
  return code;
}

vyre_code vk_run(vyre_pipeline *pipeline, vyre__launch *launch,
                 vyre_status *st) {
  vk_pipeline *p = (vk_pipeline *)pipeline;
  vyre__launch seen;
  VYRE_TRY(vk_check(p, launch, st));
  seen = *launch;
  if (p->has_values) {
    VYRE_TRY(vk_see_uniforms(p, launch, VK_BY_VALUE, true, &seen, st));
  }
  vyre_code code = VYRE_OK;
  if (vk_is_whole(p, &seen)) {
    code = run_whole(p, &seen, st);
  } else {
    /* Each window fills launch blocks. */
    VYRE_TRY(vk_see_uniforms(p, &seen, VK_IN_BLOCK, false, &seen, st));
    code = run_parted(p, &seen, st);
  }
  launch->device_ns = seen.device_ns;
  launch->is_complete = seen.is_complete;
  return code;
}
