/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prepared dispatches: objects of a pipeline with all memory that one dispatch
 * needs. They are reused, so that a repeated dispatch allocates nothing and
 * takes no lock. */
#include "runtime/dispatch/prepared.h"

#include <string.h>

#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/counters.h"
#include "runtime/core/device.h"
#include "runtime/core/fault_injection.h"
#include "runtime/core/trace.h"
#include "runtime/dispatch/batch_overlap.h"
#include "runtime/dispatch/bind.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/memory/host_buffer.h"

/* --- creating and freeing ----------------------------------------------- */

/* Reserves an aligned array in a block that is being laid out. Returns its
 * offset. */
static size_t reserve(size_t *size, size_t count, size_t element) {
  size_t at = (*size + 15) & ~(size_t)15;
  *size = at + count * element;
  return at;
}

static vyre_code create(vyre_pipeline *pipeline, vyre__prepared_state *home,
                        vyre__prepared **out, vyre_status *st) {
  const vyre_binding_plan *plan = &pipeline->plan;
  size_t size = sizeof(vyre__prepared);
  /* First the arrays that the fast path reads (vyre__prepared_fetch). */
  size_t views =
      reserve(&size, pipeline->program->buffer_count, sizeof(vyre__view));
  const struct vyre__pipeline_state *state = pipeline->state;
  size_t cached_inputs =
      reserve(&size, state->resource_count, sizeof(vyre_input));
  size_t cached_outputs =
      reserve(&size, plan->output_count, sizeof(vyre__host_output));
  size_t bound =
      reserve(&size, plan->binding_count, sizeof(vyre__bound_buffer));
  size_t extents = reserve(&size, plan->input_count, sizeof(vyre_input_extent));
  size_t outputs = reserve(&size, plan->output_count, sizeof(vyre_output));
  size_t new_buffers = reserve(&size, plan->output_count, sizeof(vyre_buffer));
  /* An output writes up to two ranges: on the device, and on the host. */
  size_t ranges =
      reserve(&size, 2 * plan->output_count + state->persistent_count + 1,
              sizeof(vyre__memory_range));
  size_t readbacks = reserve(&size, plan->output_count, sizeof(vyre__readback));
  unsigned char *block = vyre__alloc_zeroed(pipeline->device->allocator, size);
  if (!block)
    return vyre__no_memory(st, "vyre_dispatch", "prepared dispatches", 1);
  vyre__prepared *prepared = (vyre__prepared *)(void *)block;
  prepared->pipeline = pipeline;
  prepared->home = home;
  prepared->size = size;
  prepared->bound = (vyre__bound_buffer *)(void *)(block + bound);
  prepared->views = (vyre__view *)(void *)(block + views);
  prepared->extents = (vyre_input_extent *)(void *)(block + extents);
  prepared->outputs = (vyre_output *)(void *)(block + outputs);
  prepared->new_buffers = (vyre_buffer *)(void *)(block + new_buffers);
  prepared->ranges = (vyre__memory_range *)(void *)(block + ranges);
  prepared->readbacks = (vyre__readback *)(void *)(block + readbacks);
  prepared->cached_inputs = (vyre_input *)(void *)(block + cached_inputs);
  prepared->cached_outputs =
      (vyre__host_output *)(void *)(block + cached_outputs);
  vyre_arena_init(&prepared->scratch, pipeline->device->allocator);
  vyre_arena_init(&prepared->staging, pipeline->device->allocator);
  /* Buffers without an input or output, such as shared memory, have a constant
   * length. Each dispatch sets the others. */
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre__binding_info *info = &pipeline->state->infos[i];
    prepared->views[info->buffer].length =
        (uint32_t)vyre__elements_in(info, info->static_bytes);
  }
  prepared->launch.pipeline = pipeline;
  prepared->launch.views = prepared->views;
  prepared->launch.scratch = &prepared->scratch;
  prepared->launch.readbacks = prepared->readbacks;
  prepared->command.launch = &prepared->launch;
  prepared->list = (vyre__command_list){
      .device = pipeline->device, .commands = &prepared->command, .count = 1};
  prepared->batch_list =
      (vyre__command_list){.device = pipeline->device, .is_independent = true};
  vyre__counters_enter_run(prepared);
  *out = prepared;
  return VYRE_OK;
}

