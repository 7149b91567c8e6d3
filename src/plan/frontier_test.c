/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/frontier.h"

#include "support/check.h"
#include "support/text.h"

#define MAX64 UINT64_MAX

/* Memory of a test case; end() releases it. */
typedef struct fixture {
  vyre_barrier_scratch scratch;
  vyre_arena arena;
  vyre_frontier_plan plan;
  vyre_status st;
} fixture;

static void end(fixture *f) {
  vyre_barrier_scratch_deinit(&f->scratch);
  vyre_arena_deinit(&f->arena);
}

static vyre_code plan(fixture *f, const vyre_frontier_desc *desc) {
  vyre_arena_reset(&f->arena);
  f->st = (vyre_status){0};
  return vyre_frontier_plan_build(desc, &f->scratch, &f->arena, &f->plan,
                                  &f->st);
}

static const vyre_wave_dependency diamond[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};

/* --- the seed's vectors ----------------------------------------------------*/

TEST(peaks_are_those_of_the_largest_group) {
  vyre_frontier_wave waves[] = {{1024, 512, 256},
                                {2048, 1024, 512},
                                {4096, 2048, 1024},
                                {8192, 4096, 2048}};
  vyre_frontier_desc desc = {waves, 4, diamond, 4, 16000, 131072, 1 << 20};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  CHECK_U64(f.plan.barriers.global_barriers, 2);
  CHECK_U64(f.plan.barriers.group_offsets[1], 1);
  CHECK(f.plan.barriers.waves[1] == 1 && f.plan.barriers.waves[2] == 2);
  CHECK_U64(f.plan.peak_frontier_bytes, 8192);
  CHECK_U64(f.plan.peak_scratch_bytes, 4096);
  CHECK_U64(f.plan.peak_output_bytes, 2048);
  CHECK_U64(f.plan.peak_group_bytes, 8192 + 4 * 4096 + 2048);
  CHECK_U64(f.plan.amortized_readback_bytes, 1 << 20);
  CHECK_U64(f.plan.max_group_width, 2);
  CHECK_U64(f.plan.minimum_groups, 3);
  end(&f);
}

TEST(output_of_a_group_amortises_the_readback) {
  vyre_frontier_wave waves[] = {{1024, 512, 3072}, {1024, 512, 3072}};
  vyre_frontier_desc desc = {waves, 2, NULL, 0, 16000, 131072, 0};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  CHECK_U64(f.plan.peak_output_bytes, 6144);
  CHECK_U64(f.plan.amortized_readback_bytes, 6144);
  end(&f);
}

TEST(independent_waves_are_split_to_the_budget) {
  vyre_frontier_wave waves[] = {{10, 10, 10}, {10, 10, 10}, {10, 10, 10}};
  vyre_frontier_desc desc = {waves, 3, NULL, 0, 0, 100, 4096};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  CHECK_U64(f.plan.barriers.group_count, 3);
  CHECK_U64(f.plan.barriers.global_barriers, 2);
  CHECK_U64(f.plan.max_group_width, 1);
  CHECK_U64(f.plan.peak_frontier_bytes, 10);
  CHECK_U64(f.plan.peak_scratch_bytes, 10);
  CHECK_U64(f.plan.peak_output_bytes, 10);
  CHECK_U64(f.plan.peak_group_bytes, 60);
  CHECK_U64(f.plan.minimum_groups, 3);
  end(&f);
}

TEST(a_wave_counts_its_scratch_four_times) {
  uint64_t bytes;
  vyre_status st = {0};
  CHECK_OK(
      vyre_frontier_wave_bytes(&(vyre_frontier_wave){16, 16, 16}, &bytes, &st),
      st);
  CHECK_U64(bytes, 96);
}

