/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work queues as steps of recordings. */
#include <stdio.h>
#include <string.h>

#include "vyre/recording.h"

#include "base/memory.h"
#include "base/status.h"
#include "flow/queue_internal.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/recording/recording.h"

enum { LABEL = 64 };

/* A recorded queue. Its ranges are the inputs or resources, the outputs, then
 * `items` and `count`. */
typedef struct recorded_queue {
  vyre__step step;   /* first member: the step is the object */
  vyre_queue *queue; /* retained */
  size_t in_count, out_count;
  bool has_resources, has_items, has_count;
  uint64_t max_loop_iterations;
  vyre_queue_stats *stats;
  char label[LABEL];
  vyre__step_range ranges[];
} recorded_queue;

/* --- adding ---------------------------------------------------------------- */

/* Numbers of ranges that the kernel has, without hidden buffers. */
typedef struct range_counts {
  size_t inputs, outputs, resources, persistent;
} range_counts;

static bool is_hidden(const vyre_queue *queue, const vyre__binding_info *info) {
  return info->buffer >= queue->program->buffer_count;
}

static const struct vyre__pipeline_state *state_of(const vyre_queue *queue) {
  return queue->parts[VYRE__QUEUE_PUSH]->state;
}

static range_counts count_ranges(const vyre_queue *queue) {
  const struct vyre__pipeline_state *state = state_of(queue);
  range_counts counts = {0};
  for (size_t i = 0; i < state->resource_count; i++) {
    const vyre__binding_info *info = state->resources[i];
    if (is_hidden(queue, info)) continue;
    counts.resources++;
    counts.inputs += info->input != VYRE_NO_INDEX;
    counts.outputs += info->output != VYRE_NO_INDEX;
    counts.persistent += info->is_persistent;
  }
  return counts;
}

static vyre_code wrong_count(const vyre_queue *queue, const char *what,
                             size_t expected, size_t received,
                             vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"expected_ranges", expected},
                   {"received_ranges", received}),
      "pass one slot range for each, in order of their binding numbers",
      "queue kernel '%.60s' has %zu %s, but %zu slot ranges were given",
      queue->program->name, expected, what, received);
}

static vyre_code check_counts(const vyre_queue *queue,
                              const vyre_recorded_queue *d, vyre_status *st) {
  const range_counts counts = count_ranges(queue);
  const bool has_resources = d->resources || d->resource_count > 0;
  const size_t inputs = has_resources ? 0 : counts.inputs;
  VYRE_REQUIRE_ARRAY(st, d->inputs, d->input_count);
  VYRE_REQUIRE_ARRAY(st, d->outputs, d->output_count);
  VYRE_REQUIRE_ARRAY(st, d->resources, d->resource_count);
  if (has_resources && d->resource_count != counts.resources)
    return wrong_count(queue, "resources", counts.resources, d->resource_count,
                       st);
  if (has_resources && d->input_count > 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "leave inputs empty: resources names every buffer",
                     "inputs has %zu ranges, but resources is set",
                     d->input_count);
  }
  if (d->input_count != inputs)
    return wrong_count(queue, "inputs", inputs, d->input_count, st);
  if (d->output_count != counts.outputs &&
      (d->output_count > 0 || !has_resources)) {
    return wrong_count(queue, "outputs", counts.outputs, d->output_count, st);
  }
  if (!has_resources && counts.persistent > 0)
    return wrong_count(queue, "resources, some of them persistent",
                       counts.resources, 0, st);
  if (!d->count || d->items) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "set vyre_recorded_queue.items too",
                   "vyre_recorded_queue.count is set, but items is not");
}

