/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of the held-out kernels: C with OpenMP, as one would write it for
 * processors. */
#include "public/twins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "public/table.h"

/* --- srad ------------------------------------------------------------------*/

/* Buffers 2 to 5 are the differences to the neighbours: north, south, west,
 * east. */
static void srad_coefficients(const public_args *args, float q0) {
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    size_t row = (size_t)y * width;
    const float *restrict j = FLOATS(0) + row;
    const float *up = y > 0 ? j - width : j;
    const float *down = y < height - 1 ? j + width : j;
    float *restrict c = FLOATS(1) + row;
    float *restrict dn = FLOATS(2) + row, *restrict ds = FLOATS(3) + row;
    float *restrict dw = FLOATS(4) + row, *restrict de = FLOATS(5) + row;
    for (int x = 0; x < width; x++) {
      float here = j[x], n = up[x] - here, s = down[x] - here;
      float w = j[larger(x - 1, 0)] - here;
      float e = j[smaller(x + 1, width - 1)] - here;
      float g2 = (n * n + s * s + w * w + e * e) / (here * here);
      float l = (n + s + w + e) / here, den = 1 + .25f * l;
      float q = (.5f * g2 - 1 / 16.f * (l * l)) / (den * den);
      float value = 1 / (1 + (q - q0) / (q0 * (1 + q0)));
      c[x] = value < 0 ? 0 : value > 1 ? 1 : value;
      dn[x] = n;
      ds[x] = s;
      dw[x] = w;
      de[x] = e;
    }
  }
}

static void srad_update(const public_args *args, float lambda) {
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    size_t row = (size_t)y * width;
    const float *restrict c = FLOATS(1) + row;
    const float *down = y < height - 1 ? c + width : c;
    const float *restrict dn = FLOATS(2) + row, *restrict ds = FLOATS(3) + row;
    const float *restrict dw = FLOATS(4) + row, *restrict de = FLOATS(5) + row;
    float *restrict j = FLOATS(0) + row;
    for (int x = 0; x < width; x++) {
      float east = c[smaller(x + 1, width - 1)];
      float d = c[x] * dn[x] + down[x] * ds[x] + c[x] * dw[x] + east * de[x];
      j[x] += .25f * lambda * d;
    }
  }
}

static void srad(const public_args *args) {
  for (int i = 0; i < NUMBER(2); i++) {
    srad_coefficients(args, .05f);
    srad_update(args, .5f);
  }
}

/* --- kmeans ----------------------------------------------------------------*/

enum { POINTS = 256 };

/* Measures many points at once, so that the inner loop is contiguous. */
static void assign(const float *restrict feature, const float *restrict centers,
                   int32_t *restrict member, int stride, int count,
                   int clusters, int features) {
  float best[POINTS], distance[POINTS];
  for (int p = 0; p < count; p++) best[p] = INFINITY;
  for (int k = 0; k < clusters; k++) {
    for (int p = 0; p < count; p++) distance[p] = 0;
    for (int f = 0; f < features; f++) {
      const float *restrict from = feature + (size_t)f * stride;
      float center = centers[k * features + f];
      for (int p = 0; p < count; p++) {
        float difference = from[p] - center;
        distance[p] += difference * difference;
      }
    }
    for (int p = 0; p < count; p++) {
      int is_nearer = distance[p] < best[p];
      best[p] = is_nearer ? distance[p] : best[p];
      member[p] = is_nearer ? k : member[p];
    }
  }
}

static void kmeans(const public_args *args) {
  int points = NUMBER(0);
#pragma omp parallel for schedule(static)
  for (int p = 0; p < points; p += POINTS) {
    assign(FLOATS(0) + p, FLOATS(1), INTS(2) + p, points,
           smaller(POINTS, points - p), NUMBER(1), NUMBER(2));
  }
}

/* --- nw --------------------------------------------------------------------*/

