/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of kernels on signals, sums and options. */
#include <math.h>
#include <string.h>

#include "public/twins.h"
#include "twins_list.h"

void twin_triad(const public_args *args) {
  const float *restrict b = FLOATS(0), *restrict c = FLOATS(1);
  float *restrict a = FLOATS(2);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++) a[i] = b[i] + 1.75f * c[i];
}

/* --- fwht, haar ------------------------------------------------------------*/

/* Combines four runs of @p stride elements. */
static inline void butterflies(float *restrict at, int stride) {
  float *restrict s1 = at + stride, *restrict s2 = s1 + stride;
  float *restrict s3 = s2 + stride;
  for (int i = 0; i < stride; i++) {
    float a0 = at[i] + s2[i], a1 = s1[i] + s3[i];
    float a2 = at[i] - s2[i], a3 = s1[i] - s3[i];
    at[i] = a0 + a1;
    s1[i] = a0 - a1;
    s2[i] = a2 + a3;
    s3[i] = a2 - a3;
  }
}

/* Combines runs of one element: the loop over the runs is the long one. */
static void last_butterflies(float *data, int count) {
  for (int i = 0; i < count; i += 4) {
    float a0 = data[i] + data[i + 2], a1 = data[i + 1] + data[i + 3];
    float a2 = data[i] - data[i + 2], a3 = data[i + 1] - data[i + 3];
    data[i] = a0 + a1;
    data[i + 1] = a0 - a1;
    data[i + 2] = a2 + a3;
    data[i + 3] = a2 - a3;
  }
}

/* Large strides over all elements, small ones in blocks that stay in the
 * cache. */
void twin_fwht(const public_args *args) {
  enum { BLOCK = 1024, STRIP = 1024 };
  float *data = FLOATS(0);
  int count = NUMBER(0);
  for (int stride = count / 4; stride >= BLOCK; stride /= 4) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < count / 4; i += STRIP) {
      int low = i % stride;
      float *restrict s0 = data + (size_t)(i - low) * 4 + low;
      float *restrict s1 = s0 + stride, *restrict s2 = s1 + stride;
      float *restrict s3 = s2 + stride;
      for (int k = 0; k < STRIP; k++) {
        float a0 = s0[k] + s2[k], a1 = s1[k] + s3[k];
        float a2 = s0[k] - s2[k], a3 = s1[k] - s3[k];
        s0[k] = a0 + a1;
        s1[k] = a0 - a1;
        s2[k] = a2 + a3;
        s3[k] = a2 - a3;
      }
    }
  }
#pragma omp parallel for schedule(static)
  for (int b = 0; b < count; b += BLOCK) {
    for (int stride = BLOCK / 4; stride > 1; stride /= 4) {
      for (int i = 0; i < BLOCK; i += 4 * stride) {
        butterflies(data + b + i, stride);
      }
    }
    last_butterflies(data + b, BLOCK);
  }
}

void twin_haar(const public_args *args) {
  enum { N = 512 };
  const float scale = .70710678f;
#pragma omp parallel for schedule(static)
  for (int b = 0; b < NUMBER(0); b += N) {
    float a[N], next[N / 2];
    float *restrict detail = FLOATS(1) + b;
    memcpy(a, FLOATS(0) + b, sizeof a);
    for (int active = N / 2; active > 0; active /= 2) {
      for (int i = 0; i < active; i++) {
        const float *pair = a + (size_t)2 * i;
        next[i] = (pair[0] + pair[1]) * scale;
        detail[active + i] = (pair[0] - pair[1]) * scale;
      }
      memcpy(a, next, (size_t)active * sizeof *a);
    }
    detail[0] = a[0];
  }
}

/* --- reduction, binomial, knapsack -----------------------------------------*/

/* Sums the runs that a workgroup of the kernel sums. */
void twin_reduction(const public_args *args) {
  enum { RUN = 512 };
  int count = NUMBER(0), groups = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int g = 0; g < groups; g++) {
    float part[RUN / 8] = {0}, sum = 0;
    for (int i = g * RUN; i < count; i += groups * RUN) {
      for (int k = 0; k < RUN; k += RUN / 8) {
        for (int p = 0; p < RUN / 8; p++) part[p] += FLOATS(0)[i + k + p];
      }
    }
    for (int p = 0; p < RUN / 8; p++) sum += part[p];
    FLOATS(1)[g] = sum;
  }
}

