/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "vyre/version.h"

#include "base/bps.h"
#include "base/checked_math.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/sort.h"
#include "base/status.h"
#include "base/utf8.h"
#include "support/check.h"

#define MAX64 UINT64_MAX

/* --- status ----------------------------------------------------------------*/

static vyre_code fail_with_numbers(vyre_status *st) {
  return VYRE_FAIL_WITH(st, VYRE_PLAN_REJECTED, VYRE_KIND_OVER_BUDGET, "field",
                        VYRE_NUMBERS({"a", 1}, {"b", MAX64}), "do this",
                        "%d of %s", 7, "them");
}

TEST(status_holds_code_kind_field_numbers_message_and_fix) {
  vyre_status st = {0};
  CHECK(fail_with_numbers(&st) == VYRE_PLAN_REJECTED);
  CHECK(st.code == VYRE_PLAN_REJECTED && st.kind == VYRE_KIND_OVER_BUDGET);
  CHECK_TEXT(st.field, "field");
  CHECK_TEXT(st.message, "7 of them");
  CHECK_TEXT(st.fix, "do this");
  CHECK_U64(st.number_count, 2);
  CHECK_U64(status_number(&st, "a"), 1);
  CHECK_U64(status_number(&st, "b"), MAX64);
  CHECK(st.file && st.line > 0);
}

TEST(status_keeps_the_first_failure) {
  vyre_status st = {0};
  (void)fail_with_numbers(&st);
  CHECK(vyre__no_memory(&st, "x", "y", 3) == VYRE_OUT_OF_MEMORY);
  CHECK(st.code == VYRE_PLAN_REJECTED && st.kind == VYRE_KIND_OVER_BUDGET);
  CHECK_TEXT(st.message, "7 of them");
  CHECK_TEXT(st.field, "field");
  CHECK_U64(st.number_count, 2);
}

TEST(status_may_be_null) {
  CHECK(fail_with_numbers(NULL) == VYRE_PLAN_REJECTED);
  uint64_t value = 5;
  CHECK(!vyre_status_number_get(NULL, "a", &value));
  CHECK_U64(value, 5);
}

TEST(a_missing_status_number_leaves_the_value) {
  vyre_status st = {0};
  (void)fail_with_numbers(&st);
  uint64_t value = 5;
  CHECK(!vyre_status_number_get(&st, "c", &value));
  CHECK_U64(value, 5);
}

TEST(status_text_that_is_too_long_says_that_it_was_cut) {
  char text[1000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  vyre_status st = {0};
  CHECK(VYRE_FAIL(&st, VYRE_UNKNOWN, VYRE_KIND_NONE, "f", "%s", text) ==
        VYRE_UNKNOWN);
  CHECK_U64(strlen(st.message), sizeof st.message - 1);
  CHECK_TEXT(st.message + sizeof st.message - 5, "x...");
}

TEST(codes_and_kinds_have_names_and_published_numbers) {
  static const struct {
    vyre_code code;
    int number;
    const char *name;
  } codes[] = {{VYRE_OK, 0, "ok"},
               {VYRE_DEVICE_OUT_OF_MEMORY, 1001, "device_out_of_memory"},
               {VYRE_UNSUPPORTED_FEATURE, 1002, "unsupported_feature"},
               {VYRE_KERNEL_COMPILE_FAILED, 1004, "kernel_compile_failed"},
               {VYRE_DISPATCH_FAILED, 1005, "dispatch_failed"},
               {VYRE_INVALID_PROGRAM, 1006, "invalid_program"},
               {VYRE_COOPERATIVE_RESIDENCY_EXCEEDED, 1007,
                "cooperative_residency_exceeded"},
               {VYRE_DEVICE_LOST, 1008, "device_lost"},
               {VYRE_PLAN_REJECTED, 1101, "plan_rejected"},
               {VYRE_OUT_OF_MEMORY, 1102, "out_of_memory"},
               {VYRE_INVALID_ARGUMENT, 1103, "invalid_argument"},
               {VYRE_NOT_RUN, 1104, "not_run"},
               {VYRE_UNKNOWN, 1999, "unknown"}};
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    CHECK_U64(codes[i].code, codes[i].number);
    CHECK_TEXT(vyre_code_name(codes[i].code), codes[i].name);
  }
  CHECK_TEXT(vyre_code_name((vyre_code)5), "?");
  CHECK_TEXT(vyre_code_name((vyre_code)1003), "?");
  CHECK_TEXT(vyre_kind_name(VYRE_KIND_CYCLE), "cycle");
  CHECK_TEXT(vyre_kind_name((vyre_kind)999), "?");
}

