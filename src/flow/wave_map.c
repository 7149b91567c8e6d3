/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Maps the waves of every group to the threads of a CPU device: a pure function
 * of the waves, their groups and the number of threads.
 *
 * A thread gets whole waves, those that read what it wrote before where there
 * is a choice: these bytes are in its cache. If whole waves would leave threads
 * idle, all waves of the group are split at fixed places instead, so that
 * groups of equal shape give each thread the same part of the bytes. */
#include "base/memory.h"
#include "flow/wave_internal.h"

enum { NO_THREAD = UINT32_MAX };

typedef struct mapper {
  vyre_wave_graph *graph;
  uint32_t threads;
  uint32_t *owners;   /* per resource: thread that wrote all of it last */
  uint64_t *loads;    /* per thread: weight in this group */
  uint64_t *near;     /* per thread: bytes of the wave that it wrote */
  uint32_t *assigned; /* per wave of the group: thread */
  vyre_wave_share *parts;
  size_t part_count, part_capacity;
} mapper;

static const vyre__wave *wave_at(const mapper *m, size_t position) {
  const vyre_barrier_plan *b = &m->graph->plan.frontier.barriers;
  return &m->graph->waves[b->waves[position]];
}

static bool add_part(mapper *m, const vyre_wave_share *part) {
  if (part->group_count == 0) return true;
  if (!vyre__reserve(m->graph->device->allocator, (void *)&m->parts,
                     &m->part_capacity, m->part_count + 1, sizeof *m->parts,
                     false)) {
    return false;
  }
  m->parts[m->part_count++] = *part;
  return true;
}

/* --- whole waves ---------------------------------------------------------- */

static void find_near(const mapper *m, const vyre__wave *wave) {
  for (uint32_t t = 0; t < m->threads; t++) m->near[t] = 0;
  for (size_t i = 0; i < wave->use_count; i++) {
    const vyre__wave_use *use = &wave->uses[i];
    if (use->resource == UINT32_MAX) continue;
    uint32_t owner = m->owners[use->resource];
    if (owner != NO_THREAD) m->near[owner] += use->size;
  }
}

/* Chooses the thread for a wave: the one that wrote most of its bytes, then the
 * one at its place in the group, then the one with the least work. A thread
 * takes no more than @p limit. */
static uint32_t choose_thread(const mapper *m, uint64_t weight, uint64_t limit,
                              uint32_t place) {
  uint32_t best = NO_THREAD, least = 0;
  for (uint32_t t = 0; t < m->threads; t++) {
    if (m->loads[t] < m->loads[least]) least = t;
    if (m->near[t] == 0 || m->loads[t] + weight > limit) continue;
    if (best == NO_THREAD || m->near[t] > m->near[best]) best = t;
  }
  if (best != NO_THREAD) return best;
  return m->loads[place] + weight <= limit ? place : least;
}

/* Assigns the waves [first, end) to threads. Returns the largest load. */
static uint64_t assign(mapper *m, size_t first, size_t end, uint64_t total) {
  uint64_t limit = total / m->threads + total / m->threads / 16 + 1;
  uint64_t before = 0, largest = 0;
  for (uint32_t t = 0; t < m->threads; t++) m->loads[t] = 0;
  for (size_t i = first; i < end; i++) {
    const vyre__wave *wave = wave_at(m, i);
    uint32_t place =
        (uint32_t)((double)before / (double)total * (double)m->threads);
    if (place >= m->threads) place = m->threads - 1;
    find_near(m, wave);
    uint32_t thread = choose_thread(m, wave->weight, limit, place);
    m->assigned[i - first] = thread;
    m->loads[thread] += wave->weight;
    if (m->loads[thread] > largest) largest = m->loads[thread];
    before += wave->weight;
  }
  return largest;
}

static bool add_whole(mapper *m, size_t first, size_t end) {
  const vyre_barrier_plan *b = &m->graph->plan.frontier.barriers;
  for (uint32_t t = 0; t < m->threads; t++) {
    for (size_t i = first; i < end; i++) {
      if (m->assigned[i - first] != t) continue;
      const vyre_wave_share part = {.wave = b->waves[i],
                                    .thread = t,
                                    .group_count = wave_at(m, i)->workgroups};
      if (!add_part(m, &part)) return false;
    }
  }
  return true;
}

/* --- split waves ---------------------------------------------------------- */

