/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Baseline code that optimised code replaces: between any two pieces of a
 * launch, in the background, and while pipelines and devices are released. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_testing.h"
#include "runtime/compile/pipeline.h"

enum { COUNT = 64 * 40 };

/* Floats whose bits show any difference in rounding, shared memory, and values
 * that live across grid barriers. Scratch memory depends on the width. */
static const char mixed[] =
    "kernel mixed workgroup(64) over(y)\n"
    "buffer y : read_write f32[] @0;\n"
    "shared s : f32[64];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    let l = local_id.x;\n"
    "    s[l] = exp(y[i] * 0.37) + 1.0 / (f32(i) + 0.3);\n"
    "    barrier();\n"
    "    var v = s[63 - l] * s[(l * 7) & 63] + s[l];\n"
    "    for (let k = 0u; k < (i & 15); k++) {\n"
    "        v = sqrt(v + f32(k)) * 1.0001 + s[(l + k) & 63];\n"
    "    }\n"
    "    grid_barrier();\n"
    "    y[i] = v;\n"
    "    grid_barrier();\n"
    "    let other = y[(i * 31) % len(y)];\n"
    "    grid_barrier();\n"
    "    y[i] = sin(other) * v;\n"
    "}\n";

/* Reads its neighbours' input only; each workgroup can be checked alone. */
static const char simple[] =
    "kernel simple workgroup(64) over(y)\n"
    "buffer y : read_write f32[] @0;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(y)) {\n"
    "        var v = y[i];\n"
    "        for (let k = 0u; k < i % 37; k++) {\n"
    "            v = v * 1.7 / (1.0 + v * v) + f32(k);\n"
    "        }\n"
    "        y[i] = v;\n"
    "    }\n"
    "}\n";

static void open_rig(rig *r, const char *text, const char *backend_options) {
  *r = (rig){.heap = {.left = -1}};
  vyre_context_options options = plain_options(r);
  options.backend_options = backend_options;
  rig_begin(r, &options, text);
}

static void compile_tier(rig *r, vyre_tier tier) {
  vyre_status st = {0};
  const vyre_compile_options options = {.tier = tier};
  CHECK_OK(vyre_pipeline_compile(r->device, vyre_module_kernel(r->module, 0),
                                 &options, &r->pipeline, NULL, &st),
           st);
}

static bool is_baseline(const rig *r) {
  vyre_pipeline_resources now;
  CHECK(vyre_pipeline_get_resources(r->pipeline, &now));
  return now.is_baseline;
}

static void run(rig *r, float y[COUNT]) {
  vyre_status st = {0};
  vyre_dispatch_desc desc = {0};
  for (uint32_t i = 0; i < COUNT; i++) y[i] = 0.01F * (float)i;
  CHECK_OK(run_in_place(r, y, COUNT * sizeof *y, &desc, &st), st);
}

/* --- switching during a launch ---------------------------------------------*/

static int pieces, switch_at; /* pieces run; the first with optimised code */

static void count_and_switch(cpu_pipeline *pipeline, uint64_t first) {
  (void)first;
  if (pieces++ == switch_at) atomic_store(&pipeline->code, &pipeline->full);
}

/* Compiles both tiers. Baseline code is in use again afterwards. */
static cpu_pipeline *load_both(rig *r) {
  vyre_status st = {0};
  compile_tier(r, VYRE_TIER_BASELINE);
  cpu_pipeline *own = (cpu_pipeline *)r->pipeline;
  CHECK(is_baseline(r));
  CHECK_OK(vyre__optimise_now(r->pipeline, &st), st);
  CHECK(!is_baseline(r) && atomic_load(&own->code) == &own->full);
  CHECK(own->first.width != 0 && own->full.object.memory != NULL);
  atomic_store(&own->code, &own->first);
  return own;
}

