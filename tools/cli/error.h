/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Errors of the command: wrong arguments, input files, failed writes and
 * statuses of the library. One reporter prints all of them, as text or as
 * JSON. */
#ifndef VYRE_TOOLS_CLI_ERROR_H
#define VYRE_TOOLS_CLI_ERROR_H

#include "vyre/status.h"

#include "cli/sink.h"

typedef struct problem {
  const char *kind;      /* as in JSON; NULL: no error */
  const char *file;      /* input or output file; NULL: none */
  uint64_t line, column; /* byte position, from 1; 0: unknown */
  const char *field;     /* field that a planner names; NULL: none */
  vyre_status_number numbers[VYRE_STATUS_MAX_NUMBERS];
  uint32_t number_count;
  bool device;              /* caused by the device */
  const sink *printed;      /* output of print(...), for JSON; NULL: none */
  uint64_t printed_dropped; /* bytes of that output that were dropped */
  char message[640];
  char fix[320];
} problem;

#define KIND_USAGE "usage"
#define KIND_INPUT "invalid_input"
#define KIND_WRITE "write_failed"

enum { EXIT_FINE = 0, EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_DEVICE = 3 };

/* Fills @p out unless it already holds an error. Returns false, so that
 * callers can `return problem_set(...)`. */
bool problem_set(problem *out, const char *kind, const char *fix,
                 const char *format, ...) PRINTF_LIKE(4, 5);

/* Replaces the fix. */
void problem_fix(problem *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* Fills @p out from a failure of the library. Returns false. */
bool problem_from_status(problem *out, const vyre_status *st);

/* Does the same for options that a context refused: options of the command
 * line are usage errors, options of the environment are not. */
bool problem_from_options(problem *out, const vyre_status *st);

/* Fills @p out for a failed allocation of @p what. Returns false. */
bool problem_no_memory(problem *out, const char *what);

/* Prints the error as JSON on stdout or as text on stderr; on stderr too if
 * stdout cannot be written. Returns the exit code. */
int problem_report(const problem *what, bool json);

/* Write the same into a sink. */
void problem_json(const problem *what, sink *out);
void problem_text(const problem *what, sink *out);

#endif
