/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "ir/ir.h"
#include "runtime/core/trace.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/runtime.h"

/* --- objects -----------------------------------------------------------------*/

/* Room for @p count of something, in the block of a run. */
static size_t place(size_t *size, size_t count, size_t element) {
  size_t at = (*size + 15) & ~(size_t)15;
  *size = at + count * element;
  return at;
}

static vyre_code create(vyre_pipeline *pipeline, vyre__prepared_state *home,
                        vyre__prepared **out, vyre_status *st) {
  const vyre_binding_plan *plan = &pipeline->plan;
  size_t size = sizeof(vyre__prepared);
  /* First what a dispatch that is known touches (vyre__prepared_fetch). */
  size_t views =
      place(&size, pipeline->program->buffer_count, sizeof(vyre__view));
  size_t given_inputs = place(&size, plan->input_count, sizeof(vyre_input));
  size_t given_outputs =
      place(&size, plan->output_count, sizeof(vyre__host_output));
  size_t bound = place(&size, plan->binding_count, sizeof(vyre__bound_buffer));
  size_t extents = place(&size, plan->input_count, sizeof(vyre_input_extent));
  size_t outputs = place(&size, plan->output_count, sizeof(vyre_output));
  size_t kept = place(&size, plan->output_count, sizeof(vyre_buffer));
  size_t spans =
      place(&size, plan->output_count + 1, sizeof(vyre__memory_range));
  unsigned char *block =
      vyre__resize(pipeline->device->allocator, NULL, 0, size);
  if (!block) return vyre__no_memory(st, "vyre_dispatch", "runs", 1);
  memset(block, 0, size);
  vyre__prepared *run = (vyre__prepared *)(void *)block;
  run->pipeline = pipeline;
  run->home = home;
  run->size = size;
  run->bound = (vyre__bound_buffer *)(void *)(block + bound);
  run->views = (vyre__view *)(void *)(block + views);
  run->extents = (vyre_input_extent *)(void *)(block + extents);
  run->outputs = (vyre_output *)(void *)(block + outputs);
  run->new_buffers = (vyre_buffer *)(void *)(block + kept);
  run->ranges = (vyre__memory_range *)(void *)(block + spans);
  run->cached_inputs = (vyre_input *)(void *)(block + given_inputs);
  run->cached_outputs = (vyre__host_output *)(void *)(block + given_outputs);
  vyre_arena_init(&run->scratch, pipeline->device->allocator);
  vyre_arena_init(&run->staging, pipeline->device->allocator);
  /* What is neither given nor taken, such as shared memory, has one length; all
   * others are set by each dispatch. */
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre__binding_info *p = &pipeline->state->ports[i];
    run->views[p->buffer].length = (uint32_t)(p->static_bytes >> p->shift);
  }
  run->launch.pipeline = pipeline;
  run->launch.views = run->views;
  run->launch.scratch = &run->scratch;
  vyre__counters_enter_run(run);
  *out = run;
  return VYRE_OK;
}

/* --- those of batches --------------------------------------------------------*/

/* The whole list is taken and given, so that nobody sees one that is in use. */
vyre__prepared_list vyre__prepared_list_acquire(vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *inside = pipeline->state;
  vyre__prepared_list list = {0};
  if (atomic_load_explicit(&inside->spare, memory_order_relaxed)) {
    list.first =
        atomic_exchange_explicit(&inside->spare, NULL, memory_order_acquire);
  }
  if (list.first) list.count = list.first->spare_count;
  return list;
}

void vyre__prepared_list_return(vyre_pipeline *pipeline,
                                vyre__prepared_list *list) {
  if (!list->first) return;
  if (list->last) { /* those that were left, or of another batch, come after */
    vyre__prepared_list others = vyre__prepared_list_acquire(pipeline);
    while (others.first && list->count + others.count > VYRE__PREPARED_SPARE) {
      vyre__prepared *next = others.first->next_spare;
      vyre__prepared_free(others.first);
      others.first = next;
      others.count--;
    }
    list->last->next_spare = others.first;
    list->count += others.count;
  }
  list->first->spare_count = list->count;
  vyre__prepared *others = atomic_exchange_explicit(
      &pipeline->state->spare, list->first, memory_order_acq_rel);
  while (others) { /* of a batch that was faster */
    vyre__prepared *next = others->next_spare;
    vyre__prepared_free(others);
    others = next;
  }
}

