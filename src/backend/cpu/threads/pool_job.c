/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One job, shared: see pool_internal.h for who may read what when. */
#include "backend/cpu/threads/pool_internal.h"

#define LOAD(place) atomic_load_explicit(&(place), memory_order_relaxed)
#define STORE(place, value) \
  atomic_store_explicit(&(place), (value), memory_order_relaxed)

enum { UNIT_BITS = 16, CHAIN = 2, LOOKS = 16, WANTED = 8 };
_Static_assert(POOL_SPLIT *POOL_THREADS < 1 << UNIT_BITS,
               "units have numbers of that many bits");

/* What is known of a job, read at once. */
typedef struct view {
  uint64_t generation;
  pool_run *run;
  void *self;
  uint64_t first, count, chunk;
  uint32_t share_count;
  bool is_timed;
} view;

static view look(pool_region *region) {
  view v;
  /* With acquire: all that was stored before this generation was. */
  v.generation =
      atomic_load_explicit(&region->generation, memory_order_acquire);
  v.run = LOAD(region->run);
  v.self = LOAD(region->self);
  v.first = LOAD(region->first);
  v.count = LOAD(region->count);
  v.chunk = LOAD(region->chunk);
  v.share_count = LOAD(region->share_count);
  v.is_timed = LOAD(region->is_timed);
  return v;
}

static bool is_same(uint64_t next, uint64_t generation) {
  return next >> UNIT_BITS == generation << UNIT_BITS >> UNIT_BITS;
}

/* Asks for a line to write to, so that it does not come twice, to be read and then
 * to be changed, and comes while others do. (The compiler's own would only read
 * where it does not know the processor; one that does not know this ignores it.) */
static void want(const void *line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw (%0)" : : "r"(line));
#else
  __builtin_prefetch(line, 1);
#endif
}

/* Takes one unit of a share. False: none is left, or it is another job's by now. */
static bool claim(pool_share *share, uint64_t generation, uint32_t *unit) {
  uint64_t next = LOAD(share->next);
  do {
    *unit = (uint32_t)(next & ((1u << UNIT_BITS) - 1));
    /* With acquire: who sees the end of a later job does not get `next` of the
     * one before. */
    if (!is_same(next, generation) ||
        *unit >= atomic_load_explicit(&share->end, memory_order_acquire)) {
      return false;
    }
  } while (!atomic_compare_exchange_weak_explicit(&share->next, &next, next + 1,
                                                  memory_order_relaxed,
                                                  memory_order_relaxed));
  return true;
}

/* Runs a claimed unit, unless the job has ended. Gives its pieces. */
static uint64_t run_unit(pool_region *region, const view *v, uint32_t unit,
                         uint32_t number) {
  uint64_t at = v->first + unit * v->chunk, size = v->count - at;
  unsigned none = 0;
  if (size > v->chunk) size = v->chunk;
  if (LOAD(region->result) != 0) return 0;
  uint32_t result = v->run(v->self, at, size, number);
  if (result != 0) {
    atomic_compare_exchange_strong_explicit(&region->result, &none, result,
                                            memory_order_relaxed,
                                            memory_order_relaxed);
  }
  return size;
}

/* --- workers -----------------------------------------------------------------*/

/* Says that units are done. Afterwards they may belong to another job. */
static void finish(pool_region *region, uint32_t units) {
  /* In one order with the caller's look before it sleeps: one of both sees the
   * other. */
  atomic_fetch_add(&region->done, units);
  if (atomic_load(&region->is_awaited)) {
    vyre__pool_futex_wake(&region->done, 1);
  }
}

static bool has_units(pool_region *region, const view *v) {
  for (uint32_t i = 0; i < v->share_count; i++) {
    uint64_t next = LOAD(region->shares[i].next);
    if (is_same(next, v->generation) &&
        (next & ((1u << UNIT_BITS) - 1)) < LOAD(region->shares[i].end)) {
      return true;
    }
  }
  return false;
}

/* Just woken: wakes others in the caller's stead. */
static void wake_more(pool_worker *worker, pool_region *region) {
  for (int i = 0; i < CHAIN && pool_has_idle(worker->pool); i++) {
    unsigned wanted = LOAD(region->wanted);
    while (wanted > 0 &&
           !atomic_compare_exchange_weak(&region->wanted, &wanted, wanted - 1));
    if (wanted == 0) return;
    vyre__pool_summon(worker->pool);
  }
}

/* If it runs where the caller did, the caller waits for it. */
static void keep_off_caller(const pool_worker *worker, pool_region *region) {
  uint32_t cpu = LOAD(region->cpu);
  if (worker->pool->has_room && cpu != 0 && cpu == vyre__pool_cpu()) {
    vyre__pool_keep_off(cpu);
  }
}

