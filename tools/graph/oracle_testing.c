/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "graph/oracle_testing.h"

#include <stdlib.h>
#include <string.h>

static int by_pair(const void *a, const void *b) {
  const oracle_edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return (x->weight > y->weight) - (x->weight < y->weight);
}

oracle_graph oracle_make(const oracle_edge *edges, uint64_t count,
                         uint32_t vertices, bool is_undirected,
                         bool drops_loops, bool keeps_duplicates) {
  oracle_graph g = {.vertices = vertices};
  g.edges = malloc((count * 2 + 1) * sizeof *g.edges);
  uint64_t all = 0;
  for (uint64_t i = 0; i < count; i++) {
    oracle_edge e = edges[i];
    if (e.from == e.to && drops_loops) continue;
    g.edges[all++] = e;
    if (is_undirected && e.from != e.to) {
      g.edges[all++] = (oracle_edge){e.to, e.from, e.weight};
    }
  }
  qsort(g.edges, all, sizeof *g.edges, by_pair);
  for (uint64_t i = 0; i < all; i++) {
    const oracle_edge *last = g.count ? &g.edges[g.count - 1] : NULL;
    if (!keeps_duplicates && last && last->from == g.edges[i].from &&
        last->to == g.edges[i].to) {
      continue;
    }
    g.edges[g.count++] = g.edges[i];
  }
  return g;
}

void oracle_free(oracle_graph *g) {
  free(g->edges);
  *g = (oracle_graph){0};
}

/* Relaxes all edges until nothing changes. */
static void relax(const oracle_graph *g, uint32_t source, uint32_t *value,
                  bool is_weighted) {
  for (uint32_t v = 0; v < g->vertices; v++) value[v] = UINT32_MAX;
  value[source] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint64_t i = 0; i < g->count; i++) {
      const oracle_edge *e = &g->edges[i];
      if (value[e->from] == UINT32_MAX) continue;
      uint64_t next = (uint64_t)value[e->from] + (is_weighted ? e->weight : 1);
      if (next >= value[e->to]) continue;
      value[e->to] = (uint32_t)next;
      changed = true;
    }
  }
}

void oracle_bfs(const oracle_graph *g, uint32_t source, uint32_t *depth) {
  relax(g, source, depth, false);
}

void oracle_sssp(const oracle_graph *g, uint32_t source, uint32_t *distance) {
  relax(g, source, distance, true);
}

void oracle_components(const oracle_graph *g, uint32_t *label) {
  for (uint32_t v = 0; v < g->vertices; v++) label[v] = v;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint64_t i = 0; i < g->count; i++) {
      uint32_t *a = &label[g->edges[i].from], *b = &label[g->edges[i].to];
      if (*a == *b) continue;
      uint32_t low = *a < *b ? *a : *b;
      *a = *b = low;
      changed = true;
    }
  }
}

/* The sum of the ranks that are lost, in the documented order: 64 sums for each
 * 16384 vertices, then these sums in order. */
static float lost(const oracle_graph *g, const uint32_t *degree,
                  const float *rank) {
  float total = 0;
  for (uint32_t first = 0; first == 0 || first < g->vertices; first += 16384) {
    for (uint32_t lane = 0; lane < 64; lane++) {
      float sum = 0;
      for (uint32_t k = 0; k < 256; k++) {
        uint32_t v = first + k * 64 + lane;
        if (v < g->vertices && degree[v] == 0) sum += rank[v];
      }
      total += sum;
    }
  }
  return total;
}

void oracle_pagerank(const oracle_graph *g, uint32_t iterations, float damping,
                     float *rank) {
  uint32_t n = g->vertices;
  uint32_t *degree = calloc(n + 1, sizeof *degree);
  float *sum = calloc(n + 1, sizeof *sum);
  for (uint64_t i = 0; i < g->count; i++) degree[g->edges[i].from]++;
  for (uint32_t v = 0; v < n; v++) rank[v] = 1.0f / (float)n;
  for (uint32_t k = 0; k < iterations; k++) {
    float base = lost(g, degree, rank) * damping;
    base = ((1.0f - damping) + base) / (float)n;
    memset(sum, 0, n * sizeof *sum);
    /* Edges are sorted by their source, so each sum is in this order, too. */
    for (uint64_t i = 0; i < g->count; i++) {
      const oracle_edge *e = &g->edges[i];
      sum[e->to] += rank[e->from] / (float)degree[e->from];
    }
    for (uint32_t v = 0; v < n; v++) rank[v] = base + damping * sum[v];
  }
  free(degree);
  free(sum);
}

static bool has_edge(const oracle_graph *g, uint32_t from, uint32_t to) {
  oracle_edge key = {from, to, 0};
  uint64_t low = 0, high = g->count;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    if (by_pair(&g->edges[middle], &key) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < g->count && g->edges[low].from == from && g->edges[low].to == to;
}

uint64_t oracle_triangles(const oracle_graph *g) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < g->count; i++) {
    const oracle_edge *e = &g->edges[i];
    if (e->from >= e->to) continue;
    for (uint32_t w = e->to + 1; w < g->vertices; w++) {
      found += has_edge(g, e->from, w) && has_edge(g, e->to, w);
    }
  }
  return found;
}
