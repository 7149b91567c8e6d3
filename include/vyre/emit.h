/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/emit.h
 *  What a program becomes on its way to a device: the lowered kernel after any
 *  pass, for people, C that compiles anywhere, what LLVM compiles for
 *  processors, and SPIR-V for Vulkan, as bytes (words, little endian) or text. */
#ifndef VYRE_EMIT_H
#define VYRE_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** What to print: X(enumerator, name). */
#define VYRE_EMIT_MAP(X)          \
  X(VYRE_EMIT_LOWERED, "lowered") \
  X(VYRE_EMIT_C, "c")             \
  X(VYRE_EMIT_LLVM, "llvm")       \
  X(VYRE_EMIT_SPIRV, "spirv")     \
  X(VYRE_EMIT_SPIRV_TEXT, "spirv-text")

/** How float operations are done: X(enumerator, name). All give the same bits
 *  (docs/numbers.md). */
#define VYRE_FLOAT_MODE_MAP(X)          \
  X(VYRE_FLOAT_MODE_NATIVE, "native")   \
  X(VYRE_FLOAT_MODE_CORRECTED, "fixed") \
  X(VYRE_FLOAT_MODE_SOFT, "soft")

/** How functions of mathematics are done: X(enumerator, name). All give the same
 *  bits. */
#define VYRE_MATH_MAP(X)              \
  X(VYRE_MATH_F64, "f64")             \
  X(VYRE_MATH_F64_NOFMA, "f64-nofma") \
  X(VYRE_MATH_U32, "u32")

#define VYRE_X2(name, text) name,
typedef enum vyre_emit_form {
  VYRE_EMIT_MAP(VYRE_X2) VYRE_EMIT_COUNT
} vyre_emit_form;
typedef enum vyre_float_mode {
  VYRE_FLOAT_MODE_MAP(VYRE_X2) VYRE_FLOAT_MODE_COUNT
} vyre_float_mode;
typedef enum vyre_math { VYRE_MATH_MAP(VYRE_X2) VYRE_MATH_COUNT } vyre_math;
#undef VYRE_X2

/** Zeroed: the lowered kernel after the last pass, for a device that does
 *  everything natively. */
typedef struct vyre_emit_options {
  vyre_emit_form form;
  const char *after; /* name of a pass: LOWERED only; NULL: the last */
  vyre_float_mode float_mode;
  vyre_math math;
  bool no_u64;           /* 64-bit integers in 32-bit pieces */
  bool no_narrow;        /* no 8- and 16-bit accesses; C has them: refused there
                            for a kernel with such elements in its buffers */
  uint32_t workgroup[3]; /* x of 0: the program's */
  uint32_t width;        /* LLVM: invocations side by side in a vector: 1, 4, 8,
                            16 or 32; 0: chosen for the kernel */
  uint32_t lanes;        /* LLVM: 32-bit lanes of the machine's vectors: 4, 8 or
                            16; 0: 8 */
} vyre_emit_options;

/** Counts of a lowered kernel. */
typedef struct vyre_emit_report {
  uint32_t instructions;
  uint32_t accesses;        /* of the program to buffers, where it can come */
  uint32_t proven_accesses; /* that are inside whatever happens: no check */
  uint32_t phases;          /* 1 without grid barriers */
  uint32_t spill_bytes;     /* kept for each invocation across grid barriers;
                               a dispatch of more than UINT32_MAX words, of all
                               invocations, is to be refused */
} vyre_emit_report;

/** An access of a kernel to a buffer. */
typedef struct vyre_access_info {
  uint32_t buffer;       /* index in the program */
  uint32_t line, column; /* of the source, from 1; 0 if it has none */
  bool is_store;         /* writes it, plainly */
  bool is_atomic;        /* neither: a load */
  bool is_proven;        /* inside whatever happens: it needs no check */
  const char *index;     /* values the index can have, "[0, 4294967295]" */
  const char *length;    /* what it is held against, "64" or "len(x)" */
  const char *reason;    /* why it is not proven; NULL if it is */
} vyre_access_info;

VYRE_BEGIN

/** Lowers @p program, which has to be valid, and prints it. @p report may be
 *  NULL.
 *  Ownership: nothing changes hands.  Lifetime: all is borrowed for the call.
 *  Threads: safe.  Blocks: on the writer and the allocator.
 *  Errors:  VYRE_INVALID_PROGRAM if it does not validate or has no body;
 *           VYRE_UNSUPPORTED_FEATURE for print() and push(), for f64 with
 *           no_u64, and for narrow elements with no_narrow in C;
 *           VYRE_INVALID_ARGUMENT for a NULL, a number that is none, a
 *           pass that is none, or a writer that refuses; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_emit(
    const vyre_program *program, const vyre_emit_options *options,
    vyre_writer writer, vyre_emit_report *report, vyre_status *st);

/** Whether code can have @p width invocations side by side in a vector: 1, 4, 8,
 *  16 or 32; or 0, which leaves it to the kernel.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_emit_is_valid_width(uint32_t width);

/** Every access of @p program to a buffer, in the order in which they are
 *  evaluated, for the workgroup that it declares. Scalar uniforms count.
 *  Ownership: *out lives in @p arena.  Lifetime: as long as it.
 *  Threads: safe.  Blocks: never.
 *  Errors:  VYRE_INVALID_PROGRAM if it does not validate or has no body;
 *           VYRE_INVALID_ARGUMENT for a NULL; VYRE_OUT_OF_MEMORY. On failure
 *           *out is NULL and *count 0. */
VYRE_API VYRE_NODISCARD vyre_code vyre_program_accesses(
    const vyre_program *program, vyre_arena *arena,
    const vyre_access_info **out, size_t *count, vyre_status *st);

/** Name of pass @p index and what it does, in their order; NULL beyond the last.
 *  Static storage.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_pass_at(uint32_t index);
VYRE_API const char *vyre_pass_description(uint32_t index);

VYRE_END

#endif