/* --- spare prepared dispatches ------------------------------------------ */

/* Acquires the complete list of spare prepared dispatches. Other threads find
 * the list empty, so that no element has two users. */
vyre__prepared_list vyre__prepared_list_acquire(vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre__prepared_list list = {0};
  if (atomic_load_explicit(&state->spare, memory_order_relaxed)) {
    list.first =
        atomic_exchange_explicit(&state->spare, NULL, memory_order_acquire);
  }
  if (list.first) list.count = list.first->spare_count;
  return list;
}

void vyre__prepared_list_return(vyre_pipeline *pipeline,
                                vyre__prepared_list *list) {
  if (!list->first) return;
  /* append the ones that were not used, and those of other batches */
  if (list->last) {
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
  while (others) { /* another batch returned its list in between: free it */
    vyre__prepared *next = others->next_spare;
    vyre__prepared_free(others);
    others = next;
  }
}

vyre_code vyre__prepared_acquire_second(vyre_pipeline *pipeline,
                                        vyre__prepared **out, vyre_status *st) {
  struct vyre__pipeline_state *state = pipeline->state;
  for (int i = 0; i < VYRE__PREPARED_PER_PIPELINE; i++) {
    vyre__prepared_state *entry_state = &state->runs[i].state;
    if (!vyre__prepared_enter(entry_state)) continue;
    if (!state->runs[i].run) {
      vyre_code code = create(pipeline, entry_state, &state->runs[i].run, st);
      if (code != VYRE_OK) {
        atomic_store_explicit(entry_state, VYRE__PREPARED_IDLE,
                              memory_order_release);
        return code;
      }
    }
    *out = state->runs[i].run;
    return VYRE_OK;
  }
  return create(pipeline, NULL, out, st);
}

/* Returns true if the second prepared dispatch should be tried. Callers that
 * change their bindings each time try it only once in VYRE__SELDOM dispatches.
 */
static bool may_match_second(const vyre__prepared *first) {
  return first->miss_count < VYRE__PATIENCE ||
         /* the bindings were cached just now */
         first->miss_count % VYRE__SELDOM == 1;
}

vyre__prepared *vyre__prepared_second(vyre__prepared *first,
                                      const vyre_dispatch_desc *desc) {
  struct vyre__pipeline_state *state = first->pipeline->state;
  vyre__prepared_state *entry_state = &state->runs[1].state;
  if (first->home != &state->runs[0].state || !may_match_second(first) ||
      !vyre__prepared_enter(entry_state)) {
    return first;
  }
  vyre__prepared **second = &state->runs[1].run;
  if (!*second &&
      create(first->pipeline, entry_state, second, NULL) != VYRE_OK) {
    atomic_store_explicit(entry_state, VYRE__PREPARED_IDLE,
                          memory_order_release);
    return first;
  }
  if (vyre__prepared_matches(*second, desc)) {
    first->miss_count = 0;
  } else {
    first->miss_count++;
    (*second)->miss_count = 0;
  }
  vyre__prepared_return(first);
  return *second;
}

void vyre__prepared_forget(vyre_pipeline *pipeline,
                           const vyre_dispatch_desc *desc) {
  struct vyre__pipeline_state *state = pipeline->state;
  for (int i = 0; i < 2; i++) {
    if (!vyre__prepared_enter(&state->runs[i].state)) continue;
    vyre__prepared *prepared = state->runs[i].run;
    if (!prepared) {
      atomic_store_explicit(&state->runs[i].state, VYRE__PREPARED_IDLE,
                            memory_order_release);
      continue;
    }
    if (vyre__prepared_matches(prepared, desc)) prepared->is_cached = false;
    vyre__prepared_return(prepared);
  }
}

vyre_code vyre__prepared_create(vyre_pipeline *pipeline, vyre__prepared **out,
                                vyre_status *st) {
  return create(pipeline, NULL, out, st);
}

/* Frees a prepared dispatch. Its buffers are released under the lock that
 * other threads need to find it. A thread that frees one of the buffers holds
 * it until then, so this is never the last release, and no callback runs under
 * the lock. */
void vyre__prepared_free(vyre__prepared *prepared) {
  vyre_device *device = prepared->pipeline->device;
  pthread_mutex_lock(&device->state->prepared_lock);
  vyre__prepared_invalidate(prepared);
  pthread_mutex_unlock(&device->state->prepared_lock);
  vyre__counters_leave_run(prepared);
  if (prepared->batch_list.encoded) {
    device->backend->list_release(&prepared->batch_list);
  }
  vyre__reserve_free(device->allocator, &prepared->batch_list.commands,
                     &prepared->batch_capacity, sizeof(vyre__command));
  vyre_arena_deinit(&prepared->scratch);
  vyre_arena_deinit(&prepared->staging);
  vyre__resize(device->allocator, prepared, prepared->size, 0);
}

/* Largest arena that a prepared dispatch keeps for the next dispatch. A
 * pipeline may have many spare ones, so these keep less. */
enum { MAX_KEPT_BYTES = 64 << 20, MAX_SPARE_BYTES = 16 << 10 };

static void empty_arena(vyre_arena *arena, size_t max_bytes) {
  if (!arena->first) return;
  vyre_arena_reset(arena);
  if (vyre_arena_footprint(arena) > max_bytes) vyre_arena_deinit(arena);
}

static void empty_arenas(vyre__prepared *prepared) {
  size_t max_bytes = prepared->home ? MAX_KEPT_BYTES : MAX_SPARE_BYTES;
  empty_arena(&prepared->scratch, max_bytes);
  empty_arena(&prepared->staging, max_bytes);
}

/* Input and output of a binding may be the same buffer, which is then held
 * once. */
void vyre__prepared_release(vyre__prepared *prepared) {
  vyre_device *device = prepared->pipeline->device;
  for (size_t i = 0; i < prepared->pipeline->plan.binding_count; i++) {
    vyre__device_buffer *in = prepared->bound[i].in_buffer;
    vyre__device_buffer *out = prepared->bound[i].out_buffer;
    if (in) vyre__device_buffer_release(device, in);
    if (out && out != in) vyre__device_buffer_release(device, out);
  }
}

void vyre__prepared_invalidate(vyre__prepared *prepared) {
  prepared->is_cached = prepared->is_bound = false;
  if (!prepared->holds_buffers) return;
  prepared->holds_buffers = false;
  vyre__prepared_release(prepared);
  for (size_t i = 0; i < prepared->pipeline->plan.binding_count; i++) {
    prepared->bound[i].in_buffer = prepared->bound[i].out_buffer = NULL;
  }
}

void vyre__prepared_abandon(vyre__prepared *prepared) {
  empty_arenas(prepared);
  if (prepared->is_cached && vyre__prepared_leave(prepared)) return;
  vyre__prepared_invalidate(prepared);
  if (prepared->home) {
    atomic_store_explicit(prepared->home, VYRE__PREPARED_IDLE,
                          memory_order_release);
  } else {
    vyre__prepared_free(prepared);
  }
}

/* Appends a prepared dispatch of a batch to @p list. It stays cached unless it
 * holds buffers: without an entry in the pipeline, vyre_buffer_destroy could
 * not find it. */
void vyre__prepared_list_append(vyre__prepared_list *list,
                                vyre_pipeline *pipeline,
                                vyre__prepared *prepared) {
  if (prepared->home || prepared->pipeline != pipeline ||
      list->count >= VYRE__PREPARED_SPARE) {
    vyre__prepared_return(prepared);
    return;
  }
  if (!prepared->is_cached || prepared->holds_buffers)
    vyre__prepared_invalidate(prepared);
  empty_arenas(prepared);
  prepared->next_spare = NULL;
  if (list->last) {
    list->last->next_spare = prepared;
  } else {
    list->first = prepared;
  }
  list->last = prepared;
  list->count++;
}

/* Releases what an idle prepared dispatch holds of @p buffer. The caller holds
 * it too, so it is not freed here. */
static void drop_buffer(vyre__prepared *prepared, vyre__device_buffer *buffer) {
  vyre_device *device = prepared->pipeline->device;
  for (size_t i = 0; i < prepared->pipeline->plan.binding_count; i++) {
    vyre__bound_buffer *bound = &prepared->bound[i];
    if (bound->in_buffer != buffer && bound->out_buffer != buffer) continue;
    vyre__device_buffer_release(device, buffer);
    /* Another buffer of the same binding stays held. */
    if (bound->in_buffer == buffer) bound->in_buffer = NULL;
    if (bound->out_buffer == buffer) bound->out_buffer = NULL;
    prepared->is_cached = prepared->is_bound = false;
  }
}

void vyre__prepared_list_revoke(vyre_device *device,
                                vyre__device_buffer *buffer) {
  struct vyre__device_state *state = device->state;
  pthread_mutex_lock(&state->prepared_lock);
  for (vyre__prepared *prepared = state->first_prepared; prepared;
       prepared = prepared->next) {
    if (!prepared->home) continue;
    unsigned char observed = VYRE__PREPARED_IDLE;
    while (observed != VYRE__PREPARED_WANTED) {
      unsigned char next = observed == VYRE__PREPARED_IDLE
                               ? VYRE__PREPARED_BUSY
                               : VYRE__PREPARED_WANTED;
      if (!atomic_compare_exchange_weak(prepared->home, &observed, next))
        continue;
      if (next == VYRE__PREPARED_WANTED) break;
      if (prepared->holds_buffers) drop_buffer(prepared, buffer);
      /* A thread that claims the entry now waits for the lock. */
      atomic_store_explicit(prepared->home, VYRE__PREPARED_IDLE,
                            memory_order_release);
      break;
    }
  }
  pthread_mutex_unlock(&state->prepared_lock);
}

/* --- caching bindings --------------------------------------------------- */

void vyre__prepared_cache(vyre__prepared *prepared,
                          const vyre_dispatch_desc *desc) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  const vyre_binding_plan *plan = &prepared->pipeline->plan;
  bool is_bound = !prepared->grows_outputs;
  if (prepared->has_moved_output) return;
  for (size_t i = 0; i < plan->output_count; i++) {
    const vyre__bound_buffer *bound =
        &prepared->bound[state->outputs[i]->index];
    /* each dispatch creates another buffer */
    if (prepared->outputs[i].new_buffer) return;
    if (bound->out_size > 0 && !vyre__in_place(bound)) is_bound = false;
    if (desc->output_count == 0) continue;
    const vyre_output *output = &desc->outputs[i];
    prepared->cached_outputs[i] = (vyre__host_output){.output = *output};
    if (output->host_buffer) {
      prepared->cached_outputs[i].buffer_data = output->host_buffer->data;
      prepared->cached_outputs[i].buffer_capacity =
          output->host_buffer->capacity;
    }
  }
  size_t count = desc->resources ? desc->resource_count : desc->input_count;
  const vyre_input *inputs = desc->resources ? desc->resources : desc->inputs;
  for (size_t i = 0; i < count; i++) prepared->cached_inputs[i] = inputs[i];
  prepared->cached_input_count = count;
  prepared->cached_output_count = desc->output_count;
  prepared->cached_buffer_count = desc->output_buffer_count;
  prepared->cached_mode = vyre__desc_mode(desc);
  memcpy(prepared->cached_grid, desc->grid, sizeof prepared->cached_grid);
  /* The sizes in uniforms may change, and are checked again. */
  prepared->is_cached = !prepared->pipeline->state->has_dimensions;
  prepared->is_bound = is_bound && prepared->is_cached;
}

