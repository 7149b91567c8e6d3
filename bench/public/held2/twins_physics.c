/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Twins of kernels with particles and meshes. */
#include <math.h>
#include <string.h>

#include "public/twins.h"
#include "twins_list.h"

/* --- lavamd ----------------------------------------------------------------*/

enum { EACH = 100 };

/* A box by component, so that loops over its particles are contiguous. */
typedef struct box {
  float v[EACH], x[EACH], y[EACH], z[EACH], q[EACH];
} box;

static void load_box(box *to, const float *rv, const float *charge, int index) {
  for (int i = 0; i < EACH; i++) {
    const float *p = rv + ((size_t)index * EACH + i) * 4;
    to->v[i] = p[0];
    to->x[i] = p[1];
    to->y[i] = p[2];
    to->z[i] = p[3];
    to->q[i] = charge[(size_t)index * EACH + i];
  }
}

static void add_forces(const box *restrict a, const box *restrict b,
                       box *restrict f) {
  const float a2 = .5f;
  for (int j = 0; j < EACH; j++) {
    float v = b->v[j], x = b->x[j], y = b->y[j], z = b->z[j], q = b->q[j];
    for (int i = 0; i < EACH; i++) {
      float dot = a->x[i] * x + a->y[i] * y + a->z[i] * z;
      float vij = q * expf(-(a2 * (a->v[i] + v - dot))), fs = 2 * vij;
      f->v[i] += vij;
      f->x[i] += fs * (a->x[i] - x);
      f->y[i] += fs * (a->y[i] - y);
      f->z[i] += fs * (a->z[i] - z);
    }
  }
}

void twin_lavamd(const public_args *args) {
  const uint32_t *starts = WORDS(0), *list = WORDS(1);
#pragma omp parallel for schedule(static)
  for (int b = 0; b < NUMBER(0); b++) {
    box own, other, sum = {0};
    load_box(&own, FLOATS(2), FLOATS(3), b);
    for (uint32_t k = starts[b]; k < starts[b + 1]; k++) {
      load_box(&other, FLOATS(2), FLOATS(3), (int)list[k]);
      add_forces(&own, &other, &sum);
    }
    for (int i = 0; i < EACH; i++) {
      float *to = FLOATS(4) + ((size_t)b * EACH + i) * 4;
      to[0] = sum.v[i];
      to[1] = sum.x[i];
      to[2] = sum.y[i];
      to[3] = sum.z[i];
    }
  }
}

/* --- md, nn, streamcluster -------------------------------------------------*/

void twin_md(const public_args *args) {
  int atoms = NUMBER(0), most = NUMBER(1);
  const float cutoff2 = 6.25f, lj1 = 1.5f, lj2 = 2;
  const float *restrict position = FLOATS(0);
  const uint32_t *restrict list = WORDS(1);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < atoms; i++) {
    const float *own = position + (size_t)i * 4;
    float fx = 0, fy = 0, fz = 0;
    for (int j = 0; j < most; j++) {
      const float *other = position + (size_t)list[(size_t)j * atoms + i] * 4;
      float dx = own[0] - other[0], dy = own[1] - other[1];
      float dz = own[2] - other[2], r2 = dx * dx + dy * dy + dz * dz;
      if (r2 >= cutoff2) continue;
      float r2inv = 1 / r2, r6inv = r2inv * r2inv * r2inv;
      float f = r2inv * r6inv * (lj1 * r6inv - lj2);
      fx += dx * f;
      fy += dy * f;
      fz += dz * f;
    }
    FLOATS(2)[(size_t)i * 3] = fx;
    FLOATS(2)[(size_t)i * 3 + 1] = fy;
    FLOATS(2)[(size_t)i * 3 + 2] = fz;
  }
}

void twin_nn(const public_args *args) {
  const float *restrict places = FLOATS(0);
  float *restrict distance = FLOATS(1);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < NUMBER(0); i++) {
    size_t at = (size_t)2 * i;
    float dy = 30 - places[at], dx = -60 - places[at + 1];
    distance[i] = sqrtf(dy * dy + dx * dx);
  }
}

enum { POINTS = 256, CANDIDATE = 1234 };

/* Measures many points at once, so that the inner loop is contiguous. */
void twin_streamcluster(const public_args *args) {
  int points = NUMBER(0), dims = NUMBER(1), centres = NUMBER(2);
  const float *restrict weight = FLOATS(1), *restrict cost = FLOATS(2);
  const uint32_t *restrict assigned = WORDS(3), *restrict table = WORDS(4);
#pragma omp parallel for schedule(static)
  for (int first = 0; first < points; first += POINTS) {
    float distance[POINTS] = {0};
    int count = smaller(POINTS, points - first);
    for (int d = 0; d < dims; d++) {
      const float *restrict from = FLOATS(0) + (size_t)d * points + first;
      float centre = FLOATS(0)[(size_t)d * points + CANDIDATE];
      for (int p = 0; p < count; p++) {
        distance[p] += (from[p] - centre) * (from[p] - centre);
      }
    }
    for (int p = 0; p < count; p++) {
      int i = first + p;
      float change = distance[p] * weight[i] - cost[i];
      float *gains = FLOATS(6) + (size_t)i * (centres + 1);
      BYTES(5)[i] = change < 0;
      gains[change < 0 ? (uint32_t)centres : table[assigned[i]]] +=
          change < 0 ? change : -change;
    }
  }
}

