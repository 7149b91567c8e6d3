/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates pools and runs jobs for callers. A job that is too short to share
 * runs on its caller; the cost of its items decides, which is measured as they
 * run. */
#include "backend/cpu/threads/pool.h"

#include <string.h>
#include <time.h>

#include "backend/cpu/threads/pool_internal.h"
#include "base/memory.h"
#include "base/status.h"

enum {
  SPIN_NS = 300000,
  CALIBRATE_NS = 20000,
  MIN_SPLITS = 64, /* splits per thread from which a first split may run on the
                      caller alone, to measure it, at no loss */
  TINY_JOBS = 4,   /* one of them is measured */
  MIN_MEASURED_NS = 200, /* shorter times mostly measure the measurement */
  NAP_NS = 20000, /* first wait for a free launcher; doubled after each try */
  MAX_NAP_NS = 1000000,
  MAX_UPCOMING = 1000, /* jobs that count as upcoming */
};

_Thread_local pool_self vyre__pool_self
    __attribute__((tls_model("initial-exec")));

/* --- time ------------------------------------------------------------------*/

static double tick_ns = 1;
static pthread_once_t ticks_once = PTHREAD_ONCE_INIT;

/* Measures the length of a tick. One percent of error does not matter here. */
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

/* --- the pool --------------------------------------------------------------*/

/* In the child of a fork, all other threads are gone, with the jobs they ran. A
 * new generation makes sure that no unit of such a job is claimed any more. */
static void reset_in_child(void *self) {
  vyre__pool *pool = self;
  for (uint32_t i = 0; i < POOL_SHARED_JOBS; i++) {
    atomic_fetch_add(&pool->shared_jobs[i].generation, 1);
    atomic_store(&pool->shared_jobs[i].is_taken, false);
  }
  for (uint32_t i = 0; i < POOL_LAUNCHERS; i++) {
    atomic_store(&pool->launchers[i].is_taken, false);
  }
  atomic_store(&pool->started, 0);
  atomic_store(&pool->sleepers, 0);
  atomic_store(&pool->reserved, 0);
  pthread_mutex_init(&pool->start_lock, NULL);
}

static size_t lines(size_t size) {
  return (size + POOL_LINE - 1) / POOL_LINE * POOL_LINE;
}

static void lay_out(vyre__pool *pool, unsigned char *at) {
  pool->launchers = (void *)at;
  at += sizeof(pool_launcher) * POOL_LAUNCHERS;
  pool->shared_jobs = (void *)at;
  at += sizeof(pool_shared_job) * POOL_SHARED_JOBS;
  for (uint32_t i = 0; i < POOL_SHARED_JOBS; i++) {
    pool->shared_jobs[i].shares = (void *)at;
    at += sizeof(pool_share) * pool->threads;
  }
  pool->workers = (void *)at;
  for (uint32_t i = 0; i + 1 < pool->threads; i++) {
    pool->workers[i].pool = pool;
    pool->workers[i].index = i;
  }
}

vyre_code vyre__pool_create(vyre_allocator allocator, uint32_t threads,
                            vyre__pool **out, vyre_status *st) {
  uint32_t processors = vyre__pool_processors();
  *out = NULL;
  if (threads == 0) threads = processors;
  if (threads > POOL_THREADS) threads = POOL_THREADS;
  size_t size = lines(sizeof(vyre__pool)) +
                sizeof(pool_launcher) * POOL_LAUNCHERS +
                (sizeof(pool_shared_job) + sizeof(pool_share) * threads) *
                    POOL_SHARED_JOBS +
                sizeof(pool_worker) * threads + POOL_LINE;
  /* Zero is a valid initial value of all atomics. */
  unsigned char *memory = vyre__alloc_zeroed(allocator, size);
  if (!memory) {
    return vyre__no_memory(st, "vyre_device_open", "bytes of threads", size);
  }
  unsigned char *start = memory + (POOL_LINE - (uintptr_t)memory % POOL_LINE);
  vyre__pool *pool = (void *)start;
  pool->allocator = allocator;
  pool->memory = memory;
  pool->size = size;
  pool->threads = threads;
  pool->has_cpu_per_thread = threads <= processors;
  pool->spare = threads < processors ? processors - threads : 0;
  lay_out(pool, start + lines(sizeof *pool));
  pthread_once(&ticks_once, measure_ticks);
  pool->steal_ticks = vyre__pool_ticks_of(POOL_STEAL_NS);
  vyre__pool_set_spin(pool, pool->has_cpu_per_thread ? SPIN_NS : 0);
  pthread_mutex_init(&pool->start_lock, NULL);
  pool->atfork = (vyre__atfork_entry){reset_in_child, pool, NULL, NULL};
  vyre__atfork_add(&pool->atfork);
  *out = pool;
  return VYRE_OK;
}

