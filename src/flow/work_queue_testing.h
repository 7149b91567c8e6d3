/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queue kernels for tests, with a plain computation of their windows. */
#ifndef VYRE_FLOW_WORK_QUEUE_TESTING_H
#define VYRE_FLOW_WORK_QUEUE_TESTING_H

#include <stdlib.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/driver.h"

static const char queue_text[] =
    /* a binary tree in heap order, below n */
    "kernel tree queue(u32)\n"
    "buffer visits : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ atomic_add(visits[item % len(visits)], item + 1);\n"
    "  if (2 * item + 1 < n) push(2 * item + 1);\n"
    "  if (2 * item + 2 < n) push(2 * item + 2); }\n"
    /* an irregular tree with items of two fields; depends on the order */
    "kernel twigs queue(id: u64, depth: u32) pushes(5)\n"
    "buffer trail : read_write u32[] @0;\n"
    "uniform depths : u32 @1;\n"
    "{ let h = (u32(id) ^ u32(id >> 32) ^ window) * 0x9e3779b1;\n"
    "  atomic_add(trail[(item_index * 7 + window) % len(trail)], u32(id));\n"
    "  if (depth == 0) return;\n"
    "  for (let k = 0u; k < (h >> 13) % 6; k++) {\n"
    "    if (k == 3 && depth % 2 == 1) continue;\n"
    "    push(id * 5 + u64(k), depth - 1);\n"
    "  } }\n"
    "kernel bfs queue(u32) once(depth)\n"
    "buffer off : read u32[] @0;\n"
    "buffer adj : read u32[] @1;\n"
    "buffer depth : read_write u32[] @2;\n"
    "{ depth[item] = window + 1;\n"
    "  for (let e = off[item]; e < off[item + 1]; e++) push(adj[e]); }\n"
    "pull { for (let e = off[item]; e < off[item + 1]; e++) {\n"
    "    if (in_window(adj[e])) { push(item); break; } } }\n"
    /* smallest label of a component */
    "kernel labels queue(u32) set(n)\n"
    "buffer off : read u32[] @0;\n"
    "buffer adj : read u32[] @1;\n"
    "buffer label : read_write u32[] @2;\n"
    "uniform n : u32 @3;\n"
    "{ let l = atomic_load(label[item]);\n"
    "  for (let e = off[item]; e < off[item + 1]; e++) {\n"
    "    let v = adj[e];\n"
    "    if (atomic_min(label[v], l) > l) push(v); } }\n"
    "kernel sssp queue(u32) set(dist) by(dist[item] / 8)\n"
    "buffer off : read u32[] @0;\n"
    "buffer adj : read u32[] @1;\n"
    "buffer dist : read_write u32[] @2;\n"
    "{ let d = atomic_load(dist[item]);\n"
    "  for (let e = off[item]; e < off[item + 1]; e++) {\n"
    "    let v = adj[e]; let to = d + 1 + (v ^ item) % 19;\n"
    "    if (atomic_min(dist[v], to) > to) push(v); } }\n"
    "kernel heap queue(u32) any pushes(2)\n"
    "buffer visits : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ atomic_add(visits[item % len(visits)], item + 1);\n"
    "  for (let k = 1u; k < 3; k++) {\n"
    "    if (2 * item + k < n) push(2 * item + k); } }\n"
    "kernel greedy queue(u32) pushes(2)\n"
    "buffer x : read_write u32[] @0;\n"
    "{ atomic_add(x[0], 1);\n"
    "  for (let k = 0u; k < 1 + (item == 13 ? 2u : 0u); k++) {\n"
    "    if (item < 100) push(item + 1);\n"
    "  } }\n"
    "kernel hang queue(u32) pushes(1)\n"
    "buffer x : read_write u32[] @0;\n"
    "{ while (atomic_load(x[0]) == 0) { if (item > 5) break; }\n"
    "  push(item + 1); }\n";

enum { TREE, TWIGS, BFS, LABELS, SSSP, HEAP, GREEDY, HANG, QUEUE_KERNELS };

