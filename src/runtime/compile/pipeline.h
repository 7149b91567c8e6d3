/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runtime state of a pipeline: its variants, its prepared dispatches and its
 * entry in the cache. Also the compile functions that are not public. */
#ifndef VYRE_RUNTIME_COMPILE_PIPELINE_H
#define VYRE_RUNTIME_COMPILE_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "hal/launch.h"
#include "runtime/cache/cache.h"

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
  uint8_t shift, mask; /* an element has 1 << shift = mask + 1 bytes */
  uint8_t aligned;     /* alignment below which the memory is copied */
  bool is_static;
  bool is_covered; /* the grid covers the longest buffer of this kind */
} vyre__binding_info;

struct vyre__pipeline_state {
  atomic_uint references;
  /* List of variants, which this pipeline owns. It only grows, so that a
   * dispatch reads it without a lock. */
  _Atomic(vyre_pipeline *) variants;
  vyre_pipeline *next_variant;
  pthread_mutex_t lock; /* held to add a variant */
  /* Tables in the pipeline's arena: one entry per binding; those with an input
   * and those with an output, in their order. */
  const vyre__binding_info *ports;
  const vyre__binding_info **inputs, **outputs;
  struct {
    vyre__prepared_state state; /* also busy while `run` is created */
    vyre__prepared *run;        /* NULL: not created yet */
  } runs[VYRE__PREPARED_PER_PIPELINE];
  _Atomic(vyre__prepared *) spare; /* list of prepared dispatches for batches */

  /* True: it has the baseline tier only, and no thread compiles the optimised
   * tier yet. */
  atomic_bool needs_optimised;
  vyre__cache_note note; /* cache result of the compile */
  vyre_arena texts;      /* texts of the note that were added later */
  /* Position in the device's table of pipelines (pipeline_table.c), guarded by
   * its lock. Variants are not in it: two pipelines could own each other's. */
  bool is_shared, is_idle;
  vyre_pipeline *next_in_bucket, *newer, *older;
  _Atomic uint64_t memory_hits;
  /* Proven bound of the loop iterations of one invocation, plus 1. 0: not
   * computed yet. */
  _Atomic uint64_t rounds;
  bool is_fresh; /* compiled without the cache, and so are its variants */
};

/* Compiles like vyre_pipeline_compile, without the cache: a reference run must
 * not be compared with itself. @p options may be NULL, no other argument
 * may. */
vyre_code vyre__pipeline_compile_fresh(vyre_device *device,
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
/* Frees the prepared dispatches of the pipeline. */
void vyre__pipeline_drop_runs(vyre_pipeline *pipeline);

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
                               vyre_status *st);

#endif
