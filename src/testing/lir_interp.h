/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interprets a LIR kernel one instruction at a time. Tests compare generated
 * code and backends with it. It checks every guarantee of lir.h that an
 * instruction relies on, so that a faulty pass is found here and not by an
 * invalid access of compiled code. */
#ifndef VYRE_TESTING_LIR_INTERP_H
#define VYRE_TESTING_LIR_INTERP_H

#include "lir/lir.h"

typedef struct vyre__lir_binding {
  void *data;      /* as in the program, little endian */
  uint32_t length; /* in elements of the buffer's `unit` */
} vyre__lir_binding;

struct vyre__interp;

typedef struct vyre__lir_launch {
  /* An entry for each buffer of the kernel. Entries of shared buffers and of
   * the spill buffer are not read. */
  const vyre__lir_binding *buffers;
  uint32_t grid[3];
  uint32_t fuel;
  uint8_t poison; /* initial value of the bytes of memory and variables */
  /* Instructions of the dispatch, as a guard against endless loops; 0: no
   * limit. */
  uint64_t max_instructions;
  /* NULL, or called after each instruction of a phase. @p invocation: its
   * number in the workgroup, x fastest. @p value: the result; for SET the value
   * stored, for IF the condition. Not called for barriers and out_of_fuel. */
  void (*observe)(void *observer, uint32_t invocation, uint32_t at,
                  uint64_t value);
  void *observer;
  /* NULL, or called after each load of memory that may change, in order to
   * change it. @p bytes: contents of the buffer. */
  void (*loaded)(void *changer, uint32_t buffer, uint8_t *bytes, uint64_t size);
  void *changer;
  /* NULL, or runs a phase instead of the loop over invocations;
   * schedule_interp.h has such a function. */
  vyre_code (*run_phase)(struct vyre__interp *m, uint32_t phase);
  void *runner;
} vyre__lir_launch;

/* Computes the size of the spill buffer in u32 words for a dispatch of @p
 * invocations; 0 without a spill buffer. Returns false if it would be too large
 * to index. */
static inline bool vyre__lir_spill_words(const vyre__lir_kernel *kernel,
                                         uint64_t invocations,
                                         uint64_t *words) {
  *words = 0;
  if (kernel->spill_buffer == VYRE_NO_INDEX) return true;
  if (invocations > vyre__lir_max_invocations(kernel)) return false;
  *words = invocations * kernel->spill_words;
  return true;
}

/* Runs all steps of @p kernel, which has passed all lowering passes and the
 * verifier. Workgroups and invocations run in order, each invocation up to the
 * next barrier. The first invocation decides the result of an AGREE for all
 * invocations that reach it in the same order. Buffers are written in any case
 * but VYRE_OUT_OF_MEMORY.
 * Errors: VYRE_INVALID_ARGUMENT for a grid or a buffer that needs indices of
 * more than 32 bits, or a buffer with fewer elements than the kernel declares;
 * VYRE_DISPATCH_FAILED (out_of_fuel); VYRE_KERNEL_COMPILE_FAILED with the
 * instruction that breaks a guarantee; VYRE_OUT_OF_MEMORY. */
vyre_code vyre__lir_interpret(const vyre__lir_kernel *kernel,
                              const vyre__lir_launch *launch,
                              vyre_allocator allocator, vyre_status *st);

#endif
