/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "plan/plan_json.h"

#include <string.h>

#include "vyre/binary.h"
#include "vyre/module.h"

#include "cli/output.h"

json_out json_begin(sink *out) {
  json_out json = {.out = out};
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", true);
  return json;
}

void json_end(json_out *json) {
  json_close(json, '}');
  sink_text(json->out, "\n");
}

void json_queue_fields(json_out *json, const vyre_queue_plan *plan) {
  json_u64(json, "queue_bytes", plan->queue_bytes);
  json_u64(json, "control_bytes", plan->control_bytes);
  json_u64(json, "resident_bytes", plan->resident_bytes);
  json_u64(json, "initial_occupancy_bps", plan->initial_occupancy_bps);
  json_bool(json, "final_only_host_sync", plan->final_only_host_sync);
}

void json_placement_fields(json_out *json, const vyre_placement_plan *plan) {
  json_u64(json, "placed_bytes", plan->placed_bytes);
  json_u64(json, "lower_bound_bytes", plan->lower_bound_bytes);
  json_u64(json, "gap_bytes", plan->gap_bytes);
  json_bool(json, "optimal", plan->is_optimal);
  json_text(json, "method", vyre_placement_method_name(plan->method));
  json_u64(json, "search_nodes", plan->search_nodes);
}

bool check_drawing(const char *svg_path, const char *source, problem *wrong) {
  if (!svg_path || strcmp(svg_path, "-") != 0) {
    return is_other_file("--svg", svg_path, source, wrong);
  }
  return problem_set(wrong, KIND_USAGE, "name a file, such as plan.svg",
                     "--svg -: standard output carries the answer");
}

static bool is_kernel_file(const input *in) {
  vyre_status st = {0};
  vyre_module *module = NULL;
  bool is_kernel =
      vyre_program_is_binary(in->text, in->length) ||
      (vyre_module_parse(in->text, in->length, in->label, vyre_allocator_heap(),
                         &module, NULL, &st) == VYRE_OK &&
       vyre_module_kernel_count(module) > 0);
  vyre_module_release(module);
  return is_kernel;
}

bool explain_kernel(const input *in, const char *name, problem *wrong) {
  if (!is_kernel_file(in)) return false;
  *wrong = (problem){.file = in->label};
  problem_set(wrong, KIND_INPUT, "",
              "this is a kernel, which `vyre plan %s` does not take", name);
  problem_fix(wrong, "run `vyre plan bindings` for a kernel");
  return false;
}

int finish_plan(const vyre_status *st, sink *out, const char *svg_path,
                sink *svg, bool json) {
  if (st->code == VYRE_OK) return publish(out, svg_path, svg, json);
  problem wrong = {0};
  problem_from_status(&wrong, st);
  sink_deinit(out);
  if (svg) sink_deinit(svg);
  return problem_report(&wrong, json);
}