TEST(version_agrees_with_its_macros) {
  CHECK_U64(vyre_version(), VYRE_VERSION_MAJOR * 1000000u +
                                VYRE_VERSION_MINOR * 1000u +
                                VYRE_VERSION_PATCH);
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", VYRE_VERSION_MAJOR,
           VYRE_VERSION_MINOR, VYRE_VERSION_PATCH);
  CHECK_TEXT(vyre_version_string(), text);
  CHECK_TEXT(VYRE_VERSION_STRING, text);
}

/* --- arithmetic ------------------------------------------------------------*/

/* Limits, their neighbours, and primes in between. */
static const uint64_t edges[] = {0,           1,
                                 2,           3,
                                 7,           255,
                                 256,         65535,
                                 65536,       4294967295u,
                                 4294967296u, 6074000999u,
                                 MAX64 / 2,   MAX64 / 2 + 1,
                                 MAX64 - 1,   MAX64};
enum { EDGES = sizeof edges / sizeof edges[0] };

TEST(checked_add_and_mul_agree_with_wide_arithmetic) {
  for (int i = 0; i < EDGES; i++) {
    for (int j = 0; j < EDGES; j++) {
      uint64_t a = edges[i], b = edges[j], got = 42;
      vyre__u128 sum = (vyre__u128)a + b, product = (vyre__u128)a * b;
      bool fits = vyre__add_u64(a, b, &got);
      CHECK(fits == (sum <= MAX64));
      CHECK_U64(got, fits ? (uint64_t)sum : 42);
      got = 42;
      fits = vyre__mul_u64(a, b, &got);
      CHECK(fits == (product <= MAX64));
      CHECK_U64(got, fits ? (uint64_t)product : 42);
    }
  }
}

TEST(checked_ceil_div_and_align_up_agree_with_wide_arithmetic) {
  for (int i = 0; i < EDGES; i++) {
    for (int j = 0; j < EDGES; j++) {
      uint64_t value = edges[i], by = edges[j], got = 42;
      vyre__u128 up = by ? ((vyre__u128)value + by - 1) / by : 0;
      CHECK(vyre__ceil_div_u64(value, by, &got) == (by != 0));
      CHECK_U64(got, by ? (uint64_t)up : 42);
      got = 42;
      bool fits = by != 0 && up * by <= MAX64;
      CHECK(vyre__align_up_u64(value, by, &got) == fits);
      CHECK_U64(got, fits ? (uint64_t)(up * by) : 42);
    }
  }
}

TEST(ceil_div_vectors) {
  uint64_t got;
  CHECK(vyre__ceil_div_u64(65537, 65536, &got) && got == 2);
  CHECK(vyre__ceil_div_u64(MAX64, 65536, &got) && got == 281474976710656u);
  CHECK(vyre__ceil_div_u64(0, 5, &got) && got == 0);
  CHECK(!vyre__ceil_div_u64(5, 0, &got));
}

TEST(powers_of_two_are_recognised) {
  CHECK(!vyre__is_power_of_two(0));
  for (int bit = 0; bit < 64; bit++) {
    uint64_t power = (uint64_t)1 << bit;
    CHECK(vyre__is_power_of_two(power));
    if (power > 2) CHECK(!vyre__is_power_of_two(power - 1));
    if (power > 1) CHECK(!vyre__is_power_of_two(power + 1));
  }
}

