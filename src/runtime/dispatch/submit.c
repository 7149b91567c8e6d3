/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The one door that all dispatches go through. */
#include <string.h>

#include "vyre/dispatch.h"

#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/trace.h"
#include "runtime/dispatch/command_list.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/runtime.h"

/* A batch on its way. */
typedef struct batch {
  vyre_fence fence; /* unused if somebody waits in the call */
  vyre_pipeline *pipeline;
  size_t count;
  vyre__prepared *runs[]; /* prepared */
} batch;

/* Says which item it was and what became of the others, if there are any. */
static vyre_code name_item(vyre_code code, size_t item, size_t count,
                           bool has_begun, vyre_status *st) {
  if (code == VYRE_OK || count == 1) return code;
  if (has_begun) {
    vyre__status_where(st, "item", item,
                       "items[%zu] of %zu (%zu before it ran, %zu after it did "
                       "not)",
                       item, count, item, count - 1 - item);
  } else {
    vyre__status_where(st, "item", item, "items[%zu] of %zu (none of them ran)",
                       item, count);
  }
  return code;
}

/* spare: runs of the pipeline that the batch has; or NULL. */
static vyre_code prepare(vyre_pipeline *pipeline,
                         const vyre_dispatch_desc *desc,
                         vyre__prepared_list *spare, vyre__prepared **out,
                         vyre_status *st) {
  vyre_pipeline *variant = pipeline;
  if (desc->variant || desc->max_loop_iterations) {
    VYRE_TRY(vyre__pipeline_variant(pipeline, desc, &variant, st));
  }
  if (spare && spare->first && variant == pipeline) {
    *out = spare->first;
    spare->first = spare->first->next_spare;
    spare->count--;
  } else {
    VYRE_TRY(vyre__prepared_acquire(variant, out, st));
  }
  bool is_same = vyre__prepared_matches(*out, desc);
  if (!is_same && (*out)->is_cached && (*out)->home) {
    *out = vyre__prepared_second(*out, desc);
    is_same = vyre__prepared_matches(*out, desc);
  }
  vyre_code code = vyre__prepared_check_as(*out, desc, is_same, st);
  if (code == VYRE_OK) return VYRE_OK;
  vyre__prepared_set_outputs(*out);
  *out = NULL;
  return code;
}

static void give_all(vyre_pipeline *pipeline, vyre__prepared **runs,
                     size_t count) {
  vyre__prepared_list given = {0};
  for (size_t i = 0; i < count; i++) {
    vyre__prepared_set_output(runs[i], pipeline, &given);
  }
  vyre__prepared_list_return(pipeline, &given);
}

/* The time of the call, if anybody asks for it. */
static uint64_t call_time(const vyre_dispatch_desc *items, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (items[i].timing) return vyre__clock_ns();
  }
  return 0;
}

static vyre_code prepare_all(vyre_pipeline *pipeline,
                             const vyre_dispatch_desc *items, size_t count,
                             bool is_staged, vyre__prepared **runs,
                             vyre_status *st) {
  vyre__prepared_list spare = vyre__prepared_list_acquire(pipeline);
  uint64_t called = call_time(items, count);
  size_t known = spare.first ? vyre__prepared_cached_size(spare.first) : 0;
  for (size_t i = 0; i < count; i++) {
    if (spare.first && spare.first->next_spare) { /* two ahead */
      vyre__prepared_fetch(spare.first->next_spare->next_spare, known);
    }
    vyre_code code = prepare(pipeline, &items[i], &spare, &runs[i], st);
    if (code == VYRE_OK) {
      runs[i]->item = (uint32_t)i;
      runs[i]->called_ns = called;
      continue;
    }
    vyre__prepared_list_return(pipeline, &spare);
    give_all(pipeline, runs, i);
    return name_item(code, i, count, false, st);
  }
  vyre__prepared_list_return(pipeline, &spare);
  size_t item = 0;
  vyre_code code = vyre__batch_check_overlap(runs, count, &item, st);
  for (size_t i = 0; is_staged && i < count && code == VYRE_OK; i++) {
    code = vyre__prepared_stage(runs[item = i], st);
  }
  if (code != VYRE_OK) give_all(pipeline, runs, count);
  return name_item(code, item, count, false, st);
}

