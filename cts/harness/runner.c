/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Starts servers, sends them cases, collects the verdicts and shrinks random
 * programs that fail. */
#include "cts/harness/runner.h"

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
  MAX_JOBS = 64,
  MAX_WORDS = 24,
  MAX_TEXT = 16 << 10, /* bytes kept of the output of a case */
  DEFAULT_TIMEOUT_S = 60,
  DEFAULT_GRACE_S = 10,
  MAX_SHRUNK = 3
};

/* --- Strings
 * ------------------------------------------------------------------ */

static char *copy_text(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

/* Returns "HEAD" or "HEAD; TEXT" without trailing white space. */
static char *join(const char *head, const char *text, size_t length) {
  while (length > 0 && strchr(" \n\r\t", text[length - 1])) length--;
  size_t before = strlen(head);
  char *made = malloc(before + length + 4);
  if (!made) return NULL;
  (void)snprintf(made, before + length + 4, "%s%s%.*s", head,
                 before && length ? ": " : "", (int)length, text);
  return made;
}

/* --- One server
 * --------------------------------------------------------------- */

typedef struct server {
  pid_t pid;          /* 0: not started */
  int from, line;     /* output of its cases; socket of orders and endings */
  cts_result *result; /* case that runs now; NULL: idle */
  uint64_t deadline;  /* ns; the server must report before that time */
  char *text;         /* first part of the output of the case */
  size_t length;
  char last[2 * CTS_NAME]; /* last line of the output */
  size_t last_length;
  bool is_last_whole;
} server;

typedef struct crew {
  const cts_options *options;
  server servers[MAX_JOBS];
  unsigned count;
  size_t to_run, given; /* cases; to_run is 0 if progress is not reported */
} crew;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static unsigned timeout_of(const cts_options *o) {
  return o->timeout_s ? o->timeout_s : DEFAULT_TIMEOUT_S;
}

static int spawn(const cts_options *o, int input, int output, pid_t *pid) {
  const char *words[MAX_WORDS] = {o->program};
  char seed[24];
  size_t count = 1;
  (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
  for (size_t i = 0; o->words[i] && count < MAX_WORDS - 8; i++) {
    words[count++] = o->words[i];
  }
  words[count++] = "--backend";
  words[count++] = o->backend;
  words[count++] = "--seed";
  words[count++] = seed;
  words[count++] = "--case";
  words[count++] = CTS_SERVE;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  int error = posix_spawn(pid, o->program, &actions, NULL,
                          (char *const *)(uintptr_t)words, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

static bool start(const cts_options *o, server *s) {
  int out[2], line[2];
  if (!s->text) s->text = malloc(MAX_TEXT);
  if (!s->text || pipe(out) != 0) return false;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, line) != 0) {
    close(out[0]);
    close(out[1]);
    return false;
  }
  /* Other servers must not inherit these descriptors. */
  for (int i = 0; i < 2; i++) {
    fcntl(out[i], F_SETFD, FD_CLOEXEC);
    fcntl(line[i], F_SETFD, FD_CLOEXEC);
  }
  fcntl(out[0], F_SETFL, O_NONBLOCK); /* affects this end only */
  int error = spawn(o, line[1], out[1], &s->pid);
  close(out[1]);
  close(line[1]);
  s->from = out[0];
  s->line = line[0];
  if (error == 0) return true;
  close(s->from);
  close(s->line);
  s->pid = 0;
  return false;
}

/* Waits for a server that has exited or has no more cases. */
static int reap(server *s) {
  int status = 0;
  close(s->from);
  close(s->line);
  while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR) {
  }
  s->pid = 0;
  return status;
}

/* Sends an order. A server that has exited is detected when no answer arrives.
 */
static void give(const cts_options *o, server *s, cts_result *result) {
  cts_order order = {.timeout_s = timeout_of(o)};
  (void)snprintf(order.name, sizeof order.name, "%s", result->name);
  s->result = result;
  s->length = s->last_length = 0;
  s->is_last_whole = false;
  unsigned grace_s = o->grace_s ? o->grace_s : DEFAULT_GRACE_S;
  s->deadline = now_ns() + (order.timeout_s + grace_s) * UINT64_C(1000000000);
  (void)!send(s->line, &order, sizeof order, MSG_NOSIGNAL);
}

/* Reads all available output. */
static void listen_to(server *s) {
  char bytes[4096];
  for (;;) {
    ssize_t got = read(s->from, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    for (ssize_t i = 0; i < got; i++) {
      if (s->length < MAX_TEXT) s->text[s->length++] = bytes[i];
      if (s->is_last_whole) s->last_length = 0;
      s->is_last_whole = bytes[i] == '\n';
      if (!s->is_last_whole && s->last_length + 1 < sizeof s->last) {
        s->last[s->last_length++] = bytes[i];
      }
    }
  }
}

/* Parses the last line of a passed case. */
static bool read_last_line(server *s, cts_result *out) {
  char device[2 * CTS_NAME];
  unsigned long long launches;
  s->last[s->last_length] = '\0';
  if (sscanf(s->last, CTS_LAST_LINE, &launches, device) != 2) return false;
  (void)snprintf(out->device, sizeof out->device, "%.*s", CTS_NAME - 1, device);
  out->launches = launches;
  return true;
}

/* Parses the last line of a case that does not apply. */
static bool read_lack(server *s, cts_result *out) {
  size_t head = sizeof CTS_LACKS_LINE - 1;
  s->last[s->last_length] = '\0';
  if (strncmp(s->last, CTS_LACKS_LINE, head) != 0 || !s->last[head]) {
    return false;
  }
  (void)snprintf(out->lacks, sizeof out->lacks, "%.*s", CTS_LACK - 1,
                 s->last + head);
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

/* Determines the verdict of a case, before the list is applied. */
static void judge(const cts_options *o, server *s, const cts_ending *ending) {
  cts_result *r = s->result;
  int status = ending->status;
  char head[128] = "";
  s->result = NULL;
  r->verdict = CTS_FAILED;
  r->has_broken = true;
  if (ending->is_hung) {
    (void)snprintf(head, sizeof head, "hung: it was not over after %u s",
                   timeout_of(o));
  } else if (WIFSIGNALED(status)) {
    (void)snprintf(head, sizeof head, "crashed: signal %d, %s",
                   WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) == CTS_EXIT_NOT_APPLICABLE) {
    if (read_lack(s, r)) {
      r->verdict = CTS_NOT_APPLICABLE;
      r->has_broken = false;
    } else {
      (void)snprintf(head, sizeof head,
                     "ended as if it did not apply, and does not name what the "
                     "device lacks");
    }
  } else if (WEXITSTATUS(status) == 0) {
    if (read_last_line(s, r)) {
      r->verdict = CTS_PASSED;
      r->has_broken = false;
      return;
    }
    (void)snprintf(head, sizeof head,
                   "ended before its end, as if all was "
                   "well");
  } else if (WEXITSTATUS(status) == CTS_EXIT_FAILED) {
    /* A sanitizer may use the same exit code. */
    r->has_broken = mentions_sanitizer(s->text, s->length);
  } else if (WEXITSTATUS(status) != CTS_EXIT_LEAKED) {
    (void)snprintf(head, sizeof head, "ended with status %d",
                   WEXITSTATUS(status));
  }
  r->reason = join(head, s->text, s->length);
}

/* Handles the ending of a case. If the server itself has exited, the case has
 * damaged more than its own process, and the next case gets a new server. */
static bool take_ending(const cts_options *o, server *s) {
  cts_ending ending;
  ssize_t got = recv(s->line, &ending, sizeof ending, 0);
  if (got < 0 && errno == EINTR) return true;
  listen_to(s);
  if (got != (ssize_t)sizeof ending) {
    ending = (cts_ending){.status = reap(s)};
  }
  if (ending.is_no_fork) return false;
  judge(o, s, &ending);
  return true;
}

/* Kills a server that does not report in time, or cannot load its libraries. */
static void give_up(const cts_options *o, server *s) {
  kill(s->pid, SIGKILL); /* the case dies with it */
  listen_to(s);
  (void)reap(s);
  judge(o, s, &(cts_ending){.is_hung = true});
}

/* --- All servers
 * -------------------------------------------------------------- */

static unsigned job_count(const cts_options *o) {
  long there = sysconf(_SC_NPROCESSORS_ONLN);
  unsigned jobs = o->jobs ? o->jobs : there > 0 ? (unsigned)there : 1;
  return jobs > MAX_JOBS ? MAX_JOBS : jobs;
}

/* Waits for output, endings or a deadline and handles them. */
static bool wait_for_some(crew *c) {
  struct pollfd events[2 * MAX_JOBS];
  uint64_t now = now_ns(), first = UINT64_MAX;
  for (size_t i = 0; i < c->count; i++) {
    const server *s = &c->servers[i];
    bool is_on = s->result != NULL;
    events[2 * i] =
        (struct pollfd){.fd = is_on ? s->from : -1, .events = POLLIN};
    events[2 * i + 1] =
        (struct pollfd){.fd = is_on ? s->line : -1, .events = POLLIN};
    if (is_on && s->deadline < first) first = s->deadline;
  }
  int wait = first <= now ? 0 : (int)((first - now) / 1000000 + 1);
  if (poll(events, 2 * (nfds_t)c->count, wait) < 0) return true;
  now = now_ns();
  for (size_t i = 0; i < c->count; i++) {
    server *s = &c->servers[i];
    if (!s->result) continue;
    if (events[2 * i].revents) listen_to(s);
    if (events[2 * i + 1].revents) {
      if (!take_ending(c->options, s)) return false;
    } else if (now >= s->deadline) {
      give_up(c->options, s);
    }
  }
  return true;
}

/* Returns the next case to run, or NULL. */
static cts_result *next_case(cts_result *results, size_t count, size_t *next) {
  while (*next < count) {
    cts_result *result = &results[(*next)++];
    if (result->verdict != CTS_UNSUPPORTED) return result;
  }
  return NULL;
}

static bool run_all(crew *c, cts_result *results, size_t count) {
  size_t next = 0;
  for (unsigned running = 1; running > 0;) {
    running = 0;
    for (unsigned i = 0; i < c->count; i++) {
      server *s = &c->servers[i];
      cts_result *result = s->result ? NULL : next_case(results, count, &next);
      if (result) {
        if (!s->pid && !start(c->options, s)) return false;
        give(c->options, s, result);
        c->given++;
      }
      running += s->result != NULL;
    }
    if (c->options->on_progress && c->to_run > 0) {
      c->options->on_progress(c->options->user_data, c->given - running,
                              c->to_run);
    }
    if (running > 0 && !wait_for_some(c)) return false;
  }
  return true;
}

static void end_crew(crew *c) {
  for (unsigned i = 0; i < c->count; i++) {
    server *s = &c->servers[i];
    if (s->result) kill(s->pid, SIGKILL); /* its verdict is not needed */
    if (s->pid) (void)reap(s);
    free(s->text);
  }
}

/* --- Shrinking of random programs
 * --------------------------------------------- */

/* Returns true when the program @p name fails too, and keeps the reason. */
static bool still_fails(crew *c, const char *name, cts_result *smaller) {
  cts_result tried = {.verdict = CTS_NOT_RUN};
  (void)snprintf(tried.name, sizeof tried.name, "%s", name);
  bool fails = run_all(c, &tried, 1) && tried.verdict == CTS_FAILED;
  if (!fails) {
    free(tried.reason);
    return false;
  }
  free(smaller->reason);
  *smaller = tried;
  return true;
}

/* Tries fewer statements first, then leaves out one feature after the other. */
static void shrink(crew *c, cts_result *result) {
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
    if (length < CTS_NAME && still_fails(c, name, &smaller)) break;
  }
  for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
    int length = snprintf(name, sizeof name, "%s:%s", smaller.name, without[i]);
    if (length < CTS_NAME) still_fails(c, name, &smaller);
  }
  if (smaller.reason) {
    result->shrunk = copy_text(smaller.name, strlen(smaller.name));
    free(result->reason);
    result->reason = smaller.reason;
  }
}

/* --- Reports
 * ------------------------------------------------------------------ */

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
  /* Names of random programs are valid even if none are selected. */
  cts_row *row = cts_list_find(&out->list, "programs.0");
  if (row && suite->program) row->used++;
  return true;
}

