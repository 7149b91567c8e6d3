/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Turns a program of a queue into an ordinary kernel, whose invocations are
 * items, for devices that know nothing of queues.
 *
 * An item of a list has places of its own for its pushes, so that no
 * invocation waits for another one, and vectors of items are possible. The
 * executor moves the pushed items together afterwards, in order. A push to a
 * set sets a bit. */
#ifndef VYRE_ANALYZE_QUEUE_KERNEL_H
#define VYRE_ANALYZE_QUEUE_KERNEL_H

#include "vyre/status.h"

#include "analyze/queue/queue.h"
#include "ir/ir.h"

enum { VYRE__MAX_PUSH_LINES = 64 };

/* Facts about the result for an executor. */
typedef struct vyre__queue_kernel_info {
  uint32_t pushes; /* P: places of an item in PUSHED; 0 for sets */
  /* Lines of the first pushes of the source, for messages. */
  uint32_t lines[VYRE__MAX_PUSH_LINES];
  uint32_t line_count;
} vyre__queue_kernel_info;

/* Creates the kernel of one body, with workgroups of @p workgroup invocations.
 * @p hidden: number of its further buffers (ir/queue.h). The result still has
 * the operations of queues: the inliner replaces them, in the same pass as
 * calls and aggregates (vyre__is_queue_part). *out needs vyre_program_release.
 * Fails with VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__queue_kernel(
    const vyre_program *program, vyre__queue_part_kind kind, uint32_t hidden,
    uint32_t workgroup, vyre_allocator allocator, vyre_program **out,
    vyre__queue_kernel_info *info, vyre_status *st);

#endif