/* --- staging ------------------------------------------------------------ */

static void clear_report(vyre_check_report *report) {
  if (!report) return;
  vyre_arena_reset(&report->arena);
  report->findings = NULL;
  report->count = report->capacity = report->dropped = 0;
  report->schedules = 0;
}

/* Copies a string to the staging arena. Returns NULL for NULL or without
 * memory. */
static const char *copy_name(vyre__prepared *prepared, const char *name) {
  if (!name) return NULL;
  size_t length = strlen(name);
  char *copy = vyre_arena_alloc(&prepared->staging, length + 1, 1);
  return copy ? memcpy(copy, name, length + 1) : NULL;
}

void vyre__prepared_copy_desc(vyre__prepared *prepared) {
  prepared->own = *prepared->desc;
  /* the caller's arrays are only valid during the call */
  prepared->own.inputs = prepared->own.resources = NULL;
  prepared->own.outputs = NULL;
  prepared->desc = &prepared->own;
}

/* Allocates staging memory that the device can use directly. */
static void *stage_alloc(vyre__prepared *prepared, const vyre_binding *b,
                         size_t size) {
  size_t alignment = vyre__binding_alignment(prepared->pipeline->device, b);
  if (alignment < 64) alignment = 64;
  if (size > SIZE_MAX - alignment) return NULL;
  unsigned char *block =
      vyre_arena_alloc(&prepared->staging, size + alignment - 1, 1);
  return block ? block + (-(uintptr_t)block % alignment) : NULL;
}

