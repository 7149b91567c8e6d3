/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cts/harness/dispatch_forms.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = CTS_FORM_ITEMS, MAX_BINDINGS = CTS_FORM_MAX_BINDINGS };

/* --- Memory of additional batch items
 * ----------------------------------------- */

static size_t total_of(const cts_run *r) {
  size_t total = 0;
  for (size_t i = 0; i < r->desc.output_count; i++) {
    total += r->desc.outputs[i].size;
  }
  return total;
}

/* Returns the outputs of item @p item: those of the descriptor for item 0,
 * separate memory for the others. */
static void outputs_of(cts_run *r, unsigned item, vyre_output *out) {
  size_t total = total_of(r);
  if (!r->space) r->space = cts_memory(r->c, (ITEMS - 1) * total);
  unsigned char *at = item == 0 ? NULL : r->space + (item - 1) * total;
  for (size_t i = 0; i < r->desc.output_count; i++) {
    out[i] = r->desc.outputs[i];
    if (!at) continue;
    out[i].data = at;
    memset(at, 0x3c, out[i].size);
    at += out[i].size;
  }
}

/* Checks that all items gave the same results, because their inputs are equal.
 */
static void same_items(cts_run *r, unsigned items) {
  vyre_output first[MAX_BINDINGS], other[MAX_BINDINGS];
  memcpy(first, r->desc.outputs, r->desc.output_count * sizeof *first);
  for (unsigned k = 1; k < items; k++) {
    unsigned char *at = r->space + (k - 1) * total_of(r);
    for (size_t i = 0; i < r->desc.output_count; i++) {
      other[i].data = at;
      CTS_SAME(r->c, "a further item", other[i].data, first[i].data,
               first[i].size);
      at += first[i].size;
    }
  }
}

/* --- Bindings
 * ----------------------------------------------------------------- */

typedef struct bound {
  vyre_input in[MAX_BINDINGS];
  vyre_output out[MAX_BINDINGS];
  vyre_host_buffer slots[MAX_BINDINGS];
  vyre_buffer device_buffers[MAX_BINDINGS];
} bound;

static bound *bound_begin(cts_run *r, bound *b) {
  memset(b, 0, sizeof *b);
  CTS_CHECK(r->c, r->desc.input_count <= MAX_BINDINGS &&
                      r->desc.output_count <= MAX_BINDINGS);
  memcpy(b->in, r->desc.inputs, r->desc.input_count * sizeof *b->in);
  return b;
}

static void bind_slots(const cts_run *r, bound *b) {
  for (size_t i = 0; i < r->desc.output_count; i++) {
    b->out[i] = vyre_output_host_buffer(&b->slots[i], r->desc.outputs[i].size);
  }
}

/* Moves every second input, or all inputs, to device buffers. */
static vyre_code bind_device_buffers(const cts_run *r, bound *b, bool all,
                                     vyre_status *st) {
  for (size_t i = 0; i < r->desc.input_count; i++) {
    const vyre_input *in = &r->desc.inputs[i];
    if (!all && i % 2 == 1) continue;
    vyre_code code =
        vyre_buffer_create(r->c->device, in->size, &b->device_buffers[i], st);
    if (code == VYRE_OK) {
      code = vyre_buffer_upload(r->c->device, b->device_buffers[i], 0, in->data,
                                in->size, st);
    }
    if (code != VYRE_OK) return code;
    b->in[i] = vyre_input_buffer(b->device_buffers[i]);
  }
  return VYRE_OK;
}

static void take_slots(const cts_run *r, const bound *b,
                       const vyre_output *to) {
  for (size_t i = 0; i < r->desc.output_count; i++) {
    CTS_U64(r->c, b->slots[i].size, to[i].size);
    if (to[i].size > 0) memcpy(to[i].data, b->slots[i].data, to[i].size);
  }
}

/* Checks fresh outputs: after a failure the host buffers must be empty. */
static void no_slots(const cts_run *r, const bound *b) {
  for (size_t i = 0; i < r->desc.output_count; i++) {
    CTS_CHECK(r->c, !b->slots[i].data && b->slots[i].size == 0);
  }
}

