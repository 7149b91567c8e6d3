/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates work queues, and moves items in and out of them. */
#include "analyze/queue/queue.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "flow/queue_internal.h"
#include "ir/queue.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"

/* --- lifetime ------------------------------------------------------------- */

vyre_code vyre__queue_allocate(vyre_device *device,
                               const vyre__queue_info *info,
                               vyre_buffer *memory, vyre__device_buffer **held,
                               vyre_status *st) {
  enum { ALIGNMENT = 256 };
  *held = NULL;
  VYRE_TRY(vyre__device_buffer_create(device, info->memory_bytes, ALIGNMENT,
                                      memory, vyre__status_open(st)));
  vyre_code code = vyre__device_buffer_acquire(device, *memory, held, st);
  if (code != VYRE_OK) vyre__queue_release_memory(device, *memory, NULL);
  return code;
}

void vyre__queue_release_memory(vyre_device *device, vyre_buffer memory,
                                vyre__device_buffer *held) {
  if (held) vyre__device_buffer_release(device, held);
  if (memory.id) (void)!vyre_buffer_destroy(device, memory, NULL);
}

static vyre_code check_program(const vyre_device *device,
                               const vyre_program *program, vyre_status *st) {
  if (!program->queue) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "compile it with vyre_pipeline_compile and dispatch it, "
                     "or add queue(u32) to its header",
                     "kernel '%.60s' is not a queue kernel", program->name);
  }
  for (size_t i = 0; i < program->buffer_count; i++) {
    if (!vyre__is_sum(program->buffers[i].element) ||
        device->backend->takes_queue_programs) {
      continue;
    }
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use device 'ref', or a buffer of f32 or f64",
                     "device '%s' has no exact sums in queue kernels: '%.60s'",
                     vyre_device_name(device), program->buffers[i].name);
  }
  if (device->backend->needs_queue_steps && program->queue->by) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use device 'cpu' or 'ref'",
                     "device '%s' has no priorities: kernel '%.60s' has "
                     "by(...)",
                     vyre_device_name(device), program->name);
  }
  if (device->backend->queue_drain) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "use device 'cpu' or 'ref'",
                   "device '%s' runs no work queues: kernel '%.60s' is a queue "
                   "kernel",
                   vyre_device_name(device), program->name);
}

static vyre_code compile_part(vyre_queue *queue, vyre__queue_part_kind kind,
                              vyre_status *st) {
  vyre_device *device = queue->device;
  vyre_program *program;
  if (device->backend->takes_queue_programs) {
    VYRE_TRY(vyre__queue_part(queue->program, kind, device->allocator, &program,
                              st));
  } else {
    const uint32_t hidden = vyre__hidden_count(queue->program->queue->kind);
    const uint32_t workgroup = device->backend->needs_queue_steps
                                   ? VYRE__QUEUE_STEP_GROUP
                                   : VYRE__QUEUE_GROUP;
    VYRE_TRY(vyre__queue_kernel(queue->program, kind, hidden, workgroup,
                                device->allocator, &program,
                                &queue->kernels[kind], st));
  }
  const vyre_code code = vyre__pipeline_compile_part(
      device, program, &queue->compile, &queue->parts[kind], st);
  vyre_program_release(program);
  return code;
}

static vyre_code init(vyre_queue *queue, vyre_status *st) {
  VYRE_TRY(vyre__queue_plan(queue->device, queue->program, &queue->options,
                            &queue->info, &queue->plan, st));
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    const vyre__queue_part_kind kind = (vyre__queue_part_kind)i;
    if (!vyre__queue_has_part(queue->program, kind)) continue;
    VYRE_TRY(compile_part(queue, kind, st));
  }
  VYRE_TRY(vyre__queue_compile_steps(queue, st));
  return vyre__queue_allocate(queue->device, &queue->info, &queue->memory,
                              &queue->held_memory, st);
}

