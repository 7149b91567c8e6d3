/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What went wrong, from wherever it came: the command line, an input file, the
 * file system or a planner. One reporter tells all of them, to people and to
 * machines. */
#ifndef VYRE_TOOLS_CLI_ERROR_H
#define VYRE_TOOLS_CLI_ERROR_H

#include "vyre/status.h"

#include "cli/sink.h"

typedef struct problem {
  const char *kind;      /* as JSON prints it; NULL: nothing is wrong */
  const char *file;      /* which input or output; NULL if none */
  uint64_t line, column; /* in bytes, from 1; 0 if there is no place */
  const char *field;     /* the planner's; NULL if none */
  vyre_status_number numbers[VYRE_STATUS_MAX_NUMBERS];
  uint32_t number_count;
  bool device;         /* it is the device's fault */
  const sink *printed; /* what a kernel had printed, for JSON; NULL: nothing */
  uint64_t printed_dropped; /* bytes of it that were not kept */
  char message[640];
  char fix[320];
} problem;

#define KIND_USAGE "usage"
#define KIND_INPUT "invalid_input"
#define KIND_WRITE "write_failed"

enum { EXIT_FINE = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_DEVICE = 3 };

/* Fills @p out unless it holds a problem already; returns false, so that a
 * reader can `return problem_set(...)`. */
bool problem_set(problem *out, const char *kind, const char *fix,
                 const char *format, ...) PRINTF_LIKE(4, 5);

/* Replaces the remedy by one that was made up on the spot. */
void problem_fix(problem *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same for a failure of the library. */
bool problem_from_status(problem *out, const vyre_status *st);

/* The same for what a context says of the options on the command line: they are
 * wrong there, those of the environment are not. */
bool problem_from_options(problem *out, const vyre_status *st);

/* There is no memory for @p what. */
bool problem_no_memory(problem *out, const char *what);

/* Tells it, as JSON on stdout or as text on stderr, where it also goes if
 * stdout takes nothing. Returns the exit code. */
int problem_report(const problem *what, bool json);

/* The same into sinks. */
void problem_json(const problem *what, sink *out);
void problem_text(const problem *what, sink *out);

#endif
