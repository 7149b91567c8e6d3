/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/placement.h"

#include "plan/placement_internal.h"
#include "support/check.h"
#include "support/sanitized.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MANY = 300 };

/* --- a plan and its checker ------------------------------------------------*/

/* Memory of all cases; static, so that a failed case leaks nothing. */
static vyre_placement_scratch scratch;
static vyre_arena results;

static uint64_t rounded(const vyre_interval *v) {
  uint64_t alignment = v->alignment ? v->alignment : 1;
  uint64_t rest = v->size % alignment;
  return rest ? v->size + (alignment - rest) : v->size;
}

static bool together(const vyre_interval *a, const vyre_interval *b) {
  return a->first_group <= b->last_group && b->first_group <= a->last_group;
}

/* Returns the maximum of live bytes; it occurs at the start of some interval.
 */
static uint64_t max_alive(const vyre_interval *v, size_t count) {
  uint64_t max = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t live = 0;
    for (size_t j = 0; j < count; j++) {
      if (v[j].first_group <= v[i].first_group &&
          v[j].last_group >= v[i].first_group) {
        live += rounded(&v[j]);
      }
    }
    if (live > max) max = live;
  }
  return max;
}

static void check_figures(const vyre_interval *v, size_t count,
                          const vyre_placement_plan *plan) {
  uint64_t top = 0;
  for (size_t i = 0; i < count; i++) {
    if (v[i].alignment) CHECK_U64(plan->offsets[i] % v[i].alignment, 0);
    if (v[i].size == 0) CHECK_U64(plan->offsets[i], 0);
    if (v[i].size == 0) continue;
    CHECK(plan->offsets[i] <= UINT64_MAX - rounded(&v[i]));
    uint64_t end = plan->offsets[i] + rounded(&v[i]);
    if (end > top) top = end;
  }
  CHECK_U64(plan->interval_count, count);
  CHECK_U64(plan->placed_bytes, top);
  CHECK(plan->placed_bytes >= plan->lower_bound_bytes);
  CHECK_U64(plan->gap_bytes, plan->placed_bytes - plan->lower_bound_bytes);
  if (plan->gap_bytes == 0) CHECK(plan->is_optimal);
  CHECK(plan->method < VYRE_PLACEMENT_METHOD_COUNT);
}

/* Checks all properties of a plan, pair by pair. */
static void check_plan(const vyre_interval *v, size_t count,
                       const vyre_placement_plan *plan) {
  check_figures(v, count, plan);
  CHECK_U64(plan->lower_bound_bytes, max_alive(v, count));
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < i; j++) {
      if (v[i].size == 0 || v[j].size == 0 || !together(&v[i], &v[j])) continue;
      CHECK(plan->offsets[i] >= plan->offsets[j] + rounded(&v[j]) ||
            plan->offsets[j] >= plan->offsets[i] + rounded(&v[i]));
    }
  }
}

static vyre_placement_plan plan_with(const vyre_interval *v, size_t count,
                                     const vyre_placement_options *options) {
  vyre_status st = {0};
  vyre_placement_plan plan;
  vyre_arena_reset(&results);
  CHECK_OK(vyre_placement_plan_build(v, count, options, &scratch, &results,
                                     &plan, &st),
           st);
  return plan;
}

static vyre_placement_plan plan_checked(const vyre_interval *v, size_t count) {
  vyre_placement_plan plan = plan_with(v, count, NULL);
  check_plan(v, count, &plan);
  return plan;
}

/* --- vectors ---------------------------------------------------------------*/

typedef struct vector {
  const char *what;
  vyre_interval intervals[8];
  size_t count;
  uint64_t placed, bound;
} vector;

#define BIG UINT64_MAX

