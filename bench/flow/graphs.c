/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite flow.graphs: graph algorithms of `vyre graph` against C with OpenMP, on
 * all processors, in rounds; and the vector width that the device chooses
 * against fixed ones, on one thread by processor time.
 *
 * $VYRE_BENCH_SCALE makes the graphs smaller: the logarithm of their vertices
 * (default 20). The load of the machine is printed, because a busy machine slows
 * OpenMP down; $VYRE_BENCH_CASE selects rows by a part of their name; $VYRE_BENCH_THREADS=1 compares one thread by processor time. */
#define _DEFAULT_SOURCE /* sysconf; NOLINT(bugprone-reserved-identifier) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rounds.h"
#include "flow/flow.h"
#include "graph/algorithms.h"

static const char suite[] = "flow.graphs";

enum { ROUNDS = 15, DELTA = 16, ITERATIONS = 20 };

/* A graph with a name. */
typedef struct place {
  const char *name;
  char text[48];
  graph g;
} place;

/* --- entries ---------------------------------------------------------------------*/

typedef struct ours {
  graph_job job;
  uint32_t *result;
} ours;

static void run_ours(void *self) {
  ours *o = self;
  uint64_t ns;
  if (!graph_job_run(&o->job, &ns)) {
    bench_fail("flow.graphs", o->job.on.wrong->message);
  }
}

typedef struct theirs {
  const flow_peer *peer;
  graph_algorithm algorithm;
  bool is_blocked;
  flow_graph g;
  graph_settings settings;
  uint32_t *result;
} theirs;

static void run_theirs(void *self) {
  theirs *t = self;
  uint64_t found;
  t->peer->threads(cpu_is_alone() ? 1 : (int)sysconf(_SC_NPROCESSORS_ONLN));
  switch (t->algorithm) {
    case GRAPH_BFS:
      t->peer->bfs(&t->g, t->settings.source, t->result);
      break;
    case GRAPH_COMPONENTS:
      t->peer->components(&t->g, t->result);
      break;
    case GRAPH_PAGERANK:
      (t->is_blocked ? t->peer->pagerank_blocked : t->peer->pagerank)(
          &t->g, t->settings.iterations, (float *)t->result);
      break;
    case GRAPH_SSSP:
      t->peer->sssp(&t->g, t->settings.source, t->settings.delta, t->result);
      break;
    default:
      found = t->peer->triangles(&t->g);
      memcpy(t->result, &found, sizeof found);
  }
}

/* --- checks ----------------------------------------------------------------------*/

/* Ranks are compared as numbers: the peer adds what is lost in another order. */
static bool is_close(const uint32_t *a, const uint32_t *b, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    float x, y;
    memcpy(&x, &a[i], sizeof x);
    memcpy(&y, &b[i], sizeof y);
    float difference = x > y ? x - y : y - x;
    if (!(difference <= 1e-3f * (x > y ? x : y))) return false;
  }
  return true;
}

static void compare(const ours *o, const theirs *t, const char *name) {
  uint64_t words = o->job.result_words;
  if (!graph_job_read((graph_job *)&o->job, o->result)) {
    bench_fail(name, "cannot be read");
  }
  bool same = t->algorithm == GRAPH_PAGERANK
                  ? is_close(o->result, t->result, words)
                  : memcmp(o->result, t->result, words * 4) == 0;
  if (!same) bench_fail(name, "vyre and the peer have different results");
}

/* --- rows --------------------------------------------------------------------------*/

/* Returns true if $VYRE_BENCH_CASE is unset or occurs in the name. */
static bool is_wanted(const char *name) {
  const char *wanted = getenv("VYRE_BENCH_CASE");
  return !wanted || strstr(name, wanted);
}

/* Returns the vertex with the most edges: a search from an isolated vertex
 * measures nothing. */
static uint32_t busiest(const graph *g) {
  uint32_t best = 0, most = 0;
  for (uint32_t v = 0; v < g->vertices; v++) {
    const uint32_t edges = g->out.offsets[v + 1] - g->out.offsets[v];
    if (edges > most) {
      most = edges;
      best = v;
    }
  }
  return best;
}

/* Measures one algorithm against all peers; the row has the best of them. */
static void measure(graph_algorithm algorithm, const place *p, double bar,
                    vyre_device *device, const flow_peers *peers) {
  enum { MAX_ENTRIES = 5 };
  static const char *const names[] = {"bfs", "components", "pagerank", "sssp",
                                      "triangles"};
  graph_settings settings = {.iterations = ITERATIONS,
                             .damping = 0.85f,
                             .delta = DELTA,
                             .source = busiest(&p->g)};
  problem wrong = {0};
  char name[64];
  (void)snprintf(name, sizeof name, "%s, %s", names[algorithm], p->name);
  if (!is_wanted(name)) return;
  ours mine = {.result = graph_pages((p->g.vertices + 2ull) * 4)};
  if (!graph_job_init(&mine.job, algorithm, &p->g, &settings, device, &wrong)) {
    bench_fail(names[algorithm], wrong.message);
  }
  cpu_entry entries[MAX_ENTRIES] = {
      {.name = "vyre", .run = run_ours, .self = &mine, .warm = 1, .timed = 1}};
  theirs others[MAX_ENTRIES];
  int count = 1;
  for (int i = 0; i < peers->count; i++) {
    for (int blocked = 0; blocked <= (algorithm == GRAPH_PAGERANK); blocked++) {
      others[count] =
          (theirs){.peer = peers->peers[i],
                   .algorithm = algorithm,
                   .is_blocked = blocked,
                   .g = {p->g.vertices, p->g.edges, p->g.out.offsets,
                         p->g.out.targets, p->g.out.weights},
                   .settings = settings,
                   .result = graph_pages((p->g.vertices + 2ull) * 4)};
      entries[count] = (cpu_entry){.name = peers->names[i],
                                   .run = run_theirs,
                                   .self = &others[count],
                                   .warm = 1,
                                   .timed = 1};
      count++;
    }
  }
  int rounds = cpu_rounds(entries, count, cpu_round_count(ROUNDS));
  for (int i = 1; i < count; i++) compare(&mine, &others[i], name);
  if (count > 1)
    flow_row(suite, name, &entries[0], &entries[1], count - 1, rounds, bar);
  for (int i = 1; i < count; i++) {
    graph_pages_free(others[i].result, (p->g.vertices + 2ull) * 4);
  }
  graph_pages_free(mine.result, (p->g.vertices + 2ull) * 4);
  graph_job_deinit(&mine.job);
}

