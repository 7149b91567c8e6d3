/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/threads/deadline.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/threads/atfork.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

struct vyre__deadlines {
  vyre_allocator allocator;
  vyre__atfork_entry forks;
  pthread_mutex_t lock; /* for all that follows, and for what entries hold */
  pthread_cond_t sooner;
  vyre__deadline *entries;
  uint64_t wakes_ns; /* when the thread looks next; UINT64_MAX: when told */
  bool is_started, is_ending;
  pthread_t thread;
};

/* Deadlines must not depend on what the clock on the wall does. */
static void make_locks(vyre__deadlines *watch) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&watch->sooner, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&watch->lock, NULL);
}

/* In the child of a fork: neither the thread nor those who ran kernels are there. */
static void forget_thread(void *self) {
  vyre__deadlines *watch = self;
  make_locks(watch);
  watch->entries = NULL;
  watch->is_started = false;
}

vyre_code vyre__deadlines_create(vyre_allocator allocator,
                                 vyre__deadlines **out, vyre_status *st) {
  vyre__deadlines *watch = vyre__resize(allocator, NULL, 0, sizeof *watch);
  *out = NULL;
  if (!watch) return vyre__no_memory(st, "vyre_device_open", "watches", 1);
  memset(watch, 0, sizeof *watch);
  watch->allocator = allocator;
  make_locks(watch);
  watch->forks = (vyre__atfork_entry){forget_thread, watch, NULL, NULL};
  vyre__atfork_add(&watch->forks);
  *out = watch;
  return VYRE_OK;
}

void vyre__deadlines_free(vyre__deadlines *watch) {
  if (!watch) return;
  vyre__atfork_remove(&watch->forks);
  pthread_mutex_lock(&watch->lock);
  watch->is_ending = true;
  pthread_cond_signal(&watch->sooner);
  pthread_mutex_unlock(&watch->lock);
  if (watch->is_started) pthread_join(watch->thread, NULL);
  pthread_cond_destroy(&watch->sooner);
  pthread_mutex_destroy(&watch->lock);
  vyre__resize(watch->allocator, watch, sizeof *watch, 0);
}

/* Ends what is over. Gives the nearest deadline of the others. */
static uint64_t look(vyre__deadlines *watch) {
  uint64_t now = vyre__clock_ns(), nearest = UINT64_MAX;
  for (vyre__deadline *e = watch->entries; e; e = e->next) {
    if (e->is_over) continue;
    if (e->deadline_ns > now) {
      if (e->deadline_ns < nearest) nearest = e->deadline_ns;
      continue;
    }
    /* Under the lock: whoever has ended cannot be told any more. */
    e->is_over = true;
    atomic_store(e->stop, 1);
  }
  return nearest;
}

static void *guard(void *self) {
  vyre__deadlines *watch = self;
  pthread_mutex_lock(&watch->lock);
  while (!watch->is_ending) {
    uint64_t nearest = watch->wakes_ns = look(watch);
    if (nearest == UINT64_MAX) {
      pthread_cond_wait(&watch->sooner, &watch->lock);
      continue;
    }
    struct timespec until = {(time_t)(nearest / 1000000000u),
                             (long)(nearest % 1000000000u)};
    pthread_cond_timedwait(&watch->sooner, &watch->lock, &until);
  }
  pthread_mutex_unlock(&watch->lock);
  return NULL;
}

/* Signals are for the threads of the program. */
static bool start(vyre__deadlines *watch) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watch->wakes_ns = 0; /* it looks before it sleeps */
  watch->is_started = pthread_create(&watch->thread, NULL, guard, watch) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return watch->is_started;
}

vyre_code vyre__deadline_begin(vyre__deadlines *watch, vyre__deadline *entry,
                               uint64_t deadline_ns, atomic_uint *stop,
                               vyre_status *st) {
  *entry = (vyre__deadline){.deadline_ns = deadline_ns, .stop = stop};
  if (deadline_ns <= vyre__clock_ns()) {
    entry->is_over = true;
    atomic_store(stop, 1);
  }
  pthread_mutex_lock(&watch->lock);
  bool fine = entry->is_over || watch->is_started || start(watch);
  if (fine) {
    entry->next = watch->entries;
    if (entry->next) entry->next->previous = entry;
    watch->entries = entry;
    if (!entry->is_over && deadline_ns < watch->wakes_ns) {
      watch->wakes_ns = deadline_ns;
      pthread_cond_signal(&watch->sooner);
    }
  }
  pthread_mutex_unlock(&watch->lock);
  if (fine) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, "threads", NULL,
      "end other threads, raise the limit (ulimit -u), or give no timeout",
      "the system has no thread left that could watch a timeout");
}

bool vyre__deadline_end(vyre__deadlines *watch, vyre__deadline *entry) {
  pthread_mutex_lock(&watch->lock);
  if (entry->previous) {
    entry->previous->next = entry->next;
  } else {
    watch->entries = entry->next;
  }
  if (entry->next) entry->next->previous = entry->previous;
  bool is_over = entry->is_over;
  pthread_mutex_unlock(&watch->lock);
  return is_over;
}
