/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Launches that follow each other, as jobs of one submission. One that needs what
 * another wrote to resident memory has a barrier before it; what it needs of bytes of
 * the host has to be there first, so that a submission ends before it. */
#include "backend/vulkan/vulkan.h"
#include "base/memory.h"
#include "base/status.h"
#include "driver/stretch.h"

typedef struct batch {
  vk_device *device;
  vk_job **jobs;
  vyre__launch **launches;
  VkCommandBuffer *commands; /* twice as many: barriers */
  uint32_t count, command_count;
  vk_hazards hazards;
} batch;

/* --- one submission --------------------------------------------------------------*/

static vyre_code join(batch *b, vyre__launch *launch, vyre_status *st) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  vk_job *job;
  VYRE_TRY(vk_check(p, launch, st));
  VYRE_TRY(vk_job_take(p, launch, 0, &job, st));
  vk_job_fill(job, launch);
  const vyre__piece_item item = {.launch = launch};
  if (vk_hazards_meet(&b->hazards, &item)) {
    b->commands[b->command_count++] = b->device->barrier;
    vk_hazards_pass(&b->hazards);
    atomic_fetch_add_explicit(&b->device->counts.barriers, 1,
                              memory_order_relaxed);
  }
  vk_hazards_note(&b->hazards, &item);
  b->commands[b->command_count++] = job->commands;
  b->launches[b->count] = launch;
  b->jobs[b->count++] = job;
  return VYRE_OK;
}

/* Runs what was gathered. *done: how many of all ended well. */
static vyre_code flush(batch *b, size_t *done, vyre_status *st) {
  if (b->count == 0) return VYRE_OK;
  vk_device *device = b->device;
  vk_ticket *ticket = &b->jobs[0]->ticket;
  b->commands[b->command_count++] = device->barrier; /* for who comes next */
  vyre_code code = vk_submit(device, b->commands, b->command_count, ticket, st);
  if (code == VYRE_OK) code = vk_wait(device, ticket, st);
  bool is_over = code == VYRE_OK;
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
  vk_hazards_reset(&b->hazards);
  return code;
}

/* --- all of them -----------------------------------------------------------------*/

static bool make_room(batch *b, const vyre__launch *first) {
  size_t count = 0, views = 0;
  for (const vyre__launch *l = first; l; l = l->next) {
    count++;
    views += ((const vk_pipeline *)l->pipeline)->plan.buffer_count;
  }
  vyre_arena *scratch = first->scratch;
  b->jobs = vyre__arena_array(scratch, count, sizeof *b->jobs);
  b->launches = vyre__arena_array(scratch, count, sizeof *b->launches);
  b->commands =
      vyre__arena_array(scratch, 2 * count + 1, sizeof(VkCommandBuffer));
  return b->jobs && b->launches && b->commands &&
         vk_hazards_init(&b->hazards, views, scratch);
}

vyre_code vk_run_many(vyre_device *device, vyre__launch *first, size_t *done,
                      vyre_status *st) {
  batch b = {.device = (vk_device *)device};
  vyre_code code = VYRE_OK;
  *done = 0;
  if (!make_room(&b, first)) {
    return vyre__no_memory(st, "vulkan", "launches", 1);
  }
  for (vyre__launch *l = first; l && code == VYRE_OK; l = l->next) {
    const vyre__piece_item item = {.launch = l};
    bool is_one = vk_is_simple(l);
    if (!is_one || !vk_hazards_admit(&b.hazards, &item, b.count == 0)) {
      code = flush(&b, done, st);
    }
    if (code != VYRE_OK) break;
    if (is_one) {
      vyre_status inner = {0};
      code = join(&b, l, &inner);
      if (code == VYRE_OK) continue;
      /* Those before it are not its fault. */
      vyre_code before = flush(&b, done, st);
      if (before == VYRE_OK && st) *st = inner;
      return before == VYRE_OK ? code : before;
    }
    code = vk_run(l->pipeline, l, st);
    *done += code == VYRE_OK;
  }
  return code == VYRE_OK ? flush(&b, done, st) : code;
}
