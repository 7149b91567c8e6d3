/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interprets schedules without LLVM: runs the tree of nodes one vector at a
 * time, with a mask of active lanes. It does what the tree says, not what LIR
 * says, so that a pass that loses, repeats or reorders work gives other
 * results than device ref. Known conditions are not evaluated, jammed rows share
 * what the pass calls common, and a variable that needs no blend is destroyed
 * in inactive lanes. */
#ifndef VYRE_TESTING_SCHEDULE_INTERP_H
#define VYRE_TESTING_SCHEDULE_INTERP_H

#include "spmd/schedule.h"
#include "testing/lir_interp.h"

typedef struct vyre__schedule_runner {
  vyre__schedule_options options;
  vyre__schedule_pass last; /* passes to run */
} vyre__schedule_runner;

/* Runs a phase by its schedule: for vyre__lir_launch.run_phase, with a
 * vyre__schedule_runner as runner. The kernel must be interchanged. */
vyre_code vyre__schedule_run_phase(struct vyre__interp *m, uint32_t phase);

#endif