vyre_code vyre__prepared_acquire_second(vyre_pipeline *pipeline,
                                        vyre__prepared **out, vyre_status *st) {
  struct vyre__pipeline_state *inside = pipeline->state;
  for (int i = 0; i < VYRE__PREPARED_PER_PIPELINE; i++) {
    vyre__prepared_state *state = &inside->runs[i].state;
    if (!vyre__prepared_enter(state)) continue;
    if (!inside->runs[i].run) {
      vyre_code code = create(pipeline, state, &inside->runs[i].run, st);
      if (code != VYRE_OK) {
        atomic_store_explicit(state, VYRE__PREPARED_IDLE, memory_order_release);
        return code;
      }
    }
    *out = inside->runs[i].run;
    return VYRE_OK;
  }
  return create(pipeline, NULL, out, st);
}

/* Who gives something else each time does not pay for a second look. */
static bool is_worth_a_look(const vyre__prepared *first) {
  return first->miss_count < VYRE__PATIENCE ||
         first->miss_count % VYRE__SELDOM == 1; /* it was remembered just now */
}

vyre__prepared *vyre__prepared_second(vyre__prepared *first,
                                      const vyre_dispatch_desc *desc) {
  struct vyre__pipeline_state *inside = first->pipeline->state;
  vyre__prepared_state *state = &inside->runs[1].state;
  if (first->home != &inside->runs[0].state || !is_worth_a_look(first) ||
      !vyre__prepared_enter(state)) {
    return first;
  }
  vyre__prepared **second = &inside->runs[1].run;
  if (!*second && create(first->pipeline, state, second, NULL) != VYRE_OK) {
    atomic_store_explicit(state, VYRE__PREPARED_IDLE, memory_order_release);
    return first;
  }
  if (vyre__prepared_matches(*second, desc)) {
    first->miss_count = 0;
  } else {
    first->miss_count++;
    (*second)->miss_count = 0;
  }
  vyre__prepared_set_outputs(first);
  return *second;
}

vyre_code vyre__prepared_create(vyre_pipeline *pipeline, vyre__prepared **out,
                                vyre_status *st) {
  return create(pipeline, NULL, out, st);
}

/* Under the lock, under which alone others find the run. Whoever frees a buffer
 * that this run holds has it until the run let go of it, so that none ends here,
 * with the caller told of it under locks. */
void vyre__prepared_free(vyre__prepared *run) {
  struct vyre__device_state *inside = run->pipeline->device->state;
  pthread_mutex_lock(&inside->prepared_lock);
  vyre__prepared_invalidate(run);
  pthread_mutex_unlock(&inside->prepared_lock);
  vyre__counters_leave_run(run);
  vyre_arena_deinit(&run->scratch);
  vyre_arena_deinit(&run->staging);
  vyre__resize(run->pipeline->device->allocator, run, run->size, 0);
}

/* Memory that a run keeps for the next one, beyond which it is given back; there
 * may be many that are spare. */
enum { MOST_KEPT_BYTES = 64 << 20, MOST_SPARE_BYTES = 16 << 10 };

static void empty_arena(vyre_arena *arena, size_t most) {
  if (!arena->first) return;
  vyre_arena_reset(arena);
  if (vyre_arena_footprint(arena) > most) vyre_arena_deinit(arena);
}

static void empty_arenas(vyre__prepared *run) {
  size_t most = run->home ? MOST_KEPT_BYTES : MOST_SPARE_BYTES;
  empty_arena(&run->scratch, most);
  empty_arena(&run->staging, most);
}

/* A buffer that is both in and out of a binding is held once. */
void vyre__prepared_release(vyre__prepared *run) {
  vyre_device *device = run->pipeline->device;
  for (size_t i = 0; i < run->pipeline->plan.binding_count; i++) {
    vyre__device_buffer *in = run->bound[i].in_buffer;
    vyre__device_buffer *out = run->bound[i].out_buffer;
    if (in) vyre__device_buffer_release(device, in);
    if (out && out != in) vyre__device_buffer_release(device, out);
  }
}

