/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes a wave graph of a flow file: kernels, data, and the graph on a
 * device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "commands/flow/flow.h"
#include "io/element_text.h"

/* --- kernels -----------------------------------------------------------------*/

/* Returns the path of a kernel file: relative to the flow file. */
static const char *path_of(flow_state *s, const char *path, problem *wrong) {
  const char *slash = strrchr(s->file, '/');
  if (path[0] == '/' || !slash) return path;
  size_t folder = (size_t)(slash - s->file) + 1, length = strlen(path);
  char *joined = vyre_arena_alloc(&s->arena, folder + length + 1, 1);
  if (!joined) {
    problem_no_memory(wrong, "the path of a kernel file");
    return NULL;
  }
  memcpy(joined, s->file, folder);
  memcpy(joined + folder, path, length + 1);
  return joined;
}

/* Describes the first diagnostic of a file as a problem. */
static bool from_findings(const kernel_file *file, problem *wrong) {
  if (wrong->kind) return false;
  const vyre_diagnostic *d = file->findings.items;
  problem_set(wrong, KIND_INPUT, d->fix ? d->fix : "correct the kernel", "%s",
              d->message);
  wrong->file = file->in.label;
  wrong->line = d->line;
  wrong->column = d->column;
  return false;
}

static bool read_files(flow_state *s, problem *wrong) {
  if (s->flow.kernel_count > FLOW_MAX_FILES) {
    problem_set(wrong, KIND_INPUT, "put several kernels into one file",
                "the file names %zu kernel files; the maximum is %d",
                s->flow.kernel_count, FLOW_MAX_FILES);
    problem_at(wrong, &s->in, s->flow.kernel_at[FLOW_MAX_FILES]);
    return false;
  }
  for (size_t i = 0; i < s->flow.kernel_count; i++) {
    const char *path = path_of(s, s->flow.kernels[i], wrong);
    kernel_file *file = &s->kernels[s->kernel_count++];
    if (!path) return false;
    if (!kernel_file_read(path, file, wrong)) return from_findings(file, wrong);
    if (!kernel_file_has_any(file, wrong)) return false;
  }
  return true;
}

static bool unknown_kernel(const flow_state *s, const flow_wave *wave,
                           problem *wrong) {
  problem_set(wrong, KIND_INPUT,
              s->kernel_count == 0
                  ? "add a line such as 'kernels steps.vyre'"
                  : "use the name of a kernel in one of the files",
              "no kernel is called '%s' in the %zu kernel files that the flow "
              "file names",
              wave->kernel, s->kernel_count);
  problem_at(wrong, &s->in, wave->at);
  return false;
}

bool flow_load_kernels(flow_state *s, problem *wrong) {
  s->programs = vyre_arena_alloc(
      &s->arena, s->flow.wave_count * sizeof(vyre_program *), 8);
  if (!s->programs) return problem_no_memory(wrong, "the waves");
  if (!read_files(s, wrong)) return false;
  for (size_t w = 0; w < s->flow.wave_count; w++) {
    const flow_wave *wave = &s->flow.waves[w];
    s->programs[w] = NULL;
    for (size_t f = 0; f < s->kernel_count && !s->programs[w]; f++) {
      for (size_t k = 0; k < kernel_file_count(&s->kernels[f]); k++) {
        vyre_program *program = kernel_file_at(&s->kernels[f], k);
        if (strcmp(vyre_program_name(program), wave->kernel) != 0) continue;
        s->programs[w] = program;
        break;
      }
    }
    if (!s->programs[w]) return unknown_kernel(s, wave, wrong);
  }
  return true;
}

/* --- data --------------------------------------------------------------------*/

/* Returns the data that the command line or the file gives to an input, or
 * NULL. */
static const char *spec_of(const flow_state *s, const flow_resource *r) {
  size_t length = strlen(r->name);
  for (size_t i = s->sets.list.count; i-- > 0;) {
    const char *text = word_at(&s->sets, i);
    if (strncmp(text, r->name, length) == 0 && text[length] == '=')
      return text + length + 1;
  }
  return r->spec;
}