/* --- cfd -------------------------------------------------------------------*/

/* State of an element, and its fluxes of momentum and energy. */
typedef struct state {
  float density, m[3], energy, pressure, speed, sound;
  float flux[3][3], flow[3];
} state;

static inline state state_of(const float *variables, size_t i, size_t count) {
  const float gamma = 1.4f;
  state s = {.density = variables[i], .energy = variables[i + 4 * count]};
  float v[3], square = 0;
  for (int a = 0; a < 3; a++) {
    s.m[a] = variables[i + (a + 1) * count];
    v[a] = s.m[a] / s.density;
    square += v[a] * v[a];
  }
  s.speed = sqrtf(square);
  s.pressure = (gamma - 1) * (s.energy - .5f * s.density * square);
  s.sound = sqrtf(gamma * s.pressure / s.density);
  for (int a = 0; a < 3; a++) {
    for (int b = 0; b < 3; b++)
      s.flux[a][b] = v[a < b ? a : b] * s.m[a < b ? b : a];
    s.flux[a][a] += s.pressure;
    s.flow[a] = v[a] * (s.energy + s.pressure);
  }
  return s;
}

static inline state far_state(const float *far) {
  state s = {.density = 0};
  memcpy(s.m, far + 1, sizeof s.m);
  memcpy(s.flux, far + 5, sizeof s.flux);
  memcpy(s.flow, far + 14, sizeof s.flow);
  return s;
}

/* Adds the mean flux through a side. sum: density, momentum, energy. */
static inline void add_side(float *sum, const state *a, const state *b,
                            const float *normal) {
  for (int k = 0; k < 3; k++) {
    float factor = .5f * normal[k];
    sum[0] += factor * (b->m[k] + a->m[k]);
    for (int c = 0; c < 3; c++) {
      sum[1 + c] += factor * (b->flux[k][c] + a->flux[k][c]);
    }
    sum[4] += factor * (b->flow[k] + a->flow[k]);
  }
}

static inline void smooth(float *sum, const state *a, const state *b,
                          const float *normal) {
  float area = sqrtf(normal[0] * normal[0] + normal[1] * normal[1] +
                     normal[2] * normal[2]);
  float factor =
      -area * .2f * .5f * (a->speed + b->speed + a->sound + b->sound);
  sum[0] += factor * (a->density - b->density);
  for (int c = 0; c < 3; c++) sum[1 + c] += factor * (a->m[c] - b->m[c]);
  sum[4] += factor * (a->energy - b->energy);
}

void twin_cfd(const public_args *args) {
  size_t count = (size_t)NUMBER(0);
  const state far = far_state(FLOATS(3));
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < count; i++) {
    state own = state_of(FLOATS(2), i, count);
    float sum[5] = {0};
    for (size_t j = 0; j < 4; j++) {
      int nb = INTS(0)[i + j * count];
      const float *n = FLOATS(1) + i + j * count;
      float normal[3] = {n[0], n[4 * count], n[8 * count]};
      if (nb >= 0) {
        state other = state_of(FLOATS(2), (size_t)nb, count);
        smooth(sum, &own, &other, normal);
        add_side(sum, &own, &other, normal);
      } else if (nb == -1) {
        for (int c = 0; c < 3; c++) sum[1 + c] += normal[c] * own.pressure;
      } else {
        add_side(sum, &own, &far, normal);
      }
    }
    for (int v = 0; v < 5; v++) FLOATS(4)[i + v * count] = sum[v];
  }
}

/* --- cutcp -----------------------------------------------------------------*/

enum { SLOTS = 8, BIN = 4, REACH = 4 };

static inline float pair_energy(float charge, float r2) {
  float s = 1 - r2 * (1.f / (REACH * REACH));
  return charge / sqrtf(r2) * s * s;
}

/* Adds an atom to the points of a plane that it reaches. */
static void add_atom(const float *atom, float *plane, int nx, int ny, int z) {
  float dz = atom[2] - (float)z;
  float left = REACH * REACH - dz * dz;
  if (left <= 0) return;
  int low = larger((int)floorf(atom[1]) - REACH, 0);
  int high = smaller((int)floorf(atom[1]) + REACH + 1, ny - 1);
  int from = larger((int)floorf(atom[0]) - REACH, 0);
  int to = smaller((int)floorf(atom[0]) + REACH + 1, nx - 1);
  for (int y = low; y <= high; y++) {
    float dy = atom[1] - (float)y, plain = dy * dy + dz * dz;
    if (dy * dy >= left) continue;
    float *restrict row = plane + (size_t)y * nx;
    for (int x = from; x <= to; x++) {
      float dx = atom[0] - (float)x, r2 = dx * dx + plain;
      float add = pair_energy(atom[3], r2);
      row[x] += r2 < REACH * REACH ? add : 0;
    }
  }
}

