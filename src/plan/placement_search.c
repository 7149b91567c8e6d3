/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Searches exactly for a placement of at most a given height. If the full
 * tree was searched without success, the next height is proven optimal.
 *
 * Only some placements need to be searched. Of all that fit below the height,
 * take one with the smallest sum of offsets. It has three properties:
 *
 * (a) No item can move down while the others stay, or the sum would be
 * smaller. So every item is at 0, or as low as its alignment allows on top of
 * another item that is alive with it. Sorted by offset, it is at the largest
 * top of earlier items alive with it, rounded up to its alignment. Alignments
 * may be any numbers: only the lowest aligned offset above a top matters.
 *
 * (b) Place items in the order of their offsets (equal offsets by rank). Then
 * no item j placed after i could fit completely below i's offset: nothing
 * placed later reaches down there, so j would have moved down.
 *
 * (c) Items of equal size, alignment and life are interchangeable, so the one
 * with the lower index may be the lower one.
 *
 * So the search places items by rising (offset, rank), each at the rounded-up
 * floor of its sections. It skips choices that break (b) or (c), and
 * backtracks where a section cannot hold the remaining items. If the
 * remaining items fall into groups that are disjoint in time, the groups are
 * searched one after the other, each in its own order of offsets; the
 * argument holds for each. If one group cannot be placed, the choice before
 * the split is wrong, whatever the other groups did. */
#include <string.h>

#include "base/memory.h"
#include "plan/placement_internal.h"

enum {
  MAX_ITEMS = 2000,   /* more items make the tree too large */
  WORK_PER_NODE = 512 /* items and sections visited, on average */
};

/* Choice of the next item among the items from..to-1 (by first section) that
 * are not placed yet; they fill sections first..last. */
typedef struct frame {
  uint32_t from, to;
  uint32_t first, last;
  uint64_t after_offset; /* the next item comes after this (offset, rank) */
  uint32_t after_rank;
  bool any; /* an item was placed before: after_* are valid */
  bool tried_any;
  uint32_t tried_rank; /* current choice */
  uint64_t tried_offset;
  uint32_t item;
  uint32_t group; /* start of the next group of remaining items */
  size_t low_mark, floor_mark, placed_mark;
} frame;

typedef struct saved {
  uint64_t value;
  uint32_t index;
} saved;

typedef enum outcome { FOUND, EXHAUSTED, OUT_OF_STEPS } outcome;

typedef struct searcher {
  const vyre__place_item *items;
  uint32_t count, base, sections;
  uint64_t capacity; /* highest allowed top */
  uint64_t *low;     /* lowest possible offset of an unplaced item */
  uint64_t *offsets;
  uint32_t *rank;
  uint32_t *equal_before; /* equal item that must be placed before, or NONE */
  bool *placed;
  uint64_t *floor;  /* by section: top of the placed items */
  uint64_t *rest;   /* by section: units left to place */
  uint64_t *lowest; /* by section: lowest start of the remaining items */
  frame *frames;
  saved *low_trail, *floor_trail;
  uint32_t *placed_trail;
  size_t low_count, floor_count, placed_count, depth;
  uint64_t nodes, work;
} searcher;

#define NONE UINT32_MAX

/* --- placing and undoing ---------------------------------------------------*/

static void put_down(searcher *s, const frame *f, uint32_t index) {
  const vyre__place_item *item = &s->items[index];
  uint64_t top = s->low[index] + item->size;
  s->offsets[index] = s->low[index];
  s->placed[index] = true;
  s->placed_trail[s->placed_count++] = index;
  for (uint32_t t = item->first - s->base; t <= item->last - s->base; t++) {
    s->floor_trail[s->floor_count++] = (saved){s->floor[t], t};
    s->floor[t] = top;
    s->rest[t] -= item->size;
  }
  for (uint32_t j = f->from; j < f->to; j++) {
    const vyre__place_item *other = &s->items[j];
    if (other->first > item->last) break;
    if (s->placed[j] || other->last < item->first || s->low[j] >= top) continue;
    s->low_trail[s->low_count++] = (saved){s->low[j], j};
    uint64_t low = top;
    bool fits =
        vyre__place_raise(&low, other->alignment, other->size, s->capacity);
    s->low[j] = fits ? low : VYRE__NO_OFFSET;
  }
}

