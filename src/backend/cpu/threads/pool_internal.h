/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of the pool share: pool.c is about whoever calls, pool_job.c
 * about sharing a job, pool_worker.c about the threads.
 *
 * A launcher is a place for one caller of vyre__pool_run; it stands for a thread
 * number. A region is a place for one job that is shared. Both are found free by
 * trying, so that callers do not meet on one cache line.
 *
 * Everybody reads regions at any time, also while they are filled anew: what is
 * read there counts only once a unit was claimed under the generation that was
 * read before. Nobody fills a region whose units are not all claimed and done, so
 * a claim that succeeds proves that all was of that generation; nothing else has
 * to be entered or left, and a thread that is stopped in between holds up nobody. */
#ifndef VYRE_BACKEND_CPU_THREADS_POOL_INTERNAL_H
#define VYRE_BACKEND_CPU_THREADS_POOL_INTERNAL_H

#include <pthread.h>

#include "backend/cpu/threads/atfork.h"
#include "backend/cpu/threads/pool.h"
#include "base/clock.h"

enum {
  POOL_LINE = 64,       /* bytes of a cache line */
  POOL_REGIONS = 8,     /* jobs shared at once; further ones run on their caller
                           until a region is free */
  POOL_LAUNCHERS = 64,  /* callers at once */
  POOL_SPLIT = 16,      /* units of a share */
  POOL_THREADS = 1024,  /* at most */
  POOL_SHARE_NS = 1000, /* less work than this is not shared, even if others
                           spin */
  POOL_WAKE_NS = 15000, /* less is not worth waking anyone: the call that wakes
                           takes about as long */
  POOL_MISSED_NS =
      100000,         /* that much work done alone, launch after launch: there
                              will be more */
  POOL_UNIT_NS = 2000 /* units are not made shorter, where that is known */
};

typedef uint32_t pool_run(void *self, uint64_t first, uint64_t count,
                          uint32_t thread);

/* A contiguous part of the units of a region, first for one thread. */
typedef struct pool_share {
  _Alignas(POOL_LINE) _Atomic uint64_t next; /* generation, and the unit that is
                                                next in the low 16 bits */
  atomic_uint end;
} pool_share;

typedef struct pool_region {
  /* Written between jobs only: those who look for work keep it in their cache. */
  _Alignas(POOL_LINE) _Atomic uint64_t generation;
  pool_run *_Atomic run;
  void *_Atomic self;
  _Atomic uint64_t first, count, chunk; /* pieces first to count - 1 in units of
                                           chunk */
  atomic_uint share_count;
  atomic_uint cpu; /* where the caller ran then, and 1 */
  atomic_bool is_timed;

  /* Written by those who work. */
  _Alignas(POOL_LINE)
      atomic_uint done; /* units, but for the caller's; a futex */
  atomic_uint result;
  atomic_uint is_awaited; /* the caller sleeps on `done` */
  atomic_uint wanted; /* sleepers that are still to be woken, by those woken */
  _Atomic uint64_t busy_ns;

  _Alignas(POOL_LINE) atomic_bool is_taken;
  pool_share *shares; /* one a thread of the pool */
} pool_region;

typedef struct pool_launcher {
  _Alignas(POOL_LINE) atomic_bool is_taken;
} pool_launcher;

typedef struct pool_worker {
  _Alignas(POOL_LINE) vyre__pool *pool;
  uint32_t index; /* and thread number */
  pthread_t thread;
  uint64_t seen[POOL_REGIONS]; /* generations that it is done with */
  uint32_t caller_cpu; /* where the last one was that it looked at, and 1 */
  bool is_away;        /* it begins with all processors but that one */
} pool_worker;

struct vyre__pool {
  vyre_allocator allocator;
  void *memory; /* what all of this is in */
  size_t size;
  uint32_t threads;
  bool has_room;       /* a processor for each thread */
  uint64_t spin_ticks; /* of those who have nothing to do */
  pool_launcher *launchers;
  pool_region *regions;
  pool_worker *workers;
  vyre__atfork_entry forks;

  _Alignas(POOL_LINE) atomic_uint started; /* workers */
  atomic_uint sleepers;                    /* in the futex, or about to be */
  atomic_uint bell; /* a futex: rings whenever someone is woken */
  atomic_bool is_ending;
  pthread_mutex_t start_lock; /* for those who start threads, and the end */
  uint64_t retry_ns;          /* none is started before; under the lock */

  /* Work that callers did alone though it could be shared, one launch soon after
   * the other: what none of them was worth waking anybody for. Only a hint. */
  _Alignas(POOL_LINE) _Atomic uint64_t missed_ns;
  _Atomic uint64_t missed_at; /* ticks of the last one */
};

/* Who this thread is, in the pool whose job it runs. */
typedef struct pool_self {
  const vyre__pool *pool;
  uint32_t number;
  uint32_t launcher; /* the last one it had: free again, as a rule */
} pool_self;

/* In the thread's own block: asking for it must not take longer than a job. */
extern _Thread_local pool_self vyre__pool_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* --- time --------------------------------------------------------------------*/

/* Of the processor's counter where there is one: a clock costs more than what is
 * to be measured. */
static inline uint64_t pool_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return vyre__clock_ns();
#endif
}
uint64_t vyre__pool_ticks_of(uint64_t ns);
double vyre__pool_ns_of(uint64_t ticks);

static inline void pool_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* --- pool_job.c -----------------------------------------------------------*/

/* What a caller of vyre__pool_run has with it. */
typedef struct pool_call {
  vyre__pool *pool;
  uint32_t number;
  bool is_timed;
  uint32_t more;      /* jobs like this that are to come */
  uint64_t waited_ns; /* for others, if timed */
  uint64_t others_ns; /* what they worked, if timed */
} pool_call;

/* Runs pieces first to job->count - 1 with whoever is awake. Gives the result.
 * cost: of a piece in ps, 0 if not known. */
uint32_t vyre__pool_share(pool_call *call, const vyre__job *job, uint64_t first,
                          uint64_t cost);

/* Keeps what pieces took for the next run, if that is news. */
void vyre__pool_learn(const vyre__job *job, double ns, uint64_t pieces);

/* Works at a region whose generation the worker has not seen. Gives whether it
 * found something to do there. */
bool vyre__pool_help(pool_worker *worker, uint32_t region, bool was_asleep);

/* --- pool_worker.c -----------------------------------------------------------*/

/* Whether there is anyone that vyre__pool_summon could bring. */
static inline bool pool_has_idle(vyre__pool *pool) {
  return atomic_load_explicit(&pool->sleepers, memory_order_relaxed) > 0 ||
         atomic_load_explicit(&pool->started, memory_order_relaxed) <
             pool->threads - 1;
}
/* Wakes one, or starts one. Takes microseconds. */
void vyre__pool_summon(vyre__pool *pool);
/* Moves this thread off a processor, as vyre__pool_cpu names it. */
void vyre__pool_keep_off(uint32_t cpu);
/* Ends all threads and waits for them. */
void vyre__pool_dismiss(vyre__pool *pool);

bool vyre__pool_futex_sleep(atomic_uint *word, unsigned seen);
unsigned vyre__pool_futex_wake(atomic_uint *word, unsigned most);
uint32_t vyre__pool_cpu(void); /* where this thread runs, and 1; 0: not known */
uint32_t vyre__pool_processors(void); /* that this process may run on */

#endif
