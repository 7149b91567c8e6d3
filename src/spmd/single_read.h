/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads that must happen once.
 *
 * Memory may change while a kernel runs (analyze/racy_guards.h), but a compiler takes it
 * that it does not: it may load again what it loaded before. A kernel would then
 * check one value and use another. Each emitter therefore spells the loads that are
 * found here so that its compiler has to use one value. All others stay plain, so
 * that `y[i] = a * x[i] + y[i]` becomes vectors. */
#ifndef VYRE_SPMD_SINGLE_READ_H
#define VYRE_SPMD_SINGLE_READ_H

#include "vyre/memory.h"

#include "lir/lir.h"

/* Finds the values of @p kernel that decide about an index or a divisor, and with
 * @p branches also those that decide about a branch. *decides has a flag for each
 * instruction, in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__find_deciding_loads(const vyre__lir_kernel *kernel,
                                    bool branches, vyre_arena *arena,
                                    bool **decides, vyre_status *st);

/* Returns true if LOAD @p at must happen once, for what was found. */
static inline bool vyre__load_is_single_read(const vyre__lir_kernel *kernel,
                                             const bool *decides,
                                             vyre__val at) {
  const vyre__lir_inst *inst = &kernel->code[at];
  return inst->op == VYRE__LIR_LOAD && decides[at] &&
         vyre__lir_may_change(kernel, inst->aux);
}

#endif
