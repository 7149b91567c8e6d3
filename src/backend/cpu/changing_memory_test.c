/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiled code stays inside its buffers even if the bytes it reads change
 * after every single access. */
#define _GNU_SOURCE /* for changing_page_testing.h; NOLINT(bugprone-reserved-identifier) */
#include <time.h>

#include "vyre/vyre.h"

#include "backend/cpu/cpu.h"
#include "support/sanitized.h"
#include "testing/changing_page_testing.h"

static void dispatch(void *self) {
  bool writes = watch.kind == CHANGING_READ_WRITE;
  size_t size = (size_t)CHANGING_ELEMENTS * watch.kernel->width;
  vyre_status st = {0};
  vyre_input in[] = {
      vyre_input_bytes(watch.q, size),
      vyre_input_bytes(watch.data, sizeof(uint32_t) * CHANGING_ELEMENTS),
      vyre_input_bytes(watch.w, sizeof(uint32_t) * CHANGING_OUT)};
  vyre_output out[] = {
      vyre_output_bytes(watch.q, size),
      vyre_output_bytes(watch.w, sizeof(uint32_t) * CHANGING_OUT)};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 3,
                             .outputs = writes ? out : out + 1,
                             .output_count = writes ? 2 : 1,
                             .grid = {1, 1, 1},
                             .max_loop_iterations = 2000};
  vyre_code code = vyre_dispatch(self, &desc, &st);
  /* A changed value may well ask for too many iterations. */
  if (code != VYRE_OK && st.kind != VYRE_KIND_OUT_OF_FUEL) CHECK_OK(code, st);
}

static uint64_t run_kernel(vyre_device *device, const changing_kernel *k,
                           changing_kind kind, const char *what,
                           bool is_baseline) {
  char text[CHANGING_TEXT];
  vyre_module *module;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  const vyre_compile_options how = {.tier = is_baseline ? VYRE_TIER_BASELINE
                                                        : VYRE_TIER_OPTIMISED};
  changing_text(k, kind, text);
  vyre_code code = vyre_module_parse(text, strlen(text), k->name,
                                     (vyre_allocator){0}, &module, NULL, &st);
  if (code != VYRE_OK) printf("    %s\n", text);
  CHECK_OK(code, st);
  code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0), &how,
                               &pipeline, NULL, &st);
  if (code != VYRE_OK) printf("    %s\n", text);
  CHECK_OK(code, st);
  uint64_t runs = watch_all(k, kind, what, dispatch, pipeline);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  return runs;
}

/* Returns true if kernel @p i is run with that kind of memory. At widths 1 and
 * 8, optimised code runs with all kinds; otherwise two kinds per kernel, and
 * one under a sanitizer. */
static bool is_chosen(unsigned i, unsigned kind, uint32_t width,
                      bool is_baseline) {
  unsigned turn = (i + width) % CHANGING_KINDS;
  if (!changing_has(&changing_kernels[i], (changing_kind)kind)) return false;
  if (SANITIZED) return kind == turn;
  if (!is_baseline && (width == 1 || width == 8)) return true;
  return kind % 2 == turn % 2;
}

static void run_width(uint32_t width, bool is_baseline) {
  char own[64], what[64];
  uint64_t kernels = 0, runs = 0;
  vyre_context *context;
  vyre_device *device;
  vyre_status st = {0};
  watch_begin();
  snprintf(what, sizeof what, "width %u, %s code", (unsigned)width,
           is_baseline ? "baseline" : "optimised");
  snprintf(own, sizeof own, "cpu.width=%u,cpu.threads=1", (unsigned)width);
  const vyre_context_options options = {.cache_directory = "",
                                        .trace_file = "",
                                        .faults = "",
                                        .backend_options = own};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "cpu", &device, &st), st);
  for (unsigned i = 0; i < CHANGING_KERNELS; i++) {
    for (unsigned kind = 0; kind < CHANGING_KINDS; kind++) {
      if (!is_chosen(i, kind, width, is_baseline)) continue;
      runs += run_kernel(device, &changing_kernels[i], (changing_kind)kind,
                         what, is_baseline);
      kernels++;
    }
  }
  vyre_device_release(device);
  vyre_context_release(context);
  printf("    %s: %llu kernels, %llu runs\n", what, (unsigned long long)kernels,
         (unsigned long long)runs);
}

TEST(one_invocation_at_a_time) {
  run_width(1, false);
}
TEST(vectors_of_4) {
  run_width(4, false);
}
TEST(vectors_of_8) {
  run_width(8, false);
}
TEST(vectors_of_16) {
  run_width(16, false);
}
TEST(baseline_code) {
  run_width(1, true);
  run_width(8, true);
}

TEST_MAIN(TEST_ENTRY(one_invocation_at_a_time), TEST_ENTRY(vectors_of_4),
          TEST_ENTRY(vectors_of_8), TEST_ENTRY(vectors_of_16),
          TEST_ENTRY(baseline_code))
