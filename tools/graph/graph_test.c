/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Graph algorithms against simple ones on generated graphs, on every device; and
 * the readers and generators of graphs.
 *
 * VYRE_TEST_COUNT is the number of random graphs (default 210). Device vulkan is
 * tested where it exists, on fewer graphs; with VYRE_TEST_ALL on all of them. */
#include "graph/algorithms.h"
#include "graph/oracle_testing.h"
#include "support/check.h"

enum { MAX_VERTICES = 400, MAX_EDGES = 4000, DEFAULT_COUNT = 210 };

/* --- random graphs -------------------------------------------------------------*/

typedef struct sample {
  uint32_t vertices;
  uint64_t count;
  oracle_edge edges[MAX_EDGES];
  bool is_undirected, keeps_duplicates;
} sample;

static sample made;

static void add(uint32_t from, uint32_t to, uint64_t *state) {
  made.edges[made.count++] =
      (oracle_edge){from, to, (uint32_t)random_below(state, 50)};
}

/* Fills `made`: seven shapes, with random sizes. */
static void make_sample(uint64_t seed) {
  uint64_t state = seed * 2654435761u + 1;
  uint32_t shape = (uint32_t)(seed % 7);
  uint32_t n = 1 + (uint32_t)random_below(&state, seed % 3 ? 60 : MAX_VERTICES);
  memset(&made, 0, sizeof made);
  made.is_undirected = seed / 7 % 2;
  made.keeps_duplicates = seed / 14 % 2;
  if (shape == 0) n = (uint32_t)(seed / 7 % 2); /* empty, or one vertex */
  made.vertices = n;
  uint64_t wanted =
      shape == 0 ? 0 : random_below(&state, 4 * (uint64_t)n) + n / 2;
  for (uint64_t i = 0; i < wanted && n > 0 && made.count < MAX_EDGES; i++) {
    uint32_t u = (uint32_t)random_below(&state, n);
    uint32_t v = (uint32_t)random_below(&state, n);
    switch (shape) {
      case 1: /* loops and duplicates */
        add(u, i % 3 ? v : u, &state);
        if (i % 2) add(u, v, &state);
        break;
      case 2: /* several parts */
        add(u, (u / 8 * 8 + v % 8) % n, &state);
        break;
      case 3: /* star */
        add(n / 2, u, &state);
        break;
      case 4: /* path */
        if (i + 1 < n) add((uint32_t)i, (uint32_t)i + 1, &state);
        break;
      case 5: /* dense */
        add(u % 12 % n, v % 12 % n, &state);
        break;
      default:
        add(u, v, &state);
    }
  }
  if (shape == 1 && n > 0) add(0, 0, &state);
}

static void sample_rows(const graph_options *options, graph *out) {
  problem wrong = {0};
  edge_list list = {.vertices = made.vertices};
  *out = (graph){.vertices = 0};
  CHECK(edges_reserve(&list, made.count, options->needs_weights, &wrong));
  for (uint64_t i = 0; i < made.count; i++) {
    list.from[i] = made.edges[i].from;
    list.to[i] = made.edges[i].to;
    if (options->needs_weights) list.weights[i] = made.edges[i].weight;
  }
  list.count = made.count;
  CHECK(graph_build(&list, options, out, &wrong));
}

static long sample_count(void) {
  const char *text = getenv("VYRE_TEST_COUNT");
  return text ? atol(text) : DEFAULT_COUNT;
}

/* --- rows ------------------------------------------------------------------------*/

static void rows_are(const graph_rows *rows, const graph *g,
                     const oracle_graph *want, bool is_transposed) {
  uint64_t at = 0;
  CHECK_U64(g->edges, want->count);
  for (uint32_t v = 0; v < g->vertices; v++) {
    CHECK_U64(rows->offsets[v], at);
    for (uint64_t i = 0; i < want->count; i++) {
      const oracle_edge *e = &want->edges[i];
      if ((is_transposed ? e->to : e->from) != v) continue;
      CHECK_U64(rows->targets[at], is_transposed ? e->from : e->to);
      /* Equal edges that are kept may have their weights in any order. */
      if (rows->weights && !made.keeps_duplicates) {
        CHECK_U64(rows->weights[at], e->weight);
      }
      at++;
    }
  }
  CHECK_U64(rows->offsets[g->vertices], at);
}

