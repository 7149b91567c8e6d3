/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The workloads: makes their data and checks their results. */
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

const cpu_shape cpu_shapes[CPU_KERNELS] = {
    [CPU_KERNEL_saxpy] = {"saxpy", "saxpy", 2, 1, 1u << 1, {256, 1, 1}},
    [CPU_KERNEL_mandelbrot] =
        {"mandelbrot", "mandelbrot", 1, 5, 1u << 0, {16, 16, 1}},
    [CPU_KERNEL_reduce] = {"reduce", "reduce", 2, 0, 1u << 1, {256, 1, 1}},
    [CPU_KERNEL_softmax] = {"softmax", "softmax", 2, 1, 1u << 1, {64, 1, 1}},
    [CPU_KERNEL_matmul_naive] =
        {"matmul_naive", "matmul_naive", 3, 1, 1u << 2, {16, 16, 1}},
    [CPU_KERNEL_matmul_tiled] =
        {"matmul_tiled", "matmul_tiled", 3, 1, 1u << 2, {16, 16, 1}},
    [CPU_KERNEL_matmul_blocked] =
        {"matmul_blocked", "matmul_blocked", 3, 1, 1u << 2, {64, 8, 1}},
    [CPU_KERNEL_stencil] = {"stencil", "stencil", 2, 2, 1u << 1, {64, 4, 1}},
    [CPU_KERNEL_histogram] =
        {"histogram", "histogram", 2, 0, 1u << 1, {256, 1, 1}},
    [CPU_KERNEL_bfs] =
        {"bfs", "bfs", 6, 1, 1u << 3 | 1u << 4 | 1u << 5, {64, 1, 1}},
    [CPU_KERNEL_match] = {"match", "match", 3, 0, 1u << 2, {256, 1, 1}},
    [CPU_KERNEL_exp] = {"exp", "exponential", 2, 0, 1u << 1, {256, 1, 1}},
};

/* --- data ------------------------------------------------------------------*/

enum { PAGE = 4096 };

static void *add_buffer(cpu_workload *w, int i, size_t size) {
  size_t room = (size + PAGE) / PAGE * PAGE;
  void *data = aligned_alloc(PAGE, room);
  if (!data) bench_fail(w->name, "out of memory");
  memset(data, 0, room); /* maps the pages before anything is timed */
  w->args.buffers[i] = (cpu_buffer){data, size};
  return data;
}

/* All bits of the fraction are random, so that another order of additions
 * shows. */
static void add_random(cpu_workload *w, int i, size_t count, float low,
                       float high) {
  uint64_t state = 88172645463325252u + (uint64_t)i;
  float *to = add_buffer(w, i, count * sizeof *to);
  for (size_t k = 0; k < count; k++) {
    float unit = (float)(bench_random(&state) >> 40) * 0x1p-24f;
    to[k] = low + (high - low) * unit;
  }
}

static uint32_t groups(size_t items, uint32_t size) {
  return (uint32_t)((items + size - 1) / size);
}

static void make_saxpy(cpu_workload *w, size_t n) {
  add_random(w, 0, n, -1, 1);
  add_random(w, 1, n, -1, 1);
  w->args.scalars[0].f = 0.37f;
  w->amount = 12.0 * (double)n; /* two elements read, one written */
  w->grid[0] = groups(n, 256);
  w->lengths[0].u = (uint32_t)n;
  w->length_count = 1;
}

static void make_mandelbrot(cpu_workload *w, size_t width) {
  size_t height = width * 3 / 4;
  add_buffer(w, 0, width * height * 4);
  w->args.scalars[0].u = (uint32_t)width;
  w->args.scalars[1].u = 256;
  w->args.scalars[2].f = -2.2f;
  w->args.scalars[3].f = -1.2f;
  w->args.scalars[4].f = 2.4f / (float)height;
  w->amount = 1e3 * (double)(width * height); /* Mpix/s */
  w->grid[0] = groups(width, 16);
  w->grid[1] = groups(height, 16);
  w->lengths[0].u = (uint32_t)height;
  w->length_count = 1;
}

static void make_reduce(cpu_workload *w, size_t n) {
  add_random(w, 0, n, 0, 1);
  add_buffer(w, 1, 4);
  w->amount = 4.0 * (double)n;
  w->grid[0] = groups(n, 256);
}

