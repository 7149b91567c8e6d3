/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Proof that the workgroup size of a kernel does not change its results, so
 * that another size may be used where it is faster. */
#ifndef VYRE_ANALYZE_WORKGROUP_SIZE_H
#define VYRE_ANALYZE_WORKGROUP_SIZE_H

#include "vyre/status.h"

#include "ir/ir.h"

/* Sets *why to NULL if every dispatch of the program gives the same results
 * with any size of its workgroup along x, as long as its grid covers the
 * over(...) buffer. Sets it to the reason (static) otherwise.
 *
 * The kernel then reads no id or size but global_id, has no shared memory and
 * no barrier, and does nothing in invocations past the end of the buffer, whose
 * number depends on the size. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__workgroup_size_matters(const vyre_program *program,
                                       vyre_arena *arena, const char **why,
                                       vyre_status *st);

#endif
