/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_CLOCK_H
#define VYRE_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

/* Returns nanoseconds of a monotonic clock, counted from an arbitrary start. */
uint64_t vyre__clock_ns(void);

/* Initialises a condition variable whose timeouts are times of that clock, so
 * that changes of the system time do not matter. */
void vyre__condition_init(pthread_cond_t *condition);

#endif
