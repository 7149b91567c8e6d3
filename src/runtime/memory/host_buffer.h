/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Host buffers: growable host memory that an output is written to. */
#ifndef VYRE_RUNTIME_MEMORY_HOST_BUFFER_H
#define VYRE_RUNTIME_MEMORY_HOST_BUFFER_H

#include "vyre/binding.h"
#include "vyre/dispatch.h"

#include "hal/device.h"

/* Returns the alignment of host memory that @p device can bind without a
 * copy. */
static inline size_t vyre__host_alignment(const vyre_device *device) {
  uint64_t alignment = device->caps.host_alignment;
  return device->caps.borrows_host_memory && alignment > 1 ? (size_t)alignment
                                                           : 1;
}

/* A larger preferred alignment of a binding counts as this one: the memory in
 * front of an allocation is lost. */
enum { VYRE__MAX_PREFERRED_ALIGNMENT = 2 << 20 };

/* Returns the alignment of memory that is allocated for a binding. */
static inline size_t vyre__binding_alignment(const vyre_device *device,
                                             const vyre_binding *binding) {
  size_t required = vyre__host_alignment(device);
  uint64_t preferred = binding->preferred_alignment;
  if (preferred > VYRE__MAX_PREFERRED_ALIGNMENT)
    preferred = VYRE__MAX_PREFERRED_ALIGNMENT;
  return preferred > required ? (size_t)preferred : required;
}

/* Sets the size of the host buffer to @p size bytes at an address that is a
 * multiple of @p alignment. Grows it if necessary; its old contents are then lost. Adds to @p stats and
 * to the counters of the device. Returns false without memory. */
bool vyre__host_buffer_fit(vyre_host_buffer *buffer, size_t size,
                           size_t alignment, const vyre_device *device,
                           vyre_output_stats *stats);

#endif
