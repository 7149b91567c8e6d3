/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds 32-bit integers that 8 or 16 bits can hold, so that vectors of them
 * take a quarter or half of the registers.
 *
 * Two facts allow it. Either the value always lies in the range of the narrow
 * type: bytes that were loaded, and sums of a few of them. Or every use ignores
 * the upper bits: a sum that is only stored to a byte. Sums, differences,
 * products and bit operations compute the lower bits of the result from the
 * lower bits of the operands alone. Comparisons, minima and shifts to the right
 * need operands whose narrow values are exact. */
#ifndef VYRE_SPMD_NARROW_H
#define VYRE_SPMD_NARROW_H

#include "vyre/memory.h"

#include "lir/lir.h"

typedef struct vyre__narrow {
  uint8_t bytes;    /* of the value: 1 or 2; 0: not narrow */
  uint8_t op_bytes; /* of the operation: 1 or 2; 0: 32 bits */
  bool is_signed;   /* the value is the sign extension of its narrow bits */
  vyre__val same;   /* value with the same narrow bits; 0: none */
} vyre__narrow;

/* Computes one entry per instruction of @p phase, in @p arena. Values that no
 * narrow type can hold have zeroed entries. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__narrow_find(const vyre__lir_kernel *kernel,
                            vyre__lir_phase phase, vyre_arena *arena,
                            vyre__narrow **out, vyre_status *st);

#endif
