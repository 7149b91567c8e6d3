/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/barrier.h"

#include "support/check.h"
#include "support/text.h"

/* Memory of a test case; end() releases it. */
typedef struct fixture {
  vyre_barrier_scratch scratch;
  vyre_arena arena;
  vyre_barrier_plan plan;
  vyre_status st;
} fixture;

static void end(fixture *f) {
  vyre_barrier_scratch_deinit(&f->scratch);
  vyre_arena_deinit(&f->arena);
}

static vyre_code plan(fixture *f, size_t waves,
                      const vyre_wave_dependency *dependencies, size_t count) {
  vyre_arena_reset(&f->arena);
  f->st = (vyre_status){0};
  return vyre_barrier_plan_build(waves, dependencies, count, &f->scratch,
                                 &f->arena, &f->plan, &f->st);
}

/* Formats groups: "0|1 2|3" for {0}, {1, 2}, {3}. */
static const char *groups_text(const vyre_barrier_plan *p, char *out,
                               size_t size) {
  size_t at = 0;
  out[0] = '\0';
  for (size_t g = 0; g < p->group_count; g++) {
    for (uint32_t i = p->group_offsets[g]; i < p->group_offsets[g + 1]; i++) {
      const char *gap = i > p->group_offsets[g] ? " " : g > 0 ? "|" : "";
      at += (size_t)snprintf(out + at, size - at, "%s%u", gap, p->waves[i]);
    }
  }
  return out;
}

TEST(vectors) {
  static const struct {
    size_t waves, count;
    vyre_wave_dependency dependencies[8];
    const char *groups;
  } cases[] = {
      {0, 0, {{0, 0}}, ""},
      {1, 0, {{0, 0}}, "0"},
      {4, 0, {{0, 0}}, "0 1 2 3"},
      {4, 3, {{0, 1}, {1, 2}, {2, 3}}, "0|1|2|3"},
      {4, 4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, "0|1 2|3"},
      {4,
       4,
       {{0, 2}, {0, 1}, {1, 3}, {2, 3}},
       "0|2 1|3"}, /* in order of discovery */
      {4, 3, {{3, 2}, {2, 1}, {1, 0}}, "3|2|1|0"},
      {3, 2, {{0, 2}, {0, 2}}, "0 1|2"}, /* given twice, counted twice */
      {5, 4, {{4, 0}, {4, 1}, {3, 1}, {3, 0}}, "2 3 4|0 1"},
      {4, 3, {{0, 3}, {1, 3}, {0, 1}}, "0 2|1|3"}};
  fixture f = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_OK(plan(&f, cases[i].waves, cases[i].dependencies, cases[i].count),
             f.st);
    char text[100];
    CHECK_TEXT(groups_text(&f.plan, text, sizeof text), cases[i].groups);
    CHECK_U64(f.plan.wave_count, cases[i].waves);
    CHECK_U64(f.plan.global_barriers,
              f.plan.group_count ? f.plan.group_count - 1 : 0);
  }
  end(&f);
}

/* Errors and their precedence: the first bad dependency, and unknown waves
 * before self-dependencies. */