/* Copies the inputs, because the caller may change them after the call. */
vyre_code vyre__prepared_stage(vyre__prepared *prepared, vyre_status *st) {
  const vyre_binding_plan *plan = &prepared->pipeline->plan;
  bool is_traced =
      atomic_load_explicit(&prepared->pipeline->device->context->trace,
                           memory_order_relaxed) != NULL;
  const vyre_device *device = prepared->pipeline->device;
  vyre__prepared_copy_desc(prepared);
  prepared->own.label =
      is_traced ? copy_name(prepared, prepared->own.label) : NULL;
  prepared->own.profile =
      is_traced ? copy_name(prepared, prepared->own.profile) : NULL;
  if (prepared->own.is_borrowed) return VYRE_OK;
  /* The copies differ from the cached bindings, and from those for which a
   * command list was encoded. */
  prepared->is_cached = prepared->is_bound = false;
  prepared->batch = vyre__batch_new_id(prepared->pipeline->device);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    vyre__bound_buffer *bound = &prepared->bound[i];
    if (!bound->in || bound->in_buffer || vyre__in_place(bound)) continue;
    if (bound->in_size == 0) continue;
    if (prepared->desc->require_zero_copy) {
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED, NULL,
          VYRE_NUMBERS({"copied_bytes", bound->in_size}),
          "set is_borrowed, and do not change the input until the fence "
          "signals",
          "input '%.100s' would be copied, because is_borrowed is false",
          b->name);
    }
    void *copy = stage_alloc(prepared, b, (size_t)bound->in_size);
    if (!copy) {
      return vyre__no_memory(st, "vyre_submit", "bytes of inputs",
                             bound->in_size);
    }
    vyre_copy_reason reason = vyre__host_reason(device, bound->in);
    bool was_borrowed =
        b->output_index == VYRE_NO_INDEX && reason == VYRE_COPY_NONE;
    memcpy(copy, bound->in, (size_t)bound->in_size);
    bound->in = prepared->views[b->buffer_index].data = copy;
    if (was_borrowed) prepared->copies.borrowed_bytes -= bound->in_size;
    /* Counted as a copy already; the staged copy is aligned. */
    if (reason == VYRE_COPY_ALIGNMENT && b->output_index == VYRE_NO_INDEX) {
      continue;
    }
    prepared->copies.copied_bytes += bound->in_size;
    if (prepared->copies.copies++ > 0) continue;
    prepared->copies.first_copied = b->name;
    prepared->copies.first_reason = VYRE_COPY_OWNED;
  }
  return VYRE_OK;
}

