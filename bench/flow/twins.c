/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Components, PageRank, shortest paths, triangles and fixpoints in C. */
#include "flow/twins.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void *twin_memory(int index, size_t bytes) {
  static struct {
    void *data;
    size_t size;
  } kept[TWIN_MEMORIES];
  if (kept[index].size < bytes) {
    free(kept[index].data);
    kept[index].data = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    if (!kept[index].data) abort();
    memset(kept[index].data, 0, bytes);
    kept[index].size = bytes;
  }
  return kept[index].data;
}

/* --- components: Afforest -------------------------------------------------------*/

static inline void link_vertices(uint32_t u, uint32_t v, uint32_t *label) {
  uint32_t a = __atomic_load_n(&label[u], __ATOMIC_RELAXED);
  uint32_t b = __atomic_load_n(&label[v], __ATOMIC_RELAXED);
  while (a != b) {
    uint32_t high = a > b ? a : b, low = a > b ? b : a;
    uint32_t up = __atomic_load_n(&label[high], __ATOMIC_RELAXED);
    if (up == low) return;
    if (up == high &&
        __atomic_compare_exchange_n(&label[high], &up, low, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return;
    }
    a = __atomic_load_n(&label[__atomic_load_n(&label[high], __ATOMIC_RELAXED)],
                        __ATOMIC_RELAXED);
    b = __atomic_load_n(&label[low], __ATOMIC_RELAXED);
  }
}

static void compress(uint32_t n, uint32_t *label) {
#pragma omp parallel for schedule(dynamic, 16384)
  for (uint32_t v = 0; v < n; v++) {
    uint32_t up = label[v], next = label[up];
    while (up != next) {
      up = next;
      next = label[up];
    }
    label[v] = up;
  }
}

static uint32_t most_frequent(uint32_t n, const uint32_t *label) {
  enum { SAMPLES = 1024 };
  uint32_t found[SAMPLES], best = 0, most = 0;
  uint64_t state = 27491095;
  for (int i = 0; i < SAMPLES; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    found[i] = label[(state >> 33) % n];
  }
  for (int i = 0; i < SAMPLES; i++) {
    uint32_t count = 0;
    for (int k = 0; k < SAMPLES; k++) count += found[k] == found[i];
    if (count > most) {
      most = count;
      best = found[i];
    }
  }
  return best;
}

void twin_components(const flow_graph *g, uint32_t *label) {
  uint32_t n = g->vertices;
#pragma omp parallel for
  for (uint32_t v = 0; v < n; v++) label[v] = v;
  for (uint32_t turn = 0; turn < 2; turn++) {
#pragma omp parallel for schedule(dynamic, 16384)
    for (uint32_t v = 0; v < n; v++) {
      uint32_t e = g->offsets[v] + turn;
      if (e < g->offsets[v + 1]) link_vertices(v, g->targets[e], label);
    }
    compress(n, label);
  }
  uint32_t largest = n ? most_frequent(n, label) : 0;
#pragma omp parallel for schedule(dynamic, 16384)
  for (uint32_t v = 0; v < n; v++) {
    if (label[v] == largest) continue;
    for (uint32_t e = g->offsets[v] + 2; e < g->offsets[v + 1]; e++) {
      link_vertices(v, g->targets[e], label);
    }
  }
  compress(n, label);
}

/* --- PageRank -----------------------------------------------------------------------*/

static float damped = 0.85f;

/* The share of the vertices without edges. */
static float base_of(const flow_graph *g, const float *rank) {
  double lost = 0;
  uint32_t n = g->vertices;
#pragma omp parallel for reduction(+ : lost)
  for (uint32_t v = 0; v < n; v++) {
    if (g->offsets[v + 1] == g->offsets[v]) lost += rank[v];
  }
  return (1.0f - damped + damped * (float)lost) / (float)n;
}

static void first_ranks(const flow_graph *g, float *rank, float *share) {
  float first = 1.0f / (float)g->vertices;
#pragma omp parallel for
  for (uint32_t v = 0; v < g->vertices; v++) {
    uint32_t degree = g->offsets[v + 1] - g->offsets[v];
    rank[v] = first;
    share[v] = degree ? first / (float)degree : 0;
  }
}

void twin_pagerank(const flow_graph *g, uint32_t iterations, float *rank) {
  float *share = twin_memory(0, g->vertices * 4ul);
  float *next = twin_memory(1, g->vertices * 4ul);
  first_ranks(g, rank, share);
  for (uint32_t k = 0; k < iterations; k++) {
    float base = base_of(g, rank);
#pragma omp parallel for schedule(dynamic, 1024)
    for (uint32_t v = 0; v < g->vertices; v++) {
      float sum = 0;
      uint32_t first = g->offsets[v], end = g->offsets[v + 1];
      for (uint32_t e = first; e < end; e++) sum += share[g->targets[e]];
      float value = base + damped * sum;
      rank[v] = value;
      next[v] = end > first ? value / (float)(end - first) : 0;
    }
    float *t = share;
    share = next;
    next = t;
  }
}

/* Edges of a row that come from one block of sources are next to each other,
 * because rows are sorted. cut[b * n + v] is the first edge of row v in block
 * b; it is made once for a graph. */
enum { BLOCK_BITS = 17 }; /* sources of a block: 512 KiB of shares */

static const uint32_t *cuts_of(const flow_graph *g, uint32_t blocks) {
  static const uint32_t *last;
  uint32_t n = g->vertices;
  uint32_t *cut = twin_memory(2, (blocks + 1ul) * n * 4);
  if (last == g->targets) return cut;
#pragma omp parallel for schedule(dynamic, 1024)
  for (uint32_t v = 0; v < n; v++) {
    uint32_t e = g->offsets[v];
    for (uint32_t b = 0; b <= blocks; b++) {
      while (e < g->offsets[v + 1] && g->targets[e] >> BLOCK_BITS < b) e++;
      cut[(size_t)b * n + v] = e;
    }
  }
  last = g->targets;
  return cut;
}

void twin_pagerank_blocked(const flow_graph *g, uint32_t iterations,
                           float *rank) {
  uint32_t n = g->vertices, blocks = ((n - 1) >> BLOCK_BITS) + 1;
  const uint32_t *cut = cuts_of(g, blocks);
  float *share = twin_memory(0, n * 4ul);
  float *sum = twin_memory(1, n * 4ul);
  first_ranks(g, rank, share);
  for (uint32_t k = 0; k < iterations; k++) {
    float base = base_of(g, rank);
    for (uint32_t b = 0; b < blocks; b++) {
      const uint32_t *from = cut + (size_t)b * n, *to = from + n;
#pragma omp parallel for schedule(dynamic, 2048)
      for (uint32_t v = 0; v < n; v++) {
        float part = b ? sum[v] : 0;
        for (uint32_t e = from[v]; e < to[v]; e++) part += share[g->targets[e]];
        sum[v] = part;
      }
    }
#pragma omp parallel for
    for (uint32_t v = 0; v < n; v++) {
      uint32_t degree = g->offsets[v + 1] - g->offsets[v];
      rank[v] = base + damped * sum[v];
      share[v] = degree ? rank[v] / (float)degree : 0;
    }
  }
}

/* --- shortest paths: delta stepping ---------------------------------------------------*/

enum { MAX_BUCKETS = 4096, SSSP_BLOCK = 64, SMALL_BUCKET = 1000 };

typedef struct bin {
  uint32_t *items;
  size_t count, capacity;
} bin;

static void bin_add(bin *b, uint32_t v) {
  if (b->count == b->capacity) {
    b->capacity = b->capacity ? b->capacity * 2 : 64;
    b->items = realloc(b->items, b->capacity * sizeof *b->items);
    if (!b->items) abort();
  }
  b->items[b->count++] = v;
}

static void relax_vertex(const flow_graph *g, uint32_t u, uint32_t delta,
                         uint32_t *distance, bin *bins) {
  uint32_t du = __atomic_load_n(&distance[u], __ATOMIC_RELAXED);
  for (uint32_t e = g->offsets[u]; e < g->offsets[u + 1]; e++) {
    uint32_t v = g->targets[e], next = du + g->weights[e];
    uint32_t old = __atomic_load_n(&distance[v], __ATOMIC_RELAXED);
    while (next < old) {
      if (__atomic_compare_exchange_n(&distance[v], &old, next, true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        uint32_t to = next / delta;
        bin_add(&bins[to < MAX_BUCKETS ? to : MAX_BUCKETS - 1], v);
        break;
      }
    }
  }
}

void twin_sssp(const flow_graph *g, uint32_t source, uint32_t delta,
               uint32_t *distance) {
  uint32_t *front = twin_memory(0, (g->edges + 64ul) * 4);
  uint64_t count = 1, claim = 0, next_bucket = MAX_BUCKETS, bucket = 0;
  uint64_t filled = 0;
#pragma omp parallel for
  for (uint32_t v = 0; v < g->vertices; v++) distance[v] = UINT32_MAX;
  distance[source] = 0;
  front[0] = source;
#pragma omp parallel
  {
    bin *bins = calloc(MAX_BUCKETS, sizeof *bins);
    while (bucket < MAX_BUCKETS) {
      for (;;) {
        uint64_t at = __atomic_fetch_add(&claim, SSSP_BLOCK, __ATOMIC_RELAXED);
        if (at >= count) break;
        uint64_t end = at + SSSP_BLOCK < count ? at + SSSP_BLOCK : count;
        for (; at < end; at++) {
          if (distance[front[at]] / delta >= bucket) {
            relax_vertex(g, front[at], delta, distance, bins);
          }
        }
      }
      /* A small rest of the bucket is done without a barrier. */
      while (bins[bucket].count > 0 && bins[bucket].count < SMALL_BUCKET) {
        bin rest = bins[bucket];
        bins[bucket] = (bin){0};
        for (size_t i = 0; i < rest.count; i++) {
          relax_vertex(g, rest.items[i], delta, distance, bins);
        }
        free(rest.items);
      }
      for (uint64_t b = bucket; b < MAX_BUCKETS; b++) {
        if (bins[b].count == 0) continue;
#pragma omp critical
        if (b < next_bucket) next_bucket = b;
        break;
      }
#pragma omp barrier
#pragma omp single
      {
        bucket = next_bucket;
        next_bucket = MAX_BUCKETS;
        claim = count = filled = 0;
      }
      if (bucket < MAX_BUCKETS) {
        uint64_t to =
            __atomic_fetch_add(&filled, bins[bucket].count, __ATOMIC_RELAXED);
        memcpy(front + to, bins[bucket].items,
               bins[bucket].count * sizeof *front);
        bins[bucket].count = 0;
      }
#pragma omp barrier
#pragma omp single
      count = filled;
    }
    for (int i = 0; i < MAX_BUCKETS; i++) free(bins[i].items);
    free(bins);
  }
}

/* --- triangles: relabelled by degree, merged in order ------------------------------------*/

typedef struct ranked {
  uint32_t degree, vertex;
} ranked;

static int by_degree(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->degree != y->degree) return x->degree > y->degree ? -1 : 1;
  return (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

uint64_t twin_triangles(const flow_graph *g) {
  uint32_t n = g->vertices;
  uint64_t found = 0;
  ranked *order = twin_memory(0, n * sizeof *order);
  uint32_t *number = twin_memory(1, n * 4ul);
  uint32_t *start = twin_memory(2, (n + 1ul) * 4);
  uint32_t *lower = twin_memory(3, g->edges * 4ul);
#pragma omp parallel for
  for (uint32_t v = 0; v < n; v++) {
    order[v] = (ranked){g->offsets[v + 1] - g->offsets[v], v};
  }
  qsort(order, n, sizeof *order, by_degree);
#pragma omp parallel for
  for (uint32_t i = 0; i < n; i++) number[order[i].vertex] = i;
  /* Each vertex keeps its neighbours with lower numbers. */
#pragma omp parallel for schedule(dynamic, 1024)
  for (uint32_t i = 0; i < n; i++) {
    uint32_t v = order[i].vertex, count = 0;
    for (uint32_t e = g->offsets[v]; e < g->offsets[v + 1]; e++) {
      count += number[g->targets[e]] < i;
    }
    start[i + 1] = count;
  }
  start[0] = 0;
  for (uint32_t i = 0; i < n; i++) start[i + 1] += start[i];
#pragma omp parallel for schedule(dynamic, 1024)
  for (uint32_t i = 0; i < n; i++) {
    uint32_t v = order[i].vertex, at = start[i];
    for (uint32_t e = g->offsets[v]; e < g->offsets[v + 1]; e++) {
      uint32_t u = number[g->targets[e]];
      if (u < i) lower[at++] = u;
    }
    qsort(lower + start[i], at - start[i], sizeof *lower, by_number);
  }
#pragma omp parallel for schedule(dynamic, 64) reduction(+ : found)
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t *row = lower + start[i], *row_end = lower + start[i + 1];
    for (const uint32_t *u = row; u < row_end; u++) {
      const uint32_t *a = row, *b = lower + start[*u];
      const uint32_t *b_end = lower + start[*u + 1];
      while (b < b_end) {
        uint32_t w = *b++;
        while (*a < w) a++; /* ends at *u at the latest */
        found += *a == w;
      }
    }
  }
  return found;
}

/* --- fixpoints --------------------------------------------------------------------------*/

/* Joins what leaves @p u into @p v; returns whether that changed anything. */
static inline bool join(const flow_program *p, uint32_t u, uint32_t v,
                        uint32_t *in) {
  const uint32_t *gen = p->gen + (size_t)u * FLOW_FACT_WORDS;
  const uint32_t *kill = p->kill + (size_t)u * FLOW_FACT_WORDS;
  const uint32_t *from = in + (size_t)u * FLOW_FACT_WORDS;
  uint32_t *to = in + (size_t)v * FLOW_FACT_WORDS;
  uint32_t changed = 0;
  for (int k = 0; k < FLOW_FACT_WORDS; k++) {
    uint32_t next = to[k] | gen[k] | (from[k] & ~kill[k]);
    changed |= next ^ to[k];
    to[k] = next;
  }
  return changed != 0;
}

void twin_fixpoint_fifo(const flow_program *p, uint32_t *in) {
  uint32_t n = p->nodes, *queue = twin_memory(0, n * 4ul);
  uint8_t *is_queued = twin_memory(1, n);
  uint64_t head = 0, tail = n;
  memset(in, 0, (size_t)n * FLOW_FACT_WORDS * 4);
  for (uint32_t v = 0; v < n; v++) {
    queue[v] = v;
    is_queued[v] = 1;
  }
  while (head < tail) {
    uint32_t u = queue[head++ % n];
    is_queued[u] = 0;
    for (uint32_t e = p->offsets[u]; e < p->offsets[u + 1]; e++) {
      uint32_t v = p->targets[e];
      if (!join(p, u, v, in) || is_queued[v]) continue;
      is_queued[v] = 1;
      queue[tail++ % n] = v;
    }
  }
}

void twin_fixpoint_lowest(const flow_program *p, uint32_t *in) {
  uint32_t n = p->nodes, words = (n + 63) / 64;
  uint64_t *bits = twin_memory(0, words * 8ul);
  memset(in, 0, (size_t)n * FLOW_FACT_WORDS * 4);
  memset(bits, 0xff, words * 8ul);
  if (n & 63) bits[words - 1] = (1ull << (n & 63)) - 1;
  for (uint32_t w = 0; w < words;) {
    if (!bits[w]) {
      w++;
      continue;
    }
    uint32_t u = w * 64 + (uint32_t)__builtin_ctzll(bits[w]);
    bits[w] &= bits[w] - 1;
    for (uint32_t e = p->offsets[u]; e < p->offsets[u + 1]; e++) {
      uint32_t v = p->targets[e];
      if (!join(p, u, v, in)) continue;
      bits[v >> 6] |= 1ull << (v & 63);
      if (v >> 6 < w) w = v >> 6;
    }
  }
}

/* --- the table ------------------------------------------------------------------------------*/

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

__attribute__((visibility("default"))) const flow_peer flow_peer_table = {
    .compiler = COMPILER,
    .threads = omp_set_num_threads,
    .bfs = twin_bfs,
    .components = twin_components,
    .pagerank = twin_pagerank,
    .pagerank_blocked = twin_pagerank_blocked,
    .sssp = twin_sssp,
    .triangles = twin_triangles,
    .fixpoint_fifo = twin_fixpoint_fifo,
    .fixpoint_lowest = twin_fixpoint_lowest,
};
