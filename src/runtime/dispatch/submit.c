/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Entry points of all dispatch forms: prepares one dispatch or a batch, then
 * runs it on the calling thread or on the queue of the device. */
#include <string.h>

#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"

#include "base/attributes.h"
#include "base/clock.h"
#include "base/enum_name.h"
#include "base/print.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"
#include "runtime/core/work_queue.h"
#include "runtime/dispatch/batch_overlap.h"
#include "runtime/dispatch/bind.h"
#include "runtime/dispatch/command_list.h"
#include "runtime/dispatch/grid.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/dispatch/prepared_match.h"
#include "runtime/memory/scratch_pool.h"
#include "runtime/tune/apply.h"

/* Batch that was submitted with a fence. */
typedef struct batch {
  vyre_fence fence; /* first member: the fence is the object */
  vyre_pipeline *pipeline;
  size_t count;
  vyre__prepared *dispatches[]; /* checked and staged */
} batch;

/* Adds the item of a batch, and the fate of the others, to the status of a
 * failure. */
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

/* Acquires a prepared dispatch and checks @p desc. @p spare: prepared
 * dispatches that the batch acquired, or NULL. */
static vyre_code prepare(vyre_pipeline *pipeline,
                         const vyre_dispatch_desc *desc,
                         vyre__prepared_list *spare, vyre__prepared **out,
                         vyre_status *st) {
  vyre_pipeline *variant = pipeline;
  for (size_t i = 0; desc->output_buffers && i < desc->output_buffer_count; i++)
    desc->output_buffers[i] = (vyre_buffer){0};
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
  bool matches = vyre__prepared_matches(*out, desc);
  if (!matches && (*out)->is_cached && (*out)->home) {
    *out = vyre__prepared_second(*out, desc);
    matches = vyre__prepared_matches(*out, desc);
  }
  vyre_code code = vyre__prepared_check_as(*out, desc, matches, st);
  if (code == VYRE_OK) return VYRE_OK;
  vyre__prepared_return(*out);
  *out = NULL;
  return code;
}

static void return_all(vyre_pipeline *pipeline, vyre__prepared **dispatches,
                       size_t count) {
  vyre__prepared_list returned = {0};
  for (size_t i = 0; i < count; i++) {
    vyre__prepared_list_append(&returned, pipeline, dispatches[i]);
  }
  vyre__prepared_list_return(pipeline, &returned);
}

/* Returns the time of the call if an item asks for timing, else 0. */
static uint64_t call_time(const vyre_dispatch_desc *items, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (items[i].timing) return vyre__clock_ns();
  }
  return 0;
}

static vyre_code prepare_all(vyre_pipeline *pipeline,
                             const vyre_dispatch_desc *items, size_t count,
                             bool is_staged, vyre__prepared **dispatches,
                             vyre_status *st) {
  vyre__prepared_list spare = vyre__prepared_list_acquire(pipeline);
  uint64_t called = call_time(items, count);
  size_t cached_size =
      spare.first ? vyre__prepared_cached_size(spare.first) : 0;
  for (size_t i = 0; i < count; i++) {
    /* prefetch the one after the next */
    if (spare.first && spare.first->next_spare) {
      vyre__prepared_fetch(spare.first->next_spare->next_spare, cached_size);
    }
    vyre_code code = prepare(pipeline, &items[i], &spare, &dispatches[i], st);
    if (code == VYRE_OK) {
      dispatches[i]->item = (uint32_t)i;
      dispatches[i]->called_ns = called;
      continue;
    }
    vyre__prepared_list_return(pipeline, &spare);
    return_all(pipeline, dispatches, i);
    return name_item(code, i, count, false, st);
  }
  vyre__prepared_list_return(pipeline, &spare);
  size_t item = 0;
  vyre_code code = vyre__batch_check_overlap(dispatches, count, &item, st);
  for (size_t i = 0; is_staged && i < count && code == VYRE_OK; i++) {
    code = vyre__prepared_stage(dispatches[item = i], st);
  }
  if (code != VYRE_OK) return_all(pipeline, dispatches, count);
  return name_item(code, item, count, false, st);
}

/* Waits for the queue if device buffers are bound: queued work may write them.
 */
static void wait_for_queue(vyre_device *device,
                           const vyre__prepared *prepared) {
  if (prepared->holds_buffers && vyre__device_is_busy(device)) {
    vyre__queue_wait(device);
  }
}

/* Returns true if the bindings should be cached. Callers that change them each
 * time pay for it only once in VYRE__SELDOM dispatches. */
