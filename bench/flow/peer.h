/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of functions of the peer in C with OpenMP: graph algorithms and
 * fixpoints. bench/cpu/peers.sh compiles the twins into a shared object. */
#ifndef VYRE_BENCH_FLOW_PEER_H
#define VYRE_BENCH_FLOW_PEER_H

#include <stddef.h>
#include <stdint.h>

/* Rows of an undirected graph, and memory of the caller. */
typedef struct flow_graph {
  uint32_t vertices, edges;
  const uint32_t *offsets, *targets, *weights;
} flow_graph;

/* Reaching definitions: facts of 256 bits for each node. */
enum { FLOW_FACT_WORDS = 8 };
typedef struct flow_program {
  uint32_t nodes;
  const uint32_t *offsets, *targets; /* edges to the next nodes */
  const uint32_t *gen, *kill;        /* FLOW_FACT_WORDS for each node */
} flow_program;

typedef struct flow_peer {
  const char *compiler; /* name and version */
  void (*threads)(int count);
  void (*bfs)(const flow_graph *g, uint32_t source, uint32_t *depth);
  void (*components)(const flow_graph *g, uint32_t *label);
  /* Pull; with blocking, edges are visited by blocks of their sources. */
  void (*pagerank)(const flow_graph *g, uint32_t iterations, float *rank);
  void (*pagerank_blocked)(const flow_graph *g, uint32_t iterations,
                           float *rank);
  void (*sssp)(const flow_graph *g, uint32_t source, uint32_t delta,
               uint32_t *distance);
  uint64_t (*triangles)(const flow_graph *g);
  /* Worklists on one thread: first in first out, and lowest node first. */
  void (*fixpoint_fifo)(const flow_program *p, uint32_t *in);
  void (*fixpoint_lowest)(const flow_program *p, uint32_t *in);
} flow_peer;

/* The only exported symbol of a peer. */
#define FLOW_PEER_SYMBOL "flow_peer_table"

#endif