static void take_back(searcher *s, const frame *f) {
  while (s->low_count > f->low_mark) {
    const saved *was = &s->low_trail[--s->low_count];
    s->low[was->index] = was->value;
  }
  while (s->floor_count > f->floor_mark) {
    const saved *was = &s->floor_trail[--s->floor_count];
    s->floor[was->index] = was->value;
  }
  while (s->placed_count > f->placed_mark) {
    uint32_t index = s->placed_trail[--s->placed_count];
    const vyre__place_item *item = &s->items[index];
    s->placed[index] = false;
    for (uint32_t t = item->first - s->base; t <= item->last - s->base; t++) {
      s->rest[t] += item->size;
    }
  }
}

/* --- bounds ----------------------------------------------------------------*/

/* Returns true if the order of offsets allows item j next. */
static bool in_order(const searcher *s, const frame *f, uint32_t j) {
  if (!f->any || s->low[j] > f->after_offset) return true;
  return s->low[j] == f->after_offset && s->rank[j] > f->after_rank;
}

/* Returns false if a section cannot hold the remaining items. An item whose
 * low offset has been passed must first be lifted by another one, which is
 * itself at the passed offset or above. */
static bool sections_hold(searcher *s, const frame *f) {
  uint32_t first = f->first - s->base, last = f->last - s->base;
  for (uint32_t t = first; t <= last; t++) s->lowest[t] = UINT64_MAX;
  for (uint32_t j = f->from; j < f->to; j++) {
    if (s->placed[j]) continue;
    const vyre__place_item *item = &s->items[j];
    uint64_t low = s->low[j];
    if (low == VYRE__NO_OFFSET) return false;
    if (!in_order(s, f, j)) {
      low = f->after_offset + 1;
      if (!vyre__place_raise(&low, item->alignment, item->size, s->capacity)) {
        return false;
      }
    }
    uint32_t end = item->last - s->base;
    for (uint32_t t = item->first - s->base; t <= end; t++) {
      s->lowest[t] = s->lowest[t] < low ? s->lowest[t] : low;
    }
    s->work += end - (item->first - s->base) + 1;
  }
  for (uint32_t t = first; t <= last; t++) {
    if (s->rest[t] == 0) continue;
    if (s->rest[t] > s->capacity || s->lowest[t] > s->capacity - s->rest[t]) {
      return false;
    }
  }
  s->work += f->to - f->from;
  return true;
}

/* Returns the next choice of a frame by (offset, rank), or NONE. */
static uint32_t next_choice(searcher *s, const frame *f) {
  uint64_t lowest_top = UINT64_MAX;
  for (uint32_t j = f->from; j < f->to; j++) {
    if (s->placed[j]) continue;
    uint64_t top = s->low[j] + s->items[j].size;
    if (top < lowest_top) lowest_top = top;
  }
  uint32_t best = NONE;
  for (uint32_t j = f->from; j < f->to; j++) {
    uint64_t low = s->low[j];
    if (s->placed[j] || low >= lowest_top || !in_order(s, f, j)) continue;
    if (f->tried_any &&
        (low < f->tried_offset ||
         (low == f->tried_offset && s->rank[j] <= f->tried_rank))) {
      continue;
    }
    if (s->equal_before[j] != NONE && !s->placed[s->equal_before[j]]) continue;
    if (best == NONE || low < s->low[best] ||
        (low == s->low[best] && s->rank[j] < s->rank[best])) {
      best = j;
    }
  }
  s->work += f->to - f->from;
  return best;
}

/* --- the tree --------------------------------------------------------------*/

/* Opens a frame for the next group of items that the choice of @p f left.
 * Returns false if none is left. */
static bool open_group(searcher *s, frame *f) {
  uint32_t from = f->group;
  while (from < f->to && s->placed[from]) from++;
  if (from == f->to) return false;
  uint32_t last = s->items[from].last, to = from;
  for (; to < f->to && s->items[to].first <= last; to++) {
    if (!s->placed[to] && s->items[to].last > last) last = s->items[to].last;
  }
  f->group = to;
  s->frames[s->depth++] = (frame){.from = from,
                                  .to = to,
                                  .first = s->items[from].first,
                                  .last = last,
                                  .after_offset = f->tried_offset,
                                  .after_rank = f->tried_rank,
                                  .any = f->tried_any};
  return true;
}

