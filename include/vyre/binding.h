/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/binding.h
 *  The binding plan: what is bound where, in which role and order.
 *
 *  A plan is a pure function of a program (and, if given, of the byte lengths
 *  of its inputs). Executors bind exactly what it says. */
#ifndef VYRE_BINDING_H
#define VYRE_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** What a buffer is for a dispatch: X(enumerator, name). First match decides:
 *  shared (kind shared or access workgroup), persistent (kind), output
 *  (is_output), then by access. */
#define VYRE_ROLE_MAP(X)                    \
  X(VYRE_ROLE_INPUT, "input")               \
  X(VYRE_ROLE_OUTPUT, "output")             \
  X(VYRE_ROLE_INPUT_OUTPUT, "input_output") \
  X(VYRE_ROLE_UNIFORM, "uniform")           \
  X(VYRE_ROLE_SHARED, "shared")             \
  X(VYRE_ROLE_PERSISTENT, "persistent")

typedef enum vyre_role {
#define VYRE_X2(name, text) name,
  VYRE_ROLE_MAP(VYRE_X2) VYRE_ROLE_COUNT
#undef VYRE_X2
} vyre_role;

/** One buffer of the plan. */
typedef struct vyre_binding {
  const char *name; /* the program's: lives as long as the program */
  uint32_t binding;
  uint32_t buffer_index; /* position in the program's declaration order */
  vyre_role role;
  uint32_t element_size;        /* bytes; 0 for `bytes` */
  uint64_t preferred_alignment; /* max(hint, element size, 1) */
  uint32_t element_count; /* declared or derived from the input's length; 0: not
                             known yet */
  bool has_static_byte_len;
  bool read_only;           /* access is read or uniform */
  uint64_t static_byte_len; /* count * element size; only if has_... */
  uint32_t input_index;     /* VYRE_NO_INDEX if it takes no input */
  uint32_t output_index;    /* VYRE_NO_INDEX if nobody observes it */
  bool has_coalesce_axis;
  uint8_t coalesce_axis;
  vyre_locality cache_locality;
} vyre_binding;

/** Bindings in ascending order of binding number (declaration order among equal
 *  ones, which only shared buffers can have). Inputs and outputs are numbered
 *  in that order. The index lists hold positions in the program's declaration.
 */
typedef struct vyre_binding_plan {
  const vyre_binding *bindings;
  size_t binding_count;
  const uint32_t *input_indices;
  size_t input_count;
  const uint32_t *output_indices;
  size_t output_count;
  const uint32_t *shared_indices;
  size_t shared_count;
} vyre_binding_plan;

/** What will be bound as an input: its length and where it is. */
typedef struct vyre_input_extent {
  uint64_t byte_len;
  bool resident; /* a resident buffer may be longer than needed; host bytes must
                    be exact */
} vyre_input_extent;

/** One slot of a binding-set fingerprint. Counts and names do not take part. */
typedef struct vyre_binding_entry {
  uint32_t binding;
  vyre_role role;
  uint32_t element_size;
} vyre_binding_entry;

/** The layout of a binding set: slots sorted by binding, and their hash. Two
 *  plans with equal slots can share one descriptor layout. */
typedef struct vyre_binding_fingerprint {
  const vyre_binding_entry *slots;
  size_t slot_count;
  vyre_hash128 hash;
} vyre_binding_fingerprint;

/** Memory class of a descriptor: X(enumerator, name). */
#define VYRE_LAYOUT_CLASS_MAP(X)    \
  X(VYRE_LAYOUT_STORAGE, "storage") \
  X(VYRE_LAYOUT_UNIFORM, "uniform")

typedef enum vyre_layout_class {
#define VYRE_X2(name, text) name,
  VYRE_LAYOUT_CLASS_MAP(VYRE_X2) VYRE_LAYOUT_CLASS_COUNT
#undef VYRE_X2
} vyre_layout_class;

/** One descriptor of a device layout. */
typedef struct vyre_layout_entry {
  uint32_t group;
  uint32_t binding;
  vyre_layout_class memory_class;
  bool read_only;
  uint32_t element_size;
} vyre_layout_entry;

/** A device layout: slots sorted by (group, binding), and their hash. */
typedef struct vyre_layout_fingerprint {
  const vyre_layout_entry *slots;
  size_t slot_count;
  vyre_hash128 hash;
} vyre_layout_fingerprint;

