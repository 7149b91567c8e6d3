/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of the pipelines that compiles of a device share. It keeps the most
 * recent idle pipelines, so that compiling the same program again is fast. */
#include <string.h>

#include "ir/ir.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/tune/apply.h"

/* --- comparison of programs ----------------------------------------------- */

static bool same_names(const vyre__function *a, const vyre__function *b) {
  if (strcmp(a->name, b->name) != 0) return false;
  for (uint32_t i = 0; i < a->local_count; i++) {
    if (strcmp(a->locals[i].name, b->locals[i].name) != 0) return false;
  }
  return true;
}

static bool same_bytes(const void *a, const void *b, size_t size) {
  if (!a || !b) return a == b;
  return size == 0 || memcmp(a, b, size) == 0;
}

/* Equal source locations are stored in the same way: packed if all of them
 * fit. */
static bool same_places(const vyre_program *a, const vyre_program *b) {
  size_t nodes = a->node_count;
  return same_bytes(a->places, b->places, nodes * sizeof *a->places) &&
         same_bytes(a->wide_places, b->wide_places,
                    nodes * sizeof *a->wide_places) &&
         same_bytes(a->buffer_places, b->buffer_places,
                    a->buffer_count * sizeof *a->buffer_places);
}

/* Compares names and source locations too, because messages of a shared
 * pipeline show them. */
static bool same_program(const vyre_program *a, const vyre_program *b) {
  if (a == b) return true;
  if (a->fingerprint.low != b->fingerprint.low ||
      a->fingerprint.high != b->fingerprint.high ||
      strcmp(a->name, b->name) != 0 || strcmp(a->file, b->file) != 0 ||
      !vyre_program_equal(a, b) || !same_places(a, b)) {
    return false;
  }
  for (uint32_t i = 0; i < a->function_count; i++) {
    if (!same_names(&a->functions[i], &b->functions[i])) return false;
  }
  return true;
}

/* Returns true if the memory of the program outlives the device. The caller may
 * destroy its own allocator after it has released the program. */
static bool outlives_device(const vyre_program *program,
                            const vyre_device *device) {
  vyre_allocator memory = program->arena.allocator;
  vyre_allocator context = device->context->base_allocator;
  if (program->origin && !outlives_device(program->origin, device))
    return false;
  return !memory.resize || memory.resize == vyre_allocator_heap().resize ||
         (memory.resize == context.resize && memory.self == context.self);
}

/* --- the table ------------------------------------------------------------ */

static vyre__pipeline_table *table_of(const vyre_device *device) {
  return &device->state->pipelines;
}

static vyre_pipeline **bucket_of(vyre__pipeline_table *table,
                                 const vyre_program *program) {
  return &table->buckets[program->fingerprint.low % VYRE__CACHE_BUCKETS];
}

static void remove_idle(vyre__pipeline_table *table, vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre_pipeline **from_newer =
      state->newer ? &state->newer->state->older : &table->newest;
  vyre_pipeline **from_older =
      state->older ? &state->older->state->newer : &table->oldest;
  *from_newer = state->older;
  *from_older = state->newer;
  state->newer = state->older = NULL;
  state->is_idle = false;
  table->idle_count--;
}

static void add_idle(vyre__pipeline_table *table, vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  state->older = table->newest;
  if (table->newest) {
    table->newest->state->newer = pipeline;
  } else {
    table->oldest = pipeline;
  }
  table->newest = pipeline;
  state->is_idle = true;
  table->idle_count++;
}

static void remove_shared(vyre__pipeline_table *table,
                          vyre_pipeline *pipeline) {
  vyre_pipeline **at = bucket_of(table, pipeline->program);
  while (*at != pipeline) at = &(*at)->state->next_in_bucket;
  *at = pipeline->state->next_in_bucket;
}

