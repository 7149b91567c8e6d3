/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Orders in which items are placed, and the skyline, the cheapest way to
 * place an order. */
#include <string.h>

#include "base/memory.h"
#include "plan/placement_internal.h"

/* Counting sort by one byte of the keys. Returns false if all keys are equal
 * there. */
static bool sort_byte(const uint64_t *keys, const uint32_t *indices,
                      uint64_t *to_keys, uint32_t *to_indices, uint32_t count,
                      unsigned shift) {
  uint32_t start[256] = {0};
  for (uint32_t i = 0; i < count; i++) start[(keys[i] >> shift) & 255]++;
  if (start[(keys[0] >> shift) & 255] == count) return false;
  uint32_t sum = 0;
  for (unsigned b = 0; b < 256; b++) {
    uint32_t here = start[b];
    start[b] = sum;
    sum += here;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint32_t to = start[(keys[i] >> shift) & 255]++;
    to_keys[to] = keys[i];
    to_indices[to] = indices[i];
  }
  return true;
}

static void sort_few(uint64_t *keys, uint32_t *indices, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    uint64_t key = keys[i];
    uint32_t index = indices[i], to = i;
    for (; to > 0 && keys[to - 1] > key; to--) {
      keys[to] = keys[to - 1];
      indices[to] = indices[to - 1];
    }
    keys[to] = key;
    indices[to] = index;
  }
}

void vyre__place_sort(uint64_t *keys, uint32_t *indices, uint64_t *spare_keys,
                      uint32_t *spare_indices, uint32_t count) {
  if (count < 48) {
    sort_few(keys, indices, count);
    return;
  }
  uint64_t *from = keys, *to = spare_keys;
  uint32_t *from_indices = indices, *to_indices = spare_indices;
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (!sort_byte(from, from_indices, to, to_indices, count, shift)) continue;
    uint64_t *keys_swap = from;
    uint32_t *indices_swap = from_indices;
    from = to;
    from_indices = to_indices;
    to = keys_swap;
    to_indices = indices_swap;
  }
  if (from == keys) return;
  memcpy(keys, from, count * sizeof *keys);
  memcpy(indices, from_indices, count * sizeof *indices);
}

/* --- orders ----------------------------------------------------------------*/

bool vyre__place_sorter_take(vyre_arena *arena, const vyre__place_part *part,
                             vyre__place_sorter *out) {
  size_t count = part->count, sums = 2 * (size_t)part->sections;
  out->keys = vyre__arena_array(arena, count, sizeof *out->keys);
  out->spare_keys = vyre__arena_array(arena, count, sizeof *out->spare_keys);
  out->order = vyre__arena_array(arena, count, sizeof *out->order);
  out->spare_order = vyre__arena_array(arena, count, sizeof *out->spare_order);
  out->sums = vyre__arena_array(arena, sums, sizeof *out->sums);
  return out->keys && out->spare_keys && out->order && out->spare_order &&
         out->sums;
}

static uint64_t lifetime(const vyre__place_item *item) {
  return (uint64_t)item->last - item->first + 1;
}

/* Returns the shift of sizes so that size times lifetime fits in 64 bits. */
static unsigned area_shift(const vyre__place_part *part) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < part->count; i++) all |= part->items[i].size;
  unsigned shift = 0;
  while (all >> shift > UINT32_MAX) shift++;
  return shift;
}

/* Computes the size of all items alive together with each item: those started
 * up to its end, minus those ended before its start. Sums may wrap, because
 * only the order matters. */
static void conflict_keys(const vyre__place_part *part, uint64_t *keys,
                          uint64_t *sums) {
  uint64_t *started = sums, *ended = sums + part->sections;
  memset(sums, 0, 2 * (size_t)part->sections * sizeof *sums);
  for (uint32_t i = 0; i < part->count; i++) {
    const vyre__place_item *item = &part->items[i];
    started[item->first - part->section_base] += item->size;
    ended[item->last - part->section_base] += item->size;
  }
  for (uint32_t s = 1; s < part->sections; s++) {
    started[s] += started[s - 1];
    ended[s] += ended[s - 1];
  }
  for (uint32_t i = 0; i < part->count; i++) {
    uint32_t first = part->items[i].first - part->section_base;
    uint32_t last = part->items[i].last - part->section_base;
    keys[i] = started[last] - (first > 0 ? ended[first - 1] : 0);
  }
}

/* Computes the units alive in the fullest section of each item's life. */
static void crowd_keys(const vyre__place_part *part, uint64_t *keys,
                       uint64_t *tree) {
  size_t leaves = part->sections;
  memcpy(tree + leaves, part->live, leaves * sizeof *tree);
  for (size_t node = leaves - 1; node > 0; node--) {
    uint64_t a = tree[2 * node], b = tree[2 * node + 1];
    tree[node] = a > b ? a : b;
  }
  for (uint32_t i = 0; i < part->count; i++) {
    size_t from = leaves + part->items[i].first - part->section_base;
    size_t to = leaves + part->items[i].last - part->section_base + 1;
    uint64_t max = 0;
    for (; from < to; from /= 2, to /= 2) {
      if (from & 1) {
        if (tree[from] > max) max = tree[from];
        from++;
      }
      if (to & 1) {
        to--;
        if (tree[to] > max) max = tree[to];
      }
    }
    keys[i] = max;
  }
}

