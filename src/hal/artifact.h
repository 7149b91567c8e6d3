/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A compiled kernel as bytes, for the cache: what launches it (host_plan.h), what
 * the backend has beside, and the code. Files may be anyone's: everything that is
 * read is looked at, and what is not as it was written is refused.
 *
 *   head      magic, version, sizes, numbers of the plan, counts of the arrays
 *   own       numbers of the backend
 *   buffers, steps, host code; arrays of the backend; code */
#ifndef VYRE_HAL_ARTIFACT_H
#define VYRE_HAL_ARTIFACT_H

#include "hal/host_plan.h"

/* An array of the backend: where its pointer and its count are. */
typedef struct vyre__artifact_array {
  void *pointer; /* of a pointer to elements */
  uint32_t *count;
  uint32_t element; /* bytes */
  uint32_t most;    /* elements */
} vyre__artifact_array;

enum { VYRE__ARTIFACT_ARRAYS = 4, VYRE__ARTIFACT_MAX = 1 << 20 };

/* The same description writes and reads: @p plan, own and arrays are then filled.
 * own has no padding. */
typedef struct vyre__artifact {
  const char *magic; /* 8 bytes */
  uint32_t version;
  uint32_t own_size;
  vyre__host_plan *plan;
  void *own;
  vyre__artifact_array arrays[VYRE__ARTIFACT_ARRAYS];
  uint32_t array_count;
  const void *code; /* read: in the bytes */
  size_t code_size;
} vyre__artifact;

/* False if the writer refused. */
bool vyre__artifact_write(const vyre__artifact *artifact, vyre_writer writer);

/* Fills what @p artifact describes; copies live in @p arena. The plan was checked,
 * own and arrays are for the backend to check.
 * Errors: VYRE_KERNEL_COMPILE_FAILED; VYRE_OUT_OF_MEMORY. */
vyre_code vyre__artifact_read(const void *bytes, size_t size,
                              vyre__artifact *artifact, vyre_arena *arena,
                              vyre_status *st);

/* The failure of all of this: what is wrong, and its number. */
vyre_code vyre__artifact_bad(vyre_status *st, const char *what,
                             uint64_t number);

#endif
