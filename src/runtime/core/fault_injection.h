/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Injected faults: a test makes the nth allocation, upload or submission
 * fail. */
#ifndef VYRE_RUNTIME_CORE_FAULT_INJECTION_H
#define VYRE_RUNTIME_CORE_FAULT_INJECTION_H

#include "runtime/core/context.h"

/* Counts the fault down. Returns true for the operation that must fail. */
bool vyre__fault_hits(vyre_context *context, vyre_fault fault);

/* Returns true if this operation must fail. */
static inline bool vyre__fault(vyre_context *context, vyre_fault fault) {
  return atomic_load_explicit(&context->armed, memory_order_relaxed) != 0 &&
         vyre__fault_hits(context, fault);
}

/* Fills @p st for a fault that hit, and returns its code. */
vyre_code vyre__fault_status(vyre_fault fault, vyre_status *st);

#endif
