/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/dispatch.h
 *  Running a pipeline once, and checking what it does.
 *
 *      vyre_input inputs[] = {vyre_input_bytes(x, sizeof x),
 *                             vyre_input_bytes(y, sizeof y),
 *                             vyre_input_bytes(&a, sizeof a)};
 *      vyre_output outputs[] = {vyre_output_bytes(y, sizeof y)};
 *      vyre_dispatch_desc desc = {.inputs = inputs, .input_count = 3,
 *                                 .outputs = outputs, .output_count = 1};
 *      vyre_code code = vyre_dispatch(pipeline, &desc, &st);
 */
#ifndef VYRE_DISPATCH_H
#define VYRE_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/buffer.h"
#include "vyre/export.h"
#include "vyre/fence.h"
#include "vyre/memory.h"
#include "vyre/pipeline.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** What a dispatch reads: bytes of the host, or of a resident buffer. */
typedef struct vyre_input {
  const void *data;   /* host bytes; no alignment is needed */
  size_t size;        /* of them; resident: 0 means up to its end */
  vyre_buffer buffer; /* instead of data, if not zeroed */
  uint64_t offset;    /* in the resident buffer; a multiple of the element */
} vyre_input;

/** Memory for one output that is kept from dispatch to dispatch: it grows when
 *  it must and never shrinks. Zeroed, it is empty and takes the C library's
 *  heap. Threads: compatible. */
typedef struct vyre_host_buffer {
  void *data;
  size_t size;     /* bytes of the last result */
  size_t capacity; /* bytes there are */
  vyre_allocator allocator;
  size_t lead; /* bytes before data that were allocated with it, so that data is
                  aligned for the device; 0 for memory of your own */
  uint64_t device; /* whose dispatch allocated it, and counts its capacity; 0
                      for memory of your own */
} vyre_host_buffer;

/** Where an output goes: exactly one of these.
 *    data, size      the caller's memory
 *    slot            a slot; size only for outputs that are sized at run time
 *    resident        a resident buffer, in place
 *    kept            a new resident buffer of `size`: the handle is put there */
typedef struct vyre_output {
  void *data; /* no alignment is needed */
  size_t size;
  vyre_host_buffer *host_buffer;
  vyre_buffer buffer;
  uint64_t offset; /* in the resident buffer */
  vyre_buffer *new_buffer;
} vyre_output;

/** Ways to say them, for those who do not write {.data = x, .size = n}.
 *  Threads: safe.  Blocks: never.  Errors: none. */
static inline vyre_input vyre_input_bytes(const void *data, size_t size) {
  vyre_input made = {data, size, {0, 0}, 0};
  return made;
}
static inline vyre_input vyre_input_buffer(vyre_buffer buffer) {
  vyre_input made = {NULL, 0, {buffer.owner, buffer.id}, 0};
  return made;
}
static inline vyre_output vyre_output_bytes(void *data, size_t size) {
  vyre_output made = {data, size, NULL, {0, 0}, 0, NULL};
  return made;
}
static inline vyre_output vyre_output_host_buffer(vyre_host_buffer *slot,
                                                  size_t size) {
  vyre_output made = {NULL, size, slot, {0, 0}, 0, NULL};
  return made;
}
static inline vyre_output vyre_output_buffer(vyre_buffer buffer) {
  vyre_output made = {NULL, 0, NULL, {buffer.owner, buffer.id}, 0, NULL};
  return made;
}
static inline vyre_output vyre_output_new_buffer(vyre_buffer *kept,
                                                 size_t size) {
  vyre_output made = {NULL, size, NULL, {0, 0}, 0, kept};
  return made;
}

/** How long it took. What was not measured is absent, never 0. */
typedef struct vyre_timing {
  uint64_t wall_ns; /* from the call to the result */
  bool has_device, has_enqueue, has_wait;
  uint64_t device_ns;  /* of the device's own clock */
  uint64_t enqueue_ns; /* from the call to the launch: checks, work that was
                          submitted before, memory */
  uint64_t wait_ns;    /* from the launch to the result */
} vyre_timing;

/** Why bytes were copied: X(enumerator, name). */
#define VYRE_COPY_MAP(X)                    \
  X(VYRE_COPY_NONE, "none")                 \
  X(VYRE_COPY_OWNED, "owned_input")         \
  X(VYRE_COPY_IN_OUT, "input_output_apart") \
  X(VYRE_COPY_ALIGNMENT, "alignment")       \
  X(VYRE_COPY_DEVICE_MEMORY, "device_memory")

typedef enum vyre_copy_reason {
#define VYRE_X2(name, text) name,
  VYRE_COPY_MAP(VYRE_X2) VYRE_COPY_COUNT
#undef VYRE_X2
} vyre_copy_reason;

/** What became of the bytes of a dispatch. Zero bytes that outputs begin with
 *  are no copy. */
