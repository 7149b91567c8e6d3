/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Slots against memory: what is bound, whether it is still there, and the
 * dispatches made ready for it. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/recording/recording.h"

/* --- binding -----------------------------------------------------------------*/

static bool has_resident(const vyre_slot_binding *resource) {
  return resource->buffer.owner != 0 || resource->buffer.id != 0;
}

static vyre_code stale(const vyre_recording *rec, uint32_t slot,
                       vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre_buffer handle = rec->slots[slot].binding.buffer;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"slot", slot}, {"resident", handle.id}),
      "bind a buffer that is there (vyre_recording_bind_slot)",
      "slot '%s': resident buffer %llx was freed",
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
      "bind a buffer that the recording's device has, and that was not freed",
      "slot '%s': resident buffer %llx of device %llu is not there on device "
      "%llu ('%s')",
      vyre__slot_name(rec, slot, text), (unsigned long long)handle.id,
      (unsigned long long)handle.owner,
      (unsigned long long)rec->device->state->id,
      vyre_device_name(rec->device));
}

/* *held: the buffer, kept from being freed. */
static vyre_code read_resident(vyre_recording *rec, uint32_t slot,
                               const vyre_slot_binding *resource,
                               vyre__slot *made, vyre__device_buffer **held,
                               vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre__device_buffer *place;
  if (vyre__device_buffer_acquire(rec->device, resource->buffer, &place,
                                  NULL) != VYRE_OK) {
    return bad_handle(rec, slot, resource->buffer, st);
  }
  *held = place;
  vyre__buffer *buffer = place->buffer;
  uint64_t offset = resource->offset, size = resource->size, has = buffer->size;
  made->bytes = size;
  made->buffer = place;
  bool fits = offset <= has && size <= has - offset;
  if (fits) {
    if (size == 0) made->bytes = has - offset;
    made->memory = (vyre__memory){buffer->host ? buffer->host + offset : NULL,
                                  buffer, offset};
  }
  if (fits) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"slot", slot}, {"offset", offset}, {"size", size},
                   {"buffer_bytes", has}),
      "keep the range inside of the buffer",
      "slot '%s': %llu bytes from %llu on, in a resident buffer of %llu",
      vyre__slot_name(rec, slot, text), (unsigned long long)size,
      (unsigned long long)offset, (unsigned long long)has);
}

vyre_code vyre__host_buffer_bind(vyre_recording *rec, uint32_t slot,
                                 const vyre_slot_binding *resource,
                                 vyre__device_buffer **held, vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre__slot made = rec->slots[slot];
  made.is_bound = true;
  made.binding = *resource;
  made.memory = (vyre__memory){0};
  made.buffer = NULL;
  int places = (resource->data != NULL) + (resource->host_buffer != NULL) +
               has_resident(resource);
  if (places != 1) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"slot", slot}, {"size", resource->size}),
        "give one of data, resident and slot; no bytes are a size of 0 at any "
        "data that is not NULL",
        "slot '%s' would be bound to %d places",
        vyre__slot_name(rec, slot, text), places);
  }
  if (has_resident(resource)) {
    VYRE_TRY(read_resident(rec, slot, resource, &made, held, st));
  } else if (resource->host_buffer) {
    made.memory.host = resource->host_buffer->data;
    made.bytes = resource->host_buffer->size;
  } else {
    made.memory.host = resource->data;
    made.bytes = resource->size;
  }
  if (made.size != 0 && made.bytes != made.size) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"slot", slot}, {"expected_bytes", made.size},
                     {"received_bytes", made.bytes}),
        "bind exactly as many bytes as the slot has",
        "slot '%s' has %llu bytes, got %llu", vyre__slot_name(rec, slot, text),
        (unsigned long long)made.size, (unsigned long long)made.bytes);
  }
  rec->slots[slot] = made;
  return VYRE_OK;
}

typedef struct user_search {
  uint32_t slot;
} user_search;

static bool is_other(void *self, const vyre_slot_range *place,
                     bool is_written) {
  (void)is_written;
  return place->slot != ((const user_search *)self)->slot;
}

void vyre__recording_invalidate(vyre_recording *rec, uint32_t slot) {
  user_search search = {slot};
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__command *c = &rec->commands[i];
    if (vyre__command_slot_ranges(c, is_other, &search)) continue;
    c->is_ready = c->is_uploaded = false;
  }
  rec->is_dirty = true;
  rec->is_keep_known = false;
}

