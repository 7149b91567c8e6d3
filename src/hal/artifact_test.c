/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of artifacts and host plans. */
#include "hal/artifact.h"

#include "hal/host_plan_testing.h"
#include "support/check.h"

/* --- loops of the host ---------------------------------------------------- */

#define S32(x) ((uint64_t)(uint32_t)(x))
#define S64(x) ((uint64_t)(x))

static vyre__lir_inst constant(uint64_t value) {
  return (vyre__lir_inst){.op = VYRE__LIR_CONST,
                          .type = VYRE_TYPE_U64,
                          .c = (uint32_t)value,
                          .d = (uint32_t)(value >> 32)};
}

/* Compares the values that a loop variable takes. */
TEST(loops_follow_the_language_in_every_type) {
  enum { MAX_VALUES = 5 };
  static const struct {
    uint8_t type, kind;
    uint64_t first, bound, by;
    size_t count;
    uint64_t values[MAX_VALUES];
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
    const vyre__lir_inst host[] = {constant(cases[i].first),
                                   constant(cases[i].bound)};
    const vyre__plan_step steps[] = {{.kind = VYRE__STEP_FOR,
                                      .type = cases[i].type,
                                      .loop_kind = cases[i].kind,
                                      .bound = 1,
                                      .mate = 2,
                                      .by = cases[i].by},
                                     {.kind = VYRE__STEP_RUN, .mate = 1},
                                     {.kind = VYRE__STEP_END_FOR}};
    const vyre__host_plan plan = {.phase_count = 1,
                                  .step_count = 3,
                                  .host_count = 2,
                                  .loop_count = 1,
                                  .steps = steps,
                                  .host = host};
    uint64_t values[4];
    size_t count = 0;
    uint32_t phase = 9;
    vyre__host_schedule walk =
        vyre__host_schedule_begin(&plan, &(vyre__launch){0}, values);
    CHECK_U64(vyre__host_schedule_size(&plan), 4);
    while (vyre__host_schedule_next(&walk, &phase)) {
      CHECK(count < cases[i].count);
      CHECK_U64(walk.values[0], cases[i].values[count]);
      CHECK_U64(phase, 0);
      count++;
    }
    CHECK_U64(count, cases[i].count);
  }
}

/* --- a kernel with all of it ---------------------------------------------- */

/* Data of the backend. */
typedef struct own_data {
  uint32_t number, other;
} own_data;

typedef struct pair {
  uint16_t a, b;
} pair;

typedef struct rig {
  planned_kernel k;
  vyre__host_plan plan;
  own_data own;
  const pair *pairs;
  uint32_t pair_count;
} rig;

static const pair pairs[] = {{1, 2}, {3, 4}, {5, 6}};

static void rig_open(rig *r) {
  vyre_status st = {0};
  *r = (rig){.own = {7, 8}, .pairs = pairs, .pair_count = 3};
  planned_kernel_open(&r->k);
  CHECK_OK(vyre__host_plan_build(r->k.kernel, 1000, "test", &r->k.arena,
                                 &r->plan, &st),
           st);
}

static void rig_close(rig *r) {
  planned_kernel_close(&r->k);
}

TEST(a_declared_length_above_the_limit_is_refused) {
  rig r;
  vyre_status st = {0};
  rig_open(&r);
  CHECK_FAILS(
      vyre__host_plan_build(r.k.kernel, 2, "test", &r.k.arena, &r.plan, &st),
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "has 3 elements; 'test' allows at most 2");
  rig_close(&r);
}

TEST(a_plan_describes_the_kernel) {
  rig r;
  rig_open(&r);
  const vyre__host_plan *p = &r.plan;
  CHECK_U64(p->workgroup[0], 4);
  CHECK_U64(p->buffer_count, 4); /* one is the spill buffer */
  CHECK_U64(p->spill_buffer, 3);
  CHECK(p->spill_words > 0 && p->loop_count == 2 && !p->has_floats);
  CHECK(p->buffers[0].is_bound && !p->buffers[3].is_bound);
  CHECK_U64(p->buffers[0].max, 1000);
  CHECK_U64(p->buffers[2].min, 3);
  CHECK_U64(p->buffers[2].kind, VYRE_MEMORY_UNIFORM);
  rig_close(&r);
}