static void make_softmax(cpu_workload *w, size_t rows) {
  enum { WIDTH = 512 };
  size_t n = rows * WIDTH;
  add_random(w, 0, n, -8, 8);
  add_buffer(w, 1, n * 4);
  w->args.scalars[0].u = WIDTH;
  w->amount = 1e3 * (double)n; /* Melem/s */
  w->grid[0] = (uint32_t)rows;
}

static void make_matmul(cpu_workload *w, size_t n) {
  const uint32_t *local = cpu_shapes[w->kernel].local;
  add_random(w, 0, n * n, -1, 1);
  add_random(w, 1, n * n, -1, 1);
  add_buffer(w, 2, n * n * 4);
  w->args.scalars[0].u = (uint32_t)n;
  w->amount = 2.0 * (double)n * (double)n * (double)n;
  w->grid[0] = groups(n, local[0]);
  /* the blocked one has 8 rows per invocation */
  w->grid[1] =
      groups(n, w->kernel == CPU_KERNEL_matmul_blocked ? 64 : local[1]);
}

static void make_stencil(cpu_workload *w, size_t side) {
  add_random(w, 0, side * side, 0, 100);
  add_buffer(w, 1, side * side * 4);
  w->args.scalars[0].u = w->args.scalars[1].u = (uint32_t)side;
  w->amount = 8.0 * (double)side * (double)side;
  w->grid[0] = groups(side, 64);
  w->grid[1] = groups(side, 4);
}

enum { BINS = 256 };

static void make_histogram(cpu_workload *w, size_t n) {
  uint64_t state = 7;
  unsigned char *data = add_buffer(w, 0, n);
  for (size_t i = 0; i < n; i++)
    data[i] = (unsigned char)(bench_random(&state) >> 56);
  add_buffer(w, 1, BINS * sizeof(uint32_t));
  w->amount = (double)n;
  w->reset = 1u << 1;
  w->grid[0] = groups(n, 256 * 64);
  w->lengths[0].u = (uint32_t)n;
  w->length_count = 1;
}

enum { DEGREE = 8 };

/* Finds the nodes of the next step. Returns their number. */
static size_t step(const uint32_t *starts, const uint32_t *targets,
                   const uint32_t *found, size_t count, uint32_t *distance,
                   uint32_t *next, uint32_t depth) {
  size_t made = 0;
  for (size_t i = 0; i < count; i++) {
    for (uint32_t e = starts[found[i]]; e < starts[found[i] + 1]; e++) {
      if (distance[targets[e]] != UINT32_MAX) continue;
      distance[targets[e]] = depth + 1;
      next[made++] = targets[e];
    }
  }
  return made;
}

/* Makes a random graph, searched until a sixteenth of it is found in one
 * step. */
static void make_bfs(cpu_workload *w, size_t nodes) {
  uint64_t state = 99;
  uint32_t *starts = add_buffer(w, 0, (nodes + 1) * 4), edges = 0, depth = 0;
  for (size_t i = 0; i < nodes; i++) {
    starts[i] = edges;
    edges += (uint32_t)(bench_random(&state) >> 32) % (2 * DEGREE + 1);
  }
  starts[nodes] = edges;
  uint32_t *targets = add_buffer(w, 1, (size_t)edges * 4);
  for (uint32_t i = 0; i < edges; i++) {
    targets[i] = (uint32_t)(bench_random(&state) >> 32) % (uint32_t)nodes;
  }
  uint32_t *found = add_buffer(w, 2, nodes * 4);
  uint32_t *distance = add_buffer(w, 3, nodes * 4);
  uint32_t *next = add_buffer(w, 4, nodes * 4);
  add_buffer(w, 5, 4);
  memset(distance, 0xFF, nodes * 4);
  size_t count = 8;
  for (uint32_t i = 0; i < count; i++) distance[found[i] = i] = 0;
  while (count < nodes / 16) {
    count = step(starts, targets, found, count, distance, next, depth++);
    if (count == 0) bench_fail(w->name, "the graph has too few edges");
    memcpy(found, next, count * 4);
  }
  memset(next, 0, nodes * 4);
  w->args.buffers[2].size = count * 4;
  w->args.scalars[0].u = depth;
  double looked = 0;
  for (size_t i = 0; i < count; i++)
    looked += starts[found[i] + 1] - starts[found[i]];
  w->amount = 1e3 * looked; /* millions of edges a second */
  w->reset = 1u << 3 | 1u << 5;
  w->grid[0] = groups(count, 64);
  w->lengths[0].u = (uint32_t)count;
  w->length_count = 1;
}

