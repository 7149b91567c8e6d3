/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lowest-fit placements: items are taken in some order and put at the lowest
 * free offset. Every placement in which no item can move down is the lowest
 * fit of some order, and some optimal placement is one of these. So it is
 * enough to search orders. */
#include <string.h>

#include "base/memory.h"
#include "plan/placement_internal.h"

enum {
  LANES = 64,        /* entries of a chunk */
  NO_CHUNK = -1,     /* end of a list */
  MAX_WIDTH = 32767, /* sections per window, so that they fit in 16 bits */
  /* number of items up to which the first order always completes */
  MUST_FINISH = 20000,
  PROBES = 16 /* one per range of the timeline */
};

/* Part of a list of placed items, by rising offset. Sections are relative to
 * the start of the window and clipped to it. Unused lanes overlap nothing.
 * Narrow types let the overlap test process many lanes at a time. */
typedef struct chunk {
  int16_t first[LANES], last[LANES];
  uint64_t offset[LANES], top[LANES];
} chunk;

/* Data of a chunk that a walk along the list needs. Stored separately,
 * because most chunks are skipped. */
typedef struct chunk_link {
  uint64_t max_top;
  uint64_t min_offset;
  int32_t count, next, previous;
} chunk_link;

/* Window: a part of the timeline of fixed width, with a list of the items
 * alive in it. Items with short lives then meet few others. */
typedef struct window {
  int32_t head;
  int32_t reached; /* chunk where the current item found its gap */
  uint32_t lives;  /* items alive in the window */
} window;

typedef struct gap {
  uint64_t start, end; /* the last gap of a list has no upper end */
} gap;

/* Probe: a crowded section with all of its gaps, upwards. An item alive there
 * must go into one of them. There are few gaps, so most placed items need no
 * look. */
typedef struct probe {
  gap *gaps;
  uint32_t count, section;
} probe;

typedef struct fitter {
  const vyre__place_part *part;
  probe probes[PROBES];
  window *windows;
  chunk *chunks;
  chunk_link *links; /* one per chunk */
  int32_t chunk_count;
  uint32_t width; /* sections per window */
  uint32_t window_count;
  uint64_t steps; /* entries visited */
} fitter;

/* An item relative to one window. */
typedef struct visitor {
  int16_t first, last;
  uint64_t size, alignment, limit;
  const gap *gaps; /* of the item's probe; NULL without one */
} visitor;

/* --- lists -----------------------------------------------------------------*/

