/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs recorded loops whose flag the device tests
 * (VK_EXT_conditional_rendering). One submission has many iterations, and the
 * host waits once for all of them. Before each iteration the flag is copied to
 * a word of its own; if the word is 0, the dispatches of the iteration are
 * skipped. The host counts the iterations from these words.
 *
 * Conditional rendering skips dispatches, but not copies and fills. So the host
 * runs loops whose body needs those, and loops whose body can fail: nothing may
 * write after a failure. */
#include "backend/vulkan/command/device_loop.h"

#include <string.h>

#include "backend/vulkan/command/command_list.h"
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/encoding.h"
#include "backend/vulkan/command/hazards.h"
#include "backend/vulkan/command/launch.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/pipeline.h"
#include "base/clock.h"
#include "base/status.h"

enum { MAX_COMMANDS = 2048 }; /* limit on dispatches of one submission */

void vk_device_loop_clear(vk_device *device, vk_device_loop *loop) {
  vk_range_free(device, &loop->words);
  vk_encoding_clear(device, &loop->encoding);
  *loop = (vk_device_loop){0};
}

/* --- supported loops ------------------------------------------------------ */

/* Returns true if only dispatches write what the next iteration reads. Copies
 * of uniforms write only the memory of the dispatch itself. */
static bool is_repeatable(const vk_dispatch *dispatch,
                          const vyre__launch *launch) {
  if (dispatch->has_status || dispatch->has_unwritten_output ||
      dispatch->clear_count > 0 || dispatch->readback_count > 0)
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

/* Returns true if no launch binds host memory that another one writes. Each
 * dispatch has its own copy of host memory, for all iterations. */
static bool are_independent(const vk_command_list *own) {
  const vk_encoding *encoding = &own->loop.encoding;
  for (uint32_t i = 0; i < encoding->command_count; i++) {
    const vk_dispatch *dispatch = encoding->dispatches[i];
    const vyre__launch *launch = own->commands[i].launch;
    for (uint32_t k = 0; k < dispatch->staged_count; k++) {
      const vk_staged_view *s = &dispatch->staged[k];
      const unsigned char *begin = launch->views[s->buffer].data;
      if (!s->is_written) continue;
      for (uint32_t n = 0; n < encoding->command_count; n++) {
        if (n != i &&
            vk_launch_binds(own->commands[n].launch, begin, s->size)) {
          return false;
        }
      }
    }
  }
  return true;
}

/* Encodes the dispatches of the body. *is_supported is false if the host must
 * run the loop. */
static vyre_code encode_dispatches(vk_command_list *own, vk_hazards *hazards,
                                   bool *is_supported, vyre_status *st) {
  vk_encoding *encoding = &own->loop.encoding;
  *is_supported = false;
  for (uint32_t i = 0; i < encoding->command_count; i++) {
    const vyre__command *command = &own->commands[i];
    if (!command->launch) return VYRE_OK;
    vk_pipeline *p = (vk_pipeline *)command->launch->pipeline;
    vyre__launch snapshot = *command->launch;
    VYRE_TRY(vk_snapshot_uniforms(p, &snapshot, VK_UNIFORM_ENCODED, false,
                                  &snapshot, st));
    if (!vk_launch_is_encodable(&snapshot) ||
        !vk_hazards_can_join(hazards, command, i == 0)) {
      return VYRE_OK;
    }
    VYRE_TRY(vk_dispatch_acquire(p, &snapshot, VK_DISPATCH_INLINE,
                                 &encoding->dispatches[i], st));
    if (!is_repeatable(encoding->dispatches[i], command->launch))
      return VYRE_OK;
    vk_hazards_add(hazards, command);
  }
  *is_supported = are_independent(own);
  return VYRE_OK;
}

/* Returns the limit on iterations of one submission. @p iteration_ns 0: no time
 * limit. */
static uint32_t max_iterations(const vk_device *device, size_t items,
                               uint64_t iteration_ns) {
  uint64_t max = MAX_COMMANDS / items;
  if (iteration_ns > 0 && max > device->max_submit_ns / iteration_ns) {
    max = device->max_submit_ns / iteration_ns;
  }
  return max > 0 ? (uint32_t)max : 1;
}

/* Adjusts the limit after @p done iterations took @p ns. It grows only if it
 * can at least double, because new command buffers are recorded. It shrinks
 * after a submission that took far too long. */
static void adjust_limit(vk_command_list *own, uint32_t done, uint64_t ns) {
  const vk_device *device = own->device;
  vk_device_loop *loop = &own->loop;
  if (done == 0) return;
  uint32_t max =
      max_iterations(device, loop->encoding.command_count, ns / done + 1);
  bool is_long = ns / 2 > device->max_submit_ns;
  if (is_long ? max < loop->max_iterations : max / 2 >= loop->max_iterations)
    loop->max_iterations = max;
}

static vyre_code prepare_in(vk_command_list *own, vyre_arena *scratch,
                            vyre_status *st) {
  vk_device *device = own->device;
  vk_device_loop *loop = &own->loop;
  vk_hazards hazards;
  bool is_supported;
  VYRE_TRY(vk_encoding_init(own, &loop->encoding, &hazards, scratch, st));
  VYRE_TRY(encode_dispatches(own, &hazards, &is_supported, st));
  if (!is_supported) return VYRE_OK;
  loop->max_iterations =
      max_iterations(device, own->count, hazards.expected_ns);
  VYRE_TRY(vk_range_alloc(
      device, device->is_unified ? VK_MEMORY_KIND_DEVICE : VK_MEMORY_KIND_HOST,
      4 * ((uint64_t)max_iterations(device, own->count, 0) + 1), &loop->words,
      st));
  loop->is_supported = true;
  return VYRE_OK;
}

static bool has_unmeasured(const vk_command_list *own) {
  for (size_t i = 0; i < own->count; i++) {
    const vyre__launch *launch = own->commands[i].launch;
    if (launch && vk_launch_is_unmeasured(launch)) return true;
  }
  return false;
}

static vyre_code prepare(vk_command_list *own, vyre_status *st) {
  vk_device *device = own->device;
  vk_device_loop *loop = &own->loop;
  vyre_arena scratch;
  vk_device_loop_clear(device, loop);
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code = prepare_in(own, &scratch, st);
  vyre_arena_deinit(&scratch);
  bool is_supported = code == VYRE_OK && loop->is_supported;
  if (!is_supported) vk_device_loop_clear(device, loop);
  /* A loop with unmeasured kernels may look too slow, so it is tried again
   * later. */
  loop->is_decided = is_supported || (code == VYRE_OK && !has_unmeasured(own));
  return code;
}

/* --- recording ------------------------------------------------------------ */

static void record_flag_copy(const vk_device *device,
                             const vk_device_loop *loop,
                             VkCommandBuffer commands, uint32_t index) {
  const VkBufferCopy word = {loop->flag_offset,
                             loop->words.offset + 4 * (uint64_t)index, 4};
  device->api.CmdCopyBuffer(commands, loop->flag_buffer, loop->words.buffer, 1,
                            &word);
}

/* The copied word must be visible to the conditional test, and the copy must
 * end before a dispatch changes the flag. */
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
  vk_device *device = own->device;
  vk_hazards_reset(hazards);
  /* The list grows by the same ranges in each iteration; once is enough. */
  hazards->all_written_count = 0;
  for (uint32_t i = 0; i < own->loop.encoding.command_count; i++) {
    const vyre__command *command = &own->commands[i];
    if (vk_hazards_need_barrier(hazards, command)) {
      vk_cmd_barrier(device, commands);
      vk_hazards_add_barrier(hazards);
    }
    vk_hazards_add(hazards, command);
    VYRE_TRY(vk_dispatch_record_all(own->loop.encoding.dispatches[i],
                                    command->launch, commands, bound, st));
  }
  return VYRE_OK;
}