/* The seed's 1024 shapes: width x depth of parallel chains. */
TEST(generated_shapes_keep_peaks_and_budget) {
  static vyre_frontier_wave waves[32 * 32];
  static vyre_wave_dependency deps[32 * 32];
  fixture f = {0};
  for (uint64_t width = 1; width <= 32; width++) {
    for (uint64_t depth = 1; depth <= 32; depth++) {
      size_t count = 0;
      for (uint64_t i = 0; i < width * depth; i++) {
        waves[i] = (vyre_frontier_wave){width, i % width + 1, i / width + 1};
        if (i + width < width * depth) {
          deps[count++] = (vyre_wave_dependency){i, i + width};
        }
      }
      vyre_frontier_desc desc = {waves, width * depth, deps, count,
                                 256,   MAX64 / 2,     7};
      CHECK_OK(plan(&f, &desc), f.st);
      uint64_t output = width * depth;
      CHECK_U64(f.plan.barriers.group_count, depth);
      CHECK_U64(f.plan.max_group_width, width);
      CHECK_U64(f.plan.peak_frontier_bytes, width * width);
      CHECK_U64(f.plan.peak_scratch_bytes, width * (width + 1) / 2);
      CHECK_U64(f.plan.peak_output_bytes, output);
      CHECK_U64(f.plan.amortized_readback_bytes, output > 7 ? output : 7);
      CHECK_U64(f.plan.minimum_groups, depth);
    }
  }
  end(&f);
}

/* --- refusals --------------------------------------------------------------*/

TEST(over_budget_names_region_and_numbers) {
  static const struct {
    vyre_frontier_wave waves[3];
    size_t count;
    uint64_t graph, budget, required, group_budget, smallest;
    const char *field;
  } cases[] = {
      {{{1, 1, 1}}, 1, 1600, 1000, 1600, 1000, 1606, "resident graph bytes"},
      {{{100, 100, 100}},
       1,
       0,
       500,
       600,
       500,
       600,
       "single fused frontier wave bytes"},
      {{{100, 100, 100}},
       1,
       50,
       549,
       600,
       499,
       650,
       "single fused frontier wave bytes"},
      /* The second wave does not fit either; the seed accepted it. */
      {{{10, 0, 0}, {600, 0, 0}},
       2,
       0,
       500,
       600,
       500,
       600,
       "single fused frontier wave bytes"},
      /* The first in order is named; the largest decides the budget. */
      {{{600, 0, 0}, {10, 0, 0}, {900, 0, 0}},
       3,
       7,
       507,
       600,
       500,
       907,
       "single fused frontier wave bytes"},
      {{{0, 0, 0}}, 1, 1, 0, 1, 0, 1, "resident graph bytes"}};
  fixture f = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_frontier_desc desc = {cases[i].waves, cases[i].count,  NULL, 0,
                               cases[i].graph, cases[i].budget, 0};
    CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
                VYRE_KIND_GROUP_OVER_BUDGET);
    CHECK_TEXT(f.st.field, cases[i].field);
    CHECK_U64(status_number(&f.st, "required_bytes"), cases[i].required);
    CHECK_U64(status_number(&f.st, "budget_bytes"), cases[i].group_budget);
    CHECK_U64(status_number(&f.st, "smallest_budget_bytes"), cases[i].smallest);
    CHECK(!f.plan.barriers.waves && f.plan.barriers.group_count == 0);
    CHECK_U64(f.arena.used, 0);
    desc.budget_bytes = cases[i].smallest;
    CHECK_OK(plan(&f, &desc), f.st);
    desc.budget_bytes--;
    CHECK(plan(&f, &desc) != VYRE_OK);
  }
  end(&f);
}

/* If no 64-bit budget works, none is named. */
TEST(no_smallest_budget_is_reported_if_none_exists) {
  static const struct {
    vyre_frontier_wave waves[2];
    size_t count;
    uint64_t graph, budget;
  } cases[] = {{{{5, 0, 0}}, 1, MAX64 - 4, 10},         /* sum overflows */
               {{{0, MAX64, 0}}, 1, 11, 10},            /* a wave overflows */
               {{{10, 0, 0}, {MAX64, 0, 0}}, 2, 0, 5}}; /* a group overflows */
  fixture f = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_frontier_desc desc = {cases[i].waves, cases[i].count,  NULL, 0,
                               cases[i].graph, cases[i].budget, 0};
    CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
                VYRE_KIND_GROUP_OVER_BUDGET);
    uint64_t value;
    CHECK(!vyre_status_number_get(&f.st, "smallest_budget_bytes", &value));
  }
  end(&f);
}

