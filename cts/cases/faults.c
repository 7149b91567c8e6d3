/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: every dispatch form with every injected fault. The form fails with a
 * status; afterwards the device works, or reports that it is lost. The suite
 * checks for leaks. */
#include <stdio.h>
#include <string.h>

#include "cts/harness/dispatch_forms.h"

enum {
  DENSE = 256,       /* up to here every n is tried */
  MAX_RUNS = 1000000 /* limit of a sweep, which stops at the first run without a
                    fault */
};

static void check_status(cts *c, const vyre_status *st, vyre_code code,
                         vyre_fault fault) {
  static const vyre_code codes[VYRE_FAULT_COUNT] = {
      [VYRE_FAULT_COMPILE] = VYRE_KERNEL_COMPILE_FAILED,
      [VYRE_FAULT_SUBMIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_UPLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_DOWNLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_WAIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_DEVICE_LOST] = VYRE_DEVICE_LOST};
  CTS_CHECK(c, code == st->code && st->message[0] && st->fix[0]);
  if (fault == VYRE_FAULT_ALLOCATION) {
    CTS_CHECK(c,
              code == VYRE_OUT_OF_MEMORY || code == VYRE_DEVICE_OUT_OF_MEMORY);
    return;
  }
  if (code != codes[fault] || st->kind != VYRE_KIND_INJECTED_FAULT) {
    cts_fail(c, __FILE__, __LINE__, "fault '%s' gives %s (%s): %s",
             vyre_fault_name(fault), vyre_code_name(code),
             vyre_kind_name(st->kind), st->message);
  }
}

/* Checks a lost device and opens another one in its place. */
static void check_lost(cts *c, cts_job *job, const cts_form *form) {
  vyre_buffer unused;
  vyre_counters counters;
  vyre_status st = {0};
  CTS_CHECK(c, vyre_device_is_lost(c->device));
  cts_job_reset(job);
  CTS_CHECK(c, form->run(&job->run, &st) == VYRE_DEVICE_LOST);
  CTS_CHECK(c, st.code == VYRE_DEVICE_LOST && st.fix[0]);
  CTS_FAILS(c, vyre_buffer_create(c->device, 4, &unused, &c->st),
            VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST);
  vyre_counters_read(c->device, &counters);
  CTS_U64(c, counters.launches, job->run.launched);
  job->run.launched = 0;
  vyre_pipeline_release(c->pipelines[--c->pipeline_count]);
  vyre_device_release(c->device);
  CTS_OK(c, vyre_device_open(c->context, c->backend, &c->device, &c->st));
  c->caps = vyre_device_get_caps(c->device);
  job->run.pipeline = cts_compile(c, job->run.program, 0);
}

/* Makes the nth operation fail, for every n until no fault is hit; above 256 in
 * steps of one eighth. Returns the number of faults hit. */
static unsigned sweep(cts *c, cts_job *job, const cts_form *form,
                      vyre_fault fault) {
  unsigned hits = 0;
  for (unsigned n = 1; n < MAX_RUNS; n += n < DENSE ? 1 : n / 8, hits++) {
    char text[64];
    vyre_status st = {0};
    (void)snprintf(text, sizeof text, "%s:%u", vyre_fault_name(fault), n);
    cts_job_reset(job);
    CTS_OK(c, vyre_context_inject_faults(c->context, text, &c->st));
    vyre_code code = form->run(&job->run, &st);
    CTS_OK(c, vyre_context_inject_faults(c->context, "", &c->st));
    if (code == VYRE_OK) {
      cts_job_check(c, job, "a result");
      CTS_LAUNCHED(c, job->run.launched);
      return hits;
    }
    check_status(c, &st, code, fault);
    if (fault == VYRE_FAULT_DEVICE_LOST) {
      check_lost(c, job, form);
      continue;
    }
    /* The device still works. */
    CTS_CHECK(c, !vyre_device_is_lost(c->device));
    cts_job_reset(job);
    CTS_OK(c, form->run(&job->run, &c->st));
    cts_job_check(c, job, "a result after a failure");
  }
  cts_fail(c, __FILE__, __LINE__, "fault '%s' has no end: it was met at %d",
           vyre_fault_name(fault), MAX_RUNS);
}

/* --- Area
 * --------------------------------------------------------------------- */

static size_t faults_count(void) {
  return cts_form_count * VYRE_FAULT_COUNT;
}

static void faults_label(size_t index, char *out, size_t size) {
  (void)snprintf(out, size, "%s.%s", cts_forms[index / VYRE_FAULT_COUNT].name,
                 vyre_fault_name((vyre_fault)(index % VYRE_FAULT_COUNT)));
}

static void faults_run(cts *c, size_t index) {
  const cts_form *form = &cts_forms[index / VYRE_FAULT_COUNT];
  vyre_fault fault = (vyre_fault)(index % VYRE_FAULT_COUNT);
  cts_job *job = cts_memory(c, sizeof *job);
  cts_job_make(c, cts_job_for(form), true, job);
  unsigned hits = sweep(c, job, form, fault);
  if (hits == 0 && form->traits & 1u << fault) {
    cts_fail(c, __FILE__, __LINE__, "'%s' never met the fault '%s'", form->name,
             vyre_fault_name(fault));
  }
}

const cts_area area_faults = {"faults", "every dispatch form with every fault",
                              faults_count, faults_label, faults_run};
