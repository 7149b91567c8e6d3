/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of kernels from linear algebra, physics and machine learning. */
#include <math.h>
#include <stdlib.h>

#include "twins.h"
#include "twins_list.h"

void twin_gaussian(const public_args *args) {
  float *restrict m = FLOATS(0), *restrict a = FLOATS(1),
                  *restrict b = FLOATS(2);
  int n = NUMBER(0);
#pragma omp parallel
  for (int t = 0; t < n - 1; t++) {
    const float *restrict pivot = a + (size_t)t * n;
#pragma omp for schedule(static)
    for (int i = t + 1; i < n; i++) {
      float *restrict row = a + (size_t)i * n;
      float factor = m[(size_t)i * n + t] = row[t] / pivot[t];
      for (int j = t; j < n; j++) row[j] -= factor * pivot[j];
      b[i] -= factor * b[t];
    }
  }
}

void twin_spmv(const public_args *args) {
  const float *restrict value = FLOATS(0), *restrict x = FLOATS(3);
  const int32_t *restrict column = INTS(1), *restrict start = INTS(2);
  float *restrict y = FLOATS(4);
#pragma omp parallel for schedule(static)
  for (int r = 0; r < NUMBER(0); r++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int j = start[r]; j < start[r + 1]; j++)
      sum += value[j] * x[column[j]];
    y[r] = sum;
  }
}

void twin_nbody(const public_args *args) {
  const float *restrict body = FLOATS(0);
  float *restrict out = FLOATS(1);
  int n = NUMBER(0);
  float *x = malloc((size_t)n * 4 * sizeof *x), *y = x + n, *z = y + n;
  float *mass = z + n;
  if (!x) return;
  for (int i = 0; i < n; i++) {
    x[i] = body[4 * i];
    y[i] = body[4 * i + 1];
    z[i] = body[4 * i + 2];
    mass[i] = body[4 * i + 3];
  }
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
    for (int j = 0; j < n; j++) {
      float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
      float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + .01f);
      float scale = mass[j] * (inverse * inverse * inverse);
      ax += dx * scale;
      ay += dy * scale;
      az += dz * scale;
    }
    out[4 * i] = ax;
    out[4 * i + 1] = ay;
    out[4 * i + 2] = az;
    out[4 * i + 3] = 0;
  }
  free(x);
}

void twin_layernorm(const public_args *args) {
  const float *restrict gamma = FLOATS(1), *restrict beta = FLOATS(2);
  int n = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int r = 0; r < NUMBER(0); r++) {
    const float *restrict x = FLOATS(0) + (size_t)r * n;
    float *restrict y = FLOATS(3) + (size_t)r * n;
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
    for (int i = 0; i < n; i++) {
      sum += x[i];
      squares += x[i] * x[i];
    }
    float mean = sum / (float)n;
    float scale = 1 / sqrtf(squares / (float)n - mean * mean + 1e-5f);
    for (int i = 0; i < n; i++)
      y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
  }
}

/* --- attention -------------------------------------------------------------*/

enum { DEPTH = 32, TILE = 64 };

/* Softmax state of one query: maximum, sum, weighted values. */
typedef struct query {
  float scaled[DEPTH], values[DEPTH], most, sum;
} query;

static void attend_tile(query *q, const float *restrict keys,
                        const float *restrict values) {
  float score[TILE], most = q->most;
  for (int j = 0; j < TILE; j++) {
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int d = 0; d < DEPTH; d++) dot += q->scaled[d] * keys[j * DEPTH + d];
    score[j] = dot;
  }
  for (int j = 0; j < TILE; j++) most = score[j] > most ? score[j] : most;
  float fix = expf(q->most - most);
  q->sum *= fix;
  for (int d = 0; d < DEPTH; d++) q->values[d] *= fix;
  q->most = most;
#pragma omp simd
  for (int j = 0; j < TILE; j++) score[j] = expf(score[j] - most);
  for (int j = 0; j < TILE; j++) {
    q->sum += score[j];
    for (int d = 0; d < DEPTH; d++) {
      q->values[d] += score[j] * values[j * DEPTH + d];
    }
  }
}

void twin_attention(const public_args *args) {
  int n = NUMBER(0), heads = NUMBER(1);
#pragma omp parallel for schedule(static) collapse(2)
  for (int h = 0; h < heads; h++) {
    for (int i = 0; i < n; i++) {
      size_t head = (size_t)h * n * DEPTH, row = head + (size_t)i * DEPTH;
      query q = {.most = -INFINITY};
      for (int d = 0; d < DEPTH; d++) {
        q.scaled[d] = FLOATS(0)[row + d] * .17677669f;
      }
      for (int t = 0; t < n; t += TILE) {
        attend_tile(&q, FLOATS(1) + head + (size_t)t * DEPTH,
                    FLOATS(2) + head + (size_t)t * DEPTH);
      }
      for (int d = 0; d < DEPTH; d++) FLOATS(3)[row + d] = q.values[d] / q.sum;
    }
  }
}

