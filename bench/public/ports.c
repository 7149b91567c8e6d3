/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The workloads of the suite public: sizes, data and launches of kernels of
 * Rodinia, SHOC, Parboil, the CUDA samples and HeCBench. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "sha256_rounds.h"
#include "workload.h"

/* --- grids and images ------------------------------------------------------*/

enum { HEAT_SIDE = 1024, HEAT_STEPS = 8 };

static void add_heat(public_workload *w) {
  size_t cells = (size_t)HEAT_SIDE * HEAT_SIDE;
  public_add_floats(w, cells, 0, 1);
  float *now = public_add_in_place(w, cells * 4, PUBLIC_FLOATS);
  public_fill_floats(now, cells, 20, 90, 9);
  public_add(w, cells * 4, PUBLIC_INPUT);
  public_numbers(w, HEAT_SIDE, HEAT_SIDE, HEAT_STEPS);
}

/* Sets the coefficients of the heat equation; exchanges source and target in
 * every second launch. */
static void set_heat(public_launch *l, int turn) {
  static const float values[] = {.01f, .1f, .1f, .05f};
  for (int i = 0; i < 4; i++) public_add_float(l, values[i]);
  if (turn & 1) {
    l->buffers[1] = 2;
    l->buffers[2] = 1;
  }
}

static void make_hotspot(public_workload *w) {
  enum { EACH = 2, INNER = 16 - 2 * EACH };
  uint32_t groups = public_groups(HEAT_SIDE, INNER);
  add_heat(w);
  for (int i = 0; i < HEAT_STEPS / EACH; i++) {
    public_launch *l = public_add_launch(w, "hotspot", 3, groups, groups, 1);
    public_add_uint(l, EACH);
    public_add_uint(l, HEAT_SIDE);
    public_add_uint(l, HEAT_SIDE);
    public_add_uint(l, EACH);
    set_heat(l, i);
  }
}

static void make_heat_steps(public_workload *w, const char *kernel) {
  add_heat(w);
  for (int i = 0; i < HEAT_STEPS; i++) {
    public_launch *l =
        public_add_launch(w, kernel, 3, HEAT_SIDE / 64, HEAT_SIDE / 4, 1);
    public_add_uint(l, HEAT_SIDE);
    public_add_uint(l, HEAT_SIDE);
    set_heat(l, i);
  }
}

static void make_hotspot_direct(public_workload *w) {
  make_heat_steps(w, "hotspot_direct");
}

static void make_hotspot_guard(public_workload *w) {
  make_heat_steps(w, "hotspot_guard");
}

static void make_pathfinder(public_workload *w) {
  enum { COLUMNS = 100000, ROWS = 100, EACH = 10, INNER = 256 - 2 * EACH };
  public_add_words(w, (size_t)COLUMNS * ROWS, 10);
  public_fill_words(public_add_in_place(w, (size_t)COLUMNS * 4, PUBLIC_BITS),
                    COLUMNS, 10, 3);
  public_add(w, (size_t)COLUMNS * 4, PUBLIC_INPUT);
  public_numbers(w, COLUMNS, ROWS, 0);
  for (uint32_t i = 0; i < ROWS / EACH; i++) {
    public_launch *l = public_add_launch(w, "pathfinder", 3,
                                         public_groups(COLUMNS, INNER), 1, 1);
    public_add_uint(l, EACH);
    public_add_uint(l, COLUMNS);
    public_add_uint(l, i * EACH);
    public_add_uint(l, EACH);
    if (i & 1) {
      l->buffers[1] = 2;
      l->buffers[2] = 1;
    }
  }
}

enum { LIFE_SIDE = 4096 };

static void make_life_as(public_workload *w, const char *kernel, uint32_t x,
                         uint32_t y) {
  size_t cells = (size_t)LIFE_SIDE * LIFE_SIDE;
  uint8_t *now = public_add(w, cells, PUBLIC_INPUT);
  public_fill_words((uint32_t *)(void *)now, cells / 4, UINT_MAX, 1);
  for (size_t i = 0; i < cells; i++) now[i] &= 1;
  public_add(w, cells, PUBLIC_BITS);
  public_numbers(w, LIFE_SIDE, LIFE_SIDE, 0);
  public_launch *l =
      public_add_launch(w, kernel, 2, LIFE_SIDE / x, LIFE_SIDE / y, 1);
  public_add_uint(l, LIFE_SIDE);
  public_add_uint(l, LIFE_SIDE);
}