bool vyre__pool_help(pool_worker *worker, uint32_t index, bool was_asleep) {
  pool_region *region = &worker->pool->regions[index];
  if (LOAD(region->generation) == worker->seen[index]) return false;
  view v = look(region);
  uint64_t start = 0;
  bool found = false;
  worker->seen[index] = v.generation;
  worker->caller_cpu = LOAD(region->cpu);
  if (v.share_count == 0) return false; /* nothing was shared there yet */
  /* The caller's share is the first. */
  uint32_t own = (worker->index + 1) % v.share_count;
  if (!was_asleep) {
    want(&region->shares[own]);
    want(&region->done);
  } else if (has_units(region, &v)) {
    keep_off_caller(worker, region);
    wake_more(worker, region);
  }
  for (uint32_t i = 0; i < v.share_count; i++) {
    uint32_t at = own + i < v.share_count ? own + i : own + i - v.share_count;
    uint32_t unit, units = 0;
    while (claim(&region->shares[at], v.generation, &unit)) {
      if (v.is_timed && start == 0) start = vyre__clock_ns();
      run_unit(region, &v, unit, worker->index);
      units++;
    }
    if (units == 0) continue;
    found = true;
    if (v.is_timed) {
      uint64_t now = vyre__clock_ns();
      atomic_fetch_add_explicit(&region->busy_ns, now - start,
                                memory_order_relaxed);
      start = now;
    }
    finish(region, units);
  }
  /* Who spun has begun at once: it is looked at when the work is done. */
  if (found && !was_asleep) keep_off_caller(worker, region);
  return found;
}

/* --- the caller --------------------------------------------------------------*/

/* Lines that the next launch begins with writing to. */
static void want_all(const vyre__pool *pool, const pool_region *region) {
  want(&region->done);
  for (uint32_t i = 0; i < pool->threads && i < WANTED; i++) {
    want(&region->shares[i]);
  }
}

static pool_region *take_region(const pool_call *call) {
  vyre__pool *pool = call->pool;
  for (uint32_t i = 0; i < POOL_REGIONS; i++) {
    pool_region *region = &pool->regions[(call->number + i) % POOL_REGIONS];
    if (!LOAD(region->is_taken) &&
        !atomic_exchange_explicit(&region->is_taken, true,
                                  memory_order_acquire)) {
      want_all(pool, region);
      return region;
    }
  }
  return NULL;
}

/* How the pieces from v->first on are split. Gives the number of units. Where pieces
 * are short, all units have one size, and all shares as many of them: such work is
 * over when the largest share is. Others are split finely: whoever is done first
 * takes more. */
static uint32_t split(const vyre__pool *pool, const vyre__job *job,
                      uint64_t cost, view *v) {
  uint64_t rest = v->count - v->first, least = job->least + !job->least;
  uint64_t blocks = (rest - 1) / least + 1, each = POOL_SPLIT;
  v->share_count = blocks < pool->threads ? (uint32_t)blocks : pool->threads;
  uint64_t short_one = cost ? (uint64_t)POOL_UNIT_NS * 1000 / cost : 0;
  if (short_one > least) {
    each = rest / ((uint64_t)v->share_count * short_one);
    if (each > POOL_SPLIT) each = POOL_SPLIT;
  }
  v->chunk = (rest - 1) / (v->share_count * (each + !each)) + 1;
  if (v->chunk < least) v->chunk = least;
  uint32_t units = (uint32_t)((rest - 1) / v->chunk + 1);
  if (v->share_count > units) v->share_count = units;
  return units;
}

/* The line that all who have nothing to do look at comes last, and at once: they
 * take it as soon as a word of it has changed, and it would have to come back. */
static void publish(pool_region *region, view *v, uint32_t units) {
  v->generation = LOAD(region->generation) + 1;
  uint32_t cpu = vyre__pool_cpu();
  STORE(region->done, 0);
  STORE(region->result, 0);
  STORE(region->is_awaited, 0);
  STORE(region->wanted, 0);
  STORE(region->busy_ns, 0);
  uint32_t at = 0;
  for (uint32_t i = 0; i < v->share_count; i++) {
    uint32_t end = (uint32_t)((uint64_t)units * (i + 1) / v->share_count);
    /* `next` comes first: with a later end, the last units of the job before
     * would have one more, for who was stopped in the middle of it. */
    STORE(region->shares[i].next, v->generation << UNIT_BITS | at);
    atomic_store_explicit(&region->shares[i].end, end, memory_order_release);
    at = end;
  }
  STORE(region->run, v->run);
  STORE(region->self, v->self);
  STORE(region->first, v->first);
  STORE(region->count, v->count);
  STORE(region->chunk, v->chunk);
  STORE(region->share_count, v->share_count);
  STORE(region->cpu, cpu);
  STORE(region->is_timed, v->is_timed);
  atomic_store_explicit(&region->generation, v->generation,
                        memory_order_release);
}

/* Whether launches that were each worth nothing come one after the other. */
static bool has_missed(vyre__pool *pool) {
  return LOAD(pool->missed_ns) >= POOL_MISSED_NS &&
         pool_ticks() - LOAD(pool->missed_at) < pool->spin_ticks;
}

