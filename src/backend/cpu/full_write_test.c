/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests which outputs are proven to be written whole, so that a launch need not
 * clear them first, and that no other output is. */

#include "backend/cpu/plan.h"
#include "support/check.h"
#include "support/parse.h"

/* Buffers of all kernels: x 0, z 1 (the one in question), n 2. */
#define HEAD                                                           \
  "kernel k workgroup(8)\nbuffer x : read u32[] @0;\nbuffer z : write" \
  " u32[] @1;\nuniform n : u32 @2;\n"
#define I "let i = global_id.x; "

enum { X = 1, Z = 2, N = 4, NO = 0x80 };

static const struct {
  const char *text;
  uint32_t within; /* NO: it is not a full write */
  uint32_t limit;  /* 0: no limit */
} cases[] = {
    {HEAD "{ z[global_id.x] = 5; }", Z, 0},
    {HEAD "{ " I "if (i < len(z)) z[i] = 5; }", Z, 0},
    {HEAD "{ " I "if (i < len(x) && i < len(z)) z[i] = x[i]; }", X | Z, 0},
    {HEAD "{ " I "if (i >= len(z)) return; z[i] = 5; }", Z, 0},
    {HEAD "{ " I "if (i >= n || i >= len(z)) return; z[i] = 5; }", N | Z, 0},
    {HEAD "{ " I "if (i < n) { if (i < 100) { z[i] = 5; } } }", N | Z, 100},
    {HEAD "{ " I "if (!(i >= n)) z[i] = 5; }", N | Z, 0},
    {HEAD "{ " I "var s = 0u; for (let j = 0u; j < n; j++) { s += x[j]; }"
          " z[i] = s; }",
     Z, 0},
    {HEAD "{ " I "if (i == 3) { z[0] = 1; } z[i] = 7; }", Z, 0},
    /* every element of some launches */
    {HEAD "{ z[local_id.x] = 5; }", Z, 0},
    {HEAD "{ z[workgroup_id.x] = 5; }", Z, 0},
    {HEAD "{ if (local_id.x == 0) z[workgroup_id.x] = 5; }", Z, 1},
    {HEAD "{ z[global_id.y] = 5; }", Z, 0},
    {HEAD "{ " I "if (global_id.y < len(z)) z[i] = 5; }", Z, 0},
    {HEAD "{ " I "if (i < min(n, len(x))) z[i] = 5; }", X | N | Z, 0},
    {HEAD "{ " I "if (i % 2 == 0) { z[i] = 5; } else { z[i] = 5; } }", Z, 0},
    {HEAD "{ " I "if (i > 3) { z[i] = 5; } else { if (i < n) z[i] = 5; } }",
     N | Z, 0},
    {HEAD "{ " I "z[i * 3] = 5; z[i * 3 + 1] = 5; z[i * 3 + 2] = 5; }", Z, 3},
    {HEAD "{ " I "z[i * 3 + 2] = 5; z[i * 3] = 5; z[i * 3 + 1] = 5; }", Z, 3},
    {HEAD "{ " I "for (let j = 0u; j < 4; j++) z[i * 4 + j] = 5; }", Z, 4},
    {HEAD "{ for (let j = 1i; j <= 4; j++) z[global_id.x * 4 + u32(j) - 1] ="
          " 5; }",
     Z, 4},
    {HEAD "{ for (let j = local_id.x; j < n; j += 8) z[workgroup_id.x * n + j]"
          " = 5; }",
     N | Z, 0},
    {HEAD "{ for (let j = 0u; j < n; j++) z[j] = 5; }", N | Z, 0},
    {HEAD "{ " I "if (x[i] == 1) { z[i] = 1; return; } z[i] = 7; }", Z, 0},
    {HEAD "{ " I "if (x[i] == 1) { if (i < n) z[i] = 1; return; } z[i] = 7; }",
     N | Z, 0},
    {HEAD "{ " I "if (x[i] == 1) { z[i] = 1; return; } if (i >= n) return;"
          " z[i] = 7; }",
     N | Z, 0},
    {HEAD "{ " I "if (x[i] == 1) { z[i] = 1; return; } if (x[i] == 2) {"
          " z[i] = 2; return; } z[i] = 7; }",
     Z, 0},
    /* not every element, or not by every invocation */
    {HEAD "{ " I "if (i > n) return; z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (i <= n) z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (i <= n - 2) z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (x[i] == 1) { z[i + 1] = 1; return; } z[i] = 7; }", NO, 0},
    {HEAD "{ " I "if (x[i] == 1) { if (i == 3) return; z[i] = 1; return; }"
          " z[i] = 7; }",
     NO, 0},
    {HEAD "{ " I "if (x[i] == 1) { z[i] = 1; return; } if (x[i] == 2) return;"
          " z[i] = 7; }",
     NO, 0},
    {HEAD "{ " I "if (x[i] == 1) { z[i] = 1; return; } if (i > 3) z[i] = 7; }",
     NO, 0},
    {HEAD "{ " I "if (i % 2 == 0) { z[i] = 5; } else { z[i + 1] = 5; } }", NO,
     0},
    {HEAD "{ " I "z[i * 3] = 5; z[i * 3 + 1] = 5; }", Z, 2},
    {HEAD "{ " I "z[i * 3] = 5; z[i * 3 + 2] = 5; }", NO, 0},
    {HEAD "{ " I "z[i * 3 + 1] = 5; z[i * 3 + 2] = 5; }", NO, 0},
    {HEAD "{ " I "for (let j = 1u; j < 4; j++) z[i * 4 + j] = 5; }", NO, 0},
    {HEAD "{ " I "for (let j = 0u; j < 4; j += 2) z[i * 4 + j] = 5; }", NO, 0},
    {HEAD "{ " I "for (let j = 0u; j < 4; j++) { if (x[j] == 1) break;"
          " z[i * 4 + j] = 5; } }",
     NO, 0},
    {HEAD "{ " I "for (let j = 0u; j < 4; j++) { if (x[j] == 1) continue;"
          " z[i * 4 + j] = 5; } }",
     NO, 0},
    {HEAD "{ for (let j = local_id.x; j < n; j += 7) z[j] = 5; }", NO, 0},
    {HEAD "{ for (let j = local_id.x; j < n; j += 8) z[j + local_id.x] = 5; }",
     NO, 0},
    {HEAD "{ if (local_id.x < 4) for (let j = local_id.x; j < n; j += 8)"
          " z[j] = 5; }",
     NO, 0},
    {HEAD "{ for (let j = local_id.x; j < n; j += 8) for (let k = local_id.x;"
          " k < n; k += 8) z[j * n + k] = 5; }",
     NO, 0},
    {HEAD "{ for (let j = 0i; j < i32(n); j++) z[j] = 5; }", NO, 0},
    {HEAD "{ for (let j = 0u; j < n; j++) z[j * n] = 5; }", N | Z, 0},
    {HEAD "{ if (local_id.x < 4) z[global_id.x] = 5; }", Z, 4},
    {HEAD "{ if (local_id.x > 4) z[workgroup_id.x] = 5; }", NO, 0},
    {HEAD "{ z[global_id.x * n] = 5; }", Z, 0},
    {HEAD "{ z[global_id.x - n] = 5; }", NO, 0},
    {HEAD "{ " I "if (i > 3) z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (i % 2 == 0) z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (x[i] < len(z)) z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (i < n || i < 7) z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (i < n) { let q = 1u; } else { z[i] = 5; } }", NO, 0},
    {HEAD "{ " I "if (i == n) return; z[i] = 5; }", NO, 0},
    {HEAD "{ " I "if (x[0] == 1) { if (i >= len(z)) return; } z[i] = 5; }", NO,
     0},
    {HEAD "{ " I "if (i < 4) { if (i >= n) return; } z[i] = 5; }", NO, 0},
    {HEAD "{ " I "for (let j = 0u; j < n; j++) { z[i] = j; } }", NO, 0},
    {HEAD "{ " I "while (x[0] > 1) { if (x[1] == 2) return; } z[i] = 5; }", NO,
     0},
    {HEAD "{ z[global_id.x + 1] = 5; }", NO, 0},
    {HEAD "{ z[global_id.x * 2] = 5; }", NO, 0},
    {HEAD "{ " I "z[i] = 5; if (i == 3) return; }", Z, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static void plan_of(const vyre_module *module, vyre_arena *arena,
                    cpu_plan *plan) {
  const vyre__lir_kernel *kernel;
  vyre_program *inlined;
  vyre_status st = {0};
  vyre__target target = {0};
  vyre__spmd_info info = {.width = 8};
  CHECK_OK(
      vyre__lower(vyre_module_kernel(module, 0), &target,
                  VYRE__PASS_LEGALIZE_CONTROL, arena, &kernel, &inlined, &st),
      st);
  CHECK_OK(cpu_plan_build(kernel, &info, arena, plan, &st), st);
}

typedef struct limit {
  uint32_t within, limit;
} limit;

/* Returns the limits of all digits together. A digit for the local id is
 * limited by the workgroup size, which does not count. */
static limit limits_of(const cpu_full_write *w) {
  limit all = {0, UINT32_MAX};
  for (uint32_t i = 0; i < w->digit_count; i++) {
    all.within |= w->digits[i].within;
    if (w->digits[i].limit < all.limit && w->digits[i].limit != 8) {
      all.limit = w->digits[i].limit;
    }
  }
  return all;
}

TEST(stores_of_all_invocations_are_found_with_limits) {
  for (size_t c = 0; c < CASES; c++) {
    vyre_arena arena;
    cpu_plan plan;
    vyre_module *module = parse_module(cases[c].text);
    vyre_arena_init(&arena, (vyre_allocator){0});
    plan_of(module, &arena, &plan);
    const cpu_full_write *z = &plan.full_writes[1];
    bool is_full = cases[c].within != NO;
    if (z->is_full != is_full) printf("    %s\n", cases[c].text);
    CHECK_U64(z->is_full, is_full);
    CHECK_U64(plan.full_writes[0].is_full + plan.full_writes[2].is_full, 0);
    if (is_full) { /* its own length may be among the limits */
      limit got = limits_of(z);
      CHECK_U64(got.within | Z, cases[c].within | Z);
      CHECK_U64(got.limit, cases[c].limit ? cases[c].limit : UINT32_MAX);
    }
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
}

/* --- running ---------------------------------------------------------------*/

enum { MOST = 40 };

typedef struct shape {
  uint32_t x, z, n, groups;
} shape;

/* Runs into memory that holds other values. */
static void run(vyre_pipeline *pipeline, const shape *s, uint32_t *z) {
  static uint32_t x[MOST];
  vyre_status st = {0};
  vyre_input in[] = {vyre_input_bytes(x, (size_t)s->x * 4),
                     vyre_input_bytes(&s->n, 4)};
  vyre_output out = vyre_output_bytes(z, (size_t)s->z * 4);
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {s->groups}};
  for (uint32_t i = 0; i < MOST; i++) x[i] = i % 3;
  memset(z, 0xee, MOST * sizeof *z);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
}

TEST(elements_without_a_store_are_zero) {
  static const shape shapes[] = {
      {40, 40, 40, 5}, {40, 40, 39, 5}, {39, 40, 40, 5}, {40, 40, 40, 4},
      {40, 33, 33, 5}, {40, 33, 0, 5},  {1, 40, 7, 1},   {40, 1, 1, 1}};
  vyre_context_options options = {.cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = "cpu.threads=2"};
  vyre_context *context;
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  for (size_t c = 0; c < CASES; c++) {
    vyre_module *module = parse_module(cases[c].text);
    vyre_device *devices[2];
    vyre_pipeline *pipelines[2];
    for (int d = 0; d < 2; d++) {
      CHECK_OK(vyre_device_open(context, d ? "cpu" : "ref", &devices[d], &st),
               st);
      CHECK_OK(vyre_pipeline_compile(devices[d], vyre_module_kernel(module, 0),
                                     NULL, &pipelines[d], NULL, &st),
               st);
    }
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      uint32_t want[MOST], got[MOST];
      run(pipelines[0], &shapes[s], want);
      run(pipelines[1], &shapes[s], got);
      for (uint32_t i = 0; i < MOST; i++) CHECK_U64(got[i], want[i]);
    }
    for (int d = 0; d < 2; d++) {
      vyre_pipeline_release(pipelines[d]);
      vyre_device_release(devices[d]);
    }
    vyre_module_release(module);
  }
  vyre_context_release(context);
}

TEST_MAIN(TEST_ENTRY(stores_of_all_invocations_are_found_with_limits),
          TEST_ENTRY(elements_without_a_store_are_zero))
