/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/program.h
 *  A program: its buffers and its workgroup size. */
#ifndef VYRE_PROGRAM_H
#define VYRE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Element types: X(enumerator, name, bytes). `bytes` has no fixed element: its
 *  size is 0 here, and a kernel indexes it as u8. */
#define VYRE_ELEMENT_MAP(X)       \
  X(VYRE_ELEMENT_BOOL, "bool", 1) \
  X(VYRE_ELEMENT_U8, "u8", 1)     \
  X(VYRE_ELEMENT_I8, "i8", 1)     \
  X(VYRE_ELEMENT_U16, "u16", 2)   \
  X(VYRE_ELEMENT_I16, "i16", 2)   \
  X(VYRE_ELEMENT_U32, "u32", 4)   \
  X(VYRE_ELEMENT_I32, "i32", 4)   \
  X(VYRE_ELEMENT_U64, "u64", 8)   \
  X(VYRE_ELEMENT_I64, "i64", 8)   \
  X(VYRE_ELEMENT_F16, "f16", 2)   \
  X(VYRE_ELEMENT_BF16, "bf16", 2) \
  X(VYRE_ELEMENT_F32, "f32", 4)   \
  X(VYRE_ELEMENT_F64, "f64", 8)   \
  X(VYRE_ELEMENT_BYTES, "bytes", 0)

/** Where a buffer lives: X(enumerator, name). */
#define VYRE_MEMORY_MAP(X)          \
  X(VYRE_MEMORY_GLOBAL, "global")   \
  X(VYRE_MEMORY_SHARED, "shared")   \
  X(VYRE_MEMORY_UNIFORM, "uniform") \
  X(VYRE_MEMORY_PERSISTENT, "persistent")

/** What a kernel may do with a buffer: X(enumerator, name). */
#define VYRE_ACCESS_MAP(X)                \
  X(VYRE_ACCESS_READ, "read")             \
  X(VYRE_ACCESS_WRITE, "write")           \
  X(VYRE_ACCESS_READ_WRITE, "read_write") \
  X(VYRE_ACCESS_UNIFORM, "uniform")       \
  X(VYRE_ACCESS_WORKGROUP, "workgroup")

/** How a kernel goes over a buffer; a hint, it never changes a result. */
#define VYRE_LOCALITY_MAP(X)              \
  X(VYRE_LOCALITY_TEMPORAL, "temporal")   \
  X(VYRE_LOCALITY_STREAMING, "streaming") \
  X(VYRE_LOCALITY_RANDOM, "random")

#define VYRE_X3(name, text, bytes) name,
#define VYRE_X2(name, text)        name,
typedef enum vyre_element {
  VYRE_ELEMENT_MAP(VYRE_X3) VYRE_ELEMENT_COUNT
} vyre_element;
typedef enum vyre_memory {
  VYRE_MEMORY_MAP(VYRE_X2) VYRE_MEMORY_COUNT
} vyre_memory;
typedef enum vyre_access {
  VYRE_ACCESS_MAP(VYRE_X2) VYRE_ACCESS_COUNT
} vyre_access;
typedef enum vyre_locality {
  VYRE_LOCALITY_MAP(VYRE_X2) VYRE_LOCALITY_COUNT
} vyre_locality;
#undef VYRE_X3
#undef VYRE_X2

/** An index that is not there. */
#define VYRE_NO_INDEX UINT32_MAX

/** Wishes about a buffer's memory. Zeroed: no wishes. */
typedef struct vyre_memory_hints {
  uint32_t preferred_alignment; /* bytes, a power of two; 0: the element size */
  bool has_coalesce_axis;
  uint8_t coalesce_axis; /* 0, 1 or 2: neighbours in x, y or z touch
                            neighbouring elements */
  vyre_locality cache_locality;
} vyre_memory_hints;

/** One buffer of a program. */
typedef struct vyre_buffer_decl {
  const char *name; /* 1 to 255 bytes of UTF-8 without control characters */
  uint32_t binding; /* unique among the buffers that are not shared */
  vyre_memory kind;
  vyre_access access;
  vyre_element element;
  uint32_t count;         /* elements; 0: sized by what is bound */
  bool is_output;         /* read back after a dispatch */
  bool pipeline_live_out; /* observed by a later stage of the pipeline */
  vyre_memory_hints hints;
} vyre_buffer_decl;

/** What a program is made from. Borrowed for the call: nothing is kept. */
typedef struct vyre_program_desc {
  const vyre_buffer_decl *buffers;
  size_t buffer_count;
  uint32_t workgroup[3]; /* invocations in x, y, z; each at least 1 */
} vyre_program_desc;

/** An immutable program. Threads: safe. */
typedef struct vyre_program vyre_program;

VYRE_BEGIN

/** Makes a program from @p desc: copies the buffers and their names.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_program_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p desc is borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM for a bad name, an unknown kind, access,
 *             element or locality, a coalesce axis above 2, a workgroup axis
 *             of 0; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_program_create(const vyre_program_desc *desc, vyre_allocator allocator,
                    vyre_program **out, vyre_status *st);

/** Keeps a program: one more vyre_program_release is due. Returns it.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_program_retain(vyre_program *program);

/** Lets go of a program; the last one frees it. Plans point into it. NULL is
 *  fine.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_program_release(vyre_program *program);

/** The kernel's name; "" for a bare list of buffers.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_program_name(const vyre_program *program);

/** Whether it has a body, and so can be compiled.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_program_has_body(const vyre_program *program);

/** The content hash: equal programs have equal ones, whatever their locals and
 *  functions are called and however they were made.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_hash128 vyre_program_fingerprint(const vyre_program *program);

/** Whether two programs are the same; compares content, not hashes.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_program_equal(const vyre_program *a, const vyre_program *b);

/** Prints the program in the text form: parsing it gives an equal program.
 *  Takes memory from the program's allocator while it prints, to keep names
 *  apart.
 *  Returns false if @p writer refused, the program has no body, or there is no
 *  memory.
 *  Threads: safe.  Blocks: on the writer and the allocator. */
VYRE_API bool vyre_program_print(const vyre_program *program,
                                 vyre_writer writer);

/** The buffers in the order they were declared; *count is their number.
 *  Ownership: the program's.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_buffer_decl *vyre_program_buffers(
    const vyre_program *program, size_t *count);

/** The index of the buffer that over(...) names, in vyre_program_buffers: a
 *  dispatch covers it unless its grid says otherwise. VYRE_NO_INDEX without one,
 *  or if @p program is NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_program_grid_buffer(const vyre_program *program);

/** The workgroup size in x, y, z: three numbers, the program's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const uint32_t *vyre_program_workgroup(const vyre_program *program);

/** Bytes of one element; 0 for `bytes` and for a number that is no element.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_element_size(vyre_element element);

/** Names as JSON and the text form spell them ("u32", "read_write"); "?" for a
 *  number that is none. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_element_name(vyre_element element);
VYRE_API const char *vyre_memory_name(vyre_memory kind);
VYRE_API const char *vyre_access_name(vyre_access access);
VYRE_API const char *vyre_locality_name(vyre_locality locality);

VYRE_END

#endif