static void align_tile(const int32_t *reference, int32_t *items, int columns,
                       int penalty, int x0, int y0, int side) {
  for (int y = y0; y < y0 + side; y++) {
    const int32_t *restrict match = reference + (size_t)y * columns;
    const int32_t *restrict above = items + (size_t)(y - 1) * columns;
    int32_t *restrict row = items + (size_t)y * columns;
    for (int x = x0; x < x0 + side; x++) {
      int gap = larger(row[x - 1], above[x]) - penalty;
      row[x] = larger(above[x - 1] + match[x], gap);
    }
  }
}

static void nw(const public_args *args) {
  enum { SIDE = 64 };
  int columns = NUMBER(0), penalty = NUMBER(1), tiles = (columns - 1) / SIDE;
#pragma omp parallel
  for (int diagonal = 0; diagonal < 2 * tiles - 1; diagonal++) {
    int first = larger(0, diagonal - tiles + 1);
    int last = smaller(diagonal, tiles - 1);
#pragma omp for schedule(static)
    for (int tile = first; tile <= last; tile++) {
      align_tile(INTS(0), INTS(1), columns, penalty, 1 + tile * SIDE,
                 1 + (diagonal - tile) * SIDE, SIDE);
    }
  }
}

/* --- backprop --------------------------------------------------------------*/

enum { HIDDEN = 16 };

/* Buffers: inputs, weights, partial sums, deltas, old weights. */
static void backprop(const public_args *args) {
  int blocks = NUMBER(0) / HIDDEN;
  const float *restrict inputs = FLOATS(0) + 1;
#pragma omp parallel for schedule(static)
  for (int b = 0; b < blocks; b++) {
    float sum[HIDDEN] = {0};
    for (int i = 0; i < HIDDEN; i++) {
      int unit = b * HIDDEN + i;
      const float *restrict w =
          FLOATS(1) + (size_t)(unit + 1) * (HIDDEN + 1) + 1;
      for (int h = 0; h < HIDDEN; h++) sum[h] += w[h] * inputs[unit];
    }
    memcpy(FLOATS(2) + (size_t)b * HIDDEN, sum, sizeof sum);
  }
#pragma omp parallel for schedule(static)
  for (int unit = 0; unit < NUMBER(0); unit++) {
    size_t row = (size_t)(unit + 1) * (HIDDEN + 1) + 1;
    const float *restrict delta = FLOATS(3) + 1;
    float *restrict w = FLOATS(1) + row, *restrict old = FLOATS(4) + row;
    for (int h = 0; h < HIDDEN; h++) {
      float change = .3f * delta[h] * inputs[unit] + .3f * old[h];
      w[h] += change;
      old[h] = change;
    }
  }
}

/* --- stencil3d, mriq, tpacf ------------------------------------------------*/

static void stencil3d(const public_args *args) {
  int nx = NUMBER(0), ny = NUMBER(1), nz = NUMBER(2);
  const float c0 = 6, c1 = 1;
#pragma omp parallel for schedule(static)
  for (int k = 1; k < nz - 1; k++) {
    for (int j = 1; j < ny - 1; j++) {
      size_t row = (size_t)nx * ((size_t)j + (size_t)ny * k);
      size_t plane = (size_t)nx * ny;
      const float *restrict a = FLOATS(0) + row;
      float *restrict out = FLOATS(1) + row;
      for (int i = 1; i < nx - 1; i++) {
        out[i] = (a[i + plane] + a[i - plane] + a[i + nx] + a[i - nx] +
                  a[i + 1] + a[i - 1]) *
                     c1 -
                 a[i] * c0;
      }
    }
  }
}

static void mriq(const public_args *args) {
  const float *restrict samples = FLOATS(0);
  const float *restrict x = FLOATS(1), *restrict y = FLOATS(2);
  const float *restrict z = FLOATS(3);
  int count = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++) {
    float re = 0, im = 0;
    for (int k = 0; k < count; k++) {
      const float *s = samples + (size_t)k * 4;
      float angle =
          6.2831853071795864769f * (s[0] * x[i] + s[1] * y[i] + s[2] * z[i]);
      re += s[3] * cosf(angle);
      im += s[3] * sinf(angle);
    }
    FLOATS(4)[i] = re;
    FLOATS(5)[i] = im;
  }
}

