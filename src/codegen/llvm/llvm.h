/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Translates LIR to LLVM IR, as text, in SPMD form.
 *
 * Each phase becomes a function that runs a range of workgroups, `width`
 * invocations at a time in vectors, with masks where lanes diverge. LLVM
 * reads the same text that `vyre emit --to llvm` prints. Writing it does not
 * need LLVM. */
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
  unsigned char *data; /* alignment as bound by the caller; NULL if empty */
  uint32_t length;     /* elements, of the buffer's `unit` */
  uint32_t reserved;
} vyre__spmd_view;

/* Written buffers do not overlap others; the runtime refuses that. */
typedef struct vyre__spmd_launch {
  uint32_t grid[3];
  uint32_t fuel;               /* loop iterations per invocation */
  const uint64_t *loop_values; /* values of grid loops; NULL: no such loop */
  const atomic_uint *stop; /* nonzero ends the dispatch; long loops poll it */
  vyre__spmd_view views
      []; /* the kernel's buffers in order, spill buffers included; entries of shared memory are empty */
} vyre__spmd_launch;

typedef enum vyre__spmd_result {
  VYRE__SPMD_DONE,
  VYRE__SPMD_OUT_OF_FUEL,
  VYRE__SPMD_STOPPED,
} vyre__spmd_result;

/* Runs workgroups first to first + count - 1 (count >= 1), x fastest.
 * scratch: vyre__spmd_info.scratch_bytes for exclusive use during the call,
 * aligned to 64, with arbitrary contents. */
typedef uint32_t vyre__spmd_phase(const vyre__spmd_launch *launch,
                                  uint64_t first, uint64_t count,
                                  void *scratch);

/* --- writing it ------------------------------------------------------------------ */

enum { VYRE__SPMD_MAX_WIDTH = 32 };

typedef struct vyre__emit_llvm_options {
  uint32_t
      width; /* invocations per vector: 1, 4, 8, 16 or 32; 0: chosen from the kernel and the fields below */
  uint32_t lanes;  /* 32-bit lanes of a vector register: 4, 8 or 16 */
  const char *cpu; /* processor, as LLVM names it; NULL: a typical one */
  bool is_relaxed; /* ulp_budget above 0: contraction is allowed */
  bool is_compact; /* small code: no copies for full workgroups, nothing that
                    * is unrolled completely */
  uint32_t off;    /* passes that do not run: vyre__optional_pass */
  vyre_allocator allocator; /* used during the call; zeroed: the heap */
} vyre__emit_llvm_options;

typedef struct vyre__spmd_info {
  uint32_t width;         /* width used */
  uint64_t scratch_bytes; /* maximum over all phases; 0: none needed */
} vyre__spmd_info;

/* Writes the LLVM IR of @p kernel, which must be fully lowered, to @p writer as
 * text: functions `phase0`, `phase1`, ... of type vyre__spmd_phase. Equal
 * kernels and options give equal bytes.
 * Errors: VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for an operation without
 * a translation, or of kind WRITER_REFUSED; VYRE_UNSUPPORTED_FEATURE for live
 * state that is too large. */
VYRE_NODISCARD vyre_code vyre__emit_llvm(const vyre__lir_kernel *kernel,
                                         const vyre__emit_llvm_options *options,
                                         vyre_writer writer,
                                         vyre__spmd_info *info,
                                         vyre_status *st);

#endif
