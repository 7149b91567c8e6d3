/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Costs of operations on a processor, for the cost model (cost.h). */
#ifndef VYRE_SPMD_COST_MACHINE_H
#define VYRE_SPMD_COST_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Classes of operations: X(enumerator). */
#define VYRE__COST_CLASS_MAP(X)                                            \
  X(SIMPLE)   /* sums, bits, shifts, comparisons, minima, choices */       \
  X(PRODUCT)  /* of integers */                                            \
  X(WIDE)     /* product of 64-bit integers */                             \
  X(COUNT)    /* of bits and zeros */                                      \
  X(FLOAT)    /* sums and products of floats */                            \
  X(CONVERT)  /* between integers and floats, or of size */                \
  X(QUOTIENT) /* of floats */                                              \
  X(ROOT)                                                                  \
  X(DIVIDE)       /* quotient or remainder of 32-bit integers */           \
  X(DIVIDE_CONST) /* the same by a constant, or in vectors by a uniform */ \
  X(DIVIDE_WIDE)  /* of 64-bit integers: no vectors */

typedef enum vyre__cost_class {
#define VYRE__X6(name) VYRE__CLASS_##name,
  VYRE__COST_CLASS_MAP(VYRE__X6)
#undef VYRE__X6
      VYRE__CLASS_COUNT_ALL
} vyre__cost_class;

/* Cycles, as reciprocal throughput of code with independent operations. */
typedef struct vyre__cost_machine {
  const char *name; /* as LLVM names the processor */
  float scalar[VYRE__CLASS_COUNT_ALL];
  float vector[VYRE__CLASS_COUNT_ALL]; /* of a register of up to 256 bits */
  float wide;                          /* factor for a register of 512 bits */
  float load, store;                   /* one, of any size up to a register */
  float shuffle;                       /* of a register */
  float gather;                        /* per lane */
  float narrow_gather;                 /* per lane, elements below 32 bits */
  float scatter;                       /* per lane */
  float masked_scatter;                /* per lane */
  float lane;           /* one lane moved into or out of a vector */
  float atomic;         /* scalar, on memory of the dispatch */
  float own_atomic;     /* scalar, on memory that only one thread uses */
  float simple_latency; /* of simple operations on vectors */
  float float_latency, product_latency, load_latency, gather_latency;
} vyre__cost_machine;

/* Returns the costs for the processor that LLVM calls @p name, or for a typical
 * one with registers of @p lanes 32-bit lanes. @p name: NULL if unknown. */
const vyre__cost_machine *vyre__cost_machine_of(const char *name,
                                                uint32_t lanes);

#endif
