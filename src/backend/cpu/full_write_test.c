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
    /* not every element, or not by every invocation */
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

/* --- rows and columns ------------------------------------------------------*/

/* All stores write the same value: a store outside its row may hit an element
 * of another row. */

#define FLAT                                                               \
  "kernel k workgroup(4, 2)\nbuffer z : write u32[] @0;\nuniform w : u32 " \
  "@1;\n"                                                                  \
  "uniform h : u32 @2;\n{ let x = global_id.x; let y = global_id.y; "

static const struct {
  const char *text;
  bool is_full;
} flat[] = {
    {FLAT "if (x >= w || y >= h) return; z[y * w + x] = 5; }", true},
    {FLAT "if (x < w && y < h) z[x + w * y] = 5; }", true},
    {FLAT "z[y * w + x] = 5; }", true},
    {FLAT "if (x < w && y < h) z[x * h + y] = 5; }", true},
    {FLAT "if (x < w && y < h) { let o = (y * w + x) * 3; z[o] = 5; "
          "z[o + 1] = 5; z[o + 2] = 5; } }",
     true},
    {FLAT "if (x > 0 && x < w - 1 && y > 0) { z[y * w + x] = 5; } else if (x < "
          "w && y < h) { z[y * w + x] = 5; } }",
     true},
    {FLAT "let at = (workgroup_id.y * 8 + local_id.y) * w + x; z[at] = 5; "
          "z[at + 2 * w] = 5; z[at + 4 * w] = 5; z[at + 6 * w] = 5; }",
     true},
    {FLAT "for (let j = 0u; j < 3; j++) z[(y * 3 + j) * w + x] = 5; }", true},
    {FLAT "if (x < w && y < h) z[i32(y) * i32(w) + i32(x)] = 5; }", true},
    {FLAT "if (x < h && y < w) z[y * w + x] = 5; }", true},
    {FLAT "let a = workgroup_id.x * 2 + local_id.y; let b = workgroup_id.y * 4 "
          "+ local_id.x; if (a < w && b < h) z[a * h + b] = 5; }",
     true},
    {FLAT "let a = workgroup_id.x * 4 + local_id.y; let b = workgroup_id.y * 2 "
          "+ local_id.x; if (a < w && b < h) z[a * h + b] = 5; }",
     false},
    {FLAT "let a = workgroup_id.x * 2 + local_id.y; if (a < w && x < h) "
          "z[a * h + x] = 5; }",
     false},
    {FLAT "if (x < w && y < h) z[y * h + x] = 5; }", true},
    {FLAT "if (x <= w && y < h) z[y * w + x] = 5; }", false},
    {FLAT "if (x < w && y < h && x + y > 0) z[y * w + x] = 5; }", false},
    {FLAT "if (x < w && y < h) z[y * w + x + 1] = 5; }", false},
    {FLAT "if (x < w && y < h) z[y * w * w + x] = 5; }", false},
    {FLAT "if (x < w && y < h && local_id.x < 3) z[y * w + x] = 5; }", false},
    {FLAT "if (x < w && y < h) z[x * x + y] = 5; }", false},
};
enum { FLAT_COUNT = sizeof flat / sizeof flat[0], FLAT_MAX = 400 };

typedef struct flat_shape {
  uint32_t w, h, z, grid[2];
} flat_shape;

/* Returns true if the plan of a kernel clears no output of the launch. */
static bool covers(const cpu_plan *plan, const flat_shape *s) {
  union {
    vyre__spmd_launch launch;
    unsigned char
        bytes[sizeof(vyre__spmd_launch) + 3 * sizeof(vyre__spmd_view)];
  } l = {.bytes = {0}};
  uint32_t uniforms[2] = {s->w, s->h};
  l.launch.grid[0] = s->grid[0];
  l.launch.grid[1] = s->grid[1];
  l.launch.grid[2] = 1;
  l.launch.views[0].length = s->z;
  for (int i = 0; i < 2; i++) {
    l.launch.views[1 + i] =
        (vyre__spmd_view){.data = (unsigned char *)&uniforms[i], .length = 1};
  }
  return cpu_is_fully_written(plan, 0, &l.launch);
}

