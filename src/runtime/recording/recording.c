/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates recordings and adds slots and commands to them. */
#include "runtime/recording/recording.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/bind.h"
#include "runtime/dispatch/grid.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/memory/device_buffer.h"

/* --- lifetime ----------------------------------------------------------- */

vyre_code vyre_recording_create(vyre_device *device, vyre_recording **out,
                                vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  VYRE_TRY(vyre__device_check(device, st));
  vyre_recording *rec = vyre__alloc_zeroed(device->allocator, sizeof *rec);
  if (!rec) return vyre__no_memory(st, __func__, "recordings", 1);
  atomic_init(&rec->references, 1);
  rec->device = vyre_device_retain(device);
  vyre_arena_init(&rec->building, device->allocator);
  pthread_mutex_init(&rec->lock, NULL);
  rec->first = rec->current = rec;
  *out = rec;
  return VYRE_OK;
}

vyre_recording *vyre_recording_retain(vyre_recording *recording) {
  if (recording) atomic_fetch_add(&recording->references, 1);
  return recording;
}

void vyre__recording_clear(vyre_recording *rec) {
  vyre_allocator allocator = rec->device->allocator;
  vyre__recording_free_lists(rec);
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__recorded_command *c = &rec->commands[i];
    if (c->prepared) {
      vyre__prepared_unbind(c->prepared, false);
      vyre__prepared_return(c->prepared);
    }
    vyre_pipeline_release(c->pipeline);
    if (c->step) vyre__step_release(c->step);
  }
  vyre__resize(allocator, rec->tables, rec->tables_size, 0);
  if (rec->staging)
    vyre__resize(allocator, rec->staging, VYRE__STAGING_BYTES, 0);
  if (rec->first == rec) vyre__slot_uses_free(rec);
  vyre__slot_spans_free(rec);
  vyre__slot_names_free(rec);
  vyre__reserve_free(allocator, (void *)&rec->commands, &rec->command_capacity,
                     sizeof *rec->commands);
  vyre__reserve_free(allocator, (void *)&rec->slots, &rec->slot_capacity,
                     sizeof *rec->slots);
  vyre_arena_deinit(&rec->building);
}

void vyre_recording_release(vyre_recording *rec) {
  if (!rec || atomic_fetch_sub(&rec->references, 1) > 1) return;
  vyre_device *device = rec->device;
  while (rec) { /* the first instance, then the others */
    vyre_recording *next = rec->next_instance;
    vyre__recording_clear(rec);
    if (rec->first == rec) pthread_mutex_destroy(&rec->lock);
    vyre__resize(device->allocator, rec, sizeof *rec, 0);
    rec = next;
  }
  vyre_device_release(device);
}

/* --- slots -------------------------------------------------------------- */

static vyre_code already_sealed(vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "create another recording, with all commands that it needs",
                   "the recording is sealed: nothing can be added to it");
}

const char *vyre__slot_name(const vyre_recording *rec, uint32_t slot,
                            char text[VYRE__SLOT_NAME]) {
  if (slot >= rec->slot_count) return "?";
  if (rec->slots[slot].name[0]) return rec->slots[slot].name;
  (void)snprintf(text, VYRE__SLOT_NAME, "#%u", (unsigned)slot);
  return text;
}

static vyre_code add_slot(vyre_recording *rec, const char *name, uint64_t size,
                          uint32_t *out, vyre_status *st) {
  if (rec->slot_count == VYRE_NO_SLOT ||
      !vyre__reserve(rec->device->allocator, (void *)&rec->slots,
                     &rec->slot_capacity, rec->slot_count + 1,
                     sizeof *rec->slots, false) ||
      !vyre__slot_names_reserve(rec)) {
    return vyre__no_memory(st, "vyre_recording_add_slot", "slots",
                           rec->slot_count + 1);
  }
  vyre__slot *slot = &rec->slots[rec->slot_count];
  *slot = (vyre__slot){.size = size};
  memcpy(slot->name, name, strlen(name) + 1);
  *out = (uint32_t)rec->slot_count++;
  if (name[0]) vyre__slot_names_add(rec, *out);
  return VYRE_OK;
}