static void make_life(public_workload *w) {
  make_life_as(w, "life", 32, 8);
}

static void make_life_guard(public_workload *w) {
  make_life_as(w, "life_guard", 64, 4);
}

static void make_transpose(public_workload *w) {
  enum { SIDE = 2048 };
  public_add_floats(w, (size_t)SIDE * SIDE, -1, 1);
  public_add(w, (size_t)SIDE * SIDE * 4, PUBLIC_BITS);
  public_numbers(w, SIDE, SIDE, 0);
  public_launch *l =
      public_add_launch(w, "transpose", 2, SIDE / 16, SIDE / 16, 1);
  public_add_uint(l, SIDE);
  public_add_uint(l, SIDE);
}

enum { BLUR_SIDE = 1024, TAPS = 17 };

static void make_blur(public_workload *w, const char *rows, uint32_t rows_x,
                      uint32_t rows_y, const char *columns, uint32_t columns_x,
                      uint32_t columns_y) {
  size_t cells = (size_t)BLUR_SIDE * BLUR_SIDE;
  public_add_floats(w, cells, 0, 1);
  public_add(w, cells * 4, PUBLIC_FLOATS);
  public_add(w, cells * 4, PUBLIC_FLOATS);
  public_add_floats(w, TAPS, 0, .1f);
  public_numbers(w, BLUR_SIDE, BLUR_SIDE, 0);
  public_launch *l =
      public_add_launch(w, rows, 3, BLUR_SIDE / rows_x, BLUR_SIDE / rows_y, 1);
  l->buffers[2] = 3;
  public_add_uint(l, BLUR_SIDE);
  public_add_uint(l, BLUR_SIDE);
  l = public_add_launch(w, columns, 3, BLUR_SIDE / columns_x,
                        BLUR_SIDE / columns_y, 1);
  for (int i = 0; i < 3; i++) l->buffers[i] = i + 1;
  public_add_uint(l, BLUR_SIDE);
  public_add_uint(l, BLUR_SIDE);
}

static void make_convsep(public_workload *w) {
  make_blur(w, "conv_rows", 16 * 8, 4, "conv_cols", 16, 8 * 8);
}

static void make_convsep_direct(public_workload *w) {
  make_blur(w, "conv_rows_direct", 64, 4, "conv_cols_direct", 64, 4);
}

static void make_dct8x8(public_workload *w) {
  enum { SIDE = 1024 };
  public_add_floats(w, (size_t)SIDE * SIDE, -128, 128);
  public_add(w, (size_t)SIDE * SIDE * 4, PUBLIC_FLOATS);
  public_numbers(w, SIDE, SIDE, 0);
  public_launch *l = public_add_launch(w, "dct8x8", 2, SIDE / 32, SIDE / 16, 1);
  public_add_uint(l, SIDE);
}

static void make_raytrace(public_workload *w) {
  enum { SIDE = 512, SPHERES = 64 };
  float *s = public_add_floats(w, (size_t)SPHERES * 8, 0, 1);
  for (int i = 0; i < SPHERES; i++, s += 8) {
    for (int axis = 0; axis < 3; axis++) s[axis] = s[axis] * 4 - 2;
    s[3] = .1f + s[3] * .3f;
    s[7] *= .8f;
  }
  public_add(w, (size_t)SIDE * SIDE * 3, PUBLIC_PIXELS);
  public_numbers(w, SIDE, SIDE, SPHERES);
  public_launch *l =
      public_add_launch(w, "raytrace", 2, SIDE / 16, SIDE / 16, 1);
  public_add_uint(l, SIDE);
  public_add_uint(l, SIDE);
  public_add_uint(l, SPHERES);
}

