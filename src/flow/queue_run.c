/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs work queues: binds the buffers of the kernel like a dispatch, has the
 * device drain the queue, and reports how that ended. */
#include <string.h>

#include "base/checked_math.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "flow/queue_internal.h"
#include "ir/queue.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/work_queue.h"
#include "runtime/dispatch/prepared_match.h"

/* A run: a fence, if the caller asked for one, with its queue and bindings. */
typedef struct queue_run {
  vyre_fence fence; /* first member: the fence is the object */
  vyre_queue *queue;
  vyre__prepared *prepared;
  vyre_queue_stats *stats;
  vyre_pipeline *parts[VYRE__QUEUE_PARTS];
  vyre__queue_source source; /* of a recorded run */
  vyre__step_limit limit;    /* of the replay that it is part of */
} queue_run;

/* --- checks --------------------------------------------------------------- */

static vyre_code refuse_field(const char *field, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "leave it zeroed: vyre_queue_options has the limits of a "
                   "run",
                   "vyre_queue_run: vyre_dispatch_desc.%s is for dispatches",
                   field);
}

static vyre_code check_desc(const vyre_dispatch_desc *desc, vyre_status *st) {
  const bool has_grid = (desc->grid[0] | desc->grid[1] | desc->grid[2]) != 0;
  if (has_grid) return refuse_field("grid", st);
  if (desc->timeout_ns) return refuse_field("timeout_ns", st);
  if (desc->has_repeat_count) return refuse_field("repeat_count", st);
  if (desc->variant) return refuse_field("variant", st);
  if (desc->progress) return refuse_field("progress", st);
  return VYRE_OK;
}

static vyre_code check_state(const vyre_queue *queue, vyre_status *st) {
  const vyre__queue_info *info = &queue->info;
  if (queue->is_lost) return vyre__queue_is_lost(queue, st);
  if (info->mode != VYRE_QUEUE_MODE_NEWEST || info->max_depth == 0 ||
      !queue->is_fresh || info->pushes < 2) {
    return VYRE_OK;
  }
  const uint64_t items = queue->state.current;
  const uint64_t needed = vyre__add_saturated(
      items, vyre__mul_saturated(info->pushes - 1, info->max_depth));
  if (needed <= info->capacity) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_OVER_BUDGET, NULL,
      VYRE_NUMBERS({"needed", needed}, {"capacity", info->capacity},
                   {"initial_items", items}, {"pushes", info->pushes},
                   {"max_depth", info->max_depth}),
      "raise the capacity, or lower max_depth if no path is that long",
      "this run needs %llu items, you gave %llu: %llu initial items, at most "
      "%u pushes per item, and paths of at most %llu items",
      (unsigned long long)needed, (unsigned long long)info->capacity,
      (unsigned long long)items, info->pushes,
      (unsigned long long)info->max_depth);
}

/* Finds N of a set: a constant, the value of a uniform, or a length. */
static vyre_code find_keys(const vyre_queue *queue,
                           const vyre__prepared *prepared, uint64_t *out,
                           vyre_status *st) {
  const vyre__queue_clauses *clauses = queue->program->queue;
  const vyre__view *view = &prepared->views[clauses->bound];
  *out = clauses->bound;
  if (clauses->bound_kind == VYRE__BOUND_NONE) {
    *out = 0;
  } else if (clauses->bound_kind == VYRE__BOUND_LEN) {
    *out = view->length;
  } else if (clauses->bound_kind == VYRE__BOUND_UNIFORM) {
    uint32_t value = 0;
    if (view->buffer) {
      VYRE_TRY(vyre__buffer_read(queue->device, view->buffer, view->offset,
                                 &value, sizeof value, st));
    } else {
      memcpy(&value, view->data, sizeof value);
    }
    *out = value;
  }
  if (*out <= queue->info.capacity) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
      VYRE_NUMBERS({"keys", *out}, {"capacity", queue->info.capacity}),
      "set vyre_queue_options.capacity to the largest number of keys",
      "this run has %llu keys, but the queue of kernel '%.60s' has places for "
      "%llu",
      (unsigned long long)*out, queue->program->name,
      (unsigned long long)queue->info.capacity);
}

/* --- outcomes ------------------------------------------------------------- */

