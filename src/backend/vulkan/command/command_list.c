/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts of recordings: all dispatches and copies in as few command buffers as can be,
 * recorded once. Bound otherwise, another take is recorded, and the last few are kept:
 * who goes back and forth between bindings records nothing either. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

/* --- takes -------------------------------------------------------------------------*/

void vk_take_clear(vk_device *device, vk_take *take) {
  if (take->used == 0) return;
  for (uint32_t i = 0; i < take->item_count; i++) {
    if (take->jobs[i]) vk_job_free(take->jobs[i]);
  }
  device->api.DestroyCommandPool(device->handle, take->pool, NULL);
  vk_ticket_finish(device, &take->ticket);
  vyre_arena_deinit(&take->arena);
  *take = (vk_take){0};
}

static void put_copy(const vyre__command_list_item *item, uint64_t key[5]) {
  const vk_range *from = &((const vk_buffer *)item->from)->range,
                 *to = &((const vk_buffer *)item->to)->range;
  key[0] = from->id;
  key[1] = from->offset + item->from_offset;
  key[2] = to->id;
  key[3] = to->offset + item->to_offset;
  key[4] = item->size;
}

static bool is_for(const vk_take *take, const vyre__command_list *piece) {
  if (take->used == 0 || take->item_count != piece->count) return false;
  for (uint32_t i = 0; i < take->item_count; i++) {
    const vyre__command_list_item *item = &piece->items[i];
    uint64_t key[5];
    if (item->launch) {
      if (take->jobs[i] && !vk_job_is_for(take->jobs[i], item->launch)) {
        return false;
      }
      continue;
    }
    put_copy(item, key);
    if (memcmp(key, take->copies[i], sizeof key) != 0) return false;
  }
  return true;
}

/* Bytes that are part of what was recorded change without being bound. */
static bool counts_as_before(const vk_take *take,
                             const vyre__command_list *piece) {
  for (uint32_t i = 0; i < take->item_count; i++) {
    const vk_job *job = take->jobs[i];
    if (job && job->pipeline->has_values &&
        !vk_job_is_for(job, piece->items[i].launch)) {
      return false;
    }
  }
  return true;
}

/* --- bytes -------------------------------------------------------------------------*/

bool vk_take_make_room(vk_take *take) {
  size_t in = 0, out = 0, watched = 0;
  for (uint32_t i = 0; i < take->item_count; i++) {
    const vk_job *job = take->jobs[i];
    if (!job) continue;
    in += job->staged_count + (size_t)job->value_count * job->part_count + 1;
    out += job->staged_count;
    watched++;
  }
  take->in = vyre__arena_array(&take->arena, in, sizeof *take->in);
  take->out = vyre__arena_array(&take->arena, out, sizeof *take->out);
  take->watched = vyre__arena_array(&take->arena, watched, sizeof(vk_job *));
  return take->in && take->out && take->watched;
}

/* Remembers the bytes of a move: a kernel that only reads them leaves them there.
 * The caller's memory may change, so that it is read once. */
static void note_known(vk_move *m) {
  m->is_known = m->from && m->to && m->size <= sizeof m->last;
  if (!m->is_known) return;
  memcpy(m->last, m->from, (size_t)m->size);
  memcpy(m->to, m->last, (size_t)m->size);
}

