/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A workload: a kernel of the suite with its data. All rivals get the same one,
 * and their results are checked. */
#ifndef VYRE_BENCH_CPU_WORKLOAD_H
#define VYRE_BENCH_CPU_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "peer.h"

/* Arguments of a kernel, in the order of its bindings. */
typedef struct cpu_shape {
  const char *file;   /* NAME.vyre; also the function in the peers */
  const char *opencl; /* kernel in peer_opencl.cl */
  uint32_t buffers, scalars;
  uint32_t written; /* bit i: buffer i is written */
  uint32_t local[3];
} cpu_shape;

extern const cpu_shape cpu_shapes[CPU_KERNELS];

/* The resource that limits a workload. */
typedef enum cpu_bound { CPU_MEMORY, CPU_CACHE, CPU_COMPUTE } cpu_bound;

typedef struct cpu_workload {
  const char *name;
  cpu_kernel kernel;
  cpu_bound bound;
  const char *unit;
  double amount; /* units of work per launch; divided by ns for the rate */
  int repeat;    /* launches per run, so that a run is long enough to measure */
  uint32_t reset; /* bit i: buffer i is restored before every launch */
  uint32_t grid[3];
  cpu_args args;
  cpu_scalar lengths[2]; /* arguments of OpenCL; vyre has len() */
  uint32_t length_count;
  void *first[CPU_BUFFERS]; /* initial contents of written buffers */
} cpu_workload;

enum { CPU_WORKLOADS = 14 };

/* Makes workload @p index (below CPU_WORKLOADS), in its real size or in a small
 * one for an interpreter. */
void cpu_workload_make(cpu_workload *w, int index, bool is_small);
/* Makes a workload of any size, with @p repeat launches per run. */
void cpu_workload_make_sized(cpu_workload *w, int index, size_t size,
                             int repeat);
/* Makes saxpy of @p count elements. */
void cpu_workload_make_saxpy(cpu_workload *w, size_t count);
void cpu_workload_free(cpu_workload *w);
const char *cpu_workload_name(int index);

/* Restores the initial contents of the buffers in @p mask. */
void cpu_workload_restore(cpu_workload *w, uint32_t mask);

/* Checks the buffers after one launch against plain loops in double precision,
 * with the tolerance that another order of operations needs. Returns NULL, or
 * the first difference. */
const char *cpu_workload_check(const cpu_workload *w);

/* Sorts the nodes that were found: their order has no meaning. */
void cpu_workload_sort_nodes(cpu_workload *w);

#endif
