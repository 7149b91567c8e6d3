/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Seals a recording. Checks and table layouts that do not depend on the bound
 * memory are done here, once, so that a replay does not repeat them. */
#include <assert.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/recording/range_map.h"
#include "runtime/recording/recording.h"

/* --- slot ranges -------------------------------------------------------- */

static vyre_code check_range(const vyre_recording *rec,
                             const vyre_slot_range *range, uint64_t size,
                             size_t command, vyre_status *st) {
  const vyre__slot *slot = &rec->slots[range->slot];
  if (slot->size == 0) return VYRE_OK; /* checked when memory is bound */
  if (range->offset <= slot->size && size <= slot->size - range->offset) {
    return VYRE_OK;
  }
  char text[VYRE__SLOT_NAME];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", range->offset}, {"size", size},
                   {"slot_bytes", slot->size}, {"command", command}),
      "use a larger slot or a smaller range",
      "slot '%s': command %zu needs %llu bytes at offset %llu, but the slot "
      "has %llu",
      vyre__slot_name(rec, range->slot, text), command,
      (unsigned long long)size, (unsigned long long)range->offset,
      (unsigned long long)slot->size);
}

/* Checks the slot range of a binding against the size that the kernel
 * declares, if it declares one. */
static vyre_code check_binding(const vyre_recording *rec, const vyre_binding *b,
                               const vyre_slot_range *range, size_t command,
                               vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  uint64_t element = b->element_size > 1 ? b->element_size : 1;
  uint64_t size = b->has_static_byte_len ? b->static_byte_len : range->size;
  if (range->size != 0 && size != range->size) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"expected_bytes", size}, {"received_bytes", range->size},
                     {"command", command}),
        "set the size of the range to 0: the kernel declares it",
        "slot '%s': buffer '%.60s' of command %zu has %llu bytes, but its "
        "range has %llu",
        vyre__slot_name(rec, range->slot, text), b->name, command,
        (unsigned long long)size, (unsigned long long)range->size);
  }
  if (size % element != 0 || range->offset % element != 0) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"offset", range->offset}, {"size", size},
                     {"element_bytes", element}, {"command", command}),
        "use a size and an offset that are multiples of the element size",
        "slot '%s': buffer '%.60s' of command %zu has elements of %llu bytes, "
        "but its range has %llu bytes at offset %llu",
        vyre__slot_name(rec, range->slot, text), b->name, command,
        (unsigned long long)element, (unsigned long long)size,
        (unsigned long long)range->offset);
  }
  return check_range(rec, range, size, command, st);
}

static vyre_code check_dispatch(const vyre_recording *rec,
                                vyre__recorded_command *c, size_t command,
                                vyre_status *st) {
  const struct vyre__pipeline_state *state = c->variant->state;
  VYRE_TRY(vyre_capture_plan_build(&c->variant->plan, &c->plan,
                                   vyre__status_open(st)));
  for (size_t i = 0; i < state->resource_count; i++) {
    const vyre__binding_info *info = state->resources[i];
    const vyre_slot_range *in = vyre__command_in(c, info);
    const vyre_slot_range *out = vyre__command_out(c, info);
    if (in) VYRE_TRY(check_binding(rec, info->binding, in, command, st));
    if (out) VYRE_TRY(check_binding(rec, info->binding, out, command, st));
  }
  return VYRE_OK;
}

static vyre_code check_step(const vyre_recording *rec, const vyre__step *step,
                            size_t command, vyre_status *st) {
  for (size_t i = 0; i < step->range_count; i++) {
    const vyre__step_range *r = &step->ranges[i];
    if (r->range.slot == VYRE_NO_SLOT) continue;
    const vyre_binding b = {.name = r->name,
                            .element_size = r->element,
                            .has_static_byte_len = r->bytes > 0,
                            .static_byte_len = r->bytes};
    VYRE_TRY(check_binding(rec, &b, &r->range, command, st));
  }
  return VYRE_OK;
}

