/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code from packages gives the bytes of ref: the examples and random programs,
 * at each x86-64 level that this processor has, and on the Vulkan device.
 * Variables: testing/random_programs.h. */
#include "runtime/package/package_testing.h"
#include "support/sanitized.h"
#include "testing/random_programs.h"

enum { SEEDS = SANITIZED ? 12 : 60, VULKAN_SEEDS = SANITIZED ? 4 : 24 };

typedef struct level {
  const char *device, *options, *target; /* NULL: any */
} level;

static const level levels[] = {
    {"cpu", "cpu.isa_level=all", "x86-64-v4"},
    {"cpu", "cpu.isa_level=avx2", "x86-64-v3"},
    {"cpu", "cpu.isa_level=sse4.2", "x86-64-v2"},
    {"vulkan", "", NULL},
};
enum { LEVELS = 4, VULKAN = 3 };

typedef struct rig {
  vyre_context *contexts[LEVELS];
  vyre_device *devices[LEVELS]; /* NULL: this machine lacks it */
  size_t first, end;            /* levels in use */
  uint64_t runs;
} rig;

/* Returns true if the device can load code for the target. */
static bool can_load(vyre_device *device, const char *target) {
  vyre_module *module = parse_module(
      "kernel one workgroup(4) buffer a : write u32[] @0; "
      "{ if (global_id.x < len(a)) a[global_id.x] = 1; }");
  vyre_program *program = vyre_module_kernel(module, 0);
  const vyre_package_options options = {.targets = target};
  growing_text text = write_package(&program, 1, &options);
  vyre_package *package = open_bytes(&text);
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  vyre_code code =
      vyre_pipeline_load(device, package, NULL, NULL, &pipeline, &st);
  if (code != VYRE_OK) {
    printf("    %s is not tested: %s\n", target, st.message);
    CHECK(code == VYRE_UNSUPPORTED_FEATURE);
  }
  vyre_pipeline_release(pipeline);
  vyre_package_release(package);
  vyre_module_release(module);
  free(text.bytes);
  return code == VYRE_OK;
}

static void begin(rig *r, size_t first, size_t end) {
  *r = (rig){.first = first, .end = end};
  for (size_t i = first; i < end; i++) {
    vyre_status st = {0};
    if (open_with(levels[i].device, levels[i].options, &r->contexts[i],
                  &r->devices[i], &st) != VYRE_OK) {
      printf("    no device '%s': %s\n", levels[i].device, st.message);
      continue;
    }
    if (levels[i].target && !can_load(r->devices[i], levels[i].target)) {
      vyre_device_release(r->devices[i]);
      vyre_context_release(r->contexts[i]);
      r->devices[i] = NULL;
      r->contexts[i] = NULL;
    }
  }
}

static void end(rig *r) {
  for (size_t i = r->first; i < r->end; i++) {
    vyre_device_release(r->devices[i]);
    vyre_context_release(r->contexts[i]);
  }
}

/* --- one program ---------------------------------------------------------- */

/* Dispatches a job with memory of its own, and compares it with ref. */
static bool run(rig *r, const job *j, vyre_pipeline *pipeline) {
  vyre_status st = {0};
  vyre_output got[MAX_BUFFERS];
  vyre_dispatch_desc desc = {.inputs = j->inputs,
                             .input_count = j->input_count,
                             .outputs = got,
                             .output_count = j->output_count};
  for (size_t i = 0; i < desc.output_count; i++) {
    size_t size = j->outputs[i].size;
    got[i] = vyre_output_bytes(malloc(size + 1), size);
    CHECK(got[i].data);
    memset(got[i].data, 0xA5, size + 1);
  }
  memcpy(desc.grid, j->grid, sizeof desc.grid);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  bool good = same_outputs(j, got);
  for (size_t i = 0; i < desc.output_count; i++) free(got[i].data);
  r->runs++;
  return good;
}

