/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "graph/on_device.h"

#include <string.h>

#include "cli/stopwatch.h"

bool graph_check(graph_device *d, vyre_code code, const vyre_status *st) {
  if (code == VYRE_OK) return !d->has_failed;
  if (!d->has_failed) problem_from_status(d->wrong, st);
  d->has_failed = true;
  return false;
}

static bool is_queue_kernel(const vyre_program *program) {
  vyre_queue_clauses clauses;
  vyre_queue_field fields[32];
  return vyre_program_queue(program, &clauses, fields);
}

void graph_device_init(graph_device *d, vyre_device *device,
                       const graph_kernels *kernels, problem *wrong) {
  vyre_status st = {0};
  vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  *d = (graph_device){.device = vyre_device_retain(device), .wrong = wrong};
  if (!graph_check(
          d,
          vyre_module_parse(kernels->text, *kernels->length, kernels->name,
                            vyre_allocator_heap(), &d->module, NULL, &st),
          &st)) {
    return;
  }
  size_t count = vyre_module_kernel_count(d->module);
  for (size_t i = 0; i < count && i < GRAPH_MAX_KERNELS; i++) {
    vyre_program *program = vyre_module_kernel(d->module, i);
    if (is_queue_kernel(program)) continue; /* graph_queue compiles it */
    if (!graph_check(d,
                     vyre_pipeline_compile(device, program, &options,
                                           &d->kernels[i], NULL, &st),
                     &st)) {
      return;
    }
  }
  graph_check(d, vyre_recording_create(device, &d->recording, &st), &st);
}

void graph_device_deinit(graph_device *d) {
  vyre_recording_release(d->recording);
  vyre_queue_release(d->queue);
  for (uint32_t i = 0; i < d->slot_count; i++) {
    if (d->buffers[i].id) vyre_buffer_destroy(d->device, d->buffers[i], NULL);
  }
  for (int i = 0; i < GRAPH_MAX_KERNELS; i++) {
    vyre_pipeline_release(d->kernels[i]);
  }
  vyre_module_release(d->module);
  vyre_device_release(d->device);
  *d = (graph_device){.device = NULL};
}

/* Adds a slot with permanent memory. */
static uint32_t add_slot(graph_device *d, const vyre_slot_binding *binding) {
  vyre_status st = {0};
  uint32_t slot = 0;
  if (d->has_failed) return 0;
  d->slot_count++;
  graph_check(
      d, vyre_recording_add_fixed_slot(d->recording, binding, &slot, &st), &st);
  return slot;
}

static bool has_space(graph_device *d) {
  if (!d->has_failed && d->slot_count == GRAPH_MAX_SLOTS) {
    d->has_failed = true;
    problem_no_memory(d->wrong, "the buffers of the graph");
  }
  return !d->has_failed;
}

/* Adds bytes to those that are needed. Returns false if the budget does not
 * suffice: the rest is counted then, and nothing is allocated or recorded. */
static bool fits(graph_device *d, uint64_t bytes) {
  d->bytes += bytes;
  d->is_over |= d->budget > 0 && d->bytes > d->budget;
  return !d->is_over;
}

/* A buffer has at least one word, because devices bind no empty ranges. */
uint32_t graph_words(graph_device *d, uint64_t count) {
  vyre_status st = {0};
  uint64_t bytes = count ? count * 4 : 4;
  if (!has_space(d) || !fits(d, bytes)) return 0;
  vyre_buffer *buffer = &d->buffers[d->slot_count];
  if (!graph_check(d, vyre_buffer_create(d->device, bytes, buffer, &st), &st)) {
    return 0;
  }
  return add_slot(d, &(vyre_slot_binding){.buffer = *buffer});
}

uint32_t graph_import(graph_device *d, const uint32_t *words, uint64_t count) {
  vyre_status st = {0};
  if (!has_space(d)) return 0;
  const vyre_device_caps *caps = vyre_device_get_caps(d->device);
  vyre_buffer *buffer = &d->buffers[d->slot_count];
  bool can_import =
      !d->is_over && (caps->imports_host_memory || caps->borrows_host_memory);
  if (count > 0 && can_import &&
      vyre_buffer_import(d->device, (void *)(uintptr_t)words, count * 4, buffer,
                         &st) == VYRE_OK) {
    (void)fits(d, count * 4);
    return add_slot(d, &(vyre_slot_binding){.buffer = *buffer});
  }
  uint32_t slot = graph_words(d, count);
  if (!d->has_failed && !d->is_over && count > 0) {
    graph_check(d,
                vyre_buffer_upload(d->device, d->buffers[slot], 0, words,
                                   count * 4, &st),
                &st);
  }
  return slot;
}

uint32_t graph_value(graph_device *d, uint32_t value) {
  if (!has_space(d)) return 0;
  uint32_t *word = &d->values[d->slot_count];
  *word = value;
  return add_slot(
      d, &(vyre_slot_binding){.data = word, .size = 4, .is_read_only = true});
}

uint32_t graph_real(graph_device *d, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return graph_value(d, bits);
}