static void bound_end(const cts_run *r, bound *b) {
  for (size_t i = 0; i < MAX_BINDINGS; i++) {
    vyre_host_buffer_deinit(&b->slots[i]);
    if (b->device_buffers[i].owner) {
      (void)!vyre_buffer_destroy(r->c->device, b->device_buffers[i], NULL);
    }
  }
}

static vyre_dispatch_desc with(const cts_run *r, const vyre_input *in,
                               const vyre_output *out, vyre_code *result) {
  vyre_dispatch_desc desc = r->desc;
  desc.inputs = in;
  desc.outputs = out;
  desc.result = result;
  *result = VYRE_NOT_RUN;
  return desc;
}

static void count(cts_run *r, const vyre_code *results, unsigned items) {
  for (unsigned i = 0; i < items; i++) r->launched += results[i] == VYRE_OK;
}

/* --- Descriptors
 * -------------------------------------------------------------- */

static vyre_code device_dispatch(cts_run *r, vyre_status *st) {
  vyre_code result;
  vyre_dispatch_desc desc = with(r, r->desc.inputs, r->desc.outputs, &result);
  vyre_code code = vyre_device_run_program(r->c->device, r->program, &desc, st);
  count(r, &result, 1);
  return code;
}

static vyre_code dispatch_by(cts_run *r, vyre_pipeline *pipeline,
                             const vyre_compile_options *variant,
                             vyre_status *st) {
  vyre_code result;
  vyre_dispatch_desc desc = with(r, r->desc.inputs, r->desc.outputs, &result);
  desc.variant = variant;
  vyre_code code = vyre_dispatch(pipeline, &desc, st);
  count(r, &result, 1);
  return code;
}

static vyre_code dispatch(cts_run *r, vyre_status *st) {
  return dispatch_by(r, r->pipeline, NULL, st);
}

/* Waits again after a failed wait, because the work still writes to this
 * memory. */
static vyre_code wait_for(vyre_fence *fence, vyre_status *st) {
  vyre_code code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
  while (!vyre_fence_is_done(fence)) sched_yield();
  return code;
}

static vyre_code submit(cts_run *r, unsigned items, bool has_fence,
                        bool is_borrowed, vyre_status *st) {
  vyre_code results[ITEMS];
  vyre_output out[ITEMS][MAX_BINDINGS];
  vyre_dispatch_desc descs[ITEMS];
  vyre_fence *fence = NULL;
  for (unsigned i = 0; i < items; i++) {
    outputs_of(r, i, out[i]);
    descs[i] = with(r, r->desc.inputs, out[i], &results[i]);
    descs[i].is_borrowed = is_borrowed;
  }
  vyre_code code =
      vyre_submit(r->pipeline, descs, items, has_fence ? &fence : NULL, st);
  if (code == VYRE_OK && has_fence) code = wait_for(fence, st);
  vyre_fence_release(fence);
  count(r, results, items);
  if (code == VYRE_OK) same_items(r, items);
  return code;
}

static vyre_code submit_batch(cts_run *r, vyre_status *st) {
  return submit(r, ITEMS, false, false, st);
}
static vyre_code fence_owned(cts_run *r, vyre_status *st) {
  return submit(r, 1, true, false, st);
}
static vyre_code fence_borrowed(cts_run *r, vyre_status *st) {
  return submit(r, 1, true, true, st);
}
static vyre_code fence_batch(cts_run *r, vyre_status *st) {
  return submit(r, ITEMS, true, false, st);
}

/* --- Forms of vyre/dispatch_forms.h
 * ------------------------------------------- */

typedef vyre_code (*single_form)(vyre_pipeline *, const vyre_input *, size_t,
                                 const vyre_output *, size_t,
                                 const vyre_dispatch_desc *, vyre_status *);
typedef vyre_code (*timed_form)(vyre_pipeline *, const vyre_input *, size_t,
                                const vyre_output *, size_t,
                                const vyre_dispatch_desc *, vyre_timing *,
                                vyre_status *);
