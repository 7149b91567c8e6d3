/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads: how they start, look for work, sleep, wake and end. */
/* For processors and futexes. NOLINTNEXTLINE(bugprone-reserved-identifier) */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/cpu/threads/pool_internal.h"

enum {
  LOOKS = 16,            /* between two looks at the clock */
  IN_VAIN_NS = 20000,    /* how long one that found nothing stays awake */
  RETRY_NS = 1000000000, /* after the system refused a thread */
};

/* --- the system --------------------------------------------------------------*/

/* Gives whether it was woken: not, if the word was not as seen, or by a signal. */
bool vyre__pool_futex_sleep(atomic_uint *word, unsigned seen) {
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) == 0;
}

unsigned vyre__pool_futex_wake(atomic_uint *word, unsigned most) {
  long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE,
                       most > INT_MAX ? INT_MAX : most, NULL, NULL, 0);
  return woken > 0 ? (unsigned)woken : 0;
}

uint32_t vyre__pool_cpu(void) {
  return (uint32_t)(sched_getcpu() + 1);
}

uint32_t vyre__pool_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return (uint32_t)CPU_COUNT(&set);
  }
  long online =
      sysconf(_SC_NPROCESSORS_ONLN); /* more than the set has room for */
  return online > 0 ? (uint32_t)online : 1;
}

/* The system likes to wake a thread where its waker runs, which then has to wait
 * until it sleeps again. It is moved, but not bound to where it gets: a thread that
 * has begun must not wait for one processor while another is free. */
void vyre__pool_keep_off(uint32_t cpu) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(cpu - 1, &others);
  if (CPU_COUNT(&others) > 0 &&
      sched_setaffinity(0, sizeof others, &others) == 0) {
    sched_setaffinity(0, sizeof all, &all);
  }
}

/* Before a thread begins, and while it sleeps, the processor of whom it works for is
 * not for it: where processors share no cache, the system starts and wakes it there,
 * and it waits for as long as the other runs. */
typedef struct away {
  cpu_set_t all, others;
  bool is_set;
} away;

static away go_where(const pool_worker *worker) {
  away a = {.is_set = false};
  uint32_t cpu = worker->caller_cpu;
  if (!worker->pool->has_room || cpu == 0 ||
      sched_getaffinity(0, sizeof a.all, &a.all) != 0 ||
      !CPU_ISSET(cpu - 1, &a.all) || CPU_COUNT(&a.all) < 2) {
    return a;
  }
  a.others = a.all;
  CPU_CLR(cpu - 1, &a.others);
  a.is_set = true;
  return a;
}

static away go_away(const pool_worker *worker) {
  away a = go_where(worker);
  if (a.is_set) {
    a.is_set = sched_setaffinity(0, sizeof a.others, &a.others) == 0;
  }
  return a;
}

/* Unless somebody else has set it meanwhile. */
static void come_back(const away *a) {
  cpu_set_t now;
  if (a->is_set && sched_getaffinity(0, sizeof now, &now) == 0 &&
      CPU_EQUAL(&now, &a->others)) {
    sched_setaffinity(0, sizeof a->all, &a->all);
  }
}

/* --- one thread --------------------------------------------------------------*/

static bool help_any(pool_worker *worker, bool was_asleep) {
  bool found = false;
  for (uint32_t i = 0; i < POOL_REGIONS; i++) {
    uint32_t region = (worker->index + i) % POOL_REGIONS;
    found |= vyre__pool_help(worker, region, was_asleep);
  }
  return found;
}

static bool has_news(const pool_worker *worker) {
  for (uint32_t i = 0; i < POOL_REGIONS; i++) {
    if (atomic_load(&worker->pool->regions[i].generation) != worker->seen[i]) {
      return true;
    }
  }
  return false;
}

/* Those who wake take what they wake off `sleepers`: it must not look as if one
 * was there that is on its way already. */
