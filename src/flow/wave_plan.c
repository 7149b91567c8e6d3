/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Plans a wave graph: dependencies, groups, lifetimes of the resources, their
 * places in one allocation, and the map of waves to threads. */
#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "flow/wave_internal.h"
#include "hal/backend.h"

/* Working memory and results of one attempt. */
typedef struct planner {
  vyre_wave_graph *graph;
  vyre_wave_plan *plan;
  vyre_arena *arena; /* of the plan */
  vyre_arena scratch;
  const vyre_wave_dependency *dependencies;
  size_t dependency_count;
  vyre_frontier_wave *waves;
  vyre_interval *intervals;
  uint64_t resident_bytes; /* of the group budget: external, constant, kept */
} planner;

enum { HOST_ALIGNMENT = 64, DEVICE_ALIGNMENT = 256, BUDGET_TRIES = 12 };

static vyre_code no_memory(const char *what, size_t count, vyre_status *st) {
  return vyre__no_memory(st, "vyre_wave_graph_plan", what, count);
}

/* 256 is the largest alignment that Vulkan lets a device demand. */
uint64_t vyre__wave_alignment(const vyre_wave_graph *graph) {
  const vyre_device *device = graph->device;
  return device->caps.borrows_host_memory || !device->backend->buffer_init
             ? HOST_ALIGNMENT
             : DEVICE_ALIGNMENT;
}

/* --- lifetimes ------------------------------------------------------------ */

/* Uses of one resource by all waves. */
typedef struct lifetime {
  bool is_used, is_written;
  bool is_shared;       /* used by more than one wave */
  uint32_t wave;        /* first wave in the order of the groups */
  uint32_t first, last; /* groups */
  bool is_covered;      /* the first group writes all bytes, and reads none */
} lifetime;

/* Returns true if the uses in the first group write all bytes of a resource
 * without reading any. */
static bool covers(const vyre_wave_graph *graph, uint32_t resource,
                   uint32_t group, vyre__sort_item *ranges) {
  const vyre_barrier_plan *b = &graph->plan.frontier.barriers;
  size_t count = 0;
  for (uint32_t i = b->group_offsets[group]; i < b->group_offsets[group + 1];
       i++) {
    const vyre__wave *wave = &graph->waves[b->waves[i]];
    for (size_t k = 0; k < wave->use_count; k++) {
      const vyre__wave_use *use = &wave->uses[k];
      if (use->resource != resource || use->size == 0) continue;
      if (use->reads || !use->writes) return false;
      ranges[count++] = (vyre__sort_item){use->offset, use->offset + use->size};
    }
  }
  vyre__sort(ranges, count);
  uint64_t end = 0;
  for (size_t i = 0; i < count && ranges[i].key <= end; i++) {
    if (ranges[i].tie > end) end = ranges[i].tie;
  }
  return end >= graph->resources[resource].size;
}

static size_t use_total(const vyre_wave_graph *graph) {
  size_t total = 0;
  for (size_t i = 0; i < graph->wave_count; i++)
    total += graph->waves[i].use_count;
  return total;
}

static void note_use(const vyre__wave *wave, uint32_t number,
                     const vyre__wave_use *use, lifetime *life) {
  if (!life->is_used) {
    *life = (lifetime){.is_used = true,
                       .wave = number,
                       .first = wave->group,
                       .last = wave->group};
  }
  life->is_shared |= life->wave != number;
  life->is_written |= use->writes;
  life->last = wave->group;
}

static vyre_code find_lifetimes(const planner *p, lifetime **out,
                                vyre_status *st) {
  vyre_wave_graph *graph = p->graph;
  const vyre_barrier_plan *b = &p->plan->frontier.barriers;
  vyre_arena *scratch = &p->graph->plan_arena;
  size_t count = graph->resource_count, uses = use_total(graph);
  lifetime *lives = vyre__arena_filled(scratch, count, sizeof *lives, 0);
  vyre__sort_item *ranges = vyre__arena_array(scratch, uses, sizeof *ranges);
  if (!lives || !ranges) return no_memory("resources", count, st);
  for (uint32_t g = 0; g < b->group_count; g++) {
    for (uint32_t i = b->group_offsets[g]; i < b->group_offsets[g + 1]; i++) {
      vyre__wave *wave = &graph->waves[b->waves[i]];
      wave->group = g;
      for (size_t k = 0; k < wave->use_count; k++) {
        const vyre__wave_use *use = &wave->uses[k];
        if (use->resource == UINT32_MAX) continue;
        note_use(wave, b->waves[i], use, &lives[use->resource]);
      }
    }
  }
  for (uint32_t r = 0; r < count; r++) {
    if (lives[r].is_used)
      lives[r].is_covered = covers(graph, r, lives[r].first, ranges);
  }
  *out = lives;
  return VYRE_OK;
}

