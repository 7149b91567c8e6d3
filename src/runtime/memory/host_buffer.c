/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/runtime.h"

static uint64_t sum(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void drop(vyre_host_buffer *slot) {
  if (!slot->data) return;
  if (slot->device) vyre__counters_retained(slot->device, 0 - slot->capacity);
  vyre__resize(slot->allocator, (unsigned char *)slot->data - slot->lead,
               slot->capacity + slot->lead, 0);
}

/* The old bytes are of no use, so they are not carried over. */
static bool take(vyre_host_buffer *slot, size_t size,
                 const vyre_device *device) {
  size_t alignment = vyre__host_alignment(device);
  /* What every allocator gives is not asked for. */
  size_t room = alignment > _Alignof(max_align_t) ? alignment - 1 : 0;
  if (size > SIZE_MAX - room) return false;
  unsigned char *raw = vyre__resize(slot->allocator, NULL, 0, size + room);
  if (!raw) return false;
  drop(slot);
  slot->lead = room ? (size_t)(-(uintptr_t)raw % alignment) : 0;
  slot->data = raw + slot->lead;
  slot->capacity = size + room - slot->lead;
  slot->device = device->state->id;
  vyre__counters_retained(slot->device, slot->capacity);
  return true;
}

bool vyre__host_buffer_fit(vyre_host_buffer *slot, size_t size,
                           const vyre_device *device,
                           vyre_output_stats *stats) {
  bool is_aligned = (uintptr_t)slot->data % vyre__host_alignment(device) == 0;
  bool fits = size == 0 || (size <= slot->capacity && slot->data && is_aligned);
  bool was_empty = !slot->data;
  if (!fits && !take(slot, size, device)) return false;
  slot->size = size;
  stats->slots = sum(stats->slots, 1);
  stats->incoming_bytes = sum(stats->incoming_bytes, size);
  stats->retained_capacity_bytes =
      sum(stats->retained_capacity_bytes, slot->capacity);
  if (fits) {
    stats->reused = sum(stats->reused, 1);
  } else if (was_empty) {
    stats->appended = sum(stats->appended, 1);
    stats->appended_bytes = sum(stats->appended_bytes, size);
  } else {
    stats->moved = sum(stats->moved, 1);
    stats->moved_bytes = sum(stats->moved_bytes, size);
  }
  return true;
}

void vyre_host_buffer_deinit(vyre_host_buffer *slot) {
  if (!slot) return;
  drop(slot);
  *slot = (vyre_host_buffer){.allocator = slot->allocator};
}

static void swap(vyre_host_buffer *a, vyre_host_buffer *b) {
  vyre_host_buffer kept = *a;
  *a = *b;
  *b = kept;
}

vyre_code vyre_host_buffers_replace(vyre_host_buffer *incoming,
                                    size_t incoming_count,
                                    vyre_host_buffer *slots, size_t slot_count,
                                    vyre_output_stats *stats, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_host_buffers_replace";
  vyre_output_stats ignored = {0};
  if (!stats) stats = &ignored;
  if (!incoming && incoming_count > 0) {
    return vyre__null_argument(st, who, "incoming");
  }
  if (!slots && (slot_count > 0 || incoming_count > 0)) {
    return vyre__null_argument(st, who, "slots");
  }
  for (size_t i = 0; i < incoming_count; i++) {
    size_t size = incoming[i].size;
    stats->slots = sum(stats->slots, 1);
    stats->incoming_bytes = sum(stats->incoming_bytes, size);
    if (i >= slot_count) {
      swap(&slots[i], &incoming[i]);
      stats->appended = sum(stats->appended, 1);
      stats->appended_bytes = sum(stats->appended_bytes, size);
    } else if (size <= slots[i].capacity) {
      if (size > 0) memcpy(slots[i].data, incoming[i].data, size);
      slots[i].size = size;
      stats->reused = sum(stats->reused, 1);
      stats->copied_bytes = sum(stats->copied_bytes, size);
    } else {
      swap(&slots[i], &incoming[i]);
      stats->moved = sum(stats->moved, 1);
      stats->moved_bytes = sum(stats->moved_bytes, size);
    }
    vyre_host_buffer_deinit(&incoming[i]);
    stats->retained_capacity_bytes =
        sum(stats->retained_capacity_bytes, slots[i].capacity);
  }
  for (size_t i = incoming_count; i < slot_count; i++) {
    vyre_host_buffer_deinit(&slots[i]);
  }
  return VYRE_OK;
}