/* With the budget of the largest wave a sum overflows, with a larger one it
 * does not: no budget is named, and none is called impossible. */
TEST(an_unknown_smallest_budget_is_not_called_impossible) {
  uint64_t q = (uint64_t)1 << 62;
  vyre_frontier_wave waves[] = {
      {q, 0, 0}, {2 * q + 1, 0, 0}, {1, 0, 0}, {3 * q, 0, 0}};
  vyre_frontier_desc desc = {waves, 4, NULL, 0, 0, 100, 0};
  fixture f = {0};
  CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
              VYRE_KIND_GROUP_OVER_BUDGET);
  uint64_t value;
  CHECK(!vyre_status_number_get(&f.st, "smallest_budget_bytes", &value));
  CHECK_HAS(f.st.fix, "unknown");
  desc.budget_bytes = 3 * q + 1;
  CHECK_OK(plan(&f, &desc), f.st);
  end(&f);
}

TEST(sums_that_do_not_fit_are_named) {
  static const struct {
    vyre_frontier_wave waves[2];
    size_t count;
    const char *field;
  } cases[] = {{{{MAX64, 1, 1}, {1, 1, 1}}, 2, "fused wave bytes"},
               {{{0, MAX64 / 4 + 1, 0}}, 1, "fused wave scratch bytes"},
               {{{MAX64 - 3, 1, 0}}, 1, "fused wave bytes"},
               {{{MAX64 - 4, 1, 1}}, 1, "fused wave bytes"},
               {{{1ull << 63, 0, 0}, {1ull << 63, 0, 0}},
                2,
                "barrier group fused wave budget bytes"}};
  fixture f = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_frontier_desc desc = {
        cases[i].waves, cases[i].count, NULL, 0, 2, MAX64, 0};
    CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
                VYRE_KIND_BYTE_COUNT_OVERFLOW);
    CHECK_TEXT(f.st.field, cases[i].field);
  }
  vyre_frontier_wave largest = {MAX64 - 5, 1, 1};
  vyre_frontier_desc fits = {&largest, 1, NULL, 0, 0, MAX64, 0};
  CHECK_OK(plan(&f, &fits), f.st);
  CHECK_U64(f.plan.peak_group_bytes, MAX64);
  uint64_t bytes;
  vyre_status st = {0};
  CHECK_FAILS(vyre_frontier_wave_bytes(&cases[0].waves[0], &bytes, &st), st,
              VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW);
  end(&f);
}

/* Dependencies first, then the graph, then the waves. */
TEST(faults_are_reported_in_a_fixed_order) {
  static const vyre_wave_dependency bad[] = {{0, 1}, {1, 0}};
  vyre_frontier_wave waves[] = {{MAX64, 1, 1}, {1, 1, 1}};
  vyre_frontier_desc desc = {waves, 2, bad, 2, 5, 4, 0};
  fixture f = {0};
  CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED, VYRE_KIND_CYCLE);
  desc.dependency_count = 1;
  CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
              VYRE_KIND_GROUP_OVER_BUDGET);
  desc.budget_bytes = 5;
  CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
              VYRE_KIND_BYTE_COUNT_OVERFLOW);
  /* An overflowing sum is reported before a wave that is too large. */
  vyre_frontier_wave both[] = {{5, 0, 0}, {MAX64, 0, 0}};
  vyre_frontier_desc sum = {both, 2, NULL, 0, 0, 10, 0};
  CHECK_FAILS(plan(&f, &sum), f.st, VYRE_PLAN_REJECTED,
              VYRE_KIND_BYTE_COUNT_OVERFLOW);
  CHECK_TEXT(f.st.field, "barrier group fused wave budget bytes");
  end(&f);
}

