/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The choice of the vector width: the number of invocations per vector. */
#ifndef VYRE_SPMD_VECTOR_WIDTH_H
#define VYRE_SPMD_VECTOR_WIDTH_H

#include "spmd/cost/cost.h"

enum { VYRE__WIDTHS = 5 };

typedef struct vyre__width_choice {
  uint32_t width;
  bool is_single; /* workgroups of one invocation, which have no lanes */
  vyre__cost costs[VYRE__WIDTHS]; /* by width; width 0: not estimated */
} vyre__width_choice;

/* Chooses the width for @p kernel, to which vyre__prepare_kernel was applied,
 * with the schedules of @p options, whose width is ignored. @p all: also
 * estimates widths that cannot be the best, for an explanation.
 * Errors: VYRE_OUT_OF_MEMORY; those of vyre__schedule_make. */
vyre_code vyre__choose_width(const vyre__lir_kernel *kernel,
                             const vyre__schedule_options *options,
                             const vyre__cost_machine *machine, bool all,
                             vyre_arena *arena, vyre__width_choice *out,
                             vyre_status *st);

#endif
