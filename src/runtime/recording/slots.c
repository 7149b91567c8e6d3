/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Binds memory to slots, acquires the bound buffers, and prepares dispatches
 * and copies for them. */
#include <assert.h>
#include <string.h>

#include "base/attributes.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/launch.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/recording/range_map.h"
#include "runtime/recording/recording.h"

/* --- binding ------------------------------------------------------------ */

static bool has_device_buffer(const vyre_slot_binding *binding) {
  return binding->buffer.owner != 0 || binding->buffer.id != 0;
}

static vyre_code buffer_freed(const vyre_recording *rec, uint32_t slot,
                              vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre_buffer handle = rec->slots[slot].binding.buffer;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"slot", slot}, {"device_buffer", handle.id}),
      "bind another buffer with vyre_recording_bind_slot",
      "slot '%s': device buffer %llx was freed",
      vyre__slot_name(rec, slot, text), (unsigned long long)handle.id);
}

static vyre_code bad_handle(const vyre_recording *rec, uint32_t slot,
                            vyre_buffer handle, vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  bool is_foreign = handle.owner != 0 && handle.owner != rec->device->state->id;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT,
      is_foreign ? VYRE_KIND_FOREIGN_HANDLE : VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"slot", slot}, {"owner", handle.owner},
                   {"device", rec->device->state->id}),
      "bind a buffer of the recording's device that has not been freed",
      "slot '%s': device buffer %llx of device %llu does not exist on device "
      "%llu ('%s')",
      vyre__slot_name(rec, slot, text), (unsigned long long)handle.id,
      (unsigned long long)handle.owner,
      (unsigned long long)rec->device->state->id,
      vyre_device_name(rec->device));
}

/* Resolves a binding to a device buffer. *held receives the acquired buffer. */
static vyre_code resolve_device_buffer(vyre_recording *rec, uint32_t slot,
                                       const vyre_slot_binding *binding,
                                       vyre__slot *resolved,
                                       vyre__device_buffer **held,
                                       vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre__device_buffer *entry;
  if (vyre__device_buffer_acquire(rec->device, binding->buffer, &entry, NULL) !=
      VYRE_OK) {
    return bad_handle(rec, slot, binding->buffer, st);
  }
  *held = entry;
  vyre__buffer *buffer = entry->buffer;
  uint64_t offset = binding->offset, size = binding->size,
           buffer_bytes = buffer->size;
  resolved->bytes = size;
  resolved->buffer = entry;
  if (offset <= buffer_bytes && size <= buffer_bytes - offset) {
    if (size == 0) resolved->bytes = buffer_bytes - offset;
    resolved->memory = (vyre__memory){
        buffer->host ? buffer->host + offset : NULL, buffer, offset};
    return VYRE_OK;
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"slot", slot}, {"offset", offset}, {"size", size},
                   {"buffer_bytes", buffer_bytes}),
      "keep the range inside the buffer",
      "slot '%s': %llu bytes at offset %llu, in a device buffer of %llu bytes",
      vyre__slot_name(rec, slot, text), (unsigned long long)size,
      (unsigned long long)offset, (unsigned long long)buffer_bytes);
}

