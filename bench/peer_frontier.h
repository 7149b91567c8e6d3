/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Peer of the frontier planner: the same algorithm in plain C, with 64-bit
 * indices and one growing vector per group, as a first version would be
 * written. It returns the same groups. */
#ifndef VYRE_BENCH_PEER_FRONTIER_H
#define VYRE_BENCH_PEER_FRONTIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/frontier.h"

typedef struct peer_group {
  size_t *waves;
  size_t count, capacity;
} peer_group;

typedef struct peer_plan {
  peer_group *groups;
  size_t count, capacity;
  uint64_t peak_frontier, peak_scratch, peak_output;
  size_t widest;
} peer_plan;

/* Arrays of counts, offsets and targets, reused between calls. */
typedef struct peer_scratch {
  size_t *outgoing, *indegree, *offsets, *targets;
  size_t waves, deps;
} peer_scratch;

bool peer_frontier(const vyre_frontier_desc *desc, peer_scratch *scratch,
                   peer_plan *out);
void peer_plan_free(peer_plan *plan);
void peer_scratch_free(peer_scratch *scratch);
size_t peer_plan_bytes(const peer_plan *plan);

#endif
