/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The same dispatch once more: what nearly all are.
 *
 * Whether bindings are good depends on what is given, on the pipeline, on the
 * device's capabilities and on the resident buffers. Of these, a pipeline and its
 * device never change, and a buffer not while somebody holds it; who frees one
 * makes all runs that hold it forget, before the call returns. So a run that is
 * given what it was given last needs to look only at the memory of slots. All
 * answers, the views for the backend among them, are then there. */
#ifndef VYRE_RUNTIME_DISPATCH_PREPARED_MATCH_H
#define VYRE_RUNTIME_DISPATCH_PREPARED_MATCH_H

#include "base/status.h"
#include "runtime/runtime.h"

/* Runs of a large batch are not near any more when their turn comes: the next is
 * asked for while this one is worked at. What lies after the struct is where its
 * neighbours have it, so that it is not asked where. */
static inline void vyre__fetch(const void *from, size_t size) {
  for (size_t at = 0; at < size; at += 64) {
    __builtin_prefetch((const char *)from + at, 1);
  }
}

/* Bytes after the struct that a dispatch that is known touches. */
static inline size_t vyre__prepared_cached_size(const vyre__prepared *run) {
  return (size_t)((const char *)(run->cached_outputs +
                                 run->pipeline->plan.output_count) -
                  (const char *)(run + 1));
}

static inline void vyre__prepared_fetch(const vyre__prepared *run,
                                        size_t known) {
  if (!run) return;
  vyre__fetch(run, offsetof(vyre__prepared, scratch));
  vyre__fetch(run + 1, known);
}

/* Not 0 if any bit differs. All of @p size, a multiple of 8, is looked at: that is
 * quicker than to stop. What is there are structs, not these words. */
static inline uint64_t vyre__words_differ(const void *a, const void *b,
                                          size_t size) {
  typedef uint64_t two __attribute__((vector_size(16), aligned(8), may_alias));
  typedef uint64_t one __attribute__((may_alias));
  two differs = {0, 0};
  size_t at = 0;
  for (; at + 16 <= size; at += 16) {
    differs |= *(const two *)(const void *)((const char *)a + at) ^
               *(const two *)(const void *)((const char *)b + at);
  }
  uint64_t last = 0;
  if (at < size) {
    last = *(const one *)(const void *)((const char *)a + at) ^
           *(const one *)(const void *)((const char *)b + at);
  }
  return differs[0] | differs[1] | last;
}

_Static_assert(sizeof(vyre_input) == 2 * sizeof(void *) + 3 * sizeof(uint64_t),
               "an input has no bytes that mean nothing");

static inline uint64_t vyre__output_differs(const vyre_output *a,
                                            const vyre_output *b) {
  return ((uintptr_t)a->data ^ (uintptr_t)b->data) | (a->size ^ b->size) |
         ((uintptr_t)a->host_buffer ^ (uintptr_t)b->host_buffer) |
         (a->buffer.owner ^ b->buffer.owner) | (a->buffer.id ^ b->buffer.id) |
         (a->offset ^ b->offset) |
         ((uintptr_t)a->new_buffer ^ (uintptr_t)b->new_buffer);
}

static inline bool vyre__prepared_matches(const vyre__prepared *run,
                                          const vyre_dispatch_desc *desc) {
  const vyre_binding_plan *plan = &run->pipeline->plan;
  if (!run->is_cached || desc->input_count != plan->input_count ||
      desc->output_count != plan->output_count) {
    return false;
  }
  uint64_t differs = (run->cached_grid[0] ^ desc->grid[0]) |
                     (run->cached_grid[1] ^ desc->grid[1]) |
                     (run->cached_grid[2] ^ desc->grid[2]);
  if ((!desc->inputs && desc->input_count > 0) ||
      (!desc->outputs && desc->output_count > 0)) {
    return false;
  }
  differs |= vyre__words_differ(desc->inputs, run->cached_inputs,
                                desc->input_count * sizeof *desc->inputs);
  for (size_t i = 0; i < desc->output_count; i++) {
    const vyre__host_output *given = &run->cached_outputs[i];
    const vyre_output *output = &desc->outputs[i];
    differs |= vyre__output_differs(output, &given->output);
    if (!given->output.host_buffer || differs) continue;
    differs |=
        (uintptr_t)output->host_buffer->data ^ (uintptr_t)given->buffer_data;
    differs |= output->host_buffer->capacity ^ given->buffer_capacity;
  }
  return differs == 0;
}

