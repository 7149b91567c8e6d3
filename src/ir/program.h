/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What all ways to a program share. */
#ifndef VYRE_IR_PROGRAM_H
#define VYRE_IR_PROGRAM_H

#include "vyre/status.h"

#include "ir/ir.h"

/* Names, enumerators and the workgroup of a description. */
VYRE_NODISCARD vyre_code vyre__program_check(const vyre_program_desc *desc,
                                             vyre_status *st);

/* A program without a body and without a fingerprint yet, as the first thing in
 * @p arena, which the caller puts into it at the end. Its *buffers have the names
 * of @p desc: the caller copies those. NULL without memory. */
vyre_program *vyre__program_new(vyre_arena *arena,
                                const vyre_program_desc *desc,
                                vyre_buffer_decl **buffers);

#endif
