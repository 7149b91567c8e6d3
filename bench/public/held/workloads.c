/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite public.held: sizes, data and launches of a second set of kernels of
 * public GPU suites. No optimisation is made for them: they show how far the
 * results of the suite public generalise. */
#include <limits.h>
#include <math.h>

#include "public/workload.h"

static void make_srad(public_workload *w) {
  enum { SIDE = 1024, STEPS = 2 };
  size_t cells = (size_t)SIDE * SIDE;
  public_fill_floats(public_add_in_place(w, cells * 4, PUBLIC_FLOATS), cells,
                     .5f, 1.5f, 1);
  for (int i = 0; i < 5; i++) public_add(w, cells * 4, PUBLIC_FLOATS);
  public_numbers(w, SIDE, SIDE, STEPS);
  for (int i = 0; i < 2 * STEPS; i++) {
    public_launch *l = public_add_launch(w, i % 2 ? "srad2" : "srad1", 6,
                                         SIDE / 16, SIDE / 16, 1);
    public_add_uint(l, SIDE);
    public_add_uint(l, SIDE);
    public_add_float(l, i % 2 ? .5f : .05f);
  }
}

static void make_kmeans(public_workload *w) {
  enum { POINTS = 100000, CLUSTERS = 5, FEATURES = 34 };
  public_add_floats(w, (size_t)POINTS * FEATURES, 0, 1);
  public_add_floats(w, (size_t)CLUSTERS * FEATURES, 0, 1);
  public_add(w, (size_t)POINTS * 4, PUBLIC_BITS);
  public_numbers(w, POINTS, CLUSTERS, FEATURES);
  public_launch *l =
      public_add_launch(w, "kmeans", 3, public_groups(POINTS, 256), 1, 1);
  public_add_uint(l, POINTS);
  public_add_uint(l, CLUSTERS);
  public_add_uint(l, FEATURES);
}

static void make_nw(public_workload *w) {
  enum { SIDE = 1024, COLUMNS = SIDE + 1, TILES = SIDE / 16, PENALTY = 10 };
  size_t cells = (size_t)COLUMNS * COLUMNS;
  int32_t *reference = public_add(w, cells * 4, PUBLIC_INPUT);
  public_fill_words((uint32_t *)reference, cells, 20, 1);
  for (size_t i = 0; i < cells; i++) reference[i] -= 8;
  int32_t *items = public_add_in_place(w, cells * 4, PUBLIC_BITS);
  for (int i = 0; i < COLUMNS; i++) {
    items[i] = items[(size_t)i * COLUMNS] = -i * PENALTY;
  }
  public_numbers(w, COLUMNS, PENALTY, 0);
  for (uint32_t d = 0; d < 2 * TILES - 1; d++) {
    uint32_t first = d < TILES ? 0 : d - TILES + 1;
    uint32_t last = d < TILES ? d : TILES - 1;
    public_launch *l = public_add_launch(w, "nw", 2, last - first + 1, 1, 1);
    public_add_uint(l, COLUMNS);
    public_add_uint(l, PENALTY);
    public_add_uint(l, first);
    public_add_uint(l, d - first);
  }
}

static void make_backprop(public_workload *w) {
  enum { UNITS = 65536, HIDDEN = 16 };
  size_t weights = (size_t)(UNITS + 1) * (HIDDEN + 1);
  public_add_floats(w, UNITS + 1, 0, 1);
  public_fill_floats(public_add_in_place(w, weights * 4, PUBLIC_FLOATS),
                     weights, -1, 1, 2);
  public_add(w, (size_t)UNITS * 4, PUBLIC_FLOATS);
  public_add_floats(w, HIDDEN + 1, -1, 1);
  public_fill_floats(public_add_in_place(w, weights * 4, PUBLIC_FLOATS),
                     weights, -.1f, .1f, 3);
  public_numbers(w, UNITS, 0, 0);
  public_launch *l = public_add_launch(w, "layer_forward", 3, 1, UNITS / 16, 1);
  public_add_uint(l, HIDDEN);
  l = public_add_launch(w, "adjust_weights", 4, 1, UNITS / 16, 1);
  l->buffers[0] = 3;
  l->buffers[1] = 0;
  l->buffers[2] = 1;
  l->buffers[3] = 4;
  public_add_uint(l, HIDDEN);
}

static void make_stencil3d(public_workload *w) {
  enum { NX = 256, NY = 256, NZ = 64 };
  size_t cells = (size_t)NX * NY * NZ;
  public_add_floats(w, cells, 0, 1);
  public_add(w, cells * 4, PUBLIC_FLOATS);
  public_numbers(w, NX, NY, NZ);
  public_launch *l = public_add_launch(w, "stencil3d", 2, NX / 32, NY / 4, NZ);
  public_add_uint(l, NX);
  public_add_uint(l, NY);
  public_add_uint(l, NZ);
  public_add_float(l, 6);
  public_add_float(l, 1);
}

static void make_mriq(public_workload *w) {
  enum { VOXELS = 16384, SAMPLES = 256 };
  public_add_floats(w, (size_t)SAMPLES * 4, -1, 1);
  for (int i = 0; i < 3; i++) public_add_floats(w, VOXELS, -4, 4);
  public_add(w, (size_t)VOXELS * 4, PUBLIC_FLOATS);
  public_add(w, (size_t)VOXELS * 4, PUBLIC_FLOATS);
  public_numbers(w, VOXELS, SAMPLES, 0);
  public_launch *l = public_add_launch(w, "mriq", 6, VOXELS / 256, 1, 1);
  public_add_uint(l, SAMPLES);
  public_add_uint(l, VOXELS);
}

