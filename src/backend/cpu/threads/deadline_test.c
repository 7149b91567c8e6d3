/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/threads/deadline.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/sanitized.h"

static const uint64_t MS = 1000000;

static vyre__deadlines *make(void) {
  vyre__deadlines *deadlines;
  vyre_status st = {0};
  CHECK(vyre__deadlines_create((vyre_allocator){0}, &deadlines, &st) ==
        VYRE_OK);
  return deadlines;
}

static void nap(uint64_t ns) {
  nanosleep(
      &(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)},
      NULL);
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

TEST(a_deadline_sets_the_word_soon_after_and_not_before) {
  vyre__deadlines *deadlines = make();
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 20; i++) {
    vyre__deadline entry;
    atomic_uint stop = 0;
    uint64_t deadline = vyre__clock_ns() + (uint64_t)(1 + i % 7) * MS;
    CHECK(vyre__deadline_begin(deadlines, &entry, deadline, &stop, NULL) ==
          VYRE_OK);
    while (!atomic_load(&stop)) nap(20000);
    uint64_t now = vyre__clock_ns();
    CHECK(now >= deadline);
    if (now - deadline < least) least = now - deadline;
    CHECK(vyre__deadline_end(deadlines, &entry));
  }
  CHECK(least < 5 * MS); /* the best of many, as the machine may be busy */
  vyre__deadlines_free(deadlines);
}

TEST(work_that_ends_in_time_is_not_stopped) {
  vyre__deadlines *deadlines = make();
  atomic_uint stop = 0;
  vyre__deadline entry;
  CHECK(vyre__deadline_begin(deadlines, &entry, vyre__clock_ns() + 20 * MS,
                             &stop, NULL) == VYRE_OK);
  CHECK(!vyre__deadline_end(deadlines, &entry));
  nap(40 * MS);
  CHECK_U64(stop, 0);
  vyre__deadlines_free(deadlines);
}

TEST(a_sooner_deadline_comes_before_a_later_one) {
  vyre__deadlines *deadlines = make();
  atomic_uint stops[3] = {0};
  vyre__deadline entries[3];
  static const uint64_t after[3] = {3600000, 60, 20}; /* ms */
  uint64_t start = vyre__clock_ns();
  for (int i = 0; i < 3; i++) {
    CHECK(vyre__deadline_begin(deadlines, &entries[i], start + after[i] * MS,
                               &stops[i], NULL) == VYRE_OK);
  }
  while (!atomic_load(&stops[2])) nap(100000);
  CHECK(atomic_load(&stops[1]) == 0 || vyre__clock_ns() >= start + 60 * MS);
  while (!atomic_load(&stops[1])) nap(100000);
  CHECK(vyre__clock_ns() >= start + 60 * MS);
  CHECK(!vyre__deadline_end(deadlines, &entries[0]));
  CHECK(vyre__deadline_end(deadlines, &entries[1]));
  CHECK(vyre__deadline_end(deadlines, &entries[2]));
  CHECK_U64(stops[0], 0);
  vyre__deadlines_free(deadlines);
}

TEST(a_deadline_in_the_past_needs_no_thread) {
  vyre__deadlines *deadlines = make();
  unsigned before = thread_count();
  atomic_uint stop = 0;
  vyre__deadline entry;
  CHECK(vyre__deadline_begin(deadlines, &entry, 1, &stop, NULL) == VYRE_OK);
  CHECK_U64(stop, 1);
  CHECK_U64(thread_count(), before);
  CHECK(vyre__deadline_end(deadlines, &entry));
  CHECK(vyre__deadline_begin(deadlines, &entry, UINT64_MAX, &stop, NULL) ==
        VYRE_OK);
  CHECK_U64(thread_count(), before + 1);
  CHECK(!vyre__deadline_end(deadlines, &entry));
  vyre__deadlines_free(deadlines);
  vyre__deadlines_free(NULL);
}

