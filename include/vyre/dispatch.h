/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/dispatch.h
 *  Dispatches: run a pipeline, wait for it or submit it with a fence, and
 *  check memory accesses and races while it runs.
 *
 *      vyre_input inputs[] = {vyre_input_bytes(x, sizeof x),
 *                             vyre_input_bytes(y, sizeof y),
 *                             vyre_input_bytes(&a, sizeof a)};
 *      vyre_output outputs[] = {vyre_output_bytes(y, sizeof y)};
 *      vyre_dispatch_desc desc = {.inputs = inputs, .input_count = 3,
 *                                 .outputs = outputs, .output_count = 1};
 *      vyre_code code = vyre_dispatch(pipeline, &desc, &st); */
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

/** Input of a dispatch: host memory or a range of a device buffer. */
typedef struct vyre_input {
  const void *data;   /* host memory, of any alignment */
  size_t size;        /* bytes; for a device buffer, 0 means up to its end */
  vyre_buffer buffer; /* device buffer instead of `data`, if not zeroed */
  /* Start in the device buffer; a multiple of the element size. */
  uint64_t offset;
} vyre_input;

/** Host memory for one output, reused between dispatches. It grows on demand
 *  and never shrinks. A zeroed struct is empty and allocates from the C heap.
 *  Threads:   compatible. */
