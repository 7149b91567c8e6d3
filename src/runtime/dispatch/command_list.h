/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A stretch: runs that follow each other, in a batch or a recording, and that the
 * backend gets at once (run_many), so that it goes on from one to the next without
 * coming back. What is looked at between two dispatches - times, deadlines, the
 * trace, faults - ends a stretch. */
#ifndef VYRE_RUNTIME_DISPATCH_COMMAND_LIST_H
#define VYRE_RUNTIME_DISPATCH_COMMAND_LIST_H

#include "runtime/runtime.h"

/* Runs, at most: they are still near when it ends. A backend to which coming back
 * costs more takes up to MOST. */
enum { VYRE__COMMAND_LIST = 32, VYRE__MAX_COMMAND_LIST = 1024 };

static inline size_t vyre__command_list_max(const vyre_device *device) {
  size_t most = device->backend->max_batch;
  return most == 0                       ? VYRE__COMMAND_LIST
         : most > VYRE__MAX_COMMAND_LIST ? VYRE__MAX_COMMAND_LIST
                                         : most;
}

/* Whether @p device takes stretches just now. */
static inline bool vyre__takes_command_lists(const vyre_device *device) {
  const vyre_context *context = device->context;
  return device->backend->run_batch &&
         atomic_load_explicit(&context->armed, memory_order_relaxed) == 0 &&
         !atomic_load_explicit(&context->trace, memory_order_relaxed);
}

/* Whether it can be in one, wherever in it. */
bool vyre__prepared_is_ready(const vyre__prepared *run);

static inline bool vyre__prepared_fits(const vyre__prepared *run) {
  return run->is_plain && (run->is_bound || vyre__prepared_is_ready(run));
}

/* Runs @p piece, whose launches are those of the runs, instead of run_many; *done
 * then are its items. */
vyre_code vyre__command_list_run_encoded(vyre__prepared *const *runs,
                                         size_t count,
                                         vyre__command_list *piece,
                                         size_t *done, vyre_status *st);

/* The same piece once more, as it is, which is_steady allows: what is counted of its
 * runs was summed up the last time. */
typedef struct vyre__launch_totals {
  uint64_t launches, input_bytes, output_bytes, copied_bytes;
} vyre__launch_totals;

vyre__launch_totals vyre__command_list_totals(vyre__prepared *const *runs,
                                              size_t count);
vyre_code vyre__command_list_run_again(vyre__command_list *piece,
                                       const vyre__launch_totals *sums,
                                       size_t *done, vyre_status *st);
/* A piece in a loop. */
vyre_code vyre__command_list_run_loop(vyre__prepared *const *runs, size_t count,
                                      vyre__command_list *piece,
                                      vyre__command_list_loop *loop,
                                      vyre_status *st);

/* Runs @p count (at most vyre__command_list_max) that all fit, as vyre__prepared_execute would
 * one by one. *done: how many ended well; without a failure that may be fewer than
 * all, but is at least one. are_apart: what one writes to the host, no other binds. */
vyre_code vyre__command_list_run(vyre__prepared *const *runs, size_t count,
                                 bool are_apart, size_t *done, vyre_status *st);

#endif
