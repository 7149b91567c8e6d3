/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/recording.h
 *  Recordings: dispatches, copies and loops that are checked once and run again
 *  and again.
 *
 *      vyre_recording *rec;
 *      uint32_t x, y;
 *      vyre_recording_create(device, &rec, &st);
 *      vyre_recording_add_slot(rec, "x", 0, &x, &st);
 *      vyre_recording_add_slot(rec, "y", 0, &y, &st);
 *      vyre_slot_range in[] = {vyre_slot_range_all(x)}, out[] = {vyre_slot_range_all(y)};
 *      vyre_recorded_dispatch d = {.inputs = in, .input_count = 1,
 *                                  .outputs = out, .output_count = 1};
 *      vyre_recording_add_dispatch(rec, pipeline, &d, &st);
 *      vyre_recording_seal(rec, &st);
 *      vyre_recording_bind_slot(rec, x, &(vyre_slot_binding){.resident = a}, &st);
 *      vyre_recording_bind_slot(rec, y, &(vyre_slot_binding){.resident = b}, &st);
 *      vyre_recording_replay(rec, NULL, NULL, &st);
 *
 *  A recording names slots, not memory. What is bound to a slot can be changed
 *  between replays; only the dispatches that use the slot are looked at again.
 *  What was freed, moved or resized since it was bound is refused before
 *  anything runs. */
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
#include "vyre/writer.h"

/** Until vyre_recording_seal, compatible: one thread records. After it, safe:
 *  replays with a fence are done in the order in which they were asked for; of
 *  two without, on two threads, that use the same bytes, which one of them
 *  writes, the later is refused, or waits (takes_turns). */
typedef struct vyre_recording vyre_recording;

/** What is bound to a slot: exactly one of
 *    data, size    bytes of the host, which must stay until they are no longer
 *                  bound and no replay uses them
 *    resident      a resident buffer, or size bytes of it from offset on
 *    slot          the bytes that an output slot holds now; it must not move or
 *                  change its size while it is bound, and is refused if it did */
typedef struct vyre_slot_binding {
  void *data;
  size_t size;        /* resident: 0 means up to its end */
  vyre_buffer buffer; /* if not zeroed */
  uint64_t offset;    /* in the resident buffer */
  vyre_host_buffer *host_buffer;
  bool is_read_only; /* refused where the recording writes */
} vyre_slot_binding;

/** A part of what is bound to a slot. */
typedef struct vyre_slot_range {
  uint32_t slot;
  uint64_t offset; /* bytes; for a dispatch a multiple of the element */
  uint64_t size;   /* 0: what the kernel declares, else up to the end */
} vyre_slot_range;

/** All of a slot.  Threads: safe.  Blocks: never.  Errors: none. */
static inline vyre_slot_range vyre_slot_range_all(uint32_t slot) {
  vyre_slot_range made = {slot, 0, 0};
  return made;
}

/** One dispatch of a recording: as vyre_dispatch_desc, with places. */
typedef struct vyre_recorded_dispatch {
  const vyre_slot_range *inputs; /* in input order of the binding plan */
  size_t input_count;
  const vyre_slot_range *outputs; /* in output order; an input_output whose two
                                places are the same stays where it is */
  size_t output_count;
  uint32_t grid[3];                    /* as vyre_dispatch_desc */
  const vyre_compile_options *variant; /* one that was prepared; NULL: as
                                          compiled */
  bool has_repeat_count;               /* else 1 */
  uint32_t repeat_count;
  uint64_t max_loop_iterations; /* as vyre_dispatch_desc */
  uint64_t timeout_ns;          /* 0: none */
  bool require_zero_copy;       /* fail rather than copy */
  const char *label; /* for the print and the trace; NULL: the kernel's
                              name */
  vyre_writer print; /* for print(...); must live as long as it. Called
                              by replays: by two at once, where two run at
                              once. Must not wait for work that is queued */
} vyre_recorded_dispatch;

/** What one replay did. */
typedef struct vyre_replay_result {
  uint64_t dispatches;      /* that ran */
  uint64_t skipped;         /* dispatches whose predicate was 0 */
  uint64_t copies;          /* that were made */
  uint64_t skipped_uploads; /* uploads that keep_inputs left out */
  uint64_t iterations;      /* of all loops */
  uint64_t flag_reads;      /* at predicates, by the host */
  uint64_t rebuilt; /* dispatches that were made anew, as a slot was bound */
  bool reached_max; /* a loop ended by its maximum, with its flag not 0 */
  uint64_t wall_ns;
} vyre_replay_result;