/* Nested loops: the inner one starts at twice the value of the outer one. */
TEST(the_host_computes_bounds_from_uniforms_lengths_and_outer_loops) {
  enum { N = 2, LENGTH = 8 };
  rig r;
  rig_open(&r);
  uint32_t n = N, more[3] = {0}, phase, runs = 0, want = 0;
  const vyre__view views[] = {{.length = LENGTH},
                              {.data = (unsigned char *)&n, .length = 1},
                              {.data = (unsigned char *)more, .length = 3}};
  const vyre__launch launch = {.views = views, .grid = {1, 1, 1}};
  uint64_t *values = calloc(vyre__host_schedule_size(&r.plan), sizeof *values);
  CHECK(values != NULL);
  vyre__host_schedule walk =
      vyre__host_schedule_begin(&r.plan, &launch, values);
  uint64_t seen[64][2];
  while (vyre__host_schedule_next(&walk, &phase)) {
    CHECK(runs < 64);
    seen[runs][0] = walk.values[0];
    seen[runs++][1] = walk.values[1];
  }
  uint32_t a = 0, b = 0, phases = 0;
  for (uint32_t i = 0; i < r.plan.step_count; i++) {
    phases += r.plan.steps[i].kind == VYRE__STEP_RUN;
  }
  CHECK(phases > 0 && runs > 0);
  for (a = 0; a < N + 1; a++) {
    for (b = a * 2; b < LENGTH - 3; b++) want++;
  }
  uint32_t inside = 0;
  for (uint32_t i = 0; i < runs; i++) {
    bool is_new =
        i == 0 || seen[i][0] != seen[i - 1][0] || seen[i][1] != seen[i - 1][1];
    if (is_new && seen[i][0] <= N && seen[i][1] >= 2 * seen[i][0] &&
        seen[i][1] < LENGTH - 3) {
      inside++;
    }
  }
  CHECK_U64(inside, want);
  free(values);
  rig_close(&r);
}

/* --- as bytes ------------------------------------------------------------- */

static const char code[] = "not really code";

static vyre__artifact describe(vyre__host_plan *plan, own_data *own,
                               const pair **all, uint32_t *count) {
  return (vyre__artifact){.magic = "testing",
                          .version = 5,
                          .plan = plan,
                          .own = own,
                          .own_size = sizeof *own,
                          .arrays = {{all, count, sizeof(pair), 1000}},
                          .array_count = 1,
                          .code = code,
                          .code_size = sizeof code};
}

static vyre__bytes write_it(rig *r) {
  vyre__bytes out = {0};
  vyre__artifact a = describe(&r->plan, &r->own, &r->pairs, &r->pair_count);
  vyre__artifact_write(&a, &out);
  CHECK(!out.failed);
  return out;
}

TEST(an_artifact_round_trips) {
  rig r, other = {0};
  rig_open(&r);
  vyre__bytes written = write_it(&r);
  vyre_status st = {0};
  vyre__artifact a =
      describe(&other.plan, &other.own, &other.pairs, &other.pair_count);
  CHECK_OK(vyre__artifact_read(written.data, written.size, &a, &r.k.arena, &st),
           st);
  CHECK_U64(a.code_size, sizeof code);
  CHECK(memcmp(a.code, code, sizeof code) == 0);
  CHECK_U64(other.own.number, 7);
  CHECK_U64(other.pair_count, 3);
  CHECK(memcmp(other.pairs, pairs, sizeof pairs) == 0);
  vyre__bytes again = write_it(&other);
  CHECK_U64(again.size, written.size);
  CHECK(memcmp(again.data, written.data, written.size) == 0);
  vyre__bytes_deinit(&again);
  vyre__bytes_deinit(&written);
  rig_close(&r);
}

