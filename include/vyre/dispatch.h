/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/dispatch.h
 *  Running a pipeline once, and checking what it does.
 *
 *      vyre_input inputs[] = {{x, sizeof x}, {y, sizeof y}, {&a, sizeof a}};
 *      vyre_output outputs[] = {{y, sizeof y}};
 *      vyre_dispatch_desc desc = {.inputs = inputs, .input_count = 3,
 *                                 .outputs = outputs, .output_count = 1};
 *      vyre_code code = vyre_dispatch(pipeline, &desc, &st);
 */
#ifndef VYRE_DISPATCH_H
#define VYRE_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/pipeline.h"
#include "vyre/status.h"
#include "vyre/text.h"

/** Bytes that a dispatch reads. No alignment is needed. */
typedef struct vyre_input {
  const void *data;
  size_t size;
} vyre_input;

/** Memory that a dispatch writes. No alignment is needed. */
typedef struct vyre_output {
  void *data;
  size_t size;
} vyre_output;

/** What to look for while the kernel runs; all of it makes the run slower.
 *  Zeroed: nothing. */
typedef struct vyre_check_options {
  bool out_of_bounds;
  bool races;
  uint32_t schedules; /* further runs in other orders, to see whether an output
                         depends on the order; 0: none */
  uint64_t seed;      /* of those orders */
} vyre_check_options;

/** What a check can find: X(enumerator, name). */
#define VYRE_FINDING_MAP(X)                      \
  X(VYRE_FINDING_OUT_OF_BOUNDS, "out_of_bounds") \
  X(VYRE_FINDING_RACE, "race")                   \
  X(VYRE_FINDING_ORDER_DEPENDENCE, "order_dependence")

typedef enum vyre_finding_kind {
#define VYRE_X2(name, text) name,
  VYRE_FINDING_MAP(VYRE_X2) VYRE_FINDING_COUNT
#undef VYRE_X2
} vyre_finding_kind;

/** One fault, told once for each pair of places, with its first occurrence. Lines
 *  and columns count from 1; 0 means that there is no source or no such place. */
typedef struct vyre_finding {
  vyre_finding_kind kind;
  uint32_t line, column;
  uint32_t other_line, other_column; /* race: the access that came before */
  const char *buffer; /* order dependence: the output that differs */
  uint64_t index;     /* of the element; its absolute value if below 0 */
  bool index_is_negative;
  uint32_t length;              /* elements of the buffer */
  uint32_t invocation[3];       /* global id */
  uint32_t other_invocation[3]; /* race */
  bool in_workgroup;   /* race: both are in one workgroup: a barrier would do */
  uint64_t count;      /* how often it was seen */
  const char *message; /* one sentence */
  const char *fix;     /* what to do */
} vyre_finding;

/** What a check found, in the order it was seen. Zeroed, it is empty, ready for
 *  use and takes the C library's heap. Every dispatch begins it anew.
 *  Threads: compatible. */
typedef struct vyre_check_report {
  vyre_arena arena; /* holds the findings and their texts */
  vyre_finding *findings;
  size_t count, capacity;
  size_t dropped;     /* findings beyond the first 100 */
  uint32_t schedules; /* runs that were compared with the first one: fewer than
                         asked for if one of them differed, which says enough */
} vyre_check_report;

/** One run. Zeroed: no bindings, everything else by default. */
typedef struct vyre_dispatch_desc {
  const vyre_input *inputs; /* in input order of the binding plan */
  size_t input_count;
  const vyre_output *outputs; /* in output order */
  size_t output_count;
  uint32_t grid[3];        /* workgroups; all 0: inferred. An axis of 0 beside
                              others counts as 1 */
  uint64_t max_iterations; /* of all loops of an invocation; 0: 2^32-1. ref
                              counts every round; compiled code may leave out
                              loops that end by themselves, whatever happens */
  uint64_t timeout_ns;     /* 0: none */
  vyre_writer print;       /* for print(...); without one nothing is printed */
  vyre_check_options check;
  vyre_check_report
      *report; /* where findings go; needed if check asks for any */
} vyre_dispatch_desc;

VYRE_BEGIN

/** Runs @p pipeline once and waits for it.
 *
 *  Outputs begin as zero, input_outputs as their input; what the kernel does not
 *  write stays so. A buffer with a declared count takes exactly its bytes; an
 *  output that is sized at run time has the size of the memory given. The input
 *  and the output of an input_output may be the same pointer; nothing else may
 *  overlap unless all of it is only read.
 *  Findings of a check are no failure: the report has them.
 *  Ownership: borrows everything.
 *  Lifetime:  the memory may be changed or freed when the call returns.
 *  Threads:   safe; the report is compatible.   Blocks: until the run is over.
 *  Errors:    VYRE_INVALID_PROGRAM for inputs that do not fit the program (as
 *             vyre_binding_plan_validate), VYRE_INVALID_ARGUMENT
 *             (binding_mismatch) for outputs that do not, or memory that
 *             overlaps; VYRE_INVALID_ARGUMENT (grid_too_large) if an id would
 *             not fit in 32 bits; VYRE_DISPATCH_FAILED: out_of_fuel, timed_out,
 *             writer_refused (outputs are then unspecified);
 *             VYRE_UNSUPPORTED_FEATURE (not_supported) for a check of races
 *             with more than 2^32-1 workgroups;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dispatch(vyre_pipeline *pipeline,
                                                const vyre_dispatch_desc *desc,
                                                vyre_status *st);

/** The grid that vyre_dispatch would run for @p desc: what it names; else as
 *  many workgroups on x as cover the buffer of the kernel's over(...); else the
 *  largest binding that is neither uniform nor shared; at least 1. Looks at
 *  sizes only: pointers may be NULL.
 *  Ownership: borrows everything.   Threads: safe.   Blocks: never.
 *  Errors:    as vyre_dispatch, before it runs. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dispatch_grid(
    const vyre_pipeline *pipeline, const vyre_dispatch_desc *desc,
    uint32_t out[3], vyre_status *st);

/** Frees all findings. NULL or zeroed is fine; may be used again afterwards.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_check_report_finish(vyre_check_report *report);

/** "race", "out_of_bounds", ...; "?" for a number that is none. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_finding_name(vyre_finding_kind kind);

VYRE_END

#endif