TEST(basis_point_vectors) {
  CHECK_U64(vyre__ratio_bps(1, 4, 0), 2500);
  CHECK_U64(vyre__ratio_bps(MAX64, MAX64 / 2, 0), 20000);
  CHECK_U64(vyre__ratio_bps(MAX64, 1, 0), UINT32_MAX);
  CHECK_U64(vyre__ratio_bps_u64(3, 2, 0), 15000);
  CHECK_U64(vyre__ratio_bps(5, 0, 7), 7);
  CHECK_U64(vyre__ratio_bps_u64(MAX64, 1, 0), MAX64);
  CHECK_U64(vyre__compose_bps(15000, 2500), 3750);
  CHECK_U64(vyre__compose_bps(UINT32_MAX, UINT32_MAX), UINT32_MAX);
  CHECK_U64(vyre__scale_bps_round(10, 40000), 40);
  CHECK_U64(vyre__scale_bps_round(1, 5000), 1);
  CHECK_U64(vyre__scale_bps_round(1, 4999), 0);
  CHECK_U64(vyre__scale_bps_round(MAX64, MAX64), MAX64);
  CHECK_U64(vyre__scale_bps_floor(1, 1, 1), 1);
  CHECK_U64(vyre__scale_bps_floor(MAX64, 20000, 0), MAX64);
}

/* --- memory ----------------------------------------------------------------*/

TEST(arena_gives_aligned_memory_that_does_not_overlap) {
  enum { MAX_COUNT = 300 };
  static struct {
    unsigned char *start;
    size_t size;
  } taken[MAX_COUNT];
  int count = 0;
  vyre_arena arena = {0};
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (size_t size = 0; size < 5000; size = size * 3 + 1) {
      unsigned char *got = vyre_arena_alloc(&arena, size, alignment);
      CHECK(got && (uintptr_t)got % alignment == 0);
      memset(got, count & 0xFF, size);
      taken[count].start = got;
      taken[count++].size = size;
    }
  }
  for (int i = 0; i < count; i++) { /* no block overlaps another */
    for (size_t k = 0; k < taken[i].size; k++) {
      CHECK(taken[i].start[k] == (i & 0xFF));
    }
  }
  vyre_arena_deinit(&arena);
}

TEST(large_aligned_allocations_get_their_own_block) {
  test_heap heap = {.left = -1};
  vyre_arena arena;
  vyre_arena_init(&arena, test_heap_allocator(&heap));
  for (int i = 1; i <= 3; i++) {
    void *got = vyre_arena_alloc(&arena, 100000, 4096);
    CHECK(got && (uintptr_t)got % 4096 == 0);
  }
  CHECK(heap.calls <= 3);
  size_t calls = heap.calls;
  for (int i = 0; i < 2000; i++) CHECK(vyre_arena_alloc(&arena, 1000, 0));
  CHECK(heap.calls <= calls + 6); /* blocks grow: few calls for 2 MB */
  vyre_arena_deinit(&arena);
}

TEST(a_full_arena_stays_unchanged) {
  test_heap heap = {.left = 2};
  vyre_arena arena;
  vyre_arena_init(&arena, test_heap_allocator(&heap));
  CHECK(vyre_arena_alloc(&arena, 100, 0));
  CHECK(vyre_arena_alloc(&arena, 9000, 0));
  vyre_arena_reset(&arena);
  CHECK(vyre_arena_alloc(&arena, 100, 0));
  vyre_arena before = arena;
  CHECK(!vyre_arena_alloc(&arena, 50000, 0)); /* after the kept block */
  CHECK(arena.current == before.current && arena.used == before.used);
  vyre_arena_deinit(&arena);
  CHECK_U64(heap.live_bytes, 0);
}

TEST(arena_refuses_impossible_sizes) {
  vyre_arena arena = {0};
  CHECK(!vyre_arena_alloc(&arena, SIZE_MAX, 0));
  CHECK(!vyre_arena_alloc(&arena, SIZE_MAX - 64, 16));
  CHECK(!vyre_arena_alloc(&arena, 1, 3));
  CHECK(!vyre_arena_alloc(&arena, 1, 8192));
  CHECK(!vyre__arena_array(&arena, SIZE_MAX / 2, 4));
  CHECK(vyre_arena_alloc(&arena, 1, 0));
  vyre_arena_deinit(&arena);
}