static void sleep_well(pool_worker *worker) {
  vyre__pool *pool = worker->pool;
  away a = go_away(worker);
  unsigned seen = atomic_load(&pool->bell);
  atomic_fetch_add(&pool->sleepers, 1);
  bool was_woken = !has_news(worker) && !atomic_load(&pool->is_ending) &&
                   vyre__pool_futex_sleep(&pool->bell, seen);
  if (!was_woken) atomic_fetch_sub(&pool->sleepers, 1);
  come_back(&a);
}

static void *work(void *self) {
  pool_worker *worker = self;
  vyre__pool *pool = worker->pool;
  const uint64_t in_vain = vyre__pool_ticks_of(IN_VAIN_NS);
  vyre__pool_self.pool = pool;
  vyre__pool_self.number = worker->index;
  bool was_asleep = true;
  cpu_set_t own;
  if (worker->is_away && sched_getaffinity(0, sizeof own, &own) == 0) {
    CPU_SET(worker->caller_cpu - 1, &own);
    sched_setaffinity(0, sizeof own, &own);
  }
  while (!atomic_load(&pool->is_ending)) {
    uint64_t start = pool_ticks(), most = in_vain;
    for (unsigned turn = 1;; turn++) {
      if (help_any(worker, was_asleep)) {
        was_asleep = false;
        start = pool_ticks();
        most = pool->spin_ticks;
      }
      if (turn % LOOKS == 0 &&
          (pool_ticks() - start >= most ||
           atomic_load_explicit(&pool->is_ending, memory_order_relaxed))) {
        break;
      }
      pool_pause();
    }
    sleep_well(worker);
    was_asleep = true;
  }
  return NULL;
}

/* --- all threads -------------------------------------------------------------*/

/* Signals are for the threads of the program. */
static bool create(pool_worker *worker) {
  sigset_t all, before;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  worker->caller_cpu = vyre__pool_cpu();
  away a = go_where(worker);
  worker->is_away =
      a.is_set &&
      pthread_attr_setaffinity_np(&attributes, sizeof a.others, &a.others) == 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&worker->thread, &attributes, work, worker);
  if (error != 0 && worker->is_away) { /* it may be that this is not allowed */
    worker->is_away = false;
    error = pthread_create(&worker->thread, NULL, work, worker);
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error == 0;
}

static void start_one(vyre__pool *pool) {
  /* Whoever has the lock starts one: that will do. */
  if (pthread_mutex_trylock(&pool->start_lock) != 0) return;
  unsigned started = atomic_load(&pool->started);
  if (started < pool->threads - 1 && !atomic_load(&pool->is_ending) &&
      (pool->retry_ns == 0 || vyre__clock_ns() >= pool->retry_ns)) {
    bool fine = create(&pool->workers[started]);
    pool->retry_ns = fine ? 0 : vyre__clock_ns() + RETRY_NS;
    if (fine) atomic_store(&pool->started, started + 1);
  }
  pthread_mutex_unlock(&pool->start_lock);
}

void vyre__pool_summon(vyre__pool *pool) {
  if (atomic_load(&pool->sleepers) == 0) {
    start_one(pool);
    return;
  }
  /* One that is about to sleep sees that the bell has rung. */
  atomic_fetch_add(&pool->bell, 1);
  unsigned woken = vyre__pool_futex_wake(&pool->bell, 1);
  if (woken > 0) atomic_fetch_sub(&pool->sleepers, woken);
}

void vyre__pool_dismiss(vyre__pool *pool) {
  pthread_mutex_lock(&pool->start_lock);
  atomic_store(&pool->is_ending, true);
  unsigned started = atomic_load(&pool->started);
  pthread_mutex_unlock(&pool->start_lock);
  atomic_fetch_add(&pool->bell, 1);
  vyre__pool_futex_wake(&pool->bell, INT_MAX);
  for (unsigned i = 0; i < started; i++) {
    pthread_join(pool->workers[i].thread, NULL);
  }
}
