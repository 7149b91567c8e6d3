/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Helpers for tests: run kernels from text on ref. */
#ifndef VYRE_BACKEND_REF_TESTING_H
#define VYRE_BACKEND_REF_TESTING_H

#include "vyre/module.h"
#include "vyre/vyre.h"

#include "support/check.h"

/* Opens a device whose memory comes from @p allocator. */
static inline vyre_code open_with(vyre_allocator allocator, const char *name,
                                  vyre_device **out, vyre_status *st) {
  vyre_context *context = NULL;
  vyre_context_options options = {.allocator = allocator};
  vyre_code code = vyre_context_create(&options, &context, st);
  if (code == VYRE_OK) code = vyre_device_open(context, name, out, st);
  vyre_context_release(context);
  return code;
}

static inline vyre_pipeline *compile(const char *text,
                                     vyre_allocator allocator) {
  vyre_module *module = NULL;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  vyre_code code = vyre_module_parse(text, strlen(text), "test.vyre", allocator,
                                     &module, NULL, &st);
  if (code == VYRE_OK) code = open_with(allocator, "ref", &device, &st);
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st);
  }
  vyre_device_release(device); /* the pipeline holds a reference */
  vyre_module_release(module);
  if (code != VYRE_OK) printf("    %s\n    in %s\n", st.message, text);
  CHECK(code == VYRE_OK);
  return pipeline;
}

static inline void run(const char *text, vyre_dispatch_desc *desc) {
  vyre_pipeline *pipeline = compile(text, (vyre_allocator){0});
  vyre_status st = {0};
  vyre_code code = vyre_dispatch(pipeline, desc, &st);
  vyre_pipeline_release(pipeline);
  CHECK_OK(code, st);
}

enum { LENGTH = 8, BYTES = 32 };

/* Runs a kernel body on the buffers x (eight numbers of the test), y (eight
 * zeros) and s (shared memory), and returns y in @p y. */
static inline void run_words(const char *body, uint32_t grid, const uint32_t *x,
                             uint32_t *y) {
  static char text[4096];
  snprintf(text, sizeof text,
           "fn twice(a: u32) -> u32 { return a * 2; }\n"
           "fn gcd(a: u32, b: u32) -> u32 {\n"
           "  var x = a; var y = b;\n"
           "  while (y != 0) { let t = x %% y; x = y; y = t; }\n"
           "  return x;\n}\n"
           "fn first_above(n: u32) -> u32 {\n"
           "  for (let i = 0u; i < 100; i++) {\n"
           "    if (i * i > n) return i;\n"
           "    if (i == 50) break;\n"
           "  }\n"
           "  return twice(n) + 1000;\n}\n"
           "kernel k workgroup(4)\n"
           "buffer x : read u32[] @0;\n"
           "buffer y : read_write u32[] @1;\n"
           "shared s : u32[8];\n"
           "{ let i = global_id.x; let l = local_id.x;\n%s\n}\n",
           body);
  vyre_input inputs[] = {{x, BYTES}, {y, BYTES}};
  vyre_output outputs[] = {{y, BYTES}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 2,
                             .outputs = outputs,
                             .output_count = 1,
                             .grid = {grid}};
  run(text, &desc);
}

typedef struct word_row {
  const char *body;
  uint32_t want[LENGTH];
  uint32_t grid; /* 0: inferred, 2 workgroups of 4 */
} word_row;

static inline void check_words(const word_row *rows, size_t count) {
  static const uint32_t x[LENGTH] = {5, 3, 8, 1, 9, 2, 7, 4};
  for (size_t r = 0; r < count; r++) {
    uint32_t y[LENGTH] = {0};
    run_words(rows[r].body, rows[r].grid, x, y);
    for (int i = 0; i < LENGTH; i++) {
      if (y[i] == rows[r].want[i]) continue;
      printf("    y[%d] is %u, not %u, in: %s\n", i, y[i], rows[r].want[i],
             rows[r].body);
      CHECK(false);
    }
  }
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

#endif
