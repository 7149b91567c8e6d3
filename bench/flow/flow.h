/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the suites flow.graphs and flow.fixpoint. */
#ifndef VYRE_BENCH_FLOW_FLOW_H
#define VYRE_BENCH_FLOW_FLOW_H

#include "flow/peer.h"

enum { FLOW_MAX_PEERS = 2 };

/* Peers that could be loaded. */
typedef struct flow_peers {
  const flow_peer *peers[FLOW_MAX_PEERS];
  const char *names[FLOW_MAX_PEERS];
  int count;
} flow_peers;

flow_peers flow_peers_open(void);

/* Logarithm of the number of vertices: $VYRE_BENCH_SCALE, or 20. */
int flow_scale(void);

#endif
