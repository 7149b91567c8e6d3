/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "graph/algorithms.h"

#include "graph/kernel_texts.h"

#define GRAPH_TEXT(name) \
  {#name ".vyre", graph_##name##_text, &graph_##name##_length}

const graph_kernels graph_kernel_texts[GRAPH_ALGORITHMS] = {
    [GRAPH_BFS] = GRAPH_TEXT(bfs),
    [GRAPH_COMPONENTS] = GRAPH_TEXT(components),
    [GRAPH_PAGERANK] = GRAPH_TEXT(pagerank),
    [GRAPH_SSSP] = GRAPH_TEXT(sssp),
    [GRAPH_TRIANGLES] = GRAPH_TEXT(triangles),
};

typedef void record_function(graph_job *job);
static record_function *const record[GRAPH_ALGORITHMS] = {
    [GRAPH_BFS] = graph_bfs,
    [GRAPH_COMPONENTS] = graph_components,
    [GRAPH_PAGERANK] = graph_pagerank,
    [GRAPH_SSSP] = graph_sssp,
    [GRAPH_TRIANGLES] = graph_triangles,
};

bool graph_job_init(graph_job *job, graph_algorithm algorithm, const graph *g,
                    const graph_settings *settings, vyre_device *device,
                    problem *wrong) {
  *job = (graph_job){.g = g, .settings = *settings, .algorithm = algorithm};
  graph_device_init(&job->on, device, &graph_kernel_texts[algorithm], wrong);
  if (job->on.has_failed) return false;
  job->on.budget = settings->budget;
  record[algorithm](job);
  graph_seal(&job->on);
  return !job->on.has_failed;
}

void graph_job_deinit(graph_job *job) {
  if (job->on.device) graph_device_deinit(&job->on);
}

bool graph_job_run(graph_job *job, uint64_t *ns) {
  if (job->algorithm == GRAPH_TRIANGLES &&
      !graph_clear(&job->on, job->result)) {
    return false;
  }
  return graph_run(&job->on, ns);
}

bool graph_job_read(graph_job *job, void *words) {
  return graph_read(&job->on, job->result, words, job->result_words);
}
