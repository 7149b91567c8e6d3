/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Jobs: launches as they were recorded, kept by what they were recorded for. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"

static vk_device *device_of(const vk_job *job) {
  return (vk_device *)job->pipeline->base.device;
}

/* --- keys ----------------------------------------------------------------------------*/

enum { KEY_ON_STACK = 3 + 3 * 32 };

typedef struct key {
  uint64_t *words, stack[KEY_ON_STACK];
  size_t count;
  uint64_t hash;
} key;

static void put(key *k, uint64_t word) {
  k->words[k->count++] = word;
  k->hash = (k->hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  k->hash ^= k->hash >> 29;
}

static uint64_t bytes_of(const vk_plan *plan, const vyre__launch *launch,
                         uint32_t buffer) {
  return (uint64_t)launch->views[buffer].length * plan->buffers[buffer].unit;
}

static size_t key_room(const vk_pipeline *p, const vyre__launch *launch) {
  const vk_plan *plan = &p->plan;
  size_t words = 3 + 3 * (size_t)plan->buffer_count;
  for (uint32_t i = 0; p->has_values && i < plan->buffer_count; i++) {
    if (!(p->values[i] & VK_BY_VALUE)) continue;
    words += bytes_of(plan, launch, i) / 8 + 1;
  }
  return words;
}

static void put_bytes(key *k, const unsigned char *data, uint64_t size) {
  for (uint64_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    memcpy(&word, data + at, size - at < 8 ? (size_t)(size - at) : 8);
    put(k, word);
  }
}

static uint32_t fuel_of(const vyre__launch *launch) {
  uint64_t most = launch->max_loop_iterations;
  return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

/* Makes the key of a launch. Bytes of the caller that are part of it are read here
 * and nowhere else: what is recorded comes from the key, since the caller's memory
 * may have changed since. */
static bool make_key(const vk_pipeline *p, const vyre__launch *launch,
                     unsigned flags, key *k) {
  const vk_plan *plan = &p->plan;
  size_t room = key_room(p, launch);
  k->words = k->stack;
  k->count = 0;
  k->hash = 0;
  if (room > KEY_ON_STACK) {
    k->words = vyre__arena_array(launch->scratch, room, sizeof *k->words);
    if (!k->words) return false;
  }
  put(k, (uint64_t)launch->grid[1] << 32 | launch->grid[0]);
  put(k, (uint64_t)flags << 32 | launch->grid[2]);
  put(k, fuel_of(launch));
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__view *view = &launch->views[i];
    if (!plan->buffers[i].is_bound) continue;
    if (!view->buffer) {
      put(k, view->length);
    } else {
      const vk_range *range = &((const vk_buffer *)view->buffer)->range;
      put(k, (uint64_t)(view->begins_zero ? 3 : 2) << 32 | view->length);
      put(k, range->id);
      put(k, range->offset + view->offset);
    }
    if (p->values[i] & VK_BY_VALUE && view->data) {
      put_bytes(k, view->data, bytes_of(plan, launch, i));
    }
  }
  return true;
}

/* Finds the bytes of uniforms in the key, as make_key has put them. */
static void find_bytes(vk_job *job, const vyre__launch *launch) {
  const vk_pipeline *p = job->pipeline;
  uint32_t at = 3;
  for (uint32_t i = 0; i < p->plan.buffer_count; i++) {
    const vyre__view *view = &launch->views[i];
    if (!p->plan.buffers[i].is_bound) continue;
    at += view->buffer ? 3 : 1;
    if (!(p->values[i] & VK_BY_VALUE) || !view->data) continue;
    job->bytes_at[i] = at;
    at += (uint32_t)((bytes_of(&p->plan, launch, i) + 7) / 8);
  }
}

/* Makes @p out a copy of the launch that has the bytes of the job's key. */
static vyre_code see_bytes(const vk_job *job, const vyre__launch *launch,
                           vyre__launch *out, vyre_status *st) {
  const vk_pipeline *p = job->pipeline;
  size_t count = p->base.program->buffer_count;
  *out = *launch;
  if (!p->has_values) return VYRE_OK;
  vyre__view *views = vyre__arena_array(launch->scratch, count, sizeof *views);
  if (!views) return vyre__no_memory(st, "vulkan", "buffers", count);
  memcpy(views, launch->views, count * sizeof *views);
  for (size_t i = 0; i < count; i++) {
    if (!job->bytes_at[i]) continue;
    views[i].data = (unsigned char *)(uintptr_t)(job->key + job->bytes_at[i]);
  }
  out->views = views;
  return VYRE_OK;
}

/* --- what is kept ----------------------------------------------------------------------*/

static bool is_same(const vk_job *job, const key *k) {
  return job->hash == k->hash && job->key_count == k->count &&
         memcmp(job->key, k->words, k->count * sizeof *k->words) == 0;
}

static void unlink_job(vk_pipeline *p, vk_job *job) {
  vk_job **at = &p->buckets[job->hash % VK_BUCKETS];
  while (*at != job) at = &(*at)->next_in_bucket;
  *at = job->next_in_bucket;
  *(job->older ? &job->older->newer : &p->oldest) = job->newer;
  *(job->newer ? &job->newer->older : &p->newest) = job->older;
  p->idle--;
  p->idle_bytes -= job->memory.size;
}

static vk_job *find_job(vk_pipeline *p, const key *k) {
  pthread_mutex_lock(&p->lock);
  vk_job *job = p->buckets[k->hash % VK_BUCKETS];
  while (job && !is_same(job, k)) job = job->next_in_bucket;
  if (job) unlink_job(p, job);
  pthread_mutex_unlock(&p->lock);
  return job;
}

static void free_list(vk_job *first) {
  while (first) {
    vk_job *job = first;
    first = job->newer;
    vk_job_free(job);
  }
}

void vk_job_give(vk_job *job) {
  vk_pipeline *p = job->pipeline;
  uint64_t most = device_of(job)->most_idle;
  vk_job *gone = NULL; /* a list */
  pthread_mutex_lock(&p->lock);
  vk_job **bucket = &p->buckets[job->hash % VK_BUCKETS];
  job->next_in_bucket = *bucket;
  *bucket = job;
  job->older = p->newest;
  job->newer = NULL;
  *(p->newest ? &p->newest->newer : &p->oldest) = job;
  p->newest = job;
  p->idle++;
  p->idle_bytes += job->memory.size;
  while (p->idle > VK_MOST_IDLE || p->idle_bytes > most) {
    vk_job *oldest = p->oldest;
    unlink_job(p, oldest);
    oldest->newer = gone;
    gone = oldest;
  }
  pthread_mutex_unlock(&p->lock);
  free_list(gone);
}

/* The list is locked while they go: none of the pipelines goes before. */
bool vk_jobs_drop(vk_device *device) {
  bool any = false;
  pthread_mutex_lock(&device->pipeline_lock);
  for (vk_pipeline *p = device->pipelines; p; p = p->next) {
    vk_job *gone = NULL;
    pthread_mutex_lock(&p->lock);
    while (p->oldest) {
      vk_job *oldest = p->oldest;
      unlink_job(p, oldest);
      oldest->newer = gone;
      gone = oldest;
      any = true;
    }
    pthread_mutex_unlock(&p->lock);
    free_list(gone);
  }
  pthread_mutex_unlock(&device->pipeline_lock);
  return any;
}

void vk_job_free(vk_job *job) {
  vk_device *device = device_of(job);
  const vk_api *api = &device->api;
  vk_ticket_finish(device, &job->ticket);
  api->DestroyQueryPool(device->handle, job->queries, NULL);
  api->DestroyDescriptorPool(device->handle, job->sets, NULL);
  api->DestroyCommandPool(device->handle, job->pool, NULL);
  vk_range_give(device, &job->staging);
  vk_range_give(device, &job->memory);
  vyre__resize(device->base.allocator, job, job->size, 0);
}

/* --- memory ----------------------------------------------------------------------------*/

/* Where each view goes: its range is bound there, or it has a place in the job. */
typedef struct bound {
  VkBuffer buffer; /* NULL: in the job's memory, at `offset` */
  uint64_t offset;
} bound;

typedef struct layouter {
  vk_job *job;
  const vyre__launch *launch;
  const vk_plan *plan;
  bound *bounds; /* one a buffer of the kernel */
  uint64_t size; /* so far */
} layouter;

static uint64_t place(layouter *l, uint64_t size) {
  uint64_t a = device_of(l->job)->heap.alignment;
  uint64_t at = l->size;
  l->size = at + (size + a - 1) / a * a;
  return at;
}

static const vyre__spirv_descriptor *descriptor_of(const vk_plan *plan,
                                                   uint32_t buffer) {
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &plan->descriptors[i];
    if (d->what == VYRE__SPIRV_BUFFER && d->buffer == buffer) return d;
  }
  return NULL;
}