/* Applies the expectation list to the verdict of a case. */
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
                 r->row->reason, passed ? "passed" : "does not apply");
  free(r->reason);
  r->reason = copy_text(text, strlen(text));
  r->verdict = CTS_FAILED;
}

/* Reports rows that match no case: they are wrong or outdated. */
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

/* Counts a case that does not apply under its missing feature. */
static bool add_lack(cts_report *report, const char *what) {
  size_t at = 0, count = report->lack_count;
  while (at < count && strcmp(report->lacks[at].what, what) != 0) at++;
  if (at == count) {
    cts_lack *grown = realloc(report->lacks, (count + 1) * sizeof *grown);
    if (!grown) return false;
    report->lacks = grown;
    report->lacks[report->lack_count++] = (cts_lack){.cases = 0};
    (void)snprintf(grown[at].what, sizeof grown[at].what, "%s", what);
  }
  report->lacks[at].cases++;
  return true;
}

static bool run_report(crew *c, cts_report *report) {
  for (size_t i = 0; i < report->count; i++) {
    c->to_run += report->results[i].verdict != CTS_UNSUPPORTED;
  }
  if (!run_all(c, report->results, report->count)) return false;
  c->to_run = 0; /* no progress while failures are shrunk */
  size_t shrunk = 0;
  for (size_t i = 0; i < report->count; i++) {
    cts_result *r = &report->results[i];
    bool is_program = strncmp(r->name, "programs.", 9) == 0;
    if (is_program && r->verdict == CTS_FAILED && !r->row &&
        shrunk++ < MAX_SHRUNK) {
      shrink(c, r);
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
    } else if (verdict == CTS_NOT_APPLICABLE) {
      report->not_applicable++;
      if (!add_lack(report, report->results[i].lacks)) return false;
    } else {
      report->skipped++;
    }
  }
  return true;
}

bool cts_report_run(const cts_options *options, cts_report *report) {
  crew c = {.options = options, .count = job_count(options)};
  bool fine = run_report(&c, report);
  end_crew(&c);
  return fine;
}

bool cts_report_is_good(const cts_report *report) {
  return report->failed == 0 && report->passed > 0;
}

void cts_report_deinit(cts_report *report) {
  for (size_t i = 0; i < report->count; i++) {
    free(report->results[i].reason);
    free(report->results[i].shrunk);
  }
  free(report->results);
  free(report->lacks);
  cts_list_deinit(&report->list);
  *report = (cts_report){0};
}