/* Queued work may write the resident buffers that are bound here. */
static void wait_for_turn(vyre_device *device, const vyre__prepared *run) {
  if (run->holds_buffers && vyre__device_is_busy(device)) {
    vyre__queue_wait(device);
  }
}

/* Who gives something else each time does not pay for what is never asked. */
static bool is_worth_it(vyre__prepared *run) {
  uint32_t changes = run->miss_count++;
  return changes < VYRE__PATIENCE || changes % VYRE__SELDOM == 0;
}

/* With @p item, the caller still waits: what it gave is known the next time, unless
 * the run holds buffers and has no place where who frees them would find it. */
static void settle(vyre__prepared *run, const vyre_dispatch_desc *item,
                   vyre_code code) {
  if (code != VYRE_OK) {
    vyre__prepared_invalidate(run);
  } else if (run->is_cached) {
    run->miss_count = 0;
  } else if (item && (run->home || !run->holds_buffers) && is_worth_it(run)) {
    vyre__prepared_cache(run, item);
  }
}

static vyre_code execute(vyre__prepared *run, const vyre_dispatch_desc *item,
                         vyre_status *st) {
  vyre_code code = vyre__prepared_execute(run, st);
  settle(run, item, code);
  return code;
}

/* As many as the backend takes at once, or one. *done: how many ended well. */
static vyre_code execute_some(vyre__prepared **runs,
                              const vyre_dispatch_desc *items, size_t count,
                              bool may_stretch, size_t *done, vyre_status *st) {
  size_t fit = 0;
  size_t most = vyre__command_list_max(runs[0]->pipeline->device);
  if (count > most) count = most;
  while (may_stretch && fit < count && vyre__prepared_fits(runs[fit])) fit++;
  vyre_code code;
  if (fit > 1) {
    code = vyre__command_list_run(runs, fit, true, done, st);
  } else {
    code = vyre__prepared_execute(runs[0], st);
    *done = code == VYRE_OK;
  }
  for (size_t i = 0; i < *done; i++) {
    settle(runs[i], items ? &items[i] : NULL, VYRE_OK);
  }
  if (code != VYRE_OK) settle(runs[*done], NULL, code);
  return code;
}

/* In order; what comes after a failure is not run. Each is given back soon after it
 * is over, while it is near. */
static vyre_code execute_all(vyre_pipeline *pipeline, vyre__prepared **runs,
                             const vyre_dispatch_desc *items, size_t count,
                             vyre_status *st) {
  vyre__prepared_list given = {0};
  bool may_stretch = vyre__takes_command_lists(pipeline->device);
  vyre_code code = VYRE_OK;
  for (size_t i = 0; i < count;) {
    size_t done = count - i;
    if (code == VYRE_OK) {
      code = execute_some(runs + i, items ? items + i : NULL, count - i,
                          may_stretch, &done, st);
      code = name_item(code, i + done, count, true, st);
      done += code != VYRE_OK;
    }
    for (size_t end = i + done; i < end; i++) {
      vyre__prepared_set_output(runs[i], pipeline, &given);
    }
  }
  vyre__prepared_list_return(pipeline, &given);
  return code;
}

static vyre_code batch_work(vyre_fence *fence, vyre_status *st) {
  batch *b = (batch *)fence;
  size_t count = b->count;
  b->count = 0; /* they are given back */
  return execute_all(b->pipeline, b->runs, NULL, count, st);
}

static void batch_finish(vyre_fence *fence) {
  batch *b = (batch *)fence;
  give_all(b->pipeline, b->runs, b->count);
  vyre_pipeline_release(b->pipeline);
}

