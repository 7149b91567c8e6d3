/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzz target for graph files: edge lists and Matrix Market files. Graphs that
 * are accepted have sound rows, the same with one thread and with three; errors
 * have a fix and a line. */
#include "graph/graph.h"
#include "io/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rows_must_be_sound(const graph_rows *rows, const graph *g) {
  MUST(rows->offsets[0] == 0 && rows->offsets[g->vertices] == g->edges);
  for (uint32_t v = 0; v < g->vertices; v++) {
    MUST(rows->offsets[v] <= rows->offsets[v + 1]);
    for (uint32_t e = rows->offsets[v]; e < rows->offsets[v + 1]; e++) {
      MUST(rows->targets[e] < g->vertices);
      MUST(e == rows->offsets[v] || rows->targets[e - 1] < rows->targets[e]);
    }
  }
}

static void rows_must_be_equal(const graph_rows *a, const graph_rows *b,
                               const graph *g) {
  size_t bytes = (size_t)g->edges * 4;
  MUST(memcmp(a->offsets, b->offsets, ((size_t)g->vertices + 1) * 4) == 0);
  MUST(memcmp(a->targets, b->targets, bytes) == 0);
  if (a->weights) MUST(memcmp(a->weights, b->weights, bytes) == 0);
}

static bool load(const input *in, uint32_t threads, uint8_t flags, graph *g,
                 problem *wrong) {
  graph_options options = {.is_undirected = flags & 1,
                           .is_one_based = flags & 2,
                           .needs_weights = flags & 4,
                           .needs_in = true,
                           .threads = threads,
                           .max_bytes = (uint64_t)1 << 22};
  edge_list edges;
  *g = (graph){.vertices = 0};
  bool is_fine = edges_read(in, &options, &edges, wrong) &&
                 graph_build(&edges, &options, g, wrong);
  edges_deinit(&edges);
  return is_fine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  input in = {
      .label = "fuzz.mtx", .text = (const char *)data + 1, .length = size - 1};
  graph one, three;
  problem wrong = {0}, other = {0};
  bool is_fine = load(&in, 1, data[0], &one, &wrong);
  MUST(load(&in, 3, data[0], &three, &other) == is_fine);
  if (is_fine) {
    rows_must_be_sound(&one.out, &one);
    rows_must_be_sound(&one.in, &one);
    MUST(one.vertices == three.vertices && one.edges == three.edges);
    rows_must_be_equal(&one.out, &three.out, &one);
    rows_must_be_equal(&one.in, &three.in, &one);
  } else {
    MUST(wrong.kind && wrong.message[0] && wrong.fix[0]);
    MUST(strcmp(wrong.message, other.message) == 0);
    MUST(wrong.line == other.line && wrong.column == other.column);
  }
  graph_deinit(&one);
  graph_deinit(&three);
  return 0;
}