vyre_code vyre__slot_resolve(vyre_recording *rec, uint32_t slot,
                             const vyre_slot_binding *binding,
                             vyre__device_buffer **held, vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre__slot resolved = rec->slots[slot];
  resolved.is_bound = true;
  resolved.binding = *binding;
  resolved.memory = (vyre__memory){0};
  resolved.buffer = NULL;
  int count = (binding->data != NULL) + (binding->host_buffer != NULL) +
              has_device_buffer(binding);
  if (count != 1) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"slot", slot}, {"size", binding->size}),
        "set one of data, buffer and host_buffer; for no bytes, set size to 0 "
        "and data to any address that is not NULL",
        "the binding of slot '%s' sets %d of data, buffer and host_buffer; "
        "expected 1",
        vyre__slot_name(rec, slot, text), count);
  }
  if (has_device_buffer(binding)) {
    VYRE_TRY(resolve_device_buffer(rec, slot, binding, &resolved, held, st));
  } else if (binding->host_buffer) {
    resolved.memory.host = binding->host_buffer->data;
    resolved.bytes = binding->host_buffer->size;
  } else {
    resolved.memory.host = binding->data;
    resolved.bytes = binding->size;
  }
  if (resolved.size != 0 && resolved.bytes != resolved.size) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"slot", slot}, {"expected_bytes", resolved.size},
                     {"received_bytes", resolved.bytes}),
        "bind exactly as many bytes as the slot declares",
        "slot '%s' is declared with %llu bytes, but %llu bytes were bound",
        vyre__slot_name(rec, slot, text), (unsigned long long)resolved.size,
        (unsigned long long)resolved.bytes);
  }
  rec->slots[slot] = resolved;
  return VYRE_OK;
}

void vyre__recording_invalidate(vyre_recording *rec, uint32_t slot) {
  const vyre__slot_uses *uses = &rec->first->slot_uses;
  if (rec->is_sealed) { /* before, no command is ready */
    uint32_t at = slot > 0 ? uses->ends[slot - 1] : 0;
    for (; at < uses->ends[slot]; at++)
      rec->commands[uses->commands[at]].is_ready = false;
  }
  rec->is_dirty = true;
  rec->is_skip_checked = false;
}

bool vyre__slot_binding_equal(const vyre_slot_binding *a,
                              const vyre_slot_binding *b) {
  return a->data == b->data && a->size == b->size &&
         a->host_buffer == b->host_buffer &&
         a->buffer.owner == b->buffer.owner && a->buffer.id == b->buffer.id &&
         a->offset == b->offset && a->is_read_only == b->is_read_only;
}

/* Checks that the slot is not fixed. A fixed slot can never be bound again,
 * even to the same memory. */
static vyre_code check_rebindable(const vyre_recording *rec, uint32_t slot,
                                  vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  if (rec->slots[slot].name[0]) return VYRE_OK;
  return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                        NULL, VYRE_NUMBERS({"slot", slot}),
                        "add the slot with vyre_recording_add_slot instead of "
                        "vyre_recording_add_fixed_slot",
                        "slot '%s' is fixed and cannot be bound again",
                        vyre__slot_name(rec, slot, text));
}

/* @p is_other: the slot had another binding so far, maybe in another
 * instance. */
static vyre_code rebind(vyre_recording *rec, uint32_t slot,
                        const vyre_slot_binding *binding, bool is_other,
                        vyre__device_buffer **held, vyre_status *st) {
  vyre__slot *target = &rec->slots[slot];
  if (!binding) {
    target->is_bound = false;
    target->binding = (vyre_slot_binding){0};
    vyre__recording_invalidate(rec, slot);
    return VYRE_OK;
  }
  /* A host buffer may have moved: the same one may be other memory now. */
  bool was_bound = target->is_bound && !binding->host_buffer;
  vyre_slot_binding before = target->binding;
  VYRE_TRY(vyre__slot_resolve(rec, slot, binding, held, st));
  bool is_new =
      !was_bound || !vyre__slot_binding_equal(&before, &target->binding);
  if (is_new) vyre__recording_invalidate(rec, slot);
  if (is_new || is_other) target->version = ++rec->first->version_count;
  return VYRE_OK;
}

/* Binds a slot of the current instance, under the lock. Pending replays keep
 * the memory that they started with. */
static vyre_code bind_current(vyre_recording *first, uint32_t slot,
                              const vyre_slot_binding *binding,
                              vyre__device_buffer **held, vyre_status *st) {
  VYRE_TRY(check_rebindable(first, slot, st));
  bool is_switched = first->current->users > 0;
  if (is_switched) {
    const vyre__slot *target = &first->current->slots[slot];
    if (binding && target->is_bound && !binding->host_buffer &&
        vyre__slot_binding_equal(binding, &target->binding)) {
      /* The binding stays valid unless its buffer was freed. */
      bool is_freed =
          has_device_buffer(binding) &&
          vyre__device_buffer_acquire(first->device, binding->buffer, held,
                                      NULL) != VYRE_OK;
      return is_freed ? bad_handle(first, slot, binding->buffer, st) : VYRE_OK;
    }
    VYRE_TRY(vyre__recording_switch_instance(first, slot, binding, st));
  }
  return rebind(first->current, slot, binding, is_switched, held, st);
}