static void run_flat(vyre_pipeline *pipeline, const flat_shape *s,
                     uint32_t *z) {
  vyre_status st = {0};
  vyre_input in[] = {vyre_input_bytes(&s->w, 4), vyre_input_bytes(&s->h, 4)};
  vyre_output out = vyre_output_bytes(z, (size_t)s->z * 4);
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {s->grid[0], s->grid[1], 1}};
  memset(z, 0xee, FLAT_MAX * sizeof *z);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
}

static uint32_t pick(uint32_t *seed, uint32_t count) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % count;
}

/* Chooses a shape in which the grid and the length are close to w * h. */
static flat_shape some_shape(uint32_t *seed) {
  static const uint32_t odd[] = {0, 1, 0x10000, 0x80000000, 0xFFFFFFFF};
  flat_shape s = {1 + pick(seed, 9), 1 + pick(seed, 9), 0, {0, 0}};
  uint32_t length = s.w * s.h * (1 + 2 * pick(seed, 2)) + pick(seed, 3);
  s.z = length > 1 ? length - 1 : 1;
  s.grid[0] = (s.w + 3) / 4 + pick(seed, 3);
  s.grid[1] = (s.h + 1) / 2 + pick(seed, 2);
  if (s.grid[0] > 1) s.grid[0] -= 1;
  if (pick(seed, 6) == 0) s.w = odd[pick(seed, 5)];
  if (pick(seed, 6) == 0) s.h = odd[pick(seed, 5)];
  return s;
}

