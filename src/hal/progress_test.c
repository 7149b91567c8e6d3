/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of progress reports, on every device that has them. */

#include "support/check.h"
#include "support/driver.h"

static const char *const devices[] = {"ref", "cpu"};

static rig open_on(const char *device, const char *text) {
  static const vyre_context_options options = {
      .cache_directory = "",
      .trace_file = "",
      .faults = "",
      .backend_options = "cpu.threads=2"};
  return rig_open_as(&options, device, text);
}

/* Loops y[0] times; y has 64 elements. */
static const char loop_kernel[] =
    "kernel turns workgroup(4)\nbuffer y : read u32[64] @0;\n"
    "buffer z : read_write u32[64] @1 output;\n"
    "{\n  var n = 0u;\n  while (n < y[0]) { n += select(y[1] == 1, 0u, 1u); }\n"
    "  if (global_id.x < 64) z[global_id.x] = n;\n}\n";

typedef struct call {
  uint32_t y[64], z[64];
  vyre_input in;
  vyre_output out;
  vyre_progress progress;
  vyre_dispatch_desc desc;
} call;

static void make(call *c, uint32_t iterations, uint32_t groups) {
  *c = (call){.y = {iterations}};
  c->in = vyre_input_bytes(c->y, sizeof c->y);
  c->out = vyre_output_bytes(c->z, sizeof c->z);
  c->desc = (vyre_dispatch_desc){.inputs = &c->in,
                                 .input_count = 1,
                                 .outputs = &c->out,
                                 .output_count = 1,
                                 .grid = {groups},
                                 .is_borrowed = true,
                                 .progress = &c->progress};
}

static void check_progress(const call *c, uint64_t want_done,
                           uint64_t want_all) {
  uint64_t done = 9, all = 9;
  vyre_progress_read(&c->progress, &done, &all);
  CHECK_U64(all, want_all);
  CHECK_U64(done, want_done);
}

TEST(all_workgroups_of_all_launches_are_counted) {
  static const uint32_t groups[] = {1, 7, 5000};
  static call c;
  for (int d = 0; d < 2; d++) {
    rig r = open_on(devices[d], loop_kernel);
    for (int g = 0; g < 3; g++) {
      vyre_status st = {0};
      make(&c, 3, groups[g]);
      check_progress(&c, 0, 0);
      CHECK_OK(vyre_dispatch(r.pipeline, &c.desc, &st), st);
      check_progress(&c, groups[g], groups[g]);
      c.desc.has_repeat_count = true;
      c.desc.repeat_count = 5;
      CHECK_OK(vyre_dispatch(r.pipeline, &c.desc, &st), st);
      check_progress(&c, UINT64_C(5) * groups[g], UINT64_C(5) * groups[g]);
      CHECK_U64(c.z[0], 3);
    }
    rig_close(&r);
  }
}

TEST(progress_grows_while_the_dispatch_runs) {
  static call c;
  for (int d = 0; d < 2; d++) {
    vyre_status st = {0};
    vyre_fence *fence;
    uint64_t before = 0, between = 0;
    rig r = open_on(devices[d], loop_kernel);
    make(&c, d == 0 ? 3000 : 100000, 3000);
    CHECK_OK(vyre_submit(r.pipeline, &c.desc, 1, &fence, &st), st);
    while (!vyre_fence_is_done(fence)) {
      uint64_t done, all;
      vyre_progress_read(&c.progress, &done, &all);
      CHECK(all == 0 || all == 3000);
      CHECK(done >= before && done <= all);
      between += done > 0 && done < all;
      before = done;
    }
    CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
    vyre_fence_release(fence);
    CHECK(between > 0);
    check_progress(&c, 3000, 3000);
    rig_close(&r);
  }
}

TEST(unfinished_workgroups_are_not_counted) {
  static call c;
  for (int d = 0; d < 2; d++) {
    vyre_status st = {0};
    rig r = open_on(devices[d], loop_kernel);
    make(&c, 3, 64);
    c.y[1] = 1; /* loops without end */
    c.desc.timeout_ns = 30000000;
    CHECK_FAILS(vyre_dispatch(r.pipeline, &c.desc, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
    check_progress(&c, 0, 64);
    rig_close(&r);
  }
}

/* Device cpu counts each phase between grid barriers, also inside nested
 * loops. */
TEST(grid_barriers_are_counted_before_they_are_reached) {
  static const char text[] =
      "kernel waves workgroup(4)\nbuffer y : read u32[64] @0;\n"
      "buffer z : read_write u32[64] @1 output;\n"
      "{\n  for (let i = 0u; i < 5; i++) {\n"
      "    z[global_id.x % 64] = i;\n    grid_barrier();\n"
      "    for (let j = 0u; j < 3; j++) { grid_barrier();\n"
      "      z[global_id.x % 64] += j + y[0]; }\n  }\n}\n";
  static call c;
  vyre_status st = {0};
  uint64_t done, all;
  rig r = open_on("cpu", text);
  make(&c, 3, 16);
  CHECK_OK(vyre_dispatch(r.pipeline, &c.desc, &st), st);
  vyre_progress_read(&c.progress, &done, &all);
  CHECK_U64(done, all);
  CHECK(all % 16 == 0 && all / 16 > 15 && all / 16 < 60);
  rig_close(&r);
}

TEST(reading_accepts_null) {
  uint64_t done = 5, all = 5;
  vyre_progress_read(NULL, &done, &all);
  CHECK_U64(done + all, 0);
  vyre_progress_read(&(vyre_progress){0}, NULL, NULL);
}

TEST_MAIN(TEST_ENTRY(all_workgroups_of_all_launches_are_counted),
          TEST_ENTRY(progress_grows_while_the_dispatch_runs),
          TEST_ENTRY(unfinished_workgroups_are_not_counted),
          TEST_ENTRY(grid_barriers_are_counted_before_they_are_reached),
          TEST_ENTRY(reading_accepts_null))