vyre_code vyre_recording_add_slot(vyre_recording *rec, const char *name,
                                  uint64_t size, uint32_t *out,
                                  vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = VYRE_NO_SLOT;
  if (!rec) return vyre__null_argument(st, __func__, "recording");
  VYRE_REQUIRE(st, name);
  if (rec->is_sealed) return already_sealed(st);
  size_t length = strlen(name);
  if (length == 0 || length >= VYRE__SLOT_NAME) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          NULL, VYRE_NUMBERS({"length", length}),
                          "use a name of 1 to 63 bytes",
                          "the slot name '%.70s' has %zu bytes", name, length);
  }
  if (vyre_recording_find_slot(rec, name) != VYRE_NO_SLOT) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "use another name, or find the existing slot with "
                     "vyre_recording_find_slot",
                     "the recording already has a slot '%s'", name);
  }
  return add_slot(rec, name, size, out, st);
}

vyre_code vyre_recording_add_fixed_slot(vyre_recording *rec,
                                        const vyre_slot_binding *binding,
                                        uint32_t *out, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = VYRE_NO_SLOT;
  if (!rec) return vyre__null_argument(st, __func__, "recording");
  VYRE_REQUIRE(st, binding);
  VYRE_CHECK_RESERVED(st, __func__, binding);
  if (rec->is_sealed) return already_sealed(st);
  uint32_t slot;
  vyre__device_buffer *held = NULL;
  VYRE_TRY(add_slot(rec, "", 0, &slot, st));
  vyre_code code = vyre__slot_resolve(rec, slot, binding, &held, st);
  if (held) vyre__device_buffer_release(rec->device, held);
  if (code != VYRE_OK) {
    rec->slot_count--;
    return code;
  }
  *out = slot;
  return VYRE_OK;
}

/* --- commands ----------------------------------------------------------- */

bool vyre__command_slot_ranges(const vyre__recorded_command *c,
                               vyre__slot_range_visitor visit, void *self) {
  switch (c->kind) {
    case VYRE__RECORDED_DISPATCH:
      for (size_t i = 0; i < c->variant->state->resource_count; i++) {
        const vyre__binding_info *info = c->variant->state->resources[i];
        const vyre_slot_range *in = vyre__command_in(c, info);
        if (in && !visit(self, in, vyre__command_may_update(info)))
          return false;
      }
      for (size_t i = 0; i < c->desc.output_count; i++) {
        if (c->tables.out[i].slot == VYRE_NO_SLOT) continue;
        if (!visit(self, &c->tables.out[i], true)) return false;
      }
      return true;
    case VYRE__RECORDED_COPY:
      return visit(self, &c->from, false) && visit(self, &c->to, true);
    case VYRE__RECORDED_WHILE:
      return visit(self, &c->from, false);
    case VYRE__RECORDED_STEP:
      for (size_t i = 0; i < c->step->range_count; i++) {
        const vyre__step_range *r = &c->step->ranges[i];
        if (r->range.slot == VYRE_NO_SLOT) continue;
        if (!visit(self, &r->range, r->is_written || r->may_update))
          return false;
      }
      return true;
    default:
      return true;
  }
}

vyre_code vyre__slot_range_check(const vyre_recording *rec,
                                 const vyre_slot_range *range,
                                 vyre_status *st) {
  VYRE_TRY(vyre__slot_check(rec, range->slot, st));
  if (range->size <= UINT64_MAX - range->offset) return VYRE_OK;
  char text[VYRE__SLOT_NAME];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", range->offset}, {"size", range->size}),
      "keep the range inside the slot",
      "slot '%s': a range of %llu bytes at offset %llu ends beyond 2^64",
      vyre__slot_name(rec, range->slot, text), (unsigned long long)range->size,
      (unsigned long long)range->offset);
}

