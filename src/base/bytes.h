/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A growing byte array. */
#ifndef VYRE_BASE_BYTES_H
#define VYRE_BASE_BYTES_H

#include <stdbool.h>

#include "vyre/memory.h"
#include "vyre/writer.h"

/* Empty if all fields but the allocator and the limit are zero. */
typedef struct vyre__bytes {
  vyre_allocator allocator;
  unsigned char *data;
  size_t size, capacity;
  size_t max;  /* bytes beyond this are counted but not stored; 0: no limit */
  bool failed; /* memory was exhausted; later bytes are dropped */
} vyre__bytes;

/* Appends @p count bytes. Sets `failed` if memory is exhausted. */
void vyre__bytes_put(vyre__bytes *to, const void *bytes, size_t count);
/* Returns a writer that appends. It fails when the array does. */
vyre_writer vyre__bytes_writer(vyre__bytes *to);
/* Frees the array and makes it empty. */
void vyre__bytes_deinit(vyre__bytes *bytes);

#endif
