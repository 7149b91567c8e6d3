/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every form there is of running a program, behind one shape: what forms.c holds
 * against the yardstick, faults.c lets fail and random_programs.c picks from. A form
 * that is missing here is one that no backend is judged by. */
#ifndef VYRE_CTS_HARNESS_DISPATCH_FORMS_H
#define VYRE_CTS_HARNESS_DISPATCH_FORMS_H

#include "cts/harness/cts.h"

enum { CTS_WAY_ITEMS = 3, CTS_WAY_MOST = 64 /* inputs, and outputs */ };

/* A program and its data. The descriptor binds bytes of the host; a way brings
 * them to where its form wants them, and the results back to desc.outputs. */
typedef struct cts_run {
  cts *c;
  vyre_program *program;
  vyre_pipeline *pipeline;
  vyre_dispatch_desc desc;
  uint64_t launched; /* kernels that ran well: ways add to it */
  unsigned char
      *room; /* for results of further items; made when first needed */
} cts_run;

enum {
  CTS_WAY_ROWS = 1u << 16,   /* takes programs of four inputs */
  CTS_WAY_RESIZES = 1u << 17 /* compiles for another workgroup */
};

typedef struct cts_way {
  const char *name;
  vyre_code (*run)(cts_run *r, vyre_status *st);
  unsigned launches; /* if all goes well */
  unsigned traits;   /* 1u << VYRE_FAULT_x: meets it; and those above */
} cts_way;

extern const cts_way cts_ways[];
extern const size_t cts_way_count;

/* Whether the results of a program of that many inputs, which may look at the
 * size of its workgroup, can be held against the yardstick's. */
static inline bool cts_way_takes(const cts_way *way, size_t input_count,
                                 bool any_workgroup) {
  return (!(way->traits & CTS_WAY_ROWS) || input_count == VYRE_ROW_RESOURCES) &&
         (!(way->traits & CTS_WAY_RESIZES) || any_workgroup);
}

/* --- programs for them, with results that were worked out by hand ------------- */

enum { CTS_JOBS = 3, CTS_JOB_WORDS = 40 };

typedef struct cts_job {
  cts_run run;
  vyre_input in[4];
  vyre_output out[4];
  uint32_t data[4][CTS_JOB_WORDS], got[4][CTS_JOB_WORDS],
      want[4][CTS_JOB_WORDS];
} cts_job;

/* Program @p which, compiled; without a pipeline if @p compiles is false. */
void cts_job_make(cts *c, size_t which, bool compiles, cts_job *out);
/* The same data again, and outputs that hold something else. */
void cts_job_reset(cts_job *job);
void cts_job_check(cts *c, const cts_job *job, const char *what);
const char *cts_job_name(size_t which);
bool cts_job_suits(size_t which, const cts_way *way);
/* The first that @p way takes. */
size_t cts_job_for(const cts_way *way);

#endif
