/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs command lists. All dispatches and copies are recorded once, in as few
 * command buffers as possible. Other bindings need another encoding; the last
 * few are kept, so that callers that alternate between bindings record
 * nothing. */
#include "backend/vulkan/command/command_list.h"

#include <string.h>

#include "backend/vulkan/command/device_loop.h"
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/encoding.h"
#include "backend/vulkan/command/hazards.h"
#include "backend/vulkan/command/launch.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

/* --- keys ----------------------------------------------------------------- */

static void copy_key(const vyre__command_list_item *item, uint64_t key[5]) {
  const vk_range *from = &((const vk_buffer *)item->from)->range,
                 *to = &((const vk_buffer *)item->to)->range;
  key[0] = from->id;
  key[1] = from->offset + item->from_offset;
  key[2] = to->id;
  key[3] = to->offset + item->to_offset;
  key[4] = item->size;
}

static bool matches(const vk_encoding *encoding,
                    const vyre__command_list *list) {
  if (encoding->last_used == 0 || encoding->item_count != list->count)
    return false;
  for (uint32_t i = 0; i < encoding->item_count; i++) {
    const vyre__command_list_item *item = &list->items[i];
    uint64_t key[5];
    if (item->launch) {
      if (encoding->dispatches[i] &&
          !vk_dispatch_matches(encoding->dispatches[i], item->launch)) {
        return false;
      }
      continue;
    }
    copy_key(item, key);
    if (memcmp(key, encoding->copies[i], sizeof key) != 0) return false;
  }
  return true;
}

/* Returns true if uniforms that the commands depend on have the same bytes as
 * before. They can change without a new binding. */
static bool has_same_uniforms(const vk_encoding *encoding,
                              const vyre__command_list *list) {
  for (uint32_t i = 0; i < encoding->item_count; i++) {
    const vk_dispatch *dispatch = encoding->dispatches[i];
    if (dispatch && dispatch->pipeline->has_encoded_uniforms &&
        !vk_dispatch_matches(dispatch, list->items[i].launch)) {
      return false;
    }
  }
  return true;
}

/* --- encoding ------------------------------------------------------------- */

typedef struct encoder {
  vk_device *device;
  const vyre__command_list *list;
  vk_encoding *encoding;
  vk_hazards hazards;
  VkCommandBuffer commands; /* of the open segment, or NULL */
  VkPipeline bound;         /* bound in `commands` */
} encoder;

static vyre_code begin_segment(encoder *r, uint32_t item, vyre_status *st) {
  vk_device *device = r->device;
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = r->encoding->pool,
      .commandBufferCount = 1};
  VkCommandBuffer commands;
  VK_TRY(device,
         device->api.AllocateCommandBuffers(device->handle, &info, &commands),
         "command buffer creation", st);
  VYRE_TRY(vk_command_buffer_begin(device, commands, false, st));
  r->commands = commands;
  r->bound = VK_NULL_HANDLE;
  r->encoding->segments[r->encoding->segment_count++] =
      (vk_segment){.first = item, .last = item, .commands = commands};
  vk_hazards_reset(&r->hazards);
  return VYRE_OK;
}

static vyre_code end_segment(encoder *r, vyre_status *st) {
  if (!r->commands) return VYRE_OK;
  VkCommandBuffer commands = r->commands;
  r->commands = NULL;
  return vk_command_buffer_end(r->device, commands, true, st);
}

static void record_copy(const encoder *r, const vyre__command_list_item *item) {
  const vk_range *from = &((const vk_buffer *)item->from)->range,
                 *to = &((const vk_buffer *)item->to)->range;
  const VkBufferCopy region = {from->offset + item->from_offset,
                               to->offset + item->to_offset, item->size};
  if (item->size == 0) return;
  r->device->api.CmdCopyBuffer(r->commands, from->buffer, to->buffer, 1,
                               &region);
}

/* Returns the host bytes that a launch binds; its dispatch needs as much
 * memory. */
static uint64_t host_bytes(const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound || launch->views[i].buffer) continue;
    bytes += (uint64_t)launch->views[i].length * plan->buffers[i].unit;
  }
  return bytes;
}

