/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/dispatch.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "driver/backend.h"
#include "ir/ir.h"

/* One dispatch on its way to the backend. */
typedef struct job {
  const vyre_pipeline *pipeline;
  const vyre_dispatch_desc *desc;
  vyre_arena arena; /* dies with the call */
  vyre__view *views;
} job;

static vyre_code check_arrays(const char *who, const vyre_dispatch_desc *desc,
                              vyre_status *st) {
  if (!desc->inputs && desc->input_count > 0) {
    return vyre__null_argument(st, who, "desc->inputs");
  }
  if (!desc->outputs && desc->output_count > 0) {
    return vyre__null_argument(st, who, "desc->outputs");
  }
  return VYRE_OK;
}

static vyre_code check_inputs(job *j, vyre_status *st) {
  size_t count = j->desc->input_count;
  vyre_input_extent *extents =
      vyre__arena_array(&j->arena, count, sizeof *extents);
  if (!extents) return vyre__no_memory(st, "vyre_dispatch", "inputs", count);
  for (size_t i = 0; i < count; i++) {
    extents[i] = (vyre_input_extent){.byte_len = j->desc->inputs[i].size};
  }
  return vyre_binding_plan_validate(&j->pipeline->plan, extents, count, st);
}

static vyre_code output_size(const vyre_binding *binding, uint64_t expected,
                             uint64_t received, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", binding->output_index},
                   {"expected_bytes", expected}, {"received_bytes", received}),
      "give the output exactly the bytes of the buffer",
      "output '%.100s' must have %llu bytes, got %llu", binding->name,
      (unsigned long long)expected, (unsigned long long)received);
}

/* The size of one output against its declaration or its input. */
static vyre_code check_output(const job *j, const vyre_binding *binding,
                              vyre_status *st) {
  uint64_t size = j->desc->outputs[binding->output_index].size;
  uint64_t element = binding->element_size > 1 ? binding->element_size : 1;
  if (binding->has_static_byte_len) {
    if (size == binding->static_byte_len) return VYRE_OK;
    return output_size(binding, binding->static_byte_len, size, st);
  }
  if (binding->input_index != VYRE_NO_INDEX) {
    uint64_t expected = j->desc->inputs[binding->input_index].size;
    if (size == expected) return VYRE_OK;
    return output_size(binding, expected, size, st);
  }
  if (size % element) {
    return output_size(binding, size - size % element, size, st);
  }
  if (size / element <= UINT32_MAX) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"output_index", binding->output_index},
                   {"elements", size / element}, {"most_elements", UINT32_MAX}),
      "split the output: a kernel counts elements in 32 bits",
      "output '%.100s' has %llu elements, the most is 4294967295",
      binding->name, (unsigned long long)(size / element));
}

static vyre_code check_outputs(const job *j, vyre_status *st) {
  const vyre_binding_plan *plan = &j->pipeline->plan;
  if (j->desc->output_count != plan->output_count) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"expected_outputs", plan->output_count},
                     {"received_outputs", j->desc->output_count}),
        "pass memory for each output and input_output buffer, in order of "
        "their binding numbers",
        "outputs: the program gives %zu, got memory for %zu",
        plan->output_count, j->desc->output_count);
  }
  for (size_t i = 0; i < plan->binding_count; i++) {
    if (plan->bindings[i].output_index == VYRE_NO_INDEX) continue;
    VYRE_TRY(check_output(j, &plan->bindings[i], st));
  }
  return VYRE_OK;
}

/* Lengths of all buffers, from sizes that are right. */
static vyre_code size_views(job *j, vyre_status *st) {
  const vyre_program *program = j->pipeline->program;
  const vyre_binding_plan *plan = &j->pipeline->plan;
  j->views =
      vyre__arena_array(&j->arena, program->buffer_count, sizeof *j->views);
  if (!j->views) {
    return vyre__no_memory(st, "vyre_dispatch", "views", program->buffer_count);
  }
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    uint64_t size = b->static_byte_len;
    if (b->input_index != VYRE_NO_INDEX) {
      size = j->desc->inputs[b->input_index].size;
    } else if (b->output_index != VYRE_NO_INDEX) {
      size = j->desc->outputs[b->output_index].size;
    }
    uint64_t element = b->element_size > 1 ? b->element_size : 1;
    j->views[b->buffer_index] =
        (vyre__view){.length = (uint32_t)(size / element)};
  }
  return VYRE_OK;
}

