/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sorts waves into layers with Kahn's algorithm. Graphs whose dependencies
 * are in order use barrier_ordered.c, which gives the same plan in half the
 * time.
 *
 * Successors are stored row by row in one array (targets), each row in the
 * order of its dependencies. Rows are filled in place: row_ends[w] first
 * holds the start of row w and advances with every entry, so that it ends as
 * the end of the row, which is the start of the next one. The result array is
 * also the queue of the algorithm: a layer is a range of it. So a plan uses
 * three arrays besides its result, and reads each dependency three times. */
#include "plan/barrier.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

static const char planner[] = "barrier plan";

/* Prefetch distance in dependencies. */
enum { PREFETCH_DISTANCE = 24 };

void vyre_barrier_scratch_init(vyre_barrier_scratch *scratch,
                               vyre_allocator allocator) {
  if (scratch) *scratch = (vyre_barrier_scratch){.allocator = allocator};
}

void vyre_barrier_scratch_deinit(vyre_barrier_scratch *scratch) {
  if (!scratch) return;
  vyre_allocator allocator = scratch->allocator;
  vyre__reserve_free(allocator, &scratch->row_ends, &scratch->row_capacity,
                     sizeof *scratch->row_ends);
  vyre__reserve_free(allocator, &scratch->indegree, &scratch->indegree_capacity,
                     sizeof *scratch->indegree);
  vyre__reserve_free(allocator, &scratch->targets, &scratch->target_capacity,
                     sizeof *scratch->targets);
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

size_t vyre_barrier_scratch_wave_capacity(const vyre_barrier_scratch *scratch) {
  size_t rows = scratch->row_capacity > 0 ? scratch->row_capacity - 1 : 0;
  return smaller(smaller(rows, scratch->indegree_capacity),
                 scratch->target_capacity / 2);
}

size_t vyre_barrier_scratch_dependency_capacity(
    const vyre_barrier_scratch *scratch) {
  return scratch->target_capacity;
}

static vyre_code reserve(vyre_barrier_scratch *scratch, uint32_t **array,
                         size_t *capacity, size_t need, const char *field,
                         vyre_status *st) {
  if (vyre__reserve(scratch->allocator, array, capacity, need, sizeof **array,
                    true)) {
    return VYRE_OK;
  }
  return vyre__no_memory(st, planner, field, need);
}

/* Reserves scratch. Both algorithms reserve the same amount, so that scratch
 * that held a graph of some size holds every graph of that size: two words
 * per wave for sorting layers, or one per dependency for rows. */
static vyre_code reserve_all(vyre_barrier_scratch *scratch, size_t wave_count,
                             size_t dependency_count, vyre_status *st) {
  size_t words = 2 * wave_count;
  const char *field = "ready wave layer";
  if (dependency_count > words) {
    words = dependency_count;
    field = "outgoing targets";
  }
  VYRE_TRY(reserve(scratch, &scratch->row_ends, &scratch->row_capacity,
                   wave_count + 1, "outgoing offsets", st));
  VYRE_TRY(reserve(scratch, &scratch->indegree, &scratch->indegree_capacity,
                   wave_count, "indegree", st));
  return reserve(scratch, &scratch->targets, &scratch->target_capacity, words,
                 field, st);
}

static vyre_code too_many(const char *field, const char *what, size_t count,
                          size_t max, vyre_status *st) {
  return VYRE_FAIL_WITH(st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW,
                        field, NULL, "split the graph and plan its parts",
                        "barrier plan: %zu %s; the maximum is %zu", count, what,
                        max);
}

static vyre_code invalid_wave(const vyre_wave_dependency *dependency,
                              size_t wave_count, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_INVALID_WAVE, NULL,
      VYRE_NUMBERS({"before", dependency->before}, {"after", dependency->after},
                   {"wave_count", wave_count}),
      "number waves from 0, and use only these numbers in dependencies",
      "dependency %llu -> %llu uses a wave number outside the %zu waves",
      (unsigned long long)dependency->before,
      (unsigned long long)dependency->after, wave_count);
}

static vyre_code self_dependency(uint64_t wave, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_SELF_DEPENDENCY, NULL,
      VYRE_NUMBERS({"wave", wave}),
      "drop the dependency, or split the wave into producer and consumer",
      "wave %llu depends on itself", (unsigned long long)wave);
}

vyre_code vyre__barrier_check_sizes(const vyre__wave_graph *graph,
                                    vyre_status *st) {
  if (graph->wave_count > VYRE_MAX_WAVES) {
    return too_many("barrier scratch wave offsets", "waves", graph->wave_count,
                    VYRE_MAX_WAVES, st);
  }
  if (graph->dependency_count > VYRE_MAX_DEPENDENCIES) {
    return too_many("outgoing dependency offsets", "dependencies",
                    graph->dependency_count, VYRE_MAX_DEPENDENCIES, st);
  }
  if (graph->wave_count == 0 && graph->dependency_count > 0) {
    return invalid_wave(&graph->dependencies[0], 0, st);
  }
  return VYRE_OK;
}