TEST(bad_dependencies_are_refused) {
  static const struct {
    size_t waves, count;
    vyre_wave_dependency dependencies[6];
    vyre_kind kind;
    const char *name;
    uint64_t value;
  } cases[] = {
      {2, 1, {{0, 2}}, VYRE_KIND_INVALID_WAVE, "after", 2},
      {2, 1, {{2, 0}}, VYRE_KIND_INVALID_WAVE, "before", 2},
      {2, 1, {{UINT64_MAX, 0}}, VYRE_KIND_INVALID_WAVE, "before", UINT64_MAX},
      {2, 1, {{4294967296u, 0}}, VYRE_KIND_INVALID_WAVE, "wave_count", 2},
      {0, 1, {{7, 8}}, VYRE_KIND_INVALID_WAVE, "after", 8},
      {0, 1, {{0, 0}}, VYRE_KIND_INVALID_WAVE, "wave_count", 0},
      {2, 1, {{3, 3}}, VYRE_KIND_INVALID_WAVE, "before", 3},
      {2, 1, {{1, 1}}, VYRE_KIND_SELF_DEPENDENCY, "wave", 1},
      {3, 2, {{2, 2}, {0, 9}}, VYRE_KIND_SELF_DEPENDENCY, "wave", 2},
      {3, 2, {{0, 9}, {2, 2}}, VYRE_KIND_INVALID_WAVE, "after", 9},
      {2, 2, {{0, 1}, {1, 0}}, VYRE_KIND_CYCLE, "unscheduled_waves", 2},
      /* 0 -> 1 -> 2 -> 1 and 2 -> 3: wave 3 waits for the cycle. */
      {4,
       4,
       {{0, 1}, {1, 2}, {2, 1}, {2, 3}},
       VYRE_KIND_CYCLE,
       "unscheduled_waves",
       3},
      {4, 4, {{0, 1}, {1, 2}, {2, 1}, {2, 3}}, VYRE_KIND_CYCLE, "wave", 1},
      {4,
       4,
       {{0, 1}, {1, 2}, {2, 1}, {2, 3}},
       VYRE_KIND_CYCLE,
       "cycle_length",
       2},
      {3, 3, {{2, 0}, {0, 1}, {1, 2}}, VYRE_KIND_CYCLE, "cycle_length", 3}};
  fixture f = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_FAILS(plan(&f, cases[i].waves, cases[i].dependencies, cases[i].count),
                f.st, VYRE_PLAN_REJECTED, cases[i].kind);
    CHECK_U64(status_number(&f.st, cases[i].name), cases[i].value);
    CHECK(!f.plan.waves && !f.plan.group_offsets && f.plan.group_count == 0);
    CHECK_U64(f.arena.used, 0);
  }
  end(&f);
}

/* Counts that exceed 32 bits are rejected before anything is read. */
TEST(too_many_waves_or_dependencies_are_refused) {
  static const struct {
    size_t waves, count;
    const char *field;
  } cases[] = {
      {(size_t)VYRE_MAX_WAVES + 1, 0, "barrier scratch wave offsets"},
      {SIZE_MAX, SIZE_MAX, "barrier scratch wave offsets"},
      {1, (size_t)VYRE_MAX_DEPENDENCIES + 1, "outgoing dependency offsets"}};
  vyre_wave_dependency one = {0, 0};
  fixture f = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_FAILS(plan(&f, cases[i].waves, &one, cases[i].count), f.st,
                VYRE_PLAN_REJECTED, VYRE_KIND_BYTE_COUNT_OVERFLOW);
    CHECK_TEXT(f.st.field, cases[i].field);
  }
  end(&f);
}

/* The seed's 2048 shapes: width x depth of parallel chains. */
TEST(generated_chains_give_one_group_a_layer) {
  fixture f = {0};
  static vyre_wave_dependency dependencies[64 * 32];
  for (uint64_t width = 1; width <= 64; width++) {
    for (uint64_t depth = 1; depth <= 32; depth++) {
      size_t count = 0;
      for (uint64_t wave = 0; wave + width < width * depth; wave++) {
        dependencies[count++] = (vyre_wave_dependency){wave, wave + width};
      }
      CHECK_OK(plan(&f, width * depth, dependencies, count), f.st);
      CHECK_U64(f.plan.group_count, depth);
      CHECK_U64(f.plan.global_barriers, depth - 1);
      for (size_t g = 0; g <= depth; g++) {
        CHECK_U64(f.plan.group_offsets[g], g * width);
      }
    }
  }
  end(&f);
}

