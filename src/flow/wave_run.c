/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs wave graphs: uploads the inputs, executes one command list, and reads
 * the outputs back. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "flow/wave_internal.h"
#include "runtime/core/device.h"
#include "runtime/core/fault_injection.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"
#include "runtime/core/work_queue.h"

typedef struct running {
  vyre_wave_graph *graph;
  const vyre_wave_run *run;
  vyre_wave_result result;
  uint64_t deadline_ns; /* 0: none */
} running;

/* --- memory of a run ------------------------------------------------------ */

typedef struct io_entry {
  uint32_t resource;
  const void *data;
  size_t size;
} io_entry;

static vyre_code wrong_io(const vyre_wave_graph *graph, const char *kind,
                          uint32_t resource, const char *what,
                          vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"resource", resource},
                   {"resources", graph->resource_count}),
      "name every input, output and external resource of the graph once",
      "%s '%s' (resource %u) %s", kind,
      vyre__wave_resource_name(graph, resource), resource, what);
}

static vyre_code check_entry(const vyre_wave_graph *graph, const char *kind,
                             bool has_role, bool is_set, const io_entry *entry,
                             vyre_status *st) {
  if (!has_role)
    return wrong_io(graph, kind, entry->resource,
                    "lacks this role in the graph", st);
  if (is_set)
    return wrong_io(graph, kind, entry->resource, "is named twice", st);
  if (!entry->data)
    return wrong_io(graph, kind, entry->resource, "has NULL as its memory", st);
  uint64_t expected = graph->resources[entry->resource].size;
  if (entry->size == expected) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"resource", entry->resource}, {"expected_bytes", expected},
                   {"received_bytes", entry->size}),
      "pass exactly the bytes of the resource",
      "%s '%s' has %llu bytes, but %zu were given", kind,
      vyre__wave_resource_name(graph, entry->resource),
      (unsigned long long)expected, entry->size);
}

static vyre_code take_host_memory(const running *r, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  for (size_t i = 0; i < r->run->input_count; i++) {
    const vyre_wave_input *in = &r->run->inputs[i];
    const io_entry entry = {in->resource, in->data, in->size};
    bool is_known = in->resource < graph->resource_count;
    VYRE_TRY(check_entry(graph, "input",
                         is_known && graph->resources[in->resource].is_input,
                         is_known && graph->io[in->resource].in, &entry, st));
    graph->io[in->resource].in = in->data;
  }
  for (size_t i = 0; i < r->run->output_count; i++) {
    const vyre_wave_output *out = &r->run->outputs[i];
    const io_entry entry = {out->resource, out->data, out->size};
    bool is_known = out->resource < graph->resource_count;
    VYRE_TRY(check_entry(graph, "output",
                         is_known && graph->resources[out->resource].is_output,
                         is_known && graph->io[out->resource].out, &entry, st));
    graph->io[out->resource].out = out->data;
  }
  return VYRE_OK;
}

static vyre_code external_too_small(const vyre_wave_graph *graph,
                                    const vyre_wave_external *e, uint64_t bytes,
                                    vyre_status *st) {
  const vyre__wave_resource *r = &graph->resources[e->resource];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"resource", e->resource}, {"expected_bytes", r->size},
                   {"buffer_bytes", bytes}, {"offset", e->offset}),
      "name a device buffer that has the bytes of the resource behind the "
      "offset",
      "external resource '%s' has %llu bytes, but the buffer has %llu, and its "
      "offset is %llu",
      r->name, (unsigned long long)r->size, (unsigned long long)bytes,
      (unsigned long long)e->offset);
}

/* Returns true if a wave uses the resource. */
static bool uses(const vyre__wave *wave, uint32_t resource) {
  for (size_t i = 0; i < wave->use_count; i++) {
    if (wave->uses[i].resource == resource) return true;
  }
  return false;
}

static vyre_code take_external(vyre_wave_graph *graph,
                               const vyre_wave_external *e, vyre_status *st) {
  bool is_known = e->resource < graph->resource_count;
  if (!is_known || !graph->resources[e->resource].is_external)
    return wrong_io(graph, "external resource", e->resource,
                    "lacks this role in the graph", st);
  vyre__wave_io *io = &graph->io[e->resource];
  vyre__wave_resource *r = &graph->resources[e->resource];
  if (io->held)
    return wrong_io(graph, "external resource", e->resource, "is named twice",
                    st);
  VYRE_TRY(
      vyre__device_buffer_acquire(graph->device, e->buffer, &io->held, st));
  uint64_t bytes = io->held->buffer->size;
  if (e->offset > bytes || bytes - e->offset < r->size)
    return external_too_small(graph, e, bytes, st);
  if (r->buffer.owner == e->buffer.owner && r->buffer.id == e->buffer.id &&
      r->offset == e->offset) {
    return VYRE_OK;
  }
  r->buffer = e->buffer;
  r->offset = e->offset;
  for (size_t i = 0; i < graph->wave_count; i++) {
    if (uses(&graph->waves[i], e->resource)) graph->waves[i].is_ready = false;
  }
  graph->is_bound = false;
  return VYRE_OK;
}

