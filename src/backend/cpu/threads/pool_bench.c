/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures the thread pool against OpenMP.
 *
 * Spinning threads would take the processors from the next contestant. So each
 * contestant is a process of its own, stopped while it is not measured. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/cpu/threads/pool_internal.h"
#include "bench.h"

static const char suite[] = "cpu.pool";

enum {
  ROUNDS = 15,
  SAMPLES = 21,          /* launches of a turn, */
  TURN_NS = 60000000,    /* or as many as fit in this time */
  WARM = 5,              /* launches before them */
  BLOCK = 20,            /* launches between two readings of the clock */
  HOT = 200,             /* launches of one sample without gaps, */
  HOT_NS = 1000000,      /* or as many as fit in this time */
  SCENE_NS = 2000000000, /* time of all turns; it limits the rounds */
  ITEMS = 32,
  ITEM_NS = 32000,
  MAX_CONTESTANTS = 4,
};

/* --- workloads -------------------------------------------------------------*/

typedef struct scene {
  const char *name;
  bool has_work, is_awake; /* is_awake: after work that wakes all threads */
  long gap_ns;             /* time between launches, spent spinning */
  long sleep_ns;           /* or sleeping */
} scene;

static const scene scenes[] = {
    {"empty launch on all cores, threads spin", false, true, 0, 0},
    {"empty launch, hot", false, false, 0, 0},
    {"empty launch, after 20 us", false, false, 20000, 0},
    {"empty launch, after 200 us", false, false, 200000, 0},
    {"empty launch, after 2 ms", false, false, 2000000, 0},
    {"1024 us of work in 32 pieces, hot", true, false, 0, 0},
    {"1024 us in 32 pieces, after 200 us", true, false, 200000, 0},
    {"1024 us in 32 pieces, after 3 ms asleep", true, false, 0, 3000000},
};
enum { SCENES = sizeof scenes / sizeof scenes[0] };

static long steps; /* number of steps that take ITEM_NS */
static volatile uint64_t sink;

/* A chain of dependent steps, whose speed is constant. */
static void spend(long count) {
  uint64_t x = 88172645463325252u;
  for (long i = 0; i < count; i++) x = x * 6364136223846793005u + 1;
  sink = x;
}

static void calibrate(void) {
  double best = 1e18;
  for (int i = 0; i < 50; i++) {
    double start = bench_now_ns();
    spend(100000);
    double took = bench_now_ns() - start;
    if (took < best) best = took;
  }
  steps = (long)(ITEM_NS * 100000.0 / best);
}

static void run_item(void *self, long index) {
  (void)index;
  if (self) spend(steps);
}

static uint32_t run_items(void *self, uint64_t first, uint64_t count,
                          uint32_t thread) {
  (void)thread;
  for (uint64_t i = 0; i < count; i++) run_item(self, (long)(first + i));
  return 0;
}

/* --- one contestant --------------------------------------------------------*/

typedef struct contestant {
  const char *name, *compiler; /* compiler: of the library; NULL: the pool */
  void (*peer_for)(void (*)(void *, long), void *, long);
  pid_t process;
  int ask[2], answer[2];
  bench_times times;
  double medians[ROUNDS];
} contestant;

