/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Regression tests for driver bugs and small driver limits. Some occur on
 * software devices only, but every device must pass. */
#include <pthread.h>
#include <time.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"

static const char device_name[] = "vulkan";

/* --- the test rig --------------------------------------------------------- */

typedef struct rig {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipeline;
} rig;

static void rig_open_on(rig *r, const char *device, const char *text) {
  const vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  vyre_status st = {0};
  *r = (rig){0};
  CHECK_OK(vyre_context_create(&options, &r->context, &st), st);
  CHECK_OK(vyre_device_open(r->context, device, &r->device, &st), st);
  r->module = parse_module(text);
  CHECK_OK(vyre_pipeline_compile(r->device, vyre_module_kernel(r->module, 0),
                                 NULL, &r->pipeline, NULL, &st),
           st);
}

static void rig_open(rig *r, const char *text) {
  rig_open_on(r, device_name, text);
}

static void rig_close(rig *r) {
  vyre_pipeline_release(r->pipeline);
  vyre_module_release(r->module);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
}

/* Runs the kernel on @p words in place, with the uniform @p n. */
static vyre_code run_words(rig *r, uint32_t *words, size_t count, uint32_t n,
                           const uint32_t grid[3], vyre_status *st) {
  vyre_input in[] = {vyre_input_bytes(words, 4 * count),
                     vyre_input_bytes(&n, 4)};
  vyre_output out[] = {vyre_output_bytes(words, 4 * count)};
  const vyre_dispatch_desc desc = {.inputs = in,
                                   .input_count = 2,
                                   .outputs = out,
                                   .output_count = 1,
                                   .grid = {grid[0], grid[1], grid[2]}};
  return vyre_dispatch(r->pipeline, &desc, st);
}

/* --- 65,535 loop iterations ----------------------------------------------- */

/* Checks that the result is exact, or that the dispatch ran out of fuel. A loop
 * must never end early without an error. */
static void check_iterations(const char *text, uint32_t n,
                             uint32_t (*want)(uint32_t n)) {
  static const uint32_t grid[3] = {1, 1, 1};
  enum { LANES = 8 };
  rig r;
  vyre_status st = {0};
  uint32_t got[LANES];
  memset(got, 0xAA, sizeof got);
  rig_open(&r, text);
  vyre_code code = run_words(&r, got, LANES, n, grid, &st);
  if (code == VYRE_OK) {
    for (int i = 0; i < LANES; i++) {
      if (got[i] != want(n)) printf("    with n = %u\n", n);
      CHECK_U64(got[i], want(n));
    }
  } else {
    CHECK_U64(st.kind, VYRE_KIND_OUT_OF_FUEL);
    CHECK(st.message[0] && st.fix[0]);
  }
  rig_close(&r);
}

/* Below half of the limit, no device may fail. */
static void check_few_iterations(const char *text, uint32_t n,
                                 uint32_t (*want)(uint32_t n)) {
  static const uint32_t grid[3] = {1, 1, 1};
  rig r;
  vyre_status st = {0};
  uint32_t got[8] = {0};
  rig_open(&r, text);
  CHECK_OK(run_words(&r, got, 8, n, grid, &st), st);
  for (int i = 0; i < 8; i++) CHECK_U64(got[i], want(n));
  rig_close(&r);
}

#define HEAD                          \
  "kernel k workgroup(8)\n"           \
  "buffer y : read_write u32[] @0;\n" \
  "uniform n : u32 @1;\n"             \
  "{ let i = global_id.x; if (i >= len(y)) return; var s = 0u;\n"

static const char counted[] =
    HEAD "for (let k = 0u; k < n; k++) { s = s * 3 + k; } y[i] = s; }\n";
static const char known[] = HEAD
    "for (let k = 0u; k < 100000; k++) { s = s * 3 + k; } y[i] = s + n; }\n";
static const char nested[] = HEAD
    "for (let k = 0u; k < n; k++) { for (let m = 0u; m < n; m++) "
    "{ s = s * 3 + m; } s += k; } y[i] = s; }\n";
static const char searching[] =
    HEAD "while (s < n) { if (s == 4000000000) break; s += 1; } y[i] = s; }\n";