TEST(a_launch_gives_the_same_bits_wherever_its_code_is_replaced) {
  static const struct {
    const char *text;
    int phases;
  } cases[] = {{simple, 1}, {mixed, 4}};
  static float want[COUNT], got[COUNT];
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    rig r;
    open_rig(&r, cases[c].text, "cpu.threads=1");
    cpu_pipeline *own = load_both(&r);
    run(&r, want);
    own->before_chunk = count_and_switch;
    own->chunk_groups = 3;
    const int last = (COUNT / 64 + 2) / 3 * cases[c].phases;
    for (switch_at = 0; switch_at <= last; switch_at++) {
      atomic_store(&own->code, &own->first);
      pieces = 0;
      run(&r, got);
      /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits */
      CHECK(memcmp(got, want, sizeof want) == 0);
      /* Optimised code runs the rest in one piece. */
      int end = switch_at < last ? switch_at + 1 : last;
      CHECK_U64((unsigned)pieces, (unsigned)end);
    }
    own->before_chunk = NULL;
    rig_close(&r);
  }
}

typedef struct flipper {
  cpu_pipeline *pipeline;
  atomic_bool ends;
} flipper;

static void *flip(void *self) {
  flipper *f = self;
  for (unsigned i = 0; !atomic_load(&f->ends); i++) {
    atomic_store(&f->pipeline->code,
                 i % 2 ? &f->pipeline->full : &f->pipeline->first);
  }
  return NULL;
}

TEST(threads_of_a_launch_may_run_different_code) {
  static float want[COUNT], got[COUNT];
  rig r;
  open_rig(&r, mixed, "cpu.threads=4");
  flipper f = {.pipeline = load_both(&r)};
  run(&r, want);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, flip, &f) == 0);
  for (int i = 0; i < 200; i++) {
    run(&r, got);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits */
    CHECK(memcmp(got, want, sizeof want) == 0);
  }
  atomic_store(&f.ends, true);
  pthread_join(thread, NULL);
  rig_close(&r);
}

/* --- requests --------------------------------------------------------------*/

static void await_optimised(const rig *r) {
  const struct timespec pause = {.tv_nsec = 1000000};
  for (int i = 0; i < 20000 && is_baseline(r); i++) nanosleep(&pause, NULL);
  CHECK(!is_baseline(r));
}

TEST(tiers_share_one_pipeline) {
  rig r;
  open_rig(&r, simple, "");
  compile_tier(&r, VYRE_TIER_BASELINE);
  vyre_pipeline *first = r.pipeline;
  CHECK(is_baseline(&r)); /* no compile in the background */
  compile_tier(&r, VYRE_TIER_BASELINE);
  CHECK(r.pipeline == first && is_baseline(&r));
  compile_tier(&r, VYRE_TIER_OPTIMISED);
  CHECK(r.pipeline == first && !is_baseline(&r));
  compile_tier(&r, VYRE_TIER_BASELINE);
  CHECK(r.pipeline == first && !is_baseline(&r));
  for (int i = 0; i < 3; i++) vyre_pipeline_release(first);
  rig_close(&r);
}

TEST(auto_replaces_its_code_and_optimised_waits_for_it) {
  for (int waits = 0; waits < 2; waits++) {
    rig r;
    open_rig(&r, mixed, "");
    compile_tier(&r, VYRE_TIER_AUTO);
    if (waits) {
      vyre_pipeline *first = r.pipeline;
      compile_tier(&r, VYRE_TIER_OPTIMISED);
      CHECK(r.pipeline == first && !is_baseline(&r));
      vyre_pipeline_release(first);
    }
    await_optimised(&r);
    rig_close(&r);
  }
}

/* --- when the compile begins -----------------------------------------------*/

enum { COMPILE_NS = 5000000, STEP_NS = 100000 };