/* Views of the host that the kernel only reads, or those that it writes; where the
 * host does not see the memory, those that are large, or those that are not. */
static void place_views(layouter *l, bool is_written, bool is_large) {
  vk_job *job = l->job;
  bool is_in_place = device_of(job)->is_in_place;
  for (uint32_t i = 0; i < l->plan->buffer_count; i++) {
    const vyre__spirv_descriptor *d = descriptor_of(l->plan, i);
    if (!d || !l->plan->buffers[i].is_bound || d->is_written != is_written ||
        l->launch->views[i].buffer) {
      continue;
    }
    uint64_t size = bytes_of(l->plan, l->launch, i);
    if (size == 0 || is_large != (!is_in_place && size >= VK_LARGE_VIEW)) {
      continue;
    }
    l->bounds[i].offset = place(l, size);
    job->staged[job->staged_count++] =
        (vk_staged){i, l->bounds[i].offset, size, is_written, is_large};
  }
}

/* Uniforms in the launch block: a place there, and whose bytes they are. */
static void find_values(layouter *l) {
  vk_job *job = l->job;
  for (uint32_t i = 0; i < l->plan->field_count; i++) {
    const vyre__spirv_field *f = &l->plan->fields[i];
    if (f->value != VYRE__SPIRV_UNIFORM || f->is_pushed) continue;
    const vyre__plan_buffer *b = &l->plan->buffers[f->index];
    const vyre__view *view = &l->launch->views[f->index];
    vk_value *value = &job->values[job->value_count++];
    *value = (vk_value){.buffer = f->index,
                        .at = f->offset,
                        .size = (uint64_t)b->min * b->unit};
    if (!view->buffer) continue;
    const vk_range *range = &((const vk_buffer *)view->buffer)->range;
    value->from = range->buffer;
    value->offset = range->offset + view->offset;
    value->copy_at = place(l, value->size);
    job->has_resident_values = true;
  }
}