static const char two[] = HEAD
    "for (let k = 0u; k < n; k++) { s = s * 3 + k; }\n"
    "for (let k = 0u; k < n; k++) { s = s * 5 + k; } y[i] = s; }\n";

static uint32_t want_counted(uint32_t n) {
  uint32_t s = 0;
  for (uint32_t k = 0; k < n; k++) s = s * 3 + k;
  return s;
}

static uint32_t want_known(uint32_t n) {
  return want_counted(100000) + n;
}

static uint32_t want_nested(uint32_t n) {
  uint32_t s = 0;
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t m = 0; m < n; m++) s = s * 3 + m;
    s += k;
  }
  return s;
}

static uint32_t want_searching(uint32_t n) {
  return n;
}

static uint32_t want_two(uint32_t n) {
  uint32_t s = want_counted(n);
  for (uint32_t k = 0; k < n; k++) s = s * 5 + k;
  return s;
}

TEST(short_loops_run) {
  check_few_iterations(counted, 30000, want_counted);
  check_few_iterations(nested, 150, want_nested);
  check_few_iterations(searching, 30000, want_searching);
  check_few_iterations(two, 15000, want_two);
}

TEST(loops_of_65536_iterations_are_exact_or_fail) {
  static const uint32_t iterations[] = {64999, 65534,  65535,  65536,
                                        65537, 131072, 1000000};
  for (size_t i = 0; i < sizeof iterations / sizeof iterations[0]; i++) {
    check_iterations(counted, iterations[i], want_counted);
  }
}

TEST(constant_loops_are_exact_or_fail) {
  check_iterations(known, 1, want_known);
}

TEST(nested_loops_are_exact_or_fail) {
  check_iterations(nested, 256, want_nested);
  check_iterations(nested, 300, want_nested);
}

TEST(while_loops_are_exact_or_fail) {
  check_iterations(searching, 65536, want_searching);
  check_iterations(searching, 200000, want_searching);
}

TEST(consecutive_loops_are_exact_or_fail) {
  check_iterations(two, 40000, want_two);
}

/* --- 65,535 workgroups per axis ------------------------------------------- */

static const char ids[] =
    "kernel ids workgroup(1)\n"
    "buffer y : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ let row = workgroup_id.z * grid_size.y + workgroup_id.y;\n"
    "  let at = row * grid_size.x + workgroup_id.x;\n"
    "  if (at < len(y)) y[at] = at * 3 + n; }\n";

static void check_grid(uint32_t x, uint32_t y, uint32_t z) {
  rig r;
  vyre_status st = {0};
  size_t count = (size_t)x * y * z;
  const uint32_t grid[3] = {x, y, z};
  uint32_t *words = calloc(count, 4);
  CHECK(words);
  rig_open(&r, ids);
  vyre_code code = run_words(&r, words, count, 7, grid, &st);
  CHECK_OK(code, st);
  size_t wrong = 0;
  for (size_t i = 0; i < count; i++) wrong += words[i] != (uint32_t)(i * 3 + 7);
  CHECK_U64(wrong, 0);
  free(words);
  rig_close(&r);
}

TEST(more_than_65535_workgroups_on_x) {
  check_grid(65536, 1, 1);
  check_grid(150001, 1, 1);
}

TEST(more_than_65535_workgroups_on_y) {
  check_grid(1, 70001, 1);
}

TEST(more_than_65535_workgroups_on_z) {
  check_grid(1, 1, 70001);
}

TEST(more_than_65535_workgroups_on_two_axes) {
  check_grid(65537, 2, 1);
  check_grid(2, 65537, 2);
}

/* --- the range of a storage buffer ---------------------------------------- */

static const char last_element[] =
    "kernel last workgroup(1)\n"
    "buffer y : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ y[len(y) - 1] = len(y) + n; y[0] = n; }\n";

