/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Seals a wave graph: allocates its memory, and prepares its dispatches and
 * command lists. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "flow/wave_internal.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/prepared_match.h"

static vyre_code no_memory(const char *what, size_t count, vyre_status *st) {
  return vyre__no_memory(st, "vyre_wave_graph_seal", what, count);
}

/* --- dispatches ----------------------------------------------------------- */

/* Returns the memory of a use, as a resource of a dispatch. A range of no bytes
 * lies at the end of its buffer: elsewhere, a size of 0 means all bytes up to
 * the end. */
static vyre_input input_of(const vyre_wave_graph *graph,
                           const vyre__wave_use *use) {
  if (use->resource == UINT32_MAX)
    return vyre_input_bytes(use->data, (size_t)use->size);
  const vyre__wave_resource *r = &graph->resources[use->resource];
  const vyre__buffer *buffer = r->is_external
                                   ? graph->io[use->resource].held->buffer
                                   : graph->held_memory->buffer;
  uint64_t base =
      r->is_external ? r->offset : graph->plan.offsets[use->resource];
  return (vyre_input){
      .buffer = r->is_external ? r->buffer : graph->memory,
      .size = (size_t)use->size,
      .offset = use->size > 0 ? base + use->offset : buffer->size};
}

/* Adds the wave to the status of a failure. */
static vyre_code name_wave(const vyre__wave *wave, uint32_t number,
                           vyre_code code, vyre_status *st) {
  if (code != VYRE_OK) {
    vyre__status_where(st, "wave", number, "wave %u ('%s')", number,
                       wave->label);
  }
  return code;
}

static void unbind(vyre__prepared *prepared) {
  for (size_t i = 0; i < prepared->pipeline->plan.binding_count; i++)
    prepared->bound[i] = (vyre__bound_buffer){0};
}

static vyre_code bind_wave(vyre_wave_graph *graph, uint32_t number,
                           vyre_status *st) {
  vyre__wave *wave = &graph->waves[number];
  for (size_t i = 0; i < wave->use_count; i++)
    graph->inputs[i] = input_of(graph, &wave->uses[i]);
  unbind(wave->prepared);
  wave->desc = (vyre_dispatch_desc){
      .resources = graph->inputs,
      .resource_count = wave->use_count,
      .grid = {wave->grid[0], wave->grid[1], wave->grid[2]},
      .is_borrowed = true};
  vyre_code code = vyre__prepared_check(wave->prepared, &wave->desc, st);
  if (code != VYRE_OK) {
    vyre__prepared_release(wave->prepared);
    unbind(wave->prepared);
    return name_wave(wave, number, code, st);
  }
  vyre__prepared_copy_desc(wave->prepared);
  wave->prepared->item = number; /* shown in traces */
  /* The graph holds the buffers, so the prepared dispatch need not. */
  vyre__prepared_release(wave->prepared);
  wave->is_ready = true;
  return VYRE_OK;
}

vyre_code vyre__wave_bind(vyre_wave_graph *graph, vyre_status *st) {
  bool is_changed = false;
  if (graph->is_bound) return VYRE_OK;
  for (uint32_t i = 0; i < graph->wave_count; i++) {
    if (graph->waves[i].is_ready) continue;
    VYRE_TRY(bind_wave(graph, i, st));
    is_changed = true;
  }
  graph->is_bound = true;
  if (!is_changed) return VYRE_OK;
  graph->list.version++;
  graph->loop_list.version++;
  graph->list.is_reusable = graph->loop_list.is_reusable = false;
  graph->totals = vyre__command_list_totals(&graph->list);
  return VYRE_OK;
}

/* --- lists ---------------------------------------------------------------- */

/* Fills in the groups of the list. The commands are the waves in the order of
 * the plan. */
static vyre_code fill_groups(vyre_wave_graph *graph, vyre_status *st) {
  const vyre_wave_plan *plan = &graph->plan;
  const vyre_barrier_plan *b = &plan->frontier.barriers;
  vyre_arena *arena = &graph->plan_arena;
  size_t parts = plan->parts ? plan->part_offsets[b->group_count] : 0;
  uint32_t *commands =
      vyre__arena_array(arena, graph->wave_count, sizeof *commands);
  vyre__wave_part *list = vyre__arena_array(arena, parts, sizeof *list);
  if (!commands || !list) return no_memory("parts", parts, st);
  for (uint32_t i = 0; i < graph->wave_count; i++) commands[b->waves[i]] = i;
  for (size_t i = 0; i < parts; i++) {
    const vyre_wave_share *part = &plan->parts[i];
    list[i] = (vyre__wave_part){commands[part->wave], part->thread,
                                part->first_group, part->group_count};
  }
  graph->groups = (vyre__wave_groups){
      .count = (uint32_t)b->group_count,
      .ends = b->group_offsets + 1,
      .threads = plan->parts ? plan->threads : 0,
      .part_ends = plan->parts ? plan->part_offsets + 1 : NULL,
      .parts = list};
  return VYRE_OK;
}

