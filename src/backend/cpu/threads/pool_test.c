/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of the thread pool. Items are counted one by one, in memory of the
 * test. */
/* For registers. NOLINTNEXTLINE(bugprone-reserved-identifier) */
#define _GNU_SOURCE
#include "backend/cpu/threads/pool.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/cpu/threads/pool_internal.h"
#include "base/clock.h"
#include "support/check.h"

/* ThreadSanitizer does not support a fork with several threads, and no
 * sanitizer works with a limit on memory. */
#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#elif __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#ifndef HAS_TSAN
#define HAS_TSAN 0
#endif
#ifndef HAS_ASAN
#define HAS_ASAN 0
#endif

enum {
  MAX_ITEMS = 100000, /* items that are counted */
  MAX_CALLS = 4096,
  NUMBERS = 2048, /* thread numbers */
  LAUNCHERS = 6,
};

/* --- test jobs -------------------------------------------------------------*/

typedef struct totals {
  vyre__pool *pool;
  atomic_uchar *times; /* runs of each item, or NULL */
  atomic_uint *inside; /* for each thread number, shared by all tallies */
  uint64_t busy_ns;    /* time of an item */
  uint64_t slow_from;  /* items before this one take no time */
  uint64_t ends_at;    /* item that ends the job with `result` */
  uint32_t result;
  atomic_uint calls, clashes, helped; /* helped: calls by other threads */
  pthread_t caller;
  uint64_t starts[MAX_CALLS], counts[MAX_CALLS];
} totals;

static void spend(uint64_t ns) {
  uint64_t end = vyre__clock_ns() + ns;
  while (vyre__clock_ns() < end);
}

static uint32_t run(void *self, uint64_t first, uint64_t count,
                    uint32_t thread) {
  totals *t = self;
  unsigned call = atomic_fetch_add(&t->calls, 1);
  if (call < MAX_CALLS) {
    t->starts[call] = first;
    t->counts[call] = count;
  }
  if (!pthread_equal(pthread_self(), t->caller))
    atomic_fetch_add(&t->helped, 1);
  if (t->inside && (thread >= vyre__pool_numbers(t->pool) ||
                    atomic_fetch_add(&t->inside[thread], 1) != 0)) {
    atomic_fetch_add(&t->clashes, 1);
  }
  uint32_t result = 0;
  for (uint64_t i = first; t->times && i < first + count; i++) {
    atomic_fetch_add(&t->times[i], 1);
    if (t->busy_ns && i >= t->slow_from) spend(t->busy_ns);
    if (t->result && i == t->ends_at) {
      result = t->result;
      break;
    }
  }
  if (t->inside) atomic_fetch_sub(&t->inside[thread], 1);
  return result;
}

static uint64_t draw(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

static vyre__pool *make(uint32_t threads) {
  vyre__pool *pool;
  vyre_status st = {0};
  CHECK(vyre__pool_create((vyre_allocator){0}, threads, &pool, &st) == VYRE_OK);
  return pool;
}

static totals *totals_make(vyre__pool *pool, uint64_t count) {
  totals *t = calloc(1, sizeof *t);
  CHECK(t);
  t->pool = pool;
  t->caller = pthread_self();
  if (count > 0) t->times = calloc(count, sizeof *t->times);
  CHECK(count == 0 || t->times);
  return t;
}

static void totals_free(totals *t) {
  free((void *)t->times);
  free(t);
}

static uint64_t missed(const totals *t, uint64_t count) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; i++) wrong += t->times[i] != 1;
  return wrong;
}

/* --- every item runs once --------------------------------------------------*/

TEST(every_item_runs_once) {
  static const uint32_t threads[] = {1, 2, 3, 7, 33};
  static const struct {
    uint64_t count, min_items;
  } cases[] = {{0, 0},     {1, 0},         {2, 0},          {2, 2},
               {3, 2},     {31, 0},        {32, 1},         {33, 1},
               {1000, 0},  {1000, 7},      {1000, 999},     {1000, 5000},
               {4099, 64}, {MAX_ITEMS, 0}, {MAX_ITEMS, 333}};
  for (size_t p = 0; p < sizeof threads / sizeof threads[0]; p++) {
    vyre__pool *pool = make(threads[p]);
    CHECK_U64(pool->threads, threads[p]);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
      for (int again = 0; again < 3; again++) {
        totals *t = totals_make(pool, cases[c].count + 1);
        t->busy_ns = cases[c].count < 100 ? 5000 : 0;
        atomic_uint cost = 0;
        vyre__job job = {run, t, cases[c].count, cases[c].min_items,
                         again ? &cost : NULL};
        size_t done = 9;
        CHECK_U64(vyre__pool_run(pool, &job, 1, &done, NULL), 0);
        CHECK_U64(done, 1);
        CHECK_U64(missed(t, cases[c].count), 0);
        CHECK_U64(t->times[cases[c].count], 0);
        totals_free(t);
      }
    }
    vyre__pool_free(pool);
  }
}