static void make_match(cpu_workload *w, size_t n) {
  static const char pattern[] = {'g', 'a', 't', 't', 'a', 'c', 'a', 'g'};
  uint64_t state = 5;
  char *text = add_buffer(w, 0, n);
  for (size_t i = 0; i < n; i++) text[i] = "acgt"[bench_random(&state) >> 62];
  memcpy(text + n - sizeof pattern, pattern, sizeof pattern);
  memcpy(add_buffer(w, 1, sizeof pattern), pattern, sizeof pattern);
  add_buffer(w, 2, 4);
  w->amount = (double)n;
  w->reset = 1u << 2;
  w->grid[0] = groups(n, 256);
  w->lengths[0].u = (uint32_t)n;
  w->lengths[1].u = sizeof pattern;
  w->length_count = 2;
}

static void make_exp(cpu_workload *w, size_t n) {
  add_random(w, 0, n, -20, 20);
  add_buffer(w, 1, n * 4);
  w->amount = 1e3 * (double)n;
  w->grid[0] = groups(n, 256);
  w->lengths[0].u = (uint32_t)n;
  w->length_count = 1;
}

static const struct {
  const char *name;
  cpu_kernel kernel;
  cpu_bound bound;
  const char *unit;
  void (*make)(cpu_workload *w, size_t size);
  size_t size, small;
  int repeat;
} table[CPU_WORKLOADS] = {
    {"saxpy in cache", CPU_KERNEL_saxpy, CPU_CACHE, "GB/s", make_saxpy, 65536,
     1000, 200},
    {"saxpy in memory", CPU_KERNEL_saxpy, CPU_MEMORY, "GB/s", make_saxpy,
     16 << 20, 1003, 1},
    {"mandelbrot", CPU_KERNEL_mandelbrot, CPU_COMPUTE, "Mpix/s",
     make_mandelbrot, 1024, 36, 1},
    {"reduction in cache", CPU_KERNEL_reduce, CPU_CACHE, "GB/s", make_reduce,
     65536, 3000, 200},
    {"reduction in memory", CPU_KERNEL_reduce, CPU_MEMORY, "GB/s", make_reduce,
     16 << 20, 70000, 1},
    {"softmax", CPU_KERNEL_softmax, CPU_COMPUTE, "Mel/s", make_softmax, 4096, 3,
     1},
    {"matmul naive", CPU_KERNEL_matmul_naive, CPU_COMPUTE, "GFLOP/s",
     make_matmul, 512, 21, 1},
    {"matmul tiled", CPU_KERNEL_matmul_tiled, CPU_COMPUTE, "GFLOP/s",
     make_matmul, 512, 21, 1},
    {"matmul blocked", CPU_KERNEL_matmul_blocked, CPU_COMPUTE, "GFLOP/s",
     make_matmul, 512, 21, 1},
    {"stencil", CPU_KERNEL_stencil, CPU_MEMORY, "GB/s", make_stencil, 2048, 70,
     1},
    {"histogram", CPU_KERNEL_histogram, CPU_MEMORY, "GB/s", make_histogram,
     64 << 20, 20000, 1},
    {"bfs step", CPU_KERNEL_bfs, CPU_MEMORY, "MTEPS", make_bfs, 1 << 20, 500,
     1},
    {"byte match", CPU_KERNEL_match, CPU_COMPUTE, "GB/s", make_match, 16 << 20,
     5000, 1},
    {"exp", CPU_KERNEL_exp, CPU_COMPUTE, "Mel/s", make_exp, 1 << 20, 1000, 4},
};

const char *cpu_workload_name(int index) {
  return table[index].name;
}

static void make(cpu_workload *w, int index, size_t size, int repeat) {
  *w = (cpu_workload){.name = table[index].name,
                      .kernel = table[index].kernel,
                      .bound = table[index].bound,
                      .unit = table[index].unit,
                      .repeat = repeat,
                      .grid = {1, 1, 1}};
  table[index].make(w, size);
  const cpu_shape *shape = &cpu_shapes[w->kernel];
  for (uint32_t i = 0; i < shape->buffers; i++) {
    if (!(shape->written >> i & 1)) continue;
    w->first[i] = malloc(w->args.buffers[i].size);
    if (!w->first[i]) bench_fail(w->name, "out of memory");
    memcpy(w->first[i], w->args.buffers[i].data, w->args.buffers[i].size);
  }
}

