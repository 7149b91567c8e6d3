/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds replays that run at the same time and share memory. Queued replays run
 * in the order in which they were submitted. Two threads have no such order:
 * if both use the same bytes and one writes them, the second replay waits or
 * is refused. */
#include "base/attributes.h"
#include "base/status.h"
#include "runtime/core/device.h"
#include "runtime/core/work_queue.h"
#include "runtime/recording/recording.h"

/* Slots of two replays that share bytes, of which one is written. Without
 * slots: both replays run the same instance. */
typedef struct conflict {
  const vyre__active_replay *other;
  uint32_t slot, other_slot;
} conflict;

static bool slots_conflict(const vyre_recording *a, const vyre_recording *b,
                           conflict *out) {
  if (!vyre__slot_spans_conflict(a, b)) return false;
  for (uint32_t i = 0; i < a->slot_count; i++) { /* find their names */
    for (uint32_t k = 0; k < b->slot_count; k++) {
      if (!vyre__slots_conflict(&a->slots[i], &b->slots[k])) continue;
      out->slot = i;
      out->other_slot = k;
      return true;
    }
  }
  return false;
}

/* Finds an active replay that conflicts with @p replay. Replays of one thread
 * are nested: a callback may replay any other recording, even one that shares
 * memory. */
static bool find_conflict(const vyre__active_replay *replay, conflict *out) {
  const vyre__active_replay *other = replay->rec->device->state->active_replays;
  for (; other; other = other->next) {
    bool is_same_thread = pthread_equal(other->thread, replay->thread);
    *out = (conflict){other, VYRE_NO_SLOT, VYRE_NO_SLOT};
    if (!is_same_thread && slots_conflict(replay->rec, other->rec, out))
      return true;
    if (other->rec == replay->rec) return true;
  }
  return false;
}

VYRE__RARE
static vyre_code replays_itself(vyre_status *st) {
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
      "replay it after the first replay has returned, or pass a fence",
      "a callback of a replay cannot replay the same recording, "
      "because it would wait for itself");
}

#define FIX                                                                \
  "wait until the other replay has ended, set wait_for_conflicts, replay " \
  "with "                                                                  \
  "fences, or bind other memory"

VYRE__RARE
static vyre_code memory_in_use(const vyre__active_replay *replay,
                               const conflict *found, vyre_status *st) {
  char text[VYRE__SLOT_NAME], other_text[VYRE__SLOT_NAME];
  /* both replays run the same instance, which writes nothing */
  if (found->slot == VYRE_NO_SLOT) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_RESOURCE_BUSY, FIX,
                     "the recording runs on another thread; a callback of a "
                     "replay cannot wait for it");
  }
  const vyre__slot *slot = &replay->rec->slots[found->slot];
  const char *name = vyre__slot_name(replay->rec, found->slot, text),
             *other = vyre__slot_name(found->other->rec, found->other_slot,
                                      other_text);
  const char *which = found->other->rec->first == replay->rec->first
                          ? "this recording"
                          : "another recording";
  if (slot->buffer) {
    unsigned long long id = slot->binding.buffer.id;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_RESOURCE_BUSY, NULL,
        VYRE_NUMBERS({"slot", found->slot}, {"other_slot", found->other_slot},
                     {"device_buffer", id}),
        FIX,
        "slot '%s': device buffer %llx is also slot '%s' of a replay of %s on "
        "another thread, and one of the two replays writes it",
        name, id, other, which);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_RESOURCE_BUSY, NULL,
      VYRE_NUMBERS({"slot", found->slot}, {"other_slot", found->other_slot}),
      FIX,
      "slot '%s': its %llu bytes of host memory overlap slot '%s' of a replay "
      "of %s on another thread, and one of the two replays writes them",
      name, (unsigned long long)slot->bytes, other, which);
}

vyre_code vyre__active_replay_begin(vyre__active_replay *replay,
                                    const vyre_recording *rec, bool is_queued,
                                    bool wait_for_conflicts, vyre_status *st) {
  struct vyre__device_state *state = rec->device->state;
  bool may_wait = !vyre__replay_scope_is_held(rec->device);
  vyre_code code = VYRE_OK;
  conflict found;
  *replay = (vyre__active_replay){
      .rec = rec, .thread = pthread_self(), .is_queued = is_queued};
  pthread_mutex_lock(&state->replay_lock);
  while (find_conflict(replay, &found)) {
    bool has_order = is_queued || wait_for_conflicts ||
                     found.other->is_queued || found.slot == VYRE_NO_SLOT;
    if (pthread_equal(found.other->thread, replay->thread)) {
      code = replays_itself(st);
    } else if (!may_wait || !has_order) {
      code = memory_in_use(replay, &found, st);
    }
    if (code != VYRE_OK) break;
    pthread_cond_wait(&state->replay_ended, &state->replay_lock);
  }
  if (code == VYRE_OK) {
    replay->next = state->active_replays;
    state->active_replays = replay;
  }
  pthread_mutex_unlock(&state->replay_lock);
  return code;
}

void vyre__active_replay_end(vyre__active_replay *replay) {
  struct vyre__device_state *state = replay->rec->device->state;
  pthread_mutex_lock(&state->replay_lock);
  vyre__active_replay **at = &state->active_replays;
  while (*at != replay) at = &(*at)->next;
  *at = replay->next;
  pthread_cond_broadcast(&state->replay_ended);
  pthread_mutex_unlock(&state->replay_lock);
}
