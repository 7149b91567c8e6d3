/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Connected components, by the kernels of examples/graph/components.vyre. */
#include "graph/algorithms.h"

enum { START, LINK, SET, FLATTEN, SAMPLE, LINK_REST };
enum { WORKGROUP = 64, TURNS = 2, STEPS_BITS = 12 };

/* Slots that several steps use. */
typedef struct slots {
  uint32_t label, more, vertices, zero, one;
} slots;

/* Labels all vertices with their roots. An iteration shortens each path by a
 * factor of 2^STEPS_BITS, so three are enough. */
static void flatten(graph_device *d, const slots *s, uint32_t groups) {
  enum { ITERATIONS = 32 / STEPS_BITS + 1 };
  GRAPH_STEP(d, SET, 1, s->more, s->one);
  graph_begin_while(d, s->more, ITERATIONS);
  GRAPH_STEP(d, SET, 1, s->more, s->zero);
  GRAPH_STEP(d, FLATTEN, groups, s->label, s->more, s->vertices);
  graph_end_while(d);
}

void graph_components(graph_job *job) {
  graph_device *d = &job->on;
  const graph *g = job->g;
  uint32_t groups = graph_groups(g->vertices, WORKGROUP);
  uint32_t offsets = graph_import(d, g->out.offsets, g->vertices + 1ull);
  uint32_t targets = graph_import(d, g->out.targets, g->edges);
  slots s = {.label = graph_words(d, g->vertices),
             .more = graph_words(d, 1),
             .vertices = graph_value(d, g->vertices),
             .zero = graph_value(d, 0),
             .one = graph_value(d, 1)};
  uint32_t largest = graph_words(d, 1);
  GRAPH_STEP(d, START, groups, s.label, s.vertices);
  for (uint32_t i = 0; i < TURNS; i++) {
    uint32_t turn = graph_value(d, i);
    GRAPH_STEP(d, LINK, groups, offsets, targets, s.label, s.vertices, turn);
    flatten(d, &s, groups);
  }
  uint32_t first = graph_value(d, TURNS);
  GRAPH_STEP(d, SAMPLE, 1, s.label, largest, s.vertices);
  GRAPH_STEP(d, LINK_REST, groups, offsets, targets, s.label, largest,
             s.vertices, first);
  flatten(d, &s, groups);
  job->result = s.label;
  job->result_words = g->vertices;
}
