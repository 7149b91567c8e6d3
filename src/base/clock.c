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

void vyre__condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}
