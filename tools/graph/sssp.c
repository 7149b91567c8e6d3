/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shortest paths, by the kernels of examples/graph/sssp.vyre. */
#include "graph/algorithms.h"

enum { START, SEARCH };
enum { WORKGROUP = 64 };

void graph_sssp(graph_job *job) {
  graph_device *d = &job->on;
  const graph *g = job->g;
  uint32_t offsets = graph_import(d, g->out.offsets, g->vertices + 1ull);
  uint32_t targets = graph_import(d, g->out.targets, g->edges);
  uint32_t weights = graph_import(d, g->out.weights, g->edges);
  uint32_t distance = graph_words(d, g->vertices);
  uint32_t source = graph_value(d, job->settings.source);
  uint32_t delta = graph_value(d, job->settings.delta);
  GRAPH_STEP(d, START, graph_groups(g->vertices, WORKGROUP), distance, source);
  GRAPH_QUEUE(d, SEARCH, g->vertices, job->settings.source, offsets, targets,
              weights, distance, delta);
  job->result = distance;
  job->result_words = g->vertices;
}