static int by_start(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Counts too large to count one by one: the ranges must be contiguous. */
TEST(huge_counts_are_covered_by_ranges) {
  static const struct {
    uint64_t count, min_items;
  } cases[] = {{1ull << 40, 1ull << 34}, {UINT64_MAX, 1ull << 60},
               {UINT64_MAX, 0},          {UINT64_MAX, UINT64_MAX},
               {(1ull << 40) + 1, 0},    {UINT64_MAX - 1, 3}};
  vyre__pool *pool = make(3);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    totals *t = totals_make(pool, 0);
    vyre__job job = {run, t, cases[c].count, cases[c].min_items};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    CHECK(t->calls < MAX_CALLS);
    struct {
      uint64_t start, count;
    } ranges[MAX_CALLS];
    for (unsigned i = 0; i < t->calls; i++) {
      ranges[i].start = t->starts[i];
      ranges[i].count = t->counts[i];
    }
    qsort(ranges, t->calls, sizeof ranges[0], by_start);
    uint64_t at = 0;
    for (unsigned i = 0; i < t->calls; i++) {
      CHECK_U64(ranges[i].start, at);
      CHECK(ranges[i].count >= cases[c].min_items ||
            at + ranges[i].count == cases[c].count);
      at += ranges[i].count;
    }
    CHECK_U64(at, cases[c].count);
    totals_free(t);
  }
  vyre__pool_free(pool);
}

/* --- sharing ---------------------------------------------------------------*/

TEST(one_item_runs_on_the_caller) {
  vyre__pool *pool = make(4);
  totals *t = totals_make(pool, 1);
  t->busy_ns = 300000;
  for (int i = 0; i < 20; i++) {
    vyre__job job = {run, t, 1, 0};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
  }
  CHECK_U64(t->helped, 0);
  CHECK_U64(t->calls, 20);
  totals_free(t);
  vyre__pool_free(pool);
}

static unsigned thread_count(void) {
  DIR *tasks = opendir("/proc/self/task");
  unsigned count = 0;
  for (struct dirent *e; tasks && (e = readdir(tasks));) {
    count += e->d_name[0] != '.';
  }
  if (tasks) closedir(tasks);
  return count;
}

/* A thread that the system preempts in an item looks like much work. So several
 * pools are tried; one of them must not start a thread. */
TEST(little_work_runs_on_the_caller) {
  bool alone = false;
  for (int tries = 0; tries < 50 && !alone; tries++) {
    unsigned before = thread_count();
    vyre__pool *pool = make(4);
    totals *t = totals_make(pool, 4);
    for (int i = 0; i < 20; i++) {
      /* The first run touches fresh memory, which takes long. */
      vyre__job job = {run, t, i < 3 ? 1 : 4, 0};
      CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    }
    alone = t->helped == 0 && thread_count() == before;
    totals_free(t);
    vyre__pool_free(pool);
  }
  CHECK(alone);
}

/* Returns 0, or the number of a failed check. The system may delay other
 * threads: one of several jobs must be shared. */
static int share_work(vyre__pool *pool) {
  for (int i = 0; i < 50; i++) {
    totals *t = totals_make(pool, 200);
    t->busy_ns = 50000;
    vyre__job job = {run, t, 200, 0};
    uint32_t result = vyre__pool_run(pool, &job, 1, NULL, NULL);
    uint64_t wrong = missed(t, 200);
    bool has_help = t->helped > 0;
    totals_free(t);
    if (result != 0 || wrong != 0) return 1;
    if (has_help) return 0;
  }
  return 2;
}

TEST(much_work_is_shared) {
  vyre__pool *pool = make(2);
  CHECK_U64(share_work(pool), 0);
  vyre__pool_free(pool);
}

/* All work is in the last quarter; the threads with the other quarters steal
 * from it. */
TEST(idle_threads_steal_work) {
  vyre__pool *pool = make(2);
  vyre__job job;
  bool both = false;
  for (int i = 0; i < 20 && !both; i++) {
    totals *t = totals_make(pool, 256);
    t->busy_ns = 100000;
    t->slow_from = 192;
    job = (vyre__job){run, t, 256, 0};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    CHECK_U64(missed(t, 256), 0);
    unsigned slow = 0;
    for (unsigned c = 0; c < t->calls; c++) slow += t->starts[c] >= 192;
    both = t->helped > 0 && t->helped < t->calls && slow > 1;
    totals_free(t);
  }
  CHECK(both);
  vyre__pool_free(pool);
}