void twin_cutcp(const public_args *args) {
  int nx = NUMBER(0), ny = NUMBER(1), nz = NUMBER(2);
  int bx = nx / BIN + 2, by = ny / BIN + 2;
#pragma omp parallel for schedule(static)
  for (int z = 0; z < nz; z++) {
    float *plane = FLOATS(1) + (size_t)z * nx * ny;
    memset(plane, 0, (size_t)nx * ny * sizeof *plane);
    const float *atom = FLOATS(0) + (size_t)(z / BIN) * bx * by * SLOTS * 4;
    for (int i = 0; i < 3 * bx * by * SLOTS; i++, atom += 4) {
      if (atom[3] > 0) add_atom(atom, plane, nx, ny, z);
    }
  }
}

/* Points of a workgroup, each with the atoms of all bins that reach it. */
static void gather_region(const public_args *args, int x0, int y0, int z0) {
  enum { SIDE = 8, DEPTH = 4, SPAN = 4 };
  int nx = NUMBER(0), ny = NUMBER(1), bx = nx / BIN + 2, by = ny / BIN + 2;
  for (int i = 0; i < SIDE * DEPTH; i++) {
    int y = y0 + i % SIDE, z = z0 + i / SIDE;
    float *restrict row = FLOATS(1) + ((size_t)z * ny + y) * nx + x0;
    float sum[SIDE] = {0};
    for (int bin = 0; bin < 3 * SPAN * SPAN; bin++) {
      int column = x0 / BIN + bin % SPAN, line = y0 / BIN + bin / SPAN % SPAN;
      int layer = z0 / BIN + bin / SPAN / SPAN;
      const float *atom =
          FLOATS(0) + (((size_t)layer * by + line) * bx + column) * SLOTS * 4;
      for (int k = 0; k < SLOTS; k++, atom += 4) {
        float dy = atom[1] - (float)y, dz = atom[2] - (float)z;
        for (int x = 0; x < SIDE; x++) {
          float dx = atom[0] - (float)(x0 + x);
          float r2 = dx * dx + dy * dy + dz * dz;
          float add = pair_energy(atom[3], r2);
          sum[x] += r2 < REACH * REACH ? add : 0;
        }
      }
    }
    memcpy(row, sum, sizeof sum);
  }
}

void twin_cutcp_same(const public_args *args) {
  int across = NUMBER(0) / 8, down = NUMBER(1) / 8;
#pragma omp parallel for schedule(static)
  for (int i = 0; i < across * down * NUMBER(2) / 4; i++) {
    gather_region(args, i % across * 8, i / across % down * 8,
                  i / across / down * 4);
  }
}

/* --- lbm -------------------------------------------------------------------*/

/* Collides the nine parts of a cell. */
static inline void collide(const float *f, float *out, float omega) {
  float rho = 0;
  for (int k = 0; k < 9; k++) rho += f[k];
  float ux = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / rho;
  float uy = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / rho;
  float square = 1 - 1.5f * (ux * ux + uy * uy), keep = 1 - omega;
  float along[9] = {0, ux, uy, -ux, -uy, ux + uy, uy - ux, -ux - uy, ux - uy};
  for (int k = 0; k < 9; k++) {
    float share = k == 0 ? 4 / 9.f : k < 5 ? 1 / 9.f : 1 / 36.f;
    float wave = square + 3 * along[k] + 4.5f * along[k] * along[k];
    out[k] = keep * f[k] + omega * rho * share * wave;
  }
}

/* Rows of the nine directions that arrive at row y, and that leave it. */
typedef struct lbm_rows {
  const float *from[9];
  float *to[9];
  const uint8_t *solid;
} lbm_rows;

static inline void lbm_cell(const lbm_rows *r, int x, int west, int east) {
  static const int back[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
  int at[9] = {x, west, x, east, x, west, east, east, west};
  float f[9], out[9];
  for (int k = 0; k < 9; k++) f[k] = r->from[k][at[k]];
  collide(f, out, .8f);
  for (int k = 0; k < 9; k++) r->to[k][x] = r->solid[x] ? f[back[k]] : out[k];
}

void twin_lbm(const public_args *args) {
  static const int source[9] = {0, 0, -1, 0, 1, -1, -1, 1, 1};
  int width = NUMBER(0), height = NUMBER(1);
  size_t cells = (size_t)width * height;
#pragma omp parallel for schedule(static)
  for (int y = 0; y < height; y++) {
    lbm_rows r = {.solid = BYTES(1) + (size_t)y * width};
    for (int k = 0; k < 9; k++) {
      int row = (y + source[k] + height) % height;
      r.from[k] = FLOATS(0) + k * cells + (size_t)row * width;
      r.to[k] = FLOATS(2) + k * cells + (size_t)y * width;
    }
    lbm_cell(&r, 0, width - 1, 1);
#pragma omp simd
    for (int x = 1; x < width - 1; x++) lbm_cell(&r, x, x - 1, x + 1);
    lbm_cell(&r, width - 1, width - 2, 0);
  }
}
