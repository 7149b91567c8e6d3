/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds loads that must be executed exactly once.
 *
 * Memory may change while a kernel runs (analyze/racy_guards.h), but compilers
 * assume that it does not and may repeat a load. A kernel would then check one
 * value and use another. Each code generator therefore emits the loads found
 * here in a form that its compiler must not repeat. All other loads stay plain,
 * so that `y[i] = a * x[i] + y[i]` vectorises. */
#ifndef VYRE_SPMD_SINGLE_READ_H
#define VYRE_SPMD_SINGLE_READ_H

#include "vyre/memory.h"

#include "lir/lir.h"

/* Finds the values of @p kernel that influence an index or a divisor and, with
 * @p branches, also those that influence a branch. *decides has a flag for each
 * instruction and lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__find_deciding_loads(const vyre__lir_kernel *kernel,
                                    bool branches, vyre_arena *arena,
                                    bool **decides, vyre_status *st);

/* Returns true if LOAD @p at must be executed exactly once. */
static inline bool vyre__load_is_single_read(const vyre__lir_kernel *kernel,
                                             const bool *decides,
                                             vyre__val at) {
  const vyre__lir_inst *inst = &kernel->code[at];
  return inst->op == VYRE__LIR_LOAD && decides[at] &&
         vyre__lir_may_change(kernel, inst->aux);
}

#endif
