/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads on the device "cpu", through the public API only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "cpu/rival.h"
#include "rival.h"

enum { KERNELS = 4, BINDINGS = PUBLIC_BUFFERS + PUBLIC_UNIFORMS };

/* A launch with its bindings. */
typedef struct step {
  vyre_pipeline *pipeline; /* owned by the device */
  vyre_dispatch_desc desc;
  vyre_input inputs[BINDINGS];
  vyre_output outputs[PUBLIC_BUFFERS];
} step;

typedef struct vyre {
  vyre_context *context;
  vyre_device *device;
  vyre_tier tier;
  vyre_module *module;
  const char *names[KERNELS];
  vyre_pipeline *pipelines[KERNELS];
  int pipeline_count;
  step *steps;
  int step_count;
} vyre;

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code == VYRE_OK) return;
  char text[sizeof st->message + sizeof st->fix + 8];
  (void)snprintf(text, sizeof text, "%s Fix: %s", st->message, st->fix);
  bench_fail(what, text);
}

static vyre_pipeline *find_pipeline(vyre *v, const char *kernel) {
  for (int i = 0; i < v->pipeline_count; i++) {
    if (!kernel || strcmp(v->names[i], kernel) == 0) return v->pipelines[i];
  }
  vyre_status st = {0};
  int at = v->pipeline_count++;
  if (at == KERNELS) bench_fail("module", "the workload has too many kernels");
  vyre_program *program = kernel ? vyre_module_find(v->module, kernel)
                                 : vyre_module_kernel(v->module, 0);
  if (!program)
    bench_fail(kernel ? kernel : "module", "the file has no such kernel");
  const vyre_compile_options options = {.tier = v->tier};
  must(vyre_pipeline_compile(v->device, program, &options, &v->pipelines[at],
                             NULL, &st),
       &st, vyre_program_name(program));
  v->names[at] = kernel;
  return v->pipelines[at];
}

static void bind_launch(vyre *v, step *s, public_workload *w,
                        public_launch *launch) {
  int buffer = 0, uniform = 0;
  s->pipeline = find_pipeline(v, launch->kernel);
  const vyre_binding_plan *plan = vyre_pipeline_bindings(s->pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->role == VYRE_ROLE_SHARED) continue;
    if (b->role == VYRE_ROLE_UNIFORM) {
      s->inputs[b->input_index] =
          vyre_input_bytes(&launch->uniforms[uniform++], 4);
      continue;
    }
    const public_buffer *bound = &w->buffers[launch->buffers[buffer++]];
    if (b->input_index != VYRE_NO_INDEX) {
      s->inputs[b->input_index] = vyre_input_bytes(bound->data, bound->size);
    }
    if (b->output_index != VYRE_NO_INDEX) {
      s->outputs[b->output_index] = vyre_output_bytes(bound->data, bound->size);
    }
  }
  s->desc = (vyre_dispatch_desc){
      .inputs = s->inputs,
      .input_count = plan->input_count,
      .outputs = s->outputs,
      .output_count = plan->output_count,
      .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
      .is_borrowed = true,
      .require_zero_copy = true};
}

static void bind(void *self, public_workload *w) {
  vyre *v = self;
  vyre_status st = {0};
  char *text = cpu_text(w->file, "vyre");
  must(vyre_module_parse(text, strlen(text), w->file, vyre_allocator_heap(),
                         &v->module, NULL, &st),
       &st, w->file);
  free(text);
  v->step_count = w->launch_count;
  v->steps = calloc((size_t)w->launch_count, sizeof *v->steps);
  if (!v->steps) bench_fail(w->name, "out of memory");
  for (int i = 0; i < w->launch_count; i++) {
    bind_launch(v, &v->steps[i], w, &w->launches[i]);
  }
}

static void launch(void *self) {
  vyre *v = self;
  vyre_status st;
  st.code = VYRE_OK;
  for (int i = 0; i < v->step_count; i++) {
    must(vyre_dispatch(v->steps[i].pipeline, &v->steps[i].desc, &st), &st,
         "dispatch");
  }
}

static void unbind(void *self) {
  vyre *v = self;
  for (int i = 0; i < v->pipeline_count; i++) {
    vyre_pipeline_release(v->pipelines[i]);
  }
  vyre_module_release(v->module);
  free(v->steps);
  v->module = NULL;
  v->steps = NULL;
  v->pipeline_count = v->step_count = 0;
}

public_rival public_vyre_open(const char *name, const char *options,
                              vyre_status *st) {
  vyre *v = calloc(1, sizeof *v);
  public_rival made = {name, v, bind, launch, unbind};
  if (!v) bench_fail(name, "out of memory");
  vyre_context_options with = {.cache_directory = "",
                               .trace_file = "",
                               .faults = "",
                               .backend_options = options};
  v->tier = VYRE_TIER_OPTIMISED;
  must(vyre_context_create(&with, &v->context, st), st, "context");
  if (vyre_device_open(v->context, "cpu", &v->device, st) != VYRE_OK) {
    public_vyre_close(&made);
  }
  return made;
}

void public_vyre_set_tier(const public_rival *rival, int tier) {
  ((vyre *)rival->self)->tier = (vyre_tier)tier;
}

void public_vyre_close(public_rival *rival) {
  vyre *v = rival->self;
  if (!v) return;
  vyre_device_release(v->device);
  vyre_context_release(v->context);
  free(v);
  rival->self = NULL;
}

public_code public_vyre_code(const public_rival *rival) {
  const vyre *v = rival->self;
  vyre_pipeline_resources resources;
  public_code code = {0};
  for (int i = 0; i < v->pipeline_count; i++) {
    if (!vyre_pipeline_get_resources(v->pipelines[i], &resources)) continue;
    code.width = resources.width;
    code.kernels++;
    code.is_baseline |= resources.is_baseline;
  }
  return code;
}
