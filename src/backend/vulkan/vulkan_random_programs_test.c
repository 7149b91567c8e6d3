/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs give the same bytes on a Vulkan device as on ref, with every
 * float mode, and validation layers report nothing. (The layers also run
 * spirv-val on each module.)
 *
 * By default the test runs 200 programs with one float mode each, in turn: as
 * the probe chose, all corrected, all soft. The backend options change every
 * twelve programs, so that all six sets of options meet all modes and kinds of
 * programs.
 *
 *   VYRE_VK_SEED=42     only that program, with all modes
 *   VYRE_VK_FIRST=300   the first one; VYRE_VK_SEEDS=250 how many
 *   VYRE_VK_FORMS=all   each program with all three modes
 *   VYRE_VK_TURN=1      with the next mode: turns 0 to 2 cover all three */
#define _GNU_SOURCE /* SA_ONSTACK; NOLINT(bugprone-reserved-identifier) */
#include "backend/vulkan/vulkan_testing.h"
#include "hal/device.h"
#include "hal/float_ops.h"
#include "runtime/compile/pipeline.h"
#include "support/campaign.h"
#include "support/sanitized.h"

enum { SEEDS = SANITIZED ? 12 : 200, MAX_FAILURES = 10 };

/* Backend options. */
static const char *const configs[] = {
    "",
    "vulkan.staging=1",
    "vulkan.push_constants=1",
    "vulkan.max_submit_ms=1",
    "vulkan.force_fences=1,vulkan.staging=1",
    "vulkan.push_constants=1,vulkan.staging=1"};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

enum { PROBED, ALL_CORRECTED, ALL_SOFT, MODES };
static const char *const modes[MODES] = {"probed", "corrected", "soft"};

typedef struct test_run {
  vyre_context *contexts[CONFIGS];
  vyre_device *ref, *devices[CONFIGS];
  uint64_t programs, runs, failed;
  unsigned messages; /* count before the test */
} test_run;

static void begin(test_run *c) {
  vyre_status st = {0};
  *c = (test_run){.messages = atomic_load(&vk_messages)};
  CHECK_OK(vyre_device_open(NULL, "ref", &c->ref, &st), st);
  for (int i = 0; i < CONFIGS; i++) {
    /* Only the probe results of the cache are used. */
    const vyre_context_options options = {
        .trace_file = "", .faults = "", .backend_options = configs[i]};
    CHECK_OK(vyre_context_create(&options, &c->contexts[i], &st), st);
    CHECK_OK(vyre_device_open(c->contexts[i], "vulkan", &c->devices[i], &st),
             st);
  }
  campaign_begin("VYRE_VK");
}

static void end(test_run *c) {
  campaign_end();
  for (int i = 0; i < CONFIGS; i++) {
    vyre_device_release(c->devices[i]);
    vyre_context_release(c->contexts[i]);
  }
  vyre_device_release(c->ref);
  printf("    %llu programs, %llu runs on vulkan, %u layer messages\n",
         (unsigned long long)c->programs, (unsigned long long)c->runs,
         atomic_load(&vk_messages) - c->messages);
}

/* --- one program ---------------------------------------------------------- */

/* Options by seed: some programs have functions, are longer, or have more
 * workgroups. Most are short, because 99 percent of the time is spent in the
 * driver's compiler. */
static vyre_random_program_options options_of(uint64_t seed) {
  static const uint8_t statements[8] = {24, 4, 12, 4, 8, 40, 4, 12};
  return (vyre_random_program_options){
      .seed = seed,
      .statements = statements[seed % 8],
      .max_invocations = seed % 4 == 2 ? 4000 : 0,
      .has_math = seed % 4 == 3};
}

/* Removes what the device lacks from the options. */
static vyre_random_program_options fit_options(
    const test_run *c, vyre_random_program_options options) {
  vyre_random_program_options_fit(&options,
                                  vyre_device_get_caps(c->devices[0]));
  return options;
}

/* Chooses the float modes. f64 operations may stay native: lowering has no
 * other mode for them. */
static void choose_modes(const vyre_device *device, int mode,
                         vyre_float_op_info *out) {
  memcpy(out, device->caps.float_ops, VYRE__FLOAT_OP_COUNT * sizeof *out);
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT && mode != PROBED; i++) {
    vyre_float_mode min = mode == ALL_CORRECTED ? VYRE_FLOAT_MODE_CORRECTED
                                                : VYRE_FLOAT_MODE_SOFT;
    if (out[i].mode < min) out[i].mode = min;
  }
}

