/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a lowered kernel one instruction at a time: what emitters and backends are
 * measured by, in tests. It looks at every promise of lir.h that an instruction
 * relies on, so that a wrong pass shows here and not as a wild access there. */
#ifndef VYRE_TESTING_LIR_INTERP_H
#define VYRE_TESTING_LIR_INTERP_H

#include "lir/lir.h"

typedef struct vyre__lir_binding {
  void *data;      /* as the program has it, little endian */
  uint32_t length; /* in elements of the buffer's `unit` */
} vyre__lir_binding;

typedef struct vyre__lir_launch {
  const vyre__lir_binding
      *buffers; /* one a buffer of the kernel; those that are
                                       shared or hidden are not looked at */
  uint32_t grid[3];
  uint32_t fuel;
  uint8_t poison; /* what memory and variables hold that nobody has written */
  uint64_t most; /* instructions of the whole dispatch, against passes that make
                    endless loops; 0: any number */
  /* NULL, or told of every instruction of a phase that an invocation (x fastest)
   * of a workgroup has done: what it made; SET: what it set; IF: its condition.
   * Barriers and the end of the dispatch are not told. */
  void (*observe)(void *observer, uint32_t invocation, uint32_t at,
                  uint64_t value);
  void *observer;
  /* NULL, or called after every load of memory that may change, to change it:
   * @p bytes are those of the buffer. */
  void (*loaded)(void *changer, uint32_t buffer, uint8_t *bytes, uint64_t size);
  void *changer;
} vyre__lir_launch;

/* Runs all steps of @p kernel, which is lowered all the way and verifies;
 * workgroups and invocations in order, up to a barrier each. The first invocation
 * decides what an AGREE gives for all that come to it in the same order.
 * Errors: VYRE_INVALID_ARGUMENT for a grid or a buffer that takes indices of more
 * than 32 bits, or a buffer with fewer elements than the kernel declares;
 * VYRE_DISPATCH_FAILED (out_of_fuel); VYRE_KERNEL_COMPILE_FAILED naming the
 * instruction whose promise does not hold; VYRE_OUT_OF_MEMORY. Buffers are
 * written in any case but the last. */
vyre_code vyre__lir_interpret(const vyre__lir_kernel *kernel,
                              const vyre__lir_launch *launch,
                              vyre_allocator allocator, vyre_status *st);

#endif
