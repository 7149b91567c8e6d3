/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of kernels on grids and images. */
#include <math.h>
#include <string.h>

#include "twins.h"
#include "twins_list.h"

/* --- hotspot ---------------------------------------------------------------*/

static const float AMBIENT = 80, CAP = .01f, RX = .1f, RY = .1f, RZ = .05f;

static inline float heat(float c, float n, float s, float w, float e, float p) {
  return c + CAP * (p + (s + n - 2 * c) * RY + (e + w - 2 * c) * RX +
                    (AMBIENT - c) * RZ);
}

static void heat_step(const float *restrict from, float *restrict to,
                      const float *restrict power, int width, int height) {
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    const float *n = from + (size_t)larger(y - 1, 0) * width;
    const float *c = from + (size_t)y * width;
    const float *s = from + (size_t)smaller(y + 1, height - 1) * width;
    const float *p = power + (size_t)y * width;
    float *out = to + (size_t)y * width;
    int last = width - 1;
    out[0] = heat(c[0], n[0], s[0], c[0], c[1], p[0]);
    for (int x = 1; x < last; x++) {
      out[x] = heat(c[x], n[x], s[x], c[x - 1], c[x + 1], p[x]);
    }
    out[last] = heat(c[last], n[last], s[last], c[last - 1], c[last], p[last]);
  }
}

/* One step per sweep over the image. */
void twin_hotspot(const public_args *args) {
  float *from = FLOATS(1), *to = FLOATS(2);
  for (int i = 0; i < NUMBER(2); i++) {
    heat_step(from, to, FLOATS(0), NUMBER(0), NUMBER(1));
    float *old = from;
    from = to;
    to = old;
  }
}

/* Two steps per sweep, in overlapping tiles. */
enum { TILE = 16, STEPS = 2, INNER = TILE - 2 * STEPS };

typedef struct heat_tile {
  float now[TILE][TILE], next[TILE][TILE], power[TILE][TILE];
  int x0, y0, xmin, xmax, ymin, ymax;
} heat_tile;

static void heat_load(heat_tile *t, const float *from, const float *power,
                      int width) {
  for (int y = t->ymin; y <= t->ymax; y++) {
    size_t row = (size_t)(t->y0 + y) * width + t->x0;
    for (int x = t->xmin; x <= t->xmax; x++) {
      t->now[y][x] = from[row + x];
      t->power[y][x] = power[row + x];
    }
  }
}

static void heat_advance(heat_tile *t, int step) {
  int left = larger(step + 1, t->xmin), top = larger(step + 1, t->ymin);
  int right = smaller(TILE - step - 2, t->xmax);
  int bottom = smaller(TILE - step - 2, t->ymax);
  for (int y = top; y <= bottom; y++) {
    const float *n = t->now[larger(y - 1, t->ymin)], *c = t->now[y];
    const float *s = t->now[smaller(y + 1, t->ymax)];
    for (int x = left; x <= right; x++) {
      t->next[y][x] = heat(c[x], n[x], s[x], c[larger(x - 1, t->xmin)],
                           c[smaller(x + 1, t->xmax)], t->power[y][x]);
    }
  }
  if (step == STEPS - 1) return;
  for (int y = top; y <= bottom; y++) {
    for (int x = left; x <= right; x++) t->now[y][x] = t->next[y][x];
  }
}

static void heat_store(const heat_tile *t, float *to, int width) {
  int right = smaller(TILE - STEPS - 1, t->xmax);
  int bottom = smaller(TILE - STEPS - 1, t->ymax);
  for (int y = larger(STEPS, t->ymin); y <= bottom; y++) {
    float *row = to + (size_t)(t->y0 + y) * width + t->x0;
    for (int x = larger(STEPS, t->xmin); x <= right; x++)
      row[x] = t->next[y][x];
  }
}

