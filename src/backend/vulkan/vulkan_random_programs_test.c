/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs give the same bytes on a Vulkan device as on ref, in whatever forms
 * floats are computed, and no validation layer says anything. (The layers put every
 * module through spirv-val, too.)
 *
 * Unless told otherwise, 200 programs, each of them in one form, the next one for the
 * next program: what the probe chose, all fixed, all soft. Every twelve of them go
 * another way through the driver, so that all six ways have all forms and kinds.
 *
 *   VYRE_VK_SEED=42     only that program, in all forms
 *   VYRE_VK_FIRST=300   the first one; VYRE_VK_SEEDS=250 how many
 *   VYRE_VK_FORMS=all   each in all three forms
 *   VYRE_VK_TURN=1      in the next form: turns 0 to 2 are all three */
#define _GNU_SOURCE /* SA_ONSTACK; NOLINT(bugprone-reserved-identifier) */
#include "backend/vulkan/vulkan_testing.h"
#include "hal/device.h"
#include "runtime/compile/pipeline.h"
#include "hal/float_ops.h"
#include "support/campaign.h"
#include "support/sanitized.h"

enum { SEEDS = SANITIZED ? 12 : 200, MOST_FAILURES = 10 };

/* Ways through the driver. */
static const char *const ways[] = {"",
                                   "vulkan.staging=1",
                                   "vulkan.push_constants=1",
                                   "vulkan.max_submit_ms=1",
                                   "vulkan.force_fences=1,vulkan.staging=1",
                                   "vulkan.push_constants=1,vulkan.staging=1"};
enum { WAYS = sizeof ways / sizeof ways[0] };

enum { PROBED, ALL_FIXED, ALL_SOFT, FORMS };
static const char *const forms[FORMS] = {"probed", "fixed", "soft"};

typedef struct campaign {
  vyre_context *contexts[WAYS];
  vyre_device *ref, *devices[WAYS];
  uint64_t programs, runs, failed;
  unsigned messages; /* there were before */
} campaign;

static void begin(campaign *c) {
  vyre_status st = {0};
  *c = (campaign){.messages = atomic_load(&vk_messages)};
  CHECK_OK(vyre_device_open(NULL, "ref", &c->ref, &st), st);
  for (int i = 0; i < WAYS; i++) {
    /* Of the cache only what the probe found is used. */
    const vyre_context_options options = {
        .trace_file = "", .faults = "", .backend_options = ways[i]};
    CHECK_OK(vyre_context_create(&options, &c->contexts[i], &st), st);
    CHECK_OK(vyre_device_open(c->contexts[i], "vulkan", &c->devices[i], &st),
             st);
  }
  campaign_begin("VYRE_VK");
}

static void end(campaign *c) {
  campaign_end();
  for (int i = 0; i < WAYS; i++) {
    vyre_device_release(c->devices[i]);
    vyre_context_release(c->contexts[i]);
  }
  vyre_device_release(c->ref);
  printf("    %llu programs, %llu runs on vulkan, %u messages of layers\n",
         (unsigned long long)c->programs, (unsigned long long)c->runs,
         atomic_load(&vk_messages) - c->messages);
}

/* --- one program ------------------------------------------------------------------*/

/* With functions, longer ones, on more workgroups. All but a hundredth of the time is
 * the driver's compiler, so that most are short. */
static vyre_random_program_options options_of(uint64_t seed) {
  static const uint8_t statements[8] = {24, 4, 12, 4, 8, 40, 4, 12};
  return (vyre_random_program_options){
      .seed = seed,
      .statements = statements[seed % 8],
      .max_invocations = seed % 4 == 2 ? 4000 : 0,
      .has_math = seed % 4 == 3};
}

/* The options, without what the device lacks. */
static vyre_random_program_options fitting(
    const campaign *c, vyre_random_program_options options) {
  vyre_random_program_options_fit(&options,
                                  vyre_device_get_caps(c->devices[0]));
  return options;
}

/* What is native for no reason but that it must be: f64 has no other forms that
 * lowering knows. */
static void choose_forms(const vyre_device *device, int form,
                         vyre_float_op_info *out) {
  memcpy(out, device->caps.float_ops, VYRE__FLOAT_OP_COUNT * sizeof *out);
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT && form != PROBED; i++) {
    vyre_float_mode least =
        form == ALL_FIXED ? VYRE_FLOAT_MODE_CORRECTED : VYRE_FLOAT_MODE_SOFT;
    if (out[i].mode < least) out[i].mode = least;
  }
}

