/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that a call needs for its own time, and the next such call too: a device
 * keeps one piece of each kind. Who takes it has it alone; who comes at the same
 * time gets another, and the last to end leaves its own. */
#include "base/memory.h"
#include "runtime/runtime.h"

/* What is kept for nobody in particular, at most. */
enum { MOST_KEPT = 16 << 20 };

static void drop(const vyre_device *device, vyre__scratch_block *room) {
  if (room) vyre__resize(device->allocator, room, room->size, 0);
}

vyre__scratch_block *vyre__scratch_acquire(vyre_device *device,
                                           vyre__scratch_kind kind,
                                           size_t size) {
  if (size > SIZE_MAX - sizeof(vyre__scratch_block)) return NULL;
  size += sizeof(vyre__scratch_block);
  vyre__scratch_block *room = atomic_exchange_explicit(
      &device->state->scratch[kind], NULL, memory_order_acquire);
  if (room && room->size >= size) return room;
  drop(device, room); /* what is in it is of no use */
  room = vyre__resize(device->allocator, NULL, 0, size);
  if (room) room->size = size;
  return room;
}

void vyre__scratch_return(vyre_device *device, vyre__scratch_kind kind,
                          vyre__scratch_block *room) {
  if (!room) return;
  if (room->size > MOST_KEPT) {
    drop(device, room);
    return;
  }
  vyre__scratch_block *other = atomic_exchange_explicit(
      &device->state->scratch[kind], room, memory_order_acq_rel);
  drop(device, other);
}

void vyre__scratch_pool_deinit(vyre_device *device) {
  for (int i = 0; i < VYRE__SCRATCH_KINDS; i++) {
    drop(device, atomic_exchange(&device->state->scratch[i], NULL));
  }
}
