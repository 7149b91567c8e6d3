/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_SPMD_REGIONS_INTERNAL_H
#define VYRE_SPMD_REGIONS_INTERNAL_H

#include "spmd/regions.h"

static inline const vyre__lir_inst *inst_at(const vyre__regions *r,
                                            uint32_t at) {
  return &r->kernel->code[at];
}

static inline bool inst_is(const vyre__regions *r, uint32_t at,
                           vyre__lir_op op) {
  return inst_at(r, at)->op == op;
}

/* Returns true for operations that leave their block: jumps and the end of the
 * dispatch. */
static inline bool op_leaves(uint8_t op) {
  return op == VYRE__LIR_BREAK || op == VYRE__LIR_CONTINUE ||
         op == VYRE__LIR_EXIT || op == VYRE__LIR_OUT_OF_FUEL;
}

static inline bool opens_loop(const vyre__regions *r, uint32_t at) {
  return inst_is(r, at, VYRE__LIR_LOOP) || inst_is(r, at, VYRE__LIR_STEP);
}

/* Decides which values are needed and uniform, and where they are stored.
 * Regions and subregions must exist. */
vyre_code vyre__regions_assign_storage(vyre__regions *r, vyre_arena *arena,
                                       vyre_status *st);

#endif
