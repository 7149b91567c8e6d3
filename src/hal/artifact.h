/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Artifacts: compiled kernels as bytes. An artifact holds the
 * host plan, data of the backend, and the code. Cache files may be corrupt or
 * hostile, so reading checks every value and refuses bytes that writing cannot
 * produce.
 *   head      magic, version, sizes, numbers of the plan, counts of the arrays
 *   own       numbers of the backend
 *   buffers, steps, host code; arrays of the backend; code; extra bytes */
#ifndef VYRE_HAL_ARTIFACT_H
#define VYRE_HAL_ARTIFACT_H

#include "hal/host_plan.h"

/* An array of the backend: addresses of its pointer and of its count. */
typedef struct vyre__artifact_array {
  void *pointer; /* address of a pointer to the elements */
  uint32_t *count;
  uint32_t element;   /* bytes of an element */
  uint32_t max_count; /* elements */
} vyre__artifact_array;

enum { VYRE__ARTIFACT_ARRAYS = 4, VYRE__ARTIFACT_MAX = 1 << 20 };

/* Description of an artifact. Writing reads it; reading fills *plan, *own and
 * the arrays. `own` has no padding. */
typedef struct vyre__artifact {
  const char *magic; /* 8 bytes */
  uint32_t version;
  uint32_t own_size;
  vyre__host_plan *plan;
  void *own;
  vyre__artifact_array arrays[VYRE__ARTIFACT_ARRAYS];
  uint32_t array_count;
  bool has_extra; /* load may have added bytes (vyre__code_source.extra) */
  /* After reading, these point into the bytes. */
  const void *code, *extra;
  size_t code_size, extra_size;
} vyre__artifact;

/* Appends an artifact, without extra bytes, to @p to. */
void vyre__artifact_write(const vyre__artifact *artifact, vyre__bytes *to);

/* Reads an artifact; copies live in @p arena. Checks the plan. The backend
 * checks its own data and its arrays.
 * Errors: VYRE_KERNEL_COMPILE_FAILED;
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__artifact_read(const void *bytes, size_t size,
                              vyre__artifact *artifact, vyre_arena *arena,
                              vyre_status *st);

/* Reports that an artifact cannot be used, with the defect and a value that
 * shows it. */
vyre_code vyre__artifact_bad(vyre_status *st, const char *defect,
                             uint64_t value);

#endif
