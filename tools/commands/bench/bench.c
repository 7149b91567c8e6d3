/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre bench`: times a kernel and compares it with the limits of the
 * machine. */
#include "commands/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stopwatch.h"

enum {
  DEFAULT_SIZE = 1 << 20,
  MIN_RUNS = 5,
  MAX_RUNS = 100000,
};

/* Time for all runs, unless --runs is given. Few long runs may take ten times
 * as long. */
static const uint64_t BUDGET_NS = 500000000;

static bool read_flags(int count, char **words, bench_state *s,
                       problem *wrong) {
  run_flags *f = &s->run.flags;
  run_flag_texts texts = {0};
  flag flags[] = {
      FLAG("--kernel", &f->kernel),
      FLAG("--set", &f->sets),
      FLAG("--size", &s->size),
      FLAG("--grid", &texts.grid),
      FLAG("--workgroup", &texts.workgroup),
      FLAG("--backend", &f->backend),
      FLAG("--runs", &s->runs),
      FLAG("--max-loop-iterations", &f->max_iterations),
      FLAG("--svg", &s->svg),
      FLAG("--threads", &f->threads),
      FLAG("--width", &f->width),
      FLAG("--timeout", &texts.timeout),
      FLAG("--option", &f->options),
      FLAG("--ulp-budget", &texts.ulp_budget),
      FLAG("--untuned", &f->is_untuned),
  };
  static const size_t above_zero[] = {2, 6, 7}; /* size, runs, iterations */
  arguments spec = {.command = "bench",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  s->size = DEFAULT_SIZE;
  f->backend = "auto";
  if (!args_read(&spec, count, words, wrong)) return false;
  f->tier = VYRE_TIER_OPTIMISED;
  for (size_t i = 0; i < sizeof above_zero / sizeof above_zero[0]; i++) {
    const flag *given = &flags[above_zero[i]];
    uint64_t value;
    memcpy(&value, given->out, sizeof value);
    if (given->given && value == 0) {
      return problem_set(wrong, KIND_USAGE, "write 1 or more",
                         "%s is 0, so nothing could be measured", given->name);
    }
  }
  return run_resolve_flags(f, &texts, wrong);
}

/* --- made-up data ----------------------------------------------------------*/

static bool is_set(const bench_state *s, const char *name) {
  size_t length = strlen(name);
  for (size_t i = 0; i < s->run.flags.sets.list.count; i++) {
    const char *word = word_at(&s->run.flags.sets, i);
    if (strncmp(word, name, length) == 0 && word[length] == '=') return true;
  }
  return false;
}

/* Returns the number of axes of the workgroup. */
static unsigned axes_of(const bench_state *s) {
  const uint32_t *size = vyre_pipeline_workgroup(s->run.pipeline);
  return size[2] > 1 ? 3 : size[1] > 1 ? 2 : 1;
}

/* Returns the side of the square or cube that --size elements form. */
static uint64_t side_of(const bench_state *s) {
  unsigned axes = axes_of(s);
  double size = (double)s->size;
  if (axes == 1) return s->size;
  return (uint64_t)floor((axes == 2 ? sqrt(size) : cbrt(size)) + 1e-6);
}

static bool is_float(vyre_element element) {
  return element == VYRE_ELEMENT_F16 || element == VYRE_ELEMENT_BF16 ||
         element == VYRE_ELEMENT_F32 || element == VYRE_ELEMENT_F64;
}

/* Integers that may be indices count up, so that they are in range. */
static bool is_index(vyre_element element) {
  return element == VYRE_ELEMENT_U32 || element == VYRE_ELEMENT_I32 ||
         element == VYRE_ELEMENT_U64 || element == VYRE_ELEMENT_I64;
}

static void put_spec(const bench_state *s, const vyre_buffer_decl *d,
                     bool is_input, sink *out) {
  uint64_t count = d->count ? d->count : s->size;
  if (!is_input) {
    sink_format(out, "zeros:%llu", (unsigned long long)count);
  } else if (d->access != VYRE_ACCESS_UNIFORM) {
    sink_format(out, is_index(d->element) ? "iota:%llu" : "random:1:%llu",
                (unsigned long long)count);
  } else if (d->count > 1) {
    sink_format(out, "random:1:%llu", (unsigned long long)count);
  } else if (is_float(d->element)) {
    sink_text(out, "0.5");
  } else if (d->element == VYRE_ELEMENT_BOOL) {
    sink_text(out, "true");
  } else {
    sink_format(out, "%llu",
                (unsigned long long)(is_index(d->element) ? side_of(s) : 1));
  }
}

static bool make_up(bench_state *s, const vyre_buffer_decl *d, bool is_input,
                    problem *wrong) {
  sink spec = {0};
  put_spec(s, d, is_input, &spec);
  size_t length = strlen(d->name) + 1 + spec.length + 1;
  char *word = vyre_arena_alloc(&s->run.arena, length, 1);
  const char **place =
      word ? list_add(&s->run.flags.sets.list, sizeof *place, &s->run.arena)
           : NULL;
  if (place && !spec.failed) {
    (void)snprintf(word, length, "%s=%.*s", d->name, (int)spec.length,
                   spec.data);
    *place = word;
    sink_format(&s->made_up, "%s%s", s->made_up.length ? ", " : "", word);
  } else {
    (void)problem_no_memory(wrong, "the data that is made up");
  }
  sink_deinit(&spec);
  return wrong->kind == NULL;
}

/* An output has the size of an input. Without inputs, its size is made up. */
static bool has_input(const vyre_binding_plan *plan) {
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->input_index != VYRE_NO_INDEX && b->role != VYRE_ROLE_UNIFORM) {
      return true;
    }
  }
  return false;
}

static bool is_needed(const vyre_binding_plan *plan, const vyre_binding *b) {
  if (b->input_index != VYRE_NO_INDEX) return true;
  if (b->role == VYRE_ROLE_PERSISTENT) return !b->has_static_byte_len;
  return b->output_index != VYRE_NO_INDEX && !b->has_static_byte_len &&
         !has_input(plan);
}

/* Makes the grid cover the square or cube of a workgroup with several axes. */
static void make_up_grid(bench_state *s) {
  const uint32_t *size = vyre_pipeline_workgroup(s->run.pipeline);
  unsigned axes = axes_of(s);
  for (unsigned axis = 0; axis < 3 && axes > 1; axis++) {
    uint64_t side = axis < axes ? side_of(s) : 1;
    s->run.flags.grid[axis] = (uint32_t)((side + size[axis] - 1) / size[axis]);
  }
}

/* Makes up data for everything without --set, and the grid if no data is
 * given. */
bool bench_make_up_data(bench_state *s, problem *wrong) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(s->run.pipeline);
  size_t count;
  const vyre_buffer_decl *decls = vyre_program_buffers(s->run.program, &count);
  bool has_sets = s->run.flags.sets.list.count > 0;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    const vyre_buffer_decl *d = &decls[b->buffer_index];
    if (!is_needed(plan, b) || is_set(s, d->name)) continue;
    if (!make_up(s, d, b->input_index != VYRE_NO_INDEX, wrong)) return false;
  }
  if (!has_sets && s->run.flags.grid[0] == 0) make_up_grid(s);
  return true;
}

/* --- runs ------------------------------------------------------------------*/

/* Buffers that are read and written are updated in place, so that no copy is
 * timed. */
static void bind_in_place(run_state *r) {
  for (size_t i = 0; i < r->buffer_count; i++) {
    const run_buffer *b = &r->buffers[i];
    if (b->binding->role != VYRE_ROLE_INPUT_OUTPUT) continue;
    r->inputs[b->binding->input_index] =
        vyre_input_bytes(b->out, b->out_length);
  }
}

static void restore(const run_state *r) {
  for (size_t i = 0; i < r->buffer_count; i++) {
    const run_buffer *b = &r->buffers[i];
    if (b->binding->role != VYRE_ROLE_INPUT_OUTPUT || !b->in.bytes) continue;
    memcpy(b->out, b->in.bytes,
           b->in.length < b->out_length ? b->in.length : b->out_length);
  }
}

/* Adds up the bytes that a run must move: inputs once, outputs once. */
static double data_bytes(const run_state *r) {
  double sum = 0;
  for (size_t i = 0; i < r->input_count; i++) {
    sum += (double)r->inputs[i].size;
  }
  for (size_t i = 0; i < r->output_count; i++) {
    sum += (double)r->outputs[i].size;
  }
  return sum;
}

static bool find_grid(bench_state *s, vyre_dispatch_desc *desc,
                      problem *wrong) {
  vyre_status st = {0};
  run_state *r = &s->run;
  memcpy(desc->grid, r->flags.grid, sizeof desc->grid);
  if (vyre_dispatch_grid(r->pipeline, desc, r->grid, &st) == VYRE_OK) {
    return true;
  }
  (void)run_failed(r, wrong, &st);
  if (st.kind == VYRE_KIND_GRID_REQUIRED) run_suggest_grid(r, wrong);
  return false;
}

static int by_size(const void *a, const void *b) {
  uint64_t x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return (x > y) - (x < y);
}

/* Fills @p wrong from a failed run. Made-up sizes may be too much work. */
static bool run_wrong(const bench_state *s, problem *wrong,
                      const vyre_status *st) {
  (void)run_failed(&s->run, wrong, st);
  size_t length = s->made_up.length < 120 ? s->made_up.length : 120;
  if (st->kind == VYRE_KIND_TIMED_OUT && length > 0) {
    problem_fix(wrong,
                "lower --size, set what is made up (%.*s) with --set, or "
                "raise --timeout",
                (int)length, s->made_up.data);
  }
  return false;
}

static bool is_enough(const bench_state *s, uint64_t runs, uint64_t spent) {
  if (s->runs > 0) return runs >= s->runs;
  if (runs == MAX_RUNS || spent > 10 * BUDGET_NS) return true;
  return runs >= MIN_RUNS && spent > BUDGET_NS;
}

/* Runs once to warm up and to find errors, then until the time is used. */
static bool time_runs(bench_state *s, const vyre_dispatch_desc *desc,
                      uint64_t *times, problem *wrong) {
  vyre_status st = {0};
  uint64_t spent = 0;
  restore(&s->run);
  if (vyre_dispatch(s->run.pipeline, desc, &st) != VYRE_OK) {
    return run_wrong(s, wrong, &st);
  }
  (void)vyre_pipeline_get_resources(s->run.pipeline, &s->resources);
  while (!is_enough(s, s->run_count, spent)) {
    restore(&s->run);
    uint64_t start = stopwatch_ns();
    if (vyre_dispatch(s->run.pipeline, desc, &st) != VYRE_OK) {
      return run_wrong(s, wrong, &st);
    }
    uint64_t took = stopwatch_ns() - start;
    times[s->run_count++] = took > 0 ? took : 1;
    spent += took;
  }
  qsort(times, s->run_count, sizeof *times, by_size);
  s->median_ns = times[s->run_count / 2];
  s->best_ns = times[0];
  return true;
}

static bool measure(bench_state *s, problem *wrong) {
  run_state *r = &s->run;
  vyre_dispatch_desc desc = {.is_borrowed = true,
                             .max_loop_iterations = r->flags.max_iterations,
                             .timeout_ns = r->flags.timeout_ns};
  if (vyre_device_get_caps(r->device)->is_stub) {
    return problem_set(wrong, KIND_USAGE, "use --backend cpu",
                       "device %s is a stub, which runs no kernel",
                       vyre_device_name(r->device));
  }
  uint64_t *times = calloc(MAX_RUNS, sizeof *times);
  if (!times) return problem_no_memory(wrong, "the times of the runs");
  bind_in_place(r);
  if (!run_make_persistent(r, wrong)) return free(times), false;
  run_describe(r, &desc);
  s->bytes = data_bytes(r);
  bool fine = find_grid(s, &desc, wrong) && run_limit_loops(r, wrong) &&
              time_runs(s, &desc, times, wrong);
  free(times);
  if (!fine) return false;
  restore(r);
  bench_count(s);
  return bench_measure_limits(s, wrong);
}

/* --- rates -----------------------------------------------------------------*/

/* A kernel that uses a part of its buffers moves only that part. */
double bench_traffic(const bench_state *s) {
  bool is_part = s->counts.is_known && s->counts.bytes < s->bytes;
  return is_part ? s->counts.bytes : s->bytes;
}

double bench_byte_rate(const bench_state *s) {
  return bench_traffic(s) / (double)s->median_ns;
}

double bench_operation_rate(const bench_state *s) {
  return s->counts.operations / (double)s->median_ns;
}

double bench_intensity(const bench_state *s) {
  double bytes = bench_traffic(s);
  return bytes > 0 ? s->counts.operations / bytes : 0;
}

double bench_memory_share(const bench_state *s) {
  double limit = s->limits.sized_bytes;
  return limit > 0 ? bench_byte_rate(s) / limit : 0;
}

double bench_compute_share(const bench_state *s) {
  double limit = s->limits.operations;
  return limit > 0 ? bench_operation_rate(s) / limit : 0;
}

double bench_launch_share(const bench_state *s) {
  return s->limits.launch_ns / (double)s->median_ns;
}

/* A kernel above half of a limit is limited by it. Below, divergence that
 * wastes a third of the operations explains the time; and then the nearest
 * limit, unless all are far. */
bench_limit bench_limited_by(const bench_state *s) {
  double memory = bench_memory_share(s), compute = bench_compute_share(s);
  double launch = bench_launch_share(s);
  double max = memory > compute ? memory : compute;
  if (launch > max && launch > 0.25) return BENCH_LAUNCH;
  if (max < 0.5 && s->counts.is_known && s->counts.divergence > 1.5) {
    return BENCH_DIVERGENCE;
  }
  if (max < 0.25) return BENCH_OVERHEAD;
  return memory >= compute ? BENCH_MEMORY : BENCH_COMPUTE;
}

const char *bench_limit_name(bench_limit limit) {
  static const char *const names[] = {"memory", "compute", "launch",
                                      "divergence", "overhead"};
  return names[limit];
}

int bench_run(bench_state *s, const bench_command *command, bool has_flags,
              problem *wrong) {
  run_state *r = &s->run;
  bool json = r->flags.json;
  int code = EXIT_FINE;
  if (has_flags) {
    r->program =
        kernel_file_open(r->flags.file, r->flags.kernel, &r->file, json, &code);
  } else {
    code = problem_report(wrong, json);
  }
  if (r->program && command->work(s, wrong)) {
    sink answer = {0}, drawing = {0};
    command->tell(s, &answer, &drawing);
    code = publish(&answer, s->svg, &drawing, json);
  } else if (r->program) {
    code = kernel_file_report(&r->file, wrong, json);
  }
  if (command->release) command->release(s);
  sink_deinit(&s->made_up);
  run_deinit(r);
  return code;
}

static bool work(bench_state *s, problem *wrong) {
  return run_compile(&s->run, wrong) && bench_make_up_data(s, wrong) &&
         run_bind(&s->run, wrong) && measure(s, wrong);
}

static void tell(const bench_state *s, sink *answer, sink *drawing) {
  (s->run.flags.json ? bench_json : bench_tell)(s, answer);
  if (s->svg) bench_svg(s, drawing);
}

int cmd_bench(int count, char **words, bool json) {
  bench_state s = {.run = {.flags = {.json = json}}};
  problem wrong = {0};
  s.run.flags.sets.arena = &s.run.arena;
  bool has_flags = read_flags(count, words, &s, &wrong) &&
                   (!s.svg || can_publish(s.svg, &s.run.arena, &wrong));
  return bench_run(&s, &(const bench_command){work, tell, NULL}, has_flags,
                   &wrong);
}
