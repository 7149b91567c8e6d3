/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares interpreted schedules with device ref, byte for byte, at all vector
 * widths and after any pass, without LLVM (testing/random_programs.h). */
#include "testing/schedule_interp.h"

#include "spmd/schedule_testing.h"
#include "support/check.h"
#include "support/sanitized.h"
#include "testing/random_programs.h"

enum { SEEDS = SANITIZED ? 20 : 100 };

static const uint32_t widths[] = {1, 4, 8, 16, 32};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

static unsigned runs;

/* Runs the schedule of @p k at @p width after pass @p last, and compares. */
static unsigned compare(const job *j, const vyre__lir_kernel *k, uint32_t width,
                        unsigned last, uint32_t off) {
  vyre_status st = {0};
  vyre__lir_binding buffers[MAX_BUFFERS] = {{0}};
  vyre__schedule_runner runner = {
      .options = {.width = width, .lanes = width < 16 ? 8 : 16, .off = off},
      .last = (vyre__schedule_pass)last};
  set_variant("width %u, pass %u, off %x", width, last, (unsigned)off);
  bind_all(j, k, buffers);
  const vyre__lir_launch launch = {.buffers = buffers,
                                   .grid = {j->grid[0], j->grid[1], j->grid[2]},
                                   .fuel = UINT32_MAX,
                                   .poison = j->poison,
                                   .max_instructions = UINT64_C(1000000000),
                                   .run_phase = vyre__schedule_run_phase,
                                   .runner = &runner};
  vyre_code code = vyre__lir_interpret(k, &launch, (vyre_allocator){0}, &st);
  bool good = code == VYRE_OK && same_buffers(j, buffers);
  runs++;
  if (code != VYRE_OK) printf("    %s\n", st.message);
  unbind_all(buffers);
  return count_failure(good);
}

/* Checks the schedule after one pass, or after all but a random subset. */
static unsigned check_some_passes(const job *j, const vyre__lir_kernel *k,
                                  size_t width) {
  if ((j->seed + width) % 2 == 0) {
    unsigned last = (unsigned)((j->seed / 2 + width) % VYRE__SCHEDULE_COUNT);
    return compare(j, k, widths[width], last, 0);
  }
  uint64_t random = (j->seed * WIDTHS + width + 1) * 0x9E3779B97F4A7C15u;
  uint32_t off = random >> 62 == 0 ? UINT32_MAX : (uint32_t)(random >> 20);
  return compare(j, k, widths[width], VYRE__SCHEDULE_COUNT - 1, off);
}

/* Checks all passes at all widths and, by the seed, some of them. */
static unsigned check_schedules(job *j, void *self) {
  const vyre__target target = {.math = VYRE__MATH_F64};
  const vyre__lir_kernel *k = NULL;
  vyre_status st = {0};
  vyre_arena arena;
  unsigned failed = 0;
  (void)self;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre_code code = vyre__lower(j->program, &target, VYRE__PASS_LEGALIZE_CONTROL,
                               &arena, &k, NULL, &st);
  if (code == VYRE_OK) {
    const vyre__shared_layout *layouts;
    CHECK_OK(vyre__unwrap_neighbours(k, &arena, &k, &st), st);
    CHECK_OK(vyre__interchange_stride_loops(k, &arena, &k, &st), st);
    CHECK_OK(vyre__lay_out_shared(k, &arena, &k, &layouts, &st), st);
    CHECK_OK(vyre__interchange_loops(k, &arena, &k, &st), st);
    for (size_t i = 0; i < WIDTHS; i++) {
      const vyre__lir_kernel *own = NULL;
      CHECK_OK(vyre__version_uniforms(k, widths[i], &arena, &own, &st), st);
      CHECK_OK(vyre__simplify_checks(own, widths[i], &arena, &own, &st), st);
      CHECK_OK(
          vyre__lir_verify(own, VYRE__STAGE_CONTROL, (vyre_allocator){0}, &st),
          st);
      failed += compare(j, own, widths[i], VYRE__SCHEDULE_COUNT - 1, 0);
      failed += check_some_passes(j, own, i);
    }
  } else if (code != VYRE_UNSUPPORTED_FEATURE) {
    CHECK_OK(code, st);
  }
  vyre_arena_deinit(&arena);
  return failed;
}

static vyre_random_program_options options_of(uint64_t seed, void *self) {
  static const uint32_t sizes[] = {24, 8, 60};
  (void)self;
  return (vyre_random_program_options){.seed = seed,
                                       .statements = sizes[seed % 3],
                                       .max_invocations = seed % 7 ? 48 : 200,
                                       .no_f64 = seed % 2 == 1};
}

TEST(schedules_of_examples_do_the_same) {
  const program_test test = {.check = check_schedules, .length = 193};
  CHECK_U64(check_examples(&test), 0);
}

/* Indices that are clamped at the ends of a row, in several ways. */
static const char clamps[] =
    "kernel clamps workgroup(32, 2)\n"
    "buffer x : read u32[] @0;\n"
    "buffer b : read u8[] @1;\n"
    "buffer y : read_write u32[] @2;\n"
    "uniform n : u32 @3;\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  let w = min(n, len(y));\n"
    "  if (max(i, 5) > 3 && i < w) {\n"
    "    let l = select(i == 0, w - 1, i - 1);\n"
    "    let r = select(i == w - 1, 0u, i + 1);\n"
    "    let c = min(max(i, 1) - 1, w - 1);\n"
    "    y[i] = x[l] + x[r] * 3 + x[c] * 5 + x[select(i == 0, 0u, i + 90)] +\n"
    "           b[min(i + 2, len(b) - 1)] + x[min(i, 7)];\n"
    "  }\n"
    "}\n";