TEST(the_largest_buffer_is_accessible_to_its_end) {
  rig r;
  vyre_status st = {0};
  vyre_buffer y;
  uint32_t n = 5, got[2] = {0};
  rig_open(&r, last_element);
  uint64_t max = vyre_device_get_caps(r.device)->max_buffer_bytes;
  /* Large enough for the test. */
  if (max > (uint64_t)128 << 20) max = (uint64_t)128 << 20;
  CHECK_OK(vyre_buffer_create(r.device, max, &y, &st), st);
  vyre_input in[] = {vyre_input_buffer(y), vyre_input_bytes(&n, 4)};
  vyre_output out[] = {vyre_output_buffer(y)};
  const vyre_dispatch_desc desc = {.inputs = in,
                                   .input_count = 2,
                                   .outputs = out,
                                   .output_count = 1,
                                   .grid = {1}};
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  CHECK_OK(vyre_buffer_download(r.device, y, 0, &got[0], 4, &st), st);
  CHECK_OK(vyre_buffer_download(r.device, y, max - 4, &got[1], 4, &st), st);
  CHECK_U64(got[0], 5);
  CHECK_U64(got[1], max / 4 + 5);
  CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
  rig_close(&r);
}

TEST(too_large_device_buffers_report_both_numbers) {
  rig r;
  vyre_status st = {0};
  vyre_buffer y;
  char text[32];
  rig_open(&r, last_element);
  uint64_t max = vyre_device_get_caps(r.device)->max_buffer_bytes;
  vyre_code code = vyre_buffer_create(r.device, max + 4, &y, &st);
  CHECK_U64(code, VYRE_INVALID_ARGUMENT);
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)max);
  CHECK_HAS(st.message, text);
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)max + 4);
  CHECK_HAS(st.message, text);
  CHECK(st.fix[0]);
  rig_close(&r);
}

TEST(too_large_host_buffers_report_the_limit) {
  static const uint32_t grid[3] = {1, 1, 1};
  rig r;
  vyre_status st = {0};
  char text[32];
  rig_open(&r, last_element);
  uint64_t max = vyre_device_get_caps(r.device)->max_buffer_bytes;
  if (max <= (uint64_t)1 << 30) {
    size_t count = (size_t)max / 4 + 1;
    uint32_t *words = calloc(count, 4);
    CHECK(words);
    vyre_code code = run_words(&r, words, count, 1, grid, &st);
    CHECK(code != VYRE_OK);
    CHECK(st.fix[0]);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)max);
    CHECK_HAS(st.message, text);
    CHECK_U64(words[0], 0);
    free(words);
  }
  rig_close(&r);
}

/* --- late compilation ----------------------------------------------------- */

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Writes a kernel that takes a while to compile. The constants differ each
 * time, so that no cache has it. */
static void write_long_kernel(char *text, size_t size, unsigned seed) {
  int length = snprintf(text, size, "%s", HEAD "var f = f32(i);\n");
  for (unsigned k = 0; k < 2; k++) {
    length += snprintf(text + length, size - (size_t)length,
                       "f = sin(f) + exp(f * 0.5) * %u.0;\n", seed + k);
  }
  (void)snprintf(text + length, size - (size_t)length,
                 "y[i] = u32(f) + n + s; }\n");
}

/* The first dispatch must be much faster than compiling, also with drivers that
 * compile late: vyre warms them up. On a busy machine one of three attempts is
 * enough. */
TEST(the_first_dispatch_does_not_compile) {
  static char text[8192];
  static const uint32_t grid[3] = {1, 1, 1};
  bool is_fast = false;
  unsigned seed = (unsigned)time(NULL) % 10000u * 100u;
  for (unsigned pass = 0; pass < 3 && !is_fast; pass++) {
    rig r;
    vyre_status st = {0};
    uint32_t words[8] = {0};
    write_long_kernel(text, sizeof text, seed + pass * 20);
    double start = now_ms();
    rig_open(&r, text);
    double compiled = now_ms() - start;
    start = now_ms();
    CHECK_OK(run_words(&r, words, 8, 1, grid, &st), st);
    double first = now_ms() - start;
    is_fast = first < compiled / 5;
    printf("    compiled in %.1f ms, first dispatch %.3f ms\n", compiled,
           first);
    rig_close(&r);
  }
  CHECK(is_fast);
}

/* --- several kinds of devices --------------------------------------------- */

static const char mixed[] =
    "kernel mixed workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ let i = global_id.x; if (i >= len(y)) return;\n"
    "  let f = exp(f32(i) * 0.001) / (f32(n) + 0.7);\n"
    "  y[i] = as_u32(sqrt(f) + sin(f)) ^ (y[i] * 31); }\n";

