/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of kernels on images, grids and matrices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "public/twins.h"
#include "twins_list.h"

/* --- lud, sgemm, atax ------------------------------------------------------*/

void twin_lud(const public_args *args) {
  float *a = FLOATS(0);
  int n = NUMBER(0);
#pragma omp parallel
  for (int k = 0; k < n; k++) {
    const float *restrict pivot = a + (size_t)k * n;
#pragma omp for schedule(static)
    for (int i = k + 1; i < n; i++) {
      float *restrict row = a + (size_t)i * n;
      float factor = row[k] / pivot[k];
      row[k] = factor;
      for (int j = k + 1; j < n; j++) row[j] -= factor * pivot[j];
    }
  }
}

enum { ROWS = 32, COLUMNS = 4 };

/* Multiplies ROWS rows of A with COLUMNS rows of B in registers. */
static void sgemm_block(const float *restrict a, const float *restrict b,
                        float *restrict c, int m, int n, int k) {
  float sum[COLUMNS][ROWS] = {{0}};
  for (int i = 0; i < k; i++, a += m, b += n) {
    for (int x = 0; x < COLUMNS; x++) {
      for (int y = 0; y < ROWS; y++) sum[x][y] += a[y] * b[x];
    }
  }
  for (int x = 0; x < COLUMNS; x++, c += m) {
    for (int y = 0; y < ROWS; y++) c[y] = c[y] * .25f + .5f * sum[x][y];
  }
}

void twin_sgemm(const public_args *args) {
  int m = NUMBER(0), n = NUMBER(1), k = NUMBER(2);
#pragma omp parallel for schedule(static)
  for (int column = 0; column < n; column += COLUMNS) {
    for (int row = 0; row < m; row += ROWS) {
      sgemm_block(FLOATS(0) + row, FLOATS(1) + column,
                  FLOATS(2) + (size_t)column * m + row, m, n, k);
    }
  }
}

/* Sums in 16 parts, since the compiler must not reorder a sum. */
static float dot(const float *restrict a, const float *restrict b, int count) {
  float part[16] = {0}, sum = 0;
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int k = 0; k < 16; k++) part[k] += a[i + k] * b[i + k];
  }
  for (; i < count; i++) sum += a[i] * b[i];
  for (int k = 0; k < 16; k++) sum += part[k];
  return sum;
}

void twin_atax(const public_args *args) {
  enum { STRIP = 256 };
  int rows = NUMBER(0), columns = NUMBER(1);
  const float *a = FLOATS(0);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < rows; i++) {
    FLOATS(2)[i] = dot(a + (size_t)i * columns, FLOATS(1), columns);
  }
#pragma omp parallel for schedule(static)
  for (int first = 0; first < columns; first += STRIP) {
    int count = smaller(STRIP, columns - first);
    float sum[STRIP] = {0};
    for (int i = 0; i < rows; i++) {
      const float *restrict row = a + (size_t)i * columns + first;
      float factor = FLOATS(2)[i];
      for (int j = 0; j < count; j++) sum[j] += row[j] * factor;
    }
    memcpy(FLOATS(3) + first, sum, (size_t)count * sizeof *sum);
  }
}

/* --- conv2d, maxpool -------------------------------------------------------*/

/* Adds a row of three weights to a row of an output map. */
static void conv_row(const float *restrict in, const float *restrict w,
                     float *restrict out, int width) {
  out[0] += in[0] * w[1] + in[1] * w[2];
  for (int x = 1; x < width - 1; x++) {
    out[x] += in[x - 1] * w[0] + in[x] * w[1] + in[x + 1] * w[2];
  }
  out[width - 1] += in[width - 2] * w[0] + in[width - 1] * w[1];
}

void twin_conv2d(const public_args *args) {
  int channels = NUMBER(0), maps = NUMBER(1), side = NUMBER(2);
#pragma omp parallel for collapse(2) schedule(static)
  for (int m = 0; m < maps; m++) {
    for (int y = 0; y < side; y++) {
      float *restrict out = FLOATS(3) + ((size_t)m * side + y) * side;
      for (int x = 0; x < side; x++) out[x] = FLOATS(2)[m];
      for (int c = 0; c < channels; c++) {
        const float *w = FLOATS(1) + ((size_t)m * channels + c) * 9;
        for (int k = larger(0, 1 - y); k < smaller(3, side + 1 - y); k++) {
          const float *in = FLOATS(0) + ((size_t)c * side + y + k - 1) * side;
          conv_row(in, w + (size_t)3 * k, out, side);
        }
      }
      for (int x = 0; x < side; x++) out[x] = out[x] > 0 ? out[x] : 0;
    }
  }
}