TEST(scratch_keeps_its_capacity_for_smaller_plans) {
  static vyre_wave_dependency dependencies[1024];
  for (uint64_t k = 0; k < 1024; k++) {
    dependencies[k] = (vyre_wave_dependency){0, k + 1};
  }
  fixture f = {0};
  CHECK_OK(plan(&f, 1025, dependencies, 1024), f.st);
  CHECK_U64(f.plan.group_count, 2);
  CHECK_U64(f.plan.group_offsets[1], 1);
  CHECK_U64(f.plan.group_offsets[2], 1025);
  size_t waves = vyre_barrier_scratch_wave_capacity(&f.scratch);
  size_t edges = vyre_barrier_scratch_dependency_capacity(&f.scratch);
  CHECK(waves >= 1025 && edges >= 1024);
  vyre_wave_dependency chain[] = {{0, 1}, {1, 2}, {2, 3}};
  CHECK_OK(plan(&f, 4, chain, 3), f.st);
  CHECK_U64(vyre_barrier_scratch_wave_capacity(&f.scratch), waves);
  CHECK_U64(vyre_barrier_scratch_dependency_capacity(&f.scratch), edges);
  end(&f);
}

/* --- against a second, slow planner ----------------------------------------*/

enum { MAX_COUNT = 200 };

/* Computes layers by repeated scans over all dependencies, as simply as
 * possible. A wave is discovered with its last dependency, in the order of
 * the previous layer and then of the dependencies. Returns the number of
 * layers, or 0 for a cycle. */
static size_t slow_layers(size_t waves, const vyre_wave_dependency *deps,
                          size_t count, uint32_t layers[MAX_COUNT][MAX_COUNT],
                          size_t widths[MAX_COUNT]) {
  size_t waiting[MAX_COUNT] = {0}, done = 0, layer = 0;
  for (size_t i = 0; i < count; i++) waiting[deps[i].after]++;
  widths[0] = 0;
  for (size_t w = 0; w < waves; w++) {
    if (waiting[w] == 0) layers[0][widths[0]++] = (uint32_t)w;
  }
  while (widths[layer] > 0) {
    done += widths[layer];
    size_t next = 0;
    for (size_t k = 0; k < widths[layer]; k++) {
      for (size_t i = 0; i < count; i++) {
        if (deps[i].before != layers[layer][k]) continue;
        if (--waiting[deps[i].after] == 0) {
          layers[layer + 1][next++] = (uint32_t)deps[i].after;
        }
      }
    }
    widths[++layer] = next;
  }
  return done == waves ? layer : 0;
}

/* Builds random graphs of every density; some have cycles, some are in wave
 * order, some shuffled. */
static size_t random_graph(uint64_t *state, size_t waves,
                           vyre_wave_dependency *deps) {
  size_t count = 0, wanted = random_below(state, waves * 4 + 1);
  int shape = (int)random_below(state, 4);
  for (size_t i = 0; i < wanted && waves > 1; i++) {
    uint64_t a = random_below(state, waves), b = random_below(state, waves);
    if (a == b) continue;
    bool swap = shape != 3 && a > b; /* shape 3 may have cycles */
    deps[count++] =
        swap ? (vyre_wave_dependency){b, a} : (vyre_wave_dependency){a, b};
  }
  if (shape != 1) return count;
  for (size_t i = 1; i < count; i++) { /* sorted by the later wave */
    vyre_wave_dependency moved = deps[i];
    size_t at = i;
    for (; at > 0 && deps[at - 1].after > moved.after; at--) {
      deps[at] = deps[at - 1];
    }
    deps[at] = moved;
  }
  return count;
}