/* Under the lock. */
static vyre_pipeline *find(vyre__pipeline_table *table,
                           const vyre_pipeline *wanted) {
  vyre_pipeline *at = *bucket_of(table, wanted->program);
  for (; at; at = at->state->next_in_bucket) {
    if (at->ulp_budget != wanted->ulp_budget ||
        at->counts_iterations != wanted->counts_iterations ||
        at->ignores_tuning != wanted->ignores_tuning ||
        memcmp(at->tuned, wanted->tuned, sizeof at->tuned) != 0 ||
        memcmp(at->workgroup, wanted->workgroup, sizeof at->workgroup) != 0 ||
        !same_program(at->program, wanted->program) ||
        (at->program != wanted->program &&
         !outlives_device(at->program, wanted->device))) {
      continue;
    }
    if (at->state->is_idle) {
      remove_idle(table, at);
      vyre_device_retain(at->device);
    }
    atomic_fetch_add(&at->state->references, 1);
    atomic_fetch_add(&at->state->memory_hits, 1);
    VYRE__COUNT(wanted->device, cache_memory_hits, 1);
    return at;
  }
  return NULL;
}

vyre_pipeline *vyre__table_find(const vyre_pipeline *wanted) {
  vyre__pipeline_table *table = table_of(wanted->device);
  pthread_mutex_lock(&table->lock);
  vyre_pipeline *found = find(table, wanted);
  pthread_mutex_unlock(&table->lock);
  return found;
}

vyre_pipeline *vyre__table_share(vyre_pipeline *pipeline) {
  vyre__pipeline_table *table = table_of(pipeline->device);
  pthread_mutex_lock(&table->lock);
  vyre_pipeline *other = find(table, pipeline);
  if (!other) {
    vyre_pipeline **bucket = bucket_of(table, pipeline->program);
    pipeline->state->next_in_bucket = *bucket;
    pipeline->state->is_shared = true;
    *bucket = pipeline;
  }
  pthread_mutex_unlock(&table->lock);
  if (!other) return pipeline;
  vyre_pipeline_release(pipeline);
  return other;
}

/* --- release -------------------------------------------------------------- */

/* Drops the last reference under the lock that lookups hold: another thread
 * finds the pipeline either before, with a reference, or after, idle. Returns
 * true if it was the last reference; the caller must then free *evicted and
 * release the device. */
static bool drop_last(vyre_pipeline *pipeline, vyre_pipeline **variants,
                      vyre__tuned_list **tuned, vyre_pipeline **evicted) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre__pipeline_table *table = table_of(pipeline->device);
  *variants = *evicted = NULL;
  *tuned = NULL;
  pthread_mutex_lock(&table->lock);
  bool is_last = atomic_fetch_sub(&state->references, 1) == 1;
  if (is_last && outlives_device(pipeline->program, pipeline->device)) {
    /* Variants belong to the user of the pipeline, and retain the device. */
    *variants = atomic_exchange(&state->variants, NULL);
    *tuned = atomic_exchange(&state->tuned, NULL);
    atomic_store(&state->tuned_generation, 0);
    vyre__pipeline_drop_runs(pipeline);
    add_idle(table, pipeline);
    if (table->idle_count > VYRE_CACHE_IDLE) *evicted = table->oldest;
    if (*evicted) remove_idle(table, *evicted);
  } else if (is_last) {
    *evicted = pipeline;
  }
  if (*evicted) remove_shared(table, *evicted);
  pthread_mutex_unlock(&table->lock);
  return is_last;
}

bool vyre__table_release(vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  if (!state->is_shared) {
    return atomic_fetch_sub(&state->references, 1) == 1;
  }
  unsigned count = atomic_load(&state->references);
  while (count > 1) {
    if (atomic_compare_exchange_weak(&state->references, &count, count - 1)) {
      return false;
    }
  }
  vyre_device *device = pipeline->device;
  vyre_pipeline *variant, *evicted;
  vyre__tuned_list *tuned;
  if (!drop_last(pipeline, &variant, &tuned, &evicted)) return false;
  vyre__tuned_free(device->allocator, tuned);
  while (variant) {
    vyre_pipeline *next = variant->state->next_variant;
    vyre_pipeline_release(variant);
    variant = next;
  }
  if (evicted) vyre__pipeline_free(evicted);
  vyre_device_release(device); /* its reference while in use */
  return false;
}

void vyre__table_deinit(vyre_device *device) {
  vyre__pipeline_table *table = table_of(device);
  for (vyre_pipeline *at; (at = table->newest) != NULL;) {
    remove_idle(table, at);
    remove_shared(table, at);
    vyre__pipeline_free(at);
  }
}
