/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies of a recording: commands with runs of their own, made ready for what is bound
 * to them. A slot that is bound while a replay is on its way is bound to another copy,
 * so that the replay goes on with what it was asked with; replays of two copies may
 * run at the same time. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/recording/recording.h"

/* --- making one --------------------------------------------------------------*/

static void *clone(vyre_allocator allocator, const void *from, size_t size) {
  void *made = size > 0 ? vyre__resize(allocator, NULL, 0, size) : NULL;
  if (made) memcpy(made, from, size);
  return made;
}

/* Commands, as they were recorded; nothing of them is ready. */
static void unready(vyre_recording *copy) {
  for (size_t i = 0; i < copy->command_count; i++) {
    vyre__command *c = &copy->commands[i];
    c->is_ready = false;
    if (c->kind == VYRE__COMMAND_DISPATCH) vyre_pipeline_retain(c->pipeline);
    c->prepared = NULL;
  }
}

static vyre_code make(vyre_recording *home, vyre_recording **out,
                      vyre_status *st) {
  static const char who[] = "vyre_recording_bind_slot";
  const vyre_recording *like = home->current;
  vyre_allocator allocator = home->device->allocator;
  vyre_recording *copy = vyre__resize(allocator, NULL, 0, sizeof *copy);
  if (!copy) return vyre__no_memory(st, who, "recordings", 1);
  memset(copy, 0, sizeof *copy);
  *copy = (vyre_recording){.device = home->device,
                           .is_sealed = true,
                           .sums = home->sums,
                           .first = home,
                           .is_dirty = true};
  vyre_arena_init(&copy->building, allocator);
  copy->slots =
      clone(allocator, like->slots, like->slot_count * sizeof *copy->slots);
  copy->commands = clone(allocator, like->commands,
                         like->command_count * sizeof *copy->commands);
  if (copy->slots) copy->slot_capacity = copy->slot_count = like->slot_count;
  if (copy->commands) {
    copy->command_capacity = copy->command_count = like->command_count;
  }
  unready(copy);
  vyre_code code = VYRE_OK;
  if (copy->slot_count < like->slot_count ||
      copy->command_count < like->command_count) {
    code = vyre__no_memory(st, who, "commands", like->command_count);
  }
  if (code == VYRE_OK) code = vyre__recording_lay_out(copy, who, st);
  if (code != VYRE_OK) {
    vyre__recording_clear(copy);
    vyre__resize(allocator, copy, sizeof *copy, 0);
    return code;
  }
  copy->next_instance = home->next_instance;
  home->next_instance = copy;
  home->instance_count++;
  *out = copy;
  return VYRE_OK;
}

/* --- choosing one ------------------------------------------------------------*/

static bool is_bound_alike(const vyre__slot *a, const vyre__slot *b) {
  if (a->is_bound != b->is_bound) return false;
  return !a->is_bound ||
         (vyre__slot_binding_equal(&a->binding, &b->binding) &&
          a->memory.host == b->memory.host &&
          a->memory.buffer == b->memory.buffer && a->bytes == b->bytes);
}

/* Whether @p slot of a copy is what it is to be. */
static bool is_wanted(const vyre__slot *there,
                      const vyre_slot_binding *resource) {
  if (!resource) return !there->is_bound;
  return there->is_bound && !resource->host_buffer &&
         vyre__slot_binding_equal(resource, &there->binding);
}

/* Slots that would have to be bound anew; one that was used with what is to be bound
 * is near, as those that go with it are likely to be bound next. */
static size_t distance(const vyre_recording *from, const vyre_recording *to,
                       uint32_t slot, const vyre_slot_binding *resource) {
  size_t count = 0;
  for (uint32_t i = 0; i < from->slot_count; i++) {
    if (i == slot) {
      count += is_wanted(&to->slots[i], resource) ? 0 : from->slot_count;
    } else {
      count += !is_bound_alike(&from->slots[i], &to->slots[i]);
    }
  }
  return count;
}

/* The same bindings as those of @p from, but for a slot that is what it is to be;
 * what was uploaded there is there. */
static void take_over(vyre_recording *to, const vyre_recording *from,
                      uint32_t slot, const vyre_slot_binding *resource) {
  for (uint32_t i = 0; i < from->slot_count; i++) {
    if (is_bound_alike(&from->slots[i], &to->slots[i])) continue;
    if (i == slot && is_wanted(&to->slots[i], resource)) continue;
    to->slots[i] = from->slots[i];
    vyre__recording_invalidate(to, i);
  }
  for (size_t i = 0; i < from->command_count; i++) {
    const vyre__command *c = &from->commands[i];
    bool is_touched = c->from.slot == slot || c->to.slot == slot;
    to->commands[i].is_uploaded = c->is_uploaded && !is_touched;
  }
}

vyre_code vyre__recording_end_replay(vyre_recording *home, uint32_t slot,
                                     const vyre_slot_binding *resource,
                                     vyre_status *st) {
  bool may_make = home->instance_count < VYRE__MAX_COPIES;
  vyre_recording *best = NULL;
  size_t least = SIZE_MAX;
  uint32_t users = 0;
  for (vyre_recording *c = home; c; c = c->next_instance) {
    users += c->users;
    if (c->users > 0) continue;
    size_t far = distance(home->current, c, slot, resource);
    if (far >= least) continue;
    least = far;
    best = c;
  }
  if (!best && !may_make) {
    char text[VYRE__SLOT_NAME];
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"slot", slot}, {"replays", users},
                     {"most_bindings", VYRE__MAX_COPIES + 1}),
        "wait for the fence of a replay first",
        "slot '%s' cannot be bound: %u replays of the recording are not over, "
        "with %d sets of bindings, which are as many as there may be",
        vyre__slot_name(home, slot, text), users, VYRE__MAX_COPIES + 1);
  }
  if (!best) VYRE_TRY(make(home, &best, st));
  take_over(best, home->current, slot, resource);
  home->current = best;
  return VYRE_OK;
}