void vyre__pool_free(vyre__pool *pool) {
  if (!pool) return;
  vyre__atfork_remove(&pool->atfork);
  vyre__pool_join(pool);
  pthread_mutex_destroy(&pool->start_lock);
  vyre__resize(pool->allocator, pool->memory, pool->size, 0);
}

uint32_t vyre__pool_numbers(const vyre__pool *pool) {
  return pool->threads - 1 + POOL_LAUNCHERS;
}

uint32_t vyre__pool_threads(const vyre__pool *pool) {
  return pool->threads;
}

void vyre__pool_set_spin(vyre__pool *pool, uint64_t spin_ns) {
  pool->spin_ticks = vyre__pool_ticks_of(spin_ns);
}

/* --- running ---------------------------------------------------------------*/

static bool try_launcher(vyre__pool *pool, uint32_t index) {
  return !atomic_exchange_explicit(&pool->launchers[index].is_taken, true,
                                   memory_order_acquire);
}

/* Waits for a free launcher, with growing pauses. */
static uint32_t find_launcher(vyre__pool *pool) {
  struct timespec nap = {0, NAP_NS};
  for (;;) {
    for (uint32_t i = 0; i < POOL_LAUNCHERS; i++) {
      if (!atomic_load_explicit(&pool->launchers[i].is_taken,
                                memory_order_relaxed) &&
          try_launcher(pool, i)) {
        return i;
      }
    }
    nanosleep(&nap, NULL);
    if (nap.tv_nsec < MAX_NAP_NS) nap.tv_nsec *= 2;
  }
}

/* Runs items on the caller until the rest is known to be worth sharing,
 * or none is left. Returns the number of items run, and the cost of one
 * in picoseconds. The first piece is small, as *cost is only a hint or 0. All
 * that is left follows in one piece if it is short: more calls would cost more
 * than the items. */
static uint64_t run_first(pool_call *call, const vyre__job *job,
                          uint64_t min_items, uint64_t *cost,
                          uint32_t *result) {
  uint64_t start = pool_ticks(), items = 0, known = *cost ? job->count / 8 : 0;
  double spent = 0, rest = POOL_SHARE_NS;
  while (items < job->count) {
    uint64_t left = job->count - items;
    uint64_t size = items > known ? items : known;
    if (size < min_items) size = min_items;
    if (size > left || rest < POOL_SHARE_NS) size = left;
    *result = job->run(job->self, items, size, call->number);
    if (*result != 0) return items;
    items += size;
    spent = vyre__pool_ns_of(pool_ticks() - start);
    rest = spent / (double)items * (double)(job->count - items);
    if (rest >= POOL_SHARE_NS && spent >= MIN_MEASURED_NS) break;
  }
  vyre__pool_update_cost(job, spent, items);
  *cost = (uint64_t)(spent * 1000 / (double)items);
  return items;
}

/* Returns true if a job that takes @p total_ns runs on its caller alone,
 * because other threads came late for the last ones. */
static bool runs_alone(vyre__pool *pool, double total_ns) {
  uint32_t left = atomic_load_explicit(&pool->alone_left, memory_order_relaxed);
  if (left == 0 || total_ns >= POOL_LATE_NS) return false;
  atomic_store_explicit(&pool->alone_left, left - 1, memory_order_relaxed);
  return true;
}

