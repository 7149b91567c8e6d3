/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loops of recordings whose flag the device tests (VK_EXT_conditional_rendering): many
 * rounds in one submission, and the host waits once for all of them. Before each round
 * the flag is copied to a word of its own, by which the round's dispatches are done or
 * left out. How many were is then counted in these words.
 *
 * Only dispatches are left out, and neither copies nor fills: a body that needs those
 * is left to the host, and so is one that can fail, since what follows a failure must
 * not have written. */
#include "backend/vulkan/command/device_loop.h"

#include <string.h>

#include "backend/vulkan/command/command_list.h"
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/encoding.h"
#include "backend/vulkan/command/hazards.h"
#include "backend/vulkan/command/launch.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/pipeline.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

enum { MAX_COMMANDS = 2048 }; /* dispatches of one submission */

void vk_device_loop_clear(vk_device *device, vk_device_loop *loop) {
  vk_range_free(device, &loop->words);
  vk_encoding_clear(device, &loop->encoding);
  *loop = (vk_device_loop){0};
}

/* --- what can be done so -----------------------------------------------------------*/

/* All that a round changes is written by dispatches, to where the next one reads.
 * Copies of uniforms write only the job's own memory. */
static bool is_repeatable(const vk_dispatch *dispatch,
                          const vyre__launch *launch) {
  if (dispatch->has_status || dispatch->has_unwritten_output ||
      dispatch->clear_count > 0)
    return false;
  for (uint32_t i = 0; i < dispatch->copied_count; i++) {
    if (dispatch->copied[i].is_written) return false;
  }
  for (uint32_t i = 0; i < dispatch->staged_count; i++) {
    const vk_staged_view *s = &dispatch->staged[i];
    if (launch->views[s->buffer].begins_zero ||
        (s->is_written && dispatch->staging.block)) {
      return false;
    }
  }
  return true;
}

/* What one writes to the host, no other binds: each has a copy of its own, for all
 * rounds. */
static bool are_independent(const vk_command_list *own) {
  const vk_encoding *encoding = &own->loop.encoding;
  for (uint32_t i = 0; i < encoding->item_count; i++) {
    const vk_dispatch *dispatch = encoding->dispatches[i];
    const vyre__launch *launch = own->base.items[i].launch;
    for (uint32_t k = 0; k < dispatch->staged_count; k++) {
      const vk_staged_view *s = &dispatch->staged[k];
      const unsigned char *begin = launch->views[s->buffer].data;
      if (!s->is_written) continue;
      for (uint32_t n = 0; n < encoding->item_count; n++) {
        if (n != i &&
            vk_launch_binds(own->base.items[n].launch, begin, s->size)) {
          return false;
        }
      }
    }
  }
  return true;
}

/* *is_fit: its jobs are there. */
static vyre_code encode_dispatches(vk_command_list *own, vk_hazards *hazards,
                                   bool *is_supported, vyre_status *st) {
  vk_encoding *encoding = &own->loop.encoding;
  *is_supported = false;
  for (uint32_t i = 0; i < encoding->item_count; i++) {
    const vyre__command_list_item *item = &own->base.items[i];
    if (!item->launch) return VYRE_OK;
    vk_pipeline *p = (vk_pipeline *)item->launch->pipeline;
    vyre__launch snapshot = *item->launch;
    VYRE_TRY(vk_launch_check(p, item->launch, st));
    VYRE_TRY(vk_snapshot_uniforms(p, &snapshot, VK_UNIFORM_ENCODED, false,
                                  &snapshot, st));
    if (!vk_launch_is_encodable(&snapshot) ||
        !vk_hazards_can_join(hazards, item, i == 0)) {
      return VYRE_OK;
    }
    VYRE_TRY(vk_dispatch_acquire(p, &snapshot, VK_DISPATCH_INLINE,
                                 &encoding->dispatches[i], st));
    if (!is_repeatable(encoding->dispatches[i], item->launch)) return VYRE_OK;
    vk_hazards_add(hazards, item);
  }
  *is_supported = are_independent(own);
  return VYRE_OK;
}