vyre_code vyre__slot_check(const vyre_recording *rec, uint32_t slot,
                           vyre_status *st) {
  if (slot < rec->slot_count) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
      VYRE_NUMBERS({"slot", slot}, {"slots", rec->slot_count}),
      "use a slot number that vyre_recording_add_slot returned",
      "slot %u does not exist; the recording has %zu slot%s", slot,
      rec->slot_count, rec->slot_count == 1 ? "" : "s");
}

vyre_code vyre_recording_bind_slot(vyre_recording *rec, uint32_t slot,
                                   const vyre_slot_binding *binding,
                                   vyre_status *st) {
  vyre__status_begin(st);
  if (!rec) return vyre__null_argument(st, __func__, "recording");
  if (binding) VYRE_CHECK_RESERVED(st, __func__, binding);
  VYRE_TRY(vyre__slot_check(rec, slot, st));
  vyre__device_buffer *held = NULL;
  pthread_mutex_lock(&rec->lock);
  vyre_recording *before = rec->current;
  vyre_code code = bind_current(rec, slot, binding, &held, st);
  if (code != VYRE_OK) rec->current = before;
  pthread_mutex_unlock(&rec->lock);
  if (held) vyre__device_buffer_release(rec->device, held);
  return code;
}

/* --- acquiring buffers -------------------------------------------------- */

static vyre_code host_buffer_moved(const vyre_recording *rec, uint32_t slot,
                                   vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  const vyre__slot *target = &rec->slots[slot];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"slot", slot}, {"bound_bytes", target->bytes},
                   {"bytes", target->binding.host_buffer->size}),
      "bind the host buffer again with vyre_recording_bind_slot",
      "slot '%s': its host buffer moved or was resized after it was bound: it "
      "had %llu bytes and has %zu bytes now",
      vyre__slot_name(rec, slot, text), (unsigned long long)target->bytes,
      target->binding.host_buffer->size);
}

static vyre_code acquire_slot(vyre_recording *rec, uint32_t i,
                              vyre_status *st) {
  vyre__slot *slot = &rec->slots[i];
  if (!slot->is_bound) {
    char text[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNBOUND_SLOT,
                          NULL, VYRE_NUMBERS({"slot", i}),
                          "bind memory to it with vyre_recording_bind_slot",
                          "slot '%s' is not bound",
                          vyre__slot_name(rec, i, text));
  }
  if (slot->buffer) {
    vyre__device_buffer *found;
    return vyre__device_buffer_acquire(rec->device, slot->binding.buffer,
                                       &found, NULL) == VYRE_OK
               ? VYRE_OK
               : buffer_freed(rec, i, st);
  }
  const vyre_host_buffer *host_buffer = slot->binding.host_buffer;
  bool is_same_memory =
      !host_buffer || (host_buffer->data == slot->memory.host &&
                       host_buffer->size == slot->bytes);
  return is_same_memory ? VYRE_OK : host_buffer_moved(rec, i, st);
}

vyre_code vyre__recording_acquire_buffers(vyre_recording *rec, size_t *held,
                                          vyre_status *st) {
  for (*held = 0; *held < rec->slot_count; ++*held) {
    if (!rec->slots[*held].is_used) continue;
    VYRE_TRY(acquire_slot(rec, (uint32_t)*held, st));
  }
  return VYRE_OK;
}

void vyre__recording_release_buffers(vyre_recording *rec, size_t held) {
  for (size_t i = 0; i < held; i++) {
    const vyre__slot *slot = &rec->slots[i];
    if (slot->is_used && slot->buffer) {
      vyre__device_buffer_release(rec->device, slot->buffer);
    }
  }
}

