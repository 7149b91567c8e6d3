/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parses the command line of `vyre run`. */
#include <string.h>

#include "commands/run/run.h"

enum { DEFAULT_SCHEDULES = 4, DEFAULT_SEED = 1, MAX_SCHEDULES = 1000000 };

static bool needs_check(const char *name, problem *wrong) {
  problem_set(wrong, KIND_USAGE, "", "%s needs --check", name);
  problem_fix(wrong, "add --check, or remove %s", name);
  return false;
}

static bool check_flags(const run_flags *f, bool schedules, bool seed,
                        problem *wrong) {
  if (schedules && !f->check) return needs_check("--schedules", wrong);
  if (seed && !f->check) return needs_check("--seed", wrong);
  if (f->schedules > MAX_SCHEDULES) {
    return problem_set(wrong, KIND_USAGE, "write at most 1000000",
                       "--schedules is %llu, which takes too long",
                       (unsigned long long)f->schedules);
  }
  return true;
}

bool run_resolve_flags(run_flags *f, const run_flag_texts *texts,
                       problem *wrong) {
  f->ulp_budget = (uint8_t)texts->ulp_budget; /* the table limits the value */
  return args_width(f->width, wrong) && args_options(f->options, wrong) &&
         args_own_option(f->options, "cpu.threads", "--threads", f->threads,
                         wrong) &&
         args_own_option(f->options, "cpu.width", "--width", f->width, wrong) &&
         (!texts->timeout ||
          args_seconds("--timeout", texts->timeout, &f->timeout_ns, wrong)) &&
         (!texts->compile_timeout ||
          args_seconds("--compile-timeout", texts->compile_timeout,
                       &f->compile_timeout_ns, wrong)) &&
         (!texts->grid || args_extent("--grid", texts->grid, f->grid, wrong)) &&
         (!texts->workgroup ||
          args_extent("--workgroup", texts->workgroup, f->workgroup, wrong));
}

/* Returns true if a flag of @p spec was given. */
static bool is_given(const arguments *spec, const char *name) {
  for (size_t i = 0; i < spec->flag_count; i++) {
    if (strcmp(spec->flags[i].name, name) == 0) return spec->flags[i].given;
  }
  return false;
}

bool run_read_flags(int count, char **words, run_flags *f, problem *wrong) {
  run_flag_texts texts = {0};
  flag flags[] = {
      FLAG("--kernel", &f->kernel),
      FLAG("--set", &f->sets),
      FLAG("--out", &f->outs),
      FLAG("--grid", &texts.grid),
      FLAG("--workgroup", &texts.workgroup),
      FLAG("--backend", &f->backend),
      FLAG("--check", &f->check),
      FLAG("--schedules", &f->schedules),
      FLAG("--seed", &f->seed),
      FLAG("--max-loop-iterations", &f->max_iterations),
      FLAG("--values", &f->values),
      FLAG("--trace", &f->trace),
      FLAG("--time", &f->time),
      FLAG("--threads", &f->threads),
      FLAG("--width", &f->width),
      FLAG("--timeout", &texts.timeout),
      FLAG("--option", &f->options),
      FLAG("--ulp-budget", &texts.ulp_budget),
      FLAG("--replay", &f->replay),
      FLAG("--tier", &f->tier),
      FLAG("--untuned", &f->is_untuned),
      FLAG("--compile-timeout", &texts.compile_timeout),
      FLAG("--items", &f->items),
      FLAG("--svg", &f->svg),
      FLAG("--capacity", &f->capacity),
      FLAG("--budget", &f->budget_bytes),
      FLAG("--max-depth", &f->max_depth),
      FLAG("--queue-mode", &f->queue_mode),
  };
  arguments spec = {.command = "run",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  f->schedules = DEFAULT_SCHEDULES;
  f->seed = DEFAULT_SEED;
  f->backend = "auto";
  f->tier = VYRE_TIER_OPTIMISED; /* the cache keeps its code for the next run */
  if (!args_read(&spec, count, words, wrong)) return false;
  if (is_given(&spec, "--max-loop-iterations") && f->max_iterations == 0) {
    return problem_set(wrong, KIND_USAGE, "write 1 or more",
                       "--max-loop-iterations is 0, so no loop could run");
  }
  if (is_given(&spec, "--replay") &&
      f->replay == 0) { /* the table limits the value */
    return problem_set(wrong, KIND_USAGE,
                       "use 1 to 1000000, or remove --replay",
                       "--replay is 0, so nothing could be measured");
  }
  return run_resolve_flags(f, &texts, wrong) &&
         check_flags(f, is_given(&spec, "--schedules"),
                     is_given(&spec, "--seed"), wrong);
}
