/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs kernels: every statement, every rule of the language's semantics, every
 * reason to reject a dispatch. ref_ops_test.c tests operations, tests/check the
 * checks. */

#include "backend/ref/ref_testing.h"
#include "support/parse.h"

/* --- statements ------------------------------------------------------------*/

TEST(control_flow) {
  static const word_row rows[] = {
      {"y[i] = x[i];", {5, 3, 8, 1, 9, 2, 7, 4}, 0},
      {"var a = x[i]; a += 1; a = a * 2; y[i] = a;",
       {12, 8, 18, 4, 20, 6, 16, 10},
       0},
      {"if (x[i] > 4) y[i] = 1;", {1, 0, 1, 0, 1, 0, 1, 0}, 0},
      {"if (x[i] > 4) { y[i] = 1; } else if (x[i] > 2) { y[i] = 2; } else { "
       "y[i] = 3; }",
       {1, 2, 1, 3, 1, 3, 1, 2},
       0},
      {"var t = 0u; for (let k = 0u; k < x[i]; k++) t += k; y[i] = t;",
       {10, 3, 28, 0, 36, 1, 21, 6},
       0},
      {"var t = 0u; for (let k = x[i]; k > 2; k -= 2) t += k; y[i] = t;",
       {8, 3, 18, 0, 24, 0, 15, 4},
       0},
      {"var t = 0u; for (let k = 1u; k <= x[i]; k += 3) t += k; y[i] = t;",
       {5, 1, 12, 1, 12, 1, 12, 5},
       0},
      {"var t = 0u; for (let k = 3; k >= -i32(x[i]); k--) t++; y[i] = t;",
       {9, 7, 12, 5, 13, 6, 11, 8},
       0},
      {"var a = x[i]; var n = 0u; while (a != 1) { if (a % 2 == 0) { a /= 2; } "
       "else { a = a * 3 + 1; } n++; } y[i] = n;",
       {5, 7, 3, 0, 19, 1, 16, 2},
       0},
      {"var t = 0u; for (let k = 0u; k < 10; k++) { if (k == x[i]) break; if "
       "(k % 2 == 0) continue; t += k; } y[i] = t;",
       {4, 1, 16, 0, 16, 1, 9, 4},
       0},
      {"var t = 0u; var k = 0u; while (true) { k++; if (k > x[i]) break; if (k "
       "== 3) continue; t += k; } y[i] = t;",
       {12, 3, 33, 1, 42, 3, 25, 7},
       0},
      {"if (x[i] < 4) return; y[i] = 7;", {7, 0, 7, 0, 7, 0, 7, 7}, 0},
      {"for (let k = 0u; k < 9; k++) { if (k == x[i]) return; y[i] = k; }",
       {4, 2, 7, 0, 8, 1, 6, 3},
       0},
      {"for (let a = 0u; a < 3; a++) { for (let b = 0u; b < 5; b++) { if (b > "
       "a) break; if (x[i] < b) continue; y[i] += 1; } }",
       {6, 6, 6, 5, 6, 6, 6, 6},
       0},
      {"y[i] = gcd(x[i], 12);", {1, 3, 4, 1, 3, 2, 1, 4}, 0},
      {"y[i] = first_above(x[i] * 10) + twice(twice(1));",
       {12, 10, 13, 8, 14, 9, 13, 11},
       0},
      {"y[i] = first_above(x[i] * 1000);",
       {11000, 7000, 17000, 32, 19000, 45, 15000, 9000},
       0},
      {"{ let a = 1u; y[i] = a; } { let a = 2u; y[i] += a; }",
       {3, 3, 3, 3, 3, 3, 3, 3},
       0},
  };
  check_words(rows, COUNT(rows));
}

