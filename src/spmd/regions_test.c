/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "spmd/regions.h"

#include "lir/lir_testing.h"
#include "support/check.h"

static kit t;
static vyre_arena arena;
static vyre__regions r;

/* Buffers: 0 x (read), 1 y (written), 2 tile (shared), 3 n (uniform). */
static void begin(uint32_t size) {
  kit_begin(&t, "k", size, 1, 1);
  kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  kit_buffer(&t, "tile", VYRE_MEMORY_SHARED, 4, true, 64);
  kit_buffer(&t, "n", VYRE_MEMORY_UNIFORM, 4, false, 1);
}

static void cut(void) {
  vyre_status st = {0};
  kit_end(&t);
  vyre_arena_reset(&arena);
  CHECK_OK(vyre__regions_build(&t.k, t.phases[0], true, &arena, &r, &st), st);
}

/* Prints the structure of a list: "run barrier if(run) loop(if(jump) run /
 * run)". */
static void describe(uint32_t first, char *out, size_t size) {
  static const char *const words[] = {"none", "run",     "if",
                                      "loop", "barrier", "jump"};
  for (uint32_t i = first; i; i = r.regions[i].next) {
    const vyre__region *region = &r.regions[i];
    size_t length = strlen(out);
    snprintf(out + length, size - length, "%s%s", i == first ? "" : " ",
             words[region->kind]);
    if (region->kind != VYRE__REGION_IF && region->kind != VYRE__REGION_LOOP)
      continue;
    strncat(out, "(", size - strlen(out) - 1);
    describe(region->inner, out, size);
    if (region->other) strncat(out, " / ", size - strlen(out) - 1);
    describe(region->other, out, size);
    strncat(out, ")", size - strlen(out) - 1);
  }
}

static const char *shape_of_phase(void) {
  static char out[512];
  out[0] = '\0';
  describe(r.first, out, sizeof out);
  return out;
}

static uint8_t storage_of(vyre__val v) {
  return vyre__inst_info_of(&r, v)->storage;
}

TEST(without_a_barrier_there_is_one_region) {
  begin(64);
  vyre__val i = kit_global(&t, 0);
  vyre__val v = kit_load(&t, 0, i, 0);
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, v, i), 0);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, 1, i, v, 0);
  cut();
  CHECK_TEXT(shape_of_phase(), "run");
  CHECK_U64(r.regions[r.first].subregion_count, 1);
  CHECK_U64(storage_of(v), VYRE__STORAGE_LOCAL);
  CHECK_U64(r.done_storage, VYRE__STORAGE_LOCAL);
}

TEST(values_live_across_a_barrier) {
  begin(64);
  vyre__val i = kit_global(&t, 0), l = kit_local(&t, 0);
  vyre__val v = kit_load(&t, 0, i, 0);
  vyre__val unused = kit_load(&t, 0, l, 0);
  vyre__val n = kit_load(&t, 3, kit_u32(&t, 0), 0);
  vyre__val twice = kit_u(&t, VYRE__LIR_ADD, n, n);
  kit_store(&t, 2, l, v, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  vyre__val other = kit_u(&t, VYRE__LIR_SUB, kit_u32(&t, 63), l);
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, kit_load(&t, 2, other, 0), v);
  kit_store(&t, 1, i, kit_u(&t, VYRE__LIR_MUL, sum, twice), 0);
  cut();
  CHECK_TEXT(shape_of_phase(), "run barrier run");
  CHECK_U64(storage_of(v), VYRE__STORAGE_GROUP);
  CHECK_U64(storage_of(i), VYRE__STORAGE_REMATERIALIZE);
  CHECK_U64(storage_of(n), VYRE__STORAGE_UNIFORM);
  CHECK_U64(storage_of(twice), VYRE__STORAGE_UNIFORM);
  CHECK(!vyre__inst_info_of(&r, unused)->is_needed);
  const vyre__subregion *second = &r.subregions[2];
  CHECK_U64(second->remat_count, 1);
  CHECK_U64(r.remats[second->first_remat], i);
}

