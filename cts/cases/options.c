/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: options of dispatches and of compiles. */
#include <stdio.h>

#include "cts/harness/saxpy.h"

typedef struct rig {
  vyre_pipeline *pipeline;
  saxpy_data d;
  saxpy_result got, want;
} rig;

static void begin(cts *c, rig *r) {
  r->pipeline = cts_kernel(c, saxpy_text);
  saxpy_make(&r->d, c->seed, &r->got);
  r->want = saxpy_expect(&r->d, 1);
}

static void run(cts *c, rig *r, uint64_t launches) {
  memset(&r->got, 0xa5, sizeof r->got);
  CTS_OK(c, vyre_dispatch(r->pipeline, &r->d.desc, &c->st));
  CTS_LAUNCHED(c, launches);
  CTS_SAME(c, "the result", &r->got, &r->want, sizeof r->want);
}

static void profile_and_label(cts *c) {
  rig r;
  begin(c, &r);
  r.d.desc.profile = "a profile";
  r.d.desc.label = "label \"with\" quotes\nand lines";
  run(c, &r, 1);
}

static void grid(cts *c) {
  rig r;
  begin(c, &r);
  uint32_t got[3];
  CTS_OK(c, vyre_dispatch_grid(r.pipeline, &r.d.desc, got, &c->st));
  CTS_CHECK(c, got[0] == 5 && got[1] == 1 && got[2] == 1);
  r.d.desc.grid[0] = 9; /* more workgroups than needed */
  run(c, &r, 1);
  r.d.desc.grid[0] = 2; /* covers 16 of 37 elements */
  memset(r.want.z, 0, sizeof r.want.z);
  for (uint32_t i = 0; i < SAXPY_COUNT; i++) {
    if (i >= 16) {
      r.want.y[i] = r.d.y[i];
    } else {
      r.want.z[i % 4] += r.want.y[i];
    }
  }
  run(c, &r, 2);
  r.d.desc.grid[0] = 0;
  r.d.desc.grid[1] = 1; /* a single axis of 0 counts as 1 */
  CTS_OK(c, vyre_dispatch_grid(r.pipeline, &r.d.desc, got, &c->st));
  CTS_CHECK(c, got[0] == 1 && got[1] == 1 && got[2] == 1);
}

static void iterations(cts *c) {
  rig r;
  begin(c, &r);
  r.d.desc.has_repeat_count = true;
  r.d.desc.repeat_count = 1;
  run(c, &r, 1);
  r.d.desc.repeat_count = 4;
  r.want = saxpy_expect(&r.d, 4);
  run(c, &r, 5);
  r.d.desc.has_repeat_count = false; /* the number is ignored then */
  r.d.desc.repeat_count = 0;
  r.want = saxpy_expect(&r.d, 1);
  run(c, &r, 6);
}

static void max_output_bytes(cts *c) {
  rig r;
  begin(c, &r);
  r.d.desc.max_output_bytes = SAXPY_BYTES + SAXPY_SUMS; /* exact limit */
  run(c, &r, 1);
}

static void timing(cts *c) {
  rig r;
  begin(c, &r);
  vyre_timing timing;
  memset(&timing, 0xff, sizeof timing);
  r.d.desc.timing = &timing;
  run(c, &r, 1);
  CTS_CHECK(c, timing.wall_ns > 0 && timing.wall_ns < UINT64_C(60000000000));
  CTS_CHECK(c, timing.has_device == c->caps->has_device_time);
  CTS_CHECK(c, !timing.has_wait || timing.wait_ns <= timing.wall_ns);
  CTS_CHECK(c, !timing.has_enqueue || timing.enqueue_ns <= timing.wall_ns);
}

/* The capabilities decide which bytes are copied; their total is fixed. */
static void copy_report(cts *c) {
  rig r;
  begin(c, &r);
  vyre_copy_report copies;
  r.d.desc.copies = &copies;
  run(c, &r, 1);
  CTS_CHECK(c, copies.copies > 0 && copies.copied_bytes >= SAXPY_BYTES);
  CTS_CHECK(c, copies.first_copied && copies.first_reason != VYRE_COPY_NONE);
  if (c->caps->borrows_host_memory && c->caps->host_alignment <= 1) {
    /* Y, whose input and output differ. */
    CTS_U64(c, copies.copied_bytes, SAXPY_BYTES);
    CTS_U64(c, copies.borrowed_bytes, SAXPY_BYTES + 4 + SAXPY_SUMS);
  }
}

