/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Words of CUDA, OpenCL C, WGSL, GLSL, HLSL, ispc and C, with the fix that a
 * diagnostic gives for them. */
#ifndef VYRE_LANG_FOREIGN_H
#define VYRE_LANG_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/program.h"

/* Kind of a word; decides which further syntax belongs to it. */
typedef enum vyre__foreign_kind {
  VYRE__FOREIGN_NAME,      /* a value or a function */
  VYRE__FOREIGN_ID,        /* a function of an axis: get_global_id(0) */
  VYRE__FOREIGN_QUALIFIER, /* before a declaration, without effect here */
  VYRE__FOREIGN_SHARED,    /* before a declaration: memory of a workgroup */
  VYRE__FOREIGN_GLOBAL,    /* before a parameter: memory of the device */
  VYRE__FOREIGN_CONSTANT,  /* before a declaration: constant memory */
  VYRE__FOREIGN_KERNEL,    /* before a function that the host starts */
  VYRE__FOREIGN_FUNCTION,  /* before a function of the device */
} vyre__foreign_kind;

typedef struct vyre__foreign {
  const char *name;
  const char *fix;  /* instruction */
  const char *edit; /* text that takes the place of the word, or NULL */
  uint8_t kind;     /* vyre__foreign_kind */
} vyre__foreign;

/* Returns the row of a word, or NULL. */
const vyre__foreign *vyre__foreign_find(const char *name, size_t length);

/* Returns the type of values that a word of another language names, such as
 * "u32" or "f32x4", or NULL. Static storage. */
const char *vyre__foreign_type(const char *name, size_t length);

/* Returns the type of elements in memory that a word of another language
 * names, such as "u8", "f16" or "u8x4", or NULL. Static storage. */
const char *vyre__foreign_element(const char *name, size_t length);

#endif