/* Returns true if two external resources share bytes that a wave writes. */
static bool overlap(const vyre__wave_resource *a,
                    const vyre__wave_resource *b) {
  return a->buffer.owner == b->buffer.owner && a->buffer.id == b->buffer.id &&
         a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

bool vyre__wave_writes(const vyre_wave_graph *graph, uint32_t resource) {
  for (size_t i = 0; i < graph->wave_count; i++) {
    const vyre__wave *wave = &graph->waves[i];
    for (size_t k = 0; k < wave->use_count; k++) {
      if (wave->uses[k].resource == resource && wave->uses[k].writes)
        return true;
    }
  }
  return false;
}

/* Two names for the same bytes would hide dependencies from the plan. */
static vyre_code check_overlaps(const running *r, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  for (size_t i = 0; i < r->run->external_count; i++) {
    for (size_t k = 0; k < i; k++) {
      uint32_t a = r->run->externals[i].resource,
               b = r->run->externals[k].resource;
      if (!overlap(&graph->resources[a], &graph->resources[b]) ||
          (!vyre__wave_writes(graph, a) && !vyre__wave_writes(graph, b))) {
        continue;
      }
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
          VYRE_NUMBERS({"resource", a}, {"other_resource", b}),
          "give each external resource its own bytes, or use one resource for "
          "both",
          "external resources '%s' and '%s' share bytes that a wave writes",
          graph->resources[a].name, graph->resources[b].name);
    }
  }
  return VYRE_OK;
}

static vyre_code take_memory(const running *r, vyre_status *st) {
  vyre_wave_graph *graph = r->graph;
  VYRE_TRY(take_host_memory(r, st));
  for (size_t i = 0; i < r->run->external_count; i++)
    VYRE_TRY(take_external(graph, &r->run->externals[i], st));
  for (size_t k = 0; k < graph->touched_count; k++) {
    const uint32_t i = graph->touched[k];
    const vyre__wave_resource *resource = &graph->resources[i];
    const vyre__wave_io *io = &graph->io[i];
    if (resource->is_input && !io->in)
      return wrong_io(graph, "input", i, "is missing", st);
    if (resource->is_output && !io->out)
      return wrong_io(graph, "output", i, "is missing", st);
    if (resource->is_external && !io->held)
      return wrong_io(graph, "external resource", i, "is missing", st);
  }
  return r->run->external_count > 1 ? check_overlaps(r, st) : VYRE_OK;
}

static void release_memory(const vyre_wave_graph *graph) {
  for (size_t k = 0; k < graph->touched_count; k++) {
    const uint32_t i = graph->touched[k];
    if (graph->io[i].held)
      vyre__device_buffer_release(graph->device, graph->io[i].held);
    graph->io[i] = (vyre__wave_io){0};
  }
}

/* --- transfers ------------------------------------------------------------ */

static vyre_code upload(const running *r, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  for (size_t k = 0; k < graph->touched_count; k++) {
    const uint32_t i = graph->touched[k];
    const vyre__wave_resource *resource = &graph->resources[i];
    uint64_t at = graph->plan.offsets[i];
    if (graph->plan.intervals[i].size == 0) continue;
    if (resource->is_input) {
      VYRE_TRY(vyre__buffer_write(graph->device, graph->held_memory->buffer, at,
                                  graph->io[i].in, (size_t)resource->size, st));
    } else if (resource->begins_zero) {
      VYRE_TRY(vyre__buffer_clear(graph->device, graph->held_memory->buffer, at,
                                  (size_t)resource->size, st));
    }
  }
  return VYRE_OK;
}

static vyre_code read_back(running *r, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  for (size_t k = 0; k < graph->touched_count; k++) {
    const uint32_t i = graph->touched[k];
    const vyre__wave_resource *resource = &graph->resources[i];
    if (!resource->is_output) continue;
    VYRE_TRY(vyre__buffer_read(graph->device, graph->held_memory->buffer,
                               graph->plan.offsets[i], graph->io[i].out,
                               (size_t)resource->size, st));
    r->result.readback_bytes += resource->size;
    r->result.readbacks = 1;
  }
  return VYRE_OK;
}