vyre_code vyre__recording_next_command(vyre_recording *rec,
                                       const char *function,
                                       vyre__recorded_command **out,
                                       vyre_status *st) {
  if (!rec) return vyre__null_argument(st, function, "recording");
  if (rec->is_sealed) return already_sealed(st);
  if (rec->command_count >= UINT32_MAX - 1 ||
      !vyre__reserve(rec->device->allocator, (void *)&rec->commands,
                     &rec->command_capacity, rec->command_count + 1,
                     sizeof *rec->commands, false)) {
    return vyre__no_memory(st, function, "commands", rec->command_count + 1);
  }
  *out = &rec->commands[rec->command_count];
  **out = (vyre__recorded_command){.barrier_slot = VYRE_NO_SLOT};
  return VYRE_OK;
}

static vyre_code wrong_range_count(const vyre_pipeline *pipeline,
                                   const char *bindings, size_t expected,
                                   size_t received, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"expected_ranges", expected},
                   {"received_ranges", received}),
      "pass one slot range for each, in order of their binding numbers",
      "kernel '%.60s' has %zu %s, but %zu slot ranges were given",
      vyre_program_name(pipeline->program), expected, bindings, received);
}

static vyre_code check_dispatch(const vyre_recording *rec,
                                const vyre_pipeline *pipeline,
                                const vyre_recorded_dispatch *d,
                                vyre_status *st) {
  static const char function[] = "vyre_recording_add_dispatch";
  const vyre_binding_plan *plan = &pipeline->plan;
  if (pipeline->device != rec->device) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE, NULL,
        VYRE_NUMBERS({"pipeline_device", pipeline->device->state->id},
                     {"device", rec->device->state->id}),
        "compile the program for the recording's device",
        "pipeline '%s' belongs to device %llu, the recording to device %llu",
        pipeline->id, (unsigned long long)pipeline->device->state->id,
        (unsigned long long)rec->device->state->id);
  }
  bool has_resources = d->resources || d->resource_count > 0;
  size_t resources = pipeline->state->resource_count;
  if (has_resources && d->resource_count != resources) {
    return wrong_range_count(pipeline, "resources", resources,
                             d->resource_count, st);
  }
  if (d->input_count != (has_resources ? 0 : plan->input_count)) {
    return wrong_range_count(pipeline, "inputs",
                             has_resources ? 0 : plan->input_count,
                             d->input_count, st);
  }
  if (d->output_count != plan->output_count &&
      (d->output_count > 0 || !has_resources)) {
    return wrong_range_count(pipeline, "outputs", plan->output_count,
                             d->output_count, st);
  }
  if (!has_resources && pipeline->state->persistent_count > 0) {
    return wrong_range_count(pipeline, "resources, some of them persistent",
                             resources, 0, st);
  }
  if (!d->resources && has_resources) {
    return vyre__null_argument(st, function, "desc->resources");
  }
  if (!d->inputs && d->input_count > 0) {
    return vyre__null_argument(st, function, "desc->inputs");
  }
  if (!d->outputs && d->output_count > 0) {
    return vyre__null_argument(st, function, "desc->outputs");
  }
  for (size_t i = 0; i < d->input_count; i++) {
    VYRE_TRY(vyre__slot_range_check(rec, &d->inputs[i], st));
  }
  for (size_t i = 0; i < d->resource_count; i++) {
    bool may_be_empty = !pipeline->state->resources[i]->has_contents;
    if (may_be_empty && d->resources[i].slot == VYRE_NO_SLOT) continue;
    VYRE_TRY(vyre__slot_range_check(rec, &d->resources[i], st));
  }
  for (size_t i = 0; i < d->output_count; i++) {
    if (has_resources && d->outputs[i].slot == VYRE_NO_SLOT) continue;
    VYRE_TRY(vyre__slot_range_check(rec, &d->outputs[i], st));
  }
  return d->has_repeat_count && d->repeat_count == 0
             ? vyre__zero_repeat_count(rec->device, st)
             : VYRE_OK;
}

