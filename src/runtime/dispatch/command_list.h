/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Command lists: prepared dispatches of a batch or a recording that run one
 * after the other, and that the backend executes in one call.
 *
 * A list avoids a return to the runtime between two dispatches. Anything
 * that the runtime does between dispatches ends a list: timing, deadlines, the
 * trace and fault injection. */
#ifndef VYRE_RUNTIME_DISPATCH_COMMAND_LIST_H
#define VYRE_RUNTIME_DISPATCH_COMMAND_LIST_H

#include "hal/backend.h"
#include "hal/command_list.h"
#include "runtime/core/context.h"
#include "runtime/dispatch/prepared.h"

static inline size_t vyre__command_list_max(const vyre_device *device) {
  size_t max = device->backend->max_batch;
  return max == 0                       ? VYRE__COMMAND_LIST
         : max > VYRE__MAX_COMMAND_LIST ? VYRE__MAX_COMMAND_LIST
                                        : max;
}

/* Returns true if @p device executes command lists. A trace or an armed fault
 * prevents it. */
static inline bool vyre__takes_command_lists(const vyre_device *device) {
  const vyre_context *context = device->context;
  return device->backend->run_batch &&
         atomic_load_explicit(&context->armed, memory_order_relaxed) == 0 &&
         !atomic_load_explicit(&context->trace, memory_order_relaxed);
}

/* Returns true if a prepared dispatch can be at any position of a list: its
 * output memory needs no allocation or copy. */
bool vyre__prepared_is_ready(const vyre__prepared *prepared);

static inline bool vyre__prepared_fits(const vyre__prepared *prepared) {
  return prepared->is_plain &&
         (prepared->is_bound || vyre__prepared_is_ready(prepared));
}

/* Executes @p list, whose launches belong to the prepared dispatches. *done is
 * the number of list items that succeeded. */
vyre_code vyre__command_list_run_encoded(vyre__prepared *const *prepared,
                                         size_t count, vyre__command_list *list,
                                         size_t *done, vyre_status *st);

/* Sums of the counters of all dispatches of a list. */
typedef struct vyre__launch_totals {
  uint64_t launches, input_bytes, output_bytes, copied_bytes;
} vyre__launch_totals;

vyre__launch_totals vyre__command_list_totals(vyre__prepared *const *prepared,
                                              size_t count);
/* Executes an unchanged list again, which is allowed if it is_reusable. */
vyre_code vyre__command_list_run_again(vyre__command_list *list,
                                       const vyre__launch_totals *totals,
                                       size_t *done, vyre_status *st);
/* Executes a list as the body of a loop. */
vyre_code vyre__command_list_run_loop(vyre__prepared *const *prepared,
                                      size_t count, vyre__command_list *list,
                                      vyre__command_list_loop *loop,
                                      vyre_status *st);

/* Executes @p count dispatches that all fit in a list, at most
 * vyre__command_list_max, with the effects of vyre__prepared_execute for each.
 * *done is the number of dispatches that succeeded. Without a failure it may
 * be less than @p count, but is at least 1. are_independent: no dispatch binds
 * host memory that another one writes. */
vyre_code vyre__command_list_run(vyre__prepared *const *prepared, size_t count,
                                 bool are_independent, size_t *done,
                                 vyre_status *st);

#endif
