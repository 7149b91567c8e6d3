/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Jobs that are too short to share, or to wait for a thread that is late. */
#include <string.h>

#include "backend/cpu/threads/pool.h"
#include "backend/cpu/threads/pool_internal.h"
#include "base/clock.h"
#include "support/check.h"

enum { ITEMS = 400 };

/* Calls of a job, and how many of them began and ended at each item. A call
 * takes the same short time for any number of items, on any processor. */
typedef struct totals {
  atomic_uint calls, begun[ITEMS + 1], ended[ITEMS + 1];
} totals;

static uint32_t count(void *self, uint64_t first, uint64_t items,
                      uint32_t thread) {
  totals *t = self;
  (void)thread;
  atomic_fetch_add(&t->calls, 1);
  atomic_fetch_add(&t->begun[first], 1);
  atomic_fetch_add(&t->ended[first + items], 1);
  return 0;
}

/* Checks that every item ran once. */
static void check_runs(const totals *t) {
  unsigned runs = 0;
  for (int i = 0; i < ITEMS; i++) {
    runs += t->begun[i] - t->ended[i];
    CHECK_U64(runs, 1);
  }
}

/* Runs a job whose items are said to take @p ps each. Returns its calls. */
static unsigned run(vyre__pool *pool, unsigned ps) {
  static totals t;
  memset(&t, 0, sizeof t);
  atomic_uint cost = ps;
  vyre__job job = {count, &t, ITEMS, 0, &cost};
  CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
  check_runs(&t);
  return t.calls;
}

static vyre__pool *make(uint32_t threads) {
  vyre__pool *pool = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre__pool_create((vyre_allocator){0}, threads, &pool, &st), st);
  return pool;
}

/* More calls would take longer than the items. */
TEST(short_work_of_known_cost_takes_one_call) {
  enum { TINY = 100, SHORT = 1000 }; /* 40 and 400 ns for all items */
  vyre__pool *pool = make(2);
  for (int i = 0; i < 100; i++) CHECK_U64(run(pool, TINY), 1);
  for (int i = 0; i < 100; i++) CHECK_U64(run(pool, SHORT), 1);
  vyre__pool_free(pool);
}

static uint32_t dawdle(void *self, uint64_t first, uint64_t items,
                       uint32_t thread) {
  uint64_t start = vyre__clock_ns();
  (void)self;
  (void)first;
  (void)items;
  (void)thread;
  while (vyre__clock_ns() - start < 100000) {
  }
  return 0;
}

/* Few tiny jobs in a row run without a look at the clock. */
TEST(work_that_is_no_longer_short_is_noticed) {
  enum { SOON = 4, STALE = 100 };
  vyre__pool *pool = make(2);
  atomic_uint cost = STALE;
  vyre__job job = {dawdle, NULL, ITEMS, 0, &cost};
  for (int i = 0; i < SOON; i++) {
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
  }
  CHECK(atomic_load(&cost) > 100000000u / ITEMS / 2);
  vyre__pool_free(pool);
}

/* A thread that counts as spinning, but never comes. */
TEST(a_thread_that_does_not_start_is_late) {
  enum { PS = 25000 }; /* 10 us for all items */
  vyre__pool *pool = make(2);
  atomic_store(&pool->started, 1);
  for (unsigned late = 1; late <= POOL_MAX_LATE + 1; late++) {
    unsigned counted = late < POOL_MAX_LATE ? late : POOL_MAX_LATE;
    CHECK(run(pool, PS) > 1);
    CHECK_U64(pool->late_count, counted);
    CHECK_U64(pool->alone_left, 1u << counted);
    for (unsigned i = 0; i < 1u << counted; i++) CHECK_U64(run(pool, PS), 1);
    CHECK_U64(pool->alone_left, 0);
  }
  atomic_store(&pool->started, 0);
  vyre__pool_free(pool);
}

TEST(long_work_is_shared_even_after_threads_came_late) {
  vyre__pool *pool = make(2);
  atomic_store(&pool->alone_left, 5);
  CHECK(run(pool, 1000000) > 1);
  CHECK_U64(pool->alone_left, 5);
  vyre__pool_free(pool);
}

TEST_MAIN(TEST_ENTRY(short_work_of_known_cost_takes_one_call),
          TEST_ENTRY(work_that_is_no_longer_short_is_noticed),
          TEST_ENTRY(a_thread_that_does_not_start_is_late),
          TEST_ENTRY(long_work_is_shared_even_after_threads_came_late))