/* Only an artifact that may have extra bytes is read with some. */
TEST(extra_bytes_follow_the_code) {
  rig r, other = {0};
  rig_open(&r);
  vyre__bytes written = write_it(&r);
  vyre_status st = {0};
  vyre__bytes_put(&written, "extra", 5);
  for (int has_extra = 0; has_extra < 2; has_extra++) {
    vyre__artifact a =
        describe(&other.plan, &other.own, &other.pairs, &other.pair_count);
    a.has_extra = has_extra;
    vyre_code got =
        vyre__artifact_read(written.data, written.size, &a, &r.k.arena, &st);
    if (!has_extra) {
      CHECK_FAILS(got, st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
      st = (vyre_status){0};
      continue;
    }
    CHECK_OK(got, st);
    CHECK_U64(a.code_size, sizeof code);
    CHECK_U64(a.extra_size, 5);
    CHECK(memcmp(a.extra, "extra", 5) == 0);
  }
  vyre__bytes_deinit(&written);
  rig_close(&r);
}

/* Takes some steps of a plan that was accepted, with arbitrary bytes bound.
 * Loops may be long. */
static void walk_some(const vyre__host_plan *plan) {
  enum { LENGTH = 3, STEPS = 200 };
  unsigned char *data = calloc(LENGTH, 8);
  uint64_t *values = calloc(vyre__host_schedule_size(plan) + 1, sizeof *values);
  vyre__view *views = calloc(plan->buffer_count + (size_t)1, sizeof *views);
  CHECK(data && values && views);
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    /* the others are not in the program, and have no view */
    if (!plan->buffers[i].is_bound) continue;
    views[i] = (vyre__view){.data = data,
                            .length = LENGTH * 8u / plan->buffers[i].unit};
  }
  const vyre__launch launch = {.views = views, .grid = {1, 2, 3}};
  vyre__host_schedule walk = vyre__host_schedule_begin(plan, &launch, values);
  uint32_t phase = 0;
  for (int i = 0; i < STEPS; i++) {
    vyre__host_step step = vyre__host_schedule_step(&walk, &phase);
    if (step == VYRE__HOST_STEP_END) break;
    if (step == VYRE__HOST_STEP_LAUNCH) CHECK(phase < plan->phase_count);
  }
  free(views);
  free(values);
  free(data);
}

static bool try_read(const unsigned char *data, size_t size, vyre_status *st) {
  rig other = {0};
  char *exact = malloc(size ? size : 1);
  CHECK(exact != NULL);
  memcpy(exact, data, size);
  vyre_arena_init(&other.k.arena, (vyre_allocator){0});
  vyre__artifact a =
      describe(&other.plan, &other.own, &other.pairs, &other.pair_count);
  *st = (vyre_status){0};
  bool is_taken =
      vyre__artifact_read(exact, size, &a, &other.k.arena, st) == VYRE_OK;
  if (!is_taken) CHECK(st->message[0] && st->fix[0]);
  if (is_taken) walk_some(&other.plan);
  vyre_arena_deinit(&other.k.arena);
  free(exact);
  return is_taken;
}

TEST(other_lengths_are_refused) {
  rig r;
  vyre_status st;
  rig_open(&r);
  vyre__bytes written = write_it(&r);
  for (size_t size = 0; size < written.size; size++) {
    CHECK(!try_read(written.data, size, &st));
  }
  CHECK(try_read(written.data, written.size, &st));
  vyre__bytes_put(&written, "x", 1);
  CHECK(!try_read(written.data, written.size, &st));
  vyre__bytes_deinit(&written);
  rig_close(&r);
}

TEST(any_changed_byte_is_refused_or_harmless) {
  rig r;
  vyre_status st;
  rig_open(&r);
  vyre__bytes written = write_it(&r);
  static const unsigned char odd[] = {0, 1, 2, 3, 7, 0x40, 0x7f, 0x80, 0xff};
  int refused = 0;
  for (size_t at = 0; at < written.size; at++) {
    for (size_t k = 0; k < sizeof odd; k++) {
      unsigned char kept = written.data[at];
      written.data[at] = odd[k];
      refused += !try_read(written.data, written.size, &st);
      written.data[at] = kept;
    }
  }
  CHECK(refused > 1000);
  vyre__bytes_deinit(&written);
  rig_close(&r);
}

/* A defect of a plan, and the text that the message has for it. */
typedef struct fault {
  const char *says;
  void (*make)(vyre__host_plan *plan, vyre__plan_buffer *buffers,
               vyre__plan_step *steps, vyre__lir_inst *host);
} fault;

#define FAULT(name, ...)                                           \
  static void name(vyre__host_plan *p, vyre__plan_buffer *buffers, \
                   vyre__plan_step *steps, vyre__lir_inst *host) { \
    (void)p, (void)buffers, (void)steps, (void)host;               \
    __VA_ARGS__;                                                   \
  }

static uint32_t first_of(const vyre__host_plan *p, unsigned kind) {
  uint32_t i = 0;
  while (i < p->step_count && p->steps[i].kind != kind) i++;
  CHECK(i < p->step_count);
  return i;
}

static uint32_t host_of(const vyre__host_plan *p, unsigned op) {
  uint32_t i = 0;
  while (i < p->host_count && p->host[i].op != op) i++;
  CHECK(i < p->host_count);
  return i;
}

