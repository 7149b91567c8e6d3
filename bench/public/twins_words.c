/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of kernels that sort, search and hash. */
#include <string.h>

#include "sha256_rounds.h"
#include "twins.h"
#include "twins_list.h"

/* --- btree -----------------------------------------------------------------*/

enum { ORDER = 256, NODE = 2 * (ORDER + 1) };

static int descend(const int32_t *node, int key) {
  const int32_t *keys = node + ORDER + 1;
  int count = 0;
  for (int t = 0; t < ORDER; t++) count += keys[t] <= key;
  return count > 0 && keys[count] > key ? node[count - 1] : -1;
}

static int find(const int32_t *leaf, int key) {
  const int32_t *keys = leaf + ORDER + 1;
  int found = -1;
  for (int t = 0; t < ORDER; t++) {
    if (keys[t] == key) found = t;
  }
  return found < 0 ? -1 : leaf[found];
}

void twin_btree(const public_args *args) {
  const int32_t *nodes = INTS(0), *records = INTS(1);
#pragma omp parallel for schedule(static)
  for (int q = 0; q < NUMBER(0); q++) {
    int key = INTS(2)[q], at = 0;
    for (int level = 0; level < NUMBER(1); level++) {
      int child = descend(nodes + (size_t)at * NODE, key);
      if (child >= 0) at = child;
    }
    int record = find(nodes + (size_t)at * NODE, key);
    INTS(3)[q] = record < 0 ? 0 : records[record];
  }
}

/* --- radix -----------------------------------------------------------------*/

enum { DIGITS = 16 };

static inline uint32_t digit(uint32_t key, int shift) {
  return key >> shift & (DIGITS - 1);
}

static void radix_count(const public_args *args) {
  int groups = NUMBER(0), size = NUMBER(1), shift = NUMBER(2);
#pragma omp for schedule(static)
  for (int g = 0; g < groups; g++) {
    uint32_t counts[DIGITS] = {0};
    const uint32_t *keys = WORDS(0) + (size_t)g * size;
    for (int i = 0; i < size; i++) counts[digit(keys[i], shift)]++;
    for (int d = 0; d < DIGITS; d++) WORDS(4)[d * groups + g] = counts[d];
  }
}

static void radix_scan(const public_args *args) {
  uint32_t sum = 0;
  for (int i = 0; i < DIGITS * NUMBER(0); i++) {
    uint32_t count = WORDS(4)[i];
    WORDS(4)[i] = sum;
    sum += count;
  }
}

void twin_radix(const public_args *args) {
  int groups = NUMBER(0), size = NUMBER(1), shift = NUMBER(2);
#pragma omp parallel
  {
    radix_count(args);
#pragma omp single
    radix_scan(args);
#pragma omp for schedule(static)
    for (int g = 0; g < groups; g++) {
      const uint32_t *keys = WORDS(0) + (size_t)g * size;
      const uint32_t *values = WORDS(1) + (size_t)g * size;
      uint32_t *out_keys = WORDS(2), *out_values = WORDS(3), next[DIGITS];
      for (int d = 0; d < DIGITS; d++) next[d] = WORDS(4)[d * groups + g];
      for (int i = 0; i < size; i++) {
        uint32_t at = next[digit(keys[i], shift)]++;
        out_keys[at] = keys[i];
        out_values[at] = values[i];
      }
    }
  }
}

enum { THREADS = 256, EACH = 4 };

/* Counts of every digit and thread, then their exclusive sums. */
typedef struct radix_block {
  uint32_t count[DIGITS * THREADS], rank[THREADS * EACH];
} radix_block;

static void rank_block(radix_block *b, const uint32_t *keys, int shift) {
  memset(b->count, 0, sizeof b->count);
  for (int t = 0; t < THREADS; t++) {
    for (int i = 0; i < EACH; i++) {
      uint32_t *count =
          &b->count[digit(keys[EACH * t + i], shift) * THREADS + t];
      b->rank[EACH * t + i] = (*count)++;
    }
  }
  uint32_t sum = 0;
  for (int i = 0; i < DIGITS * THREADS; i++) {
    uint32_t count = b->count[i];
    b->count[i] = sum;
    sum += count;
  }
}