typedef vyre_code (*batch_form)(vyre_pipeline *, vyre_dispatch_desc *, size_t,
                                vyre_status *);

typedef struct form {
  single_form single;
  timed_form timed;
  batch_form batch;
  bool is_resident, is_fresh;
} form;

static vyre_code run_single(cts_run *r, const form *f, vyre_status *st) {
  bound b;
  vyre_code code = VYRE_OK, result;
  vyre_timing timing = {0};
  bound_begin(r, &b);
  bind_slots(r, &b);
  if (f->is_resident) code = bind_device_buffers(r, &b, false, st);
  vyre_dispatch_desc config = with(r, NULL, NULL, &result);
  if (code == VYRE_OK) {
    code = f->single ? f->single(r->pipeline, b.in, r->desc.input_count, b.out,
                                 r->desc.output_count, &config, st)
                     : f->timed(r->pipeline, b.in, r->desc.input_count, b.out,
                                r->desc.output_count, &config, &timing, st);
    count(r, &result, 1);
    if (code == VYRE_OK) take_slots(r, &b, r->desc.outputs);
    if (code != VYRE_OK && f->is_fresh) no_slots(r, &b);
    if (code == VYRE_OK && f->timed) CTS_CHECK(r->c, timing.wall_ns > 0);
  }
  bound_end(r, &b);
  return code;
}

static vyre_code run_batch(cts_run *r, const form *f, vyre_status *st) {
  bound b[ITEMS];
  vyre_code code = VYRE_OK, results[ITEMS];
  vyre_dispatch_desc items[ITEMS];
  vyre_output to[ITEMS][MAX_BINDINGS];
  for (unsigned i = 0; i < ITEMS; i++) bound_begin(r, &b[i]);
  for (unsigned i = 0; i < ITEMS && code == VYRE_OK; i++) {
    bind_slots(r, &b[i]);
    if (f->is_resident) code = bind_device_buffers(r, &b[i], i == 1, st);
    items[i] = with(r, b[i].in, b[i].out, &results[i]);
  }
  if (code == VYRE_OK) {
    code = f->batch(r->pipeline, items, ITEMS, st);
    count(r, results, ITEMS);
    for (unsigned i = 0; i < ITEMS; i++) {
      outputs_of(r, i, to[i]);
      if (code == VYRE_OK) take_slots(r, &b[i], to[i]);
      if (code != VYRE_OK && f->is_fresh) no_slots(r, &b[i]);
    }
  }
  if (code == VYRE_OK) same_items(r, ITEMS);
  for (unsigned i = 0; i < ITEMS; i++) bound_end(r, &b[i]);
  return code;
}

#define FORM(name, kind, runner, resident, fresh)        \
  static vyre_code name(cts_run *r, vyre_status *st) {   \
    static const form f = {.kind = vyre_dispatch_##name, \
                           .is_resident = (resident),    \
                           .is_fresh = (fresh)};         \
    return runner(r, &f, st);                            \
  }

FORM(owned, single, run_single, false, true)
FORM(borrowed, single, run_single, false, true)
FORM(borrowed_timed, timed, run_single, false, true)
FORM(borrowed_into, single, run_single, false, false)
FORM(borrowed_batched, batch, run_batch, false, true)
FORM(borrowed_batched_into, batch, run_batch, false, false)
FORM(resident, single, run_single, true, true)
FORM(resident_timed, timed, run_single, true, true)
FORM(resident_into, single, run_single, true, false)
FORM(resident_batched, batch, run_batch, true, true)
FORM(resident_batched_into, batch, run_batch, true, false)

/* Returns the memory of all bindings in the order of their numbers. The output
 * of the first binding that is only written is @p there. Returns the number. */
