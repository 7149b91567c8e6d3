/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_SPMD_LANE_SHAPE_INTERNAL_H
#define VYRE_SPMD_LANE_SHAPE_INTERNAL_H

#include "spmd/shape/lane_shape.h"

/* Shape kind during the analysis: no definition was reached yet. */
enum { SHAPE_UNSEEN = 255 };

/* The lanes of a vector. Small workgroups fill only some of them. */
typedef struct shape_lanes {
  uint32_t width;   /* power of two */
  uint32_t count;   /* lanes that can be active */
  bool is_anywhere; /* vectors may begin at any x of a row */
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

/* Returns the shape of a value that is @p a or @p b, chosen equally for all
 * lanes. */
vyre__lane_shape vyre__lane_shape_join(vyre__lane_shape a, vyre__lane_shape b);

/* Returns the shape of the value if the choice differs between vectors. */
vyre__lane_shape vyre__lanes_diverge(vyre__lane_shape s);

/* Returns the shape of LOCAL_ID. */
vyre__lane_shape vyre__lane_shape_local_id(const uint32_t workgroup[3],
                                           unsigned axis, shape_lanes lanes);

/* A u32 as a weighted sum of local ids plus a uniform rest. If rows of a
 * workgroup do not fill vectors, single ids are VARYING, but some sums are
 * not. */
typedef struct shape_sum {
  uint32_t by[3];  /* weights of local_id.x, y, z */
  uint8_t aligned; /* the rest is a multiple of 2^aligned */
  bool is_known;   /* the value is such a sum */
} shape_sum;

/* Returns true if sums can have shapes that their operands lack. */
bool vyre__lane_shape_needs_sums(const uint32_t workgroup[3],
                                 shape_lanes lanes);

/* Computes the sum of @p inst, which has @p shape, from its operands. */
shape_sum vyre__lane_shape_sum_of(const vyre__lir_inst *inst,
                                  vyre__lane_shape shape,
                                  const vyre__lane_shape operands[2],
                                  const shape_sum sums[2]);

/* Returns the shape of a sum. */
vyre__lane_shape vyre__lane_shape_of_sum(shape_sum sum,
                                         const uint32_t workgroup[3],
                                         shape_lanes lanes);

/* Returns the shape of a pure operation. @p from is the type of its first
 * operand. */
vyre__lane_shape vyre__lane_shape_pure(const vyre__lir_inst *inst,
                                       vyre_type from,
                                       const vyre__lane_shape operands[3],
                                       shape_lanes lanes);

#endif
