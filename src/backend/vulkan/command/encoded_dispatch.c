/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodes launches, and reuses the encoding of an earlier launch with the same
 * key. */
#include "backend/vulkan/command/encoded_dispatch.h"

#include <string.h>

#include "backend/vulkan/command/descriptor_layout.h"
#include "backend/vulkan/command/grid_tiles.h"
#include "backend/vulkan/command/pools.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/memory/staging.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/memory.h"
#include "base/status.h"

static vk_device *device_of(const vk_dispatch *dispatch) {
  return (vk_device *)dispatch->pipeline->base.device;
}

/* --- keys ----------------------------------------------------------------- */

enum { KEY_ON_STACK = 3 + 3 * 32 };

typedef struct key {
  uint64_t *words, stack[KEY_ON_STACK];
  size_t count;
  uint64_t hash;
} key;

static void add_word(key *k, uint64_t word) {
  k->words[k->count++] = word;
}

static void hash_key(key *k) {
  k->hash = 0;
  for (size_t i = 0; i < k->count; i++) {
    k->hash = (k->hash ^ k->words[i]) * UINT64_C(0x9E3779B97F4A7C15);
    k->hash ^= k->hash >> 29;
  }
}

static uint64_t view_bytes(const vk_plan *plan, const vyre__launch *launch,
                           uint32_t buffer) {
  return (uint64_t)launch->views[buffer].length * plan->buffers[buffer].unit;
}

static size_t key_capacity(const vk_pipeline *p, const vyre__launch *launch) {
  const vk_plan *plan = &p->plan;
  size_t words = 3 + 3 * (size_t)plan->buffer_count + launch->readback_count;
  for (uint32_t i = 0; p->has_encoded_uniforms && i < plan->buffer_count; i++) {
    if (!(p->uniform_uses[i] & VK_UNIFORM_ENCODED)) continue;
    words += view_bytes(plan, launch, i) / 8 + 1;
  }
  return words;
}

static void add_bytes(key *k, const unsigned char *data, uint64_t size) {
  for (uint64_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    memcpy(&word, data + at, size - at < 8 ? (size_t)(size - at) : 8);
    add_word(k, word);
  }
}

static uint32_t launch_fuel(const vyre__launch *launch) {
  uint64_t max = launch->max_loop_iterations;
  return max < UINT32_MAX ? (uint32_t)max : UINT32_MAX;
}

/* Builds the key of a launch. Bytes of uniforms that belong to the key are read
 * only here, and commands are recorded from the key: the caller's memory may
 * change in between. */
static bool build_key(const vk_pipeline *p, const vyre__launch *launch,
                      unsigned flags, key *k) {
  const vk_plan *plan = &p->plan;
  size_t capacity = key_capacity(p, launch);
  k->words = k->stack;
  k->count = 0;
  if (capacity > KEY_ON_STACK) {
    k->words = vyre__arena_array(launch->scratch, capacity, sizeof *k->words);
    if (!k->words) return false;
  }
  add_word(k, (uint64_t)launch->grid[1] << 32 | launch->grid[0]);
  add_word(k, (uint64_t)flags << 32 | launch->grid[2]);
  add_word(k, launch_fuel(launch));
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__view *view = &launch->views[i];
    if (!plan->buffers[i].is_bound) continue;
    if (!view->buffer) {
      add_word(k, view->length);
    } else {
      const vk_range *range = &((const vk_buffer *)view->buffer)->range;
      add_word(k, (uint64_t)(view->begins_zero ? 3 : 2) << 32 | view->length);
      add_word(k, range->id);
      add_word(k, range->offset + view->offset);
    }
    if (p->uniform_uses[i] & VK_UNIFORM_ENCODED && view->data) {
      add_bytes(k, view->data, view_bytes(plan, launch, i));
    }
  }
  for (uint32_t i = 0; i < launch->readback_count; i++) {
    add_word(k, UINT64_C(1) << 63 | launch->readbacks[i].buffer);
  }
  return true;
}

/* Finds the bytes of uniforms in the key, in the order in which build_key wrote
 * them. */
static void find_key_bytes(vk_dispatch *dispatch, const vyre__launch *launch) {
  const vk_pipeline *p = dispatch->pipeline;
  uint32_t at = 3;
  for (uint32_t i = 0; i < p->plan.buffer_count; i++) {
    const vyre__view *view = &launch->views[i];
    if (!p->plan.buffers[i].is_bound) continue;
    at += view->buffer ? 3 : 1;
    if (!(p->uniform_uses[i] & VK_UNIFORM_ENCODED) || !view->data) continue;
    dispatch->key_bytes_at[i] = at;
    at += (uint32_t)((view_bytes(&p->plan, launch, i) + 7) / 8);
  }
}

/* Sets @p out to a copy of the launch whose uniforms are the bytes in the
 * key. */
