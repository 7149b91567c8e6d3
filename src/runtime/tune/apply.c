/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/tune/apply.h"

#include <string.h>

#include "analyze/workgroup_size.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"
#include "runtime/memory/device_buffer.h"

enum { MAX_CHOICES = 32 }; /* of one program on one device */

/* --- choices of a context --------------------------------------------------*/

static vyre__tunings *create(vyre_context *context) {
  vyre__tunings *made = vyre__alloc_zeroed(context->allocator, sizeof *made);
  if (!made) return NULL;
  pthread_mutex_init(&made->lock, NULL);
  made->times = (vyre__times){.context = context,
                              .allocator = context->allocator,
                              .file = VYRE__TIMES_OF_TUNING};
  vyre__times_load(&made->times, NULL, 0);
  return made;
}

static void destroy(vyre_context *context, vyre__tunings *tunings) {
  vyre__times_deinit(&tunings->times);
  pthread_mutex_destroy(&tunings->lock);
  vyre__resize(context->allocator, tunings, sizeof *tunings, 0);
}

vyre__tunings *vyre__tunings_of(vyre_context *context) {
  vyre__tunings *found = atomic_load(&context->tunings);
  if (found) return found;
  vyre__tunings *made = create(context);
  if (!made) return NULL;
  if (atomic_compare_exchange_strong(&context->tunings, &found, made)) {
    return made;
  }
  destroy(context, made);
  return found;
}

void vyre__tunings_free(vyre_context *context) {
  vyre__tunings *tunings = atomic_load(&context->tunings);
  if (tunings) destroy(context, tunings);
}

void vyre__tunings_changed(vyre_context *context) {
  atomic_fetch_add(&context->tuning_generation, 1);
}

/* --- a compile -------------------------------------------------------------*/

/* Returns true if the workgroup size of a program may be another one. */
static bool may_resize(const vyre_program *program, vyre_allocator allocator) {
  vyre_arena arena;
  const char *why = NULL;
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre__workgroup_size_matters(program, &arena, &why, NULL);
  vyre_arena_deinit(&arena);
  return code == VYRE_OK && !why;
}

typedef struct choice {
  vyre__time time;
  uint64_t default_ns; /* time as compiled; 0: not stored */
} choice;

/* Copies the choices for a program on a device. Returns their number. */
static size_t find_choices(const vyre_pipeline *pipeline,
                           vyre__tunings *tunings, choice *out) {
  vyre_device *device = pipeline->device;
  size_t count = 0;
  pthread_mutex_lock(&tunings->lock);
  const vyre__times *times = &tunings->times;
  if (times->count > 0) {
    vyre_hash128 program = pipeline->program->fingerprint;
    vyre_hash128 identity = vyre__device_identity_of(device).device;
    for (size_t i = 0; i < times->count && count < MAX_CHOICES; i++) {
      const vyre__time *t = &times->items[i];
      if (t->is_choice && vyre__hash_equal(t->program, program) &&
          vyre__hash_equal(t->device.device, identity)) {
        vyre__time as_compiled = *t;
        as_compiled.settings = 0;
        const vyre__time *found = vyre__times_find(times, &as_compiled);
        out[count++] = (choice){*t, found ? found->time_ns : 0};
      }
    }
  }
  pthread_mutex_unlock(&tunings->lock);
  return count;
}

/* Fills an entry. Returns false if the choice does not fit. */
static bool make_entry(vyre_pipeline *pipeline, const choice *from,
                       vyre_tier tier, vyre__tuned_entry *out) {
  vyre_device *device = pipeline->device;
  vyre__settings settings = vyre__settings_unpack(from->time.settings);
  *out = (vyre__tuned_entry){.size_class = from->time.size_class,
                             .settings = settings,
                             .time_ns = from->time.time_ns,
                             .default_ns = from->default_ns};
  if (from->time.settings == 0) return true;
  /* The file is as trusted as cached code, but it may be older than a rule. */
  if (!vyre__settings_fit(device, &settings) ||
      (settings.workgroup &&
       !may_resize(pipeline->program, device->allocator))) {
    return false;
  }
  return vyre__pipeline_compile_tuned(device, pipeline->program, &settings,
                                      tier, &out->pipeline, NULL) == VYRE_OK;
}

/* Returns true if stored choices apply: they are for the exact program. */
static bool is_tunable(const vyre_pipeline *pipeline) {
  return !pipeline->ignores_tuning && !pipeline->state->is_fresh &&
         pipeline->ulp_budget == 0 && !pipeline->counts_iterations &&
         memcmp(pipeline->workgroup, pipeline->program->workgroup,
                sizeof pipeline->workgroup) == 0;
}

static void publish(vyre_pipeline *pipeline, vyre__tuned_list *list,
                    uint32_t generation) {
  struct vyre__pipeline_state *state = pipeline->state;
  pthread_mutex_lock(&state->lock);
  if (atomic_load(&state->tuned_generation) == generation) {
    pthread_mutex_unlock(&state->lock);
    vyre__tuned_free(pipeline->device->allocator, list);
    return;
  }
  list->previous = atomic_load(&state->tuned);
  atomic_store_explicit(&state->tuned, list, memory_order_release);
  atomic_store(&state->tuned_generation, generation);
  pthread_mutex_unlock(&state->lock);
}

