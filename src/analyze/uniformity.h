/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which values are the same for all invocations, and which control flow they
 * take together (semantics.md, "Execution").
 *
 * Facts are about the nodes of the kernel itself. A function computes its result
 * from its arguments and ids alone, so a call is as uniform as they are,
 * whatever way control takes inside; facts about nodes inside functions need the
 * inlined program (analyze/inline.h). */
#ifndef VYRE_ANALYZE_UNIFORMITY_H
#define VYRE_ANALYZE_UNIFORMITY_H

#include "vyre/status.h"

#include "analyze/effects.h"
#include "ir/ir.h"

typedef enum vyre__level {
  VYRE__LEVEL_GRID,    /* the same in the whole dispatch, and the host can
                          compute it: constants, uniforms, len, sizes */
  VYRE__LEVEL_GROUP,   /* the same in a workgroup */
  VYRE__LEVEL_VARYING, /* not known to be the same */
} vyre__level;

typedef struct vyre__uniformity {
  const uint8_t *value;   /* per expression: vyre__level of its value */
  const uint8_t *control; /* per node: which invocations reach it together */
  /* Why. Of a LOCAL that is not grid-uniform: the statement that made it so.
   * Of a statement or a UNIFORM with such control: the IF, FOR, WHILE, && or ||
   * whose condition, or the jump, that parts them. 0 if there is nothing. */
  const vyre__id *cause;
} vyre__uniformity;

/* *out lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__uniformity_build(const vyre_program *program,
                                 const vyre__effects *effects,
                                 vyre_arena *arena, vyre__uniformity *out,
                                 vyre_status *st);

/* As vyre__uniformity_build, for memory that may change between two loads: only
 * loads of uniforms are the same for all invocations (analyze/racy_guards.h). */
vyre_code vyre__uniformity_build_changing(const vyre_program *program,
                                          const vyre__effects *effects,
                                          vyre_arena *arena,
                                          vyre__uniformity *out,
                                          vyre_status *st);

/* The same for who wants facts of the kernel's nodes up to @p last only, at less
 * cost: behind the statement that it is in, everything counts as varying. */
vyre_code vyre__uniformity_build_to(const vyre_program *program,
                                    const vyre__effects *effects, vyre__id last,
                                    vyre_arena *arena, vyre__uniformity *out,
                                    vyre_status *st);

/* Where a value or a control flow that is not uniform comes from in the end. */
typedef struct vyre__origin {
  vyre__id node;   /* an id, a load, an atomic ...; or a parting condition */
  bool by_control; /* node parts the invocations that assign the value */
} vyre__origin;

/* Follows an expression to the first operand that is above @p level. */
vyre__origin vyre__uniformity_origin(const vyre_program *program,
                                     const vyre__uniformity *facts, vyre__id id,
                                     vyre__level level);

#endif