/* Layers whose total exceeds 64 bits: the bound stays valid. */
TEST(minimum_groups_holds_beyond_64_bits) {
  uint64_t half = MAX64 / 2;
  vyre_frontier_wave waves[6];
  for (int i = 0; i < 6; i++) waves[i] = (vyre_frontier_wave){half, 0, 0};
  static const vyre_wave_dependency deps[] = {{0, 3}, {1, 4}, {2, 5}};
  vyre_frontier_desc desc = {waves, 6, deps, 3, 0, half, 0};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  CHECK_U64(f.plan.barriers.group_count, 6);
  CHECK_U64(f.plan.minimum_groups, 6); /* each wave is above half the budget */
  desc.budget_bytes = 2 * half;
  CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
              VYRE_KIND_BYTE_COUNT_OVERFLOW);
  for (int i = 0; i < 6; i++) waves[i].frontier_bytes = half / 2;
  desc.budget_bytes = half;
  CHECK_OK(plan(&f, &desc), f.st);
  CHECK_U64(f.plan.barriers.group_count, 4);
  CHECK_U64(f.plan.minimum_groups, 3);
  end(&f);
}

TEST(results_take_no_more_of_the_arena_than_they_need) {
  static vyre_frontier_wave waves[1000];
  vyre_frontier_desc desc = {waves, 1000, NULL, 0, 0, 10, 0};
  fixture f = {0};
  CHECK(vyre_arena_alloc(&f.arena, 1 << 20, 0)); /* one block for everything */
  CHECK_OK(plan(&f, &desc), f.st);
  uint32_t *next = vyre_arena_alloc(&f.arena, 4, 4);
  const uint32_t *offsets = f.plan.barriers.group_offsets;
  CHECK(next >= offsets + 2 && next < offsets + 16);
  const vyre_interval *intervals;
  CHECK_OK(
      vyre_frontier_intervals(&f.plan, &desc, 1, &f.arena, &intervals, &f.st),
      f.st);
  const char *end_of = (const char *)(intervals + 3000);
  const char *after = vyre_arena_alloc(&f.arena, 4, 4);
  CHECK(after >= end_of && after < end_of + 64);
  end(&f);
}

TEST(an_empty_graph_is_a_plan_of_nothing) {
  vyre_frontier_desc desc = {NULL, 0, NULL, 0, 5, 5, 9};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  CHECK_U64(f.plan.barriers.group_count, 0);
  CHECK_U64(f.plan.barriers.global_barriers, 0);
  CHECK_U64(f.plan.minimum_groups, 0);
  CHECK_U64(f.plan.amortized_readback_bytes, 9);
  desc.budget_bytes = 4;
  CHECK_FAILS(plan(&f, &desc), f.st, VYRE_PLAN_REJECTED,
              VYRE_KIND_GROUP_OVER_BUDGET);
  CHECK_U64(status_number(&f.st, "smallest_budget_bytes"), 5);
  end(&f);
}

TEST(waves_of_no_bytes_fit_a_budget_of_nothing) {
  vyre_frontier_wave waves[4] = {{0}};
  vyre_frontier_desc desc = {waves, 4, diamond, 4, 7, 7, 0};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  CHECK_U64(f.plan.barriers.group_count, 3);
  CHECK_U64(f.plan.minimum_groups, 3);
  end(&f);
}

/* --- properties, compared with simple second computations ------------------*/

enum { WAVES = 40 };

typedef struct instance {
  vyre_frontier_wave waves[WAVES];
  vyre_wave_dependency deps[WAVES * 3];
  vyre_frontier_desc desc;
} instance;