/* --- running ------------------------------------------------------------ */

/* Allocates the memory of an output that goes to a host buffer. */
static vyre_code allocate_host_buffer(vyre__prepared *prepared,
                                      const vyre_binding *b,
                                      vyre__bound_buffer *bound,
                                      vyre_output_stats *stats,
                                      vyre_status *st) {
  const vyre_output *output = &prepared->outputs[b->output_index];
  const vyre_device *device = prepared->pipeline->device;
  const void *old_data = output->host_buffer->data;
  vyre_host_buffer old = *output->host_buffer;
  bool has_fresh_outputs = prepared->desc->has_fresh_outputs;
  if (has_fresh_outputs)
    *output->host_buffer = (vyre_host_buffer){.allocator = old.allocator};
  bool fits =
      vyre__host_buffer_fit(output->host_buffer, (size_t)bound->out_size,
                            vyre__binding_alignment(device, b), device, stats);
  if (has_fresh_outputs)
    /* after the allocation, so that the new memory differs from the old */
    vyre_host_buffer_deinit(&old);
  if (!fits) {
    return vyre__no_memory(st, "vyre_dispatch", "bytes of a host buffer",
                           bound->out_size);
  }
  unsigned char *data = output->host_buffer->data;
  if (!bound->has_readback) bound->out = data;
  if (bound->has_readback || vyre__host_reason(device, data) != VYRE_COPY_NONE)
    stats->copied_bytes += bound->out_size;
  if (data != old_data) prepared->has_moved_output = true;
  return VYRE_OK;
}

