/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes command lists. All dispatches and copies are recorded once, in as few
 * command buffers as possible, with barriers between those that share device
 * buffers. Other bindings need another encoding; the last few are kept, so that
 * callers that alternate between bindings record nothing. */
#include "backend/vulkan/command/command_list.h"

#include <string.h>

#include "backend/vulkan/command/device_loop.h"
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/encoder.h"
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

static void copy_key(const vyre__command_copy *copy, uint64_t key[5]) {
  const vk_range *from = &((const vk_buffer *)copy->from)->range,
                 *to = &((const vk_buffer *)copy->to)->range;
  key[0] = from->id;
  key[1] = from->offset + copy->from_offset;
  key[2] = to->id;
  key[3] = to->offset + copy->to_offset;
  key[4] = copy->size;
}

bool vk_encoding_matches(const vk_encoding *encoding,
                         const vk_command_list *own, bool uniforms_only) {
  if (encoding->last_used == 0 || encoding->is_provisional ||
      encoding->command_count != own->count)
    return false;
  for (uint32_t i = 0; i < encoding->command_count; i++) {
    const vyre__command *command = &own->commands[i];
    const vk_dispatch *dispatch = encoding->dispatches[i];
    uint64_t key[5];
    if (i + 4 < encoding->command_count && encoding->dispatches[i + 4]) {
      __builtin_prefetch(encoding->dispatches[i + 4]);
      __builtin_prefetch(encoding->dispatches[i + 4] + 1); /* its key */
    }
    if (command->launch) {
      if (!dispatch ||
          (uniforms_only && !dispatch->pipeline->has_encoded_uniforms)) {
        continue;
      }
      if (&dispatch->pipeline->base != command->launch->pipeline ||
          !vk_dispatch_matches(dispatch, command->launch)) {
        return false;
      }
    } else if (!uniforms_only) {
      copy_key(&command->copy, key);
      if (memcmp(key, encoding->copies[i], sizeof key) != 0) return false;
    }
  }
  return true;
}

/* --- encoding ------------------------------------------------------------- */

vyre_code vk_encoding_init(const vk_command_list *own, vk_encoding *encoding,
                           vk_hazards *hazards, vyre_arena *scratch,
                           vyre_status *st) {
  const vk_device *device = own->device;
  size_t count = own->count;
  vyre_arena *arena = &encoding->arena;
  vyre_arena_init(arena, device->base.allocator);
  encoding->last_used = 1;
  encoding->dispatches = vyre__arena_array(arena, count, sizeof(vk_dispatch *));
  encoding->copies = vyre__arena_array(arena, count, sizeof *encoding->copies);
  encoding->segments =
      vyre__arena_array(arena, count, sizeof *encoding->segments);
  if (!encoding->dispatches || !encoding->copies || !encoding->segments ||
      !vk_hazards_init(hazards, own->commands, count, own->is_independent,
                       scratch)) {
    return vyre__no_memory(st, "vulkan", "commands", count);
  }
  memset(encoding->dispatches, 0, count * sizeof(vk_dispatch *));
  encoding->command_count = (uint32_t)count;
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .queueFamilyIndex = device->family};
  VkResult result = device->api.CreateCommandPool(device->handle, &pool, NULL,
                                                  &encoding->pool);
  if (result != VK_SUCCESS) encoding->pool = VK_NULL_HANDLE;
  VK_TRY(own->device, result, "command pool creation", st);
  return VYRE_OK;
}

vyre_code vk_encoder_begin_segment(vk_encoder *r, uint32_t item,
                                   vyre_status *st) {
  vk_device *device = r->device;
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = r->encoding->pool,
      .commandBufferCount = 1};
  VkCommandBuffer commands;
  VK_TRY(device,
         device->api.AllocateCommandBuffers(device->handle, &info, &commands),
         "command buffer creation", st);
  VYRE_TRY(vk_command_buffer_begin(device, commands, st));
  r->commands = commands;
  r->bound = VK_NULL_HANDLE;
  r->encoding->segments[r->encoding->segment_count++] =
      (vk_segment){.first = item, .last = item, .commands = commands};
  vk_hazards_reset(&r->hazards);
  return VYRE_OK;
}

