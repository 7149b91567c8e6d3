/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fast path: a dispatch with the same bindings as the last one skips all
 * checks.
 *
 * The checks of bindings depend on the descriptor, the pipeline, the
 * capabilities of the device and the device buffers. Pipelines and devices
 * never change. A device buffer does not change while a prepared dispatch
 * holds it, and freeing a buffer first invalidates every prepared dispatch
 * that holds it. So a descriptor that equals the cached one needs no checks
 * except for the memory of host buffers, and the views for the backend are
 * still valid. */
#ifndef VYRE_RUNTIME_DISPATCH_PREPARED_MATCH_H
#define VYRE_RUNTIME_DISPATCH_PREPARED_MATCH_H

#include "base/status.h"
#include "hal/launch.h"
#include "runtime/compile/pipeline.h"
#include "runtime/dispatch/bind.h"
#include "runtime/dispatch/prepared.h"

/* Prefetches memory for writing. The prepared dispatches of a large batch have
 * left the CPU cache when they are used again, so the next ones are prefetched
 * while one is processed. */
static inline void vyre__fetch(const void *from, size_t size) {
  for (size_t at = 0; at < size; at += 64) {
    __builtin_prefetch((const char *)from + at, 1);
  }
}

/* Returns the size of the cached data that lies directly after the struct, in
 * the same block. */
static inline size_t vyre__prepared_cached_size(
    const vyre__prepared *prepared) {
  return (size_t)((const char *)(prepared->cached_outputs +
                                 prepared->pipeline->plan.output_count) -
                  (const char *)(prepared + 1));
}

static inline void vyre__prepared_fetch(const vyre__prepared *prepared,
                                        size_t cached_size) {
  if (!prepared) return;
  vyre__fetch(prepared, offsetof(vyre__prepared, scratch));
  vyre__fetch(prepared + 1, cached_size);
}

/* Returns a value other than 0 if any bit differs. @p size is a multiple of 8.
 * All bytes are compared: that is faster than an early exit. */
static inline uint64_t vyre__words_differ(const void *a, const void *b,
                                          size_t size) {
  typedef uint64_t word_pair
      __attribute__((vector_size(16), aligned(8), may_alias));
  typedef uint64_t word __attribute__((may_alias));
  word_pair differs = {0, 0};
  size_t at = 0;
  for (; at + 16 <= size; at += 16) {
    differs |= *(const word_pair *)(const void *)((const char *)a + at) ^
               *(const word_pair *)(const void *)((const char *)b + at);
  }
  uint64_t last = 0;
  if (at < size) {
    last = *(const word *)(const void *)((const char *)a + at) ^
           *(const word *)(const void *)((const char *)b + at);
  }
  return differs[0] | differs[1] | last;
}

_Static_assert(sizeof(vyre_input) == 2 * sizeof(void *) + 3 * sizeof(uint64_t),
               "vyre_input has no padding");

static inline uint64_t vyre__output_differs(const vyre_output *a,
                                            const vyre_output *b) {
  return ((uintptr_t)a->data ^ (uintptr_t)b->data) | (a->size ^ b->size) |
         ((uintptr_t)a->host_buffer ^ (uintptr_t)b->host_buffer) |
         (a->buffer.owner ^ b->buffer.owner) | (a->buffer.id ^ b->buffer.id) |
         (a->offset ^ b->offset) |
         ((uintptr_t)a->new_buffer ^ (uintptr_t)b->new_buffer);
}

/* Returns how a descriptor names its memory: by resources, and with buffers for
 * all outputs. */
static inline uint32_t vyre__desc_mode(const vyre_dispatch_desc *desc) {
  return (desc->resources != NULL) | (uint32_t)(desc->output_buffers != NULL)
                                         << 1;
}

/* Returns true if @p desc has the bindings that @p prepared has cached. */
static inline bool vyre__prepared_matches(const vyre__prepared *prepared,
                                          const vyre_dispatch_desc *desc) {
  size_t count = desc->resources ? desc->resource_count : desc->input_count;
  const vyre_input *inputs = desc->resources ? desc->resources : desc->inputs;
  if (!prepared->is_cached || count != prepared->cached_input_count ||
      desc->output_count != prepared->cached_output_count ||
      vyre__desc_mode(desc) != prepared->cached_mode) {
    return false;
  }
  uint64_t differs = (prepared->cached_grid[0] ^ desc->grid[0]) |
                     (prepared->cached_grid[1] ^ desc->grid[1]) |
                     (prepared->cached_grid[2] ^ desc->grid[2]);
  if ((!inputs && count > 0) || (desc->resources && desc->inputs) ||
      desc->output_buffer_count != prepared->cached_buffer_count ||
      (!desc->outputs && desc->output_count > 0)) {
    return false;
  }
  differs |= vyre__words_differ(inputs, prepared->cached_inputs,
                                count * sizeof *inputs);
  for (size_t i = 0; i < desc->output_count; i++) {
    const vyre__host_output *cached = &prepared->cached_outputs[i];
    const vyre_output *output = &desc->outputs[i];
    differs |= vyre__output_differs(output, &cached->output);
    if (!cached->output.host_buffer || differs) continue;
    differs |=
        (uintptr_t)output->host_buffer->data ^ (uintptr_t)cached->buffer_data;
    differs |= output->host_buffer->capacity ^ cached->buffer_capacity;
  }
  return differs == 0;
}

