/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Assumptions of proofs about memory that changes while a kernel runs.
 *
 * Other dispatches, other devices and host threads may write to buffers at
 * any time. Even then, no access may leave its buffer (semantics.md,
 * "Memory"): the value that is checked must be the value that is used. Every
 * optimisation that removes a check obeys these rules:
 *
 * 1. A uniform is copied before the launch, and only the launch has the copy.
 * All loads of one element agree, in all phases and on the host.
 *
 * 2. Every other load of a buffer is a new value, even at the same index. No
 * proof equates two loads, and neither the generated code nor a compiler may
 * repeat a load (vyre__lir_may_change, spmd/passes/single_read.h).
 *
 * 3. Each invocation branches on its own values, so a guard is true for the
 * values it was computed from. There is one exception: around a barrier, the
 * workgroup takes one common decision. If the condition depends on loads of
 * `read` buffers, an invocation may have loaded another value than the one
 * that decided. Such a guard is racy and proves nothing. */
#ifndef VYRE_ANALYZE_RACY_GUARDS_H
#define VYRE_ANALYZE_RACY_GUARDS_H

#include "vyre/status.h"

#include "ir/ir.h"

enum {
  VYRE__RACY_GUARD = 1, /* IF, WHILE, FOR, && and ||: it proves nothing */
  VYRE__RACY_START = 2, /* FOR: its variable may differ between invocations */
};

/* Sets *out to the VYRE__RACY bits of each node of the kernel, in @p arena,
 * or to NULL if no guard is racy. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__racy_guards_build(const vyre_program *program,
                                  vyre_arena *arena, const uint8_t **out,
                                  vyre_status *st);

static inline bool vyre__is_racy(const uint8_t *unsteady, vyre__id id,
                                 unsigned bit) {
  return unsteady && (unsteady[id] & bit);
}

#endif
