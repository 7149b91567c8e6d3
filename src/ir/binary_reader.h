/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files that read the binary form. */
#ifndef VYRE_IR_BINARY_READER_H
#define VYRE_IR_BINARY_READER_H

#include "base/status.h"
#include "ir/binary.h"
#include "ir/builder/ir_builder.h"

#define VYRE__READ_BINARY "vyre_program_read_binary"

#define VYRE__CORRUPT(st, ...)                                   \
  VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM, \
            "write the file again from its source", __VA_ARGS__)

/* Bytes left to read. Reading past the end returns zeros and sets a flag. */
typedef struct vyre__byte_reader {
  const uint8_t *at;
  size_t left;
  bool short_of;
} vyre__byte_reader;

static inline uint32_t vyre__load_u32(const uint8_t *from) {
  return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
         (uint32_t)from[3] << 24;
}

static inline uint64_t vyre__load_u64(const uint8_t *from) {
  return vyre__load_u32(from) | (uint64_t)vyre__load_u32(from + 4) << 32;
}

static inline const uint8_t *vyre__get_bytes(vyre__byte_reader *c,
                                             size_t count) {
  if (count > c->left) {
    c->short_of = true;
    return NULL;
  }
  const uint8_t *from = c->at;
  c->at += count;
  c->left -= count;
  return from;
}

static inline uint8_t vyre__get_u8(vyre__byte_reader *c) {
  const uint8_t *from = vyre__get_bytes(c, 1);
  return from ? *from : 0;
}

static inline uint32_t vyre__get_u32(vyre__byte_reader *c) {
  const uint8_t *from = vyre__get_bytes(c, 4);
  return from ? vyre__load_u32(from) : 0;
}

/* Reads a count of things of at least @p size bytes each. Fails if fewer
 * bytes are left than the count needs. */
static inline uint32_t vyre__get_count(vyre__byte_reader *c, size_t size) {
  uint32_t count = vyre__get_u32(c);
  if (count <= c->left / size) return count;
  c->short_of = true;
  return 0;
}

typedef struct vyre__file_function {
  const char *name;
  uint32_t name_length;
  uint8_t result;
  uint32_t parameter_count, local_count;
  const uint8_t *locals; /* start of the locals in the file */
  size_t local_bytes;
  uint32_t body;
  uint8_t result_count;
  uint8_t results[VYRE__MAX_RESULTS];
  const uint8_t *memory; /* per local: what MEMORY says; NULL without it */
  const uint8_t *shapes; /* per local: its u64 of SHAPES; NULL without it */
} vyre__file_function;

enum { VYRE__BINARY_LOCAL_MEMORY = 7 }; /* bytes per local in MEMORY */
enum { VYRE__BINARY_SHAPE = 8 };        /* bytes per local in SHAPES */
typedef struct vyre__file_struct {
  const char *name;
  uint32_t count;
  vyre_struct_field *fields;
} vyre__file_struct;

typedef struct vyre__reader {
  vyre__byte_reader c;
  vyre_status *st;
  uint32_t version;
  vyre_arena arena; /* lives while reading */
  bool out_of_memory;
  bool is_corrupt; /* input is invalid; already reported or not */
  vyre__ir_builder m;
  vyre_status failure; /* first report of the IR builder */
  vyre__kernel kernel;
  vyre__file_struct *structs;
  uint32_t struct_count;
  uint8_t item_type;   /* as stored in KERNEL */
  bool has_queue;      /* a section QUEUE was read */
  uint32_t part_count; /* further bodies of the kernel */
  vyre__queue_clauses queue;
  vyre__queue_field *fields;
  vyre_buffer_decl *buffers;
  bool has_memory; /* a section MEMORY was read */
  bool has_shapes; /* a section SHAPES was read */
  vyre__table *tables;
  uint32_t table_count;
  vyre__file_function *functions;
  uint32_t function_count;
  const uint8_t *nodes, *places, *lists, *texts;
  uint32_t node_count, list_count, text_count;

  /* state of the function being built */
  uint32_t next; /* id that the next completed node must have */
  uint32_t next_local;
  vyre__byte_reader locals;
  const uint8_t *local_memory; /* what MEMORY says about its locals */
  const uint8_t *local_shapes; /* what SHAPES says about them */
  bool is_added; /* the last statement added itself to its block */
  unsigned depth;
} vyre__reader;

/* Builds the program and compares it with the bytes. */
VYRE_NODISCARD vyre_code vyre__binary_make(vyre__reader *r,
                                           vyre_allocator allocator,
                                           vyre_program **out);

#endif