static vyre_code build_lists(vyre_wave_graph *graph, vyre_status *st) {
  const vyre_barrier_plan *b = &graph->plan.frontier.barriers;
  vyre__command *commands = vyre__arena_filled(
      &graph->plan_arena, graph->wave_count + 1, sizeof *commands, 0);
  if (!commands) return no_memory("commands", graph->wave_count + 1, st);
  for (size_t i = 0; i < graph->wave_count; i++)
    commands[i + 1].launch = &graph->waves[b->waves[i]].prepared->launch;
  VYRE_TRY(fill_groups(graph, st));
  graph->commands = commands;
  graph->list = (vyre__command_list){.device = graph->device,
                                     .commands = commands + 1,
                                     .count = graph->wave_count,
                                     .groups = &graph->groups};
  graph->loop_list = graph->list;
  graph->loop_list.commands = commands;
  graph->loop_list.count = graph->wave_count + 1;
  commands[0].kind = VYRE__COMMAND_LOOP;
  return VYRE_OK;
}

/* --- memory --------------------------------------------------------------- */

static vyre_code allocate(vyre_wave_graph *graph, vyre_status *st) {
  uint64_t bytes = graph->plan.placement.placed_bytes;
  uint64_t alignment = vyre__wave_alignment(graph);
  vyre_device *device = graph->device;
  for (size_t i = 0; i < graph->resource_count; i++) {
    if (graph->plan.intervals[i].alignment > alignment)
      alignment = graph->plan.intervals[i].alignment;
  }
  if (bytes == 0) return VYRE_OK;
  VYRE_TRY(vyre__device_buffer_create(device, bytes, alignment, &graph->memory,
                                      vyre__status_open(st)));
  return vyre__device_buffer_acquire(device, graph->memory, &graph->held_memory,
                                     st);
}

static bool list_touched(vyre_wave_graph *graph) {
  graph->touched = vyre__arena_array(&graph->plan_arena, graph->resource_count,
                                     sizeof *graph->touched);
  graph->touched_count = 0;
  if (!graph->touched) return false;
  for (uint32_t i = 0; i < graph->resource_count; i++) {
    const vyre__wave_resource *r = &graph->resources[i];
    if (r->is_input || r->is_output || r->is_external || r->begins_zero)
      graph->touched[graph->touched_count++] = i;
  }
  return true;
}

static vyre_code create_prepared(vyre_wave_graph *graph, vyre_status *st) {
  size_t most = 1;
  for (size_t i = 0; i < graph->wave_count; i++) {
    vyre__wave *wave = &graph->waves[i];
    if (wave->use_count > most) most = wave->use_count;
    vyre_code code = vyre__prepared_create(wave->pipeline, &wave->prepared, st);
    if (code != VYRE_OK) {
      wave->prepared = NULL;
      return code;
    }
  }
  graph->inputs =
      vyre__arena_array(&graph->plan_arena, most, sizeof *graph->inputs);
  graph->io = vyre__arena_filled(&graph->plan_arena, graph->resource_count,
                                 sizeof *graph->io, 0);
  return graph->inputs && graph->io && list_touched(graph)
             ? VYRE_OK
             : no_memory("resources", graph->resource_count, st);
}

static void release_list(vyre__command_list *list) {
  if (!list->encoded) return;
  const vyre__backend *backend = list->device->backend;
  (backend->wave_release ? backend->wave_release : backend->list_release)(list);
  list->encoded = NULL;
}

void vyre__wave_unprepare(vyre_wave_graph *graph) {
  release_list(&graph->list);
  release_list(&graph->loop_list);
  graph->is_bound = false;
  for (size_t i = 0; i < graph->wave_count; i++) {
    vyre__wave *wave = &graph->waves[i];
    if (!wave->prepared) continue;
    unbind(wave->prepared);
    vyre__prepared_return(wave->prepared);
    wave->prepared = NULL;
    wave->is_ready = false;
  }
  if (graph->held_memory)
    vyre__device_buffer_release(graph->device, graph->held_memory);
  if (graph->memory.id)
    (void)vyre_buffer_destroy(graph->device, graph->memory, NULL);
  graph->held_memory = NULL;
  graph->memory = (vyre_buffer){0};
}

/* Binds the waves whose memory is known before a run. This finds most mistakes
 * now. */
static vyre_code bind_own(vyre_wave_graph *graph, vyre_status *st) {
  for (uint32_t i = 0; i < graph->wave_count; i++) {
    const vyre__wave *wave = &graph->waves[i];
    bool is_own = true;
    for (size_t k = 0; k < wave->use_count; k++) {
      uint32_t r = wave->uses[k].resource;
      is_own &= r == UINT32_MAX || !graph->resources[r].is_external;
    }
    if (is_own) VYRE_TRY(bind_wave(graph, i, st));
  }
  return VYRE_OK;
}

vyre_code vyre__wave_prepare(vyre_wave_graph *graph, vyre_status *st) {
  vyre_code code = create_prepared(graph, st);
  if (code == VYRE_OK) code = build_lists(graph, st);
  if (code == VYRE_OK) code = allocate(graph, st);
  if (code == VYRE_OK) code = bind_own(graph, st);
  if (code != VYRE_OK) vyre__wave_unprepare(graph);
  return code;
}

vyre_code vyre_wave_graph_seal(vyre_wave_graph *graph, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, graph);
  if (graph->is_sealed) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "remove the second call of vyre_wave_graph_seal",
                     "the wave graph is already sealed");
  }
  VYRE_TRY(vyre__device_check(graph->device, st));
  VYRE_TRY(vyre__wave_plan(graph, st));
  VYRE_TRY(vyre__wave_prepare(graph, st));
  graph->list.version = graph->loop_list.version = 1;
  graph->totals = vyre__command_list_totals(&graph->list);
  graph->is_sealed = true;
  return VYRE_OK;
}
