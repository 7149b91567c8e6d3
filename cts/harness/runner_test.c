/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests the runner with cases that fail in every possible way. The program
 * starts itself as their server. */
#include "cts/harness/runner.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"

/* --- Cases ---------------------------------------------------------------- */

static const char text[] =
    "kernel k workgroup(1)\nbuffer r : write u32[] @0;\n{\n    r[0] = 1;\n}\n";

static void launch(cts *c) {
  uint32_t r;
  vyre_output out = vyre_output_bytes(&r, 4);
  vyre_dispatch_desc desc = {.outputs = &out, .output_count = 1};
  CTS_OK(c, vyre_dispatch(cts_kernel(c, text), &desc, &c->st));
}

static void passes(cts *c) {
  launch(c);
  CTS_LAUNCHED(c, 1);
}

static void fails(cts *c) {
  cts_fail(c, "here.c", 7, "the answer is %d", 42);
}

static void lacks(cts *c) {
  cts_lacks(c, "such %s", "things");
}

static void crashes(cts *c) {
  printf("before\n");
  fflush(stdout);
  (void)c;
  signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn it into an exit */
  raise(SIGSEGV);
}

static void hangs(cts *c) {
  (void)c;
  for (;;) pause();
}

static void leaves(cts *c) {
  (void)c;
  exit(0);
}

static void lacks_nothing(cts *c) {
  (void)c;
  _exit(CTS_EXIT_NOT_APPLICABLE);
}

static void ends_oddly(cts *c) {
  (void)c;
  _exit(3);
}

static void leaks(cts *c) {
  vyre_buffer buffer;
  passes(c);
  (void)vyre_device_retain(c->device);
  CTS_OK(c, vyre_buffer_create(c->device, 4, &buffer, &c->st));
}

static void launches_nothing(cts *c) {
  (void)c;
}

static void says_it_launches_nothing(cts *c) {
  CTS_LAUNCHED(c, 0);
}

static void launches_in_secret(cts *c) {
  passes(c);
  launch(c);
}

static void launches_elsewhere(cts *c) {
  uint32_t r;
  vyre_output out = vyre_output_bytes(&r, 4);
  vyre_dispatch_desc desc = {.outputs = &out, .output_count = 1};
  cts_oracle(c, cts_program(c, text), &desc);
  CTS_LAUNCHED(c, 1);
}

static void differs(cts *c) {
  CTS_SAME(c, "what", "abcdefghij", "abcdefghXj", 10);
}

static void prints_a_lot(cts *c) {
  for (int i = 0; i < 5000; i++) printf("line %d of very many lines\n", i);
  cts_fail(c, "here.c", 8, "after all that");
}

static const cts_entry entries[] = {
    {"passes", passes},
    {"fails", fails},
    {"lacks", lacks},
    {"crashes", crashes},
    {"hangs", hangs},
    {"leaves", leaves},
    {"ends_oddly", ends_oddly},
    {"lacks_nothing", lacks_nothing},
    {"leaks", leaks},
    {"launches_nothing", launches_nothing},
    {"says_it_launches_nothing", says_it_launches_nothing},
    {"launches_in_secret", launches_in_secret},
    {"launches_elsewhere", launches_elsewhere},
    {"differs", differs},
    {"prints_a_lot", prints_a_lot},
};

extern const cts_area area_probe;
CTS_LIST(probe, "cases for this test");

/* --- Cases that depend on other cases ----------------------------------------
 */

/* Prints its process id, its parent, the last arguments of the parent
 * (separated by zeros) and the number of threads of the parent. */
static void tells(cts *c) {
  char path[64], words[512], line[128];
  unsigned threads = 0;
  (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)getppid());
  FILE *file = fopen(path, "r");
  CTS_CHECK(c, file != NULL);
  size_t size = fread(words, 1, sizeof words, file);
  (void)fclose(file);
  static const char last[] = "--case\0-";
  bool serves = size >= sizeof last &&
                memcmp(words + size - sizeof last, last, sizeof last) == 0;
  (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)getppid());
  file = fopen(path, "r");
  CTS_CHECK(c, file != NULL);
  while (fgets(line, sizeof line, file)) {
    (void)sscanf(line, "Threads: %u", &threads);
  }
  (void)fclose(file);
  cts_fail(c, "here.c", 10, "pid %ld of %ld, serves %d, %u threads",
           (long)getpid(), (long)getppid(), serves, threads);
}

static bool has_mark;

/* Changes all state of a process: memory, environment, directory, signals,
 * files. */
