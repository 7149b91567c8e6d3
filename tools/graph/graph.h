/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Graphs in compressed rows, from files and from generators. */
#ifndef VYRE_TOOLS_GRAPH_GRAPH_H
#define VYRE_TOOLS_GRAPH_GRAPH_H

#include "cli/progress.h"
#include "io/read_file.h"

/* Pages of zeros from the system, in which device buffers can be placed without
 * a copy. */
void *graph_pages(uint64_t bytes);
void graph_pages_free(void *memory, uint64_t bytes);

/* Most vertices and edges: offsets are u32, and the largest u32 means "none". */
#define GRAPH_MAX_VERTICES (UINT32_MAX - 1)
#define GRAPH_MAX_EDGES    (UINT32_MAX - 1)

/* Edges of vertex v: targets[offsets[v]] to targets[offsets[v + 1] - 1], in
 * ascending order of the targets. */
typedef struct graph_rows {
  uint32_t *offsets; /* vertices + 1 entries */
  uint32_t *targets;
  uint32_t *weights; /* one for each edge; NULL: no weights */
} graph_rows;

typedef struct graph {
  char name[80]; /* as given, shortened */
  uint32_t vertices, edges;
  bool is_symmetric; /* every edge has its reverse: `in` equals `out` */
  graph_rows out;    /* edges by their source */
  graph_rows in;     /* edges by their target; zeroed if it was not asked for */
} graph;

/* Options of loading. */
typedef struct graph_options {
  bool is_undirected; /* add the reverse of every edge */
  bool keeps_duplicates;
  bool drops_loops;
  bool is_one_based; /* vertices of an edge list count from 1 */
  bool needs_in;     /* fill `in` of a directed graph */
  bool needs_weights;
  uint32_t scale;     /* factor of weights, which are rounded; 0: none */
  uint32_t threads;   /* 0: one for each processor, at most 16 */
  uint64_t max_bytes; /* of memory; 0: what the machine has */
  progress_bar *bar;  /* NULL: none */
} graph_options;

/* Edges before they become rows. */
typedef struct edge_list {
  uint32_t *from, *to;
  uint32_t *weights; /* NULL: none */
  uint64_t count, capacity;
  uint32_t vertices;
  bool is_symmetric; /* each edge stands for both directions */
} edge_list;

bool edges_reserve(edge_list *edges, uint64_t count, bool has_weights,
                   problem *wrong);
void edges_deinit(edge_list *edges);

/* Returns true for the words of a generator, such as "rmat:16:16". */
bool is_generated_graph(const char *text);

/* Generates the edges that @p text describes. Equal texts give equal graphs on
 * every machine. */
bool edges_generate(const char *text, const graph_options *options,
                    edge_list *out, problem *wrong);

/* Reads the edges of a Matrix Market file or an edge list. A problem has the
 * line of the mistake. */
bool edges_read(const input *in, const graph_options *options, edge_list *out,
                problem *wrong);

/* Makes rows from edges, which are freed on the way. graph_deinit releases @p
 * out, after a failure too. */
bool graph_build(edge_list *edges, const graph_options *options, graph *out,
                 problem *wrong);

/* Reads the file @p text, or standard input for "-", or generates a graph. */
bool graph_load(const char *text, const graph_options *options, graph *out,
                problem *wrong);
void graph_deinit(graph *g);

/* Checks that @p bytes fit into the memory that the options allow. */
bool graph_fits(uint64_t bytes, const graph_options *options, problem *wrong);

/* Number of threads for the options. */
uint32_t graph_threads(const graph_options *options);

/* Calls work(self, part, parts) for each part, one thread for each. */
void graph_parallel(uint32_t parts, void (*work)(void *, uint32_t, uint32_t),
                    void *self);

/* Mixes the bits of a number: the random numbers of generators. */
static inline uint64_t graph_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

#endif