static void add_buffers(recorded_queue *r, const vyre_recorded_queue *d) {
  const struct vyre__pipeline_state *state = state_of(r->queue);
  const vyre_slot_range *in = r->has_resources ? d->resources : d->inputs;
  for (size_t i = 0; i < state->resource_count; i++) {
    const vyre__binding_info *info = state->resources[i];
    if (is_hidden(r->queue, info)) continue;
    const uint32_t at = r->has_resources ? info->resource : info->input;
    const bool has_output = info->output != VYRE_NO_INDEX && r->out_count > 0;
    const uint32_t out = has_output ? (uint32_t)r->in_count + info->output : 0;
    const vyre__step_range like = {.name = info->binding->name,
                                   .bytes = info->static_bytes,
                                   .element = info->element ? info->element : 1,
                                   .output = VYRE_NO_SLOT};
    if (at != VYRE_NO_INDEX) {
      r->ranges[at] = like;
      r->ranges[at].range = in[at];
      r->ranges[at].is_written = !info->has_contents;
      r->ranges[at].may_update = info->output != VYRE_NO_INDEX ||
                                 (info->is_persistent && info->is_written);
      if (has_output) r->ranges[at].output = out;
    }
    if (!has_output) continue;
    r->ranges[out] = like;
    r->ranges[out].range = d->outputs[info->output];
    r->ranges[out].is_written = true;
  }
}

static void add_source(recorded_queue *r, const vyre_recorded_queue *d) {
  size_t at = r->in_count + r->out_count;
  if (r->has_items && d->items) {
    r->ranges[at++] =
        (vyre__step_range){.range = *d->items,
                           .name = "items",
                           .element = r->queue->info.item_words * 4,
                           .output = VYRE_NO_SLOT};
  }
  if (r->has_count) {
    r->ranges[at++] = (vyre__step_range){.range = *d->count,
                                         .name = "count",
                                         .bytes = 4,
                                         .element = 4,
                                         .output = VYRE_NO_SLOT};
  }
  r->step.ranges = r->ranges;
  r->step.range_count = at;
}

/* --- running --------------------------------------------------------------- */

/* Bindings of a run, from the memory of the ranges. */
typedef struct desc_arrays {
  vyre_dispatch_desc desc;
  vyre_input *inputs;
  size_t bytes;
} desc_arrays;

static vyre_code make_desc(const recorded_queue *r,
                           const vyre__step_memory *memory, desc_arrays *out,
                           vyre_status *st) {
  const size_t ins = r->in_count, outs = r->out_count;
  out->bytes = (ins + 1) * sizeof(vyre_input) + outs * sizeof(vyre_output);
  out->inputs = vyre__resize(r->step.device->allocator, NULL, 0, out->bytes);
  if (!out->inputs)
    return vyre__no_memory(st, "vyre_recording_replay", "bindings", ins + outs);
  vyre_output *outputs = (vyre_output *)(void *)(out->inputs + ins + 1);
  for (size_t i = 0; i < ins; i++) {
    const vyre__step_memory *m = &memory[i];
    out->inputs[i] = (vyre_input){.data = m->data,
                                  .size = (size_t)m->size,
                                  .buffer = m->handle,
                                  .offset = m->offset};
  }
  for (size_t i = 0; i < outs; i++) {
    const vyre__step_memory *m = &memory[ins + i];
    outputs[i] = (vyre_output){.data = m->data,
                               .size = (size_t)m->size,
                               .buffer = m->handle,
                               .offset = m->offset};
  }
  out->desc =
      (vyre_dispatch_desc){.inputs = r->has_resources ? NULL : out->inputs,
                           .input_count = r->has_resources ? 0 : ins,
                           .resources = r->has_resources ? out->inputs : NULL,
                           .resource_count = r->has_resources ? ins : 0,
                           .outputs = outs > 0 ? outputs : NULL,
                           .output_count = outs,
                           .grid = {1, 1, 1},
                           .max_loop_iterations = r->max_loop_iterations};
  return VYRE_OK;
}

static void free_desc(const recorded_queue *r, const desc_arrays *arrays) {
  vyre__resize(r->step.device->allocator, arrays->inputs, arrays->bytes, 0);
}