vyre_code vyre_queue_create(vyre_device *device, vyre_program *program,
                            const vyre_queue_options *options, vyre_queue **out,
                            vyre_diagnostics *diagnostics, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  static const vyre_queue_options defaults;
  VYRE_REQUIRE_BOTH(st, device, program);
  if (!options) options = &defaults;
  VYRE_CHECK_RESERVED(st, __func__, options);
  if (options->compile)
    VYRE_TRY(vyre__check_compile_options(__func__, options->compile, st));
  VYRE_TRY(vyre__device_check(device, st));
  VYRE_TRY(vyre__check_body(program, diagnostics, st));
  VYRE_TRY(check_program(device, program, st));
  vyre_queue *queue = vyre__alloc_zeroed(device->allocator, sizeof *queue);
  if (!queue) return vyre__no_memory(st, __func__, "queues", 1);
  atomic_init(&queue->references, 1);
  pthread_mutex_init(&queue->lock, NULL);
  queue->device = vyre_device_retain(device);
  queue->program = vyre_program_retain(program);
  queue->options = *options;
  if (options->compile) queue->compile = *options->compile;
  /* A queue calls its kernel very often, so it begins with optimised code. */
  if (queue->compile.tier == VYRE_TIER_AUTO)
    queue->compile.tier = VYRE_TIER_OPTIMISED;
  queue->options.compile = NULL;
  queue->is_fresh = true;
  vyre_code code = init(queue, st);
  if (code != VYRE_OK) {
    vyre_queue_release(queue);
    return code;
  }
  *out = queue;
  return VYRE_OK;
}

vyre_queue *vyre_queue_retain(vyre_queue *queue) {
  if (queue) atomic_fetch_add(&queue->references, 1);
  return queue;
}

void vyre_queue_release(vyre_queue *queue) {
  if (!queue || atomic_fetch_sub(&queue->references, 1) > 1) return;
  vyre_device *device = queue->device;
  vyre__queue_release_memory(device, queue->memory, queue->held_memory);
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++)
    vyre_pipeline_release(queue->parts[i]);
  for (int i = 0; i < VYRE__QUEUE_STEPS; i++)
    vyre_pipeline_release(queue->steps[i]);
  vyre_program_release(queue->program);
  pthread_mutex_destroy(&queue->lock);
  vyre__resize(device->allocator, queue, sizeof *queue, 0);
  vyre_device_release(device);
}

const vyre_queue_run_plan *vyre_queue_get_plan(const vyre_queue *queue) {
  return queue ? &queue->plan : NULL;
}

/* --- state ---------------------------------------------------------------- */

void vyre__queue_empty(vyre_queue *queue) {
  queue->state = (vyre__queue_state){0};
  queue->is_lost = false;
  queue->is_fresh = true;
}

vyre_code vyre_queue_get_state(vyre_queue *queue, vyre_queue_state *out,
                               vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = (vyre_queue_state){0};
  VYRE_REQUIRE(st, queue);
  pthread_mutex_lock(&queue->lock);
  *out = (vyre_queue_state){.window = queue->state.window,
                            .position = queue->state.position,
                            .current = queue->state.current,
                            .next = queue->state.next,
                            .is_lost = queue->is_lost};
  pthread_mutex_unlock(&queue->lock);
  return VYRE_OK;
}

void vyre_queue_cancel(vyre_queue *queue) {
  if (queue) atomic_store(&queue->is_cancelled, true);
}

/* --- filling -------------------------------------------------------------- */

static vyre_code does_not_fit(const vyre_queue *queue, uint64_t count,
                              vyre_status *st) {
  const uint64_t held = vyre__queue_held(queue);
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_INITIAL_ITEMS_EXCEED_CAPACITY, NULL,
      VYRE_NUMBERS({"initial_items", held + count},
                   {"queue_capacity", queue->info.capacity}),
      "raise vyre_queue_options.capacity, or start with fewer items",
      "%llu initial items do not fit into a queue of %llu places",
      (unsigned long long)(held + count),
      (unsigned long long)queue->info.capacity);
}

static vyre_code append(vyre_queue *queue, const void *items, uint64_t count,
                        vyre_status *st) {
  const uint64_t bytes = (uint64_t)queue->info.item_words * 4;
  VYRE_TRY(vyre__buffer_write(
      queue->device, queue->held_memory->buffer,
      queue->info.items.offset + queue->state.current * bytes, items,
      (size_t)(count * bytes), st));
  queue->state.current += count;
  return VYRE_OK;
}

static vyre_code check_keys(const vyre_queue *queue, const uint32_t *keys,
                            uint64_t count, vyre_status *st) {
  for (uint64_t i = 0; i < count; i++) {
    if (keys[i] < queue->info.capacity) continue;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "items",
        VYRE_NUMBERS({"item", i}, {"key", keys[i]},
                     {"capacity", queue->info.capacity}),
        "pass keys below the number of keys, or raise the capacity",
        "items[%llu] is key %u, but the set has %llu keys",
        (unsigned long long)i, keys[i],
        (unsigned long long)queue->info.capacity);
  }
  return VYRE_OK;
}