static size_t resources_of(const cts_run *r, const vyre_input *in,
                           vyre_buffer there, vyre_input *out) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(r->pipeline);
  size_t resource_count = 0;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    vyre_input *to = &out[resource_count];
    if (b->role == VYRE_ROLE_SHARED) continue;
    CTS_CHECK(r->c, resource_count++ < MAX_BINDINGS);
    if (b->input_index != VYRE_NO_INDEX) {
      *to = in[b->input_index];
      continue;
    }
    *to = (vyre_input){.size = r->desc.outputs[b->output_index].size};
    if (!there.owner) continue;
    to->buffer = there;
    there = (vyre_buffer){0};
  }
  return resource_count;
}

/* Returns the index of the first output without an input, or -1. */
static int first_written(const cts_run *r) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(r->pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index != VYRE_NO_INDEX && b->input_index == VYRE_NO_INDEX)
      return (int)b->output_index;
  }
  return -1;
}

/* Leaves all outputs on the device, in existing and in new buffers. */
static vyre_code to_buffers(cts_run *r, vyre_status *st) {
  bound b;
  vyre_input resources[MAX_BINDINGS];
  vyre_buffer there = {0}, buffers[MAX_BINDINGS] = {{0}};
  size_t count_out = r->desc.output_count;
  bound_begin(r, &b);
  vyre_code result, code = bind_device_buffers(r, &b, false, st);
  int written = first_written(r);
  if (code == VYRE_OK && written >= 0) {
    code = vyre_buffer_create(r->c->device, r->desc.outputs[written].size,
                              &there, st);
  }
  if (code == VYRE_OK) {
    vyre_dispatch_desc config = with(r, NULL, NULL, &result);
    code = vyre_dispatch_to_buffers(r->pipeline, resources,
                                    resources_of(r, b.in, there, resources),
                                    buffers, count_out, &config, st);
    count(r, &result, 1);
    for (size_t i = 0; i < count_out; i++) {
      CTS_CHECK(r->c, (buffers[i].owner != 0) == (code == VYRE_OK));
    }
    CTS_CHECK(r->c, code != VYRE_OK || written < 0 ||
                        buffers[written].id == there.id);
  }
  for (size_t i = 0; i < count_out && code == VYRE_OK; i++) {
    const vyre_output *to = &r->desc.outputs[i];
    code = vyre_buffer_download(r->c->device, buffers[i], 0, to->data, to->size,
                                st);
  }
  for (size_t i = 0; i < count_out; i++) {
    bool is_own = buffers[i].owner && buffers[i].id != there.id;
    for (size_t k = 0; k < MAX_BINDINGS && is_own; k++) {
      is_own = buffers[i].id != b.device_buffers[k].id;
    }
    if (is_own) (void)!vyre_buffer_destroy(r->c->device, buffers[i], NULL);
  }
  if (there.owner) (void)!vyre_buffer_destroy(r->c->device, there, NULL);
  bound_end(r, &b);
  return code;
}

static vyre_code rows_into(cts_run *r, vyre_status *st) {
  bound b[ITEMS];
  vyre_buffer_row rows[ITEMS];
  vyre_input resources[MAX_BINDINGS];
  vyre_output outputs[ITEMS * MAX_BINDINGS], to[ITEMS][MAX_BINDINGS];
  vyre_dispatch_desc items[ITEMS];
  size_t count_out = r->desc.output_count;
  vyre_code code = VYRE_OK, result;
  for (unsigned i = 0; i < ITEMS; i++) bound_begin(r, &b[i]);
  for (unsigned i = 0; i < ITEMS && code == VYRE_OK; i++) {
    bind_slots(r, &b[i]);
    code = bind_device_buffers(r, &b[i], i == 0, st);
    CTS_U64(r->c, resources_of(r, b[i].in, (vyre_buffer){0}, resources),
            VYRE_ROW_RESOURCES);
    memcpy(rows[i].resources, resources, sizeof rows[i].resources);
    memcpy(outputs + i * count_out, b[i].out, count_out * sizeof *outputs);
  }
  if (code == VYRE_OK) {
    vyre_dispatch_desc config = with(r, NULL, NULL, &result);
    vyre_counters before, after;
    vyre_counters_read(r->c->device, &before);
    code = vyre_dispatch_rows_into(r->pipeline, rows, ITEMS, outputs, count_out,
                                   &config, items, st);
    vyre_counters_read(r->c->device, &after);
    /* All rows share one result. If not all ran, the launch counter has the
     * number. */
    r->launched += code == VYRE_OK ? ITEMS : after.launches - before.launches;
  }
  for (unsigned i = 0; i < ITEMS && code == VYRE_OK; i++) {
    CTS_CHECK(r->c, items[i].resources == rows[i].resources);
    outputs_of(r, i, to[i]);
    take_slots(r, &b[i], to[i]);
  }
  if (code == VYRE_OK) same_items(r, ITEMS);
  for (unsigned i = 0; i < ITEMS; i++) bound_end(r, &b[i]);
  return code;
}

