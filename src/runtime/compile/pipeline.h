/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runtime state of a pipeline: its variants, its prepared dispatches and its
 * entry in the cache. Also the steps of a compile that others use. */
#ifndef VYRE_RUNTIME_COMPILE_PIPELINE_H
#define VYRE_RUNTIME_COMPILE_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "hal/backend.h"
#include "hal/launch.h"
#include "lir/lir.h"
#include "runtime/cache/cache.h"
#include "runtime/core/work_queue.h"

typedef struct vyre__prepared vyre__prepared;

/* Prepared dispatches that a pipeline keeps, and those that it keeps for
 * batches. */
enum { VYRE__PREPARED_PER_PIPELINE = 8, VYRE__PREPARED_SPARE = 1024 };

/* Caching of bindings. After PATIENCE dispatches in a row with new bindings,
 * the pipeline caches them only once in SELDOM dispatches. */
enum { VYRE__PATIENCE = 4, VYRE__SELDOM = 32 };

/* Lock of a prepared dispatch. WANTED: it is in use, and must release its
 * device buffers at the end, because one of them was freed. */
typedef atomic_uchar vyre__prepared_state;
enum { VYRE__PREPARED_IDLE, VYRE__PREPARED_BUSY, VYRE__PREPARED_WANTED };

/* A binding of the plan, with values that every dispatch needs. */
typedef struct vyre__binding_info {
  const vyre_binding *binding;
  uint64_t static_bytes;          /* 0 unless is_static */
  uint32_t index;                 /* among the bindings */
  uint32_t buffer, input, output; /* indices, or VYRE_NO_INDEX */
  uint32_t resource;              /* among the resources, or VYRE_NO_INDEX */
  uint32_t element;               /* bytes of an element */
  uint8_t shift;   /* an element has 1 << shift bytes, or NO_SHIFT */
  uint8_t mask;    /* alignment of its scalars, minus 1 */
  uint8_t aligned; /* alignment below which the memory is copied */
  bool is_static;
  bool is_covered;   /* the grid covers the longest buffer of this kind */
  bool has_contents; /* the caller gives its first contents: an input, or a
                        persistent buffer */
  bool is_persistent;
  bool is_written; /* the kernel may write it */
} vyre__binding_info;

enum { VYRE__NO_SHIFT = 255 };

/* Returns the number of whole elements in @p bytes, mostly without a
 * division. */
static inline uint64_t vyre__elements_in(const vyre__binding_info *info,
                                         uint64_t bytes) {
  return info->shift == VYRE__NO_SHIFT ? bytes / info->element
                                       : bytes >> info->shift;
}

struct vyre__pipeline_state {
  atomic_uint references;
  /* List of variants, which this pipeline owns. It only grows, so that a
   * dispatch reads it without a lock. */
  _Atomic(vyre_pipeline *) variants;
  vyre_pipeline *next_variant;
  /* Choices of vyre_tune for sizes of dispatches (tune/apply.h); NULL: none.
   * Released while the pipeline is idle. */
  _Atomic(struct vyre__tuned_list *) tuned;
  atomic_uint tuned_generation; /* of the context, plus 1, when they were
                                   looked up; 0: never */
  pthread_mutex_t lock;         /* held to add a variant or optimised code */
  /* Tables in the pipeline's arena: one entry per binding; those with an input
   * and those with an output, in their order. */
  const vyre__binding_info *infos;
  const vyre__binding_info **inputs, **outputs;
  /* All but shared buffers, by binding number; and the persistent ones. */
  const vyre__binding_info **resources, **persistents;
  size_t resource_count, persistent_count;
  struct {
    vyre__prepared_state state; /* also busy while `run` is created */
    vyre__prepared *run;        /* NULL: not created yet */
  } runs[VYRE__PREPARED_PER_PIPELINE];
  _Atomic(vyre__prepared *) spare; /* list of prepared dispatches for batches */

