/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a batch: launches as dispatches of one submission, with barriers between
 * those that share device buffers. A launch that reads host bytes written by an
 * earlier one starts a new submission.
 *
 * Dispatches are secondary command buffers, which stay recorded, and one
 * primary calls them. Drivers need three times as long for a submission of many
 * primaries. */
#include "backend/vulkan/command/batch.h"

#include "backend/vulkan/command/batch_cache.h"
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/hazards.h"
#include "backend/vulkan/command/launch.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/pipeline.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/command_list.h"

typedef struct batch {
  vk_device *device;
  vk_dispatch **dispatches;
  vyre__launch **launches;
  VkCommandBuffer *commands; /* of the dispatches; NULL stands for a barrier */
  uint32_t count, command_count;
  uint64_t groups, bytes; /* workgroups, and bytes of memory */
  bool is_mixed;          /* they belong to several pipelines */
  vk_hazards hazards;
} batch;

enum {
  MAX_BYTES = 256 << 20
}; /* limit on memory of dispatches in a submission */

/* --- primary command buffers ---------------------------------------------- */

static void free_primary(vk_device *device, vk_primary *primary) {
  vk_submission_deinit(device, &primary->submission);
  device->api.DestroyCommandPool(device->handle, primary->pool, NULL);
  vyre__resize(device->base.allocator, primary, sizeof *primary, 0);
}

void vk_primaries_deinit(vk_device *device) {
  while (device->primaries) {
    vk_primary *primary = device->primaries;
    device->primaries = primary->next;
    free_primary(device, primary);
  }
}

static VkResult fill_primary(vk_device *device, vk_primary *primary) {
  const vk_api *api = &device->api;
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
      .queueFamilyIndex = device->family};
  VkResult result =
      api->CreateCommandPool(device->handle, &pool, NULL, &primary->pool);
  if (result != VK_SUCCESS) {
    primary->pool = VK_NULL_HANDLE;
    return result;
  }
  const VkCommandBufferAllocateInfo commands = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = primary->pool,
      .commandBufferCount = 1};
  return api->AllocateCommandBuffers(device->handle, &commands,
                                     &primary->commands);
}

static vyre_code acquire_primary(vk_device *device, vk_primary **out,
                                 vyre_status *st) {
  pthread_mutex_lock(&device->primary_lock);
  vk_primary *primary = device->primaries;
  if (primary) device->primaries = primary->next;
  pthread_mutex_unlock(&device->primary_lock);
  VkResult result;
  if (primary) {
    result = device->api.ResetCommandPool(device->handle, primary->pool, 0);
  } else {
    primary = vyre__resize(device->base.allocator, NULL, 0, sizeof *primary);
    if (!primary) return vyre__no_memory(st, "vulkan", "command buffers", 1);
    *primary = (vk_primary){0};
    result = fill_primary(device, primary);
  }
  *out = primary;
  if (result == VK_SUCCESS) return VYRE_OK;
  free_primary(device, primary);
  return vk_failed(device, result, "command buffer creation", st);
}

static void release_primary(vk_device *device, vk_primary *primary) {
  pthread_mutex_lock(&device->primary_lock);
  primary->next = device->primaries;
  device->primaries = primary;
  pthread_mutex_unlock(&device->primary_lock);
}

/* --- one submission ------------------------------------------------------- */

/* Adds a dispatch. @p snapshot: the launch with private copies of its
 * uniforms. */
static vyre_code add_dispatch(batch *b, vyre__launch *launch,
                              const vyre__launch *snapshot, vyre_status *st) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  vk_dispatch *dispatch;
  VYRE_TRY(
      vk_dispatch_acquire(p, snapshot, VK_DISPATCH_SECONDARY, &dispatch, st));
  vyre_code code = vk_dispatch_write_inputs(dispatch, snapshot, st);
  if (code != VYRE_OK) {
    vk_dispatch_release(dispatch);
    return code;
  }
  const vyre__command_list_item item = {.launch = launch};
  if (vk_hazards_need_barrier(&b->hazards, &item)) {
    b->commands[b->command_count++] = NULL;
    vk_hazards_add_barrier(&b->hazards);
    atomic_fetch_add_explicit(&b->device->counters.barriers, 1,
                              memory_order_relaxed);
  }
  vk_hazards_add(&b->hazards, &item);
  b->commands[b->command_count++] = dispatch->commands;
  b->groups += vk_launch_groups(p, snapshot);
  b->is_mixed =
      b->count > 0 && (b->is_mixed || b->dispatches[0]->pipeline != p);
  b->bytes += dispatch->memory.size;
  b->launches[b->count] = launch;
  b->dispatches[b->count++] = dispatch;
  return VYRE_OK;
}

/* Records calls of all dispatches, and the barriers between them. */
static vyre_code record_calls(const batch *b, VkCommandBuffer commands,
                              vyre_status *st) {
  vk_device *device = b->device;
  VYRE_TRY(vk_command_buffer_begin(device, commands, false, st));
  for (uint32_t i = 0; i < b->command_count;) {
    uint32_t end = i;
    while (end < b->command_count && b->commands[end]) end++;
    if (end > i) {
      device->api.CmdExecuteCommands(commands, end - i, b->commands + i);
    }
    if (end < b->command_count) vk_cmd_barrier(device, commands);
    i = end + 1;
  }
  return vk_command_buffer_end(device, commands, true, st);
}

