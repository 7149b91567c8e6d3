/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data shared by the files of the pool: pool.c runs jobs for callers,
 * pool_job.c shares a job between threads, pool_worker.c manages the threads.
 *
 * A launcher is an entry for one caller of vyre__pool_run; its index gives the
 * caller's thread number. A shared job is an entry for one job that several
 * threads work on. Free entries of both kinds are found by trying them,
 * starting at a different index for each thread, so that callers do not contend
 * for a cache line.
 *
 * A shared job is split into units, and the units into one share per thread.
 * Each use of an entry has a new generation number. Threads read an entry
 * without a lock, even while a caller fills it again. What they have read is
 * valid only if they then claim a unit with the generation they read before: an
 * entry is filled again only when all its units are claimed and done, so a
 * successful claim proves that the generation is unchanged. No thread
 * registers with an entry, and a thread that is preempted in between blocks no
 * other. */
#ifndef VYRE_BACKEND_CPU_THREADS_POOL_INTERNAL_H
#define VYRE_BACKEND_CPU_THREADS_POOL_INTERNAL_H

#include <pthread.h>

#include "backend/cpu/threads/atfork.h"
#include "backend/cpu/threads/pool.h"
#include "base/clock.h"

enum {
  POOL_LINE = 64,       /* bytes of a cache line */
  POOL_SHARED_JOBS = 8, /* jobs shared at once; further ones run on their caller
                            alone until an entry is free */
  POOL_LAUNCHERS = 64,  /* concurrent callers */
  POOL_SPLIT = 16,      /* units of a share */
  POOL_THREADS = 1024,  /* maximum */
  POOL_TINY_NS = 300,   /* jobs shorter than this are not all measured */
  POOL_ALONE_NS = 500,  /* jobs shorter than this run in one piece */
  POOL_SHARE_NS = 1000, /* jobs shorter than this are not shared, even if other
                            threads are spinning */
  POOL_WAKE_NS = 15000, /* jobs shorter than this wake no thread: the system
                            call takes about as long */
  POOL_UNSHARED_NS =
      100000,           /* after this much unshared work in a row, threads are
                         woken for more of the same */
  POOL_UNIT_NS = 2000,  /* minimum time of a unit, where item costs are known */
  POOL_STEAL_NS = 2000, /* time that a share is left to its thread, which had
                           its memory in its cache before */
  POOL_LATE_NS = 50000, /* jobs shorter than this are not shared while the
                           other threads come late */
  POOL_MAX_LATE = 10    /* late threads in a row that make a difference */
};

typedef uint32_t pool_run(void *self, uint64_t first, uint64_t count,
                          uint32_t thread);

/* A contiguous range of units, intended for one thread. */
typedef struct pool_share {
  _Alignas(POOL_LINE) _Atomic uint64_t next; /* generation; next unit in the low
                                                16 bits */
  atomic_uint end;
} pool_share;

typedef struct pool_shared_job {
  /* Written between jobs only, so that idle threads keep it in their caches. */
  _Alignas(POOL_LINE) _Atomic uint64_t generation;
  pool_run *_Atomic run;
  void *_Atomic self;
  _Atomic uint64_t first, count, chunk; /* items first to count - 1, in units of
                                           `chunk` items */
  atomic_uint share_count;
  atomic_uint cpu; /* processor of the caller, plus 1 */
  atomic_bool is_timed;

  /* Written by the threads that work on the job. */
  _Alignas(POOL_LINE)
      atomic_uint done; /* units finished by others than the caller; a futex */
  atomic_uint result;
  atomic_uint is_awaited; /* the caller sleeps on `done` */
  atomic_uint wakes_left; /* sleepers that woken threads still have to wake */
  _Atomic uint64_t busy_ns;

  _Alignas(POOL_LINE) atomic_bool is_taken;
  pool_share *shares; /* for each thread of the pool */
} pool_shared_job;

typedef struct pool_launcher {
  _Alignas(POOL_LINE) atomic_bool is_taken;
  uint32_t tiny_jobs; /* of its caller: see is_tiny() in pool.c */
} pool_launcher;

typedef struct pool_worker {
  _Alignas(POOL_LINE) vyre__pool *pool;
  uint32_t index; /* also its thread number */
  pthread_t thread;
  uint64_t seen[POOL_SHARED_JOBS]; /* last generation of each */
  uint32_t caller_cpu;    /* processor of the last caller it saw, plus 1 */
  bool avoids_caller_cpu; /* started with an affinity without that processor */
} pool_worker;

