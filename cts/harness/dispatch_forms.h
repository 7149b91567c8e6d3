/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of all dispatch forms behind one function type. forms.c compares their
 * results with the reference run, faults.c injects faults into them, and
 * random_programs.c picks from them. A form that is missing here is not tested
 * on any backend. */
#ifndef VYRE_CTS_HARNESS_DISPATCH_FORMS_H
#define VYRE_CTS_HARNESS_DISPATCH_FORMS_H

#include "cts/harness/cts.h"

enum {
  CTS_FORM_ITEMS = 3,
  CTS_FORM_MAX_BINDINGS = 64 /* maximum number of inputs, and of outputs */
};

/* Program and its data. The descriptor binds host memory. A form copies it to
 * where it needs it, and the results back to desc.outputs. */
typedef struct cts_run {
  cts *c;
  vyre_program *program;
  vyre_pipeline *pipeline;
  vyre_dispatch_desc desc;
  uint64_t launched; /* successful launches; added to by the form */
  unsigned char
      *space; /* results of additional batch items; allocated on first use */
} cts_run;

enum {
  CTS_FORM_ROWS = 1u << 16,   /* needs a program with four bound buffers */
  CTS_FORM_RESIZES = 1u << 17 /* compiles for another workgroup size */
};

typedef struct cts_form {
  const char *name;
  vyre_code (*run)(cts_run *r, vyre_status *st);
  unsigned launches; /* launches of a successful run */
  /* 1u << VYRE_FAULT_x for each fault that it can meet, and the flags above. */
  unsigned traits;
} cts_form;

extern const cts_form cts_forms[];
extern const size_t cts_form_count;

/* Returns the number of buffers of a program that are not shared. */
static inline size_t cts_resource_count(const vyre_program *program) {
  size_t count, found = 0;
  const vyre_buffer_decl *buffers = vyre_program_buffers(program, &count);
  for (size_t i = 0; i < count; i++) {
    found += buffers[i].kind != VYRE_MEMORY_SHARED &&
             buffers[i].access != VYRE_ACCESS_WORKGROUP;
  }
  return found;
}

/* Returns true when the form can run a program with that many buffers that are
 * not shared. any_workgroup: its results do not depend on the workgroup size. */
static inline bool cts_form_accepts(const cts_form *form, size_t resource_count,
                                    bool any_workgroup) {
  return (!(form->traits & CTS_FORM_ROWS) ||
          resource_count == VYRE_ROW_RESOURCES) &&
         (!(form->traits & CTS_FORM_RESIZES) || any_workgroup);
}

/* --- Programs with hand-computed results
 * -------------------------------------- */

enum { CTS_JOBS = 3, CTS_JOB_WORDS = 40 };

typedef struct cts_job {
  cts_run run;
  vyre_input in[4];
  vyre_output out[4];
  uint32_t data[4][CTS_JOB_WORDS], got[4][CTS_JOB_WORDS],
      want[4][CTS_JOB_WORDS];
} cts_job;

/* Initialises program @p which; compiles it if @p compiles is true. */
void cts_job_make(cts *c, size_t which, bool compiles, cts_job *out);
/* Resets the inputs and fills the outputs with a pattern. */
void cts_job_reset(cts_job *job);
void cts_job_check(cts *c, const cts_job *job, const char *what);
const char *cts_job_name(size_t which);
bool cts_job_fits(size_t which, const cts_form *form);
/* Returns the first program that the form can run. */
size_t cts_job_for(const cts_form *form);

#endif