static void leaves_marks(cts *c) {
  passes(c);
  has_mark = true;
  signal(SIGCHLD, SIG_IGN);
  CTS_CHECK(c, setenv("VYRE_CTS_MARK", "1", 1) == 0 && chdir("/proc") == 0);
}

static void sees_no_marks(cts *c) {
  char folder[8] = "";
  (void)!getcwd(folder, sizeof folder);
  CTS_CHECK(c, !has_mark && !getenv("VYRE_CTS_MARK"));
  CTS_CHECK(c, strcmp(folder, "/proc") != 0);
  CTS_CHECK(c, signal(SIGCHLD, SIG_DFL) == SIG_DFL);
  CTS_CHECK(c, getchar() == EOF);
  passes(c);
}

static void closes_all(cts *c) {
  (void)c;
  for (int i = 0; i < 256; i++) close(i);
}

static void ends_its_server(cts *c) {
  (void)c;
  kill(getppid(), SIGKILL);
  for (;;) pause();
}

static void stops_its_server(cts *c) {
  (void)c;
  kill(getppid(), SIGSTOP);
}

static void end_badly(void) {
  printf("at the end\n");
  fflush(stdout);
  _exit(9);
}

static void ends_badly(cts *c) {
  CTS_CHECK(c, atexit(end_badly) == 0);
  passes(c);
}

/* Leaves a child that holds the output open and would print into that of later
 * cases. */
static void leaves_a_process(cts *c) {
  pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  cts_fail(c, "here.c", 11, "left %ld", (long)pid);
}

/* Leaks memory that only a leak checker can find. */
static void loses_memory(cts *c) {
  static void *volatile kept;
  passes(c);
  kept = malloc(4711);
  CTS_CHECK(c, kept != NULL);
  kept = NULL;
}

static void prints_a_lot_and_passes(cts *c) {
  for (int i = 0; i < 5000; i++) printf("line %d of very many lines\n", i);
  passes(c);
}

static const cts_entry together[] = {
    {"tells_1", tells},
    {"tells_2", tells},
    {"tells_3", tells},
    {"tells_4", tells},
    {"leaves_marks", leaves_marks},
    {"sees_no_marks", sees_no_marks},
    {"closes_all", closes_all},
    {"after_that", sees_no_marks},
    {"ends_its_server", ends_its_server},
    {"on_another", sees_no_marks},
    {"ends_badly", ends_badly},
    {"leaves_a_process", leaves_a_process},
    {"loses_memory", loses_memory},
    {"prints_and_passes", prints_a_lot_and_passes},
    {"at_last", sees_no_marks}};

/* Runs only if selected by name, because a server that does not answer takes
 * long. */
static const cts_entry slow[] = {{"stops_its_server", stops_its_server},
                                 {"on_another", sees_no_marks}};

static size_t slow_count(void) {
  return sizeof slow / sizeof *slow;
}

static void slow_label(size_t index, char *out, size_t size) {
  (void)snprintf(out, size, "%s", slow[index].name);
}

static void slow_run(cts *c, size_t index) {
  slow[index].run(c);
}

static const cts_area area_slow = {"slow", "cases that take long", slow_count,
                                   slow_label, slow_run};

static size_t together_count(void) {
  return sizeof together / sizeof *together;
}

static void together_label(size_t index, char *out, size_t size) {
  (void)snprintf(out, size, "%s", together[index].name);
}

static void together_run(cts *c, size_t index) {
  together[index].run(c);
}

static const cts_area area_together = {"together", "cases one after the other",
                                       together_count, together_label,
                                       together_run};

static const cts_area *const areas[] = {&area_probe, &area_together,
                                        &area_slow};

/* Fails for seed 7 while the program has at least four statements and uses
 * atomics, so that reducing it must keep both. */
static void program(cts *c, const char *name) {
  const char *size = strstr(name, "size=");
  bool is_large = !size || atoi(size + 5) >= 4;
  size_t length = strlen(name);
  bool without = length > 11 && strcmp(name + length - 11, ":no-atomics") == 0;
  if (name[0] == '7' && is_large && !without && !strstr(name, ":no-atomics:")) {
    cts_fail(c, "here.c", 9, "it differs");
  }
  passes(c);
}

static const cts_suite suite = {areas, 3, program};

/* --- Running them --------------------------------------------------------- */

static const char *const words[] = {NULL};

static cts_report run_by(unsigned jobs, const char *filter, const char *list,
                         uint64_t programs) {
  cts_options options = {.backend = "ref",
                         .filter = filter,
                         .programs = programs,
                         .seed = 6,
                         .jobs = jobs,
                         .timeout_s = 5,
                         .grace_s = 1,
                         .program = "/proc/self/exe",
                         .words = words};
  cts_report report;
  size_t line;
  CHECK(cts_report_begin(&suite, &options, list, strlen(list), &line, &report));
  CHECK(cts_report_run(&options, &report));
  return report;
}

