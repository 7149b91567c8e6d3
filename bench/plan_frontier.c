/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures frontier plans of large layered graphs: each wave depends on four
 * random waves of the layer before. */
#include <stdio.h>
#include <stdlib.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "peer_frontier.h"

typedef struct graph {
  vyre_frontier_wave *waves;
  vyre_wave_dependency *deps;
  vyre_frontier_desc desc;
  vyre_barrier_scratch scratch;
  vyre_arena arena;
  vyre_frontier_plan plan;
  peer_scratch peer;
  peer_plan peer_plan;
} graph;

static void graph_make(graph *g, size_t depth, size_t width) {
  size_t waves = depth * width, deps = (depth - 1) * width * 4, at = 0;
  *g = (graph){.waves = malloc(waves * sizeof *g->waves),
               .deps = malloc(deps * sizeof *g->deps + 1)};
  if (!g->waves || !g->deps) bench_fail("graph", "no memory");
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < waves; i++) {
    uint64_t bytes = bench_random(&state);
    g->waves[i] =
        (vyre_frontier_wave){bytes % 1000 + 1, bytes % 64, bytes % 500};
    for (int k = 0; k < 4 && i >= width; k++) {
      uint64_t before = (i / width - 1) * width + bench_random(&state) % width;
      g->deps[at++] = (vyre_wave_dependency){before, i};
    }
  }
  g->desc =
      (vyre_frontier_desc){g->waves, waves, g->deps, at, 1 << 20, 1 << 24, 0};
}

static void graph_free(graph *g) {
  vyre_barrier_scratch_deinit(&g->scratch);
  vyre_arena_deinit(&g->arena);
  peer_scratch_free(&g->peer);
  peer_plan_free(&g->peer_plan);
  free(g->waves);
  free(g->deps);
}

static bool run_ours(void *self) {
  graph *g = self;
  vyre_arena_reset(&g->arena);
  return vyre_frontier_plan_build(&g->desc, &g->scratch, &g->arena, &g->plan,
                                  NULL) == VYRE_OK;
}

static bool run_peer(void *self) {
  graph *g = self;
  peer_plan_free(&g->peer_plan);
  return peer_frontier(&g->desc, &g->peer, &g->peer_plan);
}

/* Checks that both planners returned the same groups. */
static void check_same(const graph *g) {
  const vyre_barrier_plan *plan = &g->plan.barriers;
  bool same = plan->group_count == g->peer_plan.count;
  for (size_t i = 0; same && i < plan->group_count; i++) {
    const peer_group *group = &g->peer_plan.groups[i];
    uint32_t from = plan->group_offsets[i];
    same = plan->group_offsets[i + 1] - from == group->count;
    for (size_t k = 0; same && k < group->count; k++) {
      same = plan->waves[from + k] == group->waves[k];
    }
  }
  if (!same) bench_fail("frontier", "vyre and the peer differ");
}

/* Shuffles the dependencies, to measure the general path as well. */
static void graph_shuffle(graph *g) {
  uint64_t state = 1;
  for (size_t i = g->desc.dependency_count; i > 1; i--) {
    size_t other = bench_random(&state) % i;
    vyre_wave_dependency swapped = g->deps[i - 1];
    g->deps[i - 1] = g->deps[other];
    g->deps[other] = swapped;
  }
}

/* Sorts the dependencies by their earlier wave. */
static void graph_sort_by_earlier(graph *g) {
  size_t count = g->desc.dependency_count, waves = g->desc.wave_count;
  vyre_wave_dependency *turned = malloc(count * sizeof *turned + 1);
  size_t *starts = calloc(waves + 1, sizeof *starts);
  if (!turned || !starts) bench_fail("graph", "no memory");
  for (size_t i = 0; i < count; i++) starts[g->deps[i].before + 1]++;
  for (size_t i = 0; i < waves; i++) starts[i + 1] += starts[i];
  for (size_t i = 0; i < count; i++) {
    turned[starts[g->deps[i].before]++] = g->deps[i];
  }
  free(starts);
  free(g->deps);
  g->deps = turned;
  g->desc.dependencies = turned;
}

static double our_bytes(const graph *g) {
  const vyre_barrier_scratch *s = &g->scratch;
  size_t entries = s->row_capacity + s->indegree_capacity + s->target_capacity;
  return (double)(entries * sizeof(uint32_t) + vyre_arena_footprint(&g->arena));
}

static double peer_bytes(const graph *g) {
  size_t entries = 3 * g->peer.waves + 1 + g->peer.deps;
  /* Twice the plan: the groups before and after splitting exist at the same
   * time. */
  return (double)(entries * sizeof(size_t) +
                  2 * peer_plan_bytes(&g->peer_plan));
}

void bench_plan_frontier(void) {
  static const struct {
    const char *name;
    size_t depth, width;
    int rounds;
    void (*change)(graph *);
  } shapes[] = {
      {"frontier 1000 layers x 1000", 1000, 1000, 15, NULL},
      {"frontier 100000 layers x 10", 100000, 10, 15, NULL},
      {"frontier 10 layers x 100000", 10, 100000, 15, NULL},
      {"frontier 1000 x 1000, sorted by earlier wave", 1000, 1000, 15,
       graph_sort_by_earlier},
      {"frontier 1000 x 1000, shuffled", 1000, 1000, 5, graph_shuffle},
      {"frontier 10000000 waves (10000 x 1000)", 10000, 1000, 3, NULL}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    graph g;
    graph_make(&g, shapes[i].depth, shapes[i].width);
    if (shapes[i].change) shapes[i].change(&g);
    bench_times ours, peer;
    bench_pair((bench_job){run_ours, &g}, (bench_job){run_peer, &g},
               shapes[i].rounds, 1, &ours, &peer);
    check_same(&g);
    double items = (double)(g.desc.wave_count + g.desc.dependency_count);
    bench_row_times("plan", shapes[i].name, "ns/item", 1 / items, ours,
                    "plain C, a vector per group", peer);
    if (i == 0) {
      bench_row_figure("plan", "frontier 1000 x 1000, peak memory", "MB",
                       our_bytes(&g) / 1e6, "plain C, a vector per group",
                       peer_bytes(&g) / 1e6);
    }
    graph_free(&g);
  }
}