void twin_binomial(const public_args *args) {
  enum { STEPS = 255 };
  const float rate = .02f, volatility = .3f;
#pragma omp parallel for schedule(static)
  for (int o = 0; o < NUMBER(0); o++) {
    float dt = FLOATS(2)[o] / STEPS, vdt = volatility * sqrtf(dt);
    float grow = expf(rate * dt), up = expf(vdt), down = expf(-vdt);
    float chance = (grow - down) / (up - down);
    float pu = chance / grow, pd = (1 - chance) / grow, call[STEPS + 1];
    for (int i = 0; i <= STEPS; i++) {
      float end = FLOATS(0)[o] * expf(vdt * (float)(2 * i - STEPS));
      call[i] = fmaxf(end - FLOATS(1)[o], 0);
    }
    for (int last = STEPS; last > 0; last--) {
      for (int i = 0; i < last; i++) call[i] = pu * call[i + 1] + pd * call[i];
    }
    FLOATS(3)[o] = call[0];
  }
}

/* Two rows, whose loop has no dependence. */
static void knapsack_rows(const uint32_t *restrict from, uint32_t *restrict to,
                          int capacity, int weight, uint32_t value) {
  memcpy(to, from, (size_t)weight * sizeof *to);
#pragma omp parallel for schedule(static)
  for (int c = weight; c <= capacity; c++) {
    uint32_t with = from[c - weight] + value;
    to[c] = with > from[c] ? with : from[c];
  }
}

void twin_knapsack(const public_args *args) {
  int capacity = NUMBER(0), items = NUMBER(1);
  uint32_t *rows[2] = {WORDS(2), WORDS(3)};
  for (int i = 0; i < items; i++) {
    knapsack_rows(rows[i & 1], rows[~i & 1], capacity, (int)WORDS(0)[i],
                  WORDS(1)[i]);
  }
}

/* --- montecarlo, sobol -----------------------------------------------------*/

static inline void philox(uint32_t c[4]) {
  uint32_t k0 = 0x1234abcdu, k1 = 0x9876fedcu;
  for (int r = 0; r < 10; r++) {
    uint64_t p = (uint64_t)c[0] * 0xd2511f53u;
    uint64_t q = (uint64_t)c[2] * 0xcd9e8d57u;
    c[0] = (uint32_t)(q >> 32) ^ c[1] ^ k0;
    c[2] = (uint32_t)(p >> 32) ^ c[3] ^ k1;
    c[1] = (uint32_t)q;
    c[3] = (uint32_t)p;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
}

void twin_montecarlo(const public_args *args) {
  enum { PATHS = 128 * 32 };
  const float drift = .015f, spread = .3f;
#pragma omp parallel for schedule(static)
  for (int o = 0; o < NUMBER(0); o++) {
    float s = FLOATS(0)[o], x = FLOATS(1)[o], sum = 0;
    for (uint32_t path = 0; path < PATHS; path++) {
      uint32_t c[4] = {path, (uint32_t)o, 0, 0};
      philox(c);
      float u = ((float)(c[0] >> 9) + .5f) / 8388608;
      float angle = (float)(c[1] >> 8) * 3.7450704e-7f;
      float radius = sqrtf(-2 * logf(u));
      sum += fmaxf(s * expf(drift + spread * (radius * cosf(angle))) - x, 0);
      sum += fmaxf(s * expf(drift + spread * (radius * sinf(angle))) - x, 0);
    }
    FLOATS(2)[o] = sum;
  }
}

/* Number i from number i - 1, by one direction. */
void twin_sobol(const public_args *args) {
  int count = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int d = 0; d < NUMBER(0); d++) {
    const uint32_t *v = WORDS(0) + (size_t)d * 32;
    float *restrict out = FLOATS(1) + (size_t)d * count;
    uint32_t x = 0;
    out[0] = 0;
    for (int i = 1; i < count; i++) {
      x ^= v[__builtin_ctz((uint32_t)i)];
      out[i] = (float)x * 2.3283064e-10f;
    }
  }
}
