/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Splits layers of waves into groups, so that each group between two barriers
 * stays within a byte budget. Splitting never reorders waves: it only adds
 * boundaries to the order of the barrier planner. */
#include "vyre/frontier.h"

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "plan/barrier.h"

static const char planner[] = "frontier plan";

static vyre_code overflow(const char *field, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW, field, NULL,
      "split the waves: a group must count its bytes in 64 bits",
      "frontier plan: %s do not fit 64 bits", field);
}

/* Adds up the bytes of a wave. Returns NULL, or the name of the part that
 * overflows. */
static const char *fused_bytes(const vyre_frontier_wave *wave, uint64_t *out) {
  uint64_t bytes;
  if (!vyre__mul_u64(wave->scratch_bytes, VYRE_FUSED_SCRATCH_FACTOR, &bytes)) {
    return "fused wave scratch bytes";
  }
  if (!vyre__add_u64(wave->frontier_bytes, bytes, &bytes) ||
      !vyre__add_u64(bytes, wave->output_bytes, &bytes)) {
    return "fused wave bytes";
  }
  *out = bytes;
  return NULL;
}

vyre_code vyre_frontier_wave_bytes(const vyre_frontier_wave *wave,
                                   uint64_t *out, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = 0;
  VYRE_REQUIRE(st, wave);
  const char *too_large = fused_bytes(wave, out);
  return too_large ? overflow(too_large, st) : VYRE_OK;
}

/* Prefetch distance in waves. */
enum { PREFETCH_DISTANCE = 16 };

/* Bytes of a group, by part. */
typedef struct sums {
  uint64_t fused, frontier, scratch, output;
} sums;

typedef struct splitter {
  const vyre_frontier_wave *waves;
  const uint32_t *order; /* waves, layer by layer */
  uint64_t budget;       /* bytes per group */
  uint32_t *offsets;     /* of groups; space for every wave and one more */
  size_t group_count;
  size_t widest;
  sums peak;
} splitter;

/* Load of a layer, for the lower bound. */
typedef struct layer_load {
  uint64_t bytes; /* of all its waves; saturates */
  uint64_t large; /* waves above half the budget: no two fit in one group */
} layer_load;

