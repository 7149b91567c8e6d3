/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests which elements of an output a launch need not clear: all of them are
 * stored, and all others are 0 afterwards. */
#include "vyre/vyre.h"

#include "backend/cpu/plan.h"
#include "support/check.h"
#include "support/parse.h"

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

/* Finds the elements that a launch need not clear. */
static bool find_coverage(const cpu_plan *plan, const flat_shape *s,
                          cpu_coverage *out) {
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
  return cpu_find_coverage(plan, 0, &l.launch, out);
}

/* Returns true if the plan of a kernel clears no output of the launch. */
static bool covers(const cpu_plan *plan, const flat_shape *s) {
  cpu_coverage c;
  return find_coverage(plan, s, &c) && c.base == 0 && c.run >= s->z;
}

/* Returns true if element @p at is in one of the runs, from the outermost digit
 * inwards. */
static bool is_in_runs(const cpu_coverage *c, uint32_t digits, uint64_t at) {
  if (digits == 0) return at < c->run;
  uint64_t stride = c->strides[digits - 1];
  for (uint64_t k = 0; k < c->counts[digits - 1] && k * stride <= at; k++) {
    if (is_in_runs(c, digits - 1, at - k * stride)) return true;
  }
  return false;
}

static void dispatch_flat(vyre_pipeline *pipeline, const flat_shape *s,
                          uint32_t *z) {
  vyre_status st = {0};
  vyre_input in[] = {vyre_input_bytes(&s->w, 4), vyre_input_bytes(&s->h, 4)};
  vyre_output out = vyre_output_bytes(z, (size_t)s->z * 4);
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {s->grid[0], s->grid[1], 1}};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
}

static void run_flat(vyre_pipeline *pipeline, const flat_shape *s,
                     uint32_t *z) {
  memset(z, 0xee, FLAT_MAX * sizeof *z);
  dispatch_flat(pipeline, s, z);
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
    "if (x == 0 || y == 0 || x >= w - 1 || y >= h - 1) return; ",
    "if (x < 2 || x >= w - 1) return; if (y >= h) return; ",
    "if (!(y > 1) || x > 5) return; ",
    "if (x >= w - 1 || x >= w - 2) return; ",
    "if (x >= min(w - 1, h) - 2) return; ",
    "if (local_id.y == 0 || x >= w + 1) return; ",
    "if (workgroup_id.y < 1 || x <= 1) return; ",
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
    "z[(y + 1) * w + x + 1] = 5;",
    "z[y * w + x - 1] = 5;",
    "z[y * w + x - w - 1] = 5;",
    "z[y * w * w + x + w * h] = 5;",
    "z[y * w + x + w * w * w - h * h * w] = 5;",
    "z[y * h - 3 * x] = 5;",
    "z[(y * 2 + 1) * w + x * 2 + 1] = 5;",
    "for (let j = 1u; j < w - 1; j++) z[y * w + j] = 5;",
    "for (let j = 0u; j < w - 1; j++) z[y * w + j + 1] = 5;",
    "for (let j = 2u; j < 7; j++) z[y * w + j] = 5;",
    ("if (x > 1 && x < w - 1) { z[y * w + x] = 5; } "
     "else { if (x < w) z[y * w + x] = 5; }"),
    "if (x == 0) { z[y * w] = 5; } else { z[y * w + x] = 5; }",
};
enum {
  GUARDS = sizeof guards / sizeof guards[0],
  STORES = sizeof stores / sizeof stores[0],
};

/* Writes kernel @p c of all combinations. */
static void text_of(size_t c, char *text, size_t size) {
  (void)snprintf(text, size,
                 FLAT
                 "let a = workgroup_id.x * 2 + local_id.y; let b = "
                 "workgroup_id.y * 4 + local_id.x; %s%s }",
                 guards[c % GUARDS], stores[c / GUARDS]);
}

/* Elements that are not cleared are stored: no element of a run is 0. */
TEST(elements_that_are_not_cleared_are_stored) {
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  vyre_context *context;
  vyre_device *device;
  vyre_status st = {0};
  uint32_t seed = 3, whole = 0, partial = 0;
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "ref", &device, &st), st);
  for (size_t c = 0; c < (size_t)GUARDS * STORES; c++) {
    char text[1024];
    vyre_pipeline *pipeline;
    vyre_arena arena;
    cpu_plan plan;
    text_of(c, text, sizeof text);
    vyre_module *module = parse_module(text);
    vyre_arena_init(&arena, (vyre_allocator){0});
    plan_of(module, &arena, &plan);
    CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                   &pipeline, NULL, &st),
             st);
    for (int round = 0; round < 40; round++) {
      uint32_t z[FLAT_MAX], gaps = 0;
      cpu_coverage runs;
      flat_shape s = some_shape(&seed);
      if (s.w > 16 && strstr(text, "; j")) s.w %= 16;
      if (s.h > 16 && strstr(text, "< h; ")) s.h %= 16;
      if (s.w == 0 && strstr(text, "; j")) s.w = 1; /* w - 1 is very large */
      if (!find_coverage(&plan, &s, &runs)) continue;
      run_flat(pipeline, &s, z);
      for (uint32_t i = (uint32_t)runs.base; i < s.z; i++) {
        gaps += z[i] != 5 && is_in_runs(&runs, runs.outer_count, i - runs.base);
      }
      if (gaps > 0) {
        printf("    %s\n    w %u, h %u, %u elements, grid %u x %u\n", text, s.w,
               s.h, s.z, s.grid[0], s.grid[1]);
      }
      CHECK_U64(gaps, 0);
      whole += covers(&plan, &s);
      partial += !covers(&plan, &s);
    }
    vyre_pipeline_release(pipeline);
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
  CHECK(whole > 1000);
  CHECK(partial > 1000);
  vyre_device_release(device);
  vyre_context_release(context);
}