/* Returns the steps until the compile is due; 1000 if it is not due by then. */
static int steps_until_due(rig *r) {
  vyre__optimise_wait wait = {.begin_ns = 1, .compile_ns = COMPILE_NS};
  int steps = 0;
  do {
    wait.now_ns = (uint64_t)(steps + 1) * STEP_NS;
  } while (!cpu_optimise_is_due(r->pipeline, &wait) && ++steps < 1000);
  return steps;
}

TEST(a_compile_in_the_background_waits_for_short_launches) {
  rig r;
  open_rig(&r, simple, "");
  compile_tier(&r, VYRE_TIER_BASELINE);
  cpu_device *device = (cpu_device *)r.device;
  cpu_pipeline *own = (cpu_pipeline *)r.pipeline;
  CHECK_U64((unsigned)steps_until_due(&r), 10); /* 1 ms idle */
  atomic_store(&device->baseline_running, 1);
  int steps = steps_until_due(&r); /* at last, 9 times the baseline compile */
  CHECK(steps > 440 && steps < 460);
  atomic_store(&own->baseline_rest_ns, UINT64_C(4) * COMPILE_NS);
  CHECK(steps_until_due(&r) == steps);
  atomic_store(&own->baseline_rest_ns, UINT64_C(6) * COMPILE_NS);
  CHECK_U64((unsigned)steps_until_due(&r), 0);
  atomic_store(&own->baseline_rest_ns, 0);
  atomic_store(&own->baseline_ns, COMPILE_NS);
  CHECK(steps_until_due(&r) == steps);
  atomic_store(&own->baseline_ns, UINT64_C(3) * COMPILE_NS);
  CHECK_U64((unsigned)steps_until_due(&r), 0);
  atomic_store(&device->baseline_running, 0);
  rig_close(&r);
}

/* Iterations that take about half a second in baseline code. */
static const char slow[] =
    "kernel slow workgroup(64) over(y)\n"
    "buffer y : read_write f32[] @0;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(y)) {\n"
    "        var v = y[i];\n"
    "        for (let k = 0u; k < 300000; k++) {\n"
    "            v = v * 1.7 / (1.0 + v * v) + f32(k);\n"
    "        }\n"
    "        y[i] = v;\n"
    "    }\n"
    "}\n";

TEST(a_long_launch_gets_optimised_code_before_it_ends) {
  static float y[COUNT];
  rig r;
  open_rig(&r, slow, "");
  compile_tier(&r, VYRE_TIER_AUTO);
  const cpu_pipeline *own = (const cpu_pipeline *)r.pipeline;
  run(&r, y);
  CHECK(!is_baseline(&r));
  CHECK(own->baseline_ns > 0 && own->baseline_rest_ns == 0);
  rig_close(&r);
}

/* LLVM may contract differently in the two tiers. */
TEST(a_ulp_budget_needs_optimised_code) {
  rig r;
  vyre_status st = {0};
  const vyre_compile_options options = {.ulp_budget = 4};
  open_rig(&r, simple, "");
  CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                 &options, &r.pipeline, NULL, &st),
           st);
  CHECK(!is_baseline(&r));
  rig_close(&r);
}

TEST(code_that_counts_iterations_is_replaced_too) {
  static float y[COUNT];
  rig r;
  vyre_status st = {0};
  const vyre_compile_options options = {.counts_iterations = true};
  open_rig(&r, simple, "");
  CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                 &options, &r.pipeline, NULL, &st),
           st);
  vyre_pipeline *counted = atomic_load(&r.pipeline->state->variants);
  CHECK(counted && counted->counts_iterations);
  for (int turn = 0; turn < 2; turn++) {
    vyre_dispatch_desc desc = {.max_loop_iterations = 36};
    CHECK_OK(run_in_place(&r, y, sizeof y, &desc, &st), st);
    desc.max_loop_iterations = 35;
    CHECK_FAILS(run_in_place(&r, y, sizeof y, &desc, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL);
    st = (vyre_status){0};
    CHECK_OK(vyre__optimise_now(counted, &st), st);
  }
  rig_close(&r);
}