typedef struct vyre_copy_report {
  uint64_t borrowed_bytes;      /* bound where they are: host memory */
  uint64_t device_buffer_bytes; /* on the device already */
  uint64_t mapped_bytes; /* of these, memory of the caller that it maps */
  uint64_t copied_bytes;
  uint32_t copies;          /* how many bindings were copied */
  const char *first_copied; /* name of the first; the program's. NULL: none */
  vyre_copy_reason first_reason; /* and why */
} vyre_copy_report;

/** What became of output slots. Sums, over all that it was passed to. */
typedef struct vyre_output_stats {
  uint64_t slots, reused, moved, appended;
  uint64_t incoming_bytes, copied_bytes, moved_bytes, appended_bytes;
  uint64_t retained_capacity_bytes;
} vyre_output_stats;

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

/** How far a dispatch has come: zeroed, and asked by vyre_progress_read while it
 *  runs. It costs a little where it is asked for, and nothing elsewhere.
 *  Threads: safe for who reads it; one dispatch at a time writes it. */
typedef struct vyre_progress {
  uint64_t completed, total; /* the library's: others change them meanwhile */
} vyre_progress;

/** One run. Zeroed: no bindings, everything else by default. */
typedef struct vyre_dispatch_desc {
  const vyre_input *inputs; /* in input order of the binding plan */
  size_t input_count;
  const vyre_output *outputs; /* in output order */
  size_t output_count;
  uint32_t grid[3]; /* workgroups; all 0: inferred along x, and an error
                       (grid_required) if the workgroup has more axes. An axis
                       of 0 together with others counts as 1 */
  const vyre_compile_options *variant; /* one that was prepared; NULL: as
                                          compiled */
  bool is_borrowed;       /* inputs stay unchanged until the fence: they need
                              not be copied when the work is submitted */
  bool has_fresh_outputs; /* slots take new memory, once all is checked, and
                              free what they had */
  bool require_zero_copy; /* fail rather than copy */
  bool has_repeat_count;  /* else 1 */
  uint32_t repeat_count;  /* launches back to back on the same buffers; 0 is an
                              error */
  uint64_t
      max_loop_iterations; /* of all loops of an invocation together; 0: 2^32-1.
                              A limit has the same outcome on every device,
                              unless a loop exceeds what the driver can run. A
                              compiled kernel that is proven to need at most
                              2^20 iterations does not count them: a limit below
                              its bound needs code that does
                              (vyre_compile_options.counts_iterations). Devices
                              other than "ref" count at most 2^32-1: they refuse
                              a larger limit (not_supported), unless the kernel
                              is proven to need at most 2^32-1 */
  uint64_t timeout_ns;     /* 0: none. Of its launches together, from the first
                              one on: what it waits for before does not count */
  uint64_t max_output_bytes; /* of all outputs that come back; 0: no limit */
  const char *profile; /* names of your own for this kind of run and for */
  const char *label;   /* this one, in the trace; NULL: none */
  vyre_writer print;   /* for print(...); without one nothing is printed */
  vyre_check_options check;
  vyre_check_report
      *report; /* where findings go; needed if check asks for any */

  /* What comes back, where not NULL; valid when the work is over. */
  vyre_timing *timing;
  vyre_copy_report *copies;
  vyre_output_stats *output_stats;
  vyre_code *result; /* of this item. VYRE_UNKNOWN: it was not reached */

  /* What it tells meanwhile; must live until the work is over. NULL: nothing */
  vyre_progress *progress;
} vyre_dispatch_desc;

VYRE_BEGIN

