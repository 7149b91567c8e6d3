/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Placement planner: checks its input, converts it to sections and units,
 * splits it into independent parts, and runs three methods of increasing
 * cost. Each method works only on parts that are still above the known lower
 * bound. */
#include "vyre/placement.h"

#include <assert.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "plan/placement_internal.h"

/* Default limits: about 15 ms of orders, and about 40 ms of search if a gap
 * is left, on a current machine. */
#define DEFAULT_STEPS UINT64_C(6000000)
#define DEFAULT_NODES UINT64_C(40000)

/* Above this, one skyline is enough. */
enum { MANY_ITEMS = 500000 };

typedef struct planner {
  vyre_arena *arena; /* scratch */
  const vyre_interval *intervals;
  size_t interval_count;
  vyre__place_item *items; /* those that need an offset, by first section */
  uint32_t *origin;        /* interval of each item */
  uint64_t *offsets;       /* of each item, in units */
  uint64_t *live;          /* units (bytes at first) alive in each section */
  vyre__place_part *parts;
  uint32_t count, sections, part_count;
  uint64_t unit;   /* bytes */
  uint64_t target; /* units: no placement of all items is lower */
  uint64_t nodes;  /* visited by the exact search */
  vyre_placement_method method;
  vyre_status *st;
} planner;

void vyre_placement_scratch_init(vyre_placement_scratch *scratch,
                                 vyre_allocator allocator) {
  if (scratch) vyre_arena_init(&scratch->arena, allocator);
}

void vyre_placement_scratch_deinit(vyre_placement_scratch *scratch) {
  if (scratch) vyre_arena_deinit(&scratch->arena);
}

static uint64_t alignment_of(const vyre_interval *interval) {
  return interval->alignment ? interval->alignment : 1;
}

static vyre_code no_scratch(const planner *p) {
  return vyre__no_memory(p->st, "placement plan", "placement scratch",
                         p->interval_count);
}

static vyre_code overflow(const planner *p, const char *field, size_t index) {
  const vyre_interval *interval = &p->intervals[index];
  return VYRE_FAIL_WITH(
      p->st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW, field,
      VYRE_NUMBERS({"interval", index}),
      "use smaller intervals or alignments, or fewer intervals that are alive "
      "at once",
      "%s do not fit in 64 bits at interval %zu (%llu bytes, alignment %llu)",
      field, index, (unsigned long long)interval->size,
      (unsigned long long)interval->alignment);
}

static vyre_code ends_early(const planner *p, size_t index) {
  const vyre_interval *interval = &p->intervals[index];
  return VYRE_FAIL_WITH(
      p->st, VYRE_PLAN_REJECTED, VYRE_KIND_INVALID_INTERVAL, NULL,
      VYRE_NUMBERS({"interval", index}, {"first_group", interval->first_group},
                   {"last_group", interval->last_group}),
      "set the last group to the first group or a later one",
      "interval %zu ends before it starts: first group %llu, last group %llu",
      index, (unsigned long long)interval->first_group,
      (unsigned long long)interval->last_group);
}

/* Checks every interval and counts those that need an offset. */
static vyre_code check_intervals(planner *p) {
  uint32_t count = 0;
  for (size_t i = 0; i < p->interval_count; i++) {
    const vyre_interval *interval = &p->intervals[i];
    if (interval->last_group < interval->first_group) return ends_early(p, i);
    uint64_t rounded;
    if (!vyre__align_up_u64(interval->size, alignment_of(interval), &rounded)) {
      return overflow(p, "aligned interval bytes", i);
    }
    count += interval->size != 0;
  }
  p->count = count;
  return VYRE_OK;
}

static bool take_arrays(planner *p) {
  p->items = vyre__arena_array(p->arena, p->count, sizeof *p->items);
  p->origin = vyre__arena_array(p->arena, p->count, sizeof *p->origin);
  p->offsets = vyre__arena_array(p->arena, p->count, sizeof *p->offsets);
  p->live = vyre__arena_array(p->arena, p->count, sizeof *p->live);
  return p->items && p->origin && p->offsets && p->live;
}

static void gather_items(planner *p, const uint32_t *by_start) {
  for (uint32_t i = 0; i < p->count; i++) {
    const vyre_interval *interval = &p->intervals[by_start[i]];
    uint64_t size = 0;
    (void)vyre__align_up_u64(interval->size, alignment_of(interval), &size);
    p->items[i].size = size;
    p->items[i].alignment = alignment_of(interval);
    p->origin[i] = by_start[i];
  }
}

