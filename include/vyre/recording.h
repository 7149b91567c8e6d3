/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/recording.h
 *  Recordings: dispatches, copies, loops, work queues and wave graphs that are
 *  checked once and replayed many times.
 *
 *      vyre_recording *rec;
 *      uint32_t x, y;
 *      vyre_recording_create(device, &rec, &st);
 *      vyre_recording_add_slot(rec, "x", 0, &x, &st);
 *      vyre_recording_add_slot(rec, "y", 0, &y, &st);
 *      vyre_slot_range in[] = {vyre_slot_range_all(x)};
 *      vyre_slot_range out[] = {vyre_slot_range_all(y)};
 *      vyre_recorded_dispatch d = {.inputs = in, .input_count = 1,
 *                                  .outputs = out, .output_count = 1};
 *      vyre_recording_add_dispatch(rec, pipeline, &d, &st);
 *      vyre_recording_seal(rec, &st);
 *      vyre_slot_binding binding_x = {.buffer = a}, binding_y = {.buffer = b};
 *      vyre_recording_bind_slot(rec, x, &binding_x, &st);
 *      vyre_recording_bind_slot(rec, y, &binding_y, &st);
 *      vyre_recording_replay(rec, NULL, NULL, &st);
 *
 *  A recording refers to slots, not to memory. Memory bound to a slot can be
 *  changed between replays; only dispatches that use the slot are checked
 *  again. A replay is rejected before anything runs if bound memory was freed,
 *  moved or resized. */
#ifndef VYRE_RECORDING_H
#define VYRE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/buffer.h"
#include "vyre/capture.h"
#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/export.h"
#include "vyre/fence.h"
#include "vyre/pipeline.h"
#include "vyre/status.h"
#include "vyre/wave_graph.h"
#include "vyre/work_queue.h"
#include "vyre/writer.h"

/** Sequence of commands. Reference counted.
 *
 *  Threads:   compatible before vyre_recording_seal, safe afterwards. Replays
 *             with a fence run in the order of their calls. If two replays
 *             without a fence on two threads use the same bytes, and one of
 *             them writes, the later one is rejected; with wait_for_conflicts
 *             it waits. */
typedef struct vyre_recording vyre_recording;

/** Memory bound to a slot. Set exactly one of
 *  - data and size: host memory, which must live while it is bound or used by
 *    a replay;
 *  - buffer: a device buffer, or `size` bytes of it from `offset` on;
 *  - host_buffer: the current bytes of a host buffer. A replay is rejected if
 *    it was moved or resized since it was bound. */
typedef struct vyre_slot_binding {
  void *data;         /* host memory */
  size_t size;        /* bytes; for a device buffer, 0 means up to its end */
  vyre_buffer buffer; /* device buffer, if not zeroed */
  uint64_t offset;    /* start in the device buffer */
  vyre_host_buffer *host_buffer; /* host buffer */
  bool is_read_only;             /* reject recordings that write to the slot */
  uint64_t reserved[2];          /* must be zero */
} vyre_slot_binding;

/** Range of the memory bound to a slot. */
typedef struct vyre_slot_range {
  uint32_t slot;   /* number of the slot */
  uint64_t offset; /* bytes; for a dispatch, a multiple of the element size */
  /* Bytes; 0: the size that the kernel declares, or else up to the end. */
  uint64_t size;
} vyre_slot_range;

/** Returns the range of all memory bound to a slot.
 *  Threads: safe.  Blocks: never.  Errors: none. */
static inline vyre_slot_range vyre_slot_range_all(uint32_t slot) {
  vyre_slot_range result = {slot, 0, 0};
  return result;
}

/** Dispatch of a recording: like vyre_dispatch_desc, with slot ranges instead
 *  of memory. */
