/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Greedy placement by size, for comparison. */
#include "peer_placement.h"

#include <stdlib.h>

typedef struct placed {
  uint64_t offset, end, first, last;
} placed;

static const vyre_interval *sorting;

static int by_size(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  if (sorting[x].size != sorting[y].size) {
    return sorting[x].size > sorting[y].size ? -1 : 1;
  }
  return x < y ? -1 : x > y;
}

/* Returns the smallest gap below or between the intervals that overlap in time.
 * The list is sorted by offset. */
static uint64_t best_gap(const placed *list, size_t count,
                         const vyre_interval *it) {
  uint64_t floor = 0, best = UINT64_MAX, best_room = UINT64_MAX;
  for (size_t i = 0; i < count; i++) {
    if (list[i].last < it->first_group || list[i].first > it->last_group) {
      continue;
    }
    uint64_t room = list[i].offset > floor ? list[i].offset - floor : 0;
    if (room >= it->size && room < best_room) {
      best = floor;
      best_room = room;
    }
    if (list[i].end > floor) floor = list[i].end;
  }
  return best == UINT64_MAX ? floor : best;
}

uint64_t peer_placement(const vyre_interval *intervals, size_t count,
                        uint64_t *offsets) {
  size_t *order = malloc((count + 1) * sizeof *order);
  placed *list = malloc((count + 1) * sizeof *list);
  uint64_t bytes = 0;
  for (size_t i = 0; order && i < count; i++) order[i] = i;
  sorting = intervals;
  if (order && list) qsort(order, count, sizeof *order, by_size);
  for (size_t i = 0; order && list && i < count; i++) {
    const vyre_interval *it = &intervals[order[i]];
    uint64_t offset = best_gap(list, i, it);
    size_t at = i;
    for (; at > 0 && list[at - 1].offset > offset; at--)
      list[at] = list[at - 1];
    list[at] =
        (placed){offset, offset + it->size, it->first_group, it->last_group};
    offsets[order[i]] = offset;
    if (offset + it->size > bytes) bytes = offset + it->size;
  }
  free(order);
  free(list);
  return bytes;
}
