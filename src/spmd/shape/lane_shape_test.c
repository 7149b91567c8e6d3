/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests the exact lane shapes of small kernels. lane_shape_run_test.c tests
 * that shapes hold. */
#include "spmd/shape/lane_shape.h"

#include <inttypes.h>

#include "vyre/module.h"

#include "lir/lir_testing.h"
#include "spmd/shape/lane_shape_testing.h"
#include "support/check.h"
#include "support/parse.h"

/* A kernel in text form, with its shapes. */
typedef struct found {
  vyre_module *module;
  vyre_arena arena;
  const vyre__lir_kernel *kernel;
  vyre__regions regions;
  vyre__lane_shapes shapes;
} found;

static void find(const char *text, uint32_t width, found *f) {
  vyre_status st = {0};
  *f = (found){0};
  vyre_arena_init(&f->arena, (vyre_allocator){0});
  f->module = parse_module(text);
  CHECK_OK(vyre__lower(vyre_module_kernel(f->module, 0), NULL,
                       VYRE__PASS_LEGALIZE_CONTROL, &f->arena, &f->kernel, NULL,
                       &st),
           st);
  CHECK_OK(vyre__regions_build(f->kernel, f->kernel->phases[0], false,
                               &f->arena, &f->regions, &st),
           st);
  CHECK_OK(
      vyre__lane_shapes_find(&f->regions, width, &f->arena, &f->shapes, &st),
      st);
}

static void found_finish(found *f) {
  vyre_arena_deinit(&f->arena);
  vyre_module_release(f->module);
}

/* Formats a shape: "group", "linear 4 @2" (stride 4, aligned to 2^2), "constant
 * 7". */
static const char *text_of(vyre__lane_shape s, char out[64]) {
  static const char *const words[] = {"constant", "group", "vector", "linear",
                                      "varying"};
  const char *word = s.kind < 5 ? words[s.kind] : "?";
  char number[32] = "", aligned[8] = "";
  if (s.kind == VYRE__LANE_SHAPE_CONSTANT ||
      s.kind == VYRE__LANE_SHAPE_LINEAR) {
    snprintf(number, sizeof number, " %" PRId64,
             s.stride > UINT32_MAX ? (int64_t)s.stride : (int32_t)s.stride);
  }
  if (s.aligned && s.kind != VYRE__LANE_SHAPE_CONSTANT) {
    snprintf(aligned, sizeof aligned, " @%u", s.aligned);
  }
  snprintf(out, 64, "%s%s%s", word, number, aligned);
  return out;
}

static uint32_t last_of(const found *f, vyre__lir_op op) {
  uint32_t last = 0;
  for (uint32_t at = f->regions.begin; at < f->regions.end; at++) {
    if (f->kernel->code[at].op == op) last = at;
  }
  CHECK(last);
  return last;
}

TEST(values_have_their_shapes) {
  unsigned failed = 0;
  for (size_t i = 0; i < VALUE_CASES; i++) {
    const value_case *c = &value_cases[i];
    char body[512], text[SHAPE_TEXT], got[64];
    found f;
    snprintf(body, sizeof body, "if (n > 100000) { z[0] = 1; } y[i] = %s;",
             c->value);
    shape_kernel(text, c->size, body);
    find(text, c->width, &f);
    uint32_t at = last_of(&f, VYRE__LIR_STORE);
    text_of(vyre__lane_shape_of(&f.shapes, f.kernel->code[at].b), got);
    if (strcmp(got, c->want) != 0) {
      printf("    (%s) by %u: %s is %s, not %s\n", c->size, c->width, c->value,
             got, c->want);
      failed++;
    }
    found_finish(&f);
  }
  CHECK_U64(failed, 0);
}

/* --- control flow --------------------------------------------------------- */

static void add(char out[1024], const char *text) {
  size_t length = strlen(out);
  snprintf(out + length, 1024 - length, "%s%s", length ? " " : "", text);
}