static cts_report run(const char *filter, const char *list, uint64_t programs) {
  return run_by(0, filter, list, programs);
}

static const struct {
  const char *name;
  cts_verdict verdict;
  const char *reason; /* part of the reason */
} wanted[] = {
    {"probe.passes", CTS_PASSED, NULL},
    {"probe.fails", CTS_FAILED, "here.c:7: the answer is 42"},
    {"probe.lacks", CTS_NOT_APPLICABLE, "the device lacks such things"},
    {"probe.crashes", CTS_FAILED, "crashed: signal 11"},
    {"probe.hangs", CTS_FAILED, "hung: it was not over after 5 s"},
    {"probe.leaves", CTS_FAILED, "ended before its end"},
    {"probe.ends_oddly", CTS_FAILED, "ended with status 3"},
    {"probe.lacks_nothing", CTS_FAILED, "does not name what the device lacks"},
    {"probe.leaks", CTS_FAILED, "bytes were not given back"},
    {"probe.launches_nothing", CTS_FAILED, "no kernel was launched"},
    {"probe.says_it_launches_nothing", CTS_PASSED, NULL},
    {"probe.launches_in_secret", CTS_FAILED,
     "2 kernels were launched on 'ref', the case says 1"},
    {"probe.launches_elsewhere", CTS_FAILED,
     "0 kernels were launched on 'ref', must be 1"},
    {"probe.differs", CTS_FAILED, "what: byte 8 of 10 differs; from 8 on: 69 "},
    {"probe.prints_a_lot", CTS_FAILED, "line 0 of very many lines"},
};

TEST(each_case_fails_alone_and_says_why) {
  cts_report report = run("probe.", "", 0);
  CHECK_U64(report.count, sizeof wanted / sizeof *wanted);
  for (size_t i = 0; i < report.count; i++) {
    const cts_result *r = &report.results[i];
    CHECK_TEXT(r->name, wanted[i].name);
    if (r->verdict != wanted[i].verdict) {
      printf("    %s: %s\n", r->name, r->reason ? r->reason : "");
    }
    CHECK(r->verdict == wanted[i].verdict);
    if (wanted[i].reason) CHECK_HAS(r->reason, wanted[i].reason);
  }
  CHECK_U64(report.results[0].launches, 1);
  CHECK_TEXT(report.results[0].device, "ref");
  CHECK_HAS(report.results[3].reason, "before"); /* output before the crash */
  CHECK_U64(report.passed, 2);
  CHECK_U64(report.failed, 12);
  CHECK_U64(report.not_applicable, 1);
  CHECK_U64(report.skipped, 0);
  CHECK_U64(report.lack_count, 1);
  CHECK_TEXT(report.lacks[0].what, "such things");
  CHECK_U64(report.lacks[0].cases, 1);
  cts_report_deinit(&report);
}

TEST(listed_failures_count_as_expected) {
  cts_report report = run("fails",
                          "# a comment\n\n"
                          "probe.fails  fails  it says 42\n"
                          "probe.hangs  unsupported  it never ends\n",
                          0);
  CHECK_U64(report.count, 1);
  CHECK(report.results[0].verdict == CTS_EXPECTED_FAILURE);
  CHECK_U64(report.failed, 0);
  CHECK_U64(report.skipped, 1);
  cts_report_deinit(&report);
  report = run("hangs", "probe.hangs unsupported it never ends", 0);
  CHECK(report.results[0].verdict == CTS_UNSUPPORTED);
  CHECK_TEXT(report.results[0].reason, "it never ends");
  CHECK_U64(report.failed, 0);
  cts_report_deinit(&report);
}

TEST(crashes_are_failures_even_if_listed) {
  static const char *const names[] = {
      "probe.crashes", "probe.hangs",      "probe.leaks",
      "probe.leaves",  "probe.ends_oddly", "probe.lacks_nothing"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    cts_report report = run(names[i], "probe.* fails in some way", 0);
    CHECK_U64(report.count, 1);
    CHECK(report.results[0].verdict == CTS_FAILED);
    CHECK_U64(report.failed, 1);
    CHECK(!cts_report_is_good(&report));
    cts_report_deinit(&report);
  }
}