static bool should_cache(vyre__prepared *prepared) {
  uint32_t misses = prepared->miss_count++;
  return misses < VYRE__PATIENCE || misses % VYRE__SELDOM == 0;
}

/* Caches the bindings after a dispatch, or invalidates them after a failure.
 * Without @p item, the memory of the caller may be gone: nothing is cached. A
 * prepared dispatch that holds buffers needs an entry in the pipeline, where
 * vyre_buffer_destroy finds it. */
static void update_cache(vyre__prepared *prepared,
                         const vyre_dispatch_desc *item, vyre_code code) {
  if (code != VYRE_OK) {
    vyre__prepared_invalidate(prepared);
  } else if (prepared->is_cached) {
    prepared->miss_count = 0;
  } else if (item && (prepared->home || !prepared->holds_buffers) &&
             should_cache(prepared)) {
    vyre__prepared_cache(prepared, item);
  }
}

static vyre_code execute(vyre__prepared *prepared,
                         const vyre_dispatch_desc *item, vyre_status *st) {
  vyre_code code = vyre__prepared_execute(prepared, st);
  update_cache(prepared, item, code);
  return code;
}

/* Returns the number of dispatches at the start that can form a command list.
 * A list that is kept in a variant has no other pipelines: the variants of a
 * pipeline live as long as the pipeline, but not as long as each other. */
static size_t count_fitting(const vyre_pipeline *pipeline,
                            vyre__prepared *const *dispatches, size_t count) {
  const vyre_device *device = pipeline->device;
  const vyre_pipeline *first = dispatches[0]->pipeline;
  bool may_mix = first == pipeline || !device->backend->list_release;
  size_t max = vyre__command_list_max(device), fitting = 0;
  if (count > max) count = max;
  while (fitting < count && vyre__prepared_fits(dispatches[fitting]) &&
         (may_mix || dispatches[fitting]->pipeline == first)) {
    fitting++;
  }
  return fitting;
}

/* A batch while it executes. */
typedef struct execution {
  const vyre_pipeline *pipeline;
  vyre__prepared_list returned;
  vyre__prepared *keeper; /* of the last list; NULL: the first dispatch */
  bool may_list;
} execution;

/* Returns the prepared dispatch that keeps the list of the dispatches that
 * begin with @p first. A pipeline keeps only some prepared dispatches of a long
 * batch, so the later lists belong to the first of these. */
static vyre__prepared *next_keeper(execution *e, vyre__prepared *first) {
  vyre__prepared *last = e->keeper ? e->keeper : e->returned.first;
  if (first->pipeline != e->pipeline || !last || !last->next_spare) {
    return first;
  }
  return e->keeper = last->next_spare;
}

/* Executes as many dispatches as the backend takes at once, or one. *done is
 * the number that succeeded. */
static vyre_code execute_some(execution *e, vyre__prepared **dispatches,
                              const vyre_dispatch_desc *items, size_t count,
                              size_t *done, vyre_status *st) {
  size_t fitting =
      e->may_list ? count_fitting(e->pipeline, dispatches, count) : 0;
  vyre_code code;
  if (fitting > 1) {
    code = vyre__batch_execute(next_keeper(e, dispatches[0]), dispatches,
                               fitting, done, st);
  } else {
    code = vyre__prepared_execute(dispatches[0], st);
    *done = code == VYRE_OK;
  }
  for (size_t i = 0; i < *done; i++) {
    update_cache(dispatches[i], items ? &items[i] : NULL, VYRE_OK);
  }
  if (code != VYRE_OK) update_cache(dispatches[*done], NULL, code);
  return code;
}

/* Executes all dispatches in order, up to the first failure. Each prepared
 * dispatch is returned while it is still in the CPU cache. */
static vyre_code execute_all(vyre_pipeline *pipeline,
                             vyre__prepared **dispatches,
                             const vyre_dispatch_desc *items, size_t count,
                             vyre_status *st) {
  execution e = {.pipeline = pipeline,
                 .may_list = vyre__takes_command_lists(pipeline->device)};
  vyre_code code = VYRE_OK;
  for (size_t i = 0; i < count;) {
    size_t done = count - i;
    if (code == VYRE_OK) {
      code = execute_some(&e, dispatches + i, items ? items + i : NULL,
                          count - i, &done, st);
      code = name_item(code, i + done, count, true, st);
      done += code != VYRE_OK;
    }
    for (size_t end = i + done; i < end; i++) {
      vyre__prepared_list_append(&e.returned, pipeline, dispatches[i]);
    }
  }
  vyre__prepared_list_return(pipeline, &e.returned);
  return code;
}