static vyre_code use_key_bytes(const vk_dispatch *dispatch,
                               const vyre__launch *launch, vyre__launch *out,
                               vyre_status *st) {
  const vk_pipeline *p = dispatch->pipeline;
  size_t count = p->base.program->buffer_count;
  *out = *launch;
  if (!p->has_encoded_uniforms) return VYRE_OK;
  vyre__view *views = vyre__arena_array(launch->scratch, count, sizeof *views);
  if (!views) return vyre__no_memory(st, "vulkan", "buffers", count);
  memcpy(views, launch->views, count * sizeof *views);
  for (size_t i = 0; i < count; i++) {
    if (!dispatch->key_bytes_at[i]) continue;
    views[i].data =
        (unsigned char *)(uintptr_t)(dispatch->key + dispatch->key_bytes_at[i]);
  }
  out->views = views;
  return VYRE_OK;
}

/* --- idle dispatches ------------------------------------------------------ */

static bool matches(const vk_dispatch *dispatch, const key *k) {
  return dispatch->key_count == k->count &&
         memcmp(dispatch->key, k->words, k->count * sizeof *k->words) == 0;
}

static void unlink_idle(vk_pipeline *p, vk_dispatch *dispatch) {
  vk_dispatch **at = &p->buckets[dispatch->hash % VK_DISPATCH_BUCKETS];
  while (*at != dispatch) at = &(*at)->next_in_bucket;
  *at = dispatch->next_in_bucket;
  *(dispatch->older ? &dispatch->older->newer : &p->oldest) = dispatch->newer;
  *(dispatch->newer ? &dispatch->newer->older : &p->newest) = dispatch->older;
  p->idle_count--;
  p->idle_bytes -= dispatch->memory.size;
}

static vk_dispatch *find_idle(vk_pipeline *p, const key *k) {
  pthread_mutex_lock(&p->lock);
  vk_dispatch *dispatch = p->buckets[k->hash % VK_DISPATCH_BUCKETS];
  while (dispatch && (dispatch->hash != k->hash || !matches(dispatch, k)))
    dispatch = dispatch->next_in_bucket;
  if (dispatch) unlink_idle(p, dispatch);
  pthread_mutex_unlock(&p->lock);
  return dispatch;
}

/* Moves the oldest idle dispatch to the list @p evicted. */
static void evict_oldest(vk_pipeline *p, vk_dispatch **evicted) {
  vk_dispatch *oldest = p->oldest;
  unlink_idle(p, oldest);
  oldest->newer = *evicted;
  *evicted = oldest;
}

static void free_list(vk_dispatch *first) {
  while (first) {
    vk_dispatch *dispatch = first;
    first = dispatch->newer;
    vk_dispatch_free(dispatch);
  }
}

void vk_dispatch_release(vk_dispatch *dispatch) {
  vk_pipeline *p = dispatch->pipeline;
  uint64_t max = device_of(dispatch)->max_idle_bytes;
  vk_dispatch *evicted = NULL; /* linked by `newer` */
  pthread_mutex_lock(&p->lock);
  vk_dispatch **bucket = &p->buckets[dispatch->hash % VK_DISPATCH_BUCKETS];
  dispatch->next_in_bucket = *bucket;
  *bucket = dispatch;
  dispatch->older = p->newest;
  dispatch->newer = NULL;
  *(p->newest ? &p->newest->newer : &p->oldest) = dispatch;
  p->newest = dispatch;
  p->idle_count++;
  p->idle_bytes += dispatch->memory.size;
  while (p->idle_count > VK_MAX_IDLE_DISPATCHES || p->idle_bytes > max) {
    evict_oldest(p, &evicted);
  }
  pthread_mutex_unlock(&p->lock);
  free_list(evicted);
}

/* Holds pipeline_lock, so that no pipeline is freed during the walk. */
bool vk_dispatches_free_idle(vk_device *device) {
  bool was_freed = false;
  pthread_mutex_lock(&device->pipeline_lock);
  for (vk_pipeline *p = device->pipelines; p; p = p->next) {
    vk_dispatch *evicted = NULL;
    pthread_mutex_lock(&p->lock);
    while (p->oldest) evict_oldest(p, &evicted);
    pthread_mutex_unlock(&p->lock);
    was_freed = was_freed || evicted;
    free_list(evicted);
  }
  pthread_mutex_unlock(&device->pipeline_lock);
  return was_freed;
}

void vk_dispatch_free(vk_dispatch *dispatch) {
  vk_device *device = device_of(dispatch);
  const vk_api *api = &device->api;
  vk_submission_deinit(device, &dispatch->submission);
  api->DestroyQueryPool(device->handle, dispatch->queries, NULL);
  api->DestroyDescriptorPool(device->handle, dispatch->set_pool, NULL);
  api->DestroyCommandPool(device->handle, dispatch->pool, NULL);
  vk_range_free(device, &dispatch->staging);
  vk_range_free(device, &dispatch->memory);
  vyre__resize(device->base.allocator, dispatch, dispatch->size, 0);
}

/* --- memory --------------------------------------------------------------- */

/* Placement of a view: bound directly, or in the memory of the dispatch. */
typedef struct placement {
  VkBuffer buffer; /* NULL: in the memory of the dispatch, at `offset` */
  uint64_t offset;
} placement;

typedef struct memory_layout {
  vk_dispatch *dispatch;
  const vyre__launch *launch;
  const vk_plan *plan;
  placement *placements; /* per buffer of the kernel */
  uint64_t size;         /* bytes reserved so far */
} memory_layout;

