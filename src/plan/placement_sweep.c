/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sweep: walks through time like a run-time allocator, which frees items that
 * have ended and puts new ones into a hole of about the right size. It does
 * not know the future, but costs little per item, whatever their number and
 * lifetime. */
#include <string.h>

#include "base/memory.h"
#include "plan/placement_internal.h"

#define NONE UINT32_MAX

enum {
  SPLIT_BITS = 4, /* bins per power of two: 1 << SPLIT_BITS */
  BINS = 64 << SPLIT_BITS,
  LOOKED_AT = 8 /* holes tried per bin */
};

/* Range of offsets, allocated or free. Neighbours are linked, so that a freed
 * range can be merged with them. Free ranges are also in the list of a bin. */
typedef struct range {
  uint64_t offset, size;
  uint32_t below, above;
  uint32_t bin_previous, bin_next;
  bool free;
} range;

typedef struct sweep {
  range *ranges;
  uint32_t unused;  /* unused entries, linked by bin_next */
  uint32_t highest; /* the range at the top */
  uint64_t top;
  uint32_t bins[BINS];
  uint64_t filled[BINS / 64]; /* bins that are not empty */
  uint32_t *ending;           /* by section: first item that ends there */
  uint32_t *ending_next;      /* by item */
  uint32_t *taken;            /* range of each item */
} sweep;

/* Returns the bin of a size: its highest bit and the bits that follow. */
static unsigned bin_of(uint64_t size) {
  unsigned high = 63 - (unsigned)__builtin_clzll(size);
  uint64_t rest = high > SPLIT_BITS ? size >> (high - SPLIT_BITS)
                                    : size << (SPLIT_BITS - high);
  return (high << SPLIT_BITS) + (unsigned)(rest & ((1u << SPLIT_BITS) - 1));
}

