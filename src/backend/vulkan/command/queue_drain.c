/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drains work queues. A step runs one chunk of a window. It has five dispatches
 * (hal/queue_steps.h); for a small chunk, three of them have empty grids. The
 * first one, `turn`, writes the grids of the others, so
 * a submission has many steps, and the host reads a few counters once for all of
 * them. Steps behind the end of the queue have empty grids. */
#include "backend/vulkan/command/queue_drain.h"

#include <string.h>

#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/launch.h"
#include "backend/vulkan/command/pools.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/memory/heap.h"
#include "backend/vulkan/pipeline.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/queue_steps.h"
#include "ir/queue.h"

enum {
  ALIGNMENT = 256,
  FIRST_BATCH = 16, /* steps of the first submission */
  MAX_BATCH = 256,
  BATCHES = 3,                 /* 16, 64 and 256 */
  MAX_CHUNK = 1 << 16,         /* items of a list */
  MAX_SET_CHUNK = 1 << 21,     /* keys: the grid stays below every limit */
  MAX_PUSHED_BYTES = 64 << 20, /* of a chunk */
  MAX_UNIFORMS = 10,           /* of a step */
  MAX_VIEWS = 16,              /* of a step */
  GROWS_BELOW_NS = 500000000   /* expected time of the next submission */
};

/* --- memory ----------------------------------------------------------------*/

/* Ranges of the region `work`. */
typedef struct vk_queue_memory {
  uint64_t state, place, items, pushed, counts, offsets, blocks, next, window;
  uint64_t pushed_words, count_words, block_words, bit_words;
  uint64_t size;
} vk_queue_memory;

static bool is_set(const vyre__queue_info *info) {
  return info->kind == VYRE__QUEUE_SET || info->kind == VYRE__QUEUE_ONCE;
}