static const vector vectors[] = {
    {"nothing", {{0}}, 0, 0, 0},
    {"one", {{10, 1, 0, 0}}, 1, 10, 10},
    {"only empty ones", {{0, 4, 0, 9}, {0, 0, 5, 5}}, 2, 0, 0},
    {"alignment 0 is 1", {{3, 0, 0, 1}, {4, 0, 1, 2}}, 2, 7, 7},
    {"sizes are rounded up first",
     {{1, 64, 0, 0}, {65, 64, 0, 0}},
     2,
     192,
     192},
    {"one after the other share", {{8, 1, 0, 1}, {8, 1, 2, 3}}, 2, 8, 8},
    {"the last group counts", {{8, 1, 0, 2}, {8, 1, 2, 3}}, 2, 16, 16},
    {"parts far apart do not add up",
     {{5, 1, 0, 1}, {7, 1, 1, 1}, {9, 1, 100, 101}, {2, 1, 101, 200}},
     4,
     12,
     12},
    {"a hole is filled",
     {{4, 1, 0, 3}, {6, 1, 0, 1}, {5, 1, 2, 3}, {1, 1, 2, 2}, {2, 1, 1, 1}},
     5,
     12,
     12},
    {"alignments 4 and 3 cost a byte", {{4, 4, 0, 0}, {3, 3, 0, 0}}, 2, 8, 7},
    {"alignments 6, 10, 15",
     {{6, 6, 0, 0}, {10, 10, 0, 0}, {15, 15, 0, 0}},
     3,
     36,
     31},
    {"the largest interval", {{BIG, 1, 0, BIG}}, 1, BIG, BIG},
    {"full to the last byte", {{BIG - 1, 1, 0, 5}, {1, 1, 5, 5}}, 2, BIG, BIG},
    {"full, and once more",
     {{BIG - 7, 1, 3, 5}, {7, 1, 5, 6}, {BIG - 9, 1, 6, 8}, {9, 1, 8, 9}},
     4,
     BIG,
     BIG},
    {"the last group there is",
     {{4, 1, BIG, BIG}, {6, 1, 0, BIG}, {8, 1, 0, BIG - 1}},
     3,
     14,
     14},
};

TEST(vectors_by_hand_have_their_optimum) {
  for (size_t i = 0; i < COUNT(vectors); i++) {
    const vector *v = &vectors[i];
    vyre_placement_plan plan = plan_checked(v->intervals, v->count);
    if (plan.placed_bytes != v->placed) printf("    %s\n", v->what);
    CHECK_U64(plan.placed_bytes, v->placed);
    CHECK_U64(plan.lower_bound_bytes, v->bound);
    CHECK(plan.is_optimal);
  }
}

TEST(no_intervals_need_no_pointer) {
  vyre_placement_plan plan = plan_with(NULL, 0, NULL);
  CHECK(plan.offsets && plan.interval_count == 0 && plan.is_optimal);
  CHECK_U64(plan.placed_bytes, 0);
}

TEST(a_gap_can_be_proven_optimal) {
  const vyre_interval v[] = {{4, 4, 0, 0}, {3, 3, 0, 0}};
  vyre_placement_plan plan = plan_checked(v, 2);
  CHECK(plan.gap_bytes == 1 && plan.is_optimal && plan.search_nodes > 0);
  plan = plan_with(v, 2, &(vyre_placement_options){.no_search = true});
  CHECK(plan.gap_bytes == 1 && !plan.is_optimal && plan.search_nodes == 0);
}

TEST(methods_have_names) {
  CHECK_TEXT(vyre_placement_method_name(VYRE_PLACED_BY_SKYLINE), "skyline");
  CHECK_TEXT(vyre_placement_method_name(VYRE_PLACED_BY_SWEEP), "sweep");
  CHECK_TEXT(vyre_placement_method_name(VYRE_PLACED_BY_BEST_FIT), "best_fit");
  CHECK_TEXT(vyre_placement_method_name(VYRE_PLACED_BY_SEARCH), "search");
  CHECK_TEXT(vyre_placement_method_name(VYRE_PLACEMENT_METHOD_COUNT), "?");
}

/* --- errors ----------------------------------------------------------------*/

typedef struct refusal {
  vyre_interval intervals[3];
  size_t count;
  vyre_kind kind;
  const char *field;
  uint64_t interval; /* BIG: the status names no interval */
} refusal;

#define HALF (UINT64_C(1) << 63)

static const refusal refusals[] = {
    {{{1, 1, 0, 0}, {1, 1, 5, 4}}, 2, VYRE_KIND_INVALID_INTERVAL, NULL, 1},
    {{{0, 1, BIG, 0}}, 1, VYRE_KIND_INVALID_INTERVAL, NULL, 0},
    {{{1, 1, 0, 0}, {1, 1, 0, 0}, {BIG, 2, 0, 0}},
     3,
     VYRE_KIND_BYTE_COUNT_OVERFLOW,
     "aligned interval bytes",
     2},
    {{{HALF, 1, 0, 3}, {HALF, 1, 3, 3}},
     2,
     VYRE_KIND_BYTE_COUNT_OVERFLOW,
     "live interval bytes",
     1},
    {{{HALF, HALF, 0, 0}, {HALF / 4 * 3, HALF / 4 * 3, 0, 0}},
     2,
     VYRE_KIND_BYTE_COUNT_OVERFLOW,
     "placed bytes",
     BIG},
};