static void settle_job(vk_take *take, vk_job *job, const vyre__launch *launch) {
  for (uint32_t i = 0; i < job->staged_count; i++) {
    const vk_staged *s = &job->staged[i];
    const vyre__view *view = &launch->views[s->buffer];
    const vk_job *far = s->is_large ? job : NULL;
    unsigned char *near = s->is_large ? NULL : job->host + s->at;
    vk_move *m = &take->in[take->in_count++];
    *m = (vk_move){.to = near,
                   .from = view->begins_zero ? NULL : view->data,
                   .size = s->size,
                   .far = far,
                   .at = s->at};
    if (!s->is_written) {
      note_known(m);
      continue;
    }
    take->out[take->out_count++] = (vk_move){.to = view->data,
                                             .from = near,
                                             .size = s->size,
                                             .far = far,
                                             .at = s->at};
  }
  for (uint32_t i = 0; i < job->value_count; i++) {
    const vk_value *v = &job->values[i];
    const unsigned char *from = launch->views[v->buffer].data;
    for (uint32_t n = 0; !v->from && n < job->part_count; n++) {
      vk_move *m = &take->in[take->in_count++];
      *m = (vk_move){.to = job->host + v->at + n * job->block_stride,
                     .from = from,
                     .size = v->size};
      note_known(m);
      /* All parts get what the first one got. */
      if (n == 0) from = m->is_known ? m->last : m->to;
    }
  }
  if (job->has_status) {
    take->in[take->in_count++] =
        (vk_move){.to = job->host + job->status_at, .size = 4};
  }
  if (job->has_status || job->has_unseen) {
    take->watched[take->watched_count++] = job;
  }
}

void vk_take_settle(vk_take *take, const vyre__command_list *piece) {
  take->in_count = take->out_count = take->watched_count = 0;
  for (uint32_t i = 0; i < take->segment_count; i++) {
    vk_segment *s = &take->segments[i];
    s->in_first = take->in_count;
    s->out_first = take->out_count;
    s->watched_first = take->watched_count;
    for (uint32_t k = s->first; k < s->last; k++) {
      if (!take->jobs[k]) continue;
      settle_job(take, take->jobs[k], piece->items[k].launch);
    }
    s->in_last = take->in_count;
    s->out_last = take->out_count;
    s->watched_last = take->watched_count;
  }
}

vyre_code vk_take_fill(const vk_take *take, const vk_segment *s,
                       vyre_status *st) {
  for (uint32_t i = s->in_first; i < s->in_last; i++) {
    vk_move *m = &take->in[i];
    size_t size = (size_t)m->size;
    if (m->is_known) {
      if (memcmp(m->last, m->from, size) == 0) continue;
      memcpy(m->last, m->from, size);
      memcpy(m->to, m->last, size);
      continue;
    }
    if (m->far) {
      VYRE_TRY(vk_job_upload(m->far, m->at, m->from, m->size, st));
    } else if (m->from) {
      memcpy(m->to, m->from, size);
    } else {
      memset(m->to, 0, size);
    }
  }
  return VYRE_OK;
}

vyre_code vk_take_collect(const vk_take *take, const vk_segment *s,
                          vyre_status *st) {
  for (uint32_t i = s->out_first; i < s->out_last; i++) {
    const vk_move *m = &take->out[i];
    if (m->far) {
      VYRE_TRY(vk_job_download(m->far, m->at, m->to, m->size, st));
    } else {
      memcpy(m->to, m->from, (size_t)m->size);
    }
  }
  return VYRE_OK;
}

/* --- recording ---------------------------------------------------------------------*/

typedef struct recorder {
  vk_device *device;
  const vyre__command_list *piece;
  vk_take *take;
  vk_hazards hazards;
  VkCommandBuffer open; /* that is being recorded */
  VkPipeline bound;     /* in it */
} recorder;

static vyre_code begin_segment(recorder *r, uint32_t item, vyre_status *st) {
  vk_device *device = r->device;
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = r->take->pool,
      .commandBufferCount = 1};
  VkCommandBuffer made;
  VK_TRY(device,
         device->api.AllocateCommandBuffers(device->handle, &info, &made),
         "a command buffer", st);
  VYRE_TRY(vk_commands_begin(device, made, false, st));
  r->open = made;
  r->bound = VK_NULL_HANDLE;
  r->take->segments[r->take->segment_count++] =
      (vk_segment){.first = item, .last = item, .commands = made};
  vk_hazards_reset(&r->hazards);
  return VYRE_OK;
}

static vyre_code end_segment(recorder *r, vyre_status *st) {
  if (!r->open) return VYRE_OK;
  VkCommandBuffer commands = r->open;
  r->open = NULL;
  return vk_commands_end(r->device, commands, true, st);
}