static uint64_t reserve(memory_layout *l, uint64_t size) {
  uint64_t a = device_of(l->dispatch)->heap.alignment;
  uint64_t at = l->size;
  l->size = at + (size + a - 1) / a * a;
  return at;
}

/* Places host views that the kernel writes, or those that it only reads. If the
 * memory is not mapped, places only large ones or only small ones. */
static void place_host_views(memory_layout *l, bool is_written, bool is_large) {
  vk_dispatch *dispatch = l->dispatch;
  bool is_unified = device_of(dispatch)->is_unified;
  for (uint32_t i = 0; i < l->plan->buffer_count; i++) {
    const vyre__spirv_descriptor *d = vk_plan_descriptor(l->plan, i);
    if (!d || !l->plan->buffers[i].is_bound || d->is_written != is_written ||
        l->launch->views[i].buffer) {
      continue;
    }
    uint64_t size = view_bytes(l->plan, l->launch, i);
    if (size == 0 || is_large != (!is_unified && size >= VK_LARGE_VIEW_BYTES)) {
      continue;
    }
    l->placements[i].offset = reserve(l, size);
    dispatch->staged[dispatch->staged_count++] = (vk_staged_view){
        i, l->placements[i].offset, size, VYRE_NO_INDEX, is_written, is_large};
  }
}

/* Places readbacks of device buffers, only large ones or only small ones as
 * place_host_views. */
static void place_readbacks(memory_layout *l, bool is_large) {
  vk_dispatch *dispatch = l->dispatch;
  bool is_unified = device_of(dispatch)->is_unified;
  for (uint32_t i = 0; i < l->launch->readback_count; i++) {
    const vyre__readback *r = &l->launch->readbacks[i];
    if (vk_reads_directly(dispatch, &l->launch->views[r->buffer]) ||
        is_large != (!is_unified && r->size >= VK_LARGE_VIEW_BYTES)) {
      continue;
    }
    dispatch->staged[dispatch->staged_count++] = (vk_staged_view){
        r->buffer, reserve(l, r->size), r->size, i, true, is_large};
  }
}

/* Finds the source of each readback, once all views are placed. */
static void find_readback_sources(memory_layout *l) {
  vk_dispatch *dispatch = l->dispatch;
  for (uint32_t i = 0; i < dispatch->staged_count; i++) {
    const vk_staged_view *s = &dispatch->staged[i];
    const placement *from = &l->placements[s->buffer];
    if (s->readback == VYRE_NO_INDEX) continue;
    dispatch->readbacks[dispatch->readback_count++] =
        (vk_readback){from->buffer, from->offset, s->at, s->size};
  }
}

/* Places uniforms of the launch block, and finds the source of their bytes. */
static void place_uniforms(memory_layout *l) {
  vk_dispatch *dispatch = l->dispatch;
  for (uint32_t i = 0; i < l->plan->field_count; i++) {
    const vyre__spirv_field *f = &l->plan->fields[i];
    if (f->value != VYRE__SPIRV_UNIFORM || f->is_pushed) continue;
    const vyre__plan_buffer *b = &l->plan->buffers[f->index];
    const vyre__view *view = &l->launch->views[f->index];
    vk_block_uniform *uniform = &dispatch->uniforms[dispatch->uniform_count++];
    *uniform = (vk_block_uniform){.buffer = f->index,
                                  .at = f->offset,
                                  .size = (uint64_t)b->min * b->unit};
    if (!view->buffer) continue;
    const vk_range *range = &((const vk_buffer *)view->buffer)->range;
    uniform->device_buffer = range->buffer;
    uniform->offset = range->offset + view->offset;
    uniform->copy_at = reserve(l, uniform->size);
    dispatch->has_device_uniforms = true;
  }
}

/* Places views of device buffers. Most are bound directly. A view is copied if
 * the device cannot bind its offset, or if it is a uniform: other dispatches
 * may write that memory while this one runs. */
static void place_device_views(memory_layout *l) {
  vk_dispatch *dispatch = l->dispatch;
  const vk_device *device = device_of(dispatch);
  uint64_t alignment =
      device->physical->properties.limits.minStorageBufferOffsetAlignment;
  /* Kernels access narrow elements through words. */
  if (alignment < 4) alignment = 4;
  for (uint32_t i = 0; i < l->plan->buffer_count; i++) {
    if (!l->plan->buffers[i].is_bound || !l->launch->views[i].buffer ||
        dispatch->pipeline->uniform_uses[i] & VK_UNIFORM_IN_BLOCK) {
      continue;
    }
    const vyre__view *view = &l->launch->views[i];
    const vk_buffer *buffer = (const vk_buffer *)view->buffer;
    const vyre__spirv_descriptor *d = vk_plan_descriptor(l->plan, i);
    uint64_t size = view_bytes(l->plan, l->launch, i);
    uint64_t offset = buffer->range.offset + view->offset;
    /* Blocks are padded to a word after a buffer; imported memory is not. */
    bool ends_buffer =
        view->offset + size == buffer->base.size && !buffer->base.is_imported;
    if (size == 0) continue;
    bool is_words = offset % 4 == 0 && (size % 4 == 0 || ends_buffer);
    bool is_copied = offset % alignment != 0 ||
                     (view->begins_zero && !is_words) ||
                     l->plan->buffers[i].kind == VYRE_MEMORY_UNIFORM;
    if (is_copied) {
      l->placements[i].offset = reserve(l, size);
      dispatch->copied[dispatch->copied_count++] =
          (vk_copied_view){buffer->range.buffer,
                           offset,
                           l->placements[i].offset,
                           size,
                           view->begins_zero || (d && d->is_written),
                           view->begins_zero};
      continue;
    }
    l->placements[i] = (placement){buffer->range.buffer, offset};
    if (!view->begins_zero) continue;
    dispatch->clears[dispatch->clear_count++] =
        (vk_clear){buffer->range.buffer, offset, (size + 3) / 4 * 4};
  }
}