/* Walks the starts and ends (both sorted) in time. Starts share a section
 * until an interval ends: everything that is alive at an earlier start is
 * alive at the last one too. So the last start has the maximum of live bytes.
 * Bytes alive at a start are exact, and so is their overflow check. */
static vyre_code number_sections(planner *p, const uint64_t *starts,
                                 const uint64_t *ends, const uint32_t *by_end) {
  uint64_t live = 0;
  uint32_t section = 0, ended = 0;
  for (uint32_t i = 0; i < p->count; i++) {
    if (ends[ended] < starts[i]) {
      p->live[section] = live;
      for (; ends[ended] < starts[i]; ended++) {
        p->items[by_end[ended]].last = section;
        live -= p->items[by_end[ended]].size;
      }
      section++;
    }
    p->part_count += ended == i; /* no interval is alive across this start */
    p->items[i].first = section;
    if (!vyre__add_u64(live, p->items[i].size, &live)) {
      return overflow(p, "live interval bytes", p->origin[i]);
    }
  }
  p->live[section] = live;
  for (; ended < p->count; ended++) p->items[by_end[ended]].last = section;
  p->sections = section + 1;
  return VYRE_OK;
}

/* Builds items and sections, and counts the parts. */
static vyre_code build_items(planner *p) {
  if (!take_arrays(p)) return no_scratch(p);
  vyre__arena_mark mark = vyre__arena_here(p->arena);
  uint64_t *starts = vyre__arena_array(p->arena, p->count, sizeof *starts);
  uint64_t *ends = vyre__arena_array(p->arena, p->count, sizeof *ends);
  uint64_t *spare = vyre__arena_array(p->arena, p->count, sizeof *spare);
  uint32_t *order = vyre__arena_array(p->arena, p->count, sizeof *order);
  uint32_t *other = vyre__arena_array(p->arena, p->count, sizeof *other);
  if (!starts || !ends || !spare || !order || !other) return no_scratch(p);
  uint32_t count = 0;
  for (size_t i = 0; i < p->interval_count; i++) {
    if (p->intervals[i].size == 0) continue;
    starts[count] = p->intervals[i].first_group;
    order[count++] = (uint32_t)i;
  }
  vyre__place_sort(starts, order, spare, other, count);
  gather_items(p, order);
  for (uint32_t i = 0; i < count; i++) {
    ends[i] = p->intervals[p->origin[i]].last_group;
    order[i] = i;
  }
  vyre__place_sort(ends, order, spare, other, count);
  vyre_code code = number_sections(p, starts, ends, order);
  vyre__arena_rewind(p->arena, mark);
  return code;
}

/* A part ends where the next item starts after all earlier ones have ended. */
static vyre_code build_parts(planner *p) {
  p->parts = vyre__arena_array(p->arena, p->part_count, sizeof *p->parts);
  if (!p->parts) return no_scratch(p);
  vyre__place_part *part = p->parts;
  uint32_t first = 0, last = p->items[0].last;
  for (uint32_t i = 1; i <= p->count; i++) {
    if (i < p->count && p->items[i].first <= last) {
      if (p->items[i].last > last) last = p->items[i].last;
      continue;
    }
    uint32_t base = p->items[first].first;
    *part++ = (vyre__place_part){.items = p->items + first,
                                 .offsets = p->offsets + first,
                                 .live = p->live + base,
                                 .count = i - first,
                                 .section_base = base,
                                 .sections = last - base + 1};
    first = i;
    if (i < p->count) last = p->items[i].last;
  }
  assert(part == p->parts + p->part_count);
  return VYRE_OK;
}

static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Converts bytes to units. Every offset is 0 or a sum of sizes rounded up to
 * an alignment. If all alignments divide all sizes, such sums are aligned
 * already, and alignments can be ignored. */
static void scale_to_units(planner *p) {
  uint64_t unit = 0, sizes = 0;
  for (uint32_t i = 0; i < p->count && unit != 1; i++) {
    unit = gcd(p->items[i].alignment, unit);
  }
  for (uint32_t i = 0; i < p->count; i++) {
    sizes = gcd(p->items[i].size, sizes);
  }
  if (unit == 0 || sizes == 0) return; /* no items */
  bool aligned = true;
  for (uint32_t i = 0; i < p->count && aligned; i++) {
    aligned = sizes % p->items[i].alignment == 0;
  }
  if (aligned) unit = sizes;
  for (uint32_t i = 0; i < p->count; i++) {
    p->items[i].size /= unit;
    p->items[i].alignment = aligned ? 1 : p->items[i].alignment / unit;
  }
  for (uint32_t s = 0; s < p->sections; s++) p->live[s] /= unit;
  p->unit = unit;
}