enum { MAX_HOST_BYTES = 16 << 20 };

/* Encodes a launch. Returns false if it must run separately: it needs windows,
 * depends on bytes that an earlier item writes, binds much host memory, or is
 * invalid. An invalid launch reports its error when it runs. */
static bool try_encode(encoder *r, uint32_t i) {
  vyre__launch *launch = r->list->items[i].launch, snapshot = *launch;
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  return vk_launch_check(p, launch, NULL) == VYRE_OK &&
         vk_snapshot_uniforms(p, launch, VK_UNIFORM_ENCODED, false, &snapshot,
                              NULL) == VYRE_OK &&
         vk_launch_is_encodable(&snapshot) &&
         !vk_hazards_change_uniforms(&r->hazards, launch) &&
         host_bytes(launch) <= MAX_HOST_BYTES &&
         vk_dispatch_acquire(p, &snapshot, VK_DISPATCH_INLINE,
                             &r->encoding->dispatches[i], NULL) == VYRE_OK;
}

static vyre_code add_separate(encoder *r, uint32_t i, vyre_status *st) {
  const vyre__command_list_item *item = &r->list->items[i];
  const vk_pipeline *p = (const vk_pipeline *)item->launch->pipeline;
  vk_encoding *encoding = r->encoding;
  VYRE_TRY(end_segment(r, st));
  vk_hazards_add(&r->hazards, item); /* later items may read what it writes */
  encoding->is_provisional |= atomic_load(&p->group_ps) == 0;
  encoding->segments[encoding->segment_count++] =
      (vk_segment){.first = i, .last = i + 1};
  return VYRE_OK;
}

/* Adds the workgroups of a launch to its segment, to measure their time
 * later. */
static void count_groups(vk_segment *s, const vyre__launch *launch) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  s->pipeline = s->groups == 0 || s->pipeline == p ? p : NULL;
  s->groups += vk_launch_groups(p, launch);
}

static vyre_code add_item(encoder *r, uint32_t i, vyre_status *st) {
  const vyre__command_list_item *item = &r->list->items[i];
  vk_encoding *encoding = r->encoding;
  if (item->launch && !try_encode(r, i)) return add_separate(r, i, st);
  if (!r->commands || !vk_hazards_can_join(&r->hazards, item, false)) {
    encoding->is_provisional |=
        r->commands && vk_hazards_is_estimate(&r->hazards, item);
    VYRE_TRY(end_segment(r, st));
    VYRE_TRY(begin_segment(r, i, st));
  }
  if (vk_hazards_need_barrier(&r->hazards, item)) {
    vk_cmd_barrier(r->device, r->commands);
    vk_hazards_add_barrier(&r->hazards);
    atomic_fetch_add_explicit(&r->device->counters.barriers, 1,
                              memory_order_relaxed);
  }
  vk_hazards_add(&r->hazards, item);
  vk_segment *s = &encoding->segments[encoding->segment_count - 1];
  s->last = i + 1;
  if (!item->launch) {
    copy_key(item, encoding->copies[i]);
    record_copy(r, item);
    return VYRE_OK;
  }
  count_groups(s, item->launch);
  return vk_dispatch_record_all(encoding->dispatches[i], item->launch,
                                r->commands, &r->bound, st);
}

static vyre_code alloc_items(encoder *r, vyre_arena *scratch, vyre_status *st) {
  vk_encoding *encoding = r->encoding;
  size_t count = r->list->count, views = 0;
  for (size_t i = 0; i < count; i++) {
    const vyre__launch *launch = r->list->items[i].launch;
    views += 2;
    if (!launch) continue;
    views += ((const vk_pipeline *)launch->pipeline)->plan.buffer_count;
  }
  encoding->item_count = (uint32_t)count;
  encoding->dispatches =
      vyre__arena_array(&encoding->arena, count, sizeof *encoding->dispatches);
  encoding->copies =
      vyre__arena_array(&encoding->arena, count, sizeof *encoding->copies);
  encoding->segments =
      vyre__arena_array(&encoding->arena, count, sizeof *encoding->segments);
  if (!encoding->dispatches || !encoding->copies || !encoding->segments ||
      !vk_hazards_init(&r->hazards, views, scratch)) {
    encoding->item_count = 0;
    return vyre__no_memory(st, "vulkan", "commands of a recording", count);
  }
  memset(encoding->dispatches, 0, count * sizeof *encoding->dispatches);
  memset(encoding->copies, 0, count * sizeof *encoding->copies);
  return VYRE_OK;
}

