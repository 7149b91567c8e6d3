/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A map from the slot ranges of a recording to numbers: marks a range with a
 * number, and finds the maximum mark of a range. Both take logarithmic time,
 * so that n commands can be compared with each other in O(n log n).
 *
 * The ends of all ranges cut each slot into pieces, which are the leaves of a
 * binary tree. */
#ifndef VYRE_RUNTIME_RECORDING_RANGE_MAP_H
#define VYRE_RUNTIME_RECORDING_RANGE_MAP_H

#include "runtime/recording/recording.h"

enum { VYRE__RANGE_MAP_TREES = 2 };

/* Nodes 1 to leaf_count - 1 have the children 2 i and 2 i + 1; the leaves
 * follow. */
typedef struct vyre__range_tree {
  uint32_t *newest; /* maximum mark at or below a node */
  uint32_t *cover;  /* maximum mark of all leaves below a node */
} vyre__range_tree;

typedef struct vyre__range_map {
  const uint32_t *first_leaf; /* of each slot, and the number of leaves */
  const uint64_t *begins;     /* offset in its slot where a leaf begins */
  size_t leaf_count;
  vyre__range_tree trees[VYRE__RANGE_MAP_TREES];
} vyre__range_map;

/* Builds the map for all ranges of the commands, without marks. Returns false
 * if memory is exhausted. */
bool vyre__range_map_build(const vyre_recording *recording, vyre_arena *arena,
                           vyre__range_map *out);
/* Marks a range of a command with a @p mark of 1 or more. */
void vyre__range_map_mark(const vyre__range_map *map, int tree,
                          const vyre_slot_range *range, uint32_t mark);
/* Returns the maximum mark in a range of a command, or 0. */
uint32_t vyre__range_map_max(const vyre__range_map *map, int tree,
                             const vyre_slot_range *range);

#endif