void vyre__prepared_invalidate(vyre__prepared *run) {
  run->is_cached = run->is_bound = false;
  if (!run->holds_buffers) return;
  run->holds_buffers = false;
  vyre__prepared_release(run);
  for (size_t i = 0; i < run->pipeline->plan.binding_count; i++) {
    run->bound[i].in_buffer = run->bound[i].out_buffer = NULL;
  }
}

void vyre__prepared_abandon(vyre__prepared *run) {
  empty_arenas(run);
  if (run->is_cached && vyre__prepared_leave(run)) return;
  vyre__prepared_invalidate(run);
  if (run->home) {
    atomic_store_explicit(run->home, VYRE__PREPARED_IDLE, memory_order_release);
  } else {
    vyre__prepared_free(run);
  }
}

/* For the runs of batches, which have no place to be found in: what they know stays
 * known, unless they hold buffers for it. */
void vyre__prepared_set_output(vyre__prepared *run, vyre_pipeline *pipeline,
                               vyre__prepared_list *list) {
  if (run->home || run->pipeline != pipeline ||
      list->count >= VYRE__PREPARED_SPARE) {
    vyre__prepared_set_outputs(run);
    return;
  }
  if (!run->is_cached || run->holds_buffers) vyre__prepared_invalidate(run);
  empty_arenas(run);
  run->next_spare = NULL;
  if (list->last) {
    list->last->next_spare = run;
  } else {
    list->first = run;
  }
  list->last = run;
  list->count++;
}

/* Drops what an idle run holds of @p slot, which its caller holds too. */
static void drop_slot(vyre__prepared *run, vyre__device_buffer *slot) {
  vyre_device *device = run->pipeline->device;
  for (size_t i = 0; i < run->pipeline->plan.binding_count; i++) {
    vyre__bound_buffer *bound = &run->bound[i];
    if (bound->in_buffer != slot && bound->out_buffer != slot) continue;
    vyre__device_buffer_release(device, slot);
    /* The other one of a binding, where it is another, is held on its own. */
    if (bound->in_buffer == slot) bound->in_buffer = NULL;
    if (bound->out_buffer == slot) bound->out_buffer = NULL;
    run->is_cached = run->is_bound = false;
  }
}

void vyre__prepared_list_revoke(vyre_device *device,
                                vyre__device_buffer *slot) {
  struct vyre__device_state *inside = device->state;
  pthread_mutex_lock(&inside->prepared_lock);
  for (vyre__prepared *run = inside->first_prepared; run; run = run->next) {
    if (!run->home) continue;
    unsigned char seen = VYRE__PREPARED_IDLE;
    while (seen != VYRE__PREPARED_WANTED) {
      unsigned char next = seen == VYRE__PREPARED_IDLE ? VYRE__PREPARED_BUSY
                                                       : VYRE__PREPARED_WANTED;
      if (!atomic_compare_exchange_weak(run->home, &seen, next)) continue;
      if (next == VYRE__PREPARED_WANTED) break;
      if (run->holds_buffers) drop_slot(run, slot);
      /* Who asks in the meantime waits for the lock. */
      atomic_store_explicit(run->home, VYRE__PREPARED_IDLE,
                            memory_order_release);
      break;
    }
  }
  pthread_mutex_unlock(&inside->prepared_lock);
}

/* --- the same once more ------------------------------------------------------*/

