/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_SPMD_LANE_SHAPE_INTERNAL_H
#define VYRE_SPMD_LANE_SHAPE_INTERNAL_H

#include "spmd/lane_shape.h"

/* A kind of its own while shapes are looked for: nobody was seen to make it. */
enum { SHAPE_UNSEEN = 255 };

/* Lanes that do something side by side: fewer than the width in workgroups that
 * do not fill a vector. */
typedef struct shape_lanes {
  uint32_t width;   /* a power of two */
  uint32_t count;   /* of them can be active */
  bool is_anywhere; /* they begin at any x of their row */
} shape_lanes;

static inline vyre__lane_shape shape_make(vyre__lane_shape_kind kind,
                                          unsigned aligned, uint64_t stride) {
  return (vyre__lane_shape){(uint8_t)kind, (uint8_t)aligned, stride};
}

static inline vyre__lane_shape shape_varying(void) {
  return shape_make(VYRE__LANE_SHAPE_VARYING, 0, 0);
}

static inline vyre__lane_shape shape_unseen(void) {
  return (vyre__lane_shape){SHAPE_UNSEEN, 0, 0};
}

static inline bool shape_equal(vyre__lane_shape a, vyre__lane_shape b) {
  return a.kind == b.kind && a.aligned == b.aligned && a.stride == b.stride;
}

unsigned vyre__lane_shape_bits(vyre_type type);

/* What one or the other is, the same one for all lanes. */
vyre__lane_shape vyre__lane_shape_join(vyre__lane_shape a, vyre__lane_shape b);

/* The same, if it is not the same one for all vectors of the workgroup. */
vyre__lane_shape vyre__lanes_diverge(vyre__lane_shape s);

/* Of LOCAL_ID. */
vyre__lane_shape vyre__lane_shape_local_id(const uint32_t workgroup[3],
                                           unsigned axis, shape_lanes lanes);

/* A u32 as a sum of ids, each so many times, and something uniform: where rows of
 * a workgroup do not fill vectors, no id has a shape, but some sums do. */
typedef struct shape_sum {
  uint32_t by[3];  /* local ids x, y, z */
  uint8_t aligned; /* the rest is a multiple of 2^aligned */
  bool is_known;   /* it is such a sum */
} shape_sum;

/* Whether sums have shapes that their parts do not have. */
bool vyre__lane_shape_needs_sums(const uint32_t workgroup[3],
                                 shape_lanes lanes);

/* Of @p inst, which has @p shape, from those of its operands. */
shape_sum vyre__lane_shape_sum_of(const vyre__lir_inst *inst,
                                  vyre__lane_shape shape,
                                  const vyre__lane_shape operands[2],
                                  const shape_sum sums[2]);

/* The shape of such a sum. */
vyre__lane_shape vyre__lane_shape_of_sum(shape_sum sum,
                                         const uint32_t workgroup[3],
                                         shape_lanes lanes);

/* Of a pure operation. @p from is the type of its first operand. */
vyre__lane_shape vyre__lane_shape_pure(const vyre__lir_inst *inst,
                                       vyre_type from,
                                       const vyre__lane_shape operands[3],
                                       shape_lanes lanes);

#endif