typedef struct vyre_recorded_dispatch {
  const vyre_slot_range *inputs; /* in input order of the binding plan */
  size_t input_count;            /* entries of `inputs` */
  /* In output order of the binding plan. An input_output with two equal ranges
   * is updated in place. So is one with a device buffer as input and host
   * memory as output, which receives a copy. */
  const vyre_slot_range *outputs;
  size_t output_count; /* entries of `outputs` */
  uint32_t grid[3];    /* as in vyre_dispatch_desc */
  /* Variant to run, added with vyre_pipeline_add_variant; NULL: as compiled. */
  const vyre_compile_options *variant;
  bool has_repeat_count; /* `repeat_count` is set; otherwise 1 */
  /* Launches back to back on the same buffers; must not be 0. */
  uint32_t repeat_count;
  uint64_t max_loop_iterations; /* as in vyre_dispatch_desc */
  uint64_t timeout_ns;          /* maximum time of its launches; 0: none */
  bool require_zero_copy;       /* fail instead of copying */
  /* Name in vyre_recording_print and in the trace; NULL: the name of the
   * kernel. */
  const char *label;
  /* Output of print(...). Must live as long as the recording. Concurrent
   * replays call it concurrently. Must not wait for submitted work. */
  vyre_writer print;
  /* Alternative to `inputs`: one range for every buffer that is not shared, in
   * order of the binding numbers. `outputs` is then optional, and names host
   * memory that outputs are copied to. In both lists, an output with slot
   * VYRE_NO_SLOT has no memory. */
  const vyre_slot_range *resources;
  size_t resource_count; /* entries of `resources` */
  uint64_t reserved[2];  /* must be zero */
} vyre_recorded_dispatch;

/** Run of a work queue in a recording: like vyre_queue_run, with slot ranges
 *  instead of memory. */
typedef struct vyre_recorded_queue {
  /* Ranges of the buffers of the kernel, as in vyre_recorded_dispatch. */
  const vyre_slot_range *inputs;
  size_t input_count;
  const vyre_slot_range *outputs;
  size_t output_count;
  const vyre_slot_range *resources;
  size_t resource_count;
  uint64_t max_loop_iterations; /* as in vyre_dispatch_desc */
  /* Items of the first window, which replace those that the queue holds, as by
   * vyre_queue_fill; NULL: the queue keeps its items. */
  const vyre_slot_range *items;
  /* A u32: number of items at the start of `items`, read when the replay
   * arrives here; NULL: `items` has no others. */
  const vyre_slot_range *count;
  /* Receives the figures of each replay. Must live as long as the recording;
   * may be NULL. */
  vyre_queue_stats *stats;
  /* Name in vyre_recording_print; NULL: the name of the kernel. */
  const char *label;
  uint64_t reserved[4]; /* must be zero */
} vyre_recorded_queue;

/** Memory of a resource of a recorded wave graph: all bytes of the resource. */
typedef struct vyre_recorded_wave_io {
  uint32_t resource;     /* number of the resource */
  vyre_slot_range range; /* size 0: the size of the resource */
} vyre_recorded_wave_io;

/** Run of a wave graph in a recording: like vyre_wave_run, with slot ranges
 *  instead of memory. Host memory is bound to inputs and outputs, device
 *  buffers to external resources. */
typedef struct vyre_recorded_wave_graph {
  const vyre_recorded_wave_io *inputs; /* one per input, in any order */
  size_t input_count;
  const vyre_recorded_wave_io *outputs; /* one per output */
  size_t output_count;
  const vyre_recorded_wave_io *externals; /* one per external resource */
  size_t external_count;
  /* Receives the figures of each replay. Must live as long as the recording;
   * may be NULL. */
  vyre_wave_result *result;
  uint64_t reserved[4]; /* must be zero */
} vyre_recorded_wave_graph;