static void random_instance(uint64_t *state, instance *it, size_t max) {
  size_t count = 1 + random_below(state, max), deps = 0;
  uint64_t largest = 1 + random_below(state, 100);
  for (size_t i = 0; i < count; i++) {
    it->waves[i] = (vyre_frontier_wave){random_below(state, largest),
                                        random_below(state, largest / 4 + 1),
                                        random_below(state, largest)};
  }
  size_t wanted = random_below(state, count * 3);
  for (size_t i = 0; i < wanted; i++) {
    uint64_t a = random_below(state, count), b = random_below(state, count);
    if (a == b) continue;
    it->deps[deps++] =
        a < b ? (vyre_wave_dependency){a, b} : (vyre_wave_dependency){b, a};
  }
  uint64_t graph = random_below(state, 50);
  it->desc = (vyre_frontier_desc){it->waves,
                                  count,
                                  it->deps,
                                  deps,
                                  graph,
                                  graph + random_below(state, largest * 6 + 1),
                                  random_below(state, 500)};
}

static uint64_t fused(const vyre_frontier_wave *w) {
  return w->frontier_bytes + 4 * w->scratch_bytes + w->output_bytes;
}

static uint64_t largest_of(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* Checks all claims of a plan by computing them again from its groups. */
static void check_claims(const vyre_frontier_plan *p,
                         const vyre_frontier_desc *d) {
  size_t group_of[WAVES], seen = 0, widest = 0;
  uint64_t peaks[4] = {0};
  for (size_t g = 0; g < p->barriers.group_count; g++) {
    uint64_t sums[4] = {0};
    uint32_t from = p->barriers.group_offsets[g];
    uint32_t to = p->barriers.group_offsets[g + 1];
    CHECK(to > from);
    for (uint32_t i = from; i < to; i++, seen++) {
      const vyre_frontier_wave *w = &d->waves[p->barriers.waves[i]];
      group_of[p->barriers.waves[i]] = g;
      sums[0] += w->frontier_bytes;
      sums[1] += w->scratch_bytes;
      sums[2] += w->output_bytes;
      sums[3] += fused(w);
    }
    CHECK(sums[3] <= d->budget_bytes - d->resident_graph_bytes);
    for (int k = 0; k < 4; k++) peaks[k] = largest_of(peaks[k], sums[k]);
    widest = to - from > widest ? to - from : widest;
  }
  CHECK_U64(seen, d->wave_count);
  CHECK_U64(p->peak_frontier_bytes, peaks[0]);
  CHECK_U64(p->peak_scratch_bytes, peaks[1]);
  CHECK_U64(p->peak_output_bytes, peaks[2]);
  CHECK_U64(p->peak_group_bytes, peaks[3]);
  CHECK_U64(p->max_group_width, widest);
  CHECK_U64(p->amortized_readback_bytes,
            largest_of(d->readback_bytes, peaks[2]));
  for (size_t i = 0; i < d->dependency_count; i++) {
    CHECK(group_of[d->dependencies[i].before] <
          group_of[d->dependencies[i].after]);
  }
}

TEST(random_plans_keep_what_they_claim) {
  static instance it;
  fixture f = {0};
  uint64_t state = 31337;
  int planned = 0, refused = 0;
  for (int round = 0; round < 20000; round++) {
    random_instance(&state, &it, WAVES);
    if (plan(&f, &it.desc) == VYRE_OK) {
      check_claims(&f.plan, &it.desc);
      planned++;
      continue;
    }
    CHECK(f.st.kind == VYRE_KIND_GROUP_OVER_BUDGET);
    uint64_t smallest = status_number(&f.st, "smallest_budget_bytes");
    it.desc.budget_bytes = smallest;
    CHECK_OK(plan(&f, &it.desc), f.st);
    it.desc.budget_bytes = smallest - 1;
    CHECK(plan(&f, &it.desc) != VYRE_OK);
    refused++;
  }
  CHECK(planned > 5000 && refused > 2000);
  end(&f);
}

/* Finds the minimum number of groups by trying every set of waves that may
 * come next: best[done] over all sets. */
static int fewest_groups(const vyre_frontier_desc *d) {
  uint32_t all = (1u << d->wave_count) - 1, needs[16] = {0};
  static int best[1 << 10];
  uint64_t budget = d->budget_bytes - d->resident_graph_bytes;
  for (size_t i = 0; i < d->dependency_count; i++) {
    needs[d->dependencies[i].after] |= 1u << d->dependencies[i].before;
  }
  for (uint32_t set = 0; set <= all; set++) best[set] = 1000;
  best[0] = 0;
  for (uint32_t done = 0; done <= all; done++) {
    if (best[done] == 1000) continue;
    uint32_t ready = 0;
    for (size_t w = 0; w < d->wave_count; w++) {
      if (!(done >> w & 1) && (needs[w] & ~done) == 0) ready |= 1u << w;
    }
    for (uint32_t group = ready; group > 0; group = (group - 1) & ready) {
      uint64_t bytes = 0;
      for (size_t w = 0; w < d->wave_count; w++) {
        if (group >> w & 1) bytes += fused(&d->waves[w]);
      }
      if (bytes > budget) continue;
      uint32_t next = done | group;
      if (best[done] + 1 < best[next]) best[next] = best[done] + 1;
    }
  }
  return best[all];
}

TEST(minimum_groups_is_never_above_the_true_minimum) {
  static instance it;
  fixture f = {0};
  uint64_t state = 777;
  int planned = 0, tight = 0, proven = 0;
  for (int round = 0; round < 4000; round++) {
    random_instance(&state, &it, 9);
    if (plan(&f, &it.desc) != VYRE_OK) continue;
    size_t fewest = (size_t)fewest_groups(&it.desc);
    CHECK(f.plan.minimum_groups <= fewest);
    CHECK(fewest <= f.plan.barriers.group_count);
    tight += f.plan.minimum_groups == fewest;
    proven += f.plan.minimum_groups == f.plan.barriers.group_count;
    planned++;
  }
  printf(
      "    %d plans: the bound is the true minimum in %d, proves the plan "
      "best in %d\n",
      planned, tight, proven);
  CHECK(planned > 1000 && tight > planned * 3 / 4);
  end(&f);
}

/* --- lifetimes -------------------------------------------------------------*/

TEST(intervals_live_to_their_last_use_or_the_readback) {
  vyre_frontier_wave waves[] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};
  static const vyre_wave_dependency deps[] = {{0, 1}, {1, 2}, {0, 2}};
  vyre_frontier_desc desc = {waves, 4, deps, 3, 0, 1000, 0};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st); /* 0 3 | 1 | 2 */
  const vyre_interval *got;
  CHECK_OK(vyre_frontier_intervals(&f.plan, &desc, 64, &f.arena, &got, &f.st),
           f.st);
  static const uint64_t want[12][3] = {
      {1, 0, 2}, {8, 0, 0},  {3, 0, 2}, {4, 1, 2},  {20, 1, 1}, {6, 1, 2},
      {7, 2, 2}, {32, 2, 2}, {9, 2, 2}, {10, 0, 2}, {44, 0, 0}, {12, 0, 2}};
  for (int i = 0; i < 12; i++) {
    CHECK_U64(got[i].size, want[i][0]);
    CHECK_U64(got[i].first_group, want[i][1]);
    CHECK_U64(got[i].last_group, want[i][2]);
    CHECK_U64(got[i].alignment, 64);
  }
  end(&f);
}

