/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels that are large or keep many values at once. Each compiles, with
 * narrower vectors or to slower code, or is rejected. Small kernels stay
 * small. */
#include <time.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_testing.h"
#include "backend/cpu/jit/host_cpu.h"
#include "backend/cpu/jit/llvm_compile.h"
#include "runtime/compile/pipeline.h"

static const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};

/* --- many values at once ---------------------------------------------------*/

/* Makes a kernel with that many live values. Each comes from @p from: "y[i]",
 * or "x", which has the same value. */
static char *live_text(int values, const char *type, const char *from) {
  enum { ROOM = 1 << 20 };
  char *text = calloc(1, ROOM);
  CHECK(text != NULL);
  size_t at = (size_t)snprintf(
      text, ROOM,
      "kernel huge workgroup(128) over(y)\nbuffer y : read_write %s[] @0;\n"
      "shared t : %s[128];\n{\n    let i = global_id.x;\n"
      "    let x = y[i];\n",
      type, type);
  for (int k = 0; k < values; k++) {
    at += (size_t)snprintf(text + at, ROOM - at,
                           "    let v%d = %s * %d + %s(i ^ %d);\n", k, from,
                           k + 3, type, k);
  }
  at += (size_t)snprintf(text + at, ROOM - at,
                         "    t[local_id.x] = v0;\n    barrier();\n"
                         "    var s = t[127 - local_id.x];\n");
  for (int k = 0; k < values; k++) {
    /* in an order that keeps all of them alive until the end */
    at += (size_t)snprintf(text + at, ROOM - at,
                           "    s = s * 31 + v%d * (s | v%d);\n", k,
                           (k * 7 + 3) % values);
  }
  (void)snprintf(text + at, ROOM - at, "    y[i] = s;\n}\n");
  return text;
}

static void check_live_state(int values, const char *backend_options,
                             bool fits) {
  char *text = live_text(values, "u32", "y[i]");
  rig r = {.heap = {.left = -1}};
  vyre_context_options options = plain_options(&r);
  options.backend_options = backend_options;
  rig_begin(&r, &options, text);
  vyre_status st = {0};
  vyre_code code =
      vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                            &optimised, &r.pipeline, NULL, &st);
  if (!fits) {
    CHECK_FAILS(code, st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    CHECK_HAS(st.message, "bytes of stack; the limit is 262144");
  } else {
    CHECK_OK(code, st);
    uint32_t y[256], want;
    for (int i = 0; i < 256; i++) y[i] = (uint32_t)i + 5;
    vyre_dispatch_desc desc = {0};
    CHECK_OK(run_in_place(&r, y, sizeof y, &desc, &st), st);
    want = (uint32_t)(127 + 5) * 3 + (127 ^ 0);
    for (uint32_t k = 0; k < (uint32_t)values; k++) {
      uint32_t other = (k * 7 + 3) % (uint32_t)values;
      want = want * 31 + (5 * (k + 3) + k) * (want | (5 * (other + 3) + other));
    }
    CHECK_U64(y[0], want);
  }
  free(text);
  rig_close(&r);
}

/* With a forced width, the last one would need more stack than allowed. */
TEST(huge_live_state_compiles_or_is_refused) {
  check_live_state(250, "", true);
  check_live_state(600, "", true);
  check_live_state(300, "cpu.width=32", false);
}

/* Returns the largest `subq $n, %rsp` in assembly text. */
static unsigned long stack_in(const char *assembly) {
  unsigned long most = 0;
  for (const char *at = assembly; (at = strstr(at, "subq\t$")) != NULL;) {
    char *end;
    unsigned long bytes = strtoul(at + 6, &end, 10);
    if (strncmp(end, ", %rsp", 6) == 0 && bytes > most) most = bytes;
    at = end;
  }
  return most;
}

/* Generates the code of @p pipeline again, and returns its object file. */
static vyre__bytes object_of(const vyre_pipeline *pipeline) {
  vyre_status st = {0};
  vyre_arena arena;
  const vyre__lir_kernel *kernel;
  vyre__bytes artifact = {0}, out = {0};
  cpu_plan plan;
  const void *object;
  size_t size;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__pipeline_lower(pipeline, &arena, &kernel, &st), st);
  CHECK_OK(cpu_generate(pipeline, kernel, &arena, &artifact, &st), st);
  CHECK_OK(cpu_artifact_read(artifact.data, artifact.size, &arena, &plan,
                             &object, &size, &st),
           st);
  CHECK_U64(plan.numbers.width, ((const cpu_pipeline *)pipeline)->first.width);
  vyre__bytes_put(&out, object, size);
  vyre__bytes_deinit(&artifact);
  vyre_arena_deinit(&arena);
  return out;
}

