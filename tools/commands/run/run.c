/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre run`: load, compile, bind, dispatch, show. */
#include "commands/run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/output.h"

/* Without these flags the default context is used. */
bool run_make_context(run_state *s, problem *wrong) {
  vyre_status st = {0};
  const run_flags *f = &s->flags;
  if (!f->trace && f->threads == 0 && f->width == 0 && !f->options) return true;
  char own[OPTIONS_TEXT], both[OPTIONS_TEXT + 1 + MAX_OPTIONS];
  const char *text = args_cpu_options(f->threads, f->width, own);
  if (text && f->options) { /* the last value of a key counts */
    (void)snprintf(both, sizeof both, "%s,%s", f->options, text);
    text = both;
  }
  vyre_context_options options = {.trace_file = f->trace,
                                  .backend_options = text ? text : f->options};
  if (vyre_context_create(&options, &s->context, &st) == VYRE_OK) return true;
  return problem_from_options(wrong, &st);
}

/* Only the trace is lost, so this is not a failure. */
static void warn_if_dropped(const run_state *s) {
  vyre_trace_info trace;
  if (!vyre_context_get_trace_info(s->context, &trace) ||
      trace.dropped_count == 0) {
    return;
  }
  sink out = {0};
  sink_format(&out,
              "warning: %llu trace events could not be written to %.300s\nFix: "
              "free space there, or write the trace elsewhere\n",
              (unsigned long long)trace.dropped_count, trace.file);
  write_all(STDERR_FILENO, out.data, out.length);
  sink_deinit(&out);
}

/* Opens the device and compiles. Returns false without a problem if there
 * are diagnostics. */
bool run_compile(run_state *s, problem *wrong) {
  vyre_status st = {0};
  const run_flags *f = &s->flags;
  bool is_auto = strcmp(f->backend, "auto") == 0;
  vyre_compile_options options = {.ulp_budget = f->ulp_budget,
                                  .tier = (vyre_tier)f->tier,
                                  .ignores_tuning = f->is_untuned,
                                  .timeout_ns = f->compile_timeout_ns};
  memcpy(options.workgroup, f->workgroup, sizeof options.workgroup);
  if (f->compile_timeout_ns > 0 && s->file.package) {
    problem_set(wrong, KIND_USAGE, "", "a package is not compiled");
    return problem_fix(wrong, "remove --compile-timeout"), false;
  }
  if (!run_make_context(s, wrong)) return false;
  vyre_code code = compile_on(
      s->context, is_auto && f->check ? "ref" : f->backend, "this runs on",
      s->file.package, s->program, &options, &s->file.findings, &s->on, &st);
  s->device = s->on.device;
  s->pipeline = s->on.pipeline;
  if (is_auto && f->check) {
    (void)snprintf(s->on.why_ref, sizeof s->on.why_ref,
                   "chosen by auto: --check runs on ref");
  }
  if (code == VYRE_OK) return true;
  if (s->file.findings.count == 0) {
    if (s->device) wrong->file = s->file.in.label;
    problem_from_status(wrong, &st);
    s->is_compiling = st.kind == VYRE_KIND_TIMED_OUT;
    if (s->is_compiling) {
      problem_fix(wrong, "raise --compile-timeout, or use another device");
    }
  }
  return false;
}

/* Only `ref` has the checks; fail before the kernel is bound. */
static bool can_check(const run_state *s, problem *wrong) {
  if (s->flags.svg) {
    return problem_set(wrong, KIND_USAGE, "remove --svg",
                       "--svg draws the windows of a queue, and kernel '%.60s' "
                       "has no queue",
                       vyre_program_name(s->program));
  }
  if (!s->flags.check || vyre_device_get_caps(s->device)->has_checks) {
    return true;
  }
  problem_set(wrong, vyre_kind_name(VYRE_KIND_NOT_SUPPORTED), "",
              "device '%s' cannot run --check", vyre_device_name(s->device));
  problem_fix(wrong, "remove `--backend %s`", s->flags.backend);
  wrong->device = true;
  return false;
}

bool run_failed(const run_state *s, problem *wrong, const vyre_status *st) {
  uint64_t own_limit; /* the device's own limit, which no flag raises */
  bool is_devices =
      vyre_status_number_get(st, "device_max_iterations", &own_limit);
  problem_from_status(wrong, st);
  if (st->kind == VYRE_KIND_OUT_OF_FUEL && !is_devices) {
    problem_fix(wrong, "make the loop end, or raise --max-loop-iterations");
  } else if (st->kind == VYRE_KIND_TIMED_OUT) {
    problem_fix(wrong, "make the kernel faster, or raise --timeout");
  }
  wrong->printed = &s->printed;
  wrong->printed_dropped = s->printed_dropped;
  return false;
}

/* Returns the number of workgroups on one axis if the elements formed a
 * square or a cube. */
static uint32_t guess_groups(double elements, unsigned axes, uint32_t size) {
  double side = axes == 2 ? sqrt(elements) : cbrt(elements);
  return (uint32_t)ceil(ceil(side - 1e-6) / size);
}

/* Returns the number of elements of the largest bound buffer. */
static double max_elements(const run_state *s) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(s->pipeline);
  double max = 1;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->role == VYRE_ROLE_UNIFORM) continue;
    size_t size = 0;
    if (b->input_index != VYRE_NO_INDEX) size = s->inputs[b->input_index].size;
    if (b->output_index != VYRE_NO_INDEX) {
      size = s->outputs[b->output_index].size;
    }
    double elements = (double)size / (b->element_size ? b->element_size : 1);
    if (elements > max) max = elements;
  }
  return max;
}

/* Suggests a --grid to follow, from the size of the data. */
void run_suggest_grid(const run_state *s, problem *wrong) {
  const uint32_t *size = vyre_pipeline_workgroup(s->pipeline);
  unsigned axes = size[2] > 1 ? 3 : 2;
  double elements = max_elements(s);
  sink grid = {0};
  for (unsigned i = 0; i < axes; i++) {
    sink_format(&grid, "%s%u", i ? "," : "",
                guess_groups(elements, axes, size[i]));
  }
  if (!grid.failed) {
    problem_fix(wrong,
                "use --grid %.*s if the data is a %s; otherwise give the "
                "workgroups that the data needs on each axis",
                (int)grid.length, grid.data, axes == 2 ? "square" : "cube");
  }
  sink_deinit(&grid);
}

/* Above this number of invocations the interpreter takes hours: print a
 * warning. */
static void warn_if_huge(const run_state *s) {
  const uint32_t *workgroup = vyre_pipeline_workgroup(s->pipeline);
  double count = 1;
  bool exact = true;
  uint64_t product = 1;
  for (int axis = 0; axis < 3; axis++) {
    uint64_t extent = (uint64_t)s->grid[axis] * workgroup[axis];
    count *= (double)extent;
    exact = exact && product <= UINT64_MAX / extent;
    product *= extent;
  }
  if (count <= 0x1p32 || strcmp(vyre_device_name(s->device), "ref") != 0) {
    return;
  }
  sink out = {0};
  sink_text(&out, "warning: ");
  if (exact) {
    sink_format(&out, "%llu", (unsigned long long)product);
  } else {
    sink_format(&out, "%.3g", count);
  }
  sink_text(&out,
            " invocations on ref, the interpreter: this takes hours or "
            "more\nFix: use a smaller --grid\n");
  write_all(STDERR_FILENO, out.data, out.length);
  sink_deinit(&out);
}

enum { MAX_PRINTED = 1 << 20 };

/* Keeps the beginning for JSON. A kernel can print more than memory holds. */
static bool print_later(void *self, const char *text, size_t length) {
  run_state *s = self;
  size_t space = MAX_PRINTED - s->printed.length;
  size_t kept = s->printed_dropped ? 0 : length < space ? length : space;
  sink_bytes(&s->printed, text, kept);
  s->printed_dropped += length - kept;
  return !s->printed.failed;
}

/* Prints whole lines; text arrives in small pieces. */
static bool print_now(void *self, const char *text, size_t length) {
  run_state *s = self;
  sink_bytes(&s->printed, text, length);
  if (s->printed.failed) return false;
  if (length == 0 || text[length - 1] != '\n') return true;
  progress_hide(&s->bar);
  bool taken = write_all(STDERR_FILENO, s->printed.data, s->printed.length);
  s->printed.length = 0;
  return taken;
}

bool run_limit_loops(run_state *s, problem *wrong) {
  vyre_status st = {0};
  if (s->flags.max_iterations == 0) return true;
  vyre_compile_options counted = {.counts_iterations = true};
  memcpy(counted.workgroup, vyre_pipeline_workgroup(s->pipeline),
         sizeof counted.workgroup);
  counted.ulp_budget = s->flags.ulp_budget;
  counted.tier = (vyre_tier)s->flags.tier;
  return vyre_pipeline_add_variant(s->pipeline, &counted, &st) == VYRE_OK ||
         run_failed(s, wrong, &st);
}

void run_ask_check(run_state *s, vyre_dispatch_desc *desc) {
  desc->check = (vyre_check_options){.out_of_bounds = true,
                                     .races = true,
                                     .schedules = (uint32_t)s->flags.schedules,
                                     .seed = s->flags.seed};
  desc->report = &s->report;
}

static bool dispatch(run_state *s, problem *wrong) {
  vyre_status st = {0};
  vyre_dispatch_desc desc = {
      .max_loop_iterations = s->flags.max_iterations,
      .timeout_ns = s->flags.timeout_ns,
      .print = {s->flags.json ? print_later : print_now, s},
      .timing = s->flags.time ? &s->timing : NULL,
  };
  memcpy(desc.grid, s->flags.grid, sizeof desc.grid);
  if (!run_make_persistent(s, wrong)) return false;
  run_describe(s, &desc);
  if (s->flags.check) run_ask_check(s, &desc);
  if (vyre_dispatch_grid(s->pipeline, &desc, s->grid, &st) != VYRE_OK) {
    run_failed(s, wrong, &st);
    if (st.kind == VYRE_KIND_GRID_REQUIRED) run_suggest_grid(s, wrong);
    return false;
  }
  if (!run_shape_images(s, wrong)) return false;
  if (!run_limit_loops(s, wrong)) return false;
  warn_if_huge(s);
  progress_begin(&s->bar, "workgroups", NULL);
  if (s->bar.is_there) desc.progress = &s->bar.progress;
  vyre_code code = vyre_dispatch(s->pipeline, &desc, &st);
  progress_end(&s->bar);
  return code == VYRE_OK ? run_fetch_persistent(s, wrong)
                         : run_failed(s, wrong, &st);
}

void run_deinit(run_state *s) {
  run_free_persistent(s);
  for (size_t i = 0; i < s->buffer_count; i++) data_deinit(&s->buffers[i].in);
  vyre_check_report_deinit(&s->report);
  vyre_queue_release(s->queue);
  compiled_on_deinit(&s->on);
  warn_if_dropped(s);
  vyre_context_release(s->context);
  kernel_file_deinit(&s->file);
  sink_deinit(&s->printed);
  vyre_arena_deinit(&s->arena);
}

int cmd_run(int count, char **words, bool json) {
  run_state s = {.flags = {.json = json}};
  problem wrong = {0};
  int code = EXIT_FINE;
  s.flags.sets.arena = &s.arena;
  s.flags.outs.arena = &s.arena;
  if (!run_read_flags(count, words, &s.flags, &wrong)) {
    code = problem_report(&wrong, json);
  } else {
    s.program =
        kernel_file_open(s.flags.file, s.flags.kernel, &s.file, json, &code);
  }
  if (s.program && vyre_program_queue(s.program, &s.clauses, s.fields)) {
    code = run_queue(&s, &wrong) ? run_publish(&s)
                                 : kernel_file_report(&s.file, &wrong, json);
  } else if (s.program) {
    bool ran = run_compile(&s, &wrong) && can_check(&s, &wrong) &&
               run_bind(&s, &wrong) && dispatch(&s, &wrong) &&
               run_replay(&s, &wrong);
    code = ran ? run_publish(&s) : kernel_file_report(&s.file, &wrong, json);
  }
  run_deinit(&s);
  if (s.is_compiling) { /* exit() would wait for the end of the compile */
    (void)fflush(NULL);
    _exit(code);
  }
  return code;
}