static void require_zero_copy(cts *c) {
  rig r;
  begin(c, &r);
  vyre_buffer x, y, a, z;
  CTS_OK(c, vyre_buffer_create(c->device, SAXPY_BYTES, &x, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, SAXPY_BYTES, &y, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, 4, &a, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, SAXPY_SUMS, &z, &c->st));
  vyre_transfer up[] = {{x, 0, r.d.x, SAXPY_BYTES},
                        {y, 0, r.d.y, SAXPY_BYTES},
                        {a, 0, &r.d.a, 4}};
  CTS_OK(c, vyre_buffer_upload_many(c->device, up, 3, &c->st));
  r.d.desc.require_zero_copy = true;
  r.d.in[0] = vyre_input_buffer(x);
  r.d.in[1] = vyre_input_buffer(y);
  r.d.in[2] = vyre_input_buffer(a);
  r.d.out[0] = vyre_output_buffer(y);
  r.d.out[1] = vyre_output_buffer(z);
  vyre_copy_report copies;
  r.d.desc.copies = &copies;
  CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_U64(c, copies.copied_bytes, 0);
  CTS_U64(c, copies.borrowed_bytes, 0);
  CTS_U64(c, copies.device_buffer_bytes, 2 * SAXPY_BYTES + 4 + SAXPY_SUMS);
  vyre_transfer down[] = {{y, 0, r.got.y, SAXPY_BYTES},
                          {z, 0, r.got.z, SAXPY_SUMS}};
  CTS_OK(c, vyre_buffer_download_many(c->device, down, 2, &c->st));
  CTS_SAME(c, "the result", &r.got, &r.want, sizeof r.want);
  r.d.out[0] = vyre_output_bytes(r.got.y, SAXPY_BYTES);
  CTS_FAILS(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED);
}

static void loops_end(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c,
                                       "kernel k workgroup(4)\n"
                                       "buffer a : read u32[] @0;\n"
                                       "buffer r : write u32[] @1;\n"
                                       "{\n    var n = 0u;\n"
                                       "    while (n != a[0]) n += a[1];\n"
                                       "    r[global_id.x] = n;\n}\n");
  uint32_t a[2] = {1000, 1}, r[4], want[4] = {1000, 1000, 1000, 1000};
  vyre_input in = vyre_input_bytes(a, 8);
  vyre_output out = vyre_output_bytes(r, 16);
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {1},
                             .max_loop_iterations = 2000};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "r", r, want, sizeof want);
  a[1] = 0; /* endless loop */
  CTS_FAILS(c, vyre_dispatch(pipeline, &desc, &c->st), VYRE_DISPATCH_FAILED,
            VYRE_KIND_OUT_OF_FUEL);
  a[1] = 1; /* the device still works */
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 2);
  CTS_SAME(c, "r", r, want, sizeof want);
}

/* Limits also apply to loops with a constant trip count, even on devices that
 * need not count them. */
static void exact_limits(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(4)\n"
                 "buffer r : write u32[4] @0;\n"
                 "{\n    var n = 0u;\n"
                 "    for (let i = 0u; i < 100; i++) n += i;\n"
                 "    r[global_id.x] = n;\n}\n");
  static const uint32_t limits[] = {0, 1, 10, 99, 100, 101, 99};
  uint32_t r[4], want[4] = {4950, 4950, 4950, 4950};
  vyre_output out = vyre_output_bytes(r, 16);
  vyre_dispatch_desc desc = {.outputs = &out, .output_count = 1};
  vyre_compile_options counted = {.counts_iterations = true};
  CTS_OK(c, vyre_pipeline_add_variant(pipeline, &counted, &c->st));
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    desc.max_loop_iterations = limits[i];
    if (limits[i] == 0 || limits[i] >= 100) {
      CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
      CTS_SAME(c, "r", r, want, sizeof want);
    } else {
      CTS_FAILS(c, vyre_dispatch(pipeline, &desc, &c->st), VYRE_DISPATCH_FAILED,
                VYRE_KIND_OUT_OF_FUEL);
    }
  }
  CTS_LAUNCHED(c, 3);
}

static void timeout(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(1)\n"
                 "buffer a : read u32[] @0;\n"
                 "buffer r : write u32[] @1;\n"
                 "{\n    var n = 0u;\n"
                 "    while (n < a[0]) n += 1;\n    r[global_id.x] = n;\n}\n");
  uint32_t a = 10, r = 0;
  vyre_input in = vyre_input_bytes(&a, 4);
  vyre_output out = vyre_output_bytes(&r, 4);
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {1, 1, 1},
                             .timeout_ns = UINT64_C(30000000000)};
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_U64(c, r, 10);
  a = 50000; /* low enough for devices that kill long invocations */
  desc.grid[0] = 100000;
  desc.timeout_ns = 3000000;
  CTS_FAILS(c, vyre_dispatch(pipeline, &desc, &c->st), VYRE_DISPATCH_FAILED,
            VYRE_KIND_TIMED_OUT);
  a = 20;
  desc.grid[0] = 1;
  desc.timeout_ns = 0;
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_U64(c, r, 20);
  CTS_LAUNCHED(c, 2);
}

static void workgroup(cts *c) {
  rig r;
  begin(c, &r);
  vyre_compile_options options = {.workgroup = {0, 5, 0}};
  vyre_pipeline *other;
  CTS_OK(c, vyre_pipeline_compile(c->device, cts_program(c, saxpy_text),
                                  &options, &other, NULL, &c->st));
  const uint32_t *size = vyre_pipeline_workgroup(other);
  CTS_CHECK(c, size[0] == 1 && size[1] == 5 && size[2] == 1);
  CTS_CHECK(c,
            strcmp(vyre_pipeline_id(other), vyre_pipeline_id(r.pipeline)) != 0);
  vyre_pipeline_release(other);
  options = (vyre_compile_options){.workgroup = {5}};
  CTS_OK(c, vyre_pipeline_add_variant(r.pipeline, &options, &c->st));
  r.d.desc.variant = &options;
  run(c, &r, 1);
}

