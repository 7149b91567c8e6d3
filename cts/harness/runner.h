/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Running cases, each in a process of its own: one that crashes, hangs or leaks
 * fails alone, and is named. */
#ifndef VYRE_CTS_HARNESS_RUNNER_H
#define VYRE_CTS_HARNESS_RUNNER_H

#include "cts/harness/cts.h"

enum {
  CTS_EXIT_FAILED = 1,
  CTS_EXIT_LEAKED = 76,
  CTS_EXIT_NOT_APPLICABLE = 77
};

/* What a case that passed prints last. */
#define CTS_LAST_LINE "passed: %llu kernels on %s"

/* What the last line of a case begins with that does not apply to the device; then
 * what the device lacks. */
#define CTS_LACKS_LINE "not applicable: the device lacks "

/* --- servers ---------------------------------------------------------------------- */

/* In place of a case's name: the process serves. Loading what a case needs (a
 * compiler, a driver) takes many times what the case does, so a server loads it
 * once, and forks for each case a process that finds it loaded and has run nothing
 * before. The server has one thread and opens no device, so that nothing of it can
 * be broken in a child. */
#define CTS_SERVE "-"

/* Standard input of a server is a socket of packets: orders come there, and for
 * each an ending goes back. What cases print goes to the server's own output. */
typedef struct cts_order {
  unsigned timeout_s;
  char name[CTS_NAME];
} cts_order;

typedef struct cts_ending {
  int status;      /* as of waitpid */
  bool is_hung;    /* it was not over in time, and was ended */
  bool is_no_fork; /* there was no process for it */
} cts_ending;

/* Serves until there are no more orders, then gives what the process ends with. */
int cts_serve(const cts_suite *suite, const char *backend, uint64_t seed);

/* --- expectations ----------------------------------------------------------------- */

/* Lines of "CASE  unsupported|fails  REASON"; a CASE that ends in * stands for all
 * that begin so, the first line that fits counts, # begins a comment. unsupported:
 * is not run. fails: is run, and must fail by saying so: no list excuses one that
 * crashes, hangs, leaks or just ends. */
typedef struct cts_row {
  char pattern[CTS_NAME];
  bool is_unsupported;
  char reason[160];
  size_t used; /* cases that it fits first */
} cts_row;

typedef struct cts_list {
  cts_row *rows;
  size_t count, capacity;
} cts_list;

/* The list that is built in for @p backend; "" without one. */
const char *cts_expectations(const char *backend);
/* Reads a list. False with the number of the line that is none in *line. */
bool cts_list_read(cts_list *list, const char *text, size_t length,
                   size_t *line);
void cts_list_finish(cts_list *list);
/* The row for a case, or NULL. */
cts_row *cts_list_find(const cts_list *list, const char *name);

/* --- runs ------------------------------------------------------------------------- */

typedef enum cts_verdict {
  CTS_NOT_RUN,
  CTS_PASSED,
  CTS_FAILED,
  CTS_NOT_APPLICABLE,  /* the device lacks what it needs, and refused it */
  CTS_UNSUPPORTED,     /* by the list */
  CTS_EXPECTED_FAILURE /* by the list, and it did */
} cts_verdict;

enum { CTS_LACK = 64 };

typedef struct cts_result {
  char name[CTS_NAME];
  cts_verdict verdict;
  uint64_t launches;
  char device[CTS_NAME];
  char *reason;         /* why not passed, a line or more; heap; NULL: passed */
  char lacks[CTS_LACK]; /* NOT_APPLICABLE: what the device lacks */
  char *shrunk; /* a smaller program that fails as well; heap, or NULL */
  cts_row *row;
  bool is_row;     /* no case: a line of the list that is wrong */
  bool has_broken; /* it crashed, hung, leaked, or ended in no way of its own */
} cts_result;

typedef struct cts_options {
  const char *backend;
  uint64_t programs, seed;
  const char *filter;  /* NULL: all; else only names that hold it */
  unsigned jobs;       /* at once; 0: as many as there are processors */
  unsigned timeout_s;  /* of a case; 0: 60 */
  unsigned grace_s;    /* more, for a server to say how it ended; 0: 10 */
  const char *program; /* what to start as a server; then its first words, */
  const char *const *words; /* which end with NULL; "--backend B --seed S */
                            /* --case -" follow */
  /* Is told how many of the cases to run are over; NULL: not. */
  void (*tell)(void *self, size_t done, size_t all);
  void *self;
} cts_options;

/* Something that the device lacks, and how many cases do not apply for it. */
typedef struct cts_lack {
  char what[CTS_LACK];
  size_t cases;
} cts_lack;

typedef struct cts_report {
  cts_result *results;
  size_t count, capacity;
  cts_list list;
  size_t passed, failed, not_applicable;
  size_t skipped;  /* by the list: not run, or expected to fail */
  cts_lack *lacks; /* in the order of the cases */
  size_t lack_count;
} cts_report;

/* Whether it shows anything, and all is well: none failed, and one passed. */
bool cts_report_is_good(const cts_report *report);

/* All cases that the options name, in order, none of them run. */
bool cts_report_begin(const cts_suite *suite, const cts_options *options,
                      const char *list, size_t list_length, size_t *bad_line,
                      cts_report *out);
/* Runs them, by as many servers as there are jobs. False if the system has no
 * processes or memory left. */
bool cts_report_run(const cts_options *options, cts_report *report);
void cts_report_finish(cts_report *report);

#endif