static vyre_code grid_too_large(const memory_layout *l, uint64_t groups,
                                uint64_t max, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"max_invocations", max}),
      "use a smaller grid, or keep fewer values live across grid_barrier()",
      "kernel '%.60s': %llu workgroups need a spill buffer of %u words per "
      "invocation, more than device '%s' can bind",
      l->dispatch->pipeline->base.program->name, (unsigned long long)groups,
      l->plan->spill_words, vyre_device_name(&device_of(l->dispatch)->base));
}

static vyre_code place_spill(memory_layout *l, vyre_status *st) {
  const vk_plan *plan = l->plan;
  if (plan->spill_buffer == VYRE_NO_INDEX) return VYRE_OK;
  const uint32_t *g = l->launch->grid, *w = plan->workgroup;
  uint64_t groups = (uint64_t)g[0] * g[1] * g[2];
  uint64_t words = (uint64_t)w[0] * w[1] * w[2] * plan->spill_words;
  uint64_t max = device_of(l->dispatch)->base.caps.max_buffer_bytes / 4;
  if (max > UINT32_MAX) max = UINT32_MAX;
  if (words > 0 && groups > max / words) {
    return grid_too_large(l, groups, max, st);
  }
  l->dispatch->spill_size = groups * words > 0 ? groups * words * 4 : 4;
  l->dispatch->spill_at = reserve(l, l->dispatch->spill_size);
  return VYRE_OK;
}

static vyre_code allocate_memory(memory_layout *l, vyre_status *st) {
  vk_dispatch *dispatch = l->dispatch;
  vk_device *device = device_of(dispatch);
  uint64_t a = device->heap.alignment;
  uint64_t blocks = l->plan->block_bytes == 0 ? 0 : VK_WINDOW_TILES;
  if (blocks > 0 && !(dispatch->flags & VK_DISPATCH_WINDOWED) &&
      l->plan->step_count == 1) {
    blocks = VK_FEW_TILES; /* launches with more tiles are WINDOWED */
  }
  dispatch->block_stride = (l->plan->block_bytes + a - 1) / a * a;
  (void)reserve(l, blocks * dispatch->block_stride);
  place_host_views(l, false, false);
  dispatch->readback_at = l->size;
  dispatch->status_at = reserve(l, 4);
  place_host_views(l, true, false);
  place_readbacks(l, false);
  dispatch->shared_size = l->size;
  place_host_views(l, false, true);
  place_host_views(l, true, true);
  place_readbacks(l, true);
  place_device_views(l);
  find_readback_sources(l);
  place_uniforms(l);
  VYRE_TRY(place_spill(l, st));
  VYRE_TRY(vk_range_alloc(device, VK_MEMORY_KIND_DEVICE, l->size,
                          &dispatch->memory, st));
  dispatch->host = dispatch->memory.host;
  if (dispatch->host) return VYRE_OK;
  VYRE_TRY(vk_range_alloc(device, VK_MEMORY_KIND_HOST, dispatch->shared_size,
                          &dispatch->staging, st));
  dispatch->host = dispatch->staging.host;
  return VYRE_OK;
}

/* --- descriptors ---------------------------------------------------------- */