  atomic_bool is_baseline; /* its code will be replaced by optimised code */
  /* Compile of that code, begun or not (optimise.c); retained, guarded by the
   * lock. NULL: not requested. */
  vyre_fence *optimise;
  bool is_replacement; /* it is that compile: not counted, cannot be faulted */
  vyre__cache_note note; /* cache result of the compile */
  vyre_arena texts;      /* texts of the note that were added later */
  /* Position in the device's table of pipelines (pipeline_table.c), guarded by
   * its lock. Variants are not in it: two pipelines could own each other's. */
  bool is_shared, is_idle;
  vyre_pipeline *next_in_bucket, *newer, *older;
  _Atomic uint64_t memory_hits;
  /* Proven bound of the loop iterations of one invocation, plus 1. 0: not
   * computed yet. */
  _Atomic uint64_t iteration_bound;
  bool has_dimensions; /* uniforms give the dimensions of a buffer */
  bool is_fresh;       /* compiled without the cache, and so are its variants */
  /* Package that the code came from, retained; NULL: it was compiled. Variants
   * come from it too. */
  struct vyre_package *package;
  uint32_t package_kernel;
  bool may_compile;    /* variants that the package lacks */
  uint64_t compile_ns; /* time of the compile */
};

/* Checks that a program has a body and is valid.
 * Errors: VYRE_INVALID_PROGRAM; those of vyre_program_validate. */
vyre_code vyre__check_body(const vyre_program *program,
                           vyre_diagnostics *diagnostics, vyre_status *st);
/* Checks that a program is valid, and that this version supports it. @p device
 * is named in messages.
 * Errors: those of vyre__check_body; VYRE_UNSUPPORTED_FEATURE. */
vyre_code vyre__check_program(const vyre_device *device,
                              const vyre_program *program,
                              vyre_diagnostics *diagnostics, vyre_status *st);
/* Lowers the program of @p pipeline for its device. *out lives in @p arena; it
 * is NULL if the backend takes programs.
 * Errors: those of vyre__lower. */
vyre_code vyre__pipeline_lower(const vyre_pipeline *pipeline, vyre_arena *arena,
                               const vyre__lir_kernel **out, vyre_status *st);

/* Returns a description of the pipeline for these arguments: a pipeline with
 * only the inputs of its compile, which it borrows. @p options may be NULL. */
vyre_pipeline vyre__pipeline_request(vyre_device *device, vyre_program *program,
                                     const vyre_compile_options *options);
/* Returns a description of @p pipeline with the optimised tier and these
 * options. */
vyre_pipeline vyre__pipeline_like(const vyre_pipeline *pipeline,
                                  const uint32_t workgroup[3],
                                  uint8_t ulp_budget);
/* Checks options that a caller passed to @p function.
 * Errors: VYRE_INVALID_ARGUMENT. */
vyre_code vyre__check_compile_options(const char *function,
                                      const vyre_compile_options *options,
                                      vyre_status *st);
/* Refuses a time limit in options that a caller passed to @p function.
 * Errors: VYRE_INVALID_ARGUMENT. */
vyre_code vyre__refuse_compile_timeout(const char *function,
                                       const vyre_compile_options *options,
                                       vyre_status *st);
/* Returns true if a compile with these options makes baseline code. */
bool vyre__wants_baseline(const vyre_device *device,
                          const vyre_compile_options *options);
/* Compiles optimised code for @p pipeline, or requests it, as @p tier says.
 * Errors: those of vyre_pipeline_compile. */
vyre_code vyre__pipeline_reach_tier(vyre_pipeline *pipeline, vyre_tier tier,
                                    vyre_status *st);
/* Creates the pipeline that @p wanted describes. @p is_fresh: without the cache
 * on disk, for its variants too. Errors: those of vyre_pipeline_compile. */
vyre_code vyre__pipeline_create(const vyre_pipeline *wanted, bool is_fresh,
                                vyre_pipeline **out, vyre_status *st);
/* Creates the pipeline that @p wanted describes from code of a package. Does not
 * validate the program. Errors: those of the backend's load. */
vyre_code vyre__pipeline_create_from(const vyre_pipeline *wanted,
                                     const vyre__code_source *code,
                                     vyre_pipeline **out, vyre_status *st);
/* Creates optimised code for an existing pipeline. Does not retain the device:
 * free it with vyre__pipeline_free. */
vyre_code vyre__pipeline_create_replacement(const vyre_pipeline *wanted,
                                            bool is_fresh, vyre_pipeline **out,
                                            vyre_status *st);
