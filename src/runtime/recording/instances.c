/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Instances of a recording: copies of the commands, with their own bindings
 * and prepared dispatches. Binding a slot during a replay switches to another
 * instance, so that the replay keeps the memory it started with. Replays of
 * two instances may run at the same time. */
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/recording/recording.h"

/* --- creating an instance ----------------------------------------------- */

static void *clone(vyre_allocator allocator, const void *from, size_t size) {
  void *copy = size > 0 ? vyre__resize(allocator, NULL, 0, size) : NULL;
  if (copy) memcpy(copy, from, size);
  return copy;
}

/* Copies commands without their lists, which an active replay may write. */
static vyre__recorded_command *clone_commands(vyre_allocator allocator,
                                              const vyre_recording *original) {
  size_t count = original->command_count;
  vyre__recorded_command *copies =
      count > 0 ? vyre__resize(allocator, NULL, 0, count * sizeof *copies)
                : NULL;
  if (copies) memset(copies, 0, count * sizeof *copies);
  for (size_t i = 0; copies && i < count; i++) {
    memcpy(&copies[i], &original->commands[i],
           offsetof(vyre__recorded_command, list));
  }
  return copies;
}

/* Resets cloned commands: none is ready or has a prepared dispatch. */
static void reset_commands(vyre_recording *instance) {
  if (!instance->commands) return;
  for (size_t i = 0; i < instance->command_count; i++) {
    vyre__recorded_command *c = &instance->commands[i];
    c->is_ready = false;
    if (c->kind == VYRE__RECORDED_DISPATCH) vyre_pipeline_retain(c->pipeline);
    if (c->step) atomic_fetch_add(&c->step->references, 1);
    c->prepared = NULL;
  }
}

static vyre_code create(vyre_recording *first, vyre_recording **out,
                        vyre_status *st) {
  static const char function[] = "vyre_recording_bind_slot";
  const vyre_recording *original = first->current;
  vyre_allocator allocator = first->device->allocator;
  vyre_recording *instance = vyre__alloc_zeroed(allocator, sizeof *instance);
  if (!instance) return vyre__no_memory(st, function, "recordings", 1);
  *instance = (vyre_recording){.device = first->device,
                               .is_sealed = true,
                               .totals = first->totals,
                               .first = first,
                               .is_dirty = true};
  vyre_arena_init(&instance->building, allocator);
  instance->slots = clone(allocator, original->slots,
                          original->slot_count * sizeof *instance->slots);
  instance->commands = clone_commands(allocator, original);
  if (instance->slots)
    instance->slot_capacity = instance->slot_count = original->slot_count;
  if (instance->commands) {
    instance->command_capacity = instance->command_count =
        original->command_count;
  }
  reset_commands(instance);
  vyre_code code = VYRE_OK;
  if (instance->slot_count < original->slot_count ||
      instance->command_count < original->command_count) {
    code = vyre__no_memory(st, function, "commands", original->command_count);
  }
  if (code == VYRE_OK)
    code = vyre__recording_build_tables(instance, function, st);
  if (code != VYRE_OK) {
    vyre__recording_clear(instance);
    vyre__resize(allocator, instance, sizeof *instance, 0);
    return code;
  }
  instance->next_instance = first->next_instance;
  first->next_instance = instance;
  first->instance_count++;
  *out = instance;
  return VYRE_OK;
}

/* --- choosing an instance ----------------------------------------------- */

static bool bindings_equal(const vyre__slot *a, const vyre__slot *b) {
  if (a->is_bound != b->is_bound) return false;
  return !a->is_bound ||
         (vyre__slot_binding_equal(&a->binding, &b->binding) &&
          a->memory.host == b->memory.host &&
          a->memory.buffer == b->memory.buffer && a->bytes == b->bytes);
}

/* Returns true if @p slot has @p binding already. The memory of a host buffer
 * may have moved, so it never counts. */
static bool has_binding(const vyre__slot *slot,
                        const vyre_slot_binding *binding) {
  if (!binding) return !slot->is_bound;
  return slot->is_bound && !binding->host_buffer &&
         vyre__slot_binding_equal(binding, &slot->binding);
}

/* Counts the slots that have to be bound again to switch from @p from to @p to.
 * An instance that already has @p binding in @p slot is preferred: the next
 * bind calls are likely to match it too. */
static size_t distance(const vyre_recording *from, const vyre_recording *to,
                       uint32_t slot, const vyre_slot_binding *binding) {
  size_t count = 0;
  for (uint32_t i = 0; i < from->slot_count; i++) {
    if (i == slot) {
      count += has_binding(&to->slots[i], binding) ? 0 : from->slot_count;
    } else {
      count += !bindings_equal(&from->slots[i], &to->slots[i]);
    }
  }
  return count;
}

/* Copies the bindings of @p from to @p to, except for a @p slot that already
 * has @p binding. Their versions stay, so that uploads stay valid. */
static void copy_bindings(vyre_recording *to, const vyre_recording *from,
                          uint32_t slot, const vyre_slot_binding *binding) {
  for (uint32_t i = 0; i < from->slot_count; i++) {
    to->slots[i].version = from->slots[i].version;
    if (bindings_equal(&from->slots[i], &to->slots[i])) continue;
    if (i == slot && has_binding(&to->slots[i], binding)) continue;
    to->slots[i] = from->slots[i];
    vyre__recording_invalidate(to, i);
  }
}

vyre_code vyre__recording_switch_instance(vyre_recording *first, uint32_t slot,
                                          const vyre_slot_binding *binding,
                                          vyre_status *st) {
  bool may_create = first->instance_count < VYRE__MAX_INSTANCES;
  vyre_recording *best = NULL;
  size_t min_distance = SIZE_MAX;
  uint32_t users = 0;
  for (vyre_recording *c = first; c; c = c->next_instance) {
    users += c->users;
    if (c->users > 0) continue;
    size_t changed = distance(first->current, c, slot, binding);
    if (changed >= min_distance) continue;
    min_distance = changed;
    best = c;
  }
  if (!best && !may_create) {
    char text[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"slot", slot}, {"replays", users},
                     {"max_bindings", VYRE__MAX_INSTANCES + 1}),
        "wait for the fence of one of the replays first",
        "slot '%s' cannot be bound: %u replays are pending, with %d sets of "
        "bindings, which is the maximum",
        vyre__slot_name(first, slot, text), users, VYRE__MAX_INSTANCES + 1);
  }
  if (!best) VYRE_TRY(create(first, &best, st));
  copy_bindings(best, first->current, slot, binding);
  first->current = best;
  return VYRE_OK;
}