/* Returns true if compiling @p text gives the object that was loaded. */
static bool equals_running_code(const cpu_pipeline *pipeline,
                                const growing_text *text) {
  static const vyre__jit_tier tiers[] = {VYRE__JIT_FULL, VYRE__JIT_BASELINE,
                                         VYRE__JIT_PLAIN};
  const cpu_device *device = (const cpu_device *)pipeline->base.device;
  vyre__bytes loaded = object_of(&pipeline->base);
  bool is_same = false;
  for (size_t i = 0; i < 3 && !is_same; i++) {
    growing_text object = {0};
    vyre_status st = {0};
    CHECK_OK(vyre__jit(text->bytes, strlen(text->bytes), device->host_cpu->cpu,
                       device->host_cpu->features, tiers[i], VYRE__JIT_OBJECT,
                       growing_writer(&object), &st),
             st);
    is_same = object.length == loaded.size &&
              memcmp(object.bytes, loaded.data, object.length) == 0;
    free(object.bytes);
  }
  vyre__bytes_deinit(&loaded);
  return is_same;
}

/* In wide vectors, these need more stack than allowed. */
TEST(printed_code_of_a_narrowed_kernel_is_what_runs) {
  static const int values[] = {110, 400};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    rig r = {.heap = {.left = -1}};
    vyre_context_options options = plain_options(&r);
    char *text = live_text(values[i], "u64", "x");
    rig_begin(&r, &options, text);
    free(text);
    vyre_status st = {0};
    CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                   &optimised, &r.pipeline, NULL, &st),
             st);
    vyre_pipeline_resources got;
    CHECK(vyre_pipeline_get_resources(r.pipeline, &got));
    growing_text code = {0}, spelled = {0};
    CHECK_OK(vyre_pipeline_print(r.pipeline, "asm", growing_writer(&code), &st),
             st);
    CHECK_OK(
        vyre_pipeline_print(r.pipeline, "llvm", growing_writer(&spelled), &st),
        st);
    CHECK(stack_in(code.bytes) > 1000 && stack_in(code.bytes) <= 262144);
    for (unsigned width = 2; width <= 64; width *= 2) {
      char vector[24];
      (void)snprintf(vector, sizeof vector, "<%u x i64>", width);
      CHECK(width <= got.width || !strstr(spelled.bytes, vector));
    }
    CHECK(equals_running_code((const cpu_pipeline *)r.pipeline, &spelled));
    free(code.bytes);
    free(spelled.bytes);
    rig_close(&r);
  }
}

/* Baseline code needs more stack than optimised code. It is not narrowed for
 * that: the optimised code could not replace it then. */
TEST(baseline_code_with_a_large_stack_is_replaced) {
  enum { TURNS = 12000 };
  const struct timespec pause = {.tv_nsec = 10000000};
  vyre_pipeline_resources got[2];
  for (int is_auto = 0; is_auto < 2; is_auto++) {
    rig r = {.heap = {.left = -1}};
    vyre_context_options options = plain_options(&r);
    options.allocator =
        (vyre_allocator){0}; /* the background compile outlives the check */
    char *text = live_text(110, "u64", "x");
    rig_begin(&r, &options, text);
    free(text);
    vyre_status st = {0};
    vyre_compile_options how = {.tier = is_auto ? VYRE_TIER_AUTO
                                                : VYRE_TIER_OPTIMISED};
    CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                   &how, &r.pipeline, NULL, &st),
             st);
    CHECK(vyre_pipeline_get_resources(r.pipeline, &got[is_auto]));
    for (int i = 0; i < TURNS && is_auto && got[1].is_baseline; i++) {
      (void)nanosleep(&pause, NULL);
      CHECK(vyre_pipeline_get_resources(r.pipeline, &got[1]));
    }
    CHECK(!got[is_auto].is_baseline);
    rig_close(&r);
  }
  CHECK_U64(got[1].width, got[0].width);
  CHECK_U64(got[1].code_bytes, got[0].code_bytes);
}

/* --- long texts ------------------------------------------------------------*/

/* Makes a chain of that many values, each of which needs the one before. */
static char *long_text(uint32_t values) {
  enum { LINE = 48, REST = 256 };
  size_t capacity = (size_t)values * LINE + REST, at = 0;
  char *text = calloc(1, capacity);
  CHECK(text != NULL);
  if (!text) return NULL;
  at = (size_t)snprintf(
      text, capacity,
      "kernel long workgroup(64) over(y)\n"
      "buffer y : read_write u32[] @0;\n{\n"
      "    let i = global_id.x;\n    if (i >= len(y)) return;\n"
      "    var v = y[i];\n");
  for (uint32_t k = 0; k < values; k++) {
    at += (size_t)snprintf(text + at, capacity - at,
                           "    v = (v * 5) ^ (i + %u);\n", k);
  }
  (void)snprintf(text + at, capacity - at, "    y[i] = v;\n}\n");
  return text;
}

/* Wider registers make longer texts, so all machines use AVX2 here. */
#define AVX2 "cpu.isa_level=4"

/* Long rows of short regions, one with atomics: there are many narrow vectors,
 * and the text must not grow with their number. */