TEST(arena_that_was_reset_gives_the_same_memory_without_allocating) {
  test_heap heap = {.left = -1};
  vyre_arena arena;
  vyre_arena_init(&arena, test_heap_allocator(&heap));
  void *first[40];
  for (int round = 0; round < 3; round++) {
    size_t calls = heap.calls;
    for (int i = 0; i < 40; i++) {
      void *got = vyre_arena_alloc(&arena, (size_t)(i * 397) % 9000, 16);
      CHECK(got);
      if (round == 0) first[i] = got;
      CHECK(got == first[i]);
    }
    if (round > 0) CHECK_U64(heap.calls, calls);
    vyre_arena_reset(&arena);
  }
  CHECK_U64(vyre_arena_footprint(&arena), heap.live_bytes);
  vyre_arena_deinit(&arena);
  CHECK_U64(heap.live_bytes, 0);
  CHECK(vyre_arena_alloc(&arena, 10, 0)); /* usable again */
  vyre_arena_deinit(&arena);
  vyre_arena_deinit(NULL);
}

TEST(arena_rewinds_to_a_mark_and_trims_its_newest_array) {
  vyre_arena arena = {0};
  CHECK(vyre_arena_alloc(&arena, 100, 0));
  vyre__arena_mark mark = vyre__arena_here(&arena);
  void *small = vyre_arena_alloc(&arena, 10, 0);
  CHECK(vyre_arena_alloc(&arena, 100000, 0));
  size_t footprint = vyre_arena_footprint(&arena);
  vyre__arena_rewind(&arena, mark);
  CHECK(vyre_arena_alloc(&arena, 10, 0) == small);
  CHECK(vyre_arena_alloc(&arena, 100000, 0));
  CHECK_U64(vyre_arena_footprint(&arena), footprint);
  vyre__arena_rewind(&arena, mark);
  uint32_t *array = vyre__arena_array(&arena, 100, sizeof *array);
  size_t used = arena.used;
  vyre__arena_trim(&arena, array, 100, 40, sizeof *array);
  CHECK_U64(used - arena.used, 60 * sizeof *array);
  vyre_arena_deinit(&arena);
}

static vyre_code fill_arena(vyre_allocator allocator, vyre_status *st) {
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_code code = VYRE_OK;
  for (int i = 0; i < 20 && code == VYRE_OK; i++) {
    if (!vyre_arena_alloc(&arena, 3000, 0)) {
      code = vyre__no_memory(st, "test", "blocks", 3000);
    }
  }
  vyre_arena_deinit(&arena);
  return code;
}

TEST(arena_survives_every_allocation_failure) {
  CHECK(sweep_allocations(fill_arena) > 2);
}

TEST(reserve_keeps_contents_and_never_shrinks) {
  uint32_t *array = NULL;
  size_t capacity = 0;
  vyre_allocator heap = vyre_allocator_heap();
  for (size_t i = 0; i < 1000; i++) {
    CHECK(vyre__reserve(heap, &array, &capacity, i + 1, 4, false));
    array[i] = (uint32_t)i;
  }
  for (uint32_t i = 0; i < 1000; i++) CHECK(array[i] == i);
  size_t grown = capacity;
  CHECK(vyre__reserve(heap, &array, &capacity, 5, 4, true));
  CHECK_U64(capacity, grown);
  CHECK(!vyre__reserve(heap, &array, &capacity, SIZE_MAX / 2, 4, true));
  CHECK_U64(capacity, grown);
  vyre__reserve_free(heap, &array, &capacity, 4);
  CHECK(!array && capacity == 0);
  vyre__reserve_free(heap, &array, &capacity, 4); /* nothing left to free */
}

/* --- hash, sort, text, clock -----------------------------------------------*/

