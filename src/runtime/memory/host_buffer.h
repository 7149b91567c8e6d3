/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Host buffers: growable host memory that an output is written to. */
#ifndef VYRE_RUNTIME_MEMORY_HOST_BUFFER_H
#define VYRE_RUNTIME_MEMORY_HOST_BUFFER_H

#include "vyre/dispatch.h"

#include "hal/device.h"

/* Returns the alignment of host memory that @p device can bind without a
 * copy. */
static inline size_t vyre__host_alignment(const vyre_device *device) {
  uint64_t alignment = device->caps.host_alignment;
  return device->caps.borrows_host_memory && alignment > 1 ? (size_t)alignment
                                                           : 1;
}

/* Sets the size of the host buffer to @p size bytes, aligned for @p device.
 * Grows it if necessary; its old contents are then lost. Adds to @p stats and
 * to the counters of the device. Returns false without memory. */
bool vyre__host_buffer_fit(vyre_host_buffer *buffer, size_t size,
                           const vyre_device *device, vyre_output_stats *stats);

#endif