static inline float larger_float(float a, float b) {
  return a > b ? a : b;
}

void twin_maxpool(const public_args *args) {
  int side = NUMBER(1), half = side / 2;
#pragma omp parallel for schedule(static)
  for (int row = 0; row < NUMBER(0) * half; row++) {
    int y = row % half * 2, lines = smaller(3, side - y);
    const float *in = FLOATS(0) + (size_t)(row / half * side + y) * side;
    float *restrict out = FLOATS(1) + (size_t)row * half;
    for (int x = 0; x < half; x++) out[x] = -INFINITY;
    for (int k = 0; k < lines; k++) {
      const float *restrict from = in + (size_t)k * side;
      for (int x = 0; x < half - 1; x++) {
        const float *at = from + (size_t)2 * x;
        float pair = larger_float(at[0], at[1]);
        out[x] = larger_float(out[x], larger_float(pair, at[2]));
      }
      float last = larger_float(from[side - 2], from[side - 1]);
      out[half - 1] = larger_float(out[half - 1], last);
    }
  }
}

/* --- sad -------------------------------------------------------------------*/

enum { RANGE = 16, SEARCH = 2 * RANGE + 1 };

/* Returns a copy of the image with its border repeated RANGE times. */
static uint8_t *pad(const uint8_t *from, int width, int height, int pitch) {
  int lines = height + 2 * RANGE;
  uint8_t *to = calloc((size_t)pitch, (size_t)lines);
  for (int y = 0; to && y < lines; y++) {
    int line = smaller(larger(y - RANGE, 0), height - 1);
    const uint8_t *row = from + (size_t)line * width;
    uint8_t *out = to + (size_t)y * pitch;
    memset(out, row[0], RANGE);
    memcpy(out + RANGE, row, (size_t)width);
    memset(out + RANGE + width, row[width - 1], RANGE);
  }
  return to;
}

/* Finds the sums of a block for all positions of one line. */
static void sad_line(const uint8_t *restrict block, int width,
                     const uint8_t *restrict window, int pitch,
                     uint16_t *restrict sums) {
  uint16_t sum[SEARCH] = {0};
  for (int y = 0; y < 4; y++) {
    for (int x = 0; x < 4; x++) {
      int a = block[y * width + x];
      const uint8_t *restrict b = window + (size_t)y * pitch + x;
      for (int dx = 0; dx < SEARCH; dx++) {
        sum[dx] = (uint16_t)(sum[dx] + abs(a - b[dx]));
      }
    }
  }
  memcpy(sums, sum, sizeof sum);
}

void twin_sad(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1), pitch = width + 2 * RANGE;
  uint8_t *padded = pad(BYTES(1), width, height, pitch);
  if (!padded) return;
#pragma omp parallel for schedule(static)
  for (int b = 0; b < width * height / 16; b++) {
    int x = b % (width / 4) * 4, y = b / (width / 4) * 4;
    uint16_t *sums = (uint16_t *)args->buffers[2] + (size_t)b * SEARCH * SEARCH;
    for (int dy = 0; dy < SEARCH; dy++) {
      sad_line(BYTES(0) + (size_t)y * width + x, width,
               padded + (size_t)(y + dy) * pitch + x, pitch,
               sums + (size_t)dy * SEARCH);
    }
  }
  free(padded);
}

/* --- median, stencil2d, jacobi ---------------------------------------------*/

static inline uint8_t low(uint8_t a, uint8_t b) {
  return a < b ? a : b;
}

static inline uint8_t high(uint8_t a, uint8_t b) {
  return a > b ? a : b;
}

static inline uint8_t middle(uint8_t a, uint8_t b, uint8_t c) {
  return high(low(a, b), low(high(a, b), c));
}

static inline uint8_t median_at(const uint8_t *u, const uint8_t *c,
                                const uint8_t *d, int l, int x, int r) {
  uint8_t least =
      high(high(low(low(u[l], u[x]), u[r]), low(low(c[l], c[x]), c[r])),
           low(low(d[l], d[x]), d[r]));
  uint8_t most =
      low(low(high(high(u[l], u[x]), u[r]), high(high(c[l], c[x]), c[r])),
          high(high(d[l], d[x]), d[r]));
  uint8_t mid = middle(middle(u[l], u[x], u[r]), middle(c[l], c[x], c[r]),
                       middle(d[l], d[x], d[r]));
  return middle(least, mid, most);
}