TEST(rows_are_sorted_and_complete) {
  for (uint64_t seed = 0; seed < 63; seed++) {
    make_sample(seed);
    graph_options options = {.is_undirected = made.is_undirected,
                             .keeps_duplicates = made.keeps_duplicates,
                             .drops_loops = seed % 5 == 0,
                             .needs_in = true,
                             .needs_weights = seed % 2,
                             .threads = 1 + (uint32_t)(seed % 7)};
    oracle_graph want =
        oracle_make(made.edges, made.count, made.vertices, made.is_undirected,
                    options.drops_loops, made.keeps_duplicates);
    graph g;
    sample_rows(&options, &g);
    rows_are(&g.out, &g, &want, false);
    if (!g.is_symmetric) rows_are(&g.in, &g, &want, true);
    graph_deinit(&g);
    oracle_free(&want);
  }
}

static uint64_t rows_hash(const graph *g) {
  uint64_t hash = g->vertices;
  for (uint64_t v = 0; v <= g->vertices; v++) {
    hash = graph_mix(hash ^ g->out.offsets[v]);
  }
  for (uint64_t e = 0; e < g->edges; e++) {
    hash = graph_mix(hash ^ g->out.targets[e]);
    if (g->out.weights) hash = graph_mix(hash ^ g->out.weights[e]);
  }
  return hash;
}

TEST(threads_do_not_change_a_graph) {
  static const char *const texts[] = {"rmat:15:8",  "uniform:40000:5",
                                      "grid:300x7", "path:70000",
                                      "star:70000", "uniform:1:4"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    uint64_t hash = 0;
    for (uint32_t threads = 1; threads <= 7; threads += 3) {
      graph_options options = {.threads = threads, .needs_weights = i % 2};
      problem wrong = {0};
      graph g;
      CHECK(graph_load(texts[i], &options, &g, &wrong));
      if (threads == 1) hash = rows_hash(&g);
      CHECK_U64(rows_hash(&g), hash);
      for (uint32_t v = 0; v < g.vertices; v++) { /* sorted, without copies */
        for (uint32_t e = g.out.offsets[v]; e + 1 < g.out.offsets[v + 1]; e++) {
          CHECK(g.out.targets[e] < g.out.targets[e + 1]);
        }
      }
      graph_deinit(&g);
    }
  }
}

/* --- texts -------------------------------------------------------------------------*/

typedef struct format {
  const char *head, *line, *tail; /* line: from, to, weight */
  bool is_one_based, has_weights, is_symmetric, is_matrix;
} format;

static const format formats[] = {
    {"", "%u %u\n", "", false, false, false, false},
    {"# nodes\n\n", "%u\t%u\r\n", "# end", false, false, false, false},
    {"% a\n", "%u,%u,%u\n", "", false, true, false, false},
    {"// a\n", "  %u   %u %u.000 more\n", "\n\n", true, true, false, false},
    {"%%MatrixMarket matrix coordinate pattern general\n%c\n", "%u %u\n", "",
     true, false, false, true},
    {"%%matrixmarket MATRIX Coordinate Integer Symmetric\n\n", "%u %u %u\n",
     "% end\n", true, true, true, true},
    {"%%MatrixMarket matrix coordinate real general\n", "%u %u %u.0\n", "",
     true, true, false, true},
};

/* Writes `made` in a format; returns the length. */
static size_t write_text(const format *f, char *out) {
  char *to = out;
  to += sprintf(to, "%s", f->head);
  if (f->is_matrix) {
    to += sprintf(to, "%u %u %llu\n", made.vertices, made.vertices,
                  (unsigned long long)made.count);
  }
  for (uint64_t i = 0; i < made.count; i++) {
    const oracle_edge *e = &made.edges[i];
    uint32_t add_one = f->is_one_based;
    to += sprintf(to, f->line, e->from + add_one, e->to + add_one, e->weight);
  }
  to += sprintf(to, "%s", f->tail);
  return (size_t)(to - out);
}

