/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/clock.h"

#include <time.h>

uint64_t vyre__clock_ns(void) {
  struct timespec now;
  /* Cannot fail: every supported system has this clock, and the pointer is
   * valid. */
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
