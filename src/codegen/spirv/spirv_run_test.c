/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests SPIR-V modules on a Vulkan device: results must equal those of ref,
 * byte for byte. Skipped without a Vulkan 1.2 device (Debian:
 * mesa-vulkan-drivers). Variables: testing/random_programs.h, and
 *
 *   VYRE_TEST_STEPS=40      steps towards the loop limit of a device */
#if __has_include(<vulkan/vulkan_core.h>)

#include "codegen/spirv/spirv_targets_testing.h"
#include "codegen/spirv/spirv_vulkan_testing.h"
#include "lir/lir_testing.h"
#include "testing/random_programs.h"

enum { SEEDS = 10 };

static vk_runner runner;

/* Lowers, emits and runs; `ref` has run before. */
static bool agrees(const job *j, const spirv_target *target, bool in_launches) {
  vyre__lir_binding bound[MAX_BUFFERS] = {{0}};
  vyre_arena arena;
  vyre_status st = {0};
  const vyre__lir_kernel *k = NULL;
  vyre__spirv_module module;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__lower(j->program, &target->low, VYRE__PASS_LEGALIZE_CONTROL,
                       &arena, &k, NULL, &st),
           st);
  CHECK_OK(vyre__emit_spirv(k, &target->spirv, &arena, &module, &st), st);
  bind_all(j, k, bound);
  vk_job run = {.r = &runner,
                .m = &module,
                .k = k,
                .bound = bound,
                .fuel = in_launches ? 60000 : UINT32_MAX,
                .max_groups = in_launches ? (j->grid[0] + 1) / 2 : 0};
  memcpy(run.grid, j->grid, sizeof run.grid);
  vk_run(&run);
  bool good = !run.is_out_of_fuel && !run.is_cut && same_buffers(j, bound);
  unbind_all(bound);
  vyre_arena_deinit(&arena);
  return good;
}

static void begin(void) {
  if (runner.device) return;
  setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
  CHECK(vk_open(&runner));
}

/* --- the examples --------------------------------------------------------- */

static unsigned check_targets(job *j, void *self) {
  unsigned failed = 0;
  (void)self;
  for (unsigned i = 0; i < SPIRV_TARGETS; i++) {
    set_variant("%s", spirv_targets[i].name);
    failed += count_failure(agrees(j, &spirv_targets[i], i % 2 == 1));
  }
  return failed;
}

static const program_test all_targets = {.check = check_targets,
                                         .length = 1001};

TEST(examples_do_the_same) {
  begin();
  CHECK_U64(check_examples(&all_targets), 0);
}

/* Results do not depend on what a compiler knows about an operand, even in
 * unrolled loops and under known conditions. */
TEST(known_floats_do_the_same) {
  static const char text[] =
      "kernel k workgroup(64) over(x)\nbuffer x : read f32[] @0;\n"
      "buffer y : write f32[] @1;\nbuffer few : read f32[3] @2;\n{ let i = "
      "global_id.x; if (i >= len(x)) "
      "return; let a = x[i]; var s = 0.0f; var t = 1.0f; var h = 0u; for (let "
      "k = 0u; k < "
      "3u; k++) { h = h * 31u ^ as_u32(few[k + 3u] + a); t -= 0.5f; s += "
      "f32(k) * a; s += t * a; s += a / f32(k); s "
      "+= select(k == 1u, 0.0f, 2.0f) * a; s += as_f32(k * 0u) + a; } y[i] = "
      "as_f32(as_u32(a / 0.0f) * 31u ^ as_u32(0.0f / a) * 37u ^ as_u32(a * "
      "0.0f) * 41u ^ as_u32(a + 0.0f) * 43u ^ as_u32(0.0f - a) * 47u ^ "
      "as_u32(s) * 53u ^ as_u32(a / floor(0.25f)) * 59u ^ h); }\n";
  begin();
  CHECK_U64(check_text(&all_targets, text, "known"), 0);
}

static unsigned check_random(job *j, void *self) {
  const spirv_target *target = &spirv_targets[j->seed % SPIRV_TARGETS];
  (void)self;
  set_variant("%s", target->name);
  return count_failure(agrees(j, target, j->seed % 2 == 1));
}

TEST(random_programs_do_the_same) {
  const program_test test = {
      .check = check_random, .options = spirv_options, .count = SEEDS};
  begin();
  CHECK_U64(check_random_programs(&test), 0);
}

/* --- the launch block ----------------------------------------------------- */

static kit t;