static vyre_code submit_later(vyre_pipeline *pipeline,
                              const vyre_dispatch_desc *items, size_t count,
                              vyre_fence **out, vyre_status *st) {
  vyre_device *device = pipeline->device;
  vyre_fence *fence;
  size_t size = sizeof(batch) + count * sizeof(vyre__prepared *);
  VYRE_TRY(vyre__fence_make(device->context, size, &fence, st));
  batch *b = (batch *)fence;
  b->count = count;
  vyre_code code = prepare_all(pipeline, items, count, true, b->runs, st);
  if (code != VYRE_OK) {
    vyre__fence_discard(fence);
    return code;
  }
  b->pipeline = vyre_pipeline_retain(pipeline);
  fence->work = batch_work;
  fence->cleanup = batch_finish;
  *out = fence;
  code = vyre__queue_push(device, &device->state->queue, fence, st);
  if (code != VYRE_OK) {
    *out = NULL;
    batch_finish(fence);
    vyre__fence_discard(fence);
  }
  return code;
}

VYRE__RARE
static void trace_submit(const vyre_pipeline *pipeline, uint64_t start,
                         size_t count, bool is_later, vyre_code code) {
  vyre__trace_end(pipeline->device->context, start, .kind = VYRE__TRACE_SUBMIT,
                  .name = is_later ? "submit" : "submit and run",
                  .device = pipeline->device, .result = code,
                  .kernel = vyre_program_name(pipeline->program),
                  .numbers = {{"items", count}});
}

/* One dispatch that somebody waits for: what nearly all are. */
static vyre_code submit_one(vyre_pipeline *pipeline,
                            const vyre_dispatch_desc *desc, vyre_status *st) {
  if (desc->result) *desc->result = VYRE_UNKNOWN;
  VYRE_TRY(vyre__device_check(pipeline->device, st));
  uint64_t start = vyre__trace_begin(pipeline->device->context);
  uint64_t called = desc->timing ? vyre__clock_ns() : 0;
  vyre__prepared *run;
  vyre_code code = prepare(pipeline, desc, NULL, &run, st);
  if (code == VYRE_OK) {
    run->item = 0;
    run->called_ns = called;
    wait_for_turn(pipeline->device, run);
    code = execute(run, desc, st);
    vyre__prepared_set_outputs(run);
  }
  if (start) trace_submit(pipeline, start, 1, false, code);
  return code;
}

enum { RUNS_ON_STACK = 16 };

static vyre_code submit_now(vyre_pipeline *pipeline,
                            const vyre_dispatch_desc *items, size_t count,
                            vyre_status *st) {
  vyre__prepared *few[RUNS_ON_STACK], **runs = few;
  vyre_device *device = pipeline->device;
  vyre__scratch_block *room = NULL;
  if (count > RUNS_ON_STACK) {
    room = vyre__scratch_acquire(device, VYRE__SCRATCH_PREPARED,
                                 count * sizeof *runs);
    if (!room) return vyre__no_memory(st, "vyre_submit", "items", count);
    runs = (vyre__prepared **)(void *)room->bytes;
  }
  vyre_code code = prepare_all(pipeline, items, count, false, runs, st);
  for (size_t i = 0; i < count && code == VYRE_OK; i++) {
    wait_for_turn(device, runs[i]);
  }
  if (code == VYRE_OK) {
    code = execute_all(pipeline, runs, items, count, st);
  }
  vyre__scratch_return(device, VYRE__SCRATCH_PREPARED, room);
  return code;
}

vyre_code vyre_submit(vyre_pipeline *pipeline, const vyre_dispatch_desc *items,
                      size_t count, vyre_fence **fence, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_submit";
  if (fence) *fence = NULL;
  if (!pipeline) return vyre__null_argument(st, who, "pipeline");
  if (!items && count > 0) return vyre__null_argument(st, who, "items");
  if (count > SIZE_MAX / 2 / sizeof(void *)) {
    return vyre__no_memory(st, who, "items", count);
  }
  if (count == 1 && !fence) return submit_one(pipeline, items, st);
  for (size_t i = 0; i < count; i++) {
    if (items[i].result) *items[i].result = VYRE_UNKNOWN;
  }
  VYRE_TRY(vyre__device_check(pipeline->device, st));
  uint64_t start = vyre__trace_begin(pipeline->device->context);
  vyre_code code = fence ? submit_later(pipeline, items, count, fence, st)
                         : submit_now(pipeline, items, count, st);
  if (start) trace_submit(pipeline, start, count, fence != NULL, code);
  return code;
}

