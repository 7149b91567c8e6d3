/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernels of the suite as C loops with OpenMP, as one would write them
 * without vyre: no intrinsics; the compiler vectorises. */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>

#include "peer.h"

#define FLOATS(i) ((float *)args->buffers[i].data)
#define WORDS(i)  ((uint32_t *)args->buffers[i].data)
#define BYTES(i)  ((unsigned char *)args->buffers[i].data)
#define COUNT(i)  (args->buffers[i].size / 4)

static void saxpy(const cpu_args *args) {
  const float *restrict x = FLOATS(0);
  float *restrict y = FLOATS(1);
  float a = args->scalars[0].f;
  size_t n = COUNT(1);
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

static void saxpy_alone(const cpu_args *args) {
  const float *restrict x = FLOATS(0);
  float *restrict y = FLOATS(1);
  float a = args->scalars[0].f;
  size_t n = COUNT(1);
  for (size_t i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}

static uint32_t escape(float cx, float cy, uint32_t limit) {
  float x = 0, y = 0, xx = 0, yy = 0;
  uint32_t n = 0;
  while (n < limit && xx + yy <= 4) {
    y = 2 * x * y + cy;
    x = xx - yy + cx;
    xx = x * x;
    yy = y * y;
    n++;
  }
  return n;
}

static void mandelbrot(const cpu_args *args) {
  uint32_t *restrict steps = WORDS(0);
  uint32_t width = args->scalars[0].u, limit = args->scalars[1].u;
  float left = args->scalars[2].f, top = args->scalars[3].f;
  float scale = args->scalars[4].f;
  uint32_t height = (uint32_t)(COUNT(0) / width);
#pragma omp parallel for schedule(dynamic, 4)
  for (uint32_t py = 0; py < height; py++) {
    for (uint32_t px = 0; px < width; px++) {
      steps[(size_t)py * width + px] =
          escape((float)px * scale + left, (float)py * scale + top, limit);
    }
  }
}

static void reduce(const cpu_args *args) {
  const float *restrict x = FLOATS(0);
  size_t n = COUNT(0);
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (size_t i = 0; i < n; i++) sum += x[i];
  FLOATS(1)[0] = sum;
}

static void softmax(const cpu_args *args) {
  size_t width = args->scalars[0].u, rows = COUNT(0) / width;
#pragma omp parallel for
  for (size_t row = 0; row < rows; row++) {
    const float *restrict x = FLOATS(0) + row * width;
    float *restrict y = FLOATS(1) + row * width;
    float max = x[0], sum = 0;
#pragma omp simd reduction(max : max)
    for (size_t i = 0; i < width; i++) max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < width; i++) y[i] = expf(x[i] - max);
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < width; i++) sum += y[i];
    float share = 1 / sum;
    for (size_t i = 0; i < width; i++) y[i] *= share;
  }
}

