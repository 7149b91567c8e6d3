/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The side that starts cases and waits for them. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
  MOST_JOBS = 64,
  MOST_WORDS = 24,
  MOST_TEXT = 16 << 10, /* of what a case prints */
  DEFAULT_TIMEOUT_S = 60,
  MOST_SHRUNK = 3
};

/* --- texts ----------------------------------------------------------------------*/

static char *copy_text(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

/* "HEAD" or "HEAD; TEXT", without white space at the end. */
static char *join(const char *head, const char *text, size_t length) {
  while (length > 0 && strchr(" \n\r\t", text[length - 1])) length--;
  size_t before = strlen(head);
  char *made = malloc(before + length + 4);
  if (!made) return NULL;
  (void)snprintf(made, before + length + 4, "%s%s%.*s", head,
                 before && length ? ": " : "", (int)length, text);
  return made;
}

/* --- a process ------------------------------------------------------------------*/

typedef struct job {
  pid_t pid;
  int from;           /* what it prints */
  uint64_t deadline;  /* ns */
  cts_result *result; /* NULL: nothing runs here */
  char *text;
  size_t length;
  bool is_hung;
} job;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool start(const cts_options *o, cts_result *result, job *out) {
  const char *words[MOST_WORDS] = {o->program};
  char seed[24];
  size_t count = 1;
  (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
  for (size_t i = 0; o->words[i] && count < MOST_WORDS - 8; i++) {
    words[count++] = o->words[i];
  }
  words[count++] = "--backend";
  words[count++] = o->backend;
  words[count++] = "--seed";
  words[count++] = seed;
  words[count++] = "--case";
  words[count++] = result->name;
  *out = (job){.result = result, .text = malloc(MOST_TEXT)};
  int ends[2];
  if (!out->text || pipe(ends) != 0) return false;
  /* Another case must not hold the pipe of this one open. */
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  int error = posix_spawn(&out->pid, o->program, &actions, NULL,
                          (char *const *)(uintptr_t)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return false;
  }
  unsigned seconds = o->timeout_s ? o->timeout_s : DEFAULT_TIMEOUT_S;
  out->deadline = now_ns() + seconds * UINT64_C(1000000000);
  out->from = ends[0];
  return true;
}

/* The last line, if it is the one that cases print when they passed. */
static bool read_last_line(const job *j, cts_result *out) {
  size_t begin = j->length;
  while (begin > 0 && (begin == j->length || j->text[begin - 1] != '\n')) {
    begin--;
  }
  char line[2 * CTS_NAME], device[2 * CTS_NAME];
  unsigned long long launches;
  (void)snprintf(line, sizeof line, "%.*s", (int)(j->length - begin),
                 j->text + begin);
  if (sscanf(line, CTS_LAST_LINE, &launches, device) != 2) return false;
  (void)snprintf(out->device, sizeof out->device, "%.*s", CTS_NAME - 1, device);
  out->launches = launches;
  return true;
}

static bool mentions_sanitizer(const char *text, size_t length) {
  static const char word[] = "Sanitizer: ";
  size_t size = sizeof word - 1;
  for (size_t i = 0; i + size <= length; i++) {
    if (memcmp(text + i, word, size) == 0) return true;
  }
  return false;
}

/* How it ended, without what the list says. */
static void judge(const cts_options *o, job *j, int status) {
  cts_result *r = j->result;
  char head[128] = "";
  r->verdict = CTS_FAILED;
  r->has_broken = true;
  if (j->is_hung) {
    (void)snprintf(head, sizeof head, "hung: it was not over after %u s",
                   o->timeout_s ? o->timeout_s : DEFAULT_TIMEOUT_S);
  } else if (WIFSIGNALED(status)) {
    (void)snprintf(head, sizeof head, "crashed: signal %d, %s",
                   WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) == CTS_EXIT_SKIPPED) {
    r->verdict = CTS_SKIPPED;
    r->has_broken = false;
  } else if (WEXITSTATUS(status) == 0) {
    if (read_last_line(j, r)) {
      r->verdict = CTS_PASSED;
      r->has_broken = false;
      return;
    }
    (void)snprintf(head, sizeof head,
                   "ended before its end, as if all was "
                   "well");
  } else if (WEXITSTATUS(status) == CTS_EXIT_FAILED) {
    /* A sanitizer may end a process with the same number. */
    r->has_broken = mentions_sanitizer(j->text, j->length);
  } else if (WEXITSTATUS(status) != CTS_EXIT_LEAKED) {
    (void)snprintf(head, sizeof head, "ended with status %d",
                   WEXITSTATUS(status));
  }
  r->reason = join(head, j->text, j->length);
}

static void end(const cts_options *o, job *j) {
  int status = 0;
  close(j->from);
  if (j->is_hung) kill(j->pid, SIGKILL);
  while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR) {
  }
  judge(o, j, status);
  free(j->text);
  *j = (job){.result = NULL};
}

/* Reads what there is. False: it is over. */
static bool listen_to(job *j) {
  char rest[4096];
  size_t room = MOST_TEXT - j->length;
  ssize_t got = room ? read(j->from, j->text + j->length, room)
                     : read(j->from, rest, sizeof rest);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (room && got > 0) j->length += (size_t)got;
  return got > 0;
}

/* One case, alone. */
static bool run_one(const cts_options *o, cts_result *result) {
  job j;
  if (!start(o, result, &j)) {
    free(j.text);
    return false;
  }
  for (bool goes_on = true; goes_on;) {
    uint64_t now = now_ns();
    struct pollfd event = {.fd = j.from, .events = POLLIN};
    int wait = now >= j.deadline ? 0 : (int)((j.deadline - now) / 1000000 + 1);
    int ready = poll(&event, 1, wait);
    if (ready > 0) goes_on = listen_to(&j);
    if (ready == 0 && now_ns() >= j.deadline) {
      j.is_hung = true;
      goes_on = false;
    }
  }
  end(o, &j);
  return true;
}

/* --- many -----------------------------------------------------------------------*/

static unsigned job_count(const cts_options *o) {
  long there = sysconf(_SC_NPROCESSORS_ONLN);
  unsigned jobs = o->jobs ? o->jobs : there > 0 ? (unsigned)there : 1;
  return jobs > MOST_JOBS ? MOST_JOBS : jobs;
}

/* Waits until something happens, and takes it in. */
static void wait_for_some(const cts_options *o, job *jobs, unsigned count) {
  struct pollfd events[MOST_JOBS];
  uint64_t now = now_ns(), first = UINT64_MAX;
  for (unsigned i = 0; i < count; i++) {
    events[i] = (struct pollfd){.fd = jobs[i].result ? jobs[i].from : -1,
                                .events = POLLIN};
    if (jobs[i].result && jobs[i].deadline < first) first = jobs[i].deadline;
  }
  int wait = first <= now ? 0 : (int)((first - now) / 1000000 + 1);
  if (poll(events, count, wait) < 0) return;
  now = now_ns();
  for (unsigned i = 0; i < count; i++) {
    if (!jobs[i].result) continue;
    if (events[i].revents && !listen_to(&jobs[i])) {
      end(o, &jobs[i]);
    } else if (now >= jobs[i].deadline) {
      jobs[i].is_hung = true;
      end(o, &jobs[i]);
    }
  }
}

static bool run_all(const cts_options *o, cts_report *report) {
  job jobs[MOST_JOBS] = {{0}};
  unsigned count = job_count(o), running = 0;
  size_t next = 0;
  bool fine = true;
  while (running > 0 || (fine && next < report->count)) {
    for (unsigned i = 0; i < count && fine && next < report->count; i++) {
      if (jobs[i].result) continue;
      cts_result *result = &report->results[next++];
      if (result->verdict == CTS_UNSUPPORTED) continue;
      fine = start(o, result, &jobs[i]);
      if (!fine) free(jobs[i].text);
      if (!fine) jobs[i] = (job){.result = NULL};
    }
    running = 0;
    for (unsigned i = 0; i < count; i++) running += jobs[i].result != NULL;
    if (running > 0) wait_for_some(o, jobs, count);
  }
  return fine;
}

/* --- smaller programs -----------------------------------------------------------*/

/* Whether the program of @p name fails too; keeps why. */
static bool still_fails(const cts_options *o, const char *name,
                        cts_result *smaller) {
  cts_result tried = {.verdict = CTS_NOT_RUN};
  (void)snprintf(tried.name, sizeof tried.name, "%s", name);
  bool fails = run_one(o, &tried) && tried.verdict == CTS_FAILED;
  if (!fails) {
    free(tried.reason);
    return false;
  }
  free(smaller->reason);
  *smaller = tried;
  return true;
}

/* Fewer statements first, then without one thing after the other. */
static void shrink(const cts_options *o, cts_result *result) {
  static const char *const sizes[] = {"1", "2", "3",  "4",  "5",
                                      "6", "8", "10", "12", "16"};
  static const char *const without[] = {
      "no-f64",          "no-int64",         "no-narrow",   "no-shared",
      "no-barriers",     "no-grid-barriers", "no-atomics",  "no-atomics64",
      "no-out-of-range", "no-loops",         "no-functions"};
  cts_result smaller = {.verdict = CTS_NOT_RUN};
  char name[CTS_NAME];
  (void)snprintf(smaller.name, sizeof smaller.name, "%s", result->name);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int length =
        snprintf(name, sizeof name, "%s:size=%s", result->name, sizes[i]);
    if (length < CTS_NAME && still_fails(o, name, &smaller)) break;
  }
  for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
    int length = snprintf(name, sizeof name, "%s:%s", smaller.name, without[i]);
    if (length < CTS_NAME) still_fails(o, name, &smaller);
  }
  if (smaller.reason) {
    result->shrunk = copy_text(smaller.name, strlen(smaller.name));
    free(result->reason);
    result->reason = smaller.reason;
  }
}

