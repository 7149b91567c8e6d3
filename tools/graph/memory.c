/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory and threads for loading graphs. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph/graph.h"

enum { MAX_THREADS = 16 };

void *graph_pages(uint64_t bytes) {
  if (bytes == 0) bytes = 1;
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  /* Rows are read at random places, which needs fewer page walks then. */
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

void graph_pages_free(void *memory, uint64_t bytes) {
  if (memory) (void)munmap(memory, bytes ? bytes : 1);
}

static uint64_t machine_bytes(void) {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

bool graph_fits(uint64_t bytes, const graph_options *options, problem *wrong) {
  uint64_t max = options->max_bytes ? options->max_bytes : machine_bytes();
  if (bytes <= max) return true;
  return problem_set(
      wrong, KIND_INPUT,
      "use a smaller graph; numbers of vertices should not have large gaps",
      "the graph needs %llu MiB of memory, and there are %llu MiB",
      (unsigned long long)(bytes >> 20), (unsigned long long)(max >> 20));
}

uint32_t graph_threads(const graph_options *options) {
  long count =
      options->threads ? (long)options->threads : sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : count > MAX_THREADS ? MAX_THREADS : (uint32_t)count;
}

typedef struct part_job {
  void (*work)(void *, uint32_t, uint32_t);
  void *self;
  uint32_t part, parts;
} part_job;

static void *run_part(void *self) {
  const part_job *job = self;
  job->work(job->self, job->part, job->parts);
  return NULL;
}

void graph_parallel(uint32_t parts, void (*work)(void *, uint32_t, uint32_t),
                    void *self) {
  pthread_t threads[MAX_THREADS];
  part_job jobs[MAX_THREADS];
  bool is_there[MAX_THREADS] = {false};
  for (uint32_t i = 0; i < parts; i++) {
    jobs[i] = (part_job){work, self, i, parts};
    is_there[i] =
        i > 0 && pthread_create(&threads[i], NULL, run_part, &jobs[i]) == 0;
  }
  /* The caller does the first part, and those without a thread. */
  for (uint32_t i = 0; i < parts; i++) {
    if (!is_there[i]) run_part(&jobs[i]);
  }
  for (uint32_t i = 0; i < parts; i++) {
    if (is_there[i]) pthread_join(threads[i], NULL);
  }
}

bool edges_reserve(edge_list *edges, uint64_t count, bool has_weights,
                   problem *wrong) {
  edges->capacity = count;
  edges->from = graph_pages(count * 4);
  edges->to = graph_pages(count * 4);
  if (has_weights) edges->weights = graph_pages(count * 4);
  if (edges->from && edges->to && (!has_weights || edges->weights)) return true;
  return problem_no_memory(wrong, "the edges");
}

void edges_deinit(edge_list *edges) {
  graph_pages_free(edges->from, edges->capacity * 4);
  graph_pages_free(edges->to, edges->capacity * 4);
  graph_pages_free(edges->weights, edges->capacity * 4);
  *edges = (edge_list){0};
}

static void rows_deinit(graph_rows *rows, const graph *g) {
  graph_pages_free(rows->offsets, ((uint64_t)g->vertices + 1) * 4);
  graph_pages_free(rows->targets, (uint64_t)g->edges * 4);
  graph_pages_free(rows->weights, (uint64_t)g->edges * 4);
}

void graph_deinit(graph *g) {
  if (!g->is_symmetric) rows_deinit(&g->in, g);
  rows_deinit(&g->out, g);
  *g = (graph){.vertices = 0};
}