/* The middle loop iterates over k, so that the inner one reads rows. */
static void matmul_naive(const cpu_args *args) {
  const float *restrict a = FLOATS(0), *restrict b = FLOATS(1);
  float *restrict c = FLOATS(2);
  size_t n = args->scalars[0].u;
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) {
    memset(&c[i * n], 0, n * sizeof *c);
    for (size_t k = 0; k < n; k++) {
      for (size_t j = 0; j < n; j++)
        c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
}

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* A block of b stays in the first-level cache for TALL rows of c. */
static void matmul_tiled(const cpu_args *args) {
  enum { TALL = 64, DEEP = 16, WIDE = 256 };
  const float *restrict a = FLOATS(0), *restrict b = FLOATS(1);
  float *restrict c = FLOATS(2);
  size_t n = args->scalars[0].u;
#pragma omp parallel for
  for (size_t i0 = 0; i0 < n; i0 += TALL) {
    size_t i1 = min_size(i0 + TALL, n);
    memset(&c[i0 * n], 0, (i1 - i0) * n * sizeof *c);
    for (size_t j0 = 0; j0 < n; j0 += WIDE) {
      size_t j1 = min_size(j0 + WIDE, n);
      for (size_t k0 = 0; k0 < n; k0 += DEEP) {
        size_t k1 = min_size(k0 + DEEP, n);
        for (size_t i = i0; i < i1; i++) {
          for (size_t k = k0; k < k1; k++) {
            float v = a[i * n + k];
            for (size_t j = j0; j < j1; j++) c[i * n + j] += v * b[k * n + j];
          }
        }
      }
    }
  }
}

enum { TALL_TILE = 8, WIDE_TILE = 8 };

/* Computes TALL_TILE x WIDE_TILE elements of c in registers. */
static void tile(const float *restrict a, const float *restrict b,
                 float *restrict c, size_t n) {
  float sums[TALL_TILE][WIDE_TILE] = {{0}};
  for (size_t k = 0; k < n; k++) {
    for (size_t i = 0; i < TALL_TILE; i++) {
#pragma omp simd
      for (size_t j = 0; j < WIDE_TILE; j++) {
        sums[i][j] += a[i * n + k] * b[k * n + j];
      }
    }
  }
  for (size_t i = 0; i < TALL_TILE; i++) {
    for (size_t j = 0; j < WIDE_TILE; j++) c[i * n + j] = sums[i][j];
  }
}

static void matmul_blocked(const cpu_args *args) {
  const float *restrict a = FLOATS(0), *restrict b = FLOATS(1);
  float *restrict c = FLOATS(2);
  size_t n = args->scalars[0].u;
  size_t tall = n - n % TALL_TILE, wide = n - n % WIDE_TILE;
#pragma omp parallel for
  for (size_t i0 = 0; i0 < tall; i0 += TALL_TILE) {
    for (size_t j0 = 0; j0 < wide; j0 += WIDE_TILE) {
      tile(a + i0 * n, b + j0, c + i0 * n + j0, n);
    }
  }
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) {
    for (size_t j = i < tall ? wide : 0; j < n; j++) {
      float sum = 0;
      for (size_t k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
}

static void stencil(const cpu_args *args) {
  const float *restrict heat = FLOATS(0);
  float *restrict next = FLOATS(1);
  size_t width = args->scalars[0].u, height = COUNT(0) / width;
#pragma omp parallel for
  for (size_t y = 1; y < height - 1; y++) {
    for (size_t x = 1; x < width - 1; x++) {
      size_t i = y * width + x;
      next[i] = 0.2f * (heat[i] + heat[i - 1] + heat[i + 1] + heat[i - width] +
                        heat[i + width]);
    }
  }
}

/* Four tables per thread: increments for equal neighbours do not wait for each
 * other. */
static void histogram(const cpu_args *args) {
  const unsigned char *restrict data = BYTES(0);
  uint32_t *bins = WORDS(1);
  size_t n = args->buffers[0].size, n4 = n / 4;
#pragma omp parallel
  {
    uint32_t mine[4][256] = {{0}};
#pragma omp for nowait
    for (size_t i = 0; i < n4; i++) {
      mine[0][data[4 * i]]++;
      mine[1][data[4 * i + 1]]++;
      mine[2][data[4 * i + 2]]++;
      mine[3][data[4 * i + 3]]++;
    }
#pragma omp single nowait
    for (size_t i = 4 * n4; i < n; i++) mine[0][data[i]]++;
#pragma omp critical
    for (int i = 0; i < 256; i++) {
      bins[i] += mine[0][i] + mine[1][i] + mine[2][i] + mine[3][i];
    }
  }
}

static void bfs(const cpu_args *args) {
  const uint32_t *starts = WORDS(0), *targets = WORDS(1), *frontier = WORDS(2);
  uint32_t *distance = WORDS(3), *next = WORDS(4), *count = WORDS(5);
  uint32_t depth = args->scalars[0].u;
  size_t n = COUNT(2);
#pragma omp parallel for schedule(dynamic, 256)
  for (size_t i = 0; i < n; i++) {
    uint32_t end = starts[frontier[i] + 1];
    for (uint32_t edge = starts[frontier[i]]; edge < end; edge++) {
      uint32_t target = targets[edge], unseen = UINT32_MAX;
      if (__atomic_load_n(&distance[target], __ATOMIC_RELAXED) == UINT32_MAX &&
          __atomic_compare_exchange_n(&distance[target], &unseen, depth + 1, 0,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        next[__atomic_fetch_add(count, 1, __ATOMIC_RELAXED)] = target;
      }
    }
  }
}

static void match(const cpu_args *args) {
  const unsigned char *restrict text = BYTES(0), *restrict pattern = BYTES(1);
  size_t n = args->buffers[0].size, size = args->buffers[1].size;
  uint32_t count = 0;
#pragma omp parallel for reduction(+ : count)
  for (size_t place = 0; place <= n - size; place++) {
    size_t same = 0;
    while (same < size && text[place + same] == pattern[same]) same++;
    count += same == size;
  }
  WORDS(2)[0] += count;
}

static void exp_all(const cpu_args *args) {
  const float *restrict x = FLOATS(0);
  float *restrict y = FLOATS(1);
  size_t n = COUNT(1);
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) y[i] = expf(x[i]);
}

/* A chain of dependent operations. */
static uint32_t piece(uint32_t seed, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
  }
  return seed;
}

static void pieces(uint32_t *out, int count, uint32_t rounds) {
#pragma omp parallel for
  for (int i = 0; i < count; i++) out[i] = piece((uint32_t)i + 1, rounds);
}

static void pieces_alone(uint32_t *out, int count, uint32_t rounds) {
  for (int i = 0; i < count; i++) out[i] = piece((uint32_t)i + 1, rounds);
}

static void threads(int count) {
  omp_set_num_threads(count);
}

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

extern const cpu_peer cpu_peer_table;
const cpu_peer cpu_peer_table = {
    .compiler = COMPILER,
    .threads = threads,
    .run = {saxpy, mandelbrot, reduce, softmax, matmul_naive, matmul_tiled,
            matmul_blocked, stencil, histogram, bfs, match, exp_all},
    .saxpy_alone = saxpy_alone,
    .pieces = pieces,
    .pieces_alone = pieces_alone,
};