static vyre_code check(vyre__step *step, const vyre__step_memory *memory,
                       vyre_status *st) {
  const recorded_queue *r = (recorded_queue *)step;
  desc_arrays arrays;
  VYRE_TRY(make_desc(r, memory, &arrays, st));
  vyre_code code = vyre__queue_check_run(r->queue, &arrays.desc, st);
  free_desc(r, &arrays);
  return code;
}

static vyre_code run(vyre__step *step, const vyre__step_memory *memory,
                     vyre__step_limit limit, vyre_replay_result *result,
                     vyre_status *st) {
  const recorded_queue *r = (recorded_queue *)step;
  const vyre__step_memory *items = memory + r->in_count + r->out_count;
  const vyre__queue_source source = {r->has_items ? items : NULL,
                                     r->has_count ? items + 1 : NULL};
  desc_arrays arrays;
  VYRE_TRY(make_desc(r, memory, &arrays, st));
  vyre_code code =
      vyre__queue_run_step(r->queue, &arrays.desc, source, limit, r->stats, st);
  free_desc(r, &arrays);
  if (code == VYRE_OK) result->queues++;
  return code;
}

static void print(const vyre__step *step, vyre__printer *out) {
  const recorded_queue *r = (const recorded_queue *)step;
  const vyre_queue_run_plan *plan = &r->queue->plan;
  vyre__print(out, "queue %s: %s, mode %s, %llu places, %llu bytes, ", r->label,
              vyre_queue_kind_name(plan->kind),
              vyre_queue_mode_name(plan->mode),
              (unsigned long long)plan->capacity,
              (unsigned long long)plan->memory_bytes);
  if (plan->first_batch == 0) {
    vyre__print(out, "1 submission,");
  } else {
    vyre__print(out, "submissions of %u to %u chunks,", plan->first_batch,
                plan->max_batch);
  }
}

static void deinit(vyre__step *step) {
  vyre_queue_release(((recorded_queue *)step)->queue);
}

vyre_code vyre_recording_add_queue(vyre_recording *recording, vyre_queue *queue,
                                   const vyre_recorded_queue *d,
                                   vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, recording);
  VYRE_REQUIRE_BOTH(st, queue, d);
  VYRE_CHECK_RESERVED(st, __func__, d);
  VYRE_TRY(check_counts(queue, d, st));
  if (d->items) VYRE_TRY(vyre__slot_check(recording, d->items->slot, st));
  if (d->count) VYRE_TRY(vyre__slot_check(recording, d->count->slot, st));
  const bool has_resources = d->resource_count > 0;
  const size_t ins = has_resources ? d->resource_count : d->input_count;
  const size_t ranges = ins + d->output_count + 2;
  const size_t size =
      sizeof(recorded_queue) + ranges * sizeof(vyre__step_range);
  recorded_queue *r = vyre__alloc_zeroed(queue->device->allocator, size);
  if (!r) return vyre__no_memory(st, __func__, "slot ranges", ranges);
  atomic_init(&r->step.references, 1);
  r->step.device = queue->device;
  r->step.size = size;
  r->step.check = check;
  r->step.run = run;
  r->step.print = print;
  r->queue = queue;
  r->in_count = ins;
  r->out_count = d->output_count;
  r->has_resources = has_resources;
  r->has_items = d->items != NULL;
  r->has_count = d->count != NULL;
  r->max_loop_iterations = d->max_loop_iterations;
  r->stats = d->stats;
  (void)snprintf(r->label, sizeof r->label, "%s",
                 d->label ? d->label : vyre_program_name(queue->program));
  add_buffers(r, d);
  add_source(r, d);
  vyre_code code = vyre__recording_add_step(recording, __func__, &r->step, st);
  if (code != VYRE_OK) {
    vyre__step_release(&r->step);
    return code;
  }
  (void)vyre_queue_retain(queue);
  r->step.deinit = deinit;
  return VYRE_OK;
}
