/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LANG_LITERAL_H
#define VYRE_LANG_LITERAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/ops.h"

/* A number as written. Floats are rounded to nearest even, once for each type,
 * whatever the locale is; infinity means that it is too large, and 0 may mean
 * that it is too small. */
typedef struct vyre__number_token {
  bool is_float;
  vyre_type type; /* of the suffix; VYRE_TYPE_VOID without one */
  uint64_t integer;
  double f64;
  float f32;
  bool vanishes; /* it is not 0, and too small for f64 */
} vyre__number_token;

/* What is wrong with a number: two sentences in static storage. */
typedef struct vyre__number_fault {
  const char *message, *fix;
} vyre__number_fault;

/* @p length is at least 1 and at most VYRE__MAX_NUMBER. */
bool vyre__number_read(const char *text, size_t length, vyre__number_token *out,
                       vyre__number_fault *fault);

#endif
