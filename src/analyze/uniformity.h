/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Uniformity analysis: values that are the same for all invocations, and
 * control flow that they take together (semantics.md, "Execution").
 *
 * Results exist for nodes of the kernel. A function depends on its arguments
 * and ids only, so a call is as uniform as these, whatever its control flow.
 * Results for nodes inside functions need the inlined program
 * (analyze/inline/inline.h). */
#ifndef VYRE_ANALYZE_UNIFORMITY_H
#define VYRE_ANALYZE_UNIFORMITY_H

#include "vyre/status.h"

#include "analyze/effects.h"
#include "ir/ir.h"

typedef enum vyre__level {
  /* same in the full dispatch, and computable by the host: constants, uniforms,
   * len, sizes */
  VYRE__LEVEL_GRID,
  VYRE__LEVEL_GROUP,    /* same in a workgroup */
  VYRE__LEVEL_SUBGROUP, /* same in a subgroup */
  VYRE__LEVEL_VARYING,  /* not known to be the same */
} vyre__level;

typedef struct vyre__uniformity {
  const uint8_t *value; /* per expression: vyre__level of its value */
  /* per node: level at which invocations reach it together */
  const uint8_t *control;
  /* Reason for a level. Of a LOCAL that is not grid-uniform: the statement
   * that assigned it. Of a statement or UNIFORM under such control: the IF,
   * FOR, WHILE, && or || with a non-uniform condition, or the jump. 0 without
   * a reason. */
  const vyre__id *cause;
} vyre__uniformity;

/* Runs the analysis. *out lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__uniformity_build(const vyre_program *program,
                                 const vyre__effects *effects,
                                 vyre_arena *arena, vyre__uniformity *out,
                                 vyre_status *st);

/* Like vyre__uniformity_build, if memory may change between two loads: only
 * loads of uniforms are the same for all invocations (analyze/racy_guards.h).
 */
vyre_code vyre__uniformity_build_changing(const vyre_program *program,
                                          const vyre__effects *effects,
                                          vyre_arena *arena,
                                          vyre__uniformity *out,
                                          vyre_status *st);

/* Like vyre__uniformity_build, but cheaper: for nodes up to the statement
 * with node @p last. Everything after it counts as varying. */
vyre_code vyre__uniformity_build_to(const vyre_program *program,
                                    const vyre__effects *effects, vyre__id last,
                                    vyre_arena *arena, vyre__uniformity *out,
                                    vyre_status *st);

/* Origin of a value or of control flow that is not uniform. */
typedef struct vyre__origin {
  vyre__id node; /* an id, a load, an atomic ...; or a divergent condition */
  /* the value is assigned under the divergent control flow of `node` */
  bool by_control;
} vyre__origin;

/* Follows an expression to the first operand that is above @p level. */
vyre__origin vyre__uniformity_origin(const vyre_program *program,
                                     const vyre__uniformity *facts, vyre__id id,
                                     vyre__level level);

#endif
