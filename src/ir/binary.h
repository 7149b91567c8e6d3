/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Layout of the binary form of a program, shared by writer and reader.
 *
 *   header    magic, u32 version, u32 0, u64 total length, 16 bytes checksum of
 *             the rest
 *   sections  each: u32 tag, u32 flags, u64 length, that many bytes; tags
 *             ascend. A reader skips a section that it does not know if the
 *             flags say so, and otherwise refuses the program.
 *
 *   KERNEL    text name, text file, u32 workgroup[3], u32 over, u8 item type
 *   BUFFERS   u32 count; each: text name, u32 binding, u8 kind, u8 access,
 *             u8 element, u32 count, u8 is_output, u8 pipeline_live_out,
 *             u32 alignment, u8 has axis, u8 axis, u8 locality
 *   FUNCTIONS u32 count; each: text name ("" for the kernel), u8 result,
 *             u32 parameters, u32 locals (each: text name, u8 type,
 *             u8 is_mutable), u32 body
 *   NODES     u32 count; u8 op, type, aux, 0 and u32 a, b, c for each
 *   PLACES    u32 line, column for each node
 *   LISTS     u32 count; u32 each
 *   TEXTS     u32 count; bytes
 *   QUEUE     only if a queue kernel has more than queue(T): u8 kind, u8 bound
 *             kind, u32 bound, u32 pushes, u32 by, u32 pull, u32 fields (each:
 *             text name, u8 type)
 *   TYPES     only if a buffer has elements of several scalars: u32 type of each
 *             buffer, 0 for a scalar
 *   DIMENSIONS  only if a buffer has them: for each buffer u8 number, u8 bits of
 *             those that are uniforms, then each as u32
 *   MEMORY    only if the program has arrays, tables, memory parameters, or
 *             functions with no or several results. For each function: u8
 *             results, u8 type of each, and for each local u8 is_memory, u8
 *             access, u8 element, u32 length. Then u32 tables; each: text name,
 *             u8 type, u32 length, u64 of each value
 *   STRUCTS   only if a type is a struct: u32 number, then for each text name,
 *             u32 fields, each: text name, u8 element, u8 type
 *   SHAPES    only if an array or a table has several indices: for each local of
 *             each function, then for each table, u64 vyre__shape, 0 for one
 *             index
 *   SOURCE    optional: the source text, to the end of the section
 *
 * A text is a u32 length and its bytes. The node count includes node 0.
 *
 * Version 1 has the same parts in the same order without sections: the bytes
 * of the seven sections follow each other directly. It remains readable. */
#ifndef VYRE_IR_BINARY_H
#define VYRE_IR_BINARY_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/hash.h"

enum {
  VYRE__BINARY_MAGIC = 8,
  VYRE__BINARY_VERSION = 2,
  VYRE__BINARY_HEAD = 40,
  VYRE__BINARY_LENGTH_AT = 16,
  VYRE__BINARY_CHECKSUM_AT = 24,
  VYRE__BINARY_NODE = 16,
  VYRE__BINARY_SOURCE_LOC = 8,
  VYRE__BINARY_SECTION_HEAD = 16,
};

/* Sections by tag. Tags are part of the format: append, never reorder. */
enum {
  VYRE__SECTION_KERNEL = 1,
  VYRE__SECTION_BUFFERS = 2,
  VYRE__SECTION_FUNCTIONS = 3,
  VYRE__SECTION_NODES = 4,
  VYRE__SECTION_PLACES = 5,
  VYRE__SECTION_LISTS = 6,
  VYRE__SECTION_TEXTS = 7,
  VYRE__SECTION_QUEUE = 8,
  VYRE__SECTION_TYPES = 9,
  VYRE__SECTION_DIMENSIONS = 10,
  VYRE__SECTION_MEMORY = 11,
  VYRE__SECTION_STRUCTS = 12,
  VYRE__SECTION_SHAPES = 13,
};

/* Tags of sections that readers of programs skip. */
enum { VYRE__SECTION_SOURCE = 0x10000 };

/* Flag of a section: a reader that does not know it may skip it. */
enum { VYRE__SECTION_OPTIONAL = 1 };

/* Magic bytes in the style of PNG: not text, and with line ends of both
 * kinds, so that a transfer in text mode is detected. */
#define VYRE__BINARY_MAGIC_BYTES "\x89VYR\r\n\x1a\n"

vyre_hash128 vyre__binary_checksum(const uint8_t *bytes, size_t length);

#endif
