/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A kernel of the suite with its data: what every rival is given, and whether what
 * it made of it is right. */
#ifndef VYRE_BENCH_CPU_WORKLOAD_H
#define VYRE_BENCH_CPU_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "peer.h"

/* What a kernel takes, in the order of its bindings. */
typedef struct cpu_shape {
  const char *file;   /* NAME.vyre; also the function of peers */
  const char *opencl; /* kernel in peer_opencl.cl */
  uint32_t buffers, scalars;
  uint32_t written; /* bit i: buffer i is written */
  uint32_t local[3];
} cpu_shape;

extern const cpu_shape cpu_shapes[CPU_KERNELS];

/* Where the time goes. */
typedef enum cpu_bound { CPU_MEMORY, CPU_CACHE, CPU_COMPUTE } cpu_bound;

typedef struct cpu_workload {
  const char *name;
  cpu_kernel kernel;
  cpu_bound bound;
  const char *unit;
  double amount; /* of units that a nanosecond of one launch is divided into */
  int repeat;    /* launches a run: as many as make it long enough to measure */
  uint32_t reset; /* bit i: buffer i is as at first before every launch */
  uint32_t grid[3];
  cpu_args args;
  cpu_scalar lengths[2]; /* that OpenCL is told and vyre knows by len() */
  uint32_t length_count;
  void *first[CPU_BUFFERS]; /* what written buffers hold at first */
} cpu_workload;

enum { CPU_WORKLOADS = 14 };

/* Makes workload @p index (below CPU_WORKLOADS): of its real size, or a small one
 * that an interpreter can do. */
void cpu_workload_make(cpu_workload *w, int index, bool is_small);
/* Of any size, and launched so often a run. */
void cpu_workload_make_sized(cpu_workload *w, int index, size_t size,
                             int repeat);
/* saxpy of @p count elements. */
void cpu_workload_make_saxpy(cpu_workload *w, size_t count);
void cpu_workload_free(cpu_workload *w);
const char *cpu_workload_name(int index);

/* Buffers of @p mask become what they were at first. */
void cpu_workload_restore(cpu_workload *w, uint32_t mask);

/* Whether the buffers hold what one launch must leave in them, up to what the order
 * of operations may change: by plain loops in double precision. NULL: they do; else
 * what is wrong. */
const char *cpu_workload_check(const cpu_workload *w);

/* Order in which nodes were found says nothing: sorts them. */
void cpu_workload_settle(cpu_workload *w);

#endif