/* Checks every dependency and counts it at both ends: row_ends[w] becomes the
 * number of successors, indegree[w] the number of predecessors. */
static vyre_code count(const vyre__wave_graph *graph, uint32_t *row_ends,
                       uint32_t *indegree, vyre_status *st) {
  size_t wave_count = graph->wave_count;
  memset(row_ends, 0, wave_count * sizeof *row_ends);
  memset(indegree, 0, wave_count * sizeof *indegree);
  for (size_t i = 0; i < graph->dependency_count; i++) {
    vyre_wave_dependency dependency = graph->dependencies[i];
    if (dependency.before >= wave_count || dependency.after >= wave_count) {
      return invalid_wave(&graph->dependencies[i], wave_count, st);
    }
    if (dependency.before == dependency.after) {
      return self_dependency(dependency.before, st);
    }
    row_ends[dependency.before]++;
    indegree[dependency.after]++;
  }
  return VYRE_OK;
}

/* Turns counts into row starts, then fills the rows, which turns the starts
 * into ends. */
static void fill_rows(const vyre__wave_graph *graph, uint32_t *row_ends,
                      uint32_t *targets) {
  const vyre_wave_dependency *dependencies = graph->dependencies;
  size_t dependency_count = graph->dependency_count;
  uint32_t start = 0;
  for (size_t wave = 0; wave < graph->wave_count; wave++) {
    uint32_t successors = row_ends[wave];
    row_ends[wave] = start;
    start += successors;
  }
  size_t ahead = dependency_count > PREFETCH_DISTANCE
                     ? dependency_count - PREFETCH_DISTANCE
                     : 0;
  for (size_t i = 0; i < ahead; i++) {
    __builtin_prefetch(
        &targets[row_ends[dependencies[i + PREFETCH_DISTANCE].before]], 1);
    targets[row_ends[dependencies[i].before]++] =
        (uint32_t)dependencies[i].after;
  }
  for (size_t i = ahead; i < dependency_count; i++) {
    targets[row_ends[dependencies[i].before]++] =
        (uint32_t)dependencies[i].after;
  }
}

/* Finds the waves without predecessors, in ascending order. */
static uint32_t first_layer(size_t wave_count, const uint32_t *indegree,
                            uint32_t *waves) {
  uint32_t ready = 0;
  for (size_t wave = 0; wave < wave_count; wave++) {
    /* Always written, kept only if ready: avoids an unpredictable branch. */
    waves[ready] = (uint32_t)wave;
    ready += indegree[wave] == 0;
  }
  return ready;
}

/* Removes one dependency of @p target, which joins the queue if it was the
 * last. The queue entry is always written and kept only if so, which avoids
 * an unpredictable branch. It never overflows: as long as a dependency is
 * left, some wave is not in the queue. */
static inline uint32_t remove_dependency(uint32_t target, uint32_t *indegree,
                                         uint32_t *waves, uint32_t end) {
  uint32_t left = --indegree[target];
  waves[end] = target;
  return end + (left == 0);
}

/* Appends all waves that depended only on waves[from .. to).
 *
 * Rows are short and of random length, so a loop per row would mispredict its
 * end for every wave. Instead, rows are first copied one after the other,
 * EIGHT entries whatever their length, and then walked as one. */
static uint32_t next_layer(const uint32_t *row_ends, const uint32_t *targets,
                           size_t target_count, uint32_t *indegree,
                           uint32_t *waves, uint32_t from, uint32_t to) {
  enum { EIGHT = 8, BATCH = 256 };
  uint32_t line[BATCH * EIGHT + EIGHT];
  uint32_t end = to;
  uint32_t i = from;
  while (i < to) {
    uint32_t filled = 0;
    uint32_t stop = to - i > BATCH ? i + BATCH : to;
    for (; i < stop; i++) {
      uint32_t wave = waves[i];
      uint32_t start = wave ? row_ends[wave - 1] : 0;
      uint32_t length = row_ends[wave] - start;
      if (length > EIGHT || target_count - start < EIGHT) break;
      memcpy(&line[filled], &targets[start], EIGHT * sizeof *line);
      filled += length;
    }
    for (uint32_t j = 0; j < filled; j++) {
      end = remove_dependency(line[j], indegree, waves, end);
    }
    if (i == stop) continue;
    /* A long row, or one at the very end of the array. */
    uint32_t wave = waves[i++];
    uint32_t row_end = row_ends[wave];
    for (uint32_t j = wave ? row_ends[wave - 1] : 0; j < row_end; j++) {
      end = remove_dependency(targets[j], indegree, waves, end);
    }
  }
  return end;
}