static vyre_code read_flag(running *r, uint32_t *out, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  const vyre__wave_loop *loop = &graph->loop;
  const vyre__wave_resource *flag = &graph->resources[loop->flag];
  const vyre__device_buffer *held =
      flag->is_external ? graph->io[loop->flag].held : graph->held_memory;
  uint64_t base =
      flag->is_external ? flag->offset : graph->plan.offsets[loop->flag];
  r->result.flag_reads++;
  return vyre__buffer_read(graph->device, held->buffer, base + loop->offset,
                           out, sizeof *out, st);
}

/* --- executing ------------------------------------------------------------ */

static vyre_code timed_out(const running *r, uint64_t waves, vyre_status *st) {
  char limit[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
      VYRE_NUMBERS({"timeout_ns", r->run->timeout_ns}, {"waves", waves}),
      "raise timeout_ns, or run fewer waves",
      "the wave graph ran longer than %s: %llu waves were complete",
      vyre__duration(r->run->timeout_ns, limit), (unsigned long long)waves);
}

static vyre_code name_failed(const vyre_wave_graph *graph, size_t position,
                             vyre_code code, vyre_status *st) {
  if (code == VYRE_OK || position >= graph->wave_count) return code;
  uint32_t number = graph->plan.frontier.barriers.waves[position];
  vyre__status_where(st, "wave", number, "wave %u ('%s')", number,
                     graph->waves[number].label);
  return code;
}

/* Runs one wave after the other, where the device takes no list, or the run has
 * a deadline that the device cannot keep by itself. */
static vyre_code run_each(running *r, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  for (size_t i = 0; i < graph->wave_count; i++) {
    uint32_t number = graph->plan.frontier.barriers.waves[i];
    vyre__prepared *prepared = graph->waves[number].prepared;
    if (prepared->scratch.first) vyre_arena_reset(&prepared->scratch);
    prepared->own.timeout_ns = 0;
    if (r->deadline_ns) {
      uint64_t now = vyre__clock_ns();
      if (now >= r->deadline_ns) return timed_out(r, r->result.waves, st);
      prepared->own.timeout_ns = r->deadline_ns - now;
      prepared->launch.timeout_ns = r->run->timeout_ns;
    }
    prepared->launch.is_complete = false;
    vyre_code code = vyre__prepared_execute(prepared, st);
    prepared->own.timeout_ns = prepared->launch.timeout_ns = 0;
    prepared->launch.deadline_ns = 0;
    if (code != VYRE_OK) return name_failed(graph, i, code, st);
    r->result.waves++;
  }
  r->result.submissions++;
  r->result.waits++;
  return VYRE_OK;
}

/* Returns true if the device can execute all waves as one list. */
static bool takes_list(const running *r) {
  const vyre_wave_graph *graph = r->graph;
  const vyre__backend *backend = graph->device->backend;
  if (r->deadline_ns && !backend->wave_threads) return false;
  if (!backend->wave_threads && !backend->list_release) return false;
  if (graph->list.is_reusable || graph->loop_list.is_reusable) return true;
  for (size_t i = 0; i < graph->wave_count; i++) {
    vyre__prepared *prepared = graph->waves[i].prepared;
    if (!vyre__prepared_fits(prepared)) return false;
    if (prepared->scratch.first) vyre_arena_reset(&prepared->scratch);
  }
  return true;
}

/* Injected faults hit a list once, like one submission. */
static vyre_code submit_faults(const vyre_wave_graph *graph, vyre_status *st) {
  vyre_device *device = graph->device;
  if (vyre__fault(device->context, VYRE_FAULT_SUBMIT))
    return vyre__fault_status(VYRE_FAULT_SUBMIT, st);
  if (vyre__fault(device->context, VYRE_FAULT_DEVICE_LOST)) {
    vyre__device_lose(device);
    return vyre__fault_status(VYRE_FAULT_DEVICE_LOST, st);
  }
  return VYRE_OK;
}

static void begin_groups(running *r) {
  vyre__wave_groups *g = &r->graph->groups;
  g->deadline_ns = r->deadline_ns;
  g->timeout_ns = r->run->timeout_ns;
  g->submissions = g->waits = g->barriers = g->inline_groups = g->steals = 0;
  g->groups_run = 0;
}

