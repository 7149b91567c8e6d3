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
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
  MOST_JOBS = 64,
  MOST_WORDS = 24,
  MOST_TEXT = 16 << 10, /* of what a case prints */
  DEFAULT_TIMEOUT_S = 60,
  MOST_SHRUNK = 3,
  MOST_IN_ONE = 64 /* cases of one process: what it leaks is told at its end */
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

/* Starting a process and what it loads (a compiler, a driver) costs many times what
 * a case does. So cases that pass go through one process, one after the other; the
 * next one gets a new process after one that did not. What fails there is run again
 * alone, which decides what is told: how a case ends must not depend on the cases
 * before it, and one for which it does has failed. */
typedef struct job {
  pid_t pid;          /* 0: there is no process */
  int from, to;       /* what it prints; names of cases, -1: it runs just one */
  uint64_t deadline;  /* ns */
  cts_result *result; /* runs now; NULL: it waits for a name, or for its end */
  size_t number, done; /* of the process; cases that passed in it */
  cts_result *last;    /* of those */
  char *text;
  size_t length;
  char line[2 * CTS_NAME]; /* that has begun */
  size_t line_length;
  bool has_passed, is_hung, is_ending;

  cts_result *again;  /* failed in a process with others: comes next, alone */
  char *first_reason; /* why; heap */
} job;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static unsigned timeout_of(const cts_options *o) {
  return o->timeout_s ? o->timeout_s : DEFAULT_TIMEOUT_S;
}

static void begin_case(const cts_options *o, job *j, cts_result *result) {
  j->result = result;
  j->length = j->line_length = 0;
  j->has_passed = false;
  j->deadline = now_ns() + timeout_of(o) * UINT64_C(1000000000);
}

/* Starts a process for the case @p name, or with CTS_MANY for those to come. */
static bool start(const cts_options *o, const char *name, job *j) {
  static size_t processes;
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
  words[count++] = name;
  int out[2], in[2];
  if (!j->text) j->text = malloc(MOST_TEXT);
  if (!j->text || pipe(out) != 0) return false;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, in) != 0) {
    close(out[0]);
    close(out[1]);
    return false;
  }
  /* Another process must not hold the ends of this one open. */
  for (int i = 0; i < 2; i++) {
    fcntl(out[i], F_SETFD, FD_CLOEXEC);
    fcntl(in[i], F_SETFD, FD_CLOEXEC);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[1], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, out[1], 2);
  int error = posix_spawn(&j->pid, o->program, &actions, NULL,
                          (char *const *)(uintptr_t)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(in[1]);
  j->from = out[0];
  j->to = in[0];
  if (strcmp(name, CTS_MANY) != 0) {
    close(j->to); /* the case finds an input that has ended */
    j->to = -1;
  }
  if (error == 0) {
    j->number = ++processes;
    j->done = 0;
    j->is_hung = j->is_ending = false;
    return true;
  }
  close(j->from);
  if (j->to >= 0) close(j->to);
  j->pid = 0;
  return false;
}

/* One that is gone by now is found so when its output ends. */
static void give(const cts_options *o, job *j, cts_result *result) {
  char name[CTS_NAME + 1];
  int length = snprintf(name, sizeof name, "%s\n", result->name);
  begin_case(o, j, result);
  result->process = j->number;
  (void)!send(j->to, name, (size_t)length, MSG_NOSIGNAL);
}

/* A whole line: the one that cases print when they passed, or the one behind it
 * of a process that waits for the next. True: that case is over, and passed. */
static bool take_line(job *j) {
  char device[2 * CTS_NAME];
  unsigned long long launches;
  j->line[j->line_length] = '\0';
  j->line_length = 0;
  if (!j->result) return false;
  if (j->has_passed && j->to >= 0 &&
      strncmp(j->line, CTS_NEXT, sizeof CTS_NEXT - 1) == 0 &&
      strcmp(j->line + sizeof CTS_NEXT - 1, j->result->name) == 0) {
    return true;
  }
  j->has_passed = sscanf(j->line, CTS_LAST_LINE, &launches, device) == 2;
  if (!j->has_passed) return false;
  cts_result *r = j->result;
  (void)snprintf(r->device, sizeof r->device, "%.*s", CTS_NAME - 1, device);
  r->launches = launches;
  return false;
}