static vyre_code encode_items(encoder *r, vyre_arena *scratch,
                              vyre_status *st) {
  vk_device *device = r->device;
  VYRE_TRY(alloc_items(r, scratch, st));
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .queueFamilyIndex = device->family};
  VkResult result = device->api.CreateCommandPool(device->handle, &pool, NULL,
                                                  &r->encoding->pool);
  if (result != VK_SUCCESS) r->encoding->pool = VK_NULL_HANDLE;
  VK_TRY(device, result, "command pool creation", st);
  for (uint32_t i = 0; i < r->list->count; i++) {
    VYRE_TRY(add_item(r, i, st));
  }
  VYRE_TRY(end_segment(r, st));
  if (!vk_encoding_alloc_transfers(r->encoding)) {
    return vyre__no_memory(st, "vulkan", "bytes of a recording",
                           r->list->count);
  }
  vk_encoding_build_transfers(r->encoding, r->list);
  return VYRE_OK;
}

static vyre_code encode(vk_command_list *own, vk_encoding *encoding,
                        vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  encoder r = {.device = device, .list = &own->base, .encoding = encoding};
  vyre_arena scratch;
  vk_encoding_clear(device, encoding);
  encoding->last_used = ++own->clock;
  vyre_arena_init(&encoding->arena, device->base.allocator);
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code = encode_items(&r, &scratch, st);
  vyre_arena_deinit(&scratch);
  if (code != VYRE_OK) vk_encoding_clear(device, encoding);
  return code;
}

/* Chooses the encoding for the current bindings: the last one, another match,
 * or the oldest one, encoded again. */
static vyre_code choose_encoding(vk_command_list *own, vk_encoding **out,
                                 vyre_status *st) {
  vk_encoding *now = &own->encodings[own->current];
  *out = now;
  if (now->last_used != 0 && !own->base.is_changed && !now->is_provisional &&
      has_same_uniforms(now, &own->base)) {
    return VYRE_OK;
  }
  uint32_t oldest = 0;
  for (uint32_t i = 0; i < VK_ENCODINGS; i++) {
    vk_encoding *encoding = &own->encodings[i];
    if (!encoding->is_provisional && matches(encoding, &own->base)) {
      own->current = i;
      encoding->last_used = ++own->clock;
      *out = encoding;
      /* Host memory may be bound elsewhere. */
      vk_encoding_build_transfers(encoding, &own->base);
      return VYRE_OK;
    }
    if (encoding->is_provisional ||
        (!own->encodings[oldest].is_provisional &&
         encoding->last_used < own->encodings[oldest].last_used)) {
      oldest = i;
    }
  }
  own->current = oldest;
  *out = &own->encodings[oldest];
  return encode(own, *out, st);
}

/* --- running -------------------------------------------------------------- */

/* Completes the dispatches one by one, to find the one that failed. */
static vyre_code complete_each(const vk_command_list *own,
                               const vk_encoding *encoding, const vk_segment *s,
                               size_t *done, vyre_status *st) {
  const vyre__command_list_item *items = own->base.items;
  for (uint32_t i = s->first; i < s->last; i++) {
    if (encoding->dispatches[i]) {
      VYRE_TRY(
          vk_dispatch_complete(encoding->dispatches[i], items[i].launch, st));
    }
    ++*done;
  }
  return VYRE_OK;
}

/* Updates the measured times after a segment. A segment that took far longer
 * than intended is encoded again, in shorter segments. If it has several
 * kernels, the time counts for each of them, because the slow one is not
 * known. */