/* A place is entered by an atomic change; whoever is in it has its run alone. */
static inline bool vyre__prepared_enter(vyre__prepared_state *state) {
  unsigned char idle = VYRE__PREPARED_IDLE;
  return atomic_load_explicit(state, memory_order_relaxed) == idle &&
         atomic_compare_exchange_strong_explicit(
             state, &idle, VYRE__PREPARED_BUSY, memory_order_acquire,
             memory_order_relaxed);
}

/* Leaves it with resident buffers held, unless one of them may have been freed:
 * who did so saw the place taken, and left it to us. */
static inline bool vyre__prepared_leave(const vyre__prepared *run) {
  unsigned char busy = VYRE__PREPARED_BUSY;
  return run->home && atomic_compare_exchange_strong_explicit(
                          run->home, &busy, VYRE__PREPARED_IDLE,
                          memory_order_acq_rel, memory_order_relaxed);
}

static inline vyre_code vyre__prepared_acquire(vyre_pipeline *pipeline,
                                               vyre__prepared **out,
                                               vyre_status *st) {
  struct vyre__pipeline_state *inside = pipeline->state;
  vyre__prepared_state *state = &inside->runs[0].state;
  if (vyre__prepared_enter(state)) {
    *out = inside->runs[0].run;
    if (*out) return VYRE_OK;
    atomic_store_explicit(state, VYRE__PREPARED_IDLE, memory_order_release);
  }
  return vyre__prepared_acquire_second(pipeline, out, st);
}

static inline void vyre__prepared_set_outputs(vyre__prepared *run) {
  bool keeps_memory = run->scratch.first || run->staging.first;
  if (run->home && !keeps_memory && !run->holds_buffers) {
    atomic_store_explicit(run->home, VYRE__PREPARED_IDLE, memory_order_release);
  } else if (keeps_memory || !run->is_cached || !vyre__prepared_leave(run)) {
    vyre__prepared_abandon(run);
  }
}

/* @p is_same: what vyre__prepared_matches says. */
static inline vyre_code vyre__prepared_check_as(vyre__prepared *run,
                                                const vyre_dispatch_desc *desc,
                                                bool is_same, vyre_status *st) {
  vyre__launch *launch = &run->launch; /* views and scratch stay as they are */
  run->desc = desc;
  bool was_plain = run->is_plain;
  run->is_plain = !desc->timing && !desc->timeout_ns && !desc->print.write &&
                  !desc->report && !desc->has_repeat_count && !desc->progress;
  run->has_reports = desc->copies || desc->output_stats || desc->result;
  launch->max_loop_iterations =
      desc->max_loop_iterations ? desc->max_loop_iterations : UINT32_MAX;
  if (!was_plain || !run->is_plain) { /* else they are as they were */
    launch->deadline_ns = 0;
    launch->timeout_ns = desc->timeout_ns;
    launch->print = desc->print;
    launch->report = desc->report;
    launch->device_ns = 0;
    launch->progress = desc->progress;
  }
  launch->check = desc->check;
  if (!is_same) {
    VYRE_TRY(vyre__prepared_check_again(run, st));
  } else if (desc->max_output_bytes || desc->require_zero_copy) {
    VYRE_TRY(vyre__prepared_check_limits(run, st));
  }
  const vyre_check_options *check = &desc->check;
  if (check->out_of_bounds | check->races | desc->has_repeat_count ||
      check->schedules > 0) {
    return vyre__prepared_check_options(run, st);
  }
  return VYRE_OK;
}

static inline vyre_code vyre__prepared_check(vyre__prepared *run,
                                             const vyre_dispatch_desc *desc,
                                             vyre_status *st) {
  return vyre__prepared_check_as(run, desc, vyre__prepared_matches(run, desc),
                                 st);
}

#endif