/* Checks that every word NAME=VALUE of a flag names a resource with a role. */
static bool check_words(const flow_state *s, const word_list *words,
                        const char *flag_name, bool is_input, problem *wrong) {
  for (size_t i = 0; i < words->list.count; i++) {
    const char *text = word_at(words, i), *equals = strchr(text, '=');
    bool is_known = false;
    for (size_t r = 0; equals && r < s->flow.resource_count; r++) {
      const flow_resource *resource = &s->flow.resources[r];
      size_t length = (size_t)(equals - text);
      bool has_role = is_input ? resource->is_input : resource->is_output;
      is_known |= has_role && strlen(resource->name) == length &&
                  memcmp(resource->name, text, length) == 0;
    }
    if (is_known) continue;
    char shown[60];
    show_into(shown, sizeof shown, text, strlen(text));
    return problem_set(wrong, KIND_USAGE,
                       is_input ? "name an input of the flow file, as in --set "
                                  "x=iota:100"
                                : "name an output of the flow file, as in "
                                  "--out y=y.npy",
                       "%s %s does not name an %s", flag_name, shown,
                       is_input ? "input" : "output");
  }
  return true;
}

static bool read_data(flow_state *s, const flow_resource *r, buffer_data *out,
                      problem *wrong) {
  const vyre_buffer_decl decl = {
      .name = r->name,
      .access = VYRE_ACCESS_READ,
      .element = r->element,
      .count = r->count <= UINT32_MAX ? (uint32_t)r->count : 0};
  const char *spec = spec_of(s, r);
  if (!spec) {
    char fix[200];
    (void)snprintf(fix, sizeof fix, "pass --set %s=SPEC", r->name);
    problem_set(wrong, KIND_INPUT, "", "input '%s' has no data", r->name);
    problem_fix(wrong, "%s, or write 'input SPEC' in the file", fix);
    problem_at(wrong, &s->in, r->at);
    return false;
  }
  if (data_read(spec, &decl, &s->arena, out, wrong) && out->count == r->count) {
    return true;
  }
  problem_set(wrong, KIND_INPUT, "give exactly the elements of the resource",
              "input '%s' has %llu elements, but its data has %llu", r->name,
              (unsigned long long)r->count, (unsigned long long)out->count);
  if (!wrong->line) problem_at(wrong, &s->in, r->at);
  return false;
}

bool flow_load_data(flow_state *s, problem *wrong) {
  size_t count = s->flow.resource_count;
  s->data = vyre_arena_alloc(&s->arena, (count + 1) * sizeof *s->data, 8);
  s->outputs = vyre_arena_alloc(&s->arena, (count + 1) * sizeof *s->outputs, 8);
  if (!s->data || !s->outputs) return problem_no_memory(wrong, "the data");
  memset(s->data, 0, (count + 1) * sizeof *s->data);
  memset(s->outputs, 0, (count + 1) * sizeof *s->outputs);
  if (!check_words(s, &s->sets, "--set", true, wrong) ||
      !check_words(s, &s->outs, "--out", false, wrong)) {
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    const flow_resource *r = &s->flow.resources[i];
    if (r->is_input && !read_data(s, r, &s->data[i], wrong)) return false;
    if (!r->is_output) continue;
    s->outputs[i] = vyre_arena_alloc(&s->arena, (size_t)r->size, 64);
    if (!s->outputs[i]) return problem_no_memory(wrong, r->name);
  }
  return true;
}

/* --- the graph ---------------------------------------------------------------*/

/* Fails at a position of the flow file with a status of the library. */
static bool fail_at(const flow_state *s, size_t at, const vyre_status *st,
                    problem *wrong) {
  bool is_device =
      st->code == VYRE_OUT_OF_MEMORY || st->code == VYRE_DEVICE_OUT_OF_MEMORY;
  problem_from_status(wrong, st);
  if (!is_device) problem_at(wrong, &s->in, at);
  return false;
}

/* Returns the buffers of a kernel that are not shared, in order of their
 * binding numbers. Returns their number. */
static size_t buffers_of(const vyre_program *program,
                         const vyre_buffer_decl *out[64]) {
  size_t count, found = 0;
  const vyre_buffer_decl *all = vyre_program_buffers(program, &count);
  for (size_t i = 0; i < count && found < 64; i++) {
    if (all[i].kind == VYRE_MEMORY_SHARED ||
        all[i].access == VYRE_ACCESS_WORKGROUP) {
      continue;
    }
    size_t at = found++;
    for (; at > 0 && out[at - 1]->binding > all[i].binding; at--)
      out[at] = out[at - 1];
    out[at] = &all[i];
  }
  return found;
}

