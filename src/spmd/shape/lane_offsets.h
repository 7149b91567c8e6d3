/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lane offsets: values whose distance between lanes is known, although it is
 * not a stride: 2 * t - (t & 1), t ^ 4, t / 8 * 9 + t % 8. */
#ifndef VYRE_SPMD_LANE_OFFSETS_H
#define VYRE_SPMD_LANE_OFFSETS_H

#include "spmd/shape/lane_shape.h"

enum { VYRE__MAX_LANES = 32 };

/* Lane k has base + lane[k], wrapping at 2^32, where the base is the same for
 * all lanes, and a multiple of 2^aligned. */
typedef struct vyre__lane_offsets {
  uint32_t lane[VYRE__MAX_LANES];
  unsigned aligned; /* at most 32 */
} vyre__lane_offsets;

/* Finds the offsets of u32 value @p v in all lanes, active or not. Returns
 * false if they are not known. */
bool vyre__lane_offsets_find(const vyre__lir_kernel *kernel,
                             const vyre__lane_shapes *shapes, vyre__val v,
                             vyre__lane_offsets *out);

/* Elements that an access touches, from base + first on. */
typedef struct vyre__lane_span {
  int32_t first;
  uint32_t count;
  bool is_single; /* no two lanes access the same element */
} vyre__lane_span;

/* Finds the span of an access. Returns false if it is longer than @p max. */
bool vyre__lane_span_find(const vyre__lane_offsets *offsets, uint32_t width,
                          uint32_t max, vyre__lane_span *out);

#endif
