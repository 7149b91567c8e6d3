/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of kernels that sort, count, hash, and follow graphs. */
#include <stdlib.h>
#include <string.h>

#include "public/twins.h"
#include "twins_list.h"

/* --- mergesort -------------------------------------------------------------*/

enum { SORTED = 512 };

/* Merges runs of @p run pairs: keys in the high halves. */
static void merge_runs(const uint64_t *from, uint64_t *to, int run) {
  for (int first = 0; first < SORTED; first += 2 * run) {
    int a = first, b = first + run, end_a = b, end_b = b + run;
    for (int i = first; i < end_b; i++) {
      int takes_a = b == end_b || (a < end_a && from[a] >> 32 <= from[b] >> 32);
      to[i] = takes_a ? from[a++] : from[b++];
    }
  }
}

static void sort_block(uint32_t *keys, uint32_t *values) {
  uint64_t buffers[2][SORTED];
  int at = 0;
  for (int i = 0; i < SORTED; i++) {
    buffers[0][i] = (uint64_t)keys[i] << 32 | values[i];
  }
  for (int first = 0; first < SORTED; first += 8) { /* by insertion */
    uint64_t *run = buffers[0] + first;
    for (int i = 1; i < 8; i++) {
      uint64_t own = run[i];
      int k = i;
      for (; k > 0 && run[k - 1] >> 32 > own >> 32; k--) run[k] = run[k - 1];
      run[k] = own;
    }
  }
  for (int run = 8; run < SORTED; run *= 2, at ^= 1) {
    merge_runs(buffers[at], buffers[at ^ 1], run);
  }
  for (int i = 0; i < SORTED; i++) {
    keys[i] = (uint32_t)(buffers[at][i] >> 32);
    values[i] = (uint32_t)buffers[at][i];
  }
}

void twin_mergesort(const public_args *args) {
#pragma omp parallel for schedule(static)
  for (int b = 0; b < NUMBER(0); b++) {
    sort_block(WORDS(0) + (size_t)b * SORTED, WORDS(1) + (size_t)b * SORTED);
  }
}

/* Returns how many keys of a run are below @p key, or not above it. */
static uint32_t rank_in(const uint32_t *run, uint32_t length, uint32_t key,
                        int counts_equal) {
  uint32_t place = 0;
  for (uint32_t step = length; step > 0; step /= 2) {
    uint32_t probe = place + step < length ? place + step : length;
    uint32_t other = run[probe - 1];
    if (other < key || (counts_equal && other == key)) place = probe;
  }
  return place;
}

static void rank_block(uint32_t *keys, uint32_t *values) {
  uint32_t key[SORTED], value[SORTED];
  for (uint32_t stride = 1; stride < SORTED; stride *= 2) {
    memcpy(key, keys, sizeof key);
    memcpy(value, values, sizeof value);
    for (uint32_t t = 0; t < SORTED / 2; t++) {
      uint32_t at = t & (stride - 1), first = 2 * (t - at);
      uint32_t a = first + at, b = first + stride + at;
      uint32_t to_a = a + rank_in(key + first + stride, stride, key[a], 0);
      uint32_t to_b = first + at + rank_in(key + first, stride, key[b], 1);
      keys[to_a] = key[a];
      values[to_a] = value[a];
      keys[to_b] = key[b];
      values[to_b] = value[b];
    }
  }
}

void twin_mergesort_same(const public_args *args) {
#pragma omp parallel for schedule(static)
  for (int b = 0; b < NUMBER(0); b++) {
    rank_block(WORDS(0) + (size_t)b * SORTED, WORDS(1) + (size_t)b * SORTED);
  }
}

/* --- histogram256, compact -------------------------------------------------*/