static vyre_code never_written(const vyre__wave_resource *resource,
                               vyre_status *st) {
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
      "make the resource an input, external or kept, or add the wave that "
      "writes it",
      "waves read resource '%s', but it is not an input and no wave writes it",
      resource->name);
}

/* Sets the interval of a resource: the groups in which its bytes must not be
 * shared. */
static vyre_code set_interval(const planner *p, uint32_t number,
                              const lifetime *life, vyre_status *st) {
  const vyre_wave_graph *graph = p->graph;
  vyre__wave_resource *r = &graph->resources[number];
  uint64_t last_group = p->plan->frontier.barriers.group_count - 1;
  uint64_t alignment = vyre__wave_alignment(graph), aligned;
  vyre_interval *interval = &p->intervals[number];
  bool is_flag = graph->loop.is_set && graph->loop.flag == number;
  *interval = (vyre_interval){.alignment = 1};
  r->begins_zero = false;
  if (r->is_external) return VYRE_OK;
  if (life->is_used && !life->is_written && !r->is_input && !r->is_kept)
    return never_written(r, st);
  if (r->alignment > alignment) alignment = r->alignment;
  if (!vyre__add_u64(r->size, alignment - 1, &aligned)) {
    return VYRE_FAIL_WITH(st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW,
                          NULL, VYRE_NUMBERS({"size", r->size}),
                          "make the resource smaller",
                          "resource '%s' has %llu bytes: with its alignment, "
                          "this exceeds 64 bits",
                          r->name, (unsigned long long)r->size);
  }
  aligned -= aligned % alignment;
  bool has_first = r->is_input || r->is_kept || is_flag ||
                   (life->is_used && !life->is_covered) ||
                   (r->is_output && (graph->loop.is_set || !life->is_used));
  /* A loop reads in its next iteration what was there before the first. */
  bool is_whole = r->is_kept || is_flag || (has_first && graph->loop.is_set);
  r->begins_zero = has_first && !r->is_input && !r->is_kept;
  *interval = (vyre_interval){
      .size =
          life->is_used || r->is_output || r->is_kept || is_flag ? aligned : 0,
      .alignment = alignment,
      .first_group = has_first ? 0 : life->first,
      .last_group = is_whole || r->is_output ? last_group : life->last};
  return VYRE_OK;
}

/* --- bytes of waves ------------------------------------------------------- */

static bool add_bytes(uint64_t *to, uint64_t bytes) {
  return vyre__add_u64(*to, bytes, to);
}

/* Counts every resource as memory of the first wave that uses it: output if the
 * host reads it, scratch if no other wave uses it, frontier otherwise. */
static bool count_bytes(const planner *p, const uint32_t *first_wave,
                        const bool *is_shared) {
  const vyre_wave_graph *graph = p->graph;
  vyre_wave_plan *plan = p->plan;
  bool fits = true;
  for (uint32_t i = 0; i < graph->resource_count; i++) {
    const vyre__wave_resource *r = &graph->resources[i];
    if (r->is_input) fits &= add_bytes(&plan->upload_bytes, r->size);
    if (r->is_output) fits &= add_bytes(&plan->readback_bytes, r->size);
    if (r->is_external) fits &= add_bytes(&plan->resident_bytes, r->size);
    if (first_wave[i] == UINT32_MAX || r->is_external || r->is_kept) continue;
    vyre_frontier_wave *wave = &p->waves[first_wave[i]];
    uint64_t *to = r->is_output                  ? &wave->output_bytes
                   : is_shared[i] || r->is_input ? &wave->frontier_bytes
                                                 : &wave->scratch_bytes;
    fits &= add_bytes(to, r->size);
  }
  return fits;
}