static VkDescriptorBufferInfo descriptor_info(const memory_layout *l,
                                              const vyre__spirv_descriptor *d) {
  const vk_dispatch *dispatch = l->dispatch;
  const vk_device *device = device_of(dispatch);
  VkDescriptorBufferInfo info = {dispatch->memory.buffer,
                                 dispatch->memory.offset, 4};
  switch ((vyre__spirv_what)d->what) {
    case VYRE__SPIRV_STATUS:
      info.offset += dispatch->status_at;
      return info;
    case VYRE__SPIRV_KEPT:
      info.offset += dispatch->spill_at;
      info.range = dispatch->spill_size;
      return info;
    case VYRE__SPIRV_BLOCK:
      info.range = l->plan->block_bytes;
      return info;
    default:
      break;
  }
  uint64_t size = (view_bytes(l->plan, l->launch, d->buffer) + 3) / 4 * 4;
  const placement *b = &l->placements[d->buffer];
  if (size == 0) {
    return (VkDescriptorBufferInfo){device->dummy.buffer, device->dummy.offset,
                                    8};
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

static VkResult create_set(const memory_layout *l) {
  vk_dispatch *dispatch = l->dispatch;
  const vk_device *device = device_of(dispatch);
  VkResult result = vk_descriptor_set_create(
      device, dispatch->pipeline->layout, &dispatch->set_pool, &dispatch->set);
  for (uint32_t i = 0; i < l->plan->descriptor_count && result == VK_SUCCESS;
       i++) {
    const vyre__spirv_descriptor *d = &l->plan->descriptors[i];
    const VkDescriptorBufferInfo info = descriptor_info(l, d);
    vk_descriptor_set_write(device, dispatch->set, d, &info);
  }
  return result;
}

static VkResult create_commands(vk_dispatch *dispatch) {
  const vk_device *device = device_of(dispatch);
  VkResult result =
      vk_command_buffer_create(device, 0, &dispatch->pool, &dispatch->commands);
  if (result != VK_SUCCESS || !(dispatch->flags & VK_DISPATCH_TIMED))
    return result;
  const VkQueryPoolCreateInfo queries = {
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
      .queryType = VK_QUERY_TYPE_TIMESTAMP,
      .queryCount = 2};
  result = device->api.CreateQueryPool(device->handle, &queries, NULL,
                                       &dispatch->queries);
  if (result != VK_SUCCESS) dispatch->queries = VK_NULL_HANDLE;
  return result;
}

/* --- recording ------------------------------------------------------------ */

/* Skips uniforms in device memory: the commands copy them. */
static void write_uniform(const vk_plan *plan, const vyre__launch *launch,
                          const vyre__spirv_field *f, unsigned char *to) {
  const vyre__plan_buffer *b = &plan->buffers[f->index];
  const vyre__view *view = &launch->views[f->index];
  if (!view->data || (view->buffer && !f->is_pushed)) return;
  memcpy(to, view->data, (size_t)b->min * b->unit);
}

/* Writes the value of a launch-block field for one tile. */
static void write_field(const vk_plan *plan, const vyre__launch *launch,
                        const vk_tile *tile, const uint64_t *loops,
                        const vyre__spirv_field *f, unsigned char *block) {
  uint32_t fuel = launch_fuel(launch);
  unsigned char *to = block + f->offset;
  switch ((vyre__spirv_value)f->value) {
    case VYRE__SPIRV_BASE:
      memcpy(to, tile->base, f->size < 12 ? f->size : 12);
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
      if (loops) memcpy(to, &loops[f->index], f->size < 8 ? f->size : 8);
      return;
    case VYRE__SPIRV_LENGTH:
      memcpy(to, &launch->views[f->index].length, 4);
      return;
    case VYRE__SPIRV_UNIFORM:
      write_uniform(plan, launch, f, to);
      return;
  }
}

/* Records copies of uniforms in device buffers to the memory of the
 * dispatch. */
static void record_uniform_copies(const vk_dispatch *dispatch,
                                  VkCommandBuffer commands) {
  for (uint32_t i = 0; i < dispatch->uniform_count; i++) {
    const vk_block_uniform *v = &dispatch->uniforms[i];
    VkBufferCopy region = {v->offset, dispatch->memory.offset + v->copy_at,
                           v->size};
    if (!v->device_buffer) continue;
    device_of(dispatch)->api.CmdCopyBuffer(commands, v->device_buffer,
                                           dispatch->memory.buffer, 1, &region);
  }
}

static void record_block_uniforms(const vk_dispatch *dispatch, uint32_t at,
                                  VkCommandBuffer commands) {
  for (uint32_t i = 0;
       dispatch->has_device_uniforms && i < dispatch->uniform_count; i++) {
    const vk_block_uniform *v = &dispatch->uniforms[i];
    VkBufferCopy region = {dispatch->memory.offset + v->copy_at,
                           dispatch->memory.offset + at + v->at, v->size};
    if (!v->device_buffer) continue;
    device_of(dispatch)->api.CmdCopyBuffer(commands, dispatch->memory.buffer,
                                           dispatch->memory.buffer, 1, &region);
  }
}

/* Writes the launch block of a tile, and records what comes before its
 * dispatch. */
static void record_bindings(const vk_dispatch *dispatch,
                            const vyre__launch *launch, const vk_tile *tile,
                            const uint64_t *loops, uint32_t index,
                            VkCommandBuffer commands, VkPipeline *bound) {
  const vk_plan *plan = &dispatch->pipeline->plan;
  const vk_device *device = device_of(dispatch);
  const vk_layout *layout = dispatch->pipeline->layout;
  uint32_t pushed[VK_MAX_PUSH_BYTES / 4] = {0};
  uint32_t at = index * (uint32_t)dispatch->block_stride;
  if (plan->block_bytes > 0) memset(dispatch->host + at, 0, plan->block_bytes);
  for (uint32_t i = 0; i < plan->field_count; i++) {
    const vyre__spirv_field *f = &plan->fields[i];
    write_field(plan, launch, tile, loops, f,
                f->is_pushed ? (unsigned char *)pushed : dispatch->host + at);
  }
  record_block_uniforms(dispatch, at, commands);
  if (tile->needs_barrier || dispatch->has_device_uniforms) {
    vk_cmd_barrier(device, commands);
  }
  VkPipeline phase = dispatch->phases[tile->phase];
  if (phase != *bound) { /* binding a pipeline is expensive in some drivers */
    device->api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                phase);
    *bound = phase;
  }
  if (dispatch->set) {
    device->api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                      layout->pipeline, 0, 1, &dispatch->set,
                                      plan->block_bytes > 0 ? 1 : 0, &at);
  }
  if (plan->push_bytes > 0) {
    device->api.CmdPushConstants(commands, layout->pipeline,
                                 VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 plan->push_bytes, pushed);
  }
}

