/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sorts waves into layers if dependencies are in order: sorted by their later
 * wave, each on an earlier wave. A graph that is built wave by wave has this
 * order. It saves most of the work: the depth of a wave is known once its
 * dependencies are read.
 *
 * The order inside a layer equals that of the general planner. There, a wave
 * is discovered when the last wave that it depends on is visited. So waves
 * are sorted by the largest position among those, then by number, which is
 * the order of the dependencies. */
#include <string.h>

#include "plan/barrier.h"

/* Computes the depth of every wave, and offsets[d + 1] = number of waves of
 * depth d. Returns false if the graph is not in order or contains an error,
 * which the general planner then reports. */
static bool find_depths(const vyre__wave_graph *graph, uint32_t *starts,
                        uint32_t *depths, vyre__wave_layers *out) {
  const vyre_wave_dependency *dependencies = graph->dependencies;
  size_t wave_count = graph->wave_count, at = 0;
  size_t dependency_count = graph->dependency_count;
  uint32_t *offsets = out->offsets;
  uint32_t layers = 0;
  for (size_t wave = 0; wave < wave_count; wave++) {
    uint32_t depth = 0;
    starts[wave] = (uint32_t)at;
    for (; at < dependency_count && dependencies[at].after == wave; at++) {
      uint64_t before = dependencies[at].before;
      if (before >= wave) return false;
      uint32_t below = depths[before] + 1;
      depth = below > depth ? below : depth;
    }
    depths[wave] = depth;
    if (depth == layers) offsets[++layers] = 0;
    offsets[depth + 1]++;
  }
  starts[wave_count] = (uint32_t)at;
  out->count = layers;
  return at == dependency_count;
}

/* Sorts waves by depth, then by number; offsets[d + 1] becomes the end of
 * layer d. */
static void sort_by_depth(size_t wave_count, const uint32_t *depths,
                          const vyre__wave_layers *out) {
  uint32_t start = 0, *offsets = out->offsets, *waves = out->waves;
  for (size_t layer = 1; layer <= out->count; layer++) {
    uint32_t width = offsets[layer];
    offsets[layer] = start;
    start += width;
  }
  for (size_t wave = 0; wave < wave_count; wave++) {
    waves[offsets[depths[wave] + 1]++] = (uint32_t)wave;
  }
}

/* Sorts one layer, waves[from .. to), by the last position that each wave
 * depends on. These positions are all in the previous layer, which starts at
 * @p before. A counting sort. */
static void sort_layer(const vyre_wave_dependency *dependencies,
                       const uint32_t *starts, uint32_t before, uint32_t from,
                       uint32_t to, uint32_t *positions, uint32_t *waves,
                       uint32_t *memory) {
  uint32_t buckets = from - before;
  uint32_t width = to - from;
  uint32_t *ends = memory;
  uint32_t *keys = ends + buckets;
  uint32_t *copy = keys + width;
  memset(ends, 0, buckets * sizeof *ends);
  memcpy(copy, waves + from, width * sizeof *copy);
  for (uint32_t i = 0; i < width; i++) {
    uint32_t last = 0;
    uint32_t end = starts[copy[i] + 1];
    for (uint32_t at = starts[copy[i]]; at < end; at++) {
      uint32_t position = positions[dependencies[at].before];
      last = position > last ? position : last;
    }
    keys[i] = last - before;
    ends[keys[i]]++;
  }
  uint32_t start = from;
  for (uint32_t i = 0; i < buckets; i++) {
    uint32_t count = ends[i];
    ends[i] = start;
    start += count;
  }
  for (uint32_t i = 0; i < width; i++) {
    uint32_t position = ends[keys[i]]++;
    waves[position] = copy[i];
    positions[copy[i]] = position;
  }
}

bool vyre__barrier_layers_in_order(const vyre__wave_graph *graph,
                                   const vyre_barrier_scratch *scratch,
                                   vyre__wave_layers *out) {
  uint32_t *starts = scratch->row_ends, *offsets = out->offsets;
  uint32_t *positions = scratch->indegree; /* depths until they are sorted */
  if (!find_depths(graph, starts, positions, out)) return false;
  sort_by_depth(graph->wave_count, positions, out);
  for (uint32_t i = 0; i < offsets[1]; i++) positions[out->waves[i]] = i;
  for (size_t layer = 1; layer < out->count; layer++) {
    sort_layer(graph->dependencies, starts, offsets[layer - 1], offsets[layer],
               offsets[layer + 1], positions, out->waves, scratch->targets);
  }
  return true;
}
