/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the files of the cost model. */
#ifndef VYRE_SPMD_COST_INTERNAL_H
#define VYRE_SPMD_COST_INTERNAL_H

#include "spmd/cost/cost.h"
#include "spmd/passes/narrow.h"

/* A walk over the schedule of one phase. */
typedef struct estimate {
  const vyre__schedule *s;
  const vyre__cost_machine *machine;
  const vyre__narrow *narrow;
  const float *live; /* per instruction: registers in use; NULL: unknown */
  float *depths, *var_depths;           /* for vyre__cost_path */
  double times;                         /* how often the current node runs */
  const vyre__sched_node *rows, *range; /* around the node, or NULL */
  const vyre__jam *jam;                 /* rows that run together, or NULL */
  const vyre__sched_node *walks;        /* LOOP in which lanes walk, or NULL */
  bool is_masked;                       /* lanes may be inactive */
  bool is_full_group;                   /* all guards hold */
  uint8_t group;        /* accumulators of the current loop; 0: all */
  double in_loops;      /* cycles of the outermost loops of a range */
  uint32_t group_loops; /* around the node */
  uint32_t depth;       /* of loops around the node */
  uint32_t jammed_rows, ranges, size;
  double kinds[VYRE__COST_KINDS];
} estimate;

/* Returns the bytes of a value. */
unsigned vyre__cost_bytes(uint8_t type);
/* Returns true if lanes hold different values, so that a vector register has
 * them. */
bool vyre__cost_is_vector(const estimate *e, vyre__val v);
vyre__cost_class vyre__cost_class_of(const estimate *e,
                                     const vyre__lir_inst *inst);
/* Returns true if @p v depends on memory or a variable. */
bool vyre__cost_is_data(const estimate *e, vyre__val v, unsigned depth);
/* The same, but counters of loops do not count. */
bool vyre__cost_is_loaded(const estimate *e, vyre__val v, unsigned depth);

/* Returns the cycles of the longest chain of operations from the start of an
 * iteration of @p loop to the start of the next one. */
double vyre__cost_chain(const estimate *e, const vyre__sched_node *loop);

/* Returns the cycles that the code in [begin, end), without its loops, takes at
 * least, because its operations depend on each other and a processor looks
 * only so far ahead. */
double vyre__cost_path(const estimate *e, uint32_t begin, uint32_t end);

/* Sets e->live and the memory of vyre__cost_path. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__cost_find_live(estimate *e, vyre_arena *arena);

#endif
