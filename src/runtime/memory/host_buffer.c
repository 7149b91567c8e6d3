/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Host buffers: growable host memory that outputs are written to. A buffer
 * that is large enough is reused, so that repeated dispatches allocate
 * nothing. */
#include "runtime/memory/host_buffer.h"

#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/counters.h"
#include "runtime/core/device.h"

static uint64_t add_saturated(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void free_memory(vyre_host_buffer *buffer) {
  if (!buffer->data) return;
  if (buffer->device)
    vyre__counters_retained(buffer->device, 0 - buffer->capacity);
  vyre__resize(buffer->allocator, (unsigned char *)buffer->data - buffer->lead,
               buffer->capacity + buffer->lead, 0);
}

/* Replaces the memory of @p buffer. The old contents are not copied: a
 * dispatch overwrites them. */
static bool reallocate(vyre_host_buffer *buffer, size_t size, size_t alignment,
                       const vyre_device *device) {
  /* Every allocator provides this alignment. */
  size_t padding = alignment > _Alignof(max_align_t) ? alignment - 1 : 0;
  if (size > SIZE_MAX - padding) return false;
  unsigned char *raw = vyre__resize(buffer->allocator, NULL, 0, size + padding);
  if (!raw) return false;
  free_memory(buffer);
  buffer->lead = padding ? (size_t)(-(uintptr_t)raw % alignment) : 0;
  buffer->data = raw + buffer->lead;
  buffer->capacity = size + padding - buffer->lead;
  buffer->device = device->state->id;
  vyre__counters_retained(buffer->device, buffer->capacity);
  return true;
}

bool vyre__host_buffer_fit(vyre_host_buffer *buffer, size_t size,
                           size_t alignment, const vyre_device *device,
                           vyre_output_stats *stats) {
  bool is_aligned = (uintptr_t)buffer->data % alignment == 0;
  bool fits =
      size == 0 || (size <= buffer->capacity && buffer->data && is_aligned);
  bool was_empty = !buffer->data;
  if (!fits && !reallocate(buffer, size, alignment, device)) return false;
  buffer->size = size;
  stats->filled = add_saturated(stats->filled, 1);
  stats->incoming_bytes = add_saturated(stats->incoming_bytes, size);
  stats->retained_capacity_bytes =
      add_saturated(stats->retained_capacity_bytes, buffer->capacity);
  if (fits) {
    stats->reused = add_saturated(stats->reused, 1);
  } else if (was_empty) {
    stats->appended = add_saturated(stats->appended, 1);
    stats->appended_bytes = add_saturated(stats->appended_bytes, size);
  } else {
    stats->moved = add_saturated(stats->moved, 1);
    stats->moved_bytes = add_saturated(stats->moved_bytes, size);
  }
  return true;
}

void vyre_host_buffer_deinit(vyre_host_buffer *buffer) {
  if (!buffer) return;
  free_memory(buffer);
  *buffer = (vyre_host_buffer){.allocator = buffer->allocator};
}

static void swap(vyre_host_buffer *a, vyre_host_buffer *b) {
  vyre_host_buffer other = *a;
  *a = *b;
  *b = other;
}

vyre_code vyre_host_buffers_replace(vyre_host_buffer *incoming,
                                    size_t incoming_count,
                                    vyre_host_buffer *buffers,
                                    size_t buffer_count,
                                    vyre_output_stats *stats, vyre_status *st) {
  vyre__status_begin(st);
  vyre_output_stats ignored = {0};
  if (!stats) stats = &ignored;
  VYRE_REQUIRE_ARRAY(st, incoming, incoming_count);
  if (!buffers && (buffer_count > 0 || incoming_count > 0)) {
    return vyre__null_argument(st, __func__, "buffers");
  }
  for (size_t i = 0; i < incoming_count; i++) {
    size_t size = incoming[i].size;
    stats->filled = add_saturated(stats->filled, 1);
    stats->incoming_bytes = add_saturated(stats->incoming_bytes, size);
    if (i >= buffer_count) {
      swap(&buffers[i], &incoming[i]);
      stats->appended = add_saturated(stats->appended, 1);
      stats->appended_bytes = add_saturated(stats->appended_bytes, size);
    } else if (size <= buffers[i].capacity) {
      if (size > 0) memcpy(buffers[i].data, incoming[i].data, size);
      buffers[i].size = size;
      stats->reused = add_saturated(stats->reused, 1);
      stats->copied_bytes = add_saturated(stats->copied_bytes, size);
    } else {
      swap(&buffers[i], &incoming[i]);
      stats->moved = add_saturated(stats->moved, 1);
      stats->moved_bytes = add_saturated(stats->moved_bytes, size);
    }
    vyre_host_buffer_deinit(&incoming[i]);
    stats->retained_capacity_bytes =
        add_saturated(stats->retained_capacity_bytes, buffers[i].capacity);
  }
  for (size_t i = incoming_count; i < buffer_count; i++) {
    vyre_host_buffer_deinit(&buffers[i]);
  }
  return VYRE_OK;
}