/* Adds keys to those that the queue has, and sorts all of them. */
static vyre_code merge_keys(vyre_queue *queue, const uint32_t *added,
                            uint64_t count, vyre_status *st) {
  const uint64_t held = queue->state.current, all = held + count;
  vyre_allocator allocator = queue->device->allocator;
  VYRE_TRY(check_keys(queue, added, count, st));
  vyre__sort_item *items = NULL;
  size_t bytes;
  if (all <= SIZE_MAX && vyre__mul((size_t)all, sizeof *items, &bytes))
    items = vyre__resize(allocator, NULL, 0, bytes);
  if (!items) return vyre__no_memory(st, "vyre_queue_fill", "keys", all);
  uint32_t *keys = (uint32_t *)(void *)items;
  vyre_code code = vyre__buffer_read(queue->device, queue->held_memory->buffer,
                                     queue->info.items.offset, keys,
                                     (size_t)held * sizeof *keys, st);
  if (code == VYRE_OK) {
    for (uint64_t i = held; i-- > 0;) items[i] = (vyre__sort_item){keys[i], i};
    for (uint64_t i = 0; i < count; i++)
      items[held + i] = (vyre__sort_item){added[i], held + i};
    vyre__sort(items, (size_t)all);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < all; i++) {
      const uint32_t key = (uint32_t)items[i].key;
      if (kept == 0 || key != keys[kept - 1]) keys[kept++] = key;
    }
    queue->state.current = 0;
    code = append(queue, keys, kept, st);
  }
  vyre__resize(allocator, items, bytes, 0);
  return code;
}

vyre_code vyre__queue_fill(vyre_queue *queue, const void *items, uint64_t count,
                           vyre_status *st) {
  if (queue->is_lost || !queue->is_fresh) vyre__queue_empty(queue);
  if (count == 0) return VYRE_OK;
  if (vyre__queue_is_set(&queue->info))
    return merge_keys(queue, items, count, st);
  if (count > queue->info.capacity - queue->state.current)
    return does_not_fit(queue, count, st);
  return append(queue, items, count, st);
}

vyre_code vyre_queue_fill(vyre_queue *queue, const void *items, uint64_t count,
                          vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, queue);
  VYRE_REQUIRE_ARRAY(st, items, count);
  VYRE_TRY(vyre__device_check(queue->device, st));
  pthread_mutex_lock(&queue->lock);
  vyre_code code = vyre__queue_fill(queue, items, count, st);
  pthread_mutex_unlock(&queue->lock);
  return code;
}

vyre_code vyre_queue_fill_from_buffer(vyre_queue *queue, vyre_buffer buffer,
                                      uint64_t offset, uint64_t count,
                                      vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, queue);
  const size_t item_bytes = (size_t)queue->info.item_words * 4;
  size_t bytes;
  if (count > SIZE_MAX || !vyre__mul((size_t)count, item_bytes, &bytes))
    return vyre__no_memory(st, __func__, "items", count);
  void *items = vyre__resize(queue->device->allocator, NULL, 0, bytes);
  if (!items && bytes > 0) return vyre__no_memory(st, __func__, "items", count);
  vyre_code code = vyre_buffer_download(queue->device, buffer, offset, items,
                                        bytes, vyre__status_open(st));
  if (code == VYRE_OK) {
    pthread_mutex_lock(&queue->lock);
    code = vyre__queue_fill(queue, items, count, st);
    pthread_mutex_unlock(&queue->lock);
  }
  vyre__resize(queue->device->allocator, items, bytes, 0);
  return code;
}

/* --- taking items out, and other memory ------------------------------------ */

vyre_code vyre__queue_is_lost(const vyre_queue *queue, vyre_status *st) {
  return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_QUEUE_LOST, NULL,
                        VYRE_NUMBERS({"window", queue->state.window}),
                        "start again with vyre_queue_fill",
                        "the queue of kernel '%.60s' was lost in window %llu",
                        queue->program->name,
                        (unsigned long long)queue->state.window);
}

static vyre_code take(vyre_queue *queue, void *items, uint64_t max,
                      uint64_t *count, vyre_status *st) {
  if (queue->is_lost) return vyre__queue_is_lost(queue, st);
  *count = vyre__queue_held(queue);
  if (!items || max < *count) return VYRE_OK;
  VYRE_TRY(vyre__buffer_read(
      queue->device, queue->held_memory->buffer, queue->info.items.offset,
      items, (size_t)(*count * queue->info.item_words * 4), st));
  vyre__queue_empty(queue);
  return VYRE_OK;
}

