/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Graph algorithms on a device. All of their work runs in the kernels of
 * examples/graph; these functions bind buffers and record the steps. */
#ifndef VYRE_TOOLS_GRAPH_ALGORITHMS_H
#define VYRE_TOOLS_GRAPH_ALGORITHMS_H

#include "graph/on_device.h"

typedef enum graph_algorithm {
  GRAPH_BFS,
  GRAPH_COMPONENTS,
  GRAPH_PAGERANK,
  GRAPH_SSSP,
  GRAPH_TRIANGLES,
  GRAPH_ALGORITHMS
} graph_algorithm;

typedef struct graph_settings {
  uint32_t source;     /* of bfs and sssp */
  uint32_t iterations; /* of pagerank */
  float damping;       /* of pagerank */
  uint32_t delta;      /* of sssp: width of a bucket */
  uint64_t budget;     /* of bytes on the device; 0: none */
} graph_settings;

/* A prepared algorithm: run it any number of times, then read its result. */
typedef struct graph_job {
  graph_device on;
  const graph *g;
  graph_settings settings;
  graph_algorithm algorithm;
  uint32_t result; /* slot of the result */
  uint64_t
      result_words; /* one for each vertex; 2 for the number of triangles */
} graph_job;

/* Kernels of an algorithm, as text. */
extern const graph_kernels graph_kernel_texts[GRAPH_ALGORITHMS];

/* Prepares @p algorithm. The graph must live as long as the job. Returns false
 * with a problem; graph_job_deinit releases @p job then, too. */
bool graph_job_init(graph_job *job, graph_algorithm algorithm, const graph *g,
                    const graph_settings *settings, vyre_device *device,
                    problem *wrong);
void graph_job_deinit(graph_job *job);

/* Runs the job, and stores its time in *ns. */
bool graph_job_run(graph_job *job, uint64_t *ns);

/* Copies the result: u32 depth, label or distance, f32 rank, or the u64 number of
 * triangles. */
bool graph_job_read(graph_job *job, void *words);

/* Value of vertices that a search does not reach. */
#define GRAPH_UNREACHED UINT32_MAX

/* Steps of the algorithms. */
void graph_bfs(graph_job *job);
void graph_components(graph_job *job);
void graph_pagerank(graph_job *job);
void graph_sssp(graph_job *job);
void graph_triangles(graph_job *job);

#endif