bool vyre__slot_binding_equal(const vyre_slot_binding *a,
                              const vyre_slot_binding *b) {
  return a->data == b->data && a->size == b->size &&
         a->host_buffer == b->host_buffer &&
         a->buffer.owner == b->buffer.owner && a->buffer.id == b->buffer.id &&
         a->offset == b->offset && a->is_read_only == b->is_read_only;
}

/* For good, also with what it has, and whatever is on its way. */
static vyre_code check_named(const vyre_recording *rec, uint32_t slot,
                             vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  if (rec->slots[slot].name[0]) return VYRE_OK;
  return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                        NULL, VYRE_NUMBERS({"slot", slot}),
                        "record it with vyre_recording_add_slot instead",
                        "slot '%s' is fixed", vyre__slot_name(rec, slot, text));
}

static vyre_code rebind(vyre_recording *rec, uint32_t slot,
                        const vyre_slot_binding *resource,
                        vyre__device_buffer **held, vyre_status *st) {
  vyre__slot *named = &rec->slots[slot];
  if (!resource) {
    named->is_bound = false;
    named->binding = (vyre_slot_binding){0};
    vyre__recording_invalidate(rec, slot);
    return VYRE_OK;
  }
  /* An output slot may have moved: the same one is another resource then. */
  bool was_bound = named->is_bound && !resource->host_buffer;
  vyre_slot_binding before = named->binding;
  VYRE_TRY(vyre__host_buffer_bind(rec, slot, resource, held, st));
  if (!was_bound || !vyre__slot_binding_equal(&before, &named->binding)) {
    vyre__recording_invalidate(rec, slot);
  }
  return VYRE_OK;
}

/* Under the lock. Replays that are not over go on with what they were asked with. */
static vyre_code bind_current(vyre_recording *home, uint32_t slot,
                              const vyre_slot_binding *resource,
                              vyre__device_buffer **held, vyre_status *st) {
  VYRE_TRY(check_named(home, slot, st));
  if (home->current->users > 0) {
    const vyre__slot *named = &home->current->slots[slot];
    if (resource && named->is_bound && !resource->host_buffer &&
        vyre__slot_binding_equal(resource, &named->binding)) {
      /* It stays, if it was not freed since. */
      bool is_gone = has_resident(resource) &&
                     vyre__device_buffer_acquire(home->device, resource->buffer,
                                                 held, NULL) != VYRE_OK;
      return is_gone ? bad_handle(home, slot, resource->buffer, st) : VYRE_OK;
    }
    VYRE_TRY(vyre__recording_end_replay(home, slot, resource, st));
  }
  return rebind(home->current, slot, resource, held, st);
}

vyre_code vyre_recording_bind_slot(vyre_recording *rec, uint32_t slot,
                                   const vyre_slot_binding *resource,
                                   vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_recording_bind_slot";
  if (!rec) return vyre__null_argument(st, who, "recording");
  if (slot >= rec->slot_count) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"slot", slot}, {"slots", rec->slot_count}),
        "use a number that vyre_recording_add_slot gave",
        "slot %u of a recording that has %zu", slot, rec->slot_count);
  }
  vyre__device_buffer *held = NULL;
  pthread_mutex_lock(&rec->lock);
  vyre_recording *before = rec->current;
  vyre_code code = bind_current(rec, slot, resource, &held, st);
  if (code != VYRE_OK) rec->current = before;
  pthread_mutex_unlock(&rec->lock);
  if (held) vyre__device_buffer_release(rec->device, held);
  return code;
}

/* --- holding -----------------------------------------------------------------*/

static vyre_code moved(const vyre_recording *rec, uint32_t slot,
                       vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  const vyre__slot *named = &rec->slots[slot];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE, NULL,
      VYRE_NUMBERS({"slot", slot}, {"bound_bytes", named->bytes},
                   {"bytes", named->binding.host_buffer->size}),
      "bind the output slot again (vyre_recording_bind_slot)",
      "slot '%s': its output slot was moved or resized since it was bound: "
      "%llu "
      "bytes then, %zu now",
      vyre__slot_name(rec, slot, text), (unsigned long long)named->bytes,
      named->binding.host_buffer->size);
}

static vyre_code hold_slot(vyre_recording *rec, uint32_t i, vyre_status *st) {
  vyre__slot *slot = &rec->slots[i];
  if (!slot->is_bound) {
    char text[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNBOUND_SLOT, NULL,
        VYRE_NUMBERS({"slot", i}), "bind it (vyre_recording_bind_slot)",
        "slot '%s' is bound to nothing", vyre__slot_name(rec, i, text));
  }
  if (slot->buffer) {
    vyre__device_buffer *found;
    return vyre__device_buffer_acquire(rec->device, slot->binding.buffer,
                                       &found, NULL) == VYRE_OK
               ? VYRE_OK
               : stale(rec, i, st);
  }
  const vyre_host_buffer *kept = slot->binding.host_buffer;
  bool is_same_memory =
      !kept || (kept->data == slot->memory.host && kept->size == slot->bytes);
  return is_same_memory ? VYRE_OK : moved(rec, i, st);
}