static uint64_t overlap_mask(const chunk *c, int16_t first, int16_t last) {
  uint8_t hit[LANES];
  for (int i = 0; i < LANES; i++) {
    hit[i] = (uint8_t)((c->first[i] <= last) & (c->last[i] >= first));
  }
  uint64_t mask = 0;
  for (int i = 0; i < LANES; i += 8) {
    uint64_t eight;
    memcpy(&eight, hit + i, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    /* Moves the lowest bit of byte k to bit 56 + k. */
    mask |= (eight * UINT64_C(0x0102040810204080)) >> 56 << i;
  }
  return mask;
}

/* Raises *at to the next offset where the item fits a gap of its probe.
 * Returns false if that is above the limit. Earlier gaps are never tried
 * again. */
static bool raise_item(visitor *v, uint64_t *at) {
  for (;;) {
    if (!vyre__place_raise(at, v->alignment, v->size, v->limit)) return false;
    if (!v->gaps) return true;
    while (v->gaps->end < *at + v->size) v->gaps++;
    if (v->gaps->start <= *at) return true;
    *at = v->gaps->start;
  }
}

/* Raises *at until the item fits in this window. Returns false if that is
 * above the limit. Continues where the last call for this item ended, because
 * nothing before can conflict. */
static bool find_gap(fitter *f, window *w, visitor *v, uint64_t *at) {
  uint64_t offset = *at, looked = 0;
  int32_t index = w->reached;
  bool fits = true;
  for (; index != NO_CHUNK; index = f->links[index].next) {
    const chunk_link *l = &f->links[index];
    looked += LANES / 16;
    w->reached = index;
    if (l->max_top <= offset) continue;
    if (l->min_offset >= offset + v->size) break;
    const chunk *c = &f->chunks[index];
    looked += LANES / 4;
    uint64_t mask = overlap_mask(c, v->first, v->last);
    for (; mask != 0; mask &= mask - 1) {
      int lane = __builtin_ctzll(mask);
      looked++;
      if (c->offset[lane] >= offset + v->size) goto done;
      if (c->top[lane] <= offset) continue;
      offset = c->top[lane];
      fits = raise_item(v, &offset);
      if (!fits) goto done;
    }
  }
done:
  f->steps += looked;
  *at = offset;
  return fits;
}

static void clear_lanes(chunk *c, int from) {
  for (int i = from; i < LANES; i++) {
    c->first[i] = INT16_MAX;
    c->last[i] = -1;
  }
}

static int32_t new_chunk(fitter *f, window *w, int32_t previous) {
  int32_t index = f->chunk_count++;
  int32_t next = previous == NO_CHUNK ? w->head : f->links[previous].next;
  f->links[index] = (chunk_link){.next = next, .previous = previous};
  clear_lanes(&f->chunks[index], 0);
  if (next != NO_CHUNK) f->links[next].previous = index;
  if (previous == NO_CHUNK) w->head = index;
  if (previous != NO_CHUNK) f->links[previous].next = index;
  return index;
}

static void summarise(fitter *f, int32_t index, int32_t count) {
  const chunk *c = &f->chunks[index];
  chunk_link *l = &f->links[index];
  l->count = count;
  l->min_offset = c->offset[0];
  l->max_top = 0;
  for (int i = 0; i < count; i++) {
    if (c->top[i] > l->max_top) l->max_top = c->top[i];
  }
}

/* Moves the upper half of a full chunk to a new one after it. */
static void split_chunk(fitter *f, window *w, int32_t index) {
  enum { HALF = LANES / 2 };
  int32_t behind = new_chunk(f, w, index);
  chunk *c = &f->chunks[index], *d = &f->chunks[behind];
  memcpy(d->first, c->first + HALF, HALF * sizeof c->first[0]);
  memcpy(d->last, c->last + HALF, HALF * sizeof c->last[0]);
  memcpy(d->offset, c->offset + HALF, HALF * sizeof c->offset[0]);
  memcpy(d->top, c->top + HALF, HALF * sizeof c->top[0]);
  clear_lanes(c, HALF);
  summarise(f, index, HALF);
  summarise(f, behind, HALF);
}

/* Frees lane @p lane of a chunk that has @p count entries. */
static void shift_lanes(chunk *c, int lane, int count) {
  size_t moved = (size_t)(count - lane);
  memmove(c->first + lane + 1, c->first + lane, moved * sizeof c->first[0]);
  memmove(c->last + lane + 1, c->last + lane, moved * sizeof c->last[0]);
  memmove(c->offset + lane + 1, c->offset + lane, moved * sizeof c->offset[0]);
  memmove(c->top + lane + 1, c->top + lane, moved * sizeof c->top[0]);
}

/* Returns the chunk for an item at @p offset: the one where the scan ended,
 * or an earlier one. It has a free lane. */
static int32_t chunk_for(fitter *f, window *w, uint64_t offset) {
  int32_t index = w->reached;
  if (index == NO_CHUNK) return new_chunk(f, w, NO_CHUNK);
  while (f->links[index].previous != NO_CHUNK &&
         f->links[index].min_offset > offset) {
    index = f->links[index].previous;
  }
  if (f->links[index].count < LANES) return index;
  split_chunk(f, w, index);
  int32_t behind = f->links[index].next;
  return f->links[behind].min_offset <= offset ? behind : index;
}

static void insert(fitter *f, window *w, const visitor *v, uint64_t offset) {
  int32_t index = chunk_for(f, w, offset);
  chunk *c = &f->chunks[index];
  chunk_link *l = &f->links[index];
  int lane = l->count;
  while (lane > 0 && c->offset[lane - 1] > offset) lane--;
  shift_lanes(c, lane, l->count);
  c->first[lane] = v->first;
  c->last[lane] = v->last;
  c->offset[lane] = offset;
  c->top[lane] = offset + v->size;
  if (c->top[lane] > l->max_top) l->max_top = c->top[lane];
  l->min_offset = c->offset[0];
  l->count++;
}

/* --- one order -------------------------------------------------------------*/

/* Computes the item relative to window @p number. */
static void look(const fitter *f, const vyre__place_item *item, uint32_t number,
                 visitor *v) {
  uint32_t base = f->part->section_base + number * f->width;
  uint32_t end = base + (f->width - 1);
  v->first = (int16_t)(item->first > base ? item->first - base : 0);
  v->last = (int16_t)((item->last < end ? item->last : end) - base);
}

/* Returns the gaps of the most crowded probe in the item's life. */
static const gap *item_gaps(const fitter *f, const vyre__place_item *item) {
  const probe *best = NULL;
  uint64_t max = 0;
  for (int i = 0; i < PROBES; i++) {
    const probe *p = &f->probes[i];
    if (!p->gaps || p->section < item->first || p->section > item->last) {
      continue;
    }
    uint64_t live = f->part->live[p->section - f->part->section_base];
    if (live <= max) continue;
    max = live;
    best = p;
  }
  return best ? best->gaps : NULL;
}

/* Removes the item's bytes from the gap that contains them. */
static void fill_gap(probe *p, uint64_t start, uint64_t end) {
  uint32_t low = 0, high = p->count - 1;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (p->gaps[middle].end >= end) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  gap *g = &p->gaps[low];
  uint32_t after = p->count - low - 1;
  if (g->start == start && g->end == end && after > 0) {
    memmove(g, g + 1, after * sizeof *g);
    p->count--;
  } else if (g->start == start) {
    g->start = end; /* the open gap stays, even if empty */
  } else if (g->end == end && after > 0) {
    g->end = start;
  } else {
    memmove(g + 2, g + 1, after * sizeof *g);
    g[1] = (gap){end, g->end};
    g->end = start;
    p->count++;
  }
}

static void fill_probes(fitter *f, const vyre__place_item *item, uint64_t at) {
  for (int i = 0; i < PROBES; i++) {
    probe *p = &f->probes[i];
    if (!p->gaps || p->section < item->first || p->section > item->last) {
      continue;
    }
    fill_gap(p, at, at + item->size);
  }
}

/* Finds the lowest offset that is free in all windows of the item: each
 * window raises it until all agree. */
static bool place_item(fitter *f, const vyre__place_item *item, uint64_t limit,
                       uint64_t *out) {
  uint32_t from = (item->first - f->part->section_base) / f->width;
  uint32_t to = (item->last - f->part->section_base) / f->width;
  visitor v = {0, 0, item->size, item->alignment, limit, item_gaps(f, item)};
  uint64_t at = 0;
  if (!raise_item(&v, &at)) return false;
  for (uint32_t w = from; w <= to; w++) {
    f->windows[w].reached = f->windows[w].head;
  }
  uint32_t agreeing = 0, count = to - from + 1;
  for (uint32_t w = from; agreeing < count; w = w == to ? from : w + 1) {
    uint64_t before = at;
    look(f, item, w, &v);
    if (!find_gap(f, &f->windows[w], &v, &at)) return false;
    agreeing = at == before ? agreeing + 1 : 1;
  }
  for (uint32_t w = from; w <= to; w++) {
    look(f, item, w, &v);
    insert(f, &f->windows[w], &v, at);
  }
  fill_probes(f, item, at);
  f->steps += LANES / 2;
  *out = at;
  return true;
}

/* Places all items in an order. Returns false above the limit, or after too
 * many steps. */
static bool place_order(fitter *f, const uint32_t *order, uint64_t limit,
                        uint64_t steps, uint64_t *offsets, uint64_t *height) {
  f->chunk_count = 0;
  f->steps = 0;
  for (uint32_t w = 0; w < f->window_count; w++) {
    f->windows[w].head = NO_CHUNK;
  }
  for (int i = 0; i < PROBES; i++) {
    if (!f->probes[i].gaps) continue;
    f->probes[i].gaps[0] = (gap){0, UINT64_MAX};
    f->probes[i].count = 1;
  }
  *height = 0;
  for (uint32_t i = 0; i < f->part->count; i++) {
    const vyre__place_item *item = &f->part->items[order[i]];
    uint64_t *at = &offsets[order[i]];
    if (f->steps > steps || !place_item(f, item, limit, at)) return false;
    if (*at + item->size > *height) *height = *at + item->size;
  }
  return true;
}

/* --- local search over orders ----------------------------------------------*/

/* State of the local search. */
typedef struct climb {
  fitter fit;
  vyre__place_part *part;
  vyre__place_limits *limits;
  vyre__place_sorter sorter;
  uint32_t *order, *trial; /* current order, and a modified one */
  uint64_t *offsets, *trial_offsets;
  uint32_t *spot;  /* position of each item in the order */
  bool started;    /* a current order exists */
  uint64_t height; /* of its placement */
  uint64_t random;
} climb;

static uint64_t next_random(climb *c) {
  uint64_t z = c->random += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static uint32_t random_below(climb *c, uint32_t bound) {
  return (uint32_t)(((next_random(c) >> 32) * bound) >> 32);
}

/* Chooses a width such that an item is in two windows on average and a list
 * fills several chunks. */
static uint32_t window_width(const vyre__place_part *part) {
  enum { LIST = 4 * LANES };
  uint64_t lives = 0;
  for (uint32_t i = 0; i < part->count; i++) {
    lives += part->items[i].last - part->items[i].first;
  }
  if (part->count == 0) return 1;
  uint64_t width = lives / part->count + 1;
  uint64_t min = (uint64_t)part->sections * LIST / part->count + 1;
  if (width < min) width = min;
  if (width > part->sections) width = part->sections;
  return width > MAX_WIDTH ? MAX_WIDTH : (uint32_t)width;
}

/* Puts a probe on the fullest section of each range. It has at most one gap
 * more than items. */
static bool take_probes(vyre_arena *arena, const vyre__place_part *part,
                        fitter *f) {
  for (uint32_t i = 0; i < PROBES; i++) {
    uint32_t from = (uint32_t)((uint64_t)part->sections * i / PROBES);
    uint32_t to = (uint32_t)((uint64_t)part->sections * (i + 1) / PROBES);
    if (from == to) continue;
    uint32_t best = from;
    for (uint32_t s = from; s < to; s++) {
      if (part->live[s] > part->live[best]) best = s;
    }
    probe *p = &f->probes[i];
    p->section = part->section_base + best;
    size_t lives = 0;
    for (uint32_t k = 0; k < part->count; k++) {
      const vyre__place_item *item = &part->items[k];
      lives += item->first <= p->section && item->last >= p->section;
    }
    p->gaps = vyre__arena_array(arena, lives + 1, sizeof *p->gaps);
    if (!p->gaps) return false;
  }
  return true;
}

/* Divides the timeline into windows and counts the items alive in each. */
static bool take_windows(vyre_arena *arena, const vyre__place_part *part,
                         fitter *f) {
  f->part = part;
  f->width = window_width(part);
  f->window_count = (part->sections - 1) / f->width + 1;
  f->windows =
      vyre__arena_filled(arena, f->window_count, sizeof *f->windows, 0);
  if (!f->windows) return false;
  for (uint32_t i = 0; i < part->count; i++) {
    uint32_t from = (part->items[i].first - part->section_base) / f->width;
    uint32_t to = (part->items[i].last - part->section_base) / f->width;
    for (uint32_t w = from; w <= to; w++) f->windows[w].lives++;
  }
  return true;
}

/* Returns true if one order is cheap enough. It is much better than the
 * sweep, so it may exceed the step limit to some degree. */
static bool is_affordable(const fitter *f, const vyre__place_limits *limits) {
  const uint64_t max_steps = 300000000, pairs_per_step = 4;
  uint64_t pairs = 0;
  if (f->part->count <= MUST_FINISH) return true;
  for (uint32_t w = 0; w < f->window_count; w++) {
    pairs += (uint64_t)f->windows[w].lives * f->windows[w].lives / 2;
    if (pairs >> 62 != 0) return false;
  }
  uint64_t steps = pairs / pairs_per_step;
  return steps <= max_steps || steps <= limits->steps;
}

static bool take_fitter(vyre_arena *arena, const vyre__place_part *part,
                        fitter *f) {
  size_t entries = 0;
  for (uint32_t w = 0; w < f->window_count; w++) entries += f->windows[w].lives;
  size_t chunks = entries / (LANES / 2) + f->window_count + 1;
  f->chunks = vyre__arena_array(arena, chunks, sizeof *f->chunks);
  f->links = vyre__arena_array(arena, chunks, sizeof *f->links);
  return f->chunks && f->links && take_probes(arena, part, f);
}

static bool take_climb(vyre_arena *arena, climb *c) {
  size_t count = c->part->count;
  c->order = vyre__arena_array(arena, count, sizeof *c->order);
  c->trial = vyre__arena_array(arena, count, sizeof *c->trial);
  c->spot = vyre__arena_array(arena, count, sizeof *c->spot);
  c->offsets = vyre__arena_array(arena, count, sizeof *c->offsets);
  c->trial_offsets = vyre__arena_array(arena, count, sizeof *c->trial_offsets);
  return c->order && c->trial && c->spot && c->offsets && c->trial_offsets &&
         vyre__place_sorter_take(arena, c->part, &c->sorter) &&
         take_fitter(arena, c->part, &c->fit);
}

static bool climbing(const climb *c) {
  return vyre__place_wanted(c->part, c->limits->target) && c->limits->steps > 0;
}

/* Places the trial order and pays for it, including one step per item for
 * building the order. The part keeps the better result. Returns false like
 * place_order. */
static bool try_order(climb *c, uint64_t limit, uint64_t steps,
                      uint64_t *height) {
  vyre__place_part *part = c->part;
  bool ok =
      place_order(&c->fit, c->trial, limit, steps, c->trial_offsets, height);
  uint64_t left = c->limits->steps, used = c->fit.steps + part->count;
  c->limits->steps = used < left ? left - used : 0;
  if (ok && vyre__place_better(part, *height)) {
    part->placed = true;
    part->height = *height;
    memcpy(part->offsets, c->trial_offsets,
           part->count * sizeof *c->trial_offsets);
  }
  return ok;
}

/* Makes the trial order the current one. */
static void take_over(climb *c, uint64_t height) {
  uint64_t *offsets = c->offsets;
  uint32_t *order = c->order;
  c->offsets = c->trial_offsets;
  c->trial_offsets = offsets;
  c->order = c->trial;
  c->trial = order;
  c->height = height;
  c->started = true;
  for (uint32_t i = 0; i < c->part->count; i++) c->spot[c->order[i]] = i;
}

/* Tries orders that are known to work well, the best first. Equal sizes are
 * ordered by start: this alone is optimal if all sizes are equal. */
static void try_rules(climb *c) {
  static const vyre__place_rule rules[] = {
      {{VYRE__KEY_SIZE, VYRE__KEY_START}},
      {{VYRE__KEY_AREA, VYRE__KEY_SIZE}},
      {{VYRE__KEY_LIFETIME, VYRE__KEY_SIZE}},
      {{VYRE__KEY_CROWD, VYRE__KEY_SIZE, VYRE__KEY_LIFETIME}},
      {{VYRE__KEY_CROWD, VYRE__KEY_AREA}},
      {{VYRE__KEY_CROWD, VYRE__KEY_LIFETIME, VYRE__KEY_SIZE}},
      {{VYRE__KEY_CONFLICT, VYRE__KEY_SIZE}},
      {{VYRE__KEY_ALIGNMENT, VYRE__KEY_SIZE, VYRE__KEY_START}},
      {{VYRE__KEY_START, VYRE__KEY_SIZE}},
      {{VYRE__KEY_END, VYRE__KEY_SIZE}},
  };
  enum { RULES = sizeof rules / sizeof rules[0] };
  uint64_t count = c->part->count;
  for (size_t r = 0; r < RULES && climbing(c); r++) {
    uint64_t steps = c->limits->steps;
    if (r == 0) steps = UINT64_MAX;
    vyre__place_order(&c->sorter, c->part, rules[r]);
    memcpy(c->trial, c->sorter.order, count * sizeof *c->trial);
    uint64_t height;
    if (!try_order(c, c->limits->capacity, steps, &height)) continue;
    if (!c->started || height < c->height) take_over(c, height);
  }
}

/* Picks an item that is alive together with the one at the peak, or that
 * item. */
static uint32_t pick_item(climb *c) {
  uint32_t count = c->part->count;
  uint32_t peak = 0, from = random_below(c, count);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t i = from + k < count ? from + k : from + k - count;
    if (c->offsets[i] + c->part->items[i].size == c->height) {
      peak = i;
      break;
    }
  }
  if (random_below(c, 2)) return peak;
  from = random_below(c, count);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t i = from + k < count ? from + k : from + k - count;
    if (vyre__place_meet(&c->part->items[i], &c->part->items[peak])) return i;
  }
  return peak;
}