static void bound_parts(planner *p) {
  for (uint32_t i = 0; i < p->part_count; i++) {
    vyre__place_part *part = &p->parts[i];
    for (uint32_t s = 0; s < part->sections; s++) {
      if (part->live[s] > part->bound) part->bound = part->live[s];
    }
    if (part->bound > p->target) p->target = part->bound;
  }
}

/* Returns the height of a part with these offsets in *out; false if an item
 * has no offset. */
static bool height_of(const vyre__place_part *part, const uint64_t *offsets,
                      uint64_t *out) {
  uint64_t height = 0;
  for (uint32_t i = 0; i < part->count; i++) {
    if (offsets[i] == VYRE__NO_OFFSET) return false;
    uint64_t top = offsets[i] + part->items[i].size;
    if (top > height) height = top;
  }
  *out = height;
  return true;
}

/* Updates the parts that these offsets make lower. Returns true if one of
 * them is still above its lower bound. */
static bool update_parts(planner *p, const uint64_t *offsets) {
  bool any = false;
  for (uint32_t i = 0; i < p->part_count; i++) {
    vyre__place_part *part = &p->parts[i];
    const uint64_t *mine = offsets + (part->items - p->items);
    uint64_t height;
    if (!height_of(part, mine, &height)) continue;
    if (!vyre__place_better(part, height)) continue;
    any = any || vyre__place_wanted(part, p->target);
    part->placed = true;
    part->height = height;
    memcpy(part->offsets, mine, part->count * sizeof *mine);
  }
  return any;
}

typedef bool (*place_order)(vyre_arena *, const vyre__place_part *,
                            const uint32_t *, uint64_t, uint64_t *);

/* Runs the fast placements over all parts at once. */
static bool place_fast(planner *p, uint64_t capacity) {
  static const struct {
    place_order place;
    vyre_placement_method name;
    vyre__place_rule rule;
  } ways[] = {
      {vyre__place_skyline,
       VYRE_PLACED_BY_SKYLINE,
       {{VYRE__KEY_LIFETIME, VYRE__KEY_SIZE}}},
      {vyre__place_skyline,
       VYRE_PLACED_BY_SKYLINE,
       {{VYRE__KEY_SIZE, VYRE__KEY_LIFETIME}}},
      {vyre__place_sweep,
       VYRE_PLACED_BY_SWEEP,
       {{VYRE__KEY_START, VYRE__KEY_SIZE}}},
  };
  vyre__place_part all = {.items = p->items,
                          .count = p->count,
                          .sections = p->sections,
                          .live = p->live};
  vyre__place_sorter sorter;
  vyre__arena_mark start = vyre__arena_here(p->arena);
  uint64_t *offsets = vyre__arena_array(p->arena, p->count, sizeof *offsets);
  if (!offsets || !vyre__place_sorter_take(p->arena, &all, &sorter)) {
    return false;
  }
  size_t from = p->count > MANY_ITEMS ? 1 : 0;
  for (size_t w = from; w < sizeof ways / sizeof ways[0]; w++) {
    vyre__arena_mark mark = vyre__arena_here(p->arena);
    vyre__place_order(&sorter, &all, ways[w].rule);
    if (!ways[w].place(p->arena, &all, sorter.order, capacity, offsets)) {
      return false;
    }
    if (update_parts(p, offsets)) p->method = ways[w].name;
    vyre__arena_rewind(p->arena, mark);
  }
  vyre__arena_rewind(p->arena, start);
  return true;
}

typedef bool (*place_method)(vyre_arena *, vyre__place_part *,
                             vyre__place_limits *);

/* Runs a method on every part above the target; each gets an equal share of
 * the remaining steps. A part whose proven bound is above the target raises
 * it, because the other parts need not be lower. */
static bool improve(planner *p, place_method method, uint64_t *steps,
                    vyre_placement_method name, uint64_t capacity) {
  uint32_t waiting = 0;
  for (uint32_t i = 0; i < p->part_count; i++) {
    waiting += vyre__place_wanted(&p->parts[i], p->target);
  }
  for (uint32_t i = 0; i < p->part_count; i++) {
    vyre__place_part *part = &p->parts[i];
    if (!vyre__place_wanted(part, p->target)) continue;
    vyre__place_part before = *part;
    uint64_t share = *steps / waiting;
    if (waiting > 1) waiting--;
    vyre__place_limits limits = {capacity, p->target, share, 0};
    vyre__arena_mark mark = vyre__arena_here(p->arena);
    if (!method(p->arena, part, &limits)) return false;
    vyre__arena_rewind(p->arena, mark);
    *steps -= share - limits.steps;
    p->nodes += limits.nodes;
    if (part->placed && vyre__place_better(&before, part->height)) {
      p->method = name;
    }
    if (part->bound > p->target) p->target = part->bound;
  }
  return true;
}

