/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The peer of the placement planner: greedy by size, the largest first, each at
 * the smallest gap that holds it among those that live at the same time. What
 * inference runtimes commonly do. */
#ifndef VYRE_BENCH_PEER_PLACEMENT_H
#define VYRE_BENCH_PEER_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/placement.h"

/* Fills @p offsets; returns the bytes placed, or 0 without memory. */
uint64_t peer_placement(const vyre_interval *intervals, size_t count,
                        uint64_t *offsets);

#endif