vyre_code vk_encoder_end_segment(vk_encoder *r, vyre_status *st) {
  if (!r->commands) return VYRE_OK;
  VkCommandBuffer commands = r->commands;
  r->commands = NULL;
  return vk_command_buffer_end(r->device, commands, true, st);
}

static void record_copy(const vk_encoder *r, const vyre__command_copy *copy) {
  const vk_range *from = &((const vk_buffer *)copy->from)->range,
                 *to = &((const vk_buffer *)copy->to)->range;
  const VkBufferCopy region = {from->offset + copy->from_offset,
                               to->offset + copy->to_offset, copy->size};
  if (copy->size == 0) return;
  r->device->api.CmdCopyBuffer(r->commands, from->buffer, to->buffer, 1,
                               &region);
}

/* Returns the host bytes that a launch binds or reads back; its dispatch needs
 * as much memory. */
static uint64_t host_bytes(const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound || launch->views[i].buffer) continue;
    bytes += (uint64_t)launch->views[i].length * plan->buffers[i].unit;
  }
  for (uint32_t i = 0; i < launch->readback_count; i++) {
    bytes += launch->readbacks[i].size;
  }
  return bytes;
}

enum {
  MAX_HOST_BYTES = 16 << 20, /* that an encoded launch binds */
  MAX_BYTES = 256 << 20      /* memory of the dispatches of an encoding */
};

static void add_bytes(const vk_encoder *r, uint64_t bytes) {
  r->encoding->bytes += bytes;
  atomic_fetch_add_explicit(&r->device->list_bytes, bytes,
                            memory_order_relaxed);
}

/* Encodes a launch. Returns false if it must run separately: it needs windows,
 * depends on bytes that an earlier command writes, or binds much host memory.
 * It also returns false when the encoding has reached MAX_BYTES; the encoding
 * then ends before this launch. */
bool vk_encoder_try(vk_encoder *r, uint32_t i) {
  vyre__launch *launch = r->own->commands[i].launch, snapshot = *launch;
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  vk_dispatch **dispatch = &r->encoding->dispatches[i];
  if (vk_snapshot_uniforms(p, launch, VK_UNIFORM_ENCODED, false, &snapshot,
                           NULL) != VYRE_OK ||
      !vk_launch_is_encodable(&snapshot) ||
      vk_hazards_change_uniforms(&r->hazards, launch) ||
      host_bytes(launch) > MAX_HOST_BYTES) {
    return false;
  }
  if (r->encoding->bytes <= MAX_BYTES &&
      vk_dispatch_acquire(p, &snapshot, VK_DISPATCH_INLINE, dispatch, NULL) ==
          VYRE_OK) {
    add_bytes(r, (*dispatch)->memory.size + (*dispatch)->staging.size);
    return true;
  }
  r->encoding->is_partial = i > 0;
  return false;
}

vyre_code vk_encoder_add_separate(vk_encoder *r, uint32_t i, vyre_status *st) {
  const vyre__command *command = &r->own->commands[i];
  const vk_pipeline *p = (const vk_pipeline *)command->launch->pipeline;
  vk_encoding *encoding = r->encoding;
  VYRE_TRY(vk_encoder_end_segment(r, st));
  vk_hazards_add(&r->hazards, command); /* later ones may read what it writes */
  encoding->is_provisional |= atomic_load(&p->group_ps) == 0;
  encoding->segments[encoding->segment_count++] =
      (vk_segment){.first = i, .last = i + 1};
  return VYRE_OK;
}

/* Adds the workgroups of a launch to its segment, to measure their time
 * later. */
void vk_encoder_count(vk_segment *s, const vyre__launch *launch) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  s->pipeline = s->groups == 0 || s->pipeline == p ? p : NULL;
  s->groups += vk_launch_groups(p, launch);
}

