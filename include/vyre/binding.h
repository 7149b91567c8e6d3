/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/binding.h
 *  Binding planner: the role and the order of every buffer of a program.
 *
 *  A plan is a pure function of a program and, optionally, of the byte lengths
 *  of its inputs. Backends bind exactly what the plan lists. */
#ifndef VYRE_BINDING_H
#define VYRE_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/hash.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Roles of a buffer in a dispatch: X(enumerator, name). The first rule that
 *  matches decides: shared (memory kind shared or access workgroup),
 *  persistent (memory kind), output (is_output), then the access. */
#define VYRE_ROLE_MAP(X)                    \
  X(VYRE_ROLE_INPUT, "input")               \
  X(VYRE_ROLE_OUTPUT, "output")             \
  X(VYRE_ROLE_INPUT_OUTPUT, "input_output") \
  X(VYRE_ROLE_UNIFORM, "uniform")           \
  X(VYRE_ROLE_SHARED, "shared")             \
  X(VYRE_ROLE_PERSISTENT, "persistent")

/** Role of a buffer in a dispatch. */
typedef enum vyre_role {
#define VYRE_X2(name, text) name,
  VYRE_ROLE_MAP(VYRE_X2) VYRE_ROLE_COUNT
#undef VYRE_X2
} vyre_role;

/** Plan entry for one buffer. */
typedef struct vyre_binding {
  const char *name;      /* name of the buffer; owned by the program */
  uint32_t binding;      /* binding number */
  uint32_t buffer_index; /* position in the declaration order of the program */
  vyre_role role;        /* role in a dispatch */
  uint32_t element_size; /* bytes of one element; 0 for `bytes` */
  uint64_t preferred_alignment; /* bytes: max(hint, element size, 1) */
  /* Declared count, or count derived from the input length; 0 if not known
   * yet. */
  uint32_t element_count;
  bool has_static_byte_len; /* the size is declared by the program */
  bool read_only;           /* the access is read or uniform */
  /* element_count * element_size, if has_static_byte_len. */
  uint64_t static_byte_len;
  /* Position among the inputs; VYRE_NO_INDEX if not an input. */
  uint32_t input_index;
  /* Position among the outputs; VYRE_NO_INDEX if not an output. */
  uint32_t output_index;
  bool has_coalesce_axis;       /* `coalesce_axis` is set */
  uint8_t coalesce_axis;        /* hint, as in vyre_memory_hints */
  vyre_locality cache_locality; /* hint, as in vyre_memory_hints */
  uint64_t reserved[2];         /* zero; for future fields */
} vyre_binding;

/** Binding plan of a program. Bindings are sorted by binding number; shared
 *  buffers, which may have equal numbers, keep their declaration order. Inputs
 *  and outputs are numbered in the same order. The index arrays hold positions
 *  in the declaration order of the program. */
typedef struct vyre_binding_plan {
  const vyre_binding *bindings;   /* all buffers */
  size_t binding_count;           /* entries of `bindings` */
  const uint32_t *input_indices;  /* buffers that take an input */
  size_t input_count;             /* entries of `input_indices` */
  const uint32_t *output_indices; /* buffers that give an output */
  size_t output_count;            /* entries of `output_indices` */
  const uint32_t *shared_indices; /* shared buffers */
  size_t shared_count;            /* entries of `shared_indices` */
  uint64_t reserved[4];           /* zero; for future fields */
} vyre_binding_plan;

/** Size and location of one input. */
typedef struct vyre_input_extent {
  uint64_t byte_len; /* bytes */
  /* True for a device buffer, which may be longer than needed; host memory
   * must match exactly. */
  bool is_device_buffer;
} vyre_input_extent;

/** One entry of a binding-set fingerprint. Element counts and names do not
 *  take part. */
typedef struct vyre_binding_entry {
  uint32_t binding;      /* binding number */
  vyre_role role;        /* role in a dispatch */
  uint32_t element_size; /* bytes of one element; 0 for `bytes` */
} vyre_binding_entry;

/** Fingerprint of a binding set: its entries, sorted by binding number, and
 *  their hash. Plans with equal entries can share one descriptor layout. */
typedef struct vyre_binding_fingerprint {
  const vyre_binding_entry *entries; /* entries */
  size_t entry_count;                /* number of entries */
  vyre_hash128 hash;                 /* hash of the entries */
  uint64_t reserved[2];              /* zero; for future fields */
} vyre_binding_fingerprint;

/** Memory classes of a descriptor: X(enumerator, name). */
#define VYRE_LAYOUT_CLASS_MAP(X)    \
  X(VYRE_LAYOUT_STORAGE, "storage") \
  X(VYRE_LAYOUT_UNIFORM, "uniform")

/** Memory class of a descriptor. */
typedef enum vyre_layout_class {
#define VYRE_X2(name, text) name,
  VYRE_LAYOUT_CLASS_MAP(VYRE_X2) VYRE_LAYOUT_CLASS_COUNT
#undef VYRE_X2
} vyre_layout_class;

