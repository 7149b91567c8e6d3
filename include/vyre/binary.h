/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/binary.h
 *  Binary form of programs, for storage and transfer.
 *
 *  The bytes start with a magic number, a version, their length and a
 *  checksum. All numbers are little endian. The binary form holds the complete
 *  program, with its names and source positions. Equal programs with equal
 *  names and positions give equal bytes on every machine. */
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

/** Encodes @p program, with or without a body.
 *  Ownership: *bytes lives in @p arena; NULL on failure.
 *  Lifetime:  *bytes is valid until the arena is reset or deinitialised.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_write_binary(
    const vyre_program *program, vyre_arena *arena, const uint8_t **bytes,
    size_t *length, vyre_status *st);

/** Encodes @p program with the @p length bytes of its source text, which
 *  messages in another process can show. Readers ignore the text, and the
 *  fingerprint does not depend on it.
 *  Ownership: *bytes lives in @p arena; NULL on failure.
 *  Lifetime:  as vyre_program_write_binary. @p source is copied.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL argument, or
 *             a source of 4 GiB or more. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_write_binary_with_source(
    const vyre_program *program, const char *source, size_t source_length,
    vyre_arena *arena, const uint8_t **bytes, size_t *length, vyre_status *st);

/** Returns the source text in @p bytes, which has *source_length bytes and no
 *  zero at its end, or NULL without a text. The checksum is not tested; use
 *  vyre_program_read_binary for that. No more than @p length bytes are read.
 *  Lifetime: the text is a part of @p bytes.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_program_binary_source(const uint8_t *bytes,
                                                size_t length,
                                                size_t *source_length);

/** Returns true when @p bytes start with the magic number of the binary form,
 *  which no text can start with. Use it to choose between
 *  vyre_program_read_binary and vyre_module_parse. Checks the first bytes
 *  only. Returns false for NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_program_is_binary(const void *bytes, size_t length);

/** Decodes bytes from vyre_program_write_binary. The input is not trusted: the
 *  program is rebuilt and checked, and memory use is proportional to @p
 *  length.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_program_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p bytes is borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM if the bytes are not a program, are corrupt
 *             or truncated, or come from a newer version; VYRE_OUT_OF_MEMORY;
 *             VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_read_binary(
    const uint8_t *bytes, size_t length, vyre_allocator allocator,
    vyre_program **out, vyre_status *st);

VYRE_END

#endif