static vyre_code batch_work(vyre_fence *fence, vyre_status *st) {
  batch *b = (batch *)fence;
  size_t count = b->count;
  b->count = 0; /* execute_all returns them */
  return execute_all(b->pipeline, b->dispatches, NULL, count, st);
}

static void batch_cleanup(vyre_fence *fence) {
  batch *b = (batch *)fence;
  return_all(b->pipeline, b->dispatches, b->count);
  vyre_pipeline_release(b->pipeline);
}

static vyre_code submit_queued(vyre_pipeline *pipeline,
                               const vyre_dispatch_desc *items, size_t count,
                               vyre_fence **out, vyre_status *st) {
  vyre_device *device = pipeline->device;
  vyre_fence *fence;
  size_t size = sizeof(batch) + count * sizeof(vyre__prepared *);
  VYRE_TRY(vyre__fence_make(device->context, size, &fence, st));
  batch *b = (batch *)fence;
  b->count = count;
  vyre_code code = prepare_all(pipeline, items, count, true, b->dispatches, st);
  if (code != VYRE_OK) {
    vyre__fence_discard(fence);
    return code;
  }
  b->pipeline = vyre_pipeline_retain(pipeline);
  fence->work = batch_work;
  fence->cleanup = batch_cleanup;
  *out = fence;
  code = vyre__queue_push(device, &device->state->queue, fence, st);
  if (code != VYRE_OK) {
    *out = NULL;
    batch_cleanup(fence);
    vyre__fence_discard(fence);
  }
  return code;
}

VYRE__RARE
static void trace_submit(const vyre_pipeline *pipeline, uint64_t start,
                         size_t count, bool is_queued, vyre_code code) {
  vyre__trace_end(pipeline->device->context, start, .kind = VYRE__TRACE_SUBMIT,
                  .name = is_queued ? "submit" : "submit and run",
                  .device = pipeline->device, .result = code,
                  .kernel = vyre_program_name(pipeline->program),
                  .numbers = {{"items", count}});
}

/* Runs one dispatch on the calling thread. This is the most frequent case. */
static vyre_code submit_one(vyre_pipeline *pipeline,
                            const vyre_dispatch_desc *desc, vyre_status *st) {
  if (desc->result) *desc->result = VYRE_NOT_RUN;
  VYRE_TRY(vyre__device_check(pipeline->device, st));
  uint64_t start = vyre__trace_begin(pipeline->device->context);
  uint64_t called = desc->timing ? vyre__clock_ns() : 0;
  vyre__prepared *prepared;
  vyre_code code = prepare(pipeline, desc, NULL, &prepared, st);
  if (code == VYRE_OK) {
    prepared->item = 0;
    prepared->called_ns = called;
    wait_for_queue(pipeline->device, prepared);
    code = execute(prepared, desc, st);
    vyre__prepared_return(prepared);
  }
  if (start) trace_submit(pipeline, start, 1, false, code);
  return code;
}

enum { MAX_ON_STACK = 16 };

static vyre_code submit_now(vyre_pipeline *pipeline,
                            const vyre_dispatch_desc *items, size_t count,
                            vyre_status *st) {
  vyre__prepared *on_stack[MAX_ON_STACK], **dispatches = on_stack;
  vyre_device *device = pipeline->device;
  vyre__scratch_block *block = NULL;
  if (count > MAX_ON_STACK) {
    block = vyre__scratch_acquire(device, VYRE__SCRATCH_PREPARED,
                                  count * sizeof *dispatches);
    if (!block) return vyre__no_memory(st, "vyre_submit", "items", count);
    dispatches = (vyre__prepared **)(void *)block->bytes;
  }
  vyre_code code = prepare_all(pipeline, items, count, false, dispatches, st);
  for (size_t i = 0; i < count && code == VYRE_OK; i++) {
    wait_for_queue(device, dispatches[i]);
  }
  if (code == VYRE_OK) {
    code = execute_all(pipeline, dispatches, items, count, st);
  }
  vyre__scratch_return(device, VYRE__SCRATCH_PREPARED, block);
  return code;
}

vyre_code vyre_submit(vyre_pipeline *pipeline, const vyre_dispatch_desc *items,
                      size_t count, vyre_fence **fence, vyre_status *st) {
  vyre__status_begin(st);
  if (fence) *fence = NULL;
  VYRE_REQUIRE(st, pipeline);
  VYRE_REQUIRE_ARRAY(st, items, count);
  if (count > SIZE_MAX / 2 / sizeof(void *)) {
    return vyre__no_memory(st, __func__, "items", count);
  }
  pipeline = vyre__tuned_for(pipeline, items, count);
  if (count == 1 && !fence) return submit_one(pipeline, items, st);
  for (size_t i = 0; i < count; i++) {
    if (items[i].result) *items[i].result = VYRE_NOT_RUN;
  }
  VYRE_TRY(vyre__device_check(pipeline->device, st));
  uint64_t start = vyre__trace_begin(pipeline->device->context);
  vyre_code code = fence ? submit_queued(pipeline, items, count, fence, st)
                         : submit_now(pipeline, items, count, st);
  if (start) trace_submit(pipeline, start, count, fence != NULL, code);
  return code;
}

