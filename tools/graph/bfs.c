/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Breadth-first search, by the kernels of examples/graph/bfs.vyre. */
#include "graph/algorithms.h"

enum { START, SEARCH };
enum { WORKGROUP = 64 };

void graph_bfs(graph_job *job) {
  graph_device *d = &job->on;
  const graph *g = job->g;
  const graph_rows *in = g->is_symmetric ? &g->out : &g->in;
  uint32_t offsets = graph_import(d, g->out.offsets, g->vertices + 1ull);
  uint32_t targets = graph_import(d, g->out.targets, g->edges);
  uint32_t in_offsets = offsets, sources = targets;
  if (!g->is_symmetric) {
    in_offsets = graph_import(d, in->offsets, g->vertices + 1ull);
    sources = graph_import(d, in->targets, g->edges);
  }
  uint32_t depth = graph_words(d, g->vertices);
  GRAPH_STEP(d, START, graph_groups(g->vertices, WORKGROUP), depth);
  GRAPH_QUEUE(d, SEARCH, g->vertices, job->settings.source, offsets, targets,
              in_offsets, sources, depth);
  job->result = depth;
  job->result_words = g->vertices;
}