/* --- preparing commands ------------------------------------------------- */

bool vyre__slots_conflict(const vyre__slot *a, const vyre__slot *b) {
  bool is_written = vyre__slot_is_written(a) || vyre__slot_is_written(b);
  if (!is_written || !a->is_used || !b->is_used) return false;
  if (a->bytes == 0 || b->bytes == 0) return false;
  uint64_t first, second;
  if (a->memory.host && b->memory.host) {
    first = (uintptr_t)a->memory.host;
    second = (uintptr_t)b->memory.host;
  } else {
    if (!a->memory.buffer || a->memory.buffer != b->memory.buffer) return false;
    first = a->memory.offset;
    second = b->memory.offset;
  }
  return first < second + b->bytes && second < first + a->bytes;
}

/* Finds the slots that dispatches update in place: the input of an input_output
 * is a device buffer, and its output is host memory that receives a copy. */
static void mark_step(const vyre_recording *rec, const vyre__step *step) {
  for (size_t i = 0; i < step->range_count; i++) {
    const vyre__step_range *r = &step->ranges[i];
    if (!r->may_update || r->range.slot == VYRE_NO_SLOT) continue;
    const uint32_t out = r->output == VYRE_NO_SLOT
                             ? VYRE_NO_SLOT
                             : step->ranges[r->output].range.slot;
    vyre__slot *in = &rec->slots[r->range.slot];
    const bool is_elsewhere = out != VYRE_NO_SLOT && rec->slots[out].buffer;
    if (in->buffer && !is_elsewhere) in->is_updated = true;
  }
}

static void mark_updated(vyre_recording *rec) {
  for (size_t i = 0; i < rec->slot_count; i++) rec->slots[i].is_updated = false;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    if (c->step) mark_step(rec, c->step);
    if (c->kind != VYRE__RECORDED_DISPATCH) continue;
    for (size_t k = 0; k < c->variant->state->resource_count; k++) {
      const vyre__binding_info *info = c->variant->state->resources[k];
      const vyre_slot_range *in = vyre__command_in(c, info);
      const vyre_slot_range *out = vyre__command_out(c, info);
      if (!in || !vyre__command_may_update(info)) continue;
      bool is_elsewhere = out && rec->slots[out->slot].buffer;
      if (rec->slots[in->slot].buffer && !is_elsewhere)
        rec->slots[in->slot].is_updated = true;
    }
  }
}

/* Names the first two slots that share bytes, one of them written. */
VYRE__RARE
static vyre_code slots_overlap(const vyre_recording *rec, vyre_status *st) {
  char text[VYRE__SLOT_NAME], other[VYRE__SLOT_NAME];
  uint32_t i = 1, k = 0;
  while (!vyre__slots_conflict(&rec->slots[i], &rec->slots[k])) {
    if (++k < i) continue;
    i++;
    k = 0;
    assert(i < rec->slot_count);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"slot", i}, {"other_slot", k}),
      "bind separate memory to the slot that is written, or use one slot "
      "for both",
      "slots '%s' and '%s' overlap, and a command writes one of them",
      vyre__slot_name(rec, i, text), vyre__slot_name(rec, k, other));
}

/* Checks the bound memory of all slots. Barriers were placed by slot, so that
 * two slots must not share bytes that a command writes. */
static vyre_code check_slots(const vyre_recording *rec, vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  for (uint32_t i = 0; i < rec->slot_count; i++) {
    const vyre__slot *a = &rec->slots[i];
    if (!a->is_used) continue;
    if (vyre__slot_is_written(a) && a->memory.buffer &&
        a->memory.buffer->is_read_only) {
      return vyre__device_buffer_read_only("slot",
                                           vyre__slot_name(rec, i, text), st);
    }
    if (vyre__slot_is_written(a) && a->binding.is_read_only) {
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY, NULL,
          VYRE_NUMBERS({"slot", i}),
          "bind writable memory, with is_read_only false",
          "slot '%s' is written by a command, but was bound as read-only",
          vyre__slot_name(rec, i, text));
    }
  }
  return vyre__slot_spans_overlap(rec) ? slots_overlap(rec, st) : VYRE_OK;
}

