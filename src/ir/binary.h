/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Layout of the binary form of a program, shared by writer and reader.
 *
 *   header    magic, u32 version, u32 0, u64 total length, 16 bytes checksum of
 *             the rest
 *   kernel    text name, text file, u32 workgroup[3], u32 over, u8 item type
 *   buffers   u32 count; each: text name, u32 binding, u8 kind, u8 access,
 *             u8 element, u32 count, u8 is_output, u8 pipeline_live_out,
 *             u32 alignment, u8 has axis, u8 axis, u8 locality
 *   functions u32 count; each: text name ("" for the kernel), u8 result,
 *             u32 parameters, u32 locals (each: text name, u8 type,
 *             u8 is_mutable), u32 body
 *   nodes     u32 count; u8 op, type, aux, 0 and u32 a, b, c for each; then
 *             u32 line, column for each
 *   lists     u32 count; u32 each
 *   texts     u32 count; bytes
 *
 * A text is a u32 length and its bytes. The node count includes node 0. */
#ifndef VYRE_IR_BINARY_H
#define VYRE_IR_BINARY_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/hash.h"

enum {
  VYRE__BINARY_MAGIC = 8,
  VYRE__BINARY_VERSION = 1,
  VYRE__BINARY_HEAD = 40,
  VYRE__BINARY_LENGTH_AT = 16,
  VYRE__BINARY_CHECKSUM_AT = 24,
  VYRE__BINARY_NODE = 16,
  VYRE__BINARY_SOURCE_LOC = 8,
};

/* Magic bytes in the style of PNG: not text, and with line ends of both
 * kinds, so that a transfer in text mode is detected. */
#define VYRE__BINARY_MAGIC_BYTES "\x89VYR\r\n\x1a\n"

vyre_hash128 vyre__binary_checksum(const uint8_t *bytes, size_t length);

#endif