TEST(small_kernels_are_small_at_every_width) {
  static const char text[] =
      "kernel k workgroup(500) over(y)\n"
      "buffer x : read u8[] @0;\nbuffer y : write u8[] @1;\n"
      "uniform m : u32 @2;\n"
      "shared s : u8[500];\nshared q : u32[4];\n"
      "{\n"
      "    let l = local_id.x;\n    let i = global_id.x;\n"
      "    s[l] = x[i];\n    barrier();\n"
      "    for (let r = 0u; r < m; r++) {\n"
      "        let o = s[(l + r) % 500];\n        barrier();\n"
      "        s[l] = s[l] ^ o;\n        barrier();\n"
      "    }\n"
      "    for (let r = 0u; r < m; r++) {\n"
      "        let o = s[(l + r) % 500];\n        barrier();\n"
      "        s[l] = max(s[l], o);\n        barrier();\n"
      "    }\n"
      "    atomic_and(q[l + 1], m);\n    barrier();\n"
      "    s[l] = min(s[l], q[0]);\n    barrier();\n"
      "    y[i] = s[l];\n"
      "}\n";
  static const char *const cases[] = {"cpu.width=0", "cpu.width=4",
                                      "cpu.width=8", AVX2, "cpu.isa_level=2"};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    rig r = {.heap = {.left = -1}};
    vyre_context_options options = plain_options(&r);
    options.backend_options = cases[c];
    rig_begin(&r, &options, text);
    vyre_status st = {0};
    CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                   &optimised, &r.pipeline, NULL, &st),
             st);
    vyre_pipeline_resources got;
    CHECK(vyre_pipeline_get_resources(r.pipeline, &got));
    CHECK(!got.is_baseline && got.width > 1);
    rig_close(&r);
  }
}

/* The size of a kernel decides how it is compiled: beyond the limits in vectors
 * of one register, then in the baseline tier, then as scalar code; at last it
 * is rejected. */
TEST(very_large_kernels_use_lower_tiers_or_are_rejected) {
  enum { ANY = 0, ONE_REGISTER = 64, Y = 200 };
  static const struct {
    uint32_t values;
    const char *options;
    bool is_baseline;
    uint32_t width;
    const char *refused;
  } cases[] = {
      {100, AVX2, false, ANY, NULL},
      {320, AVX2, false, ANY, NULL},
      {600, AVX2, false, ANY, NULL},
      {675, AVX2, false, ONE_REGISTER, NULL},
      {790, AVX2, true, ONE_REGISTER, NULL},
      {2500, AVX2, true, 1, NULL},
      {8000, AVX2, true, 1, NULL},
      {60000, AVX2, true, ANY,
       "bytes of code to compile; the limit is 4194304"},
      {200, AVX2 ",cpu.width=16", false, 16, NULL},
      {600, AVX2 ",cpu.width=16", false, 16, NULL},
      {790, AVX2 ",cpu.width=16", true, 16, NULL},
      {2500, AVX2 ",cpu.width=16", true, ANY, "the limit is 1048576"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char *text = long_text(cases[c].values);
    rig r = {.heap = {.left = -1}};
    vyre_context_options options = plain_options(&r);
    options.backend_options = cases[c].options;
    rig_begin(&r, &options, text);
    free(text);
    vyre_status st = {0};
    vyre_code code =
        vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                              &optimised, &r.pipeline, NULL, &st);
    if (cases[c].refused) {
      CHECK_FAILS(code, st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
      CHECK_HAS(st.message, cases[c].refused);
      CHECK_HAS(st.fix, "device 'ref'");
      rig_close(&r);
      continue;
    }
    CHECK_OK(code, st);
    vyre_pipeline_resources got;
    CHECK(vyre_pipeline_get_resources(r.pipeline, &got));
    CHECK(got.is_baseline == cases[c].is_baseline);
    if (cases[c].width != ANY) {
      CHECK_U64(got.width, cases[c].width == ONE_REGISTER
                               ? vyre__host_cpu_at(VYRE__LEVEL_AVX2)->lanes
                               : cases[c].width);
    }
    uint32_t y[Y];
    for (uint32_t i = 0; i < Y; i++) y[i] = i * 7 + 1;
    vyre_dispatch_desc desc = {0};
    CHECK_OK(run_in_place(&r, y, sizeof y, &desc, &st), st);
    for (uint32_t i = 0; i < Y; i++) {
      uint32_t v = i * 7 + 1;
      for (uint32_t k = 0; k < cases[c].values; k++) v = (v * 5) ^ (i + k);
      CHECK_U64(y[i], v);
    }
    rig_close(&r);
  }
}

TEST_MAIN(TEST_ENTRY(huge_live_state_compiles_or_is_refused),
          TEST_ENTRY(printed_code_of_a_narrowed_kernel_is_what_runs),
          TEST_ENTRY(baseline_code_with_a_large_stack_is_replaced),
          TEST_ENTRY(small_kernels_are_small_at_every_width),
          TEST_ENTRY(very_large_kernels_use_lower_tiers_or_are_rejected))