TEST(bad_intervals_are_refused_with_their_numbers) {
  for (size_t i = 0; i < COUNT(refusals); i++) {
    const refusal *r = &refusals[i];
    vyre_placement_plan plan = {.placed_bytes = 1};
    vyre_status st = {0};
    CHECK_FAILS(vyre_placement_plan_build(r->intervals, r->count, NULL,
                                          &scratch, &results, &plan, &st),
                st, VYRE_PLAN_REJECTED, r->kind);
    if (r->field) CHECK_TEXT(st.field, r->field);
    if (r->interval != BIG) {
      CHECK_U64(status_number(&st, "interval"), r->interval);
    }
    CHECK(!plan.offsets && plan.placed_bytes == 0);
  }
}

TEST(an_interval_that_ends_early_names_both_groups) {
  const vyre_interval v = {1, 1, 7, 6};
  vyre_placement_plan plan;
  vyre_status st = {0};
  CHECK_FAILS(
      vyre_placement_plan_build(&v, 1, NULL, &scratch, &results, &plan, &st),
      st, VYRE_PLAN_REJECTED, VYRE_KIND_INVALID_INTERVAL);
  CHECK_U64(status_number(&st, "first_group"), 7);
  CHECK_U64(status_number(&st, "last_group"), 6);
}

TEST(too_many_intervals_are_refused_unread) {
  const vyre_interval v = {1, 1, 0, 0};
  vyre_placement_plan plan;
  vyre_status st = {0};
  CHECK_FAILS(vyre_placement_plan_build(&v, (size_t)VYRE_MAX_INTERVALS + 1,
                                        NULL, &scratch, &results, &plan, &st),
              st, VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW);
  CHECK_TEXT(st.field, "interval count");
}

TEST(missing_pointers_are_named) {
  const vyre_interval v = {1, 1, 0, 0};
  vyre_placement_plan plan = {.placed_bytes = 1};
  static const char *const names[] = {"intervals", "scratch", "arena", "out"};
  for (int missing = 0; missing < 4; missing++) {
    vyre_status st = {0};
    CHECK_FAILS(vyre_placement_plan_build(missing == 0 ? NULL : &v, 1, NULL,
                                          missing == 1 ? NULL : &scratch,
                                          missing == 2 ? NULL : &results,
                                          missing == 3 ? NULL : &plan, &st),
                st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK_HAS(st.message, names[missing]);
    CHECK_U64(plan.placed_bytes, 0);
  }
}

TEST(a_failure_leaves_the_arena_as_it_was) {
  vyre_arena_reset(&results);
  (void)vyre_arena_alloc(&results, 100, 0);
  vyre_arena before = results;
  for (size_t i = 0; i < COUNT(refusals); i++) {
    vyre_placement_plan plan;
    CHECK(vyre_placement_plan_build(refusals[i].intervals, refusals[i].count,
                                    NULL, &scratch, &results, &plan,
                                    NULL) == VYRE_PLAN_REJECTED);
    CHECK(results.current == before.current && results.used == before.used);
  }
}

/* --- random instances ------------------------------------------------------*/

typedef enum lives { SHORT, LONG, LAYERS, TINY, MIXED, LIVES } lives;
typedef enum sizes { UNIFORM, POWERS, HEAVY, SMALL, TENSORS, SIZES } sizes;

static void make_life(vyre_interval *v, size_t i, size_t count, lives kind,
                      uint64_t layers, uint64_t *random) {
  uint64_t first = random_below(random, count), length = 0;
  switch (kind) {
    case SHORT:
      length = random_below(random, 1 + count / 10);
      break;
    case LONG:
      length = random_below(random, count - first);
      break;
    case LAYERS: /* to the next layers, some far ahead */
      first = i * layers / count;
      length = 1 + random_below(random, 2);
      if (random_below(random, 8) == 0) length = random_below(random, layers);
      break;
    case TINY:
      length = random_below(random, 4);
      break;
    default:
      length = random_below(random, 1 + (count >> random_below(random, 10)));
  }
  v->first_group = first;
  v->last_group = first + length;
}

static uint64_t make_size(sizes kind, uint64_t *random) {
  switch (kind) {
    case UNIFORM:
      return 1 + random_below(random, 1000);
    case POWERS:
      return UINT64_C(1) << random_below(random, 12);
    case HEAVY: {
      uint64_t span = UINT64_C(1) << random_below(random, 16);
      uint64_t scale = random_below(random, 4) == 0 ? 8 : 1;
      return 1 + random_below(random, span) * scale;
    }
    case SMALL:
      return 1 + random_below(random, 12);
    default:
      return 4096 + random_below(random, 65536);
  }
}

/* @p alignments: 0..2 one of 1, 64, 256 for all; 3 a mix of them. */
static void make_instance(vyre_interval *v, size_t count, lives life,
                          sizes size, unsigned alignments, uint64_t *random) {
  static const uint64_t choices[] = {1, 64, 256};
  uint64_t layers = 2 + random_below(random, count / 4 + 1);
  for (size_t i = 0; i < count; i++) {
    make_life(&v[i], i, count, life, layers, random);
    v[i].size = make_size(size, random);
    v[i].alignment =
        choices[alignments < 3 ? alignments : random_below(random, 3)];
  }
}

/* Makes instance @p number of the thousand; returns the number of intervals. */
static size_t make_numbered(vyre_interval *v, uint64_t number) {
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15) * (number + 1) | 1;
  (void)random_next(&random);
  size_t count = 20 + (size_t)random_below(&random, 281);
  make_instance(v, count, (lives)(number % LIVES),
                (sizes)(number / LIVES % SIZES),
                (unsigned)(number / LIVES / SIZES % 4), &random);
  return count;
}