FAULT(no_phases, p->phase_count = 0)
FAULT(too_many, p->loop_count = VYRE__ARTIFACT_MAX + 1)
FAULT(odd_fuel, p->has_fuel = 2)
FAULT(odd_width, buffers[0].width = 0)
FAULT(wide_width, buffers[1].width = 16)
FAULT(odd_unit, buffers[1].unit = 3)
FAULT(odd_alignment, buffers[1].aligned = 3)
FAULT(max_below_min, buffers[2].max = buffers[2].min - 1)
FAULT(bound_spill_buffer, buffers[3].is_bound = 1)
FAULT(far_spill_buffer, p->spill_buffer = 4)
FAULT(odd_kind, steps[0].kind = 3)
FAULT(far_phase, steps[first_of(p, VYRE__STEP_RUN)].phase = p->phase_count)
FAULT(run_with_loop, steps[first_of(p, VYRE__STEP_RUN)].loop = 1)
FAULT(odd_compare, steps[first_of(p, VYRE__STEP_FOR)].loop_kind = 4)
FAULT(float_loop, steps[first_of(p, VYRE__STEP_FOR)].type = VYRE_TYPE_F32)
FAULT(stands_still, steps[first_of(p, VYRE__STEP_FOR)].by = 0)
FAULT(far_bound, steps[first_of(p, VYRE__STEP_FOR)].bound = p->host_count)
FAULT(far_loop, steps[first_of(p, VYRE__STEP_FOR)].loop = p->loop_count)
FAULT(own_mate, steps[first_of(p, VYRE__STEP_FOR)].mate = 0)
FAULT(
    same_loop, for (uint32_t i = 0; i < p->step_count; i++) {
      if (steps[i].kind != VYRE__STEP_RUN) steps[i].loop = 0;
    })
FAULT(crossed, uint32_t outer = first_of(p, VYRE__STEP_FOR), inner = outer + 1;
      while (steps[inner].kind != VYRE__STEP_FOR) inner++;
      uint32_t a = steps[outer].mate, b = steps[inner].mate;
      uint32_t loop = steps[a].loop; steps[outer].mate = b;
      steps[inner].mate = a; steps[a].mate = inner;
      steps[a].loop = steps[b].loop; steps[b].mate = outer;
      steps[b].loop = loop)
FAULT(unclosed,
      steps[steps[first_of(p, VYRE__STEP_FOR)].mate] = (vyre__plan_step){
          .kind = VYRE__STEP_RUN,
          .mate = steps[first_of(p, VYRE__STEP_FOR)].mate})
FAULT(no_operation, host[0].op = VYRE__LIR_COUNT)
FAULT(a_store, host[0] = (vyre__lir_inst){.op = VYRE__LIR_STORE})
FAULT(later_operand, host[0] = (vyre__lir_inst){.op = VYRE__LIR_NOT, .a = 1})
FAULT(load_global, host[host_of(p, VYRE__LIR_LOAD)].aux = 0)
FAULT(far_load, host[host_of(p, VYRE__LIR_LOAD)].aux = 77)
FAULT(load_nowhere, host[host_of(p, VYRE__LIR_LOAD)].a = 0)
FAULT(length_of_spill_buffer, host[host_of(p, VYRE__LIR_LEN)].aux = 3)
FAULT(far_loop_value, host[host_of(p, VYRE__LIR_LOOP_VALUE)].aux = 2)

