/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loops of recordings whose flag the device tests (VK_EXT_conditional_rendering): many
 * rounds in one submission, and the host waits once for all of them. Before each round
 * the flag is copied to a word of its own, by which the round's dispatches are done or
 * left out. How many were is then counted in these words.
 *
 * Only dispatches are left out, and neither copies nor fills: a body that needs those
 * is left to the host, and so is one that can fail, since what follows a failure must
 * not have written. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

enum { MOST_COMMANDS = 2048 }; /* dispatches of one submission */

void vk_loop_clear(vk_device *device, vk_loop *loop) {
  vk_range_give(device, &loop->words);
  vk_take_clear(device, &loop->take);
  *loop = (vk_loop){0};
}

/* --- what can be done so -----------------------------------------------------------*/

/* All that a round changes is written by dispatches, to where the next one reads.
 * Copies of uniforms write only the job's own memory. */
static bool is_repeatable(const vk_job *job, const vyre__launch *launch) {
  if (job->has_status || job->has_unseen || job->clear_count > 0) return false;
  for (uint32_t i = 0; i < job->detour_count; i++) {
    if (job->detours[i].is_written) return false;
  }
  for (uint32_t i = 0; i < job->staged_count; i++) {
    const vk_staged *s = &job->staged[i];
    if (launch->views[s->buffer].begins_zero ||
        (s->is_written && job->staging.block)) {
      return false;
    }
  }
  return true;
}

/* What one writes to the host, no other binds: each has a copy of its own, for all
 * rounds. */
static bool are_apart(const vk_piece *own) {
  const vk_take *take = &own->loop.take;
  for (uint32_t i = 0; i < take->item_count; i++) {
    const vk_job *job = take->jobs[i];
    const vyre__launch *launch = own->base.items[i].launch;
    for (uint32_t k = 0; k < job->staged_count; k++) {
      const vk_staged *s = &job->staged[k];
      const unsigned char *begin = launch->views[s->buffer].data;
      if (!s->is_written) continue;
      for (uint32_t n = 0; n < take->item_count; n++) {
        if (n != i && vk_binds(own->base.items[n].launch, begin, s->size)) {
          return false;
        }
      }
    }
  }
  return true;
}

/* *is_fit: its jobs are there. */
static vyre_code make_jobs(vk_piece *own, vk_hazards *hazards, bool *is_fit,
                           vyre_status *st) {
  vk_take *take = &own->loop.take;
  *is_fit = false;
  for (uint32_t i = 0; i < take->item_count; i++) {
    const vyre__command_list_item *item = &own->base.items[i];
    if (!item->launch) return VYRE_OK;
    vk_pipeline *p = (vk_pipeline *)item->launch->pipeline;
    vyre__launch seen = *item->launch;
    VYRE_TRY(vk_check(p, item->launch, st));
    VYRE_TRY(vk_see_uniforms(p, &seen, VK_BY_VALUE, false, &seen, st));
    if (!vk_is_simple(&seen) || !vk_hazards_admit(hazards, item, i == 0)) {
      return VYRE_OK;
    }
    VYRE_TRY(vk_job_take(p, &seen, VK_JOB_JOINED, &take->jobs[i], st));
    if (!is_repeatable(take->jobs[i], item->launch)) return VYRE_OK;
    vk_hazards_note(hazards, item);
  }
  *is_fit = are_apart(own);
  return VYRE_OK;
}

/* As many rounds as a submission may have; 0 ns: that take no time. */
static uint32_t most_rounds(const vk_device *device, size_t items,
                            uint64_t round_ns) {
  uint64_t most = MOST_COMMANDS / items;
  if (round_ns > 0 && most > device->most_ns / round_ns) {
    most = device->most_ns / round_ns;
  }
  return most > 0 ? (uint32_t)most : 1;
}

/* @p done rounds of a submission took @p ns: twice as many and more are recorded anew,
 * and fewer after one that took far longer than it may. */