static void read_format(const format *f, uint32_t threads) {
  static char text[MAX_EDGES * 48];
  problem wrong = {0};
  input in = {.label = "test", .text = text, .length = write_text(f, text)};
  graph_options options = {.is_one_based = f->is_one_based,
                           .needs_weights = f->has_weights,
                           .threads = threads};
  edge_list list;
  graph g = {.vertices = 0};
  if (!edges_read(&in, &options, &list, &wrong)) printf("%s\n", wrong.message);
  CHECK(wrong.kind == NULL);
  CHECK_U64(list.count, made.count);
  if (!f->is_matrix) list.vertices = made.vertices; /* the last may be alone */
  CHECK(graph_build(&list, &options, &g, &wrong));
  oracle_graph want = oracle_make(made.edges, made.count, made.vertices,
                                  f->is_symmetric, false, false);
  made.keeps_duplicates = false;
  rows_are(&g.out, &g, &want, false);
  graph_deinit(&g);
  oracle_free(&want);
}

TEST(all_formats_read_the_same) {
  for (uint64_t seed = 1; seed < 30; seed++) {
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
      make_sample(seed);
      read_format(&formats[f], 1 + (uint32_t)(seed % 3));
    }
  }
}

/* A text of more than 64 KiB, which threads read in parts. */
TEST(long_texts_are_read_in_parts) {
  enum { LINES = 40000 };
  char *text = malloc((size_t)LINES * 16);
  for (uint32_t threads = 1; threads <= 7; threads++) {
    char *to = text;
    for (uint32_t i = 0; i < LINES; i++) {
      to += sprintf(to, "%u %u\n", i % 1000, i / 1000);
      if (threads == 5 && i == 30000) to += sprintf(to, "x");
    }
    problem wrong = {0};
    input in = {.label = "long", .text = text, .length = (size_t)(to - text)};
    graph_options options = {.threads = threads};
    edge_list list;
    bool is_read = edges_read(&in, &options, &list, &wrong);
    CHECK(is_read == (threads != 5));
    if (is_read) {
      CHECK_U64(list.count, LINES);
      for (uint32_t i = 0; i < LINES; i++) {
        CHECK(list.from[i] == i % 1000 && list.to[i] == i / 1000);
      }
    } else {
      CHECK_U64(wrong.line, 30002);
      CHECK_U64(wrong.column, 1);
    }
    edges_deinit(&list);
  }
  free(text);
}

TEST(memory_is_limited) {
  graph_options options = {.max_bytes = 1 << 20};
  problem wrong = {0};
  graph g;
  CHECK(!graph_load("rmat:20:16", &options, &g, &wrong));
  CHECK_HAS(wrong.message, "and there are 1 MiB");
  graph_deinit(&g);
  problem other = {0};
  input in = {.label = "gap", .text = "0 4000000000\n", .length = 13};
  edge_list list;
  CHECK(edges_read(&in, &options, &list, &other));
  CHECK(!graph_build(&list, &options, &g, &other));
  CHECK_HAS(other.message, "MiB of memory");
  CHECK_HAS(other.fix, "gaps");
  graph_deinit(&g);
}

/* --- algorithms ---------------------------------------------------------------------*/

/* Devices with their options. */
static const struct {
  const char *name, *options;
} ways[] = {
    {"ref", ""},
    {"cpu", "cpu.width=1,cpu.threads=1"},
    {"cpu", "cpu.width=8,cpu.threads=2"},
    {"cpu", "cpu.width=16,cpu.threads=7"},
    {"cpu", ""},
    {"vulkan", ""},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

typedef struct rig {
  vyre_context *context;
  vyre_device *device;
} rig;

/* Opens the device of a way. Returns false if it does not exist. */
static bool rig_open(rig *r, int way) {
  vyre_status st = {0};
  vyre_context_options options = {.backend_options = ways[way].options};
  *r = (rig){.context = NULL};
  CHECK_OK(vyre_context_create(&options, &r->context, &st), st);
  if (vyre_device_open(r->context, ways[way].name, &r->device, &st) ==
      VYRE_OK) {
    return true;
  }
  CHECK_TEXT(ways[way].name, "vulkan");
  vyre_context_release(r->context);
  return false;
}

static void rig_close(rig *r) {
  vyre_device_release(r->device);
  vyre_context_release(r->context);
}

static const graph_settings defaults = {
    .iterations = 7, .damping = 0.85f, .delta = 16};

static void run_job(const rig *r, graph_algorithm algorithm, const graph *g,
                    const graph_settings *settings, void *out) {
  problem wrong = {0};
  graph_job job;
  uint64_t ns = 0;
  bool is_fine =
      graph_job_init(&job, algorithm, g, settings, r->device, &wrong) &&
      graph_job_run(&job, &ns) && graph_job_run(&job, &ns) &&
      graph_job_read(&job, out);
  if (!is_fine) printf("    %s\n", wrong.message);
  CHECK(is_fine);
  graph_job_deinit(&job);
}

static void words_are(const uint32_t *got, const uint32_t *want, uint64_t count,
                      const char *what, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) {
    if (got[i] == want[i]) continue;
    printf("    %s of graph %llu: vertex %llu has %u, not %u\n", what,
           (unsigned long long)seed, (unsigned long long)i, got[i], want[i]);
    CHECK(got[i] == want[i]);
  }
}