vyre_code vyre_queue_take(vyre_queue *queue, void *items, uint64_t max,
                          uint64_t *count, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, count);
  *count = 0;
  VYRE_REQUIRE(st, queue);
  VYRE_TRY(vyre__device_check(queue->device, st));
  pthread_mutex_lock(&queue->lock);
  vyre_code code = take(queue, items, max, count, st);
  pthread_mutex_unlock(&queue->lock);
  return code;
}

/* Copies a region into other memory. */
static vyre_code copy_region(vyre_queue *queue, vyre__buffer *to,
                             const vyre__queue_region *from,
                             const vyre__queue_region *into, uint64_t size,
                             vyre_status *st) {
  enum { BLOCK = 65536 };
  unsigned char *block = vyre__resize(queue->device->allocator, NULL, 0, BLOCK);
  if (!block) return vyre__no_memory(st, "vyre_queue_resize", "bytes", BLOCK);
  vyre_code code = VYRE_OK;
  for (uint64_t at = 0; at < size && code == VYRE_OK; at += BLOCK) {
    const size_t part = size - at < BLOCK ? (size_t)(size - at) : BLOCK;
    code = vyre__buffer_read(queue->device, queue->held_memory->buffer,
                             from->offset + at, block, part, st);
    if (code == VYRE_OK) {
      code = vyre__buffer_write(queue->device, to, into->offset + at, block,
                                part, st);
    }
  }
  vyre__resize(queue->device->allocator, block, BLOCK, 0);
  return code;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static vyre_code copy_items(vyre_queue *queue, vyre__buffer *to,
                            const vyre__queue_info *into, vyre_status *st) {
  const vyre__queue_info *from = &queue->info;
  const uint64_t items = vyre__queue_held(queue) * from->item_words * 4;
  VYRE_TRY(copy_region(queue, to, &from->items, &into->items, items, st));
  VYRE_TRY(copy_region(queue, to, &from->seen, &into->seen,
                       smaller(from->seen.size, into->seen.size), st));
  return copy_region(queue, to, &from->priorities, &into->priorities,
                     smaller(from->priorities.size, into->priorities.size), st);
}

static vyre_code resize(vyre_queue *queue, uint64_t capacity, vyre_status *st) {
  vyre_queue_options options = queue->options;
  vyre__queue_info info;
  vyre_queue_run_plan plan;
  vyre_buffer memory = {0};
  vyre__device_buffer *held;
  options.capacity = capacity;
  if (queue->is_lost) return vyre__queue_is_lost(queue, st);
  VYRE_TRY(vyre__queue_plan(queue->device, queue->program, &options, &info,
                            &plan, st));
  const bool is_set = vyre__queue_is_set(&info);
  if (vyre__queue_held(queue) > info.capacity ||
      (is_set && !queue->is_fresh && info.capacity < queue->info.capacity)) {
    return VYRE_FAIL_WITH(
        st, VYRE_PLAN_REJECTED, VYRE_KIND_INITIAL_ITEMS_EXCEED_CAPACITY, NULL,
        VYRE_NUMBERS({"items", vyre__queue_held(queue)},
                     {"queue_capacity", info.capacity}),
        "use a larger capacity, or remove the items with vyre_queue_take",
        "the %llu items of the queue do not fit into %llu places",
        (unsigned long long)vyre__queue_held(queue),
        (unsigned long long)info.capacity);
  }
  VYRE_TRY(vyre__queue_allocate(queue->device, &info, &memory, &held, st));
  vyre_code code = copy_items(queue, held->buffer, &info, st);
  if (code != VYRE_OK) {
    vyre__queue_release_memory(queue->device, memory, held);
    return code;
  }
  vyre__queue_release_memory(queue->device, queue->memory, queue->held_memory);
  queue->memory = memory;
  queue->held_memory = held;
  queue->info = info;
  queue->plan = plan;
  queue->options = options;
  return VYRE_OK;
}

vyre_code vyre_queue_resize(vyre_queue *queue, uint64_t capacity,
                            vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, queue);
  VYRE_TRY(vyre__device_check(queue->device, st));
  pthread_mutex_lock(&queue->lock);
  vyre_code code = resize(queue, capacity, st);
  pthread_mutex_unlock(&queue->lock);
  return code;
}