vyre_code vyre_dispatch(vyre_pipeline *pipeline, const vyre_dispatch_desc *desc,
                        vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, pipeline, desc);
  return submit_one(vyre__tuned_for(pipeline, desc, 1), desc, st);
}

vyre_code vyre_device_run_program(vyre_device *device, vyre_program *program,
                                  const vyre_dispatch_desc *desc,
                                  vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, device, program);
  VYRE_REQUIRE(st, desc);
  vyre_pipeline *pipeline;
  vyre_dispatch_desc as_compiled = *desc;
  as_compiled.variant = NULL;
  VYRE_TRY(vyre__pipeline_compile_fresh(device, program, desc->variant,
                                        &pipeline, st));
  vyre_code code = vyre__pipeline_count(pipeline, desc->max_loop_iterations,
                                        VYRE_TIER_OPTIMISED, st);
  if (code == VYRE_OK) code = submit_one(pipeline, &as_compiled, st);
  vyre_pipeline_release(pipeline);
  return code;
}

vyre_code vyre_dispatch_grid(const vyre_pipeline *pipeline,
                             const vyre_dispatch_desc *desc, uint32_t out[3],
                             vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  out[0] = out[1] = out[2] = 0;
  VYRE_REQUIRE_BOTH(st, pipeline, desc);
  /* A prepared dispatch is acquired and returned; the pipeline does not change
   * otherwise. */
  vyre_pipeline *mutable = (vyre_pipeline *)(uintptr_t)pipeline, *variant;
  /* the limit has no effect on the grid */
  vyre_dispatch_desc unlimited = *desc;
  unlimited.max_loop_iterations = 0;
  VYRE_TRY(vyre__pipeline_variant(mutable, &unlimited, &variant, st));
  vyre__prepared *prepared;
  VYRE_TRY(vyre__prepared_acquire(variant, &prepared, st));
  prepared->desc = desc;
  prepared->host_in = prepared->host_out = 0;
  vyre_code code = vyre__prepared_resolve(prepared, st);
  if (code == VYRE_OK) {
    code = vyre__grid_infer(variant, desc->grid, prepared->views, out, st);
  }
  vyre__prepared_return(prepared);
  return code;
}

/* --- reports and names -------------------------------------------------- */

void vyre_check_report_deinit(vyre_check_report *report) {
  if (!report) return;
  vyre_allocator allocator = report->arena.allocator;
  vyre_arena_deinit(&report->arena);
  *report = (vyre_check_report){0};
  report->arena.allocator = allocator;
}

/* Describes a finding as a diagnostic, so that both print alike. */
static vyre_diagnostic as_diagnostic(const vyre_finding *f,
                                     vyre_diagnostic_files *files) {
  *files = (vyre_diagnostic_files){.file = f->file, .note_file = f->other_file};
  return (vyre_diagnostic){
      .rule = vyre_finding_name(f->kind),
      .line = f->line,
      .column = f->column,
      .length = 1,
      .message = f->message,
      .fix = f->fix,
      .note = f->other_line ? "the other access" : NULL,
      .note_line = f->other_line,
      .note_column = f->other_column,
      .files = f->file || f->other_file ? files : NULL,
  };
}

bool vyre_check_report_print(const vyre_check_report *report, const char *file,
                             const char *source, size_t source_length,
                             vyre_writer writer) {
  if (!report) return false;
  for (size_t i = 0; i < report->count; i++) {
    vyre_diagnostic_files files;
    vyre_diagnostic item = as_diagnostic(&report->findings[i], &files);
    vyre_diagnostics one = {.items = &item, .count = 1};
    if (!vyre_diagnostics_print(&one, file, source, source_length, writer)) {
      return false;
    }
  }
  vyre__printer out = vyre__printer_make(writer);
  if (report->dropped) vyre__print(&out, "and %zu more\n", report->dropped);
  return out.ok;
}

VYRE__ENUM_NAME(vyre_finding_name, vyre_finding_kind, VYRE_FINDING_MAP)
VYRE__ENUM_NAME(vyre_copy_reason_name, vyre_copy_reason, VYRE_COPY_MAP)
