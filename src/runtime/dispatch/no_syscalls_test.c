/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that a repeated dispatch makes no system call. A child process marks
 * the begin and the end of the dispatches with a system call, and is traced in
 * between. */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/driver.h"

long syscall(long number, ...); /* not part of POSIX */

static const char text[] =
    "kernel k workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer z : read_write u32[4] @2 output;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(y)) y[i] += 2 * x[i];\n"
    "    atomic_add(z[i % 4], 1);\n"
    "}\n";

enum { ELEMENTS = 32, BYTES = 4 * ELEMENTS, ROUNDS = 200, FORBIDDEN = 77 };

/* System call that the library never makes. */
static void mark(void) {
  syscall(SYS_getppid);
}

typedef struct scene {
  rig r;
  uint32_t x[ELEMENTS], y[ELEMENTS];
  vyre_buffer resident;
  vyre_host_buffer slot;
} scene;

static bool dispatch(scene *s, vyre_input x, vyre_output z) {
  vyre_status st = {0};
  vyre_input in[] = {x, vyre_input_bytes(s->y, BYTES)};
  vyre_output out[] = {vyre_output_bytes(s->y, BYTES), z};
  vyre_timing timing;
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = out,
                             .output_count = 2,
                             .timing = &timing};
  return vyre_dispatch(s->r.pipeline, &desc, &st) == VYRE_OK;
}

/* Inputs: host memory and a device buffer. Outputs: a host buffer and memory
 * of the caller. */
static bool both_ways(scene *s) {
  uint32_t z[4];
  return dispatch(s, vyre_input_bytes(s->x, BYTES),
                  vyre_output_host_buffer(&s->slot, 0)) &&
         dispatch(s, vyre_input_buffer(s->resident),
                  vyre_output_bytes(z, sizeof z));
}

static bool batch(scene *s) {
  enum { ITEMS = 3 };
  vyre_status st = {0};
  uint32_t y[ITEMS][ELEMENTS] = {{0}}, z[ITEMS][4];
  vyre_input in[ITEMS][2];
  vyre_output out[ITEMS][2];
  vyre_dispatch_desc items[ITEMS];
  for (int i = 0; i < ITEMS; i++) {
    in[i][0] = vyre_input_bytes(s->x, BYTES);
    in[i][1] = vyre_input_bytes(y[i], BYTES);
    out[i][0] = vyre_output_bytes(y[i], BYTES);
    out[i][1] = vyre_output_bytes(z[i], sizeof z[i]);
    items[i] = (vyre_dispatch_desc){.inputs = in[i],
                                    .input_count = 2,
                                    .outputs = out[i],
                                    .output_count = 2};
  }
  return vyre_submit(s->r.pipeline, items, ITEMS, NULL, &st) == VYRE_OK;
}

/* Makes one system call, to test the counter. */
static bool one_call(scene *s) {
  (void)s;
  return syscall(SYS_getuid) >= 0;
}

/* Runs in the child: warms up, then repeats @p work between two marks. */
static void perform(bool (*work)(scene *s)) {
  static scene s;
  vyre_status st = {0};
  s.r = rig_open(text, NULL);
  bool good =
      vyre_buffer_create(s.r.device, BYTES, &s.resident, &st) == VYRE_OK &&
      work(&s) && work(&s);
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(FORBIDDEN);
  raise(SIGSTOP);
  mark();
  for (int i = 0; i < ROUNDS; i++) good = work(&s) && good;
  mark();
  _exit(good ? 0 : 1);
}

/* Continues the child up to its next system call, which it returns. Returns
 * false if the child has ended. */
static bool next_call(pid_t child, uint64_t *number) {
  for (;;) {
    int status;
    struct __ptrace_syscall_info about;
    if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) != 0) return false;
    if (waitpid(child, &status, 0) != child) return false;
    if (!WIFSTOPPED(status)) {
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
      return false;
    }
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof about, &about) > 0);
    if (about.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    *number = about.entry.nr;
    return true;
  }
}

static bool was_skipped;   /* tracing is not permitted */
static uint64_t last_call; /* between the marks */

/* Counts the system calls between the marks. Returns -1 if tracing is not
 * permitted. */
static long count_calls(bool (*work)(scene *s)) {
  int status;
  uint64_t number = 0;
  long count = -1;
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) perform(work);
  CHECK(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == FORBIDDEN) {
    printf("    not counted: this place forbids ptrace\n");
    was_skipped = true;
    return -1;
  }
  CHECK(WIFSTOPPED(status));
  if (ptrace(PTRACE_SETOPTIONS, child, NULL,
             (void *)(uintptr_t)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) !=
      0) {
    printf("    not counted: this place forbids ptrace (error %d)\n", errno);
    was_skipped = true;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
  }
  bool is_between = false, is_over = false;
  while (next_call(child, &number)) {
    if (number == SYS_getppid) {
      is_over = is_between;
      is_between = !is_over;
      if (!is_over) count = 0;
    } else if (is_between) {
      last_call = number;
      count++;
    }
  }
  CHECK(is_over);
  return count;
}

/* ThreadSanitizer makes its own system calls, so nothing is counted. */
#if defined(__SANITIZE_THREAD__)
enum { CALLS_ARE_OURS = 0 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { CALLS_ARE_OURS = 0 };
#else
enum { CALLS_ARE_OURS = 1 };
#endif
#else
enum { CALLS_ARE_OURS = 1 };
#endif

static void check_quiet(bool (*work)(scene *s)) {
  long count = count_calls(work);
  if (!CALLS_ARE_OURS) {
    printf("    not counted: ThreadSanitizer makes calls of its own\n");
    was_skipped = true;
    return;
  }
  if (count > 0) printf("    one is call %d\n", (int)last_call);
  if (count >= 0) CHECK_U64((uint64_t)count, 0);
}

TEST(a_system_call_is_counted) {
  long count = count_calls(one_call);
  if (count >= 0) CHECK_U64((uint64_t)count, ROUNDS);
}

TEST(a_warm_dispatch_makes_no_system_call) {
  check_quiet(both_ways);
}

TEST(a_warm_batch_makes_no_system_call) {
  check_quiet(batch);
}

static const test_case all_tests[] = {
    TEST_ENTRY(a_system_call_is_counted),
    TEST_ENTRY(a_warm_dispatch_makes_no_system_call),
    TEST_ENTRY(a_warm_batch_makes_no_system_call)};

/* Without a count, ctest reports the test as skipped. */
int main(int count, char **given) {
  enum { SKIPPED = 77 };
  int code = run_tests(all_tests, sizeof all_tests / sizeof *all_tests,
                       count > 1 ? given[1] : NULL);
  return code == 0 && was_skipped ? SKIPPED : code;
}
