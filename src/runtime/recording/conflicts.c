/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Replays that run at the same time. What the queue runs comes in the order in which
 * it was asked for; of two threads nothing says who is first, so that one of them is
 * refused if both use the same bytes, and one writes them. */
#include "base/attributes.h"
#include "base/status.h"
#include "runtime/recording/recording.h"

/* Two slots that share bytes which one of them writes. */
typedef struct meeting {
  const vyre__active_replay *other;
  uint32_t slot, other_slot;
} meeting;

static bool slots_meet(const vyre_recording *a, const vyre_recording *b,
                       meeting *out) {
  for (uint32_t i = 0; i < a->slot_count; i++) {
    const vyre__slot *mine = &a->slots[i];
    if (!mine->is_used) continue;
    for (uint32_t k = 0; k < b->slot_count; k++) {
      const vyre__slot *their = &b->slots[k];
      if (!their->is_used || !(mine->is_written || their->is_written)) continue;
      if (!vyre__slots_overlap(mine, their)) continue;
      out->slot = i;
      out->other_slot = k;
      return true;
    }
  }
  return false;
}

/* What one thread does, it does in its own order: a callback of a replay may replay
 * what it likes, but for the same commands. */
static bool meets(const vyre__active_replay *f, meeting *out) {
  const vyre__active_replay *other = f->rec->device->state->active_replays;
  for (; other; other = other->next) {
    bool is_own = pthread_equal(other->runner, f->runner);
    *out = (meeting){other, VYRE_NO_SLOT, VYRE_NO_SLOT};
    if (!is_own && slots_meet(f->rec, other->rec, out)) return true;
    if (other->rec == f->rec) return true;
  }
  return false;
}

VYRE__RARE
static vyre_code is_itself(vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "do it when the replay has returned, or replay with a fence",
                   "the recording runs on this thread: what it calls back "
                   "cannot wait for its end");
}

#define FIX                                                                    \
  "wait until the other replay is over, set takes_turns, replay with fences, " \
  "or bind memory of its own"

VYRE__RARE
static vyre_code is_busy(const vyre__active_replay *f, const meeting *m,
                         vyre_status *st) {
  char text[VYRE__SLOT_NAME], other_text[VYRE__SLOT_NAME];
  if (m->slot == VYRE_NO_SLOT) { /* it writes nothing, and runs all the same */
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_RESOURCE_BUSY, FIX,
                     "the recording runs on another thread, which a callback "
                     "of a replay cannot wait for");
  }
  const vyre__slot *slot = &f->rec->slots[m->slot];
  const char *name = vyre__slot_name(f->rec, m->slot, text),
             *other = vyre__slot_name(m->other->rec, m->other_slot, other_text);
  const char *which = m->other->rec->first == f->rec->first
                          ? "this recording"
                          : "another recording";
  if (slot->buffer) {
    unsigned long long id = slot->binding.buffer.id;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_RESOURCE_BUSY, NULL,
        VYRE_NUMBERS({"slot", m->slot}, {"other_slot", m->other_slot},
                     {"resident", id}),
        FIX,
        "slot '%s': resident buffer %llx is slot '%s' of a replay of %s that "
        "runs on another thread, and one of both writes it",
        name, id, other, which);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_RESOURCE_BUSY, NULL,
      VYRE_NUMBERS({"slot", m->slot}, {"other_slot", m->other_slot}), FIX,
      "slot '%s': its %llu bytes of the host are used by slot '%s' of a replay "
      "of %s that runs on another thread, and one of both writes them",
      name, (unsigned long long)slot->bytes, other, which);
}

vyre_code vyre__active_replay_begin(vyre__active_replay *f,
                                    const vyre_recording *rec, bool is_queued,
                                    bool takes_turns, vyre_status *st) {
  struct vyre__device_state *inside = rec->device->state;
  bool may_wait = !vyre__replay_scope_is_held(rec->device);
  vyre_code code = VYRE_OK;
  meeting m;
  *f = (vyre__active_replay){
      .rec = rec, .runner = pthread_self(), .is_queued = is_queued};
  pthread_mutex_lock(&inside->replay_lock);
  while (meets(f, &m)) {
    bool has_order = is_queued || takes_turns || m.other->is_queued ||
                     m.slot == VYRE_NO_SLOT;
    if (pthread_equal(m.other->runner, f->runner)) {
      code = is_itself(st);
    } else if (!may_wait || !has_order) {
      code = is_busy(f, &m, st);
    }
    if (code != VYRE_OK) break;
    pthread_cond_wait(&inside->replay_ended, &inside->replay_lock);
  }
  if (code == VYRE_OK) {
    f->next = inside->active_replays;
    inside->active_replays = f;
  }
  pthread_mutex_unlock(&inside->replay_lock);
  return code;
}

void vyre__active_replay_end(vyre__active_replay *f) {
  struct vyre__device_state *inside = f->rec->device->state;
  pthread_mutex_lock(&inside->replay_lock);
  vyre__active_replay **at = &inside->active_replays;
  while (*at != f) at = &(*at)->next;
  *at = f->next;
  pthread_cond_broadcast(&inside->replay_ended);
  pthread_mutex_unlock(&inside->replay_lock);
}
