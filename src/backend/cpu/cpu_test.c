/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The device through the public API: guarantees beyond the conformance
 * suite. */
#include <time.h>
#include <xmmintrin.h>

#include "backend/cpu/cpu_testing.h"
#include "backend/cpu/jit/host_cpu.h"
#include "base/clock.h"

int setenv(const char *name, const char *value, int overwrite);

enum { COUNT = 4096 };

static const char twice[] =
    "kernel twice workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 2; }\n";

static void check_twice(rig *r) {
  static uint32_t y[COUNT];
  vyre_status st = {0};
  vyre_dispatch_desc desc = {0};
  for (uint32_t i = 0; i < COUNT; i++) y[i] = i * 77;
  CHECK_OK(run_in_place(r, y, sizeof y, &desc, &st), st);
  for (uint32_t i = 0; i < COUNT; i++) CHECK_U64(y[i], (uint32_t)(i * 154));
}

/* --- memory ----------------------------------------------------------------*/

TEST(memory_of_the_host_is_used_in_place) {
  rig r;
  rig_open(&r, twice);
  vyre_status st = {0};
  vyre_copy_report copies;
  unsigned char bytes[4 * COUNT + 1] = {1};
  for (int shift = 0; shift < 2; shift++) { /* any address is valid */
    vyre_dispatch_desc desc = {.copies = &copies, .require_zero_copy = true};
    CHECK_OK(run_in_place(&r, bytes + shift, (size_t)4 * COUNT, &desc, &st),
             st);
    CHECK_U64(copies.copied_bytes, 0);
    CHECK_U64(copies.copies, 0);
    CHECK_U64(copies.borrowed_bytes, (size_t)4 * COUNT);
  }
  CHECK_U64(bytes[0], 2);
  rig_close(&r);
}

static const char tile[] =
    "kernel tile workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "shared t : u32[64];\n"
    "{\n    let i = global_id.x;\n    t[local_id.x] = y[i];\n"
    "    barrier();\n    y[i] = t[63 - local_id.x];\n}\n";

TEST(a_warm_dispatch_never_allocates) {
  static const char kept[] =
      "kernel kept workgroup(64) over(y)\n"
      "buffer y : read_write u32[] @0;\n"
      "{\n    let i = global_id.x;\n    let v = y[i];\n    grid_barrier();\n"
      "    y[i] = v + y[len(y) - 1 - i] * 0;\n}\n";
  static const char *const texts[] = {twice, tile, kept};
  static uint32_t y[COUNT];
  for (int k = 0; k < 3; k++) {
    rig r;
    rig_open(&r, texts[k]);
    vyre_status st = {0};
    size_t before = 0;
    for (int round = 0; round < 20; round++) {
      vyre_dispatch_desc desc = {.timeout_ns =
                                     round % 2 ? UINT64_C(60000000000) : 0};
      if (round == 10) before = r.heap.calls;
      CHECK_OK(run_in_place(&r, y, sizeof y, &desc, &st), st);
    }
    /* A thread that slept before may take part and allocate its scratch. */
    CHECK(r.heap.calls - before <= 1);
    rig_close(&r);
  }
}

static vyre_code sweep_tier(vyre_allocator allocator, vyre_tier tier,
                            vyre_status *st) {
  rig r = {0};
  vyre_context_options options = {.allocator = allocator,
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = "cpu.threads=1"};
  static uint32_t y[COUNT];
  vyre_code code = vyre_context_create(&options, &r.context, st);
  if (code == VYRE_OK) {
    code = vyre_device_open(r.context, "cpu", &r.device, st);
  }
  r.module = parse_module(tile);
  if (code == VYRE_OK) {
    const vyre_compile_options how = {.tier = tier};
    code = vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                 &how, &r.pipeline, NULL, st);
  }
  vyre_dispatch_desc desc = {0};
  if (code == VYRE_OK) code = run_in_place(&r, y, sizeof y, &desc, st);
  vyre_pipeline_release(r.pipeline);
  vyre_module_release(r.module);
  vyre_device_release(r.device);
  vyre_context_release(r.context);
  return code;
}

static vyre_code sweep_optimised(vyre_allocator allocator, vyre_status *st) {
  return sweep_tier(allocator, VYRE_TIER_OPTIMISED, st);
}

