/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A small test harness. A test file has cases and a list of them:
 *
 *     TEST(adds_two_numbers) { CHECK_U64(1 + 1, 2); }
 *     TEST_MAIN(TEST_ENTRY(adds_two_numbers))
 *
 * Each case prints "ok name" or "FAIL name"; the program ends with
 * "cases: N passed, N failed", which `make check` adds up. A failed CHECK ends
 * its case, and the run goes on with the next. */
#ifndef VYRE_TESTS_CHECK_H
#define VYRE_TESTS_CHECK_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct test_case {
  const char *name;
  void (*run)(void);
} test_case;

/* One for all files of a test. */
__attribute__((weak)) jmp_buf test_escape;

static inline _Noreturn void test_fail(const char *file, int line) {
  printf("    at %s:%d\n", file, line);
  longjmp(test_escape, 1);
}

#define TEST(name) static void name(void)

#define CHECK(condition)                             \
  do {                                               \
    if (!(condition)) {                              \
      printf("    does not hold: %s\n", #condition); \
      test_fail(__FILE__, __LINE__);                 \
    }                                                \
  } while (0)

#define CHECK_U64(got, want)                                   \
  do {                                                         \
    unsigned long long got_ = (got), want_ = (want);           \
    if (got_ != want_) {                                       \
      printf("    %s is %llu, not %llu\n", #got, got_, want_); \
      test_fail(__FILE__, __LINE__);                           \
    }                                                          \
  } while (0)

#define CHECK_TEXT(got, want)                                            \
  do {                                                                   \
    const char *got_ = (got), *want_ = (want);                           \
    if (!got_ || strcmp(got_, want_) != 0) {                             \
      printf("    %s is '%s', not '%s'\n", #got, got_ ? got_ : "(null)", \
             want_);                                                     \
      test_fail(__FILE__, __LINE__);                                     \
    }                                                                    \
  } while (0)

#define CHECK_HAS(text, part)                            \
  do {                                                   \
    const char *text_ = (text), *part_ = (part);         \
    if (!text_ || !strstr(text_, part_)) {               \
      printf("    %s has no '%s': '%s'\n", #text, part_, \
             text_ ? text_ : "(null)");                  \
      test_fail(__FILE__, __LINE__);                     \
    }                                                    \
  } while (0)

/* A call that must succeed, and leave no failure in its status, which is shown
 * otherwise. */
#define CHECK_OK(expression, st)                                          \
  do {                                                                    \
    vyre_code code_ = (expression);                                       \
    if (code_ != VYRE_OK || (st).code != VYRE_OK) {                       \
      printf("    %s: %s (%s)\n    Fix: %s\n", #expression, (st).message, \
             vyre_kind_name((st).kind), (st).fix);                        \
      test_fail(__FILE__, __LINE__);                                      \
    }                                                                     \
  } while (0)

/* A call that must fail in this way, with a message and a remedy. */
#define CHECK_FAILS(expression, st, want_code, want_kind)                    \
  do {                                                                       \
    vyre_code code_ = (expression);                                          \
    if (code_ != (want_code) || (st).code != (want_code) ||                  \
        (st).kind != (want_kind) || !(st).message[0] || !(st).fix[0]) {      \
      printf("    %s: %s/%s '%s' Fix '%s'\n", #expression,                   \
             vyre_code_name(code_), vyre_kind_name((st).kind), (st).message, \
             (st).fix);                                                      \
      test_fail(__FILE__, __LINE__);                                         \
    }                                                                        \
  } while (0)

/* Returns a named number of a status. Fails the case if the status does not
 * have it. */
static inline uint64_t status_number(const vyre_status *st, const char *name) {
  uint64_t value = 0;
  if (!vyre_status_number_get(st, name, &value)) {
    printf("    the status has no number '%s'\n", name);
    test_fail(__FILE__, __LINE__);
  }
  return value;
}

/* An allocator that counts, and can fail: after `left` calls that succeed,
 * every further call does. left < 0 never fails. */
typedef struct test_heap {
  long left;
  bool once;         /* only one call fails, those after it succeed again */
  size_t live_bytes; /* written atomically: a test may poll it */
  size_t calls;      /* that asked for memory */
} test_heap;

static inline void *test_heap_resize_alone(test_heap *heap, void *ptr,
                                           size_t old_size, size_t new_size) {
  if (new_size == 0) {
    if (ptr) __atomic_fetch_sub(&heap->live_bytes, old_size, __ATOMIC_RELEASE);
    free(ptr);
    return NULL;
  }
  heap->calls++;
  if (heap->left == 0) {
    if (heap->once) heap->left = -1;
    return NULL;
  }
  if (heap->left > 0) heap->left--;
  void *grown = realloc(ptr, new_size);
  if (grown) {
    __atomic_fetch_add(&heap->live_bytes, new_size - (ptr ? old_size : 0),
                       __ATOMIC_RELEASE);
  }
  return grown;
}

/* Locks the heap, which threads of the library use too. The lock holds the id of
 * its process: a child forked while another thread held it takes it over, because
 * that thread does not exist in the child. */
static inline void *test_heap_resize(void *self, void *ptr, size_t old_size,
                                     size_t new_size) {
  static atomic_int owner;
  const int me = (int)getpid();
  int held_by = 0;
  while (!atomic_compare_exchange_weak(&owner, &held_by, me)) {
    if (held_by == me) held_by = 0;
  }
  void *result = test_heap_resize_alone(self, ptr, old_size, new_size);
  atomic_store(&owner, 0);
  return result;
}

static inline vyre_allocator test_heap_allocator(test_heap *heap) {
  return (vyre_allocator){test_heap_resize, heap};
}

/* One run of a scenario whose allocator fails at call @p n. A failure must be
 * told as one, and nothing may leak. Returns whether it succeeded. */
static inline bool sweep_once(vyre_code (*scenario)(vyre_allocator,
                                                    vyre_status *),
                              long n, bool once) {
  test_heap heap = {.left = n, .once = once};
  vyre_status st = {0};
  vyre_code code = scenario(test_heap_allocator(&heap), &st);
  CHECK_U64(heap.live_bytes, 0);
  if (code == VYRE_OK) return true;
  CHECK(code == VYRE_OUT_OF_MEMORY && st.code == code);
  CHECK(st.kind == VYRE_KIND_STORAGE_RESERVE_FAILED);
  CHECK(st.message[0] && st.fix[0] && st.field && st.field[0]);
  return false;
}

/* Runs @p scenario with the allocator failing at call 0, 1, 2 ... until it
 * succeeds: once failing for good from there on, once only at that call. Returns
 * the number of failures seen. */
static inline long sweep_allocations(vyre_code (*scenario)(vyre_allocator,
                                                           vyre_status *)) {
  for (long n = 0; n < 100000; n++) {
    bool good = sweep_once(scenario, n, false);
    bool good_after_one = sweep_once(scenario, n, true);
    CHECK(good == good_after_one);
    if (good) return n;
  }
  CHECK(!"the sweep ended without a success");
  return 0;
}

/* The generator of the seeds' generated cases. */
static inline uint64_t lcg_next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state;
}

/* xorshift64*, for our own random cases. */
static inline uint64_t random_next(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717u;
}

static inline uint64_t random_below(uint64_t *state, uint64_t bound) {
  return (random_next(state) >> 11) % bound;
}

#define TEST_ENTRY(name) {#name, name}

static inline bool test_passes(void (*run)(void)) {
  if (setjmp(test_escape) != 0) return false;
  run();
  return true;
}

/* Runs a part of a case. A CHECK that fails ends only that part: false. */
static inline bool test_part(void (*run)(void *), void *self) {
  jmp_buf outer;
  memcpy(outer, test_escape, sizeof outer);
  volatile bool good = setjmp(test_escape) == 0;
  if (good) run(self);
  memcpy(test_escape, outer, sizeof outer);
  return good;
}

static inline int run_tests(const test_case *cases, size_t count,
                            const char *only) {
  int passed = 0, failed = 0;
  for (size_t i = 0; i < count; i++) {
    if (only && strcmp(only, cases[i].name) != 0) continue;
    bool good = test_passes(cases[i].run);
    printf("%s %s\n", good ? "ok" : "FAIL", cases[i].name);
    fflush(stdout);
    passed += good;
    failed += !good;
  }
  printf("cases: %d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

/* main(): runs all cases, or the one named on the command line. */
#define TEST_MAIN(...)                                                  \
  static const test_case all_cases[] = {__VA_ARGS__};                   \
  int main(int argc, char **argv) {                                     \
    return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0], \
                     argc > 1 ? argv[1] : NULL);                        \
  }

#endif
