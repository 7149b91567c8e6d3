/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Simple graph algorithms on plain lists of edges, for tests. They share nothing
 * with the code that they check: no rows, no queues, no labels of roots. */
#ifndef VYRE_TOOLS_GRAPH_ORACLE_TESTING_H
#define VYRE_TOOLS_GRAPH_ORACLE_TESTING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct oracle_edge {
  uint32_t from, to, weight;
} oracle_edge;

/* A directed list of edges; an undirected graph has both directions. */
typedef struct oracle_graph {
  uint32_t vertices;
  uint64_t count;
  oracle_edge *edges; /* sorted by (from, to), each pair once */
} oracle_graph;

/* Copies edges: adds reverses, drops loops, and keeps the smallest weight of equal
 * edges, as asked for. */
oracle_graph oracle_make(const oracle_edge *edges, uint64_t count,
                         uint32_t vertices, bool is_undirected,
                         bool drops_loops, bool keeps_duplicates);
void oracle_free(oracle_graph *g);

void oracle_bfs(const oracle_graph *g, uint32_t source, uint32_t *depth);
void oracle_sssp(const oracle_graph *g, uint32_t source, uint32_t *distance);
void oracle_components(const oracle_graph *g, uint32_t *label);
void oracle_pagerank(const oracle_graph *g, uint32_t iterations, float damping,
                     float *rank);
uint64_t oracle_triangles(const oracle_graph *g);

#endif
