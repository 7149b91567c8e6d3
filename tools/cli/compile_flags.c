/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/compile_flags.h"

#include "cli/output.h"

bool compile_read_flags(const char *command, int count, char **words,
                        compile_flags *f, problem *wrong) {
  const char *workgroup = NULL;
  uint64_t ulp_budget = 0;
  f->backend = "auto";
  flag flags[] = {FLAG("--kernel", &f->kernel), FLAG("--backend", &f->backend),
                  FLAG("--workgroup", &workgroup),
                  FLAG("--ulp-budget", &ulp_budget),
                  FLAG("--why", &f->explains)};
  arguments spec = {.command = command,
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  f->options.tier = VYRE_TIER_OPTIMISED;
  f->options.ulp_budget = (uint8_t)ulp_budget; /* The table limits the value. */
  return !workgroup ||
         args_extent("--workgroup", workgroup, f->options.workgroup, wrong);
}

int compile_command(const char *command, int count, char **words, bool json,
                    compile_action *action) {
  compile_flags f = {.file = NULL};
  problem wrong = {0};
  kernel_file file = {.program = NULL};
  sink out = {0};
  vyre_program *program = NULL;
  int code = EXIT_FINE;
  if (!compile_read_flags(command, count, words, &f, &wrong)) {
    code = problem_report(&wrong, json);
  } else {
    program = kernel_file_open(f.file, f.kernel, &file, json, &code);
  }
  if (program) {
    code = action(&f, &file, program, json, &out, &wrong)
               ? publish(&out, NULL, NULL, json)
               : kernel_file_report(&file, &wrong, json);
  }
  kernel_file_deinit(&file);
  return code;
}
