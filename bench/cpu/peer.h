/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Arguments of the suite's kernels, and the table of functions of a peer in C.
 *
 * peers.sh compiles peer_openmp.c with several compilers, each into a shared
 * object that the benchmark loads. */
#ifndef VYRE_BENCH_CPU_PEER_H
#define VYRE_BENCH_CPU_PEER_H

#include <stddef.h>
#include <stdint.h>

/* X(name): the kernels. Each is a file NAME.vyre, a function of every peer in C
 * and a kernel in peer_opencl.cl. */
#define CPU_KERNEL_MAP(X) \
  X(saxpy)                \
  X(mandelbrot)           \
  X(reduce)               \
  X(softmax)              \
  X(matmul_naive)         \
  X(matmul_tiled)         \
  X(matmul_blocked)       \
  X(stencil)              \
  X(histogram)            \
  X(bfs)                  \
  X(match)                \
  X(exp)

typedef enum cpu_kernel {
#define CPU_X(name) CPU_KERNEL_##name,
  CPU_KERNEL_MAP(CPU_X)
#undef CPU_X
      CPU_KERNELS
} cpu_kernel;

enum { CPU_BUFFERS = 6, CPU_SCALARS = 5 };

/* Arguments: buffers in the order of the kernel's bindings, then uniforms. */
typedef union cpu_scalar {
  uint32_t u;
  float f;
} cpu_scalar;

typedef struct cpu_buffer {
  void *data;
  size_t size; /* bytes */
} cpu_buffer;

typedef struct cpu_args {
  cpu_buffer buffers[CPU_BUFFERS];
  cpu_scalar scalars[CPU_SCALARS];
} cpu_args;

typedef struct cpu_peer {
  const char *compiler; /* name and version */
  void (*threads)(int count);
  void (*run[CPU_KERNELS])(const cpu_args *args);
  void (*saxpy_alone)(const cpu_args *args); /* without OpenMP */
  /* `count` items of `rounds` dependent operations each, one item per
   * thread. */
  void (*pieces)(uint32_t *out, int count, uint32_t rounds);
  void (*pieces_alone)(uint32_t *out, int count, uint32_t rounds);
} cpu_peer;

/* The only exported symbol of a peer. */
#define CPU_PEER_SYMBOL "cpu_peer_table"

#endif