/* Moves an item of the trial order to another position. */
static void move_item(uint32_t *order, uint32_t from, uint32_t to) {
  uint32_t item = order[from];
  if (to < from) {
    memmove(order + to + 1, order + to, (from - to) * sizeof *order);
  } else {
    memmove(order + from, order + from + 1, (to - from) * sizeof *order);
  }
  order[to] = item;
}

/* Modifies the current order slightly and keeps the change if the placement
 * is not higher. */
static void try_changes(climb *c) {
  uint32_t count = c->part->count;
  while (c->started && climbing(c)) {
    memcpy(c->trial, c->order, count * sizeof *c->trial);
    uint32_t moves = 1 + random_below(c, 3);
    for (uint32_t m = 0; m < moves; m++) {
      uint32_t item = pick_item(c);
      uint32_t from = c->spot[item];
      /* Earlier moves may have shifted it a little. */
      while (c->trial[from] != item) from = from + 1 < count ? from + 1 : 0;
      uint32_t to = random_below(c, from + 1);
      move_item(c->trial, from, to);
    }
    uint64_t height;
    if (try_order(c, c->height, c->limits->steps, &height)) {
      take_over(c, height);
    }
  }
}

bool vyre__place_fit(vyre_arena *arena, vyre__place_part *part,
                     vyre__place_limits *limits) {
  climb c = {.part = part, .limits = limits};
  if (!take_windows(arena, part, &c.fit)) return false;
  if (!is_affordable(&c.fit, limits)) return true;
  if (!take_climb(arena, &c)) return false;
  try_rules(&c);
  try_changes(&c);
  return true;
}
