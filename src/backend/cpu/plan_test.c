/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/plan.h"

#include "hal/host_plan_testing.h"
#include "support/check.h"

/* --- a kernel that uses every field ----------------------------------------*/

typedef struct rig {
  planned_kernel k;
  cpu_plan plan;
} rig;

static void rig_open(rig *r) {
  vyre_status st = {0};
  *r = (rig){0};
  planned_kernel_open(&r->k);
  vyre__spmd_info info = {.width = 8, .scratch_bytes = 640};
  CHECK_OK(cpu_plan_build(r->k.kernel, &info, &r->k.arena, &r->plan, &st), st);
}

static void rig_close(rig *r) {
  planned_kernel_close(&r->k);
}

/* --- save and load ---------------------------------------------------------*/

static const char object[] = "not really an object";

static vyre__bytes write_it(cpu_plan *plan) {
  vyre__bytes out = {0};
  cpu_artifact_write(plan, object, sizeof object, &out);
  CHECK(!out.failed);
  return out;
}

TEST(a_plan_survives_writing_and_reading) {
  rig r;
  rig_open(&r);
  vyre__bytes bytes = write_it(&r.plan);
  cpu_plan plan;
  const void *found;
  size_t size;
  vyre_status st = {0};
  CHECK_OK(cpu_artifact_read(bytes.data, bytes.size, &r.k.arena, &plan, &found,
                             &size, &st),
           st);
  CHECK_U64(size, sizeof object);
  CHECK(memcmp(found, object, size) == 0);
  vyre__bytes again = write_it(&plan);
  CHECK_U64(again.size, bytes.size);
  CHECK(memcmp(again.data, bytes.data, bytes.size) == 0);
  vyre__bytes_deinit(&again);
  vyre__bytes_deinit(&bytes);
  rig_close(&r);
}

/* Reads a copy of exactly that size. */
static bool try_read(const unsigned char *bytes, size_t size, vyre_status *st) {
  char *exact = malloc(size ? size : 1);
  CHECK(exact != NULL);
  memcpy(exact, bytes, size);
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  cpu_plan plan;
  const void *found;
  size_t found_size;
  *st = (vyre_status){0};
  bool is_taken = cpu_artifact_read(exact, size, &arena, &plan, &found,
                                    &found_size, st) == VYRE_OK;
  if (!is_taken) CHECK(st->message[0] && st->fix[0]);
  if (is_taken) CHECK_U64(plan.full_write_count, plan.buffer_count);
  vyre_arena_deinit(&arena);
  free(exact);
  return is_taken;
}

TEST(other_lengths_are_refused) {
  rig r;
  vyre_status st;
  rig_open(&r);
  vyre__bytes bytes = write_it(&r.plan);
  for (size_t size = 0; size < bytes.size; size++) {
    CHECK(!try_read(bytes.data, size, &st));
  }
  CHECK(try_read(bytes.data, bytes.size, &st));
  vyre__bytes_put(&bytes, "x", 1);
  CHECK(!try_read(bytes.data, bytes.size, &st));
  vyre__bytes_deinit(&bytes);
  rig_close(&r);
}

TEST(any_changed_byte_is_refused_or_harmless) {
  rig r;
  vyre_status st;
  rig_open(&r);
  vyre__bytes bytes = write_it(&r.plan);
  static const unsigned char odd[] = {0, 1, 2, 3, 7, 0x40, 0x7f, 0x80, 0xff};
  int refused = 0;
  for (size_t at = 0; at < bytes.size; at++) {
    for (size_t k = 0; k < sizeof odd; k++) {
      unsigned char kept = bytes.data[at];
      bytes.data[at] = odd[k];
      refused += !try_read(bytes.data, bytes.size, &st);
      bytes.data[at] = kept;
    }
  }
  CHECK(refused > 1000);
  vyre__bytes_deinit(&bytes);
  rig_close(&r);
}

/* Fields of the CPU backend only; artifact_test.c tests the others. */
#define BAD_LIMITS "the limits of a full write (0)"

TEST(plans_for_other_cpus_or_buffers_are_refused) {
  static const struct {
    uint32_t width, is_baseline, is_full, is_partial, digits, within,
        less_within, by, groups;
    const char *says;
  } cases[] = {{3, 0, 0, 0, 0, 0, 0, 0, 0, "its width (3)"},
               {0, 0, 0, 0, 0, 0, 0, 0, 0, "its width (0)"},
               {8, 2, 0, 0, 0, 0, 0, 0, 0, "how it was made (2)"},
               {8, 0, 2, 1, 1, 0, 0, 0, 0, BAD_LIMITS},
               {8, 0, 1, 0, 1, 0, 0, 0, 0, BAD_LIMITS},
               {8, 0, 0, 2, 1, 0, 0, 0, 0, BAD_LIMITS},
               {8, 0, 1, 1, 7, 0, 0, 0, 0, BAD_LIMITS},
               {8, 0, 1, 1, 1, 1u << 9, 0, 0, 0, BAD_LIMITS},
               {8, 0, 1, 1, 1, 1u << 3, 0, 0, 0, BAD_LIMITS},
               {8, 0, 1, 1, 1, 1u << 4, 0, 0, 0, BAD_LIMITS},
               {8, 0, 0, 1, 1, 0, 1u << 9, 0, 0, BAD_LIMITS},
               {8, 0, 0, 1, 1, 0, 1u << 3, 0, 0, BAD_LIMITS},
               {8, 0, 1, 1, 1, 0, 0, 1u << 9, 0, BAD_LIMITS},
               {8, 0, 1, 1, 1, 0, 0, 1u << 0, 0, BAD_LIMITS},
               {8, 0, 1, 1, 1, 0, 0, 0, 4, BAD_LIMITS},
               {8, 0, 1, 1, 1, 1u << 1, 0, 0, 3, NULL},
               {8, 0, 0, 1, 1, 0, 1u << 1, 0, 3, NULL}};
  rig r;
  vyre_status st;
  rig_open(&r);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cpu_plan plan = r.plan;
    cpu_full_write full_writes[8] = {
        {.is_partial = cases[i].is_partial,
         .is_full = cases[i].is_full,
         .digit_count = cases[i].digits,
         .digits = {{.by = cases[i].by,
                     .groups = cases[i].groups,
                     .within = cases[i].within,
                     .less_within = cases[i].less_within}}}};
    plan.numbers.width = cases[i].width;
    plan.numbers.is_baseline = cases[i].is_baseline;
    plan.full_writes = full_writes;
    vyre__bytes bytes = write_it(&plan);
    CHECK(try_read(bytes.data, bytes.size, &st) == !cases[i].says);
    if (cases[i].says) CHECK_HAS(st.message, cases[i].says);
    vyre__bytes_deinit(&bytes);
  }
  rig_close(&r);
}

TEST_MAIN(TEST_ENTRY(a_plan_survives_writing_and_reading),
          TEST_ENTRY(other_lengths_are_refused),
          TEST_ENTRY(any_changed_byte_is_refused_or_harmless),
          TEST_ENTRY(plans_for_other_cpus_or_buffers_are_refused))