void twin_hotspot_same(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1);
  int across = (width + INNER - 1) / INNER, down = (height + INNER - 1) / INNER;
  float *from = FLOATS(1), *to = FLOATS(2);
  for (int i = 0; i < NUMBER(2); i += STEPS) {
#pragma omp parallel for schedule(static)
    for (int by = 0; by < down; by++) {
      for (int bx = 0; bx < across; bx++) {
        heat_tile t;
        t.x0 = bx * INNER - STEPS;
        t.y0 = by * INNER - STEPS;
        t.xmin = larger(0, -t.x0);
        t.ymin = larger(0, -t.y0);
        t.xmax = smaller(TILE - 1, width - 1 - t.x0);
        t.ymax = smaller(TILE - 1, height - 1 - t.y0);
        heat_load(&t, from, FLOATS(0), width);
        for (int step = 0; step < STEPS; step++) heat_advance(&t, step);
        heat_store(&t, to, width);
      }
    }
    float *old = from;
    from = to;
    to = old;
  }
}

/* --- pathfinder ------------------------------------------------------------*/

void twin_pathfinder(const public_args *args) {
  const int32_t *walls = INTS(0);
  int32_t *from = INTS(1), *to = INTS(2);
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel firstprivate(from, to)
  for (int y = 0; y < height; y++) {
    const int32_t *restrict wall = walls + (size_t)y * width;
    const int32_t *restrict old = from;
    int32_t *restrict made = to;
#pragma omp for schedule(static)
    for (int x = 0; x < width; x++) {
      int best = old[x];
      if (x > 0) best = smaller(best, old[x - 1]);
      if (x < width - 1) best = smaller(best, old[x + 1]);
      made[x] = best + wall[x];
    }
    int32_t *swap = from;
    from = to;
    to = swap;
  }
}

enum { BLOCK = 256, ROWS = 10, KEPT = BLOCK - 2 * ROWS };

static void path_block(const int32_t *walls, const int32_t *from, int32_t *to,
                       int width, int block) {
  int32_t old[BLOCK], made[BLOCK];
  int x0 = block * KEPT - ROWS;
  int xmin = larger(0, -x0), xmax = smaller(BLOCK - 1, width - 1 - x0);
  for (int x = xmin; x <= xmax; x++) old[x] = from[x0 + x];
  for (int i = 0; i < ROWS; i++) {
    const int32_t *wall = walls + (size_t)i * width + x0;
    int left = larger(i + 1, xmin), right = smaller(BLOCK - i - 2, xmax);
    for (int x = left; x <= right; x++) {
      int best = smaller(old[larger(x - 1, xmin)], old[x]);
      made[x] = smaller(best, old[smaller(x + 1, xmax)]) + wall[x];
    }
    for (int x = left; x <= right; x++) old[x] = made[x];
  }
  int right = smaller(BLOCK - ROWS - 1, xmax);
  for (int x = larger(ROWS, xmin); x <= right; x++) to[x0 + x] = made[x];
}

/* Ten rows per sweep, in overlapping blocks. */
void twin_pathfinder_same(const public_args *args) {
  int width = NUMBER(0), blocks = (width + KEPT - 1) / KEPT;
  int32_t *from = INTS(1), *to = INTS(2);
  for (int y = 0; y < NUMBER(1); y += ROWS) {
#pragma omp parallel for schedule(static)
    for (int block = 0; block < blocks; block++) {
      path_block(INTS(0) + (size_t)y * width, from, to, width, block);
    }
    int32_t *swap = from;
    from = to;
    to = swap;
  }
}

/* --- life ------------------------------------------------------------------*/

static inline uint8_t alive(uint8_t neighbours, uint8_t self) {
  return (uint8_t)((neighbours == 3) | ((neighbours == 2) & self));
}

void twin_life(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1);
  const uint8_t *now = BYTES(0);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    const uint8_t *u = now + (size_t)(y ? y - 1 : height - 1) * width;
    const uint8_t *c = now + (size_t)y * width;
    const uint8_t *d = now + (size_t)(y < height - 1 ? y + 1 : 0) * width;
    uint8_t *restrict then = BYTES(1) + (size_t)y * width;
    int last = width - 1;
    then[0] = alive((uint8_t)(u[last] + u[0] + u[1] + c[last] + c[1] + d[last] +
                              d[0] + d[1]),
                    c[0]);
    for (int x = 1; x < last; x++) {
      uint8_t n = (uint8_t)(u[x - 1] + u[x] + u[x + 1] + c[x - 1] + c[x + 1] +
                            d[x - 1] + d[x] + d[x + 1]);
      then[x] = alive(n, c[x]);
    }
    then[last] = alive((uint8_t)(u[last - 1] + u[last] + u[0] + c[last - 1] +
                                 c[0] + d[last - 1] + d[last] + d[0]),
                       c[last]);
  }
}