static uint64_t take(vk_queue_memory *m, uint64_t words) {
  const uint64_t at = m->size;
  m->size += ((words ? words : 1) * 4 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return at;
}

static uint64_t blocks_of(uint64_t count) {
  return (count + VYRE__QUEUE_SCAN_BLOCK - 1) / VYRE__QUEUE_SCAN_BLOCK;
}

static vk_queue_memory lay_out(const vyre__queue_info *info) {
  vk_queue_memory m = {0};
  const uint64_t chunk = info->items_per_chunk;
  m.bit_words = is_set(info) ? (info->capacity + 31) / 32 : 0;
  m.pushed_words = is_set(info) ? VYRE__QUEUE_NARROW
                                : chunk * info->pushes * info->item_words;
  m.count_words = is_set(info) ? VYRE__COUNT_WORDS : chunk;
  m.block_words = blocks_of(is_set(info) ? m.bit_words : chunk);
  m.state = take(&m, VYRE__STATE_WORDS);
  m.place = take(&m, VYRE__PLACE_WORDS);
  m.items = take(&m, chunk * info->item_words);
  m.pushed = take(&m, m.pushed_words);
  m.counts = take(&m, m.count_words);
  m.offsets = take(&m, is_set(info) ? m.bit_words : chunk);
  m.blocks = take(&m, m.block_words);
  m.next = take(&m, m.bit_words);
  m.window = take(&m, info->has_pull ? m.bit_words : 0);
  return m;
}

static uint64_t largest_chunk(const vyre__queue_info *info) {
  const uint64_t bytes = 4 * (uint64_t)info->pushes * info->item_words;
  uint64_t max = MAX_CHUNK;
  if (is_set(info)) return MAX_SET_CHUNK;
  if (bytes > 0 && max > MAX_PUSHED_BYTES / bytes)
    max = MAX_PUSHED_BYTES / bytes;
  return max > 0 ? max : 1;
}

void vk_queue_plan(const vyre_device *device, vyre__queue_info *info) {
  const uint64_t max = largest_chunk(info);
  uint64_t *chunk = &info->items_per_chunk;
  const uint32_t windows = ((const vk_device *)device)->queue_windows;
  if (info->mode != VYRE_QUEUE_MODE_NEWEST)
    info->mode = VYRE_QUEUE_MODE_WINDOWS;
  if (*chunk == 0 || *chunk > max) *chunk = max;
  if (*chunk > info->capacity && info->capacity > 0) *chunk = info->capacity;
  info->first_batch = windows ? windows : FIRST_BATCH;
  info->max_batch = windows ? windows : MAX_BATCH;
  info->work_bytes = lay_out(info).size;
}

/* --- a drain ---------------------------------------------------------------*/

/* A launch of a step: buffers first, then uniforms. */
typedef struct vk_step {
  vyre__launch launch;
  vyre__view views[MAX_VIEWS];
  uint32_t numbers[MAX_UNIFORMS];
  uint32_t view_count, number_count;
  vk_dispatch *dispatch;
} vk_step;

typedef struct vk_drain {
  vk_device *device;
  vyre__drain *drain;
  const vyre__queue_info *info;
  vyre__queue_state *state;
  vk_queue_memory memory;
  vk_step steps[VYRE__QUEUE_STEPS], end; /* end: a TURN that begins no chunk */
  vk_step reverse[3];
  vyre__launch launch; /* of the kernel of the queue */
  vk_dispatch *kernel;
  VkCommandPool pools[BATCHES + 1];
  VkCommandBuffer commands[BATCHES + 1]; /* the last one is for other work */
  bool is_recorded[BATCHES];
  vk_submission submission;
  uint32_t words[VYRE__STATE_WORDS];
  uint64_t last_ns; /* of a step */
} vk_drain;

static vyre__view view_at(const vk_drain *d, uint64_t offset, uint64_t words) {
  vyre__buffer *memory = d->drain->memory;
  return (vyre__view){.data = memory->host ? memory->host + offset : NULL,
                      .length = (uint32_t)(words ? words : 1),
                      .buffer = memory,
                      .offset = offset};
}

static vyre__view work_view(const vk_drain *d, uint64_t at, uint64_t words) {
  return view_at(d, d->info->work.offset + at, words);
}

static void add_view(vk_step *step, vyre__view view) {
  step->views[step->view_count++] = view;
}

static void add_number(vk_step *step, uint64_t number) {
  uint32_t *at = &step->numbers[step->number_count++];
  *at = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
  step->views[step->view_count++] =
      (vyre__view){.data = (unsigned char *)at, .length = 1};
}

static void begin_step(const vk_drain *d, vk_step *step, vyre__queue_step kind,
                       uint64_t max_items, uint64_t group) {
  const vyre__launch *like = d->drain->launch;
  const uint64_t groups = (max_items + group - 1) / group;
  step->launch = (vyre__launch){.pipeline = d->drain->steps[kind],
                                .views = step->views,
                                .grid = {groups ? (uint32_t)groups : 1, 1, 1},
                                .max_loop_iterations = UINT64_MAX,
                                .scratch = like->scratch};
}

static void add_state(const vk_drain *d, vk_step *step) {
  add_view(step, work_view(d, d->memory.state, VYRE__STATE_WORDS));
}

static vyre__view items_view(const vk_drain *d) {
  return view_at(d, d->info->items.offset, d->info->items.size / 4);
}

/* Depth of mode NEWEST; 0: windows. */
static uint64_t depth_of(const vyre__queue_info *info) {
  if (info->mode != VYRE_QUEUE_MODE_NEWEST) return 0;
  return info->max_depth ? info->max_depth : VYRE__QUEUE_DEPTH;
}

static uint32_t group_of(const vk_drain *d) {
  return d->drain->parts[VYRE__QUEUE_PUSH]->workgroup[0];
}

static vyre__view chunk_view(const vk_drain *d) {
  return work_view(d, d->memory.items,
                   d->info->items_per_chunk * d->info->item_words);
}

static void begin_turn(const vk_drain *d, vk_step *step) {
  const vk_queue_memory *m = &d->memory;
  begin_step(d, step, VYRE__QUEUE_STEP_TURN, 1, 1);
  add_state(d, step);
  add_view(step, work_view(d, m->place, VYRE__PLACE_WORDS));
  add_view(step, work_view(d, m->counts, m->count_words));
  add_view(step, work_view(d, m->blocks, m->block_words));
  add_view(step, work_view(d, m->pushed, m->pushed_words));
}

static void make_list_turn(const vk_drain *d, vk_step *step, bool begins) {
  const vyre__queue_info *info = d->info;
  begin_turn(d, step);
  add_view(step, items_view(d));
  add_view(step, chunk_view(d));
  add_number(step, info->capacity);
  add_number(step, info->pushes);
  add_number(step, info->items_per_chunk);
  add_number(step, d->drain->max_windows);
  add_number(step, depth_of(info));
  add_number(step, group_of(d));
  add_number(step, begins);
  add_number(step, info->item_words);
  add_number(step, info->has_order_hash);
}

/* Returns `seen` of `once`, and memory that nothing uses of `set`. */
static vyre__view seen_view(const vk_drain *d) {
  if (d->info->kind == VYRE__QUEUE_ONCE) {
    return view_at(d, d->info->seen.offset, d->info->seen.size / 4);
  }
  return work_view(d, d->memory.window, 1);
}

static void make_set_turn(const vk_drain *d, vk_step *step, bool begins) {
  const vyre__queue_info *info = d->info;
  begin_turn(d, step);
  add_view(step, work_view(d, d->memory.next, d->memory.bit_words));
  add_view(step, seen_view(d));
  add_view(step, items_view(d));
  add_view(step, chunk_view(d));
  add_number(step, d->drain->keys);
  add_number(step, info->items_per_chunk);
  add_number(step, d->drain->max_windows);
  add_number(step, info->kind == VYRE__QUEUE_ONCE);
  add_number(step, group_of(d));
  add_number(step, begins);
  add_number(step, info->has_order_hash);
}

static void make_fetch(vk_drain *d) {
  const vyre__queue_info *info = d->info;
  vk_step *step = &d->steps[VYRE__QUEUE_STEP_FETCH];
  const bool is_newest = info->mode == VYRE_QUEUE_MODE_NEWEST;
  begin_step(d, step, VYRE__QUEUE_STEP_FETCH, info->items_per_chunk,
             VYRE__QUEUE_STEP_GROUP);
  add_state(d, step);
  add_view(step, items_view(d));
  add_view(step, chunk_view(d));
  add_number(step, info->capacity);
  add_number(step, info->item_words);
  add_number(step, is_set(info) ? VYRE__FETCH_FROM_POSITION
                   : is_newest  ? VYRE__FETCH_FROM_TOP
                                : VYRE__FETCH_FROM_HEAD);
  add_number(step, info->has_order_hash);
}

static void make_list_steps(vk_drain *d) {
  const vyre__queue_info *info = d->info;
  const vk_queue_memory *m = &d->memory;
  vk_step *place = &d->steps[VYRE__QUEUE_STEP_PLACE];
  vk_step *scan = &d->steps[VYRE__QUEUE_STEP_SCAN];
  begin_step(d, place, VYRE__QUEUE_STEP_PLACE, info->items_per_chunk,
             VYRE__QUEUE_STEP_GROUP);
  add_state(d, place);
  add_view(place, work_view(d, m->counts, m->count_words));
  add_view(place, work_view(d, m->offsets, info->items_per_chunk));
  add_view(place, work_view(d, m->blocks, m->block_words));
  add_view(place, work_view(d, m->pushed, m->pushed_words));
  add_view(place, items_view(d));
  add_number(place, info->capacity);
  add_number(place, info->pushes);
  add_number(place, info->item_words);
  begin_step(d, scan, VYRE__QUEUE_STEP_SCAN, info->items_per_chunk,
             VYRE__QUEUE_SCAN_BLOCK);
  add_state(d, scan);
  add_view(scan, work_view(d, m->counts, m->count_words));
  add_view(scan, work_view(d, m->offsets, info->items_per_chunk));
  add_view(scan, work_view(d, m->blocks, m->block_words));
  add_number(scan, info->pushes);
}

static void make_set_steps(vk_drain *d) {
  const vk_queue_memory *m = &d->memory;
  vk_step *fill = &d->steps[VYRE__QUEUE_STEP_PLACE];
  vk_step *scan = &d->steps[VYRE__QUEUE_STEP_SCAN];
  begin_step(d, fill, VYRE__QUEUE_STEP_PLACE, m->bit_words,
             VYRE__QUEUE_STEP_GROUP);
  add_state(d, fill);
  add_view(fill, work_view(d, m->next, m->bit_words));
  add_view(fill, work_view(d, m->offsets, m->bit_words));
  add_view(fill, work_view(d, m->blocks, m->block_words));
  add_view(fill, items_view(d));
  add_view(fill, seen_view(d));
  add_number(fill, d->info->kind == VYRE__QUEUE_ONCE);
  begin_step(d, scan, VYRE__QUEUE_STEP_SCAN, m->bit_words,
             VYRE__QUEUE_SCAN_BLOCK);
  add_view(scan, work_view(d, m->next, m->bit_words));
  add_view(scan, work_view(d, m->offsets, m->bit_words));
  add_view(scan, work_view(d, m->blocks, m->block_words));
}

/* Binds the buffers of the queue behind those of the kernel. */
static bool make_kernel(vk_drain *d) {
  const vyre__queue_info *info = d->info;
  const vk_queue_memory *m = &d->memory;
  const vyre__drain *drain = d->drain;
  const uint32_t first = drain->first_hidden;
  const uint32_t count = first + vyre__hidden_count(info->kind);
  const uint64_t chunk = info->items_per_chunk, group = group_of(d);
  vyre__view *views =
      vyre__arena_array(drain->launch->scratch, count, sizeof *views);
  if (!views) return false;
  memcpy(views, drain->launch->views, first * sizeof *views);
  views += first;
  views[VYRE__HIDDEN_ITEMS] = work_view(d, m->items, chunk * info->item_words);
  views[VYRE__HIDDEN_PLACE] = work_view(d, m->place, VYRE__PLACE_WORDS);
  views[VYRE__HIDDEN_PUSHED] = work_view(d, m->pushed, m->pushed_words);
  views[VYRE__HIDDEN_COUNTS] = work_view(d, m->counts, m->count_words);
  if (is_set(info)) {
    views[VYRE__HIDDEN_SEEN] = seen_view(d);
    views[VYRE__HIDDEN_NEXT] = work_view(d, m->next, m->bit_words);
    views[VYRE__HIDDEN_WINDOW] =
        work_view(d, m->window, info->has_pull ? m->bit_words : 1);
  }
  d->launch = *drain->launch;
  d->launch.pipeline = drain->parts[VYRE__QUEUE_PUSH];
  d->launch.views = views - first;
  d->launch.grid[0] = (uint32_t)((chunk + group - 1) / group);
  d->launch.grid[1] = d->launch.grid[2] = 1;
  d->launch.deadline_ns = 0;
  return true;
}

static vyre_code acquire(const vyre__launch *launch, vk_dispatch **out,
                         vyre_status *st) {
  vk_pipeline *p = (vk_pipeline *)launch->pipeline;
  if (*out) return VYRE_OK;
  return vk_dispatch_acquire(p, launch, VK_DISPATCH_INLINE, out, st);
}

static vyre_code prepare(vk_drain *d, vyre_status *st) {
  const bool sets = is_set(d->info);
  (sets ? make_set_turn : make_list_turn)(d, &d->steps[VYRE__QUEUE_STEP_TURN],
                                          true);
  (sets ? make_set_turn : make_list_turn)(d, &d->end, false);
  (sets ? make_set_steps : make_list_steps)(d);
  make_fetch(d);
  if (!make_kernel(d)) return vyre__no_memory(st, "vulkan", "buffers", 1);
  VYRE_TRY(vk_snapshot_uniforms((vk_pipeline *)d->launch.pipeline, &d->launch,
                                VK_UNIFORM_ENCODED, true, &d->launch, st));
  for (int i = 0; i <= VYRE__QUEUE_STEP_SCAN; i++)
    VYRE_TRY(acquire(&d->steps[i].launch, &d->steps[i].dispatch, st));
  VYRE_TRY(acquire(&d->end.launch, &d->end.dispatch, st));
  VYRE_TRY(acquire(&d->launch, &d->kernel, st));
  for (int i = 0; i <= BATCHES; i++) {
    VK_TRY(
        d->device,
        vk_command_buffer_create(d->device, 0, &d->pools[i], &d->commands[i]),
        "command buffer creation", st);
  }
  return VYRE_OK;
}

static void release(vk_drain *d) {
  for (int i = 0; i < VYRE__QUEUE_STEPS; i++) {
    if (d->steps[i].dispatch) vk_dispatch_free(d->steps[i].dispatch);
  }
  for (int i = 0; i < 3; i++) {
    if (d->reverse[i].dispatch) vk_dispatch_free(d->reverse[i].dispatch);
  }
  if (d->end.dispatch) vk_dispatch_free(d->end.dispatch);
  if (d->kernel) vk_dispatch_free(d->kernel);
  for (int i = 0; i <= BATCHES; i++)
    d->device->api.DestroyCommandPool(d->device->handle, d->pools[i], NULL);
  vk_submission_deinit(d->device, &d->submission);
}

/* --- recording -------------------------------------------------------------*/

/* Records a dispatch whose grid is in `state`. */
static void record_indirect(const vk_drain *d, vk_dispatch *dispatch,
                            const vyre__launch *launch, unsigned grid,
                            VkCommandBuffer commands, VkPipeline *bound) {
  const vk_range *memory = &((const vk_buffer *)d->drain->memory)->range;
  const uint64_t at = memory->offset + d->info->work.offset + d->memory.state +
                      4 * (VYRE__STATE_GRIDS + 3 * (uint64_t)grid);
  vk_dispatch_record_indirect(dispatch, launch, memory->buffer, at, commands,
                              bound);
  vk_cmd_barrier(d->device, commands);
}

static vyre_code record_step(const vk_drain *d, VkCommandBuffer commands,
                             VkPipeline *bound, vyre_status *st) {
  const vk_step *turn = &d->steps[VYRE__QUEUE_STEP_TURN];
  const vk_step *place = &d->steps[VYRE__QUEUE_STEP_PLACE];
  const vk_step *fetch = &d->steps[VYRE__QUEUE_STEP_FETCH];
  const vk_step *scan = &d->steps[VYRE__QUEUE_STEP_SCAN];
  VYRE_TRY(vk_dispatch_record_tiles(turn->dispatch, &turn->launch, commands,
                                    bound, st));
  vk_cmd_barrier(d->device, commands);
  record_indirect(d, place->dispatch, &place->launch, VYRE__QUEUE_GRID_PLACE,
                  commands, bound);
  record_indirect(d, fetch->dispatch, &fetch->launch, VYRE__QUEUE_GRID_FETCH,
                  commands, bound);
  record_indirect(d, d->kernel, &d->launch, VYRE__QUEUE_GRID_KERNEL, commands,
                  bound);
  record_indirect(d, scan->dispatch, &scan->launch, VYRE__QUEUE_GRID_SCAN,
                  commands, bound);
  return VYRE_OK;
}

/* Records the end of the last chunk, behind the steps of a submission. */
static vyre_code record_end(const vk_drain *d, VkCommandBuffer commands,
                            VkPipeline *bound, vyre_status *st) {
  const vk_step *place = &d->steps[VYRE__QUEUE_STEP_PLACE];
  VYRE_TRY(vk_dispatch_record_tiles(d->end.dispatch, &d->end.launch, commands,
                                    bound, st));
  vk_cmd_barrier(d->device, commands);
  record_indirect(d, place->dispatch, &place->launch, VYRE__QUEUE_GRID_PLACE,
                  commands, bound);
  return VYRE_OK;
}

static vyre_code submit(vk_drain *d, const VkCommandBuffer *commands,
                        uint32_t count, vyre_status *st) {
  VYRE_TRY(vk_submit(d->device, commands, count, &d->submission, st));
  VYRE_TRY(vk_wait(d->device, &d->submission, st));
  d->drain->stats->submissions++;
  d->drain->stats->waits++;
  return VYRE_OK;
}

static uint32_t batch_of(const vk_drain *d, int index) {
  const uint32_t batch = d->info->first_batch << 2 * index;
  return batch < d->info->max_batch ? batch : d->info->max_batch;
}

/* Records a batch. The end of its last chunk is a part of it, so that `state`
 * is at rest when the host reads it. */
static vyre_code record_batch(vk_drain *d, int index, vyre_status *st) {
  VkCommandBuffer commands = d->commands[index];
  VkPipeline bound = VK_NULL_HANDLE;
  if (d->is_recorded[index]) return VYRE_OK;
  VYRE_TRY(vk_command_buffer_begin(d->device, commands, st));
  for (uint32_t i = 0; i < batch_of(d, index); i++)
    VYRE_TRY(record_step(d, commands, &bound, st));
  VYRE_TRY(record_end(d, commands, &bound, st));
  VYRE_TRY(vk_command_buffer_end(d->device, commands, true, st));
  d->is_recorded[index] = true;
  return VYRE_OK;
}

/* --- state -----------------------------------------------------------------*/

static void set_u64(uint32_t *words, uint64_t value) {
  words[0] = (uint32_t)value;
  words[1] = (uint32_t)(value >> 32);
}

static uint64_t get_u64(const uint32_t *words) {
  return (uint64_t)words[1] << 32 | words[0];
}

static vyre_code write_state(vk_drain *d, vyre_status *st) {
  const vyre__queue_state *s = d->state;
  uint32_t *w = d->words;
  memset(w, 0, sizeof d->words);
  w[VYRE__STATE_CURRENT] = (uint32_t)s->current;
  w[VYRE__STATE_NEXT] = (uint32_t)s->next;
  w[VYRE__STATE_POSITION] = (uint32_t)s->position;
  w[VYRE__STATE_WINDOW] = (uint32_t)s->window;
  w[VYRE__STATE_STOP] = VYRE__STATE_RUNNING;
  w[VYRE__STATE_FAILED] = VYRE__STATE_NONE;
  w[VYRE__STATE_LAST_ITEMS] = (uint32_t)s->last_items;
  memcpy(&w[VYRE__STATE_SUMS], s->sums, sizeof s->sums);
  set_u64(&w[VYRE__STATE_HASH], s->order_hash);
  w[VYRE__STATE_SEEN_KEYS] = (uint32_t)s->seen;
  for (int i = 0; i < VYRE__QUEUE_GRIDS; i++) { /* `turn` writes x only */
    w[VYRE__STATE_GRIDS + 3 * i + 1] = 1;
    w[VYRE__STATE_GRIDS + 3 * i + 2] = 1;
  }
  return vk_buffer_write(&d->device->base, d->drain->memory,
                         d->info->work.offset + d->memory.state, w,
                         sizeof d->words, st);
}

static vyre_code read_state(vk_drain *d, vyre_status *st) {
  vyre__queue_state *s = d->state;
  const uint32_t *w = d->words;
  VYRE_TRY(vk_buffer_read(&d->device->base, d->drain->memory,
                          d->info->work.offset + d->memory.state, d->words,
                          sizeof d->words, st));
  d->drain->stats->flag_reads++;
  s->current = w[VYRE__STATE_CURRENT];
  s->next = w[VYRE__STATE_NEXT];
  s->position = w[VYRE__STATE_POSITION];
  /* The device counts windows in 32 bits. */
  s->window += (uint32_t)(w[VYRE__STATE_WINDOW] - (uint32_t)s->window);
  s->last_items = w[VYRE__STATE_LAST_ITEMS];
  memcpy(s->sums, &w[VYRE__STATE_SUMS], sizeof s->sums);
  s->order_hash = get_u64(&w[VYRE__STATE_HASH]);
  s->seen = w[VYRE__STATE_SEEN_KEYS];
  return VYRE_OK;
}

static void add_stats(const vk_drain *d) {
  const uint32_t *w = d->words;
  vyre_queue_stats *stats = d->drain->stats;
  stats->items += get_u64(&w[VYRE__STATE_ITEMS]);
  stats->pushed += get_u64(&w[VYRE__STATE_PUSHED]);
  stats->dropped_keys += w[VYRE__STATE_DROPPED];
  stats->windows += w[VYRE__STATE_WINDOWS];
  stats->chunks += w[VYRE__STATE_CHUNKS];
  stats->narrow_windows += w[VYRE__STATE_NARROW_WINDOWS];
  if (w[VYRE__STATE_HIGH_WATER] > stats->high_water)
    stats->high_water = w[VYRE__STATE_HIGH_WATER];
}

/* --- beginning and ending --------------------------------------------------*/

/* Records what comes before the first step: the inputs of the kernel, and empty
 * bit sets. */
static void record_start(const vk_drain *d, VkCommandBuffer commands,
                         bool clears_seen) {
  const vk_range *memory = &((const vk_buffer *)d->drain->memory)->range;
  const vk_api *api = &d->device->api;
  for (int i = 0; i <= VYRE__QUEUE_STEP_SCAN; i++)
    (void)vk_dispatch_record_prologue(d->steps[i].dispatch, commands);
  (void)vk_dispatch_record_prologue(d->end.dispatch, commands);
  (void)vk_dispatch_record_prologue(d->kernel, commands);
  if (is_set(d->info)) {
    api->CmdFillBuffer(commands, memory->buffer,
                       memory->offset + d->info->work.offset + d->memory.next,
                       4 * (d->memory.bit_words ? d->memory.bit_words : 1), 0);
    api->CmdFillBuffer(commands, memory->buffer,
                       memory->offset + d->info->work.offset + d->memory.counts,
                       4 * (uint64_t)VYRE__COUNT_WORDS, 0);
  }
  if (clears_seen) {
    api->CmdFillBuffer(commands, memory->buffer,
                       memory->offset + d->info->seen.offset,
                       d->info->seen.size, 0);
  }
  vk_cmd_barrier(d->device, commands);
}

/* Marks the initial keys of a set, and counts those that are not below N. */
static vyre_code record_keys(vk_drain *d, VkCommandBuffer commands,
                             vyre_status *st) {
  vk_step *step = &d->steps[VYRE__QUEUE_STEP_START];
  VkPipeline bound = VK_NULL_HANDLE;
  begin_step(d, step, VYRE__QUEUE_STEP_START, d->state->current,
             VYRE__QUEUE_STEP_GROUP);
  add_state(d, step);
  add_view(step, items_view(d));
  add_view(step, seen_view(d));
  add_number(step, d->drain->keys);
  add_number(step, d->state->current);
  VYRE_TRY(acquire(&step->launch, &step->dispatch, st));
  VYRE_TRY(vk_dispatch_record_all(step->dispatch, &step->launch, commands,
                                  &bound, st));
  vk_cmd_barrier(d->device, commands);
  return VYRE_OK;
}

/* Prepares the first submission, which follows these commands. */
static vyre_code start(vk_drain *d, vyre_status *st) {
  vyre__queue_state *s = d->state;
  VkCommandBuffer commands = d->commands[BATCHES];
  const bool is_once = d->info->kind == VYRE__QUEUE_ONCE;
  const bool is_fresh =
      is_set(d->info) && s->window == 0 && s->position == 0 && s->seen == 0;
  if (is_fresh) s->seen = is_once ? s->current : 0;
  VYRE_TRY(vk_dispatch_write_inputs(d->kernel, &d->launch, st));
  VYRE_TRY(write_state(d, st));
  VYRE_TRY(vk_command_buffer_begin(d->device, commands, st));
  record_start(d, commands, is_fresh && is_once);
  if (is_fresh && s->current > 0) VYRE_TRY(record_keys(d, commands, st));
  return vk_command_buffer_end(d->device, commands, true, st);
}

static vyre_code record_reverse(vk_drain *d, vk_step *step, uint64_t first,
                                uint64_t count, VkCommandBuffer commands,
                                vyre_status *st) {
  VkPipeline bound = VK_NULL_HANDLE;
  begin_step(d, step, VYRE__QUEUE_STEP_REVERSE, count / 2,
             VYRE__QUEUE_STEP_GROUP);
  add_view(step, items_view(d));
  add_number(step, first);
  add_number(step, count);
  add_number(step, d->info->item_words);
  VYRE_TRY(acquire(&step->launch, &step->dispatch, st));
  VYRE_TRY(vk_dispatch_record_all(step->dispatch, &step->launch, commands,
                                  &bound, st));
  vk_cmd_barrier(d->device, commands);
  return VYRE_OK;
}

/* Turns the ring of a list so that its first item is at place 0: reversing both
 * parts and then all of it keeps the order. */
static vyre_code record_turn(vk_drain *d, VkCommandBuffer commands,
                             vyre_status *st) {
  const uint64_t head = d->words[VYRE__STATE_HEAD];
  const uint64_t places = d->info->capacity;
  VYRE_TRY(record_reverse(d, &d->reverse[0], 0, head, commands, st));
  VYRE_TRY(
      record_reverse(d, &d->reverse[1], head, places - head, commands, st));
  return record_reverse(d, &d->reverse[2], 0, places, commands, st);
}

/* Brings the queue to rest and completes the kernel. */
static vyre_code finish(vk_drain *d, vyre_status *st) {
  VkCommandBuffer commands = d->commands[BATCHES];
  const bool turns =
      !is_set(d->info) && d->info->mode == VYRE_QUEUE_MODE_WINDOWS &&
      d->words[VYRE__STATE_HEAD] != 0 && d->state->current + d->state->next > 0;
  const bool has_epilogue = vk_dispatch_has_epilogue(d->kernel);
  if (turns || has_epilogue) {
    VK_TRY(d->device,
           d->device->api.ResetCommandPool(d->device->handle, d->pools[BATCHES],
                                           0),
           "vkResetCommandPool", st);
    VYRE_TRY(vk_command_buffer_begin(d->device, commands, st));
    if (turns) VYRE_TRY(record_turn(d, commands, st));
    if (has_epilogue) vk_dispatch_record_epilogue(d->kernel, commands);
    VYRE_TRY(vk_command_buffer_end(d->device, commands, true, st));
    VYRE_TRY(submit(d, &commands, 1, st));
  }
  return vk_dispatch_complete(d->kernel, &d->launch, st);
}

/* --- draining --------------------------------------------------------------*/

/* Returns true if the drain must end after this submission. */
static bool must_stop(vk_drain *d) {
  vyre__drain *drain = d->drain;
  const uint32_t stop = d->words[VYRE__STATE_STOP];
  if (stop != VYRE__STATE_RUNNING) {
    drain->stop = (vyre_queue_stop)stop;
    return true;
  }
  if (is_set(d->info) && d->state->position > 0) return false;
  if (atomic_load(drain->is_cancelled)) {
    drain->stop = VYRE_QUEUE_STOP_CANCELLED;
    return true;
  }
  if (drain->stop_ns && vyre__clock_ns() >= drain->stop_ns) {
    drain->stop = VYRE_QUEUE_STOP_TIMEOUT;
    return true;
  }
  return false;
}

static vyre_code drain_steps(vk_drain *d, vyre_status *st) {
  int index = 0;
  for (bool is_first = true;; is_first = false) {
    const VkCommandBuffer both[] = {d->commands[BATCHES], d->commands[index]};
    VYRE_TRY(record_batch(d, index, st));
    const uint64_t begin = vyre__clock_ns();
    VYRE_TRY(submit(d, both + !is_first, 1 + is_first, st));
    const uint64_t ns = vyre__clock_ns() - begin;
    VYRE_TRY(read_state(d, st));
    if (vk_dispatch_end_status(d->kernel) != VYRE__SPIRV_ENDED)
      return vk_dispatch_complete(d->kernel, &d->launch, st);
    if (must_stop(d)) return VYRE_OK;
    const bool may_grow = batch_of(d, index) < d->info->max_batch;
    if (may_grow && index + 1 < BATCHES && ns < GROWS_BELOW_NS / 4) index++;
  }
}

static void note_failure(const vk_drain *d) {
  vyre__drain *drain = d->drain;
  if (drain->stop != VYRE_QUEUE_STOP_PUSHES) return;
  drain->failed_item = d->words[VYRE__STATE_FAILED];
  drain->failed_line = drain->push_lines[d->words[VYRE__STATE_FAILED_SITE]];
}

static vyre_code check(const vk_drain *d, vyre_status *st) {
  const vk_pipeline *p = (const vk_pipeline *)d->drain->parts[VYRE__QUEUE_PUSH];
  if (p->plan.step_count == 1) return VYRE_OK;
  return VYRE_FAIL_WITH(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                        NULL, VYRE_NUMBERS({"phases", p->plan.step_count}),
                        "use device 'cpu' or 'ref'",
                        "device '%s' runs queue kernels of one phase, and this "
                        "one has %u",
                        vyre_device_name(&d->device->base), p->plan.step_count);
}

vyre_code vk_queue_drain(vyre__drain *drain, vyre_status *st) {
  vk_device *device = (vk_device *)drain->launch->pipeline->device;
  vk_drain *d = vyre__arena_filled(drain->launch->scratch, 1, sizeof *d, 0);
  if (!d) return vyre__no_memory(st, "vulkan", "drains", 1);
  *d = (vk_drain){.device = device,
                  .drain = drain,
                  .info = drain->info,
                  .state = drain->state,
                  .memory = lay_out(drain->info)};
  drain->stop = VYRE_QUEUE_STOP_EMPTY;
  vyre_code code = check(d, st);
  if (code == VYRE_OK) code = prepare(d, st);
  /* Recording writes the launch blocks, which `start` copies. */
  if (code == VYRE_OK) code = record_batch(d, 0, st);
  if (code == VYRE_OK) code = start(d, st);
  if (code == VYRE_OK) code = drain_steps(d, st);
  if (code == VYRE_OK) {
    add_stats(d);
    note_failure(d);
    code = finish(d, st);
  }
  release(d);
  return code;
}
