/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Edges become rows: edges are distributed to buckets of neighbouring sources,
 * then each bucket is sorted in the cache. No memory is allocated for single
 * edges or rows, and the result does not depend on the number of threads. */
#include <string.h>

#include "graph/graph.h"

enum {
  BUCKET_EDGES = 1 << 14, /* wanted size: the bucket fits into an L2 cache */
  MAX_BUCKET_BITS = 11,
  DIGIT_BITS = 11,
  SMALL = 40, /* edges that are sorted by insertion */
  MAX_PARTS = 16,
};

typedef struct row_build {
  const edge_list *edges;
  const graph_options *options;
  graph_rows *rows;
  uint32_t vertices, threads;
  bool adds_reverse, is_transposed;
  uint32_t shift, buckets; /* bucket of vertex v: v >> shift */
  uint64_t
      *places; /* one row of buckets for each thread; counts, then places */
  uint64_t *starts; /* first edge of each bucket; buckets + 1 entries */
  uint64_t *kept;   /* edges of each bucket without duplicates */
  uint64_t *keys;   /* source in the high, target in the low half */
  uint32_t *weights;
  uint64_t *spare_keys[MAX_PARTS];
  uint32_t *spare_weights[MAX_PARTS];
  uint64_t records, max_bucket, next, done;
} row_build;

/* --- distribution -----------------------------------------------------------*/

static inline void put(row_build *b, uint64_t *at, bool writes, uint32_t from,
                       uint32_t to, uint64_t index) {
  uint64_t place = at[from >> b->shift]++;
  if (!writes) return;
  b->keys[place] = (uint64_t)from << 32 | to;
  if (b->weights) b->weights[place] = b->edges->weights[index];
}

static inline void each_edge(row_build *b, uint32_t part, uint32_t parts,
                             bool writes) {
  const edge_list *edges = b->edges;
  const uint32_t *from = b->is_transposed ? edges->to : edges->from;
  const uint32_t *to = b->is_transposed ? edges->from : edges->to;
  uint64_t *at = b->places + (uint64_t)part * b->buckets;
  uint64_t end = edges->count * (part + 1) / parts;
  for (uint64_t i = edges->count * part / parts; i < end; i++) {
    bool is_loop = from[i] == to[i];
    if (is_loop && b->options->drops_loops) continue;
    put(b, at, writes, from[i], to[i], i);
    if (b->adds_reverse && !is_loop) put(b, at, writes, to[i], from[i], i);
  }
}

static void count_part(void *self, uint32_t part, uint32_t parts) {
  each_edge(self, part, parts, false);
}

static void write_part(void *self, uint32_t part, uint32_t parts) {
  each_edge(self, part, parts, true);
}

/* Turns counts into places: bucket by bucket, and in it thread by thread, so
 * that edges keep their order. */
static void place_buckets(row_build *b) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < b->buckets; i++) {
    b->starts[i] = sum;
    for (uint32_t t = 0; t < b->threads; t++) {
      uint64_t *at = &b->places[(uint64_t)t * b->buckets + i];
      uint64_t count = *at;
      *at = sum;
      sum += count;
    }
    uint64_t size = sum - b->starts[i];
    if (size > b->max_bucket) b->max_bucket = size;
  }
  b->starts[b->buckets] = sum;
  b->records = sum;
}

/* --- sorting a bucket ---------------------------------------------------------*/

/* Edges of one bucket and space for as many. */
typedef struct bucket {
  uint64_t *keys, *other_keys;
  uint32_t *weights, *other_weights; /* NULL: no weights */
  uint64_t count;
} bucket;

static void sort_small(bucket *k) {
  for (uint64_t i = 1; i < k->count; i++) {
    uint64_t key = k->keys[i], j = i;
    uint32_t weight = k->weights ? k->weights[i] : 0;
    for (; j > 0 && k->keys[j - 1] > key; j--) {
      k->keys[j] = k->keys[j - 1];
      if (k->weights) k->weights[j] = k->weights[j - 1];
    }
    k->keys[j] = key;
    if (k->weights) k->weights[j] = weight;
  }
}

static void sort_digit(bucket *k, uint32_t shift, uint32_t bits) {
  uint32_t at[1 << DIGIT_BITS] = {0};
  uint32_t size = 1u << bits, sum = 0;
  for (uint64_t i = 0; i < k->count; i++) {
    at[k->keys[i] >> shift & (size - 1)]++;
  }
  for (uint32_t d = 0; d < size; d++) {
    uint32_t count = at[d];
    at[d] = sum;
    sum += count;
  }
  for (uint64_t i = 0; i < k->count; i++) {
    uint32_t place = at[k->keys[i] >> shift & (size - 1)]++;
    k->other_keys[place] = k->keys[i];
    if (k->weights) k->other_weights[place] = k->weights[i];
  }
  uint64_t *keys = k->keys;
  uint32_t *weights = k->weights;
  k->keys = k->other_keys;
  k->other_keys = keys;
  k->weights = k->other_weights;
  k->other_weights = weights;
}

