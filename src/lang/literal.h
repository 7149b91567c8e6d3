/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LANG_LITERAL_H
#define VYRE_LANG_LITERAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/ops.h"

/* Number as written. Floats are rounded to nearest even, once per type and
 * independent of the locale. Infinity means too large; 0 may mean too small. */
typedef struct vyre__number_token {
  bool is_float;
  vyre_type type; /* from the suffix; VYRE_TYPE_VOID without one */
  uint64_t integer;
  double f64;
  float f32;
  bool vanishes; /* not 0, but too small for f64 */
} vyre__number_token;

/* Error in a number: message and fix, in static storage. */
typedef struct vyre__number_fault {
  const char *message, *fix;
} vyre__number_fault;

/* Reads a number of 1 to VYRE__MAX_NUMBER bytes. Returns false and fills
 * *fault if it is malformed. */
bool vyre__number_read(const char *text, size_t length, vyre__number_token *out,
                       vyre__number_fault *fault);

#endif