static vyre_code check_all(vyre_recording *rec, vyre_status *st) {
  if (rec->open_count > 0) {
    uint32_t loop = rec->open_loops[rec->open_count - 1];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"command", loop}), "call vyre_recording_end_while",
        "the loop that begins at command %u has no end", loop);
  }
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__recorded_command *c = &rec->commands[i];
    if (c->kind == VYRE__RECORDED_DISPATCH) {
      VYRE_TRY(check_dispatch(rec, c, i, st));
    } else if (c->kind == VYRE__RECORDED_COPY) {
      VYRE_TRY(check_range(rec, &c->from, c->from.size, i, st));
      VYRE_TRY(check_range(rec, &c->to, c->to.size, i, st));
    } else if (c->kind == VYRE__RECORDED_WHILE) {
      VYRE_TRY(check_range(rec, &c->from, 4, i, st));
    } else if (c->kind == VYRE__RECORDED_STEP) {
      VYRE_TRY(check_step(rec, c->step, i, st));
    }
  }
  return VYRE_OK;
}

/* --- tables ------------------------------------------------------------- */

static bool add(size_t *size, size_t count, size_t element) {
  size_t bytes;
  return vyre__mul(count, element, &bytes) && vyre__add(*size, bytes, size);
}

/* Computes the size of all tables from the capture plans. Returns false if it
 * does not fit in a size_t. */
static size_t in_capacity(const vyre__recorded_command *c) {
  return c->desc.resource_count > 0 ? c->plan.kernel_pointer_capacity
                                    : c->plan.input_device_capacity;
}

static bool measure(const vyre_recording *rec, size_t *out) {
  *out = 0;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre_capture_plan *plan = &rec->commands[i].plan;
    const vyre__step *step = rec->commands[i].step;
    if (step && !add(out, step->range_count, sizeof(vyre__step_memory)))
      return false;
    if (rec->commands[i].kind != VYRE__RECORDED_DISPATCH) continue;
    if (!add(out, in_capacity(&rec->commands[i]),
             sizeof(vyre_slot_range) + sizeof(vyre_input)) ||
        !add(out, plan->output_readback_capacity,
             sizeof(vyre_slot_range) + sizeof(vyre_output)) ||
        !add(out, plan->kernel_argument_capacity, sizeof(vyre__argument))) {
      return false;
    }
  }
  return true;
}

static void *carve(unsigned char **at, size_t count, size_t element) {
  unsigned char *table = *at;
  *at += count * element;
  return table;
}

/* Fills in the kernel arguments, in the order that vyre__tables describes. */
static void fill_arguments(const vyre__recorded_command *c,
                           const vyre__tables *t) {
  const struct vyre__pipeline_state *state = c->variant->state;
  size_t outputs_only = c->plan.input_device_capacity;
  for (size_t i = 0; i < state->resource_count; i++) {
    const vyre__binding_info *info = state->resources[i];
    const vyre_slot_range none = {.slot = VYRE_NO_SLOT};
    const vyre_slot_range *range = vyre__command_out(c, info);
    if (!range || c->desc.resource_count > 0) {
      const vyre_slot_range *in = vyre__command_in(c, info);
      range = in ? in : range ? range : &none;
    }
    t->arguments[info->input != VYRE_NO_INDEX ? info->input : outputs_only++] =
        (vyre__argument){
            .slot = range->slot,
            .binding = info->index,
            .offset = range->offset,
            .size = info->is_static ? info->static_bytes : range->size};
  }
  assert(outputs_only == c->plan.kernel_pointer_capacity);
  t->arguments[outputs_only] = (vyre__argument){.slot = VYRE_NO_SLOT};
}