/* Returns the workgroup of a wave at @p weight of it. */
static uint64_t split_at(const vyre__wave *wave, uint64_t weight) {
  double at = (double)weight / (double)wave->weight * (double)wave->workgroups;
  uint64_t group = (uint64_t)(at + 0.5);
  return group < wave->workgroups ? group : wave->workgroups;
}

static uint64_t clamp(uint64_t value, uint64_t from, uint64_t to) {
  return value < from ? 0 : value > to ? to - from : value - from;
}

/* Splits the waves [first, end) into one range of their workgroups for each
 * thread. */
static bool add_split(mapper *m, size_t first, size_t end, uint64_t total) {
  const vyre_barrier_plan *b = &m->graph->plan.frontier.barriers;
  uint64_t from = 0;
  for (uint32_t t = 0; t < m->threads; t++) {
    uint64_t to = t + 1 == m->threads
                      ? total
                      : total / m->threads * (t + 1) +
                            total % m->threads * (t + 1) / m->threads;
    uint64_t begin = 0;
    for (size_t i = first; i < end; i++) {
      const vyre__wave *wave = wave_at(m, i);
      uint64_t last = begin + wave->weight;
      uint64_t low = split_at(wave, clamp(from, begin, last)),
               high = split_at(wave, clamp(to, begin, last));
      const vyre_wave_share part = {.wave = b->waves[i],
                                    .thread = t,
                                    .first_group = low,
                                    .group_count = high - low};
      if (!add_part(m, &part)) return false;
      begin = last;
    }
    from = to;
  }
  return true;
}

/* --- groups --------------------------------------------------------------- */

static void set_owners(mapper *m, size_t first, size_t end, bool is_whole) {
  for (size_t i = first; i < end; i++) {
    const vyre__wave *wave = wave_at(m, i);
    for (size_t k = 0; k < wave->use_count; k++) {
      const vyre__wave_use *use = &wave->uses[k];
      if (use->resource == UINT32_MAX || !use->writes) continue;
      bool is_all = use->size == m->graph->resources[use->resource].size;
      m->owners[use->resource] =
          is_whole && is_all ? m->assigned[i - first] : NO_THREAD;
    }
  }
}

/* Splits if one thread would have an eighth more than its share. */
static bool map_group(mapper *m, size_t first, size_t end) {
  uint64_t total = 0;
  bool may_split = false;
  for (size_t i = first; i < end; i++) {
    total += wave_at(m, i)->weight;
    may_split |= wave_at(m, i)->workgroups > 1;
  }
  uint64_t largest = assign(m, first, end, total), share = total / m->threads;
  bool is_whole = !may_split || largest <= share + share / 8;
  bool is_done =
      is_whole ? add_whole(m, first, end) : add_split(m, first, end, total);
  set_owners(m, first, end, is_whole);
  return is_done;
}

bool vyre__wave_map_build(vyre_wave_graph *graph, uint32_t threads) {
  vyre_arena *arena = &graph->plan_arena;
  const vyre_barrier_plan *b = &graph->plan.frontier.barriers;
  size_t groups = b->group_count;
  mapper m = {.graph = graph, .threads = threads};
  m.owners =
      vyre__arena_filled(arena, graph->resource_count, sizeof *m.owners, 0xff);
  m.loads = vyre__arena_array(arena, threads, sizeof *m.loads);
  m.near = vyre__arena_array(arena, threads, sizeof *m.near);
  m.assigned = vyre__arena_array(arena, graph->wave_count, sizeof *m.assigned);
  uint32_t *offsets = vyre__arena_array(arena, groups + 1, sizeof *offsets);
  bool is_done = m.owners && m.loads && m.near && m.assigned && offsets;
  for (size_t g = 0; g < groups && is_done; g++) {
    offsets[g] = (uint32_t)m.part_count;
    is_done = map_group(&m, b->group_offsets[g], b->group_offsets[g + 1]);
  }
  if (is_done) {
    offsets[groups] = (uint32_t)m.part_count;
    graph->plan.part_offsets = offsets;
    graph->plan.parts =
        vyre__arena_copy(arena, m.parts, m.part_count, sizeof *m.parts);
    graph->plan.threads = threads;
    is_done = graph->plan.parts != NULL;
  }
  vyre__reserve_free(graph->device->allocator, (void *)&m.parts,
                     &m.part_capacity, sizeof *m.parts);
  return is_done;
}
