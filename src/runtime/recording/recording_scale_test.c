/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks recordings with many commands and slots: their barriers against those
 * of a slow planner, and that the time grows with their length only. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/recording/recording.h"
#include "runtime/recording/recording_testing.h"

static const vyre_allocator heap;

/* --- barriers ------------------------------------------------------------- */

typedef struct planned_access {
  vyre_slot_range range;
  bool is_written;
} planned_access;

typedef struct planned {
  planned_access accesses[3];
  int count; /* 0: a barrier */
} planned;

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return *state >> 33;
}

static uint64_t end_of(const vyre_slot_range *r) {
  return r->size ? r->offset + r->size : UINT64_MAX;
}

static bool conflict(const planned *a, const planned *b) {
  for (int i = 0; i < a->count; i++) {
    for (int k = 0; k < b->count; k++) {
      const planned_access *x = &a->accesses[i], *y = &b->accesses[k];
      if (x->range.slot == y->range.slot && (x->is_written || y->is_written) &&
          x->range.offset < end_of(&y->range) &&
          y->range.offset < end_of(&x->range))
        return true;
    }
  }
  return false;
}

static vyre_slot_range random_range(uint64_t *state, uint32_t slots) {
  vyre_slot_range r = {.slot = (uint32_t)(next_random(state) % slots)};
  if (next_random(state) % 4 == 0) return r;
  r.offset = 8 * (next_random(state) % 20);
  r.size = next_random(state) % 5 == 0 ? 0 : 8 * (1 + next_random(state) % 4);
  return r;
}

/* Adds a random command, and notes what it accesses. */
static void add_random(const bench *b, vyre_recording *rec, uint32_t slots,
                       uint64_t *state, planned *out) {
  vyre_status st = {0};
  vyre_slot_range from = random_range(state, slots),
                  to = random_range(state, slots);
  unsigned kind = (unsigned)(next_random(state) % 12);
  *out = (planned){0};
  if (kind == 0) {
    CHECK_OK(vyre_recording_add_barrier(rec, &st), st);
  } else if (kind < 5) {
    from.size = to.size = 8;
    if (from.slot == to.slot) to.slot = (to.slot + 1) % slots;
    *out = (planned){{{from, false}, {to, true}}, 2};
    CHECK_OK(vyre_recording_add_copy(rec, from, to, &st), st);
  } else if (kind < 9) {
    from.size = to.size = 8;
    *out = (planned){{{from, true}, {to, true}}, 2};
    CHECK_OK(add_dispatch(rec, b->pipelines[COUNT], &from, 1, &to, 1, &st), st);
  } else {
    vyre_slot_range in[] = {from, {.slot = slots, .size = 4}};
    *out = (planned){{{from, false}, {in[1], false}, {to, true}}, 3};
    CHECK_OK(add_dispatch(rec, b->pipelines[SCALE], in, 2, &to, 1, &st), st);
  }
}

TEST(barriers_are_those_of_a_slow_planner) {
  enum { COMMANDS = 120, RUNS = 60 };
  bench b = bench_open(heap);
  uint64_t state = 7, placed = 0;
  for (int run = 0; run < RUNS; run++) {
    vyre_status st = {0};
    vyre_recording *rec;
    planned plans[COMMANDS];
    uint32_t slots = 2 + (uint32_t)run % 14;
    CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
    for (uint32_t i = 0; i <= slots; i++) {
      char name[16];
      (void)snprintf(name, sizeof name, "s%u", i);
      CHECK_U64(add_slot(rec, name, 0), i);
    }
    for (int i = 0; i < COMMANDS; i++)
      add_random(&b, rec, slots, &state, &plans[i]);
    CHECK_OK(vyre_recording_seal(rec, &st), st);
    for (int i = 0, first = 0; i < COMMANDS; i++) {
      bool needs = false;
      if (plans[i].count == 0) first = i + 1;
      for (int k = first; k < i && !needs; k++)
        needs = conflict(&plans[k], &plans[i]);
      if (needs) first = i;
      placed += needs;
      CHECK(rec->commands[i].needs_barrier == needs);
    }
    vyre_recording_release(rec);
  }
  CHECK(placed > RUNS);
  bench_close(&b);
}

/* --- names ---------------------------------------------------------------- */