/* --- against exhaustive search ---------------------------------------------*/

enum { SMALL_MAX = 7 };

/* Returns the lowest offset of v[k] at 0 or on top of a placed interval. */
static uint64_t lowest_place(const vyre_interval *v, const uint64_t *offsets,
                             const size_t *order, size_t placed, size_t k) {
  uint64_t alignment = v[k].alignment ? v[k].alignment : 1;
  uint64_t size = rounded(&v[k]), at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t p = 0; p < placed; p++) {
      size_t j = order[p];
      uint64_t end = offsets[j] + rounded(&v[j]);
      if (!together(&v[k], &v[j]) || v[j].size == 0 || size == 0) continue;
      if (at + size <= offsets[j] || at >= end) continue;
      at = (end + alignment - 1) / alignment * alignment;
      moved = true;
    }
  }
  return at;
}

/* Returns the smallest height over all orders; order[0..placed) is fixed. */
static uint64_t best_of_orders(const vyre_interval *v, size_t count,
                               size_t *order, uint64_t *offsets, size_t placed,
                               uint64_t height) {
  if (placed == count) return height;
  uint64_t best = UINT64_MAX;
  for (size_t p = placed; p < count; p++) {
    size_t k = order[p];
    order[p] = order[placed];
    order[placed] = k;
    offsets[k] = lowest_place(v, offsets, order, placed, k);
    uint64_t top = v[k].size ? offsets[k] + rounded(&v[k]) : 0;
    uint64_t found = best_of_orders(v, count, order, offsets, placed + 1,
                                    top > height ? top : height);
    if (found < best) best = found;
    order[placed] = order[p];
    order[p] = k;
  }
  return best;
}

/* Returns true if v[k..] fit below @p height, trying every aligned offset. */
static bool some_offsets_fit(const vyre_interval *v, size_t count,
                             uint64_t *offsets, size_t k, uint64_t height) {
  if (k == count) return true;
  uint64_t step = v[k].alignment ? v[k].alignment : 1;
  uint64_t size = rounded(&v[k]);
  for (uint64_t at = 0; at + size <= height; at += step) {
    bool free_here = true;
    for (size_t j = 0; j < k && free_here; j++) {
      free_here = !together(&v[k], &v[j]) || v[j].size == 0 || size == 0 ||
                  at >= offsets[j] + rounded(&v[j]) || at + size <= offsets[j];
    }
    offsets[k] = at;
    if (free_here && some_offsets_fit(v, count, offsets, k + 1, height)) {
      return true;
    }
  }
  return false;
}

static size_t make_small(vyre_interval *v, size_t max, uint64_t largest,
                         uint64_t *random) {
  static const uint64_t alignments[] = {0, 1, 1, 2, 3, 4, 5, 6, 8};
  size_t count = 1 + (size_t)random_below(random, max);
  for (size_t i = 0; i < count; i++) {
    uint64_t first = random_below(random, 6);
    v[i].size =
        random_below(random, 10) ? 1 + random_below(random, largest) : 0;
    v[i].alignment = alignments[random_below(random, COUNT(alignments))];
    v[i].first_group = first;
    v[i].last_group = first + random_below(random, 6 - first);
    if (i > 0 && random_below(random, 5) == 0) v[i] = v[i - 1];
  }
  return count;
}

static uint64_t optimum(const vyre_interval *v, size_t count) {
  size_t order[SMALL_MAX];
  uint64_t offsets[SMALL_MAX] = {0};
  for (size_t i = 0; i < count; i++) order[i] = i;
  return best_of_orders(v, count, order, offsets, 0, 0);
}

TEST(trying_orders_is_as_good_as_trying_all_offsets) {
  uint64_t random = 77;
  for (int n = 0; n < (SANITIZED ? 80 : 2000); n++) {
    vyre_interval v[SMALL_MAX];
    uint64_t offsets[SMALL_MAX];
    size_t count = make_small(v, 4, 6, &random);
    uint64_t best = optimum(v, count);
    CHECK(some_offsets_fit(v, count, offsets, 0, best));
    if (best > 0) CHECK(!some_offsets_fit(v, count, offsets, 0, best - 1));
  }
}