static vyre_code place_items(planner *p,
                             const vyre_placement_options *options) {
  uint64_t capacity = p->unit > 0 ? UINT64_MAX / p->unit : UINT64_MAX;
  uint64_t steps =
      options->heuristic_steps ? options->heuristic_steps : DEFAULT_STEPS;
  uint64_t nodes =
      options->search_nodes ? options->search_nodes : DEFAULT_NODES;
  bool ok = place_fast(p, capacity);
  ok = ok &&
       improve(p, vyre__place_fit, &steps, VYRE_PLACED_BY_BEST_FIT, capacity);
  if (!options->no_search) {
    ok = ok && improve(p, vyre__place_search, &nodes, VYRE_PLACED_BY_SEARCH,
                       capacity);
  }
  return ok ? VYRE_OK : no_scratch(p);
}

static vyre_code no_place(const planner *p) {
  return VYRE_FAIL_WITH(
      p->st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW, "placed bytes",
      NULL, "use smaller intervals, or alignments that divide each other",
      "found no placement of %zu intervals within 64-bit offsets",
      p->interval_count);
}

/* Writes offsets (zeroed before) and statistics in bytes. */
static vyre_code write_plan(const planner *p, uint64_t *offsets,
                            vyre_placement_plan *out) {
  uint64_t height = 0, bound = 0;
  for (uint32_t i = 0; i < p->part_count; i++) {
    if (!p->parts[i].placed) return no_place(p);
    if (p->parts[i].height > height) height = p->parts[i].height;
  }
  for (uint32_t i = 0; i < p->count; i++) {
    offsets[p->origin[i]] = p->offsets[i] * p->unit;
  }
  for (uint32_t s = 0; s < p->sections; s++) {
    if (p->live[s] > bound) bound = p->live[s];
  }
  out->placed_bytes = height * p->unit;
  out->lower_bound_bytes = bound * p->unit;
  out->gap_bytes = out->placed_bytes - out->lower_bound_bytes;
  out->is_optimal = height <= p->target;
  out->method = p->method;
  out->search_nodes = p->nodes;
  return VYRE_OK;
}

static vyre_code build(planner *p, const vyre_placement_options *options,
                       vyre_arena *arena, vyre_placement_plan *out) {
  if (p->interval_count > VYRE_MAX_INTERVALS) {
    return VYRE_FAIL_WITH(p->st, VYRE_PLAN_REJECTED,
                          VYRE_KIND_BYTE_COUNT_OVERFLOW, "interval count", NULL,
                          "split the intervals over several plans",
                          "%zu intervals exceed the %u of one plan",
                          p->interval_count, VYRE_MAX_INTERVALS);
  }
  VYRE_TRY(check_intervals(p));
  uint64_t *offsets =
      vyre__arena_filled(arena, p->interval_count, sizeof *offsets, 0);
  if (!offsets) {
    return vyre__no_memory(p->st, "placement plan", "placement offsets",
                           p->interval_count);
  }
  out->offsets = offsets;
  out->interval_count = p->interval_count;
  out->is_optimal = true;
  if (p->count == 0) return VYRE_OK;
  VYRE_TRY(build_items(p));
  VYRE_TRY(build_parts(p));
  scale_to_units(p);
  bound_parts(p);
  VYRE_TRY(place_items(p, options));
  return write_plan(p, offsets, out);
}

vyre_code vyre_placement_plan_build(const vyre_interval *intervals,
                                    size_t interval_count,
                                    const vyre_placement_options *options,
                                    vyre_placement_scratch *scratch,
                                    vyre_arena *arena, vyre_placement_plan *out,
                                    vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_ARRAY(st, intervals, interval_count);
  VYRE_REQUIRE_BOTH(st, scratch, arena);
  if (options) VYRE_CHECK_RESERVED(st, __func__, options);
  const vyre_placement_options defaults = {0};
  vyre_arena_reset(&scratch->arena);
  vyre__arena_mark mark = vyre__arena_here(arena);
  planner p = {.arena = &scratch->arena,
               .intervals = intervals,
               .interval_count = interval_count,
               .st = st};
  vyre_code code = build(&p, options ? options : &defaults, arena, out);
  if (code != VYRE_OK) {
    *out = (vyre_placement_plan){0};
    vyre__arena_rewind(arena, mark);
  }
  return code;
}
