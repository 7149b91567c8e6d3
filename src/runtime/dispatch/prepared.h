/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A prepared dispatch: checked bindings, ready to launch, and all memory that
 * one dispatch needs. A pipeline reuses its prepared dispatches, so that a
 * repeated dispatch allocates nothing and takes no lock. The steps are
 *
 *   vyre__prepared_check     checks everything and changes nothing
 *   vyre__prepared_stage     copies inputs, for work that outlives the call
 *   vyre__prepared_execute   allocates and initialises outputs, launches, and
 *                            returns results
 *
 * They run on the caller's thread, or with a fence on the device's queue. */
#ifndef VYRE_RUNTIME_DISPATCH_PREPARED_H
#define VYRE_RUNTIME_DISPATCH_PREPARED_H

#include "hal/command_list.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/counters.h"
#include "runtime/memory/device_buffer.h"

/* Memory that is bound to one binding of the plan. */
struct vyre__bound_buffer {
  unsigned char *in, *out; /* NULL: none, or not addressable by the host */
  uint64_t in_size, out_size;
  uint64_t in_offset, out_offset; /* in the device buffers */
  /* If both are the same buffer, it is held once. */
  vyre__device_buffer *in_buffer, *out_buffer;
  bool has_readback; /* the output is device memory, and its bytes also go to
                        the host */
};

/* Returns true if the input and the output of a binding are the same bytes. */
static inline bool vyre__in_place(const vyre__bound_buffer *bound) {
  if (bound->in_buffer && bound->in_buffer == bound->out_buffer) {
    return bound->in_offset == bound->out_offset;
  }
  return bound->in && bound->in == bound->out;
}

/* Bound bytes: in the host's address space, or in one device buffer that the
 * host cannot address. */
typedef struct vyre__memory_range {
  const vyre_binding *binding;
  const void *space; /* NULL: the host */
  uint64_t begin, end;
} vyre__memory_range;

/* An output of the last dispatch, and the memory that its host buffer had. */
typedef struct vyre__host_output {
  vyre_output output;
  const void *buffer_data;
  size_t buffer_capacity;
} vyre__host_output;

/* A prepared dispatch caches the bindings of its last dispatch and still holds
 * their device buffers. A dispatch with the same bindings skips the checks
 * (prepared_match.h). Freeing such a buffer invalidates the cached bindings
 * first. */
struct vyre__prepared {
  vyre_pipeline *pipeline;    /* the variant to launch; not retained */
  size_t size;                /* bytes of the full object */
  vyre__prepared_state *home; /* its lock in the pipeline; NULL: none */
  vyre__prepared *next_spare;
  uint32_t spare_count;            /* length of the list, in its first entry */
  vyre__prepared *next, *previous; /* list of the device */
  vyre__bound_buffer *bound;       /* one per binding of the plan */
  vyre__view *views;               /* one per buffer of the program */
  vyre_input_extent *extents;      /* one per input */
  vyre__memory_range *ranges;      /* space for all written ranges */
  vyre_output *outputs;            /* copies of the descriptor's */
  vyre_buffer *new_buffers;        /* one per output: buffers that the dispatch
                                      creates, until the caller gets them */
  const vyre_dispatch_desc *desc;  /* the caller's, or `own` */
  uint32_t item;                   /* index in the batch, for the trace */
  uint64_t batch;             /* id of the batch that checked these bindings; 0:
                                 none */
  uint64_t called_ns;         /* time of the call; 0: the start of the launch */
  uint64_t host_in, host_out; /* bytes, for the counters */
  bool is_plain;         /* needs no work around its launch, so that it fits
                            in a command list (command_list.h) */
  bool has_reports;      /* the descriptor asks for results */
  bool grows_outputs;    /* an output is a host buffer or a new buffer */
  bool has_moved_output; /* an output moved to unchecked memory */
  bool holds_buffers;    /* device buffers are held */
  bool is_cached;        /* the bindings are those in `cached_...` */
  bool is_bound;         /* the views are up to date */
  uint32_t miss_count;   /* dispatches in a row with other bindings */
  uint32_t cached_grid[3];
  uint32_t cached_mode; /* vyre__desc_mode */
  size_t cached_input_count, cached_output_count, cached_buffer_count;
  vyre_input *cached_inputs;         /* one per input, or one per resource */
  vyre__host_output *cached_outputs; /* one per output */
  vyre__readback *readbacks; /* space for one per output; some are used */
  uint32_t readback_count;
  vyre__launch launch;
  struct vyre__drain *drain; /* the launch is that of a work queue, which the
                                device drains; NULL: it is not */