/* --- linear algebra, physics, machine learning -----------------------------*/

/* Launches full grids in every step, as Rodinia does. */
static void make_gaussian(public_workload *w) {
  enum { SIDE = 512 };
  size_t cells = (size_t)SIDE * SIDE;
  public_add_in_place(w, cells * 4, PUBLIC_FLOATS);
  float *a = public_add_in_place(w, cells * 4, PUBLIC_FLOATS);
  public_fill_floats(a, cells, -1, 1, 2);
  for (size_t i = 0; i < SIDE; i++) a[i * SIDE + i] += SIDE;
  public_fill_floats(public_add_in_place(w, (size_t)SIDE * 4, PUBLIC_FLOATS),
                     SIDE, -1, 1, 3);
  public_numbers(w, SIDE, 0, 0);
  for (uint32_t t = 0; t < SIDE - 1; t++) {
    public_launch *l = public_add_launch(w, "fan1", 2, SIDE / 256, 1, 1);
    public_add_uint(l, SIDE);
    public_add_uint(l, t);
    l = public_add_launch(w, "fan2", 3, SIDE / 16, SIDE / 16, 1);
    public_add_uint(l, SIDE);
    public_add_uint(l, t);
  }
}

/* Returns the entries of a row: the same in every run, without a pattern. */
static uint32_t row_length(uint32_t row, uint32_t least, uint32_t most) {
  uint32_t hash = row * 2654435761u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  return least + (hash >> 8) % (most - least + 1);
}

static void add_sparse(public_workload *w, uint32_t rows, uint32_t least,
                       uint32_t most) {
  size_t entries = 0;
  for (uint32_t r = 0; r < rows; r++) entries += row_length(r, least, most);
  public_add_floats(w, entries, -1, 1);
  public_add_words(w, entries, rows);
  uint32_t *start = public_add(w, ((size_t)rows + 1) * 4, PUBLIC_INPUT);
  for (uint32_t r = 0; r < rows; r++) {
    start[r + 1] = start[r] + row_length(r, least, most);
  }
  public_add_floats(w, rows, -1, 1);
  public_add(w, (size_t)rows * 4, PUBLIC_FLOATS);
  public_numbers(w, (int)rows, 0, 0);
}

enum { SPARSE_ROWS = 100000 };

static void make_spmv_scalar(public_workload *w) {
  add_sparse(w, SPARSE_ROWS, 8, 24);
  public_launch *l = public_add_launch(w, "spmv_scalar", 5,
                                       public_groups(SPARSE_ROWS, 256), 1, 1);
  public_add_uint(l, SPARSE_ROWS);
}

static void make_spmv_vector(public_workload *w) {
  add_sparse(w, SPARSE_ROWS, 8, 127);
  public_launch *l = public_add_launch(w, "spmv_vector", 5,
                                       public_groups(SPARSE_ROWS, 4), 1, 1);
  public_add_uint(l, SPARSE_ROWS);
}

enum { TRANSFORMS = 2048 };

static void add_points(public_workload *w) {
  size_t count = (size_t)TRANSFORMS * 1024;
  public_fill_floats(public_add_in_place(w, count * 4, PUBLIC_FLOATS), count,
                     -1, 1, 1);
  public_numbers(w, TRANSFORMS, 0, 0);
}

static void make_fft512(public_workload *w) {
  add_points(w);
  public_add_launch(w, "fft512", 1, TRANSFORMS, 1, 1);
}

static void make_fft512_table(public_workload *w) {
  static const int reversed[] = {0, 4, 2, 6, 1, 5, 3, 7};
  add_points(w);
  float *table = public_add(w, 2048 * sizeof *table, PUBLIC_INPUT);
  for (int i = 0; i < 1024; i++) {
    int stage = i / 512, k = i / 64 % 8, t = i % 64, row = t / 8;
    double angle = -2 * 3.14159265358979323846 * reversed[k] *
                   (stage == 0 ? t / 512.0 : row / 64.0);
    *table++ = (float)cos(angle);
    *table++ = (float)sin(angle);
  }
  public_add_launch(w, "fft512_table", 2, TRANSFORMS, 1, 1);
}

