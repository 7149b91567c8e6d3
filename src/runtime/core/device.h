/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runtime state of a device, and the functions that open one. */
#ifndef VYRE_RUNTIME_CORE_DEVICE_H
#define VYRE_RUNTIME_CORE_DEVICE_H

#include "hal/backend.h"
#include "runtime/cache/cache.h"
#include "runtime/core/context.h"
#include "runtime/core/counters.h"
#include "runtime/core/registry.h"
#include "runtime/core/work_queue.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/memory/scratch_pool.h"

enum { VYRE__COMPILERS = 8 };

struct vyre__device_state {
  atomic_uint references;
  atomic_bool is_lost;
  atomic_bool is_forked;  /* lost because a parent process opened the device */
  atomic_bool is_closing; /* it has no reference any more */
  atomic_uint queued;     /* unfinished work on `queue` */
  _Atomic uint64_t batch_ids; /* last id of a checked batch */
  uint64_t id;
  char name[VYRE_DEVICE_NAME];
  char reason[VYRE__DEVICE_REASON];
  vyre__device_buffers buffers;
  _Atomic uint64_t buffer_alignment; /* of later vyre_buffer_create */
  _Atomic(vyre__scratch_block *) scratch[VYRE__SCRATCH_KINDS];
  pthread_mutex_t lock; /* guards the creation of queues */
  vyre__queue *queue;
  /* Several queues, so that programs compile in parallel. */
  vyre__queue *compile_queues[VYRE__COMPILERS];
  /* Compiles of optimised code. Compiles that callers wait for pass them. */
  vyre__queue *optimise_queues[VYRE__COMPILERS];
  atomic_uint compiles_begun;
  atomic_uint compiling; /* compiles that a caller or a fence waits for */
  vyre__pipeline_table pipelines; /* shared between compiles */
  pthread_mutex_t prepared_lock;  /* guards the list of prepared dispatches */
  vyre__prepared *first_prepared;
  pthread_mutex_t replay_lock; /* guards active_replays (conflicts.c) */
  pthread_cond_t replay_ended;
  struct vyre__active_replay *active_replays;
  struct vyre__timed_compile *timed_compiles; /* unfinished; under `lock` */
  vyre_float_op_info *float_ops; /* probe results; NULL: the backend is exact */
  vyre_device *next, *previous;  /* list of open devices (counters.c) */
  _Alignas(64) vyre__atomic_counters counters;
};

/* Returns true if queued work may still write memory of the device. */
static inline bool vyre__device_is_busy(const vyre_device *device) {
  return atomic_load_explicit(&device->state->queued, memory_order_acquire) > 0;
}

/* Returns VYRE_DEVICE_LOST if the device is lost. */
static inline vyre_code vyre__device_check(const vyre_device *device,
                                           vyre_status *st) {
  return atomic_load_explicit(&device->state->is_lost, memory_order_relaxed)
             ? vyre__device_lost(device, st)
             : VYRE_OK;
}

/* Implement vyre_device_open and vyre_device_preload over the registry
 * @p of. */
vyre_code vyre__device_open_of(vyre__backends of, vyre_context *context,
                               const char *name, vyre_device **out,
                               vyre_status *st);
vyre_code vyre__device_preload_of(vyre__backends of, vyre_context *context,
                                  const char *name, vyre_status *st);

#endif
