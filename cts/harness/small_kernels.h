/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases that consist of one u32 kernel, its data and its expected result. */
#ifndef VYRE_CTS_HARNESS_SMALL_KERNELS_H
#define VYRE_CTS_HARNESS_SMALL_KERNELS_H

#include <stdio.h>
#include <string.h>

#include "cts/harness/cts.h"

/* Runs @p text, which declares `buffer r : read_write u32[] @0 output` (or
 * write) and, if @p in is given, `buffer a : read u32[] @1`. Checks that the
 * first @p count elements of r equal @p want. The grid is @p x, @p y, @p z (all
 * 0: inferred). */
static inline void small_run(cts *c, const char *text, const uint32_t *in,
                             size_t in_count, const uint32_t *want,
                             size_t count, uint32_t x, uint32_t y, uint32_t z) {
  uint32_t *got = (uint32_t *)cts_memory(c, 4 * count + 4);
  memset(got, 0x5a, 4 * count + 4);
  vyre_input input = vyre_input_bytes(in, 4 * in_count);
  vyre_output output = vyre_output_bytes(got, 4 * count);
  vyre_dispatch_desc desc = {.inputs = &input,
                             .input_count = in ? 1 : 0,
                             .outputs = &output,
                             .output_count = 1,
                             .grid = {x, y, z}};
  vyre_pipeline *pipeline = cts_kernel(c, text);
  vyre_counters before;
  vyre_counters_read(c->device, &before);
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, before.launches + 1);
  CTS_SAME(c, "r", got, want, 4 * count);
  CTS_CHECK(c, got[count] == 0x5a5a5a5a);
}

/* Entry of a table of such kernels; a function computes the expected result. */
typedef struct small_case {
  const char *name, *text;
  uint32_t count, grid[3];
  void (*expect)(uint32_t *want, uint32_t count);
  bool needs_u64; /* ops.add.u64 checks that devices without u64 reject it */
} small_case;

#define SMALL_AREA(area, about)                                            \
  static size_t area##_count(void) {                                       \
    return sizeof cases / sizeof *cases;                                   \
  }                                                                        \
  static void area##_label(size_t index, char *out, size_t size) {         \
    (void)snprintf(out, size, "%s", cases[index].name);                    \
  }                                                                        \
  static void area##_run(cts *c, size_t index) {                           \
    const small_case *s = &cases[index];                                   \
    uint32_t *want = (uint32_t *)cts_memory(c, 4 * (size_t)s->count);      \
    if (s->needs_u64 && !c->caps->has_u64) cts_lacks(c, "u64");            \
    s->expect(want, s->count);                                             \
    small_run(c, s->text, NULL, 0, want, s->count, s->grid[0], s->grid[1], \
              s->grid[2]);                                                 \
  }                                                                        \
  const cts_area area_##area = {#area, about, area##_count, area##_label,  \
                                area##_run}

#endif
