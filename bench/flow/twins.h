/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the twins in C. */
#ifndef VYRE_BENCH_FLOW_TWINS_H
#define VYRE_BENCH_FLOW_TWINS_H

#include <omp.h>

#include "flow/peer.h"

/* Returns memory number @p index of at least @p bytes, which is kept for the
 * next run, so that no run measures page faults. Its contents are undefined.
 * Threads may ask for different numbers at the same time. */
enum { TWIN_MEMORIES = 64 };
void *twin_memory(int index, size_t bytes);

void twin_bfs(const flow_graph *g, uint32_t source, uint32_t *depth);
void twin_components(const flow_graph *g, uint32_t *label);
void twin_pagerank(const flow_graph *g, uint32_t iterations, float *rank);
void twin_pagerank_blocked(const flow_graph *g, uint32_t iterations,
                           float *rank);
void twin_sssp(const flow_graph *g, uint32_t source, uint32_t delta,
               uint32_t *distance);
uint64_t twin_triangles(const flow_graph *g);
void twin_fixpoint_fifo(const flow_program *p, uint32_t *in);
void twin_fixpoint_lowest(const flow_program *p, uint32_t *in);

#endif