/* Threads are woken however often they fall asleep: one that was lost would
 * never help again. */
TEST(sleeping_threads_are_woken_repeatedly) {
  vyre__pool *pool = make(3);
  uint64_t seed = 11;
  vyre__pool_set_spin(pool, 0);
  for (int i = 0; i < 200; i++) {
    totals *t = totals_make(pool, 64);
    t->busy_ns = draw(&seed) % 4000;
    vyre__job job = {run, t, 64, 0};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    CHECK_U64(missed(t, 64), 0);
    totals_free(t);
    nanosleep(&(struct timespec){0, (long)(draw(&seed) % 300000)}, NULL);
  }
  bool has_help = false;
  for (int i = 0; i < 100 && !has_help; i++) {
    totals *t = totals_make(pool, 100);
    t->busy_ns = 200000;
    vyre__job job = {run, t, 100, 0};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    has_help = t->helped > 0;
    totals_free(t);
  }
  CHECK(has_help);
  vyre__pool_free(pool);
}

/* Runs on a thread of its own, to leave the affinity of the test alone. The
 * system may move it back at any time: once is enough. */
static void *keep_off(void *self) {
  bool *is_right = self;
  uint32_t before = vyre__pool_processors();
  for (int i = 0; i < 100 && !*is_right; i++) {
    uint32_t cpu = vyre__pool_cpu();
    vyre__pool_leave_cpu(cpu);
    if (vyre__pool_processors() != before) return NULL;
    *is_right = before < 2 || vyre__pool_cpu() != cpu;
  }
  return NULL;
}

TEST(a_worker_moves_off_a_processor_and_may_come_back) {
  pthread_t thread;
  bool is_right = false;
  CHECK(pthread_create(&thread, NULL, keep_off, &is_right) == 0);
  pthread_join(thread, NULL);
  CHECK(is_right);
}

/* Counts the other threads of the process that may run on the caller's
 * processor. */
static unsigned others_that_may_run_here(void) {
  unsigned count = 0;
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks);
  for (struct dirent *entry; (entry = readdir(tasks));) {
    cpu_set_t set;
    pid_t id = (pid_t)strtol(entry->d_name, NULL, 10);
    if (id <= 0 || id == getpid()) continue;
    if (sched_getaffinity(id, sizeof set, &set) != 0) continue;
    count += CPU_ISSET((unsigned)sched_getcpu(), &set) != 0;
  }
  closedir(tasks);
  return count;
}

/* Threads that help, and how many of them may run on a processor. */
typedef struct helpers {
  pthread_t caller;
  unsigned cpu;
  atomic_uint count, may_run;
} helpers;

static uint32_t ask_helpers(void *self, uint64_t first, uint64_t count,
                            uint32_t thread) {
  helpers *h = self;
  cpu_set_t set;
  (void)first;
  (void)thread;
  spend(50000 * count);
  if (pthread_equal(pthread_self(), h->caller) ||
      sched_getaffinity(0, sizeof set, &set) != 0) {
    return 0;
  }
  atomic_fetch_add(&h->count, 1);
  atomic_fetch_add(&h->may_run, CPU_ISSET(h->cpu, &set) != 0);
  return 0;
}

/* A thread that is woken on the processor of its waker would wait until the
 * waker has done the work itself. */
TEST(sleeping_threads_leave_the_callers_processor) {
  vyre__pool *pool = make(2);
  cpu_set_t before, one;
  CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
  if (CPU_COUNT(&before) >= 2) {
    unsigned others = others_that_may_run_here(); /* sanitizers have one */
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    CHECK_U64(share_work(pool), 0); /* the thread has been awake */
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_U64(share_work(pool), 0); /* and knows its caller's processor */
    bool is_away = false;
    for (int i = 0; i < 2000 && !is_away; i++) {
      nanosleep(&(struct timespec){0, 1000000}, NULL);
      is_away = others_that_may_run_here() == others;
    }
    CHECK(is_away);
    helpers h = {.caller = pthread_self(), .cpu = (unsigned)sched_getcpu()};
    vyre__job job = {ask_helpers, &h, 200, 0};
    for (int i = 0; i < 50 && h.count == 0; i++) {
      CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    }
    CHECK(h.count > 0);
    CHECK_U64(h.may_run, h.count); /* awake threads may run anywhere */
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
  }
  vyre__pool_free(pool);
}