/* Places resident views. They are bound where they are, but for those that the
 * device cannot bind, and for uniforms: these are copied, since other dispatches may
 * write that memory while this one runs. */
static void place_residents(layouter *l) {
  vk_job *job = l->job;
  const vk_device *device = device_of(job);
  uint64_t alignment =
      device->physical->properties.limits.minStorageBufferOffsetAlignment;
  if (alignment < 4) alignment = 4; /* narrow elements are bound by words */
  for (uint32_t i = 0; i < l->plan->buffer_count; i++) {
    if (!l->plan->buffers[i].is_bound || !l->launch->views[i].buffer ||
        job->pipeline->values[i] & VK_IN_BLOCK) {
      continue;
    }
    const vyre__view *view = &l->launch->views[i];
    const vk_buffer *buffer = (const vk_buffer *)view->buffer;
    const vyre__spirv_descriptor *d = descriptor_of(l->plan, i);
    uint64_t size = bytes_of(l->plan, l->launch, i);
    uint64_t offset = buffer->range.offset + view->offset;
    /* Up to a word behind the end is ours, but not behind the caller's memory. */
    bool ends_it =
        view->offset + size == buffer->base.size && !buffer->base.is_imported;
    if (size == 0) continue;
    bool is_words = offset % 4 == 0 && (size % 4 == 0 || ends_it);
    bool is_far = offset % alignment != 0 || (view->begins_zero && !is_words) ||
                  l->plan->buffers[i].kind == VYRE_MEMORY_UNIFORM;
    if (is_far) {
      l->bounds[i].offset = place(l, size);
      job->detours[job->detour_count++] =
          (vk_detour){buffer->range.buffer,
                      offset,
                      l->bounds[i].offset,
                      size,
                      view->begins_zero || (d && d->is_written),
                      view->begins_zero};
      continue;
    }
    l->bounds[i] = (bound){buffer->range.buffer, offset};
    if (!view->begins_zero) continue;
    job->clears[job->clear_count++] =
        (vk_clear){buffer->range.buffer, offset, (size + 3) / 4 * 4};
  }
}

static vyre_code grid_too_large(const layouter *l, uint64_t groups,
                                uint64_t most, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"most_invocations", most}),
      "use a smaller grid, or keep less across grid_barrier()",
      "kernel '%.60s': %llu workgroups keep %u words an invocation across grid "
      "barriers, which is more than device '%s' can bind",
      l->job->pipeline->base.program->name, (unsigned long long)groups,
      l->plan->spill_words, vyre_device_name(&device_of(l->job)->base));
}