static vyre_code is_full(const vyre_queue *queue, vyre_status *st) {
  const vyre__queue_info *info = &queue->info;
  const uint64_t held = vyre__queue_held(queue);
  const uint64_t growth = info->pushes - 1;
  const bool is_newest = info->mode == VYRE_QUEUE_MODE_NEWEST;
  const uint64_t steps = !is_newest        ? queue->state.current
                         : info->max_depth ? info->max_depth
                                           : UINT64_C(2) * VYRE__QUEUE_DEPTH;
  const uint64_t sufficient =
      vyre__add_saturated(held, vyre__mul_saturated(growth, steps));
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_QUEUE_FULL, NULL,
      VYRE_NUMBERS({"remaining", held}, {"capacity", info->capacity},
                   {"pushes", info->pushes}, {"window", queue->state.window},
                   {"sufficient", sufficient}),
      "continue with a larger queue (vyre_queue_resize), or remove the items "
      "with vyre_queue_take",
      "the queue of kernel '%.60s' is full: it holds %llu items in %llu "
      "places, and the next item may push %u; %llu places suffice for %s",
      queue->program->name, (unsigned long long)held,
      (unsigned long long)info->capacity, info->pushes,
      (unsigned long long)sufficient,
      is_newest ? "the paths from here" : "the rest of this window");
}

static vyre_code stopped(const vyre_queue *queue, bool is_timeout,
                         uint64_t timeout_ns, vyre_status *st) {
  char limit[VYRE__DURATION_TEXT];
  const uint64_t held = vyre__queue_held(queue);
  if (!is_timeout) {
    return VYRE_FAIL_WITH(
        st, VYRE_DISPATCH_FAILED, VYRE_KIND_CANCELLED, NULL,
        VYRE_NUMBERS({"remaining", held}, {"window", queue->state.window}),
        "call vyre_queue_run again to continue",
        "the run of queue kernel '%.60s' was cancelled in window %llu: %llu "
        "items remain",
        queue->program->name, (unsigned long long)queue->state.window,
        (unsigned long long)held);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
      VYRE_NUMBERS({"timeout_ns", timeout_ns}, {"remaining", held},
                   {"window", queue->state.window}),
      "call vyre_queue_run again to continue, or raise timeout_ns",
      "queue kernel '%.60s' ran longer than %s: it stopped in window %llu, and "
      "%llu items remain",
      queue->program->name, vyre__duration(timeout_ns, limit),
      (unsigned long long)queue->state.window, (unsigned long long)held);
}

static vyre_code pushed_too_often(const vyre_queue *queue,
                                  const vyre__drain *drain, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_PUSHES_EXCEEDED, NULL,
      VYRE_NUMBERS(
          {"item", drain->failed_item}, {"window", queue->state.window},
          {"pushes", queue->info.pushes}, {"line", drain->failed_line}),
      "raise P of pushes(P) to the largest number of pushes of an item",
      "queue kernel '%.60s', line %u: item %llu of window %llu pushed more "
      "than %u items",
      queue->program->name, drain->failed_line,
      (unsigned long long)drain->failed_item,
      (unsigned long long)queue->state.window, queue->info.pushes);
}

/* Turns the end of a drain into a status. */
static vyre_code finish(vyre_queue *queue, const vyre__drain *drain,
                        vyre_code code, vyre_status *st) {
  if (code != VYRE_OK) {
    queue->is_lost = true;
    vyre__status_where(st, "window", queue->state.window,
                       "window %llu; the items of the queue are lost",
                       (unsigned long long)queue->state.window);
    return code;
  }
  switch (drain->stop) {
    case VYRE_QUEUE_STOP_FULL:
      return is_full(queue, st);
    case VYRE_QUEUE_STOP_TIMEOUT:
    case VYRE_QUEUE_STOP_CANCELLED:
      return stopped(queue, drain->stop == VYRE_QUEUE_STOP_TIMEOUT,
                     drain->timeout_ns, st);
    case VYRE_QUEUE_STOP_PUSHES:
      queue->is_lost = true;
      return pushed_too_often(queue, drain, st);
    default:
      return VYRE_OK;
  }
}

/* --- running -------------------------------------------------------------- */

static uint64_t time_after(uint64_t start, uint64_t ns) {
  return start + ns < start ? UINT64_MAX : start + ns;
}