/* --- widths --------------------------------------------------------------------------*/

/* Measures the automatic width against fixed ones. */
static void measure_widths(graph_algorithm algorithm, const char *name,
                           const place *p) {
  static const char *const options[] = {
      "cpu.threads=1", "cpu.threads=1,cpu.width=1", "cpu.threads=1,cpu.width=8",
      "cpu.threads=1,cpu.width=16"};
  static const char *const names[] = {"automatic", "width 1", "width 8",
                                      "width 16"};
  enum { WIDTHS = sizeof options / sizeof options[0] };
  graph_settings settings = {
      .iterations = ITERATIONS, .damping = 0.85f, .delta = DELTA};
  vyre_context *contexts[WIDTHS];
  vyre_device *devices[WIDTHS];
  ours jobs[WIDTHS];
  cpu_entry entries[WIDTHS];
  problem wrong = {0};
  vyre_status st = {0};
  char row[64];
  (void)snprintf(row, sizeof row, "width: %s, %s", name, p->name);
  if (!is_wanted(row)) return;
  for (int i = 0; i < WIDTHS; i++) {
    vyre_context_options with = {.backend_options = options[i]};
    if (vyre_context_create(&with, &contexts[i], &st) != VYRE_OK ||
        vyre_device_open(contexts[i], "cpu", &devices[i], &st) != VYRE_OK) {
      bench_fail(name, st.message);
    }
    if (!graph_job_init(&jobs[i].job, algorithm, &p->g, &settings, devices[i],
                        &wrong)) {
      bench_fail(name, wrong.message);
    }
    entries[i] = (cpu_entry){.name = names[i],
                             .run = run_ours,
                             .self = &jobs[i],
                             .warm = 1,
                             .timed = 1};
  }
  cpu_use_processor_time(true);
  int rounds = cpu_rounds(entries, WIDTHS, cpu_round_count(ROUNDS));
  cpu_use_processor_time(false);
  flow_row(suite, row, &entries[0], entries, WIDTHS, rounds, 0.9);
  for (int i = 0; i < WIDTHS; i++) {
    graph_job_deinit(&jobs[i].job);
    vyre_device_release(devices[i]);
    vyre_context_release(contexts[i]);
  }
}

/* --- the suite -------------------------------------------------------------------------*/

static void load(place *p, bool is_undirected, bool needs_weights) {
  problem wrong = {0};
  graph_options options = {.is_undirected = is_undirected,
                           .drops_loops = true,
                           .needs_weights = needs_weights};
  if (!graph_load(p->text, &options, &p->g, &wrong)) {
    bench_fail(p->text, wrong.message);
  }
}

void bench_flow_graphs(void) {
  int scale = flow_scale();
  vyre_status st = {0};
  vyre_device *device;
  flow_peers peers = flow_peers_open(suite);
  static place kron = {.name = "kron"}, uniform = {.name = "uniform"},
               small = {.name = "kron, 1/4"};
  (void)snprintf(kron.text, sizeof kron.text, "rmat:%d:16", scale);
  (void)snprintf(uniform.text, sizeof uniform.text, "uniform:%d:16",
                 1 << scale);
  (void)snprintf(small.text, sizeof small.text, "rmat:%d:16", scale - 2);
  vyre_context_options options = {.backend_options =
                                      cpu_is_alone() ? "cpu.threads=1" : NULL};
  vyre_context *context;
  if (vyre_context_create(&options, &context, &st) != VYRE_OK ||
      vyre_device_open(context, "cpu", &device, &st) != VYRE_OK) {
    bench_fail(suite, st.message);
  }
  printf("%s: 2^%d vertices, load %.1f; ratio above 1: vyre is faster\n", suite,
         scale, flow_load());
  load(&kron, true, false);
  load(&uniform, true, false);
  load(&small, true, true);
  measure(GRAPH_BFS, &kron, 1.0, device, &peers);
  measure(GRAPH_BFS, &uniform, 1.0, device, &peers);
  measure(GRAPH_PAGERANK, &kron, 1.05, device, &peers);
  measure(GRAPH_PAGERANK, &uniform, 1.05, device, &peers);
  measure(GRAPH_COMPONENTS, &kron, 0.95, device, &peers);
  measure(GRAPH_COMPONENTS, &uniform, 0.95, device, &peers);
  measure(GRAPH_SSSP, &small, 0.8, device, &peers);
  measure(GRAPH_TRIANGLES, &small, 0.8, device, &peers);
  measure_widths(GRAPH_PAGERANK, "pagerank", &small);
  measure_widths(GRAPH_COMPONENTS, "components", &small);
  measure_widths(GRAPH_TRIANGLES, "triangles", &small);
  graph_deinit(&kron.g);
  graph_deinit(&uniform.g);
  graph_deinit(&small.g);
  vyre_device_release(device);
  vyre_context_release(context);
}