/* Places the next choice of the topmost frame. Returns false if there is
 * none. */
static bool choose(searcher *s, frame *f) {
  uint32_t item = next_choice(s, f);
  if (item == NONE) return false;
  f->tried_any = true;
  f->tried_offset = s->low[item];
  f->tried_rank = s->rank[item];
  f->group = f->from;
  f->low_mark = s->low_count;
  f->floor_mark = s->floor_count;
  f->placed_mark = s->placed_count;
  f->item = item;
  put_down(s, f, item);
  s->nodes++;
  return true;
}

/* Depth-first search without recursion: the frames are the stack. A frame is
 * new (bounds are checked once), continuing (its group below was placed), or
 * failed below (needs another choice). */
static outcome search(searcher *s, uint64_t node_limit) {
  enum { NEW, GO_ON, FAILED } state = NEW;
  uint64_t work_limit = UINT64_MAX;
  if (node_limit <= UINT64_MAX / WORK_PER_NODE) {
    work_limit = node_limit * WORK_PER_NODE;
  }
  frame root = {.to = s->count};
  s->depth = 0;
  s->nodes = s->work = 0;
  (void)open_group(s, &root);
  while (s->depth > 0) {
    frame *f = &s->frames[s->depth - 1];
    if (s->nodes >= node_limit || s->work >= work_limit) return OUT_OF_STEPS;
    if (state == FAILED) take_back(s, f);
    if (state != GO_ON) {
      bool open = (state == FAILED || sections_hold(s, f)) && choose(s, f);
      if (!open) {
        s->depth--;
        state = FAILED;
        continue;
      }
    }
    if (open_group(s, f)) {
      state = NEW;
    } else {
      s->depth--;
      state = GO_ON;
    }
  }
  return state == GO_ON ? FOUND : EXHAUSTED;
}

/* --- repeated searches -----------------------------------------------------*/

/* Computes the sum of lives (the maximum length of the floor trail) and the
 * number of pairs alive together (the same for the low trail). */
static void trail_sizes(const vyre__place_part *part, size_t *floors,
                        size_t *lows) {
  *floors = *lows = 0;
  for (uint32_t i = 0; i < part->count; i++) {
    *floors += part->items[i].last - part->items[i].first + 1;
    for (uint32_t j = i + 1; j < part->count; j++) {
      if (part->items[j].first > part->items[i].last) break;
      ++*lows;
    }
  }
}

static bool take_searcher(vyre_arena *arena, const vyre__place_part *part,
                          searcher *s) {
  size_t count = part->count, sections = part->sections, floors, lows;
  trail_sizes(part, &floors, &lows);
  s->items = part->items;
  s->count = part->count;
  s->base = part->section_base;
  s->sections = part->sections;
  s->low = vyre__arena_array(arena, count, sizeof *s->low);
  s->offsets = vyre__arena_array(arena, count, sizeof *s->offsets);
  s->rank = vyre__arena_array(arena, count, sizeof *s->rank);
  s->equal_before = vyre__arena_array(arena, count, sizeof *s->equal_before);
  s->placed = vyre__arena_array(arena, count, sizeof *s->placed);
  s->placed_trail = vyre__arena_array(arena, count, sizeof *s->placed_trail);
  s->floor = vyre__arena_array(arena, sections, sizeof *s->floor);
  s->rest = vyre__arena_array(arena, sections, sizeof *s->rest);
  s->lowest = vyre__arena_array(arena, sections, sizeof *s->lowest);
  s->frames = vyre__arena_array(arena, count + 1, sizeof *s->frames);
  s->low_trail = vyre__arena_array(arena, lows, sizeof *s->low_trail);
  s->floor_trail = vyre__arena_array(arena, floors, sizeof *s->floor_trail);
  return s->low && s->offsets && s->rank && s->equal_before && s->placed &&
         s->placed_trail && s->floor && s->rest && s->lowest && s->frames &&
         s->low_trail && s->floor_trail;
}

