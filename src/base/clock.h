/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_CLOCK_H
#define VYRE_BASE_CLOCK_H

#include <stdint.h>

/* Returns nanoseconds of a monotonic clock, counted from an arbitrary start. */
uint64_t vyre__clock_ns(void);

#endif
