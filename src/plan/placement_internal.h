/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the placement planner.
 *
 * Internally, time is measured in sections and memory in units. Sections are
 * the numbered moments that matter: two intervals are alive at once if and
 * only if they share a section. A unit is the largest number that divides
 * every alignment, and therefore every rounded size; all offsets are
 * multiples of it. */
#ifndef VYRE_PLAN_PLACEMENT_INTERNAL_H
#define VYRE_PLAN_PLACEMENT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/memory.h"

#define VYRE__NO_OFFSET UINT64_MAX /* offset of an item without a placement */

typedef struct vyre__place_item {
  uint64_t size;        /* in units, never 0 */
  uint64_t alignment;   /* in units; 1 where it can be ignored */
  uint32_t first, last; /* sections, both included */
} vyre__place_item;

/* Part: intervals that no moment separates, placed independently of other
 * parts. Sorted by first section, then by input order. */
typedef struct vyre__place_part {
  const vyre__place_item *items;
  uint64_t *offsets; /* best placement so far, in units */
  uint32_t count;
  uint32_t section_base; /* its first section */
  uint32_t sections;     /* how many it has */
  bool placed;     /* a placement exists; otherwise `height` has no meaning */
  uint64_t height; /* of the best placement */
  uint64_t bound;  /* proven: no placement is lower */
  const uint64_t *live; /* units alive, by section of this part */
} vyre__place_part;

/* Limits of a placement, and remaining work. */
typedef struct vyre__place_limits {
  uint64_t capacity; /* highest allowed top, so that byte offsets fit in u64 */
  uint64_t target;   /* a height that is good enough */
  uint64_t steps;    /* remaining; counts down */
  uint64_t nodes;    /* visited by the exact search; counts up */
} vyre__place_limits;

/* Returns true if a method should work on the part. */
static inline bool vyre__place_wanted(const vyre__place_part *part,
                                      uint64_t target) {
  return !part->placed || part->height > target;
}

/* Returns true if a placement of this height would be an improvement. */
static inline bool vyre__place_better(const vyre__place_part *part,
                                      uint64_t height) {
  return !part->placed || part->height > height;
}

/* Sorts keys upwards together with their indices; stable. The spare arrays
 * have the same length and undefined contents afterwards. */
void vyre__place_sort(uint64_t *keys, uint32_t *indices, uint64_t *spare_keys,
                      uint32_t *spare_indices, uint32_t count);

/* Sort keys of items; largest first, except for the start. */
typedef enum vyre__place_key {
  VYRE__KEY_NONE,
  VYRE__KEY_SIZE,
  VYRE__KEY_AREA, /* size times lifetime */
  VYRE__KEY_LIFETIME,
  VYRE__KEY_START, /* earliest first */
  VYRE__KEY_END,
  VYRE__KEY_ALIGNMENT,
  VYRE__KEY_CONFLICT, /* sum of the sizes of all items alive together with it */
  VYRE__KEY_CROWD     /* units alive in the fullest section of its life */
} vyre__place_key;

enum { VYRE__RULE_KEYS = 3 };

/* Sort keys, the most important first. If all are equal, the index decides. */
typedef struct vyre__place_rule {
  vyre__place_key keys[VYRE__RULE_KEYS];
} vyre__place_rule;

typedef struct vyre__place_sorter {
  uint64_t *keys, *spare_keys, *sums;
  uint32_t *order, *spare_order;
} vyre__place_sorter;

bool vyre__place_sorter_take(vyre_arena *arena, const vyre__place_part *part,
                             vyre__place_sorter *out);

/* Stores the order in sorter->order. */
void vyre__place_order(vyre__place_sorter *sorter, const vyre__place_part *part,
                       vyre__place_rule rule);

/* Raises @p offset to a multiple of @p alignment such that @p size fits below
 * @p limit. Returns false if it does not. */
static inline bool vyre__place_raise(uint64_t *offset, uint64_t alignment,
                                     uint64_t size, uint64_t limit) {
  uint64_t at = *offset;
  if (alignment != 1) {
    uint64_t rest = at % alignment;
    if (rest != 0) {
      if (alignment - rest > UINT64_MAX - at) return false;
      at += alignment - rest;
    }
  }
  if (at > limit || size > limit - at) return false;
  *offset = at;
  return true;
}

static inline bool vyre__place_meet(const vyre__place_item *a,
                                    const vyre__place_item *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* These functions return false only if the arena is out of memory. */

/* Places the items of @p all in an order, each on top of all items in its
 * sections. An item that would end above the capacity gets
 * VYRE__NO_OFFSET. Takes n log n time. */
bool vyre__place_skyline(vyre_arena *arena, const vyre__place_part *all,
                         const uint32_t *order, uint64_t capacity,
                         uint64_t *offsets);

/* Like vyre__place_skyline, for an order by first section: each item goes
 * into a hole of about its size that earlier items left. */
bool vyre__place_sweep(vyre_arena *arena, const vyre__place_part *all,
                       const uint32_t *order, uint64_t capacity,
                       uint64_t *offsets);

/* Computes lowest-fit placements of many orders, then of changes to the best
 * of them, while steps are left and the part is above the target. */
bool vyre__place_fit(vyre_arena *arena, vyre__place_part *part,
                     vyre__place_limits *limits);

/* Searches exactly for a lower placement. Raises part->bound to what it
 * proved. limits->steps counts nodes here; a large node counts as several. */
bool vyre__place_search(vyre_arena *arena, vyre__place_part *part,
                        vyre__place_limits *limits);

#endif