/* Runs all items on the caller, and measures them. */
static uint32_t run_alone(const pool_call *call, const vyre__job *job) {
  uint64_t start = pool_ticks();
  uint32_t result = job->run(job->self, 0, job->count, call->number);
  double spent = vyre__pool_ns_of(pool_ticks() - start);
  if (result == 0) vyre__pool_update_cost(job, spent, job->count);
  return result;
}

/* Returns true if a job that takes @p total_ns runs on its caller without being
 * measured: the clock would take a good part of that time. Every few such jobs
 * of a caller are measured, because the cost may change. */
static bool is_tiny(const pool_call *call, double total_ns) {
  if (total_ns >= POOL_TINY_NS) return false;
  pool_launcher *own =
      &call->pool->launchers[call->number - (call->pool->threads - 1)];
  return ++own->tiny_jobs % TINY_JOBS != 0;
}

static uint32_t run_many(pool_call *call, const vyre__job *job,
                         uint64_t min_items) {
  uint64_t cost =
      job->cost ? atomic_load_explicit(job->cost, memory_order_relaxed) : 0;
  bool is_fine_grained =
      job->count / min_items >= (uint64_t)MIN_SPLITS * call->pool->threads;
  uint64_t first = 0;
  uint32_t result = 0;
  double total_ns = (double)cost * 1e-3 * (double)job->count;
  if (cost && total_ns < POOL_ALONE_NS) {
    if (!is_tiny(call, total_ns)) return run_alone(call, job);
    return job->run(job->self, 0, job->count, call->number);
  }
  if (cost ? total_ns < POOL_SHARE_NS : is_fine_grained) {
    first = run_first(call, job, min_items, &cost, &result);
    if (result != 0 || first == job->count) return result;
  } else if (cost && runs_alone(call->pool, total_ns)) {
    return run_alone(call, job);
  }
  return vyre__pool_run_shared(call, job, first, cost);
}

static uint32_t run_job(pool_call *call, const vyre__job *job, bool is_alone) {
  uint64_t min_items = job->min_items + !job->min_items;
  if (job->count > min_items && !is_alone)
    return run_many(call, job, min_items);
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
    call->upcoming =
        (uint32_t)(count - 1 - i < MAX_UPCOMING ? count - 1 - i : MAX_UPCOMING);
    result = run_job(call, &jobs[i], is_alone);
    if (result != 0) break;
  }
  if (done) *done = i;
  if (busy_ns) {
    *busy_ns = vyre__clock_ns() - start - call->waited_ns + call->others_ns;
  }
  return result;
}

void vyre__pool_enter(vyre__pool *pool, vyre__pool_session *session) {
  pool_self before = vyre__pool_self;
  *session = (vyre__pool_session){.pool = pool,
                                  .outer = before.pool,
                                  .outer_number = before.number,
                                  .number = before.number,
                                  .launcher = before.launcher,
                                  .is_alone = true,
                                  .is_inner = before.pool == pool};
  if (session->is_inner) return;
  if (!try_launcher(pool, session->launcher)) {
    session->launcher = find_launcher(pool);
  }
  session->number = pool->threads - 1 + session->launcher;
  session->is_alone = pool->threads == 1;
  vyre__pool_self = (pool_self){pool, session->number, session->launcher};
}

uint32_t vyre__pool_run_in(const vyre__pool_session *session,
                           const vyre__job *job, uint32_t upcoming) {
  pool_call call = {
      .pool = session->pool, .number = session->number, .upcoming = upcoming};
  return run_job(&call, job, session->is_alone);
}

void vyre__pool_leave(const vyre__pool_session *session) {
  if (session->is_inner) return;
  vyre__pool_self.pool = session->outer;
  vyre__pool_self.number = session->outer_number;
  atomic_store_explicit(&session->pool->launchers[session->launcher].is_taken,
                        false, memory_order_release);
}

uint32_t vyre__pool_run(vyre__pool *pool, const vyre__job *jobs, size_t count,
                        size_t *done, uint64_t *busy_ns) {
  vyre__pool_session session;
  vyre__pool_enter(pool, &session);
  pool_call call = {.pool = pool, .number = session.number};
  uint32_t result =
      run_jobs(&call, jobs, count, session.is_alone, done, busy_ns);
  vyre__pool_leave(&session);
  return result;
}
