/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/program.h
 *  Programs: a kernel, or a bare list of buffers for the planners.
 *
 *  Programs come from vyre_module_parse, vyre_builder_build,
 *  vyre_program_read_binary or vyre_program_create. */
#ifndef VYRE_PROGRAM_H
#define VYRE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/hash.h"
#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Element types: X(enumerator, name, bytes). `bytes` has no element size;
 *  kernels access it as u8. */
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

/** Memory kinds of a buffer: X(enumerator, name). */
#define VYRE_MEMORY_MAP(X)          \
  X(VYRE_MEMORY_GLOBAL, "global")   \
  X(VYRE_MEMORY_SHARED, "shared")   \
  X(VYRE_MEMORY_UNIFORM, "uniform") \
  X(VYRE_MEMORY_PERSISTENT, "persistent")

/** Accesses that a kernel may make to a buffer: X(enumerator, name). */
#define VYRE_ACCESS_MAP(X)                \
  X(VYRE_ACCESS_READ, "read")             \
  X(VYRE_ACCESS_WRITE, "write")           \
  X(VYRE_ACCESS_READ_WRITE, "read_write") \
  X(VYRE_ACCESS_UNIFORM, "uniform")       \
  X(VYRE_ACCESS_WORKGROUP, "workgroup")

/** Access patterns of a buffer: X(enumerator, name). A hint that never changes
 *  a result. */
#define VYRE_LOCALITY_MAP(X)              \
  X(VYRE_LOCALITY_TEMPORAL, "temporal")   \
  X(VYRE_LOCALITY_STREAMING, "streaming") \
  X(VYRE_LOCALITY_RANDOM, "random")

#define VYRE_X3(name, text, bytes) name,
#define VYRE_X2(name, text)        name,
/** Element type. */
typedef enum vyre_element {
  VYRE_ELEMENT_MAP(VYRE_X3) VYRE_ELEMENT_COUNT
} vyre_element;

/** Memory kind. */
typedef enum vyre_memory {
  VYRE_MEMORY_MAP(VYRE_X2) VYRE_MEMORY_COUNT
} vyre_memory;

/** Access to a buffer. */
typedef enum vyre_access {
  VYRE_ACCESS_MAP(VYRE_X2) VYRE_ACCESS_COUNT
} vyre_access;

/** Access pattern. */
typedef enum vyre_locality {
  VYRE_LOCALITY_MAP(VYRE_X2) VYRE_LOCALITY_COUNT
} vyre_locality;
#undef VYRE_X3
#undef VYRE_X2

/** Index value that means "none". */
#define VYRE_NO_INDEX UINT32_MAX

/** Hints about the memory of a buffer. Zeroed: no hints. */
typedef struct vyre_memory_hints {
  uint32_t preferred_alignment; /* bytes, a power of two; 0: the element size */
  bool has_coalesce_axis;       /* `coalesce_axis` is set */
  /* 0, 1 or 2: invocations that are neighbours in x, y or z access
   * neighbouring elements. */
  uint8_t coalesce_axis;
  vyre_locality cache_locality; /* access pattern */
} vyre_memory_hints;

/** Declaration of one buffer. */
typedef struct vyre_buffer_decl {
  const char *name;     /* 1 to 255 bytes of UTF-8 without control characters */
  uint32_t binding;     /* binding number; unique except for shared buffers */
  vyre_memory kind;     /* memory kind */
  vyre_access access;   /* access by the kernel */
  vyre_element element; /* element type */
  uint32_t count; /* number of elements; 0: sized by the memory bound to it */
  bool is_output; /* read back after a dispatch */
  bool pipeline_live_out;  /* read by a later stage of the pipeline */
  vyre_memory_hints hints; /* hints */
  uint64_t reserved[4];    /* must be zero */
} vyre_buffer_decl;

/** Buffers and workgroup size of a program without a body. Borrowed for the
 *  call. */
typedef struct vyre_program_desc {
  const vyre_buffer_decl *buffers; /* declarations */
  size_t buffer_count;             /* entries of `buffers` */
  uint32_t workgroup[3]; /* invocations in x, y and z; each at least 1 */
  uint64_t reserved[4];  /* must be zero */
} vyre_program_desc;

/** Program. Immutable and reference counted. Threads: safe. */
typedef struct vyre_program vyre_program;

VYRE_BEGIN

/** Creates a program without a body from @p desc. Copies the declarations and
 *  names.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_program_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p desc is borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM for an invalid name, an unknown kind,
 *             access, element or locality, a coalesce axis above 2, or a
 *             workgroup size of 0; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_program_create(const vyre_program_desc *desc, vyre_allocator allocator,
                    vyre_program **out, vyre_status *st);

/** Adds a reference, which needs one more vyre_program_release. Returns @p
 *  program.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_program_retain(vyre_program *program);

/** Drops a reference. The last release frees the program, which plans point
 *  into. Accepts NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_program_release(vyre_program *program);

/** Returns the name of the kernel; "" for a program without a body.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_program_name(const vyre_program *program);

/** Returns true when the program has a body and can be compiled.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_program_has_body(const vyre_program *program);

/** Returns the content hash. Equal programs have equal hashes, no matter how
 *  they were made and what their local variables and functions are called.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_hash128 vyre_program_fingerprint(const vyre_program *program);

/** Returns true when two programs are equal. Compares contents, not hashes.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_program_equal(const vyre_program *a, const vyre_program *b);

/** Prints the program in the text form; parsing the text gives an equal
 *  program. Allocates temporarily from the allocator of the program. Returns
 *  false if @p writer fails, the program has no body, or memory runs out.
 *  Threads:   safe.
 *  Blocks:    on the writer and the allocator.
 *  Errors:    none. */
VYRE_API bool vyre_program_print(const vyre_program *program,
                                 vyre_writer writer);

/** Returns the buffers in declaration order and stores their number in *count.
 *  Ownership: owned by the program.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_buffer_decl *vyre_program_buffers(
    const vyre_program *program, size_t *count);

/** Returns the index in vyre_program_buffers of the buffer of over(...), which
 *  the grid covers by default; VYRE_NO_INDEX without one, or if @p program is
 *  NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_program_grid_buffer(const vyre_program *program);

/** Returns the declared workgroup size in x, y and z. Owned by the program.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const uint32_t *vyre_program_workgroup(const vyre_program *program);

/** Returns the bytes of one element; 0 for `bytes` and for an unknown value.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_element_size(vyre_element element);

/** Return the name ("u32", "global", "read_write", "streaming") as used in
 *  JSON and in the text form, or "?" for an unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_element_name(vyre_element element);
VYRE_API const char *vyre_memory_name(vyre_memory kind);
VYRE_API const char *vyre_access_name(vyre_access access);
VYRE_API const char *vyre_locality_name(vyre_locality locality);

VYRE_END

#endif