void cpu_workload_make(cpu_workload *w, int index, bool is_small) {
  make(w, index, is_small ? table[index].small : table[index].size,
       is_small ? 1 : table[index].repeat);
}

void cpu_workload_make_sized(cpu_workload *w, int index, size_t size,
                             int repeat) {
  make(w, index, size, repeat);
}

void cpu_workload_make_saxpy(cpu_workload *w, size_t count) {
  make(w, 0, count, 1);
}

void cpu_workload_free(cpu_workload *w) {
  for (int i = 0; i < CPU_BUFFERS; i++) {
    free(w->args.buffers[i].data);
    free(w->first[i]);
  }
}

void cpu_workload_restore(cpu_workload *w, uint32_t mask) {
  for (int i = 0; mask >> i; i++) {
    if (!(mask >> i & 1) || !w->first[i]) continue;
    memcpy(w->args.buffers[i].data, w->first[i], w->args.buffers[i].size);
  }
}

static int by_word(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

void cpu_workload_sort_nodes(cpu_workload *w) {
  if (w->kernel != CPU_KERNEL_bfs) return;
  uint32_t count = *(const uint32_t *)w->args.buffers[5].data;
  size_t max = w->args.buffers[4].size / 4;
  qsort(w->args.buffers[4].data, count < max ? count : max, 4, by_word);
}

/* --- checks ----------------------------------------------------------------*/

static char problem[160];

static bool near(double got, double want, double relative, double absolute) {
  return fabs(got - want) <= absolute + relative * fabs(want);
}

static const char *wrong(size_t at, double got, double want) {
  (void)snprintf(problem, sizeof problem, "element %zu is %.9g, not %.9g", at,
                 got, want);
  return problem;
}

static double at_float(const cpu_workload *w, int buffer, size_t i) {
  return (double)((const float *)w->args.buffers[buffer].data)[i];
}

static uint32_t at_word(const cpu_workload *w, int buffer, size_t i) {
  return ((const uint32_t *)w->args.buffers[buffer].data)[i];
}

static size_t count_of(const cpu_workload *w, int buffer) {
  return w->args.buffers[buffer].size / 4;
}

static const char *check_each(const cpu_workload *w, int out,
                              double (*want)(const cpu_workload *w, size_t i),
                              double relative, double absolute) {
  size_t n = count_of(w, out), stride = n / 5000 + 1;
  for (size_t i = 0; i < n; i += stride) {
    double expected = want(w, i), got = at_float(w, out, i);
    if (!near(got, expected, relative, absolute))
      return wrong(i, got, expected);
  }
  return NULL;
}

static double want_saxpy(const cpu_workload *w, size_t i) {
  return (double)w->args.scalars[0].f * at_float(w, 0, i) +
         (double)((const float *)w->first[1])[i];
}

static double want_exp(const cpu_workload *w, size_t i) {
  return exp(at_float(w, 0, i));
}

static double want_matmul(const cpu_workload *w, size_t i) {
  size_t n = w->args.scalars[0].u, row = i / n, column = i % n;
  double sum = 0;
  for (size_t k = 0; k < n; k++) {
    sum += at_float(w, 0, row * n + k) * at_float(w, 1, k * n + column);
  }
  return sum;
}

static double want_stencil(const cpu_workload *w, size_t i) {
  size_t n = w->args.scalars[0].u, x = i % n, y = i / n;
  if (x == 0 || y == 0 || x == n - 1 || y == n - 1) return 0;
  return (at_float(w, 0, i) + at_float(w, 0, i - 1) + at_float(w, 0, i + 1) +
          at_float(w, 0, i - n) + at_float(w, 0, i + n)) /
         5;
}

static double want_softmax(const cpu_workload *w, size_t i) {
  size_t width = w->args.scalars[0].u, row = i / width * width;
  double sum = 0;
  for (size_t k = 0; k < width; k++) sum += exp(at_float(w, 0, row + k));
  return exp(at_float(w, 0, i)) / sum;
}

/* A few points may differ: near the edge of the set, another rounding of one
 * operation changes the number of steps. */
static const char *check_mandelbrot(const cpu_workload *w) {
  size_t width = w->args.scalars[0].u, n = count_of(w, 0), differ = 0, seen = 0;
  double scale = (double)w->args.scalars[4].f;
  for (size_t i = 0; i < n; i += n / 5000 + 1, seen++) {
    size_t row = i / width;
    double cx = (double)(i % width) * scale + (double)w->args.scalars[2].f;
    double cy = (double)row * scale + (double)w->args.scalars[3].f;
    double x = 0, y = 0;
    uint32_t steps = 0;
    for (; steps < w->args.scalars[1].u && x * x + y * y <= 4; steps++) {
      double next = x * x - y * y + cx;
      y = 2 * x * y + cy;
      x = next;
    }
    differ += steps != at_word(w, 0, i);
  }
  if (differ <= seen / 50) return NULL;
  (void)snprintf(problem, sizeof problem, "%zu of %zu points differ", differ,
                 seen);
  return problem;
}

static const char *check_reduce(const cpu_workload *w) {
  double sum = 0, got = at_float(w, 1, 0);
  for (size_t i = 0; i < count_of(w, 0); i++) sum += at_float(w, 0, i);
  return near(got, sum, 1e-4, 0) ? NULL : wrong(0, got, sum);
}

static const char *check_histogram(const cpu_workload *w) {
  uint32_t bins[256] = {0};
  const unsigned char *data = w->args.buffers[0].data;
  for (size_t i = 0; i < w->args.buffers[0].size; i++) bins[data[i]]++;
  for (size_t i = 0; i < 256; i++) {
    if (bins[i] != at_word(w, 1, i)) return wrong(i, at_word(w, 1, i), bins[i]);
  }
  return NULL;
}

static const char *check_match(const cpu_workload *w) {
  const char *text = w->args.buffers[0].data;
  size_t size = w->args.buffers[1].size, n = w->args.buffers[0].size;
  uint32_t count = 0, got = at_word(w, 2, 0);
  for (size_t i = 0; i + size <= n; i++) {
    count += memcmp(text + i, w->args.buffers[1].data, size) == 0;
  }
  return got == count ? NULL : wrong(0, got, count);
}

static const char *check_bfs(const cpu_workload *w) {
  size_t nodes = count_of(w, 3), made;
  uint32_t *distance = malloc(nodes * 4), *next = malloc(nodes * 4);
  uint32_t *mine = malloc(nodes * 4);
  const char *found = NULL;
  if (!distance || !next || !mine) bench_fail(w->name, "out of memory");
  memcpy(distance, w->first[3], nodes * 4);
  made = step(w->args.buffers[0].data, w->args.buffers[1].data,
              w->args.buffers[2].data, count_of(w, 2), distance, next,
              w->args.scalars[0].u);
  memcpy(mine, w->args.buffers[4].data, nodes * 4);
  qsort(next, made, 4, by_word);
  if (at_word(w, 5, 0) != made)
    found = wrong(0, at_word(w, 5, 0), (double)made);
  for (size_t i = 0; i < nodes && !found; i++) {
    if (distance[i] != at_word(w, 3, i))
      found = wrong(i, at_word(w, 3, i), distance[i]);
  }
  if (!found) qsort(mine, made, 4, by_word);
  if (!found && memcmp(mine, next, made * 4) != 0)
    found = "other nodes were found";
  free(distance);
  free(next);
  free(mine);
  return found;
}

const char *cpu_workload_check(const cpu_workload *w) {
  switch (w->kernel) {
    case CPU_KERNEL_saxpy:
      return check_each(w, 1, want_saxpy, 1e-6, 1e-7);
    case CPU_KERNEL_mandelbrot:
      return check_mandelbrot(w);
    case CPU_KERNEL_reduce:
      return check_reduce(w);
    case CPU_KERNEL_softmax:
      return check_each(w, 1, want_softmax, 1e-5, 0);
    case CPU_KERNEL_matmul_naive:
    case CPU_KERNEL_matmul_tiled:
    case CPU_KERNEL_matmul_blocked:
      return check_each(w, 2, want_matmul, 1e-5, 1e-4);
    case CPU_KERNEL_stencil:
      return check_each(w, 1, want_stencil, 1e-6, 0);
    case CPU_KERNEL_histogram:
      return check_histogram(w);
    case CPU_KERNEL_bfs:
      return check_bfs(w);
    case CPU_KERNEL_match:
      return check_match(w);
    case CPU_KERNEL_exp:
      return check_each(w, 1, want_exp, 1e-6, 0);
    case CPU_KERNELS:
      break;
  }
  return "no such kernel";
}