static vyre_code range_too_large(const vyre_recording *rec,
                                 const vyre_slot_range *range, uint64_t size,
                                 uint64_t element, size_t command,
                                 vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  const vyre__slot *slot = &rec->slots[range->slot];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"slot", range->slot}, {"size", size},
                   {"slot_bytes", slot->bytes}, {"command", command}),
      "bind enough bytes for the command, in a multiple of the element size",
      "slot '%s': command %zu needs %llu bytes at offset %llu, in elements of "
      "%llu bytes; %llu bytes are bound",
      vyre__slot_name(rec, range->slot, text), command,
      (unsigned long long)size, (unsigned long long)range->offset,
      (unsigned long long)element, (unsigned long long)slot->bytes);
}

vyre_code vyre__slot_range_measure(const vyre_recording *rec,
                                   const vyre_slot_range *range,
                                   uint64_t declared, uint64_t element,
                                   size_t command, uint64_t *out,
                                   vyre_status *st) {
  const vyre__slot *slot = &rec->slots[range->slot];
  uint64_t size = declared ? declared : range->size;
  bool fits =
      range->offset <= slot->bytes && size <= slot->bytes - range->offset;
  if (fits && size == 0) size = slot->bytes - range->offset;
  *out = size;
  return fits && size % element == 0
             ? VYRE_OK
             : range_too_large(rec, range, size, element, command, st);
}

vyre__memory vyre__slot_range_memory(const vyre_recording *rec,
                                     const vyre_slot_range *range) {
  vyre__memory memory = rec->slots[range->slot].memory;
  if (memory.host) memory.host += range->offset;
  memory.offset += range->offset;
  return memory;
}

/* Adds the command to a status. */
static vyre_code name_command(size_t command, vyre_code code, vyre_status *st) {
  vyre__status_where(st, "command", command, "command %zu", command);
  return code;
}

void vyre__prepared_unbind(vyre__prepared *prepared, bool is_held) {
  if (is_held) vyre__prepared_release(prepared);
  size_t count = prepared->pipeline->plan.binding_count;
  for (size_t i = 0; i < count; i++)
    prepared->bound[i] = (vyre__bound_buffer){0};
}

/* Returns the offset of a range in its device buffer. For an empty range it is
 * the end of the buffer: at any other offset, a size of 0 in a descriptor
 * would mean all bytes up to the end. */
static uint64_t buffer_offset(const vyre__memory *memory, uint64_t size) {
  return size > 0 ? memory->offset : memory->buffer->size;
}

/* Returns the memory of a range as an input. */
static vyre_input input_at(const vyre_recording *rec,
                           const vyre_slot_range *range, uint64_t size) {
  const vyre__slot *slot = &rec->slots[range->slot];
  vyre__memory memory = vyre__slot_range_memory(rec, range);
  if (!slot->buffer) return vyre_input_bytes(memory.host, (size_t)size);
  return (vyre_input){.size = (size_t)size,
                      .buffer = slot->binding.buffer,
                      .offset = buffer_offset(&memory, size)};
}

/* Returns the memory of a range as an output. */
static vyre_output output_at(const vyre_recording *rec,
                             const vyre_slot_range *range, uint64_t size) {
  const vyre__slot *slot = &rec->slots[range->slot];
  vyre__memory memory = vyre__slot_range_memory(rec, range);
  if (!slot->buffer) return vyre_output_bytes(memory.host, (size_t)size);
  return (vyre_output){.size = (size_t)size,
                       .buffer = slot->binding.buffer,
                       .offset = buffer_offset(&memory, size)};
}

/* Fills in the inputs or resources and the outputs of a dispatch from its slot
 * ranges. */