TEST(rows_and_columns_without_gaps_are_not_cleared) {
  vyre_context_options options = {.cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = "cpu.threads=1"};
  vyre_context *context;
  vyre_status st = {0};
  uint32_t seed = 7, covered = 0;
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  for (size_t c = 0; c < FLAT_COUNT; c++) {
    vyre_module *module = parse_module(flat[c].text);
    vyre_device *devices[2];
    vyre_pipeline *pipelines[2];
    vyre_arena arena;
    cpu_plan plan;
    vyre_arena_init(&arena, (vyre_allocator){0});
    plan_of(module, &arena, &plan);
    if (plan.full_writes[0].is_full != flat[c].is_full) {
      printf("    %s\n", flat[c].text);
    }
    CHECK_U64(plan.full_writes[0].is_full, flat[c].is_full);
    if (flat[c].is_full) { /* an i32 index is negative from 2^31 on */
      bool is_signed = strstr(flat[c].text, "i32") != NULL;
      CHECK_U64(plan.full_writes[0].max_length,
                is_signed ? INT32_MAX : UINT32_MAX);
    }
    for (int d = 0; d < 2; d++) {
      CHECK_OK(vyre_device_open(context, d ? "cpu" : "ref", &devices[d], &st),
               st);
      CHECK_OK(vyre_pipeline_compile(devices[d], vyre_module_kernel(module, 0),
                                     NULL, &pipelines[d], NULL, &st),
               st);
    }
    for (int round = 0; round < 60; round++) {
      uint32_t want[FLAT_MAX], got[FLAT_MAX];
      flat_shape s = some_shape(&seed);
      run_flat(pipelines[0], &s, want);
      run_flat(pipelines[1], &s, got);
      covered += covers(&plan, &s);
      for (uint32_t i = 0; i < FLAT_MAX; i++) CHECK_U64(got[i], want[i]);
    }
    for (int d = 0; d < 2; d++) {
      vyre_pipeline_release(pipelines[d]);
      vyre_device_release(devices[d]);
    }
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
  CHECK(covered > 100);
  vyre_context_release(context);
}

/* --- combinations ----------------------------------------------------------*/

static const char *const guards[] = {
    "",
    "if (x >= w || y >= h) return; ",
    "if (x >= w) return; if (!(y < h)) return; ",
    "if (y >= min(w, h)) return; ",
    "if (x >= h || y >= w) return; ",
    "if (a >= w || b >= h) return; ",
    "if (local_id.x >= 2) return; ",
    "if (workgroup_id.y >= h) return; ",
    "if (x >= 4 || y >= len(z)) return; ",
    "if (x != 0) return; ",
    "if (local_id.y != 0 || x >= w) return; ",
};
static const char *const stores[] = {
    "z[y * w + x] = 5;",
    "z[x * h + y] = 5;",
    "z[a * h + b] = 5;",
    "z[b * w + a] = 5;",
    "z[y * 8 + x] = 5;",
    "z[x + y] = 5;",
    "z[x * 2 + y] = 5;",
    "z[workgroup_id.x * 8 + local_id.y * 4 + local_id.x] = 5;",
    "z[workgroup_id.x * 8 + local_id.x * 2 + local_id.y] = 5;",
    "z[workgroup_id.y * w + workgroup_id.x] = 5;",
    "z[(y * w + x) * 2] = 5; z[(y * w + x) * 2 + 1] = 5;",
    "z[y * 2 * w + x] = 5; z[y * 2 * w + w + x] = 5;",
    "z[x * 2] = 5; if (x < h) z[x * 2 + 1] = 5;",
    "z[x * w + x] = 5;",
    "z[y + x * w + x] = 5;",
    "z[x * 3 + 1] = 5; z[x * 3] = 5; z[x * 3 + 2] = 5; z[x * 3 + 4] = 5;",
    "if (x > y) { z[y * w + x] = 5; } else { z[x + w * y] = 5; }",
    "if (x > y) { z[y * w + x] = 5; } else { if (x < h) z[x + w * y] = 5; }",
    "if (x > y) { z[y * w + x] = 5; } else { z[x + h * y] = 5; }",
    "for (let j = 0u; j < h; j++) z[j * w + x] = 5;",
    "for (let j = 0u; j < w; j++) z[y * w + j] = 5;",
    "for (let j = local_id.x; j < w; j += 4) z[y * w + j] = 5;",
    "for (let j = local_id.x; j < w; j += 4) z[workgroup_id.y * w + j] = 5;",
    "for (let j = local_id.y; j < h; j += 2) z[j * w + x] = 5;",
    ("for (let j = local_id.x; j < w; j += 4) "
     "for (let k = local_id.y; k < h; k += 2) z[k * w + j] = 5;"),
    "for (let j = 1u; j < 5; j++) z[x * 4 + j - 1] = 5;",
    "for (let j = 0u; j < 4; j += 2) z[x * 4 + j] = 5;",
    ("for (let j = 0u; j < 3; j++) for (let k = 0u; k <= 1; k++) "
     "z[(y * 3 + j) * w + x * 2 + k] = 5;"),
};
enum {
  GUARDS = sizeof guards / sizeof guards[0],
  STORES = sizeof stores / sizeof stores[0],
};

/* Whatever is not cleared is stored: then no element is 0. */
TEST(launches_without_clearing_store_every_element) {
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  vyre_context *context;
  vyre_device *device;
  vyre_status st = {0};
  uint32_t seed = 3, covered = 0;
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "ref", &device, &st), st);
  for (size_t c = 0; c < (size_t)GUARDS * STORES; c++) {
    char text[1024];
    vyre_pipeline *pipeline;
    vyre_arena arena;
    cpu_plan plan;
    (void)snprintf(text, sizeof text,
                   FLAT
                   "let a = workgroup_id.x * 2 + local_id.y; let b = "
                   "workgroup_id.y * 4 + local_id.x; %s%s }",
                   guards[c % GUARDS], stores[c / GUARDS]);
    vyre_module *module = parse_module(text);
    vyre_arena_init(&arena, (vyre_allocator){0});
    plan_of(module, &arena, &plan);
    CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                   &pipeline, NULL, &st),
             st);
    for (int round = 0; round < 40; round++) {
      uint32_t z[FLAT_MAX], gaps = 0;
      flat_shape s = some_shape(&seed);
      if (s.w > 16 && strstr(text, "< w; j")) s.w %= 16;
      if (s.h > 16 && strstr(text, "< h; ")) s.h %= 16;
      if (!covers(&plan, &s)) continue;
      run_flat(pipeline, &s, z);
      for (uint32_t i = 0; i < s.z; i++) gaps += z[i] != 5;
      if (gaps > 0) {
        printf("    %s\n    w %u, h %u, %u elements, grid %u x %u\n", text, s.w,
               s.h, s.z, s.grid[0], s.grid[1]);
      }
      CHECK_U64(gaps, 0);
      covered++;
    }
    vyre_pipeline_release(pipeline);
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
  CHECK(covered > 1000);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST_MAIN(TEST_ENTRY(stores_of_all_invocations_are_found_with_limits),
          TEST_ENTRY(elements_without_a_store_are_zero),
          TEST_ENTRY(rows_and_columns_without_gaps_are_not_cleared),
          TEST_ENTRY(launches_without_clearing_store_every_element))
