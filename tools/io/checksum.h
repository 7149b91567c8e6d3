/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The checksums of PNG and zlib. */
#ifndef VYRE_TOOLS_IO_CHECKSUM_H
#define VYRE_TOOLS_IO_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint32_t adler32(const unsigned char *data, size_t size);
uint32_t crc32_png(const unsigned char *data, size_t size);

#endif
