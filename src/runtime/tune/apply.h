/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Uses the choices of vyre_tune: a compile adds the tuned pipelines of the
 * program to its pipeline, and a dispatch runs the one for its size. */
#ifndef VYRE_RUNTIME_TUNE_APPLY_H
#define VYRE_RUNTIME_TUNE_APPLY_H

#include "runtime/compile/pipeline.h"
#include "runtime/tune/settings.h"
#include "runtime/tune/times.h"

/* A stored choice, for dispatches of one size class. */
typedef struct vyre__tuned_entry {
  uint32_t size_class;
  vyre__settings settings;
  vyre_pipeline *pipeline; /* retained; NULL: as compiled */
  uint64_t time_ns, default_ns;
} vyre__tuned_entry;

typedef struct vyre__tuned_list {
  struct vyre__tuned_list *previous; /* a dispatch may still read it */
  size_t count, capacity;
  vyre__tuned_entry entries[];
} vyre__tuned_list;

/* Adds the tuned pipelines of a program to @p pipeline. A choice that cannot
 * be compiled is left out. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__tuned_attach(vyre_pipeline *pipeline, vyre_tier tier,
                             vyre_status *st);
/* Frees a list with all previous ones. Accepts NULL. */
void vyre__tuned_free(vyre_allocator allocator, vyre__tuned_list *list);
/* Returns the pipeline to run for a batch. */
vyre_pipeline *vyre__tuned_select(vyre_pipeline *pipeline,
                                  const vyre_dispatch_desc *items,
                                  size_t count);

static inline vyre_pipeline *vyre__tuned_for(vyre_pipeline *pipeline,
                                             const vyre_dispatch_desc *items,
                                             size_t count) {
  bool is_tuned = atomic_load_explicit(&pipeline->state->tuned,
                                       memory_order_relaxed) != NULL;
  return is_tuned ? vyre__tuned_select(pipeline, items, count) : pipeline;
}

/* Returns the size class of a dispatch on @p device. */
uint32_t vyre__desc_size_class(vyre_device *device,
                               const vyre_dispatch_desc *desc);

/* Choices of a context; read from the file when they are first needed. */
typedef struct vyre__tunings {
  pthread_mutex_t lock;
  vyre__times times;
} vyre__tunings;

/* Returns the choices of a context, or NULL without memory. */
vyre__tunings *vyre__tunings_of(vyre_context *context);
void vyre__tunings_free(vyre_context *context);
/* Makes later compiles look at the choices again. */
void vyre__tunings_changed(vyre_context *context);

#endif
