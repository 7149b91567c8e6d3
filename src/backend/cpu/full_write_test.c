/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Outputs that need not be cleared: which are found, and that no other is taken
 * for one. */
#include "vyre/vyre.h"

#include "backend/cpu/plan.h"
#include "support/check.h"

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
    /* not every element, or not by every invocation */
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
    {HEAD "{ z[local_id.x] = 5; }", NO, 0},
    {HEAD "{ z[workgroup_id.x] = 5; }", NO, 0},
    {HEAD "{ z[global_id.y] = 5; }", NO, 0},
    {HEAD "{ " I "if (global_id.y < len(z)) z[i] = 5; }", NO, 0},
    {HEAD "{ " I "z[i] = 5; if (i == 3) return; }", Z, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static vyre_module *parse(const char *text) {
  vyre_status st = {0};
  vyre_module *module;
  CHECK_OK(vyre_module_parse(text, strlen(text), "k", (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  return module;
}

TEST(stores_that_everybody_gets_to_are_found_with_their_limits) {
  for (size_t c = 0; c < CASES; c++) {
    vyre_status st = {0};
    vyre_arena arena;
    const vyre__lir_kernel *kernel;
    vyre_program *inlined;
    cpu_plan plan;
    vyre__target target = {0};
    vyre__spmd_info info = {.width = 8};
    vyre_module *module = parse(cases[c].text);
    vyre_arena_init(&arena, (vyre_allocator){0});
    CHECK_OK(vyre__lower(vyre_module_kernel(module, 0), &target,
                         VYRE__PASS_LEGALIZE_CONTROL, &arena, &kernel, &inlined,
                         &st),
             st);
    CHECK_OK(cpu_plan_build(kernel, &info, &arena, &plan, &st), st);
    const cpu_full_write *z = &plan.full_writes[1];
    bool is_full = cases[c].within != NO;
    if (z->is_full != is_full) printf("    %s\n", cases[c].text);
    CHECK_U64(z->is_full, is_full);
    CHECK_U64(plan.full_writes[0].is_full + plan.full_writes[2].is_full, 0);
    if (is_full) { /* its own length may be among the limits */
      CHECK_U64(z->within | Z, cases[c].within | Z);
      CHECK_U64(z->limit, cases[c].limit ? cases[c].limit : UINT32_MAX);
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

TEST(whatever_is_left_out_is_zero_as_on_ref) {
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
    vyre_module *module = parse(cases[c].text);
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

TEST_MAIN(TEST_ENTRY(stores_that_everybody_gets_to_are_found_with_their_limits),
          TEST_ENTRY(whatever_is_left_out_is_zero_as_on_ref))
