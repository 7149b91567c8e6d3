/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/counters.h
 *  What was done so far, in numbers: of a device, or of all since the process
 *  began. They only grow, but for those of what there is just now: live_* and
 *  output_slot_retained_capacity_bytes. */
#ifndef VYRE_COUNTERS_H
#define VYRE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/writer.h"

/** Every counter: X(field, metric, labels, help). Neighbours of one metric
 *  differ in their labels. */
#define VYRE_COUNTER_MAP(X)                                                    \
  X(launches, "dispatch_launches_total", "", "kernels that were launched")     \
  X(failures, "dispatch_failures_total", "", "dispatches that failed")         \
  X(input_bytes, "dispatch_bytes_total", "direction=\"input\"",                \
    "bytes of the host that dispatches took and gave")                         \
  X(output_bytes, "dispatch_bytes_total", "direction=\"output\"", "")          \
  X(copied_bytes, "dispatch_copied_bytes_total", "",                           \
    "bytes that had to be copied for a dispatch")                              \
  X(output_slots, "dispatch_output_slots_filled_total", "",                    \
    "output slots that were filled")                                           \
  X(output_slots_reused, "dispatch_output_slots_total", "kind=\"reused\"",     \
    "output slots that were filled, by what became of their memory")           \
  X(output_slots_moved, "dispatch_output_slots_total", "kind=\"moved\"", "")   \
  X(output_slots_appended, "dispatch_output_slots_total", "kind=\"appended\"", \
    "")                                                                        \
  X(output_slot_incoming_bytes, "dispatch_output_slot_bytes_total",            \
    "kind=\"incoming\"", "bytes of output slots")                              \
  X(output_slot_copied_bytes, "dispatch_output_slot_bytes_total",              \
    "kind=\"copied\"", "")                                                     \
  X(output_slot_moved_bytes, "dispatch_output_slot_bytes_total",               \
    "kind=\"moved\"", "")                                                      \
  X(output_slot_appended_bytes, "dispatch_output_slot_bytes_total",            \
    "kind=\"appended\"", "")                                                   \
  X(output_slot_retained_capacity_bytes,                                       \
    "dispatch_output_slot_retained_capacity_bytes", "",                        \
    "capacity of the output slots there are that dispatches allocated")        \
  X(grid_sync_splits, "grid_sync_splits_total", "kind=\"programs\"",           \
    "kernels compiled with grid barriers, and the parts between")              \
  X(grid_sync_segments, "grid_sync_splits_total", "kind=\"segments\"", "")     \
  X(grid_sync_points, "grid_sync_splits_total", "kind=\"sync_points\"", "")    \
  X(compiles, "pipeline_compiles_total", "", "pipelines that were compiled")   \
  X(cache_memory_hits, "pipeline_cache_total", "result=\"memory_hit\"",        \
    "pipelines that were looked for in the cache")                             \
  X(cache_disk_hits, "pipeline_cache_total", "result=\"disk_hit\"", "")        \
  X(cache_misses, "pipeline_cache_total", "result=\"miss\"", "")               \
  X(cache_rejected, "pipeline_cache_rejected_total", "",                       \
    "misses because of a file that was not to be trusted")                     \
  X(uploads, "resident_transfers_total", "direction=\"upload\"",               \
    "transfers to and from resident buffers")                                  \
  X(downloads, "resident_transfers_total", "direction=\"download\"", "")       \
  X(upload_bytes, "resident_bytes_total", "direction=\"upload\"",              \
    "bytes of transfers to and from resident buffers")                         \
  X(download_bytes, "resident_bytes_total", "direction=\"download\"", "")      \
  X(live_residents, "resident_buffers", "", "resident buffers there are")      \
  X(live_resident_bytes, "resident_buffer_bytes", "",                          \
    "bytes of resident buffers there are")                                     \
  X(replays, "recording_replays_total", "", "recordings that were replayed")   \
  X(recaptures, "recording_recaptures_total", "",                              \
    "parts of recordings that were made anew after a slot was bound")

typedef struct vyre_counters {
#define VYRE_X4(field, metric, labels, help) uint64_t field;
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
} vyre_counters;

VYRE_BEGIN

/** Counters of @p device, or, if NULL, of all devices there were in this
 *  process. Each is right; together they are no moment in time.
 *  Ownership: fills *out.  Threads: safe.
 *  Blocks: on devices that open or close.  Errors: none. */
VYRE_API void vyre_counters_read(const vyre_device *device, vyre_counters *out);

/** Writes all counters in the text format of Prometheus, one set for each
 *  device that is open. Returns false if @p writer refused.
 *  Threads: safe.  Blocks: on the writer.  Errors: none. */
VYRE_API bool vyre_counters_print(vyre_writer writer);

VYRE_END

#endif