static void scatter_block(const radix_block *b, const public_args *args,
                          size_t base, uint32_t start[DIGITS]) {
  const uint32_t *keys = WORDS(0) + base, *values = WORDS(1) + base;
  uint32_t *out_keys = WORDS(2), *out_values = WORDS(3);
  int shift = NUMBER(2);
  for (int i = 0; i < THREADS * EACH; i++) {
    uint32_t d = digit(keys[i], shift);
    uint32_t at = start[d] + b->count[d * THREADS + (uint32_t)(i / EACH)] +
                  b->rank[i] - b->count[d * THREADS];
    out_keys[at] = keys[i];
    out_values[at] = values[i];
  }
  for (int d = 0; d < DIGITS; d++) {
    uint32_t end =
        d < DIGITS - 1 ? b->count[(d + 1) * THREADS] : THREADS * EACH;
    start[d] += end - b->count[d * THREADS];
  }
}

/* Ranks the keys of 1024 at a time with a table of digits and threads. */
void twin_radix_same(const public_args *args) {
  int groups = NUMBER(0), size = NUMBER(1);
#pragma omp parallel
  {
    radix_count(args);
#pragma omp single
    radix_scan(args);
#pragma omp for schedule(static)
    for (int g = 0; g < groups; g++) {
      radix_block block;
      uint32_t start[DIGITS];
      for (int d = 0; d < DIGITS; d++) start[d] = WORDS(4)[d * groups + g];
      for (int i = 0; i < size; i += THREADS * EACH) {
        size_t base = (size_t)g * size + i;
        rank_block(&block, WORDS(0) + base, NUMBER(2));
        scatter_block(&block, args, base, start);
      }
    }
  }
}

/* --- bitonic ---------------------------------------------------------------*/

enum { SORTED = 512 };

static void bitonic_step(uint32_t *restrict keys, uint32_t *restrict values,
                         int size, int stride) {
  for (int base = 0; base < SORTED; base += 2 * stride) {
    int is_up = !(base / 2 & size / 2);
#pragma omp simd
    for (int t = 0; t < stride; t++) {
      int a = base + t, b = a + stride;
      uint32_t ka = keys[a], kb = keys[b], va = values[a], vb = values[b];
      int swaps = (ka > kb) == is_up;
      keys[a] = swaps ? kb : ka;
      keys[b] = swaps ? ka : kb;
      values[a] = swaps ? vb : va;
      values[b] = swaps ? va : vb;
    }
  }
}

void twin_bitonic(const public_args *args) {
#pragma omp parallel for schedule(static)
  for (int g = 0; g < NUMBER(0); g++) {
    uint32_t *keys = WORDS(0) + (size_t)g * SORTED;
    uint32_t *values = WORDS(1) + (size_t)g * SORTED;
    for (int size = 2; size <= SORTED; size *= 2) {
      for (int stride = size / 2; stride > 0; stride /= 2) {
        bitonic_step(keys, values, size, stride);
      }
    }
  }
}

/* --- sha256 ----------------------------------------------------------------*/

static inline uint32_t turn(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

static void sha256_block(uint32_t state[8], uint32_t w[64]) {
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] +
           (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                  ((e & f) ^ (~e & g)) + sha256_rounds[i] + w[i];
    uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                  ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  uint32_t add[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; i++) state[i] += add[i];
}

void twin_sha256(const public_args *args) {
#pragma omp parallel for schedule(static)
  for (int id = 0; id < NUMBER(0); id++) {
    uint32_t w[64], padding[64] = {0x80000000};
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (int i = 0; i < 16; i++) {
      w[i] = __builtin_bswap32(WORDS(0)[(size_t)id * 16 + i]);
    }
    sha256_block(state, w);
    padding[15] = 512;
    sha256_block(state, padding);
    for (int i = 0; i < 8; i++) {
      WORDS(1)[(size_t)id * 8 + i] = __builtin_bswap32(state[i]);
    }
  }
}
