/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes command lists, and updates reports and counters for their
 * dispatches. */
#include "runtime/dispatch/command_list.h"

#include "base/attributes.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/host_buffer.h"

/* Returns true if binding an output to @p buffer would not change it. */
static bool needs_no_change(const vyre__prepared *prepared,
                            const vyre_host_buffer *buffer, uint64_t size,
                            size_t alignment) {
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
    size_t alignment =
        vyre__binding_alignment(prepared->pipeline->device, info->binding);
    if (output->host_buffer && !needs_no_change(prepared, output->host_buffer,
                                                bound->out_size, alignment)) {
      return false;
    }
    if (bound->out_size == 0 || vyre__in_place(bound)) continue;
    if (info->input != VYRE_NO_INDEX || !clears) return false;
    if (!bound->out && bound->out_buffer) return false;
  }
  return true;
}

static vyre__prepared *prepared_of(vyre__launch *launch) {
  return (vyre__prepared *)(void *)((char *)launch -
                                    offsetof(vyre__prepared, launch));
}

/* Refuses a command that the backend does not execute. */
VYRE__RARE
static vyre_code wrong_kind(const vyre_device *device, vyre__command_kind kind,
                            vyre_status *st) {
  static const char *const plurals[] = {
#define X(name, plural) plural,
      VYRE__COMMAND_MAP(X)
#undef X
  };
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"command_kind", kind}),
      "submit the work as separate dispatches, with grids from the host",
      "device '%s' does not execute %s in command lists",
      vyre_device_name(device), plurals[kind]);
}

/* Binds the outputs of a launch. Returns VYRE_OK, and true in *is_changed if
 * its bindings differ from those of the last execution. */
static vyre_code bind_launch(vyre__command *command, bool *is_changed,
                             vyre_status *st) {
  vyre__prepared *prepared = prepared_of(command->launch);
  if (!prepared->is_bound) {
    prepared->stats = (vyre_output_stats){0};
    VYRE_TRY(vyre__prepared_bind(prepared, &prepared->stats, st));
  }
  /* views usually take one or two cache lines */
  __builtin_prefetch(prepared->views);
  __builtin_prefetch((const char *)prepared->views + 64);
  prepared->launch.launches = 1;
  prepared->launch.is_timed = false;
  uint64_t max = prepared->launch.max_loop_iterations;
  *is_changed |= command->bound.batch != prepared->batch ||
                 command->bound.max_loop_iterations != max;
  command->bound.batch = prepared->batch;
  command->bound.max_loop_iterations = max;
  return VYRE_OK;
}

/* Binds the outputs of all launches, up to the first failure. A failure is
 * reported if no command can execute before it. Returns the number of commands
 * that can execute. */
static size_t bind_launches(vyre__command_list *list, vyre_code *code,
                            vyre_status *st) {
  bool is_loop =
      list->count > 0 && list->commands[0].kind == VYRE__COMMAND_LOOP;
  bool is_changed = list->version == 0;
  size_t i = 0;
  for (*code = VYRE_OK; i < list->count; i++) {
    vyre__command *command = &list->commands[i];
    vyre_status *reported = i == 0 || is_loop ? st : NULL;
    if (command->kind != VYRE__COMMAND_LAUNCH &&
        !vyre__takes_commands(list->device, command->kind) &&
        !(list->groups && list->device->backend->wave_threads)) {
      *code = wrong_kind(list->device, command->kind, reported);
    } else if (command->launch) {
      *code = bind_launch(command, &is_changed, reported);
    }
    if (*code != VYRE_OK) break;
  }
  list->version += is_changed;
  return i;
}

/* Fails because the backend reported an impossible number of commands. */
VYRE__RARE
static vyre_code wrong_count(const vyre_device *device, size_t done,
                             size_t count, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_NONE, NULL,
      VYRE_NUMBERS({"done", done}, {"commands", count}),
      "correct `execute` of the backend: after a success, *done is at least 1 "
      "and at most the number of commands",
      "backend '%s' reported success after %zu of %zu commands",
      device->backend->name, done, count);
}

/* Executes the first @p end commands. A loop that the device does not support
 * leaves *done at 0. */
static vyre_code execute(vyre__command_list *list, size_t end, size_t *done,
                         vyre_status *st) {
  bool is_loop = list->commands[0].kind == VYRE__COMMAND_LOOP;
  *done = 0;
  for (size_t i = 0; i < end; i++) {
    if (list->commands[i].launch) vyre__launch_assert(list->commands[i].launch);
  }
  do {
    size_t some = 0, left = end - *done;
    vyre_code code =
        list->device->backend->execute(list, *done, end, &some, st);
    if (code != VYRE_OK) { /* one of them failed */
      *done += some < left ? some : left - 1;
      return code;
    }
    if (is_loop && some == 0) return VYRE_OK;
    if (some == 0 || some > left) {
      return wrong_count(list->device, some, left, st);
    }
    *done += some;
  } while (*done < end);
  return VYRE_OK;
}

static vyre_code check_and_execute(vyre__command_list *list, size_t end,
                                   size_t *done, vyre_status *st) {
  *done = 0;
  VYRE_TRY(vyre__device_check(list->device, st));
  return execute(list, end, done, st);
}

static const vyre_output_stats no_stats;