static uint32_t want_words[MAX_VERTICES + 2], got_words[MAX_VERTICES + 2];

static void check_components(const rig *r, uint64_t seed) {
  graph_options options = {.is_undirected = true};
  graph g;
  sample_rows(&options, &g);
  oracle_graph o =
      oracle_make(made.edges, made.count, made.vertices, true, false, false);
  oracle_components(&o, want_words);
  run_job(r, GRAPH_COMPONENTS, &g, &defaults, got_words);
  words_are(got_words, want_words, made.vertices, "components", seed);
  oracle_free(&o);
  graph_deinit(&g);
}

static void check_bfs(const rig *r, uint64_t seed) {
  if (made.vertices == 0) return; /* no source */
  graph_options options = {.is_undirected = made.is_undirected,
                           .keeps_duplicates = made.keeps_duplicates,
                           .needs_in = true};
  graph_settings settings = defaults;
  graph g;
  settings.source = (uint32_t)(seed * 7 % made.vertices);
  sample_rows(&options, &g);
  oracle_graph o =
      oracle_make(made.edges, made.count, made.vertices, made.is_undirected,
                  false, made.keeps_duplicates);
  oracle_bfs(&o, settings.source, want_words);
  run_job(r, GRAPH_BFS, &g, &settings, got_words);
  words_are(got_words, want_words, made.vertices, "bfs", seed);
  oracle_free(&o);
  graph_deinit(&g);
}

static void check_sssp(const rig *r, uint64_t seed) {
  const bool has_priorities =
      strncmp(vyre_device_name(r->device), "vulkan", 6) != 0;
  if (made.vertices == 0 || !has_priorities) return;
  graph_options options = {.is_undirected = made.is_undirected,
                           .keeps_duplicates = made.keeps_duplicates,
                           .needs_weights = true};
  graph_settings settings = defaults;
  graph g;
  settings.source = (uint32_t)(seed * 5 % made.vertices);
  settings.delta = 1 + (uint32_t)(seed % 40);
  sample_rows(&options, &g);
  oracle_graph o =
      oracle_make(made.edges, made.count, made.vertices, made.is_undirected,
                  false, made.keeps_duplicates);
  oracle_sssp(&o, settings.source, want_words);
  run_job(r, GRAPH_SSSP, &g, &settings, got_words);
  words_are(got_words, want_words, made.vertices, "sssp", seed);
  oracle_free(&o);
  graph_deinit(&g);
}

static void check_pagerank(const rig *r, uint64_t seed) {
  graph_options options = {.is_undirected = made.is_undirected,
                           .keeps_duplicates = made.keeps_duplicates,
                           .needs_in = true};
  graph g;
  sample_rows(&options, &g);
  oracle_graph o =
      oracle_make(made.edges, made.count, made.vertices, made.is_undirected,
                  false, made.keeps_duplicates);
  float *rank = calloc(made.vertices + 1, sizeof *rank);
  if (made.vertices > 0) {
    oracle_pagerank(&o, defaults.iterations, defaults.damping, rank);
  }
  memcpy(want_words, rank, made.vertices * sizeof *rank);
  free(rank);
  run_job(r, GRAPH_PAGERANK, &g, &defaults, got_words);
  words_are(got_words, want_words, made.vertices, "pagerank", seed);
  oracle_free(&o);
  graph_deinit(&g);
}

