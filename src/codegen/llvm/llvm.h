/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A lowered kernel as LLVM IR, in text, for processors: SPMD.
 *
 * One function a phase. It runs a range of workgroups, `width` invocations at a
 * time in vectors, with masks where they part. The text is what LLVM reads and
 * what `vyre emit --to llvm` shows; nothing of LLVM is needed to write it. */
#ifndef VYRE_CODEGEN_LLVM_LLVM_H
#define VYRE_CODEGEN_LLVM_LLVM_H

#include <stdatomic.h>

#include "vyre/memory.h"
#include "vyre/writer.h"

#include "lir/lir.h"

/* --- what compiled code is called with ------------------------------------------
 *
 * Offsets are part of the emitted text: VYRE__SPMD_ABI is raised with them. */

enum { VYRE__SPMD_ABI = 1 };

typedef struct vyre__spmd_view {
  unsigned char *data; /* as unaligned as the caller's; NULL without bytes */
  uint32_t length;     /* elements, of the buffer's `unit` */
  uint32_t reserved;
} vyre__spmd_view;

/* Buffers that are written overlap no other: the driver refuses that. */
typedef struct vyre__spmd_launch {
  uint32_t grid[3];
  uint32_t fuel;               /* rounds of an invocation */
  const uint64_t *loop_values; /* of grid loops; NULL without */
  const atomic_uint
      *stop; /* not 0: the dispatch is to end. Loops that may be long
                              look at it now and then */
  vyre__spmd_view
      views[]; /* the kernel's buffers in its order, hidden ones too;
                              empty ones for shared memory */
} vyre__spmd_launch;

typedef enum vyre__spmd_result {
  VYRE__SPMD_DONE,
  VYRE__SPMD_OUT_OF_FUEL,
  VYRE__SPMD_STOPPED,
} vyre__spmd_result;

/* Runs workgroups first to first + count - 1, x fastest, count at least 1.
 * scratch: vyre__spmd_info.scratch_bytes that nobody else uses for the time of
 * the call, aligned to 64; contents do not matter. */
typedef uint32_t vyre__spmd_phase(const vyre__spmd_launch *launch,
                                  uint64_t first, uint64_t count,
                                  void *scratch);

/* --- writing it ------------------------------------------------------------------ */

enum { VYRE__SPMD_MAX_WIDTH = 32 };

typedef struct vyre__emit_llvm_options {
  uint32_t width; /* invocations a vector: 1, 4, 8, 16 or 32; 0: chosen for the
                      kernel from the rest */
  uint32_t
      lanes; /* 32-bit lanes of a vector register of the machine: 4, 8 or 16 */
  bool is_relaxed;          /* ulp_budget above 0: contraction is permitted */
  vyre_allocator allocator; /* for the time of the call; zeroed: the heap */
} vyre__emit_llvm_options;

typedef struct vyre__spmd_info {
  uint32_t width;         /* that was taken */
  uint64_t scratch_bytes; /* the most of all phases; 0: none needed */
} vyre__spmd_info;

/* Writes @p kernel, which all passes have seen, to @p writer: functions `phase0`,
 * `phase1`, ... of type vyre__spmd_phase. Same kernel and options, same bytes.
 * Errors: VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT if an operation is left that
 * has no spelling; VYRE_UNSUPPORTED_FEATURE for live state that is too large;
 * VYRE_KIND_WRITER_REFUSED if the writer refused. */
VYRE_NODISCARD vyre_code vyre__emit_llvm(const vyre__lir_kernel *kernel,
                                         const vyre__emit_llvm_options *options,
                                         vyre_writer writer,
                                         vyre__spmd_info *info,
                                         vyre_status *st);

#endif
