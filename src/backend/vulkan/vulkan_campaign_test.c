/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs give the same bytes on a Vulkan device as on ref, in whatever forms
 * floats are computed, and no validation layer says anything. (The layers put every
 * module through spirv-val, too.)
 *
 * Each program is run in the forms that the probe chose, and every other one in all
 * fixed or all soft forms as well; through staging memory, with fences, or in parts,
 * as its seed says.
 *
 *   VYRE_VK_SEED=42     only that program, in all forms
 *   VYRE_VK_FIRST=300   the first one; VYRE_VK_SEEDS=250 how many
 *   VYRE_VK_FORMS=all   each in all forms */
#include "backend/vulkan/vulkan_testing.h"
#include "driver/driver.h"
#include "driver/probe.h"
#include "support/sanitized.h"

enum { SEEDS = SANITIZED ? 8 : 40, MOST_FAILURES = 10, MOST_BUFFERS = 64 };

/* Ways through the driver. */
static const char *const ways[] = {"", "vulkan.staging=1",
                                   "vulkan.fences=1,vulkan.staging=1",
                                   "vulkan.most_ms=1"};
enum { WAYS = sizeof ways / sizeof ways[0] };

enum { PROBED, ALL_FIXED, ALL_SOFT, FORMS };
static const char *const forms[FORMS] = {"probed", "fixed", "soft"};

static struct {
  vyre_context *contexts[WAYS];
  vyre_device *ref, *devices[WAYS];
  uint64_t programs, runs, failed;
} all;

static void begin(void) {
  vyre_status st = {0};
  memset(&all, 0, sizeof all);
  CHECK_OK(vyre_device_open(NULL, "ref", &all.ref, &st), st);
  for (int i = 0; i < WAYS; i++) {
    const vyre_context_options options = {.cache_directory = "",
                                          .trace_file = "",
                                          .faults = "",
                                          .backend_options = ways[i]};
    CHECK_OK(vyre_context_create(&options, &all.contexts[i], &st), st);
    CHECK_OK(vyre_device_open(all.contexts[i], "vulkan", &all.devices[i], &st),
             st);
  }
}

static void end(void) {
  for (int i = 0; i < WAYS; i++) {
    vyre_device_release(all.devices[i]);
    vyre_context_release(all.contexts[i]);
  }
  vyre_device_release(all.ref);
}

/* --- one program ------------------------------------------------------------------*/

typedef struct trial {
  uint64_t seed;
  vyre_program *program;
  vyre_dispatch_desc desc;
  vyre_output want[MOST_BUFFERS], got[MOST_BUFFERS];
} trial;

/* Plain ones, with functions, longer ones, on more workgroups. */
static vyre_generate_options options_of(uint64_t seed) {
  vyre_generate_options options = {.seed = seed, .math = seed % 4 == 3};
  if (seed % 8 == 5) options.statements = 60;
  if (seed % 4 == 2) options.max_invocations = 4000;
  return options;
}

/* What is native for no reason but that it must be: f64 has no other forms that
 * lowering knows. */
static void choose_forms(const vyre_device *device, int form,
                         vyre_number_class *out) {
  memcpy(out, device->caps.numbers, VYRE__NUMBER_COUNT * sizeof *out);
  for (int i = 0; i < VYRE__NUMBER_COUNT && form != PROBED; i++) {
    vyre_numbers least =
        form == ALL_FIXED ? VYRE_NUMBERS_FIXED : VYRE_NUMBERS_SOFT;
    if (out[i].form < least) out[i].form = least;
  }
}

static bool is_same(const trial *t, const vyre_pipeline *pipeline, int form) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    const unsigned char *g = t->got[b->output_index].data;
    const unsigned char *w = t->want[b->output_index].data;
    size_t size = t->want[b->output_index].size, at = 0;
    size_t unit = b->element_size ? b->element_size : 1;
    if (size == 0 || memcmp(g, w, size) == 0) continue;
    while (g[at] == w[at]) at++;
    printf(
        "    VYRE_VK_SEED=%llu, %s: output '%s' differs at element %zu of "
        "%zu\n",
        (unsigned long long)t->seed, forms[form], b->name, at / unit,
        size / unit);
    return false;
  }
  return true;
}

