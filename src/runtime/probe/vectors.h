/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Operands for the probe, as register values. Edge cases, subnormals, ties,
 * cancellation and NaN are far more frequent than in uniformly random bits. The
 * same seed gives the same operands. */
#ifndef VYRE_RUNTIME_PROBE_VECTORS_H
#define VYRE_RUNTIME_PROBE_VECTORS_H

#include "ir/ir.h"

typedef struct vyre__vectors {
  uint64_t state;
  vyre_type type;
  unsigned fraction, exponents; /* bits of a float */
} vyre__vectors;

/* Starts a sequence of operands. */
vyre__vectors vyre__vectors_make(vyre_type type, uint64_t seed);

/* Generates three related floats, or one integer: integers are only
 * converted. */
void vyre__vectors_next(vyre__vectors *v, uint64_t out[3]);

#endif