/* Claims an entry of the pipeline with an atomic change. The claiming thread
 * owns the prepared dispatch of the entry until it leaves. */
static inline bool vyre__prepared_enter(vyre__prepared_state *state) {
  unsigned char idle = VYRE__PREPARED_IDLE;
  return atomic_load_explicit(state, memory_order_relaxed) == idle &&
         atomic_compare_exchange_strong_explicit(
             state, &idle, VYRE__PREPARED_BUSY, memory_order_acquire,
             memory_order_relaxed);
}

/* Leaves the entry of a prepared dispatch, which keeps its device buffers.
 * Fails if one of them may have been freed since the claim: the freeing thread
 * found the entry busy and left the release to this thread. */
static inline bool vyre__prepared_leave(const vyre__prepared *prepared) {
  unsigned char busy = VYRE__PREPARED_BUSY;
  return prepared->home && atomic_compare_exchange_strong_explicit(
                               prepared->home, &busy, VYRE__PREPARED_IDLE,
                               memory_order_acq_rel, memory_order_relaxed);
}

/* Acquires a prepared dispatch of @p pipeline; the first one if it is idle. */
static inline vyre_code vyre__prepared_acquire(vyre_pipeline *pipeline,
                                               vyre__prepared **out,
                                               vyre_status *st) {
  struct vyre__pipeline_state *pipeline_state = pipeline->state;
  vyre__prepared_state *state = &pipeline_state->runs[0].state;
  if (vyre__prepared_enter(state)) {
    *out = pipeline_state->runs[0].run;
    if (*out) return VYRE_OK;
    atomic_store_explicit(state, VYRE__PREPARED_IDLE, memory_order_release);
  }
  return vyre__prepared_acquire_second(pipeline, out, st);
}

/* Returns a prepared dispatch to its pipeline. */
static inline void vyre__prepared_return(vyre__prepared *prepared) {
  bool keeps_memory = prepared->scratch.first || prepared->staging.first;
  if (prepared->home && !keeps_memory && !prepared->holds_buffers) {
    atomic_store_explicit(prepared->home, VYRE__PREPARED_IDLE,
                          memory_order_release);
  } else if (keeps_memory || !prepared->is_cached ||
             !vyre__prepared_leave(prepared)) {
    vyre__prepared_abandon(prepared);
  }
}

/* Checks @p desc and fills in the launch. @p matches: result of
 * vyre__prepared_matches. */
static inline vyre_code vyre__prepared_check_as(vyre__prepared *prepared,
                                                const vyre_dispatch_desc *desc,
                                                bool matches, vyre_status *st) {
  /* views and scratch are set already */
  vyre__launch *launch = &prepared->launch;
  prepared->desc = desc;
  bool was_plain = prepared->is_plain;
  prepared->is_plain = !desc->timing && !desc->timeout_ns &&
                       !desc->print.write && !desc->report &&
                       !desc->has_repeat_count && !desc->progress &&
                       !desc->output_buffers;
  prepared->has_reports = desc->copies || desc->output_stats || desc->result;
  launch->max_loop_iterations =
      desc->max_loop_iterations ? desc->max_loop_iterations : UINT32_MAX;
  if (!was_plain || !prepared->is_plain) { /* else all of these are 0 already */
    launch->deadline_ns = 0;
    launch->timeout_ns = desc->timeout_ns;
    launch->print = desc->print;
    launch->report = desc->report;
    launch->device_ns = 0;
    launch->progress = desc->progress;
  }
  launch->check = desc->check;
  if (!matches) {
    VYRE_TRY(vyre__prepared_check_again(prepared, st));
  } else if (desc->max_output_bytes || desc->require_zero_copy) {
    VYRE_TRY(vyre__prepared_check_limits(prepared, st));
  }
  const vyre_check_options *check = &desc->check;
  if (check->out_of_bounds | check->races | desc->has_repeat_count ||
      check->schedules > 0) {
    return vyre__prepared_check_options(prepared, st);
  }
  return VYRE_OK;
}

/* Checks @p desc, or skips the checks of its bindings if they are cached. */
static inline vyre_code vyre__prepared_check(vyre__prepared *prepared,
                                             const vyre_dispatch_desc *desc,
                                             vyre_status *st) {
  return vyre__prepared_check_as(prepared, desc,
                                 vyre__prepared_matches(prepared, desc), st);
}

#endif
