/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Dependencies between waves: derived from the bytes that they read and write,
 * or declared and then checked against these. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "flow/wave_internal.h"

/* Use of a resource that later waves may have to wait for. */
typedef struct live_use {
  uint32_t wave;
  uint64_t begin, end;
} live_use;

typedef struct live_uses {
  live_use *uses;
  size_t count, capacity;
} live_uses;

/* Uses of one resource since its bytes were written last. */
typedef struct live_resource {
  live_uses reads, writes;
} live_resource;

/* Walks over the waves in an order in which they may run. Calls `visit` for
 * every pair of waves that use the same bytes, one of them writing, unless a
 * wave between them already writes all of these bytes. */
typedef struct conflict_walk {
  const vyre_wave_graph *graph;
  live_resource *resources;
  vyre_code (*visit)(void *self, uint32_t before, uint32_t after,
                     uint32_t resource, vyre_status *st);
  void *self;
} conflict_walk;

static vyre_code no_memory(size_t count, vyre_status *st) {
  return vyre__no_memory(st, "vyre_wave_graph_plan", "dependencies", count);
}

static vyre_code visit_overlaps(const conflict_walk *walk,
                                const live_uses *live, const live_use *use,
                                uint32_t resource, vyre_status *st) {
  for (size_t i = 0; i < live->count; i++) {
    const live_use *other = &live->uses[i];
    if (other->wave == use->wave || other->end <= use->begin ||
        use->end <= other->begin) {
      continue;
    }
    VYRE_TRY(walk->visit(walk->self, other->wave, use->wave, resource, st));
  }
  return VYRE_OK;
}

/* Removes the uses whose bytes @p use covers: later waves wait for it. */
static void remove_covered(live_uses *live, const live_use *use) {
  size_t kept = 0;
  for (size_t i = 0; i < live->count; i++) {
    const live_use *other = &live->uses[i];
    bool is_covered = other->wave != use->wave && other->begin >= use->begin &&
                      other->end <= use->end;
    if (!is_covered) live->uses[kept++] = *other;
  }
  live->count = kept;
}

static vyre_code add_live(const conflict_walk *walk, live_uses *live,
                          const live_use *use, vyre_status *st) {
  if (!vyre__reserve(walk->graph->device->allocator, (void *)&live->uses,
                     &live->capacity, live->count + 1, sizeof *live->uses,
                     false)) {
    return no_memory(live->count + 1, st);
  }
  live->uses[live->count++] = *use;
  return VYRE_OK;
}

static vyre_code walk_wave(const conflict_walk *walk, uint32_t number,
                           vyre_status *st) {
  const vyre__wave *wave = &walk->graph->waves[number];
  for (size_t i = 0; i < wave->use_count; i++) {
    const vyre__wave_use *u = &wave->uses[i];
    if (u->resource == UINT32_MAX || u->size == 0) continue;
    live_resource *r = &walk->resources[u->resource];
    const live_use use = {number, u->offset, u->offset + u->size};
    VYRE_TRY(visit_overlaps(walk, &r->writes, &use, u->resource, st));
    if (!u->writes) {
      VYRE_TRY(add_live(walk, &r->reads, &use, st));
      continue;
    }
    VYRE_TRY(visit_overlaps(walk, &r->reads, &use, u->resource, st));
    remove_covered(&r->reads, &use);
    remove_covered(&r->writes, &use);
    VYRE_TRY(add_live(walk, &r->writes, &use, st));
  }
  return VYRE_OK;
}

/* @p order: the waves; NULL: the order in which they were added. */
static vyre_code walk_conflicts(conflict_walk *walk, const uint32_t *order,
                                vyre_status *st) {
  const vyre_wave_graph *graph = walk->graph;
  vyre_allocator allocator = graph->device->allocator;
  size_t size = graph->resource_count * sizeof *walk->resources;
  walk->resources = size ? vyre__alloc_zeroed(allocator, size) : NULL;
  if (size && !walk->resources) return no_memory(graph->resource_count, st);
  vyre_code code = VYRE_OK;
  for (uint32_t i = 0; i < graph->wave_count && code == VYRE_OK; i++)
    code = walk_wave(walk, order ? order[i] : i, st);
  for (size_t i = 0; i < graph->resource_count; i++) {
    live_resource *r = &walk->resources[i];
    vyre__reserve_free(allocator, (void *)&r->reads.uses, &r->reads.capacity,
                       sizeof(live_use));
    vyre__reserve_free(allocator, (void *)&r->writes.uses, &r->writes.capacity,
                       sizeof(live_use));
  }
  if (size) vyre__resize(allocator, walk->resources, size, 0);
  return code;
}

/* --- derived dependencies ------------------------------------------------- */

typedef struct dependency_list {
  vyre_allocator allocator;
  vyre_wave_dependency *items;
  size_t count, capacity;
} dependency_list;