/** Runs @p pipeline once and waits for it: on the calling thread where the
 *  device has no queue of its own.
 *
 *  Outputs begin as zero, input_outputs as their input; what the kernel does not
 *  write stays so. A buffer with a declared count takes exactly its bytes; an
 *  output that is sized at run time has the size of the memory given. The input
 *  and the output of an input_output may be the same pointer; nothing else may
 *  overlap unless all of it is only read.
 *  Findings of a check are no failure: the report has them.
 *  Ownership: borrows everything.
 *  Lifetime:  the memory may be changed or freed when the call returns.
 *  Threads:   safe; the report is compatible.
 *  Blocks:    until the run is over; with resident buffers, after all work that
 *             was submitted before (vyre_submit).
 *  Errors:    VYRE_INVALID_PROGRAM for inputs that do not fit the program (as
 *             vyre_binding_plan_validate), VYRE_INVALID_ARGUMENT
 *             (binding_mismatch) for outputs that do not, or memory that
 *             overlaps; VYRE_INVALID_ARGUMENT (grid_required) for a workgroup
 *             of two or three axes without a grid; VYRE_INVALID_ARGUMENT
 *             (grid_too_large) if an id would not fit in 32 bits;
 *             VYRE_INVALID_ARGUMENT (variant_not_compiled) for a variant, or a small
 *             max_loop_iterations, that the pipeline was not compiled for;
 *             VYRE_UNSUPPORTED_FEATURE (not_supported) for a max_loop_iterations
 *             that the device cannot count up to;
 *             VYRE_DISPATCH_FAILED: out_of_fuel, timed_out, writer_refused
 *             (outputs are then unspecified);
 *             VYRE_UNSUPPORTED_FEATURE (not_supported) for a check of races
 *             with more than 2^32-1 workgroups;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dispatch(vyre_pipeline *pipeline,
                                                const vyre_dispatch_desc *desc,
                                                vyre_status *st);

/** Runs one dispatch or more, the whole batch before the one wait. @p items are
 *  done in their order: a resident buffer that one writes the next may read;
 *  bytes of the host, slots and places for `kept` they must not share, unless
 *  all only read them. All are checked before the first runs. If one fails, those
 *  after it are not run; the status has the number `item`, its message says which
 *  ran, and each has its `result`.
 *
 *  Work of a device that uses resident buffers is done in the order it was
 *  submitted in: without a fence, the call waits first for all that was submitted
 *  with one before (but not in a callback, on the device's own thread).
 *
 *  With @p fence, the call returns when the work is submitted: inputs are then
 *  copied unless they are borrowed, and outputs must live until the fence says
 *  that it is over; slots, `kept` and what comes back are untouched until then.
 *  Without (NULL), it waits, and nothing is copied that the device can borrow.
 *  Ownership: borrows everything but resident buffers and the pipeline, which it
 *             keeps alive. On VYRE_OK the caller owns *fence
 *             (vyre_fence_release). On failure *fence is NULL.
 *  Lifetime:  @p items and the arrays they point to are read during the call
 *             only.
 *  Threads:   safe.   Blocks: without a fence, until it is over.
 *  Errors:    those of vyre_dispatch; with a fence those of the run come from
 *             vyre_fence_wait. */
VYRE_API VYRE_NODISCARD vyre_code vyre_submit(vyre_pipeline *pipeline,
                                              const vyre_dispatch_desc *items,
                                              size_t item_count,
                                              vyre_fence **fence,
                                              vyre_status *st);

/** Compiles @p program, runs it once and forgets it: what every other way must
 *  give the same bits as.
 *  All else as vyre_pipeline_compile and vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_device_run_program(vyre_device *device, vyre_program *program,
                        const vyre_dispatch_desc *desc, vyre_status *st);

/** Computes the grid that vyre_dispatch would run for @p desc: the given one; else
 *  as many workgroups on x as cover the buffer of the kernel's over(...), or
 *  without over(...) the largest binding that is neither uniform nor shared; at
 *  least 1. A workgroup of two or three axes needs a given grid. Reads sizes
 *  only: pointers may be NULL.
 *  Ownership: borrows everything.   Threads: safe.   Blocks: never.
 *  Errors:    as vyre_dispatch, before it runs. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dispatch_grid(
    const vyre_pipeline *pipeline, const vyre_dispatch_desc *desc,
    uint32_t out[3], vyre_status *st);

/** How many workgroups of how many are done, of all launches of a dispatch and of
 *  all parts between grid barriers. *all is 0 as long as it is not known: before
 *  the dispatch begins, and where a device cannot tell. After one that ended well
 *  both are the same. May be called while the dispatch runs, and before and after.
 *  Ownership: borrows everything.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_progress_read(const vyre_progress *progress, uint64_t *done,
                                 uint64_t *all);

/** Frees a slot's memory and empties it. NULL is fine.
 *  Threads: compatible.  Blocks: on devices that open or close.  Errors: none. */
VYRE_API void vyre_host_buffer_deinit(vyre_host_buffer *slot);

/** Puts @p incoming results into the slots of a caller, one by one: bytes that
 *  fit a slot's capacity are copied there (reused), else the allocations change
 *  places (moved); slots that are too many are emptied, results that are too
 *  many go to slots[slot_count] and after (appended), which must be zeroed and
 *  there: @p slots has room for the larger of both. Every incoming slot is empty
 *  afterwards. Adds to @p stats.
 *  Ownership: as it says.  Threads: compatible.  Blocks: never.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code vyre_host_buffers_replace(
    vyre_host_buffer *incoming, size_t incoming_count, vyre_host_buffer *slots,
    size_t slot_count, vyre_output_stats *stats, vyre_status *st);

/** "owned_input", ...; "?" for a number that is none. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_copy_reason_name(vyre_copy_reason reason);

/** Frees all findings. NULL or zeroed is fine; may be used again afterwards.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_check_report_deinit(vyre_check_report *report);

/** "race", "out_of_bounds", ...; "?" for a number that is none. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_finding_name(vyre_finding_kind kind);

VYRE_END

#endif