static vyre_code place_kept(layouter *l, vyre_status *st) {
  const vk_plan *plan = l->plan;
  if (plan->spill_buffer == VYRE_NO_INDEX) return VYRE_OK;
  const uint32_t *g = l->launch->grid, *w = plan->workgroup;
  uint64_t groups = (uint64_t)g[0] * g[1] * g[2];
  uint64_t words = (uint64_t)w[0] * w[1] * w[2] * plan->spill_words;
  uint64_t most = device_of(l->job)->base.caps.max_buffer_bytes / 4;
  if (most > UINT32_MAX) most = UINT32_MAX;
  if (words > 0 && groups > most / words) {
    return grid_too_large(l, groups, most, st);
  }
  l->job->kept_size = groups * words > 0 ? groups * words * 4 : 4;
  l->job->kept_at = place(l, l->job->kept_size);
  return VYRE_OK;
}

static vyre_code lay_out(layouter *l, vyre_status *st) {
  vk_job *job = l->job;
  vk_device *device = device_of(job);
  uint64_t a = device->heap.alignment;
  uint64_t blocks = l->plan->block_bytes == 0 ? 0 : VK_WINDOW;
  if (blocks > 0 && !(job->flags & VK_JOB_PARTED) && l->plan->step_count == 1) {
    blocks = VK_FEW_PARTS; /* most have one; vk_run asks for PARTED beyond */
  }
  job->block_stride = (l->plan->block_bytes + a - 1) / a * a;
  (void)place(l, blocks * job->block_stride);
  place_views(l, false, false);
  job->written_from = l->size;
  job->status_at = place(l, 4);
  place_views(l, true, false);
  job->shared_size = l->size;
  place_views(l, false, true);
  place_views(l, true, true);
  place_residents(l);
  find_values(l);
  VYRE_TRY(place_kept(l, st));
  VYRE_TRY(vk_range_take(device, VK_WHERE_DEVICE, l->size, &job->memory, st));
  job->host = job->memory.host;
  if (job->host) return VYRE_OK;
  VYRE_TRY(vk_range_take(device, VK_WHERE_HOST, job->shared_size, &job->staging,
                         st));
  job->host = job->staging.host;
  return VYRE_OK;
}

/* --- descriptors -----------------------------------------------------------------------*/

static VkDescriptorBufferInfo info_of(const layouter *l,
                                      const vyre__spirv_descriptor *d) {
  const vk_job *job = l->job;
  const vk_device *device = device_of(job);
  VkDescriptorBufferInfo info = {job->memory.buffer, job->memory.offset, 4};
  switch ((vyre__spirv_what)d->what) {
    case VYRE__SPIRV_STATUS:
      info.offset += job->status_at;
      return info;
    case VYRE__SPIRV_KEPT:
      info.offset += job->kept_at;
      info.range = job->kept_size;
      return info;
    case VYRE__SPIRV_BLOCK:
      info.range = l->plan->block_bytes;
      return info;
    default:
      break;
  }
  uint64_t size = (bytes_of(l->plan, l->launch, d->buffer) + 3) / 4 * 4;
  const bound *b = &l->bounds[d->buffer];
  if (size == 0) {
    return (VkDescriptorBufferInfo){device->nothing.buffer,
                                    device->nothing.offset, 8};
  }
  info.range = size;
  if (b->buffer) {
    info.buffer = b->buffer;
    info.offset = b->offset;
  } else {
    info.offset += b->offset;
  }
  return info;
}

static VkResult make_set(const layouter *l) {
  vk_job *job = l->job;
  const vk_device *device = device_of(job);
  VkResult result =
      vk_set_make(device, job->pipeline->layout, &job->sets, &job->set);
  for (uint32_t i = 0; i < l->plan->descriptor_count && result == VK_SUCCESS;
       i++) {
    const vyre__spirv_descriptor *d = &l->plan->descriptors[i];
    const VkDescriptorBufferInfo info = info_of(l, d);
    vk_set_put(device, job->set, d, &info);
  }
  return result;
}

static VkResult make_commands(vk_job *job) {
  const vk_device *device = device_of(job);
  VkResult result = vk_commands_make(device, 0,
                                     job->flags & VK_JOB_SECOND
                                         ? VK_COMMAND_BUFFER_LEVEL_SECONDARY
                                         : VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                     &job->pool, &job->commands);
  if (result != VK_SUCCESS || !(job->flags & VK_JOB_TIMED)) return result;
  const VkQueryPoolCreateInfo queries = {
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
      .queryType = VK_QUERY_TYPE_TIMESTAMP,
      .queryCount = 2};
  result = device->api.CreateQueryPool(device->handle, &queries, NULL,
                                       &job->queries);
  if (result != VK_SUCCESS) job->queries = VK_NULL_HANDLE;
  return result;
}

