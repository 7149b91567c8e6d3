/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzz target for CSV. Accepted input survives writing and reading; errors
 * have a position and a fix. */
#include "io/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_same(const place_input *a, const place_input *b) {
  MUST(a->count == b->count);
  for (size_t i = 0; i < a->count; i++) {
    MUST(a->intervals[i].size == b->intervals[i].size);
    MUST(a->intervals[i].first_group == b->intervals[i].first_group);
    MUST(a->intervals[i].last_group == b->intervals[i].last_group);
    MUST(a->ids[i].length == b->ids[i].length);
    MUST(memcmp(a->ids[i].text, b->ids[i].text, a->ids[i].length) == 0);
  }
}

static void round_trip(const place_input *first, vyre_arena *arena) {
  sink once = {0}, twice = {0};
  problem wrong = {0};
  place_input second;
  MUST(write_place_csv(first, NULL, &once, &wrong));
  input in = {.label = "again.csv", .text = once.data, .length = once.length};
  MUST(read_place_csv(&in, arena, &second, &wrong));
  must_be_same(first, &second);
  MUST(write_place_csv(&second, NULL, &twice, &wrong));
  MUST(once.length == twice.length);
  MUST(memcmp(once.data, twice.data, once.length) == 0);
  sink_deinit(&once);
  sink_deinit(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  vyre_arena arena = {0};
  problem wrong = {0};
  place_input place;
  input in = {.label = "fuzz.csv",
              .text = size ? (const char *)data : "",
              .length = size};
  if (read_place_csv(&in, &arena, &place, &wrong)) {
    round_trip(&place, &arena);
    check_place(&place, &arena);
  } else {
    must_be_told(&wrong, &in, &arena);
  }
  vyre_arena_deinit(&arena);
  return 0;
}