/* Fewer instances than in the other cases: searching all orders of up to
 * SMALL_MOST values takes over 2 ms each, most of the time of this file. */
TEST(small_instances_get_the_optimum_of_exhaustive_search) {
  uint64_t random = 4242;
  int gaps = 0;
  for (int n = 0; n < (SANITIZED ? 400 : 1500); n++) {
    vyre_interval v[SMALL_MAX];
    size_t count = make_small(v, SMALL_MAX, 12, &random);
    vyre_placement_plan plan = plan_checked(v, count);
    CHECK_U64(plan.placed_bytes, optimum(v, count));
    CHECK(plan.is_optimal);
    gaps += plan.gap_bytes > 0;
  }
  CHECK(gaps > 10);
}

TEST(the_search_alone_finds_the_optimum) {
  uint64_t random = 99;
  for (int n = 0; n < (SANITIZED ? 60 : 2000); n++) {
    vyre_interval v[SMALL_MAX];
    size_t count = make_small(v, SMALL_MAX, 12, &random);
    /* With one step, only the first order is tried. */
    vyre_placement_options few = {.heuristic_steps = 1};
    vyre_placement_plan plan = plan_with(v, count, &few);
    check_plan(v, count, &plan);
    CHECK_U64(plan.placed_bytes, optimum(v, count));
  }
}

/* --- quality ---------------------------------------------------------------*/

