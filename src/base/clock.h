/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_CLOCK_H
#define VYRE_BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds of a clock that never goes back, from an arbitrary start. */
uint64_t vyre__clock_ns(void);

#endif
