/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generated graphs. Each edge is a function of its number, so that threads can
 * make them in any order. */
#include <string.h>

#include "cli/text.h"
#include "graph/graph.h"

enum { MAX_WEIGHT = 255, MAX_SCALE = 31 };

typedef struct generated {
  const char *name, *form;
  uint64_t first, second; /* numbers after the name */
  void (*edge)(const struct generated *g, uint64_t index, uint32_t *from,
               uint32_t *to);
  uint64_t vertices, edges;
  edge_list *out;
} generated;

/* Places vertex @p v of 2^scale elsewhere, so that the number of a vertex does
 * not tell its degree: a one-to-one mapping. */
static uint32_t scatter(uint32_t v, uint32_t scale) {
  uint32_t mask = (uint32_t)((1ull << scale) - 1);
  uint32_t shift = (scale + 1) / 2;
  for (int round = 0; round < 3; round++) {
    v = (v * 0x9e3779b1u + 0x7f4a7c15u) & mask;
    if (shift < 32) v ^= v >> shift;
  }
  return v;
}

/* Recursive matrix with the probabilities of Graph 500: 0.57, 0.19, 0.19. */
static void rmat_edge(const generated *g, uint64_t index, uint32_t *from,
                      uint32_t *to) {
  uint32_t u = 0, v = 0, scale = (uint32_t)g->first;
  uint64_t bits = 0;
  for (uint32_t i = 0; i < scale; i++) {
    if (i % 4 == 0) bits = graph_mix(index * 8 + i / 4);
    uint32_t dice = (uint32_t)(bits & 0xffff);
    bits >>= 16;
    uint32_t lower = dice >= 49807;                         /* 0.76 */
    uint32_t right = lower ? dice >= 62259 : dice >= 37355; /* 0.95, 0.57 */
    u = u * 2 + lower;
    v = v * 2 + right;
  }
  *from = scatter(u, scale);
  *to = scatter(v, scale);
}

static void uniform_edge(const generated *g, uint64_t index, uint32_t *from,
                         uint32_t *to) {
  uint64_t a = graph_mix(index * 2), b = graph_mix(index * 2 + 1);
  *from = (uint32_t)((a >> 32) * g->first >> 32);
  *to = (uint32_t)((b >> 32) * g->first >> 32);
}

/* Edges to the right come first, then edges downwards. */
static void grid_edge(const generated *g, uint64_t index, uint32_t *from,
                      uint32_t *to) {
  uint64_t width = g->first, height = g->second, across = (width - 1) * height;
  if (index < across) {
    *from = (uint32_t)(index / (width - 1) * width + index % (width - 1));
    *to = *from + 1;
  } else {
    *from = (uint32_t)(index - across);
    *to = *from + (uint32_t)width;
  }
}

static void path_edge(const generated *g, uint64_t index, uint32_t *from,
                      uint32_t *to) {
  (void)g;
  *from = (uint32_t)index;
  *to = (uint32_t)index + 1;
}

static void star_edge(const generated *g, uint64_t index, uint32_t *from,
                      uint32_t *to) {
  (void)g;
  *from = 0;
  *to = (uint32_t)index + 1;
}

static const generated kinds[] = {
    {.name = "rmat:", .form = "rmat:SCALE:FACTOR", .edge = rmat_edge},
    {.name = "uniform:", .form = "uniform:N:FACTOR", .edge = uniform_edge},
    {.name = "grid:", .form = "grid:WxH", .edge = grid_edge},
    {.name = "path:", .form = "path:N", .edge = path_edge},
    {.name = "star:", .form = "star:N", .edge = star_edge},
};
enum { RMAT, UNIFORM, GRID, KINDS = sizeof kinds / sizeof kinds[0] };

static int kind_of(const char *text) {
  for (int i = 0; i < KINDS; i++) {
    if (strncmp(text, kinds[i].name, strlen(kinds[i].name)) == 0) return i;
  }
  return KINDS;
}

bool is_generated_graph(const char *text) {
  return kind_of(text) < KINDS;
}