/* Allocates the memory of an output that is a host buffer, a new device
 * buffer, or both. */
static vyre_code allocate_output(vyre__prepared *prepared,
                                 const vyre_binding *b,
                                 vyre__bound_buffer *bound,
                                 vyre_output_stats *stats, vyre_status *st) {
  const vyre_output *output = &prepared->outputs[b->output_index];
  vyre_device *device = prepared->pipeline->device;
  if (output->host_buffer) {
    VYRE_TRY(allocate_host_buffer(prepared, b, bound, stats, st));
  }
  if (output->new_buffer) {
    vyre_buffer *new_buffer = &prepared->new_buffers[b->output_index];
    VYRE_TRY(vyre__device_buffer_create(device, bound->out_size,
                                        vyre__binding_alignment(device, b),
                                        new_buffer, vyre__status_open(st)));
    prepared->holds_buffers = true;
    VYRE_TRY(vyre__device_buffer_acquire(device, *new_buffer,
                                         &bound->out_buffer, st));
    bound->out = bound->out_buffer->buffer->host;
    bound->out_offset = 0;
  }
  return VYRE_OK;
}

/* Returns true for an output that the host sees and that has no input. It
 * starts with zeros. */
static bool starts_zeroed(const vyre__prepared *prepared, const vyre_binding *b,
                          const vyre__bound_buffer *bound) {
  return b->input_index == VYRE_NO_INDEX && bound->out_size > 0 && bound->out &&
         !vyre__in_place(bound) &&
         !prepared->outputs[b->output_index].new_buffer;
}

/* Sets the initial contents of an output. New buffers are zero already. */
static vyre_code fill_output(vyre__prepared *prepared, const vyre_binding *b,
                             const vyre__bound_buffer *bound, vyre_status *st) {
  vyre_device *device = prepared->pipeline->device;
  size_t size = (size_t)bound->out_size;
  if (size == 0 || vyre__in_place(bound)) return VYRE_OK;
  bool is_new = prepared->outputs[b->output_index].new_buffer != NULL;
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
  return vyre__buffer_copy(device, bound, size, &prepared->scratch, st);
}

/* Inputs were bound when they were checked. All outputs get their memory
 * before the first one is filled. */