void twin_median(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    const uint8_t *restrict c = BYTES(0) + (size_t)y * width;
    const uint8_t *u = y > 0 ? c - width : c;
    const uint8_t *d = y < height - 1 ? c + width : c;
    uint8_t *restrict out = BYTES(1) + (size_t)y * width;
    out[0] = median_at(u, c, d, 0, 0, 1);
    for (int x = 1; x < width - 1; x++) {
      out[x] = median_at(u, c, d, x - 1, x, x + 1);
    }
    out[width - 1] = median_at(u, c, d, width - 2, width - 1, width - 1);
  }
}

void twin_stencil2d(const public_args *args) {
  int width = NUMBER(0), pitch = width + 2;
#pragma omp parallel for schedule(static)
  for (int y = 1; y <= NUMBER(1); y++) {
    const float *restrict c = FLOATS(0) + (size_t)y * pitch;
    const float *restrict u = c - pitch, *restrict d = c + pitch;
    float *restrict out = FLOATS(1) + (size_t)y * pitch;
    for (int x = 1; x <= width; x++) {
      float sides = u[x] + c[x - 1] + c[x + 1] + d[x];
      float corners = u[x - 1] + u[x + 1] + d[x - 1] + d[x + 1];
      out[x] = .25f * c[x] + .15f * sides + .05f * corners;
    }
  }
}

/* A strip of 16 rows, and the change of each of its tiles. */
static void jacobi_strip(const public_args *args, int first) {
  enum { B = 16 };
  int n = NUMBER(0);
  float *restrict change = FLOATS(3) + (size_t)first / B * (n / B);
  memset(change, 0, (size_t)(n / B) * sizeof *change);
  for (int y = first; y < first + B; y++) {
    const float *restrict c = FLOATS(0) + (size_t)y * n;
    const float *restrict source = FLOATS(1) + (size_t)y * n;
    float *restrict out = FLOATS(2) + (size_t)y * n;
    if (y == 0 || y == n - 1) {
      memcpy(out, c, (size_t)n * sizeof *out);
      continue;
    }
    out[0] = c[0];
    out[n - 1] = c[n - 1];
    for (int x = 1; x < n - 1; x++) {
      float sum = c[x - 1] + c[x + 1] + c[x - n] + c[x + n];
      out[x] = .25f * (sum - source[x]);
    }
    for (int tile = 0; tile < n / B; tile++) {
      float square = 0;
      for (int x = tile * B; x < (tile + 1) * B; x++) {
        square += (out[x] - c[x]) * (out[x] - c[x]);
      }
      change[tile] += square;
    }
  }
}

void twin_jacobi(const public_args *args) {
#pragma omp parallel for schedule(static)
  for (int y = 0; y < NUMBER(0); y += 16) jacobi_strip(args, y);
}

/* --- boxfilter -------------------------------------------------------------*/

static void box_row(const float *restrict from, float *restrict to, int width,
                    int radius) {
  float scale = 1 / (float)(2 * radius + 1), sum = from[0] * (float)radius;
  for (int x = 0; x <= radius; x++) sum += from[x];
  to[0] = sum * scale;
  for (int x = 1; x < width; x++) {
    sum += from[smaller(x + radius, width - 1)];
    sum -= from[larger(x - radius - 1, 0)];
    to[x] = sum * scale;
  }
}

/* Slides down STRIP columns at once. */
static void box_strip(const float *restrict from, float *restrict to, int width,
                      int height, int radius) {
  enum { STRIP = 64 };
  float scale = 1 / (float)(2 * radius + 1), sum[STRIP];
  for (int x = 0; x < STRIP; x++) sum[x] = from[x] * (float)radius;
  for (int y = 0; y <= radius; y++) {
    for (int x = 0; x < STRIP; x++) sum[x] += from[(size_t)y * width + x];
  }
  for (int x = 0; x < STRIP; x++) to[x] = sum[x] * scale;
  for (int y = 1; y < height; y++) {
    const float *add = from + (size_t)smaller(y + radius, height - 1) * width;
    const float *drop = from + (size_t)larger(y - radius - 1, 0) * width;
    for (int x = 0; x < STRIP; x++) {
      sum[x] = sum[x] + add[x] - drop[x];
      to[(size_t)y * width + x] = sum[x] * scale;
    }
  }
}

void twin_boxfilter(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1), radius = NUMBER(2);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    size_t row = (size_t)y * width;
    box_row(FLOATS(0) + row, FLOATS(1) + row, width, radius);
  }
#pragma omp parallel for schedule(static)
  for (int x = 0; x < width; x += 64) {
    box_strip(FLOATS(1) + x, FLOATS(2) + x, width, height, radius);
  }
}
