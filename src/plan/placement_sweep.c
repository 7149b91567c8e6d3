/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sweep: goes through time like an allocator at run time, which frees what
 * has ended and takes a hole of about the right size for what starts. Knows
 * nothing of the future, but costs next to nothing an item, however many there
 * are and however long they live. */
#include <string.h>

#include "base/memory.h"
#include "plan/placement_internal.h"

#define NONE UINT32_MAX

enum {
  SPLIT_BITS = 4, /* bins for every power of two: 1 << SPLIT_BITS */
  BINS = 64 << SPLIT_BITS,
  LOOKED_AT = 8 /* holes tried of a bin */
};

/* A stretch of offsets, taken or free. Neighbours are linked, so that a freed
 * stretch can be joined with them; free ones are also in the list of a bin. */
typedef struct stretch {
  uint64_t offset, size;
  uint32_t below, above;
  uint32_t bin_previous, bin_next;
  bool free;
} stretch;

typedef struct sweep {
  stretch *stretches;
  uint32_t unused;  /* stretches without use, linked by bin_next */
  uint32_t highest; /* the one that ends at the top */
  uint64_t top;
  uint32_t bins[BINS];
  uint64_t filled[BINS / 64]; /* bins that are not empty */
  uint32_t *ending;           /* by section: the first item that ends there */
  uint32_t *ending_next;      /* by item */
  uint32_t *taken;            /* the stretch of each item */
} sweep;

/* The bin of a size: its highest bit and the bits that follow. */
static unsigned bin_of(uint64_t size) {
  unsigned high = 63 - (unsigned)__builtin_clzll(size);
  uint64_t rest = high > SPLIT_BITS ? size >> (high - SPLIT_BITS)
                                    : size << (SPLIT_BITS - high);
  return (high << SPLIT_BITS) + (unsigned)(rest & ((1u << SPLIT_BITS) - 1));
}