static vyre_code append(void *self, uint32_t before, uint32_t after,
                        uint32_t resource, vyre_status *st) {
  dependency_list *list = self;
  (void)resource;
  const vyre_wave_dependency *last =
      list->items ? &list->items[list->count - 1] : NULL;
  if (last && last->before == before && last->after == after) return VYRE_OK;
  if (!vyre__reserve(list->allocator, (void *)&list->items, &list->capacity,
                     list->count + 1, sizeof *list->items, false) ||
      !list->items) {
    return no_memory(list->count + 1, st);
  }
  list->items[list->count++] = (vyre_wave_dependency){before, after};
  return VYRE_OK;
}

vyre_code vyre__wave_dependencies(const vyre_wave_graph *graph,
                                  vyre_arena *arena,
                                  const vyre_wave_dependency **out,
                                  size_t *count, vyre_status *st) {
  dependency_list list = {.allocator = graph->device->allocator};
  conflict_walk walk = {.graph = graph, .visit = append, .self = &list};
  vyre_code code = VYRE_OK;
  *out = NULL;
  *count = 0;
  if (!graph->options.declared_only) code = walk_conflicts(&walk, NULL, st);
  size_t total = list.count + graph->declared_count;
  vyre_wave_dependency *all = NULL;
  if (code == VYRE_OK) {
    all = vyre__arena_array(arena, total, sizeof *all);
    if (!all) code = no_memory(total, st);
  }
  if (code == VYRE_OK) {
    if (list.count > 0) memcpy(all, list.items, list.count * sizeof *all);
    if (graph->declared_count > 0) {
      memcpy(all + list.count, graph->declared,
             graph->declared_count * sizeof *all);
    }
    *out = all;
    *count = total;
  }
  vyre__reserve_free(list.allocator, (void *)&list.items, &list.capacity,
                     sizeof *list.items);
  return code;
}

/* --- checking declared dependencies --------------------------------------- */

/* Successors of wave w: targets[ends[w - 1]] to before targets[ends[w]]. */
typedef struct order_check {
  const vyre_wave_graph *graph;
  size_t *ends;
  uint32_t *targets;
  uint32_t *stack;
  uint32_t *visited; /* per wave: number of the search that saw it last */
  uint32_t search;
} order_check;

static bool build_successors(order_check *check,
                             const vyre_wave_dependency *dependencies,
                             size_t count, vyre_arena *arena) {
  size_t waves = check->graph->wave_count;
  check->ends = vyre__arena_filled(arena, waves + 1, sizeof *check->ends, 0);
  check->targets = vyre__arena_array(arena, count, sizeof *check->targets);
  check->stack = vyre__arena_array(arena, waves, sizeof *check->stack);
  check->visited = vyre__arena_filled(arena, waves, sizeof *check->visited, 0);
  if (!check->ends || !check->targets || !check->stack || !check->visited)
    return false;
  for (size_t i = 0; i < count; i++) check->ends[dependencies[i].before + 1]++;
  for (size_t i = 0; i < waves; i++) check->ends[i + 1] += check->ends[i];
  for (size_t i = 0; i < count; i++) {
    const vyre_wave_dependency *d = &dependencies[i];
    check->targets[check->ends[d->before]++] = (uint32_t)d->after;
  }
  return true;
}

static void push_successors(order_check *check, uint32_t wave, uint32_t last,
                            size_t *depth) {
  size_t first = wave > 0 ? check->ends[wave - 1] : 0;
  for (size_t i = first; i < check->ends[wave]; i++) {
    uint32_t next = check->targets[i];
    if (check->visited[next] == check->search ||
        check->graph->waves[next].group > last) {
      continue;
    }
    check->visited[next] = check->search;
    check->stack[(*depth)++] = next;
  }
}

static bool reaches(order_check *check, uint32_t from, uint32_t to) {
  size_t depth = 0;
  uint32_t last = check->graph->waves[to].group;
  check->search++;
  push_successors(check, from, last, &depth);
  while (depth > 0) {
    uint32_t wave = check->stack[--depth];
    if (wave == to) return true;
    push_successors(check, wave, last, &depth);
  }
  return false;
}

static vyre_code check_pair(void *self, uint32_t before, uint32_t after,
                            uint32_t resource, vyre_status *st) {
  order_check *check = self;
  const vyre_wave_graph *graph = check->graph;
  if (reaches(check, before, after)) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_WAVE, NULL,
      VYRE_NUMBERS({"wave", before}, {"other_wave", after},
                   {"resource", resource}),
      "declare which of the two runs first with "
      "vyre_wave_graph_add_dependency, or create the graph without "
      "declared_only",
      "waves %u ('%s') and %u ('%s') use the same bytes of resource '%s', one "
      "of them writes these, and no dependency orders the two",
      before, graph->waves[before].label, after, graph->waves[after].label,
      vyre__wave_resource_name(graph, resource));
}

vyre_code vyre__wave_check_order(const vyre_wave_graph *graph,
                                 const vyre_wave_dependency *dependencies,
                                 size_t count, vyre_arena *arena,
                                 vyre_status *st) {
  order_check check = {.graph = graph};
  conflict_walk walk = {.graph = graph, .visit = check_pair, .self = &check};
  if (!build_successors(&check, dependencies, count, arena))
    return no_memory(count, st);
  return walk_conflicts(&walk, graph->plan.frontier.barriers.waves, st);
}