/* while (half != 0) { ..; barrier; half >>= 1 } */
TEST(a_loop_with_a_barrier_is_the_workgroups) {
  begin(64);
  uint32_t half = kit_var(&t, "half", VYRE_TYPE_U32);
  uint32_t sum = kit_var(&t, "sum", VYRE_TYPE_U32);
  vyre__val l = kit_local(&t, 0), zero = kit_u32(&t, 0);
  kit_set(&t, half, kit_u32(&t, 32));
  kit_set(&t, sum, l);
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val h = kit_get(&t, half);
  vyre__val over = kit_b(&t, VYRE__LIR_EQ, h, zero);
  kit_if(&t, over, 0);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_mark(&t, VYRE__LIR_END);
  vyre__val s = kit_get(&t, sum);
  kit_set(&t, sum, kit_u(&t, VYRE__LIR_ADD, s, h));
  kit_store(&t, 2, l, s, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_set(&t, half, kit_u(&t, VYRE__LIR_SHR_U, h, kit_u32(&t, 1)));
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, 1, l, kit_load(&t, 2, l, 0), 0);
  cut();
  CHECK_TEXT(shape_of_phase(), "run loop(run if(jump) run barrier / run) run");
  CHECK_U64(r.var_storage[half], VYRE__STORAGE_UNIFORM);
  CHECK_U64(storage_of(over), VYRE__STORAGE_UNIFORM);
  CHECK(!r.var_needed[sum] || r.var_storage[sum] == VYRE__STORAGE_GROUP);
  const vyre__region *loop = &r.regions[r.regions[r.first].next];
  CHECK(r.regions[loop->inner].is_empty); /* all of it is workgroup code */
  CHECK(r.regions[loop->other].is_empty);
}

TEST(unknown_conditions_are_broadcast) {
  begin(64);
  vyre__val l = kit_local(&t, 0);
  vyre__val v = kit_load(&t, 1, l, 0);
  vyre__val yes = kit_b(&t, VYRE__LIR_NE, v, kit_u32(&t, 5));
  kit_if(&t, yes, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, 1, l, l, 0);
  cut();
  CHECK_TEXT(shape_of_phase(), "run if(barrier) run");
  CHECK_U64(storage_of(yes), VYRE__STORAGE_BROADCAST);
}

/* loop { barrier; if (mine) continue; store } : only some invocations
 * continue. */
TEST(invocations_that_continue_are_marked) {
  begin(64);
  uint32_t round = kit_var(&t, "round", VYRE_TYPE_U32);
  vyre__val l = kit_local(&t, 0), four = kit_u32(&t, 4);
  kit_set(&t, round, kit_u32(&t, 0));
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val at = kit_get(&t, round);
  kit_if(&t, kit_b(&t, VYRE__LIR_LE_U, four, at), 0);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_mark(&t, VYRE__LIR_END);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, at, kit_u32(&t, 1)), 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, l, at), 0);
  uint32_t jump = kit_mark(&t, VYRE__LIR_CONTINUE);
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, 1, l, at, 0);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_set(&t, round, kit_u(&t, VYRE__LIR_ADD, at, kit_u32(&t, 1)));
  kit_mark(&t, VYRE__LIR_END);
  cut();
  CHECK_TEXT(shape_of_phase(),
             "run loop(run if(jump) run if(barrier run) run / run)");
  CHECK(vyre__inst_info_of(&r, jump)->sets_done);
  CHECK_U64(r.done_storage, VYRE__STORAGE_GROUP);
  CHECK_U64(r.var_storage[round], VYRE__STORAGE_UNIFORM);
  for (uint32_t i = 1; i < r.region_count; i++) {
    if (r.regions[i].kind == VYRE__REGION_LOOP) CHECK(r.regions[i].clears_done);
  }
}

