/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs the steps of a region. */
#include "backend/cpu/threads/pool_region.h"

#include <limits.h>

#include "backend/cpu/threads/pool_internal.h"

#define LOAD(word) atomic_load_explicit(&(word), memory_order_relaxed)

enum {
  MEASURED_RUNS = 4,   /* the first runs measure all steps, */
  MEASURE_EVERY = 64,  /* then one in so many runs */
  TRIAL_RUN = 1,       /* runs that try longer steps on one thread: this one, */
  TRIAL_FACTOR = 8,    /* and one in MEASURE_EVERY; up to so many times the
                          limit */
  CLOCK_INTERVAL = 16, /* spins between two readings of the clock */
  MAX_SPIN_NS = 50000, /* then a waiting thread sleeps */
  STEP_BITS = 32       /* a ticket is a count of steps, then the step + 1 */
};
#define END UINT64_MAX

/* Claim on the part with this index: the ticket of the last step in which it
 * was claimed. Tickets only grow, so a thread that is late claims nothing. */
typedef struct part_claim {
  _Alignas(POOL_LINE) _Atomic uint64_t ticket;
  atomic_bool has_come; /* the thread with this number takes part */
} part_claim;

typedef struct region_run {
  vyre__region *region;
  vyre__pool *pool;
  part_claim *claims; /* one per thread of the region */
  bool is_measured, is_trial;
  bool is_alone; /* the caller runs all parts */
  uint64_t spin_ticks;
  /* Of the thread that advances. */
  uint64_t steps_run, inline_steps, step_begin;
  _Alignas(POOL_LINE) _Atomic uint64_t current; /* ticket of the open step */
  atomic_uint wakes;    /* a futex; incremented when a step opens */
  atomic_uint sleepers; /* threads that sleep on `wakes` */
  _Alignas(POOL_LINE) atomic_uint done; /* finished parts of the open step */
  atomic_uint result;
  _Atomic uint64_t spent; /* ticks of all parts of the step, if measured */
  _Atomic uint64_t steals;
} region_run;

static const vyre__region_step *step_of(const region_run *r, uint64_t ticket) {
  return &r->region->steps[(ticket & UINT32_MAX) - 1];
}

/* --- running parts -------------------------------------------------------- */

/* Runs all parts of a step on this thread. */
static bool run_inline(region_run *r, vyre__region_step *step,
                       uint32_t number) {
  vyre__region *region = r->region;
  uint64_t start = r->is_measured ? pool_ticks() : 0;
  uint32_t result = 0;
  for (uint32_t i = step->first_part; i < step->end_part && result == 0; i++) {
    const vyre__region_part *part = &region->parts[i];
    result = region->run(region->self, part->first, part->end, number);
  }
  if (r->is_measured) {
    step->ns = (uint64_t)vyre__pool_ns_of(pool_ticks() - start);
    step->is_measured = true;
  }
  r->inline_steps++;
  if (result == 0) return true;
  atomic_store_explicit(&r->result, result, memory_order_relaxed);
  return false;
}

/* A step that was measured on several threads may take less time on one, where
 * no cache line moves: a trial finds out. */
static bool is_short(const region_run *r, const vyre__region_step *step) {
  const uint64_t limit = r->region->inline_ns;
  if (r->is_trial && limit > 0 && step->ns / TRIAL_FACTOR <= limit) return true;
  return r->is_alone || step->ns <= r->region->inline_ns ||
         step->end_part - step->first_part < 2;
}

static void open_step(region_run *r, uint64_t ticket) {
  atomic_store_explicit(&r->done, 0, memory_order_relaxed);
  atomic_store_explicit(&r->spent, 0, memory_order_relaxed);
  /* Sequentially consistent with the check of a thread before it sleeps: at
   * least one of the two sees the other's store. */
  atomic_store(&r->current, ticket);
  if (atomic_load(&r->sleepers) == 0) return;
  atomic_fetch_add(&r->wakes, 1);
  vyre__pool_futex_wake(&r->wakes, INT_MAX);
}

/* Runs short steps from step @p index on, and opens the next long one, or ends
 * the region. @p count: steps that were opened before. */
static void advance(region_run *r, uint32_t index, uint64_t count,
                    uint32_t number) {
  vyre__region *region = r->region;
  for (;; index++) {
    if (index == region->step_count) {
      if (!region->again || !region->again(region->self)) break;
      index = 0;
    }
    vyre__region_step *step = &region->steps[index];
    r->steps_run++;
    if (!is_short(r, step)) {
      open_step(r, (count + 1) << STEP_BITS | (index + 1));
      return;
    }
    if (!run_inline(r, step, number)) break;
  }
  open_step(r, END);
}

/* Claims the part with this index in the step of @p ticket. */
static bool claim(region_run *r, uint32_t index, uint64_t ticket) {
  uint64_t seen = LOAD(r->claims[index].ticket);
  return seen < ticket && atomic_compare_exchange_strong_explicit(
                              &r->claims[index].ticket, &seen, ticket,
                              memory_order_acquire, memory_order_relaxed);
}

/* Runs a claimed part. The thread that finishes the last one advances. */
static void run_part(region_run *r, uint32_t index, uint64_t ticket,
                     uint32_t number) {
  vyre__region *region = r->region;
  uint32_t at = (uint32_t)(ticket & UINT32_MAX) - 1;
  vyre__region_step *step = &region->steps[at];
  const vyre__region_part *part = &region->parts[step->first_part + index];
  uint64_t start = r->is_measured ? pool_ticks() : 0;
  uint32_t result = LOAD(r->result);
  if (result == 0)
    result = region->run(region->self, part->first, part->end, number);
  if (result != 0)
    atomic_store_explicit(&r->result, result, memory_order_relaxed);
  if (r->is_measured) {
    atomic_fetch_add_explicit(&r->spent, pool_ticks() - start,
                              memory_order_relaxed);
  }
  uint32_t parts = step->end_part - step->first_part;
  if (atomic_fetch_add_explicit(&r->done, 1, memory_order_acq_rel) + 1 < parts)
    return;
  if (r->is_measured) {
    step->ns = (uint64_t)vyre__pool_ns_of(LOAD(r->spent));
    step->is_measured = true;
  }
  if (LOAD(r->result) != 0) {
    open_step(r, END);
  } else {
    advance(r, at + 1, ticket >> STEP_BITS, number);
  }
}