static vyre_code fill_tables(const vyre_recording *rec,
                             vyre__recorded_command *c, size_t command,
                             vyre_status *st) {
  const struct vyre__pipeline_state *state = c->variant->state;
  const vyre__tables *t = &c->tables;
  for (size_t i = 0; i < state->resource_count; i++) {
    const vyre__binding_info *info = state->resources[i];
    const vyre_slot_range *in = vyre__command_in(c, info);
    const vyre_slot_range *out = vyre__command_out(c, info);
    uint64_t declared = info->is_static ? info->static_bytes : 0;
    uint64_t element = info->element, size;
    uint32_t index = c->desc.resource_count > 0 ? info->resource : info->input;
    if (index != VYRE_NO_INDEX) t->inputs[index] = (vyre_input){0};
    if (in) {
      VYRE_TRY(vyre__slot_range_measure(rec, in, declared, element, command,
                                        &size, st));
      t->inputs[index] = input_at(rec, in, size);
    }
    if (info->output != VYRE_NO_INDEX)
      t->outputs[info->output] = (vyre_output){0};
    if (out) {
      VYRE_TRY(vyre__slot_range_measure(rec, out, declared, element, command,
                                        &size, st));
      t->outputs[info->output] = output_at(rec, out, size);
    }
  }
  return VYRE_OK;
}

static vyre_code prepare_dispatch(const vyre_recording *rec,
                                  vyre__recorded_command *c, size_t command,
                                  vyre_status *st) {
  VYRE_TRY(fill_tables(rec, c, command, st));
  vyre__prepared_unbind(c->prepared, false);
  bool has_resources = c->desc.resource_count > 0;
  c->desc.resources = has_resources ? c->tables.inputs : NULL;
  c->desc.inputs = has_resources ? NULL : c->tables.inputs;
  c->desc.outputs = c->tables.outputs;
  c->desc.label = c->label; /* commands do not move after the seal */
  vyre_code code = vyre__prepared_check(c->prepared, &c->desc, st);
  if (code != VYRE_OK) {
    vyre__prepared_unbind(c->prepared, true);
    return name_command(command, code, st);
  }
  vyre__prepared_copy_desc(c->prepared);
  c->prepared->item = (uint32_t)command; /* shown in traces */
  /* The replay holds the buffers, so the prepared dispatch need not. */
  vyre__prepared_release(c->prepared);
  const vyre_binding_plan *plan = &c->variant->plan;
  for (size_t i = 0; i < c->plan.kernel_pointer_capacity; i++) {
    vyre__argument *a = &c->tables.arguments[i];
    const vyre_binding *b = &plan->bindings[a->binding];
    const vyre__bound_buffer *bound = &c->prepared->bound[a->binding];
    a->size =
        b->output_index != VYRE_NO_INDEX ? bound->out_size : bound->in_size;
  }
  return VYRE_OK;
}

static vyre_code prepare_copy(vyre_recording *rec, vyre__recorded_command *c,
                              size_t command, vyre_status *st) {
  uint64_t from, to;
  VYRE_TRY(vyre__slot_range_measure(rec, &c->from, 0, 1, command, &from, st));
  VYRE_TRY(vyre__slot_range_measure(rec, &c->to, 0, 1, command, &to, st));
  if (from != to) {
    char text[VYRE__SLOT_NAME], other[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"from_bytes", from}, {"to_bytes", to},
                     {"command", command}),
        "bind the same number of bytes to both slots, or set the size of the "
        "copy",
        "command %zu copies %llu bytes of slot '%s' to slot '%s', which has "
        "room for %llu",
        command, (unsigned long long)from,
        vyre__slot_name(rec, c->from.slot, text),
        vyre__slot_name(rec, c->to.slot, other), (unsigned long long)to);
  }
  c->size = from;
  c->source = vyre__slot_range_memory(rec, &c->from);
  c->target = vyre__slot_range_memory(rec, &c->to);
  c->is_upload = !c->source.buffer && c->target.buffer;
  bool needs_staging = c->source.buffer && c->target.buffer &&
                       !(c->source.host && c->target.host);
  if (needs_staging && !rec->staging) {
    rec->staging =
        vyre__resize(rec->device->allocator, NULL, 0, VYRE__STAGING_BYTES);
    if (!rec->staging) {
      return vyre__no_memory(st, "vyre_recording_replay", "bytes",
                             VYRE__STAGING_BYTES);
    }
  }
  return VYRE_OK;
}