static void build_dispatch_tables(vyre__recorded_command *c,
                                  unsigned char **at) {
  const vyre_capture_plan *plan = &c->plan;
  size_t in = in_capacity(c), out = plan->output_readback_capacity;
  vyre__tables t = {0};
  t.inputs = carve(at, in, sizeof *t.inputs);
  t.outputs = carve(at, out, sizeof *t.outputs);
  t.in = carve(at, in, sizeof *t.in);
  t.out = carve(at, out, sizeof *t.out);
  t.arguments = carve(at, plan->kernel_argument_capacity, sizeof *t.arguments);
  if (in > 0) memcpy(t.in, c->tables.in, in * sizeof *t.in);
  if (c->desc.output_count > 0)
    memcpy(t.out, c->tables.out, out * sizeof *t.out);
  c->tables = t;
  fill_arguments(c, &t);
}

/* --- barriers ----------------------------------------------------------- */

/* Trees of the range map: marks are numbers of commands + 1. */
enum { ACCESSED, WRITTEN };

/* Access of the command that place_barriers looks at. */
typedef struct barrier_search {
  const vyre__range_map *map;
  uint32_t first; /* first command since the last barrier */
  uint32_t mark;  /* of the command itself */
  uint32_t slot;  /* slot of the range that needs a barrier */
} barrier_search;

static bool needs_no_barrier(void *self, const vyre_slot_range *range,
                             bool is_written) {
  barrier_search *search = self;
  search->slot = range->slot;
  return vyre__range_map_max(search->map, is_written ? ACCESSED : WRITTEN,
                             range) <= search->first;
}

static bool mark_access(void *self, const vyre_slot_range *range,
                        bool is_written) {
  const barrier_search *search = self;
  vyre__range_map_mark(search->map, ACCESSED, range, search->mark);
  if (is_written)
    vyre__range_map_mark(search->map, WRITTEN, range, search->mark);
  return true;
}

/* Places a barrier before each command that accesses a range written by an
 * earlier command, or writes a range accessed by one. Returns false if memory
 * is exhausted. */
static bool place_barriers(vyre_recording *rec) {
  vyre__range_map map;
  barrier_search search = {.map = &map};
  if (!vyre__range_map_build(rec, &rec->building, &map)) return false;
  for (uint32_t i = 0; i < rec->command_count; i++) {
    vyre__recorded_command *c = &rec->commands[i];
    if (c->kind != VYRE__RECORDED_DISPATCH && c->kind != VYRE__RECORDED_COPY &&
        c->kind != VYRE__RECORDED_STEP) {
      /* an explicit barrier; both ends of a loop act as barriers */
      search.first = i + 1;
      continue;
    }
    if (!vyre__command_slot_ranges(c, needs_no_barrier, &search)) {
      c->needs_barrier = true;
      c->barrier_slot = search.slot;
      search.first = i;
    }
    search.mark = i + 1;
    (void)vyre__command_slot_ranges(c, mark_access, &search);
  }
  return true;
}

static bool mark_used(void *self, const vyre_slot_range *range,
                      bool is_written) {
  vyre_recording *rec = self;
  (void)is_written;
  rec->slots[range->slot].is_used = true;
  return true;
}

/* Marks the slots that a command writes whatever is bound. */
static void mark_written(vyre_recording *rec, const vyre__recorded_command *c) {
  if (c->kind == VYRE__RECORDED_COPY) rec->slots[c->to.slot].is_written = true;
  for (size_t i = 0; c->step && i < c->step->range_count; i++) {
    const vyre__step_range *r = &c->step->ranges[i];
    if (r->is_written && r->range.slot != VYRE_NO_SLOT)
      rec->slots[r->range.slot].is_written = true;
  }
  if (c->kind != VYRE__RECORDED_DISPATCH) return;
  const struct vyre__pipeline_state *state = c->variant->state;
  for (size_t i = 0; i < state->resource_count; i++) {
    const vyre__binding_info *info = state->resources[i];
    const vyre_slot_range *in = vyre__command_in(c, info);
    const vyre_slot_range *out = vyre__command_out(c, info);
    bool is_updated = !info->has_contents ||
                      (info->is_persistent && vyre__command_may_update(info));
    if (in && is_updated) rec->slots[in->slot].is_written = true;
    if (out) rec->slots[out->slot].is_written = true;
  }
}