static void record_tile(const vk_dispatch *dispatch, const vyre__launch *launch,
                        const vk_tile *tile, const uint64_t *loops,
                        uint32_t index, VkCommandBuffer commands,
                        VkPipeline *bound) {
  record_bindings(dispatch, launch, tile, loops, index, commands, bound);
  device_of(dispatch)->api.CmdDispatch(commands, tile->groups[0],
                                       tile->groups[1], tile->groups[2]);
}

void vk_dispatch_record_indirect(const vk_dispatch *dispatch,
                                 const vyre__launch *launch, VkBuffer buffer,
                                 uint64_t offset, VkCommandBuffer commands,
                                 VkPipeline *bound) {
  const vk_tile all = {.phase = 0};
  record_bindings(dispatch, launch, &all, NULL, 0, commands, bound);
  device_of(dispatch)->api.CmdDispatchIndirect(commands, buffer, offset);
}

bool vk_dispatch_record_prologue(const vk_dispatch *dispatch,
                                 VkCommandBuffer commands) {
  const vk_device *device = device_of(dispatch);
  const vk_api *api = &device->api;
  bool needs_barrier = dispatch->has_device_uniforms;
  if (needs_barrier) record_uniform_copies(dispatch, commands);
  if (dispatch->staging.block) {
    VkBufferCopy all = {dispatch->staging.offset, dispatch->memory.offset,
                        dispatch->shared_size};
    api->CmdCopyBuffer(commands, dispatch->staging.buffer,
                       dispatch->memory.buffer, 1, &all);
    needs_barrier = true;
  }
  for (uint32_t i = 0; i < dispatch->clear_count; i++) {
    const vk_clear *c = &dispatch->clears[i];
    api->CmdFillBuffer(commands, c->buffer, c->offset, c->size, 0);
    needs_barrier = true;
  }
  for (uint32_t i = 0; i < dispatch->copied_count; i++) {
    const vk_copied_view *d = &dispatch->copied[i];
    uint64_t at = dispatch->memory.offset + d->at;
    VkBufferCopy there = {d->offset, at, d->size};
    if (d->begins_zero) {
      api->CmdFillBuffer(commands, dispatch->memory.buffer, at,
                         (d->size + 3) / 4 * 4, 0);
    } else {
      api->CmdCopyBuffer(commands, d->buffer, dispatch->memory.buffer, 1,
                         &there);
    }
    needs_barrier = true;
  }
  return needs_barrier;
}

static void record_readbacks(const vk_dispatch *dispatch,
                             VkCommandBuffer commands) {
  const vk_device *device = device_of(dispatch);
  const vk_range *memory = &dispatch->memory;
  for (uint32_t i = 0; i < dispatch->readback_count; i++) {
    const vk_readback *r = &dispatch->readbacks[i];
    VkBufferCopy region = {r->buffer ? r->offset : memory->offset + r->offset,
                           memory->offset + r->at, r->size};
    device->api.CmdCopyBuffer(commands, r->buffer ? r->buffer : memory->buffer,
                              memory->buffer, 1, &region);
  }
  if (dispatch->staging.block) vk_cmd_barrier(device, commands);
}

bool vk_dispatch_has_epilogue(const vk_dispatch *dispatch) {
  bool has = dispatch->staging.block != NULL || dispatch->readback_count > 0;
  for (uint32_t i = 0; i < dispatch->copied_count; i++)
    has = has || dispatch->copied[i].is_written;
  return has;
}

void vk_dispatch_record_epilogue(const vk_dispatch *dispatch,
                                 VkCommandBuffer commands) {
  const vk_device *device = device_of(dispatch);
  if (dispatch->readback_count > 0) record_readbacks(dispatch, commands);
  if (dispatch->staging.block) {
    VkBufferCopy back = {dispatch->memory.offset + dispatch->readback_at,
                         dispatch->staging.offset + dispatch->readback_at,
                         dispatch->shared_size - dispatch->readback_at};
    device->api.CmdCopyBuffer(commands, dispatch->memory.buffer,
                              dispatch->staging.buffer, 1, &back);
  }
  for (uint32_t i = 0; i < dispatch->copied_count; i++) {
    const vk_copied_view *d = &dispatch->copied[i];
    VkBufferCopy back = {dispatch->memory.offset + d->at, d->offset, d->size};
    if (!d->is_written) continue;
    device->api.CmdCopyBuffer(commands, dispatch->memory.buffer, d->buffer, 1,
                              &back);
  }
}

