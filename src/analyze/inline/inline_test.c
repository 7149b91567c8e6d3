/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/inline/inline.h"

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/pipeline.h"
#include "vyre/validate.h"

#include "analyze/effects.h"
#include "support/analysis.h"
#include "support/author.h"
#include "support/check.h"

enum { ELEMENTS = 64 };

/* Runs a program on the reference backend; returns false if it exhausts its
 * fuel. */
static bool run_program(vyre_device *device, vyre_program *program,
                        uint64_t seed, uint32_t y[ELEMENTS]) {
  uint8_t x[ELEMENTS];
  uint32_t n = (uint32_t)random_below(&seed, 100);
  for (int i = 0; i < ELEMENTS; i++) {
    x[i] = (uint8_t)random_next(&seed);
    y[i] = (uint32_t)random_below(&seed, 20);
  }
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, &st),
           st);
  vyre_input inputs[] = {
      {x, sizeof x}, {y, ELEMENTS * sizeof *y}, {&n, sizeof n}};
  vyre_output outputs[] = {{y, ELEMENTS * sizeof *y}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 3,
                             .outputs = outputs,
                             .output_count = 1,
                             .grid = {1, 1, 1},
                             .max_loop_iterations = 20000};
  vyre_code code = vyre_dispatch(pipeline, &desc, &st);
  vyre_pipeline_release(pipeline);
  if (code != VYRE_OK) CHECK(code == VYRE_DISPATCH_FAILED);
  return code == VYRE_OK;
}

/* Inlines a program and compares the results of both. Returns false if there
 * was nothing to compare. */
static bool check_same(vyre_device *device, vyre_program *program) {
  vyre_program *flat = NULL;
  vyre_status st = {0};
  bool compared = false;
  CHECK_OK(vyre__inline(program, (vyre_allocator){0}, &flat, &st), st);
  CHECK_U64(flat->function_count, 1);
  for (uint64_t seed = 1; seed < 4; seed++) {
    uint32_t want[ELEMENTS], got[ELEMENTS];
    if (!run_program(device, program, seed, want)) continue;
    CHECK(run_program(device, flat, seed, got));
    CHECK(memcmp(want, got, sizeof want) == 0);
    compared = true;
  }
  vyre_program_release(flat);
  return compared;
}

static vyre_device *open_ref(void) {
  vyre_device *device = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  return device;
}

#define SMALL_HEAD                                    \
  "kernel k workgroup(1)\nbuffer x : read u8[] @0;\n" \
  "buffer y : read_write u32[] @1;\nuniform n : u32 @2;\n{\n"

static const char *const files[] = {
    /* straight, nested, guards, loops */
    "fn f(a: u32) -> u32 { return a + 1; }\n" SMALL_HEAD
    "y[0] = f(n) * f(f(2)); y[1] = f(y[f(0)]); }",
    "fn f(a: u32) -> u32 { if (a > 3) return 1; if (a > 2) { return 2; } "
    "return 3; }\n" SMALL_HEAD "for (let i = 0u; i < 8; i++) y[i] = f(i); }",
    "fn f(a: u32) -> u32 { if (a > 3) { if (a > 5) return 9; return 1; } else "
    "{ "
    "return 2; } }\n" SMALL_HEAD "for (let i = 0u; i < 8; i++) y[i] = f(i); }",
    "fn f(a: u32) -> u32 { var s = 0u; for (let i = 0u; i < 9; i++) { if (i == "
    "a) return s; s += i; } return 99; }\n" SMALL_HEAD
    "for (let i = 0u; i < 12; i++) y[i] = f(i); }",
    "fn f(a: u32) -> u32 { for (let i = 0u; i < 9; i++) { for (let j = 0u; j < "
    "9; j++) { if (i * j == a) return i * 100 + j; if (j > i) break; } if (i > "
    "7) continue; } return 7; }\n" SMALL_HEAD
    "for (let i = 0u; i < 60; i++) y[i] = f(i); }",
    "fn f(a: u32) -> u32 { if (a > 2) { if (a > 4) { return 1; } } if (a == 3) "
    "return 4; return 5; }\n" SMALL_HEAD
    "for (let i = 0u; i < 8; i++) y[i] = f(i); }",
    "fn f(a: u32) -> u32 { var k = a; while (true) { k += 3; if (k > 20) "
    "return "
    "k; } return 0; }\n" SMALL_HEAD
    "for (let i = 0u; i < 8; i++) y[i] = f(i); }",
    /* evaluation order around a call */
    "fn f(a: u32) -> u32 { return a * 2; }\n" SMALL_HEAD
    "y[0] = y[1] + f(atomic_add(y[1], 5)) + y[1]; y[2] = atomic_add(y[3], 1) * "
    "100 + f(atomic_add(y[3], 1)); y[y[3]] = f(atomic_exchange(y[3], 9)); }",
    "fn f(a: u32) -> u32 { return a * 2; }\n" SMALL_HEAD
    "y[0] = select(f(n) > 3, f(atomic_add(y[1], 1)), f(atomic_add(y[1], 1))); "
    "y[2] = atomic_compare_exchange(y[1], f(y[1]) / 2, f(y[1])); }",
    /* conditions */
    "fn f(a: u32) -> bool { return a > 3; }\n" SMALL_HEAD
    "for (let i = 0u; i < 8; i++) { if (i > 1 && f(atomic_add(y[9], 1)) || "
    "f(i)) y[i] = 1; if (f(i) && i < 6) y[i] += 2; if (i == 2 || "
    "f(atomic_add(y[10], 1))) y[i] += 4; } }",
    "fn f(a: u32) -> u32 { if (a > 9) return 0; return 9 - a; }\n" SMALL_HEAD
    "var i = 0u; while (f(i) > 2) { i++; if (i == 3) continue; y[i] = i; if "
    "(f(i) == 4) break; } for (let j = f(1); j < f(n) + 12; j++) y[j] = f(j); "
    "}",
    /* chains, bools, 64 bits, floats */
    "fn g(a: u64, b: f32) -> f32 { if (a > 3ul) return b; return -b; }\n"
    "fn f(a: u32) -> u32 { return u32(abs(g(u64(a), 2.5) * 2.0)); "
    "}\n" SMALL_HEAD "y[0] = f(2) + f(5); }",
};