/* As many rounds as a submission may have; 0 ns: that take no time. */
static uint32_t max_iterations(const vk_device *device, size_t items,
                               uint64_t iteration_ns) {
  uint64_t max = MAX_COMMANDS / items;
  if (iteration_ns > 0 && max > device->max_submit_ns / iteration_ns) {
    max = device->max_submit_ns / iteration_ns;
  }
  return max > 0 ? (uint32_t)max : 1;
}

/* @p done rounds of a submission took @p ns: twice as many and more are recorded anew,
 * and fewer after one that took far longer than it may. */
static void adjust_limit(vk_command_list *own, uint32_t done, uint64_t ns) {
  const vk_device *device = (const vk_device *)own->base.device;
  vk_device_loop *loop = &own->loop;
  if (done == 0) return;
  uint32_t max =
      max_iterations(device, loop->encoding.item_count, ns / done + 1);
  bool is_long = ns / 2 > device->max_submit_ns;
  if (is_long ? max < loop->max_iterations : max / 2 >= loop->max_iterations)
    loop->max_iterations = max;
}

static size_t count_views(const vyre__command_list *list) {
  size_t views = 1;
  for (size_t i = 0; i < list->count; i++) {
    const vyre__launch *launch = list->items[i].launch;
    if (!launch) continue;
    views += ((const vk_pipeline *)launch->pipeline)->plan.buffer_count;
  }
  return views;
}

static vyre_code prepare_in(vk_command_list *own, vyre_arena *scratch,
                            vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_device_loop *loop = &own->loop;
  vk_encoding *encoding = &loop->encoding;
  size_t count = own->base.count;
  vk_hazards hazards;
  bool is_supported;
  encoding->dispatches =
      vyre__arena_array(&encoding->arena, count, sizeof(vk_dispatch *));
  encoding->segments =
      vyre__arena_array(&encoding->arena, 1, sizeof *encoding->segments);
  if (!encoding->dispatches || !encoding->segments ||
      !vk_hazards_init(&hazards, count_views(&own->base), scratch)) {
    return vyre__no_memory(st, "vulkan", "commands of a loop", count);
  }
  memset(encoding->dispatches, 0, count * sizeof(vk_dispatch *));
  encoding->item_count = (uint32_t)count;
  VYRE_TRY(encode_dispatches(own, &hazards, &is_supported, st));
  if (!is_supported) return VYRE_OK;
  loop->max_iterations = max_iterations(device, count, hazards.expected_ns);
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .queueFamilyIndex = device->family};
  VkResult result = device->api.CreateCommandPool(device->handle, &pool, NULL,
                                                  &encoding->pool);
  if (result != VK_SUCCESS) encoding->pool = VK_NULL_HANDLE;
  VK_TRY(device, result, "a command pool", st);
  VYRE_TRY(vk_range_alloc(
      device, device->is_unified ? VK_MEMORY_KIND_DEVICE : VK_MEMORY_KIND_HOST,
      4 * ((uint64_t)max_iterations(device, count, 0) + 1), &loop->words, st));
  loop->is_supported = true;
  return VYRE_OK;
}

static bool has_unmeasured(const vyre__command_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    const vyre__launch *launch = list->items[i].launch;
    if (launch && vk_launch_is_unmeasured(launch)) return true;
  }
  return false;
}

static vyre_code prepare(vk_command_list *own, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_device_loop *loop = &own->loop;
  vyre_arena scratch;
  vk_device_loop_clear(device, loop);
  loop->encoding.last_used = 1;
  vyre_arena_init(&loop->encoding.arena, device->base.allocator);
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code = prepare_in(own, &scratch, st);
  vyre_arena_deinit(&scratch);
  bool is_supported = code == VYRE_OK && loop->is_supported;
  if (!is_supported) vk_device_loop_clear(device, loop);
  /* One that takes too long as far as can be known is asked for once more. */
  loop->is_decided =
      is_supported || (code == VYRE_OK && !has_unmeasured(&own->base));
  return code;
}

/* --- recording ---------------------------------------------------------------------*/

static void record_flag_copy(const vk_device *device,
                             const vk_device_loop *loop,
                             VkCommandBuffer commands, uint32_t index) {
  const VkBufferCopy word = {loop->flag_offset,
                             loop->words.offset + 4 * (uint64_t)index, 4};
  device->api.CmdCopyBuffer(commands, loop->flag_buffer, loop->words.buffer, 1,
                            &word);
}