/* A loop whose body is empty but for the test at its top. */
static const char empty_loop[] =
    "kernel empty workgroup(16)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{\n"
    "  for (let k = 0u; k < (local_id.x & 7u); k += 2) {\n"
    "    let unused = x[global_id.x];\n"
    "  }\n"
    "  if (global_id.x < len(y)) y[global_id.x] = x[0] + local_id.x;\n"
    "}\n";

/* Loops over a row by the size of the workgroup, or by other steps: sums,
 * offsets, signed counters, wrapping bounds, and values that the step shares
 * with the body. */
static const char strides[] =
    "kernel strides workgroup(24, 2)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "shared a : u32[48];\n"
    "{\n"
    "  let t = local_id.x;\n"
    "  let n = min(len(x), 150);\n"
    "  var s = t;\n"
    "  var m = 0u;\n"
    "  for (let k = t; k < n; k += 24) { s += x[k]; m = max(m, x[k]); }\n"
    "  for (let k = t + 5; k < n; k += 32) { s += x[k] * k; }\n"
    "  for (let k = t; k < n; k += 7) { if (x[k] > m) s ^= x[k + 7]; }\n"
    "  for (let k = i32(t); k < i32(n) - 20; k += 64) { s += x[u32(k)]; }\n"
    "  for (let k = t + 7; k < 0xffffffff; k += 0x3fffffff) {\n"
    "    s += x[k & 15] + x[k % n] + x[k]; }\n"
    "  for (let k = t; k < 0xfffffff8; k += 0x7ffffff5) { s += x[k]; }\n"
    "  a[t + 24 * local_id.y] = s + m;\n"
    "  barrier();\n"
    "  for (let k = t; k < 48; k += 24) {\n"
    "    if (k < len(y)) y[k] = a[k] + a[47 - k];\n"
    "  }\n"
    "}\n";

/* Indices by a distance that halves, as bits and by division. */
static const char network[] =
    "kernel network workgroup(32)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "shared s : u32[64];\n"
    "{\n"
    "  let t = local_id.x;\n"
    "  s[t] = x[t]; s[t + 32] = x[t + 32] * 3;\n"
    "  var d = 32u;\n"
    "  while (d > 0) {\n"
    "    barrier();\n"
    "    let a = 2 * t - (t & (d - 1));\n"
    "    if (s[a] > s[a + d]) {\n"
    "      let m = s[a]; s[a] = s[a + d]; s[a + d] = m; }\n"
    "    d /= 2;\n"
    "  }\n"
    "  d = len(x) % 40 + 1;\n"
    "  while (d > 0) {\n"
    "    barrier();\n"
    "    let b = t / d * d + (t + 1) % d;\n"
    "    if (b < 64) s[b] = s[b] + d;\n"
    "    d /= 2;\n"
    "  }\n"
    "  barrier();\n"
    "  if (t < len(y)) y[t] = s[t] + s[t + 32];\n"
    "}\n";

/* Indices before a barrier, and versions without a loop. */
static const char butterfly[] =
    "kernel butterfly workgroup(32)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "shared s : u32[128];\n"
    "{\n"
    "  let t = local_id.x;\n"
    "  s[t] = x[t]; s[t + 32] = x[t + 32] * 3; s[t + 64] = t;\n"
    "  var d = 32u;\n"
    "  while (d > 0) {\n"
    "    let low = t & (d - 1);\n"
    "    let a = (t - low) * 4 + low;\n"
    "    let kept = s[t];\n"
    "    barrier();\n"
    "    s[a] = s[a + d] * 3 + s[a + 2 * d] + low;\n"
    "    s[a + 3 * d] = kept;\n"
    "    d >>= 2;\n"
    "  }\n"
    "  barrier();\n"
    "  if (t < len(y)) y[t] = s[t] + s[t + 96];\n"
    "}\n";
static const char apart[] =
    "kernel apart workgroup(32)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  let w = n / 4 * 4 + 4;\n"
    "  if (i < len(y)) y[i] = x[i / w * w + i % w] + x[i % w * 2] * 5;\n"
    "}\n";

/* Neighbours around the ends of a row. */
static const char periodic[] =
    "kernel periodic workgroup(32)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{\n"
    "  let i = global_id.x;\n"
    "  let w = len(y);\n"
    "  if (i < w) y[i] = x[(i + 1) % w] + x[(i + w - 1) % w] * 3;\n"
    "  if (i < n) y[i] = y[i] + x[(i - 2 + n) % n] + (i + 5) % n;\n"
    "}\n";

TEST(schedules_of_small_kernels_do_the_same) {
  static const char *const kernels[] = {
      saxpy,     divergent, row_sum,     product,   sums,       weighted,
      histogram, strided,   reduce,      clamps,    empty_loop, columns,
      wavefront, strides,   network,     butterfly, apart,      periodic,
      tree,      over_grid, up_and_down, edges};
  static const size_t lengths[] = {190, 1, 64, 97};
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++) {
      const program_test test = {.check = check_schedules,
                                 .length = lengths[n]};
      failed += check_text(&test, kernels[i], "small");
    }
  }
  CHECK_U64(failed, 0);
}

TEST(schedules_of_random_programs_do_the_same) {
  const program_test test = {
      .check = check_schedules, .options = options_of, .count = SEEDS};
  CHECK_U64(check_random_programs(&test), 0);
  CHECK(runs > 0);
}

TEST_MAIN(TEST_ENTRY(schedules_of_small_kernels_do_the_same),
          TEST_ENTRY(schedules_of_examples_do_the_same),
          TEST_ENTRY(schedules_of_random_programs_do_the_same))
