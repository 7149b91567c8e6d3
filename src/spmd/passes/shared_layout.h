/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Layouts of shared arrays.
 *
 * A shared array is often a matrix that lanes read along columns or diagonals:
 * t[local_id.x * 81 + k]. Its layout in memory cannot be observed. If the index
 * of every access is a * P + b with 0 <= b < P, the array may be stored in
 * another order, in which lanes are contiguous:
 *
 *   TRANSPOSED  a * P + b  is at  b * Q + a
 *   DIAGONAL    a * P + b  is at  (a + b) * Q + b
 *   OPPOSITE    a * P + b  is at  (a - b + P - 1) * Q + b
 */
#ifndef VYRE_SPMD_SHARED_LAYOUT_H
#define VYRE_SPMD_SHARED_LAYOUT_H

#include "vyre/memory.h"
#include "vyre/writer.h"

#include "lir/lir.h"

typedef enum vyre__layout_kind {
  VYRE__LAYOUT_AS_WRITTEN,
  VYRE__LAYOUT_TRANSPOSED,
  VYRE__LAYOUT_DIAGONAL,
  VYRE__LAYOUT_OPPOSITE,
  VYRE__LAYOUTS,
} vyre__layout_kind;

typedef struct vyre__shared_layout {
  uint8_t kind;          /* vyre__layout_kind */
  uint32_t row, new_row; /* P and Q */
  uint32_t elements;     /* of the array as stored */
} vyre__shared_layout;

/* Chooses the layouts of the shared arrays of @p kernel, which must be fully
 * lowered, and rewrites their accesses. *out is @p kernel, or a copy in
 * @p arena. *layouts: NULL if nothing changed, else one per buffer.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__lay_out_shared(const vyre__lir_kernel *kernel,
                               vyre_arena *arena, const vyre__lir_kernel **out,
                               const vyre__shared_layout **layouts,
                               vyre_status *st);

/* Prints the layouts that differ from the program. Returns false if the writer
 * failed. */
bool vyre__layouts_print(const vyre__lir_kernel *kernel,
                         const vyre__shared_layout *layouts,
                         vyre_writer writer);

#endif