/* Interiors, whose borders alone are cleared: rows of a whole cache line. */
static const char *const interiors[] = {
    "if (x > 0 && y > 0 && x < w - 1 && y < h - 1) z[y * w + x] = 5;",
    "if (x != 0 && y != 0 && x < w - 1 && y < h - 1) z[y * w + x] = 5;",
    "if (x >= w || y >= h) return; if (y < 2) return; z[y * w + x] = 5;",
    "if (x < w - 2 && y < h - 2) z[(y + 1) * w + x + 1] = 5;",
    "if (x < w - 3 && y < h) z[y * w + x + 3] = 5;",
    ("if (x < w - 2 && y < h) for (let j = 0u; j < 2; j++) "
     "z[(y * 2 + j) * w + x + 1] = 5;"),
    "if (x >= 4 && x < w && y >= 1 && y <= 6) z[y * w + x] = 5;",
};

/* Computes by hand what kernel @p c of interiors stores. */
static void store_interior(size_t c, const flat_shape *s, uint32_t *z) {
  for (uint32_t y = 0; y < s->grid[1] * 2; y++) {
    for (uint32_t x = 0; x < s->grid[0] * 4; x++) {
      uint32_t w = s->w, h = s->h, at = y * w + x, more = UINT32_MAX;
      bool is = c < 2   ? x > 0 && y > 0 && x < w - 1 && y < h - 1
                : c < 3 ? x < w && y < h && y >= 2
                : c < 4 ? x < w - 2 && y < h - 2
                : c < 5 ? x < w - 3 && y < h
                : c < 6 ? x < w - 2 && y < h
                        : x >= 4 && x < w && y >= 1 && y <= 6;
      if (c == 3) at = (y + 1) * w + x + 1;
      if (c == 4) at = y * w + x + 3;
      if (c == 5) {
        at = y * 2 * w + x + 1;
        more = at + w;
      }
      if (is && at < s->z) z[at] = 5;
      if (is && more < s->z) z[more] = 5;
    }
  }
}

TEST(borders_are_cleared) {
  enum { CELLS = 64 * 16 };
  static const flat_shape shapes[] = {
      {64, 16, 1024, {16, 8}}, {64, 16, 1023, {16, 8}}, {64, 16, 1000, {16, 8}},
      {61, 16, 976, {16, 8}},  {61, 16, 970, {16, 8}},  {60, 8, 1024, {16, 8}},
      {64, 16, 960, {14, 8}},  {64, 15, 1024, {16, 8}}, {64, 2, 128, {16, 8}},
      {1, 16, 40, {16, 8}},    {64, 0, 640, {16, 8}},   {0, 16, 640, {16, 8}}};
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  vyre_context *context;
  vyre_device *device;
  vyre_status st = {0};
  uint32_t partial = 0;
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "cpu", &device, &st), st);
  for (size_t c = 0; c < sizeof interiors / sizeof *interiors; c++) {
    char text[1024];
    vyre_arena arena;
    cpu_plan plan;
    vyre_pipeline *pipeline;
    (void)snprintf(text, sizeof text, FLAT "%s }", interiors[c]);
    vyre_module *module = parse_module(text);
    vyre_arena_init(&arena, (vyre_allocator){0});
    plan_of(module, &arena, &plan);
    CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                   &pipeline, NULL, &st),
             st);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      const flat_shape *s = &shapes[k];
      uint32_t want[CELLS] = {0}, got[CELLS];
      cpu_coverage runs;
      if (s->w * s->h > CELLS) continue;
      store_interior(c, s, want);
      memset(got, 0xee, sizeof got);
      dispatch_flat(pipeline, s, got);
      for (uint32_t i = 0; i < s->z; i++) {
        if (got[i] != want[i]) {
          printf("    %s\n    w %u, h %u, element %u of %u\n", text, s->w, s->h,
                 i, s->z);
        }
        CHECK_U64(got[i], want[i]);
      }
      partial += find_coverage(&plan, s, &runs) && runs.outer_count == 1 &&
                 runs.run >= 32;
    }
    vyre_pipeline_release(pipeline);
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
  CHECK(partial > 20);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST_MAIN(TEST_ENTRY(rows_and_columns_without_gaps_are_not_cleared),
          TEST_ENTRY(elements_that_are_not_cleared_are_stored),
          TEST_ENTRY(borders_are_cleared))
