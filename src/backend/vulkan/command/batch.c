/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Launches that follow each other, as jobs of one submission. One that needs what
 * another wrote to resident memory has a barrier before it; what it needs of bytes of
 * the host has to be there first, so that a submission ends before it.
 *
 * Jobs are secondary command buffers, which stay recorded, and one primary calls them:
 * a submission of many primaries costs drivers three times as much for each. */
#include "backend/vulkan/vulkan.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/command_list.h"

typedef struct batch {
  vk_device *device;
  vk_job **jobs;
  vyre__launch **launches;
  VkCommandBuffer *commands; /* of the jobs; NULL before one: a barrier */
  uint32_t count, command_count;
  uint64_t groups, bytes; /* that they have */
  bool is_mixed;          /* they are of more than one pipeline */
  vk_hazards hazards;
} batch;

enum { MOST_BYTES = 256 << 20 }; /* of memory of jobs that wait for others */

/* --- primaries -------------------------------------------------------------------*/

static void free_primary(vk_device *device, vk_primary *primary) {
  vk_ticket_finish(device, &primary->ticket);
  device->api.DestroyCommandPool(device->handle, primary->pool, NULL);
  vyre__resize(device->base.allocator, primary, sizeof *primary, 0);
}

void vk_primaries_finish(vk_device *device) {
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

static vyre_code take_primary(vk_device *device, vk_primary **out,
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
  return vk_failed(device, result, "a command buffer", st);
}

static void give_primary(vk_device *device, vk_primary *primary) {
  pthread_mutex_lock(&device->primary_lock);
  primary->next = device->primaries;
  device->primaries = primary;
  pthread_mutex_unlock(&device->primary_lock);
}

/* --- one submission --------------------------------------------------------------*/

/* @p seen: the launch with uniforms that do not change. */
static vyre_code join(batch *b, vyre__launch *launch, const vyre__launch *seen,
                      vyre_status *st) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  vk_job *job;
  VYRE_TRY(vk_job_take(p, seen, VK_JOB_SECOND, &job, st));
  vyre_code code = vk_job_fill(job, seen, st);
  if (code != VYRE_OK) {
    vk_job_give(job);
    return code;
  }
  const vyre__command_list_item item = {.launch = launch};
  if (vk_hazards_meet(&b->hazards, &item)) {
    b->commands[b->command_count++] = NULL;
    vk_hazards_pass(&b->hazards);
    atomic_fetch_add_explicit(&b->device->counts.barriers, 1,
                              memory_order_relaxed);
  }
  vk_hazards_note(&b->hazards, &item);
  b->commands[b->command_count++] = job->commands;
  b->groups += vk_groups_of(p, seen);
  b->is_mixed = b->count > 0 && (b->is_mixed || b->jobs[0]->pipeline != p);
  b->bytes += job->memory.size;
  b->launches[b->count] = launch;
  b->jobs[b->count++] = job;
  return VYRE_OK;
}

/* Calls what was gathered, with barriers where they go. */
static vyre_code record(const batch *b, VkCommandBuffer commands,
                        vyre_status *st) {
  vk_device *device = b->device;
  VYRE_TRY(vk_commands_begin(device, commands, false, st));
  for (uint32_t i = 0; i < b->command_count;) {
    uint32_t end = i;
    while (end < b->command_count && b->commands[end]) end++;
    if (end > i) {
      device->api.CmdExecuteCommands(commands, end - i, b->commands + i);
    }
    if (end < b->command_count) vk_cmd_barrier(device, commands);
    i = end + 1;
  }
  return vk_commands_end(device, commands, true, st);
}

static vyre_code submit(const batch *b, bool *is_over, vyre_status *st) {
  vk_device *device = b->device;
  vk_primary *primary;
  *is_over = true; /* what was not submitted is */
  VYRE_TRY(take_primary(device, &primary, st));
  vyre_code code = record(b, primary->commands, st);
  if (code == VYRE_OK) {
    code = vk_submit(device, &primary->commands, 1, &primary->ticket, st);
  }
  if (code == VYRE_OK) {
    code = vk_wait(device, &primary->ticket, st);
    *is_over = code == VYRE_OK;
  }
  if (code == VYRE_OK) {
    give_primary(device, primary);
  } else {
    free_primary(device, primary);
  }
  return code;
}

