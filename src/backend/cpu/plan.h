/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is needed to launch a compiled kernel, once the lowered one is gone: it is
 * kept with the object, in the cache too. */
#ifndef VYRE_BACKEND_CPU_PLAN_H
#define VYRE_BACKEND_CPU_PLAN_H

#include "vyre/memory.h"
#include "vyre/status.h"
#include "vyre/text.h"

#include "emit/llvm.h"
#include "lower/low.h"

/* Raised whenever the bytes that are kept, the text of emit/llvm, or the passes of
 * codegen.c change: the cache would go on with code that was made wrong. */
enum { CPU_ARTIFACT = 18 };

typedef struct cpu_buffer {
  uint32_t least, most; /* elements that may be bound */
  uint8_t kind;         /* vyre_memory */
  uint8_t width;
  uint8_t is_bound; /* by the caller; else it is in the scratch, or hidden */
  uint8_t is_whole; /* whole.c: all is written, if these leave nothing out */
  uint32_t within;  /* bit i: the length of buffer i, or a uniform's value */
  uint32_t limit;
} cpu_buffer;

/* As vyre__low_step; values are places in `host`. */
typedef struct cpu_step {
  uint8_t kind, loop_kind, type, reserved;
  uint32_t phase, loop;
  uint32_t first, bound;
  uint32_t mate; /* FOR: its END_FOR; END_FOR: its FOR */
  uint64_t by;
} cpu_step;

/* As vyre__low_inst; operands are places in the list before it, plus 1. */
typedef vyre__low_inst cpu_inst;

typedef struct cpu_plan {
  uint32_t workgroup[3];
  uint32_t most_groups[3];
  uint32_t width;
  uint32_t has_fuel;
  uint32_t phase_count, buffer_count, step_count, host_count, loop_count;
  uint32_t hidden; /* buffer, or VYRE_NO_INDEX */
  uint32_t hidden_words;
  uint32_t is_short; /* the code is not the full one: the kernel is too large */
  uint64_t scratch_bytes; /* of one thread */
  const cpu_buffer *buffers;
  const cpu_step *steps;
  const cpu_inst *host;
} cpu_plan;

/* Takes what it needs of @p kernel; lives in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code cpu_plan_build(const vyre__low_kernel *kernel,
                         const vyre__spmd_info *info, vyre_arena *arena,
                         cpu_plan *out, vyre_status *st);

/* Writes plan and object, and reads them: everything is looked at, and what is
 * not as it was written is refused. *object is in @p bytes, the rest in @p arena.
 * Errors: VYRE_KERNEL_COMPILE_FAILED; VYRE_OUT_OF_MEMORY. */
bool cpu_artifact_write(const cpu_plan *plan, const void *object, size_t size,
                        vyre_writer writer);
vyre_code cpu_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                            cpu_plan *out, const void **object,
                            size_t *object_size, vyre_status *st);

/* Finds buffers that are written wholly; then leaves out those that are read. */
void cpu_find_whole(const vyre__low_kernel *kernel, cpu_buffer *buffers);
void cpu_drop_read(const vyre__low_kernel *kernel, cpu_buffer *buffers);
/* Whether a launch that ends well leaves nothing in @p buffer of what it held. */
bool cpu_is_whole(const cpu_plan *plan, uint32_t buffer,
                  const vyre__spmd_launch *launch);

/* --- what the host does -----------------------------------------------------------*/

/* Runs all of plan->host: views as the kernel has them, values of loops. @p values
 * has room for host_count. */
void cpu_host_run(const cpu_plan *plan, const vyre__spmd_launch *launch,
                  uint64_t *values);

/* Whether a loop is to run with @p value; the next value, false if it does not
 * fit its type. */
bool cpu_loop_goes_on(const cpu_step *step, uint64_t value, uint64_t bound);
bool cpu_loop_advance(const cpu_step *step, uint64_t *value);

#endif