/* --- reports --------------------------------------------------------------------*/

static cts_result *add(cts_report *report) {
  if (report->count == report->capacity) {
    size_t capacity = report->capacity ? 2 * report->capacity : 256;
    cts_result *grown = realloc(report->results, capacity * sizeof *grown);
    if (!grown) return NULL;
    report->results = grown;
    report->capacity = capacity;
  }
  cts_result *made = &report->results[report->count++];
  *made = (cts_result){.verdict = CTS_NOT_RUN};
  return made;
}

static bool add_case(cts_report *report, const cts_options *o,
                     const char *name) {
  cts_row *row = cts_list_find(&report->list, name);
  if (row) row->used++;
  if (o->filter && !strstr(name, o->filter)) return true;
  cts_result *result = add(report);
  if (!result) return false;
  (void)snprintf(result->name, sizeof result->name, "%s", name);
  result->row = row;
  if (!row || !row->is_unsupported) return true;
  result->verdict = CTS_UNSUPPORTED;
  result->reason = copy_text(row->reason, strlen(row->reason));
  return true;
}

bool cts_report_begin(const cts_suite *suite, const cts_options *options,
                      const char *list, size_t list_length, size_t *bad_line,
                      cts_report *out) {
  char name[CTS_NAME];
  *out = (cts_report){0};
  *bad_line = 0;
  if (!cts_list_read(&out->list, list, list_length, bad_line)) return false;
  *bad_line = 0;
  for (size_t i = 0; cts_case_name(suite, i, name); i++) {
    if (!add_case(out, options, name)) return false;
  }
  for (uint64_t i = 0; suite->program && i < options->programs; i++) {
    uint64_t seed = options->seed + i;
    (void)snprintf(name, sizeof name, "programs.%llu%s",
                   (unsigned long long)seed, seed % 4 == 3 ? ":math" : "");
    if (!add_case(out, options, name)) return false;
  }
  /* Programs are there, also when none of them is asked for. */
  cts_row *row = cts_list_find(&out->list, "programs.0");
  if (row && suite->program) row->used++;
  return true;
}

