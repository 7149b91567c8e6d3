/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The command line of `vyre run`. */
#include <string.h>

#include "run.h"
#include "words.h"

enum { DEFAULT_SCHEDULES = 4, DEFAULT_SEED = 1, MOST_SCHEDULES = 1000000 };

static bool bad_extent(const char *flag_name, const char *text,
                       problem *wrong) {
  char shown[60];
  show_into(shown, sizeof shown, text, strlen(text));
  problem_set(wrong, KIND_USAGE, "",
              "%s is '%s', not one to three whole numbers from 1 to "
              "4294967295",
              flag_name, shown);
  problem_fix(wrong, "write it as in %s 16,16", flag_name);
  return false;
}

static bool large_extent(const char *flag_name, const char *number,
                         size_t length, problem *wrong) {
  char shown[60];
  show_into(shown, sizeof shown, number, length);
  problem_set(wrong, KIND_USAGE, "",
              "%s: %s is too large: the most is 4294967295 on an axis",
              flag_name, shown);
  problem_fix(
      wrong, strcmp(flag_name, "--grid") == 0
                 ? "use more axes, as in --grid 65536,65536, or run it in parts"
                 : "write at most 1024 in all, as in --workgroup 16,16");
  return false;
}

/* X[,Y[,Z]]; what is left out is 1. */
static bool read_extent(const char *flag_name, const char *text,
                        uint32_t out[3], problem *wrong) {
  size_t axes = 0;
  const char *at = text;
  for (;; axes++) {
    size_t length = strcspn(at, ",");
    uint64_t value;
    if (axes < 3 && is_too_large(at, length, UINT32_MAX)) {
      return large_extent(flag_name, at, length, wrong);
    }
    if (axes == 3 || !parse_u64(at, length, &value) || value == 0) {
      return bad_extent(flag_name, text, wrong);
    }
    out[axes] = (uint32_t)value;
    if (!at[length]) break;
    at += length + 1;
  }
  while (++axes < 3) out[axes] = 1;
  return true;
}

static bool needs_check(const char *name, problem *wrong) {
  problem_set(wrong, KIND_USAGE, "",
              "%s says how to check, but --check is "
              "missing",
              name);
  problem_fix(wrong, "add --check, or drop %s", name);
  return false;
}

static bool check_flags(const run_flags *f, bool schedules, bool seed,
                        problem *wrong) {
  if (schedules && !f->check) return needs_check("--schedules", wrong);
  if (seed && !f->check) return needs_check("--seed", wrong);
  if (f->schedules > MOST_SCHEDULES) {
    return problem_set(wrong, KIND_USAGE, "write at most 1000000",
                       "--schedules is %llu, which would take too long",
                       (unsigned long long)f->schedules);
  }
  return true;
}

bool run_read_flags(int count, char **words, run_flags *f, problem *wrong) {
  const char *grid = NULL, *workgroup = NULL;
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
      FLAG("--max-iterations", &f->max_iterations),
      FLAG("--values", &f->values),
  };
  arguments spec = {.command = "run",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0],
                    .operand = &f->file};
  f->schedules = DEFAULT_SCHEDULES;
  f->seed = DEFAULT_SEED;
  if (!args_read(&spec, count, words, wrong)) return false;
  if (flags[9].given && f->max_iterations == 0) {
    return problem_set(wrong, KIND_USAGE, "write 1 or more",
                       "--max-iterations is 0, so no loop could run");
  }
  return (!grid || read_extent("--grid", grid, f->grid, wrong)) &&
         (!workgroup ||
          read_extent("--workgroup", workgroup, f->workgroup, wrong)) &&
         check_flags(f, flags[7].given, flags[8].given, wrong);
}
