/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The log of what was verified: a line for each piece of work that was done.
 *
 *   name kind first:end inputs wrong,wrong,wrong mpfr seconds date commit printed
 *   compiler [note]
 *
 * kind: all (a whole chunk, every input), ref (compared with the device ref), part
 * (some other range), sample/N (every Nth input). wrong: for each of the three
 * variants. seconds: of one core. printed: a hash of what decides bits in the C that
 * was printed, all variants (verify/key.h); lines with another hash do not count.
 * Lines that begin with ! list
 * inputs that were wrong in the line above. */
#ifndef VYRE_TESTS_VERIFY_LOG_H
#define VYRE_TESTS_VERIFY_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_NAME = 24, LOG_VARIANTS = 3 };

typedef struct log_line {
  char name[LOG_NAME], kind[LOG_NAME];
  uint64_t first, end, inputs;
  uint64_t wrong[LOG_VARIANTS];
  uint64_t exact; /* calls of MPFR */
  double seconds;
  uint64_t printed;
  double worst; /* two arguments: the largest error, in ulp; else 0 */
} log_line;

/* Calls @p each for every line of the log. */
void log_each(const char *path, void (*each)(void *self, const log_line *line),
              void *self);

/* Returns true if this part was verified before with the same emitted C. */
bool log_has(const char *path, const log_line *wanted);

/* Appends the line and what was wrong (lines of their own, or NULL) at once, so
 * that several processes may share a log. */
bool log_append(const char *path, const log_line *line, const char *commit,
                const char *compiler, const char *failures);

#endif