static void put_copy_command(const recorder *r,
                             const vyre__command_list_item *item) {
  const vk_range *from = &((const vk_buffer *)item->from)->range,
                 *to = &((const vk_buffer *)item->to)->range;
  const VkBufferCopy region = {from->offset + item->from_offset,
                               to->offset + item->to_offset, item->size};
  if (item->size == 0) return;
  r->device->api.CmdCopyBuffer(r->open, from->buffer, to->buffer, 1, &region);
}

/* Bytes of the host that a launch has, all of which its job would have, too. */
static uint64_t host_bytes(const vyre__launch *launch) {
  const vk_plan *plan = &((const vk_pipeline *)launch->pipeline)->plan;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound || launch->views[i].buffer) continue;
    bytes += (uint64_t)launch->views[i].length * plan->buffers[i].unit;
  }
  return bytes;
}

enum { MOST_HOST_BYTES = 16 << 20 };

/* Takes a job, unless the launch has to be by itself: it is run in parts, or recorded
 * with bytes that are not there yet, or has many; or it cannot be recorded, and says
 * why when its turn comes. */
static bool take_job(recorder *r, uint32_t i) {
  vyre__launch *launch = r->piece->items[i].launch, seen = *launch;
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  return vk_check(p, launch, NULL) == VYRE_OK &&
         vk_see_uniforms(p, launch, VK_BY_VALUE, false, &seen, NULL) ==
             VYRE_OK &&
         vk_is_simple(&seen) && !vk_hazards_spoil(&r->hazards, launch) &&
         host_bytes(launch) <= MOST_HOST_BYTES &&
         vk_job_take(p, &seen, VK_JOB_JOINED, &r->take->jobs[i], NULL) ==
             VYRE_OK;
}

static vyre_code put_alone(recorder *r, uint32_t i, vyre_status *st) {
  const vyre__command_list_item *item = &r->piece->items[i];
  const vk_pipeline *p = (const vk_pipeline *)item->launch->pipeline;
  vk_take *take = r->take;
  VYRE_TRY(end_segment(r, st));
  vk_hazards_note(&r->hazards, item); /* what it writes, others may read */
  take->is_provisional |= atomic_load(&p->group_ps) == 0;
  take->segments[take->segment_count++] =
      (vk_segment){.first = i, .last = i + 1};
  return VYRE_OK;
}

/* Whose time it is that the segment takes. */
static void count_groups(vk_segment *s, const vyre__launch *launch) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  s->only = s->groups == 0 || s->only == p ? p : NULL;
  s->groups += vk_groups_of(p, launch);
}

static vyre_code add_item(recorder *r, uint32_t i, vyre_status *st) {
  const vyre__command_list_item *item = &r->piece->items[i];
  vk_take *take = r->take;
  if (item->launch && !take_job(r, i)) return put_alone(r, i, st);
  if (!r->open || !vk_hazards_admit(&r->hazards, item, false)) {
    take->is_provisional |= r->open && vk_hazards_guess(&r->hazards, item);
    VYRE_TRY(end_segment(r, st));
    VYRE_TRY(begin_segment(r, i, st));
  }
  if (vk_hazards_meet(&r->hazards, item)) {
    vk_cmd_barrier(r->device, r->open);
    vk_hazards_pass(&r->hazards);
    atomic_fetch_add_explicit(&r->device->counts.barriers, 1,
                              memory_order_relaxed);
  }
  vk_hazards_note(&r->hazards, item);
  vk_segment *s = &take->segments[take->segment_count - 1];
  s->last = i + 1;
  if (!item->launch) {
    put_copy(item, take->copies[i]);
    put_copy_command(r, item);
    return VYRE_OK;
  }
  count_groups(s, item->launch);
  return vk_job_put_all(take->jobs[i], item->launch, r->open, &r->bound, st);
}

