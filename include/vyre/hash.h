/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/hash.h
 *  128-bit content hashes, used as fingerprints of programs and layouts. */
#ifndef VYRE_HASH_H
#define VYRE_HASH_H

#include <stdint.h>

#include "vyre/export.h"

/** Content hash (XXH3-128). Equal content gives equal hashes on every machine.
 *  A hash names content; vyre compares the content itself where a collision
 *  would matter. */
typedef struct vyre_hash128 {
  uint64_t high, low; /* upper and lower 64 bits */
} vyre_hash128;

/** Size of a hash as text: 32 hex digits and a terminator. */
enum { VYRE_HASH128_TEXT = 33 };

VYRE_BEGIN

/** Stores @p hash in @p out as 32 lower-case hex digits and a terminator.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_hash128_text(vyre_hash128 hash, char out[VYRE_HASH128_TEXT]);

VYRE_END

#endif
