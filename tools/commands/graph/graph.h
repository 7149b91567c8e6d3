/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre graph`: flags, results and their printing. */
#ifndef VYRE_TOOLS_COMMANDS_GRAPH_GRAPH_H
#define VYRE_TOOLS_COMMANDS_GRAPH_GRAPH_H

#include "vyre/context.h"

#include "cli/args.h"
#include "graph/algorithms.h"

enum { GRAPH_MAX_BACKENDS = 16, GRAPH_MAX_RUNS = 1000 };

/* Result of one backend. */
typedef struct graph_outcome {
  char name[VYRE_DEVICE_NAME];
  uint64_t hash;
  uint64_t time_ns; /* median */
  uint64_t bytes;   /* of its memory */
} graph_outcome;

typedef struct graph_state {
  graph_algorithm algorithm;
  const char *file, *backends, *output, *options, *damping;
  graph_settings settings;
  graph_options loading;
  uint64_t source, iterations, delta, runs, scale;
  bool json, has_no_time;
  graph g;
  uint64_t load_ns;
  uint32_t *result; /* of the first backend */
  uint64_t result_words;
  graph_outcome outcomes[GRAPH_MAX_BACKENDS];
  size_t outcome_count;
  const char *differs; /* first backend with another result; NULL: none */
  vyre_context *context;
} graph_state;

/* Name of the algorithm, as in `vyre graph NAME`. */
const char *graph_algorithm_name(graph_algorithm algorithm);

/* Hash of a result, to compare devices by eye. */
uint64_t graph_hash(const uint32_t *words, uint64_t count);

/* Print what has been found, as text and as JSON. */
void graph_tell(const graph_state *s, sink *out);
void graph_tell_json(const graph_state *s, sink *out);

/* Writes the result of each vertex: lines "VERTEX VALUE", or a file of NumPy if
 * the name ends in .npy. */
void graph_put_values(const graph_state *s, sink *out);

#endif