static bool mentions_sanitizer(const char *text, size_t length) {
  static const char word[] = "Sanitizer: ";
  size_t size = sizeof word - 1;
  for (size_t i = 0; i + size <= length; i++) {
    if (memcmp(text + i, word, size) == 0) return true;
  }
  return false;
}

/* How the case ended with its process, without what the list says. */
static void judge(const cts_options *o, job *j, int status) {
  cts_result *r = j->result;
  char head[128] = "";
  r->verdict = CTS_FAILED;
  r->has_broken = true;
  if (j->is_hung) {
    (void)snprintf(head, sizeof head, "hung: it was not over after %u s",
                   timeout_of(o));
  } else if (WIFSIGNALED(status)) {
    (void)snprintf(head, sizeof head, "crashed: signal %d, %s",
                   WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) == CTS_EXIT_SKIPPED) {
    r->verdict = CTS_SKIPPED;
    r->has_broken = false;
  } else if (WEXITSTATUS(status) == 0) {
    if (j->has_passed && j->to < 0) {
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

/* @p r passed alone, and failed with others; takes @p why. */
static void blame(cts_result *r, const char *after, char *why) {
  char head[2 * CTS_NAME];
  (void)snprintf(head, sizeof head,
                 "passes alone, but not in one process with other cases, the "
                 "last of them %s",
                 after);
  free(r->reason);
  r->reason = join(head, why ? why : "", why ? strlen(why) : 0);
  free(why);
  r->verdict = CTS_FAILED;
  r->has_broken = true;
}

/* The process of @p j is gone, or to be ended. */
static int reap(job *j) {
  int status = 0;
  close(j->from);
  if (j->to >= 0) close(j->to);
  if (j->is_hung) kill(j->pid, SIGKILL);
  while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR) {
  }
  j->pid = 0;
  return status;
}

static void end(const cts_options *o, job *j) {
  cts_result *r = j->result;
  int status = reap(j);
  judge(o, j, status);
  j->result = NULL;
  if (j->again == r) { /* this was alone */
    if (r->verdict == CTS_PASSED) {
      blame(r, j->last ? j->last->name : "", j->first_reason);
    } else {
      free(j->first_reason);
    }
    j->again = NULL;
    j->first_reason = NULL;
  } else if (r->verdict == CTS_FAILED && j->done > 0) {
    j->again = r;
    j->first_reason = r->reason;
    r->reason = NULL;
  }
}

/* Reads what there is. False: there is no more. */
static bool listen_to(job *j, bool *passed) {
  char bytes[4096];
  *passed = false;
  ssize_t got = read(j->from, bytes, sizeof bytes);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  for (ssize_t i = 0; i < got; i++) {
    if (j->length < MOST_TEXT) j->text[j->length++] = bytes[i];
    if (bytes[i] == '\n') {
      *passed = take_line(j) || *passed;
    } else {
      bool may_be_next = j->to >= 0 && bytes[i] == CTS_NEXT[0];
      if (j->line_length == 0 && !may_be_next) j->has_passed = false;
      if (j->line_length + 1 < sizeof j->line) {
        j->line[j->line_length++] = bytes[i];
      }
    }
  }
  return got > 0;
}

/* One case, alone. */
static bool run_one(const cts_options *o, cts_result *result) {
  job j = {.pid = 0};
  bool passed;
  if (!start(o, result->name, &j)) {
    free(j.text);
    return false;
  }
  begin_case(o, &j, result);
  for (bool goes_on = true; goes_on;) {
    uint64_t now = now_ns();
    struct pollfd event = {.fd = j.from, .events = POLLIN};
    int wait = now >= j.deadline ? 0 : (int)((j.deadline - now) / 1000000 + 1);
    int ready = poll(&event, 1, wait);
    if (ready > 0) goes_on = listen_to(&j, &passed);
    if (ready == 0 && now_ns() >= j.deadline) {
      j.is_hung = true;
      goes_on = false;
    }
  }
  end(o, &j);
  free(j.text);
  return true;
}

/* --- many -----------------------------------------------------------------------*/

static unsigned job_count(const cts_options *o) {
  long there = sysconf(_SC_NPROCESSORS_ONLN);
  unsigned jobs = o->jobs ? o->jobs : there > 0 ? (unsigned)there : 1;
  return jobs > MOST_JOBS ? MOST_JOBS : jobs;
}

/* A process that ran many cases has ended, or should have. If not well, one of them
 * left something behind that none has said: each is run again, alone. */
static bool end_many(const cts_options *o, cts_report *report, job *j) {
  size_t number = j->number, bad = 0;
  int status = reap(j);
  if (!j->is_hung && status == 0) return true;
  for (size_t i = 0; i < report->count; i++) {
    cts_result *r = &report->results[i];
    if (r->process != number || r->verdict != CTS_PASSED) continue;
    if (!run_one(o, r)) return false;
    bad += r->verdict != CTS_PASSED;
  }
  if (bad == 0 && j->last) {
    blame(j->last, j->last->name, join("", j->text, j->length));
  }
  return true;
}

/* False: there is no more to hear. */
static bool hear(job *j) {
  bool passed, goes_on = listen_to(j, &passed);
  if (passed) {
    j->result->verdict = CTS_PASSED;
    j->last = j->result;
    j->result = NULL;
    j->done++;
    j->length = 0;
  }
  return goes_on;
}

/* Waits until something happens, and takes it in. */
static bool wait_for_some(const cts_options *o, cts_report *report, job *jobs,
                          unsigned count) {
  struct pollfd events[MOST_JOBS];
  uint64_t now = now_ns(), first = UINT64_MAX;
  for (unsigned i = 0; i < count; i++) {
    events[i] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].from : -1,
                                .events = POLLIN};
    if (jobs[i].pid && jobs[i].deadline < first) first = jobs[i].deadline;
  }
  int wait = first <= now ? 0 : (int)((first - now) / 1000000 + 1);
  if (poll(events, count, wait) < 0) return true;
  now = now_ns();
  for (unsigned i = 0; i < count; i++) {
    job *j = &jobs[i];
    bool is_over = false;
    if (!j->pid) continue;
    if (events[i].revents) {
      is_over = !hear(j);
    } else if (now >= j->deadline) {
      j->is_hung = is_over = true;
    }
    if (!is_over) continue;
    if (j->result) {
      end(o, j);
    } else if (!end_many(o, report, j)) {
      return false;
    }
  }
  return true;
}