static bool count_resident(planner *p) {
  const vyre_wave_graph *graph = p->graph;
  bool fits = true;
  for (size_t i = 0; i < graph->wave_count; i++) {
    for (size_t k = 0; k < graph->waves[i].use_count; k++) {
      const vyre__wave_use *use = &graph->waves[i].uses[k];
      if (use->resource == UINT32_MAX)
        fits &= add_bytes(&p->plan->resident_bytes, use->size);
    }
  }
  p->resident_bytes = p->plan->resident_bytes;
  for (size_t i = 0; i < graph->resource_count; i++) {
    if (graph->resources[i].is_kept)
      fits &= add_bytes(&p->resident_bytes, graph->resources[i].size);
  }
  return fits;
}

static vyre_code measure_waves(planner *p, vyre_status *st) {
  const vyre_wave_graph *graph = p->graph;
  size_t resources = graph->resource_count;
  p->waves =
      vyre__arena_filled(p->arena, graph->wave_count, sizeof *p->waves, 0);
  uint32_t *first =
      vyre__arena_filled(&p->scratch, resources, sizeof *first, 0xff);
  bool *shared = vyre__arena_filled(&p->scratch, resources, sizeof *shared, 0);
  if (!p->waves || !first || !shared)
    return no_memory("waves", graph->wave_count, st);
  for (uint32_t i = 0; i < graph->wave_count; i++) {
    for (size_t k = 0; k < graph->waves[i].use_count; k++) {
      uint32_t r = graph->waves[i].uses[k].resource;
      if (r == UINT32_MAX) continue;
      if (first[r] == UINT32_MAX) first[r] = i;
      shared[r] |= first[r] != i;
    }
  }
  if (count_bytes(p, first, shared) && count_resident(p)) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW,
                   "make the resources smaller",
                   "the bytes of all resources together exceed 64 bits");
}

/* --- groups and placement ------------------------------------------------- */

static vyre_code build_groups(const planner *p, uint64_t budget,
                              vyre_status *st) {
  const vyre_frontier_desc desc = {.waves = p->waves,
                                   .wave_count = p->graph->wave_count,
                                   .dependencies = p->dependencies,
                                   .dependency_count = p->dependency_count,
                                   .resident_graph_bytes = p->resident_bytes,
                                   .budget_bytes = budget,
                                   .readback_bytes = p->plan->readback_bytes};
  vyre_barrier_scratch scratch;
  vyre_barrier_scratch_init(&scratch, p->graph->device->allocator);
  vyre_code code = vyre_frontier_plan_build(
      &desc, &scratch, p->arena, &p->plan->frontier, vyre__status_open(st));
  vyre_barrier_scratch_deinit(&scratch);
  return code;
}

/* Places the resources one after the other. */
static bool place_apart(const planner *p) {
  vyre_placement_plan *out = &p->plan->placement;
  uint64_t at = 0, *offsets;
  offsets =
      vyre__arena_array(p->arena, p->graph->resource_count, sizeof *offsets);
  if (!offsets) return false;
  for (size_t i = 0; i < p->graph->resource_count; i++) {
    const vyre_interval *interval = &p->intervals[i];
    at +=
        (interval->alignment - at % interval->alignment) % interval->alignment;
    offsets[i] = interval->size > 0 ? at : 0;
    at += interval->size;
  }
  out->offsets = offsets;
  out->interval_count = p->graph->resource_count;
  out->placed_bytes = at;
  return true;
}

static vyre_code place(const planner *p, vyre_status *st) {
  vyre_placement_scratch scratch;
  size_t count = p->graph->resource_count;
  vyre_placement_scratch_init(&scratch, p->graph->device->allocator);
  vyre_code code =
      vyre_placement_plan_build(p->intervals, count, NULL, &scratch, p->arena,
                                &p->plan->placement, vyre__status_open(st));
  vyre_placement_scratch_deinit(&scratch);
  VYRE_TRY(code);
  p->plan->separate_bytes = 0;
  for (size_t i = 0; i < count; i++)
    p->plan->separate_bytes += p->intervals[i].size;
  if (p->graph->options.is_separate && !place_apart(p))
    return no_memory("resources", count, st);
  p->plan->intervals = p->intervals;
  p->plan->resource_count = count;
  p->plan->offsets = p->plan->placement.offsets;
  return VYRE_OK;
}

