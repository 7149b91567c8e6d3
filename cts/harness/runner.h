/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs each case in its own process, so that a crash, hang or leak fails only
 * that case. */
#ifndef VYRE_CTS_HARNESS_RUNNER_H
#define VYRE_CTS_HARNESS_RUNNER_H

#include "cts/harness/cts.h"

enum {
  CTS_EXIT_FAILED = 1,
  CTS_EXIT_LEAKED = 76,
  CTS_EXIT_NOT_APPLICABLE = 77
};

/* Last line that a passed case prints. */
#define CTS_LAST_LINE "passed: %llu kernels on %s"

/* Start of the last line of a case that does not apply to the device; the
 * missing feature follows. */
#define CTS_LACKS_LINE "not applicable: the device lacks "

/* --- Servers
 * ------------------------------------------------------------------ */

/* Case name that turns the process into a server. Loading a compiler or a
 * driver takes much longer than a case, so a server loads them once and forks a
 * process for each case. The server has one thread and opens no device, so that
 * its children start in a clean state. */
#define CTS_SERVE "-"

/* Protocol: standard input of a server is a packet socket. Each order is
 * answered with an ending. Cases print to the standard output of the server. */
typedef struct cts_order {
  unsigned timeout_s;
  char name[CTS_NAME];
} cts_order;

typedef struct cts_ending {
  int status;      /* exit status from waitpid */
  bool is_hung;    /* it exceeded its timeout and was killed */
  bool is_no_fork; /* fork failed */
} cts_ending;

/* Serves orders until the socket closes. Returns the exit code of the process.
 */
int cts_serve(const cts_suite *suite, const char *backend, uint64_t seed);

/* --- Expectations
 * ------------------------------------------------------------- */

/* Expectation list: lines of "CASE unsupported|fails REASON". A CASE that ends
 * in * matches all names with that prefix; the first matching line counts; #
 * starts a comment. unsupported: the case is not run. fails: the case is run
 * and must report a failure; crashes, hangs, leaks and silent exits still count
 * as failures. */
typedef struct cts_row {
  char pattern[CTS_NAME];
  bool is_unsupported;
  char reason[160];
  size_t used; /* number of cases that this row is the first match of */
} cts_row;

typedef struct cts_list {
  cts_row *rows;
  size_t count, capacity;
} cts_list;

/* Returns the built-in list of @p backend; "" if it has none. */
const char *cts_expectations(const char *backend);
/* Parses a list. On failure returns false and stores the invalid line's number
 * in *line. */
bool cts_list_read(cts_list *list, const char *text, size_t length,
                   size_t *line);
void cts_list_deinit(cts_list *list);
/* Returns the first row that matches a case, or NULL. */
cts_row *cts_list_find(const cts_list *list, const char *name);

/* --- Runs
 * --------------------------------------------------------------------- */

typedef enum cts_verdict {
  CTS_NOT_RUN,
  CTS_PASSED,
  CTS_FAILED,
  /* The device lacks a feature and rejected it correctly. */
  CTS_NOT_APPLICABLE,
  CTS_UNSUPPORTED,     /* not run, by the list */
  CTS_EXPECTED_FAILURE /* failed, as the list expects */
} cts_verdict;

enum { CTS_LACK = 64 };

typedef struct cts_result {
  char name[CTS_NAME];
  cts_verdict verdict;
  uint64_t launches;
  char device[CTS_NAME];
  /* Reason for the verdict, one or more lines; heap; NULL if passed. */
  char *reason;
  char lacks[CTS_LACK]; /* NOT_APPLICABLE: missing feature */
  char *shrunk; /* smaller random program that fails too; heap, or NULL */
  cts_row *row;
  bool is_row;     /* not a case, but an invalid line of the list */
  bool has_broken; /* it crashed, hung, leaked or exited without a verdict */
} cts_result;

typedef struct cts_options {
  const char *backend;
  uint64_t programs, seed;
  const char *filter;  /* run only cases whose name contains this; NULL: all */
  unsigned jobs;       /* parallel servers; 0: one per processor */
  unsigned timeout_s;  /* limit per case; 0: 60 */
  unsigned grace_s;    /* additional time for the server to report; 0: 10 */
  const char *program; /* executable of the server; then its first arguments, */
  const char *const *words; /* ended by NULL; "--backend B --seed S */
                            /* --case -" follow */
  /* Called with the number of finished cases; may be NULL. */
  void (*on_progress)(void *user_data, size_t completed, size_t total);
  void *user_data;
} cts_options;

/* Missing feature of the device, and the number of cases that need it. */
typedef struct cts_lack {
  char what[CTS_LACK];
  size_t cases;
} cts_lack;

typedef struct cts_report {
  cts_result *results;
  size_t count, capacity;
  cts_list list;
  size_t passed, failed, not_applicable;
  size_t skipped;  /* cases not run or expected to fail, by the list */
  cts_lack *lacks; /* missing features, in case order */
  size_t lack_count;
} cts_report;

/* Returns true when at least one case passed and none failed. */
bool cts_report_is_good(const cts_report *report);

/* Initialises a report with all selected cases, none of them run. */
bool cts_report_begin(const cts_suite *suite, const cts_options *options,
                      const char *list, size_t list_length, size_t *bad_line,
                      cts_report *out);
/* Runs the cases on options->jobs servers. Returns false if the system is out
 * of processes or memory. */
bool cts_report_run(const cts_options *options, cts_report *report);
void cts_report_deinit(cts_report *report);

#endif