TEST(evaluation) {
  static const word_row rows[] = {
      /* both arms of select, only the needed side of && and || */
      {"y[i] = select(x[i] > 4, x[i], 100u);",
       {5, 100, 8, 100, 9, 100, 7, 100},
       0},
      {"if (x[i] > 4 && atomic_add(y[7 - i], 1) == 0) { }",
       {0, 1, 0, 1, 0, 1, 0, 1},
       0},
      {"if (x[i] > 4 || atomic_add(y[7 - i], 1) == 0) { }",
       {1, 0, 1, 0, 1, 0, 1, 0},
       0},
      /* left to right, index before value */
      {"if (i == 0) { y[atomic_add(y[7], 1)] = atomic_add(y[7], 1) + 5; }",
       {6, 0, 0, 0, 0, 0, 0, 2},
       0},
      {"if (i == 0) y[0] = atomic_add(y[7], 3) * 10 + atomic_add(y[7], 1);",
       {3, 0, 0, 0, 0, 0, 0, 4},
       0},
      /* the bound is evaluated once */
      {"var n = 3u; for (let k = 0u; k < n; k++) { n = 10; y[i] += 1; }",
       {3, 3, 3, 3, 3, 3, 3, 3},
       0},
      /* a loop variable never wraps */
      {"for (let k = 4294967290u; k <= 4294967295u; k += 4) y[i] += 1;",
       {2, 2, 2, 2, 2, 2, 2, 2},
       0},
      {"for (let k = 5u; k >= 0u; k -= 2) y[i] += 1;",
       {3, 3, 3, 3, 3, 3, 3, 3},
       0},
      {"for (let k = 2147483640i; k <= 2147483647i; k += 5) y[i] += 1;",
       {2, 2, 2, 2, 2, 2, 2, 2},
       0},
      {"for (let k = -9223372036854775807l; k >= -9223372036854775807l; k -= "
       "7) y[i] += 1;",
       {1, 1, 1, 1, 1, 1, 1, 1},
       0},
      {"for (let k = 18446744073709551610ul; k < 18446744073709551615ul; k += "
       "4) y[i] += 1;",
       {2, 2, 2, 2, 2, 2, 2, 2},
       0},
      /* compound assignment evaluates its index once */
      {"if (i == 0) y[atomic_add(y[7], 1)] += 5;", {5, 0, 0, 0, 0, 0, 0, 1}, 0},
  };
  check_words(rows, COUNT(rows));
}

TEST(ids_and_lengths) {
  static const word_row rows[] = {
      {"y[i] = i;", {0, 1, 2, 3, 4, 5, 6, 7}, 0},
      {"y[i] = local_id.x * 10 + workgroup_id.x;",
       {0, 10, 20, 30, 1, 11, 21, 31},
       0},
      {"y[i] = workgroup_size.x * 100 + grid_size.x * 10 + len(y);",
       {428, 428, 428, 428, 428, 428, 428, 428},
       0},
      {"y[i] = global_id.y + global_id.z + workgroup_size.z + grid_size.y;",
       {2, 2, 2, 2, 2, 2, 2, 2},
       0},
      {"y[i] = 1;", {1, 1, 1, 1, 0, 0, 0, 0}, 1},
      {"y[i] = len(s) + len(x);", {16, 16, 16, 16, 16, 16, 16, 16}, 7},
  };
  check_words(rows, COUNT(rows));
}

TEST(outside_a_buffer) {
  static const word_row rows[] = {
      {"y[i] = x[i + 4];", {9, 2, 7, 4, 0, 0, 0, 0}, 0},
      {"y[i] = x[i32(i) - 4];", {0, 0, 0, 0, 5, 3, 8, 1}, 0},
      {"y[i] = x[i64(i) - 4l];", {0, 0, 0, 0, 5, 3, 8, 1}, 0},
      {"y[i] = x[u64(i) + 4294967296ul] + 1;", {1, 1, 1, 1, 1, 1, 1, 1}, 0},
      {"y[i + 6] = 9;", {0, 0, 0, 0, 0, 0, 9, 9}, 0},
      {"y[i32(i) - 6] = 9;", {9, 9, 0, 0, 0, 0, 0, 0}, 0},
      {"y[i] = atomic_add(y[i + 100], 1) + 3;", {3, 3, 3, 3, 3, 3, 3, 3}, 0},
      {"s[l + 6] = 5; barrier(); y[i] = s[l + 4];",
       {0, 0, 5, 5, 0, 0, 5, 5},
       0},
  };
  check_words(rows, COUNT(rows));
}