static void describe_flow(const found *f, char out[1024]) {
  out[0] = '\0';
  for (uint32_t at = f->regions.begin; at < f->regions.end; at++) {
    const vyre__lir_inst *inst = &f->kernel->code[at];
    bool diverges = f->shapes.parts_lanes[at - f->shapes.begin];
    char shape[64], word[80];
    if (inst->op == VYRE__LIR_IF) add(out, diverges ? "IF" : "if");
    if (inst->op == VYRE__LIR_LOOP) add(out, diverges ? "LOOP" : "loop");
    if (inst->op != VYRE__LIR_STORE || inst->aux != 1) continue;
    snprintf(word, sizeof word, "<%s>",
             text_of(vyre__lane_shape_of(&f->shapes, inst->b), shape));
    add(out, word);
  }
}

TEST(control_flow_diverges) {
  unsigned failed = 0;
  for (size_t i = 0; i < FLOW_CASES; i++) {
    const flow_case *c = &flow_cases[i];
    char text[SHAPE_TEXT], got[1024];
    found f;
    shape_kernel(text, c->size, c->body);
    find(text, c->width, &f);
    describe_flow(&f, got);
    if (strcmp(got, c->want) != 0) {
      printf("    %s:\n      %s\n      not %s\n", c->name, got, c->want);
      failed++;
    }
    found_finish(&f);
  }
  CHECK_U64(failed, 0);
}

/* --- kernels built by hand ------------------------------------------------ */

static kit t;
static vyre_arena arena;
static vyre__regions regions;
static vyre__lane_shapes shapes;

/* Buffers: 0 x (read), 1 y (written). */
static void begin_kit(void) {
  kit_begin(&t, "k", 64, 1, 1);
  kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
}

static void end_kit(void) {
  vyre_status st = {0};
  kit_end(&t);
  vyre_arena_reset(&arena);
  CHECK_OK(vyre__regions_build(&t.k, t.phases[0], false, &arena, &regions, &st),
           st);
  CHECK_OK(vyre__lane_shapes_find(&regions, 16, &arena, &shapes, &st), st);
}

static uint8_t kind_of(vyre__val v) {
  return vyre__lane_shape_of(&shapes, v).kind;
}

/* Lanes whose condition is false get 0. */
TEST(a_load_on_a_condition_has_its_shape) {
  begin_kit();
  vyre__val l = kit_local(&t, 0), zero = kit_u32(&t, 0);
  vyre__val some = kit_b(&t, VYRE__LIR_EQ, l, zero);
  vyre__val all = kit_b(&t, VYRE__LIR_EQ, kit_load(&t, 0, zero, 0), zero);
  vyre__val a = kit_load(&t, 0, zero, some), b = kit_load(&t, 0, zero, all);
  kit_store(&t, 1, l, kit_u(&t, VYRE__LIR_ADD, a, b), 0);
  end_kit();
  CHECK_U64(kind_of(a), VYRE__LANE_SHAPE_VARYING);
  CHECK_U64(kind_of(b), VYRE__LANE_SHAPE_GROUP);
}

TEST(constants_may_be_on_either_side) {
  begin_kit();
  vyre__val l = kit_local(&t, 0), four = kit_u32(&t, 4);
  vyre__val product = kit_u(&t, VYRE__LIR_MUL, four, l);
  vyre__val mask = kit_u(&t, VYRE__LIR_AND, kit_u32(&t, 15), l);
  kit_store(&t, 1, product, mask, 0);
  end_kit();
  CHECK_U64(kind_of(product), VYRE__LANE_SHAPE_LINEAR);
  CHECK_U64(vyre__lane_shape_of(&shapes, product).stride, 4);
  CHECK_U64(kind_of(mask), VYRE__LANE_SHAPE_LINEAR);
  CHECK_U64(vyre__lane_shape_of(&shapes, mask).aligned, 32);
}

/* An unset variable may have any value. */
TEST(an_unset_variable_is_varying) {
  begin_kit();
  uint32_t var = kit_var(&t, "a", VYRE_TYPE_U32);
  vyre__val l = kit_local(&t, 0), got = kit_get(&t, var);
  kit_store(&t, 1, l, got, 0);
  end_kit();
  CHECK_U64(kind_of(got), VYRE__LANE_SHAPE_VARYING);
  CHECK_U64(shapes.vars[var].shape.kind, VYRE__LANE_SHAPE_VARYING);
  CHECK(!shapes.vars[var].is_lockstep);
}