static void learn(vk_piece *own, uint32_t done, uint64_t ns) {
  const vk_device *device = (const vk_device *)own->base.device;
  vk_loop *loop = &own->loop;
  if (done == 0) return;
  uint32_t most = most_rounds(device, loop->take.item_count, ns / done + 1);
  bool is_long = ns / 2 > device->most_ns;
  if (is_long ? most < loop->most : most / 2 >= loop->most) loop->most = most;
}

static size_t views_of(const vyre__command_list *piece) {
  size_t views = 1;
  for (size_t i = 0; i < piece->count; i++) {
    const vyre__launch *launch = piece->items[i].launch;
    if (!launch) continue;
    views += ((const vk_pipeline *)launch->pipeline)->plan.buffer_count;
  }
  return views;
}

static vyre_code make_in(vk_piece *own, vyre_arena *scratch, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_loop *loop = &own->loop;
  vk_take *take = &loop->take;
  size_t count = own->base.count;
  vk_hazards hazards;
  bool is_fit;
  take->jobs = vyre__arena_array(&take->arena, count, sizeof(vk_job *));
  take->segments = vyre__arena_array(&take->arena, 1, sizeof *take->segments);
  if (!take->jobs || !take->segments ||
      !vk_hazards_init(&hazards, views_of(&own->base), scratch)) {
    return vyre__no_memory(st, "vulkan", "commands of a loop", count);
  }
  memset(take->jobs, 0, count * sizeof(vk_job *));
  take->item_count = (uint32_t)count;
  VYRE_TRY(make_jobs(own, &hazards, &is_fit, st));
  if (!is_fit) return VYRE_OK;
  loop->most = most_rounds(device, count, hazards.ns);
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .queueFamilyIndex = device->family};
  VkResult result =
      device->api.CreateCommandPool(device->handle, &pool, NULL, &take->pool);
  if (result != VK_SUCCESS) take->pool = VK_NULL_HANDLE;
  VK_TRY(device, result, "a command pool", st);
  VYRE_TRY(vk_range_take(
      device, device->is_in_place ? VK_WHERE_DEVICE : VK_WHERE_HOST,
      4 * ((uint64_t)most_rounds(device, count, 0) + 1), &loop->words, st));
  loop->is_fit = true;
  return VYRE_OK;
}

static bool has_unknown(const vyre__command_list *piece) {
  for (size_t i = 0; i < piece->count; i++) {
    const vyre__launch *launch = piece->items[i].launch;
    if (launch && vk_is_unknown(launch)) return true;
  }
  return false;
}

static vyre_code make(vk_piece *own, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_loop *loop = &own->loop;
  vyre_arena scratch;
  vk_loop_clear(device, loop);
  loop->take.used = 1;
  vyre_arena_init(&loop->take.arena, device->base.allocator);
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code = make_in(own, &scratch, st);
  vyre_arena_deinit(&scratch);
  bool is_fit = code == VYRE_OK && loop->is_fit;
  if (!is_fit) vk_loop_clear(device, loop);
  /* One that takes too long as far as can be known is asked for once more. */
  loop->is_known = is_fit || (code == VYRE_OK && !has_unknown(&own->base));
  return code;
}

/* --- recording ---------------------------------------------------------------------*/

static void put_word(const vk_device *device, const vk_loop *loop,
                     VkCommandBuffer commands, uint32_t number) {
  const VkBufferCopy word = {loop->flag_offset,
                             loop->words.offset + 4 * (uint64_t)number, 4};
  device->api.CmdCopyBuffer(commands, loop->flag_buffer, loop->words.buffer, 1,
                            &word);
}

/* The word is there when dispatches are asked whether they are to be done, and was
 * copied before one of them changes what it was copied from. */