static vyre_code record_iterations(vk_command_list *own, uint32_t iterations,
                                   vk_hazards *hazards,
                                   VkCommandBuffer commands, vyre_status *st) {
  vk_device *device = own->device;
  VkPipeline bound = VK_NULL_HANDLE;
  VYRE_TRY(vk_command_buffer_begin(device, commands, st));
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

/* Returns commands with that many iterations. A loop uses two or three
 * different counts once its limit is stable. */
static vyre_code get_commands(vk_command_list *own, uint32_t iterations,
                              VkCommandBuffer *out, vyre_status *st) {
  vk_device *device = own->device;
  vk_device_loop *loop = &own->loop;
  for (uint32_t i = 0; i < loop->variant_count; i++) {
    if (loop->variants[i].iterations != iterations) continue;
    *out = loop->variants[i].commands;
    return VYRE_OK;
  }
  if (loop->variant_count == VK_LOOP_ENCODINGS) { /* record all of them again */
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
  if (!commands) { /* otherwise the reset buffer is reused */
    VK_TRY(device,
           device->api.AllocateCommandBuffers(device->handle, &info, &commands),
           "command buffer creation", st);
  }
  vyre_arena scratch;
  vk_hazards hazards;
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code =
      vk_hazards_init(&hazards, own->commands, own->count, own->is_independent,
                      &scratch)
          ? record_iterations(own, iterations, &hazards, commands, st)
          : vyre__no_memory(st, "vulkan", "commands of a loop", iterations);
  vyre_arena_deinit(&scratch);
  VYRE_TRY(code);
  loop->variants[loop->variant_count].iterations = iterations;
  loop->variants[loop->variant_count++].commands = commands;
  *out = commands;
  return VYRE_OK;
}

/* --- running -------------------------------------------------------------- */

static vyre_code run_iterations(vk_command_list *own, uint32_t iterations,
                                vyre__command_loop *out, vyre_status *st) {
  vk_device *device = own->device;
  vk_device_loop *loop = &own->loop;
  VkCommandBuffer commands;
  uint32_t word = 1, done = 0;
  VYRE_TRY(get_commands(own, iterations, &commands, st));
  uint64_t start = vyre__clock_ns();
  VYRE_TRY(vk_submit(device, &commands, 1, &loop->encoding.submission, st));
  VYRE_TRY(vk_wait(device, &loop->encoding.submission, st));
  uint64_t ns = vyre__clock_ns() - start;
  /* The last word is the flag after all iterations. */
  while (done <= iterations) {
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

/* Builds the transfers after the first commands are recorded: only then the
 * tile counts are known. */
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
                           encoding->command_count);
  }
  encoding->segments[0] = (vk_segment){.last = encoding->command_count};
  encoding->segment_count = 1;
  vk_encoding_build_transfers(encoding, own->commands);
  loop->has_transfers = true;
  return VYRE_OK;
}

static vyre_code run_all(vk_command_list *own, vyre__command_loop *out,
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

/* Returns true if the loop was encoded for this flag and for the current bytes
 * of its uniforms. */
static bool matches(const vk_command_list *own, const vk_range *flag,
                    uint64_t offset) {
  const vk_device_loop *loop = &own->loop;
  return loop->flag_id == flag->id && loop->flag_buffer == flag->buffer &&
         loop->flag_offset == flag->offset + offset &&
         vk_encoding_matches(&loop->encoding, own, true);
}

vyre_code vk_loop_execute(vk_command_list *own, uint64_t version,
                          vyre__command_loop *out, bool *is_taken,
                          vyre_status *st) {
  vk_device *device = own->device;
  vk_device_loop *loop = &own->loop;
  const vk_range *flag = &((const vk_buffer *)out->flag)->range;
  *is_taken = false;
  if (!device->tests_loop_flags || flag->block == NULL ||
      (flag->offset + out->offset) % 4 != 0) {
    return VYRE_OK;
  }
  if (own->loop_version != version || !loop->is_decided ||
      (loop->is_supported && !matches(own, flag, out->offset))) {
    VYRE_TRY(prepare(own, st));
    own->loop_version = version;
    loop->flag_id = flag->id;
    loop->flag_buffer = flag->buffer;
    loop->flag_offset = flag->offset + out->offset;
  }
  if (!loop->is_supported) return VYRE_OK;
  *is_taken = true;
  vyre_code code = run_all(own, out, st);
  if (code != VYRE_OK) vk_device_loop_clear(device, loop);
  return code;
}