/* The earlier of two limits counts: that of the queue, and that of a replay. */
static void set_deadline(vyre__drain *drain, uint64_t start,
                         const vyre__step_limit *limit) {
  if (drain->timeout_ns) drain->stop_ns = time_after(start, drain->timeout_ns);
  if (limit->deadline_ns &&
      (!drain->stop_ns || limit->deadline_ns < drain->stop_ns)) {
    drain->stop_ns = limit->deadline_ns;
    drain->timeout_ns = limit->timeout_ns;
  }
  if (drain->stop_ns)
    drain->kill_ns = time_after(drain->stop_ns, drain->timeout_ns);
}

/* Reads bytes of a recorded run. */
static vyre_code read_memory(const vyre_queue *queue,
                             const vyre__step_memory *memory, void *to,
                             size_t size, vyre_status *st) {
  if (memory->buffer)
    return vyre__buffer_read(queue->device, memory->buffer, memory->offset, to,
                             size, st);
  memcpy(to, memory->data, size);
  return VYRE_OK;
}

static vyre_code too_many_items(const vyre_queue *queue, uint64_t count,
                                uint64_t max, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"count", count}, {"items", max}),
      "write a smaller count, or pass a longer range of items",
      "the queue of kernel '%.60s' is to begin with %llu items, but the range "
      "of its items has %llu",
      queue->program->name, (unsigned long long)count, (unsigned long long)max);
}

/* Fills the queue from the memory of a recorded run. */
static vyre_code fill_from(vyre_queue *queue, const vyre__queue_source *source,
                           vyre_status *st) {
  const vyre__step_memory *items = source->items;
  const size_t item_bytes = (size_t)queue->info.item_words * 4;
  if (!items) return VYRE_OK;
  uint64_t count = items->size / item_bytes;
  if (source->count) {
    uint32_t wanted = 0;
    VYRE_TRY(read_memory(queue, source->count, &wanted, sizeof wanted, st));
    if (wanted > count) return too_many_items(queue, wanted, count, st);
    count = wanted;
  }
  vyre__queue_empty(queue);
  if (!items->buffer) return vyre__queue_fill(queue, items->data, count, st);
  const size_t bytes = (size_t)count * item_bytes;
  void *copy = vyre__resize(queue->device->allocator, NULL, 0, bytes);
  if (!copy && bytes > 0)
    return vyre__no_memory(st, "vyre_recording_replay", "items", count);
  vyre_code code = read_memory(queue, items, copy, bytes, st);
  if (code == VYRE_OK) code = vyre__queue_fill(queue, copy, count, st);
  vyre__resize(queue->device->allocator, copy, bytes, 0);
  return code;
}

static vyre_code drain_queue(vyre_queue *queue, queue_run *run,
                             vyre_queue_stats *stats, vyre_status *st) {
  const uint64_t timeout = queue->options.timeout_ns;
  const uint64_t start = vyre__clock_ns();
  vyre__drain drain = {.info = &queue->info,
                       .state = &queue->state,
                       .memory = queue->held_memory->buffer,
                       .launch = &run->prepared->launch,
                       .first_hidden = (uint32_t)queue->program->buffer_count,
                       .push_lines = queue->kernels[VYRE__QUEUE_PUSH].lines,
                       .max_windows = queue->options.max_windows
                                          ? queue->options.max_windows
                                          : UINT64_MAX,
                       .timeout_ns = timeout,
                       .is_cancelled = &queue->is_cancelled,
                       .stats = stats};
  set_deadline(&drain, start, &run->limit);
  memcpy(drain.parts, run->parts, sizeof drain.parts);
  drain.steps = queue->steps;
  VYRE_TRY(check_state(queue, st));
  VYRE_TRY(find_keys(queue, run->prepared, &drain.keys, st));
  queue->is_fresh = queue->is_fresh && queue->state.current == 0;
  run->prepared->drain = &drain;
  vyre_code code = vyre__prepared_execute(run->prepared, st);
  run->prepared->drain = NULL;
  if (!drain.has_begun) return code; /* the items are as before */
  code = finish(queue, &drain, code, st);
  stats->stop = drain.stop;
  stats->wall_ns = vyre__clock_ns() - start;
  return code;
}