static size_t list_size(size_t count) {
  return sizeof(vyre__tuned_list) + count * sizeof(vyre__tuned_entry);
}

vyre_code vyre__tuned_attach(vyre_pipeline *pipeline, vyre_tier tier,
                             vyre_status *st) {
  vyre_device *device = pipeline->device;
  vyre_context *context = device->context;
  choice choices[MAX_CHOICES];
  uint32_t generation = atomic_load(&context->tuning_generation) + 1;
  if (atomic_load(&pipeline->state->tuned_generation) == generation ||
      !is_tunable(pipeline) ||
      (!context->cache.path && !atomic_load(&context->tunings))) {
    return VYRE_OK;
  }
  vyre__tunings *tunings = vyre__tunings_of(context);
  if (!tunings) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "tuned choices", 1);
  }
  size_t count = find_choices(pipeline, tunings, choices);
  if (count == 0 && !atomic_load(&pipeline->state->tuned)) {
    atomic_store(&pipeline->state->tuned_generation, generation);
    return VYRE_OK;
  }
  vyre__tuned_list *list =
      vyre__alloc_zeroed(device->allocator, list_size(count));
  if (!list) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "tuned choices", count);
  }
  list->capacity = count;
  for (size_t i = 0; i < count; i++) {
    list->count +=
        make_entry(pipeline, &choices[i], tier, &list->entries[list->count]);
  }
  publish(pipeline, list, generation);
  return VYRE_OK;
}

void vyre__tuned_free(vyre_allocator allocator, vyre__tuned_list *list) {
  while (list) {
    vyre__tuned_list *previous = list->previous;
    for (size_t i = 0; i < list->count; i++) {
      vyre_pipeline_release(list->entries[i].pipeline);
    }
    vyre__resize(allocator, list, list_size(list->capacity), 0);
    list = previous;
  }
}

/* --- a dispatch ------------------------------------------------------------*/

static uint64_t bytes_of(vyre_device *device, vyre_buffer buffer,
                         uint64_t size) {
  vyre__device_buffer *entry;
  if (size > 0 || buffer.owner == 0 ||
      vyre__device_buffer_acquire(device, buffer, &entry, NULL) != VYRE_OK) {
    return size;
  }
  size = entry->buffer->size;
  vyre__device_buffer_release(device, entry);
  return size;
}

uint32_t vyre__desc_size_class(vyre_device *device,
                               const vyre_dispatch_desc *desc) {
  uint64_t bytes = 0;
  const vyre_input *in = desc->resources ? desc->resources : desc->inputs;
  size_t count = desc->resources ? desc->resource_count : desc->input_count;
  for (size_t i = 0; in && i < count; i++) {
    bytes += bytes_of(device, in[i].buffer, in[i].size);
  }
  for (size_t i = 0;
       desc->outputs && !desc->resources && i < desc->output_count; i++) {
    const vyre_output *out = &desc->outputs[i];
    bytes += bytes_of(device, out->buffer, out->size);
  }
  return vyre__size_class(bytes, desc->grid);
}

/* Returns the choice for a size class: of the same grid, and of the same size
 * or its neighbour. */
static const vyre__tuned_entry *find_entry(const vyre__tuned_list *list,
                                           uint32_t size_class) {
  const vyre__tuned_entry *near = NULL;
  for (size_t i = 0; i < list->count; i++) {
    const vyre__tuned_entry *e = &list->entries[i];
    if (e->size_class == size_class) return e;
    if ((e->size_class & 255) == (size_class & 255) &&
        (e->size_class + 256 == size_class ||
         e->size_class == size_class + 256)) {
      near = e;
    }
  }
  return near;
}

/* Returns true if the tuned code can run the dispatch: the caller named no
 * other code, and asks for nothing that depends on the workgroups. */
static bool is_plain(const vyre_dispatch_desc *desc, bool has_workgroup) {
  if (desc->variant || desc->max_loop_iterations || desc->check.races ||
      desc->check.out_of_bounds || desc->check.schedules) {
    return false;
  }
  return !has_workgroup || (desc->grid[0] | desc->grid[1] | desc->grid[2]) == 0;
}

static bool counts_fit(const vyre_pipeline *pipeline,
                       const vyre_dispatch_desc *desc) {
  const struct vyre__pipeline_state *state = pipeline->state;
  const vyre_binding_plan *plan = &pipeline->plan;
  return desc->resources ? desc->resource_count == state->resource_count
                         : desc->input_count == plan->input_count &&
                               desc->output_count == plan->output_count;
}

vyre_pipeline *vyre__tuned_select(vyre_pipeline *pipeline,
                                  const vyre_dispatch_desc *items,
                                  size_t count) {
  const vyre__tuned_list *list =
      atomic_load_explicit(&pipeline->state->tuned, memory_order_acquire);
  if (!list || count == 0) return pipeline;
  for (size_t i = 0; i < count; i++) { /* other lists are not read */
    if (!counts_fit(pipeline, &items[i])) return pipeline;
  }
  const vyre__tuned_entry *e =
      find_entry(list, vyre__desc_size_class(pipeline->device, items));
  if (!e || !e->pipeline) return pipeline;
  for (size_t i = 0; i < count; i++) {
    if (!is_plain(&items[i], e->settings.workgroup != 0)) return pipeline;
  }
  return e->pipeline;
}