/* --- Compilation
 * -------------------------------------------------------------- */

static vyre_code add_variant(cts_run *r, vyre_status *st) {
  vyre_compile_options options = {.workgroup = {16}};
  vyre_pipeline *pipeline;
  vyre_code code = vyre_pipeline_compile(r->c->device, r->program, NULL,
                                         &pipeline, NULL, st);
  if (code != VYRE_OK) return code;
  code = vyre_pipeline_add_variant(pipeline, &options, st);
  if (code == VYRE_OK) code = dispatch_by(r, pipeline, &options, st);
  vyre_pipeline_release(pipeline);
  return code;
}

static vyre_code compile_async(cts_run *r, vyre_status *st) {
  /* Uses other options than the existing pipeline, which the cache would
   * return. */
  static const vyre_compile_options other = {.workgroup = {32, 1, 1}};
  vyre_fence *done;
  vyre_code code =
      vyre_pipeline_compile_async(r->c->device, r->program, &other, &done, st);
  if (code != VYRE_OK) return code;
  code = wait_for(done, st);
  vyre_pipeline *made = vyre_fence_pipeline(done);
  vyre_fence_release(done);
  if (code == VYRE_OK) code = dispatch_by(r, made, NULL, st);
  vyre_pipeline_release(made);
  return code;
}

/* --- Recordings
 * --------------------------------------------------------------- */

/* Adds the dispatches of a replay; recorded dispatches have no result field. */
static vyre_code replay(cts_run *r, vyre_recording *rec, bool has_fence,
                        vyre_status *st) {
  vyre_replay_result result = {0};
  vyre_replay_options options = {.result = &result};
  vyre_fence *fence = NULL;
  vyre_code code =
      vyre_recording_replay(rec, &options, has_fence ? &fence : NULL, st);
  if (code == VYRE_OK && has_fence) code = wait_for(fence, st);
  vyre_fence_release(fence);
  r->launched += result.dispatches;
  return code;
}

static vyre_code record_dispatch(cts_run *r, vyre_recording *rec,
                                 const vyre_slot_range *in,
                                 const vyre_slot_range *out, vyre_status *st) {
  vyre_recorded_dispatch d = {
      .inputs = in,
      .input_count = r->desc.input_count,
      .outputs = out,
      .output_count = r->desc.output_count,
      .grid = {r->desc.grid[0], r->desc.grid[1], r->desc.grid[2]}};
  return vyre_recording_add_dispatch(rec, r->pipeline, &d, st);
}

/* Records a dispatch on fixed slots in host memory. */
static vyre_code recording(cts_run *r, vyre_status *st) {
  vyre_recording *rec;
  vyre_slot_range in[MAX_BINDINGS] = {{0}}, out[MAX_BINDINGS] = {{0}};
  vyre_code code = vyre_recording_create(r->c->device, &rec, st);
  for (size_t i = 0; i < r->desc.input_count && code == VYRE_OK; i++) {
    vyre_slot_binding from = {.data = (void *)(uintptr_t)r->desc.inputs[i].data,
                              .size = r->desc.inputs[i].size,
                              .is_read_only = true};
    code = vyre_recording_add_fixed_slot(rec, &from, &in[i].slot, st);
  }
  for (size_t i = 0; i < r->desc.output_count && code == VYRE_OK; i++) {
    vyre_slot_binding to = {.data = r->desc.outputs[i].data,
                            .size = r->desc.outputs[i].size};
    code = vyre_recording_add_fixed_slot(rec, &to, &out[i].slot, st);
  }
  if (code == VYRE_OK) code = record_dispatch(r, rec, in, out, st);
  if (code == VYRE_OK) code = vyre_recording_seal(rec, st);
  for (int turn = 0; turn < 2 && code == VYRE_OK; turn++) {
    code = replay(r, rec, false, st);
  }
  vyre_recording_release(rec);
  return code;
}