/* Sorts by bits [first, first + bits) of the keys, in digits of equal size. */
static void sort_bits(bucket *k, uint32_t first, uint32_t bits) {
  uint32_t digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
  for (uint32_t d = 0; d < digits; d++) {
    uint32_t from = bits * d / digits, to = bits * (d + 1) / digits;
    sort_digit(k, first + from, to - from);
  }
}

static uint32_t bits_of(uint32_t max) {
  return max ? 32 - (uint32_t)__builtin_clz(max) : 0;
}

/* Removes edges that occur again; the smallest weight stays. */
static void unite(bucket *k) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < k->count; i++) {
    if (kept > 0 && k->keys[kept - 1] == k->keys[i]) {
      if (k->weights && k->weights[i] < k->weights[kept - 1]) {
        k->weights[kept - 1] = k->weights[i];
      }
      continue;
    }
    k->keys[kept] = k->keys[i];
    if (k->weights) k->weights[kept] = k->weights[i];
    kept++;
  }
  k->count = kept;
}

static void sort_bucket(row_build *b, uint32_t part, uint32_t index) {
  uint64_t start = b->starts[index];
  uint64_t *home = b->keys + start;
  bucket k = {.keys = home,
              .other_keys = b->spare_keys[part],
              .count = b->starts[index + 1] - start};
  if (b->weights) {
    k.weights = b->weights + start;
    k.other_weights = b->spare_weights[part];
  }
  if (k.count <= SMALL) {
    sort_small(&k);
  } else {
    sort_bits(&k, 0, bits_of(b->vertices - 1));
    sort_bits(&k, 32, b->shift);
  }
  if (!b->options->keeps_duplicates) unite(&k);
  b->kept[index] = k.count;
  if (k.keys == home) return;
  memcpy(home, k.keys, k.count * sizeof *home);
  if (b->weights) memcpy(b->weights + start, k.weights, k.count * 4);
}

static void tell_progress(row_build *b, uint64_t edges) {
  uint64_t done = __atomic_add_fetch(&b->done, edges, __ATOMIC_RELAXED);
  if (b->options->bar) progress_set(b->options->bar, done, b->records);
}

static void sort_part(void *self, uint32_t part, uint32_t parts) {
  row_build *b = self;
  (void)parts;
  for (;;) {
    uint64_t index = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
    if (index >= b->buckets) return;
    sort_bucket(b, part, (uint32_t)index);
    tell_progress(b, b->starts[index + 1] - b->starts[index]);
  }
}

/* --- rows ----------------------------------------------------------------------*/

/* Writes the rows of one bucket, whose edges begin at @p edge of the graph. */
static void write_rows(row_build *b, uint64_t index, uint64_t edge) {
  const uint64_t *keys = b->keys + b->starts[index];
  uint64_t count = b->kept[index], first = index << b->shift;
  uint64_t end = (index + 1) << b->shift, at = 0;
  if (end > b->vertices) end = b->vertices;
  for (uint64_t v = first; v < end; v++) {
    b->rows->offsets[v] = (uint32_t)(edge + at);
    while (at < count && keys[at] >> 32 == v) {
      b->rows->targets[edge + at] = (uint32_t)keys[at];
      at++;
    }
  }
  if (b->weights) {
    memcpy(b->rows->weights + edge, b->weights + b->starts[index], count * 4);
  }
}

static void rows_part(void *self, uint32_t part, uint32_t parts) {
  row_build *b = self;
  for (uint64_t i = part; i < b->buckets; i += parts) {
    write_rows(b, i, b->places[i]);
  }
}

static bool make_rows(row_build *b, uint32_t *edge_count, problem *wrong) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < b->buckets; i++) {
    b->places[i] = sum;
    sum += b->kept[i];
  }
  if (sum > GRAPH_MAX_EDGES) {
    return problem_set(wrong, KIND_INPUT, "use a smaller graph",
                       "the graph has %llu edges; the maximum is %u",
                       (unsigned long long)sum, (unsigned)GRAPH_MAX_EDGES);
  }
  *edge_count = (uint32_t)sum;
  b->rows->offsets = graph_pages(((uint64_t)b->vertices + 1) * 4);
  b->rows->targets = graph_pages(sum * 4);
  if (b->weights) b->rows->weights = graph_pages(sum * 4);
  if (!b->rows->offsets || !b->rows->targets ||
      (b->weights && !b->rows->weights)) {
    return problem_no_memory(wrong, "the rows of the graph");
  }
  graph_parallel(b->threads, rows_part, b);
  b->rows->offsets[b->vertices] = (uint32_t)sum;
  return true;
}

/* --- the steps -------------------------------------------------------------------*/