static bool wrong_count(const flow_state *s, const flow_wave *wave,
                        size_t expected, problem *wrong) {
  problem_set(wrong, KIND_INPUT,
              "write one argument for each buffer and uniform, in order of "
              "their binding numbers",
              "kernel '%s' has %zu buffers and uniforms, but the wave has %zu "
              "arguments",
              wave->kernel, expected, wave->argument_count);
  problem_at(wrong, &s->in, wave->at);
  return false;
}

static bool bind_range(const flow_state *s, const flow_wave *wave,
                       const flow_argument *a, const vyre_buffer_decl *buffer,
                       vyre_wave_binding *out, problem *wrong) {
  static const char *const names[] = {
#define X(name, text, bytes) text,
      VYRE_ELEMENT_MAP(X)
#undef X
  };
  const flow_resource *r = &s->flow.resources[a->resource];
  size_t size = element_bytes(r->element);
  if (buffer->element != r->element && buffer->element != VYRE_ELEMENT_BYTES) {
    problem_set(wrong, KIND_INPUT, "use a resource of the type of the buffer",
                "buffer '%s' of kernel '%s' has elements %s, but resource '%s' "
                "has %s",
                buffer->name, wave->kernel, names[buffer->element], r->name,
                names[r->element]);
    problem_at(wrong, &s->in, a->at);
    return false;
  }
  *out = (vyre_wave_binding){.resource = a->resource,
                             .offset = a->first * size,
                             .size = a->count * size};
  return true;
}

static bool bind_constant(const flow_state *s, const flow_wave *wave,
                          const flow_argument *a,
                          const vyre_buffer_decl *buffer,
                          unsigned char bytes[LARGEST_ELEMENT],
                          vyre_wave_binding *out, problem *wrong) {
  if (!element_parse(buffer->element, a->constant, strlen(a->constant),
                     bytes)) {
    char shown[60];
    show_into(shown, sizeof shown, a->constant, strlen(a->constant));
    problem_set(wrong, KIND_INPUT,
                "write a value of that type, or the name of a resource",
                "'%s' is not a value for '%s' of kernel '%s'", shown,
                buffer->name, wave->kernel);
    problem_at(wrong, &s->in, a->at);
    return false;
  }
  *out = (vyre_wave_binding){.data = bytes,
                             .size = element_bytes(buffer->element)};
  return true;
}

static bool add_wave(const flow_state *s, const flow_job *job, size_t index,
                     problem *wrong) {
  const flow_wave *wave = &s->flow.waves[index];
  const vyre_buffer_decl *buffers[64];
  vyre_wave_binding bindings[64] = {{0}};
  unsigned char constants[64][LARGEST_ELEMENT];
  size_t count = buffers_of(s->programs[index], buffers);
  if (wave->argument_count != count) return wrong_count(s, wave, count, wrong);
  for (size_t i = 0; i < count; i++) {
    const flow_argument *a = &wave->arguments[i];
    bool is_fine =
        a->constant ? bind_constant(s, wave, a, buffers[i], constants[i],
                                    &bindings[i], wrong)
                    : bind_range(s, wave, a, buffers[i], &bindings[i], wrong);
    if (!is_fine) return false;
  }
  vyre_wave_desc desc = {
      .bindings = bindings, .binding_count = count, .label = wave->label};
  memcpy(desc.grid, wave->grid, sizeof desc.grid);
  vyre_status st = {0};
  uint32_t number;
  if (vyre_wave_graph_add_wave(job->graph, job->pipelines[index], &desc,
                               &number, &st) == VYRE_OK) {
    return true;
  }
  return fail_at(s, wave->at, &st, wrong);
}

static bool compile(flow_state *s, flow_job *job, problem *wrong) {
  size_t size = s->flow.wave_count * sizeof(vyre_pipeline *);
  job->pipelines = vyre_arena_alloc(&s->arena, size, 8);
  if (!job->pipelines) return problem_no_memory(wrong, "the waves");
  memset(job->pipelines, 0, size);
  for (size_t i = 0; i < s->flow.wave_count; i++) {
    const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
    vyre_status st = {0};
    if (i > 0 && s->programs[i] == s->programs[i - 1]) {
      job->pipelines[i] = vyre_pipeline_retain(job->pipelines[i - 1]);
    } else if (vyre_pipeline_compile(job->device, s->programs[i], &options,
                                     &job->pipelines[i], NULL,
                                     &st) != VYRE_OK) {
      job->pipelines[i] = NULL;
      return problem_from_status(wrong, &st);
    }
  }
  return true;
}