TEST(parts_of_a_wave_have_names) {
  CHECK_TEXT(vyre_wave_part_name(VYRE_PART_FRONTIER), "frontier");
  CHECK_TEXT(vyre_wave_part_name(VYRE_PART_SCRATCH), "scratch");
  CHECK_TEXT(vyre_wave_part_name(VYRE_PART_OUTPUT), "output");
  CHECK_TEXT(vyre_wave_part_name(VYRE_PART_COUNT), "?");
}

TEST(intervals_of_another_graph_are_refused) {
  vyre_frontier_wave waves[4] = {{0}};
  vyre_frontier_desc desc = {waves, 4, diamond, 4, 0, 10, 0};
  static const vyre_wave_dependency other[] = {{1, 2}};
  static const vyre_wave_dependency beyond[] = {{0, 4}};
  vyre_frontier_desc cases[] = {{waves, 3, diamond, 4, 0, 10, 0},
                                {waves, 4, other, 1, 0, 10, 0},
                                {waves, 4, beyond, 1, 0, 10, 0}};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  for (int i = 0; i < 3; i++) {
    const vyre_interval *got;
    vyre_status st = {0};
    CHECK_FAILS(
        vyre_frontier_intervals(&f.plan, &cases[i], 1, &f.arena, &got, &st), st,
        VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK(!got);
  }
  end(&f);
}

/* Plans are public structs: a modified one is rejected. */
TEST(intervals_of_a_broken_plan_are_refused) {
  vyre_frontier_wave waves[4] = {{0}};
  vyre_frontier_desc desc = {waves, 4, diamond, 4, 0, 10, 0};
  static const uint32_t order[] = {0, 1, 2, 3}, wild[] = {0, 1, 77777777, 3};
  static const struct {
    uint32_t offsets[4];
    const uint32_t *waves;
  } cases[] = {{{0, 1, 3, 4}, wild},  {{0, 1, 3, 5}, order},
               {{1, 1, 3, 4}, order}, {{0, 3, 1, 4}, order},
               {{0, 1, 3, 3}, order}, {{0, 1, 3, 4}, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_frontier_plan broken = {.barriers = {.group_offsets = cases[i].offsets,
                                              .waves = cases[i].waves,
                                              .group_count = 3,
                                              .wave_count = 4}};
    vyre_arena arena = {0};
    const vyre_interval *got;
    vyre_status st = {0};
    CHECK_FAILS(vyre_frontier_intervals(&broken, &desc, 1, &arena, &got, &st),
                st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    vyre_arena_deinit(&arena);
  }
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  waves[2].scratch_bytes = MAX64; /* differs from the plan */
  const vyre_interval *got;
  vyre_status st = {0};
  CHECK_FAILS(vyre_frontier_intervals(&f.plan, &desc, 1, &f.arena, &got, &st),
              st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW);
  end(&f);
}

/* --- memory ----------------------------------------------------------------*/

static vyre_code plan_diamond(vyre_allocator allocator, vyre_status *st) {
  vyre_frontier_wave waves[4] = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  vyre_frontier_desc desc = {waves, 4, diamond, 4, 0, 100, 0};
  vyre_barrier_scratch scratch;
  vyre_barrier_scratch_init(&scratch, allocator);
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_frontier_plan got;
  const vyre_interval *intervals;
  vyre_code code = vyre_frontier_plan_build(&desc, &scratch, &arena, &got, st);
  if (code == VYRE_OK) {
    /* so that another block is needed */
    void *fill = vyre_arena_alloc(&arena, 3600, 0);
    code = vyre_frontier_intervals(&got, &desc, 1, &arena, &intervals, st);
    (void)fill;
  }
  vyre_barrier_scratch_deinit(&scratch);
  vyre_arena_deinit(&arena);
  return code;
}

TEST(planning_survives_every_allocation_failure) {
  CHECK(sweep_allocations(plan_diamond) >= 4);
}

TEST(a_second_plan_of_the_same_shape_allocates_nothing) {
  static instance it;
  uint64_t state = 5;
  random_instance(&state, &it, WAVES);
  it.desc.budget_bytes = 100000;
  test_heap heap = {.left = -1};
  fixture f;
  vyre_barrier_scratch_init(&f.scratch, test_heap_allocator(&heap));
  vyre_arena_init(&f.arena, test_heap_allocator(&heap));
  CHECK_OK(plan(&f, &it.desc), f.st);
  size_t calls = heap.calls;
  CHECK_OK(plan(&f, &it.desc), f.st);
  CHECK_U64(heap.calls, calls);
  end(&f);
  CHECK_U64(heap.live_bytes, 0);
}

TEST(null_arguments_are_a_status) {
  fixture f = {0};
  vyre_frontier_desc empty = {0}, no_waves = {.wave_count = 1},
                     no_deps = {.dependency_count = 1};
  const vyre_interval *intervals;
  uint64_t bytes;
  vyre_status st[9] = {{0}};
  vyre_code codes[9] = {
      vyre_frontier_plan_build(NULL, &f.scratch, &f.arena, &f.plan, &st[0]),
      vyre_frontier_plan_build(&empty, NULL, &f.arena, &f.plan, &st[1]),
      vyre_frontier_plan_build(&empty, &f.scratch, NULL, &f.plan, &st[2]),
      vyre_frontier_plan_build(&empty, &f.scratch, &f.arena, NULL, &st[3]),
      vyre_frontier_plan_build(&no_waves, &f.scratch, &f.arena, &f.plan,
                               &st[4]),
      vyre_frontier_plan_build(&no_deps, &f.scratch, &f.arena, &f.plan, &st[5]),
      vyre_frontier_wave_bytes(NULL, &bytes, &st[6]),
      vyre_frontier_wave_bytes(&(vyre_frontier_wave){0}, NULL, &st[7]),
      vyre_frontier_intervals(NULL, &empty, 1, &f.arena, &intervals, &st[8])};
  for (int i = 0; i < 9; i++) {
    CHECK_FAILS(codes[i], st[i], VYRE_INVALID_ARGUMENT,
                VYRE_KIND_INVALID_ARGUMENT);
  }
  end(&f);
}

TEST(the_printer_draws_groups_against_the_budget) {
  vyre_frontier_wave waves[] = {{10, 0, 0}, {40, 0, 0}, {40, 0, 0}, {0, 0, 1}};
  vyre_frontier_desc desc = {waves, 4, diamond, 4, 20, 100, 0};
  fixture f = {0};
  CHECK_OK(plan(&f, &desc), f.st);
  text_buffer text = {0};
  CHECK(vyre_frontier_plan_print(&f.plan, &desc, text_writer(&text)));
  static const char *const parts[] = {
      "frontier plan: 4 waves, 4 dependencies\n",
      "(no grouping has fewer)",
      "peak_group_bytes                                   80 bytes\n",
      " 10  |======###                       |  0\n",
      " 80  |======#########################",
      "|  1 2\n",
      " 1  |======#                         |  3\n"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    CHECK_HAS(text.bytes, parts[i]);
  }
  CHECK(!vyre_frontier_plan_print(&f.plan, &desc, refusing_writer()));
  end(&f);
}

TEST_MAIN(TEST_ENTRY(peaks_are_those_of_the_largest_group),
          TEST_ENTRY(output_of_a_group_amortises_the_readback),
          TEST_ENTRY(independent_waves_are_split_to_the_budget),
          TEST_ENTRY(a_wave_counts_its_scratch_four_times),
          TEST_ENTRY(generated_shapes_keep_peaks_and_budget),
          TEST_ENTRY(over_budget_names_region_and_numbers),
          TEST_ENTRY(no_smallest_budget_is_reported_if_none_exists),
          TEST_ENTRY(an_unknown_smallest_budget_is_not_called_impossible),
          TEST_ENTRY(sums_that_do_not_fit_are_named),
          TEST_ENTRY(faults_are_reported_in_a_fixed_order),
          TEST_ENTRY(minimum_groups_holds_beyond_64_bits),
          TEST_ENTRY(results_take_no_more_of_the_arena_than_they_need),
          TEST_ENTRY(an_empty_graph_is_a_plan_of_nothing),
          TEST_ENTRY(waves_of_no_bytes_fit_a_budget_of_nothing),
          TEST_ENTRY(random_plans_keep_what_they_claim),
          TEST_ENTRY(minimum_groups_is_never_above_the_true_minimum),
          TEST_ENTRY(intervals_live_to_their_last_use_or_the_readback),
          TEST_ENTRY(parts_of_a_wave_have_names),
          TEST_ENTRY(intervals_of_another_graph_are_refused),
          TEST_ENTRY(intervals_of_a_broken_plan_are_refused),
          TEST_ENTRY(planning_survives_every_allocation_failure),
          TEST_ENTRY(a_second_plan_of_the_same_shape_allocates_nothing),
          TEST_ENTRY(null_arguments_are_a_status),
          TEST_ENTRY(the_printer_draws_groups_against_the_budget))