/* The next that is to be run; NULL: there is none. */
static cts_result *next_case(cts_report *report, size_t *next) {
  while (*next < report->count) {
    cts_result *result = &report->results[(*next)++];
    if (result->verdict != CTS_UNSUPPORTED) return result;
  }
  return NULL;
}

/* Gives @p j something to do if it has nothing. */
static bool feed(const cts_options *o, cts_report *report, size_t *next,
                 job *j) {
  if (j->result || j->is_ending) return true;
  if (j->again) {
    bool fine = start(o, j->again->name, j);
    if (fine) begin_case(o, j, j->again);
    return fine;
  }
  cts_result *result = j->done < MOST_IN_ONE ? next_case(report, next) : NULL;
  if (result) {
    if (!j->pid && !start(o, CTS_MANY, j)) return false;
    give(o, j, result);
  } else if (j->pid) { /* it ends by itself */
    shutdown(j->to, SHUT_WR);
    j->is_ending = true;
    j->deadline = now_ns() + timeout_of(o) * UINT64_C(1000000000);
  }
  return true;
}

static bool run_all(const cts_options *o, cts_report *report) {
  job jobs[MOST_JOBS] = {{0}};
  unsigned count = job_count(o), running = 1;
  size_t next = 0;
  bool fine = true;
  while (fine && running > 0) {
    running = 0;
    for (unsigned i = 0; i < count && fine; i++) {
      if (!jobs[i].pid) {
        jobs[i].done = 0;
        jobs[i].is_ending = false;
      }
      fine = feed(o, report, &next, &jobs[i]);
      running += jobs[i].pid != 0;
    }
    if (fine && running > 0) fine = wait_for_some(o, report, jobs, count);
  }
  for (unsigned i = 0; i < count; i++) {
    jobs[i].is_hung = true; /* if it is still there: nobody waits for it */
    if (jobs[i].pid) (void)reap(&jobs[i]);
    free(jobs[i].text);
    free(jobs[i].first_reason);
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