struct vyre__pool {
  vyre_allocator allocator;
  void *memory; /* allocation that contains all of the pool */
  size_t size;
  uint32_t threads;
  bool has_cpu_per_thread; /* not more threads than processors */
  uint32_t spare;          /* processors without a thread of the pool */
  uint64_t spin_ticks;     /* time an idle thread spins */
  uint64_t steal_ticks;    /* POOL_STEAL_NS */
  pool_launcher *launchers;
  pool_shared_job *shared_jobs;
  pool_worker *workers;
  vyre__atfork_entry atfork;

  _Alignas(POOL_LINE) atomic_uint started; /* number of workers */
  atomic_uint sleepers;     /* workers in the futex, or about to enter it */
  atomic_uint wake_counter; /* a futex; incremented by every wake-up */
  atomic_bool is_ending;
  atomic_uint reserved; /* processors for threads that are not of the pool */
  pthread_mutex_t start_lock; /* for starting threads, and for the end */
  uint64_t retry_ns; /* no thread is started before this time; under the lock */

  /* Work that callers did alone in jobs shortly after each other, each too
   * short to wake a thread for. Only a hint. */
  _Alignas(POOL_LINE) _Atomic uint64_t unshared_ns;
  _Atomic uint64_t unshared_at; /* ticks of the last such job */
  /* Threads that look for work, but did not begin their share in time: their
   * processor runs something else. Only hints. */
  atomic_uint late_count; /* in a row */
  atomic_uint alone_left; /* short jobs that are not shared for this reason */
};

/* Identity of this thread in the pool whose job it runs. */
typedef struct pool_self {
  const vyre__pool *pool;
  uint32_t number;
  uint32_t launcher; /* the last one it used; usually free again */
} pool_self;

/* initial-exec: an access must not take longer than a small job. */
extern _Thread_local pool_self vyre__pool_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* --- time ------------------------------------------------------------------*/

/* Returns the processor's time-stamp counter: reading a clock would take longer
 * than the jobs to be measured. */
static inline uint64_t pool_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return vyre__clock_ns();
#endif
}
double vyre__pool_ns_of(uint64_t ticks);

static inline void pool_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* --- pool_job.c -----------------------------------------------------------*/

/* State of one call of vyre__pool_run. */
typedef struct pool_call {
  vyre__pool *pool;
  uint32_t number;
  bool is_timed;
  uint32_t upcoming;  /* similar jobs that follow */
  uint64_t waited_ns; /* time spent waiting for other threads, if timed */
  uint64_t others_ns; /* time other threads worked, if timed */
} pool_call;

/* Runs items first to job->count - 1 with all awake threads. Returns the job's
 * result. @p cost: of an item in picoseconds; 0 if unknown. */
uint32_t vyre__pool_run_shared(pool_call *call, const vyre__job *job,
                               uint64_t first, uint64_t cost);

/* Stores the measured cost of an item in the job, if it changed noticeably. */
void vyre__pool_update_cost(const vyre__job *job, double ns, uint64_t items);

/* Works on a shared job, if its generation is new to the worker. Returns true
 * if the worker ran something. */
bool vyre__pool_help(pool_worker *worker, uint32_t shared, bool was_asleep);

/* --- pool_worker.c ---------------------------------------------------------*/

/* Returns the number of workers that may not claim work: the last ones. */
static inline uint32_t pool_reserved(const vyre__pool *pool) {
  uint32_t reserved =
      atomic_load_explicit(&pool->reserved, memory_order_relaxed);
  return reserved > pool->spare ? reserved - pool->spare : 0;
}
static inline bool pool_is_reserved(const pool_worker *worker) {
  return worker->index + pool_reserved(worker->pool) >=
         worker->pool->threads - 1;
}
/* Returns true if vyre__pool_wake_one could wake or start a thread that may
 * work. */
static inline bool pool_has_idle(vyre__pool *pool) {
  uint32_t idle = atomic_load_explicit(&pool->sleepers, memory_order_relaxed) +
                  pool->threads - 1 -
                  atomic_load_explicit(&pool->started, memory_order_relaxed);
  return idle > pool_reserved(pool);
}
/* Wakes a sleeping thread, or starts one. Takes microseconds. */
void vyre__pool_wake_one(vyre__pool *pool);
/* Moves this thread to another processor; @p cpu is as from vyre__pool_cpu. */
void vyre__pool_leave_cpu(uint32_t cpu);
/* Ends all threads and waits for them. */
void vyre__pool_join(vyre__pool *pool);

bool vyre__pool_futex_sleep(atomic_uint *word, unsigned seen);
unsigned vyre__pool_futex_wake(atomic_uint *word, unsigned max);
uint32_t vyre__pool_cpu(void); /* current processor plus 1; 0 if unknown */
uint32_t vyre__pool_processors(void); /* that the process may run on */

#endif