  /* A dispatch with cached bindings does not touch the fields below. */
  vyre_arena scratch, staging;
  vyre__command command;         /* the launch */
  vyre__command_list list;       /* of this command */
  vyre__command_list batch_list; /* a list of batches that it keeps; only if
                                    the backend encodes lists */
  size_t batch_capacity;         /* commands */
  vyre_copy_report copies;
  uint32_t first_copied;   /* binding that `copies` names */
  vyre_output_stats stats; /* of its item of a command list */
  vyre_dispatch_desc own;  /* copy, for work that outlives the call */
  /* Of all its dispatches. Only the thread that uses the object writes them, so
   * that no atomic read-modify-write is needed. */
  vyre__atomic_counters counters;
};

#define VYRE__COUNT_RUN(run, field, value)                                 \
  atomic_store_explicit(                                                   \
      &(run)->counters.field,                                              \
      atomic_load_explicit(&(run)->counters.field, memory_order_relaxed) + \
          (value),                                                         \
      memory_order_relaxed)

/* Slow paths of the functions in prepared_match.h. */

/* Acquires any prepared dispatch of the pipeline, or creates one. */
vyre_code vyre__prepared_acquire_second(vyre_pipeline *pipeline,
                                        vyre__prepared **out, vyre_status *st);
/* Forgets the bindings of a dispatch that will not come again. Others then do
 * not have to look at a second prepared dispatch. */
void vyre__prepared_forget(vyre_pipeline *pipeline,
                           const vyre_dispatch_desc *desc);
/* Creates a prepared dispatch that does not belong to the pipeline's own, for a
 * recording or a batch. vyre__prepared_return frees it. */
vyre_code vyre__prepared_create(vyre_pipeline *pipeline, vyre__prepared **out,
                                vyre_status *st);
/* Returns the prepared dispatch that matches @p desc, or one that should cache
 * it, or @p first. A pipeline keeps two, so that callers that swap two buffers
 * match every time. The other one goes back to the pipeline. */
vyre__prepared *vyre__prepared_second(vyre__prepared *first,
                                      const vyre_dispatch_desc *desc);
/* Returns the object to its pipeline, or frees it. */
void vyre__prepared_abandon(vyre__prepared *prepared);
void vyre__prepared_free(vyre__prepared *prepared);
/* Copies the caller's descriptor, for work that outlives the call. */
void vyre__prepared_copy_desc(vyre__prepared *prepared);
/* Releases all device buffers, and invalidates the cached bindings. */
void vyre__prepared_invalidate(vyre__prepared *prepared);
/* Releases the device buffers, but keeps the pointers to them. */
void vyre__prepared_release(vyre__prepared *prepared);
/* Caches the bindings of a dispatch that succeeded. */
void vyre__prepared_cache(vyre__prepared *prepared,
                          const vyre_dispatch_desc *desc);
/* Makes every prepared dispatch of the device release @p buffer, which the
 * caller holds and is about to free. Those in use do so when they end. */
void vyre__prepared_list_revoke(vyre_device *device,
                                vyre__device_buffer *buffer);

/* Prepared dispatches of a batch. A batch acquires all spare ones, in the order
 * in which an earlier batch returned them, so that the same batch finds a match
 * for each of its items. */
typedef struct vyre__prepared_list {
  vyre__prepared *first, *last; /* `last`: only while the list is built */
  uint32_t count;
} vyre__prepared_list;
/* Acquires all spare prepared dispatches of the pipeline. */
vyre__prepared_list vyre__prepared_list_acquire(vyre_pipeline *pipeline);
/* Returns a list to the pipeline, in front of those that are spare. */
void vyre__prepared_list_return(vyre_pipeline *pipeline,
                                vyre__prepared_list *list);
/* Appends @p prepared to @p list if it belongs to @p pipeline and has no home;
 * otherwise returns it to its pipeline. */
void vyre__prepared_list_append(vyre__prepared_list *list,
                                vyre_pipeline *pipeline,
                                vyre__prepared *prepared);

/* Copies inputs that the caller may change after the call. */
vyre_code vyre__prepared_stage(vyre__prepared *prepared, vyre_status *st);
/* Executes a checked dispatch and waits for it. */
vyre_code vyre__prepared_execute(vyre__prepared *prepared, vyre_status *st);
/* Step of execute: allocates outputs and sets their first contents. Adds to
 * @p stats. */
vyre_code vyre__prepared_bind(vyre__prepared *prepared,
                              vyre_output_stats *stats, vyre_status *st);
/* Step of execute: returns results to the descriptor, except times. */
void vyre__prepared_report(const vyre__prepared *prepared,
                           const vyre_output_stats *stats, vyre_code code);
/* Step of execute: adds a successful dispatch to the counters. */
void vyre__prepared_count(vyre__prepared *prepared,
                          const vyre_output_stats *stats);

#endif
