/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles every kernel of the public benchmark suites and of the ports: none is
 * so large that it is compiled by the baseline tier, and the explanation of the
 * choice fits the code. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <glob.h>

#include "vyre/vyre.h"

#include "backend/cpu/jit/host_cpu.h"
#include "support/check.h"
#include "support/sanitized.h"
#include "support/text.h"

enum { EVERY = SANITIZED ? 12 : 1 }; /* kernels that are compiled */

typedef struct totals {
  unsigned seen, compiled, large;
  double ratio; /* sum of the ratios of estimated and real text */
} totals;

/* Returns the number after "key": in @p json, from @p from on. */
static double number_of(const char *json, const char *key) {
  char wanted[48];
  snprintf(wanted, sizeof wanted, "\"%s\":", key);
  const char *at = strstr(json, wanted);
  CHECK(at);
  return strtod(at + strlen(wanted), NULL);
}

static void check_explanation(vyre_pipeline *pipeline, totals *t) {
  vyre_pipeline_resources resources;
  growing_text json = {0};
  char own[32];
  vyre_status st = {0};
  CHECK(vyre_pipeline_get_resources(pipeline, &resources));
  CHECK_OK(
      vyre_pipeline_print(pipeline, "why-json", growing_writer(&json), &st),
      st);
  CHECK_U64((uint64_t)number_of(json.bytes, "width"), resources.width);
  CHECK(strstr(json.bytes, "\"tier\":\"optimised\""));
  CHECK(number_of(json.bytes, "text_bytes") <
        number_of(json.bytes, "max_text_bytes"));
  snprintf(own, sizeof own, "{\"width\":%u,", (unsigned)resources.width);
  const char *row = strstr(json.bytes + 1, own);
  CHECK(row);
  double ratio = number_of(row, "estimated_text_bytes") /
                 number_of(json.bytes, "text_bytes");
  if (ratio < 0.25 || ratio > 4) {
    printf("    %s: the text is estimated %.2f times too large\n",
           vyre_program_name(vyre_pipeline_program(pipeline)), ratio);
  }
  CHECK(ratio > 0.1 && ratio < 10);
  t->ratio += ratio;
  free(json.bytes);
}

static void compile_file(vyre_device *device, const char *path, totals *t) {
  const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  static char text[1 << 16];
  vyre_module *module;
  vyre_status st = {0};
  FILE *file = fopen(path, "rb");
  CHECK(file);
  size_t length = fread(text, 1, sizeof text, file);
  (void)fclose(file);
  CHECK(length < sizeof text);
  CHECK_OK(vyre_module_parse(text, length, path, (vyre_allocator){0}, &module,
                             NULL, &st),
           st);
  for (size_t i = 0; i < vyre_module_kernel_count(module); i++) {
    vyre_pipeline *pipeline = NULL;
    vyre_pipeline_resources resources;
    if (t->seen++ % EVERY != 0) continue;
    CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, i),
                                   &options, &pipeline, NULL, &st),
             st);
    CHECK(vyre_pipeline_get_resources(pipeline, &resources));
    if (resources.is_baseline) {
      printf("    %s is compiled by the baseline tier\n",
             vyre_program_name(vyre_module_kernel(module, i)));
    }
    t->large += resources.is_baseline;
    t->compiled++;
    if (!resources.is_baseline) check_explanation(pipeline, t);
    vyre_pipeline_release(pipeline);
  }
  vyre_module_release(module);
}

TEST(no_public_kernel_is_compiled_by_the_baseline_tier) {
  static const char *const folders[] = {"bench/public", "bench/public/held",
                                        "bench/public/held2", "examples/ports"};
  const vyre_context_options options = {.cache_directory = ""};
  vyre_context *context;
  vyre_device *device;
  vyre_status st = {0};
  totals t = {0};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "cpu", &device, &st), st);
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/../%s/*.vyre", VYRE_EXAMPLES_DIR,
             folders[i]);
    CHECK(glob(pattern, 0, NULL, &found) == 0);
    for (size_t k = 0; k < found.gl_pathc; k++) {
      compile_file(device, found.gl_pathv[k], &t);
    }
    globfree(&found);
  }
  printf("    %u kernels, mean ratio of estimated to real text %.2f\n",
         t.compiled, t.ratio / t.compiled);
  CHECK_U64(t.large, 0);
  CHECK(t.seen > 80);
  CHECK(t.ratio / t.compiled > 0.5 && t.ratio / t.compiled < 2);
  vyre_device_release(device);
  vyre_context_release(context);
}

static const test_case all_cases[] = {
    TEST_ENTRY(no_public_kernel_is_compiled_by_the_baseline_tier)};

int main(int argc, char **argv) {
  if (!vyre__host_cpu_detect()->is_usable) {
    puts("skipped: device 'cpu' does not support this processor");
    return 77;
  }
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}
