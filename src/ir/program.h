/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creation of programs, shared by the parser, the builders and the binary
 * reader. */
#ifndef VYRE_IR_PROGRAM_H
#define VYRE_IR_PROGRAM_H

#include "vyre/status.h"

#include "ir/ir.h"

/* Checks the names, enumerators and workgroup of a description. */
VYRE_NODISCARD vyre_code vyre__program_check(const vyre_program_desc *desc,
                                             vyre_status *st);

/* Checks that the uniforms of dimensions exist and are u32. */
VYRE_NODISCARD vyre_code vyre__dimension_uniforms_check(
    const vyre_buffer_decl *buffers, size_t count, vyre_status *st);

/* Creates a program without a body and fingerprint as the first allocation of
 * @p arena. At the end, the caller moves the arena into it. The *buffers
 * share the names of @p desc; the caller copies those. Returns NULL if memory
 * is exhausted. */
vyre_program *vyre__program_new(vyre_arena *arena,
                                const vyre_program_desc *desc,
                                vyre_buffer_decl **buffers);

#endif
