/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parses the command line of `vyre run`. */
#include "commands/run_internal.h"

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

bool run_read_flags(int count, char **words, run_flags *f, problem *wrong) {
  const char *grid = NULL, *workgroup = NULL, *timeout = NULL;
  uint64_t ulp_budget = 0;
  flag flags[] = {
      FLAG("--kernel", &f->kernel),
      FLAG("--set", &f->sets),
      FLAG("--out", &f->outs),
      FLAG("--grid", &grid),
      FLAG("--workgroup", &workgroup),
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
      FLAG("--timeout", &timeout),
      FLAG("--option", &f->options),
      FLAG("--ulp-budget", &ulp_budget),
      FLAG("--replay", &f->replay),
  };
  arguments spec = {.command = "run",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  f->schedules = DEFAULT_SCHEDULES;
  f->seed = DEFAULT_SEED;
  f->backend = "auto";
  if (!args_read(&spec, count, words, wrong)) return false;
  f->ulp_budget = (uint8_t)ulp_budget; /* the table limits the value */
  if (flags[9].given && f->max_iterations == 0) {
    return problem_set(wrong, KIND_USAGE, "write 1 or more",
                       "--max-loop-iterations is 0, so no loop could run");
  }
  if (flags[18].given && f->replay == 0) { /* the table limits the value */
    return problem_set(wrong, KIND_USAGE,
                       "use 1 to 1000000, or remove --replay",
                       "--replay is 0, so nothing could be measured");
  }
  if (!args_width(f->width, wrong) || !args_options(f->options, wrong) ||
      !args_own_option(f->options, "cpu.threads", "--threads", f->threads,
                       wrong) ||
      !args_own_option(f->options, "cpu.width", "--width", f->width, wrong) ||
      (timeout && !args_seconds("--timeout", timeout, &f->timeout_ns, wrong))) {
    return false;
  }
  return (!grid || args_extent("--grid", grid, f->grid, wrong)) &&
         (!workgroup ||
          args_extent("--workgroup", workgroup, f->workgroup, wrong)) &&
         check_flags(f, flags[7].given, flags[8].given, wrong);
}