/* The word is there when dispatches are asked whether they are to be done, and was
 * copied before one of them changes what it was copied from. */
static void record_flag_test(const vk_device *device,
                             const vk_device_loop *loop,
                             VkCommandBuffer commands, uint32_t index) {
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_CONDITIONAL_RENDERING_READ_BIT_EXT};
  const VkConditionalRenderingBeginInfoEXT test = {
      .sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT,
      .buffer = loop->words.buffer,
      .offset = loop->words.offset + 4 * (uint64_t)index};
  device->api.CmdPipelineBarrier(
      commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
      VK_PIPELINE_STAGE_CONDITIONAL_RENDERING_BIT_EXT |
          VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
      0, 1, &barrier, 0, NULL, 0, NULL);
  device->api.CmdBeginConditionalRenderingEXT(commands, &test);
}

static vyre_code record_iteration(vk_command_list *own, vk_hazards *hazards,
                                  VkCommandBuffer commands, VkPipeline *bound,
                                  vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_hazards_reset(hazards);
  hazards->all_written_count =
      0; /* each round notes the same, and is the only one */
  for (uint32_t i = 0; i < own->loop.encoding.item_count; i++) {
    const vyre__command_list_item *item = &own->base.items[i];
    if (vk_hazards_need_barrier(hazards, item)) {
      vk_cmd_barrier(device, commands);
      vk_hazards_add_barrier(hazards);
    }
    vk_hazards_add(hazards, item);
    VYRE_TRY(vk_dispatch_record_all(own->loop.encoding.dispatches[i],
                                    item->launch, commands, bound, st));
  }
  return VYRE_OK;
}

static vyre_code record_iterations(vk_command_list *own, uint32_t iterations,
                                   vk_hazards *hazards,
                                   VkCommandBuffer commands, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  VkPipeline bound = VK_NULL_HANDLE;
  VYRE_TRY(vk_command_buffer_begin(device, commands, false, st));
  for (uint32_t i = 0; i < iterations; i++) {
    record_flag_copy(device, &own->loop, commands, i);
    record_flag_test(device, &own->loop, commands, i);
    vyre_code code = record_iteration(own, hazards, commands, &bound, st);
    device->api.CmdEndConditionalRenderingEXT(commands);
    VYRE_TRY(code);
    vk_cmd_barrier(device, commands);
  }
  record_flag_copy(device, &own->loop, commands, iterations);
  return vk_command_buffer_end(device, commands, true, st);
}

/* Commands of so many rounds; there are two or three numbers of them in a loop, once
 * it is known how many a submission may have. */
static vyre_code get_commands(vk_command_list *own, uint32_t iterations,
                              VkCommandBuffer *out, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_device_loop *loop = &own->loop;
  for (uint32_t i = 0; i < loop->variant_count; i++) {
    if (loop->variants[i].iterations != iterations) continue;
    *out = loop->variants[i].commands;
    return VYRE_OK;
  }
  if (loop->variant_count == VK_LOOP_ENCODINGS) { /* all anew */
    VK_TRY(device,
           device->api.ResetCommandPool(device->handle, loop->encoding.pool, 0),
           "vkResetCommandPool", st);
    loop->variant_count = 0;
  }
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = loop->encoding.pool,
      .commandBufferCount = 1};
  VkCommandBuffer commands = loop->variants[loop->variant_count].commands;
  if (!commands) { /* else it is one of those */
    VK_TRY(device,
           device->api.AllocateCommandBuffers(device->handle, &info, &commands),
           "a command buffer", st);
  }
  vyre_arena scratch;
  vk_hazards hazards;
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code =
      vk_hazards_init(&hazards, count_views(&own->base), &scratch)
          ? record_iterations(own, iterations, &hazards, commands, st)
          : vyre__no_memory(st, "vulkan", "commands of a loop", iterations);
  vyre_arena_deinit(&scratch);
  VYRE_TRY(code);
  loop->variants[loop->variant_count].iterations = iterations;
  loop->variants[loop->variant_count++].commands = commands;
  *out = commands;
  return VYRE_OK;
}

/* --- running -----------------------------------------------------------------------*/