/* Two threads, and work for two and a half units: both get the same. If items
 * are long or their cost is unknown, four threads with ten items run at most
 * three each. */
TEST(short_work_is_split_in_equal_parts) {
  static const struct {
    uint32_t threads, items;
    unsigned cost_ps;
    unsigned units;
  } cases[] = {{2, 100, 11000, 2},   {2, 100, 50000, 2},
               {2, 100, 66000, 2},   {2, 100, 81000, 4},
               {2, 100, 100000, 4},  {2, 100, 121000, 6},
               {4, 10, 0, 10},       {4, 10, 1000000000, 10},
               {4, 10, 1990000, 10}, {4, 640, 1990000, 64}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    vyre__pool *pool = make(cases[c].threads);
    uint32_t items = cases[c].items, units = cases[c].units;
    totals *t = totals_make(pool, items);
    atomic_uint cost = cases[c].cost_ps;
    vyre__job job = {run, t, items, 0, &cost};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    CHECK_U64(missed(t, items), 0);
    CHECK_U64(t->calls, units);
    for (unsigned i = 0; i < t->calls; i++) {
      CHECK_U64(t->starts[i] % ((items + units - 1) / units), 0);
    }
    totals_free(t);
    vyre__pool_free(pool);
  }
}

/* --- ends ------------------------------------------------------------------*/

TEST(a_failure_ends_its_job_and_later_ones) {
  static const uint32_t threads[] = {1, 2, 5};
  for (size_t p = 0; p < sizeof threads / sizeof threads[0]; p++) {
    vyre__pool *pool = make(threads[p]);
    totals *first = totals_make(pool, 64), *second = totals_make(pool, 2000),
           *third = totals_make(pool, 64);
    second->result = 77;
    second->ends_at = 3;
    second->busy_ns = 20000;
    vyre__job jobs[] = {
        {run, first, 64, 0}, {run, second, 2000, 0}, {run, third, 64, 0}};
    size_t done = 9;
    CHECK_U64(vyre__pool_run(pool, jobs, 3, &done, NULL), 77);
    CHECK_U64(done, 1);
    CHECK_U64(missed(first, 64), 0);
    CHECK_U64(third->calls, 0);
    uint64_t begun = 0;
    for (int i = 0; i < 2000; i++) begun += second->times[i];
    CHECK(begun >= 4 && begun < 1900);
    totals_free(first);
    totals_free(second);
    totals_free(third);
    vyre__pool_free(pool);
  }
}

TEST(an_empty_list_of_jobs_is_done_at_once) {
  vyre__pool *pool = make(2);
  size_t done = 9;
  uint64_t busy = 9;
  CHECK_U64(vyre__pool_run(pool, NULL, 0, &done, &busy), 0);
  CHECK_U64(done, 0);
  CHECK(busy < 1000000);
  vyre__pool_free(pool);
}

/* Each job reads what the one before wrote, in another order. */
enum { CELLS = 4096 };
typedef struct step {
  const uint32_t *from;
  uint32_t *to;
  uint64_t busy_ns;
} step;

static uint32_t run_step(void *self, uint64_t first, uint64_t count,
                         uint32_t thread) {
  const step *s = self;
  (void)thread;
  for (uint64_t i = first; i < first + count; i++) {
    s->to[i] = s->from[(i * 1103 + 7) % CELLS] * 2654435761u + (uint32_t)i;
  }
  if (s->busy_ns) spend(s->busy_ns);
  return 0;
}

TEST(jobs_of_a_list_wait_for_each_other) {
  enum { JOBS = 50 };
  static uint32_t got[2][CELLS], want[2][CELLS];
  vyre__pool *pool = make(3);
  for (int round = 0; round < 20; round++) {
    step steps[JOBS];
    vyre__job jobs[JOBS];
    for (int i = 0; i < CELLS; i++) got[0][i] = want[0][i] = (uint32_t)i;
    for (int i = 0; i < JOBS; i++) {
      steps[i] = (step){got[i % 2], got[(i + 1) % 2], round % 2 ? 2000 : 0};
      jobs[i] = (vyre__job){run_step, &steps[i], CELLS, 1};
      for (uint32_t c = 0; c < CELLS; c++) {
        want[(i + 1) % 2][c] =
            want[i % 2][(c * 1103 + 7) % CELLS] * 2654435761u + c;
      }
    }
    size_t done;
    CHECK_U64(vyre__pool_run(pool, jobs, JOBS, &done, NULL), 0);
    CHECK_U64(done, JOBS);
    CHECK(memcmp(got[JOBS % 2], want[JOBS % 2], sizeof got[0]) == 0);
  }
  vyre__pool_free(pool);
}