TEST(hash_of_a_known_stream_matches_xxh3) {
  /* XXH3-128 of the 11 bytes 03 00 00 00 00 00 00 00 'a' 'b' 'c', from the
   * xxhsum command: a stream is its domain with the length first. */
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "abc");
  char text[VYRE_HASH128_TEXT];
  vyre_hash128_text(vyre__hash_end(&hasher), text);
  CHECK_TEXT(text, "45bcdc88efffd44520b986a5e7fe1438");
}

TEST(hash_tells_apart_streams_that_differ_in_split_order_or_domain) {
  vyre_hash128 seen[4];
  static const char *const streams[4][3] = {
      {"d", "ab", "c"}, {"d", "a", "bc"}, {"d", "c", "ab"}, {"e", "ab", "c"}};
  for (int i = 0; i < 4; i++) {
    vyre__hasher hasher;
    vyre__hash_begin(&hasher, streams[i][0]);
    vyre__hash_text(&hasher, streams[i][1]);
    vyre__hash_text(&hasher, streams[i][2]);
    seen[i] = vyre__hash_end(&hasher);
    for (int j = 0; j < i; j++) {
      CHECK(seen[i].high != seen[j].high || seen[i].low != seen[j].low);
    }
  }
}

TEST(sort_orders_by_key_then_tie_at_every_length) {
  vyre__sort_item items[200];
  uint64_t state = 7;
  for (size_t count = 0; count <= 200; count++) {
    for (size_t i = 0; i < count; i++) {
      items[i] = (vyre__sort_item){random_below(&state, 20), count - i};
    }
    vyre__sort(items, count);
    for (size_t i = 1; i < count; i++) {
      CHECK(items[i - 1].key < items[i].key ||
            (items[i - 1].key == items[i].key &&
             items[i - 1].tie < items[i].tie));
    }
  }
}