static uint64_t largest(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static void close_group(splitter *s, uint32_t end, const sums *group) {
  size_t width = end - s->offsets[s->group_count];
  s->offsets[++s->group_count] = end;
  if (width > s->widest) s->widest = width;
  s->peak.fused = largest(s->peak.fused, group->fused);
  s->peak.frontier = largest(s->peak.frontier, group->frontier);
  s->peak.scratch = largest(s->peak.scratch, group->scratch);
  s->peak.output = largest(s->peak.output, group->output);
}

/* A wave that fits in no group. The caller completes the failure. */
typedef struct too_large {
  const char *overflow; /* part that overflows 64 bits, or NULL */
  uint64_t bytes;       /* otherwise: bytes of the wave */
} too_large;

/* Splits order[from .. to) into groups. The sums of a group's parts need no
 * overflow checks: each part is at most the fused sum, which is within the
 * budget. */
static bool split_layer(splitter *s, uint32_t from, uint32_t to,
                        layer_load *load, too_large *why) {
  const uint64_t budget = s->budget;
  sums group = {0};
  layer_load all = {0};
  for (uint32_t i = from; i < to; i++) {
    if (to - i > PREFETCH_DISTANCE)
      __builtin_prefetch(&s->waves[s->order[i + PREFETCH_DISTANCE]]);
    const vyre_frontier_wave *wave = &s->waves[s->order[i]];
    uint64_t bytes, combined;
    why->overflow = fused_bytes(wave, &bytes);
    if (why->overflow) return false;
    if (!vyre__add_u64(group.fused, bytes, &combined)) {
      why->overflow = "barrier group fused wave budget bytes";
      return false;
    }
    if (bytes > budget) {
      why->bytes = bytes;
      return false;
    }
    if (combined > budget) {
      close_group(s, i, &group);
      group = (sums){0};
      combined = bytes;
    }
    group.fused = combined;
    group.frontier += wave->frontier_bytes;
    group.scratch += wave->scratch_bytes;
    group.output += wave->output_bytes;
    all.bytes = vyre__add_saturated(all.bytes, bytes);
    all.large += bytes > budget - bytes;
  }
  close_group(s, to, &group);
  *load = all;
  return true;
}

static bool split_all(splitter *s, const uint32_t *layers, size_t layer_count,
                      layer_load *loads, too_large *why) {
  s->offsets[0] = 0;
  for (size_t layer = 0; layer < layer_count; layer++) {
    if (!split_layer(s, layers[layer], layers[layer + 1], &loads[layer], why)) {
      return false;
    }
  }
  return true;
}

/* Returns a lower bound for the number of groups. Waves of layer d and below
 * come no earlier than group d. They need groups for their bytes, and one for
 * each large wave. */
static size_t minimum_groups(const layer_load *loads, size_t layer_count,
                             uint64_t budget) {
  size_t bound = 0;
  uint64_t bytes = 0, large = 0;
  for (size_t layer = layer_count; layer-- > 0;) {
    bytes = vyre__add_saturated(bytes, loads[layer].bytes);
    large += loads[layer].large;
    uint64_t needed = 1;
    uint64_t by_bytes;
    if (vyre__ceil_div_u64(bytes, budget, &by_bytes)) {
      needed = largest(needed, by_bytes);
    }
    size_t groups = layer + (size_t)largest(needed, large);
    if (groups > bound) bound = groups;
  }
  return bound;
}

/* Kinds of answers to the question for the smallest sufficient budget. */
typedef enum budget_answer {
  BUDGET_KNOWN,
  BUDGET_TOO_LARGE, /* no 64-bit budget is enough */
  /* with the budget of the largest wave, the sum of a group overflows while it
   * is formed; with a larger one it might not */
  BUDGET_UNKNOWN
} budget_answer;

/* Computes the budget that holds the graph and the largest wave. */
static budget_answer smallest_budget(const vyre_frontier_desc *desc,
                                     const splitter *s, const uint32_t *layers,
                                     size_t layer_count, layer_load *loads,
                                     uint64_t *out) {
  uint64_t max = 0;
  for (size_t i = 0; i < desc->wave_count; i++) {
    uint64_t bytes;
    if (fused_bytes(&desc->waves[i], &bytes)) return BUDGET_TOO_LARGE;
    max = largest(max, bytes);
  }
  if (!vyre__add_u64(desc->resident_graph_bytes, max, out)) {
    return BUDGET_TOO_LARGE;
  }
  splitter again = {.waves = s->waves,
                    .order = s->order,
                    .budget = max,
                    .offsets = s->offsets};
  too_large why;
  return split_all(&again, layers, layer_count, loads, &why) ? BUDGET_KNOWN
                                                             : BUDGET_UNKNOWN;
}

/* The part that is too large, and the budget that it exceeds. */
typedef struct excess {
  const char *field;
  uint64_t required, budget;
} excess;

static vyre_code over_budget(excess e, budget_answer answer, uint64_t smallest,
                             vyre_status *st) {
  unsigned long long required = e.required, budget = e.budget;
  if (answer == BUDGET_KNOWN) {
    return VYRE_FAIL_WITH(
        st, VYRE_PLAN_REJECTED, VYRE_KIND_GROUP_OVER_BUDGET, e.field,
        VYRE_NUMBERS({"required_bytes", e.required}, {"budget_bytes", e.budget},
                     {"smallest_budget_bytes", smallest}),
        "raise budget_bytes to smallest_budget_bytes or more, or split the "
        "graph or its waves",
        "frontier plan: %s are %llu, the budget leaves %llu; the smallest "
        "budget_bytes that works is %llu",
        e.field, required, budget, (unsigned long long)smallest);
  }
  const vyre_status_number *numbers =
      VYRE_NUMBERS({"required_bytes", e.required}, {"budget_bytes", e.budget});
  if (answer == BUDGET_TOO_LARGE) {
    return VYRE_FAIL_WITH(
        st, VYRE_PLAN_REJECTED, VYRE_KIND_GROUP_OVER_BUDGET, e.field, numbers,
        "split the graph or its waves: no budget of 64 bits is enough",
        "frontier plan: %s are %llu, the budget leaves %llu", e.field, required,
        budget);
  }
  return VYRE_FAIL_WITH(st, VYRE_PLAN_REJECTED, VYRE_KIND_GROUP_OVER_BUDGET,
                        e.field, numbers,
                        "split the waves: the sums of a group come close to 64 "
                        "bits, so the required budget is unknown",
                        "frontier plan: %s are %llu, the budget leaves %llu",
                        e.field, required, budget);
}

/* Memory of one planner call: results first, so that the rest can be freed. */
typedef struct draft {
  uint32_t *waves, *offsets;
  vyre__arena_mark results_end;
  uint32_t *layers; /* offsets of the layers */
} draft;

static bool draft_alloc(draft *d, size_t wave_count, vyre_arena *arena) {
  d->waves = vyre__arena_array(arena, wave_count, sizeof *d->waves);
  d->offsets = vyre__arena_array(arena, wave_count + 1, sizeof *d->offsets);
  d->results_end = vyre__arena_here(arena);
  d->layers = vyre__arena_array(arena, wave_count + 1, sizeof *d->layers);
  return d->waves && d->offsets && d->layers;
}

static vyre_code split(const vyre_frontier_desc *desc, const draft *d,
                       size_t layer_count, layer_load *loads, splitter *s,
                       vyre_status *st) {
  uint64_t graph = desc->resident_graph_bytes;
  bool graph_fits = graph <= desc->budget_bytes;
  too_large why = {0};
  *s = (splitter){.waves = desc->waves,
                  .order = d->waves,
                  .offsets = d->offsets,
                  .budget = graph_fits ? desc->budget_bytes - graph : 0};
  if (graph_fits && split_all(s, d->layers, layer_count, loads, &why)) {
    return VYRE_OK;
  }
  if (why.overflow) return overflow(why.overflow, st);
  uint64_t smallest = 0;
  budget_answer answer =
      smallest_budget(desc, s, d->layers, layer_count, loads, &smallest);
  excess e = {"single fused frontier wave bytes", why.bytes, s->budget};
  if (!graph_fits) {
    e = (excess){"resident graph bytes", graph, desc->budget_bytes};
  }
  return over_budget(e, answer, smallest, st);
}

static vyre__wave_graph graph_of(const vyre_frontier_desc *desc) {
  return (vyre__wave_graph){desc->wave_count, desc->dependencies,
                            desc->dependency_count};
}

static vyre_code plan_into(const vyre_frontier_desc *desc, const draft *d,
                           vyre_barrier_scratch *scratch, vyre_arena *arena,
                           vyre_frontier_plan *plan, vyre_status *st) {
  vyre__wave_layers sorted = {.waves = d->waves, .offsets = d->layers};
  splitter s;
  const vyre__wave_graph graph = graph_of(desc);
  VYRE_TRY(vyre__barrier_layers(&graph, scratch, &sorted, st));
  size_t layer_count = sorted.count;
  vyre__arena_trim(arena, d->layers, desc->wave_count + 1, layer_count + 1,
                   sizeof *d->layers);
  layer_load *loads = vyre__arena_array(arena, layer_count, sizeof *loads);
  if (!loads) return vyre__no_memory(st, planner, "layer loads", layer_count);
  VYRE_TRY(split(desc, d, layer_count, loads, &s, st));
  *plan = (vyre_frontier_plan){
      .barriers = {.group_offsets = d->offsets,
                   .waves = d->waves,
                   .group_count = s.group_count,
                   .wave_count = desc->wave_count,
                   .global_barriers = s.group_count ? s.group_count - 1 : 0},
      .peak_frontier_bytes = s.peak.frontier,
      .peak_scratch_bytes = s.peak.scratch,
      .peak_output_bytes = s.peak.output,
      .peak_group_bytes = s.peak.fused,
      .amortized_readback_bytes = largest(desc->readback_bytes, s.peak.output),
      .max_group_width = s.widest,
      .minimum_groups = minimum_groups(loads, layer_count, s.budget)};
  return VYRE_OK;
}

vyre_code vyre_frontier_plan_build(const vyre_frontier_desc *desc,
                                   vyre_barrier_scratch *scratch,
                                   vyre_arena *arena, vyre_frontier_plan *out,
                                   vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, desc, scratch);
  VYRE_REQUIRE(st, arena);
  VYRE_CHECK_RESERVED(st, __func__, desc);
  VYRE_REQUIRE_ARRAY(st, desc->waves, desc->wave_count);
  VYRE_REQUIRE_ARRAY(st, desc->dependencies, desc->dependency_count);
  size_t count = desc->wave_count;
  const vyre__wave_graph graph = graph_of(desc);
  VYRE_TRY(vyre__barrier_check_sizes(&graph, st));
  vyre__arena_mark start = vyre__arena_here(arena);
  draft d;
  vyre_code code =
      draft_alloc(&d, count, arena)
          ? plan_into(desc, &d, scratch, arena, out, st)
          : vyre__no_memory(st, planner, "split barrier groups", count);
  if (code != VYRE_OK) {
    vyre__arena_rewind(arena, start);
    return code;
  }
  vyre__arena_rewind(arena, d.results_end);
  vyre__arena_trim(arena, d.offsets, count + 1, out->barriers.group_count + 1,
                   sizeof *d.offsets);
  return VYRE_OK;
}

