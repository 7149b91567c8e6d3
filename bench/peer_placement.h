/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Peer of the placement planner: greedy by size. The largest interval comes
 * first, and each one goes into the smallest gap that fits among those that
 * overlap in time. This is common in inference runtimes. */
#ifndef VYRE_BENCH_PEER_PLACEMENT_H
#define VYRE_BENCH_PEER_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/placement.h"

/* Fills @p offsets. Returns the bytes placed, or 0 without memory. */
uint64_t peer_placement(const vyre_interval *intervals, size_t count,
                        uint64_t *offsets);

#endif