TEST(shared_memory_and_barriers) {
  static const word_row rows[] = {
      {"s[l] = x[i]; barrier(); y[i] = s[3 - l];", {1, 8, 3, 5, 4, 7, 2, 9}, 0},
      /* zero at the start of each workgroup */
      {"y[i] = s[l]; barrier(); s[l] = 7; s[l + 4] = 7;",
       {0, 0, 0, 0, 0, 0, 0, 0},
       0},
      {"var h = 2u; s[l] = x[i]; barrier(); while (h > 0) { if (l < h) s[l] += "
       "s[l + h]; barrier(); h /= 2; } if (l == 0) y[workgroup_id.x] = s[0];",
       {17, 22, 0, 0, 0, 0, 0, 0},
       0},
      {"y[i] = uniform(x[i]);", {5, 5, 5, 5, 9, 9, 9, 9}, 0},
      {"if (uniform(x[i]) > 6) { s[l] = i; barrier(); y[i] = s[3 - l]; }",
       {0, 0, 0, 0, 7, 6, 5, 4},
       0},
  };
  check_words(rows, COUNT(rows));
}

TEST(atomics) {
  static const word_row rows[] = {
      {"atomic_add(y[0], x[i]);", {39, 0, 0, 0, 0, 0, 0, 0}, 0},
      {"atomic_max(y[i / 4], x[i]); atomic_min(y[2], x[i]);",
       {8, 9, 0, 0, 0, 0, 0, 0},
       0},
      {"atomic_or(y[0], x[i]); atomic_xor(y[1], x[i]); atomic_and(y[2], x[i]);",
       {15, 7, 0, 0, 0, 0, 0, 0},
       0},
      {"if (l == 0) { y[i] = atomic_exchange(s[0], 4) + "
       "atomic_exchange(s[0], 5) * 10 + s[0] * 100; }",
       {540, 0, 0, 0, 540, 0, 0, 0},
       0},
      {"if (l == 0) { let a = atomic_compare_exchange(s[0], 0, 6); let b = "
       "atomic_compare_exchange(s[0], 1, 9); y[i] = a + b * 10 + s[0] * 100; }",
       {660, 0, 0, 0, 660, 0, 0, 0},
       0},
      {"atomic_add(s[0], 1); barrier(); y[i] = s[0];",
       {4, 4, 4, 4, 4, 4, 4, 4},
       0},
  };
  check_words(rows, COUNT(rows));
}

TEST(grid_barriers) {
  static const word_row rows[] = {
      {"y[i] = x[i]; grid_barrier(); let a = y[7 - i]; grid_barrier(); y[i] = "
       "a;",
       {4, 7, 2, 9, 1, 8, 3, 5},
       0},
      /* locals survive, shared memory does not */
      {"let a = x[i] * 2; s[l] = 1; grid_barrier(); y[i] = a + s[l];",
       {10, 6, 16, 2, 18, 4, 14, 8},
       0},
      {"y[i] = x[i]; for (let k = 0u; k < 3; k++) { grid_barrier(); let a = "
       "y[(i + 1) % 8]; grid_barrier(); y[i] = a + k; }",
       {4, 12, 5, 10, 7, 8, 6, 11},
       0},
      /* shared memory survives between two barriers */
      {"for (let k = 0u; k < 2; k++) { y[i] += s[l]; grid_barrier(); s[l] = "
       "k + 3; } y[i] += s[l] * 10;",
       {43, 43, 43, 43, 43, 43, 43, 43},
       0},
      {"for (let a = 0u; a < 2; a++) { for (let b = 0u; b < 3; b++) { "
       "grid_barrier(); y[i] += a * 10 + b; } }",
       {36, 36, 36, 36, 36, 36, 36, 36},
       0},
      {"for (let k = 0u; k < 9; k++) { if (k == len(x)) break; if (k == 2) "
       "continue; grid_barrier(); y[i] += k; }",
       {26, 26, 26, 26, 26, 26, 26, 26},
       0},
      /* a barrier that no lane reaches clears nothing */
      {"s[l] = 7; barrier(); for (let k = 0u; k < 4; k++) { if (len(x) > 0) "
       "break; grid_barrier(); } y[i] = s[l];",
       {7, 7, 7, 7, 7, 7, 7, 7},
       0},
      {"for (let k = 0u; k < 3; k++) { s[l] = k + 1; if (len(x) > 0) "
       "continue; grid_barrier(); } y[i] = s[l];",
       {3, 3, 3, 3, 3, 3, 3, 3},
       0},
  };
  check_words(rows, COUNT(rows));
}