static void put_test(const vk_device *device, const vk_loop *loop,
                     VkCommandBuffer commands, uint32_t number) {
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_CONDITIONAL_RENDERING_READ_BIT_EXT};
  const VkConditionalRenderingBeginInfoEXT test = {
      .sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT,
      .buffer = loop->words.buffer,
      .offset = loop->words.offset + 4 * (uint64_t)number};
  device->api.CmdPipelineBarrier(
      commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
      VK_PIPELINE_STAGE_CONDITIONAL_RENDERING_BIT_EXT |
          VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
      0, 1, &barrier, 0, NULL, 0, NULL);
  device->api.CmdBeginConditionalRenderingEXT(commands, &test);
}

static vyre_code put_round(vk_piece *own, vk_hazards *hazards,
                           VkCommandBuffer commands, VkPipeline *bound,
                           vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_hazards_reset(hazards);
  hazards->ever_count = 0; /* each round notes the same, and is the only one */
  for (uint32_t i = 0; i < own->loop.take.item_count; i++) {
    const vyre__command_list_item *item = &own->base.items[i];
    if (vk_hazards_meet(hazards, item)) {
      vk_cmd_barrier(device, commands);
      vk_hazards_pass(hazards);
    }
    vk_hazards_note(hazards, item);
    VYRE_TRY(vk_job_put_all(own->loop.take.jobs[i], item->launch, commands,
                            bound, st));
  }
  return VYRE_OK;
}

static vyre_code put_rounds(vk_piece *own, uint32_t rounds, vk_hazards *hazards,
                            VkCommandBuffer commands, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  VkPipeline bound = VK_NULL_HANDLE;
  VYRE_TRY(vk_commands_begin(device, commands, false, st));
  for (uint32_t i = 0; i < rounds; i++) {
    put_word(device, &own->loop, commands, i);
    put_test(device, &own->loop, commands, i);
    vyre_code code = put_round(own, hazards, commands, &bound, st);
    device->api.CmdEndConditionalRenderingEXT(commands);
    VYRE_TRY(code);
    vk_cmd_barrier(device, commands);
  }
  put_word(device, &own->loop, commands, rounds);
  return vk_commands_end(device, commands, true, st);
}

/* Commands of so many rounds; there are two or three numbers of them in a loop, once
 * it is known how many a submission may have. */
static vyre_code commands_of(vk_piece *own, uint32_t rounds,
                             VkCommandBuffer *out, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_loop *loop = &own->loop;
  for (uint32_t i = 0; i < loop->kept_count; i++) {
    if (loop->kept[i].rounds != rounds) continue;
    *out = loop->kept[i].commands;
    return VYRE_OK;
  }
  if (loop->kept_count == VK_LOOP_KEPT) { /* all anew */
    VK_TRY(device,
           device->api.ResetCommandPool(device->handle, loop->take.pool, 0),
           "vkResetCommandPool", st);
    loop->kept_count = 0;
  }
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = loop->take.pool,
      .commandBufferCount = 1};
  VkCommandBuffer made = loop->kept[loop->kept_count].commands;
  if (!made) { /* else it is one of those */
    VK_TRY(device,
           device->api.AllocateCommandBuffers(device->handle, &info, &made),
           "a command buffer", st);
  }
  vyre_arena scratch;
  vk_hazards hazards;
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code =
      vk_hazards_init(&hazards, views_of(&own->base), &scratch)
          ? put_rounds(own, rounds, &hazards, made, st)
          : vyre__no_memory(st, "vulkan", "commands of a loop", rounds);
  vyre_arena_deinit(&scratch);
  VYRE_TRY(code);
  loop->kept[loop->kept_count].rounds = rounds;
  loop->kept[loop->kept_count++].commands = made;
  *out = made;
  return VYRE_OK;
}

/* --- running -----------------------------------------------------------------------*/

