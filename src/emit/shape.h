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
 * have made it): two that part never meet in one claim. A variable has the shape
 * of what GET gives; see is_lockstep. */
#ifndef VYRE_EMIT_SHAPE_H
#define VYRE_EMIT_SHAPE_H

#include "vyre/memory.h"

#include "lower/low.h"
#include "lower/regions.h"

typedef enum vyre__shape_kind {
  VYRE__SHAPE_CONSTANT,
  VYRE__SHAPE_GROUP,
  VYRE__SHAPE_VECTOR,
  VYRE__SHAPE_LINEAR,
  VYRE__SHAPE_VARYING,
} vyre__shape_kind;

typedef struct vyre__shape {
  uint8_t kind;    /* vyre__shape_kind */
  uint8_t aligned; /* that of lane 0 is a multiple of 2^aligned; integers */
  uint64_t stride; /* LINEAR: not 0, in the type's own width */
} vyre__shape;

typedef struct vyre__shape_var {
  vyre__shape shape; /* of GET, wherever it is */
  bool is_lockstep;  /* lanes that are active in a varying loop agree (one scalar
                        does in there), those that left it kept older values (a
                        vector is needed behind) */
} vyre__shape_var;

typedef struct vyre__shapes {
  uint32_t width;
  uint32_t begin;          /* of the phase */
  vyre__shape *values;     /* of instruction begin + i; IF: of its condition */
  vyre__shape_var *vars;   /* of the kernel's variables */
  bool *parts_lanes;       /* LOOP: lanes may leave it in different rounds; IF: its
                              condition is not the same for active lanes */
} vyre__shapes;

static inline vyre__shape vyre__shape_of(const vyre__shapes *s, vyre__val v) {
  return s->values[v - s->begin];
}

/* Finds them for one phase, cut into @p regions without rare pieces. *out lives
 * in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__shapes_find(const vyre__regions *regions, uint32_t width,
                            vyre_arena *arena, vyre__shapes *out,
                            vyre_status *st);

#endif