static vyre_code check_sizes(job *j, vyre_status *st) {
  VYRE_TRY(check_arrays("vyre_dispatch", j->desc, st));
  VYRE_TRY(check_inputs(j, st));
  VYRE_TRY(check_outputs(j, st));
  return size_views(j, st);
}

/* --- memory ----------------------------------------------------------------- */

/* A stretch of the caller's memory. */
typedef struct span {
  const vyre_binding *binding;
  uintptr_t begin, end;
  bool written;
} span;

static bool in_place(const job *j, const vyre_binding *b) {
  return b->input_index != VYRE_NO_INDEX && b->output_index != VYRE_NO_INDEX &&
         j->desc->inputs[b->input_index].data ==
             j->desc->outputs[b->output_index].data;
}

static vyre_code check_pointer(const vyre_binding *binding, const void *data,
                               size_t size, vyre_status *st) {
  if (data || size == 0) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "point it at the bytes",
                   "the memory for '%.100s' is NULL, with a size of %zu bytes",
                   binding->name, size);
}

static size_t list_spans(const job *j, span *spans) {
  const vyre_binding_plan *plan = &j->pipeline->plan;
  size_t count = 0;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->input_index != VYRE_NO_INDEX && !in_place(j, b)) {
      const vyre_input *input = &j->desc->inputs[b->input_index];
      uintptr_t begin = (uintptr_t)input->data;
      spans[count] = (span){b, begin, begin + input->size, false};
      count += input->size > 0; /* nothing overlaps with no bytes */
    }
    if (b->output_index != VYRE_NO_INDEX) {
      const vyre_output *output = &j->desc->outputs[b->output_index];
      uintptr_t begin = (uintptr_t)output->data;
      spans[count] = (span){b, begin, begin + output->size, true};
      count += output->size > 0;
    }
  }
  return count;
}

static vyre_code check_pointers(const job *j, vyre_status *st) {
  const vyre_binding_plan *plan = &j->pipeline->plan;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->input_index != VYRE_NO_INDEX) {
      const vyre_input *input = &j->desc->inputs[b->input_index];
      VYRE_TRY(check_pointer(b, input->data, input->size, st));
    }
    if (b->output_index != VYRE_NO_INDEX) {
      const vyre_output *output = &j->desc->outputs[b->output_index];
      VYRE_TRY(check_pointer(b, output->data, output->size, st));
    }
  }
  return VYRE_OK;
}

/* Memory that is written may be bound only once. */
static vyre_code check_overlap(job *j, vyre_status *st) {
  size_t most = j->desc->input_count + j->desc->output_count;
  span *spans = vyre__arena_array(&j->arena, most, sizeof *spans);
  if (!spans) return vyre__no_memory(st, "vyre_dispatch", "bindings", most);
  size_t count = list_spans(j, spans);
  for (size_t a = 0; a < count; a++) {
    for (size_t b = 0; b < a; b++) {
      if (!spans[a].written && !spans[b].written) continue;
      if (spans[a].begin >= spans[b].end) continue;
      if (spans[b].begin >= spans[a].end) continue;
      return VYRE_FAIL(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
          "give what is written memory of its own; only an input_output may "
          "use one pointer for both",
          "the memory of '%.100s' and '%.100s' overlaps, and one is written",
          spans[b].binding->name, spans[a].binding->name);
    }
  }
  return VYRE_OK;
}

/* From here on the caller's outputs change. */
static void bind(job *j) {
  const vyre_binding_plan *plan = &j->pipeline->plan;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    const vyre_input *input = b->input_index == VYRE_NO_INDEX
                                  ? NULL
                                  : &j->desc->inputs[b->input_index];
    vyre__view *view = &j->views[b->buffer_index];
    /* Read-only views are never written through. */
    if (input) view->data = (unsigned char *)(uintptr_t)input->data;
    if (b->output_index == VYRE_NO_INDEX) continue;
    const vyre_output *output = &j->desc->outputs[b->output_index];
    view->data = output->data;
    if (output->size == 0 || in_place(j, b)) continue;
    if (input) {
      memcpy(output->data, input->data, output->size);
    } else {
      memset(output->data, 0, output->size);
    }
  }
}

