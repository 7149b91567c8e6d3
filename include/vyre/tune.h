/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/tune.h
 *  Tuning: measures a kernel with other workgroup sizes and backend settings,
 *  and remembers the fastest.
 *
 *      code = vyre_tune(device, program, &desc, NULL, &tuning, &st);
 *      ...
 *      code = vyre_pipeline_compile(device, program, NULL, &pipeline, ...);
 *
 *  The choice is stored in the cache directory of the context, for the program,
 *  the device with its driver and options, and the size of the dispatch. Later
 *  compiles of the program on that device find it, and dispatches of that size
 *  use it. Settings never change a result. See docs/how-to/tune-a-kernel.md. */
#ifndef VYRE_TUNE_H
#define VYRE_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/export.h"
#include "vyre/hash.h"
#include "vyre/pipeline.h"
#include "vyre/program.h"
#include "vyre/status.h"

/** Times of a kernel with several settings. */
typedef struct vyre_tuning vyre_tuning;

/** Options of vyre_tune. Zeroed: five seconds, and the choice is stored. */
typedef struct vyre_tune_options {
  /* Time for compiling and measuring; settings that are left are not tried, and
   * a first run that takes longer is stopped. 0: five seconds. */
  uint64_t max_ns;
  bool is_trial;        /* does not store the choice */
  uint64_t reserved[6]; /* zero; for future fields */
} vyre_tune_options;

/** Outcomes of one variant: X(enumerator, name). */
#define VYRE_TUNE_OUTCOME_MAP(X)                                              \
  X(VYRE_TUNE_MEASURED, "measured")   /* `time_ns` is its median */           \
  X(VYRE_TUNE_HOPELESS, "hopeless")   /* stopped, because it is far slower */ \
  X(VYRE_TUNE_FAILED, "failed")       /* it does not compile or run: `why` */ \
  X(VYRE_TUNE_NOT_TRIED, "not_tried") /* no time was left */

/** Outcome of one variant. */
typedef enum vyre_tune_outcome {
#define VYRE_X2(name, text) name,
  VYRE_TUNE_OUTCOME_MAP(VYRE_X2) VYRE_TUNE_OUTCOME_COUNT
#undef VYRE_X2
} vyre_tune_outcome;

/** A variant: settings with their time. The first one is "as compiled". */
typedef struct vyre_tune_variant {
  const char *settings; /* "workgroup 128, width 8"; owned by the tuning */
  vyre_tune_outcome outcome;
  bool is_choice;
  bool has_outputs;     /* `outputs` is present */
  uint32_t samples;     /* measured dispatches */
  uint64_t time_ns;     /* their median; 0: none */
  vyre_hash128 outputs; /* hash of all outputs */
  const char *why; /* why it failed; "" if it did not; owned by the tuning */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_tune_variant;

/** A choice that a pipeline uses. */
typedef struct vyre_tuned_choice {
  char settings[96];
  /* Bytes that the dispatch bound: at least min_bytes and at most max_bytes. */
  uint64_t min_bytes, max_bytes;
  bool has_grid;        /* for dispatches with a given grid */
  uint64_t time_ns;     /* measured when it was chosen */
  uint64_t default_ns;  /* as compiled; 0: not known */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_tuned_choice;

VYRE_BEGIN

/** Returns the name of an outcome, or "?" for an unknown value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_tune_outcome_name(vyre_tune_outcome outcome);

/** Measures @p program on @p device with the data and the grid of @p desc, and
 *  stores the fastest settings. The dispatch runs many times, with outputs of
 *  the library: the memory of @p desc is only read. The results of all variants
 *  are compared.
 *
 *  The workgroup size is a setting only if the results are proven not to depend
 *  on it (vyre_tuning_fixed_workgroup). Settings that the context has fixed, as
 *  with "cpu.width=8", are not changed.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_tuning_release). On failure
 *             *out is NULL. Borrows the other arguments.
 *  Threads:   safe. Other work on the device disturbs the times.
 *  Blocks:    while it compiles and measures; on files.
 *  Errors:    VYRE_DISPATCH_FAILED (timed_out) if one run takes longer than
 *             max_ns; VYRE_INVALID_ARGUMENT if @p desc binds device buffers or
 *             resources, or selects a variant, checks or output buffers;
 *             VYRE_DISPATCH_FAILED if two variants give
 *             different results: the kernel depends on the order of its
 *             invocations, and nothing is stored; VYRE_UNKNOWN if the choice
 *             cannot be stored; those of vyre_pipeline_compile and
 *             vyre_dispatch for the program as compiled. */
VYRE_API VYRE_NODISCARD vyre_code vyre_tune(vyre_device *device,
                                            vyre_program *program,
                                            const vyre_dispatch_desc *desc,
                                            const vyre_tune_options *options,
                                            vyre_tuning **out, vyre_status *st);

/** Frees a tuning. Accepts NULL.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_tuning_release(vyre_tuning *tuning);

/** Fills *out with variant @p index, in the order in which they were tried.
 *  Returns false past the last one.
 *  Ownership: fills *out; its texts are owned by the tuning.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_tuning_variant_at(const vyre_tuning *tuning, size_t index,
                                     vyre_tune_variant *out);

/** Returns the reason why the workgroup size was not changed, or NULL if it
 *  was. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_tuning_fixed_workgroup(const vyre_tuning *tuning);

/** Returns true if the choice was stored: it was asked for, and the cache is
 *  on.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_tuning_is_stored(const vyre_tuning *tuning);

/** Forgets the choices for @p program on @p device, whatever its driver and
 *  options. Sets *count, which may be NULL, to the number of times that were
 *  stored. Pipelines that exist keep them.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    on files.
 *  Errors:    VYRE_UNKNOWN if the file cannot be written. */
VYRE_API VYRE_NODISCARD vyre_code vyre_tune_forget(vyre_device *device,
                                                   vyre_program *program,
                                                   uint64_t *count,
                                                   vyre_status *st);

/** Fills *out with a choice that dispatches of @p pipeline use. Returns false
 *  past the last one.
 *  Ownership: fills *out.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_pipeline_tuned_at(const vyre_pipeline *pipeline,
                                     size_t index, vyre_tuned_choice *out);

VYRE_END

#endif