/* What the list says of a case, against how it ended. */
static void apply_list(cts_result *r) {
  char text[256];
  if (!r->row || r->verdict == CTS_UNSUPPORTED) return;
  if (r->verdict == CTS_FAILED) {
    if (!r->has_broken) r->verdict = CTS_EXPECTED_FAILURE;
    return;
  }
  bool passed = r->verdict == CTS_PASSED;
  (void)snprintf(text, sizeof text,
                 "the list expects it to fail (%s), and it %s: take it off",
                 r->row->reason, passed ? "passed" : "was skipped");
  free(r->reason);
  r->reason = copy_text(text, strlen(text));
  r->verdict = CTS_FAILED;
}

/* Rows that fit nothing are wrong, or out of date. */
static bool check_rows(cts_report *report) {
  for (size_t i = 0; i < report->list.count; i++) {
    const cts_row *row = &report->list.rows[i];
    if (row->used > 0) continue;
    cts_result *result = add(report);
    if (!result) return false;
    static const char why[] =
        "the list expects something of a case that does not exist, or that "
        "a line before it fits";
    (void)snprintf(result->name, sizeof result->name, "%s", row->pattern);
    result->is_row = true;
    result->verdict = CTS_FAILED;
    result->reason = copy_text(why, sizeof why - 1);
  }
  return true;
}

bool cts_report_run(const cts_options *options, cts_report *report) {
  if (!run_all(options, report)) return false;
  size_t shrunk = 0;
  for (size_t i = 0; i < report->count; i++) {
    cts_result *r = &report->results[i];
    bool is_program = strncmp(r->name, "programs.", 9) == 0;
    if (is_program && r->verdict == CTS_FAILED && !r->row &&
        shrunk++ < MOST_SHRUNK) {
      shrink(options, r);
    }
    apply_list(r);
  }
  if (!check_rows(report)) return false;
  for (size_t i = 0; i < report->count; i++) {
    cts_verdict verdict = report->results[i].verdict;
    if (verdict == CTS_PASSED) {
      report->passed++;
    } else if (verdict == CTS_FAILED) {
      report->failed++;
    } else {
      report->skipped++;
    }
  }
  return true;
}

bool cts_report_is_good(const cts_report *report) {
  return report->failed == 0 && report->passed > 0;
}

void cts_report_finish(cts_report *report) {
  for (size_t i = 0; i < report->count; i++) {
    free(report->results[i].reason);
    free(report->results[i].shrunk);
  }
  free(report->results);
  cts_list_finish(&report->list);
  *report = (cts_report){0};
}
