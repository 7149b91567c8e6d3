/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/pipeline.h
 *  Pipelines: programs compiled for a device. */
#ifndef VYRE_PIPELINE_H
#define VYRE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/binding.h"
#include "vyre/device.h"
#include "vyre/diagnostic.h"
#include "vyre/export.h"
#include "vyre/fence.h"
#include "vyre/program.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Program compiled for a device. Immutable and reference counted: any number
 *  of threads can dispatch it at once. Threads: safe. */
typedef struct vyre_pipeline vyre_pipeline;

/** Speed of a compile and of its code. Both tiers give the same results, bit
 *  by bit. Devices without a baseline tier compile optimised code. */
typedef enum vyre_tier {
  /* Baseline code first. The device compiles optimised code in the background
   * and switches to it, also during a dispatch. Optimised code at once if
   * ulp_budget is above 0: its results may depend on the tier. */
  VYRE_TIER_AUTO,
  /* Baseline code: a quarter of the compile time, slower code. Optimised code
   * is used if it exists: in the cache, or because another compile of the same
   * program asked for it. */
  VYRE_TIER_BASELINE,
  /* Optimised code. The compile returns when it is ready. */
  VYRE_TIER_OPTIMISED,
} vyre_tier;

/** Options that change the compiled code. Zeroed: as the program declares. */
typedef struct vyre_compile_options {
  /* Workgroup size; all 0: as the program declares. A single 0 counts as 1. */
  uint32_t workgroup[3];
  /* 0: exact results, the same on every device. Above 0, a device may round
   * less often where that is faster: "cpu" contracts a product and a sum
   * into one fma. Other devices stay exact. */
  uint8_t ulp_budget;
  /* Compile also code that counts every loop iteration, for dispatches with
   * a max_loop_iterations below the number that the kernel is proven to
   * need. Only these dispatches use it. Not a variant; ignored in
   * vyre_dispatch_desc.variant. */
  bool counts_iterations;
  /* Do not use what vyre_tune has chosen (vyre/tune.h). */
  bool ignores_tuning;
  /* Not a variant: pipelines of all tiers are the same. */
  vyre_tier tier;
  /* Longest time of the compile; 0: no limit. After it, the call fails with the
   * kind VYRE_KIND_TIMED_OUT. The compile goes on in the background, and a
   * later call finds its pipeline. Until then it uses the device and the
   * allocators of the context and the program. Not a variant. */
  uint64_t timeout_ns;
  uint64_t reserved[3]; /* must be zero */
} vyre_compile_options;

/** Resources of a pipeline. Values that the device does not report are absent,
 *  not 0. */
