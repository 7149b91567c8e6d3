/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/package.h
 *  Packages: kernels that were compiled ahead of time. An application that
 *  loads its kernels from a package needs no compiler.
 *
 *      vyre_package *package;
 *      code = vyre_package_open_file("kernels.vpk", vyre_allocator_heap(),
 *                                    &package, &st);
 *      code = vyre_pipeline_load(device, package, "saxpy", NULL, &pipeline,
 *                                &st);
 *
 *  A package holds the binary form of each program and its code for several
 *  targets: processors for "cpu", sets of features for "vulkan". A device uses
 *  the first code whose needs it meets. The results are the same bits as those
 *  of code that the device compiles itself. `vyre build` writes packages. See
 *  docs/how-to/ahead-of-time.md.
 *
 *  Open only packages that you trust like a shared library: they hold machine
 *  code. Checksums detect damage, not intent. */
#ifndef VYRE_PACKAGE_H
#define VYRE_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/context.h"
#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/hash.h"
#include "vyre/memory.h"
#include "vyre/pipeline.h"
#include "vyre/program.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Open package. Immutable and reference counted. Threads: safe. */
typedef struct vyre_package vyre_package;

/** Options of vyre_package_write. Zeroed: exact code of the declared workgroup
 *  size, for all targets. */
typedef struct vyre_package_options {
  /* Names of targets (vyre_package_target_at), separated by commas; the name of
   * a backend stands for all of its targets. NULL: all targets. */
  const char *targets;
  /* Variants to include besides the exact code; only workgroup, ulp_budget and
   * counts_iterations are read. */
  const vyre_compile_options *variants;
  size_t variant_count; /* entries of `variants` */
  uint64_t reserved[4]; /* must be zero */
} vyre_package_options;

/** One kernel of a package. */
typedef struct vyre_package_kernel {
  const char *name;         /* owned by the package */
  vyre_hash128 fingerprint; /* of the program */
  uint64_t program_bytes;   /* size of its binary form */
  size_t code_count;        /* codes of vyre_package_get_code */
  uint64_t reserved[4];     /* zero; for future fields */
} vyre_package_kernel;

/** Code of a kernel for one target. */
typedef struct vyre_package_code {
  const char *backend;    /* "cpu"; owned by the package */
  const char *target;     /* "x86-64-v3"; owned by the package */
  uint32_t workgroup[3];  /* compiled workgroup size */
  uint8_t ulp_budget;     /* 0: exact */
  bool counts_iterations; /* counts every loop iteration */
  uint32_t version;       /* version of the code; a device loads only its own */
  uint64_t bytes;         /* size of the code */
  uint64_t reserved[4];   /* zero; for future fields */
} vyre_package_code;

/** Options of vyre_pipeline_load. Zeroed: exact code of the declared workgroup
 *  size; never compiles. */
typedef struct vyre_load_options {
  vyre_compile_options compile; /* options that change the code */
  /* Compile the program if the package has no code that fits the device, also
   * for variants that are added later. */
  bool may_compile;
  uint64_t reserved[3]; /* must be zero */
} vyre_load_options;

VYRE_BEGIN

/** Returns the name of target @p index, in order of preference within a
 *  backend, or NULL after the last. *backend, if not NULL, receives the name of
 *  its backend. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_package_target_at(size_t index, const char **backend);

/** Compiles @p programs for the targets of @p options (NULL: the defaults) and
 *  writes a package. No device is opened. A target that is not
 *  named itself is left out for a kernel that it does not support; at least one
 *  of each selected backend must support it.
 *  Ownership: borrows all arguments. @p context (NULL: the default context)
 *             names the LLVM library.
 *  Threads:   safe.
 *  Blocks:    on the compiler, the allocator and the writer.
 *  Errors:    VYRE_INVALID_PROGRAM if a program does not validate;
 *             VYRE_UNSUPPORTED_FEATURE without LLVM, for a queue kernel, and
 *             for a kernel that a named target does not support;
 *             VYRE_INVALID_ARGUMENT for an unknown target, two kernels of one
 *             name, a NULL argument or a writer that fails;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_package_write(
    vyre_context *context, vyre_program *const *programs, size_t count,
    const vyre_package_options *options, vyre_writer writer, vyre_status *st);

/** Returns true if @p bytes start with the magic number of packages. Returns
 *  false for NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_package_is_package(const void *bytes, size_t size);

/** Opens a package in memory. Checks its index; programs and code are checked
 *  when they are loaded.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_package_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p bytes is borrowed until the package is freed, and must not
 *             change. Pipelines retain their package.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_ARGUMENT if the bytes are not a package, are damaged
 *             or truncated, or have another format version, and for a NULL
 *             argument; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_package_open(const void *bytes,
                                                    size_t size,
                                                    vyre_allocator allocator,
                                                    vyre_package **out,
                                                    vyre_status *st);

/** Reads the file @p path and opens it like vyre_package_open. The package owns
 *  the bytes.
 *  Ownership, threads: as vyre_package_open.
 *  Blocks:    on the allocator and the file.
 *  Errors:    as vyre_package_open; VYRE_INVALID_ARGUMENT if the file cannot be
 *             read. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_package_open_file(const char *path, vyre_allocator allocator,
                       vyre_package **out, vyre_status *st);

/** Adds a reference, which needs one more vyre_package_release. Returns @p
 *  package.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_package *vyre_package_retain(vyre_package *package);

/** Drops a reference. The last release frees the package. Accepts NULL.
 *  Threads: safe.  Blocks: on the allocator only.  Errors: none. */
VYRE_API void vyre_package_release(vyre_package *package);

/** Returns the number of kernels; 0 for NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API size_t vyre_package_kernel_count(const vyre_package *package);

/** Fills *out with kernel @p kernel. Returns false, and zeroes *out, if it does
 *  not exist.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_package_get_kernel(const vyre_package *package,
                                      size_t kernel, vyre_package_kernel *out);

/** Fills *out with code @p index of kernel @p kernel. Returns false, and zeroes
 *  *out, if it does not exist.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_package_get_code(const vyre_package *package, size_t kernel,
                                    size_t index, vyre_package_code *out);

/** Decodes the program of kernel @p name. NULL: the only kernel.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_program_release). On
 *             failure *out is NULL.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_ARGUMENT for an unknown name and for damaged bytes;
 *             those of vyre_program_read_binary. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_package_read_program(const vyre_package *package, const char *name,
                          vyre_program **out, vyre_status *st);

/** Makes a pipeline of kernel @p name (NULL: the only kernel) from the code in
 *  @p package, without a compiler. A device that runs programs, such as "ref",
 *  uses the program. Each call makes a new pipeline. Variants that are added to
 *  it come from the package too.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_pipeline_release). On
 *             failure *out is NULL. Retains the package and the device.
 *  Lifetime:  @p options (NULL: the defaults) is borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator and the driver of the device; as
 *             vyre_pipeline_compile if it compiles.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE if the package has no code that fits the
 *             device; VYRE_INVALID_ARGUMENT for an unknown name, damaged bytes
 *             and a NULL argument; those of
 *             vyre_pipeline_compile. */
VYRE_API VYRE_NODISCARD vyre_code vyre_pipeline_load(
    vyre_device *device, vyre_package *package, const char *name,
    const vyre_load_options *options, vyre_pipeline **out, vyre_status *st);

VYRE_END

#endif
