/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PageRank, by the kernels of examples/graph/pagerank.vyre. */
#include "graph/algorithms.h"

enum { START, LOST, BASE, PULL };
enum { WORKGROUP = 64, PART = 256 };

void graph_pagerank(graph_job *job) {
  graph_device *d = &job->on;
  const graph *g = job->g;
  uint32_t n = g->vertices;
  uint32_t groups = graph_groups(n, WORKGROUP);
  uint32_t parts = graph_groups(n, WORKGROUP * PART);
  uint32_t out_offsets = graph_import(d, g->out.offsets, n + 1ull);
  uint32_t offsets = out_offsets;
  if (!g->is_symmetric) offsets = graph_import(d, g->in.offsets, n + 1ull);
  uint32_t sources = graph_import(d, g->in.targets, g->edges);
  uint32_t rank = graph_words(d, n);
  uint32_t share[] = {graph_words(d, n), graph_words(d, n)};
  uint32_t part = graph_words(d, (uint64_t)parts * WORKGROUP);
  uint32_t base = graph_words(d, 1);
  uint32_t vertices = graph_value(d, n);
  uint32_t damping = graph_real(d, job->settings.damping);
  uint32_t first = graph_real(d, n ? 1.0f / (float)n : 0.0f);
  GRAPH_STEP(d, START, groups, out_offsets, rank, share[0], vertices, first);
  for (uint32_t i = 0; i < job->settings.iterations; i++) {
    GRAPH_STEP(d, LOST, parts, out_offsets, rank, part, vertices);
    GRAPH_STEP(d, BASE, 1, part, base, vertices, damping);
    GRAPH_STEP(d, PULL, groups, offsets, sources, out_offsets, base,
               share[i % 2], rank, share[(i + 1) % 2], vertices, damping);
  }
  job->result = rank;
  job->result_words = n;
}