vyre_code vyre__recording_acquire(vyre_recording *rec, size_t *held,
                                  vyre_status *st) {
  for (*held = 0; *held < rec->slot_count; ++*held) {
    if (!rec->slots[*held].is_used) continue;
    VYRE_TRY(hold_slot(rec, (uint32_t)*held, st));
  }
  return VYRE_OK;
}

void vyre__recording_drop(vyre_recording *rec, size_t held) {
  for (size_t i = 0; i < held; i++) {
    const vyre__slot *slot = &rec->slots[i];
    if (slot->is_used && slot->buffer) {
      vyre__device_buffer_release(rec->device, slot->buffer);
    }
  }
}

/* --- making ready ------------------------------------------------------------*/

bool vyre__slots_overlap(const vyre__slot *a, const vyre__slot *b) {
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

/* Barriers were placed by the slots' names: memory must not have two. */
static vyre_code check_slots(const vyre_recording *rec, vyre_status *st) {
  char text[VYRE__SLOT_NAME], other[VYRE__SLOT_NAME];
  for (uint32_t i = 0; i < rec->slot_count; i++) {
    const vyre__slot *a = &rec->slots[i];
    if (!a->is_used) continue;
    if (a->is_written && a->memory.buffer && a->memory.buffer->is_read_only) {
      return vyre__device_buffer_read_only("slot",
                                           vyre__slot_name(rec, i, text), st);
    }
    if (a->is_written && a->binding.is_read_only) {
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY, NULL,
          VYRE_NUMBERS({"slot", i}),
          "bind memory that may be written, without is_read_only",
          "slot '%s' is written, and was bound as read-only",
          vyre__slot_name(rec, i, text));
    }
    for (uint32_t k = 0; k < i; k++) {
      const vyre__slot *b = &rec->slots[k];
      if (!b->is_used || !(a->is_written || b->is_written)) continue;
      if (!vyre__slots_overlap(a, b)) continue;
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
          VYRE_NUMBERS({"slot", i}, {"other_slot", k}),
          "give what is written memory of its own, or record one slot for both",
          "slots '%s' and '%s' overlap, and one is written",
          vyre__slot_name(rec, i, text), vyre__slot_name(rec, k, other));
    }
  }
  return VYRE_OK;
}

static vyre_code out_of_slot(const vyre_recording *rec,
                             const vyre_slot_range *place, uint64_t size,
                             uint64_t element, size_t command,
                             vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  const vyre__slot *slot = &rec->slots[place->slot];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"slot", place->slot}, {"size", size},
                   {"slot_bytes", slot->bytes}, {"command", command}),
      "bind as many bytes as the command needs, in whole elements",
      "slot '%s': command %zu needs %llu bytes from %llu on, in elements of "
      "%llu; %llu are bound",
      vyre__slot_name(rec, place->slot, text), command,
      (unsigned long long)size, (unsigned long long)place->offset,
      (unsigned long long)element, (unsigned long long)slot->bytes);
}

/* How many bytes @p place is, and whether they are there. */
static vyre_code measure(const vyre_recording *rec,
                         const vyre_slot_range *place, uint64_t declared,
                         uint64_t element, size_t command, uint64_t *out,
                         vyre_status *st) {
  const vyre__slot *slot = &rec->slots[place->slot];
  uint64_t size = declared ? declared : place->size;
  bool fits =
      place->offset <= slot->bytes && size <= slot->bytes - place->offset;
  if (fits && size == 0) size = slot->bytes - place->offset;
  *out = size;
  return fits && size % element == 0
             ? VYRE_OK
             : out_of_slot(rec, place, size, element, command, st);
}

static vyre__memory memory_at(const vyre_recording *rec,
                              const vyre_slot_range *place) {
  vyre__memory memory = rec->slots[place->slot].memory;
  if (memory.host) memory.host += place->offset;
  memory.offset += place->offset;
  return memory;
}

/* A status of a part says which command it is. */
static vyre_code name_command(size_t command, vyre_code code, vyre_status *st) {
  vyre__status_where(st, "command", command, "command %zu", command);
  return code;
}

void vyre__prepared_unbind(vyre__prepared *run, bool is_held) {
  if (is_held) vyre__prepared_release(run);
  size_t count = run->pipeline->plan.binding_count;
  for (size_t i = 0; i < count; i++) run->bound[i] = (vyre__bound_buffer){0};
}