typedef struct vyre_pipeline_resources {
  uint32_t workgroup[3]; /* compiled workgroup size */
  /* Buffer of over(...), covered by the grid with one invocation per element
   * along x; NULL: the longest buffer that is neither uniform nor shared;
   * owned by the pipeline. */
  const char *grid_buffer;
  uint32_t shared_count;  /* number of shared buffers */
  uint64_t shared_bytes;  /* shared memory of one workgroup */
  uint32_t grid_barriers; /* grid barriers in the source */
  bool has_launches;      /* the next four fields are present */
  /* Phases between grid barriers, each one launch; a phase in a loop is
   * launched in every iteration. */
  uint32_t phase_count;
  uint32_t spill_buffer_count; /* spill buffers that the device adds */
  /* Bytes per invocation that live across grid barriers. */
  uint64_t spill_bytes;
  /* Scratch memory of a thread that runs a workgroup; may include shared
   * buffers. */
  uint64_t scratch_bytes;
  bool has_width;      /* `width` is present */
  uint32_t width;      /* vector width in invocations */
  bool has_code;       /* `code_bytes` is present */
  uint64_t code_bytes; /* memory mapped for machine code and its constants */
  /* Code of the baseline tier: the kernel is very large, or its optimised code
   * is not ready yet (vyre_tier). */
  bool is_baseline;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_pipeline_resources;

VYRE_BEGIN

/** Validates @p program and compiles it for @p device. The same program with
 *  the same options returns the same pipeline from the cache (vyre/cache.h).
 *  Ownership: on VYRE_OK the caller owns *out (vyre_pipeline_release). On
 *             failure *out is NULL. Retains the program and the device.
 *  Lifetime:  @p options (NULL: the defaults) is borrowed for the call.
 *  Threads:   safe; @p diagnostics is compatible.
 *  Blocks:    on the allocator, the driver of the device and cache files.
 *  Errors:    VYRE_INVALID_PROGRAM if it does not validate (@p diagnostics, if
 *             not NULL, receives all errors) or has no body;
 *             VYRE_INVALID_ARGUMENT for a workgroup of more than 1024
 *             invocations; VYRE_UNSUPPORTED_FEATURE for queue kernels and
 *             nesting that is too deep for the device;
 *             VYRE_KERNEL_COMPILE_FAILED (timed_out) after timeout_ns;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_pipeline_compile(vyre_device *device, vyre_program *program,
                      const vyre_compile_options *options, vyre_pipeline **out,
                      vyre_diagnostics *diagnostics, vyre_status *st);

/** Compiles like vyre_pipeline_compile, on a thread of the library. *fence
 *  signals when the compile has finished; vyre_fence_pipeline then returns the
 *  pipeline. Up to 8 compiles run in parallel, at most one per processor.
 *  Ownership: on VYRE_OK the caller owns *fence (vyre_fence_release).
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL argument; VYRE_OUT_OF_MEMORY.
 *             vyre_fence_wait reports all others. */
VYRE_API VYRE_NODISCARD vyre_code vyre_pipeline_compile_async(
    vyre_device *device, vyre_program *program,
    const vyre_compile_options *options, vyre_fence **fence, vyre_status *st);

/** Returns the pipeline of a fence from vyre_pipeline_compile_async, or NULL
 *  if the compile is still running or has failed, or if the fence is of other
 *  work.
 *  Ownership: the caller owns the result (vyre_pipeline_release).
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_pipeline *vyre_fence_pipeline(vyre_fence *fence);

/** Compiles a variant of @p pipeline for other options, which a dispatch can
 *  select. Does nothing if the variant exists.
 *  Ownership: owned by the pipeline.
 *  Threads:   safe, also during dispatches.
 *  Blocks, errors: as vyre_pipeline_compile. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_pipeline_add_variant(vyre_pipeline *pipeline,
                          const vyre_compile_options *options, vyre_status *st);

/** Adds a reference, which needs one more vyre_pipeline_release. Returns @p
 *  pipeline.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_pipeline *vyre_pipeline_retain(vyre_pipeline *pipeline);

/** Drops a reference. The last release frees the pipeline. Accepts NULL.
 *  Threads:   safe.
 *  Blocks:    while its optimised code is being compiled in the background; as
 *             vyre_device_release, if the pipeline holds the last reference to
 *             the device.
 *  Errors:    none. */
VYRE_API void vyre_pipeline_release(vyre_pipeline *pipeline);

/** Returns "<device>:<fingerprint of the program>", with ":XxYxZ" appended for
 *  another workgroup size than the program's, and ":Nulp" for an ulp budget of
 *  N. Owned by the pipeline.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_pipeline_id(const vyre_pipeline *pipeline);

/** Returns the program that was compiled. Owned by the pipeline.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_program *vyre_pipeline_program(
    const vyre_pipeline *pipeline);

/** Returns the binding plan of a dispatch. Buffers that are sized at run time
 *  have element_count 0. Owned by the pipeline.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_binding_plan *vyre_pipeline_bindings(
    const vyre_pipeline *pipeline);

/** Returns the compiled workgroup size in x, y and z. Owned by the pipeline.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const uint32_t *vyre_pipeline_workgroup(const vyre_pipeline *pipeline);

/** Fills *out with the resources of @p pipeline. For a NULL argument, zeroes
 *  *out and returns false.
 *  Ownership: the string is owned by the pipeline.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_pipeline_get_resources(const vyre_pipeline *pipeline,
                                          vyre_pipeline_resources *out);

/** Prints the compiled code of @p pipeline. The device "cpu" supports the
 *  forms "llvm" (before LLVM's passes), "llvm-optimised" and "asm", and
 *  explains its choice of width and tier as "why" or, in JSON, as "why-json".
 *  The code is generated again from the program, so this also works for a
 *  pipeline from the cache.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    on the writer, and as long as a compile.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE for an unknown form or a device that
 *             cannot print code; VYRE_INVALID_ARGUMENT for a NULL argument or
 *             a writer that fails; those of vyre_pipeline_compile. */
VYRE_API VYRE_NODISCARD vyre_code vyre_pipeline_print(vyre_pipeline *pipeline,
                                                      const char *form,
                                                      vyre_writer writer,
                                                      vyre_status *st);

VYRE_END

#endif