static vyre_code add_command(vk_encoder *r, uint32_t i, vyre_status *st) {
  const vyre__command *command = &r->own->commands[i];
  vk_encoding *encoding = r->encoding;
  if (command->launch && !vk_encoder_try(r, i)) {
    return encoding->is_partial ? VYRE_OK : vk_encoder_add_separate(r, i, st);
  }
  if (!r->commands || !vk_hazards_can_join(&r->hazards, command, false)) {
    encoding->is_provisional |=
        r->commands && vk_hazards_is_estimate(&r->hazards, command);
    VYRE_TRY(vk_encoder_end_segment(r, st));
    VYRE_TRY(vk_encoder_begin_segment(r, i, st));
  }
  if (vk_hazards_need_barrier(&r->hazards, command)) {
    vk_cmd_barrier(r->device, r->commands);
    vk_hazards_add_barrier(&r->hazards);
    atomic_fetch_add_explicit(&r->device->counters.barriers, 1,
                              memory_order_relaxed);
  }
  vk_hazards_add(&r->hazards, command);
  vk_segment *s = &encoding->segments[encoding->segment_count - 1];
  s->last = i + 1;
  if (!command->launch) {
    copy_key(&command->copy, encoding->copies[i]);
    record_copy(r, &command->copy);
    return VYRE_OK;
  }
  vk_encoder_count(s, command->launch);
  return vk_dispatch_record_all(encoding->dispatches[i], command->launch,
                                r->commands, &r->bound, st);
}

static vyre_code encode_commands(vk_encoder *r, vyre_status *st) {
  vk_encoding *encoding = r->encoding;
  if (r->own->groups) {
    VYRE_TRY(vk_encoder_add_groups(r, st));
  } else {
    for (uint32_t i = 0; i < encoding->command_count; i++) {
      VYRE_TRY(add_command(r, i, st));
      if (encoding->is_partial) encoding->command_count = i;
    }
  }
  VYRE_TRY(vk_encoder_end_segment(r, st));
  if (!vk_encoding_alloc_transfers(encoding)) {
    return vyre__no_memory(st, "vulkan", "commands", encoding->command_count);
  }
  vk_encoding_build_transfers(encoding, r->own->commands);
  return VYRE_OK;
}

static vyre_code encode(vk_command_list *own, vk_encoding *encoding,
                        vyre_status *st) {
  vk_device *device = own->device;
  vk_encoder r = {.device = device, .own = own, .encoding = encoding};
  vyre_arena scratch;
  vk_encoding_clear(device, encoding);
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code = vk_encoding_init(own, encoding, &r.hazards, &scratch, st);
  encoding->last_used = ++own->clock;
  if (code == VYRE_OK) code = encode_commands(&r, st);
  vyre_arena_deinit(&scratch);
  if (code != VYRE_OK) vk_encoding_clear(device, encoding);
  return code;
}

/* Returns the encoding that matches the commands, or the oldest one. */
static vk_encoding *find_encoding(vk_command_list *own, bool *is_match) {
  vk_encoding *oldest = &own->encodings[0];
  *is_match = true;
  for (uint32_t i = 0; i < VK_ENCODINGS; i++) {
    vk_encoding *encoding = &own->encodings[i];
    if (vk_encoding_matches(encoding, own, false)) return encoding;
    if (encoding->is_provisional ||
        (!oldest->is_provisional && encoding->last_used < oldest->last_used)) {
      oldest = encoding;
    }
  }
  *is_match = false;
  return oldest;
}

/* --- the lists of a device ------------------------------------------------ */

/* Removes a list from those of the device. The caller holds list_lock. */
static void unlink_list(vk_command_list *own) {
  vk_device *device = own->device;
  *(own->older ? &own->older->newer : &device->oldest_list) = own->newer;
  *(own->newer ? &own->newer->older : &device->newest_list) = own->older;
}

/* Adds a list as the newest one. The caller holds list_lock. */
static void link_list(vk_command_list *own) {
  vk_device *device = own->device;
  own->older = device->newest_list;
  own->newer = NULL;
  *(own->older ? &own->older->newer : &device->oldest_list) = own;
  device->newest_list = own;
}

static bool has_encodings(const vk_command_list *own) {
  bool has = own->loop.encoding.last_used != 0;
  for (uint32_t i = 0; i < VK_ENCODINGS; i++) {
    has |= own->encodings[i].last_used != 0;
  }
  return has;
}

static void clear_encodings(vk_command_list *own) {
  for (uint32_t i = 0; i < VK_ENCODINGS; i++) {
    vk_encoding_clear(own->device, &own->encodings[i]);
  }
}

