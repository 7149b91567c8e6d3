/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/threads/deadline.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/threads/atfork.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"

struct vyre__deadlines {
  vyre_allocator allocator;
  vyre__atfork_entry atfork;
  pthread_mutex_t lock; /* protects all that follows, and the entries */
  pthread_cond_t changed;
  vyre__deadline *entries;
  uint64_t wakes_ns; /* next time the thread checks; UINT64_MAX: on a signal */
  bool is_started, is_ending;
  pthread_t thread;
};

static void make_locks(vyre__deadlines *deadlines) {
  vyre__condition_init(&deadlines->changed);
  pthread_mutex_init(&deadlines->lock, NULL);
}

/* In the child of a fork, the thread and all running kernels are gone. */
static void reset_in_child(void *self) {
  vyre__deadlines *deadlines = self;
  make_locks(deadlines);
  deadlines->entries = NULL;
  deadlines->is_started = false;
}

vyre_code vyre__deadlines_create(vyre_allocator allocator,
                                 vyre__deadlines **out, vyre_status *st) {
  vyre__deadlines *deadlines = vyre__alloc_zeroed(allocator, sizeof *deadlines);
  *out = NULL;
  if (!deadlines) return vyre__no_memory(st, "vyre_device_open", "watches", 1);
  deadlines->allocator = allocator;
  make_locks(deadlines);
  deadlines->atfork =
      (vyre__atfork_entry){reset_in_child, deadlines, NULL, NULL};
  vyre__atfork_add(&deadlines->atfork);
  *out = deadlines;
  return VYRE_OK;
}

void vyre__deadlines_free(vyre__deadlines *deadlines) {
  if (!deadlines) return;
  vyre__atfork_remove(&deadlines->atfork);
  pthread_mutex_lock(&deadlines->lock);
  deadlines->is_ending = true;
  pthread_cond_signal(&deadlines->changed);
  pthread_mutex_unlock(&deadlines->lock);
  if (deadlines->is_started) pthread_join(deadlines->thread, NULL);
  pthread_cond_destroy(&deadlines->changed);
  pthread_mutex_destroy(&deadlines->lock);
  vyre__resize(deadlines->allocator, deadlines, sizeof *deadlines, 0);
}

/* Sets the flags of deadlines that have passed. Returns the nearest other
 * one. */
static uint64_t set_passed(vyre__deadlines *deadlines) {
  uint64_t now = vyre__clock_ns(), nearest = UINT64_MAX;
  for (vyre__deadline *e = deadlines->entries; e; e = e->next) {
    if (e->has_passed) continue;
    if (e->deadline_ns > now) {
      if (e->deadline_ns < nearest) nearest = e->deadline_ns;
      continue;
    }
    /* Under the lock: an entry that has been removed is not touched. */
    e->has_passed = true;
    atomic_store(e->stop, 1);
  }
  return nearest;
}

static void *serve(void *self) {
  vyre__deadlines *deadlines = self;
  pthread_mutex_lock(&deadlines->lock);
  while (!deadlines->is_ending) {
    uint64_t nearest = deadlines->wakes_ns = set_passed(deadlines);
    if (nearest == UINT64_MAX) {
      pthread_cond_wait(&deadlines->changed, &deadlines->lock);
      continue;
    }
    struct timespec until = {(time_t)(nearest / 1000000000u),
                             (long)(nearest % 1000000000u)};
    pthread_cond_timedwait(&deadlines->changed, &deadlines->lock, &until);
  }
  pthread_mutex_unlock(&deadlines->lock);
  return NULL;
}

static bool start(vyre__deadlines *deadlines) {
  deadlines->wakes_ns = 0; /* it checks before it sleeps */
  deadlines->is_started =
      vyre__thread_start(&deadlines->thread, serve, deadlines) == 0;
  return deadlines->is_started;
}

vyre_code vyre__deadline_begin(vyre__deadlines *deadlines,
                               vyre__deadline *entry, uint64_t deadline_ns,
                               atomic_uint *stop, vyre_status *st) {
  *entry = (vyre__deadline){.deadline_ns = deadline_ns, .stop = stop};
  if (deadline_ns <= vyre__clock_ns()) {
    entry->has_passed = true;
    atomic_store(stop, 1);
  }
  pthread_mutex_lock(&deadlines->lock);
  bool is_ok = entry->has_passed || deadlines->is_started || start(deadlines);
  if (is_ok) {
    entry->next = deadlines->entries;
    if (entry->next) entry->next->previous = entry;
    deadlines->entries = entry;
    if (!entry->has_passed && deadline_ns < deadlines->wakes_ns) {
      deadlines->wakes_ns = deadline_ns;
      pthread_cond_signal(&deadlines->changed);
    }
  }
  pthread_mutex_unlock(&deadlines->lock);
  if (is_ok) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, "threads", NULL,
      "end other threads, raise the limit (ulimit -u), or set no timeout",
      "the system refused the thread that watches timeouts");
}

bool vyre__deadline_end(vyre__deadlines *deadlines, vyre__deadline *entry) {
  pthread_mutex_lock(&deadlines->lock);
  if (entry->previous) {
    entry->previous->next = entry->next;
  } else {
    deadlines->entries = entry->next;
  }
  if (entry->next) entry->next->previous = entry->previous;
  bool has_passed = entry->has_passed;
  pthread_mutex_unlock(&deadlines->lock);
  return has_passed;
}
