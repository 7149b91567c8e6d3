/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shows what `vyre graph` has found. */
#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "commands/graph/graph.h"
#include "io/element_text.h"
#include "io/npy.h"
#include "plan/plan_json.h"

enum { TOP = 5, MAX_LEVELS_SHOWN = 24 };

/* Figures that describe a result. */
typedef struct summary {
  uint64_t reached, edges; /* vertices with a value, and the edges they have */
  uint32_t max;            /* largest depth or distance */
  uint64_t parts, largest; /* components */
  uint32_t top[TOP];       /* vertices of the highest rank */
  uint32_t top_count;
} summary;

static uint32_t degree(const graph *g, uint32_t v) {
  return g->out.offsets[v + 1] - g->out.offsets[v];
}

static float rank_of(const graph_state *s, uint32_t v) {
  float value;
  memcpy(&value, &s->result[v], sizeof value);
  return value;
}

static void sum_search(const graph_state *s, summary *out) {
  for (uint32_t v = 0; v < s->g.vertices; v++) {
    if (s->result[v] == GRAPH_UNREACHED) continue;
    out->reached++;
    out->edges += degree(&s->g, v);
    if (s->result[v] > out->max) out->max = s->result[v];
  }
}

static void sum_components(const graph_state *s, summary *out) {
  uint64_t bytes = (uint64_t)s->g.vertices * 4;
  uint32_t *sizes = graph_pages(bytes);
  if (!sizes) return;
  for (uint32_t v = 0; v < s->g.vertices; v++) {
    uint32_t size = ++sizes[s->result[v]];
    if (size == 1) out->parts++;
    if (size > out->largest) out->largest = size;
  }
  graph_pages_free(sizes, bytes);
}

/* Inserts @p v into the list of the highest ranks; the lower vertex comes first
 * if two are equal. */
static void note_rank(const graph_state *s, uint32_t v, summary *out) {
  uint32_t at = out->top_count;
  float rank = rank_of(s, v);
  while (at > 0 && rank_of(s, out->top[at - 1]) < rank) at--;
  if (at == TOP) return;
  if (out->top_count < TOP) out->top_count++;
  for (uint32_t i = out->top_count - 1; i > at; i--) {
    out->top[i] = out->top[i - 1];
  }
  out->top[at] = v;
}

static summary summarise(const graph_state *s) {
  summary out = {.reached = 0};
  switch (s->algorithm) {
    case GRAPH_BFS:
    case GRAPH_SSSP:
      sum_search(s, &out);
      break;
    case GRAPH_COMPONENTS:
      sum_components(s, &out);
      break;
    case GRAPH_PAGERANK:
      for (uint32_t v = 0; v < s->g.vertices; v++) note_rank(s, v, &out);
      break;
    default:
      break;
  }
  if (s->algorithm != GRAPH_BFS && s->algorithm != GRAPH_SSSP) {
    out.edges = s->g.edges;
  }
  return out;
}

static uint64_t triangles_of(const graph_state *s) {
  return s->result[0] | (uint64_t)s->result[1] << 32;
}

/* Counts vertices by depth; NULL if memory runs out. */
static uint64_t *count_levels(const graph_state *s, uint32_t max) {
  uint64_t *levels = graph_pages((max + 1ull) * 8);
  if (!levels) return NULL;
  for (uint32_t v = 0; v < s->g.vertices; v++) {
    if (s->result[v] != GRAPH_UNREACHED) levels[s->result[v]]++;
  }
  return levels;
}

static const char *noun(uint64_t count, const char *one, const char *more) {
  return count == 1 ? one : more;
}

/* --- text -----------------------------------------------------------------------*/

/* Prints the vertices of each level with a bar; of many levels the first and the
 * last ones. */
static void tell_levels(const graph_state *s, const summary *sum, sink *out) {
  static const char bar[] = "################################";
  uint64_t *levels = count_levels(s, sum->max), most = 1;
  if (!levels) return;
  for (uint64_t i = 0; i <= sum->max; i++) {
    if (levels[i] > most) most = levels[i];
  }
  sink_text(out, "level   vertices\n");
  for (uint64_t i = 0; i <= sum->max; i++) {
    if (sum->max >= MAX_LEVELS_SHOWN && i == MAX_LEVELS_SHOWN / 2) {
      i = sum->max - MAX_LEVELS_SHOWN / 2 + 1;
      sink_text(out, "  ...\n");
    }
    size_t length = (size_t)(levels[i] * (sizeof bar - 1) / most);
    sink_format(out, "%5llu %10llu%s%.*s\n", (unsigned long long)i,
                (unsigned long long)levels[i], length ? "  " : "", (int)length,
                bar);
  }
  graph_pages_free(levels, (sum->max + 1ull) * 8);
}