static void fill_keys(vyre__place_sorter *sorter, const vyre__place_part *part,
                      vyre__place_key key) {
  const vyre__place_item *items = part->items;
  uint64_t *keys = sorter->keys;
  unsigned shift = key == VYRE__KEY_AREA ? area_shift(part) : 0;
  if (key == VYRE__KEY_CONFLICT) conflict_keys(part, keys, sorter->sums);
  if (key == VYRE__KEY_CROWD) crowd_keys(part, keys, sorter->sums);
  for (uint32_t i = 0; i < part->count; i++) {
    if (key == VYRE__KEY_SIZE) keys[i] = items[i].size;
    if (key == VYRE__KEY_AREA) {
      keys[i] = (items[i].size >> shift) * lifetime(&items[i]);
    }
    if (key == VYRE__KEY_LIFETIME) keys[i] = lifetime(&items[i]);
    if (key == VYRE__KEY_START) keys[i] = UINT32_MAX - items[i].first;
    if (key == VYRE__KEY_END) keys[i] = items[i].last;
    if (key == VYRE__KEY_ALIGNMENT) keys[i] = items[i].alignment;
  }
}

/* Sorting is stable: sort by the less important key first. */
static void sort_by(vyre__place_sorter *sorter, const vyre__place_part *part,
                    vyre__place_key key) {
  fill_keys(sorter, part, key);
  uint64_t *spare = sorter->spare_keys;
  for (uint32_t i = 0; i < part->count; i++) {
    spare[i] = ~sorter->keys[sorter->order[i]];
  }
  vyre__place_sort(spare, sorter->order, sorter->keys, sorter->spare_order,
                   part->count);
}

void vyre__place_order(vyre__place_sorter *sorter, const vyre__place_part *part,
                       vyre__place_rule rule) {
  for (uint32_t i = 0; i < part->count; i++) sorter->order[i] = i;
  for (unsigned i = VYRE__RULE_KEYS; i-- > 0;) {
    if (rule.keys[i] != VYRE__KEY_NONE) sort_by(sorter, part, rule.keys[i]);
  }
}

/* --- skyline ---------------------------------------------------------------*/

/* Height of every section, as a tree of maxima. The top of an item is above
 * everything in its sections, so setting them means raising them. A raise of
 * a full node can be deferred: top[] holds maxima, floor[] the height that
 * the full node was raised to. Leaves start at node `leaves` and need no
 * floor. */
typedef struct skyline {
  uint64_t *top, *floor;
  size_t leaves;
} skyline;

static uint64_t skyline_height(const skyline *sky, uint32_t first,
                               uint32_t last) {
  size_t from = sky->leaves + first, to = sky->leaves + last + 1;
  uint64_t max = 0;
  for (; from < to; from /= 2, to /= 2) {
    if (from & 1) {
      if (sky->top[from] > max) max = sky->top[from];
      from++;
    }
    if (to & 1) {
      to--;
      if (sky->top[to] > max) max = sky->top[to];
    }
  }
  size_t a = (sky->leaves + first) / 2, b = (sky->leaves + last) / 2;
  for (; a > 0; a /= 2, b /= 2) {
    if (sky->floor[a] > max) max = sky->floor[a];
    if (sky->floor[b] > max) max = sky->floor[b];
  }
  return max;
}

static void raise_node(const skyline *sky, size_t node, uint64_t height) {
  sky->top[node] = height;
  if (node < sky->leaves) sky->floor[node] = height;
}

static void skyline_raise(const skyline *sky, uint32_t first, uint32_t last,
                          uint64_t height) {
  size_t from = sky->leaves + first, to = sky->leaves + last + 1;
  for (; from < to; from /= 2, to /= 2) {
    if (from & 1) raise_node(sky, from++, height);
    if (to & 1) raise_node(sky, --to, height);
  }
  size_t a = (sky->leaves + first) / 2, b = (sky->leaves + last) / 2;
  for (; a > 0 && sky->top[a] <= height; a /= 2) sky->top[a] = height;
  for (; b > 0 && sky->top[b] <= height; b /= 2) sky->top[b] = height;
}

bool vyre__place_skyline(vyre_arena *arena, const vyre__place_part *all,
                         const uint32_t *order, uint64_t capacity,
                         uint64_t *offsets) {
  size_t leaves = 1;
  while (leaves < all->sections) leaves *= 2;
  skyline sky = {vyre__arena_array(arena, 2 * leaves, sizeof(uint64_t)),
                 vyre__arena_array(arena, leaves, sizeof(uint64_t)), leaves};
  if (!sky.top || !sky.floor) return false;
  memset(sky.top, 0, 2 * leaves * sizeof(uint64_t));
  memset(sky.floor, 0, leaves * sizeof(uint64_t));
  for (uint32_t k = 0; k < all->count; k++) {
    const vyre__place_item *item = &all->items[order[k]];
    uint64_t at = skyline_height(&sky, item->first, item->last);
    bool fits = vyre__place_raise(&at, item->alignment, item->size, capacity);
    offsets[order[k]] = fits ? at : VYRE__NO_OFFSET;
    if (fits) skyline_raise(&sky, item->first, item->last, at + item->size);
  }
  return true;
}