static vyre_code run_now(queue_run *run, vyre_status *st) {
  vyre_queue *queue = run->queue;
  vyre_queue_stats stats = {.plan_bytes = queue->info.memory_bytes,
                            .mode = queue->info.mode};
  pthread_mutex_lock(&queue->lock);
  atomic_store(&queue->is_cancelled, false);
  vyre_code code = vyre__device_check(queue->device, st);
  if (code == VYRE_OK) code = fill_from(queue, &run->source, st);
  if (code == VYRE_OK) code = drain_queue(queue, run, &stats, st);
  stats.remaining = vyre__queue_held(queue);
  if (queue->info.has_order_hash) stats.order_hash = queue->state.order_hash;
  if (code == VYRE_OK && stats.remaining == 0) queue->is_fresh = true;
  if (queue->is_fresh && stats.remaining == 0)
    queue->state = (vyre__queue_state){0};
  pthread_mutex_unlock(&queue->lock);
  if (run->stats) *run->stats = stats;
  return code;
}

/* Arrays of a run's bindings: those of the caller, then hidden ones. */
typedef struct bindings {
  vyre_input *inputs;
  vyre_output *outputs;
} bindings;

enum { HIDDEN_BYTES = 256 };

/* Adds the hidden buffers, as memory of the queue, behind those of @p desc. */
static void add_hidden(const vyre_queue *queue, vyre_dispatch_desc *desc,
                       const bindings *b) {
  const uint32_t hidden = vyre__hidden_count(queue->program->queue->kind);
  const bool has_resources = desc->resource_count > 0;
  size_t inputs = has_resources ? desc->resource_count : desc->input_count;
  size_t outputs = desc->output_count;
  if (inputs > 0)
    memcpy(b->inputs, has_resources ? desc->resources : desc->inputs,
           inputs * sizeof *b->inputs);
  if (outputs > 0)
    memcpy(b->outputs, desc->outputs, outputs * sizeof *b->outputs);
  for (uint32_t i = 0; i < hidden; i++) {
    const uint64_t at = queue->info.hidden.offset + (uint64_t)i * HIDDEN_BYTES;
    const bool is_written = i == VYRE__HIDDEN_PUSHED ||
                            i == VYRE__HIDDEN_COUNTS || i == VYRE__HIDDEN_NEXT;
    b->inputs[inputs++] = (vyre_input){
        .buffer = queue->memory, .offset = at, .size = HIDDEN_BYTES};
    if (is_written && (!has_resources || outputs > 0)) {
      b->outputs[outputs++] =
          (vyre_output){.buffer = queue->memory, .offset = at};
    }
  }
  desc->outputs = outputs > 0 ? b->outputs : NULL;
  desc->output_count = outputs;
  if (has_resources) {
    desc->resources = b->inputs;
    desc->resource_count = inputs;
  } else {
    desc->inputs = b->inputs;
    desc->input_count = inputs;
  }
}

/* Binds the buffers of a run, with the hidden ones if there are any. */
static vyre_code check_bindings(queue_run *run, const vyre_dispatch_desc *desc,
                                vyre_status *st) {
  const vyre_queue *queue = run->queue;
  const vyre_allocator allocator = queue->device->allocator;
  const size_t buffers = queue->program->buffer_count;
  const size_t most = 2 * (buffers + VYRE__HIDDEN_COUNT);
  const size_t bytes = most * (sizeof(vyre_input) + sizeof(vyre_output));
  if (queue->device->backend->takes_queue_programs ||
      desc->input_count > buffers || desc->output_count > buffers ||
      desc->resource_count > buffers) { /* too many are reported */
    return vyre__prepared_check(run->prepared, desc, st);
  }
  vyre_dispatch_desc own = *desc;
  bindings b;
  b.inputs = vyre__resize(allocator, NULL, 0, bytes);
  if (!b.inputs) return vyre__no_memory(st, "vyre_queue_run", "bindings", most);
  b.outputs = (vyre_output *)(void *)(b.inputs + most);
  add_hidden(queue, &own, &b);
  vyre_code code = vyre__prepared_check(run->prepared, &own, st);
  if (code == VYRE_OK) vyre__prepared_copy_desc(run->prepared);
  vyre__resize(allocator, b.inputs, bytes, 0);
  return code;
}

