/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `control`: rounds of loops are counted where lower/trip_count.h says so,
 * shared memory that is written before it is read is not zeroed, and a kernel
 * with grid barriers becomes phases with the host's steps between them. */
#ifndef VYRE_LOWER_LEGALIZE_CONTROL_H
#define VYRE_LOWER_LEGALIZE_CONTROL_H

#include "lir/writer.h"

/* Whether a TICK is there. */
bool vyre__legalize_control_is_needed(const vyre__lir_writer *low);

/* Into @p low, which has been begun. Expands TICK. */
void vyre__legalize_control(vyre__lir_writer *low, const vyre__lir_writer *from,
                            vyre_arena *scratch);

/* What is known of phases while and after they are written. */
typedef struct vyre__split {
  vyre__lir_phase host;
  vyre__lir_phase *phases;
  size_t phase_count, phase_capacity;
  vyre__lir_step *steps;
  size_t step_count, step_capacity;
  uint32_t loop_count;
  uint32_t hidden, hidden_words;
} vyre__split;

/* Parts @p from at its grid barriers into @p low. Without any there is one phase
 * and @p low is left empty: `from` is the result. False: nothing to part. */
bool vyre__split_phases(vyre__lir_writer *low, const vyre__lir_writer *from,
                        vyre_arena *scratch, vyre__split *out);
void vyre__split_deinit(vyre__lir_writer *low, vyre__split *split);

/* Sets needs_zero of shared buffers. @p phase_count is that of the kernel. */
void vyre__find_zeros(vyre__lir_writer *low, size_t phase_count,
                      vyre_arena *scratch);

#endif
