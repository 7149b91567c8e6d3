/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every form gives the bits of vyre_device_run_program, and those are right. */
#include <stdio.h>
#include <string.h>

#include "cts/harness/dispatch_forms.h"

/* Pair @p index of a form and a program that it takes; false beyond the last. */
static bool pair_at(size_t index, const cts_way **way, size_t *job) {
  for (size_t i = 0; i < cts_way_count * CTS_JOBS; i++) {
    *way = &cts_ways[i / CTS_JOBS];
    *job = i % CTS_JOBS;
    if (cts_job_suits(*job, *way) && index-- == 0) return true;
  }
  return false;
}

static size_t bits_count(void) {
  const cts_way *way;
  size_t count = 0, job;
  while (pair_at(count, &way, &job)) count++;
  return count;
}

static void bits_label(size_t index, char *out, size_t size) {
  const cts_way *way;
  size_t job;
  if (!pair_at(index, &way, &job)) return;
  (void)snprintf(out, size, "%s.%s", way->name, cts_job_name(job));
}

/* Twice: what the first leaves behind must not be seen by the second. */
static void bits_run(cts *c, size_t index) {
  const cts_way *way;
  size_t which;
  cts_job *job = cts_memory(c, sizeof *job);
  CTS_CHECK(c, pair_at(index, &way, &which));
  cts_job_make(c, which, true, job);
  CTS_OK(c, vyre_device_run_program(c->device, job->run.program, &job->run.desc,
                                    &c->st));
  cts_job_check(c, job, "the yardstick");
  CTS_LAUNCHED(c, 1);
  for (uint64_t turn = 1; turn <= 2; turn++) {
    cts_job_reset(job);
    CTS_OK(c, way->run(&job->run, &c->st));
    cts_job_check(c, job, way->name);
    CTS_U64(c, job->run.launched, turn * way->launches);
    CTS_LAUNCHED(c, 1 + turn * way->launches);
  }
}

const cts_area area_bits = {"bits", "every form against the yardstick",
                            bits_count, bits_label, bits_run};