static vyre_code run_rounds(vk_piece *own, uint32_t rounds,
                            vyre__command_list_loop *out, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_loop *loop = &own->loop;
  VkCommandBuffer commands;
  uint32_t word = 1, done = 0;
  VYRE_TRY(commands_of(own, rounds, &commands, st));
  uint64_t start = vyre__clock_ns();
  VYRE_TRY(vk_submit(device, &commands, 1, &loop->take.ticket, st));
  VYRE_TRY(vk_wait(device, &loop->take.ticket, st));
  uint64_t ns = vyre__clock_ns() - start;
  while (done <= rounds) { /* the last is of a round that was not asked for */
    memcpy(&word, loop->words.host + 4 * (size_t)done, 4);
    if (word == 0) break;
    done++;
  }
  out->is_unfinished = done > rounds;
  if (done > rounds) done = rounds;
  out->iterations += done;
  learn(own, done, ns);
  return VYRE_OK;
}

/* What goes in and out is known when the first commands are recorded. */
static vyre_code settle(vk_piece *own, uint64_t rounds, vyre_status *st) {
  vk_loop *loop = &own->loop;
  vk_take *take = &loop->take;
  VkCommandBuffer commands;
  if (loop->is_settled) return VYRE_OK;
  VYRE_TRY(commands_of(own, rounds < loop->most ? (uint32_t)rounds : loop->most,
                       &commands, st));
  if (!vk_take_make_room(take)) {
    return vyre__no_memory(st, "vulkan", "bytes of a loop", take->item_count);
  }
  take->segments[0] = (vk_segment){.last = take->item_count};
  take->segment_count = 1;
  vk_take_settle(take, &own->base);
  loop->is_settled = true;
  return VYRE_OK;
}

static vyre_code run_all(vk_piece *own, vyre__command_list_loop *out,
                         vyre_status *st) {
  vk_loop *loop = &own->loop;
  const vk_segment *all = &loop->take.segments[0];
  VYRE_TRY(settle(own, out->max_iterations, st));
  VYRE_TRY(vk_take_fill(&loop->take, all, st));
  out->is_unfinished = true;
  for (uint64_t left = out->max_iterations; left > 0 && out->is_unfinished;) {
    uint32_t rounds = left < loop->most ? (uint32_t)left : loop->most;
    VYRE_TRY(run_rounds(own, rounds, out, st));
    left -= rounds;
  }
  return vk_take_collect(&loop->take, all, st);
}

/* Whether it was recorded for that flag, and for bytes that are recorded with it. */
static bool is_for(const vk_piece *own, const vk_range *flag, uint64_t offset) {
  const vk_loop *loop = &own->loop;
  for (uint32_t i = 0; i < loop->take.item_count; i++) {
    const vk_job *job = loop->take.jobs[i];
    if (job->pipeline->has_values &&
        !vk_job_is_for(job, own->base.items[i].launch)) {
      return false;
    }
  }
  return loop->flag_id == flag->id && loop->flag_buffer == flag->buffer &&
         loop->flag_offset == flag->offset + offset;
}

vyre_code vk_piece_loop(vyre__command_list *piece, vyre__command_list_loop *out,
                        vyre_status *st) {
  vk_piece *own = (vk_piece *)piece;
  vk_device *device = (vk_device *)piece->device;
  vk_loop *loop = &own->loop;
  const vk_range *flag = &((const vk_buffer *)out->flag)->range;
  if (!device->tests_flags || flag->block == NULL ||
      (flag->offset + out->offset) % 4 != 0) {
    return VYRE_OK;
  }
  if (piece->is_changed || !loop->is_known ||
      (loop->is_fit && !is_for(own, flag, out->offset))) {
    VYRE_TRY(make(own, st));
    loop->flag_id = flag->id;
    loop->flag_buffer = flag->buffer;
    loop->flag_offset = flag->offset + out->offset;
  }
  if (!loop->is_fit) return VYRE_OK;
  out->is_taken = true;
  vyre_code code = run_all(own, out, st);
  if (code != VYRE_OK) vk_loop_clear(device, loop);
  return code;
}
