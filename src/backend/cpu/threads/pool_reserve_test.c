/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processors that the pool leaves to other threads. */
#include <pthread.h>
#include <time.h>

#include "backend/cpu/threads/pool.h"
#include "backend/cpu/threads/pool_internal.h"
#include "support/check.h"

enum { ITEMS = 1600, ITEM_NS = 20000, RESERVE_AT = 400, TRIES = 100 };

typedef struct totals {
  vyre__pool *pool;
  pthread_t caller;
  unsigned reserve_at;   /* items of all threads; 0: never */
  unsigned unreserve_at; /* items of the caller; 0: never */
  atomic_uint runs[ITEMS], done, by_caller, helped;
} totals;

static void spend(void) {
  uint64_t end = vyre__clock_ns() + ITEM_NS;
  while (vyre__clock_ns() < end);
}

static uint32_t run(void *self, uint64_t first, uint64_t count,
                    uint32_t thread) {
  totals *t = self;
  (void)thread;
  bool is_caller = pthread_equal(pthread_self(), t->caller);
  for (uint64_t i = first; i < first + count; i++) {
    atomic_fetch_add(&t->runs[i], 1);
    spend();
    if (atomic_fetch_add(&t->done, 1) + 1 == t->reserve_at) {
      vyre__pool_reserve(t->pool);
    }
    unsigned mine =
        atomic_fetch_add(is_caller ? &t->by_caller : &t->helped, 1) + 1;
    if (is_caller && mine == t->unreserve_at) vyre__pool_unreserve(t->pool);
  }
  return 0;
}

static vyre__pool *make(uint32_t threads, totals *t) {
  vyre__pool *pool = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre__pool_create((vyre_allocator){0}, threads, &pool, &st), st);
  *t = (totals){.pool = pool, .caller = pthread_self()};
  return pool;
}

static void run_all(totals *t) {
  for (int i = 0; i < ITEMS; i++) atomic_store(&t->runs[i], 0);
  atomic_store(&t->done, 0);
  atomic_store(&t->by_caller, 0);
  atomic_store(&t->helped, 0);
  vyre__job job = {run, t, ITEMS, 0, NULL};
  CHECK_U64(vyre__pool_run(t->pool, &job, 1, NULL, NULL), 0);
  for (int i = 0; i < ITEMS; i++) CHECK_U64(t->runs[i], 1);
}

/* The pool has as many threads as there are processors, or more, so that no
 * processor is spare. */
TEST(a_reserved_processor_is_left_alone) {
  static totals t;
  uint32_t threads = vyre__pool_processors() + 1;
  vyre__pool *pool = make(threads, &t);
  for (uint32_t i = 0; i + 1 < threads; i++) vyre__pool_reserve(pool);
  run_all(&t);
  CHECK_U64(t.helped, 0);
  CHECK_U64(atomic_load(&pool->started), 0);
  for (uint32_t i = 0; i + 1 < threads; i++) vyre__pool_unreserve(pool);
  for (int i = 0; i < TRIES && t.helped == 0; i++) run_all(&t);
  CHECK(t.helped > 0);
  vyre__pool_free(pool);
}

TEST(a_thread_leaves_a_running_job_and_returns) {
  static totals t;
  vyre__pool *pool = make(2, &t);
  pool->spare = 0;
  bool has_left = false, has_returned = false;
  enum { UNIT = ITEMS / POOL_SPLIT, UNRESERVE_AT = 2 * RESERVE_AT };
  /* Other processes may keep the thread from its processor. */
  for (int i = 0; i < TRIES && !(has_left && has_returned); i++) {
    t.reserve_at = RESERVE_AT;
    t.unreserve_at = 0;
    run_all(&t);
    CHECK(t.helped <= RESERVE_AT + UNIT); /* it finishes its unit */
    has_left |= t.helped > 0;
    vyre__pool_unreserve(pool);
    t.unreserve_at = UNRESERVE_AT;
    run_all(&t);
    if (t.by_caller < UNRESERVE_AT) vyre__pool_unreserve(pool);
    has_returned |= t.helped > RESERVE_AT + UNIT;
  }
  CHECK(has_left && has_returned);
  vyre__pool_free(pool);
}

TEST(spare_processors_are_reserved_first) {
  static totals t;
  vyre__pool *pool = make(2, &t);
  pool->spare = 1;
  vyre__pool_reserve(pool);
  for (int i = 0; i < TRIES && t.helped == 0; i++) run_all(&t);
  CHECK(t.helped > 0);
  vyre__pool_unreserve(pool);
  vyre__pool_unreserve(pool); /* the count does not wrap */
  CHECK_U64(atomic_load(&pool->reserved), 0);
  vyre__pool_free(pool);
}

TEST_MAIN(TEST_ENTRY(a_reserved_processor_is_left_alone),
          TEST_ENTRY(a_thread_leaves_a_running_job_and_returns),
          TEST_ENTRY(spare_processors_are_reserved_first))