/* --- dispatches ------------------------------------------------------------*/

static const char saxpy[] =
    "kernel saxpy workgroup(2) over(y)\n"
    "buffer x : read f32[] @0;\n"
    "buffer y : read_write f32[] @1;\n"
    "uniform a : f32 @2;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = fma(a, x[i], y[i]); }\n";

TEST(saxpy_in_place_and_apart) {
  vyre_pipeline *pipeline = compile(saxpy, (vyre_allocator){0});
  float x[3] = {1, 2, 3}, y[3] = {10, 20, 30}, out[3] = {9, 9, 9}, a = 2;
  vyre_input inputs[] = {{x, 12}, {y, 12}, {&a, 4}};
  vyre_output outputs[] = {{out, 12}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 3,
                             .outputs = outputs,
                             .output_count = 1};
  vyre_status st = {0};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  CHECK(out[0] == 12 && out[1] == 24 && out[2] == 36 && y[0] == 10);
  outputs[0].data = y;
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  CHECK(y[0] == 12 && y[1] == 24 && y[2] == 36);
  uint32_t grid[3];
  CHECK_OK(vyre_dispatch_grid(pipeline, &desc, grid, &st), st);
  CHECK(grid[0] == 2 && grid[1] == 1 && grid[2] == 1);
  char hash[VYRE_HASH128_TEXT];
  vyre_hash128_text(vyre_program_fingerprint(vyre_pipeline_program(pipeline)),
                    hash);
  CHECK_HAS(vyre_pipeline_id(pipeline), hash);
  CHECK(strncmp(vyre_pipeline_id(pipeline), "ref:", 4) == 0);
  CHECK_U64(vyre_pipeline_bindings(pipeline)->input_count, 3);
  CHECK_U64(vyre_pipeline_workgroup(pipeline)[0], 2);
  vyre_pipeline_release(vyre_pipeline_retain(pipeline));
  vyre_pipeline_release(pipeline);
}

TEST(outputs_begin_as_zero) {
  uint32_t out[4] = {9, 9, 9, 9};
  vyre_output outputs[] = {{out, 16}};
  vyre_dispatch_desc desc = {.outputs = outputs, .output_count = 1};
  run("kernel k\nbuffer y : write u32[] @0;\n{ if (global_id.x == 2) y[2] = 5; "
      "}\n",
      &desc);
  CHECK(out[0] == 0 && out[1] == 0 && out[2] == 5 && out[3] == 0);
}

static vyre_code try_dispatch(const char *text, vyre_dispatch_desc *desc,
                              vyre_status *st) {
  vyre_pipeline *pipeline = compile(text, (vyre_allocator){0});
  *st = (vyre_status){0};
  vyre_code code = vyre_dispatch(pipeline, desc, st);
  vyre_pipeline_release(pipeline);
  return code;
}