/* Adds a slot for host memory and one for a device buffer. */
static vyre_code add_pair(vyre_recording *rec, const char *name, size_t index,
                          uint64_t size, uint32_t *host, uint32_t *device,
                          vyre_status *st) {
  char text[64];
  (void)snprintf(text, sizeof text, "%s %zu", name, index);
  vyre_code code = vyre_recording_add_slot(rec, text, size, host, st);
  (void)snprintf(text, sizeof text, "%s %zu, there", name, index);
  return code == VYRE_OK ? vyre_recording_add_slot(rec, text, size, device, st)
                         : code;
}

typedef struct staged {
  vyre_recording *rec;
  vyre_slot_range in[MAX_BINDINGS],
      out[MAX_BINDINGS]; /* ranges of device buffers */
  vyre_slot_range from[MAX_BINDINGS], to[MAX_BINDINGS];
  vyre_buffer device_buffers[2 * MAX_BINDINGS];
} staged;

/* Records uploads, a dispatch on device buffers, and downloads. */
static vyre_code stage_record(cts_run *r, staged *s, vyre_status *st) {
  size_t ins = r->desc.input_count, outs = r->desc.output_count;
  vyre_code code = vyre_recording_create(r->c->device, &s->rec, st);
  for (size_t i = 0; i < ins && code == VYRE_OK; i++) {
    code = add_pair(s->rec, "input", i, r->desc.inputs[i].size,
                    &s->from[i].slot, &s->in[i].slot, st);
  }
  for (size_t i = 0; i < outs && code == VYRE_OK; i++) {
    code = add_pair(s->rec, "output", i, r->desc.outputs[i].size,
                    &s->to[i].slot, &s->out[i].slot, st);
  }
  for (size_t i = 0; i < ins && code == VYRE_OK; i++) {
    code = vyre_recording_add_copy(s->rec, s->from[i], s->in[i], st);
  }
  if (code == VYRE_OK) code = record_dispatch(r, s->rec, s->in, s->out, st);
  for (size_t i = 0; i < outs && code == VYRE_OK; i++) {
    code = vyre_recording_add_copy(s->rec, s->out[i], s->to[i], st);
  }
  return code == VYRE_OK ? vyre_recording_seal(s->rec, st) : code;
}

static vyre_code stage_bind(cts_run *r, staged *s, size_t index, bool is_input,
                            vyre_status *st) {
  vyre_buffer *made = &s->device_buffers[index + (is_input ? 0 : MAX_BINDINGS)];
  vyre_slot_binding host = {
      .data = is_input ? (void *)(uintptr_t)r->desc.inputs[index].data
                       : r->desc.outputs[index].data,
      .size =
          is_input ? r->desc.inputs[index].size : r->desc.outputs[index].size};
  uint32_t slot = (is_input ? s->from : s->to)[index].slot;
  uint32_t there = (is_input ? s->in : s->out)[index].slot;
  vyre_code code = VYRE_OK;
  if (!made->owner) {
    code = vyre_buffer_create(r->c->device, host.size, made, st);
  }
  vyre_slot_binding device = {.buffer = *made};
  if (code == VYRE_OK) code = vyre_recording_bind_slot(s->rec, slot, &host, st);
  return code == VYRE_OK ? vyre_recording_bind_slot(s->rec, there, &device, st)
                         : code;
}

