/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The worker threads of a pool: how they start, look for work, sleep, wake and
 * end. */
/* CPU affinity and futexes. NOLINTNEXTLINE(bugprone-reserved-identifier) */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/cpu/threads/pool_internal.h"

enum {
  CLOCK_INTERVAL = 16,   /* spins between two readings of the clock */
  FIRST_SPIN_NS = 20000, /* time a thread stays awake if it finds no work */
  RETRY_NS = 1000000000, /* pause after the system refused a thread */
};

/* --- system calls ----------------------------------------------------------*/

/* Returns true if another thread woke this one; false if *word was not @p seen,
 * or after a signal. */
bool vyre__pool_futex_sleep(atomic_uint *word, unsigned seen) {
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0) == 0;
}

unsigned vyre__pool_futex_wake(atomic_uint *word, unsigned max) {
  long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE,
                       max > INT_MAX ? INT_MAX : max, NULL, NULL, 0);
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
      sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t can hold */
  return online > 0 ? (uint32_t)online : 1;
}

/* Linux tends to wake a thread on the processor of its waker, where it waits
 * until the waker sleeps. This moves the thread, but does not pin it: a thread
 * that has started on a job must not wait for one processor while another is
 * free. */
void vyre__pool_leave_cpu(uint32_t cpu) {
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(cpu - 1, &others);
  if (CPU_COUNT(&others) > 0 &&
      sched_setaffinity(0, sizeof others, &others) == 0) {
    sched_setaffinity(0, sizeof all, &all);
  }
}

/* Affinity of a worker before it starts and while it sleeps: without the
 * processor of the caller it works for. Where processors share no cache, Linux
 * would start and wake it there, and it would wait until the caller sleeps. */
typedef struct cpu_mask {
  cpu_set_t all, others;
  bool is_set;
} cpu_mask;

static cpu_mask mask_without_caller(const pool_worker *worker) {
  cpu_mask a = {.is_set = false};
  uint32_t cpu = worker->caller_cpu;
  if (!worker->pool->has_cpu_per_thread || cpu == 0 ||
      sched_getaffinity(0, sizeof a.all, &a.all) != 0 ||
      !CPU_ISSET(cpu - 1, &a.all) || CPU_COUNT(&a.all) < 2) {
    return a;
  }
  a.others = a.all;
  CPU_CLR(cpu - 1, &a.others);
  a.is_set = true;
  return a;
}

static cpu_mask avoid_caller_cpu(const pool_worker *worker) {
  cpu_mask a = mask_without_caller(worker);
  if (a.is_set) {
    a.is_set = sched_setaffinity(0, sizeof a.others, &a.others) == 0;
  }
  return a;
}

/* Restores the affinity, unless it was changed in the meantime. */
static void restore_cpus(const cpu_mask *a) {
  cpu_set_t now;
  if (a->is_set && sched_getaffinity(0, sizeof now, &now) == 0 &&
      CPU_EQUAL(&now, &a->others)) {
    sched_setaffinity(0, sizeof a->all, &a->all);
  }
}

/* --- one worker ------------------------------------------------------------*/

static bool help_any(pool_worker *worker, bool was_asleep) {
  bool found = false;
  for (uint32_t i = 0; i < POOL_SHARED_JOBS; i++) {
    uint32_t shared = (worker->index + i) % POOL_SHARED_JOBS;
    found |= vyre__pool_help(worker, shared, was_asleep);
  }
  return found;
}

static bool has_news(const pool_worker *worker) {
  for (uint32_t i = 0; i < POOL_SHARED_JOBS; i++) {
    if (atomic_load(&worker->pool->shared_jobs[i].generation) !=
        worker->seen[i]) {
      return true;
    }
  }
  return false;
}

/* Sleeps. The waking thread decrements `sleepers`, so that it never counts a
 * thread that is about to wake. */
static void sleep_until_woken(pool_worker *worker) {
  vyre__pool *pool = worker->pool;
  cpu_mask a = avoid_caller_cpu(worker);
  unsigned seen = atomic_load(&pool->wake_counter);
  atomic_fetch_add(&pool->sleepers, 1);
  bool was_woken = (pool_is_reserved(worker) || !has_news(worker)) &&
                   !atomic_load(&pool->is_ending) &&
                   vyre__pool_futex_sleep(&pool->wake_counter, seen);
  if (!was_woken) atomic_fetch_sub(&pool->sleepers, 1);
  restore_cpus(&a);
}

