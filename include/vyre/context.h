/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/context.h
 *  Contexts: state that devices share, namely the allocator, the pipeline
 *  cache, the trace and injected faults.
 *
 *  Most programs need no context of their own. vyre_device_open(NULL, ...)
 *  uses the default context of the process, which is created on first use and
 *  freed with its last device. */
#ifndef VYRE_CONTEXT_H
#define VYRE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"

/** State shared by devices. Reference counted. Threads: safe. */
typedef struct vyre_context vyre_context;

/** Options of vyre_context_create. A zeroed field takes its value from the
 *  environment; the default context takes all values from there. A set-uid
 *  process ignores the environment: no trace and no faults then. */
typedef struct vyre_context_options {
  vyre_allocator allocator; /* host memory of the context and its devices */
  /* NULL: $VYRE_CACHE_DIR, else vyre/ in $XDG_CACHE_HOME or ~/.cache; "": no
   * disk cache. */
  const char *cache_directory;
  /* Size limit of the disk cache; 0: $VYRE_CACHE_BYTES, else 256 MiB. */
  uint64_t cache_bytes;
  /* Trace to write (docs/how-to/trace-with-perfetto.md); %p stands for the process id;
   * NULL: $VYRE_TRACE; "": no trace. */
  const char *trace_file;
  /* Faults to inject, as in vyre_context_inject_faults; NULL: $VYRE_FAULTS;
   * "": no faults. */
  const char *faults;
  /* Backend options (vyre_device_option), as "cpu.threads=2,cpu.width=8".
   * They are appended to $VYRE_OPTIONS; the last value of a key wins. "":
   * ignore $VYRE_OPTIONS too. vyre_context_create fails if an option is
   * unknown or its value is invalid, with `field` "backend_options" or
   * "VYRE_OPTIONS". */
  const char *backend_options;
  /* Shared objects with backends (vyre/backend.h), files or folders separated
   * by colons. In a folder, all files *.so are loaded. NULL:
   * $VYRE_BACKEND_PATH; "": none. A file that is refused does not fail
   * vyre_context_create: vyre_backend_info_at has the reason. */
  const char *backend_path;
  /* Tables to register (vyre_backend_register), up to a NULL; NULL: none. With
   * these, backend_options can name their options. */
  const struct vyre_backend *const *backends;
  uint64_t reserved[3]; /* must be zero */
} vyre_context_options;

/** Operations that fault injection can make fail: X(enumerator, name). */
#define VYRE_FAULT_MAP(X)                \
  X(VYRE_FAULT_ALLOCATION, "allocation") \
  X(VYRE_FAULT_COMPILE, "compile")       \
  X(VYRE_FAULT_SUBMIT, "submit")         \
  X(VYRE_FAULT_UPLOAD, "upload")         \
  X(VYRE_FAULT_DOWNLOAD, "download")     \
  X(VYRE_FAULT_WAIT, "wait")             \
  X(VYRE_FAULT_DEVICE_LOST, "device_lost")

/** Operation that fault injection can make fail. */
typedef enum vyre_fault {
#define VYRE_X2(name, text) name,
  VYRE_FAULT_MAP(VYRE_X2) VYRE_FAULT_COUNT
#undef VYRE_X2
} vyre_fault;

/** State of a trace. */
typedef struct vyre_trace_info {
  /* File that the trace is written to; owned by the context. */
  const char *file;
  uint64_t event_count;   /* events so far */
  uint64_t dropped_count; /* events that could not be written */
  uint64_t reserved[4];   /* zero; for future fields */
} vyre_trace_info;

VYRE_BEGIN

/** Creates a context. @p options may be NULL.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_context_release). On
 *             failure *out is NULL. Strings are copied.
 *  Lifetime:  the allocator must outlive the context and all objects made from
 *             it.
 *  Threads:   safe.
 *  Blocks:    on the allocator and on files.
 *  Errors:    VYRE_INVALID_ARGUMENT for invalid faults or options, or a trace
 *             file that cannot be written; those of vyre_backend_register;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_context_create(
    const vyre_context_options *options, vyre_context **out, vyre_status *st);

/** Adds a reference, which needs one more vyre_context_release. Returns @p
 *  context.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_context *vyre_context_retain(vyre_context *context);

/** Drops a reference. The last release frees the context and completes its
 *  trace. Devices hold a reference to their context. Accepts NULL.
 *  Threads:   safe.
 *  Blocks:    on the trace file.
 *  Errors:    none. */
VYRE_API void vyre_context_release(vyre_context *context);

/** Fills *out with the state of the trace. If another process already writes
 *  to the requested file, the trace goes to FILE.2, FILE.3 and so on. Without
 *  a trace, zeroes *out and returns false.
 *  Ownership: the string is owned by the context.
 *  Threads:   safe.
 *  Blocks:    on the trace file.
 *  Errors:    none. */
VYRE_API bool vyre_context_get_trace_info(const vyre_context *context,
                                          vyre_trace_info *out);

/** Makes later operations of @p context fail, for tests of error handling. @p
 *  faults is a list such as "upload:1,wait:2". "submit:3" makes the third
 *  submission from now fail; "submit:3+" makes that one and all later ones
 *  fail; "" disarms all faults.
 *
 *  A fault reports the error that a real failure would: allocation
 *  VYRE_OUT_OF_MEMORY (VYRE_DEVICE_OUT_OF_MEMORY for the memory of a device
 *  buffer), compile VYRE_KERNEL_COMPILE_FAILED, upload and download
 *  VYRE_DEVICE_OUT_OF_MEMORY, submit and wait VYRE_DISPATCH_FAILED.
 *  device_lost counts submissions: that submission and all later operations on
 *  the device fail with VYRE_DEVICE_LOST. The kind is injected_fault.
 *  Allocations keep their usual kind and mention the injection in the message.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT if @p faults cannot be parsed or names a
 *             fault twice; the armed faults are then unchanged. */
VYRE_API VYRE_NODISCARD vyre_code vyre_context_inject_faults(
    vyre_context *context, const char *faults, vyre_status *st);

/** Returns the value of option @p name of @p backend ("ref", "fallback") in @p
 *  context, which may be NULL for the default context. Returns @p otherwise if
 *  neither backend_options nor $VYRE_OPTIONS set the option, or if they set it
 *  to "auto".
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    as vyre_context_create, if @p context is NULL.
 *  Errors:    none. */
VYRE_API uint64_t vyre_context_option(vyre_context *context,
                                      const char *backend, const char *name,
                                      uint64_t otherwise);

/** Returns the name of a fault ("submit"), or "?" for an unknown value. Static
 *  storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_fault_name(vyre_fault fault);

VYRE_END

#endif