/* Finds the pipelines that count as @p desc asks for, and binds its buffers. */
static vyre_code prepare(queue_run *run, const vyre_dispatch_desc *desc,
                         vyre_status *st) {
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    run->parts[i] = run->queue->parts[i];
    if (!run->parts[i] || !desc->max_loop_iterations) continue;
    VYRE_TRY(
        vyre__pipeline_variant(run->queue->parts[i], desc, &run->parts[i], st));
  }
  VYRE_TRY(
      vyre__prepared_acquire(run->parts[VYRE__QUEUE_PUSH], &run->prepared, st));
  vyre_code code = check_bindings(run, desc, st);
  if (code == VYRE_OK) return VYRE_OK;
  vyre__prepared_return(run->prepared);
  run->prepared = NULL;
  return code;
}

static void end_run(queue_run *run) {
  if (run->prepared) {
    vyre__prepared_invalidate(run->prepared);
    vyre__prepared_return(run->prepared);
  }
  run->prepared = NULL;
}

static vyre_code queued_work(vyre_fence *fence, vyre_status *st) {
  queue_run *run = (queue_run *)fence;
  return run_now(run, st);
}

static void queued_cleanup(vyre_fence *fence) {
  queue_run *run = (queue_run *)fence;
  end_run(run);
  vyre_queue_release(run->queue);
}

static vyre_code run_later(vyre_queue *queue, const vyre_dispatch_desc *desc,
                           vyre_queue_stats *stats, vyre_fence **out,
                           vyre_status *st) {
  vyre_fence *fence;
  VYRE_TRY(
      vyre__fence_make(queue->device->context, sizeof(queue_run), &fence, st));
  queue_run *run = (queue_run *)fence;
  run->queue = queue;
  run->stats = stats;
  vyre_code code = prepare(run, desc, st);
  if (code == VYRE_OK) code = vyre__prepared_stage(run->prepared, st);
  if (code != VYRE_OK) {
    end_run(run);
    vyre__fence_discard(fence);
    return code;
  }
  (void)vyre_queue_retain(queue);
  fence->work = queued_work;
  fence->cleanup = queued_cleanup;
  *out = fence;
  code =
      vyre__queue_push(queue->device, &queue->device->state->queue, fence, st);
  if (code != VYRE_OK) {
    *out = NULL;
    queued_cleanup(fence);
    vyre__fence_discard(fence);
  }
  return code;
}

vyre_code vyre__queue_check_run(vyre_queue *queue,
                                const vyre_dispatch_desc *desc,
                                vyre_status *st) {
  queue_run run = {.queue = queue};
  vyre_code code = prepare(&run, desc, st);
  end_run(&run);
  return code;
}

vyre_code vyre__queue_run_step(vyre_queue *queue,
                               const vyre_dispatch_desc *desc,
                               vyre__queue_source source,
                               vyre__step_limit limit, vyre_queue_stats *stats,
                               vyre_status *st) {
  queue_run run = {
      .queue = queue, .stats = stats, .source = source, .limit = limit};
  vyre_code code = prepare(&run, desc, st);
  if (code == VYRE_OK) code = run_now(&run, st);
  end_run(&run);
  return code;
}

vyre_code vyre_queue_run(vyre_queue *queue, const vyre_dispatch_desc *desc,
                         vyre_queue_stats *stats, vyre_fence **fence,
                         vyre_status *st) {
  vyre__status_begin(st);
  if (fence) *fence = NULL;
  if (stats) *stats = (vyre_queue_stats){0};
  VYRE_REQUIRE_BOTH(st, queue, desc);
  VYRE_TRY(check_desc(desc, st));
  vyre_dispatch_desc one = *desc;
  one.grid[0] = one.grid[1] = one.grid[2] = 1;
  if (fence) return run_later(queue, &one, stats, fence, st);
  if (vyre__device_is_busy(queue->device)) vyre__queue_wait(queue->device);
  queue_run run = {.queue = queue, .stats = stats};
  vyre_code code = vyre__device_check(queue->device, st);
  if (code == VYRE_OK) code = prepare(&run, &one, st);
  if (code == VYRE_OK) code = run_now(&run, st);
  end_run(&run);
  return code;
}