TEST(random_graphs_agree_with_the_slow_planner) {
  static uint32_t layers[MAX_COUNT][MAX_COUNT];
  static size_t widths[MAX_COUNT];
  static vyre_wave_dependency deps[MAX_COUNT * 4];
  fixture f = {0};
  uint64_t state = 4711;
  int planned = 0, cyclic = 0;
  for (int round = 0; round < 4000; round++) {
    size_t waves = 1 + random_below(&state, round % 10 ? 30 : MAX_COUNT - 1);
    size_t count = random_graph(&state, waves, deps);
    size_t want = slow_layers(waves, deps, count, layers, widths);
    vyre_code code = plan(&f, waves, deps, count);
    if (want == 0) {
      CHECK(code == VYRE_PLAN_REJECTED && f.st.kind == VYRE_KIND_CYCLE);
      cyclic++;
      continue;
    }
    CHECK_OK(code, f.st);
    CHECK_U64(f.plan.group_count, want);
    for (size_t g = 0; g < want; g++) {
      uint32_t from = f.plan.group_offsets[g];
      CHECK_U64(f.plan.group_offsets[g + 1] - from, widths[g]);
      CHECK(memcmp(f.plan.waves + from, layers[g],
                   widths[g] * sizeof(uint32_t)) == 0);
    }
    planned++;
  }
  CHECK(planned > 2000 && cyclic > 200);
  end(&f);
}

/* The reported wave is on a cycle: following dependencies from it leads back
 * to it. */
TEST(the_wave_named_in_a_cycle_is_on_one) {
  static vyre_wave_dependency deps[MAX_COUNT * 4];
  fixture f = {0};
  uint64_t state = 12;
  int seen = 0;
  for (int round = 0; round < 2000; round++) {
    size_t waves = 2 + random_below(&state, 20);
    size_t count = random_graph(&state, waves, deps);
    if (plan(&f, waves, deps, count) == VYRE_OK) continue;
    uint64_t start = status_number(&f.st, "wave");
    bool reached[MAX_COUNT] = {false};
    for (size_t pass = 0; pass <= waves; pass++) {
      for (size_t i = 0; i < count; i++) {
        if (deps[i].before == start || reached[deps[i].before]) {
          reached[deps[i].after] = true;
        }
      }
    }
    CHECK(reached[start]);
    seen++;
  }
  CHECK(seen > 100);
  end(&f);
}

/* Rows longer than the planner copies at once, and rows at the very end of
 * the array of successors. */
TEST(long_rows_are_walked_whole) {
  enum { FAN = 1000 };
  static vyre_wave_dependency deps[3 * FAN];
  fixture f = {0};
  for (size_t fan = 1; fan <= FAN; fan = fan * 2 + 1) {
    size_t count = 0;
    for (uint64_t k = 0; k < fan; k++) {
      deps[count++] = (vyre_wave_dependency){0, 2 + k};
      deps[count++] = (vyre_wave_dependency){1, 2 + k};
      deps[count++] = (vyre_wave_dependency){2 + k, 2 + fan};
    }
    CHECK_OK(plan(&f, fan + 3, deps, count), f.st);
    CHECK_U64(f.plan.group_count, 3);
    CHECK_U64(f.plan.group_offsets[2], fan + 2);
    CHECK_U64(f.plan.waves[fan + 2], fan + 2);
  }
  end(&f);
}

/* --- memory ----------------------------------------------------------------*/

static vyre_code plan_deps(vyre_allocator allocator,
                           const vyre_wave_dependency *deps, vyre_status *st) {
  vyre_barrier_scratch scratch;
  vyre_barrier_scratch_init(&scratch, allocator);
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_barrier_plan got;
  vyre_code code =
      vyre_barrier_plan_build(4, deps, 4, &scratch, &arena, &got, st);
  vyre_barrier_scratch_deinit(&scratch);
  vyre_arena_deinit(&arena);
  return code;
}