static vyre_code sweep_baseline(vyre_allocator allocator, vyre_status *st) {
  return sweep_tier(allocator, VYRE_TIER_BASELINE, st);
}

TEST(out_of_memory_is_reported_without_a_leak) {
  CHECK(sweep_allocations(sweep_optimised) > 10);
  CHECK(sweep_allocations(sweep_baseline) > 10);
}

/* --- time ------------------------------------------------------------------*/

static uint64_t run_until(rig *r, uint32_t groups, uint64_t timeout_ns,
                          bool is_timed) {
  static uint32_t y[COUNT];
  vyre_status st = {0};
  vyre_timing timing;
  vyre_dispatch_desc desc = {.timeout_ns = timeout_ns,
                             .grid = {groups, 1, 1},
                             .timing = is_timed ? &timing : NULL};
  uint64_t start = vyre__clock_ns();
  CHECK_FAILS(run_in_place(r, y, sizeof y, &desc, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  uint64_t took = vyre__clock_ns() - start;
  CHECK_U64(status_number(&st, "timeout_ns"), timeout_ns);
  CHECK(!is_timed || timing.wall_ns <= took);
  return took;
}

TEST(a_kernel_that_never_ends_ends_at_its_timeout) {
  static const char *const texts[] = {
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ var n = 0u; while (n < 1) { y[0] = y[0] + 1; } }\n",
      /* one lane */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ var n = 0u; while (n < 1) { if (local_id.x != 7) n = 1; } }\n",
      /* no loop, but an endless number of workgroups */
      "kernel endless workgroup(1) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ y[global_id.x % 4] = select(sin(f32(global_id.x)) > 2.0, 1u, 0u); }\n",
      /* the same with a barrier */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "shared t : u32[64];\n"
      "{ for (let k = 0u; k < 4294967295; k++) { t[local_id.x] = k; barrier();"
      " } y[0] = t[1]; }\n",
      /* an endless number of short launches */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ for (let k = 0u; k < 60000000; k++) { y[0] = k; grid_barrier(); } }\n",
      /* host loops that launch nothing */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ for (let k = 0u; k < 60000000; k++) {"
      " for (let n = len(y); n < 1; n++) { grid_barrier(); } } }\n",
      /* short loops, but long rows of invocations */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ var s = f32(global_id.x);\n"
      "  for (let k = 0u; k < 4000; k++) { s = sin(s) + 1.0; }\n"
      "  y[global_id.x % 4] = u32(s); }\n",
      /* the same, run often */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ var s = f32(global_id.x);\n"
      "  for (let j = 0u; j < 60000; j++) {\n"
      "    for (let k = 0u; k < 4000; k++) { s = sin(s) + 1.0; } }\n"
      "  y[global_id.x % 4] = u32(s); }\n",
      /* in an endless loop */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ var s = f32(global_id.x);\n"
      "  while (s < 9.0) {\n"
      "    for (let k = 0u; k < 60000; k++) { s = sin(s) + 1.0; } }\n"
      "  y[global_id.x % 4] = u32(s); }\n",
      /* endless workgroups that share vectors */
      "kernel endless workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
      "{ let i = global_id.x; var s = sin(f32(i)); s = tan(s + 1.0);"
      " s = cbrt(exp(s)); s = sinh(tan(s)); s = cbrt(exp(s)); s = tan(sinh(s));"
      " y[i % 9 + i / 9] = as_u32(s); }\n"};
  static const uint32_t groups[][3] = {
      {1, 9}, {1, 9},    {4000000000u}, {1, 9}, {1, 9},
      {1, 9}, {1 << 17}, {1, 9},        {1, 9}, {60000000u}};
  for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
    rig r;
    rig_open(&r, texts[k]);
    for (int i = 0; i < 6 && groups[k][i / 2]; i++) {
      uint64_t took = run_until(&r, groups[k][i / 2], 30000000, i % 2 == 1);
      CHECK(took >= 30000000 && took < UINT64_C(5000000000));
    }
    rig_close(&r);
  }
}

