/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/plan.h"

#include "vyre/module.h"

#include "backend/cpu/codegen_testing.h"
#include "support/check.h"

/* --- loops of the host -------------------------------------------------------------*/

#define S32(x) ((uint64_t)(uint32_t)(x))
#define S64(x) ((uint64_t)(x))

/* What the variable of a loop takes, one after the other. */
TEST(loops_run_as_the_language_says_in_every_type) {
  enum { MOST = 5 };
  static const struct {
    uint8_t type, kind;
    uint64_t first, bound, by;
    size_t count;
    uint64_t values[MOST];
  } cases[] = {
      {VYRE_TYPE_U32, VYRE__LOOP_LT, 0, 3, 1, 3, {0, 1, 2}},
      {VYRE_TYPE_U32, VYRE__LOOP_LT, 3, 3, 1, 0, {0}},
      {VYRE_TYPE_U32, VYRE__LOOP_LE, 3, 3, 1, 1, {3}},
      {VYRE_TYPE_U32, VYRE__LOOP_LT, 0, 10, 4, 3, {0, 4, 8}},
      {VYRE_TYPE_U32, VYRE__LOOP_GT, 4, 0, 2, 2, {4, 2}},
      {VYRE_TYPE_U32, VYRE__LOOP_GE, 4, 0, 2, 3, {4, 2, 0}},
      {VYRE_TYPE_U32,
       VYRE__LOOP_LE,
       UINT32_MAX - 1,
       UINT32_MAX,
       1,
       2,
       {UINT32_MAX - 1, UINT32_MAX}},
      {VYRE_TYPE_I32, VYRE__LOOP_LT, S32(-2), 1, 1, 3, {S32(-2), S32(-1), 0}},
      {VYRE_TYPE_I32, VYRE__LOOP_GE, 1, S32(-1), 1, 3, {1, 0, S32(-1)}},
      {VYRE_TYPE_I32,
       VYRE__LOOP_LE,
       INT32_MAX - 1,
       INT32_MAX,
       1,
       2,
       {INT32_MAX - 1, INT32_MAX}},
      {VYRE_TYPE_I32,
       VYRE__LOOP_GE,
       S32(INT32_MIN + 1),
       S32(INT32_MIN),
       7,
       1,
       {S32(INT32_MIN + 1)}},
      {VYRE_TYPE_U64,
       VYRE__LOOP_LE,
       UINT64_MAX - 2,
       UINT64_MAX,
       2,
       2,
       {UINT64_MAX - 2, UINT64_MAX}},
      {VYRE_TYPE_U64, VYRE__LOOP_GE, 1, 0, 1, 2, {1, 0}},
      {VYRE_TYPE_I64, VYRE__LOOP_LT, S64(-1), 2, 2, 2, {S64(-1), 1}},
      {VYRE_TYPE_I64, VYRE__LOOP_LE, INT64_MAX, INT64_MAX, 1, 1, {INT64_MAX}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    cpu_step step = {
        .type = cases[i].type, .loop_kind = cases[i].kind, .by = cases[i].by};
    uint64_t value = cases[i].first;
    size_t count = 0;
    bool fits = true;
    while (fits && cpu_loop_goes_on(&step, value, cases[i].bound)) {
      CHECK(count < cases[i].count);
      CHECK_U64(value, cases[i].values[count]);
      count++;
      fits = cpu_loop_advance(&step, &value);
    }
    CHECK_U64(count, cases[i].count);
  }
}

/* --- a kernel with all of it ---------------------------------------------------------*/

static const char text[] =
    "kernel k workgroup(4)\n"
    "buffer r : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "uniform more : i32[3] @2;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    var sum = 0u;\n"
    "    for (let a = 0u; a < n + 1; a++) {\n"
    "        for (let b = a * 2; b < len(r) - 3; b++) {\n"
    "            sum = sum + r[i];\n"
    "            grid_barrier();\n"
    "            r[(i + b) % len(r)] = sum;\n"
    "            grid_barrier();\n"
    "        }\n"
    "    }\n"
    "}\n";

typedef struct rig {
  vyre_arena arena;
  vyre_module *module;
  const vyre__low_kernel *kernel;
  cpu_plan plan;
} rig;

static void rig_open(rig *r) {
  vyre_status st = {0};
  *r = (rig){0};
  vyre_arena_init(&r->arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(text, strlen(text), "k", (vyre_allocator){0},
                             &r->module, NULL, &st),
           st);
  vyre__target target = {0};
  vyre_program *inlined;
  CHECK_OK(
      vyre__lower(vyre_module_kernel(r->module, 0), &target, VYRE__PASS_CONTROL,
                  &r->arena, &r->kernel, &inlined, &st),
      st);
  vyre__spmd_info info = {.width = 8, .scratch_bytes = 640};
  CHECK_OK(cpu_plan_build(r->kernel, &info, &r->arena, &r->plan, &st), st);
}

static void rig_close(rig *r) {
  vyre_arena_finish(&r->arena);
  vyre_module_release(r->module);
}

static vyre__spmd_launch *make_block(uint32_t buffers) {
  vyre__spmd_launch *block =
      calloc(1, sizeof *block + buffers * sizeof(vyre__spmd_view));
  CHECK(block != NULL);
  return block;
}

TEST(the_host_computes_bounds_from_uniforms_lengths_and_loops_around) {
  rig r;
  rig_open(&r);
  CHECK_U64(r.plan.loop_count, 2);
  CHECK_U64(r.plan.buffer_count, 4); /* one is hidden */
  CHECK_U64(r.plan.hidden, 3);
  CHECK(r.plan.hidden_words > 0);
  CHECK_U64(r.plan.scratch_bytes, 640);
  uint32_t n = 6, more[3] = {0};
  uint64_t loops[2] = {5, 0};
  vyre__spmd_launch *block = make_block(r.plan.buffer_count);
  block->views[0].length = 40;
  block->views[1] = (vyre__spmd_view){(unsigned char *)&n, 1, 0};
  block->views[2] = (vyre__spmd_view){(unsigned char *)more, 3, 0};
  block->loop_values = loops;
  uint64_t *values = calloc(r.plan.host_count, sizeof *values);
  CHECK(values != NULL);
  cpu_host_run(&r.plan, block, values);
  const cpu_step *outer = NULL, *inner = NULL;
  for (uint32_t i = 0; i < r.plan.step_count; i++) {
    const cpu_step *s = &r.plan.steps[i];
    if (s->kind == VYRE__STEP_FOR && !outer) {
      outer = s;
    } else if (s->kind == VYRE__STEP_FOR) {
      inner = s;
    }
  }
  CHECK(outer && inner);
  CHECK_U64(values[outer->first], 0);
  CHECK_U64(values[outer->bound], 7);
  CHECK_U64(values[inner->first], 10);
  CHECK_U64(values[inner->bound], 37);
  free(values);
  free(block);
  rig_close(&r);
}

/* --- as bytes ------------------------------------------------------------------------*/

static const char object[] = "not really an object";

static code_bytes write_it(const cpu_plan *plan) {
  code_bytes out = {0};
  CHECK(cpu_artifact_write(plan, object, sizeof object, code_writer(&out)));
  return out;
}

TEST(what_is_written_is_read_back) {
  rig r;
  rig_open(&r);
  code_bytes bytes = write_it(&r.plan);
  cpu_plan plan;
  const void *found;
  size_t size;
  vyre_status st = {0};
  CHECK_OK(cpu_artifact_read(bytes.data, bytes.size, &r.arena, &plan, &found,
                             &size, &st),
           st);
  CHECK_U64(size, sizeof object);
  CHECK(memcmp(found, object, size) == 0);
  code_bytes again = write_it(&plan);
  CHECK_U64(again.size, bytes.size);
  CHECK(memcmp(again.data, bytes.data, bytes.size) == 0);
  free(again.data);
  free(bytes.data);
  rig_close(&r);
}

/* Reads bytes of their own size; what is taken can be run by the host. */
static bool try_read(const char *bytes, size_t size) {
  char *exact = malloc(size ? size : 1);
  CHECK(exact != NULL);
  memcpy(exact, bytes, size);
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  cpu_plan plan;
  const void *found;
  size_t found_size;
  vyre_status st = {0};
  bool is_taken = cpu_artifact_read(exact, size, &arena, &plan, &found,
                                    &found_size, &st) == VYRE_OK;
  if (!is_taken) CHECK(st.message[0] && st.fix[0]);
  if (is_taken) {
    enum { LENGTH = 3 };
    unsigned char *data = calloc(LENGTH, 8);
    uint64_t *loops = calloc(plan.loop_count + 1, sizeof *loops);
    uint64_t *values = calloc(plan.host_count + 1, sizeof *values);
    vyre__spmd_launch *block = make_block(plan.buffer_count);
    CHECK(data && loops && values);
    for (uint32_t i = 0; i < plan.buffer_count; i++) {
      block->views[i] = (vyre__spmd_view){data, LENGTH, 0};
    }
    block->loop_values = loops;
    cpu_host_run(&plan, block, values);
    free(block);
    free(values);
    free(loops);
    free(data);
  }
  vyre_arena_finish(&arena);
  free(exact);
  return is_taken;
}

TEST(other_lengths_are_refused) {
  rig r;
  rig_open(&r);
  code_bytes bytes = write_it(&r.plan);
  for (size_t size = 0; size < bytes.size; size++) {
    CHECK(!try_read(bytes.data, size));
  }
  CHECK(try_read(bytes.data, bytes.size));
  CHECK(code_write(&bytes, "x", 1));
  CHECK(!try_read(bytes.data, bytes.size));
  free(bytes.data);
  rig_close(&r);
}

TEST(any_changed_byte_is_refused_or_harmless) {
  rig r;
  rig_open(&r);
  code_bytes bytes = write_it(&r.plan);
  static const unsigned char odd[] = {0, 1, 2, 3, 7, 0x40, 0x7f, 0x80, 0xff};
  int refused = 0;
  for (size_t at = 0; at < bytes.size; at++) {
    for (size_t k = 0; k < sizeof odd; k++) {
      char kept = bytes.data[at];
      bytes.data[at] = (char)odd[k];
      refused += !try_read(bytes.data, bytes.size);
      bytes.data[at] = kept;
    }
  }
  CHECK(refused > 1000);
  free(bytes.data);
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(loops_run_as_the_language_says_in_every_type),
    TEST_ENTRY(the_host_computes_bounds_from_uniforms_lengths_and_loops_around),
    TEST_ENTRY(what_is_written_is_read_back),
    TEST_ENTRY(other_lengths_are_refused),
    TEST_ENTRY(any_changed_byte_is_refused_or_harmless))