/* After a job that others could have helped with. */
static void miss(vyre__pool *pool, uint64_t ticks) {
  uint64_t now = pool_ticks();
  bool goes_on = now - LOAD(pool->missed_at) < pool->spin_ticks + ticks;
  uint64_t before = goes_on ? LOAD(pool->missed_ns) : 0;
  STORE(pool->missed_ns, before + (uint64_t)vyre__pool_ns_of(ticks));
  STORE(pool->missed_at, now);
}

/* Wakes, if @p rest_ns of work on one thread is worth it. */
static bool wake(pool_call *call, pool_region *region, double rest_ns) {
  rest_ns *= 1.0 + call->more;
  if (rest_ns < POOL_WAKE_NS) {
    if (!has_missed(call->pool)) return false;
    STORE(call->pool->missed_ns, 0);
  }
  double worth = rest_ns / POOL_WAKE_NS;
  uint32_t most = call->pool->threads - 2; /* and the one that is woken here */
  STORE(region->wanted, worth < most ? (uint32_t)worth : most);
  vyre__pool_summon(call->pool);
  return true;
}

/* Waits for the units that others claimed. */
static void await(pool_call *call, pool_region *region, uint32_t units) {
  if (atomic_load_explicit(&region->done, memory_order_acquire) == units) {
    return;
  }
  uint64_t begin = call->is_timed ? vyre__clock_ns() : 0;
  uint64_t start = pool_ticks(), most = call->pool->spin_ticks;
  uint64_t least = vyre__pool_ticks_of(POOL_UNIT_NS);
  if (most < least) most = least;
  for (unsigned turn = 1;
       atomic_load_explicit(&region->done, memory_order_acquire) != units;
       turn++) {
    pool_pause();
    if (turn % LOOKS != 0 || pool_ticks() - start < most) continue;
    atomic_store(&region->is_awaited, 1);
    unsigned seen = atomic_load(&region->done);
    if (seen != units) vyre__pool_futex_sleep(&region->done, seen);
  }
  if (call->is_timed) call->waited_ns += vyre__clock_ns() - begin;
}

/* Keeps what a piece took, if that is news. */
void vyre__pool_learn(const vyre__job *job, double ns, uint64_t pieces) {
  if (!job->cost || pieces == 0) return;
  double ps = ns * 1000 / (double)pieces;
  unsigned now = ps < 1 ? 1 : ps < 4e9 ? (unsigned)ps : 4000000000u;
  unsigned old = LOAD(*job->cost);
  if (now / 5 * 4 > old || old / 5 * 4 > now) STORE(*job->cost, now);
}

static uint32_t run_shared(pool_call *call, const vyre__job *job, view *v,
                           uint32_t units, pool_region *region, uint64_t cost) {
  uint64_t pieces = 0, total = v->count - v->first;
  uint32_t mine = 0, unit;
  publish(region, v, units);
  uint64_t start = pool_ticks();
  bool has_woken = pool_has_idle(call->pool) &&
                   wake(call, region, (double)cost * 1e-3 * (double)total);
  for (uint32_t i = 0; i < v->share_count; i++) {
    while (claim(&region->shares[i], v->generation, &unit)) {
      pieces += run_unit(region, v, unit, call->number);
      mine++;
      if (has_woken || pieces == 0 || !pool_has_idle(call->pool)) continue;
      double spent = vyre__pool_ns_of(pool_ticks() - start);
      has_woken =
          wake(call, region, spent * (double)(total - pieces) / (double)pieces);
    }
  }
  uint64_t spent = pool_ticks() - start;
  await(call, region, units - mine);
  vyre__pool_learn(job, vyre__pool_ns_of(spent), pieces);
  if (mine == units && !has_woken && pool_has_idle(call->pool)) {
    miss(call->pool, spent);
  }
  call->others_ns += LOAD(region->busy_ns);
  uint32_t result = LOAD(region->result);
  want_all(call->pool, region); /* there will be another, soon, as a rule */
  atomic_store_explicit(&region->is_taken, false, memory_order_release);
  return result;
}

uint32_t vyre__pool_share(pool_call *call, const vyre__job *job, uint64_t first,
                          uint64_t cost) {
  view v = {.run = job->run,
            .self = job->self,
            .first = first,
            .count = job->count,
            .is_timed = call->is_timed};
  /* Where a few were tried, others may take longer. */
  uint64_t known = first == 0 ? cost : 0;
  while (v.first < v.count) {
    uint32_t units = split(call->pool, job, known, &v);
    pool_region *region = units > 1 ? take_region(call) : NULL;
    if (region) return run_shared(call, job, &v, units, region, cost);
    /* All others are busy with other jobs. */
    uint64_t left = v.count - v.first, size = v.chunk < left ? v.chunk : left;
    uint32_t result = v.run(v.self, v.first, size, call->number);
    if (result != 0) return result;
    v.first += size;
  }
  return 0;
}
