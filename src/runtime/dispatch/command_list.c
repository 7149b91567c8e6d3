/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes command lists and updates reports and counters for their
 * dispatches. */
#include "runtime/dispatch/command_list.h"

#include "base/status.h"
#include "hal/backend.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/trace.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/host_buffer.h"

/* Returns true if binding an output to @p buffer would not change it. */
static bool needs_no_change(const vyre__prepared *prepared,
                            const vyre_host_buffer *buffer, uint64_t size) {
  size_t alignment = vyre__host_alignment(prepared->pipeline->device);
  return buffer->data && buffer->size == size && buffer->capacity >= size &&
         (uintptr_t)buffer->data % alignment == 0 &&
         !prepared->desc->has_fresh_outputs;
}

/* All outputs of a list are bound before its first dispatch runs. Earlier
 * dispatches, and callers of a list that stops early, must not see an effect
 * of that. So no output may need an allocation, a copy, or a clear by the
 * host. */
bool vyre__prepared_is_ready(const vyre__prepared *prepared) {
  const struct vyre__pipeline_state *state = prepared->pipeline->state;
  bool clears = prepared->pipeline->device->backend->clears_outputs;
  for (size_t i = 0; i < prepared->pipeline->plan.output_count; i++) {
    const vyre__binding_info *info = state->outputs[i];
    const vyre__bound_buffer *bound = &prepared->bound[info->index];
    const vyre_output *output = &prepared->outputs[i];
    if (output->new_buffer) return false;
    if (output->host_buffer &&
        !needs_no_change(prepared, output->host_buffer, bound->out_size)) {
      return false;
    }
    if (bound->out_size == 0 || vyre__in_place(bound)) continue;
    if (info->input != VYRE_NO_INDEX || !clears) return false;
    if (!bound->out && bound->out_buffer) return false;
  }
  return true;
}

static const vyre_output_stats no_stats;

/* Counters that a list adds once, instead of once for each dispatch. */
typedef struct counted {
  uint64_t launches, input_bytes, output_bytes;
} counted;

static void report_one(vyre__prepared *prepared, const vyre_output_stats *stats,
                       counted *totals) {
  bool is_counted = stats || prepared->copies.copied_bytes > 0;
  if (!stats) stats = &no_stats;
  if (prepared->has_reports) vyre__prepared_report(prepared, stats, VYRE_OK);
  totals->launches += prepared->launch.launches;
  if (is_counted) {
    vyre__prepared_count(prepared, stats);
    return;
  }
  totals->input_bytes += prepared->host_in;
  totals->output_bytes += prepared->host_out;
}

/* Binds outputs and links the launches. Returns the number of dispatches done.
 * A batch stops at the first failure, and reports it when that dispatch is the
 * first of a list. A recorded list (@p is_list) runs completely or not at all,
 * so any failure is reported. */
static size_t prepare_launches(vyre__prepared *const *dispatches, size_t count,
                               bool are_independent, bool is_list,
                               vyre_status *st, vyre_code *code) {
  for (size_t i = 0; i < count; i++) {
    vyre__prepared *prepared = dispatches[i];
    if (!prepared->is_bound) {
      prepared->stats = (vyre_output_stats){0};
      *code = vyre__prepared_bind(prepared, &prepared->stats,
                                  i == 0 || is_list ? st : NULL);
      if (*code != VYRE_OK) return i;
    }
    __builtin_prefetch(
        prepared->views); /* views usually take one or two cache lines */
    __builtin_prefetch((const char *)prepared->views + 64);
    prepared->launch.launches = 1;
    prepared->launch.is_timed = false;
    prepared->launch.is_independent = are_independent;
    prepared->launch.next = NULL;
    if (i > 0) dispatches[i - 1]->launch.next = &prepared->launch;
  }
  return count;
}

/* Writes reports and counters of the first @p done dispatches, and of the next
 * one if it failed. */
static void report_results(vyre__prepared *const *dispatches, size_t count,
                           size_t done, vyre_code code) {
  vyre_device *device = dispatches[0]->pipeline->device;
  counted totals = {0};
  for (size_t i = 0; i < done; i++) {
    report_one(dispatches[i],
               dispatches[i]->is_bound ? NULL : &dispatches[i]->stats, &totals);
  }
  if (code != VYRE_OK) {
    vyre__prepared *failed = done < count ? dispatches[done] : NULL;
    if (failed && failed->has_reports) {
      vyre__prepared_report(
          failed, failed->is_bound ? &no_stats : &failed->stats, code);
    }
    VYRE__COUNT(device, failures, 1);
  }
  VYRE__COUNT(device, launches, totals.launches);
  VYRE__COUNT(device, input_bytes, totals.input_bytes);
  VYRE__COUNT(device, output_bytes, totals.output_bytes);
}

