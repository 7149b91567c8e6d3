/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cost model of vector code: estimates the cycles that one invocation takes
 * at a given vector width.
 *
 * The model counts instructions, weighted by how often they run: a loop
 * multiplies by its trip count, a branch by the probability that a lane takes
 * it. An instruction costs once per vector if all lanes agree, and once per
 * register if they differ. Memory accesses depend on how the addresses of
 * adjacent lanes are related. */
#ifndef VYRE_SPMD_COST_H
#define VYRE_SPMD_COST_H

#include "spmd/lane_shape.h"

/* Kinds of work that take cycles: X(enumerator, name). */
#define VYRE__COST_MAP(X)          \
  X(ARITHMETIC, "arithmetic")      \
  X(CONTIGUOUS, "contiguous")      \
  X(STRIDED, "strided")            \
  X(GATHER, "gather")              \
  X(SCATTER, "scatter")            \
  X(MASKED, "masked")              \
  X(ATOMIC, "atomic")              \
  X(DIVERGENCE, "divergent loops") \
  X(OVERHEAD, "overhead")

typedef enum vyre__cost_kind {
#define VYRE__X(name, text) VYRE__COST_##name,
  VYRE__COST_MAP(VYRE__X)
#undef VYRE__X
      VYRE__COST_KINDS
} vyre__cost_kind;

typedef struct vyre__cost {
  double cycles; /* per invocation */
  double kinds[VYRE__COST_KINDS];
} vyre__cost;

/* Estimates the cost of @p kernel at @p width on a processor with
 * 256-bit units. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__cost_estimate(const vyre__lir_kernel *kernel, uint32_t width,
                              vyre_arena *arena, vyre__cost *out,
                              vyre_status *st);

#endif
