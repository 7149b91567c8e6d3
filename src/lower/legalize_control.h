/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pass `legalize-control`. It adds iteration counters where trip_count.h
 * demands them, finds shared memory that must be zeroed, and splits a kernel
 * with grid barriers into phases with a host schedule. */
#ifndef VYRE_LOWER_LEGALIZE_CONTROL_H
#define VYRE_LOWER_LEGALIZE_CONTROL_H

#include "lir/writer.h"

/* Returns true if the code contains a TICK. */
bool vyre__legalize_control_is_needed(const vyre__lir_writer *lir);

/* Expands TICK while copying @p from into the empty writer @p lir. */
void vyre__legalize_control(vyre__lir_writer *lir, const vyre__lir_writer *from,
                            vyre_arena *scratch);

/* Phases and host schedule, during and after the split. */
typedef struct vyre__split {
  vyre__lir_phase host;
  vyre__lir_phase *phases;
  size_t phase_count, phase_capacity;
  vyre__lir_step *steps;
  size_t step_count, step_capacity;
  uint32_t loop_count;
  uint32_t spill_buffer, spill_words, alive_flag;
} vyre__split;

/* Splits @p from at its grid barriers into @p lir. Returns false if there are
 * none; then @p lir stays empty and `from` is the only phase. */
bool vyre__split_phases(vyre__lir_writer *lir, const vyre__lir_writer *from,
                        vyre_arena *scratch, vyre__split *out);
void vyre__split_deinit(vyre__lir_writer *lir, vyre__split *split);

/* Sets needs_zero of shared buffers. @p phase_count is the number of phases. */
void vyre__find_zeros(vyre__lir_writer *lir, size_t phase_count,
                      vyre_arena *scratch);

#endif