/* A value after an IF with jumps in both arms is unreachable: it has no
 * influence on the variable. */
TEST(unreachable_code_has_no_shape) {
  begin_kit();
  uint32_t var = kit_var(&t, "a", VYRE_TYPE_U32);
  vyre__val l = kit_local(&t, 0), one = kit_u32(&t, 1);
  vyre__val v = kit_load(&t, 0, l, 0);
  kit_set(&t, var, one);
  vyre__val before = kit_get(&t, var);
  kit_store(&t, 1, l, before, 0);
  kit_if(&t, kit_b(&t, VYRE__LIR_EQ, v, one), 0);
  kit_set(&t, var, v);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_ELSE);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, 1, l, kit_get(&t, var), 0);
  end_kit();
  CHECK_U64(kind_of(before), VYRE__LANE_SHAPE_CONSTANT);
  CHECK_U64(shapes.vars[var].shape.kind, VYRE__LANE_SHAPE_CONSTANT);
}

/* Each loop halves the start value of the next one: alignment must be given up
 * in time. */
TEST(deep_nests_terminate) {
  enum { DEPTH = 40 };
  begin_kit();
  vyre__val l = kit_local(&t, 0), one = kit_u32(&t, 1);
  uint32_t vars[DEPTH];
  for (uint32_t i = 0; i < DEPTH; i++) {
    vars[i] = kit_var(&t, "v", VYRE_TYPE_U32);
    kit_set(&t, vars[i], kit_u32(&t, 0x80000000));
  }
  for (uint32_t i = 0; i < DEPTH; i++) {
    kit_mark(&t, VYRE__LIR_LOOP);
    vyre__val got = kit_get(&t, vars[i]);
    kit_if(&t, kit_b(&t, VYRE__LIR_EQ, got, one), 0);
    kit_mark(&t, VYRE__LIR_BREAK);
    kit_mark(&t, VYRE__LIR_END);
    vyre__val half = kit_u(&t, VYRE__LIR_SHR_U, got, one);
    kit_set(&t, vars[i], half);
    kit_set(&t, vars[(i + 1) % DEPTH], half);
  }
  for (uint32_t i = 0; i < DEPTH; i++) {
    kit_mark(&t, VYRE__LIR_STEP);
    kit_mark(&t, VYRE__LIR_END);
  }
  vyre__val last = kit_get(&t, vars[0]);
  kit_store(&t, 1, l, last, 0);
  end_kit();
  CHECK_U64(kind_of(last), VYRE__LANE_SHAPE_GROUP);
  CHECK_U64(vyre__lane_shape_of(&shapes, last).aligned, 0);
}

static vyre_code sweep(vyre_allocator allocator, vyre_status *st) {
  vyre_arena own;
  vyre_arena_init(&own, allocator);
  vyre_code code = vyre__lane_shapes_find(&regions, 16, &own, &shapes, st);
  vyre_arena_deinit(&own);
  return code;
}

TEST(reports_out_of_memory) {
  begin_kit();
  kit_store(&t, 1, kit_local(&t, 0), kit_u32(&t, 1), 0);
  end_kit();
  CHECK(sweep_allocations(sweep) > 0);
}

/* Must be last: frees the memory. */
TEST(frees_memory) {
  vyre_arena_deinit(&arena);
}

TEST_MAIN(TEST_ENTRY(values_have_their_shapes),
          TEST_ENTRY(control_flow_diverges),
          TEST_ENTRY(a_load_on_a_condition_has_its_shape),
          TEST_ENTRY(constants_may_be_on_either_side),
          TEST_ENTRY(an_unset_variable_is_varying),
          TEST_ENTRY(unreachable_code_has_no_shape),
          TEST_ENTRY(deep_nests_terminate), TEST_ENTRY(reports_out_of_memory),
          TEST_ENTRY(frees_memory))
