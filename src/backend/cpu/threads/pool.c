/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/threads/pool.h"

#include <string.h>
#include <time.h>

#include "backend/cpu/threads/pool_internal.h"
#include "base/memory.h"
#include "base/status.h"

enum {
  SPIN_NS = 300000,
  CALIBRATE_NS = 20000,
  FINE = 64,     /* splits a thread beyond which one is no loss if it is not
                     shared */
  SURE_NS = 200, /* measured: what measuring takes is in it */
  NAP_NS =
      20000, /* of one that finds no launcher; each is twice the one before */
  LONG_NAP_NS = 1000000,
  MOST_MORE = 1000, /* jobs that are looked forward to */
};

_Thread_local pool_self vyre__pool_self
    __attribute__((tls_model("initial-exec")));

/* --- time --------------------------------------------------------------------*/

static double tick_ns = 1;
static pthread_once_t ticks_once = PTHREAD_ONCE_INIT;

/* A part in a hundred is good enough for all that is decided by it. */
static void measure_ticks(void) {
  uint64_t start = vyre__clock_ns(), first = pool_ticks(), now;
  do {
    now = vyre__clock_ns();
  } while (now - start < CALIBRATE_NS);
  uint64_t ticks = pool_ticks() - first;
  if (ticks > 0) tick_ns = (double)(now - start) / (double)ticks;
}

uint64_t vyre__pool_ticks_of(uint64_t ns) {
  return (uint64_t)((double)ns / tick_ns);
}

double vyre__pool_ns_of(uint64_t ticks) {
  return (double)ticks * tick_ns;
}

/* --- the pool ----------------------------------------------------------------*/

/* In the child of a fork: threads, and whoever ran jobs, are not there. Units that
 * are not claimed must not be: they have another generation than their region. */
static void forget_threads(void *self) {
  vyre__pool *pool = self;
  for (uint32_t i = 0; i < POOL_REGIONS; i++) {
    atomic_fetch_add(&pool->regions[i].generation, 1);
    atomic_store(&pool->regions[i].is_taken, false);
  }
  for (uint32_t i = 0; i < POOL_LAUNCHERS; i++) {
    atomic_store(&pool->launchers[i].is_taken, false);
  }
  atomic_store(&pool->started, 0);
  atomic_store(&pool->sleepers, 0);
  pthread_mutex_init(&pool->start_lock, NULL);
}

static size_t lines(size_t size) {
  return (size + POOL_LINE - 1) / POOL_LINE * POOL_LINE;
}

static void place(vyre__pool *pool, unsigned char *at) {
  pool->launchers = (void *)at;
  at += sizeof(pool_launcher) * POOL_LAUNCHERS;
  pool->regions = (void *)at;
  at += sizeof(pool_region) * POOL_REGIONS;
  for (uint32_t i = 0; i < POOL_REGIONS; i++) {
    pool->regions[i].shares = (void *)at;
    at += sizeof(pool_share) * pool->threads;
  }
  pool->workers = (void *)at;
  for (uint32_t i = 0; i + 1 < pool->threads; i++) {
    pool->workers[i].pool = pool;
    pool->workers[i].index = i;
  }
}

vyre_code vyre__pool_make(vyre_allocator allocator, uint32_t threads,
                          vyre__pool **out, vyre_status *st) {
  uint32_t processors = vyre__pool_processors();
  *out = NULL;
  if (threads == 0) threads = processors;
  if (threads > POOL_THREADS) threads = POOL_THREADS;
  size_t size =
      lines(sizeof(vyre__pool)) + sizeof(pool_launcher) * POOL_LAUNCHERS +
      (sizeof(pool_region) + sizeof(pool_share) * threads) * POOL_REGIONS +
      sizeof(pool_worker) * threads + POOL_LINE;
  unsigned char *memory = vyre__resize(allocator, NULL, 0, size);
  if (!memory) {
    return vyre__no_memory(st, "vyre_device_open", "bytes of threads", size);
  }
  memset(memory, 0, size); /* all atomics are 0 and false */
  unsigned char *start = memory + (POOL_LINE - (uintptr_t)memory % POOL_LINE);
  vyre__pool *pool = (void *)start;
  pool->allocator = allocator;
  pool->memory = memory;
  pool->size = size;
  pool->threads = threads;
  pool->has_room = threads <= processors;
  place(pool, start + lines(sizeof *pool));
  pthread_once(&ticks_once, measure_ticks);
  vyre__pool_spin(pool, pool->has_room ? SPIN_NS : 0);
  pthread_mutex_init(&pool->start_lock, NULL);
  pool->forks = (vyre__atfork_entry){forget_threads, pool, NULL, NULL};
  vyre__atfork_add(&pool->forks);
  *out = pool;
  return VYRE_OK;
}

void vyre__pool_free(vyre__pool *pool) {
  if (!pool) return;
  vyre__atfork_remove(&pool->forks);
  vyre__pool_dismiss(pool);
  pthread_mutex_destroy(&pool->start_lock);
  vyre__resize(pool->allocator, pool->memory, pool->size, 0);
}

uint32_t vyre__pool_threads(const vyre__pool *pool) {
  return pool->threads;
}

uint32_t vyre__pool_numbers(const vyre__pool *pool) {
  return pool->threads - 1 + POOL_LAUNCHERS;
}

void vyre__pool_spin(vyre__pool *pool, uint64_t spin_ns) {
  pool->spin_ticks = vyre__pool_ticks_of(spin_ns);
}