TEST(inlined_kernels_do_the_same) {
  vyre_device *device = open_ref();
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    vyre_module *module = parse_module(files[i]);
    vyre_program *program = vyre_module_kernel(module, 0);
    CHECK(check_same(device, program));
    vyre_module_release(module);
  }
  vyre_device_release(device);
}

TEST(inlined_random_kernels_do_the_same) {
  static author a;
  vyre_device *device = open_ref();
  unsigned compared = 0, made = 0;
  for (uint64_t seed = 1; seed <= 1500; seed++) {
    write_kernel(&a, seed * 0x9E3779B97F4A7C15u, 1, true);
    vyre_module *module = parse_module(a.text);
    vyre_program *program = vyre_module_kernel(module, 0);
    if (vyre_program_validate(program, NULL, NULL) == VYRE_OK) {
      made++;
      compared += check_same(device, program);
    }
    vyre_module_release(module);
  }
  vyre_device_release(device);
  CHECK(made > 300 && compared * 10 > made * 9);
}

/* Size and depth computed by the validator are upper limits of the result. */
TEST(effects_foresee_the_result) {
  static author a;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    write_kernel(&a, seed * 77777, 1, true);
    vyre_module *module = parse_module(a.text);
    vyre_program *program = vyre_module_kernel(module, 0), *flat = NULL;
    vyre_arena arena = {0};
    vyre__effects before, after;
    vyre_status st = {0};
    CHECK_OK(vyre__inline(program, (vyre_allocator){0}, &flat, &st), st);
    CHECK_OK(vyre__effects_build(program, &arena, &before, &st), st);
    CHECK_OK(vyre__effects_build(flat, &arena, &after, &st), st);
    CHECK(before.functions[0].inlined_depth >= after.functions[0].depth);
    CHECK(before.functions[0].flags == after.functions[0].flags);
    vyre_arena_deinit(&arena);
    vyre_program_release(flat);
    vyre_module_release(module);
  }
}

TEST(keeps_a_program_without_calls) {
  vyre_module *module = parse_module(kernel_text(
      "var s = 0u;\nfor (let k = 0u; k < n; k++) {\nif (k == 3) continue;\n"
      "s += x[k];\nbarrier();\n}\nwhile (s > 4) s /= 2;\n"
      "print(\"s is \", s, \" at \", i);\natomic_max(y[0], s);\n"
      "y[i] = select(s > 2 && i < 3, uniform(s), u32(f32(s)));\nreturn;"));
  vyre_program *program = vyre_module_kernel(module, 0), *flat = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre__inline(program, (vyre_allocator){0}, &flat, &st), st);
  CHECK(vyre_program_equal(program, flat));
  CHECK_U64(vyre__source_loc_of(flat, flat->functions[0].body).line, 6);
  vyre_program_release(flat);
  vyre_module_release(module);
}

static vyre_code sweep_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_module *module = parse_module(files[4]);
  vyre_program *flat = NULL;
  vyre_code code =
      vyre__inline(vyre_module_kernel(module, 0), allocator, &flat, st);
  vyre_program_release(flat);
  vyre_module_release(module);
  return code;
}

TEST(survives_running_out_of_memory) {
  CHECK(sweep_allocations(sweep_scenario) > 5);
}

TEST_MAIN(TEST_ENTRY(inlined_kernels_do_the_same),
          TEST_ENTRY(inlined_random_kernels_do_the_same),
          TEST_ENTRY(effects_foresee_the_result),
          TEST_ENTRY(keeps_a_program_without_calls),
          TEST_ENTRY(survives_running_out_of_memory))