static vyre_code run_iterations(vk_command_list *own, uint32_t iterations,
                                vyre__command_list_loop *out, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  vk_device_loop *loop = &own->loop;
  VkCommandBuffer commands;
  uint32_t word = 1, done = 0;
  VYRE_TRY(get_commands(own, iterations, &commands, st));
  uint64_t start = vyre__clock_ns();
  VYRE_TRY(vk_submit(device, &commands, 1, &loop->encoding.submission, st));
  VYRE_TRY(vk_wait(device, &loop->encoding.submission, st));
  uint64_t ns = vyre__clock_ns() - start;
  while (done <=
         iterations) { /* the last is of a round that was not asked for */
    memcpy(&word, loop->words.host + 4 * (size_t)done, 4);
    if (word == 0) break;
    done++;
  }
  out->is_unfinished = done > iterations;
  if (done > iterations) done = iterations;
  out->iterations += done;
  adjust_limit(own, done, ns);
  return VYRE_OK;
}

/* What goes in and out is known when the first commands are recorded. */
static vyre_code prepare_transfers(vk_command_list *own, uint64_t iterations,
                                   vyre_status *st) {
  vk_device_loop *loop = &own->loop;
  vk_encoding *encoding = &loop->encoding;
  VkCommandBuffer commands;
  if (loop->has_transfers) return VYRE_OK;
  VYRE_TRY(get_commands(own,
                        iterations < loop->max_iterations
                            ? (uint32_t)iterations
                            : loop->max_iterations,
                        &commands, st));
  if (!vk_encoding_alloc_transfers(encoding)) {
    return vyre__no_memory(st, "vulkan", "bytes of a loop",
                           encoding->item_count);
  }
  encoding->segments[0] = (vk_segment){.last = encoding->item_count};
  encoding->segment_count = 1;
  vk_encoding_build_transfers(encoding, &own->base);
  loop->has_transfers = true;
  return VYRE_OK;
}

static vyre_code run_all(vk_command_list *own, vyre__command_list_loop *out,
                         vyre_status *st) {
  vk_device_loop *loop = &own->loop;
  const vk_segment *all = &loop->encoding.segments[0];
  VYRE_TRY(prepare_transfers(own, out->max_iterations, st));
  VYRE_TRY(vk_encoding_write_inputs(&loop->encoding, all, st));
  out->is_unfinished = true;
  for (uint64_t left = out->max_iterations; left > 0 && out->is_unfinished;) {
    uint32_t iterations =
        left < loop->max_iterations ? (uint32_t)left : loop->max_iterations;
    VYRE_TRY(run_iterations(own, iterations, out, st));
    left -= iterations;
  }
  return vk_encoding_read_outputs(&loop->encoding, all, st);
}

/* Whether it was recorded for that flag, and for bytes that are recorded with it. */
static bool matches(const vk_command_list *own, const vk_range *flag,
                    uint64_t offset) {
  const vk_device_loop *loop = &own->loop;
  for (uint32_t i = 0; i < loop->encoding.item_count; i++) {
    const vk_dispatch *dispatch = loop->encoding.dispatches[i];
    if (dispatch->pipeline->has_encoded_uniforms &&
        !vk_dispatch_matches(dispatch, own->base.items[i].launch)) {
      return false;
    }
  }
  return loop->flag_id == flag->id && loop->flag_buffer == flag->buffer &&
         loop->flag_offset == flag->offset + offset;
}

vyre_code vk_command_list_loop(vyre__command_list *list,
                               vyre__command_list_loop *out, vyre_status *st) {
  vk_command_list *own = (vk_command_list *)list;
  vk_device *device = (vk_device *)list->device;
  vk_device_loop *loop = &own->loop;
  const vk_range *flag = &((const vk_buffer *)out->flag)->range;
  if (!device->tests_loop_flags || flag->block == NULL ||
      (flag->offset + out->offset) % 4 != 0) {
    return VYRE_OK;
  }
  if (list->is_changed || !loop->is_decided ||
      (loop->is_supported && !matches(own, flag, out->offset))) {
    VYRE_TRY(prepare(own, st));
    loop->flag_id = flag->id;
    loop->flag_buffer = flag->buffer;
    loop->flag_offset = flag->offset + out->offset;
  }
  if (!loop->is_supported) return VYRE_OK;
  out->is_taken = true;
  vyre_code code = run_all(own, out, st);
  if (code != VYRE_OK) vk_device_loop_clear(device, loop);
  return code;
}
