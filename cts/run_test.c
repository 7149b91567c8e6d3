/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The runner of the suite, on cases that go wrong in every way there is. The
 * program starts itself for each of them. */
#include "run.h"

#include <signal.h>
#include <unistd.h>

#include "support/check.h"

/* --- cases ----------------------------------------------------------------------*/

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

static void skips(cts *c) {
  cts_skip(c, "no such thing");
}

static void crashes(cts *c) {
  printf("before\n");
  fflush(stdout);
  (void)c;
  signal(SIGSEGV, SIG_DFL); /* a sanitizer would make an exit of it */
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

static void ends_oddly(cts *c) {
  (void)c;
  _exit(3);
}

static void leaks(cts *c) {
  vyre_resident buffer;
  passes(c);
  (void)vyre_device_retain(c->device);
  CTS_OK(c, vyre_resident_create(c->device, 4, &buffer, &c->st));
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
    {"skips", skips},
    {"crashes", crashes},
    {"hangs", hangs},
    {"leaves", leaves},
    {"ends_oddly", ends_oddly},
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

/* Cases that are fine alone, and find what another left behind. */

static bool has_mark;

static void leaves_a_mark(cts *c) {
  has_mark = true;
  passes(c);
}

static void sees_no_mark(cts *c) {
  if (has_mark) cts_fail(c, "here.c", 10, "there is a mark");
  passes(c);
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

static void ends_badly_with_a_mark(cts *c) {
  if (has_mark) ends_badly(c);
  if (!has_mark) passes(c);
}

static size_t mark_count(void) {
  return 5;
}

static const cts_entry marks[] = {
    {"leaves", leaves_a_mark},
    {"passes", passes},
    {"sees_none", sees_no_mark},
    {"ends_badly", ends_badly},
    {"ends_badly_with_one", ends_badly_with_a_mark}};

static void mark_label(size_t index, char *out, size_t size) {
  (void)snprintf(out, size, "%s", marks[index].name);
}

static void mark_run(cts *c, size_t index) {
  marks[index].run(c);
}

static const cts_area area_marks = {"marks", "cases that leave something",
                                    mark_count, mark_label, mark_run};

static const cts_area *const areas[] = {&area_probe, &area_marks};

/* A fault of seed 7 that needs four statements, and atomics. */
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

static const cts_suite suite = {areas, 2, program};

/* --- running them ---------------------------------------------------------------*/

static const char *const words[] = {NULL};

static cts_report run_by(unsigned jobs, const char *filter, const char *list,
                         uint64_t programs) {
  cts_options options = {.backend = "ref",
                         .filter = filter,
                         .programs = programs,
                         .seed = 6,
                         .jobs = jobs,
                         .timeout_s = 5,
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
  const char *reason; /* part of it */
} wanted[] = {
    {"probe.passes", CTS_PASSED, NULL},
    {"probe.fails", CTS_FAILED, "here.c:7: the answer is 42"},
    {"probe.skips", CTS_SKIPPED, "no such thing"},
    {"probe.crashes", CTS_FAILED, "crashed: signal 11"},
    {"probe.hangs", CTS_FAILED, "hung: it was not over after 5 s"},
    {"probe.leaves", CTS_FAILED, "ended before its end"},
    {"probe.ends_oddly", CTS_FAILED, "ended with status 3"},
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
  CHECK_HAS(report.results[3].reason, "before"); /* what it had said */
  CHECK_U64(report.passed, 2);
  CHECK_U64(report.failed, 11);
  CHECK_U64(report.skipped, 1);
  cts_report_finish(&report);
}

TEST(a_list_turns_failures_into_what_was_expected) {
  cts_report report = run("fails",
                          "# a comment\n\n"
                          "probe.fails  fails  it says 42\n"
                          "probe.hangs  unsupported  it never ends\n",
                          0);
  CHECK_U64(report.count, 1);
  CHECK(report.results[0].verdict == CTS_EXPECTED_FAILURE);
  CHECK_U64(report.failed, 0);
  CHECK_U64(report.skipped, 1);
  cts_report_finish(&report);
  report = run("hangs", "probe.hangs unsupported it never ends", 0);
  CHECK(report.results[0].verdict == CTS_UNSUPPORTED);
  CHECK_TEXT(report.results[0].reason, "it never ends");
  CHECK_U64(report.failed, 0);
  cts_report_finish(&report);
}

TEST(no_list_excuses_what_breaks) {
  static const char *const names[] = {"probe.crashes", "probe.hangs",
                                      "probe.leaks", "probe.leaves",
                                      "probe.ends_oddly"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    cts_report report = run(names[i], "probe.* fails in some way", 0);
    CHECK_U64(report.count, 1);
    CHECK(report.results[0].verdict == CTS_FAILED);
    CHECK_U64(report.failed, 1);
    CHECK(!cts_report_is_good(&report));
    cts_report_finish(&report);
  }
}

TEST(a_run_in_which_nothing_passed_is_not_good) {
  cts_report report = run("probe.fails", "probe.fails fails it says 42", 0);
  CHECK_U64(report.failed, 0);
  CHECK(!cts_report_is_good(&report));
  cts_report_finish(&report);
  report = run("nobody", "", 0);
  CHECK(!cts_report_is_good(&report));
  cts_report_finish(&report);
  report = run("probe.passes", "", 0);
  CHECK(cts_report_is_good(&report));
  cts_report_finish(&report);
}

TEST(what_passes_although_it_is_on_the_list_fails) {
  cts_report report = run("probe.passes", "probe.passes fails by mistake", 0);
  CHECK_U64(report.failed, 1);
  CHECK_HAS(report.results[0].reason, "and it passed: take it off");
  cts_report_finish(&report);
  report = run("probe.skips", "probe.* fails by mistake", 0);
  CHECK_U64(report.failed, 1);
  CHECK_HAS(report.results[0].reason, "was skipped");
  cts_report_finish(&report);
}

TEST(lines_that_fit_nothing_fail) {
  static const char *const lists[] = {
      "probe.nobody fails it does not exist\n",
      "nothing.* unsupported it does not exist\n",
      "probe.* unsupported all\nprobe.fails fails never comes to it\n"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    cts_report report = run("probe.says", lists[i], 0);
    CHECK_U64(report.failed, 1);
    CHECK_HAS(report.results[report.count - 1].reason, "does not exist");
    cts_report_finish(&report);
  }
  cts_report report = run("probe.says", "programs.* unsupported none\n", 0);
  CHECK_U64(report.failed, 0); /* programs are there, whether run or not */
  cts_report_finish(&report);
}

TEST(a_list_that_is_none_names_the_line) {
  static const char *const lists[] = {"probe.fails fails\n", "probe.fails\n",
                                      "probe.fails sometimes why\n"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    char list[128];
    cts_list read = {0};
    size_t line = 0;
    (void)snprintf(list, sizeof list, "# one\nprobe.a fails x\n%s", lists[i]);
    CHECK(!cts_list_read(&read, list, strlen(list), &line));
    CHECK_U64(line, 3);
    cts_list_finish(&read);
  }
}

TEST(cases_that_pass_share_a_process) {
  cts_report report = run_by(1, "marks.", "", 0);
  CHECK_U64(report.count, 5);
  CHECK(report.results[0].process > 0);
  CHECK_U64(report.results[1].process, report.results[0].process);
  CHECK(report.results[0].verdict == CTS_PASSED);
  CHECK(report.results[1].verdict == CTS_PASSED);
  CHECK_U64(report.results[1].launches, 1);
  CHECK(report.results[3].process != report.results[0].process);
  cts_report_finish(&report);
}

TEST(a_case_that_fails_only_after_others_fails) {
  cts_report report = run_by(1, "marks.", "", 0);
  const cts_result *r = &report.results[2];
  CHECK(r->verdict == CTS_FAILED && r->has_broken);
  CHECK_HAS(r->reason, "passes alone");
  CHECK_HAS(r->reason, "the last of them marks.passes");
  CHECK_HAS(r->reason, "here.c:10: there is a mark");
  cts_report_finish(&report);
  report = run_by(1, "marks.sees_none", "", 0);
  CHECK(report.results[0].verdict == CTS_PASSED);
  cts_report_finish(&report);
}

TEST(a_case_after_which_its_process_ends_badly_fails) {
  cts_report report = run_by(1, "marks.ends_badly", "", 0);
  CHECK(report.results[0].verdict == CTS_FAILED);
  CHECK_HAS(report.results[0].reason, "ended with status 9");
  CHECK(report.results[1].verdict == CTS_PASSED); /* nor was it that one */
  cts_report_finish(&report);
}

TEST(a_process_that_ends_badly_is_never_fine) {
  static const char list[] =
      "marks.passes unsupported x\n"
      "marks.sees_none unsupported x\n"
      "marks.ends_badly unsupported x\n";
  cts_report report = run_by(1, "marks.", list, 0);
  const cts_result *r = &report.results[4];
  CHECK_U64(report.failed, 1);
  CHECK(r->verdict == CTS_FAILED && r->has_broken);
  CHECK_HAS(r->reason, "passes alone");
  CHECK_HAS(r->reason, "at the end");
  cts_report_finish(&report);
}

TEST(a_program_that_fails_is_made_smaller) {
  cts_report report = run("programs.", "", 3); /* seeds 6, 7 and 8 */
  CHECK_U64(report.count, 3);
  CHECK_U64(report.passed, 2);
  const cts_result *r = &report.results[1];
  CHECK_TEXT(r->name, "programs.7:math");
  CHECK(r->verdict == CTS_FAILED);
  CHECK_HAS(r->reason, "it differs");
  CHECK_HAS(r->shrunk, "programs.7:math:size=4:no-f64");
  CHECK(!strstr(r->shrunk, "no-atomics:")); /* without, it does not fail */
  CHECK_HAS(r->shrunk, ":no-shared");
  cts_report_finish(&report);
}

static const test_case all_tests[] = {
    TEST_ENTRY(each_case_fails_alone_and_says_why),
    TEST_ENTRY(a_list_turns_failures_into_what_was_expected),
    TEST_ENTRY(no_list_excuses_what_breaks),
    TEST_ENTRY(a_run_in_which_nothing_passed_is_not_good),
    TEST_ENTRY(what_passes_although_it_is_on_the_list_fails),
    TEST_ENTRY(lines_that_fit_nothing_fail),
    TEST_ENTRY(a_list_that_is_none_names_the_line),
    TEST_ENTRY(cases_that_pass_share_a_process),
    TEST_ENTRY(a_case_that_fails_only_after_others_fails),
    TEST_ENTRY(a_case_after_which_its_process_ends_badly_fails),
    TEST_ENTRY(a_process_that_ends_badly_is_never_fine),
    TEST_ENTRY(a_program_that_fails_is_made_smaller)};

int main(int count, char **given) {
  for (int i = 1; i + 1 < count; i++) {
    if (strcmp(given[i], "--case") == 0) {
      return cts_run_case(&suite, "ref", given[i + 1], 0);
    }
  }
  return run_tests(all_tests, sizeof all_tests / sizeof *all_tests,
                   count > 1 ? given[1] : NULL);
}