static vyre_code make_room(recorder *r, vyre_arena *scratch, vyre_status *st) {
  vk_take *take = r->take;
  size_t count = r->piece->count, views = 0;
  for (size_t i = 0; i < count; i++) {
    const vyre__launch *launch = r->piece->items[i].launch;
    views += 2;
    if (!launch) continue;
    views += ((const vk_pipeline *)launch->pipeline)->plan.buffer_count;
  }
  take->item_count = (uint32_t)count;
  take->jobs = vyre__arena_array(&take->arena, count, sizeof *take->jobs);
  take->copies = vyre__arena_array(&take->arena, count, sizeof *take->copies);
  take->segments =
      vyre__arena_array(&take->arena, count, sizeof *take->segments);
  if (!take->jobs || !take->copies || !take->segments ||
      !vk_hazards_init(&r->hazards, views, scratch)) {
    take->item_count = 0;
    return vyre__no_memory(st, "vulkan", "commands of a recording", count);
  }
  memset(take->jobs, 0, count * sizeof *take->jobs);
  memset(take->copies, 0, count * sizeof *take->copies);
  return VYRE_OK;
}

static vyre_code record_in(recorder *r, vyre_arena *scratch, vyre_status *st) {
  vk_device *device = r->device;
  VYRE_TRY(make_room(r, scratch, st));
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .queueFamilyIndex = device->family};
  VkResult result = device->api.CreateCommandPool(device->handle, &pool, NULL,
                                                  &r->take->pool);
  if (result != VK_SUCCESS) r->take->pool = VK_NULL_HANDLE;
  VK_TRY(device, result, "a command pool", st);
  for (uint32_t i = 0; i < r->piece->count; i++) {
    VYRE_TRY(add_item(r, i, st));
  }
  VYRE_TRY(end_segment(r, st));
  if (!vk_take_make_room(r->take)) {
    return vyre__no_memory(st, "vulkan", "bytes of a recording",
                           r->piece->count);
  }
  vk_take_settle(r->take, r->piece);
  return VYRE_OK;
}

static vyre_code record(vk_piece *own, vk_take *take, vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  recorder r = {.device = device, .piece = &own->base, .take = take};
  vyre_arena scratch;
  vk_take_clear(device, take);
  take->used = ++own->clock;
  vyre_arena_init(&take->arena, device->base.allocator);
  vyre_arena_init(&scratch, device->base.allocator);
  vyre_code code = record_in(&r, &scratch, st);
  vyre_arena_deinit(&scratch);
  if (code != VYRE_OK) vk_take_clear(device, take);
  return code;
}

/* The take for what is bound: the last one, one that is kept, or the oldest, anew. */
static vyre_code choose(vk_piece *own, vk_take **out, vyre_status *st) {
  vk_take *now = &own->takes[own->current];
  *out = now;
  if (now->used != 0 && !own->base.is_changed && !now->is_provisional &&
      counts_as_before(now, &own->base)) {
    return VYRE_OK;
  }
  uint32_t oldest = 0;
  for (uint32_t i = 0; i < VK_TAKES; i++) {
    vk_take *take = &own->takes[i];
    if (!take->is_provisional && is_for(take, &own->base)) {
      own->current = i;
      take->used = ++own->clock;
      *out = take;
      vk_take_settle(take, &own->base); /* bytes of the host may be others */
      return VYRE_OK;
    }
    if (take->is_provisional || (!own->takes[oldest].is_provisional &&
                                 take->used < own->takes[oldest].used)) {
      oldest = i;
    }
  }
  own->current = oldest;
  *out = &own->takes[oldest];
  return record(own, *out, st);
}

/* --- running -----------------------------------------------------------------------*/

/* Which one it was, after one that may fail did. */
static vyre_code finish_each(const vk_piece *own, const vk_take *take,
                             const vk_segment *s, size_t *done,
                             vyre_status *st) {
  const vyre__command_list_item *items = own->base.items;
  for (uint32_t i = s->first; i < s->last; i++) {
    if (take->jobs[i]) {
      VYRE_TRY(vk_job_finish(take->jobs[i], items[i].launch, st));
    }
    ++*done;
  }
  return VYRE_OK;
}

