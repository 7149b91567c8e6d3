/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The end of recording: all that does not depend on what is bound is checked
 * and laid out here, once. */
#include <assert.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/recording/recording.h"

/* --- places against slots ----------------------------------------------------*/

static vyre_code check_range(const vyre_recording *rec,
                             const vyre_slot_range *place, uint64_t need,
                             size_t command, vyre_status *st) {
  const vyre__slot *slot = &rec->slots[place->slot];
  if (slot->size == 0) return VYRE_OK; /* what is bound will tell */
  if (place->offset <= slot->size && need <= slot->size - place->offset) {
    return VYRE_OK;
  }
  char text[VYRE__SLOT_NAME];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", place->offset}, {"size", need},
                   {"slot_bytes", slot->size}, {"command", command}),
      "make the slot larger, or the place smaller",
      "slot '%s': command %zu needs %llu bytes from %llu on, the slot has %llu",
      vyre__slot_name(rec, place->slot, text), command,
      (unsigned long long)need, (unsigned long long)place->offset,
      (unsigned long long)slot->size);
}

/* The place of a binding: its size is the declared one if there is one. */
static vyre_code check_binding(const vyre_recording *rec, const vyre_binding *b,
                               const vyre_slot_range *place, size_t command,
                               vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  uint64_t element = b->element_size > 1 ? b->element_size : 1;
  uint64_t need = b->has_static_byte_len ? b->static_byte_len : place->size;
  if (place->size != 0 && need != place->size) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"expected_bytes", need}, {"received_bytes", place->size},
                     {"command", command}),
        "leave the place's size 0: the kernel declares it",
        "slot '%s': '%.60s' of command %zu has %llu bytes, its place %llu",
        vyre__slot_name(rec, place->slot, text), b->name, command,
        (unsigned long long)need, (unsigned long long)place->size);
  }
  if (need % element != 0 || place->offset % element != 0) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"offset", place->offset}, {"size", need},
                     {"element_bytes", element}, {"command", command}),
        "give it whole elements, from a whole element on",
        "slot '%s': '%.60s' of command %zu has elements of %llu bytes, its "
        "place %llu bytes from %llu on",
        vyre__slot_name(rec, place->slot, text), b->name, command,
        (unsigned long long)element, (unsigned long long)need,
        (unsigned long long)place->offset);
  }
  return check_range(rec, place, need, command, st);
}

static vyre_code check_dispatch(const vyre_recording *rec, vyre__command *c,
                                size_t command, vyre_status *st) {
  const vyre_binding_plan *plan = &c->variant->plan;
  VYRE_TRY(vyre_capture_plan_build(plan, &c->plan, vyre__status_open(st)));
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->input_index != VYRE_NO_INDEX) {
      VYRE_TRY(
          check_binding(rec, b, &c->tables.in[b->input_index], command, st));
    }
    if (b->output_index != VYRE_NO_INDEX) {
      VYRE_TRY(
          check_binding(rec, b, &c->tables.out[b->output_index], command, st));
    }
  }
  return VYRE_OK;
}

static vyre_code check_all(vyre_recording *rec, vyre_status *st) {
  if (rec->open_count > 0) {
    uint32_t loop = rec->open[rec->open_count - 1];
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          NULL, VYRE_NUMBERS({"command", loop}),
                          "call vyre_recording_end_while",
                          "the loop that command %u begins has no end", loop);
  }
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__command *c = &rec->commands[i];
    if (c->kind == VYRE__COMMAND_DISPATCH) {
      VYRE_TRY(check_dispatch(rec, c, i, st));
    } else if (c->kind == VYRE__COMMAND_COPY) {
      VYRE_TRY(check_range(rec, &c->from, c->from.size, i, st));
      VYRE_TRY(check_range(rec, &c->to, c->to.size, i, st));
    } else if (c->kind == VYRE__COMMAND_WHILE) {
      VYRE_TRY(check_range(rec, &c->from, 4, i, st));
    }
  }
  return VYRE_OK;
}