/* --- concurrent callers ----------------------------------------------------*/

typedef struct launcher {
  vyre__pool *pool;
  atomic_uint *inside;
  uint64_t seed;
  int rounds;
  uint64_t wrong;
  pthread_t thread;
} launcher;

static void *launch(void *self) {
  launcher *l = self;
  atomic_uint cost = 0;
  for (int i = 0; i < l->rounds; i++) {
    uint64_t count = draw(&l->seed) % 3 ? draw(&l->seed) % 300 : 1;
    totals *t = totals_make(l->pool, count + 1);
    t->inside = l->inside;
    t->busy_ns = draw(&l->seed) % 4 ? 0 : draw(&l->seed) % 3000;
    vyre__job jobs[2] = {
        {run, t, count, draw(&l->seed) % 3, draw(&l->seed) % 2 ? &cost : NULL}};
    uint64_t busy;
    if (vyre__pool_run(l->pool, jobs, 1, NULL,
                       draw(&l->seed) % 2 ? &busy : NULL) != 0) {
      l->wrong++;
    }
    l->wrong += missed(t, count) + t->clashes;
    totals_free(t);
    if (draw(&l->seed) % 16 == 0) {
      nanosleep(&(struct timespec){0, (long)(draw(&l->seed) % 700000)}, NULL);
    }
  }
  return NULL;
}

static void launch_all(vyre__pool *pool, int launchers, int rounds) {
  atomic_uint *inside = calloc(NUMBERS, sizeof *inside);
  launcher *all = calloc((size_t)launchers, sizeof *all);
  CHECK(inside && all && vyre__pool_numbers(pool) <= NUMBERS);
  for (int i = 0; i < launchers; i++) {
    all[i] = (launcher){pool, inside, (uint64_t)i * 977 + 5, rounds};
    CHECK(pthread_create(&all[i].thread, NULL, launch, &all[i]) == 0);
  }
  uint64_t wrong = 0;
  for (int i = 0; i < launchers; i++) {
    pthread_join(all[i].thread, NULL);
    wrong += all[i].wrong;
  }
  free(all);
  free((void *)inside);
  CHECK_U64(wrong, 0);
}

TEST(launchers_share_neither_thread_numbers_nor_items) {
  static const uint32_t threads[] = {1, 2, 7};
  for (size_t p = 0; p < sizeof threads / sizeof threads[0]; p++) {
    vyre__pool *pool = make(threads[p]);
    launch_all(pool, LAUNCHERS, 400);
    vyre__pool_free(pool);
  }
}

TEST(more_launchers_than_entries_all_finish) {
  vyre__pool *pool = make(2);
  launch_all(pool, 90, 20);
  vyre__pool_free(pool);
}

/* One job keeps all other threads busy; another caller still makes progress. */
static atomic_bool may_end;

static uint32_t hold(void *self, uint64_t first, uint64_t count,
                     uint32_t thread) {
  (void)first;
  (void)count;
  (void)thread;
  atomic_fetch_add((atomic_uint *)self, 1);
  while (!atomic_load(&may_end)) {
    nanosleep(&(struct timespec){0, 100000}, NULL);
  }
  return 0;
}

typedef struct holder {
  vyre__pool *pool;
  atomic_uint held;
} holder;

static void *hold_all(void *self) {
  holder *h = self;
  atomic_uint cost = 4000000000u; /* worth waking all threads */
  vyre__job job = {hold, &h->held, 8, 0, &cost};
  vyre__pool_run(h->pool, &job, 1, NULL, NULL);
  return NULL;
}

TEST(a_launcher_continues_while_others_are_busy) {
  holder h = {make(2), 0};
  pthread_t thread;
  atomic_store(&may_end, false);
  CHECK(pthread_create(&thread, NULL, hold_all, &h) == 0);
  while (atomic_load(&h.held) < 2)
    nanosleep(&(struct timespec){0, 100000}, NULL);
  totals *t = totals_make(h.pool, 500);
  t->busy_ns = 2000;
  vyre__job job = {run, t, 500, 0};
  CHECK_U64(vyre__pool_run(h.pool, &job, 1, NULL, NULL), 0);
  CHECK_U64(missed(t, 500), 0);
  CHECK_U64(t->helped, 0);
  atomic_store(&may_end, true);
  pthread_join(thread, NULL);
  CHECK_U64(h.held, 8);
  totals_free(t);
  vyre__pool_free(h.pool);
}

