/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Facts about queue kernels: the pushes of an item, and the programs that an
 * executor runs. */
#ifndef VYRE_ANALYZE_QUEUE_H
#define VYRE_ANALYZE_QUEUE_H

#include "vyre/status.h"

#include "ir/ir.h"

/* Stores P in *pushes, the largest number of pushes of an item: pushes(P), or
 * what the compiler counts. Returns false without a bound; then @p site, unless
 * NULL, receives the push that has none. */
bool vyre__queue_pushes(const vyre_program *program, uint32_t *pushes,
                        vyre__id *site);

/* Bodies of a queue kernel that an executor runs. */
typedef enum vyre__queue_part_kind {
  VYRE__QUEUE_PART_PUSH,  /* the body, for the items of a window */
  VYRE__QUEUE_PART_VISIT, /* the same without its pushes, in a window that
                             runs `pull`; loops that only push are removed */
  VYRE__QUEUE_PART_PULL,  /* `pull`: the item is a key that is not in the set */
  VYRE__QUEUE_PART_BY,    /* pushes the priority of the item, a u32; of a kernel
                             with `pull`, the edges of the item: iterations of
                             the loop that pushes */
} vyre__queue_part_kind;

/* Returns true if a queue kernel has a body of this kind. */
bool vyre__queue_has_part(const vyre_program *program,
                          vyre__queue_part_kind kind);

/* Creates the program of one body. It shares the nodes of @p program, which it
 * retains, and the inliner selects the body: the inlined program is a queue
 * kernel with the same buffers and without `by` and `pull`; that of BY is
 * queue(u32) pushes(1). *out needs vyre_program_release. Fails with
 * VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__queue_part(const vyre_program *program,
                                          vyre__queue_part_kind kind,
                                          vyre_allocator allocator,
                                          vyre_program **out, vyre_status *st);

#endif