/* Plans groups of at most @p budget bytes, and the allocation. */
static vyre_code plan_within(planner *p, uint64_t budget, vyre_status *st) {
  lifetime *lives;
  VYRE_TRY(build_groups(p, budget, st));
  VYRE_TRY(find_lifetimes(p, &lives, st));
  size_t count = p->graph->resource_count;
  p->intervals = vyre__arena_array(p->arena, count, sizeof *p->intervals);
  if (!p->intervals) return no_memory("resources", count, st);
  for (uint32_t i = 0; i < count; i++)
    VYRE_TRY(set_interval(p, i, &lives[i], st));
  return place(p, st);
}

static vyre_code over_budget(const planner *p, uint64_t required,
                             vyre_status *st) {
  uint64_t budget = p->graph->options.budget_bytes;
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_OVER_BUDGET, NULL,
      VYRE_NUMBERS({"required_bytes", required}, {"budget_bytes", budget},
                   {"placed_bytes", p->plan->placement.placed_bytes},
                   {"resident_bytes", p->plan->resident_bytes}),
      "raise budget_bytes to required_bytes, or split the largest waves",
      "wave graph: %llu bytes are needed with the best grouping that was found "
      "(%llu in one allocation, %llu external or constant), the budget is %llu",
      (unsigned long long)required,
      (unsigned long long)p->plan->placement.placed_bytes,
      (unsigned long long)p->plan->resident_bytes, (unsigned long long)budget);
}

/* The lifetimes of resources span groups, so that the allocation can exceed the
 * budget although every group fits. Smaller groups then often help. */
static vyre_code plan_to_budget(planner *p, vyre_status *st) {
  uint64_t budget = p->graph->options.budget_bytes, groups = budget;
  if (budget == 0) return plan_within(p, UINT64_MAX, st);
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < BUDGET_TRIES; i++) {
    vyre_code code = plan_within(p, groups, i == 0 ? st : NULL);
    if (code != VYRE_OK && i == 0) return code;
    if (code != VYRE_OK) break;
    uint64_t need = p->plan->placement.placed_bytes + p->plan->resident_bytes;
    if (need <= budget) return VYRE_OK;
    if (need < best) best = need;
    groups -= groups / 4;
  }
  return over_budget(p, best, st);
}

static vyre_code build(planner *p, vyre_status *st) {
  vyre_wave_graph *graph = p->graph;
  if (graph->wave_count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "add a wave with vyre_wave_graph_add_wave",
                     "the wave graph has no waves");
  }
  VYRE_TRY(vyre__wave_dependencies(graph, &p->scratch, &p->dependencies,
                                   &p->dependency_count, st));
  VYRE_TRY(measure_waves(p, st));
  VYRE_TRY(plan_to_budget(p, st));
  if (graph->options.declared_only) {
    VYRE_TRY(vyre__wave_check_order(graph, p->dependencies, p->dependency_count,
                                    &p->scratch, st));
  }
  p->plan->submissions = 1;
  p->plan->barriers = p->plan->frontier.barriers.global_barriers;
  const vyre__backend *backend = graph->device->backend;
  uint32_t threads =
      backend->wave_threads ? backend->wave_threads(graph->device) : 0;
  if (threads > 0 && !vyre__wave_map_build(graph, threads))
    return no_memory("threads", threads, st);
  return VYRE_OK;
}

vyre_code vyre__wave_plan(vyre_wave_graph *graph, vyre_status *st) {
  if (graph->has_plan) return VYRE_OK;
  planner p = {
      .graph = graph, .plan = &graph->plan, .arena = &graph->plan_arena};
  vyre_arena_reset(&graph->plan_arena);
  graph->plan = (vyre_wave_plan){0};
  vyre_arena_init(&p.scratch, graph->device->allocator);
  vyre_code code = build(&p, st);
  vyre_arena_deinit(&p.scratch);
  graph->has_plan = code == VYRE_OK;
  return code;
}

vyre_code vyre_wave_graph_plan(vyre_wave_graph *graph,
                               const vyre_wave_plan **out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, graph);
  VYRE_TRY(vyre__wave_plan(graph, st));
  *out = &graph->plan;
  return VYRE_OK;
}