TEST(reports_out_of_fuel) {
  begin();
  kit_begin(&t, "endless", 4, 1, 1);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t left = kit_var(&t, "left", VYRE_TYPE_U32);
  vyre__val none = kit_u32(&t, 0), one = kit_u32(&t, 1);
  kit_set(&t, left, kit_op(&t, VYRE__LIR_FUEL, VYRE_TYPE_U32, 0, 0, 0, 0));
  kit_store(&t, y, kit_local(&t, 0), one, 0);
  kit_mark(&t, VYRE__LIR_LOOP);
  vyre__val have = kit_get(&t, left);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, have, none), 0);
  kit_mark(&t, VYRE__LIR_OUT_OF_FUEL);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_set(&t, left, kit_u(&t, VYRE__LIR_SUB, have, one));
  kit_mark(&t, VYRE__LIR_STEP);
  kit_mark(&t, VYRE__LIR_END);
  kit_end(&t);
  t.k.has_fuel = true;
  uint32_t words[4] = {0};
  vyre__lir_binding buffers[1] = {{words, 4}};
  vyre__spirv_module module;
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__emit_spirv(&t.k, NULL, &arena, &module, &st), st);
  vk_job run = {.r = &runner,
                .m = &module,
                .k = &t.k,
                .bound = buffers,
                .grid = {1, 1, 1},
                .fuel = 1000};
  vk_run(&run);
  CHECK(run.is_out_of_fuel);
  CHECK_U64(words[3], 1);
  vyre_arena_deinit(&arena);
}

/* --- loop limit of a device ----------------------------------------------- */

enum { LANES = 64, LONG = 40000000, MAX_ITERATIONS = 65535 };

/* A kernel body in which every lane counts up to n[0], and the final count of
 * lane `i`. */
typedef struct long_loop {
  const char *name, *body;
  uint32_t (*count)(uint32_t i, uint32_t n);
  uint32_t right, cut; /* n below the limit, n above the limit */
} long_loop;

static uint32_t all_of(uint32_t i, uint32_t n) {
  (void)i;
  return n;
}

static uint32_t square_of(uint32_t i, uint32_t n) {
  (void)i;
  return n * n;
}

static uint32_t even_of(uint32_t i, uint32_t n) {
  (void)i;
  return (n + 1) / 2 * 2;
}

static uint32_t odd_of(uint32_t i, uint32_t n) {
  (void)i;
  return n / 2;
}

static uint32_t third_of(uint32_t i, uint32_t n) {
  (void)i;
  return (n + 2) / 3;
}

static uint32_t seventh_of(uint32_t i, uint32_t n) {
  (void)i;
  return (n + 6) / 7 * 7;
}

static const long_loop long_loops[] = {
    {"one test at the top", "while (c < n) { c++; }", all_of, 1000000, LONG},
    {"a for", "for (let k = 0u; k < n; k++) { c++; }", all_of, 1000000, LONG},
    {"a break at the bottom", "while (true) { c++; if (c == n) break; }",
     all_of, 1000000, LONG},
    {"a break in two ifs",
     "while (true) { c++; if (c % 2 == 0) { if (c >= n) break; } }", even_of,
     400000, LONG},
    {"a break in an else",
     "while (true) { if (c % 2 == 1) { c++; } else { if (c >= n) { break; } "
     "else { c++; } } }",
     even_of, 400000, LONG},
    {"several breaks",
     "while (true) { c++; if (c == 3000000000u) break; if (c >= n) break; if "
     "(c == 4000000000u) break; }",
     all_of, 400000, LONG},
    {"a continue",
     "for (let k = 0u; k < n; k++) { if (k % 2 == 0) continue; c++; }", odd_of,
     60000, 70000},
    {"a loop in a loop",
     "for (let k = 0u; k < n; k++) { for (let l = 0u; l < n; l++) { c++; } }",
     square_of, 900, 5000},
    {"a short one in a long one",
     "for (let k = 0u; k < n; k++) { for (let l = 0u; l < n; l++) { if (l * 3 "
     ">= n) break; c += 1u - min(k, 1u); } }",
     third_of, 700, 5000},
    /* No single lane reaches the limit, but the lanes of a vector do
     * together. */
    {"lanes that wait for each other",
     "for (let k = 0u; k < 64u; k++) { if (k == i) { while (c < n) { if (c == "
     "4000000000u) continue; c++; } } }",
     all_of, 4000, 60000},
    {"two after each other",
     "while (c < n) { c++; } var d = 0u; while (d < n) { d++; } c = max(c, d);",
     all_of, 500000, LONG},
    {"a flag", "var on = true; while (on) { c++; on = c != n; }", all_of,
     400000, LONG},
    {"a float", "var f = 0.0; while (f < f32(n)) { f = f + 1.0; c++; }", all_of,
     400000, LONG},
    {"a return and no break",
     "while (true) { c++; if (c == n) { out[i] = c; return; } }", all_of, 50000,
     LONG},
    {"two tests", "while (c < n && c != 4000000000u) { c++; }", all_of, 400000,
     LONG},
    {"a test of memory", "while (most[0] == 0u || c < n) { c++; }", all_of,
     50000, LONG},
    {"a loop before a break",
     "while (true) { while (c % 7u != 6u) { c++; } c++; if (c >= n) break; }",
     seventh_of, 40000, LONG},
};
enum { LONG_LOOPS = sizeof long_loops / sizeof long_loops[0] };