static bool run_form(campaign *c, const trial *t, int form, int way) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_float_op_info numbers[VYRE__FLOAT_OP_COUNT];
  vyre_output got[CAMPAIGN_BUFFERS];
  vyre_device *device = c->devices[way];
  vyre_dispatch_desc desc = t->desc;
  (void)snprintf(campaign_now.how, sizeof campaign_now.how, "%s%s%s",
                 forms[form], way ? ", " : "", ways[way]);
  choose_forms(device, form, numbers);
  CHECK_OK(
      vyre__pipeline_compile_as(device, t->program, numbers, &pipeline, &st),
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

typedef struct attempt {
  campaign *campaign;
  vyre_random_program_options options;
  uint64_t turn;
  bool in_all_forms;
} attempt;

/* Some that Mesa 22.3 gets for its software device with push constants are never
 * compiled: it calls itself over the values of a condition, more often than anybody
 * can wait. Push constants are for GPUs, and on that device are for tests only. */
static int way_of(uint64_t seed) {
  static const uint64_t endless[] = {2476, 8239};
  int way = (int)(seed / 12 % WAYS);
  for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
    if (seed == endless[i]) return 0;
  }
  return way;
}

static void run_program(void *self) {
  const attempt *a = self;
  uint64_t seed = a->options.seed;
  trial t;
  trial_begin(&t, fitting(a->campaign, a->options), a->campaign->ref);
  for (int form = 0; form < FORMS; form++) {
    if (!a->in_all_forms && (uint64_t)form != (seed + a->turn) % FORMS) {
      continue;
    }
    int way = way_of(seed);
    a->campaign->failed += !run_form(a->campaign, &t, form, way);
  }
  trial_end(&t);
  a->campaign->programs++;
}

/* A program that gives no result, or of which a layer says something, failed. */
static void attempt_program(attempt one) {
  unsigned before = atomic_load(&vk_messages);
  bool is_whole = test_part(run_program, &one);
  if (is_whole && atomic_load(&vk_messages) == before) return;
  printf("    VYRE_VK_SEED=%llu, %s\n", campaign_now.seed, campaign_now.how);
  one.campaign->failed++;
}

/* --- all of them ------------------------------------------------------------------*/

TEST(random_programs_do_the_same) {
  campaign c;
  const seed_range seeds = seeds_of("VYRE_VK", 0, SEEDS);
  uint64_t turn = seed_number("VYRE_VK", "TURN", 0);
  bool in_all_forms = seeds.is_one || seed_text("VYRE_VK", "FORMS");
  begin(&c);
  for (uint64_t i = 0; i < seeds.count && c.failed < MOST_FAILURES; i++) {
    attempt_program(
        (attempt){&c, options_of(seeds.first + i), turn, in_all_forms});
  }
  end(&c);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, seeds.count * (in_all_forms ? FORMS : 1));
  CHECK_U64(atomic_load(&vk_messages), 0);
}

/* Each of these was wrong once. */
TEST(programs_that_were_wrong_are_right) {
  static const vyre_random_program_options programs[] = {
      {.seed = 1041},                 /* a load that is outside: 0.0 is known */
      {.seed = 209, .statements = 4}, /* the same, whatever the length */
      {.seed = 453, .statements = 40}, /* barriers in a loop, half a vector */
      {.seed = 994, .statements = 12, .max_invocations = 4000}, /* signs */
      {.seed = 1929, .statements = 4}, /* a zero made of two numbers */
      {.seed = 3758, .statements = 4, .max_invocations = 4000}, /* abs(MIN) */
      {.seed = 4021, .statements = 40}, /* an index of -1 is outside */
      {.seed = 549, .statements = 40}}; /* parts that look like a race */
  campaign c;
  begin(&c);
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    attempt_program((attempt){&c, programs[i], 0, true});
  }
  end(&c);
  CHECK_U64(c.failed, 0);
  CHECK_U64(c.runs, sizeof programs / sizeof programs[0] * FORMS);
}

VK_TEST_MAIN(TEST_ENTRY(random_programs_do_the_same),
             TEST_ENTRY(programs_that_were_wrong_are_right))
