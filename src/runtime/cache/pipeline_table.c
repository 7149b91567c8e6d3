/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "ir/ir.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/context.h"
#include "runtime/core/device.h"

/* --- the same program --------------------------------------------------------*/

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

/* Equal places are kept in the same way: packed if all of them fit. */
static bool same_places(const vyre_program *a, const vyre_program *b) {
  size_t nodes = a->node_count;
  return same_bytes(a->places, b->places, nodes * sizeof *a->places) &&
         same_bytes(a->wide_places, b->wide_places,
                    nodes * sizeof *a->wide_places) &&
         same_bytes(a->buffer_places, b->buffer_places,
                    a->buffer_count * sizeof *a->buffer_places);
}

/* Names and places too: who shares a pipeline gets its messages. */
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

/* Whether the memory of a program is there as long as the device: the caller may
 * take back an allocator of its own once it let go of the program. */
static bool is_lasting(const vyre_program *program, const vyre_device *device) {
  vyre_allocator memory = program->arena.allocator;
  vyre_allocator context = device->context->base_allocator;
  return !memory.resize || memory.resize == vyre_allocator_heap().resize ||
         (memory.resize == context.resize && memory.self == context.self);
}

/* --- the table ---------------------------------------------------------------*/

static vyre__pipeline_table *table_of(const vyre_device *device) {
  return &device->state->pipelines;
}

static vyre_pipeline **bucket_of(vyre__pipeline_table *table,
                                 const vyre_program *program) {
  return &table->buckets[program->fingerprint.low % VYRE__CACHE_BUCKETS];
}

static void unpark(vyre__pipeline_table *table, vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *inside = pipeline->state;
  vyre_pipeline **from_newer =
      inside->newer ? &inside->newer->state->older : &table->newest;
  vyre_pipeline **from_older =
      inside->older ? &inside->older->state->newer : &table->oldest;
  *from_newer = inside->older;
  *from_older = inside->newer;
  inside->newer = inside->older = NULL;
  inside->is_parked = false;
  table->parked--;
}

static void park(vyre__pipeline_table *table, vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *inside = pipeline->state;
  inside->older = table->newest;
  if (table->newest) {
    table->newest->state->newer = pipeline;
  } else {
    table->oldest = pipeline;
  }
  table->newest = pipeline;
  inside->is_parked = true;
  table->parked++;
}

static void forget(vyre__pipeline_table *table, vyre_pipeline *pipeline) {
  vyre_pipeline **at = bucket_of(table, pipeline->program);
  while (*at != pipeline) at = &(*at)->state->next_in_bucket;
  *at = pipeline->state->next_in_bucket;
}

/* Under the lock. */
static vyre_pipeline *find(vyre__pipeline_table *table,
                           const vyre__cache_subject *subject) {
  vyre_pipeline *at = *bucket_of(table, subject->program);
  for (; at; at = at->state->next_in_bucket) {
    if (at->ulp_budget != subject->ulp_budget ||
        at->counts_iterations != subject->counts_rounds ||
        memcmp(at->workgroup, subject->workgroup, sizeof at->workgroup) != 0 ||
        !same_program(at->program, subject->program) ||
        (at->program != subject->program &&
         !is_lasting(at->program, subject->device))) {
      continue;
    }
    if (at->state->is_parked) {
      unpark(table, at);
      vyre_device_retain(at->device);
    }
    atomic_fetch_add(&at->state->references, 1);
    atomic_fetch_add(&at->state->memory_hits, 1);
    VYRE__COUNT(subject->device, cache_memory_hits, 1);
    return at;
  }
  return NULL;
}

vyre_pipeline *vyre__table_find(const vyre__cache_subject *subject) {
  vyre__pipeline_table *table = table_of(subject->device);
  pthread_mutex_lock(&table->lock);
  vyre_pipeline *found = find(table, subject);
  pthread_mutex_unlock(&table->lock);
  return found;
}

vyre_pipeline *vyre__table_share(vyre_pipeline *pipeline) {
  const vyre__cache_subject subject = {
      pipeline->device, pipeline->program, pipeline->workgroup,
      pipeline->ulp_budget, pipeline->counts_iterations};
  vyre__pipeline_table *table = table_of(pipeline->device);
  pthread_mutex_lock(&table->lock);
  vyre_pipeline *other = find(table, &subject);
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

/* --- letting go --------------------------------------------------------------*/

/* The last reference is dropped under the lock, under which alone others find the
 * pipeline: whoever gets it has it before, or finds it parked. True: the caller
 * must free *over, and give back the reference to the device. */
static bool drop_last(vyre_pipeline *pipeline, vyre_pipeline **variants,
                      vyre_pipeline **over) {
  struct vyre__pipeline_state *inside = pipeline->state;
  vyre__pipeline_table *table = table_of(pipeline->device);
  *variants = *over = NULL;
  pthread_mutex_lock(&table->lock);
  bool is_last = atomic_fetch_sub(&inside->references, 1) == 1;
  if (is_last && is_lasting(pipeline->program, pipeline->device)) {
    /* What it was prepared for is its user's, and holds the device. */
    *variants = atomic_exchange(&inside->variants, NULL);
    vyre__pipeline_drop_runs(pipeline);
    park(table, pipeline);
    if (table->parked > VYRE_CACHE_IDLE) *over = table->oldest;
    if (*over) unpark(table, *over);
  } else if (is_last) {
    *over = pipeline;
  }
  if (*over) forget(table, *over);
  pthread_mutex_unlock(&table->lock);
  return is_last;
}

bool vyre__table_release(vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *inside = pipeline->state;
  if (!inside->is_shared) {
    return atomic_fetch_sub(&inside->references, 1) == 1;
  }
  unsigned count = atomic_load(&inside->references);
  while (count > 1) {
    if (atomic_compare_exchange_weak(&inside->references, &count, count - 1)) {
      return false;
    }
  }
  vyre_device *device = pipeline->device;
  vyre_pipeline *variant, *over;
  if (!drop_last(pipeline, &variant, &over)) return false;
  while (variant) {
    vyre_pipeline *next = variant->state->next_variant;
    vyre_pipeline_release(variant);
    variant = next;
  }
  if (over) vyre__pipeline_free(over);
  vyre_device_release(device); /* the one that it held while in use */
  return false;
}

void vyre__table_deinit(vyre_device *device) {
  vyre__pipeline_table *table = table_of(device);
  for (vyre_pipeline *at; (at = table->newest) != NULL;) {
    unpark(table, at);
    forget(table, at);
    vyre__pipeline_free(at);
  }
}