static vyre_code foreign_plan(vyre_status *st) {
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
      "pass an unmodified plan, and the description that it was built from",
      "the plan's groups do not hold each wave once");
}

/* Returns true if the groups are contiguous and every wave number is valid. */
static bool is_consistent(const vyre_barrier_plan *plan) {
  if (plan->wave_count > 0 && (!plan->group_offsets || !plan->waves)) {
    return false;
  }
  uint32_t end = 0;
  for (size_t group = 0; group < plan->group_count; group++) {
    if (plan->group_offsets[group] != end) return false;
    if (plan->group_offsets[group + 1] < end) return false;
    end = plan->group_offsets[group + 1];
    if (end > plan->wave_count) return false;
  }
  for (size_t i = 0; i < end; i++) {
    if (plan->waves[i] >= plan->wave_count) return false;
  }
  return end == plan->wave_count;
}

/* Computes last[w]: the last group that needs wave w, or its own group if
 * none does. */
static vyre_code last_uses(const vyre_frontier_plan *plan,
                           const vyre_frontier_desc *desc, uint32_t *group_of,
                           uint32_t *last, vyre_status *st) {
  const vyre_barrier_plan *barriers = &plan->barriers;
  for (size_t group = 0; group < barriers->group_count; group++) {
    for (uint32_t i = barriers->group_offsets[group];
         i < barriers->group_offsets[group + 1]; i++) {
      uint32_t wave = barriers->waves[i];
      group_of[wave] = (uint32_t)group;
      last[wave] = (uint32_t)group;
    }
  }
  for (size_t i = 0; i < desc->dependency_count; i++) {
    uint64_t before = desc->dependencies[i].before;
    uint64_t after = desc->dependencies[i].after;
    if (before >= desc->wave_count || after >= desc->wave_count ||
        group_of[before] >= group_of[after]) {
      return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                       "pass the description that the plan was built from",
                       "dependency %llu -> %llu is not in the plan",
                       (unsigned long long)before, (unsigned long long)after);
    }
    if (group_of[after] > last[before]) last[before] = group_of[after];
  }
  return VYRE_OK;
}

