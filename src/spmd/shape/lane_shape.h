/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lane shapes: how a value differs between the lanes of a vector.
 *
 * The invocations of a workgroup are numbered with x fastest and grouped into
 * vectors of `width`. The value of the invocation in lane k of its vector is:
 *
 *   CONSTANT   always the same number
 *   GROUP      equal for all invocations of the workgroup
 *   VECTOR     equal for the lanes of one vector (local_id.y of a wide group)
 *   LINEAR     that of lane 0 plus k * stride, wrapping as its type does
 *   VARYING    any value
 *
 * A shape describes the lanes that are active where the value is defined; only
 * these define it. Lanes that diverge reconverge at the END of an IF, at the
 * STEP and after the END of a LOOP. Lanes at the same instruction in the same
 * iteration of all enclosing loops are active together. If lane 0 is inactive,
 * "that of lane 0" is the value it would have had. Without active lanes a shape
 * means nothing.
 *
 * Shapes rely on the following, besides the program:
 *   - A LOAD with an index and a condition that are equal for the active lanes
 *     is one load for all of them, even from memory that others write. Its
 *     shape is VECTOR. (A racing element has an unspecified value, but a single
 *     one; without a race all lanes would see the same.)
 *   - IFs, BREAKs, CONTINUEs and EXITs that regions assign to the workgroup are
 *     taken by all invocations or by none. Values with STORAGE_UNIFORM are
 *     computed once and have shape GROUP.
 *   - An IF into OUT_OF_FUEL ends the dispatch if any lane takes it.
 *
 * If all GETs of a variable have a shape other than VARYING, the variable needs
 * only one scalar: the value that lane 0 has or would have. A GET of a variable
 * that was last set by other lanes than those that read it is VARYING. */
#ifndef VYRE_SPMD_LANE_SHAPE_H
#define VYRE_SPMD_LANE_SHAPE_H

#include "vyre/memory.h"

#include "lir/lir.h"
#include "spmd/regions.h"

typedef enum vyre__lane_shape_kind {
  VYRE__LANE_SHAPE_CONSTANT,
  VYRE__LANE_SHAPE_GROUP,
  VYRE__LANE_SHAPE_VECTOR,
  VYRE__LANE_SHAPE_LINEAR,
  VYRE__LANE_SHAPE_VARYING,
} vyre__lane_shape_kind;

typedef struct vyre__lane_shape {
  uint8_t kind; /* vyre__lane_shape_kind */
  uint8_t
      aligned; /* lane 0's integer is a multiple of 2^aligned; the bits of the
                * type if it is 0; VARYING: 0 */
  uint64_t stride; /* LINEAR: not 0, in the width of the type; CONSTANT: the
                    * bits of the number; else 0 */
} vyre__lane_shape;

typedef struct vyre__lane_shape_var {
  vyre__lane_shape
      shape;        /* Shape of all GETs. VARYING if one of them is; otherwise
                     * one scalar suffices, for LINEAR that of lane 0. */
  bool is_lockstep; /* The shape is VARYING, but not for all GETs: lanes that
                     * are active in a varying loop agree, and lanes that left
                     * it hold older values. In addition to the vector, which a
                     * SET changes in active lanes, every SET overwrites a
                     * scalar (for LINEAR: of lane 0). GETs that are not VARYING
                     * read this scalar. A SET of a VARYING value may skip it.
                     * Those GETs are either all uniform or all LINEAR with one
                     * stride. */
} vyre__lane_shape_var;

typedef struct vyre__lane_shapes {
  uint32_t width;
  uint32_t begin; /* first instruction of the phase */
  vyre__lane_shape
      *values; /* shape of instruction begin + i; for an IF, of its condition.
                * Valid only for reachable values */
  vyre__lane_shape_var *vars; /* per variable that the phase needs */
  bool *parts_lanes; /* LOOP: lanes may leave it in different iterations, by
                      * BREAK or EXIT, so the code must test for active lanes.
                      * IF: the condition differs between active lanes */
} vyre__lane_shapes;

static inline vyre__lane_shape vyre__lane_shape_of(const vyre__lane_shapes *s,
                                                   vyre__val v) {
  return s->values[v - s->begin];
}

/* Returns true if one scalar represents all active lanes of a vector. */
static inline bool vyre__lane_shape_is_uniform(vyre__lane_shape s) {
  return s.kind <= VYRE__LANE_SHAPE_VECTOR;
}

/* Returns true if a LINEAR integer of @p bits bits with a positive stride
 * provably does not wrap up to the last lane. It must be aligned to more than
 * the distance between lane 0 and the last lane. */
static inline bool vyre__lane_shape_stays(vyre__lane_shape s, unsigned bits,
                                          uint32_t width) {
  uint64_t last;
  if (s.kind != VYRE__LANE_SHAPE_LINEAR ||
      __builtin_mul_overflow(s.stride, (uint64_t)width - 1, &last)) {
    return false;
  }
  unsigned zeros = s.aligned < bits ? s.aligned : bits;
  return zeros >= 64 || last >> zeros == 0;
}

/* Computes the lane shapes of one phase from @p regions without rare
 * subregions. *out lives in @p arena. @p width is a power of two. Errors:
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__lane_shapes_find(const vyre__regions *regions, uint32_t width,
                                 vyre_arena *arena, vyre__lane_shapes *out,
                                 vyre_status *st);

/* Computes lane shapes for vectors that may begin at any x of a row. No shape
 * then depends on the alignment of lane 0. */
vyre_code vyre__lane_shapes_find_anywhere(const vyre__regions *regions,
                                          uint32_t width, vyre_arena *arena,
                                          vyre__lane_shapes *out,
                                          vyre_status *st);

#endif