TEST(a_run_in_which_nothing_passed_is_not_good) {
  cts_report report = run("probe.fails", "probe.fails fails it says 42", 0);
  CHECK_U64(report.failed, 0);
  CHECK(!cts_report_is_good(&report));
  cts_report_deinit(&report);
  report = run("absent", "", 0);
  CHECK(!cts_report_is_good(&report));
  cts_report_deinit(&report);
  report = run("probe.passes", "", 0);
  CHECK(cts_report_is_good(&report));
  cts_report_deinit(&report);
}

TEST(a_listed_case_that_passes_is_a_failure) {
  cts_report report = run("probe.passes", "probe.passes fails by mistake", 0);
  CHECK_U64(report.failed, 1);
  CHECK_HAS(report.results[0].reason, "and it passed: take it off");
  cts_report_deinit(&report);
  report = run("probe.lacks", "probe.* fails by mistake", 0);
  CHECK_U64(report.failed, 2); /* the other one is probe.lacks_nothing */
  CHECK_HAS(report.results[0].reason, "does not apply");
  cts_report_deinit(&report);
}

TEST(lines_that_fit_nothing_fail) {
  static const char *const lists[] = {
      "probe.absent fails it does not exist\n",
      "nothing.* unsupported it does not exist\n",
      "probe.* unsupported all\nprobe.fails fails never comes to it\n"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    cts_report report = run("probe.says", lists[i], 0);
    CHECK_U64(report.failed, 1);
    CHECK_HAS(report.results[report.count - 1].reason, "does not exist");
    cts_report_deinit(&report);
  }
  cts_report report = run("probe.says", "programs.* unsupported none\n", 0);
  CHECK_U64(report.failed, 0); /* program names are valid even if none run */
  cts_report_deinit(&report);
}

TEST(an_invalid_expectation_list_names_the_line) {
  static const char *const lists[] = {"probe.fails fails\n", "probe.fails\n",
                                      "probe.fails sometimes why\n"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    char list[128];
    cts_list read = {0};
    size_t line = 0;
    (void)snprintf(list, sizeof list, "# one\nprobe.a fails x\n%s", lists[i]);
    CHECK(!cts_list_read(&read, list, strlen(list), &line));
    CHECK_U64(line, 3);
    cts_list_deinit(&read);
  }
}

/* gcc has a macro where clang has a feature test. */
#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
enum { MAX_THREADS = 2 }; /* one may belong to the sanitizer */
#else
enum { MAX_THREADS = 1 };
#endif

TEST(each_case_has_a_process_of_its_own_by_a_server) {
  enum { CASES = 4 };
  for (unsigned jobs = 1; jobs <= 2; jobs++) {
    cts_report report = run_by(jobs, "together.tells_", "", 0);
    long pids[CASES], parents[CASES];
    CHECK_U64(report.count, CASES);
    for (size_t i = 0; i < CASES; i++) {
      int serves = 0;
      unsigned threads = 0, others = 0;
      CHECK(sscanf(report.results[i].reason,
                   "here.c:10: pid %ld of %ld, serves %d, %u threads", &pids[i],
                   &parents[i], &serves, &threads) == 4);
      CHECK(serves == 1);
      CHECK(threads >= 1 && threads <= MAX_THREADS);
      CHECK(pids[i] != getpid() && parents[i] != getpid());
      for (size_t k = 0; k < i; k++) {
        CHECK(pids[k] != pids[i]);
        others += parents[k] != parents[i];
      }
      CHECK(jobs > 1 || others == 0); /* one job: one server */
    }
    cts_report_deinit(&report);
  }
}

/* Returns true when a leak checker is active. */
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define LEAK_VERDICT CTS_FAILED
#define LEAK_REASON  "LeakSanitizer"
#else
#define LEAK_VERDICT CTS_PASSED
#define LEAK_REASON  NULL
#endif

/* All cases run on one server, except for the one that kills it. */
TEST(a_case_does_not_affect_the_next_one) {
  static const struct {
    const char *name;
    cts_verdict verdict;
    const char *reason;
  } want[] = {
      {"together.leaves_marks", CTS_PASSED, NULL},
      {"together.sees_no_marks", CTS_PASSED, NULL},
      {"together.closes_all", CTS_FAILED, ""},
      {"together.after_that", CTS_PASSED, NULL},
      {"together.ends_its_server", CTS_FAILED, "crashed: signal 9"},
      {"together.on_another", CTS_PASSED, NULL},
      {"together.ends_badly", CTS_FAILED, "ended with status 9: passed"},
      {"together.leaves_a_process", CTS_FAILED, "left "},
      {"together.loses_memory", LEAK_VERDICT, LEAK_REASON},
      {"together.prints_and_passes", CTS_PASSED, NULL},
      {"together.at_last", CTS_PASSED, NULL},
  };
  enum { TELL = 4 };
  cts_report report = run_by(1, "together.", "", 0);
  CHECK_U64(report.count, TELL + sizeof want / sizeof *want);
  for (size_t i = TELL; i < report.count; i++) {
    const cts_result *r = &report.results[i];
    CHECK_TEXT(r->name, want[i - TELL].name);
    if (r->verdict != want[i - TELL].verdict) {
      CHECK_TEXT(r->reason ? r->reason : "passed", r->name);
    }
    if (want[i - TELL].reason) CHECK_HAS(r->reason, want[i - TELL].reason);
    if (r->verdict == CTS_PASSED) CHECK_U64(r->launches, 1);
  }
  cts_report_deinit(&report);
}