void graph_step(graph_device *d, uint32_t kernel, uint32_t groups,
                const uint32_t *slots) {
  enum { MAX_BINDINGS = 16 };
  vyre_slot_range ranges[MAX_BINDINGS];
  vyre_status st = {0};
  size_t count = 0;
  if (d->has_failed || d->is_over) return;
  while (count < MAX_BINDINGS && slots[count] != GRAPH_END) {
    ranges[count] = vyre_slot_range_all(slots[count]);
    count++;
  }
  vyre_recorded_dispatch dispatch = {
      .resources = ranges, .resource_count = count, .grid = {groups, 1, 1}};
  graph_check(d,
              vyre_recording_add_dispatch(d->recording, d->kernels[kernel],
                                          &dispatch, &st),
              &st);
}

void graph_queue(graph_device *d, uint32_t kernel, uint64_t capacity,
                 uint32_t item, const uint32_t *slots) {
  vyre_status st = {0};
  vyre_compile_options compile = {.tier = VYRE_TIER_OPTIMISED};
  vyre_queue_options options = {.capacity = capacity, .compile = &compile};
  if (d->has_failed) return;
  d->first_item = item;
  for (size_t i = 0; i < GRAPH_MAX_BINDINGS && slots[i] != GRAPH_END; i++) {
    const uint32_t slot = slots[i];
    d->bindings[d->binding_count++] =
        d->buffers[slot].id
            ? vyre_input_buffer(d->buffers[slot])
            : vyre_input_bytes(&d->values[slot], sizeof d->values[slot]);
  }
  /* The error of a budget of one byte has the bytes that the queue needs. */
  if (d->budget) {
    options.budget_bytes =
        d->is_over || d->bytes == d->budget ? 1 : d->budget - d->bytes;
  }
  vyre_code code =
      vyre_queue_create(d->device, vyre_module_kernel(d->module, kernel),
                        &options, &d->queue, NULL, &st);
  uint64_t needed = 0;
  if (code != VYRE_OK && st.kind == VYRE_KIND_OVER_BUDGET && d->budget &&
      vyre_status_number_get(&st, "required_bytes", &needed)) {
    (void)fits(d, needed);
    return;
  }
  if (graph_check(d, code, &st))
    (void)fits(d, vyre_queue_get_plan(d->queue)->memory_bytes);
}

static bool drain(graph_device *d) {
  vyre_status st = {0};
  const vyre_dispatch_desc desc = {.resources = d->bindings,
                                   .resource_count = d->binding_count};
  return graph_check(d, vyre_queue_fill(d->queue, &d->first_item, 1, &st),
                     &st) &&
         graph_check(d, vyre_queue_run(d->queue, &desc, &d->stats, NULL, &st),
                     &st);
}

void graph_begin_while(graph_device *d, uint32_t flag, uint64_t iterations) {
  vyre_status st = {0};
  if (d->has_failed || d->is_over) return;
  graph_check(
      d,
      vyre_recording_begin_while(d->recording, vyre_slot_range_all(flag),
                                 iterations, (uint32_t)iterations, &st),
      &st);
}

void graph_end_while(graph_device *d) {
  vyre_status st = {0};
  if (!d->has_failed && !d->is_over) {
    graph_check(d, vyre_recording_end_while(d->recording, &st), &st);
  }
}

void graph_seal(graph_device *d) {
  vyre_status st = {0};
  if (d->is_over && !d->has_failed) {
    d->has_failed = true;
    problem_set(d->wrong, vyre_kind_name(VYRE_KIND_OVER_BUDGET), "",
                "the run needs %llu bytes on %s, the budget is %llu",
                (unsigned long long)d->bytes, vyre_device_name(d->device),
                (unsigned long long)d->budget);
    problem_fix(d->wrong, "use --budget %llu, or a smaller graph",
                (unsigned long long)d->bytes);
  }
  if (!d->has_failed) {
    graph_check(d, vyre_recording_seal(d->recording, &st), &st);
  }
}

bool graph_run(graph_device *d, uint64_t *ns) {
  vyre_status st = {0};
  if (d->has_failed) return false;
  uint64_t start = stopwatch_ns();
  vyre_code code = vyre_recording_replay(d->recording, NULL, NULL, &st);
  bool is_fine = graph_check(d, code, &st) && (!d->queue || drain(d));
  *ns = stopwatch_ns() - start;
  return is_fine;
}

bool graph_clear(graph_device *d, uint32_t slot) {
  vyre_status st = {0};
  uint64_t size = 0;
  static const uint32_t zeros[1024];
  if (d->has_failed ||
      !graph_check(d, vyre_buffer_size(d->device, d->buffers[slot], &size, &st),
                   &st)) {
    return false;
  }
  for (uint64_t at = 0; at < size; at += sizeof zeros) {
    uint64_t left = size - at;
    size_t part = left < sizeof zeros ? (size_t)left : sizeof zeros;
    if (!graph_check(d,
                     vyre_buffer_upload(d->device, d->buffers[slot], at, zeros,
                                        part, &st),
                     &st)) {
      return false;
    }
  }
  return true;
}

bool graph_read(graph_device *d, uint32_t slot, void *words, uint64_t count) {
  vyre_status st = {0};
  if (d->has_failed || count == 0) return !d->has_failed;
  return graph_check(d,
                     vyre_buffer_download(d->device, d->buffers[slot], 0, words,
                                          count * 4, &st),
                     &st);
}