/* --- threads -------------------------------------------------------------- */

/* Parts of a step that a thread looks for: its own, those of threads that do
 * not take part, or all. */
typedef enum part_choice { OWN, ABSENT, ANY } part_choice;

/* Runs one part that was not claimed. Returns false if all were claimed. */
static bool run_parts(region_run *r, uint64_t ticket, part_choice choice,
                      uint32_t thread, uint32_t number) {
  const vyre__region_step *step = step_of(r, ticket);
  const vyre__region_part *parts = &r->region->parts[step->first_part];
  uint32_t count = step->end_part - step->first_part;
  for (uint32_t i = 0; i < count; i++) {
    bool is_own = parts[i].thread == thread;
    if (choice == OWN && !is_own) continue;
    if (choice == ABSENT && LOAD(r->claims[parts[i].thread].has_come)) continue;
    if (!claim(r, i, ticket)) continue;
    if (!is_own) atomic_fetch_add_explicit(&r->steals, 1, memory_order_relaxed);
    run_part(r, i, ticket, number);
    return true;
  }
  return false;
}

static void sleep_until_open(region_run *r, uint64_t ticket) {
  unsigned seen = atomic_load(&r->wakes);
  atomic_fetch_add(&r->sleepers, 1);
  if (atomic_load(&r->current) == ticket)
    vyre__pool_futex_sleep(&r->wakes, seen);
  atomic_fetch_sub(&r->sleepers, 1);
}

/* Waits until another step opens. Takes parts of other threads after a
 * while. */
static void wait_for_step(region_run *r, uint64_t ticket, uint32_t thread,
                          uint32_t number) {
  uint64_t start = pool_ticks();
  bool may_steal = true;
  for (unsigned spins = 1;
       atomic_load_explicit(&r->current, memory_order_acquire) == ticket;
       spins++) {
    pool_pause();
    if (spins % CLOCK_INTERVAL != 0) continue;
    uint64_t waited = pool_ticks() - start;
    if (may_steal && waited >= r->pool->steal_ticks) {
      may_steal = run_parts(r, ticket, ANY, thread, number);
      if (may_steal) return;
    }
    if (waited >= r->spin_ticks) sleep_until_open(r, ticket);
  }
}

/* Takes part in the region as @p thread, until it ends. */
static void take_part(region_run *r, uint32_t thread, uint32_t number) {
  atomic_store_explicit(&r->claims[thread].has_come, true,
                        memory_order_relaxed);
  for (;;) {
    uint64_t ticket = atomic_load_explicit(&r->current, memory_order_acquire);
    if (ticket == END) return;
    if (!run_parts(r, ticket, OWN, thread, number) &&
        !run_parts(r, ticket, ABSENT, thread, number)) {
      wait_for_step(r, ticket, thread, number);
    }
  }
}

static uint32_t run_threads(void *self, uint64_t first, uint64_t count,
                            uint32_t number) {
  for (uint64_t i = 0; i < count; i++)
    take_part(self, (uint32_t)(first + i), number);
  return 0;
}

/* --- the caller ----------------------------------------------------------- */

/* Estimated time of all long steps on one thread. */
static double long_ns(const region_run *r) {
  double ns = 0;
  for (uint32_t i = 0; i < r->region->step_count; i++) {
    if (!is_short(r, &r->region->steps[i]))
      ns += (double)r->region->steps[i].ns;
  }
  return ns;
}

static void share(region_run *r, const vyre__pool_session *session,
                  uint32_t threads) {
  double ps = long_ns(r) * 1000 / threads;
  atomic_uint cost;
  atomic_init(&cost, ps < 1 ? 1 : ps < 4e9 ? (unsigned)ps : 4000000000u);
  const vyre__job job = {
      .run = run_threads, .self = r, .count = threads, .cost = &cost};
  (void)vyre__pool_run_in(session, &job, 0);
}

uint32_t vyre__pool_run_region(const vyre__pool_session *session,
                               vyre__region *region) {
  part_claim claims[VYRE__REGION_THREADS];
  region_run run = {.region = region,
                    .pool = session->pool,
                    .claims = claims,
                    .is_alone = session->is_alone || region->threads < 2};
  region_run *r = &run;
  uint64_t spin = vyre__pool_ticks_of(MAX_SPIN_NS);
  r->spin_ticks =
      session->pool->spin_ticks < spin ? session->pool->spin_ticks : spin;
  r->is_measured =
      region->runs < MEASURED_RUNS || region->runs % MEASURE_EVERY == 0;
  r->is_trial = region->runs == TRIAL_RUN ||
                (region->runs > 0 && region->runs % MEASURE_EVERY == 0);
  region->runs++;
  for (uint32_t i = 0; i < region->threads; i++) {
    atomic_init(&r->claims[i].ticket, 0);
    atomic_init(&r->claims[i].has_come, false);
  }
  if (region->step_count > 0) advance(r, 0, 0, session->number);
  if (region->step_count > 0 && LOAD(r->current) != END)
    share(r, session, region->threads);
  region->steps_run = r->steps_run;
  region->inline_steps = r->inline_steps;
  region->steals = LOAD(r->steals);
  return LOAD(r->result);
}