enum { WORDS = 2048, PASSES = 20 };

typedef struct runner {
  const char *device;
  uint32_t words[WORDS];
  vyre_status st;
} runner;

/* No CHECK here: a failed one would leave the thread. */
static void *run_mixed(void *self) {
  runner *it = self;
  const vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  vyre_module *module = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_status *st = &it->st;
  vyre_code code = vyre_context_create(&options, &context, st);
  if (code == VYRE_OK)
    code = vyre_device_open(context, it->device, &device, st);
  if (code == VYRE_OK) {
    code = vyre_module_parse(mixed, strlen(mixed), "k", (vyre_allocator){0},
                             &module, NULL, st);
  }
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, st);
  }
  for (uint32_t pass = 0; pass < PASSES && code == VYRE_OK; pass++) {
    rig r = {.pipeline = pipeline};
    static const uint32_t grid[3] = {WORDS / 64, 1, 1};
    code = run_words(&r, it->words, WORDS, pass, grid, st);
  }
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  vyre_device_release(device);
  vyre_context_release(context);
  return NULL;
}

TEST(cpu_and_vulkan_run_at_once_in_one_process) {
  static runner runners[3];
  static const char *const names[3] = {"cpu", "vulkan", "ref"};
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) {
    runners[i].device = names[i];
    for (uint32_t k = 0; k < WORDS; k++) runners[i].words[k] = k * 2654435761u;
    CHECK(pthread_create(&threads[i], NULL, run_mixed, &runners[i]) == 0);
  }
  for (int i = 0; i < 3; i++) (void)pthread_join(threads[i], NULL);
  for (int i = 0; i < 3; i++) CHECK_OK(runners[i].st.code, runners[i].st);
  CHECK(memcmp(runners[0].words, runners[2].words, sizeof runners[0].words) ==
        0);
  CHECK(memcmp(runners[1].words, runners[2].words, sizeof runners[1].words) ==
        0);
}

/* --- vectors and signs ---------------------------------------------------- */

/* llvmpipe also runs the unused invocations of the last vector; their loads
 * return 0. The trip count of a loop with barriers must not depend on them. */
TEST(barriers_in_loops_with_partial_vectors) {
  enum { SIZE = 13, GROUPS = 9 };
  static const char text[] =
      "kernel k workgroup(13)\n"
      "buffer y : read_write u32[] @0;\n"
      "uniform odd : u32 @1;\n"
      "buffer rounds : read u32[] @2;\n"
      "{\n"
      "    for (let k = 0u; k < 1u + (rounds[workgroup_id.x % 2] +\n"
      "         workgroup_id.x) % 2; k++) {\n"
      "        barrier();\n"
      "        y[global_id.x] = y[global_id.x] + odd;\n"
      "        barrier();\n"
      "    }\n"
      "    y[global_id.x] = y[global_id.x] + 100;\n"
      "}\n";
  uint32_t y[SIZE * GROUPS] = {0}, odd = 1;
  const uint32_t iterations[2] = {0, 1};
  rig r;
  rig_open(&r, text);
  const vyre_input in[] = {vyre_input_bytes(y, sizeof y),
                           vyre_input_bytes(&odd, sizeof odd),
                           vyre_input_bytes(iterations, sizeof iterations)};
  const vyre_output out[] = {vyre_output_bytes(y, sizeof y)};
  const vyre_dispatch_desc desc = {.inputs = in,
                                   .input_count = 3,
                                   .outputs = out,
                                   .output_count = 1,
                                   .grid = {GROUPS, 1, 1}};
  vyre_status st = {0};
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
  for (uint32_t i = 0; i < SIZE * GROUPS; i++) {
    uint32_t group = i / SIZE;
    CHECK_U64(y[i], 101 + (iterations[group % 2] + group) % 2);
  }
  rig_close(&r);
}