typedef struct vyre_host_buffer {
  void *data;               /* first byte of the result */
  size_t size;              /* bytes of the last result */
  size_t capacity;          /* bytes allocated from `data` on */
  vyre_allocator allocator; /* source of the memory */
  /* Bytes allocated in front of `data` to align it for the device; 0 for
   * memory that the caller provides. */
  size_t lead;
  /* Id of the device that allocated the memory and counts it; 0 for memory
   * that the caller provides. */
  uint64_t device;
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_host_buffer;

/** Destination of one output: device memory, host memory, or both. Set at most
 *  one of
 *  - buffer: an existing device buffer, written in place;
 *  - new_buffer: a new device buffer of `size` bytes; its handle is stored
 *    there;
 *  and at most one of
 *  - data and size: memory of the caller;
 *  - host_buffer: a host buffer; `size` only for outputs that are sized at run
 *    time.
 *  With device memory, host memory receives a copy of the result after the
 *  kernel, in the same submission. If the input of an input_output is a device
 *  buffer, that buffer is the device memory, unless another one is set: it is
 *  updated in place. A zeroed output is allowed only there. */
typedef struct vyre_output {
  void *data;                    /* memory of the caller, of any alignment */
  size_t size;                   /* bytes */
  vyre_host_buffer *host_buffer; /* host buffer */
  vyre_buffer buffer;            /* device buffer, if not zeroed */
  uint64_t offset;               /* start in the device buffer */
  vyre_buffer *new_buffer; /* receives the handle of a new device buffer */
} vyre_output;

/** Return an input or output of one kind, for code without designated
 *  initialisers.
 *  Threads: safe.  Blocks: never.  Errors: none. */
static inline vyre_input vyre_input_bytes(const void *data, size_t size) {
  vyre_input result = {data, size, {0, 0}, 0};
  return result;
}
static inline vyre_input vyre_input_buffer(vyre_buffer buffer) {
  vyre_input result = {NULL, 0, {buffer.owner, buffer.id}, 0};
  return result;
}
static inline vyre_output vyre_output_bytes(void *data, size_t size) {
  vyre_output result = {data, size, NULL, {0, 0}, 0, NULL};
  return result;
}
static inline vyre_output vyre_output_host_buffer(vyre_host_buffer *host_buffer,
                                                  size_t size) {
  vyre_output result = {NULL, size, host_buffer, {0, 0}, 0, NULL};
  return result;
}
static inline vyre_output vyre_output_buffer(vyre_buffer buffer) {
  vyre_output result = {NULL, 0, NULL, {buffer.owner, buffer.id}, 0, NULL};
  return result;
}
static inline vyre_output vyre_output_new_buffer(vyre_buffer *new_buffer,
                                                 size_t size) {
  vyre_output result = {NULL, size, NULL, {0, 0}, 0, new_buffer};
  return result;
}

/** Time that a dispatch took. A value that was not measured is absent, not 0.
 */
typedef struct vyre_timing {
  uint64_t wall_ns;                       /* from the call to the result */
  bool has_device, has_enqueue, has_wait; /* the value below is present */
  uint64_t device_ns; /* run time by the clock of the device */
  /* From the call to the launch: checks, waits for earlier work, memory
   * allocation. */
  uint64_t enqueue_ns;
  uint64_t wait_ns;     /* from the launch to the result */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_timing;

/** Reasons for a copy: X(enumerator, name). */
#define VYRE_COPY_MAP(X)                      \
  X(VYRE_COPY_NONE, "none")                   \
  X(VYRE_COPY_OWNED, "owned_input")           \
  X(VYRE_COPY_IN_OUT, "input_output_apart")   \
  X(VYRE_COPY_ALIGNMENT, "alignment")         \
  X(VYRE_COPY_DEVICE_MEMORY, "device_memory") \
  X(VYRE_COPY_READBACK, "readback")

/** Reason for a copy. */
typedef enum vyre_copy_reason {
#define VYRE_X2(name, text) name,
  VYRE_COPY_MAP(VYRE_X2) VYRE_COPY_COUNT
#undef VYRE_X2
} vyre_copy_reason;

/** Bytes that a dispatch bound and copied. Zero-filling an output is not a
 *  copy. An output in a device buffer and in host memory counts both ways: as
 *  memory of a device buffer, and as a copy (readback). */
typedef struct vyre_copy_report {
  uint64_t borrowed_bytes;      /* host memory that was used directly */
  uint64_t device_buffer_bytes; /* memory of device buffers */
  /* Part of device_buffer_bytes that is imported host memory. */
  uint64_t mapped_bytes;
  uint64_t copied_bytes; /* host memory that was copied */
  uint32_t copies;       /* number of bindings that were copied */
  /* Name of the first one; owned by the program; NULL if none. */
  const char *first_copied;
  vyre_copy_reason first_reason; /* reason for the first copy */
  uint64_t reserved[4];          /* zero; for future fields */
} vyre_copy_report;

/** Statistics of host buffers, accumulated over all dispatches that receive
 *  this struct. */
typedef struct vyre_output_stats {
  uint64_t filled;         /* host buffers that were filled. Of these: */
  uint64_t reused;         /* buffers whose memory was large enough */
  uint64_t moved;          /* buffers that got new memory */
  uint64_t appended;       /* buffers that were empty and got memory */
  uint64_t incoming_bytes; /* bytes of all results */
  uint64_t copied_bytes;   /* bytes copied by vyre_host_buffers_replace */
  uint64_t moved_bytes;    /* bytes of `moved` buffers */
  uint64_t appended_bytes; /* bytes of `appended` buffers */
  uint64_t retained_capacity_bytes; /* capacity of the filled host buffers */
  uint64_t reserved[4];             /* zero; for future fields */
} vyre_output_stats;

/** Checks to run with the kernel. Every check makes the dispatch slower.
 *  Zeroed: no checks. */
typedef struct vyre_check_options {
  bool out_of_bounds; /* report accesses outside buffers */
  bool races;         /* report data races */
  /* Additional runs in other invocation orders, to find outputs that depend
   * on the order; 0: none. */
  uint32_t schedules;
  uint64_t seed; /* seed of these orders */
} vyre_check_options;

/** Kinds of findings: X(enumerator, name). */
#define VYRE_FINDING_MAP(X)                      \
  X(VYRE_FINDING_OUT_OF_BOUNDS, "out_of_bounds") \
  X(VYRE_FINDING_RACE, "race")                   \
  X(VYRE_FINDING_ORDER_DEPENDENCE, "order_dependence")

/** Kind of a finding. */
typedef enum vyre_finding_kind {
#define VYRE_X2(name, text) name,
  VYRE_FINDING_MAP(VYRE_X2) VYRE_FINDING_COUNT
#undef VYRE_X2
} vyre_finding_kind;

/** Fault in a kernel, found by a checked run. Every pair of source positions
 *  is reported once, with its first occurrence. Lines and columns start at 1;
 *  0 stands for a program without source or a missing second position. */
typedef struct vyre_finding {
  vyre_finding_kind kind;            /* kind of the fault */
  uint32_t line, column;             /* position of the access */
  uint32_t other_line, other_column; /* race: position of the earlier access */
  /* Buffer accessed; order dependence: output that differs. */
  const char *buffer;
  uint64_t index; /* element index, as an absolute value if it is negative */
  bool index_is_negative;       /* the index is below 0 */
  uint32_t length;              /* elements of the buffer */
  uint32_t invocation[3];       /* global id of the invocation */
  uint32_t other_invocation[3]; /* race: global id of the other invocation */
  /* Race: both are in one workgroup, so that a barrier can order them. */
  bool in_workgroup;
  uint64_t count;      /* number of occurrences */
  const char *message; /* one sentence */
  const char *fix;     /* instruction that resolves the fault */
  /* Imported files of the two positions; NULL: the parsed file. */
  const char *file, *other_file;
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_finding;

/** Findings of a checked run, in order of occurrence. Every dispatch clears
 *  the report first. A zeroed struct is empty, ready for use and allocates
 *  from the C heap.
 *  Threads:   compatible. */
typedef struct vyre_check_report {
  vyre_arena arena;       /* memory of the findings and their strings */
  vyre_finding *findings; /* findings */
  size_t count, capacity; /* used and allocated entries of `findings` */
  size_t dropped;         /* findings beyond the first 100 */
  /* Additional runs that were compared with the first one; the checker stops
   * at the first difference. */
  uint32_t schedules;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_check_report;

/** Progress of a running dispatch. Zero the struct, pass it to a dispatch, and
 *  read it with vyre_progress_read while the dispatch runs.
 *  Threads:   safe to read; only one dispatch at a time may write it. */
typedef struct vyre_progress {
  uint64_t completed, total; /* private: updated concurrently by the library */
  uint64_t reserved[2];      /* zero; for future fields */
} vyre_progress;

/** Description of one dispatch. Zeroed: no bindings, and the default for
 *  everything else. */
typedef struct vyre_dispatch_desc {
  const vyre_input *inputs;   /* in input order of the binding plan */
  size_t input_count;         /* entries of `inputs` */
  const vyre_output *outputs; /* in output order of the binding plan */
  size_t output_count;        /* entries of `outputs` */
  /* Instead of `inputs`: memory of every buffer that is not shared, in order of
   * the binding numbers. A persistent buffer takes a device buffer, which is
   * updated in place. An output takes a device buffer, or is zeroed; `size` is
   * then the size of its memory if the kernel does not declare it. `outputs`
   * only names host memory to copy outputs to, and may be left out. */
  const vyre_input *resources;
  size_t resource_count; /* entries of `resources` */
  /* Receives the device buffer of each output, in output order; NULL: not
   * needed. An output without a device buffer gets a new one, which the caller
   * destroys. All are zeroed if the dispatch fails. With this, `outputs` may be
   * left out. */
  vyre_buffer *output_buffers;
  size_t output_buffer_count; /* entries of `output_buffers` */
  /* Number of workgroups. All 0: computed along x (vyre_dispatch_grid),
   * which needs a one-dimensional workgroup. A single 0 counts as 1. */
  uint32_t grid[3];
  /* Variant to run, added with vyre_pipeline_add_variant; NULL: as compiled. */
  const vyre_compile_options *variant;
  /* Inputs do not change until the fence signals, so they need not be copied
   * on submission. */
  bool is_borrowed;
  /* Host buffers get new memory after all checks; their old memory is freed. */
  bool has_fresh_outputs;
  bool require_zero_copy; /* fail instead of copying */
  bool has_repeat_count;  /* `repeat_count` is set; otherwise 1 */
  /* Launches back to back on the same buffers; must not be 0. */
  uint32_t repeat_count;
  /* Fuel: maximum iterations of all loops of one invocation; 0: 2^32-1. The
   * outcome is the same on every device, unless a loop exceeds what the
   * driver can run. Compiled code does not count iterations if the kernel is
   * proven to need at most 2^20. A limit below the proven number needs
   * vyre_compile_options.counts_iterations. Devices other than "ref" count
   * at most 2^32-1 iterations. They refuse a larger limit (not_supported),
   * unless the kernel is proven to need at most 2^32-1. */
  uint64_t max_loop_iterations;
  /* Maximum time of all launches together, from the first launch on; waits
   * before it do not count; 0: none. */
  uint64_t timeout_ns;
  uint64_t max_output_bytes; /* maximum size of all outputs together; 0: none */
  /* Name of this kind of dispatch in the trace; may be NULL. */
  const char *profile;
  const char *label; /* name of this dispatch in the trace; may be NULL */
  vyre_writer print; /* output of print(...); zeroed: discarded */
  vyre_check_options check;  /* checks to run */
  vyre_check_report *report; /* receives findings; required if `check` is set */

  /* Results; each may be NULL. Valid when the dispatch has finished. */
  vyre_timing *timing;             /* time taken */
  vyre_copy_report *copies;        /* bytes bound and copied */
  vyre_output_stats *output_stats; /* host buffer statistics; added to */
  vyre_code *result; /* result of this item; VYRE_NOT_RUN if it did not run */

  /* Progress, updated while the dispatch runs; may be NULL; must live until
   * the dispatch has finished. */
  vyre_progress *progress;
} vyre_dispatch_desc;

VYRE_BEGIN

/** Runs @p pipeline once and waits for it. A device without a queue runs it on
 *  the calling thread.
 *
 *  Outputs start as zero bytes and input_outputs as their input; elements that
 *  the kernel does not write keep this value. A device buffer that is bound to
 *  an input_output or a persistent buffer is updated in place: it is not
 *  cleared, and the next dispatch sees the result. A host input of a declared
 *  count has exactly its bytes; a device buffer may be longer. An output that
 *  is sized at run time has the size of the memory given. Input and output of
 *  an input_output may use the same memory; other memory may only overlap if
 *  nothing writes it. Findings of a
 *  check are not a failure; they go to the report.
 *  Ownership: borrows all arguments.
 *  Lifetime:  the memory can be changed or freed when the call returns.
 *  Threads:   safe; the report is compatible.
 *  Blocks:    until the dispatch has finished; with device buffers, also until
 *             all work submitted before has finished (vyre_submit).
 *  Errors:    VYRE_INVALID_PROGRAM for inputs that do not fit the program
 *             (vyre_binding_plan_validate). VYRE_INVALID_ARGUMENT:
 *             binding_mismatch for outputs that do not fit or memory that
 *             overlaps; grid_required for a workgroup of two or three
 *             dimensions without a grid; grid_too_large if an id exceeds 32
 *             bits; variant_not_compiled for a variant or a low
 *             max_loop_iterations that the pipeline was not compiled for.
 *             VYRE_DISPATCH_FAILED: out_of_fuel, timed_out, writer_refused;
 *             the contents of outputs and of device buffers that the kernel
 *             writes are unspecified then. VYRE_UNSUPPORTED_FEATURE
 *             (not_supported) for a race check of more than 2^32-1 workgroups.
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dispatch(vyre_pipeline *pipeline,
                                                const vyre_dispatch_desc *desc,
                                                vyre_status *st);

/** Submits a batch of dispatches of one pipeline. Every dispatch form uses
 *  this function.
 *
 *  Items run in array order: an item can read a device buffer that an earlier
 *  item wrote. Items must not share host memory, host buffers or new_buffer
 *  destinations, unless all of them only read it. All items are checked before
 *  the first one runs. If an item fails, later items do not run. The status
 *  number `item` is its index, the message lists the items that ran, and each
 *  item has its `result`.
 *
 *  With @p fence, the call returns after submission. Inputs are copied first
 *  unless they are borrowed. Outputs must live until the fence signals; the
 *  library writes host buffers, new_buffer handles and results only then.
 *  Without a fence (NULL), the call waits, and copies only what the device
 *  cannot use directly.
 *
 *  Work on device buffers runs in submission order. A call without a fence
 *  first waits for all work submitted with a fence, except in a fence
 *  callback, which runs on a thread of the device.
 *  Ownership: borrows all arguments, but retains device buffers and the
 *             pipeline. On VYRE_OK the caller owns *fence
 *             (vyre_fence_release). On failure *fence is NULL.
 *  Lifetime:  @p items and their arrays are read during the call only.
 *  Threads:   safe.
 *  Blocks:    without a fence, until the batch has finished.
 *  Errors:    those of vyre_dispatch. With a fence, vyre_fence_wait reports
 *             failures of the run. */
VYRE_API VYRE_NODISCARD vyre_code vyre_submit(vyre_pipeline *pipeline,
                                              const vyre_dispatch_desc *items,
                                              size_t item_count,
                                              vyre_fence **fence,
                                              vyre_status *st);

/** Compiles @p program, runs it once and releases the pipeline. This is the
 *  reference run: every other dispatch form gives the same bits. Ownership,
 *  lifetime, threads, blocks, errors: as vyre_pipeline_compile and
 *  vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_device_run_program(vyre_device *device, vyre_program *program,
                        const vyre_dispatch_desc *desc, vyre_status *st);

/** Computes the grid that vyre_dispatch uses for @p desc. A given grid is
 *  returned unchanged. Otherwise the grid covers, along x, the buffer of the
 *  kernel's over(...); without over(...), the longest binding that is neither
 *  uniform nor shared. It has at least one workgroup. Workgroups of two or
 *  three dimensions need a given grid. Reads sizes only: data pointers may be
 *  NULL.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    those that vyre_dispatch reports before it runs. */
VYRE_API VYRE_NODISCARD vyre_code vyre_dispatch_grid(
    const vyre_pipeline *pipeline, const vyre_dispatch_desc *desc,
    uint32_t out[3], vyre_status *st);

/** Reads the number of completed workgroups and their total, over all launches
 *  and all phases between grid barriers of a dispatch. *total is 0 while the
 *  total is unknown: before the dispatch starts, and on devices that do not
 *  report progress. Both are equal after a successful dispatch. Can be called
 *  at any time.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API void vyre_progress_read(const vyre_progress *progress,
                                 uint64_t *completed, uint64_t *total);

/** Frees the memory of a host buffer and zeroes its size. Accepts NULL.
 *  Threads:   compatible.
 *  Blocks:    while a device opens or closes.
 *  Errors:    none. */
VYRE_API void vyre_host_buffer_deinit(vyre_host_buffer *buffer);

/** Moves @p incoming results into the host buffers of a caller, one by one. A
 *  result that fits into the capacity of its buffer is copied (reused);
 *  otherwise the two allocations are swapped (moved). Surplus buffers are
 *  emptied. Surplus results go to buffers[buffer_count] and after (appended):
 *  @p buffers has space for the larger number, and these entries are zeroed.
 *  All incoming buffers are empty afterwards. Adds to @p stats, which may be
 *  NULL.
 *  Ownership: moves allocations from @p incoming to @p buffers.
 *  Threads:   compatible.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_host_buffers_replace(vyre_host_buffer *incoming, size_t incoming_count,
                          vyre_host_buffer *buffers, size_t buffer_count,
                          vyre_output_stats *stats, vyre_status *st);

/** Returns the name of a reason ("alignment"), or "?" for an unknown value.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_copy_reason_name(vyre_copy_reason reason);

/** Frees all findings. The struct can be used again. Accepts NULL and a zeroed
 *  struct.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_check_report_deinit(vyre_check_report *report);

/** Prints the findings with file:line:column, the source line and a caret, the
 *  fix and the kind, like vyre_diagnostics_print. @p source may be NULL.
 *  Returns false if @p writer fails or @p report is NULL.
 *  Threads:   as the report.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_check_report_print(const vyre_check_report *report,
                                      const char *file, const char *source,
                                      size_t source_length, vyre_writer writer);

/** Returns the name of a kind of finding ("race"), or "?" for an unknown
 *  value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_finding_name(vyre_finding_kind kind);

VYRE_END

#endif