/* Replays, binds another buffer to one slot, and replays with a fence. */
static vyre_code recording_staged(cts_run *r, vyre_status *st) {
  staged s = {0};
  vyre_code code = stage_record(r, &s, st);
  for (size_t i = 0; i < r->desc.input_count && code == VYRE_OK; i++) {
    code = stage_bind(r, &s, i, true, st);
  }
  for (size_t i = 0; i < r->desc.output_count && code == VYRE_OK; i++) {
    code = stage_bind(r, &s, i, false, st);
  }
  if (code == VYRE_OK) code = replay(r, s.rec, false, st);
  if (code == VYRE_OK && r->desc.input_count > 0) {
    code = vyre_buffer_destroy(r->c->device, s.device_buffers[0], st);
    s.device_buffers[0] = (vyre_buffer){0, 0};
    if (code == VYRE_OK) code = stage_bind(r, &s, 0, true, st);
  }
  if (code == VYRE_OK) code = replay(r, s.rec, true, st);
  vyre_recording_release(s.rec);
  for (size_t i = 0; i < 2 * (size_t)MAX_BINDINGS; i++) {
    if (s.device_buffers[i].owner) {
      (void)!vyre_buffer_destroy(r->c->device, s.device_buffers[i], NULL);
    }
  }
  return code;
}

/* --- Imported tensors
 * --------------------------------------------------------- */

typedef struct tensor {
  DLManagedTensorVersioned managed;
  int64_t shape;
  void *memory;
  size_t size;
  int deleted;
} tensor;

static void tensor_deleted(DLManagedTensorVersioned *self) {
  ((tensor *)self->manager_ctx)->deleted++;
}

static vyre_code tensor_make(cts_run *r, const vyre_input *from, tensor *out,
                             vyre_status *st) {
  out->size = from->size;
  out->shape = (int64_t)from->size;
  vyre_code code = vyre_host_alloc(r->c->device, from->size, &out->memory, st);
  if (code != VYRE_OK) return code;
  if (from->size > 0) memcpy(out->memory, from->data, from->size);
  out->managed = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .manager_ctx = out,
      .deleter = tensor_deleted,
      .dl_tensor = {.data = out->memory,
                    .device = {.device_type = kDLCPU},
                    .ndim = 1,
                    .dtype = {kDLUInt, 8, 1},
                    .shape = &out->shape}};
  return VYRE_OK;
}

/* Reads an output back: as a tensor if the host can access the memory,
 * otherwise by a download. */
static vyre_code tensor_take(cts_run *r, vyre_buffer from,
                             const vyre_output *to, vyre_status *st) {
  DLManagedTensorVersioned *made;
  int64_t shape = (int64_t)to->size;
  vyre_status own = {0};
  vyre_code code = vyre_dlpack_export(r->c->device, from, VYRE_ELEMENT_U8,
                                      &shape, 1, 0, &made, &own);
  if (code == VYRE_UNSUPPORTED_FEATURE) {
    CTS_CHECK(r->c, !made && own.fix[0]);
    return vyre_buffer_download(r->c->device, from, 0, to->data, to->size, st);
  }
  if (code != VYRE_OK) {
    *st = own;
    return code;
  }
  if (to->size > 0) memcpy(to->data, made->dl_tensor.data, to->size);
  made->deleter(made);
  return VYRE_OK;
}

