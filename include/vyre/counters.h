/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/counters.h
 *  Counters of one device, or of all devices since the process started.
 *
 *  Counters only grow, except those that describe the current state: live_*
 *  and host_buffer_retained_capacity_bytes. */
#ifndef VYRE_COUNTERS_H
#define VYRE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/writer.h"

/** All counters: X(field, metric, labels, help). Consecutive counters of one
 *  metric differ in their labels; the first one has the help text. */
#define VYRE_COUNTER_MAP(X)                                                    \
  X(launches, "dispatch_launches_total", "", "kernel launches")                \
  X(failures, "dispatch_failures_total", "", "failed dispatches")              \
  X(input_bytes, "dispatch_bytes_total", "direction=\"input\"",                \
    "bytes of host inputs and outputs of dispatches")                          \
  X(output_bytes, "dispatch_bytes_total", "direction=\"output\"", "")          \
  X(copied_bytes, "dispatch_copied_bytes_total", "",                           \
    "bytes copied for dispatches")                                             \
  X(host_buffers_filled, "dispatch_host_buffers_filled_total", "",             \
    "host buffers filled by dispatches")                                       \
  X(host_buffers_reused, "dispatch_host_buffers_total", "kind=\"reused\"",     \
    "host buffers filled, by origin of their memory")                          \
  X(host_buffers_moved, "dispatch_host_buffers_total", "kind=\"moved\"", "")   \
  X(host_buffers_appended, "dispatch_host_buffers_total", "kind=\"appended\"", \
    "")                                                                        \
  X(host_buffer_incoming_bytes, "dispatch_host_buffer_bytes_total",            \
    "kind=\"incoming\"", "bytes of results in host buffers")                   \
  X(host_buffer_copied_bytes, "dispatch_host_buffer_bytes_total",              \
    "kind=\"copied\"", "")                                                     \
  X(host_buffer_moved_bytes, "dispatch_host_buffer_bytes_total",               \
    "kind=\"moved\"", "")                                                      \
  X(host_buffer_appended_bytes, "dispatch_host_buffer_bytes_total",            \
    "kind=\"appended\"", "")                                                   \
  X(host_buffer_retained_capacity_bytes,                                       \
    "dispatch_host_buffer_retained_capacity_bytes", "",                        \
    "current capacity of host buffers allocated by dispatches")                \
  X(grid_sync_splits, "grid_sync_splits_total", "kind=\"programs\"",           \
    "compiled kernels with grid barriers, their phases and barriers")          \
  X(grid_sync_segments, "grid_sync_splits_total", "kind=\"segments\"", "")     \
  X(grid_sync_points, "grid_sync_splits_total", "kind=\"sync_points\"", "")    \
  X(compiles, "pipeline_compiles_total", "", "compiled pipelines")             \
  X(cache_memory_hits, "pipeline_cache_total", "result=\"memory_hit\"",        \
    "cache lookups of pipelines, by result")                                   \
  X(cache_disk_hits, "pipeline_cache_total", "result=\"disk_hit\"", "")        \
  X(cache_misses, "pipeline_cache_total", "result=\"miss\"", "")               \
  X(cache_rejected, "pipeline_cache_rejected_total", "",                       \
    "cache misses because of an invalid file")                                 \
  X(uploads, "device_buffer_transfers_total", "direction=\"upload\"",          \
    "transfers to and from device buffers")                                    \
  X(downloads, "device_buffer_transfers_total", "direction=\"download\"", "")  \
  X(upload_bytes, "device_buffer_transferred_bytes_total",                     \
    "direction=\"upload\"", "bytes transferred to and from device buffers")    \
  X(download_bytes, "device_buffer_transferred_bytes_total",                   \
    "direction=\"download\"", "")                                              \
  X(live_device_buffers, "device_buffers", "",                                 \
    "current number of device buffers")                                        \
  X(live_device_buffer_bytes, "device_buffer_bytes", "",                       \
    "current bytes of device buffers")                                         \
  X(replays, "recording_replays_total", "", "replays of recordings")           \
  X(rebuilds, "recording_rebuilds_total", "",                                  \
    "dispatches of recordings rebuilt after a slot was bound")

/** Positions of the counters, and their number. */
#define VYRE_X4(field, metric, labels, help) vyre_counter_index_##field,
enum { VYRE_COUNTER_MAP(VYRE_X4) VYRE_COUNTER_COUNT };
#undef VYRE_X4

/** Values of all counters, one field for each entry of VYRE_COUNTER_MAP. Always
 *  64 words large. */
typedef struct vyre_counters {
#define VYRE_X4(field, metric, labels, help) uint64_t field;
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
  uint64_t reserved[64 - VYRE_COUNTER_COUNT]; /* zero; for future counters */
} vyre_counters;

VYRE_BEGIN

/** Reads the counters of @p device, or the sums over all devices of the
 *  process if @p device is NULL. Each value is exact, but the values are not
 *  read at the same instant.
 *  Ownership: fills *out.
 *  Threads:   safe.
 *  Blocks:    while a device opens or closes.
 *  Errors:    none. */
VYRE_API void vyre_counters_read(const vyre_device *device, vyre_counters *out);

/** Writes all counters in the Prometheus text format, with one set for each
 *  open device. Returns false if @p writer fails.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_counters_print(vyre_writer writer);

VYRE_END

#endif