static void report_one(vyre__prepared *prepared, vyre__launch_totals *totals) {
  const vyre_output_stats *stats =
      prepared->is_bound ? &no_stats : &prepared->stats;
  if (prepared->has_reports) vyre__prepared_report(prepared, stats, VYRE_OK);
  totals->launches += prepared->launch.launches;
  if (!prepared->is_bound || prepared->copies.copied_bytes > 0) {
    vyre__prepared_count(prepared, stats);
    return;
  }
  totals->input_bytes += prepared->host_in;
  totals->output_bytes += prepared->host_out;
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

/* Writes reports and counters of the first @p done commands, and of the next
 * one if it failed. The counters of the device are added once. */
static void report_results(const vyre__command_list *list, size_t done,
                           vyre_code code) {
  vyre__launch_totals totals = {0};
  for (size_t i = 0; i < done; i++) {
    vyre__launch *launch = list->commands[i].launch;
    if (launch) report_one(prepared_of(launch), &totals);
  }
  add_counters(list->device, &totals, 1);
  if (code == VYRE_OK) return;
  VYRE__COUNT(list->device, failures, 1);
  vyre__launch *launch =
      done < list->count ? list->commands[done].launch : NULL;
  if (!launch) return;
  const vyre__prepared *failed = prepared_of(launch);
  if (!failed->has_reports) return;
  vyre__prepared_report(failed, failed->is_bound ? &no_stats : &failed->stats,
                        code);
}

vyre_code vyre__command_list_execute(vyre__command_list *list, size_t *done,
                                     vyre_status *st) {
  vyre_code code;
  *done = 0;
  size_t ready = bind_launches(list, &code, st);
  if (ready > 0) code = check_and_execute(list, ready, done, st);
  report_results(list, *done, code);
  return code;
}

vyre_code vyre__command_list_repeat(vyre__command_list *list,
                                    const vyre__launch_totals *totals,
                                    size_t *done, vyre_status *st) {
  *done = 0;
  VYRE_TRY(vyre__device_check(list->device, st));
  vyre_code code = execute(list, list->count, done, st);
  if (code == VYRE_OK && *done == list->count) {
    add_counters(list->device, totals, 1);
  } else {
    report_results(list, *done, code);
  }
  return code;
}

vyre_code vyre__command_list_loop(vyre__command_list *list,
                                  const vyre__launch_totals *totals,
                                  size_t *done, vyre_status *st) {
  vyre_code code;
  *done = 0;
  size_t ready = bind_launches(list, &code, st);
  if (code == VYRE_OK) code = check_and_execute(list, ready, done, st);
  uint64_t iterations = list->commands[0].loop.iterations;
  if (iterations > 0) add_counters(list->device, totals, iterations);
  if (code != VYRE_OK) VYRE__COUNT(list->device, failures, 1);
  return code;
}

vyre__launch_totals vyre__command_list_totals(const vyre__command_list *list) {
  vyre__launch_totals totals = {0};
  for (size_t i = 0; i < list->count; i++) {
    if (!list->commands[i].launch) continue;
    const vyre__prepared *prepared = prepared_of(list->commands[i].launch);
    totals.launches++;
    totals.input_bytes += prepared->host_in;
    totals.output_bytes += prepared->host_out;
    totals.copied_bytes += prepared->copies.copied_bytes;
  }
  return totals;
}

/* --- batches -------------------------------------------------------------- */

/* Returns the list that @p keeper has, with memory for @p count commands, or
 * NULL without memory. */
static vyre__command_list *kept_list(vyre__prepared *keeper, size_t count) {
  vyre__command_list *list = &keeper->batch_list;
  size_t known = keeper->batch_capacity;
  if (!vyre__reserve(list->device->allocator, &list->commands,
                     &keeper->batch_capacity, count, sizeof *list->commands,
                     false)) {
    return NULL;
  }
  for (; known < keeper->batch_capacity; known++) {
    list->commands[known] = (vyre__command){0};
  }
  return list;
}

static vyre_code execute_short(vyre__prepared *const *dispatches, size_t count,
                               size_t *done, vyre_status *st) {
  vyre__command commands[VYRE__MAX_SHORT_LIST];
  vyre__command_list list = {.device = dispatches[0]->pipeline->device,
                             .commands = commands,
                             .count = count,
                             .is_independent = true};
  for (size_t i = 0; i < count; i++) {
    commands[i] = (vyre__command){.launch = &dispatches[i]->launch};
  }
  return vyre__command_list_execute(&list, done, st);
}

vyre_code vyre__batch_execute(vyre__prepared *keeper,
                              vyre__prepared *const *dispatches, size_t count,
                              size_t *done, vyre_status *st) {
  if (!dispatches[0]->pipeline->device->backend->list_release) {
    return execute_short(dispatches, count, done, st);
  }
  vyre__command_list *list = kept_list(keeper, count);
  if (!list) {
    vyre_code code = vyre__prepared_execute(dispatches[0], st);
    *done = code == VYRE_OK;
    return code;
  }
  list->version += list->count != count;
  list->count = count;
  for (size_t i = 0; i < count; i++) {
    if (list->commands[i].launch == &dispatches[i]->launch) continue;
    list->commands[i] = (vyre__command){.launch = &dispatches[i]->launch};
  }
  return vyre__command_list_execute(list, done, st);
}