/** One descriptor of a device layout. */
typedef struct vyre_layout_entry {
  uint32_t group;   /* descriptor set (Vulkan) or bind group (WebGPU) */
  uint32_t binding; /* binding number in the group */
  vyre_layout_class memory_class; /* storage or uniform buffer */
  bool read_only;                 /* kernels do not write it */
  uint32_t element_size;          /* bytes of one element; 0 for `bytes` */
} vyre_layout_entry;

/** Fingerprint of a device layout: its entries, sorted by group and binding,
 *  and their hash. */
typedef struct vyre_layout_fingerprint {
  const vyre_layout_entry *entries; /* entries */
  size_t entry_count;               /* number of entries */
  vyre_hash128 hash;                /* hash of the entries */
  uint64_t reserved[2];             /* zero; for future fields */
} vyre_layout_fingerprint;

VYRE_BEGIN

/** Plans the bindings of @p program. Buffers that are sized at run time get
 *  element_count 0.
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is unchanged.
 *  Lifetime:  names point into @p program, which must outlive the plan.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM if two buffers that are not shared have the
 *             same binding number, if a preferred_alignment is not a power of
 *             two, or if a `bytes` buffer has a count; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_binding_plan_build(const vyre_program *program, vyre_arena *arena,
                        vyre_binding_plan *out, vyre_status *st);

/** Plans the bindings of @p program for @p inputs, which are in input order.
 *  Checks the inputs like vyre_binding_plan_validate. Derives the element
 *  count of every input that is sized at run time from its length. Ownership,
 *  lifetime, threads, blocks: as vyre_binding_plan_build.
 *  Errors:    those of vyre_binding_plan_build and vyre_binding_plan_validate.
 */
VYRE_API VYRE_NODISCARD vyre_code vyre_binding_plan_build_for(
    const vyre_program *program, const vyre_input_extent *inputs,
    size_t input_count, vyre_arena *arena, vyre_binding_plan *out,
    vyre_status *st);

/** Checks @p inputs against @p plan: first their number, then each input in
 *  binding order. The size of host memory must be a multiple of the element
 *  size, and equal to the declared size if there is one. A device buffer must
 *  have at least the declared size; without one, a multiple of the element
 *  size. An input has at most 2^32-1 elements.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_PROGRAM, with the buffer and both numbers. */
VYRE_API VYRE_NODISCARD vyre_code vyre_binding_plan_validate(
    const vyre_binding_plan *plan, const vyre_input_extent *inputs,
    size_t input_count, vyre_status *st);

/** Computes the binding-set fingerprint of @p plan.
 *  Ownership: *out lives in @p arena; zeroed on failure.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_binding_fingerprint_build(const vyre_binding_plan *plan, vyre_arena *arena,
                               vyre_binding_fingerprint *out, vyre_status *st);

/** Returns true when the entries are equal. Compares entries, not hashes.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_binding_fingerprint_equal(const vyre_binding_fingerprint *a,
                                             const vyre_binding_fingerprint *b);

/** Returns true when two plans can share a descriptor layout: all entries have
 *  equal binding number, role and element size. Allocates nothing.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_binding_plans_share_layout(const vyre_binding_plan *a,
                                              const vyre_binding_plan *b);

/** Computes the device layout of @p plan. All descriptors are in group 0.
 *  Uniforms have class uniform, all other buffers class storage. Shared
 *  buffers have no descriptor. Ownership, threads, blocks, errors: as
 *  vyre_binding_fingerprint_build. */
VYRE_API VYRE_NODISCARD vyre_code vyre_layout_fingerprint_from_plan(
    const vyre_binding_plan *plan, vyre_arena *arena,
    vyre_layout_fingerprint *out, vyre_status *st);

/** Computes a device layout from entries in any order. Sorts a copy by group
 *  and binding; the sort is stable. @p entries is borrowed for the call.
 *  Ownership, threads, blocks, errors: as vyre_binding_fingerprint_build. */
VYRE_API VYRE_NODISCARD vyre_code vyre_layout_fingerprint_build(
    const vyre_layout_entry *entries, size_t entry_count, vyre_arena *arena,
    vyre_layout_fingerprint *out, vyre_status *st);

/** Returns true when the entries are equal. Compares entries, not hashes.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_layout_fingerprint_equal(const vyre_layout_fingerprint *a,
                                            const vyre_layout_fingerprint *b);

/** Prints the plan as a table with one line per buffer, shared buffers last.
 *  Returns false if @p writer fails or @p plan is NULL.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_binding_plan_print(const vyre_binding_plan *plan,
                                      vyre_writer writer);

/** Returns the name of a role ("input_output") as used in JSON, or "?" for an
 *  unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_role_name(vyre_role role);

/** Returns the name of a memory class ("storage") as used in JSON, or "?" for
 *  an unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_layout_class_name(vyre_layout_class memory_class);

VYRE_END

#endif