static void make_nbody(public_workload *w) {
  enum { BODIES = 4096 };
  public_add_floats(w, (size_t)BODIES * 4, 0, 1);
  public_add(w, (size_t)BODIES * 16, PUBLIC_FLOATS);
  public_numbers(w, BODIES, 0, 0);
  public_launch *l = public_add_launch(w, "nbody", 2, BODIES / 256, 1, 1);
  public_add_uint(l, BODIES);
  public_add_float(l, .01f);
}

static void make_layernorm(public_workload *w) {
  enum { ROWS = 4096, WIDTH = 768 };
  public_add_floats(w, (size_t)ROWS * WIDTH, -1, 1);
  public_add_floats(w, WIDTH, .5f, 1.5f);
  public_add_floats(w, WIDTH, -.5f, .5f);
  public_add(w, (size_t)ROWS * WIDTH * 4, PUBLIC_FLOATS);
  public_numbers(w, ROWS, WIDTH, 0);
  public_add_uint(public_add_launch(w, "layernorm", 4, ROWS, 1, 1), WIDTH);
}

static void make_attention(public_workload *w) {
  enum { QUERIES = 512, HEADS = 8, DEPTH = 32 };
  size_t count = (size_t)QUERIES * HEADS * DEPTH;
  for (int i = 0; i < 3; i++) public_add_floats(w, count, -1, 1);
  public_add(w, count * 4, PUBLIC_FLOATS);
  public_numbers(w, QUERIES, HEADS, 0);
  public_launch *l =
      public_add_launch(w, "attention", 4, QUERIES / 64, HEADS, 1);
  public_add_uint(l, QUERIES);
  public_add_float(l, .17677669f);
}

/* --- sorting, searching, hashing -------------------------------------------*/

enum { ORDER = 256, NODE = 2 * (ORDER + 1), INNERS = 16 };

/* Fills a node with @p count children or records from @p first on. The keys of
 * neighbours are @p step apart. */
static void fill_node(int32_t *node, int count, int first, int key, int step) {
  for (int i = 0; i <= ORDER; i++) {
    node[i] = i < count ? first + i : 0;
    node[ORDER + 1 + i] = i <= count ? key + i * step : INT_MAX;
  }
}

/* A tree of three levels: a root, INNERS nodes, and ORDER leaves each. Record i
 * has the key 2 i, so that half of the queries find nothing. */
static void make_btree(public_workload *w) {
  enum { LEAVES = INNERS * ORDER, RECORDS = LEAVES * ORDER, QUERIES = 20000 };
  enum { NODES = 1 + INNERS + LEAVES };
  int32_t *nodes = public_add(w, (size_t)NODES * NODE * 4, PUBLIC_INPUT);
  fill_node(nodes, INNERS, 1, 0, 2 * ORDER * ORDER);
  for (int i = 0; i < INNERS; i++) {
    fill_node(nodes + (size_t)(1 + i) * NODE, ORDER, 1 + INNERS + i * ORDER,
              i * 2 * ORDER * ORDER, 2 * ORDER);
  }
  for (int i = 0; i < LEAVES; i++) {
    fill_node(nodes + (size_t)(1 + INNERS + i) * NODE, ORDER, i * ORDER,
              i * 2 * ORDER, 2);
  }
  public_add_words(w, RECORDS, 1u << 30);
  public_add_words(w, QUERIES, 2 * RECORDS);
  public_add(w, (size_t)QUERIES * 4, PUBLIC_BITS);
  public_numbers(w, QUERIES, 2, 0);
  public_launch *l = public_add_launch(w, "find_k", 4, QUERIES, 1, 1);
  public_add_uint(l, 2);
  public_add_uint(l, NODES);
}