TEST(an_unknown_tier_is_refused) {
  rig r;
  vyre_status st = {0};
  const vyre_compile_options options = {.tier = (vyre_tier)3};
  vyre_fence *fence;
  open_rig(&r, simple, "");
  vyre_program *program = vyre_module_kernel(r.module, 0);
  CHECK_FAILS(vyre_pipeline_compile(r.device, program, &options, &r.pipeline,
                                    NULL, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "tier is 3; the largest value is 2");
  CHECK_FAILS(
      vyre_pipeline_compile_async(r.device, program, &options, &fence, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  compile_tier(&r, VYRE_TIER_BASELINE);
  CHECK_FAILS(vyre_pipeline_add_variant(r.pipeline, &options, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  rig_close(&r);
}

/* --- ends ------------------------------------------------------------------*/

/* rig_close checks that no byte is left. */
TEST(releasing_ends_the_compile_in_the_background) {
  for (int turn = 0; turn < 12; turn++) {
    const struct timespec pause = {.tv_nsec = turn * 1500000L};
    rig r;
    open_rig(&r, turn % 2 ? mixed : simple, "");
    compile_tier(&r, VYRE_TIER_AUTO);
    (void)nanosleep(&pause, NULL);
    if (turn % 3 == 0) { /* the pipeline goes last */
      vyre_device_release(r.device);
      vyre_context_release(r.context);
      r.device = NULL;
      r.context = NULL;
    }
    rig_close(&r);
  }
}

TEST(queued_compiles_are_cancelled) {
  enum { KERNELS = 12 };
  rig r;
  vyre_pipeline *pipelines[KERNELS];
  vyre_status st = {0};
  open_rig(&r, mixed, "");
  for (uint32_t i = 0; i < KERNELS; i++) {
    const vyre_compile_options options = {.workgroup = {64, 1, 1}};
    char text[256];
    (void)snprintf(text, sizeof text,
                   "kernel k%u workgroup(64) over(y)\n"
                   "buffer y : read_write f32[] @0;\n"
                   "{ y[global_id.x] = sin(y[global_id.x]) + %u.0; }\n",
                   i, i);
    vyre_module *module = parse_module(text);
    CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(module, 0),
                                   &options, &pipelines[i], NULL, &st),
             st);
    vyre_module_release(module);
  }
  for (uint32_t i = 0; i < KERNELS; i++) vyre_pipeline_release(pipelines[i]);
  rig_close(&r);
}

/* A child of a fork has no thread that could finish the compile. */
TEST(a_forked_child_does_not_wait_for_the_compile) {
  static float y[COUNT];
  rig r;
  open_rig(&r, mixed, "cpu.threads=1");
  compile_tier(&r, VYRE_TIER_AUTO);
  pid_t child = fork();
  if (child == 0) {
    run(&r, y);
    vyre_pipeline_release(r.pipeline);
    vyre_device_release(r.device);
    _exit(0);
  }
  int status = 1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_U64((unsigned)status, 0);
  await_optimised(&r);
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(a_launch_gives_the_same_bits_wherever_its_code_is_replaced),
    TEST_ENTRY(threads_of_a_launch_may_run_different_code),
    TEST_ENTRY(tiers_share_one_pipeline),
    TEST_ENTRY(auto_replaces_its_code_and_optimised_waits_for_it),
    TEST_ENTRY(a_compile_in_the_background_waits_for_short_launches),
    TEST_ENTRY(a_long_launch_gets_optimised_code_before_it_ends),
    TEST_ENTRY(a_ulp_budget_needs_optimised_code),
    TEST_ENTRY(code_that_counts_iterations_is_replaced_too),
    TEST_ENTRY(an_unknown_tier_is_refused),
    TEST_ENTRY(releasing_ends_the_compile_in_the_background),
    TEST_ENTRY(queued_compiles_are_cancelled),
    TEST_ENTRY(a_forked_child_does_not_wait_for_the_compile))