static vyre_code plan_ordered(vyre_allocator allocator, vyre_status *st) {
  static const vyre_wave_dependency deps[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  return plan_deps(allocator, deps, st);
}

static vyre_code plan_turned(vyre_allocator allocator, vyre_status *st) {
  static const vyre_wave_dependency deps[] = {{1, 3}, {2, 3}, {0, 1}, {0, 2}};
  return plan_deps(allocator, deps, st);
}

TEST(planning_survives_every_allocation_failure) {
  CHECK_U64(sweep_allocations(plan_ordered), 4);
  CHECK_U64(sweep_allocations(plan_turned), 4);
}

TEST(reservation_failures_name_what_was_reserved) {
  static const char *const fields[] = {"barrier groups", "outgoing offsets",
                                       "indegree", "ready wave layer"};
  for (long n = 0; n < 4; n++) {
    test_heap heap = {.left = n};
    vyre_status st = {0};
    CHECK_FAILS(plan_ordered(test_heap_allocator(&heap), &st), st,
                VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED);
    CHECK_TEXT(st.field, fields[n]);
    CHECK(status_number(&st, "requested") >= 4);
  }
}

/* With many dependencies, the rows are reserved last. */
TEST(reservation_failures_name_the_rows_of_a_dense_graph) {
  vyre_wave_dependency deps[9];
  for (int i = 0; i < 9; i++) deps[i] = (vyre_wave_dependency){0, 1};
  test_heap heap = {.left = 3};
  fixture f = {0};
  vyre_barrier_scratch_init(&f.scratch, test_heap_allocator(&heap));
  vyre_arena_init(&f.arena, test_heap_allocator(&heap));
  CHECK_FAILS(plan(&f, 2, deps, 9), f.st, VYRE_OUT_OF_MEMORY,
              VYRE_KIND_STORAGE_RESERVE_FAILED);
  CHECK_TEXT(f.st.field, "outgoing targets");
  CHECK_U64(status_number(&f.st, "requested"), 9);
  end(&f);
}

/* Graphs that fit the stated capacities need no allocation: in order,
 * reversed, or without dependencies. */
TEST(graphs_within_the_capacities_allocate_nothing) {
  test_heap heap = {.left = -1};
  fixture f = {0};
  vyre_barrier_scratch_init(&f.scratch, test_heap_allocator(&heap));
  vyre_wave_dependency turned[] = {{2, 1}, {1, 0}};
  CHECK_OK(plan(&f, 1000, turned, 2), f.st);
  size_t waves = vyre_barrier_scratch_wave_capacity(&f.scratch);
  size_t edges = vyre_barrier_scratch_dependency_capacity(&f.scratch);
  CHECK(waves >= 1000 && edges >= 2 && edges < 3000);
  static vyre_wave_dependency chain[3000];
  for (uint64_t i = 0; i < edges; i++) {
    chain[i] = (vyre_wave_dependency){i % (waves - 1), waves - 1};
  }
  size_t calls = heap.calls;
  CHECK_OK(plan(&f, waves, chain, edges), f.st);
  chain[0] = (vyre_wave_dependency){waves - 2, 0};
  CHECK_OK(plan(&f, waves, chain, edges), f.st);
  CHECK_OK(plan(&f, waves, NULL, 0), f.st);
  CHECK_U64(heap.calls, calls);
  end(&f);
}

/* A result keeps the memory it needs and returns the rest. */
TEST(results_take_no_more_of_the_arena_than_they_need) {
  static vyre_wave_dependency deps[999];
  for (uint64_t i = 0; i < 999; i++) {
    deps[i] = (vyre_wave_dependency){0, i + 1};
  }
  fixture f = {0};
  CHECK_OK(plan(&f, 1000, deps, 999), f.st);
  uint32_t *next = vyre_arena_alloc(&f.arena, 4, 4);
  CHECK(next >= f.plan.group_offsets + 3 && next < f.plan.group_offsets + 16);
  end(&f);
}

TEST(a_second_plan_of_the_same_shape_allocates_nothing) {
  vyre_wave_dependency deps[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  test_heap heap = {.left = -1};
  fixture f;
  vyre_barrier_scratch_init(&f.scratch, test_heap_allocator(&heap));
  vyre_arena_init(&f.arena, test_heap_allocator(&heap));
  CHECK_OK(plan(&f, 4, deps, 4), f.st);
  size_t calls = heap.calls;
  CHECK_OK(plan(&f, 4, deps, 4), f.st);
  CHECK_U64(heap.calls, calls);
  end(&f);
  CHECK_U64(heap.live_bytes, 0);
  vyre_barrier_scratch_deinit(NULL);
}

TEST(null_arguments_are_a_status) {
  fixture f = {0};
  vyre_status st[4] = {{0}};
  vyre_code codes[4] = {
      vyre_barrier_plan_build(1, NULL, 1, &f.scratch, &f.arena, &f.plan,
                              &st[0]),
      vyre_barrier_plan_build(1, NULL, 0, NULL, &f.arena, &f.plan, &st[1]),
      vyre_barrier_plan_build(1, NULL, 0, &f.scratch, NULL, &f.plan, &st[2]),
      vyre_barrier_plan_build(1, NULL, 0, &f.scratch, &f.arena, NULL, &st[3])};
  for (int i = 0; i < 4; i++) {
    CHECK_FAILS(codes[i], st[i], VYRE_INVALID_ARGUMENT,
                VYRE_KIND_INVALID_ARGUMENT);
  }
  end(&f);
}

TEST(the_printer_lists_groups_and_cuts_long_ones) {
  vyre_wave_dependency deps[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  fixture f = {0};
  CHECK_OK(plan(&f, 4, deps, 4), f.st);
  text_buffer text = {0};
  CHECK(vyre_barrier_plan_print(&f.plan, text_writer(&text)));
  CHECK_HAS(text.bytes, "         1           2  1 2\n");
  CHECK_OK(plan(&f, 100, NULL, 0), f.st);
  text = (text_buffer){0};
  CHECK(vyre_barrier_plan_print(&f.plan, text_writer(&text)));
  CHECK_HAS(text.bytes, "10 11 ... (88 more)\n");
  static vyre_wave_dependency chain[99];
  for (uint64_t i = 0; i < 99; i++) {
    chain[i] = (vyre_wave_dependency){i, i + 1};
  }
  CHECK_OK(plan(&f, 100, chain, 99), f.st);
  text = (text_buffer){0};
  CHECK(vyre_barrier_plan_print(&f.plan, text_writer(&text)));
  CHECK_HAS(text.bytes, "(60 more groups)\n          92");
  CHECK_OK(plan(&f, 41, chain, 40), f.st); /* one line more than shown */
  text = (text_buffer){0};
  CHECK(vyre_barrier_plan_print(&f.plan, text_writer(&text)));
  CHECK(!strstr(text.bytes, "more groups"));
  CHECK_OK(plan(&f, 42, chain, 41), f.st);
  text = (text_buffer){0};
  CHECK(vyre_barrier_plan_print(&f.plan, text_writer(&text)));
  CHECK_HAS(text.bytes, "(2 more groups)");
  CHECK(!vyre_barrier_plan_print(&f.plan, refusing_writer()));
  end(&f);
}

TEST_MAIN(TEST_ENTRY(vectors), TEST_ENTRY(bad_dependencies_are_refused),
          TEST_ENTRY(too_many_waves_or_dependencies_are_refused),
          TEST_ENTRY(generated_chains_give_one_group_a_layer),
          TEST_ENTRY(scratch_keeps_its_capacity_for_smaller_plans),
          TEST_ENTRY(random_graphs_agree_with_the_slow_planner),
          TEST_ENTRY(the_wave_named_in_a_cycle_is_on_one),
          TEST_ENTRY(long_rows_are_walked_whole),
          TEST_ENTRY(planning_survives_every_allocation_failure),
          TEST_ENTRY(reservation_failures_name_what_was_reserved),
          TEST_ENTRY(reservation_failures_name_the_rows_of_a_dense_graph),
          TEST_ENTRY(graphs_within_the_capacities_allocate_nothing),
          TEST_ENTRY(results_take_no_more_of_the_arena_than_they_need),
          TEST_ENTRY(a_second_plan_of_the_same_shape_allocates_nothing),
          TEST_ENTRY(null_arguments_are_a_status),
          TEST_ENTRY(the_printer_lists_groups_and_cuts_long_ones))