vyre_code vyre__prepared_bind(vyre__prepared *prepared,
                              vyre_output_stats *stats, vyre_status *st) {
  const vyre__binding_info **infos = prepared->pipeline->state->outputs;
  size_t count = prepared->pipeline->plan.output_count;
  bool clears = prepared->pipeline->device->backend->clears_outputs;
  for (size_t i = 0; prepared->grows_outputs && i < count; i++) {
    vyre__bound_buffer *bound = &prepared->bound[infos[i]->index];
    VYRE_TRY(allocate_output(prepared, infos[i]->binding, bound, stats, st));
  }
  if (prepared->grows_outputs) vyre__prepared_set_readbacks(prepared);
  for (size_t i = 0; i < count; i++) {
    const vyre__binding_info *info = infos[i];
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    bool backend_clears =
        clears && starts_zeroed(prepared, info->binding, bound);
    if (!backend_clears)
      VYRE_TRY(fill_output(prepared, info->binding, bound, st));
    prepared->views[info->buffer] = (vyre__view){
        .data = bound->out,
        .length = prepared->views[info->buffer].length,
        .buffer = bound->out_buffer ? bound->out_buffer->buffer : NULL,
        .offset = bound->out_offset,
        .begins_zero = backend_clears};
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

/* Fails because the deadline passed between two launches. A backend checks the
 * deadline during a launch. */
VYRE__RARE
static vyre_code deadline_passed(const vyre__prepared *prepared, uint32_t done,
                                 uint32_t count, vyre_status *st) {
  /* The timeout as given, not the time that is left of a replay. */
  uint64_t ns = prepared->launch.timeout_ns;
  char limit[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
      VYRE_NUMBERS({"timeout_ns", ns}, {"launches", done},
                   {"iterations", count}),
      "raise timeout_ns, or lower repeat_count",
      "kernel '%.60s' ran longer than %s: %u of %u launches were complete",
      prepared->pipeline->program->name, vyre__duration(ns, limit), done,
      count);
}

/* Later launches of the same dispatch continue with the contents of the
 * buffers. */
static void stop_clearing(vyre__prepared *prepared) {
  for (size_t i = 0; i < prepared->pipeline->program->buffer_count; i++) {
    prepared->views[i].begins_zero = false;
  }
}

static vyre_code launch(vyre__prepared *prepared, vyre_status *st) {
  vyre_device *device = prepared->pipeline->device;
  VYRE_TRY(vyre__device_check(device, st));
  if (atomic_load_explicit(&device->context->armed, memory_order_relaxed)) {
    VYRE_TRY(submit_faults(device, st));
  }
  if (prepared->drain) {
    prepared->drain->has_begun = true;
    vyre_code code = device->backend->queue_drain(prepared->drain, st);
    return code == VYRE_OK ? vyre__device_check(device, st) : code;
  }
  if (prepared->desc->timeout_ns) {
    uint64_t now = vyre__clock_ns();
    prepared->launch.deadline_ns = now + prepared->desc->timeout_ns;
    if (prepared->launch.deadline_ns < now)
      prepared->launch.deadline_ns = UINT64_MAX;
  }
  uint32_t count =
      prepared->desc->has_repeat_count ? prepared->desc->repeat_count : 1;
  uint64_t device_ns = 0, launches = 0;
  size_t done;
  prepared->launch.is_timed = prepared->desc->timing != NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) vyre_arena_reset(&prepared->scratch);
    if (i == 1) stop_clearing(prepared);
    prepared->launch.launches = 1;
    prepared->launch.launch_index = i;
    prepared->launch.launch_count = count;
    /* Only the last launch reads back. */
    prepared->launch.readback_count =
        i + 1 < count ? 0 : prepared->readback_count;
    prepared->launch.is_complete = false;
    if (i > 0 && prepared->launch.deadline_ns &&
        vyre__clock_ns() > prepared->launch.deadline_ns) {
      return deadline_passed(prepared, i, count, st);
    }
    vyre__launch_assert(&prepared->launch);
    VYRE_TRY(device->backend->execute(&prepared->list, 0, 1, &done, st));
    device_ns += prepared->launch.device_ns;
    launches += prepared->launch.launches;
  }
  prepared->launch.device_ns = device_ns;
  VYRE__COUNT_RUN(prepared, launches, launches);
  return VYRE_OK;
}

/* Passes the handles of new buffers to the caller, or frees the buffers after
 * a failure. */
static void finish_new_buffers(vyre__prepared *prepared, bool is_good) {
  const vyre_binding_plan *plan = &prepared->pipeline->plan;
  for (size_t i = 0; i < plan->output_count; i++) {
    vyre_buffer *new_buffer = &prepared->new_buffers[i];
    if (new_buffer->owner == 0) continue;
    if (is_good) {
      *prepared->outputs[i].new_buffer = *new_buffer;
    } else {
      (void)!vyre_buffer_destroy(prepared->pipeline->device, *new_buffer, NULL);
    }
    *new_buffer = (vyre_buffer){0};
  }
}

/* Returns the device buffers of all outputs to the caller. New ones are there
 * already. */
static void return_buffers(const vyre__prepared *prepared, bool is_good) {
  vyre_buffer *buffers = prepared->desc->output_buffers;
  for (size_t i = 0; i < prepared->pipeline->plan.output_count; i++) {
    if (is_good && !prepared->outputs[i].new_buffer)
      buffers[i] = prepared->outputs[i].buffer;
  }
}