TEST(rare_ifs_are_cut_out) {
  begin(256);
  uint32_t result = kit_var(&t, "result", VYRE_TYPE_U32);
  vyre__val i = kit_global(&t, 0);
  vyre__val len = kit_op(&t, VYRE__LIR_LEN, VYRE_TYPE_U32, 1, 0, 0, 0);
  vyre__val inside = kit_b(&t, VYRE__LIR_LT_U, i, len);
  kit_if(&t, inside, 0);
  vyre__val v = kit_load(&t, 0, i, 0);
  kit_set(&t, result, v);
  vyre__val big = kit_b(&t, VYRE__LIR_LT_U, len, v);
  uint32_t rare = kit_if(&t, big, VYRE__HINT_RARE);
  kit_set(&t, result, len);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, 1, i, kit_get(&t, result), 0);
  kit_mark(&t, VYRE__LIR_END);
  cut();
  CHECK_TEXT(shape_of_phase(), "run");
  CHECK_U64(r.regions[r.first].subregion_count, 3);
  CHECK(!r.subregions[1].is_rare && r.subregions[2].is_rare &&
        !r.subregions[3].is_rare);
  CHECK_U64(r.subregions[2].begin, rare);
  CHECK_U64(storage_of(big), VYRE__STORAGE_ARRAY);
  CHECK_U64(storage_of(inside), VYRE__STORAGE_REMATERIALIZE);
  CHECK_U64(storage_of(v), VYRE__STORAGE_LOCAL);
  CHECK_U64(r.var_storage[result], VYRE__STORAGE_ARRAY);
}

TEST(an_exit_before_a_cut_is_marked) {
  begin(256);
  vyre__val i = kit_global(&t, 0);
  vyre__val v = kit_load(&t, 0, i, 0);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, v, i), 0);
  uint32_t exit = kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, v, i), VYRE__HINT_RARE);
  kit_store(&t, 1, i, v, 0);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, 1, i, i, 0);
  cut();
  CHECK(vyre__inst_info_of(&r, exit)->sets_done);
  CHECK_U64(r.done_storage, VYRE__STORAGE_ARRAY);
  CHECK(!r.subregions[1].tests_done && r.subregions[2].tests_done &&
        r.subregions[3].tests_done);
}

/* loop { if (no fuel) { out_of_fuel; exit }; barrier } : not a workgroup
 * jump. */
TEST(out_of_fuel_ends_its_block) {
  begin(64);
  uint32_t left = kit_var(&t, "left", VYRE_TYPE_U32);
  vyre__val l = kit_local(&t, 0);
  kit_set(&t, left, kit_load(&t, 0, l, 0));
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val have = kit_get(&t, left);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, have, l), 0);
  kit_mark(&t, VYRE__LIR_OUT_OF_FUEL);
  uint32_t exit = kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_set(&t, left, kit_u(&t, VYRE__LIR_SUB, have, kit_u32(&t, 1)));
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_mark(&t, VYRE__LIR_END);
  cut();
  CHECK_TEXT(shape_of_phase(), "run loop(run barrier)");
  CHECK(!vyre__inst_info_of(&r, exit)->is_reached);
  CHECK_U64(r.var_storage[left], VYRE__STORAGE_GROUP);
}

TEST(markers_must_match) {
  begin(64);
  kit_if(&t, kit_const(&t, VYRE_TYPE_BOOL, 1), 0);
  kit_end(&t);
  vyre_status st = {0};
  CHECK_FAILS(vyre__regions_build(&t.k, t.phases[0], true, &arena, &r, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
}

static vyre_code sweep(vyre_allocator allocator, vyre_status *st) {
  vyre_arena own;
  vyre_arena_init(&own, allocator);
  vyre_code code = vyre__regions_build(&t.k, t.phases[0], true, &own, &r, st);
  vyre_arena_deinit(&own);
  return code;
}

TEST(reports_out_of_memory) {
  begin(64);
  vyre__val i = kit_global(&t, 0);
  kit_store(&t, 1, i, i, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_store(&t, 1, i, i, 0);
  kit_end(&t);
  CHECK(sweep_allocations(sweep) > 0);
}

/* Must be last: frees the memory. */
TEST(frees_memory) {
  vyre_arena_deinit(&arena);
}

TEST_MAIN(TEST_ENTRY(without_a_barrier_there_is_one_region),
          TEST_ENTRY(values_live_across_a_barrier),
          TEST_ENTRY(a_loop_with_a_barrier_is_the_workgroups),
          TEST_ENTRY(unknown_conditions_are_broadcast),
          TEST_ENTRY(invocations_that_continue_are_marked),
          TEST_ENTRY(rare_ifs_are_cut_out),
          TEST_ENTRY(an_exit_before_a_cut_is_marked),
          TEST_ENTRY(out_of_fuel_ends_its_block),
          TEST_ENTRY(markers_must_match), TEST_ENTRY(reports_out_of_memory),
          TEST_ENTRY(frees_memory))