static bool equal_items(const vyre__place_item *a, const vyre__place_item *b) {
  return a->first == b->first && a->last == b->last && a->size == b->size &&
         a->alignment == b->alignment;
}

/* Links every item to the nearest equal one before it. */
static void find_equal_items(searcher *s) {
  for (uint32_t i = 0; i < s->count; i++) {
    const vyre__place_item *items = s->items;
    uint32_t j = i;
    s->equal_before[i] = NONE;
    while (j > 0 && items[j - 1].first == items[i].first) {
      j--;
      if (!equal_items(&items[i], &items[j])) continue;
      s->equal_before[i] = j;
      break;
    }
  }
}

static void start_search(searcher *s, const vyre__place_part *part,
                         const uint32_t *order, uint64_t capacity) {
  memset(s->low, 0, s->count * sizeof *s->low);
  memset(s->placed, 0, s->count * sizeof *s->placed);
  memset(s->floor, 0, s->sections * sizeof *s->floor);
  memcpy(s->rest, part->live, s->sections * sizeof *s->rest);
  for (uint32_t i = 0; i < s->count; i++) s->rank[order[i]] = i;
  s->low_count = s->floor_count = s->placed_count = 0;
  s->capacity = capacity;
}

/* Copies the placement to the part. */
static void copy_found(const searcher *s, vyre__place_part *part) {
  uint64_t height = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    uint64_t top = s->offsets[i] + s->items[i].size;
    if (top > height) height = top;
  }
  part->placed = true;
  part->height = height;
  memcpy(part->offsets, s->offsets, s->count * sizeof *s->offsets);
}

/* Pays for visited nodes; large nodes count as several. */
static void pay(vyre__place_limits *limits, const searcher *s) {
  uint64_t cost = s->work / WORK_PER_NODE;
  if (cost < s->nodes) cost = s->nodes;
  limits->steps -= cost < limits->steps ? cost : limits->steps;
  limits->nodes += s->nodes;
}

/* Returns the height limit of the next search: some way down to the bound,
 * where the tree is smaller and a success is worth more. The last step is one
 * unit, so the final proof is about the height itself. */
static uint64_t next_capacity(const vyre__place_part *part,
                              const vyre__place_limits *limits, size_t turn) {
  if (!part->placed) return limits->capacity;
  uint64_t max = part->height - 1;
  return max - (max - part->bound) / (turn % 2 == 0 ? 2 : 4);
}

/* Searches below the current height with one ranking after the other, longer
 * in each iteration: a bad first choice costs one slice, not everything. */
bool vyre__place_search(vyre_arena *arena, vyre__place_part *part,
                        vyre__place_limits *limits) {
  static const vyre__place_rule rules[] = {
      {{VYRE__KEY_CROWD, VYRE__KEY_AREA}},
      {{VYRE__KEY_AREA, VYRE__KEY_SIZE}},
      {{VYRE__KEY_LIFETIME, VYRE__KEY_SIZE}},
      {{VYRE__KEY_SIZE, VYRE__KEY_LIFETIME}},
  };
  enum { RULES = sizeof rules / sizeof rules[0], FIRST_SLICE = 256 };
  if (part->count > MAX_ITEMS || limits->steps == 0) return true;
  searcher s = {0};
  vyre__place_sorter sorter;
  if (!take_searcher(arena, part, &s)) return false;
  if (!vyre__place_sorter_take(arena, part, &sorter)) return false;
  find_equal_items(&s);
  uint64_t slice = FIRST_SLICE;
  for (size_t iteration = 0; limits->steps > 0; iteration++) {
    if (!vyre__place_wanted(part, limits->target)) break;
    if (!vyre__place_wanted(part, part->bound)) break;
    if (iteration > 0 && iteration % RULES == 0) slice *= 2;
    if (slice > limits->steps) slice = limits->steps;
    vyre__place_order(&sorter, part, rules[iteration % RULES]);
    uint64_t capacity = next_capacity(part, limits, iteration / RULES);
    start_search(&s, part, sorter.order, capacity);
    outcome end = search(&s, slice);
    pay(limits, &s);
    if (end == FOUND) copy_found(&s, part);
    if (end != EXHAUSTED) continue;
    if (!part->placed) break;
    part->bound = capacity + 1;
  }
  return true;
}