static void sum_plans(vyre_recording *rec) {
  vyre_capture_plan *totals = &rec->totals;
  totals->resident_input_replay_safe = true;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    (void)vyre__command_slot_ranges(c, mark_used, rec);
    mark_written(rec, c);
    if (c->kind != VYRE__RECORDED_DISPATCH) continue;
    totals->input_device_capacity += c->plan.input_device_capacity;
    totals->output_device_capacity += c->plan.output_device_capacity;
    totals->output_readback_capacity += c->plan.output_readback_capacity;
    totals->kernel_pointer_capacity += c->plan.kernel_pointer_capacity;
    totals->kernel_argument_capacity += c->plan.kernel_argument_capacity;
    if (!c->plan.resident_input_replay_safe) {
      totals->resident_input_replay_safe = false;
    }
  }
}

/* --- sealing ------------------------------------------------------------ */

static vyre_code create_prepared(vyre_recording *rec, vyre_status *st) {
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__recorded_command *c = &rec->commands[i];
    if (c->kind != VYRE__RECORDED_DISPATCH) continue;
    vyre_code code = vyre__prepared_create(c->variant, &c->prepared, st);
    if (code == VYRE_OK) continue;
    c->prepared = NULL;
    while (i-- > 0) {
      if (rec->commands[i].prepared)
        vyre__prepared_return(rec->commands[i].prepared);
      rec->commands[i].prepared = NULL;
    }
    return code;
  }
  return VYRE_OK;
}

vyre_code vyre__recording_build_tables(vyre_recording *rec,
                                       const char *function, vyre_status *st) {
  size_t size;
  unsigned char *tables = NULL;
  bool fits = measure(rec, &size);
  if (fits && size > 0) {
    tables = vyre__resize(rec->device->allocator, NULL, 0, size);
  }
  if (!fits || (size > 0 && !tables)) {
    return vyre__no_memory(st, function, "bytes of tables",
                           fits ? size : SIZE_MAX);
  }
  vyre_code code =
      vyre__slot_spans_create(rec)
          ? create_prepared(rec, st)
          : vyre__no_memory(st, function, "slots", rec->slot_count);
  if (code != VYRE_OK) {
    vyre__slot_spans_free(rec);
    vyre__resize(rec->device->allocator, tables, size, 0);
    return code;
  }
  unsigned char *at = tables;
  if (size > 0) memset(tables, 0, size);
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__recorded_command *c = &rec->commands[i];
    if (c->kind == VYRE__RECORDED_DISPATCH) build_dispatch_tables(c, &at);
    if (c->step)
      c->memory = carve(&at, c->step->range_count, sizeof *c->memory);
  }
  assert(size == 0 || at == tables + size);
  rec->tables = tables;
  rec->tables_size = size;
  return VYRE_OK;
}

vyre_code vyre_recording_seal(vyre_recording *rec, vyre_status *st) {
  vyre__status_begin(st);
  if (!rec) return vyre__null_argument(st, __func__, "recording");
  if (rec->is_sealed) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "remove the second call of vyre_recording_seal",
                     "the recording is already sealed");
  }
  VYRE_TRY(vyre__device_check(rec->device, st));
  VYRE_TRY(check_all(rec, st));
  vyre__arena_mark mark = vyre__arena_here(&rec->building);
  bool is_placed = place_barriers(rec);
  vyre__arena_rewind(&rec->building, mark);
  if (!is_placed || !vyre__slot_uses_build(rec)) {
    vyre__slot_uses_free(rec);
    return vyre__no_memory(st, __func__, "commands", rec->command_count);
  }
  vyre_code code = vyre__recording_build_tables(rec, __func__, st);
  if (code != VYRE_OK) {
    vyre__slot_uses_free(rec);
    return code;
  }
  vyre_arena_deinit(&rec->building);
  sum_plans(rec);
  rec->is_sealed = rec->is_dirty = true;
  return VYRE_OK;
}
