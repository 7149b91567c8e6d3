/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scratch pool: memory for the duration of one call. Each device keeps one
 * block per kind for reuse. */
#ifndef VYRE_RUNTIME_MEMORY_SCRATCH_POOL_H
#define VYRE_RUNTIME_MEMORY_SCRATCH_POOL_H

#include "vyre/device.h"

typedef struct vyre__scratch_block {
  _Alignas(16) size_t size; /* bytes, header included */
  _Alignas(16) unsigned char bytes[];
} vyre__scratch_block;

typedef enum vyre__scratch_kind {
  VYRE__SCRATCH_PREPARED, /* prepared dispatches of a batch */
  VYRE__SCRATCH_PARTS,    /* memory ranges that a batch binds */
  VYRE__SCRATCH_KINDS
} vyre__scratch_kind;

/* Returns a block with at least @p size bytes, the kept one if it is large
 * enough. Returns NULL without memory. */
vyre__scratch_block *vyre__scratch_acquire(vyre_device *device,
                                           vyre__scratch_kind kind,
                                           size_t size);
/* Returns a block to the pool. Accepts NULL. */
void vyre__scratch_return(vyre_device *device, vyre__scratch_kind kind,
                          vyre__scratch_block *block);
void vyre__scratch_pool_deinit(vyre_device *device);

#endif