static bool run_mode(test_run *c, const trial *t, int mode, int config) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_float_op_info float_ops[VYRE__FLOAT_OP_COUNT];
  vyre_output got[CAMPAIGN_BUFFERS];
  vyre_device *device = c->devices[config];
  vyre_dispatch_desc desc = t->desc;
  (void)snprintf(campaign_now.how, sizeof campaign_now.how, "%s%s%s",
                 modes[mode], config ? ", " : "", configs[config]);
  choose_modes(device, mode, float_ops);
  CHECK_OK(
      vyre__pipeline_compile_as(device, t->program, float_ops, &pipeline, &st),
      st);
  for (size_t i = 0; i < desc.output_count; i++) {
    got[i] = vyre_output_bytes(malloc(t->want[i].size + 1), t->want[i].size);
    CHECK(got[i].data);
    memset(got[i].data, 0xA5, got[i].size + 1);
  }
  desc.outputs = got;
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  bool good = trial_is_same(t, pipeline, got);
  for (size_t i = 0; i < desc.output_count; i++) {
    const unsigned char *bytes = got[i].data;
    CHECK(bytes[got[i].size] == 0xA5);
    free(got[i].data);
  }
  vyre_pipeline_release(pipeline);
  c->runs++;
  return good;
}

typedef struct program_run {
  test_run *test_run;
  vyre_random_program_options options;
  uint64_t turn;
  bool in_all_modes;
} program_run;

/* Returns the backend options for a seed. Mesa 22.3 never finishes compiling
 * two of the programs with push constants: it recurses over the values of a
 * condition. On that software device push constants are for tests only. */
static int config_of(uint64_t seed) {
  static const uint64_t endless[] = {2476, 8239};
  int config = (int)(seed / 12 % CONFIGS);
  for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
    if (seed == endless[i]) return 0;
  }
  return config;
}

static void run_program(void *self) {
  const program_run *a = self;
  uint64_t seed = a->options.seed;
  trial t;
  trial_begin(&t, fit_options(a->test_run, a->options), a->test_run->ref);
  for (int mode = 0; mode < MODES; mode++) {
    if (!a->in_all_modes && (uint64_t)mode != (seed + a->turn) % MODES) {
      continue;
    }
    int config = config_of(seed);
    a->test_run->failed += !run_mode(a->test_run, &t, mode, config);
  }
  trial_end(&t);
  a->test_run->programs++;
}

/* Runs a program. It fails without a result, or if a layer reports
 * something. */
static void try_program(program_run one) {
  unsigned before = atomic_load(&vk_messages);
  bool is_complete = test_part(run_program, &one);
  if (is_complete && atomic_load(&vk_messages) == before) return;
  printf("    VYRE_VK_SEED=%llu, %s\n", campaign_now.seed, campaign_now.how);
  one.test_run->failed++;
}

/* --- the tests ------------------------------------------------------------ */

TEST(random_programs_do_the_same) {
  test_run c;
  const seed_range seeds = seeds_of("VYRE_VK", 0, SEEDS);
  uint64_t turn = seed_number("VYRE_VK", "TURN", 0);
  bool in_all_modes = seeds.is_one || seed_text("VYRE_VK", "FORMS");
  begin(&c);
  for (uint64_t i = 0; i < seeds.count && c.failed < MAX_FAILURES; i++) {
    try_program(
        (program_run){&c, options_of(seeds.first + i), turn, in_all_modes});
  }
  end(&c);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, seeds.count * (in_all_modes ? MODES : 1));
  CHECK_U64(atomic_load(&vk_messages), 0);
}

/* Programs that failed once. */
TEST(regressions) {
  static const vyre_random_program_options programs[] = {
      {.seed = 1041},                  /* out-of-bounds load: 0.0 is assumed */
      {.seed = 209, .statements = 4},  /* the same with fewer statements */
      {.seed = 453, .statements = 40}, /* barriers in a loop, partial vector */
      {.seed = 994,
       .statements = 12,
       .max_invocations = 4000},       /* sign extension */
      {.seed = 1929, .statements = 4}, /* a zero computed from two values */
      {.seed = 3758,
       .statements = 4,
       .max_invocations = 4000},        /* abs(INT32_MIN) */
      {.seed = 4021, .statements = 40}, /* index -1 is out of bounds */
      {.seed = 549, .statements = 40}}; /* tiles that look like a race */
  test_run c;
  begin(&c);
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    try_program((program_run){&c, programs[i], 0, true});
  }
  end(&c);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, sizeof programs / sizeof programs[0] * MODES);
}

VK_TEST_MAIN(TEST_ENTRY(random_programs_do_the_same), TEST_ENTRY(regressions))