/* Writes one package for all levels, so that each device chooses from it. */
static unsigned check_levels(job *j, void *self) {
  rig *r = self;
  unsigned failed = 0;
  vyre_package_options options = {.targets =
                                      r->first == VULKAN ? "vulkan" : "cpu"};
  growing_text text = write_package(&j->program, 1, &options);
  vyre_package *package = open_bytes(&text);
  for (size_t i = r->first; i < r->end; i++) {
    vyre_status st = {0};
    vyre_pipeline *pipeline;
    if (!r->devices[i]) continue;
    set_variant("%s, %s", levels[i].device, levels[i].options);
    CHECK_OK(
        vyre_pipeline_load(r->devices[i], package, NULL, NULL, &pipeline, &st),
        st);
    failed += count_failure(run(r, j, pipeline));
    vyre_pipeline_release(pipeline);
  }
  vyre_package_release(package);
  free(text.bytes);
  return failed;
}

static vyre_random_program_options options_of(uint64_t seed, void *self) {
  (void)self;
  vyre_random_program_options options = {.seed = seed,
                                         .has_math = seed % 4 == 3};
  if (seed % 8 == 5) options.statements = 60;
  return options;
}

/* Short programs: nearly all of the time goes to the driver's compiler. */
static vyre_random_program_options vulkan_options_of(uint64_t seed,
                                                     void *self) {
  const rig *r = self;
  vyre_random_program_options options = {
      .seed = seed, .statements = 4 + seed % 8, .has_math = seed % 4 == 3};
  vyre_random_program_options_fit(&options,
                                  vyre_device_get_caps(r->devices[VULKAN]));
  return options;
}

/* --- the tests ------------------------------------------------------------ */

static uint64_t count_devices(const rig *r) {
  uint64_t count = 0;
  for (size_t i = r->first; i < r->end; i++) count += r->devices[i] != NULL;
  return count;
}

TEST(random_programs_do_the_same_at_every_level) {
  rig r;
  begin(&r, 0, VULKAN);
  const program_test test = {
      .check = check_levels, .self = &r, .options = options_of, .count = SEEDS};
  unsigned failed = check_random_programs(&test);
  printf("    %llu runs\n", (unsigned long long)r.runs);
  CHECK_U64(failed, 0);
  CHECK_U64(r.runs, test_seeds(0, SEEDS).count * count_devices(&r));
  CHECK(r.devices[2] != NULL); /* the lowest level runs everywhere */
  end(&r);
}

TEST(examples_do_the_same_at_every_level) {
  rig r;
  begin(&r, 0, VULKAN);
  const program_test test = {.check = check_levels, .self = &r, .length = 1000};
  CHECK_U64(check_examples(&test), 0);
  CHECK(r.runs >= 10);
  end(&r);
}

TEST(examples_do_the_same_on_vulkan) {
  rig r;
  begin(&r, VULKAN, LEVELS);
  const program_test test = {.check = check_levels, .self = &r, .length = 300};
  if (r.devices[VULKAN]) CHECK_U64(check_examples(&test), 0);
  end(&r);
}

TEST(random_programs_do_the_same_on_vulkan) {
  rig r;
  begin(&r, VULKAN, LEVELS);
  const program_test test = {.check = check_levels,
                             .self = &r,
                             .options = vulkan_options_of,
                             .count = VULKAN_SEEDS};
  if (r.devices[VULKAN]) {
    CHECK_U64(check_random_programs(&test), 0);
    CHECK(r.runs > 0);
  }
  end(&r);
}

static const test_case all_cases[] = {
    TEST_ENTRY(random_programs_do_the_same_at_every_level),
    TEST_ENTRY(examples_do_the_same_at_every_level),
    TEST_ENTRY(examples_do_the_same_on_vulkan),
    TEST_ENTRY(random_programs_do_the_same_on_vulkan)};

int main(int argc, char **argv) {
  vyre_device *device;
  if (vyre_device_open(NULL, "cpu", &device, NULL) != VYRE_OK) {
    puts("skipped: device 'cpu' does not support this processor");
    return 77;
  }
  vyre_device_release(device);
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}