/* Short work is not split further while it waits for a free entry. */
TEST(short_work_that_is_not_shared_stays_in_large_parts) {
  vyre__pool *pool = make(2);
  for (uint32_t i = 0; i < POOL_SHARED_JOBS; i++) {
    atomic_store(&pool->shared_jobs[i].is_taken, true);
  }
  totals *t = totals_make(pool, MAX_ITEMS);
  atomic_uint cost = 10000; /* 200 items are a unit */
  vyre__job job = {run, t, MAX_ITEMS, 0, &cost};
  CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
  CHECK_U64(missed(t, MAX_ITEMS), 0);
  CHECK(t->calls < 150);
  totals_free(t);
  vyre__pool_free(pool);
}

/* --- nested jobs -----------------------------------------------------------*/

typedef struct nest {
  totals *inner;
  atomic_uint wrong;
} nest;

static uint32_t run_nested(void *self, uint64_t first, uint64_t count,
                           uint32_t thread) {
  nest *n = self;
  (void)thread;
  for (uint64_t i = first; i < first + count; i++) {
    totals *t = totals_make(n->inner->pool, 40);
    t->busy_ns = 1000;
    vyre__job job = {run, t, 40, 0};
    size_t done;
    if (vyre__pool_run(t->pool, &job, 1, &done, NULL) != 0 || done != 1 ||
        missed(t, 40) != 0 || t->helped != 0) {
      atomic_fetch_add(&n->wrong, 1);
    }
    totals_free(t);
  }
  return 0;
}

TEST(a_nested_job_runs_on_its_thread) {
  vyre__pool *pool = make(3);
  nest n = {totals_make(pool, 0), 0};
  vyre__job job = {run_nested, &n, 60, 0};
  CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
  CHECK_U64(n.wrong, 0);
  totals_free(n.inner);
  vyre__pool_free(pool);
}

/* --- time ------------------------------------------------------------------*/

TEST(busy_time_is_that_of_all_threads) {
  static const uint32_t threads[] = {1, 2, 4};
  for (size_t p = 0; p < sizeof threads / sizeof threads[0]; p++) {
    vyre__pool *pool = make(threads[p]);
    totals *t = totals_make(pool, 100);
    t->busy_ns = 50000;
    vyre__job job = {run, t, 100, 0};
    uint64_t busy = 0, start = vyre__clock_ns();
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, &busy), 0);
    uint64_t wall = vyre__clock_ns() - start;
    CHECK(busy >= 5000000 && busy <= wall * threads[p]);
    totals_free(t);
    vyre__pool_free(pool);
  }
}

/* The caller runs the first of two items, and waits for the second. */
typedef struct pair {
  atomic_bool has_begun;
  _Atomic uint64_t spent_ns, ends_ns[2];
} pair;

static uint32_t run_pair(void *self, uint64_t first, uint64_t count,
                         uint32_t thread) {
  pair *p = self;
  uint64_t start = vyre__clock_ns();
  (void)thread;
  for (uint64_t i = first; i < first + count; i++) {
    if (i == 1) {
      atomic_store(&p->has_begun, true);
      spend(20000000);
      continue;
    }
    while (!atomic_load(&p->has_begun) &&
           vyre__clock_ns() < start + 1000000000);
  }
  uint64_t now = vyre__clock_ns();
  atomic_fetch_add(&p->spent_ns, now - start);
  p->ends_ns[first] = now;
  return 0;
}

TEST(waiting_for_others_is_not_busy) {
  vyre__pool *pool = make(2);
  bool is_right = false;
  for (int i = 0; i < 20 && !is_right; i++) {
    pair p = {false, 0, {0, 0}};
    atomic_uint cost = 4000000000u; /* worth waking the other thread at once */
    vyre__job job = {run_pair, &p, 2, 0, &cost};
    uint64_t busy;
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, &busy), 0);
    CHECK(busy >= p.spent_ns);
    /* Only if it did wait: the system may have preempted it before. */
    is_right =
        p.ends_ns[1] > p.ends_ns[0] + 15000000 && busy < p.spent_ns + 10000000;
  }
  CHECK(is_right);
  vyre__pool_free(pool);
}

TEST(the_cost_of_an_item_is_measured) {
  vyre__pool *pool = make(2);
  totals *t = totals_make(pool, 64);
  atomic_uint cost = 0;
  t->busy_ns = 20000;
  vyre__job job = {run, t, 64, 0, &cost};
  CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
  CHECK(cost >= 19000000);
  totals_free(t);
  vyre__pool_free(pool);
}