/* Returns true when a process has exited, even if it was not reaped yet. */
static bool is_gone(long pid) {
  char path[64], state = '?';
  (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *file = fopen(path, "r");
  if (!file) return true;
  (void)!fscanf(file, "%*d (%*[^)]) %c", &state);
  (void)fclose(file);
  return state == 'Z' || state == 'X';
}

TEST(processes_of_a_case_end_with_it) {
  cts_report report = run("together.leaves_a_process", "", 0);
  long pid = 0;
  CHECK(sscanf(report.results[0].reason, "here.c:11: left %ld", &pid) == 1);
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; i++) {
    gone = is_gone(pid);
    if (!gone) nanosleep(&(struct timespec){0, 1000000}, NULL);
  }
  CHECK(gone);
  cts_report_deinit(&report);
}

TEST(a_server_that_does_not_answer_is_ended) {
  cts_report report = run_by(1, "slow.", "", 0);
  CHECK_U64(report.count, 2);
  CHECK(report.results[0].verdict == CTS_FAILED &&
        report.results[0].has_broken);
  CHECK_HAS(report.results[0].reason, "hung: it was not over after 5 s");
  CHECK(report.results[1].verdict == CTS_PASSED);
  cts_report_deinit(&report);
}

TEST(a_server_takes_orders_from_the_runner_only) {
  char line[128] = "", self[256] = "", command[300];
  CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  (void)snprintf(command, sizeof command, "'%s' --case - </dev/null", self);
  FILE *said = popen(command, "r");
  CHECK(said != NULL);
  (void)!fgets(line, sizeof line, said);
  CHECK(WEXITSTATUS(pclose(said)) == CTS_EXIT_FAILED);
  CHECK_HAS(line, "name a case");
}

TEST(a_failing_program_is_reduced) {
  cts_report report = run("programs.", "", 3); /* seeds 6, 7 and 8 */
  CHECK_U64(report.count, 3);
  CHECK_U64(report.passed, 2);
  const cts_result *r = &report.results[1];
  CHECK_TEXT(r->name, "programs.7:math");
  CHECK(r->verdict == CTS_FAILED);
  CHECK_HAS(r->reason, "it differs");
  CHECK_HAS(r->shrunk, "programs.7:math:size=4:no-f64");
  CHECK(
      !strstr(r->shrunk, "no-atomics:")); /* without atomics it does not fail */
  CHECK_HAS(r->shrunk, ":no-shared");
  cts_report_deinit(&report);
}

static const test_case all_tests[] = {
    TEST_ENTRY(each_case_fails_alone_and_says_why),
    TEST_ENTRY(listed_failures_count_as_expected),
    TEST_ENTRY(crashes_are_failures_even_if_listed),
    TEST_ENTRY(a_run_in_which_nothing_passed_is_not_good),
    TEST_ENTRY(a_listed_case_that_passes_is_a_failure),
    TEST_ENTRY(lines_that_fit_nothing_fail),
    TEST_ENTRY(an_invalid_expectation_list_names_the_line),
    TEST_ENTRY(each_case_has_a_process_of_its_own_by_a_server),
    TEST_ENTRY(a_case_does_not_affect_the_next_one),
    TEST_ENTRY(processes_of_a_case_end_with_it),
    TEST_ENTRY(a_server_that_does_not_answer_is_ended),
    TEST_ENTRY(a_server_takes_orders_from_the_runner_only),
    TEST_ENTRY(a_failing_program_is_reduced)};

int main(int count, char **given) {
  for (int i = 1; i + 1 < count; i++) {
    if (strcmp(given[i], "--case") == 0) {
      return cts_run_case(&suite, "ref", given[i + 1], 0);
    }
  }
  return run_tests(all_tests, sizeof all_tests / sizeof *all_tests,
                   count > 1 ? given[1] : NULL);
}
