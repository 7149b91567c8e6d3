/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "compile_flags.h"

bool compile_read_flags(const char *command, int count, char **words,
                        compile_flags *f, problem *wrong) {
  const char *workgroup = NULL;
  uint64_t ulp_budget = 0;
  f->backend = "auto";
  flag flags[] = {FLAG("--kernel", &f->kernel), FLAG("--backend", &f->backend),
                  FLAG("--workgroup", &workgroup),
                  FLAG("--ulp-budget", &ulp_budget)};
  arguments spec = {.command = command,
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (!args_ulp_budget(ulp_budget, &f->options.ulp_budget, wrong)) return false;
  return !workgroup ||
         args_extent("--workgroup", workgroup, f->options.workgroup, wrong);
}
