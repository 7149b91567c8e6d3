/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/emit.h
 *  Compiler output for inspection and for use elsewhere: LIR (lowered IR)
 *  after any pass, portable C, LLVM IR for CPUs and the schedule that it is
 *  generated from, and SPIR-V for Vulkan as little-endian words or as text. */
#ifndef VYRE_EMIT_H
#define VYRE_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Output forms: X(enumerator, name). */
#define VYRE_EMIT_MAP(X)                \
  X(VYRE_EMIT_LOWERED, "lowered")       \
  X(VYRE_EMIT_C, "c")                   \
  X(VYRE_EMIT_LLVM, "llvm")             \
  X(VYRE_EMIT_SPIRV, "spirv")           \
  X(VYRE_EMIT_SPIRV_TEXT, "spirv-text") \
  X(VYRE_EMIT_SCHEDULE, "schedule")

/** Float modes: X(enumerator, name). All modes give the same bits
 *  (docs/explanation/exact-numbers.md). NATIVE uses the instruction of the device. CORRECTED
 *  repairs its result with extra operations. SOFT computes with integers. */
#define VYRE_FLOAT_MODE_MAP(X)              \
  X(VYRE_FLOAT_MODE_NATIVE, "native")       \
  X(VYRE_FLOAT_MODE_CORRECTED, "corrected") \
  X(VYRE_FLOAT_MODE_SOFT, "soft")

/** Implementations of mathematical functions: X(enumerator, name). All give
 *  the same bits. F64 uses f64 with fma, F64_NOFMA f64 without fma, U32 32-bit
 *  integers. */
#define VYRE_MATH_MAP(X)              \
  X(VYRE_MATH_F64, "f64")             \
  X(VYRE_MATH_F64_NOFMA, "f64-nofma") \
  X(VYRE_MATH_U32, "u32")

#define VYRE_X2(name, text) name,
/** Output form. */
typedef enum vyre_emit_form {
  VYRE_EMIT_MAP(VYRE_X2) VYRE_EMIT_COUNT
} vyre_emit_form;

/** Float mode. */
typedef enum vyre_float_mode {
  VYRE_FLOAT_MODE_MAP(VYRE_X2) VYRE_FLOAT_MODE_COUNT
} vyre_float_mode;

/** Implementation of mathematical functions. */
typedef enum vyre_math { VYRE_MATH_MAP(VYRE_X2) VYRE_MATH_COUNT } vyre_math;
#undef VYRE_X2

/** Options of vyre_program_emit. Zeroed: LIR after the last pass, for a device
 *  with all native operations. */
typedef struct vyre_emit_options {
  vyre_emit_form form; /* output form */
  /* LOWERED, SCHEDULE: name of a pass; NULL: the last pass. */
  const char *after;
  vyre_float_mode float_mode; /* float mode of all operations */
  vyre_math math;             /* implementation of mathematical functions */
  bool no_u64;                /* split 64-bit integers into 32-bit words */
  /* Avoid 8-bit and 16-bit accesses; not available in C for a kernel with
   * such elements in its buffers. */
  bool no_narrow;
  uint32_t workgroup[3]; /* workgroup size; x of 0: as the program declares */
  /* LLVM, SCHEDULE: vector width in invocations: 1, 4, 8, 16 or 32; 0: chosen for the
   * kernel. */
  uint32_t width;
  /* LLVM, SCHEDULE: 32-bit lanes of a vector register: 4, 8 or 16; 0: 8. */
  uint32_t lanes;
  uint64_t reserved[4]; /* must be zero */
} vyre_emit_options;

