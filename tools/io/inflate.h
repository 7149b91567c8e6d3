/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decoder for zlib streams (RFC 1950, RFC 1951) of a known decoded size. */
#ifndef VYRE_TOOLS_IO_INFLATE_H
#define VYRE_TOOLS_IO_INFLATE_H

#include <stddef.h>

/* Decodes a zlib stream that must decode to exactly @p size bytes. Never writes
 * more than that, whatever the stream says. Returns NULL on success, else a
 * clause that says what is wrong. */
const char *inflate_zlib(const unsigned char *data, size_t length,
                         unsigned char *out, size_t size);

#endif