TEST(fuel_ends_a_loop) {
  rig r;
  rig_open(&r,
           "kernel k workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
           "{ var n = 0u; while (n < y[global_id.x]) { n = n + 1; }"
           " y[global_id.x] = n; }\n");
  uint32_t y[64] = {0};
  y[17] = 1000;
  vyre_status st = {0};
  vyre_dispatch_desc desc = {.max_loop_iterations = 1001};
  CHECK_OK(run_in_place(&r, y, sizeof y, &desc, &st), st);
  CHECK_U64(y[17], 1000);
  desc.max_loop_iterations = 999;
  CHECK_FAILS(run_in_place(&r, y, sizeof y, &desc, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
  CHECK_U64(status_number(&st, "max_iterations"), 999);
  rig_close(&r);
}

/* Compiled code counts to 2^32-1. A higher limit is refused if the kernel may
 * exceed that number. */
TEST(limits_above_the_counter_range_are_refused) {
  static const uint64_t limits[] = {0, UINT32_MAX},
                        above[] = {UINT64_C(5000000000), UINT64_MAX};
  rig r;
  rig_open(&r,
           "kernel k workgroup(64) over(y)\nbuffer y : read_write u32[] @0;\n"
           "{ for (let i = 0u; i < 70000; i++) for (let k = 0u; k < 70000; k++)"
           " { y[global_id.x] += i ^ k; } }\n");
  uint32_t y[64] = {0};
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    vyre_status st = {0};
    vyre_dispatch_desc desc = {.max_loop_iterations = limits[i]};
    CHECK_FAILS(run_in_place(&r, y, sizeof y, &desc, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
    CHECK_U64(status_number(&st, "device_max_iterations"), UINT32_MAX);
    CHECK_HAS(st.message, "past 4294967295 iterations");
    CHECK_HAS(st.fix, "'ref'");
  }
  for (size_t i = 0; i < sizeof above / sizeof above[0]; i++) {
    vyre_status st = {0};
    vyre_dispatch_desc desc = {.max_loop_iterations = above[i]};
    CHECK_FAILS(run_in_place(&r, y, sizeof y, &desc, &st), st,
                VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    CHECK_U64(status_number(&st, "max_iterations"), above[i]);
    CHECK_U64(status_number(&st, "device_max_iterations"), UINT32_MAX);
    CHECK_HAS(st.fix, "'ref'");
  }
  rig_close(&r);
}

TEST(device_time_is_reported_and_below_wall_time) {
  rig r;
  rig_open(&r, twice);
  static uint32_t y[1 << 20];
  vyre_status st = {0};
  vyre_timing timing = {0};
  vyre_dispatch_desc desc = {.timing = &timing};
  CHECK_OK(run_in_place(&r, y, sizeof y, &desc, &st), st);
  CHECK(timing.has_device && timing.device_ns > 0);
  CHECK(timing.device_ns <= timing.wall_ns);
  rig_close(&r);
}

/* --- floats ----------------------------------------------------------------*/

static const char tiny[] =
    "kernel tiny workgroup(64) over(y)\nbuffer y : read_write f32[] @0;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 0.5 / 3.0; }\n";

/* The caller flushes subnormals and rounds up. The kernel does neither, on any
 * thread, and the caller's settings are restored. */
TEST(the_callers_float_settings_change_no_result) {
  static float y[1 << 18];
  float want = 1.5e-38f * 0.5f / 3.0f;
  CHECK(want > 0 && want < 1.2e-38f);
  static const uint32_t states[] = {0x1f80, 0x9fc0, 0x5f80, 0x1fbf};
  for (uint32_t threads = 1; threads <= 3; threads += 2) {
    rig r = {.heap = {.left = -1}};
    vyre_context_options options = plain_options(&r);
    char text[32];
    (void)snprintf(text, sizeof text, "cpu.threads=%u", threads);
    options.backend_options = text;
    uint32_t kept = _mm_getcsr();
    _mm_setcsr(0x9fc0); /* threads inherit it */
    rig_begin(&r, &options, tiny);
    rig_compile(&r);
    for (int s = 0; s < 4; s++) {
      for (size_t i = 0; i < sizeof y / sizeof *y; i++) y[i] = 1.5e-38f;
      vyre_status st = {0};
      vyre_dispatch_desc desc = {0};
      _mm_setcsr(states[s]);
      vyre_code code = run_in_place(&r, y, sizeof y, &desc, &st);
      uint32_t after = _mm_getcsr();
      _mm_setcsr(kept);
      CHECK_OK(code, st);
      CHECK_U64(after & ~0x3fu, states[s] & ~0x3fu); /* flags may change */
      for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits */
        CHECK(memcmp(&y[i], &want, sizeof want) == 0);
      }
    }
    rig_close(&r);
  }
}

TEST(every_float_operation_is_right_as_the_table_says) {
  rig r;
  rig_open(&r, twice);
  vyre_float_op_info classes[128];
  size_t count;
  vyre_status st = {0};
  CHECK_OK(vyre_device_probe(r.device, classes, 128, &count, &st), st);
  CHECK_U64(count, vyre_device_get_caps(r.device)->float_op_count);
  for (size_t i = 0; i < count; i++) {
    if (classes[i].wrong) printf("    %s\n", classes[i].operation);
    CHECK(classes[i].tested > 100000 && classes[i].wrong == 0);
    CHECK(classes[i].mode == VYRE_FLOAT_MODE_NATIVE);
  }
  rig_close(&r);
}

/* --- code ------------------------------------------------------------------*/

/* Counts the mappings of the process whose line contains @p what. */
static int maps_with(const char *what) {
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  char line[512];
  int count = 0;
  while (fgets(line, sizeof line, maps)) count += strstr(line, what) != NULL;
  (void)fclose(maps);
  return count;
}

TEST(no_memory_of_the_process_is_writable_and_executable) {
  rig r;
  rig_open(&r, twice);
  check_twice(&r);
  CHECK_U64(maps_with(" rwxp "), 0);
  CHECK_U64(maps_with(" -wxp "), 0);
  CHECK_U64(maps_with(" rwxs "), 0);
  rig_close(&r);
}

/* Counts the lines of @p text that contain both. */
static int lines_with(const char *text, const char *a, const char *b) {
  int count = 0;
  for (const char *line = text; line && *line;) {
    const char *end = strchr(line, '\n');
    size_t length = end ? (size_t)(end - line) : strlen(line);
    char copy[256];
    (void)snprintf(copy, sizeof copy, "%.*s", (int)length, line);
    count += strstr(copy, a) && strstr(copy, b);
    line = end ? end + 1 : NULL;
  }
  return count;
}

static char *read_example(const char *name) {
  char path[512];
  (void)snprintf(path, sizeof path, "%s/%s", VYRE_EXAMPLES_DIR, name);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  char *text = calloc(1, 1 << 16);
  CHECK(text != NULL && fread(text, 1, (1 << 16) - 1, file) > 0);
  (void)fclose(file);
  return text;
}

/* A scalar fallback has none of these instructions. */
TEST(kernels_become_vector_code_as_wide_as_asked) {
  static const struct {
    const char *file, *instruction;
    int least;
  } cases[] = {{"mandelbrot.vyre", "vmulps", 4},
               {"matmul_tiled.vyre", "vfmadd", 2},
               {"byte_search.vyre", "vpcmp", 4}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    for (uint32_t width = 1; width <= 16; width *= 16) {
      rig r = {.heap = {.left = -1}};
      vyre_context_options options = plain_options(&r);
      options.backend_options = width == 1 ? "cpu.width=1" : "cpu.width=16";
      char *text = read_example(cases[k].file);
      rig_begin(&r, &options, text);
      rig_compile(&r);
      growing_text out = {0};
      vyre_status st = {0};
      CHECK_OK(
          vyre_pipeline_print(r.pipeline, "asm", growing_writer(&out), &st),
          st);
      int wide = lines_with(out.bytes, cases[k].instruction, "ymm") +
                 lines_with(out.bytes, cases[k].instruction, "zmm");
      if (width == 1) CHECK_U64(wide, 0);
      if (width == 16) CHECK(wide >= cases[k].least);
      free(out.bytes);
      free(text);
      rig_close(&r);
    }
  }
}

TEST(code_is_shown_in_three_forms_and_no_other) {
  static const struct {
    const char *form, *has;
  } cases[] = {{"llvm", "define "},
               {"llvm-optimised", "target triple"},
               {"asm", "phase0:"}};
  rig r;
  rig_open(&r, twice);
  vyre_status st = {0};
  for (int i = 0; i < 3; i++) {
    growing_text out = {0};
    CHECK_OK(vyre_pipeline_print(r.pipeline, cases[i].form,
                                 growing_writer(&out), &st),
             st);
    CHECK_HAS(out.bytes, cases[i].has);
    free(out.bytes);
  }
  growing_text none = {0};
  CHECK_FAILS(
      vyre_pipeline_print(r.pipeline, "ptx", growing_writer(&none), &st), st,
      VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.fix, "asm");
  rig_close(&r);
}

/* Processors of before 2008, 2011 and 2013 give the same bits. */
TEST(code_uses_only_the_isa_level_of_the_option) {
  static const char text[] =
      "kernel numbers workgroup(64) over(y)\n"
      "buffer y : read_write f32[] @0;\n"
      "{\n    let i = global_id.x;\n    let x = y[i];\n"
      "    if (i % 3 != 0) y[i] = fma(x, x, floor(x) + ceil(x * 0.3)) +\n"
      "        trunc(x * 1.7) + round(x) + exp(x * 0.01) + f32(u32(i) * 7) +\n"
      "        f32(fma(f64(x), f64(x), floor(f64(x))) + ceil(f64(x)));\n"
      "}\n";
  static const struct {
    const char *options;
    bool has_ymm, has_fma, has_round; /* allowed in the code */
  } cases[] = {{"cpu.isa_level=1", false, false, false},
               {"cpu.isa_level=2", false, false, true},
               {"cpu.isa_level=3", true, false, true},
               {"cpu.isa_level=4", true, true, true},
               {"cpu.isa_level=1,cpu.width=16", false, false, false},
               {"cpu.isa_level=1,cpu.width=1", false, false, false}};
  static float want[COUNT], got[COUNT];
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    rig r = {.heap = {.left = -1}};
    vyre_context_options options = plain_options(&r);
    options.backend_options = cases[k].options;
    rig_begin(&r, &options, text);
    vyre_device *ref, *own = r.device;
    vyre_status st = {0};
    vyre_dispatch_desc desc = {0};
    for (int i = 0; i < COUNT; i++) {
      want[i] = got[i] = ((float)i - (float)COUNT * 0.5f) * 0.37f;
    }
    CHECK_OK(vyre_device_open(r.context, "ref", &ref, &st), st);
    r.device = ref;
    rig_compile(&r);
    CHECK_OK(run_in_place(&r, want, sizeof want, &desc, &st), st);
    vyre_pipeline_release(r.pipeline);
    r.device = own;
    rig_compile(&r);
    CHECK_OK(run_in_place(&r, got, sizeof got, &desc, &st), st);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits */
    CHECK(memcmp(want, got, sizeof want) == 0);
    growing_text out = {0};
    CHECK_OK(vyre_pipeline_print(r.pipeline, "asm", growing_writer(&out), &st),
             st);
    if (!cases[k].has_ymm) CHECK_U64(lines_with(out.bytes, "ymm", "%"), 0);
    if (!cases[k].has_fma) CHECK_U64(lines_with(out.bytes, "fmadd", "%"), 0);
    if (!cases[k].has_round) CHECK_U64(lines_with(out.bytes, "round", "%"), 0);
    free(out.bytes);
    vyre_device_release(ref);
    rig_close(&r);
  }
}

/* Thousands of values that live across a barrier: the kernel runs, or is
 * rejected with a reason. */
TEST(a_pipeline_describes_its_lowering) {
  static const struct {
    const char *text;
    vyre_pipeline_resources want;
  } cases[] = {
      {twice, {.workgroup = {64, 1, 1}, .grid_buffer = "y", .phase_count = 1}},
      {/* One value is stored; i and len(y) are rematerialised. */
       "kernel g workgroup(8)\n"
       "buffer y : read_write u32[] @0;\n"
       "shared s : u32[16];\n"
       "{\n"
       "    let i = global_id.x;\n"
       "    let mine = y[i % len(y)] * 3;\n"
       "    s[15 - local_id.x] = mine;\n"
       "    barrier();\n"
       "    let other = s[8 + local_id.x % 8];\n"
       "    grid_barrier();\n"
       "    if (i < len(y)) y[i] = mine + other;\n"
       "}\n",
       {.workgroup = {8, 1, 1},
        .shared_count = 1,
        .shared_bytes = 64,
        .grid_barriers = 1,
        .phase_count = 2,
        .spill_buffer_count = 1,
        .spill_bytes = 8}}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    rig r = {.heap = {.left = -1}};
    vyre_context_options options = plain_options(&r);
    options.backend_options = "cpu.width=8";
    rig_begin(&r, &options, cases[i].text);
    rig_compile(&r);
    const vyre_pipeline_resources *want = &cases[i].want;
    vyre_pipeline_resources got;
    CHECK(vyre_pipeline_get_resources(r.pipeline, &got));
    CHECK(memcmp(got.workgroup, want->workgroup, sizeof got.workgroup) == 0);
    CHECK(!got.grid_buffer == !want->grid_buffer);
    CHECK_U64(got.shared_count, want->shared_count);
    CHECK_U64(got.shared_bytes, want->shared_bytes);
    CHECK_U64(got.grid_barriers, want->grid_barriers);
    CHECK(got.has_launches && got.has_width && got.has_code);
    CHECK_U64(got.phase_count, want->phase_count);
    CHECK_U64(got.spill_buffer_count, want->spill_buffer_count);
    CHECK_U64(got.spill_bytes, want->spill_bytes);
    CHECK_U64(got.width, 8);
    CHECK(got.code_bytes > 0);
    rig_close(&r);
  }
}

/* Phases, shared memory and values that live across them: the scratch size
 * depends on the width. */
static const char mixed[] =
    "kernel mixed workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "shared s : u32[64];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    s[local_id.x] = y[i];\n"
    "    barrier();\n"
    "    let v = s[63 - local_id.x] + i;\n"
    "    grid_barrier();\n"
    "    y[i] = v * 3;\n"
    "}\n";

static void check_mixed(rig *r) {
  static uint32_t y[COUNT];
  vyre_status st = {0};
  vyre_dispatch_desc desc = {0};
  for (uint32_t i = 0; i < COUNT; i++) y[i] = i * 77;
  CHECK_OK(run_in_place(r, y, sizeof y, &desc, &st), st);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t want = ((i / 64 * 64 + 63 - i % 64) * 77 + i) * 3;
    CHECK_U64(y[i], want);
  }
}

TEST(baseline_code_uses_one_register_and_is_replaced) {
  enum { TURNS = 12000 };
  const struct timespec pause = {.tv_nsec = 1000000};
  rig r = {.heap = {.left = -1}};
  vyre_context_options options = plain_options(&r);
  options.allocator = (vyre_allocator){0}; /* the background compile goes on */
  rig_begin(&r, &options, mixed);
  vyre_status st = {0};
  vyre_pipeline_resources first, last, full;
  CHECK_OK(
      vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                            &(vyre_compile_options){0}, &r.pipeline, NULL, &st),
      st);
  CHECK(vyre_pipeline_get_resources(r.pipeline, &first));
  CHECK(!first.is_baseline || first.width == vyre__host_cpu_detect()->lanes);
  last = first;
  for (int i = 0; i < TURNS && last.is_baseline; i++) {
    check_mixed(&r);
    (void)nanosleep(&pause, NULL);
    CHECK(vyre_pipeline_get_resources(r.pipeline, &last));
  }
  CHECK(!last.is_baseline);
  check_mixed(&r);
  rig_close(&r);
  rig_open(&r, mixed);
  CHECK(vyre_pipeline_get_resources(r.pipeline, &full));
  CHECK_U64(last.width, full.width);
  CHECK_U64(last.scratch_bytes, full.scratch_bytes);
  CHECK_U64(last.code_bytes, full.code_bytes);
  rig_close(&r);
}

