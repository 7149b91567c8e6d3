/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scratch pool: each device keeps one block of memory per kind for reuse. A
 * call that acquires a block owns it alone. Concurrent calls allocate further
 * blocks; the last block that is returned is kept. */
#include "runtime/memory/scratch_pool.h"

#include "base/memory.h"
#include "runtime/core/device.h"

/* Largest block that the pool keeps. */
enum { MAX_KEPT_BYTES = 16 << 20 };

static void free_block(const vyre_device *device, vyre__scratch_block *block) {
  if (block) vyre__resize(device->allocator, block, block->size, 0);
}

vyre__scratch_block *vyre__scratch_acquire(vyre_device *device,
                                           vyre__scratch_kind kind,
                                           size_t size) {
  if (size > SIZE_MAX - sizeof(vyre__scratch_block)) return NULL;
  size += sizeof(vyre__scratch_block);
  vyre__scratch_block *block = atomic_exchange_explicit(
      &device->state->scratch[kind], NULL, memory_order_acquire);
  if (block && block->size >= size) return block;
  free_block(device, block); /* too small; its contents are not needed */
  block = vyre__resize(device->allocator, NULL, 0, size);
  if (block) block->size = size;
  return block;
}

void vyre__scratch_return(vyre_device *device, vyre__scratch_kind kind,
                          vyre__scratch_block *block) {
  if (!block) return;
  if (block->size > MAX_KEPT_BYTES) {
    free_block(device, block);
    return;
  }
  vyre__scratch_block *other = atomic_exchange_explicit(
      &device->state->scratch[kind], block, memory_order_acq_rel);
  free_block(device, other);
}

void vyre__scratch_pool_deinit(vyre_device *device) {
  for (int i = 0; i < VYRE__SCRATCH_KINDS; i++) {
    free_block(device, atomic_exchange(&device->state->scratch[i], NULL));
  }
}