static bool add_resources(const flow_state *s, const flow_job *job,
                          problem *wrong) {
  for (size_t i = 0; i < s->flow.resource_count; i++) {
    const flow_resource *r = &s->flow.resources[i];
    const vyre_wave_resource desc = {.name = r->name,
                                     .size = r->size,
                                     .is_input = r->is_input,
                                     .is_output = r->is_output,
                                     .is_kept = r->is_kept};
    vyre_status st = {0};
    uint32_t id;
    if (vyre_wave_graph_add_resource(job->graph, &desc, &id, &st) != VYRE_OK)
      return fail_at(s, r->at, &st, wrong);
  }
  return true;
}

static bool add_orders(const flow_state *s, const flow_job *job,
                       problem *wrong) {
  vyre_status st = {0};
  for (size_t i = 0; i < s->flow.order_count; i++) {
    const flow_order *o = &s->flow.orders[i];
    if (vyre_wave_graph_add_dependency(job->graph, o->before, o->after, &st) !=
        VYRE_OK) {
      return problem_from_status(wrong, &st);
    }
  }
  if (s->flow.repeats &&
      vyre_wave_graph_repeat(job->graph, s->flow.flag, s->flow.flag_offset,
                             s->flow.max_iterations, 0, &st) != VYRE_OK) {
    return problem_from_status(wrong, &st);
  }
  return true;
}

static bool open_device(flow_state *s, const char *name, flow_job *job,
                        problem *wrong) {
  vyre_status st = {0};
  if (vyre_device_open(s->context, name, &job->device, &st) != VYRE_OK)
    return problem_from_status(wrong, &st);
  if (!vyre_device_get_caps(job->device)->is_stub) return true;
  return problem_set(wrong, KIND_USAGE, "use --backend cpu",
                     "device %s is a stub, which runs no kernel",
                     vyre_device_name(job->device));
}

bool flow_job_init(flow_state *s, const char *name, flow_job *job,
                   problem *wrong) {
  const vyre_wave_graph_options options = {.budget_bytes = s->flow.budget,
                                           .is_separate = s->is_separate};
  vyre_status st = {0};
  *job = (flow_job){0};
  if (!open_device(s, name, job, wrong) || !compile(s, job, wrong))
    return false;
  if (vyre_wave_graph_create(job->device, &options, &job->graph, &st) !=
      VYRE_OK) {
    return problem_from_status(wrong, &st);
  }
  if (!add_resources(s, job, wrong)) return false;
  for (size_t i = 0; i < s->flow.wave_count; i++) {
    if (!add_wave(s, job, i, wrong)) return false;
  }
  if (!add_orders(s, job, wrong)) return false;
  if (vyre_wave_graph_plan(job->graph, &job->plan, &st) == VYRE_OK) return true;
  problem_from_status(wrong, &st);
  wrong->file = s->in.label;
  return false;
}

void flow_job_deinit(const flow_state *s, flow_job *job) {
  vyre_wave_graph_release(job->graph);
  for (size_t i = 0; job->pipelines && i < s->flow.wave_count; i++)
    vyre_pipeline_release(job->pipelines[i]);
  vyre_device_release(job->device);
  *job = (flow_job){0};
}

bool flow_job_run(const flow_state *s, const flow_job *job,
                  unsigned char *const *outputs, vyre_wave_result *result,
                  problem *wrong) {
  size_t count = s->flow.resource_count;
  vyre_wave_input *in = calloc(count + 1, sizeof *in);
  vyre_wave_output *out = calloc(count + 1, sizeof *out);
  vyre_wave_run run = {.inputs = in, .outputs = out, .result = result};
  bool is_fine = in && out;
  if (!is_fine) problem_no_memory(wrong, "the resources");
  for (uint32_t i = 0; i < count && is_fine; i++) {
    const flow_resource *r = &s->flow.resources[i];
    if (r->is_input)
      in[run.input_count++] =
          (vyre_wave_input){i, s->data[i].bytes, (size_t)r->size};
    if (r->is_output)
      out[run.output_count++] =
          (vyre_wave_output){i, outputs[i], (size_t)r->size};
  }
  vyre_status st = {0};
  if (is_fine && vyre_wave_graph_run(job->graph, &run, NULL, &st) != VYRE_OK)
    is_fine = problem_from_status(wrong, &st);
  free(in);
  free(out);
  return is_fine;
}