void twin_histogram256(const public_args *args) {
  const uint32_t *data = WORDS(0);
  uint32_t *bins = WORDS(1);
#pragma omp parallel
  {
    uint32_t own[4][256] = {{0}};
#pragma omp for schedule(static) nowait
    for (int i = 0; i < NUMBER(0); i++) {
      uint32_t word = data[i];
      own[0][word & 255]++;
      own[1][word >> 8 & 255]++;
      own[2][word >> 16 & 255]++;
      own[3][word >> 24]++;
    }
#pragma omp critical
    for (int b = 0; b < 256; b++) {
      bins[b] += own[0][b] + own[1][b] + own[2][b] + own[3][b];
    }
  }
}

/* Each thread collects blocks, and asks once a block for room. */
void twin_compact(const public_args *args) {
  enum { BLOCK = 2048 };
  const uint32_t *data = WORDS(0);
  uint32_t *kept = WORDS(1), *total = WORDS(2), limit = (uint32_t)NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int first = 0; first < NUMBER(0); first += BLOCK) {
    uint32_t own[BLOCK], count = 0, start;
    int end = smaller(first + BLOCK, NUMBER(0));
    for (int i = first; i < end; i++) {
      own[count] = data[i];
      count += data[i] > limit;
    }
#pragma omp atomic capture
    {
      start = *total;
      *total += count;
    }
    memcpy(kept + start, own, count * sizeof *own);
  }
}

/* --- aes, murmur -----------------------------------------------------------*/

static inline uint32_t rotate(uint32_t x, int by) {
  return x << by | x >> (32 - by);
}

typedef struct aes_tables {
  uint32_t t[4][256];
  const uint8_t *sbox;
  const uint32_t *keys;
} aes_tables;

static void aes_block(const aes_tables *a, const uint32_t *in, uint32_t *out) {
  const uint32_t *key = a->keys;
  uint32_t s[4], next[4];
  for (int i = 0; i < 4; i++) s[i] = in[i] ^ *key++;
  for (int round = 1; round < 10; round++) {
    for (int i = 0; i < 4; i++) {
      next[i] = a->t[0][s[i] & 255] ^ a->t[1][s[(i + 1) % 4] >> 8 & 255] ^
                a->t[2][s[(i + 2) % 4] >> 16 & 255] ^
                a->t[3][s[(i + 3) % 4] >> 24] ^ *key++;
    }
    memcpy(s, next, sizeof s);
  }
  for (int i = 0; i < 4; i++) {
    out[i] = ((uint32_t)a->sbox[s[i] & 255] |
              (uint32_t)a->sbox[s[(i + 1) % 4] >> 8 & 255] << 8 |
              (uint32_t)a->sbox[s[(i + 2) % 4] >> 16 & 255] << 16 |
              (uint32_t)a->sbox[s[(i + 3) % 4] >> 24] << 24) ^
             *key++;
  }
}

void twin_aes(const public_args *args) {
  aes_tables tables = {.sbox = BYTES(3), .keys = WORDS(1)};
  for (int i = 0; i < 256; i++) {
    uint32_t own = WORDS(2)[i];
    tables.t[0][i] = own;
    for (int k = 1; k < 4; k++) tables.t[k][i] = rotate(own, 8 * k);
  }
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++) {
    aes_block(&tables, WORDS(0) + (size_t)i * 4, WORDS(4) + (size_t)i * 4);
  }
}

static uint32_t murmur_of(const uint8_t *text, uint32_t length) {
  uint32_t h = 0x9747b28cu, rest = 0, k;
  const uint8_t *tail = text + (length & ~3u);
  for (; text < tail; text += 4) {
    memcpy(&k, text, 4);
    h ^= rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u;
    h = rotate(h, 13) * 5 + 0xe6546b64u;
  }
  for (uint32_t i = 0; i < (length & 3); i++) {
    rest |= (uint32_t)tail[i] << 8 * i;
  }
  h ^= rotate(rest * 0xcc9e2d51u, 15) * 0x1b873593u;
  h ^= length;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

void twin_murmur(const public_args *args) {
  const uint32_t *starts = WORDS(0);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++) {
    WORDS(2)[i] = murmur_of(BYTES(1) + starts[i], starts[i + 1] - starts[i]);
  }
}

