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

/* Returns the maximum number of commands in a list. */
static inline size_t vyre__command_list_max(const vyre_device *device) {
  return device->backend->list_release ? VYRE__MAX_COMMANDS
                                       : VYRE__MAX_SHORT_LIST;
}

/* Returns true if @p device executes lists with several commands. A trace or an
 * armed fault prevents it. */
static inline bool vyre__takes_command_lists(const vyre_device *device) {
  const vyre_context *context = device->context;
  return atomic_load_explicit(&context->armed, memory_order_relaxed) == 0 &&
         !atomic_load_explicit(&context->trace, memory_order_relaxed);
}

/* Returns true if @p device executes commands of @p kind, besides launches. */
static inline bool vyre__takes_commands(const vyre_device *device,
                                        vyre__command_kind kind) {
  return device->backend->command_kinds >> kind & 1;
}

/* Returns true if a prepared dispatch can be at any position of a list: its
 * output memory needs no allocation or copy. */
bool vyre__prepared_is_ready(const vyre__prepared *prepared);

static inline bool vyre__prepared_fits(const vyre__prepared *prepared) {
  return prepared->is_plain &&
         (prepared->is_bound || vyre__prepared_is_ready(prepared));
}

/* Sums of the counters of all dispatches of a list. */
typedef struct vyre__launch_totals {
  uint64_t launches, input_bytes, output_bytes, copied_bytes;
} vyre__launch_totals;

vyre__launch_totals vyre__command_list_totals(const vyre__command_list *list);

/* Executes a list whose launches belong to prepared dispatches that all fit,
 * with the effects of vyre__prepared_execute for each. *done is the number of
 * commands that succeeded. Without a failure it may be smaller than the list,
 * but is at least 1. */
vyre_code vyre__command_list_execute(vyre__command_list *list, size_t *done,
                                     vyre_status *st);
/* Executes an unchanged list again, which is allowed if it is_reusable.
 * @p totals: of the list. */
vyre_code vyre__command_list_repeat(vyre__command_list *list,
                                    const vyre__launch_totals *totals,
                                    size_t *done, vyre_status *st);
/* Executes a list that begins with a loop. *done is 0 if the device cannot
 * execute the loop. @p totals: of one iteration. */
vyre_code vyre__command_list_loop(vyre__command_list *list,
                                  const vyre__launch_totals *totals,
                                  size_t *done, vyre_status *st);

/* Executes dispatches of a batch that all fit, at most vyre__command_list_max,
 * like vyre__command_list_execute. The list is kept in @p keeper, which the
 * caller owns. Its pipeline must live as long as those of the dispatches. */
vyre_code vyre__batch_execute(vyre__prepared *keeper,
                              vyre__prepared *const *dispatches, size_t count,
                              size_t *done, vyre_status *st);

#endif