TEST(bad_bindings_are_refused) {
  float x[4] = {0}, y[4] = {7, 7, 7, 7}, a = 2;
  vyre_input inputs[] = {{x, 12}, {y, 12}, {&a, 4}};
  vyre_output outputs[] = {{y, 12}};
  vyre_status st;
  vyre_dispatch_desc good = {.inputs = inputs,
                             .input_count = 3,
                             .outputs = outputs,
                             .output_count = 1};
  vyre_dispatch_desc desc = good;
  desc.input_count = 2;
  CHECK_FAILS(try_dispatch(saxpy, &desc, &st), st, VYRE_INVALID_PROGRAM,
              VYRE_KIND_INVALID_PROGRAM);
  desc = good;
  desc.output_count = 0;
  CHECK_FAILS(try_dispatch(saxpy, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
  CHECK_U64(status_number(&st, "expected_outputs"), 1);
  outputs[0].size = 8;
  CHECK_FAILS(try_dispatch(saxpy, &good, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'y' must have 12 bytes, but has 8");
  outputs[0] = (vyre_output){(char *)y + 4, 12};
  CHECK_FAILS(try_dispatch(saxpy, &good, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "overlap");
  outputs[0] = (vyre_output){NULL, 12};
  CHECK_FAILS(try_dispatch(saxpy, &good, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  outputs[0] = (vyre_output){y, 12};
  good.grid[0] = UINT32_MAX;
  CHECK_FAILS(try_dispatch(saxpy, &good, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_GRID_TOO_LARGE);
  good.grid[0] = 0;
  good.check.races = true;
  CHECK_FAILS(try_dispatch(saxpy, &good, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  CHECK(y[0] == 7);
}

TEST(memory_of_no_bytes_overlaps_with_nothing) {
  static const char text[] =
      "kernel k\nbuffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
      "{ y[global_id.x] = len(x); }\n";
  uint32_t y[4] = {7, 7, 7, 7};
  vyre_input inputs[] = {{y + 1, 0}};
  vyre_output outputs[] = {{y, sizeof y}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 1,
                             .outputs = outputs,
                             .output_count = 1};
  vyre_status st;
  CHECK_OK(try_dispatch(text, &desc, &st), st);
  CHECK(y[0] == 0 && y[3] == 0);
  inputs[0].size = 4;
  CHECK_FAILS(try_dispatch(text, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
}

TEST(checks_refuse_grids_that_they_cannot_count) {
  static const char text[] =
      "kernel k\nbuffer y : read_write u32[] @0;\nshared s : u32[4];\n"
      "{ s[0] = 1; grid_barrier(); y[0] = 1; }\n";
  uint32_t y[1] = {0};
  vyre_input inputs[] = {{y, 4}};
  vyre_output outputs[] = {{y, 4}};
  vyre_check_report report = {0};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 1,
                             .outputs = outputs,
                             .output_count = 1,
                             .grid = {65536, 65536, 1},
                             .check = {.races = true},
                             .report = &report};
  vyre_status st;
  CHECK_FAILS(try_dispatch(text, &desc, &st), st, VYRE_UNSUPPORTED_FEATURE,
              VYRE_KIND_NOT_SUPPORTED);
  CHECK_U64(status_number(&st, "workgroups"), 1ull << 32);
  vyre_check_report_deinit(&report);
}

/* One difference is enough: the remaining schedules are skipped. */
TEST(schedules_end_at_the_first_difference) {
  static const char *const texts[] = {
      "kernel k workgroup(4)\nbuffer y : read_write u32[] @0;\n"
      "{ atomic_add(y[0], 1); }\n",
      "kernel k workgroup(4)\nbuffer y : read_write u32[] @0;\n"
      "{ atomic_exchange(y[0], global_id.x); }\n"};
  static const uint32_t want[] = {4, 1};
  for (int i = 0; i < 2; i++) {
    uint32_t y[4] = {0};
    vyre_input inputs[] = {{y, 16}};
    vyre_output outputs[] = {{y, 16}};
    vyre_check_report report = {0};
    vyre_dispatch_desc desc = {.inputs = inputs,
                               .input_count = 1,
                               .outputs = outputs,
                               .output_count = 1,
                               .check = {.schedules = 4},
                               .report = &report};
    vyre_status st;
    CHECK_OK(try_dispatch(texts[i], &desc, &st), st);
    CHECK_U64(report.schedules, want[i]);
    vyre_check_report_deinit(&report);
  }
}

TEST(accessors_accept_null) {
  CHECK_TEXT(vyre_device_name(NULL), "");
  CHECK_TEXT(vyre_pipeline_id(NULL), "");
  CHECK(!vyre_pipeline_program(NULL) && !vyre_pipeline_bindings(NULL));
  CHECK(!vyre_pipeline_workgroup(NULL));
  CHECK_TEXT(vyre_program_name(NULL), "");
  CHECK(!vyre_program_has_body(NULL) && !vyre_program_workgroup(NULL));
  CHECK(vyre_program_grid_buffer(NULL) == VYRE_NO_INDEX);
  CHECK_U64(vyre_program_fingerprint(NULL).low, 0);
  CHECK(vyre_module_kernel_count(NULL) == 0 && !vyre_module_kernel(NULL, 0));
  CHECK(!vyre_module_find(NULL, "k"));
}

TEST(null_arguments) {
  vyre_status st = {0};
  vyre_dispatch_desc desc = {0};
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  CHECK(vyre_device_open(NULL, NULL, &device, NULL) == VYRE_INVALID_ARGUMENT);
  CHECK(vyre_dispatch(NULL, &desc, &st) == VYRE_INVALID_ARGUMENT);
  CHECK(vyre_pipeline_compile(NULL, NULL, NULL, &pipeline, NULL, NULL) ==
        VYRE_INVALID_ARGUMENT);
  vyre_pipeline_release(NULL);
  vyre_device_release(NULL);
  vyre_check_report_deinit(NULL);
}

TEST(devices) {
  vyre_device *device = NULL;
  vyre_status st = {0};
  CHECK_FAILS(vyre_device_open(NULL, "abacus", &device, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK(!device);
  vyre_device_info info;
  for (size_t i = 0; vyre_device_info_at(i, &info); i++) {
    CHECK_HAS(st.fix, info.backend);
  }
  CHECK_HAS(st.fix, "ref");
  st = (vyre_status){0};
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_TEXT(vyre_device_name(device), "ref");
  vyre_device_release(vyre_device_retain(device));
  vyre_device_release(device);
  /* Best first, unavailable devices last: ref is before null, which auto never
   * takes, and no available device comes after null. */
  size_t ref = SIZE_MAX, null = SIZE_MAX;
  for (size_t i = 0; vyre_device_info_at(i, &info); i++) {
    if (strcmp(info.name, "ref") == 0) ref = i;
    if (strcmp(info.name, "null") == 0) null = i;
    CHECK(null == SIZE_MAX || null == i || !info.is_available);
  }
  CHECK(ref < null && null != SIZE_MAX);
  CHECK_OK(vyre_device_open(NULL, "auto", &device, &st), st);
  CHECK(strcmp(vyre_device_name(device), "null") != 0);
  vyre_device_release(device);
}

static vyre_code try_compile(const char *text,
                             const vyre_compile_options *options,
                             vyre_status *st) {
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  *st = (vyre_status){0};
  vyre_module *module = parse_module(text);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, st), *st);
  vyre_code code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0),
                                         options, &pipeline, NULL, st);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_module_release(module);
  return code;
}

TEST(programs_that_do_not_compile) {
  vyre_status st;
  CHECK_FAILS(try_compile("kernel q queue(u32)\nbuffer y : "
                          "read_write u32[] @0;\n{ y[item] = 1; }\n",
                          NULL, &st),
              st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "queue");
  vyre_compile_options options = {.workgroup = {64, 64}};
  CHECK_FAILS(try_compile(saxpy, &options, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  vyre_program_desc desc = {.workgroup = {1, 1, 1}};
  vyre_program *program = NULL;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  st = (vyre_status){0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_FAILS(
      vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, &st), st,
      VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  vyre_device_release(device);
  vyre_program_release(program);
}

TEST(workgroups_of_three_axes_and_overrides) {
  static const char text[] =
      "kernel k workgroup(2, 3, 2)\nbuffer y : write u32[] @0;\n"
      "{ let g = global_id.x + 4 * (global_id.y + 6 * global_id.z);\n"
      "  y[g] = local_id.x + 10 * local_id.y + 100 * local_id.z + 1000; }\n";
  static uint32_t y[4 * 6 * 2];
  vyre_output outputs[] = {{y, sizeof y}};
  vyre_dispatch_desc desc = {
      .outputs = outputs, .output_count = 1, .grid = {2, 2, 1}};
  run(text, &desc);
  for (uint32_t i = 0; i < 48; i++) {
    uint32_t x = i % 4 % 2, row = i / 4 % 6 % 3, z = i / 24;
    CHECK_U64(y[i], x + 10 * row + 100 * z + 1000);
  }
  vyre_compile_options options = {.workgroup = {0, 8}};
  vyre_status st;
  CHECK_OK(try_compile(text, &options, &st), st);
}

TEST(a_pipeline_for_another_workgroup_has_another_id) {
  static const char text[] =
      "kernel k workgroup(4)\nbuffer y : write u32[] @0;\n"
      "{ y[global_id.x] = 1; }\n";
  vyre_status st = {0};
  vyre_module *module;
  vyre_device *device;
  vyre_allocator heap = vyre_allocator_heap();
  CHECK_OK(vyre_module_parse(text, strlen(text), "t", heap, &module, NULL, &st),
           st);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  vyre_program *program = vyre_module_kernel(module, 0);
  vyre_pipeline *pipelines[3];
  static const vyre_compile_options options[3] = {
      {{0}}, {.workgroup = {4, 1, 1}}, {.workgroup = {8, 1, 1}}};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_pipeline_compile(device, program, &options[i], &pipelines[i],
                                   NULL, &st),
             st);
  }
  CHECK_TEXT(vyre_pipeline_id(pipelines[1]), vyre_pipeline_id(pipelines[0]));
  CHECK_HAS(vyre_pipeline_id(pipelines[2]), ":8x1x1");
  for (int i = 0; i < 3; i++) vyre_pipeline_release(pipelines[i]);
  vyre_device_release(device);
  vyre_module_release(module);
}

TEST(fuel_and_time) {
  static const char text[] =
      "kernel k workgroup(4)\nbuffer y : read_write u32[] @0;\n{\n"
      "  let i = global_id.x;\n"
      "  while (y[i] < 1000) {\n    y[i] += 1;\n  }\n}\n";
  uint32_t y[4] = {0, 900, 0, 0};
  vyre_input inputs[] = {{y, 16}};
  vyre_output outputs[] = {{y, 16}};
  vyre_status st;
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 1,
                             .outputs = outputs,
                             .output_count = 1,
                             .max_loop_iterations = 1000};
  CHECK_OK(try_dispatch(text, &desc, &st), st);
  memset(y, 0, sizeof y);
  desc.max_loop_iterations = 999;
  CHECK_FAILS(try_dispatch(text, &desc, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_OUT_OF_FUEL);
  CHECK_U64(status_number(&st, "line"), 5);
  CHECK_HAS(st.fix, "max_loop_iterations");
  static const char forever[] =
      "kernel k\nbuffer y : read_write u32[] @0;\n"
      "{ while (true) { y[0] += 1; } }\n";
  desc.max_loop_iterations = 0;
  desc.timeout_ns = 20000000;
  CHECK_FAILS(try_dispatch(forever, &desc, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_TIMED_OUT);
}

/* --- print -----------------------------------------------------------------*/

typedef struct collected {
  char text[512];
  size_t length, space;
} collected;

static bool collect(void *self, const char *text, size_t length) {
  collected *c = self;
  if (c->length + length > c->space) return false;
  memcpy(c->text + c->length, text, length);
  c->length += length;
  return true;
}

TEST(print_shows_values) {
  static const char text[] =
      "kernel k workgroup(3)\nbuffer y : write u32[] @0;\n{\n"
      "  let i = global_id.x;\n"
      "  if (i != 1) print(\"i=\", i, i + 1, \" f=\", f32(i) + 0.1, true, -1, "
      "nan);\n"
      "  print(1.0d / 3.0d, inf, 16777216.0);\n"
      "  y[i] = i;\n}\n";
  uint32_t y[3];
  vyre_output outputs[] = {{y, 12}};
  collected c = {.space = sizeof c.text - 1};
  vyre_dispatch_desc desc = {
      .outputs = outputs, .output_count = 1, .print = {collect, &c}};
  run(text, &desc);
  CHECK_TEXT(c.text,
             "i=0 1 f=0.1 true -1 nan\n"
             "i=2 3 f=2.1 true -1 nan\n"
             "0.3333333333333333 inf 16777216\n"
             "0.3333333333333333 inf 16777216\n"
             "0.3333333333333333 inf 16777216\n");
  c = (collected){.space = 5};
  vyre_status st;
  CHECK_FAILS(try_dispatch(text, &desc, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_WRITER_REFUSED);
}

/* --- memory ----------------------------------------------------------------*/

static vyre_code whole_life(vyre_allocator allocator, vyre_status *st) {
  static const char text[] =
      "fn f(a: u32) -> u32 { return a + 1; }\n"
      "kernel k workgroup(4)\nbuffer y : read_write u32[] @0;\n"
      "buffer z : write u32[] @1;\nshared s : u32[4];\n"
      "{ let i = global_id.x; s[local_id.x] = f(y[i]); grid_barrier();\n"
      "  z[atomic_add(y[0], 1)] = y[i + 9] + i; y[3] = 2; }\n";
  vyre_module *module = NULL;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_check_report report = {.arena = {.allocator = allocator}};
  uint32_t y[8] = {0}, z[8];
  vyre_input inputs[] = {{y, 32}};
  vyre_output outputs[] = {{y, 32}, {z, 32}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 1,
                             .outputs = outputs,
                             .output_count = 2,
                             .check = {true, true, 4, 1},
                             .report = &report};
  vyre_code code = vyre_module_parse(text, strlen(text), "t.vyre",
                                     (vyre_allocator){0}, &module, NULL, st);
  if (code == VYRE_OK) code = open_with(allocator, "ref", &device, st);
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, st);
  }
  if (code == VYRE_OK) code = vyre_dispatch(pipeline, &desc, st);
  if (code == VYRE_OK) CHECK(report.count >= 3);
  vyre_check_report_deinit(&report);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_module_release(module);
  return code;
}

/* A print writer, called in the middle of a dispatch. */
static bool change_uniform(void *self, const char *text, size_t length) {
  (void)text;
  (void)length;
  *(uint32_t *)self = 99;
  return true;
}

TEST(a_uniform_does_not_change_while_a_dispatch_runs) {
  uint32_t q[2] = {7, 8}, y[3] = {0};
  vyre_input inputs[] = {{q, sizeof q}};
  vyre_output outputs[] = {{y, sizeof y}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 1,
                             .outputs = outputs,
                             .output_count = 1,
                             .print = {change_uniform, q}};
  run("kernel k workgroup(1)\nuniform q : u32[2] @0;\n"
      "buffer y : write u32[3] @1;\n"
      "{ y[0] = q[0]; print(q[0]); y[1] = q[0]; grid_barrier(); "
      "y[2] = q[0]; }\n",
      &desc);
  CHECK_U64(q[0], 99);
  for (int i = 0; i < 3; i++) CHECK_U64(y[i], 7);
}

TEST(runs_out_of_memory_cleanly) {
  CHECK(sweep_allocations(whole_life) > 5);
}

TEST_MAIN(TEST_ENTRY(control_flow), TEST_ENTRY(evaluation),
          TEST_ENTRY(ids_and_lengths), TEST_ENTRY(outside_a_buffer),
          TEST_ENTRY(shared_memory_and_barriers), TEST_ENTRY(atomics),
          TEST_ENTRY(grid_barriers), TEST_ENTRY(saxpy_in_place_and_apart),
          TEST_ENTRY(outputs_begin_as_zero),
          TEST_ENTRY(bad_bindings_are_refused),
          TEST_ENTRY(memory_of_no_bytes_overlaps_with_nothing),
          TEST_ENTRY(checks_refuse_grids_that_they_cannot_count),
          TEST_ENTRY(schedules_end_at_the_first_difference),
          TEST_ENTRY(accessors_accept_null), TEST_ENTRY(null_arguments),
          TEST_ENTRY(devices), TEST_ENTRY(programs_that_do_not_compile),
          TEST_ENTRY(workgroups_of_three_axes_and_overrides),
          TEST_ENTRY(a_pipeline_for_another_workgroup_has_another_id),
          TEST_ENTRY(fuel_and_time), TEST_ENTRY(print_shows_values),
          TEST_ENTRY(a_uniform_does_not_change_while_a_dispatch_runs),
          TEST_ENTRY(runs_out_of_memory_cleanly))