static void check_triangles(const rig *r, uint64_t seed) {
  graph_options options = {.is_undirected = true, .drops_loops = true};
  graph g;
  sample_rows(&options, &g);
  oracle_graph o =
      oracle_make(made.edges, made.count, made.vertices, true, true, false);
  uint64_t want = oracle_triangles(&o), got = 0;
  run_job(r, GRAPH_TRIANGLES, &g, &defaults, &got);
  if (got != want) printf("    graph %llu\n", (unsigned long long)seed);
  CHECK_U64(got, want);
  oracle_free(&o);
  graph_deinit(&g);
}

/* Runs @p check on random graphs with every way; vulkan takes a tenth of them. */
static void on_all_ways(void (*check)(const rig *, uint64_t)) {
  for (int way = 0; way < WAYS; way++) {
    rig r;
    if (!rig_open(&r, way)) continue;
    bool is_slow = strcmp(ways[way].name, "vulkan") == 0;
    uint64_t step = is_slow && !getenv("VYRE_TEST_ALL") ? 11 : 1;
    for (uint64_t seed = 0; seed < (uint64_t)sample_count(); seed += step) {
      make_sample(seed);
      check(&r, seed);
    }
    rig_close(&r);
  }
}

TEST(bfs_is_right) {
  on_all_ways(check_bfs);
}

TEST(sssp_is_right) {
  on_all_ways(check_sssp);
}

TEST(components_are_right) {
  on_all_ways(check_components);
}

TEST(pagerank_has_equal_bits) {
  on_all_ways(check_pagerank);
}

TEST(triangles_are_right) {
  on_all_ways(check_triangles);
}

/* Labels of a long path: all are 0. */
TEST(long_paths_are_one_component) {
  for (int way = 0; way < WAYS; way++) {
    rig r;
    if (!rig_open(&r, way)) continue;
    bool is_cpu = strcmp(ways[way].name, "cpu") == 0;
    graph_options options = {.threads = 2};
    problem wrong = {0};
    graph g;
    CHECK(graph_load(is_cpu ? "path:1000000" : "path:20000", &options, &g,
                     &wrong));
    uint32_t *label = malloc(g.vertices * sizeof *label);
    run_job(&r, GRAPH_COMPONENTS, &g, &defaults, label);
    for (uint32_t v = 0; v < g.vertices; v++) CHECK(label[v] == 0);
    free(label);
    graph_deinit(&g);
    rig_close(&r);
  }
}

/* Depths of a long path from its end: a window of one vertex for each. */
TEST(long_paths_have_a_window_for_each_vertex) {
  for (int way = 0; way < WAYS; way++) {
    rig r;
    if (!rig_open(&r, way)) continue;
    bool is_cpu = strcmp(ways[way].name, "cpu") == 0;
    graph_options options = {.threads = 2, .needs_in = true};
    graph_settings settings = defaults;
    problem wrong = {0};
    graph g;
    CHECK(graph_load(is_cpu ? "path:1000000" : "path:20000", &options, &g,
                     &wrong));
    uint32_t *depth = malloc(g.vertices * sizeof *depth);
    settings.source = g.vertices - 1;
    run_job(&r, GRAPH_BFS, &g, &settings, depth);
    for (uint32_t v = 0; v < g.vertices; v++) {
      CHECK_U64(depth[v], g.vertices - 1 - v);
    }
    free(depth);
    graph_deinit(&g);
    rig_close(&r);
  }
}

TEST_MAIN(TEST_ENTRY(rows_are_sorted_and_complete),
          TEST_ENTRY(threads_do_not_change_a_graph),
          TEST_ENTRY(all_formats_read_the_same),
          TEST_ENTRY(long_texts_are_read_in_parts),
          TEST_ENTRY(memory_is_limited), TEST_ENTRY(bfs_is_right),
          TEST_ENTRY(sssp_is_right), TEST_ENTRY(components_are_right),
          TEST_ENTRY(pagerank_has_equal_bits), TEST_ENTRY(triangles_are_right),
          TEST_ENTRY(long_paths_are_one_component),
          TEST_ENTRY(long_paths_have_a_window_for_each_vertex))
