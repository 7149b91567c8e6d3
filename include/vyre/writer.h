/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/writer.h
 *  Writer: destination of printed text. */
#ifndef VYRE_WRITER_H
#define VYRE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"

/** Destination of text. write() takes @p length bytes without a terminator and
 *  returns false if it fails; the printer then stops and returns false too. */
typedef struct vyre_writer {
  bool (*write)(void *self, const char *text, size_t length); /* writes text */
  void *self; /* first argument of `write` */
} vyre_writer;

/** A 128-bit content hash (XXH3-128). Equal content gives equal hashes on every
 *  machine. It names things; where a collision would matter, content decides.
 */
typedef struct vyre_hash128 {
  uint64_t high, low;
} vyre_hash128;

enum { VYRE_HASH128_TEXT = 33 }; /* 32 hex digits and a terminator */

VYRE_BEGIN

/** Writes @p hash as 32 lower-case hex digits and a terminator into @p out.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_hash128_text(vyre_hash128 hash, char out[VYRE_HASH128_TEXT]);

VYRE_END

#endif