/* A compiler narrows 64-bit comparisons and loses the sign. */
TEST(sign_extended_comparisons_keep_the_sign) {
  static const char text[] =
      "kernel k workgroup(1)\n"
      "buffer y : read_write u32[] @0;\n"
      "uniform n : u32 @1;\n"
      "{\n"
      "    let i = global_id.x;\n"
      "    let x = i64(as_i32(y[i] + n));\n"
      "    y[i] = u32(x < 0l) | u32(0l < x) << 1 | u32(x <= -1l) << 2 |\n"
      "           u32(1l <= x) << 3 | u32(x == -2l) << 4 | u32(x > -3l) << 5;\n"
      "}\n";
  static const int32_t inputs[] = {0, 1, -1, -2, -3, INT32_MIN, INT32_MAX};
  enum { COUNT = sizeof inputs / sizeof inputs[0] };
  uint32_t y[COUNT];
  const uint32_t grid[3] = {COUNT, 1, 1};
  vyre_status st = {0};
  rig r;
  rig_open(&r, text);
  memcpy(y, inputs, sizeof y);
  CHECK_OK(run_words(&r, y, COUNT, 0, grid, &st), st);
  for (int i = 0; i < COUNT; i++) {
    int64_t x = inputs[i];
    CHECK_U64(y[i], (unsigned)(x < 0) | (unsigned)(0 < x) << 1 |
                        (unsigned)(x <= -1) << 2 | (unsigned)(1 <= x) << 3 |
                        (unsigned)(x == -2) << 4 | (unsigned)(x > -3) << 5);
  }
  rig_close(&r);
}

/* abs(INT32_MIN) is INT32_MIN. */
TEST(abs_of_the_minimum_is_negative) {
  static const char text[] =
      "kernel k workgroup(1)\n"
      "buffer y : read_write u32[] @0;\n"
      "uniform n : u32 @1;\n"
      "{\n"
      "    let i = global_id.x;\n"
      "    y[i] = as_u32(abs(abs(as_i32(y[i])) >> (n + 4)));\n"
      "}\n";
  static const int32_t inputs[] = {0, 1, -1, -256, INT32_MIN, INT32_MAX};
  static const uint32_t want[] = {0, 0, 0, 16, 1u << 27, INT32_MAX >> 4};
  enum { COUNT = sizeof inputs / sizeof inputs[0] };
  uint32_t y[COUNT];
  const uint32_t grid[3] = {COUNT, 1, 1};
  vyre_status st = {0};
  rig r;
  rig_open(&r, text);
  memcpy(y, inputs, sizeof y);
  CHECK_OK(run_words(&r, y, COUNT, 0, grid, &st), st);
  for (int i = 0; i < COUNT; i++) CHECK_U64(y[i], want[i]);
  rig_close(&r);
}

static const test_case all_cases[] = {
    TEST_ENTRY(short_loops_run),
    TEST_ENTRY(loops_of_65536_iterations_are_exact_or_fail),
    TEST_ENTRY(constant_loops_are_exact_or_fail),
    TEST_ENTRY(nested_loops_are_exact_or_fail),
    TEST_ENTRY(while_loops_are_exact_or_fail),
    TEST_ENTRY(consecutive_loops_are_exact_or_fail),
    TEST_ENTRY(more_than_65535_workgroups_on_x),
    TEST_ENTRY(more_than_65535_workgroups_on_y),
    TEST_ENTRY(more_than_65535_workgroups_on_z),
    TEST_ENTRY(more_than_65535_workgroups_on_two_axes),
    TEST_ENTRY(the_largest_buffer_is_accessible_to_its_end),
    TEST_ENTRY(too_large_device_buffers_report_both_numbers),
    TEST_ENTRY(too_large_host_buffers_report_the_limit),
    TEST_ENTRY(the_first_dispatch_does_not_compile),
    TEST_ENTRY(barriers_in_loops_with_partial_vectors),
    TEST_ENTRY(sign_extended_comparisons_keep_the_sign),
    TEST_ENTRY(abs_of_the_minimum_is_negative),
    TEST_ENTRY(cpu_and_vulkan_run_at_once_in_one_process)};

int main(int argc, char **argv) {
  vyre_device_info info;
  bool is_available = false;
  for (size_t i = 0; vyre_device_info_at(i, &info); i++) {
    if (strcmp(info.backend, device_name) != 0) continue;
    is_available = is_available || info.is_available;
    if (!info.is_available) printf("%s\n", info.note);
  }
  if (!is_available) {
    printf("skipped: no Vulkan device\n");
    return 77;
  }
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}