void vyre__prepared_cache(vyre__prepared *run, const vyre_dispatch_desc *desc) {
  const struct vyre__pipeline_state *inside = run->pipeline->state;
  const vyre_binding_plan *plan = &run->pipeline->plan;
  bool is_bound = !run->grows_outputs;
  if (run->has_moved_output) return;
  for (size_t i = 0; i < plan->output_count; i++) {
    const vyre_output *output = &desc->outputs[i];
    const vyre__bound_buffer *bound = &run->bound[inside->outputs[i]->index];
    if (output->new_buffer) return; /* another one each time */
    run->cached_outputs[i] = (vyre__host_output){.output = *output};
    if (output->host_buffer) {
      run->cached_outputs[i].buffer_data = output->host_buffer->data;
      run->cached_outputs[i].buffer_capacity = output->host_buffer->capacity;
    }
    if (bound->out_size > 0 && !vyre__in_place(bound)) is_bound = false;
  }
  for (size_t i = 0; i < plan->input_count; i++) {
    run->cached_inputs[i] = desc->inputs[i];
  }
  memcpy(run->cached_grid, desc->grid, sizeof run->cached_grid);
  run->is_cached = true;
  run->is_bound = is_bound;
}

/* --- before it runs ----------------------------------------------------------*/

static void clear_report(vyre_check_report *report) {
  if (!report) return;
  vyre_arena_reset(&report->arena);
  report->findings = NULL;
  report->count = report->capacity = report->dropped = 0;
  report->schedules = 0;
}

/* A name that is good for as long as the run; NULL: there is none. */
static const char *keep_name(vyre__prepared *run, const char *name) {
  if (!name) return NULL;
  size_t length = strlen(name);
  char *copy = vyre_arena_alloc(&run->staging, length + 1, 1);
  return copy ? memcpy(copy, name, length + 1) : NULL;
}

void vyre__prepared_copy_desc(vyre__prepared *run) {
  run->own = *run->desc;
  run->own.inputs = NULL; /* the caller's arrays end with the call */
  run->own.outputs = NULL;
  run->desc = &run->own;
}

/* Memory of the run that its device takes as it is, however it is aligned. */
static void *stage_room(vyre__prepared *run, size_t size) {
  size_t alignment = vyre__host_alignment(run->pipeline->device);
  if (alignment < 64) alignment = 64;
  if (size > SIZE_MAX - alignment) return NULL;
  unsigned char *room =
      vyre_arena_alloc(&run->staging, size + alignment - 1, 1);
  return room ? room + (-(uintptr_t)room % alignment) : NULL;
}

/* Inputs that the caller may change when the call returns are copied now. */
vyre_code vyre__prepared_stage(vyre__prepared *run, vyre_status *st) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  bool is_traced = atomic_load_explicit(&run->pipeline->device->context->trace,
                                        memory_order_relaxed) != NULL;
  const vyre_device *device = run->pipeline->device;
  vyre__prepared_copy_desc(run);
  run->own.label = is_traced ? keep_name(run, run->own.label) : NULL;
  run->own.profile = is_traced ? keep_name(run, run->own.profile) : NULL;
  if (run->own.is_borrowed) return VYRE_OK;
  run->is_cached = run->is_bound = false; /* other memory than what was given */
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    vyre__bound_buffer *bound = &run->bound[i];
    if (!bound->in || bound->in_buffer || vyre__in_place(bound)) continue;
    if (bound->in_size == 0) continue;
    if (run->desc->require_zero_copy) {
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
          VYRE_NUMBERS({"copied_bytes", bound->in_size}),
          "set is_borrowed and keep the input as it is until the fence",
          "input '%.100s' would be copied: it is owned", b->name);
    }
    void *copy = stage_room(run, (size_t)bound->in_size);
    if (!copy) {
      return vyre__no_memory(st, "vyre_submit", "bytes of inputs",
                             bound->in_size);
    }
    vyre_copy_reason why = vyre__host_reason(device, bound->in);
    bool was_borrowed =
        b->output_index == VYRE_NO_INDEX && why == VYRE_COPY_NONE;
    memcpy(copy, bound->in, (size_t)bound->in_size);
    bound->in = run->views[b->buffer_index].data = copy;
    if (was_borrowed) run->copies.borrowed_bytes -= bound->in_size;
    /* Counted already, and the copy is aligned. */
    if (why == VYRE_COPY_ALIGNMENT && b->output_index == VYRE_NO_INDEX) {
      continue;
    }
    run->copies.copied_bytes += bound->in_size;
    if (run->copies.copies++ > 0) continue;
    run->copies.first_copied = b->name;
    run->copies.first_reason = VYRE_COPY_OWNED;
  }
  return VYRE_OK;
}