/* Ends deadlines at about the time they pass, from many threads. Afterwards the
 * flag must not be written any more. */
typedef struct racer {
  vyre__deadlines *deadlines;
  uint64_t seed, wrong, over;
  pthread_t thread;
} racer;

static void *race(void *self) {
  racer *r = self;
  for (int i = 0; i < 400; i++) {
    atomic_uint stop = 0;
    vyre__deadline entry;
    r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t until = vyre__clock_ns() + (r->seed >> 33) % 200000;
    if (vyre__deadline_begin(r->deadlines, &entry, until, &stop, NULL) !=
        VYRE_OK) {
      r->wrong++;
      continue;
    }
    while (vyre__clock_ns() < until && !atomic_load(&stop));
    bool has_passed = vyre__deadline_end(r->deadlines, &entry);
    if (has_passed != (atomic_load(&stop) != 0)) r->wrong++;
    r->over += has_passed;
    /* Not atomic: a sanitizer would report a concurrent write. */
    memset((void *)&stop, 0x55, sizeof stop);
    memset(&entry, 0x55, sizeof entry);
  }
  return NULL;
}

TEST(ends_race_with_deadlines) {
  enum { RACERS = 4 };
  racer all[RACERS];
  vyre__deadlines *deadlines = make();
  uint64_t wrong = 0;
  for (unsigned i = 0; i < RACERS; i++) {
    all[i] = (racer){deadlines, i + 1u, 0, 0, 0};
    CHECK(pthread_create(&all[i].thread, NULL, race, &all[i]) == 0);
  }
  for (int i = 0; i < RACERS; i++) {
    pthread_join(all[i].thread, NULL);
    wrong += all[i].wrong;
  }
  CHECK_U64(wrong, 0);
  vyre__deadlines_free(deadlines);
}

TEST(deadlines_work_in_a_forked_child) {
  if (THREAD_SANITIZED) return; /* it does not support such a fork */
  vyre__deadlines *deadlines = make();
  atomic_uint stop = 0;
  vyre__deadline entry;
  CHECK(vyre__deadline_begin(deadlines, &entry, vyre__clock_ns() + 3600000 * MS,
                             &stop, NULL) == VYRE_OK);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    vyre__deadline own;
    atomic_uint own_stop = 0;
    alarm(20);
    if (vyre__deadline_begin(deadlines, &own, vyre__clock_ns() + MS, &own_stop,
                             NULL) != VYRE_OK) {
      _exit(1);
    }
    while (!atomic_load(&own_stop)) nap(100000);
    bool has_passed = vyre__deadline_end(deadlines, &own);
    vyre__deadlines_free(deadlines);
    _exit(has_passed ? 0 : 2);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_U64((unsigned)status, 0);
  CHECK(!vyre__deadline_end(deadlines, &entry));
  vyre__deadlines_free(deadlines);
}

static void *refuse(void *self, void *ptr, size_t old_size, size_t new_size) {
  (void)self;
  (void)ptr;
  (void)old_size;
  (void)new_size;
  return NULL;
}

TEST(no_memory_is_a_status) {
  vyre__deadlines *deadlines;
  vyre_status st = {0};
  CHECK(vyre__deadlines_create((vyre_allocator){refuse, NULL}, &deadlines,
                               &st) == VYRE_OUT_OF_MEMORY);
  CHECK(!deadlines && st.message[0] && st.fix[0]);
}

TEST_MAIN(TEST_ENTRY(a_deadline_sets_the_word_soon_after_and_not_before),
          TEST_ENTRY(work_that_ends_in_time_is_not_stopped),
          TEST_ENTRY(a_sooner_deadline_comes_before_a_later_one),
          TEST_ENTRY(a_deadline_in_the_past_needs_no_thread),
          TEST_ENTRY(ends_race_with_deadlines),
          TEST_ENTRY(deadlines_work_in_a_forked_child),
          TEST_ENTRY(no_memory_is_a_status))