/* A segment that took far longer than it may is recorded anew, in shorter ones: which
 * of several kernels it was, is not known, so that all are blamed. */
static void learn(const vk_piece *own, vk_take *take, const vk_segment *s,
                  uint64_t ns) {
  const vk_device *device = (const vk_device *)own->base.device;
  if (s->only) vk_learn(s->only, s->groups, ns);
  for (uint32_t i = s->first; !s->only && i < s->last; i++) {
    const vyre__launch *launch = own->base.items[i].launch;
    if (launch) vk_learn_first((vk_pipeline *)launch->pipeline, s->groups, ns);
  }
  if (ns / 2 <= device->most_ns) return;
  if (s->last - s->first < 2) { /* it may be cut by now */
    const vyre__launch *launch = own->base.items[s->first].launch;
    take->is_provisional = s->only && !vk_is_whole(s->only, launch);
    return;
  }
  for (uint32_t i = s->first; !s->only && i < s->last; i++) {
    const vyre__launch *launch = own->base.items[i].launch;
    if (!launch) continue;
    vk_pipeline *p = (vk_pipeline *)launch->pipeline;
    vk_learn(p, vk_groups_of(p, launch), ns);
  }
  take->is_provisional = true;
}

static vyre_code run_segment(const vk_piece *own, vk_take *take,
                             const vk_segment *s, size_t *done,
                             vyre_status *st) {
  vk_device *device = (vk_device *)own->base.device;
  if (!s->commands) {
    vyre__launch *launch = own->base.items[s->first].launch;
    VYRE_TRY(vk_run(launch->pipeline, launch, st));
    ++*done;
    return VYRE_OK;
  }
  VYRE_TRY(vk_take_fill(take, s, st));
  uint64_t start = vyre__clock_ns();
  VYRE_TRY(vk_submit(device, &s->commands, 1, &take->ticket, st));
  VYRE_TRY(vk_wait(device, &take->ticket, st));
  learn(own, take, s, vyre__clock_ns() - start);
  for (uint32_t i = s->watched_first; i < s->watched_last; i++) {
    const vk_job *job = take->watched[i];
    if (job->has_unseen || vk_job_end(job) != VYRE__SPIRV_ENDED) {
      return finish_each(own, take, s, done, st);
    }
  }
  VYRE_TRY(vk_take_collect(take, s, st));
  *done += s->last - s->first;
  return VYRE_OK;
}

/* Whether replays of the same bindings need nothing of the launches. */
static bool is_steady(const vk_take *take) {
  if (take->is_provisional) return false;
  for (uint32_t i = 0; i < take->segment_count; i++) {
    if (!take->segments[i].commands) return false;
  }
  for (uint32_t i = 0; i < take->item_count; i++) {
    const vk_job *job = take->jobs[i];
    if (job && job->pipeline->has_values) return false;
  }
  return true;
}

vyre_code vk_piece_run(vyre__command_list *piece, size_t *done,
                       vyre_status *st) {
  vk_piece *own = (vk_piece *)piece;
  vk_take *take;
  *done = 0;
  bool was_steady = piece->is_reusable && !piece->is_changed;
  piece->is_reusable = false;
  if (was_steady) {
    take = &own->takes[own->current];
  } else {
    VYRE_TRY(choose(own, &take, st));
  }
  for (uint32_t i = 0; i < take->segment_count; i++) {
    vyre_code code = run_segment(own, take, &take->segments[i], done, st);
    if (code == VYRE_OK) continue;
    vk_take_clear((vk_device *)piece->device, take);
    return code;
  }
  piece->is_reusable = was_steady ? !take->is_provisional : is_steady(take);
  return VYRE_OK;
}

void vk_piece_finish(vyre__command_list *piece) {
  vk_piece *own = (vk_piece *)piece;
  for (uint32_t i = 0; i < VK_TAKES; i++) {
    vk_take_clear((vk_device *)piece->device, &own->takes[i]);
  }
  vk_loop_clear((vk_device *)piece->device, &own->loop);
}
