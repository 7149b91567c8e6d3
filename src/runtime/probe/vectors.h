/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Operands for the probe, as register values: edges, subnormals, ties,
 * cancellation and NaN far more often than chance would give them; the same for
 * the same seed. */
#ifndef VYRE_RUNTIME_PROBE_VECTORS_H
#define VYRE_RUNTIME_PROBE_VECTORS_H

#include "ir/ir.h"

typedef struct vyre__vectors {
  uint64_t state;
  vyre_type type;
  unsigned fraction, exponents; /* bits of a float */
} vyre__vectors;

vyre__vectors vyre__vectors_make(vyre_type type, uint64_t seed);

/* Three floats that go together, or one integer: integers are only converted. */
void vyre__vectors_next(vyre__vectors *v, uint64_t out[3]);

#endif