vyre_code vyre__command_list_run(vyre__prepared *const *dispatches,
                                 size_t count, bool are_independent,
                                 size_t *done, vyre_status *st) {
  vyre_device *device = dispatches[0]->pipeline->device;
  vyre_code code = VYRE_OK;
  *done = 0;
  size_t ready =
      prepare_launches(dispatches, count, are_independent, false, st, &code);
  if (ready > 0) code = vyre__device_check(device, st);
  if (ready > 0 && code == VYRE_OK) {
    code = device->backend->run_batch(device, &dispatches[0]->launch, done, st);
  }
  report_results(dispatches, count, *done, code);
  return code;
}

vyre_code vyre__command_list_run_encoded(vyre__prepared *const *dispatches,
                                         size_t count, vyre__command_list *list,
                                         size_t *done, vyre_status *st) {
  vyre_device *device = dispatches[0]->pipeline->device;
  vyre_code code = vyre__device_check(device, st);
  size_t launches = 0;
  *done = 0;
  if (code == VYRE_OK)
    (void)prepare_launches(dispatches, count, false, true, st, &code);
  if (code == VYRE_OK) code = device->backend->command_list_run(list, done, st);
  for (size_t i = 0; i < *done; i++) launches += list->items[i].launch != NULL;
  report_results(dispatches, count, launches, code);
  return code;
}

vyre__launch_totals vyre__command_list_totals(vyre__prepared *const *dispatches,
                                              size_t count) {
  vyre__launch_totals totals = {.launches = count};
  for (size_t i = 0; i < count; i++) {
    totals.input_bytes += dispatches[i]->host_in;
    totals.output_bytes += dispatches[i]->host_out;
    totals.copied_bytes += dispatches[i]->copies.copied_bytes;
  }
  return totals;
}

static void add_counters(vyre_device *device, const vyre__launch_totals *totals,
                         uint64_t times) {
  VYRE__COUNT(device, launches, times * totals->launches);
  VYRE__COUNT(device, input_bytes, times * totals->input_bytes);
  VYRE__COUNT(device, output_bytes, times * totals->output_bytes);
  if (totals->copied_bytes > 0) {
    VYRE__COUNT(device, copied_bytes, times * totals->copied_bytes);
  }
}

vyre_code vyre__command_list_run_again(vyre__command_list *list,
                                       const vyre__launch_totals *totals,
                                       size_t *done, vyre_status *st) {
  vyre_device *device = list->device;
  *done = 0;
  VYRE_TRY(vyre__device_check(device, st));
  vyre_code code = device->backend->command_list_run(list, done, st);
  if (code == VYRE_OK) {
    add_counters(device, totals, 1);
    return VYRE_OK;
  }
  vyre__launch_totals partial = {0};
  for (size_t i = 0; i < *done; i++) {
    const vyre__launch *launch = list->items[i].launch;
    if (!launch) continue;
    const vyre__prepared *prepared =
        (const vyre__prepared *)(const void *)((const char *)launch -
                                               offsetof(vyre__prepared,
                                                        launch));
    partial.launches++;
    partial.input_bytes += prepared->host_in;
    partial.output_bytes += prepared->host_out;
    partial.copied_bytes += prepared->copies.copied_bytes;
  }
  add_counters(device, &partial, 1);
  VYRE__COUNT(device, failures, 1);
  return code;
}

vyre_code vyre__command_list_run_loop(vyre__prepared *const *dispatches,
                                      size_t count, vyre__command_list *list,
                                      vyre__command_list_loop *loop,
                                      vyre_status *st) {
  vyre_device *device = list->device;
  vyre_code code = vyre__device_check(device, st);
  if (code == VYRE_OK)
    (void)prepare_launches(dispatches, count, false, true, st, &code);
  if (code == VYRE_OK)
    code = device->backend->command_list_loop(list, loop, st);
  vyre__launch_totals totals = vyre__command_list_totals(dispatches, count);
  if (loop->iterations > 0) add_counters(device, &totals, loop->iterations);
  if (code != VYRE_OK) VYRE__COUNT(device, failures, 1);
  return code;
}
