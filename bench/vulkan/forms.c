/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures the cost of float modes on a device: one kernel per operation, with
 * that operation in each mode and all others as chosen by the probe. The native
 * operation is timed even if it is not exact. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "cpu/rounds.h"

enum { ELEMENTS = 16384, DEPTH = 32, MODES = VYRE_FLOAT_MODE_COUNT };

static const struct {
  const char *name, *expression;
} operations[] = {{"f32 +", "x + y"},          {"f32 *", "x * y"},
                  {"f32 /", "x / y"},          {"f32 sqrt", "sqrt(x)"},
                  {"f32 fma", "fma(x, y, z)"}, {"f32 min", "min(x, y)"},
                  {"f32 max", "max(x, y)"},    {"f32 rint", "rint(x)"}};

static const char *const mode_names[MODES] = {"native", "corrected", "soft"};

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

/* Each result is an operand of the next operation, so that none can be
 * removed. */
static vyre_module *parse_kernel(const char *expression) {
  char text[4096];
  vyre_module *module;
  vyre_status st = {0};
  int length = snprintf(text, sizeof text,
                        "kernel cost workgroup(64) over(out)\n"
                        "buffer in : read f32[] @0;\n"
                        "buffer out : read_write f32[] @1;\n"
                        "{\n"
                        "  let i = global_id.x;\n"
                        "  if (i >= len(in) || i >= len(out)) return;\n"
                        "  let y = in[i];\n"
                        "  let z = y * 0.5;\n"
                        "  var x = y + 1.0;\n");
  for (int k = 0; k < DEPTH; k++) {
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "  x = %s;\n", expression);
  }
  (void)snprintf(text + length, sizeof text - (size_t)length,
                 "  out[i] = x;\n}\n");
  must(vyre_module_parse(text, strlen(text), "cost", vyre_allocator_heap(),
                         &module, NULL, &st),
       &st, text);
  return module;
}

typedef struct mode_run {
  vyre_pipeline *pipeline;
  vyre_input inputs[2];
  vyre_output output;
} mode_run;

static void run(void *self) {
  mode_run *it = self;
  const vyre_dispatch_desc desc = {.inputs = it->inputs,
                                   .input_count = 2,
                                   .outputs = &it->output,
                                   .output_count = 1,
                                   .grid = {ELEMENTS / 64}};
  vyre_status st;
  st.code = VYRE_OK;
  must(vyre_dispatch(it->pipeline, &desc, &st), &st, "cost");
}

static void report(const char *suite, const vyre_float_op_info *c,
                   const cpu_entry *entries, int rounds) {
  cpu_quartiles q[MODES];
  printf("%-28s ns/op  ", c->operation);
  for (int mode = 0; mode < MODES; mode++) {
    q[mode] = cpu_quartiles_of(entries[mode].ns, rounds);
    printf(" %9.3f", q[mode].median / (ELEMENTS * DEPTH));
  }
  printf("   %s here\n", mode_names[c->mode]);
  (void)fflush(stdout);
  for (int mode = 1; mode < MODES; mode++) {
    char name[64], note[64];
    (void)snprintf(name, sizeof name, "%s, %s", c->operation, mode_names[mode]);
    (void)snprintf(note, sizeof note, "%s here",
                   (int)c->mode == mode                ? "used"
                   : c->mode == VYRE_FLOAT_MODE_NATIVE ? "not needed"
                                                       : "not used");
    double scale = 1.0 / (ELEMENTS * DEPTH);
    cpu_quartiles ratio = cpu_paired(&entries[mode], &entries[0], rounds);
    bench_row_add(&(bench_result){.suite = suite,
                                  .name = name,
                                  .unit = "ns/op",
                                  .value = q[mode].median * scale,
                                  .best = q[mode].minimum * scale,
                                  .peer = "the device's own",
                                  .peer_value = q[0].median * scale,
                                  .peer_best = q[0].minimum * scale,
                                  .ratio = ratio.median,
                                  .ratio_low = ratio.low,
                                  .ratio_high = ratio.high,
                                  .note = note});
  }
}

void bench_forms(const char *suite, vyre_device *device) {
  static cpu_entry entries[MODES];
  static float values[ELEMENTS];
  vyre_buffer in, out;
  vyre_status st = {0};
  for (int i = 0; i < ELEMENTS; i++) values[i] = 1 + (float)i / ELEMENTS;
  must(vyre_buffer_create(device, sizeof values, &in, &st), &st, suite);
  must(vyre_buffer_create(device, sizeof values, &out, &st), &st, suite);
  must(vyre_buffer_upload(device, in, 0, values, sizeof values, &st), &st,
       suite);
  printf("%-28s        ", "operation in each float mode");
  for (int mode = 0; mode < MODES; mode++) printf(" %9s", mode_names[mode]);
  printf("\n");
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
    mode_run runs[MODES];
    vyre_module *module = parse_kernel(operations[i].expression);
    vyre_program *kernel = vyre_module_kernel(module, 0);
    const vyre_float_op_info *c = bench_number(device, operations[i].name);
    for (int mode = 0; mode < MODES; mode++) {
      runs[mode] =
          (mode_run){.pipeline = bench_compile_as(device, kernel, c, mode),
                     .inputs = {vyre_input_buffer(in), vyre_input_buffer(out)},
                     .output = vyre_output_buffer(out)};
      entries[mode] =
          (cpu_entry){.run = run, .self = &runs[mode], .warm = 1, .timed = 5};
    }
    int rounds = cpu_rounds(entries, MODES, cpu_round_count(7));
    report(suite, c, entries, rounds);
    for (int mode = 0; mode < MODES; mode++) {
      vyre_pipeline_release(runs[mode].pipeline);
    }
    vyre_module_release(module);
  }
  must(vyre_buffer_destroy(device, in, &st), &st, suite);
  must(vyre_buffer_destroy(device, out, &st), &st, suite);
}