/* --- start and end ---------------------------------------------------------*/

TEST(a_pool_ends_at_once_after_its_work) {
  for (int i = 0; i < 100; i++) {
    vyre__pool *pool = make(1 + (uint32_t)i % 7);
    if (i % 3 == 0) vyre__pool_set_spin(pool, 0);
    totals *t = totals_make(pool, 40);
    t->busy_ns = (uint64_t)(i % 5) * 2000;
    vyre__job job = {run, t, 40, 0};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    vyre__pool_free(pool);
    CHECK_U64(missed(t, 40), 0);
    totals_free(t);
  }
  vyre__pool_free(NULL);
}

static void *refuse(void *self, void *ptr, size_t old_size, size_t new_size) {
  (void)self;
  (void)ptr;
  (void)old_size;
  (void)new_size;
  return NULL;
}

TEST(no_memory_is_a_status) {
  vyre__pool *pool;
  vyre_status st = {0};
  CHECK(vyre__pool_create((vyre_allocator){refuse, NULL}, 2, &pool, &st) ==
        VYRE_OUT_OF_MEMORY);
  CHECK(!pool && st.message[0] && st.fix[0]);
}

TEST(zero_threads_means_one_per_processor) {
  vyre__pool *pool = make(0);
  CHECK(pool->threads >= 1);
  CHECK(vyre__pool_numbers(pool) > pool->threads);
  vyre__pool_free(pool);
}

/* Runs @p body in a child process that must exit by itself. */
static int in_child(int (*body)(vyre__pool *), vyre__pool *pool) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body(pool));
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int share_and_free(vyre__pool *pool) {
  int wrong = share_work(pool);
  vyre__pool_free(pool);
  return wrong;
}

static int free_only(vyre__pool *pool) {
  vyre__pool_free(pool);
  return 0;
}

static void *fork_beside(void *self) {
  holder *h = self;
  hold_all(h);
  return NULL;
}

TEST(a_forked_child_has_its_own_threads) {
  if (HAS_TSAN) return;
  vyre__pool *pool = make(2);
  CHECK_U64(share_work(pool), 0);
  CHECK_U64(in_child(share_and_free, pool), 0);
  CHECK_U64(in_child(free_only, pool), 0);
  CHECK_U64(share_work(pool), 0);
  /* The fork happens while another thread runs a job. */
  holder h = {pool, 0};
  pthread_t thread;
  atomic_store(&may_end, false);
  CHECK(pthread_create(&thread, NULL, fork_beside, &h) == 0);
  while (atomic_load(&h.held) < 2)
    nanosleep(&(struct timespec){0, 100000}, NULL);
  CHECK_U64(in_child(share_and_free, pool), 0);
  atomic_store(&may_end, true);
  pthread_join(thread, NULL);
  CHECK_U64(h.held, 8);
  vyre__pool_free(pool);
}

/* Runs in a child that cannot start threads. The limit is per user and does not
 * apply to root, for which memory is limited instead. */
static int without_threads(vyre__pool *pool) {
  (void)pool;
  vyre__pool *own;
  struct rlimit none = {0, 0};
  if (vyre__pool_create((vyre_allocator){0}, 4, &own, NULL) != VYRE_OK)
    return 4;
  totals *t = totals_make(own, 100);
  t->busy_ns = 20000;
  if (setrlimit(RLIMIT_AS, &none) != 0) return 5;
  vyre__job job = {run, t, 100, 0};
  if (vyre__pool_run(own, &job, 1, NULL, NULL) != 0) return 1;
  if (missed(t, 100) != 0) return 2;
  return t->helped == 0 ? 0 : 3;
}

TEST(a_pool_without_threads_still_works) {
  if (HAS_TSAN || HAS_ASAN) return;
  CHECK_U64(in_child(without_threads, NULL), 0);
}

/* --- between two jobs ------------------------------------------------------*/

#if defined(__x86_64__) && !HAS_TSAN

/* Single-steps a call. At every instruction, acts as a thread that was
 * preempted in the job before: it must not find a unit of that job, all of
 * which are done, even while the next job is being filled in. */
static struct {
  const vyre__pool *pool;
  uint64_t before[POOL_SHARED_JOBS]; /* generations of finished jobs */
  volatile sig_atomic_t goes_on;
  unsigned long steps, found;
} late;

enum { TRAP_FLAG = 0x100, UNIT_BITS = 16 };

