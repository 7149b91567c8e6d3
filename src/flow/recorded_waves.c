/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Wave graphs as steps of recordings. */
#include "vyre/recording.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "flow/wave_internal.h"
#include "runtime/core/device.h"
#include "runtime/recording/step.h"

/* A recorded graph. Its ranges are the inputs, the outputs, then the external
 * resources; `resources` has the number of each. */
typedef struct recorded_waves {
  vyre__step step;        /* first member: the step is the object */
  vyre_wave_graph *graph; /* retained */
  size_t inputs, outputs, externals;
  vyre_wave_result *result;
  uint32_t *resources;
  vyre__step_range ranges[];
} recorded_waves;

/* --- adding ---------------------------------------------------------------- */

static bool has_role(const vyre__wave_resource *resource,
                     vyre__step_place place, bool is_output) {
  if (place == VYRE__STEP_DEVICE) return resource->is_external;
  return is_output ? resource->is_output : resource->is_input;
}

static vyre_code wrong_resource(const vyre_wave_graph *graph, const char *role,
                                uint32_t resource, uint64_t given,
                                vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"resource", resource}, {"ranges", given},
                   {"resources", graph->resource_count}),
      "give exactly one range to each input, output and external resource of "
      "the "
      "graph, and none to other resources",
      "resource '%s' (number %u of %llu) has %llu ranges as %s",
      vyre__wave_resource_name(graph, resource), resource,
      (unsigned long long)graph->resource_count, (unsigned long long)given,
      role);
}

/* Adds the ranges of one list, which names every resource with its role
 * once. */
static vyre_code add_list(recorded_waves *r, const vyre_recorded_wave_io *list,
                          size_t count, vyre__step_place place, bool is_output,
                          const char *role, vyre_status *st) {
  const vyre_wave_graph *graph = r->graph;
  for (size_t i = 0; i < count; i++) {
    if (list[i].resource >= graph->resource_count)
      return wrong_resource(graph, role, list[i].resource, 1, st);
  }
  for (uint32_t k = 0; k < graph->resource_count; k++) {
    const vyre__wave_resource *resource = &graph->resources[k];
    uint64_t given = 0;
    for (size_t i = 0; i < count; i++) {
      if (list[i].resource != k) continue;
      given++;
      r->resources[r->step.range_count] = k;
      r->ranges[r->step.range_count++] = (vyre__step_range){
          .range = list[i].range,
          .name = resource->name,
          .bytes = resource->size,
          .element = 1,
          .place = place,
          .is_written = place == VYRE__STEP_DEVICE ? vyre__wave_writes(graph, k)
                                                   : is_output,
          .output = VYRE_NO_SLOT};
      if (given > 1) break;
    }
    if (given != has_role(resource, place, is_output))
      return wrong_resource(graph, role, k, given, st);
  }
  return VYRE_OK;
}

/* --- running --------------------------------------------------------------- */

static vyre_code check(vyre__step *step, const vyre__step_memory *memory,
                       vyre_status *st) {
  (void)step;
  (void)memory;
  (void)st;
  return VYRE_OK; /* the ranges have all conditions */
}

/* Fills in the lists of a run, in one block. */
static void fill_lists(const recorded_waves *r, const vyre__step_memory *memory,
                       vyre_wave_input *inputs, vyre_wave_run *run) {
  vyre_wave_output *outputs = (vyre_wave_output *)(void *)(inputs + r->inputs);
  vyre_wave_external *externals =
      (vyre_wave_external *)(void *)(outputs + r->outputs);
  const uint32_t *resource = r->resources;
  for (size_t i = 0; i < r->inputs; i++, memory++)
    inputs[i] =
        (vyre_wave_input){*resource++, memory->data, (size_t)memory->size};
  for (size_t i = 0; i < r->outputs; i++, memory++)
    outputs[i] =
        (vyre_wave_output){*resource++, memory->data, (size_t)memory->size};
  for (size_t i = 0; i < r->externals; i++, memory++)
    externals[i] =
        (vyre_wave_external){*resource++, memory->handle, memory->offset};
  run->inputs = inputs;
  run->input_count = r->inputs;
  run->outputs = outputs;
  run->output_count = r->outputs;
  run->externals = externals;
  run->external_count = r->externals;
}