/* --- recording -------------------------------------------------------------------------*/

/* Those that the host does not see are copied by the device. */
static void put_uniform(const vk_plan *plan, const vyre__launch *launch,
                        const vyre__spirv_field *f, unsigned char *to) {
  const vyre__plan_buffer *b = &plan->buffers[f->index];
  const vyre__view *view = &launch->views[f->index];
  if (!view->data || (view->buffer && !f->is_pushed)) return;
  memcpy(to, view->data, (size_t)b->min * b->unit);
}

/* What a field of the launch block holds for that part. */
static void put_field(const vk_plan *plan, const vyre__launch *launch,
                      const vk_part *part, const uint64_t *loops,
                      const vyre__spirv_field *f, unsigned char *block) {
  uint32_t fuel = fuel_of(launch);
  unsigned char *to = block + f->offset;
  switch ((vyre__spirv_value)f->value) {
    case VYRE__SPIRV_BASE:
      memcpy(to, part->base, f->size < 12 ? f->size : 12);
      return;
    case VYRE__SPIRV_GRID:
      memcpy(to, launch->grid, f->size < 12 ? f->size : 12);
      return;
    case VYRE__SPIRV_FUEL:
      memcpy(to, &fuel, 4);
      return;
    case VYRE__SPIRV_ONE:
      memcpy(to, &(uint32_t){1}, 4);
      return;
    case VYRE__SPIRV_LOOP_VALUE:
      memcpy(to, &loops[f->index], f->size < 8 ? f->size : 8);
      return;
    case VYRE__SPIRV_LENGTH:
      memcpy(to, &launch->views[f->index].length, 4);
      return;
    case VYRE__SPIRV_UNIFORM:
      put_uniform(plan, launch, f, to);
      return;
  }
}

/* Copies uniforms of resident memory: once, and then into the block of a part, which
 * begins at @p at. */
static void copy_values(const vk_job *job, VkCommandBuffer commands) {
  for (uint32_t i = 0; i < job->value_count; i++) {
    const vk_value *v = &job->values[i];
    VkBufferCopy region = {v->offset, job->memory.offset + v->copy_at, v->size};
    if (!v->from) continue;
    device_of(job)->api.CmdCopyBuffer(commands, v->from, job->memory.buffer, 1,
                                      &region);
  }
}

static void put_values(const vk_job *job, uint32_t at,
                       VkCommandBuffer commands) {
  for (uint32_t i = 0; job->has_resident_values && i < job->value_count; i++) {
    const vk_value *v = &job->values[i];
    VkBufferCopy region = {job->memory.offset + v->copy_at,
                           job->memory.offset + at + v->at, v->size};
    if (!v->from) continue;
    device_of(job)->api.CmdCopyBuffer(commands, job->memory.buffer,
                                      job->memory.buffer, 1, &region);
  }
}

static void put_part(const vk_job *job, const vyre__launch *launch,
                     const vk_part *part, const uint64_t *loops,
                     uint32_t number, VkCommandBuffer commands,
                     VkPipeline *last) {
  const vk_plan *plan = &job->pipeline->plan;
  const vk_device *device = device_of(job);
  const vk_layout *layout = job->pipeline->layout;
  uint32_t pushed[VK_MOST_PUSHED / 4] = {0};
  uint32_t at = number * (uint32_t)job->block_stride;
  if (plan->block_bytes > 0) memset(job->host + at, 0, plan->block_bytes);
  for (uint32_t i = 0; i < plan->field_count; i++) {
    const vyre__spirv_field *f = &plan->fields[i];
    put_field(plan, launch, part, loops, f,
              f->is_pushed ? (unsigned char *)pushed : job->host + at);
  }
  put_values(job, at, commands);
  if (part->needs_barrier || job->has_resident_values) {
    vk_cmd_barrier(device, commands);
  }
  VkPipeline phase = job->phases[part->phase];
  if (phase != *last) { /* drivers make much anew with each */
    device->api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                phase);
    *last = phase;
  }
  if (job->set) {
    device->api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                      layout->pipeline, 0, 1, &job->set,
                                      plan->block_bytes > 0 ? 1 : 0, &at);
  }
  if (plan->push_bytes > 0) {
    device->api.CmdPushConstants(commands, layout->pipeline,
                                 VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 plan->push_bytes, pushed);
  }
  device->api.CmdDispatch(commands, part->groups[0], part->groups[1],
                          part->groups[2]);
}