/** How to replay. Zeroed: all of it, no limit of time. */
typedef struct vyre_replay_options {
  bool skip_uploads; /* leave out copies from the host to resident buffers: what
                       the last replay uploaded is still there. Refused where
                       the capture plan does not call that safe */
  bool fail_at_max;  /* a loop that ends by its maximum is a failure */
  bool
      wait_for_conflicts; /* a replay on another thread that uses the same bytes, which
                        one of both writes, is waited for, and not refused */
  uint64_t timeout_ns;        /* of its commands together: what it waits for
                                 before does not count; 0: none */
  vyre_replay_result *result; /* NULL: nobody asks. Filled when it is over,
                                 also after a failure */
} vyre_replay_options;

/** No slot. */
#define VYRE_NO_SLOT UINT32_MAX

enum { VYRE_RECORDING_DEPTH = 8 }; /* loops in loops */

VYRE_BEGIN

/** Makes an empty recording for @p device.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_recording_release). On
 *             failure *out is NULL. Retains the device.
 *  Threads:   safe.  Blocks: on the allocator.
 *  Errors:    VYRE_DEVICE_LOST; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_create(vyre_device *device,
                                                        vyre_recording **out,
                                                        vyre_status *st);

/** Keeps a recording: one more vyre_recording_release is due. Returns it.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_recording *vyre_recording_retain(vyre_recording *recording);

/** Lets go of a recording; the last one frees it, and a replay that goes on
 *  keeps it. NULL is fine.  Threads: safe.  Blocks: if it is the last that holds
 *  the device, as vyre_device_release.  Errors: none. */
VYRE_API void vyre_recording_release(vyre_recording *recording);