static vyre_code write_intervals(const vyre_frontier_plan *plan,
                                 const vyre_frontier_desc *desc,
                                 uint64_t alignment, const uint32_t *group_of,
                                 const uint32_t *last, vyre_interval *intervals,
                                 vyre_status *st) {
  uint32_t end = (uint32_t)plan->barriers.global_barriers;
  for (size_t wave = 0; wave < desc->wave_count; wave++) {
    const vyre_frontier_wave *bytes = &desc->waves[wave];
    uint32_t group = group_of[wave];
    uint32_t until = last[wave] > group ? last[wave] : end;
    uint64_t scratch;
    if (!vyre__mul_u64(bytes->scratch_bytes, VYRE_FUSED_SCRATCH_FACTOR,
                       &scratch)) {
      return overflow("fused wave scratch bytes", st);
    }
    vyre_interval *at = &intervals[wave * VYRE_PART_COUNT];
    at[VYRE_PART_FRONTIER] =
        (vyre_interval){bytes->frontier_bytes, alignment, group, until};
    at[VYRE_PART_SCRATCH] = (vyre_interval){scratch, alignment, group, group};
    at[VYRE_PART_OUTPUT] =
        (vyre_interval){bytes->output_bytes, alignment, group, until};
  }
  return VYRE_OK;
}

vyre_code vyre_frontier_intervals(const vyre_frontier_plan *plan,
                                  const vyre_frontier_desc *desc,
                                  uint64_t alignment, vyre_arena *arena,
                                  const vyre_interval **out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, plan, desc);
  VYRE_REQUIRE(st, arena);
  VYRE_CHECK_RESERVED(st, __func__, desc);
  VYRE_REQUIRE_ARRAY(st, desc->waves, desc->wave_count);
  VYRE_REQUIRE_ARRAY(st, desc->dependencies, desc->dependency_count);
  if (!is_consistent(&plan->barriers)) return foreign_plan(st);
  if (plan->barriers.wave_count != desc->wave_count) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "pass the description that the plan was built from",
                     "the plan has %zu waves, the description %zu",
                     plan->barriers.wave_count, desc->wave_count);
  }
  size_t count = desc->wave_count;
  vyre__arena_mark start = vyre__arena_here(arena);
  vyre_interval *intervals =
      vyre__arena_array(arena, count, VYRE_PART_COUNT * sizeof *intervals);
  vyre__arena_mark results_end = vyre__arena_here(arena);
  uint32_t *group_of = vyre__arena_array(arena, count, sizeof *group_of);
  uint32_t *last = vyre__arena_array(arena, count, sizeof *last);
  vyre_code code = intervals && group_of && last
                       ? last_uses(plan, desc, group_of, last, st)
                       : vyre__no_memory(st, __func__, "intervals", count);
  if (code == VYRE_OK) {
    code =
        write_intervals(plan, desc, alignment, group_of, last, intervals, st);
  }
  if (code != VYRE_OK) {
    vyre__arena_rewind(arena, start);
    return code;
  }
  vyre__arena_rewind(arena, results_end);
  *out = intervals;
  return VYRE_OK;
}