/* Returns the line of the push of kernel greedy. */
static inline uint32_t greedy_line(void) {
  const char *at = strstr(queue_text, "push(item + 1);\n  } }");
  uint32_t line = 1;
  for (const char *c = queue_text; c < at; c++) line += *c == '\n';
  return line;
}

typedef struct queue_bench {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
} queue_bench;

/* Opens a device. Returns false if the backend is not available here. */
static inline bool queue_open(queue_bench *b, const char *device,
                              const char *settings, vyre_allocator allocator) {
  vyre_status st = {0};
  vyre_context_options options = {.allocator = allocator,
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = settings};
  *b = (queue_bench){0};
  CHECK_OK(vyre_context_create(&options, &b->context, &st), st);
  if (vyre_device_open(b->context, device, &b->device, &st) != VYRE_OK) {
    vyre_context_release(b->context);
    return false;
  }
  CHECK_OK(vyre_module_parse(queue_text, strlen(queue_text), "queue.vyre",
                             (vyre_allocator){0}, &b->module, NULL, &st),
           st);
  return true;
}

static inline void queue_close(queue_bench *b) {
  vyre_device_release(b->device);
  vyre_context_release(b->context);
  vyre_module_release(b->module);
}

/* --- windows, computed plainly -------------------------------------------- */

/* Hash of the items of a queue in their order, as documented. */
typedef struct order_hash {
  uint64_t hash;
  uint32_t low, high;
  uint64_t items;
} order_hash;

static inline void order_hash_item(order_hash *h, const uint32_t *words,
                                   uint32_t count) {
  uint32_t x = (uint32_t)h->items * 0x9e3779b1u;
  for (uint32_t i = 0; i < count; i++) {
    x = (x ^ words[i]) * 0x85ebca6bu;
    x ^= x >> 15;
  }
  uint32_t y = x * 0xc2b2ae35u;
  h->low += x;
  h->high += y ^ (y >> 16);
  h->items++;
}

static inline void order_hash_window(order_hash *h) {
  uint64_t x = ((uint64_t)h->high << 32) + h->low;
  x = (h->hash ^ x) * UINT64_C(0x9e3779b97f4a7c15) + h->items;
  *h = (order_hash){.hash = x ^ (x >> 29)};
}

static inline uint32_t queue_random(uint64_t *state, uint32_t below) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)((*state >> 33) % below);
}

/* --- graphs ---------------------------------------------------------------- */

enum { GRAPH_VERTICES = 3000, GRAPH_EDGES = 24000 };

/* An undirected graph: both directions of every edge. */
typedef struct test_graph {
  uint32_t vertices, edges;
  uint32_t off[GRAPH_VERTICES + 1], adj[GRAPH_EDGES];
} test_graph;

static inline void graph_make(test_graph *g, uint32_t vertices,
                              uint32_t degree_sum, uint64_t seed) {
  static uint32_t from[GRAPH_EDGES], to[GRAPH_EDGES];
  uint32_t edges = degree_sum / 2;
  *g = (test_graph){.vertices = vertices};
  for (size_t i = 0; i < edges; i++) {
    uint32_t a = queue_random(&seed, vertices), b;
    b = seed >> 60 & 1 ? queue_random(&seed, vertices) : (a + 1) % vertices;
    if (seed >> 59 & 1) a /= 16; /* hubs */
    from[2 * i] = to[2 * i + 1] = a;
    to[2 * i] = from[2 * i + 1] = b;
  }
  for (uint32_t i = 0; i < 2 * edges; i++) g->off[from[i] + 1]++;
  for (uint32_t v = 0; v < vertices; v++) g->off[v + 1] += g->off[v];
  static uint32_t at[GRAPH_VERTICES];
  memcpy(at, g->off, sizeof at);
  for (uint32_t i = 0; i < 2 * edges; i++) g->adj[at[from[i]]++] = to[i];
  g->edges = 2 * edges;
}

#endif
