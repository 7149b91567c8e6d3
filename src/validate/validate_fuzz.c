/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzzes validation: text that parses and validates runs on the reference
 * backend. It may exhaust fuel or time, or be of a kind that no device runs
 * yet; nothing else may fail. Its inlined form must validate as well. Every
 * rejection must have a fix. */
#include <stdlib.h>
#include <string.h>

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/module.h"
#include "vyre/pipeline.h"
#include "vyre/validate.h"

#include "analyze/inline/inline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BINDINGS = 16, MAX_BYTES = 1 << 16 };

static void require(bool condition) {
  if (!condition) abort();
}

static void require_fixes(const vyre_diagnostics *found,
                          const vyre_status *st) {
  require(st->message[0] && st->fix[0]);
  for (size_t i = 0; i < found->count; i++) {
    require(found->items[i].message[0] && found->items[i].fix[0]);
    require(found->items[i].rule[0] == 0 ||
            vyre_rule_find(found->items[i].rule) != NULL);
  }
}

/* Returns the bytes to bind: the declared size, or a few; 0 if that is too
 * much here. */
static size_t bytes_of(const vyre_binding *binding) {
  size_t element = binding->element_size ? binding->element_size : 1;
  if (!binding->has_static_byte_len) return element * 7;
  return binding->static_byte_len > MAX_BYTES
             ? 0
             : (size_t)binding->static_byte_len;
}

static void children(vyre_pipeline *pipeline) {
  static uint8_t input[MAX_BYTES], output[MAX_BINDINGS][MAX_BYTES];
  const vyre_binding_plan *plan = vyre_pipeline_bindings(pipeline);
  vyre_input inputs[MAX_BINDINGS];
  vyre_output outputs[MAX_BINDINGS];
  if (plan->binding_count > MAX_BINDINGS) return;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    size_t bytes = bytes_of(b);
    if (b->role != VYRE_ROLE_SHARED && bytes == 0) return;
    if (b->input_index != VYRE_NO_INDEX) {
      inputs[b->input_index] = (vyre_input){input, bytes};
    }
    if (b->output_index != VYRE_NO_INDEX) {
      outputs[b->output_index] = (vyre_output){output[i], bytes};
    }
  }
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = plan->input_count,
                             .outputs = outputs,
                             .output_count = plan->output_count,
                             .grid = {2, 1, 1},
                             .max_loop_iterations = 50,
                             .timeout_ns = 50000000};
  vyre_status st = {0};
  vyre_code code = vyre_dispatch(pipeline, &desc, &st);
  require(code == VYRE_OK || code == VYRE_DISPATCH_FAILED);
  require(code == VYRE_OK || st.fix[0]);
}

/* Discards the output of print statements, which may be large. */
static void compile_and_run(vyre_program *program) {
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  require(vyre_device_open(NULL, "ref", &device, &st) == VYRE_OK);
  vyre_code code =
      vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, &st);
  require(code == VYRE_OK || (code == VYRE_UNSUPPORTED_FEATURE && st.fix[0]));
  if (code == VYRE_OK) children(pipeline);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
}

static void check_kernel(vyre_program *program) {
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  vyre_program *flat = NULL;
  if (vyre_program_validate(program, &found, &st) == VYRE_OK) {
    require(found.count == 0);
    compile_and_run(program);
    require(vyre__inline(program, (vyre_allocator){0}, &flat, &st) == VYRE_OK);
    require(flat->function_count == 1);
    vyre_program_release(flat);
  } else {
    require(found.count > 0);
    require_fixes(&found, &st);
  }
  vyre_diagnostics_deinit(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  vyre_module *module = NULL;
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  vyre_code code = vyre_module_parse((const char *)data, size, "fuzz.vyre",
                                     (vyre_allocator){0}, &module, &found, &st);
  if (code != VYRE_OK) require_fixes(&found, &st);
  size_t count = code == VYRE_OK ? vyre_module_kernel_count(module) : 0;
  for (size_t i = 0; i < count; i++) {
    check_kernel(vyre_module_kernel(module, i));
  }
  vyre_diagnostics_deinit(&found);
  vyre_module_release(module);
  return 0;
}