/* An atomic access that crosses a cache line would be slow, or end the
 * process. */
TEST(unaligned_memory_of_atomics_is_copied) {
  static const struct {
    const char *text;
    unsigned begin, copied;
  } cases[] = {
      {"u32[4] @0;\n{ atomic_max(y[0], 7); }\n", 0, 0},
      {"u32[4] @0;\n{ atomic_max(y[0], 7); }\n", 4, 0},
      {"u32[4] @0;\n{ atomic_max(y[0], 7); }\n", 2, 16},
      {"u64[2] @0;\n{ atomic_max(y[0], u64(7)); }\n", 4, 16},
      {"u32[4] @0;\n{ y[0] = 7; }\n", 1, 0},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[160];
    _Alignas(64) unsigned char bytes[32] = {0};
    unsigned char *y = bytes + cases[c].begin;
    rig r;
    vyre_status st = {0};
    vyre_copy_report copies;
    vyre_dispatch_desc desc = {.grid = {1, 1, 1}, .copies = &copies};
    (void)snprintf(text, sizeof text,
                   "kernel k workgroup(1)\nbuffer y : read_write %s",
                   cases[c].text);
    memset(y + 8, 9, 16);
    rig_open(&r, text);
    CHECK_OK(run_in_place(&r, y, 16, &desc, &st), st);
    CHECK_U64(y[0], 7);
    CHECK_U64(y[15], 9); /* unchanged */
    CHECK_U64(copies.copied_bytes, cases[c].copied);
    if (cases[c].copied) {
      CHECK(copies.first_reason == VYRE_COPY_ALIGNMENT);
      desc.require_zero_copy = true;
      y[0] = 1;
      CHECK(run_in_place(&r, y, 16, &desc, &st) == VYRE_INVALID_ARGUMENT);
      CHECK_U64(y[0], 1);
    } else {
      CHECK_U64(copies.borrowed_bytes, 16);
    }
    rig_close(&r);
  }
}

