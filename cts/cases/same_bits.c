/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: every dispatch form gives the bits of vyre_device_run_program, which
 * are checked too. */
#include <stdio.h>
#include <string.h>

#include "cts/harness/dispatch_forms.h"

/* Returns pair @p index of a form and a program that it can run; false after
 * the last. */
static bool pair_at(size_t index, const cts_form **form, size_t *job) {
  for (size_t i = 0; i < cts_form_count * CTS_JOBS; i++) {
    *form = &cts_forms[i / CTS_JOBS];
    *job = i % CTS_JOBS;
    if (cts_job_fits(*job, *form) && index-- == 0) return true;
  }
  return false;
}

static size_t bits_count(void) {
  const cts_form *form;
  size_t count = 0, job;
  while (pair_at(count, &form, &job)) count++;
  return count;
}

static void bits_label(size_t index, char *out, size_t size) {
  const cts_form *form;
  size_t job;
  if (!pair_at(index, &form, &job)) return;
  (void)snprintf(out, size, "%s.%s", form->name, cts_job_name(job));
}

/* Runs twice: the second run must not see leftovers of the first. */
static void bits_run(cts *c, size_t index) {
  const cts_form *form;
  size_t which;
  cts_job *job = cts_memory(c, sizeof *job);
  CTS_CHECK(c, pair_at(index, &form, &which));
  cts_job_make(c, which, true, job);
  CTS_OK(c, vyre_device_run_program(c->device, job->run.program, &job->run.desc,
                                    &c->st));
  cts_job_check(c, job, "the reference run");
  CTS_LAUNCHED(c, 1);
  for (uint64_t turn = 1; turn <= 2; turn++) {
    cts_job_reset(job);
    CTS_OK(c, form->run(&job->run, &c->st));
    cts_job_check(c, job, form->name);
    CTS_U64(c, job->run.launched, turn * form->launches);
    CTS_LAUNCHED(c, 1 + turn * form->launches);
  }
}

const cts_area area_bits = {"bits",
                            "every dispatch form against the reference run",
                            bits_count, bits_label, bits_run};