static void *run_worker(void *self) {
  pool_worker *worker = self;
  vyre__pool *pool = worker->pool;
  const uint64_t first_spin = vyre__pool_ticks_of(FIRST_SPIN_NS);
  vyre__pool_self.pool = pool;
  vyre__pool_self.number = worker->index;
  bool was_asleep = true;
  cpu_set_t own;
  if (worker->avoids_caller_cpu &&
      sched_getaffinity(0, sizeof own, &own) == 0) {
    CPU_SET(worker->caller_cpu - 1, &own);
    sched_setaffinity(0, sizeof own, &own);
  }
  while (!atomic_load(&pool->is_ending)) {
    uint64_t start = pool_ticks(), max = first_spin;
    for (unsigned spins = 1;; spins++) {
      if (help_any(worker, was_asleep)) {
        was_asleep = false;
        start = pool_ticks();
        max = pool->spin_ticks;
      }
      if (spins % CLOCK_INTERVAL == 0 &&
          (pool_ticks() - start >= max || pool_is_reserved(worker) ||
           atomic_load_explicit(&pool->is_ending, memory_order_relaxed))) {
        break;
      }
      pool_pause();
    }
    sleep_until_woken(worker);
    was_asleep = true;
  }
  return NULL;
}

/* --- all workers -----------------------------------------------------------*/

/* Starts a thread with all signals blocked: they are for the application. */
static bool start_worker(pool_worker *worker) {
  sigset_t all, before;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  worker->caller_cpu = vyre__pool_cpu();
  cpu_mask a = mask_without_caller(worker);
  worker->avoids_caller_cpu =
      a.is_set &&
      pthread_attr_setaffinity_np(&attributes, sizeof a.others, &a.others) == 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&worker->thread, &attributes, run_worker, worker);
  if (error != 0 && worker->avoids_caller_cpu) { /* affinity may be forbidden */
    worker->avoids_caller_cpu = false;
    error = pthread_create(&worker->thread, NULL, run_worker, worker);
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error == 0;
}

static void start_one(vyre__pool *pool) {
  /* If another thread holds the lock, it starts one, which is enough. */
  if (pthread_mutex_trylock(&pool->start_lock) != 0) return;
  unsigned started = atomic_load(&pool->started);
  if (started < pool->threads - 1 && !atomic_load(&pool->is_ending) &&
      (pool->retry_ns == 0 || vyre__clock_ns() >= pool->retry_ns)) {
    bool is_ok = start_worker(&pool->workers[started]);
    pool->retry_ns = is_ok ? 0 : vyre__clock_ns() + RETRY_NS;
    if (is_ok) atomic_store(&pool->started, started + 1);
  }
  pthread_mutex_unlock(&pool->start_lock);
}

void vyre__pool_wake_one(vyre__pool *pool) {
  if (atomic_load(&pool->sleepers) == 0) {
    start_one(pool);
    return;
  }
  /* A thread that is about to sleep notices the changed counter. */
  atomic_fetch_add(&pool->wake_counter, 1);
  unsigned woken = vyre__pool_futex_wake(&pool->wake_counter, 1);
  if (woken > 0) atomic_fetch_sub(&pool->sleepers, woken);
}

void vyre__pool_reserve(vyre__pool *pool) {
  atomic_fetch_add(&pool->reserved, 1);
}

void vyre__pool_unreserve(vyre__pool *pool) {
  /* In the child of a fork, the count may be 0 already. */
  unsigned reserved = atomic_load(&pool->reserved);
  while (reserved > 0 && !atomic_compare_exchange_weak(
                             &pool->reserved, &reserved, reserved - 1));
  /* A worker that is about to sleep notices the changed counter. */
  atomic_fetch_add(&pool->wake_counter, 1);
  unsigned woken = vyre__pool_futex_wake(&pool->wake_counter, 1);
  if (woken > 0) atomic_fetch_sub(&pool->sleepers, woken);
}

void vyre__pool_join(vyre__pool *pool) {
  pthread_mutex_lock(&pool->start_lock);
  atomic_store(&pool->is_ending, true);
  unsigned started = atomic_load(&pool->started);
  pthread_mutex_unlock(&pool->start_lock);
  atomic_fetch_add(&pool->wake_counter, 1);
  vyre__pool_futex_wake(&pool->wake_counter, INT_MAX);
  for (unsigned i = 0; i < started; i++) {
    pthread_join(pool->workers[i].thread, NULL);
  }
}