/* Bytes of the host to the device, what begins as zero, and ways round. */
static void put_before(const vk_job *job, VkCommandBuffer commands) {
  const vk_device *device = device_of(job);
  const vk_api *api = &device->api;
  bool any = job->has_resident_values;
  if (any) copy_values(job, commands);
  if (job->staging.block) {
    VkBufferCopy all = {job->staging.offset, job->memory.offset,
                        job->shared_size};
    api->CmdCopyBuffer(commands, job->staging.buffer, job->memory.buffer, 1,
                       &all);
    any = true;
  }
  for (uint32_t i = 0; i < job->clear_count; i++) {
    const vk_clear *c = &job->clears[i];
    api->CmdFillBuffer(commands, c->buffer, c->offset, c->size, 0);
    any = true;
  }
  for (uint32_t i = 0; i < job->detour_count; i++) {
    const vk_detour *d = &job->detours[i];
    uint64_t at = job->memory.offset + d->at;
    VkBufferCopy there = {d->offset, at, d->size};
    if (d->begins_zero) {
      api->CmdFillBuffer(commands, job->memory.buffer, at,
                         (d->size + 3) / 4 * 4, 0);
    } else {
      api->CmdCopyBuffer(commands, d->buffer, job->memory.buffer, 1, &there);
    }
    any = true;
  }
  if (any) vk_cmd_barrier(device, commands);
}

static void put_after(const vk_job *job, VkCommandBuffer commands) {
  const vk_device *device = device_of(job);
  bool any = job->staging.block != NULL;
  for (uint32_t i = 0; i < job->detour_count; i++) {
    any = any || job->detours[i].is_written;
  }
  if (!any) return;
  vk_cmd_barrier(device, commands);
  if (job->staging.block) {
    VkBufferCopy back = {job->memory.offset + job->written_from,
                         job->staging.offset + job->written_from,
                         job->shared_size - job->written_from};
    device->api.CmdCopyBuffer(commands, job->memory.buffer, job->staging.buffer,
                              1, &back);
  }
  for (uint32_t i = 0; i < job->detour_count; i++) {
    const vk_detour *d = &job->detours[i];
    VkBufferCopy back = {job->memory.offset + d->at, d->offset, d->size};
    if (!d->is_written) continue;
    device->api.CmdCopyBuffer(commands, job->memory.buffer, d->buffer, 1,
                              &back);
  }
}

static void put_time(const vk_job *job, VkCommandBuffer commands,
                     uint32_t which) {
  const vk_api *api = &device_of(job)->api;
  if (!job->queries) return;
  if (which == 0) api->CmdResetQueryPool(commands, job->queries, 0, 2);
  api->CmdWriteTimestamp(commands,
                         which == 0 ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT
                                    : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                         job->queries, which);
}

/* Blocks of staging are copied with the rest, so that a window that is not the first
 * copies them, too. */
static void put_blocks(const vk_job *job, VkCommandBuffer commands) {
  const vk_device *device = device_of(job);
  if (!job->staging.block || job->block_stride == 0) return;
  VkBufferCopy blocks = {job->staging.offset, job->memory.offset,
                         VK_WINDOW * job->block_stride};
  device->api.CmdCopyBuffer(commands, job->staging.buffer, job->memory.buffer,
                            1, &blocks);
  vk_cmd_barrier(device, commands);
}

void vk_job_put(vk_job *job, const vyre__launch *launch, vk_tiles *tiles,
                uint64_t groups, VkCommandBuffer commands, VkPipeline *last,
                uint64_t *recorded) {
  put_time(job, commands, 0);
  if (tiles->has_begun) {
    put_blocks(job, commands);
  } else {
    put_before(job, commands);
  }
  vk_part part;
  uint32_t number = 0;
  *recorded = 0;
  while (!tiles->is_over && number < VK_WINDOW &&
         (number == 0 || *recorded < groups)) {
    vk_tiles_next(tiles, groups - *recorded, &part);
    put_part(job, launch, &part, tiles->walk.values, number++, commands, last);
    *recorded += (uint64_t)part.groups[0] * part.groups[1] * part.groups[2];
    vk_tiles_advance(tiles);
  }
  job->part_count = number;
  if (tiles->is_over) put_after(job, commands);
  put_time(job, commands, 1);
}

