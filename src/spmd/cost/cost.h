/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cost model of vector code: estimates from the schedule how many cycles one
 * invocation takes at a given vector width.
 *
 * The model walks the tree of the schedule after all passes. Each instruction
 * counts as often as its leaf runs: a loop multiplies by its trip count, a
 * branch by the probability that a vector takes it. An instruction costs once
 * per vector if all lanes agree, and once per register if they differ. An
 * access costs by its kind. A loop takes at least as long as the longest chain
 * of operations from one iteration to the next. */
#ifndef VYRE_SPMD_COST_H
#define VYRE_SPMD_COST_H

#include "spmd/cost/cost_machine.h"
#include "spmd/schedule.h"

/* Kinds of work that take cycles: X(enumerator, name). */
#define VYRE__COST_MAP(X)     \
  X(ARITHMETIC, "arithmetic") \
  X(DIVISION, "division")     \
  X(CONTIGUOUS, "contiguous") \
  X(STRIDED, "strided")       \
  X(GATHER, "gather")         \
  X(SCATTER, "scatter")       \
  X(MASKED, "masked")         \
  X(ATOMIC, "atomic")         \
  X(DIVERGENCE, "divergence") \
  X(LATENCY, "latency")       \
  X(SPILLS, "spills")         \
  X(OVERHEAD, "overhead")

typedef enum vyre__cost_kind {
#define VYRE__X(name, text) VYRE__COST_##name,
  VYRE__COST_MAP(VYRE__X)
#undef VYRE__X
      VYRE__COST_KINDS
} vyre__cost_kind;

typedef struct vyre__cost {
  uint32_t width;
  double cycles; /* per invocation */
  double kinds[VYRE__COST_KINDS];
  uint32_t jammed_rows; /* rows that run together; 1: none do */
  uint32_t ranges;      /* ranges of rows with code of their own */
  uint32_t size;        /* instructions of LLVM IR, estimated */
} vyre__cost;

/* Estimates the cost of @p kernel, to which vyre__prepare_kernel was applied,
 * with the schedule of @p options. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__cost_estimate(const vyre__lir_kernel *kernel,
                              const vyre__schedule_options *options,
                              const vyre__cost_machine *machine,
                              vyre_arena *arena, vyre__cost *out,
                              vyre_status *st);

#endif