/* --- fft512 ----------------------------------------------------------------*/

enum { LANES = 64, RADIX = 8 };

static const int reversed[RADIX] = {0, 4, 2, 6, 1, 5, 3, 7};

typedef struct fft {
  float re[RADIX][LANES], im[RADIX][LANES];
} fft;

static inline void butterfly(fft *f, int a, int b, int t) {
  float re = f->re[a][t], im = f->im[a][t];
  f->re[a][t] = re + f->re[b][t];
  f->im[a][t] = im + f->im[b][t];
  f->re[b][t] = re - f->re[b][t];
  f->im[b][t] = im - f->im[b][t];
}

/* Multiplies by -i. */
static inline void quarter_turn(fft *f, int a, int t) {
  float re = f->re[a][t];
  f->re[a][t] = f->im[a][t];
  f->im[a][t] = -re;
}

static inline void eighth_turns(fft *f, int t) {
  const float half = .70710678f;
  float re = f->re[5][t], im = f->im[5][t];
  f->re[5][t] = half * (re + im);
  f->im[5][t] = half * (im - re);
  re = f->re[7][t];
  im = f->im[7][t];
  f->re[7][t] = half * (im - re);
  f->im[7][t] = half * (-re - im);
}

static void fft_radix8(fft *f) {
  for (int t = 0; t < LANES; t++) {
    for (int k = 0; k < 4; k++) butterfly(f, k, k + 4, t);
    eighth_turns(f, t);
    quarter_turn(f, 6, t);
    butterfly(f, 0, 2, t);
    butterfly(f, 1, 3, t);
    quarter_turn(f, 3, t);
    butterfly(f, 0, 1, t);
    butterfly(f, 2, 3, t);
    butterfly(f, 4, 6, t);
    butterfly(f, 5, 7, t);
    quarter_turn(f, 7, t);
    butterfly(f, 4, 5, t);
    butterfly(f, 6, 7, t);
  }
}

static void fft_twiddle(fft *f, const fft *factors) {
  for (int k = 1; k < RADIX; k++) {
    for (int t = 0; t < LANES; t++) {
      float re = f->re[k][t], im = f->im[k][t];
      float c = factors->re[k][t], s = factors->im[k][t];
      f->re[k][t] = re * c - im * s;
      f->im[k][t] = re * s + im * c;
    }
  }
}

/* Exchanges elements between lanes, as the kernel does in shared memory. */
static void fft_exchange(fft *f, int stage) {
  fft old = *f;
  for (int k = 0; k < RADIX; k++) {
    for (int high = 0; high < RADIX; high++) {
      for (int low = 0; low < RADIX; low++) {
        int from = reversed[stage == 0 ? low : high];
        int lane = k * RADIX + (stage == 0 ? high : low);
        f->re[k][high * RADIX + low] = old.re[from][lane];
        f->im[k][high * RADIX + low] = old.im[from][lane];
      }
    }
  }
}

/* Computes the factors of a stage in single precision. */
static void fft_factors(fft *factors, int stage) {
  const float turn = -6.28318530717958647693f;
  for (int k = 1; k < RADIX; k++) {
    float step = (float)reversed[k] * turn / (stage == 0 ? 512.f : 64.f);
    for (int t = 0; t < LANES; t++) {
      float angle = (float)(stage == 0 ? t : t / RADIX) * step;
      factors->re[k][t] = cosf(angle);
      factors->im[k][t] = sinf(angle);
    }
  }
}

/* Transforms 512 points. Without a table, computes the factors as it goes. */
static void fft_one(float *points, const fft *table) {
  fft f, own;
  for (int k = 0; k < RADIX; k++) {
    for (int t = 0; t < LANES; t++) {
      f.re[k][t] = points[(k * LANES + t) * 2];
      f.im[k][t] = points[(k * LANES + t) * 2 + 1];
    }
  }
  for (int stage = 0; stage < 3; stage++) {
    fft_radix8(&f);
    if (stage == 2) break;
    if (!table) fft_factors(&own, stage);
    fft_twiddle(&f, table ? &table[stage] : &own);
    fft_exchange(&f, stage);
  }
  for (int k = 0; k < RADIX; k++) {
    for (int t = 0; t < LANES; t++) {
      points[(k * LANES + t) * 2] = f.re[reversed[k]][t];
      points[(k * LANES + t) * 2 + 1] = f.im[reversed[k]][t];
    }
  }
}

void twin_fft512(const public_args *args) {
  static fft table[2];
  static int is_made;
  if (!is_made) {
    for (int stage = 0; stage < 2; stage++) fft_factors(&table[stage], stage);
    is_made = 1;
  }
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++)
    fft_one(FLOATS(0) + (size_t)i * 1024, table);
}

void twin_fft512_same(const public_args *args) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++)
    fft_one(FLOATS(0) + (size_t)i * 1024, NULL);
}