void vyre__prepared_count(vyre__prepared *prepared,
                          const vyre_output_stats *stats) {
  VYRE__COUNT_RUN(prepared, input_bytes, prepared->host_in);
  VYRE__COUNT_RUN(prepared, output_bytes, prepared->host_out);
  if (prepared->copies.copied_bytes > 0) {
    VYRE__COUNT_RUN(prepared, copied_bytes, prepared->copies.copied_bytes);
  }
  if (stats->filled == 0) return;
  VYRE__COUNT_RUN(prepared, host_buffers_filled, stats->filled);
  VYRE__COUNT_RUN(prepared, host_buffers_reused, stats->reused);
  VYRE__COUNT_RUN(prepared, host_buffer_incoming_bytes, stats->incoming_bytes);
  if (stats->copied_bytes > 0) {
    VYRE__COUNT_RUN(prepared, host_buffer_copied_bytes, stats->copied_bytes);
  }
  if (stats->filled == stats->reused) return;
  VYRE__COUNT_RUN(prepared, host_buffers_moved, stats->moved);
  VYRE__COUNT_RUN(prepared, host_buffers_appended, stats->appended);
  VYRE__COUNT_RUN(prepared, host_buffer_moved_bytes, stats->moved_bytes);
  VYRE__COUNT_RUN(prepared, host_buffer_appended_bytes, stats->appended_bytes);
}

static void add_stats(vyre_output_stats *to, const vyre_output_stats *from) {
  to->filled += from->filled;
  to->reused += from->reused;
  to->moved += from->moved;
  to->appended += from->appended;
  to->incoming_bytes += from->incoming_bytes;
  to->copied_bytes += from->copied_bytes;
  to->moved_bytes += from->moved_bytes;
  to->appended_bytes += from->appended_bytes;
  to->retained_capacity_bytes += from->retained_capacity_bytes;
}

void vyre__prepared_report(const vyre__prepared *prepared,
                           const vyre_output_stats *stats, vyre_code code) {
  const vyre_dispatch_desc *desc = prepared->desc;
  if (desc->copies) *desc->copies = prepared->copies;
  if (desc->output_stats) add_stats(desc->output_stats, stats);
  if (desc->result) *desc->result = code;
}

VYRE__RARE
static void trace_dispatch(const vyre__prepared *prepared, uint64_t start,
                           vyre_code code) {
  const vyre_dispatch_desc *desc = prepared->desc;
  const char *kernel = prepared->pipeline->program->name;
  vyre__trace_end(
      prepared->pipeline->device->context, start, .kind = VYRE__TRACE_DISPATCH,
      .name = desc->label ? desc->label : kernel, .kernel = kernel,
      .label = desc->label, .profile = desc->profile,
      .pipeline = prepared->pipeline->id, .device = prepared->pipeline->device,
      .grid = prepared->launch.grid, .result = code,
      .numbers = {
          {"item", prepared->item},
          {"input_bytes", prepared->host_in},
          {"output_bytes", prepared->host_out},
          {"device_buffer_bytes", prepared->copies.device_buffer_bytes},
          {"copied_bytes", prepared->copies.copied_bytes},
          {"launches", desc->has_repeat_count ? desc->repeat_count : 1}});
}

vyre_code vyre__prepared_execute(vyre__prepared *prepared, vyre_status *st) {
  uint64_t trace_start = vyre__trace_begin(prepared->pipeline->device->context);
  const vyre_dispatch_desc *desc = prepared->desc;
  vyre_output_stats stats = {0};
  uint64_t start = !desc->timing         ? 0
                   : prepared->called_ns ? prepared->called_ns
                                         : vyre__clock_ns();
  clear_report(desc->report);
  vyre_code code =
      prepared->is_bound ? VYRE_OK : vyre__prepared_bind(prepared, &stats, st);
  uint64_t launched = desc->timing ? vyre__clock_ns() : 0;
  if (code == VYRE_OK) code = launch(prepared, st);
  if (prepared->grows_outputs) finish_new_buffers(prepared, code == VYRE_OK);
  if (desc->output_buffers) return_buffers(prepared, code == VYRE_OK);
  if (desc->timing) {
    uint64_t end = vyre__clock_ns();
    *desc->timing = (vyre_timing){
        .wall_ns = end - start,
        .has_enqueue = true,
        .enqueue_ns = launched - start,
        .has_wait = true,
        .wait_ns = end - launched,
        .has_device = prepared->pipeline->device->caps.has_device_time,
        .device_ns = prepared->launch.device_ns};
  }
  vyre__prepared_report(prepared, &stats, code);
  if (code == VYRE_OK) {
    vyre__prepared_count(prepared, &stats);
  } else {
    VYRE__COUNT_RUN(prepared, failures, 1);
  }
  if (trace_start) trace_dispatch(prepared, trace_start, code);
  return code;
}