static void take_groups(running *r) {
  const vyre__wave_groups *g = &r->graph->groups;
  r->result.submissions += g->submissions;
  r->result.waits += g->waits;
  r->result.barriers += g->barriers;
  r->result.inline_groups += g->inline_groups;
  r->result.steals += g->steals;
}

static vyre_code run_list(running *r, vyre_status *st) {
  vyre_wave_graph *graph = r->graph;
  vyre__command_list *list = &graph->list;
  size_t done = 0;
  VYRE_TRY(submit_faults(graph, st));
  begin_groups(r);
  vyre_code code =
      list->is_reusable
          ? vyre__command_list_repeat(list, &graph->totals, &done, st)
          : vyre__command_list_execute(list, &done, st);
  take_groups(r);
  r->result.waves += done;
  return name_failed(graph, done, code, st);
}

/* Runs all groups once. */
static vyre_code run_groups(running *r, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  if (takes_list(r)) {
    VYRE_TRY(run_list(r, st));
  } else {
    VYRE_TRY(submit_faults(graph, st));
    VYRE_TRY(run_each(r, st));
    r->result.barriers += graph->plan.barriers;
  }
  r->result.groups += graph->plan.frontier.barriers.group_count;
  r->result.iterations++;
  return VYRE_OK;
}

/* Runs a loop whose flag the device tests. *is_taken is false, and nothing ran,
 * if it cannot. */
static vyre_code run_device_loop(running *r, bool *is_taken, vyre_status *st) {
  vyre_wave_graph *graph = r->graph;
  const vyre__wave_loop *loop = &graph->loop;
  const vyre__backend *backend = graph->device->backend;
  const vyre__wave_resource *flag = &graph->resources[loop->flag];
  *is_taken = false;
  bool takes_loops = backend->wave_threads ||
                     vyre__takes_commands(graph->device, VYRE__COMMAND_LOOP);
  if (!takes_loops || !takes_list(r)) return VYRE_OK;
  vyre__command_loop *command = &graph->commands[0].loop;
  const vyre__device_buffer *held =
      flag->is_external ? graph->io[loop->flag].held : graph->held_memory;
  *command = (vyre__command_loop){
      .flag = held->buffer,
      .offset =
          loop->offset +
          (flag->is_external ? flag->offset : graph->plan.offsets[loop->flag]),
      .max_iterations = loop->max_iterations};
  VYRE_TRY(submit_faults(graph, st));
  begin_groups(r);
  size_t done = 0;
  vyre_code code =
      vyre__command_list_loop(&graph->loop_list, &graph->totals, &done, st);
  *is_taken = done > 0 || code != VYRE_OK;
  take_groups(r);
  uint64_t n = command->iterations;
  r->result.iterations += n;
  r->result.waves += n * graph->wave_count;
  r->result.groups += n * graph->plan.frontier.barriers.group_count;
  r->result.reached_max = command->is_unfinished;
  return name_failed(graph, done > 0 ? done - 1 : graph->wave_count, code, st);
}

static vyre_code run_loop(running *r, vyre_status *st) {
  const vyre__wave_loop *loop = &r->graph->loop;
  bool is_taken;
  VYRE_TRY(run_device_loop(r, &is_taken, st));
  if (is_taken) return VYRE_OK;
  for (;;) {
    uint32_t flag;
    VYRE_TRY(read_flag(r, &flag, st));
    if (flag == 0) return VYRE_OK;
    if (r->result.iterations == loop->max_iterations) {
      r->result.reached_max = true;
      return VYRE_OK;
    }
    VYRE_TRY(run_groups(r, st));
  }
}

static vyre_code run_with_memory(running *r, vyre_status *st) {
  vyre_wave_graph *graph = r->graph;
  VYRE_TRY(take_memory(r, st));
  VYRE_TRY(vyre__wave_bind(graph, st));
  VYRE_TRY(upload(r, st));
  VYRE_TRY(graph->loop.is_set ? run_loop(r, st) : run_groups(r, st));
  VYRE_TRY(vyre__device_check(graph->device, st));
  return read_back(r, st);
}