/* --- availability and options ----------------------------------------------*/

TEST(without_llvm_a_compile_names_the_package) {
  rig r = {.heap = {.left = -1}};
  vyre_context_options options = plain_options(&r);
  options.backend_options = "cpu.llvm=none";
  rig_begin(&r, &options, twice);
  vyre_status st = {0};
  CHECK_FAILS(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                    NULL, &r.pipeline, NULL, &st),
              st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK_HAS(st.message, "the option cpu.llvm is 'none'");
  CHECK_HAS(st.fix, "remove the option cpu.llvm; cached kernels");
  CHECK(r.pipeline == NULL);
  rig_close(&r);
}

TEST(auto_selects_cpu_where_it_can_compile) {
  static const struct {
    const char *options, *name, *reason;
  } cases[] = {
      {NULL, "cpu", "auto: best available device; no GPU"},
      {"cpu.llvm=none", "ref",
       "the option cpu.llvm is 'none', so that 'cpu' cannot"},
      {"cpu.llvm=/nowhere/libLLVM.so", "ref",
       "the option cpu.llvm names '/nowhere/libLLVM.so', which is not an"},
      {"cpu.llvm=none,cpu.llvm=auto", "cpu",
       "auto: best available device; no GPU"},
  };
  CHECK(setenv("VYRE_VULKAN", "none", 1) == 0); /* a GPU would be preferred */
  /* In the second half LLVM is loaded, which must not change the answers. */
  for (size_t i = 0; i < 2 * (sizeof cases / sizeof cases[0]); i++) {
    size_t at = i % (sizeof cases / sizeof cases[0]);
    vyre_context_options options = {.cache_directory = "",
                                    .backend_options = cases[at].options};
    vyre_context *context;
    vyre_device *chosen, *named;
    vyre_status st = {0};
    char note[40];
    CHECK_OK(vyre_context_create(&options, &context, &st), st);
    CHECK_OK(vyre_device_open(context, "auto", &chosen, &st), st);
    CHECK_TEXT(vyre_device_name(chosen), cases[at].name);
    CHECK_HAS(vyre_device_selection_reason(chosen), cases[at].reason);
    /* On success the status has a note, but no failure. */
    snprintf(note, sizeof note, "auto chose '%s': ", cases[at].name);
    CHECK(strncmp(st.message, note, strlen(note)) == 0);
    CHECK_HAS(st.message, strncmp(cases[at].reason, "auto: ", 6) == 0
                              ? cases[at].reason + 6
                              : cases[at].reason);
    CHECK(st.kind == VYRE_KIND_NONE && !st.fix[0]);
    vyre_device_release(chosen);
    static const char *const names[] = {"ref", "cpu"};
    for (int n = 0; n < 2; n++) { /* each can be opened by name */
      CHECK_OK(vyre_device_open(context, names[n], &named, &st), st);
      CHECK(!st.message[0]);
      CHECK_TEXT(vyre_device_name(named), names[n]);
      CHECK_TEXT(vyre_device_selection_reason(named), "asked for by name");
      vyre_device_release(named);
    }
    vyre_context_release(context);
    if (i + 1 == sizeof cases / sizeof cases[0]) {
      rig r;
      rig_open(&r, twice);
      rig_close(&r);
    }
  }
}

