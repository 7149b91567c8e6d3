/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shares one job between threads. pool_internal.h explains how threads read a
 * shared job without a lock. */
#include "backend/cpu/threads/pool_internal.h"

#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define STORE(word, value) \
  atomic_store_explicit(&(word), (value), memory_order_relaxed)

enum {
  UNIT_BITS = 16,
  WAKES_EACH = 2,
  CLOCK_INTERVAL = 16,
  PREFETCHED_SHARES = 8,
  STEAL_AT_ONCE = 8 /* part of POOL_STEAL_NS */
};
_Static_assert(POOL_SPLIT *POOL_THREADS < 1 << UNIT_BITS,
               "unit numbers have UNIT_BITS bits");

/* Copy of a shared job, as one thread has read it. */
typedef struct job_view {
  uint64_t generation;
  pool_run *run;
  void *self;
  uint64_t first, count, chunk;
  uint32_t share_count;
  bool is_timed;
} job_view;

static job_view read_job(pool_shared_job *shared) {
  job_view v;
  /* Acquire: everything stored before this generation is visible. */
  v.generation =
      atomic_load_explicit(&shared->generation, memory_order_acquire);
  v.run = LOAD(shared->run);
  v.self = LOAD(shared->self);
  v.first = LOAD(shared->first);
  v.count = LOAD(shared->count);
  v.chunk = LOAD(shared->chunk);
  v.share_count = LOAD(shared->share_count);
  v.is_timed = LOAD(shared->is_timed);
  return v;
}

static bool is_same(uint64_t next, uint64_t generation) {
  return next >> UNIT_BITS == generation << UNIT_BITS >> UNIT_BITS;
}

/* Prefetches a cache line for writing. It is then transferred once, not first
 * for reading and again for writing, and several transfers overlap. (Without
 * knowledge of the processor, the compiler's builtin prefetches for reading
 * only. Processors without prefetchw ignore it.) */
static void prefetch_for_write(const void *line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw (%0)" : : "r"(line));
#else
  __builtin_prefetch(line, 1);
#endif
}

/* Claims one unit of a share. Returns false if none is left, or if the share
 * belongs to another job by now. */
static bool claim(pool_share *share, uint64_t generation, uint32_t *unit) {
  uint64_t next = LOAD(share->next);
  do {
    *unit = (uint32_t)(next & ((1u << UNIT_BITS) - 1));
    /* Acquire: a thread that sees the end of a later job also sees the `next`
     * of that job, and not of the one before. */
    if (!is_same(next, generation) ||
        *unit >= atomic_load_explicit(&share->end, memory_order_acquire)) {
      return false;
    }
  } while (!atomic_compare_exchange_weak_explicit(&share->next, &next, next + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed));
  return true;
}

/* Runs a claimed unit, unless the job has ended. Returns the number of its
 * items. */
static uint64_t run_unit(pool_shared_job *shared, const job_view *v,
                         uint32_t unit, uint32_t number) {
  uint64_t at = v->first + unit * v->chunk, size = v->count - at;
  unsigned none = 0;
  if (size > v->chunk) size = v->chunk;
  if (LOAD(shared->result) != 0) return 0;
  uint32_t result = v->run(v->self, at, size, number);
  if (result != 0) {
    atomic_compare_exchange_strong_explicit(&shared->result, &none, result,
                                            memory_order_relaxed,
                                            memory_order_relaxed);
  }
  return size;
}

static bool has_units(pool_shared_job *shared, const job_view *v) {
  for (uint32_t i = 0; i < v->share_count; i++) {
    uint64_t next = LOAD(shared->shares[i].next);
    if (is_same(next, v->generation) &&
        (next & ((1u << UNIT_BITS) - 1)) < LOAD(shared->shares[i].end)) {
      return true;
    }
  }
  return false;
}

/* Leaves the other shares to their threads for a while. Each share covers the
 * same part of the memory in every job of the same size, so its thread has that
 * part in its cache. Returns false if units are left afterwards. */
static bool wait_before_stealing(const vyre__pool *pool,
                                 pool_shared_job *shared, const job_view *v) {
  uint64_t start = pool_ticks();
  while (has_units(shared, v)) {
    if (pool_ticks() - start >= pool->steal_ticks) return false;
    pool_pause();
  }
  return true;
}

/* --- workers ---------------------------------------------------------------*/

/* Reports finished units. Afterwards the entry may belong to another job. */
static void report_done(pool_shared_job *shared, uint32_t units) {
  /* Sequentially consistent with the caller's check before it sleeps: at least
   * one of the two threads sees the other's store. */
  atomic_fetch_add(&shared->done, units);
  if (atomic_load(&shared->is_awaited)) {
    vyre__pool_futex_wake(&shared->done, 1);
  }
}

