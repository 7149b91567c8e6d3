/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernel that most dispatch cases use, its data and its expected results. */
#ifndef VYRE_CTS_HARNESS_SAXPY_H
#define VYRE_CTS_HARNESS_SAXPY_H

#include <string.h>

#include "cts/harness/cts.h"

/* Computes y = a x + y, and sums of y in z, an output of declared size. */
static const char saxpy_text[] =
    "kernel saxpy workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer z : read_write u32[4] @2 output;\n"
    "uniform a : u32 @3;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i >= len(y)) return;\n"
    "    y[i] = a * x[i] + y[i];\n"
    "    atomic_add(z[i % 4], y[i]);\n"
    "}\n";

enum { SAXPY_COUNT = 37, SAXPY_BYTES = 4 * SAXPY_COUNT, SAXPY_SUMS = 16 };

typedef struct saxpy_result {
  uint32_t y[SAXPY_COUNT], z[4];
} saxpy_result;

typedef struct saxpy_data {
  uint32_t x[SAXPY_COUNT], y[SAXPY_COUNT], a;
  /* One more than the kernel has, for tests of wrong counts. */
  vyre_input in[4];
  vyre_output out[3];
  vyre_dispatch_desc desc;
} saxpy_data;

/* Initialises random data and binds the memory of the results. */
static inline void saxpy_make(saxpy_data *d, uint64_t seed, saxpy_result *to) {
  uint64_t state = seed + 1;
  memset(d, 0, sizeof *d);
  for (int i = 0; i < SAXPY_COUNT; i++) {
    d->x[i] = (uint32_t)cts_random(&state);
    d->y[i] = (uint32_t)cts_random(&state);
  }
  d->a = (uint32_t)cts_random(&state);
  d->in[0] = vyre_input_bytes(d->x, SAXPY_BYTES);
  d->in[1] = vyre_input_bytes(d->y, SAXPY_BYTES);
  d->in[2] = vyre_input_bytes(&d->a, 4);
  memset(to, 0xa5, sizeof *to); /* so that zeroed outputs are noticed */
  d->out[0] = vyre_output_bytes(to->y, SAXPY_BYTES);
  d->out[1] = vyre_output_bytes(to->z, SAXPY_SUMS);
  d->desc = (vyre_dispatch_desc){
      .inputs = d->in, .input_count = 3, .outputs = d->out, .output_count = 2};
}

/* Returns the result of @p launches launches on the same buffers. */
static inline saxpy_result saxpy_expect(const saxpy_data *d,
                                        unsigned iterations) {
  saxpy_result want = {{0}, {0}};
  memcpy(want.y, d->y, SAXPY_BYTES);
  for (unsigned r = 0; r < iterations; r++) {
    for (uint32_t i = 0; i < SAXPY_COUNT; i++) {
      want.y[i] = d->a * d->x[i] + want.y[i];
      want.z[i % 4] += want.y[i];
    }
  }
  return want;
}

#endif