static void tell_ranks(const graph_state *s, const summary *sum, sink *out) {
  sink_format(out, "pagerank: %u iterations, damping %g\n",
              s->settings.iterations, (double)s->settings.damping);
  if (sum->top_count > 0) sink_text(out, "  vertex  rank\n");
  for (uint32_t i = 0; i < sum->top_count; i++) {
    sink_format(out, "%8u  ", sum->top[i]);
    element_format(VYRE_ELEMENT_F32,
                   (const unsigned char *)&s->result[sum->top[i]], out);
    sink_text(out, "\n");
  }
}

static void tell_result(const graph_state *s, const summary *sum, sink *out) {
  unsigned long long reached = sum->reached, parts = sum->parts;
  switch (s->algorithm) {
    case GRAPH_BFS:
      sink_format(out, "bfs from %u: %llu %s reached, %u %s\n",
                  s->settings.source, reached,
                  noun(reached, "vertex", "vertices"), sum->max + 1,
                  noun(sum->max + 1, "level", "levels"));
      tell_levels(s, sum, out);
      break;
    case GRAPH_SSSP:
      sink_format(out, "sssp from %u: %llu %s reached, largest distance %u\n",
                  s->settings.source, reached,
                  noun(reached, "vertex", "vertices"), sum->max);
      break;
    case GRAPH_COMPONENTS:
      sink_format(out, "components: %llu, the largest has %llu %s\n", parts,
                  (unsigned long long)sum->largest,
                  noun(sum->largest, "vertex", "vertices"));
      break;
    case GRAPH_PAGERANK:
      tell_ranks(s, sum, out);
      break;
    default:
      sink_format(out, "triangles: %llu\n",
                  (unsigned long long)triangles_of(s));
  }
}

static void tell_time(const graph_state *s, const graph_outcome *o,
                      const summary *sum, sink *out) {
  if (s->has_no_time) return;
  double ns = o->time_ns ? (double)o->time_ns : 1.0;
  sink_format(out, "  %12.3f ms", ns / 1e6);
  uint64_t edges = sum->edges;
  if (s->algorithm == GRAPH_PAGERANK) edges *= s->settings.iterations;
  if (edges > 0) sink_format(out, " %12.1f", (double)edges / ns * 1e3);
}

static void tell_backends(const graph_state *s, const summary *sum, sink *out) {
  sink_format(out, "%-12s  hash", "backend");
  if (!s->has_no_time) sink_format(out, "%29s %12s", "time", "M edges/s");
  sink_text(out, "\n");
  for (size_t i = 0; i < s->outcome_count; i++) {
    const graph_outcome *o = &s->outcomes[i];
    sink_format(out, "%-12s  %016llx", o->name, (unsigned long long)o->hash);
    tell_time(s, o, sum, out);
    if (s->settings.budget) {
      sink_format(out, "  %llu of %llu bytes", (unsigned long long)o->bytes,
                  (unsigned long long)s->settings.budget);
    }
    sink_text(out, "\n");
  }
  if (s->differs) {
    sink_format(out, "the results differ: %s and %s\n", s->outcomes[0].name,
                s->differs);
  } else if (s->outcome_count > 1) {
    sink_text(out, "all results are the same\n");
  }
}

void graph_tell(const graph_state *s, sink *out) {
  const graph *g = &s->g;
  summary sum = summarise(s);
  uint64_t edges = g->edges;
  char shown[128];
  show_into(shown, sizeof shown, s->file, strlen(s->file));
  sink_format(out, "%s: %u %s, %llu %s, %s", shown, g->vertices,
              noun(g->vertices, "vertex", "vertices"),
              (unsigned long long)edges, noun(edges, "edge", "edges"),
              g->is_symmetric ? "undirected" : "directed");
  if (!s->has_no_time) {
    sink_format(out, ", loaded in %.2f s", (double)s->load_ns / 1e9);
  }
  sink_text(out, "\n");
  tell_result(s, &sum, out);
  tell_backends(s, &sum, out);
}