/* --- transpose, convsep, dct8x8 --------------------------------------------*/

void twin_transpose(const public_args *args) {
  const float *restrict from = FLOATS(0);
  float *restrict to = FLOATS(1);
  int width = NUMBER(0), height = NUMBER(1);
  enum { SIDE = 32 };
#pragma omp parallel for schedule(static)
  for (int x0 = 0; x0 < width; x0 += SIDE) {
    for (int y0 = 0; y0 < height; y0 += SIDE) {
      for (int x = x0; x < smaller(x0 + SIDE, width); x++) {
        for (int y = y0; y < smaller(y0 + SIDE, height); y++) {
          to[(size_t)x * height + y] = from[(size_t)y * width + x];
        }
      }
    }
  }
}

enum { RADIUS = 8 };

static float blur_edge(const float *row, const float *taps, int x, int width) {
  float sum = 0;
  for (int j = -RADIUS; j <= RADIUS; j++) {
    if (x + j >= 0 && x + j < width) sum += taps[RADIUS - j] * row[x + j];
  }
  return sum;
}

static void blur_row(const float *restrict row, float *restrict out,
                     const float *restrict taps, int width) {
  for (int x = 0; x < RADIUS; x++) out[x] = blur_edge(row, taps, x, width);
  for (int x = RADIUS; x < width - RADIUS; x++) {
    float sum = 0;
    for (int j = -RADIUS; j <= RADIUS; j++) {
      sum += taps[RADIUS - j] * row[x + j];
    }
    out[x] = sum;
  }
  for (int x = width - RADIUS; x < width; x++) {
    out[x] = blur_edge(row, taps, x, width);
  }
}

enum { STRIP = 256 };

/* Adds whole strips of rows, so that the inner loop is contiguous. */
static void blur_strip(const float *restrict from, float *restrict to,
                       const float *restrict taps, int y, int width,
                       int height) {
  float sum[STRIP] = {0};
  for (int j = -RADIUS; j <= RADIUS; j++) {
    if (y + j < 0 || y + j >= height) continue;
    float tap = taps[RADIUS - j];
    const float *restrict row = from + (size_t)(y + j) * width;
    for (int x = 0; x < STRIP; x++) sum[x] += tap * row[x];
  }
  for (int x = 0; x < STRIP; x++) to[x] = sum[x];
}

void twin_convsep(const public_args *args) {
  float *between = FLOATS(1);
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    blur_row(FLOATS(0) + (size_t)y * width, between + (size_t)y * width,
             FLOATS(3), width);
  }
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x += STRIP) {
      blur_strip(between + x, FLOATS(2) + (size_t)y * width + x, FLOATS(3), y,
                 width, height);
    }
  }
}

/* Transforms the 8 columns of an 8 x 8 block. */
static inline void dct_columns(float *d) {
  const float ca = 1.3870398453221475f, cb = 1.3065629648763766f;
  const float cc = 1.1758756024193588f, cd = 0.7856949583871022f;
  const float ce = 0.541196100146197f, cf = 0.275899379282943f;
  const float norm = 0.35355339059327373f;
  for (int x = 0; x < 8; x++) {
    float p07 = d[x] + d[56 + x], p16 = d[8 + x] + d[48 + x];
    float p25 = d[16 + x] + d[40 + x], p34 = d[24 + x] + d[32 + x];
    float m07 = d[x] - d[56 + x], m61 = d[48 + x] - d[8 + x];
    float m25 = d[16 + x] - d[40 + x], m43 = d[32 + x] - d[24 + x];
    d[x] = norm * (p07 + p34 + (p16 + p25));
    d[16 + x] = norm * (cb * (p07 - p34) + ce * (p16 - p25));
    d[32 + x] = norm * (p07 + p34 - (p16 + p25));
    d[48 + x] = norm * (ce * (p07 - p34) - cb * (p16 - p25));
    d[8 + x] = norm * (ca * m07 - cc * m61 + cd * m25 - cf * m43);
    d[24 + x] = norm * (cc * m07 + cf * m61 - ca * m25 + cd * m43);
    d[40 + x] = norm * (cd * m07 + ca * m61 + cf * m25 - cc * m43);
    d[56 + x] = norm * (cf * m07 + cd * m61 + cc * m25 + ca * m43);
  }
}