/* What they took; of several pipelines, each the same for a workgroup. */
static void learn(const batch *b, uint64_t ns) {
  if (!b->is_mixed) vk_learn(b->jobs[0]->pipeline, b->groups, ns);
  for (uint32_t i = 0; b->is_mixed && i < b->count; i++) {
    vk_learn_first(b->jobs[i]->pipeline, b->groups, ns);
  }
}

/* Runs what was gathered. *done: how many of all ended well. */
static vyre_code flush(batch *b, size_t *done, vyre_status *st) {
  bool is_over;
  if (b->count == 0) return VYRE_OK;
  uint64_t start = vyre__clock_ns();
  vyre_code code = submit(b, &is_over, st);
  if (code == VYRE_OK) learn(b, vyre__clock_ns() - start);
  for (uint32_t i = 0; i < b->count; i++) {
    if (code == VYRE_OK) {
      code = vk_job_finish(b->jobs[i], b->launches[i], st);
      *done += code == VYRE_OK;
    }
    if (is_over) {
      vk_job_give(b->jobs[i]);
    } else {
      vk_job_free(b->jobs[i]);
    }
  }
  b->count = b->command_count = 0;
  b->groups = b->bytes = 0;
  vk_hazards_reset(&b->hazards);
  return code;
}

/* --- all of them -----------------------------------------------------------------*/

static bool make_room(batch *b, const vyre__launch *first) {
  size_t count = 0, views = 0;
  const vyre__launch *l = first;
  do { /* there is one at least */
    count++;
    views += ((const vk_pipeline *)l->pipeline)->plan.buffer_count;
    l = l->next;
  } while (l);
  vyre_arena *scratch = first->scratch;
  b->jobs = vyre__arena_array(scratch, count, sizeof *b->jobs);
  b->launches = vyre__arena_array(scratch, count, sizeof *b->launches);
  b->commands =
      vyre__arena_array(scratch, 2 * count + 1, sizeof(VkCommandBuffer));
  return b->jobs && b->launches && b->commands &&
         vk_hazards_init(&b->hazards, views, scratch);
}

static vyre_code run_alone(vyre__launch *launch, size_t *done,
                           vyre_status *st) {
  vyre_code code = vk_run(launch->pipeline, launch, st);
  *done += code == VYRE_OK;
  return code;
}

/* One more: to those that are gathered, or, when they are over, by itself. */
static vyre_code add(batch *b, vyre__launch *l, size_t *done, vyre_status *st) {
  const vyre__command_list_item item = {.launch = l};
  if (b->count > 0 && (!vk_is_simple(l) || b->bytes > MOST_BYTES ||
                       !vk_hazards_admit(&b->hazards, &item, false))) {
    VYRE_TRY(flush(b, done, st));
  }
  /* Bytes that it is recorded with may have come from those. */
  const vk_pipeline *p = (const vk_pipeline *)l->pipeline;
  vyre__launch seen = *l;
  vyre_status inner = {0};
  vyre_code code = vk_check(p, l, &inner);
  if (code == VYRE_OK && p->has_values) {
    code = vk_see_uniforms(p, l, VK_BY_VALUE, false, &seen, &inner);
  }
  if (code == VYRE_OK && !vk_is_simple(&seen)) {
    VYRE_TRY(flush(b, done, st));
    return run_alone(l, done, st);
  }
  if (code == VYRE_OK) code = join(b, l, &seen, &inner);
  if (code == VYRE_OK) return VYRE_OK;
  bool had_others = b->count > 0;
  VYRE_TRY(flush(b, done, st)); /* those before it are not its fault */
  if (had_others) return run_alone(l, done, st); /* their memory is free now */
  if (st) *st = inner;
  return code;
}

vyre_code vk_run_many(vyre_device *device, vyre__launch *first, size_t *done,
                      vyre_status *st) {
  batch b = {.device = (vk_device *)device};
  bool is_taken;
  *done = 0;
  vyre_code code = vk_memo_run(b.device, first, &is_taken, done, st);
  if (is_taken) return code;
  if (!make_room(&b, first)) {
    return vyre__no_memory(st, "vulkan", "launches", 1);
  }
  for (vyre__launch *l = first; l && code == VYRE_OK; l = l->next) {
    code = add(&b, l, done, st);
  }
  return code == VYRE_OK ? flush(&b, done, st) : code;
}
