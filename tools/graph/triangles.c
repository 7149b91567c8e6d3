/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Triangles, by the kernels of examples/graph/triangles.vyre. */
#include "graph/algorithms.h"

enum { COUNT_KEPT, SUM_BLOCKS, PLACE_BLOCKS, PLACE_ROWS, KEEP, COUNT };
enum { WORKGROUP = 64, BLOCK = 1024, SEARCHES = 64 };

void graph_triangles(graph_job *job) {
  graph_device *d = &job->on;
  const graph *g = job->g;
  uint32_t n = g->vertices;
  uint32_t groups = graph_groups(n, WORKGROUP);
  uint32_t blocks = graph_groups(n, BLOCK);
  uint64_t words = (n + 31ull) / 32;
  uint32_t offsets = graph_import(d, g->out.offsets, n + 1ull);
  uint32_t targets = graph_import(d, g->out.targets, g->edges);
  uint32_t kept = graph_words(d, n);
  uint32_t block = graph_words(d, blocks);
  uint32_t start = graph_words(d, n + 1ull);
  uint32_t neighbour = graph_words(d, g->edges / 2);
  uint32_t marks = graph_words(d, words * SEARCHES);
  uint32_t found = graph_words(d, 2);
  uint32_t vertices = graph_value(d, n);
  GRAPH_STEP(d, COUNT_KEPT, groups, offsets, targets, kept, vertices);
  GRAPH_STEP(d, SUM_BLOCKS, blocks, kept, block, vertices);
  GRAPH_STEP(d, PLACE_BLOCKS, 1, block);
  GRAPH_STEP(d, PLACE_ROWS, blocks, kept, block, start, vertices);
  GRAPH_STEP(d, KEEP, groups, offsets, targets, start, neighbour, vertices);
  GRAPH_STEP(d, COUNT, SEARCHES, start, neighbour, marks, found, vertices);
  job->result = found;
  job->result_words = 2;
}