static int compare_gaps(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

TEST(a_thousand_instances_have_median_gap_0_and_worst_below_5_percent) {
  enum { INSTANCES = SANITIZED ? 60 : 1000 };
  static double gaps[INSTANCES];
  int proven = 0;
  for (int n = 0; n < INSTANCES; n++) {
    vyre_interval v[MANY];
    size_t count = make_numbered(v, (uint64_t)n);
    vyre_placement_plan plan = plan_checked(v, count);
    gaps[n] = 100.0 * (double)plan.gap_bytes / (double)plan.lower_bound_bytes;
    proven += plan.is_optimal;
  }
  qsort(gaps, INSTANCES, sizeof gaps[0], compare_gaps);
  double median = gaps[INSTANCES / 2], worst = gaps[INSTANCES - 1];
  printf(
      "    %d instances%s: gap median %.3f %%, p90 %.3f %%, worst %.3f %%; "
      "%d proven optimal\n",
      INSTANCES, SANITIZED ? " (fewer under a sanitizer)" : "", median,
      gaps[INSTANCES * 9 / 10], worst, proven);
  CHECK(median == 0.0);
  CHECK(worst < 5.0);
}

TEST(ten_thousand_intervals_come_near_the_bound) {
  enum { COUNT_10K = SANITIZED ? 3000 : 10000 };
  static vyre_interval v[COUNT_10K];
  for (int life = 0; life < LIVES; life++) {
    uint64_t random = 31337;
    make_instance(v, COUNT_10K, (lives)life, UNIFORM, 3, &random);
    vyre_placement_plan plan = plan_with(v, COUNT_10K, NULL);
    if (life != LAYERS || !SANITIZED) check_plan(v, COUNT_10K, &plan);
    CHECK(plan.gap_bytes < plan.lower_bound_bytes / 10);
  }
}

/* Sorted by offset, then by index. */
typedef struct spot {
  uint64_t offset, end;
} spot;

static int compare_spots(const void *a, const void *b) {
  const spot *x = a, *y = b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

TEST(three_hundred_thousand_intervals_do_not_overlap) {
  enum { GROUPS = 1000, PER_GROUP = SANITIZED ? 60 : 300 };
  enum { TOTAL = GROUPS * PER_GROUP };
  static vyre_interval v[TOTAL];
  static spot live[3 * PER_GROUP];
  uint64_t random = 5;
  for (size_t i = 0; i < TOTAL; i++) {
    uint64_t group = i / PER_GROUP;
    v[i] = (vyre_interval){1 + random_below(&random, 5000), 64, group,
                           group + random_below(&random, 3)};
  }
  vyre_placement_plan plan = plan_with(v, TOTAL, NULL);
  check_figures(v, TOTAL, &plan);
  for (size_t group = 0; group < GROUPS; group++) {
    size_t count = 0, from = group < 2 ? 0 : (group - 2) * PER_GROUP;
    for (size_t i = from; i < (group + 1) * PER_GROUP; i++) {
      if (v[i].last_group < group) continue;
      live[count++] = (spot){plan.offsets[i], plan.offsets[i] + rounded(&v[i])};
    }
    qsort(live, count, sizeof live[0], compare_spots);
    for (size_t i = 1; i < count; i++) CHECK(live[i].offset >= live[i - 1].end);
  }
  CHECK(plan.gap_bytes < plan.lower_bound_bytes / 20);
}

/* --- the fast methods ------------------------------------------------------*/

enum { FAST_ITEMS = 200, FAST_SECTIONS = 61 };

static uint32_t make_items(vyre__place_item *items, uint64_t *random) {
  uint32_t count = 1 + (uint32_t)random_below(random, FAST_ITEMS);
  for (uint32_t i = 0; i < count; i++) {
    items[i].first = i * FAST_SECTIONS / count;
    items[i].last = items[i].first + (uint32_t)random_below(random, 12);
    if (items[i].last >= FAST_SECTIONS) items[i].last = FAST_SECTIONS - 1;
    items[i].size = 1 + random_below(random, 50);
    items[i].alignment = 1 + random_below(random, 4);
  }
  return count;
}

TEST(the_skyline_stands_on_the_highest_of_its_sections) {
  uint64_t random = 2024;
  for (int n = 0; n < 500; n++) {
    vyre__place_item items[FAST_ITEMS];
    uint32_t order[FAST_ITEMS];
    uint64_t offsets[FAST_ITEMS], heights[FAST_SECTIONS] = {0};
    vyre__place_part all = {.items = items, .sections = FAST_SECTIONS};
    all.count = make_items(items, &random);
    for (uint32_t i = 0; i < all.count; i++) {
      uint32_t j = (uint32_t)random_below(&random, i + 1);
      order[i] = i;
      order[i] = order[j];
      order[j] = i;
    }
    vyre_arena_reset(&results);
    CHECK(vyre__place_skyline(&results, &all, order, UINT64_MAX, offsets));
    for (uint32_t k = 0; k < all.count; k++) {
      const vyre__place_item *item = &items[order[k]];
      uint64_t at = 0;
      for (uint32_t t = item->first; t <= item->last; t++) {
        if (heights[t] > at) at = heights[t];
      }
      at = (at + item->alignment - 1) / item->alignment * item->alignment;
      CHECK_U64(offsets[order[k]], at);
      for (uint32_t t = item->first; t <= item->last; t++) {
        heights[t] = at + item->size;
      }
    }
  }
}

TEST(the_sweep_reuses_what_has_ended_and_overlaps_nothing) {
  uint64_t random = 2025;
  for (int n = 0; n < 500; n++) {
    vyre__place_item items[FAST_ITEMS];
    uint32_t order[FAST_ITEMS];
    uint64_t offsets[FAST_ITEMS], sum = 0, top = 0;
    vyre__place_part all = {.items = items, .sections = FAST_SECTIONS};
    all.count = make_items(items, &random);
    for (uint32_t i = 0; i < all.count; i++) order[i] = i;
    vyre_arena_reset(&results);
    CHECK(vyre__place_sweep(&results, &all, order, UINT64_MAX, offsets));
    for (uint32_t i = 0; i < all.count; i++) {
      uint64_t end = offsets[i] + items[i].size;
      CHECK_U64(offsets[i] % items[i].alignment, 0);
      for (uint32_t j = 0; j < i; j++) {
        if (!vyre__place_meet(&items[i], &items[j])) continue;
        CHECK(offsets[i] >= offsets[j] + items[j].size || end <= offsets[j]);
      }
      sum += items[i].size;
      if (end > top) top = end;
    }
    if (all.count > 150) CHECK(top < sum / 2);
  }
}

/* --- limits ----------------------------------------------------------------*/

TEST(limits_are_kept) {
  vyre_interval v[MANY];
  for (uint64_t n = 0; n < 60; n++) {
    size_t count = make_numbered(v, n);
    vyre_placement_plan plan =
        plan_with(v, count, &(vyre_placement_options){.no_search = true});
    check_plan(v, count, &plan);
    CHECK(plan.search_nodes == 0 && plan.method != VYRE_PLACED_BY_SEARCH);
    plan = plan_with(
        v, count,
        &(vyre_placement_options){.heuristic_steps = 1, .search_nodes = 10});
    check_plan(v, count, &plan);
    CHECK(plan.search_nodes <= 10);
  }
}

/* --- determinism and memory ------------------------------------------------*/

static void check_same(const vyre_placement_plan *a,
                       const vyre_placement_plan *b) {
  CHECK_U64(a->placed_bytes, b->placed_bytes);
  CHECK_U64(a->search_nodes, b->search_nodes);
  CHECK(a->method == b->method && a->is_optimal == b->is_optimal);
  CHECK_U64(a->interval_count, b->interval_count);
  CHECK(memcmp(a->offsets, b->offsets,
               a->interval_count * sizeof a->offsets[0]) == 0);
}

TEST(scratch_leaves_no_trace_in_a_plan) {
  vyre_interval v[MANY], other[MANY];
  for (uint64_t n = 0; n < 40; n++) {
    vyre_placement_scratch fresh = {0};
    vyre_arena arena = {0};
    vyre_status st = {0};
    vyre_placement_plan first, again;
    size_t count = make_numbered(v, n);
    CHECK_OK(
        vyre_placement_plan_build(v, count, NULL, &fresh, &arena, &first, &st),
        st);
    (void)plan_with(other, make_numbered(other, 999 - n), NULL);
    again = plan_with(v, count, NULL);
    check_same(&first, &again);
    again = plan_with(v, count, NULL);
    check_same(&first, &again);
    vyre_placement_scratch_deinit(&fresh);
    vyre_arena_deinit(&arena);
  }
}

TEST(group_numbers_matter_only_by_their_order) {
  vyre_interval near[MANY], far[MANY];
  for (uint64_t n = 0; n < 20; n++) {
    vyre_placement_plan plans[2];
    vyre_arena arena = {0};
    vyre_status st = {0};
    size_t count = make_numbered(near, n);
    for (size_t i = 0; i < count; i++) {
      far[i] = near[i];
      far[i].first_group = BIG - (1000 - near[i].first_group) * 999999999999;
      far[i].last_group = BIG - (1000 - near[i].last_group) * 999999999999;
    }
    plans[0] = plan_checked(near, count);
    CHECK_OK(vyre_placement_plan_build(far, count, NULL, &scratch, &arena,
                                       &plans[1], &st),
             st);
    check_same(&plans[0], &plans[1]);
    vyre_arena_deinit(&arena);
  }
}

TEST(a_second_plan_of_the_same_input_allocates_nothing) {
  vyre_interval v[MANY];
  for (uint64_t n = 0; n < 30; n++) {
    test_heap heap = {.left = -1};
    vyre_placement_scratch mine;
    vyre_arena arena;
    vyre_placement_plan plan;
    vyre_status st = {0};
    vyre_placement_scratch_init(&mine, test_heap_allocator(&heap));
    vyre_arena_init(&arena, test_heap_allocator(&heap));
    size_t count = make_numbered(v, n);
    for (int turn = 0; turn < 3; turn++) {
      size_t calls = heap.calls;
      vyre_arena_reset(&arena);
      CHECK_OK(
          vyre_placement_plan_build(v, count, NULL, &mine, &arena, &plan, &st),
          st);
      if (turn > 0) CHECK_U64(heap.calls, calls);
    }
    vyre_arena_deinit(&arena);
    vyre_placement_scratch_deinit(&mine);
    CHECK_U64(heap.live_bytes, 0);
  }
}

/* A plan that uses all methods and leaves a gap. */
static vyre_code plan_once(vyre_allocator allocator, vyre_status *st) {
  vyre_interval v[MANY];
  vyre_placement_scratch mine;
  vyre_arena arena;
  vyre_placement_plan plan;
  vyre_placement_options few = {.heuristic_steps = 20000, .search_nodes = 500};
  vyre_placement_scratch_init(&mine, allocator);
  vyre_arena_init(&arena, allocator);
  size_t count = make_numbered(v, 76);
  vyre_code code =
      vyre_placement_plan_build(v, count, &few, &mine, &arena, &plan, st);
  if (code == VYRE_OK) CHECK(plan.search_nodes > 0);
  if (code != VYRE_OK) CHECK(!plan.offsets && plan.interval_count == 0);
  vyre_arena_deinit(&arena);
  vyre_placement_scratch_deinit(&mine);
  return code;
}

TEST(every_failed_allocation_is_reported_and_leaks_nothing) {
  CHECK(sweep_allocations(plan_once) > 3);
}

TEST(deinit_accepts_an_empty_object) {
  vyre_placement_scratch zeroed = {0};
  vyre_placement_scratch_deinit(NULL);
  vyre_placement_scratch_deinit(&zeroed);
}

/* --- printing --------------------------------------------------------------*/

typedef struct page {
  char text[16384];
  size_t used, refuse_at; /* fails from this byte on; 0: never */
} page;

static bool page_write(void *self, const char *text, size_t length) {
  page *p = self;
  if (p->refuse_at && p->used + length > p->refuse_at) return false;
  if (length >= sizeof p->text - p->used) return false;
  memcpy(p->text + p->used, text, length);
  p->used += length;
  p->text[p->used] = '\0';
  return true;
}

TEST(a_small_plan_prints_exactly_this) {
  const vyre_interval v[] = {{1000, 64, 0, 12}, {4, 4, 3, 3}, {0, 1, 0, 0}};
  static page p;
  vyre_placement_plan plan = plan_checked(v, COUNT(v));
  p = (page){.used = 0};
  CHECK(vyre_placement_plan_print(&plan, v, (vyre_writer){page_write, &p}));
  CHECK_TEXT(p.text,
             "placement\n"
             "  intervals                                           3\n"
             "  placed_bytes                                    1,028 bytes\n"
             "  lower_bound_bytes                               1,028 bytes\n"
             "  gap_bytes                                           0 bytes\n"
             "  optimal                                           yes\n"
             "  method                                        skyline\n"
             "  search_nodes                                        0\n"
             "\n"
             "    interval  first..last  size  offset\n"
             "           0      0..12    1000       0\n"
             "           1      3..3        4    1024\n"
             "           2      0..0        0       0\n");
}

TEST(a_long_list_is_cut_and_the_rest_counted) {
  vyre_interval v[MANY];
  static page p;
  for (size_t i = 0; i < MANY; i++) v[i] = (vyre_interval){1, 1, i, i};
  vyre_placement_plan plan = plan_checked(v, MANY);
  p = (page){.used = 0};
  CHECK(vyre_placement_plan_print(&plan, v, (vyre_writer){page_write, &p}));
  CHECK_HAS(p.text, "          31     31..31       1       0\n");
  CHECK_HAS(p.text, "         ...  (260 more intervals)\n         292 ");
  CHECK_HAS(p.text, "         299    299..299      1       0\n");
}

TEST(an_empty_plan_prints_its_figures_only) {
  static page p;
  vyre_placement_plan plan = plan_with(NULL, 0, NULL);
  p = (page){.used = 0};
  CHECK(vyre_placement_plan_print(&plan, NULL, (vyre_writer){page_write, &p}));
  CHECK(!strstr(p.text, "offset"));
}

TEST(a_writer_that_refuses_ends_the_print) {
  vyre_interval v[MANY];
  static page p;
  vyre_placement_plan plan = plan_checked(v, make_numbered(v, 3));
  for (size_t at = 1; at < 1000; at += 50) {
    p = (page){.refuse_at = at};
    CHECK(!vyre_placement_plan_print(&plan, v, (vyre_writer){page_write, &p}));
    CHECK(p.used <= at);
  }
  CHECK(!vyre_placement_plan_print(&plan, v, (vyre_writer){0}));
}

TEST(memory_is_freed) {
  vyre_placement_scratch_deinit(&scratch);
  vyre_arena_deinit(&results);
  CHECK_U64(vyre_arena_footprint(&scratch.arena), 0);
}

TEST_MAIN(TEST_ENTRY(vectors_by_hand_have_their_optimum),
          TEST_ENTRY(no_intervals_need_no_pointer),
          TEST_ENTRY(a_gap_can_be_proven_optimal),
          TEST_ENTRY(methods_have_names),
          TEST_ENTRY(bad_intervals_are_refused_with_their_numbers),
          TEST_ENTRY(an_interval_that_ends_early_names_both_groups),
          TEST_ENTRY(too_many_intervals_are_refused_unread),
          TEST_ENTRY(missing_pointers_are_named),
          TEST_ENTRY(a_failure_leaves_the_arena_as_it_was),
          TEST_ENTRY(trying_orders_is_as_good_as_trying_all_offsets),
          TEST_ENTRY(small_instances_get_the_optimum_of_exhaustive_search),
          TEST_ENTRY(the_search_alone_finds_the_optimum),
          TEST_ENTRY(
              a_thousand_instances_have_median_gap_0_and_worst_below_5_percent),
          TEST_ENTRY(ten_thousand_intervals_come_near_the_bound),
          TEST_ENTRY(three_hundred_thousand_intervals_do_not_overlap),
          TEST_ENTRY(the_skyline_stands_on_the_highest_of_its_sections),
          TEST_ENTRY(the_sweep_reuses_what_has_ended_and_overlaps_nothing),
          TEST_ENTRY(limits_are_kept),
          TEST_ENTRY(scratch_leaves_no_trace_in_a_plan),
          TEST_ENTRY(group_numbers_matter_only_by_their_order),
          TEST_ENTRY(a_second_plan_of_the_same_input_allocates_nothing),
          TEST_ENTRY(every_failed_allocation_is_reported_and_leaks_nothing),
          TEST_ENTRY(deinit_accepts_an_empty_object),
          TEST_ENTRY(a_small_plan_prints_exactly_this),
          TEST_ENTRY(a_long_list_is_cut_and_the_rest_counted),
          TEST_ENTRY(an_empty_plan_prints_its_figures_only),
          TEST_ENTRY(a_writer_that_refuses_ends_the_print),
          TEST_ENTRY(memory_is_freed))