static void record_timestamp(const vk_dispatch *dispatch,
                             VkCommandBuffer commands, uint32_t which) {
  const vk_api *api = &device_of(dispatch)->api;
  if (!dispatch->queries) return;
  if (which == 0) api->CmdResetQueryPool(commands, dispatch->queries, 0, 2);
  api->CmdWriteTimestamp(commands,
                         which == 0 ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT
                                    : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                         dispatch->queries, which);
}

/* Records the copy of launch blocks for a window after the first. In the first
 * window the prologue copies them with all staged bytes. */
static void record_block_copies(const vk_dispatch *dispatch,
                                VkCommandBuffer commands) {
  const vk_device *device = device_of(dispatch);
  if (!dispatch->staging.block || dispatch->block_stride == 0) return;
  VkBufferCopy blocks = {dispatch->staging.offset, dispatch->memory.offset,
                         VK_WINDOW_TILES * dispatch->block_stride};
  device->api.CmdCopyBuffer(commands, dispatch->staging.buffer,
                            dispatch->memory.buffer, 1, &blocks);
  vk_cmd_barrier(device, commands);
}

/* Records tiles only, as vk_dispatch_record_window. */
static void record_tiles(vk_dispatch *dispatch, const vyre__launch *launch,
                         vk_tile_walk *walk, uint64_t groups,
                         VkCommandBuffer commands, VkPipeline *bound,
                         uint64_t *recorded) {
  vk_tile tile;
  uint32_t index = 0;
  *recorded = 0;
  while (!walk->is_done && index < VK_WINDOW_TILES &&
         (index == 0 || *recorded < groups)) {
    vk_tile_walk_next(walk, groups - *recorded, &tile);
    record_tile(dispatch, launch, &tile, walk->schedule.values, index++,
                commands, bound);
    *recorded += (uint64_t)tile.groups[0] * tile.groups[1] * tile.groups[2];
    vk_tile_walk_advance(walk);
  }
  dispatch->tile_count = index;
}

void vk_dispatch_record_window(vk_dispatch *dispatch,
                               const vyre__launch *launch, vk_tile_walk *walk,
                               uint64_t groups, VkCommandBuffer commands,
                               VkPipeline *bound, uint64_t *recorded) {
  const vk_device *device = device_of(dispatch);
  record_timestamp(dispatch, commands, 0);
  if (walk->has_started) {
    record_block_copies(dispatch, commands);
  } else if (vk_dispatch_record_prologue(dispatch, commands)) {
    vk_cmd_barrier(device, commands);
  }
  record_tiles(dispatch, launch, walk, groups, commands, bound, recorded);
  if (walk->is_done && vk_dispatch_has_epilogue(dispatch)) {
    vk_cmd_barrier(device, commands);
    vk_dispatch_record_epilogue(dispatch, commands);
  }
  record_timestamp(dispatch, commands, 1);
}

/* Records all tiles of the launch, with the prologue and the epilogue unless
 * @p is_bare. */
static vyre_code record_launch(vk_dispatch *dispatch,
                               const vyre__launch *launch, bool is_bare,
                               VkCommandBuffer commands, VkPipeline *bound,
                               vyre_status *st) {
  const vk_plan *plan = &dispatch->pipeline->plan;
  size_t capacity = 2 * (size_t)plan->loop_count + plan->host_count;
  uint64_t *loop_values =
      vyre__arena_array(launch->scratch, capacity, sizeof *loop_values);
  uint64_t groups;
  vyre__launch snapshot;
  if (!loop_values) return vyre__no_memory(st, "vulkan", "loops", capacity);
  VYRE_TRY(use_key_bytes(dispatch, launch, &snapshot, st));
  vk_tile_walk walk =
      vk_tile_walk_begin(dispatch->pipeline, &snapshot, loop_values);
  (is_bare ? record_tiles : vk_dispatch_record_window)(
      dispatch, &snapshot, &walk, UINT64_MAX, commands, bound, &groups);
  if (walk.is_done) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_NONE, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"tiles", VK_WINDOW_TILES}),
      "report a bug, with the kernel and its grid",
      "kernel '%.60s': %llu workgroups in %d tiles do not cover its grid",
      dispatch->pipeline->base.program->name, (unsigned long long)groups,
      VK_WINDOW_TILES);
}

vyre_code vk_dispatch_record_all(vk_dispatch *dispatch,
                                 const vyre__launch *launch,
                                 VkCommandBuffer commands, VkPipeline *bound,
                                 vyre_status *st) {
  return record_launch(dispatch, launch, false, commands, bound, st);
}

vyre_code vk_dispatch_record_tiles(vk_dispatch *dispatch,
                                   const vyre__launch *launch,
                                   VkCommandBuffer commands, VkPipeline *bound,
                                   vyre_status *st) {
  return record_launch(dispatch, launch, true, commands, bound, st);
}

