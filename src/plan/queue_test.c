/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/queue.h"

#include "support/check.h"
#include "support/text.h"

#define MAX64 UINT64_MAX

static bool same_plan(const vyre_queue_plan *a, const vyre_queue_plan *b) {
  return a->queue_bytes == b->queue_bytes &&
         a->control_bytes == b->control_bytes &&
         a->resident_bytes == b->resident_bytes &&
         a->initial_occupancy_bps == b->initial_occupancy_bps &&
         a->final_only_host_sync == b->final_only_host_sync;
}

TEST(plans_bytes_and_occupancy) {
  static const struct {
    vyre_queue_profile profile;
    vyre_queue_plan want;
  } cases[] = {
      {{256, 1024, 16, 128, 32768, VYRE_HOST_SYNC_FINAL_ONLY},
       {16384, 128, 16512, 2500, true}},
      {{MAX64, MAX64, 1, 0, MAX64, VYRE_HOST_SYNC_FINAL_ONLY},
       {MAX64, 0, MAX64, 10000, true}},
      {{0, 8, 16, 64, 192, VYRE_HOST_SYNC_FINAL_ONLY}, /* exactly the budget */
       {128, 64, 192, 0, true}},
      {{1, 3, 1, 0, 3, VYRE_HOST_SYNC_FINAL_ONLY}, {3, 0, 3, 3333, true}}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_queue_plan plan;
    vyre_status st = {0};
    CHECK_OK(vyre_queue_plan_build(&cases[i].profile, &plan, &st), st);
    CHECK(same_plan(&plan, &cases[i].want));
  }
}

/* Every kind of error, and its precedence: rows are in order of precedence,
 * each with the errors of all rows below it. */