/* --- running -----------------------------------------------------------------*/

/* Memory for an output that has none yet. */
static vyre_code make_room(vyre__prepared *run, const vyre_binding *b,
                           vyre__bound_buffer *bound, vyre_output_stats *stats,
                           vyre_status *st) {
  const vyre_output *output = &run->outputs[b->output_index];
  vyre_device *device = run->pipeline->device;
  if (output->host_buffer) {
    const void *before = output->host_buffer->data;
    vyre_host_buffer had = *output->host_buffer;
    bool is_fresh = run->desc->has_fresh_outputs;
    if (is_fresh)
      *output->host_buffer = (vyre_host_buffer){.allocator = had.allocator};
    bool fits = vyre__host_buffer_fit(output->host_buffer,
                                      (size_t)bound->out_size, device, stats);
    if (is_fresh)
      vyre_host_buffer_deinit(&had); /* only now: it is not had again */
    if (!fits) {
      return vyre__no_memory(st, "vyre_dispatch", "bytes of an output slot",
                             bound->out_size);
    }
    bound->out = output->host_buffer->data;
    if (vyre__host_reason(device, bound->out) != VYRE_COPY_NONE) {
      stats->copied_bytes += bound->out_size;
    }
    if (bound->out != before) run->has_moved_output = true;
  } else if (output->new_buffer) {
    vyre_buffer *kept = &run->new_buffers[b->output_index];
    VYRE_TRY(vyre_buffer_create(device, bound->out_size, kept,
                                vyre__status_open(st)));
    run->holds_buffers = true;
    VYRE_TRY(
        vyre__device_buffer_acquire(device, *kept, &bound->out_buffer, st));
    bound->out = bound->out_buffer->buffer->host;
    bound->out_offset = 0;
  }
  return VYRE_OK;
}

/* An output that the host sees, in which no input goes: what most are. */
static bool begins_zero(const vyre__prepared *run, const vyre_binding *b,
                        const vyre__bound_buffer *bound) {
  return b->input_index == VYRE_NO_INDEX && bound->out_size > 0 && bound->out &&
         !run->outputs[b->output_index].new_buffer;
}

/* What a buffer holds before the first launch. Outputs that were made just now
 * are zero already. */
static vyre_code fill(vyre__prepared *run, const vyre_binding *b,
                      const vyre__bound_buffer *bound, vyre_status *st) {
  vyre_device *device = run->pipeline->device;
  size_t size = (size_t)bound->out_size;
  if (size == 0 || vyre__in_place(bound)) return VYRE_OK;
  bool is_new = run->outputs[b->output_index].new_buffer != NULL;
  if (b->input_index == VYRE_NO_INDEX) {
    if (is_new) return VYRE_OK;
    if (bound->out) {
      memset(bound->out, 0, size);
      return VYRE_OK;
    }
    return vyre__buffer_clear(device, bound->out_buffer->buffer,
                              bound->out_offset, size, st);
  }
  if (bound->in && bound->out) {
    memcpy(bound->out, bound->in, size);
    return VYRE_OK;
  }
  return vyre__buffer_copy(device, bound, size, &run->scratch, st);
}

/* Inputs are bound since they were looked at. All outputs have their memory
 * before the first is filled. */
vyre_code vyre__prepared_bind(vyre__prepared *run, vyre_output_stats *stats,
                              vyre_status *st) {
  const vyre__binding_info **ports = run->pipeline->state->outputs;
  size_t count = run->pipeline->plan.output_count;
  bool clears = run->pipeline->device->backend->clears_outputs;
  for (size_t i = 0; run->grows_outputs && i < count; i++) {
    vyre__bound_buffer *bound = &run->bound[ports[i]->index];
    VYRE_TRY(make_room(run, ports[i]->binding, bound, stats, st));
  }
  for (size_t i = 0; i < count; i++) {
    const vyre__binding_info *p = ports[i];
    const vyre__bound_buffer *bound = &run->bound[p->index];
    bool is_backend_s = clears && begins_zero(run, p->binding, bound);
    if (!is_backend_s) VYRE_TRY(fill(run, p->binding, bound, st));
    run->views[p->buffer] = (vyre__view){
        .data = bound->out,
        .length = run->views[p->buffer].length,
        .buffer = bound->out_buffer ? bound->out_buffer->buffer : NULL,
        .offset = bound->out_offset,
        .begins_zero = is_backend_s};
  }
  return VYRE_OK;
}