/* Records the command buffer of the dispatch. */
static vyre_code record_commands(vk_dispatch *dispatch,
                                 const vyre__launch *launch, vyre_status *st) {
  vk_device *device = device_of(dispatch);
  VkPipeline bound = VK_NULL_HANDLE;
  VYRE_TRY(vk_command_buffer_begin(device, dispatch->commands, st));
  VYRE_TRY(
      vk_dispatch_record_all(dispatch, launch, dispatch->commands, &bound, st));
  return vk_command_buffer_end(device, dispatch->commands,
                               dispatch->flags & VK_DISPATCH_END_BARRIER, st);
}

/* --- encoding ------------------------------------------------------------- */

static vk_dispatch *allocate(vk_pipeline *p, const key *k, unsigned flags) {
  size_t count = p->plan.buffer_count;
  size_t keys = k->count * sizeof *k->words;
  size_t size = sizeof(vk_dispatch) + keys +
                count * (sizeof(vk_staged_view) + sizeof(vk_copied_view) +
                         sizeof(vk_clear) + sizeof(vk_readback) +
                         sizeof(vk_block_uniform) + sizeof(uint32_t));
  unsigned char *block = vyre__alloc_zeroed(p->base.device->allocator, size);
  if (!block) return NULL;
  vk_dispatch *dispatch = (vk_dispatch *)(void *)block;
  unsigned char *at = block + sizeof *dispatch;
  memcpy(at, k->words, keys);
  dispatch->key = (const uint64_t *)(void *)at;
  dispatch->staged = (vk_staged_view *)(void *)(at + keys);
  dispatch->copied = (vk_copied_view *)(void *)(dispatch->staged + count);
  dispatch->clears = (vk_clear *)(void *)(dispatch->copied + count);
  dispatch->readbacks = (vk_readback *)(void *)(dispatch->clears + count);
  dispatch->uniforms =
      (vk_block_uniform *)(void *)(dispatch->readbacks + count);
  dispatch->key_bytes_at = (uint32_t *)(void *)(dispatch->uniforms + count);
  dispatch->pipeline = p;
  dispatch->size = size;
  dispatch->hash = k->hash;
  dispatch->key_count = k->count;
  dispatch->flags = flags;
  return dispatch;
}

/* Finds whether the kernel has a status word, and outputs that it does not
 * write. */
static void find_checks(vk_dispatch *dispatch) {
  const vk_plan *plan = &dispatch->pipeline->plan;
  const vyre_binding_plan *bindings = &dispatch->pipeline->base.plan;
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    dispatch->has_status |= plan->descriptors[i].what == VYRE__SPIRV_STATUS;
  }
  for (size_t i = 0; i < bindings->binding_count; i++) {
    const vyre_binding *b = &bindings->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    const vyre__spirv_descriptor *d = vk_plan_descriptor(plan, b->buffer_index);
    dispatch->has_unwritten_output |= !d || !d->is_written;
  }
}

static vyre_code encode(vk_dispatch *dispatch, const vyre__launch *launch,
                        vyre_status *st) {
  const vk_plan *plan = &dispatch->pipeline->plan;
  find_checks(dispatch);
  memory_layout l = {.dispatch = dispatch, .launch = launch, .plan = plan};
  l.placements = vyre__arena_array(launch->scratch, plan->buffer_count,
                                   sizeof *l.placements);
  if (!l.placements) {
    return vyre__no_memory(st, "vulkan", "buffers", plan->buffer_count);
  }
  memset(l.placements, 0, plan->buffer_count * sizeof *l.placements);
  VYRE_TRY(allocate_memory(&l, st));
  VYRE_TRY(vk_pipeline_phases(dispatch->pipeline,
                              launch_fuel(launch) < UINT32_MAX, launch,
                              &dispatch->phases, st));
  VK_TRY(device_of(dispatch), create_set(&l), "descriptor set creation", st);
  if (dispatch->flags & VK_DISPATCH_INLINE) return VYRE_OK;
  VK_TRY(device_of(dispatch), create_commands(dispatch),
         "command buffer creation", st);
  return dispatch->flags & VK_DISPATCH_WINDOWED
             ? VYRE_OK
             : record_commands(dispatch, launch, st);
}

bool vk_dispatch_matches(const vk_dispatch *dispatch,
                         const vyre__launch *launch) {
  key k;
  return build_key(dispatch->pipeline, launch, dispatch->flags, &k) &&
         matches(dispatch, &k);
}

vyre_code vk_dispatch_acquire(vk_pipeline *p, const vyre__launch *launch,
                              unsigned flags, vk_dispatch **out,
                              vyre_status *st) {
  key k;
  if (!build_key(p, launch, flags, &k)) {
    return vyre__no_memory(st, "vulkan", "buffers", p->plan.buffer_count);
  }
  hash_key(&k);
  *out = flags & VK_DISPATCH_INLINE ? NULL : find_idle(p, &k);
  if (*out) return VYRE_OK;
  *out = allocate(p, &k, flags);
  if (!*out) return vyre__no_memory(st, "vulkan", "encoded dispatches", 1);
  find_key_bytes(*out, launch);
  vyre_code code = encode(*out, launch, st);
  if (code == VYRE_OK) return VYRE_OK;
  vk_dispatch_free(*out);
  *out = NULL;
  return code;
}