static bool bad_form(const generated *g, const char *text, problem *wrong) {
  char shown[80];
  show_into(shown, sizeof shown, text, strlen(text));
  problem_set(wrong, KIND_USAGE, "", "'%s' does not have the form %s", shown,
              g->form);
  problem_fix(wrong, "write, for example, %s",
              g->edge == rmat_edge      ? "rmat:16:16, with SCALE at most 31"
              : g->edge == uniform_edge ? "uniform:65536:16"
              : g->edge == grid_edge    ? "grid:256x256"
              : g->edge == path_edge    ? "path:1000"
                                        : "star:1000");
  return false;
}

static bool too_many(const char *text, const char *what, problem *wrong) {
  char shown[80];
  show_into(shown, sizeof shown, text, strlen(text));
  return problem_set(wrong, KIND_USAGE, "write smaller numbers",
                     "'%s' has more than %u %s", shown,
                     (unsigned)GRAPH_MAX_VERTICES, what);
}

/* Reads the numbers of the text. */
static bool read_form(int kind, const char *text, generated *g,
                      problem *wrong) {
  const char *at = text + strlen(g->name);
  bool has_two = kind <= GRID;
  size_t length = strcspn(at, kind == GRID ? "x" : ":");
  bool is_good = parse_u64(at, length, &g->first);
  if (has_two) {
    is_good = is_good && at[length] &&
              parse_u64(at + length + 1, strlen(at + length + 1), &g->second);
  } else {
    is_good = is_good && !at[length];
  }
  if (!is_good || (kind == RMAT && g->first > MAX_SCALE)) {
    return bad_form(g, text, wrong);
  }
  if (g->first > GRAPH_MAX_VERTICES || g->second > GRAPH_MAX_VERTICES) {
    return too_many(text, "vertices or edges", wrong);
  }
  return true;
}

/* Counts vertices and edges. Both numbers of the form are below 2^32. */
static bool count(int kind, const char *text, generated *g, problem *wrong) {
  uint64_t a = g->first, b = g->second;
  g->vertices = kind == RMAT ? 1ull << a : kind == GRID ? a * b : a;
  if (g->vertices > GRAPH_MAX_VERTICES) {
    return too_many(text, "vertices", wrong);
  }
  if (kind <= UNIFORM) {
    if (g->vertices > 0 && b > GRAPH_MAX_EDGES / 2 / g->vertices) {
      return too_many(text, "edges", wrong);
    }
    g->edges = g->vertices * b;
  } else if (kind == GRID) {
    g->edges = g->vertices ? (a - 1) * b + a * (b - 1) : 0;
  } else {
    g->edges = a > 0 ? a - 1 : 0;
  }
  return g->edges <= GRAPH_MAX_EDGES / 2 || too_many(text, "edges", wrong);
}

/* Both directions of an edge have the same weight. */
static uint32_t weight_of(uint32_t from, uint32_t to) {
  uint64_t low = from < to ? from : to, high = from < to ? to : from;
  return (uint32_t)(graph_mix(high << 32 | low) % MAX_WEIGHT) + 1;
}

static void generate_part(void *self, uint32_t part, uint32_t parts) {
  const generated *g = self;
  uint64_t end = g->edges * (part + 1) / parts;
  for (uint64_t i = g->edges * part / parts; i < end; i++) {
    g->edge(g, i, &g->out->from[i], &g->out->to[i]);
    if (g->out->weights) {
      g->out->weights[i] = weight_of(g->out->from[i], g->out->to[i]);
    }
  }
}

bool edges_generate(const char *text, const graph_options *options,
                    edge_list *out, problem *wrong) {
  int kind = kind_of(text);
  *out = (edge_list){.is_symmetric = true};
  generated g = kinds[kind];
  g.out = out;
  if (!read_form(kind, text, &g, wrong) || !count(kind, text, &g, wrong) ||
      !graph_fits(g.edges * 24 + g.vertices * 8, options, wrong) ||
      !edges_reserve(out, g.edges, options->needs_weights, wrong)) {
    return false;
  }
  out->vertices = (uint32_t)g.vertices;
  out->count = g.edges;
  graph_parallel(graph_threads(options), generate_part, &g);
  return true;
}
