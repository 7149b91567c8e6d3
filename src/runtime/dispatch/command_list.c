/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/dispatch/command_list.h"

#include "base/status.h"
#include "runtime/core/trace.h"

/* A slot that is as the run leaves it. */
static bool is_settled(const vyre__prepared *run, const vyre_host_buffer *slot,
                       uint64_t size) {
  size_t alignment = vyre__host_alignment(run->pipeline->device);
  return slot->data && slot->size == size && slot->capacity >= size &&
         (uintptr_t)slot->data % alignment == 0 &&
         !run->desc->has_fresh_outputs;
}

/* Memory of outputs is bound for all before the first of them runs, and nobody
 * must see that: neither the runs before it, nor who finds that it was not
 * reached. So nothing is made or copied for it, and cleared by the backend. */
bool vyre__prepared_is_ready(const vyre__prepared *run) {
  const struct vyre__pipeline_state *inside = run->pipeline->state;
  bool clears = run->pipeline->device->backend->clears_outputs;
  for (size_t i = 0; i < run->pipeline->plan.output_count; i++) {
    const vyre__binding_info *port = inside->outputs[i];
    const vyre__bound_buffer *bound = &run->bound[port->index];
    const vyre_output *output = &run->outputs[i];
    if (output->new_buffer) return false;
    if (output->host_buffer &&
        !is_settled(run, output->host_buffer, bound->out_size)) {
      return false;
    }
    if (bound->out_size == 0 || vyre__in_place(bound)) continue;
    if (port->input != VYRE_NO_INDEX || !clears) return false;
    if (!bound->out && bound->out_buffer) return false;
  }
  return true;
}

static const vyre_output_stats none;

/* What comes back, and what is counted for all together. */
typedef struct tally {
  uint64_t launches, input_bytes, output_bytes;
} tally;

static void finish(vyre__prepared *run, const vyre_output_stats *stats,
                   tally *sums) {
  bool is_counted = stats || run->copies.copied_bytes > 0;
  if (!stats) stats = &none;
  if (run->has_reports) vyre__prepared_report(run, stats, VYRE_OK);
  sums->launches += run->launch.launches;
  if (is_counted) {
    vyre__prepared_count(run, stats);
    return;
  }
  sums->input_bytes += run->host_in;
  sums->output_bytes += run->host_out;
}

/* Gives how many are. st: told of the first only, where what stops the others is met
 * again when they are the first; of a piece, which runs all or nothing, of any. */
static size_t make_ready(vyre__prepared *const *runs, size_t count,
                         bool are_apart, bool is_piece, vyre_status *st,
                         vyre_code *code) {
  for (size_t i = 0; i < count; i++) {
    vyre__prepared *run = runs[i];
    if (!run->is_bound) {
      run->stats = (vyre_output_stats){0};
      *code =
          vyre__prepared_bind(run, &run->stats, i == 0 || is_piece ? st : NULL);
      if (*code != VYRE_OK) return i;
    }
    __builtin_prefetch(
        run->views); /* they are in one or two lines, as a rule */
    __builtin_prefetch((const char *)run->views + 64);
    run->launch.launches = 1;
    run->launch.is_timed = false;
    run->launch.is_independent = are_apart;
    run->launch.next = NULL;
    if (i > 0) runs[i - 1]->launch.next = &run->launch;
  }
  return count;
}

/* What is counted and told of the first @p done, and of the next if that failed. */
static void settle(vyre__prepared *const *runs, size_t count, size_t done,
                   vyre_code code) {
  vyre_device *device = runs[0]->pipeline->device;
  tally sums = {0};
  for (size_t i = 0; i < done; i++) {
    finish(runs[i], runs[i]->is_bound ? NULL : &runs[i]->stats, &sums);
  }
  if (code != VYRE_OK) {
    vyre__prepared *bad = done < count ? runs[done] : NULL;
    if (bad && bad->has_reports) {
      vyre__prepared_report(bad, bad->is_bound ? &none : &bad->stats, code);
    }
    VYRE__COUNT(device, failures, 1);
  }
  VYRE__COUNT(device, launches, sums.launches);
  VYRE__COUNT(device, input_bytes, sums.input_bytes);
  VYRE__COUNT(device, output_bytes, sums.output_bytes);
}