/* Where @p size bytes begin in a resident buffer. None are those at its end: a
 * descriptor takes a size of 0 for all that is left, and a slot may be bound to a
 * part of the buffer only. */
static uint64_t begin_of(const vyre__memory *memory, uint64_t size) {
  return size > 0 ? memory->offset : memory->buffer->size;
}

/* What the descriptor of one dispatch says, from its places. */
static vyre_code fill_tables(const vyre_recording *rec, vyre__command *c,
                             size_t command, vyre_status *st) {
  const vyre_binding_plan *plan = &c->variant->plan;
  const vyre__tables *t = &c->tables;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    uint64_t declared = b->has_static_byte_len ? b->static_byte_len : 0;
    uint64_t element = b->element_size > 1 ? b->element_size : 1, size;
    if (b->input_index != VYRE_NO_INDEX) {
      const vyre_slot_range *place = &t->in[b->input_index];
      const vyre__slot *slot = &rec->slots[place->slot];
      VYRE_TRY(measure(rec, place, declared, element, command, &size, st));
      vyre__memory memory = memory_at(rec, place);
      t->inputs[b->input_index] =
          slot->buffer ? (vyre_input){.size = (size_t)size,
                                      .buffer = slot->binding.buffer,
                                      .offset = begin_of(&memory, size)}
                       : vyre_input_bytes(memory.host, (size_t)size);
    }
    if (b->output_index != VYRE_NO_INDEX) {
      const vyre_slot_range *place = &t->out[b->output_index];
      const vyre__slot *slot = &rec->slots[place->slot];
      VYRE_TRY(measure(rec, place, declared, element, command, &size, st));
      vyre__memory memory = memory_at(rec, place);
      t->outputs[b->output_index] =
          slot->buffer ? (vyre_output){.size = (size_t)size,
                                       .buffer = slot->binding.buffer,
                                       .offset = begin_of(&memory, size)}
                       : vyre_output_bytes(memory.host, (size_t)size);
    }
  }
  return VYRE_OK;
}

static vyre_code ready_dispatch(const vyre_recording *rec, vyre__command *c,
                                size_t command, vyre_status *st) {
  VYRE_TRY(fill_tables(rec, c, command, st));
  vyre__prepared_unbind(c->prepared, false);
  c->desc.inputs = c->tables.inputs;
  c->desc.outputs = c->tables.outputs;
  c->desc.label = c->label; /* the commands are where they stay */
  vyre_code code = vyre__prepared_check(c->prepared, &c->desc, st);
  if (code != VYRE_OK) {
    vyre__prepared_unbind(c->prepared, true);
    return name_command(command, code, st);
  }
  vyre__prepared_copy_desc(c->prepared);
  c->prepared->item = (uint32_t)command; /* its name in a trace */
  /* It was prepared under the recording's hold, and needs none of its own. */
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

static vyre_code ready_copy(vyre_recording *rec, vyre__command *c,
                            size_t command, vyre_status *st) {
  uint64_t from, to;
  VYRE_TRY(measure(rec, &c->from, 0, 1, command, &from, st));
  VYRE_TRY(measure(rec, &c->to, 0, 1, command, &to, st));
  if (from != to) {
    char text[VYRE__SLOT_NAME], other[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"from_bytes", from}, {"to_bytes", to},
                     {"command", command}),
        "bind as many bytes to both, or give the copy a size",
        "command %zu copies all %llu bytes of slot '%s' to slot '%s', which "
        "has %llu there",
        command, (unsigned long long)from,
        vyre__slot_name(rec, c->from.slot, text),
        vyre__slot_name(rec, c->to.slot, other), (unsigned long long)to);
  }
  c->size = from;
  c->source = memory_at(rec, &c->from);
  c->target = memory_at(rec, &c->to);
  c->is_upload = !c->source.buffer && c->target.buffer;
  bool is_hidden = c->source.buffer && c->target.buffer &&
                   !(c->source.host && c->target.host);
  if (is_hidden && !rec->staging) {
    rec->staging = vyre__resize(rec->device->allocator, NULL, 0, VYRE__BOUNCE);
    if (!rec->staging) {
      return vyre__no_memory(st, "vyre_recording_replay", "bytes",
                             VYRE__BOUNCE);
    }
  }
  return VYRE_OK;
}