vyre_code vyre_dispatch(vyre_pipeline *pipeline, const vyre_dispatch_desc *desc,
                        vyre_status *st) {
  vyre__status_begin(st);
  if (!pipeline) return vyre__null_argument(st, "vyre_dispatch", "pipeline");
  if (!desc) return vyre__null_argument(st, "vyre_dispatch", "desc");
  return submit_one(pipeline, desc, st);
}

vyre_code vyre_device_run_program(vyre_device *device, vyre_program *program,
                                  const vyre_dispatch_desc *desc,
                                  vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_device_run_program";
  if (!device) return vyre__null_argument(st, who, "device");
  if (!program) return vyre__null_argument(st, who, "program");
  if (!desc) return vyre__null_argument(st, who, "desc");
  vyre_pipeline *pipeline;
  vyre_dispatch_desc as_compiled = *desc;
  as_compiled.variant = NULL;
  VYRE_TRY(vyre__pipeline_compile_fresh(device, program, desc->variant,
                                        &pipeline, st));
  vyre_code code =
      vyre__pipeline_count(pipeline, desc->max_loop_iterations, st);
  if (code == VYRE_OK) code = submit_one(pipeline, &as_compiled, st);
  vyre_pipeline_release(pipeline);
  return code;
}

vyre_code vyre_dispatch_grid(const vyre_pipeline *pipeline,
                             const vyre_dispatch_desc *desc, uint32_t out[3],
                             vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_dispatch_grid";
  if (!out) return vyre__null_argument(st, who, "out");
  out[0] = out[1] = out[2] = 0;
  if (!pipeline) return vyre__null_argument(st, who, "pipeline");
  if (!desc) return vyre__null_argument(st, who, "desc");
  /* A run is taken and given back; the pipeline stays what it was. */
  vyre_pipeline *same = (vyre_pipeline *)(uintptr_t)pipeline, *variant;
  vyre_dispatch_desc unlimited = *desc; /* the limit does not change the grid */
  unlimited.max_loop_iterations = 0;
  VYRE_TRY(vyre__pipeline_variant(same, &unlimited, &variant, st));
  vyre__prepared *run;
  VYRE_TRY(vyre__prepared_acquire(variant, &run, st));
  run->desc = desc;
  run->host_in = run->host_out = 0;
  vyre_code code = vyre__prepared_resolve(run, st);
  if (code == VYRE_OK) {
    code = vyre__grid_infer(variant, desc->grid, run->views, out, st);
  }
  vyre__prepared_set_outputs(run);
  return code;
}

/* --- small things ------------------------------------------------------------*/

void vyre_check_report_deinit(vyre_check_report *report) {
  if (!report) return;
  vyre_allocator allocator = report->arena.allocator;
  vyre_arena_deinit(&report->arena);
  *report = (vyre_check_report){0};
  report->arena.allocator = allocator;
}

const char *vyre_finding_name(vyre_finding_kind kind) {
#define VYRE_X2(name, text) [name] = (text),
  static const char *const names[] = {VYRE_FINDING_MAP(VYRE_X2)};
#undef VYRE_X2
  return (unsigned)kind < VYRE_FINDING_COUNT ? names[kind] : "?";
}

const char *vyre_copy_reason_name(vyre_copy_reason reason) {
#define VYRE_X2(name, text) [name] = (text),
  static const char *const names[] = {VYRE_COPY_MAP(VYRE_X2)};
#undef VYRE_X2
  return (unsigned)reason < VYRE_COPY_COUNT ? names[reason] : "?";
}