VYRE__RARE
static vyre_code submit_faults(vyre_device *device, vyre_status *st) {
  if (vyre__fault(device->context, VYRE_FAULT_SUBMIT)) {
    return vyre__fault_status(VYRE_FAULT_SUBMIT, st);
  }
  if (vyre__fault(device->context, VYRE_FAULT_DEVICE_LOST)) {
    vyre__device_lose(device);
    return vyre__fault_status(VYRE_FAULT_DEVICE_LOST, st);
  }
  return VYRE_OK;
}

/* A backend sees to one launch; many short ones are looked at here. */
VYRE__RARE
static vyre_code between_launches(const vyre__prepared *run, uint32_t done,
                                  uint32_t count, vyre_status *st) {
  /* As it was given: what is left of a replay is not what anybody asked for. */
  uint64_t ns = run->launch.timeout_ns;
  char limit[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
      VYRE_NUMBERS({"timeout_ns", ns}, {"launches", done},
                   {"iterations", count}),
      "raise the timeout, or ask for fewer iterations",
      "kernel '%.60s' ran longer than %s: %u of %u iterations were over",
      run->pipeline->program->name, vyre__duration(ns, limit), done, count);
}

/* Launches after the first go on with what it left. */
static void keep_contents(vyre__prepared *run) {
  for (size_t i = 0; i < run->pipeline->program->buffer_count; i++) {
    run->views[i].begins_zero = false;
  }
}

static vyre_code launch(vyre__prepared *run, vyre_status *st) {
  vyre_device *device = run->pipeline->device;
  VYRE_TRY(vyre__device_check(device, st));
  if (atomic_load_explicit(&device->context->armed, memory_order_relaxed)) {
    VYRE_TRY(submit_faults(device, st));
  }
  if (run->desc->timeout_ns) {
    uint64_t now = vyre__clock_ns();
    run->launch.deadline_ns = now + run->desc->timeout_ns;
    if (run->launch.deadline_ns < now) run->launch.deadline_ns = UINT64_MAX;
  }
  uint32_t count = run->desc->has_repeat_count ? run->desc->repeat_count : 1;
  uint64_t device_ns = 0, launches = 0;
  run->launch.is_timed = run->desc->timing != NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) vyre_arena_reset(&run->scratch);
    if (i == 1) keep_contents(run);
    run->launch.launches = 1;
    run->launch.launch_index = i;
    run->launch.launch_count = count;
    run->launch.is_complete = false;
    if (i > 0 && run->launch.deadline_ns &&
        vyre__clock_ns() > run->launch.deadline_ns) {
      return between_launches(run, i, count, st);
    }
    VYRE_TRY(device->backend->run(run->pipeline, &run->launch, st));
    device_ns += run->launch.device_ns;
    launches += run->launch.launches;
  }
  run->launch.device_ns = device_ns;
  VYRE__COUNT_RUN(run, launches, launches);
  return VYRE_OK;
}

/* Handles of new buffers are handed out, or the buffers freed. */
static void settle_kept(vyre__prepared *run, bool is_good) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  for (size_t i = 0; i < plan->output_count; i++) {
    vyre_buffer *kept = &run->new_buffers[i];
    if (kept->owner == 0) continue;
    if (is_good) {
      *run->outputs[i].new_buffer = *kept;
    } else {
      (void)!vyre_buffer_destroy(run->pipeline->device, *kept, NULL);
    }
    *kept = (vyre_buffer){0};
  }
}