/* Compiles within options->timeout_ns, which is not 0: the program, or a variant
 * of @p parent if that is not NULL. @p out may be NULL for a variant. Other
 * arguments as for vyre_pipeline_compile, checked before.
 * Errors: VYRE_KERNEL_COMPILE_FAILED (timed_out); those of
 *         vyre_pipeline_compile. */
vyre_code vyre__compile_within(vyre_device *device, vyre_program *program,
                               vyre_pipeline *parent,
                               const vyre_compile_options *options,
                               vyre_pipeline **out, vyre_status *st);
/* Compiles like vyre_pipeline_compile, without the cache: a reference run must
 * not be compared with itself. @p options may be NULL, no other argument
 * may. */
vyre_code vyre__pipeline_compile_fresh(vyre_device *device,
                                       vyre_program *program,
                                       const vyre_compile_options *options,
                                       vyre_pipeline **out, vyre_status *st);
/* Compiles with other settings, optimised unless @p tier is baseline. The result
 * is shared like other pipelines, and ignores stored choices. */
struct vyre__settings;
vyre_code vyre__pipeline_compile_tuned(vyre_device *device,
                                       vyre_program *program,
                                       const struct vyre__settings *settings,
                                       vyre_tier tier, vyre_pipeline **out,
                                       vyre_status *st);
/* Compiles one program of a work queue like vyre_pipeline_compile, for
 * workgroups of one invocation. The program is known to be valid. */
vyre_code vyre__pipeline_compile_part(vyre_device *device,
                                      vyre_program *program,
                                      const vyre_compile_options *options,
                                      vyre_pipeline **out, vyre_status *st);
/* Compiles with the given float modes instead of the device's, without the
 * cache; for the probe. */
vyre_code vyre__pipeline_compile_as(vyre_device *device, vyre_program *program,
                                    const vyre_float_op_info *float_ops,
                                    vyre_pipeline **out, vyre_status *st);
/* Frees a pipeline without references. Does not release its device. */
void vyre__pipeline_free(vyre_pipeline *pipeline);
/* Frees the memory of a pipeline that has no code and no variants. */
void vyre__pipeline_destroy(vyre_pipeline *pipeline);
/* Frees the prepared dispatches of the pipeline. */
void vyre__pipeline_drop_runs(vyre_pipeline *pipeline);

/* --- the optimised tier (optimise.c) -------------------------------------- */

/* Compiles optimised code in the background if @p pipeline has baseline code.
 * Without memory or a thread, the baseline code stays. */
void vyre__optimise_later(vyre_pipeline *pipeline);
/* Compiles optimised code, or waits for it, if @p pipeline has baseline code.
 * Errors: those of vyre_pipeline_compile. */
vyre_code vyre__optimise_now(vyre_pipeline *pipeline, vyre_status *st);
/* Ends the compile in the background, before @p pipeline is freed. Waits if it
 * has begun. */
void vyre__optimise_end(vyre_pipeline *pipeline);
/* Returns the queue for the next such compile. */
vyre__queue **vyre__next_optimise_queue(vyre_device *device);

/* Counts the grid barriers in the source: one in a loop counts once. */
uint64_t vyre__count_grid_barriers(const vyre_program *program);

/* Resolves the workgroup size @p asked: all zero stands for @p own, a single
 * zero for 1. */
void vyre__workgroup_resolve(const uint32_t asked[3], const uint32_t own[3],
                             uint32_t out[3]);

/* Finds the variant of @p pipeline for @p desc. It counts loop iterations if
 * max_loop_iterations needs that.
 * Errors: VYRE_INVALID_ARGUMENT if the variant was not added before. */
vyre_code vyre__pipeline_variant(vyre_pipeline *pipeline,
                                 const vyre_dispatch_desc *desc,
                                 vyre_pipeline **out, vyre_status *st);
/* Compiles the variant of @p pipeline that counts loop iterations, if
 * @p max_iterations needs it and it does not exist yet. */
vyre_code vyre__pipeline_count(vyre_pipeline *pipeline, uint64_t max_iterations,
                               vyre_tier tier, vyre_status *st);

#endif