vyre_code vyre__wave_run(vyre_wave_graph *graph, const vyre_wave_run *run,
                         vyre_status *st) {
  uint64_t traced = vyre__trace_begin(graph->device->context);
  bool is_timed = run->result || run->timeout_ns;
  uint64_t start = is_timed ? vyre__clock_ns() : 0;
  running r = {.graph = graph, .run = run};
  if (run->timeout_ns) {
    r.deadline_ns = start + run->timeout_ns;
    if (r.deadline_ns < start) r.deadline_ns = UINT64_MAX;
  }
  pthread_mutex_lock(&graph->lock);
  r.result.allocated_bytes =
      graph->held_memory ? graph->held_memory->buffer->size : 0;
  vyre_code code = vyre__device_check(graph->device, st);
  if (code == VYRE_OK) code = run_with_memory(&r, st);
  release_memory(graph);
  pthread_mutex_unlock(&graph->lock);
  if (run->result) {
    r.result.wall_ns = vyre__clock_ns() - start;
    *run->result = r.result;
  }
  vyre__trace_end(graph->device->context, traced, .kind = VYRE__TRACE_REPLAY,
                  .name = "wave graph", .device = graph->device, .result = code,
                  .numbers = {{"waves", r.result.waves},
                              {"submissions", r.result.submissions}});
  return code;
}

/* --- queued runs ---------------------------------------------------------- */

/* A run that was submitted with a fence, with copies of the caller's arrays
 * behind it. */
typedef struct queued_run {
  vyre_fence fence; /* first member: the fence is the object */
  vyre_wave_graph *graph;
  vyre_wave_run run;
} queued_run;

static vyre_code queued_work(vyre_fence *fence, vyre_status *st) {
  const queued_run *queued = (queued_run *)fence;
  return vyre__wave_run(queued->graph, &queued->run, st);
}

static void queued_cleanup(vyre_fence *fence) {
  vyre_wave_graph_release(((queued_run *)fence)->graph);
}

static const void *append(unsigned char **at, const void *array, size_t count,
                          size_t size) {
  unsigned char *copy = *at;
  if (count > 0) memcpy(copy, array, count * size);
  *at += count * size;
  return copy;
}

static vyre_code run_later(vyre_wave_graph *graph, const vyre_wave_run *run,
                           vyre_fence **out, vyre_status *st) {
  vyre_fence *fence;
  size_t size = sizeof(queued_run) +
                run->external_count * sizeof *run->externals +
                run->input_count * sizeof *run->inputs +
                run->output_count * sizeof *run->outputs;
  VYRE_TRY(vyre__fence_make(graph->device->context, size, &fence, st));
  queued_run *queued = (queued_run *)fence;
  unsigned char *at = (unsigned char *)(queued + 1);
  queued->run = *run;
  queued->run.externals =
      append(&at, run->externals, run->external_count, sizeof *run->externals);
  queued->run.inputs =
      append(&at, run->inputs, run->input_count, sizeof *run->inputs);
  queued->run.outputs =
      append(&at, run->outputs, run->output_count, sizeof *run->outputs);
  queued->graph = vyre_wave_graph_retain(graph);
  fence->work = queued_work;
  fence->cleanup = queued_cleanup;
  *out = fence;
  vyre_code code =
      vyre__queue_push(graph->device, &graph->device->state->queue, fence, st);
  if (code != VYRE_OK) {
    *out = NULL;
    queued_cleanup(fence);
    vyre__fence_discard(fence);
  }
  return code;
}

vyre_code vyre__wave_check_sealed(const vyre_wave_graph *graph,
                                  vyre_status *st) {
  if (graph->is_sealed) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "call vyre_wave_graph_seal first",
                   "the wave graph is not sealed");
}

vyre_code vyre_wave_graph_run(vyre_wave_graph *graph, const vyre_wave_run *run,
                              vyre_fence **fence, vyre_status *st) {
  vyre__status_begin(st);
  static const vyre_wave_run none;
  if (fence) *fence = NULL;
  VYRE_REQUIRE(st, graph);
  if (!run) run = &none;
  VYRE_CHECK_RESERVED(st, __func__, run);
  VYRE_REQUIRE_ARRAY(st, run->inputs, run->input_count);
  VYRE_REQUIRE_ARRAY(st, run->outputs, run->output_count);
  VYRE_REQUIRE_ARRAY(st, run->externals, run->external_count);
  VYRE_TRY(vyre__wave_check_sealed(graph, st));
  if (run->result) *run->result = (vyre_wave_result){0};
  size_t most = graph->resource_count; /* more entries cannot be valid */
  if (run->input_count > most || run->output_count > most ||
      run->external_count > most) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"inputs", run->input_count},
                     {"outputs", run->output_count},
                     {"externals", run->external_count}, {"resources", most}),
        "name every input, output and external resource of the graph once",
        "the run names more inputs, outputs or external resources than the %zu "
        "resources of the graph",
        most);
  }
  if (fence) return run_later(graph, run, fence, st);
  if (vyre__device_is_busy(graph->device)) vyre__queue_wait(graph->device);
  return vyre__wave_run(graph, run, st);
}
