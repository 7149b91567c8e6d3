/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Workloads of the table of widths that have no twin: the kernels of the suite
 * cpu.kernels and the examples. */
#include "others.h"

#include <limits.h>
#include <string.h>

#include "cpu/workload.h"

/* --- cpu.kernels -----------------------------------------------------------*/

void public_wrap_cpu(public_workload *w, int index) {
  static char files[CPU_WORKLOADS][48];
  cpu_workload from;
  cpu_workload_make(&from, index, false);
  const cpu_shape *shape = &cpu_shapes[from.kernel];
  (void)strncpy(files[index], shape->file, sizeof files[index] - 1);
  *w = (public_workload){
      .name = from.name, .file = files[index], .repeat = from.repeat};
  /* The order of the nodes that are found has no meaning. */
  public_check check =
      from.kernel == CPU_KERNEL_bfs ? PUBLIC_INPUT : PUBLIC_BITS;
  for (uint32_t i = 0; i < shape->buffers; i++) {
    bool is_written = shape->written >> i & 1;
    size_t size = from.args.buffers[i].size;
    void *to = is_written ? public_add_in_place(w, size, check)
                          : public_add(w, size, PUBLIC_INPUT);
    memcpy(to, from.args.buffers[i].data, size);
  }
  /* The sums of the first pass; later passes take no time. */
  if (from.kernel == CPU_KERNEL_reduce) {
    w->buffer_count = 1;
    public_add(w, (size_t)from.grid[0] * 4, PUBLIC_BITS);
  }
  public_launch *l = public_add_launch(
      w, NULL, (int)shape->buffers, from.grid[0], from.grid[1], from.grid[2]);
  for (uint32_t i = 0; i < shape->scalars; i++) {
    public_add_uint(l, from.args.scalars[i].u);
  }
  public_workload_keep(w);
  cpu_workload_free(&from);
}

/* --- examples --------------------------------------------------------------*/

static void add_bytes(public_workload *w, size_t count, uint32_t below) {
  uint8_t *data = public_add(w, count, PUBLIC_INPUT);
  uint64_t state = 1;
  for (size_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    data[i] = (uint8_t)((state >> 40) % below);
  }
}

static void make_bfs_step(public_workload *w) {
  enum { NODES = 1 << 18, DEGREE = 8, UNSEEN = 99 };
  uint32_t *starts = public_add(w, (size_t)(NODES + 1) * 4, PUBLIC_INPUT);
  for (uint32_t i = 0; i <= NODES; i++) {
    starts[i] = i * DEGREE + (i < NODES ? i % DEGREE : 0);
  }
  public_add_words(w, (size_t)NODES * DEGREE, NODES);
  add_bytes(w, NODES, 8);
  uint8_t *found = w->buffers[2].data;
  for (size_t i = 0; i < NODES; i++) found[i] = found[i] == 0;
  uint32_t *distance = public_add_in_place(w, (size_t)NODES * 4, PUBLIC_BITS);
  for (size_t i = 0; i < NODES; i++) distance[i] = found[i] ? 3 : UNSEEN;
  public_add(w, NODES, PUBLIC_BITS);
  public_add_uint(public_add_launch(w, NULL, 5, NODES / 64, 1, 1), 3);
}

static void make_byte_search(public_workload *w) {
  enum { SIZE = 4 << 20 };
  add_bytes(w, SIZE, 4);
  add_bytes(w, 8, 4);
  public_add(w, SIZE, PUBLIC_BITS);
  public_add_in_place(w, 4, PUBLIC_BITS);
  public_add_launch(w, NULL, 4, SIZE / 64, 1, 1);
}

static void make_histogram(public_workload *w) {
  enum { SIZE = 4 << 20 };
  add_bytes(w, SIZE, 256);
  public_add_in_place(w, 64, PUBLIC_BITS);
  public_add_launch(w, NULL, 2, SIZE / 64, 1, 1);
}

static void make_mandelbrot(public_workload *w) {
  public_add(w, (size_t)480 * 320 * 3, PUBLIC_BITS);
  public_add_launch(w, NULL, 1, 480 / 16, 320 / 16, 1);
}

static void make_matmul(public_workload *w) {
  enum { SIDE = 256 };
  for (int i = 0; i < 2; i++) public_add_floats(w, (size_t)SIDE * SIDE, -1, 1);
  public_add(w, (size_t)SIDE * SIDE * 4, PUBLIC_BITS);
  public_launch *l = public_add_launch(w, NULL, 3, SIDE / 4, SIDE / 4, 1);
  public_add_uint(l, SIDE);
}

static void make_scan_blocks(public_workload *w) {
  enum { COUNT = 1 << 20 };
  public_add_words(w, COUNT, 1000);
  public_add(w, (size_t)COUNT * 4, PUBLIC_BITS);
  public_add(w, (size_t)COUNT / 64 * 4, PUBLIC_BITS);
  public_add_launch(w, "scan_blocks", 3, COUNT / 64, 1, 1);
}

static void make_reduce_tree(public_workload *w) {
  enum { COUNT = 1 << 20 };
  public_add_floats(w, COUNT, 0, 1);
  public_add(w, (size_t)COUNT / 64 * 4, PUBLIC_BITS);
  public_add_launch(w, NULL, 2, COUNT / 64, 1, 1);
}

static void make_saxpy(public_workload *w) {
  enum { COUNT = 1 << 20 };
  public_add_floats(w, COUNT, -1, 1);
  public_fill_floats(public_add_in_place(w, (size_t)COUNT * 4, PUBLIC_BITS),
                     COUNT, -1, 1, 7);
  public_add_float(public_add_launch(w, NULL, 2, COUNT / 256, 1, 1), .5f);
}

static void make_softmax(public_workload *w) {
  enum { ROWS = 2048, WIDTH = 512 };
  public_add_floats(w, (size_t)ROWS * WIDTH, -8, 8);
  public_add(w, (size_t)ROWS * WIDTH * 4, PUBLIC_BITS);
  public_add_uint(public_add_launch(w, NULL, 2, ROWS, 1, 1), WIDTH);
}

static void make_stencil5(public_workload *w) {
  enum { SIDE = 1024 };
  public_add_floats(w, (size_t)SIDE * SIDE, 0, 1);
  public_add(w, (size_t)SIDE * SIDE * 4, PUBLIC_BITS);
  public_add_uint(public_add_launch(w, NULL, 2, SIDE / 4, SIDE / 4, 1), SIDE);
}

#define EXAMPLE(name, file, make) \
  {"example " name, "../../examples/" file, NULL, false, PUBLIC_PORT, 0, make}

const public_entry public_examples[] = {
    EXAMPLE("bfs", "bfs_step", make_bfs_step),
    EXAMPLE("search", "byte_search", make_byte_search),
    EXAMPLE("histogram", "histogram", make_histogram),
    EXAMPLE("mandelbrot", "mandelbrot", make_mandelbrot),
    EXAMPLE("matmul", "matmul_tiled", make_matmul),
    EXAMPLE("scan", "prefix_sum", make_scan_blocks),
    EXAMPLE("reduce", "reduce_tree", make_reduce_tree),
    EXAMPLE("saxpy", "saxpy", make_saxpy),
    EXAMPLE("softmax", "softmax", make_softmax),
    EXAMPLE("stencil", "stencil5", make_stencil5),
};

const int public_example_count =
    (int)(sizeof public_examples / sizeof public_examples[0]);