/* The caller may execute a list, whose lock it holds then. */
bool vk_command_lists_trim(vk_device *device, uint64_t max_bytes) {
  bool has_freed = false;
  pthread_mutex_lock(&device->list_lock);
  for (vk_command_list *own = device->oldest_list; own; own = own->newer) {
    if (max_bytes > 0 && atomic_load(&device->list_bytes) <= max_bytes) break;
    if (pthread_mutex_trylock(&own->lock) != 0) continue;
    has_freed |= has_encodings(own);
    clear_encodings(own);
    vk_device_loop_clear(device, &own->loop);
    pthread_mutex_unlock(&own->lock);
  }
  pthread_mutex_unlock(&device->list_lock);
  return has_freed;
}

/* Makes a list that was encoded now the newest one, and frees encodings of
 * others above the limit. */
static void limit_bytes(vk_command_list *own) {
  vk_device *device = own->device;
  pthread_mutex_lock(&device->list_lock);
  unlink_list(own);
  link_list(own);
  pthread_mutex_unlock(&device->list_lock);
  if (atomic_load(&device->list_bytes) > device->max_idle_bytes) {
    (void)vk_command_lists_trim(device, device->max_idle_bytes);
  }
}

/* Chooses the encoding for the current bindings: the last one, another match,
 * or the oldest one, encoded again. */
static vyre_code choose_encoding(vk_command_list *own, uint64_t version,
                                 size_t first, vk_encoding **out,
                                 vyre_status *st) {
  bool is_match;
  *out = &own->encodings[own->current];
  if ((*out)->version == version && (*out)->first == first &&
      vk_encoding_matches(*out, own, true)) {
    return VYRE_OK;
  }
  *out = find_encoding(own, &is_match);
  own->current = (uint32_t)(*out - own->encodings);
  if (is_match) {
    (*out)->last_used = ++own->clock;
    /* Host memory may be bound elsewhere. */
    if ((*out)->in_count + (*out)->out_count > 0) {
      vk_encoding_build_transfers(*out, own->commands);
    }
  } else {
    VYRE_TRY(encode(own, *out, st));
    limit_bytes(own);
  }
  (*out)->version = version;
  (*out)->first = first;
  return VYRE_OK;
}

/* --- running -------------------------------------------------------------- */