/* Copies slot ranges to the arena that the seal frees. Returns NULL without
 * memory. */
static vyre_slot_range *copy_ranges(vyre_recording *rec,
                                    const vyre_slot_range *ranges,
                                    size_t count) {
  vyre_slot_range *copy =
      vyre__arena_array(&rec->building, count, sizeof *copy);
  if (copy && count > 0) memcpy(copy, ranges, count * sizeof *copy);
  return copy;
}

vyre_code vyre_recording_add_dispatch(vyre_recording *rec,
                                      vyre_pipeline *pipeline,
                                      const vyre_recorded_dispatch *d,
                                      vyre_status *st) {
  vyre__status_begin(st);
  vyre__recorded_command *c;
  VYRE_REQUIRE(st, pipeline);
  if (!d) return vyre__null_argument(st, __func__, "desc");
  VYRE_CHECK_RESERVED(st, __func__, d);
  VYRE_TRY(vyre__recording_next_command(rec, __func__, &c, st));
  VYRE_TRY(check_dispatch(rec, pipeline, d, st));
  c->kind = VYRE__RECORDED_DISPATCH;
  c->desc = (vyre_dispatch_desc){.input_count = d->input_count,
                                 .output_count = d->output_count,
                                 .resource_count = d->resource_count,
                                 .grid = {d->grid[0], d->grid[1], d->grid[2]},
                                 .variant = d->variant,
                                 .is_borrowed = true,
                                 .require_zero_copy = d->require_zero_copy,
                                 .has_repeat_count = d->has_repeat_count,
                                 .repeat_count = d->repeat_count,
                                 .max_loop_iterations = d->max_loop_iterations,
                                 .timeout_ns = d->timeout_ns,
                                 .print = d->print};
  VYRE_TRY(vyre__pipeline_variant(pipeline, &c->desc, &c->variant, st));
  VYRE_TRY(vyre__grid_check_given(c->variant, d->grid, st));
  c->desc.variant = NULL; /* the pointer is only valid during this call */
  const char *label =
      d->label ? d->label : vyre_program_name(pipeline->program);
  (void)snprintf(c->label, sizeof c->label, "%s", label);
  vyre__arena_mark mark = vyre__arena_here(&rec->building);
  c->tables.in = d->resource_count > 0
                     ? copy_ranges(rec, d->resources, d->resource_count)
                     : copy_ranges(rec, d->inputs, d->input_count);
  c->tables.out = copy_ranges(rec, d->outputs, d->output_count);
  if (!c->tables.in || !c->tables.out) {
    vyre__arena_rewind(&rec->building, mark);
    return vyre__no_memory(
        st, __func__, "slot ranges",
        d->input_count + d->resource_count + d->output_count);
  }
  c->pipeline = vyre_pipeline_retain(pipeline);
  rec->command_count++;
  return VYRE_OK;
}

vyre_code vyre_recording_add_copy(vyre_recording *rec, vyre_slot_range from,
                                  vyre_slot_range to, vyre_status *st) {
  vyre__status_begin(st);
  vyre__recorded_command *c;
  VYRE_TRY(vyre__recording_next_command(rec, __func__, &c, st));
  VYRE_TRY(vyre__slot_range_check(rec, &from, st));
  VYRE_TRY(vyre__slot_range_check(rec, &to, st));
  if (from.size != 0 && to.size != 0 && from.size != to.size) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"from_bytes", from.size}, {"to_bytes", to.size}),
        "use the same size for both ranges, or 0 for one of them",
        "a copy from %llu bytes to %llu bytes", (unsigned long long)from.size,
        (unsigned long long)to.size);
  }
  if (from.size == 0) from.size = to.size;
  to.size = from.size;
  if (vyre__slot_ranges_overlap(&from, &to)) {
    char text[VYRE__SLOT_NAME];
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                     "use source and target ranges that do not overlap",
                     "source and target of a copy within slot '%s' overlap",
                     vyre__slot_name(rec, from.slot, text));
  }
  c->kind = VYRE__RECORDED_COPY;
  c->from = from;
  c->to = to;
  rec->command_count++;
  return VYRE_OK;
}