static void add_timing(const vk_command_list *own, vk_encoding *encoding,
                       const vk_segment *s, uint64_t ns) {
  const vk_device *device = (const vk_device *)own->base.device;
  if (s->pipeline) vk_pipeline_add_timing(s->pipeline, s->groups, ns);
  for (uint32_t i = s->first; !s->pipeline && i < s->last; i++) {
    const vyre__launch *launch = own->base.items[i].launch;
    if (launch)
      vk_pipeline_add_first_timing((vk_pipeline *)launch->pipeline, s->groups,
                                   ns);
  }
  if (ns / 2 <= device->max_submit_ns) return;
  if (s->last - s->first < 2) { /* a single launch may need windows now */
    const vyre__launch *launch = own->base.items[s->first].launch;
    encoding->is_provisional =
        s->pipeline && !vk_launch_fits_submission(s->pipeline, launch);
    return;
  }
  for (uint32_t i = s->first; !s->pipeline && i < s->last; i++) {
    const vyre__launch *launch = own->base.items[i].launch;
    if (!launch) continue;
    vk_pipeline *p = (vk_pipeline *)launch->pipeline;
    vk_pipeline_add_timing(p, vk_launch_groups(p, launch), ns);
  }
  encoding->is_provisional = true;
}

static vyre_code run_segment(const vk_command_list *own, vk_encoding *encoding,
                             const vk_segment *s, size_t *done,
                             vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  if (!s->commands) {
    vyre__launch *launch = own->base.items[s->first].launch;
    VYRE_TRY(vk_launch_run(launch->pipeline, launch, st));
    ++*done;
    return VYRE_OK;
  }
  VYRE_TRY(vk_encoding_write_inputs(encoding, s, st));
  uint64_t start = vyre__clock_ns();
  VYRE_TRY(vk_submit(device, &s->commands, 1, &encoding->submission, st));
  VYRE_TRY(vk_wait(device, &encoding->submission, st));
  add_timing(own, encoding, s, vyre__clock_ns() - start);
  for (uint32_t i = s->checked_first; i < s->checked_last; i++) {
    const vk_dispatch *dispatch = encoding->checked[i];
    if (dispatch->has_unwritten_output ||
        vk_dispatch_end_status(dispatch) != VYRE__SPIRV_ENDED) {
      return complete_each(own, encoding, s, done, st);
    }
  }
  VYRE_TRY(vk_encoding_read_outputs(encoding, s, st));
  *done += s->last - s->first;
  return VYRE_OK;
}

/* Returns true if a replay with the same bindings does not need to read the
 * launches. */
static bool is_reusable(const vk_encoding *encoding) {
  if (encoding->is_provisional) return false;
  for (uint32_t i = 0; i < encoding->segment_count; i++) {
    if (!encoding->segments[i].commands) return false;
  }
  for (uint32_t i = 0; i < encoding->item_count; i++) {
    const vk_dispatch *dispatch = encoding->dispatches[i];
    if (dispatch && dispatch->pipeline->has_encoded_uniforms) return false;
  }
  return true;
}

vyre_code vk_command_list_run(vyre__command_list *list, size_t *done,
                              vyre_status *st) {
  vk_command_list *own = (vk_command_list *)list;
  vk_encoding *encoding;
  *done = 0;
  bool was_reusable = list->is_reusable && !list->is_changed;
  list->is_reusable = false;
  if (was_reusable) {
    encoding = &own->encodings[own->current];
  } else {
    VYRE_TRY(choose_encoding(own, &encoding, st));
  }
  for (uint32_t i = 0; i < encoding->segment_count; i++) {
    vyre_code code =
        run_segment(own, encoding, &encoding->segments[i], done, st);
    if (code == VYRE_OK) continue;
    vk_encoding_clear((vk_device *)list->device, encoding);
    return code;
  }
  list->is_reusable =
      was_reusable ? !encoding->is_provisional : is_reusable(encoding);
  return VYRE_OK;
}

void vk_command_list_deinit(vyre__command_list *list) {
  vk_command_list *own = (vk_command_list *)list;
  for (uint32_t i = 0; i < VK_ENCODINGS; i++) {
    vk_encoding_clear((vk_device *)list->device, &own->encodings[i]);
  }
  vk_device_loop_clear((vk_device *)list->device, &own->loop);
}