void twin_dct8x8(const public_args *args) {
  const float *restrict from = FLOATS(0);
  float *restrict to = FLOATS(1);
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y += 8) {
    for (int x = 0; x < width; x += 8) {
      float a[64], b[64];
      for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 8; i++) {
          a[i * 8 + j] = from[(size_t)(y + j) * width + x + i];
        }
      }
      dct_columns(a);
      for (int j = 0; j < 8; j++) {
        for (int i = 0; i < 8; i++) b[j * 8 + i] = a[i * 8 + j];
      }
      dct_columns(b);
      for (int j = 0; j < 8; j++) {
        memcpy(&to[(size_t)(y + j) * width + x], &b[j * 8], 8 * sizeof *b);
      }
    }
  }
}

/* --- raytrace --------------------------------------------------------------*/

typedef struct ray {
  float x, y, z, dx, dy, dz;
} ray;

/* Returns the distance to the nearest sphere, or infinity. */
static inline float nearest(const ray *r, const float *spheres, int count,
                            int *which) {
  float best = INFINITY;
  for (int i = 0; i < count; i++) {
    const float *s = spheres + (size_t)8 * i;
    float x = r->x - s[0], y = r->y - s[1], z = r->z - s[2];
    float b = x * r->dx + y * r->dy + z * r->dz;
    float d = b * b - (x * x + y * y + z * z - s[3] * s[3]);
    if (d < 0) continue;
    float t = -b - sqrtf(d);
    if (t > .001f && t < best) {
      best = t;
      *which = i;
    }
  }
  return best;
}

static void trace(ray r, const float *spheres, int count, float color[3]) {
  float weight = 1;
  for (int bounce = 0; bounce < 4; bounce++) {
    int which = 0;
    float best = nearest(&r, spheres, count, &which);
    if (best == INFINITY) {
      float sky = .5f * (r.dy + 1);
      color[0] += weight * (1 - .5f * sky);
      color[1] += weight * (1 - .3f * sky);
      color[2] += weight;
      return;
    }
    const float *s = spheres + (size_t)8 * which;
    r.x += r.dx * best;
    r.y += r.dy * best;
    r.z += r.dz * best;
    float nx = (r.x - s[0]) / s[3], ny = (r.y - s[1]) / s[3];
    float nz = (r.z - s[2]) / s[3];
    float light = fmaxf(nx * .57735f + ny * .57735f - nz * .57735f, .1f);
    for (int i = 0; i < 3; i++)
      color[i] += weight * (1 - s[7]) * s[4 + i] * light;
    weight *= s[7];
    if (weight < .01f) return;
    float turn = 2 * (r.dx * nx + r.dy * ny + r.dz * nz);
    r.dx -= turn * nx;
    r.dy -= turn * ny;
    r.dz -= turn * nz;
  }
}

void twin_raytrace(const public_args *args) {
  int width = NUMBER(0), height = NUMBER(1);
#pragma omp parallel for schedule(dynamic, 4)
  for (int py = 0; py < height; py++) {
    for (int px = 0; px < width; px++) {
      float sx = ((float)px + .5f) / (float)width * 2 - 1;
      float sy = 1 - ((float)py + .5f) / (float)height * 2;
      float n = 1 / sqrtf(sx * sx + sy * sy + 2.25f), color[3] = {0};
      trace((ray){0, 0, -4, sx * n, sy * n, 1.5f * n}, FLOATS(0), NUMBER(2),
            color);
      uint8_t *pixel = BYTES(1) + ((size_t)py * width + px) * 3;
      for (int i = 0; i < 3; i++)
        pixel[i] = (uint8_t)(fminf(color[i], 1) * 255);
    }
  }
}