/* Wakes further threads on behalf of the caller, right after this thread
 * woke. */
static void wake_more(pool_worker *worker, pool_shared_job *shared) {
  for (int i = 0; i < WAKES_EACH && pool_has_idle(worker->pool); i++) {
    unsigned wakes_left = LOAD(shared->wakes_left);
    while (wakes_left > 0 &&
           !atomic_compare_exchange_weak(&shared->wakes_left, &wakes_left,
                                         wakes_left - 1));
    if (wakes_left == 0) return;
    vyre__pool_wake_one(worker->pool);
  }
}

/* Moves a worker away from the caller's processor: there, each would wait for
 * the other. */
static void leave_caller_cpu(const pool_worker *worker,
                             pool_shared_job *shared) {
  uint32_t cpu = LOAD(shared->cpu);
  if (worker->pool->has_cpu_per_thread && cpu != 0 && cpu == vyre__pool_cpu()) {
    vyre__pool_leave_cpu(cpu);
  }
}

bool vyre__pool_help(pool_worker *worker, uint32_t index, bool was_asleep) {
  pool_shared_job *shared = &worker->pool->shared_jobs[index];
  if (LOAD(shared->generation) == worker->seen[index]) return false;
  if (pool_is_reserved(worker)) return false;
  job_view v = read_job(shared);
  uint64_t start = 0;
  bool found = false;
  worker->seen[index] = v.generation;
  worker->caller_cpu = LOAD(shared->cpu);
  if (v.share_count == 0) return false; /* the entry was never used */
  /* Share 0 is for the caller. */
  uint32_t own = (worker->index + 1) % v.share_count;
  if (!was_asleep) {
    prefetch_for_write(&shared->shares[own]);
    prefetch_for_write(&shared->done);
  } else if (has_units(shared, &v)) {
    leave_caller_cpu(worker, shared);
    wake_more(worker, shared);
  }
  bool is_owner = worker->index + 1 < v.share_count;
  for (uint32_t i = 0; i < v.share_count; i++) {
    uint32_t at = own + i < v.share_count ? own + i : own + i - v.share_count;
    uint32_t unit, units = 0;
    if (!was_asleep && i == (is_owner ? 1 : 0) &&
        wait_before_stealing(worker->pool, shared, &v)) {
      break;
    }
    while (!pool_is_reserved(worker) &&
           claim(&shared->shares[at], v.generation, &unit)) {
      if (v.is_timed && start == 0) start = vyre__clock_ns();
      run_unit(shared, &v, unit, worker->index);
      units++;
    }
    if (units == 0) continue;
    found = true;
    if (v.is_timed) {
      uint64_t now = vyre__clock_ns();
      atomic_fetch_add_explicit(&shared->busy_ns, now - start,
                                memory_order_relaxed);
      start = now;
    }
    report_done(shared, units);
  }
  /* Not finished: it looks at the job again when it may. */
  if (pool_is_reserved(worker)) worker->seen[index] = v.generation - 1;
  /* A spinning thread starts at once, and checks its processor afterwards. */
  if (found && !was_asleep) leave_caller_cpu(worker, shared);
  return found;
}

/* --- the caller ------------------------------------------------------------*/

/* Prefetches the lines that the next job writes first. */
static void prefetch_next_job(const vyre__pool *pool,
                              const pool_shared_job *shared) {
  prefetch_for_write(&shared->done);
  for (uint32_t i = 0; i < pool->threads && i < PREFETCHED_SHARES; i++) {
    prefetch_for_write(&shared->shares[i]);
  }
}

static pool_shared_job *acquire_shared_job(const pool_call *call) {
  vyre__pool *pool = call->pool;
  for (uint32_t i = 0; i < POOL_SHARED_JOBS; i++) {
    pool_shared_job *shared =
        &pool->shared_jobs[(call->number + i) % POOL_SHARED_JOBS];
    if (!LOAD(shared->is_taken) &&
        !atomic_exchange_explicit(&shared->is_taken, true,
                                  memory_order_acquire)) {
      prefetch_next_job(pool, shared);
      return shared;
    }
  }
  return NULL;
}

/* Splits the items from v->first on into units of v->chunk. Returns their
 * number. If items are short, all units have the same size and all shares the
 * same number of units, because such a job ends with its largest share.
 * Otherwise units are small, so that a thread that finishes early can steal
 * more. */