/* A program can exclude the interpreter. */
TEST(auto_can_exclude_ref) {
  static const struct {
    const char *options, *name; /* NULL: it fails */
  } cases[] = {{"cpu.llvm=none,ref.fallback=0", NULL},
               {"cpu.llvm=none,ref.fallback=1", "ref"},
               {"cpu.llvm=none,ref.fallback=0,ref.fallback=auto", "ref"},
               {"ref.fallback=0", "cpu"}};
  CHECK(setenv("VYRE_VULKAN", "none", 1) == 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_context_options options = {.cache_directory = "",
                                    .backend_options = cases[i].options};
    vyre_context *context;
    vyre_device *device;
    vyre_status st;
    CHECK_OK(vyre_context_create(&options, &context, &st), st);
    vyre_code code = vyre_device_open(context, "auto", &device, &st);
    if (cases[i].name) {
      CHECK_OK(code, st);
      CHECK_TEXT(vyre_device_name(device), cases[i].name);
    } else {
      CHECK_FAILS(code, st, VYRE_UNSUPPORTED_FEATURE,
                  VYRE_KIND_DEVICE_UNAVAILABLE);
      CHECK_HAS(st.message, "the option cpu.llvm is 'none'");
      CHECK_HAS(st.message, "ref.fallback=0");
      CHECK(!device);
      CHECK_FAILS(vyre_device_preload(context, "auto", &st), st,
                  VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
      /* It can be opened by name. */
      CHECK_OK(vyre_device_open(context, "ref", &device, &st), st);
    }
    vyre_device_release(device);
    CHECK_U64(vyre_context_option(context, "ref", "fallback", 7), i == 1   ? 1
                                                                  : i == 2 ? 7
                                                                           : 0);
    vyre_context_release(context);
  }
  CHECK_U64(vyre_context_option(NULL, "ref", "fallback", 7), 7);
  CHECK_U64(vyre_context_option(NULL, NULL, "fallback", 7), 7);
}

TEST(invalid_threads_and_widths_are_refused) {
  static const struct {
    uint32_t threads, width;
    bool is_good;
  } cases[] = {
      {0, 0, true},     {1, 1, true},           {7, 4, true},
      {2, 8, true},     {2, 16, true},          {1024, 32, true},
      {1025, 0, false}, {UINT32_MAX, 0, false}, {0, 2, false},
      {0, 3, false},    {0, 64, false},         {0, UINT32_MAX, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_context *context = NULL;
    vyre_device *device = NULL;
    vyre_status st = {0};
    char text[64];
    (void)snprintf(text, sizeof text, "cpu.threads=%u,cpu.width=%u",
                   cases[i].threads, cases[i].width);
    vyre_context_options options = {.cache_directory = "",
                                    .backend_options = text};
    /* The context checks the range of an option, the device the widths in
     * it. */
    vyre_code code = vyre_context_create(&options, &context, &st);
    if (code == VYRE_OK) code = vyre_device_open(context, "cpu", &device, &st);
    if (cases[i].is_good) {
      CHECK_OK(code, st);
    } else {
      CHECK_FAILS(code, st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    }
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

TEST_MAIN(TEST_ENTRY(memory_of_the_host_is_used_in_place),
          TEST_ENTRY(a_warm_dispatch_never_allocates),
          TEST_ENTRY(out_of_memory_is_reported_without_a_leak),
          TEST_ENTRY(a_kernel_that_never_ends_ends_at_its_timeout),
          TEST_ENTRY(fuel_ends_a_loop),
          TEST_ENTRY(limits_above_the_counter_range_are_refused),
          TEST_ENTRY(device_time_is_reported_and_below_wall_time),
          TEST_ENTRY(the_callers_float_settings_change_no_result),
          TEST_ENTRY(every_float_operation_is_right_as_the_table_says),
          TEST_ENTRY(no_memory_of_the_process_is_writable_and_executable),
          TEST_ENTRY(kernels_become_vector_code_as_wide_as_asked),
          TEST_ENTRY(code_is_shown_in_three_forms_and_no_other),
          TEST_ENTRY(code_uses_only_the_isa_level_of_the_option),
          TEST_ENTRY(a_pipeline_describes_its_lowering),
          TEST_ENTRY(baseline_code_uses_one_register_and_is_replaced),
          TEST_ENTRY(unaligned_memory_of_atomics_is_copied),
          TEST_ENTRY(without_llvm_a_compile_names_the_package),
          TEST_ENTRY(auto_can_exclude_ref),
          TEST_ENTRY(auto_selects_cpu_where_it_can_compile),
          TEST_ENTRY(invalid_threads_and_widths_are_refused))
