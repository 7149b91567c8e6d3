/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Built-in expectation lists: cases that a backend cannot pass, with the
 * reason. An entry for a case that passes or does not exist is an error. */
#include <string.h>

#include "cts/harness/runner.h"

#define RUNS_NOTHING "  fails  null runs nothing: no kernel is launched\n"

static const struct {
  const char *backend, *list;
} lists[] = {
    {"null",
     "forms.*" RUNS_NOTHING "resident.*" RUNS_NOTHING
     "buffers.mixtures" RUNS_NOTHING "buffers.kept_feeds_the_next" RUNS_NOTHING
     "buffers.freed_in_use" RUNS_NOTHING "ops.*" RUNS_NOTHING
     "casts.*" RUNS_NOTHING "ids.*" RUNS_NOTHING "atomics.*" RUNS_NOTHING
     "elements.*" RUNS_NOTHING "control.*" RUNS_NOTHING
     "geometric_loops.*" RUNS_NOTHING "barriers.*" RUNS_NOTHING
     "memory.*" RUNS_NOTHING "shapes.*" RUNS_NOTHING
     "options.profile_and_label" RUNS_NOTHING "options.grid" RUNS_NOTHING
     "options.iterations" RUNS_NOTHING "options.max_output_bytes" RUNS_NOTHING
     "options.timing" RUNS_NOTHING "options.copy_report" RUNS_NOTHING
     "options.require_zero_copy" RUNS_NOTHING
     "options.max_iterations" RUNS_NOTHING "options.exact_limits" RUNS_NOTHING
     "options.timeout" RUNS_NOTHING "options.workgroup" RUNS_NOTHING
     "options.ulp_budget" RUNS_NOTHING "fences.*" RUNS_NOTHING
     "threads.*" RUNS_NOTHING "faults.*" RUNS_NOTHING "programs.*" RUNS_NOTHING
     "bits.*" RUNS_NOTHING "recordings.replays_add_up" RUNS_NOTHING
     "recordings.rebinding" RUNS_NOTHING "recordings.stale" RUNS_NOTHING
     "recordings.kept_inputs" RUNS_NOTHING "recordings.fences" RUNS_NOTHING
     "recordings.loops" RUNS_NOTHING "recordings.loops_in_loops" RUNS_NOTHING
     "cache.*" RUNS_NOTHING},
};

const char *cts_expectations(const char *backend) {
  size_t length = strcspn(backend, ":");
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    if (strlen(lists[i].backend) == length &&
        memcmp(lists[i].backend, backend, length) == 0) {
      return lists[i].list;
    }
  }
  return "";
}
