/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the dimensions of buffers against the bound memory. */
#ifndef VYRE_RUNTIME_DISPATCH_DIMENSIONS_H
#define VYRE_RUNTIME_DISPATCH_DIMENSIONS_H

#include "runtime/dispatch/prepared.h"

/* Returns true if a dispatch of the program must be checked every time: uniforms
 * give the dimensions of a buffer. */
bool vyre__has_dimensions(const vyre_program *program);

/* Checks that the product of the dimensions of each buffer is at most its length.
 * The views are resolved. Kernels test the same, so that memory which changes
 * later does no harm (analyze/inline/inline_dimension.c).
 * Errors: VYRE_INVALID_ARGUMENT. */
VYRE_NODISCARD vyre_code vyre__check_dimensions(const vyre__prepared *prepared,
                                                vyre_status *st);

#endif
