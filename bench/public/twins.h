/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Common code of the twins: loops in C with OpenMP, without intrinsics. */
#ifndef VYRE_BENCH_PUBLIC_TWINS_H
#define VYRE_BENCH_PUBLIC_TWINS_H

#include "peer.h"

#define FLOATS(i) ((float *)args->buffers[i])
#define INTS(i)   ((int32_t *)args->buffers[i])
#define WORDS(i)  ((uint32_t *)args->buffers[i])
#define BYTES(i)  ((uint8_t *)args->buffers[i])
#define NUMBER(i) (args->numbers[i])

static inline int smaller(int a, int b) {
  return a < b ? a : b;
}

static inline int larger(int a, int b) {
  return a > b ? a : b;
}

#endif