static void look_late(int signal, siginfo_t *info, void *context) {
  (void)signal;
  (void)info;
  late.steps++;
  for (uint32_t i = 0; i < POOL_SHARED_JOBS; i++) {
    const pool_shared_job *region = &late.pool->shared_jobs[i];
    for (uint32_t k = 0; k < late.pool->threads; k++) {
      uint64_t next = atomic_load(&region->shares[k].next);
      if (next >> UNIT_BITS == late.before[i] &&
          (next & 0xffff) < atomic_load(&region->shares[k].end)) {
        late.found++;
      }
    }
  }
  greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
  *flags = late.goes_on ? *flags | TRAP_FLAG : *flags & ~(greg_t)TRAP_FLAG;
}

static void start_all(vyre__pool *pool) {
  enum { MAX_WAITS = 10000 }; /* of 2 ms: a pool may get no thread */
  for (int i = 0; atomic_load(&pool->started) < pool->threads - 1; i++) {
    CHECK(i < MAX_WAITS);
    totals *t = totals_make(pool, 100);
    t->busy_ns = 20000;
    vyre__job job = {run, t, 100, 0};
    CHECK_U64(vyre__pool_run(pool, &job, 1, NULL, NULL), 0);
    totals_free(t);
  }
}

TEST(late_threads_find_no_finished_job) {
  static const uint64_t counts[] = {2, 32, 3, 64, 2, 7, 100};
  struct sigaction action = {.sa_flags = SA_SIGINFO}, old;
  vyre__pool *own = make(2);
  late.pool = own;
  action.sa_sigaction = look_late;
  start_all(own); /* a thread started in between would be single-stepped */
  CHECK(sigaction(SIGTRAP, &action, &old) == 0);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    totals *t = totals_make(own, counts[i]);
    vyre__job job = {run, t, counts[i], 0};
    for (uint32_t k = 0; k < POOL_SHARED_JOBS; k++) {
      late.before[k] = atomic_load(&own->shared_jobs[k].generation);
    }
    late.steps = 0;
    late.goes_on = 1;
    CHECK(raise(SIGTRAP) == 0);
    uint32_t result = vyre__pool_run(own, &job, 1, NULL, NULL);
    late.goes_on = 0;
    CHECK_U64(result, 0);
    CHECK_U64(missed(t, counts[i]), 0);
    CHECK(late.steps > 100);
    totals_free(t);
  }
  CHECK_U64(late.found, 0);
  CHECK(sigaction(SIGTRAP, &old, NULL) == 0);
  vyre__pool_free(own);
}

#define LATE_ENTRIES TEST_ENTRY(late_threads_find_no_finished_job),

#else
#define LATE_ENTRIES
#endif

/* The first case must run before any thread exists, as the C library keeps
 * their stacks. */
TEST_MAIN(TEST_ENTRY(a_pool_without_threads_still_works),
          TEST_ENTRY(every_item_runs_once),
          TEST_ENTRY(huge_counts_are_covered_by_ranges),
          TEST_ENTRY(one_item_runs_on_the_caller),
          TEST_ENTRY(little_work_runs_on_the_caller),
          TEST_ENTRY(much_work_is_shared), TEST_ENTRY(idle_threads_steal_work),
          TEST_ENTRY(sleeping_threads_are_woken_repeatedly),
          TEST_ENTRY(a_worker_moves_off_a_processor_and_may_come_back),
          TEST_ENTRY(sleeping_threads_leave_the_callers_processor),
          TEST_ENTRY(short_work_is_split_in_equal_parts),
          TEST_ENTRY(a_failure_ends_its_job_and_later_ones),
          TEST_ENTRY(an_empty_list_of_jobs_is_done_at_once),
          TEST_ENTRY(jobs_of_a_list_wait_for_each_other),
          TEST_ENTRY(launchers_share_neither_thread_numbers_nor_items),
          TEST_ENTRY(more_launchers_than_entries_all_finish),
          TEST_ENTRY(a_launcher_continues_while_others_are_busy),
          TEST_ENTRY(short_work_that_is_not_shared_stays_in_large_parts),
          TEST_ENTRY(a_nested_job_runs_on_its_thread),
          LATE_ENTRIES TEST_ENTRY(busy_time_is_that_of_all_threads),
          TEST_ENTRY(waiting_for_others_is_not_busy),
          TEST_ENTRY(the_cost_of_an_item_is_measured),
          TEST_ENTRY(a_pool_ends_at_once_after_its_work),
          TEST_ENTRY(no_memory_is_a_status),
          TEST_ENTRY(zero_threads_means_one_per_processor),
          TEST_ENTRY(a_forked_child_has_its_own_threads))