static vyre_code submit(const batch *b, bool *is_idle, vyre_status *st) {
  vk_device *device = b->device;
  vk_primary *primary;
  *is_idle = true; /* nothing is in flight before the submission */
  VYRE_TRY(acquire_primary(device, &primary, st));
  vyre_code code = record_calls(b, primary->commands, st);
  if (code == VYRE_OK) {
    code = vk_submit(device, &primary->commands, 1, &primary->submission, st);
  }
  if (code == VYRE_OK) {
    code = vk_wait(device, &primary->submission, st);
    *is_idle = code == VYRE_OK;
  }
  if (code == VYRE_OK) {
    release_primary(device, primary);
  } else {
    free_primary(device, primary);
  }
  return code;
}

/* Updates the measured times. If there are several pipelines, each gets the
 * mean time of a workgroup. */
static void add_timings(const batch *b, uint64_t ns) {
  if (!b->is_mixed)
    vk_pipeline_add_timing(b->dispatches[0]->pipeline, b->groups, ns);
  for (uint32_t i = 0; b->is_mixed && i < b->count; i++) {
    vk_pipeline_add_first_timing(b->dispatches[i]->pipeline, b->groups, ns);
  }
}

/* Submits the dispatches and completes them. Adds the successful ones to
 * *done. */
static vyre_code flush(batch *b, size_t *done, vyre_status *st) {
  bool is_idle;
  if (b->count == 0) return VYRE_OK;
  uint64_t start = vyre__clock_ns();
  vyre_code code = submit(b, &is_idle, st);
  if (code == VYRE_OK) add_timings(b, vyre__clock_ns() - start);
  for (uint32_t i = 0; i < b->count; i++) {
    if (code == VYRE_OK) {
      code = vk_dispatch_complete(b->dispatches[i], b->launches[i], st);
      *done += code == VYRE_OK;
    }
    if (is_idle) {
      vk_dispatch_release(b->dispatches[i]);
    } else {
      vk_dispatch_free(b->dispatches[i]);
    }
  }
  b->count = b->command_count = 0;
  b->groups = b->bytes = 0;
  vk_hazards_reset(&b->hazards);
  return code;
}

/* --- the batch ------------------------------------------------------------ */

static bool alloc_batch(batch *b, const vyre__launch *first) {
  size_t count = 0, views = 0;
  const vyre__launch *l = first;
  do { /* a batch is never empty */
    count++;
    views += ((const vk_pipeline *)l->pipeline)->plan.buffer_count;
    l = l->next;
  } while (l);
  vyre_arena *scratch = first->scratch;
  b->dispatches = vyre__arena_array(scratch, count, sizeof *b->dispatches);
  b->launches = vyre__arena_array(scratch, count, sizeof *b->launches);
  b->commands =
      vyre__arena_array(scratch, 2 * count + 1, sizeof(VkCommandBuffer));
  return b->dispatches && b->launches && b->commands &&
         vk_hazards_init(&b->hazards, views, scratch);
}

static vyre_code run_alone(vyre__launch *launch, size_t *done,
                           vyre_status *st) {
  vyre_code code = vk_launch_run(launch->pipeline, launch, st);
  *done += code == VYRE_OK;
  return code;
}

/* Adds a launch to the open submission. If it cannot join, flushes that
 * submission first, and runs a launch that needs windows on its own. */
static vyre_code add_launch(batch *b, vyre__launch *l, size_t *done,
                            vyre_status *st) {
  const vyre__command_list_item item = {.launch = l};
  if (b->count > 0 && (!vk_launch_is_encodable(l) || b->bytes > MAX_BYTES ||
                       !vk_hazards_can_join(&b->hazards, &item, false))) {
    VYRE_TRY(flush(b, done, st));
  }
  /* The launches before may have written its uniforms. */
  const vk_pipeline *p = (const vk_pipeline *)l->pipeline;
  vyre__launch snapshot = *l;
  vyre_status inner = {0};
  vyre_code code = vk_launch_check(p, l, &inner);
  if (code == VYRE_OK && p->has_encoded_uniforms) {
    code = vk_snapshot_uniforms(p, l, VK_UNIFORM_ENCODED, false, &snapshot,
                                &inner);
  }
  if (code == VYRE_OK && !vk_launch_is_encodable(&snapshot)) {
    VYRE_TRY(flush(b, done, st));
    return run_alone(l, done, st);
  }
  if (code == VYRE_OK) code = add_dispatch(b, l, &snapshot, &inner);
  if (code == VYRE_OK) return VYRE_OK;
  bool had_others = b->count > 0;
  VYRE_TRY(flush(b, done, st)); /* the launches before it still run */
  /* Retry: their memory is free now. */
  if (had_others) return run_alone(l, done, st);
  if (st) *st = inner;
  return code;
}

vyre_code vk_batch_run(vyre_device *device, vyre__launch *first, size_t *done,
                       vyre_status *st) {
  batch b = {.device = (vk_device *)device};
  bool is_cached;
  *done = 0;
  vyre_code code = vk_batch_cache_run(b.device, first, &is_cached, done, st);
  if (is_cached) return code;
  if (!alloc_batch(&b, first)) {
    return vyre__no_memory(st, "vulkan", "launches", 1);
  }
  for (vyre__launch *l = first; l && code == VYRE_OK; l = l->next) {
    code = add_launch(&b, l, done, st);
  }
  return code == VYRE_OK ? flush(&b, done, st) : code;
}