vyre_code vyre__command_list_run(vyre__prepared *const *runs, size_t count,
                                 bool are_apart, size_t *done,
                                 vyre_status *st) {
  vyre_device *device = runs[0]->pipeline->device;
  vyre_code code = VYRE_OK;
  *done = 0;
  size_t ready = make_ready(runs, count, are_apart, false, st, &code);
  if (ready > 0) code = vyre__device_check(device, st);
  if (ready > 0 && code == VYRE_OK) {
    code = device->backend->run_batch(device, &runs[0]->launch, done, st);
  }
  settle(runs, count, *done, code);
  return code;
}

vyre_code vyre__command_list_run_encoded(vyre__prepared *const *runs,
                                         size_t count,
                                         vyre__command_list *piece,
                                         size_t *done, vyre_status *st) {
  vyre_device *device = runs[0]->pipeline->device;
  vyre_code code = vyre__device_check(device, st);
  size_t launches = 0;
  *done = 0;
  if (code == VYRE_OK) (void)make_ready(runs, count, false, true, st, &code);
  if (code == VYRE_OK)
    code = device->backend->command_list_run(piece, done, st);
  for (size_t i = 0; i < *done; i++) launches += piece->items[i].launch != NULL;
  settle(runs, count, launches, code);
  return code;
}

vyre__launch_totals vyre__command_list_totals(vyre__prepared *const *runs,
                                              size_t count) {
  vyre__launch_totals sums = {.launches = count};
  for (size_t i = 0; i < count; i++) {
    sums.input_bytes += runs[i]->host_in;
    sums.output_bytes += runs[i]->host_out;
    sums.copied_bytes += runs[i]->copies.copied_bytes;
  }
  return sums;
}

static void count_all(vyre_device *device, const vyre__launch_totals *sums,
                      uint64_t times) {
  VYRE__COUNT(device, launches, times * sums->launches);
  VYRE__COUNT(device, input_bytes, times * sums->input_bytes);
  VYRE__COUNT(device, output_bytes, times * sums->output_bytes);
  if (sums->copied_bytes > 0) {
    VYRE__COUNT(device, copied_bytes, times * sums->copied_bytes);
  }
}

vyre_code vyre__command_list_run_again(vyre__command_list *piece,
                                       const vyre__launch_totals *sums,
                                       size_t *done, vyre_status *st) {
  vyre_device *device = piece->device;
  *done = 0;
  VYRE_TRY(vyre__device_check(device, st));
  vyre_code code = device->backend->command_list_run(piece, done, st);
  if (code == VYRE_OK) {
    count_all(device, sums, 1);
    return VYRE_OK;
  }
  vyre__launch_totals some = {0};
  for (size_t i = 0; i < *done; i++) {
    const vyre__launch *launch = piece->items[i].launch;
    if (!launch) continue;
    const vyre__prepared *run =
        (const vyre__prepared *)(const void *)((const char *)launch -
                                               offsetof(vyre__prepared,
                                                        launch));
    some.launches++;
    some.input_bytes += run->host_in;
    some.output_bytes += run->host_out;
    some.copied_bytes += run->copies.copied_bytes;
  }
  count_all(device, &some, 1);
  VYRE__COUNT(device, failures, 1);
  return code;
}

vyre_code vyre__command_list_run_loop(vyre__prepared *const *runs, size_t count,
                                      vyre__command_list *piece,
                                      vyre__command_list_loop *loop,
                                      vyre_status *st) {
  vyre_device *device = piece->device;
  vyre_code code = vyre__device_check(device, st);
  if (code == VYRE_OK) (void)make_ready(runs, count, false, true, st, &code);
  if (code == VYRE_OK)
    code = device->backend->command_list_loop(piece, loop, st);
  vyre__launch_totals sums = vyre__command_list_totals(runs, count);
  if (loop->iterations > 0) count_all(device, &sums, loop->iterations);
  if (code != VYRE_OK) VYRE__COUNT(device, failures, 1);
  return code;
}