VYRE_BEGIN

/** Plans the bindings of @p program without looking at inputs: what is sized
 *  at run time has element_count 0.
 *  Ownership: *out lives in @p arena. On failure *out is zeroed and the arena
 *             is as before.
 *  Lifetime:  names point into @p program, which must outlive the plan.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM for two non-shared buffers with one binding
 *             number, a preferred_alignment that is no power of two, a count
 *             on `bytes`; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_binding_plan_build(const vyre_program *program, vyre_arena *arena,
                        vyre_binding_plan *out, vyre_status *st);

/** As vyre_binding_plan_build, then checks @p inputs as
 *  vyre_binding_plan_validate does, and derives the element count of every
 *  run-time sized input from its length. @p inputs is in input order.
 *  Ownership, lifetime, threads, blocks: as vyre_binding_plan_build.
 *  Errors: those of both. */
VYRE_API VYRE_NODISCARD vyre_code vyre_binding_plan_build_for(
    const vyre_program *program, const vyre_input_extent *inputs,
    size_t input_count, vyre_arena *arena, vyre_binding_plan *out,
    vyre_status *st);

/** Checks inputs against a plan: their number, then each in binding order. Host
 *  bytes must be whole elements, and exactly the declared size if there is one.
 *  A resident buffer must have at least the declared size; without one, whole
 *  elements. Nothing may have more than 2^32-1 elements.
 *  Ownership: borrows everything.  Threads: safe.  Blocks: never.
 *  Errors: VYRE_INVALID_PROGRAM, with the buffer and both numbers. */
VYRE_API VYRE_NODISCARD vyre_code vyre_binding_plan_validate(
    const vyre_binding_plan *plan, const vyre_input_extent *inputs,
    size_t input_count, vyre_status *st);

/** The binding-set fingerprint of a plan.
 *  Ownership: *out lives in @p arena; zeroed on failure.
 *  Threads: safe; the arena is compatible.  Blocks: on the allocator only.
 *  Errors: VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_binding_fingerprint_build(const vyre_binding_plan *plan, vyre_arena *arena,
                               vyre_binding_fingerprint *out, vyre_status *st);

/** Whether the slots are the same. Compares the slots, not the hashes.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_binding_fingerprint_equal(const vyre_binding_fingerprint *a,
                                             const vyre_binding_fingerprint *b);

/** Whether two plans can share a descriptor layout: equal (binding, role,
 *  element size) in every slot. Allocates nothing.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API bool vyre_binding_plans_share_layout(const vyre_binding_plan *a,
                                              const vyre_binding_plan *b);

/** The device layout of a plan: group 0, uniforms are Uniform, everything else
 *  that is bound is Storage, read-only by access. Shared buffers are not bound
 *  and have no slot.
 *  Ownership, threads, blocks, errors: as vyre_binding_fingerprint_build. */
VYRE_API VYRE_NODISCARD vyre_code vyre_layout_fingerprint_from_plan(
    const vyre_binding_plan *plan, vyre_arena *arena,
    vyre_layout_fingerprint *out, vyre_status *st);

/** A device layout from slots in any order: sorts a copy by (group, binding);
 *  equal ones keep their order. @p slots is borrowed for the call.
 *  Ownership, threads, blocks, errors: as vyre_binding_fingerprint_build. */
VYRE_API VYRE_NODISCARD vyre_code vyre_layout_fingerprint_build(
    const vyre_layout_entry *slots, size_t slot_count, vyre_arena *arena,
    vyre_layout_fingerprint *out, vyre_status *st);

/** Whether the slots are the same. Compares the slots, not the hashes.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_layout_fingerprint_equal(const vyre_layout_fingerprint *a,
                                            const vyre_layout_fingerprint *b);

/** Prints the plan as an aligned table, one buffer a line, shared ones last.
 *  Returns false if @p writer refused or @p plan is NULL.
 *  Threads: safe.  Blocks: on the writer. */
VYRE_API bool vyre_binding_plan_print(const vyre_binding_plan *plan,
                                      vyre_writer writer);

/** Names as JSON spells them; "?" for a number that is none. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_role_name(vyre_role role);
VYRE_API const char *vyre_layout_class_name(vyre_layout_class memory_class);

VYRE_END

#endif
