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

/** A program compiled for a device. Immutable: it may be dispatched from many
 *  threads at once. Threads: safe. */
typedef struct vyre_pipeline vyre_pipeline;

/** What changes the code. Zeroed: as the program says. */
typedef struct vyre_compile_options {
  uint32_t workgroup[3]; /* instead of the program's size; all 0: the program's.
                            An axis of 0 beside others counts as 1 */
  uint8_t
      ulp_budget; /* 0: the bits that every device gives. Above, a device may
                         round less often where that is faster: "cpu" makes one
                         fma of a product and a sum, whatever the number; others
                         stay exact */
  bool
      is_baseline; /* code in a fraction of the time, and slower; the device makes
                    the full code in the background and goes over to it. Devices
                    that have no such code compile as always. The same pipeline
                    either way: it is no other variant, and has the same bits */
  bool counts_iterations; /* compile, besides the code as always, code that
                             counts every loop iteration, for dispatches whose
                             max_iterations is below the number that the kernel
                             is proven to need. Such a dispatch uses this code
                             by itself, and all others the code as always. The
                             same pipeline either way; never quick code. Not an
                             option of `variant`, where it is ignored */
} vyre_compile_options;

/** What a pipeline needs to run. What its device does not have is absent, never
 *  0. */
typedef struct vyre_pipeline_resources {
  uint32_t workgroup[3];   /* as compiled */
  const char *grid_buffer; /* the buffer of over(...), whose elements the grid
                             covers, one an invocation on x; NULL: the longest
                             that is neither uniform nor shared. The pipeline's */
  uint32_t shared_count;   /* shared buffers of the kernel, and */
  uint64_t shared_bytes;   /* what a workgroup has of them */
  uint32_t grid_barriers;  /* as they stand in the text */
  bool has_launches;       /* the device tells what follows */
  uint32_t phase_count; /* launches of a dispatch; one in a loop around a grid
                             barrier is made in each round */
  uint32_t spill_buffer_count; /* buffers that the device adds, and */
  uint64_t spill_bytes;        /* what an invocation keeps there across grid
                             barriers */
  uint64_t scratch_bytes;      /* that who runs a workgroup has besides; shared
                             buffers may be among them */
  bool has_width;
  uint32_t width; /* invocations side by side in a vector */
  bool has_code;
  uint64_t code_bytes; /* mapped for machine code and its constants */
  bool
      is_baseline; /* it was made the short way, and is slower: the kernel is very
                    large, or is_quick was asked for and the full code is not
                    there yet */
} vyre_pipeline_resources;

VYRE_BEGIN

/** Validates @p program and compiles it for @p device. What the cache has is not
 *  compiled again: the same program with the same options gives the same pipeline
 *  as before (vyre/cache.h).
 *  Ownership: on VYRE_OK the caller owns *out (vyre_pipeline_release). On
 *             failure *out is NULL. Retains the program and the device.
 *  Lifetime:  @p options (NULL: the defaults) is borrowed for the call.
 *  Threads:   safe; @p diagnostics is compatible.
 *  Blocks:    on the allocator, the device's driver and files of the cache.
 *  Errors:    VYRE_INVALID_PROGRAM if it does not validate (@p diagnostics, if
 *             not NULL, has all findings) or has no body; VYRE_INVALID_ARGUMENT
 *             for a workgroup above 1024 invocations; VYRE_UNSUPPORTED_FEATURE
 *             for queue kernels, nesting too deep for the device, or persistent
 *             buffers (bind a resident buffer instead: a pipeline keeps nothing
 *             between dispatches); VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_pipeline_compile(vyre_device *device, vyre_program *program,
                      const vyre_compile_options *options, vyre_pipeline **out,
                      vyre_diagnostics *diagnostics, vyre_status *st);

/** As vyre_pipeline_compile, on a thread of the library: *fence tells when and
 *  how it ended; vyre_fence_pipeline then has the pipeline. Several compile at the
 *  same time, on as many threads as there are processors, up to 8.
 *  Ownership: on VYRE_OK the caller owns *fence (vyre_fence_release).
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL; VYRE_OUT_OF_MEMORY. All others
 *             come from vyre_fence_wait. */
VYRE_API VYRE_NODISCARD vyre_code vyre_pipeline_compile_async(
    vyre_device *device, vyre_program *program,
    const vyre_compile_options *options, vyre_fence **fence, vyre_status *st);

/** The pipeline that a fence of vyre_pipeline_compile_async made; NULL if it is
 *  not over, failed, or the fence is of other work.
 *  Ownership: the caller's: retained.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_pipeline *vyre_fence_pipeline(vyre_fence *fence);

/** Compiles a variant of @p pipeline for other options, so that a dispatch may
 *  ask for it. What is there already is not compiled again.
 *  Ownership: the pipeline's.  Threads: safe, also with dispatches.
 *  Blocks, errors: as vyre_pipeline_compile. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_pipeline_add_variant(vyre_pipeline *pipeline,
                          const vyre_compile_options *options, vyre_status *st);

/** Keeps a pipeline: one more vyre_pipeline_release is due. Returns it.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_pipeline *vyre_pipeline_retain(vyre_pipeline *pipeline);

/** Lets go of a pipeline; the last one frees it. NULL is fine.
 *  Threads: safe.  Blocks: if it is the last that holds the device, as
 *  vyre_device_release.  Errors: none. */
VYRE_API void vyre_pipeline_release(vyre_pipeline *pipeline);

/** "<device>:<fingerprint of the program>", and ":XxYxZ" if it was compiled for
 *  another workgroup than the program's own, and ":Nulp" if for a budget of N;
 *  terminated. The pipeline's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_pipeline_id(const vyre_pipeline *pipeline);

/** The program that was compiled. The pipeline's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_program *vyre_pipeline_program(
    const vyre_pipeline *pipeline);

/** What a dispatch binds, and in which order. What is sized at run time has
 *  element_count 0. The pipeline's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_binding_plan *vyre_pipeline_bindings(
    const vyre_pipeline *pipeline);

/** The workgroup size that was compiled: three numbers, the pipeline's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const uint32_t *vyre_pipeline_workgroup(const vyre_pipeline *pipeline);

/** What @p pipeline needs to run. False, and *out zeroed, for a NULL.
 *  Ownership: fills *out; the text is the pipeline's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_pipeline_get_resources(const vyre_pipeline *pipeline,
                                          vyre_pipeline_resources *out);

/** Writes the code that @p pipeline became, for people: "cpu" has the forms
 *  "llvm" (as it is handed to LLVM), "llvm-optimised" and "asm". Made anew from
 *  the program, so that a pipeline of the cache has it too.
 *  Ownership: borrows all for the call.  Threads: safe.
 *  Blocks:    on the writer, and for as long as a compile takes.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE for a form or a device that has none;
 *             VYRE_INVALID_ARGUMENT for a NULL or a writer that refuses; those
 *             of vyre_pipeline_compile. */
VYRE_API VYRE_NODISCARD vyre_code vyre_pipeline_print(vyre_pipeline *pipeline,
                                                      const char *form,
                                                      vyre_writer writer,
                                                      vyre_status *st);

VYRE_END

#endif