static vyre_code prepare_command(vyre_recording *rec, vyre__recorded_command *c,
                                 size_t command, vyre_status *st) {
  uint64_t size;
  switch (c->kind) {
    case VYRE__RECORDED_DISPATCH:
      return prepare_dispatch(rec, c, command, st);
    case VYRE__RECORDED_COPY:
      return prepare_copy(rec, c, command, st);
    case VYRE__RECORDED_WHILE:
      VYRE_TRY(
          vyre__slot_range_measure(rec, &c->from, 4, 4, command, &size, st));
      c->source = vyre__slot_range_memory(rec, &c->from);
      return VYRE_OK;
    case VYRE__RECORDED_STEP:
      return name_command(
          command, vyre__recording_prepare_step(rec, c, command, st), st);
    default:
      return VYRE_OK;
  }
}

vyre_code vyre__recording_prepare(vyre_recording *rec, uint64_t *rebuilt,
                                  vyre_status *st) {
  if (!rec->is_dirty) return VYRE_OK;
  rec->version++;
  mark_updated(rec);
  vyre__slot_spans_sort(rec);
  VYRE_TRY(check_slots(rec, st));
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__recorded_command *c = &rec->commands[i];
    if (c->is_ready) continue;
    VYRE_TRY(prepare_command(rec, c, i, st));
    if (c->was_ready && c->kind == VYRE__RECORDED_DISPATCH) ++*rebuilt;
    c->is_ready = c->was_ready = true;
  }
  rec->is_dirty = false;
  return VYRE_OK;
}

/* --- skipping uploads --------------------------------------------------- */

static vyre_code unsafe_dispatch(const vyre__recorded_command *c,
                                 size_t command, vyre_status *st) {
  const char *name = "?";
  const vyre_binding_plan *plan = &c->variant->plan;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->input_index != VYRE_NO_INDEX && b->output_index != VYRE_NO_INDEX) {
      name = b->name;
      break;
    }
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY, NULL,
      VYRE_NUMBERS({"command", command}),
      "replay without skip_uploads, or change the kernel to write another "
      "buffer",
      "uploads cannot be skipped: buffer '%.60s' of command %zu ('%s') is both "
      "input and output, so the previous replay changed it",
      name, command, c->label);
}

static bool writes_elsewhere(void *self, const vyre_slot_range *range,
                             bool is_written) {
  return !is_written || !vyre__slot_ranges_overlap(range, self);
}

/* Refuses to skip an upload whose source a command writes: without the skip,
 * the next replay would upload what this one wrote. */
static vyre_code source_written(const vyre_recording *rec, size_t upload,
                                size_t writer, vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  uint32_t slot = rec->commands[upload].from.slot;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY, NULL,
      VYRE_NUMBERS({"slot", slot}, {"upload", upload}, {"command", writer}),
      "replay without skip_uploads, or change the command to write another "
      "slot",
      "uploads cannot be skipped: slot '%s' is uploaded from by command %zu "
      "and written by command %zu",
      vyre__slot_name(rec, slot, text), upload, writer);
}

/* Names the first command that writes the source or the target of an
 * upload. */
VYRE__RARE
static vyre_code upload_conflicts(const vyre_recording *rec, size_t upload,
                                  vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre_slot_range to = rec->commands[upload].to,
                  from = rec->commands[upload].from;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    if (i == upload) continue;
    if (!vyre__command_slot_ranges(c, writes_elsewhere, &from)) {
      return source_written(rec, upload, i, st);
    }
    if (vyre__command_slot_ranges(c, writes_elsewhere, &to)) continue;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY, NULL,
        VYRE_NUMBERS({"slot", to.slot}, {"command", i}),
        "replay without skip_uploads, or change the command to write another "
        "slot",
        "uploads cannot be skipped: slot '%s' is uploaded to by command %zu "
        "and written by command %zu",
        vyre__slot_name(rec, to.slot, text), upload, i);
  }
  return VYRE_OK;
}