static void put_in_bin(sweep *s, uint32_t index) {
  stretch *hole = &s->stretches[index];
  unsigned bin = bin_of(hole->size);
  hole->free = true;
  hole->bin_previous = NONE;
  hole->bin_next = s->bins[bin];
  if (hole->bin_next != NONE) {
    s->stretches[hole->bin_next].bin_previous = index;
  }
  s->bins[bin] = index;
  s->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void take_from_bin(sweep *s, uint32_t index) {
  stretch *hole = &s->stretches[index];
  unsigned bin = bin_of(hole->size);
  hole->free = false;
  if (hole->bin_next != NONE) {
    s->stretches[hole->bin_next].bin_previous = hole->bin_previous;
  }
  if (hole->bin_previous != NONE) {
    s->stretches[hole->bin_previous].bin_next = hole->bin_next;
    return;
  }
  s->bins[bin] = hole->bin_next;
  if (hole->bin_next == NONE) {
    s->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
  }
}

/* The first bin from @p bin on that has a hole, or BINS. */
static unsigned next_filled(const sweep *s, unsigned bin) {
  if (bin >= BINS) return BINS;
  uint64_t word = s->filled[bin / 64] & (UINT64_MAX << bin % 64);
  for (unsigned w = bin / 64;;) {
    if (word != 0) return w * 64 + (unsigned)__builtin_ctzll(word);
    if (++w == BINS / 64) return BINS;
    word = s->filled[w];
  }
}

static uint32_t new_stretch(sweep *s) {
  uint32_t index = s->unused;
  s->unused = s->stretches[index].bin_next;
  return index;
}

static void drop_stretch(sweep *s, uint32_t index) {
  s->stretches[index].bin_next = s->unused;
  s->unused = index;
}

/* Cuts the lower @p size off a stretch (in no bin) and returns it as a new one
 * below it. */
static uint32_t cut_below(sweep *s, uint32_t index, uint64_t size) {
  uint32_t lower = new_stretch(s);
  stretch *a = &s->stretches[lower], *b = &s->stretches[index];
  *a = (stretch){b->offset, size, b->below, index, NONE, NONE, false};
  if (b->below != NONE) s->stretches[b->below].above = lower;
  b->below = lower;
  b->offset += size;
  b->size -= size;
  return lower;
}

/* Where the item would start in a hole; false if it does not fit. */
static bool fits_hole(const stretch *hole, const vyre__place_item *item,
                      uint64_t *at) {
  *at = hole->offset;
  return vyre__place_raise(at, item->alignment, item->size,
                           hole->offset + hole->size);
}

/* A hole of about the size of the item, or NONE. Holes of the item's own bin
 * may be too small, and alignment may spoil those of the next few. */
static uint32_t find_hole(const sweep *s, const vyre__place_item *item,
                          uint64_t *at) {
  unsigned bin = next_filled(s, bin_of(item->size));
  for (; bin < BINS; bin = next_filled(s, bin + 1)) {
    uint32_t index = s->bins[bin];
    for (int looked = 0; index != NONE && looked < LOOKED_AT; looked++) {
      if (fits_hole(&s->stretches[index], item, at)) return index;
      index = s->stretches[index].bin_next;
    }
  }
  return NONE;
}

/* Makes room on top; the hole there, if there is one, becomes part of it. */
static uint32_t grow_top(sweep *s, const vyre__place_item *item,
                         uint64_t capacity, uint64_t *at) {
  uint32_t index = s->highest;
  bool joins = index != NONE && s->stretches[index].free;
  *at = joins ? s->stretches[index].offset : s->top;
  if (!vyre__place_raise(at, item->alignment, item->size, capacity))
    return NONE;
  if (joins) {
    take_from_bin(s, index);
  } else {
    index = new_stretch(s);
    s->stretches[index] =
        (stretch){s->top, 0, s->highest, NONE, NONE, NONE, false};
    if (s->highest != NONE) s->stretches[s->highest].above = index;
    s->highest = index;
  }
  s->top = *at + item->size;
  s->stretches[index].size = s->top - s->stretches[index].offset;
  return index;
}

/* Gives the item a stretch of just its size. */
static bool take(sweep *s, const vyre__place_item *item, uint64_t capacity,
                 uint32_t *taken, uint64_t *at) {
  uint32_t index = find_hole(s, item, at);
  if (index != NONE) {
    take_from_bin(s, index);
  } else {
    index = grow_top(s, item, capacity, at);
    if (index == NONE) return false;
  }
  uint64_t before = *at - s->stretches[index].offset;
  if (before > 0) put_in_bin(s, cut_below(s, index, before));
  if (s->stretches[index].size > item->size) {
    uint32_t lower = cut_below(s, index, item->size);
    put_in_bin(s, index);
    index = lower;
  }
  *taken = index;
  return true;
}

/* Joins a stretch (in no bin) with the one above it, which goes. */
static void join_above(sweep *s, uint32_t index) {
  stretch *a = &s->stretches[index];
  uint32_t upper = a->above;
  a->size += s->stretches[upper].size;
  a->above = s->stretches[upper].above;
  if (a->above != NONE) s->stretches[a->above].below = index;
  if (s->highest == upper) s->highest = index;
  drop_stretch(s, upper);
}

static void give_back(sweep *s, uint32_t index) {
  uint32_t above = s->stretches[index].above;
  if (above != NONE && s->stretches[above].free) {
    take_from_bin(s, above);
    join_above(s, index);
  }
  uint32_t below = s->stretches[index].below;
  if (below != NONE && s->stretches[below].free) {
    take_from_bin(s, below);
    join_above(s, below);
    index = below;
  }
  put_in_bin(s, index);
}

/* The most items that live at once. Leaves counts in @p change. */
static size_t most_at_once(const vyre__place_part *whole, uint32_t *change) {
  uint32_t live = 0, most = 0;
  memset(change, 0, whole->sections * sizeof *change);
  for (uint32_t i = 0; i < whole->count; i++) {
    uint32_t after = whole->items[i].last + 1;
    change[whole->items[i].first]++;
    if (after < whole->sections)
      change[after]--; /* may wrap; the sum does not */
  }
  for (uint32_t t = 0; t < whole->sections; t++) {
    live += change[t];
    if (live > most) most = live;
  }
  return most;
}

/* Holes never touch, so there is at most one more of them than of items. */
static bool take_sweep(vyre_arena *arena, const vyre__place_part *whole,
                       sweep *s) {
  size_t count = whole->count;
  s->ending = vyre__arena_array(arena, whole->sections, sizeof *s->ending);
  s->ending_next = vyre__arena_array(arena, count, sizeof *s->ending_next);
  s->taken = vyre__arena_array(arena, count, sizeof *s->taken);
  if (!s->ending || !s->ending_next || !s->taken) return false;
  size_t most = 2 * most_at_once(whole, s->ending) + 2;
  s->stretches = vyre__arena_array(arena, most, sizeof *s->stretches);
  if (!s->stretches) return false;
  memset(s->ending, 0xFF, whole->sections * sizeof *s->ending);
  memset(s->bins, 0xFF, sizeof s->bins);
  memset(s->filled, 0, sizeof s->filled);
  s->highest = NONE;
  s->unused = NONE;
  s->top = 0;
  for (size_t i = most; i-- > 0;) drop_stretch(s, (uint32_t)i);
  return true;
}

bool vyre__place_sweep(vyre_arena *arena, const vyre__place_part *whole,
                       const uint32_t *order, uint64_t capacity,
                       uint64_t *offsets) {
  sweep s;
  if (!take_sweep(arena, whole, &s)) return false;
  uint32_t section = 0;
  for (uint32_t k = 0; k < whole->count; k++) {
    uint32_t i = order[k];
    const vyre__place_item *item = &whole->items[i];
    for (; section < item->first; section++) {
      uint32_t ended = s.ending[section];
      for (; ended != NONE; ended = s.ending_next[ended]) {
        give_back(&s, s.taken[ended]);
      }
    }
    offsets[i] = VYRE__NO_SOURCE_LOC;
    if (!take(&s, item, capacity, &s.taken[i], &offsets[i])) {
      offsets[i] = VYRE__NO_SOURCE_LOC;
      continue;
    }
    s.ending_next[i] = s.ending[item->last];
    s.ending[item->last] = i;
  }
  return true;
}