vyre_code vk_job_put_all(vk_job *job, const vyre__launch *launch,
                         VkCommandBuffer commands, VkPipeline *last,
                         vyre_status *st) {
  const vk_plan *plan = &job->pipeline->plan;
  size_t room = 2 * (size_t)plan->loop_count + plan->host_count;
  uint64_t *values = vyre__arena_array(launch->scratch, room, sizeof *values);
  uint64_t groups;
  vyre__launch seen;
  if (!values) return vyre__no_memory(st, "vulkan", "loops", room);
  VYRE_TRY(see_bytes(job, launch, &seen, st));
  vk_tiles tiles = vk_tiles_begin(job->pipeline, &seen, values);
  vk_job_put(job, &seen, &tiles, UINT64_MAX, commands, last, &groups);
  if (tiles.is_over) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_NONE, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"parts", VK_WINDOW}),
      "report it, with the kernel and its grid",
      "kernel '%.60s': %llu workgroups in %d parts are not all of its grid",
      job->pipeline->base.program->name, (unsigned long long)groups, VK_WINDOW);
}

/* The job's own commands. */
static vyre_code record_whole(vk_job *job, const vyre__launch *launch,
                              vyre_status *st) {
  vk_device *device = device_of(job);
  VkPipeline last = VK_NULL_HANDLE;
  VYRE_TRY(
      vk_commands_begin(device, job->commands, job->flags & VK_JOB_SECOND, st));
  VYRE_TRY(vk_job_put_all(job, launch, job->commands, &last, st));
  return vk_commands_end(device, job->commands, job->flags & VK_JOB_ENDS, st);
}

/* --- making one ------------------------------------------------------------------------*/

static vk_job *allocate(vk_pipeline *p, const key *k, unsigned flags) {
  size_t count = p->plan.buffer_count;
  size_t keys = k->count * sizeof *k->words;
  size_t size =
      sizeof(vk_job) + keys +
      count * (sizeof(vk_staged) + sizeof(vk_detour) + sizeof(vk_clear) +
               sizeof(vk_value) + sizeof(uint32_t));
  unsigned char *block = vyre__resize(p->base.device->allocator, NULL, 0, size);
  if (!block) return NULL;
  memset(block, 0, size);
  vk_job *job = (vk_job *)(void *)block;
  unsigned char *at = block + sizeof *job;
  memcpy(at, k->words, keys);
  job->key = (const uint64_t *)(void *)at;
  job->staged = (vk_staged *)(void *)(at + keys);
  job->detours = (vk_detour *)(void *)(job->staged + count);
  job->clears = (vk_clear *)(void *)(job->detours + count);
  job->values = (vk_value *)(void *)(job->clears + count);
  job->bytes_at = (uint32_t *)(void *)(job->values + count);
  job->pipeline = p;
  job->size = size;
  job->hash = k->hash;
  job->key_count = k->count;
  job->flags = flags;
  return job;
}

/* What is to be looked at each time it was run. */
static void find_ends(vk_job *job) {
  const vk_plan *plan = &job->pipeline->plan;
  const vyre_binding_plan *bindings = &job->pipeline->base.plan;
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    job->has_status |= plan->descriptors[i].what == VYRE__SPIRV_STATUS;
  }
  for (size_t i = 0; i < bindings->binding_count; i++) {
    const vyre_binding *b = &bindings->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    const vyre__spirv_descriptor *d = descriptor_of(plan, b->buffer_index);
    job->has_unseen |= !d || !d->is_written;
  }
}

static vyre_code make(vk_job *job, const vyre__launch *launch,
                      vyre_status *st) {
  const vk_plan *plan = &job->pipeline->plan;
  find_ends(job);
  layouter l = {.job = job, .launch = launch, .plan = plan};
  l.bounds =
      vyre__arena_array(launch->scratch, plan->buffer_count, sizeof *l.bounds);
  if (!l.bounds) {
    return vyre__no_memory(st, "vulkan", "buffers", plan->buffer_count);
  }
  memset(l.bounds, 0, plan->buffer_count * sizeof *l.bounds);
  VYRE_TRY(lay_out(&l, st));
  VYRE_TRY(vk_pipeline_phases(job->pipeline, fuel_of(launch) < UINT32_MAX,
                              &job->phases, st));
  VK_TRY(device_of(job), make_set(&l), "descriptors", st);
  if (job->flags & VK_JOB_JOINED) return VYRE_OK;
  VK_TRY(device_of(job), make_commands(job), "a command buffer", st);
  return job->flags & VK_JOB_PARTED ? VYRE_OK : record_whole(job, launch, st);
}

bool vk_job_is_for(const vk_job *job, const vyre__launch *launch) {
  key k;
  return make_key(job->pipeline, launch, job->flags, &k) && is_same(job, &k);
}