/* Trees of the range map. NEWEST has the number + 1 of the last command that
 * writes a range; OLDEST has the number of commands minus that of the first. */
enum { NEWEST, OLDEST };

typedef struct writer_marks {
  const vyre__range_map *map;
  uint32_t newest, oldest;
} writer_marks;

static bool mark_writer(void *self, const vyre_slot_range *range,
                        bool is_written) {
  const writer_marks *marks = self;
  if (!is_written) return true;
  vyre__range_map_mark(marks->map, NEWEST, range, marks->newest);
  vyre__range_map_mark(marks->map, OLDEST, range, marks->oldest);
  return true;
}

/* Checks that only the upload itself writes its target, and that no command
 * writes its source. */
static vyre_code check_uploads(const vyre_recording *rec, vyre_arena *arena,
                               vyre_status *st) {
  vyre__range_map map;
  uint32_t count = (uint32_t)rec->command_count;
  if (!vyre__range_map_build(rec, arena, &map))
    return vyre__no_memory(st, "vyre_recording_replay", "commands", count);
  for (uint32_t i = 0; i < count; i++) {
    writer_marks marks = {&map, i + 1, count - i};
    (void)vyre__command_slot_ranges(&rec->commands[i], mark_writer, &marks);
  }
  for (uint32_t i = 0; i < count; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    if (c->kind != VYRE__RECORDED_COPY || !c->is_upload) continue;
    bool is_only_writer =
        vyre__range_map_max(&map, NEWEST, &c->to) == i + 1 &&
        vyre__range_map_max(&map, OLDEST, &c->to) == count - i;
    if (!is_only_writer || vyre__range_map_max(&map, NEWEST, &c->from) > 0)
      return upload_conflicts(rec, i, st);
  }
  return VYRE_OK;
}

static vyre_code check_skip_safe(const vyre_recording *rec, vyre_status *st) {
  vyre_arena arena;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    if (c->kind == VYRE__RECORDED_DISPATCH &&
        !c->plan.resident_input_replay_safe) {
      return unsafe_dispatch(c, i, st);
    }
  }
  vyre_arena_init(&arena, rec->device->allocator);
  vyre_code code = check_uploads(rec, &arena, st);
  vyre_arena_deinit(&arena);
  return code;
}

vyre_code vyre__recording_may_skip_uploads(vyre_recording *rec,
                                           vyre_status *st) {
  if (!rec->is_skip_checked) {
    rec->skip_refusal = (vyre_status){0};
    rec->is_skip_safe = check_skip_safe(rec, &rec->skip_refusal) == VYRE_OK;
    rec->is_skip_checked = rec->skip_refusal.code != VYRE_OUT_OF_MEMORY;
  }
  if (!rec->is_skip_safe) {
    if (st && st->code == VYRE_OK) *st = rec->skip_refusal;
    return rec->skip_refusal.code;
  }
  return VYRE_OK;
}

vyre_code vyre__recording_check_uploaded(const vyre_recording *rec,
                                         vyre_status *st) {
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__recorded_command *c = &rec->commands[i];
    const vyre__recorded_command *last = &rec->first->commands[i];
    if (!c->is_upload ||
        (last->uploaded_from == rec->slots[c->from.slot].version &&
         last->uploaded_to == rec->slots[c->to.slot].version))
      continue;
    char text[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY, NULL,
        VYRE_NUMBERS({"slot", c->to.slot}, {"command", i}),
        "replay once without skip_uploads",
        "uploads cannot be skipped: slot '%s' was not uploaded since it or its "
        "source was bound",
        vyre__slot_name(rec, c->to.slot, text));
  }
  return VYRE_OK;
}