static void launch(contestant *c, vyre__pool *pool, bool has_work) {
  long items = has_work ? ITEMS : (long)pool->threads;
  void *self = has_work ? (void *)&scenes : NULL;
  if (c->peer_for) {
    c->peer_for(run_item, self, items);
    return;
  }
  vyre__job job = {run_items, self, (uint64_t)items, 0};
  vyre__pool_run(pool, &job, 1, NULL, NULL);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void wait_between(const scene *s) {
  double end = bench_now_ns() + (double)s->gap_ns;
  while (s->gap_ns && bench_now_ns() < end);
  if (s->sleep_ns) nanosleep(&(struct timespec){0, s->sleep_ns}, NULL);
}

/* Runs one turn. Returns the number of samples. */
static int turn(contestant *c, vyre__pool *pool, const scene *s,
                double *samples) {
  long repeat = s->gap_ns || s->sleep_ns || s->has_work ? 1 : HOT;
  double late = bench_now_ns() + TURN_NS;
  int i = -WARM;
  for (; i < 1 || (i < SAMPLES && bench_now_ns() < late); i++) {
    if (s->is_awake) launch(c, pool, true);
    wait_between(s);
    double start = bench_now_ns();
    double end = start;
    long launches = 0;
    while (launches < repeat && end < start + HOT_NS) {
      long block = repeat > 1 ? BLOCK : 1;
      for (long k = 0; k < block; k++) launch(c, pool, s->has_work);
      launches += block;
      end = bench_now_ns();
    }
    if (i >= 0) samples[i] = (end - start) / (double)launches;
  }
  return i;
}

/* Ends the child without exit handlers. */
static void end_child(void) {
  kill(getpid(), SIGKILL);
}

static void serve(contestant *c) {
  vyre__pool *pool;
  int index;
  if (vyre__pool_create((vyre_allocator){0}, 0, &pool, NULL) != VYRE_OK) return;
  while (read(c->ask[0], &index, sizeof index) == sizeof index) {
    double samples[SAMPLES];
    int count = turn(c, pool, &scenes[index], samples);
    qsort(samples, (size_t)count, sizeof samples[0], by_value);
    bench_times times = {samples[count / 2], samples[0]};
    if (write(c->answer[1], &times, sizeof times) != sizeof times) break;
  }
  vyre__pool_free(pool);
}

/* --- all contestants -------------------------------------------------------*/

static bool load(contestant *c) {
  char path[] = "/tmp/vyre-bench-XXXXXX", command[1024];
  int file = mkstemp(path);
  if (file < 0) return false;
  close(file);
  snprintf(command, sizeof command,
           "%s -O3 -march=native -fopenmp -shared -fPIC -o %s %s/peer_openmp.c "
           "2>/dev/null",
           c->compiler, path, VYRE_BENCH);
  void *library =
      system(command) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  unlink(path);
  void *symbol = library ? dlsym(library, "peer_for") : NULL;
  memcpy(&c->peer_for, &symbol, sizeof symbol);
  return symbol != NULL;
}

static bool begin(contestant *c) {
  if (pipe(c->ask) != 0 || pipe(c->answer) != 0) return false;
  fflush(stdout);
  c->process = fork();
  if (c->process == 0) {
    close(c->ask[1]);
    /* Loaded in the child: a runtime's threads belong to the process that loads
     * it. */
    if (!c->compiler || load(c)) serve(c);
    end_child();
  }
  close(c->ask[0]);
  close(c->answer[1]);
  return c->process > 0;
}

/* Runs one turn. Returns false if the process has ended. */
static bool measure(contestant *c, int scene_index, int round) {
  bench_times times;
  kill(c->process, SIGCONT);
  if (write(c->ask[1], &scene_index, sizeof scene_index) < 0 ||
      read(c->answer[0], &times, sizeof times) != sizeof times) {
    return false;
  }
  kill(c->process, SIGSTOP);
  if (round == 0 || times.minimum < c->times.minimum) {
    c->times.minimum = times.minimum;
  }
  c->medians[round] = times.median;
  qsort(c->medians, (size_t)round + 1, sizeof c->medians[0], by_value);
  c->times.median = c->medians[round / 2];
  return true;
}

static void end(contestant *c) {
  int status;
  close(c->ask[1]);
  close(c->answer[0]);
  kill(c->process, SIGKILL); /* works on stopped processes as well */
  waitpid(c->process, &status, 0);
}

static void compete(void) {
  contestant all[MAX_CONTESTANTS] = {
      {"vyre", NULL}, {"OpenMP, gcc", "gcc"}, {"OpenMP, clang 19", "clang-19"}};
  bool is_there[MAX_CONTESTANTS] = {false};
  enum { CONTESTANTS = 3 };
  for (int c = 0; c < CONTESTANTS; c++) is_there[c] = begin(&all[c]);
  for (int s = 0; s < SCENES; s++) {
    double late = bench_now_ns() + SCENE_NS;
    for (int round = 0; round < 3 || (round < ROUNDS && bench_now_ns() < late);
         round++) {
      for (int c = 0; c < CONTESTANTS; c++) {
        is_there[c] = is_there[c] && measure(&all[c], s, round);
      }
    }
    if (!is_there[0]) bench_fail(suite, "the pool failed");
    for (int c = 1; c < CONTESTANTS; c++) {
      if (!is_there[c]) continue;
      bench_row_times(suite, scenes[s].name, "us", 1e-3, all[0].times,
                      all[c].name, all[c].times);
    }
    if (!is_there[1] && !is_there[2]) {
      bench_row_times(suite, scenes[s].name, "us", 1e-3, all[0].times, "",
                      all[0].times);
    }
  }
  for (int c = 0; c < CONTESTANTS; c++) end(&all[c]);
}

/* --- alone -----------------------------------------------------------------*/

typedef struct alone {
  vyre__pool *pool;
  vyre__job jobs[1000];
  size_t count;
} alone;

static bool run_alone(void *self) {
  alone *a = self;
  return vyre__pool_run(a->pool, a->jobs, a->count, NULL, NULL) == 0;
}

static bool call_alone(void *self) {
  alone *a = self;
  uint32_t (*volatile run)(void *, uint64_t, uint64_t, uint32_t) = run_items;
  for (size_t i = 0; i < a->count; i++) {
    if (run(a->jobs[i].self, 0, a->jobs[i].count, 0) != 0) return false;
  }
  return true;
}

static void row_alone(alone *a, const char *name, uint64_t items,
                      atomic_uint *cost, size_t count) {
  bench_times ours, direct;
  a->count = count;
  for (size_t i = 0; i < count; i++) {
    a->jobs[i] = (vyre__job){run_items, NULL, items, 0, cost};
  }
  bench_pair((bench_job){run_alone, a}, (bench_job){call_alone, a}, 101,
             (long)(10000 / count), &ours, &direct);
  bench_row_times(suite, name, "ns", 1.0 / (double)count, ours, "direct call",
                  direct);
}

void bench_cpu_pool(void) {
  static alone a;
  static atomic_uint cost;
  signal(SIGPIPE, SIG_IGN); /* of a contestant that could not start */
  calibrate();
  compete();
  if (vyre__pool_create((vyre_allocator){0}, 0, &a.pool, NULL) != VYRE_OK) {
    bench_fail(suite, "no pool");
  }
  row_alone(&a, "a job of one piece", 1, NULL, 1);
  row_alone(&a, "a job of one piece, in a list of 1000", 1, NULL, 1000);
  row_alone(&a, "an empty job of 4 pieces, cost known", 4, &cost, 1);
  vyre__pool_free(a.pool);
}