vyre_code vk_job_take(vk_pipeline *p, const vyre__launch *launch,
                      unsigned flags, vk_job **out, vyre_status *st) {
  key k;
  if (!make_key(p, launch, flags, &k)) {
    return vyre__no_memory(st, "vulkan", "buffers", p->plan.buffer_count);
  }
  *out = flags & VK_JOB_JOINED ? NULL : find_job(p, &k);
  if (*out) return VYRE_OK;
  *out = allocate(p, &k, flags);
  if (!*out) return vyre__no_memory(st, "vulkan", "jobs", 1);
  find_bytes(*out, launch);
  vyre_code code = make(*out, launch, st);
  if (code == VYRE_OK) return VYRE_OK;
  vk_job_free(*out);
  *out = NULL;
  return code;
}

/* --- bytes -----------------------------------------------------------------------------*/

vyre_code vk_job_upload(const vk_job *job, uint64_t at, const void *from,
                        uint64_t size, vyre_status *st) {
  vk_device *device = device_of(job);
  if (!from) return vk_fill(device, &job->memory, at, (size + 3) / 4 * 4, st);
  return vk_upload(device, &job->memory, at, from, size, st);
}

vyre_code vk_job_download(const vk_job *job, uint64_t at, void *to,
                          uint64_t size, vyre_status *st) {
  return vk_download(device_of(job), &job->memory, at, to, size, st);
}

vyre_code vk_job_fill(const vk_job *job, const vyre__launch *launch,
                      vyre_status *st) {
  if (job->has_status) memset(job->host + job->status_at, 0, 4);
  for (uint32_t i = 0; i < job->value_count; i++) {
    const vk_value *v = &job->values[i];
    unsigned char *to = job->host + v->at;
    const unsigned char *from = launch->views[v->buffer].data;
    /* All parts have the same: the caller's bytes are read once. */
    for (uint32_t n = 0; !v->from && n < job->part_count; n++) {
      memcpy(to, from, (size_t)v->size);
      from = job->host + v->at;
      to += job->block_stride;
    }
  }
  for (uint32_t i = 0; i < job->staged_count; i++) {
    const vk_staged *s = &job->staged[i];
    const vyre__view *view = &launch->views[s->buffer];
    if (s->is_large) {
      const void *from = view->begins_zero ? NULL : view->data;
      VYRE_TRY(vk_job_upload(job, s->at, from, s->size, st));
    } else if (view->begins_zero) {
      memset(job->host + s->at, 0, (size_t)s->size);
    } else {
      memcpy(job->host + s->at, view->data, (size_t)s->size);
    }
  }
  return VYRE_OK;
}

/* What the kernel has no part in is zero all the same. */
static void clear_unseen(const vk_job *job, const vyre__launch *launch) {
  const vk_plan *plan = &job->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound) continue;
    const vyre__view *view = &launch->views[i];
    if (!view->begins_zero || view->buffer) continue;
    const vyre__spirv_descriptor *d = descriptor_of(plan, i);
    if (d && d->is_written) continue;
    memset(view->data, 0, (size_t)bytes_of(plan, launch, i));
  }
}

vyre_code vk_job_collect(const vk_job *job, const vyre__launch *launch,
                         vyre_status *st) {
  for (uint32_t i = 0; i < job->staged_count; i++) {
    const vk_staged *s = &job->staged[i];
    unsigned char *data = launch->views[s->buffer].data;
    if (!s->is_written) continue;
    if (s->is_large) {
      VYRE_TRY(vk_job_download(job, s->at, data, s->size, st));
    } else {
      memcpy(data, job->host + s->at, (size_t)s->size);
    }
  }
  if (job->has_unseen) clear_unseen(job, launch);
  return VYRE_OK;
}

vyre__spirv_end vk_job_end(const vk_job *job) {
  uint32_t word;
  if (!job->has_status) return VYRE__SPIRV_ENDED;
  memcpy(&word, job->host + job->status_at, 4);
  return (vyre__spirv_end)word;
}

uint64_t vk_job_time(const vk_job *job) {
  const vk_device *device = device_of(job);
  double period = device->physical->properties.limits.timestampPeriod;
  uint64_t ticks[2];
  if (!job->queries ||
      device->api.GetQueryPoolResults(device->handle, job->queries, 0, 2,
                                      sizeof ticks, ticks, sizeof ticks[0],
                                      VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
    return 0;
  }
  uint64_t mask = device->timestamp_bits < 64
                      ? (UINT64_C(1) << device->timestamp_bits) - 1
                      : UINT64_MAX;
  return (uint64_t)((double)((ticks[1] - ticks[0]) & mask) * period);
}