/* Coordinates are multiples of 1/256, so that all products are exact and every
 * rival finds the same bins. */
static void make_tpacf(public_workload *w) {
  enum { POINTS = 2048, BINS = 20 };
  float *points = public_add_floats(w, (size_t)POINTS * 3, -1, 1);
  for (int i = 0; i < POINTS * 3; i++) {
    points[i] = floorf(points[i] * 256) / 256;
  }
  float *limits = public_add(w, (BINS + 1) * sizeof *limits, PUBLIC_INPUT);
  for (int i = 0; i <= BINS; i++) limits[i] = -1 + (float)i * 2 / BINS;
  public_add_in_place(w, (size_t)BINS * 4, PUBLIC_BITS);
  public_numbers(w, POINTS, 0, 0);
  public_add_uint(public_add_launch(w, "tpacf", 3, POINTS / 256, 1, 1), POINTS);
}

static void make_blackscholes(public_workload *w) {
  enum { OPTIONS = 1 << 20 };
  public_add_floats(w, OPTIONS, 5, 30);
  public_add_floats(w, OPTIONS, 1, 100);
  public_add_floats(w, OPTIONS, .25f, 10);
  public_add(w, (size_t)OPTIONS * 4, PUBLIC_FLOATS);
  public_add(w, (size_t)OPTIONS * 4, PUBLIC_FLOATS);
  public_numbers(w, OPTIONS, 0, 0);
  public_launch *l =
      public_add_launch(w, "blackscholes", 5, OPTIONS / 128, 1, 1);
  public_add_float(l, .02f);
  public_add_float(l, .3f);
  public_add_uint(l, OPTIONS);
}

static void make_sobel(public_workload *w) {
  enum { SIDE = 2048 };
  size_t pixels = (size_t)SIDE * SIDE;
  public_fill_words(public_add(w, pixels, PUBLIC_INPUT), pixels / 4, UINT_MAX,
                    1);
  public_add(w, pixels, PUBLIC_BITS);
  public_numbers(w, SIDE, SIDE, 0);
  public_launch *l = public_add_launch(w, "sobel", 2, SIDE / 16, SIDE / 16, 1);
  public_add_uint(l, SIDE);
  public_add_uint(l, SIDE);
}

static void make_scan(public_workload *w) {
  enum { COUNT = 1 << 19, BLOCKS = COUNT / 512 };
  public_add_words(w, COUNT, 1000);
  public_add(w, (size_t)COUNT * 4, PUBLIC_BITS);
  public_add(w, (size_t)BLOCKS * 4, PUBLIC_INPUT);
  public_numbers(w, COUNT, 0, 0);
  public_add_launch(w, "scan_blocks", 3, BLOCKS, 1, 1);
  public_launch *l = public_add_launch(w, "scan_sums", 1, 1, 1, 1);
  l->buffers[0] = 2;
  public_add_uint(l, BLOCKS);
  l = public_add_launch(w, "scan_add", 2, BLOCKS, 1, 1);
  l->buffers[0] = 1;
  l->buffers[1] = 2;
}

static void make_floyd(public_workload *w) {
  enum { NODES = 384 };
  size_t cells = (size_t)NODES * NODES;
  uint32_t *distance = public_add_in_place(w, cells * 4, PUBLIC_BITS);
  public_fill_words(distance, cells, 10000, 1);
  for (size_t i = 0; i < NODES; i++) distance[i * NODES + i] = 0;
  public_numbers(w, NODES, 0, 0);
  for (uint32_t k = 0; k < NODES; k++) {
    public_launch *l =
        public_add_launch(w, "floyd", 1, NODES / 16, NODES / 16, 1);
    public_add_uint(l, NODES);
    public_add_uint(l, k);
  }
}

static void make_bilateral(public_workload *w) {
  enum { SIDE = 512, RADIUS = 3 };
  public_add_floats(w, (size_t)SIDE * SIDE, 0, 1);
  public_add(w, (size_t)SIDE * SIDE * 4, PUBLIC_FLOATS);
  float *gauss = public_add(w, (2 * RADIUS + 1) * sizeof *gauss, PUBLIC_INPUT);
  for (int i = -RADIUS; i <= RADIUS; i++) {
    gauss[i + RADIUS] = expf((float)(-i * i) / 8);
  }
  public_numbers(w, SIDE, SIDE, 0);
  public_launch *l =
      public_add_launch(w, "bilateral", 3, SIDE / 16, SIDE / 16, 1);
  public_add_uint(l, SIDE);
  public_add_uint(l, SIDE);
  public_add_float(l, 8);
}

#define HELD(name, has_same, tolerance)     \
  {                                         \
      #name,       "../public/held/" #name, \
      #name,       has_same,                \
      PUBLIC_HELD, tolerance,               \
      make_##name}

const public_entry public_held_entries[] = {
    HELD(backprop, false, 1e-4),
    HELD(bilateral, false, 1e-4),
    HELD(blackscholes, false, 1e-4),
    HELD(floyd, false, 0),
    HELD(kmeans, false, 0),
    HELD(mriq, false, 1e-3),
    HELD(nw, false, 0),
    HELD(scan, true, 0),
    HELD(sobel, false, 0),
    HELD(srad, false, 1e-4),
    HELD(stencil3d, false, 1e-4),
    HELD(tpacf, false, 0),
};

const int public_held_count =
    (int)(sizeof public_held_entries / sizeof public_held_entries[0]);