/** Statistics of one replay. */
typedef struct vyre_replay_result {
  uint64_t dispatches; /* dispatches that ran */
  uint64_t skipped;    /* dispatches, queues and wave graphs skipped because
                               the loop flag was 0 */
  uint64_t copies;     /* copies that ran */
  uint64_t skipped_uploads; /* uploads left out because of skip_uploads */
  uint64_t iterations;      /* iterations of all loops */
  uint64_t flag_reads;      /* times that the host read a loop flag */
  uint64_t rebuilt; /* dispatches rebuilt because another memory was bound */
  bool reached_max; /* a loop ended at max_iterations with its flag not 0 */
  uint64_t wall_ns; /* from the call to the result */
  uint64_t queues;  /* work queues that ran to their end */
  uint64_t wave_graphs; /* wave graphs that ran */
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_replay_result;

/** Options of a replay. Zeroed: run all commands without a time limit. */
typedef struct vyre_replay_options {
  /* Leave out copies from the host to device buffers, whose contents are
   * still there from the last replay; rejected if the capture plan does not
   * allow it. */
  bool skip_uploads;
  bool fail_at_max; /* fail if a loop ends at its max_iterations */
  /* Wait for a replay on another thread that uses the same bytes, if one of
   * both writes; otherwise the replay is rejected. */
  bool wait_for_conflicts;
  /* Maximum time of all commands together; waits before the first one do not
   * count; 0: none. */
  uint64_t timeout_ns;
  /* Receives statistics when the replay has finished, also after a failure;
   * may be NULL. */
  vyre_replay_result *result;
  uint64_t reserved[4]; /* must be zero */
} vyre_replay_options;

/** Slot number that means "none". */
#define VYRE_NO_SLOT UINT32_MAX

/** Maximum nesting depth of loops. */
enum { VYRE_RECORDING_DEPTH = 8 };

VYRE_BEGIN

/** Creates an empty recording for @p device.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_recording_release). On
 *             failure *out is NULL. Retains the device.
 *  Threads:   safe.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_DEVICE_LOST; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_create(vyre_device *device,
                                                        vyre_recording **out,
                                                        vyre_status *st);

/** Adds a reference, which needs one more vyre_recording_release. Returns @p
 *  recording.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_recording *vyre_recording_retain(vyre_recording *recording);

/** Drops a reference. The last release frees the recording; an active replay
 *  holds a reference. Accepts NULL.
 *  Threads:   safe.
 *  Blocks:    as vyre_device_release, if the recording holds the last
 *             reference to the device.
 *  Errors:    none. */
VYRE_API void vyre_recording_release(vyre_recording *recording);

/** Adds a named slot. If @p size is not 0, exactly that many bytes must be
 *  bound to it.
 *  Ownership: the name is copied. *out receives the number of the slot, from
 *             0; VYRE_NO_SLOT on failure.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for a name that is empty, longer than 63
 *             bytes or already in use, or a sealed recording;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_add_slot(vyre_recording *recording, const char *name,
                        uint64_t size, uint32_t *out, vyre_status *st);

/** Adds a slot without a name and binds it permanently. Ownership, threads,
 *  blocks, errors: as vyre_recording_add_slot and vyre_recording_bind_slot. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_add_fixed_slot(
    vyre_recording *recording, const vyre_slot_binding *binding, uint32_t *out,
    vyre_status *st);

/** Returns the number of the slot called @p name, or VYRE_NO_SLOT.
 *  Threads:   as the recording.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API uint32_t vyre_recording_find_slot(const vyre_recording *recording,
                                           const char *name);

/** Adds a dispatch.
 *  Ownership: retains the pipeline; copies @p desc and its arrays.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for a number of ranges that differs from
 *             the bindings of the kernel, an unknown slot, a pipeline of
 *             another device, a variant that was not compiled, a repeat count
 *             of 0, or a sealed recording; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_add_dispatch(
    vyre_recording *recording, vyre_pipeline *pipeline,
    const vyre_recorded_dispatch *desc, vyre_status *st);

/** Adds a run of a work queue. The host waits once per submission of the queue
 *  (vyre_queue_max_submissions). A replay that stops the queue, for example
 *  because it is full, fails as vyre_queue_run does; with `items`, the next
 *  replay starts again. The timeout of a replay limits the queue too.
 *  Ownership: retains the queue; copies @p desc and its arrays.
 *  Threads:   compatible. The queue is not used elsewhere during a replay.
 *  Blocks:    on the allocator.
 *  Errors:    as vyre_recording_add_dispatch; `count` without `items`. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_add_queue(vyre_recording *recording, vyre_queue *queue,
                         const vyre_recorded_queue *desc, vyre_status *st);

/** Adds a run of a sealed wave graph.
 *  Ownership: retains the graph; copies @p desc and its arrays.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for a graph that is not sealed or of
 *             another device, an unknown slot, an input, output or external
 *             resource that is missing, is named twice or lacks this role, or
 *             a sealed recording; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_add_wave_graph(
    vyre_recording *recording, vyre_wave_graph *graph,
    const vyre_recorded_wave_graph *desc, vyre_status *st);

/** Adds a copy of the bytes of @p from to @p to. If one size is 0, the other
 *  one counts; if both are 0, the sizes of the bound memory must be equal. A
 *  copy from host memory to a device buffer is an upload, the reverse a
 *  download.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    as vyre_recording_add_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_add_copy(vyre_recording *recording, vyre_slot_range from,
                        vyre_slot_range to, vyre_status *st);

/** Adds a barrier: all commands before it finish before any command after it
 *  starts. Barriers between commands that depend on each other are inserted by
 *  vyre_recording_seal; vyre_recording_print shows them.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    as vyre_recording_add_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_add_barrier(vyre_recording *recording, vyre_status *st);

/** Begins a loop. The commands up to vyre_recording_end_while repeat while the
 *  u32 at @p flag is not 0, at most @p max_iterations times. Before every
 *  iteration the flag is copied to a predicate, which every dispatch of the
 *  iteration tests. The host reads the flag once in @p check_interval
 *  iterations (0: in every iteration). A larger interval means fewer waits,
 *  but more skipped iterations after the flag has become 0.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for a maximum of 0, more than
 *             VYRE_RECORDING_DEPTH nested loops, or a flag offset that is not
 *             a multiple of 4; those of vyre_recording_add_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_begin_while(
    vyre_recording *recording, vyre_slot_range flag, uint64_t max_iterations,
    uint32_t check_interval, vyre_status *st);

/** Ends the innermost loop.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT if no loop is open; those of
 *             vyre_recording_add_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_end_while(vyre_recording *recording, vyre_status *st);

/** Makes the recording immutable and ready for replay. Checks everything that
 *  does not depend on bound memory, plans the capture of every dispatch and
 *  allocates its tables. A failed seal can be repeated.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for an open loop or a range that exceeds
 *             the size of its slot; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_seal(vyre_recording *recording,
                                                      vyre_status *st);

/** Binds memory to a slot and replaces the previous binding; NULL unbinds the
 *  slot. Can be called before and after vyre_recording_seal, also during
 *  replays. Active replays continue with the bindings that they started with,
 *  up to eight sets of bindings at once. Host memory must live while it is
 *  bound or used by a replay.
 *  Ownership: copies *binding. Does not retain a device buffer: once it is
 *             destroyed, replays are rejected.
 *  Threads:   as the recording.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT, with the name of the slot: an invalid
 *             handle, a range outside the buffer, another size than the slot
 *             requires (binding_mismatch), active replays with eight sets of
 *             bindings, a fixed slot. VYRE_OUT_OF_MEMORY. The previous binding
 *             stays on failure. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_bind_slot(vyre_recording *recording, uint32_t slot,
                         const vyre_slot_binding *binding, vyre_status *st);

/** Runs the recording with its current bindings. Everything is checked before
 *  the first command runs. If a command fails, later commands do not run, and
 *  the status number `command` is its index. The recording can be replayed
 *  again.
 *
 *  With @p fence, the call returns when the replay is queued. Device buffers
 *  are retained until it has finished; host memory must live as long. Without
 *  a fence, a replay that uses device buffers, or of a recording with queued
 *  replays, first waits for all work submitted before, except in a fence
 *  callback, which runs on a thread of the device. Replays of one recording
 *  with different bindings can run at the same time. A repeated replay without
 *  a fence and without new bindings allocates nothing.
 *  Ownership: on VYRE_OK the caller owns *fence (vyre_fence_release). On
 *             failure *fence is NULL. Borrows @p options (NULL: zeroed) for
 *             the call.
 *  Threads:   safe.
 *  Blocks:    without a fence, until the replay has finished; with one, never
 *             on queued work.
 *  Errors:    VYRE_INVALID_ARGUMENT, with the name of the slot: unbound_slot;
 *             stale_handle for memory that was freed, moved or resized since
 *             it was bound; binding_mismatch; read_only; two slots that
 *             overlap, one of which is written; unsafe_replay for skip_uploads
 *             where it is not allowed (reported by the fence if it depends on
 *             queued replays); resource_busy without a fence, if a replay on
 *             another thread uses the same memory and one of both writes; a
 *             replay without a fence from a callback of this recording.
 *             VYRE_DISPATCH_FAILED (max_iterations_reached). Those of
 *             vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_replay(
    vyre_recording *recording, const vyre_replay_options *options,
    vyre_fence **fence, vyre_status *st);

/** Fills *out with the sums of the capture plans of all dispatches;
 *  resident_input_replay_safe is true only if it is true for all. Zeroed
 *  before vyre_recording_seal.
 *  Ownership: fills *out.
 *  Threads:   as the recording.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API void vyre_recording_capacities(const vyre_recording *recording,
                                        vyre_capture_plan *out);

/** Prints the slots with their bindings, then the commands with inserted
 *  barriers and, once known, their grids. Returns false if @p writer fails or
 *  @p recording is NULL. The writer must not use the recording.
 *  Threads:   as the recording.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_recording_print(vyre_recording *recording,
                                   vyre_writer writer);

VYRE_END

#endif