void vyre__prepared_count(vyre__prepared *run, const vyre_output_stats *stats) {
  VYRE__COUNT_RUN(run, input_bytes, run->host_in);
  VYRE__COUNT_RUN(run, output_bytes, run->host_out);
  if (run->copies.copied_bytes > 0) {
    VYRE__COUNT_RUN(run, copied_bytes, run->copies.copied_bytes);
  }
  if (stats->slots == 0) return;
  VYRE__COUNT_RUN(run, output_slots, stats->slots);
  VYRE__COUNT_RUN(run, output_slots_reused, stats->reused);
  VYRE__COUNT_RUN(run, output_slot_incoming_bytes, stats->incoming_bytes);
  if (stats->copied_bytes > 0) {
    VYRE__COUNT_RUN(run, output_slot_copied_bytes, stats->copied_bytes);
  }
  if (stats->slots == stats->reused) return;
  VYRE__COUNT_RUN(run, output_slots_moved, stats->moved);
  VYRE__COUNT_RUN(run, output_slots_appended, stats->appended);
  VYRE__COUNT_RUN(run, output_slot_moved_bytes, stats->moved_bytes);
  VYRE__COUNT_RUN(run, output_slot_appended_bytes, stats->appended_bytes);
}

static void add_stats(vyre_output_stats *to, const vyre_output_stats *from) {
  to->slots += from->slots;
  to->reused += from->reused;
  to->moved += from->moved;
  to->appended += from->appended;
  to->incoming_bytes += from->incoming_bytes;
  to->copied_bytes += from->copied_bytes;
  to->moved_bytes += from->moved_bytes;
  to->appended_bytes += from->appended_bytes;
  to->retained_capacity_bytes += from->retained_capacity_bytes;
}

void vyre__prepared_report(const vyre__prepared *run,
                           const vyre_output_stats *stats, vyre_code code) {
  const vyre_dispatch_desc *desc = run->desc;
  if (desc->copies) *desc->copies = run->copies;
  if (desc->output_stats) add_stats(desc->output_stats, stats);
  if (desc->result) *desc->result = code;
}

VYRE__RARE
static void trace_run(const vyre__prepared *run, uint64_t start,
                      vyre_code code) {
  const vyre_dispatch_desc *desc = run->desc;
  const char *kernel = run->pipeline->program->name;
  vyre__trace_end(
      run->pipeline->device->context, start, .kind = VYRE__TRACE_DISPATCH,
      .name = desc->label ? desc->label : kernel, .kernel = kernel,
      .label = desc->label, .profile = desc->profile,
      .pipeline = run->pipeline->id, .device = run->pipeline->device,
      .grid = run->launch.grid, .result = code,
      .numbers = {
          {"item", run->item},
          {"input_bytes", run->host_in},
          {"output_bytes", run->host_out},
          {"resident_bytes", run->copies.device_buffer_bytes},
          {"copied_bytes", run->copies.copied_bytes},
          {"launches", desc->has_repeat_count ? desc->repeat_count : 1}});
}

vyre_code vyre__prepared_execute(vyre__prepared *run, vyre_status *st) {
  uint64_t traced = vyre__trace_begin(run->pipeline->device->context);
  const vyre_dispatch_desc *desc = run->desc;
  vyre_output_stats stats = {0};
  uint64_t start = !desc->timing    ? 0
                   : run->called_ns ? run->called_ns
                                    : vyre__clock_ns();
  clear_report(desc->report);
  vyre_code code =
      run->is_bound ? VYRE_OK : vyre__prepared_bind(run, &stats, st);
  uint64_t launched = desc->timing ? vyre__clock_ns() : 0;
  if (code == VYRE_OK) code = launch(run, st);
  if (run->grows_outputs) settle_kept(run, code == VYRE_OK);
  if (desc->timing) {
    uint64_t end = vyre__clock_ns();
    *desc->timing =
        (vyre_timing){.wall_ns = end - start,
                      .has_enqueue = true,
                      .enqueue_ns = launched - start,
                      .has_wait = true,
                      .wait_ns = end - launched,
                      .has_device = run->pipeline->device->caps.has_device_time,
                      .device_ns = run->launch.device_ns};
  }
  vyre__prepared_report(run, &stats, code);
  if (code == VYRE_OK) {
    vyre__prepared_count(run, &stats);
  } else {
    VYRE__COUNT_RUN(run, failures, 1);
  }
  if (traced) trace_run(run, traced, code);
  return code;
}