static vyre_code check_report(const vyre_dispatch_desc *desc, vyre_status *st) {
  const vyre_check_options *check = &desc->check;
  bool wanted = check->out_of_bounds || check->races || check->schedules > 0;
  if (wanted && !desc->report) {
    return vyre__null_argument(st, "vyre_dispatch", "desc->report");
  }
  if (desc->report) {
    vyre_check_report *report = desc->report;
    vyre_arena_reset(&report->arena);
    report->findings = NULL;
    report->count = report->capacity = report->dropped = 0;
    report->schedules = 0;
  }
  return VYRE_OK;
}

static vyre_code run(job *j, vyre_pipeline *pipeline, vyre_status *st) {
  const vyre_dispatch_desc *desc = j->desc;
  VYRE_TRY(check_sizes(j, st));
  vyre__launch launch = {.views = j->views,
                         .max_iterations = desc->max_iterations
                                               ? desc->max_iterations
                                               : UINT32_MAX,
                         .timeout_ns = desc->timeout_ns,
                         .print = desc->print,
                         .check = desc->check,
                         .report = desc->report};
  VYRE_TRY(vyre__grid_infer(pipeline, desc->grid, j->views, launch.grid, st));
  VYRE_TRY(check_pointers(j, st));
  VYRE_TRY(check_overlap(j, st));
  VYRE_TRY(check_report(desc, st));
  if (desc->timeout_ns) {
    uint64_t now = vyre__clock_ns();
    launch.deadline_ns = now + desc->timeout_ns;
    if (launch.deadline_ns < now) launch.deadline_ns = UINT64_MAX;
  }
  bind(j);
  return pipeline->device->backend->dispatch(pipeline, &launch, st);
}

vyre_code vyre_dispatch(vyre_pipeline *pipeline, const vyre_dispatch_desc *desc,
                        vyre_status *st) {
  if (!pipeline) return vyre__null_argument(st, "vyre_dispatch", "pipeline");
  if (!desc) return vyre__null_argument(st, "vyre_dispatch", "desc");
  job j = {.pipeline = pipeline, .desc = desc};
  vyre_arena_init(&j.arena, pipeline->device->allocator);
  vyre_code code = run(&j, pipeline, st);
  vyre_arena_finish(&j.arena);
  return code;
}

vyre_code vyre_dispatch_grid(const vyre_pipeline *pipeline,
                             const vyre_dispatch_desc *desc, uint32_t out[3],
                             vyre_status *st) {
  static const char who[] = "vyre_dispatch_grid";
  if (!out) return vyre__null_argument(st, who, "out");
  out[0] = out[1] = out[2] = 0;
  if (!pipeline) return vyre__null_argument(st, who, "pipeline");
  if (!desc) return vyre__null_argument(st, who, "desc");
  job j = {.pipeline = pipeline, .desc = desc};
  vyre_arena_init(&j.arena, pipeline->device->allocator);
  vyre_code code = check_sizes(&j, st);
  if (code == VYRE_OK) {
    code = vyre__grid_infer(pipeline, desc->grid, j.views, out, st);
  }
  vyre_arena_finish(&j.arena);
  return code;
}

void vyre_check_report_finish(vyre_check_report *report) {
  if (!report) return;
  vyre_allocator allocator = report->arena.allocator;
  vyre_arena_finish(&report->arena);
  *report = (vyre_check_report){0};
  report->arena.allocator = allocator;
}

const char *vyre_finding_name(vyre_finding_kind kind) {
#define VYRE_X2(name, text) [name] = (text),
  static const char *const names[] = {VYRE_FINDING_MAP(VYRE_X2)};
#undef VYRE_X2
  return (unsigned)kind < VYRE_FINDING_COUNT ? names[kind] : "?";
}
