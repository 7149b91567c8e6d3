/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/recording/range_map.h"

#include "base/memory.h"
#include "base/sort.h"

/* --- building ------------------------------------------------------------ */

typedef struct range_ends {
  uint32_t *next; /* per slot: where its next end goes */
  vyre__sort_item *ends;
} range_ends;

static bool count_ends(void *self, const vyre_slot_range *range,
                       bool is_written) {
  uint32_t *counts = self;
  (void)is_written;
  counts[range->slot] += range->size > 0 ? 2 : 1;
  return true;
}

static bool add_ends(void *self, const vyre_slot_range *range,
                     bool is_written) {
  const range_ends *e = self;
  (void)is_written;
  e->ends[e->next[range->slot]++].key = range->offset;
  if (range->size > 0)
    e->ends[e->next[range->slot]++].key = range->offset + range->size;
  return true;
}

/* Turns counts into the number of all earlier ones. Returns the sum. */
static size_t sum_up(uint32_t *counts, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    size_t own = counts[i];
    counts[i] = (uint32_t)sum;
    sum += own;
  }
  return sum;
}

/* Makes each different end of a slot one leaf. */
static void make_leaves(const vyre_recording *rec, range_ends *e,
                        uint32_t *first_leaf, uint64_t *begins,
                        vyre__range_map *out) {
  size_t leaf = 0;
  uint32_t at = 0;
  for (size_t slot = 0; slot < rec->slot_count; slot++) {
    uint32_t end = e->next[slot];
    first_leaf[slot] = (uint32_t)leaf;
    vyre__sort(e->ends + at, end - at);
    for (; at < end; at++) {
      bool is_new =
          leaf == first_leaf[slot] || begins[leaf - 1] != e->ends[at].key;
      if (is_new) begins[leaf++] = e->ends[at].key;
    }
  }
  first_leaf[rec->slot_count] = (uint32_t)leaf;
  out->leaf_count = leaf;
}

bool vyre__range_map_build(const vyre_recording *rec, vyre_arena *arena,
                           vyre__range_map *out) {
  size_t slots = rec->slot_count;
  range_ends e = {vyre__arena_filled(arena, slots + 1, sizeof *e.next, 0),
                  NULL};
  uint32_t *first_leaf =
      vyre__arena_array(arena, slots + 1, sizeof *first_leaf);
  if (!e.next || !first_leaf) return false;
  for (size_t i = 0; i < rec->command_count; i++)
    (void)vyre__command_slot_ranges(&rec->commands[i], count_ends, e.next);
  size_t count = sum_up(e.next, slots + 1);
  e.ends = vyre__arena_filled(arena, count, sizeof *e.ends, 0);
  uint64_t *begins = vyre__arena_array(arena, count, sizeof *begins);
  if (count > UINT32_MAX / 2 || !e.ends || !begins) return false;
  for (size_t i = 0; i < rec->command_count; i++)
    (void)vyre__command_slot_ranges(&rec->commands[i], add_ends, &e);
  make_leaves(rec, &e, first_leaf, begins, out);
  out->first_leaf = first_leaf;
  out->begins = begins;
  for (int i = 0; i < VYRE__RANGE_MAP_TREES; i++) {
    vyre__range_tree *tree = &out->trees[i];
    size_t nodes = 2 * out->leaf_count;
    tree->newest = vyre__arena_filled(arena, nodes, sizeof *tree->newest, 0);
    tree->cover = vyre__arena_filled(arena, nodes, sizeof *tree->cover, 0);
    if (!tree->newest || !tree->cover) return false;
  }
  return true;
}

/* --- using --------------------------------------------------------------- */

/* Returns the leaf of @p slot that begins at @p offset. */
static size_t leaf_at(const vyre__range_map *map, uint32_t slot,
                      uint64_t offset) {
  size_t low = map->first_leaf[slot], high = map->first_leaf[slot + 1];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (map->begins[middle] < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Returns the leaf after a range. A size of 0 reaches to the end of the slot.
 */
static size_t leaf_after(const vyre__range_map *map,
                         const vyre_slot_range *range) {
  return range->size > 0
             ? leaf_at(map, range->slot, range->offset + range->size)
             : map->first_leaf[range->slot + 1];
}

static uint32_t larger(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

static void mark_node(const vyre__range_tree *tree, size_t node,
                      uint32_t mark) {
  tree->newest[node] = larger(tree->newest[node], mark);
  tree->cover[node] = larger(tree->cover[node], mark);
}

void vyre__range_map_mark(const vyre__range_map *map, int index,
                          const vyre_slot_range *range, uint32_t mark) {
  const vyre__range_tree *tree = &map->trees[index];
  size_t first = leaf_at(map, range->slot, range->offset) + map->leaf_count;
  size_t last = leaf_after(map, range) - 1 + map->leaf_count;
  for (size_t l = first, r = last + 1; l < r; l /= 2, r /= 2) {
    if (l & 1) mark_node(tree, l++, mark);
    if (r & 1) mark_node(tree, --r, mark);
  }
  for (size_t i = first / 2; i > 0; i /= 2)
    tree->newest[i] = larger(tree->newest[i], mark);
  for (size_t i = last / 2; i > 0; i /= 2)
    tree->newest[i] = larger(tree->newest[i], mark);
}

uint32_t vyre__range_map_max(const vyre__range_map *map, int index,
                             const vyre_slot_range *range) {
  const vyre__range_tree *tree = &map->trees[index];
  size_t first = leaf_at(map, range->slot, range->offset) + map->leaf_count;
  size_t last = leaf_after(map, range) - 1 + map->leaf_count;
  uint32_t max = 0;
  for (size_t l = first, r = last + 1; l < r; l /= 2, r /= 2) {
    if (l & 1) max = larger(max, tree->newest[l++]);
    if (r & 1) max = larger(max, tree->newest[--r]);
  }
  for (size_t i = first / 2; i > 0; i /= 2) max = larger(max, tree->cover[i]);
  for (size_t i = last / 2; i > 0; i /= 2) max = larger(max, tree->cover[i]);
  return max;
}