/* Results are exact by default; a budget allows errors but does not require
 * them. */
static void ulp_budget(cts *c) {
  static const char text[] =
      "kernel k workgroup(16) over(r)\n"
      "buffer a : read f32[] @0;\n"
      "buffer r : write f32[] @1;\n"
      "{\n    let i = global_id.x;\n"
      "    r[i] = sin(a[i]) + exp(a[i]);\n}\n";
  enum { N = 64, MAX_ULP = 4 };
  float a[N], exact[N], loose[N];
  for (int i = 0; i < N; i++) a[i] = (float)i * 0.05f;
  vyre_program *program = cts_program(c, text);
  vyre_pipeline *pipeline = cts_compile(c, program, 0);
  vyre_compile_options budget = {.ulp_budget = 1};
  vyre_input in = vyre_input_bytes(a, sizeof a);
  vyre_output out = vyre_output_bytes(exact, sizeof exact);
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  cts_oracle(c, program, &desc);
  CTS_OK(c, vyre_pipeline_add_variant(pipeline, &budget, &c->st));
  out.data = loose;
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_SAME(c, "without a budget", loose, exact, sizeof exact);
  desc.variant = &budget;
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  for (int i = 0; i < N; i++) { /* all values are positive and below 24 */
    int32_t x, y;
    memcpy(&x, &exact[i], 4);
    memcpy(&y, &loose[i], 4);
    CTS_CHECK(c, x - y <= MAX_ULP && y - x <= MAX_ULP);
  }
  CTS_LAUNCHED(c, 2);
}

static bool add_text(void *self, const char *text, size_t length) {
  char *to = self;
  size_t used = strlen(to);
  if (used + length >= 256) return false;
  memcpy(to + used, text, length);
  to[used + length] = '\0';
  return true;
}

static void print(cts *c) {
  vyre_program *program =
      cts_program(c,
                  "kernel k workgroup(1)\n"
                  "buffer r : write u32[] @0;\n"
                  "{\n    print(\"x is \", 41 + 1);\n    r[0] = 5;\n}\n");
  char printed[256] = "";
  uint32_t r = 0;
  vyre_output out = vyre_output_bytes(&r, 4);
  vyre_dispatch_desc desc = {.outputs = &out, .output_count = 1};
  if (!c->caps->has_print) {
    CTS_FAILS(c, vyre_device_run_program(c->device, program, &desc, &c->st),
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    cts_lacks(c, "print");
  }
  desc.print = (vyre_writer){add_text, printed};
  CTS_OK(c, vyre_device_run_program(c->device, program, &desc, &c->st));
  CTS_CHECK(c, strcmp(printed, "x is 42\n") == 0);
  desc.print = (vyre_writer){0}; /* without a writer, nothing is printed */
  CTS_OK(c, vyre_device_run_program(c->device, program, &desc, &c->st));
  CTS_U64(c, r, 5);
  CTS_LAUNCHED(c, 2);
}

static void checks(cts *c) {
  vyre_pipeline *pipeline =
      cts_kernel(c,
                 "kernel k workgroup(4) over(a)\n"
                 "buffer a : read u32[] @0;\n"
                 "buffer r : write u32[] @1;\n"
                 "{\n    r[0] = a[global_id.x + 1];\n}\n");
  uint32_t a[8] = {0}, r[1];
  vyre_check_report report = {0};
  vyre_input in = vyre_input_bytes(a, sizeof a);
  vyre_output out = vyre_output_bytes(r, sizeof r);
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .check = {.out_of_bounds = true, .races = true},
                             .report = &report};
  vyre_code code = vyre_dispatch(pipeline, &desc, &c->st);
  if (!c->caps->has_checks) {
    CTS_FAILS(c, code, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    cts_lacks(c, "checks");
  }
  CTS_OK(c, code);
  CTS_LAUNCHED(c, 1);
  bool found[VYRE_FINDING_COUNT] = {false};
  for (size_t i = 0; i < report.count; i++) {
    found[report.findings[i].kind] = true;
  }
  CTS_CHECK(c, found[VYRE_FINDING_OUT_OF_BOUNDS] && found[VYRE_FINDING_RACE]);
  vyre_check_report_deinit(&report);
}

static const cts_entry entries[] = {
    {"profile_and_label", profile_and_label},
    {"grid", grid},
    {"iterations", iterations},
    {"max_output_bytes", max_output_bytes},
    {"timing", timing},
    {"copy_report", copy_report},
    {"require_zero_copy", require_zero_copy},
    {"max_iterations", loops_end},
    {"exact_limits", exact_limits},
    {"timeout", timeout},
    {"workgroup", workgroup},
    {"ulp_budget", ulp_budget},
    {"print", print},
    {"checks", checks},
};

CTS_LIST(options, "every option of a dispatch");