static uint32_t split(const vyre__pool *pool, const vyre__job *job,
                      uint64_t cost, job_view *v) {
  uint64_t rest = v->count - v->first,
           min_items = job->min_items + !job->min_items;
  uint64_t blocks = (rest - 1) / min_items + 1, each = POOL_SPLIT;
  v->share_count = blocks < pool->threads ? (uint32_t)blocks : pool->threads;
  uint64_t min_unit = cost ? (uint64_t)POOL_UNIT_NS * 1000 / cost : 0;
  if (min_unit > min_items) {
    each = rest / ((uint64_t)v->share_count * min_unit);
    if (each > POOL_SPLIT) each = POOL_SPLIT;
  }
  v->chunk = (rest - 1) / (v->share_count * (each + !each)) + 1;
  if (v->chunk < min_items) v->chunk = min_items;
  uint32_t units = (uint32_t)((rest - 1) / v->chunk + 1);
  if (v->share_count > units) v->share_count = units;
  return units;
}

/* Fills the entry. The line that idle threads poll is written last and in one
 * go: they fetch it as soon as one word changes, and a second write would have
 * to fetch it back. */
static void publish(pool_shared_job *shared, job_view *v, uint32_t units) {
  v->generation = LOAD(shared->generation) + 1;
  uint32_t cpu = vyre__pool_cpu();
  STORE(shared->done, 0);
  STORE(shared->result, 0);
  STORE(shared->is_awaited, 0);
  STORE(shared->wakes_left, 0);
  STORE(shared->busy_ns, 0);
  uint32_t at = 0;
  for (uint32_t i = 0; i < v->share_count; i++) {
    uint32_t end = (uint32_t)((uint64_t)units * (i + 1) / v->share_count);
    /* `next` is stored before `end`. With a new end and an old `next`, a thread
     * preempted in claim() would get one unit too many of the job before. */
    STORE(shared->shares[i].next, v->generation << UNIT_BITS | at);
    atomic_store_explicit(&shared->shares[i].end, end, memory_order_release);
    at = end;
  }
  STORE(shared->run, v->run);
  STORE(shared->self, v->self);
  STORE(shared->first, v->first);
  STORE(shared->count, v->count);
  STORE(shared->chunk, v->chunk);
  STORE(shared->share_count, v->share_count);
  STORE(shared->cpu, cpu);
  STORE(shared->is_timed, v->is_timed);
  atomic_store_explicit(&shared->generation, v->generation,
                        memory_order_release);
}

/* Returns true if jobs that were each too short to wake a thread follow each
 * other quickly. */
static bool has_unshared_work(vyre__pool *pool) {
  return LOAD(pool->unshared_ns) >= POOL_UNSHARED_NS &&
         pool_ticks() - LOAD(pool->unshared_at) < pool->spin_ticks;
}

/* Counts a job that its caller ran alone while other threads were idle. */
static void count_unshared(vyre__pool *pool, uint64_t ticks) {
  uint64_t now = pool_ticks();
  bool goes_on = now - LOAD(pool->unshared_at) < pool->spin_ticks + ticks;
  uint64_t before = goes_on ? LOAD(pool->unshared_ns) : 0;
  STORE(pool->unshared_ns, before + (uint64_t)vyre__pool_ns_of(ticks));
  STORE(pool->unshared_at, now);
}

/* Wakes threads if @p rest_ns of work on one thread is worth it. */
static bool wake(pool_call *call, pool_shared_job *shared, double rest_ns) {
  rest_ns *= 1.0 + call->upcoming;
  if (rest_ns < POOL_WAKE_NS) {
    if (!has_unshared_work(call->pool)) return false;
    STORE(call->pool->unshared_ns, 0);
  }
  double worth = rest_ns / POOL_WAKE_NS;
  uint32_t max = call->pool->threads - 2; /* without the one woken below */
  STORE(shared->wakes_left, worth < max ? (uint32_t)worth : max);
  vyre__pool_wake_one(call->pool);
  return true;
}

/* Waits until the other threads have finished the units they claimed. */
static void await(pool_call *call, pool_shared_job *shared, uint32_t units) {
  if (atomic_load_explicit(&shared->done, memory_order_acquire) == units) {
    return;
  }
  uint64_t begin = call->is_timed ? vyre__clock_ns() : 0;
  uint64_t start = pool_ticks(), max = call->pool->spin_ticks;
  uint64_t min_items = vyre__pool_ticks_of(POOL_UNIT_NS);
  if (max < min_items) max = min_items;
  for (unsigned spins = 1;
       atomic_load_explicit(&shared->done, memory_order_acquire) != units;
       spins++) {
    pool_pause();
    if (spins % CLOCK_INTERVAL != 0 || pool_ticks() - start < max) continue;
    atomic_store(&shared->is_awaited, 1);
    unsigned seen = atomic_load(&shared->done);
    if (seen != units) vyre__pool_futex_sleep(&shared->done, seen);
  }
  if (call->is_timed) call->waited_ns += vyre__clock_ns() - begin;
}