TEST(utf8_names_are_accepted_and_everything_else_refused) {
  static const struct {
    const char *text;
    bool good;
  } cases[] = {{"", true},
               {"a b~", true},
               {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", true},
               {"\x1F", false},
               {"\x7F", false},
               {"\xC2\x85", false},         /* C1 control */
               {"\x80", false},             /* continuation byte alone */
               {"\xC3", false},             /* lead byte alone */
               {"\xC0\xAF", false},         /* not the shortest form */
               {"\xE0\x80\x80", false},     /* not the shortest form */
               {"\xED\xA0\x80", false},     /* a surrogate */
               {"\xF4\x90\x80\x80", false}, /* above U+10FFFF */
               {"\xE2\x80\xAE", false},     /* right-to-left override */
               {"\xE2\x81\xA6", false},     /* isolates a direction */
               {"\xE2\x81\xA9", false},     /* and ends it */
               {"\xE2\x81\xAA", true},
               {"\xEF\xBB\xBF", false}, /* a byte order mark */
               {"\xF5\x80\x80\x80", false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK(vyre__utf8_printable(cases[i].text, strlen(cases[i].text)) ==
          cases[i].good);
  }
  CHECK(!vyre__utf8_printable("a\0b", 3));
}

TEST(names_in_messages_are_cut_between_characters) {
  char out[VYRE__NAME_TEXT], longer[200] = "";
  CHECK_TEXT(vyre__name("short", out), "short");
  CHECK_TEXT(vyre__name(NULL, out), "");
  CHECK_TEXT(vyre__name("a\x1b[31m\xC3", out), "a?[31m?");
  for (int i = 0; i < 64; i++) longer[i] = 'n';
  CHECK_TEXT(vyre__name(longer, out), longer); /* 64 bytes: unchanged */
  longer[64] = 'n';
  vyre__name(longer, out);
  CHECK_U64(strlen(out), 67);
  CHECK_TEXT(out + 63, "n...");
  memcpy(longer + 63, "\xC3\xA9z", 4); /* a character across the limit */
  vyre__name(longer, out);
  CHECK_U64(strlen(out), 66);
  CHECK_TEXT(out + 62, "n...");
}

TEST(figures_have_separators) {
  char buffer[VYRE__FIGURE_TEXT];
  CHECK_TEXT(vyre__figure(0, buffer), "0");
  CHECK_TEXT(vyre__figure(999, buffer), "999");
  CHECK_TEXT(vyre__figure(1000, buffer), "1,000");
  CHECK_TEXT(vyre__figure(MAX64, buffer), "18,446,744,073,709,551,615");
}

static bool take_two(void *self, const char *text, size_t length) {
  (void)text;
  (void)length;
  return ++*(int *)self <= 2;
}

TEST(printer_stops_at_the_first_refusal) {
  int writes = 0;
  vyre__printer out = vyre__printer_make((vyre_writer){take_two, &writes});
  for (int i = 0; i < 10; i++) vyre__print(&out, "x");
  CHECK(!out.ok);
  CHECK_U64(writes, 3);
  CHECK(!vyre__printer_make((vyre_writer){0}).ok);
}

TEST(clock_does_not_go_back) {
  uint64_t last = vyre__clock_ns();
  CHECK(last > 0);
  for (int i = 0; i < 10000; i++) {
    uint64_t now = vyre__clock_ns();
    CHECK(now >= last);
    last = now;
  }
}

TEST(durations_use_the_largest_unit) {
  static const struct {
    uint64_t ns;
    const char *text;
  } cases[] = {{0, "0 ns"},
               {1, "1 ns"},
               {999, "999 ns"},
               {1000, "1 us"},
               {1500, "1.5 us"},
               {50000000, "50 ms"},
               {1234567, "1.234 ms"},
               {1050000, "1.05 ms"},
               {2000000000, "2 s"},
               {999999999, "999.999 ms"},
               {1001000000, "1.001 s"},
               {90000000000, "90 s"},
               {UINT64_MAX, "18446744073.709 s"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[VYRE__DURATION_TEXT];
    CHECK_TEXT(vyre__duration(cases[i].ns, text), cases[i].text);
  }
}

TEST_MAIN(
    TEST_ENTRY(durations_use_the_largest_unit),

    TEST_ENTRY(status_holds_code_kind_field_numbers_message_and_fix),
    TEST_ENTRY(status_keeps_the_first_failure), TEST_ENTRY(status_may_be_null),
    TEST_ENTRY(a_missing_status_number_leaves_the_value),
    TEST_ENTRY(status_text_that_is_too_long_says_that_it_was_cut),
    TEST_ENTRY(codes_and_kinds_have_names_and_published_numbers),
    TEST_ENTRY(version_agrees_with_its_macros),
    TEST_ENTRY(checked_add_and_mul_agree_with_wide_arithmetic),
    TEST_ENTRY(checked_ceil_div_and_align_up_agree_with_wide_arithmetic),
    TEST_ENTRY(ceil_div_vectors), TEST_ENTRY(powers_of_two_are_recognised),
    TEST_ENTRY(basis_point_vectors),
    TEST_ENTRY(arena_gives_aligned_memory_that_does_not_overlap),
    TEST_ENTRY(large_aligned_allocations_get_their_own_block),
    TEST_ENTRY(a_full_arena_stays_unchanged),
    TEST_ENTRY(arena_refuses_impossible_sizes),
    TEST_ENTRY(arena_that_was_reset_gives_the_same_memory_without_allocating),
    TEST_ENTRY(arena_rewinds_to_a_mark_and_trims_its_newest_array),
    TEST_ENTRY(arena_survives_every_allocation_failure),
    TEST_ENTRY(reserve_keeps_contents_and_never_shrinks),
    TEST_ENTRY(hash_of_a_known_stream_matches_xxh3),
    TEST_ENTRY(hash_tells_apart_streams_that_differ_in_split_order_or_domain),
    TEST_ENTRY(sort_orders_by_key_then_tie_at_every_length),
    TEST_ENTRY(utf8_names_are_accepted_and_everything_else_refused),
    TEST_ENTRY(names_in_messages_are_cut_between_characters),
    TEST_ENTRY(figures_have_separators),
    TEST_ENTRY(printer_stops_at_the_first_refusal),
    TEST_ENTRY(clock_does_not_go_back))