static vyre_code ready(vyre_recording *rec, vyre__command *c, size_t command,
                       vyre_status *st) {
  uint64_t size;
  switch (c->kind) {
    case VYRE__COMMAND_DISPATCH:
      return ready_dispatch(rec, c, command, st);
    case VYRE__COMMAND_COPY:
      return ready_copy(rec, c, command, st);
    case VYRE__COMMAND_WHILE:
      VYRE_TRY(measure(rec, &c->from, 4, 4, command, &size, st));
      c->source = memory_at(rec, &c->from);
      return VYRE_OK;
    default:
      return VYRE_OK;
  }
}

vyre_code vyre__recording_prepare(vyre_recording *rec, uint64_t *recaptures,
                                  vyre_status *st) {
  if (!rec->is_dirty) return VYRE_OK;
  rec->version++;
  VYRE_TRY(check_slots(rec, st));
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__command *c = &rec->commands[i];
    if (c->is_ready) continue;
    VYRE_TRY(ready(rec, c, i, st));
    if (c->was_ready && c->kind == VYRE__COMMAND_DISPATCH) ++*recaptures;
    c->is_ready = c->was_ready = true;
  }
  rec->is_dirty = false;
  return VYRE_OK;
}

/* --- keeping inputs ----------------------------------------------------------*/

static vyre_code unsafe_dispatch(const vyre__command *c, size_t command,
                                 vyre_status *st) {
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
      "replay without keep_inputs, or let the kernel write another buffer",
      "inputs cannot be kept: '%.60s' of command %zu ('%s') is both input and "
      "output, so that a replay begins with what the last one left",
      name, command, c->label);
}

static bool is_apart(void *self, const vyre_slot_range *place,
                     bool is_written) {
  return !is_written || !vyre__slot_ranges_overlap(place, self);
}

/* The next upload would bring what the last replay left at its source. */
static vyre_code source_written(const vyre_recording *rec, size_t upload,
                                size_t writer, vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  uint32_t slot = rec->commands[upload].from.slot;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY, NULL,
      VYRE_NUMBERS({"slot", slot}, {"upload", upload}, {"command", writer}),
      "replay without keep_inputs, or let the command write another slot",
      "inputs cannot be kept: slot '%s' is what command %zu uploads, and is "
      "written by command %zu",
      vyre__slot_name(rec, slot, text), upload, writer);
}

static vyre_code check_upload(const vyre_recording *rec, size_t upload,
                              vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  vyre_slot_range to = rec->commands[upload].to,
                  from = rec->commands[upload].from;
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__command *c = &rec->commands[i];
    if (i == upload) continue;
    if (!vyre__command_slot_ranges(c, is_apart, &from)) {
      return source_written(rec, upload, i, st);
    }
    if (vyre__command_slot_ranges(c, is_apart, &to)) continue;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY, NULL,
        VYRE_NUMBERS({"slot", to.slot}, {"command", i}),
        "replay without keep_inputs, or let the command write another slot",
        "inputs cannot be kept: slot '%s' is uploaded by command %zu and "
        "written by command %zu",
        vyre__slot_name(rec, to.slot, text), upload, i);
  }
  return VYRE_OK;
}

static vyre_code find_unsafe(const vyre_recording *rec, vyre_status *st) {
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__command *c = &rec->commands[i];
    if (c->kind == VYRE__COMMAND_DISPATCH &&
        !c->plan.resident_input_replay_safe) {
      return unsafe_dispatch(c, i, st);
    }
    if (c->kind == VYRE__COMMAND_COPY && c->is_upload) {
      VYRE_TRY(check_upload(rec, i, st));
    }
  }
  return VYRE_OK;
}

vyre_code vyre__recording_may_keep(vyre_recording *rec, vyre_status *st) {
  if (!rec->is_keep_known) {
    rec->keep_refusal = (vyre_status){0};
    rec->is_keep_safe = find_unsafe(rec, &rec->keep_refusal) == VYRE_OK;
    rec->is_keep_known = true;
  }
  if (!rec->is_keep_safe) {
    if (st && st->code == VYRE_OK) *st = rec->keep_refusal;
    return rec->keep_refusal.code;
  }
  return VYRE_OK;
}

vyre_code vyre__recording_was_uploaded(const vyre_recording *rec,
                                       vyre_status *st) {
  for (size_t i = 0; i < rec->command_count; i++) {
    const vyre__command *c = &rec->commands[i];
    if (!c->is_upload || c->is_uploaded) continue;
    char text[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY, NULL,
        VYRE_NUMBERS({"slot", c->to.slot}, {"command", i}),
        "replay once without keep_inputs",
        "inputs cannot be kept: slot '%s' was not uploaded since it or its "
        "source was bound",
        vyre__slot_name(rec, c->to.slot, text));
  }
  return VYRE_OK;
}