enum { BINS = 20 };

static int find_bin(const float *limits, float dot) {
  int low = 0, high = BINS;
  while (high > low + 1) {
    int middle = (low + high) / 2;
    if (dot >= limits[middle]) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

static void tpacf(const public_args *args) {
  const float *points = FLOATS(0), *limits = FLOATS(1);
  uint32_t *bins = WORDS(2);
  int count = NUMBER(0);
#pragma omp parallel for schedule(dynamic, 32) reduction(+ : bins[ : BINS])
  for (int i = 0; i < count; i++) {
    const float *p = points + (size_t)i * 3;
    for (int j = i + 1; j < count; j++) {
      const float *q = points + (size_t)j * 3;
      bins[find_bin(limits, p[0] * q[0] + p[1] * q[1] + p[2] * q[2])]++;
    }
  }
}

/* --- blackscholes ----------------------------------------------------------*/

static inline float normal(float d) {
  float k = 1 / (1 + .2316419f * fabsf(d));
  float poly = 1.781477937f + k * (-1.821255978f + k * 1.330274429f);
  poly = k * (.31938153f + k * (-.356563782f + k * poly));
  float value = .39894228040143267794f * expf(-.5f * d * d) * poly;
  return d > 0 ? 1 - value : value;
}

static void blackscholes(const public_args *args) {
  const float *restrict price = FLOATS(0), *restrict strike = FLOATS(1);
  const float *restrict years = FLOATS(2);
  float *restrict call = FLOATS(3), *restrict put = FLOATS(4);
  const float rate = .02f, volatility = .3f;
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++) {
    float root = volatility * sqrtf(years[i]);
    float drift = (rate + .5f * volatility * volatility) * years[i];
    float d1 = (logf(price[i] / strike[i]) + drift) / root;
    float n1 = normal(d1), n2 = normal(d1 - root);
    float discounted = strike[i] * expf(-rate * years[i]);
    call[i] = price[i] * n1 - discounted * n2;
    put[i] = discounted * (1 - n2) - price[i] * (1 - n1);
  }
}

/* --- sobel, bilateral ------------------------------------------------------*/

static void sobel(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int y = 1; y < height - 1; y++) {
    const uint8_t *restrict c = BYTES(0) + (size_t)y * width;
    const uint8_t *restrict u = c - width, *restrict d = c + width;
    uint8_t *restrict out = BYTES(1) + (size_t)y * width;
    for (int x = 1; x < width - 1; x++) {
      int gx = u[x + 1] + 2 * c[x + 1] + d[x + 1] - u[x - 1] - 2 * c[x - 1] -
               d[x - 1];
      int gy = d[x - 1] + 2 * d[x] + d[x + 1] - u[x - 1] - 2 * u[x] - u[x + 1];
      float length = sqrtf((float)(gx * gx + gy * gy));
      out[x] = (uint8_t)(length < 255 ? length : 255);
    }
  }
}

enum { RADIUS = 3 };

static void bilateral(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1);
  const float *restrict from = FLOATS(0), *restrict gauss = FLOATS(2);
  float *restrict to = FLOATS(1);
  const float scale = 8;
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      float center = from[(size_t)y * width + x], sum = 0, weights = 0;
      for (int dy = -RADIUS; dy <= RADIUS; dy++) {
        int cy = smaller(larger(y + dy, 0), height - 1);
        for (int dx = -RADIUS; dx <= RADIUS; dx++) {
          int cx = smaller(larger(x + dx, 0), width - 1);
          float value = from[(size_t)cy * width + cx], diff = value - center;
          float weight = gauss[dy + RADIUS] * gauss[dx + RADIUS] *
                         expf(-(diff * diff) * scale);
          sum += weight * value;
          weights += weight;
        }
      }
      to[(size_t)y * width + x] = sum / weights;
    }
  }
}

