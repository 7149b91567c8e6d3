/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is needed to launch a compiled kernel, once the lowered one is gone: it is
 * kept with the object, in the cache too. */
#ifndef VYRE_BACKEND_CPU_PLAN_H
#define VYRE_BACKEND_CPU_PLAN_H

#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/writer.h"

#include "codegen/llvm/llvm.h"
#include "hal/host_plan.h"
#include "lir/lir.h"

/* Raised whenever the bytes that are kept, the text of emit/llvm, or the passes of
 * llvm_compile.c change: the cache would go on with code that was made wrong. */
enum { CPU_ARTIFACT = 24 };

/* full_write.c: what a launch leaves of what a buffer held. */
typedef struct cpu_whole {
  uint32_t is_whole; /* all is written, if these leave nothing out */
  uint32_t within;   /* bit i: the length of buffer i, or a uniform's value */
  uint32_t limit;
} cpu_whole;

typedef struct cpu_plan {
  VYRE__HOST_PLAN;
  uint32_t width;
  uint32_t is_short; /* the code is not the full one: the kernel is too large */
  uint64_t scratch_bytes; /* of one thread */
  uint32_t whole_count;   /* one a buffer */
  const cpu_whole *whole;
} cpu_plan;

/* Takes what it needs of @p kernel; lives in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code cpu_plan_build(const vyre__lir_kernel *kernel,
                         const vyre__spmd_info *info, vyre_arena *arena,
                         cpu_plan *out, vyre_status *st);

/* Plan and object, as artifact.h has it. *object is in @p bytes, the rest in
 * @p arena. Errors: VYRE_KERNEL_COMPILE_FAILED; VYRE_OUT_OF_MEMORY. */
bool cpu_artifact_write(const cpu_plan *plan, const void *object, size_t size,
                        vyre_writer writer);
vyre_code cpu_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                            cpu_plan *out, const void **object,
                            size_t *object_size, vyre_status *st);

/* Finds buffers that are written wholly; then leaves out those that are read. */
void cpu_find_whole(const vyre__lir_kernel *kernel, cpu_whole *whole);
void cpu_drop_read(const vyre__lir_kernel *kernel, cpu_whole *whole);
/* Whether a launch that ends well leaves nothing in @p buffer of what it held. */
bool cpu_is_whole(const cpu_plan *plan, uint32_t buffer,
                  const vyre__spmd_launch *launch);

#endif