static void make_radix(public_workload *w) {
  enum { GROUPS = 256, EACH = 4096, PAIRS = GROUPS * EACH, SHIFT = 4 };
  public_add_words(w, PAIRS, UINT_MAX);
  public_add_words(w, PAIRS, UINT_MAX);
  public_add(w, (size_t)PAIRS * 4, PUBLIC_BITS);
  public_add(w, (size_t)PAIRS * 4, PUBLIC_BITS);
  public_add(w, (size_t)GROUPS * 16 * 4, PUBLIC_BITS);
  public_numbers(w, GROUPS, EACH, SHIFT);
  public_launch *l = public_add_launch(w, "radix_count", 2, GROUPS, 1, 1);
  l->buffers[1] = 4;
  public_add_uint(l, EACH);
  public_add_uint(l, SHIFT);
  l = public_add_launch(w, "radix_scan", 1, 1, 1, 1);
  l->buffers[0] = 4;
  l->length = GROUPS * 16;
  l = public_add_launch(w, "radix_scatter", 5, GROUPS, 1, 1);
  public_add_uint(l, EACH);
  public_add_uint(l, SHIFT);
}

static void make_bitonic(public_workload *w) {
  enum { BLOCKS = 1024, EACH = 512, PAIRS = BLOCKS * EACH };
  for (int i = 0; i < 2; i++) {
    public_fill_words(public_add_in_place(w, (size_t)PAIRS * 4, PUBLIC_BITS),
                      PAIRS, UINT_MAX, (uint64_t)i);
  }
  public_numbers(w, BLOCKS, 0, 0);
  public_add_launch(w, "bitonic_shared", 2, BLOCKS, 1, 1);
}

static void make_sha256(public_workload *w) {
  enum { MESSAGES = 65536 };
  public_add_words(w, (size_t)MESSAGES * 16, UINT_MAX);
  public_add(w, (size_t)MESSAGES * 32, PUBLIC_BITS);
  memcpy(public_add(w, sizeof sha256_rounds, PUBLIC_INPUT), sha256_rounds,
         sizeof sha256_rounds);
  public_numbers(w, MESSAGES, 0, 0);
  public_add_uint(public_add_launch(w, "sha256", 3, MESSAGES / 64, 1, 1),
                  MESSAGES);
}

#define PORT(name, make, tolerance) \
  {#name, "../public/" #name, #name, false, PUBLIC_PORT, tolerance, make}
#define PORT_SAME(name, make, tolerance) \
  {#name, "../public/" #name, #name, true, PUBLIC_PORT, tolerance, make}
#define REWRITE(name, twin, make, tolerance) \
  {#name, "../public/" #name, #twin, false, PUBLIC_REWRITE, tolerance, make}

const public_entry public_entries[] = {
    PORT(attention, make_attention, 1e-4),
    PORT(bitonic, make_bitonic, 0),
    PORT(btree, make_btree, 0),
    PORT(convsep, make_convsep, 1e-5),
    PORT(dct8x8, make_dct8x8, 1e-5),
    PORT_SAME(fft512, make_fft512, 1e-4),
    PORT(gaussian, make_gaussian, 1e-4),
    PORT_SAME(hotspot, make_hotspot, 1e-5),
    PORT(layernorm, make_layernorm, 1e-4),
    PORT(life, make_life, 0),
    PORT(nbody, make_nbody, 1e-3),
    PORT_SAME(pathfinder, make_pathfinder, 0),
    PORT_SAME(radix, make_radix, 0),
    PORT(raytrace, make_raytrace, 0),
    PORT(sha256, make_sha256, 0),
    {"spmv scalar", "../public/spmv", "spmv", false, PUBLIC_PORT, 1e-4,
     make_spmv_scalar},
    {"spmv vector", "../public/spmv", "spmv", false, PUBLIC_PORT, 1e-4,
     make_spmv_vector},
    PORT(transpose, make_transpose, 0),
    REWRITE(convsep_direct, convsep, make_convsep_direct, 1e-5),
    REWRITE(fft512_table, fft512, make_fft512_table, 1e-4),
    REWRITE(hotspot_direct, hotspot, make_hotspot_direct, 1e-5),
    REWRITE(hotspot_guard, hotspot, make_hotspot_guard, 1e-5),
    REWRITE(life_guard, life, make_life_guard, 0),
};

const int public_entry_count =
    (int)(sizeof public_entries / sizeof public_entries[0]);