TEST(refuses_in_a_fixed_order) {
  static const struct {
    vyre_queue_profile profile;
    vyre_kind kind;
    const char *field;
  } cases[] = {{{9, 0, 0, MAX64, 0, VYRE_HOST_SYNC_PARTICIPATES},
                VYRE_KIND_ZERO_CAPACITY,
                NULL},
               {{9, 8, 0, MAX64, 0, VYRE_HOST_SYNC_PARTICIPATES},
                VYRE_KIND_ZERO_ENTRY_BYTES,
                NULL},
               {{9, 8, MAX64, MAX64, 0, VYRE_HOST_SYNC_PARTICIPATES},
                VYRE_KIND_INITIAL_ITEMS_EXCEED_CAPACITY,
                NULL},
               {{8, 8, MAX64, MAX64, 0, VYRE_HOST_SYNC_PARTICIPATES},
                VYRE_KIND_HOST_PARTICIPATION_REJECTED,
                NULL},
               {{8, 8, MAX64, MAX64, 0, VYRE_HOST_SYNC_FINAL_ONLY},
                VYRE_KIND_BYTE_COUNT_OVERFLOW,
                "queue bytes"},
               {{8, 8, 1, MAX64, 0, VYRE_HOST_SYNC_FINAL_ONLY},
                VYRE_KIND_BYTE_COUNT_OVERFLOW,
                "resident bytes"},
               {{8, 8, 1, 1, 8, VYRE_HOST_SYNC_FINAL_ONLY},
                VYRE_KIND_OVER_BUDGET,
                NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_queue_plan plan = {.queue_bytes = 77};
    vyre_status st = {0};
    CHECK_FAILS(vyre_queue_plan_build(&cases[i].profile, &plan, &st), st,
                VYRE_PLAN_REJECTED, cases[i].kind);
    CHECK_U64(plan.queue_bytes, 0);
    CHECK(!cases[i].field == !st.field);
    if (st.field) CHECK_TEXT(st.field, cases[i].field);
  }
}

TEST(an_unknown_host_sync_value_is_refused) {
  vyre_queue_profile odd = {1, 8, 16, 64, 1024, (vyre_host_sync)77};
  vyre_queue_plan plan;
  vyre_status st = {0};
  CHECK_FAILS(vyre_queue_plan_build(&odd, &plan, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
}

TEST(refusals_carry_both_numbers) {
  vyre_queue_plan plan;
  vyre_status st = {0};
  vyre_queue_profile full = {9, 8, 16, 64, 1024, VYRE_HOST_SYNC_FINAL_ONLY};
  CHECK_FAILS(vyre_queue_plan_build(&full, &plan, &st), st, VYRE_PLAN_REJECTED,
              VYRE_KIND_INITIAL_ITEMS_EXCEED_CAPACITY);
  CHECK_U64(status_number(&st, "initial_items"), 9);
  CHECK_U64(status_number(&st, "queue_capacity"), 8);
  st = (vyre_status){0};
  vyre_queue_profile large = {1, 8, 16, 64, 128, VYRE_HOST_SYNC_FINAL_ONLY};
  CHECK_FAILS(vyre_queue_plan_build(&large, &plan, &st), st, VYRE_PLAN_REJECTED,
              VYRE_KIND_OVER_BUDGET);
  CHECK_U64(status_number(&st, "required_bytes"), 192);
  CHECK_U64(status_number(&st, "budget_bytes"), 128);
}

TEST(drain_windows_cover_the_capacity) {
  static const struct {
    uint64_t capacity, drain, items, chunks;
    vyre_drain_strategy strategy;
  } cases[] = {
      {65536, 8192, 8192, 8, VYRE_DRAIN_CHUNKED_RESIDENT},
      {65536, 65536, 65536, 1, VYRE_DRAIN_SINGLE_RESIDENT},
      {65536, MAX64, 65536, 1, VYRE_DRAIN_SINGLE_RESIDENT},
      {65537, 65536, 65536, 2, VYRE_DRAIN_CHUNKED_RESIDENT},
      {MAX64, 65536, 65536, 281474976710656u, VYRE_DRAIN_CHUNKED_RESIDENT},
      {MAX64, 1, 1, MAX64, VYRE_DRAIN_CHUNKED_RESIDENT}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_queue_profile profile = {0,     cases[i].capacity,        1, 0,
                                  MAX64, VYRE_HOST_SYNC_FINAL_ONLY};
    vyre_queue_drain_plan plan;
    vyre_status st = {0};
    CHECK_OK(vyre_queue_drain_plan_build(&profile, cases[i].drain, &plan, &st),
             st);
    CHECK_U64(plan.items_per_chunk, cases[i].items);
    CHECK_U64(plan.chunks, cases[i].chunks);
    CHECK(plan.strategy == cases[i].strategy);
    CHECK(plan.final_only_host_sync && plan.queue.final_only_host_sync);
  }
}

TEST(large_queue_drains_in_eight_windows) {
  vyre_queue_profile profile = {4096, 65536,   16,
                                128,  2 << 20, VYRE_HOST_SYNC_FINAL_ONLY};
  vyre_queue_drain_plan plan;
  vyre_status st = {0};
  CHECK_OK(vyre_queue_drain_plan_build(&profile, 8192, &plan, &st), st);
  CHECK_U64(plan.queue.resident_bytes, 1048704);
  CHECK_U64(plan.chunks, 8);
}

TEST(a_drain_window_of_zero_is_refused_before_anything_else) {
  vyre_queue_profile bad = {9, 0, 0, 0, 0, VYRE_HOST_SYNC_PARTICIPATES};
  vyre_queue_drain_plan plan = {.chunks = 5};
  vyre_status st = {0};
  CHECK_FAILS(vyre_queue_drain_plan_build(&bad, 0, &plan, &st), st,
              VYRE_PLAN_REJECTED, VYRE_KIND_ZERO_DRAIN_CHUNK);
  CHECK_U64(plan.chunks, 0);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_queue_drain_plan_build(&bad, 1, &plan, &st), st,
              VYRE_PLAN_REJECTED, VYRE_KIND_ZERO_CAPACITY);
}

TEST(expansion_takes_what_the_budget_holds_but_keeps_the_initial_items) {
  static const struct {
    vyre_queue_expansion_profile profile;
    uint64_t queue_bytes, resident_bytes, capacity;
    uint32_t occupancy;
  } cases[] = {
      {{4, 12, 8, 64, 256, VYRE_HOST_SYNC_FINAL_ONLY}, 128, 192, 16, 2500},
      {{4, 100, 8, 16, 96, VYRE_HOST_SYNC_FINAL_ONLY}, 80, 96, 10, 4000},
      {{8, 100, 16, 64, 192, VYRE_HOST_SYNC_FINAL_ONLY}, 128, 192, 8, 10000}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_queue_expansion_plan plan;
    vyre_status st = {0};
    CHECK_OK(vyre_queue_expansion_plan_build(&cases[i].profile, &plan, &st),
             st);
    CHECK_U64(plan.queue.queue_bytes, cases[i].queue_bytes);
    CHECK_U64(plan.queue.resident_bytes, cases[i].resident_bytes);
    CHECK_U64(plan.queue_capacity, cases[i].capacity);
    CHECK_U64(plan.queue.initial_occupancy_bps, cases[i].occupancy);
    CHECK_U64(plan.desired_capacity, cases[i].profile.initial_items +
                                         cases[i].profile.expansion_items);
  }
}

TEST(expansion_refusals) {
  static const struct {
    vyre_queue_expansion_profile profile;
    vyre_kind kind;
  } cases[] = {
      {{8, 100, 16, 64, 128, VYRE_HOST_SYNC_FINAL_ONLY}, VYRE_KIND_OVER_BUDGET},
      {{8, 1, 16, 640, 128, VYRE_HOST_SYNC_FINAL_ONLY}, VYRE_KIND_OVER_BUDGET},
      {{MAX64, 1, 0, 0, 0, VYRE_HOST_SYNC_FINAL_ONLY},
       VYRE_KIND_BYTE_COUNT_OVERFLOW},
      {{0, 0, 0, 0, 0, VYRE_HOST_SYNC_FINAL_ONLY}, VYRE_KIND_ZERO_CAPACITY},
      {{0, 0, 8, 0, 64, VYRE_HOST_SYNC_FINAL_ONLY}, VYRE_KIND_ZERO_CAPACITY},
      {{1, 0, 0, 0, 0, VYRE_HOST_SYNC_FINAL_ONLY}, VYRE_KIND_ZERO_ENTRY_BYTES},
      {{0, 5, 0, 0, 0, VYRE_HOST_SYNC_FINAL_ONLY}, VYRE_KIND_ZERO_ENTRY_BYTES},
      {{1, 1, 8, 0, 64, VYRE_HOST_SYNC_PARTICIPATES},
       VYRE_KIND_HOST_PARTICIPATION_REJECTED}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_queue_expansion_plan plan = {.queue_capacity = 5};
    vyre_status st = {0};
    CHECK_FAILS(vyre_queue_expansion_plan_build(&cases[i].profile, &plan, &st),
                st, VYRE_PLAN_REJECTED, cases[i].kind);
    CHECK_U64(plan.queue_capacity, 0);
    if (i == 0) {
      CHECK_U64(status_number(&st, "required_bytes"), 192);
      CHECK_U64(status_number(&st, "budget_bytes"), 128);
    }
    if (i == 2) CHECK_TEXT(st.field, "queue expansion capacity");
  }
}

/* The seed's generated profiles, with its generator and its first state. */
TEST(generated_profiles_keep_budget_and_sync) {
  uint64_t state = 0xa4093822299f31d0u;
  for (int i = 0; i < 2048; i++) {
    uint64_t capacity = 1 + lcg_next(&state) % 262144;
    uint64_t entry = 1 + lcg_next(&state) % 256;
    uint64_t initial = lcg_next(&state) % (capacity + 1);
    uint64_t control = lcg_next(&state) % 4096;
    uint64_t resident = capacity * entry + control;
    uint64_t budget = resident + lcg_next(&state) % 8192;
    vyre_queue_profile profile = {initial, capacity, entry,
                                  control, budget,   VYRE_HOST_SYNC_FINAL_ONLY};
    vyre_queue_plan plan;
    vyre_status st = {0};
    CHECK_OK(vyre_queue_plan_build(&profile, &plan, &st), st);
    CHECK_U64(plan.queue_bytes, capacity * entry);
    CHECK_U64(plan.control_bytes, control);
    CHECK_U64(plan.resident_bytes, resident);
    CHECK_U64(plan.initial_occupancy_bps, initial * 10000 / capacity);
    CHECK(plan.final_only_host_sync);

    uint64_t drain = 1 + lcg_next(&state) % capacity;
    vyre_queue_drain_plan windows;
    CHECK_OK(vyre_queue_drain_plan_build(&profile, drain, &windows, &st), st);
    CHECK(same_plan(&windows.queue, &plan));
    CHECK(windows.items_per_chunk <= capacity && windows.chunks >= 1);
    CHECK(windows.chunks * windows.items_per_chunk >= capacity);
    CHECK((windows.chunks - 1) * windows.items_per_chunk < capacity);

    uint64_t expansion = lcg_next(&state) % capacity;
    vyre_queue_expansion_profile wider = {initial,
                                          expansion,
                                          entry,
                                          control,
                                          resident + expansion * entry,
                                          VYRE_HOST_SYNC_FINAL_ONLY};
    vyre_queue_expansion_plan expanded;
    if (initial + expansion == 0) continue; /* nothing to hold */
    CHECK_OK(vyre_queue_expansion_plan_build(&wider, &expanded, &st), st);
    CHECK_U64(expanded.queue_capacity, initial + expansion);
  }
}

TEST(null_arguments_are_a_status) {
  vyre_queue_profile profile = {0};
  vyre_queue_plan plan;
  vyre_queue_drain_plan windows;
  vyre_queue_expansion_plan expanded;
  vyre_status st[6] = {{0}};
  (void)profile;
  CHECK_FAILS(vyre_queue_plan_build(NULL, &plan, &st[0]), st[0],
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_queue_plan_build(&profile, NULL, &st[1]), st[1],
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_queue_drain_plan_build(NULL, 1, &windows, &st[2]), st[2],
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_queue_drain_plan_build(&profile, 1, NULL, &st[3]), st[3],
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_queue_expansion_plan_build(NULL, &expanded, &st[4]), st[4],
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_queue_expansion_plan_build(
                  &(vyre_queue_expansion_profile){0}, NULL, &st[5]),
              st[5], VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
}

TEST(printers_show_every_field) {
  vyre_queue_profile profile = {256, 1024,  16,
                                128, 32768, VYRE_HOST_SYNC_FINAL_ONLY};
  vyre_queue_drain_plan plan;
  vyre_status st = {0};
  CHECK_OK(vyre_queue_drain_plan_build(&profile, 512, &plan, &st), st);
  text_buffer text = {0};
  CHECK(vyre_queue_drain_plan_print(&plan, text_writer(&text)));
  static const char *const parts[] = {"queue_bytes",
                                      "16,384 bytes",
                                      "control_bytes",
                                      "128",
                                      "resident_bytes",
                                      "16,512",
                                      "initial_occupancy_bps",
                                      "2,500",
                                      "chunked_resident_drain",
                                      "items_per_chunk",
                                      "512",
                                      "chunks",
                                      "2 windows",
                                      "final_only_host_sync"};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    CHECK_HAS(text.bytes, parts[i]);
  }
  text = (text_buffer){0};
  CHECK(vyre_queue_plan_print(&plan.queue, text_writer(&text)));
  CHECK_HAS(text.bytes, "16,512");
  text = (text_buffer){0};
  vyre_queue_expansion_plan wide = {plan.queue, 4000, 1024};
  CHECK(vyre_queue_expansion_plan_print(&wide, text_writer(&text)));
  CHECK_HAS(text.bytes, "4,000 items");
  CHECK(!vyre_queue_plan_print(&plan.queue, refusing_writer()));
  CHECK_TEXT(vyre_drain_strategy_name(VYRE_DRAIN_COUNT), "?");
}

TEST_MAIN(
    TEST_ENTRY(plans_bytes_and_occupancy), TEST_ENTRY(refuses_in_a_fixed_order),
    TEST_ENTRY(an_unknown_host_sync_value_is_refused),
    TEST_ENTRY(refusals_carry_both_numbers),
    TEST_ENTRY(drain_windows_cover_the_capacity),
    TEST_ENTRY(large_queue_drains_in_eight_windows),
    TEST_ENTRY(a_drain_window_of_zero_is_refused_before_anything_else),
    TEST_ENTRY(
        expansion_takes_what_the_budget_holds_but_keeps_the_initial_items),
    TEST_ENTRY(expansion_refusals),
    TEST_ENTRY(generated_profiles_keep_budget_and_sync),
    TEST_ENTRY(null_arguments_are_a_status),
    TEST_ENTRY(printers_show_every_field))
