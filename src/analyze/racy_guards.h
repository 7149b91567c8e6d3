/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What proofs may assume about memory that changes while a kernel runs.
 *
 * Other dispatches, other devices and threads of the host may write to buffers at
 * any time. No access leaves its buffer all the same (semantics.md, "Memory"): the
 * value that is checked is the value that is used. Everything that leaves out a
 * check keeps to these rules.
 *
 *   1. A uniform is copied before the launch runs, and only the launch has the copy.
 *      All loads of one element agree, in all phases and on the host.
 *   2. Any other load of a buffer is a value of its own, even at the same index.
 *      No proof compares two of them, and neither code nor a compiler may load
 *      again what was loaded (vyre__lir_may_change, spmd/single_read.h).
 *   3. Each invocation takes the way that its own values choose, so that a guard
 *      says something about the values it was computed from. There is one
 *      exception: around a barrier the workgroup decides as one. If the condition
 *      comes from loads of `read` buffers, an invocation can have loaded something
 *      else than the one that decided. Such a guard is unsteady: it proves nothing.
 */
#ifndef VYRE_ANALYZE_RACY_GUARDS_H
#define VYRE_ANALYZE_RACY_GUARDS_H

#include "vyre/status.h"

#include "ir/ir.h"

enum {
  VYRE__RACY_GUARD = 1, /* IF, WHILE, FOR, && and ||: it proves nothing */
  VYRE__RACY_START = 2, /* FOR: nor is its variable the same for all */
};

/* Sets *out to the VYRE__RACY bits of each node of the kernel, in @p arena, or
 * to NULL if no guard is unsteady. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__racy_guards_build(const vyre_program *program,
                                  vyre_arena *arena, const uint8_t **out,
                                  vyre_status *st);

static inline bool vyre__is_racy(const uint8_t *unsteady, vyre__id id,
                                 unsigned bit) {
  return unsteady && (unsteady[id] & bit);
}

#endif
