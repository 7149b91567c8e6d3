/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodes the groups of a wave graph. The launches of a group are independent,
 * so all of it runs between two barriers: first the fills and copies of all its
 * launches, then the kernels, then the copies back. */
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/encoder.h"
#include "backend/vulkan/command/hazards.h"
#include "backend/vulkan/command/launch.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/pipeline.h"
#include "base/status.h"

/* Launches [first, last) that are in the open segment. */
typedef struct launch_range {
  uint32_t first, last;
} launch_range;

static vyre_code record_range(vk_encoder *r, launch_range range,
                              vyre_status *st) {
  vk_encoding *encoding = r->encoding;
  bool needs_barrier = false, has_epilogue = false;
  for (uint32_t i = range.first; i < range.last; i++) {
    const vk_dispatch *dispatch = encoding->dispatches[i];
    needs_barrier |= vk_dispatch_record_prologue(dispatch, r->commands);
    has_epilogue |= vk_dispatch_has_epilogue(dispatch);
  }
  if (needs_barrier) vk_cmd_barrier(r->device, r->commands);
  for (uint32_t i = range.first; i < range.last; i++) {
    VYRE_TRY(vk_dispatch_record_tiles(encoding->dispatches[i],
                                      r->own->commands[i].launch, r->commands,
                                      &r->bound, st));
  }
  if (!has_epilogue) return VYRE_OK;
  vk_cmd_barrier(r->device, r->commands);
  for (uint32_t i = range.first; i < range.last; i++)
    vk_dispatch_record_epilogue(encoding->dispatches[i], r->commands);
  return VYRE_OK;
}

/* Returns true if the launch fits into the open segment. Failures of earlier
 * waves do not matter: the memory of a graph that failed is unspecified. */
static bool can_join(const vk_encoder *r, uint32_t i) {
  vk_hazards hazards = r->hazards;
  hazards.has_status = false;
  return vk_hazards_can_join(&hazards, &r->own->commands[i], false);
}

/* Opens a segment for launch @p i, or continues the open one. A new segment is
 * another submission, which acts as a barrier. */
static vyre_code open_segment(vk_encoder *r, uint32_t i, launch_range *range,
                              vyre_status *st) {
  const vyre__command *command = &r->own->commands[i];
  vk_encoding *encoding = r->encoding;
  if (r->commands && can_join(r, i)) return VYRE_OK;
  encoding->is_provisional |=
      r->commands && vk_hazards_is_estimate(&r->hazards, command);
  if (range->last > range->first) VYRE_TRY(record_range(r, *range, st));
  VYRE_TRY(vk_encoder_end_segment(r, st));
  *range = (launch_range){i, i};
  return vk_encoder_begin_segment(r, i, st);
}

static vyre_code add_launch(vk_encoder *r, uint32_t i, launch_range *range,
                            vyre_status *st) {
  const vyre__command *command = &r->own->commands[i];
  vk_encoding *encoding = r->encoding;
  if (!vk_encoder_try(r, i)) {
    if (range->last > range->first) VYRE_TRY(record_range(r, *range, st));
    *range = (launch_range){i + 1, i + 1};
    return encoding->is_partial ? VYRE_OK : vk_encoder_add_separate(r, i, st);
  }
  VYRE_TRY(open_segment(r, i, range, st));
  vk_hazards_add(&r->hazards, command);
  vk_segment *s = &encoding->segments[encoding->segment_count - 1];
  s->last = range->last = i + 1;
  vk_encoder_count(s, command->launch);
  return VYRE_OK;
}

vyre_code vk_encoder_add_groups(vk_encoder *r, vyre_status *st) {
  vk_encoding *encoding = r->encoding;
  const vyre__wave_groups *groups = r->own->groups;
  size_t skipped = r->own->first; /* commands of the list that ran before */
  uint32_t i = 0;
  encoding->barriers = 0;
  for (uint32_t g = 0; g < groups->count && !encoding->is_partial; g++) {
    if (groups->ends[g] <= skipped) continue;
    uint32_t begin = g > 0 ? groups->ends[g - 1] : 0;
    encoding->barriers += g > 0 && begin >= skipped;
    if (i > 0 && r->commands) vk_cmd_barrier(r->device, r->commands);
    launch_range open = {i, i};
    for (; i < groups->ends[g] - skipped && !encoding->is_partial; i++)
      VYRE_TRY(add_launch(r, i, &open, st));
    if (open.last > open.first) VYRE_TRY(record_range(r, open, st));
  }
  if (encoding->is_partial) encoding->command_count = i - 1;
  return VYRE_OK;
}