/* Imports inputs as tensors and exports outputs as tensors. */
static vyre_code dlpack(cts_run *r, vyre_status *st) {
  bound b;
  static tensor tensors[MAX_BINDINGS];
  vyre_buffer kept[MAX_BINDINGS] = {{0}};
  vyre_code code = VYRE_OK, result;
  bound_begin(r, &b);
  memset(tensors, 0, sizeof tensors);
  for (size_t i = 0; i < r->desc.input_count && code == VYRE_OK; i++) {
    /* Empty tensors do not exist, and a device may reject imported memory. */
    if (r->desc.inputs[i].size == 0 || !r->c->caps->borrows_host_memory) {
      continue;
    }
    code = tensor_make(r, &r->desc.inputs[i], &tensors[i], st);
    if (code == VYRE_OK) {
      code = vyre_dlpack_import(r->c->device, &tensors[i].managed, NULL,
                                &b.device_buffers[i], st);
    }
    if (code == VYRE_OK) b.in[i] = vyre_input_buffer(b.device_buffers[i]);
  }
  for (size_t i = 0; i < r->desc.output_count; i++) {
    b.out[i] = vyre_output_new_buffer(&kept[i], r->desc.outputs[i].size);
  }
  if (code == VYRE_OK) {
    vyre_dispatch_desc desc = with(r, b.in, b.out, &result);
    code = vyre_dispatch(r->pipeline, &desc, st);
    count(r, &result, 1);
  }
  for (size_t i = 0; i < r->desc.output_count && code == VYRE_OK; i++) {
    code = tensor_take(r, kept[i], &r->desc.outputs[i], st);
  }
  for (size_t i = 0; i < MAX_BINDINGS; i++) {
    bool was_taken = b.device_buffers[i].owner != 0;
    if (kept[i].owner) (void)!vyre_buffer_destroy(r->c->device, kept[i], NULL);
    if (was_taken) {
      (void)!vyre_buffer_destroy(r->c->device, b.device_buffers[i], NULL);
      b.device_buffers[i] = (vyre_buffer){0, 0};
    }
    /* Imported tensors must be released exactly once; rejected ones still
     * belong to the caller. */
    CTS_U64(r->c, (uint64_t)tensors[i].deleted, was_taken);
    if (tensors[i].memory) {
      vyre_host_free(r->c->device, tensors[i].memory, tensors[i].size);
    }
  }
  bound_end(r, &b);
  return code;
}

/* --- Table of all forms
 * ------------------------------------------------------- */

enum {
  A = 1 << VYRE_FAULT_ALLOCATION,
  C = 1 << VYRE_FAULT_COMPILE,
  S = 1 << VYRE_FAULT_SUBMIT,
  U = 1 << VYRE_FAULT_UPLOAD,
  D = 1 << VYRE_FAULT_DOWNLOAD,
  W = 1 << VYRE_FAULT_WAIT,
  L = 1 << VYRE_FAULT_DEVICE_LOST
};

const cts_form cts_forms[] = {
    {"device_dispatch", device_dispatch, 1, A | C | S | L},
    {"dispatch", dispatch, 1, S | L},
    {"batch", submit_batch, ITEMS, S | L},
    {"fence", fence_owned, 1, A | S | W | L},
    {"fence_borrowed", fence_borrowed, 1, A | S | W | L},
    {"fence_batch", fence_batch, ITEMS, A | S | W | L},
    {"owned", owned, 1, S | L},
    {"borrowed", borrowed, 1, S | L},
    {"borrowed_timed", borrowed_timed, 1, S | L},
    {"borrowed_into", borrowed_into, 1, S | L},
    {"borrowed_batched", borrowed_batched, ITEMS, S | L},
    {"borrowed_batched_into", borrowed_batched_into, ITEMS, S | L},
    {"resident", resident, 1, A | S | U | L},
    {"resident_timed", resident_timed, 1, A | S | U | L},
    {"resident_into", resident_into, 1, A | S | U | L},
    {"to_buffers", to_buffers, 1, A | S | U | D | L},
    {"resident_batched", resident_batched, ITEMS, A | S | U | L},
    {"resident_batched_into", resident_batched_into, ITEMS, A | S | U | L},
    {"rows_into", rows_into, ITEMS, A | S | U | L | CTS_FORM_ROWS},
    {"add_variant", add_variant, 1, A | C | S | L | CTS_FORM_RESIZES},
    {"compile_async", compile_async, 1, A | C | S | W | L | CTS_FORM_RESIZES},
    {"recording", recording, 2, A | S | L},
    {"recording_staged", recording_staged, 2, A | S | U | D | W | L},
    {"dlpack", dlpack, 1, A | S | L},
};

const size_t cts_form_count = sizeof cts_forms / sizeof *cts_forms;
