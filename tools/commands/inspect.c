/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre inspect`: shows the resources that a compiled kernel needs. */
#include <string.h>

#include "vyre/pipeline.h"
#include "vyre/tune.h"

#include "cli/commands.h"
#include "cli/compile_flags.h"
#include "cli/compile_kernel.h"
#include "cli/kernel_file.h"
#include "cli/output.h"
#include "cli/text.h"
#include "commands/package_text.h"
#include "plan/plan_json.h"

static void put_number(sink *out, const char *name, uint64_t number,
                       const char *of) {
  sink_format(out, "  %-14s %llu%s\n", name, (unsigned long long)number, of);
}

static void put_plan(sink *out, const vyre_binding_plan *plan) {
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    /* Shared buffers are not bound. */
    if (b->role == VYRE_ROLE_SHARED) {
      sink_format(out, "  %-14s ", "-");
    } else {
      sink_format(out, "  @%-13u ", (unsigned)b->binding);
    }
    show_bytes(out, b->name, strlen(b->name));
    sink_format(out, ", %s", vyre_role_name(b->role));
    if (b->has_static_byte_len) {
      sink_format(out, ", %llu bytes", (unsigned long long)b->static_byte_len);
    }
    sink_text(out, "\n");
  }
}

static bool needs_grid(const vyre_pipeline_resources *r) {
  return r->workgroup[1] > 1 || r->workgroup[2] > 1;
}

/* Prints what `vyre tune` has chosen for data of some sizes. */
static void put_tuned(sink *out, const vyre_pipeline *pipeline) {
  vyre_tuned_choice c;
  for (size_t i = 0; vyre_pipeline_tuned_at(pipeline, i, &c); i++) {
    sink_format(out, "  %-14s %s for %llu to %llu bytes%s\n", "tuned",
                c.settings, (unsigned long long)c.min_bytes,
                (unsigned long long)c.max_bytes,
                c.has_grid ? " with a given grid" : "");
  }
}

static void put_resources(sink *out, const vyre_pipeline *pipeline,
                          const vyre_pipeline_resources *r, const sink *why) {
  const char *name = vyre_program_name(vyre_pipeline_program(pipeline));
  sink_text(out, "kernel ");
  show_bytes(out, name, strlen(name));
  sink_format(out, "\n  %-14s %s\n", "pipeline", vyre_pipeline_id(pipeline));
  sink_format(out, "  %-14s %u x %u x %u\n", "workgroup",
              (unsigned)r->workgroup[0], (unsigned)r->workgroup[1],
              (unsigned)r->workgroup[2]);
  sink_format(out, "  %-14s ", "grid");
  if (needs_grid(r)) {
    sink_text(out,
              "must be given, because the workgroup has more than one axis\n");
  } else if (r->grid_buffer) {
    sink_text(out, "covers buffer '");
    show_bytes(out, r->grid_buffer, strlen(r->grid_buffer));
    sink_text(out, "'\n");
  } else {
    sink_text(out,
              "covers the longest buffer that is neither uniform nor shared\n");
  }
  put_number(out, "shared", r->shared_bytes, " bytes a workgroup");
  put_number(out, "grid barriers", r->grid_barriers, "");
  if (r->has_launches) {
    put_number(out, "launches", r->phase_count, " a dispatch");
    put_number(out, "spill", r->spill_bytes, " bytes per invocation");
    put_number(out, "scratch", r->scratch_bytes,
               " bytes per running workgroup");
  }
  if (r->has_width) {
    put_number(out, "width", r->width,
               r->width == 1 ? " invocation" : " invocations");
  }
  if (r->has_code) {
    put_number(
        out, "code", r->code_bytes,
        r->is_baseline
            ? " bytes, baseline tier: the kernel is very large and runs slower"
            : " bytes");
  }
  put_tuned(out, pipeline);
  put_plan(out, vyre_pipeline_bindings(pipeline));
  if (why) sink_bytes(out, why->data, why->length);
}

static void json_tuned(json_out *json, const vyre_pipeline *pipeline) {
  vyre_tuned_choice c;
  if (!vyre_pipeline_tuned_at(pipeline, 0, &c)) return;
  json_open(json, "tuned", '[');
  for (size_t i = 0; vyre_pipeline_tuned_at(pipeline, i, &c); i++) {
    json_open(json, NULL, '{');
    json_text(json, "settings", c.settings);
    json_u64(json, "min_bytes", c.min_bytes);
    json_u64(json, "max_bytes", c.max_bytes);
    json_bool(json, "has_grid", c.has_grid);
    json_u64(json, "time_ns", c.time_ns);
    json_u64(json, "default_ns", c.default_ns);
    json_close(json, '}');
  }
  json_close(json, ']');
}

static void json_bindings(json_out *json, const vyre_binding_plan *plan) {
  json_open(json, "bindings", '[');
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    json_open(json, NULL, '{');
    json_text(json, "name", b->name);
    if (b->role != VYRE_ROLE_SHARED) json_u64(json, "binding", b->binding);
    json_text(json, "role", vyre_role_name(b->role));
    if (b->has_static_byte_len) json_u64(json, "bytes", b->static_byte_len);
    json_close(json, '}');
  }
  json_close(json, ']');
}

static void json_resources(sink *out, const vyre_pipeline *pipeline,
                           const vyre_pipeline_resources *r, const sink *why) {
  json_out json = json_begin(out);
  json_text(&json, "kernel",
            vyre_program_name(vyre_pipeline_program(pipeline)));
  json_text(&json, "pipeline", vyre_pipeline_id(pipeline));
  json_open(&json, "workgroup", '[');
  for (int axis = 0; axis < 3; axis++) {
    json_u64(&json, NULL, r->workgroup[axis]);
  }
  json_close(&json, ']');
  if (r->grid_buffer) {
    json_text(&json, "over", r->grid_buffer);
  } else {
    json_null(&json, "over");
  }
  json_bool(&json, "needs_grid", needs_grid(r));
  json_u64(&json, "shared_buffers", r->shared_count);
  json_u64(&json, "shared_bytes", r->shared_bytes);
  json_u64(&json, "grid_barriers", r->grid_barriers);
  if (r->has_launches) {
    json_u64(&json, "launches", r->phase_count);
    json_u64(&json, "spill_buffers", r->spill_buffer_count);
    json_u64(&json, "spill_bytes", r->spill_bytes);
    json_u64(&json, "scratch_bytes", r->scratch_bytes);
  }
  if (r->has_width) json_u64(&json, "width", r->width);
  if (r->has_code) {
    json_u64(&json, "code_bytes", r->code_bytes);
    json_bool(&json, "is_baseline", r->is_baseline);
  }
  json_tuned(&json, pipeline);
  json_bindings(&json, vyre_pipeline_bindings(pipeline));
  if (why) json_raw(&json, "why", why->data, why->length);
  json_end(&json);
}

/* Adds the explanation of device cpu to @p out. Returns false with a status. */
static bool explain(vyre_pipeline *pipeline, bool json, sink *out,
                    vyre_status *st) {
  return vyre_pipeline_print(pipeline, json ? "why-json" : "why",
                             sink_writer(out), st) == VYRE_OK;
}

/* Returns false with diagnostics in the file, or with a problem. */
static bool inspect(const compile_flags *f, kernel_file *file,
                    vyre_program *program, bool json, sink *out,
                    problem *wrong) {
  vyre_status st = {0};
  compiled_on on = {.device = NULL};
  vyre_pipeline_resources resources;
  bool fine =
      compile_on(NULL, f->backend, "this is for", file->package, program,
                 &f->options, &file->findings, &on, &st) == VYRE_OK;
  if (fine) {
    sink why = {0};
    (void)vyre_pipeline_get_resources(on.pipeline, &resources);
    fine = !f->explains || explain(on.pipeline, json, &why, &st);
    if (fine) {
      (json ? json_resources : put_resources)(out, on.pipeline, &resources,
                                              f->explains ? &why : NULL);
    }
    sink_deinit(&why);
  }
  if (!fine && file->findings.count == 0) {
    wrong->file = file->in.label;
    problem_from_status(wrong, &st);
  }
  compiled_on_deinit(&on);
  return fine;
}

/* Lists the contents of a package, unless a kernel was chosen. */
static int inspect_package(const char *path, bool json) {
  kernel_file file = {.program = NULL};
  problem wrong = {0};
  sink out = {0};
  if (!kernel_file_read(path, &file, &wrong)) {
    int code = problem_report(&wrong, json);
    kernel_file_deinit(&file);
    return code;
  }
  if (json) {
    json_out answer = json_begin(&out);
    json_package(&answer, file.package);
    json_end(&answer);
  } else {
    put_package(&out, file.package);
  }
  kernel_file_deinit(&file);
  return publish(&out, NULL, NULL, json);
}

int cmd_inspect(int count, char **words, bool json) {
  compile_flags f = {.file = NULL};
  problem wrong = {0};
  if (compile_read_flags("inspect", count, words, &f, &wrong) && !f.kernel &&
      is_package_file(f.file)) {
    return inspect_package(f.file, json);
  }
  return compile_command("inspect", count, words, json, inspect);
}