TEST(every_slot_is_found_by_its_name) {
  enum { SLOTS = 3000 };
  bench b = bench_open(heap);
  vyre_status st = {0};
  vyre_recording *rec;
  uint32_t slot;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  CHECK_U64(vyre_recording_find_slot(rec, "s0"), VYRE_NO_SLOT);
  for (uint32_t i = 0; i < SLOTS; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "s%u", i);
    CHECK_OK(vyre_recording_add_slot(rec, name, 0, &slot, &st), st);
    CHECK_U64(slot, i);
  }
  for (uint32_t i = 0; i < SLOTS; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "s%u", i);
    CHECK_U64(vyre_recording_find_slot(rec, name), i);
    CHECK_FAILS(vyre_recording_add_slot(rec, name, 0, &slot, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    st = (vyre_status){0};
  }
  CHECK_U64(vyre_recording_find_slot(rec, "s3000"), VYRE_NO_SLOT);
  CHECK_U64(vyre_recording_find_slot(rec, ""), VYRE_NO_SLOT);
  vyre_recording_release(rec);
  bench_close(&b);
}

/* --- time ----------------------------------------------------------------- */

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { GROUPS = 10000 };

/* Slot 0 has one factor for each group; the others have four slots for each. */
static vyre_slot_binding slot_memory(uint32_t slot, vyre_buffer buffer) {
  static uint32_t words[GROUPS][4], factors[GROUPS];
  if (slot == 0)
    return (vyre_slot_binding){.data = factors, .size = sizeof factors};
  uint32_t group = (slot - 1) / 4, kind = (slot - 1) % 4;
  factors[group] = 3;
  words[group][0] = group;
  if (kind == 1)
    return (vyre_slot_binding){
        .buffer = buffer, .offset = (uint64_t)4 * group, .size = 4};
  return (vyre_slot_binding){.data = &words[group][kind], .size = 4};
}

/* Records an upload, a dispatch and a copy for each group. */
static void record_groups(const bench *b, vyre_recording *rec) {
  vyre_status st = {0};
  (void)add_slot(rec, "factors", 0);
  for (uint32_t i = 0; i < GROUPS; i++) {
    vyre_slot_range range[4];
    for (int k = 0; k < 4; k++) {
      char name[24];
      (void)snprintf(name, sizeof name, "group %u, %d", i, k);
      range[k] = vyre_slot_range_all(add_slot(rec, name, 0));
    }
    vyre_slot_range in[] = {range[1],
                            {.slot = 0, .offset = (uint64_t)4 * i, .size = 4}};
    CHECK_OK(vyre_recording_add_copy(rec, range[0], range[1], &st), st);
    CHECK_OK(add_dispatch(rec, b->pipelines[SCALE], in, 2, &range[2], 1, &st),
             st);
    CHECK_OK(vyre_recording_add_copy(rec, range[2], range[3], &st), st);
  }
}

static void check_groups(void) {
  for (uint32_t i = 0; i < GROUPS; i++) {
    const uint32_t *got = slot_memory(4 * i + 4, (vyre_buffer){0}).data;
    CHECK_U64(*got, (uint64_t)3 * i);
  }
}

/* Work that is quadratic in the 40,000 slots or the 30,000 commands needs far
 * more than the limit, and linear work far less, also with sanitizers. */
TEST(forty_thousand_slots_take_linear_time) {
  bench b = bench_open(heap);
  vyre_status st = {0};
  vyre_recording *rec;
  vyre_buffer buffer = create_buffer(b.device, (size_t)4 * GROUPS);
  double start = cpu_seconds();
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  record_groups(&b, rec);
  double recorded = cpu_seconds();
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (uint32_t i = 0; i <= 4 * GROUPS; i++) {
    vyre_slot_binding memory = slot_memory(i, buffer);
    CHECK_OK(vyre_recording_bind_slot(rec, i, &memory, &st), st);
  }
  double bound = cpu_seconds();
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  check_groups();
  double replayed = cpu_seconds();
  vyre_replay_result r;
  const vyre_replay_options keep = {.skip_uploads = true, .result = &r};
  CHECK_OK(vyre_recording_replay(rec, &keep, NULL, &st), st);
  CHECK_U64(r.skipped_uploads, GROUPS);
  double end = cpu_seconds();
  printf(
      "record %.1f ms, seal and bind %.1f ms, replay %.1f ms, again %.1f "
      "ms\n",
      1e3 * (recorded - start), 1e3 * (bound - recorded),
      1e3 * (replayed - bound), 1e3 * (end - replayed));
  CHECK(end - start < 4);
  vyre_recording_release(rec);
  bench_close(&b);
}

TEST_MAIN(TEST_ENTRY(barriers_are_those_of_a_slow_planner),
          TEST_ENTRY(every_slot_is_found_by_its_name),
          TEST_ENTRY(forty_thousand_slots_take_linear_time))