/* --- pagerank, bfs, lookup -------------------------------------------------*/

void twin_pagerank(const public_args *args) {
  const uint32_t *starts = WORDS(0), *sources = WORDS(1), *degree = WORDS(2);
  float *rank = FLOATS(3), *share = FLOATS(4);
  int nodes = NUMBER(0);
  for (int round = 0; round < NUMBER(1); round++) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < nodes; i++) {
      share[i] = rank[i] / (float)(degree[i] > 1 ? degree[i] : 1);
    }
#pragma omp parallel for schedule(dynamic, 256)
    for (int i = 0; i < nodes; i++) {
      float sum = 0;
      for (uint32_t e = starts[i]; e < starts[i + 1]; e++) {
        sum += share[sources[e]];
      }
      rank[i] = .15f / (float)nodes + .85f * sum;
    }
  }
}

/* Visits the nodes of a level from a list. */
void twin_bfs(const public_args *args) {
  const uint32_t *starts = WORDS(0), *edges = WORDS(1);
  uint8_t *mask = BYTES(2), *visited = BYTES(4);
  uint32_t *cost = WORDS(5), nodes = (uint32_t)NUMBER(0), end = 1, first = 0;
  uint32_t *list = malloc(nodes * sizeof *list);
  if (!list) return;
  list[0] = (uint32_t)NUMBER(2);
  mask[list[0]] = 0;
  for (int level = 0; level < NUMBER(1); level++) {
    uint32_t last = end;
    for (; first < last; first++) {
      uint32_t node = list[first];
      for (uint32_t e = starts[node]; e < starts[node + 1]; e++) {
        uint32_t id = edges[e];
        if (visited[id]) continue;
        visited[id] = 1;
        cost[id] = cost[node] + 1;
        list[end++] = id;
      }
    }
    if (end > last) WORDS(6)[0] = 1;
  }
  for (; first < end; first++) mask[list[first]] = 1;
  free(list);
}

void twin_bfs_same(const public_args *args) {
  const uint32_t *starts = WORDS(0), *edges = WORDS(1);
  uint8_t *mask = BYTES(2), *updating = BYTES(3), *visited = BYTES(4);
  uint32_t *cost = WORDS(5);
  int nodes = NUMBER(0);
  for (int level = 0; level < NUMBER(1); level++) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < nodes; i++) {
      if (!mask[i]) continue;
      mask[i] = 0;
      for (uint32_t e = starts[i]; e < starts[i + 1]; e++) {
        if (visited[edges[e]]) continue;
        cost[edges[e]] = cost[i] + 1;
        updating[edges[e]] = 1;
      }
    }
#pragma omp parallel for schedule(static)
    for (int i = 0; i < nodes; i++) {
      if (!updating[i]) continue;
      mask[i] = visited[i] = 1;
      WORDS(6)[0] = 1;
      updating[i] = 0;
    }
  }
}

void twin_lookup(const public_args *args) {
  const float *grid = FLOATS(0), *sections = FLOATS(1);
  int points = NUMBER(1), slots = NUMBER(2);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++) {
    float energy = FLOATS(4)[i], sum[5] = {0};
    int low = 0, high = points - 1;
    while (high - low > 1) {
      int middle = (low + high) / 2;
      if (grid[middle] > energy) {
        high = middle;
      } else {
        low = middle;
      }
    }
    float f = (grid[low + 1] - energy) / (grid[low + 1] - grid[low]);
    size_t list = (size_t)WORDS(5)[i] * slots;
    for (int k = 0; k < slots && FLOATS(3)[list + k] != 0; k++) {
      float amount = FLOATS(3)[list + k];
      const float *at =
          sections + ((size_t)WORDS(2)[list + k] * points + low) * 5;
      for (int c = 0; c < 5; c++) {
        sum[c] += amount * (at[5 + c] - f * (at[5 + c] - at[c]));
      }
    }
    memcpy(FLOATS(6) + (size_t)i * 5, sum, sizeof sum);
  }
}
