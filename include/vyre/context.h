/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/context.h
 *  What devices have in common: memory, the cache of pipelines, the trace, and
 *  faults that a test injects.
 *
 *  Most programs need none: vyre_device_open(NULL, ...) takes the process's
 *  own, which is made when first needed and ends with its last device. */
#ifndef VYRE_CONTEXT_H
#define VYRE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"

/** Threads: safe. */
typedef struct vyre_context vyre_context;

/** Zeroed: as the environment says, which the process's own context always
 *  does. A set-uid process does not ask its environment: there is then neither
 *  trace nor fault. */
typedef struct vyre_context_options {
  vyre_allocator allocator;
  const char *cache_directory; /* NULL: $VYRE_CACHE_DIR, else vyre/ below
                                  $XDG_CACHE_HOME or ~/.cache; "": no files */
  uint64_t cache_bytes;   /* of files; 0: $VYRE_CACHE_BYTES, else 256 MiB */
  const char *trace_file; /* docs/observability.md; NULL: $VYRE_TRACE; "": none.
                             %p stands for the process's id */
  const char
      *faults; /* as vyre_context_inject_faults; NULL: $VYRE_FAULTS; "": none */
  const char *backend_options; /* what a backend lets be chosen, as
                                  "cpu.threads=2,cpu.width=8" (docs/cpu.md). It
                                  goes behind what $VYRE_OPTIONS says, and the
                                  last of a key counts; "": neither. What no
                                  backend has or takes lets vyre_context_create
                                  fail, whichever device is meant, with `field`
                                  "backend_options" or "VYRE_OPTIONS" */
  const char
      *llvm; /* file that "cpu" loads LLVM 19 from; NULL: $VYRE_LLVM, else where
                       systems have it; "none": nowhere, so that nothing can be
                       compiled but what the cache has */
} vyre_context_options;

/** What can be made to fail: X(enumerator, name). */
#define VYRE_FAULT_MAP(X)                \
  X(VYRE_FAULT_ALLOCATION, "allocation") \
  X(VYRE_FAULT_COMPILE, "compile")       \
  X(VYRE_FAULT_SUBMIT, "submit")         \
  X(VYRE_FAULT_UPLOAD, "upload")         \
  X(VYRE_FAULT_DOWNLOAD, "download")     \
  X(VYRE_FAULT_WAIT, "wait")             \
  X(VYRE_FAULT_DEVICE_LOST, "device_lost")

typedef enum vyre_fault {
#define VYRE_X2(name, text) name,
  VYRE_FAULT_MAP(VYRE_X2) VYRE_FAULT_COUNT
#undef VYRE_X2
} vyre_fault;

/** The trace of a context. */
typedef struct vyre_trace_info {
  const char *file;       /* where it really goes; the context's */
  uint64_t event_count;   /* so far */
  uint64_t dropped_count; /* that could not be written */
} vyre_trace_info;

VYRE_BEGIN

/** Makes a context. @p options may be NULL: the defaults.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_context_release). On failure
 *             *out is NULL. Texts are copied.
 *  Lifetime:  the allocator must outlive the context and all made from it.
 *  Threads:   safe.          Blocks: on the allocator and on files.
 *  Errors:    VYRE_INVALID_ARGUMENT for faults or options that are none, a trace
 *             file that cannot be written; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_context_create(
    const vyre_context_options *options, vyre_context **out, vyre_status *st);

/** Keeps a context: one more vyre_context_release is due. Returns it.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_context *vyre_context_retain(vyre_context *context);

/** Lets go of a context; the last one frees it, and writes the end of its
 *  trace. Devices keep theirs. NULL is fine.
 *  Threads: safe.  Blocks: on the trace file.  Errors: none. */
VYRE_API void vyre_context_release(vyre_context *context);

/** What became of the trace so far. A file that somebody is tracing to already is
 *  left alone: the trace then goes to FILE.2, FILE.3, ...
 *  Returns false, and *out zeroed, if there is none.
 *  Ownership: the text is the context's.  Threads: safe.
 *  Blocks: on the trace file.  Errors: none. */
VYRE_API bool vyre_context_get_trace_info(const vyre_context *context,
                                          vyre_trace_info *out);

/** Arms faults, for tests of what depends on vyre: "submit:3" lets the third
 *  submission from now fail, "submit:3+" that and all after, "upload:1,wait:2"
 *  two of them, "" none any more. What fails says so as if the device had:
 *  allocation VYRE_OUT_OF_MEMORY, compile VYRE_KERNEL_COMPILE_FAILED, upload and
 *  download VYRE_DEVICE_OUT_OF_MEMORY, submit and wait VYRE_DISPATCH_FAILED.
 *  device_lost counts submissions: that one fails with VYRE_DEVICE_LOST, and so
 *  does all that the device is asked from then on. The kind is injected_fault, but
 *  for allocation, which has that of memory that really ran out and says in its
 *  message that it was injected; of the bytes of a resident buffer it
 *  is VYRE_DEVICE_OUT_OF_MEMORY.
 *  Ownership: borrows all.  Threads: safe.  Blocks: never.
 *  Errors:    VYRE_INVALID_ARGUMENT if the text is none of that, or has one fault
 *             twice; faults are then as before. */
VYRE_API VYRE_NODISCARD vyre_code vyre_context_inject_faults(
    vyre_context *context, const char *faults, vyre_status *st);

/** Returns the value of option @p name of @p backend ("ref", "fallback") in
 *  @p context, which may be NULL: the process's own. Returns @p otherwise if
 *  neither backend_options nor $VYRE_OPTIONS set it, or if they set it to
 *  "auto".
 *  Ownership: borrows all.  Threads: safe.
 *  Blocks: as vyre_context_create, if @p context is NULL.  Errors: none. */
VYRE_API uint64_t vyre_context_option(vyre_context *context,
                                      const char *backend, const char *name,
                                      uint64_t otherwise);

/** "submit", "device_lost", ...; "?" for a number that is none. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_fault_name(vyre_fault fault);

VYRE_END

#endif