/* --- tables ------------------------------------------------------------------*/

static bool add(size_t *size, size_t count, size_t element) {
  size_t bytes;
  return vyre__mul(count, element, &bytes) && vyre__add(*size, bytes, size);
}

/* Bytes of the tables of all dispatches, from their capture plans alone. */
static bool measure(const vyre_recording *rec, size_t *out) {
  *out = 0;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre_capture_plan *plan = &rec->commands[i].plan;
    if (rec->commands[i].kind != VYRE__COMMAND_DISPATCH) continue;
    if (!add(out, plan->input_device_capacity,
             sizeof(vyre_slot_range) + sizeof(vyre_input)) ||
        !add(out, plan->output_readback_capacity,
             sizeof(vyre_slot_range) + sizeof(vyre_output)) ||
        !add(out, plan->kernel_argument_capacity, sizeof(vyre__argument))) {
      return false;
    }
  }
  return true;
}

static void *cut(unsigned char **at, size_t count, size_t element) {
  unsigned char *table = *at;
  *at += count * element;
  return table;
}

/* What the kernel is given, in the order of the plan's tables. */
static void fill_arguments(const vyre__command *c, const vyre__tables *t) {
  const vyre_binding_plan *plan = &c->variant->plan;
  size_t outputs_only = c->plan.input_device_capacity;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    bool has_in = b->input_index != VYRE_NO_INDEX;
    bool has_out = b->output_index != VYRE_NO_INDEX;
    if (!has_in && !has_out) continue; /* shared */
    const vyre_slot_range *place =
        has_out ? &t->out[b->output_index] : &t->in[b->input_index];
    t->arguments[has_in ? b->input_index : outputs_only++] = (vyre__argument){
        .slot = place->slot,
        .binding = (uint32_t)i,
        .offset = place->offset,
        .size = b->has_static_byte_len ? b->static_byte_len : place->size};
  }
  assert(outputs_only == c->plan.kernel_pointer_capacity);
  t->arguments[outputs_only] = (vyre__argument){.slot = VYRE_NO_SLOT};
}

static void lay_out(vyre__command *c, unsigned char **at) {
  const vyre_capture_plan *plan = &c->plan;
  size_t in = plan->input_device_capacity, out = plan->output_readback_capacity;
  vyre__tables t = {0};
  t.inputs = cut(at, in, sizeof *t.inputs);
  t.outputs = cut(at, out, sizeof *t.outputs);
  t.in = cut(at, in, sizeof *t.in);
  t.out = cut(at, out, sizeof *t.out);
  t.arguments = cut(at, plan->kernel_argument_capacity, sizeof *t.arguments);
  if (in > 0) memcpy(t.in, c->tables.in, in * sizeof *t.in);
  if (out > 0) memcpy(t.out, c->tables.out, out * sizeof *t.out);
  fill_arguments(c, &t);
  c->tables = t;
}

/* --- barriers ----------------------------------------------------------------*/

typedef struct meeting {
  const vyre__command *earlier;
  const vyre_slot_range *place; /* of the later one */
  bool is_written;
} meeting;

static bool is_apart(void *self, const vyre_slot_range *place,
                     bool is_written) {
  const meeting *m = self;
  return !(is_written || m->is_written) ||
         !vyre__slot_ranges_overlap(place, m->place);
}

static bool is_apart_from(void *self, const vyre_slot_range *place,
                          bool is_written) {
  meeting *m = self;
  m->place = place;
  m->is_written = is_written;
  return vyre__command_slot_ranges(m->earlier, is_apart, m);
}

/* A command that touches what one before it writes, or writes what one before it
 * touches, must wait for it. */