static vyre_code run(vyre__step *step, const vyre__step_memory *memory,
                     vyre__step_limit limit, vyre_replay_result *result,
                     vyre_status *st) {
  const recorded_waves *r = (recorded_waves *)step;
  const vyre_allocator allocator = step->device->allocator;
  const size_t bytes = (r->inputs + 1) * sizeof(vyre_wave_input) +
                       r->outputs * sizeof(vyre_wave_output) +
                       r->externals * sizeof(vyre_wave_external);
  vyre_wave_input *lists = vyre__resize(allocator, NULL, 0, bytes);
  if (!lists)
    return vyre__no_memory(st, "vyre_recording_replay", "resources",
                           step->range_count);
  vyre_wave_run one = {.result = r->result};
  fill_lists(r, memory, lists, &one);
  if (limit.deadline_ns) {
    const uint64_t now = vyre__clock_ns();
    one.timeout_ns = now < limit.deadline_ns ? limit.deadline_ns - now : 1;
  }
  vyre_code code = vyre__wave_run(r->graph, &one, st);
  vyre__resize(allocator, lists, bytes, 0);
  if (code == VYRE_OK) result->wave_graphs++;
  return code;
}

static void print(const vyre__step *step, vyre__printer *out) {
  const vyre_wave_graph *graph = ((const recorded_waves *)step)->graph;
  const vyre_wave_plan *plan = &graph->plan;
  vyre__print(out,
              "wave graph: %zu waves in %zu groups, %llu barriers, %llu bytes",
              graph->wave_count, plan->frontier.barriers.group_count,
              (unsigned long long)plan->barriers,
              (unsigned long long)plan->placement.placed_bytes);
  if (graph->loop.is_set)
    vyre__print(out, ", at most %llu iterations",
                (unsigned long long)graph->loop.max_iterations);
  vyre__print(out, ",");
}

static void deinit(vyre__step *step) {
  vyre_wave_graph_release(((recorded_waves *)step)->graph);
}

static vyre_code add_lists(recorded_waves *r, const vyre_recorded_wave_graph *d,
                           vyre_status *st) {
  VYRE_TRY(add_list(r, d->inputs, d->input_count, VYRE__STEP_HOST, false,
                    "input", st));
  VYRE_TRY(add_list(r, d->outputs, d->output_count, VYRE__STEP_HOST, true,
                    "output", st));
  return add_list(r, d->externals, d->external_count, VYRE__STEP_DEVICE, false,
                  "external resource", st);
}

vyre_code vyre_recording_add_wave_graph(vyre_recording *recording,
                                        vyre_wave_graph *graph,
                                        const vyre_recorded_wave_graph *d,
                                        vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, recording);
  VYRE_REQUIRE_BOTH(st, graph, d);
  VYRE_CHECK_RESERVED(st, __func__, d);
  VYRE_REQUIRE_ARRAY(st, d->inputs, d->input_count);
  VYRE_REQUIRE_ARRAY(st, d->outputs, d->output_count);
  VYRE_REQUIRE_ARRAY(st, d->externals, d->external_count);
  VYRE_TRY(vyre__wave_check_sealed(graph, st));
  /* A list that names a resource twice is refused at its second range. */
  const size_t most = 6 * graph->resource_count;
  const size_t size = sizeof(recorded_waves) +
                      most * (sizeof(vyre__step_range) + sizeof(uint32_t));
  recorded_waves *r = vyre__alloc_zeroed(graph->device->allocator, size);
  if (!r) return vyre__no_memory(st, __func__, "slot ranges", most);
  atomic_init(&r->step.references, 1);
  r->step.device = graph->device;
  r->step.size = size;
  r->step.check = check;
  r->step.run = run;
  r->step.print = print;
  r->step.ranges = r->ranges;
  r->graph = graph;
  r->resources = (uint32_t *)(void *)(r->ranges + most);
  r->inputs = d->input_count;
  r->outputs = d->output_count;
  r->externals = d->external_count;
  r->result = d->result;
  vyre_code code = add_lists(r, d, st);
  if (code == VYRE_OK)
    code = vyre__recording_add_step(recording, __func__, &r->step, st);
  if (code != VYRE_OK) {
    vyre__step_release(&r->step);
    return code;
  }
  (void)vyre_wave_graph_retain(graph);
  r->step.deinit = deinit;
  return VYRE_OK;
}
