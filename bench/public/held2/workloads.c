/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite public.held2: sizes, data and launches of a third set of kernels of
 * public GPU suites. No optimisation is made for them. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "public/workload.h"

/* Returns the launch of @p kernel over @p items in workgroups of @p size. */
static public_launch *launch_over(public_workload *w, const char *kernel,
                                  int buffers, size_t items, uint32_t size) {
  return public_add_launch(w, kernel, buffers, public_groups(items, size), 1,
                           1);
}

static uint32_t hash(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

/* --- linear algebra --------------------------------------------------------*/

static void make_lud(public_workload *w) {
  enum { SIDE = 512, B = 16 };
  size_t cells = (size_t)SIDE * SIDE;
  float *a = public_add_in_place(w, cells * 4, PUBLIC_FLOATS);
  public_fill_floats(a, cells, -1, 1, 1);
  for (size_t i = 0; i < SIDE; i++) a[i * SIDE + i] += SIDE;
  public_numbers(w, SIDE, 0, 0);
  for (uint32_t at = 0; at < SIDE; at += B) {
    static const char *const kernels[] = {"lud_diagonal", "lud_perimeter",
                                          "lud_internal"};
    uint32_t rest = (SIDE - at) / B - 1;
    for (int k = 0; k < (rest ? 3 : 1); k++) {
      public_launch *l = public_add_launch(w, kernels[k], 1, k ? rest : 1,
                                           k == 2 ? rest : 1, 1);
      public_add_uint(l, SIDE);
      public_add_uint(l, at);
    }
  }
}

static void make_sgemm(public_workload *w) {
  enum { M = 512, N = 384, K = 256 };
  public_add_floats(w, (size_t)M * K, -1, 1);
  public_add_floats(w, (size_t)N * K, -1, 1);
  float *c = public_add_in_place(w, (size_t)M * N * 4, PUBLIC_FLOATS);
  public_fill_floats(c, (size_t)M * N, -1, 1, 3);
  public_numbers(w, M, N, K);
  public_launch *l = public_add_launch(w, "sgemm", 3, M / 16, N / 16, 1);
  public_add_uint(l, M);
  public_add_uint(l, N);
  public_add_uint(l, K);
  public_add_float(l, .5f);
  public_add_float(l, .25f);
}

static void make_atax(public_workload *w) {
  enum { ROWS = 1500, COLUMNS = 1300 };
  public_add_floats(w, (size_t)ROWS * COLUMNS, -1, 1);
  public_add_floats(w, COLUMNS, -1, 1);
  public_add(w, (size_t)ROWS * 4, PUBLIC_FLOATS);
  public_add(w, (size_t)COLUMNS * 4, PUBLIC_FLOATS);
  public_numbers(w, ROWS, COLUMNS, 0);
  public_launch *l = launch_over(w, "atax_rows", 3, ROWS, 256);
  public_add_uint(l, ROWS);
  public_add_uint(l, COLUMNS);
  l = launch_over(w, "atax_columns", 3, COLUMNS, 256);
  l->buffers[1] = 2;
  l->buffers[2] = 3;
  public_add_uint(l, ROWS);
  public_add_uint(l, COLUMNS);
}

static void make_conv2d(public_workload *w) {
  enum { IN = 16, OUT = 24, SIDE = 64 };
  public_add_floats(w, (size_t)IN * SIDE * SIDE, -1, 1);
  public_add_floats(w, (size_t)OUT * IN * 9, -1, 1);
  public_add_floats(w, OUT, -1, 1);
  public_add(w, (size_t)OUT * SIDE * SIDE * 4, PUBLIC_FLOATS);
  public_numbers(w, IN, OUT, SIDE);
  public_launch *l =
      public_add_launch(w, "conv2d", 4, SIDE / 16, SIDE / 16, OUT);
  public_add_uint(l, IN);
  public_add_uint(l, SIDE);
  public_add_uint(l, SIDE);
}

static void make_maxpool(public_workload *w) {
  enum { IMAGES = 64, SIDE = 128 };
  size_t pixels = (size_t)IMAGES * SIDE * SIDE;
  public_add_floats(w, pixels, -1, 1);
  public_add(w, pixels, PUBLIC_BITS);
  public_numbers(w, IMAGES, SIDE, 0);
  public_launch *l =
      public_add_launch(w, "maxpool", 2, SIDE / 32, SIDE / 32, IMAGES);
  public_add_uint(l, SIDE);
  public_add_uint(l, SIDE);
}

/* --- particles and meshes --------------------------------------------------*/

static void make_lavamd(public_workload *w) {
  enum { SIDE = 4, BOXES = SIDE * SIDE * SIDE, EACH = 100 };
  uint32_t *starts = public_add(w, (size_t)(BOXES + 1) * 4, PUBLIC_INPUT);
  uint32_t *list = public_add(w, (size_t)BOXES * 27 * 4, PUBLIC_INPUT);
  uint32_t found = 0;
  for (int b = 0; b < BOXES; b++) {
    for (int k = 0; k < 27; k++) {
      int x = b % SIDE + k % 3 - 1, y = b / SIDE % SIDE + k / 3 % 3 - 1;
      int z = b / SIDE / SIDE + k / 9 - 1;
      bool is_inside =
          x >= 0 && y >= 0 && z >= 0 && x < SIDE && y < SIDE && z < SIDE;
      if (is_inside) list[found++] = (uint32_t)((z * SIDE + y) * SIDE + x);
    }
    starts[b + 1] = found;
  }
  public_add_floats(w, (size_t)BOXES * EACH * 4, .1f, 1);
  public_add_floats(w, (size_t)BOXES * EACH, .1f, 1);
  public_add(w, (size_t)BOXES * EACH * 16, PUBLIC_FLOATS);
  public_numbers(w, BOXES, 0, 0);
  public_add_float(public_add_launch(w, "lavamd", 5, BOXES, 1, 1), .5f);
}

/* Atoms on a grid that is shaken a little. Neighbours beyond an edge are on the
 * other side of the grid, beyond the cutoff. */
static void make_md(public_workload *w) {
  enum { SIDE = 22, ATOMS = SIDE * SIDE * SIDE, MOST = 122 };
  float *position = public_add_floats(w, (size_t)ATOMS * 4, -.15f, .15f);
  uint32_t *list = public_add(w, (size_t)ATOMS * MOST * 4, PUBLIC_INPUT);
  for (int i = 0; i < ATOMS; i++) {
    int x = i % SIDE, y = i / SIDE % SIDE, z = i / SIDE / SIDE, found = 0;
    float *at = position + (size_t)i * 4;
    at[0] += (float)x;
    at[1] += (float)y;
    at[2] += (float)z;
    for (int k = 0; k < 343; k++) {
      int dx = k % 7 - 3, dy = k / 7 % 7 - 3, dz = k / 49 - 3;
      int square = dx * dx + dy * dy + dz * dz;
      if (square == 0 || square > 9) continue;
      int other = (z + dz + SIDE) % SIDE;
      other = other * SIDE + (y + dy + SIDE) % SIDE;
      other = other * SIDE + (x + dx + SIDE) % SIDE;
      list[found++ * ATOMS + i] = (uint32_t)other;
    }
  }
  public_add(w, (size_t)ATOMS * 12, PUBLIC_FLOATS);
  public_numbers(w, ATOMS, MOST, 0);
  public_launch *l = launch_over(w, "md", 3, ATOMS, 256);
  public_add_uint(l, ATOMS);
  public_add_uint(l, MOST);
  public_add_float(l, 6.25f);
  public_add_float(l, 1.5f);
  public_add_float(l, 2);
}

static void make_nn(public_workload *w) {
  enum { PLACES = 1 << 20 };
  public_add_floats(w, (size_t)PLACES * 2, -90, 90);
  public_add(w, (size_t)PLACES * 4, PUBLIC_FLOATS);
  public_numbers(w, PLACES, 0, 0);
  public_launch *l = launch_over(w, "nn", 2, PLACES, 256);
  public_add_uint(l, PLACES);
  public_add_float(l, 30);
  public_add_float(l, -60);
}

/* Coordinates and weights are multiples of 1/64 and 1/8, so that all costs are
 * exact and every rival makes the same choice. */
static void make_streamcluster(public_workload *w) {
  enum { POINTS = 65536, DIMS = 32, CENTRES = 10 };
  float *coord = public_add_floats(w, (size_t)POINTS * DIMS, 0, 1);
  for (int i = 0; i < POINTS * DIMS; i++) coord[i] = floorf(coord[i] * 64) / 64;
  float *weight = public_add_floats(w, POINTS, .5f, 1.5f);
  for (int i = 0; i < POINTS; i++) weight[i] = floorf(weight[i] * 8) / 8;
  public_add_floats(w, POINTS, 2, 10);
  public_add_words(w, POINTS, POINTS);
  public_add_words(w, POINTS, CENTRES);
  public_add(w, POINTS, PUBLIC_BITS);
  public_add_in_place(w, (size_t)POINTS * (CENTRES + 1) * 4, PUBLIC_FLOATS);
  public_numbers(w, POINTS, DIMS, CENTRES);
  public_launch *l = launch_over(w, "pgain", 7, POINTS, 256);
  public_add_uint(l, POINTS);
  public_add_uint(l, DIMS);
  public_add_uint(l, CENTRES);
  public_add_uint(l, 1234);
}

/* Neighbours are mostly near; some sides are walls or lead to the far field. */
static void make_cfd(public_workload *w) {
  enum { COUNT = 192 * 400 };
  int32_t *sides = public_add(w, (size_t)COUNT * 4 * 4, PUBLIC_INPUT);
  for (int i = 0; i < COUNT * 4; i++) {
    uint32_t h = hash((uint32_t)i);
    int near = (i % COUNT + (int)(h >> 8) % 2048 - 1024 + COUNT) % COUNT;
    sides[i] = h % 50 == 0 ? -1 : h % 50 == 1 ? -2 : near;
  }
  public_add_floats(w, (size_t)COUNT * 12, -1, 1);
  float *variables = public_add_floats(w, (size_t)COUNT * 5, .5f, 1);
  for (int i = 0; i < COUNT; i++) variables[i + 4 * COUNT] += 4;
  public_add_floats(w, 17, .5f, 1);
  public_add(w, (size_t)COUNT * 5 * 4, PUBLIC_FLOATS);
  public_numbers(w, COUNT, 0, 0);
  public_add_uint(launch_over(w, "cfd_flux", 5, COUNT, 192), COUNT);
}

static void make_lbm(public_workload *w) {
  enum { WIDTH = 512, HEIGHT = 256 };
  size_t cells = (size_t)WIDTH * HEIGHT;
  public_add_floats(w, cells * 9, .1f, .2f);
  uint8_t *solid = public_add(w, cells, PUBLIC_INPUT);
  for (size_t i = 0; i < cells; i++) {
    size_t x = i % WIDTH / 16, y = i / WIDTH / 16;
    solid[i] = x % 4 == 1 && y % 4 == 1;
  }
  public_add(w, cells * 36, PUBLIC_FLOATS);
  public_numbers(w, WIDTH, HEIGHT, 0);
  public_launch *l = public_add_launch(w, "lbm", 3, WIDTH / 32, HEIGHT / 8, 1);
  public_add_uint(l, WIDTH);
  public_add_uint(l, HEIGHT);
  public_add_float(l, .8f);
}

/* Bins of 4 x 4 x 4 points with at most 8 atoms, and a bin of padding around.
 * Empty slots are far away. */
static void make_cutcp(public_workload *w) {
  enum { X = 64, Y = 64, Z = 16, BX = X / 4 + 2, BY = Y / 4 + 2 };
  enum { BZ = Z / 4 + 2, SLOTS = 8 };
  float *atom = public_add_floats(w, (size_t)BX * BY * BZ * SLOTS * 4, 0, 1);
  for (int i = 0; i < BX * BY * BZ * SLOTS; i++, atom += 4) {
    int bin = i / SLOTS, x = bin % BX, y = bin / BX % BY, z = bin / BX / BY;
    bool is_inside =
        x > 0 && y > 0 && z > 0 && x < BX - 1 && y < BY - 1 && z < BZ - 1;
    if (!is_inside || hash((uint32_t)i) % 4 == 0) {
      atom[0] = atom[1] = atom[2] = -1000;
      atom[3] = 0;
      continue;
    }
    atom[0] = (float)(x - 1) * 4 + .05f + 3.9f * atom[0];
    atom[1] = (float)(y - 1) * 4 + .05f + 3.9f * atom[1];
    atom[2] = (float)((z - 1) * 4 + (i & 3)) + .3f + .4f * atom[2];
  }
  public_add(w, (size_t)X * Y * Z * 4, PUBLIC_FLOATS);
  public_numbers(w, X, Y, Z);
  public_launch *l = public_add_launch(w, "cutcp", 2, X / 8, Y / 8, Z / 4);
  public_add_uint(l, BX);
  public_add_uint(l, BY);
  public_add_float(l, 16);
  public_add_float(l, 1 / 16.f);
}

/* --- images and grids ------------------------------------------------------*/

static void make_sad(public_workload *w) {
  enum { WIDTH = 176, HEIGHT = 144, SIDE = 33, BLOCKS = WIDTH * HEIGHT / 16 };
  for (uint64_t i = 0; i < 2; i++) {
    public_fill_words(public_add(w, (size_t)WIDTH * HEIGHT, PUBLIC_INPUT),
                      (size_t)WIDTH * HEIGHT / 4, UINT_MAX, i);
  }
  public_add(w, (size_t)BLOCKS * SIDE * SIDE * 2, PUBLIC_BITS);
  public_numbers(w, WIDTH, HEIGHT, 0);
  public_launch *l = public_add_launch(
      w, "sad", 3, public_groups((size_t)SIDE * SIDE, 64), BLOCKS, 1);
  public_add_uint(l, WIDTH);
  public_add_uint(l, HEIGHT);
}

static void make_median(public_workload *w) {
  enum { SIDE = 2048 };
  size_t pixels = (size_t)SIDE * SIDE;
  public_fill_words(public_add(w, pixels, PUBLIC_INPUT), pixels / 4, UINT_MAX,
                    1);
  public_add(w, pixels, PUBLIC_BITS);
  public_numbers(w, SIDE, SIDE, 0);
  public_launch *l = public_add_launch(w, "median", 2, SIDE / 16, SIDE / 16, 1);
  public_add_uint(l, SIDE);
  public_add_uint(l, SIDE);
}

static void make_stencil2d(public_workload *w) {
  enum { SIDE = 1024, PITCH = SIDE + 2 };
  public_add_floats(w, (size_t)PITCH * PITCH, 0, 1);
  public_add(w, (size_t)PITCH * PITCH * 4, PUBLIC_FLOATS);
  public_numbers(w, SIDE, SIDE, 0);
  public_launch *l =
      public_add_launch(w, "stencil2d", 2, SIDE / 16, SIDE / 16, 1);
  public_add_uint(l, PITCH);
  public_add_float(l, .25f);
  public_add_float(l, .15f);
  public_add_float(l, .05f);
}

static void make_jacobi(public_workload *w) {
  enum { SIDE = 1024 };
  size_t cells = (size_t)SIDE * SIDE;
  public_add_floats(w, cells, 0, 1);
  public_add_floats(w, cells, 0, 1);
  public_add(w, cells * 4, PUBLIC_FLOATS);
  public_add(w, cells / 256 * 4, PUBLIC_FLOATS);
  public_numbers(w, SIDE, 0, 0);
  public_add_uint(public_add_launch(w, "jacobi", 4, SIDE / 16, SIDE / 16, 1),
                  SIDE);
}

static void make_boxfilter(public_workload *w) {
  enum { SIDE = 1024, RADIUS = 7 };
  size_t cells = (size_t)SIDE * SIDE;
  public_add_floats(w, cells, 0, 1);
  public_add(w, cells * 4, PUBLIC_FLOATS);
  public_add(w, cells * 4, PUBLIC_FLOATS);
  public_numbers(w, SIDE, SIDE, RADIUS);
  for (int i = 0; i < 2; i++) {
    public_launch *l =
        launch_over(w, i ? "box_columns" : "box_rows", 2, SIDE, 64);
    l->buffers[0] = i;
    l->buffers[1] = i + 1;
    public_add_uint(l, SIDE);
    public_add_uint(l, SIDE);
    public_add_uint(l, RADIUS);
  }
}

/* --- signals, sums, finance ------------------------------------------------*/

static void make_triad(public_workload *w) {
  enum { COUNT = 1 << 21 };
  public_add_floats(w, COUNT, -1, 1);
  public_add_floats(w, COUNT, -1, 1);
  public_add(w, (size_t)COUNT * 4, PUBLIC_FLOATS);
  public_numbers(w, COUNT, 0, 0);
  public_add_float(launch_over(w, "triad", 3, COUNT, 128), 1.75f);
}

static void make_fwht(public_workload *w) {
  enum { COUNT = 1 << 18, N = 1024 };
  public_fill_floats(public_add_in_place(w, (size_t)COUNT * 4, PUBLIC_FLOATS),
                     COUNT, -1, 1, 1);
  public_numbers(w, COUNT, 0, 0);
  for (uint32_t stride = COUNT / 4; stride >= N; stride /= 4) {
    public_add_uint(launch_over(w, "fwht_step", 1, COUNT / 4, 256), stride);
  }
  launch_over(w, "fwht_shared", 1, COUNT, N);
}

static void make_haar(public_workload *w) {
  enum { COUNT = 1 << 20, N = 512 };
  public_add_floats(w, COUNT, -1, 1);
  public_add(w, (size_t)COUNT * 4, PUBLIC_FLOATS);
  public_numbers(w, COUNT, 0, 0);
  launch_over(w, "haar", 2, COUNT, N);
}

static void make_reduction(public_workload *w) {
  enum { COUNT = 1 << 22, GROUPS = 64 };
  public_add_floats(w, COUNT, 0, 1);
  public_add(w, (size_t)GROUPS * 4, PUBLIC_FLOATS);
  public_numbers(w, COUNT, GROUPS, 0);
  public_add_uint(public_add_launch(w, "reduction", 2, GROUPS, 1, 1), COUNT);
}

static void make_binomial(public_workload *w) {
  enum { OPTIONS = 512 };
  public_add_floats(w, OPTIONS, 5, 30);
  public_add_floats(w, OPTIONS, 1, 60);
  public_add_floats(w, OPTIONS, .25f, 10);
  public_add(w, (size_t)OPTIONS * 4, PUBLIC_FLOATS);
  public_numbers(w, OPTIONS, 0, 0);
  public_launch *l = public_add_launch(w, "binomial", 4, OPTIONS, 1, 1);
  public_add_float(l, .02f);
  public_add_float(l, .3f);
}

static void make_montecarlo(public_workload *w) {
  enum { OPTIONS = 64 };
  public_add_floats(w, OPTIONS, 5, 30);
  public_add_floats(w, OPTIONS, 5, 30);
  public_add(w, (size_t)OPTIONS * 4, PUBLIC_FLOATS);
  public_numbers(w, OPTIONS, 0, 0);
  public_launch *l = public_add_launch(w, "montecarlo", 3, OPTIONS, 1, 1);
  public_add_float(l, .015f);
  public_add_float(l, .3f);
}

/* Direction numbers of random odd starts: good enough to measure. */
static void make_sobol(public_workload *w) {
  enum { DIMS = 32, COUNT = 1 << 15, GROUPS = 16 };
  uint32_t *v = public_add(w, (size_t)DIMS * 32 * 4, PUBLIC_INPUT);
  for (uint32_t i = 0; i < DIMS * 32; i++) {
    uint32_t bit = i % 32;
    v[i] = (hash(i) >> (31 - bit) | 1) << (31 - bit);
  }
  public_add(w, (size_t)DIMS * COUNT * 4, PUBLIC_BITS);
  public_numbers(w, DIMS, COUNT, 0);
  public_add_uint(public_add_launch(w, "sobol", 2, GROUPS, DIMS, 1), COUNT);
}

static void make_knapsack(public_workload *w) {
  enum { CAPACITY = 50000, ITEMS = 100 };
  public_add_words(w, ITEMS, 2000);
  public_add_words(w, ITEMS, 100);
  public_add_in_place(w, (size_t)(CAPACITY + 1) * 4, PUBLIC_BITS);
  public_add(w, (size_t)(CAPACITY + 1) * 4, PUBLIC_INPUT);
  public_numbers(w, CAPACITY, ITEMS, 0);
  const uint32_t *weights = w->buffers[0].data, *values = w->buffers[1].data;
  for (int i = 0; i < ITEMS; i++) {
    public_launch *l = launch_over(w, "knapsack", 2, CAPACITY + 1, 256);
    l->buffers[0] = 2 + i % 2;
    l->buffers[1] = 3 - i % 2;
    public_add_uint(l, CAPACITY);
    public_add_uint(l, weights[i]);
    public_add_uint(l, values[i]);
  }
}

/* --- words, graphs, searches -----------------------------------------------*/

static void make_mergesort(public_workload *w) {
  enum { BLOCKS = 512, EACH = 512, PAIRS = BLOCKS * EACH };
  for (int i = 0; i < 2; i++) {
    public_fill_words(public_add_in_place(w, (size_t)PAIRS * 4, PUBLIC_BITS),
                      PAIRS, UINT_MAX, (uint64_t)i);
  }
  public_numbers(w, BLOCKS, EACH, 0);
  public_add_launch(w, "merge_sort", 2, BLOCKS, 1, 1);
}

static void make_histogram256(public_workload *w) {
  enum { WORDS = 1 << 20, GROUPS = 64 };
  public_add_words(w, WORDS, UINT_MAX);
  public_add_in_place(w, (size_t)256 * 4, PUBLIC_BITS);
  public_numbers(w, WORDS, 0, 0);
  public_add_uint(public_add_launch(w, "histogram256", 2, GROUPS, 1, 1), WORDS);
}

static uint8_t times_two(uint8_t x) {
  return (uint8_t)(x << 1 ^ (x >> 7) * 0x1b);
}

/* Fills the substitution of AES and its first table of a round. */
static void fill_aes(uint8_t *sbox, uint32_t *table) {
  uint8_t p = 1, q = 1;
  do { /* p runs through all powers of 3; q is its inverse */
    p = (uint8_t)(p ^ times_two(p));
    q = (uint8_t)(q ^ q << 1);
    q = (uint8_t)(q ^ q << 2);
    q = (uint8_t)(q ^ q << 4);
    if (q & 0x80) q ^= 0x09;
    uint32_t twice = q | (uint32_t)q << 8;
    sbox[p] =
        (uint8_t)(q ^ twice >> 7 ^ twice >> 6 ^ twice >> 5 ^ twice >> 4 ^ 0x63);
  } while (p != 1);
  sbox[0] = 0x63;
  for (int i = 0; i < 256; i++) {
    uint32_t s = sbox[i], two = times_two(sbox[i]);
    table[i] = two | s << 8 | s << 16 | (two ^ s) << 24;
  }
}

static void make_aes(public_workload *w) {
  enum { BLOCKS = 1 << 16 };
  public_add_words(w, (size_t)BLOCKS * 4, UINT_MAX);
  public_add_words(w, 44, UINT_MAX);
  uint32_t *table = public_add(w, (size_t)256 * 4, PUBLIC_INPUT);
  fill_aes(public_add(w, 256, PUBLIC_INPUT), table);
  public_add(w, (size_t)BLOCKS * 16, PUBLIC_BITS);
  public_numbers(w, BLOCKS, 0, 0);
  launch_over(w, "aes", 5, BLOCKS, 256);
}

static void make_murmur(public_workload *w) {
  enum { TEXTS = 40000, LEAST = 8, SPREAD = 120 };
  uint32_t *starts = public_add(w, (size_t)(TEXTS + 1) * 4, PUBLIC_INPUT);
  for (uint32_t i = 0; i < TEXTS; i++) {
    starts[i + 1] = starts[i] + LEAST + hash(i) % SPREAD;
  }
  size_t size = starts[TEXTS] + 4u;
  public_fill_words(public_add(w, size, PUBLIC_INPUT), size / 4, UINT_MAX, 1);
  public_add(w, (size_t)TEXTS * 4, PUBLIC_BITS);
  public_numbers(w, TEXTS, 0, 0);
  public_launch *l = launch_over(w, "murmur", 3, TEXTS, 256);
  l->buffers[0] = 1;
  l->buffers[1] = 0;
  public_add_uint(l, TEXTS);
}

static void make_compact(public_workload *w) {
  enum { COUNT = 1 << 20, LIMIT = 600 };
  public_add_words(w, COUNT, 1000);
  public_add_in_place(w, (size_t)COUNT * 4, PUBLIC_SET);
  public_add_in_place(w, 4, PUBLIC_BITS);
  public_numbers(w, COUNT, LIMIT, 0);
  public_launch *l = launch_over(w, "compact", 3, COUNT, 256);
  public_add_uint(l, COUNT);
  public_add_uint(l, LIMIT);
}

/* Returns a node of a graph with few large and many small nodes (RMAT). */
static uint32_t rmat_end(uint32_t edge, uint32_t scale, bool is_source) {
  uint32_t node = 0;
  for (uint32_t bit = 0; bit < scale; bit++) {
    uint32_t h = hash(edge * scale + bit) % 100;
    bool is_high = is_source ? h >= 76 : (h >= 57 && h < 76) || h >= 95;
    node = node << 1 | is_high;
  }
  return node;
}

static void make_pagerank(public_workload *w) {
  enum { SCALE = 15, NODES = 1 << SCALE, EDGES = NODES * 12, ROUNDS = 3 };
  uint32_t *starts = public_add(w, (size_t)(NODES + 1) * 4, PUBLIC_INPUT);
  uint32_t *sources = public_add(w, (size_t)EDGES * 4, PUBLIC_INPUT);
  uint32_t *degree = public_add(w, (size_t)NODES * 4, PUBLIC_INPUT);
  float *rank = public_add_in_place(w, (size_t)NODES * 4, PUBLIC_FLOATS);
  public_add(w, (size_t)NODES * 4, PUBLIC_INPUT);
  for (uint32_t e = 0; e < EDGES; e++) {
    starts[rmat_end(e, SCALE, false) + 1]++;
    degree[rmat_end(e, SCALE, true)]++;
  }
  for (int i = 0; i < NODES; i++) starts[i + 1] += starts[i];
  for (uint32_t e = 0; e < EDGES; e++) {
    sources[starts[rmat_end(e, SCALE, false)]++] = rmat_end(e, SCALE, true);
  }
  memmove(starts + 1, starts, (size_t)NODES * 4);
  starts[0] = 0;
  for (int i = 0; i < NODES; i++) rank[i] = 1.f / NODES;
  public_numbers(w, NODES, ROUNDS, 0);
  for (int i = 0; i < ROUNDS; i++) {
    public_launch *l = launch_over(w, "contribute", 3, NODES, 256);
    l->buffers[0] = 3;
    l->buffers[1] = 2;
    l->buffers[2] = 4;
    public_add_uint(l, NODES);
    l = launch_over(w, "pull", 4, NODES, 256);
    l->buffers[2] = 4;
    public_add_uint(l, NODES);
    public_add_float(l, .15f / NODES);
    public_add_float(l, .85f);
  }
}

static void make_bfs(public_workload *w) {
  enum { NODES = 1 << 17, LEVELS = 10 };
  uint32_t *starts = public_add(w, (size_t)(NODES + 1) * 4, PUBLIC_INPUT);
  for (uint32_t i = 0; i < NODES; i++) starts[i + 1] = starts[i] + hash(i) % 11;
  public_add_words(w, starts[NODES], NODES);
  uint8_t *mask = public_add_in_place(w, NODES, PUBLIC_BITS);
  public_add_in_place(w, NODES, PUBLIC_BITS);
  uint8_t *visited = public_add_in_place(w, NODES, PUBLIC_BITS);
  uint32_t *cost = public_add_in_place(w, (size_t)NODES * 4, PUBLIC_BITS);
  public_add_in_place(w, 4, PUBLIC_BITS);
  for (int i = 0; i < NODES; i++) cost[i] = UINT_MAX;
  mask[77] = visited[77] = 1;
  cost[77] = 0;
  public_numbers(w, NODES, LEVELS, 77);
  for (int i = 0; i < LEVELS; i++) {
    public_add_uint(launch_over(w, "bfs_visit", 6, NODES, 256), NODES);
    public_launch *l = launch_over(w, "bfs_update", 4, NODES, 256);
    static const int buffers[] = {2, 3, 4, 6};
    memcpy(l->buffers, buffers, sizeof buffers);
    public_add_uint(l, NODES);
  }
}

static void make_lookup(public_workload *w) {
  enum { POINTS = 2048, NUCLIDES = 60, MATERIALS = 12, SLOTS = 32 };
  enum { LOOKUPS = 50000 };
  float *grid = public_add(w, (size_t)POINTS * 4, PUBLIC_INPUT);
  for (int i = 0; i < POINTS; i++) grid[i] = (float)i / (POINTS - 1);
  public_add_floats(w, (size_t)NUCLIDES * POINTS * 5, 0, 1);
  public_add_words(w, (size_t)MATERIALS * SLOTS, NUCLIDES);
  float *amounts = public_add_floats(w, (size_t)MATERIALS * SLOTS, .1f, 1);
  for (int m = 0; m < MATERIALS; m++) {
    for (int k = 4 + m * 2; k < SLOTS; k++) amounts[m * SLOTS + k] = 0;
  }
  public_add_floats(w, LOOKUPS, 0, .999f);
  public_add_words(w, LOOKUPS, MATERIALS);
  public_add(w, (size_t)LOOKUPS * 5 * 4, PUBLIC_FLOATS);
  public_numbers(w, LOOKUPS, POINTS, SLOTS);
  public_launch *l = launch_over(w, "lookup", 7, LOOKUPS, 256);
  public_add_uint(l, LOOKUPS);
  public_add_uint(l, POINTS);
  public_add_uint(l, SLOTS);
}

#define HELD(name, has_same, tolerance)   \
  {#name,       "../public/held2/" #name, \
   #name,       has_same,                 \
   PUBLIC_HELD, tolerance,                \
   make_##name}

const public_entry public_held2_entries[] = {
    HELD(aes, false, 0),
    HELD(atax, false, 1e-4),
    HELD(bfs, true, 0),
    HELD(binomial, false, 1e-4),
    HELD(boxfilter, false, 1e-4),
    HELD(cfd, false, 1e-4),
    HELD(compact, false, 0),
    HELD(conv2d, false, 1e-4),
    HELD(cutcp, true, 1e-3),
    HELD(fwht, false, 1e-4),
    HELD(haar, false, 1e-4),
    HELD(histogram256, false, 0),
    HELD(jacobi, false, 1e-4),
    HELD(knapsack, false, 0),
    HELD(lavamd, false, 1e-4),
    HELD(lbm, false, 1e-4),
    HELD(lookup, false, 1e-4),
    HELD(lud, false, 1e-4),
    HELD(maxpool, false, 0),
    HELD(md, false, 1e-3),
    HELD(median, false, 0),
    HELD(mergesort, true, 0),
    HELD(montecarlo, false, 1e-4),
    HELD(murmur, false, 0),
    HELD(nn, false, 1e-5),
    HELD(pagerank, false, 1e-4),
    HELD(reduction, false, 1e-4),
    HELD(sad, false, 0),
    HELD(sgemm, false, 1e-4),
    HELD(sobol, false, 0),
    HELD(stencil2d, false, 1e-5),
    HELD(streamcluster, false, 1e-4),
    HELD(triad, false, 1e-5),
};

const int public_held2_count =
    (int)(sizeof public_held2_entries / sizeof public_held2_entries[0]);
