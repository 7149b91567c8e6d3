/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures elapsed time. */
#ifndef VYRE_TOOLS_CLI_STOPWATCH_H
#define VYRE_TOOLS_CLI_STOPWATCH_H

#include <stdint.h>
#include <time.h>

static inline uint64_t stopwatch_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
