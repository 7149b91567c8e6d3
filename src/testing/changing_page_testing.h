/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs machine code whose memory changes after every single access, for tests.
 *
 * The page that holds q (testing/changing_memory_testing.h) cannot be
 * accessed. Each instruction that tries raises SIGSEGV. The handler opens the
 * page and sets the trap flag of the processor, so that SIGTRAP follows that
 * one instruction. Its handler writes other bytes and closes the page again.
 * So a test counts the accesses and chooses what each of them sees. Other
 * buffers are followed by gigabytes without access: every 32-bit index outside
 * a buffer faults.
 *
 * For x86-64, Linux and one thread. A file that includes this defines
 * _GNU_SOURCE first. */
#ifndef VYRE_TESTING_CHANGING_PAGE_TESTING_H
#define VYRE_TESTING_CHANGING_PAGE_TESTING_H

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "testing/changing_memory_testing.h"

enum { PAGE = 4096, TRAP_FLAG = 0x100 };

/* More bytes than any 32-bit index of 8-byte elements reaches. */
#define FAR_BYTES ((size_t)9 << 32)

/* --- contents for each access ------------------------------------------- */

typedef enum changing_plan_kind {
  PLAN_GOOD,      /* nothing changes */
  PLAN_BAD_AFTER, /* good up to access `turn`, then bad */
  PLAN_GOOD_AFTER,
  PLAN_ALTERNATE, /* alternates; `turn` 1 begins with bad */
  PLAN_RANDOM,    /* `turn` is the seed */
} changing_plan_kind;

typedef struct changing_plan {
  changing_plan_kind kind;
  uint64_t turn;
} changing_plan;

static inline bool changing_is_good(changing_plan p, uint64_t access) {
  switch (p.kind) {
    case PLAN_BAD_AFTER:
      return access <= p.turn;
    case PLAN_GOOD_AFTER:
      return access > p.turn;
    case PLAN_ALTERNATE:
      return (access + p.turn) % 2 == 1;
    case PLAN_RANDOM: {
      uint64_t h = (access + 64 * p.turn) * UINT64_C(0x9E3779B97F4A7C15);
      return (h ^ h >> 29) >> 60 & 1;
    }
    default:
      return true;
  }
}

/* --- page --------------------------------------------------------------- */

static struct {
  const changing_kernel *kernel;
  changing_kind kind;
  const char *code; /* code that runs, for messages */
  changing_plan plan;
  unsigned char *page, *q; /* q ends at the end of the page */
  volatile uint64_t accesses;
  uint32_t *data, *w;
} watch;

static inline void watch_fill(void) {
  bool good = changing_is_good(watch.plan, watch.accesses + 1);
  changing_fill(watch.kernel, good ? watch.kernel->good : watch.kernel->bad,
                watch.q);
}

static inline void watch_fail_in_handler(int number, const void *at) {
  char message[512];
  int length =
      snprintf(message, sizeof message,
               "    kernel '%s', q is %s, %s: signal %d at %p, after access "
               "%llu of plan %d/%llu\nFAIL\n",
               watch.kernel ? watch.kernel->name : "?",
               changing_kind_name(watch.kind), watch.code ? watch.code : "?",
               number, at, (unsigned long long)watch.accesses,
               (int)watch.plan.kind, (unsigned long long)watch.plan.turn);
  if (write(STDOUT_FILENO, message, (size_t)length) < 0) _exit(3);
  _exit(1);
}

static inline void watch_on_fault(int number, siginfo_t *info, void *context) {
  ucontext_t *c = context;
  uintptr_t at = (uintptr_t)info->si_addr, page = (uintptr_t)watch.page;
  if (number != SIGSEGV || !page || at < page || at >= page + PAGE) {
    watch_fail_in_handler(number, info->si_addr);
  }
  (void)mprotect(watch.page, PAGE, PROT_READ | PROT_WRITE);
  c->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static inline void watch_on_trap(int number, siginfo_t *info, void *context) {
  ucontext_t *c = context;
  (void)number;
  (void)info;
  c->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
  watch.accesses++;
  watch_fill();
  (void)mprotect(watch.page, PAGE, PROT_NONE);
}

static inline void watch_catch_signals(void) {
  struct sigaction fault = {.sa_sigaction = watch_on_fault,
                            .sa_flags = SA_SIGINFO};
  struct sigaction trap = {.sa_sigaction = watch_on_trap,
                           .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &fault, NULL) == 0);
  CHECK(sigaction(SIGBUS, &fault, NULL) == 0);
  CHECK(sigaction(SIGFPE, &fault, NULL) == 0);
  CHECK(sigaction(SIGTRAP, &trap, NULL) == 0);
}

/* --- buffers ------------------------------------------------------------ */

/* Allocates @p size bytes that are followed by memory without access, as far
 * as an index reaches. */
static inline unsigned char *watch_place(size_t size) {
  void *all = mmap(NULL, PAGE + FAR_BYTES, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(all != MAP_FAILED);
  CHECK(mprotect(all, PAGE, PROT_READ | PROT_WRITE) == 0);
  return (unsigned char *)all + PAGE - size;
}

static inline void watch_begin(void) {
  if (!watch.page) {
    watch.page = watch_place(PAGE);
    watch.data = (uint32_t *)(void *)watch_place((size_t)CHANGING_ELEMENTS * 4);
    watch.w = (uint32_t *)(void *)watch_place((size_t)CHANGING_OUT * 4);
  }
  for (uint32_t i = 0; i < CHANGING_ELEMENTS; i++) watch.data[i] = i + 1;
  watch_catch_signals();
}

/* --- kernels ------------------------------------------------------------ */

/* Runs the kernel on watch.q, watch.data and watch.w. */
typedef void watch_run(void *self);

static inline void watch_once(changing_plan p, watch_run *run, void *self) {
  memset(watch.w, 0, CHANGING_OUT * sizeof *watch.w);
  watch.plan = p;
  watch.accesses = 0;
  watch.q = watch.page + PAGE - (size_t)CHANGING_ELEMENTS * watch.kernel->width;
  watch_fill();
  CHECK(mprotect(watch.page, PAGE, PROT_NONE) == 0);
  run(self);
  CHECK(mprotect(watch.page, PAGE, PROT_READ | PROT_WRITE) == 0);
}

/* Runs the kernel with a change after every access, for each kind of change.
 * Returns the number of runs. */
static inline uint64_t watch_all(const changing_kernel *k, changing_kind kind,
                                 const char *code, watch_run *run, void *self) {
  enum { FIRST = 32, STRIDE = 13, RANDOM = 3 };
  watch.kernel = k;
  watch.kind = kind;
  watch.code = code;
  watch_once((changing_plan){PLAN_GOOD, 0}, run, self);
  uint64_t count = watch.accesses, runs = 3 + RANDOM;
  CHECK(count > 0);
  for (uint64_t i = 0; i <= count; i += i < FIRST ? 1 : STRIDE, runs++) {
    watch_once((changing_plan){PLAN_BAD_AFTER, i}, run, self);
  }
  for (uint64_t i = 1; i <= count; i += 1 + i / 4, runs++) {
    watch_once((changing_plan){PLAN_GOOD_AFTER, i}, run, self);
  }
  for (uint64_t i = 0; i < 2; i++) {
    watch_once((changing_plan){PLAN_ALTERNATE, i}, run, self);
  }
  for (uint64_t i = 1; i <= RANDOM; i++) {
    watch_once((changing_plan){PLAN_RANDOM, i}, run, self);
  }
  return runs;
}

#endif