/** Statistics of a lowered kernel. */
typedef struct vyre_emit_report {
  uint32_t instructions; /* LIR instructions */
  uint32_t accesses;     /* reachable buffer accesses of the program */
  /* Accesses proven to be in bounds, which need no check. */
  uint32_t proven_accesses;
  uint32_t phases; /* 1 without grid barriers */
  /* Bytes per invocation that live across grid barriers. Reject a dispatch
   * that needs more than UINT32_MAX words for all invocations. */
  uint32_t spill_bytes;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_emit_report;

/** Buffer access of a kernel. */
typedef struct vyre_access_info {
  uint32_t buffer;       /* index of the buffer in the program */
  uint32_t line, column; /* source position, from 1; 0 without source text */
  bool is_store;         /* a store */
  bool is_atomic;        /* an atomic; neither: a load */
  bool is_proven;        /* proven to be in bounds: needs no check */
  const char *index;     /* range of the index: "[0, 4294967295]" */
  /* Length that the index is compared with: "64" or "len(x)". */
  const char *length;
  const char *reason;   /* reason why it is not proven; NULL if it is */
  const char *file;     /* imported file of the line; NULL: the parsed file */
  uint64_t reserved[1]; /* zero; for future fields */
} vyre_access_info;

/** Levels of a value: X(enumerator, name). */
#define VYRE_VALUE_LEVEL_MAP(X)                  \
  X(VYRE_VALUE_DISPATCH, "same in the dispatch") \
  X(VYRE_VALUE_WORKGROUP, "same in a workgroup") \
  X(VYRE_VALUE_SUBGROUP, "same in a subgroup")   \
  X(VYRE_VALUE_VARYING, "varies between invocations")

/** Invocations that are proven to have the same value. */
typedef enum vyre_value_level {
#define VYRE_X2(name, text) name,
  VYRE_VALUE_LEVEL_MAP(VYRE_X2) VYRE_VALUE_LEVEL_COUNT
#undef VYRE_X2
} vyre_value_level;

/** Proven facts about the values of a name at one place of the text. */
typedef struct vyre_value_info {
  uint32_t line, column;  /* source position of the name, from 1 */
  vyre_value_level level; /* invocations with the same value */
  /* Range of an integer: "[0, 63]"; NULL for other types. */
  const char *range;
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_value_info;

VYRE_BEGIN

/** Lowers @p program, which must be valid, and prints it. @p report may be
 *  NULL.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    on the writer and the allocator.
 *  Errors:    VYRE_INVALID_PROGRAM if it does not validate or has no body;
 *             VYRE_UNSUPPORTED_FEATURE for print() and push(), for f64 with
 *             no_u64, and for narrow elements with no_narrow in C;
 *             VYRE_INVALID_ARGUMENT for a NULL argument, an unknown value or
 *             pass, or a writer that fails; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_emit(
    const vyre_program *program, const vyre_emit_options *options,
    vyre_writer writer, vyre_emit_report *report, vyre_status *st);

/** Returns true when @p width is a valid vector width: 1, 4, 8, 16 or 32, or 0
 *  for the default of the kernel.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_emit_is_valid_width(uint32_t width);

/** Lists all buffer accesses of @p program in evaluation order, for its
 *  declared workgroup size. Reads of scalar uniforms are included.
 *  Ownership: *out lives in @p arena. On failure *out is NULL and *count is 0.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM if it does not validate or has no body;
 *             VYRE_INVALID_ARGUMENT for a NULL argument; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_accesses(
    const vyre_program *program, vyre_arena *arena,
    const vyre_access_info **out, size_t *count, vyre_status *st);

/** Lists what is proven about the values of names, ids and loads in @p program,
 *  for its declared workgroup size: one entry for each place, sorted by
 *  position. A function that is called several times has the values of all
 *  calls. Programs without source positions have no entries.
 *  Ownership: *out lives in @p arena. On failure *out is NULL and *count is 0.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM if it does not validate or has no body;
 *             VYRE_INVALID_ARGUMENT for a NULL argument; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_values(
    const vyre_program *program, vyre_arena *arena, const vyre_value_info **out,
    size_t *count, vyre_status *st);

/** Returns a description of a level ("same in a workgroup"), or "?" for an
 *  unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_value_level_name(vyre_value_level level);

/** Returns the name of pass @p index, in execution order, or NULL after the
 *  last. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_pass_at(uint32_t index);

/** Returns a description of pass @p index, or NULL after the last. Static
 *  storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_pass_description(uint32_t index);

/** Returns the name of schedule pass @p index, in execution order, or NULL
 *  after the last. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_schedule_pass_at(uint32_t index);

/** Returns a description of schedule pass @p index, or NULL after the last.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_schedule_pass_description(uint32_t index);

VYRE_END

#endif