TEST(an_invalid_plan_is_refused_with_a_reason) {
  static const fault faults[] = {
      {"number of phases (0)", no_phases},
      {"count in the plan (1048577)", too_many},
      {"fuel flag (2)", odd_fuel},
      {"buffer (0)", odd_width},
      {"buffer (1)", wide_width},
      {"buffer (1)", odd_unit},
      {"buffer (1)", odd_alignment},
      {"buffer (2)", max_below_min},
      {"buffer (3)", bound_spill_buffer},
      {"index of the spill buffer (4)", far_spill_buffer},
      {"step (0)", odd_kind},
      {"step", far_phase},
      {"step", run_with_loop},
      {"step", odd_compare},
      {"step", float_loop},
      {"step", stands_still},
      {"step", far_bound},
      {"step", far_loop},
      {"start of a loop at step", own_mate},
      {"start of a loop at step", same_loop},
      {"end of a loop at step", crossed},
      {"number of open loops (1)", unclosed},
      {"host operation (0)", no_operation},
      {"host operation (0)", a_store},
      {"host operation (0)", later_operand},
      {"host operation", load_global},
      {"host operation", far_load},
      {"host operation", load_nowhere},
      {"host operation", length_of_spill_buffer},
      {"host operation", far_loop_value},
  };
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
    rig r;
    vyre_status st;
    rig_open(&r);
    vyre__plan_buffer *buffers = calloc(r.plan.buffer_count, sizeof *buffers);
    vyre__plan_step *steps = calloc(r.plan.step_count, sizeof *steps);
    vyre__lir_inst *host = calloc(r.plan.host_count, sizeof *host);
    CHECK(buffers && steps && host);
    memcpy(buffers, r.plan.buffers, r.plan.buffer_count * sizeof *buffers);
    memcpy(steps, r.plan.steps, r.plan.step_count * sizeof *steps);
    memcpy(host, r.plan.host, r.plan.host_count * sizeof *host);
    faults[i].make(&r.plan, buffers, steps, host);
    r.plan.buffers = buffers;
    r.plan.steps = steps;
    r.plan.host = host;
    vyre__bytes written = write_it(&r);
    CHECK(!try_read(written.data, written.size, &st));
    CHECK_HAS(st.message, faults[i].says);
    vyre__bytes_deinit(&written);
    free(buffers);
    free(steps);
    free(host);
    rig_close(&r);
  }
}

TEST(reading_reports_a_lack_of_memory) {
  rig r;
  rig_open(&r);
  vyre__bytes written = write_it(&r);
  for (long n = 0;; n++) {
    test_heap heap = {.left = n};
    rig other = {0};
    vyre_status st = {0};
    vyre_arena_init(&other.k.arena, test_heap_allocator(&heap));
    vyre__artifact a =
        describe(&other.plan, &other.own, &other.pairs, &other.pair_count);
    vyre_code got = vyre__artifact_read(written.data, written.size, &a,
                                        &other.k.arena, &st);
    vyre_arena_deinit(&other.k.arena);
    CHECK_U64(heap.live_bytes, 0);
    if (got == VYRE_OK) break;
    CHECK(got == VYRE_OUT_OF_MEMORY && st.message[0] && st.fix[0]);
  }
  vyre__bytes_deinit(&written);
  rig_close(&r);
}

/* --- against a program ---------------------------------------------------- */

TEST(a_plan_of_another_program_does_not_fit) {
  rig r;
  vyre_status st = {0};
  rig_open(&r);
  vyre_program *program = vyre_module_kernel(r.k.module, 0);
  vyre_pipeline pipeline = {.program = program, .workgroup = {4, 1, 1}};
  CHECK_OK(vyre__host_plan_fits(&r.plan, &pipeline, &st), st);
  for (int i = 0; i < 8; i++) {
    vyre__plan_buffer buffers[8];
    vyre__host_plan plan = r.plan;
    memcpy(buffers, r.plan.buffers, plan.buffer_count * sizeof *buffers);
    plan.buffers = buffers;
    if (i == 0) plan.workgroup[1] = 2;
    if (i == 1) plan.buffer_count = 2;
    if (i == 2) buffers[0].unit = 8;
    if (i == 3) buffers[0].kind = VYRE_MEMORY_UNIFORM;
    if (i == 4) buffers[2].min = 2;
    if (i == 5) buffers[0].is_bound = 0;
    if (i == 6) buffers[3].is_bound = 1;
    if (i == 7) buffers[0].unit = 4, buffers[0].width = 2, buffers[0].max = ~0u;
    st = (vyre_status){0};
    CHECK_FAILS(vyre__host_plan_fits(&plan, &pipeline, &st), st,
                VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
    CHECK_HAS(st.message, "does not belong to program 'k'");
  }
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(loops_follow_the_language_in_every_type),
    TEST_ENTRY(a_declared_length_above_the_limit_is_refused),
    TEST_ENTRY(a_plan_describes_the_kernel),
    TEST_ENTRY(the_host_computes_bounds_from_uniforms_lengths_and_outer_loops),
    TEST_ENTRY(an_artifact_round_trips),
    TEST_ENTRY(extra_bytes_follow_the_code),
    TEST_ENTRY(other_lengths_are_refused),
    TEST_ENTRY(any_changed_byte_is_refused_or_harmless),
    TEST_ENTRY(an_invalid_plan_is_refused_with_a_reason),
    TEST_ENTRY(reading_reports_a_lack_of_memory),
    TEST_ENTRY(a_plan_of_another_program_does_not_fit))
