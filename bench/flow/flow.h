/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the suites flow.graphs and flow.fixpoint: peers and rows. */
#ifndef VYRE_BENCH_FLOW_FLOW_H
#define VYRE_BENCH_FLOW_FLOW_H

#include "cpu/rounds.h"
#include "flow/peer.h"

enum { FLOW_MAX_PEERS = 2 };

/* Peers that could be loaded. */
typedef struct flow_peers {
  const flow_peer *peers[FLOW_MAX_PEERS];
  const char *names[FLOW_MAX_PEERS];
  int count;
} flow_peers;

/* Loads the peers; @p suite is named in messages. */
flow_peers flow_peers_open(const char *suite);

/* Logarithm of the number of vertices: $VYRE_BENCH_SCALE, or 20. */
int flow_scale(void);

/* Load of the machine: a busy one slows OpenMP down. */
double flow_load(void);

/* Prints and keeps a row: @p mine against the fastest of @p count entries. */
void flow_row(const char *suite, const char *name, const cpu_entry *mine,
              const cpu_entry *others, int count, int rounds, double bar);

#endif