static void place_barriers(vyre_recording *rec) {
  size_t first = 0;
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__command *c = &rec->commands[i];
    if (c->kind != VYRE__COMMAND_DISPATCH && c->kind != VYRE__COMMAND_COPY) {
      first = i + 1; /* a barrier, or the end of a loop, which is one as well */
      continue;
    }
    for (size_t k = first; k < i; k++) {
      meeting m = {.earlier = &rec->commands[k]};
      if (vyre__command_slot_ranges(c, is_apart_from, &m)) continue;
      c->needs_barrier = true;
      c->barrier_slot = m.place->slot;
      first = i;
      break;
    }
  }
}

static bool mark_used(void *self, const vyre_slot_range *place,
                      bool is_written) {
  vyre_recording *rec = self;
  rec->slots[place->slot].is_used = true;
  if (is_written) rec->slots[place->slot].is_written = true;
  return true;
}

static void sum_up(vyre_recording *rec) {
  vyre_capture_plan *sums = &rec->sums;
  sums->resident_input_replay_safe = true;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__command *c = &rec->commands[i];
    (void)vyre__command_slot_ranges(c, mark_used, rec);
    if (c->kind != VYRE__COMMAND_DISPATCH) continue;
    sums->input_device_capacity += c->plan.input_device_capacity;
    sums->output_device_capacity += c->plan.output_device_capacity;
    sums->output_readback_capacity += c->plan.output_readback_capacity;
    sums->kernel_pointer_capacity += c->plan.kernel_pointer_capacity;
    sums->kernel_argument_capacity += c->plan.kernel_argument_capacity;
    if (!c->plan.resident_input_replay_safe) {
      sums->resident_input_replay_safe = false;
    }
  }
}

/* --- all of it ---------------------------------------------------------------*/

static vyre_code take_runs(vyre_recording *rec, vyre_status *st) {
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__command *c = &rec->commands[i];
    if (c->kind != VYRE__COMMAND_DISPATCH) continue;
    vyre_code code = vyre__prepared_create(c->variant, &c->prepared, st);
    if (code == VYRE_OK) continue;
    c->prepared = NULL;
    while (i-- > 0) {
      if (rec->commands[i].prepared)
        vyre__prepared_set_outputs(rec->commands[i].prepared);
      rec->commands[i].prepared = NULL;
    }
    return code;
  }
  return VYRE_OK;
}

vyre_code vyre__recording_lay_out(vyre_recording *rec, const char *who,
                                  vyre_status *st) {
  size_t size;
  unsigned char *tables = NULL;
  bool fits = measure(rec, &size);
  if (fits && size > 0) {
    tables = vyre__resize(rec->device->allocator, NULL, 0, size);
  }
  if (!fits || (size > 0 && !tables)) {
    return vyre__no_memory(st, who, "bytes of tables", fits ? size : SIZE_MAX);
  }
  vyre_code code = take_runs(rec, st);
  if (code != VYRE_OK) {
    vyre__resize(rec->device->allocator, tables, size, 0);
    return code;
  }
  unsigned char *at = tables;
  if (size > 0) memset(tables, 0, size);
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__command *c = &rec->commands[i];
    if (c->kind == VYRE__COMMAND_DISPATCH) lay_out(c, &at);
  }
  assert(size == 0 || at == tables + size);
  rec->tables = tables;
  rec->tables_size = size;
  return VYRE_OK;
}

vyre_code vyre_recording_seal(vyre_recording *rec, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_recording_seal";
  if (!rec) return vyre__null_argument(st, who, "recording");
  if (rec->is_sealed) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "replay it: once is enough",
                     "the recording is finished already");
  }
  VYRE_TRY(vyre__device_check(rec->device, st));
  VYRE_TRY(check_all(rec, st));
  VYRE_TRY(vyre__recording_lay_out(rec, who, st));
  vyre_arena_deinit(&rec->building);
  sum_up(rec);
  place_barriers(rec);
  rec->is_sealed = rec->is_dirty = true;
  return VYRE_OK;
}