/* --- scan, floyd -----------------------------------------------------------*/

/* Each thread sums its part, then scans it. */
static void scan(const public_args *args) {
  const uint32_t *restrict data = WORDS(0);
  uint32_t *restrict result = WORDS(1), starts[257] = {0};
  int count = NUMBER(0);
#pragma omp parallel num_threads(smaller(omp_get_max_threads(), 256))
  {
    int threads = omp_get_num_threads(), me = omp_get_thread_num();
    int first = (int)((int64_t)count * me / threads);
    int end = (int)((int64_t)count * (me + 1) / threads);
    uint32_t sum = 0;
    if (threads > 1) {
      for (int i = first; i < end; i++) sum += data[i];
      starts[me + 1] = sum;
#pragma omp barrier
#pragma omp single
      for (int t = 0; t < threads; t++) starts[t + 1] += starts[t];
    }
    sum = starts[me];
    for (int i = first; i < end; i++) {
      uint32_t value = data[i];
      result[i] = sum;
      sum += value;
    }
  }
}

enum { SCANNED = 512 };

/* Sums in a tree, up and down, in place. Returns the sum of all. */
static uint32_t scan_tree(uint32_t *tree) {
  for (int stride = 1; stride < SCANNED; stride *= 2) {
    for (int i = 2 * stride - 1; i < SCANNED; i += 2 * stride) {
      tree[i] += tree[i - stride];
    }
  }
  uint32_t sum = tree[SCANNED - 1];
  tree[SCANNED - 1] = 0;
  for (int stride = SCANNED / 2; stride > 0; stride /= 2) {
    for (int i = 2 * stride - 1; i < SCANNED; i += 2 * stride) {
      uint32_t old = tree[i - stride];
      tree[i - stride] = tree[i];
      tree[i] += old;
    }
  }
  return sum;
}

static void scan_same(const public_args *args) {
  const uint32_t *data = WORDS(0);
  uint32_t *result = WORDS(1), *sums = WORDS(2), sum = 0;
  int blocks = NUMBER(0) / SCANNED;
#pragma omp parallel for schedule(static)
  for (int b = 0; b < blocks; b++) {
    uint32_t tree[SCANNED];
    memcpy(tree, data + (size_t)b * SCANNED, sizeof tree);
    sums[b] = scan_tree(tree);
    memcpy(result + (size_t)b * SCANNED, tree, sizeof tree);
  }
  for (int b = 0; b < blocks; b++) {
    uint32_t own = sums[b];
    sums[b] = sum;
    sum += own;
  }
#pragma omp parallel for schedule(static)
  for (int b = 0; b < blocks; b++) {
    for (int i = 0; i < SCANNED; i++) result[b * SCANNED + i] += sums[b];
  }
}

static void floyd(const public_args *args) {
  int32_t *distance = INTS(0);
  int n = NUMBER(0);
#pragma omp parallel
  for (int k = 0; k < n; k++) {
    const int32_t *restrict through = distance + (size_t)k * n;
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++) {
      if (i == k) continue; /* this row does not change */
      int32_t *restrict row = distance + (size_t)i * n;
      int32_t start = row[k];
      for (int j = 0; j < n; j++) row[j] = smaller(row[j], start + through[j]);
    }
  }
}

static const public_twin twins[] = {
    {"backprop", backprop},
    {"bilateral", bilateral},
    {"blackscholes", blackscholes},
    {"floyd", floyd},
    {"kmeans", kmeans},
    {"mriq", mriq},
    {"nw", nw},
    {"scan", scan},
    {"scan_same", scan_same},
    {"sobel", sobel},
    {"srad", srad},
    {"stencil3d", stencil3d},
    {"tpacf", tpacf},
};

PUBLIC_PEER_TABLE
