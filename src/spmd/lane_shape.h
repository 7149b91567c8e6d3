/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How values differ between the invocations that run side by side in a vector.
 *
 * The invocations of a workgroup are counted with x fastest and taken `width` at
 * a time. Of an invocation in lane k of its vector:
 *
 *   CONSTANT   the same number always
 *   GROUP      the same for all invocations of the workgroup
 *   VECTOR     the same for those of one vector (local_id.y of a wide workgroup)
 *   LINEAR     that of lane 0 plus k * stride, wrapping at the width of its type
 *   VARYING    anything
 *
 * A claim holds for the lanes that are active where the value is made (only they
 * have made it): two that part never meet in one claim. Lanes that part meet
 * again at the END of an IF, at the STEP and behind the END of a LOOP; those that
 * are at one instruction in the same rounds of all loops around are there
 * together. If lane 0 is not there, "that of lane 0" is what it would have been;
 * where no lane is left, nothing is claimed.
 *
 * What a claim relies on, besides the program:
 *   - A LOAD whose index and condition are the same for the active lanes is one
 *     load for all of them, also from memory that others write: VECTOR then. (An
 *     element that is raced for has no certain value, but one; without a race the
 *     lanes would all see the same.)
 *   - IFs, BREAKs, CONTINUEs and EXITs that the regions leave to the workgroup are
 *     taken by all or by none; what is KEEP_UNIFORM there is made once and GROUP.
 *   - An IF into OUT_OF_FUEL ends the dispatch if one lane takes it.
 *
 * Where all GETs of a variable have a shape, the variable needs one scalar: what
 * lane 0 has or would have. That it was set last by other lanes than those that
 * GET it is looked at, too: such a GET is VARYING. */
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
      aligned; /* that of lane 0 is a multiple of 2^aligned; integers. As much
                      as the type has bits: it is 0. VARYING: 0 */
  uint64_t stride; /* LINEAR: not 0, in the type's own width; CONSTANT: the bits
                      of the number; else 0 */
} vyre__lane_shape;

typedef struct vyre__lane_shape_var {
  vyre__lane_shape
      shape;        /* of all GETs: VARYING if one of them is; otherwise one
                        scalar is enough, for LINEAR that of lane 0 */
  bool is_lockstep; /* VARYING, but some GETs are not: lanes that are active in
                        a varying loop agree, those that left it kept older values.
                        Beside the vector, which a SET changes in active lanes, a
                        scalar (of LINEAR: for lane 0) that it overwrites is what
                        those GETs give. A SET of a VARYING value may leave the
                        scalar as it is. All GETs that are not VARYING are uniform,
                        or all are LINEAR with one stride */
} vyre__lane_shape_var;

typedef struct vyre__lane_shapes {
  uint32_t width;
  uint32_t begin; /* of the phase */
  vyre__lane_shape
      *values; /* of instruction begin + i; IF: of its condition. Only
                            where there is a value that can be reached */
  vyre__lane_shape_var
      *vars;         /* of the kernel's variables that the phase needs */
  bool *parts_lanes; /* LOOP: lanes may leave it in different rounds, by BREAK
                            or by EXIT, so somebody must look whether any are left;
                            IF: its condition is not the same for active lanes */
} vyre__lane_shapes;

static inline vyre__lane_shape vyre__lane_shape_of(const vyre__lane_shapes *s,
                                                   vyre__val v) {
  return s->values[v - s->begin];
}

/* One scalar says it for all active lanes of a vector. */
static inline bool vyre__lane_shape_is_uniform(vyre__lane_shape s) {
  return s.kind <= VYRE__LANE_SHAPE_VECTOR;
}

/* LINEAR with a stride above 0, of an integer of @p bits bits: whether it is known
 * that the lanes up to the last one do not wrap, because that of lane 0 is aligned
 * to more than the distance to the last. */
static inline bool vyre__lane_shape_stays(vyre__lane_shape s, unsigned bits,
                                          uint32_t width) {
  uint64_t most;
  if (s.kind != VYRE__LANE_SHAPE_LINEAR ||
      __builtin_mul_overflow(s.stride, (uint64_t)width - 1, &most)) {
    return false;
  }
  unsigned room = s.aligned < bits ? s.aligned : bits;
  return room >= 64 || most >> room == 0;
}

/* Finds them for one phase, cut into @p regions without rare pieces. *out lives
 * in @p arena. Width: a power of two. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__lane_shapes_find(const vyre__regions *regions, uint32_t width,
                                 vyre_arena *arena, vyre__lane_shapes *out,
                                 vyre_status *st);

/* The same for rows of x that are cut into vectors anywhere: nothing is claimed
 * that holds only if x of lane 0 is a multiple of something. */
vyre_code vyre__lane_shapes_find_anywhere(const vyre__regions *regions,
                                          uint32_t width, vyre_arena *arena,
                                          vyre__lane_shapes *out,
                                          vyre_status *st);

#endif