/* --- running -----------------------------------------------------------------*/

static bool take_launcher(vyre__pool *pool, uint32_t index) {
  return !atomic_exchange_explicit(&pool->launchers[index].is_taken, true,
                                   memory_order_acquire);
}

/* All were taken: looks again and again, ever less often. */
static uint32_t find_launcher(vyre__pool *pool) {
  struct timespec nap = {0, NAP_NS};
  for (;;) {
    for (uint32_t i = 0; i < POOL_LAUNCHERS; i++) {
      if (!atomic_load_explicit(&pool->launchers[i].is_taken,
                                memory_order_relaxed) &&
          take_launcher(pool, i)) {
        return i;
      }
    }
    nanosleep(&nap, NULL);
    if (nap.tv_nsec < LONG_NAP_NS) nap.tv_nsec *= 2;
  }
}

/* Runs pieces on the caller until it is clear that the rest is worth sharing, or
 * none is left. Gives how many were run, and what one took in ps. */
static uint64_t run_first(pool_call *call, const vyre__job *job, uint64_t least,
                          uint64_t *cost, uint32_t *result) {
  uint64_t start = pool_ticks(), pieces = 0;
  double spent = 0;
  while (pieces < job->count) {
    uint64_t left = job->count - pieces;
    uint64_t size = pieces > least ? pieces : least;
    if (size > left) size = left;
    *result = job->run(job->self, pieces, size, call->number);
    if (*result != 0) return pieces;
    pieces += size;
    spent = vyre__pool_ns_of(pool_ticks() - start);
    double rest = spent / (double)pieces * (double)(job->count - pieces);
    if (rest >= POOL_SHARE_NS && spent >= SURE_NS) break;
  }
  vyre__pool_learn(job, spent, pieces);
  *cost = (uint64_t)(spent * 1000 / (double)pieces);
  return pieces;
}

static uint32_t run_many(pool_call *call, const vyre__job *job,
                         uint64_t least) {
  uint64_t cost =
      job->cost ? atomic_load_explicit(job->cost, memory_order_relaxed) : 0;
  bool is_fine = job->count / least >= (uint64_t)FINE * call->pool->threads;
  uint64_t first = 0;
  uint32_t result = 0;
  if (cost ? (double)cost * (double)job->count < POOL_SHARE_NS * 1e3
           : is_fine) {
    first = run_first(call, job, least, &cost, &result);
    if (result != 0 || first == job->count) return result;
  }
  return vyre__pool_share(call, job, first, cost);
}

static uint32_t run_job(pool_call *call, const vyre__job *job, bool is_alone) {
  uint64_t least = job->least + !job->least;
  if (job->count > least && !is_alone) return run_many(call, job, least);
  if (job->count == 0) return 0;
  return job->run(job->self, 0, job->count, call->number);
}

static uint32_t run_jobs(pool_call *call, const vyre__job *jobs, size_t count,
                         bool is_alone, size_t *done, uint64_t *busy_ns) {
  uint64_t start = 0;
  uint32_t result = 0;
  size_t i = 0;
  if (busy_ns) {
    call->is_timed = true;
    start = vyre__clock_ns();
  }
  for (; i < count; i++) {
    call->more =
        (uint32_t)(count - 1 - i < MOST_MORE ? count - 1 - i : MOST_MORE);
    result = run_job(call, &jobs[i], is_alone);
    if (result != 0) break;
  }
  if (done) *done = i;
  if (busy_ns) {
    *busy_ns = vyre__clock_ns() - start - call->waited_ns + call->others_ns;
  }
  return result;
}

void vyre__pool_enter(vyre__pool *pool, vyre__pool_stay *stay) {
  pool_self before = vyre__pool_self;
  *stay = (vyre__pool_stay){.pool = pool,
                            .outer = before.pool,
                            .outer_number = before.number,
                            .number = before.number,
                            .launcher = before.launcher,
                            .is_alone = true,
                            .is_inner = before.pool == pool};
  if (stay->is_inner) return;
  if (!take_launcher(pool, stay->launcher)) {
    stay->launcher = find_launcher(pool);
  }
  stay->number = pool->threads - 1 + stay->launcher;
  stay->is_alone = pool->threads == 1;
  vyre__pool_self = (pool_self){pool, stay->number, stay->launcher};
}

uint32_t vyre__pool_run_in(const vyre__pool_stay *stay, const vyre__job *job,
                           uint32_t more) {
  pool_call call = {.pool = stay->pool, .number = stay->number, .more = more};
  return run_job(&call, job, stay->is_alone);
}

void vyre__pool_leave(const vyre__pool_stay *stay) {
  if (stay->is_inner) return;
  vyre__pool_self.pool = stay->outer;
  vyre__pool_self.number = stay->outer_number;
  atomic_store_explicit(&stay->pool->launchers[stay->launcher].is_taken, false,
                        memory_order_release);
}

uint32_t vyre__pool_run(vyre__pool *pool, const vyre__job *jobs, size_t count,
                        size_t *done, uint64_t *busy_ns) {
  vyre__pool_stay stay;
  vyre__pool_enter(pool, &stay);
  pool_call call = {.pool = pool, .number = stay.number};
  uint32_t result = run_jobs(&call, jobs, count, stay.is_alone, done, busy_ns);
  vyre__pool_leave(&stay);
  return result;
}
