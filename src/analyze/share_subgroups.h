/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Subgroups by shared memory, for targets without operations of 32 lanes.
 *
 * A shuffle becomes a store of each lane's value to shared memory, a barrier, a
 * load, and another barrier; a ballot becomes atomics. All invocations of the
 * workgroup must reach these barriers. If an operation is under a condition that
 * is only equal in each subgroup, the kernel is predicated: all invocations run
 * all statements that contain such an operation, and a variable, the guard, says
 * which of them take part. Other statements run under `if (guard)`. */
#ifndef VYRE_ANALYZE_SHARE_SUBGROUPS_H
#define VYRE_ANALYZE_SHARE_SUBGROUPS_H

#include "vyre/status.h"

#include "ir/ir.h"

/* Returns true for a program with operations of subgroups. */
bool vyre__has_exchange(const vyre_program *program);

/* Replaces the operations of subgroups in @p program, which is inlined. *out is
 * a new program, or @p program itself, retained, if it has none. Errors:
 * VYRE_INVALID_PROGRAM if the result is too large or nested too deep;
 * VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__share_subgroups(const vyre_program *program,
                                               vyre_allocator allocator,
                                               vyre_program **out,
                                               vyre_status *st);

#endif
