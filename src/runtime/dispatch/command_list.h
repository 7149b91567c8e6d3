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
enum { VYRE__STRETCH = 32, VYRE__MOST_STRETCH = 1024 };

static inline size_t vyre__stretch_most(const vyre_device *device) {
  size_t most = device->backend->most_many;
  return most == 0                   ? VYRE__STRETCH
         : most > VYRE__MOST_STRETCH ? VYRE__MOST_STRETCH
                                     : most;
}

/* Whether @p device takes stretches just now. */
static inline bool vyre__takes_stretches(const vyre_device *device) {
  const vyre_context *context = device->context;
  return device->backend->run_many &&
         atomic_load_explicit(&context->armed, memory_order_relaxed) == 0 &&
         !atomic_load_explicit(&context->trace, memory_order_relaxed);
}

/* Whether it can be in one, wherever in it. */
bool vyre__run_is_ready(const vyre__run *run);

static inline bool vyre__run_fits(const vyre__run *run) {
  return run->is_plain && (run->is_bound || vyre__run_is_ready(run));
}

/* Runs @p piece, whose launches are those of the runs, instead of run_many; *done
 * then are its items. */
vyre_code vyre__stretch_run_piece(vyre__run *const *runs, size_t count,
                                  vyre__piece *piece, size_t *done,
                                  vyre_status *st);

/* The same piece once more, as it is, which is_steady allows: what is counted of its
 * runs was summed up the last time. */
typedef struct vyre__tally {
  uint64_t launches, input_bytes, output_bytes, copied_bytes;
} vyre__tally;

vyre__tally vyre__stretch_sum(vyre__run *const *runs, size_t count);
vyre_code vyre__stretch_run_again(vyre__piece *piece, const vyre__tally *sums,
                                  size_t *done, vyre_status *st);
/* A piece in a loop. */
vyre_code vyre__stretch_run_loop(vyre__run *const *runs, size_t count,
                                 vyre__piece *piece, vyre__piece_loop *loop,
                                 vyre_status *st);

/* Runs @p count (at most vyre__stretch_most) that all fit, as vyre__run_execute would
 * one by one. *done: how many ended well; without a failure that may be fewer than
 * all, but is at least one. are_apart: what one writes to the host, no other binds. */
vyre_code vyre__stretch_run(vyre__run *const *runs, size_t count,
                            bool are_apart, size_t *done, vyre_status *st);

#endif