/** Adds a slot. With @p size, exactly so many bytes must be bound to it; 0: as
 *  many as there are.
 *  Ownership: the name is copied; *out is its number, from 0, VYRE_NO_SLOT on
 *             failure.
 *  Threads:   compatible.  Blocks: on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for a name that is empty, longer than 63
 *             bytes or there already, or a recording that is finished;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_add_slot(vyre_recording *recording, const char *name,
                        uint64_t size, uint32_t *out, vyre_status *st);

/** Adds a slot without a name that is bound now and for good.
 *  All else as vyre_recording_add_slot and vyre_recording_bind_slot. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_add_fixed_slot(
    vyre_recording *recording, const vyre_slot_binding *resource, uint32_t *out,
    vyre_status *st);

/** The slot of that name, or VYRE_NO_SLOT.
 *  Threads: as the recording.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_recording_find_slot(const vyre_recording *recording,
                                           const char *name);

/** Adds a dispatch.
 *  Ownership: retains the pipeline; copies @p desc and its arrays.
 *  Threads:   compatible.  Blocks: on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for places that are not as many as the
 *             kernel's bindings or name no slot, a pipeline of another device,
 *             a variant that was not prepared, 0 iterations, or a recording
 *             that is finished; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_add_dispatch(
    vyre_recording *recording, vyre_pipeline *pipeline,
    const vyre_recorded_dispatch *desc, vyre_status *st);

/** Adds a copy: bytes of @p from become those of @p to. One of them may leave
 *  its size to the other, or both to what is bound, which must then be equal.
 *  From the host to a resident buffer it is an upload, the other way round a
 *  download.
 *  Threads: compatible.  Blocks: on the allocator.
 *  Errors:  as vyre_recording_add_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_add_copy(vyre_recording *recording, vyre_slot_range from,
                        vyre_slot_range to, vyre_status *st);

/** All before it is over before anything behind it begins. Where one command
 *  needs what another writes, that is so without being asked for: finish puts
 *  barriers there, and the print shows them.
 *  Threads: compatible.  Blocks: on the allocator.  Errors: as above. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_add_barrier(vyre_recording *recording, vyre_status *st);

/** Begins a loop: what follows up to vyre_recording_end_while is done while the
 *  u32 at @p flag is not 0, at most @p max_rounds times. The flag is copied to a
 *  predicate before every round, which every dispatch of the round tests. The
 *  host looks at it once in @p stretch rounds (0: every round): a larger stretch
 *  means fewer waits, and rounds that are only skipped after the flag fell.
 *  Threads: compatible.  Blocks: on the allocator.
 *  Errors:  VYRE_INVALID_ARGUMENT for a maximum of 0, more than
 *           VYRE_RECORDING_DEPTH loops in each other, a flag whose offset is no
 *           multiple of 4; as above. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_begin_while(
    vyre_recording *recording, vyre_slot_range flag, uint64_t max_rounds,
    uint32_t stretch, vyre_status *st);

/** Ends the innermost loop.
 *  Threads: compatible.  Blocks: on the allocator.
 *  Errors:  VYRE_INVALID_ARGUMENT if none is open; as above. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_end_while(vyre_recording *recording, vyre_status *st);

/** Ends the recording: checks all that can be without what is bound, plans the
 *  capture of every dispatch, and takes memory for exactly that. From now on it
 *  is bound and replayed, and not changed.
 *  Threads: compatible.  Blocks: on the allocator.
 *  Errors:  VYRE_INVALID_ARGUMENT for a loop that is open, or a place beyond its
 *           slot's size; VYRE_OUT_OF_MEMORY. It can then be tried again. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_seal(vyre_recording *recording,
                                                      vyre_status *st);

/** Binds @p resource to a slot, instead of what was there; NULL unbinds it. May
 *  be done before or after vyre_recording_seal, also while replays are on
 *  their way: those go on with what was bound when they were asked for, up to
 *  eight sets of bindings at once. What is not resident must live until it is
 *  bound no more and no replay uses it.
 *  Ownership: copies *resource; does not keep a resident buffer from being
 *             freed: a replay then refuses to run.
 *  Threads:   as the recording.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT, with the slot's name: a handle that is dead
 *             or of another device, a range outside, another size than the
 *             slot's (binding_mismatch), replays with eight sets of bindings
 *             that are not over, a slot of vyre_recording_add_fixed_slot;
 *             VYRE_OUT_OF_MEMORY. What was bound then stays. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_recording_bind_slot(vyre_recording *recording, uint32_t slot,
                         const vyre_slot_binding *resource, vyre_status *st);

/** Runs the recording as it is bound. All is checked before anything runs. If a
 *  command fails, those after it are not run, and the status has the number
 *  `command`; the recording can be replayed again.
 *
 *  With @p fence it returns when the replay is in the device's queue; resident
 *  buffers are kept until it is over, and bytes of the host must live so long.
 *  Without, a replay of resident buffers, or of a recording that has replays in
 *  the queue, waits first for all that was submitted before (but not in a
 *  callback of a replay, or on the device's own thread). Replays of one recording
 *  with different memory bound run at the same time.
 *  A replay without a fence, of a recording that ran before and was not bound
 *  anew, allocates nothing.
 *  Ownership: on VYRE_OK the caller owns *fence (vyre_fence_release). On failure
 *             *fence is NULL. Borrows @p options (NULL: zeroed) for the call.
 *  Threads:   safe.
 *  Blocks:    without a fence, until it is over; with one, never on queued work.
 *  Errors:    VYRE_INVALID_ARGUMENT, with the slot's name: unbound_slot,
 *             stale_handle (freed, moved or resized since it was bound),
 *             binding_mismatch, read_only, or two slots that overlap, of which
 *             one is written; unsafe_replay (behind replays that are not over,
 *             the fence tells of uploads that were not done); resource_busy
 *             (without a fence: what it uses is used by a replay on another
 *             thread, and one of both writes it); a replay without a fence
 *             that a callback of this one asks for; VYRE_DISPATCH_FAILED
 *             (max_iterations_reached); those of vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code vyre_recording_replay(
    vyre_recording *recording, const vyre_replay_options *options,
    vyre_fence **fence, vyre_status *st);

/** The sums of the capture plans of all dispatches: what finish took memory for.
 *  Whether it is safe to keep inputs is so only if it is for each. Zeroed before
 *  vyre_recording_seal.
 *  Ownership: fills *out.  Threads: as the recording.  Blocks: never.
 *  Errors: none. */
VYRE_API void vyre_recording_capacities(const vyre_recording *recording,
                                        vyre_capture_plan *out);

/** Prints what will run, line by line: slots and what is bound, then commands,
 *  with the barriers that finish put in and, once known, the grids. Returns
 *  false if @p writer refused or @p recording is NULL. The writer must not use
 *  the recording.
 *  Threads: as the recording.  Blocks: on the writer. */
VYRE_API bool vyre_recording_print(vyre_recording *recording,
                                   vyre_writer writer);

VYRE_END

#endif