static bool run_form(trial *t, int form) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_number_class numbers[VYRE__NUMBER_COUNT];
  vyre_device *device = all.devices[t->seed / FORMS % WAYS];
  vyre_dispatch_desc desc = t->desc;
  choose_forms(device, form, numbers);
  CHECK_OK(
      vyre__pipeline_compile_as(device, t->program, numbers, &pipeline, &st),
      st);
  for (size_t i = 0; i < desc.output_count; i++) {
    memset(t->got[i].data, 0xA5, t->got[i].size + 1);
  }
  desc.outputs = t->got;
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  bool good = is_same(t, pipeline, form);
  vyre_pipeline_release(pipeline);
  all.runs++;
  return good;
}

static void run_ref(trial *t) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_dispatch_desc desc = t->desc;
  desc.outputs = t->want;
  CHECK_OK(
      vyre_pipeline_compile(all.ref, t->program, NULL, &pipeline, NULL, &st),
      st);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  vyre_pipeline_release(pipeline);
}

typedef struct attempt {
  uint64_t seed;
  bool in_all_forms;
} attempt;

static void run_program(void *self) {
  const attempt *a = self;
  vyre_status st = {0};
  vyre_generate_options options = options_of(a->seed);
  vyre_generated *made = NULL;
  trial t = {.seed = a->seed};
  CHECK_OK(vyre_generate(&options, (vyre_allocator){0}, &made, &st), st);
  t.program = vyre_generated_program(made);
  t.desc.inputs = vyre_generated_inputs(made, &t.desc.input_count);
  const vyre_output *sizes = vyre_generated_outputs(made, &t.desc.output_count);
  CHECK(t.desc.output_count <= MOST_BUFFERS);
  for (size_t i = 0; i < t.desc.output_count; i++) {
    t.want[i].size = t.got[i].size = sizes[i].size;
    t.want[i].data = calloc(1, sizes[i].size + 1);
    t.got[i].data = calloc(1, sizes[i].size + 1);
    CHECK(t.want[i].data && t.got[i].data);
  }
  memcpy(t.desc.grid, vyre_generated_grid(made), sizeof t.desc.grid);
  run_ref(&t);
  int other = a->seed % 4 == 0 ? ALL_FIXED : a->seed % 4 == 2 ? ALL_SOFT : 0;
  for (int form = 0; form < FORMS; form++) {
    if (form != PROBED && form != other && !a->in_all_forms) continue;
    all.failed += !run_form(&t, form);
  }
  for (size_t i = 0; i < t.desc.output_count; i++) {
    free(t.want[i].data);
    free(t.got[i].data);
  }
  vyre_generated_release(made);
  all.programs++;
}

/* --- all of them ------------------------------------------------------------------*/

static uint64_t number_of(const char *name, uint64_t otherwise) {
  const char *given = getenv(name);
  return given ? strtoull(given, NULL, 10) : otherwise;
}

TEST(random_programs_do_the_same) {
  bool is_one = getenv("VYRE_VK_SEED") != NULL;
  uint64_t first = number_of(is_one ? "VYRE_VK_SEED" : "VYRE_VK_FIRST", 0);
  uint64_t count = is_one ? 1 : number_of("VYRE_VK_SEEDS", SEEDS);
  bool in_all_forms = is_one || getenv("VYRE_VK_FORMS") != NULL;
  setvbuf(stdout, NULL, _IOLBF, 0); /* a run is long, and somebody looks */
  begin();
  for (uint64_t i = 0; i < count && all.failed < MOST_FAILURES; i++) {
    attempt one = {first + i, in_all_forms};
    unsigned before = atomic_load(&vk_messages);
    bool is_whole = test_part(run_program, &one);
    if (is_whole && atomic_load(&vk_messages) == before) continue;
    printf("    VYRE_VK_SEED=%llu\n", (unsigned long long)one.seed);
    all.failed++;
  }
  end();
  printf("    %llu programs, %llu runs on vulkan, %u messages of layers\n",
         (unsigned long long)all.programs, (unsigned long long)all.runs,
         atomic_load(&vk_messages));
  CHECK_U64(all.failed, 0);
  CHECK_U64(atomic_load(&vk_messages), 0);
}

VK_TEST_MAIN(TEST_ENTRY(random_programs_do_the_same))