static bool allocate_counts(row_build *b, problem *wrong) {
  b->places = graph_pages((uint64_t)b->threads * b->buckets * 8);
  b->starts = graph_pages(((uint64_t)b->buckets + 1) * 8);
  b->kept = graph_pages((uint64_t)b->buckets * 8);
  return (b->places && b->starts && b->kept) ||
         problem_no_memory(wrong, "the buckets of the graph");
}

static bool allocate_records(row_build *b, problem *wrong) {
  bool is_fine = true;
  uint64_t per_edge = b->edges->weights ? 12 : 8;
  uint64_t most = (b->records + b->max_bucket * b->threads) * per_edge;
  if (!graph_fits(most + b->records * 4, b->options, wrong)) return false;
  b->keys = graph_pages(b->records * 8);
  is_fine = b->keys != NULL;
  if (b->edges->weights) {
    b->weights = graph_pages(b->records * 4);
    is_fine = is_fine && b->weights;
  }
  for (uint32_t t = 0; t < b->threads; t++) {
    b->spare_keys[t] = graph_pages(b->max_bucket * 8);
    is_fine = is_fine && b->spare_keys[t];
    if (!b->edges->weights) continue;
    b->spare_weights[t] = graph_pages(b->max_bucket * 4);
    is_fine = is_fine && b->spare_weights[t];
  }
  return is_fine || problem_no_memory(wrong, "the edges of the graph");
}

static void row_build_deinit(row_build *b) {
  graph_pages_free(b->places, (uint64_t)b->threads * b->buckets * 8);
  graph_pages_free(b->starts, ((uint64_t)b->buckets + 1) * 8);
  graph_pages_free(b->kept, (uint64_t)b->buckets * 8);
  graph_pages_free(b->keys, b->records * 8);
  graph_pages_free(b->weights, b->records * 4);
  for (uint32_t t = 0; t < b->threads; t++) {
    graph_pages_free(b->spare_keys[t], b->max_bucket * 8);
    graph_pages_free(b->spare_weights[t], b->max_bucket * 4);
  }
}

/* Chooses the number of buckets. */
static void choose_buckets(row_build *b, uint64_t records) {
  uint32_t bits = b->vertices > 1 ? bits_of(b->vertices - 1) : 0, wanted = 0;
  while (wanted < MAX_BUCKET_BITS && records >> wanted > BUCKET_EDGES) wanted++;
  b->shift = bits > wanted ? bits - wanted : 0;
  b->buckets = b->vertices ? ((b->vertices - 1) >> b->shift) + 1 : 1;
}

static bool build_rows(row_build *b, uint32_t *edge_count, problem *wrong) {
  choose_buckets(b, b->edges->count * (b->adds_reverse ? 2 : 1));
  bool is_fine = allocate_counts(b, wrong);
  if (is_fine) {
    graph_parallel(b->threads, count_part, b);
    place_buckets(b);
    is_fine = allocate_records(b, wrong);
  }
  if (is_fine) {
    graph_parallel(b->threads, write_part, b);
    graph_parallel(b->threads, sort_part, b);
    is_fine = make_rows(b, edge_count, wrong);
  }
  row_build_deinit(b);
  return is_fine;
}

bool graph_build(edge_list *edges, const graph_options *options, graph *out,
                 problem *wrong) {
  row_build b = {.edges = edges,
                 .options = options,
                 .rows = &out->out,
                 .vertices = edges->vertices,
                 .threads = graph_threads(options),
                 .adds_reverse = edges->is_symmetric || options->is_undirected};
  out->vertices = edges->vertices;
  out->is_symmetric = b.adds_reverse;
  uint64_t least = ((uint64_t)edges->vertices + 1) * 4;
  bool is_fine = graph_fits(least * 4, options, wrong) &&
                 build_rows(&b, &out->edges, wrong);
  if (is_fine && out->is_symmetric) {
    out->in = out->out;
  } else if (is_fine && options->needs_in) {
    row_build in = {.edges = edges,
                    .options = options,
                    .rows = &out->in,
                    .vertices = edges->vertices,
                    .threads = b.threads,
                    .is_transposed = true};
    is_fine = build_rows(&in, &out->edges, wrong);
  }
  edges_deinit(edges);
  return is_fine;
}

bool graph_load(const char *text, const graph_options *options, graph *out,
                problem *wrong) {
  edge_list edges = {0};
  input in = {.label = NULL};
  *out = (graph){.vertices = 0};
  bool is_fine;
  if (is_generated_graph(text)) {
    is_fine = edges_generate(text, options, &edges, wrong);
  } else {
    is_fine = read_input_up_to(text, (size_t)1 << 40, &in, wrong) &&
              edges_read(&in, options, &edges, wrong);
    input_deinit(&in);
  }
  is_fine = is_fine && graph_build(&edges, options, out, wrong);
  edges_deinit(&edges);
  return is_fine;
}