static vyre_module *long_module(const long_loop *loop) {
  char text[1024];
  vyre_module *module = NULL;
  vyre_status st = {0};
  int length = snprintf(
      text, sizeof text,
      "kernel counts workgroup(64) over(out)\nbuffer most : read u32[1] @0;\n"
      "buffer out : write u32[64] @1;\n{ let i = global_id.x; let n = most[0]; "
      "var c = 0u; %s out[i] = c; }\n",
      loop->body);
  CHECK_OK(vyre_module_parse(text, (size_t)length, loop->name,
                             (vyre_allocator){0}, &module, NULL, &st),
           st);
  return module;
}

/* Returns true if the device ended a loop early. Otherwise all results must be
 * right. */
static bool is_cut(const long_loop *loop, uint32_t n, bool goes_on) {
  vyre_module *source = long_module(loop);
  const vyre__target low = {SPIRV_FIXED_FMA};
  const vyre__spirv_target target = {SPIRV_EVERYTHING, .block_in_storage = true,
                                     .drops_outside = goes_on,
                                     .max_iterations = MAX_ITERATIONS};
  uint32_t out[LANES] = {0};
  vyre__lir_binding buffers[2] = {{&n, 1}, {out, LANES}};
  const vyre__lir_kernel *k = NULL;
  vyre__spirv_module module;
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__lower(vyre_module_kernel(source, 0), &low,
                       VYRE__PASS_LEGALIZE_CONTROL, &arena, &k, NULL, &st),
           st);
  CHECK_OK(vyre__emit_spirv(k, &target, &arena, &module, &st), st);
  vk_job run = {.r = &runner,
                .m = &module,
                .k = k,
                .bound = buffers,
                .grid = {1, 1, 1},
                .fuel = UINT32_MAX};
  vk_run(&run);
  CHECK(!run.is_out_of_fuel);
  for (uint32_t i = 0; i < LANES && !run.is_cut; i++) {
    if (out[i] == loop->count(i, n)) continue;
    printf("    %s, n %u: lane %u has %u, must be %u\n", loop->name, n, i,
           out[i], loop->count(i, n));
    test_fail(__FILE__, __LINE__);
  }
  vyre_arena_deinit(&arena);
  vyre_module_release(source);
  return run.is_cut;
}

/* Returns true for devices with a loop limit. Other drivers would run the full
 * loops. */
static bool ends_loops(void) {
  return runner.properties.vendorID == 0x10005 &&
         strstr(runner.properties.deviceName, "llvmpipe") != NULL;
}

TEST(reports_loops_that_the_device_ends) {
  begin();
  if (!ends_loops()) return;
  for (size_t i = 0; i < LONG_LOOPS; i++) {
    const long_loop *loop = &long_loops[i];
    printf("    %s\n", loop->name);
    for (int goes_on = 0; goes_on < 2; goes_on++) {
      CHECK(!is_cut(loop, loop->right, goes_on));
      CHECK(is_cut(loop, loop->cut, goes_on));
    }
  }
}

/* The exact limit depends on the device; results must be right on both sides.
 * VYRE_TEST_STEPS=40 approaches it as closely as possible. */
TEST(loops_are_right_up_to_the_device_limit) {
  begin();
  if (!ends_loops()) return;
  for (size_t i = 0; i < LONG_LOOPS; i++) {
    uint32_t good = long_loops[i].right, bad = long_loops[i].cut;
    uint64_t left = test_number("STEPS", 2);
    for (; bad - good > 1 && left > 0; left--) {
      uint32_t n = good + (bad - good) / 2;
      *(is_cut(&long_loops[i], n, true) ? &bad : &good) = n;
    }
    printf("    %s: up to %u, not %u\n", long_loops[i].name, good, bad);
  }
}

TEST(closes_the_device) {
  begin();
  vk_close(&runner);
}

/* Ignores memory that drivers hold until the process ends. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libvulkan\nleak:libLLVM\nleak:libdrm\nleak:<unknown module>\n"
         "leak:_dlerror_run\n";
}
/* NOLINTEND(bugprone-reserved-identifier) */

static const test_case all_cases[] = {
    TEST_ENTRY(reports_out_of_fuel),
    TEST_ENTRY(examples_do_the_same),
    TEST_ENTRY(known_floats_do_the_same),
    TEST_ENTRY(random_programs_do_the_same),
    TEST_ENTRY(reports_loops_that_the_device_ends),
    TEST_ENTRY(loops_are_right_up_to_the_device_limit),
    TEST_ENTRY(closes_the_device)};

int main(int argc, char **argv) {
  vk_runner probe;
  if (!vk_open(&probe)) {
    printf("skipped: no Vulkan 1.2 device\n");
    return 77;
  }
  vk_close(&probe);
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}

#else

#include <stdio.h>

int main(void) {
  printf("skipped: built without <vulkan/vulkan_core.h> (libvulkan-dev)\n");
  return 77;
}

#endif
