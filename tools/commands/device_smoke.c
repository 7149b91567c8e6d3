/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "commands/device_smoke.h"

#include <string.h>

#include "vyre/context.h"
#include "vyre/dispatch.h"
#include "vyre/module.h"
#include "vyre/pipeline.h"

#include "cli/stopwatch.h"

enum { COUNT = 1000 };

static const char text[] =
    "kernel trial workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    var n = i;\n"
    "    var steps = 0u;\n"
    "    while (n > 1) {\n"
    "        if (n % 2 == 0) n /= 2; else n = 3 * n + 1;\n"
    "        steps++;\n"
    "    }\n"
    "    if (i < len(y)) y[i] = steps;\n"
    "}\n";

static uint32_t steps_of(uint32_t n) {
  uint32_t steps = 0;
  for (; n > 1; steps++) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

/* Another workgroup size makes a second kernel. */
static vyre_code compile(vyre_device *device, vyre_module *module,
                         uint32_t workgroup, vyre_pipeline **out,
                         uint64_t *taken, vyre_status *st) {
  const vyre_compile_options options = {.workgroup = {workgroup, 1, 1},
                                        .tier = VYRE_TIER_OPTIMISED};
  uint64_t start = stopwatch_ns();
  vyre_code code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0),
                                         &options, out, NULL, st);
  *taken = stopwatch_ns() - start;
  return code;
}

static vyre_code run(vyre_pipeline *pipeline, device_trial *out) {
  uint32_t y[COUNT] = {0};
  const vyre_input inputs[] = {vyre_input_bytes(y, sizeof y)};
  const vyre_output outputs[] = {vyre_output_bytes(y, sizeof y)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 1,
                                   .outputs = outputs,
                                   .output_count = 1};
  uint64_t start = stopwatch_ns();
  vyre_code code = vyre_dispatch(pipeline, &desc, &out->st);
  out->run_ns = stopwatch_ns() - start;
  for (uint32_t i = 0; code == VYRE_OK && i < COUNT; i++) {
    out->is_wrong = out->is_wrong || y[i] != steps_of(i);
  }
  return code;
}

static vyre_code try_on(vyre_device *device, device_trial *out) {
  vyre_module *module = NULL;
  vyre_pipeline *first = NULL, *next = NULL;
  vyre_code code =
      vyre_module_parse(text, sizeof text - 1, "trial", (vyre_allocator){0},
                        &module, NULL, &out->st);
  if (code == VYRE_OK) {
    code = compile(device, module, 64, &first, &out->first_ns, &out->st);
  }
  if (code == VYRE_OK) {
    code = compile(device, module, 32, &next, &out->next_ns, &out->st);
  }
  if (code == VYRE_OK) code = run(next, out);
  vyre_pipeline_release(first);
  vyre_pipeline_release(next);
  vyre_module_release(module);
  return code;
}

void device_try(const char *name, device_trial *out) {
  const vyre_context_options options = {.cache_directory = "",
                                        .trace_file = ""};
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  *out = (device_trial){.is_done = true};
  if (vyre_context_create(&options, &context, &out->st) == VYRE_OK &&
      vyre_device_open(context, name, &device, &out->st) == VYRE_OK) {
    (void)!try_on(device, out);
  }
  vyre_device_release(device);
  vyre_context_release(context);
}

bool device_trial_is_good(const device_trial *trial) {
  return trial->st.code == VYRE_OK && !trial->is_wrong;
}

static double ms(uint64_t ns) {
  return (double)ns / 1e6;
}

void put_trial(const device_trial *trial, sink *out) {
  if (!trial->is_done) return;
  if (trial->st.code != VYRE_OK) {
    sink_format(out, "    runs no kernel: %s\n    Fix: %s\n", trial->st.message,
                trial->st.fix);
  } else if (trial->is_wrong) {
    sink_text(out,
              "    ran a kernel with a wrong result\n    Fix: use another "
              "device, and report this one\n");
  } else {
    sink_format(out,
                "    compiled a kernel in %.1f ms, the next in %.1f ms, ran it "
                "in %.2f ms\n",
                ms(trial->first_ns), ms(trial->next_ns), ms(trial->run_ns));
  }
}

void json_trial(json_out *json, const char *key, const device_trial *trial) {
  if (!trial->is_done) return;
  json_open(json, key, '{');
  json_bool(json, "ok", device_trial_is_good(trial));
  if (trial->st.code != VYRE_OK) {
    json_text(json, "error", trial->st.message);
    json_text(json, "fix", trial->st.fix);
  } else {
    json_bool(json, "is_right", !trial->is_wrong);
    json_u64(json, "first_compile_ns", trial->first_ns);
    json_u64(json, "next_compile_ns", trial->next_ns);
    json_u64(json, "run_ns", trial->run_ns);
  }
  json_close(json, '}');
}