static void put_in_bin(sweep *s, uint32_t index) {
  range *hole = &s->ranges[index];
  unsigned bin = bin_of(hole->size);
  hole->free = true;
  hole->bin_previous = NONE;
  hole->bin_next = s->bins[bin];
  if (hole->bin_next != NONE) {
    s->ranges[hole->bin_next].bin_previous = index;
  }
  s->bins[bin] = index;
  s->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void take_from_bin(sweep *s, uint32_t index) {
  range *hole = &s->ranges[index];
  unsigned bin = bin_of(hole->size);
  hole->free = false;
  if (hole->bin_next != NONE) {
    s->ranges[hole->bin_next].bin_previous = hole->bin_previous;
  }
  if (hole->bin_previous != NONE) {
    s->ranges[hole->bin_previous].bin_next = hole->bin_next;
    return;
  }
  s->bins[bin] = hole->bin_next;
  if (hole->bin_next == NONE) {
    s->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  }
}

/* Returns the first bin from @p bin on that has a hole, or BINS. */
static unsigned next_filled(const sweep *s, unsigned bin) {
  if (bin >= BINS) return BINS;
  uint64_t word = s->filled[bin / 64] & (UINT64_MAX << bin % 64);
  for (unsigned w = bin / 64;;) {
    if (word != 0) return w * 64 + (unsigned)__builtin_ctzll(word);
    if (++w == BINS / 64) return BINS;
    word = s->filled[w];
  }
}

static uint32_t new_range(sweep *s) {
  uint32_t index = s->unused;
  s->unused = s->ranges[index].bin_next;
  return index;
}

static void drop_range(sweep *s, uint32_t index) {
  s->ranges[index].bin_next = s->unused;
  s->unused = index;
}

/* Splits the lower @p size off a range (in no bin) and returns it as a new
 * range below. */
static uint32_t cut_below(sweep *s, uint32_t index, uint64_t size) {
  uint32_t lower = new_range(s);
  range *a = &s->ranges[lower], *b = &s->ranges[index];
  *a = (range){b->offset, size, b->below, index, NONE, NONE, false};
  if (b->below != NONE) s->ranges[b->below].above = lower;
  b->below = lower;
  b->offset += size;
  b->size -= size;
  return lower;
}

/* Computes where the item would start in a hole; returns false if it does not
 * fit. */
static bool fits_hole(const range *hole, const vyre__place_item *item,
                      uint64_t *at) {
  *at = hole->offset;
  return vyre__place_raise(at, item->alignment, item->size,
                           hole->offset + hole->size);
}

/* Finds a hole of about the size of the item, or NONE. Holes of the item's
 * own bin may be too small, and those of the next bins may fail by alignment.
 */
static uint32_t find_hole(const sweep *s, const vyre__place_item *item,
                          uint64_t *at) {
  unsigned bin = next_filled(s, bin_of(item->size));
  for (; bin < BINS; bin = next_filled(s, bin + 1)) {
    uint32_t index = s->bins[bin];
    for (int looked = 0; index != NONE && looked < LOOKED_AT; looked++) {
      if (fits_hole(&s->ranges[index], item, at)) return index;
      index = s->ranges[index].bin_next;
    }
  }
  return NONE;
}

/* Extends the top; a hole there becomes part of the new range. */
static uint32_t grow_top(sweep *s, const vyre__place_item *item,
                         uint64_t capacity, uint64_t *at) {
  uint32_t index = s->highest;
  bool joins = index != NONE && s->ranges[index].free;
  *at = joins ? s->ranges[index].offset : s->top;
  if (!vyre__place_raise(at, item->alignment, item->size, capacity))
    return NONE;
  if (joins) {
    take_from_bin(s, index);
  } else {
    index = new_range(s);
    s->ranges[index] = (range){s->top, 0, s->highest, NONE, NONE, NONE, false};
    if (s->highest != NONE) s->ranges[s->highest].above = index;
    s->highest = index;
  }
  s->top = *at + item->size;
  s->ranges[index].size = s->top - s->ranges[index].offset;
  return index;
}

/* Allocates a range of exactly the item's size. */
static bool allocate(sweep *s, const vyre__place_item *item, uint64_t capacity,
                     uint32_t *taken, uint64_t *at) {
  uint32_t index = find_hole(s, item, at);
  if (index != NONE) {
    take_from_bin(s, index);
  } else {
    index = grow_top(s, item, capacity, at);
    if (index == NONE) return false;
  }
  uint64_t before = *at - s->ranges[index].offset;
  if (before > 0) put_in_bin(s, cut_below(s, index, before));
  if (s->ranges[index].size > item->size) {
    uint32_t lower = cut_below(s, index, item->size);
    put_in_bin(s, index);
    index = lower;
  }
  *taken = index;
  return true;
}

/* Merges a range (in no bin) with the one above it. */
static void join_above(sweep *s, uint32_t index) {
  range *a = &s->ranges[index];
  uint32_t upper = a->above;
  a->size += s->ranges[upper].size;
  a->above = s->ranges[upper].above;
  if (a->above != NONE) s->ranges[a->above].below = index;
  if (s->highest == upper) s->highest = index;
  drop_range(s, upper);
}

static void give_back(sweep *s, uint32_t index) {
  uint32_t above = s->ranges[index].above;
  if (above != NONE && s->ranges[above].free) {
    take_from_bin(s, above);
    join_above(s, index);
  }
  uint32_t below = s->ranges[index].below;
  if (below != NONE && s->ranges[below].free) {
    take_from_bin(s, below);
    join_above(s, below);
    index = below;
  }
  put_in_bin(s, index);
}

/* Returns the maximum number of items alive at once. Leaves counts in @p
 * change. */
static size_t max_alive(const vyre__place_part *all, uint32_t *change) {
  uint32_t live = 0, max = 0;
  memset(change, 0, all->sections * sizeof *change);
  for (uint32_t i = 0; i < all->count; i++) {
    uint32_t after = all->items[i].last + 1;
    change[all->items[i].first]++;
    if (after < all->sections) change[after]--; /* may wrap; the sum does not */
  }
  for (uint32_t t = 0; t < all->sections; t++) {
    live += change[t];
    if (live > max) max = live;
  }
  return max;
}

/* Holes are never adjacent, so there is at most one more of them than of
 * items. */
static bool take_sweep(vyre_arena *arena, const vyre__place_part *all,
                       sweep *s) {
  size_t count = all->count;
  s->ending = vyre__arena_array(arena, all->sections, sizeof *s->ending);
  s->ending_next = vyre__arena_array(arena, count, sizeof *s->ending_next);
  s->taken = vyre__arena_array(arena, count, sizeof *s->taken);
  if (!s->ending || !s->ending_next || !s->taken) return false;
  size_t max = 2 * max_alive(all, s->ending) + 2;
  s->ranges = vyre__arena_array(arena, max, sizeof *s->ranges);
  if (!s->ranges) return false;
  memset(s->ending, 0xFF, all->sections * sizeof *s->ending);
  memset(s->bins, 0xFF, sizeof s->bins);
  memset(s->filled, 0, sizeof s->filled);
  s->highest = NONE;
  s->unused = NONE;
  s->top = 0;
  for (size_t i = max; i-- > 0;) drop_range(s, (uint32_t)i);
  return true;
}

bool vyre__place_sweep(vyre_arena *arena, const vyre__place_part *all,
                       const uint32_t *order, uint64_t capacity,
                       uint64_t *offsets) {
  sweep s;
  if (!take_sweep(arena, all, &s)) return false;
  uint32_t section = 0;
  for (uint32_t k = 0; k < all->count; k++) {
    uint32_t i = order[k];
    const vyre__place_item *item = &all->items[i];
    for (; section < item->first; section++) {
      uint32_t ended = s.ending[section];
      for (; ended != NONE; ended = s.ending_next[ended]) {
        give_back(&s, s.taken[ended]);
      }
    }
    offsets[i] = VYRE__NO_OFFSET;
    if (!allocate(&s, item, capacity, &s.taken[i], &offsets[i])) {
      offsets[i] = VYRE__NO_OFFSET;
      continue;
    }
    s.ending_next[i] = s.ending[item->last];
    s.ending[item->last] = i;
  }
  return true;
}
