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
#include "vyre/ops.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Element types: X(enumerator, name, bytes). `bytes` has no element size;
 *  kernels access it as u8. `sum_f32` and `sum_f64` are exact sums
 *  (vyre/sum.h). */
#define VYRE_ELEMENT_MAP(X)              \
  X(VYRE_ELEMENT_BOOL, "bool", 1)        \
  X(VYRE_ELEMENT_U8, "u8", 1)            \
  X(VYRE_ELEMENT_I8, "i8", 1)            \
  X(VYRE_ELEMENT_U16, "u16", 2)          \
  X(VYRE_ELEMENT_I16, "i16", 2)          \
  X(VYRE_ELEMENT_U32, "u32", 4)          \
  X(VYRE_ELEMENT_I32, "i32", 4)          \
  X(VYRE_ELEMENT_U64, "u64", 8)          \
  X(VYRE_ELEMENT_I64, "i64", 8)          \
  X(VYRE_ELEMENT_F16, "f16", 2)          \
  X(VYRE_ELEMENT_BF16, "bf16", 2)        \
  X(VYRE_ELEMENT_F32, "f32", 4)          \
  X(VYRE_ELEMENT_F64, "f64", 8)          \
  X(VYRE_ELEMENT_BYTES, "bytes", 0)      \
  X(VYRE_ELEMENT_SUM_F32, "sum_f32", 96) \
  X(VYRE_ELEMENT_SUM_F64, "sum_f64", 576)

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

/** Struct: a type with named fields. Its layout is that of C. */
typedef struct vyre_struct vyre_struct;

/** Field of a struct. */
typedef struct vyre_struct_field {
  const char *name;
  vyre_element element; /* type of its scalars; of a struct, one of them */
  /* 0: one `element`; otherwise the number of a vector type or of a struct */
  uint16_t type;
  const vyre_struct *structure; /* NULL unless it is a struct */
  uint32_t offset;              /* bytes from the start of the struct */
  uint64_t reserved[2];         /* zero */
} vyre_struct_field;

/** Struct of a program. The program owns it. */
struct vyre_struct {
  const char *name;
  uint32_t size;                   /* bytes, a multiple of the alignment */
  uint32_t alignment;              /* bytes: the size of its largest scalar */
  const vyre_struct_field *fields; /* in declaration order */
  size_t field_count;
  uint64_t reserved[2]; /* zero */
};

/** Most dimensions of a buffer. */
#define VYRE_MAX_DIMENSIONS 4

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
  /* 0: each element is one `element`. Otherwise the number of a vector type
   * with components of type `element`, or of a struct. */
  uint16_t type;
  uint8_t dimension_count; /* 0: without dimensions; at most 4 */
  /* Bit k: dimensions[k] is the index of a uniform of type u32, which has one
   * element. Otherwise it is a constant. */
  uint8_t dimension_uniforms;
  /* Sizes, the slowest first. 0 in dimensions[0]: as many as the bound memory
   * has. `count` is the product if all are constant, else 0. */
  uint32_t dimensions[VYRE_MAX_DIMENSIONS];
  /* Struct of an element, or NULL. vyre_build_declare sets it. */
  const vyre_struct *structure;
  uint64_t reserved[1]; /* must be zero */
} vyre_buffer_decl;

/** Buffers and workgroup size of a program without a body. Borrowed for the
 *  call. */
typedef struct vyre_program_desc {
  const vyre_buffer_decl *buffers; /* declarations */
  size_t buffer_count;             /* entries of `buffers` */
  uint32_t workgroup[3]; /* invocations in x, y and z; each at least 1 */
  uint64_t reserved[4];  /* must be zero */
} vyre_program_desc;

/** Kinds of device work queues: X(enumerator, name). */
#define VYRE_QUEUE_KIND_MAP(X)          \
  X(VYRE_QUEUE_KIND_ORDERED, "ordered") \
  X(VYRE_QUEUE_KIND_SET, "set")         \
  X(VYRE_QUEUE_KIND_ONCE, "once")       \
  X(VYRE_QUEUE_KIND_ANY, "any")

/** Bounds of the keys of a set: X(enumerator, name). */
#define VYRE_KEY_BOUND_MAP(X)            \
  X(VYRE_KEY_BOUND_NONE, "none")         \
  X(VYRE_KEY_BOUND_CONSTANT, "constant") \
  X(VYRE_KEY_BOUND_UNIFORM, "uniform")   \
  X(VYRE_KEY_BOUND_LEN, "len")

#define VYRE_X2(name, text) name,
/** Order of the items of a queue: `queue(T)`, set(N), once(N) or any. */
typedef enum vyre_queue_kind {
  VYRE_QUEUE_KIND_MAP(VYRE_X2) VYRE_QUEUE_KIND_COUNT
} vyre_queue_kind;

/** Source of the number of keys of set(N) and once(N). */
typedef enum vyre_key_bound {
  VYRE_KEY_BOUND_MAP(VYRE_X2) VYRE_KEY_BOUND_COUNT
} vyre_key_bound;
#undef VYRE_X2

/** Field of the item of a queue kernel. */
typedef struct vyre_queue_field {
  const char *name;     /* "" or NULL if the item has one field without name */
  vyre_type type;       /* every type but bool */
  uint64_t reserved[1]; /* must be zero */
} vyre_queue_field;

/** Clauses of a queue kernel. In memory, an item has its fields in order, 4 or
 *  8 bytes each, little endian, without padding. */
typedef struct vyre_queue_clauses {
  vyre_queue_kind kind;           /* order of the items */
  const vyre_queue_field *fields; /* fields of an item */
  size_t field_count;             /* 1 to 32; sets have one field of type u32 */
  vyre_key_bound key_bound;       /* NONE unless the kind is SET or ONCE */
  uint32_t keys; /* CONSTANT: number of keys; UNIFORM, LEN: index of a buffer */
  uint32_t pushes; /* P of pushes(P); 0 without one */
  bool has_by;     /* has priorities: set(N) by(e); ignored by the builder */
  bool has_pull;   /* has a `pull` body; ignored by the builder */
  uint32_t item_bytes;  /* bytes of an item; ignored by the builder */
  uint64_t reserved[4]; /* must be zero */
} vyre_queue_clauses;

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

/** Returns the name of the source file that the parser was given; "" without
 *  one.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_program_file(const vyre_program *program);

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

/** Returns true if @p program is a queue kernel, and stores its clauses in
 *  *out, which is zeroed otherwise. The fields are valid as long as @p storage,
 *  which has space for 32 fields; their names are owned by the program.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_program_queue(const vyre_program *program,
                                 vyre_queue_clauses *out,
                                 vyre_queue_field *storage);

/** Returns the name of a queue kind ("once"), or "?" for an unknown value.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_queue_kind_name(vyre_queue_kind kind);

/** Returns the declared workgroup size in x, y and z. Owned by the program.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const uint32_t *vyre_program_workgroup(const vyre_program *program);

/** Returns the bytes of one element; 0 for `bytes` and for an unknown value.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_element_size(vyre_element element);

/** Returns the bytes from one element of @p buffer to the next; 1 for `bytes`.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_buffer_stride(const vyre_buffer_decl *buffer);

/** Return the name ("u32", "global", "read_write", "streaming") as used in
 *  JSON and in the text form, or "?" for an unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_element_name(vyre_element element);
VYRE_API const char *vyre_memory_name(vyre_memory kind);
VYRE_API const char *vyre_access_name(vyre_access access);
VYRE_API const char *vyre_locality_name(vyre_locality locality);

VYRE_END

#endif
