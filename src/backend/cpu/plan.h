/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Launch data of a compiled kernel. The artifact holds it with the object file,
 * because the LIR does not exist any more when the kernel is launched. */
#ifndef VYRE_BACKEND_CPU_PLAN_H
#define VYRE_BACKEND_CPU_PLAN_H

#include "vyre/memory.h"
#include "vyre/status.h"

#include "codegen/llvm/llvm.h"
#include "hal/host_plan.h"
#include "lir/lir.h"

/* Version of cache entries. Raise it whenever the saved bytes, the LLVM IR of
 * codegen/llvm or the passes of llvm_compile.c change; otherwise old entries
 * would still be used. */
enum { CPU_ARTIFACT = 29 };

enum { CPU_DIGITS = 6 };

/* Variable in the index of a store, with all values between its limits,
 * independently of the other variables. */
typedef struct cpu_digit {
  uint32_t factor; /* the variable counts this many elements, times ... */
  uint32_t by;     /* bit i: the uniform with buffer i */
  uint32_t groups; /* 1 + axis: it has as many values as there are workgroups
                      on this axis, times ...; 0: only limits apply */
  uint32_t size;   /* invocations of a workgroup, or 1 */
  uint32_t within; /* bit i: limited by the length of buffer i, or by its value
                      if it is a uniform */
  uint32_t limit;  /* limited by this constant; UINT32_MAX: no limit */
  uint32_t
      less_within; /* bit i: limited by such a number - less, modulo 2^32 */
  uint32_t less;
  uint32_t low; /* its smallest value */
} cpu_digit;

/* The elements of a buffer that a launch overwrites. It need not clear them
 * first. Found by full_write.c. */
typedef struct cpu_full_write {
  uint32_t is_partial; /* the elements that the digits reach are overwritten */
  uint32_t is_full;    /* ... which may be all of them */
  uint32_t max_length; /* it can be overwritten up to this length */
  uint32_t digit_count;
  cpu_digit digits[CPU_DIGITS];
} cpu_full_write;

/* Numbers of a plan that are not part of the host plan, as an artifact stores
 * them. */
typedef struct cpu_plan_numbers {
  uint64_t scratch_bytes; /* per thread */
  uint32_t spmd;          /* VYRE__SPMD_ABI */
  uint32_t width;
  uint32_t is_baseline; /* the kernel is too large for the optimised tier */
  uint32_t is_replaced; /* baseline code that optimised code replaces later */
} cpu_plan_numbers;

typedef struct cpu_plan {
  VYRE__HOST_PLAN;
  cpu_plan_numbers numbers;
  uint32_t full_write_count; /* equals buffer_count */
  const cpu_full_write *full_writes;
} cpu_plan;

/* Copies the launch data of @p kernel into @p arena.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code cpu_plan_build(const vyre__lir_kernel *kernel,
                         const vyre__spmd_info *info, vyre_arena *arena,
                         cpu_plan *out, vyre_status *st);

/* Write and read a plan with its object file, in the format of artifact.h.
 * *object points into @p bytes; everything else is copied to @p arena.
 * Errors: VYRE_KERNEL_COMPILE_FAILED for invalid bytes; VYRE_OUT_OF_MEMORY. */
void cpu_artifact_write(cpu_plan *plan, const void *object, size_t size,
                        vyre__bytes *to);
vyre_code cpu_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                            cpu_plan *out, const void **object,
                            size_t *object_size, vyre_status *st);

/* The elements that a launch overwrites: runs of elements that begin at
 * base + k[0] * strides[0] + k[1] * strides[1] + ..., for all k[i] < counts[i].
 * With k[0] counted first, their positions ascend and runs do not overlap. Runs
 * may exceed the buffer. */
typedef struct cpu_coverage {
  uint64_t base, run;
  uint32_t outer_count;
  uint64_t strides[CPU_DIGITS], counts[CPU_DIGITS];
} cpu_coverage;

/* Finds the elements that a kernel overwrites. */
void cpu_find_full_writes(const vyre__lir_kernel *kernel,
                          cpu_full_write *full_writes);
/* Resets is_full and is_partial of buffers that the kernel also reads or
 * applies atomics to: their memory must be cleared before a launch. */
void cpu_unmark_read_buffers(const vyre__lir_kernel *kernel,
                             cpu_full_write *full_writes);
/* Finds elements of @p buffer that @p launch overwrites when it succeeds.
 * Returns false if none are known. */
bool cpu_find_coverage(const cpu_plan *plan, uint32_t buffer,
                       const vyre__spmd_launch *launch, cpu_coverage *out);
/* Returns true if @p launch, when it succeeds, overwrites all of @p buffer. */
bool cpu_is_fully_written(const cpu_plan *plan, uint32_t buffer,
                          const vyre__spmd_launch *launch);

#endif