void vyre__pool_update_cost(const vyre__job *job, double ns, uint64_t items) {
  if (!job->cost || items == 0) return;
  double ps = ns * 1000 / (double)items;
  unsigned now = ps < 1 ? 1 : ps < 4e9 ? (unsigned)ps : 4000000000u;
  unsigned old = LOAD(*job->cost);
  if (now / 5 * 4 > old || old / 5 * 4 > now) STORE(*job->cost, now);
}

/* Returns true if a thread of the pool looks for work. */
static bool has_spinning(vyre__pool *pool) {
  return LOAD(pool->started) > LOAD(pool->sleepers);
}

/* Leaves the other shares to the spinning threads. Counts them as late if they
 * do not start in time: short jobs are then not shared for a while, because
 * each would wait in vain. Returns the ticks that it waited. */
static uint64_t wait_for_spinning(vyre__pool *pool, pool_shared_job *shared,
                                  const job_view *v, uint32_t units) {
  uint64_t start = pool_ticks();
  bool is_done = wait_before_stealing(pool, shared, v);
  uint64_t waited = pool_ticks() - start;
  uint64_t begin = v->generation << UNIT_BITS | units / v->share_count;
  if (is_done || LOAD(shared->shares[1].next) != begin) {
    if (LOAD(pool->late_count) > 0) STORE(pool->late_count, 0);
    return waited;
  }
  uint32_t late = LOAD(pool->late_count) + 1;
  if (late > POOL_MAX_LATE) late = POOL_MAX_LATE;
  STORE(pool->late_count, late);
  STORE(pool->alone_left, 1u << late);
  return waited;
}

static uint32_t run_shared(pool_call *call, const vyre__job *job, job_view *v,
                           uint32_t units, pool_shared_job *shared,
                           uint64_t cost) {
  uint64_t items = 0, total = v->count - v->first;
  uint32_t mine = 0, unit;
  bool is_spinning = has_spinning(call->pool);
  publish(shared, v, units);
  uint64_t start = pool_ticks();
  bool has_woken = pool_has_idle(call->pool) &&
                   wake(call, shared, (double)cost * 1e-3 * (double)total);
  for (uint32_t i = 0; i < v->share_count; i++) {
    /* A share that took no time, although no cost was known, had no memory
     * worth keeping in a cache. */
    if (i == 1 && is_spinning &&
        (cost > 0 ||
         pool_ticks() - start >= call->pool->steal_ticks / STEAL_AT_ONCE)) {
      start += wait_for_spinning(call->pool, shared, v, units);
    }
    while (claim(&shared->shares[i], v->generation, &unit)) {
      items += run_unit(shared, v, unit, call->number);
      mine++;
      if (has_woken || items == 0 || !pool_has_idle(call->pool)) continue;
      double spent = vyre__pool_ns_of(pool_ticks() - start);
      has_woken =
          wake(call, shared, spent * (double)(total - items) / (double)items);
    }
  }
  uint64_t spent = pool_ticks() - start;
  await(call, shared, units - mine);
  vyre__pool_update_cost(job, vyre__pool_ns_of(spent), items);
  if (mine == units && !has_woken && pool_has_idle(call->pool)) {
    count_unshared(call->pool, spent);
  }
  call->others_ns += LOAD(shared->busy_ns);
  uint32_t result = LOAD(shared->result);
  prefetch_next_job(call->pool, shared); /* usually one follows soon */
  atomic_store_explicit(&shared->is_taken, false, memory_order_release);
  return result;
}

uint32_t vyre__pool_run_shared(pool_call *call, const vyre__job *job,
                               uint64_t first, uint64_t cost) {
  job_view v = {.run = job->run,
                .self = job->self,
                .first = first,
                .count = job->count,
                .is_timed = call->is_timed};
  /* The cost of the first few items does not predict the others. */
  uint64_t known = first == 0 ? cost : 0;
  while (v.first < v.count) {
    uint32_t units = split(call->pool, job, known, &v);
    pool_shared_job *shared = units > 1 ? acquire_shared_job(call) : NULL;
    if (shared) return run_shared(call, job, &v, units, shared, cost);
    /* All entries are in use: the caller runs a unit itself, then tries
     * again. */
    uint64_t left = v.count - v.first, size = v.chunk < left ? v.chunk : left;
    uint32_t result = v.run(v.self, v.first, size, call->number);
    if (result != 0) return result;
    v.first += size;
  }
  return 0;
}
