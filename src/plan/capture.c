/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "plan/capture.h"

#include "base/checked_math.h"
#include "base/print.h"
#include "base/status.h"

vyre_code vyre__capture_count(size_t *capacity, const char *label,
                              vyre_status *st) {
  if (vyre__add(*capacity, 1, capacity)) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM, label, NULL,
      "record a smaller graph shape with fewer bindings per dispatch",
      "graph capture binding plan: the %s would need %zu + 1 "
      "entries, more than can be counted",
      label, *capacity);
}

static vyre_code count_binding(const vyre_binding *binding,
                               vyre_capture_plan *plan, vyre_status *st) {
  bool in = binding->input_index != VYRE_NO_INDEX;
  bool out = binding->output_index != VYRE_NO_INDEX;
  VYRE_TRY(vyre__capture_count(&plan->kernel_pointer_capacity,
                               "kernel pointer table", st));
  if (in) {
    VYRE_TRY(vyre__capture_count(&plan->input_device_capacity,
                                 "input device table", st));
  } else {
    VYRE_TRY(vyre__capture_count(&plan->output_device_capacity,
                                 "output device table", st));
  }
  if (out) {
    VYRE_TRY(vyre__capture_count(&plan->output_readback_capacity,
                                 "output readback table", st));
  }
  /* Each replay starts from the result of the previous one. */
  if (in && out) plan->resident_input_replay_safe = false;
  return VYRE_OK;
}

vyre_code vyre_capture_plan_build(const vyre_binding_plan *bindings,
                                  vyre_capture_plan *out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, bindings);
  VYRE_REQUIRE_ARRAY(st, bindings->bindings, bindings->binding_count);
  vyre_capture_plan plan = {.resident_input_replay_safe = true};
  for (size_t i = 0; i < bindings->binding_count; i++) {
    const vyre_binding *binding = &bindings->bindings[i];
    if (binding->role == VYRE_ROLE_SHARED) continue;
    VYRE_TRY(count_binding(binding, &plan, st));
  }
  plan.kernel_argument_capacity = plan.kernel_pointer_capacity;
  VYRE_TRY(vyre__capture_count(&plan.kernel_argument_capacity,
                               "kernel argument table", st));
  *out = plan;
  return VYRE_OK;
}

bool vyre_capture_plan_print(const vyre_capture_plan *plan,
                             vyre_writer writer) {
  if (!plan) return false;
  vyre__printer out = vyre__printer_make(writer);
  vyre__print(&out, "capture\n");
  vyre__print_figure(&out, "input_device_capacity", plan->input_device_capacity,
                     "buffers");
  vyre__print_figure(&out, "output_device_capacity",
                     plan->output_device_capacity, "buffers");
  vyre__print_figure(&out, "output_readback_capacity",
                     plan->output_readback_capacity, "buffers");
  vyre__print_figure(&out, "kernel_pointer_capacity",
                     plan->kernel_pointer_capacity, "pointers");
  vyre__print_figure(&out, "kernel_argument_capacity",
                     plan->kernel_argument_capacity, "arguments");
  vyre__print_word(&out, "resident_input_replay_safe",
                   plan->resident_input_replay_safe ? "yes" : "no");
  return out.ok;
}
