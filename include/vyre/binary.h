/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/binary.h
 *  Programs as bytes, to keep and to send.
 *
 *  The bytes begin with a magic number, a version, their length and a checksum;
 *  all numbers are little endian. They hold everything of a program, its names
 *  and places in the source too. Equal programs with equal names and places give
 *  equal bytes, on every machine. */
#ifndef VYRE_BINARY_H
#define VYRE_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"

VYRE_BEGIN

/** Writes @p program, with or without a body.
 *  Ownership: *bytes lives in @p arena; NULL on failure.
 *  Lifetime:  until the arena is reset or finished.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_write_binary(
    const vyre_program *program, vyre_arena *arena, const uint8_t **bytes,
    size_t *length, vyre_status *st);

/** Whether @p bytes begin as the binary form does, and no text can: which of
 *  vyre_program_read_binary and vyre_module_parse to call. It looks at the first
 *  bytes only; reading finds out whether the rest is right. False for NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_program_is_binary(const void *bytes, size_t length);

/** Reads what vyre_program_write_binary wrote. Nothing in the bytes is trusted:
 *  the program is made and checked again, and takes memory in proportion to
 *  @p length only.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_program_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p bytes is borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM if the bytes are no program, are damaged or
 *             cut, or were written by a newer version; VYRE_OUT_OF_MEMORY;
 *             VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_read_binary(
    const uint8_t *bytes, size_t length, vyre_allocator allocator,
    vyre_program **out, vyre_status *st);

VYRE_END

#endif