vyre_code vyre_recording_add_barrier(vyre_recording *rec, vyre_status *st) {
  vyre__status_begin(st);
  vyre__recorded_command *c;
  VYRE_TRY(vyre__recording_next_command(rec, __func__, &c, st));
  c->kind = VYRE__RECORDED_BARRIER;
  rec->command_count++;
  return VYRE_OK;
}

vyre_code vyre_recording_begin_while(vyre_recording *rec, vyre_slot_range flag,
                                     uint64_t max_iterations,
                                     uint32_t check_interval, vyre_status *st) {
  vyre__status_begin(st);
  vyre__recorded_command *c;
  VYRE_TRY(vyre__recording_next_command(rec, __func__, &c, st));
  VYRE_TRY(vyre__slot_range_check(rec, &flag, st));
  if (max_iterations == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_ZERO_REPEAT_COUNT,
                     "set max_iterations to 1 or more",
                     "a loop has max_iterations 0");
  }
  if (rec->open_count == VYRE_RECORDING_DEPTH) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          NULL,
                          VYRE_NUMBERS({"depth", rec->open_count + 1},
                                       {"max_depth", VYRE_RECORDING_DEPTH}),
                          "move the innermost loop into a kernel",
                          "%u nested loops; at most %d are supported",
                          rec->open_count + 1, VYRE_RECORDING_DEPTH);
  }
  char text[VYRE__SLOT_NAME];
  if (flag.offset % 4 != 0 || (flag.size != 0 && flag.size != 4)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"offset", flag.offset}, {"size", flag.size}),
        "use a flag of 4 bytes, at an offset that is a multiple of 4",
        "slot '%s': the loop flag has %llu bytes at offset %llu",
        vyre__slot_name(rec, flag.slot, text), (unsigned long long)flag.size,
        (unsigned long long)flag.offset);
  }
  c->kind = VYRE__RECORDED_WHILE;
  c->from = flag;
  c->from.size = 4;
  c->max_iterations = max_iterations;
  c->check_interval = check_interval > 0 ? check_interval : 1;
  rec->open_loops[rec->open_count++] = (uint32_t)rec->command_count++;
  return VYRE_OK;
}

vyre_code vyre_recording_end_while(vyre_recording *rec, vyre_status *st) {
  vyre__status_begin(st);
  vyre__recorded_command *c;
  VYRE_TRY(vyre__recording_next_command(rec, __func__, &c, st));
  if (rec->open_count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "call vyre_recording_begin_while first",
                     "vyre_recording_end_while without an open loop");
  }
  uint32_t begin = rec->open_loops[--rec->open_count];
  c->kind = VYRE__RECORDED_END;
  c->match = begin;
  rec->commands[begin].match = (uint32_t)rec->command_count;
  for (size_t i = begin; i < rec->command_count; i++) {
    const vyre__recorded_kind kind = rec->commands[i].kind;
    if (kind == VYRE__RECORDED_DISPATCH || kind == VYRE__RECORDED_STEP) {
      rec->commands[begin].body_dispatches++;
    }
  }
  rec->command_count++;
  return VYRE_OK;
}

void vyre_recording_capacities(const vyre_recording *rec,
                               vyre_capture_plan *out) {
  if (!out) return;
  *out = rec ? rec->totals : (vyre_capture_plan){0};
}