/* --- JSON ---------------------------------------------------------------------------*/

static void put_levels(const graph_state *s, const summary *sum,
                       json_out *json) {
  uint64_t *levels = count_levels(s, sum->max);
  json_open(json, "levels", '[');
  for (uint64_t i = 0; levels && i <= sum->max; i++) {
    json_u64(json, NULL, levels[i]);
  }
  json_close(json, ']');
  graph_pages_free(levels, (sum->max + 1ull) * 8);
}

static void put_ranks(const graph_state *s, const summary *sum,
                      json_out *json) {
  json_u64(json, "iterations", s->settings.iterations);
  json_open(json, "top", '[');
  for (uint32_t i = 0; i < sum->top_count; i++) {
    sink value = {0};
    element_json(VYRE_ELEMENT_F32,
                 (const unsigned char *)&s->result[sum->top[i]], &value);
    json_open(json, NULL, '{');
    json_u64(json, "vertex", sum->top[i]);
    json_raw(json, "rank", value.data, value.length);
    json_close(json, '}');
    sink_deinit(&value);
  }
  json_close(json, ']');
}

static void put_result(const graph_state *s, const summary *sum,
                       json_out *json) {
  switch (s->algorithm) {
    case GRAPH_BFS:
      json_u64(json, "source", s->settings.source);
      json_u64(json, "reached", sum->reached);
      put_levels(s, sum, json);
      break;
    case GRAPH_SSSP:
      json_u64(json, "source", s->settings.source);
      json_u64(json, "reached", sum->reached);
      json_u64(json, "largest_distance", sum->max);
      break;
    case GRAPH_COMPONENTS:
      json_u64(json, "components", sum->parts);
      json_u64(json, "largest", sum->largest);
      break;
    case GRAPH_PAGERANK:
      put_ranks(s, sum, json);
      break;
    default:
      json_u64(json, "triangles", triangles_of(s));
  }
}

void graph_tell_json(const graph_state *s, sink *out) {
  summary sum = summarise(s);
  json_out json = json_begin(out);
  json_text(&json, "algorithm", graph_algorithm_name(s->algorithm));
  json_text(&json, "graph", s->file);
  json_u64(&json, "vertices", s->g.vertices);
  json_u64(&json, "edges", s->g.edges);
  json_bool(&json, "is_undirected", s->g.is_symmetric);
  if (!s->has_no_time) json_u64(&json, "load_ns", s->load_ns);
  put_result(s, &sum, &json);
  json_open(&json, "backends", '[');
  for (size_t i = 0; i < s->outcome_count; i++) {
    const graph_outcome *o = &s->outcomes[i];
    sink hash = {0};
    sink_format(&hash, "%016llx", (unsigned long long)o->hash);
    json_open(&json, NULL, '{');
    json_text(&json, "name", o->name);
    json_string(&json, "hash", hash.data, hash.length);
    json_u64(&json, "memory_bytes", o->bytes);
    if (!s->has_no_time) {
      json_u64(&json, "time_ns", o->time_ns);
      json_u64(&json, "edges", sum.edges);
    }
    json_close(&json, '}');
    sink_deinit(&hash);
  }
  json_close(&json, ']');
  json_bool(&json, "is_same", s->differs == NULL);
  json_end(&json);
}

/* --- file ------------------------------------------------------------------------------*/

static bool is_npy_name(const char *path) {
  size_t length = strlen(path);
  return length >= 4 && strcmp(path + length - 4, ".npy") == 0;
}

void graph_put_values(const graph_state *s, sink *out) {
  bool is_count = s->algorithm == GRAPH_TRIANGLES;
  vyre_element element = is_count                         ? VYRE_ELEMENT_U64
                         : s->algorithm == GRAPH_PAGERANK ? VYRE_ELEMENT_F32
                                                          : VYRE_ELEMENT_U32;
  size_t size = element_bytes(element);
  uint64_t count = s->result_words * 4 / size;
  const unsigned char *bytes = (const unsigned char *)s->result;
  if (is_npy_name(s->output)) {
    npy_put_header(element, count, out);
    sink_bytes(out, (const char *)bytes, (size_t)count * size);
    return;
  }
  for (uint64_t i = 0; i < count; i++) {
    if (!is_count) {
      sink_u64(out, i);
      sink_text(out, " ");
    }
    element_format(element, bytes + i * size, out);
    sink_text(out, "\n");
  }
}
