/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* State of a work queue, shared by the files of its runtime. */
#ifndef VYRE_FLOW_QUEUE_INTERNAL_H
#define VYRE_FLOW_QUEUE_INTERNAL_H

#include <pthread.h>

#include "vyre/work_queue.h"

#include "analyze/queue/queue_kernel.h"
#include "hal/backend.h"
#include "hal/queue_steps.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/recording/step.h"

struct vyre_queue {
  atomic_uint references;
  vyre_device *device;   /* retained */
  vyre_program *program; /* retained */
  vyre_queue_options options;
  vyre_compile_options compile; /* that `options` points to */
  vyre_pipeline *parts[VYRE__QUEUE_PARTS];
  vyre__queue_kernel_info kernels[VYRE__QUEUE_PARTS];
  vyre_pipeline *steps[VYRE__QUEUE_STEPS]; /* for backends that need them */
  vyre__queue_info info;
  vyre_queue_run_plan plan;

  pthread_mutex_t lock; /* held by runs; protects what follows */
  vyre_buffer memory;
  vyre__device_buffer *held_memory;
  vyre__queue_state state;
  bool is_lost;
  bool is_fresh; /* nothing has run since the queue was empty */
  atomic_bool is_cancelled;
};

/* Chooses capacity, mode and chunks, and places all memory of a queue. Fills
 * @p info and @p plan from the options. */
VYRE_NODISCARD vyre_code vyre__queue_plan(const vyre_device *device,
                                          const vyre_program *program,
                                          const vyre_queue_options *options,
                                          vyre__queue_info *info,
                                          vyre_queue_run_plan *plan,
                                          vyre_status *st);

static inline bool vyre__queue_is_set(const vyre__queue_info *info) {
  return info->kind == VYRE__QUEUE_SET || info->kind == VYRE__QUEUE_ONCE;
}

/* Returns the number of items that a queue at rest holds. */
static inline uint64_t vyre__queue_held(const vyre_queue *queue) {
  return queue->state.current + queue->state.next;
}

/* Allocates the memory of the plan. */
VYRE_NODISCARD vyre_code vyre__queue_allocate(vyre_device *device,
                                              const vyre__queue_info *info,
                                              vyre_buffer *memory,
                                              vyre__device_buffer **held,
                                              vyre_status *st);
void vyre__queue_release_memory(vyre_device *device, vyre_buffer memory,
                                vyre__device_buffer *held);

/* Compiles queue->steps if the backend needs them. */
VYRE_NODISCARD vyre_code vyre__queue_compile_steps(vyre_queue *queue,
                                                   vyre_status *st);

/* Reports a queue that was lost. */
vyre_code vyre__queue_is_lost(const vyre_queue *queue, vyre_status *st);

/* Implements vyre_queue_fill, under the lock. */
VYRE_NODISCARD vyre_code vyre__queue_fill(vyre_queue *queue, const void *items,
                                          uint64_t count, vyre_status *st);

/* Memory that fills the queue at the beginning of a recorded run. */
typedef struct vyre__queue_source {
  const vyre__step_memory *items; /* NULL: the queue keeps its items */
  const vyre__step_memory *count; /* NULL: all of `items` */
} vyre__queue_source;

/* Checks the bindings of a run; its results are not used. */
VYRE_NODISCARD vyre_code vyre__queue_check_run(vyre_queue *queue,
                                               const vyre_dispatch_desc *desc,
                                               vyre_status *st);

/* Runs the queue on this thread, without waiting for queued work. */
VYRE_NODISCARD vyre_code vyre__queue_run_step(vyre_queue *queue,
                                              const vyre_dispatch_desc *desc,
                                              vyre__queue_source source,
                                              vyre__step_limit limit,
                                              vyre_queue_stats *stats,
                                              vyre_status *st);

/* Forgets all items. */
void vyre__queue_empty(vyre_queue *queue);

#endif