/* Completes the dispatches one by one, to find the one that failed. */
static vyre_code complete_each(const vk_command_list *own,
                               const vk_encoding *encoding, const vk_segment *s,
                               size_t *done, vyre_status *st) {
  const vyre__command *commands = own->commands;
  for (uint32_t i = s->first; i < s->last; i++) {
    if (encoding->dispatches[i]) {
      VYRE_TRY(vk_dispatch_complete(encoding->dispatches[i], commands[i].launch,
                                    st));
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
  const vk_device *device = own->device;
  if (s->pipeline) vk_pipeline_add_timing(s->pipeline, s->groups, ns);
  for (uint32_t i = s->first; !s->pipeline && i < s->last; i++) {
    const vyre__launch *launch = own->commands[i].launch;
    if (launch)
      vk_pipeline_add_first_timing((vk_pipeline *)launch->pipeline, s->groups,
                                   ns);
  }
  if (ns / 2 <= device->max_submit_ns) return;
  if (s->last - s->first < 2) { /* a single launch may need windows now */
    const vyre__launch *launch = own->commands[s->first].launch;
    encoding->is_provisional =
        s->pipeline && !vk_launch_fits_submission(s->pipeline, launch);
    return;
  }
  for (uint32_t i = s->first; !s->pipeline && i < s->last; i++) {
    const vyre__launch *launch = own->commands[i].launch;
    if (!launch) continue;
    vk_pipeline *p = (vk_pipeline *)launch->pipeline;
    vk_pipeline_add_timing(p, vk_launch_groups(p, launch), ns);
  }
  encoding->is_provisional = true;
}

/* Counts a submission of a wave graph, and the wait for it. */
static void count_submission(const vk_command_list *own) {
  if (!own->groups) return;
  own->groups->submissions++;
  own->groups->waits++;
}

static vyre_code run_segment(const vk_command_list *own, vk_encoding *encoding,
                             const vk_segment *s, size_t *done,
                             vyre_status *st) {
  vk_device *device = own->device;
  if (!s->commands) {
    vyre__launch *launch = own->commands[s->first].launch;
    VYRE_TRY(vk_launch_run(launch->pipeline, launch, st));
    count_submission(own);
    ++*done;
    return VYRE_OK;
  }
  VYRE_TRY(vk_encoding_write_inputs(encoding, s, st));
  count_submission(own);
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
  for (uint32_t i = 0; i < encoding->command_count; i++) {
    const vk_dispatch *dispatch = encoding->dispatches[i];
    if (dispatch && dispatch->pipeline->has_encoded_uniforms) return false;
  }
  return true;
}

static vk_command_list *get_encoded(vyre__command_list *list) {
  if (list->encoded) return list->encoded;
  vk_command_list *own =
      vyre__alloc_zeroed(list->device->allocator, sizeof *own);
  if (!own) return NULL;
  own->device = (vk_device *)list->device;
  own->is_independent = list->is_independent;
  pthread_mutex_init(&own->lock, NULL);
  pthread_mutex_lock(&own->device->list_lock);
  link_list(own);
  pthread_mutex_unlock(&own->device->list_lock);
  list->encoded = own;
  return own;
}

/* Executes the range of launches and copies that @p own has. */
static vyre_code execute_range(vk_command_list *own, vyre__command_list *list,
                               size_t first, size_t *done, vyre_status *st) {
  vk_encoding *encoding = &own->encodings[own->current];
  bool was_reusable = list->is_reusable && own->count == list->count &&
                      encoding->version == list->version &&
                      encoding->first == first &&
                      encoding->command_count == own->count;
  list->is_reusable = false;
  if (!was_reusable) {
    VYRE_TRY(choose_encoding(own, list->version, first, &encoding, st));
  }
  for (uint32_t i = 0; i < encoding->segment_count; i++) {
    vyre_code code =
        run_segment(own, encoding, &encoding->segments[i], done, st);
    if (code == VYRE_OK) continue;
    vk_encoding_clear(own->device, encoding);
    return code;
  }
  if (own->groups) own->groups->barriers += encoding->barriers;
  /* The next commands need the memory. */
  if (encoding->is_partial) {
    clear_encodings(own);
    return VYRE_OK;
  }
  list->is_reusable =
      own->count == list->count &&
      (was_reusable ? !encoding->is_provisional : is_reusable(encoding));
  return VYRE_OK;
}

static vyre_code execute_locked(vk_command_list *own, vyre__command_list *list,
                                size_t first, size_t end, size_t *done,
                                vyre_status *st) {
  vyre__command *commands = &list->commands[first];
  bool is_loop = commands[0].kind == VYRE__COMMAND_LOOP, is_taken;
  own->commands = commands + is_loop;
  own->count = end - first - is_loop;
  own->groups = list->groups;
  own->first = first;
  if (!is_loop) return execute_range(own, list, first, done, st);
  vyre_code code =
      vk_loop_execute(own, list->version, &commands[0].loop, &is_taken, st);
  if (code == VYRE_OK && is_taken) *done = end - first;
  return code;
}

vyre_code vk_execute(vyre__command_list *list, size_t first, size_t end,
                     size_t *done, vyre_status *st) {
  if (list->version == 0) {
    return vyre__execute_each(list, first, end, vk_launch_run, done, st);
  }
  vk_command_list *own = get_encoded(list);
  *done = 0;
  if (!own) return vyre__no_memory(st, "vulkan", "command lists", 1);
  pthread_mutex_lock(&own->lock);
  vyre_code code = execute_locked(own, list, first, end, done, st);
  pthread_mutex_unlock(&own->lock);
  return code;
}

void vk_list_release(vyre__command_list *list) {
  vk_command_list *own = list->encoded;
  pthread_mutex_lock(&own->device->list_lock);
  unlink_list(own);
  pthread_mutex_unlock(&own->device->list_lock);
  clear_encodings(own);
  vk_device_loop_clear(own->device, &own->loop);
  pthread_mutex_destroy(&own->lock);
  vyre__resize(list->device->allocator, own, sizeof *own, 0);
  list->encoded = NULL;
}