/* Reports a cycle: a wave on it and the number of waves on it. Every wave
 * that is left waits for another one that is left, so following these must
 * return to the same wave. */
static vyre_code cycle(const vyre__wave_graph *graph, size_t unscheduled,
                       const uint32_t *indegree, uint32_t *predecessor,
                       vyre_status *st) {
  uint32_t wave = 0;
  for (size_t i = 0; i < graph->dependency_count; i++) {
    uint32_t before = (uint32_t)graph->dependencies[i].before;
    uint32_t after = (uint32_t)graph->dependencies[i].after;
    if (indegree[before] == 0 || indegree[after] == 0) continue;
    predecessor[after] = before;
    wave = after;
  }
  for (size_t i = 0; i < graph->wave_count; i++) wave = predecessor[wave];
  uint32_t first = wave;
  size_t length = 0;
  uint32_t at = wave;
  do {
    if (at < first) first = at;
    at = predecessor[at];
    length++;
  } while (at != wave);
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_CYCLE, NULL,
      VYRE_NUMBERS({"unscheduled_waves", unscheduled}, {"wave", first},
                   {"cycle_length", length}),
      "remove one dependency of the cycle, or iterate inside one wave",
      "dependencies form a cycle of %zu waves through wave %u: %zu waves can "
      "never start",
      length, first, unscheduled);
}

/* General algorithm: accepts any order of dependencies and finds every error.
 */
static vyre_code layers_by_queue(const vyre__wave_graph *graph,
                                 const vyre_barrier_scratch *scratch,
                                 vyre__wave_layers *out, vyre_status *st) {
  uint32_t *row_ends = scratch->row_ends, *indegree = scratch->indegree;
  VYRE_TRY(count(graph, row_ends, indegree, st));
  fill_rows(graph, row_ends, scratch->targets);
  size_t layers = 0;
  uint32_t from = 0;
  uint32_t to = first_layer(graph->wave_count, indegree, out->waves);
  while (to > from) {
    out->offsets[++layers] = to;
    uint32_t end =
        next_layer(row_ends, scratch->targets, graph->dependency_count,
                   indegree, out->waves, from, to);
    from = to;
    to = end;
  }
  out->count = layers;
  if (to == graph->wave_count) return VYRE_OK;
  return cycle(graph, graph->wave_count - to, indegree, row_ends, st);
}

vyre_code vyre__barrier_layers(const vyre__wave_graph *graph,
                               vyre_barrier_scratch *scratch,
                               vyre__wave_layers *out, vyre_status *st) {
  out->count = 0;
  out->offsets[0] = 0;
  if (graph->wave_count == 0) return VYRE_OK;
  VYRE_TRY(
      reserve_all(scratch, graph->wave_count, graph->dependency_count, st));
  if (vyre__barrier_layers_in_order(graph, scratch, out)) return VYRE_OK;
  return layers_by_queue(graph, scratch, out, st);
}

vyre_code vyre_barrier_plan_build(size_t wave_count,
                                  const vyre_wave_dependency *dependencies,
                                  size_t dependency_count,
                                  vyre_barrier_scratch *scratch,
                                  vyre_arena *arena, vyre_barrier_plan *out,
                                  vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, scratch, arena);
  VYRE_REQUIRE_ARRAY(st, dependencies, dependency_count);
  const vyre__wave_graph graph = {wave_count, dependencies, dependency_count};
  VYRE_TRY(vyre__barrier_check_sizes(&graph, st));
  vyre__arena_mark start = vyre__arena_here(arena);
  vyre__wave_layers l = {
      .waves = vyre__arena_array(arena, wave_count, sizeof *l.waves),
      .offsets = vyre__arena_array(arena, wave_count + 1, sizeof *l.offsets)};
  vyre_code code =
      l.waves && l.offsets
          ? vyre__barrier_layers(&graph, scratch, &l, st)
          : vyre__no_memory(st, planner, "barrier groups", wave_count + 1);
  if (code != VYRE_OK) {
    vyre__arena_rewind(arena, start);
    return code;
  }
  vyre__arena_trim(arena, l.offsets, wave_count + 1, l.count + 1,
                   sizeof *l.offsets);
  *out = (vyre_barrier_plan){.group_offsets = l.offsets,
                             .waves = l.waves,
                             .group_count = l.count,
                             .wave_count = wave_count,
                             .global_barriers = l.count > 0 ? l.count - 1 : 0};
  return VYRE_OK;
}
